"""Any kernel with one width for all features, or one weight for each (automatic relevance determination, ARD)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.base import CurvedFamily, CurvedGram, CurvedGramSet, whole
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.hierarchical.kernel import check_features
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
    tied : sequence of lists of int
        Features that share one weight all the same, such as the indicators of one column of categories.

    Raises
    ------
    InvalidInputError
        Where `tied` holds no groups, or on points that have no such feature, or one in two groups.
    """

    def __init__(
        self, kernel: Kernel | None = None, per_feature: bool = True, tied: Sequence[Sequence[int] | Index] = ()
    ) -> None:
        self.kernel = Gaussian(0.5) if kernel is None else kernel
        if not isinstance(self.kernel, Kernel):
            raise InvalidInputError(f"kernel must be a Kernel such as Gaussian(0.5), got {kernel!r}.")
        self.per_feature, self.tied = bool(per_feature), as_groups(tied)

    def __repr__(self) -> str:
        tied = f", tied={self.tied}" if self.tied else ""
        return f"Widths({self.kernel!r}, per_feature={self.per_feature}{tied})"

    def on(self, X: Array) -> WidthsGramSet:
        self.kernel.pullback(X[:1], X[:1], np.zeros((1, 1)))  # refuses a kernel without a derivative
        check_groups(self.tied, X.shape[1])
        return WidthsGramSet(self, X)


class WidthsGramSet(CurvedGramSet):
    """Gram matrices of one kernel on weighed points."""

    def __init__(self, family: Widths, X: Array) -> None:
        super().__init__(family, X)
        # The weight that each feature has.
        self.weight_of = weights_of(X.shape[1], family.tied if family.per_feature else (range(X.shape[1]),))
        self.n_unknowns = int(self.weight_of.max(initial=0)) + 1

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        """Weights with which two rows are about sqrt(2) apart; for `k` > 0 each times ``exp N(0, 1/4)``."""
        deviation = np.sqrt(self._over(self.X.var(axis=0)))  # of what shares a weight: sixty categories are one feature
        typical = max(float(np.sqrt(np.mean(deviation**2))), 1e-12)
        first = -0.5 * np.log(self.n_unknowns) - np.log(np.where(deviation > 0.05 * typical, deviation, typical))
        return first if k == 0 else first + 0.5 * rng.standard_normal(self.n_unknowns)

    def at(self, z: Array, dtype: Any = np.float64) -> WidthsAt | None:
        return WidthsAt(self, z, dtype) if np.isfinite(z).all() and z.max() <= LARGEST_LOG else None

    def _over(self, values: Array) -> Array:
        """Sums of values of features over those that share a weight."""
        return np.asarray(np.bincount(self.weight_of, values, minlength=self.n_unknowns), dtype=np.float64)

    def kernel(self, z: Array) -> Kernel:
        return Rescaled(self.family.kernel, np.zeros(self.X.shape[1]), np.exp(-z)[self.weight_of])


class WidthsAt(CurvedGram):
    """The kernel with one choice of weights: only the points move."""

    def __init__(self, gram_set: WidthsGramSet, z: Array, dtype: Any) -> None:
        self.family, self.dtype = gram_set.family, dtype
        self.points, self.over = gram_set.X * np.exp(z)[gram_set.weight_of], gram_set._over
        self.K, self.slope = self.family.kernel.linearized(self.points)

    def gram(self, *, lower: bool = False) -> Array:
        return self.K.astype(self.dtype)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        return self.over(np.einsum("ij,ij->j", self.slope(whole(M, lower)), self.points))


def as_groups(tied: Sequence[Sequence[int] | Index]) -> tuple[tuple[int, ...], ...]:
    """Groups of features that share weights, as tuples; what is none is refused."""
    try:
        return tuple(tuple(np.asarray(group).tolist()) for group in tied)
    except TypeError as error:
        raise InvalidInputError(f"tied must hold groups of features such as [[0, 1], [3, 4]], got {tied!r}.") from error


def check_groups(tied: Sequence[Sequence[int]], n_features: int) -> None:
    """Refuse groups with a feature that points do not have, or with one that two of them have."""
    if grouped := [j for group in tied for j in group]:
        check_features(grouped, n_features, name="tied")


def weights_of(n: int, tied: Sequence[Sequence[int] | Index]) -> Index:
    """Which of its weights each of n features has, where those of a group share one; in the order of the features."""
    first = np.arange(n)
    for group in tied:
        first[list(group)] = min(group, default=0)
    return np.unique(first, return_inverse=True)[1].astype(np.intp)
