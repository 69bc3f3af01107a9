"""The concatenated estimators: what they learn, cross-validation, and refusals."""

import pickle
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_circles, make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from convexkernels import (
    ConcatenatedKernelClassifier,
    ConcatenatedKernelInterpolator,
    ConcatenatedKernelRegressor,
    Concatenations,
    ConvexKernelsWarning,
    FixedKernel,
    Gaussian,
    InvalidInputError,
    LeastSquares,
    Matern,
    MemoryLimitError,
    MissingAttributeError,
    OuterLearning,
    Polynomial,
    Restarts,
    Status,
    TensorMatern,
    TrainingValue,
)
from convexkernels.checkpoint import Checkpoint
from convexkernels.clock import Clock
from convexkernels.estimators.concatenated.settings import LAMS, candidates, suited_weights, with_weights
from convexkernels.losses import EpsilonInsensitive
from convexkernels.solvers.nonconvex import bfgs, paths
from convexkernels.solvers.nonconvex.restarts import objective


def kinked(m=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, 1.0 / (0.1 + np.abs(X[:, 0] - X[:, 1]))


def test_interpolator_meets_the_values_and_beats_the_single_layer():
    X, y = kinked()
    T, t = kinked(1000, seed=1)
    model = ConcatenatedKernelInterpolator(n_restarts=6, normalize_y=False, random_state=0).fit(X, y)
    assert model.solution_.status is Status.STATIONARY
    assert np.allclose(model.predict(X), y, atol=1e-4)
    K = Matern(2)
    single = K(T, X) @ np.linalg.solve(K(X), y)
    assert np.mean((model.predict(T) - t) ** 2) < np.mean((single - t) ** 2)


@pytest.mark.parametrize("layers", [[Matern(2), Polynomial(1)], [Gaussian(1.0), Matern(2), Polynomial(1)]])
def test_transform_gives_the_inner_images_of_the_deep_kernel(layers):
    X, y = kinked(40)
    model = ConcatenatedKernelRegressor(
        Concatenations(layers, widths=(2, 3)[: len(layers) - 1]), lam=0.01, mu=0.01, n_restarts=1, random_state=0
    )
    images = model.fit(X, y).transform(X)
    assert images.shape == (40, 2)
    assert np.allclose(model.kernel_(X), layers[0](images))
    function = model.solution_.function
    assert function.support.size == 40
    coefficients = function.W[0]
    X = model.solution_.problem.X
    y = model.solution_.problem.Y[0]
    ridge = np.linalg.solve(model.kernel_(X) + 0.01 * np.eye(40), y)
    assert np.allclose(coefficients, ridge, rtol=1e-5, atol=1e-6 * np.abs(ridge).max())


def test_cross_validation_chooses_from_the_grid_and_reports_every_risk():
    X, y = kinked(60)
    lams, mus = [1e-3, 1e-1, 100.0], [1e-4, 1e-2]
    model = ConcatenatedKernelRegressor(lam=lams, mu=mus, cv=3, n_restarts=2, random_state=0).fit(X, y)
    assert model.selection_.risks.shape == (3, 2)
    best = np.unravel_index(model.selection_.risks.argmin(), (3, 2))
    assert (model.lam_, model.mu_) == (sorted(lams)[best[0]], sorted(mus)[best[1]])
    assert model.lam_ < 100.0
    assert model.selection_.risks.min() < 0.5 * model.selection_.risks.max()


def deep_problem(layers):
    X, y = kinked(30)
    return OuterLearning(Concatenations(layers), LeastSquares(intercept=False), TrainingValue(), X, y - y.mean())


@pytest.mark.parametrize("layers", [[Matern(2), Polynomial(1)], [Matern(2), Polynomial(2)]])
def test_suited_mu_holds_the_scale_of_all_layers(layers):
    problem = deep_problem(layers)
    lam, mu = suited_weights(problem, lam=1e-3)
    assert lam == 1e-3
    z, values = problem.split(problem.start(0))[0], []
    for weight in (mu, 2.0 * mu):
        here = with_weights(problem, lam, weight)
        chart = here.gram_set.chart(z)
        low, high = (here.evaluate(chart, chart.u * (1.0 + step)).value for step in (-1e-4, 1e-4))
        values.append(abs(high - low) / (high + low))
    assert values[0] < 1e-3 * values[1]


def test_suited_mu_is_small_where_larger_images_gain_nothing():
    problem = deep_problem([Matern(2), Gaussian(0.5), Polynomial(1)])
    lam, mu = suited_weights(problem, lam=0.1)
    there = problem.gram_set.at(problem.split(problem.start(0))[0])
    weighed = with_weights(problem, lam, mu)
    fit = weighed.bind()(there.gram(), np.log(lam)).value
    assert mu * there.penalty == pytest.approx(0.01 * fit, rel=1e-3)


def test_suited_lam_has_the_least_error_of_functions_that_have_not_seen_the_row():
    problem = deep_problem([Matern(2), Polynomial(1)])
    K, y = Matern(2)(problem.kernel(problem.start(0)).images(problem.X)), problem.Y[0]

    def risk(lam):
        ridge = KernelRidge(alpha=lam, kernel="precomputed")
        return np.mean((cross_val_predict(ridge, K, y, cv=LeaveOneOut()) - y) ** 2)

    assert suited_weights(problem)[0] == min(LAMS, key=risk)


@pytest.mark.parametrize("unit", [2.0**-40, 1e-9, 1e9])
def test_weights_of_norms_are_in_the_unit_of_the_weights_of_rows(unit):
    X, y = rough(60)
    plain, model = (
        ConcatenatedKernelRegressor(n_restarts=1, random_state=0).fit(X, y, sample_weight=np.full(60, weight))
        for weight in (1.0, unit)
    )
    assert model.score(X, y) > plain.score(X, y) - 0.02
    if unit == 2.0**-40:
        assert model.lam_ == unit * plain.lam_
        assert model.mu_ == pytest.approx(unit * plain.mu_, rel=1e-6)


def test_lists_of_weights_lie_around_what_suits_the_data():
    problem = deep_problem([Matern(2), Polynomial(1)])
    lam, mu = suited_weights(problem)
    assert np.allclose(candidates(problem, None, None, Clock())[0], [lam / 8, lam, 8 * lam])
    assert np.allclose(candidates(problem, None, None, Clock())[1], [mu / 16, mu, 16 * mu])
    assert candidates(problem, 0.5, [1.0, 2.0], Clock()) == ([0.5], [1.0, 2.0])
    mu = suited_weights(problem, 0.5)[1]
    assert np.allclose(candidates(problem, 0.5, None, Clock())[1], [mu / 16, mu, 16 * mu])


def test_features_in_any_unit_are_learned_from():
    X, labels = load_breast_cancer(return_X_y=True)
    model = ConcatenatedKernelClassifier(random_state=0).fit(X[:150], labels[:150])
    assert model.score(X[150:], labels[150:]) > 0.92
    X, y = kinked(80)
    T, t = kinked(300, seed=1)
    scores = []
    for units in ([1.0, 1.0], [1e4, 1e-3]):
        model = ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3, n_restarts=1, random_state=0).fit(X * units, y)
        scores.append(model.score(T * units, t))
        assert np.allclose(model.kernel_((X * units)[:5]), model.solution_.kernel(model.scaling_.apply(X * units)[:5]))
    assert min(scores) > 0.9
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


