"""Functions of folds beside those of simple kernels: which are combined, and with what shares."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics import log_loss

import convexkernels as ck
from convexkernels import InvalidInputError
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.estimators import left_out
from convexkernels.estimators.hierarchical import all_rows, stacking
from convexkernels.estimators.hierarchical.functions import MeanFunction
from convexkernels.estimators.hierarchical.stacking import (
    likeliest_shares,
    nearest_shares,
    ridge,
    simple_kernels,
    stacked,
)
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.estimators.left_out import LeftOut
from convexkernels.losses.fit import fit

QUICK = ck.TreeSearch(max_iter=5)


def task_of(X, Y, weights):
    loss = ck.LeastSquares(1.0, intercept=False)
    keys = np.arange(len(X), dtype=np.uint64)
    return TreeTask(X, Y.T if len(Y) > 1 else Y[0], weights, loss, LeaveOneOut(), True, keys)


def test_classes_that_are_balls_are_told_by_one_width_for_all_columns():
    rng = np.random.default_rng(101)
    X = rng.standard_normal((1500, 10))
    y = (X**2).sum(axis=1) > 9.34
    model = ck.HierarchicalGaussianClassifier(random_state=0).fit(X[:300], y[:300])
    shares = dict(zip(model.function_.names, model.function_.shares, strict=True))
    assert shares["gaussian"] > 0.2
    assert model.score(X[300:], y[300:]) > 0.895  # .93 by the best SVC, .885 without


def parts_of(m, count=4):
    return np.array_split(np.random.default_rng(0).permutation(m), count)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_values_at_rows_held_out_are_those_of_functions_trained_without_them(n_outputs):
    rng = np.random.default_rng(n_outputs)
    X, weights = rng.random((60, 3)), rng.uniform(0.5, 2.0, 60)
    codes = rng.integers(0, max(n_outputs, 2), 60)
    Y = np.where(codes == np.arange(max(n_outputs, 2))[:, None], 1.0, -1.0)[-n_outputs:]
    parts, seen = parts_of(60), LeftOut(np.zeros(Y.shape), Y, weights)
    for kernel in simple_kernels(X, with_linear=True, with_gaussian=True).values():
        function, F = ridge(kernel, seen, task_of(X, Y, weights), parts, Clock())
        gram, found = kernel(X), {}
        for lam in weights.sum() * np.geomspace(1e-6, 1e2, 25):  # the same by training anew
            again = np.empty(Y.shape)
            for part in parts:
                train = np.setdiff1d(np.arange(60), part)
                own = fit(ck.LeastSquares(lam), gram[np.ix_(train, train)], Y[:, train], weights[train])
                again[:, part] = own.W @ gram[np.ix_(train, part)] + own.b[:, None]
            again = np.clip(again, -1.0, 1.0)
            found[float(((again - Y) ** 2 @ weights).sum())] = lam, again
        lam, again = found[min(found)]
        np.testing.assert_allclose(F, again, atol=1e-6)
        whole = fit(ck.LeastSquares(lam), gram, Y, weights)
        expected = np.clip(whole.W @ gram + whole.b[:, None], -1.0, 1.0)
        np.testing.assert_allclose(function.values(X).T, expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_are_those_of_the_likeliest_combination(n_classes):
    rng = np.random.default_rng(n_classes)
    codes, weights = rng.integers(0, n_classes, 300), rng.uniform(0.5, 2.0, 300)
    Y = np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
    Y = Y[1:] if n_classes == 2 else Y
    F = [0.4 * Y + rng.normal(size=Y.shape), 0.6 * Y + 2.0 * rng.normal(size=Y.shape), rng.normal(size=Y.shape)]
    shares = likeliest_shares(F, Y, weights)
    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)

    def unlikelihood(shares):
        """At the best slope, for the targets of Platt."""
        scores = sum(share * part for share, part in zip(shares, F, strict=True)).T
        scores = np.hstack([np.zeros_like(scores), scores]) if n_classes == 2 else scores
        counts = np.bincount(codes, weights, n_classes)
        T = np.full((300, n_classes), (1.0 / (counts + 2.0) / (n_classes - 1))[codes][:, None])
        T[np.arange(300), codes] = ((counts + 1.0) / (counts + 2.0))[codes]
        return min(-(weights[:, None] * T * log_softmax(c * scores, axis=1)).sum() for c in np.geomspace(0.05, 20, 400))

    least = unlikelihood(shares)
    for other in [*np.eye(3), *rng.dirichlet(np.ones(3), 60)]:
        assert least <= unlikelihood(other) + 1e-3


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_shares_of_numbers_are_those_of_the_nearest_combination(n_outputs):
    rng = np.random.default_rng(n_outputs)
    Y, weights = rng.normal(size=(n_outputs, 200)) * np.array([[1.0], [100.0]])[:n_outputs], rng.uniform(0.5, 2.0, 200)
    spread = np.sqrt(np.average((Y - np.average(Y, axis=1, weights=weights)[:, None]) ** 2, axis=1, weights=weights))
    F = [Y + size * spread[:, None] * rng.normal(size=Y.shape) for size in (0.5, 0.7, 2.0)]
    shares = nearest_shares(F, Y, weights)
    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)

    def error(shares):
        mixed = sum(share * part for share, part in zip(shares, F, strict=True))
        return (((mixed - Y) / spread[:, None]) ** 2 @ weights).sum()

    for other in [*np.eye(3), *rng.dirichlet(np.ones(3), 300)]:
        assert error(shares) <= error(other) * (1.0 + 1e-7)
    assert nearest_shares([Y, F[2]], Y, weights).tolist() == [1.0, 0.0]  # nothing is nearer than no error
    noise = Y + 1e-3 * spread[:, None] * rng.normal(size=Y.shape)
    assert nearest_shares([noise, F[0]], Y, weights).tolist() == [1.0, 0.0]  # and hardly anything is not worth it


def test_numbers_are_learned_on_all_rows_and_corrected_by_steps_where_there_are_some():
    """Steps of two columns, which sums of few Gaussians are far from; a smooth function needs nothing else."""
    rng = np.random.default_rng(0)
    X, T = rng.random((150, 4)), rng.random((1000, 4))

    def steps(X):
        return np.floor(4 * X[:, 0]) + (X[:, 1] > 0.5)

    y = steps(X) + 0.3 * rng.normal(size=150)
    found = {}
    for combine in ("one", "auto"):
        selection = ck.TreeSelection(combine=combine)
        model = ck.HierarchicalGaussianRegressor(selection=selection, random_state=0).fit(X, y)
        assert len(model.solutions_) == (1 if combine == "one" else 2)
        assert len(model.solution_.problem.X) == 150
        found[combine] = np.sqrt(np.mean((model.predict(T) - steps(T)) ** 2))
    assert model.function_.shares[1:].sum() > 0.1  # ranks see steps, too, and leave less to the stumps
    assert found["auto"] < 0.9 * found["one"]
    without = model.targets_.decoded(model.function_.functions[0].values(model.scaling_.apply(T)))
    assert found["auto"] < 0.99 * np.sqrt(np.mean((without - steps(T)) ** 2))
    low, high = model.predict_interval(T, coverage=0.8).T
    t = steps(T) + 0.3 * rng.normal(size=1000)
    assert ((low <= t) & (t <= high)).mean() > 0.65
    smooth = ck.HierarchicalGaussianRegressor(4, random_state=0).fit(X, np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2)
    shares = smooth.function_.shares
    assert shares is None or shares[0] > 0.95


def test_functions_that_say_nothing_get_no_share():
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((1, 200)) < 0.5, 1.0, -1.0)
    np.testing.assert_array_equal(likeliest_shares([-Y, -0.5 * Y], Y, np.ones(200)), [1.0, 0.0])
    assert likeliest_shares([Y, -Y], Y, np.ones(200)).tolist() == [1.0, 0.0]


def test_a_stack_is_the_combination_of_its_parts():
    rng = np.random.default_rng(0)
    X, Y = rng.random((80, 2)), np.where(rng.random((1, 80)) < 0.5, 1.0, -1.0)
    Y[0, X[:, 0] > 0.6] = 1.0
    task, seen = task_of(X, Y, np.ones(80)), LeftOut(0.1 * rng.normal(size=Y.shape), Y, np.ones(80))
    first = ck.DecisionFunction.of_kernel(ck.Gaussian(1.0), X, 0.01 * Y, np.zeros(1))
    function, left = stacked(first, seen, task, parts_of(80), None, True, Clock(None))
    assert isinstance(function, MeanFunction)
    values = sum(share * part.values(X) for share, part in zip(function.shares, function.functions, strict=True))
    np.testing.assert_allclose(function.values(X), values)
    assert function.shares[1:].sum() > 0.9  # the first says next to nothing
    assert ((left.F > 0.0) == (Y > 0.0)).mean() > 0.6


def test_a_stack_has_what_there_is_time_for(monkeypatch):
    X, y = make_classification(120, 4, random_state=0)
    rounds = []

    def interrupted(kernel, *arguments):
        rounds.append(kernel)
        if len(rounds) == 2:
            raise KeyboardInterrupt
        return ridge(kernel, *arguments)

    monkeypatch.setattr(stacking, "ridge", interrupted)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED by the user while functions were combined"):
        model = ck.HierarchicalGaussianClassifier(2, search=QUICK, random_state=0).fit(X, y)
    assert model.solution_.status is model.solutions_[0].status is ck.Status.INTERRUPTED
    assert len(rounds) == 2  # one interrupt ends it
    assert len(model.function_.shares) == 2
    assert np.isfinite(model.predict_proba(X)).all()
    task, seen = (
        task_of(X, 2.0 * y[None] - 1.0, np.ones(120)),
        LeftOut(np.zeros((1, 120)), 2.0 * y[None] - 1.0, np.ones(120)),
    )
    over = Clock(None)
    over.interrupt()
    function, left = stacked(model.function_, seen, task, parts_of(120), None, True, over)
    assert function is model.function_
    np.testing.assert_array_equal(left.F, seen.F)


def test_small_tables_of_classes_are_stacked_others_are_not(capsys):
    X, y = make_classification(120, 4, random_state=0)

    def shares(X, y, **settings):
        model = ck.HierarchicalGaussianClassifier(2, search=QUICK, random_state=0, **settings).fit(X, y)
        return getattr(model.function_, "shares", None)

    assert shares(X, y) is not None
    model = ck.HierarchicalGaussianClassifier(2, search=QUICK, verbose=True, random_state=0).fit(X, y)
    assert model.function_.names == ("learned", "linear", "stumps", "pairs of stumps", "gaussian")
    assert f"rows held out: learned {model.function_.shares[0]:.2f}, linear" in capsys.readouterr().err
    for few in ({"loss": "hinge"}, {"selection": ck.TreeSelection(combine="one")}):
        assert shares(X, y, **few) is None
    tight = ck.TreeSelection(training=ck.AllRows(memory_limit=1e5))
    assert shares(X, y, selection=tight) is None
    assert shares(X[:40], y[:40]) is not None
    assert shares(X[:9], y[:9]) is None  # no two rows for every fold
    # Equal points with both labels: without a point nothing is known of it.
    assert shares(np.round(X[:, :2]), y) is None
    assert shares(np.vstack([X, X]), np.append(y, y)) is not None  # rows twice are rows with twice the weight


@pytest.mark.parametrize("settings", [{"loss": "hinge"}, {"multi_class": "all-vs-all"}])
def test_stacks_of_other_functions_are_refused_before_work_starts(settings, monkeypatch):
    X, y = make_classification(60, 4, n_informative=3, n_redundant=1, n_classes=3, random_state=0)
    model = ck.HierarchicalGaussianClassifier(2, selection=ck.TreeSelection(combine="stack"), **settings)
    monkeypatch.setattr(ck.OuterLearning, "solve", None)
    with pytest.raises(ck.InvalidInputError, match="combine='stack' is for least squares"):
        model.fit(X, y)
    with pytest.raises(ck.InvalidInputError, match="combine must be one of"):
        ck.TreeSelection(combine="both")


def test_every_fold_has_its_searches_and_classes_in_proportion():
    X, y = make_classification(100, 4, weights=[0.9], random_state=0)
    search = ck.TreeSearch(max_iter=3, n_restarts=2)
    model = ck.HierarchicalGaussianClassifier(2, search=search, selection=ck.TreeSelection(3), random_state=0).fit(X, y)
    assert len(model.solutions_) == 6
    rare = [int((solution.problem.Y[0] > 0).sum()) for solution in model.solutions_]
    assert max(rare) - min(rare) <= 1
    assert model.choice_.risks.shape == (1, 3)


def test_probabilities_of_noise_are_shares_of_the_classes():
    """A single search on labels by chance fits them, and is too sure; what no kernel has seen says so."""
    rng = np.random.default_rng(3)
    X, T = rng.normal(size=(200, 12)), rng.normal(size=(2000, 12))
    y, t = rng.random(200) < 0.3, rng.random(2000) < 0.3
    entropy = -(0.3 * np.log(0.3) + 0.7 * np.log(0.7))
    loss = {}
    for combine in ("one", "stack"):
        selection = ck.TreeSelection(combine=combine)
        model = ck.HierarchicalGaussianClassifier(selection=selection, random_state=0).fit(X, y)
        loss[combine] = log_loss(t, model.predict_proba(T))
    assert loss["stack"] < entropy + 0.03
    assert loss["stack"] < loss["one"]


def test_a_stack_is_better_than_one_function_on_a_small_table():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = rows[:200], rows[200:]
    loss = {}
    for combine in ("one", "stack"):
        model = ck.HierarchicalGaussianClassifier(selection=ck.TreeSelection(combine=combine), random_state=0)
        loss[combine] = log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]))
    assert loss["stack"] < 0.9 * loss["one"]


def table_with_equal_points():
    """150 points, 20 of them twice, with another target."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 3))
    t = X[:, 0] + 0.05 * rng.normal(size=150)
    return np.vstack([X, X[:20]]), np.append(t, t[:20] + 0.02)


