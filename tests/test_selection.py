"""Regularization parameters that estimators choose, the scale they are on, and exact leave-one-out predictions."""

import dataclasses
import time
import warnings
import weakref
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_moons
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

import convexkernels as ck
from convexkernels.checkpoint import Checkpoint, Piece
from convexkernels.clock import Clock
from convexkernels.driver import approach
from convexkernels.estimators import left_out
from convexkernels.estimators.convex import by_squares, multiple_kernel, selection, tessellated
from convexkernels.estimators.convex import fold as fold_module
from convexkernels.estimators.convex import path as path_module
from convexkernels.estimators.convex.base import NOTABLE
from convexkernels.estimators.convex.fold import Fold, folds_of, scored_weights
from convexkernels.estimators.convex.multiple_kernel import COMPARED, SHORTER
from convexkernels.estimators.convex.path import Path
from convexkernels.estimators.convex.selection import choose
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError, UnsuitedFamilyWarning
from convexkernels.families import candidates
from convexkernels.families.stacks.base import StreamedStack
from convexkernels.plotting import SelectionDisplay
from convexkernels.solvers import make_solver

CLASSIFIERS = [ck.TessellatedSVC, ck.MultipleKernelSVC]
HINGE = {"hinge": lambda C, _: ck.Hinge(C)}
REGRESSORS = [ck.TessellatedSVR, ck.TessellatedRidge, ck.MultipleKernelSVR, ck.MultipleKernelRidge]


def noisy(kind, m=150, n_noise=0):
    if kind in CLASSIFIERS:
        X, y = make_moons(m, noise=0.3, random_state=0)
        return np.hstack([X, np.random.default_rng(1).standard_normal((m, n_noise))]), y
    return make_friedman1(m, noise=1.0, random_state=0)


def regularization(model):
    return ("lam", model.lam_) if hasattr(model, "lam_") else ("C", model.C_)


def found_by(model, *names):
    """What a fit has found for parameters, where it has them."""
    return {name: getattr(model, f"{name}_") for name in names if hasattr(model, f"{name}_")}


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS, ids=lambda kind: kind.__name__)
def test_what_is_chosen_is_the_best_of_what_was_tried_and_is_what_is_used(kind):
    X, y = noisy(kind)
    model = kind(tol=1e-6).fit(X, y)
    name, value = regularization(model)
    chosen = model.selection_
    assert chosen.name == name
    assert value == chosen.value
    assert (np.diff(chosen.values) > 0.0).all()
    assert chosen.scores[chosen.values == value] >= chosen.scores.max() - 0.01
    assert chosen.scores.max() > 0.7
    # Both ends are worse: the path was long enough.
    assert chosen.scores[[0, -1]].min() < chosen.scores.max()
    given = {name: value} | found_by(model, "epsilon", "kernels")
    again = kind(tol=1e-6, **given).fit(X, y)
    assert again.selection_ is None
    # The same problem, which the other fit begins with where the choice has led to.
    assert again.solution_.value == pytest.approx(model.solution_.value, rel=2e-6)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-3)


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n_noise", [0, 20])
@pytest.mark.parametrize("intercept", [True, False])
def test_families_have_unit_scale_for_any_number_of_features(kind, n_noise, intercept):
    X, y = noisy(kind, 60, n_noise)
    given = {"lam": 0.5} if "lam" in kind().get_params() else {"C": 1.0}
    solution = kind(**given, intercept=intercept, tol=0.1).fit(X, y).solution_
    K = solution.problem.family.on(solution.problem.X).gram(solution.theta)
    size = np.trace(K) / len(K) - (K.mean() if intercept else 0.0)
    assert 0.02 < size <= 1.0 + 1e-6
    family = solution.problem.family.on(solution.problem.X, modulo_constants=intercept)
    assert family.largest_scale(intercept) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("landmarks", [None, 20])
@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.TessellatedRidge], ids=lambda kind: kind.__name__)
def test_rounding_is_no_scale_where_all_rows_are_the_same(kind, landmarks):
    """What is left of a constant kernel by centering is rounding: the bound on the trace was one over it."""
    X, y = np.full((30, 2), 0.3), np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    given = {"lam": 0.5} if "lam" in kind().get_params() else {"C": 1.0}
    solution = kind(**given, degree=1, landmarks=landmarks).fit(X, y).solution_
    assert solution.problem.family.trace == 1.0
    assert solution.status.is_success
    assert solution.problem.gram_set.largest_scale(True) == 0.0
    assert solution.problem.family.on(solution.problem.X).largest_scale(False) > 0.5


def test_units_of_the_targets_change_nothing_but_the_tube():
    X, y = noisy(ck.TessellatedSVR)
    plain = ck.TessellatedSVR(tol=1e-6).fit(X, y)
    scaled = ck.TessellatedSVR(tol=1e-6).fit(X, 1024.0 * y)
    assert scaled.C_ == plain.C_
    assert scaled.epsilon_ == pytest.approx(1024.0 * plain.epsilon_, rel=1e-3)
    np.testing.assert_allclose(scaled.predict(X), 1024.0 * plain.predict(X), rtol=1e-2)
    ridge, far = (ck.TessellatedRidge(tol=1e-6).fit(X, s * y) for s in (1.0, 1024.0))
    assert far.lam_ == ridge.lam_
    for kind in (ck.TessellatedSVR, ck.MultipleKernelSVR):
        given, alike, twice = (
            kind(C=1.0, epsilon=e, tol=1e-6).fit(X, s * t)
            for e, s, t in ((0.5, 1.0, y), (512.0, 1024.0, y), (0.5 / np.std(y), 1.0, np.column_stack([y, 3.0 * y])))
        )
        assert given.epsilon_ == pytest.approx(0.5)
        assert given.score(X, y) > 0.5  # C = 1 is a soft margin, and no more
        np.testing.assert_allclose(alike.predict(X), 1024.0 * given.predict(X), rtol=1e-6)
        np.testing.assert_allclose(twice.epsilon_, [0.5, 1.5])
        np.testing.assert_allclose(twice.predict(X), np.outer(given.predict(X), [1.0, 3.0]), rtol=1e-2)


@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_units_of_the_weights_scale_what_is_chosen(kind):
    X, y = noisy(kind, 60)
    weights = np.random.default_rng(2).uniform(0.5, 1.5, len(X))
    models = [kind(tol=1e-6).fit(X, y, sample_weight=factor * weights) for factor in (1.0, 2.0**20)]
    (name, one), (_, other) = map(regularization, models)
    assert other / one == pytest.approx(2.0**20 if name == "lam" else 2.0**-20)
    np.testing.assert_allclose(*(model._values(X) for model in models), atol=1e-3)


def test_held_out_rows_are_seen_by_neither_kernel_nor_functions():
    """Labels that are coins are predicted no better than by a constant, whatever was learned from the others."""
    best, mean = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.random((200, 3)), rng.permutation(np.repeat([-1.0, 1.0], 100))
        problem = ck.KernelLearning(ck.Tessellated(1, 0), ck.Hinge(), X, y)
        *_, found = choose(problem, {"all": problem.family}, "C", HINGE, np.array([0.1, 1.0, 10.0]), Clock())
        best.append(found.scores.max())
        mean.append(found.scores.mean())
    assert np.mean(best) < 0.55
    assert np.mean(mean) == pytest.approx(0.5, abs=0.025)  # two standard errors of 1,600 coins


@pytest.mark.parametrize("m", [2, 4, 5])
def test_tables_too_small_to_hold_rows_out_take_the_middle_of_the_scale(m):
    X, y = make_friedman1(m, random_state=0)
    assert ck.TessellatedRidge().fit(X, y).lam_ == 0.5
    model = ck.MultipleKernelSVC().fit(X, np.arange(m) % 2)
    assert (model.C_, model.selection_) == (1.0, None)
    with pytest.raises(ck.InvalidInputError, match="had nothing to choose"):
        SelectionDisplay.from_estimator(model)


def test_a_class_with_one_row_does_not_stop_the_choice():
    X, _ = make_moons(60, random_state=0)
    y = np.where(np.arange(60) == 7, "rare", np.where(X[:, 0] > 0.5, "right", "left"))
    assert ck.TessellatedSVC().fit(X, y).selection_.scores.max() > 0.9


def test_the_time_limit_holds_for_choosing_and_learning_together_and_warns_once():
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    ck.MultipleKernelRidge(lam=1.0).fit(X[:20], y[:20])  # compiles
    began = time.process_time()
    with pytest.warns(ConvexKernelsWarning) as caught:
        model = ck.MultipleKernelRidge(max_time=0.02, tol=1e-9).fit(X, y)
    assert time.process_time() - began < 3.0
    assert len(caught) == 1
    assert model.solution_.status is ck.Status.TIME_LIMIT


def over():
    clock = Clock()
    clock.interrupt()
    return clock


def test_the_matrices_of_candidates_are_part_of_the_time_limit(monkeypatch):
    formed = []
    stack = candidates.make_stack
    monkeypatch.setattr(
        candidates, "make_stack", lambda kernels, *a, **o: formed.append(kernels) or stack(kernels, *a, **o)
    )
    X = np.random.default_rng(0).normal(size=(600, 60))
    with pytest.warns(ConvexKernelsWarning, match="max_time left no time to form the matrices of 68 of the") as caught:
        model = ck.MultipleKernelRidge(max_time=1e-6).fit(X, X[:, 0])
    assert len(caught) == 1
    assert len(model.weights_) == 3
    assert sum(map(len, formed)) <= 6  # those of the table, and of the one fold that was begun
    assert len(ck.MultipleKernelRidge()._families(X, Clock(60.0))["all"].candidates) == 71


def test_folds_form_their_matrices_when_they_are_visited(monkeypatch):
    X, y = noisy(ck.MultipleKernelSVR, 60)
    problem, formed = ck.KernelLearning(ck.Tessellated(0), ck.EpsilonInsensitive(), X, y), []
    on_rows = ck.KernelLearning.on_rows
    monkeypatch.setattr(ck.KernelLearning, "on_rows", lambda *a: formed.append(a) or on_rows(*a))
    values = np.array([0.1, 1.0])
    request = problem, {"all": problem.family}, "C", {"tube": lambda C, _: ck.EpsilonInsensitive(C)}, values
    assert choose(*request, over()) == (problem, "all", "tube", None)
    assert len(formed) == 1
    choose(*request, Clock())
    assert len(formed) == 1 + 3


def test_least_squares_leave_out_every_row_for_the_kernel_of_all(monkeypatch):
    """Against solutions for the others, at the kernel that was learned; no matrices but those of the problem."""
    X, y = noisy(ck.MultipleKernelSVR, 40)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    problem = ck.KernelLearning(ck.Tessellated(0), ck.LeastSquares(), X, 3.0 + y, sample_weight=weights)
    monkeypatch.setattr(ck.KernelLearning, "on_rows", None)
    (fold,) = folds_of(problem, problem.family, scored_weights(problem))
    error = fold.error(0.3, ck.LeastSquares(0.3), Clock())
    K, squares = problem.full_gram_set.gram(fold.points[0.3][0]), []
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        one = np.ones((len(rest), 1))
        system = np.block([[K[np.ix_(rest, rest)] + np.diag(0.3 / weights[rest]), one], [one.T, 0.0]])
        w, b = np.split(np.linalg.solve(system, np.append(y[rest], 0.0)), [len(rest)])
        squares.append((w @ K[rest, i] + b[0] - y[i]) ** 2)
    assert error == pytest.approx(weights @ squares, rel=1e-6)