def test_features_that_say_nothing_get_small_factors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 6))
    factors = ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3, n_restarts=1, tol=0.1, random_state=0)
    factors = factors.fit(X, np.sin(4 * X[:, 0])).scaling_.factors
    assert factors[0] > 5 * factors[1:].max()


def test_given_layers_see_features_as_they_are():
    X, y = kinked(30)
    model = ConcatenatedKernelRegressor([Matern(2), Polynomial(1)], lam=0.1, mu=0.1, n_restarts=1, random_state=0)
    assert model.fit(100.0 * X, y).scaling_.factors is None
    assert np.array_equal(model.scaling_.scale, [1.0, 1.0])


def test_large_tables_are_searched_on_a_sample():
    X, y = kinked(300)
    model = ConcatenatedKernelRegressor(lam=1e-3, mu=[1e-3, 1e-2], n_restarts=Restarts(3, 60), random_state=0)
    model.fit(X, y)
    assert model.solution_.theta.shape == (600,)
    assert model.solution_.restarts.shape == (3,)
    T, t = kinked(500, seed=1)
    assert r2_score(t, model.predict(T)) > 0.98


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
def test_classifier_learns_a_map_that_separates(loss):
    X, y = make_circles(80, noise=0.05, factor=0.5, random_state=0)
    labels = np.array(["inner", "outer"])[1 - y]
    model = ConcatenatedKernelClassifier(
        [Gaussian(1.0), Polynomial(2)], loss=loss, lam=0.1, mu=0.01, n_restarts=3, random_state=0
    ).fit(X, labels)
    assert model.score(X, labels) == 1.0
    if loss == "hinge":
        peer = SVC(C=5.0, kernel=model.kernel_, tol=1e-8).fit(X, labels)
        assert np.allclose(model.decision_function(X), peer.decision_function(X), atol=0.01)


