"""Lanckriet's family: combinations of candidate kernels of any sign that are positive semidefinite on the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family, FamilyStatement, GramSet
from convexkernels.families.candidate_list import CandidateList, Combination
from convexkernels.families.semidefinite_slice import SemidefiniteSlice
from convexkernels.families.slice_cone import SliceCone
from convexkernels.kernels.algebra import WeightedSum
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_memory, check_points, check_range, check_scale, check_whole_number


class Span(Family):
    """``{sum_k mu_k k_k : K >= 0 on the given points, trace K = trace}``, mu of any sign; theta is mu.

    Parameters
    ----------
    kernels : sequence or array of shape (l, m, m)
        As for :class:`Candidates`, but they may be indefinite.
    trace : float, > 0
        Trace of K over all points on which it is PSD.
    test : array-like of shape (t, n), or int, optional
        Further points on which K must be PSD (the transductive setting): a table, or, for ready-made matrices over
        m + t points, the number t of trailing rows that are not training points.

    Raises
    ------
    InvalidInputError
        When no combination of the candidates is PSD with that trace.

    Notes
    -----
    [LCBEJ04], [CP20 (5)]. K is PSD on these points, which does not make k a
    positive kernel elsewhere. Eigenvalues down to -1e-10 times the trace count as rounding, and so do combinations
    whose matrix is smaller than 3e-7 of their terms: they are not in the span. Where no combination is definite,
    the set is what the span has in common with the face of the cone that all of them lie in: perhaps one point.
    """

    def __init__(self, kernels: Sequence[Any] | Array, trace: float = 1.0, test: Any = None) -> None:
        self.candidates = CandidateList(kernels, definite=False)
        self.trace = check_scale("trace", trace, remedy="Scaling it by s is scaling C by s.")
        self.test = test

    def __repr__(self) -> str:
        count = 0 if self.test is None else (self.test if np.ndim(self.test) == 0 else len(self.test))
        return f"Span({len(self.candidates)} kernels, trace={self.trace:g}, {count} test points)"

    def on(
        self, X: Any, *, modulo_constants: bool = False, memory_limit: float | None = None, dtype: Any = np.float64
    ) -> SpanGramSet:
        everywhere, m = self._all_points(X)
        points, kernels, names = self.candidates.on(everywhere)
        check_memory(
            8.0 * (len(kernels) * 3 + 6) * len(points) ** 2,
            memory_limit,
            what=f"learning in the span of {len(kernels)} kernels on {len(points)} points",
            remedy="Use fewer points, or Candidates, whose weights are >= 0.",
        )
        matrices = np.array([kernel(points) for kernel in kernels])
        for k, K in enumerate(matrices):
            if not np.isfinite(K).all() or not K.any():
                what = "is 0" if np.isfinite(K).all() else "has a value that is not finite"
                raise InvalidInputError(f"kernel {names[k]!r} {what} on the points; leave it out.")
            check_range(f"kernel {names[k]!r}", float(np.log(np.abs(K).max())), np.float64, remedy="rescale it.")
        return SpanGramSet(self, matrices, kernels, points, m)

    def _all_points(self, X: Any) -> tuple[Any, int]:
        """Training and test points together (None for ready-made matrices), and how many of them train."""
        total = self.candidates.n_rows
        if total is not None:
            t = 0 if self.test is None else check_whole_number("test", self.test, low=0)
            if t >= total:
                raise InvalidInputError(f"test = {t}, but the matrices have {total} rows; some must be left to train.")
            return None, total - t
        X = check_points(X)
        if self.test is None:
            return X, len(X)
        if np.ndim(self.test) == 0:
            raise InvalidInputError(
                f"test must be a table of points when the candidates are kernels, got {self.test!r}."
            )
        return np.vstack([X, check_points(self.test, name="test", n_features=X.shape[1])]), len(X)


class SignedSum(WeightedSum):
    """k = sum_k weights_k kernels_k with weights of any sign: symmetric, and PSD only where it was made so."""

    _lowest = -np.inf

    def _gram(self, X: Array, Y: Array) -> Array:
        # Each matrix is made symmetric by itself, as those were that the family is PSD with.
        parts = (weight * (kernel(X) if Y is X else kernel(X, Y)) for weight, kernel in self._active())
        return sum(parts, np.zeros((X.shape[0], Y.shape[0])))


class SpanGramSet(GramSet):
    """Gram matrices of signed combinations on m training points."""

    has_support = False

    def __init__(self, family: Span, matrices: Array, kernels: Sequence[Kernel], points: Array, m: int) -> None:
        self.family = family
        self.matrices = matrices
        self.kernels = kernels
        self.X = points[:m]
        self.m = m
        self.slice = SemidefiniteSlice(matrices, family.trace)
        if self.slice.is_empty:
            raise InvalidInputError(
                f"no combination of the {len(kernels)} kernels with trace {family.trace:g} is positive semidefinite on "
                f"the {len(points)} points: the smallest eigenvalue is at most {self.slice.margin:.3g}. Add a kernel "
                "that is positive semidefinite."
            )
        # It costs tens of eigendecompositions, and methods that use it ask for many.
        self.has_projection = self.slice.is_point

    def initial(self) -> Array:
        return self.slice.back @ self.slice.center

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        K = np.tensordot(theta, self.matrices[:, : self.m, : self.m], axes=1)
        if out is None:
            return K
        out[:] = K
        return out

    def sizes(self, theta: Array, K: Any, W: Array) -> Array:
        block = np.abs(self.matrices[:, : self.m, : self.m])
        return np.abs(W) @ np.tensordot(np.abs(theta), block, axes=1)

    def adjoint(self, W: Array) -> Array:
        block = self.matrices[:, : self.m, : self.m]
        return np.array([np.vdot(W, W @ K) for K in block])

    def project(self, theta: Array) -> Array:
        return self.slice.project(theta)

    def cone(self) -> SliceCone:
        return SliceCone(self.slice)

    def derivative(self, w: Array, rows: Index) -> Array:
        return np.array([K[np.ix_(rows, np.arange(self.m))] @ w for K in self.matrices]).T

    def support(self, D: Array) -> tuple[float, Array]:
        return self.slice.maximize(D)

    def kernel(self, theta: Array) -> SignedSum:
        return SignedSum(list(self.kernels), theta.tolist())

    def cross(self, theta: Array, Z: Any) -> Array:
        return self.restrict(np.arange(self.m)).cross(theta, Z)

    def restrict(self, index: Index) -> Combination:
        return Combination(self.kernels, np.ones(len(self.kernels)), np.ascontiguousarray(self.X[index]))

    def statement(self) -> FamilyStatement:
        import cvxpy as cp

        l, total, _ = self.matrices.shape  # noqa: E741
        mu = cp.Variable(l, name="mu")
        columns = self.matrices.reshape(l, -1).T
        everywhere = cp.reshape(columns @ mu, (total, total), order="F")
        traces = np.trace(self.matrices, axis1=1, axis2=2)
        gram = everywhere if total == self.m else everywhere[: self.m, : self.m]
        return FamilyStatement(mu, [everywhere >> 0, traces @ mu == self.family.trace], gram)