def test_a_value_at_which_the_arithmetic_breaks_down_is_not_chosen(monkeypatch):
    X, y = noisy(ck.TessellatedRidge, 40)
    usual = left_out.left_out_values

    def broken(K, loss, Y, weights):
        F, leverage = usual(K, loss, Y, weights)
        return (np.full_like(F, np.nan) if loss.lam < 0.1 else F), leverage

    monkeypatch.setattr(left_out, "left_out_values", broken)
    model = ck.TessellatedRidge().fit(X, y)
    assert model.lam_ >= 0.1
    assert np.isfinite(model.selection_.score)


@pytest.mark.parametrize(
    "model",
    [
        ck.MultipleKernelRidge(lam=1.0),
        ck.TessellatedRidge(lam=1.0),
        ck.ConcatenatedKernelRegressor(lam=0.1, mu=0.1, n_restarts=1),
        ck.HierarchicalGaussianRegressor(1),
        ck.SpectralKernelRegressor(n_components=5),
        ck.VoronoiRidge(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_clock_begins_before_the_table_is_read(model, monkeypatch):
    X, y = noisy(type(model), 30)
    began = []
    read, problem = type(model)._read, type(model)._problem

    def reading(self, *arguments):
        began.append(time.monotonic())
        return read(self, *arguments)

    def stating(self, table, targets, clock):
        began.append(clock.began)
        return problem(self, table, targets, clock)

    monkeypatch.setattr(type(model), "_read", reading)
    monkeypatch.setattr(type(model), "_problem", stating)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)
        model.fit(X, y)
    assert began[1] <= began[0]


def followed(monkeypatch, then=None):
    """The paths that are followed from now on, with the limits of their clocks."""
    paths, follow = [], Path.follow

    def watched(path, clock):
        paths.append((path, clock.max_time))
        follow(path, clock)
        if then is not None:
            then(paths)

    monkeypatch.setattr(Path, "follow", watched)
    return paths


def test_families_and_the_path_share_the_time_of_the_choice(monkeypatch):
    paths, seen, look = followed(monkeypatch), [], selection.glance
    monkeypatch.setattr(selection, "glance", lambda *given: seen.append(given[-1].max_time) or look(*given))
    X, y = noisy(ck.MultipleKernelSVR, 40)
    ck.MultipleKernelSVR(tol=1e-2, max_time=600.0, loss="epsilon_insensitive").fit(X, y)
    limits = [limit for _, limit in paths]
    assert seen == [pytest.approx(0.5 * 300.0, rel=0.1)]  # half of the limit is for choosing
    assert limits == [pytest.approx(300.0, rel=0.1)]  # what is left of that
    seen.clear()
    ck.TessellatedSVR(tol=1e-2, max_time=600.0).fit(X, y)
    # Its own family, and the references.
    assert seen[0] == pytest.approx(150.0, rel=0.1)
    assert seen[1:] == [pytest.approx(300.0, rel=0.1)] * (len(seen) - 1)
    assert len(seen) > 1


@pytest.mark.parametrize("few", [True, False])
def test_matrices_of_all_rows_are_formed_once_for_all_lists_or_for_the_best_one(few, monkeypatch):
    """On a table that is longer than what is looked at, beside those of the smoothest list that it is stated with."""
    X, y = noisy(ck.MultipleKernelSVR, 60)
    monkeypatch.setattr(by_squares, "MOST_ROWS", 60 if few else 40)
    formed, alive, stacks, make_stack = [], [], weakref.WeakSet(), candidates.make_stack

    def watched(kernels, points, **options):
        if len(points) == 60:
            formed.append(len(kernels))
            alive.append(len(stacks))
        stack = make_stack(kernels, points, **options)
        stacks.add(stack) if len(points) == 60 else None
        return stack

    monkeypatch.setattr(candidates, "make_stack", watched)
    model = ck.MultipleKernelSVR().fit(X, y)
    lists = {name: len(family.candidates) for name, family in model._families(X, Clock()).items()}
    if few:
        assert formed == [lists["smoothest"], lists["all"] + 2]  # and the two narrower Gaussians
    else:
        assert formed == [lists["smoothest"], len(model.weights_)][: 1 + (model.kernels_ != "smoothest")]
        assert not any(alive)  # not both in memory


@pytest.mark.parametrize("kind", [ck.MultipleKernelSVR, ck.MultipleKernelRidge])
@pytest.mark.parametrize("limit", [None, 12e6, 8e6, 4.5e6])
def test_the_last_fit_has_matrices_as_exact_as_its_own_list_allows(kind, limit, monkeypatch):
    """All lists together may not fit the memory in float64, or not at all."""
    rng, stacks, solve = np.random.default_rng(0), [], ck.KernelLearning.solve
    X = rng.normal(size=(300, 20))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=300)
    monkeypatch.setattr(
        ck.KernelLearning, "solve", lambda problem, **o: stacks.append(problem.gram_set.stack) or solve(problem, **o)
    )
    model = kind(memory_limit=limit, tol=1e-2, max_time=None).fit(X, y)
    own = ck.KernelLearning(
        model.solution_.problem.family, model.solution_.problem.loss, model.solution_.problem.X, y, memory_limit=limit
    )
    assert type(stacks[0]) is type(own.gram_set.stack)
    assert getattr(stacks[0], "values", y).dtype == getattr(own.gram_set.stack, "values", y).dtype


@pytest.mark.parametrize("kind", [ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_matrices_of_folds_are_let_go_before_those_of_all_rows_are_formed(kind, monkeypatch):
    X, y = noisy(kind, 60)
    monkeypatch.setattr(by_squares, "MOST_ROWS", 40)
    alive, stacks, make_stack = [], weakref.WeakSet(), candidates.make_stack

    def watched(kernels, points, **options):
        alive.append([(len(one.kernels), one.m) for one in stacks if not isinstance(one, StreamedStack)])
        stack = make_stack(kernels, points, **options)
        stack.kernels = kernels
        stacks.add(stack)
        return stack

    monkeypatch.setattr(candidates, "make_stack", watched)
    model = kind(loss="epsilon_insensitive").fit(X, y) if kind is ck.MultipleKernelSVR else kind().fit(X, y)
    if model.kernels_ == "smoothest":
        pytest.fail("its matrices are those of the problem")
    if kind is ck.MultipleKernelSVR:
        assert alive[-1] == []
    else:  # those of the path are those of all rows
        assert [one.m for one in stacks if not isinstance(one, StreamedStack)].count(60) <= 1


@pytest.mark.parametrize("estimator", [ck.MultipleKernelSVC, ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_rougher_families_are_looked_at_where_the_library_is_better(estimator):
    """Steps along two of eight features, which kernels on all features together see badly, and a smooth function."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 8))
    steps, smooth = np.sin(9.0 * X[:, 0]) + np.sin(9.0 * X[:, 1]), X.sum(axis=1) ** 2 / 3.0 - 1.0
    for F in (steps, smooth):
        one_loss = {"loss": "epsilon_insensitive"} if estimator is ck.MultipleKernelSVR else {}
        model = estimator(tol=1e-2, **one_loss).fit(X, np.sign(F) if estimator is ck.MultipleKernelSVC else F)
        best = {name: scores.max() for name, (_, scores) in model.selection_.paths.items()}
        assert (model.kernels_ == "all") == (F is steps)
        assert list(best) == [name for name in COMPARED if F is steps or not name.startswith("rough")]
        assert len(model.weights_) == len(model._families(X, Clock())[model.kernels_].candidates)


@pytest.mark.parametrize("estimator", [ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_a_product_of_waves_is_learned_with_narrow_kernels_on_all_features(estimator):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    model = estimator(tol=1e-2).fit(X, np.sin(9.0 * X[:, 0]) * np.sin(9.0 * X[:, 1]))
    assert model.kernels_ in {"rough", "rougher"}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_families_are_compared_by_functions_trained_without_the_row(outputs, weights):
    """At every value, for the kernel that all rows have led to; a larger family has to be better by a twentieth."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (40, 2))
    Y = np.column_stack([np.sin(4.0 * X[:, 0]), X[:, 1]])[:, :outputs] + 0.3 * rng.standard_normal((40, outputs))
    unit = rng.uniform(0.5, 2.0, 40) if weights else np.ones(40)
    families = {
        "quick": ck.Candidates([ck.Gaussian(1.0), ck.Gaussian(9.0)], "mean"),
        "slow": ck.Candidates([ck.Gaussian(0.01), ck.Gaussian(0.02)], "mean"),
    }
    problem = ck.KernelLearning(families["slow"], ck.EpsilonInsensitive(), X, Y, sample_weight=unit)
    scored, values = np.broadcast_to(unit, (outputs, 40)), np.array([0.1, 1.0, 10.0])
    request = families, values, "C"
    seen = by_squares.glance(problem, *request, scored, Clock())
    assert list(seen.scores) == ["quick", "slow"]
    assert seen.problem.family is families["quick"]
    K = seen.problem.gram_set.gram(seen.theta)
    total = unit @ np.mean((Y - np.average(Y, axis=0, weights=unit)) ** 2, axis=1)
    for k, C in enumerate(values.tolist()):
        left = np.array([refitted(K, Y, unit, 0.5 / C, True, row) for row in range(40)])
        assert seen.scores["quick"][k] == pytest.approx(1.0 - unit @ np.mean((Y - left) ** 2, axis=1) / total)
    best = seen.scores["quick"].max()
    assert (seen.family, seen.scores["quick"][values.tolist().index(seen.value)]) == ("quick", pytest.approx(best))
    assert (1.0 - best) < (1.0 - by_squares.GAIN) * (1.0 - seen.scores["slow"].max())
    assert seen.deviation == pytest.approx(np.sqrt(1.0 - best) * np.sqrt(total / unit.sum()), rel=0.2)
    same = {"one": ck.Candidates([ck.Gaussian(1.0)], "mean"), "other": ck.Candidates([ck.Gaussian(0.97)], "mean")}
    problem = problem.on_rows(np.arange(40), same["other"])
    again = by_squares.glance(problem, same, *request[1:], scored, Clock())
    assert again.family == "other"  # the smoother one of those that are as good


def test_outliers_are_not_looked_at_when_families_are_compared(rng):
    X = rng.uniform(-1.0, 1.0, (60, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    y[:4] = 1e4
    family, scored = ck.Candidates([ck.Gaussian(1.0)], "mean"), np.ones((1, 60))
    scored[:, :4] = 0.0
    values = 10.0 ** np.arange(-2.0, 4.0)
    both = []
    for rows in (np.arange(60), np.arange(4, 60)):
        problem = ck.KernelLearning(family, ck.EpsilonInsensitive(), X[rows], y[rows])
        both.append(by_squares.glance(problem, {"": family}, values, "C", scored[:, rows], Clock()))
    assert both[0].value == both[1].value
    assert both[0].problem is None  # of all rows
    np.testing.assert_allclose(both[0].scores[""], both[1].scores[""], atol=1e-6)


def test_nothing_is_seen_without_time_or_where_targets_are_alike():
    problem, other, values = moons()
    request = problem, {"all": problem.family, "some": other}, values, "C", np.ones((1, 60))
    assert by_squares.glance(*request, over()) is None
    few = problem.on_rows(np.arange(5))
    assert by_squares.glance(few, {"": few.family}, values, "C", np.ones((1, 5)), Clock()) is None
    flat = ck.KernelLearning(problem.family, ck.EpsilonInsensitive(), problem.X, np.ones(60))
    assert by_squares.glance(flat, {"": flat.family}, values, "C", np.ones((1, 60)), Clock()) is None


def test_the_loss_is_chosen_after_families(monkeypatch):
    rng, paths = np.random.default_rng(0), followed(monkeypatch)
    X = rng.uniform(-1.0, 1.0, (200, 8))
    y = np.digitize(np.sin(9.0 * X[:, 0]) + np.sin(9.0 * X[:, 1]), [-0.5, 0.5])
    model = ck.MultipleKernelSVC(loss="auto", tol=1e-2).fit(X, y)
    (hinge, _), (squares, _) = paths
    assert len(hinge.family.candidates) == len(squares.family.candidates) == len(model.weights_) == 27
    assert isinstance(squares.loss_at(1.0, 1.0), ck.LeastSquares)
    assert squares.begin == hinge.best


def test_a_choice_goes_on_from_what_its_checkpoint_holds(tmp_path, monkeypatch):
    """An interrupt in the path of values, and another run after all of it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 8))
    y = np.sin(9.0 * X[:, 0]) + np.sin(9.0 * X[:, 1])
    plain = ck.MultipleKernelSVR(tol=1e-2).fit(X, y)
    model = ck.MultipleKernelSVR(tol=1e-2, checkpoint=tmp_path / "choice")
    solved, values_of = [], Fold.values_of

    def fourth(fold, *found):
        if len(solved) == 3:
            raise KeyboardInterrupt
        solved.append(fold)
        return values_of(fold, *found)

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)
        patch.setattr(Fold, "values_of", fourth)
        model.fit(X, y)
    assert len(solved) == 3
    with monkeypatch.context() as patch:
        patch.setattr(by_squares, "approach", None)  # families are known
        patch.setattr(Fold, "values_of", lambda fold, *found: solved.append(fold) or values_of(fold, *found))
        model.fit(X, y)
    assert len(solved) == 3 * len(plain.selection_.values)
    for _ in range(2):
        assert len(model.weights_) == len(plain.weights_) == 27
        assert model.C_ == plain.C_
        np.testing.assert_array_equal(model.selection_.scores, plain.selection_.scores)
        assert str(model.selection_.curve) == str(plain.selection_.curve)
        model.fit(X, y)


def product(m):
    """What wide Gaussians and polynomials of all features see, and narrow ones and those of single features do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 6))
    return X, X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=m)


@pytest.mark.parametrize("kind", [ck.MultipleKernelSVC, ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_the_list_of_candidates_that_was_chosen_has_a_name_and_may_be_given_back(kind):
    X, y = product(200)
    y = y > 0.0 if kind is ck.MultipleKernelSVC else y
    model = kind(tol=1e-2).fit(X, y)
    name, value = regularization(model)
    found = model.selection_
    assert model.kernels_ in {"smooth", "smoothest"}
    loss = {} if found.loss is None else {"loss": found.loss}
    assert found.chosen == {name: value, "kernels": model.kernels_} | loss
    assert f"kernels={model.kernels_}" in model.describe()
    # What lists were compared by, and where the path of values began, is there to be seen.
    best = {one: scores.max() for one, (_, scores) in found.paths.items()}
    assert set(best) >= {"all", "smooth"}
    assert all(len(values) == len(scores) == 17 for values, scores in found.paths.values())
    smoother = list(best)[list(best).index(model.kernels_) + 1 :]
    assert all(1.0 - best[model.kernels_] < 0.95 * (1.0 - best[one]) for one in smoother)
    assert list(dict.fromkeys(found.curve["kernels"])) == [*best, f"{model.kernels_}, learned anew"]
    np.testing.assert_array_equal(found.curve[name][-len(found.values) :], found.values)
    assert min(found.curve["score on rows left out, 0 at least"]) >= 0.0
    drawn = SelectionDisplay.from_estimator(model).plot().ax_
    lines = [f"kernels = {one}" for one in dict.fromkeys(found.curve["kernels"])]
    assert lines == [line.get_label() for line in drawn.lines[:-1]]
    plt.close("all")
    given = {name: value} | found_by(model, "epsilon", "loss", "kernels")
    again = kind(tol=1e-2, **given).fit(X, y)
    assert again.solution_.value == pytest.approx(model.solution_.value, rel=0.02)
    assert (again.selection_, again.kernels_, again.kernel_names_) == (None, model.kernels_, model.kernel_names_)


@pytest.mark.parametrize("kind", [ck.MultipleKernelSVC, ck.MultipleKernelRidge])
def test_lists_of_candidates_are_compared_at_a_value_that_is_given_too(kind):
    X, y = product(200)
    y = y > 0.0 if kind is ck.MultipleKernelSVC else y
    name = "C" if kind is ck.MultipleKernelSVC else "lam"
    model, every = (kind(**{name: 0.5}, kernels=kernels, tol=1e-2).fit(X, y) for kernels in (None, "all"))
    found = model.selection_
    assert set(found.curve[name]) == {0.5}
    assert model.kernels_ == found.kernels
    assert all(len(scores) == 1 for _, scores in found.paths.values())
    assert model.kernels_ != "all"
    assert every.selection_ is None
    assert len(every.weights_) == 11 + 2 * 6 > len(model.weights_)
    assert SelectionDisplay.from_estimator(model).plot().ax_.get_xlabel() == "kernels"
    plt.close("all")
    search = GridSearchCV(kind(tol=1e-2), {name: [0.05, 0.5]}, cv=2).fit(X, y)
    assert search.best_estimator_.kernels_ != "all"


def test_what_candidates_are_called_is_what_gives_them_back():
    X, y = product(60)
    sizes = {}
    for name in (*COMPARED, *SHORTER):
        model = ck.MultipleKernelRidge(kernels=name, tol=1e-2).fit(X, y)
        assert (model.kernels_, model.selection_.chosen) == (name, {"lam": model.lam_})
        assert model.kernel_names_[-1].endswith(" on x5" if name == "all" else " on all")
        sizes[name] = len(model.weights_)
    of_few = {"smooth": 8, "smoothest": 6, "joint": 11, "few": 3}
    assert sizes == {"rougher": 13, "rough": 12, "all": 23} | of_few
    listed = [ck.Gaussian(0.1), ck.Gaussian(1.0)]
    model = ck.MultipleKernelRidge(listed, lam=1.0).fit(X, y)
    assert model.set_params(kernels="few").kernels_ is listed
    assert model.kernel_names_ == ["Gaussian(gamma=0.1)", "Gaussian()"]
    stack = np.stack([kernel(X) for kernel in listed])
    assert ck.MultipleKernelRidge("precomputed", lam=1.0).fit(stack, y).kernels_ == "precomputed"
    assert ck.MultipleKernelRidge(lam=1.0).fit(X, np.ones(60)).kernels_ == "smoothest"  # constants say nothing of lists


def test_candidates_that_time_is_left_for_have_a_name_too(monkeypatch):
    X, y = product(60)
    monkeypatch.setattr(multiple_kernel, "_in_time", lambda family, *_: len(family.candidates) < 4)
    with pytest.warns(ConvexKernelsWarning, match="max_time left no time to form the matrices of 20 of the"):
        short = ck.MultipleKernelRidge(max_time=30.0).fit(X, y)
    assert short.selection_.chosen == {"lam": short.lam_, "kernels": "few"}
    assert list(short.selection_.paths) == ["few"]
    again = ck.MultipleKernelRidge(**short.selection_.chosen).fit(X, y)
    assert again.kernels_ == short.kernels_ == "few"
    np.testing.assert_allclose(again.predict(X), short.predict(X), rtol=1e-6)


def test_a_limit_that_ends_the_choice_of_a_list_says_so(monkeypatch):
    follow = Path.follow
    monkeypatch.setattr(Path, "follow", lambda path, clock: (follow(path, clock), setattr(clock, "max_time", 0.0)))
    X, y = product(60)
    with pytest.warns(ConvexKernelsWarning, match="max_time ended the choice of kernels early") as caught:
        model = ck.MultipleKernelRidge(lam=0.5).fit(X, y)
    assert len(caught) == 1
    assert model.lam_ == 0.5


def held_out(problem, **options):
    return folds_of(problem, problem.family, scored_weights(problem), **options)[0]


@pytest.mark.parametrize("loss", [ck.LeastSquares(), ck.EpsilonInsensitive(), ck.Hinge()])
@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (150, [(100, 50)] * 3),
        (390, [(260, 130)] * 3),
        (600, [(400, 200)] * 2),
        (900, [(600, 300)] * 2),
        (1060, [(667, 333)] * 2),
        (1080, [(667, 413)]),
        (2000, [(667, 1333)]),
        (4000, [(667, 2000)]),
    ],
)
def test_folds_are_as_many_as_hold_enough_rows_out(loss, m, expected, rng):
    X, F = rng.uniform(size=(m, 1)), rng.standard_normal(m)
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0)]), loss, X, np.sign(F) if loss.of_labels else F)
    asked = problem, problem.family, scored_weights(problem)
    folds = folds_of(*asked)
    if isinstance(loss, ck.LeastSquares):  # each row in closed form
        (fold,) = folds
        np.testing.assert_array_equal(fold.train, fold.held)
        assert len(fold.train) == min(m, 1000)
        return
    assert len(folds) == len(expected)
    for fold, (n_train, n_held) in zip(folds, expected, strict=True):
        assert not np.intersect1d(fold.train, fold.held).size
        assert len(fold.train) == pytest.approx(n_train, abs=2)
        assert len(fold.held) == pytest.approx(n_held, abs=0.18 * n_held)  # rows to learn from may be among the sample
        assert fold.scored.shape == (1, len(fold.held))
    held = np.concatenate([fold.held for fold in folds])
    assert len(np.unique(held)) == len(held)


