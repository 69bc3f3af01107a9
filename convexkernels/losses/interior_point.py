"""A primal-dual interior-point method for box-constrained duals with ill-conditioned Gram matrices.

Coordinate steps crawl where K is nearly singular and few bounds are active (large C, kernels with a dominant
polynomial part). Here every iteration factorises ``K + diagonal`` once, O(m^3), and their number hardly depends on
the data. Where K is so large that ``K w`` has no digits left (w itself is limited by the box), a second run keeps
``u = V'w``, ``K = V V'``, as a variable of its own.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf, dsytrf, dsytrs

from convexkernels.linalg import longest_step

__all__ = ["LARGEST_INTERIOR", "interior_point"]

Array = NDArray[np.float64]

# Above this many points the factorisations cost more than coordinate steps gain.
LARGEST_INTERIOR = 4000
# The second run is worth its cost (a larger, indefinite matrix) where the first one leaves more than this.
GOOD_ENOUGH = 1e-7
# Iterations without a smaller error after which rounding has won.
PATIENCE = 12


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


class _Quadratic(ABC):
    """The term ``w'Kw``: values, and the Newton system ``(K + E^-1) dw + 1 db = rho``, ``[sum dw = -balance]``."""

    residual: Array

    @abstractmethod
    def values(self, w: Array) -> Array:
        """``K w``."""

    @abstractmethod
    def factorise(self, E: Array, intercept: bool) -> bool:
        """Prepare systems with the positive diagonal E; False when that breaks down."""

    @abstractmethod
    def solve(self, rho: Array, balance: float) -> tuple[Array, float]:
        """``K dw`` and db."""

    def move(self, step: float) -> None:  # noqa: B027 - what follows from w needs no moving
        """Take note of a step along the last solution."""


class _Dense(_Quadratic):
    def __init__(self, K: Array) -> None:
        self.K = K
        self.residual = np.zeros(len(K))

    def values(self, w: Array) -> Array:
        return self.K @ w

    def factorise(self, E: Array, intercept: bool) -> bool:
        A = self.K.copy()
        A[np.diag_indices_from(A)] += 1.0 / E
        try:
            self.factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return False
        self.ones = cho_solve(self.factor, np.ones(len(E)), check_finite=False) if intercept else None
        return True

    def solve(self, rho: Array, balance: float) -> tuple[Array, float]:
        dw = cho_solve(self.factor, rho, check_finite=False)
        db = 0.0
        if self.ones is not None:
            db = float((dw.sum() + balance) / self.ones.sum())
            dw = dw - db * self.ones
        return self.K @ dw, db


