"""The function that is returned is the one that is certified, whatever the targets and the precision are."""

import numpy as np
import pytest

import convexkernels as ck


def box_of(X):
    return ck.Box(X.min(axis=0), X.max(axis=0))


def objective(solution, X, y, C):
    """The primal objective of the function a user gets, from its own values and coefficients."""
    w = np.zeros(len(y))
    w[solution.function.support] = solution.function.W[0]
    K = solution.kernel(X)
    return 0.5 * w @ K @ w + C * np.maximum(0.0, 1.0 - y * solution.decision_function(X)).sum()


@pytest.mark.parametrize(("m", "n", "C"), [(59, 8, 1e4), (100, 6, 1e3)])
def test_hinge_returns_the_multiple_that_attains_the_bound(m, n, C):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((m, n)), rng.choice([-1.0, 1.0], m)
    family = ck.Tessellated(degree=1, z_degree=0, box=box_of(X))
    solution = ck.KernelLearning(family, ck.Hinge(C), X, y).solve()
    assert objective(solution, X, y, C) == pytest.approx(solution.certificate.upper, rel=1e-6)
    w = np.zeros(m)
    w[solution.function.support] = solution.function.W[0]
    np.testing.assert_allclose(
        solution.kernel(X) @ w + solution.intercept, solution.decision_function(X), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("loss", [ck.LeastSquares(0.1), ck.EpsilonInsensitive(10.0, 0.1), ck.Pinball(10.0, 0.5)])
def test_targets_far_from_zero_do_not_move_the_bounds(loss, rng):
    X = rng.random((60, 3))
    y = np.sin(5.0 * X[:, 0])
    near = ck.KernelLearning(ck.Tessellated(1, 0), loss, X, y).solve(tol=1e-6)
    far = ck.KernelLearning(ck.Tessellated(1, 0), loss, X, y + 1e8).solve(tol=1e-6)
    assert far.status is ck.Status.OPTIMAL
    assert far.certificate.lower <= near.certificate.upper * (1.0 + 1e-6)
    assert near.certificate.lower <= far.certificate.upper * (1.0 + 1e-6)
    np.testing.assert_allclose(far.decision_function(X) - 1e8, near.decision_function(X), atol=0.02)


def test_weighted_constants_are_their_own_center():
    weights = np.random.default_rng(0).random(28)
    X = np.random.default_rng(1).normal(size=(28, 2))
    for constant in (3.0, 0.1, -1e8 / 3.0):
        family, loss = ck.Candidates([ck.Gaussian(1.0)]), ck.LeastSquares(4.0)
        problem = ck.KernelLearning(family, loss, X, np.full(28, constant), sample_weight=weights)
        assert problem.center == constant
        assert problem.solve(tol=1e-6).value == 0.0


def test_constant_targets_are_solved_exactly(rng):
    X = rng.random((40, 2))
    for loss in (ck.LeastSquares(0.1), ck.EpsilonInsensitive(1.0, 0.1), ck.Pinball(1.0, 0.3)):
        solution = ck.KernelLearning(ck.Tessellated(1, 0), loss, X, np.full(40, 3.0)).solve()
        assert solution.status is ck.Status.OPTIMAL
        np.testing.assert_allclose(solution.decision_function(X), 3.0, atol=0.1 + 1e-9)


def test_certificates_of_float32_problems_are_made_in_float64(rng):
    X = rng.random((80, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0.25, 1.0, -1.0)
    families = [ck.Tessellated(1, 0), ck.Candidates([ck.Gaussian(g) for g in (0.5, 5.0)], "mean")]
    for family in families:
        single = ck.KernelLearning(family, ck.Hinge(10.0), X, y, dtype="float32")
        double = ck.KernelLearning(family, ck.Hinge(10.0), X, y)
        point = single.solve(tol=1e-4)
        assert point.certificate.gap >= 0.0
        there = double.certificate(point.theta, point.alpha, point.witness)
        assert point.certificate.upper == pytest.approx(there.upper, rel=1e-12)
        assert point.certificate.lower == pytest.approx(there.lower, rel=1e-12)


def test_parameters_that_overflow_are_refused_by_name(rng):
    X, y = rng.random((10, 2)), rng.random(10)
    for bad in (1e300, 1e-300):
        with pytest.raises(ck.InvalidInputError, match="lam must be a finite number"):
            ck.LeastSquares(lam=bad)
        with pytest.raises(ck.InvalidInputError, match="C must be a finite number"):
            ck.Hinge(C=bad)
    with pytest.raises(ck.InvalidInputError, match="y has an entry of magnitude"):
        ck.KernelLearning(ck.Tessellated(1, 0), ck.LeastSquares(0.1), X, y * 1e300)


def test_a_program_keeps_its_answer(rng):
    X = rng.random((15, 2))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    program = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0), ck.Gaussian(9.0)]), ck.Hinge(1.0), X, y).to_cvxpy()
    program.problem.solve(solver="CLARABEL")
    assert program.problem.value is not None
    before = program.problem
    program.constraints.append(program.theta[0] >= 0.4)
    assert program.problem is not before, "a constraint of one's own makes another program"


@pytest.mark.parametrize("loss", [ck.Hinge(10.0), ck.LeastSquares(0.1)])
def test_the_matrix_of_the_certificate_serves_the_function_and_the_intercept(loss, monkeypatch, rng):
    X = rng.random((30, 2))
    problem = ck.KernelLearning(ck.Tessellated(1, 0), loss, X, np.where(X[:, 0] > 0.5, 1.0, -1.0))
    formed, matrices = [], type(problem.gram_set)
    gram = matrices.gram
    monkeypatch.setattr(matrices, "gram", lambda self, *given, **named: formed.append(1) or gram(self, *given, **named))
    solution = problem.solve()
    searched = len(formed)
    assert solution.decision_function(X).shape == (30,)
    assert np.isfinite(solution.intercept)
    assert len(formed) == searched
    solution.verify()
    assert len(formed) == searched + 1


def test_the_lower_bound_is_that_of_the_best_multiple(rng):
    X = rng.standard_normal((20, 2))
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0), ck.Linear()]), ck.LeastSquares(0.1), X, X[:, 0])
    alpha = problem.feasible(30.0 * problem.solve().alpha)
    found = problem.measure(problem.gram_set.initial(), alpha, problem.gram_set.matrix(problem.gram_set.initial()))
    sigma, scale = problem.gram_set.support(problem.gram_set.adjoint(found.W))[0], problem.loss.scale
    values = [
        scale * problem.loss.dual_constant(s * alpha[0], problem.Y[0], problem.weights) - 0.5 * scale * s**2 * sigma
        for s in np.linspace(0.0, 1.0, 20001)
    ]
    assert 0 < np.argmax(values) < 20000
    assert problem.lower_bound(found)[0] == pytest.approx(max(values), rel=1e-6)
