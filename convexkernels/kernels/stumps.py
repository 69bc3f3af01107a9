"""The kernel of all decision stumps."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from convexkernels.arrays import Array
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_points


class Stumps(Kernel):
    """k(x, y) = mean over j of min(F_j(x_j), F_j(y_j)), F_j the distribution function of column j of a table.

    The share of decision stumps "column j is beyond its quantile u", j and u uniform, that both points pass: functions
    in its space are sums of functions of one column each. Columns count by their ranks, so that no increasing map of a
    column makes a difference, and outside of the table functions are constant.

    Parameters
    ----------
    values : array-like of shape (n_values, n_features)
        The table. Equal entries share their rank: ``F_j(t)`` is the mean of the shares below t and not above t.

    Notes
    -----
    No derivative. ``min(a, b) = (a + b - |a - b|) / 2``, so that it costs as much as a matrix of distances,
    O(n_samples_X n_samples_Y n_features); sums of counts are exact.
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    def _counted(self, X: Array) -> tuple[Array, int]:
        """Entries of the table below those of `X`, plus those not above them, and the largest sum of these in a row."""
        table = check_points(self.values, name="values", n_features=X.shape[1])
        counts = np.empty(X.shape)
        for j, column in enumerate(np.sort(table, axis=0).T):
            counts[:, j] = sum(np.searchsorted(column, X[:, j], side) for side in ("left", "right"))
        return counts, 2 * table.size

    def _gram(self, X: Array, Y: Array) -> Array:
        left, most = self._counted(X)
        right = left if Y is X else self._counted(Y)[0]
        K = np.asarray(cdist(left, right, "cityblock"))
        np.subtract(left.sum(axis=1)[:, None] + right.sum(axis=1), K, out=K)
        K /= 2 * most
        return K

    def _diag(self, X: Array) -> Array:
        counts, most = self._counted(X)
        return np.asarray(counts.sum(axis=1) / most)
