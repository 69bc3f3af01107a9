"""The hinge loss: the soft-margin SVM."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.losses.base import BoxDual, LossStatement
from convexkernels.losses.support_vector import SupportVectorLoss

# A margin that is 1 whatever rounding has done to it.
CLEARANCE = 1.0 + 1e-10


class Hinge(SupportVectorLoss):
    """``J(K) = max sum(alpha) - 1/2 w'Kw``, ``0 <= alpha <= C * weights``, ``w = y * alpha``, ``[y'alpha = 0]``.

    That is the dual [CP20 (3)]. The primal [CP20 (2)] is
    ``min over f, b of 1/2 |f|^2 + C sum_i weights_i max(0, 1 - y_i (f(x_i) + b))``.

    Parameters
    ----------
    C : float, > 0
        Price of one unit of slack; ``2C = 2 / (m lam)`` in the notation of [CP20 (24)].
    intercept : bool
        Whether b is fitted. Without it the equality ``y'alpha = 0`` falls away (``gamma = 0`` in the paper).
    """

    of_labels = True

    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        cost = self.C * weights
        return BoxDual(y, np.zeros_like(y), np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0))

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        slack = 1.0 - Y * F
        is_short = slack > 0.0
        return slack * is_short, -Y * is_short

    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float, float]:
        value, b, multiple = super().primal(f, quadratic, y, weights)
        # Where C is huge for the scale of K, slacks of the size of rounding dominate the objective; the multiple
        # of f that has no slack at all, not even by rounding, is feasible too.
        margins = y * (f + b)
        smallest = float(margins[weights > 0].min())
        if smallest > 0.5 and 0.5 * quadratic * (CLEARANCE / smallest) ** 2 < value:
            multiple = CLEARANCE / smallest
            value = 0.5 * quadratic * multiple**2
        return value, b, multiple

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        m = y.size
        nu = cp.Variable(m, nonneg=True, name="nu")
        delta = cp.Variable(m, nonneg=True, name="delta")
        variables: dict[str, Any] = {"nu": nu, "delta": delta}
        v = 1.0 + nu - delta
        if self.intercept:
            gamma = cp.Variable(name="gamma")
            variables["gamma"] = gamma
            v = v + gamma * y
        cost = self.C * (weights @ delta)
        return LossStatement(cp.multiply(y, v), cost, [], variables, signs=y)
