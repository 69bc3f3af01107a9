"""Least squares in cells of many rows: conjugate gradients on tiles of the matrix, where a factor takes longer.

A factor of the matrix of m rows takes m^3 / 3 operations in float64, and its inverse, which leaves rows out in closed
form, three times as many. Steps take m^2 / 2 in float32, and serve all folds at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.criteria.folds import Rows
from convexkernels.driver import run
from convexkernels.kernels.operator import OutOfTimeError
from convexkernels.losses.fit import Fit
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.solution import Status
from convexkernels.solvers.convex.conjugate_gradients import ConjugateGradients
from convexkernels.solvers.convex.preparation import Preparation
from convexkernels.solvers.convex.shifted_systems import ShiftedSystems, step_together
from convexkernels.validation import allowed_memory

# Rows from which on steps take less time.
MANY_ROWS = 3000
# Rank of the preconditioner, beside the root of the rows: more than for one function, because folds and lams share it.
RANK = 15.0
# Relative duality gap of functions that only choose: held-out risks are larger by a five hundredth.
CHOICE_TOL = 1e-3
# Bytes of a row for each of the rows: tiles of one triangle in float32.
TILE_BYTES = 2.0


def is_many(m: int) -> bool:
    """Whether least squares are solved by steps."""
    return m > MANY_ROWS


class Folds:
    """What functions on all rows but some of them begin with, for a kernel and every lam.

    `problem` has the kernel, `blocks` are the rows that are left out in turn.
    """

    def __init__(self, problem: FixedKernel, blocks: Sequence[Rows]) -> None:
        self.problem, self.blocks = problem, blocks
        prepared = Preparation(problem, RANK)
        self.operator = prepared.operator
        self.low_ranks = [prepared.low_rank.without(block) for block in blocks]

    def values(self, lam: float, deadline: float = np.inf, tol: float = CHOICE_TOL) -> Array:
        """Values at the rows of each block by functions of all others, shape (n_outputs, m); 0 at rows in no block.

        To a relative gap `tol`, all blocks by the same products with the matrix. After the deadline, by the monotonic
        clock, values are those of the last step.
        """
        Y, intercept = self.problem.Y, self.problem.loss.intercept
        every, lams = np.arange(len(Y)), np.full(len(Y), lam)
        folds = [ShiftedSystems(self.operator, low_rank, Y, lams, intercept) for low_rank in self.low_ranks]
        with suppress(OutOfTimeError):
            for _ in range(self.problem.m):
                open_ones = [every[fold.gaps() > tol * np.abs(fold.lams * fold.energies())] for fold in folds]
                if not step_together(folds, open_ones, deadline):
                    break
        F = np.zeros(Y.shape)
        for fold, block in zip(folds, self.blocks, strict=True):
            F[:, block] = fold.F[:, block] + fold.intercepts()[:, None]
        return F


def solved(problem: FixedKernel, tol: float, deadline: float, begin: Array | None = None) -> tuple[Fit, DualityGap]:
    """What is found on all rows, and what it proves.

    From dual variables that an earlier run has found, NaN where it has not: the same function, where it holds.
    """
    solver = ConjugateGradients(Preparation(problem))
    if begin is not None and np.isfinite(begin).all():
        known = problem.certificate(np.zeros(0), begin)
        if known.holds(tol):
            return problem.found(begin), known
        solver.initial = begin
    clock = Clock(None if np.isinf(deadline) else max(deadline - time.monotonic(), 1e-3))
    found: Any = run(problem, solver, tol=tol, clock=clock, warn=False)
    if found.status is Status.INTERRUPTED:  # of all cells
        raise KeyboardInterrupt
    return problem.found(found.alpha), found.certificate


def fits(m: int) -> bool:
    """Whether there is memory for the matrix itself in float64, and for its factor."""
    return 2.0 * 8.0 * m * m <= allowed_memory(None)


def bytes_of(m: int) -> float:
    """Bytes that this takes, about: tiles, and the preconditioner twice."""
    return TILE_BYTES * m * m + 2.0 * 8.0 * m * RANK * float(np.sqrt(m))
