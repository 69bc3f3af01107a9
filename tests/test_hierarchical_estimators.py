"""The hierarchical Gaussian estimators: what they learn, choices, limits, and refusals."""

import pickle

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from convexkernels import (
    ConvexKernelsWarning,
    HierarchicalGaussianClassifier,
    HierarchicalGaussianRegressor,
    InvalidInputError,
)
from convexkernels.datasets import make_friedman1
from convexkernels.outer import Schedule

TINY = Schedule(rounds=1, passes=1, first_annealing=2, later_annealing=2, gradient_steps=1, n_lams=2, n_gammas=1)
QUICK = {"architecture": 2, "max_iter": 2, "random_state": 0}


def three_rings(m=240, seed=0):
    """Three classes by the distance from the origin in two of four features."""
    X = np.random.default_rng(seed).uniform(-1, 1, (m, 4))
    return X, np.array(["inner", "middle", "outer"])[np.digitize(np.hypot(X[:, 0], X[:, 2]), [0.5, 0.8])]


def test_regressor_finds_the_features_that_matter():
    X, y = make_friedman1(300, random_state=0)
    T, t = make_friedman1(1000, random_state=1)
    X, T = (np.column_stack([table[:, 5:], np.full(len(table), 7.0), 100.0 * table[:, :5]]) for table in (X, T))
    model = HierarchicalGaussianRegressor(4, max_iter=60, random_state=0).fit(X, y)
    assert model.score(T, t) > 0.95
    assert model.feature_relevance_.shape == (11,)
    assert model.feature_relevance_[5] == 0.0  # a constant column
    assert model.feature_relevance_[6:].sum() > 0.9
    assert model.feature_relevance_.sum() == pytest.approx(1.0)
    assert model.predict(T).max() <= y.max() + 1e-9


def test_kernel_reproduces_the_machine_in_scikit_learn():
    X, y = make_friedman1(150, random_state=0)
    model = HierarchicalGaussianRegressor(2, max_iter=20, clip=False, random_state=0).fit(X, y)
    lam = np.exp(model.solution_.point[-1])
    # One machine for the deviation from the mean.
    peer = KernelRidge(kernel="precomputed", alpha=lam).fit(model.kernel_(X), y - y.mean())
    np.testing.assert_allclose(model.predict(X), y.mean() + peer.predict(model.kernel_(X)), rtol=1e-6)


@pytest.mark.parametrize("multi_class", ["one-vs-all", "all-vs-all"])
@pytest.mark.parametrize("loss", ["least_squares", "hinge"])
def test_classifier_separates_rings(loss, multi_class):
    X, y = three_rings()
    T, t = three_rings(seed=1)
    model = HierarchicalGaussianClassifier(2, loss=loss, multi_class=multi_class, max_iter=15, random_state=0).fit(X, y)
    assert model.decision_function(T).shape == (240, 3)
    assert model.score(T, t) > 0.88
    assert model.feature_relevance_[[0, 2]].sum() > 0.7


def test_machine_of_the_hinge_loss_is_scikit_learns():
    X, y = three_rings()
    y = y == "inner"
    model = HierarchicalGaussianClassifier(2, loss="hinge", clip=False, max_iter=5, random_state=0).fit(X, y)
    C = 0.5 / np.exp(model.solution_.point[-1])
    K = model.kernel_(X)
    # SVC has an intercept: compare the objectives without one, at the solution that both describe.
    w = np.zeros(len(X))
    w[np.lexsort(np.column_stack([X, y]).T[::-1])[model.machine_.support]] = model.machine_.W[:, 0]
    f = K @ w
    primal = 0.5 * w @ f + C * np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * f).sum()
    dual = np.abs(w).sum() - 0.5 * w @ f
    assert np.abs(w).max() <= C * (1 + 1e-9)
    assert primal - dual <= 1e-4 * primal


def test_architectures_are_cross_validated():
    X, y = make_friedman1(150, random_state=0)
    model = HierarchicalGaussianRegressor((1, 2, [[0, 1], [2, 3, 4]]), n_folds=3, max_iter=8, random_state=0).fit(X, y)
    assert model.choice_.risks.shape == (3, 3)
    assert model.choice_.best == model.choice_.risks.mean(axis=1).argmin()
    assert model.architecture_ == model.choice_.candidates[model.choice_.best]


