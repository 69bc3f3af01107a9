"""The concatenated objective: its adjoint gradient, its printed forms, its whitened coordinates, its refusals."""

import numpy as np
import pytest

from convexkernels import (
    Concatenations,
    Gaussian,
    InvalidInputError,
    LeastSquares,
    Linear,
    LogPenalty,
    Matern,
    OuterLearning,
    Polynomial,
    PowerPenalty,
    Restarts,
    TensorMatern,
    TrainingValue,
)
from convexkernels.exceptions import NotDifferentiableError
from convexkernels.families.curved.layers import whiten
from convexkernels.families.curved.penalties import PENALTIES
from convexkernels.kernels.normalized import Normalized
from convexkernels.losses import Interpolation

STACKS = {
    "affine inner": ([Matern(2), Polynomial(1)], 2),
    "quadratic inner": ([TensorMatern(1, smoothing=0.05), Polynomial(2)], 3),
    "gaussian inner": ([Gaussian(2.0), Gaussian(0.5)], 2),
    "kinked innermost": ([Matern(2), Matern(1)], 2),
    "three layers": ([Matern(2), Gaussian(0.5), Polynomial(2)], (2, 3)),
    "four layers": ([Gaussian(0.7), Matern(2.5), Polynomial(2), Matern(2)], (1, 3, 2)),
}
# Interpolation says nothing about derivatives where the Gram matrix is singular to rounding: few points, no nugget.
FEW = 7
LOSSES = {"interpolation": Interpolation(nugget=0.0), "least squares": LeastSquares(0.05, intercept=False)}


def draw(m=18, n=2, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, n))
    return X, rng.normal(size=m if outputs is None else (m, outputs))


def squared(lam):
    return LeastSquares(lam, intercept=False)


def stated(layers, loss, X, y, **options):
    return OuterLearning(Concatenations(layers, **options), loss, TrainingValue(), X, y)


def start(problem, seed=1):
    """A chart around a random point, and its coordinates."""
    chart = problem.gram_set.chart(problem.start(seed, 1))
    return chart, chart.u


def taylor_slopes(problem, coordinates, u, seed=2):
    """Orders of decay of the first-order Taylor remainder for halved steps: 2 for a right gradient."""
    direction = np.random.default_rng(seed).normal(size=u.size)
    direction /= np.linalg.norm(direction)
    here = problem.evaluate(coordinates, u)
    slope = here.gradient() @ direction
    steps = 1e-4 * np.linalg.norm(u) * 0.5 ** np.arange(4)
    rest = [abs(problem.evaluate(coordinates, u + t * direction).value - here.value - t * slope) for t in steps]
    return np.diff(np.log2(rest)) * -1.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", STACKS)
def test_gradient_is_second_order_exact_in_every_layer(name, loss):
    layers, widths = STACKS[name]
    X, y = draw(m=FEW if loss == "interpolation" else 18, outputs=2)
    problem = stated(layers, LOSSES[loss], X, y, widths=widths, mu=0.3)
    coordinates, u = start(problem)
    assert taylor_slopes(problem, coordinates, u) == pytest.approx([2.0] * 3, abs=0.1)


