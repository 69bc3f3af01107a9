"""Functions with a learned kernel on all rows: in cells of its geometry, by products with its matrix, on landmarks."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.cover import Assignment
from convexkernels.cells.covering import voronoi_cover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows, CellSelection
from convexkernels.cells.options import Cells
from convexkernels.cells.training import learn_cells, shared_learner, some_cells
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.criteria.ridge import residuals_at
from convexkernels.driver import stated
from convexkernels.estimators.hierarchical.all_rows import (
    CELL_SIZE,
    LANDMARK_LAMS,
    TIMED_ROWS,
    AllRows,
    Plan,
    TrainingTime,
)
from convexkernels.estimators.hierarchical.functions import FunctionOfManyRows, OffsetFunction
from convexkernels.exceptions import ConvexKernelsWarning, tell
from convexkernels.families.candidates import Candidates
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status
from convexkernels.solvers.convex.feature_scale import suited_scale
from convexkernels.solvers.nonconvex.stochastic import LARGEST_SAMPLE, Stochastic
from convexkernels.threads import threads_for

# Rows that centers are sought among: each center costs one look at all of them.
SUBSET = 20_000
# Overlap of the cells, and how many times as many rows as it predicts for a cell may learn from.
OVERLAP, LARGEST_CELL = 0.02, 2
# Candidates of the pair that all cells share, and the relative duality gap of each.
SELECTION, TOL = CellSelection(n_lams=4, n_widths=5), 1e-3
# Multiples of lam that are tried on landmarks, the least and the largest.
LANDMARK_RATIOS = (1.0 / 16.0, 16.0)
# Steps of the search on rows of one cell at a time, and the share of the time that they may take.
REFINEMENT, REFINEMENT_TIME = 60, 0.3
# Before all rows are trained on: rows of a cell at most, and steps on rows of one cell at a time.
PART_SIZE, PART_STEPS = LARGEST_SAMPLE, 300
# Share of the time that the choice of a kernel for all rows may take, refined and scaled.
SCALE_TIME = 0.25
# Rows that a function is trained on where an interrupt leaves no time for all: a moment's work.
ROWS_OF_A_MOMENT = 1500
# Of a cell with fewer rows there is nothing to draw from.
FEWEST_ROWS = 10


def train_in_cells(
    solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[OffsetFunction, DualityGap]:
    """The function in cells of the geometry of a learned kernel, and the worst certificate of a cell.

    The search goes on for some steps on rows of one cell at a time, which are as dense as those that cells learn from;
    what it finds is taken where the leave-one-out risk in some cells is better for it. One lam and one multiple of the
    features are selected for all cells on the way.
    """
    problem, size = solution.problem, plan.max_cell_size or CELL_SIZE
    table = CellRows(problem.X, problem.Y, problem.weights)
    cells = settings.cells or Cells(overlap=OVERLAP, subset=SUBSET)
    overlap = cells.overlap if cells.kind == "overlapping" else 0.0
    options: dict[str, Any] = {"overlap": overlap, "subset": cells.subset, "random_state": seed}
    cover = voronoi_cover(table.X, max_cell_size=size, kernel=problem.kernel(solution.theta), **options)
    assigned = cover.assigned(table.X)
    learner = _best_learner(solution, table, Assignment.from_labels(assigned[0], cover.n_cells), clock, seed)
    learner = replace(learner, max_rows=LARGEST_CELL * size)
    found = learn_cells(table, cover, learner, clock, seed=seed, n_jobs=settings.n_jobs, tol=TOL, assigned=assigned)
    return _of_cells(problem, found)


def train_at_once(solution: Solution, clock: Clock, seed: int) -> tuple[OffsetFunction, DualityGap]:
    """The function of a learned kernel on some rows, in a moment: what an interrupt leaves the time for."""
    problem = solution.problem
    table = CellRows(problem.X, problem.Y, problem.weights)
    cover = voronoi_cover(table.X[:1], n_cells=1)
    learner = _with_pair(replace(_learner(problem, solution.theta), max_rows=ROWS_OF_A_MOMENT))
    tell(f"INTERRUPTED: the function is trained on {min(ROWS_OF_A_MOMENT, len(table.X))} of {len(table.X)} rows.")
    return _of_cells(problem, learn_cells(table, cover, learner, Clock(None, clock.show), seed=seed, tol=TOL))


def _of_cells(problem: OuterLearning, found: Solution) -> tuple[OffsetFunction, DualityGap]:
    """The function of cells for the targets of a problem, and the worst certificate."""
    bounds: Any = problem.bounds
    if bounds is not None:
        bounds = tuple(bound[:, 0] + problem.offset for bound in bounds)
    certificate: Any = found.certificate
    return OffsetFunction(found.problem, problem.offset, bounds), certificate


def train_by_products(
    solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[FunctionOfManyRows, DualityGap]:
    """The function of a learned kernel on all rows, by conjugate gradients, and its certificate.

    The kernel was learned on some rows at a time, drawn from all. As in cells, the search goes on for some steps on
    rows that are near each other; the better kernel on held-out rows is taken, its features times what suits all rows.
    """
    problem = solution.problem
    y = (problem.Y + problem.offset[:, None]).T
    given: dict[str, Any] = {"sample_weight": problem.weights, "memory_limit": settings.memory_limit}
    fixed = FixedKernel.of(solution, problem.X, y, **given)
    if isinstance(problem.loss, LeastSquares) and problem.m > LARGEST_SAMPLE:
        part = clock.part(SCALE_TIME)

        def suited() -> dict[str, Any]:
            thetas, kernels = [np.asarray(solution.theta)], [fixed]
            if _can_be_refined(problem):
                thetas.append(_refined(solution, _dense_parts(solution, seed), part, seed, PART_STEPS))
                kernels.append(FixedKernel.of(replace(solution, theta=thetas[1]), problem.X, y, **given))
            which, scale, lam = suited_scale(kernels, part, seed)
            return {"theta": thetas[which], "scale": scale, "lam": lam}

        known = part.once(suited, "kernel for all rows", *stated(fixed), seed)
        fixed = FixedKernel.of(replace(solution, theta=known["theta"]), problem.X, y, **given)
        fixed = fixed.rescaled(float(known["scale"])).with_loss(fixed.loss.at(float(known["lam"])))
        if part.interrupted:
            raise KeyboardInterrupt
    options: dict[str, Any] = {"max_time": clock.left, "progress": clock.show, "checkpoint": clock.checkpoint}
    found = fixed.solve(tol=TOL, random_state=seed, **options)
    if found.status is Status.INTERRUPTED:
        clock.interrupt()
    certificate: Any = found.certificate
    return FunctionOfManyRows(found, found.function, fixed.offset, fixed.bounds), certificate


def train_on_landmarks(
    solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[FunctionOfManyRows, DualityGap]:
    """The function of what random rows see of a learned kernel, and the certificate of that problem.

    lam of least squares is that of the least leave-one-out risk with the features.
    """
    problem, said = solution.problem, solution.problem.stated_at(solution.theta)
    rows = np.random.default_rng(seed).permutation(problem.m)[: plan.n_landmarks]
    family = Candidates([solution.kernel], "none", landmarks=np.unique(problem.X[rows], axis=0))
    options: dict[str, Any] = {"sample_weight": problem.weights, "memory_limit": settings.memory_limit}
    seen = KernelLearning(family, said["loss"], problem.X, problem.Y.T, **options)
    if isinstance(seen.loss, LeastSquares):
        known = clock.once(lambda: {"lam": _best_lam(seen)}, "lam on landmarks", *stated(seen))
        seen = seen.with_loss(seen.loss.at(float(known["lam"])))
    found = seen.solve(tol=TOL, max_time=clock.left, progress=clock.show, checkpoint=clock.checkpoint)
    if found.status is Status.INTERRUPTED:
        clock.interrupt()
    certificate: Any = found.certificate
    function: DecisionFunction = found.function
    bounds = said["bounds"] and tuple(np.full((len(problem.Y), 1), end) for end in said["bounds"])
    function = replace(function, b=function.b + problem.offset, bounds=bounds)
    return FunctionOfManyRows(found, function, problem.offset, said["bounds"]), certificate


def _best_lam(problem: KernelLearning) -> float:
    """The multiple of lam of the least leave-one-out risk."""
    K, lams = problem.gram_set.matrix(np.ones(1)), problem.loss.lam * np.geomspace(*LANDMARK_RATIOS, LANDMARK_LAMS)
    risks = []
    for lam in lams.tolist():
        left = residuals_at(K, problem.Y, problem.weights, lam, None, intercept=problem.loss.intercept)
        risks.append(np.inf if left is None else float(np.square(left).sum(axis=0) @ problem.weights))
    return float(lams[int(np.argmin(risks))])


# How functions are trained on more rows than one matrix bears.
TRAINERS = {"cells": train_in_cells, "iterative": train_by_products, "landmarks": train_on_landmarks}


def _best_learner(solution: Solution, table: CellRows, cells: Assignment, clock: Clock, seed: int) -> KernelLearner:
    """What learns in the cells, with the kernel of a search or with one that was refined in cells."""
    problem, rows = solution.problem, some_cells(table, cells, seed, solution.kernel)
    best = shared_learner(_learner(problem, solution.theta), rows, clock, seed)
    if cells.n_cells > 1 and _can_be_refined(problem):
        refined = _refined(solution, cells, clock, seed, REFINEMENT)
        other = shared_learner(_learner(problem, refined), rows, clock, seed)
        clock.show.note(f"leave-one-out risk in cells {best.risk:.4g}, {other.risk:.4g} with the refined kernel")
        best = other if other.risk < best.risk else best
    return _with_pair(best)


def _with_pair(learner: KernelLearner) -> KernelLearner:
    """The learner with what was learned on some rows, where nothing was selected for its cells."""
    return learner if learner.pair or learner.lam is None else replace(learner, pair=(1.0, learner.lam))


def _can_be_refined(problem: OuterLearning) -> bool:
    """Whether a search can go on by risks of rows that are drawn from groups."""
    return isinstance(problem.criterion, LeaveOneOut) and problem.gram_set.draws_rows


def _dense_parts(solution: Solution, seed: int) -> Assignment:
    """Cells of all rows in the geometry of a kernel, none with more rows than a step of its search sees."""
    problem = solution.problem
    options: dict[str, Any] = {"max_cell_size": PART_SIZE, "kernel": solution.kernel, "random_state": seed}
    cover = voronoi_cover(problem.X, overlap=0.0, subset=SUBSET, **options)
    return Assignment.from_labels(cover.assigned(problem.X)[0], cover.n_cells)


def _refined(solution: Solution, cells: Assignment, clock: Clock, seed: int, steps: int) -> Array:
    """The point that the search comes to on rows of one cell at a time."""
    clock.show.note("the kernel is refined on rows of one cell at a time")
    groups = [cells.rows(j) for j in np.flatnonzero(cells.sizes > FEWEST_ROWS).tolist()]
    search = Stochastic(max_iter=steps, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)  # the limit of time is told by the whole
        left = clock.part(REFINEMENT_TIME).left
        found = solution.problem.solve(search, start=solution.theta, max_time=left, random_state=seed)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return np.asarray(found.theta)


def _learner(problem: OuterLearning, theta: Array) -> KernelLearner:
    z, log_lam = problem.split(theta)
    lam, kernel = float(problem.bind().lam(log_lam)), problem.gram_set.kernel(z)
    return KernelLearner(problem.loss, SELECTION, np.inf, TOL, kernel=kernel, lam=lam)


def training_time(problem: OuterLearning) -> TrainingTime:
    """How long the functions of a point take to be trained, by their time on `TIMED_ROWS` rows."""
    rows: Index = np.arange(0, problem.m, max(1, -(-problem.m // TIMED_ROWS)))
    part = problem.on_rows(rows)
    start, seconds = part.start(0), []
    point = part.gram_set.at(part.split(start)[0])
    assert point is not None
    if problem.family.device is not None:  # which takes seconds to begin with
        point.gram()
    with threads_for(part.m):
        for _ in range(2):  # the first time something may have to be compiled and loaded, or a computer be busy
            began = time.monotonic()
            point.gram()
            made = time.monotonic()
            part.train(start)
            seconds.append((made - began, time.monotonic() - made))
    matrix, whole = np.min(seconds, axis=0)
    return TrainingTime(float(matrix) / part.m**2, max(0.0, float(whole - matrix)) / part.m**3)
