"""A convex family seen as a curved one: its parameter as a smooth function of free unknowns."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cones import Orthant, SemidefiniteCone
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family, GramSet
from convexkernels.families.box import UnitBox
from convexkernels.families.curved.base import CurvedFamily, CurvedGram, CurvedGramSet, whole
from convexkernels.families.tessellated import Tessellated
from convexkernels.kernels.base import Kernel

# Margins beyond exp of this, or below its reciprocal, are boxes that are all alike, or have no room.
LARGEST_LOG = 5.0


class Convex(CurvedFamily):
    """A family that is linear in theta, for criteria that are not convex in it: the derivative is its adjoint.

    Weights of a simplex are ``theta = z^2 / |z|^2``; a matrix of bounded trace is ``theta = trace Z Z' / |Z|^2`` with
    as many columns in Z as `rank` (optimal matrices have rank 1 to 3). Where the margin of a tessellated family is
    learned, its logarithm is one unknown more.

    Parameters
    ----------
    family : Family
        With weights or a matrix as parameter: ``Candidates``, ``GeneralizedPolynomial``, ``Tessellated``.
    modulo_constants : bool
        As in :meth:`Family.on`: for losses with an intercept.
    rank : int
    learns_margin : bool
        Whether the margin of the box of ``Tessellated(box=UnitBox(margin))`` is an unknown; it starts as it is given.
    """

    def __init__(
        self, family: Family, modulo_constants: bool = False, rank: int = 8, learns_margin: bool = False
    ) -> None:
        self.family, self.modulo_constants, self.rank = family, modulo_constants, rank
        self.learns_margin = bool(learns_margin)
        if learns_margin and not (isinstance(family, Tessellated) and isinstance(family.box, UnitBox)):
            raise InvalidInputError(f"a margin is learned for Tessellated on a UnitBox only, got {family!r}.")

    def __repr__(self) -> str:
        return repr(self.family)

    def on(self, X: Array) -> ConvexGramSet:
        return ConvexGramSet(self, X)


class ConvexGramSet(CurvedGramSet):
    """Gram matrices of a convex family, by free unknowns."""

    draws_rows = False  # normalizations and boxes belong to the rows they were made for

    def __init__(self, family: Convex, X: Array) -> None:
        super().__init__(family, X)
        self.gram_set = gram_set = family.family.on(X, modulo_constants=family.modulo_constants)
        cone, initial = gram_set.cone(), gram_set.initial()
        if isinstance(cone, Orthant) and gram_set.is_simplex:
            self.shape: tuple[int, ...] = initial.shape
        elif isinstance(cone, SemidefiniteCone) and initial.ndim == 2:
            self.shape = (len(initial), min(family.rank, len(initial)))
        else:
            raise InvalidInputError(
                f"{family.family!r} has neither weights nor a matrix as its parameter; learn it with KernelLearning."
            )
        self.size = float(initial.sum() if initial.ndim == 1 else np.trace(initial))
        self.size_of_theta = int(np.prod(self.shape))
        self.n_unknowns = self.size_of_theta + family.learns_margin

    def matrices(self, z: Array) -> GramSet:
        """The Gram matrices of the family, with the margin of `z` where it is learned."""
        family: Any = self.family.family
        if not self.family.learns_margin:
            return self.gram_set
        moved = family.with_margin(float(np.exp(z[-1])))
        return moved.on(self.X, modulo_constants=self.family.modulo_constants)

    def theta(self, z: Array) -> Array:
        """The parameter of the family."""
        Z = z[: self.size_of_theta].reshape(self.shape)
        product = Z**2 if Z.ndim == 1 else Z @ Z.T
        return self.size * product / float(np.vdot(Z, Z))

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        if len(self.shape) == 1:
            return np.ones(self.shape) if k == 0 else np.abs(rng.standard_normal(self.shape))
        # A random matrix of full column rank is as central as can be without favoring rows.
        z = rng.standard_normal(self.shape).ravel()
        return np.append(z, np.log(self.family.family.box.margin)) if self.family.learns_margin else z

    def at(self, z: Array, dtype: Any = np.float64) -> ConvexAt | None:
        if not np.isfinite(z).all() or not z[: self.size_of_theta].any():
            return None
        return ConvexAt(self, z) if not self.family.learns_margin or abs(z[-1]) <= LARGEST_LOG else None

    def kernel(self, z: Array) -> Kernel:
        return self.matrices(z).kernel(self.theta(z))


class ConvexAt(CurvedGram):
    """The family at one parameter."""

    def __init__(self, gram_set: ConvexGramSet, z: Array) -> None:
        self.gram_set, self.z = gram_set, z
        self.matrices: Any = gram_set.matrices(z)
        self.theta = gram_set.theta(z)

    def gram(self, *, lower: bool = False) -> Array:
        return self.matrices.gram(self.theta)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        M = whole(M, lower)
        D = self.matrices.pullback(M)
        Z = self.z[: self.gram_set.size_of_theta].reshape(self.gram_set.shape)
        squared, along = float(np.vdot(Z, Z)), float(np.vdot(D, self.theta))
        slope = (2.0 / squared * (self.gram_set.size * (D * Z if Z.ndim == 1 else D @ Z) - along * Z)).ravel()
        if not self.gram_set.family.learns_margin:
            return slope
        return np.append(slope, np.exp(self.z[-1]) * self.matrices.margin_slope(self.theta, M))
