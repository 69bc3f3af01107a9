"""The pinball loss: quantile regression."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import BoxDual, LossStatement
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.validation import check_number


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

    is_of_differences = bears_outliers = True
    has_level = True

    def __init__(self, C: float = 1.0, quantile: float = 0.5, intercept: bool = True) -> None:
        super().__init__(C, intercept)
        self.quantile = check_number("quantile", quantile, low=0.0, high=1.0, open_low=True)
        if self.quantile >= 1.0:
            raise InvalidInputError(f"quantile must lie strictly between 0 and 1, got {quantile!r}.")

    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        cost = self.C * weights
        return BoxDual(y, np.zeros_like(y), -(1.0 - self.quantile) * cost, self.quantile * cost)

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        residual, q = Y - F, self.quantile
        return np.maximum(q * residual, (q - 1.0) * residual), np.where(residual > 0.0, -q, 1.0 - q)

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f, fitted, variables = self._fitted(y.size)
        above = variables["xi"] = cp.Variable(y.size, nonneg=True, name="xi")
        below = variables["xi_star"] = cp.Variable(y.size, nonneg=True, name="xi_star")
        cost = self.C * (weights @ (self.quantile * above + (1.0 - self.quantile) * below))
        return LossStatement(f, cost, [y - fitted == above - below], variables)