@pytest.mark.parametrize("sizes", [[1000, 999, 1], [1999, 1], [700, 99, 1], [3000, 980, 7, 3]])
def test_a_rare_class_leaves_folds_that_have_learned_it(sizes, rng):
    """One row of a class is held out by one of three folds: another one is taken, not none."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(10):
        rng.shuffle(y)
        labels = np.where(y == 1, 1.0, -1.0) if len(sizes) == 2 else 2.0 * np.eye(len(sizes))[y] - 1.0
        X = rng.uniform(size=(len(y), 1))
        problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0)]), ck.Hinge(), X, labels)
        folds = folds_of(problem, problem.family, scored_weights(problem))
        assert len(folds) == (2 if len(y) < 1000 else 1)
        assert all(len(np.unique(y[fold.train])) == len(sizes) for fold in folds)


@pytest.mark.parametrize("rows", [[0], [0, 1], [1500], [10, 2999]])
@pytest.mark.parametrize("estimator", [ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_numbers_of_which_hardly_any_differ_are_compared_where_one_is_held_out(estimator, rows, rng):
    X, y = rng.uniform(size=(3000, 2)), np.zeros(3000)
    y[rows] = 1.0
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0)]), ck.EpsilonInsensitive(), X, y)
    (fold,) = folds_of(problem, problem.family, np.ones((1, 3000)))
    assert np.ptp(fold.Y) == 1.0
    model = estimator(kernels=[ck.Gaussian(1.0)], tol=1e-2).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_numbers_that_are_scored_alike_compare_nothing(rng):
    problem = ck.KernelLearning(
        ck.Candidates([ck.Gaussian(1.0)]), ck.EpsilonInsensitive(), rng.uniform(size=(60, 1)), rng.random(60)
    )
    assert folds_of(problem, problem.family, np.zeros((1, 60))) == []


def test_rows_beyond_the_sample_are_scored_on_and_have_every_class(rng):
    X, y = rng.uniform(size=(5000, 1)), np.repeat([0, 1, 2], [4980, 12, 8])
    weights = rng.uniform(0.5, 2.0, 5000)
    problem = ck.KernelLearning(
        ck.Candidates([ck.Gaussian(1.0)]), ck.Hinge(), X, 2.0 * np.eye(3)[y] - 1.0, sample_weight=weights
    )
    (fold,) = folds_of(problem, problem.family, scored_weights(problem))
    assert set(y[fold.train]) == set(y[fold.held]) == {0, 1, 2}
    np.testing.assert_array_equal(fold.weights, weights[fold.held])
    np.testing.assert_array_equal(fold.scored[0], weights[fold.held])
    np.testing.assert_array_equal(fold.X, X[fold.held])
    assert fold.total == pytest.approx(weights[fold.held].sum())


def test_errors_are_kept_row_by_row_and_for_one_tolerance(tmp_path, monkeypatch):
    problem, *_ = moons()
    clock = Clock(checkpoint=Checkpoint(tmp_path / "kept", 0))
    first, again, finer = held_out(problem), held_out(problem), held_out(problem, tol=1e-3)
    first.error(1.0, ck.Hinge(), clock)
    assert len(set(first.errors[1.0].tolist())) > 1
    solved, values_of = [], Fold.values_of
    monkeypatch.setattr(Fold, "values_of", lambda fold, *found: solved.append(fold) or values_of(fold, *found))
    for fold in (again, finer):
        fold.error(1.0, ck.Hinge(), clock)
    np.testing.assert_array_equal(again.errors[1.0], first.errors[1.0])
    assert solved == [finer]


def test_wrong_labels_count_as_much_as_their_rows_and_what_is_no_number_is_worst(monkeypatch):
    X, y = make_moons(60, noise=0.3, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    family = ck.Candidates([ck.Gaussian(0.5), ck.Gaussian(2.0)])
    fold = held_out(ck.KernelLearning(family, ck.Hinge(), X, 2.0 * y - 1.0, sample_weight=weights))
    np.testing.assert_array_equal(fold.errors_of(-fold.Y), weights[fold.held])
    np.testing.assert_array_equal(fold.errors_of(fold.Y), np.zeros(len(fold.held)))
    monkeypatch.setattr(Fold, "values_of", lambda fold, *_: np.where(np.arange(len(fold.held)) < 3, np.nan, fold.Y))
    assert fold.error(1.0, ck.Hinge(), Clock()) == np.inf
    assert np.flatnonzero(fold.errors[1.0]).tolist() == [0, 1, 2]


def test_constant_targets_are_learned_with_the_smoothest_family():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 4))
    model = ck.MultipleKernelSVR().fit(X, np.full(60, 3.0))
    assert model.kernels_ == "smoothest"
    np.testing.assert_allclose(model.predict(X), 3.0)


def test_one_value_that_is_no_better_than_constants_decides_nothing(monkeypatch):
    """Of noise, where there was time for one value."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.random.default_rng(1).normal(size=60)
    family = ck.Candidates([ck.Gaussian(20.0), ck.Gaussian(40.0)], "mean")
    problem = ck.KernelLearning(family, ck.EpsilonInsensitive(), X, y)
    limited_to_one_value(monkeypatch)
    request = {"all": family}, "C", {"tube": lambda C, _: ck.EpsilonInsensitive(C)}, np.array([0.1, 1.0, 10.0])
    *_, noise = choose(problem, *request, Clock(60.0))
    assert (len(noise.values), noise.value) == (0, 0.1)  # what squares say
    with monkeypatch.context() as patch:
        patch.setattr(selection, "glance", lambda *_: None)
        assert choose(problem, *request, Clock(60.0))[-1] is None
    clear = ck.KernelLearning(family, ck.EpsilonInsensitive(), X / 10.0, X[:, 0])
    *_, path = choose(clear, *request, Clock(60.0))
    assert len(path.values) == 1
    assert path.score > 0.0


