"""Farthest-first traversal: centers, each the point farthest from those before it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.compiled import MATRIX, compiled
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.distances import Metric
from convexkernels.validation import check_number, check_points, check_whole_number


@dataclass(frozen=True, eq=False)
class Traversal:
    """Centers in the order they were found.

    Attributes
    ----------
    centers : ndarray of int, shape (k,)
        Rows of the table; the first is the start.
    radii : ndarray of shape (k,)
        ``radii[j]``: largest distance of a point to the first j + 1 centers. Not increasing; any two of the first
        j + 1 centers are at least ``radii[j - 1]`` apart.
    owner : ndarray of int, shape (m,)
        Place, in `centers`, of the center nearest to each point, ties to the smallest.
    distances : ndarray of shape (m,)
        Distance to it.
    """

    centers: Index
    radii: Array
    owner: Index
    distances: Array


def farthest_first(X: Any, *, radius: float = 0.0, n_centers: int | None = None, start: int = 0) -> Traversal:
    """Take the point farthest from the centers as the next one, until all points are within `radius` of one.

    Parameters
    ----------
    X : array-like of shape (m, n_features)
    radius : float, >= 0
        0 goes on until every point coincides with a center.
    n_centers : int, optional
        Stop at so many centers even if points are farther than `radius`.
    start : int
        Row of the first center ("arbitrary" in the paper).

    Returns
    -------
    Traversal

    Notes
    -----
    [MS16 Algorithm 1], after [Gon85]: its radius is at most twice the least one that so many centers can have.
    Distances are differences, not expanded squares, so that equal points are at distance exactly 0. A center changes
    nothing for the points of a cell whose center is more than twice as far from it as the point is: most distances
    are never computed. At most O(k m n_features), typically little more than O(k m).
    """
    points = check_points(X)
    m = points.shape[0]
    radius = check_number("radius", radius, low=0.0)
    limit = m if n_centers is None else check_whole_number("n_centers", n_centers, low=1)
    if limit > m:
        raise InvalidInputError(f"n_centers is {limit}, but there are only {m} points; ask for at most {m} centers.")
    return Traversal(*_traverse(points, radius, limit, 0, _checked_start(start, m)))


def split_largest(X: Any, max_cell_size: int, *, start: int = 0) -> Traversal:
    """Centers whose Voronoi cells have at most `max_cell_size` points each; only cells of equal points have more.

    The next center is the point of the largest cell farthest from that cell's center, until no cell is too large. Plain
    farthest-first traversal would spend most centers on outliers, long before it divides the dense regions. The first
    is row number `start`; radii need not fall to the least possible ones, as centers go where the points are.
    """
    points = check_points(X)
    size = check_whole_number("max_cell_size", max_cell_size, low=2, remedy="A cell of one point learns nothing.")
    m = len(points)
    return Traversal(*_traverse(points, 0.0, m, size, _checked_start(start, m)))


def _checked_start(start: Any, m: int) -> int:
    first = check_whole_number("start", start, low=0)
    if first >= m:
        raise InvalidInputError(f"start is {first}, but X has {m} rows; choose a row in [0, {m}).")
    return first


def traverse_in(
    metric: Metric, X: Array, *, radius: float = 0.0, n_centers: int | None = None, size: int | None = None, start: int
) -> Traversal:
    """As `farthest_first`, or with a `size` as `split_largest`, for distances of a metric; O(k m) of them."""
    m, distances = len(X), metric.distances_from(X)
    owner, square, centers, radii = np.zeros(m, dtype=np.intp), np.full(m, np.inf), [start], []
    while True:
        near = distances(centers[-1])
        near[centers[-1]] = 0.0
        closer = near < square
        square[closer], owner[closer] = near[closer], len(centers) - 1
        radii.append(float(np.sqrt(square.max())))
        inside = np.arange(m)
        if size is None:
            done = len(centers) == n_centers or radii[-1] <= radius
        else:
            farthest = np.zeros(len(centers))
            np.maximum.at(farthest, owner, square)
            # Cells of equal points cannot be split.
            counts = np.where(farthest > 0.0, np.bincount(owner, minlength=len(centers)), 0)
            inside, done = np.flatnonzero(owner == counts.argmax()), int(counts.max()) <= size
        if done:
            return Traversal(np.array(centers), np.array(radii), owner, np.sqrt(square))
        centers.append(int(inside[square[inside].argmax()]))


@compiled(f"({MATRIX},f8,i8,i8,i8)")
def _traverse(X: Array, radius: float, limit: int, size: int, start: int) -> tuple[Index, Array, Index, Array]:
    """Centers until there are `limit`, or all points are within `radius`; with a `size` > 0 those of largest cells."""
    m = X.shape[0]
    owner = np.zeros(m, dtype=np.intp)
    square = np.full(m, np.inf)
    centers = np.empty(limit, dtype=np.intp)
    radii = np.empty(limit)
    between = np.empty(limit)
    count, chosen = 0, start
    while True:
        centers[count] = chosen
        _add_center(X, chosen, count, centers, between, owner, square)
        chosen = int(np.argmax(square))
        radii[count] = np.sqrt(square[chosen])
        count += 1
        if size > 0:
            chosen = _in_largest(owner, square, count, size)
        if chosen < 0 or count == limit or radii[count - 1] <= radius:
            break
    return centers[:count].copy(), radii[:count].copy(), owner, np.sqrt(square)


@compiled()
def _in_largest(owner: Index, square: Array, count: int, size: int) -> int:
    """The point of the largest cell that is farthest from its center; -1 where no cell has more than `size` points."""
    counts = np.zeros(count, dtype=np.intp)
    farthest = np.full(count, -1.0)
    reached = np.zeros(count, dtype=np.intp)
    for i in range(owner.shape[0]):
        j = owner[i]
        counts[j] += 1
        if square[i] > farthest[j]:
            farthest[j] = square[i]
            reached[j] = i
    largest = -1
    for j in range(count):
        # Cells of equal points cannot be split.
        if counts[j] > size and farthest[j] > 0.0 and (largest < 0 or counts[j] > counts[largest]):
            largest = j
    return reached[largest] if largest >= 0 else -1


@compiled()
def _add_center(X: Array, chosen: int, count: int, centers: Index, between: Array, owner: Index, square: Array) -> None:
    m, n = X.shape
    # A quarter of the squared distance to every earlier center; rounding is kept on the safe side.
    for j in range(count):
        total = 0.0
        for k in range(n):
            gap = X[chosen, k] - X[centers[j], k]
            total += gap * gap
        between[j] = total * 0.25 * (1.0 - 1e-10)
    for i in range(m):
        if count == 0 or square[i] > between[owner[i]]:
            total = 0.0
            for k in range(n):
                gap = X[i, k] - X[chosen, k]
                total += gap * gap
            if total < square[i]:
                square[i] = total
                owner[i] = count
