"""SimpleMKL: reduced gradient on the simplex of kernel weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status

# A component of the weights below this counts as 0.
ZERO = 1e-12


@dataclass(eq=False)
class _Memory:
    evaluation: Any
    gradient: Array
    K: Array


def reduced_direction(mu: Array, gradient: Array) -> tuple[Array, int]:
    """Descent direction of the reduced gradient, and its reference coordinate u, the largest weight.

    ``D_k = g_u - g_k`` where ``mu_k > 0``, or ``mu_k = 0`` and D_k points inside; ``D_u = -sum of the others``, so that
    the sum of the weights stays 1.
    """
    u = int(np.argmax(mu))
    direction = gradient[u] - gradient
    direction[(mu <= ZERO) & (direction < 0.0)] = 0.0
    direction[u] = 0.0
    direction[u] = -direction.sum()
    return direction, u


class ReducedGradient(OuterSolver):
    """SimpleMKL [RBCG08 Algorithm 1].

    The direction is the reduced gradient with the largest weight as reference coordinate. As long as J decreases
    at the point where the first weight reaches 0, that weight is fixed at 0 and the direction updated; then
    follows a line search up to the next such point. The published stopping rule, the duality gap, is the problem's
    certificate.
    """

    name = "reduced-gradient"

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
        inner_tol = iterate.inner_tol()
        direction, u = reduced_direction(memory.evaluation.theta, memory.gradient)
        line = _Line(problem, memory.evaluation, memory.K, direction, inner_tol, deadline)
        moved = False
        # Descent: go on to the point where a weight reaches 0 while J decreases there.
        while line.leaving >= 0:
            far = line.evaluate(line.longest)
            if not far.value < line.here.value:
                moved = line.search(far) or moved
                break
            moved = True
            if line.leaving == u:  # without its reference coordinate the direction is no longer feasible
                line.here = far
                break
            line.arrive(far, u)
        if not moved:
            return self._refine(problem, iterate, inner_tol, deadline)
        here = line.here
        lower, gradient, _ = problem.lower_bound(here)
        # K was moved along the line; rounding is dropped by forming it anew.
        K = problem.gram_set.gram(here.theta, out=memory.K)
        return Iterate(here.theta, here.alpha, here.upper, lower, memory=_Memory(here, gradient, K))

    def _refine(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """No step decreases J: solve the inner problems more exactly, which may be all that is missing."""
        memory: _Memory = iterate.memory
        here = memory.evaluation
        K = problem.gram_set.gram(here.theta, out=memory.K)
        finer = problem.evaluate(here.theta, K=K, start=here.alpha, tol=max(1e-2 * tol, 1e-13), deadline=deadline)
        lower, gradient, _ = problem.lower_bound(finer)
        status = Status.STALLED if lower <= iterate.lower and finer.upper >= iterate.upper else None
        return Iterate(here.theta, finer.alpha, finer.upper, lower, _Memory(finer, gradient, K), status=status)


class _Line:
    """J on the segment from a point along a direction, with K moved instead of formed anew."""

    def __init__(self, problem: Any, here: Any, K: Array, direction: Array, tol: float, deadline: float | None) -> None:
        self.problem = problem
        self.here = here
        self.direction = direction
        self.change = problem.gram_set.gram(direction)
        self.K = K  # at `here` plus `reached` times the change
        self.reached = 0.0
        self.tol = tol
        self.deadline = deadline
        self._look()

    def _look(self) -> None:
        """How far the segment goes: to the first weight that reaches 0, and which it is (-1: none)."""
        mu, falling = self.here.theta, np.flatnonzero(self.direction < 0.0)
        steps = mu[falling] / -self.direction[falling]
        first = int(np.argmin(steps)) if falling.size else -1
        self.longest = float(steps[first]) if falling.size else 0.0
        self.leaving = int(falling[first]) if falling.size else -1

    def evaluate(self, step: float) -> Any:
        self.K += (step - self.reached) * self.change
        self.reached = step
        mu = np.maximum(self.here.theta + step * self.direction, 0.0)
        if step == self.longest:
            mu[self.leaving] = 0.0
        mu[mu <= ZERO] = 0.0
        mu /= mu.sum()
        return self.problem.evaluate(mu, K=self.K, start=self.here.alpha, tol=self.tol, deadline=self.deadline)

    def slope(self, evaluation: Any) -> float:
        return -0.5 * self.problem.loss.scale * float(sum(w @ (self.change @ w) for w in evaluation.W))

    def arrive(self, far: Any, u: int) -> None:
        """Continue from the end of the segment, without the weight that reached 0."""
        direction = self.direction.copy()
        direction[[self.leaving, u]] = 0.0
        direction[u] = -direction.sum()  # exactly, or rounding alone would drive the reference to 0
        self.change += self.problem.gram_set.gram(direction - self.direction)
        self.direction = direction
        self.here, self.reached = far, 0.0
        self._look()

    def search(self, far: Any) -> bool:
        """Move to a low point of the segment, by the sign of the slope and a safeguarded secant."""
        low, high = 0.0, self.longest
        slope_low = first = self.slope(self.here)
        slope_high = self.slope(far)
        if not slope_low < 0.0 or not slope_high > 0.0:
            return False
        best = self.here
        for _ in range(20):
            secant = low - slope_low * (high - low) / (slope_high - slope_low)
            trial = float(np.clip(secant, low + 0.05 * (high - low), high - 0.05 * (high - low)))
            found = self.evaluate(trial)
            if found.value < best.value:
                best = found
            slope = self.slope(found)
            if slope < 0.0:
                low, slope_low = trial, slope
            else:
                high, slope_high = trial, slope
            if abs(slope) <= 0.1 * abs(first) or high - low <= 1e-6 * self.longest:
                break
        moved = best is not self.here
        self.here = best
        return moved
