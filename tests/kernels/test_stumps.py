"""The kernel of decision stumps against the stumps themselves, and what ranks leave out."""

import numpy as np
import pytest

import convexkernels as ck


def test_is_the_share_of_stumps_that_two_points_pass():
    rng = np.random.default_rng(0)
    values, X, Y = np.round(rng.normal(size=(11, 3)), 1), rng.normal(size=(8, 3)), np.round(rng.normal(size=(5, 3)), 1)
    thresholds = np.sort(values, axis=0)
    # A stump at an entry of the table is passed beyond it, and half of the time at it.
    passed = [((thresholds < Z[:, None]) + 0.5 * (thresholds == Z[:, None])).sum(axis=1) / 11 for Z in (X, Y)]
    expected = np.minimum(passed[0][:, None], passed[1][None]).mean(axis=2)
    kernel = ck.Stumps(values)
    np.testing.assert_allclose(kernel(X, Y), expected, atol=1e-15)
    np.testing.assert_allclose(kernel.diag(X), kernel(X).diagonal(), atol=1e-15)
    assert ck.check_psd(kernel, X)


def test_functions_are_sums_of_functions_of_one_column():
    rng = np.random.default_rng(1)
    kernel = ck.Stumps(rng.random((20, 2)))
    X, w = rng.random((20, 2)), rng.normal(size=20)
    corners = np.array([[0.2, 0.3], [0.2, 0.8], [0.7, 0.3], [0.7, 0.8]])
    f = kernel(corners, X) @ w
    assert f[0] - f[1] - f[2] + f[3] == pytest.approx(0.0, abs=1e-12)
    pairs = ((kernel + 0.25) * (kernel + 0.25))(corners, X) @ w
    assert abs(pairs[0] - pairs[1] - pairs[2] + pairs[3]) > 1e-3


def test_increasing_maps_of_columns_make_no_difference_and_the_outside_is_constant():
    rng = np.random.default_rng(2)
    values, X = rng.normal(size=(15, 2)), rng.normal(size=(9, 2))
    np.testing.assert_array_equal(ck.Stumps(np.exp(values))(np.exp(X)), ck.Stumps(values)(X))
    far = ck.Stumps(values)(np.array([[1e3, 1e3], [1e9, 1e99], [-1e3, -1e9]]))
    np.testing.assert_array_equal(far, [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])


def test_other_tables_are_refused():
    with pytest.raises(ck.InvalidInputError, match="values has 2 features"):
        ck.Stumps(np.zeros((4, 2)))(np.zeros((3, 3)))
