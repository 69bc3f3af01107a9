"""What the estimators with one function per cell share: cover, cells, tables here and on a cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from convexkernels.cells.cluster import is_distributed
from convexkernels.cells.cover import Cover
from convexkernels.cells.distributed_cells import DistributedMachines, learn_distributed_cells, values_of_parts
from convexkernels.cells.distributed_table import DistributedTable, blocks_of
from convexkernels.cells.machines import CellLearner, CellSelection, GaussianLearner
from convexkernels.cells.options import Cells
from convexkernels.cells.summary import TableSummary
from convexkernels.cells.training import LocalizedMachines, learn_cells, seconds_by_size
from convexkernels.estimators.base import KernelEstimator, seed_from
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets
from convexkernels.estimators.voronoi_encoding import Encoding
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.solution import Solution

__all__ = ["VoronoiEstimator"]

Array = NDArray[np.float64]
Problem = tuple[Array, Array, Array]

# Rows of a Dask table that are brought here to find centers among, where no number is given.
LARGEST_SAMPLE = 200_000


@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiEstimator(KernelEstimator):
    """Base of the estimators with one function per cell; subclasses name the loss."""

    max_cell_size: int | None = None
    cells: Cells | None = None
    selection: CellSelection | None = None
    tol: float = 1e-3
    estimator: Any = None
    gather: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss, without intercept; lam is selected."""

    @abstractmethod
    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        """The estimator in a cell."""

    @abstractmethod
    def _targets_of_summary(self, summary: TableSummary) -> Targets:
        """How targets of a Dask table are encoded."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, kind in (("cells", Cells), ("selection", CellSelection)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInputError(f"{name} must be None or a {kind.__name__}(...), got {value!r}.")
        self._cells.check(self.max_cell_size)
        if self.estimator is not None and not (
            hasattr(self.estimator, "fit") and isinstance(self.estimator, BaseEstimator)
        ):
            raise InvalidInputError(f"estimator must be an estimator object or None, got {self.estimator!r}.")
        self._gaussian_learner().check()

    @property
    def _cells(self) -> Cells:
        return self.cells or Cells()

    def _gaussian_learner(self) -> GaussianLearner:
        return GaussianLearner(self._loss(), self.selection or CellSelection(), tol=self.tol)

    def _cell_learner(self) -> CellLearner:
        gaussian = self._gaussian_learner()
        return gaussian if self.estimator is None else self._wrapped(gaussian)

    def _cover(self, problem: Problem, learner: CellLearner, seed: int, n_rows: int | None = None) -> Cover:
        """The cover that the parameters ask for, of scaled points, or of `n_rows` that these are a sample of."""
        return self._cells.cover(
            problem[0],
            self.max_cell_size,
            seconds_of=lambda: seconds_by_size(*problem, learner, np.random.default_rng(seed)),
            bytes_of=self._gaussian_learner().bytes_of,
            seed=seed,
            n_rows=n_rows,
        )

    # -- learning ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Divide the table, and learn in every cell.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe
            Finite numbers of magnitude at most 1e150.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or a Dask array or series
            Numbers, of which the functions of several outputs share lam and the width in every cell; for a classifier
            class labels, numbers or text, at least two classes.
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
        if not is_distributed(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        self._check_parameters()
        table = DistributedTable.of_collections(X, y, sample_weight, labels=is_classifier(self))
        self._check_columns(table.example, reset=True)
        learner, seed = self._cell_learner(), seed_from(self.random_state)
        summary = table.summarized(self._cells.subset or LARGEST_SAMPLE, seed)
        encoding = self._encoding_of(summary)
        sample = encoding.merged(*encoding.scaled(summary.X, summary.y, summary.weights))
        # As many rows as the sample stands for: equal rows of a table that is here are one row, too.
        n_rows = round(summary.n_rows * len(sample[0]) / len(summary.X))
        self.solution_ = learn_distributed_cells(
            table,
            encoding,
            self._cover(sample, learner, seed, n_rows),
            learner,
            sample,
            seed=seed,
            gather=bool(self.gather),
            max_time=self.max_time,
            progress=bool(self.verbose),
            tol=self.tol,
        )
        self.targets_, self.scaling_ = encoding.targets, encoding.scaling
        self._finish_cells()
        return self

    def _scaling_of(self, X: Array) -> Scaling:
        return Scaling.to_symmetric_box(X) if self._cells.scale else Scaling.none(X)

    def _encoding_of(self, summary: TableSummary) -> Encoding:
        """How rows of a Dask table become rows of problems; classes of weight 0 have no say in the ranges."""
        targets = self._targets_of_summary(summary)
        kept = np.isin(summary.targets, getattr(targets, "classes", summary.targets))[: len(summary.low)]
        return Encoding(self._scaling_of(np.vstack([summary.low[kept], summary.high[kept]])), targets)

    def _problem(self, table: TrainingTable, targets: Targets) -> Problem:
        return table.X, np.ascontiguousarray(np.atleast_2d(targets.expanded(table.y).T)), table.weights

    def _solve(self, problem: Problem) -> Solution:
        learner, seed = self._cell_learner(), seed_from(self.random_state)
        return learn_cells(
            *problem,
            self._cover(problem, learner, seed),
            learner,
            seed=seed,
            n_jobs=self.n_jobs,
            max_time=self.max_time,
            progress=bool(self.verbose),
            tol=self.tol,
        )

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self._finish_cells()

    def _finish_cells(self) -> None:
        self.n_iter_ = max(1, self.solution_.n_iter)
        self.cover_, self.n_cells_ = self.machines_.cover, self.machines_.cover.n_cells

    @property
    def machines_(self) -> LocalizedMachines | DistributedMachines:
        """The functions of all cells; setting it replaces those on a cluster by the same ones here."""
        check_is_fitted(self)
        found: LocalizedMachines | DistributedMachines = self.solution_.problem
        return found

    @machines_.setter
    def machines_(self, machines: LocalizedMachines | DistributedMachines) -> None:
        self.solution_ = replace(self.solution_, problem=machines)

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
            return finish(self._values(X))
        self._check_columns(blocks_of(X)[3], reset=False)
        example = finish(np.zeros((1, self.machines_.n_machines)))[:0]
        return values_of_parts(X, self.machines_, self.scaling_.apply, finish, example)

    def predict(self, X: Any) -> Any:
        """Predict the targets of new points; numbers stay within the range of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), or a lazy Dask array
            Class labels, or numbers.
        """
        check_is_fitted(self)
        return self._answer(X, self.targets_.decoded)
