"""Support vector regression with one machine per cell of a partition.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from typing import Any

from convexkernels.estimators.documentation import documented
from convexkernels.estimators.voronoi_regression import VoronoiRegressor

__all__ = ["VoronoiSVR"]


@documented
class VoronoiSVR(VoronoiRegressor):
    """Support vector regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    epsilon : float, >= 0
        Deviation that costs nothing, in units of half the range of the targets.
    {cells}
    {cell_folds}
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
        tol: float = 1e-3,
        estimator: Any = None,
        gather: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
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
        self.tol = tol
        self.estimator = estimator
        self.gather = gather
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
