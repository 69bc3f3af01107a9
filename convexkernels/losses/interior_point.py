"""A primal-dual interior-point method for box-constrained duals with ill-conditioned Gram matrices.

Coordinate steps crawl where K is nearly singular and few bounds are active (large C, kernels with a dominant
polynomial part). Here every iteration factorises ``K + diagonal`` once, O(m^3), and their number hardly depends on
the data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from convexkernels.linalg import longest_step

__all__ = ["LARGEST_INTERIOR", "interior_point"]

Array = NDArray[np.float64]

# Above this many points the factorisations cost more than coordinate steps gain.
LARGEST_INTERIOR = 4000


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
    K: Array,
    lin: Array,
    eps: Array,
    lo: Array,
    hi: Array,
    intercept: bool,
    *,
    tol: float = 1e-9,
    max_iter: int = 80,
    deadline: float | None = None,
) -> Array:
    """Maximise ``lin'w - sum eps_i |w_i| - 1/2 w'Kw`` over ``lo <= w <= hi`` (and ``sum w = 0``).

    Mehrotra's predictor-corrector method on ``w = u - v``. The Newton system reduces to
    ``(K + E^-1) dw + 1 db = r`` with a positive diagonal E, one Cholesky factorisation an iteration.

    Returns
    -------
    ndarray of shape (m,)
        Inside the box up to rounding; the sum condition holds up to the tolerance.
    """
    m = len(lin)
    # Units in which the box is about [0, 1] and the linear term about 1, whatever C is.
    size = max(float(np.max(hi)), float(np.max(-lo)))
    gain = max(float(np.abs(lin).max()), 1e-300)
    K = K * (size / gain)
    point = np.concatenate([np.arange(m)[hi > 0], np.arange(m)[lo < 0]])
    sign = np.concatenate([np.ones((hi > 0).sum()), -np.ones((lo < 0).sum())])
    cap = np.concatenate([hi[hi > 0], -lo[lo < 0]]) / size
    cost = (eps[point] - sign * lin[point]) / gain
    # Without it the first steps would be cut to nothing where the unconstrained optimum is far below the bounds.
    first = min(0.5, 1.0 / max(float(np.diagonal(K).mean()), 1e-300))
    x = cap * first
    state = _State(x, cap - x, np.ones_like(x), np.ones_like(x), 0.0)
    best: Array = np.zeros(m)
    best_error = np.inf
    for _ in range(max_iter):
        w = np.bincount(point, sign * state.x, minlength=m).astype(np.float64, copy=False)
        f = K @ w
        dual = cost + sign * (f[point] + state.b) - state.z + state.t
        balance = float(w.sum()) if intercept else 0.0
        mu = float(state.x @ state.z + state.slack @ state.t) / (2 * len(cap))
        value = abs(float(cost @ state.x) + 0.5 * float(w @ f)) + 1e-300
        error = (2 * len(cap) * mu + np.abs(dual) @ cap + abs(balance)) / value
        if np.isfinite(error) and error < best_error:
            best, best_error = w, error
        late = deadline is not None and time.monotonic() > deadline
        if error <= tol or not np.isfinite(error) or 1e-6 * error - 1.0 > best_error or late:
            break
        if not min(state.x.min(), state.slack.min()) > 1e-200:
            break  # closer to a bound than products of two such numbers can say
        if not _predict_and_correct(K, state, point, sign, dual, balance, mu, intercept):
            break
    return best * size


def _predict_and_correct(
    K: Array, s: _State, point: NDArray[np.intp], sign: Array, dual: Array, balance: float, mu: float, intercept: bool
) -> bool:  # fmt: skip
    """One iteration on `s` in place; False when the factorisation or the step breaks down."""
    m = K.shape[0]
    slack = s.slack
    D = s.z / s.x + s.t / slack
    E = np.bincount(point, 1.0 / D, minlength=m)
    active = np.flatnonzero(E > 0)  # points of weight 0 have no variable
    A = K[np.ix_(active, active)] if active.size < m else K.copy()
    A[np.diag_indices_from(A)] += 1.0 / E[active]
    try:
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    ones = cho_solve(factor, np.ones(active.size), check_finite=False) if intercept else None

    def direction(comp_x: Array, comp_slack: Array) -> tuple[Array, Array, Array, float]:
        r = dual - comp_x / s.x + comp_slack / slack  # what the eliminated multipliers leave
        rho = np.bincount(point, sign * r / D, minlength=m)[active]
        dw = cho_solve(factor, -rho / E[active], check_finite=False)
        db = 0.0
        if ones is not None:
            db = float((dw.sum() + balance) / ones.sum())
            dw = dw - db * ones
        full = np.zeros(m)
        full[active] = dw
        dx = -(r + sign * ((K @ full)[point] + db)) / D
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
    return True
