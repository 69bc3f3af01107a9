"""The convex inner problem: the best W and intercept for fixed frequencies, with squared and logistic losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import scipy.linalg

from convexkernels.spectral.backend import Backend
from convexkernels.spectral.features import SpectralMap
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint, blocks
from convexkernels.spectral.losses import SquaredLoss
from convexkernels.spectral.penalties import FrobeniusNorm, Penalty

__all__ = ["InnerFit", "Moments", "solve_inner"]

# A ridge below this multiple of the largest eigenvalue is lost to the rounding of float32 features.
SMALLEST_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class InnerFit:
    """A solution of the inner problem.

    Attributes
    ----------
    point : SpectralPoint
    residual : float
        Norm of the last step over that of W; 0 for a solution in closed form.
    n_iter : int
    """

    point: SpectralPoint
    residual: float
    n_iter: int


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of features and targets, in float64: what squared loss needs to know of the data.

    Attributes
    ----------
    A : array of shape (width, width)
        Covariance of the features.
    B : array of shape (width, K)
        Covariance of features and targets.
    features, targets : arrays of shape (width,) and (K,)
        Means.
    """

    A: Any
    B: Any
    features: Any
    targets: Any
    backend: Backend

    @classmethod
    def of(cls, spectral_map: SpectralMap, problem: SpectralLearning) -> Moments:
        """Accumulate over blocks of rows; the features of all rows are never held together."""
        backend, m, X, Y = spectral_map.backend, problem.m, problem.X, problem.Y
        xp, double = backend.xp, backend.double
        A: Any = 0.0
        B: Any = 0.0
        sums: Any = 0.0
        for at in blocks(m):
            values = spectral_map(X[at]).values
            weights = problem.relative(at)
            weighted = values if weights is None else values * weights[:, None]
            # Products in the type of the features, sums of products in float64.
            A = A + xp.astype(weighted.T @ values, double)
            B = B + xp.astype(weighted.T @ Y[at], double)
            sums = sums + xp.astype(xp.sum(weighted, axis=0), double)
        features = sums / m
        shares = problem.relative(slice(None))
        targets = xp.mean(xp.astype(Y if shares is None else Y * shares[:, None], double), axis=0)
        A = A / m - features[:, None] * features[None, :]
        return cls(A, B / m - features[:, None] * targets[None, :], features, targets, backend)

    def ridge(self, lam: float) -> Any:
        """The minimizer of ``mean |W'phi + c - y|^2 + lam |W|_F^2``, shape (width, K)."""
        xp = self.backend.xp
        ridge = self.A + 0.0
        step = ridge.shape[0] + 1
        diagonal = ridge.reshape(-1)[::step]
        diagonal += max(lam, SMALLEST_RIDGE * float(xp.sum(diagonal)))
        if self.backend.is_numpy:
            try:  # Half the work of a general solver; rounded products with a small ridge may not be positive.
                return scipy.linalg.cho_solve(scipy.linalg.cho_factor(ridge, check_finite=False), self.B)
            except scipy.linalg.LinAlgError:
                pass
        return xp.linalg.solve(ridge, self.B)

    def intercept(self, W: Any) -> Any:
        """The best intercept for W."""
        return self.targets - self.features @ W

    def slope(self, W: Any) -> Any:
        """Gradient of the mean squared loss in W, the intercept being the best one."""
        return 2.0 * (self.A @ W - self.B)

    def steepness(self) -> float:
        """A Lipschitz constant of :meth:`slope`: twice the largest eigenvalue of A, by power iteration, rounded up."""
        xp = self.backend.xp
        v = xp.sum(self.A, axis=1) + 1e-3
        size = 0.0
        for _ in range(60):
            v = self.A @ v
            size = float(xp.sum(v * v)) ** 0.5
            if size == 0.0:
                return 1e-12
            v = v / size
        return 2.0 * 1.05 * size


