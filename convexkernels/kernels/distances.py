"""Squared Euclidean distances, shared by every radial kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_rows", "radial_pullback", "squared_distances"]

Array = NDArray[np.float64]

# Entries of a block of distances; a few of these are alive at a time.
BLOCK = 2**21


def squared_distances(X: Array, Y: Array) -> Array:
    """Matrix of ``|x_i - y_j|^2``, shape (n_samples_X, n_samples_Y), by one GEMM.

    Centring first keeps the cancellation of ``|x|^2 - 2 x'y + |y|^2`` relative to the spread of the
    data instead of its distance from the origin; equal rows of one table get exactly 0.
    """
    centre = Y.mean(axis=0)
    Xc = X - centre
    Yc = Xc if Y is X else Y - centre
    D = Xc @ Yc.T
    D *= -2.0
    D += np.einsum("ij,ij->i", Xc, Xc)[:, None]
    D += np.einsum("ij,ij->i", Yc, Yc)[None, :]
    np.maximum(D, 0.0, out=D)
    if Y is X:
        np.fill_diagonal(D, 0.0)
    return D


def radial_pullback(X: Array, Y: Array, B: Array) -> Array:
    """Gradient in X of ``sum_ij phi(|x_i - y_j|^2)`` given ``B_ij = phi'(|x_i - y_j|^2)``."""
    return 2.0 * (B.sum(axis=1)[:, None] * X - B @ Y)


def nearest_rows(X: Array, Y: Array) -> tuple[NDArray[np.intp], Array]:
    """Index of the row of `Y` nearest to each row of `X`, ties to the smallest, and the squared distance to it.

    Blocks of distances by GEMM; where rounding leaves more than one row, differences decide. The answer for a row
    therefore does not depend on the rows beside it. O(n_samples_X n_samples_Y n_features), memory of a few blocks.
    """
    nearest = np.zeros(X.shape[0], dtype=np.intp)
    centre = Y.mean(axis=0)
    Yc = Y - centre
    lengths = np.einsum("ij,ij->i", Yc, Yc)
    largest = float(lengths.max())
    step = max(1, BLOCK // Y.shape[0])
    for start in range(0, X.shape[0] if Y.shape[0] > 1 else 0, step):
        Xc = X[start : start + step] - centre
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


def _settle(X: Array, Y: Array, close: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The nearest of the rows of `Y` that `close` marks, from sums of squared differences."""
    D = np.full(close.shape, np.inf)
    step = max(1, BLOCK // X.shape[1])
    rows, columns = np.nonzero(close)
    for start in range(0, rows.size, step):
        i, j = rows[start : start + step], columns[start : start + step]
        D[i, j] = ((X[i] - Y[j]) ** 2).sum(axis=1)
    return np.asarray(D.argmin(axis=1))
