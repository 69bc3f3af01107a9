"""A kernel replaced by what landmarks see of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel, as_kernel
from convexkernels.linalg import eigh
from convexkernels.validation import check_points

# Directions that are smaller than this share of the largest one are left out.
NEGLIGIBLE = 1e-9
# The same for a matrix in those directions.
NEGLIGIBLE_PART = 1e-12


@dataclass(frozen=True, eq=False)
class LandmarkView:
    """Points by their projections on what landmarks span in the space of a kernel.

    Attributes
    ----------
    basis : ndarray of shape (n_landmarks, rank)
        Combinations of ``k(l, .)``: orthonormal ones, V, then perhaps the mean over the landmarks.
    values : ndarray of shape (n_directions,)
        Eigenvalues of the matrix of the landmarks that belong to V.
    mean : ndarray of shape (n_landmarks,)
        What is subtracted from ``k(x, landmarks)``.
    """

    basis: Array
    values: Array
    mean: Array

    @classmethod
    def linear(cls, K: Array) -> LandmarkView:
        """Projections on the span, given the matrix of the landmarks."""
        return cls(*_directions(K), np.zeros(len(K)))

    @classmethod
    def affine(cls, K: Array, with_mean: bool = True) -> LandmarkView:
        """Combinations of coefficients that sum to one; without the mean, what constants leave out of them."""
        mean = K.mean(axis=0)
        lost = len(K) * np.finfo(np.float64).eps * np.abs(K).max(initial=0.0)
        basis, values = _directions(K - mean - mean[:, None] + mean.mean(), lost)
        return cls(np.hstack([basis, np.full((len(K), int(with_mean)), 1.0 / len(K))]), values, mean)

    def coordinates(self, K: Array) -> Array:
        """Coefficients of points in the basis, given ``k(points, landmarks)``; shape (n_points, rank)."""
        r = len(self.values)
        found = np.ones((len(K), self.basis.shape[1]))
        np.divide((K - self.mean) @ self.basis[:, :r], self.values, out=found[:, :r])
        return found

    def seen(self, K: Array) -> Array:
        """The matrix of the basis, given that of the landmarks, of any kernel."""
        return self.basis.T @ K @ self.basis

    def root(self, K: Array) -> Array:
        """R with ``R R' = seen(K)``, up to what is negligible."""
        values, vectors = eigh(self.seen(K))
        keep = values > NEGLIGIBLE_PART * values.max(initial=0.0)
        return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))


def _directions(K: Array, lost: float = 0.0) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues that are no rounding, nor below what centering has lost to it."""
    values, vectors = eigh(K)
    keep = values > max(NEGLIGIBLE * values.max(initial=0.0), lost)
    return vectors[:, keep], values[keep]


class Nystrom(Kernel):
    """``k(x, L) K_LL^+ k(L, y)`` for landmarks L: a kernel with as many features as landmarks.

    The best approximation from the span of ``k(l, .)``, never larger than the kernel, and exact where x or y is a
    landmark but for directions below a billionth of the largest [WS01]. With it learning takes memory and time in
    proportion to the rows.

    Parameters
    ----------
    kernel : Kernel
    landmarks : array-like of shape (n_landmarks, n_features)
    reference : Kernel, optional
        Instead ``u(x)' K_LL u(y)``, linear in the kernel, for the coefficients u, of sum one, of the best combinations
        of landmarks in the space of this one.
    """

    def __init__(self, kernel: Kernel, landmarks: Any, reference: Kernel | None = None) -> None:
        self.kernel, self.landmarks, self.reference = kernel, landmarks, reference

    def feature_map(self) -> Callable[[Array], Array]:
        landmarks, kernel = check_points(self.landmarks, name="landmarks"), as_kernel(self.kernel)
        if self.reference is None:
            reference, view = kernel, LandmarkView.linear(kernel(landmarks))
            root = np.sqrt(view.values)
        else:
            reference = as_kernel(self.reference)
            view = LandmarkView.affine(reference(landmarks))
            root = view.root(kernel(landmarks))

        def features(X: Array) -> Array:
            if landmarks.shape[1] != X.shape[1]:
                raise InvalidInputError(f"X has {X.shape[1]} features, but the landmarks have {landmarks.shape[1]}.")
            found = view.coordinates(reference._gram(X, landmarks))
            return found * root if self.reference is None else found @ root

        return features

    def _gram(self, X: Array, Y: Array) -> Array:
        features = self.feature_map()
        left = features(X)
        return left @ (left if Y is X else features(Y)).T

    def _diag(self, X: Array) -> Array:
        return np.square(self.feature_map()(X)).sum(axis=1)
