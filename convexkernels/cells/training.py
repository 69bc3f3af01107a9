"""Learning in all cells of a cover, and predicting in one pass."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from convexkernels.cells.cover import Assignment, Cover, VoronoiCover
from convexkernels.cells.machines import CellFunction, CellLearner, CellPredictor
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.localized import Localized
from convexkernels.progress import Silent, as_progress
from convexkernels.solution import Solution, Status

__all__ = [
    "Countdown",
    "LocalizedMachines",
    "conclude",
    "learn_cells",
    "report",
    "seconds_by_size",
    "verified",
    "worst",
]

# Of learners that prove nothing.
UNKNOWN = DualityGap(np.inf, -np.inf)

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LocalizedMachines:
    """The function of the cell that a point is in [MS16 (3)]; for random chunks the mean of all [ZDW15].

    Attributes
    ----------
    cover : Cover
    machines : list of CellPredictor
        One per cell.
    sizes : ndarray of int, shape (n_cells,)
        Rows that each cell learned from.
    n_machines : int
        Columns of the values.
    """

    cover: Cover
    machines: list[Any]
    sizes: Rows
    n_machines: int

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

    # -- what a `Solution` asks of its problem ---------------------------------------------------------

    decision_function = values

    def function(self, theta: Any, alpha: Any) -> Self:
        """The learned function."""
        return self

    def certificate(self, theta: Any, alpha: Any, witness: Any) -> DualityGap:
        """The worst certificate of all cells, computed again."""
        return worst([verified(machine) for machine, size in zip(self.machines, self.sizes, strict=True) if size])

    def kernel(self, theta: Any) -> Localized:
        """The kernel with which one SVM, at lam = 1, is those of all cells [MS16 (15)].

        Raises
        ------
        InvalidInputError
            For covers and learners that have none.
        """
        if type(self.cover) is not VoronoiCover or not all(isinstance(m, CellFunction) for m in self.machines):
            raise InvalidInputError(
                f"a localized kernel belongs to Voronoi cells with Gaussian kernels, got {self.cover!r} and "
                f"{type(self.machines[0]).__name__}; use cells=Cells('voronoi') and estimator=None."
            )
        # A constant has no kernel of its own; any will do.
        kernels = [Gaussian(m.width**-2 if np.isfinite(m.width) else 1.0) for m in self.machines]
        lams = [m.lam if np.isfinite(m.lam) else 1.0 for m in self.machines]
        return Localized(self.cover.centers, kernels, lams)


def verified(machine: Any) -> DualityGap:
    """The certificate of what a cell keeps, computed again; nothing is known of learners without one."""
    return machine.verify() if hasattr(machine, "verify") else UNKNOWN


def stored(machine: Any) -> DualityGap:
    """The certificate that a cell keeps."""
    found: DualityGap = getattr(machine, "certificate", UNKNOWN)
    return found


def worst(gaps: Sequence[DualityGap]) -> DualityGap:
    """The certificate of the largest relative gap, crossed bounds counting by their size."""
    return max(gaps, key=lambda gap: abs(gap.relative_gap))


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
    tol: float = np.inf,
) -> Solution:
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
    tol : float
        Relative duality gap that the learner promises for every cell.

    Returns
    -------
    Solution
        Its problem is a `LocalizedMachines`, its certificate the worst one of all cells, and `theta`, of shape
        (n_cells, 2), what lam and the width of each cell are.
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
    learned = LocalizedMachines(cover, machines, members.sizes, len(Y))
    return conclude(learned, [report(machine) for machine in machines], len(left), status, started, table, tol)


def report(machine: Any) -> tuple[DualityGap, float, float]:
    """Certificate, lam and width of a cell, NaN where it has none."""
    return stored(machine), getattr(machine, "lam", np.nan), getattr(machine, "width", np.nan)


def conclude(
    learned: Any,
    reports: Sequence[tuple[DualityGap, float, float]],
    n_left: int,
    status: Status,
    started: float,
    shown: Silent,
    tol: float,
) -> Solution:
    """State what was learned, and warn where a limit came first or a cell does not keep what is promised.

    Parameters
    ----------
    learned : LocalizedMachines or DistributedMachines
    reports : sequence of (certificate, lam, width)
        One per cell.
    n_left : int
        Cells that answer with a constant because a limit came first.
    status : Status
        OPTIMAL where no limit came.
    started : float
        By the monotonic clock.
    shown : progress object
    tol : float
    """
    # Where there are no rows, there is nothing to be proven.
    certificate = worst([gap for (gap, _, _), size in zip(reports, learned.sizes, strict=True) if size])
    n_cells = len(reports)
    if n_left or status is Status.INTERRUPTED:
        warnings.warn(
            f"{n_left} of {n_cells} cells answer with a constant ({status.name}); raise max_time, or use smaller "
            "cells.",
            ConvexKernelsWarning,
            stacklevel=5,
        )
    elif not np.isfinite(certificate.relative_gap):
        status = Status.UNPROVEN
    else:
        status = Status.OPTIMAL if certificate.holds(tol) else Status.STALLED
    if status is Status.STALLED:
        warnings.warn(
            f"the worst of {n_cells} cells has the relative gap {certificate.relative_gap:.1e}, above tol={tol:g}, or "
            "bounds that cross; raise tol.",
            ConvexKernelsWarning,
            stacklevel=5,
        )
    seconds, done = time.monotonic() - started, n_cells - n_left
    shown.note(f"{status.name.lower()}: {done} cells learned in {seconds:.2f} s")
    theta = np.array([[lam, width] for _, lam, width in reports])
    return Solution(learned, theta, certificate, status, done, seconds, (), "cells")


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
        self.table, self.started, self.last = table, started, -np.inf
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
