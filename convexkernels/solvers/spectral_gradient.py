"""Spectral projected gradient on the parameter of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.driver import Iterate, OuterSolver

__all__ = ["SpectralGradient"]

Array = NDArray[np.float64]


@dataclass(eq=False)
class _Memory:
    evaluation: Any
    gradient: Array
    step: float
    values: list[float]
    K: Array


class SpectralGradient(OuterSolver):
    """Projected gradient with Barzilai-Borwein steps and a non-monotone line search.

    Birgin, Martinez and Raydan (SIAM J. Optim. 2000). J is differentiable with gradient
    ``-scale / 2 A*(w w')`` (Danskin); K is linear in theta, so trial points along a direction cost no
    new Gram matrix. Machines are warm-started and solved to a fraction of the gap still open.

    Parameters
    ----------
    history : int, >= 1
        Number of past values the line search compares with.
    inner_fraction : float
        Tolerance of the machines as a fraction of the current relative gap.
    """

    name = "spectral-gradient"

    def __init__(self, history: int = 5, inner_fraction: float = 0.02) -> None:
        self.history = history
        self.inner_fraction = inner_fraction

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        theta = problem.gram_set.initial()
        K = problem.gram_set.gram(theta)
        evaluation = problem.evaluate(theta, K=K, tol=1e-3, deadline=deadline)
        lower, gradient, vertex = problem.lower_bound(evaluation)
        # A first step about as long as the set: from theta to the best vertex.
        length = np.linalg.norm(vertex - theta)
        step = length / max(np.linalg.norm(gradient), 1e-300)
        memory = _Memory(evaluation, gradient, step, [evaluation.value], K)
        return Iterate(theta, evaluation.alpha, evaluation.upper, lower, memory=memory)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        memory: _Memory = iterate.memory
        gram_set = problem.gram_set
        theta = memory.evaluation.theta
        gap = (iterate.upper - iterate.lower) / max(abs(iterate.upper), abs(iterate.lower), 1e-300)
        inner_tol = float(np.clip(self.inner_fraction * gap, 1e-12, 1e-3))
        direction = gram_set.project(theta - memory.step * memory.gradient) - theta
        slope = float(np.vdot(memory.gradient, direction))
        if not slope < 0.0:
            iterate.stalled = True
            return iterate
        # K changes along the line by multiples of one matrix, which is formed and removed in place.
        K, reached = memory.K, 0.0
        target = max(memory.values[-self.history :])
        eta, start = 1.0, memory.evaluation.alpha
        for _ in range(30):
            trial = theta + eta * direction
            K = gram_set.gram(trial, out=K)
            evaluation = problem.evaluate(trial, K=K, start=start, tol=inner_tol, deadline=deadline)
            reached = evaluation.value
            # The machines are inexact: allow for what they may still gain.
            allowance = inner_tol * abs(reached)
            if reached <= target + 1e-4 * eta * slope + allowance:
                break
            curvature = 2.0 * (reached - memory.evaluation.value - eta * slope) / eta**2
            eta = float(np.clip(-slope / curvature if curvature > 0 else 0.5 * eta, 0.1 * eta, 0.5 * eta))
            start = evaluation.alpha
        else:
            iterate.stalled = True
            return iterate
        lower, gradient, _ = problem.lower_bound(evaluation)
        moved, change = eta * direction, gradient - memory.gradient
        curvature = float(np.vdot(moved, change))
        longest = 1e3 * memory.step
        step = min(float(np.vdot(moved, moved)) / curvature, longest) if curvature > 0 else longest
        memory = _Memory(evaluation, gradient, step, [*memory.values[-self.history :], reached], K)
        return Iterate(trial, evaluation.alpha, evaluation.upper, lower, memory=memory)
