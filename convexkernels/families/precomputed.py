"""Matrices that came ready-made, as kernels on row numbers."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel


def row_numbers(m: int) -> Array:
    """The points on which a `Precomputed` kernel of m rows is defined: 0, ..., m - 1 as a column."""
    return np.arange(m, dtype=np.float64)[:, None]


class Precomputed(Kernel):
    """k(i, j) = matrix[i, j]: a kernel whose points are row numbers of a table that is somewhere else.

    With it, ready-made matrices go wherever kernels go: in sums with other kernels, and through
    cross-validation, which selects rows.

    Parameters
    ----------
    matrix : array-like of shape (m, m)
        Symmetric positive semidefinite.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def rows(self, X: Array) -> Index:
        """The rows of the matrix that points are, or a refusal."""
        numbers = X[:, 0]
        rows = numbers.astype(np.intp)
        bad = (rows != numbers) | (rows < 0) | (rows >= len(self.matrix))
        if bad.any():
            raise InvalidInputError(
                f"the points of a precomputed kernel are row numbers in [0, {len(self.matrix)}), "
                f"got {numbers[bad][0]:g}."
            )
        return rows

    def _gram(self, X: Array, Y: Array) -> Array:
        return np.asarray(self.matrix)[np.ix_(self.rows(X), self.rows(Y))].astype(np.float64)

    def _diag(self, X: Array) -> Array:
        rows = self.rows(X)
        return np.asarray(self.matrix)[rows, rows].astype(np.float64)

    def __repr__(self) -> str:
        return f"Precomputed({len(self.matrix)} points)"