def solve_inner(
    problem: SpectralLearning,
    spectral_map: SpectralMap,
    *,
    start: SpectralPoint | None = None,
    moments: Moments | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> InnerFit:
    """Minimize the objective over W and the intercept, the frequencies being fixed: a convex problem.

    Squared loss with the Frobenius norm is ridge regression, in closed form. With the trace norm, and for the
    logistic loss, an accelerated proximal gradient method with restarts runs until a step changes W by less than
    `tol` (relatively).

    Parameters
    ----------
    problem : SpectralLearning
    spectral_map : SpectralMap
    start : SpectralPoint, optional
    moments : Moments, optional
        Those of all points of the problem, when known already.
    """
    backend = problem.backend
    xp, kind = backend.xp, backend.dtype

    def point(W: Any, c: Any) -> SpectralPoint:
        return SpectralPoint(spectral_map, xp.astype(W, kind), xp.astype(c, kind))

    if isinstance(problem.loss, SquaredLoss):
        moments = Moments.of(spectral_map, problem) if moments is None else moments
        if isinstance(problem.penalty, FrobeniusNorm):
            W = moments.ridge(problem.penalty.weight)
            return InnerFit(point(W, moments.intercept(W)), 0.0, 0)
        first = _doubled(start.W, backend) if start is not None else moments.ridge(problem.penalty.weight)
        W, residual, n_iter = _accelerated(
            moments.slope, first, moments.steepness(), problem.penalty, backend, tol, max_iter
        )
        return InnerFit(point(W, moments.intercept(W)), residual, n_iter)
    return _by_passes(problem, spectral_map, start, tol, max_iter)


def _by_passes(
    problem: SpectralLearning, spectral_map: SpectralMap, start: SpectralPoint | None, tol: float, max_iter: int
) -> InnerFit:
    """Proximal gradient with a pass over the data per step; the intercept is one more row of W, not penalized."""
    backend = problem.backend
    xp, K = backend.xp, problem.Y.shape[1]
    if start is None:
        start = SpectralPoint(spectral_map, backend.zeros((spectral_map.width, K)), backend.zeros((K,)))

    def slope(V: Any) -> Any:
        at = SpectralPoint(spectral_map, xp.astype(V[:-1], backend.dtype), xp.astype(V[-1], backend.dtype))
        _, slope_W, slope_c, _ = problem.evaluate(at, learned=False)
        return _doubled(xp.concat([slope_W, slope_c[None, :]], axis=0), backend)

    # The loss has curvature at most 1/2 in the scores (1/4 for two classes); |features|^2 <= 4 width scale^2, and 1.
    bound = 0.5 * (4.0 * spectral_map.width * spectral_map.scale**2 + 1.0)
    first = _doubled(xp.concat([start.W, start.intercept[None, :]], axis=0), backend)
    V, residual, n_iter = _accelerated(slope, first, bound, _ButLastRow(problem.penalty), backend, tol, max_iter)
    found = SpectralPoint(spectral_map, xp.astype(V[:-1], backend.dtype), xp.astype(V[-1], backend.dtype))
    return InnerFit(found, residual, n_iter)


class _ButLastRow:
    """A penalty that leaves the last row, the intercept, alone."""

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty

    def proximal(self, V: Any, step: float, backend: Backend) -> Any:
        return backend.xp.concat([self.penalty.proximal(V[:-1], step, backend), V[-1:]], axis=0)


def _accelerated(
    slope: Callable[[Any], Any],
    start: Any,
    steepness: float,
    penalty: Any,
    backend: Backend,
    tol: float,
    max_iter: int,
) -> tuple[Any, float, int]:
    """FISTA; momentum starts anew where it points uphill (O'Donoghue and Candes)."""
    xp = backend.xp
    step = 1.0 / steepness
    W, ahead, t, residual, taken = start, start, 1.0, float("inf"), 0
    for _ in range(max_iter):
        taken += 1
        new = penalty.proximal(ahead - step * slope(ahead), step, backend)
        move = new - W
        size = float(xp.sum(new * new)) ** 0.5
        residual = float(xp.sum((new - ahead) ** 2)) ** 0.5 / max(size, 1e-300)
        if float(xp.sum((ahead - new) * move)) > 0.0:
            t = 1.0
        following = 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
        ahead = new + ((t - 1.0) / following) * move
        W, t = new, following
        if residual <= tol:
            break
    return W, residual, taken


def _doubled(x: Any, backend: Backend) -> Any:
    return backend.xp.astype(x, backend.double)
