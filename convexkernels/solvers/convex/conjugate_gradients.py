"""Kernel ridge on all rows: conjugate gradients on tiles of the matrix, audited in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.driver import run
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.operator import GramOperator, OutOfTimeError
from convexkernels.losses.base import check_regularization
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.convex.held_out_path import HeldOutPath
from convexkernels.solvers.convex.preparation import Preparation, Stage
from convexkernels.solvers.convex.shifted_systems import ShiftedSystems
from convexkernels.threads import threads_for

if TYPE_CHECKING:
    from convexkernels.problems.fixed_kernel import FixedKernel
    from convexkernels.progress import Silent
    from convexkernels.solution import Solution

# Rows on which values by rounded tiles are compared with exact ones.
AUDITED = 512
# Shares of the tolerance that values by rounded tiles have to meet before they are compared, and then exact ones: from
# the rest, the certificate charges for rounding.
OWN_SHARE, EXACT_SHARE = 0.5, 0.8
# Share of the time limit that the choice of lam may take, of the work that it is, and where the certificate begins.
CHOICE_SHARE, CHOICE, BEFORE_CERTIFICATE = 0.5, 0.6, 0.9


class ConjugateGradients(OuterSolver):
    """Steps for all outputs at once; where rounded tiles end, values are formed anew in float64.

    Parameters
    ----------
    prepared : Preparation, optional
        Tiles and a preconditioner that are at hand.
    begin : tuple of ndarray, optional
        Coefficients to begin with, and the values of their functions.
    clock : Clock, optional
        Is told how the work goes.
    trace : dict, optional
        What was found before.
    """

    name = "conjugate-gradients"
    max_iter = 1000
    # Values by rounded tiles are not comparable to the last digits, and steps never lose: the last point is the answer.
    values_compare = False

    def __init__(
        self,
        prepared: Preparation | None = None,
        begin: tuple[Array, Array] | None = None,
        clock: Clock | None = None,
        trace: dict[str, Array] | None = None,
    ) -> None:
        self.prepared, self.begin, self.clock, self.trace = prepared, begin, clock, trace or {}
        self.stage = Stage(clock, "conjugate gradients", 0.0, BEFORE_CERTIFICATE)
        self._formed_anew = np.inf

    def accepts(self, problem: Any) -> str | None:
        return None if hasattr(problem, "kernel_") else "it solves for one kernel, a FixedKernel"

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        W, F = (np.zeros(problem.Y.shape), np.zeros(problem.Y.shape)) if self.begin is None else self.begin
        found = _unproven(self._iterate(problem, W, F), tol)
        if self.clock is not None and self.clock.interrupted:
            found.status = Status.INTERRUPTED
        return found

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        systems: ShiftedSystems = iterate.memory
        try:
            if systems is None:
                systems = self._systems(problem)
            went = systems.step(np.arange(len(systems.Y)), deadline, self.stage)
            found = self._iterate(problem, systems.W, systems.F, systems)
            self.stage.reached((found.upper - found.lower) / abs(found.upper), tol)
            gaps = systems.gaps()
            ended = not went or gaps[~systems.moving].sum() > 0.5 * gaps.sum()
            if ended or found.upper - found.lower <= OWN_SHARE * tol * abs(found.upper):
                return self._audited(problem, systems, found, tol, deadline)
        except OutOfTimeError:
            iterate.status = Status.TIME_LIMIT
            return iterate
        return _unproven(found, tol)

    def findings(self, iterate: Iterate) -> dict[str, Any]:
        return {"trace": self.trace}

    def _systems(self, problem: FixedKernel) -> ShiftedSystems:
        prepared = Preparation(problem) if self.prepared is None else self.prepared
        lams, begin = np.full(len(problem.Y), problem.loss.lam), () if self.begin is None else self.begin
        return ShiftedSystems(prepared.operator, prepared.low_rank, problem.Y, lams, problem.loss.intercept, *begin)

    def _iterate(self, problem: FixedKernel, W: Array, F: Array, systems: ShiftedSystems | None = None) -> Iterate:
        found = problem.measure(problem.feasible(W), F)
        return Iterate(np.zeros(0), found.alpha, found.upper, found.value, memory=systems)

    def _audited(
        self, problem: FixedKernel, systems: ShiftedSystems, found: Iterate, tol: float, deadline: float | None
    ) -> Iterate:
        """Compare values on some rows with exact ones; where these do not meet the tolerance, form all of them anew."""
        m = problem.m
        rows = np.arange(m) if m <= AUDITED else np.sort(np.random.default_rng(0).choice(m, AUDITED, replace=False))
        error = systems.W @ systems.operator.rows(rows).T - systems.F[:, rows]
        gap = m / len(rows) * float((np.square(systems.R[:, rows] - error) @ systems.weights[rows]).sum())
        if gap <= EXACT_SHARE * tol * abs(found.upper):
            return found
        exact = GramOperator(problem.kernel_, problem.X, np.float64)
        systems.begin_again(exact.product(systems.W, deadline, self.stage))
        found = self._iterate(problem, systems.W, systems.F, systems)
        gap = float(systems.gaps().sum())
        found.status = Status.STALLED if gap > 0.5 * self._formed_anew else None
        self._formed_anew = gap
        return found if gap <= EXACT_SHARE * tol * abs(found.upper) else _unproven(found, tol)


def _unproven(iterate: Iterate, tol: float) -> Iterate:
    """A point whose values rounded tiles have made: it does not claim the tolerance."""
    iterate.lower = min(iterate.lower, iterate.upper - 1.01 * tol * abs(iterate.upper))
    return iterate


def solve_on_all_rows(
    problem: FixedKernel,
    *,
    lams: Sequence[float] | None,
    tol: float,
    max_time: float | None,
    max_iter: int | None,
    progress: bool | Silent,
    random_state: Any,
) -> Solution:
    """Choose lam, and solve; see :meth:`FixedKernel.solve`."""
    if lams is not None and len(lams) == 0:
        raise InvalidInputError("lams is empty; name at least one candidate, or pass None.")
    if lams is not None:
        lams = [check_regularization("lams", lam) for lam in lams]
    clock = Clock(max_time, progress)
    clock.show.note(f"{problem!r}: tiles and a preconditioner")
    with threads_for(problem.m):
        prepared = Preparation(problem)
        if max_time is not None:  # the certificate comes after the last step
            clock.max_time = max(max_time - prepared.seconds_of_certificate(), 0.5 * max_time)
        solver = ConjugateGradients(prepared, clock=clock)
        if lams is not None and len(lams) == 1:
            problem = problem.with_loss(problem.loss.at(lams[0]))
        elif problem.m > 1:
            path = HeldOutPath.of(problem, prepared, np.random.default_rng(random_state))
            _follow(path, lams, clock)
            lam, solver.begin = path.chosen()
            solver.stage.first = CHOICE
            solver.trace, problem = path.trace(), problem.with_loss(problem.loss.at(lam))
        return run(problem, solver, tol=tol, max_iter=max_iter, clock=clock)


def _follow(path: HeldOutPath, lams: Sequence[float] | None, clock: Clock) -> None:
    """Run along the path within its share of the time; an interrupt is kept in mind."""
    part = clock.part(CHOICE_SHARE)
    deadline = None if part.left is None else part.deadline
    try:
        path.run(lams, deadline, Stage(clock, "choice of lam", 0.0, CHOICE))
    except KeyboardInterrupt:
        clock.interrupt()
