"""Projections and factorizations that several layers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from convexkernels.arrays import Array

__all__ = [
    "leading_eigenpair",
    "longest_step",
    "project_simplex",
    "project_spectraplex",
    "shifted_cholesky",
    "smallest_eigenvalue",
    "solve_bordered",
]


def project_simplex(v: Array, total: float = 1.0) -> Array:
    """Euclidean projection of `v` onto ``{u >= 0, sum u = total}``.

    Sort-and-threshold, O(n log n).
    """
    v = v - v.max()  # changes nothing but rounding: the total must not drown in large entries
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - total
    count = np.arange(1, v.size + 1)
    last = np.nonzero(u - excess / count > 0)[0][-1]
    return np.maximum(v - excess[last] / (last + 1), 0.0)


def project_spectraplex(A: Array, trace: float) -> Array:
    """Euclidean projection of a symmetric matrix onto ``{P >= 0, trace P <= trace}``.

    Clips the eigenvalues, and projects them onto the simplex when they sum to more than `trace`.
    One eigendecomposition, O(n^3).
    """
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    clipped = np.maximum(values, 0.0)
    if clipped.sum() > trace:
        clipped = project_simplex(values, trace)
    keep = clipped > 0
    half = vectors[:, keep] * np.sqrt(clipped[keep])
    return half @ half.T


def leading_eigenpair(A: Array) -> tuple[float, Array]:
    """Largest eigenvalue of a symmetric matrix, rounded outwards, and a unit eigenvector.

    The value is increased by the backward error bound of the decomposition, so that a bound
    computed from it stays a bound.
    """
    symmetric = 0.5 * (A + A.T)
    values, vectors = np.linalg.eigh(symmetric)
    slack = A.shape[0] * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
    return float(values[-1] + slack), vectors[:, -1]


def smallest_eigenvalue(A: Array) -> float:
    """Smallest eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh(0.5 * (A + A.T))[0])


def longest_step(value: Array, change: Array) -> float:
    """Longest step along `change` that keeps a positive vector non-negative (inf is cut to 1e10)."""
    falling = change < 0
    return min(1e10, float((-value[falling] / change[falling]).min())) if falling.any() else 1e10


def shifted_cholesky(A: Array, shift: float = 0.0, tries: int = 5) -> Any:
    """Cholesky factor, for ``cho_solve``, of a matrix that rounding may have made indefinite.

    ``A + shift I`` is factorized; every failure makes the shift 100 times larger (the first one at least 1e-15 of the
    trace). None when that does not help: more than rounding is amiss, or numbers are not finite.
    """
    for _ in range(tries):
        shifted = A + shift * np.eye(len(A)) if shift else A.copy()
        try:
            factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            shift = max(100.0 * shift, 1e-15 * float(np.trace(A)))
        else:
            return factor if np.isfinite(np.diagonal(factor[0])).all() else None
    return None


def solve_bordered(factor: Any, right: Array, total: float, border: bool = True) -> tuple[Array, float]:
    """Solve ``A x + b 1 = right``, ``sum x = total`` with a Cholesky factor of A; without the border b is 0."""
    if not border:
        return np.asarray(cho_solve(factor, right, check_finite=False)), 0.0
    solved = cho_solve(factor, np.column_stack([right, np.ones(len(right))]), check_finite=False)
    b = float((solved[:, 0].sum() - total) / solved[:, 1].sum())
    return solved[:, 0] - b * solved[:, 1], b
