"""Targets and entries of a table that are far from all others."""

import numpy as np
from scipy.stats import chi2, hypergeom, poisson, rankdata

from convexkernels.arrays import NORMAL_NINE_TENTHS, Array, Index, Mask, distinct_rows
from convexkernels.cells.sampling import content_keys
from convexkernels.validation import LARGEST_MAGNITUDE

# Outliers rule the squares of targets where these say more than so many times what nine sizes of ten say (tables of
# skewed numbers, and of such as are mostly 0, have at most 1.7), and are farther than so many of the latter.
RULING, FARTHEST = 2.0, 4.0
# Farther ones than those that are to be learned are at least so many times as far.
GAP = 2.0
# So few, about which chance says nothing, are outliers where they are so many times as far as all others.
FEW, LONELY = 2, 10.0
# The least deviation, of the largest size, in units of which numbers can be.
LEAST_UNIT = 1e-50
# Probability below which rows with outliers are neighbors not by chance.
CHANCE = 0.01
# Rows with outliers whose nearest ones are looked for, and up to what part numbers are alike.
ASKED, ALIKE = 200, 1e-9
# A column has outliers where entries are farther from its median than so many deviations, as nine distances of ten say,
# which are moved to within so many: 999 for what is not known leaves others a hundredth of the range.
FAR_ENTRY, MOVED_TO = 40.0, 8.0
# On either side they are a part of the rows, or all have one value (what is not known); others are groups of rows.
RARE = 0.01
# Rows that medians are taken of.
LOOKED_AT = 10_000


def deviations(values: Array, weights: Array) -> tuple[Array, Array]:
    """Median and deviation of columns of shape (m, n), the latter as nine distances of ten from it say."""
    center = np.quantile(values, 0.5, axis=0, weights=weights, method="inverted_cdf")
    distances = np.quantile(np.abs(values - center), 0.9, axis=0, weights=weights, method="inverted_cdf")
    return center, distances / NORMAL_NINE_TENTHS


def usual_range(X: Array, Y: Array, weights: Array) -> tuple[Array, Array]:
    """Between what targets of shape (n_outputs, m) are no outliers, shapes (n_outputs, 1); without limits for most.

    Outliers rule the squares of an output and are farther than four deviations from its median (one or two of them ten
    times as far as all others), in rows that have nothing in common: where these have a place, large targets are what
    is to be learned, and only farther ones can be outliers.
    """
    sizes = np.maximum(np.abs(Y).max(axis=1), np.finfo(np.float64).tiny)
    center, unit = deviations((Y.T / sizes), weights)
    distances = np.abs(Y.T / sizes - center)
    reach = np.full(len(Y), np.inf)
    squares = np.average(distances**2, axis=0, weights=weights)
    rule = np.flatnonzero((squares > (RULING * unit) ** 2) & (unit > LEAST_UNIT))
    if len(rule):
        _, first, places = distinct_rows(np.hstack([X, Y.T]))  # a row that is there twice is no neighbor of itself
        X, weights = X[first], np.bincount(places, weights).astype(np.float64)
        reach[rule] = [_reach(X, distances[first, k], float(unit[k]), weights) for k in rule.tolist()]
    low, high = (center - reach) * sizes, (center + reach) * sizes
    return low[:, None], high[:, None]


def _reach(X: Array, distances: Array, unit: float, weights: Array) -> float:
    """The distance from the median, of rows of such a deviation, beyond which targets are outliers; inf where none."""
    far = np.sort(distances[distances > FARTHEST * unit])
    at = np.flatnonzero(far[1:] > GAP * far[:-1])
    squares = np.average(distances**2, weights=weights)
    for reach in [FARTHEST * unit, *(np.sqrt(GAP) * far[at]).tolist()] if len(far) else []:
        beyond = distances > reach
        inside = np.average(distances**2, weights=np.where(beyond, 0.0, weights))
        if squares <= RULING**2 * inside:
            break
        few = beyond.sum() <= FEW
        if distances[beyond].min() >= LONELY * distances[~beyond].max() if few else not are_neighbors(X, beyond):
            return float(reach)
    return np.inf