def counted(solve, last):
    """`OuterLearning.solve`, with an interrupt in call number `last`."""
    calls = []

    def run(self, *arguments, **settings):
        calls.append(self)
        if len(calls) == last:
            raise KeyboardInterrupt
        return solve(self, *arguments, **settings)

    return run


def test_few_numbers_are_learned_from_in_folds(rng):
    """A search that has seen 40 rows fits them, and left-out values of its kernel promise what it does not hold."""
    X, T = rng.standard_normal((40, 10)), rng.standard_normal((1000, 10))
    y, t = (2.0 * Z[:, 0] - Z[:, 1] + rng.standard_normal(len(Z)) for Z in (X, T))
    found = {}
    for combine in ("one", "auto"):
        model = ck.HierarchicalGaussianRegressor(selection=ck.TreeSelection(combine=combine), random_state=0).fit(X, y)
        low, high = model.predict_interval(T, coverage=0.9).T
        found[combine] = model.score(T, t), np.mean((low <= t) & (t <= high)), model.loo_score_
    assert len(model.solutions_) == 5
    assert model.function_.names[:2] == ("learned", "linear")
    assert found["auto"][0] > max(0.5, found["one"][0])
    assert found["one"][1] < 0.7 < 0.85 < found["auto"][1]
    assert found["auto"][2] - found["auto"][0] < 0.2 < found["one"][2] - found["one"][0]


