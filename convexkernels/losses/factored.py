"""Dual programs whose Gram matrix has few columns: proximal point steps, each by Newton's method on features.

All losses with a dual in a box (:class:`BoxDual`) are solved here, whatever the number of rows. In the primal,
``minimize 1/2 |v|^2 + sum_i phi_i(lin_i - (Psi v)_i - b)``, phi_i having kinks; a proximal term
``delta_i / 2 (w_i - w0_i)^2`` in the dual makes it smooth once, and its Newton matrix ``I + Psi_F' S Psi_F`` sees only
the rows F whose coefficients are between their bounds: the semismooth Newton augmented Lagrangian method [LST18].
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.factored import FactoredGram
from convexkernels.linalg import eigh
from convexkernels.losses.base import BoxDual, Loss, output_by_output
from convexkernels.losses.newton_matrix import NewtonMatrix, some_rows

# Width of the smooth part of a kink against the size of the targets: at first, after a start, and from step to step.
WIDTH, WARM_WIDTH, NARROWER, NARROWEST = 0.3, 0.1, 0.2, 1e-9
# The same for second derivatives of the optimum.
SMOOTH = 0.02
# Most proximal and Newton steps, and steps to find an intercept or a length.
PROXIMAL, NEWTON, BISECTIONS = 40, 30, 60
# Coefficients sum to 0, and slopes along a direction are 0, up to these shares.
BALANCED, FLAT = 1e-12, 0.1
# Newton steps end at this share of the gap.
SHARE = 0.1


def maximize_factored(
    loss: Loss,
    K: FactoredGram,
    Y: Array,
    weights: Array,
    *,
    start: Array | None = None,
    tol: float = 1e-6,
    deadline: float | None = None,
) -> Array:
    """Alphas for all outputs; arguments as for :meth:`Loss.maximize_all`."""
    return output_by_output(Y, start, lambda y, alpha: _maximum(loss, K, y, weights, alpha, tol, deadline))


def _maximum(
    loss: Loss, K: FactoredGram, y: Array, weights: Array, start: Array | None, tol: float, deadline: float | None
) -> Array:
    dual = loss.box_dual(y, weights)
    lin = np.zeros_like(y) if dual is None else dual.lin
    alpha = loss.feasible(np.zeros_like(y) if start is None else start, y, weights)
    w = loss.coefficients(alpha, y)
    best, reached, before = alpha, np.inf, w
    v, width, b = K.pulled(w), WIDTH if start is None else WARM_WIDTH, 0.0
    size = _size(loss, lin)
    for _ in range(PROXIMAL):
        smooth = _Smooth(loss, y, weights) if dual is None else _Proximal.of(dual, before, width * size, loss.intercept)
        v, b, w, converged = _newton(K, lin, smooth, v, b, tol, deadline)
        alpha = loss.feasible(loss.dual_variable(w, y), y, weights)
        gap = _relative_gap(loss, K, alpha, y, weights)
        if gap < reached:
            best, reached = alpha, gap
        if reached <= tol or width <= NARROWEST or (deadline is not None and time.monotonic() > deadline):
            break
        if converged:
            before, width = w, width * NARROWER
    return best


def dual_of_values(loss: Loss, F: Array, Y: Array, weights: Array) -> Array:
    """Dual variables to start from, shape (n_outputs, m), where a function is known that is nearly the solution.

    Between their bounds are those of rows as near to a kink as a first proximal step is wide.
    """
    alphas = []
    for f, y in zip(F, Y, strict=True):
        dual = loss.box_dual(y, weights)
        if dual is None:
            w = _Smooth(loss, y, weights).coefficients(-f)[0]
        else:
            width = WARM_WIDTH * _size(loss, dual.lin)
            bounded = np.isfinite(dual.lo) & np.isfinite(dual.hi)
            middle = 0.5 * (np.where(bounded, dual.lo, 0.0) + np.where(bounded, dual.hi, 0.0))
            w = _Proximal.of(dual, middle, width, loss.intercept).coefficients(dual.lin - f)[0]
        alphas.append(loss.feasible(loss.dual_variable(w, y), y, weights))
    return np.array(alphas)


def _relative_gap(loss: Loss, K: FactoredGram, alpha: Array, y: Array, weights: Array) -> float:
    w = loss.coefficients(alpha, y)
    f = K @ w
    quadratic = float(w @ f)
    upper = loss.primal(f, quadratic, y, weights)[0]
    lower = loss.dual_constant(alpha, y, weights) - 0.5 * quadratic
    return (upper - lower) / max(abs(upper), abs(lower), 1e-300)


class _Step(ABC):
    """``minimize 1/2 |v|^2 + sum_i phi_i(r_i)``, phi differentiable, ``r = lin - Psi v - b``, ``w = phi'(r)``."""

    intercept: bool

    @abstractmethod
    def coefficients(self, r: Array) -> tuple[Array, Array]:
        """w, and dw/dr."""

    @abstractmethod
    def value(self, r: Array, w: Array) -> float:
        """``sum_i phi_i(r_i)`` at these w."""

    def solved(self, r: Array, b: float) -> tuple[Array, Array, float]:
        """The same for ``r - b`` at the best intercept: the sum of w is 0 there, and falls with b."""
        w, s = self.coefficients(r - b)
        if not self.intercept:
            return w, s, 0.0
        low, high, reach = -np.inf, np.inf, float(np.abs(r).max()) + 1.0
        for _ in range(BISECTIONS):
            excess = float(w.sum())
            if abs(excess) <= BALANCED * float(np.abs(w).sum()):
                break
            low, high = (b, high) if excess > 0.0 else (low, b)
            slope = float(s.sum())
            trial = b + excess / slope if slope > 0.0 else np.nan
            if not low < trial < high:
                trial = 0.5 * (low + high) if np.isfinite(low + high) else b + np.copysign(reach, excess)
            if trial in (low, high):
                break
            b = trial
            w, s = self.coefficients(r - b)
        return w, s, b


