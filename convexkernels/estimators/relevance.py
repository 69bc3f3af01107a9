"""How much learned functions answer to each feature, and how many dimensions a learned kernel has."""

from collections.abc import Callable

import numpy as np

from convexkernels.arrays import Array

# Rows at which functions are looked at, and points in all: their number times that of the features is limited.
ROWS, FEWEST_ROWS, POINTS = 500, 50, 20_000
# How far a feature is moved, in its standard deviations.
STEP = 0.5


def spread_rows(m: int, most: int) -> Array:
    """At most so many of m rows, from the first to the last."""
    return np.unique(np.linspace(0, m - 1, min(m, most)).round().astype(np.intp))


def relevance(changes: Callable[[Array, Array], Array], X: Array) -> Array:
    """Mean change of the functions when a feature moves by half its standard deviation, as shares that sum to 1.

    Each output counts alike; shares of functions that are constant are all alike. ``changes(points, steps)`` is that of
    a :class:`DecisionFunction`.
    """
    n = X.shape[1]
    at = X[spread_rows(len(X), max(FEWEST_ROWS, min(ROWS, POINTS // (2 * n))))]
    found = np.abs(changes(at, STEP * X.std(axis=0))).mean(axis=1)
    totals = found.sum(axis=0)
    if not (totals > 0.0).any():
        return np.full(n, 1.0 / n)
    return np.asarray((found[:, totals > 0.0] / totals[totals > 0.0]).mean(axis=1))


def effective_rank(K: Array) -> float:
    """``trace(K)^2 / |K|_F^2``: the number of eigenvalues where they are equal, less where they are not."""
    norm = float(np.linalg.norm(K))
    return (float(np.trace(K)) / norm) ** 2 if norm > 0.0 else 0.0