@pytest.mark.parametrize("name", STACKS)
def test_gradient_agrees_with_central_differences_coordinate_by_coordinate(name):
    layers, widths = STACKS[name]
    X, y = draw(m=10)
    mu = 0.1 + np.arange(len(layers) - 1)
    problem = stated(layers, squared(0.1), X, y, widths=widths, mu=mu)
    coordinates, u = start(problem)
    step = 1e-5
    numeric = [
        (problem.evaluate(coordinates, u + e).value - problem.evaluate(coordinates, u - e).value) / (2 * step)
        for e in step * np.eye(u.size)
    ]
    gradient = problem.evaluate(coordinates, u).gradient()
    assert np.allclose(gradient, numeric, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("options", [{"repulsion": 0.01}, {"weights": [[0.5, 2.0], [3.0, 0.2, 1.0]]}])
def test_gradient_with_repulsion_and_weighted_inner_kernels(options):
    X, y = draw()
    layers = [Matern(2), Gaussian(0.5), Polynomial(2)]
    problem = stated(layers, squared(0.1), X, y, widths=(2, 3), mu=0.2, **options)
    coordinates, u = start(problem)
    assert taylor_slopes(problem, coordinates, u) == pytest.approx([2.0] * 3, abs=0.1)


@pytest.mark.parametrize("name", STACKS)
def test_value_is_the_printed_objective_of_the_coefficients(name):
    """(Int) and the three terms of (Reg) from the functions f_l, with no whitening involved."""
    layers, widths = STACKS[name]
    X, y = draw()
    lam, mu = 0.07, 0.4
    problem = stated(layers, squared(lam), X, y, widths=widths, mu=mu)
    coordinates, u = start(problem)
    point = coordinates.point(u)
    kernel = problem.kernel(point)
    norms = sum(np.sum(f.coefficients * (f.kernel(f.centers) @ f.coefficients)) for f in kernel.maps)
    Q = kernel(X)
    b = np.linalg.solve(Q + lam * np.eye(len(X)), y)
    regression = lam * b @ Q @ b + mu * norms + np.sum((Q @ b - y) ** 2)
    assert problem.evaluate(coordinates, u).value == pytest.approx(regression, rel=1e-8)
    few = np.arange(FEW)  # points whose Gram matrix can be inverted
    interpolation = stated(layers, LOSSES["interpolation"], X[few], y[few], widths=widths)
    coordinates, u = start(interpolation)
    kernel = interpolation.kernel(coordinates.point(u))
    norms = sum(np.sum(f.coefficients * (f.kernel(f.centers) @ f.coefficients)) for f in kernel.maps)
    value = interpolation.evaluate(coordinates, u).value
    assert value == pytest.approx(y[few] @ np.linalg.solve(kernel(X[few]), y[few]) + norms, rel=1e-6)


def test_weights_are_those_of_the_matrix_valued_kernel():
    """The norm of a function of K diag(a) with values g_k is sum_k g_k' K^-1 g_k / a_k."""
    X, y = draw(m=8)
    a = np.array([0.25, 4.0])
    inner = Matern(2)
    problem = stated([Gaussian(1.0), inner], squared(1.0), X, y, weights=[a], mu=1.0)
    coordinates, u = start(problem)
    images = problem.kernel(coordinates.point(u)).images(X)
    norm = np.sum(images * np.linalg.solve(inner(X), images) / a)
    b = np.linalg.solve(Gaussian(1.0)(images) + np.eye(8), y)
    assert problem.evaluate(coordinates, u).value == pytest.approx(y @ b + norm, rel=1e-7)


def test_repulsion_is_the_printed_sum():
    X, y = draw(m=9)
    problems = [stated([Matern(2), Polynomial(1)], squared(1.0), X, y, repulsion=r) for r in (0.0, 0.3)]
    values = [problem.evaluate(*start(problem)) for problem in problems]
    g = values[0].at.images
    pairs = [1 / np.tanh(np.sum((g[i] - g[j]) ** 2)) for i in range(9) for j in range(i)]
    assert values[1].value - values[0].value == pytest.approx(0.3 * sum(pairs), rel=1e-10)


@pytest.mark.parametrize("name", PENALTIES)
def test_other_penalties_have_the_gradient_of_their_value(name):
    X, y = draw()
    layers = [Matern(2), Gaussian(0.5), Polynomial(2)]
    problem = stated(layers, squared(0.1), X, y, widths=(2, 3), mu=[0.2, 0.7], penalty=PENALTIES[name]())
    coordinates, u = start(problem)
    assert taylor_slopes(problem, coordinates, u) == pytest.approx([2.0] * 3, abs=0.1)


def test_penalties_are_added_layer_by_layer_from_the_norms_of_the_functions():
    """Theta_2 and Theta_3 of the functions themselves, written down once more."""
    X, y = draw()
    layers = [Matern(2), Gaussian(0.5), Polynomial(2)]
    options = {"widths": (2, 3), "mu": [0.2, 0.7], "penalty": [LogPenalty(), PowerPenalty(3.0)]}
    problem = stated(layers, squared(0.1), X, y, **options)
    coordinates, u = start(problem)
    kernel = problem.kernel(coordinates.point(u))
    outer, inner = (np.sum(f.coefficients * (f.kernel(f.centers) @ f.coefficients)) for f in kernel.maps)
    fit = y @ np.linalg.solve(kernel(X) + 0.1 * np.eye(len(X)), 0.1 * y)
    expected = fit + 0.2 * np.log(1.0 + outer) + 0.7 * np.sqrt(inner) ** 3
    assert problem.evaluate(coordinates, u).value == pytest.approx(expected, rel=1e-8)


def test_the_second_power_is_the_squared_norm_to_the_last_bit():
    X, y = draw()
    here, there = (build(X=X, y=y, mu=0.3, **more) for more in ({}, {"penalty": [PowerPenalty(2)]}))
    evaluations = [problem.evaluate(*start(problem)) for problem in (here, there)]
    assert evaluations[0].value == evaluations[1].value
    assert np.array_equal(evaluations[0].gradient(), evaluations[1].gradient())


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_begin_at_0_increase_and_have_a_slope_there(name):
    penalty = PENALTIES[name]()
    s = np.array([0.0, 1e-8, 0.3, 2.0, 1e6])
    values = [penalty.value(t) for t in s]
    assert values[0] == 0.0
    assert (np.diff(values) > 0.0).all()
    numeric = [(penalty.value(t * 1.0001) - penalty.value(t * 0.9999)) / (t * 2e-4) for t in s[1:]]
    assert [penalty.slope(t) for t in s[1:]] == pytest.approx(numeric, rel=1e-6)
    assert np.isfinite(penalty.slope(0.0))


def test_a_search_with_other_penalties_ends_stationary_where_the_function_of_norms_is():
    """At a stationary point a penalty is a squared norm with another weight: mu times its slope there."""
    X, y = draw(m=30)
    layers = [Gaussian(1.0), Polynomial(2)]
    problem = stated(layers, squared(0.05), X, y, mu=0.1, penalty=LogPenalty())
    solution = problem.solve(Restarts(3, random_state=0), tol=1e-5)
    assert solution.certificate.relative_residual < 1e-5
    there = problem.gram_set.at(problem.split(solution.theta)[0])
    mu = 0.1 / (1.0 + there.squared_norms[0])
    assert mu < 0.09
    plain = stated(layers, squared(0.05), X, y, mu=mu)
    chart = plain.gram_set.chart(solution.theta)
    slope = plain.evaluate(chart, chart.u).gradient()
    assert np.linalg.norm(slope) < 1e-4 * solution.certificate.value


def test_affine_inner_kernel_has_three_unknowns_per_output_in_the_plane():
    X, y = draw(m=40)
    problem = stated([Matern(2), Polynomial(1)], Interpolation(), X, y)
    assert start(problem)[1].size == 3 * 2


@pytest.mark.parametrize(
    ("kernel", "m", "largest"), [(Polynomial(1), 120, 4), (Polynomial(1), 24, 24), (Gaussian(0.01), 120, 120)]
)
def test_whitening_looks_at_as_many_directions_as_there_are(kernel, m, largest, monkeypatch):
    X, sizes, eigh = draw(m, 3)[0], [], np.linalg.eigh
    K = kernel(X)
    values, vectors = eigh(K)
    kept = values > 1e-12 * values[-1]
    projection = vectors[:, kept] @ vectors[:, kept].T
    monkeypatch.setattr(np.linalg, "eigh", lambda A: sizes.append(len(A)) or eigh(A))
    W = whiten(K)
    assert sizes[-1] == largest  # of a rank that is not clear the matrix itself
    assert W.shape == (m, kept.sum())
    np.testing.assert_allclose(W.T @ K @ W, np.eye(W.shape[1]), atol=1e-3)
    np.testing.assert_allclose(K @ W @ W.T, projection, atol=1e-3)


@pytest.mark.parametrize("name", STACKS)
def test_new_whitening_describes_the_same_functions(name):
    layers, widths = STACKS[name]
    X, y = draw()
    problem = stated(layers, squared(0.1), X, y, widths=widths)
    coordinates, u = start(problem)
    again = problem.gram_set.chart(coordinates.point(u))
    v = again.u
    first, second = problem.evaluate(coordinates, u), problem.evaluate(again, v)
    assert np.allclose(first.at.images, second.at.images, atol=1e-5)
    assert first.value == pytest.approx(second.value, rel=1e-5)
    T = np.random.default_rng(4).uniform(-1, 1, (7, 2))
    images = [problem.kernel(c.point(w)).images(T) for c, w in ((coordinates, u), (again, v))]
    assert np.allclose(*images, atol=1e-4)


def test_several_outputs_with_one_repeated_twice_count_it_twice():
    X, y = draw()
    problems = [stated([Matern(2), Polynomial(2)], squared(0.1), X, Y, mu=1e-9) for Y in
                (y, np.column_stack([y, y]))]  # fmt: skip
    coordinates, u = start(problems[0])
    one, two = (p.evaluate(coordinates, u) for p in problems)
    assert two.value == pytest.approx(2 * one.value, rel=1e-6)
    assert np.allclose(two.gradient(), 2 * one.gradient(), rtol=1e-6)


def test_rotating_the_images_of_a_radial_outer_kernel_changes_nothing():
    X, y = draw()
    problem = stated([Matern(2), Polynomial(2)], squared(0.1), X, y)
    coordinates, u = start(problem)
    c, s = np.cos(0.7), np.sin(0.7)
    rotated = (coordinates.coordinates.split(u)[0] @ np.array([[c, -s], [s, c]])).ravel()
    assert problem.evaluate(coordinates, rotated).value == pytest.approx(problem.evaluate(coordinates, u).value)


def build(**changes):
    X, y = draw()
    arguments = {"layers": [Matern(2), Polynomial(1)], "loss": squared(0.1), "X": X, "y": y} | changes
    problem = [arguments.pop(name) for name in ("layers", "loss", "X", "y")]
    return stated(*problem, **arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": [Matern(2)]}, "at least two kernels, outermost first, got 1"),
        ({"layers": [Matern(2), "rbf"]}, "must hold kernels, got 'rbf'"),
        ({"widths": 0}, "widths must be a whole number >= 1, got 0"),
        ({"widths": (2, 2)}, "widths must be one number or 1 numbers"),
        ({"weights": [[1.0, -1.0]]}, "weights must be a finite number > 0, got -1.0"),
        ({"weights": [[1.0]]}, "layer of width 2 must be 2 numbers, got 1"),
        ({"mu": 0.0}, "mu must be a finite number > 0"),
        ({"mu": [1.0, 1.0]}, "mu must be one number or 1 numbers"),
        ({"repulsion": -1.0}, "repulsion"),
        ({"penalty": "log"}, r"penalty must be PowerPenalty\(p\) or LogPenalty\(\), .* got 'log'"),
        ({"penalty": [LogPenalty(), LogPenalty()]}, "penalty must be one or 1, one per inner layer"),
        ({"layers": [Matern(2), Linear()], "X": np.zeros((18, 2))}, r"numerically zero on X \(rank 0\)"),
        ({"y": np.full(18, np.nan)}, "missing or infinite value at row 0"),
        ({"y": np.zeros(5)}, "X has 18 rows"),
    ],
)
def test_refuses_by_name_and_value(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**changes)


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan])
def test_refuses_weights_of_the_outer_norm_that_are_not_positive(lam):
    with pytest.raises(InvalidInputError, match="lam must be a finite number > 0"):
        squared(lam)


