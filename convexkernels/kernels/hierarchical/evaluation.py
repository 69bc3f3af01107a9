"""Evaluation of trees of Gaussian kernels, and all derivatives with respect to the weights in one backward pass.

With ``q = w^2`` (top weights divided by gamma), every node is ``k = exp(-S)``,

    leaves   S = sum_j q_j (x_j - x'_j)^2        above   S = 2 sum_i q_i (1 - k_i),

inhomogeneous Gaussians [ST16 (4)] and what is above them, of depth 2, 3 and any other [ST16 (5), (6), (7)]. A child
passes ``e_i = 2 q_i k_i = exp(log(2 q_i) - S_i)`` on, and its parent is ``exp(sum e_i - 2 sum q_i)``: one GEMM, one
exponential and one addition for each leaf. The formulas are written once, for numpy and for tensors on a device.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.backend import Backend, to_numpy
from convexkernels.kernels.hierarchical.leaves import Leaves
from convexkernels.kernels.hierarchical.tree import KernelTree

Array = NDArray[Any]
Rows = slice

# Entries of a tile: what all nodes of a tile need at a time should stay in the second-level cache.
TILE = 64, 512
# On a device there is no such cache, but every call costs some microseconds: 16 MB a node in float32.
DEVICE_TILE = 2048, 2048
# Exponentials of less are no normal numbers, and take ten times as long.
LOWEST = {np.dtype(np.float32): -87.0}


@dataclass(eq=False)
class TreeEvaluation:
    """The kernel of a tree with weights on points X and Z, or X alone; nothing of the size of the matrix is kept.

    `squares` are those of the weights. The matrix has the precision `dtype`, float32 for searches; a `device` of
    PyTorch evaluates it. What is returned is numpy's, but for :meth:`block`.
    """

    tree: KernelTree
    squares: Array
    X: Array
    Z: Array | None = None
    dtype: Any = np.float64
    device: Any = None
    _leaves: Leaves = field(init=False, repr=False)
    _live: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        other = self.X if self.Z is None else self.Z
        self._backend = Backend(np.dtype(self.dtype).name, self.device)
        self._xp, self._double = self._backend.xp, self._backend.double
        self._leaves = Leaves(self.tree, self.squares, self.X, other, self._backend)
        self._live = self._reachable()

    def _empty(self, shape: tuple[int, ...]) -> Any:
        return self._xp.empty(shape, dtype=self._backend.dtype, device=self._backend.device)

    def _reachable(self) -> list[int]:
        """Places that the root depends on: a child of weight 0 is cut off with all below it."""
        live = {len(self.tree.places) - 1}
        for i in range(len(self.tree.places) - 2, -1, -1):
            parent, weight = self.tree.parents[i]
            if parent in live and self.squares[weight] > 0.0:
                live.add(i)
        return sorted(live)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return len(self.X), len(self.X if self.Z is None else self.Z)

    def gram(self, *, lower: bool = False, exponent: bool = False) -> Array:
        """The kernel matrix, or its logarithm, the `exponent` of the root.

        With `lower`, only its lower triangle when there is one table (the rest undefined).
        """
        K, xp = self._empty(self.shape), self._xp

        def fill(rows: Rows) -> None:
            for columns in self._columns(rows):
                self._root(rows, columns, K[rows, columns], exponent)
            if self.Z is None:
                corner = K[rows, rows]
                self._fill_diagonal(corner, 0.0 if exponent else 1.0)
                if not lower:
                    corner[:] = xp.tril(corner) + xp.tril(corner, k=-1).T
                    K[: rows.start, rows] = K[rows, : rows.start].T

        self._backend.each(fill, self._rows())
        return np.asarray(to_numpy(K))

    def block(self, rows: Rows, columns: slice) -> Any:
        """A block of the matrix of one table, by one thread; a tensor on a device."""
        K = self._empty((rows.stop - rows.start, columns.stop - columns.start))
        for across in _tiles(K.shape[0], self._tile[0]):
            for along in _tiles(K.shape[1], self._tile[1]):
                self._root(_moved(across, rows.start), _moved(along, columns.start), K[across, along])
        if rows == columns:
            self._fill_diagonal(K, 1.0)
        return K

    def _fill_diagonal(self, K: Any, value: float) -> None:
        at = self._backend.there(np.arange(len(K)))
        K[at, at] = value

    @property
    def _tile(self) -> tuple[int, int]:
        return TILE if self._backend.is_numpy else DEVICE_TILE

    def _rows(self) -> list[Rows]:
        return _tiles(self.shape[0], self._tile[0])[::-1]

    def _columns(self, rows: Rows) -> list[slice]:
        """Tiles of a block of rows: the lower triangle of one table, everything of two."""
        return _tiles(rows.stop if self.Z is None else self.shape[1], self._tile[1])

    def leaf_values(self, i: int, rows: Rows, out: Any) -> None:
        """What leaf `i` passes on, ``2 q k`` (k itself where it is the root), for a block of rows of two tables."""
        self._leaves.exponents(i, rows, slice(0, self.shape[1]), out)
        self._xp.clip(out, None, self._leaves.shift(i), out=out)
        self._xp.exp(out, out=out)

    def exponents_of(self, i: int) -> Array:
        """The logarithms of one row of the matrix, by one thread."""
        out = self._empty((1, self.shape[1]))
        self._root(slice(i, i + 1), slice(0, self.shape[1]), out, exponent=True)
        return np.asarray(to_numpy(out[0]))

    def _root(self, rows: Rows, columns: slice, out: Any, exponent: bool = False) -> None:
        """The kernel on one tile; what children pass on is added at once, and no more of it kept than the path down."""
        spare: list[Any] = []
        root = self._live[-1]

        def value(i: int, out: Any) -> None:
            place = self.tree.places[i]
            if place.is_leaf:
                self._leaves.exponents(i, rows, columns, out)
            else:
                out[:] = self._constant(i)
                own = spare.pop() if spare else self._empty(out.shape)
                for child in place.children:
                    if child in self._live:
                        value(child, own)
                        out += own
                spare.append(own)
            if exponent and i == root:
                self._xp.clip(out, None, 0.0, out=out)
            else:
                self._finish(i, out)

        value(root, out)

    def _values(self, rows: Rows, columns: slice) -> dict[int, Any]:
        """What every node passes on, on one tile; the root's is k."""
        kept: dict[int, Any] = {}
        for i in self._live:
            place = self.tree.places[i]
            if place.is_leaf:
                kept[i] = self._leaves.exponents(i, rows, columns, None)
            else:
                shape = (rows.stop - rows.start, columns.stop - columns.start)
                kept[i] = self._empty(shape)
                kept[i][:] = self._constant(i)
                for child in place.children:
                    if child in kept:
                        kept[i] += kept[child]
            self._finish(i, kept[i])
        return kept

    def _constant(self, i: int) -> float:
        """The exponent of an inner node whose children are all 0."""
        return self._leaves.shift(i) - 2.0 * float(self.squares[self.tree.places[i].weights].sum())

    def _finish(self, i: int, exponents: Any) -> None:
        """From exponents to what a node passes on, in place."""
        # Distances are not negative; where rounding says so, the exponential must not amplify it.
        self._xp.clip(exponents, LOWEST.get(np.dtype(self.dtype)), self._leaves.shift(i), out=exponents)
        self._xp.exp(exponents, out=exponents)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        """Derivatives of ``sum_ab M_ab k(x_a, z_b)`` with respect to log w, shape (n_weights,).

        [ST16 Lemma 4.1], with the factor k that its second formula lacks, by reverse accumulation: the derivative of
        the sum with respect to -S of the root is ``M k``, that of a child ``e_i`` times its parent's. For one table the
        symmetric part of M counts; with `lower` it is symmetric and its upper triangle is not read.
        """
        if self.Z is None and not lower:
            M = 0.5 * (M + M.T)
        M = self._backend.there(M)
        parts = self._backend.each(lambda block: self._block_gradient(M, block), self._rows())
        return np.asarray(to_numpy(sum(parts, self._backend.there(np.zeros(self.tree.n_weights)))))

    def _block_gradient(self, M: Any, rows: Rows) -> Any:
        """The part of the gradient that a block of rows contributes."""
        total, xp, leaves = self._backend.there(np.zeros(self.tree.n_weights)), self._xp, self._leaves
        for columns in self._columns(rows):
            kept = self._values(rows, columns)
            sensitivity = xp.astype(M[rows, columns], self._backend.dtype, copy=True)
            if self.Z is None:  # every pair below the diagonal stands for two, those above for none
                if columns.stop > rows.start:
                    sensitivity = xp.tril(sensitivity, k=rows.start - columns.start - 1)
                sensitivity *= 2.0
            for i, E in self._descend(kept, sensitivity, total):
                own = self.tree.places[i].weights
                total[own] -= 2.0 * leaves.squares_there[own] * leaves.moments(i, rows, columns, E)
        return total

    def _descend(self, kept: dict[int, Any], M: Any, total: Any) -> Iterator[tuple[int, Any]]:
        """Walk down from the root; yields the derivatives with respect to -S of the leaves and adds up all others.

        Overwrites M and what is kept.
        """
        M *= kept[self._live[-1]]
        slopes = {self._live[-1]: M}
        for i in reversed(self._live):
            place, E = self.tree.places[i], slopes.pop(i)
            if place.is_leaf:
                yield i, E
                continue
            mass = E.sum(dtype=self._double)
            for position, child in enumerate(place.children):
                if child in kept:
                    slopes[child] = self._xp.multiply(kept[child], E, out=kept[child])
                    weight = place.weights.start + position
                    inner = slopes[child].sum(dtype=self._double)
                    total[weight] += 2.0 * inner - 4.0 * float(self.squares[weight]) * mass

    def pullback(self, M: Array) -> Array:
        """Derivatives of ``sum_ab M_ab k(x_a, z_b)`` with respect to the rows of the first of two tables."""
        result, unused = self._backend.there(np.zeros(self.X.shape)), self._backend.there(np.zeros(self.tree.n_weights))
        M = self._backend.there(M)
        for rows in self._rows():
            for columns in self._columns(rows):
                kept = self._values(rows, columns)
                sensitivity = self._xp.astype(M[rows, columns], self._backend.dtype, copy=True)
                for i, E in self._descend(kept, sensitivity, unused):
                    features, x, z = self._leaves.seen(i, rows, columns)
                    E = self._xp.astype(E, self._double, copy=False)
                    slope = E.sum(axis=1)[:, None] * x - E @ z
                    for r, difference in self._leaves.differences(i, rows, columns):
                        slope[r] = E[r] @ difference
                    result[rows, features] -= 2.0 * self._leaves.squares_there[self.tree.places[i].weights] * slope
        return np.asarray(to_numpy(result))


def _moved(part: slice, start: int) -> slice:
    return slice(part.start + start, part.stop + start)


def _tiles(end: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, end)) for start in range(0, end, size)]
