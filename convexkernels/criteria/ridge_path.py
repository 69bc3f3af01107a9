"""Held-out residuals of ridge regression in closed form, for a whole path of lam: no function is trained again.

With weights S, ``H = K (K + lam S^-1)^-1`` and fitted values f, the residual of a block B by the function that has not
seen B is ``(I - H_BB)^-1 (y_B - f_B)``, for the same lam, the weight of ``|f|^2`` beside the sum of the losses.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri

from convexkernels.arrays import Array
from convexkernels.criteria.folds import Rows
from convexkernels.factored import FactoredGram

Blocks = Sequence[Rows] | None


def path_residuals(
    Z: Array, Y: Array, weights: Array, lams: Array, blocks: Blocks, *, intercept: bool = False
) -> Iterator[Array]:
    """Residuals for every lam, with ``K = Z Z'``: ``min sum_i weights_i (y_i - z_i'c - b)^2 + lam |c|^2``.

    Parameters
    ----------
    Z : ndarray of shape (m, r)
        A factor of K, or the features; not modified.
    Y : ndarray of shape (n_outputs, m)
    weights : ndarray of shape (m,), > 0
    lams : ndarray of shape (n_lams,), > 0
    blocks : sequence of ndarray of int, or None
        Rows that are left out together; None for every row by itself.
    intercept : bool
        Whether b is fitted; 0 otherwise.

    Yields
    ------
    ndarray of shape (n_outputs, m)
        For one lam after the other; rows in no block have the residuals of the function that has seen all.

    Notes
    -----
    The eigenvectors of ``Z'Z``, or of ``Z Z'`` where that is smaller, serve all lams. O(m r^2 + r^3), and O(m r) for
    each lam where every row is left out by itself.
    """
    root, total = np.sqrt(weights)[:, None], float(weights.sum())
    T = Y.T
    if intercept:
        Z, T = Z - weights @ Z / total, T - Y @ weights / total
    Q, values = _orthogonal(root * Z)
    T = root * T
    # The constant is a direction of its own, which lam does not shrink: [Q u] with u = root / sqrt(total).
    Q = np.hstack([Q, root / np.sqrt(total)]) if intercept else Q
    projected = Q.T @ T
    for lam in lams:
        shifted = np.append(values + lam, 1.0) if intercept else values + lam
        yield (_left_out(Q, shifted, T - Q @ (projected / shifted[:, None]), blocks) / root).T


def _orthogonal(Z: Array) -> tuple[Array, Array]:
    """Orthogonal columns Q with ``Q Q' = Z Z'``, and their squared lengths; directions lost to rounding left out."""
    if Z.shape[1] <= len(Z):
        squares, V = eigh(Z.T @ Z, check_finite=False, driver="evd", overwrite_a=True)
        Q = Z @ V
    else:
        squares, U = eigh(Z @ Z.T, check_finite=False, driver="evd", overwrite_a=True)
        Q = U * np.sqrt(np.maximum(squares, 0.0))
    kept = squares > 1e-15 * max(float(squares[-1]), 1e-300)
    return Q[:, kept], squares[kept]


def _left_out(Q: Array, shifted: Array, residual: Array, blocks: Blocks) -> Array:
    """Residuals of blocks left out, from those of the whole with ``H = Q diag(1 / shifted) Q'``."""
    if blocks is None:
        leverage = np.square(Q) @ (1.0 / shifted)
        return np.asarray(residual / np.maximum(1.0 - leverage, np.finfo(np.float64).eps)[:, None])
    for block in blocks:
        part = Q[block]
        if len(block) <= Q.shape[1]:
            A = np.eye(len(block)) - (part / shifted) @ part.T
            residual[block] = _definite_solve(A, residual[block])
        else:  # the same by Woodbury's identity
            A = np.diag(shifted) - part.T @ part
            residual[block] += part @ _definite_solve(A, part.T @ residual[block])
    return residual


