"""Every family in the table keeps the contract of :class:`convexkernels.Family` and its Gram matrices."""

import pickle

import cvxpy as cp
import numpy as np
import pytest

from convexkernels.families import FAMILIES, example_points
from convexkernels.families.precomputed import row_numbers

M = 14


@pytest.fixture(params=FAMILIES)
def name(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "modulo constants"])
def modulo(request):
    return request.param


def points(family, rng):
    """Training points and new points."""
    if family.of_rows:
        return row_numbers(M), row_numbers(M)[[3, 0, 7, 7]]
    return tuple(example_points(family, rng.uniform(size=(m, 3))) for m in (M, 6))


def on_points(name, modulo, rng):
    family = FAMILIES[name]()
    X, Z = points(family, rng)
    return family.on(X, modulo_constants=modulo), X, Z


def some_theta(gram_set, rng):
    """A direction in the space of theta: symmetric where theta is a matrix."""
    theta = rng.standard_normal(gram_set.initial().shape)
    return 0.5 * (theta + theta.T) if theta.ndim == 2 else theta


def some_coefficients(modulo, rng, rows=2):
    W = rng.standard_normal((rows, M))
    W[:, rng.random(M) < 0.3] = 0.0
    if modulo:
        W -= (W.sum(axis=1) / (W != 0).sum(axis=1))[:, None] * (W != 0)
    return W


def close(actual, expected, rtol=1e-10):
    scale = max(1e-300, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=rtol * scale)


def test_gram_is_linear_symmetric_and_writes_where_told(name, modulo, rng):
    gram_set, _, _ = on_points(name, modulo, rng)
    first, second = some_theta(gram_set, rng), some_theta(gram_set, rng)
    before = first.copy()
    K = gram_set.gram(first)
    close(gram_set.gram(2.0 * first - 0.5 * second), 2.0 * K - 0.5 * gram_set.gram(second))
    close(K, K.T)
    out = np.full((M, M), np.nan)
    assert gram_set.gram(first, out=out) is out
    close(out, K)
    np.testing.assert_array_equal(first, before)
    assert gram_set.m == M


def test_adjoint_identity(name, modulo, rng):
    gram_set, _, _ = on_points(name, modulo, rng)
    W, theta = some_coefficients(modulo, rng), some_theta(gram_set, rng)
    K = gram_set.gram(theta)
    terms = np.array([w @ K @ w for w in W])
    size = max(float(np.abs(K).max() * np.abs(W).sum(axis=1).max() ** 2), abs(terms.sum()))
    assert np.vdot(gram_set.adjoint(W), theta) == pytest.approx(terms.sum(), abs=1e-11 * size)


def test_derivative_is_the_image_of_w(name, modulo, rng):
    gram_set, _, _ = on_points(name, modulo, rng)
    w, theta, rows = some_coefficients(modulo, rng, rows=1)[0], some_theta(gram_set, rng), np.array([1, 4, 5, 9])
    derivative = gram_set.derivative(w, rows)
    if derivative is None:
        return
    K = gram_set.gram(theta)
    expected = (K @ w)[rows]
    found = np.tensordot(derivative, theta, axes=theta.ndim)
    if modulo:  # what all rows have in common may be missing
        found, expected = found - found.mean(), expected - expected.mean()
    size = np.abs(K).max() * np.abs(w).sum()
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * size)


def in_theta(gram_set, theta, tol=1e-7):
    statement = gram_set.statement()
    statement.theta.value = theta
    return all(np.max(np.abs(constraint.violation())) <= tol for constraint in statement.constraints)


def test_initial_and_projected_points_lie_in_theta_and_give_psd_matrices(name, modulo, rng):
    gram_set, _, _ = on_points(name, modulo, rng)
    size = float(np.abs(gram_set.initial()).max())
    for theta in (gram_set.initial(), *(gram_set.project(3.0 * size * some_theta(gram_set, rng)) for _ in range(5))):
        assert in_theta(gram_set, theta)
        if not modulo:
            values = np.linalg.eigvalsh(gram_set.gram(theta))
            assert values[0] >= -1e-8 * values[-1]
    inside = gram_set.project(2.0 * size * some_theta(gram_set, rng))
    close(gram_set.project(inside), inside, rtol=1e-7)


def test_projection_is_the_nearest_point(name, rng):
    gram_set, _, _ = on_points(name, False, rng)
    size = float(np.abs(gram_set.initial()).max())
    for _ in range(3):
        target = 2.0 * size * some_theta(gram_set, rng)
        statement = gram_set.statement()
        distance = cp.Problem(cp.Minimize(cp.sum_squares(statement.theta - target)), statement.constraints)
        reference = distance.solve(solver=cp.CLARABEL)
        assert np.sum((gram_set.project(target) - target) ** 2) == pytest.approx(reference, rel=1e-5)


