"""Covers of the space of points, and the cells that the points of a table fall into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import least, nearest_rows, squared_distances
from convexkernels.validation import check_number, check_points, check_whole_number


@dataclass(frozen=True, eq=False)
class Assignment:
    """Which rows of a table are in which cell.

    Attributes
    ----------
    order : ndarray of int
        The rows, cell by cell, ascending in each cell.
    offsets : ndarray of int, shape (n_cells + 1,)
        Cell j holds ``order[offsets[j]:offsets[j + 1]]``.
    """

    order: Index
    offsets: Index

    @classmethod
    def from_labels(cls, labels: Index, n_cells: int) -> Assignment:
        """Group the rows by their cell."""
        counts = np.bincount(labels, minlength=n_cells)
        return cls(np.argsort(labels, kind="stable"), np.concatenate([[0], np.cumsum(counts)]))

    @property
    def n_cells(self) -> int:
        """Number of cells, empty ones included."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Index:
        """Number of rows of every cell."""
        return np.diff(self.offsets)

    def rows(self, cell: int) -> Index:
        """The rows of a cell, ascending."""
        return self.order[self.offsets[cell] : self.offsets[cell + 1]]


class Cover(ABC):
    """A rule that says which cells learn from a point, and which cell predicts at it.

    With `average` all cells predict at every point, and the prediction is their mean; it `overlaps` where cells learn
    from points that others predict at.
    """

    n_cells: int
    average: bool = False
    overlaps: bool = False

    @abstractmethod
    def cells(self, X: Any) -> Index:
        """The cell that predicts at each row of `X`, shape (n_samples,)."""

    def members(self, X: Any) -> Assignment:
        """The rows of `X` that each cell learns from; those it predicts at, unless a cover says otherwise."""
        return self.assigned(X)[1]

    def assigned(self, X: Any) -> tuple[Index, Assignment]:
        """Both `cells` and `members`, from one look at the distances."""
        cells = self.cells(X)
        return cells, Assignment.from_labels(cells, self.n_cells)


class VoronoiCover(Cover):
    """Cells of the points nearest to a center, ties to the smallest index [MS16 (6), Example 1].

    Parameters
    ----------
    centers : array-like of shape (n_cells, n_features)
    radius : float, optional
        Within which the points the cover was made from are of their centers.
    kernel : Kernel, optional
        Distances are those of its geometry (`Kernel.squared_distances`); Euclidean when not given.
    """

    def __init__(self, centers: Any, radius: float | None = None, kernel: Kernel | None = None) -> None:
        self.centers = check_points(centers, name="centers")
        self.n_cells = self.centers.shape[0]
        self.radius, self.kernel = radius, kernel

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_cells} cells)"

    def _points(self, X: Any) -> Array:
        return check_points(X, n_features=self.centers.shape[1])

    def cells(self, X: Any) -> Index:
        return nearest_rows(self._points(X), self.centers, self.kernel)[0]


class OverlappingCover(VoronoiCover):
    """Voronoi cells that also learn from the points just beyond their borders.

    A point teaches every cell whose center is at most ``1 + overlap`` times as far as the nearest one; the cell of
    the nearest center alone predicts at it, so that the predictor has smaller jumps at the borders.

    Parameters
    ----------
    centers : array-like of shape (n_cells, n_features)
    overlap : float, >= 0
    radius, kernel
        As of :class:`VoronoiCover`.
    """

    overlaps = True

    def __init__(
        self, centers: Any, overlap: float = 0.1, radius: float | None = None, kernel: Kernel | None = None
    ) -> None:
        super().__init__(centers, radius, kernel)
        self.overlap = check_number("overlap", overlap, low=0.0)

    def assigned(self, X: Any) -> tuple[Index, Assignment]:
        points, found = self._points(X), []
        nearest, square = np.zeros(len(points), dtype=np.intp), np.empty(len(points))
        step = max(1, 2**21 // self.n_cells)
        for start in range(0, len(points), step):
            part = slice(start, min(start + step, len(points)))
            near, nearest[part], square[part] = self._near(points[part])
            inside = near <= (1.0 + self.overlap) ** 2 * square[part, None]
            inside[np.arange(len(inside)), nearest[part]] = True
            cells, rows = np.nonzero(inside.T)
            found.append((cells, rows + start))
        cells, rows = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(cells, kind="stable")
        counts = np.bincount(cells, minlength=self.n_cells)
        return nearest, Assignment(rows[order], np.concatenate([[0], np.cumsum(counts)]))

    def _near(self, points: Array) -> tuple[Array, Index, Array]:
        """Squared distances to all centers, the nearest one, and the squared distance to it."""
        if self.kernel is None:
            return squared_distances(points, self.centers), *nearest_rows(points, self.centers)
        near = self.kernel.squared_distances(points, self.centers)
        return near, *least(near)


class TreeCover(Cover):
    """Voronoi cells that are divided into Voronoi cells again, down to the leaves, which are the cells.

    Finding the cell of a point takes the centers of one path only.

    Parameters
    ----------
    centers : ndarray of shape (k, n_features)
        Centers at the root.
    children : list of TreeCover or None
        What each of them is divided into; None for a leaf.
    """

    def __init__(self, centers: Any, children: list[TreeCover | None]) -> None:
        self.centers = check_points(centers, name="centers")
        self.children = children
        if len(children) != len(self.centers):
            raise InvalidInputError(f"children has {len(children)} entries, but there are {len(self.centers)} centers.")
        self.n_cells = sum(1 if child is None else child.n_cells for child in children)

    def __repr__(self) -> str:
        return f"TreeCover({self.n_cells} cells)"

    def cells(self, X: Any) -> Index:
        points = check_points(X, n_features=self.centers.shape[1])
        branch = nearest_rows(points, self.centers)[0]
        answer = np.empty(len(points), dtype=np.intp)
        first = 0
        for j, child in enumerate(self.children):
            rows = np.flatnonzero(branch == j)
            if child is None:
                answer[rows] = first
            elif rows.size:
                answer[rows] = first + child.cells(points[rows])
            first += 1 if child is None else child.n_cells
        return answer

    def leaf_centers(self) -> Array:
        """The center of every cell, shape (n_cells, n_features)."""
        parts = zip(self.centers, self.children, strict=True)
        return np.vstack([z[None, :] if child is None else child.leaf_centers() for z, child in parts])


class RandomChunks(Cover):
    """Random parts of the table; the answer is the mean of what all of them say.

    Divide and conquer (Zhang, Duchi and Wainwright, JMLR 2015), the baseline of Meister and Steinwart.

    Parameters
    ----------
    n_chunks : int, >= 1
    random_state : int, numpy.random.Generator or None
    """

    average = True

    def __init__(self, n_chunks: int, random_state: Any = None) -> None:
        self.n_cells = check_whole_number("n_chunks", n_chunks, low=1)
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"RandomChunks({self.n_cells})"

    def cells(self, X: Any) -> Index:
        """All chunks predict at all points; 0 stands for them."""
        return np.zeros(len(check_points(X)), dtype=np.intp)

    def assigned(self, X: Any) -> tuple[Index, Assignment]:
        m = len(check_points(X))
        if self.n_cells > m:
            raise InvalidInputError(f"n_chunks is {self.n_cells}, but there are only {m} points; ask for fewer chunks.")
        labels = np.random.default_rng(self.random_state).permutation(m) % self.n_cells
        return np.zeros(m, dtype=np.intp), Assignment.from_labels(labels, self.n_cells)
