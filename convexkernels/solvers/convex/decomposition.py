"""Support vector losses on all rows: blocks of coefficients move in float32, audited in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.kernels.operator import OutOfTimeError
from convexkernels.losses.fit import Fit
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.problems.rounding import charge_above
from convexkernels.solution import Status
from convexkernels.solvers.convex.block_ascent import BlockAscent, block_sizes, least_bytes
from convexkernels.solvers.convex.preparation import (
    BEFORE_CERTIFICATE,
    EXACT_SHARE,
    OWN_SHARE,
    Forecast,
    Stage,
    audited,
    check_needed,
    one_candidate,
    other_bytes,
    seconds_of_tiles,
    unproven,
)

if TYPE_CHECKING:
    from convexkernels.problems.fixed_kernel import FixedKernel

# What is reckoned with: blocks, where one does not have all rows; steps by pairs for every row of a block, and seconds
# that such a step takes for every row.
BLOCKS, STEPS, SECONDS = 10, 3.0, 1e-8
# Share of the gap by which a step has to raise the lower bound; less is rounding.
LEAST_GAIN = 1e-6


class Decomposition(OuterSolver):
    """Blocks of coefficients, of which pairs move; where float32 ends, values are formed anew in float64."""

    name = "decomposition"
    # Values by float32 and exact ones are not comparable to the last digits: it keeps the best upper bound itself.
    values_compare = False

    def __init__(self) -> None:
        self.stage = Stage(None, "pairs of coefficients", 0.0, BEFORE_CERTIFICATE)
        self._formed_anew = np.inf
        self._best: Iterate | None = None
        self._lower = -np.inf

    def accepts(self, problem: Any) -> str | None:
        if not hasattr(problem, "kernel_"):
            return "it solves for one kernel, a FixedKernel"
        if not isinstance(problem.loss, SupportVectorLoss):
            return "its loss is Hinge, EpsilonInsensitive or Pinball"
        return None

    def prepare(self, problem: FixedKernel, lams: Sequence[float] | None, clock: Clock, rng: Any) -> FixedKernel:
        """The problem at the regularization parameter that is asked for, or at its own."""
        check_needed(problem, least_bytes(problem))
        problem = one_candidate(problem, lams, self.name)
        clock.show.note(f"{problem!r}: blocks of {block_sizes(problem)[0]} rows")
        self.stage.clock = clock
        return problem

    def forecast(self, problem: FixedKernel) -> Forecast:
        """What solving will take; evaluates a tile or two."""
        m, size = problem.m, block_sizes(problem)[0]
        share, blocks = (size / m) ** 2, 1 if size == m else BLOCKS
        evaluations = 1.0 if size == m else BLOCKS * (1.0 + share)
        seconds = seconds_of_tiles(problem, np.float64) + evaluations * seconds_of_tiles(problem, np.float32)
        seconds += blocks * STEPS * SECONDS * len(problem.Y) * float(size) ** 2
        return Forecast(seconds, 4.0 * size**2 + other_bytes(problem), share)

    def go_on(self, iterate: Iterate, n_steps: int) -> None:
        self.initial = self._best = iterate

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        if self.initial is not None:
            return self.initial
        zeros = np.zeros(problem.Y.shape)
        return self._kept(_iterate(problem, zeros, zeros)[0], tol)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        ascent: BlockAscent = iterate.memory
        try:
            if ascent is None:
                W = problem.coefficients(problem.feasible(iterate.witness))
                known = W.any()  # an earlier run has found them
                F = problem.operator(np.float64).product(W, deadline, self.stage) if known else np.zeros(W.shape)
                ascent = BlockAscent(problem, W, F)
            went = ascent.step(0.5 * OWN_SHARE * tol, deadline, self.stage)
            found, fit = _iterate(problem, ascent.W, ascent.F, ascent)
            self.stage.reached(found.relative_gap, tol)
            rises = found.lower - self._lower > LEAST_GAIN * (found.upper - found.lower)
            self._lower = found.lower
            if not (went and rises) or found.relative_gap <= OWN_SHARE * tol:
                return self._audited(problem, ascent, found, fit, tol, deadline)
        except OutOfTimeError:
            iterate.status = Status.TIME_LIMIT
            return iterate
        return self._kept(found, tol)

    def _kept(self, found: Iterate, tol: float) -> Iterate:
        """The point of the least upper bound so far, with the dual variables of the last one behind the lower bound."""
        if self._best is None or found.upper < self._best.upper:
            self._best = found
        best = self._best
        kept = Iterate(found.theta, best.alpha, best.upper, found.lower, found.memory, found.alpha, found.status)
        return unproven(kept, tol)

    def _audited(
        self, problem: FixedKernel, ascent: BlockAscent, found: Iterate, fit: Fit, tol: float, deadline: float | None
    ) -> Iterate:
        """Compare values on some rows with exact ones; where these do not meet the tolerance, form all of them anew."""
        if found.upper - found.lower + _inexact(problem, ascent, fit) <= EXACT_SHARE * tol * abs(found.upper):
            return found
        ascent.F = problem.operator(np.float64).product(ascent.W, deadline, self.stage)
        found = _iterate(problem, ascent.W, ascent.F, ascent)[0]
        gap = found.upper - found.lower
        found.status = Status.STALLED if gap > 0.5 * self._formed_anew else None
        self._formed_anew, self._best = gap, found
        return found if gap <= EXACT_SHARE * tol * abs(found.upper) else unproven(found, tol)


def _iterate(problem: FixedKernel, W: Array, F: Array, ascent: BlockAscent | None = None) -> tuple[Iterate, Fit]:
    alpha = np.array([problem.loss.dual_variable(w, y) for w, y in zip(W, problem.Y, strict=True)])
    fit = problem.measure(problem.feasible(alpha), F)
    return Iterate(np.zeros(0), fit.alpha, fit.upper, fit.value, memory=ascent), fit


def _inexact(problem: FixedKernel, ascent: BlockAscent, fit: Fit) -> float:
    """About what the gap is too small by, because values are rounded: by those of some rows."""
    rows, errors = audited(ascent.operator, ascent.W, ascent.F)
    errors, F, W = np.abs(errors), ascent.F[:, rows], ascent.W[:, rows]
    above = charge_above(problem.loss, problem.Y[:, rows], problem.weights[rows], F + fit.b[:, None], W, errors)
    below = 0.5 * problem.loss.scale * float(np.vdot(np.abs(W), errors))
    return (above + below) * problem.m / len(rows)
