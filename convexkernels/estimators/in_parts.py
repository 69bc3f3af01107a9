"""Estimators that learn from Dask tables, too: one look at all parts, then what they do with its sample."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from convexkernels.arrays import Array
from convexkernels.cells.distributed.function import beside_targets, values_of_parts
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.cells.distributed.table import DistributedTable, blocks_of
from convexkernels.cells.sampling import content_keys, rows_by_share
from convexkernels.clock import Clock
from convexkernels.driver import tell_cuts
from convexkernels.estimators.base import KernelEstimator, seed_from, whole_or_not_at_all
from convexkernels.estimators.callbacks import told
from convexkernels.estimators.columns import labels_of
from convexkernels.estimators.encoding import Encoding, classes_kept
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable, refuse_distributed_of
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import InvalidInputError
from convexkernels.solution import Solution
from convexkernels.validation import is_distributed

# Rows of a Dask table that are brought here to find centers among, where no number is given.
LARGEST_SAMPLE = 200_000


@dataclass(frozen=True, eq=False)
class TableInParts:
    """A Dask table, and what its summary says.

    Attributes
    ----------
    table : DistributedTable
    encoding : Encoding
    sample : TrainingTable
        Rows that were drawn by their keys, scaled and merged; all of them where the table `is_here`.
    n_rows : int
        Rows of the table that differ, about.
    total : float
        What all rows weigh.
    """

    table: DistributedTable
    encoding: Encoding
    sample: TrainingTable
    is_here: bool
    n_rows: int
    total: float

    @classmethod
    def of_summary(cls, table: DistributedTable, encoding: Encoding, summary: TableSummary, size: int) -> Self:
        """From a summary that has drawn one row more than `size`, where there are more."""
        sample, is_here = encoding.drawn(summary), len(summary.keys) <= size
        # As many rows as the sample stands for: equal rows of a table that is here are one row, too.
        stands_for = 1.0 if is_here else rows_by_share(summary.keys, size) / size
        return cls(table, encoding, sample, is_here, round(len(sample.X) * stands_for), encoding.total(summary))


@dataclass(eq=False, repr=False, kw_only=True)
class LearnsInParts(KernelEstimator):
    """Learn from Dask arrays and dataframes as from tables in memory, and predict for them lazily."""

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _targets_of_summary(self, summary: TableSummary) -> Targets:
        """How targets of a Dask table are encoded."""

    def _check_parts(self) -> None:
        """Refuse parameters that are for tables in memory."""

    @abstractmethod
    def _n_drawn(self, n_columns: int) -> int:
        """Rows of a Dask table of so many columns that are brought here."""

    @abstractmethod
    def _learned_in_parts(self, parts: TableInParts, clock: Clock, seed: int) -> tuple[Solution, Scaling]:
        """The solution, and how features are scaled."""

    def _finish_parts(self) -> None:
        """Set attributes beyond ``solution_``."""

    @property
    @abstractmethod
    def _n_values(self) -> int:
        """Number of functions."""

    # -- learning ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a table in memory, as every estimator does, or from one of Dask.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe
            Numbers; in memory also text, categories and missing values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or a Dask array or series
            Labels of two classes or more, numbers or text; for regressors numbers.
        sample_weight : array-like of shape (n_samples,), or a Dask array or series, optional
            Weights >= 0 that multiply the loss.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError, MemoryLimitError
            Before any work starts; for Dask tables after every part was looked at.
        ClusterError
            When the Dask cluster that does the work is gone, or gives up.
        """
        if not is_distributed(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        with whole_or_not_at_all(self):
            self._check_parameters()
            self._check_parts()
            if self.checkpoint is not None:
                raise InvalidInputError("checkpoint is for tables in memory; pass None for a Dask table.")
            self._walk_in_parts(X, y, sample_weight)
        return self

    def _walk_in_parts(self, X: Any, y: Any, sample_weight: Any) -> None:
        """From a Dask table to learned functions."""
        self.__dict__.pop("_usual_share", None)  # of earlier targets
        begun = Clock(progress=told(self, bool(self.verbose)))
        table = DistributedTable.of_collections(X, y, sample_weight, labels=is_classifier(self))
        self._check_columns(table.example, reset=True)
        seed, size = seed_from(getattr(self, "random_state", None)), self._n_drawn(table.n_features)
        summary = table.summarized(size + 1, seed)  # one more says whether these are all
        clock = self._clock(summary.n_rows, begun)
        parts = TableInParts.of_summary(table, self._encoding_of(summary), summary, size)
        solution, scaling = self._learned_in_parts(parts, clock, seed)
        tell_cuts(clock, solution.status)
        self.solution_, self.targets_, self.scaling_ = solution, parts.encoding.targets, scaling
        # Columns are numbers, and the rows are on the cluster.
        self.columns_, self._merged_rows = None, None
        self.feature_labels_ = labels_of(self)
        self._finish_parts()

    def _encoding_of(self, summary: TableSummary) -> Encoding:
        """How rows of a Dask table become rows of problems; classes of weight 0 have no say in the ranges."""
        targets = self._targets_of_summary(summary)
        kept = classes_kept(summary, targets)
        return Encoding(
            self._scaling_of(np.vstack([summary.low[kept].min(axis=0), summary.high[kept].max(axis=0)])), targets
        )

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        read = super()._read(X, y, sample_weight)
        keys = content_keys(read.X) if is_classifier(self) else content_keys(read.X, read.y)
        return replace(read, keys=keys)

    def _check_columns(self, example: Any, *, reset: bool) -> None:
        """Number and names of the columns of a Dask table."""
        try:
            validate_data(self, example, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InvalidInputError(str(error)) from error

    # -- predicting --------------------------------------------------------------------------------

    def _answer(self, X: Any, finish: Callable[[Array], NDArray[Any]], function: Any = None) -> Any:
        """What `finish` makes of values at new points, of another function if one is given; lazy for a Dask table."""
        check_is_fitted(self)
        if not is_distributed(X):
            return super()._answer(X, finish) if function is None else finish(function.values(self._points(X)))
        if self.columns_ is not None:
            refuse_distributed_of(self, X=X)
        self._check_columns(blocks_of(X)[3], reset=False)
        n_values = self._n_values if function is None else function.n_outputs
        learned: Any = self.function_ if function is None else function  # type: ignore[attr-defined]
        return values_of_parts(X, learned, n_values, self.scaling_.apply, finish)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As scikit-learn has it: accuracy of a classifier, R^2 of a regressor; of Dask tables, too."""
        if not is_distributed(X, y, sample_weight):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]  # scikit-learn's, of the task
        table = DistributedTable.of_collections(X, y, sample_weight, labels=is_classifier(self))
        truth, predicted, weights = beside_targets(table, self.predict(X))
        metric: Callable[..., float] = accuracy_score if is_classifier(self) else r2_score
        return float(metric(truth, predicted, sample_weight=weights))
