"""Interpolation: the limit of least squares in which no error is allowed."""

from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import LossStatement
from convexkernels.losses.factorized import FactorizedLoss
from convexkernels.threads import threads_to_factorize
from convexkernels.validation import check_number

# A function interpolates when it misses no target by more than this share of the largest.
EXACT = 1e-7
REFINEMENTS = 3


class Interpolation(FactorizedLoss):
    """``J(K) = y' K^-1 y = min over f of |f|^2`` with ``f(x_i) = y_i`` at the points of positive weight; alpha is w.

    Problem [BGR19 (Int)] for the outermost layer. There is no intercept, and the loss is 0 or infinite.

    Parameters
    ----------
    nugget : float, >= 0
        Added to the diagonal of K, relative to its mean, where the factorization needs it; refinement takes most of
        its effect back.
    """

    intercept = False
    scale = 2.0
    needs_definite = True

    def __init__(self, nugget: float = 1e-12) -> None:
        self.nugget = check_number("nugget", nugget, low=0.0)

    def at(self, lam: float) -> Self:
        return self  # whatever |f|^2 weighs, the function is the same

    def rows_to_learn(self, X: Array, Y: Array) -> Index:
        """One row per distinct point; repeated points with different values are refused by name."""
        _, first, group = distinct_rows(X)
        representative = first[group]
        conflict = np.flatnonzero((Y[:, representative] != Y).any(axis=0))
        if conflict.size:
            j = int(conflict[0])
            i = int(representative[j])
            raise InvalidInputError(
                f"rows {i} and {j} of X are the same point, but y is {np.squeeze(Y[:, i])} and {np.squeeze(Y[:, j])}, "
                "which no function can interpolate; average the values of repeated points, or use regression."
            )
        return np.sort(first)

    def constant(self, Y: Array, weights: Array) -> Array:
        return np.asarray(Y @ weights / weights.sum())

    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        # The infinite penalty says nothing on points not learned from: squared errors, there and for slopes.
        return (F - Y) ** 2, 2.0 * (F - Y)

    def _solved(self, K: Array, right: Array, weights: Array, refine: bool) -> Array:
        """NaN where K is singular at working precision."""
        K = np.asarray(K, dtype=np.float64)
        shifted = np.array(K.T, order="F")
        shifted.flat[:: len(K) + 1] += self.nugget * float(np.trace(K)) / max(len(K), 1)
        with threads_to_factorize(len(shifted)):
            factor, failed = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if failed:
            return np.full_like(right, np.nan)
        solved = dpotrs(factor, right, lower=1)[0]
        for _ in range(REFINEMENTS if refine else 0):
            left = right - K @ solved
            if not np.abs(left).max(initial=0.0) > 1e-13 * np.abs(right).max(initial=0.0):
                break
            solved = solved + dpotrs(factor, left, lower=1)[0]
        return np.asarray(solved)

    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float, float]:
        missed = np.abs(y - f)[weights > 0].max(initial=0.0)
        exact = missed <= EXACT * np.abs(y).max(initial=0.0)
        return (0.5 * quadratic if exact else np.inf), 0.0, 1.0

    def statement(self, y: Array, weights: Array) -> LossStatement:
        import cvxpy as cp

        f = cp.Variable(y.size, name="f")
        counted = np.flatnonzero(weights > 0)
        return LossStatement(f, cp.Constant(0.0), [f[counted] == y[counted]], {"f": f})
