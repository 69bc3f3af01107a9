"""What the support vector losses share: a box-constrained dual in the signed coefficients w."""

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.factored import CombinedFeatures, FactoredGram
from convexkernels.linalg import pivoted_cholesky, shifted_cholesky, solve_bordered
from convexkernels.losses.base import BoxDual
from convexkernels.losses.factored import maximize_factored
from convexkernels.losses.interior_point import LARGEST_INTERIOR, interior_point
from convexkernels.losses.sequential import ascend_free, ascend_pairs, box_dual_gap
from convexkernels.losses.weighted import WeightedLoss

# Above this many free coefficients a Newton step (a Cholesky factorization of their block) is left out.
LARGEST_NEWTON = 3000
# Coordinate steps over m^2 that take a good part of the time of an interior-point method: its dozen factorizations
# take that of some m^2. On cells of covtype, where it took over after 12 m steps, it had most of the time.
PATIENT = 0.25
# From so many rows on a factor of few columns is tried, a part 1 / FEW of their number and so many at most, where steps
# have left so many tolerances. What it leaves out and how far it is solved may cost a share of the tolerance each, the
# first a multiple of that where the columns do not suffice. On 1,600 rows and smooth kernels a fit takes .1 s for .8.
SMALLEST_FACTORED, FEW, MOST, FAR, SHARE, LOOSE = 300, 3, 1000, 8.0, 0.1, 10.0
# A coefficient closer to its bound than this part of it, or to 0 than this part of the largest one inside, is there,
# whatever rounding has left.
AT_A_BOUND = 1e-7
# How far above the size of a coefficient, `lin` over the diagonal, bounds may be inside the interior-point method. Of
# 300 random duals with C up to 1e14 73 ended above their tolerance with 1e8, 83 with 1e5 and 77 with none.
HIGHEST_BOUND = 1e8


def best_intercept(residual: Array, dual: BoxDual) -> float:
    """The b that minimizes ``sum_i max over w_i of (residual_i - b) w_i - eps_i |w_i|``, the middle of a flat piece."""
    flat = _flat_piece(residual, dual)
    return float(0.5 * (flat[0] + flat[-1]))


