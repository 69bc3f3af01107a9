"""The hierarchical Gaussian estimators: what they learn, choices, limits, and refusals."""

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge

from convexkernels import (
    ConvexKernelsWarning,
    EpsilonInsensitive,
    FixedKernel,
    Gaussian,
    HierarchicalGaussianClassifier,
    HierarchicalGaussianRegressor,
    InvalidInputError,
    LeaveOneOut,
    OuterLearning,
    Pinball,
    Schedule,
    Status,
    TrainingValue,
    Trees,
    TreeSearch,
    TreeSelection,
    VoronoiRidge,
)
from convexkernels.backend import MissingTorchError
from convexkernels.datasets import make_friedman1
from convexkernels.estimators.hierarchical import base
from convexkernels.estimators.hierarchical.all_rows import TrainingTime
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.losses.fit import fit
from convexkernels.losses.least_squares import LeastSquares


def three_rings(m=240, seed=0):
    """Three classes by the distance from the origin in two of four features."""
    X = np.random.default_rng(seed).uniform(-1, 1, (m, 4))
    return X, np.array(["inner", "middle", "outer"])[np.digitize(np.hypot(X[:, 0], X[:, 2]), [0.5, 0.8])]


def test_regressor_finds_the_features_that_matter():
    X, y = make_friedman1(300, random_state=0)
    T, t = make_friedman1(1000, random_state=1)
    X, T = (np.column_stack([table[:, 5:], np.full(len(table), 7.0), 100.0 * table[:, :5]]) for table in (X, T))
    model = HierarchicalGaussianRegressor(4, search=TreeSearch(max_iter=60), random_state=0).fit(X, y)
    assert model.score(T, t) > 0.95
    assert model.feature_relevance_.shape == (11,)
    assert model.feature_relevance_[5] == 0.0  # a constant column
    assert model.feature_relevance_[6:].sum() > 0.9
    assert model.feature_relevance_.sum() == pytest.approx(1.0)
    assert model.predict(T).max() <= y.max() + 1e-9


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_functions_that_change_quickly_are_found(seed):
    """Whatever is drawn: R^2 was .77 to .68 for one feature, and mostly 0 for two, beside .9 of an RBF ridge."""
    rng = np.random.default_rng(seed)
    X, noise = rng.uniform(-1.0, 1.0, (700, 2)), rng.standard_normal(700)
    for Z, y, m in (
        (X[:, :1], np.sin(40.0 * X[:, 0]) + 0.2 * noise, 150),
        (X, np.sin(10.0 * X[:, 0]) * np.sin(10.0 * X[:, 1]) + 0.1 * noise, 300),
    ):
        assert HierarchicalGaussianRegressor(random_state=0).fit(Z[:m], y[:m]).score(Z[m:], y[m:]) > 0.84
        labels = y > 0.0
        classifier = HierarchicalGaussianClassifier(random_state=0).fit(Z[:m], labels[:m])
        assert classifier.score(Z[m:], labels[m:]) > 0.72


def test_kernel_reproduces_the_function_in_scikit_learn():
    X, y = make_friedman1(150, random_state=0)
    options = {"search": TreeSearch(max_iter=20), "selection": TreeSelection(combine="one"), "random_state": 0}
    model = HierarchicalGaussianRegressor(2, clip=False, **options).fit(X, y)
    lam = np.exp(model.solution_.theta[-1])
    peer = KernelRidge(kernel="precomputed", alpha=lam).fit(model.kernel_(X), y - y.mean())
    np.testing.assert_allclose(model.predict(X), y.mean() + peer.predict(model.kernel_(X)), rtol=1e-6)


