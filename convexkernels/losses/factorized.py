"""What losses share whose optimum solves linear equations: one factorization serves all outputs."""

from abc import abstractmethod
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.losses.base import BoxDual, Loss


class FactorizedLoss(Loss):
    """``c(w) = y'w - ridge/2 sum_i w_i^2 / weights_i``, w being free where the weight is positive; alpha is w.

    The optimum solves ``(K + ridge diag(1 / weights)) w = y - b``.
    """

    ridge: float = 0.0
    is_of_differences = True

    @abstractmethod
    def _solved(self, K: Array, right: Array, weights: Array, refine: bool) -> Array:
        """Coefficients for targets in the columns of `right`, all weights being positive; K is not modified.

        With `refine` the equations are met as well as rounding allows.
        """

    def _coefficients(self, K: Array, Y: Array, weights: Array, refine: bool) -> Array:
        counted = np.flatnonzero(weights > 0)
        if counted.size == len(K):
            return np.asarray(self._solved(K, Y.T, weights, refine).T)
        W = np.zeros_like(Y)
        W[:, counted] = self._solved(K[np.ix_(counted, counted)], Y[:, counted].T, weights[counted], refine).T
        return W

    def maximize_all(self, K: Array, Y: Array, weights: Array, **_: Any) -> Array:
        """All outputs from one factorization, O(m^3 + n_outputs m^2); there is nothing to start from or to stop."""
        return self._coefficients(K, Y, weights, refine=True)

    def optimum(self, K: Array, Y: Array, weights: Array, **_: Any) -> tuple[Array, Array, float]:
        W = self._coefficients(K, Y, weights, refine=False)
        return W, W, 0.5 * self.scale * float(np.vdot(Y, W))

    def feasible(self, alpha: Array, y: Array, weights: Array) -> Array:
        w = np.where(weights > 0, alpha, 0.0)
        return w - w.sum() / weights.sum() * weights if self.intercept else w

    def free(self, alpha: Array, y: Array, weights: Array) -> tuple[Index, Array]:
        counted = np.flatnonzero(weights > 0)
        return counted, self.ridge / weights[counted]

    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        counted = weights > 0
        reach = np.where(counted, np.inf, 0.0)
        diagonal = self.ridge / np.where(counted, weights, 1.0) if self.ridge > 0.0 else None
        return BoxDual(y, np.zeros_like(y), -reach, reach, diagonal)

    def dual_constant(self, alpha: Array, y: Array, weights: Array) -> float:
        counted = weights > 0
        return float(y @ alpha - 0.5 * self.ridge * (alpha[counted] ** 2 / weights[counted]).sum())
