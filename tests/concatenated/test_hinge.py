"""The outermost layer as a support vector machine: what it learns, and how it shares its inner map."""

import numpy as np
import pytest
from sklearn.svm import SVC

from convexkernels import (
    ConcatenatedKernelClassifier,
    Concatenations,
    Gaussian,
    InvalidInputError,
    OuterLearning,
    Polynomial,
    TrainingValue,
)
from convexkernels.losses import Hinge
from convexkernels.losses.fit import fit


def rings(m=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, np.where(np.hypot(*X.T) > 0.7, 1.0, -1.0)


def stated(X, y, C):
    return OuterLearning(Concatenations([Gaussian(1.0), Polynomial(2)], mu=0.05), Hinge(C), TrainingValue(), X, y)


def test_learned_kernel_beats_the_outer_kernel_alone_and_scikit_learn_reproduces_its_machine():
    X, y = rings()
    C = 5.0
    solution = stated(X, y, C).solve(restarts=4, random_state=0)
    alone = fit(Hinge(C), Gaussian(1.0)(X), y[None, :], np.ones(60), tol=1e-10).value / C
    assert solution.value < 0.5 * alone
    peer = SVC(C=C, kernel=solution.kernel, tol=1e-8).fit(X, y)
    T = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    assert np.allclose(solution.decision_function(T), peer.decision_function(T), atol=0.01)


def test_several_outputs_share_the_inner_map():
    X, y = rings()
    Y = np.column_stack([y, np.where(X[:, 0] > 0, 1.0, -1.0)])
    solution = stated(X, Y, 5.0).solve(restarts=2, random_state=0, tol=1e-3)
    assert solution.decision_function(X).shape == (60, 2)
    assert np.mean(np.sign(solution.decision_function(X)) == Y) > 0.95


def test_the_function_of_a_certified_point_is_the_certified_one(monkeypatch):
    X, y = rings()
    problem = stated(X, y, 5.0)
    theta = problem.start(0)
    certificate = problem.certificate(theta)
    anew = problem.with_loss(Hinge(5.0)).train(theta)
    solved = []
    monkeypatch.setattr(Hinge, "maximize_all", lambda *arguments, **settings: solved.append(1) or anew.alpha)
    found = problem.train(theta)
    assert not solved
    assert found.value / 5.0 + problem.gram_set.at(theta).penalty == pytest.approx(certificate.value, rel=1e-9)
    np.testing.assert_allclose(found.W, anew.W, atol=1e-6)
    for other, point in ((problem, 0.5 * theta), (problem.with_loss(Hinge(5.0)), theta)):
        other.train(point)
        assert solved.pop()


def test_what_was_certified_more_coarsely_is_solved_to_what_is_asked_for():
    X, y = rings()
    family = Concatenations([Gaussian(1.0), Polynomial(2)], mu=0.05)
    problem = OuterLearning(family, Hinge(5.0), TrainingValue(tol=1e-2), X, y)
    theta = problem.start(0)
    problem.certificate(theta)
    found = problem.train(theta)
    assert found.upper - found.value <= 1e-8 * found.upper
    np.testing.assert_allclose(found.W, stated(X, y, 5.0).train(theta).W, atol=1e-4)


def test_every_class_teaches_maps(monkeypatch):
    monkeypatch.setattr("convexkernels.estimators.concatenated.base.MAP_SECONDS", 1e6)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), [2] * 40 + [12] * 20)
    X = rng.standard_normal((60, 3))[y] + 0.1 * rng.standard_normal((len(y), 3))
    settings = {"lam": 0.1, "mu": 0.1, "n_restarts": 1, "random_state": 0, "max_time": 500.0}
    model = ConcatenatedKernelClassifier(loss="hinge", **settings).fit(X, y)
    assert model.solution_.problem.m < len(y)
    assert (model.solution_.problem.Y.max(axis=1) == 1.0).all()


def test_maps_learn_from_as_many_rows_as_a_limit_leaves_time_for(monkeypatch):
    monkeypatch.setattr("convexkernels.estimators.concatenated.base.MAP_SECONDS", 600.0)
    X, y = rings(300)
    settings = {"n_restarts": 1, "random_state": 0, "max_time": 500.0, "lam": 0.1, "mu": 0.1}
    assert ConcatenatedKernelClassifier(loss="hinge", **settings).fit(X, y).solution_.problem.m == 300
    three = np.digitize(X[:, 0], [-0.3, 0.3])  # three functions have a third of it each
    few = ConcatenatedKernelClassifier(loss="hinge", **(settings | {"max_time": 300.0})).fit(X, three)
    assert few.solution_.problem.m == pytest.approx(2000 * (300.0 / (600.0 * 8 * 3)) ** 0.57, abs=3)
    assert ConcatenatedKernelClassifier(**(settings | {"max_time": 300.0})).fit(X, three).solution_.problem.m == 300


def test_refuses_labels_by_value():
    X, y = rings()
    with pytest.raises(InvalidInputError, match="-1 and \\+1"):
        stated(X, y + 1, 1.0)
