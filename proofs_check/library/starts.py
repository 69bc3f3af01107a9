"""Where searches for widths and for the weights of trees begin, and convex problems like one that is solved."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from convexkernels import (
    Candidates,
    EpsilonInsensitive,
    Gaussian,
    Hinge,
    KernelLearning,
    LeastSquares,
    LeaveOneOut,
    OuterLearning,
    Trees,
    Widths,
)
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.clock import Clock
from convexkernels.estimators.convex.by_squares import glance
from convexkernels.estimators.convex.fold import folds_of, scored_weights
from convexkernels.estimators.convex.path import Path
from convexkernels.estimators.convex.selection import is_clearly_better
from convexkernels.linalg import project_simplex
from proofs_check.claim import Claim

Generator = np.random.Generator
# Six categories are columns 2 to 7 of nine, which share a weight.
GROUP = [2, 3, 4, 5, 6, 7]


def table(rng: Generator) -> Array:
    """Numbers of several sizes around the indicators of six categories."""
    sizes = np.exp(0.3 * rng.standard_normal(3))
    numbers = sizes * rng.uniform(-1.0, 1.0, (300, 3))
    return np.column_stack([numbers[:, :2], rng.integers(6, size=(300, 1)) == np.arange(6), numbers[:, 2]])


def measure_trees(subject: tuple[float, float], rng: Generator) -> Verdict:
    """Leaves begin with mean exponents from .3 to 3, of which features have equal parts, and sums above with 1.

    The mean of ``(x_j - x'_j)^2`` is twice a variance; a group of features that share a weight is one of them. Random
    factors are 1 here. `subject` holds the least and the largest mean exponent.
    """
    X, leaves = table(rng), [[0, 1], [8, *GROUP, 1], [*GROUP, 0, 1, 8]]
    gram_set = Trees(leaves, tied=[GROUP]).on(X)
    even: Any = SimpleNamespace(standard_normal=np.zeros)
    squares = np.exp(2.0 * gram_set.start(even))[gram_set.weight_of]
    low, high = subject
    apart, first = [], 0
    for leaf, rate in zip(leaves, (low, np.sqrt(low * high), high), strict=True):
        parts = squares[first : first + len(leaf)] * 2.0 * X[:, leaf].var(axis=0)
        first += len(leaf)
        own = [[i for i, j in enumerate(leaf) if j in GROUP], *([i] for i, j in enumerate(leaf) if j not in GROUP)]
        own = [places for places in own if places]
        apart += [parts[places].sum() * len(own) / rate - 1.0 for places in own]
    apart.append(squares[first:].sum() - 1.0)
    return Verdict(float(np.abs(apart).max()), 1e-12, 1, {"X": X, "squares": squares})


def measure_widths(variance: float, rng: Generator) -> Verdict:
    """Widths begin where all features have equal parts of a `variance` of the points of 1.

    A feature that varies by less than a twentieth of the others has the weight of one that varies as they do, by the
    mean of squares; features that share a weight vary together.
    """
    X = table(rng)
    X[:, 0] *= 0.2 if rng.integers(2) else 0.01
    gram_set = Widths(tied=[GROUP]).on(X)
    squares = np.exp(2.0 * gram_set.start(rng))[gram_set.weight_of]
    of_features = np.array([*X[:, :2].var(axis=0), X[:, GROUP].var(axis=0).sum(), X[:, 8].var()])
    typical = of_features.mean()
    expected = variance / 4.0 / np.where(of_features > 0.0025 * typical, of_features, typical)
    found = squares[[0, 1, GROUP[0], 8]]
    apart = [found / expected - 1.0, squares[GROUP] / found[2] - 1.0]
    return Verdict(float(np.abs(np.concatenate(apart)).max()), 1e-12, 1, {"X": X, "squares": squares})


def measure_narrower(part: float, rng: Generator) -> Verdict:
    """A search begins with leaves of 4, 16 or 64 times the rates where errors of rows left out are below a `part`.

    They are the least ones of ridge regressions with any lam of a grid that are trained without the row; lam is the
    one of the least, in the unit of the weights.
    """
    wrong, ratios = 0, []
    for frequency, noise in [*((value, 0.1) for value in (1.0, 4.0, 10.0, 20.0, 40.0)), *[(3.0, 1.0)] * 12]:
        X, unit = rng.uniform(-1.0, 1.0, (40, 2)), float(rng.choice([1.0, 1e-3]))
        y = np.sin(frequency * X[:, 0]) + noise * rng.standard_normal(40)
        weights = unit * 10.0 ** rng.uniform(-1.0, 1.0, 40)
        loss = LeastSquares(0.1 * unit, intercept=False)
        problem = OuterLearning(Trees([[0, 1], [0]]), loss, LeaveOneOut(), X, y, sample_weight=weights)
        plain, found = problem.start(0), problem.best_start(0)
        lams, errors, points = weights.mean() * 10.0 ** np.arange(-4.0, 2.0), [], []
        for rate in (1.0, 4.0, 16.0, 64.0):
            z = plain[:-1] + np.array([0.5, 0.5, 0.5, 0.0, 0.0]) * np.log(rate)
            K = problem.gram_set.kernel(z)(X)
            points.append(z)
            errors.append([refitted(K, y, weights, lam) for lam in lams.tolist()])
        k, j = np.unravel_index(np.argmin(errors[1:]), (3, len(lams)))
        ratios.append(errors[1:][k][j] / min(errors[0]))
        expected = np.append(points[k + 1], np.log(lams[j])) if ratios[-1] < part else plain
        wrong += int(np.abs(found - expected).max() > 1e-9)
    return Verdict(float(wrong), 0.0, 1, {"ratios": np.array(ratios)})


def refitted(K: Array, y: Array, weights: Array, lam: float) -> float:
    """The squared error of ridge regressions at rows they are trained without, by weight."""
    total = 0.0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        value = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)] + np.diag(lam / weights[rest]), y[rest])
        total += float(weights[i] * (value - y[i]) ** 2)
    return total


def measure_known(share: float, rng: Generator) -> Verdict:
    """A fit begins with a `share` of 1 of the weights that it is told, which are the mean of what folds have learned.

    Weights that are on the simplex but for rounding stay as they are, with their zeros. Where no row is held out, the
    first value begins with what it is told (it is kept, being optimal); where rows are, it does not.
    """
    v = np.where(rng.random(30) < 0.6, 0.0, rng.random(30))
    v[0] = 1.0
    v /= v.sum()
    moved = float(np.abs(project_simplex(v) - v).max())
    X = rng.uniform(-1.0, 1.0, (90, 3))
    y = np.sin(4.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(90)
    family = Candidates([(f"{width}", Gaussian(width), [j]) for j in range(3) for width in (0.3, 3.0)])
    apart, values = [moved], np.array([0.1, 1.0, 10.0])
    machine, ridge = KernelLearning(family, Hinge(), X, np.sign(y)), KernelLearning(family, LeastSquares(0.03), X, y)
    path = Path(family, folds_of(machine, family, scored_weights(machine)), lambda C, _: Hinge(C), values, 1.0)
    for C in values.tolist():
        path.visit(C, Clock())
    found = path.selection("C")
    mean = np.mean([fold.points[found.value][0] for fold in path.folds], axis=0)
    apart.append(float(np.abs(found.theta - mean).max()))
    begun = machine.with_loss(Hinge(found.value)).solve("spectral-gradient", tol=1e-4, initial=found.theta)
    told = share * mean + (1.0 - share) / mean.size
    # Inner problems of a first step are solved to a thousandth.
    apart.append(max(0.0, abs(begun.history[0].upper / begun.problem.evaluate(told).upper - 1.0) - 2e-3))
    (rows,) = folds_of(ridge, family, scored_weights(ridge))
    own = ridge.solve("spectral-gradient", tol=1e-6)
    rows.begin_at(own.theta)
    rows.error(1.0, ridge.loss, Clock())
    apart.append(float(np.abs(rows.points[1.0][0] - own.theta).max()))
    path.folds[0].begin_at(own.theta)
    apart.append(float(path.folds[0].start is not None))
    return Verdict(max(apart), 0.0, 1, {"X": X, "apart": np.array(apart)})


def measure_families(gain: float, rng: Generator) -> Verdict:
    """Families are compared by ridge regressions without the row, ``lam = 1 / (2 C)``, one kernel of each for all rows.

    Scores are those of functions that are trained anew. The smoother family stays where errors of the rougher one, at
    the best values of both, are not less by a `gain`; the path of values begins with the best one.
    """
    wrong, apart, values = 0, [], 10.0 ** np.arange(-2.0, 4.0)
    rough, smooth = (Candidates([Gaussian(width), Gaussian(9.0 * width)], "mean") for width in (1.0, 0.1))
    for noise in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0):
        X = rng.uniform(-1.0, 1.0, (40, 2))
        y = np.sin(3.0 * X[:, 0]) + 0.3 * np.sin(6.0 * X[:, 1]) + noise * rng.standard_normal(40)
        weights, loss = 10.0 ** rng.uniform(-0.5, 0.5, 40), EpsilonInsensitive(1.0, 0.1, intercept=False)
        problem = KernelLearning(smooth, loss, X, y, sample_weight=weights)
        request = {"rough": rough, "smooth": smooth}, values, "C"
        seen = glance(problem, *request, weights[None], Clock())
        assert seen is not None
        assert seen.problem is not None
        errors = {name: 1.0 - scores for name, scores in seen.scores.items()}
        expected = "rough" if errors["rough"].min() < (1.0 - gain) * errors["smooth"].min() else "smooth"
        wrong += seen.family != expected
        K, found = seen.problem.gram_set.gram(seen.theta), errors[seen.family]
        total = float(weights @ (y - np.average(y, weights=weights)) ** 2)
        again = np.array([refitted(K, y, weights, 0.5 / C) for C in values.tolist()]) / total
        apart.append(float(np.abs(found / again - 1.0).max()))
        best = float(values[np.flatnonzero(again <= 1.002 * again.min())[0]])
        wrong += abs(seen.value / best - 1.0) > 1e-9
    return Verdict(max(*apart, float(wrong)), 1e-6, 1, {"apart": np.array(apart)})


def measure_told(tail: float, rng: Generator) -> Verdict:
    """Of families that err alike at every row but for chance, another one is told of with the probability of a `tail`.

    That is the part of a normal distribution beyond two standard errors, .0228; what is better by as many on top of
    these is told of in half of the cases.
    """
    draws, rows = 4000, 200
    common = rng.uniform(0.2, 1.0, rows) / rows
    unit, told = 0.2 / rows, [0, 0]
    for _ in range(draws):
        apart = unit * rng.standard_normal(rows)
        for k, gap in enumerate((0.0, 2.0 * unit / np.sqrt(rows))):
            told[k] += is_clearly_better(common, common + apart + gap, 0.0)
    shares = np.array(told) / draws
    spread = np.sqrt(np.array([tail * (1.0 - tail), 0.25]) / draws)
    apart = np.abs(shares - np.array([tail, 0.5])) / spread
    return Verdict(float(apart.max()), 5.0, 1, {"shares": shares})


def start_claims(paper: str) -> list[Claim]:
    """Where curved families begin, and fits that know of others."""
    return [
        Claim(
            "start-of-trees",
            "Leaves of trees begin with mean exponents from .3 to 3, in equal parts of their features.",
            *(paper, "families, Trees", measure_trees, (0.3, 3.0), (0.3, 2.9)),
            trials=4,
        ),
        Claim(
            "start-of-widths",
            "Widths begin with equal parts of a variance of 1 of the points; columns of one category are one feature.",
            *(paper, "families, Widths", measure_widths, 1.0, 1.01),
            trials=6,
        ),
        Claim(
            "start-of-quick-functions",
            "Searches begin with narrower kernels where these err less than nine tenths at rows left out.",
            *(paper, "problems, OuterLearning.best_start", measure_narrower, 0.9, 0.2),
            trials=2,
        ),
        Claim(
            "start-of-known-weights",
            "Fits begin with the weights that they are told: the mean of folds, or those of other rows.",
            *(paper, "problems, KernelLearning.solve", measure_known, 1.0, 0.5),
            trials=4,
        ),
        Claim(
            "families-by-squares",
            "Lists of candidates and values of C are compared by ridge regressions without the row, C = 1 / (2 lam).",
            *(paper, "estimators, glance", measure_families, 0.05, 0.6),
            trials=4,
        ),
        Claim(
            "families-told-of",
            "That another family is better is told where chance would say so in one of 44 cases.",
            *(paper, "estimators, UnsuitedFamilyWarning", measure_told, 0.0228, 0.15),
            trials=2,
        ),
    ]
