"""Classification with one function per cell of a partition, for tables that are too long for one.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from convexkernels.cells.machines import CellLearner, GaussianLearner
from convexkernels.cells.summary import TableSummary
from convexkernels.estimators.base import KernelClassifier
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.targets import ClassTargets
from convexkernels.estimators.voronoi_base import VoronoiEstimator
from convexkernels.estimators.voronoi_learners import ClassifierLearner
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares

__all__ = ["VoronoiSVC"]


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiSVC(KernelClassifier, VoronoiEstimator):
    """Classification in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    loss : {"hinge", "least_squares"}
        Support vector machines; or least squares on targets -1 and 1, which is much faster and often as good.
    {cell_tol}
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {cell_fitted}

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
    >>> model = VoronoiSVC(loss="least_squares", max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss: str = "hinge"

    def _check_parameters(self) -> None:
        if self.loss not in ("hinge", "least_squares"):
            raise InvalidInputError(f"loss must be 'hinge' or 'least_squares', got {self.loss!r}.")
        super()._check_parameters()

    def _loss(self) -> Loss:
        return Hinge(intercept=False) if self.loss == "hinge" else LeastSquares(intercept=False)

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        return ClassifierLearner(self.estimator, gaussian)

    def _targets_of_summary(self, summary: TableSummary) -> ClassTargets:
        return ClassTargets.of_classes(summary.targets, summary.totals, self.class_weight)

    def decision_function(self, X: Any) -> Any:
        """Evaluate the learned functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), or a lazy Dask array
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins.
        """
        check_is_fitted(self)
        return self._answer(X, self.targets_.decisions)