def test_the_curve_of_lam_is_that_of_functions_that_have_not_seen_the_row():
    X, y = make_friedman1(60, noise=0.5, random_state=0)
    options = {"search": TreeSearch(max_iter=20), "selection": TreeSelection(combine="one"), "random_state": 0}
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    model = HierarchicalGaussianRegressor(2, **options).fit(X, y, weights)
    assert not model.solution_.derived
    assert model.selection_.chosen == {"lam": model.lam_}
    assert f"lam={model.lam_:.3g}" in model.describe()
    assert "risks along lam" not in model.solution_.derived  # nobody has asked for them
    (lams, risks), problem = model.selection_.curve.values(), model.solution_.problem
    assert lams[5] == model.lam_ == pytest.approx(np.exp(model.solution_.theta[-1]), rel=1e-4)
    K, (low, high) = model.tree_(problem.X), problem.bounds
    for k in (3, 8):
        errors = []
        for i in range(60):
            rest = np.arange(60) != i
            peer = KernelRidge(kernel="precomputed", alpha=lams[k])
            peer.fit(K[np.ix_(rest, rest)], problem.Y[0, rest], sample_weight=problem.weights[rest])
            errors.append(problem.Y[0, i] - np.clip(peer.predict(K[[i]][:, rest])[0], low[0, 0], high[0, 0]))
        assert risks[k] == pytest.approx(np.average(np.square(errors), weights=problem.weights), rel=1e-6)
    assert risks[5] == pytest.approx(model.solution_.certificate.value, rel=1e-8)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).selection_.risks, risks)


def test_a_long_search_ends_with_the_best_lam_of_its_kernel():
    X, y = make_friedman1(80, noise=1.0, random_state=0)
    search = TreeSearch("quasi-newton", max_iter=300, lam=2.0)
    model = HierarchicalGaussianRegressor(1, search=search, random_state=0).fit(X, y)
    risks = model.selection_.risks
    assert abs(int(risks.argmin()) - 5) <= 1
    assert risks[[0, -1]].min() > 1.1 * risks.min()


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_curve_of_other_losses_is_that_of_rows_held_out(loss):
    X, y = three_rings(90)
    options = {"search": TreeSearch(max_iter=5), "selection": TreeSelection(combine="one"), "random_state": 0}
    model = HierarchicalGaussianClassifier(2, loss=loss, criterion=2, **options).fit(X, y)
    lams, risks = model.selection_.curve.values()
    problem = model.solution_.problem
    for k in (4, 5):
        loss_at, found = problem.loss.at(lams[k]), 0.0
        for train, held in problem.bind().folds:
            K = model.tree_(problem.X[train])
            trained = fit(loss_at, K, np.ascontiguousarray(problem.Y[:, train]), problem.weights[train], tol=1e-9)
            F = np.clip(trained.W @ model.tree_(problem.X[train], problem.X[held]), -1.0, 1.0)
            found += loss_at.pointwise(problem.Y[:, held], F)[0].sum()
        assert risks[k] == pytest.approx(found / problem.Y.size, rel=1e-3)
    assert lams[5] == model.lam_


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.ConvexKernelsWarning")
def test_a_lam_that_nothing_learns_has_no_curve():
    X, y = make_friedman1(40, random_state=0)
    options = {"search": TreeSearch("quasi-newton", lam=0.5, max_iter=2), "random_state": 0}
    model = HierarchicalGaussianRegressor(1, criterion=TrainingValue(), **options).fit(X, y)
    assert model.lam_ == 0.5
    with pytest.raises(AttributeError, match="a criterion that learns no lam: nothing to choose"):
        model.selection_  # noqa: B018


def noisy_classes_on_a_grid(m=800, seed=0):
    """27 points, and at each the probability of "yes": 0.3 or 0.7."""
    X = np.random.default_rng(seed).integers(0, 3, (m, 3)).astype(float)
    p = np.where(X[:, 0] + X[:, 1] > 2, 0.7, 0.3)
    return X, np.where(np.random.default_rng(seed + 1).random(m) < p, "yes", "no"), p


def test_rows_of_another_class_at_the_same_point_do_not_speak_against_it():
    X, y, p = noisy_classes_on_a_grid()
    model = HierarchicalGaussianClassifier(4, random_state=0).fit(X, y)
    found = model.predict_proba(X)[:, 1]
    assert np.mean((found > 0.5) == (p > 0.5)) > 0.95  # 0.79 when rows are left out one by one
    entropy = -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert -np.mean(p * np.log(found) + (1 - p) * np.log(1 - found)) < entropy + 0.04
    assert model.solution_.problem.m == len(np.unique(X, axis=0))


