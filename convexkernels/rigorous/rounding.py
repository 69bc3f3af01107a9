"""Bounds on what rounding does, in the model of arithmetic of :mod:`convexkernels.rigorous`."""

import math
from typing import Any

import numpy as np

from convexkernels.arrays import Array

U = 2.0**-53
# Terms that are added up in an order that nobody knows.
LEAF = 16
# More than all that underflow takes from an entry or a term.
UNDERFLOW = 1e-290


def gamma(n: int) -> float:
    """Relative effect of n roundings in any order, ``n u / (1 - n u)``.

    A thousandth more, because the bounds it is multiplied with are computed with roundings themselves: they are sums
    and products of numbers >= 0, wrong by a relative 1e-9 at most.
    """
    return 1.001 * n * U / (1.0 - n * U) if n < 1e12 else np.inf


def product_in_blocks(A: Array, B: Array) -> tuple[Array, int]:
    """``A @ B`` by halves, and the roundings of an entry: some twenty, where a single sum of n terms has n of them."""
    n = A.shape[-1]
    if n <= LEAF:
        return A @ B, n
    half = n // 2
    (left, first), (right, last) = product_in_blocks(A[:, :half], B[:half]), product_in_blocks(A[:, half:], B[half:])
    return left + right, max(first, last) + 1


def sum_above(values: Any) -> float:
    """An upper bound of the sum, correctly rounded and then moved up."""
    flat = np.ravel(values)
    if not np.isfinite(flat).all():
        return np.inf
    total = math.fsum(flat.tolist())
    return total + 2.0 * U * abs(total) + UNDERFLOW


def largest_eigenvalue(D: Array, R: Array | float = 0.0) -> float:
    """An upper bound of the largest eigenvalue of every symmetric matrix within `R` of `D`, entry by entry.

    A Cholesky factorization of ``t I - D`` that runs to its end proves ``t I - D >= -gamma_(n+1) trace`` (Higham,
    Accuracy and Stability, Theorem 10.3; Rump 2006), whatever the order of its sums. Perturbations move eigenvalues by
    their norm, at most that of `R`.
    """
    n = len(D)
    D = 0.5 * (D + D.T)
    R = R + U * np.abs(D)
    R = 0.5 * (R + R.T)
    if not (np.isfinite(D).all() and np.isfinite(R).all()):
        return np.inf
    values = np.linalg.eigvalsh(D)
    size = float(np.abs(values).max())
    step = gamma(4 * n) * size + UNDERFLOW
    while step < size + 1.0:
        t = float(values[-1]) + step
        A = -D
        A[np.diag_indices(n)] += t
        try:
            np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            step *= 4.0
            continue
        trace = float(np.abs(np.diagonal(A)).sum())
        return t + (gamma(n + 4) + 2.0 * U) * (trace + abs(t)) + _radius_above(R) + UNDERFLOW
    return _radius_above(np.abs(D) + R)


def _radius_above(R: Array) -> float:
    """An upper bound of the norm of a symmetric matrix of numbers >= 0.

    ``max_i (R s)_i / s_i`` is one for every positive s (Collatz and Wielandt); for the s of a few steps of the power
    method it is hardly larger, whereas entries of very different size make the largest row sum many times as large.
    """
    s = np.ones(len(R))
    bound = float(R.sum(axis=1).max())
    for _ in range(8):
        image = R @ s
        bound = min(bound, float((image / s).max()))
        s = image / max(float(image.max()), 1e-300) + 1e-3 * s  # positive, whatever R is
    return 1.001 * bound
