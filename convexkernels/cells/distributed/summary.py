"""What has to be known of a table before it is divided, gathered part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index
from convexkernels.cells.sampling import Keys, content_keys, seeded
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_labels_finite, check_points


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Range, targets and a random sample of the distinct rows of positive weight.

    Attributes
    ----------
    n_rows : int
    low, high : ndarray of shape (k, n_features) or (1, n_features)
        Range of every feature, for classes in each of them.
    targets : ndarray of shape (k,) or (2, n_outputs)
        The classes, ascending; or the least and the largest target.
    totals : ndarray of shape (k,) or (1,)
        Sum of the weights of every class, or of all rows.
    keys : ndarray of shape (s,)
        Keys of the sampled rows, ascending: they are the least of all rows, so that samples of parts merge into a
        sample of the whole.
    X, y, weights : ndarray
        The sampled rows, with the weights of all that are equal to them.
    """

    n_rows: int
    low: Array
    high: Array
    targets: NDArray[Any]
    totals: Array
    keys: Keys
    X: Array
    y: NDArray[Any]
    weights: Array

    @classmethod
    def of_rows(
        cls, X: Array, y: NDArray[Any], weights: Array, *, labels: bool, size: int, seed: int = 0
    ) -> TableSummary:
        """Summarize one part, and sample `size` of its rows."""
        keys = seeded(content_keys(X) if labels else content_keys(X, y), seed)
        # Every row is a part of its own.
        found = cls.merged([cls(len(X), X, X, y, weights, keys, X, y, weights)], labels=labels, size=size)
        assert found is not None
        return found

    @classmethod
    def merged(cls, parts: Sequence[TableSummary | None], *, labels: bool, size: int) -> TableSummary | None:
        """Summary of several parts together; None stands for a part without rows."""
        found = [part for part in parts if part is not None]
        if not found:
            return None
        listed = np.concatenate([part.targets for part in found])
        totals = np.concatenate([part.totals for part in found])
        if labels:
            targets, codes = np.unique(listed, return_inverse=True)
            totals = np.bincount(codes, weights=totals, minlength=len(targets)).astype(np.float64)
        else:
            targets, totals = np.array([listed.min(axis=0), listed.max(axis=0)]), np.array([totals.sum()])
        lows, highs = np.concatenate([part.low for part in found]), np.concatenate([part.high for part in found])
        low, high = _ranges(lows, highs, codes if labels else np.zeros(len(lows), dtype=np.intp))
        return cls(sum(part.n_rows for part in found), low, high, targets, totals, *_sample(found, labels, size))


def _sample(parts: list[TableSummary], labels: bool, size: int) -> tuple[Keys, Array, NDArray[Any], Array]:
    """The rows with the least keys, one for all that are equal, with the sum of their weights.

    Keys say nothing of labels, which are of many kinds.
    """
    keys, y = np.concatenate([part.keys for part in parts]), np.concatenate([part.y for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    codes = np.unique(y, return_inverse=True)[1] if labels else np.zeros(len(keys), dtype=np.intp)
    order = np.lexsort((codes, keys))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(keys[order]) != 0) | (np.diff(codes[order]) != 0)
    starts = np.flatnonzero(is_new)
    taken = order[starts[:size]]
    X, first = np.empty((len(taken), parts[0].X.shape[1])), 0
    for part in parts:  # rows that are not taken are copied nowhere
        own = (first <= taken) & (taken < first + len(part.X))
        X[own], first = part.X[taken[own] - first], first + len(part.X)
    return keys[taken], X, y[taken], np.add.reduceat(weights[order], starts)[:size]


def _ranges(low: Array, high: Array, codes: Index) -> tuple[Array, Array]:
    """Least and largest rows for each code, of shape (n_codes, n_features)."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.minimum.reduceat(low[order], starts), np.maximum.reduceat(high[order], starts)


def checked_part(
    index: int, X: Any, y: Any, weights: Any, *, n_features: int, labels: bool
) -> tuple[Array, NDArray[Any], Array] | None:
    """Points, targets and weights of the rows of positive weight of part number `index`, None where there are none.

    What is refused names the part. Targets are class labels, or numbers of shape (m,) or (m, n_outputs).
    """
    try:
        shape = np.shape(X)
        m = shape[0] if shape else 0
        target = np.asarray(y)
        w = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
        if target.shape[:1] != (m,) or target.ndim > (1 if labels else 2) or w.shape != (m,):
            raise InvalidInputError(
                f"X has shape {shape}, y {target.shape} and sample_weight {w.shape}; one target and one weight per "
                "row are needed, in parts that agree."
            )
        if m == 0:
            return None
        points = part_points(X, n_features)
        target = _checked_labels(target) if labels else check_labels_finite(target, m)
        if not np.isfinite(w).all() or (w < 0.0).any():
            raise InvalidInputError("sample_weight must be finite and >= 0.")
    except (InvalidInputError, TypeError, ValueError) as error:
        raise InvalidInputError(f"partition {index}: {error}") from error
    rows = np.flatnonzero(w)
    return (points[rows], target[rows], w[rows]) if rows.size else None


def part_points(X: Any, n_features: int) -> Array:
    """The points of a part, validated; what a dataframe has in the place of numbers is refused by its column."""
    if hasattr(X, "columns"):
        check_columns(X)
    return check_points(X, n_features=n_features)


def check_columns(frame: Any) -> None:
    """Refuse columns of categories, dates, text and missing numbers, of a part or of an example without rows."""
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j]
        if str(column.dtype) == "category" or column.dtype.kind in "mM":
            kind = "dates or times" if column.dtype.kind in "mM" else "categories"
            raise InvalidInputError(
                f"X must hold numbers only, but column {name!r} holds {kind}; encode them first (categories, for "
                f"example, by dask.dataframe.get_dummies(X.categorize())), or pass X.compute()."
            )
        try:
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"X must hold numbers only, but column {name!r} does not ({error}); encode text first, for example by "
                "dask.dataframe.get_dummies(X.categorize()), or pass X.compute()."
            ) from error
        if np.isnan(values).any():
            raise InvalidInputError(
                f"X has a missing value in column {name!r}, row {int(np.isnan(values).argmax())} of its part; impute "
                "or drop it first, for example by X.fillna(X.mean()), or pass X.compute()."
            )


def _checked_labels(y: NDArray[Any]) -> NDArray[Any]:
    if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.floor(y)).all()):
        raise InvalidInputError("y must hold class labels, got numbers with fractions or missing ones.")
    if y.dtype.kind == "O" and not all(isinstance(label, str | int | bool | np.generic) for label in y):
        raise InvalidInputError("y must hold class labels, got missing ones or objects of other kinds.")
    return y