def test_probabilities_and_intervals_know_all_rows_of_a_point():
    X, y, p = noisy_classes_on_a_grid()
    left = HierarchicalGaussianClassifier(4, search=TreeSearch(max_iter=20), random_state=0).fit(X, y)._left_out()
    assert left.F.shape == left.Y.shape
    assert left.weights.sum() == len(y)
    assert left.weights @ (left.Y[0] > 0) == np.sum(y == "yes")
    t = p + np.random.default_rng(2).normal(0.0, 1.0, len(p))
    model = HierarchicalGaussianRegressor(4, search=TreeSearch(max_iter=20), random_state=0).fit(X, t)
    low, high = model.predict_interval(X, coverage=0.8).T
    # Residuals of the means of points would be a quarter as long.
    assert np.mean((low < t) & (t < high)) == pytest.approx(0.8, abs=0.05)


def test_a_device_needs_torch_and_gradients(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("convexkernels.backend.import_module", missing)
    X, y, _ = noisy_classes_on_a_grid(60)
    with pytest.raises(MissingTorchError, match=r"pip install 'convexkernels\[torch\]'"):
        HierarchicalGaussianClassifier(4, search=TreeSearch(device="cuda")).fit(X, y)
    with pytest.raises(MissingTorchError, match=r"pip install 'convexkernels\[torch\]'"):
        FixedKernel(Gaussian(), LeastSquares(), X, X[:, 0], device="cuda")
    with pytest.raises(InvalidInputError, match="device='cuda' is for searches along gradients, not for method='ann"):
        TreeSearch("annealing", device="cuda")


def test_equal_points_as_one_are_the_same_problem_of_least_squares():
    X, _, p = noisy_classes_on_a_grid(200)
    y = np.random.default_rng(2).uniform(-1.0, 1.0, (200, 2)) * p[:, None]
    weights, keys = np.random.default_rng(3).uniform(0.5, 2.0, 200), np.arange(200, dtype=np.uint64)
    task = TreeTask(X, y, weights, LeastSquares(), LeaveOneOut(), False, keys)
    merged, points = task.of_points()
    np.testing.assert_array_equal(merged.X[points], X)
    theta = np.append(task.problem(3, 0).start(np.random.default_rng(4))[:-1], np.log(0.3))
    values = [part.problem(3, 0).function(theta).values(X) for part in (task, merged)]
    np.testing.assert_allclose(*values, atol=1e-6)


@pytest.mark.parametrize("multi_class", ["one-vs-all", "all-vs-all"])
@pytest.mark.parametrize("loss", ["least_squares", "hinge", "logistic"])
def test_classifier_separates_rings(loss, multi_class):
    X, y = three_rings()
    T, t = three_rings(seed=1)
    search = TreeSearch(max_iter=15)
    model = HierarchicalGaussianClassifier(2, loss=loss, multi_class=multi_class, search=search, random_state=0)
    model.fit(X, y)
    assert model.decision_function(T).shape == (240, 3)
    assert model.score(T, t) > 0.88
    assert model.feature_relevance_[[0, 2]].sum() > 0.7


def test_function_of_the_hinge_loss_is_that_of_scikit_learn():
    X, y = three_rings()
    y = y == "inner"
    model = HierarchicalGaussianClassifier(2, loss="hinge", clip=False, search=TreeSearch(max_iter=5), random_state=0)
    model.fit(X, y)
    C = 0.5 / np.exp(model.solution_.theta[-1])
    K = model.kernel_(X)
    # SVC has an intercept: compare the objectives without one, at the solution that both describe.
    w = np.zeros(len(X))
    w[np.lexsort(np.column_stack([X, y]).T[::-1])[model.function_.support]] = model.function_.W[0]
    f = K @ w
    primal = 0.5 * w @ f + C * np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * f).sum()
    dual = np.abs(w).sum() - 0.5 * w @ f
    assert np.abs(w).max() <= C * (1 + 1e-9)
    assert primal - dual <= 1e-4 * primal


def test_architectures_are_cross_validated():
    X, y = make_friedman1(150, random_state=0)
    options = {"selection": TreeSelection(3), "search": TreeSearch(max_iter=8), "random_state": 0}
    model = HierarchicalGaussianRegressor((1, 2, [[0, 1], [2, 3, 4]]), **options).fit(X, y)
    assert model.choice_.risks.shape == (3, 3)
    assert model.choice_.best == model.choice_.risks.mean(axis=1).argmin()
    assert model.architecture_ == model.choice_.candidates[model.choice_.best]


