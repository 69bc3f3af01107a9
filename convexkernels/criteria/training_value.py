"""The optimal value of the training problem itself, as a function of the Gram matrix."""

from __future__ import annotations

import numpy as np

from convexkernels.arrays import Array
from convexkernels.criteria.base import BoundCriterion, Criterion, CriterionValue
from convexkernels.losses.fit import Fit, fit, measure
from convexkernels.validation import check_number


class BoundTrainingValue(BoundCriterion):
    """The training value for given targets, passing each solution on as the next one's start."""

    def prepare(self) -> None:
        # A diagonal of its own makes the coefficients of these losses unique.
        counted = (self.weights > 0).sum()
        unique = all(self.loss.free(np.zeros_like(y), y, self.weights)[0].size == counted for y in self.Y)
        self.tol, self.ridge = self.criterion.tol, 0.0 if unique else self.criterion.ridge
        self.last: Array | None = None

    def lam(self, log_lam: float) -> float:
        return self.loss.lam

    def regularized(self, K: Array) -> Array:
        """`K` with its ridge, in place."""
        if self.ridge > 0.0:
            K.flat[:: len(K) + 1] += self.ridge * float(np.trace(K)) / len(K)
        return K

    def train(self, K: Array, log_lam: float, tol: float) -> Fit:
        return fit(self.loss, self.regularized(K), self.Y, self.weights, tol=min(tol, self.tol))

    def known(self, K: Array) -> Fit | None:
        if self.last is None:
            return None
        return measure(self.loss, self.regularized(K), self.Y, self.weights, self.last)

    def __call__(self, K: Array, log_lam: float) -> TrainingValueAt:
        loss = self.loss
        alpha, W, value = loss.optimum(self.regularized(K), self.Y, self.weights, start=self.last, tol=self.tol)
        if np.isfinite(value):
            self.last = alpha
        return TrainingValueAt(self, W, value / loss.cost)


class TrainingValueAt(CriterionValue):
    """V at one matrix."""

    def __init__(self, bound: BoundTrainingValue, W: Array, value: float) -> None:
        self.bound, self.W = bound, W
        # The dual value: with alpha held fixed its derivative is exactly the one of the envelope theorem.
        self.value = value if np.isfinite(value) and value >= 0.0 else np.inf

    def slopes(self) -> tuple[Array, float]:
        W = self.W
        M = (-self.bound.loss.lam * W.T) @ W
        if self.bound.ridge > 0.0:
            M.flat[:: len(M) + 1] += self.bound.ridge * float(np.trace(M)) / len(M)
        return M, 0.0


class TrainingValue(Criterion):
    """``V(K) = min over f, b of sum_i weights_i loss(y_i, f(x_i) + b) + lam |f|^2``, lam being that of the loss.

    By the envelope theorem ``dV/dK = -lam sum_k w_k w_k'`` for the coefficients w_k of the solution: nothing is
    differentiated through the inner solve. For interpolation V is [BGR19 (Int)] without its norms, for least squares
    [BGR19 (Reg)]. On a convex family this is the convex problem of kernel learning itself.

    Parameters
    ----------
    tol : float, > 0
        Relative duality gap of the inner solves; each starts from the one before.
    ridge : float, >= 0
        Added to the diagonal of K, relative to its mean, for losses whose coefficients are not unique where K is
        nearly singular: V would have kinks there, on which a search ends.
    """

    _bound = BoundTrainingValue

    learns_lam = False
    resolution = 1e-11

    def __init__(self, tol: float = 1e-10, ridge: float = 1e-4) -> None:
        self.tol = check_number("tol", tol, low=0.0, open_low=True)
        self.ridge = check_number("ridge", ridge, low=0.0)
