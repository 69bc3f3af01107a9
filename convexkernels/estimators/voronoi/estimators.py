"""Estimators with one function per cell of a partition, for tables that are too long for one.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from dataclasses import dataclass

from convexkernels.arrays import Array
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.cells.learner import CellRows
from convexkernels.clock import Clock
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, NumberTargets
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.estimators.voronoi.base import VoronoiEstimator
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EPSILON, EpsilonInsensitive, epsilon_for
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.pinball import Pinball


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiSVC(VoronoiEstimator, KernelClassifier):
    """Classification in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    loss : {"least_squares", "hinge"}
        Least squares on targets -1 and 1, which is several times as fast and as accurate; or SVMs.
    {cell_tol}
    {parameters}

    {Attributes: classes, cell_fitted}

    Notes
    -----
    With more than two classes there is one function per class in each cell, against the rest, and all functions of a
    cell share lam and the width. Functions have no intercept; with two classes, values are clipped to [-1, 1]. A cell
    of one class, or with one point, answers with that class; with nothing to validate on, the most regular pair of
    the grid is taken. {cell_tables}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import VoronoiSVC
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 'same', 'other')
    >>> model = VoronoiSVC(max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss: str = "least_squares"

    def _check_parameters(self) -> None:
        if self.loss not in ("least_squares", "hinge"):
            raise InvalidInputError(f"loss must be 'least_squares' or 'hinge', got {self.loss!r}.")
        super()._check_parameters()

    def _loss(self) -> Loss:
        return Hinge(intercept=False) if self.loss == "hinge" else LeastSquares(intercept=False)

    def _targets_of_summary(self, summary: TableSummary) -> ClassTargets:
        return ClassTargets.of_classes(summary.targets, summary.totals, self.class_weight)


@dataclass(eq=False, repr=False, kw_only=True)
class _VoronoiRegressor(VoronoiEstimator, KernelRegressor):
    """Numbers as targets, one column or several."""

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.by_range(table.y)

    def _targets_of_summary(self, summary: TableSummary) -> NumberTargets:
        return NumberTargets.by_range(summary.targets)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiRidge(_VoronoiRegressor):
    """Kernel ridge regression in the cells of a partition, each with its own regularization and width.

    {Parameters: cell_tol, parameters}
    {Attributes: cell_fitted}
    {Notes: cell_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import VoronoiRidge
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.sin(3 * X[:, 0]) + np.abs(X[:, 1])
    >>> model = VoronoiRidge(max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def _loss(self) -> LeastSquares:
        return LeastSquares(intercept=False)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiSVR(_VoronoiRegressor):
    """Support vector regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    epsilon : float, >= 0, or None
        Deviation that costs nothing, in units of half the range of the targets. None: a quarter of the root mean
        squared error of least squares at rows left out, 0.001 at least, where the widths of features are learned first;
        else 0.05.
    {cell_tol}
    {parameters}

    {Attributes: insensitivity, cell_fitted}
    {Notes: cell_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import CellSelection, VoronoiSVR
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.sin(3 * X[:, 0]) + np.abs(X[:, 1])
    >>> selection = CellSelection(n_lams=4, n_widths=4)
    >>> model = VoronoiSVR(selection=selection, max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    epsilon: float | None = None

    def _loss(self) -> EpsilonInsensitive:
        chosen = getattr(self, "epsilon_", EPSILON) if self.epsilon is None else self.epsilon
        return EpsilonInsensitive(epsilon=chosen, intercept=False)

    def _factors(self, problem: CellRows, clock: Clock, seed: int) -> Array | None:
        self.epsilon_ = EPSILON if self.epsilon is None else float(self.epsilon)
        return super()._factors(problem, clock, seed)

    def _expect(self, risk: float) -> None:
        if self.epsilon is None:
            self.epsilon_ = epsilon_for(risk)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiQuantile(_VoronoiRegressor):
    """Quantile regression (pinball loss) in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    quantile : float, strictly between 0 and 1
    {cell_tol}
    {parameters}

    {Attributes: cell_fitted}
    {Notes: cell_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import CellSelection, VoronoiQuantile
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = X[:, 0] * np.random.default_rng(1).uniform(size=400)
    >>> selection = CellSelection(n_lams=4, n_widths=4)
    >>> model = VoronoiQuantile(quantile=0.9, selection=selection, max_cell_size=100, random_state=0).fit(X, y)
    >>> bool(0.8 < np.mean(y <= model.predict(X)) < 1.0)
    True
    """

    quantile: float = 0.5

    def _loss(self) -> Pinball:
        return Pinball(quantile=self.quantile, intercept=False)