def test_classes_share_one_deep_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.digitize(np.hypot(*X.T), [0.8, 1.5])
    model = ConcatenatedKernelClassifier(
        [Gaussian(1.0), Polynomial(2)], lam=[0.5, 0.02], mu=0.01, cv=3, n_restarts=2, random_state=0
    ).fit(X, y)
    assert model.decision_function(X).shape == (90, 3)
    assert model.score(X, y) > 0.95


def test_epsilon_insensitive_regression_ignores_outliers():
    X, y = kinked(60)
    y = np.abs(X[:, 0] - X[:, 1])
    noisy = y.copy()
    noisy[::10] += 20.0
    options = {"lam": 0.05, "mu": 1e-2, "n_restarts": 2, "random_state": 0, "normalize_y": False}
    errors = []
    for loss in (EpsilonInsensitive(epsilon=0.01), "least_squares"):
        model = ConcatenatedKernelRegressor(loss=loss, **options).fit(X, noisy)
        errors.append(np.median(np.abs(model.predict(X) - y)))
    assert errors[0] < 0.5 * errors[1]


def rough(m=60, outputs=1):
    X = kinked(m)[0]
    noise = np.random.default_rng(7).normal(size=(outputs, m)) * np.array([[0.2], [2.0]][:outputs])
    return X, (np.sin(3 * X[:, 0]) + noise).T.squeeze()


@pytest.mark.parametrize("outputs", [1, 2])
def test_epsilon_is_a_quarter_of_the_least_error_of_the_plainest_start_at_rows_left_out(outputs):
    X, y = rough(outputs=outputs)
    model = ConcatenatedKernelRegressor(
        loss="epsilon_insensitive", lam=0.5, mu=0.1, n_restarts=1, tol=0.1, random_state=0
    )
    problem = model.fit(X, y).solution_.problem
    K = Matern(2)(problem.kernel(problem.start(0)).images(problem.X))
    errors = []
    for lam in LAMS:
        ridge = KernelRidge(alpha=lam, kernel="precomputed")
        errors.append(np.mean((cross_val_predict(ridge, K, problem.Y.T, cv=LeaveOneOut()) - problem.Y.T) ** 2, axis=0))
    assert problem.loss.epsilon == pytest.approx(0.25 * np.sqrt(np.min(errors)), rel=1e-6)
    np.testing.assert_allclose(model.epsilon_, problem.loss.epsilon * model.targets_.spread)
    assert problem.loss.at(0.5).C == problem.loss.C  # C = 1 / (2 lam)


def test_epsilon_has_the_units_of_the_targets():
    X, y = rough()
    options = {"loss": "epsilon_insensitive", "lam": 0.5, "mu": 0.1, "n_restarts": 1, "tol": 0.1, "random_state": 0}
    model = ConcatenatedKernelRegressor(**options).fit(X, y)
    again = ConcatenatedKernelRegressor(**options).fit(X, 1000.0 * y - 7.0)
    assert again.epsilon_ == pytest.approx(1000.0 * model.epsilon_, rel=1e-9)
    plain = ConcatenatedKernelRegressor(normalize_y=False, **options).fit(X, y - y.mean())
    assert plain.epsilon_ == pytest.approx(model.epsilon_, rel=1e-6)


