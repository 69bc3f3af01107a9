"""Kernel matrices of the points of a cell, at every width of a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.sampling import least
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import squared_distances
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.rescaled import Rescaled
from convexkernels.linalg import flush
from convexkernels.losses.base import Loss
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.validation import LARGEST_VALUE

Rows = Index | slice
ALL = slice(None)
# Entries below are 0: beside values of the size of a target no sum sees them.
NEGLIGIBLE = 1e-30
# Places of a large table, and the rows near each.
PLACES, NEAR_ROWS = 10, 300


class Matrices(ABC):
    """The matrices of one kernel on m given points."""

    m: int
    by_steps = False

    @abstractmethod
    def kernel(self, width: float) -> Kernel:
        """The kernel of a width."""

    @abstractmethod
    def __call__(self, width: float, rows: Rows = ALL, columns: Rows = ALL) -> Array:
        """A part of the matrix of a width, as a new array."""

    def diagonal(self, width: float) -> Array:
        """The diagonal of the matrix, shape (m,)."""
        return np.ones(self.m)

    def last(self, width: float) -> Array:
        """The matrix of a width, after which no other is asked for."""
        return self(width)

    def places(self, rng: np.random.Generator) -> list[Index]:
        """Rows near some that are drawn, as dense as all are; none where all are looked at together."""
        return []

    def for_steps(self, width: float, loss: Loss, Y: Array, weights: Array) -> FixedKernel | None:
        """What steps on tiles in float32 solve, for targets of shape (n_outputs, m); None where factors do."""
        return None


class GaussianMatrices(Matrices):
    """``exp(-|x - x'|^2 / width^2)``: one matrix of distances serves all widths."""

    def __init__(self, X: Array) -> None:
        self.D, self.m = squared_distances(X, X), len(X)

    def kernel(self, width: float) -> Kernel:
        return _gaussian(width)

    def __call__(self, width: float, rows: Rows = ALL, columns: Rows = ALL) -> Array:
        return _exponential(_part(self.D, rows, columns) * (-1.0 / width**2))

    def last(self, width: float) -> Array:
        self.D *= -1.0 / width**2
        return _exponential(self.D)


class KernelMatrices(Matrices):
    """``k(x / width, x' / width)`` for a kernel that is given."""

    def __init__(self, given: Kernel, X: Array, by_steps: bool = False) -> None:
        self.given, self.X, self.m, self.by_steps = given, X, len(X), by_steps

    def kernel(self, width: float) -> Kernel:
        if width == 1.0:
            return self.given
        n = self.X.shape[1]
        return Rescaled(self.given, np.zeros(n), np.full(n, width))

    def __call__(self, width: float, rows: Rows = ALL, columns: Rows = ALL) -> Array:
        left = self.X[rows]
        right = None if rows is columns else self.X[columns]
        return self.kernel(width)(left, right)

    def diagonal(self, width: float) -> Array:
        return self.kernel(width).diag(self.X)

    def places(self, rng: np.random.Generator) -> list[Index]:
        some = self.X[rng.choice(self.m, min(self.m, PLACES), replace=False)]
        return [least(distances, NEAR_ROWS) for distances in self.given.squared_distances(some, self.X)]

    def for_steps(self, width: float, loss: Loss, Y: Array, weights: Array) -> FixedKernel | None:
        if not (self.by_steps and float(self.diagonal(width).max()) < LARGEST_VALUE["float32"]):
            return None
        return FixedKernel(self.kernel(width), loss, self.X, Y.T, sample_weight=weights)


class GaussianRows(KernelMatrices):
    """The matrices of `GaussianMatrices` for more points than a matrix is kept of: rows are made as they are needed."""

    def __init__(self, X: Array) -> None:
        super().__init__(Gaussian(1.0), X, by_steps=True)

    def kernel(self, width: float) -> Kernel:
        return _gaussian(width)

    def __call__(self, width: float, rows: Rows = ALL, columns: Rows = ALL) -> Array:
        return flush(super().__call__(width, rows, columns), NEGLIGIBLE)


def _gaussian(width: float) -> Kernel:
    return Gaussian(width**-2)


def _exponential(K: Array) -> Array:
    """Exp of every entry, in place."""
    return flush(np.exp(K, out=K), NEGLIGIBLE)


def _part(D: Array, rows: Rows, columns: Rows) -> Array:
    if isinstance(rows, slice) or isinstance(columns, slice):
        return D[rows, columns]
    return D[np.ix_(rows, columns)]
