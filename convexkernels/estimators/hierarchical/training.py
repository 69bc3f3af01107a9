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
from convexkernels.cells.stand_in import sparing
from convexkernels.cells.training import learn_cells, shared_learner, some_cells
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.criteria.ridge import residuals_at
from convexkernels.driver import stated
from convexkernels.estimators.hierarchical.all_rows import (
    CELL_SIZE,
    LANDMARK_LAMS,
    MATRICES,
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
# Rows that a function is trained on where there is no time for all: a moment's work.
ROWS_OF_A_MOMENT = 1500
# Of a cell with fewer rows there is nothing to draw from.
FEWEST_ROWS = 10


def train_in_cells(
    solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[OffsetFunction, Plan]:
    """The function in cells of the geometry of a learned kernel, and the plan with the worst certificate of a cell.

    Where there is time the search goes on for some steps on rows of one cell at a time, which are as dense as those
    that cells learn from; what it finds is taken where the leave-one-out risk in some cells is better for it. One lam
    and one multiple of the features are selected for all cells on the way. In cells for which no time is left the
    function of some rows answers, with the kernel and the lam of the search.
    """
    problem, size = solution.problem, plan.max_cell_size or CELL_SIZE
    table = CellRows(problem.X, problem.Y, problem.weights)
    cells = settings.cells or Cells(overlap=OVERLAP, subset=SUBSET)
    overlap = cells.overlap if cells.kind == "overlapping" else 0.0
    options: dict[str, Any] = {"overlap": overlap, "subset": cells.subset, "random_state": seed}
    cover = voronoi_cover(table.X, max_cell_size=size, kernel=problem.kernel(solution.theta), **options)
    assigned = cover.assigned(table.X)
    inside, refines = Assignment.from_labels(assigned[0], cover.n_cells), plan.has_time(clock)
    learner = replace(_best_learner(solution, table, inside, clock, seed, refines), max_rows=LARGEST_CELL * size)
    options = {"seed": seed, "n_jobs": settings.n_jobs, "tol": TOL, "assigned": assigned}
    stand_in = _with_pair(_learner(problem, solution.theta))
    found = learn_cells(table, cover, learner, clock, stand_in=stand_in, **options)
    return _of_cells(problem, found), _with_gap(plan, found)


def train_at_once(
    solution: Solution, plan: Plan, clock: Clock, seed: int, status: Status
) -> tuple[OffsetFunction, Plan]:
    """The function of a learned kernel on some rows, in a moment, and what was done in the place of a plan.

    It is what an interrupt leaves the time for, or a limit that came before all rows were trained on.
    """
    problem = solution.problem
    table = CellRows(problem.X, problem.Y, problem.weights)
    cover = voronoi_cover(table.X[:1], n_cells=1)
    learner = _with_pair(replace(_learner(problem, solution.theta), max_rows=ROWS_OF_A_MOMENT))
    n_rows, m = min(ROWS_OF_A_MOMENT, problem.m), problem.m
    tell(f"{status.name}: the function is trained on {n_rows} of {m} rows.")
    own = Clock(None, clock.show)
    found = learn_cells(table, cover, learner, own, seed=seed, tol=TOL)
    why = f"{n_rows} of {m} rows, {status.name} came before the {plan.method} training on all"
    done = Plan("dense", n_rows, 8.0 * MATRICES * n_rows**2, own.seconds, why, status=status)
    return _of_cells(problem, found), _with_gap(done, found)


def _with_gap(plan: Plan, found: Solution) -> Plan:
    """A plan that was done, with the certificate of what came of it."""
    certificate: Any = found.certificate
    return replace(plan, certificate=certificate)


def _of_cells(problem: OuterLearning, found: Solution) -> OffsetFunction:
    """The function of cells for the targets of a problem."""
    bounds: Any = problem.bounds
    if bounds is not None:
        bounds = tuple(bound[:, 0] + problem.offset for bound in bounds)
    return OffsetFunction(found.problem, problem.offset, bounds)


def train_by_products(
    solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[FunctionOfManyRows, Plan] | None:
    """The function of a learned kernel on all rows, by conjugate gradients, and the plan with its certificate.

    The kernel was learned on some rows at a time, drawn from all. As in cells, the search goes on for some steps on
    rows that are near each other, where there is time; the better kernel on held-out rows is taken, its features times
    what suits all rows. None where the time has left zeros.
    """
    problem = solution.problem
    y = (problem.Y + problem.offset[:, None]).T
    given: dict[str, Any] = {"sample_weight": problem.weights, "memory_limit": settings.memory_limit}
    fixed = FixedKernel.of(solution, problem.X, y, **given)
    if isinstance(problem.loss, LeastSquares) and problem.m > LARGEST_SAMPLE and plan.has_time(clock):
        part = clock.sparing(plan.seconds - plan.choice_seconds)

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
    found = _solved(fixed, clock, random_state=seed)
    if found is None:
        return None
    function = FunctionOfManyRows(found, found.function, fixed.offset, fixed.bounds)
    return function, _with_gap(plan, found)


def _solved(problem: FixedKernel | KernelLearning, clock: Clock, **options: Any) -> Solution | None:
    """The solution, with what it warns of; None where all coefficients are 0 because the time was over."""
    options |= {"max_time": sparing(clock).left, "progress": clock.show, "checkpoint": clock.checkpoint}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvexKernelsWarning)
        found = problem.solve(tol=TOL, **options)
    if found.status is Status.INTERRUPTED:
        clock.interrupt()
    certificate: Any = found.certificate
    function: DecisionFunction = found.function
    if not function.support.size and not certificate.holds(TOL):
        return None
    for warning in said:
        category: Any = warning.category
        tell(str(warning.message), category)
    return found


def train_on_landmarks(
    solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[FunctionOfManyRows, Plan] | None:
    """The function of what random rows see of a learned kernel, and the plan with the certificate of that problem.

    lam of least squares is that of the least leave-one-out risk with the features. None where the time has left zeros.
    """
    problem, said = solution.problem, solution.problem.stated_at(solution.theta)
    rows = np.random.default_rng(seed).permutation(problem.m)[: plan.n_landmarks]
    family = Candidates([solution.kernel], "none", landmarks=np.unique(problem.X[rows], axis=0))
    options: dict[str, Any] = {"sample_weight": problem.weights, "memory_limit": settings.memory_limit}
    seen = KernelLearning(family, said["loss"], problem.X, problem.Y.T, **options)
    known: dict[str, Any] = {}
    if isinstance(seen.loss, LeastSquares):
        known = clock.once(lambda: lams_and_risks(seen), "lam on landmarks", *stated(seen))
        seen = seen.with_loss(seen.loss.at(float(known["lams"][np.argmin(known["risks"])])))
    found = _solved(seen, clock)
    if found is None:
        return None
    found = replace(found, trace=found.trace | known)
    function: DecisionFunction = found.function
    bounds = said["bounds"] and tuple(np.full((len(problem.Y), 1), end) for end in said["bounds"])
    function = replace(function, b=function.b + problem.offset, bounds=bounds)
    whole = FunctionOfManyRows(found, function, problem.offset, said["bounds"])
    return whole, _with_gap(plan, found)


def lams_and_risks(problem: KernelLearning) -> dict[str, Any]:
    """Multiples of lam, and the leave-one-out risk for each."""
    K, lams = problem.gram_set.matrix(np.ones(1)), problem.loss.lam * np.geomspace(*LANDMARK_RATIOS, LANDMARK_LAMS)
    risks = []
    for lam in lams.tolist():
        left = residuals_at(K, problem.Y, problem.weights, lam, None, intercept=problem.loss.intercept)
        risks.append(np.inf if left is None else float(np.square(left).mean(axis=0) @ problem.weights))
    return {"lams": lams, "risks": np.array(risks) / problem.weights.sum()}


# How functions are trained on more rows than one matrix bears.
TRAINERS = {"cells": train_in_cells, "iterative": train_by_products, "landmarks": train_on_landmarks}


def _best_learner(
    solution: Solution, table: CellRows, cells: Assignment, clock: Clock, seed: int, refines: bool
) -> KernelLearner:
    """What learns in the cells, with the kernel of a search or, where it `refines`, with one that was in cells."""
    problem, rows = solution.problem, some_cells(table, cells, seed, solution.kernel)
    best = shared_learner(_learner(problem, solution.theta), rows, clock, seed)
    if refines and cells.n_cells > 1 and _can_be_refined(problem):
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
