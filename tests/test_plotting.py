"""Displays hold the numbers they draw, draw them where they are told to, and say what is missing."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris, make_friedman1, make_moons
from sklearn.exceptions import NotFittedError

import convexkernels as ck
from convexkernels.plotting import (
    CertificateDisplay,
    DecisionSurfaceDisplay,
    KernelSliceDisplay,
    KernelTreeDisplay,
    KernelWeightsDisplay,
    ParameterMatrixDisplay,
    SpectralDensityDisplay,
)


@pytest.fixture(scope="module")
def moons():
    return make_moons(80, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def model(moons):
    return ck.TessellatedSVC(C=10.0, tol=1e-3).fit(*moons)


def tessellated(A, degree):
    """Kernel of Figure 1b: P11 = A, no other block, on [0, 10]."""
    P = np.zeros((2 * len(A), 2 * len(A)))
    P[: len(A), : len(A)] = A
    return ck.TessellatedKernel(P, [0.0], [10.0], degree=degree, z_degree=0)


def test_slices_are_those_of_figure_1b():
    kernels = {
        "A1": tessellated(np.diag([1.0, 0.0]), 1),
        "A2": tessellated(np.diag([0.0, 0.1]), 1),
        "A3": tessellated(np.eye(2), 1),
        "A4": tessellated(np.eye(3), 2),
    }
    display = KernelSliceDisplay.from_kernel(kernels, [5.0], limits=(0.0, 10.0), normalize=True, n_points=101)
    x = display.axes[0]
    reach = 10.0 - np.maximum(x, 5.0)
    for name, polynomial in {
        "A1": 1.0 + 0 * x,
        "A2": 0.5 * x,
        "A3": 1.0 + 5.0 * x,
        "A4": 1.0 + 5.0 * x + 25.0 * x**2,
    }.items():
        expected = reach * polynomial
        assert np.allclose(display.slices[name], expected / expected.max(), atol=1e-12)
    ax = display.plot().ax_
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(kernels)
    assert np.allclose(ax.lines[0].get_ydata(), display.slices["A1"])
    assert "largest value" in ax.get_ylabel()


def test_slice_over_two_features_has_the_second_along_the_rows(model):
    display = KernelSliceDisplay.from_estimator(model, [0.3, 0.1], features=(0, 1), n_points=21)
    xs, ys = display.axes
    values = display.slices[""]
    assert values[4, 17] == pytest.approx(model.kernel_([[0.3, 0.1]], [[xs[17], ys[4]]])[0, 0])
    ax = display.plot().ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    swapped = KernelSliceDisplay.from_estimator(model, [0.3, 0.1], features=(1, 0), n_points=21)
    assert np.allclose(swapped.slices[""], values.T)


def test_slice_of_a_solution_covers_the_points(model):
    display = KernelSliceDisplay.from_solution(model.solution_, [0.5, 0.5], features=1)
    assert (display.axes[0][0], display.axes[0][-1]) == (0.0, 1.0)
    assert display.plot().figure_ is display.ax_.figure


def test_decision_surface_shows_decisions_and_the_lines_of_the_tessellation(model, moons):
    X, y = moons
    display = DecisionSurfaceDisplay.from_estimator(model, X, y, n_points=31)
    expected = model.decision_function([[display.xs[7], display.ys[20]]])[0]
    assert display.values[20, 7] == pytest.approx(expected)
    assert np.array_equal(display.breaks, X[model.support_])
    ax = plt.figure().add_subplot()
    assert display.plot(ax).ax_ is ax
    drawn = [segment[0, 0] for collection in ax.collections for segment in segments(collection) if vertical(segment)]
    assert np.allclose(np.sort(drawn), np.unique(X[model.support_, 0]))
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named[-2:] == ["class 0", "class 1"]
    assert named[-3] == "coordinate of a support vector", "what lines mean is said"


def segments(collection):
    return collection.get_segments() if hasattr(collection, "get_segments") else []


def vertical(segment):
    return len(segment) == 2 and segment[0, 0] == segment[1, 0] and np.ptp(segment[:, 1]) > 0.5


def test_function_is_one_polynomial_in_every_tile(model):
    # Along a line between two neighboring breaks, at fixed x2, the third differences vanish.
    breaks = np.unique(model.support_vectors_[:, 0])
    for low, high in pairwise(breaks):
        line = np.column_stack([np.linspace(low, high, 7), np.full(7, 0.1)])
        f = model.decision_function(line)
        assert np.abs(np.diff(f, 3)).max() < 1e-9 * max(np.abs(f).max(), 1.0)
    wide = np.column_stack([np.linspace(breaks[0], breaks[-1], 7), np.full(7, 0.1)])
    assert np.abs(np.diff(model.decision_function(wide), 3)).max() > 1e-3


def test_decision_surface_of_several_classes_and_of_a_solution():
    X, y = load_iris(return_X_y=True)
    model = ck.TessellatedSVC(tol=1e-2).fit(X[:, 2:], y)
    display = DecisionSurfaceDisplay.from_estimator(model, X[:, 2:], y, n_points=25).plot()
    assert display.values.shape == (25, 25, 3)
    assert sum("class" in text.get_text() for text in display.ax_.get_legend().get_texts()) == 3
    from_solution = DecisionSurfaceDisplay.from_solution(model.solution_, n_points=25).plot()
    assert np.allclose(from_solution.values, display.values, atol=1e-8)


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X, y = make_moons(60, noise=0.1, random_state=0)
    frame = pandas.DataFrame(X, columns=["width", "height"])
    model = ck.TessellatedSVC(tol=1e-2).fit(frame, y)
    ax = DecisionSurfaceDisplay.from_estimator(model, frame, y, n_points=11).plot().ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "height")
    assert KernelSliceDisplay.from_estimator(model, [0.0, 0.0], features=1).plot().ax_.get_xlabel() == "height"
    labels = ParameterMatrixDisplay.from_estimator(model).labels
    assert labels == ["1", "width", "height"] * 2


def test_certificate_shows_the_history(model):
    display = CertificateDisplay.from_estimator(model).plot()
    bounds, gap = display.ax_
    history = model.solution_.history
    assert np.allclose(bounds.lines[0].get_ydata(), [record.upper for record in history])
    assert np.allclose(bounds.lines[1].get_ydata(), [record.lower for record in history])
    assert np.allclose(gap.lines[0].get_ydata(), [record.relative_gap for record in history])
    assert gap.get_yscale() == "log"
    low, high = bounds.get_ylim()
    assert low < model.solution_.certificate.lower <= model.solution_.certificate.upper < high
    _, pair = plt.subplots(2, 1)
    timed = CertificateDisplay.from_solution(model.solution_).plot(pair, against="seconds")
    assert timed.ax_[1].get_xlabel() == "time / s"


def test_parameter_matrix_labels_its_monomials(model):
    display = ParameterMatrixDisplay.from_estimator(model).plot()
    assert np.array_equal(display.ax_.images[0].get_array(), model.solution_.theta)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["1", "x0", "x1"] * 2
    assert f"trace {np.trace(model.solution_.theta):.3g}, rank" in display.ax_.get_title()
    full = ck.TessellatedKernel(np.eye(2 * 15), [0.0, 0.0], [1.0, 1.0], degree=2)
    labels = ParameterMatrixDisplay.from_kernel(full).labels[:15]
    assert labels[:5] == ["1", "x0", "x1", "z[x0]", "z[x1]"]
    assert {"x0²", "x0 x1", "x0 z[x1]", "z[x0] z[x1]", "z[x1]²"} <= set(labels)
    polynomial = ParameterMatrixDisplay.from_kernel(ck.GeneralizedPolynomialKernel(np.eye(6), degree=2)).plot()
    assert polynomial.labels == ["1", "x0", "x1", "x0²", "x0 x1", "x1²"]


def test_columns_that_are_left_out_do_not_shift_the_labels():
    X, y = make_moons(60, noise=0.1, random_state=0)
    model = ck.TessellatedSVC(tol=1e-2).fit(np.column_stack([X[:, 0], np.ones(60), X[:, 1]]), y)
    assert ParameterMatrixDisplay.from_estimator(model).labels == ["1", "x0", "x2"] * 2


def test_displays_refuse_what_they_cannot_draw(model, moons):
    with pytest.raises(ck.InvalidInputError, match="needs two features, but X has 3"):
        DecisionSurfaceDisplay.from_estimator(model, np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ck.InvalidInputError, match=r"features must be one or two indices in \[0, 2\), got 2"):
        KernelSliceDisplay.from_kernel(ck.Gaussian(), [0.0, 0.0], limits=(0, 1), features=2)
    two = {"a": ck.Gaussian(), "b": ck.Linear()}
    with pytest.raises(ck.InvalidInputError, match="along one feature"):
        KernelSliceDisplay.from_kernel(two, [0.0, 0.0], limits=[(0, 1), (0, 1)], features=(0, 1))
    with pytest.raises(ck.InvalidInputError, match="got Gaussian"):
        ParameterMatrixDisplay.from_kernel(ck.Gaussian())
    with pytest.raises(ck.InvalidInputError, match="'hours'"):
        CertificateDisplay.from_solution(model.solution_).plot(against="hours")
    with pytest.raises(ck.InvalidInputError, match="two axes"):
        CertificateDisplay.from_solution(model.solution_).plot(plt.gca())


@pytest.mark.parametrize(
    ("display", "whose"),
    [
        (KernelTreeDisplay, "has no tree_; pass a hierarchical estimator"),
        (KernelWeightsDisplay, "has no kernel_names_; pass an estimator that weighs candidates"),
        (SpectralDensityDisplay, "has no initial_kernel_; pass a spectral estimator"),
    ],
)
def test_displays_refuse_estimators_of_another_kind(model, display, whose):
    with pytest.raises(ck.InvalidInputError, match=f"^TessellatedSVC {whose}"):
        display.from_estimator(model)
    with pytest.raises(NotFittedError):
        display.from_estimator(ck.TessellatedSVC())


def test_a_surface_of_numbers_and_a_slice_at_a_text_are_refused_by_name(moons):
    X, y = moons
    ridge = ck.MultipleKernelRidge(lam=1.0).fit(X, X[:, 0])
    with pytest.raises(ck.InvalidInputError, match=r"^MultipleKernelRidge has no classes_; pass a classifier"):
        DecisionSurfaceDisplay.from_estimator(ridge, X, y)
    with pytest.raises(ck.InvalidInputError, match=r"^x0 must hold numbers only"):
        KernelSliceDisplay.from_estimator(ridge, np.array([0.0, "red"], dtype=object))


def test_missing_matplotlib_is_named_with_the_extra_when_something_is_drawn():
    code = """
import sys
sys.modules["matplotlib"] = None
import convexkernels as ck
from convexkernels.plotting import KernelSliceDisplay
display = KernelSliceDisplay.from_kernel(ck.Gaussian(), [0.0], limits=(-1, 1))
try:
    display.plot()
except ImportError as error:
    print(isinstance(error, ck.ConvexKernelsError), error)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("True drawing needs matplotlib")
    assert "pip install 'convexkernels[plot]'" in shown


def test_a_fit_that_begins_at_its_end_has_whole_iterations_on_its_axis():
    X, y = make_friedman1(80, noise=1.0, random_state=0)
    model = ck.TessellatedRidge(tol=1e-2).fit(X, y)
    assert len(model.solution_.history) == 1
    drawn = CertificateDisplay.from_estimator(model).plot().ax_[1]
    assert all(tick == round(tick) for tick in drawn.get_xticks().tolist())
    plt.close("all")
