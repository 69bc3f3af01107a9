"""A primal-dual interior-point method for box-constrained duals with ill-conditioned Gram matrices.

Coordinate steps crawl where K is nearly singular and few bounds are active (large C, kernels with a dominant
polynomial part). Here every iteration factorizes ``K + diagonal`` once, O(m^3), and their number hardly depends on
the data. Where K is so large that ``K w`` has no digits left (w itself is limited by the box), a second run keeps
``u = V'w``, ``K = V V'``, as a variable of its own.
"""

import time
from dataclasses import dataclass

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.linalg import longest_step
from convexkernels.losses.base import BoxDual
from convexkernels.losses.quadratic_terms import DenseTerm, FactoredTerm, QuadraticTerm, pivoted_factor
from convexkernels.losses.sequential import box_dual_gap

# Above this many points the factorizations cost more than coordinate steps gain.
LARGEST_INTERIOR = 4000
# The second run is worth its cost (a larger, indefinite matrix) where the first one leaves more than the tolerance, and
# more than this. Both aim at a part of the tolerance: moving coefficients onto bounds costs something.
GOOD_ENOUGH, AIM = 1e-7, 0.1
# Most iterations, with a matrix and with its factor.
ITERATIONS, ITERATIONS_ON_FACTOR = 80, 200
# Iterations without a smaller error after which rounding has won.
PATIENCE = 12
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(eq=False)
class _State:
    """``w = u - v`` with ``0 <= (u, v) <= cap``, stacked in x; z and t are the multipliers of the two bounds.

    ``slack = cap - x`` is kept beside x: near the upper bound the difference would have no digits left.
    """

    x: Array
    slack: Array
    z: Array
    t: Array
    b: float


def interior_point(
    K: Array, dual: BoxDual, intercept: bool, *, tol: float = 1e-8, deadline: float | None = None
) -> Array:
    """Maximize ``lin'w - sum eps_i |w_i| - 1/2 w'Kw`` over ``lo <= w <= hi`` (and ``sum w = 0``).

    Mehrotra's predictor-corrector method on ``w = u - v``. The Newton system reduces to ``(K + E^-1) dw + 1 db = r``
    with a positive diagonal E, one factorization an iteration. The answer is inside the box up to rounding; the sum
    condition holds up to the tolerance.
    """
    w, used = np.zeros(len(dual.lin)), _with_variables(dual)
    if used.size == 0:
        return w
    size, gain, scaled = _in_units(dual, used)
    K = K if used.size == len(w) else K[np.ix_(used, used)]
    unit = size / gain
    if not np.isfinite(unit * float(np.abs(K).max())):
        return w
    problem, K = (*scaled, intercept, AIM * tol, ITERATIONS, deadline), K * unit
    found, error = _run(DenseTerm(K), float(np.diagonal(K).mean()), *problem)
    if error > max(tol, GOOD_ENOUGH):
        again, other = _run(FactoredTerm(pivoted_factor(K)), float(np.diagonal(K).mean()), *problem)
        found = again if other < error else found
    w[used] = found * size
    return w


def solve_on_factor(
    V: Array, dual: BoxDual, intercept: bool, *, tol: float = 1e-9, deadline: float | None = None
) -> tuple[Array, Array]:
    """Solve a box dual with ``K = V V'`` where K itself would lose the small columns of V.

    With w comes ``u = V'w``, more exact than that product of w: the function is ``V u + b``.
    """
    w, u = np.zeros(len(V)), np.zeros(V.shape[1])
    used, kept = _with_variables(dual), np.flatnonzero(V.any(axis=0))
    part = V[np.ix_(used, kept)]
    if used.size == 0 or kept.size == 0:
        return w, u
    if dual.diagonal is not None and np.isinf(dual.hi[used]).all():
        w[used], u[kept] = _ridge_on_factor(part, dual.lin[used], dual.diagonal[used], intercept)
        return w, u
    size, gain, scaled = _in_units(dual, used)
    term = FactoredTerm(part * np.sqrt(size / gain), given=True)
    found, _ = _run(term, 1.0, *scaled, intercept, tol, ITERATIONS_ON_FACTOR, deadline)
    w[used], u[kept] = found * size, term.best * np.sqrt(size * gain)
    return w, u


