"""What single criteria and families promise beyond the contract of all."""

from functools import partial

import numpy as np
import pytest

from convexkernels import (
    Candidates,
    Gaussian,
    HeldOut,
    Hinge,
    Interpolation,
    InvalidInputError,
    KernelLearning,
    LeastSquares,
    LeaveOneOut,
    OuterLearning,
    Polynomial,
    Span,
    Tessellated,
    TrainingValue,
    Trees,
    UnitBox,
    Widths,
)
from convexkernels.families.box import Box
from convexkernels.families.curved.convex import Convex

M = 36


def table(rng):
    X = rng.random((M, 2))
    return X, np.sin(4.0 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(M)


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_what_leaving_one_out_gives(intercept, rng):
    X, y = table(rng)
    weights = rng.uniform(0.5, 2.0, M)
    Y = np.column_stack([y, X[:, 0] ** 2])
    problem = OuterLearning(Widths(), LeastSquares(0.3, intercept), LeaveOneOut(), X, Y, sample_weight=weights)
    point = problem.start(0)
    z, log_lam = problem.split(point)
    value = problem.evaluate(problem.gram_set.chart(z), point).value
    K, total = problem.kernel(point)(X), 0.0
    for i in range(M):
        rest = np.arange(M) != i
        D = K[np.ix_(rest, rest)] + np.diag(problem.bind().lam(log_lam) / weights[rest])
        border = np.ones((M - 1, int(intercept)))
        system = np.block([[D, border], [border.T, np.zeros((int(intercept),) * 2)]])
        solved = np.linalg.solve(system, np.vstack([Y[rest], np.zeros((int(intercept), 2))]))
        f = K[i, rest] @ solved[: M - 1] + (solved[M - 1] if intercept else 0.0)
        total += weights[i] / weights.sum() * np.mean((Y[i] - f) ** 2)
    assert value == pytest.approx(total, rel=1e-9)


def trees(**given):
    """Two nodes, of which one sees three features and the other one two."""
    return Trees([[0, 1, 2], [3, 2]], **given)


@pytest.mark.parametrize(
    ("family", "weights"), [(Widths, [0, 1, 0, 2]), (trees, [0, 1, 0, 2, 3, 4, 5])], ids=["widths", "trees"]
)
def test_features_that_are_tied_share_a_weight_and_its_slope(rng, family, weights):
    X = rng.random((M, 4)) * [1.0, 2.0, 3.0, 0.0]
    y = np.sin(4.0 * X[:, 0]) * X[:, 1] + X[:, 2]
    tied = family(tied=[[2, 0], np.array([], dtype=int)])
    problem = OuterLearning(tied, LeastSquares(0.3, False), LeaveOneOut(), X, y)
    assert problem.gram_set.n_unknowns == max(weights) + 1
    assert problem.gram_set.weight_of.tolist() == weights
    assert "tied=((2, 0), ())" in repr(tied)
    point = problem.start(3)
    z, _ = problem.split(point)
    np.testing.assert_allclose(problem.kernel(point)(X), family().on(X).kernel(z[weights])(X), rtol=1e-12)
    with pytest.raises(InvalidInputError, match="tied names the unknown feature"):
        tied.on(X[:, :2])
    with pytest.raises(InvalidInputError, match="tied repeats a feature"):
        family(tied=[[0, 1], [1, 2]]).on(X)
    with pytest.raises(InvalidInputError, match="groups of features such as"):
        family(tied=5)
    slope = problem.evaluate(problem.gram_set.chart(z), point).gradient()
    for k, step in enumerate(1e-6 * np.eye(len(point))):
        sides = [(problem.gram_set.chart(problem.split(at)[0]), at) for at in (point + step, point - step)]
        ends = [problem.evaluate(*side).value for side in sides]
        assert slope[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("family", [Widths, partial(Trees, 1)], ids=["widths", "trees"])
def test_many_categories_start_as_one_feature(rng, family):
    """Sixty indicators, each as one of 63 features, would hide what tells rows apart from the first step on."""
    X = np.column_stack([rng.normal(size=(400, 3)), rng.integers(60, size=(400, 1)) == np.arange(60)])
    start = family(tied=[list(range(3, 63))]).on(X).start(rng)
    shares = np.exp(2.0 * start[[0, 1, 2, *[3] * 60]]) * X.var(axis=0)
    assert 0.1 < shares[3:].sum() / shares[:3].mean() < 10.0
    assert shares.sum() == pytest.approx(1.0 if family is Widths else 0.5, rel=0.0 if family is Widths else 0.5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("criterion", [LeaveOneOut(), HeldOut(3)])
def test_risks_along_lam_are_those_of_single_ones(criterion, intercept, rng):
    X, y = table(rng)
    weights, bounds = rng.uniform(0.5, 2.0, M), (np.full((2, 1), -0.3), np.full((2, 1), 0.5))
    Y = np.vstack([y, X[:, 0] ** 2])
    bound = criterion.on(LeastSquares(0.3, intercept), Y, weights, bounds=bounds)
    K, lams = Gaussian(2.0)(X), np.array([1e-4, 0.02, 3.0])
    kept, found = K.copy(), bound.along(K, lams)
    np.testing.assert_array_equal(K, kept)
    np.testing.assert_allclose(found, [bound(K.copy(), np.log(lam)).value for lam in lams], rtol=1e-6)


def test_training_value_on_a_convex_family_is_the_convex_problem(rng):
    X, y = table(rng)
    family, loss = Candidates([Gaussian(g) for g in (0.3, 3.0, 30.0)], "mean"), LeastSquares(0.1)
    convex = KernelLearning(family, loss, X, y).solve(tol=1e-9)
    curved = OuterLearning(family, loss, TrainingValue(), X, y).solve("quasi-newton", tol=1e-6, max_iter=200)
    assert curved.value == pytest.approx(convex.value, rel=1e-6)


def test_a_margin_that_is_learned_errs_less_than_the_one_it_began_with(rng):
    X, y = table(rng)
    family, loss = Tessellated(degree=0, box=UnitBox(0.01)), LeastSquares(0.1)
    given, learned = (
        OuterLearning(Convex(family, learns_margin=learns), loss, LeaveOneOut(), X, y).solve(
            "quasi-newton", max_iter=60, random_state=0
        )
        for learns in (False, True)
    )
    assert learned.value < 0.98 * given.value
    assert -learned.kernel.lower[0] == pytest.approx(np.exp(learned.theta[-2]))
    for other in (Candidates([Gaussian()]), Tessellated(box=Box.around(X))):
        with pytest.raises(InvalidInputError, match="on a UnitBox only"):
            Convex(other, learns_margin=True)


def test_weight_two_is_a_row_given_twice(rng):
    X, y = table(rng)
    twice = np.append(np.arange(M), [3, 7])
    weights = np.ones(M)
    weights[[3, 7]] = 2.0
    loss, criterion = Hinge(2.0), TrainingValue(ridge=0.0)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    one = OuterLearning(Widths(), loss, criterion, X, labels, sample_weight=weights)
    other = OuterLearning(Widths(), loss, criterion, X[twice], labels[twice])
    point = one.start(0)
    assert one.certificate(point).value == pytest.approx(other.certificate(point).value, rel=1e-6)


def test_what_does_not_fit_is_refused_with_the_reason(rng):
    X, y = table(rng)
    problem = OuterLearning(Widths(), LeastSquares(1.0), TrainingValue(), X, y)
    with pytest.raises(InvalidInputError, match="start must be 2 finite numbers"):
        problem.solve(start=[1.0])
    with pytest.raises(InvalidInputError, match="same point"):
        OuterLearning(Widths(), Interpolation(), TrainingValue(), X[[0, 0, 1]], y[[0, 1, 2]])


def test_transductive_span_is_psd_on_the_test_points_too(rng):
    X, Z = rng.uniform(size=(10, 2)), rng.uniform(size=(8, 2))
    kernels = [Gaussian(0.5), Gaussian(8.0), Polynomial(2), ("first feature", Gaussian(20.0), [0])]
    alone = Span(kernels, trace=5.0).on(X)
    joint = Span(kernels, trace=5.0, test=Z).on(X)
    everywhere = np.vstack([X, Z])
    for _ in range(3):
        theta = joint.project(5.0 * rng.standard_normal(4))
        K = joint.kernel(theta)(everywhere)
        assert np.linalg.eigvalsh(K)[0] >= -1e-8
        assert np.trace(K) == pytest.approx(5.0)
        np.testing.assert_allclose(joint.gram(theta), K[:10, :10], rtol=0.0, atol=1e-10 * np.abs(K).max())
    # Without the test points there is a combination that is PSD on the training points only.
    worst = min(
        np.linalg.eigvalsh(alone.kernel(alone.project(20.0 * rng.standard_normal(4)))(everywhere))[0] for _ in range(20)
    )
    assert worst < -1e-4
