"""TessellatedSVC: scikit-learn's contract, and the equivalences that a kernel machine with a learned kernel obeys."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer
from sklearn.svm import SVC

import convexkernels as ck


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.25, random_state=3)


@pytest.fixture(scope="module")
def fitted(moons):
    return ck.TessellatedSVC(C=3.0, tol=1e-6).fit(*moons)


def overlap(first, second):
    """Whether two certified intervals can hold the same optimum."""
    return first.lower <= second.upper and second.lower <= first.upper


# --- the learned kernel -----------------------------------------------------------------------


def test_learned_kernel_refits_in_scikit_learn_to_the_same_machine(moons, fitted):
    X, y = moons
    peer = SVC(kernel=fitted.kernel_, C=3.0, tol=1e-9).fit(X, y)
    K = fitted.kernel_(X)
    alpha = np.abs(peer.dual_coef_[0])
    w = np.zeros(len(X))
    w[peer.support_] = peer.dual_coef_[0]
    dual = alpha.sum() - 0.5 * w @ K @ w
    upper = fitted.solution_.certificate.upper
    assert dual <= upper * (1 + 1e-9)
    assert upper - dual <= 1.1e-6 * upper
    # The primal objective is strongly convex in f: its gap bounds the distance of the functions.
    rng = np.random.default_rng(0)
    Z = rng.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (200, 2))
    slack = np.sqrt(2 * max(upper - dual, 1e-12) * fitted.kernel_.diag(Z))
    ours = fitted.decision_function(Z) - fitted.solution_.intercept
    theirs = peer.decision_function(Z) - peer.intercept_
    assert (np.abs(ours - theirs) <= slack + 1e-6).all()
    assert fitted.solution_.intercept == pytest.approx(peer.intercept_[0], rel=1e-2)


def test_kernel_on_raw_inputs_and_machine_give_the_decision(moons, fitted):
    X, _ = moons
    problem = fitted.solution_.problem
    w = problem.coefficients(fitted.solution_.alpha[None, :])[0]
    raw = problem.X * (X.max(axis=0) - X.min(axis=0)) + X.min(axis=0)
    f = fitted.kernel_(X, raw) @ w + fitted.solution_.intercept
    assert np.allclose(f, fitted.decision_function(X), atol=1e-8)


def test_machine_keeps_support_vectors_only(moons, fitted):
    X, y = moons
    support = fitted.support_
    assert 0 < len(support) < len(X)
    refitted = ck.TessellatedSVC(C=3.0, tol=1e-6).fit(X, y)
    assert np.array_equal(refitted.support_, support)
    sure = np.delete(np.arange(len(X)), support)
    margins = np.where(y == 1, 1, -1) * fitted.decision_function(X)
    assert (margins[sure] >= 1 - 1e-3).all()


def test_decision_is_that_of_the_solution_computed_with_all_points(moons, fitted):
    X, _ = moons
    solution = fitted.solution_
    problem = solution.problem
    Z = fitted.scaling_.apply(X)
    w = problem.coefficients(solution.alpha[None, :])[0]
    f = problem.gram_set.cross(solution.theta, Z) @ w
    expected = f + solution.function.b
    assert np.allclose(expected, fitted.decision_function(X), atol=1e-10)


# --- equivalences -----------------------------------------------------------------------------


def test_order_of_rows_does_not_matter(moons, fitted):
    X, y = moons
    order = np.random.default_rng(1).permutation(len(X))
    other = ck.TessellatedSVC(C=3.0, tol=1e-6).fit(X[order], y[order])
    assert np.array_equal(other.decision_function(X), fitted.decision_function(X))
    assert np.array_equal(np.sort(order[other.support_]), np.sort(fitted.support_))


def test_names_of_classes_do_not_matter(moons, fitted):
    X, y = moons
    named = ck.TessellatedSVC(C=3.0, tol=1e-6).fit(X, np.array(["no", "yes"])[y])
    assert np.array_equal(named.decision_function(X), fitted.decision_function(X))
    assert named.classes_.tolist() == ["no", "yes"]
    assert named.predict(X).tolist() == np.array(["no", "yes"])[fitted.predict(X)].tolist()


def test_swapping_the_classes_changes_the_sign(moons, fitted):
    X, y = moons
    swapped = ck.TessellatedSVC(C=3.0, tol=1e-6).fit(X, 1 - y)
    assert overlap(swapped.solution_.certificate, fitted.solution_.certificate)
    # Equal values leave functions apart by the square root of the gap.
    assert np.allclose(swapped.decision_function(X), -fitted.decision_function(X), atol=0.05)
    assert np.mean(swapped.predict(X) == 1 - fitted.predict(X)) > 0.98


def test_weights_that_are_not_whole_scale_c(moons, fitted):
    X, y = moons
    other = ck.TessellatedSVC(C=6.0, tol=1e-6).fit(X, y, sample_weight=np.full(len(X), 0.5))
    assert overlap(other.solution_.certificate, fitted.solution_.certificate)
    assert np.allclose(other.decision_function(X), fitted.decision_function(X), atol=0.02)


def test_units_of_the_features_do_not_matter(moons, fitted):
    X, y = moons
    other = ck.TessellatedSVC(C=3.0, tol=1e-6).fit(X * [1024.0, 2.0**-20], y)
    assert np.allclose(
        other.decision_function(X * [1024.0, 2.0**-20]), fitted.decision_function(X), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("n_features", [31, 37, 38, 60, 120, 256])
def test_any_number_of_binary_features_is_learned(n_features):
    # The volume of the box is 1e33 times that of the features for 31 of them, and beyond any number for 256.
    rng = np.random.default_rng(n_features)
    X = (rng.random((80, n_features)) < 0.4).astype(float)
    y = np.where(X[:, :3].sum(axis=1) > 1.0, 1, -1)
    fitted = ck.TessellatedSVC(C=1.0).fit(X, y)
    assert fitted.solution_.certificate.relative_gap <= 1e-4
    assert fitted.score(X, y) > 0.9


def test_points_outside_the_box_are_moved_to_its_nearest_point(moons, fitted):
    X, _ = moons
    low, high = X.min(axis=0), X.max(axis=0)
    pad = 0.5 * (high - low)
    far = np.array([[100.0, 0.3], [-50.0, -1e9], [1e150, -1e150], [0.2, 40.0]])
    near = np.clip(far, low - pad, high + pad)
    assert np.allclose(fitted.decision_function(far), fitted.decision_function(near), atol=1e-9)
    assert np.allclose(fitted.kernel_(far, X), fitted.kernel_(near, X), atol=1e-9)


# --- several classes --------------------------------------------------------------------------


def test_classes_share_one_kernel():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = ck.TessellatedSVC(C=1.0, tol=1e-3).fit(X, names)
    assert model.solution_.certificate.relative_gap <= 1e-3
    values = model.decision_function(X)
    assert values.shape == (150, 3)
    assert model.score(X, names) > 0.95
    assert model.classes_[values.argmax(axis=1)].tolist() == model.predict(X).tolist()
    # One machine against the rest, with the shared kernel, is scikit-learn's machine for that kernel.
    for k, name in enumerate(model.classes_):
        peer = SVC(kernel=model.kernel_, C=1.0, tol=1e-6).fit(X, names == name)
        assert np.mean((values[:, k] > 0) == peer.predict(X)) >= 0.98
    assert isinstance(model.kernel_, ck.Rescaled)


def test_two_of_three_classes_is_the_binary_machine():
    X, y = load_iris(return_X_y=True)
    some = y > 0
    first = ck.TessellatedSVC(tol=1e-3).fit(X, y, sample_weight=some.astype(float))
    second = ck.TessellatedSVC(tol=1e-3).fit(X[some], y[some])
    assert first.classes_.tolist() == [1, 2]
    assert np.array_equal(first.decision_function(X), second.decision_function(X))
    excluded = ck.TessellatedSVC(tol=1e-3, class_weight={0: 0}).fit(X, y)
    assert np.array_equal(excluded.decision_function(X), second.decision_function(X))


# --- company ----------------------------------------------------------------------------------


def test_works_in_pipeline_search_clone_and_calibration(moons):
    X, y = moons
    pipeline = make_pipeline(PowerTransformer(), ck.TessellatedSVC(tol=1e-3))
    search = GridSearchCV(pipeline, {"tessellatedsvc__C": [0.01, 10.0], "tessellatedsvc__margin": [0.1, 0.5]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.85
    again = clone(search.best_estimator_)
    assert not hasattr(again[-1], "solution_")
    calibrated = CalibratedClassifierCV(ck.TessellatedSVC(C=10.0, tol=1e-3), cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)
    assert np.allclose(probability.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.85


def test_pickled_models_are_small_and_predict_the_same():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :5]
    model = ck.TessellatedSVC(tol=1e-2).fit(X, y)
    stored = pickle.dumps(model)
    # A Gram matrix alone would take 8 m^2 = 2.6 MB; the table takes 23 kB.
    assert len(stored) < 150_000
    back = pickle.loads(stored)
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    assert back.solution_.status is model.solution_.status
    assert back.solution_.verify().relative_gap == pytest.approx(model.solution_.certificate.relative_gap, abs=1e-9)


def test_models_persist_with_skops(moons, fitted):
    sio = pytest.importorskip("skops.io")
    stored = sio.dumps(fitted)
    trusted = sio.get_untrusted_types(data=stored)
    # What a reader is asked to trust: classes of this library, and the type of arrays.
    assert {name.split(".")[0] for name in trusted} <= {"convexkernels", "numpy"}
    assert [name for name in trusted if name.startswith("numpy")] in ([], ["numpy.dtype"])
    back = sio.loads(stored, trusted=trusted)
    X, _ = moons
    assert np.array_equal(back.decision_function(X), fitted.decision_function(X))
    assert np.array_equal(back.kernel_(X), fitted.kernel_(X))
    assert back.solution_.status is ck.Status.OPTIMAL


def test_verbose_shows_the_progress_table(moons, capsys):
    ck.TessellatedSVC(verbose=True, tol=1e-2).fit(*moons)
    shown = capsys.readouterr().err
    assert "rel. gap" in shown
    assert "optimal" in shown


def test_solver_can_be_named(moons, fitted):
    model = ck.TessellatedSVC(C=3.0, tol=1e-3, solver="frank-wolfe").fit(*moons)
    assert model.solution_.solver == "frank-wolfe"
    assert overlap(model.solution_.certificate, fitted.solution_.certificate)
