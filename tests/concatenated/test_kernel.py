"""The deep kernel: its definition, its derivative, composition with the algebra, and use in kernel machines."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

from convexkernels import Concatenated, Gaussian, InvalidInputError, KernelMap, Matern, Polynomial


@pytest.fixture
def deep():
    """Three layers R^4 -> R^3 -> R^2 -> kernel."""
    rng = np.random.default_rng(5)
    inner = KernelMap(Polynomial(2), rng.normal(size=(6, 4)), 0.1 * rng.normal(size=(6, 3)))
    middle = KernelMap(Gaussian(0.3), rng.normal(size=(5, 3)), rng.normal(size=(5, 2)))
    return Concatenated(Matern(3), [middle, inner])


@pytest.fixture
def points():
    rng = np.random.default_rng(6)
    return rng.normal(size=(9, 4)), rng.normal(size=(7, 4))


def test_is_the_outer_kernel_at_the_images(deep, points):
    X, Y = points
    middle, inner = deep.maps
    images = middle(inner(X))
    assert np.array_equal(deep.images(X), images)
    assert np.allclose(deep(X, Y), Matern(3)(images, middle(inner(Y))), rtol=1e-13)
    assert np.allclose(deep.diag(X), np.diag(deep(X)))


def test_no_maps_is_the_outer_kernel(points):
    X, Y = points
    assert np.array_equal(Concatenated(Gaussian(0.4), [])(X, Y), Gaussian(0.4)(X, Y))


def test_concatenation_of_concatenations_is_one_longer_concatenation(deep, points):
    X, Y = points
    middle, inner = deep.maps
    nested = Concatenated(Concatenated(deep.outer, [middle]), [inner])
    M = np.random.default_rng(0).normal(size=(9, 7))
    assert np.allclose(nested(X, Y), deep(X, Y), rtol=1e-13)
    assert np.allclose(nested.pullback(X, Y, M), deep.pullback(X, Y, M), rtol=1e-11)


def test_pullback_is_the_derivative(deep, points):
    X, Y = points
    rng = np.random.default_rng(1)
    kernel, M, direction = 0.5 * deep + Gaussian(0.1), rng.normal(size=(9, 7)), rng.normal(size=X.shape)
    step = 1e-5
    numeric = np.sum(M * (kernel(X + step * direction, Y) - kernel(X - step * direction, Y))) / (2 * step)
    assert np.sum(kernel.pullback(X, Y, M) * direction) == pytest.approx(numeric, rel=1e-7)


def test_positive_semidefinite_and_usable_in_a_support_vector_machine(deep, points):
    X = np.vstack([*points, points[0][:3]])
    assert np.linalg.eigvalsh(deep(X))[0] > -1e-12
    labels = (X[:, 0] > 0).astype(int)
    machine = SVC(kernel=deep, C=10.0).fit(X, labels)
    same = SVC(kernel="precomputed", C=10.0).fit(deep(X), labels)
    assert np.allclose(machine.decision_function(X), same.decision_function(deep(X)), atol=1e-6)


def test_clone_keeps_parameters_and_values(deep, points):
    copy = clone(deep)
    assert copy is not deep
    assert copy.maps[0] is not deep.maps[0]
    assert np.array_equal(copy(points[0]), deep(points[0]))


def test_mismatched_layers_are_refused_by_what_was_found(deep, points):
    middle, inner = deep.maps
    with pytest.raises(InvalidInputError, match="expects 4 features, but receives 2"):
        Concatenated(Gaussian(1.0), [inner, middle, inner])(points[0])
    with pytest.raises(InvalidInputError, match="coefficients has 2 rows, but there are 3 centers"):
        KernelMap(Gaussian(1.0), np.eye(3), np.ones((2, 1)))(np.eye(3))
