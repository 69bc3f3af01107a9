"""Quadratic models of J, and what minimizes them over Theta."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from convexkernels.arrays import Array

# How much more the sum of weights counts than what is minimized beside it.
SUM = 1e4
# Weights up to which a model is minimized exactly: the time grows with their third power, and nothing interrupts it.
LARGEST = 400
# How much larger slopes than second derivatives are for a model that is a line: the sum of weights would drown these.
STEEP = 1e4


@dataclass(eq=False)
class QuasiNewtonModel:
    """``g'd + d'Bd / 2`` with the limited-memory BFGS matrix B of the last steps (compact form).

    [BNS94 (2.17)]: ``B = sigma I - N M^-1 N'``.
    """

    memory: int
    sigma: float
    steps: list[Array] = field(default_factory=list)
    changes: list[Array] = field(default_factory=list)

    def update(self, step: Array, change: Array) -> None:
        """Learn from a step and the change of the gradient along it; ignored without positive curvature."""
        curvature = float(np.vdot(step, change))
        if curvature <= 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            return
        self.sigma = float(np.vdot(change, change)) / curvature
        if self.memory:
            self.steps = [*self.steps, step.ravel()][-self.memory :]
            self.changes = [*self.changes, change.ravel()][-self.memory :]

    def product(self) -> Callable[[Array], Array]:
        """The map d -> B d, in the shape of d."""
        sigma = self.sigma
        if not self.steps:
            return lambda d: sigma * d
        S, Y = np.array(self.steps), np.array(self.changes)
        inner = S @ Y.T
        lower = np.tril(inner, -1)
        middle = np.block([[sigma * (S @ S.T), lower], [lower.T, -np.diag(np.diag(inner))]])
        N = np.vstack([sigma * S, Y])
        inverse = np.linalg.pinv(middle)
        return lambda d: (sigma * d.ravel() - N.T @ (inverse @ (N @ d.ravel()))).reshape(d.shape)


def minimize_model(
    theta: Array, gradient: Array, product: Callable[[Array], Array], sigma: float, project: Callable[[Array], Array]
) -> Array:
    """Point of Theta that (nearly) minimizes the quadratic model around `theta`.

    Spectral projected gradient with exact steps along projected directions; it never leaves Theta and
    every step decreases the model, so the result is a descent direction wherever it stops.
    """
    point, slope_at, step = theta, gradient, 1.0 / sigma
    first = 0.0
    for _ in range(60):
        with np.errstate(over="ignore"):
            ahead = point - step * slope_at
        if not np.isfinite(ahead).all():  # the model is all rounding here
            break
        direction = project(ahead) - point
        slope = float(np.vdot(slope_at, direction))
        first = min(first, slope)
        if not slope < 1e-6 * first:  # both are negative: stop at a millionth of the best rate of decrease
            break
        image = product(direction)
        curvature = float(np.vdot(direction, image))
        eta = min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
        point = point + eta * direction
        slope_at = slope_at + eta * image
        step = min(float(np.vdot(direction, direction)) / curvature, 1e6 / sigma) if curvature > 0.0 else 1.0 / sigma
    return point


@dataclass(frozen=True, eq=False)
class SecondDerivatives:
    """The map ``d -> s (R'R + floor) d``: second derivatives of J, and by how much stiffer it is."""

    R: Array
    floor: float
    stiffness: float

    def __call__(self, d: Array) -> Array:
        R, flat = self.R, d.ravel()
        return np.asarray(self.stiffness * (R.T @ (R @ flat) + self.floor * flat)).reshape(d.shape)

    def minimize_on_simplex(self, theta: Array, gradient: Array, least: float) -> Array | None:
        """Weights of at least `least` and sum 1 that minimize the model around `theta`; None where that breaks down.

        With ``H = U'U`` the model is ``|U d + U^-T g|^2 / 2`` up to a constant: non-negative least squares. Kernels
        that hardly differ make it so ill-conditioned that projected gradients stop far from its minimizer.
        """
        count, left = theta.size, 1.0 - theta.size * least
        if count > LARGEST:
            return None
        slopes = gradient - float(gradient @ theta)  # a constant changes nothing where all weights have one sum
        H = self.stiffness * (self.R.T @ self.R + self.floor * np.eye(count))
        if float(np.abs(slopes).max()) > STEEP * float(H.diagonal().max()):
            return None
        try:
            U = cholesky(H)
            b = U @ (theta - least) - solve_triangular(U, slopes, trans="T")
            heavy = SUM * max(float(np.abs(U).max()), float(np.abs(b).max()))
            A = np.vstack([U, np.full((1, count), heavy)])
            weights, _ = nnls(A, np.append(b, heavy * left), maxiter=20 * count)
        except (np.linalg.LinAlgError, ValueError, RuntimeError):
            return None
        if not (np.isfinite(weights).all() and weights.sum() > 0.0):
            return None
        found = least + weights * (left / weights.sum())
        return found if float(slopes @ (found - theta)) < 0.0 else None
