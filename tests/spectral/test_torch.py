"""The same formulas on PyTorch tensors give the same numbers."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import make_moons

from convexkernels import InvalidInputError, Spectral, SpectralKernelClassifier, SpectralKernelRegressor, Training
from convexkernels.backend import Backend, backend_for, to_numpy
from convexkernels.kernels.stacked_frequencies import draw_layers
from convexkernels.solvers.nonconvex.adam import Adam
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SCORE_LOSSES, score_loss
from convexkernels.spectral.options import SpectralSetting, setting_of
from convexkernels.spectral.penalties import shrink_singular_values

HERE, THERE = Backend("float64"), Backend("float64", "cpu")


def pair(rng, loss, setting, feature_map="phi", classes=3):
    """The same problem and point on both backends."""
    setting = setting_of(setting)
    X, codes = rng.normal(size=(30, 3)), rng.integers(classes, size=30)
    Y, seed = score_loss(loss).targets_of(codes, classes), int(rng.integers(1000))
    W, c = rng.normal(size=(14 if feature_map == "psi" else 7, Y.shape[1])), rng.normal(size=Y.shape[1])
    for backend in (HERE, THERE):
        problem = SpectralLearning.stated(X, Y, score_loss(loss), setting, lam1=0.05, lam2=1e-3, backend=backend)
        drawn = draw_layers(
            3,
            (*setting.inner, 7),
            stationary=setting.stationary,
            feature_map=feature_map,
            rng=np.random.default_rng(seed),
            backend=backend,
        )
        yield problem, SpectralPoint(drawn, backend.array(W), backend.array(c))


@pytest.mark.parametrize("feature_map", ["phi", "psi"])
@pytest.mark.parametrize("setting", ["SKL", "ASKL", SpectralSetting(inner=(5,))])
@pytest.mark.parametrize("loss", SCORE_LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
def test_objective_and_gradients_are_the_same(rng, loss, setting, feature_map, classes):
    (ours, here), (theirs, there) = pair(rng, loss, setting, feature_map, classes)
    for a, b in zip(ours.evaluate(here), theirs.evaluate(there), strict=True):
        np.testing.assert_allclose(a, to_numpy(b), atol=1e-12)
    assert ours.certificate(here).residual == pytest.approx(theirs.certificate(there).residual)
    np.testing.assert_allclose(Spectral.of(here.map)(to_numpy(ours.X)), Spectral.of(there.map)(to_numpy(ours.X)))


@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_agree_with_automatic_differentiation(rng, classes):
    """PyTorch's own derivative of the objective, written down once more."""
    _, (problem, point) = pair(rng, "logistic", "ASKL", classes=classes)
    omega, W, c = (part.clone().requires_grad_() for part in (point.map.omega, point.W, point.intercept))
    features = point.map.scale * torch.cos(problem.X @ omega + point.map.phase).reshape(30, 2, 7).sum(dim=1)
    F = features @ W + c
    if classes == 2:
        loss = torch.nn.functional.softplus(-problem.Y * F).mean()
    else:
        loss = torch.nn.functional.cross_entropy(F, problem.Y.argmax(dim=1))
    value = loss + 1e-3 * (features**2).sum()
    value.backward()
    _, slope_W, slope_c, slope_omega = problem.evaluate(point)
    for ours, theirs in ((slope_omega, omega.grad), (slope_W, W.grad), (slope_c, c.grad)):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("setting", ["NSKL", "ASKL"])
def test_inner_solutions_are_the_same(rng, setting):
    (ours, here), (theirs, there) = pair(rng, "least_squares", setting)
    a, b = (solve_inner(p, Moments.of(q.map, p), max_iter=50) for p, q in ((ours, here), (theirs, there)))
    np.testing.assert_allclose(a.W, to_numpy(b.W), atol=1e-8)


def test_adam_and_thresholding_are_the_same(rng):
    block, gradient = rng.normal(size=(2, 20, 5))
    for common, rate in ((False, 0.01), (True, 0.01), (False, np.linspace(0.01, 0.1, 20)[:, None])):
        blocks = []
        for backend in (HERE, THERE):
            moving = backend.array(block.copy())
            adam = Adam(moving, common=common)
            for _ in range(3):
                adam.step(moving, backend.array(gradient), rate if np.ndim(rate) == 0 else backend.array(rate))
            blocks.append(to_numpy(moving))
        np.testing.assert_allclose(*blocks, rtol=1e-12)
    a, b = (to_numpy(shrink_singular_values(backend.array(block), 0.5, backend)) for backend in (HERE, THERE))
    np.testing.assert_allclose(a, b, atol=1e-10)


