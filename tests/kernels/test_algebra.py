"""Sums, products and multiples of kernels, and parameters that are refused."""

import numpy as np
import pytest

from convexkernels import Gaussian, InvalidInputError, Linear, OnColumns, Polynomial, Rescaled

TABLE = np.arange(6.0).reshape(3, 2)


def test_algebra_is_arithmetic_of_matrices(rng):
    X, Y = rng.uniform(size=(8, 3)), rng.uniform(size=(6, 3))
    a, b = Gaussian(0.7), Polynomial(2)
    for combined, expected in [
        (a + b, a(X, Y) + b(X, Y)),
        (a * b, a(X, Y) * b(X, Y)),
        (2.5 * a, 2.5 * a(X, Y)),
        (a * 2.5, 2.5 * a(X, Y)),
        (a + 1.5, a(X, Y) + 1.5),
        (1.5 + a, a(X, Y) + 1.5),
        (a + b * Linear() + 0.5, a(X, Y) + b(X, Y) * Linear()(X, Y) + 0.5),
    ]:
        np.testing.assert_allclose(combined(X, Y), expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())


def test_negative_multiples_are_refused():
    with pytest.raises(InvalidInputError, match=r"scale .* -1"):
        (-1.0 * Gaussian())(TABLE)
    with pytest.raises(InvalidInputError, match=r"value .* -1"):
        (Gaussian() + -1.0)(TABLE)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Gaussian(gamma=0.0), "gamma"),
        (Gaussian(gamma=float("nan")), "gamma"),
        (Gaussian(gamma="1"), "gamma"),
        (Polynomial(degree=0), "degree"),
        (Polynomial(degree=1.5), "degree"),
        (Polynomial(offset=-0.1), "offset"),
    ],
)
def test_bad_parameters_are_refused_by_name_when_the_kernel_is_evaluated(kernel, name):
    for call in (lambda: kernel(TABLE), lambda: kernel.diag(TABLE)):
        with pytest.raises(InvalidInputError, match=f"^{name}"):
            call()


def test_rounding_of_a_kernel_on_images_is_that_of_the_kernel_there(rng):
    X = 100.0 * rng.random((30, 2))
    inner = Gaussian(1e-3)
    own = inner._sizes(X)
    assert own.min() > 2.0 * inner.diag(X).max()  # distances are differences of squares
    np.testing.assert_allclose(Rescaled(inner, [1.0, 2.0], [0.5, 0.5])._sizes(0.5 * X + [1.0, 2.0]), own)
    np.testing.assert_array_equal(OnColumns(inner, [0, 1])._sizes(np.column_stack([X, X])), own)


def test_a_rescaled_kernel_is_constant_beyond_its_limits(rng):
    kernel = Rescaled(Polynomial(3), [1.0, 2.0], [0.5, 0.0], ([0.0, -1.0], [2.0, 3.0]))
    X = rng.uniform(0.0, 2.0, (5, 2))
    far = np.array([[1e9, 5.0], [-3.0, -1e12]])
    np.testing.assert_array_equal(kernel(X, far), kernel(X, [[2.0, 3.0], [0.0, -1.0]]))
    np.testing.assert_array_equal(kernel(X), Rescaled(Polynomial(3), [1.0, 2.0], [0.5, 0.0])(X))
    with pytest.raises(InvalidInputError, match="swap them"):
        Rescaled(Linear(), [0.0], [1.0], ([1.0], [0.0]))(X[:, :1])
    with pytest.raises(InvalidInputError, match="a pair"):
        Rescaled(Linear(), [0.0], [1.0], ([1.0],))(X[:, :1])
    with pytest.raises(InvalidInputError, match="limits"):
        Rescaled(Linear(), [0.0, 0.0], [1.0, 1.0], ([1.0], [0.0]))(X)
