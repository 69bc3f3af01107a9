"""The family of multiple kernel learning: convex combinations of candidate kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cones import Orthant
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Crossing, Family, FamilyStatement, GramSet, sizes_by_diagonal
from convexkernels.families.candidate_list import CandidateList, Combination, combination
from convexkernels.families.stacks.base import GramStack, PackedStack, StreamedStack
from convexkernels.families.stacks.factored import FactoredStack, OnFeatures, check_landmarks, with_landmarks
from convexkernels.families.stacks.filling import make_stack
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.normalized import Centered, Normalized, with_mean
from convexkernels.linalg import eigh, project_simplex
from convexkernels.validation import check_range

NORMALIZATIONS = ("trace", "mean", "variance", "cosine", "none")
# Share of a matrix that has to be left by centering: below, rounding of the matrix makes up its digits.
LEAST_LEFT = 1e-8


class Candidates(Family):
    """``{sum_k mu_k k_k : mu >= 0, sum mu = 1}`` for given kernels; theta is mu, the weights.

    Parameters
    ----------
    kernels : sequence or array of shape (l, m, m)
        Kernels, or ``(name, kernel, columns)`` for a kernel that sees some columns only (a list of indices, a slice or
        a mask, as in scikit-learn's ``ColumnTransformer``), or the Gram matrices themselves. Ready-made
        matrices must be symmetric positive semidefinite; the problem's X is then None.
    normalize : {"trace", "mean", "variance", "cosine", "none"}
        What is done to every kernel on the training points: trace 1 (as the papers do), mean of the diagonal 1
        (so that C means what it means for a Gaussian kernel), the same without the part that is constant and that an
        intercept makes free (the mean squared distance of images from their mean is 1), diagonal 1, or nothing.
    center : bool
        Whether the images of the training points get mean 0 in feature space first.
    allow_duplicates : bool
        Whether candidates may have the same matrix. Their weights are then not unique, only the sum of them is.
    landmarks : int or array of shape (n_landmarks, n_features), optional
        Kernels are replaced by what landmarks see of them (:class:`Nystrom`; a number is drawn among the rows), so that
        memory and time grow as the number of rows. Certificates are those of the family that this makes.

    Notes
    -----
    [LCBEJ04], [RBCG08], [CP20 (6), (25)]. The matrices are
    stored as lower triangles in float64 where they fit the memory limit, else in float32, else made anew whenever
    they are used. K costs O(m^2) per kernel of nonzero weight, the adjoint O(l n_support^2).

    Examples
    --------
    >>> import numpy as np, convexkernels as ck
    >>> X = np.random.default_rng(0).random((40, 3))
    >>> y = np.where(X[:, 0] > 0.5, 1, -1)
    >>> family = ck.Candidates([(f"x{j}", ck.Gaussian(4.0), [j]) for j in range(3)], normalize="mean")
    >>> solution = ck.KernelLearning(family, ck.Hinge(C=10.0), X, y).solve()
    >>> int(np.argmax(solution.theta))
    0
    """

    def __init__(
        self,
        kernels: Sequence[Any] | Array,
        normalize: str = "trace",
        center: bool = False,
        allow_duplicates: bool = False,
        landmarks: Any = None,
    ) -> None:
        if normalize not in NORMALIZATIONS:
            raise InvalidInputError(f"normalize must be one of {list(NORMALIZATIONS)}, got {normalize!r}.")
        self.candidates = CandidateList(kernels)
        self.normalize, self.center = normalize, bool(center)
        self.allow_duplicates = bool(allow_duplicates)
        self.landmarks, self._is_of_part = check_landmarks(landmarks), False
        if self.landmarks is not None and self.candidates.n_rows is not None:
            raise InvalidInputError("landmarks need kernels, got ready-made matrices; pass landmarks=None.")
        if self.landmarks is not None and self.center:
            raise InvalidInputError("landmarks and center=True exclude each other; an intercept centers.")

    def __repr__(self) -> str:
        return f"Candidates({len(self.candidates)} kernels, normalize={self.normalize!r}, center={self.center})"

    def on(
        self, X: Any, *, modulo_constants: bool = False, memory_limit: float | None = None, dtype: Any = np.float64
    ) -> CandidateGramSet:
        points, kernels, names = self.candidates.on(X)
        if self.landmarks is not None:
            kernels = with_landmarks(kernels, points, self.landmarks)
        if self.center:
            kernels = [Centered(kernel, points) for kernel in kernels]
        if self.normalize == "cosine":
            kernels = [Normalized(with_mean(kernel)) for kernel in kernels]
        stack: GramStack
        if self.landmarks is None:
            stack = make_stack(kernels, points, memory_limit=memory_limit, dtype=dtype)
        else:
            stack = FactoredStack(kernels, points, memory_limit)
        kernels = [with_mean(kernel) for kernel in kernels]
        sizes = _sizes(stack, kernels, points)
        traces = self._checked_traces(stack, names, kernels, sizes)
        scales = self._scales(stack, traces, names)
        largest = (scales[:, None] * stack.diagonals()).max(axis=1)
        k = int(np.argmax(largest))
        if largest[k] > 0.0:
            size = float(np.log(largest[k]))
            check_range(f"kernel {names[k]!r}", size, dtype, remedy="rescale it or pass normalize='mean'.")
        stack.rescale(scales)
        alike = None if self.allow_duplicates or self._is_of_part else stack.alike()
        if alike is not None:
            one, other = alike
            raise InvalidInputError(
                f"kernels {names[one]!r} and {names[other]!r} (positions {one} and {other}) are the same on the "
                "training points, so that their weights would not be unique; drop one or pass allow_duplicates=True."
            )
        return CandidateGramSet(self, stack, kernels, scales, points, names, scales[:, None] * sizes)

    def of_part(self) -> Candidates:
        part = copy(self)
        part._is_of_part = True
        return part

    def with_others(self, others: Sequence[Candidates]) -> Candidates:
        """The family of the candidates of several lists from one table, each of them once."""
        whole, entries = copy(self), [entry for family in (self, *others) for entry in family.candidates.entries]
        whole.candidates = CandidateList(list({entry[0]: entry for entry in entries}.values()))
        return whole

    def _checked_traces(self, stack: GramStack, names: Sequence[str], kernels: Sequence[Kernel], sizes: Array) -> Array:
        """Traces of the matrices; 0 for those of a part of the rows where nothing is left."""
        diagonals = stack.diagonals()
        if not np.isfinite(diagonals).all():
            k = int(np.argwhere(~np.isfinite(diagonals))[0][0])
            raise InvalidInputError(
                f"kernel {names[k]!r} has a value that is not finite on the training points; rescale it, or use "
                "dtype='float64'."
            )
        traces = diagonals.sum(axis=1)
        # Centering leaves rounding of the size of the uncentered matrix where nothing should be left.
        uncentered = self.center and all(isinstance(kernel, Centered) for kernel in kernels)
        size = sizes.sum(axis=1) if uncentered else traces
        nothing = ~(traces > LEAST_LEFT * np.abs(size))
        if nothing.any() and not self._is_of_part:
            k, what = int(np.argmax(nothing)), " after centering" if self.center else ""
            raise InvalidInputError(
                f"kernel {names[k]!r} has trace {traces[k]:.3g} on the training points{what}, so it says nothing about "
                "them; leave it out."
            )
        return np.where(nothing, 0.0, traces)

    def _scales(self, stack: GramStack, traces: Array, names: Sequence[str]) -> Array:
        """Factors of the matrices; 0 for those of a part of the rows that say nothing about them."""
        sizes = {"trace": traces, "mean": traces / stack.m}.get(self.normalize, np.ones(stack.l))
        if self.normalize == "variance":
            varying = traces - stack.weigh(np.ones((1, stack.m))) / stack.m
            constant = varying <= 1e-13 * traces
            if constant.any() and not self._is_of_part:
                raise InvalidInputError(
                    f"kernel {names[int(np.argmax(constant))]!r} is constant on the training points, so that it says "
                    "nothing about them; leave it out."
                )
            sizes = np.where(constant, 0.0, varying / stack.m)
        sizes = np.where(traces > 0.0, sizes, 0.0)
        return np.divide(1.0, sizes, out=np.zeros(stack.l), where=sizes > 0.0)


def _sizes(stack: GramStack, kernels: Sequence[Kernel], points: Array) -> Array:
    """What entries of the matrices are right to units in the last place of the roots of, shape (l, m)."""
    sizes = stack.diagonals()
    if not isinstance(stack, FactoredStack):  # features are what defines the kernels, and most sizes are the diagonals
        for k, kernel in enumerate(kernels):
            if type(kernel)._sizes is not Kernel._sizes:
                sizes[k] = kernel._sizes(points)
    return np.maximum(sizes, 0.0)


@dataclass(eq=False, repr=False)
class CandidateGramSet(GramSet):
    """Gram matrices of the convex combinations of candidate kernels on m points.

    Entries of matrix k are right to units in the last place of ``sqrt(squares[k, i] squares[k, j])``.
    """

    is_simplex = True

    family: Candidates
    stack: GramStack
    kernels: Sequence[Kernel]
    scales: Array
    X: Array
    names: Sequence[str]
    squares: Array

    def __post_init__(self) -> None:
        self.m = self.X.shape[0]

    def release(self) -> None:
        if isinstance(self.stack, FactoredStack):
            self.stack.release()
        else:
            self.stack = self._streamed()

    def of(self, family: Candidates) -> CandidateGramSet:
        """The Gram matrices of a family of some of the candidates (`Candidates.with_others`)."""
        names = [name for name, _, _ in family.candidates.entries]
        places = [self.names.index(name) for name in names]
        kernels, stack = [self.kernels[k] for k in places], self.stack.some(places)
        return CandidateGramSet(family, stack, kernels, self.scales[places], self.X, names, self.squares[places])

    @property
    def is_exact(self) -> bool:
        """Whether the matrices are in memory, in float64."""
        return self.is_factored or (isinstance(self.stack, PackedStack) and self.stack.values.dtype == np.float64)

    def in_float64(self) -> CandidateGramSet:
        stored = isinstance(self.stack, PackedStack) and self.stack.values.dtype == np.float32
        return replace(self, stack=self._streamed()) if stored else self

    def _streamed(self) -> StreamedStack:
        stack = StreamedStack(self.kernels, self.X)
        stack.rescale(self.scales)
        return stack

    def __getstate__(self) -> dict[str, Any]:
        # What grows as m^2, and what can be had again from X, is not written out with a model.
        return self.__dict__ if self.is_factored else {**self.__dict__, "stack": self._streamed()}

    def initial(self) -> Array:
        return np.full(self.stack.l, 1.0 / self.stack.l)

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        if out is None:
            stored = getattr(getattr(self.stack, "values", None), "dtype", np.float64)
            out = np.empty((self.m, self.m), dtype=stored)
        return self.stack.combine(theta, out)

    def part(self, theta: Array, rows: Index) -> Array:
        if len(rows) == self.m or not isinstance(self.stack, StreamedStack):
            return super().part(theta, rows)
        points = np.ascontiguousarray(self.X[rows])  # what is not stored is made for them only
        return replace(self, X=points, stack=StreamedStack(self.kernels, points)).gram(theta * self.scales)

    @property
    def is_factored(self) -> bool:
        return isinstance(self.stack, FactoredStack)

    def matrix(self, theta: Array, out: Array | None = None) -> Any:
        return self.stack.factored(theta) if isinstance(self.stack, FactoredStack) else self.gram(theta, out)

    def expansion(self, theta: Array, W: Array) -> tuple[Crossing, Array, Index]:
        if not isinstance(self.stack, FactoredStack):
            return super().expansion(theta, W)
        active, coefficients = self.stack.compressed(theta, W)
        return OnFeatures([self.kernels[k] for k in active]), coefficients, np.flatnonzero(W.any(axis=0))

    def seen_by_landmarks(self, theta: Array) -> Iterator[tuple[Array, Array]] | None:
        return self.stack.seen_by_landmarks(theta) if isinstance(self.stack, FactoredStack) else None

    def adjoint(self, W: Array) -> Array:
        return self.stack.weigh(W)

    def pullback(self, M: Array) -> Array:
        return self.stack.pullback(M)

    def derivative(self, w: Array, rows: Index) -> Array:
        return self.stack.apply(w, rows)

    @cached_property
    def _inexact(self) -> Array:
        """Units in the last place that the scales of the matrices are right to, shape (l,)."""
        mass = {"trace": 1.0, "mean": float(self.m), "variance": float(self.m)}.get(self.family.normalize, np.inf)
        stored = getattr(getattr(self.stack, "values", None), "dtype", np.float64)
        return self.squares.sum(axis=1) / mass * float(np.finfo(stored).eps / np.finfo(np.float64).eps)

    def sizes(self, theta: Array, K: Any, W: Array) -> Array:
        return sizes_by_diagonal(theta @ self.squares, W)

    def inexact(self, theta: Array) -> float:
        return float(self._inexact.max(where=theta > 0.0, initial=0.0))

    def support_above(self, D: Array, sigma: float, W: Array, sizes: Array, unit: float) -> float:
        errors = np.square(np.abs(W) @ np.sqrt(self.squares).T).sum(axis=0)
        return float((D + unit * (errors + self._inexact * np.abs(D))).max())

    def project(self, theta: Array) -> Array:
        return project_simplex(theta)

    def cone(self) -> Orthant:
        return Orthant(self.stack.l)

    def support(self, D: Array) -> tuple[float, Array]:
        best = int(np.argmax(D))
        return float(D[best]), np.eye(1, D.size, best)[0]

    def kernel(self, theta: Array) -> Kernel:
        return combination(self.kernels, theta * self.scales)

    def cross(self, theta: Array, Z: Any) -> Array:
        return Combination(self.kernels, self.scales, self.X).cross(theta, Z)

    def restrict(self, index: Index) -> Combination:
        return Combination(self.kernels, self.scales, np.ascontiguousarray(self.X[index]))

    def statement(self) -> FamilyStatement:
        import cvxpy as cp

        mu = cp.Variable(self.stack.l, nonneg=True, name="mu")
        matrices = [self.stack.matrix(k) for k in range(self.stack.l)]
        gram = sum((mu[k] * matrix for k, matrix in enumerate(matrices)), start=np.zeros((self.m, self.m)))
        return FamilyStatement(mu, [cp.sum(mu) == 1.0], gram, [_factor(matrix) for matrix in matrices])


def _factor(K: Array) -> Array:
    """L with ``K = L L'``, without the directions that are rounding."""
    values, vectors = eigh(K)
    keep = values > len(K) * np.finfo(np.float64).eps * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])
