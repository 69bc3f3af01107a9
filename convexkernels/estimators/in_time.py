"""Convex problems on all rows, which end with a part of the time or not at all."""

from __future__ import annotations

from typing import Any

from convexkernels.cells.stand_in import sparing
from convexkernels.clock import Clock
from convexkernels.exceptions import kept_back, tell_again
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.solution import Solution, Status


def solved_in_time(
    problem: FixedKernel | KernelLearning, clock: Clock, *, tol: float, **options: Any
) -> Solution | None:
    """The solution, with what it warns of; None where all coefficients are 0 because the time was over.

    An interrupt is kept in mind by the clock.
    """
    options |= {"max_time": sparing(clock).left, "progress": clock.show, "checkpoint": clock.checkpoint}
    with kept_back() as said:
        found = problem.solve(tol=tol, **options)
    if found.status is Status.INTERRUPTED:
        clock.interrupt()
    certificate: Any = found.certificate
    function: DecisionFunction = found.function
    if not function.support.size and not certificate.holds(tol):
        return None
    tell_again(said)
    return found
