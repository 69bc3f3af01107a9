"""Pictures of spectral kernels show what they say."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from convexkernels import (
    Gaussian,
    InvalidInputError,
    Spectral,
    SpectralKernelClassifier,
    SpectralKernelRegressor,
    Training,
)
from convexkernels.plotting import LearningCurvesDisplay, NonStationarityDisplay, SpectralDensityDisplay


def test_density_is_a_density_with_the_symmetries_of_the_paper(rng):
    kernels = {"pairs": Spectral.random(2, 300, random_state=0), "single": Spectral.random(2, 300, stationary=True)}
    display = SpectralDensityDisplay.from_kernels(kernels, limit=8.0, n_points=161)
    step = display.axis[1] - display.axis[0]
    for density in display.densities.values():
        assert density.sum() * step**2 == pytest.approx(1.0, abs=0.01)
        np.testing.assert_allclose(density, density.T, atol=1e-12)
        np.testing.assert_allclose(density, density[::-1, ::-1], atol=1e-12)
    far = np.abs(display.axis[:, None] - display.axis) > 1.5
    assert display.densities["single"][far].sum() * step**2 < 0.01
    assert display.densities["pairs"][far].sum() * step**2 > 0.05
    display.plot()
    assert [ax.get_title() for ax in display.axes_] == ["pairs", "single"]


def test_learning_moves_the_density_and_curves_have_an_epoch_each(rng):
    X = rng.uniform(-1, 1, (160, 2))
    # With a sigma that is given: what the data choose may leave nothing to learn.
    training = Training(max_epochs=12, batch_size=16)
    options = {"n_components": 30, "sigma": 1.0, "training": training, "random_state": 0}
    models = {name: SpectralKernelRegressor(name, **options).fit(X, np.sin(5 * X[:, 0])) for name in ("SKL", "ASKL")}
    display = SpectralDensityDisplay.from_estimator(models["ASKL"], feature=1).plot()
    assert list(display.densities) == ["before", "after"]
    assert not np.allclose(display.densities["before"], display.densities["after"])
    curves = LearningCurvesDisplay.from_estimators(models).plot()
    assert curves.score == "validation loss"
    assert curves.axes_[0].lines[0].get_ydata().min() >= 0.0, "a loss, not minus one"
    for ax in curves.axes_:
        assert [line.get_label() for line in ax.lines] == ["SKL", "ASKL"]
        assert all(len(line.get_xdata()) == 12 for line in ax.lines)
    classifier = SpectralKernelClassifier(**options).fit(X, X[:, 0] > 0)
    assert LearningCurvesDisplay.from_estimators({"ASKL": classifier}).score == "validation accuracy"
    classifier.set_params(training=Training(max_epochs=12, validation_fraction=0.0)).fit(X, X[:, 0] > 0)
    empty = LearningCurvesDisplay.from_estimators({"ASKL": classifier}).plot()
    assert [text.get_text() for text in empty.axes_[0].texts] == ["no rows were held out"]
    assert not curves.axes_[0].texts
    with pytest.raises(InvalidInputError, match="all be classifiers or all be regressors"):
        LearningCurvesDisplay.from_estimators({"a": classifier, **models})


def test_slices_coincide_exactly_when_the_kernel_is_stationary():
    kernels = {"single": Spectral.random(2, 50, stationary=True), "pairs": Spectral.random(2, 50), "rbf": Gaussian()}
    display = NonStationarityDisplay.from_kernels(kernels, [[-1.0, 0.0], [1.0, 0.0]], reach=2.0).plot()
    for name, rows in display.slices.items():
        assert np.allclose(rows[0], rows[1]) == (name != "pairs")
    assert len(display.axes_) == 3
    assert display.axes_[0].get_xlabel() == "t, along x0"


def test_what_cannot_be_drawn_is_refused():
    kernel = Spectral.random(2, 5)
    with pytest.raises(InvalidInputError, match="kernels must be spectral"):
        SpectralDensityDisplay.from_kernels({"rbf": Gaussian()})
    with pytest.raises(InvalidInputError, match="pass its inner"):
        SpectralDensityDisplay.from_kernels({"a": Spectral.random(2, 5, inner=(3,))})
    with pytest.raises(InvalidInputError, match=r"feature must be in \[0, 2\), got 2"):
        SpectralDensityDisplay.from_kernels({"a": kernel}, feature=2)
    with pytest.raises(InvalidInputError, match=r"feature must be in \[0, 2\), got 3"):
        NonStationarityDisplay.from_kernels({"a": kernel}, [[0.0, 0.0]], reach=1.0, feature=3)
    with pytest.raises(InvalidInputError, match="reach must be a finite number > 0"):
        NonStationarityDisplay.from_kernels({"a": kernel}, [[0.0, 0.0]], reach=0.0)
    with pytest.raises(InvalidInputError, match="axes must be 2 axes, one per panel, got 1"):
        SpectralDensityDisplay.from_kernels({"a": kernel, "b": kernel}).plot(plt.subplots()[1])
