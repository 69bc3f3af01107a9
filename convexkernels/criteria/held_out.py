"""Held-out risk of any loss, with its derivative through the active set of the inner convex solve.

A function is trained on some rows and evaluated on the others, for every fold in turn. Where the active set of its dual
stays what it is, the free coefficients F and the intercept solve

    K_FF w_F + diag w_F + b 1 = y_F - K_FB w_B,       1'w_F = -1'w_B,

with coefficients w_B at their bounds. So one more solve with the same matrix, for the adjoint (p, p_b), gives all
derivatives of the risk: -p w' in the training block of K and g w' in the block between validation and training rows,
g being the slope of the risk in the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from convexkernels.arrays import Array
from convexkernels.criteria.base import LARGEST_LOG_LAM, BoundCriterion, Criterion, CriterionValue, clipped
from convexkernels.criteria.folds import Rows, split_rows
from convexkernels.linalg import shifted_cholesky, solve_bordered
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit, fit
from convexkernels.validation import check_number, check_whole_number

# Added to the free block, relative to its diagonal, where it is singular to rounding.
JITTER = 1e-10


class BoundHeldOut(BoundCriterion):
    """The risk for given targets and folds; each solve starts from the last one of its fold."""

    def prepare(self) -> None:
        self.folds, self.tol = self.criterion.folds, self.criterion.tol
        if isinstance(self.folds, int | np.integer):
            self.folds = split_rows(self.Y, int(self.folds), np.random.default_rng(self.seed))
        counted = np.concatenate([validation for _, validation in self.folds])
        self.total = float(self.weights[counted].sum()) * len(self.Y)
        self.last: dict[int, Array] = {}

    def __call__(self, K: Array, log_lam: float) -> HeldOutAt:
        return HeldOutAt(self, K, log_lam)


@dataclass(eq=False)
class _Trained:
    """The functions of one fold and how the risk answers to their predictions."""

    fit: Fit
    risk: float
    slope: Array  # of the risk in the predictions, (n_outputs, validation rows)


class HeldOutAt(CriterionValue):
    """The risk at one matrix."""

    def __init__(self, bound: BoundHeldOut, K: Array, log_lam: float) -> None:
        self.bound, self.K = bound, K
        if not abs(log_lam) <= LARGEST_LOG_LAM:
            return
        self.loss = bound.loss.at(bound.lam(log_lam))
        self.trained = [self._train(number, *fold) for number, fold in enumerate(bound.folds)]
        value = sum(trained.risk for trained in self.trained) / bound.total
        self.value = value if np.isfinite(value) else np.inf

    def _train(self, number: int, train: Rows, validation: Rows) -> _Trained:
        bound = self.bound
        Y, weights = np.ascontiguousarray(bound.Y[:, train]), bound.weights[train]
        start = bound.last.get(number)
        found = fit(self.loss, self.K[np.ix_(train, train)], Y, weights, start=start, tol=bound.tol)
        bound.last[number] = found.alpha
        F = found.W @ self.K[np.ix_(train, validation)] + found.b[:, None]
        F, moves = clipped(F, bound.bounds)
        losses, slope = self.loss.pointwise(bound.Y[:, validation], F)
        share = bound.weights[validation]
        return _Trained(found, float((losses @ share).sum()), np.where(moves, slope, 0.0) * share)

    def slopes(self) -> tuple[Array, float]:
        M, total = np.zeros_like(self.K, dtype=np.float64), 0.0
        for (train, validation), trained in zip(self.bound.folds, self.trained, strict=True):
            P = np.empty_like(trained.fit.W)
            for k in range(len(P)):
                P[k], slope = self._adjoint(train, validation, trained, k)
                total += slope
            M[np.ix_(train, train)] -= P.T @ trained.fit.W
            M[np.ix_(validation, train)] += trained.slope.T @ trained.fit.W
        return 0.5 * (M + M.T) / self.bound.total, total / self.bound.total

    def _adjoint(self, train: Rows, validation: Rows, trained: _Trained, k: int) -> tuple[Array, float]:
        """The adjoint of one function, 0 outside its free coefficients, and the slope of its risk in log lam."""
        loss, w, g = self.loss, trained.fit.W[k], trained.slope[k]
        y, weights = self.bound.Y[k, train], self.bound.weights[train]
        free, diagonal = loss.free(trained.fit.alpha[k], y, weights)
        p = np.zeros_like(w)
        bound_moves = -np.where(np.isin(np.arange(w.size), free), 0.0, w)  # C falls as lam rises
        p_b = 0.0
        if free.size:
            block = self.K[np.ix_(train[free], train[free])]
            right = self.K[np.ix_(train[free], validation)] @ g
            p[free], p_b = _bordered(block, diagonal, right, g, loss.intercept)
        right = -self.K[np.ix_(train, train)] @ bound_moves if bound_moves.any() else np.zeros_like(w)
        right[free] -= diagonal * w[free]
        slope = float(g @ (self.K[np.ix_(validation, train)] @ bound_moves) + p @ right - p_b * bound_moves.sum())
        return p, slope


class HeldOut(Criterion):
    """Weighted mean loss on rows that were not trained on, whose coefficients the inner problem gives [ST16 (10)].

    Parameters
    ----------
    folds : int, >= 1, or list of (training rows, validation rows)
        Every fold in turn; 1 is a single random third of the rows.
    tol : float
        Relative duality gap of the inner solves; errors of the derivative are of the order of its root. Risks of
        matrices that differ by rounding differ by about `tol`; where a long search ends may differ by more.
    """

    _bound = BoundHeldOut

    def __init__(self, folds: int | Sequence[tuple[Rows, Rows]] = 1, tol: float = 1e-8) -> None:
        self.folds = folds if not isinstance(folds, int | np.integer) else check_whole_number("folds", folds, low=1)
        self.tol = check_number("tol", tol, low=0.0, open_low=True)

    def accepts(self, loss: Loss) -> str | None:
        if loss.needs_definite:
            return f"{loss!r} has no risk on rows that it does not interpolate; use TrainingValue"
        return None


def _bordered(block: Array, diagonal: Array, right: Array, g: Array, intercept: bool) -> tuple[Array, float]:
    """Solve ``[A 1; 1' 0] (p, p_b) = (right, sum g)`` with ``A = block + diag``, without the border if no intercept."""
    A = block + np.diag(diagonal)
    factor = shifted_cholesky(A, JITTER * float(np.trace(A)) / len(A))
    if factor is None:  # numbers are not finite: no direction, and the search keeps what it has
        return np.zeros(len(A)), 0.0
    return solve_bordered(factor, right, float(g.sum()), intercept)
