"""Stores of many Gram matrices on the same points: packed in memory, or made again when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.families.stacks.packed import BLOCK, FEW, apply_packed, combine_packed, mirror, weigh_packed
from convexkernels.kernels.base import Kernel
from convexkernels.threads import in_parts

# Rows of a matrix that is made and forgotten at once.
CHUNK = 512
# Share of the rows from which on reading all of them takes no longer than picking some.
DENSE = 0.5


class GramStack(ABC):
    """The symmetric matrices ``scales[k] K_k``, k < l, on m points; `rescale` sets the scales."""

    l: int  # noqa: E741 - the number of kernels in all papers
    m: int
    scales: Array

    @abstractmethod
    def combine(self, weights: Array, out: Array) -> Array:
        """Write ``sum_k weights[k] scales[k] K_k`` to `out`, shape (m, m)."""

    @abstractmethod
    def weigh(self, W: Array) -> Array:
        """``sum_r w_r' scales[k] K_k w_r`` for the rows w_r of `W` and every k, shape (l,)."""

    @abstractmethod
    def pullback(self, M: Array) -> Array:
        """``<M, scales[k] K_k>`` for a symmetric matrix M and every k, shape (l,)."""

    @abstractmethod
    def apply(self, w: Array, rows: Index) -> Array:
        """Entries `rows` (ascending) of ``scales[k] K_k w``, shape (n_rows, l)."""

    @abstractmethod
    def diagonals(self) -> Array:
        """Diagonals of the ``scales[k] K_k``, shape (l, m)."""

    def agree(self, first: int, second: int) -> bool:
        """Whether two of the matrices are the same."""
        A, B = self.matrix(first), self.matrix(second)
        return bool(np.abs(A - B).max() <= 1e-12 * np.abs(A).max())

    def alike(self) -> tuple[int, int] | None:
        """Two of the matrices that are the same: by three random quadratic forms, and then entry by entry."""
        rng = np.random.default_rng(0)
        marks = np.array([self.weigh(rng.standard_normal((1, self.m))) for _ in range(3)])
        size = self.diagonals().sum(axis=1)
        for pair in pairwise(np.argsort(marks[0]).tolist()):
            near = np.abs(np.diff(marks[:, list(pair)])).max() <= 1e-10 * size[list(pair)].max()
            if near and self.agree(*pair):
                return min(pair), max(pair)
        return None

    def rescale(self, factors: Array) -> None:
        """Multiply the matrices by factors, shape (l,)."""
        self.scales = self.scales * factors

    def some(self, places: list[int]) -> GramStack:
        """The matrices at these places, with their scales."""
        other = copy(self)
        other.l, other.scales = len(places), self.scales[places]
        other._keep(places)
        return other

    @abstractmethod
    def _keep(self, places: list[int]) -> None:
        """Forget the matrices elsewhere."""

    def matrix(self, k: int) -> Array:
        """``scales[k] K_k`` in float64."""
        weights = np.zeros(self.l)
        weights[k] = 1.0
        return self.combine(weights, np.empty((self.m, self.m)))


class PackedStack(GramStack):
    """Lower triangles in memory, l m (m + 1) / 2 numbers of float64 or float32."""

    def __init__(self, values: Array, m: int) -> None:
        self.values = values
        self.l, self.m = values.shape[0], m
        self.scales = np.ones(self.l)

    def _keep(self, places: list[int]) -> None:
        first, last = places[0], places[-1] + 1
        self.values = self.values[first:last] if places == list(range(first, last)) else self.values[places]

    def combine(self, weights: Array, out: Array) -> Array:
        active = np.flatnonzero(weights)
        in_parts(combine_packed, -(-self.m // FEW), self.values, active, weights[active] * self.scales[active], out)
        in_parts(mirror, -(-self.m // BLOCK), out)
        return out

    def weigh(self, W: Array) -> Array:
        rows = self._read(np.flatnonzero(W.any(axis=0)))
        support = W[:, rows]
        return self._weighed(rows, support.T @ support)

    def pullback(self, M: Array) -> Array:
        return self._weighed(np.arange(self.m), M)

    def _read(self, rows: Index) -> Index:
        """The rows that are read where `rows` are needed: all of them, one after the other, if they are many."""
        return np.arange(self.m) if rows.size > DENSE * self.m else rows

    def _weighed(self, rows: Index, pairs: Array) -> Array:
        result = np.empty(self.l)
        in_parts(weigh_packed, self.l, self.values, rows, pairs, result)
        return self.scales * result

    def apply(self, w: Array, rows: Index) -> Array:
        used = self._read(np.union1d(np.flatnonzero(w), rows))
        images = np.empty((self.l, used.size))
        in_parts(apply_packed, self.l, self.values, used, w[used], images)
        return (self.scales[:, None] * images[:, np.searchsorted(used, rows)]).T

    def diagonals(self) -> Array:
        i = np.arange(self.m)
        return self.scales[:, None] * self.values[:, i * (i + 1) // 2 + i].astype(np.float64)


class StreamedStack(GramStack):
    """Matrices made from their kernels every time they are used; memory for a few rows of one matrix."""

    def __init__(self, kernels: Sequence[Kernel], X: Array) -> None:
        self.kernels = kernels
        self.X = X
        self.l, self.m = len(kernels), X.shape[0]
        self.scales = np.ones(self.l)

    def _keep(self, places: list[int]) -> None:
        self.kernels = [self.kernels[k] for k in places]

    def combine(self, weights: Array, out: Array) -> Array:
        for part, rows in _chunks(self.X):
            total = np.zeros((len(rows), self.m))
            for k in np.flatnonzero(weights).tolist():
                total += weights[k] * self.scales[k] * self.kernels[k](rows, self.X)
            out[part] = total
        return out

    def weigh(self, W: Array) -> Array:
        support = np.flatnonzero(W.any(axis=0))
        points, W = np.ascontiguousarray(self.X[support]), W[:, support]
        result = np.zeros(self.l)
        for part, rows in _chunks(points):
            for k, kernel in enumerate(self.kernels):
                result[k] += np.vdot(W[:, part], W @ kernel(rows, points).T)
        return self.scales * result

    def pullback(self, M: Array) -> Array:
        result = np.zeros(self.l)
        for part, rows in _chunks(self.X):
            for k, kernel in enumerate(self.kernels):
                result[k] += np.vdot(M[part], kernel(rows, self.X))
        return self.scales * result

    def apply(self, w: Array, rows: Index) -> Array:
        support = np.flatnonzero(w)
        images = np.zeros((rows.size, self.l))
        if support.size:
            points = np.ascontiguousarray(self.X[support])
            for part, targets in _chunks(self.X[rows]):
                for k, kernel in enumerate(self.kernels):
                    images[part, k] = kernel(targets, points) @ w[support]
        return images * self.scales

    def diagonals(self) -> Array:
        return self.scales[:, None] * np.array([kernel.diag(self.X) for kernel in self.kernels])


def _chunks(X: Array) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows: which they are, and the rows."""
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        yield part, np.ascontiguousarray(X[part])
