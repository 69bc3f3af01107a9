"""What is computed from rows that functions have not seen: left-out values, probabilities, intervals."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score

import convexkernels as ck
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellSelection
from convexkernels.criteria.ridge import inverted, residuals_at
from convexkernels.estimators.intervals import as_fitted, as_unseen, margin_around, margins, widened
from convexkernels.estimators.left_out import _of_constant, learned_gram, left_out_values
from convexkernels.estimators.probabilities import Sigmoid, likeliest, link_of
from convexkernels.estimators.relevance import effective_rank, relevance
from convexkernels.losses import EpsilonInsensitive, Hinge, LeastSquares
from convexkernels.problems.decision_function import differences


def noisy(m, rng, scale=0.3):
    X = rng.uniform(-1.0, 1.0, (m, 2))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + scale * rng.standard_normal(m)


def refitted(K, y, weights, lam, i):
    """The value at row i by kernel ridge regression without it."""
    rest = np.arange(len(y)) != i
    model = KernelRidge(alpha=lam, kernel="precomputed").fit(K[np.ix_(rest, rest)], y[rest], weights[rest])
    return float(model.predict(K[i : i + 1, rest])[0])


def test_least_squares_leave_out_row_by_row(rng):
    X, y = noisy(25, rng)
    weights = rng.uniform(0.5, 2.0, 25)
    K = ck.Gaussian(2.0)(X)
    F, leverage = left_out_values(K.copy(), LeastSquares(0.3, intercept=False), y[None], weights)
    np.testing.assert_allclose(F[0], [refitted(K, y, weights, 0.3, i) for i in range(25)], rtol=1e-8)
    np.testing.assert_allclose(leverage, np.diag(np.linalg.solve((K + np.diag(0.3 / weights)).T, K.T).T), rtol=1e-8)


def test_the_learned_matrix_of_some_rows_is_a_part_of_that_of_all(rng):
    """Also where matrices are not stored any more, and only that of these rows is made."""
    X, y = noisy(40, rng)
    rows, kernels = np.array([3, 4, 11, 30]), [ck.Gaussian(0.5), ck.Gaussian(5.0), ck.Linear()]
    families = [ck.Candidates(kernels), ck.Candidates(kernels, center=True), ck.Tessellated(1, box=ck.Box.around(X))]
    for problem in [ck.KernelLearning(family, LeastSquares(0.1), X, y) for family in families]:
        theta = problem.solve().theta
        part = problem.gram_set.gram(theta)[np.ix_(rows, rows)]
        for _ in range(2):
            np.testing.assert_allclose(learned_gram(problem, theta, rows), part, atol=1e-12)
            problem.gram_set.release()


@pytest.mark.parametrize("blocks", [None, [np.arange(0, 8), np.arange(8, 25)]], ids=["rows", "folds"])
def test_residuals_of_rows_and_of_folds_are_those_of_refits(blocks, rng):
    X, y = noisy(25, rng)
    Y, weights = np.array([y, np.cos(y)]), rng.uniform(0.5, 2.0, 25)
    K = ck.Gaussian(2.0)(X)
    found = residuals_at(K.copy(), Y, weights, 0.3, blocks)
    for block in [[i] for i in range(25)] if blocks is None else blocks:
        rest = np.setdiff1d(np.arange(25), block)
        model = KernelRidge(alpha=0.3, kernel="precomputed").fit(K[np.ix_(rest, rest)], Y[:, rest].T, weights[rest])
        np.testing.assert_allclose(found[:, block], Y[:, block] - model.predict(K[np.ix_(block, rest)]).T, atol=1e-9)


def test_other_losses_predict_rows_of_other_folds(rng):
    X, y = noisy(300, rng)
    K = ck.Gaussian(2.0)(X)
    F, _ = left_out_values(K.copy(), EpsilonInsensitive(C=10.0, epsilon=0.1), y[None], np.ones(300))
    assert 0.25 < np.sqrt(np.mean((F[0] - y) ** 2)) < 0.4  # the noise is 0.3
    # Labels that are coin flips are met on rows of other folds by chance, however well functions fit them.
    coins = rng.choice([-1.0, 1.0], (1, 300))
    F, _ = left_out_values(ck.Gaussian(200.0)(X), Hinge(C=1e3), coins, np.ones(300))
    assert 0.35 < np.mean(F * coins > 0.0) < 0.65


def test_the_values_of_estimators_are_those_of_refits(rng):
    X, y = noisy(40, rng)
    ridge = ck.MultipleKernelRidge(lam=0.5, intercept=False, tol=1e-3).fit(X, y)
    left = ridge._left_out()
    K, weights = ridge.solution_.kernel(ridge.solution_.problem.X), np.ones(40)
    np.testing.assert_allclose(left.F[0], [refitted(K, left.Y[0], weights, 0.5, i) for i in range(40)], rtol=1e-5)
    with_intercept = ck.MultipleKernelRidge(lam=0.5, tol=1e-3).fit(X, y)
    order = np.lexsort(X.T[::-1])
    np.testing.assert_allclose(
        np.std(y) * with_intercept._left_out().F[0], with_intercept.loo_predictions_[order], rtol=1e-6, atol=1e-6
    )
    spectral = ck.SpectralKernelRegressor(
        n_components=20, sigma=1.0, training=ck.Training(max_epochs=3), random_state=0
    )
    spectral.fit(X, y)
    left, problem = spectral._left_out(), spectral.solution_.problem
    Z, W = spectral.kernel_.transform(np.asarray(problem.X)), np.asarray(spectral.solution_.theta.W, dtype=float)
    lam = 40 * problem.penalty.as_ridge(W)
    for i in (0, 11, 39):
        rest = np.arange(40) != i
        mean, center = Z[rest].mean(axis=0), left.Y[0, rest].mean()
        A = (Z[rest] - mean).T @ (Z[rest] - mean) + lam * np.eye(Z.shape[1])
        w = np.linalg.solve(A, (Z[rest] - mean).T @ (left.Y[0, rest] - center))
        assert left.F[0, i] == pytest.approx((Z[i] - mean) @ w + center, rel=1e-6)


def test_cells_leave_out_rows_of_their_own(rng):
    X, y = noisy(120, rng)
    model = ck.VoronoiRidge(
        max_cell_size=50, cells=ck.Cells("voronoi"), selection=ck.CellSelection(n_lams=3, n_widths=3), random_state=0
    ).fit(X, y)
    left = model._left_out()
    assert left.F.shape == (1, 120)
    assert 0.25 < np.sqrt(np.mean((left.F - left.Y) ** 2)) * float(model.targets_.spread) < 0.45
    others = np.random.default_rng(0).permutation(np.flatnonzero(model.function_.sizes)).tolist()
    cell = model.function_.functions[others[-1]]
    K = ck.Gaussian(cell.width**-2)(cell.X)
    expected = [refitted(K, cell.Y[0], cell.weights, cell.lam, i) for i in range(len(K))]
    np.testing.assert_allclose(left.F[0, : len(K)], np.clip(expected, -1.0, 1.0), rtol=1e-6)
    tiny = ck.VoronoiSVR(max_cell_size=3, selection=ck.CellSelection(2, n_lams=2, n_widths=2), random_state=0)
    assert np.isfinite(tiny.fit(X[:30], y[:30]).predict_interval(X[:5])).all()
    chunks = ck.VoronoiRidge(max_cell_size=40, cells=ck.Cells("random"), random_state=0).fit(X, y)
    assert chunks._left_out().F.shape == (1, 120)
    wrapped = ck.VoronoiRidge(estimator=KernelRidge(alpha=0.5, kernel="rbf"), max_cell_size=60, random_state=0).fit(
        X, y
    )
    covered = wrapped.predict_interval(X, coverage=0.8)
    assert 0.7 < np.mean((covered[:, 0] <= y) & (y <= covered[:, 1])) < 0.95


def refits(model, X, y, weights):
    """Values at every row by functions that were trained again without it, the kernel held fixed; and targets."""
    solution, targets = model.solution_, model.targets_
    codes = y if not hasattr(model, "classes_") else np.searchsorted(model.classes_, y)
    encoded = np.clip((y - targets.center) / targets.spread, -targets.limit, targets.limit) if codes is y else codes
    T = targets.expanded(encoded)
    Z, offset, bound, lam, intercept = model.scaling_.apply(X), 0.0, np.inf, getattr(model, "lam_", None), False
    cells, inner = [(np.arange(len(X)), np.arange(len(X)))], None
    if isinstance(model, ck.SpectralKernelRegressor):
        W = np.asarray(solution.theta.W, dtype=float)
        lam, intercept = weights.sum() * solution.problem.penalty.as_ridge(W), True
    elif hasattr(model, "tree_"):
        lam = solution.problem.bind().lam(solution.problem.split(solution.theta)[1])
        offset, bound = solution.problem.offset[0], 1.0
    elif hasattr(model, "cover_"):
        nearest, members = model.cover_.assigned(Z)
        cells = [(members.rows(j), np.flatnonzero(nearest == j)) for j in range(model.n_cells_)]
        inner, bound = model.function_.functions, 1.0
    F = np.full(len(X), np.nan)
    for j, (learns, answers) in enumerate(cells):
        K = (solution.kernel if inner is None else inner[j].kernel)(Z)
        for i in answers:
            rest = learns[learns != i]
            ridge = (lam if inner is None else inner[j].lam) * np.diag(1.0 / weights[rest])
            solved = np.linalg.solve(
                K[np.ix_(rest, rest)] + ridge, np.column_stack([T[rest] - offset, np.ones(len(rest))])
            )
            b = intercept * solved[:, 0].sum() / solved[:, 1].sum()
            F[i] = np.clip(K[i, rest] @ (solved[:, 0] - b * solved[:, 1]) + b + offset, -bound, bound)
    return targets.decoded(F)


SPECTRAL = {"n_components": 20, "sigma": 1.0, "training": ck.Training(max_epochs=3), "random_state": 0}
EXACT = {
    "concatenated": lambda: ck.ConcatenatedKernelRegressor(lam=0.1, mu=0.1, n_restarts=1, tol=0.05, random_state=0),
    "concatenated labels": lambda: ck.ConcatenatedKernelClassifier(
        lam=0.1, mu=0.1, n_restarts=1, tol=0.05, random_state=0
    ),
    "spectral": lambda: ck.SpectralKernelRegressor(**SPECTRAL),
    "tree": lambda: ck.HierarchicalGaussianRegressor(
        2, search=ck.TreeSearch(max_iter=3), selection=ck.TreeSelection(combine="one"), random_state=0
    ),
    "tree labels": lambda: ck.HierarchicalGaussianClassifier(
        2, search=ck.TreeSearch(max_iter=3), selection=ck.TreeSelection(combine="one"), random_state=0
    ),
    "cell": lambda: ck.VoronoiRidge(selection=ck.CellSelection(n_lams=3, n_widths=3), random_state=0),
    "cells": lambda: ck.VoronoiSVC(max_cell_size=20, selection=ck.CellSelection(n_lams=3, n_widths=3), random_state=0),
}


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
@pytest.mark.parametrize("name", EXACT)
def test_predictions_of_estimators_for_rows_left_out_are_those_of_refits(name, rng):
    X, y = noisy(45, rng)
    weights = rng.uniform(0.5, 2.0, 45)
    y = np.where(y > 0.0, "high", "low") if "label" in name or name == "cells" else y
    X[[0, 1]], y[[0, 1]] = X[2], y[2]  # equal rows, one of weight 0, one of which the other knows
    weights[0] = 0.0
    if name in ("tree", "tree labels", "cell", "cells"):  # there equal rows are left out together
        weights[1] = 0.0
    order = rng.permutation(45)
    X, y, weights = X[order], y[order], weights[order]
    kept = np.flatnonzero(weights)
    model = EXACT[name]().fit(X, y, sample_weight=weights)
    expected = refits(model, X[kept], y[kept], weights[kept])
    if y.dtype.kind == "U":
        np.testing.assert_array_equal(model.loo_predictions_, expected)
        assert model.loo_score_ == pytest.approx(accuracy_score(y[kept], expected, sample_weight=weights[kept]))
    else:
        np.testing.assert_allclose(model.loo_predictions_, expected, rtol=1e-5, atol=1e-6)
        assert model.loo_score_ == pytest.approx(r2_score(y[kept], expected, sample_weight=weights[kept]), abs=1e-5)


OF_ROWS = {
    "tessellated": lambda: ck.TessellatedRidge(0.1),
    "candidates": lambda: ck.MultipleKernelSVR(C=10.0, epsilon=0.1),
    "landmarks": lambda: ck.MultipleKernelSVR(C=10.0, epsilon=0.1, landmarks=15),
    "tessellated on landmarks": lambda: ck.TessellatedRidge(1.0, landmarks=25),
    "concatenated": EXACT["concatenated"],
    "interpolant": lambda: ck.ConcatenatedKernelInterpolator(n_restarts=1, tol=0.05, random_state=0),
    "tree": EXACT["tree"],
    "cell": EXACT["cell"],
}


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", OF_ROWS)
def test_coefficients_of_rows_are_those_of_the_learned_functions(name, outputs, rng):
    X, y = noisy(40, rng, scale=0.05)
    y = y if outputs == 1 else np.column_stack([y, 20.0 * np.cos(X[:, 0])])
    weights = np.ones(40)
    weights[[3, 8]] = 0.0
    X[11], y[11] = X[5], y[5]
    model = OF_ROWS[name]().fit(X, y, sample_weight=weights)
    rows, coefficients = model.support_, model.support_coefficients_
    assert coefficients.shape == (len(rows), *y.shape[1:])
    assert not set(rows) & {3, 8, 11}  # of weight 0, and the second of two equal rows
    Z = noisy(30, rng)[0] * 0.8
    f = model.kernel_(Z, X[rows]) @ coefficients
    inside = np.ptp(model.predict(X), axis=0)
    difference = np.atleast_2d((model.predict(Z) - f).T)
    for values, size in zip(difference, np.ravel(inside), strict=True):
        assert np.median(np.abs(values - np.median(values))) < 1e-6 * size  # an intercept; the range of y may clip some


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
def test_coefficients_of_combined_functions_are_sums_with_their_shares(rng):
    X, y = noisy(60, rng)
    search, labels = ck.TreeSearch(max_iter=3), np.where(y > 0.0, 1, -1)
    X[7], labels[7] = X[2], -labels[2]  # one point of two rows
    for combine in ("mean", "stack"):
        selection = ck.TreeSelection(combine=combine)
        model = ck.HierarchicalGaussianClassifier(2, search=search, selection=selection, random_state=0).fit(X, labels)
        stack = model.function_
        learned = stack if getattr(stack, "shares", None) is None else stack.functions[0]
        parts = [(1.0 / len(learned.functions), one) for one in learned.functions]
        if learned is not stack:
            parts = [(stack.shares[0] * share, one) for share, one in parts]
            parts += [*zip(stack.shares[1:], stack.functions[1:], strict=True)]
        points, found = model.scaling_.apply(X), dict(zip(model.support_, model.support_coefficients_, strict=True))
        assert len({2, 7} & set(found)) == 1
        for i, coefficient in found.items():
            expected = 0.0
            for share, one in parts:
                at = (one.gram_set.points == points[i]).all(axis=1)
                expected += share * one.W[0, at].sum()
            assert coefficient == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
def test_votes_have_coefficients_for_every_pair_of_classes(rng):
    X, y = noisy(60, rng)
    votes = ck.HierarchicalGaussianClassifier(2, search=ck.TreeSearch(max_iter=3), multi_class="all-vs-all")
    votes.fit(X, np.digitize(y, [-0.5, 0.5]))
    F = votes.kernel_(X, X[votes.support_]) @ votes.support_coefficients_
    for f, function in zip(F.T, votes.function_.pairs.values(), strict=True):
        values = function.values(votes.scaling_.apply(X))[:, 0]
        inside = np.abs(values) < 1.0
        assert np.ptp((values - f)[inside]) < 1e-8
    assert "rows         60 count in the functions" in votes.describe()


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
def test_rows_in_cells_have_the_coefficients_of_their_own_cell(rng):
    X, y = noisy(120, rng)
    selection = ck.CellSelection(n_lams=3, n_widths=3)
    for cells in ("voronoi", "overlapping", "random"):
        model = ck.VoronoiRidge(max_cell_size=50, cells=ck.Cells(cells), selection=selection, random_state=0).fit(X, y)
        Z, share = model.scaling_.apply(X), 1.0 / model.n_cells_ if cells == "random" else 1.0
        own = np.zeros(120, dtype=int) if cells == "random" else model.cover_.cells(Z)
        assert model.support_.tolist() == list(range(120))
        for j, cell in enumerate(model.function_.functions):
            W = dict(zip(map(tuple, cell.function.gram_set.points), cell.function.W[0], strict=True))
            rows = [i for i in range(120) if tuple(Z[i]) in W and (cells == "random" or own[i] == j)]
            expected = [share * float(model.targets_.spread) * cell.lam * W[tuple(Z[i])] for i in rows]
            np.testing.assert_allclose(model.support_coefficients_[rows], expected)
    wrapped = ck.VoronoiRidge(estimator=KernelRidge()).fit(X, y)
    with pytest.raises(AttributeError, match="VoronoiRidge has no support_: RegressorCell of cell 0"):
        _ = wrapped.support_


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
def test_equal_rows_in_cells_and_trees_are_left_out_together(rng):
    X, y = noisy(40, rng)
    twice = np.concatenate([X, X[:5]]), np.concatenate([y, y[:5]])
    for name in ("cell", "tree"):
        weighted = EXACT[name]().fit(X, y, sample_weight=1.0 + (np.arange(40) < 5)).loo_predictions_
        np.testing.assert_allclose(EXACT[name]().fit(*twice).loo_predictions_, [*weighted, *weighted[:5]], rtol=1e-6)


def test_what_has_no_rows_to_leave_out_says_why(rng):
    X, y = noisy(40, rng)
    labels = np.where(y > 0.0, 1, -1)
    split = ck.CellSelection("global-split", n_lams=2, n_widths=2)
    model = ck.SpectralKernelRegressor(**SPECTRAL)
    for fitted, why in [
        (ck.TessellatedSVC(1.0).fit(X, labels), "only least squares"),
        (ck.VoronoiRidge(estimator=KernelRidge()).fit(X, y), "only least squares"),
        (ck.VoronoiRidge(selection=split, random_state=0).fit(X, y), "a part of the rows only"),
        (model.fit(X, y).partial_fit(X[:9], y[:9]), "are not here"),
    ]:
        assert not hasattr(fitted, "loo_predictions_")
        with pytest.raises(AttributeError, match=why):
            _ = fitted.loo_score_


def test_rows_that_take_more_memory_than_there_is_are_not_left_out(rng, monkeypatch):
    model = EXACT["tree"]().fit(*noisy(40, rng))
    monkeypatch.setattr("convexkernels.validation.available_memory", lambda: 1e4)
    with pytest.raises(AttributeError, match="leaving out each of 40 rows needs"):
        _ = model.loo_predictions_


@pytest.mark.parametrize("name", ["TessellatedRidge", "HierarchicalGaussianRegressor", "VoronoiSVR"])
def test_intervals_cover_new_rows(name, rng):
    """A level of 1e-4 on either side: rows of a table are drawn independently, the quantile from 150 of them."""
    make = {
        "TessellatedRidge": lambda: ck.TessellatedRidge(1.0, tol=1e-2),
        "HierarchicalGaussianRegressor": lambda: ck.HierarchicalGaussianRegressor(
            2, search=ck.TreeSearch(max_iter=5), random_state=0
        ),
        "VoronoiSVR": lambda: ck.VoronoiSVR(selection=ck.CellSelection(2, n_lams=3, n_widths=3), random_state=0),
    }[name]
    X, y = noisy(150, rng)
    T, t = noisy(1000, rng)
    low, high = make().fit(X, y).predict_interval(T, coverage=0.8).T
    hits = int(np.sum((low <= t) & (t <= high)))
    # The spread of a coverage that is estimated from 150 rows, and of 1,000 rows that are counted.
    deviation = np.sqrt(0.8 * 0.2 * (1.0 / 150 + 1.0 / 1000))
    assert abs(hits / 1000 - 0.8) < 3.9 * deviation


def test_intervals_of_frequencies_that_know_the_rows_cover_new_ones():
    """Without a look at the rows that validated the training, .29 and .51 of new targets are within .5 and .8."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (1300, 8))
    waves = np.sin(2.0 * X[:, 0] * X[:, 1] + X @ rng.standard_normal(8))
    y = waves + np.cos(2.0 * X[:, 2] - X[:, 3] * X[:, 4]) * X[:, 5]
    model = ck.SpectralKernelRegressor(sigma=1.0, random_state=0).fit(X[:300], y[:300])
    for coverage in (0.5, 0.8):
        low, high = model.predict_interval(X[300:], coverage).T
        held = float(np.mean((low <= y[300:]) & (y[300:] <= high)))
        assert abs(held - coverage) < 2.0 * np.sqrt(coverage * (1.0 - coverage) / 30)  # 30 rows say the level
        left = y[:300] - model.loo_predictions_
        assert np.all(high - low > 1.5 * np.diff(margins(left, np.ones(300), coverage)))