def test_a_choice_is_kept_for_one_tolerance(tmp_path, monkeypatch):
    problem, other, values = moons()
    request = problem, {"all": problem.family, "some": other}, "C", HINGE, values
    paths, checkpoint = followed(monkeypatch), Checkpoint(tmp_path / "kept", 0)
    for tol, count in ((1e-2, 1), (1e-2, 1), (1e-3, 2)):
        choose(*request, Clock(checkpoint=checkpoint), tol)
        assert len(paths) == count


@pytest.mark.parametrize(
    ("errors", "cut", "given", "says"),
    [
        ([9.0], True, False, True),
        ([10.0], True, False, False),
        ([10.0], True, True, True),
        ([10.0], False, False, True),
        ([10.0, 11.0], True, False, True),
        ([], False, False, False),
    ],
)
def test_one_value_says_something_where_it_beats_constants_or_time_is_not_up(errors, cut, given, says):
    """Constants have an error of 10."""
    whole = SimpleNamespace(loss=ck.LeastSquares())
    folds = [SimpleNamespace(errors_of_constants=lambda: np.array([10.0]), whole=whole)]
    values = np.ones(1) if given else np.array([1.0, 10.0])
    path = Path(None, folds, None, values, 1.0, errors=dict(zip((1.0, 10.0), errors, strict=False)), is_cut=cut)
    assert path.says_something is says


def moons(m=60):
    """A problem of learning, a family as large as its own, and values of C."""
    X, y = make_moons(m, noise=0.3, random_state=0)
    family, other = (ck.Candidates([ck.Gaussian(0.5), ck.Gaussian(2.0)], "mean") for _ in range(2))
    return ck.KernelLearning(family, ck.Hinge(), X, 2.0 * y - 1.0), other, np.array([0.1, 1.0, 10.0])


def test_of_two_equal_families_the_smoother_one_is_chosen():
    problem, other, values = moons()
    _, family, *_ = choose(problem, {"all": problem.family, "some": other}, "C", HINGE, values, Clock())
    assert family == "some"


def test_a_choice_that_was_cut_is_not_what_the_next_run_begins_with(tmp_path, monkeypatch):
    problem, other, values = moons()
    request = problem, {"all": problem.family, "some": other}, "C", HINGE, values
    visit, visited = Path.visit, []

    def cut(path, value, clock):
        clock.interrupt() if visited else None
        visited.append(value)
        return visit(path, value, clock)

    checkpoint = Checkpoint(tmp_path / "kept", 0)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "visit", cut)
        *_, short = choose(*request, Clock(checkpoint=checkpoint))
    assert checkpoint.numbers
    *_, found = choose(*request, Clock(checkpoint=checkpoint))
    *_, whole = choose(*request, Clock())
    assert len(short.values) < len(whole.values)
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.scores, whole.scores)


def limited_to_one_value(monkeypatch):
    visit = Path.visit

    def cut(path, value, clock):
        clock.max_time = 0.0 if path.errors else clock.max_time
        return visit(path, value, clock)

    monkeypatch.setattr(Path, "visit", cut)


def test_one_value_that_was_compared_with_no_other_is_chosen_where_squares_have_said_so(monkeypatch):
    problem, _, values = moons()
    limited_to_one_value(monkeypatch)
    clock = Clock(60.0)
    *_, found = choose(problem, {"all": problem.family}, "C", HINGE, values, clock)
    assert found.values.tolist() == [found.value]
    assert clock.cuts == {"the choice of C"}
    monkeypatch.setattr(selection, "glance", lambda *_: None)
    *_, found = choose(problem, {"all": problem.family}, "C", HINGE, values, Clock(60.0))
    assert (found.values.tolist(), found.value) == ([1.0], 10.0)
    *_, found = choose(problem, {"all": problem.family}, "C", HINGE, values[:1], Clock(60.0))
    assert found.value == values[0]


def test_a_limit_that_ends_the_choice_is_told_though_the_problem_is_solved(monkeypatch):
    limited_to_one_value(monkeypatch)
    X, y = make_moons(60, noise=0.3, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="max_time ended the choice of C early") as caught:
        model = ck.TessellatedSVC().fit(X, y)
    assert len(caught) == 1
    assert model.solution_.status is ck.Status.OPTIMAL


def test_a_path_does_not_end_where_the_next_tube_is_narrower():
    """Targets without noise: no coefficient is bounded early, in a tube that is far too wide."""
    X = np.random.default_rng(0).uniform(size=(150, 2))
    y = np.sin(6.0 * X[:, 0]) * np.cos(4.0 * X[:, 1])
    model = ck.MultipleKernelSVR([ck.Gaussian(0.5), ck.Gaussian(2.0)]).fit(X, y)
    assert model.epsilon_ < 0.02 * np.std(y)
    T = np.random.default_rng(1).uniform(size=(500, 2))
    assert model.score(T, np.sin(6.0 * T[:, 0]) * np.cos(4.0 * T[:, 1])) > 0.995


def test_the_tube_follows_the_best_error_so_far(monkeypatch):
    monkeypatch.setattr(selection, "glance", lambda *_: None)  # nothing is known of it
    X, y = noisy(ck.MultipleKernelSVR, 60)
    y = (y - y.mean()) / y.std()
    problem, seen = ck.KernelLearning(ck.Candidates([ck.Gaussian(0.05)], "mean"), ck.EpsilonInsensitive(), X, y), []

    def loss_at(C, deviation):
        seen.append(deviation)
        return ck.EpsilonInsensitive(C, 0.25 * deviation)

    values = np.array([0.1, 1.0, 10.0, 100.0])
    *_, found = choose(problem, {"all": problem.family}, "C", {"tube": loss_at}, values, Clock())
    assert seen[:2] == [1.0, 1.0]
    assert len(set(seen)) > 1
    assert seen[-1] < 0.9
    assert found.deviation == pytest.approx(np.std(y) * np.sqrt(1.0 - found.scores.max()), rel=0.1)


@pytest.mark.parametrize("largest", [True, False])
def test_time_is_left_for_the_matrices_of_the_largest_family(largest, monkeypatch):
    """They are formed after the choice, which takes no part of what they may need."""
    X, y = noisy(ck.MultipleKernelRidge, 60)
    limits = []

    def chosen(problem, families, name, losses, values, clock, tol):
        limits.append(clock.max_time)
        name, family = next(iter(families.items()))
        return problem.on_rows(np.arange(problem.m), family), name, next(iter(losses)), None

    make_stack = candidates.make_stack

    def slow(kernels, points, **options):
        time.sleep(0.02 * len(kernels) if len(points) == 60 else 0.0)
        return make_stack(kernels, points, **options)

    monkeypatch.setattr("convexkernels.estimators.convex.base.choose", chosen)
    monkeypatch.setattr(candidates, "make_stack", slow)
    kernels = None if largest else [ck.Gaussian(0.1), ck.Gaussian(1.0)]
    model = ck.MultipleKernelRidge(kernels, max_time=10.0).fit(X, y)
    count = len(model.weights_)
    assert model._reserved >= 0.02 * count if largest else model._reserved == 0.0
    assert limits[0] <= 0.5 * (10.0 - 0.02 * (8 + count) if largest else 10.0 - 0.02 * count)


def of_several_classes(m):
    """Six classes in a plane, no one of which has half of the probability where they meet."""
    rng = np.random.default_rng(0)
    y = np.arange(m) % 6
    return np.column_stack([np.cos(y), np.sin(y)]) + 0.6 * rng.normal(size=(m, 2)), y


