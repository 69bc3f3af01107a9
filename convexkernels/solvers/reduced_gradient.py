"""SimpleMKL: reduced gradient on the simplex of kernel weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.driver import Iterate, OuterSolver

__all__ = ["ReducedGradient", "reduced_direction"]

Array = NDArray[np.float64]

# A component of the weights below this counts as 0.
ZERO = 1e-12


@dataclass(eq=False)
class _Memory:
    evaluation: Any
    gradient: Array
    K: Array


def reduced_direction(mu: Array, gradient: Array) -> tuple[Array, int]:
    """Descent direction of the reduced gradient, and its reference coordinate u, the largest weight.

    ``D_k = g_u - g_k`` where ``mu_k > 0``, or ``mu_k = 0`` and D_k points inside; ``D_u = -sum of the others``, so that the
    sum of the weights stays 1.
    """
    u = int(np.argmax(mu))
    direction = gradient[u] - gradient
    direction[(mu <= ZERO) & (direction < 0.0)] = 0.0
    direction[u] = 0.0
    direction[u] = -direction.sum()
    return direction, u


class ReducedGradient(OuterSolver):
    """SimpleMKL (Rakotomamonjy, Bach, Canu and Grandvalet, JMLR 2008), Algorithm 1.

    The direction is the reduced gradient with the largest weight as reference coordinate. As long as J decreases
    at the point where the first weight reaches 0, that weight is fixed at 0 and the direction updated; then
    follows a line search up to the next such point. The published stopping rule, the duality gap, is the problem's
    certificate.

    Parameters
    ----------
    inner_fraction : float
        Tolerance of the machines as a fraction of the current relative gap.
    """

    name = "reduced-gradient"

    def __init__(self, inner_fraction: float = 0.02) -> None:
        self.inner_fraction = inner_fraction

    def accepts(self, problem: Any) -> str | None:
        if problem.gram_set.is_simplex:
            return None
        return "its family is not the simplex of candidate kernels; use 'spectral-gradient'"

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        mu = problem.gram_set.initial()
        K = problem.gram_set.gram(mu)
        evaluation = problem.evaluate(mu, K=K, tol=1e-3, deadline=deadline)
        lower, gradient, _ = problem.lower_bound(evaluation)
        return Iterate(mu, evaluation.alpha, evaluation.upper, lower, memory=_Memory(evaluation, gradient, K))

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        memory: _Memory = iterate.memory
        gap = (iterate.upper - iterate.lower) / max(abs(iterate.upper), abs(iterate.lower), 1e-300)
        inner_tol = float(np.clip(self.inner_fraction * gap, 1e-12, 1e-3))
        here, K = memory.evaluation, memory.K
        direction, u = reduced_direction(here.theta, memory.gradient)
        moved = False
        # Descent: go on to the point where a weight reaches 0 while J decreases there.
        while True:
            longest, leaving = _longest(here.theta, direction)
            if leaving < 0:
                break
            trial = self._evaluate(problem, here, longest, direction, K, inner_tol, deadline)
            if not trial.value < here.value:
                break
            here, moved = trial, True
            direction[u] += direction[leaving]
            direction[leaving] = 0.0
        found = None
        if leaving >= 0 and longest > 0.0:
            found = self._line_search(problem, here, trial, longest, direction, K, inner_tol, deadline)
        if found is None and not moved:
            return self._refine(problem, iterate, inner_tol, deadline)
        here = found if found is not None else here
        lower, gradient, _ = problem.lower_bound(here)
        return Iterate(here.theta, here.alpha, here.upper, lower, memory=_Memory(here, gradient, K))

    def _evaluate(
        self, problem: Any, here: Any, step: float, direction: Array, K: Array, tol: float, deadline: float | None
    ) -> Any:
        mu = np.maximum(here.theta + step * direction, 0.0)
        mu[mu <= ZERO] = 0.0
        mu /= mu.sum()
        return problem.evaluate(
            mu, K=problem.gram_set.gram(mu, out=K), start=here.alpha, tol=tol, deadline=deadline
        )

    def _line_search(
        self, problem: Any, here: Any, far: Any, longest: float, direction: Array, K: Array, tol: float,
        deadline: float | None,
    ) -> Any:  # fmt: skip
        """Lowest point of the segment, by the sign of the slope (Danskin) and a safeguarded secant."""
        low, high = 0.0, longest
        slope_low = first = self._slope(problem, here, direction)
        slope_high = self._slope(problem, far, direction)
        best = far if far.value < here.value else None
        if not slope_low < 0.0 or slope_high <= 0.0:
            return best
        for _ in range(20):
            secant = low - slope_low * (high - low) / (slope_high - slope_low)
            trial = float(np.clip(secant, low + 0.05 * (high - low), high - 0.05 * (high - low)))
            found = self._evaluate(problem, here, trial, direction, K, tol, deadline)
            if found.value < (here.value if best is None else best.value):
                best = found
            slope = self._slope(problem, found, direction)
            if slope < 0.0:
                low, slope_low = trial, slope
            else:
                high, slope_high = trial, slope
            if abs(slope) <= 0.1 * abs(first) or high - low <= 1e-6 * longest:
                break
        return best

    @staticmethod
    def _slope(problem: Any, evaluation: Any, direction: Array) -> float:
        return -0.5 * problem.loss.scale * float(problem.gram_set.adjoint(evaluation.W) @ direction)

    def _refine(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """No step decreases J: solve the machines more exactly, which may be all that is missing."""
        memory: _Memory = iterate.memory
        here = memory.evaluation
        K = problem.gram_set.gram(here.theta, out=memory.K)
        finer = problem.evaluate(here.theta, K=K, start=here.alpha, tol=max(1e-2 * tol, 1e-13), deadline=deadline)
        lower, gradient, _ = problem.lower_bound(finer)
        stalled = lower <= iterate.lower and finer.upper >= iterate.upper
        return Iterate(
            here.theta, finer.alpha, finer.upper, lower, stalled=stalled, memory=_Memory(finer, gradient, K)
        )


def _longest(mu: Array, direction: Array) -> tuple[float, int]:
    """Step to the first weight that reaches 0, and which it is; (0, -1) when no weight decreases."""
    falling = np.flatnonzero(direction < 0.0)
    if falling.size == 0:
        return 0.0, -1
    steps = mu[falling] / -direction[falling]
    first = int(np.argmin(steps))
    return float(steps[first]), int(falling[first])