def test_residuals_are_raised_to_the_level_of_unseen_rows_where_that_is_no_chance(rng):
    residuals = rng.standard_normal((400, 2))
    unseen = np.arange(400) < 40
    np.testing.assert_array_equal(as_unseen(residuals, unseen), residuals)
    residuals[unseen, 1] *= 3.0
    found = as_unseen(residuals, unseen)
    np.testing.assert_array_equal(found[:, 0], residuals[:, 0])
    above, below = (np.quantile(np.abs(residuals[rows, 1]), [0.5, 0.8, 0.9]) for rows in (unseen, ~unseen))
    np.testing.assert_allclose(found[:, 1], np.where(unseen, 1.0, (above / below).min()) * residuals[:, 1])
    lower = residuals[:, 1] / np.where(unseen, 9.0, 1.0)
    np.testing.assert_array_equal(as_unseen(lower, unseen), lower)
    for exact in (0.0, 1e-300):  # what was seen is met exactly
        residuals = np.where(unseen, 1e3, exact)
        np.testing.assert_array_equal(as_unseen(residuals, unseen), residuals)
    # Larger ones are not larger where most of the others are tiny: the level is that of the large ones.
    residuals = rng.standard_normal(400) * np.where(rng.random(400) < 0.6, np.where(unseen, 1e-2, 1e-4), 1.0)
    assert np.all(np.abs(as_unseen(residuals, unseen)) <= 2.0 * np.abs(residuals))
    few = np.arange(400) < 9
    np.testing.assert_array_equal(as_unseen(residuals, few), residuals)


