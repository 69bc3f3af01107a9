"""The squared loss: kernel ridge regression."""

from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from convexkernels.arrays import Array
from convexkernels.linalg import eigh
from convexkernels.losses.base import LossStatement, check_regularization
from convexkernels.losses.factorized import FactorizedLoss
from convexkernels.threads import threads_to_factorize


class LeastSquares(FactorizedLoss):
    """``J(K) = lam y'(K + lam I)^-1 y = min over f, b of  sum_i weights_i (y_i - f(x_i) - b)^2 + lam |f|^2``.

    In the form of the contract, ``J(K) = 2 lam max over w of  y'w - lam/2 sum w_i^2 / weights_i - 1/2 w'Kw`` with
    ``[sum w = 0]``; alpha is w, and ``w = (K + lam I)^-1 (y - b)`` at the optimum [BGR19 (5), (6)].

    Parameters
    ----------
    lam : float, > 0
        Price of the squared norm of f against squared errors; scikit-learn's ``KernelRidge(alpha=lam)``.
    intercept : bool
        Whether b is fitted.
    """

    has_level = True

    def __init__(self, lam: float = 1.0, intercept: bool = True) -> None:
        self.scale = 2.0 * check_regularization("lam", lam)
        self.intercept = bool(intercept)

    @property
    def ridge(self) -> float:  # type: ignore[override]
        return self.lam

    def at(self, lam: float) -> Self:
        return type(self)(lam, self.intercept)

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        excess = F - Y
        return excess * excess, 2.0 * excess

    def _solved(self, K: Array, right: Array, weights: Array, refine: bool) -> Array:
        # The transpose of a symmetric matrix is the same matrix in the order LAPACK wants: a plain copy.
        shifted = np.array(K.T, dtype=np.float64, order="F")
        shifted.flat[:: len(K) + 1] += self.lam / weights
        if not self.intercept:
            return _solve(shifted, right)
        solved = _solve(shifted, np.column_stack([_centered(right, weights), np.ones(len(K))]))
        ones, solved = solved[:, -1], solved[:, :-1]
        solved = solved - np.outer(ones, solved.sum(axis=0) / ones.sum())
        # Where K is far larger than lam, what rounding leaves of the sum is not small against it.
        return solved - solved.mean(axis=0)

    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float, float]:
        residual = y - f
        b = float(weights @ residual / weights.sum()) if self.intercept else 0.0
        return 0.5 * quadratic + float(weights @ (residual - b) ** 2) / self.scale, b, 1.0

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f, fitted, variables = self._fitted(y.size)
        # The cost is a variable of its own, because a matrix inequality needs affine entries.
        cost = variables["squares"] = cp.Variable(name="squares")
        squares = cp.sum_squares(cp.multiply(np.sqrt(weights), y - fitted))
        return LossStatement(f, cost, [squares <= self.scale * cost], variables)


def _centered(right: Array, weights: Array) -> Array:
    """Targets minus their weighted mean; exactly 0 where only rounding is left, as for constant targets."""
    centered = right - weights @ right / weights.sum()
    size = np.abs(right).max(axis=0, initial=0.0)
    return np.where(np.abs(centered).max(axis=0, initial=0.0) <= 4.0 * np.finfo(np.float64).eps * size, 0.0, centered)


def _solve(A: Array, right: Array) -> Array:
    """``A^-1 right`` for a positive definite A in Fortran order; overwrites the lower half of A."""
    diagonal = A.diagonal().copy()
    with threads_to_factorize(len(A)):
        factor, failed = dpotrf(A, lower=1, clean=0, overwrite_a=1)
    if not failed:
        return np.asarray(dpotrs(factor, right, lower=1)[0])
    # Rounding made a matrix that is only just definite indefinite: leave out what rounding has spoilt.
    upper = np.triu(A, 1)
    values, vectors = eigh(upper + upper.T + np.diag(diagonal))
    keep = values > values[-1] * A.shape[0] * np.finfo(np.float64).eps
    half = vectors[:, keep]
    return half @ ((half.T @ right) / values[keep, None])
