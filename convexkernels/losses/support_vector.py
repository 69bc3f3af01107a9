"""What the support vector losses share: a box-constrained dual in the signed coefficients w."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from convexkernels.losses.base import Loss
from convexkernels.losses.sequential import ascend_free, ascend_pairs

__all__ = ["BoxDual", "SupportVectorLoss", "best_intercept"]

Array = NDArray[np.float64]

# Above this many free coefficients a Newton step (a Cholesky factorisation of their block) is left out.
LARGEST_NEWTON = 3000


@dataclass(frozen=True, eq=False)
class BoxDual:
    """``maximise lin'w - sum_i eps_i |w_i| - 1/2 w'Kw`` over ``lo <= w <= hi``; all of shape (m,)."""

    lin: Array
    eps: Array
    lo: Array
    hi: Array


def best_intercept(residual: Array, dual: BoxDual) -> float:
    """The b that minimises ``sum_i max over w_i of (residual_i - b) w_i - eps_i |w_i|``.

    The sum is convex and piecewise linear in b with breakpoints ``residual -+ eps``; the middle of the flat piece
    is returned where there is one. O(m log m).
    """
    points = np.concatenate([residual - dual.eps, residual + dual.eps])
    jumps = np.concatenate([dual.hi, -dual.lo])
    order = np.argsort(points, kind="stable")
    points, jumps = points[order], jumps[order]
    slopes = np.cumsum(jumps) - dual.hi.sum()  # slope to the right of each breakpoint
    slack = 1e-12 * jumps.sum()
    first = int(np.argmax(slopes >= -slack))
    last = first
    if abs(slopes[first]) <= slack:
        rising = np.flatnonzero(slopes[first:] > slack)
        last = first + int(rising[0]) if rising.size else first
    return float(0.5 * (points[first] + points[last]))


class SupportVectorLoss(Loss):
    """A loss whose dual has box constraints; subclasses say which box and how alpha relates to w."""

    @abstractmethod
    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        """The dual program of one machine."""

    @abstractmethod
    def dual_variable(self, w: Array, y: Array) -> Array:
        """The alpha of given coefficients; inverse of `coefficients`."""

    def maximise(
        self,
        K: Array,
        y: Array,
        weights: Array,
        *,
        start: Array | None = None,
        tol: float = 1e-6,
        deadline: float | None = None,
    ) -> Array:
        dual = self.box_dual(y, weights)
        w = self.coefficients(self.feasible(np.zeros_like(y) if start is None else start, y, weights), y)
        w = _ascend(K, dual, w, self.intercept, tol, deadline)
        return self.dual_variable(w, y)

    def feasible(self, alpha: Array, y: Array, weights: Array) -> Array:
        dual = self.box_dual(y, weights)
        w = np.clip(self.coefficients(alpha, y), dual.lo, dual.hi)
        return self.dual_variable(_balance(w) if self.intercept else w, y)

    def dual_constant(self, alpha: Array, y: Array, weights: Array) -> float:
        dual, w = self.box_dual(y, weights), self.coefficients(alpha, y)
        return float(dual.lin @ w - dual.eps @ np.abs(w))

    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float]:
        dual = self.box_dual(y, weights)
        residual = dual.lin - f
        b = best_intercept(residual, dual) if self.intercept else 0.0
        r = residual - b
        losses = np.maximum(0.0, np.maximum(dual.hi * (r - dual.eps), dual.lo * (r + dual.eps)))
        return 0.5 * quadratic + float(losses.sum()), b


def _balance(w: Array) -> Array:
    """Shrink the heavier sign until the entries sum to 0; the box contains 0, so it stays inside."""
    up, down = w[w > 0].sum(), -w[w < 0].sum()
    if up == down:
        return w
    w = w.copy()
    if up > down:
        w[w > 0] *= down / up
    else:
        w[w < 0] *= up / down
    return w


def _ascend(K: Array, dual: BoxDual, w: Array, intercept: bool, tol: float, deadline: float | None) -> Array:
    """Alternate coordinate steps, which find the active bounds, with Newton steps on the free coefficients."""
    ascend = ascend_pairs if intercept else ascend_free
    diagonal = np.ascontiguousarray(np.diagonal(K), dtype=np.float64)
    m = w.size
    w = w.copy()
    g = _residual(K, dual, w)
    budget, last = 4 * m + 200, np.inf
    for _ in range(1000):
        taken, gap = ascend(K, diagonal, dual.lin, dual.eps, dual.lo, dual.hi, w, g, tol, budget)
        g = _residual(K, dual, w)  # drop what rounding has added up
        if gap <= tol or (deadline is not None and time.monotonic() > deadline):
            break
        improved = _newton(K, dual, w, g, intercept)
        if improved:
            g = _residual(K, dual, w)
        if taken < budget and not improved and gap >= last:
            break  # working precision
        last = gap
        budget = min(2 * budget, 200 * m + 20000)
    return _balance(w) if intercept else w


def _residual(K: Array, dual: BoxDual, w: Array) -> Array:
    support = np.flatnonzero(w)
    if support.size == 0:
        return dual.lin.copy()
    if support.size < 0.5 * w.size:
        return dual.lin - K[support].T.astype(np.float64, copy=False) @ w[support]
    return dual.lin - K @ w


def _newton(K: Array, dual: BoxDual, w: Array, g: Array, intercept: bool) -> bool:
    """Exact ascent on the free coefficients, as far as the box allows; changes `w`, says whether it moved."""
    moved = False
    for _ in range(8):
        free = np.flatnonzero((w > dual.lo) & (w < dual.hi) & ((w != 0.0) | (dual.eps == 0.0)))
        if not 2 <= free.size <= LARGEST_NEWTON:
            return moved
        slope = g[free] - dual.eps[free] * np.sign(w[free])
        block = K[np.ix_(free, free)].astype(np.float64)
        direction = _newton_direction(block, slope, intercept)
        if direction is None:
            return moved
        gain, curvature = slope @ direction, direction @ (block @ direction)
        if not gain > 0.0 or not curvature > 0.0:
            return moved
        step, blocked = _longest_step(w[free], direction, dual, free, min(1.0, gain / curvature))
        w[free] += step * direction
        if blocked >= 0:
            i = free[blocked]
            w[i] = _nearest_break(w[i], dual, i)
        moved = True
        if blocked < 0:
            return moved
        g = _residual(K, dual, w)
    return moved


def _newton_direction(block: Array, slope: Array, intercept: bool) -> Array | None:
    jitter = 1e-13 * np.trace(block) / len(slope)
    for _ in range(4):
        try:
            factor = cho_factor(block + jitter * np.eye(len(slope)), lower=True, check_finite=False)
            break
        except LinAlgError:
            jitter *= 100.0
    else:
        return None
    direction = cho_solve(factor, slope, check_finite=False)
    if intercept:
        ones = cho_solve(factor, np.ones_like(slope), check_finite=False)
        direction -= ones * (direction.sum() / ones.sum())
    return direction if np.isfinite(direction).all() else None


def _longest_step(w: Array, direction: Array, dual: BoxDual, free: Array, step: float) -> tuple[float, int]:
    """The part of `step` up to the first bound or change of slope, and who stops it (-1: nobody)."""
    kinked = dual.eps[free] > 0.0
    low = np.where(kinked & (w > 0), 0.0, dual.lo[free])
    high = np.where(kinked & (w < 0), 0.0, dual.hi[free])
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (high - w) / direction, np.where(direction < 0, (low - w) / direction, np.inf))
    blocked = int(np.argmin(room))
    return (float(room[blocked]), blocked) if room[blocked] < step else (step, -1)


def _nearest_break(value: float, dual: BoxDual, i: int) -> float:
    breaks = [dual.lo[i], dual.hi[i]] + ([0.0] if dual.eps[i] > 0 else [])
    return min(breaks, key=lambda point: abs(point - value))
