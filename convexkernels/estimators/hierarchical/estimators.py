"""Estimators that learn a hierarchical Gaussian kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.cells.learner import is_constant
from convexkernels.cells.metric import learned_widths
from convexkernels.clock import Clock
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.hierarchical.base import HierarchicalEstimator
from convexkernels.estimators.hierarchical.functions import PairwiseFunction
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.estimators.intervals import as_fitted
from convexkernels.estimators.learned import Tube, level_of
from convexkernels.estimators.left_out import LeftOut, left_out_of_kernel, left_out_of_pairs
from convexkernels.estimators.outliers import without_outliers
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, NumberTargets
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EPSILON, EpsilonInsensitive, epsilon_for
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.logistic import Logistic
from convexkernels.losses.pinball import Pinball
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HierarchicalGaussianClassifier(HierarchicalEstimator, KernelClassifier):
    """Least-squares, support vector or logistic classification with a deep kernel whose weights are learned.

    Features are scaled to [-1, 1]; the weights and lam minimize the risk of functions on rows they have not seen
    [ST16 (10)]; the final function is trained on all rows [ST16 (9)]. Several classes share one kernel, whose weights
    are searched for by the mean risk of one class against the rest.

    Parameters
    ----------
    loss : {"least_squares", "hinge", "logistic"} or Loss
        Of the labels -1 and 1. The names stand for losses without intercept, as in the paper.
    multi_class : {"one-vs-all", "all-vs-all"}
        Functions of more than two classes: each against all others, or every pair (the clipped values of a class in its
        pairs are added up).
    selection : TreeSelection, optional
        Folds of the choice between architectures, and how their functions are combined. Small tables are searched on
        five folds, whose mean predicts beside functions of simple kernels.
    {parameters}

    {Attributes: classes, tree_learned}
    {Notes: tree_cost}

    Examples
    --------
    >>> from convexkernels import HierarchicalGaussianClassifier, TreeSearch
    >>> from convexkernels.datasets import make_two_moons
    >>> X, y = make_two_moons(200, n_noise_features=4, random_state=0)
    >>> model = HierarchicalGaussianClassifier(4, search=TreeSearch(max_iter=30), random_state=0).fit(X, y)
    >>> bool(model.feature_relevance_[:2].sum() > 0.8)  # the other four say nothing
    True
    """

    multi_class: str = "one-vs-all"

    _labels: ClassVar[bool] = True
    _losses: ClassVar[dict[str, Loss]] = {
        "least_squares": LeastSquares(intercept=False),
        "hinge": Hinge(intercept=False),
        "logistic": Logistic(intercept=False),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multi_class not in ("one-vs-all", "all-vs-all"):
            raise InvalidInputError(f"multi_class must be 'one-vs-all' or 'all-vs-all', got {self.multi_class!r}.")

    def _targets_of_summary(self, summary: TableSummary) -> ClassTargets:
        return ClassTargets.of_classes(summary.targets, summary.totals, self.class_weight)

    @property
    def _learns_from_points(self) -> bool:
        return self.multi_class == "one-vs-all" and super()._learns_from_points

    def _votes(self, problem: OuterLearning) -> bool:
        return self.multi_class == "all-vs-all" and len(problem.Y) > 1

    def _function(self, task: TreeTask, solution: Solution, clock: Clock) -> Any:
        votes = self._votes(solution.problem)
        return PairwiseFunction.of(task, solution, clock) if votes else super()._function(task, solution, clock)

    def _left_out_of(self, solution: Solution, whole: bool) -> LeftOut:
        of_votes = self._votes(solution.problem)
        return left_out_of_pairs(solution, whole) if of_votes else left_out_of_kernel(solution, whole)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HierarchicalGaussianRegressor(Tube, HierarchicalEstimator, KernelRegressor):
    """Kernel ridge, support vector or quantile regression with a deep kernel whose weights are learned.

    Features and targets are scaled to [-1, 1]; the weights and lam minimize the risk of functions on rows they have not
    seen [ST16 (10)]; the final function is trained on all rows [ST16 (9)], or, by least squares of few rows, is
    that of folds beside simple ones (`TreeSelection`). Several outputs share one kernel.

    Parameters
    ----------
    loss : {"least_squares", "epsilon_insensitive", "pinball"} or Loss
        Of targets on [-1, 1]. The names stand for losses without intercept, as in the paper: the median, of which
        ``Pinball(quantile=0.9, intercept=False)`` is another quantile, and deviations that cost nothing up to a quarter
        of the deviation of errors of least squares with Gaussian kernels at rows left out (`epsilon_`). Of
        ``EpsilonInsensitive(epsilon=0.05, intercept=False)``, in units of half the range of y (without outliers),
        epsilon is kept.
    selection : TreeSelection, optional
        Folds of the choice between architectures, and how their functions are combined.
    {parameters}

    {Attributes: tube, tree_learned}
    {Notes: tree_cost}

    Examples
    --------
    >>> from convexkernels import HierarchicalGaussianRegressor, TreeSearch
    >>> from convexkernels.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = HierarchicalGaussianRegressor(4, search=TreeSearch(max_iter=30), random_state=0).fit(X, y)
    >>> bool(model.feature_relevance_[:5].sum() > 0.8)  # the other five say nothing
    True
    """

    _losses: ClassVar[dict[str, Loss]] = {
        "least_squares": LeastSquares(intercept=False),
        "epsilon_insensitive": EpsilonInsensitive(epsilon=EPSILON, intercept=False),
        "pinball": Pinball(intercept=False),
    }

    def _suited_loss(self, task: TreeTask, clock: Clock, seed: int) -> Loss:
        Y = task.loss.targets(task.y, len(task.y))
        if self.loss != "epsilon_insensitive" or is_constant(Y) or not np.ptp(task.X, axis=0).any():
            return task.loss
        rows, Y, unit = without_outliers(task.X, Y, task.weights)
        part, bounds = task.part(rows), (-1.0, 1.0) if len(Y) == 1 else None
        found = learned_widths(Gaussian(0.5), part.X, Y, part.weights, clock, seed, bounds, part.keys)
        return EpsilonInsensitive(epsilon=epsilon_for(found.deviation, unit), intercept=False).at(task.loss.lam)

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.by_range(table.y, self._usual(table), clip=False)  # the functions themselves are clipped

    def _levelled(self, residuals: Array, rows: Index) -> Array:
        # A width for each column (for all that a category became) was fitted to the rows, unless to those of folds.
        if self._combination.in_folds:
            return residuals
        problem = self.solution_.problem
        tied = sum(len(columns) - 1 for columns in problem.family.tied)
        return as_fitted(residuals, max(len(residuals), self._m), problem.X.shape[1] - tied)

    @property
    def _level(self) -> float | None:
        return level_of(self._loss())

    def _targets_of_summary(self, summary: TableSummary) -> NumberTargets:
        return NumberTargets.by_range(summary.targets, clip=False)