@pytest.mark.parametrize("right", ["hinge", "least_squares"])
def test_the_loss_of_several_classes_is_the_one_with_more_held_out_rows_right(right, monkeypatch):
    """Both are scored by the labels of the same rows, and the function that is used is the one that was scored."""
    error, scored = Fold.error, []

    def in_favor(fold, value, loss, clock):
        scored.append((type(loss).__name__, fold.held))
        wrong = error(fold, value, loss, clock)
        assert wrong == round(wrong)
        return wrong if isinstance(loss, ck.LeastSquares) == (right == "least_squares") else wrong + 1.0

    monkeypatch.setattr(Fold, "error", in_favor)
    X, y = of_several_classes(90)
    model = ck.TessellatedSVC().fit(X, y)
    assert model.loss_ == right
    named = {name: np.unique(np.concatenate([held for other, held in scored if other == name])) for name, _ in scored}
    assert list(named) == ["Hinge", "LeastSquares"]
    np.testing.assert_array_equal(named["Hinge"], named["LeastSquares"])
    loss, lam = model.solution_.problem.loss, 0.5 / model.C_
    assert type(loss) is (ck.Hinge if right == "hinge" else ck.LeastSquares)
    assert loss.lam == pytest.approx(lam)
    again = ck.TessellatedSVC(C=model.C_, loss=right).fit(X, y)
    assert again.solution_.certificate.upper == pytest.approx(model.solution_.certificate.upper, rel=2e-4)
    assert model.selection_.chosen == {"C": model.C_, "loss": right}
    assert model.describe().count(f"loss={right}") == 1


def test_another_loss_is_tried_on_the_matrices_that_are_there(monkeypatch):
    X, y = of_several_classes(90)
    formed, on_rows = [], ck.KernelLearning.on_rows

    def counted(problem, rows, family=None):
        formed.append(len(rows))
        return on_rows(problem, rows, family)

    monkeypatch.setattr(ck.KernelLearning, "on_rows", counted)
    ck.TessellatedSVC(loss="hinge").fit(X, y)
    alone = len(formed)
    ck.TessellatedSVC().fit(X, y)
    assert len(formed) == 2 * alone


@pytest.mark.parametrize(
    ("given", "n_classes", "used"),
    [({}, 2, "hinge"), ({"C": 1.0}, 6, "hinge"), ({"C": 1.0, "loss": "least_squares"}, 2, "least_squares")],
)
def test_the_loss_is_the_hinge_loss_where_nothing_else_is_asked_for(given, n_classes, used):
    X, y = of_several_classes(60)
    model = ck.TessellatedSVC(**given).fit(X, y % n_classes)
    assert model.loss_ == used
    assert ck.MultipleKernelSVC([ck.Gaussian(1.0)]).fit(X, y).loss_ == "hinge"


@pytest.mark.parametrize("weights", [None, "drawn"])
@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.MultipleKernelSVC], ids=lambda kind: kind.__name__)
def test_classes_by_least_squares_leave_rows_out_in_closed_form(kind, weights):
    X, y = of_several_classes(60)
    weights = None if weights is None else np.random.default_rng(1).integers(1, 4, size=60).astype(float)
    model = kind(C=3.0, loss="least_squares").fit(X, y, sample_weight=weights)
    K, total = model.kernel_(X), np.ones(60) if weights is None else weights
    predicted = []
    for i in range(60):
        others = np.delete(np.arange(60), i)
        T = np.where(y[others, None] == np.arange(6), 1.0, -1.0)
        bordered = np.block([[K[np.ix_(others, others)] + np.diag(1.0 / (6.0 * total[others])), np.ones((59, 1))],
                             [np.ones((1, 59)), np.zeros((1, 1))]])  # fmt: skip
        W = np.linalg.solve(bordered, np.vstack([T, np.zeros((1, 6))]))
        predicted.append((K[i, others] @ W[:-1] + W[-1]).argmax())
    np.testing.assert_array_equal(model.loo_predictions_, predicted)
    assert model.loo_score_ == pytest.approx(np.average(np.array(predicted) == y, weights=total))
    assert not hasattr(kind(C=3.0).fit(X, y), "loo_predictions_")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"loss": "squares"}, "loss must be .*got 'squares'"),
        ({"loss": np.array(["hinge", "hinge"])}, "loss must be .*got array"),
        ({"loss": "least_squares", "C": 1e100}, "C must be .*Squares are weighed by"),
    ],
)
def test_a_loss_that_is_not_there_is_refused_by_name(given, said):
    X, y = of_several_classes(30)
    for kind in (ck.TessellatedSVC, ck.MultipleKernelSVC):
        with pytest.raises(InvalidInputError, match=said):
            kind(**given).fit(X, y)


@pytest.mark.parametrize("unit", [1e-94, 1e94])
def test_every_loss_knows_the_values_whatever_the_unit_of_the_weights(unit):
    X, y = of_several_classes(60)
    model = ck.TessellatedSVC().fit(X, y, sample_weight=np.full(60, unit))
    assert model.score(X, y) > 0.6


def test_another_loss_is_not_begun_where_no_value_was_tried_in_time(monkeypatch):
    begun = []
    begun_with = []
    monkeypatch.setattr(Path, "follow", lambda path, clock: (begun.append(path.loss_at), begun_with.append(path.begin)))
    problem, other, values = moons()
    families = {"all": problem.family, "some": other}
    losses = HINGE | {"squares": lambda C, _: ck.LeastSquares(0.5 / C)}
    *_, family, loss, found = choose(problem, families, "C", losses, values, Clock())
    assert (family, loss, len(found.values)) == ("some", "hinge", 0)
    assert found.value == begun_with[0]
    assert begun == [losses["hinge"]]


def test_a_value_begins_where_the_nearest_one_has_led_to(monkeypatch):
    begun, make = [], make_solver
    place = "convexkernels.estimators.convex.fold.make_solver"
    monkeypatch.setattr(place, lambda *a, **o: begun.append(o["initial"]) or make(*a, **o))
    X, y = noisy(ck.TessellatedRidge, 60)
    problem = ck.KernelLearning(ck.Tessellated(0), ck.LeastSquares(), X, y)
    (fold, *_) = folds_of(problem, problem.family, scored_weights(problem))
    for value in (100.0, 1.0, 0.01, 2.0, 50.0):
        fold.error(value, ck.LeastSquares(value), Clock())
    assert begun[0] is None
    for start, value in zip(begun[1:], (100.0, 1.0, 1.0, 100.0), strict=True):
        assert start is fold.points[value]


@pytest.mark.parametrize("loss", [ck.LeastSquares(), ck.EpsilonInsensitive(1.0, 0.1)], ids=repr)
def test_only_where_no_row_is_held_out_the_first_value_begins_where_all_rows_have_led_to(loss, monkeypatch):
    """What is left of a gap would tell of rows that are held out."""
    X, y = noisy(ck.TessellatedRidge, 60)
    problem = ck.KernelLearning(ck.Tessellated(0), loss, X, np.column_stack([y, -(y**2)]))
    (fold, *_), theta = folds_of(problem, problem.family, scored_weights(problem)), problem.gram_set.initial()
    begun, make = [], make_solver
    place = "convexkernels.estimators.convex.fold.make_solver"
    monkeypatch.setattr(place, lambda *a, **o: begun.append(o["initial"]) or make(*a, **o))
    fold.begin_at(theta)
    fold.error(2.0, loss.at(2.0), Clock())
    fold.error(3.0, loss.at(3.0), Clock())
    if isinstance(loss, ck.LeastSquares):
        assert begun[0][0] is theta
    else:
        assert begun[0] is None
    assert begun[1] is fold.points[2.0]


def test_the_last_fit_begins_at_the_mean_of_the_folds(monkeypatch):
    problem, _, values = moons()
    paths = followed(monkeypatch)
    *_, found = choose(problem, {"": ck.Tessellated(1, 0, ck.Box([-9.0] * 2, [9.0] * 2))}, "C", HINGE, values, Clock())
    thetas = [fold.points[found.value][0] for fold in paths[0][0].folds]
    assert len(thetas) > 1
    assert not np.allclose(thetas[0], thetas[1])
    np.testing.assert_allclose(found.theta, np.mean(thetas, axis=0))


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS, ids=lambda kind: kind.__name__)
def test_the_last_fit_begins_where_the_chosen_value_has_led_to(kind, monkeypatch, tmp_path):
    X, y = noisy(kind)
    begun, solve = [], ck.KernelLearning.solve
    monkeypatch.setattr(
        ck.KernelLearning, "solve", lambda problem, **o: begun.append(o["initial"]) or solve(problem, **o)
    )
    one_loss = {"loss": "epsilon_insensitive"} if "SVR" in kind.__name__ else {}
    model = kind(checkpoint=tmp_path / "fit.npz", **one_loss).fit(X, y)
    theta = model.selection_.theta
    assert begun == [theta]
    problem = model.solution_.problem
    np.testing.assert_allclose(problem.gram_set.project(theta), theta, atol=1e-9)
    center = problem.gram_set.initial()
    assert problem.evaluate(theta).upper < problem.evaluate(center).upper
    cold = solve(problem, tol=model.tol)
    assert model.solution_.status is cold.status is ck.Status.OPTIMAL
    assert model.solution_.n_iter <= cold.n_iter
    assert model.solution_.value == pytest.approx(cold.value, rel=2.0 * model.tol)
    kind(checkpoint=tmp_path / "fit.npz", **one_loss).fit(X, y)  # what is known is begun with again
    np.testing.assert_array_equal(begun[-1], theta)
    kind(**found_by(model, "C", "lam", "epsilon", "kernels"), **one_loss).fit(X, y)
    assert begun[-1] is None


def test_a_checkpoint_that_has_no_point_to_begin_at_is_gone_on_with(monkeypatch, tmp_path):
    """Those that were written before last fits began where the choice had led to."""
    X, y = noisy(ck.TessellatedRidge, 60)
    keep = Piece.keep

    def as_before(piece, **numbers):
        keep(piece, **{name: value for name, value in numbers.items() if name != "theta" or "scores" not in numbers})

    with monkeypatch.context() as patched:
        patched.setattr(Piece, "keep", as_before)
        model = ck.TessellatedRidge(checkpoint=tmp_path / "fit.npz").fit(X, y)
    again = ck.TessellatedRidge(checkpoint=tmp_path / "fit.npz").fit(X, y)
    assert again.selection_.theta is None
    assert again.lam_ == model.lam_
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-3)


def test_an_interrupt_of_a_fold_ends_the_choice_that_its_checkpoint_goes_on_with(monkeypatch, tmp_path):
    X, y = noisy(ck.TessellatedRidge, 60)
    plain = ck.TessellatedRidge().fit(X, y)
    whole, begun = Fold.error, []
    model = ck.TessellatedRidge(checkpoint=tmp_path / "fit.npz")

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:

        def third(self, value, loss, clock):
            begun.append(loss)
            if len(begun) == 3:
                patched.setattr(fold_module, "approach", interrupted)
            return whole(self, value, loss, clock)

        patched.setattr(Fold, "error", third)
        with pytest.warns(ConvexKernelsWarning, match="interrupted while"):
            model.fit(X, y)
    assert len(begun) == 3
    assert model.selection_.interrupted
    taken = []
    monkeypatch.setattr(fold_module, "approach", lambda *a, **o: taken.append(a) or approach(*a, **o))
    again = ck.TessellatedRidge(checkpoint=tmp_path / "fit.npz").fit(X, y)
    assert len(taken) == len(plain.selection_.values) - 2  # two values were known
    np.testing.assert_array_equal(again.selection_.scores, plain.selection_.scores)
    assert again.lam_ == plain.lam_