def test_a_given_loss_keeps_its_epsilon_and_others_have_none():
    X, y = rough()
    options = {"lam": 0.5, "mu": 0.1, "n_restarts": 1, "tol": 0.1, "random_state": 0}
    given = ConcatenatedKernelRegressor(loss=EpsilonInsensitive(epsilon=0.03), **options).fit(X, y)
    assert given.epsilon_ == pytest.approx(0.03 * y.std())
    model = ConcatenatedKernelRegressor(**options).fit(X, y)
    assert not hasattr(model, "epsilon_")
    with pytest.raises(AttributeError, match="has no epsilon_: its loss is LeastSquares"):
        model.epsilon_  # noqa: B018
    Z = np.random.default_rng(12).normal(size=(80, 3))  # where slopes are below the squares of floats
    assert not ConcatenatedKernelRegressor(random_state=0).fit(Z, np.zeros(80)).predict(Z).any()
    constant = ConcatenatedKernelRegressor(loss="epsilon_insensitive", **options).fit(X, np.ones(len(X)))
    assert np.array_equal(constant.predict(X), np.ones(len(X)))


def test_scaling_targets_changes_nothing_when_they_are_normalized():
    X, y = kinked(40)
    one, two = (
        ConcatenatedKernelRegressor(lam=0.01, mu=0.01, n_restarts=2, random_state=0).fit(X, values).predict(X)
        for values in (y, 1000.0 * y - 5e4)
    )
    assert np.allclose(1000.0 * one - 5e4, two, atol=1e-2)


def test_several_outputs_and_a_pipeline_and_pickle():
    X, y = kinked(50)
    Y = np.column_stack([y, X.sum(axis=1)])
    model = make_pipeline(
        StandardScaler(), ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3, n_restarts=2, random_state=0)
    )
    predictions = model.fit(X, Y).predict(X)
    assert predictions.shape == (50, 2)
    assert r2_score(Y, predictions) > 0.95
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), predictions)
    assert list(model[-1].get_feature_names_out()) == [f"concatenatedkernelregressor{k}" for k in range(2)]


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ConcatenatedKernelRegressor(lam=0.0, mu=1.0), "lam must be a finite number > 0"),
        (ConcatenatedKernelRegressor(lam=1.0, mu=-1.0), "mu must be a finite number > 0"),
        (ConcatenatedKernelRegressor(lam=[1.0, 0.0], mu=1.0), "lam must be a finite number > 0"),
        (ConcatenatedKernelRegressor(lam=[], mu=1.0), "lam must be None, a number > 0 or a list"),
        (ConcatenatedKernelRegressor(cv=1), "cv must be a whole number >= 2"),
        (ConcatenatedKernelRegressor(cv=50), "cv is 50, but there are only 20 points"),
        (ConcatenatedKernelRegressor([Matern(2)], lam=1.0, mu=1.0), "at least two kernels"),
        (
            ConcatenatedKernelRegressor(Concatenations([Matern(2), Matern(2)], widths=0)),
            "widths must be a whole number",
        ),
        (ConcatenatedKernelRegressor(loss="huber"), "loss must be 'least_squares' or 'epsilon_insensitive'"),
        (ConcatenatedKernelRegressor(n_restarts=0, lam=1.0, mu=1.0), "n_restarts must be a whole number >= 1"),
        (ConcatenatedKernelInterpolator(mu=0.0), "mu must be a finite number > 0"),
        (ConcatenatedKernelInterpolator(nugget=-1.0), "nugget must be a finite number >= 0"),
        (ConcatenatedKernelClassifier(loss="log"), "loss must be 'hinge' or 'least_squares'"),
        (ConcatenatedKernelClassifier(lam=0.0, mu=1.0), "lam must be a finite number > 0"),
    ],
)
def test_refuses_parameters_by_name_and_value(estimator, message):
    X, y = kinked(20)
    with pytest.raises(InvalidInputError, match=message):
        estimator.fit(X, y > 2 if isinstance(estimator, ConcatenatedKernelClassifier) else y)


def test_kinked_outer_kernel_needs_no_argument():
    X, y = kinked(20)
    for kernel in (TensorMatern(1), 2.0 * Matern(order=1)):
        model = ConcatenatedKernelInterpolator([kernel, Polynomial(1)], n_restarts=1, random_state=0).fit(X, y)
        assert model.solution_.status.is_success
        assert model.predict(X) == pytest.approx(y, abs=1e-6 * np.abs(y).max())
        assert "smoothing" not in repr(kernel), "what was passed is as it was"


