"""Estimators with one machine per cell of a partition, for tables that are too long for one machine.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from convexkernels.estimators.base import TrainingTable
from convexkernels.estimators.voronoi_base import RegressorLearner, VoronoiEstimator, to_symmetric_box
from convexkernels.partition.machines import CellLearner, GaussianLearner
from convexkernels.validation import check_labels_finite

__all__ = ["VoronoiQuantile", "VoronoiRegressor", "VoronoiRidge", "VoronoiSVR"]

Array = NDArray[np.float64]


class VoronoiRegressor(RegressorMixin, VoronoiEstimator):
    """Numbers as targets."""

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        return RegressorLearner(self.estimator, gaussian)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Divide the table, and learn in every cell.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers of magnitude at most 1e150.
        y : array-like of shape (n_samples,)
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
        self._check_parameters()
        learner = self._cell_learner()
        table = self._training_table(X, y, sample_weight)
        targets = check_labels_finite(table.y, len(table.X))
        scaling = to_symmetric_box(table.X)
        low, high = float(targets.min()), float(targets.max())
        centre, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        scaled = np.clip((targets - centre) / half, -1.0, 1.0) if half > 0.0 else np.zeros_like(targets)
        merged = TrainingTable(scaling.apply(table.X), scaled, table.weights, table.rows).merged()
        self._learn_cells(merged.X, merged.y[None, :], merged.weights, learner)
        self.scaling_, self.centre_, self.half_range_ = scaling, centre, half
        return self

    def predict(self, X: Any) -> Array:
        """Predicted numbers for the rows of `X`, shape (n_samples,), within the range of the targets."""
        values = self._values(X)[:, 0]
        return self.centre_ + self.half_range_ * values


class VoronoiRidge(VoronoiRegressor):
    """Kernel ridge regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
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
        A clone of it learns in each cell, on scaled features and targets, instead of a Gaussian machine; it takes
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
    cover_ : Cover
    n_cells_ : int
    machines_ : LocalizedMachines
        With the machine of each cell: its lam, width, coefficients and held-out risks.
    kernel_ : Kernel
        For Voronoi cells, the kernel with which one machine at price 1 is the machines of all cells.
    scaling_ : Scaling
        How features are scaled: to [-1, 1].
    n_features_in_ : int
    centre_, half_range_ : float
        Targets are ``centre_ + half_range_ * t`` with t in [-1, 1].

    Notes
    -----
    Targets are scaled to [-1, 1], and predictions clipped to their range. Machines have no intercept. A cell whose
    targets are all the same, or with one point, answers with that constant; with nothing to validate on, the most
    regular pair of the grid is taken. Equal rows are merged into one with the sum of their weights.
    Cost: O(m) for cells of bounded size, besides finding the centres, O(m) each.

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
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool = False,
    ) -> None:
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


class VoronoiSVR(VoronoiRegressor):
    """Support vector regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    epsilon : float, >= 0
        Deviation that costs nothing, in units of half the range of the targets.
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
    validation : int >= 2, "split"
        How lam and the width of each cell are selected: folds, or training on one half and validation on the other
        (TV-VP-SVM).
    n_lams, n_widths : int, >= 1
        Size of the grid, geometric in ``[0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]`` for a cell that trains on
        m points.
    tol : float, > 0
        Relative duality gap of final machines that are solved by iteration.
    estimator : estimator object, optional
        A clone of it learns in each cell, on scaled features and targets, instead of a Gaussian machine; it takes
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
    cover_ : Cover
    n_cells_ : int
    machines_ : LocalizedMachines
        With the machine of each cell: its lam, width, coefficients and held-out risks.
    kernel_ : Kernel
        For Voronoi cells, the kernel with which one machine at price 1 is the machines of all cells.
    scaling_ : Scaling
        How features are scaled: to [-1, 1].
    n_features_in_ : int
    centre_, half_range_ : float
        Targets are ``centre_ + half_range_ * t`` with t in [-1, 1].

    Notes
    -----
    Targets are scaled to [-1, 1], and predictions clipped to their range. Machines have no intercept. A cell whose
    targets are all the same, or with one point, answers with that constant; with nothing to validate on, the most
    regular pair of the grid is taken. Equal rows are merged into one with the sum of their weights.
    Cost: O(m) for cells of bounded size, besides finding the centres, O(m) each.

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import VoronoiSVR
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.sin(3 * X[:, 0]) + np.abs(X[:, 1])
    >>> model = VoronoiSVR(n_lams=4, n_widths=4, max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _loss_name = "epsilon_insensitive"
    rank = 300

    def __init__(
        self,
        *,
        epsilon: float = 0.05,
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
        tol: float = 1e-3,
        estimator: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
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
        self.tol = tol
        self.estimator = estimator
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose


class VoronoiQuantile(VoronoiRegressor):
    """Quantile regression (pinball loss) in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    quantile : float, strictly between 0 and 1
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
    validation : int >= 2, "split"
        How lam and the width of each cell are selected: folds, or training on one half and validation on the other
        (TV-VP-SVM).
    n_lams, n_widths : int, >= 1
        Size of the grid, geometric in ``[0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]`` for a cell that trains on
        m points.
    tol : float, > 0
        Relative duality gap of final machines that are solved by iteration.
    estimator : estimator object, optional
        A clone of it learns in each cell, on scaled features and targets, instead of a Gaussian machine; it takes
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
    cover_ : Cover
    n_cells_ : int
    machines_ : LocalizedMachines
        With the machine of each cell: its lam, width, coefficients and held-out risks.
    kernel_ : Kernel
        For Voronoi cells, the kernel with which one machine at price 1 is the machines of all cells.
    scaling_ : Scaling
        How features are scaled: to [-1, 1].
    n_features_in_ : int
    centre_, half_range_ : float
        Targets are ``centre_ + half_range_ * t`` with t in [-1, 1].

    Notes
    -----
    Targets are scaled to [-1, 1], and predictions clipped to their range. Machines have no intercept. A cell whose
    targets are all the same, or with one point, answers with that constant; with nothing to validate on, the most
    regular pair of the grid is taken. Equal rows are merged into one with the sum of their weights.
    Cost: O(m) for cells of bounded size, besides finding the centres, O(m) each.

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import VoronoiQuantile
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = X[:, 0] * np.random.default_rng(1).uniform(size=400)
    >>> model = VoronoiQuantile(quantile=0.9, n_lams=4, n_widths=4, max_cell_size=100, random_state=0).fit(X, y)
    >>> bool(0.8 < np.mean(y <= model.predict(X)) < 1.0)
    True
    """

    _loss_name = "pinball"
    rank = 300

    def __init__(
        self,
        *,
        quantile: float = 0.5,
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
        tol: float = 1e-3,
        estimator: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.quantile = quantile
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
        self.tol = tol
        self.estimator = estimator
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
