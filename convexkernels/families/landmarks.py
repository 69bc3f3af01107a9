"""A family as landmarks see it: memory and time in proportion to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cones import Cone
from convexkernels.factored import CombinedFeatures, FactoredGram
from convexkernels.families.base import Crossing, FamilyStatement, GramSet
from convexkernels.families.stacks.factored import CHUNK
from convexkernels.kernels.nystrom import LandmarkView, Nystrom
from convexkernels.validation import check_points


@dataclass(frozen=True, eq=False)
class OnLandmarks:
    """Coordinates of points by landmarks, in the place of a matrix between points."""

    inner: GramSet
    view: LandmarkView

    def cross(self, theta: Array, Z: Any) -> Array:
        """Coordinates of new points, whatever theta is."""
        return self.view.coordinates(self.inner.cross(self.inner.initial(), Z))


class LandmarkGramSet(GramSet):
    """Gram matrices of a family on m points, every kernel as the same landmarks see it.

    ``K(theta) = B G(theta) B'``: the coordinates B of the points are those of the central kernel of the family, of
    whose space those of the others are part, and G is linear in theta as the matrix of the landmarks is. Coefficients
    of landmarks sum to one, so that terms u(x) + v(y) of kernels stay such terms.

    Parameters
    ----------
    inner : GramSet
        The family on the landmarks.
    landmarks : ndarray of shape (n_landmarks, n)
    X : ndarray of shape (m, n)
    modulo_constants : bool
        Whether terms u(x) + v(y) are left out, as in the matrices of `inner`.
    """

    is_factored = True

    def __init__(self, inner: GramSet, landmarks: Array, X: Array, modulo_constants: bool) -> None:
        self.inner, self.modulo_constants = inner, modulo_constants
        self.landmarks, self.X, self.m = landmarks, X, len(X)
        view = LandmarkView.affine(inner.gram(inner.initial()), with_mean=not modulo_constants)
        self.seen = OnLandmarks(inner, view)
        inner.release()
        self.release()

    def release(self) -> None:
        self._B: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_B": None}

    @property
    def B(self) -> Array:
        """Coordinates of the points, shape (m, rank)."""
        if self._B is None:
            self._B = np.empty((self.m, self.seen.view.basis.shape[1]))
            for start in range(0, self.m, CHUNK):
                rows = slice(start, start + CHUNK)
                self._B[rows] = self.seen.cross(self.inner.initial(), self.X[rows])
        return self._B

    def initial(self) -> Array:
        return self.inner.initial()

    def project(self, theta: Array) -> Array:
        return self.inner.project(theta)

    def support(self, D: Array) -> tuple[float, Array]:
        return self.inner.support(D)

    def cone(self) -> Cone | None:
        return self.inner.cone()

    def matrix(self, theta: Array, out: Array | None = None) -> FactoredGram:
        return CombinedFeatures(self.m, [self.B @ self._root(theta)], np.ones(1))

    def _root(self, theta: Array) -> Array:
        return self.seen.view.root(self.inner.gram(theta))

    def seen_by_landmarks(self, theta: Array) -> Iterator[tuple[Array, Array]]:
        G, root, kernel = self.inner.gram(theta), self._root(theta), self.inner.kernel(theta)
        diagonal = kernel._varying_diag if self.modulo_constants else kernel._diag
        # Coefficients sum to one: where the basis has no mean, that is what they lack.
        mean = float(self.modulo_constants) / len(self.landmarks)
        for start in range(0, self.m, CHUNK):
            X = self.X[start : start + CHUNK]
            B = self.seen.cross(theta, X)
            U = B @ self.seen.view.basis.T + mean
            left = diagonal(X) - np.einsum("ij,ij->i", 2.0 * self.inner.cross(theta, X) - U @ G, U)
            yield np.maximum(left, 0.0), B @ root

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        return np.matmul(self.B @ self.seen.view.seen(self.inner.gram(theta)), self.B.T, out=out)

    def adjoint(self, W: Array) -> Array:
        return self.inner.adjoint((W @ self.B) @ self.seen.view.basis.T)

    def pullback(self, M: Array) -> Array:
        V = self.seen.view.basis
        return self.inner.pullback(V @ (self.B.T @ M @ self.B) @ V.T)

    def largest_scale(self, intercept: bool) -> float:
        V, mean = self.seen.view.basis, self.B.mean(axis=0)
        second = self.B.T @ self.B / self.m
        whole, centered = (
            self.support(self.inner.pullback(V @ M @ V.T))[0] for M in (second, second - np.outer(mean, mean))
        )
        return self._left_of(whole, centered) if intercept else whole

    def sizes(self, theta: Array, K: Any, W: Array) -> Array:
        # Where landmarks are close to each other, entries are sums of large terms.
        blocks = [slice(start, start + CHUNK) for start in range(0, self.m, CHUNK)]
        terms = sum(np.abs(W[:, rows]) @ self._spread(rows) for rows in blocks) @ np.abs(self.inner.gram(theta))
        return np.hstack([terms @ self._spread(rows).T for rows in blocks])

    def _spread(self, rows: slice) -> Array:
        """Absolute coefficients of some points on all landmarks."""
        return np.abs(self.B[rows] @ self.seen.view.basis.T)

    def kernel(self, theta: Array) -> Nystrom:
        return Nystrom(self.inner.kernel(theta), self.landmarks, self.inner.kernel(self.initial()))

    def cross(self, theta: Array, Z: Any) -> Array:
        Z = check_points(Z, n_features=self.X.shape[1])
        return self.seen.cross(theta, Z) @ self.seen.view.seen(self.inner.gram(theta)) @ self.B.T

    def expansion(self, theta: Array, W: Array) -> tuple[Crossing, Array, Index]:
        root = self._root(theta)
        return self.seen, (W @ self.B) @ root @ root.T, np.flatnonzero(W.any(axis=0))

    def statement(self) -> FamilyStatement:
        inner, E = self.inner.statement(), self.B @ self.seen.view.basis.T
        return FamilyStatement(inner.theta, inner.constraints, E @ inner.gram @ E.T)

    def with_constants(self, theta: Array, w: Array) -> float:
        if not self.modulo_constants:
            return 0.0
        v = self.seen.view.basis @ (w @ self.B)
        return self.inner.with_constants(theta, v) - float(v @ self.inner.gram(theta).mean(axis=1))
