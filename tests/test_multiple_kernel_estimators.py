"""MultipleKernelSVC / SVR / Ridge and TessellatedSVR / Ridge: scikit-learn's contract and what users ask of MKL."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_friedman1
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels.families import candidate_list
from convexkernels.plotting import FeatureRelevanceDisplay, KernelWeightsDisplay

PER_FEATURE = [(f"x{j}", ck.Gaussian(1.0), [j]) for j in range(4)]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, load_iris().target_names[y]


def test_three_classes_share_one_readable_set_of_weights(iris):
    X, y = iris
    model = ck.MultipleKernelSVC(PER_FEATURE, C=10.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.weights_.shape == (4,)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.decision_function(X).shape == (150, 3)
    named = model.weights_by_name()
    assert list(named) == sorted(named, key=named.get, reverse=True)
    assert set(named) <= {"x0", "x1", "x2", "x3"}
    assert model.solution_.certificate.relative_gap <= 1e-4


def test_columns_by_name_slice_and_mask_are_the_same_columns(iris):
    X, y = iris
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    kernels = [
        [("left", ck.Gaussian(1.0), left), ("right", ck.Gaussian(1.0), right)]
        for left, right in [
            (["a", "b"], ["c", "d"]),
            ([0, 1], [2, 3]),
            (slice(0, 2), slice(2, 4)),
            (np.array([True, True, False, False]), [-2, -1]),
        ]
    ]
    weights = [ck.MultipleKernelSVC(k, C=5.0, tol=1e-6).fit(table, y).weights_ for k in kernels]
    for other in weights[1:]:
        np.testing.assert_allclose(other, weights[0], atol=1e-8)
    with pytest.raises(ck.InvalidInputError, match="column 'e'"):
        ck.MultipleKernelSVC([("left", ck.Gaussian(1.0), ["e"])]).fit(table, y)


def test_default_candidates_are_called_by_the_columns_they_are_on(rng):
    X = rng.standard_normal((60, 2))
    side = np.where(rng.uniform(size=60) < 0.5, "left", "right")
    y = np.where(side == "left", np.sin(3.0 * X[:, 0]), 0.0)
    frame = pd.DataFrame({"same": 1.0, "age": X[:, 0], "side": side, "x1": X[:, 1]})
    model = ck.MultipleKernelRidge(lam=0.1).fit(frame, y)
    assert model.feature_labels_ == ["same", "age", "side=left", "side=right", "x1"]
    on = {name.rsplit(" on ", 1)[1] for name in model.kernel_names_}
    assert on == {"all", "age", "side", "x1"}  # the constant column has no candidate
    assert set(model.weights_by_name()) <= set(model.kernel_names_)
    assert any(name.endswith("on age") for name in model.weights_by_name(0.05))
    assert any(group == "age" for group in KernelWeightsDisplay.by_feature(model).weights)
    assert FeatureRelevanceDisplay.from_estimator(model).feature_names == model.feature_labels_
    plain = ck.MultipleKernelRidge(lam=0.1).fit(np.column_stack([np.ones(60), X]), y)
    assert {name.rsplit(" on ", 1)[1] for name in plain.kernel_names_} == {"all", "x1", "x2"}
    given = ck.MultipleKernelRidge([("on x0", ck.Gaussian(), [1])], lam=0.1).fit(frame[["age", "x1"]], y)
    assert given.kernel_names_ == ["on x0"]


def test_stack_precomputed_and_numbered_rows_are_the_list_of_kernels(iris):
    X, y = iris
    train, new = np.arange(0, 150, 2), np.arange(1, 150, 2)
    kernels = [ck.Gaussian(0.1), ck.Gaussian(1.0), ck.Polynomial(2)]
    listed = ck.MultipleKernelSVC(kernels, C=5.0, tol=1e-6).fit(X[train], y[train])
    expected = listed.decision_function(X[new])
    whole = np.array([k(X) for k in kernels])
    numbered = ck.MultipleKernelSVC(whole, C=5.0, tol=1e-6).fit(train[:, None], y[train])
    np.testing.assert_allclose(numbered.decision_function(new[:, None]), expected, atol=1e-3)
    stack, rows = whole[:, train][:, :, train], whole[:, new][:, :, train]
    given = ck.MultipleKernelSVC("precomputed", C=5.0, tol=1e-6).fit(stack, y[train])
    np.testing.assert_allclose(given.decision_function(rows), expected, atol=1e-3)
    assert (given.predict(rows) == listed.predict(X[new])).mean() > 0.98
    # Row numbers go through cross-validation as any table.
    scores = cross_val_score(ck.MultipleKernelSVC(whole, C=5.0), np.arange(150)[:, None], y, cv=3)
    assert scores.mean() > 0.9


def test_transformer_callable_kernel_pipeline_grid_search_and_pickle(iris):
    X, y = iris
    model = ck.MultipleKernelSVC(PER_FEATURE, C=10.0).fit(X, y)
    # One column per distinct training row, of which one is there twice.
    features = model.transform(X)
    assert features.shape == (150, 149)
    np.testing.assert_allclose(np.sort(features, axis=1), np.sort(model(X, np.unique(X, axis=0)), axis=1), atol=1e-12)
    np.testing.assert_array_equal(model(X), model.kernel_(X))
    callable_kernel = SVC(kernel=model, C=10.0).fit(X, y)
    assert callable_kernel.score(X, y) > 0.95
    pipeline = make_pipeline(StandardScaler(), ck.MultipleKernelSVC(PER_FEATURE))
    search = GridSearchCV(pipeline, {"multiplekernelsvc__C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    featured = make_pipeline(ck.MultipleKernelSVC(PER_FEATURE, C=10.0), SVC(kernel="linear")).fit(X, y)
    assert featured.score(X, y) > 0.9
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.weights_, model.weights_)
    assert copy.kernel_names_ == model.kernel_names_


@pytest.mark.parametrize("estimator", [ck.MultipleKernelRidge(lam=0.1), ck.MultipleKernelSVR(C=20.0)], ids=repr)
def test_regression_with_several_outputs_and_one_set_of_weights(estimator):
    X, y = make_friedman1(200, noise=0.5, random_state=0)
    Y = np.column_stack([y, 2.0 * y + 1.0, X[:, 0]])
    model = estimator.fit(X, Y)
    assert model.weights_.shape == (11 + 2 * 10,)
    assert model.predict(X).shape == (200, 3)
    assert model.score(X, Y) > 0.9
    named = model.weights_by_name()
    assert sum(named.values()) == pytest.approx(1.0, abs=1e-3)


def test_tessellated_regression():
    X, y = make_friedman1(250, noise=0.5, random_state=0)
    Z, z = make_friedman1(200, noise=0.0, random_state=1)
    ridge = ck.TessellatedRidge(lam=0.01, margin=0.5).fit(X, np.column_stack([y, -y]))
    assert ridge.score(Z, np.column_stack([z, -z])) > 0.85
    svr = ck.TessellatedSVR(C=2.0, epsilon=0.5).fit(X, y)
    assert svr.score(Z, z) > 0.85
    assert svr.solution_.certificate.relative_gap <= 1e-4
    assert len(svr.support_) < 250


def test_bad_input_is_refused_by_name(iris):
    X, y = iris
    K = ck.Gaussian(1.0)(X)
    skew, negative = K.copy(), K - 2.0 * np.eye(150)
    skew[0, 1] += 0.5
    for kernels, table, said in [
        ("precomputed", np.array([K, negative]), r"matrix 1 is not positive semidefinite.*smallest eigenvalue is -"),
        ("precomputed", np.array([skew]), "matrix 0 is not symmetric"),
        ("precomputed", K, r"shape \(l, m, m\)"),
        ("precomputed", np.array([K, np.zeros((150, 150))]), "trace 0"),
        ([ck.Gaussian(1.0), ck.Gaussian(1.0)], X, "positions 0 and 1"),
        ([], X, "non-empty"),
        ("gaussian", X, "'gaussian'"),
        (1.0, X, r"^kernels must be None, .* got 1\.0"),
        ([("far", ck.Gaussian(1.0), [4])], X, "columns of kernel 'far'"),
        ([lambda a, b: a @ b.T], X, "kernels\\[0\\]"),
    ]:
        with pytest.raises(ck.InvalidInputError, match=said):
            ck.MultipleKernelSVC(kernels).fit(table, y)
    for wrong in ({"epsilon": -0.1}, {"C": 0.0}, {"tol": 0.0}, {"memory_limit": -1.0}):
        with pytest.raises(ck.InvalidInputError, match=f"{next(iter(wrong))} must be a finite number"):
            ck.MultipleKernelSVR(**wrong).fit(X, X[:, 0])
    with pytest.raises(ck.InvalidInputError, match=r"smallest eigenvalue is at most -"):
        ck.KernelLearning(ck.Span(np.array([negative]), trace=1.0), ck.Hinge(), None, np.repeat([1, -1], 75))


def test_the_narrowest_gaussian_does_not_get_all_weight_where_a_wider_one_predicts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 6))
    y = np.sin(1.5 * X.sum(axis=1))
    train, test = slice(0, 150), slice(150, None)
    model = ck.MultipleKernelRidge().fit(X[train], y[train])
    scaled = StandardScaler().fit_transform(X[train])
    listed = ck.MultipleKernelRidge(ck.data_library(scaled), lam=model.lam_)
    every = make_pipeline(StandardScaler(), listed).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > every.score(X[test], y[test]) + 0.1


@pytest.mark.parametrize("kind", [ck.MultipleKernelRidge, ck.MultipleKernelSVR])
def test_a_row_far_from_the_others_gets_the_value_at_the_edge_of_the_table(kind):
    """Polynomials of it were a power of its distance: one row in three thousand cost an R^2 of -700,000."""
    X, y = make_friedman1(100, random_state=0)
    model = kind().fit(X, y)
    far = X[:5].copy()
    far[:, 3] = 1e9
    edge = far.copy()
    edge[:, 3] = X[:, 3].max()
    np.testing.assert_array_equal(model.predict(far), model.predict(edge))
    np.testing.assert_allclose(model.kernel_(far, X), model.kernel_(edge, X))
    given = kind([("linear", ck.Polynomial(1), slice(None))]).fit(X, y)  # candidates that were passed see what there is
    assert np.abs(given.predict(far)).min() > 1e6


@pytest.mark.parametrize("normalize", ["trace", "variance"])
@pytest.mark.parametrize("landmarks", [None, 5])
def test_candidates_that_say_nothing_about_a_part_of_the_rows_are_borne_there(rng, normalize, landmarks):
    X = rng.uniform(0.2, 1.0, (30, 2))
    X[:, 1] = 0.0
    X[:2, 1] = 1.0  # of the other rows it says nothing
    kernels = [("both", ck.Gaussian(1.0), [0, 1]), ("rare", ck.Gaussian(1.0), [1]), ("linear", ck.Linear(), [1])]
    family = ck.Candidates(kernels, normalize=normalize, landmarks=landmarks)
    problem = ck.KernelLearning(family, ck.LeastSquares(0.1), X, np.sin(3.0 * X[:, 0]))
    part = problem.on_rows(np.arange(2, 30))
    assert part.solve(tol=1e-6).status is ck.Status.OPTIMAL
    silent = [k for k, scale in enumerate(part.gram_set.scales) if scale == 0.0]
    assert silent == ([1, 2] if normalize == "variance" else [2])
    with pytest.raises(ck.InvalidInputError, match="leave it out"):
        ck.KernelLearning(family, ck.LeastSquares(0.1), X[2:], np.sin(X[2:, 0]))


@pytest.mark.parametrize("form", [lambda a, b: a + 2.0 * b, lambda a, b: np.sin(3.0 * a) + b**2])
def test_the_choice_of_c_ends_where_functions_without_noise_are_found(rng, form):
    """Values of less regularization take twenty times as long, and end with a gap of rounding."""
    X = rng.uniform(size=(150, 2))
    model = ck.MultipleKernelSVR().fit(X, form(*X.T))
    found = model.selection_
    exact = found.scores >= 1.0 - 1e-6
    assert exact.sum() <= 1  # none after the first one
    assert found.score >= 1.0 - 1e-5
    assert found.values[-1] <= 1e3
    assert model.solution_.status is ck.Status.OPTIMAL


def test_a_column_that_is_constant_in_a_fold_does_not_stop_the_choice(rng):
    X = rng.uniform(-1.0, 1.0, (60, 3))
    X[:, 2] = np.arange(60) == 7
    model = ck.MultipleKernelSVC().fit(X, np.where(X[:, 0] > 0, 1, -1))
    assert model.score(X, np.where(X[:, 0] > 0, 1, -1)) > 0.9


@pytest.mark.parametrize("kind", [ck.MultipleKernelSVC, ck.MultipleKernelSVR, ck.MultipleKernelRidge])
def test_candidates_that_are_not_used_have_no_weight_and_cost_nothing(kind, rng, monkeypatch):
    """Rounding of the last projection had left 1e-16, and every one of them was evaluated at new rows."""
    X = rng.uniform(-1.0, 1.0, (120, 6))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(120)
    y = y > y.mean() if kind is ck.MultipleKernelSVC else y
    given = {"lam": 0.1} if kind is ck.MultipleKernelRidge else {"C": 1.0}
    model = kind("all", **given).fit(X, y)
    used = model.weights_ > 1e-12
    assert 0 < used.sum() < len(used)
    assert not model.weights_[~used].any()
    assert model.weights_.sum() == pytest.approx(1.0, rel=1e-14)
    evaluated, merged = [], candidate_list._merged
    monkeypatch.setattr(candidate_list, "_merged", lambda *a: evaluated.append(merged(*a)) or evaluated[-1])
    model.predict(X[:5])
    assert len(evaluated[0]) == used.sum()
