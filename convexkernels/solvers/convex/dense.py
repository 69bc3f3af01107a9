"""One kernel on few rows: the matrix in float64, and the exact solution of its loss."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.kernels.operator import OutOfTimeError
from convexkernels.losses.fit import fit
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.convex.held_out_path import HeldOutPath
from convexkernels.solvers.convex.preparation import (
    OWN_SHARE,
    Forecast,
    Stage,
    allowed_bytes,
    one_candidate,
    seconds_of_tiles,
    unproven,
    without_choice,
)

if TYPE_CHECKING:
    from convexkernels.problems.fixed_kernel import FixedKernel

# Most rows: beyond, products with the matrix in float32 cost a fifth of what is done here, or less.
MOST_ROWS = 1000
# Square matrices of float64 that are alive, and seconds for every third power of the rows.
MATRICES, SECONDS = 4, 3e-10
# What every further step multiplies the tolerance by.
FURTHER = 0.1


@dataclass(eq=False)
class MatrixPath(HeldOutPath):
    """By the matrix of all rows `K`, one factorization for every candidate; `found` are values on held-out rows."""

    K: Array = field(default_factory=lambda: np.zeros((0, 0)))
    found: list[Array] = field(default_factory=list)

    def add(self, lams: list[float], near: int | None, deadline: float | None, stage: Stage) -> None:
        problem, seen = self.problem, np.setdiff1d(np.arange(self.problem.m), self.held)
        K, cross = self.K[np.ix_(seen, seen)], self.K[np.ix_(seen, self.held)]
        for lam in lams:
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTimeError
            one = fit(problem.loss.at(lam), K, problem.Y[:, seen], problem.weights[seen])
            self.found.append(one.W @ cross + one.b[:, None])
            self.lams.append(lam)

    @property
    def is_begun(self) -> bool:
        return bool(self.found)

    def values(self) -> Array:
        return np.vstack(self.found)


class Dense(OuterSolver):
    """`losses.fit` with the matrix itself, which rounding and small lam trouble least; lam by the held-out path."""

    name = "dense"

    def __init__(self) -> None:
        self.trace: dict[str, Array] = {}
        self.interrupted = False
        self._K: Array | None = None
        self._tol = OWN_SHARE / FURTHER

    def accepts(self, problem: Any) -> str | None:
        if not hasattr(problem, "kernel_"):
            return "it solves for one kernel, a FixedKernel"
        if not isinstance(problem.loss, LeastSquares | SupportVectorLoss):
            return "its loss is LeastSquares, Hinge, EpsilonInsensitive or Pinball"
        if problem.m > MOST_ROWS:
            return f"it holds the matrix of at most {MOST_ROWS} rows, here are {problem.m}"
        needed = 8.0 * MATRICES * problem.m**2
        return f"it needs {needed:.3g} bytes" if needed > allowed_bytes(problem) else None

    def prepare(self, problem: FixedKernel, lams: Sequence[float] | None, clock: Clock, rng: Any) -> FixedKernel:
        """The matrix, and for least squares lam chosen on held-out rows."""
        clock.show.note(f"{problem!r}: one matrix")
        self._K = problem.kernel_(problem.X)
        if not isinstance(problem.loss, LeastSquares):
            return one_candidate(problem, lams, self.name)
        settled: FixedKernel | None = without_choice(problem, lams)
        if settled is not None:
            return settled
        path = MatrixPath.of(problem, rng, K=self._K)
        lam = path.follow(lams, clock)
        self.trace, self.interrupted = path.trace(), clock.interrupted
        return problem.with_loss(problem.loss.at(lam))

    def forecast(self, problem: FixedKernel) -> Forecast:
        """What solving will take; evaluates a tile or two."""
        m = problem.m
        seconds = 2.0 * seconds_of_tiles(problem, np.float64) + SECONDS * float(m) ** 3
        return Forecast(seconds, 8.0 * MATRICES * m**2, 1.0)

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        zeros = np.zeros(problem.Y.shape)
        nothing = problem.measure(zeros, zeros)
        first = Iterate(np.zeros(0), nothing.alpha, nothing.upper, nothing.value)
        if self.interrupted or (deadline is not None and time.monotonic() > deadline):
            # The choice had no end; the solution itself is a moment's work.
            first = unproven(self.step(problem, first, tol, None), tol)
            first.status = Status.INTERRUPTED if self.interrupted else Status.TIME_LIMIT
        return first

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        self._tol *= FURTHER
        self._K = problem.kernel_(problem.X) if self._K is None else self._K
        settings: dict[str, Any] = {"start": iterate.alpha, "tol": self._tol * tol, "deadline": deadline}
        found = fit(problem.loss, self._K, problem.Y, problem.weights, **settings)
        stalls = found.upper - found.value > 0.5 * (iterate.upper - iterate.lower)
        return Iterate(np.zeros(0), found.alpha, found.upper, found.value, status=Status.STALLED if stalls else None)

    def findings(self, iterate: Iterate) -> dict[str, Any]:
        return {"trace": self.trace}
