"""The outermost layer of a concatenation: a convex kernel machine for a fixed Gram matrix.

For every loss the optimal value is ``V(Q) = min_f sum_j loss(y_j, f(z_j)) + lam |f|^2``, and by the
envelope theorem ``dV/dQ = -lam w w'`` for the solution ``f = sum_i w_i k(z_i, .)``: the derivative of
the whole concatenation needs the coefficients w and nothing else. Several outputs share the Gram
matrix and their values are summed.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_labels_finite, check_number

if TYPE_CHECKING:  # compiled code, loaded only by who passes such a loss
    from convexkernels.losses import Loss

__all__ = ["InnerProgram", "Interpolation", "OutermostFit", "OutermostLoss", "SquaredError", "as_outermost"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OutermostFit:
    """Solution of the inner problem: value, coefficients (m, outputs), intercepts (outputs,), dual variables."""

    value: float
    coefficients: Array
    intercept: Array
    alpha: Array

    def predict(self, K: Array) -> Array:
        """Evaluate at points whose kernel values with the training images are the rows of `K`."""
        return K @ self.coefficients + self.intercept


class OutermostLoss(ABC):
    """What the outermost layer minimizes. ``lam`` weighs the norm of its function."""

    lam: float

    def targets(self, y: Any, m: int) -> Array:
        """Return the targets as an array of shape (m, outputs), or refuse them."""
        values = check_labels_finite(y, m)
        return values[:, None] if values.ndim == 1 else values

    def distinct_rows(self, X: Array, Y: Array) -> NDArray[np.intp]:
        """Indices of the rows to learn from: all of them, unless the loss cannot bear repetitions."""
        return np.arange(X.shape[0])

    @abstractmethod
    def risk(self, F: Array, Y: Array) -> float:
        """Sum of the losses of predictions `F`, shape (points, outputs), on points not learned from."""

    @abstractmethod
    def solve(self, Q: Array, Y: Array, start: OutermostFit | None = None) -> OutermostFit:
        """Solve for the Gram matrix `Q` (which may be overwritten), warm-started at `start`.

        The value is inf when the problem has no solution at working precision.
        """


class Interpolation(OutermostLoss):
    """Minimal-norm interpolation: ``V(Q) = y' Q^-1 y``, problem (Int) of the paper.

    Parameters
    ----------
    nugget : float, >= 0
        Added to the diagonal of Q, relative to its mean: keeps the factorisation possible where
        images nearly coincide. The misfit it causes is ``nugget * mean(diag Q) * |coefficients|``.
    """

    lam = 1.0

    def __init__(self, nugget: float = 1e-12) -> None:
        self.nugget = check_number("nugget", nugget, low=0.0)

    def distinct_rows(self, X: Array, Y: Array) -> NDArray[np.intp]:
        """Indices of one row per distinct point; repeated points with different values are refused by name."""
        _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
        representative = first[group.ravel()]
        conflict = np.flatnonzero((Y[representative] != Y).any(axis=1))
        if conflict.size:
            j = int(conflict[0])
            i = int(representative[j])
            raise InvalidInputError(
                f"rows {i} and {j} of X are the same point, but y is {np.squeeze(Y[i])} and {np.squeeze(Y[j])}, which "
                "no function can interpolate; average the values of repeated points, or use regression."
            )
        return np.sort(first)

    def risk(self, F: Array, Y: Array) -> float:
        return float(np.sum((F - Y) ** 2))

    def solve(self, Q: Array, Y: Array, start: OutermostFit | None = None) -> OutermostFit:
        value, B = _quadratic_form(Q, Y, self.nugget * float(np.trace(Q)) / Q.shape[0])
        return OutermostFit(value, B, np.zeros(Y.shape[1]), B)


class SquaredError(OutermostLoss):
    """Regularised least squares: ``V(Q) = lam y' (Q + lam I)^-1 y``, problem (Reg) of the paper.

    The paper's three terms ``lam b'Qb + |y - Qb|^2`` with ``b = (Q + lam I)^-1 y`` add up to this one.

    Parameters
    ----------
    lam : float, > 0
    """

    def __init__(self, lam: float) -> None:
        self.lam = check_number("lam", lam, low=0.0, open_low=True)

    def risk(self, F: Array, Y: Array) -> float:
        return float(np.sum((F - Y) ** 2))

    def solve(self, Q: Array, Y: Array, start: OutermostFit | None = None) -> OutermostFit:
        value, B = _quadratic_form(Q, Y, self.lam)
        return OutermostFit(self.lam * value, B, np.zeros(Y.shape[1]), B)


class InnerProgram(OutermostLoss):
    """A kernel machine of the library, solved by its own dual program: hinge, epsilon-insensitive, least squares.

    ``V(Q) = J(Q) / C`` for the losses with a price C, which is ``min sum_j loss(y_j, f(z_j) + b) + lam |f|^2``
    with ``lam = 1 / (2 C)``, and ``V(Q) = J(Q)`` for least squares.

    Parameters
    ----------
    loss : Loss
        For example ``Hinge(C)`` or ``EpsilonInsensitive(C, epsilon)``.
    tol : float, > 0
        Relative duality gap to which each machine is solved, starting from the previous one.
    ridge : float, >= 0
        Added to the diagonal of Q, relative to its mean, while the machine is solved. Without it the
        coefficients are not unique where Q is nearly singular, V has kinks in the images, and a search ends
        on one of them instead of at a stationary point.
    """

    def __init__(self, loss: Loss, tol: float = 1e-10, ridge: float = 1e-4) -> None:
        if not hasattr(loss, "maximise"):
            raise InvalidInputError(f"loss must be a loss such as Hinge(C) or Interpolation(), got {loss!r}.")
        self.loss = loss
        self.tol = check_number("tol", tol, low=0.0, open_low=True)
        self.ridge = check_number("ridge", ridge, low=0.0)
        self.factor = loss.scale / getattr(loss, "C", 1.0)
        self.lam = 0.5 * self.factor

    def targets(self, y: Any, m: int) -> Array:
        return np.ascontiguousarray(self.loss.targets(y, m).T)

    def risk(self, F: Array, Y: Array) -> float:
        # The primal without its norm; each machine's own intercept is part of F already.
        ones = np.ones(Y.shape[0])
        plain = copy.copy(self.loss)
        plain.intercept = False
        return self.factor * sum(plain.primal(f, 0.0, y, ones)[0] for f, y in zip(F.T, Y.T, strict=True))

    def solve(self, Q: Array, Y: Array, start: OutermostFit | None = None) -> OutermostFit:
        loss, ones = self.loss, np.ones(Y.shape[0])
        W, alphas = np.zeros_like(Y), np.zeros_like(Y)
        intercept, total = np.zeros(Y.shape[1]), 0.0
        Q.flat[:: Q.shape[0] + 1] += self.ridge * float(np.trace(Q)) / Q.shape[0]
        for k, y in enumerate(np.ascontiguousarray(Y.T)):
            near = None if start is None else np.ascontiguousarray(start.alpha[:, k])
            alpha = loss.maximise(Q, y, ones, start=near, tol=self.tol)
            w = loss.coefficients(alpha, y)
            f = Q @ w
            # The dual value: with alpha held fixed its derivative is exactly the one of the envelope theorem.
            total += loss.dual_constant(alpha, y, ones) - 0.5 * float(w @ f)
            intercept[k] = loss.primal(f, float(w @ f), y, ones)[1]
            W[:, k], alphas[:, k] = w, alpha
        return OutermostFit(self.factor * total, W, intercept, alphas)


def as_outermost(loss: Any) -> OutermostLoss:
    """Turn a loss of the library into an outermost layer."""
    if isinstance(loss, OutermostLoss):
        return loss
    from convexkernels.losses.least_squares import LeastSquares

    if not isinstance(loss, LeastSquares):
        return InnerProgram(loss)
    return InnerProgram(loss, ridge=0.0) if loss.intercept else SquaredError(loss.lam)


def _quadratic_form(Q: Array, Y: Array, shift: float) -> tuple[float, Array]:
    """``trace Y' (Q + shift I)^-1 Y`` and the solution; inf when the matrix is not positive definite."""
    Q.flat[:: Q.shape[0] + 1] += shift
    # The transpose of a symmetric matrix is the same matrix in the order LAPACK wants: no copy.
    factor, failed = dpotrf(Q.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return np.inf, np.zeros_like(Y)
    B, _ = dpotrs(factor, Y, lower=1)
    value = float(np.sum(B * Y))
    return (value if value >= 0 else np.inf), np.ascontiguousarray(B)