class _Factored(_Quadratic):
    """``K = V V'`` by pivoted Cholesky, and ``u = V'w`` as unknowns beside w: the system is

        [[E^-1, V, 1], [V', -I, 0], [1', 0, 0]] (dw, du, db) = (rho, u - V'w, -balance),

    scaled to entries of at most 1, factorised with Bunch and Kaufman's pivots, refined once.
    """  # noqa: D400

    def __init__(self, K: Array) -> None:
        m = len(K)
        tolerance = m * np.finfo(np.float64).eps * float(np.diagonal(K).max())
        packed, pivots, rank, _ = dpstrf(K, lower=1, tol=tolerance)
        self.V = np.empty((m, rank))
        self.V[pivots - 1] = np.tril(packed)[:, :rank]
        self.lengths = np.sqrt(np.einsum("ij,ij->i", self.V, self.V))
        self.u: Array | None = None

    def values(self, w: Array) -> Array:
        image = self.V.T @ w
        self.u = image if self.u is None else self.u
        self.gap = image - self.u
        self.residual = self.V @ self.gap
        return self.V @ self.u

    def factorise(self, E: Array, intercept: bool) -> bool:
        m, rank = self.V.shape
        self.scale = 1.0 / np.maximum(np.maximum(self.lengths, 1.0), E**-0.5)
        A = np.zeros((m + rank + intercept, m + rank + intercept))
        A[np.arange(m), np.arange(m)] = self.scale**2 / E
        A[m : m + rank, :m] = (self.V * self.scale[:, None]).T
        A[np.arange(m, m + rank), np.arange(m, m + rank)] = -1.0
        A[m + rank :, :m] = self.scale
        self.matrix = A + np.tril(A, -1).T
        self.factor: Any = dsytrf(A, lower=1)
        return bool(self.factor[2] == 0)

    def solve(self, rho: Array, balance: float) -> tuple[Array, float]:
        m, rank = self.V.shape
        right = np.concatenate([rho * self.scale, -self.gap, np.full(len(self.matrix) - m - rank, -balance)])
        answer = dsytrs(*self.factor[:2], right, lower=1)[0]
        answer += dsytrs(*self.factor[:2], right - self.matrix @ answer, lower=1)[0]
        self.change = answer[m : m + rank]
        return self.V @ self.change, float(answer[m + rank :].sum())

    def move(self, step: float) -> None:
        self.u = self.u + step * self.change


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
    ``(K + E^-1) dw + 1 db = r`` with a positive diagonal E, one factorisation an iteration.

    Returns
    -------
    ndarray of shape (m,)
        Inside the box up to rounding; the sum condition holds up to the tolerance.
    """
    w = np.zeros(len(lin))
    used = np.flatnonzero((hi > 0) | (lo < 0))  # points of weight 0 have no variable
    if used.size < len(lin):
        K, lin, eps, lo, hi = K[np.ix_(used, used)], lin[used], eps[used], lo[used], hi[used]
    if used.size == 0:
        return w
    # Units in which the box is about [0, 1] and the linear term about 1, whatever C is.
    size = max(float(np.max(hi)), float(np.max(-lo)))
    gain = float(np.abs(lin).max()) or float(eps.max()) or 1.0
    unit = size / gain
    if not np.isfinite(unit * float(np.abs(K).max())):
        return w
    problem = (lin / gain, eps / gain, lo / size, hi / size, intercept, tol, max_iter, deadline)
    K = K * unit
    found, error = _run(_Dense(K), float(np.diagonal(K).mean()), *problem)
    if error > max(tol, GOOD_ENOUGH):
        again, other = _run(_Factored(K), float(np.diagonal(K).mean()), *problem)
        found = again if other < error else found
    w[used] = found * size
    return w


def _run(
    quadratic: _Quadratic, diagonal: float, lin: Array, eps: Array, lo: Array, hi: Array, intercept: bool,
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
    best_error, fruitless = np.inf, 0
    for _ in range(max_iter):
        w = np.bincount(point, sign * state.x, minlength=m).astype(np.float64, copy=False)
        f = quadratic.values(w)
        dual = cost + sign * (f[point] + state.b) - state.z + state.t
        balance = float(w.sum()) if intercept else 0.0
        mu = float(state.x @ state.z + state.slack @ state.t) / (2 * len(cap))
        value = abs(float(cost @ state.x) + 0.5 * float(w @ f)) + 1e-300
        infeasible = (np.abs(dual) + np.abs(quadratic.residual[point])) @ cap
        error = (2 * len(cap) * mu + infeasible + abs(balance)) / value
        fruitless = 0 if error < 0.5 * best_error else fruitless + 1
        if np.isfinite(error) and error < best_error:
            best, best_error = w, error
        late = deadline is not None and time.monotonic() > deadline
        if error <= tol or not np.isfinite(error) or 1e-6 * error - 1.0 > best_error or late or fruitless > PATIENCE:
            break
        if not min(state.x.min(), state.slack.min()) > 1e-200:
            break  # closer to a bound than products of two such numbers can say
        if not _predict_and_correct(quadratic, state, point, sign, dual, balance, mu, intercept):
            break
    return best, best_error


def _predict_and_correct(
    quadratic: _Quadratic, s: _State, point: NDArray[np.intp], sign: Array, dual: Array, balance: float, mu: float,
    intercept: bool,
) -> bool:  # fmt: skip
    """One iteration on `s` in place; False when the factorisation or the step breaks down."""
    slack = s.slack
    D = s.z / s.x + s.t / slack
    E = np.bincount(point, 1.0 / D).astype(np.float64, copy=False)
    if not quadratic.factorise(E, intercept):
        return False

    def direction(comp_x: Array, comp_slack: Array) -> tuple[Array, Array, Array, float]:
        r = dual - comp_x / s.x + comp_slack / slack  # what the eliminated multipliers leave
        values, db = quadratic.solve(-np.bincount(point, sign * r / D) / E, balance)
        dx = -(r + sign * (values[point] + db)) / D
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