def test_averages_of_folds_and_of_searches_are_means_of_functions():
    X, y = make_friedman1(120, random_state=0)
    for selection, n_restarts in ((TreeSelection(3, "mean"), 1), (TreeSelection(combine="one"), 3)):
        search = TreeSearch(max_iter=5, n_restarts=n_restarts)
        model = HierarchicalGaussianRegressor(2, search=search, selection=selection, random_state=0).fit(X, y)
        assert len(model.solutions_) == len(model.function_.functions) == 3
        points = model.scaling_.apply(X)
        mean = np.mean([function.values(points)[:, 0] for function in model.function_.functions], axis=0)
        np.testing.assert_allclose(model.predict(X), model.targets_.center + model.targets_.spread * mean)
    # Each search ends with a function of all rows.
    assert {len(function.support) for function in model.function_.functions} == {120}


def test_warm_start_goes_on_where_the_last_fit_ended():
    X, y = make_friedman1(150, random_state=0)
    search = TreeSearch("quasi-newton", max_iter=10)
    model = HierarchicalGaussianRegressor(2, search=search, warm_start=True, random_state=0).fit(X, y)
    first = model.solution_.value
    model.fit(X, y)
    assert model.solution_.history[0].upper == pytest.approx(first, rel=1e-9)
    assert model.solution_.value < first
    model.set_params(architecture=3).fit(X, y)  # another tree starts anew
    assert len(model.solution_.theta) == 3 * 10 + 3 + 1


def test_large_tables_are_searched_on_samples_within_the_time_limit():
    X, y = make_friedman1(600, random_state=0)
    search = TreeSearch(size=150, max_iter=10**6)
    model = HierarchicalGaussianRegressor(4, search=search, max_time=1.0, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="time limit"):
        model.fit(X, y)
    T, t = make_friedman1(500, random_state=1)
    assert model.score(T, t) > 0.9


def test_annealing_moves_each_weight_of_categories_by_itself(rng):
    """As published; searches along gradients have one weight for a column of them in each node."""
    table = pd.DataFrame({"a": rng.normal(size=60), "kind": rng.choice(list("pqr"), 60)})
    y = np.sin(2.0 * table["a"]) + (table["kind"] == "p")
    for method, n_weights in (("annealing", 10), ("stochastic", 6)):  # two nodes of four columns, or of two features
        search = TreeSearch(method, schedule=Schedule(1, 1, 5, 5, 2, 2, 2), max_iter=5)
        model = HierarchicalGaussianRegressor(2, criterion=3, search=search, random_state=0).fit(table, y)
        assert model.solution_.problem.gram_set.n_unknowns == n_weights
        assert np.isfinite(model.predict(table)).all()


def test_annealing_is_seeded_and_pickles():
    X, y = three_rings(120)
    search = TreeSearch("annealing", schedule=Schedule(1, 2, 9, 9, 2, 3, 2))
    model = HierarchicalGaussianClassifier(2, search=search, random_state=0).fit(X, y)
    assert set(model.solution_.trace) == {"seconds", "D1", "D2", "D3"}
    for again in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_one_time_limit_is_for_all_searches():
    X, y = make_friedman1(300, random_state=0)
    search = TreeSearch("stochastic", max_iter=10**6, n_restarts=2)
    options = {"search": search, "selection": TreeSelection(2), "max_time": 1.2, "random_state": 0}
    with pytest.warns(ConvexKernelsWarning, match="time limit"):
        model = HierarchicalGaussianRegressor((2, 3), **options).fit(X, y)
    assert model.solution_.status is Status.TIME_LIMIT
    assert sum(solution.seconds for solution in model.solutions_) < 1.0  # the choice had half