def test_kinks_are_smoothed_over_a_thousandth_of_the_spread_except_innermost():
    X, y = draw()
    spread = np.sqrt(X.var(axis=0).sum())
    problem = build(layers=[3.0 * Matern(1, length=2.0), TensorMatern(1), Matern(1)], X=X, y=y)
    for family in (
        problem.gram_set.family,
        problem.with_loss(problem.loss, problem.family.with_mu(2.0)).gram_set.family,
    ):
        outer, middle, inner = family.layers
        assert outer.get_params()["kernel__smoothing"] == pytest.approx(5e-4 * spread)
        assert middle.smoothing == pytest.approx(1e-3 * spread)
        assert inner.smoothing == 0.0
    assert build(layers=[Matern(1, smoothing=0.2), Polynomial(1)]).gram_set.family.layers[0].smoothing == 0.2


def test_outer_layers_without_derivatives_are_refused():
    with pytest.raises(NotDifferentiableError, match="not normalized or centered"):
        build(layers=[Normalized(Matern(1)), Polynomial(1)])


def test_interpolation_names_conflicting_rows_and_merges_agreeing_ones():
    X, y = draw(m=12)
    X[7] = X[3]
    with pytest.raises(InvalidInputError, match="rows 3 and 7 of X are the same point"):
        build(X=X, y=y, loss=Interpolation())
    y[7] = y[3]
    problem = build(X=X, y=y, loss=Interpolation())
    assert np.array_equal(problem.X, np.delete(X, 7, axis=0))
    build(X=X, y=y + np.arange(12), loss=squared(1.0))


def test_refuses_powers_whose_slope_is_infinite_at_0():
    with pytest.raises(InvalidInputError, match=r"p must be a finite number >= 1, got 0\.5"):
        PowerPenalty(0.5)
