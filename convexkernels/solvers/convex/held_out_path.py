"""The regularization parameter of kernel ridge on many rows, chosen on rows that are held out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.folds import held_out_share
from convexkernels.kernels.operator import OutOfTimeError
from convexkernels.solvers.convex.preparation import Preparation, Stage
from convexkernels.solvers.convex.shifted_systems import ShiftedSystems

# Share of the rows that are held out, and most of them.
SHARE, MOST = 0.1, 4000
# Candidates are so many times each other, and there are no more than so many.
RATIO, MOST_LAMS = 4.0, 9
# What one more candidate has to promise: a fraction of the risk, by the parabola through the last three, or by the
# ratio of the last two steps.
WORTHWHILE, STEEP = 0.02, 0.1
# Relative duality gap of candidates.
PATH_TOL = 1e-2
# Keeps logarithms of zeros finite.
TINY = float(np.finfo(np.float64).tiny)
# Share of the time limit that the choice of lam may take, and of the work that it is.
CHOICE_SHARE, CHOICE = 0.5, 0.6


@dataclass(eq=False)
class HeldOutPath(ABC):
    """Ridge functions for several lam, as they were added, trained without the rows `held`."""

    problem: Any
    held: Index
    lams: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Any, rng: np.random.Generator, share: float = SHARE, **parts: Any) -> Self:
        """Hold out a tenth of the rows, or another share of them, but some thousands at most."""
        return cls(problem, held_out_share(problem.m, min(share, MOST / problem.m), None, rng), **parts)

    def follow(self, lams: Sequence[float] | None, clock: Clock) -> float:
        """Solve within a share of the time, an interrupt being kept in mind: the lam of the least risk."""
        part = clock.part(CHOICE_SHARE)
        deadline = None if part.left is None else part.deadline
        try:
            self._run(lams, deadline, Stage(clock, "choice of lam", 0.0, CHOICE))
        except OutOfTimeError:
            clock.cut("the choice of lam")
        except KeyboardInterrupt:
            clock.interrupt()
        return self.lams[self.best()] if self.lams and self.is_begun else float(self.problem.loss.lam)

    def _run(self, lams: Sequence[float] | None, deadline: float | None, stage: Stage) -> None:
        """Solve for the candidates; where none are given, for more and more until the best one is no end."""
        center = self.problem.loss.lam
        # Regular functions cost next to nothing beside the others, and say whether a smaller lam may be worth its
        # steps, which begin at the best function so far.
        first = [center, center * RATIO, center * RATIO**2]
        self.add(first if lams is None else list(lams), None, deadline, stage)
        while lams is None and len(self.lams) < MOST_LAMS and self._may_gain():
            at = self.best()
            end = self.lams[at] * (RATIO if self.lams[at] == max(self.lams) else 1.0 / RATIO)
            self.add([end], at, deadline, stage)

    def _may_gain(self) -> bool:
        """Whether the best candidate is one of the ends, and the next one promises something."""
        order = np.argsort(self.lams)
        risks = np.log(self.risks()[order] + TINY)
        if risks.argmin() == len(risks) - 1:
            risks = risks[::-1]
        near, before = np.diff(risks[:3])
        parabola, geometric = 2.0 * near - before, near * min(1.0, near / max(before, TINY))
        # Of steep slopes a parabola sees the end where a sixth of the risk is left.
        return bool(risks.argmin() == 0 and (parabola > WORTHWHILE or geometric > STEEP))

    @abstractmethod
    def add(self, lams: list[float], near: int | None, deadline: float | None, stage: Stage) -> None:
        """Solve for more candidates, which may begin where a near one is."""

    @property
    @abstractmethod
    def is_begun(self) -> bool:
        """Whether the candidates are more than zeros."""

    @abstractmethod
    def values(self) -> Array:
        """Values on the held-out rows, intercepts included, shape (n_lams * n_outputs, n_held)."""

    def risks(self) -> Array:
        """Mean loss on the held-out rows for every candidate, of predictions within the bounds."""
        problem, n, F = self.problem, len(self.lams), self.values()
        Y, offset = np.tile(problem.Y[:, self.held], (n, 1)), np.tile(problem.offset, n)[:, None]
        if problem.bounds is not None:
            F = np.clip(F + offset, *problem.bounds) - offset
        weights = problem.weights[self.held]
        return self._grouped(problem.loss.total(Y, F, weights)) / (len(problem.Y) * weights.sum())

    def _grouped(self, values: Array) -> Array:
        return np.asarray(values.reshape(len(self.lams), -1).sum(axis=1))

    def best(self) -> int:
        """Which candidate has the least risk."""
        return int(np.argmin(self.risks()))

    def trace(self) -> dict[str, Array]:
        """Candidates in ascending order and their risks; the rows held out, and values of the best candidate there."""
        if not self.is_begun:
            return {}
        order, k = np.argsort(self.lams), len(self.problem.Y)
        best = self.values()[self.best() * k :][:k]
        found = {"lams": np.array(self.lams)[order], "risks": self.risks()[order]}
        return found | {"held_out": self.held, "held_out_values": best}


@dataclass(eq=False)
class SharedPath(HeldOutPath):
    """By conjugate gradients that share every product with the matrix: systems of all outputs for every candidate."""

    prepared: Preparation | None = None
    systems: ShiftedSystems | None = None

    def add(self, lams: list[float], near: int | None, deadline: float | None, stage: Stage) -> None:
        known, prepared = self.systems, self.prepared
        assert prepared is not None
        low_rank = prepared.low_rank(deadline).without(self.held) if known is None else known.preconditioner
        start = () if near is None else self.functions(near)
        Y = np.vstack([self.problem.Y] * len(lams))
        each = np.repeat(lams, len(self.problem.Y))
        made = ShiftedSystems(prepared.operator, low_rank, Y, each, self.problem.loss.intercept, *start)
        self.systems = made if known is None else known.joined(made)
        self.lams += lams
        self._solve(self.systems, deadline, stage)

    def _solve(self, systems: ShiftedSystems, deadline: float | None, stage: Stage) -> None:
        for _ in range(self.problem.m):
            optima = np.abs(self._grouped(systems.lams * systems.energies()))
            gaps = self._grouped(systems.gaps() * systems.moving)
            gaps = np.divide(gaps, optima, out=np.where(gaps > 0.0, np.inf, 0.0), where=optima > 0.0)
            stage.reached(gaps.max(), PATH_TOL)
            which = np.flatnonzero(np.repeat(gaps > PATH_TOL, len(self.problem.Y)))
            if not which.size or not systems.step(which, deadline, stage):
                return

    @property
    def is_begun(self) -> bool:
        return self.systems is not None and bool(self.systems.W.any())

    def values(self) -> Array:
        assert self.systems is not None
        return np.asarray(self.systems.F[:, self.held] + self.systems.intercepts()[:, None])

    def functions(self, at: int) -> tuple[Array, Array]:
        """Coefficients and values of a candidate, each of shape (n_outputs, m)."""
        assert self.systems is not None
        rows = slice(at * len(self.problem.Y), (at + 1) * len(self.problem.Y))
        return self.systems.W[rows].copy(), self.systems.F[rows].copy()
