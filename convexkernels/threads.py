"""How many threads a computation is worth, and work in parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock, local
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Below this many rows the threads of BLAS and of compiled loops wait for each other longer than they work: on two
# cores, 80 to 1,000 rows took 4 to 7 times the processor time of one thread, and more wall time even on idle cores.
MULTITHREADED_SIZE = 1500
# Rows up to which several threads factorize a matrix: those of OpenBLAS 0.3.30 crash the process in a Cholesky
# factorization of 16,000 rows in float64.
LARGEST_FACTORIZED = 12_000
# Parts of a loop for each thread, so that a thread that is held up does not hold up the others.
PARTS = 4


@contextmanager
def threads_for(size: int, alone: bool = True, *, enough: int = MULTITHREADED_SIZE) -> Iterator[None]:
    """One thread for matrices with fewer than `enough` rows, or beside other workers; else all there are.

    `enough` is fewer than for square matrices where they are long.
    """
    if alone and size >= enough:
        yield
        return
    _CALLER.limits += 1
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()
        _CALLER.limits -= 1


def threads_to_factorize(size: int) -> AbstractContextManager[None]:
    """One thread where more of them do not survive a factorization, else those there are."""
    return threads_for(size, size <= LARGEST_FACTORIZED, enough=0)


def n_threads() -> int:
    """Threads that compiled loops of the calling thread may use: NUMBA_NUM_THREADS, or the processors there are."""
    return 1 if _CALLER.limits else _processors()


def in_parts(loop: Callable[..., Any], size: int, *arguments: Any, least: int = 1) -> None:
    """Call ``loop(first, last, *arguments)`` for ranges that cover 0 to `size`, of `least` entries or more.

    The loop must not hold the lock of the interpreter to gain from it. Threads are the library's own: those of a
    compiler's runtime survive no fork, or bear only one caller at a time.
    """
    count = min(n_threads(), size // least)
    if count <= 1:
        loop(0, size, *arguments)
        return
    parts = min(PARTS * count, size // least)
    ends = [size * part // parts for part in range(parts + 1)]
    # The caller works as well: with its own share done it waits for the last part only.
    waiting = [_pool().submit(loop, first, last, *arguments) for first, last in pairwise(ends[1:])]
    loop(0, ends[1], *arguments)
    for part in waiting:
        part.result()


def in_threads(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """Apply `work` to every part, in as many threads as BLAS may use, and return the results in order.

    Inside, BLAS itself has one thread.
    """
    allowed = (info["num_threads"] for info in _controller().info() if info["user_api"] == "blas")
    count = min(max(allowed, default=1), len(parts) // 4) if len(parts) >= 8 else 1
    if count <= 1:
        return [work(part) for part in parts]
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, parts))


class _Caller(local):
    """How many limits to one thread a thread is under by its own wish."""

    limits = 0


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


@cache
def _processors() -> int:
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(given)) if given.isdigit() else usable


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_processors(), thread_name_prefix="convexkernels")


_CALLER = _Caller()
_BLAS = _SingleThreadedBlas()


def _forget_parent() -> None:
    """A forked child has one thread: what others held or limited is nobody's there."""
    _pool.cache_clear()
    _BLAS.lock = Lock()
    if _BLAS.callers and not _CALLER.limits:
        _BLAS.limit.restore_original_limits()
    _BLAS.callers = _CALLER.limits


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
