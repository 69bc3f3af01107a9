"""Kernels with points of unit length, and kernels whose points have mean 0, in feature space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_points


class Normalized(Kernel):
    """k(x, y) = kernel(x, y) / sqrt(kernel(x, x) kernel(y, y)), the cosine in feature space.

    0 where a point has length 0. The diagonal is 1 elsewhere.

    Parameters
    ----------
    kernel : Kernel
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _inverse_lengths(self, X: Array) -> Array:
        squares = self.kernel._diag(X)
        return np.divide(1.0, np.sqrt(np.maximum(squares, 0.0)), out=np.zeros_like(squares), where=squares > 0.0)

    def feature_map(self) -> Callable[[Array], Array] | None:
        inner = self.kernel.feature_map()
        return None if inner is None else lambda X: inner(X) * self._inverse_lengths(X)[:, None]

    def _gram(self, X: Array, Y: Array) -> Array:
        K = self.kernel._gram(X, Y)
        left = self._inverse_lengths(X)
        K *= left[:, None]
        K *= (left if Y is X else self._inverse_lengths(Y))[None, :]
        return K

    def _diag(self, X: Array) -> Array:
        return (self._inverse_lengths(X) > 0.0).astype(np.float64)

    def _sizes(self, X: Array) -> Array:
        sizes, squares = self.kernel._sizes(X), self.kernel._diag(X)
        # A length is right to units of size / square; a value, to the larger one of its two rows.
        rows = sizes > 0.0
        doubt = np.zeros(len(X))
        doubt[rows] = sizes[rows] / np.maximum(squares[rows], np.finfo(np.float64).eps * sizes[rows])
        return np.square(doubt) / doubt.min(where=rows, initial=np.inf)


class Centered(Kernel):
    """k(x, y) = <phi(x) - mean phi, phi(y) - mean phi>, the mean taken over given points.

    Parameters
    ----------
    kernel : Kernel
    points : array-like of shape (m, n_features)
        The points whose images get mean 0, usually the training points.

    Notes
    -----
    Tessellated kernels are centered without their constants and without what is a function of one point alone, which
    can be larger than the rest by many orders of magnitude.
    """

    # The mean of all entries of what is centered, where it is known; else every evaluation computes it, O(m^2).
    grand: float | None = None

    def __init__(self, kernel: Kernel, points: Any) -> None:
        self.kernel, self.points = kernel, points

    def set_params(self, **params: Any) -> Centered:
        self.grand = None
        return super().set_params(**params)

    def _center(self, n: int) -> tuple[Array, float]:
        points = check_points(self.points, name="points", n_features=n)
        if self.grand is not None:
            return points, self.grand
        return points, float(self.kernel._varying(points, points).mean())

    def _gram(self, X: Array, Y: Array) -> Array:
        points, grand = self._center(X.shape[1])
        left = self.kernel._varying(X, points).mean(axis=1)
        right = left if Y is X else self.kernel._varying(Y, points).mean(axis=1)
        K = self.kernel._varying(X, Y)
        K -= left[:, None]
        K -= right[None, :]
        K += grand
        return K

    def _diag(self, X: Array) -> Array:
        points, grand = self._center(X.shape[1])
        return self.kernel._varying_diag(X) - 2.0 * self.kernel._varying(X, points).mean(axis=1) + grand

    def _sizes(self, X: Array) -> Array:
        # Errors of means are common to rows and columns: they add up.
        roots = self._roots(check_points(self.points, name="points"))
        own = roots if X is self.points else self._roots(X)
        return np.square(own + roots.mean())

    def _roots(self, X: Array) -> Array:
        return np.sqrt(np.maximum(self.kernel._varying_sizes(X), 0.0))


def with_mean(kernel: Kernel) -> Kernel:
    """Compute the grand mean of a centered kernel once, where that is not known."""
    if isinstance(kernel, Centered) and kernel.grand is None:
        known = Centered(kernel.kernel, kernel.points)
        known.grand = kernel._center(np.shape(kernel.points)[1])[1]
        return known
    return kernel