@pytest.mark.parametrize(("shape", "in_folds"), [((140, 2), True), ((160, 2), False), ((160, 17), True)])
def test_rows_are_few_in_all_or_for_each_column(rng, shape, in_folds):
    X = rng.standard_normal(shape)
    model = ck.HierarchicalGaussianRegressor(2, search=QUICK, random_state=0).fit(X, X[:, 0])
    assert (len(model.solutions_) == 5) == in_folds


def test_few_rows_that_a_criterion_divides_are_not_divided_before(rng):
    X = rng.standard_normal((10, 2))
    for kind, y in ((ck.HierarchicalGaussianRegressor, X[:, 0]), (ck.HierarchicalGaussianClassifier, X[:, 0] > 0.0)):
        model = kind(2, search=QUICK, random_state=0, criterion=5).fit(X, y)
        assert len(model.solutions_) == 1
        with pytest.raises(InvalidInputError, match="HeldOut with rows of its own"):
            kind(2, search=QUICK, criterion=ck.HeldOut([(np.arange(7), np.arange(7, 10))])).fit(X, y)


@pytest.mark.filterwarnings("ignore::convexkernels.ConvexKernelsWarning")
def test_few_rows_of_a_criterion_that_divides_none_are_learned_from_in_folds(rng):
    X = rng.standard_normal((30, 2))
    model = ck.HierarchicalGaussianRegressor(2, search=QUICK, random_state=0, criterion=ck.TrainingValue())
    assert len(model.fit(X, X[:, 0]).solutions_) == 5