def test_an_interrupt_before_anything_was_tried_leaves_the_family_as_it_is(monkeypatch):
    X, y = noisy(ck.MultipleKernelRidge, 60)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Fold, "error", interrupted)
    with pytest.warns(ConvexKernelsWarning, match="interrupted while"):
        model = ck.MultipleKernelRidge().fit(X, y)
    assert len(model.weights_) == len(model._families(X, Clock())[model.kernels_].candidates)
    with pytest.warns(ConvexKernelsWarning, match="interrupted while"):
        model = ck.TessellatedSVC().fit(*of_several_classes(60))
    assert model.selection_.chosen == {"C": model.C_}
    with pytest.raises(InvalidInputError, match="interrupted before anything was tried"):
        SelectionDisplay.from_estimator(model)


def test_no_other_loss_is_tried_beside_one_that_makes_no_error(monkeypatch):
    paths = followed(monkeypatch)
    X = np.random.default_rng(0).normal(size=(60, 3)) + 10.0 * np.eye(3)[np.repeat([0, 1, 2], 20)]
    for noise, count in ((0.0, 1), (10.0, 2)):
        paths.clear()
        X = X + noise * np.random.default_rng(1).normal(size=X.shape)
        model = ck.TessellatedSVC().fit(X, np.repeat([0, 1, 2], 20))
        assert (model.selection_.score == 1.0) == (count == 1)
        assert len(paths) == count


def test_an_interrupt_of_a_later_loss_is_kept_with_what_was_chosen(monkeypatch):
    X, y = of_several_classes(90)

    def then(paths):
        if len(paths) == 2:
            path = paths[1][0]
            path.errors = dict.fromkeys(path.errors, 10.0 * path.total)
            raise KeyboardInterrupt

    paths = followed(monkeypatch, then)
    with pytest.warns(ConvexKernelsWarning, match="interrupted while"):
        model = ck.TessellatedSVC().fit(X, y)
    assert len(paths) == 2
    assert model.selection_.interrupted
    assert model.selection_.value == paths[0][0].best
    assert model.loss_ == "hinge"


def test_an_interrupt_while_choosing_gives_a_model(monkeypatch):
    X, y = noisy(ck.TessellatedSVC)
    visits = []

    def interrupted(self, value, loss, clock):
        visits.append(loss)
        if len(visits) == 5:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr(Fold, "error", interrupted)
    monkeypatch.setattr(Fold, "is_inside", lambda *_: False)
    with pytest.warns(ConvexKernelsWarning, match="interrupted while"):
        model = ck.TessellatedSVC().fit(X, y)
    assert model.solution_.status is ck.Status.INTERRUPTED
    assert model.selection_.interrupted
    assert len(model.selection_.values) == 1  # three folds, and the interrupt at the fifth
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("kind", [ck.TessellatedRidge, ck.MultipleKernelRidge], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_predictions_are_those_of_functions_trained_without_the_row(kind, outputs, intercept):
    X, y = make_friedman1(30, noise=0.5, random_state=0)
    X[[4, 9]], y[[4, 9]] = X[3], y[3]  # three equal rows, one of weight 0
    y = y if outputs == 1 else np.column_stack([y, 100.0 + X[:, 0]])
    weights = np.random.default_rng(0).uniform(0.5, 3.0, 30)
    weights[9] = 0.0
    model = kind(lam=0.3, intercept=intercept).fit(X, y, sample_weight=weights)
    kept = np.flatnonzero(weights)
    K = model.kernel_(X[kept])
    unit = 1.0
    if outputs > 1:  # lam is in units of the standard deviation of each
        center = np.average(y[kept], axis=0, weights=weights[kept])
        unit = np.sqrt(np.average((y[kept] - center) ** 2, axis=0, weights=weights[kept]))
    units = y[kept] / unit
    expected = unit * np.array([refitted(K, units, weights[kept], 0.3, intercept, row) for row in range(len(kept))])
    np.testing.assert_allclose(model.loo_predictions_, expected, rtol=1e-6, atol=1e-6)
    assert model.loo_score_ == pytest.approx(r2_score(y[kept], expected, sample_weight=weights[kept]), abs=1e-6)


def refitted(K, y, weights, lam, intercept, row):
    """Prediction for a row by ridge regression on all others: the normal equations, solved."""
    others = np.delete(np.arange(len(K)), row)
    A = np.zeros((len(others) + 1, len(others) + 1))
    A[:-1, :-1] = K[np.ix_(others, others)] + lam * np.diag(1.0 / weights[others])
    A[-1, :-1] = A[:-1, -1] = intercept
    A[-1, -1] = 0.0 if intercept else 1.0
    solved = np.linalg.solve(A, np.append(y[others], np.zeros((1, *y.shape[1:])), axis=0))
    return K[row, others] @ solved[:-1] + (solved[-1] if intercept else 0.0)


def test_the_choice_is_drawn():
    mpl.use("Agg")
    X, y = noisy(ck.TessellatedSVC)
    model = ck.TessellatedSVC().fit(X, y)
    display = SelectionDisplay.from_estimator(model).plot()
    (line,) = [line for line in display.ax_.lines if len(line.get_xdata()) > 2]
    np.testing.assert_array_equal(line.get_ydata(), model.selection_.scores)
    assert display.ax_.get_xlabel() == "C"
    assert f"{model.C_:.3g}" in display.ax_.get_legend().get_texts()[0].get_text()


CHOICES = {
    "weights": lambda: ck.ConcatenatedKernelRegressor(
        lam=[1e-3, 0.1], mu=[0.1, 1.0, 10.0], n_restarts=1, random_state=0
    ),
    "sigma": lambda: ck.SpectralKernelRegressor(n_components=20, training=ck.Training(max_epochs=2), random_state=0),
    "lists": lambda: ck.SpectralKernelRegressor(
        n_components=20, sigma=[0.5, 2.0], lam2=[0.0, 0.1], training=ck.Training(max_epochs=3), random_state=0
    ),
    "trees": lambda: ck.HierarchicalGaussianRegressor(
        (1, 2, [[0, 1], [2]]), search=ck.TreeSearch(max_iter=2), random_state=0
    ),
    "one cell": lambda: ck.VoronoiRidge(random_state=0),
    "cells": lambda: ck.VoronoiRidge(max_cell_size=15, random_state=0),
    "shared": lambda: ck.VoronoiRidge(max_cell_size=15, selection=ck.CellSelection(shared=True), random_state=0),
}


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_has_a_curve_that_is_drawn(name):
    X, y = make_friedman1(60, noise=0.5, random_state=0)
    chosen = CHOICES[name]().fit(X, y).selection_
    *names, found = chosen.curve
    expected = {"weights": ["lam", "mu"], "sigma": ["sigma", "ridge"], "trees": ["architecture"]}
    expected |= {key: ["lam", "width"] for key in ("one cell", "cells", "shared")}
    assert names == expected.get(name, ["sigma", "lam1", "lam2"])
    values = chosen.curve[found]
    good = values.max() if found.startswith(("score", "cells")) else values.min()
    (row,) = np.flatnonzero(values == good)[:1]
    assert all(chosen.curve[one][row] == chosen.chosen[one] for one in names if one != "lam1")
    display = SelectionDisplay(chosen).plot()
    *lines, mark = display.ax_.lines
    assert sum(len(line.get_xdata()) for line in lines) == len(values)
    assert sorted(np.concatenate([line.get_ydata() for line in lines])) == sorted(values)
    assert "=" in mark.get_label()
    tried = {one: len(set(map(str, chosen.curve[one]))) for one in names}
    assert len(lines) == np.prod([*tried.values()]) / max(tried.values())


def test_cells_say_what_they_chose_and_from_what(tmp_path):
    X, y = make_friedman1(60, noise=0.5, random_state=0)
    model = ck.VoronoiRidge(max_cell_size=15, random_state=0, checkpoint=tmp_path / "own")
    own, again = clone(model).fit(X, y), model.fit(X, y)
    np.testing.assert_array_equal(again.selection_.counts, own.selection_.counts)
    pairs, grids = own.solution_.theta, [cell.choice.grid for cell in own.function_.functions]
    assert own.selection_.counts.sum() == own.n_cells_ > 1
    ends = [lam in g.lams[[0, -1]] or width in g.widths[[0, -1]] for (lam, width), g in zip(pairs, grids, strict=True)]
    assert own.selection_.at_an_edge == pytest.approx(np.mean(ends))
    options = {"max_cell_size": 15, "selection": ck.CellSelection(shared=True), "random_state": 0}
    shared = ck.VoronoiRidge(**options, checkpoint=tmp_path / "file").fit(X, y)
    assert shared.selection_.chosen == dict(zip(("lam", "width"), shared.solution_.theta[0], strict=True))
    again = ck.VoronoiRidge(**options, checkpoint=tmp_path / "file").fit(X, y)
    np.testing.assert_array_equal(again.selection_.risks, shared.selection_.risks)
    given = ck.CellSelection(candidates=([1e-3], [1.0]))
    assert ck.VoronoiRidge(selection=given, random_state=0).fit(X, y).selection_ is None
    with pytest.raises(ck.InvalidInputError, match="its estimator chooses in every cell by itself"):
        ck.VoronoiRidge(estimator=ck.TessellatedRidge(lam=1.0), max_cell_size=40).fit(X, y).selection_  # noqa: B018


@pytest.mark.parametrize(
    ("errors", "of_numbers", "begin", "end", "visited"),
    [
        ([9, 5, 3, 3.1, 1, 1], True, 1.0, np.inf, [0.1, 1, 10]),  # up to the first one that is no better
        ([9, 5, 3, 2.98, 1, 1], True, 1.0, np.inf, [0.1, 1, 10]),  # or hardly better
        ([9, 5, 3, 2.9, 2.7, 2.7], True, 1.0, np.inf, [0.1, 1, 10, 100, 1000]),
        ([9, 3, 3.4, 3.1, 3, 1], True, 1.0, np.inf, [0.1, 1, 0.01]),  # the other way
        ([1, 3, 3, 1, 1, 1], True, 1.0, np.inf, [0.1, 1, 0.01]),  # of two as good from the more regular one
        ([9, 5, 3, 2, 2.5, 1], True, None, np.inf, [10, 100, 1]),  # where nothing is known of a soft margin
        ([9, 8, 3, 2, 1, 1], True, 0.01, np.inf, [0.01, 0.1, 1, 10, 100, 1000]),
        ([1, 1, 3, 2, 1, 5], True, 1000.0, np.inf, [100, 1000, 10]),
        ([9, 5, 8e-6, 1e-6, 1e-7, 1e-8], True, 1.0, np.inf, [0.1, 1]),  # a millionth is as good as none
        ([9, 5, 9e-6, 7e-6, 1e-7, 1e-8], True, 1.0, np.inf, [0.1, 1, 10]),
        ([9, 5, 3, 3, 3, 3], False, 1.0, 1.0, [0.1, 1]),  # others are the same
        ([9, 5, 3, 2.9, 2.9, 2.9], True, 1.0, 1.0, [0.1, 1, 10]),  # but not in a tube that is narrower by a tenth
        ([9, 5, 5, 5, 5, 5], False, 1.0, 0.1, [0.1, 0.01]),
        ([4, 6, 5, 5, 5, 5], False, 1000.0, 1.0, [100, 10, 1, 0.1]),  # the same functions say nothing
        ([9, np.inf, np.inf, 2, 1, 1], True, 1.0, np.inf, [0.1, 1, 0.01]),  # the arithmetic broke down
        ([9, 8, 8.5, 8, 8, 3], True, 1.0, np.inf, [0.1, 1, 0.01]),  # numbers that nothing tells
        ([9, 8, 8.5, 8, 8, 3], False, 1.0, np.inf, [0.1, 1, 0.01, 100]),  # labels may be told farther on
        ([9, 8, 8.5, 8, 8, 3], False, 0.1, np.inf, [0.01, 0.1, 1, 100]),
        ([9, 9, 9, 7, 3, 3], False, 0.01, np.inf, [0.01, 0.1, 10]),
    ],
)
def test_a_path_ends_where_values_gain_little_or_stay_as_they_are(errors, of_numbers, begin, end, visited):
    values = 10.0 ** np.arange(-2, 4)
    table, loss = (
        dict(zip(values, errors, strict=True)),
        SimpleNamespace(is_of_differences=of_numbers, bears_outliers=of_numbers),
    )
    whole = SimpleNamespace(loss=loss)
    fold = SimpleNamespace(whole=whole, errors_of_constants=lambda: np.array([8.0]), weights=np.ones(3), total=8.0)
    fold.error = lambda value, loss, clock: table[value]
    fold.deviations = {value: np.sqrt(error) for value, error in table.items()}
    fold.is_inside = lambda value, loss: value >= end
    path = Path(None, [fold], lambda C, _: loss, values, 1.0, begin)
    path.follow(Clock())
    assert list(path.errors) == pytest.approx(visited)


@pytest.mark.parametrize(
    "loss_at", [ck.Hinge, lambda C: ck.EpsilonInsensitive(C, 0.1), lambda C: ck.LeastSquares(0.5 / C)]
)
def test_beyond_a_value_that_bounds_no_coefficient_functions_are_the_same(loss_at):
    X, y = make_moons(60, noise=0.1, random_state=0)
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(0.5), ck.Gaussian(2.0)]), loss_at(1.0), X, 2.0 * y - 1.0)
    (fold, *_) = folds_of(problem, problem.family, scored_weights(problem))
    losses = {C: loss_at(C) for C in (1e-3, 1e5, 1e6)}
    errors = {C: fold.error(C, loss, Clock()) for C, loss in losses.items()}
    is_box = losses[1e5].box_dual(np.ones(1), np.ones(1)).diagonal is None
    assert [fold.is_inside(C, loss) for C, loss in losses.items()] == [False, is_box, is_box]
    if is_box:
        assert errors[1e5] == pytest.approx(errors[1e6], rel=0.01)


