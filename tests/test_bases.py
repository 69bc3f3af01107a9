"""Monomial indexing, box integrals and the evaluation of tessellated kernels, against sympy and quadrature."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convexkernels.bases.integrals import box_integrals, interval_ratios, symbolic_entry
from convexkernels.bases.monomials import count_monomials, exact_rank, exponents, monomial_basis, monomials
from convexkernels.bases.tessellation.adjoint import adjoint
from convexkernels.bases.tessellation.box import margin_slope
from convexkernels.bases.tessellation.gram import Tessellation
from convexkernels.exceptions import InvalidInputError, MemoryLimitError

SIZES = [(n, d) for n in (1, 2, 3, 4) for d in (0, 1, 2, 3)]


def random_psd(rng, size, rank=None):
    half = rng.normal(size=(size, rank or size))
    return half @ half.T / size


def by_quadrature(basis, lower, upper, P, x, y):
    """The defining integral: Gauss-Legendre on the pieces between which the indicators are constant, exact there."""
    nodes, weights = np.polynomial.legendre.leggauss(basis.degree + 1)
    axes = []
    for a, b, u, v in zip(lower, upper, x, y, strict=True):
        cuts = np.unique([a, u, v, b])
        half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
        axes.append(((middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()))
    z = np.array(list(product(*(points for points, _ in axes))))
    volume = np.prod(list(product(*(w for _, w in axes))), axis=1)

    def N(point):
        Z = np.prod(z[:, None, :] ** basis.gamma, axis=2) * np.prod(point**basis.delta, axis=1)
        above = (z >= point).all(axis=1)[:, None]
        return np.hstack([Z * above, Z * ~above])

    return np.einsum("k,ki,ij,kj", volume, N(x), P, N(y), optimize=True)


@pytest.mark.parametrize(("n", "degree"), SIZES)
def test_exponents_are_all_monomials_once_and_graded(n, degree):
    powers = exponents(n, degree)
    total = powers.sum(axis=1)
    assert len(powers) == comb(n + degree, degree) == len({tuple(row) for row in powers})
    assert (np.diff(total) >= 0).all()
    assert total.max() == degree
    assert (powers >= 0).all()


def test_order_of_the_paper_for_two_features_and_degree_one():
    basis = monomial_basis(2, 1)
    assert basis.delta.tolist() == [[0, 0], [1, 0], [0, 1], [0, 0], [0, 0]]
    assert basis.gamma.tolist() == [[0, 0], [0, 0], [0, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize("unit", [1.0, -1e-300, 1e300])
def test_the_exact_rank_is_that_of_the_points_that_doubles_are(rng, unit):
    """Of random points, of a grid, whose rank is that of its products of powers, and of points that nearly coincide."""
    for n, degree in SIZES:
        powers = exponents(n, degree)
        for m in (1, 5, 40):
            assert exact_rank(unit * rng.normal(size=(m, n)), powers) == min(m, len(powers))
    grid = np.array(list(product(np.linspace(0.0, 1.0, 4), repeat=2)))
    assert exact_rank(unit * grid, exponents(2, 7)) == 16
    assert exact_rank(unit * grid, exponents(2, 3)) == 10
    assert exact_rank(unit * np.column_stack([grid, grid[:, 0]]), exponents(3, 3)) == 10
    near = unit * np.array([[0.5], [0.5 + 1e-13], [0.5 + 2e-13], [1.0]])
    assert [exact_rank(near, exponents(1, degree)) for degree in range(4)] == [1, 2, 3, 4]
    assert exact_rank(near[:0], exponents(1, 3)) == 0


@pytest.mark.parametrize(
    "x", [[0.0, 2.0**-31, 1.0], [0.5, 0.5 + 2.0**-32, 1.0], [1.0, 2.0, 2.0**31 + 1.0], [0, 2**31 - 1, 7]]
)
def test_the_exact_rank_knows_powers_of_two_apart(x):
    assert exact_rank(np.array(x, dtype=float)[:, None], exponents(1, 2)) == 3


@pytest.mark.parametrize(("n", "degree"), SIZES)
def test_number_of_monomials(n, degree):
    assert monomial_basis(n, degree).q == count_monomials(n, degree) == comb(2 * n + degree, degree)
    assert monomial_basis(n, degree, 0).q == count_monomials(n, degree, 0) == comb(n + degree, degree)


def test_monomials_are_products_of_powers():
    X = np.random.default_rng(0).normal(size=(7, 3))
    powers = exponents(3, 3)
    np.testing.assert_allclose(monomials(X, powers), np.prod(X.T[None] ** powers[:, :, None], axis=1), rtol=1e-13)


@given(u=st.floats(-3, 3), width=st.floats(1e-9, 3), k=st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_interval_ratios_do_not_cancel(u, width, k):
    from fractions import Fraction

    b = u + width
    U, B = Fraction(u), Fraction(b)
    if U == B:
        return
    exact = float((B ** (k + 1) - U ** (k + 1)) / ((k + 1) * (B - U)))
    found = interval_ratios(np.array([[u]]), np.array([b]), 6)[k, 0, 0]
    scale = max(abs(u), abs(b)) ** k  # the largest of the terms that are added
    assert abs(found - exact) <= 30 * np.finfo(float).eps * scale


@pytest.mark.parametrize(("n", "degree"), [(1, 3), (2, 2), (3, 1)])
def test_box_integrals_are_products_of_intervals(n, degree):
    rng = np.random.default_rng(1)
    basis = monomial_basis(n, degree)
    U, b = rng.random((n, 5)), 1.0 + rng.random(n)
    zeta = basis.sums + 1
    expected = np.prod((b[None, :, None] ** zeta[:, :, None] - U[None] ** zeta[:, :, None]) / zeta[:, :, None], axis=1)
    np.testing.assert_allclose(box_integrals(U, b, basis), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "degree"), SIZES)
def test_compiled_kernel_agrees_with_the_symbolic_corollary(n, degree):
    """k = sum Q g + R t + R' t~ + S h over the entries of Corollary 13 as sympy expressions, for a sparse P."""
    import sympy

    basis = monomial_basis(n, degree)
    q = basis.q
    rng = np.random.default_rng(10 * n + degree)
    lower, upper = -rng.random(n), 1 + rng.random(n)
    some = rng.choice(q, size=min(q, 4), replace=False)
    P = np.zeros((2 * q, 2 * q))
    rows = np.concatenate([some, q + some])
    P[np.ix_(rows, rows)] = random_psd(rng, len(rows))
    X = rng.random((3, n))
    tessellation = Tessellation(basis, lower, upper)
    points = tessellation.points(X)
    K = tessellation.gram(P, points, points)
    expected = np.zeros((3, 3))
    for i, j in product(some, some):
        entry = symbolic_entry(basis, i, j)
        symbols = [s for letter in "xyabp" for s in entry[letter]]
        evaluate = sympy.lambdify(symbols, [entry[name] for name in ("g", "t", "t_mirror", "h")])
        for u, v in product(range(3), range(3)):
            g, t, mirror, h = evaluate(*X[u], *X[v], *lower, *upper, *np.maximum(X[u], X[v]))
            expected[u, v] += P[i, j] * g + P[i, q + j] * t + P[q + i, j] * mirror + P[q + i, q + j] * h
    np.testing.assert_allclose(K, expected, rtol=1e-9)


