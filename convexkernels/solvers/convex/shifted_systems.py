"""Linear systems that differ from one Gram matrix by their diagonals: conjugate gradients on all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from convexkernels.arrays import Array, Index, Mask
from convexkernels.backend import Backend, to_numpy
from convexkernels.exceptions import InvalidInputError
from convexkernels.few_vectors import times
from convexkernels.kernels.operator import GramOperator
from convexkernels.linalg import pivoted_cholesky, shifted_cholesky

# Residuals of so many times the squares of the targets, or more, are those of steps that have gone astray.
LOST = 1e6


class LowRank:
    """``(Z Z' + lam S^-1)^-1`` for any lam > 0 and weights S >= 0, in whose place rows of weight 0 stay 0.

    Z, shape (m, r), is a factor of about the Gram matrix; `backend` is where products with it are formed. Of the trace
    of the matrix, Z leaves out the share `left_out`, where it was made here.
    """

    left_out = np.nan

    def __init__(self, Z: Array, weights: Array, backend: Backend | None = None) -> None:
        self.backend = Backend("float64") if backend is None else backend
        self.Z, self.weights = self.backend.there(Z), weights
        self._factors: dict[float, Any] = {}

    @cached_property
    def _inner(self) -> Array:
        return self._inner_of(slice(None))

    def _inner_of(self, rows: Any) -> Array:
        """``Z' S Z`` over some rows."""
        part, weights = self.Z[self.backend.there(rows) if isinstance(rows, np.ndarray) else rows], self.weights[rows]
        if not (weights == 1.0).all():
            part = part * self.backend.there(np.sqrt(weights))[:, None]
        return np.asarray(to_numpy(part.T @ part))  # numpy multiplies a matrix with itself in half of the operations

    @classmethod
    def of(
        cls, operator: GramOperator, weights: Array, rank: int, tol: float, deadline: float | None = None
    ) -> LowRank:
        """From a pivoted Cholesky factor that leaves a diagonal of at most `tol`, has this rank, or took its time."""
        diagonal = operator.diagonal()
        Z = pivoted_cholesky(operator.rows, diagonal, rank, tol, deadline)[0]
        made, trace = cls(Z, weights, operator.backend.doubled()), float(diagonal.sum())
        made.left_out = max(0.0, 1.0 - float(np.einsum("ij,ij->", Z, Z)) / trace) if trace > 0.0 else 0.0
        return made

    def without(self, rows: Index) -> LowRank:
        """The same where some rows count no more."""
        return self.without_each([rows])[0]

    def without_each(self, blocks: Sequence[Index]) -> list[LowRank]:
        """The same where the rows of each block in turn count no more; where they are all rows, Z is looked at once."""
        every = np.arange(len(self.weights))
        blocks = [every[block] for block in blocks]
        parts = [self._inner_of(block) for block in blocks]
        if "_inner" not in vars(self) and np.array_equal(np.sort(np.concatenate([every[:0], *blocks])), every):
            self._inner = np.sum(parts, axis=0)
        return [self._less(block, part) for block, part in zip(blocks, parts, strict=True)]

    def _less(self, rows: Index, part: Array) -> LowRank:
        other = LowRank(self.Z, self.weights.copy(), self.backend)
        other.weights[rows] = 0.0
        other._inner = self._inner - part
        return other

    def keep_only(self, lam: float) -> None:
        """Forget the factors of all lams but this one."""
        self._factors = {known: factor for known, factor in self._factors.items() if known == lam}

    def solve(self, R: Array, lams: Array) -> Array:
        """Solutions for right-hand sides in the rows of `R`, each with its lam."""
        return solve_together([self], [R], [lams])[0]

    def _solve_inside(self, inner: Array, lams: Array) -> Array:
        """``(lam I + Z' S Z)^-1`` times the rows of `inner`."""
        solved = np.empty_like(inner)
        for lam in np.unique(lams):
            at = lams == lam
            solved[at] = cho_solve(self._factor(float(lam)), inner[at].T, check_finite=False).T
        return solved

    def _factor(self, lam: float) -> Any:
        if lam not in self._factors:
            factor = shifted_cholesky(self._inner + lam * np.eye(len(self._inner)))
            if factor is None:
                raise InvalidInputError("the kernel has values that are not finite on these points; rescale them.")
            self._factors[lam] = factor
        return self._factors[lam]


def solve_together(parts: Sequence[LowRank], rights: Sequence[Array], lams: Sequence[Array]) -> list[Array]:
    """What `LowRank.solve` gives for each part; all have one Z, which is looked at twice."""
    backend, Z, ends = parts[0].backend, parts[0].Z, np.cumsum([len(R) for R in rights])[:-1]
    scaled = [R * part.weights for part, R in zip(parts, rights, strict=True)]
    inner = np.split(to_numpy(times(backend.there(np.concatenate(scaled)), Z)), ends)
    solved = [part._solve_inside(one, own) for part, one, own in zip(parts, inner, lams, strict=True)]
    spread = np.split(to_numpy(times(backend.there(np.concatenate(solved)), Z.T)), ends)
    return [
        np.asarray((one - F * part.weights) / own[:, None])
        for part, one, F, own in zip(parts, scaled, spread, lams, strict=True)
    ]


class ShiftedSystems:
    """Systems ``(K + lam_c S^-1) w_c + b_c = y_c`` [``sum w_c = 0``]; w is 0 where the weight is.

    Preconditioned conjugate gradients, with coefficients by Polak and Ribiere because tiles are rounded. With an
    intercept all steps are projected onto ``sum w = 0``. W and ``F = W K`` are where to begin, shape (c, m) as Y.
    """

    def __init__(
        self,
        operator: GramOperator,
        preconditioner: LowRank,
        Y: Array,
        lams: Array,
        intercept: bool,
        W: Array | None = None,
        F: Array | None = None,
    ) -> None:
        self.operator, self.preconditioner, self.intercept = operator, preconditioner, intercept
        self.Y, self.lams, self.weights = Y, lams, preconditioner.weights
        self._counted = self.weights > 0.0
        self._inverse = np.divide(1.0, self.weights, out=np.zeros_like(self.weights), where=self._counted)
        self.W = np.zeros(Y.shape) if W is None else W.copy()
        self._ones: dict[float, Array] = {}
        self.begin_again(np.zeros(Y.shape) if F is None else F.copy())

    def begin_again(self, F: Array) -> None:
        """Take values ``F = W K`` from elsewhere, and forget all directions: correcting them saves no steps."""
        self.F = F
        self.R = self._centered(self.Y - F - self.lams[:, None] * self._inverse * self.W)
        self._P = self._projected(self.preconditioner.solve(self.R, self.lams), self.lams)
        self._descent = np.einsum("cm,cm->c", self._P, self.R)

    def joined(self, other: ShiftedSystems) -> ShiftedSystems:
        """Both systems, with the matrix and the preconditioner of the first."""
        for name in ("Y", "lams", "W", "F", "R", "_P", "_descent"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self._ones |= other._ones
        return self

    def gaps(self) -> Array:
        """Duality gaps, ``sum_i weights_i r_i^2`` over the residuals, shape (c,)."""
        return np.asarray(np.square(self.R) @ self.weights)

    def energies(self) -> Array:
        """``y'w``, at the solution the optimum over lam, shape (c,)."""
        return np.einsum("cm,cm->c", self.Y, self.W)

    @property
    def moving(self) -> Mask:
        """Which can go on: not those that are solved, nor those whose directions are rounding."""
        return self._descent > 0.0

    def step(
        self, which: Index, deadline: float | None = None, tell: Callable[[float], Any] = lambda share: None
    ) -> bool:
        """One step of those of some systems that can go on; False where none can any more."""
        return step_together([self], [which], deadline, tell)

    def _going_on(self, which: Index) -> Index:
        """Those of some systems that can go on.

        Where lam is far below the rounding of the tiles, their matrix is not definite, and residuals grow without end.
        """
        self._descent[self.gaps() > LOST * (np.square(self.Y) @ self.weights)] = 0.0
        return which[self.moving[which]]

    def _advance(self, which: Index, KP: Array) -> tuple[Index, Array]:
        """One step of some systems, given the products of their directions: those that took it, and old residuals."""
        AP = KP + self.lams[which, None] * self._inverse * self._P[which]
        curvature = np.einsum("cm,cm->c", self._P[which], AP)
        able = (curvature > 0.0) & np.isfinite(curvature)
        self._descent[which[~able]] = 0.0
        which, KP, AP, curvature = which[able], KP[able], AP[able], curvature[able]
        P = self._P[which]
        length = (self._descent[which] / curvature)[:, None]
        self.W[which] += length * P
        self.F[which] += length * KP
        old, self.R[which] = self.R[which], self._centered(self.R[which] - length * AP)
        return which, old

    def _turn(self, which: Index, old: Array, Z: Array) -> bool:
        """New directions of some systems, given what the preconditioner says; whether any of them can go on."""
        Z = self._projected(Z, self.lams[which])
        turn = np.einsum("cm,cm->c", Z, self.R[which] - old) / self._descent[which]
        self._P[which] = Z + np.maximum(turn, 0.0)[:, None] * self._P[which]
        self._descent[which] = np.einsum("cm,cm->c", self._P[which], self.R[which])
        return bool(self.moving[which].any())

    def intercepts(self) -> Array:
        """Intercepts of least loss, shape (c,)."""
        if not self.intercept:
            return np.zeros(len(self.Y))
        return np.asarray((self.Y - self.F) @ self.weights / self.weights.sum())

    def _centered(self, R: Array) -> Array:
        R = np.where(self._counted, R, 0.0)
        if self.intercept:
            R -= np.where(self._counted, (R @ self.weights / self.weights.sum())[:, None], 0.0)
        return R

    def _projected(self, Z: Array, lams: Array) -> Array:
        """What the preconditioner says of residuals, with ``sum w = 0`` where there is an intercept."""
        if self.intercept:
            for lam in np.unique(lams):
                if lam not in self._ones:
                    self._ones[lam] = self.preconditioner.solve(np.ones((1, Z.shape[1])), np.array([lam]))[0]
                at, ones = lams == lam, self._ones[lam]
                Z[at] -= np.outer(Z[at].sum(axis=1) / ones.sum(), ones)
        return Z


def step_together(
    parts: Sequence[ShiftedSystems],
    which: Sequence[Index],
    deadline: float | None = None,
    tell: Callable[[float], Any] = lambda share: None,
) -> bool:
    """One step of some systems of each part by one product with the matrix that all have; False where none can go on.

    Preconditioners of parts differ by the rows that count.
    """
    going = [part._going_on(some) for part, some in zip(parts, which, strict=True)]
    if not any(some.size for some in going):
        return False
    P = np.concatenate([part._P[some] for part, some in zip(parts, going, strict=True)])
    KP = np.split(parts[0].operator.product(P, deadline, tell), np.cumsum([some.size for some in going])[:-1])
    taken = [part._advance(some, own) for part, some, own in zip(parts, going, KP, strict=True)]
    rights = [part.R[some] for part, (some, _) in zip(parts, taken, strict=True)]
    lams = [part.lams[some] for part, (some, _) in zip(parts, taken, strict=True)]
    said = solve_together([part.preconditioner for part in parts], rights, lams)
    moving = [part._turn(some, old, Z) for part, (some, old), Z in zip(parts, taken, said, strict=True)]
    return any(moving)
