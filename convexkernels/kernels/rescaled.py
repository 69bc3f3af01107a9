"""Kernels on rescaled features."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.validation import LARGEST_MAGNITUDE, check_points, check_vector


def rescale(X: Array, offset: Array, scale: Array) -> Array:
    """``(x - offset) / scale`` column by column, 0 in columns of scale 0.

    Quotients that would overflow stop at the largest magnitude the library accepts. Nothing is multiplied by
    ``1 / scale``, which overflows for columns of very small numbers.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        Z = (X - offset) / scale
    Z[:, scale == 0.0] = 0.0
    return np.clip(Z, -LARGEST_MAGNITUDE, LARGEST_MAGNITUDE, out=Z)


class Rescaled(Kernel):
    """k(x, y) = kernel((x - offset) / scale, (y - offset) / scale), column by column.

    A kernel that was learned on scaled features, for use on the features as they were.

    Parameters
    ----------
    kernel : Kernel
    offset : array-like of shape (n_features,)
    scale : array-like of shape (n_features,), >= 0
        A column of scale 0 (one that was constant, say) is mapped to 0, whatever it holds.
    """

    def __init__(self, kernel: Kernel, offset: Any, scale: Any) -> None:
        self.kernel, self.offset, self.scale = kernel, offset, scale

    def _scales(self, X: Array) -> tuple[Array, Array]:
        offset, scale = (check_vector(n, getattr(self, n), X.shape[1], per="feature") for n in ("offset", "scale"))
        if (scale < 0.0).any():
            raise InvalidInputError(f"scale must be >= 0, got {scale.min():g}; swap the sign of that feature instead.")
        return offset, scale

    def _map(self, X: Array) -> Array:
        return rescale(X, *self._scales(X))

    def _gram(self, X: Array, Y: Array) -> Array:
        mapped = self._map(X)
        return self.kernel._gram(mapped, mapped if Y is X else self._map(Y))

    def blocks(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Callable[[slice, slice], Array]:
        return self.kernel.blocks(self._map(check_points(X)), dtype, device)

    def _diag(self, X: Array) -> Array:
        return self.kernel._diag(self._map(X))

    def _sizes(self, X: Array) -> Array:
        return self.kernel._sizes(self._map(X))

    def squared_distances(self, X: Array, Y: Array) -> Array:
        return self.kernel.squared_distances(self._map(X), self._map(Y))

    def distances_from(self, X: Array) -> Callable[[int], Array]:
        return self.kernel.distances_from(self._map(X))

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        gradient = self.kernel._pullback(self._map(X), self._map(Y), M)
        _, scale = self._scales(X)
        return np.divide(gradient, scale, out=np.zeros_like(gradient), where=scale > 0.0)