def test_residuals_of_a_kernel_with_many_widths_are_those_of_new_rows(rng):
    residuals = rng.standard_normal((200, 2))
    np.testing.assert_allclose(as_fitted(residuals, 200, 20), residuals * np.sqrt(220.0 / 180.0))
    np.testing.assert_allclose(as_fitted(residuals[:5], 5, 20), residuals[:5] * np.sqrt(3.0))
    # Least squares of n columns: what is left at the rows, and what errors are at rows with targets drawn anew.
    m, n, squares = 60, 12, np.zeros(2)
    for _ in range(2000):
        X, noise, other = rng.standard_normal((m, n)), rng.standard_normal(m), rng.standard_normal(m)
        fitted = X @ np.linalg.lstsq(X, noise, rcond=None)[0]
        squares += np.sum(as_fitted(noise - fitted, m, n) ** 2), np.sum((other - fitted) ** 2)
    assert squares[0] == pytest.approx(squares[1], rel=0.01)


def test_intervals_of_trees_know_that_widths_were_fitted(rng):
    X, y = rng.uniform(-1, 1, (160, 6)), rng.standard_normal(160)
    y += X[:, 0]
    settings = {"search": ck.TreeSearch(max_iter=10), "random_state": 0}
    for m, larger in ((160, np.sqrt(166.0 / 154.0)), (100, 1.0)):  # fewer rows are learned from in folds
        model = ck.HierarchicalGaussianRegressor(4, **settings).fit(X[:m], y[:m])
        left = model._left_out()
        residuals = model.targets_.truth(left.Y[0]) - model.targets_.decoded(left.F[0])
        above = np.sort(larger * residuals)[math.ceil(0.95 * (m + 1)) - 1]
        high = model.predict_interval(X[:1], coverage=0.9)[0, 1] - model.predict(X[:1])[0]
        assert high == pytest.approx(above)
    table = pd.DataFrame({"a": X[:, 0], "b": rng.choice(list("pqrstu"), 160)})
    model = ck.HierarchicalGaussianRegressor(4, **settings).fit(table, y)
    left = model._left_out()
    residuals = model.targets_.truth(left.Y.T) - model.targets_.decoded(left.F.T)
    np.testing.assert_allclose(model._residuals()[0].ravel(), np.sqrt(162.0 / 158.0) * residuals.ravel())


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_none_is_certain_by_two_errors_in_all(n_classes):
    """Values that are always right: each of n rows of a class is wrong for 2 / (n_classes (n + 2)) of its weight."""
    n = 4
    codes = np.repeat(np.arange(n_classes), n)
    F = (codes == 1)[:, None] - 0.5 if n_classes == 2 else 1.0 * np.eye(n_classes)[codes]
    slope = likeliest([F], codes, np.ones(len(codes)))[0]
    right = Sigmoid(np.zeros(1), np.array([slope, slope]))(F)[np.arange(len(codes)), codes]
    np.testing.assert_allclose(right, 1.0 - 2.0 / (n_classes * (n + 2.0)), atol=1e-4)


