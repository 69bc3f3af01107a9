"""The one outer loop: step, certify, record, stop; and what is left of it for points that are only compared."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap, Stationarity
from convexkernels.checkpoint import fingerprint
from convexkernels.clock import Clock
from convexkernels.exceptions import InvalidInputError, tell
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.progress import Silent
from convexkernels.solution import Record, Solution, Status
from convexkernels.validation import check_number, check_whole_number

# A search whose values do not compare has to lower the certified value by more than this fraction to replace its start;
# an end that is worse by less than that is none the worse.
LEAST_GAIN = 1e-9
# Share of a gap from which on rounding is the reason for it.
MUCH = 0.1
# Where a criterion resolves no more than this fraction, a search that stalls or runs out of steps says all it can.
COARSE = 1e-6
# Ends of searches that nobody has to be warned of.
AS_MEANT = (Status.COMPLETED, Status.EARLY_STOPPED)
# What states a problem, by the attributes of all that there are.
STATED = ("family", "kernel_", "loss", "criterion", "X", "Y", "weights", "offset", "bounds", "dtype")
# What ends a run before its work is done.
LIMITS = ("", Status.TIME_LIMIT.name, Status.INTERRUPTED.name)


@dataclass(eq=False)
class _Best:
    """Best upper and best lower bound so far, perhaps of different iterations; the last ones where none compare."""

    theta: Array
    alpha: Array | None
    upper: float
    witness: Array | None
    lower: float

    @classmethod
    def of(cls, iterate: Iterate) -> _Best:
        return cls(iterate.theta, iterate.alpha, iterate.upper, _witness(iterate), iterate.lower)

    def update(self, iterate: Iterate, compare: bool) -> None:
        if iterate.upper < self.upper or not compare:
            self.theta, self.alpha, self.upper = iterate.theta, iterate.alpha, iterate.upper
        if iterate.lower > self.lower or not compare:
            self.witness, self.lower = _witness(iterate), iterate.lower


class _Earlier:
    """Where earlier runs have come to, as their checkpoint says, and a solver that goes on from there.

    `point` is measured again; it is the `end` where it is proven to keep the tolerance, or all was done that is asked
    for. `n_steps` were taken towards it, by the same solver.
    """

    def __init__(self, problem: Any, solver: OuterSolver, tol: float, max_iter: int, clock: Clock) -> None:
        self.piece = clock.piece(*stated(problem), solver.seed)
        self.point: Iterate | None = None
        self.end: Iterate | None = None
        self.n_steps, self.solver, found = 0, solver, self.piece.found
        if clock.checkpoint is not None:
            self.asked = fingerprint(solver.name, solver.settings, tol, max_iter)
            self.solver = copy(solver)
            self.solver.piece = self.piece
        if not found:
            return
        theta, alpha, witness = found["theta"], *(_rows(found.get(name)) for name in ("alpha", "witness"))
        certificate, same = problem.certificate(theta, alpha, witness), str(found["asked"]) == self.asked
        self.n_steps = int(found["n_steps"]) if same else 0
        self.point = Iterate(theta, alpha, certificate.value, getattr(certificate, "lower", -np.inf), witness=witness)
        is_proven = isinstance(certificate, DualityGap) and certificate.holds(tol)
        said = Status.STALLED.name if is_proven else str(found["status"]) if same else ""
        if solver.is_scheduled and said == Status.TIME_LIMIT.name and self.n_steps >= max_iter:
            self.n_steps = 0  # time has hurried it through its schedule, which begins anew at its point
        if said not in LIMITS:
            self.end = replace(self.point, status=Status[said])
        else:
            self.solver.go_on(self.point, self.n_steps)

    def keep(self, best: Any, n_steps: int, status: str = "", *, now: bool = False) -> None:
        """Write where the run is: theta, alpha and witness of `best`."""
        points = {"theta": best.theta, "alpha": best.alpha, "witness": best.witness}
        numbers = {name: point for name, point in points.items() if point is not None}
        self.piece.keep(now=now, n_steps=n_steps, asked=self.asked, status=status, **numbers)

    def conclude(self, solution: Solution, n_steps: int) -> None:
        """Write how the run has ended, unless what was known is better, by more than rounding."""
        compares = self.solver.values_compare or self.solver.certificates_compare
        known = np.inf if self.point is None or not compares else self.point.upper
        if self.piece.checkpoint is not None and solution.value <= known + LEAST_GAIN * abs(known):
            self.keep(solution, n_steps, solution.status.name, now=True)


def stated(problem: Any) -> tuple[Any, ...]:
    """What a problem is known again by."""
    return type(problem).__name__, *(getattr(problem, name, None) for name in STATED)


def _rows(alpha: Array | None) -> Array | None:
    """Dual variables with a row per output."""
    return None if alpha is None else np.atleast_2d(alpha)


def run(
    problem: Any,
    solver: OuterSolver,
    *,
    tol: float = 1e-4,
    max_time: float | None = None,
    max_iter: int | None = None,
    progress: bool | Silent = False,
    clock: Clock | None = None,
    warn: bool = True,
) -> Solution:
    """Run `solver` on `problem` until the problem's certificate proves `tol`, or a limit comes first.

    The returned certificate is recomputed from the problem. A keyboard interrupt returns the best
    certified point so far; before there is one, it is raised.
    """
    tol = check_number("tol", tol, low=0.0, open_low=True)
    max_iter = solver.max_iter if max_iter is None else check_whole_number("max_iter", max_iter, low=0)
    reason = solver.accepts(problem)
    if reason is not None:
        raise InvalidInputError(f"solver {solver.name!r} does not fit this problem: {reason}")
    clock = Clock(max_time, progress) if clock is None else clock
    clock.show.tol = tol
    clock.show.start(f"{problem!r} by {solver.name}")
    deadline = None if np.isinf(clock.max_time) else clock.deadline

    earlier = _Earlier(problem, solver, tol, max_iter, clock)
    solver, iteration, history = earlier.solver, earlier.n_steps, list[Record]()
    first = iterate = earlier.end or solver.start(problem, tol, deadline)
    best = _Best.of(iterate)
    if earlier.point is not None and (solver.values_compare or np.isfinite(earlier.point.lower)):
        best.update(earlier.point, compare=True)
    at_first: DualityGap | Stationarity | None = None
    if earlier.end is None and _compares_ends(solver) and not np.isfinite(first.lower):
        # What the certificate of the end is compared with; it takes as long, which is left for it.
        began = time.monotonic()
        at_first = problem.certificate(first.theta, first.alpha, _witness(first))
        deadline = deadline and deadline - (time.monotonic() - began)
    conclude = partial(_concluded, problem, solver, first, at_first, tol=tol, history=history, clock=clock)
    try:
        while True:
            best.update(iterate, solver.values_compare)
            history.append(Record(iteration, best.upper, best.lower, clock.seconds))
            if np.isfinite(best.lower) or solver.long_steps:
                clock.show.record(history[-1])
            if not np.isfinite(best.lower):
                share = max(iterate.share, iteration / max(max_iter, 1))
                clock.tell(share, f"step {iteration}, {solver.value_name} {iterate.upper:.6g}")
            if earlier.piece.is_due:
                earlier.keep(best, iteration)
            status = _stop(iterate, best, tol, deadline)
            if status is None and iteration >= max_iter:
                is_complete = solver.is_scheduled and max_iter == solver.max_iter
                status = Status.COMPLETED if is_complete else Status.ITERATION_LIMIT
            if status is not None:
                break
            iterate = solver.step(problem, iterate, tol, deadline)
            iteration += 1
        solution = conclude(solver.findings(iterate), best, status)
    except KeyboardInterrupt:
        solution = conclude(solver.findings(iterate), best, Status.INTERRUPTED)
    earlier.conclude(solution, iteration)
    clock.show.finish(
        f"{solution.status.name.lower()}: {solution.certificate} after {solution.n_iter} iterations, "
        f"{solution.seconds:.2f} s"
    )
    if warn:
        warn_unless_reached(solver, solution)
    return solution


def approach(problem: Any, solver: OuterSolver, *, tol: float, max_iter: int, clock: Clock) -> tuple[Array, Array]:
    """Theta and alpha that some steps lead to, by the solver's own bounds: of points that are compared, not returned.

    Their certificate would be measured from scratch, a tenth of the time where a point is near by.
    """
    deadline = None if np.isinf(clock.max_time) else clock.deadline
    iterate = solver.start(problem, tol, deadline)
    best = _Best.of(iterate)
    for _ in range(max_iter):
        if _stop(iterate, best, tol, deadline) is not None:
            break
        iterate = solver.step(problem, iterate, tol, deadline)
        best.update(iterate, solver.values_compare)
    assert best.alpha is not None
    is_spoilt = best.upper > problem.value_of_constants  # then constants are better
    return problem.member(best.theta), np.zeros_like(best.alpha) if is_spoilt else best.alpha


def _concluded(
    problem: Any,
    solver: OuterSolver,
    first: Iterate,
    at_first: DualityGap | Stationarity | None,
    findings: dict[str, Any],
    best: _Best,
    status: Status,
    *,
    tol: float,
    history: list[Record],
    clock: Clock,
) -> Solution:
    """Certify the best point; what the solver believes does not count."""
    if hasattr(problem, "member"):
        best.theta = problem.member(best.theta)  # what is certified is what is returned
    has_moved = not np.array_equal(best.theta, first.theta)
    certificate = at_first
    if certificate is None or has_moved or best.alpha is not first.alpha:
        certificate = problem.certificate(best.theta, best.alpha, best.witness)
    if has_moved and _compares_ends(solver):
        at_first = at_first or problem.certificate(first.theta, first.alpha, _witness(first))
        if not certificate.value <= at_first.value * (1.0 - LEAST_GAIN):
            best, certificate = _Best.of(first), at_first
            status = status if status in (Status.INTERRUPTED, Status.TIME_LIMIT) else Status.STALLED
    if best.alpha is not None and certificate.value > getattr(problem, "value_of_constants", np.inf):
        # Where rounding has spoilt every point of a solver, constants are better than all of them.
        best.alpha = np.zeros_like(best.alpha)
        certificate = problem.certificate(best.theta, best.alpha, best.witness)
    success = Status.OPTIMAL if isinstance(certificate, DualityGap) else Status.STATIONARY
    if certificate.holds(tol) and status is not Status.INTERRUPTED:
        status = success
    elif status.is_success:  # the running values promised more than the problem confirms
        status = Status.NUMERICAL_ERROR if success is Status.OPTIMAL else Status.STALLED
    elif status in AS_MEANT and not np.isfinite(certificate.value):
        status = Status.NUMERICAL_ERROR
    status = because_of_rounding(certificate, status, tol)
    single = getattr(problem, "single", False)
    alpha, witness = (None if a is None else a[0] if single else a for a in (best.alpha, best.witness))
    return Solution(
        problem,
        best.theta,
        certificate,
        status,
        seconds=clock.seconds,
        history=tuple(history),
        solver=solver.name,
        alpha=alpha,
        witness=witness,
        **{"n_iter": len(history) - 1, **findings},
    )


def because_of_rounding(certificate: DualityGap | Stationarity, status: Status, tol: float) -> Status:
    """ROUNDED in place of another limit, where what rounding may have cost is much of the gap.

    Where no step improves a point any more, it is enough that rounding alone is beyond what a usual `tol` allows.
    """
    if status.is_success or status is Status.INTERRUPTED or not isinstance(certificate, DualityGap):
        return status
    least = MUCH * abs(certificate.gap)
    if status not in (Status.TIME_LIMIT, Status.ITERATION_LIMIT):
        least = min(least, max(tol, COARSE) * max(abs(certificate.upper), abs(certificate.lower)))
    return Status.ROUNDED if certificate.charged > least else status


def warn_unless_reached(solver: OuterSolver, solution: Solution) -> None:
    """One warning where the method has not reached what it promises."""
    status = solution.status
    # A search that sees other rows at every step promises no more than its steps, nor does one by a risk, which knows
    # no more than its rows tell.
    coarse = getattr(getattr(solution.problem, "criterion", None), "resolution", 0.0) > COARSE
    expected = isinstance(solution.certificate, Stationarity) and (coarse or not solver.values_compare)
    if status.is_success or status in AS_MEANT or (expected and status in (Status.ITERATION_LIMIT, Status.STALLED)):
        return
    tell(f"{solver.name} stopped with status {status.name} ({status.value}); {solution.certificate}.")


def tell_cuts(clock: Clock, status: Status) -> None:
    """One warning of what the limit has ended early, unless the status says that it came first."""
    if clock.cuts and not clock.interrupted and status not in (Status.TIME_LIMIT, Status.INTERRUPTED):
        tell(f"max_time ended {' and '.join(sorted(clock.cuts))} early; the best by then is kept. Raise max_time.")


def _compares_ends(solver: OuterSolver) -> bool:
    """Whether only certificates say if the end of a search is better than its start."""
    return solver.certificates_compare and not solver.values_compare


def _witness(iterate: Iterate) -> Array | None:
    return iterate.alpha if iterate.witness is None else iterate.witness


def _stop(iterate: Iterate, best: _Best, tol: float, deadline: float | None) -> Status | None:
    if DualityGap(best.upper, best.lower).relative_gap <= tol:
        return Status.OPTIMAL
    if iterate.status is not None:
        return iterate.status
    if deadline is not None and time.monotonic() > deadline:
        return Status.TIME_LIMIT
    return None
