"""Leave-one-out risk of kernel ridge regression as a function of all kernel weights and of lam, with its gradient.

For ``A = (K + lam S^-1)^-1`` (S the sample weights) and ``w = A Y``, the residual of the machine that has not seen row
i is ``r_i = w_i / A_ii``: the risk costs one factorisation, and every row is training and validation row at once. With

    dr_i = -(A dK w)_i / A_ii + w_i (A dK A)_ii / A_ii^2

its gradient in K is ``2 A diag(h) A - (A g) w' - w (A g)'``, with ``g_i = c_i r_i / A_ii``, ``h_i = c_i r_i^2 / A_ii``
and the share c_i of row i. Where predictions are clipped, c_i = 0 at the clipped ones: their losses do not move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from convexkernels.kernels.hierarchical_tree import KernelTree

__all__ = ["LARGEST_LOG", "LeaveOneOut", "LeaveOneOutAt", "clipped_residual"]

Array = NDArray[Any]

# Larger weights make every node that has one a Kronecker delta on scaled features.
LARGEST_LOG = 8.0
# What float32 leaves uncertain in a Gram matrix of unit diagonal: the least lam is a multiple of it.
FLOOR = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-10}


def clipped_residual(residual: Array, Y: Array, clip: float | None) -> tuple[Array, Array]:
    """Residuals after clipping the predictions ``Y - residual`` to [-clip, clip], and where they still move."""
    if clip is None:
        return residual, np.ones(residual.shape, dtype=bool)
    prediction = Y - residual
    moves = np.abs(prediction) <= clip
    return Y - np.clip(prediction, -clip, clip), moves


class LeaveOneOut:
    """The risk as a function of ``(log w, log lam)``.

    Parameters
    ----------
    tree : KernelTree
    X : ndarray of shape (m, n)
    Y : ndarray of shape (m, outputs)
        The outputs share the kernel and lam; their risks are averaged.
    weights : ndarray of shape (m,)
        Sample weights, > 0.
    clip : float or None
        Predictions are clipped to [-clip, clip] before they are judged.
    offset : ndarray of shape (outputs,), optional
        Where machines start from: they learn ``Y - offset``. 0 when not given.
    dtype : numpy dtype
        float32 halves the time; lam then stays above 2e-5.
    """

    def __init__(
        self,
        tree: KernelTree,
        X: Array,
        Y: Array,
        weights: Array,
        clip: float | None = None,
        offset: Array | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.tree, self.X, self.Y, self.weights, self.clip = tree, X, Y, weights, clip
        self.offset = np.zeros(Y.shape[1]) if offset is None else offset
        self.dtype = np.dtype(dtype)
        self.shares = weights / (weights.sum() * Y.shape[1])
        self.floor = FLOOR[self.dtype]

    def lam(self, point: Array) -> float:
        """The regularization at a point: ``sum_i weights_i (y_i - f(x_i))^2 + lam |f|^2``."""
        return self.floor + float(np.exp(point[-1]))

    def __call__(self, point: Array) -> LeaveOneOutAt:
        return LeaveOneOutAt(self, point)


class LeaveOneOutAt:
    """The risk at one point."""

    def __init__(self, risk: LeaveOneOut, point: Array) -> None:
        self.risk, self.point = risk, point
        self.value = np.inf
        if not np.isfinite(point).all() or point.max() > LARGEST_LOG:
            return
        self.kernel = risk.tree.evaluate(np.exp(2.0 * point[:-1]), risk.X, dtype=risk.dtype)
        K = self.kernel.gram(lower=True)
        K[np.diag_indices_from(K)] += (risk.lam(point) / risk.weights).astype(risk.dtype)
        self.A = _inverse(K)
        if self.A is None:
            return
        centred = (risk.Y - risk.offset).astype(risk.dtype)
        self.coefficients = _times(self.A, centred).astype(np.float64)
        self.inverse_diagonal = np.diagonal(self.A).astype(np.float64)
        self.residual = self.coefficients / self.inverse_diagonal[:, None]
        judged, self.moves = clipped_residual(self.residual, risk.Y, risk.clip)
        self.value = float(risk.shares @ np.square(judged).sum(axis=1))

    def gradient(self) -> Array:
        """Gradient with respect to ``(log w, log lam)``."""
        risk, A = self.risk, self.A
        assert A is not None  # the value is finite
        moving = np.where(self.moves, self.residual, 0.0) * risk.shares[:, None] / self.inverse_diagonal[:, None]
        h = (moving * self.residual).sum(axis=1)
        U, W = _times(A, moving.astype(risk.dtype)), self.coefficients.astype(risk.dtype)
        # The lower triangle of A in C order is the upper one of its transpose, which BLAS sees.
        full = np.triu(A.T) + np.triu(A.T, 1).T
        full *= np.sqrt(h).astype(risk.dtype)[None, :]
        rank_update, two_sided = (blas.ssyrk, blas.ssyr2k) if risk.dtype == np.float32 else (blas.dsyrk, blas.dsyr2k)
        M = rank_update(2.0, full, lower=0)
        M = two_sided(-1.0, np.asfortranarray(U), np.asfortranarray(W), beta=1.0, c=M, lower=0, overwrite_c=1)
        slope_lam = float(np.diagonal(M).astype(np.float64) @ (1.0 / risk.weights)) * np.exp(self.point[-1])
        return np.append(self.kernel.gradient(M.T, lower=True), slope_lam)


def _inverse(K: Array) -> Array | None:
    """The lower triangle of the inverse, in place of that of `K`; None where `K` is not definite."""
    factorise, invert = (lapack.spotrf, lapack.spotri) if K.dtype == np.float32 else (lapack.dpotrf, lapack.dpotri)
    factor, failed = factorise(K.T, lower=0, overwrite_a=1, clean=0)
    if failed:
        return None
    inverse, failed = invert(factor, lower=0, overwrite_c=1)
    return None if failed or not np.isfinite(inverse.ravel(order="K")[:: len(K) + 1]).all() else inverse.T


def _times(A: Array, B: Array) -> Array:
    """The product of a symmetric matrix, given by its lower triangle in C order, and a tall one."""
    multiply = blas.ssymm if A.dtype == np.float32 else blas.dsymm
    return np.asarray(multiply(1.0, A.T, np.asfortranarray(B), side=0, lower=0))
