"""The leaves of a tree on given points: inhomogeneous Gaussians, whose exponents are products of tall matrices."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from convexkernels.arrays import Array
from convexkernels.backend import Backend, to_numpy
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.distances import center_of, has_lost_digits
from convexkernels.kernels.hierarchical.tree import KernelTree

Rows = slice

# Squared length of a scaled row from which on products round distances to rows as long by more than 1e-12.
LONGEST = 500.0


class Leaf(NamedTuple):
    """A leaf on points: a product of `left` and `right` is ``log(2 q) - S``; of `long` rows it loses small S."""

    left: Any
    right: Any
    long: Array | None


class Leaves:
    """The leaves of a tree, with its squared weights, between the rows of two tables; each is prepared when needed."""

    def __init__(self, tree: KernelTree, squares: Array, X: Array, Z: Array, backend: Backend) -> None:
        self.tree, self.squares, self.X, self.Z, self.backend = tree, squares, X, Z, backend
        # Differences do not change, and squared lengths cancel less, around the mean.
        center = center_of(Z)
        self._xp, self._double = backend.xp, backend.double
        self._left, self._right = backend.there(X - center), backend.there(Z - center)
        self.squares_there = backend.there(squares)
        self._leaves: dict[int, Leaf] = {}
        self._sides: dict[int, Any] = {}

    def shift(self, i: int) -> float:
        """log(2 q) of the weight of a node in its parent; 0 for the root."""
        weight = self.tree.parents[i][1]
        return 0.0 if weight < 0 else float(np.log(2.0 * self.squares[weight]))

    def leaf(self, i: int) -> Leaf:
        """A leaf; a move of one node needs one."""
        if i in self._leaves:
            return self._leaves[i]
        xp, place, limits = self._xp, self.tree.places[i], self._xp.finfo(self.backend.dtype)
        columns, root = list(place.features), xp.sqrt(self.squares_there[place.weights])
        A, B = self._left[:, columns] * root, self._right[:, columns] * root
        with np.errstate(over="ignore"):
            squares = xp.einsum("ij,ij->i", A, A), xp.einsum("ij,ij->i", B, B)
        a, b = map(to_numpy, squares)
        if not max(a.max(), b.max()) < limits.max / 8.0:
            raise InvalidInputError(
                f"X has features that overflow {limits.dtype} when they are multiplied by their weights and squared; "
                "rescale the features, or pass smaller weights."
            )
        left = xp.column_stack([2.0 * A, self.shift(i) - squares[0], -self._ones(len(A), self._double)])
        right = xp.column_stack([B, self._ones(len(B), self._double), squares[1]])
        long = a > LONGEST if has_lost_digits(a, b) else None
        self._leaves[i] = Leaf(xp.astype(left, self.backend.dtype), self.backend.array(right.T), long)
        return self._leaves[i]

    def exponents(self, i: int, rows: Rows, columns: slice, out: Any) -> Any:
        """``log(2 q) - S`` of a leaf on one tile."""
        leaf = self.leaf(i)
        value = self._xp.matmul(leaf.left[rows], leaf.right[:, columns], out=out)
        for r, difference in self.differences(i, rows, columns):
            value[r] = self.shift(i) - difference**2 @ self.squares_there[self.tree.places[i].weights]
        return value

    def _long_rows(self, i: int, rows: Rows) -> list[int]:
        """Rows of a tile of which products lose small distances."""
        marks = self.leaf(i).long
        return [] if marks is None else np.flatnonzero(marks[rows]).tolist()

    def differences(self, i: int, rows: Rows, columns: slice) -> Iterator[tuple[int, Any]]:
        """The long rows of a tile, and their differences from the columns."""
        long = self._long_rows(i, rows)
        if long:
            features, there = list(self.tree.places[i].features), self.backend.there
            x, z = there(self.X[rows][:, features]), there(self.Z[columns][:, features])
            yield from ((r, x[r] - z) for r in long)

    def seen(self, i: int, rows: Rows, columns: slice) -> tuple[list[int], Any, Any]:
        """The features of a leaf, and the points of a tile in them."""
        features = list(self.tree.places[i].features)
        return features, self._left[rows][:, features], self._right[columns][:, features]

    def moments(self, i: int, rows: Rows, columns: slice, E: Any) -> Any:
        """``sum_ab E_ab (x_aj - z_bj)^2`` for the features j of a leaf."""
        xp, (_, x, z) = self._xp, self.seen(i, rows, columns)
        far, long = 0.0, self._long_rows(i, rows)
        if long:  # squares of these rows have no digits left for small differences
            for r, difference in self.differences(i, rows, columns):
                far = far + xp.astype(E[r], self._double) @ difference**2
            kept = self.backend.there(np.delete(np.arange(len(x)), long))
            x, E = x[kept], E[kept]
        joined = E @ self._side(i)[columns]
        below = self._ones(len(x), self.backend.dtype) @ E
        cross = self.backend.column_products(x, joined[:, :-1])
        squares = xp.astype(joined[:, -1], self._double) @ x**2 + xp.astype(below, self._double) @ z**2
        return squares - 2.0 * cross + far

    def _side(self, i: int) -> Any:
        """The points of all columns in the features of a leaf, beside ones; made when gradients first need them."""
        if i not in self._sides:
            z = self._right[:, list(self.tree.places[i].features)]
            joined = self._xp.column_stack([z, self._ones(len(z), self._double)])
            self._sides[i] = self._xp.astype(joined, self.backend.dtype)
        return self._sides[i]

    def _ones(self, length: int, dtype: Any) -> Any:
        return self._xp.ones(length, dtype=dtype, device=self.backend.device)
