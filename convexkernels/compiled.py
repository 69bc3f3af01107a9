"""Compiled loops: how they are made, and how they are made ahead of their first use.

Loops run without the interpreter's lock and know nothing of threads: `threads.in_parts` divides their range. The
threading layers of the compiler do not survive a fork, or do not bear two threads that use them.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from numba import njit

# The modules that hold compiled loops, by name: they are imported to be compiled, not used. Those of cells take long to
# import, and whoever needs them has done so.
LOOPS = tuple(
    f"convexkernels.{name}"
    for name in (
        "bases.tessellation.tiles",
        "families.stacks.packed",
        "few_vectors",
        "losses.sequential",
        "solvers.nonconvex.adam",
    )
)
CELLS = "convexkernels.cells.traversal"

# Sums in any order, but nothing assumed about infinities.
EXACT_FAST = {"contract", "reassoc", "nsz"}
MATRIX, MATRIX32, VECTOR, VECTOR32, INTEGERS = "f8[:,::1]", "f4[:,::1]", "f8[::1]", "f4[::1]", "i8[::1]"

# Loops that are not ready yet.
_loops: list[tuple[Any, tuple[str, ...]]] = []
_lock = Lock()


def compiled(*signatures: str, fastmath: Any = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a loop at its first use, or in `warm_up` for the types it is called with; kept on disk."""

    def decorate(loop: Callable[..., Any]) -> Any:
        # Where loops call each other as functions, the linker takes the copy that was first in the process: another one
        # where they have just been compiled than where they are read from disk, and sums in any order are other sums.
        dispatcher = njit(cache=True, nogil=True, fastmath=fastmath, forceinline=True)(loop)
        _loops.append((dispatcher, signatures))
        return dispatcher

    return decorate


def warm_up(note: Callable[[str], Any] | None = None) -> None:
    """Compile all loops, or load them where they are on disk: half a minute once for an installation.

    Every fit does that for the loops it may need before its clock starts; here it can be had ahead, for example while
    an image is built.

    Parameters
    ----------
    note : callable, optional
        Is told, in a sentence, that something has to be compiled.
    """
    import_module(CELLS)
    make_ready(note)


def make_ready(note: Callable[[str], Any] | None = None) -> None:
    """Compile or load what is not ready yet of the loops that are imported or that any fit may import."""
    for name in LOOPS:
        import_module(name)
    with _lock:
        if note is not None and not all(_is_kept(loop) for loop, signatures in _loops if signatures):
            note("compiling, once: half a minute; the compiled code is kept on disk")
        while _loops:
            loop, signatures = _loops[-1]
            for signature in signatures:
                loop.compile(signature)
            _loops.pop()


def _is_kept(loop: Any) -> bool:
    """Whether something newer than its source is on disk."""
    source = Path(loop.py_func.__code__.co_filename)
    pattern = f"{source.stem}.{loop.py_func.__qualname__}-*.nbi"
    kept = Path(str(loop.stats.cache_path)).glob(pattern)
    return any(path.stat().st_mtime >= source.stat().st_mtime for path in kept)
