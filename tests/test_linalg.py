"""Projections, against their optimality conditions, and factorizations."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import cho_solve

from convexkernels.bases.monomials import expansion, monomial_basis
from convexkernels.linalg import (
    eigh,
    leading_eigenpair,
    project_simplex,
    project_spectraplex,
    shifted_cholesky,
    sorted_qr,
)

entries = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


@given(entries, st.floats(1e-3, 1e3))
@settings(max_examples=100, deadline=None)
def test_simplex_projection_is_feasible_and_nearest(values, total):
    v = np.array(values)
    u = project_simplex(v, total)
    assert (u >= 0).all()
    assert u.sum() == pytest.approx(total, rel=1e-9)
    # (v - u)'(vertex - u) <= 0 for every vertex of the simplex characterizes the projection.
    inner = total * (v - u) - (v - u) @ u
    assert inner.max() <= 1e-9 * (1 + np.abs(v).max()) * total * len(v)


@given(st.lists(st.sampled_from([0.0, 1e-30, 1e-3, 0.3, 1.0]), min_size=1, max_size=40), st.floats(1e-3, 1e3))
@settings(max_examples=100, deadline=None)
def test_what_is_on_the_simplex_but_for_rounding_stays_as_it_is(values, total):
    """Subtracting the excess of a sum that is rounding would make a small weight of every 0."""
    v = np.array([1.0, *values])
    v = total * (v / v.sum())
    u = project_simplex(v, total)
    np.testing.assert_array_equal(u, v)
    assert u is not v
    above = project_simplex(v + 1e-9 * total, total)
    np.testing.assert_allclose(above, v, atol=1e-12 * total)


def test_simplex_projection_of_huge_entries():
    np.testing.assert_array_equal(project_simplex(np.array([1e32, -3e32, 1e5])), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("seed", range(8))
def test_spectraplex_projection_is_feasible_and_nearest(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 6)) * 10 ** rng.uniform(-2, 2)
    A = A + A.T
    trace = 10 ** rng.uniform(-2, 2)
    P = project_spectraplex(A, trace)
    assert np.linalg.eigvalsh(P)[0] >= -1e-12 * trace
    assert np.trace(P) <= trace * (1 + 1e-12)
    # <A - P, V - P> <= max over the set of <A - P, V> - <A - P, P> = 0 at the projection.
    R = A - P
    best = max(trace * np.linalg.eigvalsh(R)[-1], 0.0)
    assert best - np.sum(R * P) <= 1e-9 * np.abs(A).max() * trace


def test_points_of_the_spectraplex_stay():
    A = np.diag([0.2, 0.3, 0.0])
    np.testing.assert_allclose(project_spectraplex(A, 1.0), A, atol=1e-15)


def test_leading_eigenvalue_is_not_below_the_exact_one():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(5, 5))
        A = A @ A.T
        value, vector = leading_eigenpair(A)
        assert value >= vector @ A @ vector
        assert value == pytest.approx(np.linalg.norm(A, 2), rel=1e-12)


def test_cholesky_shifts_no_more_than_rounding_asks_for():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(30, 6))
    A, right = half @ half.T, rng.normal(size=30)
    definite = A + np.eye(30)
    np.testing.assert_allclose(
        cho_solve(shifted_cholesky(definite), right), np.linalg.solve(definite, right), rtol=1e-9
    )
    low_rank = cho_solve(shifted_cholesky(A), A @ right)
    np.testing.assert_allclose(A @ low_rank, A @ right, rtol=1e-5, atol=1e-6)
    assert shifted_cholesky(A - 0.1 * np.eye(30)) is None
    assert shifted_cholesky(np.full((3, 3), np.nan)) is None


@pytest.mark.parametrize(
    ("center", "degree"), [([1e3], 3), ([1e6], 3), ([7e2, -1e3], 3), ([1e5, 0.2, 3e4], 2), ([1e3, 3e-2], 4)]
)
def test_small_combinations_of_far_monomials_keep_their_digits(center, degree):
    """Against 60 digits: without an order of rows and columns the last row has none left."""
    n = len(center)
    powers = monomial_basis(n, degree, 0).x_powers
    T = expansion(powers, np.array(center), np.full(n, 0.5))
    Q, R, pivots = sorted_qr(T)
    np.testing.assert_allclose(Q @ R, T, atol=1e-14 * np.abs(T).max())
    np.testing.assert_allclose(Q.T @ Q, np.eye(len(T)), atol=1e-13)
    assert not np.tril(R[:, pivots], -1).any()
    with mp.workdps(60):
        exact = np.array(mp.qr(mp.matrix(T[:, pivots].tolist()))[1].tolist(), dtype=float)
    exact *= np.sign(np.diagonal(exact) * np.diagonal(R[:, pivots]))[:, None]
    sizes = np.abs(exact).max(axis=1)
    assert sizes[-1] < 1e-9 * sizes[0]
    assert (np.abs(R[:, pivots] - exact).max(axis=1) <= 1e-10 * sizes).all()


def test_eigenvalues_are_found_where_divide_and_conquer_fails(rng, monkeypatch):
    def failing(A):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    A = rng.standard_normal((9, 9))
    A, gap = A + A.T, A.copy()
    expected = np.linalg.eigh(A)[0]
    monkeypatch.setattr(np.linalg, "eigh", failing)
    values, vectors = eigh(A)
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-12)
    gap[0, 0] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        eigh(gap)
