"""Evaluation of trees of Gaussian kernels, and all derivatives with respect to the weights in one backward pass.

With ``q = w^2`` (top weights divided by gamma), every node is ``k = exp(-S)``,

    leaves   S = sum_j q_j (x_j - x'_j)^2        above   S = 2 sum_i q_i (1 - k_i),

inhomogeneous Gaussians [ST16 (4)] and what is above them, of depth 2, 3 and any other [ST16 (5), (6), (7)]. A child
passes ``e_i = 2 q_i k_i = exp(log(2 q_i) - S_i)`` on, and its parent is ``exp(sum e_i - 2 sum q_i)``: one GEMM, one
exponential and one addition for each leaf.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.distances import center_of, has_lost_digits
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.threads import in_threads

Array = NDArray[Any]
Rows = slice

# Entries of a tile: what all nodes of a tile need at a time should stay in the second-level cache.
TILE_ROWS, TILE_COLUMNS = 64, 512
# Exponentials of less are no normal numbers, and take ten times as long.
LOWEST = {np.dtype(np.float32): -87.0}
# Squared length of a scaled row from which on products round distances to rows as long by more than 1e-12.
LONGEST = 500.0


class _Leaf(NamedTuple):
    """A leaf on points: a product of `left` and `right` is ``log(2 q) - S``; of `long` rows it loses small S."""

    left: Array
    right: Array
    long: Array | None


@dataclass(eq=False)
class TreeEvaluation:
    """The kernel of a tree with weights on given points; nothing of the size of the matrix is kept.

    Parameters
    ----------
    tree : KernelTree
    squares : ndarray of shape (n_weights,)
        Squared weights, >= 0.
    X : ndarray of shape (m, n)
    Z : ndarray of shape (k, n), optional
        `X` again when not given.
    dtype : numpy dtype
        Precision of the matrix: float64, or float32 for searches.
    """

    tree: KernelTree
    squares: Array
    X: Array
    Z: Array | None = None
    dtype: Any = np.float64
    _leaves: dict[int, _Leaf] = field(init=False, repr=False)
    _live: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        other = self.X if self.Z is None else self.Z
        # Differences do not change, and squared lengths cancel less, around the mean.
        center = center_of(other)
        self._left, self._right = self.X - center, other - center
        self._live = self._reachable()
        self._leaves = {}

    def _reachable(self) -> list[int]:
        """Places that the root depends on: a child of weight 0 is cut off with all below it."""
        live = {len(self.tree.places) - 1}
        for i in range(len(self.tree.places) - 2, -1, -1):
            parent, weight = self.tree.parents[i]
            if parent in live and self.squares[weight] > 0.0:
                live.add(i)
        return sorted(live)

    def _shift(self, i: int) -> float:
        """log(2 q) of the weight of a node in its parent; 0 for the root."""
        weight = self.tree.parents[i][1]
        return 0.0 if weight < 0 else float(np.log(2.0 * self.squares[weight]))

    def _leaf(self, i: int) -> _Leaf:
        """A leaf, prepared when it is first needed: a move of one node needs one."""
        if i in self._leaves:
            return self._leaves[i]
        columns, root = list(self.tree.places[i].features), np.sqrt(self.squares[self.tree.places[i].weights])
        A, B = self._left[:, columns] * root, self._right[:, columns] * root
        with np.errstate(over="ignore"):
            a, b = np.einsum("ij,ij->i", A, A), np.einsum("ij,ij->i", B, B)
        if not max(a.max(), b.max()) < np.finfo(self.dtype).max / 8.0:
            raise InvalidInputError(
                f"X has features that overflow {np.dtype(self.dtype).name} when they are multiplied by their weights "
                "and squared; rescale the features, or pass smaller weights."
            )
        left = np.column_stack([2.0 * A, self._shift(i) - a, -np.ones(len(A))])
        right = np.column_stack([B, np.ones(len(B)), b])
        long = a > LONGEST if has_lost_digits(a, b) else None
        self._leaves[i] = _Leaf(left.astype(self.dtype), np.ascontiguousarray(right.T.astype(self.dtype)), long)
        return self._leaves[i]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return len(self._left), len(self._right)

    def gram(self, *, lower: bool = False, out: Array | None = None, exponent: bool = False) -> Array:
        """The kernel matrix, or its logarithm, the `exponent` of the root.

        With `lower`, only its lower triangle when there is one table (the rest undefined).
        """
        K = np.empty(self.shape, dtype=self.dtype) if out is None else out

        def fill(rows: Rows) -> None:
            for columns in self._columns(rows):
                self._root(rows, columns, K[rows, columns], exponent)
            if self.Z is None:
                corner = K[rows, rows]
                np.fill_diagonal(corner, 0.0 if exponent else 1.0)
                if not lower:
                    corner[:] = np.tril(corner) + np.tril(corner, -1).T
                    K[: rows.start, rows] = K[rows, : rows.start].T

        in_threads(fill, self._rows())
        return K

    def block(self, rows: Rows, columns: slice) -> Array:
        """A block of the matrix of one table, by one thread."""
        K = np.empty((rows.stop - rows.start, columns.stop - columns.start), dtype=self.dtype)
        for across in _tiles(K.shape[0], TILE_ROWS):
            for along in _tiles(K.shape[1], TILE_COLUMNS):
                self._root(_moved(across, rows.start), _moved(along, columns.start), K[across, along])
        if rows == columns:
            np.fill_diagonal(K, 1.0)
        return K

    def _rows(self) -> list[Rows]:
        return _tiles(self.shape[0], TILE_ROWS)[::-1]

    def _columns(self, rows: Rows) -> list[slice]:
        """Tiles of a block of rows: the lower triangle of one table, everything of two."""
        return _tiles(rows.stop if self.Z is None else self.shape[1], TILE_COLUMNS)

    def leaf_values(self, i: int, rows: Rows, out: Array) -> None:
        """What leaf `i` passes on, ``2 q k`` (k itself where it is the root), for a block of rows of two tables."""
        self._exponents(i, rows, slice(0, self.shape[1]), out)
        np.minimum(out, self._shift(i), out=out)
        np.exp(out, out=out)

    def _exponents(self, i: int, rows: Rows, columns: slice, out: Array | None) -> Array:
        """``log(2 q) - S`` of a leaf on one tile."""
        leaf = self._leaf(i)
        value = np.matmul(leaf.left[rows], leaf.right[:, columns], out=out)
        for r, difference in self._long_rows(i, rows, columns):
            value[r] = self._shift(i) - difference**2 @ self.squares[self.tree.places[i].weights]
        return value

    def _long_rows(self, i: int, rows: Rows, columns: slice) -> list[tuple[int, Array]]:
        """Rows of a tile of which products lose small distances, and their differences from the columns."""
        marks = self._leaf(i).long
        if marks is None:
            return []
        features, other = list(self.tree.places[i].features), self.X if self.Z is None else self.Z
        long = np.flatnonzero(marks[rows]).tolist()
        return [(r, self.X[rows.start + r, features] - other[columns][:, features]) for r in long]

    def exponents_of(self, i: int) -> Array:
        """The logarithms of one row of the matrix, by one thread."""
        out = np.empty((1, self.shape[1]), dtype=self.dtype)
        self._root(slice(i, i + 1), slice(0, self.shape[1]), out, exponent=True)
        return np.asarray(out[0])

    def _root(self, rows: Rows, columns: slice, out: Array, exponent: bool = False) -> None:
        """The kernel on one tile; what children pass on is added at once, and no more of it kept than the path down."""
        spare: list[Array] = []
        root = self._live[-1]

        def value(i: int, out: Array) -> None:
            place = self.tree.places[i]
            if place.is_leaf:
                self._exponents(i, rows, columns, out)
            else:
                out[:] = self._constant(i)
                own = spare.pop() if spare else np.empty(out.shape, dtype=self.dtype)
                for child in place.children:
                    if child in self._live:
                        value(child, own)
                        out += own
                spare.append(own)
            if exponent and i == root:
                np.minimum(out, 0.0, out=out)
            else:
                self._finish(i, out)

        value(root, out)

    def _values(self, rows: Rows, columns: slice) -> dict[int, Array]:
        """What every node passes on, on one tile; the root's is k."""
        kept: dict[int, Array] = {}
        for i in self._live:
            place = self.tree.places[i]
            if place.is_leaf:
                kept[i] = self._exponents(i, rows, columns, None)
            else:
                shape = (rows.stop - rows.start, columns.stop - columns.start)
                kept[i] = np.full(shape, self._constant(i), dtype=self.dtype)
                for child in place.children:
                    if child in kept:
                        kept[i] += kept[child]
            self._finish(i, kept[i])
        return kept

    def _constant(self, i: int) -> float:
        """The exponent of an inner node whose children are all 0."""
        return self._shift(i) - 2.0 * float(self.squares[self.tree.places[i].weights].sum())

    def _finish(self, i: int, exponents: Array) -> None:
        """From exponents to what a node passes on, in place."""
        # Distances are not negative; where rounding says so, the exponential must not amplify it.
        np.clip(exponents, LOWEST.get(np.dtype(self.dtype)), self._shift(i), out=exponents)
        np.exp(exponents, out=exponents)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        """Derivatives of ``sum_ab M_ab k(x_a, z_b)`` with respect to log w, shape (n_weights,).

        Parameters
        ----------
        M : ndarray of the shape of the matrix
            For one table its symmetric part counts; with `lower` it is symmetric and its upper triangle is not read.

        Notes
        -----
        [ST16 Lemma 4.1], with the factor k that its second formula lacks, by reverse accumulation: the
        derivative of the sum with respect to -S of the root is ``M k``, that of a child ``e_i`` times its parent's.
        """
        if self.Z is None and not lower:
            M = 0.5 * (M + M.T)
        parts = in_threads(lambda block: self._block_gradient(M, block), self._rows())
        return np.asarray(sum(parts, np.zeros(self.tree.n_weights)))

    def _block_gradient(self, M: Array, rows: Rows) -> Array:
        """The part of the gradient that a block of rows contributes."""
        total = np.zeros(self.tree.n_weights)
        for columns in self._columns(rows):
            kept = self._values(rows, columns)
            sensitivity = M[rows, columns].astype(self.dtype, copy=True)
            if self.Z is None:  # every pair below the diagonal stands for two, those above for none
                if columns.stop > rows.start:
                    sensitivity = np.tril(sensitivity, rows.start - columns.start - 1)
                sensitivity *= 2.0
            for i, E in self._descend(kept, sensitivity, total):
                place = self.tree.places[i]
                total[place.weights] -= 2.0 * self.squares[place.weights] * self._moments(i, rows, columns, E)
        return total

    def _descend(self, kept: dict[int, Array], M: Array, total: Array) -> Iterator[tuple[int, Array]]:
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
            mass = float(E.sum(dtype=np.float64))
            for position, child in enumerate(place.children):
                if child in kept:
                    slopes[child] = np.multiply(kept[child], E, out=kept[child])
                    weight = place.weights.start + position
                    inner = float(slopes[child].sum(dtype=np.float64))
                    total[weight] += 2.0 * inner - 4.0 * float(self.squares[weight]) * mass

    def pullback(self, M: Array) -> Array:
        """Derivatives of ``sum_ab M_ab k(x_a, z_b)`` with respect to the rows of the first of two tables."""
        result, unused = np.zeros(self.X.shape), np.zeros(self.tree.n_weights)
        for rows in self._rows():
            for columns in self._columns(rows):
                kept = self._values(rows, columns)
                for i, E in self._descend(kept, M[rows, columns].astype(self.dtype, copy=True), unused):
                    features, x, z = self._seen(i, rows, columns)
                    slope = E.sum(axis=1)[:, None] * x - E @ z
                    for r, difference in self._long_rows(i, rows, columns):
                        slope[r] = E[r] @ difference
                    result[rows, features] -= 2.0 * self.squares[self.tree.places[i].weights] * slope
        return result

    def _seen(self, i: int, rows: Rows, columns: slice) -> tuple[list[int], Array, Array]:
        """The features of a leaf, and the points of a tile in them."""
        features = list(self.tree.places[i].features)
        return features, self._left[rows][:, features], self._right[columns][:, features]

    def _moments(self, i: int, rows: Rows, columns: slice, E: Array) -> Array:
        """``sum_ab E_ab (x_aj - z_bj)^2`` for the features j of a leaf."""
        _, x, z = self._seen(i, rows, columns)
        far = np.zeros(x.shape[1])
        long = self._long_rows(i, rows, columns)
        if long:  # squares of these rows have no digits left for small differences
            far = sum((E[r] @ difference**2 for r, difference in long), far)
            kept = np.delete(np.arange(len(x)), [r for r, _ in long])
            x, E = x[kept], E[kept]
        joined = E @ np.column_stack([z, np.ones(len(z))]).astype(self.dtype)
        below = np.ones(len(x), dtype=self.dtype) @ E
        cross = np.einsum("ij,ij->j", x, joined[:, :-1], dtype=np.float64)
        squares = joined[:, -1].astype(np.float64) @ x**2 + below.astype(np.float64) @ z**2
        return np.asarray(squares - 2.0 * cross + far)


def _moved(part: slice, start: int) -> slice:
    return slice(part.start + start, part.stop + start)


def _tiles(end: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, end)) for start in range(0, end, size)]