def test_estimators_take_tensors_and_return_tensors():
    X, y = make_moons(200, noise=0.1, random_state=0)
    model = SpectralKernelClassifier(n_components=80, training=Training(max_epochs=8), random_state=0)
    X_there, y_there = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    model.fit(X_there, y_there)
    predicted = model.predict(X_there)
    assert isinstance(predicted, torch.Tensor)
    assert float((predicted == y_there).double().mean()) > 0.97
    assert isinstance(model.transform(X_there), torch.Tensor)
    assert isinstance(model.predict(X), np.ndarray)
    np.testing.assert_array_equal(model.predict(X), predicted.numpy())
    model.partial_fit(X_there, y_there)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_estimators_learn_the_same_from_tensors():
    """In double precision to nine digits; in single precision training moves decisions of 30 by a tenth."""
    X, y = make_moons(200, noise=0.1, random_state=0)
    training = Training(max_epochs=8, dtype="float64")
    here, there = (
        SpectralKernelClassifier(n_components=80, training=training, random_state=0).fit(*table).decision_function(X)
        for table in ((X, y), (torch.tensor(X), torch.tensor(y)))
    )
    np.testing.assert_allclose(there, here, rtol=0.0, atol=1e-7)


def test_regression_on_a_device_by_name():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sin(4 * X[:, 0]) * X[:, 1]
    model = SpectralKernelRegressor(
        n_components=100, training=Training(max_epochs=8, device="cpu"), random_state=0
    ).fit(X, y)
    assert isinstance(model.solution_.theta.W, torch.Tensor)
    assert model.score(X, y) > 0.98
    assert isinstance(model.predict(torch.tensor(X)), torch.Tensor)
    model.partial_fit(torch.tensor(X), torch.tensor(y))


def test_bad_tensors_and_devices_are_refused():
    X, y = torch.linspace(0.0, 1.0, 60).reshape(30, 2), torch.arange(30) % 2
    with pytest.raises(InvalidInputError, match="X has a missing or infinite value"):
        SpectralKernelClassifier().fit(torch.where(X > 0.9, torch.inf, X), y)
    with pytest.raises(InvalidInputError, match="device='no-such' cannot be used"):
        SpectralKernelClassifier(training=Training(device="no-such")).fit(X, y)
    with pytest.raises(InvalidInputError, match="y has 29 entries, but X has 30 rows"):
        SpectralKernelClassifier().fit(X, y[:-1])
    with pytest.raises(InvalidInputError, match="different devices"):
        backend_for({"X": X, "y": y.to("meta")}, dtype="float32")


@pytest.mark.parametrize("setting", ["SKL", "ASKL"])
def test_cross_validation_chooses_the_same_on_tensors(setting):
    X, y = make_moons(200, noise=0.2, random_state=0)
    regression = {"sigma": [0.05, 1.0, 2.0], "lam2": [1e-6, 1e-4], "n_components": 40}
    training = Training(max_epochs=6, folds=3, dtype="float64", validation_fraction=0.0)
    options = {"training": training, "random_state": 0, **regression}
    here = SpectralKernelRegressor(setting, **options).fit(X, y)
    there = SpectralKernelRegressor(setting, **options).fit(torch.tensor(X), torch.tensor(y))
    for name in ("sigma", "lam1", "lam2"):
        expected = pytest.approx(getattr(there.selection_.best, name), rel=1e-12)
        assert getattr(here.selection_.best, name) == expected
    assert here.lam1_ == pytest.approx(there.lam1_, rel=1e-3)
    np.testing.assert_allclose(here.selection_.scores, there.selection_.scores, rtol=1e-4)
    classes = {**options, "loss": "logistic", "lam1": [1e-5, 1e-3]}
    here = SpectralKernelClassifier(setting, **classes).fit(X, y)
    there = SpectralKernelClassifier(setting, **classes).fit(torch.tensor(X), torch.tensor(y))
    np.testing.assert_allclose(here.selection_.scores, there.selection_.scores, atol=0.02)


@pytest.mark.parametrize("far", [0.0, 1e7])
def test_models_of_arrays_answer_for_tensors(far, rng):
    X = rng.normal(size=(80, 3)) + far
    model = SpectralKernelRegressor(n_components=50, random_state=0).fit(X, np.sin(X[:, 0] - far))
    np.testing.assert_allclose(to_numpy(model.predict(torch.tensor(X))), model.predict(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(to_numpy(model.transform(torch.tensor(X))), model.transform(X), atol=1e-4)
