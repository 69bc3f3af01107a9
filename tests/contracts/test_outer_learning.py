"""Every curved family with every loss, criterion and search that fits: derivatives, answers, refusals."""

import warnings

import numpy as np
import pytest

from convexkernels import ConvexKernelsWarning, InvalidInputError, OuterLearning, Stationarity
from convexkernels.criteria import CRITERIA
from convexkernels.families import FAMILIES, example_points
from convexkernels.families.curved import CURVED
from convexkernels.losses import LOSSES
from convexkernels.solvers import SEARCHES, make_solver

M = 36
# Long enough for the tolerances of inner solves; the shorter one where the longer crosses a change of an active set.
STEPS = (1e-4, 1e-5)


def table(kind, rng):
    X = rng.random((M, 2))
    y = np.sin(4.0 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(M)
    return X, np.where(y > np.median(y), 1.0, -1.0) if kind == "labels" else y


FITTING = [
    (loss, criterion)
    for loss, (_, make_loss) in LOSSES.items()
    for criterion, make_criterion in CRITERIA.items()
    if make_criterion().accepts(make_loss()) is None
]
# A loss that every criterion accepts.
ANYWHERE = next(loss for loss in LOSSES if all((loss, criterion) in FITTING for criterion in CRITERIA))


def stated(family, loss, criterion, rng):
    kind, make_loss = LOSSES[loss]
    X, y = table(kind, rng)
    weights = rng.uniform(0.5, 2.0, M)
    made = CURVED[family]() if isinstance(family, str) else family
    X = example_points(made, X)
    return OuterLearning(made, make_loss(), CRITERIA[criterion](), X, y, sample_weight=weights)


def quietly(problem, search, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)  # some steps are few
        return problem.solve(search, **settings)


@pytest.mark.parametrize("family", CURVED)
@pytest.mark.parametrize(("loss", "criterion"), FITTING)
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
    errors = []
    for step in STEPS:
        up, down = (problem.evaluate(chart, u + h * direction).value for h in (step, -step))
        errors.append(abs((up - down) / (2.0 * step) - slope @ direction))
    assert min(errors) <= 1e-5 * np.linalg.norm(slope)


@pytest.mark.parametrize("family", CURVED)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_search_lowers_the_value_and_says_what_it_knows(family, criterion, rng):
    problem = stated(family, ANYWHERE, criterion, rng)
    start = problem.start(0)
    first = problem.certificate(start)
    solution = quietly(problem, "auto", start=start, max_iter=8)
    assert isinstance(solution.certificate, Stationarity)
    assert solution.value < first.value
    assert solution.status.name in ("STATIONARY", "STALLED", "ITERATION_LIMIT")
    again = solution.verify()
    assert again.value == pytest.approx(solution.value, rel=1e-9)
    assert again.relative_residual == pytest.approx(solution.certificate.relative_residual, rel=1e-5, abs=1e-8)
    assert solution.decision_function(problem.X).shape == (M,)


@pytest.mark.parametrize("family", CURVED)
def test_search_is_limited_interrupted_and_continued_from_its_checkpoint(family, rng, tmp_path, monkeypatch):
    problem, file = stated(family, ANYWHERE, next(iter(CRITERIA)), rng), tmp_path / "point.npz"
    start = problem.certificate(problem.start(0)).value
    short = quietly(problem, "auto", max_time=1e-6, random_state=0)
    assert short.n_iter <= 1
    assert short.value <= start * (1.0 + 1e-9)
    solver = type(make_solver(short.solver, SEARCHES))
    whole_step, taken = solver.step, []

    def step(self, *arguments):
        taken.append(1)
        if len(taken) == 3:
            raise KeyboardInterrupt
        return whole_step(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(solver, "step", step)
        first = quietly(problem, "auto", checkpoint=file, random_state=0)
    assert first.status.name == "INTERRUPTED"
    assert first.value <= start * (1.0 + 1e-9)
    stopped = quietly(problem, "auto", checkpoint=file, max_iter=0, random_state=0)
    assert stopped.n_iter == 0
    assert stopped.value == pytest.approx(first.value, rel=1e-9)
    again = quietly(problem, "auto", checkpoint=file, max_iter=6, random_state=0)
    assert again.value <= first.value * (1.0 + 1e-9)
    ended = quietly(problem, "auto", checkpoint=file, max_iter=6, random_state=0)
    assert ended.n_iter == 0
    np.testing.assert_array_equal(ended.theta, again.theta)
    with pytest.raises(InvalidInputError, match="is one of other rows, targets or weights"):
        problem.on_rows(np.arange(M - 1)).solve("auto", checkpoint=file)
    np.save(tmp_path / "point.npy", first.theta)
    with pytest.raises(InvalidInputError, match="exists, but is no checkpoint"):
        problem.solve("auto", checkpoint=tmp_path / "point.npy")


@pytest.mark.parametrize("family", CURVED)
@pytest.mark.parametrize(("loss", "criterion"), FITTING)
def test_something_searches_all_that_fits_and_the_others_say_why_not(family, loss, criterion, rng):
    problem = stated(family, loss, criterion, rng)
    problem = problem.on_rows(np.arange(6 if problem.loss.needs_definite else 20))
    start, taken = problem.start(0), []
    for search in SEARCHES:
        reason = make_solver(search, SEARCHES).accepts(problem)
        if reason is not None:
            with pytest.raises(InvalidInputError) as refusal:
                problem.solve(search)
            assert reason in str(refusal.value)
            continue
        taken.append(search)
        solution = quietly(problem, search, start=start, max_iter=1, max_time=0.3, random_state=0)
        assert solution.value <= problem.certificate(start).value * (1.0 + 1e-6)
        assert np.isfinite(solution.decision_function(problem.X)).all()
    assert taken


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_convex_family_has_every_criterion_or_is_refused_with_the_reason(family, criterion, rng):
    try:
        problem = stated(FAMILIES[family](), ANYWHERE, criterion, rng)
    except InvalidInputError as refused:
        assert "learn it with KernelLearning" in str(refused)  # noqa: PT017
        return
    solution = quietly(problem, "auto", max_iter=3, random_state=0)
    assert solution.value < problem.certificate(problem.start(0)).value
    assert np.isfinite(problem.function(solution.theta).W).all()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("loss", LOSSES)
def test_what_does_not_fit_is_refused_with_the_reason(loss, criterion, rng):
    if (loss, criterion) in FITTING:
        return
    reason = CRITERIA[criterion]().accepts(LOSSES[loss][1]())
    with pytest.raises(InvalidInputError) as refusal:
        stated(next(iter(CURVED)), loss, criterion, rng)
    assert reason in str(refusal.value)
    assert type(CRITERIA[criterion]()).__name__ in str(refusal.value)
