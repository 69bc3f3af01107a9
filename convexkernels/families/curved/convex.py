"""A convex family seen as a curved one: its parameter as a smooth function of free unknowns."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cones import Orthant, SemidefiniteCone
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.families.curved.base import CurvedFamily, CurvedGram, CurvedGramSet, whole
from convexkernels.kernels.base import Kernel


class Convex(CurvedFamily):
    """A family that is linear in theta, for criteria that are not convex in it: the derivative is its adjoint.

    Weights of a simplex are ``theta = z^2 / |z|^2``; a matrix of bounded trace is ``theta = trace Z Z' / |Z|^2`` with
    as many columns in Z as `rank` (optimal matrices have rank 1 to 3).

    Parameters
    ----------
    family : Family
        With weights or a matrix as parameter: ``Candidates``, ``GeneralizedPolynomial``, ``Tessellated``.
    modulo_constants : bool
        As in :meth:`Family.on`: for losses with an intercept.
    rank : int
    """

    def __init__(self, family: Family, modulo_constants: bool = False, rank: int = 8) -> None:
        self.family, self.modulo_constants, self.rank = family, modulo_constants, rank

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
        self.n_unknowns = int(np.prod(self.shape))

    def theta(self, z: Array) -> Array:
        """The parameter of the family."""
        Z = z.reshape(self.shape)
        product = Z**2 if Z.ndim == 1 else Z @ Z.T
        return self.size * product / float(np.vdot(Z, Z))

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        if len(self.shape) == 1:
            return np.ones(self.shape) if k == 0 else np.abs(rng.standard_normal(self.shape))
        # A random matrix of full column rank is as central as can be without favoring rows.
        return rng.standard_normal(self.shape).ravel()

    def at(self, z: Array, dtype: Any = np.float64) -> ConvexAt | None:
        return ConvexAt(self, z) if np.isfinite(z).all() and z.any() else None

    def kernel(self, z: Array) -> Kernel:
        return self.gram_set.kernel(self.theta(z))


class ConvexAt(CurvedGram):
    """The family at one parameter."""

    def __init__(self, gram_set: ConvexGramSet, z: Array) -> None:
        self.gram_set, self.z = gram_set, z

    def gram(self, *, lower: bool = False) -> Array:
        return self.gram_set.gram_set.gram(self.gram_set.theta(self.z))

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        D = self.gram_set.gram_set.pullback(whole(M, lower))
        Z = self.z.reshape(self.gram_set.shape)
        squared, along = float(np.vdot(Z, Z)), float(np.vdot(D, self.gram_set.theta(self.z)))
        slope = self.gram_set.size * (D * Z if Z.ndim == 1 else D @ Z) - along * Z
        return (2.0 / squared * slope).ravel()
