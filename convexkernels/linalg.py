"""Projections and factorizations that several layers share."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf

from convexkernels.arrays import Array, Index
from convexkernels.threads import threads_to_factorize

# Columns that are worked on at once: wide enough for matrix products, narrow enough to stay greedy.
PANEL = 64
# How far from its total, per entry, the sum of a point on a simplex may be for rounding.
ON_SIMPLEX = 4.0 * float(np.finfo(np.float64).eps)
# Rows of a matrix that are compared with a number at once.
FLUSHED_ROWS = 512


def project_simplex(v: Array, total: float = 1.0) -> Array:
    """Euclidean projection of `v` onto ``{u >= 0, sum u = total}``.

    Sort-and-threshold, O(n log n). What is there but for rounding stays as it is, with its zeros.
    """
    if v.min() >= 0.0 and abs(float(v.sum()) - total) <= v.size * ON_SIMPLEX * total:
        return v.copy()
    v = v - v.max()  # changes nothing but rounding: the total must not drown in large entries
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - total
    count = np.arange(1, v.size + 1)
    last = np.nonzero(u - excess / count > 0)[0][-1]
    return np.maximum(v - excess[last] / (last + 1), 0.0)


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues of a symmetric matrix, ascending, and its eigenvectors.

    Divide and conquer fails for a finite matrix now and then; another method is slower, and does not.
    """
    try:
        values, vectors = np.linalg.eigh(A)
    except LinAlgError:
        if not np.isfinite(A).all():
            raise
        values, vectors = scipy.linalg.eigh(A, driver="evr")
    return values, vectors


def project_spectraplex(A: Array, trace: float) -> Array:
    """Euclidean projection of a symmetric matrix onto ``{P >= 0, trace P <= trace}``.

    Clips the eigenvalues, and projects them onto the simplex when they sum to more than `trace`.
    One eigendecomposition, O(n^3).
    """
    values, vectors = eigh(0.5 * (A + A.T))
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
    values, vectors = eigh(symmetric)
    slack = A.shape[0] * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
    return float(values[-1] + slack), vectors[:, -1]


def smallest_eigenvalue(A: Array) -> float:
    """Smallest eigenvalue of a symmetric matrix."""
    return float(np.linalg.eigvalsh(0.5 * (A + A.T))[0])


def longest_step(value: Array, change: Array) -> float:
    """Longest step along `change` that keeps a positive vector non-negative (inf is cut to 1e10)."""
    falling = change < 0
    return min(1e10, float((-value[falling] / change[falling]).min())) if falling.any() else 1e10


def flush(A: Array, least: float) -> Array:
    """The matrix with entries of less than this size made 0, in place; some rows at a time, for a large one.

    Products of such entries are subnormal numbers, with which a factorization takes three to fifty times as long.
    """
    for first in range(0, len(A), FLUSHED_ROWS):
        part = A[first : first + FLUSHED_ROWS]
        part[np.abs(part) < least] = 0.0
    return A


def sorted_qr(A: Array, pivots: Index | None = None) -> tuple[Array, Array, Index]:
    """Q and R with ``A = Q R``, Q orthogonal and ``R[:, pivots]`` triangular, in the arithmetic of A.

    Householder's method with rows by size and pivots, which is stable row by row (Cox and Higham, BIT 38, 1998): where
    rows are of very different size, small combinations of them keep their digits. `pivots` are chosen unless given.
    """
    n, rows = len(A), np.argsort(-np.abs(A).max(axis=1), kind="stable")
    order = np.arange(n) if pivots is None else pivots.copy()
    R, Q = A[np.ix_(rows, order)], np.eye(n, dtype=A.dtype)
    for k in range(n - 1):
        if pivots is None:
            best = k + int(np.argmax((R[k:, k:] ** 2).sum(axis=0)))
            R[:, [k, best]], order[[k, best]] = R[:, [best, k]], order[[best, k]]
        v = R[k:, k].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        if v[0] != 0.0:
            v /= np.sqrt(v @ v / 2)
            R[k:, k:] -= np.multiply.outer(v, v @ R[k:, k:])
            Q[:, k:] -= np.multiply.outer(Q[:, k:] @ v, v)
    return Q[np.argsort(rows)], np.triu(R)[:, np.argsort(order)], order


def shifted_cholesky(A: Array, shift: float = 0.0, tries: int = 5) -> Any:
    """Cholesky factor, for ``cho_solve``, of a matrix that rounding may have made indefinite.

    ``A + shift I`` is factorized; every failure makes the shift 100 times larger (the first one at least 1e-15 of the
    trace). None when that does not help: more than rounding is amiss, or numbers are not finite.
    """
    for _ in range(tries):
        shifted = A + shift * np.eye(len(A)) if shift else A.copy()
        try:
            with threads_to_factorize(len(A)):
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


def pivoted_cholesky(
    rows: Callable[[Index], Array], diagonal: Array, rank: int, tol: float, deadline: float | None = None
) -> tuple[Array, Index]:
    """Low-rank factor Z, shape (m, r), with ``K = Z Z' + E``, E positive semidefinite with diagonal at most `tol`.

    The points with the largest entries of E are candidates, a panel at a time; within the panel they are taken in the
    order of their remaining diagonal until it has fallen to a tenth of what the panel started with, so that near copies
    do not all become pivots. O(m r^2) operations in matrix products, and r rows of K.

    Parameters
    ----------
    rows : callable
        Rows of K by their indices, shape (n_rows, m).
    diagonal : ndarray of shape (m,)
        Diagonal of K.
    rank : int, >= 1
        Most columns of Z; when they do not suffice, the diagonal of E may exceed `tol`.
    deadline : float, optional
        By the monotonic clock: Z has the columns of the panels that were begun before, of one at least.

    Returns
    -------
    Z, and the pivots, in whose rows and columns E vanishes
    """
    m = diagonal.size
    rank = min(rank, m)
    Z = np.empty((m, rank), order="F")
    pivots = np.empty(rank, dtype=np.intp)
    left = diagonal.astype(np.float64)
    # Below this, what is left is the rounding of what was taken away.
    floor = max(tol, 4.0 * np.finfo(np.float64).eps * m * float(diagonal.max(initial=0.0)))
    r = 0
    while r < rank:
        top = float(left.max())
        if not top > floor or (r > 0 and deadline is not None and time.monotonic() > deadline):
            break
        size = min(PANEL, m, rank - r)
        candidates = np.sort(np.argpartition(-left, size - 1)[:size]) if size < m else np.arange(m)
        block = rows(candidates) - Z[candidates, :r] @ Z[:, :r].T
        factor, order, taken, _ = dpstrf(block[:, candidates], tol=max(floor, 0.1 * top), lower=1)
        taken = max(int(taken), 1)
        chosen = order[:taken] - 1
        lower = np.tril(factor[:taken, :taken])
        Z[:, r : r + taken] = solve_triangular(lower, block[chosen], lower=True, check_finite=False).T
        pivots[r : r + taken] = candidates[chosen]
        left -= np.einsum("ij,ij->i", Z[:, r : r + taken], Z[:, r : r + taken])
        left[candidates[chosen]] = 0.0
        r += taken
    return Z[:, :r], pivots[:r]
