"""Sequential minimal optimization for box-constrained duals, compiled.

All support vector losses have the dual, in the signed coefficients w,

    maximize  lin'w - sum_i eps_i |w_i| - 1/2 w'Kw,   lo <= w <= hi  (lo <= 0 <= hi),   [sum w = 0],

so one solver serves them: hinge (eps = 0, the box on one side of 0 by the label), epsilon-insensitive,
pinball. `g` always is the residual ``lin - K w``. A step never crosses 0 where eps_i > 0, because the slope
changes there.
"""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.compiled import EXACT_FAST, MATRIX, MATRIX32, VECTOR, compiled

FAST = {"contract", "reassoc", "nsz", "nnan", "arcp"}
# Stands for "this coefficient cannot move that way"; finite, so that sums and squares with it stay ordered.
BLOCKED = 1e150
# Stands for the diagonal of a row that is 0; products of two of it are not 0.
SMALLEST = 1e-150
_MACHINES = tuple(f"({K},{','.join([VECTOR] * 7)},f8,i8)" for K in (MATRIX, MATRIX32))


@compiled(f"({','.join([VECTOR] * 6)},f8)", fastmath=EXACT_FAST)
def box_dual_gap(lin: Array, eps: Array, lo: Array, hi: Array, w: Array, g: Array, b: float) -> tuple[float, float]:
    """Primal value at intercept b and dual value, both of the same w. O(m)."""
    dual = 0.0
    quadratic = 0.0
    loss = 0.0
    for k in range(w.shape[0]):
        dual += lin[k] * w[k] - eps[k] * abs(w[k])
        quadratic += w[k] * (lin[k] - g[k])
        r = g[k] - b
        loss += max(0.0, max(hi[k] * (r - eps[k]), lo[k] * (r + eps[k])))
    return 0.5 * quadratic + loss, dual - 0.5 * quadratic


@compiled()
def _set_slopes(k: int, w: Array, eps: Array, lo: Array, hi: Array, up: Array, down: Array) -> None:
    """``g + up`` and ``g + down`` are the slopes of the dual when coefficient k rises or falls."""
    up[k] = -BLOCKED if w[k] >= hi[k] else (-eps[k] if w[k] >= 0.0 else eps[k])
    down[k] = BLOCKED if w[k] <= lo[k] else (-eps[k] if w[k] > 0.0 else eps[k])


# The passes below have no branches, so that they become vector code; indices are found by a second scan.
@compiled(fastmath=FAST)
def _extremes(g: Array, up: Array, down: Array) -> tuple[float, float]:
    top, bottom = -BLOCKED, BLOCKED
    for k in range(g.shape[0]):
        top = max(top, g[k] + up[k])
        bottom = min(bottom, g[k] + down[k])
    return top, bottom


@compiled(fastmath=FAST)
def _subtract(g: Array, s: float, row: Array, t: float, other: Array) -> None:
    for k in range(g.shape[0]):
        g[k] -= s * row[k] + t * other[k]


@compiled(fastmath=FAST)
def _pair_gains(top: float, own: float, g: Array, down: Array, diagonal: Array, row: Array, gains: Array) -> float:
    best = 0.0
    for k in range(g.shape[0]):
        slope = max(0.0, top - g[k] - down[k])
        both = own + diagonal[k]
        gain = slope * slope / max(both - 2.0 * row[k], 1e-12 * both + 1e-300)
        gains[k] = gain
        best = max(best, gain)
    return best


@compiled(fastmath=FAST)
def _single_gains(g: Array, up: Array, down: Array, diagonal: Array, gains: Array) -> float:
    best = 0.0
    for k in range(g.shape[0]):
        slope = max(max(0.0, g[k] + up[k]), -min(0.0, g[k] + down[k]))
        gain = slope * slope / max(diagonal[k], 1e-300)
        gains[k] = gain
        best = max(best, gain)
    return best


@compiled(fastmath=FAST)
def _joint_gains(
    slope_i: float, own: float, g: Array, up: Array, down: Array, diagonal: Array, row: Array, gains: Array
) -> float:
    best = 0.0
    first = slope_i * slope_i / own
    for k in range(g.shape[0]):
        slope = max(0.0, g[k] + up[k]) + min(0.0, g[k] + down[k])
        rest = slope - row[k] * slope_i / own
        schur = max(diagonal[k] - row[k] * row[k] / own, 1e-12 * diagonal[k] + 1e-300)
        gain = (first + rest * rest / schur) * (1.0 if slope != 0.0 else 0.0)
        gains[k] = gain
        best = max(best, gain)
    return best


@compiled()
def _find(values: Array, value: float) -> int:
    for k in range(values.shape[0]):
        if values[k] == value:
            return k
    return int(np.argmax(values))


@compiled()
def _find_sum(g: Array, shift: Array, value: float) -> int:
    best, at = -np.inf, -1
    for k in range(g.shape[0]):
        here = g[k] + shift[k]
        if here == value:
            return k
        if here > best:
            best, at = here, k
    return at


