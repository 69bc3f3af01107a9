"""Quantile regression with one machine per cell of a partition.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from __future__ import annotations

from typing import Any

from convexkernels.estimators.documentation import documented
from convexkernels.estimators.voronoi_regression import VoronoiRegressor

__all__ = ["VoronoiQuantile"]


@documented
class VoronoiQuantile(VoronoiRegressor):
    """Quantile regression (pinball loss) in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    quantile : float, strictly between 0 and 1
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
        self.quantile = quantile
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