@dataclass(eq=False)
class _Smooth(_Step):
    """Of a loss that is smooth itself, such as the logistic one."""

    loss: Loss
    y: Array
    weights: Array

    @property
    def intercept(self) -> bool:  # type: ignore[override]
        return self.loss.intercept

    def coefficients(self, r: Array) -> tuple[Array, Array]:
        w = -self.loss.cost / self.loss.scale * self.weights * self.loss.pointwise(self.y, -r)[1]
        rows, diagonal = self.loss.free(self.loss.dual_variable(w, self.y), self.y, self.weights)
        s = np.zeros(len(w))
        s[rows] = 1.0 / diagonal
        return w, s

    def value(self, r: Array, w: Array) -> float:
        return self.loss.cost / self.loss.scale * float(self.loss.total(self.y, -r, self.weights))


@dataclass(eq=False)
class _Proximal(_Step):
    """Of a dual in a box, with the proximal term: w0 is `before`.

    ``steep = diagonal + delta``, infinite where the weight of a row is 0.
    """

    dual: BoxDual
    before: Array
    delta: Array
    steep: Array
    intercept: bool

    @classmethod
    def of(cls, dual: BoxDual, w: Array, width: float, intercept: bool) -> _Proximal:
        reach = dual.hi - dual.lo
        counted = reach > 0.0
        delta = np.divide(width, reach, out=np.zeros(len(w)), where=counted)
        diagonal = np.zeros(len(w)) if dual.diagonal is None else dual.diagonal
        return cls(dual, w, delta, np.where(counted, diagonal + delta, np.inf), intercept)

    def coefficients(self, r: Array) -> tuple[Array, Array]:
        dual = self.dual
        shifted = r + self.delta * self.before
        if dual.eps.any():
            shifted = np.sign(shifted) * np.maximum(np.abs(shifted) - dual.eps, 0.0)
        free = shifted / self.steep
        w = np.clip(free, dual.lo, dual.hi)
        inside = (w == free) & ((free != 0.0) | (dual.eps == 0.0))
        return w, np.where(inside, 1.0 / self.steep, 0.0)

    def value(self, r: Array, w: Array) -> float:
        dual, moved = self.dual, w - self.before
        total = r @ w - 0.5 * float(self.delta @ (moved * moved)) - float(dual.eps @ np.abs(w))
        return float(total if dual.diagonal is None else total - 0.5 * float(dual.diagonal @ (w * w)))


