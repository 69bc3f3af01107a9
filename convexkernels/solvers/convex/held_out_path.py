"""The regularization parameter of kernel ridge on many rows, chosen on rows that are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.criteria.folds import held_out_share
from convexkernels.kernels.operator import OutOfTimeError
from convexkernels.solvers.convex.preparation import Preparation, Stage
from convexkernels.solvers.convex.shifted_systems import ShiftedSystems

# Share of the rows that are held out, and most of them.
SHARE, MOST = 0.1, 4000
# Candidates are so many times each other, and there are no more than so many.
RATIO, MOST_LAMS = 4.0, 9
# What one more candidate has to promise: a fraction of the risk, by the parabola through the last three.
WORTHWHILE = 0.02
# Relative duality gap of candidates.
PATH_TOL = 1e-2
# Keeps logarithms of zeros finite.
TINY = float(np.finfo(np.float64).tiny)


@dataclass(eq=False)
class HeldOutPath:
    """Ridge functions for several lam that share every product with the matrix, trained without some of the rows.

    Attributes
    ----------
    systems : ShiftedSystems
        For every candidate the systems of all outputs.
    lams : list of float
        Candidates, in the order of `systems`.
    held : ndarray of int
        Rows that are held out.
    """

    problem: Any
    prepared: Preparation
    held: Index
    lams: list[float] = field(default_factory=list)
    systems: ShiftedSystems | None = None

    @classmethod
    def of(cls, problem: Any, prepared: Preparation, rng: np.random.Generator) -> HeldOutPath:
        """Hold out a tenth of the rows, or some thousands."""
        return cls(problem, prepared, held_out_share(problem.m, min(SHARE, MOST / problem.m), None, rng))

    def run(self, lams: Sequence[float] | None, deadline: float | None, stage: Stage) -> None:
        """Solve for the candidates; where none are given, for more and more until the best one is no end."""
        center = self.problem.loss.lam
        try:
            # Regular functions cost next to nothing beside the others, and say where the risk goes.
            self.add(list(lams) if lams is not None else [center * RATIO, center, center / RATIO])
            self._solve(deadline, stage)
            while lams is None and len(self.lams) < MOST_LAMS and self._may_gain():
                at = int(np.argmin(self.risks()))
                self.add([self.lams[at] * (RATIO if self.lams[at] == max(self.lams) else 1.0 / RATIO)], at)
                self._solve(deadline, stage)
        except OutOfTimeError:
            return

    def _may_gain(self) -> bool:
        """Whether the best candidate is one of the ends, and the next one promises something."""
        order = np.argsort(self.lams)
        risks = np.log(self.risks()[order] + TINY)
        if risks.argmin() == len(risks) - 1:
            risks = risks[::-1]
        slopes = np.diff(risks[:3])
        return bool(risks.argmin() == 0 and 2.0 * slopes[0] - slopes[1] > WORTHWHILE)

    def add(self, lams: list[float], near: int | None = None) -> None:
        """More candidates, which begin where a near one is."""
        known = self.systems
        low_rank = self.prepared.low_rank.without(self.held) if known is None else known.preconditioner
        start = () if near is None else self.functions(near)
        Y = np.vstack([self.problem.Y] * len(lams))
        each = np.repeat(lams, len(self.problem.Y))
        made = ShiftedSystems(self.prepared.operator, low_rank, Y, each, self.problem.loss.intercept, *start)
        self.systems = made if self.systems is None else self.systems.joined(made)
        self.lams += lams

    def _solve(self, deadline: float | None, stage: Stage) -> None:
        systems = self.systems
        assert systems is not None
        for _ in range(self.problem.m):
            optima = np.abs(self._grouped(systems.lams * systems.energies()))
            gaps = self._grouped(systems.gaps() * systems.moving)
            gaps = np.divide(gaps, optima, out=np.where(gaps > 0.0, np.inf, 0.0), where=optima > 0.0)
            stage.reached(gaps.max(), PATH_TOL)
            which = np.flatnonzero(np.repeat(gaps > PATH_TOL, len(self.problem.Y)))
            if not which.size or not systems.step(which, deadline, stage):
                return

    def _grouped(self, values: Array) -> Array:
        return np.asarray(values.reshape(len(self.lams), -1).sum(axis=1))

    def risks(self) -> Array:
        """Mean loss on the held-out rows for every candidate, of predictions within the bounds."""
        assert self.systems is not None
        F = self.systems.F[:, self.held] + self.systems.intercepts()[:, None]
        problem, offset = self.problem, np.tile(self.problem.offset, len(self.lams))[:, None]
        if problem.bounds is not None:
            F = np.clip(F + offset, *problem.bounds) - offset
        weights = problem.weights[self.held]
        totals = problem.loss.total(self.systems.Y[:, self.held], F, weights)
        return self._grouped(totals) / (len(problem.Y) * weights.sum())

    def functions(self, at: int) -> tuple[Array, Array]:
        """Coefficients and values of a candidate, each of shape (n_outputs, m)."""
        assert self.systems is not None
        rows = slice(at * len(self.problem.Y), (at + 1) * len(self.problem.Y))
        return self.systems.W[rows].copy(), self.systems.F[rows].copy()

    def chosen(self) -> tuple[float, tuple[Array, Array] | None]:
        """The candidate of the least risk with its functions; that of the loss where nothing was solved."""
        if self.systems is None or not self.systems.W.any():
            return self.problem.loss.lam, None
        at = int(np.argmin(self.risks()))
        return self.lams[at], self.functions(at)

    def trace(self) -> dict[str, Array]:
        """Candidates in ascending order and their risks."""
        if self.systems is None:
            return {}
        order = np.argsort(self.lams)
        return {"lams": np.array(self.lams)[order], "risks": self.risks()[order]}
