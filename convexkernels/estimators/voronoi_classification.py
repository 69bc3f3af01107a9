"""Estimators with one machine per cell of a partition, for tables that are too long for one machine.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from convexkernels.estimators.base import TrainingTable
from convexkernels.estimators.voronoi_base import ClassifierLearner, VoronoiEstimator, to_symmetric_box
from convexkernels.exceptions import InvalidInputError
from convexkernels.partition.machines import CellLearner, GaussianLearner

__all__ = ["VoronoiSVC"]

Array = NDArray[np.float64]


class VoronoiSVC(ClassifierMixin, VoronoiEstimator):
    """Classification in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    loss : {"hinge", "least_squares"}
        Support vector machines; or least squares on targets -1 and 1, which is much faster and often as good.
    radius : float, > 0, optional
        Of the balls that the cells lie in, on scaled features.
    max_cell_size : int, >= 2, optional
        Most training points of a cell; 2000 when neither a radius nor a budget is given.
    time_budget, memory_budget : float, > 0, optional
        Seconds that the learning may take (estimated from small cells), bytes that one cell may take: the largest
        cells are used that keep both.
    partition : {"voronoi", "tree", "overlapping", "random"}
        Voronoi cells; cells divided again and again; Voronoi cells that also learn from near points of their
        neighbours; random chunks of the table, whose machines are averaged (the baseline).
    overlap : float, >= 0
        For "overlapping": a point teaches the cells whose centres are at most ``1 + overlap`` times as far as the
        nearest one.
    subset : int, optional
        Centres are sought among so many random points.
    validation : int >= 2, "split", or "leave-one-out"
        How lam and the width of each cell are selected: folds, or training on one half and validation on the other
        (TV-VP-SVM), or every point left out in turn, which has a closed form for least squares.
    n_lams, n_widths : int, >= 1
        Size of the grid, geometric in ``[0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]`` for a cell that trains on
        m points.
    rank : int, >= 1
        Rank of the factors of Gram matrices that the selection for least squares starts with. In larger cells the
        best pair and its neighbours are measured again with exact ones. The final machines are exact.
    tol : float, > 0
        Relative duality gap of final machines that are solved by iteration.
    estimator : estimator object, optional
        A clone of it learns in each cell, on scaled features, instead of a Gaussian machine; it takes
        ``sample_weight`` where there are weights or repeated rows.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Processes that share the cells. With 1, the linear algebra may use all cores.
    max_time : float, > 0, optional
        Seconds after which no further cell is begun; the others answer with a constant, and a warning says so.
    verbose : bool
        Show how many cells are learned and how long the rest will take.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    cover_ : Cover
    n_cells_ : int
    machines_ : LocalizedMachines
        With the machine of each cell: its lam, width, coefficients and held-out risks.
    kernel_ : Kernel
        For Voronoi cells, the kernel with which one machine at price 1 is the machines of all cells.
    scaling_ : Scaling
        How features are scaled: to [-1, 1].
    n_features_in_ : int

    Notes
    -----
    With more than two classes there is one machine per class in each cell, against the rest, and all machines of a
    cell share lam and the width. Machines have no intercept; with two classes, values are clipped to [-1, 1]. A cell
    of one class, or with one point, answers with that class; with nothing to validate on, the most regular pair of
    the grid is taken. Equal rows are merged into one with the sum of their weights. Cost: O(m) for cells of bounded
    size, besides finding the centres, O(m) each.

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
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        return ClassifierLearner(self.estimator, gaussian)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Divide the table, and learn in every cell.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers of magnitude at most 1e150.
        y : array-like of shape (n_samples,)
            Class labels, numbers or text; at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 that multiply the loss; rows of weight 0 are as good as absent.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts.
        """
        if self.loss not in ("hinge", "least_squares"):
            raise InvalidInputError(f"loss must be 'hinge' or 'least_squares', got {self.loss!r}.")
        self._check_parameters()
        learner = self._cell_learner()
        table = self._training_table(X, y, sample_weight)
        try:
            check_classification_targets(table.y)
        except ValueError as error:
            raise InvalidInputError(f"y must hold class labels: {error}") from error
        classes, codes = np.unique(table.y, return_inverse=True)
        if len(classes) < 2:
            raise InvalidInputError(
                f"y holds one class only ({classes.tolist()[0]!r}, in all {len(codes)} rows of positive weight) where "
                "two or more classes are needed; check how the rows were selected."
            )
        scaling = to_symmetric_box(table.X)
        merged = TrainingTable(scaling.apply(table.X), codes, table.weights, table.rows).merged()
        positive = np.arange(1, 2) if len(classes) == 2 else np.arange(len(classes))
        Y = np.where(merged.y == positive[:, None], 1.0, -1.0)
        self._learn_cells(merged.X, Y, merged.weights, learner)
        self.classes_, self.scaling_ = classes, scaling
        return self

    def decision_function(self, X: Any) -> Array:
        """Values of the machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,)."""
        values = self.decision_function(X)
        codes = (values > 0.0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[codes]
