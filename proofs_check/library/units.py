"""Units of features and targets, and what rows say of functions that have not seen them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from convexkernels import Candidates, Gaussian, Hinge, KernelLearning, LeastSquares, Polynomial
from convexkernels.cells.sampling import rows_by_share
from convexkernels.checking import Verdict
from convexkernels.criteria.folds import split_rows, spread_sample
from convexkernels.estimators.left_out import LeftOut, left_out_values
from convexkernels.estimators.outliers import usual_limits
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, NumberTargets
from convexkernels.kernels.distances import typical_of
from convexkernels.problems.decision_function import DecisionFunction
from proofs_check.claim import Claim
from proofs_check.risk_formulas import gram, ridge

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def measure_scaling(factor: float, rng: Generator) -> Verdict:
    """Columns go onto [0, 1], onto [-1, 1], to mean 0 and variance 1, or to the middle where that is far.

    Those of one category have variances that add up to 1; a kernel after the map is one before it. `factor` multiplies
    what columns are divided by.
    """
    m = 12
    X = rng.normal(0.0, 3.0, (m, 5)) + rng.normal(0.0, 5.0, 5)
    X[:, 2:4], X[:, 4] = np.eye(3)[rng.permutation(np.arange(m) % 3)][:, :2], 5e4 + rng.uniform(-1.0, 1.0, m)
    unit, box = (make(X).apply(X) * factor for make in (Scaling.to_unit_box, Scaling.to_symmetric_box))
    standard = Scaling.standard(X, [[2, 3]]).apply(X) * factor
    far = Scaling.towards_zero(X).apply(X)
    variances = np.mean(standard**2, axis=0)
    apart = [
        np.abs(
            np.array([unit.min(axis=0), unit.max(axis=0) - 1.0, box.min(axis=0) + 1.0, box.max(axis=0) - 1.0])
        ).max(),
        np.abs(standard.mean(axis=0)).max(),
        np.abs(variances[[0, 1, 4]] - 1.0).max() + abs(variances[2] + variances[3] - 1.0),
        np.abs(far[:, :4] - X[:, :4]).max() + abs(far[:, 4].min() + far[:, 4].max()),
    ]
    scaling, factors = Scaling.to_unit_box(X), rng.uniform(0.3, 3.0, 5)
    learned: Any = Scaling(scaling.offset, scaling.scale, scaling.columns, factors)
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0) * factors * factor
    apart.append(np.abs(learned.pull_back(Gaussian(0.7))(X) - Gaussian(0.7)(Z)).max())
    # Values of 50,000 have lost as many digits.
    return Verdict(float(max(apart)), 1e-9, 1, {"X": X, "factors": factors})


def measure_far_entries(factor: float, rng: Generator) -> Verdict:
    """Entries farther from the median than 40 deviations, as nine distances of ten say, are moved to eight of them.

    `factor` multiplies the eight. Rows count once, and other columns are as they were.
    """
    X = rng.normal(size=(41, 3))
    column = np.sort(X[:, 1])
    middle = column[20]
    far = float(rng.choice([39.0, 41.0, -41.0]))
    # An end before and after: median and distances are those of the order of the others.
    at = int(np.argmax(X[:, 1])) if far > 0.0 else int(np.argmin(X[:, 1]))
    X[at, 1] = 1e6 * np.sign(far)
    unit = np.sort(np.abs(X[:, 1] - middle))[int(np.ceil(0.9 * 41)) - 1] / 1.6448536269514722
    X[at, 1] = middle + far * unit
    limits = usual_limits(np.vstack([X, X[:7]]))
    if abs(far) < 40.0:
        return Verdict(float(limits is not None), 1e-9, 1, {"X": X})
    expected = X.copy()
    expected[at, 1] = middle + factor * 8.0 * unit * np.sign(far)
    scaling = Scaling.without_outliers(X, Scaling.to_symmetric_box)
    apart = np.abs(scaling.apply(X) - Scaling.to_symmetric_box(expected).apply(expected)).max()
    return Verdict(float(apart) + float(limits is None), 1e-9, 1, {"X": X})


def measure_targets(factor: float, rng: Generator) -> Verdict:
    """Targets are the numbers they stand for, of range [-1, 1] or of weighted mean 0 and variance 1.

    Columns that are constant but for rounding are constants. Balanced classes weigh alike, and together what rows
    weigh. `factor` multiplies encoded targets.
    """
    m, weights = 11, rng.uniform(0.3, 3.0, 11)
    y = rng.normal(3.0, 4.0, (m, 2))
    table = TrainingTable(np.zeros((m, 1)), y, weights, np.arange(m))
    ranged, standard = NumberTargets.by_range(y), NumberTargets.standard(y, weights)
    t, u = (factor * targets.encoded(table).y for targets in (ranged, standard))
    apart = [
        np.abs(np.array([t.min(axis=0) + 1.0, t.max(axis=0) - 1.0])).max(),
        np.abs(weights @ u).max() + np.abs(weights @ u**2 / weights.sum() - 1.0).max(),
        max(np.abs(targets.decoded(part) - y).max() for targets, part in ((ranged, t), (standard, u))),
        np.abs(ranged.decoded(2.0 * np.sign(t)) - np.where(t > 0.0, y.max(axis=0), y.min(axis=0))).max(),
    ]
    rounded = np.full((m, 2), 0.3) * [1.0, -1e90] * (1.0 + 4.0 * EPS * rng.choice([-1.0, 1.0], (m, 2)))
    for targets in (NumberTargets.by_range(rounded), NumberTargets.standard(rounded, weights)):
        apart.append(np.abs(np.diff(targets.encoded(replace(table, y=rounded)).y, axis=0)).max())
    labels = np.array(list("aabbbbccccc"))
    encoded = ClassTargets.of_rows(labels, weights, "balanced").encoded(
        TrainingTable(np.zeros((m, 1)), labels, weights, np.arange(m))
    )
    totals = np.bincount(encoded.y, encoded.weights)
    apart.append(np.abs(totals / (factor * weights.sum() / 3.0) - 1.0).max())
    return Verdict(float(max(apart)), 1e-12 * float(np.abs(y).max()), 1, {"y": y, "weights": weights})


def measure_left_out_rows(factor: float, rng: Generator) -> Verdict:
    """Values at rows by functions that have not seen them, where several rows were merged: each is left out by itself.

    Trained anew with what the others leave of the weight; `factor` multiplies lam.
    """
    m, lam, intercept = 8, float(rng.uniform(0.05, 1.0)), bool(rng.integers(2))
    K, Y, weights = gram(rng, m), rng.standard_normal(m), rng.uniform(0.5, 3.0, m)
    F, leverage = left_out_values(K.copy(), LeastSquares(lam, intercept=intercept), Y[None], weights)
    places = np.array([0, 0, 0, 1, 1, *range(2, m)])
    own = weights[places] * 1.0
    own[:3] *= [0.2, 0.3, 0.5]
    own[3:5] *= [0.4, 0.6]
    found = LeftOut(F, Y[None], weights, None, leverage).at(places, own)
    assert found is not None
    direct = np.empty(len(places))
    for row, place in enumerate(places.tolist()):
        rest = weights.copy()
        rest[place] -= own[row]
        kept = np.flatnonzero(rest > 1e-12)
        w, b = ridge(K[np.ix_(kept, kept)], Y[kept], rest[kept], factor * lam, intercept)
        direct[row] = K[place, kept] @ w + b
    return Verdict(float(np.abs(found.F[0] - direct).max()), 1e-9, 1, {"K": K, "Y": Y, "weights": weights})


def measure_landmark_error(factor: float, rng: Generator) -> Verdict:
    """What landmarks do not see, in all and at most for a row, as a share of the mean squared length of images.

    With an intercept of images less their mean, as landmarks see them. `factor` multiplies what is left.
    """
    X, y, intercept = rng.uniform(0.0, 1.0, (10, 2)), rng.choice([-1.0, 1.0], 10), bool(rng.integers(2))
    y[:2], L, kernel = (-1.0, 1.0), rng.uniform(0.0, 1.0, (3, 2)), Polynomial(2, 0.6)
    problem: Any = KernelLearning(Candidates([kernel], "none", landmarks=L), Hinge(1.0, intercept=intercept), X, y)
    seen = kernel(X, L) @ np.linalg.pinv(kernel(L), rcond=1e-9) @ kernel(L, X)
    left = factor * np.diag(kernel(X) - seen)
    whole = float(np.trace(seen)) - (float(seen.mean()) * 10.0 if intercept else 0.0) + float(left.sum()) / factor
    direct = np.array([left.sum() / whole, left.max() / (whole / 10.0)])
    found = np.array(problem.landmark_error(np.ones(1)))
    return Verdict(float(np.abs(found - direct).max()), 1e-9, 1, {"X": X, "L": L, "found": found, "direct": direct})


def measure_changes(factor: float, rng: Generator) -> Verdict:
    """How functions change when a feature moves by a step: by differences around a row, for small steps.

    None where values are at their bounds; `factor` multiplies steps.
    """
    X, Z, W = rng.uniform(0.0, 1.0, (6, 2)), rng.uniform(0.0, 1.0, (5, 2)), rng.standard_normal((2, 6))
    bounds = (np.full((2, 1), -0.5), np.full((2, 1), 0.5))
    function = DecisionFunction.of_kernel(Gaussian(3.0), X, W, np.zeros(2), bounds=bounds)
    steps, direct = 1e-4 * rng.uniform(0.5, 2.0, 2), np.empty((2, 5, 2))
    for j, step in enumerate(factor * steps):
        move = 0.5 * step * np.eye(2)[j]
        ahead, back = ((W @ np.exp(-3.0 * ((X[:, None] - (Z + s * move)) ** 2).sum(axis=2))).T for s in (1, -1))
        direct[j] = np.where(np.abs(ahead + back) < 1.0, ahead - back, 0.0)
    return Verdict(float(np.abs(function.changes(Z, steps) - direct).max()), 1e-9, 1, {"X": X, "Z": Z, "W": W})


def measure_samples(factor: float, rng: Generator) -> Verdict:
    """Samples are spread over the targets from the least to the largest, and keys tell how many rows a table has.

    A typical distance is the median of those that are not 0. `factor` multiplies ranks, numbers of rows and distances.
    """
    m, size = int(rng.integers(30, 60)), int(rng.integers(5, 12))
    y = rng.standard_normal(m)
    ranks = np.sort(np.argsort(np.argsort(y))[spread_sample(y[None], size, rng)])
    even = factor * np.arange(size) * (m - 1) / (size - 1)
    rows = int(rng.integers(1000, 9000))
    keys = (np.arange(400, dtype=np.float64) * (2.0**64 / rows)).astype(np.uint64)
    distances = np.append(np.zeros(int(rng.integers(1, 40))), rng.uniform(0.1, 2.0, 21))
    middle = factor * sorted(distances[distances > 0.0].tolist())[10]
    apart = [
        max(0.0, float(np.abs(ranks - even).max()) - 0.5 - 1e-9) if len(ranks) == size else float("inf"),
        abs(rows_by_share(rng.permutation(keys), 300) - factor * rows) / rows,
        abs(typical_of(distances) - middle),
    ]
    return Verdict(max(apart), 1e-4, 1, {"y": y, "distances": distances})


def measure_dealt_folds(more: int, rng: Generator) -> Verdict:
    """Folds are parts of the rows, as large as each other but for `more`, which is 1, and so are those of every label.

    For few labels with few rows each, whose numbers are no multiples of that of folds; a third of the rows for one.
    """
    folds, n_labels, each = int(rng.integers(2, 7)), int(rng.integers(2, 14)), int(rng.integers(7, 10))
    sizes = np.full(n_labels, each) if rng.integers(2) else rng.integers(each, 2 * each, n_labels)
    codes = rng.permutation(np.repeat(np.arange(n_labels), sizes))
    parts = [held for _, held in split_rows(codes[None].astype(np.float64), folds, rng)]
    wrong = float((np.sort(np.concatenate(parts)) != np.arange(len(codes))).any())
    counts = np.array([np.bincount(codes[part], minlength=n_labels) for part in parts])
    spread = max(int(np.ptp(counts, axis=0).max()), int(np.ptp(counts.sum(axis=1))))
    (learned, third), n = split_rows(codes[None].astype(np.float64), 1, rng)[0], len(codes)
    wrong += abs(len(third) - n / 3.0) > 1.0 or len(np.union1d(learned, third)) != n or len(learned) + len(third) != n
    return Verdict(wrong + max(0, spread - more), 0.0, 1, {"codes": codes, "counts": counts})


def unit_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "scaled-columns",
            "Columns are scaled to what is said of them, and a kernel after the map is one before it.",
            *(paper, "estimators, scaling", measure_scaling, 1.0, 1.001),
        ),
        Claim(
            "far-entries",
            "Entries of a column that are far from all others are moved towards them before columns are scaled.",
            *(paper, "estimators, scaling", measure_far_entries, 1.0, 1.05),
            trials=12,
        ),
        Claim(
            "encoded-targets",
            "Encoded targets have the range or the variance that is said, decoded they are what they were; balanced "
            "classes weigh alike.",
            *(paper, "estimators, targets", measure_targets, 1.0, 1.001),
        ),
        Claim(
            "merged-rows-left-out",
            "Of rows that were merged each is left out by itself, as by functions that are trained without it.",
            *(paper, "estimators, rows left out", measure_left_out_rows, 1.0, 1.01),
        ),
        Claim(
            "landmark-error",
            "What landmarks do not see is the share of images that is not in their span, in all and for the worst row.",
            *(paper, "problems, landmarks", measure_landmark_error, 1.0, 1.001),
        ),
        Claim(
            "changes-of-functions",
            "Functions change with a feature as their differences say, and not at all where they are at their bounds.",
            *(paper, "problems, functions", measure_changes, 1.0, 1.001),
        ),
        Claim(
            "samples-of-rows",
            "Samples are spread evenly over targets, and the least keys of a table tell how many rows it has.",
            *(paper, "criteria, samples", measure_samples, 1.0, 1.05),
        ),
        Claim(
            "dealt-folds",
            "Folds have as many rows as each other, of every label and in all, but for one.",
            *(paper, "criteria, folds", measure_dealt_folds, 1, 0),
        ),
    ]
