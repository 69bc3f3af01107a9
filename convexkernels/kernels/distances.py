"""Squared Euclidean distances, shared by every radial kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["radial_pullback", "squared_distances"]

Array = NDArray[np.float64]


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
