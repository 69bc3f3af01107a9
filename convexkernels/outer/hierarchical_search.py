"""Descent on the risk of machines not trained on a row, by its exact gradient in all weights and in lam.

With at most `search_size` rows the objective is one function, and quasi-Newton steps minimise it. With more, every step
draws other rows and moves by the gradient there, its entries scaled by their running size (Adam). A fixed sample of a
thousand rows is too little to choose a hundred weights by: on `letter`, 7,000 rows, quasi-Newton steps on 1,000 to
3,000 of them ended with a test error of 0.0436, drawing 1,500 at a time with 0.0292 in a fifth of the time. With 900
rows (mean of two splits, 8 nodes) 60 quasi-Newton steps on all ended at 0.446 on `magic`, 0.051 on `updrs` and 0.047 on
`cadata`, 100 steps on 300 rows at a time at 0.414, 0.0049 and 0.038, in a sixth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.outer.quasi_newton import Evaluation, Limits, descend
from convexkernels.progress import as_progress
from convexkernels.solution import Record, Status

__all__ = ["Found", "Watch", "descend_on_all", "descend_on_samples", "load_checkpoint"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# Adam: memory of the gradient and of its squared entries, and the size below which an entry counts as small. Gradients
# are those of the logarithm of the risk.
MOMENTUM, SCALE_MEMORY, SMALL = 0.9, 0.98, 1e-3
# Step in log w; it falls linearly to 0 over the second half of the search.
STEP = 0.1
# Where float32 breaks down, lam is raised by this factor.
RETREAT = 3.0
# Ten quasi-Newton steps that gain less than this fraction are within what the rows can tell.
STALL = 1e-3
MAX_TRIALS = 10
# Seconds between two messages or checkpoints.
EVERY = 5.0


@dataclass
class Found:
    """Where a search ended."""

    point: Array
    status: Status
    n_iter: int
    history: list[Record] = field(repr=False)


class Watch:
    """The clock of a search: limit, progress with the time that is left, checkpoints.

    Parameters
    ----------
    max_time : float or None
        Seconds.
    progress : bool or Progress
    checkpoint : path or None
        File that the best point so far is written to.
    """

    def __init__(self, max_time: float | None = None, progress: Any = False, checkpoint: Any = None) -> None:
        self.began = time.monotonic()
        self.max_time = np.inf if max_time is None else float(max_time)
        self.show = as_progress(progress)
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self._spoke = self.began

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.seconds > self.max_time

    @property
    def deadline(self) -> float:
        """Value of ``time.monotonic()`` at which the search has to end."""
        return self.began + self.max_time

    def share(self, done: float) -> float:
        """How much of the search is over, by steps (`done`, a fraction) or by time, whichever is more."""
        return max(done, self.seconds / self.max_time)

    def tell(self, done: float, what: str, point: Array | None = None, *, now: bool = False) -> None:
        """Say where the search is and when it will be over, and write a checkpoint, every few seconds."""
        if not now and time.monotonic() - self._spoke < EVERY:
            return
        self._spoke = time.monotonic()
        share = self.share(done)
        left = self.seconds * (1.0 - share) / share if share > 0.0 else np.inf
        self.show.note(f"{100.0 * share:5.1f} %, {what}, {self.seconds:.0f} s so far, about {left:.0f} s left")
        if self.checkpoint is not None and point is not None:
            save_checkpoint(self.checkpoint, point)


def save_checkpoint(path: Path, point: Array) -> None:
    """Write a point; a file that is there is replaced in one step, so that an interrupt leaves one of the two."""
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as stream:
        np.save(stream, point)
    beside.replace(path)


def load_checkpoint(path: Any, size: int) -> Array | None:
    """The point of a checkpoint, or None where there is no file; any other file is refused, as it would be replaced."""
    file = Path(path)
    if not file.exists():
        return None
    try:
        point = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        point = None
    if not isinstance(point, np.ndarray) or point.shape != (size,) or not np.isfinite(point).all():
        raise InvalidInputError(
            f"checkpoint {str(path)!r} exists, but is no checkpoint of a kernel with {size - 1} weights; move it "
            "away or name another file."
        )
    return point


def descend_on_all(
    evaluate: Callable[[Array], Evaluation], start: Array, tol: float, max_iter: int, watch: Watch
) -> Found:
    """Quasi-Newton descent on one function."""
    count = 0

    def told(point: Array) -> Evaluation:
        nonlocal count
        count += 1
        there = evaluate(point)
        watch.tell(min(count / max(max_iter, 1), 0.99), f"risk {there.value:.6g}", point)
        return there

    limits = Limits(tol, STALL, max_iter, watch.deadline, MAX_TRIALS)
    descent = descend(told, start, limits)
    history = [
        Record(k, value, -np.inf, s) for k, (value, s) in enumerate(zip(descent.values, descent.times, strict=True))
    ]
    return Found(descent.point, descent.status, descent.n_iter, history)


def descend_on_samples(
    risk_on: Callable[[Rows], Callable[[Array], Evaluation]],
    n_rows: int,
    size: int,
    start: Array,
    max_iter: int,
    rng: np.random.Generator,
    watch: Watch,
) -> Found:
    """Steps along scaled gradients of the risk on `size` rows at a time; all rows come by before one comes again."""
    point, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    history: list[Record] = []
    order, position = rng.permutation(n_rows), 0
    status, k = Status.ITERATION_LIMIT, 0
    try:
        while k < max_iter:
            share = watch.share(k / max_iter)
            if share >= 1.0:
                status = Status.TIME_LIMIT
                break
            if position + size > n_rows:
                order, position = rng.permutation(n_rows), 0
            there = risk_on(np.sort(order[position : position + size]))(point)
            position += size
            k += 1
            if not np.isfinite(there.value):
                point[-1] += np.log(RETREAT)
                continue
            slope = there.gradient() / max(there.value, 1e-300)
            mean = MOMENTUM * mean + (1.0 - MOMENTUM) * slope
            square = SCALE_MEMORY * square + (1.0 - SCALE_MEMORY) * slope**2
            step = STEP * min(1.0, 2.0 * (1.0 - share))
            scaled = (mean / (1.0 - MOMENTUM**k)) / (np.sqrt(square / (1.0 - SCALE_MEMORY**k)) + SMALL)
            point = point - step * scaled
            history.append(Record(k, there.value, -np.inf, watch.seconds))
            watch.tell(k / max_iter, f"step {k} of {max_iter}, risk {there.value:.6g}", point)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Found(point, status, k, history)
