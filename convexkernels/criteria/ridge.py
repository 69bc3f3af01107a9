"""Ridge regression without some of its rows, in closed form: no function is trained again.

With weights S, ``H = K (K + lam S^-1)^-1`` and fitted values f, the residual of a block B by the function that has not
seen B is ``(I - H_BB)^-1 (y_B - f_B)``, for the same lam, the weight of ``|f|^2`` beside the sum of the losses.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import dpotrf, get_lapack_funcs

from convexkernels.arrays import Array
from convexkernels.criteria.folds import Rows
from convexkernels.factored import FactoredGram
from convexkernels.linalg import flush
from convexkernels.threads import threads_to_factorize

Blocks = Sequence[Rows] | None
# Shares of the diagonal that float32, whose unit is 6e-8 of it, does not see.
FLUSHED = 1e-10


def path_residuals(
    Z: Array, Y: Array, weights: Array, lams: Array, blocks: Blocks, *, intercept: bool = False
) -> Iterator[Array]:
    """Residuals for every lam, with ``K = Z Z'``: ``min sum_i weights_i (y_i - z_i'c - b)^2 + lam |c|^2``.

    The eigenvectors of ``Z'Z``, or of ``Z Z'`` where that is smaller, serve all lams. O(m r^2 + r^3), and O(m r) for
    each lam where every row is left out by itself.

    Parameters
    ----------
    Z : ndarray of shape (m, r)
        A factor of K, or the features; not modified.
    blocks : sequence of ndarray of int, or None
        Rows that are left out together; None for every row by itself.
    intercept : bool
        Whether b is fitted; 0 otherwise.

    Yields
    ------
    ndarray of shape (n_outputs, m)
        For one lam after the other; rows in no block have the residuals of the function that has seen all.
    """
    if intercept:
        Z = Z - weights @ Z / weights.sum()
    yield from _path(*_orthogonal(np.sqrt(weights)[:, None] * Z), Y, weights, lams, blocks, intercept)


def matrix_path_residuals(
    K: Array, Y: Array, weights: Array, lams: Array, *, intercept: bool = False
) -> Iterator[Array]:
    """Residuals for every lam as from `path_residuals`, every row by itself, from K, shape (m, m), which is left alone.

    One eigendecomposition, O(m^3), and O(m^2) for each lam.
    """
    if intercept:
        means = K @ weights / weights.sum()
        K = K - means[:, None] - means + weights @ means / weights.sum()
    root = np.sqrt(weights)
    yield from _path(*_eigenvectors(root[:, None] * K * root), Y, weights, lams, None, intercept)


def _path(
    Q: Array, values: Array, Y: Array, weights: Array, lams: Array, blocks: Blocks, intercept: bool
) -> Iterator[Array]:
    """Residuals for every lam, from what `_orthogonal` makes of weighted features around their mean."""
    root, total = np.sqrt(weights)[:, None], float(weights.sum())
    T = root * (Y - (Y @ weights / total)[:, None] if intercept else Y).T
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
        return _kept(Q, squares)
    return _eigenvectors(Z @ Z.T)


def _eigenvectors(A: Array) -> tuple[Array, Array]:
    """The same for ``A = Z Z'``, which is overwritten."""
    squares, U = eigh(A, check_finite=False, driver="evd", overwrite_a=True)
    return _kept(U * np.sqrt(np.maximum(squares, 0.0)), squares)


def _kept(Q: Array, squares: Array) -> tuple[Array, Array]:
    kept = squares > 1e-15 * squares.max(initial=1e-300)
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


def residuals_at(
    K: Array | FactoredGram, Y: Array, weights: Array, lam: float, blocks: Blocks, *, intercept: bool = False
) -> Array | None:
    """Residuals for one lam with the matrix itself: ``((A^-1)_BB)^-1 (A^-1 y)_B``, ``A = K + lam S^-1``.

    As from `path_residuals`, but 0 for rows in no block, and None where A is not definite at working precision; of a
    FactoredGram for every row by itself. K, which is overwritten, and lam are those of `solved_at`.
    """
    solved = solved_at(K, Y, weights, lam, intercept, blocks is None)
    if solved is None:
        return None
    W, inverse = solved
    if blocks is None:
        return W / inverse
    residual = np.zeros_like(W)
    for block in map(np.sort, blocks):  # in this order its entries are in the lower triangle
        part = np.tril(inverse[np.ix_(block, block)])
        residual[:, block] = _definite_solve(part + np.tril(part, -1).T, W[:, block].T).T
    return residual


