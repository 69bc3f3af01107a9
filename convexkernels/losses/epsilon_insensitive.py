"""The epsilon-insensitive loss: support vector regression."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.losses.base import BoxDual, LossStatement
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.validation import check_number

# Of the root mean squared error that is to be expected: a compromise between support vectors and noise.
SUITED_EPSILON = 0.25
# Deviations that cost nothing, of half the range of the targets: where nothing is known of errors, and the least one.
EPSILON, LEAST_EPSILON = 0.05, 1e-3


class EpsilonInsensitive(SupportVectorLoss):
    """``J(K) = max y'w - epsilon sum |w| - 1/2 w'Kw``, ``|w| <= C * weights``, ``[sum w = 0]``; alpha is w.

    Its primal is ``min over f, b of 1/2 |f|^2 + C sum_i weights_i max(0, |y_i - f(x_i) - b| - epsilon)``.

    Parameters
    ----------
    C : float, > 0
        Price of one unit of deviation beyond `epsilon`.
    epsilon : float, >= 0
        Deviation that costs nothing, in units of y.
    intercept : bool
        Whether b is fitted.
    """

    is_of_differences = True

    def __init__(self, C: float = 1.0, epsilon: float = 0.1, intercept: bool = True) -> None:
        super().__init__(C, intercept)
        self.epsilon = check_number("epsilon", epsilon, low=0.0)

    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        cost = self.C * weights
        return BoxDual(y, np.full_like(y, self.epsilon), -cost, cost)

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        excess = np.abs(F - Y) - self.epsilon
        return np.maximum(excess, 0.0), np.where(excess > 0.0, np.sign(F - Y), 0.0)

    def held_out(self, Y: Array, F: Array) -> Array:
        """Squares: the tube is a means, what support vector regression is scored by is R^2."""
        return np.square(Y - F)

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f, fitted, variables = self._fitted(y.size)
        over = variables["xi"] = cp.Variable(y.size, nonneg=True, name="xi")
        under = variables["xi_star"] = cp.Variable(y.size, nonneg=True, name="xi_star")
        constraints = [y - fitted <= self.epsilon + over, fitted - y <= self.epsilon + under]
        return LossStatement(f, self.C * (weights @ (over + under)), constraints, variables)


def epsilon_for(risk: float) -> float:
    """The epsilon for targets on [-1, 1] and a mean squared error that is expected, NaN where nothing is known."""
    return max(SUITED_EPSILON * float(np.sqrt(risk)), LEAST_EPSILON) if np.isfinite(risk) else EPSILON
