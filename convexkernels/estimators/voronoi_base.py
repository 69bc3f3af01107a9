"""What the estimators with one machine per cell share: cover, cells, tables here and on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from convexkernels.cells.cluster import is_distributed
from convexkernels.cells.cover import Cover, RandomChunks, VoronoiCover
from convexkernels.cells.covering import cell_size_within, tree_cover, voronoi_cover
from convexkernels.cells.distributed_cells import DistributedMachines, learn_distributed_cells, values_of_parts
from convexkernels.cells.distributed_table import DistributedTable, blocks_of
from convexkernels.cells.machines import CellLearner, CellMachine, GaussianLearner
from convexkernels.cells.summary import TableSummary
from convexkernels.cells.training import LocalizedMachines, learn_cells, seconds_by_size
from convexkernels.estimators.base import seed_from
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import read_points, read_table
from convexkernels.estimators.targets import Targets
from convexkernels.estimators.voronoi_encoding import Encoding
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.localized import Localized
from convexkernels.validation import check_number, check_whole_number

__all__ = ["VoronoiEstimator"]

Array = NDArray[np.float64]

DEFAULT_CELL_SIZE = 2000
# Rows of a Dask table that are brought here to find centres among, where no number is given.
LARGEST_SAMPLE = 200_000
PARTITIONS = ("voronoi", "tree", "overlapping", "random")


class VoronoiEstimator(BaseEstimator, ABC):
    """Base of the estimators with one machine per cell; subclasses encode the targets."""

    scale: bool
    radius: float | None
    max_cell_size: int | None
    time_budget: float | None
    memory_budget: float | None
    partition: str
    overlap: float
    subset: int | None
    validation: Any
    n_lams: int
    n_widths: int
    rank: int
    tol: float
    estimator: Any
    gather: bool
    random_state: Any
    n_jobs: int | None
    max_time: float | None
    verbose: bool

    # The loss of the machines, unless a parameter names it.
    _loss_name = "least_squares"

    def _gaussian_learner(self) -> GaussianLearner:
        learner = GaussianLearner(
            getattr(self, "loss", self._loss_name),
            self.validation,
            self.n_lams,
            self.n_widths,
            self.rank,
            getattr(self, "epsilon", 0.0),
            getattr(self, "quantile", 0.5),
            tol=self.tol,
        )
        learner.check()
        return learner

    def _cell_learner(self) -> CellLearner:
        gaussian = self._gaussian_learner()
        if self.estimator is None:
            return gaussian
        if not hasattr(self.estimator, "fit") or not isinstance(self.estimator, BaseEstimator):
            raise InvalidInputError(f"estimator must be an estimator object or None, got {self.estimator!r}.")
        return self._wrapped(gaussian)

    @abstractmethod
    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        """The estimator in a cell."""

    @abstractmethod
    def _targets_of(self, summary: TableSummary) -> Targets:
        """How targets are encoded."""

    def _encoding_of(self, summary: TableSummary) -> Encoding:
        """How rows become rows of problems."""
        box = np.stack([summary.low, summary.high])
        scaling = Scaling.to_symmetric_box(box) if self.scale else Scaling.none(box)
        return Encoding(scaling, self._targets_of(summary))

    @abstractmethod
    def _checked_targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets of a table that is here, or a refusal."""

    def _check_parameters(self) -> None:
        if self.partition not in PARTITIONS:
            raise InvalidInputError(f"partition must be one of {PARTITIONS}, got {self.partition!r}.")
        sizes = {"radius": self.radius, "max_cell_size": self.max_cell_size}
        budgets = {"time_budget": self.time_budget, "memory_budget": self.memory_budget}
        named = [name for name, value in sizes.items() if value is not None]
        if len(named) == 2 or (named and any(value is not None for value in budgets.values())):
            raise InvalidInputError(
                f"give radius, or max_cell_size, or budgets, got {sizes | budgets}; the others have to be None."
            )
        for name, value in {"radius": self.radius, **budgets, "max_time": self.max_time}.items():
            if value is not None:
                check_number(name, value, low=0.0, open_low=True, remedy="None leaves it open.")
        if self.max_cell_size is not None:
            check_whole_number("max_cell_size", self.max_cell_size, low=2, remedy="One point alone teaches nothing.")
        if self.radius is not None and self.partition in ("tree", "random"):
            raise InvalidInputError(
                f"radius={self.radius} goes with partition 'voronoi' or 'overlapping', got {self.partition!r}; give "
                "max_cell_size instead."
            )
        check_number("overlap", self.overlap, low=0.0)
        if self.subset is not None:
            check_whole_number("subset", self.subset, low=2)

    def _make_cover(
        self, X: Array, Y: Array, weights: Array, learner: CellLearner, seed: int, n_rows: int | None = None
    ) -> Cover:
        """The cover that the parameters ask for, of scaled points, or of `n_rows` that these are a sample of."""
        size = self.max_cell_size
        if self.time_budget is not None or self.memory_budget is not None:
            timed = self.time_budget is not None
            rng = np.random.default_rng(seed)
            seconds = seconds_by_size(X, Y, weights, learner, rng) if timed else float
            size = cell_size_within(
                X,
                time_budget=self.time_budget,
                memory_budget=self.memory_budget,
                seconds_of=seconds,
                bytes_of=self._gaussian_learner().bytes_of,
                n_rows=n_rows,
                random_state=seed,
            )
        elif self.radius is None and size is None:
            size = DEFAULT_CELL_SIZE
        places: dict[str, Any] = {"subset": self.subset, "n_rows": n_rows, "random_state": seed}
        if self.partition == "random":
            return RandomChunks(-(-(n_rows or len(X)) // int(size or DEFAULT_CELL_SIZE)), seed)
        if self.partition == "tree":
            return tree_cover(X, max_cell_size=int(size or DEFAULT_CELL_SIZE), **places)
        overlap = self.overlap if self.partition == "overlapping" else 0.0
        return voronoi_cover(X, radius=self.radius, max_cell_size=size, overlap=overlap, **places)

    # -- learning ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Divide the table, and learn in every cell.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe
            Finite numbers of magnitude at most 1e150.
        y : array-like of shape (n_samples,), or a Dask array or series
            Numbers; for a classifier class labels, numbers or text, at least two classes.
        sample_weight : array-like of shape (n_samples,), or a Dask array or series, optional
            Weights >= 0 that multiply the loss; rows of weight 0 are as good as absent.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts; for Dask tables, after every part was looked at.
        ClusterError
            When the Dask cluster that does the work is gone, or gives up.
        """
        self._check_parameters()
        learner = self._cell_learner()
        seed = seed_from(self.random_state)
        if is_distributed(X, y, sample_weight):
            return self._fit_distributed(X, y, sample_weight, learner, seed)
        table = read_table(self, X, y, sample_weight)
        targets = self._checked_targets(table.y)
        summary = TableSummary.of_rows(table.X, targets, table.weights, labels=is_classifier(self))
        encoding = self._encoding_of(summary)
        points, Y, weights = encoding.merged(*encoding.scaled(table.X, targets, table.weights))
        cover = self._make_cover(points, Y, weights, learner, seed)
        machines = learn_cells(
            points,
            Y,
            weights,
            cover,
            learner,
            seed=seed,
            n_jobs=self.n_jobs,
            max_time=self.max_time,
            progress=bool(self.verbose),
        )
        return self._learned(encoding, cover, machines)

    def _fit_distributed(self, X: Any, y: Any, sample_weight: Any, learner: CellLearner, seed: int) -> Self:
        table = DistributedTable.of_collections(X, y, sample_weight, labels=is_classifier(self))
        self._check_columns(table.example, reset=True)
        summary = table.summarised(self.subset or LARGEST_SAMPLE, seed)
        encoding = self._encoding_of(summary)
        sample = encoding.merged(*encoding.scaled(summary.X, summary.y, summary.weights))
        # As many rows as the sample stands for: equal rows of a table that is here are one row, too.
        n_rows = round(summary.n_rows * len(sample[0]) / len(summary.X))
        cover = self._make_cover(*sample, learner, seed, n_rows)
        machines = learn_distributed_cells(
            table,
            encoding,
            cover,
            learner,
            sample,
            seed=seed,
            gather=bool(self.gather),
            max_time=self.max_time,
            progress=bool(self.verbose),
        )
        return self._learned(encoding, cover, machines)

    def _learned(self, encoding: Encoding, cover: Cover, machines: LocalizedMachines | DistributedMachines) -> Self:
        self.machines_ = machines
        self.cover_, self.n_cells_ = cover, cover.n_cells
        self.scaling_, self.targets_ = encoding.scaling, encoding.targets
        return self

    def _check_columns(self, example: Any, *, reset: bool) -> None:
        """Number and names of the columns of a Dask table."""
        try:
            validate_data(self, example, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InvalidInputError(str(error)) from error

    # -- predicting --------------------------------------------------------------------------------

    def _answer(self, X: Any, finish: Callable[[Array], NDArray[Any]]) -> Any:
        """What `finish` makes of the values at new points; lazy for a Dask table."""
        check_is_fitted(self)
        if not is_distributed(X):
            return finish(self.machines_.values(self.scaling_.apply(read_points(self, X))))
        self._check_columns(blocks_of(X)[3], reset=False)
        example = finish(np.zeros((1, self.machines_.n_machines)))[:0]
        return values_of_parts(X, self.machines_, self.scaling_.apply, finish, example)

    @property
    def kernel_(self) -> Kernel:
        """The kernel on the table with which one machine, at price 1, is the machines of all cells.

        Raises
        ------
        InvalidInputError
            For covers and learners that have none.
        """
        check_is_fitted(self)
        cover = self.cover_
        if isinstance(self.machines_, DistributedMachines):
            raise InvalidInputError(
                "the machines of the kernel are on a Dask cluster; bring them first: model.machines_ = "
                "model.machines_.gather()."
            )
        machines = self.machines_.machines
        if type(cover) is not VoronoiCover or not all(isinstance(m, CellMachine) for m in machines):
            raise InvalidInputError(
                f"a localized kernel belongs to Voronoi cells with Gaussian machines, got {cover!r} and "
                f"{type(machines[0]).__name__}; use partition='voronoi' and estimator=None."
            )
        # A constant machine has no kernel of its own; any will do.
        kernels = [Gaussian(1.0 / m.width**2 if np.isfinite(m.width) else 1.0) for m in machines]
        prices = [m.price if np.isfinite(m.price) else 1.0 for m in machines]
        return self.scaling_.pull_back(Localized(cover.centres, kernels, prices))
