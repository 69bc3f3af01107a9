"""The outermost layer as a support vector machine: its value, the envelope gradient, and what it learns."""

import numpy as np
import pytest
from sklearn.svm import SVC

from convexkernels import Gaussian, InvalidInputError, Matern, Polynomial
from convexkernels.losses import EpsilonInsensitive, Hinge, LeastSquares
from convexkernels.outer import ConcatenatedLearning, InnerProgram, SquaredError
from convexkernels.outer.concatenated_search import random_start


def rings(m=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, np.where(np.hypot(*X.T) > 0.7, 1.0, -1.0)


@pytest.mark.parametrize("intercept", [True, False])
def test_value_is_the_optimum_of_the_support_vector_machine(intercept):
    X, y = rings()
    C = 3.0
    machine = InnerProgram(Hinge(C, intercept=intercept), ridge=0.0).solve(Gaussian(1.0)(X), y[:, None])
    K = Gaussian(1.0)(X)
    f = machine.predict(K)[:, 0]
    w = machine.coefficients[:, 0]
    primal = np.sum(np.maximum(0.0, 1.0 - y * f)) + w @ K @ w / (2 * C)
    assert machine.value == pytest.approx(primal, rel=1e-8)
    if intercept:
        peer = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y)
        assert np.allclose(f, peer.decision_function(K), atol=1e-5)


@pytest.mark.parametrize("depth", [2, 3])
def test_envelope_gradient_agrees_with_central_differences(depth):
    X, y = rings(30)
    layers = [Matern(2), Gaussian(0.5), Polynomial(2)][-depth:] if depth == 3 else [Matern(2), Polynomial(2)]
    problem = ConcatenatedLearning(layers, InnerProgram(Hinge(2.0), tol=1e-13), X, y, mu=0.1)
    coordinates, u = random_start(problem, np.random.default_rng(3))
    step = 1e-6 * np.linalg.norm(u)
    numeric = [
        (problem.evaluate(coordinates, u + e).value - problem.evaluate(coordinates, u - e).value) / (2 * step)
        for e in step * np.eye(u.size)
    ]
    gradient = problem.evaluate(coordinates, u).gradient()
    assert np.allclose(gradient, numeric, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())


def test_learned_kernel_beats_the_outer_kernel_alone_and_scikit_learn_reproduces_its_machine():
    X, y = rings()
    C, mu = 5.0, 0.05
    problem = ConcatenatedLearning([Gaussian(1.0), Polynomial(2)], InnerProgram(Hinge(C)), X, y, mu=mu)
    solution = problem.solve(n_restarts=4, random_state=0)
    alone = InnerProgram(Hinge(C), ridge=0.0).solve(Gaussian(1.0)(X), y[:, None]).value
    assert solution.value < 0.5 * alone
    peer = SVC(C=C, kernel=solution.kernel, tol=1e-8).fit(X, y)
    T = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    assert np.allclose(solution.decision_function(T), peer.decision_function(T), atol=0.01)


def test_several_machines_share_the_inner_map():
    X, y = rings()
    Y = np.column_stack([y, np.where(X[:, 0] > 0, 1.0, -1.0)])
    problem = ConcatenatedLearning([Gaussian(1.0), Polynomial(2)], InnerProgram(Hinge(5.0)), X, Y, mu=0.05)
    solution = problem.solve(n_restarts=2, random_state=0, tol=1e-3)
    assert solution.decision_function(X).shape == (60, 2)
    assert np.mean(np.sign(solution.decision_function(X)) == Y) > 0.95


def test_refuses_labels_and_losses_by_value():
    X, y = rings()
    with pytest.raises(InvalidInputError, match="-1 and \\+1"):
        ConcatenatedLearning([Gaussian(1.0), Polynomial(2)], InnerProgram(Hinge(1.0)), X, y + 1)
    with pytest.raises(InvalidInputError, match="loss must be a loss such as Hinge"):
        InnerProgram("hinge")


@pytest.mark.parametrize("loss", [EpsilonInsensitive(4.0, 0.1), LeastSquares(0.1), LeastSquares(0.1, intercept=False)])
def test_every_loss_of_the_library_has_the_right_gradient(loss):
    X, y = rings(25)
    y = y + X[:, 0]
    inner = InnerProgram(loss, tol=1e-13)
    problem = ConcatenatedLearning([Matern(2), Polynomial(2)], inner, X, y, mu=0.1)
    coordinates, u = random_start(problem, np.random.default_rng(3))
    step = 1e-5
    numeric = [
        (problem.evaluate(coordinates, u + e).value - problem.evaluate(coordinates, u - e).value) / (2 * step)
        for e in step * np.eye(u.size)
    ]
    gradient = problem.evaluate(coordinates, u).gradient()
    assert np.allclose(gradient, numeric, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())


def test_least_squares_of_the_library_is_the_closed_form():
    X, y = rings(30)
    K = Gaussian(1.0)(X)
    one = InnerProgram(LeastSquares(0.2, intercept=False), ridge=0.0).solve(K.copy(), y[:, None])
    two = SquaredError(0.2).solve(K.copy(), y[:, None])
    assert one.value == pytest.approx(two.value, rel=1e-10)
    assert np.allclose(one.coefficients, two.coefficients)


@pytest.mark.parametrize("loss", [Hinge(3.0), EpsilonInsensitive(3.0, 0.2), LeastSquares(0.1)])
def test_risk_is_the_sum_of_the_losses(loss):
    rng = np.random.default_rng(0)
    F, Y = rng.normal(size=(20, 2)), np.sign(rng.normal(size=(20, 2)))
    expected = {
        Hinge: np.maximum(0, 1 - Y * F),
        EpsilonInsensitive: np.maximum(0, np.abs(Y - F) - 0.2),
        LeastSquares: (Y - F) ** 2,
    }[type(loss)]
    assert InnerProgram(loss).risk(F, Y) == pytest.approx(expected.sum())
