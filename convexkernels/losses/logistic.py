"""The logistic loss: kernel logistic regression."""

import time
from typing import Any

import numpy as np
from scipy.special import entr, expit, logit, xlog1py

from convexkernels.arrays import Array, Index
from convexkernels.linalg import shifted_cholesky, solve_bordered
from convexkernels.losses.base import BoxDual, LossStatement
from convexkernels.losses.weighted import WeightedLoss

# Dual variables keep this distance from their upper bounds, as a share of the box: beyond, float64 has no slope left;
# and this one from 0.
MARGIN, LEAST = 1e-14, 1e-100
LARGEST_INTERCEPT = 60.0
# Margins from which on the loss is 0 in float64.
NO_LOSS = 750.0


class Logistic(WeightedLoss):
    """``J(K) = max of sum_i C_i H(alpha_i / C_i) - 1/2 w'Kw``, ``0 <= alpha_i <= C_i = C weights_i``, ``w = y alpha``.

    H(u) = -u log u - (1 - u) log(1 - u) is the entropy; with an intercept ``sum w = 0``. Its primal is
    ``min over f, b of 1/2 |f|^2 + C sum_i weights_i log(1 + exp(-y_i (f(x_i) + b)))``.

    Parameters
    ----------
    C : float, > 0
        Weight of the sum of the losses.
    intercept : bool
        Whether b is fitted.
    """

    has_parabola = False
    of_labels = True

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        margin = Y * F
        return np.logaddexp(0.0, -margin), -Y * expit(-margin)

    def _maximum(
        self, K: Array, y: Array, weights: Array, start: Array | None, tol: float, deadline: float | None
    ) -> Array:
        """Newton's method on the dual; the entropy keeps alpha inside its box. O(m^3) for each of some ten steps."""
        counted, alpha = np.flatnonzero(weights > 0), np.zeros(len(K))
        K = np.asarray(K if counted.size == len(K) else K[np.ix_(counted, counted)], dtype=np.float64)
        y, weights, cap = y[counted], weights[counted], self.C * weights[counted]
        # From the middle of a box that is large for K, each step would come a hundredth of the way down at most.
        first = min(0.5, 1.0 / max(float((np.diagonal(K) * cap).max()), 1e-300))
        inside = np.full(counted.size, first) if start is None else start[counted] / cap
        inside = np.clip(inside, 1e-6 * first, 1.0 - 1e-6)
        w = y * self.feasible(inside * cap, y, weights)
        for _ in range(100):
            f = K @ w
            dual = self.dual_constant(y * w, y, weights) - 0.5 * float(w @ f)
            upper = self.primal(f, float(w @ f), y, weights)[0]
            closed = upper - dual <= tol * max(abs(upper), abs(dual))
            if deadline is not None and time.monotonic() > deadline:
                break
            # One step more where the gap is closed: it makes the error of w, of the order of its root, as small as it.
            moved = self._newton_step(K, w, f, y, cap, weights, -np.inf if closed else dual)
            w = w if moved is None else moved
            if closed or moved is None:
                break
        alpha[counted] = self.feasible(y * w, y, weights)  # a step that ends on a bound may be rounded across it
        return alpha

    def _newton_step(
        self, K: Array, w: Array, f: Array, y: Array, cap: Array, weights: Array, dual: float
    ) -> Array | None:
        """The next w, strictly inside the box, with a dual value better than `dual`; None where there is none."""
        u = np.clip(y * w / cap, LEAST, 1.0 - MARGIN)
        slope = -y * logit(u) - f
        shifted = K + np.diag(1.0 / (cap * u * (1.0 - u)))
        factor = shifted_cholesky(shifted, 0.0)
        if factor is None:
            return None
        direction, _ = solve_bordered(factor, slope, 0.0, self.intercept)
        change = y * direction / cap
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(change > 0, (1.0 - u) / change, np.where(change < 0, -u / change, np.inf))
        step, gain = min(1.0, 0.99 * float(room.min())), float(slope @ direction)
        while step > 1e-10:
            trial = w + step * direction
            value = self.dual_constant(y * trial, y, weights) - 0.5 * float(trial @ (K @ trial))
            if value >= dual + 1e-4 * step * gain:
                return trial
            step *= 0.5
        return None

    def feasible(self, alpha: Array, y: Array, weights: Array) -> Array:
        alpha = np.clip(alpha, 0.0, self.C * weights)
        if not self.intercept:
            return alpha
        up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
        least = min(up, down)
        return alpha * np.where(y > 0, least / max(up, 1e-300), least / max(down, 1e-300))

    def free(self, alpha: Array, y: Array, weights: Array) -> tuple[Index, Array]:
        counted = np.flatnonzero(weights > 0)
        cap = self.C * weights[counted]
        u = np.clip(alpha[counted] / cap, LEAST, 1.0 - MARGIN)
        return counted, 1.0 / (cap * u * (1.0 - u))

    def parabola(self, w: Array, y: Array, weights: Array) -> BoxDual:
        cap = self.C * weights
        full = np.where(cap > 0.0, cap, 1.0)
        u = np.clip(y * w / full, LEAST, 1.0 - MARGIN)
        diagonal = 1.0 / (full * u * (1.0 - u))
        lin = diagonal * w - y * logit(u)
        return BoxDual(lin, np.zeros_like(y), np.where(y > 0, 0.0, -cap), np.where(y > 0, cap, 0.0), diagonal)

    def dual_constant(self, alpha: Array, y: Array, weights: Array) -> float:
        cap = self.C * weights
        u = np.clip(np.divide(alpha, cap, out=np.zeros_like(alpha), where=cap > 0), 0.0, 1.0)
        return float(cap @ (entr(u) - xlog1py(1.0 - u, -u)))  # of 1 - u few digits of a small u are left

    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float, float]:
        b = _best_intercept(f, y, weights) if self.intercept else 0.0
        return 0.5 * quadratic + self.C * float(weights @ np.logaddexp(0.0, -y * (f + b))), b, 1.0

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f, fitted, variables = self._fitted(y.size)
        cost = variables["losses"] = cp.Variable(name="losses")
        # The cost is a variable of its own, because a matrix inequality needs affine entries.
        losses = self.C * (weights @ cp.logistic(cp.multiply(-y, fitted)))
        return LossStatement(f, cost, [losses <= cost], variables)


def _best_intercept(f: Array, y: Array, weights: Array) -> float:
    """The b of least ``sum weights log(1 + exp(-y (f + b)))``: Newton's method inside a bracket."""
    counted = weights > 0.0
    if (y[counted] == y[counted][0]).all():  # nothing speaks for an end: the infimum, in float64
        sign = float(y[counted][0])
        return sign * (NO_LOSS - float((sign * f[counted]).min()))
    low, high = -LARGEST_INTERCEPT - float(f.max()), LARGEST_INTERCEPT - float(f.min())
    b = 0.0 if low < 0.0 < high else 0.5 * (low + high)
    for _ in range(100):
        p = expit(-y * (f + b))
        slope, curvature = -float(weights @ (y * p)), float(weights @ (p * (1.0 - p)))
        low, high = (b, high) if slope < 0.0 else (low, b)
        following = b - slope / curvature if curvature > 0.0 else np.inf
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - b) <= 1e-15 * max(1.0, abs(b)):
            break
        b = following
    return float(b)
