"""The spectral estimators: what they learn, passes over new rows, limits, refusals."""

import dataclasses
import pickle
import time
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from convexkernels import (
    ConvexKernelsWarning,
    DualityGap,
    InvalidInputError,
    Spectral,
    SpectralKernelClassifier,
    SpectralKernelRegressor,
    SpectralSetting,
    Stationarity,
    Status,
    Training,
)
from convexkernels.backend import Backend, MissingTorchError, backend_for, to_numpy
from convexkernels.clock import Clock
from convexkernels.estimators.spectral import base as spectral_base
from convexkernels.kernels import frequencies
from convexkernels.spectral import preparation
from convexkernels.spectral.inner import Moments
from convexkernels.spectral.learning import SpectralLearning
from convexkernels.spectral.losses import score_loss
from convexkernels.spectral.options import SETTINGS
from convexkernels.spectral.selection import matched_trace_weight
from convexkernels.spectral.training import TrainingRun

SMALL = {"n_components": 60, "sigma": 0.5, "training": Training(max_epochs=12), "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16.0, y, test_size=0.4, random_state=0)


@pytest.fixture(scope="module")
def fitted(digits):
    X, _, y, _ = digits
    return SpectralKernelClassifier(n_components=300, random_state=0).fit(X, y)


def wave(m=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, np.sin(5 * X[:, 0]) * X[:, 1] + 0.02 * rng.standard_normal(m)


# ---- what is learned


def test_defaults_come_close_to_a_tuned_machine(digits, fitted):
    X, T, y, t = digits
    assert fitted.score(T, t) > SVC(C=10.0).fit(X, y).score(T, t) - 0.01
    assert fitted.sigma_ > 0.0
    assert fitted.predict_proba(T).sum(axis=1) == pytest.approx(1.0)
    np.testing.assert_array_equal(fitted.predict_proba(T).argmax(axis=1), fitted.predict(T))


def test_scores_are_the_features_of_the_kernel_times_the_weights(digits, fitted):
    T = digits[1][:50]
    kernel, point = fitted.kernel_, fitted.solution_.theta
    assert isinstance(kernel, Spectral)
    expected = kernel.transform(T) @ point.W + point.intercept
    np.testing.assert_allclose(fitted.decision_function(T), expected, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(T), kernel.transform(T), atol=1e-12)
    np.testing.assert_allclose(fitted.solution_.decision_function(T), fitted.decision_function(T), atol=2e-3)  # float32
    assert fitted.initial_kernel_.omega.shape == kernel.omega.shape
    assert np.abs(fitted.initial_kernel_.omega - kernel.omega).max() > 0.01
    verified = fitted.solution_.verify()
    assert verified.value == pytest.approx(fitted.solution_.value)


def test_learned_features_serve_other_methods(digits, fitted):
    X, T, y, t = digits
    machine = RidgeClassifier(alpha=1e-3).fit(fitted.transform(X), y)
    assert machine.score(fitted.transform(T), t) > 0.96
    assert SVC(kernel=fitted.kernel_, C=100.0).fit(X[:300], y[:300]).score(T, t) > 0.9


@pytest.mark.parametrize("loss", ["logistic", "hinge", "least_squares"])
@pytest.mark.parametrize("setting", ["SK", "NSK", "SKL", "NSKL", "ASKL"])
def test_every_setting_and_loss_learns_two_classes(setting, loss):
    X, y = make_moons(300, noise=0.1, random_state=0)
    T, t = make_moons(300, noise=0.1, random_state=1)
    labels = np.array(["left", "right"])
    model = SpectralKernelClassifier(
        setting, loss=loss, n_components=100, training=Training(max_epochs=10), random_state=0
    )
    model.fit(X, labels[y])
    assert model.score(T, labels[t]) > 0.96
    assert model.decision_function(T).shape == (300,)
    assert model.kernel_.is_stationary == (setting in ("SK", "SKL"))
    moved = np.abs(model.kernel_.omega - model.initial_kernel_.omega).max() > 0.0
    assert moved == setting.endswith("L")


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_learns_with_a_layer_below(setting, tmp_path):
    X, y = make_moons(300, noise=0.1, random_state=0)
    stacked = dataclasses.replace(SETTINGS[setting], inner=(20,))
    options = {"n_components": 60, "training": Training(max_epochs=5), "random_state": 0}
    model = SpectralKernelClassifier(stacked, checkpoint=tmp_path / "kept", **options).fit(X, y)
    assert model.score(*make_moons(300, noise=0.1, random_state=1)) > 0.96
    kernel, initial = model.kernel_, model.initial_kernel_
    assert kernel.inner.inner is None
    assert isinstance(model.solution_.certificate, DualityGap if not stacked.learned else Stationarity)
    for after, before in ((kernel, initial), (kernel.inner, initial.inner)):
        assert after.is_stationary == stacked.stationary
        assert (np.abs(after.omega - before.omega).max() > 0.01) == stacked.learned
    np.testing.assert_allclose(model.transform(X), kernel.transform(model.scaling_.apply(X)), atol=1e-5)
    again = SpectralKernelClassifier(stacked, checkpoint=tmp_path / "kept", **options).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    assert model.partial_fit(X, y).score(X, y) > 0.96


@pytest.mark.parametrize("inner", [[5], (0,), (2.5,)])
def test_layers_that_do_not_exist_are_refused(inner):
    with pytest.raises(InvalidInputError, match="inner"):
        SpectralSetting(inner=inner)


def test_fixed_stationary_features_are_those_of_the_gaussian_kernel():
    X, y = wave(200)
    model = SpectralKernelRegressor("SK", n_components=2000, sigma=2.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.kernel_(X), rbf_kernel(X, gamma=2.0), atol=0.15)
    assert model.score(*wave(seed=1)) > 0.98


@pytest.mark.parametrize("setting", ["SK", "NSK", "SKL", "ASKL"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_claimed_is_what_verification_finds(setting, dtype):
    """With fixed frequencies the answer is ridge regression, and proven; with learned ones nothing of that kind is."""
    X, y = wave(200)
    solution = (
        SpectralKernelRegressor(setting, n_components=60, training=Training(max_epochs=3, dtype=dtype), random_state=0)
        .fit(X, y)
        .solution_
    )
    assert solution.verify() == solution.certificate
    assert isinstance(solution.certificate, DualityGap if setting.endswith("K") else Stationarity)
    assert (solution.status is Status.OPTIMAL) == setting.endswith("K")


def test_what_is_not_trained_exactly_is_bounded():
    X, y = make_moons(200, noise=0.1, random_state=0)
    for loss in ("hinge", "logistic"):
        solution = (
            SpectralKernelClassifier("SK", loss=loss, n_components=60, training=Training(max_epochs=5), random_state=0)
            .fit(X, y)
            .solution_
        )
        assert isinstance(solution.certificate, DualityGap)
        assert 0.0 <= solution.certificate.lower < solution.certificate.upper
        assert solution.status is Status.COMPLETED


@pytest.mark.parametrize("loss", ["logistic", "hinge", "least_squares"])
def test_the_loss_that_is_named_is_what_is_minimized(digits, loss):
    """The stored objective is the formula of the loss, of the margin loss of the paper for one, at the scores."""
    X, _, y, _ = digits
    options = {} if loss == "logistic" else {"loss": loss}  # logistic is the default
    model = SpectralKernelClassifier(n_components=50, lam1=1e-4, lam2=0.0, training=Training(max_epochs=2), **options)
    model.set_params(random_state=0).fit(X, y)
    F, hit = model.decision_function(X), np.eye(10)[y]
    own = (F * hit).sum(axis=1)
    losses = {
        "logistic": np.log(np.exp(F).sum(axis=1)) - own,
        "hinge": np.maximum(0.0, 1.0 - own + (F - 1e9 * hit).max(axis=1)),
        "least_squares": ((F - hit) ** 2).sum(axis=1),
    }
    expected = losses[loss].mean() + 1e-4 * np.linalg.norm(model.solution_.theta.W, "nuc")
    assert model.solution_.value == pytest.approx(expected, rel=1e-5)


def test_learning_frequencies_helps_where_most_features_say_nothing():
    rng = np.random.default_rng(0)
    X, T = rng.uniform(-1, 1, (2, 800, 8))
    y, t = np.sin(3 * X[:, 0]), np.sin(3 * T[:, 0])
    scores = {}
    for setting in ("SK", "SKL", "ASKL"):
        scores[setting] = SpectralKernelRegressor(setting, n_components=200, random_state=0).fit(X, y).score(T, t)
    assert scores["SKL"] > scores["SK"] + 0.05
    assert scores["ASKL"] > scores["SK"] + 0.05


def test_several_outputs_share_the_kernel():
    X, y = wave()
    Y = np.column_stack([y, X[:, 0] ** 2, 100.0 * X[:, 1] + 7.0])
    T, t = wave(seed=1)
    model = SpectralKernelRegressor(n_components=200, random_state=0).fit(X, Y)
    truth = np.column_stack([t, T[:, 0] ** 2, 100.0 * T[:, 1] + 7.0])
    assert model.predict(T).shape == (400, 3)
    assert model.score(T, truth) > 0.97


def test_precision_and_seeds():
    X, y = wave()
    a, b, c = (
        SpectralKernelRegressor(n_components=80, training=Training(max_epochs=5, dtype=dtype), random_state=seed).fit(
            X, y
        )
        for dtype, seed in [("float32", 0), ("float32", 0), ("float64", 0)]
    )
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert a.solution_.theta.W.dtype == np.float32
    assert c.solution_.theta.W.dtype == np.float64
    assert np.abs(a.predict(X) - c.predict(X)).max() < 0.05
    other = SpectralKernelRegressor(n_components=80, training=Training(max_epochs=5), random_state=1).fit(X, y)
    assert np.abs(a.predict(X) - other.predict(X)).max() > 1e-6


def test_pickled_estimators_answer_the_same():
    X, y = make_moons(100, noise=0.1, random_state=0)
    model = SpectralKernelClassifier(n_components=50, training=Training(max_epochs=3), random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    again.partial_fit(X, y)


# ---- choices


def test_lists_are_choices_made_without_training_again_from_zero(monkeypatch):
    X, y = wave(200)
    epochs = []
    original = TrainingRun.one_epoch
    monkeypatch.setattr(TrainingRun, "one_epoch", lambda self: epochs.append(1) or original(self))
    options = {
        "sigma": [0.01, 2.0],
        "lam2": [1e-7, 1e-6],
        "n_components": 60,
        "training": Training(max_epochs=24, folds=2),
    }
    model = SpectralKernelRegressor(lam1=[1e-5, 10.0], random_state=0, **options).fit(X, y)
    assert model.sigma_ == 2.0
    assert model.lam1_ == 1e-5
    assert model.lam2_ in (1e-7, 1e-6)
    # One training run serves both lam1, which weigh the exact last solve.
    assert len(model.selection_.candidates) == 4
    assert model.selection_.best.sigma == 2.0
    assert sorted(model.selection_.n_epochs) == [4, 4, 12, 12]
    # Four candidates on two folds take 4 epochs each, the best two 8 more; the last fit 24. From zero: 4 * 2 * 12 + 24.
    assert len(epochs) == 2 * (4 * 4 + 2 * 8) + 24
    assert model.score(*wave(seed=1)) > 0.97


def test_weights_of_classifiers_are_trained_with():
    X, y = make_moons(300, noise=0.1, random_state=0)
    model = SpectralKernelClassifier(
        "SKL",
        sigma=[0.01, 2.0],
        lam1=[1e-5, 10.0],
        n_components=60,
        training=Training(batch_size=10, max_epochs=12, folds=2),
        random_state=0,
    ).fit(X, y)
    assert {(c.sigma, c.lam1) for c in model.selection_.candidates} == {(s, w) for s in (0.01, 2.0) for w in (1e-5, 10)}
    assert model.sigma_ == 2.0
    top = model.selection_.candidates[int(np.argmax(model.selection_.scores * (model.selection_.n_epochs == 6)))]
    assert model.selection_.best == top
    assert model.lam1_ == top.lam1
    assert model.selection_.scores.max() > 0.95
    assert model.score(X, y) > 0.97


def test_few_validation_rows_do_not_take_the_ridge_below_that_of_leave_one_out():
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, (60, 2))
    y = X[:, 0] + rng.standard_t(2, 60)
    for seed in range(6):
        model = SpectralKernelRegressor(
            "NSKL", n_components=60, training=Training(max_epochs=2), random_state=seed
        ).fit(X, y)
        assert model.lam1_ >= (1.0 - 1e-12) * model.width_.ridge(model.sigma_)


def test_of_many_sigmas_the_closed_form_risk_names_those_to_train_with():
    X, y = wave(200)
    sigmas = 2.0 ** np.arange(-8.0, 9.0)
    model = SpectralKernelRegressor(
        sigma=sigmas, n_components=60, training=Training(max_epochs=4, folds=2, validation_fraction=0.0), random_state=0
    ).fit(X, y)
    assert model.width_.risks.shape[0] == 17
    tried = sorted({candidate.sigma for candidate in model.selection_.candidates})
    assert tried == sorted(model.width_.shortlist(3))
    assert 0.5 <= model.sigma_ <= 8.0


def test_few_rows_are_validated_by_many_of_them():
    """Epochs that a handful of rows takes by chance promise noise: intervals held .26 of it with six of 60 rows."""
    rng = np.random.default_rng(3)
    X, y, X_new, y_new = (
        rng.normal(size=(60, 10)),
        rng.normal(size=60),
        rng.normal(size=(500, 10)),
        rng.normal(size=500),
    )
    model = SpectralKernelRegressor(random_state=1003).fit(X, y)
    low, high = model.predict_interval(X_new, coverage=0.8).T
    assert 0.5 < np.mean((low <= y_new) & (y_new <= high)) < 0.95
    assert [Training().validation_share(m, rejoins=True) for m in (19, 20, 100, 1000)] == [0.0, 0.5, 0.3, 0.1]
    assert [Training().validation_share(m, rejoins=False) for m in (19, 20, 1000)] == [
        0.0,
        0.1,
        0.1,
    ]  # W has not seen them
    assert Training(validation_fraction=0.2).validation_share(50, rejoins=True) == 0.2


def test_cross_validation_leaves_time_for_learning():
    X, y = wave(2000)
    began = time.monotonic()
    options = {
        "sigma": 2.0 ** np.arange(-3.0, 3.0),
        "lam2": [1e-7, 1e-5],
        "n_components": 300,
        "training": Training(max_epochs=500),
    }
    model = SpectralKernelRegressor(max_time=4.0, random_state=0, **options)
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT"):
        model.fit(X, y)
    assert time.monotonic() - began < 30.0  # seconds, not the minutes that 500 epochs on five folds would take
    assert model.solution_.status is Status.TIME_LIMIT
    assert 0 < model.selection_.n_epochs.max() < 250
    assert np.isfinite(model.selection_.scores).all()
    assert model.history_


# ---- passes over new rows


def test_partial_fit_gets_better_with_more_rows(digits):
    X, T, y, t = digits
    model = SpectralKernelClassifier(n_components=200, training=Training(max_epochs=5), random_state=0)
    model.partial_fit(X[:200], y[:200], classes=np.arange(10))
    first = model.score(T, t)
    for _ in range(3):
        for start in range(200, len(X), 200):
            model.partial_fit(X[start : start + 200], y[start : start + 200])
    assert model.score(T, t) > max(first + 0.02, 0.93)
    assert model.solution_.problem.m <= 200


def test_classes_that_come_later_have_to_be_announced(digits):
    X, T, y, _ = digits
    with pytest.raises(InvalidInputError, match=r"class 7, which is not among the classes"):
        SpectralKernelClassifier(**SMALL).partial_fit(X, y, classes=np.arange(7))
    few = X[y < 5], y[y < 5], np.arange(10)
    with pytest.raises(InvalidInputError, match="'balanced' needs rows of every class, but y has none of 5; pass a"):
        SpectralKernelClassifier(class_weight="balanced", **SMALL).partial_fit(*few)
    model = SpectralKernelClassifier(**SMALL).partial_fit(X[y < 5], y[y < 5], classes=np.arange(10))
    for _ in range(8):
        model.partial_fit(X, y)
    assert (model.predict(T) > 4).any()
    with pytest.raises(InvalidInputError, match=r"holds the class 11, which is not among the classes"):
        model.partial_fit(X[:1], [11])
    with pytest.raises(InvalidInputError, match="the first call had"):
        model.partial_fit(X, y, classes=[1, 2])
    with pytest.raises(InvalidInputError, match="one class only"):
        SpectralKernelClassifier(**SMALL).partial_fit(X[:5], np.ones(5))


def test_regression_continues_after_fit():
    X, y = wave()
    model = SpectralKernelRegressor(n_components=100, random_state=0).fit(X[:100], y[:100])
    before = model.score(*wave(seed=1))
    for _ in range(20):
        model.partial_fit(X, y)
    assert model.score(*wave(seed=1)) > before - 0.005
    with pytest.raises(InvalidInputError, match="y has a missing or infinite value at row 0"):
        model.partial_fit(X, np.full(len(X), np.nan))


# ---- limits


def test_validation_keeps_the_best_epoch_and_patience_ends(capsys):
    X, y = wave(300)
    noisy = y + np.random.default_rng(1).normal(size=300)
    model = SpectralKernelRegressor(
        n_components=200, training=Training(max_epochs=200, patience=3), verbose=True, random_state=0
    )
    model.fit(X, noisy)
    assert model.solution_.status is Status.EARLY_STOPPED
    assert 3 <= len(model.history_) < 200
    shown = capsys.readouterr().err
    assert "sigma" in shown
    assert "epoch    1: objective" in shown
    assert "validation" in shown


def test_time_runs_out_politely(digits):
    X, T, y, t = digits
    model = SpectralKernelClassifier(
        n_components=300, max_time=0.5, training=Training(max_epochs=10_000), random_state=0
    )
    with pytest.warns(ConvexKernelsWarning, match=r"learning ended early, TIME_LIMIT \(the time limit") as warned:
        model.fit(X, y)
    assert len(warned) == 1
    assert model.solution_.status is Status.TIME_LIMIT
    assert model.solution_.seconds < 20.0
    assert model.score(T, t) > 0.9


def test_widths_of_features_are_learned_where_the_rest_has_time(monkeypatch):
    """Every choice of a width is made to take 0.3 s."""
    asked, learned = [], []

    def slow(*arguments, **options):
        asked.append(options["factors"])
        time.sleep(0.3)
        return choose_width(*arguments, **options)

    choose_width, learned_metric = preparation.choose_width, spectral_base.learned_metric
    monkeypatch.setattr(preparation, "choose_width", slow)
    monkeypatch.setattr(spectral_base, "learned_metric", lambda *a, **k: learned.append(a) or learned_metric(*a, **k))
    X, y = wave(300)
    options = {"n_components": 30, "training": Training(max_epochs=2), "random_state": 0}
    with pytest.warns(ConvexKernelsWarning, match="choice of the width"):
        SpectralKernelRegressor(max_time=0.8, **options).fit(X, y)
    assert len(asked) == 1
    assert not learned
    SpectralKernelRegressor(**options).fit(X, y)
    assert len(asked) > 2
    assert learned


def test_without_time_to_train_the_start_has_the_ridge_that_is_right_for_it(monkeypatch):
    X, y = wave(400)
    read, trained = [], []
    of, step = Moments.of.__func__, TrainingRun.step

    def slow(cls, *arguments):
        read.append(1)
        time.sleep(0.6)
        return of(cls, *arguments)

    monkeypatch.setattr(Moments, "of", classmethod(slow))
    monkeypatch.setattr(TrainingRun, "step", lambda *a: trained.append(1) or step(*a))
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT"):
        model = SpectralKernelRegressor(n_components=100, max_time=1.5, random_state=0).fit(X, y)
    assert len(read) == 1
    assert not trained
    assert model.solution_.status is Status.TIME_LIMIT
    stands_for = matched_trace_weight(model.width_.ridge(model.sigma_), model.solution_.theta.W)
    assert model.solution_.problem.penalty.weight == pytest.approx(stands_for, rel=1e-3)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        ("selection", "path_residuals", 3),  # while sigma is looked for
        ("preparation", "draw_layers", 1),  # at the starts of the folds
        ("cross_validation", "exact_points", 4),  # in a fold
        ("training", "threads_for", 30),  # in an epoch
        ("fitting", "solve_inner", 1),  # at the end
    ],
)
def test_an_interrupt_at_any_stage_keeps_the_best_so_far_with_one_warning(monkeypatch, module, name, call):
    X, y = wave(200)
    module, calls = import_module(f"convexkernels.spectral.{module}"), []
    original = getattr(module, name)

    def interrupted(*arguments, **named):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    monkeypatch.setattr(module, name, interrupted)
    model = SpectralKernelRegressor(
        sigma=[1.0, 2.0, 4.0, 8.0], n_components=40, training=Training(max_epochs=6, folds=2), random_state=0
    )
    try:
        with pytest.warns(ConvexKernelsWarning, match="interrupted") as warned:
            model.fit(X, y)
    except KeyboardInterrupt:
        pytest.fail("the interrupt was not caught")
    assert len(warned) == 1
    assert model.solution_.status is Status.INTERRUPTED
    assert len(calls) >= call
    assert model.sigma_ in (1.0, 2.0, 4.0, 8.0)
    assert model.score(X, y) > 0.5


def test_divergence_ends_with_a_status_and_finite_weights():
    X, y = wave()
    model = SpectralKernelRegressor(n_components=30, sigma=1.0, training=Training(learning_rate=1e38), random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="NUMERICAL_ERROR"), np.errstate(all="ignore"):
        model.fit(X, y)
    assert model.solution_.status is Status.NUMERICAL_ERROR
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, y) > 0.5  # the warm start was the last good point


def test_features_of_a_long_table_are_never_held_together(monkeypatch):
    X, y = wave(6000)
    rows = []
    original = frequencies.Features.__init__
    monkeypatch.setattr(
        frequencies.Features,
        "__init__",
        lambda self, spectral_map, X: rows.append(len(X)) or original(self, spectral_map, X),
    )
    model = SpectralKernelRegressor(
        n_components=50, training=Training(max_epochs=1, batch_size=500), random_state=0
    ).fit(X, y)
    assert sum(rows) > 5 * 6000
    assert max(rows) <= 2048
    seen = []
    transform = Spectral.transform
    monkeypatch.setattr(Spectral, "transform", lambda self, X: seen.append(len(X)) or transform(self, X))
    assert model.predict(X).shape == (6000,)
    assert seen == [2048, 2048, 1904]


# ---- measures


def test_a_setting_by_name_is_that_of_its_fields():
    X, y = wave(80)
    options = {"n_components": 40, "training": Training(max_epochs=3), "random_state": 0}
    named, spelt = (SpectralKernelRegressor(setting, **options).fit(X, y) for setting in ("ASKL", SpectralSetting()))
    np.testing.assert_array_equal(named.predict(X), spelt.predict(X))


@pytest.mark.parametrize("measure", ["student-1", "student-3", "student-5", "cauchy"])
def test_frequencies_of_other_measures_are_learned(measure):
    X, y = wave(300)
    setting = SpectralSetting(stationary=True, trace_norm=False, feature_norm=False, measure=measure)
    training = Training(max_epochs=10, dtype="float64", validation_fraction=0.0)  # which may prefer those drawn
    model = SpectralKernelRegressor(setting, n_components=100, training=training, random_state=0).fit(X, y)
    first, last = np.asarray(model.initial_kernel_.omega), np.asarray(model.kernel_.omega)
    assert np.abs(first).max() > 5.0 * np.median(np.abs(first))  # long tails
    assert 0.0 < np.median(np.abs(last - first)) < 2.0 * np.median(np.abs(first))
    assert model.history_[-1].objective < model.history_[0].objective
    assert model.score(*wave(300, seed=1)) > 0.95
    again = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_leave_one_out_risks_are_those_of_the_measure():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 2))
    y = np.abs(X).sum(axis=1)  # kinks along the axes, which suit the product Laplace kernel
    risks = {}
    for measure in ("gaussian", "cauchy"):
        setting = SpectralSetting(stationary=True, learned=False, trace_norm=False, feature_norm=False, measure=measure)
        risks[measure] = SpectralKernelRegressor(setting, random_state=0).fit(X, y).width_.risks.min()
    assert risks["cauchy"] < risks["gaussian"]


