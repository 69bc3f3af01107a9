"""Squared Euclidean distances, shared by every radial kernel."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist

from convexkernels.arrays import Array, Index, Mask

# Entries of a block of distances; a few of these are alive at a time.
BLOCK = 2**21
# Entries that stay in the second-level cache while they are finished.
CACHED = 2**15
# Rounding of ``|x|^2 - 2 x'y + |y|^2`` as a multiple of ``|x|^2 + |y|^2``.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
# What that may change a kernel value by, and a distance, relative to it, where no kernel says what matters.
ABSOLUTE, RELATIVE = 2e-12, 1e-9


class Metric(Protocol):
    """What has distances of its own, for example a kernel."""

    def squared_distances(self, X: Array, Y: Array) -> Array:
        """Matrix of squared distances, shape (n_samples_X, n_samples_Y)."""

    def distances_from(self, X: Array) -> Callable[[int], Array]:
        """Row number -> squared distances of all rows from it."""


def squared_distances(X: Array, Y: Array, rate: float | None = None, reach: float = np.inf) -> Array:
    """Matrix of ``|x_i - y_j|^2``, shape (n_samples_X, n_samples_Y), by one GEMM.

    The identity ``|x|^2 - 2 x'y + |y|^2`` loses distances that are small next to the lengths of the rows around
    their center: far rows, clusters far apart. Those are formed anew from differences.

    Parameters
    ----------
    X, Y : ndarray of shape (n_samples_X, n_features), (n_samples_Y, n_features)
        Equal rows of one table (``Y is X``) get exactly 0.
    rate, reach : float, > 0, optional
        Largest slope, in the squared distance, of the function the distances are for, and the squared distance beyond
        which it is as good as constant: what changes its values by less than 2e-12 is then left as it is, and
        ordinary tables cost one look at their lengths. Without them every distance is right to 1e-9 of itself.
    """
    left, right, own, other, limit = _around(X, Y, Y.mean(axis=0), rate, reach)
    if rate is not None and limit.any():
        left, right, own, other, limit = _around(X, Y, center_of(Y), rate, reach)
    D = left @ right.T
    doubtful = bool(limit.any())
    if Y is X:
        np.fill_diagonal(D, -np.inf)  # doubled and reversed below: never doubtful
    step = max(1, CACHED // len(Y))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        part = D[rows]
        part *= -2.0
        part += own[rows, None]
        part += other
        if doubtful:
            _mend(part, X[rows], Y, limit[rows])
        np.maximum(part, 0.0, out=part)
    if Y is X:
        np.fill_diagonal(D, 0.0)
    return D


def center_of(X: Array) -> Array:
    """The mean of the rows, or in columns where far rows have pulled it away the median of some hundred of them."""
    center = X.mean(axis=0)
    some = X[:: max(1, len(X) // 100)]
    middle = np.median(some, axis=0)
    pulled = np.abs(center - middle) > 100.0 * np.median(np.abs(some - middle), axis=0)
    return np.where(pulled, middle, center)


def has_lost_digits(lengths: Array, others: Array, rate: float = 1.0) -> bool:
    """Whether distances by the identity, between rows of these squared lengths, change kernel values.

    The rate is that of :func:`squared_distances`; with a True, form distances from differences.
    """
    largest = float(lengths.max(initial=0.0)) + float(others.max(initial=0.0))
    return ROUNDING * rate * largest > ABSOLUTE


def _around(
    X: Array, Y: Array, center: Array, rate: float | None, reach: float
) -> tuple[Array, Array, Array, Array, Array]:
    """Both tables around a center, their squared lengths, and the distance below which each row of X is doubtful.

    Rows that are close to each other are about equally long, so that the length of one says how far the rounding
    of their distance goes: ``|y|^2 <= (|x| + distance)^2``.
    """
    left = X - center
    right = left if Y is X else Y - center
    own = np.einsum("ij,ij->i", left, left)
    other = own if Y is X else np.einsum("ij,ij->i", right, right)
    if rate is None:
        return left, right, own, other, 2.0 * ROUNDING / RELATIVE * own
    if not has_lost_digits(own, other, rate):
        return left, right, own, other, np.zeros(len(X))
    error = ROUNDING * (own + np.minimum(np.sqrt(own) + np.sqrt(reach), np.sqrt(other.max())) ** 2)
    return left, right, own, other, np.where(error > ABSOLUTE / rate, reach + error, 0.0)


def _mend(D: Array, X: Array, Y: Array, limit: Array) -> None:
    """Form the distances below the limit of their row anew."""
    rows = np.flatnonzero(D.min(axis=1) < limit)
    if rows.size == 0:
        return
    doubtful = D[rows] < limit[rows, None]
    if 8 * np.count_nonzero(doubtful) > doubtful.size:
        D[rows] = np.where(doubtful, cdist(X[rows], Y, "sqeuclidean"), D[rows])
    else:
        i, j = np.nonzero(doubtful)
        _form_anew(D, X, Y, rows[i], j)


def _form_anew(D: Array, X: Array, Y: Array, rows: Index, columns: Index) -> None:
    """Overwrite entries by sums of squared differences."""
    step = max(1, BLOCK // X.shape[1])
    for start in range(0, rows.size, step):
        i, j = rows[start : start + step], columns[start : start + step]
        D[i, j] = ((X[i] - Y[j]) ** 2).sum(axis=1)


def radial_sizes(X: Array, rate: float) -> Array:
    """`Kernel._sizes` of a function of squared distances, at most 1 and of at most that slope."""
    largest = float(np.square(X - X.mean(axis=0)).sum(axis=1).max())
    return np.full(len(X), 1.0 + min(2.0 * rate * largest, ABSOLUTE / ROUNDING))


def radial_pullback(X: Array, Y: Array, B: Array) -> Array:
    """Gradient in X of ``sum_ij phi(|x_i - y_j|^2)`` given ``B_ij = phi'(|x_i - y_j|^2)``."""
    right = Y - Y.mean(axis=0)  # the difference of both terms keeps its digits around the center
    left = right if X is Y else X - Y.mean(axis=0)
    return 2.0 * (B.sum(axis=1)[:, None] * left - B @ right)