@pytest.mark.parametrize("selection", [TreeSelection(combine="stack"), TreeSelection(2, "mean")])
def test_the_time_limit_has_room_for_the_final_training(monkeypatch, selection):
    """Every training takes 0.6 s: the searches together leave as much of the limit."""
    X, y = make_friedman1(160, random_state=0)
    granted, train, solve = [], OuterLearning.train, OuterLearning.solve

    def slow(self, *arguments):
        time.sleep(0.6)
        return train(self, *arguments)

    def watched(self, *arguments, max_time, **settings):
        granted.append(max_time)
        return solve(self, *arguments, max_time=max_time, **settings)

    monkeypatch.setattr(OuterLearning, "train", slow)
    monkeypatch.setattr(OuterLearning, "solve", watched)
    search = TreeSearch(max_iter=1, n_restarts=2)
    HierarchicalGaussianRegressor(2, search=search, selection=selection, max_time=9.0, random_state=0).fit(X, y)
    n_functions = 2 * 2  # every fold has its searches, and so have features beside their ranks
    assert len(granted) == n_functions
    assert granted[-1] <= 9.0 - n_functions * 0.6


@pytest.mark.parametrize(("limit", "n_searches"), [(4.0, 1), (60.0, 5), ("auto", 5)])
def test_a_short_limit_is_for_one_search(monkeypatch, limit, n_searches):
    """Certificates and trainings of five folds and a stack are said to take 3.7 s."""
    X, y = make_classification(200, random_state=0)
    monkeypatch.setattr(base, "training_time", lambda problem: TrainingTime(entry=0.1 / problem.m**2))
    searches, solve = [], OuterLearning.solve
    monkeypatch.setattr(OuterLearning, "solve", lambda self, *a, **k: searches.append(self.m) or solve(self, *a, **k))
    search = TreeSearch(max_iter=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvexKernelsWarning)
        model = HierarchicalGaussianClassifier(2, search=search, max_time=limit, random_state=0).fit(X, y)
    assert any("max_time ended the combination" in str(one.message) for one in said) == (n_searches == 1)
    assert len(searches) == len(model.solutions_) == n_searches
    assert (model.solution_.problem.m == len(X)) == (n_searches == 1)
    assert ("max_time leaves no time to combine" in model.plan_.why) == (n_searches == 1)


def test_an_interrupt_of_the_choice_keeps_the_best_complete_candidate(monkeypatch):
    X, y = make_friedman1(80, random_state=0)
    trained, train = [], OuterLearning.train

    def interrupting(self, message):
        if message.startswith("search 3 of 6: "):
            raise KeyboardInterrupt

    monkeypatch.setattr("convexkernels.progress.Table.note", interrupting)
    monkeypatch.setattr(
        OuterLearning, "train", lambda problem, theta: trained.append(problem.m) or train(problem, theta)
    )
    options = {"search": TreeSearch(max_iter=2), "selection": TreeSelection(3), "random_state": 0, "verbose": True}
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED by the user; the best of 3 of 6 searches"):
        model = HierarchicalGaussianRegressor((2, 3), **options).fit(X, y)
    assert model.architecture_ == 2
    assert np.isfinite(model.choice_.risks[0]).all()
    assert np.isinf(model.choice_.risks[1]).all()
    assert model.solution_.status is Status.INTERRUPTED
    assert len(model.function_.functions) == 3
    assert len([m for m in trained if m < 80]) == 3  # each of them once


@pytest.mark.parametrize("quantile", [0.2, 0.8])
def test_a_quantile_with_an_intercept_splits_the_rows_it_learned_from(quantile):
    X, y = make_friedman1(200, noise=2.0, random_state=0)
    loss = Pinball(C=5.0, quantile=quantile)
    model = HierarchicalGaussianRegressor(2, loss=loss, clip=False, search=TreeSearch(max_iter=10), random_state=0)
    excess = (model.fit(X, y).predict(X) - y) / np.ptp(y)
    assert np.mean(excess > 1e-3) <= quantile <= np.mean(excess > -1e-3)