def test_interpolator_names_conflicting_rows():
    X, y = kinked(20)
    X[5] = X[2]
    with pytest.raises(InvalidInputError, match="rows 2 and 5 of X are the same point"):
        ConcatenatedKernelInterpolator().fit(X, y)


class Ticks:
    """A clock on which every look takes a second."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def chosen_in(monkeypatch):
    """The choice among nine pairs on three folds within so many looks at the clock."""
    X, y = kinked(40)
    problem = OuterLearning(Concatenations([Matern(2), Polynomial(1)]), LeastSquares(1e-3), TrainingValue(), X, y)

    def choose(looks, checkpoint=None):
        ticks = Ticks()
        for part in (paths, bfgs):
            monkeypatch.setattr(part, "time", ticks)
        monkeypatch.setattr(Clock, "deadline", looks)
        clock, grids = Clock(checkpoint=checkpoint), ([1e-6, 1e-4, 1e-2], [1e-4, 1e-2, 1.0])
        found = paths.select_weights(problem, with_weights, *grids, n_splits=3, n_restarts=2, clock=clock)
        return found.risks, ticks.now

    return choose


def test_pairs_of_weights_share_a_short_limit(chosen_in):
    risks, looks = chosen_in(200.0)  # without a limit there are 600 and more
    assert np.isfinite(risks).sum() >= 8  # of 9; the first pair would have taken all of it
    assert looks < 300.0
    risks, looks = chosen_in(0.0)
    assert np.isfinite(risks).sum() == 1  # something has to be chosen
    assert looks < 100.0


def test_folds_that_a_limit_has_cut_are_walked_again(chosen_in, tmp_path):
    plain, looks = chosen_in(np.inf)
    checkpoint = Checkpoint(tmp_path / "fit.npz")
    cut, _ = chosen_in(0.7 * looks, checkpoint)
    assert np.isfinite(cut).all()
    assert not np.array_equal(cut, plain)
    assert np.array_equal(chosen_in(np.inf, checkpoint)[0], plain)


def test_folds_whose_starts_a_limit_has_cut_are_walked_again(chosen_in, monkeypatch, tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit.npz")
    with monkeypatch.context() as patched:
        searched = paths.rounds
        patched.setattr(
            paths,
            "rounds",
            lambda *asked: [(replace(f, status=Status.TIME_LIMIT), last) for f, last in searched(*asked)],
        )
        chosen_in(np.inf, checkpoint)
    assert not checkpoint.numbers
    chosen_in(np.inf, checkpoint)
    assert checkpoint.numbers


def test_images_of_many_columns_have_fewer_coordinates():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 70))
    model = ConcatenatedKernelRegressor(lam=1e-3, mu=1e-2, n_restarts=1, random_state=0).fit(X, X[:, 0])
    assert model.transform(X).shape == (60, 50)
    assert model.fit(X[:, :8], X[:, 0]).transform(X[:, :8]).shape == (60, 8)


def test_the_choice_of_weights_lies_inside_the_time_limit():
    X, y = kinked(60)
    model = ConcatenatedKernelRegressor(n_restarts=2, max_time=0.2, random_state=0)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)
        model.fit(X, y)
    assert time.process_time() - began < 2.0
    assert model.lam_ in model.selection_.lams
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(("calls", "compared"), [(4, 2), (11, 1)])  # within the first fold, and within the second
def test_an_interrupt_of_the_choice_keeps_the_best_so_far_with_one_warning(monkeypatch, calls, compared):
    X, y = kinked(60)
    seen = []

    def interrupting(*arguments):
        seen.append(arguments)
        if len(seen) > calls:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return objective(*arguments)

    monkeypatch.setattr(paths, "objective", interrupting)
    model = ConcatenatedKernelRegressor(lam=[1e-3, 1e-1], mu=[1e-3, 1e-2], cv=3, n_restarts=2, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert model.solution_.status is Status.INTERRUPTED
    assert np.isfinite(model.selection_.risks).sum() == compared
    assert model.selection_.risks[model.selection_.lams == model.lam_, model.selection_.mus == model.mu_].min() < np.inf
    assert model.score(X, y) > 0.9


def test_folds_that_were_walked_are_known_from_the_checkpoint(monkeypatch, tmp_path):
    X, y = kinked(60)
    given = {"lam": [1e-3, 1e-1], "mu": [1e-3, 1e-2], "cv": 3, "n_restarts": 2, "random_state": 0}
    plain = ConcatenatedKernelRegressor(**given).fit(X, y)
    walk, walked = paths._walk, []

    def second(*arguments):
        walked.append(arguments)
        if len(walked) == 2:
            raise KeyboardInterrupt
        return walk(*arguments)

    model = ConcatenatedKernelRegressor(**given, checkpoint=tmp_path / "fit.npz")
    with monkeypatch.context() as patched:
        patched.setattr(paths, "_walk", second)
        with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED"):
            model.fit(X, y)
    walked.clear()
    monkeypatch.setattr(paths, "_walk", lambda *arguments: walked.append(arguments) or walk(*arguments))
    again = clone(model).fit(X, y)
    assert len(walked) == 2
    np.testing.assert_array_equal(again.selection_.risks, plain.selection_.risks)
    assert again.solution_.value <= plain.solution_.value * (1.0 + 1e-6)


def test_intervals_come_from_rows_that_the_inner_map_has_not_seen():
    X, y = make_friedman1(360, n_features=8, noise=1.0, random_state=0)
    model = ConcatenatedKernelRegressor(lam=[1e-4, 1e-3], mu=1e-4, n_restarts=1, random_state=0).fit(X[:60], y[:60])
    left = model._left_out()
    assert sorted(left.rows) == list(range(60))
    problem = model.solution_.problem
    np.testing.assert_array_equal(left.Y, problem.Y[:, left.rows])
    low, high = model.predict_interval(X[60:], 0.8).T
    of_inner_map = np.quantile(np.abs(problem.Y - model._left_out(whole=True).F), 0.8) * model.targets_.spread
    assert np.mean((low <= y[60:]) & (y[60:] <= high)) > 0.7
    assert (high - low).mean() > 2.0 * of_inner_map
    given = ConcatenatedKernelRegressor(lam=model.lam_, mu=1e-4, n_restarts=1, random_state=0).fit(X[:60], y[:60])
    assert (np.diff(given.predict_interval(X[:1], 0.8)) < high[0] - low[0]).all()


def test_an_interrupt_before_anything_is_known_is_raised(monkeypatch):
    def interrupting(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(paths, "objective", interrupting)
    with pytest.raises(KeyboardInterrupt):
        ConcatenatedKernelRegressor(lam=[1e-3, 1e-1], mu=1e-3, cv=3, n_restarts=1).fit(*kinked(40))


# ---- outermost functions of more rows than inner maps have seen


@pytest.fixture
def few_teach_maps(monkeypatch):
    for name in ("MAP_ROWS", "FEWEST_MAP_ROWS"):
        monkeypatch.setattr(f"convexkernels.estimators.concatenated.base.{name}", 60)


def some_rows(estimator=ConcatenatedKernelRegressor, **options):
    X, y = make_friedman1(200, random_state=0)
    y = y > 14.0 if estimator is ConcatenatedKernelClassifier else y
    return estimator(n_restarts=1, random_state=0, **options).fit(X, y), X, y


def test_functions_of_all_rows_are_ridge_regression_on_images(few_teach_maps):
    model, X, y = some_rows()
    T, t = make_friedman1(400, random_state=1)
    assert model.solution_.problem.m == 60
    assert model.solution_.status is Status.STATIONARY
    assert model.all_rows_.status is Status.OPTIMAL
    assert model.all_rows_.verify().holds(1e-3)
    assert "of the outermost functions" in model.describe()
    Z, V = model.transform(X), model.transform(T)
    kernel = model.solution_.kernel.outer
    ridge = KernelRidge(alpha=model.lam_, kernel="precomputed").fit(kernel(Z), (y - y.mean()) / y.std())
    expected = y.mean() + y.std() * ridge.predict(kernel(V, Z))
    np.testing.assert_allclose(model.predict(T), expected, atol=0.02 * y.std())
    of_some = y.mean() + y.std() * model.solution_.decision_function(model._points(T))
    assert model.score(T, t) > r2_score(t, of_some)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(T), model.predict(T))
    np.testing.assert_array_equal(model.support_, np.arange(len(X)))


def test_functions_of_all_rows_leave_rows_out_exactly(few_teach_maps):
    model, X, y = some_rows(lam=0.1, mu=0.1)
    assert model.lam_ == 0.1
    K, target = model.solution_.kernel.outer(model.transform(X)), (y - y.mean()) / y.std()
    left = cross_val_predict(KernelRidge(alpha=0.1, kernel="precomputed"), K, target, cv=LeaveOneOut())
    np.testing.assert_allclose(model.loo_predictions_, y.mean() + y.std() * left, atol=1e-6)
    assert model.loo_score_ == pytest.approx(r2_score(y, model.loo_predictions_))


@pytest.mark.parametrize("loss", ["least_squares", "hinge"])
def test_classes_of_all_rows(few_teach_maps, loss):
    model, X, y = some_rows(ConcatenatedKernelClassifier, loss=loss)
    assert model.all_rows_.certificate.holds(1e-3)
    assert model.score(X, y) > 0.75
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.feature_relevance_[:5].sum() > 0.6
    assert len(model.support_) == 200 if loss == "least_squares" else 0 < len(model.support_) < 200


def test_where_no_time_is_left_for_all_rows_those_of_the_maps_answer(monkeypatch, few_teach_maps):
    solve = FixedKernel.solve
    monkeypatch.setattr(FixedKernel, "solve", lambda self, **options: solve(self, **{**options, "max_time": 1e-9}))
    X, y = make_friedman1(1500, random_state=0)
    model = ConcatenatedKernelRegressor(n_restarts=1, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT: the functions are trained on 60 of 1500 rows"):
        model.fit(X, y)
    assert model.all_rows_ is None
    assert model.solution_.status is Status.TIME_LIMIT
    assert len(model.support_) == len(model.support_coefficients_) == 60
    inside, seen = model.solution_.problem.X, model._points(X[model.support_])
    np.testing.assert_allclose(np.sort(inside, axis=0), np.sort(seen, axis=0))
    with pytest.raises(MissingAttributeError, match="a part of the rows only"):
        _ = model.loo_predictions_
    assert model.predict_interval(X[:3]).shape == (3, 2)


@pytest.mark.parametrize(("limit", "fewest", "most"), [("auto", 2000, 2000), (60.0, 2000, 2000), (1.5, 500, 1200)])
def test_maps_see_fewer_rows_where_time_is_short(monkeypatch, limit, fewest, most):
    seen = []
    monkeypatch.setattr(ConcatenatedKernelRegressor, "_solve", lambda self, problem, clock: seen.append(problem.m))
    X, y = make_friedman1(2100, random_state=0)
    with pytest.raises(AttributeError):
        ConcatenatedKernelRegressor(max_time=limit).fit(X, y)
    assert fewest <= seen[0] <= most


def test_maps_of_all_rows_are_refused_where_their_matrices_do_not_fit(monkeypatch):
    monkeypatch.setattr("convexkernels.validation.available_memory", lambda: 1e6)
    X, y = make_friedman1(300, random_state=0)
    with pytest.raises(MemoryLimitError, match=r"inner maps on 300 rows .* Pass fewer rows"):
        ConcatenatedKernelRegressor().fit(X, y)
    with pytest.raises(MemoryLimitError, match=r"inner maps on 300 rows .* Pass fewer rows"):
        ConcatenatedKernelInterpolator().fit(X, y)


@pytest.mark.parametrize(("lam", "mu"), [(0.1, None), ([0.1], 0.1), (0.1, [0.1, 0.2])])
def test_a_lam_that_was_given_is_that_of_functions_of_all_rows(few_teach_maps, lam, mu):
    assert some_rows(lam=lam, mu=mu)[0].lam_ == 0.1


def test_an_interrupt_while_all_rows_are_learned_keeps_the_functions_of_some(monkeypatch, few_teach_maps):
    def interrupted(self, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(FixedKernel, "solve", interrupted)
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED: the functions are trained on 60 of 200 rows"):
        model, X, y = some_rows()
    assert model.solution_.status is Status.INTERRUPTED
    assert model.score(X, y) > 0.5
