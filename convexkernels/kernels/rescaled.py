"""Kernels on rescaled features."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.mapped import Mapped
from convexkernels.validation import LARGEST_MAGNITUDE, check_vector


def rescale(X: Array, offset: Array, scale: Array) -> Array:
    """``(x - offset) / scale`` column by column, 0 in columns of scale 0.

    Quotients that would overflow stop at the largest magnitude the library accepts. Nothing is multiplied by
    ``1 / scale``, which overflows for columns of very small numbers.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        Z = (X - offset) / scale
    Z[:, scale == 0.0] = 0.0
    return np.clip(Z, -LARGEST_MAGNITUDE, LARGEST_MAGNITUDE, out=Z)


class Rescaled(Mapped):
    """k(x, y) = kernel((x - offset) / scale, (y - offset) / scale), column by column, of x and y moved between limits.

    A kernel that was learned on scaled features, for use on the features as they were.

    Parameters
    ----------
    kernel : Kernel
    offset : array-like of shape (n_features,)
    scale : array-like of shape (n_features,), >= 0
        A column of scale 0 (one that was constant, say) is mapped to 0, whatever it holds.
    limits : pair of array-like of shape (n_features,), optional
        The least and the largest value of every feature: beyond them the kernel is constant.
    """

    def __init__(self, kernel: Kernel, offset: Any, scale: Any, limits: Any = None) -> None:
        self.kernel, self.offset, self.scale, self.limits = kernel, offset, scale, limits

    def _scales(self, X: Array) -> tuple[Array, Array]:
        offset, scale = (check_vector(n, getattr(self, n), X.shape[1], per="feature") for n in ("offset", "scale"))
        if (scale < 0.0).any():
            raise InvalidInputError(f"scale must be >= 0, got {scale.min():g}; swap the sign of that feature instead.")
        return offset, scale

    def _limited(self, X: Array) -> Array:
        if self.limits is None:
            return X
        if len(self.limits) != 2:
            raise InvalidInputError(f"limits must be a pair, the least and the largest values, got {self.limits!r}.")
        low, high = (check_vector("limits", limit, X.shape[1], per="feature") for limit in self.limits)
        if (low > high).any():
            raise InvalidInputError(f"limits must be (lowest, highest), got {low} and {high}; swap them where needed.")
        return np.clip(X, low, high)

    def _map(self, X: Array) -> Array:
        return rescale(self._limited(X), *self._scales(X))

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        gradient = self.kernel._pullback(self._map(X), self._map(Y), M)
        _, scale = self._scales(X)
        moves = (scale > 0.0) & (self._limited(X) == X)
        return np.divide(gradient, scale, out=np.zeros_like(gradient), where=moves)
