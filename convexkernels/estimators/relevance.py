"""How much learned functions answer to each feature, and how many dimensions a learned kernel has."""

from collections.abc import Callable, Sequence

import numpy as np

from convexkernels.arrays import Array, Index, distinct_rows

# Rows at which functions are looked at, and points in all: their number times that of the features is limited.
ROWS, FEWEST_ROWS, POINTS = 500, 50, 20_000
# How far a feature is moved, in its standard deviations: about half of the distance between two rows.
STEP = 0.5


def spread_rows(m: int, most: int) -> Array:
    """At most so many of m rows, from the first to the last."""
    return np.unique(np.linspace(0, m - 1, min(m, most)).round().astype(np.intp))


def relevance(
    changes: Callable[[Array, Array], Array],
    values: Callable[[Array], Array],
    X: Array,
    categories: Sequence[Index] = (),
) -> Array:
    """Mean change of the functions when a feature moves by half its standard deviation, as shares that sum to 1.

    What has a few values is never in between, and a narrow kernel says nothing about a small step from one of them:
    instead of it counts half of the mean change when a category, whose columns are given, or a column of two values
    becomes that of another row. Each output counts alike; shares of functions that are constant are all alike.
    ``changes(points, steps)`` is that of a :class:`DecisionFunction`, with the ``values(points)``.
    """
    n = X.shape[1]
    at = X[spread_rows(len(X), max(FEWEST_ROWS, min(ROWS, POINTS // (2 * n))))]
    steps, known = STEP * X.std(axis=0), np.concatenate([np.zeros(0, dtype=np.intp), *categories])
    pairs = [np.array([j]) for j in np.setdiff1d(np.arange(n), known) if _has_two_values(X[:, j])]
    jumps = [group for group in (*categories, *pairs) if len(group)]
    steps[[j for group in jumps for j in group]] = 0.0
    found = np.abs(changes(at, steps)).mean(axis=1)
    if jumps:
        F = values(at).reshape(len(at), -1)
        found = found + np.zeros(F.shape[1])  # constants have one slope for all
    for group in jumps:
        levels, _, level_of = distinct_rows(X[:, group])
        shares = np.bincount(level_of) / len(X)
        for level, share in zip(levels, shares.tolist(), strict=True):
            moved = at.copy()
            moved[:, group] = level
            # The change is that of the category that comes: its indicator is what stands out.
            j = group[int(np.argmax(level - levels.min(axis=0)))]
            found[j] += STEP * share * np.abs(values(moved).reshape(len(at), -1) - F).mean(axis=0)
    totals = found.sum(axis=0)
    if not (totals > 0.0).any():
        return np.full(n, 1.0 / n)
    return np.asarray((found[:, totals > 0.0] / totals[totals > 0.0]).mean(axis=1))


def _has_two_values(column: Array) -> bool:
    return bool(((column == column.min()) | (column == column.max())).all() and column.min() < column.max())


def effective_rank(K: Array) -> float:
    """``trace(K)^2 / |K|_F^2``: the number of eigenvalues where they are equal, less where they are not."""
    norm = float(np.linalg.norm(K))
    return (float(np.trace(K)) / norm) ** 2 if norm > 0.0 else 0.0
