"""Tables of scikit-learn's users: checked, scaled, without rows of weight 0 and repetitions."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, check_X_y, validate_data

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.cells.sampling import Keys
from convexkernels.estimators.columns import Columns, as_table, is_missing
from convexkernels.estimators.scaling import Scaling
from convexkernels.exceptions import EntryTypeError, InvalidInputError
from convexkernels.validation import (
    NO_NUMBERS,
    check_labels_finite,
    check_points,
    check_weights,
    refuse_distributed,
    unmasked,
)

# What the libraries below say of an entry that is no number.
SAID_OF_ENTRIES = (
    "could not convert",
    "cannot convert",
    "complex data",
    "unable to parse",
    "setting an array element",
    "argument must be",
    "int too large",
)


# The largest mean of weights beside which regularization parameters are numbers, and one over the least.
LARGEST_MEAN = 1e95


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


def check_unit(weights: Array) -> None:
    """Refuse weights > 0 beside whose mean no regularization parameter is a number of float64."""
    largest = float(weights.max())
    mean = largest * float(np.mean(weights / largest))
    if not 1.0 / LARGEST_MEAN <= mean <= LARGEST_MEAN:
        raise InvalidInputError(
            f"sample_weight has the mean {mean:.3g}, beside which no regularization parameter is a number of float64; "
            "divide it by its mean."
        )


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
    X = as_table(X)
    _check_columns(estimator, X, reset=True)  # sets the number of columns and their names
    weights = check_weights(sample_weight, len(X))
    rows = np.flatnonzero(weights)
    # A row that counts stands in for each of weight 0, whatever that holds, and every row keeps its number.
    shown = slice(None) if len(rows) == len(X) else np.where(weights > 0.0, np.arange(len(X)), rows[0])
    X = X if isinstance(shown, slice) else _safe_indexing(X, shown)
    y = _targets(y, len(X), shown, of_numbers=is_regressor(estimator))
    estimator.columns_ = Columns.of(X, rows)
    try:
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
    except InvalidInputError:
        raise
    except NO_NUMBERS as error:
        raise _refused(error, X) from error
    points = check_points(points)
    return TrainingTable(points[rows], target[rows], weights[rows], rows)


def read_points(estimator: Any, X: Any) -> Array:
    """Validated points with the columns that the estimator was fitted on, as numbers."""
    refuse_distributed_of(estimator, X=X)
    X = as_table(X)
    columns = estimator.columns_
    _check_columns(estimator, X, reset=False)
    if columns is not None:
        return check_points(columns.encoded(X))
    try:
        points = check_array(X, dtype=np.float64, ensure_all_finite=False, estimator=estimator, input_name="X")
    except NO_NUMBERS as error:
        raise _refused(error, X) from error
    _refuse_missing(points, estimator.feature_labels_)
    return check_points(points)


def _check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Number and names of the columns of a table."""
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except NO_NUMBERS as error:
        raise InvalidInputError(_explained(error, X)) from error


def _refuse_missing(points: Array, names: list[str]) -> None:
    """Of rows with gaps where training rows had none, nothing was learned."""
    gone = np.isnan(points)
    if gone.any():
        (row, column), found = np.argwhere(gone)[0], [names[j] for j in np.flatnonzero(gone.any(axis=0))]
        raise InvalidInputError(
            f"X has missing values in {', '.join(found)}, the first in row {row}, column {column}, but training rows "
            "missed none. Impute them, for example with sklearn.impute.SimpleImputer, or fit with rows that miss them."
        )


def _targets(y: Any, m: int, shown: Index | slice, *, of_numbers: bool) -> Any:
    """The targets of the rows that are shown, one per row and none missing; that there are none is scikit-learn's."""
    if y is None:
        return None
    try:
        found: Any = check_array(
            unmasked(y),
            dtype=None,
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name="y",
        )
    except NO_NUMBERS as error:
        raise InvalidInputError(
            f"y is a {type(y).__name__} that cannot become an array of targets ({str(error).splitlines()[0]}); pass "
            f"one label or real number per row, an array of shape ({m},)."
        ) from error
    if found.ndim not in (1, 2) or 0 in found.shape[1:]:
        found_y = f"has shape {found.shape}" if found.ndim else f"is {reprlib.repr(y)}"
        raise InvalidInputError(f"y {found_y}; pass one target per row, an array of shape ({m},).")
    if len(found) != m:
        raise InvalidInputError(f"y has {len(found)} entries, but X has {m} rows; pass one target per row.")
    if found.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(one, str) for one in y):
        found = np.asarray(y, dtype=object)  # 1 among texts is not "1"
    found = found[shown]
    _refuse_missing_targets(found)
    numbers = check_labels_finite(found, m) if of_numbers or found.dtype.kind == "f" else found
    return numbers if of_numbers else found


def _refuse_missing_targets(y: NDArray[Any]) -> None:
    """Objects and dates that stand for nothing; NaN among numbers is found by the check of these."""
    gone = [is_missing(target) for target in y.flat] if y.dtype.kind in "OmM" else []
    if any(gone):
        place = np.unravel_index(gone.index(True), y.shape)
        raise InvalidInputError(f"y has a missing value at row {place[0]} ({y[place]}); drop that row first.")


def refuse_distributed_of(estimator: Any, **tables: Any) -> None:
    """Refuse Dask collections by name, with what an estimator that works in memory can do for them."""
    cells = "VoronoiSVC" if is_classifier(estimator) else "VoronoiRidge"
    remedy = (
        f"or fit this estimator to some rows, and {cells}(kernel=model.kernel_) to the Dask table; or predict part by "
        "part, by map_blocks or map_partitions"
    )
    for name, table in tables.items():
        refuse_distributed(table, name, type(estimator).__name__, remedy)


def _refused(error: Exception, X: Any) -> InvalidInputError:
    """The refusal of a table, an error of the same kind."""
    kind = EntryTypeError if isinstance(error, TypeError) else InvalidInputError
    return kind(_explained(error, X))


def _explained(error: Exception, X: Any) -> str:
    """The message of a refusal by scikit-learn, with the place and the remedy where they can be named."""
    message = str(error)
    if any(words in message.lower() for words in SAID_OF_ENTRIES):
        return (
            f"X must hold numbers only, but {_first_text_column(X)} does not ({message.splitlines()[0]}); encode text "
            "and category columns first, for example with sklearn.preprocessing.OneHotEncoder."
        )
    if "minimum of 2 is required" in message:
        return f"{message} Learning needs two rows or more, of two classes or with two targets."
    if "minimum of 1 is required" in message:
        return f"{message} Pass the rows and columns of X to work with, one or more."
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
        except NO_NUMBERS:
            return f"column {X.columns[column]!r}" if hasattr(X, "columns") else f"column {column}"
    return "it"
