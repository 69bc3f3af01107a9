"""Classification with one machine per cell of a partition, for tables that are too long for one machine.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from convexkernels.cells.machines import CellLearner, GaussianLearner
from convexkernels.cells.summary import TableSummary
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.targets import ClassTargets, check_labels
from convexkernels.estimators.voronoi_base import VoronoiEstimator
from convexkernels.estimators.voronoi_learners import ClassifierLearner
from convexkernels.exceptions import InvalidInputError

__all__ = ["VoronoiSVC"]


@documented
class VoronoiSVC(ClassifierMixin, VoronoiEstimator):
    """Classification in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    loss : {"hinge", "least_squares"}
        Support vector machines; or least squares on targets -1 and 1, which is much faster and often as good.
    class_weight : dict, "balanced" or None
        Weights that multiply the loss of the rows of a class; "balanced" gives all classes of the table the same
        total. Classes of weight 0 are as good as absent.
    {cells}
    {cell_selection}
    {cell_learning}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {cell_fitted}

    Notes
    -----
    With more than two classes there is one machine per class in each cell, against the rest, and all machines of a
    cell share lam and the width. Machines have no intercept; with two classes, values are clipped to [-1, 1]. A cell
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

    def __init__(
        self,
        *,
        loss: str = "hinge",
        class_weight: Any = None,
        scale: bool = True,
        radius: float | None = None,
        max_cell_size: int | None = None,
        time_budget: float | None = None,
        memory_budget: float | None = None,
        partition: str = "voronoi",
        overlap: float = 0.1,
        subset: int | None = 50_000,
        validation: Any = 5,
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
        self.loss = loss
        self.class_weight = class_weight
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

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        return ClassifierLearner(self.estimator, gaussian)

    def _check_parameters(self) -> None:
        if self.loss not in ("hinge", "least_squares"):
            raise InvalidInputError(f"loss must be 'hinge' or 'least_squares', got {self.loss!r}.")
        super()._check_parameters()

    def _checked_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        check_labels(y)
        return y

    def _targets_of(self, summary: TableSummary) -> ClassTargets:
        return ClassTargets.of_classes(summary.targets, summary.totals, self.class_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in ascending order, shape (n_classes,)."""
        targets: Any = self.targets_
        return np.asarray(targets.classes)

    def decision_function(self, X: Any) -> Any:
        """Values of the machines.

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

    def predict(self, X: Any) -> Any:
        """Class labels of the rows of `X`, shape (n_samples,); lazy for Dask tables."""
        check_is_fitted(self)
        return self._answer(X, self.targets_.decoded)
