"""How many threads a computation is worth."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["MULTITHREADED_SIZE", "threads_for"]

# Below this many rows the threads of BLAS and of compiled loops wait for each other longer than they work: on two
# cores, 80 to 1,000 rows took 4 to 7 times the processor time of one thread, and more wall time even on idle cores.
MULTITHREADED_SIZE = 1500


@contextmanager
def threads_for(size: int, alone: bool = True, *, enough: int = MULTITHREADED_SIZE) -> Iterator[None]:
    """One thread for matrices with fewer than `enough` rows, or beside other workers; else all there are.

    Parameters
    ----------
    size : int
        Rows of the matrices.
    alone : bool
        Whether nobody else computes at the same time.
    enough : int
        Rows from which on several threads are faster; fewer than for square matrices where they are long.
    """
    if alone and size >= enough:
        yield
        return
    compiled = sys.modules.get("numba")
    before = compiled.get_num_threads() if compiled is not None else 0  # a setting of the calling thread
    if compiled is not None:
        compiled.set_num_threads(1)
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()
        if compiled is not None:
            compiled.set_num_threads(before)


class _SingleThreadedBlas:
    """The limit on BLAS, which belongs to the process: the first caller sets it and the last one lifts it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.callers = 0
        self.limit: Any = None

    def enter(self) -> None:
        with self.lock:
            if not self.callers:
                self.limit = _controller().limit(limits=1)
            self.callers += 1

    def leave(self) -> None:
        with self.lock:
            self.callers -= 1
            if not self.callers:
                self.limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    """The thread pools of this process; finding them takes milliseconds, so once is enough."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_BLAS = _SingleThreadedBlas()
