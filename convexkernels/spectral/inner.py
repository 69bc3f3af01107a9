"""The convex inner problem of squared loss: the best W and intercept for fixed frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import scipy.linalg

from convexkernels.backend import Backend
from convexkernels.clock import Clock
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint, blocks
from convexkernels.spectral.penalties import FrobeniusNorm, Penalty

# A ridge below this multiple of the largest eigenvalue is lost to the rounding of float32 features.
SMALLEST_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of features and targets, in float64: what squared loss needs to know of the data.

    A, shape (width, width), is the covariance of the features of the map, B that of features and targets; the last two
    are means.
    """

    map: SpectralMap
    A: Any
    B: Any
    features: Any
    targets: Any

    @classmethod
    def of(cls, spectral_map: SpectralMap, problem: SpectralLearning) -> Moments:
        """Accumulate over blocks of rows; the features of all rows are never held together."""
        backend, m, X, Y = spectral_map.backend, problem.m, problem.X, problem.Y
        xp, double = backend.xp, backend.double
        A: Any = 0.0
        B: Any = 0.0
        sums: Any = 0.0
        for at in blocks(m):
            values, weights = spectral_map(X[at]).values, problem.relative(at)
            weighted = values if weights is None else values * weights[:, None]
            # Products in the type of the features, sums of products in float64.
            A = A + xp.astype(weighted.T @ values, double)
            B = B + xp.astype(weighted.T @ Y[at], double)
            sums = sums + xp.astype(xp.sum(weighted, axis=0), double)
        shares = problem.relative(slice(None))
        targets = xp.sum(xp.astype(Y if shares is None else Y * shares[:, None], double), axis=0) / m
        features = sums / m
        A = A / m - features[:, None] * features[None, :]
        return cls(spectral_map, A, B / m - features[:, None] * targets[None, :], features, targets)

    def ridge(self, lam: float) -> Any:
        """The minimizer of ``mean |W'phi + c - y|^2 + lam |W|_F^2``, shape (width, K)."""
        xp = self.map.backend.xp
        ridge = self.A + 0.0
        diagonal = ridge.reshape(-1)[:: ridge.shape[0] + 1]
        diagonal += max(lam, SMALLEST_RIDGE * float(xp.sum(diagonal)))
        if self.map.backend.is_numpy:
            try:  # Half the work of a general solver; rounded products with a small ridge may not be positive.
                return scipy.linalg.cho_solve(scipy.linalg.cho_factor(ridge, check_finite=False), self.B)
            except scipy.linalg.LinAlgError:
                pass
        return xp.linalg.solve(ridge, self.B)

    def point(self, W: Any) -> SpectralPoint:
        """W with the best intercept for it, in the type of the features."""
        xp, dtype = self.map.backend.xp, self.map.backend.dtype
        return SpectralPoint(self.map, xp.astype(W, dtype), xp.astype(self.targets - self.features @ W, dtype))

    def slope(self, W: Any) -> Any:
        """Gradient of the mean squared loss in W, the intercept being the best one."""
        return 2.0 * (self.A @ W - self.B)

    def steepness(self) -> float:
        """A Lipschitz constant of :meth:`slope`: twice the largest eigenvalue of A, by power iteration, rounded up."""
        xp = self.map.backend.xp
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
    moments: Moments,
    *,
    start: SpectralPoint | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
    clock: Clock | None = None,
) -> SpectralPoint:
    """Minimize the objective over W and the intercept for squared loss, the frequencies being fixed.

    With the Frobenius norm that is ridge regression, in closed form. With the trace norm an accelerated proximal
    gradient method with restarts runs until a step changes W by less than `tol` (relatively), or the time is up. The
    moments are those of all points of the problem, and say what the frequencies are.
    """
    if isinstance(problem.penalty, FrobeniusNorm):
        return moments.point(moments.ridge(problem.penalty.weight))
    backend = problem.backend
    first = moments.ridge(problem.penalty.weight) if start is None else backend.xp.astype(start.W, backend.double)
    steepness, clock = moments.steepness(), Clock() if clock is None else clock
    return moments.point(_accelerated(moments.slope, first, steepness, problem.penalty, backend, tol, max_iter, clock))


def _accelerated(
    slope: Callable[[Any], Any],
    start: Any,
    steepness: float,
    penalty: Penalty,
    backend: Backend,
    tol: float,
    max_iter: int,
    clock: Clock,
) -> Any:
    """FISTA; momentum starts anew where it points uphill (O'Donoghue and Candes)."""
    xp = backend.xp
    step = 1.0 / steepness
    W, ahead, t = start, start, 1.0
    for _ in range(max_iter):
        new = penalty.proximal(ahead - step * slope(ahead), step, backend)
        move = new - W
        size = float(xp.sum(new * new)) ** 0.5
        residual = float(xp.sum((new - ahead) ** 2)) ** 0.5 / max(size, 1e-300)
        if float(xp.sum((ahead - new) * move)) > 0.0:
            t = 1.0
        following = 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
        ahead = new + ((t - 1.0) / following) * move
        W, t = new, following
        if residual <= tol or clock.is_over:
            break
    return W
