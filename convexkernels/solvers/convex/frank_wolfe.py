"""Frank-Wolfe on the parameter of the kernel, with an exact line search."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.convex.witness import DualPoint, DualPoints


@dataclass(eq=False)
class _Memory:
    evaluation: Any
    vertex: Array
    K: Array
    points: DualPoints


class FrankWolfe(OuterSolver):
    """Steps towards the vertex of Theta that the linearized problem chooses.

    Colbert, Talitckii and Peet (2020, 2023) alternate an SVM and a singular value decomposition in this way.
    Here the step length minimizes J on the segment: J is convex with slope ``-scale / 2 w'(K_vertex - K) w``,
    whose sign change is bracketed. The tail of the method is slow (sublinear where the optimum is no vertex):
    it serves as a cross-check of the default solver. Where Gram matrices of the family are singular, J has kinks
    and the method can stall at one.
    """

    name = "frank-wolfe"
    sublinear = True

    def accepts(self, problem: Any) -> str | None:
        return None if problem.gram_set.has_support else "its family has no cheap support function; use 'conic'"

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        theta = problem.gram_set.initial()
        K = problem.gram_set.gram(theta)
        evaluation = problem.evaluate(theta, K=K, tol=1e-3, deadline=deadline)
        return self._iterate(problem, evaluation, K, DualPoints(problem.gram_set.support))

    def _iterate(self, problem: Any, found: Any, K: Array, points: DualPoints) -> Iterate:
        """The point evaluated, and the best lower bound that its dual variables and earlier ones prove together."""
        lower, gradient, vertex = problem.lower_bound(found)
        points.add(DualPoint(found.alpha, found.constant, -gradient), lower)
        witness = None
        if points.best is not None and points.lower > lower:
            witness, lower = points.best.alpha, points.lower
        memory = _Memory(found, vertex, K, points)
        return Iterate(found.theta, found.alpha, found.upper, lower, memory=memory, witness=witness)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        memory: _Memory = iterate.memory
        here = memory.evaluation
        inner_tol = iterate.inner_tol()
        direction = memory.vertex - here.theta
        change = problem.gram_set.gram(direction)
        found = self._line_search(problem, here, direction, memory.K, change, inner_tol, deadline)
        if found is None:
            iterate.status = Status.STALLED
            return iterate
        # `memory.K` was moved along the segment by the search; rounding is dropped by forming it anew.
        K = problem.gram_set.gram(found.theta, out=memory.K)
        return self._iterate(problem, found, K, memory.points)

    def _line_search(
        self, problem: Any, here: Any, direction: Array, K: Array, change: Array, tol: float, deadline: float | None
    ) -> Any:
        """Evaluation at (nearly) the lowest point of the segment; None when no point of it is lower."""
        low, high, reached = 0.0, 1.0, 0.0
        slope_low = first = _slope(here.W, change)
        slope_high = np.nan
        trial, start, best = 1.0, here.alpha, None
        for _ in range(25):
            K += (trial - reached) * change
            reached = trial
            found = problem.evaluate(here.theta + trial * direction, K=K, start=start, tol=tol, deadline=deadline)
            start = found.alpha
            if best is None or found.value < best.value:
                best = found
            slope = _slope(found.W, change)
            if slope < 0.0:
                if trial == 1.0:
                    break
                low, slope_low = trial, slope
            else:
                high, slope_high = trial, slope
            if abs(slope) <= 1e-2 * abs(first) or high - low <= 1e-6 * high:
                break
            rise = slope_high - slope_low
            # Without a change of sign, or with infinite slopes, rounding has won: halve.
            share = -slope_low / rise if slope_low < 0.0 < rise < np.inf else 0.5
            trial = low + min(max(share, 0.05), 0.95) * (high - low)
        return best if best is not None and best.value < here.value * (1.0 + tol) else None


def _slope(W: Array, change: Array) -> float:
    """Slope of J along the segment, up to the positive factor scale / 2."""
    return -float(sum(w @ (change @ w) for w in W))
