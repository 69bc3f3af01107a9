"""The contract of a curved family: kernels that depend smoothly, not linearly, on unknowns z."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel


class CurvedFamily(ABC):
    """A set of kernels ``{k_z}``, learning in which is not convex; on a `device` of PyTorch, None for numpy."""

    device: str | None = None

    @abstractmethod
    def on(self, X: Array) -> CurvedGramSet:
        """Restrict the family to the rows of a validated table, shape (m, n)."""


class CurvedGramSet(ABC):
    """The Gram matrices ``K(z)`` of a curved family on m points, for z of `n_unknowns` numbers.

    It `draws_rows` where z means the same kernel on other rows, so that a search may draw rows anew for every step.
    """

    n_unknowns: int
    draws_rows: bool = True

    def __init__(self, family: Any, X: Array) -> None:
        self.family, self.X = family, X

    def restrict(self, rows: Index) -> CurvedGramSet:
        """The same family on some of the rows."""
        return type(self)(self.family, self.X[rows])

    def with_family(self, family: CurvedFamily) -> CurvedGramSet:
        """The same points for a family that differs in what its penalty weighs; matrices may be shared."""
        raise InvalidInputError(f"{family!r} has no penalty to weigh differently.")

    @abstractmethod
    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        """Initial z number `k`; number 0 is the plainest one, the others are drawn."""

    def narrower(self, z: Array) -> list[Array]:
        """Points of kernels like that of `z`, but narrower, with which a search may begin as well."""
        return []

    @abstractmethod
    def at(self, z: Array, dtype: Any = np.float64) -> CurvedGram | None:
        """What the family is at a point; None outside of where it can be evaluated."""

    @abstractmethod
    def kernel(self, z: Array) -> Kernel:
        """The kernel of a point, usable on any table."""

    def chart(self, z: Array) -> Chart:
        """Coordinates for a search that begins at `z`: z itself unless a family has better ones."""
        return Chart(self, z)

    def extend(self, z: Array, rows: Index) -> Array:
        """The z here of the kernel that is `z` for the family on some rows of this table."""
        return z


class CurvedGram(ABC):
    """The Gram matrix at one point, and the way back from a derivative in it.

    The `penalty` is what the family itself adds to an objective there, for example norms of inner layers.
    """

    penalty: float = 0.0

    @abstractmethod
    def gram(self, *, lower: bool = False) -> Array:
        """K, shape (m, m), a new array; with `lower` its upper triangle may be anything."""

    @abstractmethod
    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        """Derivative of ``sum_ab M_ab K_ab + penalty`` in the coordinates of the search, M being held fixed.

        M is symmetric; with `lower` its upper triangle is not read.
        """


def whole(M: Array, lower: bool) -> Array:
    """All of a symmetric matrix, in float64, of which with `lower` only the lower triangle is given."""
    M = np.asarray(M, dtype=np.float64)
    return np.tril(M) + np.tril(M, -1).T if lower else M


class Chart:
    """Coordinates u of a search around a point: here z itself; `renewals` is how often it pays to make a new chart."""

    renewals: int = 0

    def __init__(self, gram_set: CurvedGramSet, z: Array) -> None:
        self.gram_set, self.u = gram_set, z

    def at(self, u: Array, dtype: Any = np.float64) -> CurvedGram | None:
        """The family at coordinates u, with gradients in u."""
        return self.gram_set.at(u, dtype)

    def point(self, u: Array) -> Array:
        """The z of coordinates u."""
        return u