def test_a_grid_search_over_given_values_chooses_nothing_itself():
    X, y = make_moons(80, noise=0.2, random_state=0)
    search = GridSearchCV(ck.TessellatedSVC(), {"C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_estimator_.selection_ is None
    assert pytest.approx(search.best_params_["C"]) == search.best_estimator_.C_


def test_candidates_with_bandwidths_from_the_data_are_few():
    rng = np.random.default_rng(0)
    for n in (1, 2, 10, 60):
        kernels = ck.data_library(rng.standard_normal((50, n)))
        assert len(kernels) < 13 * (n + 1)
        assert len({name for name, *_ in kernels}) == len(kernels)
    assert len(ck.data_library(rng.standard_normal((50, 101)))) == len(ck.data_library(rng.standard_normal((50, 1))))
    grouped = ck.data_library(
        rng.standard_normal((50, 6)), groups=[[5, 1, 2], []]
    )  # four features, one of three columns
    assert [columns for _, _, columns in grouped[11:]] == [[0], [0], [1, 2, 5], [3], [3], [4], [4]]
    assert grouped[13][0].endswith("on x1 to x5")
    assert grouped[8][1].offset == 4.0
    narrow, wide = (ck.data_library(s * rng.standard_normal((50, 3)))[0][1].gamma for s in (1.0, 10.0))
    assert narrow == pytest.approx(100.0 * wide, rel=0.5)


def test_a_family_that_does_not_suit_a_table_is_noticed():
    X = np.random.default_rng(0).uniform(size=(200, 3))
    y = np.prod(np.cos(4.0 * X), axis=1)
    with pytest.warns(ConvexKernelsWarning, match="Gaussian kernels predict rows that were left out better"):
        model = ck.TessellatedRidge().fit(X, y)
    chosen = model.selection_
    assert chosen.reference > (1.0 - chosen.errors_by_squares.sum()) + NOTABLE[True]
    T = np.random.default_rng(1).uniform(size=(300, 3))
    t = np.prod(np.cos(4.0 * T), axis=1)
    assert ck.MultipleKernelRidge().fit(X, y).score(T, t) > model.score(T, t) + NOTABLE[True]
    # A value that is given is not questioned, and nothing is said where the family is as good.
    assert ck.TessellatedRidge(lam=chosen.value).fit(X, y).selection_ is None
    chosen = ck.TessellatedSVC().fit(*noisy(ck.TessellatedSVC)).selection_
    assert chosen.reference is not None
    assert chosen.reference <= (1.0 - chosen.errors_by_squares.sum()) + 0.1
    assert ck.MultipleKernelRidge().fit(X[:60], y[:60]).selection_.reference is None


@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.TessellatedSVR, ck.TessellatedRidge])
@pytest.mark.parametrize("alone", [0.0, 1.0], ids=["constants", "a part"])
def test_a_family_that_learns_next_to_nothing_is_noticed_though_others_learn_as_little_at_its_value(kind, alone):
    """With strong regularization Gaussians are constant, too: they have a value of their own."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 6))
    y = alone * X[:, 3] + X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=250)
    if kind is ck.TessellatedSVC:
        y = y > 0.0
    model = kind(tol=1e-2)
    if kind is ck.TessellatedSVC and alone:  # the part that it learns is nearly all there is to labels
        assert model.fit(X, y).selection_.reference < (1.0 - model.selection_.errors_by_squares.sum()) + 0.1
        return
    with pytest.warns(UnsuitedFamilyWarning, match="Gaussian kernels predict rows that were left out better"):
        model.fit(X, y)
    assert model.selection_.reference > (1.0 - model.selection_.errors_by_squares.sum()) + 0.05
    assert model.selection_.value in model.selection_.values


@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.TessellatedSVR, ck.TessellatedRidge])
def test_of_noise_no_family_says_more(kind, rng):
    X, y = rng.normal(size=(120, 4)), rng.normal(size=120)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnsuitedFamilyWarning)
        model = kind(tol=1e-2).fit(X, y > 0.0 if kind is ck.TessellatedSVC else y)
    assert model.selection_.reference is not None


def test_another_family_is_told_of_where_it_is_better_by_more_than_chance(monkeypatch, rng):
    """By a notable R^2, and two standard errors of the difference, row by row."""
    common = rng.uniform(0.2, 1.0, 100) / 100.0
    noise = rng.standard_normal(100) / 100.0
    noise -= noise.mean()
    doubt, problem = (
        2.0 * np.sqrt(np.sum(noise**2)),
        SimpleNamespace(X=rng.normal(size=(100, 2)), loss=ck.LeastSquares()),
    )
    for gap, told in ((0.8 * doubt, False), (1.2 * doubt, True), (-2.0 * doubt, False)):
        own, values = common + noise + gap / 100.0, np.ones(1)
        found = path_module.PathSelection("lam", values, values, 1.0, 1.0, False, errors_by_squares=own)
        for share, heard in ((1.0, told), (1e-3, False)):  # of which the latter is not worth mentioning
            found = dataclasses.replace(found, errors_by_squares=common + share * (own - common))
            monkeypatch.setattr("convexkernels.estimators.convex.base.beside", lambda *_: common)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnsuitedFamilyWarning)
                known = ck.TessellatedRidge()._beside_reference(problem, found, values, Clock())
            assert [type(one.message) for one in caught] == [UnsuitedFamilyWarning] * heard
            assert known.reference == pytest.approx(1.0 - common.sum())


def test_further_families_are_scored_where_the_first_says_nothing(monkeypatch):
    problem, *_ = moons()
    scores, seen = {2: 0.02, 3: 0.4, 4: 0.1}, []
    families = [ck.Candidates([ck.Gaussian(float(k)) for k in range(1, size + 1)]) for size in scores]

    def looked(problem, families, *_):
        seen.append(len(families[""].candidates))
        return SimpleNamespace(errors=np.full(4, 0.25 * (1.0 - scores[seen[-1]])))

    monkeypatch.setattr(selection, "glance", looked)
    request = "C", np.array([1.0, 10.0]), 0.03
    assert selection.beside(problem, families, *request, Clock()).sum() == pytest.approx(0.6)
    assert seen == [2, 3]
    scores[2], seen[:] = 0.2, []
    assert selection.beside(problem, families, *request, Clock()).sum() == pytest.approx(0.8)
    assert seen == [2]
    assert selection.beside(problem, families, *request, over()) is None
    monkeypatch.setattr(selection, "glance", lambda *_: None)
    assert selection.beside(problem, families, *request, Clock()) is None


@pytest.mark.parametrize("kind", REGRESSORS[3:] + CLASSIFIERS[1:], ids=lambda kind: kind.__name__)
def test_functions_that_change_quickly_are_told_by_narrower_gaussians(kind):
    rng = np.random.default_rng(12)
    X = rng.uniform(-1.0, 1.0, (700, 2))
    y = np.sin(10.0 * X[:, 0]) * np.sin(10.0 * X[:, 1]) + 0.1 * rng.standard_normal(700)
    model = kind().fit(X[:300], y[:300] > 0.0 if kind in CLASSIFIERS else y[:300])
    assert model.kernels_ in {"rough", "rougher"}
    score = model.score(X[300:], y[300:] > 0.0 if kind in CLASSIFIERS else y[300:])
    assert score > (0.72 if kind in CLASSIFIERS else 0.85)


@pytest.mark.parametrize("names", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_constants_tell_the_most_frequent_class_whatever_it_is_called(names, rng):
    codes = rng.permutation(np.repeat(np.asarray(names), (6, 30, 24)))
    X, Y = rng.random((60, 2)), np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    weights = np.where(codes == names[2], 2.0, 1.0)  # which counts 48 rows
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0)]), ck.Hinge(), X, Y, sample_weight=weights)
    fold = Fold(problem, problem.family, np.arange(60), np.arange(60), np.broadcast_to(weights, (3, 60)))
    np.testing.assert_array_equal(fold.errors_of_constants(), weights * (codes != names[2]))


@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.TessellatedRidge])
def test_a_family_that_changes_too_slowly_is_told(kind):
    rng = np.random.default_rng(12)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    y = np.sin(10.0 * X[:, 0]) * np.sin(10.0 * X[:, 1])
    with pytest.warns(UnsuitedFamilyWarning, match="Gaussian kernels predict rows"):
        model = kind().fit(X, y > 0.0 if kind in CLASSIFIERS else y)
    assert model.selection_.reference > (0.35 if kind in CLASSIFIERS else 0.7)  # of labels


def test_tables_of_hundreds_of_columns_have_boxes_whose_volume_does_not_overflow():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 300))
    y = np.where(X[:, :5].sum(axis=1) > 0.0, 1, -1)
    model = ck.TessellatedSVC(C=1.0).fit(1e3 * X + 7.0, y)
    assert model.solution_.certificate.relative_gap <= 1e-4
    np.testing.assert_array_equal(model.predict(1e3 * X + 7.0), y)
    # In units of a side kernels of degree 0 are the same.
    few = X[:, :40]
    usual = ck.TessellatedSVC(C=1.0).fit(few, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tessellated, "LARGEST_VOLUME", 1.0)
        other = ck.TessellatedSVC(C=1.0).fit(few, y)
    assert other.kernel_(few[:2], few[:3]).shape == (2, 3)
    np.testing.assert_allclose(other.decision_function(few), usual.decision_function(few), atol=1e-3)


@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.MultipleKernelSVR, ck.TessellatedRidge])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("y", [np.full(20, 0.7), np.repeat([0.3, 0.1 + 0.2], 10)], ids=["its mean", "its parts"])
def test_rounding_is_no_unit_of_constant_targets(kind, intercept, y):
    X = np.random.default_rng(0).uniform(size=(20, 2))
    given = {"lam": 1e-4} if "lam" in kind().get_params() else {"C": 100.0, "epsilon": 0.01}
    model = kind(**given, intercept=intercept).fit(X, y)
    np.testing.assert_allclose(model.targets_.spread, y.max(), rtol=1e-15)
    np.testing.assert_allclose(model.predict(X), y, atol=0.05)


@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.VoronoiSVR, ck.ConcatenatedKernelRegressor])
def test_rounding_of_sums_is_not_learned(kind, rng):
    X, parts = rng.normal(size=(60, 3)), rng.uniform(size=50)
    y = np.array([sum(rng.permutation(parts).tolist()) for _ in range(60)])
    assert np.ptp(y) > 0.0
    model = kind().fit(X, y)
    assert np.ptp(model.predict(X)) == 0.0
    np.testing.assert_allclose(model.predict(X[0:1]), y[0], rtol=1e-14)


def test_targets_of_any_size_have_a_unit(rng):
    X = rng.uniform(size=(30, 2))
    y = np.sum(X, axis=1)
    model = ck.MultipleKernelSVR().fit(X, np.column_stack([y, 1e-200 * y, 1e90 * y]))
    np.testing.assert_allclose(model.targets_.spread / y.std(), [1.0, 1e-200, 1e90], rtol=1e-12)
    assert min(np.corrcoef(one, y)[0, 1] for one in (model.predict(X) / model.targets_.spread).T) > 0.99


@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.MultipleKernelSVR])
def test_outliers_do_not_set_the_tube(kind):
    scores = []
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(200, 3)), rng.normal(size=(500, 3))
        truth, expected = (np.sin(2.0 * Z[:, 0]) + Z[:, 1] for Z in (X, new))
        y = truth + 0.2 * rng.standard_cauchy(200)
        model = kind().fit(X, y)
        scores.append(model.score(new, expected))
        assert model.epsilon_ < 0.4
    assert np.mean(scores) > 0.85


@pytest.mark.parametrize("kind", [ck.MultipleKernelSVR, ck.VoronoiSVR])
def test_outputs_that_are_easy_are_no_outliers_of_others(kind, rng):
    X = rng.normal(size=(150, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=150)
    alone, beside = kind().fit(X, y), kind().fit(X, np.column_stack([y, np.ones(150), np.zeros(150)]))
    np.testing.assert_allclose(beside.epsilon_[0], alone.epsilon_, rtol=0.1)  # constants have no errors


def skewed(m, outputs=1):
    """Targets that are mostly 0, so that their median is not their mean, and others whose errors are even."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (m, 2))
    f = np.sin(3.0 * X[:, 0])
    y = np.column_stack([rng.uniform(size=m) < 0.25 + 0.2 * f, f + 0.1 * rng.normal(size=m)])
    return X, y[:, 0] if outputs == 1 else y[:, ::-1] if outputs == 2 else y[:, 1]


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.MultipleKernelSVR], ids=lambda kind: kind.__name__)
def test_squares_take_the_place_of_a_tube_where_its_functions_are_not_the_mean(kind, outputs):
    X, y = skewed(600, outputs)
    model, tube = kind().fit(X[:400], y[:400]), kind(loss="epsilon_insensitive").fit(X[:400], y[:400])
    assert (model.loss_, tube.loss_) == ("least_squares", "epsilon_insensitive")
    assert model.selection_.score > tube.selection_.score
    assert model.score(X[400:], y[400:]) > tube.score(X[400:], y[400:])
    assert not hasattr(model, "epsilon_")
    assert model.loo_predictions_.shape == (400, 2)[:outputs]
    kernels = {"kernels": model.kernels_} if kind is ck.MultipleKernelSVR else {}
    assert model.selection_.chosen == {"C": model.C_, "loss": "least_squares"} | kernels
    again = kind(C=model.C_, loss="least_squares", **kernels).fit(X[:400], y[:400])
    assert again.selection_ is None
    assert again.solution_.value == pytest.approx(model.solution_.value, rel=2e-4)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=0.01)