def test_symbolic_entries_hold_the_example_of_the_appendix():
    """n = 2, degree 1, box [0, 3] x [0, 4]: g_11, g_24 and the corrected t~_24 = t_42(y, x)."""
    import sympy

    basis = monomial_basis(2, 1)
    x, y, a, b, p = (symbolic_entry(basis, 0, 0)[letter] for letter in "xyabp")
    box = {a[0]: 0, a[1]: 0, b[0]: 3, b[1]: 4}
    at = lambda name, i, j: symbolic_entry(basis, i, j)[name].subs(box)  # noqa: E731
    assert sympy.expand(at("g", 0, 0) - (3 - p[0]) * (4 - p[1])) == 0
    assert sympy.expand(at("g", 1, 3) - x[0] * (9 - p[0] ** 2) / 2 * (4 - p[1])) == 0
    exchange = {**dict(zip(x, y, strict=True)), **dict(zip(y, x, strict=True))}
    swapped = symbolic_entry(basis, 3, 1)["t"].subs(exchange, simultaneous=True)
    assert sympy.expand(symbolic_entry(basis, 1, 3)["t_mirror"] - swapped) == 0


@pytest.mark.parametrize(("n", "degree"), [(1, 2), (2, 0), (2, 2), (3, 1)])
@pytest.mark.parametrize("z_degree", [None, 0, 1])
@pytest.mark.parametrize("modulo_constants", [False, True])
def test_slope_in_the_margin_is_that_of_the_matrix(n, degree, z_degree, modulo_constants):
    basis, rng = monomial_basis(n, degree, z_degree), np.random.default_rng(n + 5 * degree)
    P, X, M = random_psd(rng, 2 * basis.q), rng.random((9, n)), random_psd(rng, 9)
    if modulo_constants:
        M = M - M.mean(axis=0)
        M -= M.mean(axis=1, keepdims=True)

    def at(margin):
        t = Tessellation(basis, np.full(n, -margin), np.full(n, 1.0 + margin))
        return t, t.points(X)

    def value(margin):
        t, x = at(margin)
        return np.vdot(M, t.gram(P, x, x, modulo_constants=modulo_constants))

    t, x = at(0.4)
    found = margin_slope(t, P, M, x, modulo_constants=modulo_constants)
    assert found == pytest.approx((value(0.4 + 1e-5) - value(0.4 - 1e-5)) / 2e-5, rel=1e-8)


