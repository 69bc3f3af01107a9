"""What the estimators with one function per cell share: cover, cells, tables here and on a cluster."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.cells.choice import selection_of
from convexkernels.cells.cover import Assignment, Cover
from convexkernels.cells.distributed.function import DistributedFunction
from convexkernels.cells.distributed.learning import learn_distributed_cells
from convexkernels.cells.function import LocalizedFunction
from convexkernels.cells.kernel_learner import CellFunction, KernelLearner
from convexkernels.cells.learner import GLOBAL_SPLIT, CellLearner, CellRows, CellSelection
from convexkernels.cells.metric import LEARNED_WIDTH, SAMPLE, learned_metric
from convexkernels.cells.options import Cells
from convexkernels.cells.sampling import least, seeded
from convexkernels.cells.training import PairForAll, learn_cells, seconds_by_size, shared_learner, some_cells
from convexkernels.cells.wrapped import WrappedLearner
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection
from convexkernels.estimators.base import seed_from
from convexkernels.estimators.encoding import keys_of, problem_of
from convexkernels.estimators.in_parts import LARGEST_SAMPLE, LearnsInParts, TableInParts
from convexkernels.estimators.learned import RANK_ROWS
from convexkernels.estimators.left_out import LeftOut, left_out_of_cells, points_of_cells
from convexkernels.estimators.outliers import without_outliers
from convexkernels.estimators.relevance import effective_rank, spread_rows
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable, check_unit
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import InvalidInputError, MissingAttributeError
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.solution import Solution
from convexkernels.validation import check_number, check_vector


@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiEstimator(LearnsInParts):
    """Base of the estimators with one function per cell; subclasses name the loss."""

    max_cell_size: int | None = None
    cells: Cells | None = None
    kernel: Kernel | None = None
    selection: CellSelection | None = None
    tol: float = 1e-3
    estimator: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss, without intercept; lam is selected."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tol", self.tol, low=0.0, open_low=True)
        for name, kind in (("cells", Cells), ("selection", CellSelection)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInputError(f"{name} must be None or a {kind.__name__}(...), got {value!r}.")
        self._cells.check(self.max_cell_size)
        if self.estimator is not None and not (
            hasattr(self.estimator, "fit") and isinstance(self.estimator, BaseEstimator)
        ):
            raise InvalidInputError(f"estimator must be an estimator object or None, got {self.estimator!r}.")
        if not isinstance(self.kernel, Kernel | None):
            raise InvalidInputError(
                f"kernel must be a Kernel, such as the kernel_ of a fitted estimator, or None, got {self.kernel!r}."
            )
        if self._selection.factors is not None and not (self.kernel is None and self._cells.scale):
            raise InvalidInputError(
                "factors multiply scaled features; pass kernel=None and Cells(scale=True) with them."
            )
        if self.kernel is not None and self.cells is not None and self.cells.kind == "tree":
            raise InvalidInputError("cells of kind 'tree' have no kernel; pass cells=Cells('voronoi') or kernel=None.")
        self._kernel_learner().check()

    @property
    def _cells(self) -> Cells:
        return self.cells or Cells()

    @property
    def _selection(self) -> CellSelection:
        return self.selection or CellSelection()

    def _kernel_learner(self, width: float | None = None) -> KernelLearner:
        return KernelLearner(self._loss(), self._selection, tol=self._finer(self.tol), width=width, kernel=self.kernel)

    def _cell_learner(self, factors: Array | None) -> CellLearner:
        is_weighed = factors is not None or self._selection.factors is not None
        learner = self._kernel_learner(LEARNED_WIDTH if is_weighed else None)
        return learner if self.estimator is None else WrappedLearner(self.estimator, learner, is_classifier(self))

    def _factors(self, problem: CellRows, clock: Clock, seed: int) -> Array | None:
        """The metric of the cells and their kernels; estimators of others, and kernels, have their own."""
        own, chosen = self.kernel is not None or self.estimator is not None, self._selection
        if own or chosen.widths != "per-feature" or chosen.candidates is not None or chosen.factors is not None:
            return None
        rows = problem.training()
        rows = rows.part(least(keys_of(rows), SAMPLE))
        Y, unit = rows.Y, 1.0
        if self._loss().bears_outliers:
            few, Y, unit = without_outliers(rows.X, rows.Y, rows.weights)
            rows = rows.part(few)
        options: dict[str, Any] = {"tied": self._tied, "of_errors": self._asks_for_errors}
        factors, deviation = learned_metric(rows.X, Y, rows.weights, clock, seed, rows.keys, **options)
        self._expect(deviation, unit)
        return factors

    @property
    def _asks_for_errors(self) -> bool:
        """Whether `_expect` has something to decide."""
        return False

    def _expect(self, deviation: float, unit: float) -> None:
        """Heed the deviation of errors of least squares in the metric, in a unit, NaN where it is not known."""

    def _cover(
        self, problem: CellRows, learner: CellLearner, clock: Clock, seed: int, n_rows: int | None = None
    ) -> Cover:
        """The cover that the parameters ask for, of scaled points, or of `n_rows` that these are a sample of."""
        return self._cells.cover(
            problem.X,
            keys_of(problem),
            self.max_cell_size,
            seconds_of=lambda: seconds_by_size(problem, learner, np.random.default_rng(seed), clock.deadline),
            bytes_of=self._kernel_learner().bytes_of,
            seed=seed,
            n_rows=n_rows,
            kernel=self.kernel,
        )

    def _learner_of(self, factors: Array | None, total: float) -> CellLearner:
        """What learns in the cells of rows that weigh `total`."""
        learner = self._cell_learner(factors)
        return replace(learner, total=total) if isinstance(learner, KernelLearner) else learner

    @property
    def _shares_pair(self) -> bool:
        """Whether one pair of lam and width for all cells is selected on some of them."""
        shared = self._selection.shared
        return self.estimator is None and (self.kernel is not None if shared is None else bool(shared))

    # -- learning ----------------------------------------------------------------------------------

    def _check_parts(self) -> None:
        if self._selection.validation == GLOBAL_SPLIT:
            raise InvalidInputError("validation='global-split' is for tables in memory; pass 'split' for a Dask table.")

    def _n_drawn(self, n_columns: int) -> int:
        return max(self._cells.subset or LARGEST_SAMPLE, SAMPLE)

    def _learned_in_parts(self, parts: TableInParts, clock: Clock, seed: int) -> tuple[Solution, Scaling]:
        encoding, sample = parts.encoding, problem_of(parts.sample, parts.encoding.targets)
        factors = self._factors(sample, clock, seed)
        if factors is not None:
            encoding = replace(encoding, scaling=replace(encoding.scaling, factors=factors))
            sample = replace(sample, X=sample.X * factors)
        learner = self._learner_of(factors, parts.total)
        cover = self._cover(sample, learner, clock, seed, parts.n_rows)
        options: dict[str, Any] = {"seed": seed, "gather": bool(self._cells.gather), "tol": self._finer(self.tol)}
        options["choose"] = PairForAll() if self._shares_pair else None
        solution = learn_distributed_cells(parts.table, encoding, cover, learner, sample, clock, **options)
        return solution, encoding.scaling

    def _finish_parts(self) -> None:
        self._finish_cells()

    def _scaling_of(self, X: Array) -> Scaling:
        if not self._cells.scale or self.kernel is not None:
            return Scaling.none(X)
        scaling = Scaling.without_outliers(X, Scaling.to_symmetric_box)
        if self._selection.factors is None:
            return scaling
        factors = check_vector("factors", self._selection.factors, X.shape[1], per="feature", low=0.0)
        if (lost := np.flatnonzero((factors == 0.0) & (scaling.scale > 0.0))).size:
            raise InvalidInputError(f"factors must be > 0 for features that vary, but that of feature {lost[0]} is 0.")
        return replace(scaling, factors=factors[scaling.columns])

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> CellRows:
        check_unit(table.weights)
        return problem_of(table, targets)

    def _solve(self, problem: CellRows, clock: Clock) -> Solution:
        seed, factors, interrupted = self._kept_seed(seed_from(self.random_state)), None, False
        problem = replace(problem, keys=seeded(keys_of(problem), seed))
        if self._selection.validation == GLOBAL_SPLIT:
            problem = problem.divided(np.random.default_rng(seed))
        try:
            factors = self._factors(problem, clock, seed)
        except KeyboardInterrupt:
            interrupted = True
        self._learned_factors = factors
        problem = problem if factors is None else replace(problem, X=problem.X * factors)
        learner = self._learner_of(factors, float(problem.training().weights.sum()))
        cover = self._cover(problem, learner, clock, seed)
        if self._shares_pair and isinstance(learner, KernelLearner):
            answering = Assignment.from_labels(cover.cells(problem.X), cover.n_cells)
            learner = shared_learner(learner, some_cells(problem, answering, seed, self.kernel), clock, seed)
        options: dict[str, Any] = {"seed": seed, "n_jobs": self.n_jobs, "interrupted": interrupted}
        return learn_cells(problem, cover, learner, clock, tol=self._finer(self.tol), **options)

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        if (factors := self.__dict__.pop("_learned_factors")) is not None:
            self.scaling_ = replace(self.scaling_, factors=factors)
        self._finish_cells()

    def _coefficients(self, m: int) -> Array:
        function = self.function_
        assert isinstance(function, LocalizedFunction)
        return function.coefficients(m)

    @property
    def _is_least_squares(self) -> bool:
        return self.estimator is None and isinstance(self._loss(), LeastSquares)

    def _left_out(self, whole: bool = False) -> LeftOut:
        return left_out_of_cells(self.function_, whole)

    def _training_points(self) -> Array:
        return points_of_cells(self.function_)

    def _effective_rank(self) -> float:
        functions = getattr(self.function_, "functions", ())
        if hasattr(self, "kernel_") or not all(isinstance(f, CellFunction) for f in functions):
            return super()._effective_rank()
        cells = [f for f in functions if np.isfinite(f.width)]  # the others are constants
        ranks = [effective_rank(f.kernel(f.X[spread_rows(len(f.X), RANK_ROWS)])) for f in cells]
        return float(np.average(ranks, weights=[len(f.X) for f in cells])) if cells else 0.0

    def _finish_cells(self) -> None:
        self.n_iter_ = max(1, self.solution_.n_iter)
        self.cover_, self.n_cells_ = self.function_.cover, self.function_.cover.n_cells
        self.feature_factors_ = np.zeros(len(self.scaling_.scale))
        factors = self.scaling_.factors
        self.feature_factors_[self.scaling_.columns] = 1.0 if factors is None else factors

    @property
    def selection_(self) -> Selection | None:
        """What lam and the width were chosen from, in one cell, for all of them, or how often in each; None: given."""
        function = self.function_
        if self.estimator is None and isinstance(function, LocalizedFunction):
            return selection_of([cell.choice for cell in function.functions])
        why = "what cells chose is on a cluster; pass Cells(gather=True)"
        if self.estimator is not None:
            why = "its estimator chooses in every cell by itself; function_.functions have the model of each"
        raise MissingAttributeError(f"{type(self).__name__} has no selection_: {why}.")

    @property
    def function_(self) -> LocalizedFunction | DistributedFunction:
        """The function of all cells; setting it replaces one on a cluster by the same one here."""
        check_is_fitted(self)
        found: LocalizedFunction | DistributedFunction = self.solution_.problem
        return found

    @function_.setter
    def function_(self, function: LocalizedFunction | DistributedFunction) -> None:
        self.solution_ = replace(self.solution_, problem=function)

    @property
    def _n_values(self) -> int:
        return self.function_.n_outputs
