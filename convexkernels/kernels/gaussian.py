"""The Gaussian kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import radial_pullback, radial_sizes, squared_distances
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.validation import check_number, check_points

# exp(-40) is below the rounding of 1, the largest value.
NEGLIGIBLE = 40.0


class Gaussian(Kernel):
    """k(x, y) = exp(-gamma |x - y|^2) [ST16 (1)].

    Parameters
    ----------
    gamma : float, > 0
        Inverse squared length, in units of 1 / feature^2.
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _rate(self) -> float:
        return check_number("gamma", self.gamma, low=0.0, open_low=True)

    def _gram(self, X: Array, Y: Array) -> Array:
        rate = self._rate()
        K = squared_distances(X, Y, rate, NEGLIGIBLE / rate)
        with np.errstate(over="ignore"):  # what overflows is infinitely far away
            K *= -rate
        return np.exp(K, out=K)

    def _diag(self, X: Array) -> Array:
        self._rate()
        return np.ones(X.shape[0])

    def _sizes(self, X: Array) -> Array:
        return radial_sizes(X, self._rate())

    def blocks(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Callable[[slice, slice], Any]:
        if device is None:
            return super().blocks(X, dtype)
        X = check_points(X)
        tree = KernelTree.build(range(X.shape[1]))  # of a single leaf
        return TreeEvaluation(tree, np.full(X.shape[1], self._rate()), X, dtype=dtype, device=device).block

    def squared_distances(self, X: Array, Y: Array) -> Array:
        return self._rate() * squared_distances(X, Y)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return radial_pullback(X, Y, -self._rate() * M * self._gram(X, Y))

    def _linearized(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        K, rate = self._gram(X, X), self._rate()
        return K, lambda M: radial_pullback(X, X, (-2.0 * rate) * M * K)
