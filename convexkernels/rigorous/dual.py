"""Exactly feasible dual points, and both sides of a loss enclosed, from the box form of its dual."""

import math

import numpy as np

from convexkernels.arrays import Array
from convexkernels.losses.base import BoxDual
from convexkernels.rigorous.rounding import UNDERFLOW, U, sum_above

# Limits and the diagonal of a `BoxDual` come from at most three multiplications.
OUTWARDS = 1.0 + 8.0 * U
INWARDS = 1.0 - 8.0 * U


def exact_point(w: Array, dual: BoxDual, intercept: bool) -> Array:
    """A w near `w` that lies in the exact box and whose entries, with an intercept, sum to 0 exactly.

    The entries become whole multiples of the last place of the largest, whose sums are exact in integers. What is left
    of the sum goes to the entries farthest inside the box, where the objective does not feel it.
    """
    low, high = dual.lo * INWARDS, dual.hi * INWARDS
    w = np.clip(w, low, high)
    largest = float(np.abs(w).max(initial=0.0))
    if not intercept:
        return w
    if not largest > 1e-250:
        return np.zeros_like(w)
    grid = 2.0 ** (math.ceil(math.log2(largest)) - 52)
    floor, ceiling = np.ceil(np.maximum(low / grid, -(2.0**53))), np.floor(np.minimum(high / grid, 2.0**53))
    steps = np.clip(np.rint(w / grid), floor, ceiling)
    rest = sum(int(step) for step in steps.tolist())
    for i in np.argsort(-np.minimum(steps - floor, ceiling - steps), kind="stable").tolist():
        if rest == 0:
            break
        here = int(steps[i])  # differences may need more digits than a double has
        move = min(rest, here - int(floor[i])) if rest > 0 else max(rest, here - int(ceiling[i]))
        steps[i], rest = here - move, rest - move
    return steps * grid if rest == 0 else np.zeros_like(w)


def dual_below(w: Array, dual: BoxDual) -> tuple[float, float, float]:
    """``(linear, quadratic, charge)`` with ``c(s w) >= s linear - s^2 quadratic``, and how much of it is rounding."""
    terms = np.concatenate([dual.lin * w, -dual.eps * np.abs(w)])
    error = sum_above(2.0 * U * np.abs(terms)) + UNDERFLOW
    linear = -sum_above(-terms) - error
    squares = 0.0 if dual.diagonal is None else 0.5 * sum_above(dual.diagonal * w * w * OUTWARDS)
    return linear, squares, error + 16.0 * U * squares


def primal_above(
    dual: BoxDual, f: Array, radius: Array, quadratic: float, b: float, s: float, defect: float = 0.0
) -> float:
    """An upper bound of ``s^2 quadratic / 2 + sum_i phi_i(lin_i - s (f_i + b))`` for all f within `radius`.

    ``phi_i(r) = max over lo_i <= w <= hi_i of r w - eps_i |w| - (diagonal_i - defect) w^2 / 2``; a defect > 0 is what
    K has been raised by on its diagonal.
    """
    residual = dual.lin - s * (f + b)
    error = s * radius + 6.0 * U * (np.abs(dual.lin) + s * (np.abs(f) + abs(b)) + dual.eps) + UNDERFLOW
    over = np.maximum(residual + error - dual.eps, 0.0)
    under = np.maximum(error - residual - dual.eps, 0.0)
    bent = 0.5 * defect * np.maximum(dual.hi, -dual.lo) ** 2 if defect > 0.0 else 0.0
    high = np.where(over > 0.0, dual.hi, 0.0) * over
    low = np.where(under > 0.0, -dual.lo, 0.0) * under
    losses = np.maximum(high, low) + bent
    if dual.diagonal is not None:
        flat = dual.diagonal * INWARDS - defect
        smooth = np.where(flat > 0.0, np.maximum(over, under) ** 2 / np.where(flat > 0.0, 2.0 * flat, 1.0), np.inf)
        losses = np.minimum(losses, smooth)
    return sum_above(np.append(losses * OUTWARDS, 0.5 * s * s * quadratic * OUTWARDS))