@pytest.mark.parametrize("given", [{}, {"C": 1.0}, {"epsilon": 0.1}, {"loss": "epsilon_insensitive"}], ids=str)
@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.MultipleKernelSVR], ids=lambda kind: kind.__name__)
def test_squares_are_not_tried_where_the_mean_is_met_or_the_tube_is_asked_for(kind, given, monkeypatch):
    error, tried = Fold.error, []
    watched = lambda fold, value, loss, clock: tried.append(type(loss)) or error(fold, value, loss, clock)  # noqa: E731
    monkeypatch.setattr(Fold, "error", watched)
    X, y = skewed(120, 1 if given else 0)
    assert kind(tol=1e-2, **given).fit(X, y).loss_ == "epsilon_insensitive"
    assert set(tried) == {ck.EpsilonInsensitive}


def test_squares_by_c_are_those_by_lam():
    X, y = skewed(80)
    model, ridge = ck.TessellatedSVR(loss="least_squares").fit(X, y), ck.TessellatedRidge().fit(X, y)
    assert ridge.lam_ == pytest.approx(0.5 / model.C_)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X))
    np.testing.assert_allclose(model.loo_predictions_, ridge.loo_predictions_)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"loss": "hinge"}, "loss must be 'auto', 'epsilon_insensitive' or .*got 'hinge'"),
        ({"loss": "least_squares", "epsilon": 0.1}, "epsilon is 0.1, but loss='least_squares'.*leave epsilon out"),
        ({"loss": "least_squares", "C": 1e100}, "C must be .*Squares are weighed by"),
    ],
)
def test_a_loss_of_numbers_that_is_not_there_is_refused_by_name(given, said):
    X, y = skewed(30)
    for kind in (ck.TessellatedSVR, ck.MultipleKernelSVR):
        with pytest.raises(InvalidInputError, match=said):
            kind(**given).fit(X, y)


@pytest.mark.parametrize("kind", [ck.TessellatedSVC, ck.MultipleKernelSVC])
def test_a_rare_class_that_no_value_predicts_is_told_by_probabilities(kind):
    """All values are right as often as the frequent label; that of the least deviance is chosen, not the first."""

    def drawn(m, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(m, 6))
        return X, rng.uniform(size=m) < 1.0 / (1.0 + np.exp(4.0 - 2.0 * X[:, 0]))

    (X, y), (T, t) = drawn(300, 1), drawn(2000, 10)
    model = kind(max_time=None).fit(X, y)
    assert model.selection_.score <= 1.0 - y.mean() + 0.01
    P = model.predict_proba(T)[np.arange(2000), t.astype(int)]
    prior = np.where(t, y.mean(), 1.0 - y.mean())
    assert -np.log(P).mean() < 0.9 * -np.log(prior).mean()


def test_labels_that_nothing_tells_keep_the_most_regular_value(rng):
    X, y = rng.normal(size=(150, 10)), np.arange(150) % 8 == 0
    model = ck.TessellatedSVC(max_time=None).fit(X, y)
    assert model.C_ <= 0.1


def test_an_interrupt_before_any_value_was_tried_leaves_a_soft_margin(monkeypatch):
    X, y = noisy(ck.MultipleKernelSVR, 60)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Fold, "error", interrupted)
    with pytest.warns(ConvexKernelsWarning, match="interrupted while"):
        model = ck.MultipleKernelSVR().fit(X, y)
    assert pytest.approx(1.0) == model.C_


@pytest.mark.parametrize("weight", [1e-200, 1e-96, 1e120, 1e300])
@pytest.mark.parametrize(
    "name", ["MultipleKernelRidge", "TessellatedSVR", "ConcatenatedKernelRegressor", "VoronoiRidge"]
)
def test_weights_beside_which_nothing_is_a_number_are_refused_by_name(name, weight):
    X, y = noisy(ck.TessellatedRidge, 20)
    with pytest.raises(InvalidInputError, match=r"sample_weight has the mean 1e.*divide it by its mean"):
        getattr(ck, name)().fit(X, y, sample_weight=np.full(20, weight))


def test_what_is_open_is_what_time_ended(monkeypatch):
    X, y = noisy(ck.TessellatedSVR, 60)
    whole = Path.visit

    def late(self, value, clock):
        done = whole(self, value, clock)
        clock.max_time = 0.0
        return done

    monkeypatch.setattr(Path, "visit", late)
    for given, said in (({"C": 1.0}, "epsilon"), ({}, "C")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ck.TessellatedSVR(**given, max_time=60.0).fit(X, y)
        assert f"max_time ended the choice of {said} early" in str(told[-1].message)


def test_equal_numbers_of_wrong_labels_are_equal_whatever_rows_weigh():
    """Sums of tenths are not: 3.1 and 3.1000000000000005."""
    X, y = noisy(ck.TessellatedSVC, 60)
    for weight in (1.0, 0.1, 1.0 / 7.0):
        problem = ck.KernelLearning(
            ck.Candidates([ck.Gaussian(1.0)]), ck.Hinge(), X, np.where(y > 0, 1, -1), sample_weight=np.full(60, weight)
        )
        folds = folds_of(problem, problem.family, scored_weights(problem))
        path = Path(problem.family, folds, lambda value, deviation: ck.Hinge(value), np.array([1.0]), 1.0)
        rng = np.random.default_rng(0)
        sums = {path._settled(float(np.cumsum(weight * (rng.permutation(60) < 31))[-1])) for _ in range(20)}
        sums |= {path._settled(31 * weight), path._settled(60 * weight - sum([weight] * 29))}
        assert len(sums) == 1


def test_landmarks_that_cannot_learn_a_function_are_told(monkeypatch):
    """Of tables with matrices, and where landmarks suffice, nothing is compared or told."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 2))
    quick = np.sin(10.0 * X[:, 0]) * np.sin(10.0 * X[:, 1])
    assert ck.MultipleKernelRidge().fit(X, quick).selection_.reference is None
    monkeypatch.setattr("convexkernels.estimators.convex.base.MATRIX_ROWS", 300)
    monkeypatch.setattr(multiple_kernel, "LANDMARKS", 15)
    with pytest.warns(UnsuitedFamilyWarning, match="Rough candidates with matrices predict .* pass more landmarks"):
        ck.MultipleKernelRidge().fit(X, quick)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnsuitedFamilyWarning)
        model = ck.MultipleKernelRidge().fit(X, X[:, 0] + X[:, 1] ** 2)
    assert model.selection_.reference is not None
