"""What is said of a table: of rows that have a place, of weighted quantiles, and of parts that are merged."""

from __future__ import annotations

from math import comb

import numpy as np

from convexkernels.arrays import Array, Mask
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.checking import Verdict
from convexkernels.estimators.outliers import are_neighbors
from convexkernels.estimators.probabilities import ROWS_OF_A_SLOPE, Sigmoid
from proofs_check.claim import Claim

Generator = np.random.Generator
# The quantile of a standard normal variable that 0.5 percent are above.
HALF_PERCENT = 2.5758293035489004


def with_strange_neighbors(marked: Mask) -> Array:
    """Ascending numbers, of marked ones at most two in a row: none of them is nearest to a marked one."""
    steps = np.where(marked[1:] & marked[:-1], 10.0, np.where(marked[1:] | marked[:-1], 0.1, 1.0))
    return np.append(0.0, np.cumsum(steps))


def share_of_pairs(m: int, count: int, pairs: int) -> float:
    """Of all ways to mark `count` of m in a row the share with so many neighbors or more: count - pairs runs at most.

    There are ``(count - 1 over r - 1) (m - count + 1 over r)`` ways with r runs.
    """
    ways = sum(comb(count - 1, runs - 1) * comb(m - count + 1, runs) for runs in range(1, count - pairs + 1))
    return ways / comb(m, count)


def measure_neighbors(chance: float, rng: Generator) -> Verdict:
    """Two pairs of neighbors among four rows in the order of a column are no chance where hardly any four have them.

    That is less than 1 percent, around the middle of the column, where mean ranks say nothing. Single rows are not
    there by chance where their mean rank is farther from the middle than 99 percent of means without replacement.
    `chance` is 0.01.
    """
    m, wrong = int(rng.integers(20, 90)), 0
    marked, at = np.zeros(m, dtype=bool), int(rng.integers(2, m // 2 - 3))
    marked[[at, at + 1, m - 2 - at, m - 1 - at]] = True
    order = rng.permutation(m)
    column = with_strange_neighbors(marked)[:, None]
    wrong += int(are_neighbors(column[order], marked[order]) != (share_of_pairs(m, 4, 2) < chance))
    m, count = int(rng.integers(16, 40)), 6
    span, marked = int(rng.integers(2 * count, m + 1)), np.zeros(m, dtype=bool)
    marked[np.sort(rng.permutation(span - count + 1)[:count]) + np.arange(count)] = True  # no two in a row
    mean = float(np.mean(np.flatnonzero(marked)))
    variance = (m * m - 1.0) / 12.0 / count * (m - count) / (m - 1.0)
    told = abs(mean - 0.5 * (m - 1.0)) > HALF_PERCENT * np.sqrt(variance)
    column, order = with_strange_neighbors(marked)[:, None], rng.permutation(m)
    wrong += int(are_neighbors(column[order], marked[order]) != told)
    return Verdict(float(wrong), 0.0, 1, {"marked": marked, "column": column})


def measure_knots(more: float, rng: Generator) -> Verdict:
    """Slopes of a link change where the weights of values on a side of 0 are divided evenly, at one of the values.

    `more` is added to the shares that are asked for.
    """
    m, pieces = 5 * ROWS_OF_A_SLOPE, 2
    F, weights = rng.standard_normal((m, 1)), rng.uniform(0.2, 1.0, m)
    F[:, 0] *= np.where(rng.permutation(m) % 2, 1.0, -1.0)
    weights[np.abs(F[:, 0]) > np.median(np.abs(F))] *= 6.0
    codes = (F[:, 0] + 0.5 * rng.standard_normal(m) > 0.0).astype(np.intp)
    found, wrong = Sigmoid.of(F, codes, weights, pieces).knots, 0.0
    for sign in (-1.0, 1.0):
        own = sign * F[:, 0] > 0.0
        if own.sum() < pieces * ROWS_OF_A_SLOPE:
            continue
        values, shares = F[own, 0], weights[own] / weights[own].sum()
        (knot,) = found[sign * found > 0.0]
        up_to, below = float(shares[values <= knot].sum()), float(shares[values < knot].sum())
        wrong = max(wrong, 0.5 + more - up_to, below - 0.5 - more)
    return Verdict(max(0.0, wrong), 1e-12, 1, {"F": F, "weights": weights, "knots": found})


def measure_summaries(factor: float, rng: Generator) -> Verdict:
    """Parts of a table are merged to its classes, ranges, weights and a sample, whose rows stand for all equal ones.

    Whatever the parts are, and in what order they come; `factor` multiplies weights.
    """
    m, labels = 40, bool(rng.integers(2))
    rows = rng.standard_normal((15, 2))[rng.integers(0, 15, m)]
    y = rng.integers(0, 3, m).astype(np.float64) if labels else np.round(rows[:, 0], 1)
    weights, size = rng.uniform(0.2, 3.0, m), int(rng.integers(4, 40))
    cuts = np.array_split(rng.permutation(m), int(rng.integers(1, 5)))
    parts = [
        TableSummary.of_rows(rows[part], y[part], weights[part], labels=labels, size=size, seed=3) for part in cuts
    ]
    found = TableSummary.merged([None, *parts], labels=labels, size=size)
    assert found is not None
    alike = [(rows == x).all(axis=1) & (y == t) for x, t in zip(found.X, found.y, strict=True)]
    apart = [abs(w - factor * float(weights[same].sum())) for w, same in zip(found.weights, alike, strict=True)]
    distinct = {(*x, t) for x, t in zip(rows.tolist(), y.tolist(), strict=True)}
    taken = {(*x, t) for x, t in zip(found.X.tolist(), found.y.tolist(), strict=True)}
    apart += [float(len(taken) != min(size, len(distinct))), float(len(found.X) != len(taken)), abs(found.n_rows - m)]
    groups = [y == t for t in np.unique(y)] if labels else [np.ones(m, dtype=bool)]
    for group, total, low, high in zip(groups, found.totals, found.low, found.high, strict=True):
        apart += [abs(float(total) - factor * float(weights[group].sum()))]
        apart += [float(np.abs([low - rows[group].min(axis=0), high - rows[group].max(axis=0)]).max())]
    targets = np.unique(y) if labels else np.array([y.min(), y.max()])
    apart.append(float(np.abs(found.targets - targets).max()))
    return Verdict(float(max(apart)), 1e-12, 1, {"X": rows, "y": y, "weights": weights})


def table_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "rows-with-a-place",
            "Rows with outliers have a place where neighbors in a column, or their mean rank, are less likely than 1 "
            "percent by chance.",
            *(paper, "estimators, outliers", measure_neighbors, 0.01, 0.05),
            trials=60,
        ),
        Claim(
            "knots-of-links",
            "The slopes of a link change where the weights of values on a side of 0 are divided evenly.",
            *(paper, "estimators, probabilities", measure_knots, 0.0, 0.05),
        ),
        Claim(
            "summaries-of-parts",
            "Parts of a table are merged to its classes, ranges, weights and a sample of distinct rows.",
            *(paper, "cells, tables in parts", measure_summaries, 1.0, 1.001),
        ),
    ]