@pytest.mark.parametrize(("n", "degree"), SIZES)
@pytest.mark.parametrize("z_degree", [None, 0, 1])
def test_compiled_kernel_agrees_with_quadrature(n, degree, z_degree):
    basis = monomial_basis(n, degree, z_degree)
    rng = np.random.default_rng(n + 7 * degree)
    lower, upper = -rng.random(n), 1 + rng.random(n)
    P = random_psd(rng, 2 * basis.q)
    X, Y = rng.random((2, n)), rng.random((2, n))
    tessellation = Tessellation(basis, lower, upper)
    x, y = tessellation.points(X), tessellation.points(Y)
    K = tessellation.gram(P, x, y)
    exact = np.array([[by_quadrature(basis, lower, upper, P, u, v) for v in Y] for u in X])
    scale = np.sqrt(np.outer(tessellation.diagonal(P, x), tessellation.diagonal(P, y)))
    assert (np.abs(K - exact) <= 1e-11 * scale).all()


@pytest.mark.parametrize(("n", "degree", "z_degree"), [(1, 2, None), (3, 1, None), (2, 3, 1), (5, 1, 0), (4, 0, None)])
@pytest.mark.parametrize("modulo_constants", [False, True])
def test_adjoint_identity(n, degree, z_degree, modulo_constants):
    basis = monomial_basis(n, degree, z_degree)
    rng = np.random.default_rng(5)
    tessellation = Tessellation(basis, np.full(n, -0.5), np.full(n, 1.5))
    points = tessellation.points(rng.random((40, n)))
    w = rng.normal(size=40) * (rng.random(40) < 0.6)
    w[w != 0] -= w[w != 0].mean()
    P = random_psd(rng, 2 * basis.q)
    K = tessellation.gram(P, points, points, modulo_constants=modulo_constants)
    D = adjoint(tessellation, w, points, modulo_constants=modulo_constants)
    full = tessellation.gram(P, points, points)
    scale = np.abs(w) @ np.abs(full) @ np.abs(w)
    assert np.sum(D * P) == pytest.approx(w @ K @ w, abs=1e-12 * scale)
    assert w @ K @ w == pytest.approx(w @ full @ w, abs=1e-12 * scale)
    u = tessellation.constants(P, points)
    if modulo_constants:
        np.testing.assert_allclose(full, K + u[:, None] + u[None, :], rtol=1e-10, atol=1e-12 * np.abs(full).max())


def test_the_small_part_survives_a_large_volume():
    """34 features, margin 2: the pair part is 1e10 times smaller than the volume, and still exact."""
    n, m = 34, 30
    rng = np.random.default_rng(0)
    X = rng.random((m, n))
    basis = monomial_basis(n, 0)
    tessellation = Tessellation(basis, np.full(n, -2.0), np.full(n, 3.0))
    points = tessellation.points(X)
    w = rng.normal(size=m)
    w -= w.mean()
    D = adjoint(tessellation, w, points, modulo_constants=True)
    G = np.prod(3.0 - np.maximum(X[:, None], X[None]), axis=2)
    exact = w @ G @ w
    np.testing.assert_allclose(D, exact * np.array([[1, -1], [-1, 1]]), rtol=1e-10)


def test_points_outside_move_to_the_box():
    basis = monomial_basis(2, 1)
    tessellation = Tessellation(basis, np.zeros(2), np.ones(2))
    P = random_psd(np.random.default_rng(0), 2 * basis.q)
    outside, nearest = np.array([[-5.0, 0.4], [2.0, 3.0]]), np.array([[0.0, 0.4], [1.0, 1.0]])
    a, b = tessellation.points(outside), tessellation.points(nearest)
    np.testing.assert_array_equal(tessellation.gram(P, a, a), tessellation.gram(P, b, b))


def test_bad_degrees_are_refused_by_name():
    with pytest.raises(InvalidInputError, match=r"degree must be a whole number >= 0, got -1"):
        monomial_basis(2, -1)
    with pytest.raises(InvalidInputError, match=r"z_degree must be a whole number >= 0, got 0.5"):
        monomial_basis(2, 1, 0.5)


def test_more_monomials_than_memory_names_q_and_the_remedy():
    with pytest.raises(MemoryLimitError, match=r"q = \d+ monomials.*Use z_degree=0 \(q = \d+\)"):
        monomial_basis(300, 3)
