"""Every kernel in the table keeps the contract of :class:`convexkernels.Kernel`."""

import pickle
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

from convexkernels import InvalidInputError, NotDifferentiableError
from convexkernels.checking import check_gradient, gram_and_error
from convexkernels.kernels import KERNELS

WIDTHS = [1, 2, 4]


def duplicated(rng, n):
    X = np.repeat(rng.uniform(size=(9, n)), 4, axis=0)
    X[-3:] += 1e-12
    return X


def constant_column(rng, n):
    X = rng.uniform(size=(30, n))
    X[:, 0] = 0.25
    return X


POINT_SETS = {
    "uniform": lambda rng, n: rng.uniform(size=(40, n)),
    "clustered": lambda rng, n: 0.5 + 1e-7 * rng.standard_normal((30, n)),
    "duplicated": duplicated,
    "constant column": constant_column,
    "corners": lambda rng, n: rng.integers(0, 2, size=(30, n)).astype(float),
    "outside the unit box": lambda rng, n: rng.normal(0.5, 2.0, size=(40, n)),
    "one point": lambda rng, n: rng.uniform(size=(1, n)),
}


@pytest.fixture(params=KERNELS)
def example(request):
    return KERNELS[request.param]


@pytest.fixture(params=WIDTHS, ids=lambda n: f"n={n}")
def n(request):
    return request.param


def close(actual, expected):
    """Equal up to rounding at the scale of the whole matrix."""
    scale = max(1e-300, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-11 * scale)


@pytest.mark.parametrize("points", POINT_SETS)
def test_symmetric_and_positive_semidefinite(example, n, points, rng):
    kernel, X = example(n), POINT_SETS[points](rng, n)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    _, E = gram_and_error(kernel, X)
    values = np.linalg.eigvalsh(K)
    # Weyl: the error of the entries, measured, and the backward error of the eigenvalues.
    bound = np.linalg.norm(E) + len(X) * np.finfo(float).eps * np.abs(values).max()
    assert values[0] >= -bound
    assert bound <= 1e-7 * max(1e-300, values[-1]), "the entries are not accurate enough to tell"


@pytest.mark.parametrize("points", POINT_SETS)
def test_diagonal_and_blocks_agree_with_the_matrix(example, n, points, rng):
    kernel, X = example(n), POINT_SETS[points](rng, n)
    K = kernel(X)
    close(kernel.diag(X), np.diag(K))
    close(kernel(X, X), K)
    half = len(X) // 2
    if half:
        close(kernel(X[:half], X[half:]), K[:half, half:])
        close(kernel(X[half:], X[:half]), K[half:, :half])


def test_shapes_types_and_freshness(example, n, rng):
    kernel, X, Y = example(n), rng.uniform(size=(7, n)), rng.uniform(size=(5, n))
    K = kernel(X, Y)
    assert K.shape == (7, 5)
    assert kernel(X).shape == (7, 7)
    assert kernel.diag(X).shape == (7,)
    assert K.dtype == kernel.diag(X).dtype == np.float64
    K[:] = -1.0  # the caller owns the result
    assert (kernel(X, Y) != -1.0).all()


def test_permuted_rows_permute_the_matrix(example, n, rng):
    kernel, X, Y = example(n), rng.uniform(size=(20, n)), rng.uniform(size=(15, n))
    p, q = rng.permutation(20), rng.permutation(15)
    close(kernel(X[p], Y[q]), kernel(X, Y)[np.ix_(p, q)])


def test_inputs_are_untouched(example, n, rng):
    kernel, X, Y = example(n), rng.uniform(size=(12, n)), rng.uniform(size=(8, n))
    M = rng.standard_normal((12, 8))
    copies = [a.copy() for a in (X, Y, M)]
    for array in (X, Y, M):
        array.setflags(write=False)
    before = pickle.dumps(kernel.get_params(deep=True))
    kernel(X), kernel(X, Y), kernel.diag(X)
    with suppress(NotDifferentiableError):
        kernel.pullback(X, Y, M)
    for array, copy in zip((X, Y, M), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert pickle.dumps(kernel.get_params(deep=True)) == before


def test_lists_other_layouts_and_other_types_give_the_same_matrix(example, n, rng):
    kernel, X = example(n), rng.integers(0, 2, size=(10, n)).astype(float)
    K = kernel(X)
    for same in (X.tolist(), np.asfortranarray(X), X.astype(np.float32), X.astype(int), np.repeat(X, 2, axis=0)[::2]):
        close(kernel(same), K)


def test_clone_and_parameters(example, n, rng):
    kernel, X = example(n), rng.uniform(size=(10, n))
    copy = clone(kernel)
    assert type(copy) is type(kernel)
    assert copy is not kernel
    np.testing.assert_array_equal(copy(X), kernel(X))
    again = clone(kernel).set_params(**kernel.get_params(deep=False))
    np.testing.assert_array_equal(again(X), kernel(X))
    assert repr(kernel).startswith(type(kernel).__name__)


def test_numbers_can_be_set_by_their_deep_names(example, n):
    kernel = clone(example(n))
    numbers = {k: v for k, v in kernel.get_params(deep=True).items() if isinstance(v, float)}
    for name, value in numbers.items():
        kernel.set_params(**{name: 2.0 * value})
        assert kernel.get_params(deep=True)[name] == 2.0 * value
    with pytest.raises(ValueError, match="no_such_parameter"):
        kernel.set_params(no_such_parameter=1.0)


def test_pickling_keeps_the_kernel(example, n, rng):
    kernel, X = example(n), rng.uniform(size=(10, n))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(X), kernel(X))


