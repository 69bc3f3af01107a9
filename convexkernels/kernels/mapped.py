"""Kernels of features that a map makes of the points."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_points


class Mapped(Kernel):
    """k(x, y) = kernel(map(x), map(y)); subclasses have the map, and its derivative where there is one."""

    kernel: Kernel

    @abstractmethod
    def _map(self, X: Array) -> Array:
        """The features of the rows of a validated table, shape (n_samples, n_mapped)."""

    def _gram(self, X: Array, Y: Array) -> Array:
        mapped = self._map(X)
        return self.kernel._gram(mapped, mapped if Y is X else self._map(Y))

    def blocks(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Callable[[slice, slice], Any]:
        return self.kernel.blocks(self._map(check_points(X)), dtype, device)

    def feature_map(self) -> Callable[[Array], Array] | None:
        inner = self.kernel.feature_map()
        return None if inner is None else lambda X: inner(self._map(X))

    def _diag(self, X: Array) -> Array:
        return self.kernel._diag(self._map(X))

    def _sizes(self, X: Array) -> Array:
        return self.kernel._sizes(self._map(X))

    def squared_distances(self, X: Array, Y: Array) -> Array:
        return self.kernel.squared_distances(self._map(X), self._map(Y))

    def distances_from(self, X: Array) -> Callable[[int], Array]:
        return self.kernel.distances_from(self._map(X))
