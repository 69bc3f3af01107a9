"""Quasi-Newton descent on all rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.bfgs import Descent, Limits, descend

# Points that a line search may try; fewer where the criterion says little about small differences.
MANY_TRIALS, FEW_TRIALS = 25, 10
# Ends of a descent after which it may go on in another chart.
ENDED_HERE = (Status.STATIONARY, Status.STALLED, Status.ITERATION_LIMIT)


class QuasiNewton(OuterSolver):
    """BFGS (limited-memory beyond 300 unknowns) in the coordinates that the family offers around the start.

    Parameters
    ----------
    initial : ndarray, optional
        A point to begin with; when not given the plain start of the family, or a narrower one.
    stall_tol : float, optional
        Ten steps that gain less than this fraction are the end. When not given, it is the resolution of the criterion,
        and a search for lam ends, too, where they gain less of a risk than its m rows can tell, ``1 / sqrt(m)``.
    max_iter : int
        Steps.
    random_state : int, numpy.random.Generator or None
        For the start of the family.
    """

    name = "quasi-newton"

    def __init__(
        self, initial: Any = None, stall_tol: float | None = None, max_iter: int = 100, random_state: Any = None
    ) -> None:
        self.initial, self.stall_tol, self.max_iter, self.random_state = initial, stall_tol, max_iter, random_state

    def limits(self, problem: Any, tol: float, deadline: float | None) -> Limits:
        """When a descent ends."""
        resolution, given = problem.criterion.resolution, self.stall_tol
        trials = FEW_TRIALS if resolution > 1e-6 else MANY_TRIALS
        end = np.inf if deadline is None else deadline
        if given is not None:
            return Limits(tol, given, self.max_iter, end, trials)
        return Limits(tol, resolution, self.max_iter, end, trials, told_by_rows(problem))

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        theta = problem.best_start(self.random_state) if self.initial is None else problem.check(self.initial)
        steps = descents(problem, theta, self.limits(problem, tol, deadline))
        return self.step(problem, Iterate(theta, None, np.inf, memory=steps), tol, deadline)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        theta, descent = next(iterate.memory)
        share = descent.n_iter / max(self.max_iter, 1)
        return Iterate(theta, None, descent.value, memory=iterate.memory, status=descent.status, share=share)


def told_by_rows(problem: Any) -> float:
    """The standard error of a risk over its rows, about, as a part of it; what is gained beyond is fitted to them.

    A criterion that learns no lam is no risk: 0.
    """
    return float(1.0 / np.sqrt(problem.m)) if problem.criterion.learns_lam else 0.0


def descents(
    problem: Any, theta: Array, limits: Limits, most_renewals: int | None = None
) -> Iterator[tuple[Array, Descent]]:
    """The points of a descent, one a step; the last one says why it ended.

    Where the family says that it pays, the descent begins again with the chart of the point found, as long as that
    lowers the value, and at most so many times.
    """
    taken, last = 0, np.inf
    renewals = 1
    z, log_lam = problem.split(theta)
    while True:
        chart = problem.gram_set.chart(z)
        allowed = chart.renewals if most_renewals is None else min(chart.renewals, most_renewals)

        def evaluate(u: Array, chart: Any = chart) -> Any:
            return problem.evaluate(chart, u)

        for descent in descend(evaluate, problem.joined(chart.u, log_lam), limits):
            u, log_lam = problem.split(descent.point)
            z = chart.point(u)
            ended, descent.n_iter = descent.status, descent.n_iter + taken
            goes_on = ended in ENDED_HERE and renewals <= allowed
            goes_on = goes_on and descent.value < last * (1.0 - 1e-9)
            if goes_on:
                descent.status = None
            yield problem.joined(z, log_lam), descent
        if not goes_on:
            return
        taken, last, renewals = descent.n_iter, descent.value, renewals + 1
