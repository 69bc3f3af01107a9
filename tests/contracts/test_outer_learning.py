"""Every curved family with every loss and every criterion that fits: derivatives, answers, refusals."""

import warnings

import numpy as np
import pytest

from convexkernels import ConvexKernelsWarning, Gaussian, InvalidInputError, KernelLearning, OuterLearning, Stationarity
from convexkernels.criteria import CRITERIA, HeldOut, LeaveOneOut, TrainingValue
from convexkernels.families import Candidates, Tessellated, UnitBox
from convexkernels.families.box import Box
from convexkernels.families.curved import CURVED, Convex, Widths
from convexkernels.losses import LOSSES, Hinge, Interpolation, LeastSquares

M = 36
STEP = 1e-4


def table(kind, rng):
    X = rng.random((M, 2))
    y = np.sin(4.0 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(M)
    return X, np.where(y > np.median(y), 1.0, -1.0) if kind == "labels" else y


def cases():
    for loss, (_, make_loss) in LOSSES.items():
        for criterion, make_criterion in CRITERIA.items():
            if make_criterion().accepts(make_loss()) is None:
                for family in CURVED:
                    yield family, loss, criterion


def stated(family, loss, criterion, rng):
    kind, make_loss = LOSSES[loss]
    X, y = table(kind, rng)
    weights = rng.uniform(0.5, 2.0, M)
    return OuterLearning(CURVED[family](), make_loss(), CRITERIA[criterion](), X, y, sample_weight=weights)


@pytest.mark.parametrize(("family", "loss", "criterion"), list(cases()))
def test_gradient_is_that_of_the_value(family, loss, criterion, rng):
    problem = stated(family, loss, criterion, rng)
    if problem.loss.needs_definite:  # differences say nothing where the matrix is singular to rounding
        problem = problem.on_rows(np.arange(6))
    z, log_lam = problem.split(problem.start(0, 1))
    chart = problem.gram_set.chart(z)
    u = problem.joined(chart.u, log_lam)
    slope = problem.evaluate(chart, u).gradient()
    direction = rng.standard_normal(len(u))
    direction /= np.linalg.norm(direction)
    # Long enough for the tolerances of inner solves, short enough to cross no change of an active set here.
    up, down = (problem.evaluate(chart, u + h * direction).value for h in (STEP, -STEP))
    assert abs((up - down) / (2.0 * STEP) - slope @ direction) <= 1e-5 * np.linalg.norm(slope)


@pytest.mark.parametrize("family", CURVED)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_search_lowers_the_value_and_says_what_it_knows(family, criterion, rng):
    problem = stated(family, "least_squares", criterion, rng)
    start = problem.start(0)
    first = problem.certificate(start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)  # eight steps are few
        solution = problem.solve("quasi-newton", start=start, max_iter=8)
    assert isinstance(solution.certificate, Stationarity)
    assert solution.value < first.value
    assert solution.status.name in ("STATIONARY", "STALLED", "ITERATION_LIMIT")
    again = solution.verify()
    assert again.value == pytest.approx(solution.value, rel=1e-9)
    assert again.relative_residual == pytest.approx(solution.certificate.relative_residual, rel=1e-5, abs=1e-8)
    assert solution.decision_function(problem.X).shape == (M,)


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_what_leaving_one_out_gives(intercept, rng):
    X, y = table("numbers", rng)
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


def test_training_value_on_a_convex_family_is_the_convex_problem(rng):
    X, y = table("numbers", rng)
    family, loss = Candidates([Gaussian(g) for g in (0.3, 3.0, 30.0)], "mean"), LeastSquares(0.1)
    convex = KernelLearning(family, loss, X, y).solve(tol=1e-9)
    curved = OuterLearning(family, loss, TrainingValue(), X, y).solve("quasi-newton", tol=1e-6, max_iter=200)
    assert curved.value == pytest.approx(convex.value, rel=1e-6)


def test_a_margin_that_is_learned_errs_less_than_the_one_it_began_with(rng):
    X, y = table("numbers", rng)
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
    X, y = table("numbers", rng)
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
    X, y = table("numbers", rng)
    labels = np.where(y > 0.2, 1.0, -1.0)
    with pytest.raises(InvalidInputError, match="closed form for least squares"):
        OuterLearning(Widths(), Hinge(1.0), LeaveOneOut(), X, labels)
    with pytest.raises(InvalidInputError, match="does not interpolate"):
        OuterLearning(Widths(), Interpolation(), HeldOut(), X, y)
    problem = OuterLearning(Widths(), LeastSquares(1.0), TrainingValue(), X, y)
    with pytest.raises(InvalidInputError, match="belong to all rows"):
        problem.solve("stochastic")
    with pytest.raises(InvalidInputError, match="start must be 2 finite numbers"):
        problem.solve(start=[1.0])
    with pytest.raises(InvalidInputError, match="same point"):
        OuterLearning(Widths(), Interpolation(), TrainingValue(), X[[0, 0, 1]], y[[0, 1, 2]])