@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_epsilon_is_a_quarter_of_the_error_of_gaussian_kernels_at_rows_left_out(noise):
    X, y = make_friedman1(200, noise=noise, random_state=0)
    options = {"search": TreeSearch(max_iter=3), "random_state": 0}
    model = HierarchicalGaussianRegressor(2, loss="epsilon_insensitive", **options).fit(X, y)
    left = y - VoronoiRidge(random_state=0).fit(X, y).loo_predictions_  # with a width for each feature, too
    assert model.epsilon_ == pytest.approx(0.25 * np.sqrt(np.mean(left**2)), rel=0.25)
    assert model.solution_.problem.loss.epsilon == pytest.approx(model.epsilon_ / (0.5 * np.ptp(y)), rel=1e-12)
    several = clone(model).fit(X, np.column_stack([y, 7.0 * y]))
    np.testing.assert_allclose(several.epsilon_, [model.epsilon_, 7.0 * model.epsilon_], rtol=1e-3)


def test_a_given_epsilon_is_kept_and_other_losses_have_none():
    X, y = make_friedman1(60, random_state=0)
    options = {"search": TreeSearch(max_iter=2), "random_state": 0}
    given = HierarchicalGaussianRegressor(2, loss=EpsilonInsensitive(epsilon=0.03, intercept=False), **options)
    assert given.fit(X, y).epsilon_ == pytest.approx(0.03 * 0.5 * np.ptp(y), rel=1e-12)
    constant = HierarchicalGaussianRegressor(2, loss="epsilon_insensitive", **options).fit(X, np.ones(60))
    assert constant.epsilon_ == 0.05
    pinball = HierarchicalGaussianRegressor(2, loss="pinball", **options).fit(X, y)
    assert pinball.solution_.problem.loss.quantile == 0.5
    with pytest.raises(AttributeError, match="has no epsilon_: its loss is Pinball"):
        pinball.epsilon_  # noqa: B018


X30, Y30 = np.random.default_rng(0).uniform(size=(30, 2)), np.arange(30) % 3
REFUSED = [
    ({"architecture": 0}, "no kernel has depth 0"),
    ({"architecture": ()}, "empty tuple"),
    ({"architecture": "deep"}, "'paper'"),
    ({"architecture": (1, [[0], []])}, "empty"),
    ({"architecture": [[0, 5]]}, "unknown feature 5"),
    ({"loss": "cubic"}, "loss must be"),
    ({"loss": "hinge", "criterion": LeaveOneOut()}, "closed form for least squares|loss must be"),
    ({"criterion": 0}, "criterion must be"),
    ({"criterion": "luck"}, "criterion must be"),
    ({"search": "annealing"}, "search must be a TreeSearch"),
    ({"selection": 5}, "selection must be a TreeSelection"),
    ({"architecture": Trees(4, [[0], [9]])}, "unknown feature 9"),
]


SETTINGS = [
    (lambda: TreeSearch("luck"), "method must be one of"),
    (lambda: TreeSearch(lam=0.0), "lam"),
    (lambda: TreeSearch(size=1), "size"),
    (lambda: TreeSearch(max_iter=0), "max_iter"),
    (lambda: TreeSearch(tol=0.0), "tol"),
    (lambda: TreeSearch(n_restarts=0), "n_restarts"),
    (lambda: TreeSearch(schedule=5), "Schedule"),
    (lambda: TreeSelection(folds=1), "folds"),
]


@pytest.mark.parametrize(("attempt", "phrase"), SETTINGS)
def test_bad_settings_are_refused(attempt, phrase):
    with pytest.raises(InvalidInputError, match=phrase):
        attempt()


@pytest.mark.parametrize("estimator", [HierarchicalGaussianRegressor, HierarchicalGaussianClassifier])
@pytest.mark.parametrize(("parameters", "phrase"), REFUSED)
def test_bad_parameters_are_refused(estimator, parameters, phrase):
    with pytest.raises(InvalidInputError, match=phrase):
        estimator(**parameters).fit(X30, Y30)


def test_bad_targets_are_refused():
    with pytest.raises(InvalidInputError, match="multi_class"):
        HierarchicalGaussianClassifier(multi_class="some").fit(X30, Y30)
    with pytest.raises(InvalidInputError, match="class labels"):
        HierarchicalGaussianClassifier().fit(X30, X30[:, 0])
    rare = np.where(np.arange(30) == 4, "rare", "often")
    search = TreeSearch("annealing", schedule=Schedule(1, 1, 1, 1, 1, 1, 1))
    with pytest.raises(InvalidInputError, match="rarer one is in too few rows"):
        HierarchicalGaussianClassifier(search=search).fit(X30, rare)
