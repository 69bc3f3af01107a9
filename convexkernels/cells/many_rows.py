"""Least squares in cells of many rows: conjugate gradients on tiles of the matrix, where a factor mostly takes longer.

A factor of the matrix of m rows takes m^3 / 3 operations in float64, and its inverse, which leaves rows out in closed
form, three times as many. A step takes m^2 for every fold, in float32, on entries that are evaluated once for all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.criteria.folds import Rows
from convexkernels.driver import run
from convexkernels.kernels.operator import OutOfTimeError, OverflowingTilesError
from convexkernels.losses.fit import Fit
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.solution import Status
from convexkernels.solvers.convex.conjugate_gradients import ConjugateGradients
from convexkernels.solvers.convex.preparation import OWN_SHARE, Preparation, audited_gaps
from convexkernels.solvers.convex.shifted_systems import ShiftedSystems, step_together
from convexkernels.validation import allowed_memory

# Rows from which on steps take less time, and folds up to which: the factors of each take m RANK^2.
MANY_ROWS, MANY_FOLDS = 2000, 13
# Rank of the preconditioner, beside the root of the rows: more than for one function, because folds and lams share it.
RANK = 15.0
# Relative duality gap of functions that only choose: held-out risks are others by four thousandths at most.
CHOICE_TOL = 1e-3
# Shares of the optimum beyond which steps have gone astray.
ASTRAY = 0.1
# Vectors of float64 that each fold has.
VECTORS = 8.0


def is_many(m: int, n_blocks: int = 0) -> bool:
    """Whether least squares are solved by steps, with so many folds."""
    return m > MANY_ROWS * max(1.0, n_blocks / MANY_FOLDS)


class Folds:
    """What functions on all rows but some of them begin with, for a kernel and every lam.

    `problem` has the kernel, `blocks` are the rows that are left out in turn. Where the deadline, by the monotonic
    clock, is near, the preconditioner has the rank that a part of the time suffices for.
    """

    def __init__(self, problem: FixedKernel, blocks: Sequence[Rows], deadline: float = np.inf) -> None:
        self.problem, self.blocks = problem, blocks
        prepared = Preparation(problem, RANK)
        self.operator, low_rank = prepared.operator, prepared.low_rank(None if np.isinf(deadline) else deadline)
        self.low_ranks = low_rank.without_each(blocks)

    def values(self, lam: float, deadline: float = np.inf, tol: float = CHOICE_TOL) -> Array | None:
        """Values at the rows of each block by functions of all others, shape (n_outputs, m); 0 at rows in no block.

        To a relative gap `tol`, all blocks by the same products with the matrix. None where tiles do not tell these
        functions, or do not hold them, or the deadline comes first.
        """
        for low_rank in self.low_ranks:
            low_rank.keep_only(lam)
        Y, intercept = self.problem.Y, self.problem.loss.intercept
        lams = np.full(len(Y), lam)
        folds = [ShiftedSystems(self.operator, low_rank, Y, lams, intercept) for low_rank in self.low_ranks]
        F = np.zeros(Y.shape)
        try:
            if not self._are_solved(folds, tol, deadline):
                return None
        except (OutOfTimeError, OverflowingTilesError):
            return None
        for fold, block in zip(folds, self.blocks, strict=True):
            F[:, block] = fold.F[:, block] + fold.intercepts()[:, None]
        return F

    def _are_solved(self, folds: list[ShiftedSystems], tol: float, deadline: float) -> bool:
        """Take steps until exact values on some rows confirm the gaps; where they do not, form all of them once."""
        every = np.arange(len(self.problem.Y))
        for is_last in (False, True):
            for _ in range(self.problem.m):
                still = [every[fold.gaps() > OWN_SHARE * _part(fold, tol)] for fold in folds]
                if not step_together(folds, still, deadline):
                    break
            gaps = np.array([audited_gaps(fold) for fold in folds])
            found = bool((gaps <= [_part(fold, tol) for fold in folds]).all())
            if found or is_last or not (gaps <= [_part(fold, ASTRAY) for fold in folds]).all():
                break
            exact = self.problem.operator(np.float64).product(np.vstack([fold.W for fold in folds]), deadline)
            for fold, F in zip(folds, np.split(exact, len(folds)), strict=True):
                fold.begin_again(F)
        return found


def _part(fold: ShiftedSystems, share: float) -> Array:
    """A share of the optima of a fold."""
    return share * np.abs(fold.lams * fold.energies())


def solved(problem: FixedKernel, tol: float, deadline: float, begin: Array | None = None) -> tuple[Fit, DualityGap]:
    """What is found on all rows, and what it proves.

    Where dual variables that an earlier run has found, NaN where it has not, prove it, it is theirs.
    """
    if begin is not None and np.isfinite(begin).all():
        known = problem.certificate(np.zeros(0), begin)
        if known.holds(tol):
            return problem.found(begin), known
    prepared = Preparation(problem)
    left = deadline - time.monotonic() - prepared.seconds_of_certificate()
    clock = Clock(None if np.isinf(deadline) else max(left, 1e-3))
    found: Any = run(problem, ConjugateGradients(prepared), tol=tol, clock=clock, warn=False)
    if found.status is Status.INTERRUPTED:  # of all cells
        raise KeyboardInterrupt
    return problem.found(found.alpha), found.certificate


def fits(m: int) -> bool:
    """Whether there is memory for the matrix itself in float64, for its factor and what is made of both."""
    return 3.0 * 8.0 * m * m <= allowed_memory(None)


def bytes_of(m: int, n_blocks: int) -> float:
    """Bytes that this takes, about: tiles of one triangle, three times the preconditioner, and what each fold has.

    That is its inner matrix and the factor of one lam, beside the inner matrix of all rows, and some vectors. Where
    tiles do not tell the functions, factors of the whole matrix take more, where there is as much (`fits`).
    """
    rank = min(m, RANK * float(np.sqrt(m)))
    return 2.0 * m * m + 8.0 * (3.0 * m * rank + (1.0 + 2.0 * n_blocks) * rank**2 + VECTORS * n_blocks * m)
