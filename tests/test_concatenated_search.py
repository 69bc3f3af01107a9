"""The outer loop: descent through walls of infinite values, restarts, parallelism, interrupts, and its certificate."""

import time
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import convexkernels.outer.concatenated_search as search_module
from convexkernels import ConvexKernelsWarning, Gaussian, InvalidInputError, Matern, Polynomial, Stationarity, Status
from convexkernels.outer import ConcatenatedLearning, Interpolation, SquaredError
from convexkernels.outer.concatenated_search import identity_start
from convexkernels.outer.quasi_newton import Limits, descend


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
    found = descend(rosenbrock, np.full(size, -0.5), Limits(tol=1e-7, max_iter=3000))
    assert found.status is Status.STATIONARY
    assert np.linalg.norm(found.point - 1.0) < 1e-3 or found.value > 2.0  # the long valley has a second minimum
    assert np.linalg.norm(rosenbrock(found.point).slope) < 1e-6 * found.value
    assert np.all(np.diff(found.values) <= 0)


def test_descent_steps_back_from_infinite_values():
    found = descend(walled, np.array([3.0, -5.0]), Limits(tol=1e-9))
    assert found.status is Status.STATIONARY
    assert found.point[0] == pytest.approx(0.5 + (5e-4) ** (1 / 3), rel=1e-6)


def test_descent_says_why_it_stopped():
    start = np.full(4, -0.5)
    assert descend(walled, np.zeros(2), Limits(1e-6)).status is Status.NUMERICAL_ERROR
    assert descend(rosenbrock, start, Limits(1e-9, max_iter=3)).status is Status.ITERATION_LIMIT
    assert descend(rosenbrock, start, Limits(1e-9, deadline=time.monotonic())).status is Status.TIME_LIMIT
    assert descend(rosenbrock, start, Limits(1e-9, stall_tol=1e6)).status is Status.STALLED


