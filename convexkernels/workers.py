"""What processes that share a piece of work, and know nothing of each other, do once together."""

import contextlib
import hashlib
import multiprocessing
import multiprocessing.util
import os
import tempfile

# Processes, and sentences that they were the first of several to say.
_MARKED: set[tuple[int, str]] = set()


def first_of_workers(sentence: str) -> bool:
    """Whether no other process that has the same parent has said it; of a process without a parent always.

    Processes that know nothing of each other share one thing that nobody else has: the key by which they may talk to
    their parent. A file that is named by it, with the number of its process, is made by whoever is first, and removed
    where that one comes to its end; what a process has left that was killed counts no more.
    """
    if multiprocessing.parent_process() is None:
        return True
    key = hashlib.sha256(bytes(multiprocessing.current_process().authkey) + sentence.encode()).hexdigest()[:32]
    if (os.getpid(), key) in _MARKED:
        return True
    try:
        mark = os.path.join(tempfile.gettempdir(), f"convexkernels-said-{key}")
        if _is_of_the_dead(mark):
            os.remove(mark)
        with os.fdopen(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return False
    except OSError:  # nowhere to write: better twice than not at all
        return True
    _MARKED.add((os.getpid(), key))
    multiprocessing.util.Finalize(None, _remove, (mark,), exitpriority=0)
    return True


def _is_of_the_dead(mark: str) -> bool:
    """Whether the process that has made a file is no more, as far as that can be known."""
    if os.name != "posix":
        return False
    try:
        with open(mark) as file:
            os.kill(int(file.read()), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):  # there is none, it is being written, or somebody else's
        return False
    return False


def _remove(file: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(file)
