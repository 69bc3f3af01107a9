"""Descents from many starts: through walls of infinite values, in parallel, interrupted, on a sample, certified."""

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import convexkernels.solvers.nonconvex.restarts as restarts_module
from convexkernels import (
    Concatenations,
    ConvexKernelsWarning,
    Gaussian,
    InvalidInputError,
    LeastSquares,
    Matern,
    OuterLearning,
    Polynomial,
    Stationarity,
    Status,
    TrainingValue,
    Widths,
)
from convexkernels.checkpoint import Checkpoint, Piece
from convexkernels.losses import Interpolation
from convexkernels.solvers.nonconvex.bfgs import Limits, descend
from convexkernels.solvers.nonconvex.restarts import Restarts


@dataclass
class Known:
    """An evaluation with its gradient written down."""

    value: float
    slope: np.ndarray

    def gradient(self):
        return self.slope


def rosenbrock(x):
    value = np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    slope = np.zeros_like(x)
    slope[:-1] += -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    slope[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return Known(1.0 + value, slope)


def walled(x):
    """Infinite left of 0.5, with its minimum close to the wall."""
    if x[0] <= 0.5:
        return Known(np.inf, np.full_like(x, np.nan))
    value = 1.0 + 1e-3 / (x[0] - 0.5) + (x[0] - 0.5) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    first = -1e-3 / (x[0] - 0.5) ** 2 + 2 * (x[0] - 0.5) - 400 * x[0] * (x[1] - x[0] ** 2)
    return Known(value, np.array([first, 200 * (x[1] - x[0] ** 2)]))


@pytest.mark.parametrize("size", [2, 10, 301])
def test_descent_solves_rosenbrock_dense_and_with_limited_memory(size):
    steps = list(descend(rosenbrock, np.full(size, -0.5), Limits(tol=1e-7, max_iter=3000)))
    found = steps[-1]
    assert found.status is Status.STATIONARY
    assert np.linalg.norm(found.point - 1.0) < 1e-3 or found.value > 2.0  # the long valley has a second minimum
    assert np.linalg.norm(rosenbrock(found.point).slope) < 1e-6 * found.value
    assert np.all(np.diff([step.value for step in steps]) <= 0)


def test_descent_steps_back_from_infinite_values():
    *_, found = descend(walled, np.array([3.0, -5.0]), Limits(tol=1e-9))
    assert found.status is Status.STATIONARY
    assert found.point[0] == pytest.approx(0.5 + (5e-4) ** (1 / 3), rel=1e-6)


def test_descent_says_why_it_stopped():
    start = np.full(4, -0.5)
    for function, at, limits, status in [
        (walled, np.zeros(2), Limits(1e-6), Status.NUMERICAL_ERROR),
        (rosenbrock, start, Limits(1e-9, max_iter=3), Status.ITERATION_LIMIT),
        (rosenbrock, start, Limits(1e-9, deadline=time.monotonic()), Status.TIME_LIMIT),
        (rosenbrock, start, Limits(1e-9, stall_tol=1e6), Status.STALLED),
        (rosenbrock, start, Limits(1e-9, early_tol=0.5), Status.EARLY_STOPPED),
    ]:
        *_, found = descend(function, at, limits)
        assert found.status is status


def test_a_descent_of_a_risk_is_not_ended_on_the_plateau_it_begins_on():
    limits, slope, point = Limits(1e-9, 1e-6, early_tol=0.1), np.ones(1), np.zeros(1)
    plateau, fall = np.linspace(1.0, 0.98, 20).tolist(), [0.9, 0.8, 0.7]
    late = np.linspace(0.6, 0.59, 11).tolist()
    for values, said in [
        (plateau, None),
        (plateau + fall, None),
        (plateau + fall + late, Status.EARLY_STOPPED),
        (plateau + [0.8] * 11, Status.STALLED),  # and a stall is one anywhere
        ([1.0] * 11, Status.STALLED),
    ]:
        assert limits.reached(values, slope, point) is said


def problem(loss=None, m=40, layers=None, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    y = 1.0 / (0.1 + np.abs(X[:, 0] - X[:, 1]))
    family = Concatenations(layers or [Matern(2), Polynomial(1)], mu=1e-2, **options)
    return OuterLearning(family, loss or LeastSquares(1e-2, intercept=False), TrainingValue(), X, y)


@pytest.mark.parametrize("loss", [Interpolation(), LeastSquares(1e-3, intercept=False)])
@pytest.mark.parametrize(
    "layers", [[Matern(2), Polynomial(2)], [Gaussian(2.0), Gaussian(0.5)], [Matern(2), Gaussian(0.5), Polynomial(1)]]
)
def test_certificate_holds_is_recomputed_and_every_neighbor_is_worse(loss, layers):
    stated = problem(loss, layers=layers, m=40 if len(layers) == 2 else 15)
    solution = stated.solve(restarts=2, random_state=0, tol=1e-3, max_iter=2000)
    assert solution.status is Status.STATIONARY
    assert isinstance(solution.certificate, Stationarity)
    assert solution.certificate.holds(1e-3)
    assert solution.verify() == solution.certificate
    chart = stated.gram_set.chart(solution.theta)
    rng = np.random.default_rng(1)
    for _ in range(10):
        direction = rng.normal(size=chart.u.size)
        direction *= 0.03 * np.linalg.norm(chart.u) / np.linalg.norm(direction)
        assert stated.evaluate(chart, chart.u + direction).value > solution.value


def test_best_of_all_restarts_is_kept_and_more_of_them_only_add_to_the_same_ones():
    stated = problem(layers=[Matern(2), Gaussian(0.5)])
    few, many = (stated.solve(restarts=n, random_state=3) for n in (2, 5))
    assert many.restarts.shape == (5,)
    assert many.value == pytest.approx(many.restarts.min(), rel=1e-9)
    assert many.value <= few.value * (1 + 1e-9)
    assert many.n_iter > len(many.history)


def test_same_seed_gives_the_same_answer_in_one_process_and_in_two():
    one, again, two = (problem().solve(restarts=4, random_state=7, n_jobs=n) for n in (1, 1, 2))
    assert np.array_equal(one.theta, again.theta)
    assert np.allclose(one.restarts, two.restarts, rtol=1e-9)
    other = problem().solve(restarts=4, random_state=8)
    assert not np.array_equal(one.restarts, other.restarts)


def test_any_family_and_criterion_can_be_restarted(rng):
    X = rng.random((60, 3))
    stated = OuterLearning(Widths(), LeastSquares(0.1), TrainingValue(), X, np.sin(6.0 * X[:, 0]))
    solution = stated.solve("restarts", restarts=3, random_state=0)
    assert solution.value == pytest.approx(solution.restarts.min(), rel=1e-9)
    assert solution.value <= stated.solve("quasi-newton", random_state=0).value * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["restarts", Restarts(2), Restarts(2, 20)])
def test_a_checkpoint_holds_the_best_point_and_is_one_more_start(tmp_path, solver):
    stated, file = problem(), tmp_path / "point.npz"
    first = stated.solve(restarts=6, random_state=0, checkpoint=file)
    again = stated.solve(solver, restarts=2, random_state=1, checkpoint=file)
    assert len(again.restarts) == 3
    assert again.value <= first.value * (1 + 1e-9)


@pytest.mark.parametrize("search_size", [None, 25])
def test_starts_that_have_ended_are_not_searched_again(tmp_path, monkeypatch, search_size):
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    stated, file = problem(), tmp_path / "point.npz"
    plain = stated.solve(Restarts(6, search_size, random_state=0))
    descended, begun, limit = restarts_module.descended, [], 4

    def counted(problem, start, *options):
        begun.append(start.index)
        if len(begun) == limit:
            raise KeyboardInterrupt
        return descended(problem, start, *options)

    monkeypatch.setattr(restarts_module, "descended", counted)
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED"):
        stated.solve(Restarts(6, search_size, random_state=0), checkpoint=file)
    limit = begun.clear()
    again = stated.solve(Restarts(6, search_size, random_state=0), checkpoint=file)
    assert begun[:3] == [3, 4, 5]
    np.testing.assert_allclose(again.theta, plain.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again.restarts, plain.restarts, rtol=1e-9)
    begun.clear()
    stated.solve(Restarts(6, search_size, random_state=0, max_steps=499), checkpoint=file)
    assert begun[:6] == [0, 1, 2, 3, 4, 5]  # another search, of which nothing is known but a point to begin with


def test_a_search_that_has_no_time_to_go_on_knows_the_best_point(tmp_path, monkeypatch):
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    stated, file, descended = problem(), tmp_path / "point.npz", restarts_module.descended

    def interrupted(problem, start, *options):
        if start.index == 5:
            raise KeyboardInterrupt
        return descended(problem, start, *options)

    monkeypatch.setattr(restarts_module, "descended", interrupted)
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED"):
        first = stated.solve(Restarts(6, random_state=1, max_steps=1), checkpoint=file)
    assert first.restarts[0] > first.value
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT"):
        again = stated.solve(Restarts(6, random_state=1, max_steps=1), checkpoint=file, max_time=1e-6)
    assert again.value <= first.value * (1 + 1e-9)


def test_a_descent_that_a_limit_has_cut_goes_on_from_where_it_stopped(tmp_path):
    stated, limits = problem(), Limits(1e-6, max_iter=200)
    piece, start = Checkpoint(tmp_path / "point.npz", 1), restarts_module.starts_of(1, 0)
    piece = Piece(piece, "work")
    found = restarts_module.descended(stated, start[0], replace(limits, max_iter=5))
    replace(found, status=Status.TIME_LIMIT).keep(piece.part("descent", *start[0].stated, limits, None))
    again, _ = next(restarts_module.rounds(stated, start, limits, 1, piece))
    whole = restarts_module.descended(stated, start[0], limits)
    assert again.value <= found.value
    assert again.n_iter < whole.n_iter


def dropping(monkeypatch, fails):
    """Let the objective be infinite where `fails` says so."""
    original = OuterLearning.evaluate

    def evaluate(self, chart, u, *options):
        result = original(self, chart, u, *options)
        if fails(u):
            result.value = np.inf
        return result

    monkeypatch.setattr(OuterLearning, "evaluate", evaluate)


def test_diverging_starts_are_dropped_and_counted(monkeypatch):
    dropping(monkeypatch, lambda u: np.linalg.norm(u) < 0.7)  # where some of the random starts lie
    solution = problem().solve(restarts=12, random_state=0)
    assert 0 < np.isinf(solution.restarts).sum() < 12
    assert np.isfinite(solution.value)


def test_no_finite_start_is_an_error_with_a_remedy():
    stated = problem(Interpolation(nugget=0.0), layers=[Gaussian(1e-6), Polynomial(1)])
    with pytest.raises(InvalidInputError, match=r"not finite at any of the 2 starts.*nugget"):
        stated.solve(restarts=2, random_state=0)


@pytest.mark.parametrize("size", [None, 40])
def test_time_limit_returns_the_best_so_far_with_one_warning(size):
    stated = problem(layers=[Matern(2), Gaussian(0.5)], m=100)
    with pytest.warns(ConvexKernelsWarning, match="time limit") as caught:
        solution = stated.solve(Restarts(3, size, random_state=0), max_time=1e-6)
    assert len(caught) == 1
    assert solution.status is Status.TIME_LIMIT
    assert np.isfinite(solution.certificate.residual)


@pytest.mark.parametrize("size", [None, 20])
def test_an_interrupt_inside_a_start_ends_the_search_with_the_best_so_far(monkeypatch, size):
    calls = []
    original = restarts_module.descents

    def interrupted(problem, *options):
        calls.append(problem)
        for count, step in enumerate(original(problem, *options)):
            if len(calls) == 3 and count == 2:
                raise KeyboardInterrupt
            yield step

    monkeypatch.setattr(restarts_module, "descents", interrupted)
    with pytest.warns(ConvexKernelsWarning, match="interrupted"):
        solution = problem().solve(Restarts(6, size, random_state=0))
    assert solution.status is Status.INTERRUPTED
    assert len(calls) == 3
    assert np.count_nonzero(np.isfinite(solution.restarts)) == 3
    assert np.isfinite(solution.decision_function(np.zeros((1, 2)))).all()


def test_progress_counts_starts_and_steps_and_shows_the_ends(capsys):
    problem().solve(restarts=3, random_state=0, progress=True)
    shown = capsys.readouterr().err
    assert "40 points" in shown
    # Into a file go few lines: the first and the last one of a short work.
    assert [int(line.split()[0]) for line in shown.splitlines() if " inf " in line] == [0, 5]


def test_a_given_start_is_one_more():
    stated = problem(layers=[Matern(2), Gaussian(0.5)])
    good = stated.solve(restarts=6, random_state=0)
    again = stated.solve(restarts=2, random_state=1, start=good.theta)
    assert again.restarts.shape == (3,)
    assert again.value <= good.value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"restarts": 0}, "restarts"), ({"tol": 0.0}, "tol"), ({"restarts": 2, "max_iter": 0}, "max_steps")],
)
def test_refuses_search_options_by_name(options, message):
    with pytest.raises(InvalidInputError, match=message):
        problem().solve(**options)


