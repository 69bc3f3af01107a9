"""The contract of a family: a convex set of kernels, and what it is on given points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cones import Cone
from convexkernels.factored import FactoredGram
from convexkernels.kernels.base import Kernel
from convexkernels.linalg import eigh

# Rows of a matrix whose absolute values are formed at once.
ROWS = 512
# Share of a scale below which what centering leaves of it is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class FamilyStatement:
    """A family in CVXPY: its variable, its constraints and its Gram matrix as an expression.

    Attributes
    ----------
    theta : cvxpy.Variable
    constraints : list of cvxpy constraints
        ``theta in Theta``.
    gram : cvxpy.Expression of shape (m, m)
        Affine in `theta`.
    factors : list of ndarray of shape (m, rank_k), optional
        L_k with ``K(theta) = sum_k theta_k L_k L_k'`` where ``theta >= 0`` alone makes every Gram matrix PSD (a simplex
        of kernels): the problem is then stated with second-order cones instead of a matrix inequality.
    """

    theta: Any
    constraints: list[Any]
    gram: Any
    factors: list[Array] | None = None


class Family(ABC):
    """A convex set of kernels, ``{k_theta : theta in Theta}`` with k linear in theta.

    Attributes
    ----------
    of_rows : bool
        Whether its kernels compare row numbers of one table, which are the points then, and know nothing of other ones.
    """

    of_rows: bool = False

    @abstractmethod
    def on(
        self, X: Any, *, modulo_constants: bool = False, memory_limit: float | None = None, dtype: Any = np.float64
    ) -> GramSet:
        """Restrict the family to the points of a table.

        Parameters
        ----------
        X : array-like of shape (m, n)
            The points; a family of precomputed matrices takes None.
        modulo_constants : bool
            The losses at hand fit an intercept, so that terms u(x) + v(y) of a kernel may be left
            out of the Gram matrices for the sake of accuracy.
        memory_limit : float, optional
            Bytes the matrices may take, checked before allocation; the free memory when None.
        dtype : float64 or float32
            Type of the Gram matrices.

        Raises
        ------
        InvalidInputError, MemoryLimitError
        """

    def of_part(self) -> Family:
        """The family for some of the rows it is meant for, where members that say nothing about them are borne."""
        return self


class Crossing(Protocol):
    """Anything that makes matrices between new points and points it holds."""

    def cross(self, theta: Array, Z: Any) -> Array:
        """Matrix ``k_theta(z_i, x_j)``; see :meth:`GramSet.cross`."""


class GramSet(ABC):
    """The Gram matrices ``{K(theta) : theta in Theta}`` of a family on m points.

    Attributes
    ----------
    m : int
        Number of points.
    has_projection, has_support : bool
        Whether `project` and `support` cost little next to a Gram matrix. A set without them is solved
        as a conic program.
    is_simplex : bool
        Whether Theta is ``{theta >= 0, sum theta = 1}``.
    """

    m: int
    is_simplex: bool = False
    has_projection: bool = True
    has_support: bool = True

    @abstractmethod
    def initial(self) -> Array:
        """A central point of Theta to start from."""

    @abstractmethod
    def gram(self, theta: Array, out: Array | None = None) -> Array:
        """K(theta), shape (m, m), linear in `theta` (which need not lie in Theta); written to `out` if given."""

    def matrix(self, theta: Array, out: Array | None = None) -> Any:
        """K(theta) for a theta in Theta as it is learned with: `gram`, or by its factors where it is never formed."""
        return self.gram(theta, out)

    def part(self, theta: Array, rows: Index) -> Array:
        """K(theta) of some of the points."""
        K = self.gram(theta)
        is_whole = np.array_equal(rows, np.arange(self.m))
        return np.asarray(K if is_whole else K[np.ix_(rows, rows)], dtype=np.float64)

    @property
    def is_factored(self) -> bool:
        """Whether `matrix` is a :class:`FactoredGram`."""
        return False

    def seen_by_landmarks(self, theta: Array) -> Iterator[tuple[Array, Array]] | None:
        """Some rows at a time: squared distances of their images from what landmarks see of them, and features of that.

        Shapes (n_rows,) and (n_rows, rank), at a theta in Theta. None where there are no landmarks.
        """
        return None

    def expansion(self, theta: Array, W: Array) -> tuple[Crossing, Array, Index]:
        """What evaluates the functions with coefficients `W`, their coefficients there, and the rows they stand on."""
        support = np.flatnonzero(W.any(axis=0))
        return self.restrict(support), W[:, support], support

    @abstractmethod
    def adjoint(self, W: Array) -> Array:
        """D with ``<D, theta> = sum_k w_k' K(theta) w_k`` for the rows w_k of `W`, in the shape of theta."""

    def pullback(self, M: Array) -> Array:
        """D with ``<D, theta> = <M, K(theta)>`` for a symmetric matrix M, in the shape of theta.

        `adjoint` for a matrix of any rank; by it, from the eigenvectors of M, unless a set knows better.
        """
        values, vectors = eigh(M)
        rows = vectors.T * np.sqrt(np.abs(values))[:, None]
        return self.adjoint(rows[values > 0.0]) - self.adjoint(rows[values < 0.0])

    @abstractmethod
    def project(self, theta: Array) -> Array:
        """Nearest point of Theta in the Euclidean norm."""

    @abstractmethod
    def support(self, D: Array) -> tuple[float, Array]:
        """``max of <D, theta> over Theta``, not below the exact value, and a theta that attains it."""

    def largest_scale(self, intercept: bool) -> float:
        """The largest mean diagonal of ``K(theta) over Theta``, of centered matrices where an intercept is fitted.

        Then it is the mean squared distance of the images of the points from their mean: what is constant costs
        nothing. A family divided by it takes C = 1 for a soft margin. It is 0 where all kernels are constant on the
        points, up to rounding.
        """
        M = np.eye(self.m) / self.m
        whole = self.support(self.pullback(M))[0]
        return self._left_of(whole, self.support(self.pullback(M - 1.0 / self.m**2))[0]) if intercept else whole

    @staticmethod
    def _left_of(whole: float, centered: float) -> float:
        """What centering has left of a scale, or 0 where that is rounding of it."""
        return centered if centered > ROUNDING * whole else 0.0

    def sizes(self, theta: Array, K: Any, W: Array) -> Array:
        """``A |w|`` for the rows w of `W`, shape (k, m), where entries of ``K = matrix(theta)`` are made of terms of A.

        That is what rounding of ``K w`` is some units in the last place of, however errors of entries go together.
        """
        return sizes_by_diagonal(K.diagonal(), W) if isinstance(K, FactoredGram) else absolute_products(K, W)

    def inexact(self, theta: Array) -> float:
        """How many units in the last place of itself K(theta) is off by as a whole, by a factor of it."""
        return 0.0

    def support_above(self, D: Array, sigma: float, W: Array, sizes: Array, unit: float) -> float:
        """Support function of the exact adjoint of `W`, or more, where `D` is what rounding has made of it.

        `sigma` is the support function at D, `sizes`, shape (k, m), are those of `W` where it is nearly attained.
        """
        return sigma + unit * float(np.vdot(np.abs(W), sizes))

    @abstractmethod
    def kernel(self, theta: Array) -> Kernel:
        """The kernel of `theta`, usable on any points."""

    @abstractmethod
    def cross(self, theta: Array, Z: Any) -> Array:
        """Matrix ``k_theta(z_i, x_j)`` between new points and the m points, consistent with `gram`.

        Shape (len(Z), m). Where `gram` leaves out terms u(x) + v(y), so does this.
        """

    @abstractmethod
    def statement(self) -> FamilyStatement:
        """The set in CVXPY."""

    def derivative(self, w: Array, rows: Index) -> Array | None:
        """``out`` with ``<out[r], dtheta> = (K(dtheta) w)_rows[r]``, shape (n_rows, *theta.shape), or None: too costly.

        Like `gram` it may leave out what is common to all rows.
        """
        return None

    def cone(self) -> Cone | None:
        """The cone of which Theta is the part of fixed sum or trace (what else it has only makes J larger), or None.

        A new object at every call: it may keep notes for the method that uses it.
        """
        return None

    def envelope(self) -> Array | None:
        """A theta, perhaps outside Theta, with ``support(A*(w w')) = w' K(theta) w`` for every single w; or None.

        Where it exists, the best kernel of the set follows from one inner problem at that theta.
        """
        return None

    def envelope_factor(self) -> Array | None:
        """V with ``K(E) = V V'`` where the envelope is ``E = tau I`` and ``K(theta) = V theta V' / tau``.

        Shape (m, q) for a q x q parameter. It keeps its small columns where K(E) loses them; None where there is no
        such factor.
        """
        return None

    def restrict(self, index: Index) -> Crossing:
        """What `cross` needs when only the points at `index` matter, as a smaller object where there is one."""
        return Columns(self, index)

    def in_float64(self) -> GramSet:
        """The same set, with entries in float64 where memory has sufficed for float32 only and they can be had."""
        return self

    def release(self) -> None:  # noqa: B027 - nothing to let go of is a fine answer
        """Let go of large matrices that can be made again; the next use makes them."""

    def with_constants(self, theta: Array, w: Array) -> float:
        """What to add to the intercept when w has been found with `gram` and the full kernel is used.

        0 unless terms were left out: with entries of w summing to 0, ``sum_i w_i k(x_i, x)`` changes by a constant
        only, and this returns the constant to add so that values agree.
        """
        return 0.0


def sizes_by_diagonal(squares: Array, W: Array) -> Array:
    """``A |w|`` for ``A_ij = sqrt(squares_i squares_j)``, shape (k, m)."""
    roots = np.sqrt(squares)
    return np.outer(np.abs(W) @ roots, roots)


def absolute_products(K: Array, W: Array) -> Array:
    """``|K| |w|`` for the rows w of `W` and a symmetric K, shape (k, m), some rows of K at a time."""
    W = np.abs(W)
    return np.concatenate([W @ np.abs(K[start : start + ROWS]).T for start in range(0, len(K), ROWS)], axis=1)


@dataclass(frozen=True, eq=False)
class Columns:
    """Some of the points of a `GramSet`, for evaluation only."""

    gram_set: GramSet
    index: Index

    def cross(self, theta: Array, Z: Any) -> Array:
        """Columns of ``gram_set.cross(theta, Z)``."""
        return self.gram_set.cross(theta, Z)[:, self.index]
