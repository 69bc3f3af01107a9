"""The one outer loop: step, certify, record, stop."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.certificate import DualityGap
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError
from convexkernels.progress import Silent, as_progress
from convexkernels.solution import Record, Solution, Status
from convexkernels.validation import check_number, check_whole_number

__all__ = ["Iterate", "OuterSolver", "run"]

Array = NDArray[np.float64]


@dataclass(eq=False)
class Iterate:
    """What a solver proposes after a step.

    Attributes
    ----------
    theta, alpha : ndarray
        A point and its machines.
    upper, lower : float
        The problem's bounds there (`lower` from `alpha`, or from `witness`).
    stalled : bool
        Whether the solver cannot move any more.
    failed : bool
        Whether its arithmetic broke down.
    memory : object
        The solver's own state.
    witness : ndarray, optional
        Dual variables behind `lower` where they are not `alpha`.
    """

    theta: Array
    alpha: Array
    upper: float
    lower: float
    stalled: bool = False
    failed: bool = False
    memory: Any = field(default=None, repr=False)
    witness: Array | None = None


class OuterSolver(ABC):
    """A method for the outer problem: settings, and two verbs. The loop is the driver's."""

    name: str

    def accepts(self, problem: Any) -> str | None:
        """None when the solver can solve `problem`, else the reason why not."""
        return None

    @abstractmethod
    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        """First iterate."""

    @abstractmethod
    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """Next iterate; `tol` is the relative gap asked for, `deadline` a ``time.monotonic()`` value."""


@dataclass(eq=False)
class _Best:
    """Best upper and best lower bound so far; they may come from different iterations."""

    theta: Array
    alpha: Array
    upper: float
    witness: Array
    lower: float

    def update(self, iterate: Iterate) -> None:
        if iterate.upper < self.upper:
            self.theta, self.alpha, self.upper = iterate.theta, iterate.alpha, iterate.upper
        if iterate.lower > self.lower:
            self.witness, self.lower = _witness(iterate), iterate.lower


def run(
    problem: Any,
    solver: OuterSolver,
    *,
    tol: float = 1e-4,
    max_time: float | None = None,
    max_iter: int = 10_000,
    progress: bool | Silent = False,
) -> Solution:
    """Run `solver` on `problem` until the problem's certificate proves `tol`, or a limit comes first.

    The returned certificate is recomputed from the problem. A keyboard interrupt returns the best
    certified point so far; before there is one, it is raised.
    """
    tol = check_number("tol", tol, low=0.0, open_low=True)
    check_whole_number("max_iter", max_iter, low=0)
    if max_time is not None:
        check_number("max_time", max_time, low=0.0, open_low=True, remedy="Pass None for no limit.")
    reason = solver.accepts(problem)
    if reason is not None:
        raise InvalidInputError(f"solver {solver.name!r} does not fit this problem: {reason}")
    table = as_progress(progress)
    table.start(f"{problem!r} by {solver.name}")
    started = time.monotonic()
    deadline = None if max_time is None else started + max_time
    history: list[Record] = []

    iterate = solver.start(problem, tol, deadline)
    best = _Best(iterate.theta, iterate.alpha, iterate.upper, _witness(iterate), iterate.lower)
    iteration = 0
    status: Status | None = None
    try:
        while True:
            best.update(iterate)
            record = Record(iteration, best.upper, best.lower, time.monotonic() - started)
            history.append(record)
            table.record(record)
            status = _stop(iterate, best, tol, iteration, max_iter, deadline)
            if status is not None:
                break
            iterate = solver.step(problem, iterate, tol, deadline)
            iteration += 1
    except KeyboardInterrupt:
        status = Status.INTERRUPTED

    certificate = problem.certificate(best.theta, best.alpha, best.witness)
    if certificate.holds(tol) and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL:
        status = Status.NUMERICAL_ERROR  # the running bounds promised more than the problem confirms
    seconds = time.monotonic() - started
    table.finish(f"{status.name.lower()}: {certificate} after {iteration} iterations, {seconds:.2f} s")
    if status is not Status.OPTIMAL:
        warnings.warn(
            f"{solver.name} stopped with status {status.name} ({status.value}); {certificate}.",
            ConvexKernelsWarning,
            stacklevel=4,
        )
    single = getattr(problem, "single", False)
    return Solution(
        problem=problem,
        theta=best.theta,
        alpha=best.alpha[0] if single else best.alpha,
        witness=best.witness[0] if single else best.witness,
        certificate=certificate,
        status=status,
        n_iter=iteration,
        seconds=seconds,
        history=tuple(history),
        solver=solver.name,
    )


def _witness(iterate: Iterate) -> Array:
    return iterate.alpha if iterate.witness is None else iterate.witness


def _stop(
    iterate: Iterate, best: _Best, tol: float, iteration: int, max_iter: int, deadline: float | None
) -> Status | None:
    if DualityGap(best.upper, best.lower).relative_gap <= tol:
        return Status.OPTIMAL
    if iterate.failed:
        return Status.NUMERICAL_ERROR
    if iterate.stalled:
        return Status.STALLED
    if deadline is not None and time.monotonic() > deadline:
        return Status.TIME_LIMIT
    return Status.ITERATION_LIMIT if iteration >= max_iter else None
