"""What has to be known of a table before it is divided, gathered part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_labels_finite, check_points


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Range, targets and a random sample of the rows of positive weight.

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
        Random numbers of the sampled rows, ascending: they are the smallest of all rows, so that samples of parts
        merge into a sample of the whole.
    X, y, weights : ndarray
        The sampled rows.
    """

    n_rows: int
    low: Array
    high: Array
    targets: NDArray[Any]
    totals: Array
    keys: Array
    X: Array
    y: NDArray[Any]
    weights: Array

    @classmethod
    def of_rows(
        cls, X: Array, y: NDArray[Any], weights: Array, *, labels: bool, size: int = 0, seed: int = 0, first: int = 0
    ) -> TableSummary:
        """Summarize one part, whose rows are those from number `first` of the table, and sample `size` of them."""
        keys = random_keys(len(X), seed, first) if size else np.empty(0)
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
        keys = np.concatenate([part.keys for part in found])
        taken = np.argsort(keys, kind="stable")[:size]
        return cls(
            sum(part.n_rows for part in found),
            low,
            high,
            targets,
            totals,
            keys[taken],
            np.concatenate([part.X for part in found])[taken],
            np.concatenate([part.y for part in found])[taken],
            np.concatenate([part.weights for part in found])[taken],
        )


def random_keys(n: int, seed: int, first: int) -> Array:
    """Random numbers of the rows `first`, ..., ``first + n - 1`` of a table, however it is cut into parts."""
    return np.random.Generator(np.random.PCG64(seed).advance(first)).random(n)


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
        points = check_points(X, n_features=n_features)
        target = _checked_labels(target) if labels else check_labels_finite(target, m)
        if not np.isfinite(w).all() or (w < 0.0).any():
            raise InvalidInputError("sample_weight must be finite and >= 0.")
    except (InvalidInputError, TypeError, ValueError) as error:
        raise InvalidInputError(f"partition {index}: {error}") from error
    rows = np.flatnonzero(w)
    return (points[rows], target[rows], w[rows]) if rows.size else None


def _checked_labels(y: NDArray[Any]) -> NDArray[Any]:
    if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.floor(y)).all()):
        raise InvalidInputError("y must hold class labels, got numbers with fractions or missing ones.")
    if y.dtype.kind == "O" and not all(isinstance(label, str | int | bool | np.generic) for label in y):
        raise InvalidInputError("y must hold class labels, got missing ones or objects of other kinds.")
    return y