def test_measures_without_a_name_are_refused():
    with pytest.raises(InvalidInputError, match=r"measure must be one of gaussian, student-1, .* got 'laplace'"):
        SpectralSetting(measure="laplace")


# ---- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setting": "TSK"}, "setting must be one of SK, NSK, SKL, NSKL, ASKL, got 'TSK'; or pass a SpectralSetting"),
        ({"setting": ["ASKL"]}, r"setting must be one of SK, NSK, SKL, NSKL, ASKL, got \['ASKL'\]"),
        ({"n_components": 0}, "n_components must be a whole number >= 1, got 0"),
        ({"feature_map": "rff"}, "feature_map must be one of psi, phi, printed"),
        ({"sigma": 0.0}, "sigma must be a finite number > 0, got 0"),
        ({"sigma": [1.0, -1.0]}, "every sigma must be a finite number > 0"),
        ({"sigma": []}, "sigma is an empty list"),
        ({"lam1": -1e-3}, "lam1 must be a finite number >= 0, got -0.001"),
        ({"lam2": float("nan")}, "lam2 must be a finite number >= 0"),
        ({"training": Training(batch_size=31)}, "batch_size is 31, but there are only 30 rows"),
        (
            {"training": Training(folds=16), "sigma": [0.1, 1.0]},
            "folds is 16, but 30 rows make at most 15 folds of two",
        ),
        ({"training": {"max_epochs": 3}}, "training must be a Training or None, got {'max_epochs': 3}"),
        ({"max_time": 0.0}, "max_time must be a finite number > 0"),
        ({"loss": "absolute"}, "loss must be one of"),
    ],
)
@pytest.mark.parametrize("kind", [SpectralKernelClassifier, SpectralKernelRegressor])
def test_bad_parameters_are_refused_by_name(kind, options, message):
    X, y = wave(30)
    with pytest.raises(InvalidInputError, match=message):
        kind(**options).fit(X, y > 0 if kind is SpectralKernelClassifier else y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number >= 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number > 0"),
        ({"max_epochs": 1.5}, "max_epochs must be a whole number >= 0"),
        ({"schedule": "linear"}, "schedule must be 'cosine' or 'constant', got 'linear'"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1"),
        ({"validation_fraction": -0.1}, "validation_fraction must be a finite number >= 0 and <= 1"),
        ({"patience": 0}, "patience must be a whole number >= 1"),
        ({"patience": 2, "validation_fraction": 0.0}, "patience counts epochs .* but validation_fraction is 0"),
        ({"folds": 1}, "folds must be a whole number >= 2"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64', got 'float16'"),
    ],
)
def test_bad_training_is_refused_by_name(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Training(**options)


def test_bad_tables_are_refused():
    X, y = wave(30)
    with pytest.raises(InvalidInputError, match="one class only"):
        SpectralKernelClassifier().fit(X, np.ones(30))
    with pytest.raises(InvalidInputError, match="y has 29 entries"):
        SpectralKernelRegressor().fit(X, y[:-1])
    with pytest.raises(InvalidInputError, match="missing or infinite"):
        SpectralKernelRegressor().fit(np.where(X > 0.9, np.inf, X), y)


def test_a_device_needs_torch(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("convexkernels.backend.import_module", missing)
    X, y = wave(30)
    with pytest.raises(MissingTorchError, match=r"pip install 'convexkernels\[torch\]'"):
        SpectralKernelRegressor(training=Training(device="cpu")).fit(X, y)


def test_tensors_on_two_devices_are_refused():
    """Devices are compared by name, so two kinds of tensors stand in for a machine with two devices."""
    kind = type("Tensor", (), {"__module__": "torch"})
    here, there = kind(), kind()
    here.device, there.device = "cpu", "cuda:0"
    with pytest.raises(InvalidInputError, match=r"different devices \(X on cpu, y on cuda:0\)"):
        backend_for({"X": here, "y": there}, dtype="float32")
    assert backend_for({"X": np.zeros(2), "y": [1]}, dtype="float64").is_numpy


def test_backends_survive_pickling():
    for dtype in ("float32", "float64"):
        again = pickle.loads(pickle.dumps(Backend(dtype)))
        assert again.dtype == getattr(np, dtype)
        assert again.is_numpy


def test_in_a_pipeline_after_scaling(digits):
    X, T, y, t = digits
    model = make_pipeline(
        StandardScaler(), SpectralKernelClassifier(n_components=200, training=Training(max_epochs=8), random_state=0)
    )
    assert model.fit(X, y).score(T, t) > 0.95


def test_units_of_columns_do_not_matter_where_sigma_is_chosen():
    rng = np.random.default_rng(0)
    X = rng.random((300, 6))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    units = 10.0 ** np.array([-2.0, 0.0, 3.0, 0.0, 3.0, 1.0])
    scores = []
    for Z in (X, X * units):
        model = SpectralKernelRegressor(n_components=200, random_state=0).fit(Z[:200], y[:200])
        scores.append(model.score(Z[200:], y[200:]))
    assert min(scores) > 0.9, scores


@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("unit", [1e-3, 100.0, 1e6])
def test_frequencies_of_each_column_take_steps_of_their_size(column, unit):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]  # and the last column says nothing
    scores = []
    for factor in (1.0, unit):
        Z = X * np.where(np.arange(4) == column, factor, 1.0)
        model = SpectralKernelRegressor(n_components=50, random_state=0).fit(Z[:400], y[:400])
        scores.append(model.score(Z[400:], y[400:]))
        assert not np.array_equal(model.kernel_.omega, model.initial_kernel_.omega)
        weighed = model.initial_kernel_.omega / (model.sigma_ * model.feature_factors_[:, None])
        assert np.sqrt(np.mean(weighed**2, axis=1)) == pytest.approx(np.ones(4), rel=0.3)
    assert min(scores) > 0.97, scores  # .86 to .95 in other units where steps have one size for all columns


def test_frequencies_as_drawn_stay_unless_trained_ones_are_clearly_better(rng):
    X = rng.normal(size=(300, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    options = {"n_components": 100, "random_state": 0}
    drawn = SpectralKernelRegressor(training=Training(max_epochs=0), **options).fit(X, y)
    wild = SpectralKernelRegressor(training=Training(learning_rate=30.0), **options).fit(X, y)
    assert len(wild.history_) > 0
    np.testing.assert_array_equal(wild.kernel_.omega, wild.initial_kernel_.omega)
    np.testing.assert_allclose(wild.predict(X), drawn.predict(X), atol=1e-5)


def test_steps_of_features_that_learned_widths_damp_are_half_of_the_largest(rng):
    X = rng.normal(size=(300, 3))
    Y, setting = np.sin(2.0 * X[:, :1]), SETTINGS["NSKL"]
    problem = SpectralLearning.stated(
        X, Y, score_loss("least_squares"), setting, lam1=1.0, lam2=0.0, backend=Backend("float64")
    )
    _, learned = spectral_base._scales(problem, Clock(), rng, ())
    factors, steps = (part * X.std(axis=0) for part in learned())
    assert factors[1:].max() < 0.2 * factors[0]
    np.testing.assert_allclose(steps, factors[0] * np.array([1.0, 0.5, 0.5]))


def test_steps_of_another_pass_do_not_grow_with_frequencies_that_were_damped():
    """They are relative to what they were for frequencies as drawn, not to ratios of trained ones to their factors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1900, 4))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.02 * rng.normal(size=1900)
    model = SpectralKernelRegressor(n_components=100, random_state=0, training=Training(learning_rate=0.1))
    model.fit(X[:600], y[:600])
    for start in (600, 900, 1200):
        assert model.partial_fit(X[start : start + 300], y[start : start + 300]).score(X[1500:], y[1500:]) > 0.95


@pytest.mark.parametrize("unit", [1.0, 3600.0, 1e6])
def test_another_pass_keeps_what_was_learned_in_any_units(unit):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), unit * (np.arange(300) < 150)])
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    model = SpectralKernelRegressor(n_components=200, random_state=0).fit(X[:200], y[:200])
    model.partial_fit(X[200:], y[200:])  # of a value of the last column that is seldom among the others
    assert min(model.score(X[:200], y[:200]), model.score(X[200:], y[200:])) > 0.9


def test_a_first_pass_over_one_row_does_not_end_learning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    model = SpectralKernelRegressor(n_components=100, random_state=0).fit(X[:100], y[:100])
    model.partial_fit(X[:1], y[:1])
    before = model.kernel_.omega
    assert np.abs(model.partial_fit(X[100:], y[100:]).kernel_.omega - before).max() > 1e-3
    fitted = SpectralKernelRegressor(n_components=100, random_state=0).fit(X[:100], y[:100])
    with pytest.raises(InvalidInputError, match="y must hold numbers"):
        fitted.partial_fit(X[:5], ["a"] * 5)
    assert fitted.loo_score_ > 0.9  # of the rows of the fit, as before


def test_columns_far_from_zero_lose_no_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    tables = [X, X + np.array([1e7, 1e9, 0.0]), np.column_stack([X, np.full(300, 1.7e9)])]
    scores = []
    for Z in tables:
        model = SpectralKernelRegressor(n_components=200, random_state=0).fit(Z[:200], y[:200])
        scores.append(model.score(Z[200:], y[200:]))
        np.testing.assert_array_equal(model.kernel_.transform(Z[200:]), model.transform(Z[200:]))
        np.testing.assert_allclose(model.kernel_(Z[:5], Z[:9]), model.transform(Z[:5]) @ model.transform(Z[:9]).T)
        moved = model.initial_kernel_.without_phases()
        assert moved.center is model.initial_kernel_.center
        scores.append(model.partial_fit(Z[200:], y[200:]).score(Z[200:], y[200:]))
    assert min(scores) > 0.9, scores


@pytest.mark.parametrize("setting", ["ASKL", "SKL"])
@pytest.mark.parametrize("lam1", [None, [1e-3, 1e-5]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_goes_on_after_the_epoch_at_which_it_was_interrupted(setting, lam1, dtype, monkeypatch, tmp_path):
    X, y = wave(150)
    training = Training(max_epochs=6, folds=2, dtype=dtype)
    given = {**SMALL, "training": training, "lam1": lam1, "loss": "least_squares", "setting": setting}
    plain = SpectralKernelRegressor(**given).fit(X, y)
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    model, whole, taken = SpectralKernelRegressor(**given, checkpoint=tmp_path / "run.npz"), TrainingRun.one_epoch, []

    def interrupted(run):
        if run.piece.checkpoint is not None:
            taken.append(1)
            if len(taken) == 4:
                raise KeyboardInterrupt
        return whole(run)

    with monkeypatch.context() as patched:
        patched.setattr(TrainingRun, "one_epoch", interrupted)
        with pytest.warns(ConvexKernelsWarning, match="interrupted"):
            clone(model).fit(X, y)
    counted = []
    monkeypatch.setattr(TrainingRun, "one_epoch", lambda run: counted.append(1) or whole(run))
    again = clone(model).fit(X, y)
    assert len(counted) == 3  # neither the choice nor the epochs before
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))
    counted.clear()
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), plain.predict(X))
    assert not counted


@pytest.mark.parametrize("size", [1e-300, 1e-46, 1e39, 1e300])
def test_only_the_ratios_of_weights_count_whatever_single_precision_holds(rng, size):
    X = rng.normal(size=(60, 3))
    y, weights = X[:, 0] + X[:, 1] ** 2, rng.uniform(0.5, 2.0, 60)
    model = SpectralKernelRegressor(n_components=100, training=Training(max_epochs=2), random_state=0)
    expected = clone(model).fit(X, y, weights).predict(X)
    np.testing.assert_allclose(model.fit(X, y, size * weights).predict(X), expected, atol=1e-2)
    extreme = np.where(np.arange(60) < 30, size, 1.0)
    assert np.isfinite(model.fit(X, y, extreme).predict(X)).all()


@pytest.mark.parametrize("size", [1e-60, 1e-38, 1e38, 1e60])
def test_tables_that_single_precision_does_not_hold_are_refused_by_name(rng, size):
    X = size * rng.normal(size=(30, 3))
    y = X[:, 0] / size
    with pytest.raises(InvalidInputError, match="ends of the range of float32"):
        SpectralKernelRegressor().fit(X, y)


@pytest.mark.parametrize("size", [1e-35, 1e-15, 1e-8, 1e20, 1e34])
@pytest.mark.parametrize("inner", [(), (20,)])
def test_frequencies_are_learned_in_any_unit(rng, size, inner):
    X = np.sign(rng.normal(size=(200, 30))) * rng.uniform(0.5, 1.0, (200, 30))
    y, settings = X[:, 0] + 0.1 * rng.normal(size=200), {"n_components": 50, "random_state": 0}
    plain, other = (
        SpectralKernelRegressor(SpectralSetting(inner=inner), **settings).fit(unit * X, y) for unit in (1.0, size)
    )
    begun, learned = (to_numpy(there.omega).astype(float) for there in (other._fit.initial, other.solution_.theta.map))
    assert np.linalg.norm(learned - begun) > 0.1 * np.linalg.norm(begun)
    np.testing.assert_allclose(other.predict(size * X), plain.predict(X), atol=0.02)


@pytest.mark.parametrize("far", ["cell", "column"])
@pytest.mark.parametrize("inner", [(), (10,)])
def test_an_entry_or_a_column_far_from_the_others_leaves_their_frequencies_free(rng, far, inner):
    X = rng.normal(size=(200, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    X[:, 3] *= 1e9 if far == "column" else np.where(np.arange(200), 1.0, 1e12)
    training = Training(max_epochs=60, validation_fraction=0.0)
    options = {"n_components": 30, "sigma": 1.0, "training": training, "random_state": 0}
    model = SpectralKernelRegressor(SpectralSetting(inner=inner), **options).fit(X, y)
    maps = model._fit.initial, model.solution_.theta.map
    begun, learned = (to_numpy((there.layers[0] if inner else there).omega)[:3].astype(float) for there in maps)
    assert np.linalg.norm(learned - begun) > 0.02 * np.linalg.norm(begun)