def nearest_rows(X: Array, Y: Array, metric: Metric | None = None) -> tuple[Index, Array]:
    """Index of the row of `Y` nearest to each row of `X`, ties to the smallest, and the squared distance to it.

    Distances are those of a metric, or Euclidean. These come by blocks, from GEMM; where rounding leaves more than one
    row, differences decide. The answer for a row therefore does not depend on the rows beside it.
    O(n_samples_X n_samples_Y n_features), memory of a few blocks.
    """
    if metric is not None:
        return _nearest_in(metric, X, Y)
    nearest = np.zeros(X.shape[0], dtype=np.intp)
    center = Y.mean(axis=0)
    Yc = Y - center
    lengths = np.einsum("ij,ij->i", Yc, Yc)
    largest = float(lengths.max())
    step = max(1, BLOCK // Y.shape[0])
    for start in range(0, X.shape[0] if Y.shape[0] > 1 else 0, step):
        Xc = X[start : start + step] - center
        D = Xc @ Yc.T
        D *= -2.0
        D += lengths
        own = np.einsum("ij,ij->i", Xc, Xc)
        slack = 8.0 * (X.shape[1] + 4) * np.finfo(np.float64).eps * (own + largest)
        best = D.argmin(axis=1)
        close = (D[np.arange(len(D)), best] + slack)[:, None] >= D
        doubtful = np.flatnonzero(close.sum(axis=1) > 1)
        if doubtful.size:
            best[doubtful] = _settle(X[start : start + step][doubtful], Y, close[doubtful])
        nearest[start : start + step] = best
    offset = X - Y[nearest]
    return nearest, np.einsum("ij,ij->i", offset, offset)


def _nearest_in(metric: Metric, X: Array, Y: Array) -> tuple[Index, Array]:
    step = max(1, BLOCK // len(Y))
    parts = [least(metric.squared_distances(X[start : start + step], Y)) for start in range(0, len(X), step)]
    nearest, square = zip(*parts, strict=True)
    return np.concatenate(nearest), np.concatenate(square)


def least(D: Array) -> tuple[Index, Array]:
    """Column of the least entry of each row, and the entry; what rounding cannot tell apart is a tie."""
    square = D.min(axis=1)
    return np.argmax((square + ABSOLUTE)[:, None] >= D, axis=1), square


def _settle(X: Array, Y: Array, close: Mask) -> Index:
    """The nearest of the rows of `Y` that `close` marks, from sums of squared differences."""
    D = np.full(close.shape, np.inf)
    _form_anew(D, X, Y, *np.nonzero(close))
    return np.asarray(D.argmin(axis=1))


def typical_of(distances: Array) -> float:
    """The median of the positive ones, 1 where there are none: where most points are equal, all others say nothing."""
    positive = distances[distances > 0.0]
    return float(np.median(positive)) if positive.size else 1.0
