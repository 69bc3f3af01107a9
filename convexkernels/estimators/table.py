"""Tables of scikit-learn's users: checked, scaled, without rows of weight 0 and repetitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_X_y, validate_data

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.cells.sampling import Keys
from convexkernels.estimators.columns import Columns, is_missing
from convexkernels.estimators.scaling import Scaling
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import (
    check_labels_finite,
    check_points,
    check_weights,
    refuse_distributed,
    refuse_other_tables,
)


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Validated rows of positive weight, and their places in the table that was passed.

    Where rows are drawn, it is by their `keys`.
    """

    X: Array
    y: NDArray[Any]
    weights: Array
    rows: Index
    keys: Keys | None = None

    def points_of(self, rows: Index) -> Array:
        """The points at these places of the table that was passed (`self.rows` being sorted)."""
        return self.X[np.searchsorted(self.rows, rows)]

    def scaled(self, scaling: Scaling) -> TrainingTable:
        """The same rows with scaled features."""
        return replace(self, X=scaling.apply(self.X))

    def merged(self) -> tuple[TrainingTable, Index]:
        """One row for all that agree in features and target, with their weights added; and the row of each.

        The problem is the same and may be much smaller. As the rows are sorted, too, what is learned depends
        neither on the order of a table nor on whether it repeats rows or gives them weights.
        """
        y = self.y.reshape(len(self.y), -1).astype(np.float64)
        _, first, places = distinct_rows(np.hstack([self.X, y]))
        weights = np.bincount(places, self.weights).astype(np.float64)
        drawn_by = None if self.keys is None else self.keys[first]
        return TrainingTable(self.X[first], self.y[first], weights, self.rows[first], drawn_by), places


def read_table(estimator: Any, X: Any, y: Any, sample_weight: Any, *, multi_output: bool = False) -> TrainingTable:
    """The rows of positive weight of a table, validated; the estimator gets ``n_features_in_`` and names of columns.

    Parameters
    ----------
    X : array-like of shape (m, n)
    y : array-like of shape (m,) or, where there may be several outputs, (m, n_outputs)
    sample_weight : array-like of shape (m,), >= 0, or None

    Raises
    ------
    InvalidInputError
        The message names the argument, the value found and the remedy.
    """
    refuse_distributed_of(estimator, X=X, y=y, sample_weight=sample_weight)
    refuse_other_tables(X)
    _refuse_missing_targets(y)
    y = _numbers(y) if is_regressor(estimator) else y
    try:
        validate_data(estimator, X, skip_check_array=True)  # sets the number of columns and their names
        weights = check_weights(sample_weight, len(X if hasattr(X, "__len__") else np.asarray(X)))
        estimator.columns_ = Columns.of(X, np.flatnonzero(weights))
        points, target = check_X_y(
            X if estimator.columns_ is None else estimator.columns_.encoded(X),
            y,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=2,
            multi_output=multi_output,
            y_numeric=is_regressor(estimator),
            estimator=estimator,
        )
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(_explained(error, X, y)) from error
    points = check_points(points)
    rows = np.flatnonzero(weights)
    return TrainingTable(points[rows], target[rows], weights[rows], rows)


def read_points(estimator: Any, X: Any) -> Array:
    """Validated points with the columns that the estimator was fitted on, as numbers."""
    refuse_distributed_of(estimator, X=X)
    refuse_other_tables(X)
    columns = estimator.columns_
    try:
        if columns is None:
            points = validate_data(estimator, X, dtype=np.float64, ensure_all_finite=False, reset=False)
            _refuse_missing(points, estimator.feature_labels_)
        else:
            validate_data(estimator, X, reset=False, skip_check_array=True)
            points = columns.encoded(X)
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(_explained(error, X)) from error
    return check_points(points)


def _refuse_missing(points: Array, names: list[str]) -> None:
    """Of rows with gaps where training rows had none, nothing was learned."""
    gone = np.isnan(points)
    if gone.any():
        (row, column), found = np.argwhere(gone)[0], [names[j] for j in np.flatnonzero(gone.any(axis=0))]
        raise InvalidInputError(
            f"X has missing values in {', '.join(found)}, the first in row {row}, column {column}, but training rows "
            "missed none. Impute them, for example with sklearn.impute.SimpleImputer, or fit with rows that miss them."
        )


def _refuse_missing_targets(y: Any) -> None:
    """Objects that stand for nothing; NaN among numbers is scikit-learn's to refuse."""
    targets = np.asarray(y) if isinstance(y, list) or hasattr(y, "dtype") else np.empty(0)
    gone = [row for row, target in enumerate(targets) if is_missing(target)] if targets.dtype == object else []
    if gone:
        raise InvalidInputError(f"y has a missing value at row {gone[0]} ({targets[gone[0]]!r}); drop that row first.")


def _numbers(y: Any) -> Any:
    """Targets of a regressor, a missing or infinite one being refused by its row; other shapes are scikit-learn's."""
    found = np.asarray(y)
    is_column = found.ndim in (1, 2) and found.dtype.kind != "c"
    return check_labels_finite(y, len(found)) if is_column else y


def refuse_distributed_of(estimator: Any, **tables: Any) -> None:
    """Refuse Dask collections by name, with what an estimator that works in memory can do for them."""
    cells = "VoronoiSVC" if is_classifier(estimator) else "VoronoiRidge"
    remedy = (
        f"or fit this estimator to some rows, and {cells}(kernel=model.kernel_) to the Dask table; or predict part by "
        "part, by map_blocks or map_partitions"
    )
    for name, table in tables.items():
        refuse_distributed(table, name, type(estimator).__name__, remedy)


def _explained(error: ValueError, X: Any, y: Any = None) -> str:
    """The message of a refusal by scikit-learn, with the place and the remedy where they can be named."""
    message = str(error)
    if hasattr(X, "__len__") and hasattr(y, "__len__") and len(X) != len(y):
        return f"y has {len(y)} entries, but X has {len(X)} rows; pass one target per row."
    if "could not convert" in message or "unable to parse" in message.lower():
        return (
            f"X must hold numbers only, but {_first_text_column(X)} does not ({message}); encode text and category "
            "columns first, for example with sklearn.preprocessing.OneHotEncoder."
        )
    if "minimum of 2 is required" in message:
        return f"{message} Learning needs two rows or more, of two classes or with two targets."
    if "feature names should match" in message:
        return f"{message.rstrip()}\nPass the columns of the training table in its order, X[model.feature_names_in_]."
    if "is expecting" in message:
        return f"{message.rstrip('.')}; pass the columns of the training table, in its order."
    return message


def _first_text_column(X: Any) -> str:
    table = np.asarray(X, dtype=object)
    for column in range(table.shape[1] if table.ndim == 2 else 0):
        try:
            table[:, column].astype(np.float64)
        except (TypeError, ValueError):
            return f"column {X.columns[column]!r}" if hasattr(X, "columns") else f"column {column}"
    return "it"
