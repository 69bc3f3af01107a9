"""How the columns of a table become the features of a problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.estimators.outliers import usual_limits
from convexkernels.kernels.algebra import OnColumns
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.rescaled import Rescaled, rescale

# A column is far from 0 where its middle is, by so many times half of its range.
FAR = 1e3


@dataclass(frozen=True, eq=False)
class Scaling:
    """``(x - offset) / scale``, column by column, of the columns that are used: constant ones say nothing.

    Columns of scale 0 become 0; factors, a metric that was learned on those that are used, multiply them afterwards.
    Beyond limits, a least and a largest value of every column, x is the limit.
    """

    offset: Array
    scale: Array
    columns: Index
    factors: Array | None = None
    limits: tuple[Array, Array] | None = None

    @classmethod
    def none(cls, X: Array) -> Scaling:
        """Change nothing, and use every column."""
        n = X.shape[1]
        return cls(np.zeros(n), np.ones(n), np.arange(n))

    @classmethod
    def without_outliers(cls, X: Array, scaling: Callable[[Array], Scaling]) -> Scaling:
        """A scaling made for a table whose outliers are moved towards the other values, as are those of others."""
        limits = usual_limits(X)
        return scaling(X) if limits is None else replace(scaling(np.clip(X, *limits)), limits=limits)

    @classmethod
    def towards_zero(cls, X: Array) -> Scaling:
        """Take the middle of columns that are far from 0 there, where float32 has digits left for how they vary."""
        low, half = X.min(axis=0), 0.5 * np.ptp(X, axis=0)
        middle = low + half
        return replace(cls.none(X), offset=np.where(np.abs(middle) > FAR * half, middle, 0.0))

    @classmethod
    def to_unit_box(cls, X: Array) -> Scaling:
        """Take every column of `X` that is not constant onto [0, 1]."""
        offset = X.min(axis=0)
        return cls._of_varying(offset, X.max(axis=0) - offset)

    @classmethod
    def to_symmetric_box(cls, X: Array) -> Scaling:
        """Take every column of `X` that is not constant onto [-1, 1]; the range of a table will do for the table."""
        low = X.min(axis=0)
        half = 0.5 * (X.max(axis=0) - low)
        return cls._of_varying(low + half, half)

    @classmethod
    def standard(cls, X: Array, categories: Sequence[Sequence[int]] = ()) -> Scaling:
        """Give every column of `X` that is not constant mean 0 and standard deviation 1, one of categories as a whole.

        Rows count once, so that repeating one and giving it weight are the same.
        """
        distinct = distinct_rows(X)[0]
        spread = spread_of(distinct, categories)
        return cls._of_varying(distinct.mean(axis=0), np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, 0.0))

    @classmethod
    def _of_varying(cls, offset: Array, scale: Array) -> Scaling:
        varying = np.flatnonzero(scale > 0.0)
        # With every column constant, one of them (all 0) stands for the table.
        return cls(offset, scale, varying if varying.size else np.array([0]))

    def limited(self, X: Array) -> Scaling:
        """The same between the least and the largest value of every column of `X`: polynomials of a far row are far."""
        return replace(self, limits=(X.min(axis=0), X.max(axis=0)))

    def apply(self, X: Array) -> Array:
        """Map a table, shape (m, n_features) to (m, n_columns)."""
        X = X if self.limits is None else np.clip(X, *self.limits)
        points = rescale(X[:, self.columns], self.offset[self.columns], self.scale[self.columns])
        return points if self.factors is None else points * self.factors

    def pull_back(self, kernel: Kernel) -> Kernel:
        """The kernel on tables before the map, from one on tables after it."""
        scale = self.scale[self.columns] / (1.0 if self.factors is None else self.factors)
        limits = None if self.limits is None else tuple(limit[self.columns] for limit in self.limits)
        inside = Rescaled(kernel, self.offset[self.columns], scale, limits)
        return inside if len(self.columns) == len(self.scale) else OnColumns(inside, self.columns.tolist())


def spread_of(X: Array, categories: Sequence[Sequence[int] | Index] = ()) -> Array:
    """Standard deviations of columns; the columns of one of categories have that of their sum of squares.

    Each by itself, that of a rare category is next to nothing, and rows with it would be far from all others.
    """
    spread = np.asarray(X.std(axis=0))
    for there in categories:
        spread[there] = np.where(spread[there] > 0.0, np.sqrt(np.square(spread[there]).sum()), 0.0)
    return spread