@pytest.mark.parametrize("combine", ["one", "mean", "stack"])
@pytest.mark.parametrize("last", [None, 3])
@pytest.mark.filterwarnings("ignore::convexkernels.ConvexKernelsWarning")
def test_values_of_rows_left_out_belong_to_their_rows(combine, last, monkeypatch):
    X, t = table_with_equal_points()
    if last is not None:
        monkeypatch.setattr(ck.OuterLearning, "solve", counted(ck.OuterLearning.solve, last))
    selection = ck.TreeSelection(combine=combine)
    model = ck.HierarchicalGaussianRegressor((2, 3), search=QUICK, selection=selection, random_state=0).fit(X, t)
    left = model._left_out()
    assert np.sqrt(np.mean((left.F - left.Y) ** 2)) < 0.15
    assert np.diff(model.predict_interval(X[:5])).max() < 1.0
    if last is None:
        assert left.F.shape == (1, 170)
    labels = ck.HierarchicalGaussianClassifier(2, search=QUICK, selection=selection, random_state=0).fit(X, t > 0.0)
    left = labels._left_out()
    assert ((left.F > 0.0) == (left.Y > 0.0)).mean() > 0.85


def test_functions_in_cells_are_not_stacked(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    monkeypatch.setattr(all_rows, "available_memory", lambda: 3e5)
    selection = ck.TreeSelection(training=ck.AllRows(max_cell_size=40))
    model = ck.HierarchicalGaussianRegressor(2, search=QUICK, selection=selection, random_state=0)
    model.fit(X, np.floor(2.0 * X[:, 0]))
    assert model.plan_.method == "cells"
    assert not isinstance(model.function_, MeanFunction)


def test_values_that_are_no_numbers_leave_the_function_alone(monkeypatch):
    X, t = table_with_equal_points()
    monkeypatch.setattr(left_out, "solved_at", lambda *arguments, **options: None)
    model = ck.HierarchicalGaussianRegressor(2, search=QUICK, random_state=0).fit(X, t)
    assert model.function_.shares is None
    assert len(model.function_.functions) == 2  # of the features, and of them beside their ranks


def test_the_second_search_for_numbers_sees_ranks_beside_the_features():
    """A step on a scale that one feature hides in a corner: its ranks have it in the middle."""
    rng = np.random.default_rng(0)
    X, T = np.exp(rng.normal(size=(150, 2)) * [3.0, 0.1]), np.exp(rng.normal(size=(500, 2)) * [3.0, 0.1])
    y, t = (np.tanh(2.0 * np.log(Z[:, 0])) for Z in (X, T))
    search, error = ck.TreeSearch(max_iter=30), {}
    for combine in ("one", "stack"):
        model = ck.HierarchicalGaussianRegressor(
            4, search=search, selection=ck.TreeSelection(combine=combine), random_state=0
        )
        error[combine] = np.sqrt(np.mean((model.fit(X, y).predict(T) - t) ** 2))
    assert error["stack"] < 0.7 * error["one"]
    first, second = model.solutions_
    Z = model.scaling_.apply(T)
    assert isinstance(first.kernel, ck.HierarchicalGaussian)
    assert isinstance(second.kernel, ck.BesideRanks)
    assert second.kernel(Z).shape == (500, 500)
    mean = (first.function.values(Z) + second.function.values(Z)) / 2.0
    learned = model.function_.functions[0] if model.function_.shares is not None else model.function_
    np.testing.assert_allclose(learned.values(Z), mean, atol=1e-12)
    # Columns of two values are no others by their ranks, and a tree that names its features sees no more of them.
    for architecture, table in ((4, (X > 1.0).astype(float)), ([[0], [1]], X)):
        selection = ck.TreeSelection(combine="stack")
        model = ck.HierarchicalGaussianRegressor(architecture, search=QUICK, selection=selection, random_state=0)
        assert len(model.fit(table, y).solutions_) == 1


@pytest.mark.parametrize("weight", [1e200, 1e-30])
def test_weights_of_any_size_are_relative(weight):
    X, y = make_classification(80, 4, random_state=0)
    weights = np.where(np.arange(80) < 3, weight, 1.0)
    model = ck.HierarchicalGaussianClassifier(2, search=QUICK, random_state=0).fit(X, y, sample_weight=weights)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_search_goes_on_in_a_fold_only_where_it_has_seen_no_other_rows():
    X, y = make_classification(100, 4, random_state=0)
    model = ck.HierarchicalGaussianClassifier(2, search=QUICK, warm_start=True, random_state=0).fit(X, y)
    first = model.solutions_[0].theta
    assert not np.array_equal(model.fit(X, y).solutions_[0].theta, first)  # went on
    model.set_params(random_state=1).fit(X, y)
    cold = ck.HierarchicalGaussianClassifier(2, search=QUICK, random_state=1).fit(X, y)
    np.testing.assert_allclose(model.solutions_[0].theta, cold.solutions_[0].theta)


def test_tables_of_few_rows_are_not_divided_in_many_folds():
    X, y = make_classification(60, 4, random_state=0)
    model = ck.HierarchicalGaussianClassifier(2, search=QUICK, selection=ck.TreeSelection(40), random_state=0)
    assert isinstance(model.fit(X, y).function_, ck.DecisionFunction)
    with pytest.raises(ck.InvalidInputError, match="take fewer folds, or combine='one'"):
        model.set_params(selection=ck.TreeSelection(40, "mean")).fit(X, y)


def test_few_points_many_times_are_no_small_table():
    rng = np.random.default_rng(0)
    model = ck.HierarchicalGaussianRegressor(2, search=QUICK, random_state=0)
    model.fit(np.repeat(rng.normal(size=(3, 1)), 20, axis=0), rng.normal(size=60))
    assert isinstance(model.function_, ck.DecisionFunction)