def skip_without_derivative(kernel, n):
    X = np.full((2, n), 0.5)
    try:
        kernel.pullback(X, X, np.ones((2, 2)))
    except NotDifferentiableError:
        pytest.skip(f"{kernel!r} says that it has no derivative")


def test_pullback_has_taylor_slope_two(example, n, rng):
    """``f(X + tV) - f(X) - t <pullback, V>`` shrinks like t^2, or is rounding already."""
    kernel = example(n)
    skip_without_derivative(kernel, n)
    X, Y, M = rng.uniform(size=(12, n)), rng.uniform(size=(9, n)), rng.standard_normal((12, 9))
    V = rng.standard_normal(X.shape)
    slope = float((kernel.pullback(X, Y, M) * V).sum())
    steps = 10.0 ** -np.array([2.0, 3.0, 4.0])
    f = [float((M * kernel(X + t * V, Y)).sum()) for t in (0.0, *steps)]
    rounding = 64 * np.finfo(float).eps * np.abs(M * kernel(X, Y)).sum()
    remainders = [abs(f[k + 1] - f[0] - t * slope) for k, t in enumerate(steps)]
    for coarse, fine in pairwise(remainders):
        order = np.log10(coarse / fine) if fine > 0 else np.inf
        assert fine <= rounding or order > 1.8, (remainders, rounding)


def test_linearized_is_the_matrix_and_twice_the_pullback(example, n, rng):
    kernel, X = example(n), rng.uniform(size=(9, n))
    M = rng.standard_normal((9, 9))
    M += M.T
    K, slope = kernel.linearized(X)
    np.testing.assert_array_equal(K, K.T)
    close(K, kernel(X))
    with suppress(NotDifferentiableError):
        close(slope(M), 2.0 * kernel.pullback(X, X, M))


def test_pullback_agrees_with_extrapolated_differences(example, n, rng):
    kernel = example(n)
    skip_without_derivative(kernel, n)
    verdict = check_gradient(kernel, rng.uniform(size=(8, n)), rng.uniform(size=(7, n)), trials=3, rng=rng)
    assert verdict.holds, str(verdict)


TABLE = np.arange(6.0).reshape(3, 2)
WITH_NAN = np.where(TABLE == 3, np.nan, TABLE)
BAD_TABLES = {
    "NaN": (WITH_NAN, "row 1, column 1"),
    "infinite": (np.where(TABLE == 3, np.inf, TABLE), "row 1, column 1"),
    "text": ([["a", "b"]], "numbers"),
    "one axis": (np.arange(3.0), "shape"),
    "three axes": (np.zeros((2, 2, 2)), "shape"),
    "no rows": (np.zeros((0, 2)), "empty"),
    "no columns": (np.zeros((2, 0)), "empty"),
    "overflowing": (np.full((2, 2), 1e300), "rescale"),
    "complex": (TABLE + 1j, "complex"),
    "ragged": ([[1.0, 2.0], [1.0]], "numbers"),
    "nothing": (None, "X|Y"),
}


@pytest.mark.parametrize("bad", BAD_TABLES)
def test_bad_points_are_refused_by_name(example, bad):
    kernel, (table, phrase) = example(2), BAD_TABLES[bad]
    for call, name in [
        (lambda: kernel(table), "X"),
        (lambda: kernel.diag(table), "X"),
        (lambda: kernel(TABLE, table), "Y"),
        (lambda: kernel.pullback(TABLE, table, np.zeros((3, 2))), "Y"),
    ]:
        if table is None and name == "Y":
            continue  # Y=None stands for X
        with pytest.raises(InvalidInputError, match=phrase) as refusal:
            call()
        assert str(refusal.value).startswith(name)


def test_tables_of_different_width_are_refused(example):
    with pytest.raises(InvalidInputError, match="Y has 3 features, but 2"):
        example(2)(TABLE, np.zeros((4, 3)))


def test_usable_as_kernel_of_a_support_vector_machine(example, n, rng):
    kernel, X, Z = example(n), rng.uniform(size=(30, n)), rng.uniform(size=(10, n))
    y = np.where(X.sum(axis=1) + 0.1 * rng.standard_normal(30) > n / 2, 1, -1)
    called = SVC(kernel=kernel, C=1.0, tol=1e-8).fit(X, y)
    precomputed = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(kernel(X), y)
    np.testing.assert_allclose(
        called.decision_function(Z), precomputed.decision_function(kernel(Z, X)), atol=1e-5, rtol=1e-5
    )
