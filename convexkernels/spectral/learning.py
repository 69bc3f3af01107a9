"""The problem of automated spectral kernel learning: objective, gradients, and what is known about a point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.backend import Backend, is_tensor, to_numpy
from convexkernels.certificate import DualityGap, Stationarity
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.spectral import Spectral
from convexkernels.spectral.losses import ScoreLoss
from convexkernels.spectral.options import SpectralSetting
from convexkernels.spectral.penalties import FrobeniusNorm, Penalty, TraceNorm
from convexkernels.validation import check_number

# Rows whose features are held at once: never those of a whole long table.
BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class SpectralPoint:
    """What is learned: the function ``f(x) = W' features(x) + intercept``, and the map of its features."""

    map: SpectralMap
    W: Any
    intercept: Any

    def doubled(self) -> SpectralPoint:
        """The same point in float64."""
        exact = self.map.backend.doubled()
        return SpectralPoint(self.map.on(exact), exact.array(self.W), exact.array(self.intercept))

    def copy(self) -> SpectralPoint:
        """A point that shares no memory with this one, except phases."""
        copy = self.map.backend.copy
        return SpectralPoint(self.map.with_omega(copy(self.map.omega)), copy(self.W), copy(self.intercept))

    @property
    def is_finite(self) -> bool:
        """Whether nothing overflowed."""
        xp = self.map.backend.xp
        return all(bool(xp.all(xp.isfinite(part))) for part in (self.map.omega, self.W, self.intercept))

    def scores(self, X: Any) -> Any:
        """Values of f at the rows of `X`, shape (m, K), one block of rows at a time."""
        parts = [self.map(X[at]).values @ self.W + self.intercept for at in blocks(X.shape[0])]
        return parts[0] if len(parts) == 1 else self.map.backend.xp.concat(parts, axis=0)

    def decision_function(self, X: Any) -> Any:
        """Values at new points, shape (n_samples, K): tensors where tensors come in, else float64.

        In float64 the answer for a row does not depend on the rows beside it.
        """
        if is_tensor(X):
            return self.scores(self.map.backend.array(X))
        X, kernel = np.asarray(X), Spectral.of(self.map)
        W, c = (np.asarray(to_numpy(x), dtype=np.float64) for x in (self.W, self.intercept))
        return np.concatenate([kernel.transform(X[at]) @ W + c for at in blocks(len(X))])


