"""The problem of automated spectral kernel learning: objective, gradients, and what is known about a point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.certificate import Stationarity
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.spectral import Spectral
from convexkernels.spectral.backend import Backend, to_numpy
from convexkernels.spectral.features import SpectralMap
from convexkernels.spectral.losses import ScoreLoss
from convexkernels.spectral.penalties import FrobeniusNorm, Penalty, TraceNorm
from convexkernels.validation import check_number

__all__ = ["SETTINGS", "Setting", "SpectralLearning", "SpectralPoint", "setting_of"]

# Rows whose features are held at once: never those of a whole long table.
BLOCK_ROWS = 2048


@dataclass(frozen=True)
class Setting:
    """One column of [LLW20 Table 1]: the kernel, its density, and the regularizer."""

    stationary: bool
    learned: bool
    trace_norm: bool
    feature_norm: bool


SETTINGS = {
    "SK": Setting(stationary=True, learned=False, trace_norm=False, feature_norm=False),
    "NSK": Setting(stationary=False, learned=False, trace_norm=False, feature_norm=False),
    "SKL": Setting(stationary=True, learned=True, trace_norm=False, feature_norm=False),
    "NSKL": Setting(stationary=False, learned=True, trace_norm=False, feature_norm=False),
    "ASKL": Setting(stationary=False, learned=True, trace_norm=True, feature_norm=True),
}


def setting_of(name: Any) -> Setting:
    """The setting of a name, or a refusal that lists the names."""
    if isinstance(name, Setting):
        return name
    if name not in SETTINGS:
        raise InvalidInputError(f"setting must be one of {', '.join(SETTINGS)}, got {name!r}.")
    return SETTINGS[name]


@dataclass(frozen=True, eq=False)
class SpectralPoint:
    """What is learned: the function ``f(x) = W' features(x) + intercept``.

    Attributes
    ----------
    map : SpectralMap
        Frequencies and phases.
    W : array of shape (map.width, K)
    intercept : array of shape (K,)
    """

    map: SpectralMap
    W: Any
    intercept: Any

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
    """

    X: Any
    Y: Any
    loss: ScoreLoss
    penalty: Penalty
    lam2: float
    backend: Backend
    learned: bool = True

    @classmethod
    def stated(
        cls, X: Any, Y: Any, loss: ScoreLoss, setting: Setting, *, lam1: float, lam2: float, backend: Backend
    ) -> SpectralLearning:
        """State the problem of a setting; arrays are moved to `backend`."""
        penalty = TraceNorm if setting.trace_norm else FrobeniusNorm
        lam1 = check_number("lam1", lam1, low=0.0)
        lam2 = check_number("lam2", lam2, low=0.0)
        weight = lam2 if setting.feature_norm else 0.0
        return cls(backend.array(X), backend.array(Y), loss, penalty(lam1), weight, backend, setting.learned)

    @property
    def m(self) -> int:
        """Number of points."""
        return int(self.X.shape[0])

    def on_rows(self, rows: Any) -> SpectralLearning:
        """The problem of some of the points; lam2 weighs the mean norm of a point's features as before."""
        rows = self.backend.index(rows)
        share = self.m / max(1, len(rows))
        return replace(self, X=self.X[rows], Y=self.Y[rows], lam2=self.lam2 * share)

    def with_weights(self, lam1: float, lam2: float) -> SpectralLearning:
        """The same problem with other regularization weights."""
        return replace(self, penalty=type(self.penalty)(lam1), lam2=lam2)

    # -- objective and gradients -------------------------------------------------------------------

    def smooth(self, point: SpectralPoint, X: Any, Y: Any, *, learned: bool = True) -> tuple[Any, Any, Any, Any]:
        """Loss and feature norm on some points, an estimate of that part of the objective, and its gradients.

        Returns
        -------
        value : array without axes
        slope_W, slope_c, slope_omega : arrays
            Like the parts of the point; the last is None unless `learned`.
        """
        xp = self.backend.xp
        features = point.map(X)
        value, slope = self.loss.value_and_slope(features.values @ point.W + point.intercept, Y, xp)
        slope_W = features.values.T @ slope
        slope_c = xp.sum(slope, axis=0)
        scale = self.lam2 * (self.m / X.shape[0])
        if scale > 0.0:
            value = value + scale * xp.sum(features.values * features.values)
        if not learned:
            return value, slope_W, slope_c, None
        back = slope @ point.W.T
        if scale > 0.0:
            back += (2.0 * scale) * features.values
        return value, slope_W, slope_c, features.gradient(back)

    def evaluate(self, point: SpectralPoint, *, learned: bool = True) -> tuple[float, Any, Any, Any]:
        """The objective and the gradients of its smooth part on all points, block by block."""
        total, sums = 0.0, None
        for at in blocks(self.m):
            X, Y = self.X[at], self.Y[at]
            share = X.shape[0] / self.m
            value, *slopes = self.smooth(point, X, Y, learned=learned)
            total += share * float(value)
            scaled = [None if part is None else share * part for part in slopes]
            sums = scaled if sums is None else [None if a is None else a + b for a, b in zip(sums, scaled, strict=True)]
        assert sums is not None
        return total + self.penalty.value(point.W, self.backend), sums[0], sums[1], sums[2]

    def objective(self, point: SpectralPoint) -> float:
        """The value of the objective."""
        return self.evaluate(point, learned=False)[0]

    def certificate(self, point: SpectralPoint, *, scale: float = 1.0) -> Stationarity:
        """How nearly stationary a point is.

        The residual is the norm of the gradient in the intercept and the frequencies and of the proximal gradient
        ``W - prox(W - gradient)`` in W, the frequencies counted in units of their own size.
        """
        xp = self.backend.xp
        value, slope_W, slope_c, slope_omega = self.evaluate(point, learned=self.learned)
        move = point.W - self.penalty.proximal(point.W - slope_W, 1.0, self.backend)
        squares = float(xp.sum(move * move)) + float(xp.sum(slope_c * slope_c))
        if slope_omega is not None:
            squares += float(xp.sum(slope_omega * slope_omega)) * size_of(point.map.omega, self.backend) ** 2
        return Stationarity(value, float(np.sqrt(squares)), scale)

    # -- answers -----------------------------------------------------------------------------------

    def kernel(self, point: SpectralPoint) -> Spectral:
        """The learned kernel."""
        return point.map.kernel()

    def decision_function(self, point: SpectralPoint, X: Any) -> NDArray[np.float64]:
        """Values of the learned functions, shape (n_samples, K)."""
        return np.asarray(to_numpy(point.scores(self.backend.array(X))), dtype=np.float64)


def blocks(m: int, rows: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover m rows."""
    return (slice(start, min(start + rows, m)) for start in range(0, max(m, 1), rows))


def size_of(omega: Any, backend: Backend) -> float:
    """Root mean square of the frequencies."""
    squares = float(backend.xp.sum(omega * omega)) / max(1, int(np.prod(omega.shape)))
    return max(float(np.sqrt(squares)), 1e-30)
