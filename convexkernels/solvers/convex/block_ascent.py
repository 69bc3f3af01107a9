"""Duals in a box on many rows: pairs of coefficients move, among as many rows as memory holds the matrix of."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.losses.base import BoxDual
from convexkernels.losses.sequential import ascend_free, ascend_pairs, box_dual_gap
from convexkernels.losses.support_vector import LARGEST_NEWTON, ascend_by_newton, best_intercept
from convexkernels.solvers.convex.preparation import allowed_bytes, other_bytes

if TYPE_CHECKING:
    from convexkernels.problems.fixed_kernel import FixedKernel

# Rows of a block at least, whatever the memory.
SMALLEST_BLOCK = 512
# Share of the memory that the matrices of a Newton step may take.
NEWTON_SHARE = 0.1
# Entries of the matrix that the pairs of one step look at: a second or two.
WORK = 2e8
# Steps by pairs crawl where they leave more than this share of a gap.
CRAWLING = 0.5
# Rounds of pairs and Newton steps that crawl before another block has its turn.
FRUITLESS = 3
# Gap of a block that its pairs are to reach, as a share of that of the whole, and of the value of the whole.
BLOCK_GAP, LEAST_GAP = 0.05, 1e-13
# Rows of the matrix that are held in float64 at once.
CHUNK = 256

Tell = Callable[[float], Any]


class BlockAscent:
    """Dual variables of all outputs and the values of their functions, ascending block by block [Joa99].

    Coefficients of a block, `size` rows, move, all others stay: ``maximize (lin - K w)_B'd - sum eps |w + d| - 1/2
    d'K_BB d`` in the box, with ``sum d = 0`` where an intercept is fitted. Where all rows fit there is one block, and
    its matrix is made once for all outputs. W is feasible, shape (n_outputs, m), and ``F = W K``.
    """

    def __init__(self, problem: FixedKernel, W: Array, F: Array) -> None:
        loss = problem.loss
        duals = [loss.box_dual(y, problem.weights) for y in problem.Y]
        self.duals = [dual for dual in duals if dual is not None]
        self.intercept, self.W, self.F = loss.intercept, W.copy(), F.copy()
        self.m, (self.size, self.largest_newton) = problem.m, block_sizes(problem)
        self.operator = problem.operator(np.float32)
        self._order = np.random.default_rng(0).permutation(self.m)  # among equals
        self._gaps = np.full(len(W), np.inf)
        self._whole: Array | None = None

    def step(self, tol: float, deadline: float | None, tell: Tell) -> bool:
        """Move all outputs for a while; False where none can move any more."""
        if self.size == self.m:
            if self._whole is None:
                self._whole = self.operator.square(np.arange(self.m), deadline, tell)
            moves = [self._ascend_whole(k, self._whole, tol) for k in range(len(self.W)) if _in_time(deadline)]
            return any(moves)
        changes = np.zeros(self.W.shape)
        for k in range(len(self.W)):
            rows = self._violators(k)
            K = self.operator.square(rows, deadline)
            before = self.W[k, rows]
            self.W[k, rows] = self._moved(k, rows, K, tol)[0]
            changes[k, rows] = self.W[k, rows] - before
        if not changes.any():
            return False
        self.F += self.operator.product(changes, deadline, tell)
        return True

    def _ascend_whole(self, k: int, K: Array, tol: float) -> bool:
        w, g = self._moved(k, np.arange(self.m), K, tol)
        has_moved = not np.array_equal(w, self.W[k])
        self.W[k], self.F[k] = w, self.duals[k].lin - g
        return has_moved

    def _moved(self, k: int, rows: Index, K: Array, tol: float) -> tuple[Array, Array]:
        """New coefficients of a block, and the residuals ``lin - K w`` on it that they leave."""
        g, w = (self.duals[k].lin - self.F[k])[rows], self.W[k, rows]
        dual, tol = self._part(k, rows, K, g, tol)
        diagonal = np.maximum(np.diagonal(K), 0.0, dtype=np.float64)
        ascend = ascend_pairs if self.intercept else ascend_free
        left, budget, is_part, fruitless = WORK / len(rows), 4 * len(rows) + 200, len(rows) < self.m, 0
        if is_part:
            self._gaps[k], budget = np.inf, len(rows)
        own = -np.inf if is_part else tol  # pairs reckon with a sum of 0, which that of a part need not be
        while left > 0:
            most = int(min(budget, max(left, 200)))
            n_steps, gap = ascend(K, diagonal, dual.lin, dual.eps, dual.lo, dual.hi, w, g, own, most)
            if is_part:
                gap = _gap(dual, w, g, self.intercept)
            if gap <= tol:
                break
            crawls, self._gaps[k] = gap > CRAWLING * self._gaps[k], gap
            fruitless = fruitless + 1 if crawls else 0
            if fruitless >= FRUITLESS or (not (crawls and self._newton(K, dual, w, g)) and not n_steps):
                break
            left, budget = left - n_steps - 1, 2 * budget
        return w, g

    def _part(self, k: int, rows: Index, K: Array, g: Array, tol: float) -> tuple[BoxDual, float]:
        """The program in the coefficients of a block, and an absolute gap for it that suits the whole."""
        whole, w, F = self.duals[k], self.W[k], self.F[k]
        if len(rows) == self.m:
            return whole, tol
        part = whole.on_rows(rows, g + _times(K, w[rows]))
        r = whole.lin - F
        b = best_intercept(r, whole) if self.intercept else 0.0
        upper, lower = box_dual_gap(whole.lin, whole.eps, whole.lo, whole.hi, w, r, b)
        return part, max(BLOCK_GAP * max(upper - lower, tol * abs(upper)), LEAST_GAP * abs(upper))

    def _newton(self, K: Array, dual: BoxDual, w: Array, g: Array) -> bool:
        """Newton steps on the coefficients between their bounds, where they are not too many; changes `w` and `g`."""
        free = np.flatnonzero((w > dual.lo) & (w < dual.hi) & ((w != 0.0) | (dual.eps == 0.0)))
        if not 2 <= len(free) <= self.largest_newton:
            return False
        block, before = K[np.ix_(free, free)].astype(np.float64), w[free]
        part, moved, left = dual.on_rows(free, g[free] + block @ before), before.copy(), g[free]
        if not ascend_by_newton(block, part, moved, left, self.intercept):
            return False
        w[free] = moved
        change = np.zeros(len(w))
        change[free] = moved - before
        g -= _times(K, change)
        return True

    def _violators(self, k: int) -> Index:
        """Rows of the next block: those that gain most by rising and those that gain most by falling, half each.

        Such a pair is what a step moves where the sum of the coefficients is kept.
        """
        rise, fall = _slopes(self.duals[k], self.W[k], self.duals[k].lin - self.F[k])
        risers = self._order[np.argsort(-rise[self._order], kind="stable")]
        rows, others = np.split(risers, [self.size // 2])
        fallers = others[np.argsort(fall[others], kind="stable")]
        return np.sort(np.concatenate([rows, fallers[: self.size - len(rows)]]))


def block_sizes(problem: FixedKernel) -> tuple[int, int]:
    """Rows of a block, and most coefficients of a Newton step, within the memory.

    The block takes all of it: on 20,000 rows with 10,000 support vectors and 400 MB, the largest block and products
    evaluated anew left a gap of 0.05 after 45 s; half of the memory for tiles that are kept left 0.34 after 100 s.
    """
    m, limit = problem.m, allowed_bytes(problem)
    newton = int(min(LARGEST_NEWTON, np.sqrt(NEWTON_SHARE * limit / 24.0)))
    left = limit - other_bytes(problem) - 24.0 * min(newton, m) ** 2
    return int(min(m, max(np.sqrt(max(left, 0.0) / 4.0), SMALLEST_BLOCK))), newton


def least_bytes(problem: FixedKernel) -> float:
    """What the smallest block takes."""
    return 4.0 * min(problem.m, SMALLEST_BLOCK) ** 2 + other_bytes(problem)


def _slopes(dual: BoxDual, w: Array, g: Array) -> tuple[Array, Array]:
    """Slopes of the dual where coefficients rise and where they fall; -inf and inf where they cannot."""
    rise = np.where(w < dual.hi, g - np.where(w >= 0.0, dual.eps, -dual.eps), -np.inf)
    fall = np.where(w > dual.lo, g - np.where(w > 0.0, dual.eps, -dual.eps), np.inf)
    return rise, fall


def _gap(dual: BoxDual, w: Array, g: Array, intercept: bool) -> float:
    """Duality gap of coefficients whose sum is kept, whatever it is, where an intercept is fitted."""
    b = 0.0
    if intercept:
        rise, fall = _slopes(dual, w, g)
        top, bottom = float(rise.max()), float(fall.min())
        b = 0.5 * (top + bottom) if np.isfinite(top + bottom) else bottom if np.isinf(top) else top
    upper, lower = box_dual_gap(dual.lin, dual.eps, dual.lo, dual.hi, w, g, b)
    return upper - lower + b * float(w.sum())


def _times(K: Array, w: Array) -> Array:
    """``K w`` in float64 for a symmetric K in float32, a few rows at a time of those that count."""
    f, support = np.zeros(len(w)), np.flatnonzero(w)
    for start in range(0, len(support), CHUNK):
        rows = support[start : start + CHUNK]
        f += w[rows] @ K[rows].astype(np.float64)
    return f


def _in_time(deadline: float | None) -> bool:
    return deadline is None or time.monotonic() <= deadline
