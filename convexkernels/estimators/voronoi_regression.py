"""Regression with one function per cell of a partition, for tables that are too long for one.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from dataclasses import dataclass

from convexkernels.cells.machines import CellLearner, GaussianLearner
from convexkernels.cells.summary import TableSummary
from convexkernels.estimators.base import KernelRegressor
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import NumberTargets
from convexkernels.estimators.voronoi_base import VoronoiEstimator
from convexkernels.estimators.voronoi_learners import RegressorLearner
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.pinball import Pinball

__all__ = ["VoronoiQuantile", "VoronoiRidge", "VoronoiSVR"]


@dataclass(eq=False, repr=False, kw_only=True)
class _VoronoiRegressor(KernelRegressor, VoronoiEstimator):
    """Numbers as targets, one column or several."""

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        return RegressorLearner(self.estimator, gaussian)

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.by_range(table.y)

    def _targets_of_summary(self, summary: TableSummary) -> NumberTargets:
        return NumberTargets.by_range(summary.targets)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiRidge(_VoronoiRegressor):
    """Kernel ridge regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    {cell_tol}
    {parameters}

    Attributes
    ----------
    {cell_fitted}

    Notes
    -----
    {cell_numbers} {cell_tables}

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
    epsilon : float, >= 0
        Deviation that costs nothing, in units of half the range of the targets.
    {cell_tol}
    {parameters}

    Attributes
    ----------
    {cell_fitted}

    Notes
    -----
    {cell_numbers} {cell_tables}

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

    epsilon: float = 0.05

    def _loss(self) -> EpsilonInsensitive:
        return EpsilonInsensitive(epsilon=self.epsilon, intercept=False)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiQuantile(_VoronoiRegressor):
    """Quantile regression (pinball loss) in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    quantile : float, strictly between 0 and 1
    {cell_tol}
    {parameters}

    Attributes
    ----------
    {cell_fitted}

    Notes
    -----
    {cell_numbers} {cell_tables}

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
