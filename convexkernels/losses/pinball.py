"""The pinball loss: quantile regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import LossStatement, check_regularization, target_rows
from convexkernels.losses.support_vector import BoxDual, SupportVectorLoss
from convexkernels.validation import check_number

__all__ = ["Pinball"]

Array = NDArray[np.float64]


class Pinball(SupportVectorLoss):
    """``J(K) = max y'w - 1/2 w'Kw``, ``-C (1 - quantile) weights <= w <= C quantile weights``, ``[sum w = 0]``.

    Its primal is ``min over f, b of 1/2 |f|^2 + C sum_i weights_i rho(y_i - f(x_i) - b)`` with
    ``rho(r) = max(quantile r, (quantile - 1) r)``, whose minimizer without f is the quantile of y. alpha is w.

    Parameters
    ----------
    C : float, > 0
    quantile : float, strictly between 0 and 1
        0.5 estimates the median.
    intercept : bool
        Whether b is fitted.
    """

    is_of_differences = True

    def __init__(self, C: float = 1.0, quantile: float = 0.5, intercept: bool = True) -> None:
        self.C = check_regularization("C", C)
        self.quantile = check_number("quantile", quantile, low=0.0, high=1.0, open_low=True)
        if self.quantile >= 1.0:
            raise InvalidInputError(f"quantile must lie strictly between 0 and 1, got {quantile!r}.")
        self.intercept = bool(intercept)

    def __repr__(self) -> str:
        return f"Pinball(C={self.C:g}, quantile={self.quantile:g}, intercept={self.intercept})"

    def targets(self, y: Any, m: int) -> Array:
        return target_rows(y, m)

    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        cost = self.C * weights
        return BoxDual(y, np.zeros_like(y), -(1.0 - self.quantile) * cost, self.quantile * cost)

    def dual_variable(self, w: Array, y: Array) -> Array:
        return w

    def coefficients(self, alpha: Array, y: Array) -> Array:
        return alpha

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        residual, q = Y - F, self.quantile
        return np.maximum(q * residual, (q - 1.0) * residual), np.where(residual > 0.0, -q, 1.0 - q)

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f = cp.Variable(y.size, name="f")
        above = cp.Variable(y.size, nonneg=True, name="xi")
        below = cp.Variable(y.size, nonneg=True, name="xi_star")
        variables: dict[str, Any] = {"f": f, "xi": above, "xi_star": below}
        fitted = f
        if self.intercept:
            variables["b"] = cp.Variable(name="b")
            fitted = f + variables["b"]
        cost = self.C * (weights @ (self.quantile * above + (1.0 - self.quantile) * below))
        return LossStatement(f, cost, [y - fitted == above - below], variables)
