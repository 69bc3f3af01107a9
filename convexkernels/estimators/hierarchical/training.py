"""Functions with a learned kernel on all rows: in cells of its geometry, by products with its matrix, on landmarks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.cells.cover import Assignment
from convexkernels.cells.covering import voronoi_cover
from convexkernels.cells.distributed.cluster import threads_and_memory
from convexkernels.cells.distributed.learning import learn_distributed_cells
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows, CellSelection
from convexkernels.cells.options import Cells
from convexkernels.cells.training import learn_cells, shared_learner, some_cells, whole_cells
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.criteria.ridge import residuals_at
from convexkernels.driver import stated
from convexkernels.estimators.hierarchical.all_rows import (
    CELL_SIZE,
    LANDMARK_LAMS,
    MATRICES,
    OWN_ROWS,
    TABLES,
    TIMED_ROWS,
    AllRows,
    Plan,
    TrainingTime,
)
from convexkernels.estimators.hierarchical.functions import FunctionOfManyRows, OffsetFunction
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.estimators.in_time import solved_in_time
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
# What several cells have together, and along which axis.
JOINED = (("X", 0), ("Y", 1), ("weights", 0))


def train_in_cells(
    task: TreeTask, solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[OffsetFunction, Plan] | None:
    """The function in cells of the geometry of a learned kernel, and the plan with the worst certificate of a cell.

    Where there is time the search goes on for some steps on rows of one cell at a time, which are as dense as those
    that cells learn from; what it finds is taken where the leave-one-out risk in some cells is better for it. One lam
    and one multiple of the features are selected for all cells on the way. In cells for which no time is left the
    function of some rows answers, with the kernel and the lam of the search.

    Cells of a Dask table are tasks; the problem has some of its rows. There constants answer where no time is left, and
    None is returned where that is everywhere.
    """
    problem, size = solution.problem, plan.max_cell_size or CELL_SIZE
    table, parts = CellRows(problem.X, problem.Y, problem.weights, keys=task.keys), task.in_parts
    first = replace(_learner(problem, solution.theta), max_rows=LARGEST_CELL * size)
    cover = (settings.cells or Cells(overlap=OVERLAP, subset=SUBSET)).cover(
        table.X,
        task.keys,
        size,
        seconds_of=lambda: float,
        bytes_of=first.bytes_of,
        seed=seed,
        n_rows=None if parts is None else parts.n_rows,
        kernel=first.kernel,
    )
    refines = plan.has_time(clock) and cover.n_cells > 1 and _can_be_refined(problem)
    if refines and parts is not None:  # the rows of all these cells come to one worker
        bytes_of_rows = 8.0 * REFINEMENT * OWN_ROWS * size * (problem.X.shape[1] + len(problem.Y) + 1)
        refines = TABLES * bytes_of_rows <= settings.memory(threads_and_memory()[1])[1]
    choose = KernelForAll(problem.on_rows(np.arange(1)), solution.theta, REFINEMENT if refines else 0)
    options: dict[str, Any] = {"seed": seed, "tol": TOL}
    if parts is not None:
        encoding = replace(parts.encoding, offset=problem.offset)
        found = learn_distributed_cells(parts.table, encoding, cover, first, table, clock, choose=choose, **options)
        return (_of_cells(problem, found), _with_gap(plan, found)) if found.n_iter else None
    assigned = cover.assigned(table.X)
    inside = Assignment.from_labels(assigned[0], cover.n_cells)
    near, whole = some_cells(table, inside, seed, first.kernel), whole_cells(table, inside, choose.n_whole)
    learner = choose(first, near, whole, clock, seed)
    options |= {"n_jobs": settings.n_jobs, "assigned": assigned, "stand_in": _with_pair(first)}
    found = learn_cells(table, cover, learner, clock, **options)
    return _of_cells(problem, found), _with_gap(plan, found)


def train_at_once(
    task: TreeTask, solution: Solution, plan: Plan, clock: Clock, seed: int, status: Status
) -> tuple[OffsetFunction, Plan]:
    """The function of a learned kernel on some rows, in a moment, and what was done in the place of a plan.

    It is what an interrupt leaves the time for, or a limit that came before all rows were trained on.
    """
    problem = solution.problem
    table = CellRows(problem.X, problem.Y, problem.weights)
    cover = voronoi_cover(table.X[:1], n_cells=1)
    learner = _with_pair(replace(_learner(problem, solution.theta), max_rows=ROWS_OF_A_MOMENT))
    n_rows, m = min(ROWS_OF_A_MOMENT, problem.m), problem.m if task.in_parts is None else task.in_parts.n_rows
    tell(f"{status.name}: the function is trained on {n_rows} of {m} rows.")
    own = Clock(None, clock.show)
    found = learn_cells(table, cover, learner, own, seed=seed, tol=TOL)
    why = f"{n_rows} of {m} rows, {status.name} came before the {plan.method} training on all"
    done = Plan("dense", n_rows, 8.0 * MATRICES * n_rows**2, own.seconds, why, status=status)
    return _of_cells(problem, found), _with_gap(done, found)


def _with_gap(plan: Plan, found: Solution) -> Plan:
    """A plan that was done, with the certificate of what came of it."""
    certificate: Any = found.certificate
    some: str = getattr(found.problem, "of_some_rows", "")  # of cells, where these are here
    if some:
        plan = replace(plan, why=f"{plan.why}; {some}")
    if some or (found.solver == "cells" and found.status is Status.TIME_LIMIT):
        plan = replace(plan, status=plan.status or Status.TIME_LIMIT)
    return replace(plan, certificate=certificate)


def _of_cells(problem: OuterLearning, found: Solution) -> OffsetFunction:
    """The function of cells for the targets of a problem."""
    bounds: Any = problem.bounds
    if bounds is not None:
        bounds = tuple(bound[:, 0] + problem.offset for bound in bounds)
    return OffsetFunction(found.problem, problem.offset, bounds)


def train_by_products(
    task: TreeTask, solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
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
                parts = _dense_parts(solution, seed)
                groups = [parts.rows(j) for j in range(parts.n_cells)]
                thetas.append(_refined(problem, solution.theta, groups, part, seed, PART_STEPS))
                kernels.append(FixedKernel.of(replace(solution, theta=thetas[1]), problem.X, y, **given))
            which, scale, lam = suited_scale(kernels, part, seed)
            return {"theta": thetas[which], "scale": scale, "lam": lam}

        known = part.once(suited, "kernel for all rows", *stated(fixed), seed)
        fixed = FixedKernel.of(replace(solution, theta=known["theta"]), problem.X, y, **given)
        fixed = fixed.rescaled(float(known["scale"])).with_loss(fixed.loss.at(float(known["lam"])))
        if part.interrupted:
            raise KeyboardInterrupt
    found = solved_in_time(fixed, clock, tol=TOL, random_state=seed)
    if found is None:
        return None
    function = FunctionOfManyRows(found, found.function, fixed.offset, fixed.bounds)
    return function, _with_gap(plan, found)


def train_on_landmarks(
    task: TreeTask, solution: Solution, plan: Plan, settings: AllRows, clock: Clock, seed: int
) -> tuple[FunctionOfManyRows, Plan] | None:
    """The function of what random rows see of a learned kernel, and the plan with the certificate of that problem.

    lam of least squares is that of the least leave-one-out risk with the features. None where the time has left zeros.
    """
    problem, said = solution.problem, solution.problem.stated_at(solution.theta)
    rows = np.random.default_rng(seed).permutation(problem.m)[: plan.n_landmarks]
    family = Candidates([solution.kernel], "none", landmarks=distinct_rows(problem.X[rows])[0])
    options: dict[str, Any] = {"sample_weight": problem.weights, "memory_limit": settings.memory_limit}
    seen = KernelLearning(family, said["loss"], problem.X, problem.Y.T, **options)
    known: dict[str, Any] = {}
    if isinstance(seen.loss, LeastSquares):
        known = clock.once(lambda: lams_and_risks(seen), "lam on landmarks", *stated(seen))
        seen = seen.with_loss(seen.loss.at(float(known["lams"][np.argmin(known["risks"])])))
    found = solved_in_time(seen, clock, tol=TOL)
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


@dataclass(frozen=True, eq=False)
class KernelForAll:
    """What learns in all cells: the kernel of a search, or what it becomes in so many steps on rows of some cells.

    The problem is that of the search, of whatever rows.
    """

    problem: OuterLearning
    theta: Array
    steps: int

    @property
    def n_whole(self) -> int:
        """As many cells as steps: each looks at one."""
        return self.steps

    def __call__(
        self, learner: KernelLearner, near: Sequence[CellRows], whole: Sequence[CellRows], clock: Clock, seed: int
    ) -> KernelLearner:
        """The learner with the better kernel, lam and multiple of the features in the cells whose rows are `near`."""
        best = shared_learner(learner, near, clock, seed)
        if self.steps:
            ends = np.cumsum([0, *(len(rows.X) for rows in whole)])
            X, Y, weights = (np.concatenate([getattr(rows, name) for rows in whole], axis) for name, axis in JOINED)
            problem, groups = self.problem.of_rows(X, Y, weights), [*map(np.arange, ends[:-1], ends[1:])]
            refined = _refined(problem, self.theta, groups, clock, seed, self.steps)
            other = shared_learner(replace(learner, **_learned_by(problem, refined)), near, clock, seed)
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


def _refined(
    problem: OuterLearning, theta: Array, cells: Sequence[Index], clock: Clock, seed: int, steps: int
) -> Array:
    """The point that the search comes to on rows of one cell at a time."""
    clock.show.note("the kernel is refined on rows of one cell at a time")
    search = Stochastic(max_iter=steps, groups=[rows for rows in cells if len(rows) > FEWEST_ROWS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)  # the limit of time is told by the whole
        left = clock.part(REFINEMENT_TIME).left
        found = problem.solve(search, start=theta, max_time=left, random_state=seed)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if found.status is Status.TIME_LIMIT:
        clock.cut("the refinement of the kernel")
    return np.asarray(found.theta)


def _learner(problem: OuterLearning, theta: Array) -> KernelLearner:
    return KernelLearner(problem.loss, SELECTION, np.inf, TOL, **_learned_by(problem, theta))


def _learned_by(problem: OuterLearning, theta: Array) -> dict[str, Any]:
    """Kernel and lam of a point."""
    z, log_lam = problem.split(theta)
    return {"kernel": problem.gram_set.kernel(z), "lam": float(problem.bind().lam(log_lam))}


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