@dataclass(frozen=True, eq=False)
class SpectralLearning:
    """Least ``mean loss(W'phi(x) + c, y) + lam1 penalty(W) + lam2 |phi(X)|_F^2`` over W, c and the frequencies of phi.

    The objective [LLW20 (4)], with an unpenalized intercept c. The penalty is ``|W|_*`` where the setting says
    so, else ``|W|_F^2``. It is convex in (W, c) and not in the frequencies.

    Attributes
    ----------
    X : array of shape (m, n)
    Y : array of shape (m, K)
        Targets in the form that `loss` wants.
    loss : ScoreLoss
    penalty : Penalty
    lam2 : float
        Weight of the squared norm of the features of all m points together.
    backend : Backend
        `X` and `Y` are its arrays.
    learned : bool
        Whether the frequencies are unknowns, too.
    weights : array of shape (m,), optional
        Weights > 0 of the points in the mean of the losses and in the norm of the features.
    """

    X: Any
    Y: Any
    loss: ScoreLoss
    penalty: Penalty
    lam2: float
    backend: Backend
    learned: bool = True
    weights: Any = None

    @classmethod
    def stated(
        cls,
        X: Any,
        Y: Any,
        loss: ScoreLoss,
        setting: SpectralSetting,
        *,
        lam1: float,
        lam2: float,
        backend: Backend,
        weights: Any = None,
    ) -> SpectralLearning:
        """State the problem of a setting; arrays are moved to `backend`."""
        penalty = TraceNorm if setting.trace_norm else FrobeniusNorm
        lam1 = check_number("lam1", lam1, low=0.0)
        lam2 = check_number("lam2", lam2, low=0.0)
        weight = lam2 if setting.feature_norm else 0.0
        if weights is not None:
            weights = backend.array(weights)
        return cls(backend.array(X), backend.array(Y), loss, penalty(lam1), weight, backend, setting.learned, weights)

    @property
    def m(self) -> int:
        """Number of points."""
        return int(self.X.shape[0])

    @cached_property
    def total(self) -> float:
        """Sum of the weights of all points: their number, where there are no weights."""
        return float(self.m) if self.weights is None else float(self.backend.xp.sum(self.weights))

    def relative(self, rows: Any) -> Any:
        """Weights of some of the points over the mean weight of all; None where there are none."""
        return None if self.weights is None else self.weights[rows] * (self.m / self.total)

    def on_rows(self, rows: Any) -> SpectralLearning:
        """The problem of some of the points; lam2 weighs the mean norm of a point's features as before."""
        rows = self.backend.there(rows)
        weights = None if self.weights is None else self.weights[rows]
        part = replace(self, X=self.X[rows], Y=self.Y[rows], weights=weights)
        return replace(part, lam2=self.lam2 * self.total / max(part.total, 1e-300))

    def doubled(self) -> SpectralLearning:
        """The same problem in float64."""
        exact = self.backend.doubled()
        weights = None if self.weights is None else exact.array(self.weights)
        return replace(self, X=exact.array(self.X), Y=exact.array(self.Y), weights=weights, backend=exact)

    def with_weights(self, lam1: float, lam2: float) -> SpectralLearning:
        """The same problem with other regularization weights."""
        return replace(self, penalty=type(self.penalty)(lam1), lam2=lam2)

    # -- objective and gradients -------------------------------------------------------------------

    def smooth(
        self, point: SpectralPoint, X: Any, Y: Any, weights: Any = None, *, learned: bool = True
    ) -> tuple[Any, Any, Any, Any]:
        """Loss and feature norm on some points, an estimate of that part of the objective, and its gradients.

        `weights` are those of :meth:`relative`. Slopes are like the parts of the point, W, intercept and frequencies;
        the last is None unless `learned`.
        """
        xp = self.backend.xp
        features = point.map(X)
        value, slope = self.loss.value_and_slope(features.values @ point.W + point.intercept, Y, xp, weights)
        slope_W = features.values.T @ slope
        slope_c = xp.sum(slope, axis=0)
        scale: Any = self.lam2 * (self.total / X.shape[0]) if self.lam2 > 0.0 else 0.0
        if self.lam2 > 0.0:
            scale = scale if weights is None else scale * weights[:, None]
            value = value + xp.sum(scale * (features.values * features.values))
        if not learned:
            return value, slope_W, slope_c, None
        back = slope @ point.W.T
        if self.lam2 > 0.0:
            back += (2.0 * scale) * features.values
        return value, slope_W, slope_c, features.gradient(back)

    def evaluate(self, point: SpectralPoint, *, learned: bool = True) -> tuple[float, Any, Any, Any]:
        """The objective and the gradients of its smooth part on all points, block by block."""
        sums: list[Any] = [0.0] * 4
        for at in blocks(self.m):
            X, Y = self.X[at], self.Y[at]
            value, *slopes = self.smooth(point, X, Y, self.relative(at), learned=learned)
            parts, share = [float(value), *slopes], X.shape[0] / self.m
            sums = [None if part is None else whole + share * part for whole, part in zip(sums, parts, strict=True)]
        return sums[0] + self.penalty.value(point.W, self.backend), sums[1], sums[2], sums[3]

    def objective(self, point: SpectralPoint) -> float:
        """The value of the objective."""
        return self.evaluate(point, learned=False)[0]

    def certificate(self, theta: SpectralPoint, alpha: Any = None, witness: Any = None) -> DualityGap | Stationarity:
        """What is known about a point, computed in float64.

        With frequencies that are fixed and ``|W|_F^2`` the problem is convex: bounds on its optimum. Else how nearly
        the point is stationary, from the gradient in frequencies, W and intercept, for the trace norm the proximal
        gradient ``W - prox(W - gradient)`` in W.
        """
        exact, point = self.doubled(), theta.doubled()
        is_smooth = isinstance(self.penalty, FrobeniusNorm)
        if is_smooth and not self.learned:
            return DualityGap(exact.objective(point), exact.lower_bound(point))
        value, slope_W, slope_c, slope_omega = exact.evaluate(point, learned=self.learned)
        if is_smooth:
            slope_W = slope_W + (2.0 * self.penalty.weight) * point.W
        else:
            slope_W = point.W - self.penalty.proximal(point.W - slope_W, 1.0, exact.backend)
        n_parts = 3 if self.learned else 2
        slopes, parts = (slope_W, slope_c, slope_omega), (point.W, point.intercept, point.map.omega)
        gradient, coordinates = (
            np.concatenate([to_numpy(x).ravel() for x in group[:n_parts]]) for group in (slopes, parts)
        )
        return Stationarity.at(value, gradient, coordinates)

    def lower_bound(self, point: SpectralPoint) -> float:
        """A bound on the least value over W and the intercept, the frequencies being those of `point`.

        For a slope S of the mean loss with columns that sum to 0, ``constant - |Phi'S|_F^2 / (4 lam1)`` plus the norm
        of the features. It is the least value itself when S is the slope there.
        """
        xp, lam1 = self.backend.xp, self.penalty.weight
        weights = np.ones(self.m) if self.weights is None else np.asarray(to_numpy(self.weights))
        F, Y = (np.asarray(to_numpy(x)) for x in (point.scores(self.X), self.Y))
        constant, S = self.loss.dual_point(F, Y, weights / weights.mean())
        pulled, norm, slopes = 0.0, 0.0, self.backend.array(S)
        for at in blocks(self.m):
            values = point.map(self.X[at]).values
            pulled = pulled + values.T @ slopes[at]
            if self.lam2 > 0.0:
                squares = xp.sum(values * values, axis=1)
                norm += float(xp.sum(squares if self.weights is None else squares * self.weights[at]))
        conjugate = float(xp.sum(pulled * pulled)) / (4.0 * lam1) if lam1 > 0.0 else np.inf
        return max(0.0, constant - conjugate) + self.lam2 * norm

    # -- answers -----------------------------------------------------------------------------------

    def kernel(self, theta: SpectralPoint) -> Spectral:
        """The learned kernel."""
        return Spectral.of(theta.map)

    def stated_at(self, theta: SpectralPoint) -> dict[str, Any]:
        """The loss, as `FixedKernel` takes it: for the trace norm with the ridge that pulls as hard at the point."""
        W = np.asarray(to_numpy(theta.W), dtype=np.float64)
        return {"loss": self.loss.of_kernel(W.shape[1]).at(self.penalty.as_ridge(W) * self.total)}

    def function(self, theta: SpectralPoint, alpha: Any = None) -> SpectralPoint:
        """The learned functions: the point itself."""
        return theta

    def intercept(self, theta: SpectralPoint, alpha: Any = None) -> Array:
        """Intercepts, shape (K,)."""
        return np.asarray(to_numpy(theta.intercept), dtype=np.float64)


def blocks(m: int, rows: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover m rows."""
    return (slice(start, min(start + rows, m)) for start in range(0, max(m, 1), rows))
