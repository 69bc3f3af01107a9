"""Making covers: by radius, by the size of the largest cell, or by what time and memory allow."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cells.cover import Cover, OverlappingCover, TreeCover, VoronoiCover
from convexkernels.cells.sampling import Keys, least
from convexkernels.cells.traversal import Traversal, farthest_first, split_largest, traverse_in
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_number, check_points, check_whole_number

# Branches of a tree at each node: few enough for a short search, enough to stay shallow.
BRANCHES = 16


def voronoi_cover(
    X: Any,
    *,
    radius: float | None = None,
    n_cells: int | None = None,
    max_cell_size: int | None = None,
    overlap: float = 0.0,
    subset: int | None = None,
    n_rows: int | None = None,
    random_state: Any = None,
    kernel: Kernel | None = None,
    keys: Keys | None = None,
) -> VoronoiCover:
    """Voronoi cells around centers found by farthest-first traversal.

    Parameters
    ----------
    X : array-like of shape (m, n_features)
    radius : float, > 0
        Every point is within it of its center.
    n_cells : int, >= 1
        Number of centers.
    max_cell_size : int, >= 2
        Most points of a cell. Exactly one of these three is given.
    overlap : float, >= 0
        More than 0 for an `OverlappingCover`.
    subset : int, optional
        Look for centers among so many random points only; radius and size then hold for these, and for all
        points about.
    n_rows : int, optional
        Rows of the table that `X` is a random sample of, and that `max_cell_size` is meant for; its own when not
        given.
    random_state : int, numpy.random.Generator or None
        Of the subset.
    kernel : Kernel, optional
        Distances, and the radius, are those of its geometry.
    keys : ndarray of shape (m,), optional
        Random numbers, in the place of `random_state`: the rows with the least are the subset.

    Returns
    -------
    VoronoiCover
    """
    points = check_points(X)
    overlap = check_number("overlap", overlap, low=0.0)
    given = {"radius": radius, "n_cells": n_cells, "max_cell_size": max_cell_size}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(f"give exactly one of radius, n_cells and max_cell_size, got {named or 'none'}.")
    m = len(points)
    if radius is not None:
        check_number("radius", radius, low=0.0, open_low=True, remedy="With radius 0 every point would be a cell.")
    if n_cells is not None and check_whole_number("n_cells", n_cells, low=1) > m:
        raise InvalidInputError(f"n_cells is {n_cells}, but there are only {m} points; ask for at most {m} cells.")
    if max_cell_size is not None:
        check_whole_number("max_cell_size", max_cell_size, low=2, remedy="A cell of one point learns nothing.")
    sample = _sample(points, subset, random_state, keys, n_cells or 0)
    found = _traversal(sample, radius, n_cells, max_cell_size, len(sample) / (n_rows or m), kernel)
    centers = sample[found.centers]
    if overlap > 0.0:
        return OverlappingCover(centers, overlap, float(found.radii[-1]), kernel)
    return VoronoiCover(centers, float(found.radii[-1]), kernel)


def _sample(points: Array, subset: int | None, random_state: Any, keys: Keys | None, at_least: int = 0) -> Array:
    m = len(points)
    if subset is None or check_whole_number("subset", subset, low=2) >= m:
        return points
    drawn = np.random.default_rng(random_state).random(m) if keys is None else keys
    return points[least(drawn, max(subset, at_least))]


def _traversal(
    X: Array,
    radius: float | None,
    n_cells: int | None,
    max_cell_size: int | None,
    share: float,
    kernel: Kernel | None = None,
) -> Traversal:
    """Traverse from the point farthest from the mean, so that the order of the rows matters only for ties.

    A start at the border leaves fewer and more even cells than one in the middle.
    """
    offset = X - X.mean(axis=0)
    start = int(np.argmax(np.einsum("ij,ij->i", offset, offset)))
    size = None if max_cell_size is None else max(2, int(share * max_cell_size))
    if kernel is not None:
        return traverse_in(kernel, X, radius=radius or 0.0, n_centers=n_cells, size=size, start=start)
    if size is not None:
        return split_largest(X, size, start=start)
    return farthest_first(X, radius=radius or 0.0, n_centers=n_cells, start=start)


def tree_cover(
    X: Any,
    *,
    max_cell_size: int,
    branches: int = BRANCHES,
    subset: int | None = None,
    n_rows: int | None = None,
    random_state: Any = None,
    keys: Keys | None = None,
) -> Cover:
    """Divide cells again and again until none has more than `max_cell_size` points.

    Parameters
    ----------
    X : array-like of shape (m, n_features)
    max_cell_size : int, >= 2
        Only a cell of equal points may have more.
    branches : int, >= 2
        Most parts of a cell.
    subset, n_rows, random_state, keys
        As in `voronoi_cover`.

    Returns
    -------
    TreeCover, or a VoronoiCover of one cell when nothing has to be divided
    """
    points = check_points(X)
    size = check_whole_number("max_cell_size", max_cell_size, low=2, remedy="A cell of one point learns nothing.")
    branches = check_whole_number("branches", branches, low=2)
    sample = _sample(points, subset, random_state, keys)
    root = _branch(sample, max(2, int(size * len(sample) / (n_rows or len(points)))), branches)
    return VoronoiCover(points.mean(axis=0)[None, :]) if root is None else root


def _branch(X: Array, size: int, branches: int) -> TreeCover | None:
    if len(X) <= size:
        return None
    parts = min(branches, max(2, -(-len(X) // size)), len(X))
    found = _traversal(X, None, parts, None, 1.0)
    if found.radii[0] == 0.0:
        return None
    children = [_branch(X[found.owner == j], size, branches) for j in range(len(found.centers))]
    return TreeCover(X[found.centers], children)


def cell_size_within(
    X: Any,
    *,
    time_budget: float | None = None,
    memory_budget: float | None = None,
    seconds_of: Callable[[int], float],
    bytes_of: Callable[[int], float],
    subset: int = 10_000,
    n_rows: int | None = None,
    random_state: Any = None,
    kernel: Kernel | None = None,
    keys: Keys | None = None,
) -> int:
    """The largest cell size, among m, m/2, m/4, ... for m rows, whose partition stays within a budget.

    The procedure at the end of [MS16 Section 4.2]: partitions of a random subset for a few candidates, costs estimated
    cell by cell, and the coarsest partition that can be afforded. `time_budget` is for all cells together,
    `memory_budget`, in bytes, for one; `seconds_of` and `bytes_of` say what a cell costs by its number of points. X may
    be a random sample of `n_rows`. Budgets that the smallest cells exceed are refused.
    """
    points = check_points(X)
    for name, value in (("time_budget", time_budget), ("memory_budget", memory_budget)):
        if value is not None:
            check_number(name, value, low=0.0, open_low=True)
    m = n_rows or len(points)
    sample = _sample(points, max(2, min(subset, len(points))), random_state, keys)
    scale = m / len(sample)
    size, least = m, np.inf
    while size >= 2:
        sizes = np.array([m])
        if size < m:
            found = _traversal(sample, None, None, size, 1.0 / scale, kernel)
            sizes = np.ceil(scale * np.bincount(found.owner)).astype(np.intp)
        seconds = sum(seconds_of(int(count)) for count in sizes)
        least = min(least, seconds)
        fits = time_budget is None or seconds <= time_budget
        if fits and (memory_budget is None or bytes_of(int(sizes.max())) <= memory_budget):
            return max(2, min(size, m))
        if int(size / scale) < 4:
            break
        size //= 2
    raise InvalidInputError(
        f"time_budget={time_budget} s and memory_budget={memory_budget} bytes are too small for {m} points: the "
        f"cheapest partition takes about {least:.3g} s and {bytes_of(2):.3g} bytes; raise the budget."
    )
