"""Leave-one-out risk of kernel ridge regression in closed form, with its derivative in the Gram matrix and in lam.

For ``A = (K + lam S^-1)^-1`` (S the sample weights), projected by ``A - A 1 1' A / 1'A 1`` where there is an intercept,
and ``w = A Y``, the residual of the function that has not seen row i is ``r_i = w_i / A_ii``: the risk costs one
factorization, and every row is training and validation row at once. With

    dr_i = -(A dK w)_i / A_ii + w_i (A dK A)_ii / A_ii^2

its slope in K is ``2 A diag(h) A - (A g) w' - w (A g)'``, with ``g_i = c_i r_i / A_ii``, ``h_i = c_i r_i^2 / A_ii`` and
the share c_i of row i. Where predictions are clipped, c_i = 0 at the clipped ones: their losses do not move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

from convexkernels.criteria.base import LARGEST_LOG_LAM, BoundCriterion, Criterion, CriterionValue, clipped
from convexkernels.criteria.ridge import inverted, matrix_path_residuals, projected
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares

Array = NDArray[Any]

# What float32 leaves uncertain in a Gram matrix of unit diagonal: the least lam is a multiple of it.
FLOOR = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-10}


class BoundLeaveOneOut(BoundCriterion):
    """The risk for given targets; float32 matrices halve the time, and lam then stays above 2e-5."""

    def prepare(self) -> None:
        self.columns = self.Y.T.astype(self.dtype)
        self.shares = self.weights / (self.weights.sum() * len(self.Y))

    def lam(self, log_lam: float) -> float:
        return FLOOR[self.dtype] + float(np.exp(log_lam))

    def __call__(self, K: Array, log_lam: float) -> LeaveOneOutAt:
        return LeaveOneOutAt(self, K, log_lam)

    def along(self, K: Array, lams: Array) -> Array:
        path = matrix_path_residuals(K, self.Y, self.weights, lams, intercept=self.loss.intercept)
        return np.array([self.risk(residuals)[0] for residuals in path])

    def risk(self, residuals: Array) -> tuple[float, Array]:
        """Of residuals at rows left out, shape (n_outputs, m), and where predictions are not clipped."""
        predictions, moves = clipped(self.Y - residuals, self.bounds)
        return float(np.square(self.Y - predictions).sum(axis=0) @ self.shares), moves


class LeaveOneOutAt(CriterionValue):
    """The risk at one matrix, of which the lower triangle is read and overwritten."""

    def __init__(self, bound: BoundLeaveOneOut, K: Array, log_lam: float) -> None:
        self.bound, self.log_lam = bound, log_lam
        if not log_lam <= LARGEST_LOG_LAM:
            return
        solved = inverted(K, bound.lam(log_lam) / bound.weights, np.ones((len(K), 1), dtype=K.dtype))
        if solved is None:
            return
        self.A = projected(solved[0], solved[1][:, 0]) if bound.loss.intercept else solved[0]
        self.coefficients = _times(self.A, bound.columns).astype(np.float64)
        self.inverse_diagonal = np.diagonal(self.A).astype(np.float64)
        self.residual = self.coefficients / self.inverse_diagonal[:, None]
        value, self.moves = bound.risk(self.residual.T)
        self.value = value if np.isfinite(value) else np.inf

    def slopes(self) -> tuple[Array, float]:
        bound, A = self.bound, self.A
        moving = np.where(self.moves.T, self.residual, 0.0) * bound.shares[:, None] / self.inverse_diagonal[:, None]
        h = (moving * self.residual).sum(axis=1)
        U, W = _times(A, moving.astype(A.dtype)), self.coefficients.astype(A.dtype)
        # The lower triangle of A in C order is the upper one of its transpose, which BLAS sees.
        full = np.triu(A.T) + np.triu(A.T, 1).T
        full *= np.sqrt(h).astype(A.dtype)[None, :]
        rank_update, two_sided = get_blas_funcs(("syrk", "syr2k"), (A,))
        M = rank_update(2.0, full, lower=0)
        M = two_sided(-1.0, np.asfortranarray(U), np.asfortranarray(W), beta=1.0, c=M, lower=0, overwrite_c=1)
        slope_lam = float(np.diagonal(M).astype(np.float64) @ (1.0 / bound.weights)) * np.exp(self.log_lam)
        return M.T, float(slope_lam)


class LeaveOneOut(Criterion):
    """Weighted mean over rows and outputs of the squared errors of functions that have not seen the row.

    For least squares only; the outputs share the kernel and lam. O(m^3) for value and derivative together.
    """

    _bound = BoundLeaveOneOut

    lower = True

    def accepts(self, loss: Loss) -> str | None:
        if isinstance(loss, LeastSquares):
            return None
        return f"it is a closed form for least squares, not for {loss!r}; use HeldOut"


def _times(A: Array, B: Array) -> Array:
    """The product of a symmetric matrix, given by its lower triangle in C order, and a tall one."""
    (multiply,) = get_blas_funcs(("symm",), (A,))
    return np.asarray(multiply(1.0, A.T, np.asfortranarray(B), side=0, lower=0))