def are_neighbors(X: Array, marked: Mask) -> bool:
    """Whether rows that are marked have a place: not by chance.

    They are at one end of columns, by their mean ranks in all of them together, follow each other in a column, or are
    nearest to each other. Rows that are alike come in no order: tables are sorted, in the end by targets.
    """
    rng, m, count = np.random.default_rng(0), len(X), int(marked.sum())
    order = rng.permutation(m)
    X, marked = X[order], marked[order]
    ranks = distinct_rows(rankdata(X, axis=0).T)[0].T  # two columns of the same order are one chance
    ranks = ranks[:, np.ptp(ranks, axis=0) > 0.0]
    if not ranks.size:
        return False
    U, sizes, _ = np.linalg.svd(ranks - 0.5 * (m + 1.0), full_matrices=False)
    U = U[:, sizes > ALIKE * sizes[0]]
    # Mean ranks against their covariance, which is (m - count) / (m count) that of ranks.
    if chi2.sf((m - 1) * m / (count * (m - count)) * np.square(U[marked].sum(axis=0)).sum(), U.shape[1]) < CHANCE:
        return True
    for column in ranks.T:
        in_order = marked[np.argsort(column, kind="stable")]
        pairs = int((in_order[1:] & in_order[:-1]).sum())
        if hypergeom.sf(pairs - 1, m, count - 1, count) * ranks.shape[1] < CHANCE:  # exact
            return True
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    lengths, asked = np.square(Z).sum(axis=1), np.flatnonzero(marked)[:ASKED]
    found = set()
    for row in asked.tolist():
        distances = lengths - 2.0 * (Z @ Z[row])
        distances[row] = np.inf
        near = int(rng.choice(np.flatnonzero(distances <= distances.min() + ALIKE * lengths[row])))
        if marked[near]:
            found.add((min(row, near), max(row, near)))  # two that are nearest to each other are so by one chance
    return bool(poisson.sf(len(found) - 1, len(asked) * (count - 1) / max(m - 1, 1)) < CHANCE)


def without_outliers(X: Array, Y: Array, weights: Array) -> tuple[Index, Array, float]:
    """Rows without an outlier, their targets on [-1, 1] for squares to learn from, and the least unit of an output.

    Of outputs with outliers it is the range of the others that is taken onto [-1, 1]. Where less than half of the rows
    have none in any output, all rows are learned from, and the ends of the usual range stand for what is beyond.
    """
    low, high = usual_range(X, Y, weights)
    has, rows = np.isfinite(low), np.flatnonzero(((low <= Y) & (high >= Y)).all(axis=0))
    rows = rows if 2 * len(rows) >= len(X) else np.arange(len(X))
    Y = np.clip(Y[:, rows], low, high)
    low = np.where(has, Y.min(axis=1, keepdims=True), -1.0)
    high = np.where(has, Y.max(axis=1, keepdims=True), 1.0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    half = np.where(half > 0.0, half, 1.0)
    return rows, np.clip((Y - middle) / half, -1.0, 1.0), float(half.min())


def usual_weights(X: Array, Y: Array, weights: Array) -> Array:
    """Weights of targets, shape (n_outputs, m): those of the rows, 0 for outliers."""
    low, high = usual_range(X, Y, weights)
    return np.where((low <= Y) & (high >= Y), weights, 0.0)


def mean_of_targets(Y: Array, weights: Array) -> Array:
    """Of every output, both of shape (n_outputs, m), the mean, shape (n_outputs, 1); 0 where nothing has a weight."""
    return np.sum(weights * Y, axis=1, keepdims=True) / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)


def usual_share(y: Array, limits: tuple[Array, Array], weights: Array) -> float:
    """Of what targets of shape (m,) or (m, n_outputs) are apart from their center, the part within limits.

    Outputs count alike.
    """
    if np.isinf(limits[0]).all():
        return 1.0
    usual = np.clip(y, *limits)
    center = np.average(usual, axis=0, weights=weights)
    within, whole = (weights @ np.abs(some - center) for some in (usual, y))
    unit = np.where(within > 0.0, within, 1.0)
    return float(np.sum(within / unit) / np.sum(whole / unit))


def usual_limits(X: Array) -> tuple[Array, Array] | None:
    """Between what entries of every column are no outliers, shapes (n_features,); huge numbers, or None, where none is.

    Rows count once; medians of long tables are those of rows that are drawn by what they hold.
    """
    keys, first = np.unique(content_keys(X), return_index=True)
    rows = X[first[:LOOKED_AT]] if len(keys) > LOOKED_AT else distinct_rows(X)[0]
    center, unit = deviations(rows, np.ones(len(rows)))
    low, high = center - FAR_ENTRY * unit, center + FAR_ENTRY * unit
    has = ((X.min(axis=0) < low) | (X.max(axis=0) > high)) & (unit > 0.0)
    for j in np.flatnonzero(has):
        column = X[first, j]
        sides = column[column < low[j]], column[column > high[j]]
        has[j] = all(len(far) <= max(1.0, RARE * len(column)) or np.ptp(far) == 0.0 for far in sides)
    reach = np.where(has, MOVED_TO * unit, LARGEST_MAGNITUDE)
    center = np.where(has, center, 0.0)
    return (center - reach, center + reach) if has.any() else None