def test_decision_function_interpolates_and_is_that_of_the_kernel():
    stated = problem(Interpolation())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = stated.solve(restarts=2, random_state=0)
    assert np.allclose(solution.decision_function(stated.X), stated.Y[0], rtol=1e-5)
    T = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    expected = solution.kernel(T, stated.X) @ np.linalg.solve(solution.kernel(stated.X), stated.Y[0])
    assert np.allclose(solution.decision_function(T), expected, rtol=1e-4)


def test_search_on_a_sample_continues_on_all_points():
    stated = problem(layers=[Matern(2), Gaussian(0.5)], m=120)
    full = stated.solve(restarts=4, random_state=0)
    sampled = stated.solve(Restarts(4, 40, random_state=0))
    assert sampled.status is Status.STATIONARY
    assert sampled.restarts.shape == (4,)
    assert sampled.theta.shape == (240,)
    assert sampled.value < 1.5 * full.value


@pytest.mark.parametrize("layers", [[Matern(2), Polynomial(2)], [Matern(2), Gaussian(0.5), Polynomial(1)]])
def test_solutions_on_a_sample_are_the_same_functions_on_all_points(layers):
    stated = problem(layers=layers)
    rows = np.arange(0, 40, 3)
    small = stated.on_rows(rows)
    solution = small.solve(restarts=2, random_state=0, tol=1e-2, max_iter=2000)
    extended = stated.gram_set.extend(solution.theta, rows)
    T = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    assert np.allclose(stated.kernel(extended).images(T), solution.kernel.images(T), atol=1e-9)
