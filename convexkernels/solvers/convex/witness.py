"""Lower bounds from several dual points together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from convexkernels.arrays import Array

Support = Callable[[Array], tuple[float, Array]]


# Points kept besides the best combination, points mixed in at a time, and evaluations of a line search.
KEPT, MIXED, EVALUATIONS = 12, 3, 12


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Dual variables, their concave part ``scale * c(alpha)`` and half their adjoint ``scale / 2 * A*(w w')``.

    Of a convex combination of points both are kept combined too. That is on the safe side: c is concave, and
    ``A*(w w')`` of the combined alpha is below the combination, in the order in which support functions grow.
    """

    alpha: Array
    constant: float
    half: Array

    def towards(self, other: DualPoint, t: float) -> DualPoint:
        """``(1 - t) self + t other``."""
        return DualPoint(
            (1.0 - t) * self.alpha + t * other.alpha,
            (1.0 - t) * self.constant + t * other.constant,
            (1.0 - t) * self.half + t * other.half,
        )


class DualPoints:
    """The last dual points, combined for the best lower bound; `support` is that of the `GramSet`.

    The inner problem of one theta proves little where its dual variables are not unique (singular Gram matrices) or not
    yet settled; a combination of those seen at nearby theta proves more. The bound ``sum_j t_j constant_j - sigma(sum_j
    t_j half_j)`` is concave in the weights t.
    """

    def __init__(self, support: Support) -> None:
        self.support = support
        self.points: list[DualPoint] = []
        self.best: DualPoint | None = None
        self.lower = -np.inf

    def bound(self, point: DualPoint) -> float:
        """Lower bound of the optimum that a point proves."""
        return point.constant - self.support(point.half)[0]

    def add(self, point: DualPoint, lower: float) -> None:
        """Take in a point whose bound is `lower`, and improve the best combination."""
        if self.best is None or lower > self.lower:
            previous, self.best, self.lower = self.best, point, lower
            if previous is not None:
                self.points.append(previous)
        else:
            self.points.append(point)
        self.points = self.points[-KEPT:]
        for _ in range(MIXED):
            if not self._mix():
                break

    def _mix(self) -> bool:
        """Move the best combination towards the point that promises most; False when none does."""
        assert self.best is not None
        _, vertex = self.support(self.best.half)
        promises = [point.constant - float(np.vdot(point.half, vertex)) for point in self.points]
        if not promises or max(promises) <= self.lower + 1e-9 * abs(self.lower):
            return False
        best, other = self.best, self.points[int(np.argmax(promises))]
        t = _golden_maximum(lambda t: self.bound(best.towards(other, t)))
        mixed = best.towards(other, t)
        lower = self.bound(mixed)
        if lower <= self.lower:
            return False
        self.best, self.lower = mixed, lower
        return True


def _golden_maximum(function: Callable[[float], float]) -> float:
    """Where a concave function on [0, 1] is (nearly) largest."""
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    low, high = 0.0, 1.0
    left, right = high - ratio, low + ratio
    at_left, at_right = function(left), function(right)
    for _ in range(EVALUATIONS - 2):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return left if at_left >= at_right else right
