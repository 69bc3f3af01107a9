"""The tessellated kernels of finitely many points: memory and time in proportion to the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases.tessellation.point_sums import sums_of_points, values_of_points
from convexkernels.bases.tessellation.points import PointTessellation
from convexkernels.factored import FactoredGram
from convexkernels.families.base import Crossing, Family
from convexkernels.families.spectraplex import SpectraplexGramSet
from convexkernels.kernels.tessellated import TessellatedKernel
from convexkernels.threads import in_parts
from convexkernels.validation import check_points

# Rows that are worked on at once.
ROWS = 8192
# Eigenvalues of P that are smaller than this share of its trace add nothing to the kernel.
NEGLIGIBLE = 1e-12


class PointGramSet(SpectraplexGramSet):
    """Gram matrices of the tessellated kernels of some points on m rows, known by their features.

    ``f(x) = sum_z w_z' N(z, x)``; over P the sum of the ``w_z' P^-1 w_z`` is least where it is the squared trace norm
    of the matrix of all w_z, over the bound on the trace of P.
    """

    def __init__(self, family: Family, tessellation: PointTessellation, trace: float, X: Array) -> None:
        super().__init__(2 * tessellation.basis.q, trace)
        self.family, self.tessellation, self.X, self.m = family, tessellation, X, len(X)
        self.release()

    is_factored = True

    def release(self) -> None:
        self._reached: Array | None = None
        self._monomials: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reached": None, "_monomials": None}

    @property
    def parts(self) -> tuple[Array, Array]:
        """Which points are above which rows, shape (m, r), and the monomials of the rows, shape (m, q)."""
        if self._reached is None or self._monomials is None:
            made = [self.tessellation.reached(self.X[start : start + ROWS]) for start in range(0, self.m, ROWS)]
            self._reached, self._monomials = np.concatenate(made), self.tessellation.monomials(self.X)
        return self._reached, self._monomials

    def matrix(self, theta: Array, out: Array | None = None) -> PointGram:
        return PointGram(*self.parts, _root(theta))

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        K = self.tessellation.gram(theta, self.X, self.X)
        if out is None:
            return K
        out[...] = K
        return out

    def adjoint(self, W: Array) -> Array:
        A = np.vstack([_pulled(*self.parts, w) for w in W])
        return A.T @ A

    def pullback(self, M: Array) -> Array:
        reached, Z = self.parts
        total = np.zeros((self.size, self.size))
        for column in reached.T:
            N = np.hstack([Z * column[:, None], Z * (1 - column)[:, None]])
            total += N.T @ M @ N
        return total / reached.shape[1]

    def largest_scale(self, intercept: bool) -> float:
        reached, Z = self.parts
        share, q = reached.mean(axis=1), Z.shape[1]
        D = np.zeros((self.size, self.size))
        D[:q, :q], D[q:, q:] = (Z.T * share) @ Z / self.m, (Z.T * (1.0 - share)) @ Z / self.m
        whole = self.support(D)[0]
        means = _pulled(reached, Z, np.full(self.m, 1.0 / self.m))
        return self._left_of(whole, self.support(D - means.T @ means)[0]) if intercept else whole

    def kernel(self, theta: Array) -> TessellatedKernel:
        t = self.tessellation
        return TessellatedKernel(theta.copy(), t.lower, t.upper, t.basis.degree, 0, points=t.points)

    def cross(self, theta: Array, Z: Any) -> Array:
        return self.tessellation.gram(theta, check_points(Z, n_features=self.X.shape[1]), self.X)

    def restrict(self, index: Index) -> PointGramSet:
        return PointGramSet(self.family, self.tessellation, self.trace, self.X[index])

    def expansion(self, theta: Array, W: Array) -> tuple[Crossing, Array, Index]:
        K = self.matrix(theta)
        coefficients = np.array([K.pulled(w) for w in W])
        return OnPointFeatures(self.tessellation, K.root), coefficients, np.flatnonzero(W.any(axis=0))


class PointGram(FactoredGram):
    """The Gram matrix of ``P = root root'`` by the features ``N(z, x)' root``.

    Parameters
    ----------
    reached : ndarray of shape (m, r)
        Bytes: 1 where the point is above the row.
    Z : ndarray of shape (m, q)
    root : ndarray of shape (2q, k)
    """

    def __init__(self, reached: Array, Z: Array, root: Array) -> None:
        super().__init__(len(Z), reached.shape[1] * root.shape[1])
        self.reached, self.Z, self.root = reached, Z, root
        q = Z.shape[1]
        scaled = root / np.sqrt(reached.shape[1])
        self.above, self.below = Z @ scaled[:q], Z @ scaled[q:]

    def values(self, v: Array) -> Array:
        out = np.empty(self.m)
        V = np.ascontiguousarray(v.reshape(self.reached.shape[1], self.root.shape[1]).T)
        in_parts(values_of_points, self.m, self.reached, self.above, self.below, V, out, least=ROWS)
        return out

    def pulled(self, a: Array) -> Array:
        sums = _sums(self.reached, self.above - self.below, a)
        return np.ascontiguousarray((sums + (a @ self.below)[:, None]).T).ravel()

    def rows(self, index: Index | slice) -> Array:
        reached = self.reached[index].astype(bool)[:, :, None]
        made = np.where(reached, self.above[index][:, None, :], self.below[index][:, None, :])
        return made.reshape(len(made), self.rank)

    def diagonal(self) -> Array:
        share = self.reached.sum(axis=1, dtype=np.int64)
        above, below = np.square(self.above).sum(axis=1), np.square(self.below).sum(axis=1)
        return np.asarray(share * above + (self.reached.shape[1] - share) * below)


class OnPointFeatures:
    """The features of a kernel in the place of a matrix between points."""

    def __init__(self, tessellation: PointTessellation, root: Array) -> None:
        self.tessellation, self.root = tessellation, root

    def cross(self, theta: Array, Z: Any) -> Array:
        """Features of new points."""
        return self.tessellation.features(check_points(Z, n_features=self.tessellation.lower.size), self.root)


def _root(theta: Array) -> Array:
    """R with ``R R' = P``, without what is negligible."""
    values, vectors = np.linalg.eigh(theta)
    keep = values > NEGLIGIBLE * max(float(np.abs(values).sum()), 1e-300)
    return vectors[:, keep] * np.sqrt(values[keep])


def _sums(reached: Array, features: Array, a: Array) -> Array:
    """``sum_i a_i features_i`` over the rows below every point, shape (k, r)."""
    out = np.empty((features.shape[1], reached.shape[1]))
    in_parts(sums_of_points, reached.shape[1], reached, features, a, out, least=32)
    return out


def _pulled(reached: Array, Z: Array, a: Array) -> Array:
    """``sum_i a_i N(z, x_i) / sqrt(r)`` for every point z, shape (r, 2q)."""
    above = _sums(reached, Z, np.ascontiguousarray(a)).T
    return np.hstack([above, a @ Z - above]) / np.sqrt(reached.shape[1])
