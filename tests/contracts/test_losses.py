"""Every loss in the table keeps the contract of :class:`convexkernels.Loss`, for fixed Gram matrices."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from convexkernels import Gaussian, InvalidInputError
from convexkernels.losses import LOSSES
from convexkernels.losses.fit import fit

M = 25


@pytest.fixture(params=LOSSES)
def case(request, rng):
    """A loss with targets of its kind, a definite matrix and sample weights."""
    kind, make = LOSSES[request.param]
    X = rng.uniform(size=(M, 2))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(M)
    if kind == "labels":
        y = np.where(y > np.median(y), 1.0, -1.0)
    loss = make()
    K = Gaussian(3.0)(X) + 1e-3 * np.eye(M)
    return loss, K, loss.targets(y, M)[0], rng.uniform(0.2, 2.0, M)


def values(loss, K, y, weights, alpha):
    """Dual and primal value of the same alpha."""
    w = loss.coefficients(alpha, y)
    quadratic = float(w @ K @ w)
    dual = loss.dual_constant(alpha, y, weights) - 0.5 * quadratic
    return dual, loss.primal(K @ w, quadratic, y, weights)[0]


def test_any_feasible_alpha_is_below_any_function(case, rng):
    loss, K, y, weights = case
    points = [loss.feasible(scale * rng.standard_normal(M), y, weights) for scale in (0.01, 0.1, 1.0, 10.0)]
    duals = [values(loss, K, y, weights, alpha)[0] for alpha in points]
    primals = []
    for _ in range(20):
        w = rng.standard_normal(M) * rng.choice([0.0, 0.01, 0.1, 1.0])
        primals.append(loss.primal(K @ w, float(w @ K @ w), y, weights)[0])
    assert max(duals) <= min(primals)


def test_maximize_closes_the_gap_and_matches_the_conic_program(case):
    loss, K, y, weights = case
    alpha = loss.maximize(K, y, weights, tol=1e-9)
    dual, primal = values(loss, K, y, weights, alpha)
    assert primal - dual >= -1e-12 * abs(primal)
    assert primal - dual <= 2e-9 * abs(primal)
    statement = loss.statement(y, weights)
    whitened = np.linalg.inv(np.linalg.cholesky(K)) @ statement.u  # |whitened|^2 = u' K^-1 u
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(whitened) + statement.cost), statement.constraints)
    assert program.solve(solver=cp.CLARABEL) == pytest.approx(primal, rel=1e-6)


def test_feasible_repairs_once_and_leaves_feasible_points_alone(case, rng):
    loss, K, y, weights = case
    alpha = loss.feasible(3.0 * rng.standard_normal(M), y, weights)
    np.testing.assert_allclose(loss.feasible(alpha, y, weights), alpha, rtol=1e-12, atol=1e-14)
    w = loss.coefficients(alpha, y)
    np.testing.assert_array_equal(loss.coefficients(loss.dual_variable(w, y), y), w)
    if loss.intercept:
        assert abs(w.sum()) <= 1e-12 * np.abs(w).sum()
    optimum = loss.maximize(K, y, weights, tol=1e-8)
    np.testing.assert_allclose(loss.feasible(optimum, y, weights), optimum, rtol=1e-9, atol=1e-12)


def test_multiples_of_alpha_follow_a_parabola(case, rng):
    """What lets a problem choose the best multiple of a witness: c(s alpha) is linear plus quadratic in s."""
    loss, _, y, weights = case
    alpha = loss.feasible(rng.standard_normal(M), y, weights)
    scales = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    c = np.array([loss.dual_constant(s * alpha, y, weights) for s in scales])
    is_parabola = np.abs(np.diff(c, 3)).max() <= 1e-12 * np.abs(c).max()
    assert is_parabola == loss.has_parabola
    assert c[0] == 0.0
    for s in scales:
        np.testing.assert_allclose(loss.feasible(s * alpha, y, weights), s * alpha, rtol=1e-12, atol=1e-14)


def test_intercept_of_the_primal_is_the_best_one(case, rng):
    loss, K, y, weights = case
    w = 0.1 * rng.standard_normal(M)
    f, quadratic = K @ w, float(w @ K @ w)
    value, b, _ = loss.primal(f, quadratic, y, weights)
    if not loss.intercept:
        assert b == 0.0
        return
    alone = type(loss).__new__(type(loss))
    alone.__dict__.update(loss.__dict__, intercept=False)

    def at(shift):
        return alone.primal(f + shift, quadratic, y, weights)[0]

    best = min(minimize_scalar(at, bracket=(c - 0.5, c + 0.5)).fun for c in np.linspace(-3.0, 3.0, 7))
    assert value <= best + 1e-9 * abs(best)
    assert at(b) == pytest.approx(value, rel=1e-9)


def test_weights_count_like_repeated_rows(case, rng):
    loss, K, y, _ = case
    times = rng.integers(1, 4, M)
    rows = np.repeat(np.arange(M), times)
    whole = loss.maximize(K[np.ix_(rows, rows)], y[rows], np.ones(rows.size), tol=1e-9)
    brief = loss.maximize(K, y, times.astype(float), tol=1e-9)
    once = values(loss, K, y, times.astype(float), brief)[1]
    assert values(loss, K[np.ix_(rows, rows)], y[rows], np.ones(rows.size), whole)[1] == pytest.approx(once, rel=1e-7)


def test_rows_of_weight_zero_are_as_good_as_absent(case):
    loss, K, y, weights = case
    weights[::3] = 0.0
    kept = weights > 0
    alpha = loss.maximize(K, y, weights, tol=1e-9)
    assert not alpha[~kept].any()
    fewer = loss.maximize(K[np.ix_(kept, kept)], y[kept], weights[kept], tol=1e-9)
    whole = values(loss, K, y, weights, alpha)[1]
    assert values(loss, K[np.ix_(kept, kept)], y[kept], weights[kept], fewer)[1] == pytest.approx(whole, rel=1e-7)


@pytest.mark.parametrize("start", ["optimum", "garbage"])
def test_warm_start_reaches_the_same_optimum(case, start, rng):
    loss, K, y, weights = case
    cold = loss.maximize(K, y, weights, tol=1e-9)
    begin = cold if start == "optimum" else 5.0 * rng.standard_normal(M)
    before = begin.copy()
    warm = loss.maximize(K, y, weights, start=begin, tol=1e-9)
    np.testing.assert_array_equal(begin, before)
    dual, primal = values(loss, K, y, weights, warm)
    assert primal - dual <= 2e-9 * abs(primal)
    assert dual == pytest.approx(values(loss, K, y, weights, cold)[0], rel=1e-8)


def test_several_outputs_are_those_of_one_at_a_time(case):
    loss, K, y, weights = case
    Y = np.array([y, -y, y[::-1]])
    together = loss.maximize_all(K, Y, weights, tol=1e-10)
    for row, alpha in zip(Y, together, strict=True):
        alone = loss.maximize(K, row, weights, tol=1e-10)
        assert values(loss, K, row, weights, alpha)[0] == pytest.approx(
            values(loss, K, row, weights, alone)[0], rel=1e-9
        )


def test_the_optimum_of_a_search_is_that_of_a_fit(case):
    loss, K, y, weights = case
    weights[::4] = 0.0
    Y = np.array([y, -y])
    found = fit(loss, K, Y, weights, tol=1e-11)
    _, W, value = loss.optimum(K, Y, weights, tol=1e-11)
    assert value == pytest.approx(found.value, rel=1e-9)
    np.testing.assert_allclose(K @ W.T, K @ found.W.T, atol=1e-4)
    assert not W[:, ::4].any()


def test_singular_and_single_precision_matrices(case, rng):
    loss, _, y, weights = case
    A = rng.standard_normal((M, 3))
    K = A @ A.T
    if loss.needs_definite:
        assert fit(loss, K, y[None, :], weights).upper == np.inf
        return
    alpha = loss.maximize(K, y, weights, tol=1e-7)
    dual, primal = values(loss, K, y, weights, alpha)
    assert primal - dual <= 2e-7 * abs(primal)
    rounded = loss.maximize(K.astype(np.float32), y, weights, tol=1e-6)
    dual, primal = values(loss, K, y, weights, rounded)
    assert primal - dual <= 1e-4 * abs(primal)


def test_scaling_of_target_and_matrix(case):
    """K -> s K and the price of errors -> price / s leave the function alone (the loss table says which price)."""
    loss, K, y, weights = case
    alpha = loss.maximize(K, y, weights, tol=1e-10)
    other = loss.at(5.0 * loss.lam)
    scaled = other.maximize(5.0 * K, y, weights, tol=1e-10)
    np.testing.assert_allclose(
        5.0 * K @ other.coefficients(scaled, y), K @ loss.coefficients(alpha, y), atol=1e-4 * np.abs(y).max()
    )


def test_targets_are_refused_by_name(case):
    loss = case[0]
    for bad, said in [
        ([1.0, np.nan] * 3, "missing or infinite"),
        ([1.0, -1.0], "rows"),
        (["a", "b"] * 3, "numbers"),
        (np.ones((6, 2, 2)), "shape"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            loss.targets(bad, 6)


def test_regularization_parameter_weighs_the_norm_against_the_sum_of_losses(case):
    """J / cost is the least ``sum weights loss + lam |f|^2``, whatever the loss calls its own parameter."""
    loss, K, y, weights = case
    found = fit(loss, K, y[None, :], weights, tol=1e-10)
    F = K @ found.W[0] + found.b[0]
    losses, _ = loss.pointwise(y, F)
    objective = weights @ losses + loss.lam * found.W[0] @ K @ found.W[0]
    assert objective == pytest.approx(found.upper / loss.cost, rel=1e-7)
    assert found.upper >= found.value * (1.0 - 1e-9)
    again = loss.at(3.0 * loss.lam).at(loss.lam)
    assert again.lam == pytest.approx(loss.lam)
    assert type(again) is type(loss)


def test_slopes_are_those_of_the_losses(case, rng):
    loss, _, y, _ = case
    F = 3.0 * rng.standard_normal(M)
    (up, _), (down, _), (_, slopes) = (loss.pointwise(y, F + h) for h in (1e-6, -1e-6, 0.0))
    np.testing.assert_allclose(slopes, (up - down) / 2e-6, atol=1e-6)


def test_constant_has_the_least_loss(case):
    loss, _, y, weights = case
    [b] = loss.constant(y[None, :], weights)
    others = b + np.linspace(-2.0, 2.0, 81)
    best = weights @ loss.pointwise(y, np.full(M, b))[0]
    assert all(best <= weights @ loss.pointwise(y, np.full(M, c))[0] + 1e-9 for c in others)
