"""Weighted sums of many kernels, and kernels on some of the columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.mapped import Mapped
from convexkernels.validation import check_vector


class WeightedSum(Kernel):
    """k = sum_k weights_k * kernels_k with non-negative weights, the form kernel learning returns.

    Parameters
    ----------
    kernels : sequence of Kernel
    weights : array-like of shape (n_kernels,)
        Kernels of weight 0 are not evaluated.
    """

    _lowest = 0.0

    def __init__(self, kernels: Sequence[Kernel], weights: Any) -> None:
        self.kernels, self.weights = kernels, weights

    def _active(self) -> list[tuple[float, Kernel]]:
        weights = check_vector("weights", self.weights, len(self.kernels), per="kernel", low=self._lowest)
        return [(w, k) for w, k in zip(weights, self.kernels, strict=True) if w != 0.0]

    def _gram(self, X: Array, Y: Array) -> Array:
        K = np.zeros((X.shape[0], Y.shape[0]))
        for weight, kernel in self._active():
            K += weight * kernel._gram(X, Y)
        return K

    def _diag(self, X: Array) -> Array:
        return sum((w * k._diag(X) for w, k in self._active()), np.zeros(X.shape[0]))

    def _sizes(self, X: Array) -> Array:
        return sum((abs(w) * k._sizes(X) for w, k in self._active()), np.zeros(X.shape[0]))

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return sum((w * k._pullback(X, Y, M) for w, k in self._active()), np.zeros_like(X))


class OnColumns(Mapped):
    """k(x, y) = kernel(x[columns], y[columns]): a kernel that sees some of the features.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int
        Indices of the features, in [0, n_features).
    """

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel, self.columns = kernel, columns

    def _map(self, X: Array) -> Array:
        columns = np.asarray(self.columns)
        if columns.ndim != 1 or columns.size == 0 or columns.dtype.kind not in "iu":
            raise InvalidInputError(f"columns must be a non-empty list of feature indices, got {self.columns!r}.")
        if columns.min() < 0 or columns.max() >= X.shape[1]:
            raise InvalidInputError(f"columns must lie in [0, {X.shape[1]}), got {self.columns!r}.")
        return np.ascontiguousarray(X[:, columns])

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        gradient = np.zeros_like(X)
        part = self.kernel._pullback(self._map(X), self._map(Y), M)
        for place, column in enumerate(self.columns):  # a column may be named twice
            gradient[:, column] += part[:, place]
        return gradient
