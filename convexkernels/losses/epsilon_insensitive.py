"""The epsilon-insensitive loss: support vector regression."""

from typing import Any

import numpy as np

from convexkernels.arrays import NORMAL_MEDIAN, Array
from convexkernels.losses.base import BoxDual, LossStatement
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.validation import check_number

# Of the deviation of errors that is to be expected: a compromise between support vectors and noise.
SUITED_EPSILON = 0.25
# Outliers rule the squares of errors where these say more than so many times what the median says: of skewed errors,
# and such as are mostly 0, they mostly say up to three times that. And the least part of the former that the latter is.
OUTLYING, LEAST_DEVIATION = 4.0, 0.01
# Part of the largest deviation of an output below which that of another one is rounding.
CONSTANT = 1e-10
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

    is_of_differences = bears_outliers = True

    def __init__(self, C: float = 1.0, epsilon: float = 0.1, intercept: bool = True) -> None:
        super().__init__(C, intercept)
        self.epsilon = check_number("epsilon", epsilon, low=0.0)

    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        cost = self.C * weights
        return BoxDual(y, np.full_like(y, self.epsilon), -cost, cost)

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        excess = np.abs(F - Y) - self.epsilon
        return np.maximum(excess, 0.0), np.where(excess > 0.0, np.sign(F - Y), 0.0)

    def sizes(self, Y: Array) -> Array:
        return np.abs(Y) + self.epsilon

    def inexact(self, Y: Array, F: Array, b: Array) -> Array:
        difference = super().inexact(Y, F, b)
        return difference + np.abs(F - Y) if self.epsilon > 0.0 else difference  # what epsilon is subtracted from

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f, fitted, variables = self._fitted(y.size)
        over = variables["xi"] = cp.Variable(y.size, nonneg=True, name="xi")
        under = variables["xi_star"] = cp.Variable(y.size, nonneg=True, name="xi_star")
        constraints = [y - fitted <= self.epsilon + over, fitted - y <= self.epsilon + under]
        return LossStatement(f, self.C * (weights @ (over + under)), constraints, variables)


def deviation_of(errors: Array, weights: Array) -> float:
    """Deviation of errors of shape (n_outputs, m): by squares, or, where outliers rule these, by the median size.

    Of several outputs the root mean square of theirs, without those whose errors are no more than rounding: they are
    constants. Weights have shape (m,) or that of the errors.
    """
    unit = float(np.abs(errors).max())
    if not 0.0 < unit < np.inf:
        return unit
    weights = np.broadcast_to(weights, errors.shape)
    each = np.array(
        [_deviation(one / unit, own) if own.any() else 0.0 for one, own in zip(errors, weights, strict=True)]
    )
    return unit * root_mean_square(each)


def root_mean_square(deviations: Array) -> float:
    """Of the outputs that are no constants."""
    return float(np.sqrt(np.mean(deviations[deviations >= CONSTANT * deviations.max()] ** 2)))


def _deviation(errors: Array, weights: Array) -> float:
    by_squares = float(np.sqrt(errors**2 @ weights / weights.sum()))
    by_median = float(np.quantile(np.abs(errors), 0.5, weights=weights, method="inverted_cdf")) / NORMAL_MEDIAN
    return by_squares if by_squares <= OUTLYING * by_median else max(by_median, LEAST_DEVIATION * by_squares)


def epsilon_for(deviation: float, unit: float = 1.0) -> float:
    """The epsilon for targets on [-1, 1] and a deviation of errors in a unit, NaN where nothing is known."""
    return unit * max(SUITED_EPSILON * deviation, LEAST_EPSILON) if np.isfinite(deviation) else EPSILON