def _newton(
    K: FactoredGram, lin: Array, step: _Step, v: Array, b: float, tol: float, deadline: float | None
) -> tuple[Array, float, Array, bool]:
    """v, the intercept and w of a step, and whether that is its solution, about."""
    r = lin - K.values(v)
    w, s, b = step.solved(r, b)
    for _ in range(NEWTON):
        gradient = v - K.pulled(w)
        value = 0.5 * float(v @ v) + step.value(r - b, w)
        # About what the objective of Psi'w, the function of these coefficients, is above this one.
        excess = 0.5 * float(gradient @ gradient + s @ np.square(K.values(gradient)))
        if excess <= SHARE * tol * abs(value):
            return v, b, w, True
        direction = -NewtonMatrix(K, s, step.intercept).solve(gradient)
        if not gradient @ direction < 0.0 or (deadline is not None and time.monotonic() > deadline):
            break
        change = K.values(direction)
        turn = -float(s @ change) / float(s.sum()) if step.intercept and s.any() else 0.0
        eta = _length(step, r - b, change + turn, float(v @ direction), float(direction @ direction))
        if eta == 0.0:
            break
        v, r = v + eta * direction, r - eta * change
        w, s, b = step.solved(r, b + eta * turn)
    return v, b, w, False


def _length(step: _Step, r: Array, change: Array, first: float, second: float) -> float:
    """Length in [0, 1] at which the slope along a direction is about 0, 1 where it stays negative, 0 if it never is."""

    def slope(eta: float) -> float:
        return first + eta * second - float(step.coefficients(r - eta * change)[0] @ change)

    at_low, at_high = slope(0.0), slope(1.0)
    if at_high <= FLAT * abs(at_low):
        return 1.0
    if at_low >= 0.0:  # the gradient said otherwise, and was rounding
        return 0.0
    low, high, eta = 0.0, 1.0, 1.0
    for _ in range(BISECTIONS):
        eta = low + (high - low) * float(np.clip(at_low / (at_low - at_high), 0.1, 0.9))
        here = slope(eta)
        if abs(here) <= FLAT * abs(at_low):
            break
        if here < 0.0:
            low, at_low = eta, here
        else:
            high, at_high = eta, here
    return eta


def curvature_by_features(
    loss: Loss,
    K: FactoredGram,
    y: Array,
    weights: Array,
    free: tuple[Index, Array],
    derivative: Callable[[Index], Array | None],
) -> Array | None:
    """R with ``R'R = T' (K_FF + delta)^-1 T`` for the rows F of ``loss.free`` and ``T = derivative(F)``.

    That is the second derivative of the dual optimum along changes of K which change ``(K w)_F`` by the columns of T.
    There are more rows than K has columns: what delta has beyond the diagonal of the loss is that of a proximal step,
    and says how far kinks are met as curvature. Of many rows some stand for all.
    """
    (rows, delta), dual = free, loss.box_dual(y, weights)
    if dual is not None:
        delta = delta + SMOOTH * _size(loss, dual.lin) / (dual.hi - dual.lo)[rows]
    used = some_rows(np.arange(len(rows)), K.rank)
    rows, delta = rows[used], delta[used] * (len(used) / len(rows))
    T = derivative(rows)
    if T is None:
        return None
    T = T.reshape(len(rows), -1)
    s = np.zeros(K.m)
    s[rows] = 1.0 / delta
    if loss.intercept:
        T = T - s[rows] @ T / s.sum()
    scaled = s[rows, None] * T
    pulled = K.rows(rows).T @ scaled
    H = T.T @ scaled - pulled.T @ NewtonMatrix(K, s, loss.intercept).inverse(pulled)
    values, vectors = eigh(0.5 * (H + H.T))
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def _size(loss: Loss, lin: Array) -> float:
    """Of the residuals at which kinks are."""
    return float(np.abs(lin).mean() if loss.of_labels else np.std(lin)) or 1.0
