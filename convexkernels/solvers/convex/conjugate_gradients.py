"""Kernel ridge on all rows: conjugate gradients on tiles of the matrix, audited in float64."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.kernels.operator import OutOfTimeError, OverflowingTilesError
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.convex.held_out_path import CHOICE, SharedPath
from convexkernels.solvers.convex.preparation import (
    BEFORE_CERTIFICATE,
    EXACT_SHARE,
    OWN_SHARE,
    Forecast,
    Preparation,
    Stage,
    audited_gaps,
    check_needed,
    other_bytes,
    unproven,
    without_choice,
)
from convexkernels.solvers.convex.shifted_systems import ShiftedSystems

if TYPE_CHECKING:
    from convexkernels.problems.fixed_kernel import FixedKernel


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
        if not hasattr(problem, "kernel_"):
            return "it solves for one kernel, a FixedKernel"
        return None if isinstance(problem.loss, LeastSquares) else "its loss is LeastSquares"

    def prepare(self, problem: FixedKernel, lams: Sequence[float] | None, clock: Clock, rng: Any) -> FixedKernel:
        """Tiles, a preconditioner, and lam chosen along a path of which all points share every product."""
        check_needed(problem, other_bytes(problem) + 2.0 * 8.0 * problem.m)
        clock.show.note(f"{problem!r}: tiles and a preconditioner")
        self.clock, self.stage.clock, self.prepared = clock, clock, Preparation(problem)
        settled: FixedKernel | None = without_choice(problem, lams)
        if settled is not None:
            return settled
        path = SharedPath.of(problem, rng, prepared=self.prepared)
        lam = path.follow(lams, clock)
        self.begin = path.functions(path.best()) if path.is_begun else None
        self.stage.first, self.trace = CHOICE, path.trace() | self.prepared.findings()
        return problem.with_loss(problem.loss.at(lam))

    def forecast(self, problem: FixedKernel) -> Forecast:
        """What solving will take."""
        return Preparation(problem).forecast()

    def go_on(self, iterate: Iterate, n_steps: int) -> None:
        self.initial = iterate.alpha

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        if self.begin is None and self.initial is not None and self.prepared is not None:
            with suppress(OutOfTimeError):
                self.begin = self.initial, self.prepared.operator.product(self.initial, deadline, self.stage)
        W, F = (np.zeros(problem.Y.shape), np.zeros(problem.Y.shape)) if self.begin is None else self.begin
        found = unproven(self._iterate(problem, W, F), tol)
        if self.clock is not None and self.clock.interrupted:
            found.status = Status.INTERRUPTED
        return found

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        systems: ShiftedSystems = iterate.memory
        try:
            if systems is None:
                systems = self._systems(problem, deadline)
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
        except OverflowingTilesError:
            if iterate.memory is None:  # the kernel does not fit
                raise
            iterate.status = Status.STALLED  # directions grow without end where rounding leaves the matrix indefinite
            return iterate
        return unproven(found, tol)

    def findings(self, iterate: Iterate) -> dict[str, Any]:
        return {"trace": self.trace}

    def _systems(self, problem: FixedKernel, deadline: float | None) -> ShiftedSystems:
        prepared = Preparation(problem) if self.prepared is None else self.prepared
        low_rank = prepared.low_rank(deadline)
        self.trace = self.trace | prepared.findings()
        if self.clock is not None:
            rank, share = low_rank.Z.shape[1], low_rank.left_out
            self.clock.show.note(f"a preconditioner of rank {rank}, which leaves out {share:.1e} of the trace of K")
        lams, begin = np.full(len(problem.Y), problem.loss.lam), () if self.begin is None else self.begin
        return ShiftedSystems(prepared.operator, low_rank, problem.Y, lams, problem.loss.intercept, *begin)

    def _iterate(self, problem: FixedKernel, W: Array, F: Array, systems: ShiftedSystems | None = None) -> Iterate:
        found = problem.measure(problem.feasible(W), F)
        return Iterate(np.zeros(0), found.alpha, found.upper, found.value, memory=systems)

    def _audited(
        self, problem: FixedKernel, systems: ShiftedSystems, found: Iterate, tol: float, deadline: float | None
    ) -> Iterate:
        """Compare values on some rows with exact ones; where these do not meet the tolerance, form all of them anew."""
        if float(audited_gaps(systems).sum()) <= EXACT_SHARE * tol * abs(found.upper):
            return found
        exact = problem.operator(np.float64)
        systems.begin_again(exact.product(systems.W, deadline, self.stage))
        found = self._iterate(problem, systems.W, systems.F, systems)
        gap = float(systems.gaps().sum())
        found.status = Status.STALLED if gap > 0.5 * self._formed_anew else None
        self._formed_anew = gap
        return found if gap <= EXACT_SHARE * tol * abs(found.upper) else unproven(found, tol)