def solved_at(
    K: Array | FactoredGram, Y: Array, weights: Array, lam: float, intercept: bool, diagonal: bool = False
) -> tuple[Array, Array] | None:
    """Coefficients w of ridge regression, shape (n_outputs, m), and the matrix that takes targets to them.

    A matrix K is overwritten. Of the inverse there is the lower triangle, or the diagonal where that is asked for and
    for a FactoredGram; the residual of row i is ``lam w_i / s_i``. None where ``K + lam S^-1`` is not definite at
    working precision. O(m^3), or O(m rank^2).
    """
    right = np.vstack([Y, np.ones((1, len(weights)))]).T
    if isinstance(K, FactoredGram):
        solved = _solved_by_factors(K, right, weights, lam)
    else:
        solved = inverted(K, lam / weights, right, diagonal)
    if solved is None:
        return None
    (inverse, columns), ones = solved, solved[1][:, -1]
    W = columns[:, :-1]
    if intercept:
        W = W - np.outer(ones, W.sum(axis=0) / ones.sum())
        inverse = projected(inverse, ones) if inverse.ndim == 2 else inverse - ones**2 / ones.sum()
    return W.T, inverse


def inverted(K: Array, ridge: Array, right: Array, diagonal: bool = False) -> tuple[Array, Array] | None:
    """The lower triangle of ``A^-1``, ``A = K + diag(ridge)``, in place of that of K, and ``A^-1 right``.

    Or its `diagonal`, squared lengths of the columns of ``L^-1``, ``A = L L'``, in four fifths of the time. None where
    A is not definite at working precision, which is that of K.
    """
    factorize, solve, invert = get_lapack_funcs(("potrf", "potrs", "trtri" if diagonal else "potri"), (K,))
    K[np.diag_indices_from(K)] += ridge.astype(K.dtype)
    _flushed(K)
    with threads_to_factorize(len(K)):
        # The lower triangle in C order is the upper one of the transpose, which LAPACK sees.
        factor, failed = factorize(K.T, lower=diagonal, overwrite_a=1, clean=diagonal)
        if failed:
            return None
        solved = solve(factor, right, lower=diagonal)[0]
        inverse, failed = invert(factor, lower=diagonal, overwrite_c=1)
    if failed or not np.isfinite(inverse.diagonal()).all():
        return None
    if diagonal:
        return np.einsum("ij,ij->i", inverse.T, inverse.T, dtype=np.float64), solved
    return _flushed(inverse.T), solved


def _flushed(A: Array) -> Array:
    """The matrix, in float32 without entries far below a unit in the last place of all on the diagonal."""
    return flush(A, FLUSHED * float(A.diagonal().min())) if A.dtype == np.float32 else A


def projected(A: Array, ones: Array) -> Array:
    """The lower triangle of ``A - A 1 1' A / 1'A 1`` in place of that of A, ``ones`` being ``A 1``."""
    (update,) = get_blas_funcs(("syr",), (A,))
    return np.asarray(update(-1.0 / float(ones.sum(dtype=np.float64)), ones, a=A.T, lower=0, overwrite_a=1)).T


def _solved_by_factors(K: FactoredGram, right: Array, weights: Array, lam: float) -> tuple[Array, Array] | None:
    """The diagonal of ``A^-1`` and ``A^-1 right`` for ``K = Psi Psi'``, in O(m rank^2).

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
    return diagonal, W


def _definite_solve(A: Array, right: Array) -> Array:
    try:
        return np.asarray(cho_solve(cho_factor(A, check_finite=False), right, check_finite=False))
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0], dtype=np.float64)