def _with_variables(dual: BoxDual) -> Index:
    """Coefficients that may be other than 0: not those of points of weight 0."""
    return np.flatnonzero((dual.hi > 0) | (dual.lo < 0))


def _in_units(dual: BoxDual, used: Index) -> tuple[float, float, tuple[Array, Array, Array, Array]]:
    """Units in which the box is about [0, 1] and the linear term about 1, whatever C is, and both in them."""
    lin, eps, lo, hi = (np.asarray(getattr(dual, name))[used] for name in ("lin", "eps", "lo", "hi"))
    size = max(float(np.max(hi)), float(np.max(-lo)))
    gain = float(np.abs(lin).max()) or float(eps.max()) or 1.0
    return size, gain, (lin / gain, eps / gain, lo / size, hi / size)


def _ridge_on_factor(V: Array, lin: Array, diagonal: Array, intercept: bool) -> tuple[Array, Array]:
    """``min over u, b of |u|^2 + sum_i (lin_i - (V u)_i - b)^2 / diagonal_i`` by orthogonal transformations."""
    root = np.sqrt(diagonal)
    columns = np.column_stack([V, np.ones(len(V))]) if intercept else V
    A = np.vstack([columns / root[:, None], np.eye(V.shape[1], columns.shape[1])])
    sizes = np.linalg.norm(A, axis=0)
    right = np.append(lin / root, np.zeros(V.shape[1]))
    answer = np.linalg.lstsq(A / sizes, right, rcond=None)[0] / sizes
    return (lin - columns @ answer) / diagonal, answer[: V.shape[1]]


def _run(
    quadratic: QuadraticTerm, diagonal: float, lin: Array, eps: Array, lo: Array, hi: Array, intercept: bool,
    tol: float, max_iter: int, deadline: float | None,
) -> tuple[Array, float]:  # fmt: skip
    """The best w on the way, and its relative error."""
    m = len(lin)
    point = np.concatenate([np.flatnonzero(hi > 0), np.flatnonzero(lo < 0)])
    sign = np.concatenate([np.ones((hi > 0).sum()), -np.ones((lo < 0).sum())])
    cap = np.concatenate([hi[hi > 0], -lo[lo < 0]])
    cost = eps[point] - sign * lin[point]
    # Without it the first steps would be cut to nothing where the unconstrained optimum is far below the bounds.
    x = cap * min(0.5, 1.0 / max(diagonal, 1e-300))
    state = _State(x, cap - x, np.ones_like(x), np.ones_like(x), 0.0)
    best: Array = np.zeros(m)
    best_error, least, fruitless = np.inf, np.inf, 0
    for _ in range(max_iter):
        w = np.bincount(point, sign * state.x, minlength=m).astype(np.float64, copy=False)
        f = quadratic.values(w)
        dual = cost + sign * (f[point] + state.b) - state.z + state.t
        balance = float(w.sum()) if intercept else 0.0
        mu = float(state.x @ state.z + state.slack @ state.t) / (2 * len(cap))
        value = abs(float(cost @ state.x) + 0.5 * float(w @ f)) + 1e-300
        infeasible = float(np.abs(dual) @ cap) + quadratic.infeasible(point, cap)
        total = 2 * len(cap) * mu + infeasible + abs(balance)
        error = total / value
        if not quadratic.has_unknowns:
            error = min(error, _measured_gap(lin, eps, lo, hi, w, f, state.b, diagonal) + abs(balance) / value)
        # Far inside a box that is too large, value falls as fast as what it is to be compared with.
        fruitless = 0 if error < 0.5 * best_error or total < 0.5 * least else fruitless + 1
        least = min(least, total)
        if np.isfinite(error) and error < best_error:
            best, best_error = w, error
            quadratic.keep()
        late = deadline is not None and time.monotonic() > deadline
        if error <= tol or not np.isfinite(error) or 1e-6 * error - 1.0 > best_error or late or fruitless > PATIENCE:
            break
        if not min(state.x.min(), state.slack.min()) > 1e-200:
            break  # closer to a bound than products of two such numbers can say
        if not _predict_and_correct(quadratic, state, point, sign, dual, balance, mu, intercept):
            break
    return best, best_error