def _flat_piece(residual: Array, dual: BoxDual) -> Array:
    """Breakpoints ``residual -+ eps`` of that sum, convex and piecewise linear in b, between which no slope shows.

    In order; O(m log m).
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
    return points[first : last + 1]


class SupportVectorLoss(WeightedLoss):
    """A loss whose dual has box constraints; subclasses say which box."""

    @abstractmethod
    def box_dual(self, y: Array, weights: Array) -> BoxDual:
        """The dual program of one output."""

    def _maximum(
        self, K: Array, y: Array, weights: Array, start: Array | None, tol: float, deadline: float | None
    ) -> Array:
        dual = self.box_dual(y, weights)
        w = self.coefficients(self.feasible(np.zeros_like(y) if start is None else start, y, weights), y)

        def with_factor(factor: FactoredGram) -> Array:
            [alpha] = maximize_factored(self, factor, y[None], weights, tol=SHARE * tol, deadline=deadline)
            return self.coefficients(alpha, y)

        return self.dual_variable(_ascend(K, dual, w, self.intercept, tol, deadline, with_factor), y)

    def feasible(self, alpha: Array, y: Array, weights: Array) -> Array:
        dual = self.box_dual(y, weights)
        w = np.clip(self.coefficients(alpha, y), dual.lo, dual.hi)
        return self.dual_variable(_balance(w) if self.intercept else w, y)

    def free(self, alpha: Array, y: Array, weights: Array) -> tuple[Index, Array]:
        dual, w = self.box_dual(y, weights), self.coefficients(alpha, y)
        size, bound = np.abs(w), np.where(w > 0.0, dual.hi, -dual.lo)
        is_full = size >= (1.0 - AT_A_BOUND) * bound
        near = AT_A_BOUND * float(size.max(initial=0.0, where=~is_full))
        inside = ~is_full & (w > dual.lo + near) & (w < dual.hi - near) & ((size > near) | (dual.eps == 0.0))
        return np.flatnonzero(inside), np.zeros(int(inside.sum()))

    def dual_constant(self, alpha: Array, y: Array, weights: Array) -> float:
        dual, w = self.box_dual(y, weights), self.coefficients(alpha, y)
        return float(dual.lin @ w - dual.eps @ np.abs(w))

    def least_constant(self, Y: Array, weights: Array) -> Array:
        best = self.constant(Y, weights)
        for k, y in enumerate(Y):
            candidates = np.array([best[k], *np.unique(_flat_piece(y, self.box_dual(y, weights)))])
            best[k] = candidates[np.argmin([self.total(y, np.full_like(y, b), weights) for b in candidates])]
        return best

    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float, float]:
        dual = self.box_dual(y, weights)
        residual = dual.lin - f
        b = best_intercept(residual, dual) if self.intercept else 0.0
        r = residual - b
        losses = np.maximum(0.0, np.maximum(dual.hi * (r - dual.eps), dual.lo * (r + dual.eps)))
        return 0.5 * quadratic + float(losses.sum()), b, 1.0


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


def _ascend(
    K: Array,
    dual: BoxDual,
    w: Array,
    intercept: bool,
    tol: float,
    deadline: float | None,
    with_factor: Callable[[FactoredGram], Array] | None = None,
) -> Array:
    """Alternate coordinate steps, which find the active bounds, with Newton steps on the free coefficients.

    Where both crawl, because K is ill-conditioned and few bounds are active, an interior-point method takes over. A
    matrix that is nearly one of few columns is solved `with_factor` first.
    """
    ascend = ascend_pairs if intercept else ascend_free
    diagonal = np.maximum(np.diagonal(K), 0.0, dtype=np.float64)  # less than 0 where K is nothing but rounding
    m = w.size
    w = w.copy()
    g = _residual(K, dual, w)
    budget, last, fruitless, spent = 4 * m + 200, np.inf, 0, 0
    inside, reached = None, np.inf
    for round_ in range(60):
        steps, _ = ascend(K, diagonal, dual.lin, dual.eps, dual.lo, dual.hi, w, g, tol, budget)
        spent += steps
        g = _residual(K, dual, w)  # drop what rounding has added up
        gap = _gap(dual, w, g, intercept)  # with the best intercept: steps know it between bounds only
        fruitless = fruitless + 1 if gap > 0.5 * last else 0
        if gap <= tol or fruitless >= 3 or (deadline is not None and time.monotonic() > deadline):
            break
        if with_factor is not None and round_ == 0 and m >= SMALLEST_FACTORED and gap > FAR * tol:
            w, g, gap = _from_factor(K, dual, w, g, gap, intercept, tol, with_factor)
            if gap <= tol:
                break
        last, crawls = gap, fruitless > 0 or spent > PATIENT * m * m
        if inside is None and round_ > 0 and crawls and m <= LARGEST_INTERIOR:
            w, reached = _from_inside(K, dual, w, intercept, tol, deadline)
            if reached <= tol:
                break
            inside, g = w.copy(), _residual(K, dual, w)
        if ascend_by_newton(K, dual, w, g, intercept):
            g = _residual(K, dual, w)
        budget = min(2 * budget, 20 * m + 20000)
    if inside is not None and _gap(dual, w, _residual(K, dual, w), intercept) > reached:
        w = inside  # rounding of K w can make later steps lose what was reached
    return _balance(w) if intercept else w


def _from_factor(
    K: Array,
    dual: BoxDual,
    w: Array,
    g: Array,
    gap: float,
    intercept: bool,
    tol: float,
    with_factor: Callable[[FactoredGram], Array],
) -> tuple[Array, Array, float]:
    """The answer for a factor of few columns, if there is one clearly better than `w`; residual and gap are of K."""
    m, diagonal = len(w), np.diagonal(K).astype(np.float64)
    largest = float(diagonal.max())
    value = abs(box_dual_gap(dual.lin, dual.eps, dual.lo, dual.hi, w, g, 0.0)[1])
    allowed = SHARE * tol * value / max(float(w @ w), 1e-300)  # for every entry of the diagonal of what is left out
    allowed = max(allowed, 4.0 * float(np.finfo(K.dtype).eps) * m * largest)
    # A part of the columns says whether all of them may do: what these leave out is about the square of what it does.
    for columns, most in ((m // (4 * FEW), np.sqrt(LOOSE * allowed * largest)), (m // FEW, LOOSE * allowed)):
        Z, _ = pivoted_cholesky(lambda rows: K[rows], diagonal, min(columns, MOST), allowed)
        if not (diagonal - np.square(Z).sum(axis=1)).max() <= most:
            return w, g, gap
    found = with_factor(CombinedFeatures(m, [Z], np.ones(1)))
    residual = _residual(K, dual, found)
    reached = _gap(dual, found, residual, intercept)
    return (found, residual, reached) if reached < 0.5 * gap else (w, g, gap)  # or w, from which steps in K go on


def _from_inside(
    K: Array, dual: BoxDual, w: Array, intercept: bool, tol: float, deadline: float | None
) -> tuple[Array, float]:
    """The best of `w` and the answer of the interior-point method, moved onto the bounds it is close to or not."""
    K64 = K.astype(np.float64, copy=False)
    full = max(float(dual.hi.max()), -float(dual.lo.min()))
    # Bounds very far above every coefficient spoil the scaling: solve with lower ones unless they turn out active.
    unit = max(float(np.abs(dual.lin).max()), 1e-300) / max(float(np.diagonal(K).mean()), 1e-300)
    limit = min(full, HIGHEST_BOUND * unit)
    while True:
        lower = replace(dual, lo=np.maximum(dual.lo, -limit), hi=np.minimum(dual.hi, limit))
        found = interior_point(K64, lower, intercept, tol=tol, deadline=deadline)
        if limit >= full or np.abs(found).max() < 0.9 * limit:
            break
        limit = min(full, 1e3 * limit)
    width = 1e-9 * (lower.hi - lower.lo)
    found = np.clip(found, dual.lo, dual.hi)
    moved = np.where(np.abs(found) <= width, 0.0, found)
    moved = np.where(dual.hi - moved <= width, dual.hi, np.where(moved - dual.lo <= width, dual.lo, moved))
    best = w, _gap(dual, w, _residual(K64, dual, w), intercept)
    for trial in (moved, found):
        v = _balance(trial) if intercept else trial
        gap = _gap(dual, v, _residual(K64, dual, v), intercept)
        if gap < best[1]:
            best = v, gap
    return best


def _gap(dual: BoxDual, w: Array, g: Array, intercept: bool) -> float:
    """Relative duality gap of w, whose residual is g, with its best intercept."""
    b = best_intercept(g, dual) if intercept else 0.0
    primal, value = box_dual_gap(dual.lin, dual.eps, dual.lo, dual.hi, w, g, b)
    return float((primal - value) / max(abs(primal), abs(value), 1e-300))


def _residual(K: Array, dual: BoxDual, w: Array) -> Array:
    support = np.flatnonzero(w)
    if support.size == 0:
        return dual.lin.copy()
    if support.size < 0.5 * w.size:
        return dual.lin - K[support].T.astype(np.float64, copy=False) @ w[support]
    return dual.lin - K @ w


def ascend_by_newton(K: Array, dual: BoxDual, w: Array, g: Array, intercept: bool) -> bool:
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
        step, blocked = _longest_step(w[free], direction, dual, free, min(1.0, float(gain / curvature)))
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
    factor = shifted_cholesky(block, 1e-13 * float(np.trace(block)) / len(slope), tries=4)
    if factor is None:
        return None
    direction, _ = solve_bordered(factor, slope, 0.0, intercept)
    if intercept:
        direction -= direction.mean()  # where the block is nearly singular, rounding is many times the slope
    return direction if np.isfinite(direction).all() else None


def _longest_step(w: Array, direction: Array, dual: BoxDual, free: Index, step: float) -> tuple[float, int]:
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
