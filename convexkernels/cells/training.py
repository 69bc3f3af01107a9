"""Learning in all cells of a cover, and predicting in one pass."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from convexkernels.cells.cover import Assignment, Cover
from convexkernels.cells.machines import CellLearner, CellPredictor
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.progress import Silent, as_progress
from convexkernels.solution import Status

__all__ = ["Countdown", "LocalizedMachines", "conclude", "learn_cells", "seconds_by_size"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LocalizedMachines:
    """The function of the cell that a point is in [MS16 (3)].

    Attributes
    ----------
    cover : Cover
    machines : list of CellPredictor
        One per cell.
    sizes : ndarray of int, shape (n_cells,)
        Rows that each cell learned from.
    n_machines : int
        Columns of the values.
    status : Status
        Whether a limit came before all cells had learned.
    seconds : float
    """

    cover: Cover
    machines: list[Any]
    sizes: Rows
    n_machines: int
    status: Status
    seconds: float

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_machines): one pass, grouped by cell."""
        if self.cover.average:
            return np.mean([machine.values(X) for machine in self.machines], axis=0)
        groups = Assignment.from_labels(self.cover.cells(X), self.cover.n_cells)
        F = np.empty((len(X), self.n_machines))
        for j in np.flatnonzero(groups.sizes).tolist():
            rows = groups.rows(j)
            F[rows] = self.machines[j].values(X[rows])
        return F


def learn_cells(
    X: Array,
    Y: Array,
    weights: Array,
    cover: Cover,
    learner: CellLearner,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    max_time: float | None = None,
    progress: bool | Silent = False,
) -> LocalizedMachines:
    """Learn in every cell, the largest first.

    Parameters
    ----------
    X : ndarray of shape (m, n_features)
    Y : ndarray of shape (n_machines, m)
    weights : ndarray of shape (m,), > 0
    cover : Cover
    learner : CellLearner
    seed : int
        Every cell draws from a stream of its own, so that the answer does not depend on `n_jobs`.
    n_jobs : int, optional
        Processes, as joblib counts them.
    max_time : float, optional
        Seconds after which no further cell is begun. Cells without a machine answer with a constant: the best one
        for their points, or for all points when they have none. The same holds after a keyboard interrupt.
    progress : bool or progress object

    Returns
    -------
    LocalizedMachines
    """
    started = time.monotonic()
    members = cover.members(X)
    table = as_progress(progress)
    table.note(f"{cover!r}: {members.sizes.min()} to {members.sizes.max()} of {len(X)} rows per cell")
    order = np.argsort(-members.sizes, kind="stable")
    order = order[members.sizes[order] > 0]
    streams = np.random.SeedSequence(seed).spawn(members.n_cells)
    answering = cover.cells(X) if cover.overlaps else None
    work = ((int(j), members.rows(j), streams[j]) for j in order)
    machines: list[Any] = [None] * members.n_cells
    status = Status.OPTIMAL
    countdown = Countdown(table, members.sizes, started)
    try:
        for j, machine in _results(X, Y, weights, answering, learner, work, n_jobs):
            machines[j] = machine
            countdown.learned(j)
            if max_time is not None and time.monotonic() - started > max_time:
                status = Status.TIME_LIMIT
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    left = [int(j) for j in order if machines[j] is None]
    for j in range(members.n_cells):
        if machines[j] is None:
            rows = members.rows(j) if members.sizes[j] else np.arange(len(X))
            machines[j] = learner.constant(Y[:, rows], weights[rows])
    status, seconds = conclude(len(left), members.n_cells, status, started, table)
    return LocalizedMachines(cover, machines, members.sizes, len(Y), status, seconds)


def conclude(n_left: int, n_cells: int, status: Status, started: float, shown: Silent) -> tuple[Status, float]:
    """Say how the learning ended, and warn of the cells that answer with a constant because a limit came first.

    Returns
    -------
    status : Status
        OPTIMAL where no cell is left.
    seconds : float
        Since `started`, by the monotonic clock.
    """
    if n_left:
        warnings.warn(
            f"{n_left} of {n_cells} cells answer with a constant ({status.name}); raise max_time, or use smaller "
            "cells.",
            ConvexKernelsWarning,
            stacklevel=5,
        )
    else:
        status = Status.OPTIMAL
    seconds = time.monotonic() - started
    shown.note(f"{status.name.lower()}: {n_cells - n_left} cells learned in {seconds:.2f} s")
    return status, seconds


def _learn_one(
    learner: CellLearner, j: int, X: Array, Y: Array, weights: Array, stream: np.random.SeedSequence, own: Any
) -> tuple[int, CellPredictor]:
    return j, learner.learn(X, Y, weights, np.random.default_rng(stream), own)


def _results(
    X: Array,
    Y: Array,
    weights: Array,
    answering: Rows | None,
    learner: CellLearner,
    work: Iterator[Any],
    n_jobs: int | None,
) -> Iterator[tuple[int, CellPredictor]]:
    """Learn cell after cell, or a few times as many as there are processes at once."""
    jobs = effective_n_jobs(n_jobs)
    tasks = (
        (
            learner,
            j,
            X[rows],
            np.ascontiguousarray(Y[:, rows]),
            weights[rows],
            stream,
            None if answering is None else answering[rows] == j,
        )
        for j, rows, stream in work
    )
    if jobs == 1:
        for task in tasks:
            yield _learn_one(*task)
        return
    # In batches: an interrupted generator of joblib would leave its processes at work.
    with Parallel(n_jobs=n_jobs) as pool:
        while batch := [task for _, task in zip(range(4 * jobs), tasks, strict=False)]:
            yield from pool(delayed(_learn_one)(*task) for task in batch)


class Countdown:
    """A line a second: cells learned, and the seconds that the rest will take at the rate so far."""

    def __init__(self, table: Silent, sizes: Rows, started: float) -> None:
        self.table, self.started, self.last = table, started, started
        # Where nothing is known, costs grow like the square of the size.
        self.cost = sizes.astype(np.float64) ** 2
        self.count, self.done = 0, 0.0

    def learned(self, j: int) -> None:
        self.count += 1
        self.done += self.cost[j]
        now = time.monotonic()
        if now - self.last >= 1.0:
            self.last = now
            rest = (now - self.started) * (self.cost.sum() / max(self.done, 1.0) - 1.0)
            self.table.note(f"{self.count:>6d} / {len(self.cost)} cells {now - self.started:>8.1f}s, {rest:.1f}s to go")


def seconds_by_size(
    X: Array, Y: Array, weights: Array, learner: CellLearner, rng: np.random.Generator
) -> Callable[[int], float]:
    """How long a cell takes by its number of points: a power of it, from two cells that are learned for it."""
    sizes = sorted({min(len(X), size) for size in (200, 600)})
    seconds = []
    for size in [min(len(X), 20), *sizes]:  # the first one compiles and loads
        rows = rng.choice(len(X), size, replace=False)
        began = time.perf_counter()
        learner.learn(X[rows], np.ascontiguousarray(Y[:, rows]), weights[rows], rng)
        seconds.append(time.perf_counter() - began)
    power = 2.0
    if len(sizes) == 2 and seconds[1] > 0.0:
        power = float(np.clip(np.log(seconds[2] / seconds[1]) / np.log(sizes[1] / sizes[0]), 1.0, 3.0))
    last, size = max(seconds[-1], 1e-6), sizes[-1]
    return lambda m: last * (m / size) ** power