def _measured_gap(lin: Array, eps: Array, lo: Array, hi: Array, w: Array, f: Array, b: float, diagonal: float) -> float:
    """Relative duality gap of w and what rounding of its values ``f = K w`` may hide.

    Far below the multipliers' account of it where the bounds are far above the coefficients: what is infeasible there
    weighs as much as the bound.
    """
    primal, value = box_dual_gap(lin, eps, lo, hi, w, lin - f, b)
    hidden = 2.0 * EPSILON * diagonal * float(np.abs(w).sum()) ** 2
    return (abs(primal - value) + hidden) / (abs(value) + 1e-300)


def _predict_and_correct(
    quadratic: QuadraticTerm, s: _State, point: Index, sign: Array, dual: Array, balance: float, mu: float,
    intercept: bool,
) -> bool:  # fmt: skip
    """One iteration on `s` in place; False when the factorization or the step breaks down."""
    slack = s.slack
    D = s.z / s.x + s.t / slack
    E = np.bincount(point, 1.0 / D).astype(np.float64, copy=False)
    if not quadratic.factorize(E, intercept):
        return False

    loose = np.empty(len(E), dtype=np.intp)  # where every coefficient has its least D
    order = np.argsort(-D)
    loose[point[order]] = order

    def direction(comp_x: Array, comp_slack: Array) -> tuple[Array, Array, Array, float]:
        r = dual - comp_x / s.x + comp_slack / slack  # what the eliminated multipliers leave
        values, dw, db = quadratic.solve(-np.bincount(point, sign * r / D) / E, balance)
        dx = -(r + sign * (values[point] + db)) / D
        # Between its bounds a coefficient has nearly no D: what values were rounded by would become a step. There dw,
        # which values were made of, says more.
        dx[loose] += sign[loose] * (dw - np.bincount(point, sign * dx))
        dz = (comp_x - s.z * dx) / s.x
        dt = (comp_slack + s.t * dx) / slack
        return dx, dz, dt, db

    # Predictor: aim at complementarity 0; corrector: aim at a mean that its success suggests.
    dx, dz, dt, _ = direction(-s.x * s.z, -slack * s.t)
    reach = min(longest_step(s.x, dx), longest_step(slack, -dx), longest_step(s.z, dz), longest_step(s.t, dt))
    ahead = ((s.x + reach * dx) @ (s.z + reach * dz) + (slack - reach * dx) @ (s.t + reach * dt)) / (2 * len(s.x))
    aim = mu * (max(float(ahead), 0.0) / mu) ** 3
    dx, dz, dt, db = direction(aim - s.x * s.z - dx * dz, aim - slack * s.t + dx * dt)
    primal = min(1.0, 0.995 * min(longest_step(s.x, dx), longest_step(slack, -dx)))
    dual_step = min(1.0, 0.995 * min(longest_step(s.z, dz), longest_step(s.t, dt)))
    step = min(primal, dual_step)  # K couples both, so the steps must be equal
    if not step > 1e-12 or not np.isfinite(step):
        return False
    s.x = s.x + step * dx
    s.slack = s.slack - step * dx
    s.z = s.z + step * dz
    s.t = s.t + step * dt
    s.b += step * db
    quadratic.move(step)
    return True