def problem(loss=None, m=40, layers=None, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    y = 1.0 / (0.1 + np.abs(X[:, 0] - X[:, 1]))
    return ConcatenatedLearning(
        layers or [Matern(2), Polynomial(1)], loss or SquaredError(1e-2), X, y, mu=1e-2, **options
    )


@pytest.mark.parametrize("loss", [Interpolation(), SquaredError(1e-3)])
@pytest.mark.parametrize(
    "layers", [[Matern(2), Polynomial(2)], [Gaussian(2.0), Gaussian(0.5)], [Matern(2), Gaussian(0.5), Polynomial(1)]]
)
def test_certificate_holds_is_recomputed_and_every_neighbour_is_worse(loss, layers):
    stated = problem(loss, layers=layers, m=40 if len(layers) == 2 else 15)
    solution = stated.solve(n_restarts=2, random_state=0, tol=1e-3, max_iter=2000)
    assert solution.status is Status.STATIONARY
    assert isinstance(solution.certificate, Stationarity)
    assert solution.certificate.holds(1e-3)
    assert solution.verify() == solution.certificate
    coordinates, u = stated.stack.coordinates_at(solution.point)
    rng = np.random.default_rng(1)
    for _ in range(10):
        direction = rng.normal(size=u.size)
        direction *= 0.03 * np.linalg.norm(u) / np.linalg.norm(direction)
        assert stated.evaluate(coordinates, u + direction).value > solution.value


def test_best_of_all_restarts_is_kept_and_no_worse_than_the_single_layer():
    stated = problem()
    solution = stated.solve(n_restarts=8, random_state=0)
    assert solution.value == pytest.approx(solution.restart_values.min(), rel=1e-9)
    identity = stated.evaluate(*identity_start(stated))
    single = SquaredError(1e-2).solve(Matern(2)(stated.X), stated.Y).value
    assert np.allclose(identity.images, stated.X, atol=1e-4)
    assert identity.value - 1e-2 * 2.0 == pytest.approx(single, rel=1e-3)
    assert solution.value < single


def test_more_restarts_only_add_to_the_same_ones():
    few, many = (problem(layers=[Matern(2), Gaussian(0.5)]).solve(n_restarts=n, random_state=3) for n in (2, 5))
    assert many.value <= few.value * (1 + 1e-9)


def test_same_seed_gives_the_same_answer_in_one_process_and_in_two():
    one, again, two = (problem().solve(n_restarts=4, random_state=7, n_jobs=n) for n in (1, 1, 2))
    assert np.array_equal(one.point[0], again.point[0])
    assert two.value == pytest.approx(one.value, rel=1e-9)
    other = problem().solve(n_restarts=4, random_state=8)
    assert not np.array_equal(one.restart_values, other.restart_values)


def test_repulsion_keeps_images_apart():
    near, far = (problem(repulsion=r).solve(n_restarts=2, random_state=0, tol=1e-3) for r in (0.0, 1.0))

    def closest(solution):
        g = solution.kernel.images(solution.problem.X)
        return min(np.linalg.norm(g[i] - g[j]) for i in range(len(g)) for j in range(i))

    assert closest(far) > 2 * closest(near)


def test_diverging_starts_are_dropped_and_counted(monkeypatch):
    original = ConcatenatedLearning.evaluate

    def evaluate(self, coordinates, u, start=None):
        result = original(self, coordinates, u, start)
        if np.linalg.norm(u) < 0.7:  # where some of the random starts lie
            result.value = np.inf
        return result

    monkeypatch.setattr(ConcatenatedLearning, "evaluate", evaluate)
    solution = problem().solve(n_restarts=12, random_state=0)
    assert 0 < solution.n_dropped < 12
    assert np.isfinite(solution.value)
    assert np.isinf(solution.restart_values).sum() == solution.n_dropped


def test_no_finite_start_is_an_error_with_a_remedy():
    stated = problem(Interpolation(nugget=0.0), layers=[Gaussian(1e-6), Polynomial(1)])
    with pytest.raises(InvalidInputError, match=r"not finite at any of the 2 starts.*nugget"):
        stated.solve(n_restarts=2, random_state=0)


def test_time_limit_returns_the_best_so_far_with_one_warning():
    stated = problem(layers=[Matern(2), Gaussian(0.5)], m=100)
    with pytest.warns(ConvexKernelsWarning, match="time limit") as caught:
        solution = stated.solve(n_restarts=3, random_state=0, max_time=0.0)
    assert len(caught) == 1
    assert solution.status is Status.TIME_LIMIT
    assert np.isfinite(solution.certificate.residual)


def test_interrupt_returns_the_best_so_far(monkeypatch):
    calls = []
    original = search_module._run

    def run(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(search_module, "_run", run)
    with pytest.warns(ConvexKernelsWarning, match="interrupted"):
        solution = problem().solve(n_restarts=6, random_state=0)
    assert solution.status is Status.INTERRUPTED
    assert np.count_nonzero(np.isfinite(solution.restart_values)) == 2
    assert np.isfinite(solution.decision_function(np.zeros((1, 2)))).all()


def test_progress_shows_every_start(capsys):
    problem().solve(n_restarts=3, random_state=0, progress=True)
    shown = capsys.readouterr().err
    assert "40 points, 2 layers, 3 starts" in shown
    assert "stationarity only" in shown


def test_extra_starts_are_used():
    stated = problem(layers=[Matern(2), Gaussian(0.5)])
    good = stated.solve(n_restarts=6, random_state=0)
    again = stated.solve(n_restarts=1, random_state=1, starts=[good.point])
    assert again.value <= good.value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_restarts": 0}, "n_restarts"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_time": -1.0}, "max_time"),
    ],
)
def test_refuses_search_options_by_name(options, message):
    with pytest.raises(InvalidInputError, match=message):
        problem().solve(**options)


def test_decision_function_interpolates_and_agrees_with_the_machine_of_the_kernel():
    stated = problem(Interpolation())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = stated.solve(n_restarts=2, random_state=0)
    assert np.allclose(solution.decision_function(stated.X), stated.Y[:, 0], rtol=1e-5)
    T = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    K = solution.kernel(stated.X)
    expected = solution.kernel(T, stated.X) @ np.linalg.solve(K, stated.Y[:, 0])
    assert np.allclose(solution.decision_function(T), expected, rtol=1e-4)


def test_search_on_a_sample_continues_on_all_points():
    stated = problem(layers=[Matern(2), Gaussian(0.5)], m=120)
    full = stated.solve(n_restarts=4, random_state=0)
    sampled = stated.solve(n_restarts=4, random_state=0, search_size=40)
    assert sampled.status is Status.STATIONARY
    assert sampled.restart_values.shape == (4,)
    assert sampled.point[0].shape == (120, 2)
    assert sampled.value < 1.5 * full.value


@pytest.mark.parametrize("layers", [[Matern(2), Polynomial(2)], [Matern(2), Gaussian(0.5), Polynomial(1)]])
def test_solutions_on_a_sample_are_the_same_functions_on_all_points(layers):
    stated = problem(layers=layers)
    rows = np.arange(0, 40, 3)
    small = stated.restricted_to(rows)
    solution = small.solve(n_restarts=1, random_state=0, tol=1e-2, max_iter=2000)
    extended = stated.extend(solution.point, rows)
    T = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    assert np.allclose(stated.kernel(extended).images(T), solution.kernel.images(T), atol=1e-9)
