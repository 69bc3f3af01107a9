"""Held-out risk of any kernel machine of the library, with its gradient through the inner convex solve.

The machine is trained on one part of the rows and judged on another, or on every fold in turn. Where the active set of
its dual stays what it is, the free coefficients F and the intercept solve

    K_FF w_F + diag w_F + b 1 = y_F - K_FB w_B,       1'w_F = -1'w_B,

with coefficients w_B at their bounds. So one more solve with the same matrix, for the adjoint (p, p_b), gives all
derivatives of the risk: -p w' in the training matrix, and g w' in the matrix between held-out and training rows,
g being the slope of the risk in the predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from convexkernels.kernels.hierarchical_tree import KernelTree
from convexkernels.linalg import shifted_cholesky
from convexkernels.losses.base import Loss
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.outer.hierarchical_risk import LARGEST_LOG

__all__ = ["HeldOut", "HeldOutAt", "Judge", "epsilon_judge", "hinge_judge", "squared_judge"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
# Targets and predictions -> losses and their slopes in the predictions, entry by entry.
Judge = Callable[[Array, Array], tuple[Array, Array]]

# Added to the free block, relative to its diagonal, where it is singular to rounding.
JITTER = 1e-10
# Coefficients this close to a bound, relative to the width of their box, are at it.
AT_BOUND = 1e-8


def squared_judge(Y: Array, F: Array) -> tuple[Array, Array]:
    """Squared errors."""
    return np.square(F - Y), 2.0 * (F - Y)


def hinge_judge(Y: Array, F: Array) -> tuple[Array, Array]:
    """Hinge losses of labels -1 and 1."""
    slack = 1.0 - Y * F
    return np.maximum(slack, 0.0), np.where(slack > 0.0, -Y, 0.0)


def epsilon_judge(epsilon: float) -> Judge:
    """Deviations beyond epsilon."""

    def judge(Y: Array, F: Array) -> tuple[Array, Array]:
        excess = np.abs(F - Y) - epsilon
        return np.maximum(excess, 0.0), np.where(excess > 0.0, np.sign(F - Y), 0.0)

    return judge


class HeldOut:
    """The risk as a function of ``(log w, log lam)``.

    Parameters
    ----------
    tree : KernelTree
    X : ndarray of shape (m, n)
    Y : ndarray of shape (m, outputs)
    weights : ndarray of shape (m,), > 0
    folds : sequence of (training rows, held-out rows)
    make_loss : callable
        lam -> the loss whose machine minimises ``sum weights * loss + lam |f|^2``, up to a factor.
    judge : Judge
    clip : float or None
        Predictions are clipped to [-clip, clip] before they are judged.
    offset : ndarray of shape (outputs,), optional
        Where machines start from: they learn ``Y - offset``. 0 when not given.
    tol : float
        Relative duality gap of the inner solves; errors of the gradient are of the order of its root.
    """

    def __init__(
        self,
        tree: KernelTree,
        X: Array,
        Y: Array,
        weights: Array,
        folds: Sequence[tuple[Rows, Rows]],
        make_loss: Callable[[float], Loss],
        judge: Judge,
        clip: float | None = None,
        offset: Array | None = None,
        tol: float = 1e-8,
    ) -> None:
        self.offset = np.zeros(Y.shape[1]) if offset is None else offset
        self.tree, self.X, self.Y, self.weights = tree, X, Y, weights
        self.folds, self.make_loss, self.judge, self.clip, self.tol = folds, make_loss, judge, clip, tol
        held_out = np.concatenate([validation for _, validation in folds])
        self.total = float(weights[held_out].sum()) * Y.shape[1]
        self.last: dict[int, Array] = {}  # dual variables of each fold, where the next solve starts

    def lam(self, point: Array) -> float:
        """The regularization at a point."""
        return float(np.exp(point[-1]))

    def __call__(self, point: Array) -> HeldOutAt:
        return HeldOutAt(self, point)


@dataclass(eq=False)
class _Trained:
    """The machines of one fold and what they predict outside of it."""

    K: Array
    cross: Array
    alpha: Array  # (outputs, rows)
    w: Array  # (rows, outputs)
    slope: Array  # of the risk in the predictions, (held-out rows, outputs)


class HeldOutAt:
    """The risk at one point."""

    def __init__(self, risk: HeldOut, point: Array) -> None:
        self.risk, self.point = risk, point
        self.value = np.inf
        if not np.isfinite(point).all() or point[:-1].max() > LARGEST_LOG or abs(point[-1]) > 40.0:
            return
        self.squares = np.exp(2.0 * point[:-1])
        self.loss = risk.make_loss(risk.lam(point))
        self.trained = [self._train(number, *fold) for number, fold in enumerate(risk.folds)]
        self.value = float(sum(value for value, _ in self.trained)) / risk.total

    def _train(self, number: int, train: Rows, validation: Rows) -> tuple[float, _Trained]:
        risk, loss = self.risk, self.loss
        K = risk.tree.evaluate(self.squares, risk.X[train]).gram()
        cross = risk.tree.evaluate(self.squares, risk.X[validation], risk.X[train]).gram()
        Y, weights = np.ascontiguousarray((risk.Y[train] - risk.offset).T), risk.weights[train]
        start = risk.last.get(number)
        if start is not None:  # the box moves with lam
            start = np.array([loss.feasible(a, y, weights) for a, y in zip(start, Y, strict=True)])
        alpha = loss.maximise_all(K, Y, weights, start=start, tol=risk.tol)
        risk.last[number] = alpha
        w = np.array([loss.coefficients(a, y) for a, y in zip(alpha, Y, strict=True)]).T
        fitted = K @ w
        b = [loss.primal(f, float(c @ f), y, weights)[1] for f, c, y in zip(fitted.T, w.T, Y, strict=True)]
        F = cross @ w + np.array(b) + risk.offset
        clipped = F if risk.clip is None else np.clip(F, -risk.clip, risk.clip)
        losses, slope = risk.judge(risk.Y[validation], clipped)
        share = risk.weights[validation][:, None]
        return float((share * losses).sum()), _Trained(K, cross, alpha, w, np.where(clipped == F, slope, 0.0) * share)

    def gradient(self) -> Array:
        """Gradient with respect to ``(log w, log lam)``."""
        risk, total = self.risk, np.zeros(len(self.point))
        for (train, validation), (_, fold) in zip(risk.folds, self.trained, strict=True):
            M = np.zeros_like(fold.K)
            for k in range(fold.w.shape[1]):
                p, slope = self._adjoint(fold, risk.Y[train, k] - risk.offset[k], risk.weights[train], k)
                M -= np.outer(p, fold.w[:, k])
                total[-1] += slope
            kernel = risk.tree.evaluate(self.squares, risk.X[train])
            across = risk.tree.evaluate(self.squares, risk.X[validation], risk.X[train])
            total[:-1] += kernel.gradient(M) + across.gradient(fold.slope @ fold.w.T)
        return total / risk.total

    def _adjoint(self, fold: _Trained, y: Array, weights: Array, k: int) -> tuple[Array, float]:
        """The adjoint of one machine, 0 outside its free coefficients, and the slope of its risk in log lam."""
        loss, w, g = self.loss, fold.w[:, k], fold.slope[:, k]
        free, diagonal = _clearly_free(loss, fold.alpha[k], w, y, weights)
        p = np.zeros_like(w)
        bound_moves = -np.where(np.isin(np.arange(w.size), free), 0.0, w)  # prices fall as lam rises
        p_b = 0.0
        if free.size:
            p[free], p_b = _bordered(fold.K[np.ix_(free, free)], diagonal, fold.cross[:, free].T @ g, g, loss.intercept)
        right = -fold.K @ bound_moves
        right[free] -= diagonal * w[free]
        slope = float(g @ (fold.cross @ bound_moves) + p @ right - p_b * bound_moves.sum())
        return p, slope


def _clearly_free(loss: Loss, alpha: Array, w: Array, y: Array, weights: Array) -> tuple[Rows, Array]:
    """The free coefficients without those that only rounding keeps from their bounds."""
    free, diagonal = loss.free(alpha, y, weights)
    if not isinstance(loss, SupportVectorLoss):
        return free, diagonal
    dual = loss.box_dual(y, weights)
    margin = AT_BOUND * (dual.hi - dual.lo)
    inside = (w - dual.lo > margin) & (dual.hi - w > margin) & ((np.abs(w) > margin) | (dual.eps == 0.0))
    kept = inside[free]
    return free[kept], diagonal[kept]


def _bordered(block: Array, diagonal: Array, right: Array, g: Array, intercept: bool) -> tuple[Array, float]:
    """Solve ``[A 1; 1' 0] (p, p_b) = (right, sum g)`` with ``A = block + diag``, without the border if no intercept."""
    A = block + np.diag(diagonal)
    factor = shifted_cholesky(A, JITTER * float(np.trace(A)) / len(A))
    if factor is None:  # numbers are not finite: no direction, and the search keeps what it has
        return np.zeros(len(A)), 0.0
    solved = cho_solve(factor, np.column_stack([right, np.ones(len(A))]), check_finite=False)
    if not intercept:
        return solved[:, 0], 0.0
    p_b = float((solved[:, 0].sum() - g.sum()) / solved[:, 1].sum())
    return solved[:, 0] - p_b * solved[:, 1], p_b
