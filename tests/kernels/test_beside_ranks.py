"""The kernel of features and their ranks against ranks that are counted."""

import numpy as np
import pytest
from scipy.stats import rankdata

import convexkernels as ck
from convexkernels.kernels.beside_ranks import beside_ranks


def test_ranks_at_entries_are_shares_below_and_not_above():
    rng = np.random.default_rng(0)
    values = np.column_stack([np.round(rng.normal(size=40), 1), rng.exponential(size=40)])
    mapped = beside_ranks(values, values)
    np.testing.assert_array_equal(mapped[:, :2], values)
    expected = 2.0 * (np.column_stack([rankdata(column) for column in values.T]) - 0.5) / 40.0 - 1.0
    np.testing.assert_allclose(mapped[:, 2:], expected, atol=1e-14)


def test_ranks_are_straight_between_entries_and_constant_outside():
    values = np.array([[0.0], [1.0], [3.0]])
    ranks = beside_ranks(np.array([[-9.0], [0.5], [2.0], [9.0]]), values)[:, 1]
    np.testing.assert_allclose(ranks, [-2.0 / 3.0, -1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0])


def test_columns_of_two_entries_have_none():
    values = np.column_stack([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 3.0, 2.0]])
    assert beside_ranks(values, values).shape == (4, 4)


def test_is_the_kernel_of_the_mapped_points():
    rng = np.random.default_rng(1)
    values, X, Y = rng.normal(size=(20, 3)), rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    kernel = ck.BesideRanks(ck.Gaussian(0.7), values)
    np.testing.assert_allclose(kernel(X, Y), ck.Gaussian(0.7)(beside_ranks(X, values), beside_ranks(Y, values)))
    np.testing.assert_allclose(kernel.blocks(X)(slice(0, 3), slice(2, 6)), kernel(X)[:3, 2:], atol=1e-15)
    assert ck.check_psd(kernel, X)
    with pytest.raises(ck.InvalidInputError, match="values has 3 features"):
        kernel(np.zeros((2, 2)))


def test_a_family_of_trees_sees_ranks_of_its_table_on_any_rows():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    family = ck.Trees(3, ranks_of=X)
    problem = ck.OuterLearning(family, ck.LeastSquares(0.1), ck.LeaveOneOut(), X[:30], y[:30])
    solution = problem.solve(max_iter=3, random_state=0)
    whole, z = family.on(X), problem.split(solution.theta)[0]
    K = whole.at(z).gram()
    np.testing.assert_allclose(solution.kernel(X), K, atol=1e-12)
    np.testing.assert_allclose(whole.restrict(np.arange(5, 15)).at(z).gram(), K[5:15, 5:15], atol=1e-12)
    with pytest.raises(ck.InvalidInputError, match="ranks_of has 2 features"):
        family.on(np.zeros((4, 3)))