@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.MultipleKernelSVC, ck.VoronoiSVC])
def test_classes_that_are_not_predicted_are_as_likely_as_they_are_frequent(kind):
    rng, frequent = np.random.default_rng(1), np.array([0.55, 0.3, 0.1, 0.05])
    X, y = rng.normal(size=(200, 4)), rng.choice(4, 200, p=frequent)  # nothing tells the label
    new = rng.normal(size=(500, 4))
    model = kind().fit(X, y)
    P = model.predict_proba(new)
    np.testing.assert_allclose(P.mean(axis=0), np.bincount(y) / 200, atol=0.05)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(new))
    assert -np.log(P) @ frequent @ np.ones(500) / 500 < 1.09  # 1.06 by frequencies


def test_shares_that_are_alike_leave_small_probabilities_as_they_are():
    F = np.array([[20.0, -20.0, -19.0], [18.0, -18.5, -18.2], [0.1, 0.0, -0.1]])
    link = Sigmoid(np.zeros(1), np.ones(2))
    np.testing.assert_allclose(Sigmoid(np.zeros(1), np.ones(2), np.full(3, 2.0))(F), link(F), rtol=1e-12)


def test_margins_are_conformal_quantiles(rng):
    """With n residuals the next one is within the margins with a probability that is known exactly."""
    residuals = rng.standard_normal((2000, 39)) ** 3
    new = rng.standard_normal(2000) ** 3
    inside = 0
    for row, value in zip(residuals, new, strict=True):
        low, high = margins(row, np.ones(39), 0.9)
        assert low == np.sort(row)[1]  # of 40 with the new one, 2 lie at or beyond the second on either side
        assert high == np.sort(row)[-2]
        inside += low <= value <= high
    assert binom.cdf(inside, 2000, 0.9) > 1e-4
    assert binom.sf(inside, 2000, 0.9) > 1e-4
    doubled = margins(np.repeat(residuals[0], 2), np.ones(78), 0.8)
    np.testing.assert_allclose(margins(residuals[0], np.full(39, 2.0), 0.8)[0], doubled[0], atol=1.0)
    several = margins(residuals.T, np.ones(39), 0.9)
    assert several.shape == (2000, 2)
    np.testing.assert_array_equal(several[5], margins(residuals[5], np.ones(39), 0.9))


