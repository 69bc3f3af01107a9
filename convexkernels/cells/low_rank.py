"""Pivoted Cholesky factors of Gram matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from convexkernels.arrays import Array, Index

__all__ = ["pivoted_cholesky"]


# Columns that are worked on at once: wide enough for matrix products, narrow enough to stay greedy.
PANEL = 64


def pivoted_cholesky(rows: Callable[[Index], Array], diagonal: Array, rank: int, tol: float) -> tuple[Array, Index]:
    """Low-rank factor Z with ``K = Z Z' + E``, E positive semidefinite with diagonal at most `tol`.

    Parameters
    ----------
    rows : callable
        Rows of K by their indices, shape (n_rows, m).
    diagonal : ndarray of shape (m,)
        Diagonal of K.
    rank : int, >= 1
        Most columns of Z; when they do not suffice, the diagonal of E may exceed `tol`.
    tol : float, >= 0

    Returns
    -------
    Z : ndarray of shape (m, r), r <= rank
    pivots : ndarray of int, shape (r,)
        E vanishes in their rows and columns.

    Notes
    -----
    The points with the largest entries of E are candidates, a panel at a time; within the panel they are taken in
    the order of their remaining diagonal until it has fallen to a tenth of what the panel started with, so that
    near copies do not all become pivots. O(m r^2) operations in matrix products, and r rows of K.
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
        if not top > floor:
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
