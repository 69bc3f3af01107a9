"""The direct sum of kernels on the cells of a Voronoi partition."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import nearest_rows
from convexkernels.validation import check_points, check_vector


class Localized(Kernel):
    """k(x, y) = sum_j kernel_j(x, y) / lam_j over the cells j that hold both x and y: 0 across cells.

    The kernel of the direct sum of the zero-extended spaces [MS16 Lemma 2, Lemma 3, (10), (11), (13)] of the cells,
    with ``|f|^2 = sum_j lam_j |f_j|^2`` [MS16 (12), (14)]. One SVM with it is the SVMs of all cells at once
    [MS16 (15)].

    Parameters
    ----------
    centers : array-like of shape (n_cells, n_features)
        A point is in the cell of the nearest one, ties to the smallest index.
    kernels : sequence of Kernel
        One per cell.
    lams : array-like of shape (n_cells,), > 0, optional
        Weights of the squared norms in the cells; ones when not given.
    metric : Kernel, optional
        Centers are nearest in its geometry (`Kernel.squared_distances`); Euclidean distances when not given.
    """

    def __init__(self, centers: Any, kernels: Sequence[Kernel], lams: Any = None, metric: Kernel | None = None) -> None:
        self.centers, self.kernels, self.lams, self.metric = centers, kernels, lams, metric

    def _cells(self, n_features: int) -> tuple[Array, Array]:
        centers = check_points(self.centers, name="centers", n_features=n_features)
        if len(self.kernels) != len(centers):
            raise InvalidInputError(
                f"kernels has {len(self.kernels)} entries, but there are {len(centers)} centers; one per cell is "
                "needed."
            )
        if self.lams is None:
            return centers, np.ones(len(centers))
        return centers, check_vector("lams", self.lams, len(centers), per="cell", low=0.0, open_low=True)

    def _gram(self, X: Array, Y: Array) -> Array:
        centers, lams = self._cells(X.shape[1])
        left = nearest_rows(X, centers, self.metric)[0]
        right = left if Y is X else nearest_rows(Y, centers, self.metric)[0]
        K = np.zeros((X.shape[0], Y.shape[0]))
        for j in np.intersect1d(left, right):
            i, k = np.flatnonzero(left == j), np.flatnonzero(right == j)
            part = X[i]
            K[np.ix_(i, k)] = self.kernels[j]._gram(part, part if Y is X else Y[k]) / lams[j]
        return K

    def _diag(self, X: Array) -> Array:
        centers, lams = self._cells(X.shape[1])
        cells = nearest_rows(X, centers, self.metric)[0]
        diagonal = np.empty(X.shape[0])
        for j in np.unique(cells):
            rows = np.flatnonzero(cells == j)
            diagonal[rows] = self.kernels[j]._diag(X[rows]) / lams[j]
        return diagonal