def test_averages_of_folds_and_of_searches_are_means_of_machines():
    X, y = make_friedman1(120, random_state=0)
    for options in ({"average_folds": True, "n_folds": 3}, {"n_searches": 3}):
        model = HierarchicalGaussianRegressor(2, max_iter=5, random_state=0, **options).fit(X, y)
        assert len(model.solutions_) == len(model.machine_.machines) == 3
        points = model.scaling_.apply(X)
        mean = np.mean([machine.values(points)[:, 0] for machine in model.machine_.machines], axis=0)
        np.testing.assert_allclose(model.predict(X), model.targets_.center + model.targets_.spread * mean)
    sizes = {len(machine.points) for machine in model.machine_.machines}
    assert sizes == {120}  # each search ends with a machine of all rows


def test_warm_start_goes_on_where_the_last_fit_ended():
    X, y = make_friedman1(150, random_state=0)
    model = HierarchicalGaussianRegressor(2, search_size=150, max_iter=10, warm_start=True, random_state=0).fit(X, y)
    first = model.solution_.value
    model.fit(X, y)
    assert model.solution_.history[0].upper == pytest.approx(first, rel=1e-9)
    assert model.solution_.value < first
    model.set_params(architecture=3).fit(X, y)  # another tree starts anew
    assert len(model.solution_.point) == 3 * 10 + 3 + 1


def test_repeated_rows_are_weights():
    X, y = make_friedman1(80, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, 80)
    weights[[y.argmin(), y.argmax()]] = 1
    options = {"architecture": 2, "max_iter": 5, "random_state": 0}
    weighted = HierarchicalGaussianRegressor(**options).fit(X, y, sample_weight=weights)
    repeated = HierarchicalGaussianRegressor(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)


def test_large_tables_are_searched_on_samples_within_the_time_limit():
    X, y = make_friedman1(600, random_state=0)
    model = HierarchicalGaussianRegressor(4, search_size=150, max_iter=10**6, max_time=1.0, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="time limit"):
        model.fit(X, y)
    T, t = make_friedman1(500, random_state=1)
    assert model.score(T, t) > 0.9


def test_published_search_and_pickle():
    X, y = make_friedman1(150, random_state=0)
    model = HierarchicalGaussianRegressor(2, search="published", schedule=TINY, random_state=0).fit(X, y)
    assert set(model.solution_.risks) == {"seconds", "D1", "D2", "D3"}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


X30, Y30 = np.random.default_rng(0).uniform(size=(30, 2)), np.arange(30) % 3
REFUSED = [
    ({"architecture": 0}, "no kernel has depth 0"),
    ({"architecture": ()}, "empty tuple"),
    ({"architecture": "deep"}, "'paper'"),
    ({"architecture": (1, [[0], []])}, "empty"),
    ({"architecture": [[0, 5]]}, "unknown feature 5"),
    ({"loss": "cubic"}, "loss must be"),
    ({"n_searches": 0}, "n_searches"),
    ({"n_folds": 1}, "n_folds"),
    ({"lam": 0.0}, "lam"),
    ({"search": "luck"}, "search must be one of"),
    ({"search_size": 1}, "search_size"),
    ({"schedule": 5}, "Schedule"),
    ({"max_time": -1.0}, "max_time"),
    ({"checkpoint": "/no/such/folder/file.npy"}, "folder that does not exist"),
    ({"subsets": [[0], [9]]}, "unknown feature 9"),
]


@pytest.mark.parametrize("estimator", [HierarchicalGaussianRegressor, HierarchicalGaussianClassifier])
@pytest.mark.parametrize(("parameters", "phrase"), REFUSED)
def test_bad_parameters_are_refused(estimator, parameters, phrase):
    with pytest.raises(InvalidInputError, match=phrase):
        estimator(**{"max_iter": 1, **parameters}).fit(X30, Y30)


def test_bad_targets_are_refused():
    with pytest.raises(InvalidInputError, match="one class only"):
        HierarchicalGaussianClassifier().fit(X30, np.zeros(30))
    with pytest.raises(InvalidInputError, match="multi_class"):
        HierarchicalGaussianClassifier(multi_class="some").fit(X30, Y30)
    with pytest.raises(InvalidInputError, match="class labels"):
        HierarchicalGaussianClassifier().fit(X30, X30[:, 0])
    rare = np.where(np.arange(30) == 4, "rare", "often")
    with pytest.raises(InvalidInputError, match="rarer class is too small"):
        HierarchicalGaussianClassifier(search="published").fit(X30, rare)