@compiled(*_MACHINES)
def ascend_pairs(
    K: Array, diagonal: Array, lin: Array, eps: Array, lo: Array, hi: Array, w: Array, g: Array, tol: float,
    max_iter: int,
) -> tuple[int, float]:  # fmt: skip
    """Ascend under ``sum w = 0`` by pairs of coordinates; second-order choice of the pair.

    Changes `w` and `g` in place. Stops at relative duality gap `tol`, at the iteration limit, or when no
    pair improves. One iteration costs O(m).

    Returns
    -------
    iterations : int
    gap : float
        Relative duality gap at the end.
    """
    m = w.shape[0]
    up, down, gains = np.empty(m), np.empty(m), np.empty(m)
    for k in range(m):
        _set_slopes(k, w, eps, lo, hi, up, down)
    check_every = max(m // 2, 64)
    gap = np.inf
    for iteration in range(max_iter + 1):
        top, bottom = _extremes(g, up, down)
        closed = not top > bottom
        if closed or iteration % check_every == 0 or iteration == max_iter:
            b = 0.5 * (top + bottom)
            if top == -BLOCKED or bottom == BLOCKED:
                b = bottom if top == -BLOCKED else top
            primal, dual = box_dual_gap(lin, eps, lo, hi, w, g, b)
            gap = (primal - dual) / max(abs(primal), abs(dual), 1e-300)
            if closed or gap <= tol or iteration == max_iter:
                return iteration, gap
        i = _find_sum(g, up, top)
        row = K[i]
        best = _pair_gains(top, diagonal[i], g, down, diagonal, row, gains)
        if not best > 0.0:
            return iteration, gap
        j = _find(gains, best)
        both = diagonal[i] + diagonal[j]
        curvature = max(both - 2.0 * row[j], 1e-12 * both + 1e-300)
        room_i = -w[i] if w[i] < 0.0 and eps[i] > 0.0 else hi[i] - w[i]
        room_j = w[j] if w[j] > 0.0 and eps[j] > 0.0 else w[j] - lo[j]
        step = min((top - g[j] - down[j]) / curvature, min(room_i, room_j))
        # Land on a bound exactly: a coefficient of 1e-17 would otherwise stay a support vector.
        target_i = (0.0 if w[i] < 0.0 and eps[i] > 0.0 else hi[i]) if step >= room_i else w[i] + step
        target_j = (0.0 if w[j] > 0.0 and eps[j] > 0.0 else lo[j]) if step >= room_j else w[j] - step
        w[i], w[j] = target_i, target_j
        _set_slopes(i, w, eps, lo, hi, up, down)
        _set_slopes(j, w, eps, lo, hi, up, down)
        _subtract(g, step, row, -step, K[j])
    return max_iter, gap


@compiled(*_MACHINES)
def ascend_free(
    K: Array, diagonal: Array, lin: Array, eps: Array, lo: Array, hi: Array, w: Array, g: Array, tol: float,
    max_iter: int,
) -> tuple[int, float]:  # fmt: skip
    """Ascend without the equality constraint, by two coordinates at a time.

    The first coordinate promises most on its own, the second most together with it: where K has a large
    constant part, single coordinates would hardly move. Arguments and returns as `ascend_pairs`.
    """
    m = w.shape[0]
    up, down, gains = np.empty(m), np.empty(m), np.empty(m)
    for k in range(m):
        _set_slopes(k, w, eps, lo, hi, up, down)
    check_every = max(m // 2, 64)
    gap = np.inf
    for iteration in range(max_iter + 1):
        best = _single_gains(g, up, down, diagonal, gains)
        closed = not best > 0.0
        if closed or iteration % check_every == 0 or iteration == max_iter:
            primal, dual = box_dual_gap(lin, eps, lo, hi, w, g, 0.0)
            gap = (primal - dual) / max(abs(primal), abs(dual), 1e-300)
            if closed or gap <= tol or iteration == max_iter:
                return iteration, gap
        i = _find(gains, best)
        row = K[i]
        own = max(diagonal[i], SMALLEST)
        slope_i = max(0.0, g[i] + up[i]) + min(0.0, g[i] + down[i])
        best = _joint_gains(slope_i, own, g, up, down, diagonal, row, gains)
        gains[i] = 0.0
        j = _find(gains, best)
        low_i, high_i = _room(w[i], lo[i], hi[i], eps[i], slope_i)
        if j == i or not gains[j] > 0.0:
            step_i = min(max(slope_i / own, low_i), high_i)
            step_j = 0.0
        else:
            slope_j = max(0.0, g[j] + up[j]) + min(0.0, g[j] + down[j])
            c, cross = max(diagonal[j], SMALLEST), row[j]
            low_j, high_j = _room(w[j], lo[j], hi[j], eps[j], slope_j - cross * slope_i / own)
            det = max(own * c - cross * cross, 1e-14 * own * c)
            step_i = min(max((c * slope_i - cross * slope_j) / det, low_i), high_i)
            step_j = min(max((slope_j - cross * step_i) / c, low_j), high_j)
            step_i = min(max((slope_i - cross * step_j) / own, low_i), high_i)
            _move(w, j, step_j, low_j, high_j, lo[j], hi[j])
            _set_slopes(j, w, eps, lo, hi, up, down)
        _move(w, i, step_i, low_i, high_i, lo[i], hi[i])
        _set_slopes(i, w, eps, lo, hi, up, down)
        _subtract(g, step_i, row, step_j, K[max(j, 0)])
    return max_iter, gap


@compiled()
def _room(w: float, lo: float, hi: float, eps: float, direction: float) -> tuple[float, float]:
    """How far a coefficient may move down and up without crossing a bound, or 0 where the slope breaks."""
    low, high = lo - w, hi - w
    if eps > 0.0:
        if w > 0.0 or (w == 0.0 and direction > 0.0):
            low = -w
        elif w < 0.0 or (w == 0.0 and direction < 0.0):
            high = -w
        else:
            low, high = 0.0, 0.0
    return low, high


@compiled()
def _move(w: Array, i: int, step: float, low: float, high: float, lo: float, hi: float) -> None:
    start = w[i]
    w[i] = start + step
    if step <= low:
        w[i] = lo if low == lo - start else 0.0
    if step >= high:
        w[i] = hi if high == hi - start else 0.0
