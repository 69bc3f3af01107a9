"""Kernels that see features and their ranks."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.mapped import Mapped
from convexkernels.validation import check_points


class BesideRanks(Mapped):
    """k(x, y) = kernel((x, 2 F(x) - 1), (y, 2 F(y) - 1)), F_j the distribution function of column j of a table.

    A column whose entries crowd somewhere is seen a second time, spread evenly over [-1, 1]. Columns of the table with
    fewer than three different entries are not: they have the same shape twice.

    Parameters
    ----------
    kernel : Kernel
        On the features, then the ranks.
    values : array-like of shape (n_values, n_features)
        The table. ``F_j(t)`` at an entry t is the mean of the shares below t and not above t, straight in between, and
        constant outside.

    Notes
    -----
    No derivative: F has kinks at the entries.
    """

    def __init__(self, kernel: Kernel, values: Any) -> None:
        self.kernel, self.values = kernel, values

    def _map(self, X: Array) -> Array:
        return beside_ranks(X, check_points(self.values, name="values", n_features=X.shape[1]))


def beside_ranks(X: Array, values: Array) -> Array:
    """The columns of `X`, and then their ranks among those of `values`, see :class:`BesideRanks`."""
    ranks = []
    for j, column in enumerate(values.T):
        known, counts = np.unique(column, return_counts=True)
        if len(known) >= 3:
            ranks.append(np.interp(X[:, j], known, (2.0 * np.cumsum(counts) - counts) / len(column) - 1.0))
    return np.column_stack([X, *ranks])