def residuals_at(K: Array, Y: Array, weights: Array, lam: float, blocks: Blocks) -> Array | None:
    """Residuals for one lam with the matrix itself: ``((A^-1)_BB)^-1 (A^-1 y)_B``, ``A = K + lam S^-1``.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Overwritten.
    Y, weights, lam, blocks
        As in `path_residuals`.

    Returns
    -------
    ndarray of shape (n_outputs, m), or None where A is not definite at working precision
        0 for rows in no block. O(m^3).
    """
    solved = _solved(K, Y.T, weights, lam)
    if solved is None:
        return None
    W, inverse = solved
    if blocks is None:
        return np.asarray((W / np.diagonal(inverse)[:, None]).T)
    residual = np.zeros_like(W)
    for block in blocks:
        part = np.tril(inverse[np.ix_(block, block)])
        residual[block] = _definite_solve(part + np.tril(part, -1).T, W[block])
    return residual.T


def coefficients_at(
    K: Array | FactoredGram, Y: Array, weights: Array, lam: float, intercept: bool
) -> tuple[Array, Array] | None:
    """Coefficients w of ridge regression and the diagonal of the matrix that takes targets to them.

    Parameters
    ----------
    K : ndarray of shape (m, m), or FactoredGram
        A matrix is overwritten.
    Y, weights, lam
        As in `path_residuals`.
    intercept : bool
        Whether b is fitted.

    Returns
    -------
    (W, diagonal), shapes (n_outputs, m) and (m,), or None where ``K + lam S^-1`` is not definite at working precision
        The residual of row i is ``lam w_i / s_i``, and ``w_i / diagonal_i`` by the function that has not seen it.
        O(m^3), or O(m rank^2).
    """
    right = np.vstack([Y, np.ones((1, len(weights)))]).T
    solved = (
        _solved_by_factors(K, right, weights, lam) if isinstance(K, FactoredGram) else _solved(K, right, weights, lam)
    )
    if solved is None:
        return None
    W, inverse = solved[0][:, :-1], solved[1]
    diagonal = inverse if inverse.ndim == 1 else np.diagonal(inverse).copy()
    if intercept:
        ones = solved[0][:, -1]
        W = W - np.outer(ones, W.sum(axis=0) / ones.sum())
        diagonal -= ones**2 / ones.sum()
    return W.T, diagonal


def _solved(K: Array, right: Array, weights: Array, lam: float) -> tuple[Array, Array] | None:
    """``A^-1 right`` and the lower triangle of the inverse of ``A = K + lam S^-1``, which takes the place of K."""
    A = K.T  # symmetric; the transpose has the layout of LAPACK
    A[np.diag_indices_from(A)] += lam / weights
    factor, failed = dpotrf(A, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    W = cho_solve((factor, True), right, check_finite=False)
    return np.asarray(W), np.asarray(dpotri(factor, lower=1, overwrite_c=1)[0])


def _solved_by_factors(K: FactoredGram, right: Array, weights: Array, lam: float) -> tuple[Array, Array] | None:
    """``A^-1 right`` and the diagonal of the inverse for ``K = Psi Psi'``, in O(m rank^2).

    By ``A^-1 = (S - S Psi (lam I + Psi' S Psi)^-1 Psi' S) / lam``.
    """
    inner, pulled = lam * np.eye(K.rank), np.zeros((K.rank, right.shape[1]))
    for rows in K.blocks():
        scaled = weights[rows, None] * K.rows(rows)
        inner += K.rows(rows).T @ scaled
        pulled += scaled.T @ right[rows]
    factor, failed = dpotrf(inner, lower=1)
    if failed:
        return None
    solved = cho_solve((factor, True), pulled, check_finite=False)
    W, diagonal = np.empty(right.shape), np.empty(len(weights))
    for rows in K.blocks():
        Psi, s = K.rows(rows), weights[rows] / lam
        W[rows] = s[:, None] * (right[rows] - Psi @ solved)
        half = solve_triangular(factor, Psi.T, lower=True, check_finite=False)
        diagonal[rows] = s * (1.0 - weights[rows] * np.square(half).sum(axis=0))
    return W, diagonal


def _definite_solve(A: Array, right: Array) -> Array:
    try:
        return np.asarray(cho_solve(cho_factor(A, check_finite=False), right, check_finite=False))
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0], dtype=np.float64)
