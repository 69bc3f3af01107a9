"""Gram matrices that are known by their factors and never formed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from convexkernels.arrays import Array, Index

# Entries of a block of rows of a factor that are held at once (64 MB).
BLOCK = 8_000_000


class FactoredGram(ABC):
    """``K = Psi Psi'`` for a matrix Psi, shape (m, rank), of few columns: products with K cost ``O(m rank)``.

    Takes the place of a Gram matrix wherever that is only multiplied by vectors.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, m: int, rank: int) -> None:
        self.m, self.rank = m, rank
        self.shape = (m, m)

    def __len__(self) -> int:
        return self.m

    @abstractmethod
    def values(self, v: Array) -> Array:
        """``Psi v`` for a vector of shape (rank,)."""

    @abstractmethod
    def pulled(self, a: Array) -> Array:
        """``Psi' a`` for a vector of shape (m,)."""

    @abstractmethod
    def rows(self, index: Index | slice) -> Array:
        """Some rows of Psi, shape (n_rows, rank)."""

    def __matmul__(self, w: Array) -> Array:
        return self.values(self.pulled(w))

    def blocks(self) -> Iterator[slice]:
        """Slices of the rows, of which one block of Psi at a time is held."""
        size = max(1, BLOCK // max(1, self.rank))
        return (slice(start, min(start + size, self.m)) for start in range(0, self.m, size))

    def diagonal(self) -> Array:
        """Diagonal of K, shape (m,)."""
        parts = [np.einsum("ij,ij->i", part, part) for part in map(self.rows, self.blocks())]
        return np.concatenate(parts)

    def dense(self) -> Array:
        """K itself, for a few rows."""
        Psi = self.rows(slice(0, self.m))
        return Psi @ Psi.T


class CombinedFeatures(FactoredGram):
    """Features side by side, shapes (m, width_k), each kind times a factor: a sum of kernels."""

    def __init__(self, m: int, parts: list[Array], factors: Array) -> None:
        self.parts, self.factors = parts, factors
        self.ends = np.cumsum([0, *(part.shape[1] for part in parts)])
        super().__init__(m, int(self.ends[-1]))

    def values(self, v: Array) -> Array:
        total = np.zeros(self.m)
        for k, part in enumerate(self.parts):
            total += part @ (self.factors[k] * v[self.ends[k] : self.ends[k + 1]])
        return total

    def pulled(self, a: Array) -> Array:
        return np.concatenate(
            [np.zeros(0), *(c * (a @ part) for c, part in zip(self.factors, self.parts, strict=True))]
        )

    def rows(self, index: Index | slice) -> Array:
        n = len(np.arange(self.m)[index])
        made = (c * part[index] for c, part in zip(self.factors, self.parts, strict=True))
        return np.concatenate([np.zeros((n, 0)), *made], axis=1)
