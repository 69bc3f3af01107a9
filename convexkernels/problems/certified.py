"""What is certified: the bounds that any point of a convex problem proves, and the function behind them."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from convexkernels.arrays import Array, Index
from convexkernels.certificate import DualityGap, RigorousGap
from convexkernels.exceptions import InvalidInputError, MemoryLimitError
from convexkernels.factored import FactoredGram
from convexkernels.families.base import Family, GramSet
from convexkernels.kernels.base import Kernel
from convexkernels.linalg import shifted_cholesky
from convexkernels.losses.factored import curvature_by_features
from convexkernels.losses.fit import Fit, maximize, measure, product
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.on_rows import OnRows
from convexkernels.problems.rounding import UNIT, UNITS, charge_above
from convexkernels.validation import allowed_memory, check_points


@dataclass(frozen=True, eq=False)
class Evaluation(Fit):
    """The inner problem solved at one theta: J(theta) lies between `value` and `upper`."""

    theta: Array = field(default_factory=lambda: np.zeros(0))


class Certified(OnRows):
    """A family on points, a loss and targets: any pair (theta, alpha) is measured here, whoever found it.

    `center` was taken from the targets, y was a vector where it is `single`, and `dtype` is that of Gram matrices while
    solving.
    """

    family: Family
    X: Any
    center: Array
    single: bool
    gram_set: GramSet
    dtype: Any
    memory_limit: float | None

    # -- measuring ---------------------------------------------------------------------------------

    def evaluate(
        self,
        theta: Array,
        *,
        K: Array | None = None,
        start: Array | None = None,
        tol: float = 1e-6,
        deadline: float | None = None,
    ) -> Evaluation:
        """Solve the SVMs at `theta` up to the relative gap `tol`, from dual variables `start`; K is that of `theta`.

        After the deadline, by ``time.monotonic()``, inexact inner solutions are returned.
        """
        K = self.gram_set.matrix(theta) if K is None else K
        alpha = maximize(self.loss, K, self.Y, self.weights, start=start, tol=tol, deadline=deadline)
        return self.measure(theta, alpha, K)

    def measure(self, theta: Array, alpha: Array, K: Array) -> Evaluation:
        """Values of given dual variables at `theta`, whose Gram matrix is `K`."""
        return Evaluation(**vars(measure(self.loss, K, self.Y, self.weights, alpha)), theta=theta)

    def lower_bound(self, evaluation: Evaluation) -> tuple[float, Array, Array]:
        """Lower bound by the dual variables of `evaluation`, gradient of J, and the theta of the support function.

        The gradient at ``evaluation.theta`` is ``-scale / 2 * A*(sum_k w_k w_k')``.
        """
        D = self.gram_set.adjoint(evaluation.W)
        sigma, vertex = self.gram_set.support(D)
        bound = self._best_multiple(evaluation.constant, evaluation.alpha, sigma)[0]
        return bound, -0.5 * self.loss.scale * D, vertex

    def _best_multiple(self, constant: float, alpha: Array, sigma: float) -> tuple[float, float]:
        """Largest lower bound among the multiples s alpha, 0 <= s <= 1, which are feasible with alpha, and its s.

        ``c(s alpha) = s linear - s^2 quadratic`` for losses that have a parabola, and the support function grows with
        s^2. Where K leaves alpha undetermined, the length of alpha can be far from the best one.
        """
        if not self.loss.has_parabola:
            return constant - 0.5 * self.loss.scale * sigma, 1.0
        half = self.loss.scale * sum(
            self.loss.dual_constant(0.5 * a, y, self.weights) for a, y in zip(alpha, self.Y, strict=True)
        )
        linear, quadratic = 4.0 * half - constant, 4.0 * half - 2.0 * constant
        curvature = quadratic + 0.5 * self.loss.scale * sigma
        s = min(1.0, max(0.0, 0.5 * linear / curvature)) if curvature > 0.0 else 1.0
        return constant - 0.5 * self.loss.scale * sigma if s == 1.0 else s * linear - s * s * curvature, s

    def _value_of_multiple(self, alpha: Array, W: Array, s: float, sigma: float, unit: float) -> float:
        """The lower bound of ``s alpha`` from scratch: where alpha is huge, that of alpha has no digits for it."""
        constant = sum(self.loss.dual_constant(s * a, y, self.weights) for a, y in zip(alpha, self.Y, strict=True))
        rounding = unit * s * float(np.vdot(np.abs(W), self.loss.sizes(self.Y)))
        return self.loss.scale * (constant - rounding - 0.5 * s * s * sigma)

    def curvature(self, evaluation: Evaluation, K: Array) -> Array | None:
        """R with ``R'R`` the second derivative of J at an evaluated point, shape (n_free, theta.size).

        J is piecewise smooth: this is the piece on which the active bounds of the coefficients stay as they are. R is
        triangular where an output has more free coefficients than theta has entries, or K is a factor. None where the
        family does not offer the derivative of its Gram matrices, or R does not fit the memory.
        """
        free = [self.loss.free(alpha, y, self.weights) for alpha, y in zip(evaluation.alpha, self.Y, strict=True)]
        size, counts = evaluation.theta.size, [len(rows) for rows, _ in free]
        folds = isinstance(K, FactoredGram) or max(counts) >= size
        # The sum and what is added to it, or a stack beside its parts; and the largest part as it is found, twice.
        kept, largest = (size, max(*counts, size)) if folds else (sum(counts), max(counts))
        if 16.0 * size * (kept + 2 * largest) > allowed_memory(self.memory_limit):
            return None
        parts: list[Array] = []
        H, L, last = np.zeros((size, size) if folds else 0), None, None
        for (rows, diagonal), w, y in zip(free, evaluation.W, self.Y, strict=True):
            if rows.size < 2:
                continue
            if isinstance(K, FactoredGram):
                derivative = partial(self.gram_set.derivative, w)
                R = curvature_by_features(self.loss, K, y, self.weights, (rows, diagonal), derivative)
            else:
                T = self.gram_set.derivative(w, rows)
                if T is not None and (last is None or not all(map(np.array_equal, last, (rows, diagonal)))):
                    last, L = (rows, diagonal), _factor(K, rows, diagonal)  # of squares one for all outputs
                R = None if T is None or L is None else self._root(L, T)
            if R is None:
                return None
            if folds:
                H += self.loss.scale * (R.T @ R)
            else:
                parts.append(np.sqrt(self.loss.scale) * R)
        if not folds:
            return np.vstack(parts) if parts else None
        factor = shifted_cholesky(H) if H.any() else None
        return None if factor is None else np.tril(factor[0]).T

    def _root(self, L: Array, T: Array) -> Array:
        """The R of one output, for the factor of the system of its free coefficients and the derivative of ``K w``."""
        R: Array = solve_triangular(L, T.reshape(len(L), -1), lower=True, check_finite=False)
        if self.loss.intercept:
            ones = solve_triangular(L, np.ones(len(L)), lower=True)
            R -= np.outer(ones, ones @ R / (ones @ ones))
        return R

    def certificate(self, theta: Array, alpha: Array, witness: Array | None = None) -> DualityGap:
        """Bounds on the optimum from any point, recomputed from scratch.

        Parameters
        ----------
        theta : ndarray
            Projected onto Theta first, so that the upper bound holds for any argument.
        alpha : ndarray of shape (n_outputs, m) or (m,)
            Dual variables behind the upper bound; made feasible first.
        witness : ndarray, same shape, optional
            Dual variables behind the lower bound; `alpha` when not given.
        """
        exact = self._exact_gram_set()
        known, K = self._measure_exactly(exact, theta, alpha)
        theta = known.theta
        point = self.feasible(alpha if witness is None else witness)
        W = self.coefficients(point)
        constant = self.loss.scale * sum(
            self.loss.dual_constant(a, y, self.weights) for a, y in zip(point, self.Y, strict=True)
        )
        D, unit = exact.adjoint(W), UNITS * float(np.finfo(K.dtype).eps)
        sigma = exact.support(D)[0]
        # Matrices are positive semidefinite: what is below 0 is rounding of their entries.
        most = max(0.0, exact.support_above(D, sigma, W, exact.sizes(theta, K, W), unit))
        below = 0.5 * self.loss.scale * (most - sigma)
        above = self._rounding_above(exact, known, K, unit)
        # Losses are not negative, and alpha = 0 proves it.
        lower = max(0.0, self._value_of_multiple(point, W, self._best_multiple(constant, point, most)[1], most, unit))
        return DualityGap(known.upper + above, lower, charged=above + below)

    def _rounding_above(self, exact: GramSet, known: Evaluation, K: Array, unit: float) -> float:
        """What the upper bound may be too small by, because its products with K are rounded."""
        W = known.multiples[:, None] * known.W
        F = np.array([product(K, w) for w in W])
        # A factor of K is one of |f|^2 for the same f.
        whole = 0.5 * self.loss.scale * unit * exact.inexact(known.theta) * abs(float(np.vdot(W, F)))
        b = known.multiples * known.b
        F += b[:, None]
        errors = unit * exact.sizes(known.theta, K, W) + UNIT * self.loss.inexact(self.Y, F, b)
        return whole + charge_above(self.loss, self.Y, self.weights, F, W, errors)

    def rigorous_certificate(self, theta: Array, alpha: Array, witness: Array | None = None) -> RigorousGap:
        """The same in exact arithmetic: bounds that rounding has no part in; see :mod:`convexkernels.rigorous`."""
        from convexkernels.rigorous.gap import rigorous_gap

        alpha = self.feasible(alpha)
        witness = alpha if witness is None else self.feasible(witness)
        X = np.zeros((self.m, 1)) if self.X is None else check_points(self.X)
        return rigorous_gap(self.gram_set, self.loss, X, self.Y, self.weights, np.asarray(theta), alpha, witness)

    def _exact_gram_set(self) -> GramSet:
        """The matrices in float64 where solving was done in float32, unless that does not fit the memory limit."""
        if self.dtype == np.float64:
            return self.gram_set.in_float64()
        try:
            options: dict[str, Any] = {"modulo_constants": self.loss.intercept, "memory_limit": self.memory_limit}
            return self.family.on(self.X, **options).in_float64()
        except MemoryLimitError:
            return self.gram_set.in_float64()

    @property
    def value_of_constants(self) -> float:
        """The objective of the best constants, the functions with ``alpha = 0``, whatever theta is."""
        zeros = np.zeros(self.m)
        return self.loss.scale * sum(self.loss.primal(zeros, 0.0, y, self.weights)[0] for y in self.Y)

    def member(self, theta: Array) -> Array:
        """The point of Theta that `certificate` measures for any `theta`: paths inside Theta are so to rounding."""
        return self.gram_set.project(np.asarray(theta, dtype=np.float64))

    # -- using a point -----------------------------------------------------------------------------

    def kernel(self, theta: Array) -> Kernel:
        """The kernel of `theta`."""
        return self.gram_set.kernel(theta)

    def landmark_error(self, theta: Array) -> tuple[float, float]:
        """What landmarks do not see of the kernel of `theta`; see :meth:`Solution.landmark_error`."""
        blocks = self.gram_set.seen_by_landmarks(self.member(theta))
        if blocks is None:
            raise InvalidInputError(
                f"landmark_error: {self.family!r} has no landmarks, so that nothing of its kernels is left out; pass "
                "landmarks=... to Tessellated or Candidates."
            )
        lefts, seen, total = [], 0.0, np.zeros(())
        for left, features in blocks:
            lefts.append(left)
            seen, total = seen + float(np.square(features).sum()), total + features.sum(axis=0)
        if self.loss.intercept:
            seen = max(0.0, seen - float(np.square(total).sum()) / self.m)
        unseen = np.concatenate(lefts)
        whole = seen + float(unseen.sum())
        return (float(unseen.sum()) / whole, self.m * float(unseen.max()) / whole) if whole > 0.0 else (0.0, 0.0)

    def intercept(self, theta: Array, alpha: Array) -> Any:
        """Intercept that goes with `kernel`: a float, or shape (n_outputs,) for a matrix y."""
        found = self.measured(theta, alpha)
        b = found.multiples * found.b + self.center
        if self.loss.intercept:
            W = found.multiples[:, None] * found.W
            b = b + np.array([self.gram_set.with_constants(theta, w) for w in W])
        return float(b[0]) if self.single else b

    def measured(self, theta: Array, alpha: Array) -> Evaluation:
        """The functions of a point, as certified; those of the last point asked for are kept, being vectors."""
        last = self.__dict__.get("_known")
        if last is not None and np.array_equal(last[0], theta) and np.array_equal(last[1], np.atleast_2d(alpha)):
            return last[2]
        return self._measure_exactly(self._exact_gram_set(), theta, alpha)[0]

    def _measure_exactly(self, exact: GramSet, theta: Array, alpha: Array) -> tuple[Evaluation, Array]:
        """What is certified of any pair, and K."""
        point = exact.project(np.asarray(theta, dtype=np.float64))
        K = exact.matrix(point)
        known = self.measure(point, self.feasible(alpha), K)
        self.__dict__["_known"] = np.array(theta), np.array(alpha, ndmin=2), known
        return known, K

    def function(self, theta: Array, alpha: Array) -> DecisionFunction:
        """The functions behind the upper bound, ``f(x) = sum_i w_i k(x_i, x) + b``, with their support vectors only."""
        found = self.measured(theta, alpha)
        W = found.multiples[:, None] * found.W
        points, coefficients, support = self.gram_set.expansion(theta, W)
        return DecisionFunction(
            gram_set=points,
            theta=theta,
            W=coefficients,
            b=found.multiples * found.b + self.center,
            support=support,
            single=self.single,
        )


def _factor(K: Array, rows: Index, diagonal: Array) -> Array | None:
    """Cholesky factor of a block of K with a diagonal added, None where that is not positive definite."""
    A = K[np.ix_(rows, rows)].astype(np.float64)
    A[np.diag_indices_from(A)] += diagonal + 1e-11 * np.trace(A) / rows.size
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