def test_a_sigmoid_finds_its_slopes(rng):
    f = rng.standard_normal(6000)
    codes = (rng.uniform(size=6000) < 1.0 / (1.0 + np.exp(-np.where(f < 0.0, 3.0, 1.2) * f))).astype(int)
    link = Sigmoid.of(100.0 * f[:, None], codes, np.ones(6000))
    assert link.knots.tolist() == [0.0]
    assert 100.0 * link.slopes == pytest.approx([3.0, 1.2], rel=0.1)
    symmetric = (rng.uniform(size=6000) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(int)
    expected = LogisticRegression(C=np.inf, fit_intercept=False).fit(f[:, None], symmetric)
    P = Sigmoid.of(f[:, None], symmetric, np.ones(6000))(f[:50, None])
    np.testing.assert_allclose(P, expected.predict_proba(f[:50, None]), atol=0.02)


def test_a_softmax_finds_its_temperature(rng):
    F = rng.standard_normal((4000, 3))
    P = np.exp(1.7 * F) / np.exp(1.7 * F).sum(axis=1, keepdims=True)
    codes = (rng.uniform(size=(4000, 1)) > P.cumsum(axis=1)).sum(axis=1)
    link = Sigmoid.of(F, codes, np.ones(4000))
    assert link.slopes == pytest.approx([1.7, 1.7], rel=0.1)
    np.testing.assert_array_equal(link(F).argmax(axis=1), F.argmax(axis=1))
    wrong = Sigmoid.of(-F, codes, np.ones(4000))
    # Values that speak against the classes say nothing, and no class is rare.
    np.testing.assert_allclose(replace(wrong, shares=None)(F), 1.0 / 3.0, atol=1e-4)
    np.testing.assert_allclose(wrong(F), 1.0 / 3.0, atol=0.02)


def test_links_of_large_tables_have_many_slopes(rng):
    f = rng.standard_normal(6000)
    P = np.clip(0.5 + 0.4 * np.sign(f), 0.0, 1.0)  # a step, which no single slope is near
    y = np.where(rng.uniform(size=6000) < P, 1.0, -1.0)
    link = link_of(f[None], y[None], np.ones(6000))
    assert len(link.slopes) == 16
    np.testing.assert_allclose(link(np.array([[-1.0], [1.0], [2.0]]))[:, 1], [0.1, 0.9, 0.9], atol=0.05)
    assert (np.diff(link(np.sort(f)[:, None])[:, 1]) >= 0.0).all()
    np.testing.assert_array_equal(link(f[:, None])[:, 1] > 0.5, f > 0.0)
    plain = IsotonicRegression(out_of_bounds="clip").fit(f, (y > 0.0).astype(float))
    far = np.abs(f) > 0.3
    assert np.abs(link(f[far, None])[:, 1] - plain.predict(f[far])).mean() < 0.02
    assert len(link_of(f[None, :999], y[None, :999], np.ones(999)).slopes) == 2
    sure = link_of(y[None], y[None], np.ones(6000))(np.array([[1.0], [-1.0]]))
    assert 0.0 < sure.min() < 1e-3


def test_rows_twice_are_rows_of_twice_the_weight_for_a_link(rng):
    f, weights = rng.standard_normal((1, 1200)), rng.integers(1, 3, 1200)
    y = np.where(rng.uniform(size=(1, 1200)) < 1.0 / (1.0 + np.exp(-2.0 * f)), 1.0, -1.0)
    weighed = link_of(f, y, weights.astype(float))
    repeated = link_of(np.repeat(f, weights, axis=1), np.repeat(y, weights, axis=1), np.ones(weights.sum()))
    np.testing.assert_allclose(weighed.knots, repeated.knots)
    np.testing.assert_allclose(weighed.slopes, repeated.slopes, rtol=1e-3)


def test_rows_are_left_out_whatever_the_unit_of_weights(rng):
    X, y = noisy(120, rng, 0.5)
    model = ck.HierarchicalGaussianRegressor(2, clip=False, selection=ck.TreeSelection(combine="one"), random_state=0)
    plain = clone(model).fit(X, y)
    shares = clone(model).fit(X, y, sample_weight=np.full(120, 1.0 / 120))
    assert plain.loo_score_ < plain.score(X, y) - 0.01
    np.testing.assert_allclose(shares.loo_predictions_, plain.loo_predictions_, rtol=1e-4, atol=1e-4)


def test_weights_that_sum_to_one_say_how_rows_compare(rng):
    f, weights = rng.standard_normal((1, 300)), rng.uniform(0.5, 2.0, 300)
    y = np.where(rng.uniform(size=(1, 300)) < 1.0 / (1.0 + np.exp(-2.0 * f)), 1.0, -1.0)
    counted = link_of(f, y, weights / weights.mean())
    for unit in (1.0 / weights.sum(), 1e-9):
        np.testing.assert_allclose(link_of(f, y, unit * weights).slopes, counted.slopes, rtol=1e-6)
    thrice = link_of(f, y, 3.0 * weights / weights.mean())
    assert np.abs(thrice.slopes - counted.slopes).max() > 0.01  # three times as many rows


def moves(values, X, categories=()):
    return relevance(partial(differences, values), values, X, categories)


def test_relevance_of_known_functions(rng):
    X = rng.standard_normal((300, 3)) * [1.0, 5.0, 1.0]
    spread = X.std(axis=0)
    np.testing.assert_allclose(
        moves(lambda Z: 3.0 * Z[:, 0] - 0.2 * Z[:, 1], X),
        np.array([3.0, 0.2, 0.0]) * spread / (3 * spread[0] + 0.2 * spread[1]),
    )
    both = moves(lambda Z: np.column_stack([1e6 * Z[:, 0], Z[:, 2]]), X)
    np.testing.assert_allclose(both, [0.5, 0.0, 0.5])
    np.testing.assert_allclose(moves(lambda Z: np.ones(len(Z)), X), 1.0 / 3.0)


def test_relevance_of_what_has_few_values_is_that_of_other_values(rng):
    """A column of two values, and a category in three columns, whose steps between them say nothing."""
    kind = np.repeat([0, 1, 2], [60, 30, 30])
    X = np.column_stack([rng.standard_normal(120), rng.permutation(kind) == 0, np.eye(3)[kind]])

    def values(Z):
        return 2.0 * Z[:, 0] + 8.0 * (Z[:, 1] > 0.5) + np.where(Z[:, 2:].argmax(axis=1) == 1, 6.0, 0.0)

    slope, half = 2.0 * 0.5 * X[:, 0].std(), 0.5 * 8.0 * 0.5
    # Rows of the second category change where another one comes, and others where it comes.
    came = 0.5 * 6.0 * 0.25 * np.array([0.5, 0.75, 0.25])
    expected = np.array([slope, half, *came])
    np.testing.assert_allclose(moves(values, X, [np.array([2, 3, 4])]), expected / expected.sum())


def test_a_category_that_decides_is_relevant_in_narrow_kernels(rng):
    town = rng.choice(["a", "b", "c"], 80)
    X = pd.DataFrame({"width": rng.uniform(size=80), "town": pd.Categorical(town), "height": rng.uniform(size=80)})
    y = X["width"].to_numpy() + 2.0 * (town == "b") + 0.05 * rng.standard_normal(80)
    for kind in (ck.VoronoiRidge, ck.VoronoiSVR, ck.HierarchicalGaussianRegressor, ck.TessellatedRidge):
        relevance_of = kind(**({} if "Tess" in kind.__name__ else {"random_state": 0})).fit(X, y).feature_relevance_
        assert relevance_of[1:4].sum() > 0.4


def test_relevance_by_derivatives_is_that_by_differences_and_asks_for_no_values(rng, monkeypatch):
    X = rng.uniform(size=(60, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, 1, 0)
    model = ck.HierarchicalGaussianClassifier(2, random_state=0).fit(X, y)
    points = model._training_points()
    expected = moves(model._evaluate, points)
    np.testing.assert_allclose(relevance(model._changes, model._evaluate, points), expected, atol=0.03)
    smooth = ck.ConcatenatedKernelRegressor(lam=0.1, mu=0.1, n_restarts=1, random_state=0).fit(X, X[:, 0] * X[:, 1])
    points, function = smooth._training_points(), smooth.solution_.function
    expected = moves(smooth._evaluate, points)
    monkeypatch.setattr(type(function), "values", None)
    np.testing.assert_allclose(relevance(smooth._changes, smooth._evaluate, points), expected, atol=0.02)


def test_effective_rank_counts_equal_eigenvalues():
    assert effective_rank(np.eye(7)) == pytest.approx(7.0)
    assert effective_rank(np.ones((7, 7))) == pytest.approx(1.0)
    assert effective_rank(np.zeros((2, 2))) == 0.0


def test_what_was_computed_later_belongs_to_one_fit(rng):
    X, y = noisy(40, rng)
    model = ck.TessellatedRidge(1.0, tol=1e-2).fit(X, y)
    first = model.predict_interval(X[:1])
    model.fit(X, 10.0 * y)
    ratio = np.diff(model.predict_interval(X[:1])) / np.diff(first)
    assert ratio == pytest.approx(10.0, rel=0.05)


def test_matrices_have_no_features(rng):
    X, y = noisy(30, rng)
    K = ck.Gaussian(1.0)(X)
    model = ck.MultipleKernelRidge(lam=1.0, kernels="precomputed").fit(np.stack([K, K**2]), y)
    with pytest.raises(ck.InvalidInputError, match="weights_by_name"):
        _ = model.feature_relevance_
    assert 1.0 <= model.effective_rank_ <= 30.0
    assert model.predict_interval(np.stack([K, K**2])[:, :4]).shape == (4, 2)


def test_constants_of_cells_leave_rows_out_as_well(rng):
    """Of a mean the mean of the other rows is left, and of a single row nothing."""
    Y, weights = rng.standard_normal((2, 6)), rng.uniform(0.5, 2.0, 6)
    learner = KernelLearner(LeastSquares(intercept=False), CellSelection())
    left = _of_constant(learner.constant(Y, weights), np.arange(6))
    for i in range(6):
        others = np.delete(np.arange(6), i)
        np.testing.assert_allclose(left.F[:, i], np.average(Y[:, others], axis=1, weights=weights[others]))
    assert _of_constant(learner.constant(Y[:, :1], weights[:1]), np.arange(1)).rows.tolist() == [-1]
    # A cell for every row: what it answers with at its own row is no prediction.
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    model = ck.VoronoiRidge(max_cell_size=2, cells=ck.Cells("voronoi"), random_state=0).fit(X, y)
    assert min(model.function_.sizes) == 1
    assert not hasattr(model, "loo_score_")


@pytest.mark.parametrize("cells", [ck.Cells(), ck.Cells("voronoi", radius=1.0)])
def test_coefficients_of_cells_go_with_the_kernel_of_all(cells, rng):
    X = rng.uniform(-1.0, 1.0, (120, 2))
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    model = ck.VoronoiRidge(cells=cells, random_state=0).fit(X, y)
    T = rng.uniform(-1.0, 1.0, (50, 2))
    rest = model.predict(T) - model.kernel_(T, X[model.support_]) @ model.support_coefficients_
    assert np.ptp(rest) < 1e-6 * np.ptp(y)


def test_margins_around_quantiles_are_conformal(rng):
    """Functions that cross are put in order; a margin may be negative, and what it leaves empty is the middle."""
    y = rng.standard_normal((2000, 20))
    inside = 0
    for row in y:
        margin = margin_around(np.full(19, 0.5), np.full(19, -0.5), row[:19], np.ones(19), 0.9, 1.0)
        scores = np.sort(np.abs(row[:19]) - 0.5)
        # Of 20 with the new one, 2 are above the 18th; what functions are learned to comes on top.
        assert margin == pytest.approx(scores[17] + 2e-4, rel=1e-12)
        low, high = widened(np.array(0.5), np.array(-0.5), margin)
        inside += low <= row[19] <= high
    assert binom.cdf(inside, 2000, 0.9) > 1e-4
    assert binom.sf(inside, 2000, 0.9) > 1e-4
    np.testing.assert_allclose(
        widened(np.array([0.0, 1.0]), np.array([2.0, 1.2]), np.array(-0.5)), [[0.5, 1.5], [1.1, 1.1]]
    )
    with pytest.raises(ck.InvalidInputError, match=r"coverage is 0.96, but 19 rows .*pass at most 0.95"):
        margin_around(*np.zeros((3, 19)), np.ones(19), 0.96, 1.0)


def test_an_inversion_in_float32_leaves_no_subnormal_numbers():
    """Products of narrow kernels are subnormal, with which an inversion takes fifty times as long."""
    X = np.linspace(0.0, 30.0, 200)[:, None]
    K, ridge = np.exp(-2.0 * (X - X.T) ** 2), np.geomspace(1e-3, 1e3, 200)
    exact = np.linalg.inv(K + np.diag(ridge))
    found, _ = inverted(K.astype(np.float32), ridge, np.ones((200, 1), dtype=np.float32))
    diagonal, _ = inverted(K.astype(np.float32), ridge, np.ones((200, 1), dtype=np.float32), diagonal=True)
    np.testing.assert_allclose(diagonal, np.diag(exact), rtol=1e-4)
    lower = np.tril(found)
    assert not ((lower != 0.0) & (np.abs(lower) < np.finfo(np.float32).tiny)).any()
    size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    np.testing.assert_allclose(lower / size, np.tril(exact) / size, atol=1e-4)