def test_support_function_against_points_of_theta_and_the_conic_program(name, modulo, rng):
    gram_set, _, _ = on_points(name, modulo, rng)
    size = float(np.abs(gram_set.initial()).max())
    for trial in range(3):
        D = gram_set.adjoint(some_coefficients(modulo, rng, rows=1 + trial))
        sigma, vertex = gram_set.support(D)
        assert in_theta(gram_set, vertex)
        assert np.vdot(D, vertex) == pytest.approx(sigma, rel=1e-6)
        for _ in range(20):
            theta = gram_set.project(3.0 * size * some_theta(gram_set, rng))
            assert np.vdot(D, theta) <= sigma * (1.0 + 1e-9)
        statement = gram_set.statement()
        scaled = D / np.abs(D).max()
        program = cp.Problem(cp.Maximize(cp.sum(cp.multiply(scaled, statement.theta))), statement.constraints)
        reference = program.solve(solver=cp.CLARABEL) * np.abs(D).max()
        assert sigma == pytest.approx(reference, rel=2e-6)


def test_cross_agrees_with_gram_and_with_the_kernel(name, modulo, rng):
    gram_set, X, Z = on_points(name, modulo, rng)
    theta = gram_set.project(some_theta(gram_set, rng))
    close(gram_set.cross(theta, X), gram_set.gram(theta), rtol=1e-9)
    kernel, cross = gram_set.kernel(theta), gram_set.cross(theta, Z)
    difference = kernel(Z, X) - cross
    if modulo:  # terms u(z) + v(x) may be missing: they vanish between two rows and two columns
        difference = difference - difference[:1] - difference[:, :1] + difference[0, 0]
    close(difference + kernel(Z, X), kernel(Z, X), rtol=1e-9)
    index = np.array([5, 2, 11])
    close(gram_set.restrict(index).cross(theta, Z), cross[:, index])


def test_with_constants_makes_up_for_the_terms_left_out(name, modulo, rng):
    gram_set, X, Z = on_points(name, modulo, rng)
    theta = gram_set.project(some_theta(gram_set, rng))
    w = some_coefficients(True, rng, rows=1)[0]
    whole = gram_set.kernel(theta)(Z, X)
    size = np.abs(whole).max() * np.abs(w).sum()
    left = whole @ w + gram_set.with_constants(theta, w)
    np.testing.assert_allclose(left, gram_set.cross(theta, Z) @ w, rtol=0.0, atol=1e-10 * size)


def test_statement_describes_the_same_matrices(name, rng):
    gram_set, _, _ = on_points(name, False, rng)
    theta = gram_set.project(some_theta(gram_set, rng))
    statement = gram_set.statement()
    statement.theta.value = theta
    K = gram_set.gram(theta)
    close(statement.gram.value, K, rtol=1e-7)
    if statement.factors is not None:
        close(sum(mu * L @ L.T for mu, L in zip(theta, statement.factors, strict=True)), K, rtol=1e-7)


def test_envelope_is_the_support_function(name, rng):
    gram_set, _, _ = on_points(name, False, rng)
    envelope = gram_set.envelope()
    if envelope is None:
        return
    w = some_coefficients(False, rng, rows=1)
    assert w[0] @ gram_set.gram(envelope) @ w[0] == pytest.approx(gram_set.support(gram_set.adjoint(w))[0], rel=1e-9)


def test_released_and_pickled_sets_answer_as_before(name, modulo, rng):
    gram_set, _, Z = on_points(name, modulo, rng)
    theta, W = gram_set.project(some_theta(gram_set, rng)), some_coefficients(modulo, rng)
    K, D, cross = gram_set.gram(theta), gram_set.adjoint(W), gram_set.cross(theta, Z)
    copy = pickle.loads(pickle.dumps(gram_set))
    gram_set.release()
    for other in (gram_set, copy):
        close(other.gram(theta), K)
        close(other.adjoint(W), D)
        close(other.cross(theta, Z), cross)


def test_single_precision_is_close(name, modulo, rng):
    family = FAMILIES[name]()
    X, _ = points(family, rng)
    double, single = (family.on(X, modulo_constants=modulo, dtype=dtype) for dtype in (np.float64, np.float32))
    theta, W = double.initial(), some_coefficients(modulo, rng)
    close(single.gram(theta), double.gram(theta), rtol=3e-6)
    K = double.gram(theta)
    size = np.abs(K).max() * np.abs(W).sum() ** 2
    exact, rounded = np.vdot(double.adjoint(W), theta), np.vdot(single.adjoint(W), theta)
    assert rounded == pytest.approx(exact, abs=3e-6 * size)
