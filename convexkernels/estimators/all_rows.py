"""How functions with a learned kernel are trained on all rows: with one matrix, without it, or in cells."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from convexkernels.arrays import Array
from convexkernels.cells.cover import Assignment
from convexkernels.cells.covering import voronoi_cover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows, CellSelection
from convexkernels.cells.options import Cells
from convexkernels.cells.training import learn_cells, shared_learner, some_cells
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.estimators.left_out import LeftOut, left_out_of_cells
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError, tell
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status
from convexkernels.solvers.nonconvex.stochastic import Stochastic
from convexkernels.validation import available_memory, check_memory, check_number, check_whole_number

METHODS = ("auto", "dense", "iterative", "cells")
# Rows up to which one matrix is factorized, or met by products with it.
DENSE_ROWS, ITERATIVE_ROWS = 10_000, 50_000
# Square matrices of float64 that are alive while functions are trained.
MATRICES = 3
# Share of the memory that cells at work may take, beside the table and what is kept of them, and matrices of one.
CELL_SHARE, CELL_MATRICES = 0.25, 4
# Rows that centers are sought among: each center costs one look at all of them.
SUBSET = 20_000
# Overlap of the cells, most rows that a cell answers for, and how many times as many it may learn from.
OVERLAP, CELL_SIZE, LARGEST_CELL = 0.02, 4000, 2
# Candidates of the pair that all cells share, and the relative duality gap of each.
SELECTION, TOL = CellSelection(n_lams=4, n_widths=5), 1e-3
# Steps of the search on rows of one cell at a time, and the share of the time that they may take.
REFINEMENT, REFINEMENT_TIME = 60, 0.3
# Rows that a function is trained on where an interrupt leaves no time for all: a moment's work.
ROWS_OF_A_MOMENT = 1500
# Of a cell with fewer rows there is nothing to draw from.
FEWEST_ROWS = 10
# Rows that the time of a training is measured on.
TIMED_ROWS = 500
REMEDY = "Pass multi_class='one-vs-all' and AllRows(), which learns in cells, or a sample of the rows."


@dataclass(frozen=True)
class AllRows:
    """How the functions are trained on all rows, once the kernel is learned.

    Parameters
    ----------
    method : {"auto", "dense", "iterative", "cells"}
        One kernel matrix, factorized; products with it, preconditioned (least squares only); or cells in the geometry
        of the kernel, each with a matrix of its own. "auto" takes the first that rows, memory and time allow: the
        matrix up to 10,000 rows, products up to 50,000.
    memory_limit : float, > 0, optional
        Bytes that the training may take; the free memory when it begins, if not given.
    max_cell_size : int, >= 2, optional
        Rows that a cell answers for, at most; 4,000, or fewer where memory asks for it.
    cells : Cells, optional
        Kind and overlap of the cells; overlapping by 0.02 when not given.
    n_jobs : int, optional
        Processes that share the cells, as joblib counts them.
    """

    method: str = "auto"
    memory_limit: float | None = None
    max_cell_size: int | None = None
    cells: Cells | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidInputError(f"method must be one of {METHODS}, got {self.method!r}.")
        if self.memory_limit is not None:
            check_number("memory_limit", self.memory_limit, low=0.0, open_low=True)
        if self.max_cell_size is not None:
            check_whole_number("max_cell_size", self.max_cell_size, low=2)
        if not isinstance(self.cells, Cells | None):
            raise InvalidInputError(f"cells must be None or Cells(...), got {self.cells!r}.")
        if self.cells is not None:
            self._check_cells(self.cells)

    def _check_cells(self, cells: Cells) -> None:
        cells.check(self.max_cell_size)
        others = cells.radius, cells.time_budget, cells.memory_budget
        if cells.kind not in ("overlapping", "voronoi") or any(value is not None for value in others):
            raise InvalidInputError(
                f"cells must be 'overlapping' or 'voronoi', of a max_cell_size, got {cells!r}; for others see "
                "VoronoiRidge and VoronoiSVC with the kernel_ that was learned."
            )

    def plan(self, problem: OuterLearning, time_left: float | None, one_takes: float, votes: bool) -> Plan:
        """What suits a problem, within memory and time.

        Parameters
        ----------
        problem : OuterLearning
        time_left : float or None
            Seconds; None for no limit.
        one_takes : float
            Seconds for a matrix of `TIMED_ROWS` rows, about.
        votes : bool
            Whether every pair of classes has a function, which needs one matrix.

        Raises
        ------
        MemoryLimitError
            Where one matrix is asked for and does not fit.
        """
        m, allowed = problem.m, available_memory() if self.memory_limit is None else float(self.memory_limit)
        dense = Plan("dense", m, 8.0 * MATRICES * m * m, one_takes * (m / TIMED_ROWS) ** 3, "as asked for")
        if votes or self.method == "dense":
            check_memory(dense.bytes, allowed, what=f"a kernel matrix of {m} rows", remedy=REMEDY)
            return replace(dense, why="every pair of classes has a function") if votes else dense
        size = self._size(m, allowed)
        in_cells = one_takes * (1.5 * size / TIMED_ROWS) ** 3 * m / size
        cells = Plan("cells", m, CELL_MATRICES * 8.0 * size**2 + 8.0 * problem.X.size, in_cells, "as asked for", size)
        if self.method != "auto":
            return cells if self.method == "cells" else self._iterative(problem)
        if cells.seconds > 0.5 * dense.seconds:  # of few cells nothing is gained
            time_left = None
        why = dense.refusal(DENSE_ROWS, allowed, time_left)
        if not why:
            return replace(dense, why=f"{m} rows, not more than {DENSE_ROWS}")
        if isinstance(problem.loss, LeastSquares) and m <= ITERATIVE_ROWS:
            iterative = self._iterative(problem)
            refused = iterative.refusal(ITERATIVE_ROWS, allowed, time_left)
            if not refused:
                return replace(iterative, why=why)
            why = f"{why}; {refused}"
        return replace(cells, why=why)

    def _iterative(self, problem: OuterLearning) -> Plan:
        """Products with the matrix of any kernel of the family; half of its lower triangle at least is held."""
        loss, points = problem.loss, (problem.X, problem.Y.T)
        forecast = FixedKernel(
            problem.kernel(problem.start(0)), loss, *points, memory_limit=self.memory_limit
        ).forecast()
        needed = max(forecast.bytes, float(problem.m) ** 2)
        return Plan("iterative", problem.m, needed, forecast.seconds, "as asked for")

    def _size(self, m: int, allowed: float) -> int:
        """Rows that a cell answers for, at most."""
        if self.max_cell_size is not None:
            return self.max_cell_size
        jobs = effective_n_jobs(self.n_jobs)
        fits = np.sqrt(CELL_SHARE * allowed / (jobs * CELL_MATRICES * 8.0))
        return int(max(2, min(m, CELL_SIZE, fits / 1.5)))


@dataclass(frozen=True, eq=False)
class Plan:
    """How the functions were trained on all rows, and why.

    Attributes
    ----------
    method : {"dense", "iterative", "cells"}
        One kernel matrix, factorized; products with it; or cells in the geometry of the learned kernel.
    n_rows : int
        Rows that were learned from, equal ones counting once.
    bytes, seconds : float
        What that takes, as it was estimated.
    why : str
    max_cell_size : int or None
        Rows that a cell answers for, at most.
    certificate : DualityGap or None
        The worst one of all cells, once they are trained; of one matrix the equations are solved.
    """

    method: str
    n_rows: int
    bytes: float
    seconds: float
    why: str
    max_cell_size: int | None = None
    certificate: DualityGap | None = None

    def refusal(self, most_rows: int, allowed: float, time_left: float | None) -> str:
        """Why it cannot be done with so many bytes and seconds; empty where it can."""
        if self.bytes > allowed:
            needs = f"needs {self.bytes / 2**30:.3g} GiB, of which there are {allowed / 2**30:.3g}"
            return f"{self.method} training on {self.n_rows} rows {needs}"
        if time_left is not None and self.seconds > time_left:
            takes = f"takes about {self.seconds:.0f} s, of which {time_left:.0f} are left"
            return f"{self.method} training on {self.n_rows} rows {takes}"
        return f"{self.n_rows} rows, more than {most_rows}" if self.n_rows > most_rows else ""

    def __repr__(self) -> str:
        size = "" if self.max_cell_size is None else f" of at most {self.max_cell_size} rows"
        gap = "" if self.certificate is None else f"; relative gap {self.certificate.relative_gap:.1e} at most"
        return f"Plan({self.method}{size}: {self.why}; about {self.bytes / 2**30:.2g} GiB, {self.seconds:.0f} s{gap})"


@dataclass(frozen=True, eq=False)
class OffsetFunction:
    """Functions in cells that learned deviations from an offset.

    Attributes
    ----------
    localized : LocalizedFunction
    offset : ndarray of shape (n_outputs,)
    bounds : pair of ndarray of shape (n_outputs,), optional
        Values are clipped to it.
    """

    localized: Any
    offset: Array
    bounds: tuple[Array, Array] | None

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return self._of_deviations(self.localized.values(X))

    def left_out(self) -> LeftOut:
        """Values at rows of some cells by functions that have not seen the row."""
        left = left_out_of_cells(self.localized)
        return LeftOut(self._of_deviations(left.F.T).T, left.Y + self.offset[:, None], left.weights)

    def _of_deviations(self, F: Array) -> Array:
        F = F + self.offset
        return F if self.bounds is None else np.clip(F, *self.bounds)


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
    solution: Solution, settings: AllRows, clock: Clock, seed: int
) -> tuple[DecisionFunction, DualityGap]:
    """The function of a learned kernel on all rows, by conjugate gradients, and its certificate."""
    problem = solution.problem
    y = (problem.Y + problem.offset[:, None]).T
    fixed = FixedKernel.of(solution, problem.X, y, sample_weight=problem.weights, memory_limit=settings.memory_limit)
    found = fixed.solve(tol=TOL, max_time=clock.left, progress=clock.show, random_state=seed)
    if found.status is Status.INTERRUPTED:
        clock.interrupt()
    certificate: Any = found.certificate
    return found.function, certificate


def _best_learner(solution: Solution, table: CellRows, cells: Assignment, clock: Clock, seed: int) -> KernelLearner:
    """What learns in the cells, with the kernel of a search or with one that was refined in cells."""
    problem, rows = solution.problem, some_cells(table, cells, seed, solution.kernel)
    best = shared_learner(_learner(problem, solution.theta), rows, clock, seed)
    if cells.n_cells > 1 and isinstance(problem.criterion, LeaveOneOut) and problem.gram_set.draws_rows:
        refined = _refined(solution, cells, clock, seed)
        other = shared_learner(_learner(problem, refined), rows, clock, seed)
        clock.show.note(f"leave-one-out risk in cells {best.risk:.4g}, {other.risk:.4g} with the refined kernel")
        best = other if other.risk < best.risk else best
    return _with_pair(best)


def _with_pair(learner: KernelLearner) -> KernelLearner:
    """The learner with what was learned on some rows, where nothing was selected for its cells."""
    return learner if learner.pair or learner.lam is None else replace(learner, pair=(1.0, learner.lam))


def _refined(solution: Solution, cells: Assignment, clock: Clock, seed: int) -> Array:
    """The point that the search comes to on rows of one cell at a time."""
    clock.show.note("the kernel is refined on rows of one cell at a time")
    groups = [cells.rows(j) for j in np.flatnonzero(cells.sizes > FEWEST_ROWS).tolist()]
    search = Stochastic(max_iter=REFINEMENT, groups=groups)
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
