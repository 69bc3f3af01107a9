"""The Matern kernels against scikit-learn, the printed Bessel formula, finite differences and each other."""

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from convexkernels import (
    Centered,
    Gaussian,
    InvalidInputError,
    Matern,
    Normalized,
    OnColumns,
    Polynomial,
    TensorMatern,
    WeightedSum,
)
from convexkernels.exceptions import NotDifferentiableError
from convexkernels.kernels.matern import without_kinks

SMOOTH = [(1, 0.1), (1.2, 0.0), (1.5, 0.0), (1.7, 0.02), (2, 0.0), (2, 0.3), (2.5, 0.0), (3, 0.0), (4, 0.01)]


@pytest.fixture
def points():
    rng = np.random.default_rng(3)
    return rng.uniform(-1, 1, (12, 3)), rng.uniform(-1, 1, (9, 3))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.8, 1.0, 3.7])
def test_agrees_with_scikit_learn(points, nu):
    X, Y = points
    ours = Matern(order=nu + 0.5, length=0.6 / np.sqrt(2 * nu))
    assert np.allclose(ours(X, Y), SklearnMatern(length_scale=0.6, nu=nu)(X, Y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_is_the_printed_formula_up_to_its_factor(points, order):
    X, Y = points
    nu = (2 * order - 1) / 2
    r = np.linalg.norm(X[:, None] - Y, axis=2)
    printed = kv(nu, r) * r**nu
    assert np.allclose(2 ** (nu - 1) * gamma(nu) * Matern(order)(X, Y), printed, rtol=1e-12)
    r = np.abs(X[:, None] - Y)
    printed = np.prod(kv(nu, r) * r**nu, axis=2)
    factor = (2 ** (nu - 1) * gamma(nu)) ** X.shape[1]
    assert np.allclose(factor * TensorMatern(order)(X, Y), printed, rtol=1e-12)


@pytest.mark.parametrize(("order", "smoothing"), [*SMOOTH, (1, 0.0), (0.7, 0.0)])
def test_tensor_kernel_is_the_product_over_features(points, order, smoothing):
    X, Y = points
    product = 1.0
    for j in range(X.shape[1]):
        product = product * OnColumns(Matern(order, 0.7, smoothing), [j])(X, Y)
    assert np.allclose(TensorMatern(order, 0.7, smoothing)(X, Y), product, rtol=1e-12)


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
def test_whole_orders_are_the_limit_of_the_bessel_form(points, kind):
    X, Y = points
    for order in (1, 2, 3, 6):
        assert np.allclose(kind(order)(X, Y), kind(order + 1e-9)(X, Y), atol=1e-7)
        if order > 1:
            M = np.ones((len(X), len(Y)))
            near = kind(order + 1e-9).pullback(X, Y, M)
            assert np.allclose(kind(order).pullback(X, Y, M), near, atol=1e-6)


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
@pytest.mark.parametrize(("order", "smoothing"), SMOOTH)
def test_pullback_is_the_derivative(points, kind, order, smoothing):
    X, Y = points
    rng = np.random.default_rng(0)
    kernel, M, direction = kind(order, 0.8, smoothing), rng.normal(size=(12, 9)), rng.normal(size=X.shape)
    step = 1e-5
    numeric = np.sum(M * (kernel(X + step * direction, Y) - kernel(X - step * direction, Y))) / (2 * step)
    assert np.sum(kernel.pullback(X, Y, M) * direction) == pytest.approx(numeric, rel=1e-7)


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
@pytest.mark.parametrize(("order", "smoothing"), SMOOTH)
def test_derivative_vanishes_where_points_meet(kind, order, smoothing):
    X = np.array([[0.3, -0.2], [0.3, -0.2]])
    assert np.array_equal(kind(order, 1.0, smoothing).pullback(X, X, np.ones((2, 2))), np.zeros((2, 2)))


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
@pytest.mark.parametrize("order", [0.6, 1])
def test_kinked_kernels_have_no_derivative_and_say_what_helps(points, kind, order):
    X, Y = points
    with pytest.raises(NotDifferentiableError, match=r"order > 1 .* or smoothing > 0"):
        kind(order).pullback(X, Y, np.ones((12, 9)))


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
@pytest.mark.parametrize(("order", "smoothing"), [*SMOOTH, (1, 0.0), (0.7, 0.0)])
def test_positive_semidefinite_on_clustered_and_repeated_points(kind, order, smoothing):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (20, 2))
    X = np.vstack([X, X[:5], X[:5], X[:10] + 1e-7, 100 + X[:5]])
    kernel = kind(order, 0.9, smoothing)
    K = kernel(X)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * len(X)
    assert np.array_equal(K, K.T)
    assert np.allclose(np.diag(K), 1.0, rtol=0, atol=1e-14)
    assert np.allclose(kernel.diag(X), 1.0)


@pytest.mark.parametrize("order", [1, 2, 3, 1.7, 20])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_many_features_are_a_product_of_as_many_kernels(order, smoothing):
    X = np.zeros((4, 700))
    X[1, 0], X[2, :5], X[3, ::7] = 10.0, 3.0, 0.1
    logarithms = [np.log(Matern(order, 0.5, smoothing)(column[:, None])) for column in X.T]
    assert np.allclose(TensorMatern(order, 0.5, smoothing)(X), np.exp(sum(logarithms)), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
def test_high_orders_are_gaussians_without_overflow(kind):
    X = np.array([[0.0], [3.0], [40.0], [1e4], [1e150]])
    order = 300
    K = kind(order)(X)
    assert np.allclose(K[:3, :3], np.exp(-((X[:3] - X[:3].T) ** 2) / (4.0 * order - 2.0)), atol=1e-2)
    assert np.isfinite(K).all()
    assert (K[3, :3] < 1e-50).all()


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
def test_far_and_near_points_neither_overflow_nor_underflow(kind):
    X = np.array([[0.0], [1e-300], [1e-12], [1e4], [1e8]])
    for order in (0.7, 1, 2, 2.5, 20, 20.3):
        K = kind(order)(X)
        assert np.isfinite(K).all()
        assert K[0, 1] == pytest.approx(1.0)
        assert K[0, 4] == 0.0
        if order > 1:
            assert np.isfinite(kind(order).pullback(X, X, np.ones((5, 5)))).all()


@pytest.mark.parametrize("kind", [Matern, TensorMatern])
@pytest.mark.parametrize("bad", [{"order": 0.5}, {"order": "2"}, {"length": 0.0}, {"smoothing": -1e-3}])
def test_refuses_parameters_by_name(points, kind, bad):
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        kind(**bad)(points[0])


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(1, 0.7),
        TensorMatern(1),
        2.0 * Matern(1) + Gaussian(),
        WeightedSum([Matern(1), Gaussian(1.0)], [1.0, 1.0]),
        WeightedSum((Gaussian(1.0), OnColumns(WeightedSum([Matern(1)], [1.0]), [0])), [1.0, 1.0]),
    ],
    ids=repr,
)
def test_kinks_are_smoothed_wherever_a_kernel_is(points, kernel):
    X, Y = points
    said, M = repr(kernel), np.ones((len(X), len(Y)))
    with pytest.raises(NotDifferentiableError):
        kernel.pullback(X, Y, M)
    smooth = without_kinks(kernel, 1e-3)
    assert np.isfinite(smooth.pullback(X, Y, M)).all()
    assert np.allclose(smooth(X, Y), kernel(X, Y), atol=0.01)
    assert repr(kernel) == said
    assert without_kinks(smooth, 1e-3) is smooth


@pytest.mark.parametrize("kernel", [Normalized(Polynomial(2)), Centered(Gaussian(), [[0.0]])])
def test_kernels_without_a_derivative_say_what_has_one(kernel):
    with pytest.raises(NotDifferentiableError, match="but not normalized or centered"):
        kernel.pullback(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
