"""Any kernel with one width for all features, or one weight for each (automatic relevance determination, ARD)."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.base import CurvedFamily, CurvedGram, CurvedGramSet, whole
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.rescaled import Rescaled

# Features times exp of more than this overflow when they are squared and added up.
LARGEST_LOG = 300.0


class Widths(CurvedFamily):
    """``{k(s * x, s * y) : s > 0}`` for a given kernel k; z = log s.

    Parameters
    ----------
    kernel : Kernel, optional
        Differentiable; ``Gaussian(0.5)``, ``exp(-|s * (x - y)|^2 / 2)``, when not given.
    per_feature : bool
        One weight for each feature (ARD), or one for all.
    """

    def __init__(self, kernel: Kernel | None = None, per_feature: bool = True) -> None:
        self.kernel = Gaussian(0.5) if kernel is None else kernel
        if not isinstance(self.kernel, Kernel):
            raise InvalidInputError(f"kernel must be a Kernel such as Gaussian(0.5), got {kernel!r}.")
        self.per_feature = bool(per_feature)

    def __repr__(self) -> str:
        return f"Widths({self.kernel!r}, per_feature={self.per_feature})"

    def on(self, X: Array) -> WidthsGramSet:
        self.kernel.pullback(X[:1], X[:1], np.zeros((1, 1)))  # refuses a kernel without a derivative
        return WidthsGramSet(self, X)


class WidthsGramSet(CurvedGramSet):
    """Gram matrices of one kernel on weighed points."""

    def __init__(self, family: Widths, X: Array) -> None:
        super().__init__(family, X)
        self.n_unknowns = X.shape[1] if family.per_feature else 1

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        """Weights with which two rows are about sqrt(2) apart; for `k` > 0 each times ``exp N(0, 1/4)``."""
        deviation = self.X.std(axis=0)
        typical = max(float(np.sqrt(np.mean(deviation**2))), 1e-12)
        deviation = np.where(deviation > 0.05 * typical, deviation, typical) if self.family.per_feature else typical
        first = np.full(self.n_unknowns, -0.5 * np.log(self.X.shape[1])) - np.log(deviation)
        return first if k == 0 else first + 0.5 * rng.standard_normal(self.n_unknowns)

    def at(self, z: Array, dtype: Any = np.float64) -> WidthsAt | None:
        return WidthsAt(self, z, dtype) if np.isfinite(z).all() and z.max() <= LARGEST_LOG else None

    def kernel(self, z: Array) -> Kernel:
        n = self.X.shape[1]
        return Rescaled(self.family.kernel, np.zeros(n), np.broadcast_to(np.exp(-z), n).copy())


class WidthsAt(CurvedGram):
    """The kernel with one choice of weights: only the points move."""

    def __init__(self, gram_set: WidthsGramSet, z: Array, dtype: Any) -> None:
        self.family, self.points, self.dtype = gram_set.family, gram_set.X * np.exp(z), dtype
        self.K, self.slope = self.family.kernel.linearized(self.points)

    def gram(self, *, lower: bool = False) -> Array:
        return self.K.astype(self.dtype)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        per_feature = np.einsum("ij,ij->j", self.slope(whole(M, lower)), self.points)
        return per_feature if self.family.per_feature else per_feature.sum(keepdims=True)
