"""Regression with one machine per cell of a partition, for tables that are too long for one machine.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from convexkernels.cells.machines import CellLearner, GaussianLearner
from convexkernels.cells.summary import TableSummary
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.targets import NumberTargets
from convexkernels.estimators.voronoi_base import VoronoiEstimator
from convexkernels.estimators.voronoi_learners import RegressorLearner
from convexkernels.validation import check_labels_finite

__all__ = ["VoronoiRegressor", "VoronoiRidge"]


class VoronoiRegressor(RegressorMixin, VoronoiEstimator):
    """Numbers as targets."""

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        return RegressorLearner(self.estimator, gaussian)

    def _checked_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        return check_labels_finite(y, len(y))

    def _targets_of(self, summary: TableSummary) -> NumberTargets:
        return NumberTargets.by_range(summary.targets)

    def predict(self, X: Any) -> Any:
        """Predicted numbers, within the range of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy Dask array
        """
        check_is_fitted(self)
        return self._answer(X, self.targets_.decoded)


@documented
class VoronoiRidge(VoronoiRegressor):
    """Kernel ridge regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    {cells}
    {cell_selection}
    {cell_learning}

    Attributes
    ----------
    {cell_fitted}
    {cell_range}

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

    _loss_name = "least_squares"

    def __init__(
        self,
        *,
        scale: bool = True,
        radius: float | None = None,
        max_cell_size: int | None = None,
        time_budget: float | None = None,
        memory_budget: float | None = None,
        partition: str = "voronoi",
        overlap: float = 0.1,
        subset: int | None = 50_000,
        validation: Any = "leave-one-out",
        n_lams: int = 10,
        n_widths: int = 10,
        rank: int = 300,
        tol: float = 1e-3,
        estimator: Any = None,
        gather: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.scale = scale
        self.radius = radius
        self.max_cell_size = max_cell_size
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.partition = partition
        self.overlap = overlap
        self.subset = subset
        self.validation = validation
        self.n_lams = n_lams
        self.n_widths = n_widths
        self.rank = rank
        self.tol = tol
        self.estimator = estimator
        self.gather = gather
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
