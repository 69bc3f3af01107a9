"""Objective, gradients, proximal steps, the inner problem and training, against independent answers."""

import dataclasses
import itertools
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import Ridge

from convexkernels import (
    ConvexKernelsWarning,
    DualityGap,
    FixedKernel,
    InvalidInputError,
    LeastSquares,
    OuterLearning,
    Solution,
    Spectral,
    Status,
)
from convexkernels.backend import Backend
from convexkernels.clock import Clock
from convexkernels.criteria import TrainingValue
from convexkernels.families.curved import SpectralMaps
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.stacked_frequencies import StackedMap, draw_layers
from convexkernels.solvers.nonconvex.adam import Adam
from convexkernels.spectral import fitting
from convexkernels.spectral.cross_validation import Candidate, FinalWeights, Fold, choose_candidate, exact_points
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SCORE_LOSSES, score_loss
from convexkernels.spectral.options import SETTINGS, SpectralSetting, Training, setting_of
from convexkernels.spectral.penalties import FrobeniusNorm, TraceNorm, shrink_singular_values
from convexkernels.spectral.selection import MOST_DRAWS, choose_width, matched_trace_weight
from convexkernels.spectral.training import TrainingRun, validation_of

BACKEND = Backend("float64")
STACKED = SpectralSetting(inner=(5, 4))


def stated(
    rng, *, loss="least_squares", setting="ASKL", classes=3, m=40, n=3, D=6, feature_map="phi", lam1=1e-2, lam2=1e-3
):
    X = rng.normal(size=(m, n))
    codes = rng.integers(classes, size=m)
    codes[:classes] = np.arange(classes)
    Y = score_loss(loss).targets_of(codes, classes)
    setting = setting_of(setting)
    problem = SpectralLearning.stated(X, Y, score_loss(loss), setting, lam1=lam1, lam2=lam2, backend=BACKEND)
    drawn = draw_layers(
        n, (*setting.inner, D), stationary=setting.stationary, feature_map=feature_map, rng=rng, backend=BACKEND
    ).scaled(0.8)
    K = Y.shape[1]
    return problem, SpectralPoint(drawn, rng.normal(size=(drawn.width, K)), rng.normal(size=K)), codes


# ---- gradients


@pytest.mark.parametrize("feature_map", ["phi", "psi", "printed"])
@pytest.mark.parametrize("setting", ["SKL", "ASKL", SpectralSetting(stationary=True, inner=(5,)), STACKED])
@pytest.mark.parametrize("loss", SCORE_LOSSES)
@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_agree_with_differences(rng, loss, setting, classes, feature_map):
    problem, point, _ = stated(rng, loss=loss, setting=setting, classes=classes, feature_map=feature_map)
    sizes = [point.map.omega.size, point.W.size, point.intercept.size]
    cuts = np.cumsum(sizes)[:-1]

    def unpacked(v):
        omega, W, c = np.split(v, cuts)
        return SpectralPoint(point.map.with_omega(omega.reshape(point.map.omega.shape)), W.reshape(point.W.shape), c)

    def value(v):
        return problem.objective(unpacked(v)) - problem.penalty.value(unpacked(v).W, BACKEND)

    def slope(v):
        _, slope_W, slope_c, slope_omega = problem.evaluate(unpacked(v))
        return np.concatenate([slope_omega.ravel(), slope_W.ravel(), slope_c])

    start = np.concatenate([point.map.omega.ravel(), point.W.ravel(), point.intercept])
    error = check_grad(value, slope, start, seed=0, epsilon=1e-7)
    assert error < 2e-5 * max(1.0, np.linalg.norm(slope(start)))


def test_frequencies_of_a_stack_are_one_vector(rng):
    """What is done to it is done to all layers: training steps move it in place, sigma scales what meets points."""
    options = {"stationary": False, "feature_map": "phi", "rng": rng, "backend": BACKEND}
    stack, X = draw_layers(3, (5, 6), **options), rng.normal(size=(4, 3))
    assert isinstance(stack, StackedMap)
    assert stack.omega.shape == (3 * 10 + 5 * 12,)
    first, second = stack.layers
    np.testing.assert_allclose(stack(X).values, second(first(X).values).values)
    np.testing.assert_allclose(stack.scaled(2.0)(X).values, second(first.scaled(2.0)(X).values).values)
    assert stack.scaled(2.0).size() == pytest.approx(2.0 * stack.size())
    np.testing.assert_allclose(stack.weighed([1.0, 0.0, 2.0])(X).values, stack(X * [1.0, 0.0, 2.0]).values)
    np.testing.assert_allclose(Spectral.of(stack.scaled(2.0)).transform(X), stack.scaled(2.0)(X).values)
    weighed = stack.weighed([1.0, 0.1, 2.0]).scaled(3.0).on(Backend("float64"))
    expected = [3.0 * first.size() * np.repeat([1.0, 0.1, 2.0], 10), np.full(5 * 12, 3.0 * second.size())]
    np.testing.assert_allclose(weighed.reach(), np.concatenate(expected))
    np.testing.assert_array_equal(weighed.with_omega(2.0 * weighed.omega).reach(), weighed.reach())
    point = SpectralPoint(stack, np.ones((6, 1)), np.zeros(1)).copy()
    point.map.omega[:] = 0.0
    assert (point.map.layers[1].omega == 0.0).all()
    assert (stack.omega != 0.0).all()


def test_blocks_and_batches_add_up_to_the_objective(rng, monkeypatch):
    problem, point, _ = stated(rng, m=50)
    whole = problem.evaluate(point)
    monkeypatch.setattr("convexkernels.spectral.learning.BLOCK_ROWS", 7)
    monkeypatch.setattr("convexkernels.spectral.learning.blocks.__defaults__", (7,))
    pieces = problem.evaluate(point)
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(problem.function(point).decision_function(problem.X), point.scores(problem.X))
    # Estimates on batches of equal size average to the value on all points, feature norm included.
    means = [problem.smooth(point, problem.X[i : i + 10], problem.Y[i : i + 10])[0] for i in range(0, 50, 10)]
    assert np.mean(means) == pytest.approx(problem.smooth(point, problem.X, problem.Y)[0])
    features = Spectral.of(point.map).transform(problem.X)
    loss = np.mean(((features @ point.W + point.intercept - problem.Y) ** 2).sum(axis=1))
    expected = loss + 1e-2 * np.linalg.norm(point.W, "nuc") + 1e-3 * np.sum(features**2)
    assert problem.objective(point) == pytest.approx(expected)


def test_losses_are_what_they_are_called(rng):
    F, codes = rng.normal(size=(30, 4)), rng.integers(4, size=30)
    own = F[np.arange(30), codes]
    rival = np.where(np.eye(4)[codes] > 0, -np.inf, F).max(axis=1)
    values = {name: score_loss(name).value(F, score_loss(name).targets_of(codes, 4), np) for name in SCORE_LOSSES}
    assert values["hinge"] == pytest.approx(np.maximum(0, 1 - own + rival).mean())
    assert values["logistic"] == pytest.approx((np.log(np.exp(F).sum(axis=1)) - own).mean())
    assert values["least_squares"] == pytest.approx(((F - np.eye(4)[codes]) ** 2).sum(axis=1).mean())
    f, signs = F[:, :1], np.where(codes % 2 == 1, 1.0, -1.0)[:, None]
    assert score_loss("hinge").value(f, signs, np) == pytest.approx(np.maximum(0, 1 - signs * f).mean())
    assert score_loss("logistic").value(f, signs, np) == pytest.approx(np.log1p(np.exp(-signs * f)).mean())
    assert np.isfinite(score_loss("logistic").value(1e4 * f, signs, np))
    with pytest.raises(InvalidInputError, match="loss must be one of 'least_squares', 'hinge', 'logistic', got 'log'"):
        score_loss("log")


def test_hinge_subgradient_lies_below(rng):
    for classes in (2, 5):
        loss = score_loss("hinge")
        K = 1 if classes == 2 else classes
        Y = loss.targets_of(rng.integers(classes, size=12), classes)
        for _ in range(50):
            F, G = rng.normal(size=(2, 12, K))
            value, slope = loss.value_and_slope(F, Y, np)
            assert loss.value(G, Y, np) >= value + np.sum(slope * (G - F)) - 1e-12


# ---- penalties


@pytest.mark.parametrize("shape", [(12, 4), (12, 1), (3, 8), (5, 5)])
def test_singular_value_thresholding_solves_its_problem(rng, shape):
    Q, threshold = rng.normal(size=shape), 0.7
    W = shrink_singular_values(Q, threshold, BACKEND)
    U, sigma, Vt = np.linalg.svd(Q, full_matrices=False)
    np.testing.assert_allclose(W, (U * np.maximum(sigma - threshold, 0.0)) @ Vt, atol=1e-8 * sigma[0])
    V = cp.Variable(shape)
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(V - Q) + threshold * cp.normNuc(V))).solve(solver="CLARABEL")
    np.testing.assert_allclose(W, V.value, atol=1e-4)
    low = shrink_singular_values(np.outer(rng.normal(size=9), rng.normal(size=3)) + 1e-3, 0.1, BACKEND)
    assert np.linalg.matrix_rank(low, tol=1e-7) == 1
    assert not shrink_singular_values(Q, 2.0 * sigma[0], BACKEND).any()


@pytest.mark.parametrize("penalty", [FrobeniusNorm(0.3), TraceNorm(0.3)])
def test_proximal_steps_do_not_get_better_elsewhere(rng, penalty):
    Q = rng.normal(size=(6, 3))

    def value(V):
        return 0.5 * np.sum((V - Q) ** 2) + 0.9 * penalty.value(V, BACKEND)

    W = penalty.proximal(Q, 0.9, BACKEND)
    for _ in range(50):
        assert value(W) <= value(W + 0.1 * rng.normal(size=W.shape)) + 1e-12


# ---- the convex inner problem


def test_ridge_agrees_with_scikit_learn(rng):
    problem, point, _ = stated(rng, setting="NSKL", lam1=0.05, lam2=0.0)
    found = solve_inner(problem, Moments.of(point.map, problem))
    peer = Ridge(alpha=0.05 * problem.m).fit(point.map(problem.X).values, problem.Y)
    np.testing.assert_allclose(found.W, peer.coef_.T, atol=1e-8)
    np.testing.assert_allclose(found.intercept, peer.intercept_, atol=1e-8)
    certificate = dataclasses.replace(problem, learned=False).certificate(found)
    assert isinstance(certificate, DualityGap)
    assert abs(certificate.relative_gap) < 1e-12


def test_trace_norm_problem_agrees_with_cvxpy(rng):
    problem, point, _ = stated(rng, setting="ASKL", lam1=0.1, lam2=0.0)
    found = solve_inner(problem, Moments.of(point.map, problem), tol=1e-10, max_iter=20_000)
    features = point.map(problem.X).values
    W, c = cp.Variable(found.W.shape), cp.Variable(found.intercept.shape)
    residual = features @ W + np.ones((problem.m, 1)) @ cp.reshape(c, (1, 3), order="C") - problem.Y
    program = cp.Problem(cp.Minimize(cp.sum_squares(residual) / problem.m + 0.1 * cp.normNuc(W)))
    program.solve(solver="CLARABEL")
    assert problem.objective(found) == pytest.approx(program.value, rel=1e-6)
    assert dataclasses.replace(problem, learned=False).certificate(found).residual < 1e-5


def test_moments_of_blocks_are_those_of_the_whole(rng):
    problem, point, _ = stated(rng, m=60)
    moments = Moments.of(point.map, problem)
    P, Y = point.map(problem.X).values, problem.Y
    np.testing.assert_allclose(moments.A, np.cov(P.T, bias=True), atol=1e-12)
    np.testing.assert_allclose(moments.B, (P - P.mean(axis=0)).T @ (Y - Y.mean(axis=0)) / 60, atol=1e-12)
    assert moments.steepness() >= 2.0 * np.linalg.eigvalsh(moments.A)[-1] * 0.999


@pytest.mark.parametrize("loss", SCORE_LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
def test_bounds_enclose_the_optimum_of_fixed_frequencies(rng, loss, classes):
    """The optimum is CVXPY's; bounds come from random points, exact to rounding at a solution."""
    problem, point, _ = stated(rng, loss=loss, setting="SK", classes=classes, lam1=0.05, m=30)
    problem = dataclasses.replace(problem, weights=rng.uniform(0.2, 3.0, 30))
    P, Y, shares = point.map(problem.X).values, problem.Y, problem.weights / problem.total
    W, c = cp.Variable(point.W.shape), cp.Variable((1, Y.shape[1]))
    F = P @ W + np.ones((30, 1)) @ c
    if loss == "least_squares":
        losses = cp.sum(cp.square(F - Y), axis=1)
    elif classes == 2:
        margins = cp.multiply(Y, F)[:, 0]
        losses = cp.pos(1 - margins) if loss == "hinge" else cp.logistic(-margins)
    elif loss == "hinge":
        own = cp.sum(cp.multiply(Y, F), axis=1)
        losses = cp.max(F + 1 - Y - cp.reshape(own, (30, 1), order="C") @ np.ones((1, 3)), axis=1)
    else:
        losses = cp.log_sum_exp(F, axis=1) - cp.sum(cp.multiply(Y, F), axis=1)
    program = cp.Problem(cp.Minimize(shares @ losses + 0.05 * cp.sum_squares(W)))
    optimum = program.solve(solver="CLARABEL")
    for size in (0.01, 0.1, 1.0):
        nearby = SpectralPoint(point.map, W.value + size * rng.normal(size=W.shape), c.value[0] + size)
        certificate = problem.certificate(nearby)
        assert isinstance(certificate, DualityGap)
        assert certificate.lower <= optimum * (1 + 1e-6)
        assert certificate.upper >= optimum * (1 - 1e-6)
    certificate = problem.certificate(SpectralPoint(point.map, W.value, c.value[0]))
    if loss != "hinge":
        assert certificate.holds(1e-5)
        assert certificate.lower > 0.0


def test_a_weight_is_a_repetition(rng):
    for setting, loss in (("ASKL", "logistic"), ("SKL", "hinge"), ("SK", "least_squares")):
        problem, point, _ = stated(rng, loss=loss, setting=setting, m=25)
        counts = rng.integers(1, 4, 25)
        weighted = dataclasses.replace(problem, weights=counts.astype(float))
        rows = np.repeat(np.arange(25), counts)
        repeated = dataclasses.replace(problem, X=problem.X[rows], Y=problem.Y[rows])
        for a, b in zip(weighted.evaluate(point), repeated.evaluate(point), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        assert dataclasses.astuple(weighted.certificate(point)) == pytest.approx(
            dataclasses.astuple(repeated.certificate(point))
        )
        one, other = (Moments.of(point.map, p) for p in (weighted, repeated))
        np.testing.assert_allclose(one.A, other.A, atol=1e-12)
        np.testing.assert_allclose(one.B, other.B, atol=1e-12)
        some = np.arange(5, 20)
        part = repeated.on_rows(np.flatnonzero((rows >= 5) & (rows < 20)))
        assert weighted.on_rows(some).objective(point) == pytest.approx(part.objective(point))
    weights = rng.integers(1, 4, 40).astype(float)
    X, y, options = rng.normal(size=(40, 2)), rng.normal(size=(40, 1)), {"stationary": True, "feature_map": "psi"}
    width = choose_width(
        X, y, weights, rng=np.random.default_rng(5), sigmas=[1.0], lams=[0.1], n_components=5, **options
    )
    again = np.random.default_rng(5)
    rows = again.permutation(40)
    t, w, errors = y[rows, 0], weights[rows], np.zeros(40)
    for stream in (again, *again.spawn(MOST_DRAWS - 1)):
        P = SpectralMap.draw(2, 5, rng=stream, backend=BACKEND, **options)(X[rows]).values
        for k in range(40):
            left = np.arange(40) != k
            # lam is that of the whole table, and so is the sum of the weights.
            peer = Ridge(alpha=w.sum() * 0.1).fit(P[left], t[left], sample_weight=w[left])
            errors[k] += (peer.predict(P[k : k + 1]).item() - t[k]) ** 2 / MOST_DRAWS
    variance = np.average((t - np.average(t, weights=w)) ** 2, weights=w)
    assert width.risks[0, 0] == pytest.approx(np.average(errors, weights=w) / variance, rel=1e-8)


# ---- training


@pytest.mark.parametrize("size", [7, 130])
def test_adam_is_adam_in_one_pass_and_in_several(rng, size):
    block, gradients = rng.normal(size=(70, size)), rng.normal(size=(5, 70, size))
    begun = block.copy()
    mean, square, expected = 0.0, 0.0, block.copy()
    adam, rates, by_row = Adam(block), rng.uniform(0.1, 10.0, (70, 1)), block.copy()
    of_rows = Adam(by_row)
    for t, g in enumerate(gradients, start=1):
        of_rows.step(by_row, g, 0.01 * rates)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        expected -= 0.01 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        adam.step(block, g, 0.01)
    np.testing.assert_allclose(block, expected, rtol=1e-10)
    np.testing.assert_allclose(by_row, begun + rates * (expected - begun), rtol=1e-9, atol=1e-12)


def test_training_with_proximal_steps_ends_at_the_minimizer_of_the_inner_problem(rng):
    """With fixed frequencies the problem is convex; Adam with one step length for all of W solves it."""
    problem, point, _ = stated(rng, setting="ASKL", lam1=0.1, lam2=0.0)
    problem = dataclasses.replace(problem, learned=False)
    start = SpectralPoint(point.map, np.zeros_like(point.W), np.zeros_like(point.intercept))
    training = TrainingRun(problem, start, Training(40, 0.01, 1500), rng, pace=0.3)
    training.run(1500)
    best = problem.objective(solve_inner(problem, Moments.of(point.map, problem), tol=1e-10, max_iter=20_000))
    assert problem.objective(training.point) == pytest.approx(best, rel=1e-4)
    assert np.linalg.matrix_rank(training.point.W, tol=1e-6) < 3


@pytest.mark.parametrize("loss", SCORE_LOSSES)
@pytest.mark.parametrize("setting", ["SKL", "NSKL", "ASKL"])
def test_training_lowers_the_objective_and_moves_the_frequencies(rng, loss, setting):
    problem, point, codes = stated(rng, loss=loss, setting=setting, m=200, D=20, lam1=1e-4, lam2=1e-6)
    codes = (problem.X[:, 0] > 0).astype(int) + (problem.X[:, 1] > 0)
    problem = dataclasses.replace(problem, Y=problem.loss.targets_of(codes, 3))
    before, omega = problem.objective(point), point.map.omega.copy()
    training = TrainingRun(
        problem, point.copy(), Training(20, 0.03, 15), rng, validation_of(problem, np.arange(problem.m), codes)
    )
    assert training.run(15) is Status.ITERATION_LIMIT
    assert problem.objective(training.best) < 0.3 * before
    assert training.best_score > 0.85
    assert np.abs(training.point.map.omega - omega).max() > 0.01
    np.testing.assert_array_equal(point.map.omega, omega)
    assert [epoch.epoch for epoch in training.history] == list(range(1, 16))


def test_fixed_settings_leave_the_frequencies_alone(rng):
    problem, point, _ = stated(rng, loss="logistic", setting="NSK")
    omega = point.map.omega.copy()
    training = TrainingRun(problem, point, Training(10, 0.03, 3), rng)
    training.run(3)
    np.testing.assert_array_equal(training.point.map.omega, omega)


def test_numbers_that_are_not_finite_stop_training_with_the_last_good_weights(rng):
    problem, point, _ = stated(rng, m=40)
    training = TrainingRun(problem, point.copy(), Training(10, 0.01, 5), rng)
    training.run(2)
    good = training.best.copy()
    broken = problem.X.copy()
    broken[3] = np.nan
    training.problem = dataclasses.replace(problem, X=broken)
    with pytest.warns(ConvexKernelsWarning, match=r"epoch 3.*NUMERICAL_ERROR.*last good weights"):
        assert training.run(3) is Status.NUMERICAL_ERROR
    np.testing.assert_array_equal(training.best.W, good.W)
    assert training.point.is_finite


def test_patience_time_and_interrupts_end_training(rng, monkeypatch):
    problem, point, _ = stated(rng, m=40)
    scores = iter([0.5, 0.6, 0.5, 0.4, 0.3])
    training = TrainingRun(problem, point.copy(), Training(10, 0.01, 20, patience=2), rng, lambda p: next(scores))
    assert training.run(20) is Status.EARLY_STOPPED
    assert len(training.history) == 3
    assert training.best_score == 0.6
    late = TrainingRun(problem, point.copy(), Training(1, 0.01, 20), rng, clock=Clock(1e-9))
    assert late.run(20) is Status.TIME_LIMIT
    assert len(late.history) == 1

    def interrupt(*_):
        raise KeyboardInterrupt

    stopped = TrainingRun(problem, point.copy(), Training(10, 0.01, 20), rng)
    monkeypatch.setattr(stopped, "one_epoch", interrupt)
    assert stopped.run(20) is Status.INTERRUPTED


def test_batches_that_are_larger_than_the_table_are_refused_or_cut():
    with pytest.raises(InvalidInputError, match="batch_size is 41, but there are only 40 rows"):
        Training(batch_size=41).settled(40)
    assert Training(batch_size=41).settled(40, most=True).batch_size == 40
    assert Training().settled(40) == Training(batch_size=40)
    assert Training().settled(400) == Training(batch_size=64)


@pytest.mark.parametrize(("loss", "rate"), [("least_squares", 0.1), ("hinge", 0.03), ("logistic", 0.03)])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_first_steps_of_frequencies_change_scores_a_little(loss, rate, offset, rng):
    """Far from the origin, where W is large, they would undo what the start knew; rates that are given stay."""
    problem, start, _ = stated(rng, loss=loss, setting="NSKL", classes=2, m=60, D=40, lam1=1e-6)
    problem = dataclasses.replace(problem, X=problem.X + offset)
    start = solve_inner(problem, Moments.of(start.map.scaled(0.05), problem))
    before, size = start.scores(problem.X), start.map.size()

    def first_step(given):
        run = TrainingRun(problem, start.copy(), Training(60, given, 1), np.random.default_rng(0))
        run.one_epoch()
        moved = SpectralPoint(run.point.map, start.W, start.intercept).scores(problem.X)
        share = ((moved - before) ** 2).mean() / ((before - before.mean(axis=0)) ** 2).mean()
        return np.abs(run.point.map.omega - start.map.omega).max() / size, np.sqrt(share)

    step, share = first_step(None)
    given, harm = first_step(rate)
    assert given == pytest.approx(rate, rel=1e-3)
    assert harm > 0.5
    if loss == "least_squares":  # its W is small while frequencies are trained
        assert step == given
    else:
        assert step < 0.2 * rate
        assert share == pytest.approx(0.1, rel=0.05)


# ---- choices


def test_leave_one_out_risks_are_those_of_refitting(rng):
    X, y = rng.normal(size=(25, 2)), rng.normal(size=(25, 1))
    width = choose_width(
        X, y, stationary=True, feature_map="psi", rng=np.random.default_rng(5), sigmas=[0.5, 1.0], lams=[1e-3, 1e-1],
        n_components=10,
    )  # fmt: skip
    again = np.random.default_rng(5)
    rows = again.permutation(25)
    draws = [
        SpectralMap.draw(2, 10, stationary=True, feature_map="psi", rng=stream, backend=BACKEND)
        for stream in (again, *again.spawn(MOST_DRAWS - 1))
    ]
    for i, sigma in enumerate([0.5, 1.0]):
        for j, lam in enumerate([1e-3, 1e-1]):
            errors = []
            for drawn, k in itertools.product(draws, range(25)):
                P, t = drawn.scaled(sigma)(X[rows]).values, y[rows]
                left = np.arange(25) != k
                peer = Ridge(alpha=25 * lam).fit(P[left], t[left])
                errors.append((peer.predict(P[k : k + 1]).item() - t[k, 0]) ** 2)
            # 25 lam instead of 24 lam: the closed form keeps the ridge of the whole table.
            assert width.risks[i, j] == pytest.approx(np.mean(errors) / y.var(), rel=1e-8)


def test_sigma_is_chosen_by_the_scale_of_the_data(rng):
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sin(6 * X[:, :1])
    a = choose_width(X, y, stationary=True, feature_map="phi", rng=np.random.default_rng(0))
    b = choose_width(100 * X, y, stationary=True, feature_map="phi", rng=np.random.default_rng(0))
    assert a.sigma == pytest.approx(100 * b.sigma)
    assert a.risks.min() < 0.01
    assert 1.0 < a.sigma < 12.0


def test_matched_trace_weight_pulls_as_hard(rng):
    W, lam = rng.normal(size=(9, 3)), 0.2
    weight, h = matched_trace_weight(lam, W), 1e-6
    pull = (lam * np.sum(((1 + h) * W) ** 2) - lam * np.sum(W**2)) / h
    assert weight * (np.linalg.norm((1 + h) * W, "nuc") - np.linalg.norm(W, "nuc")) / h == pytest.approx(pull, rel=1e-4)


def test_halving_finds_the_weight_that_validates_best(rng):
    X = rng.uniform(-1, 1, (120, 2))
    y = np.sin(3 * X[:, :1]) + 0.1 * rng.normal(size=(120, 1))
    problem = SpectralLearning.stated(
        X, y, score_loss("least_squares"), SETTINGS["NSKL"], lam1=0.0, lam2=0.0, backend=BACKEND
    )
    drawn = SpectralMap.draw(2, 30, stationary=False, feature_map="phi", rng=rng, backend=BACKEND)
    rows = np.arange(80)
    start = SpectralPoint(drawn, np.zeros((30, 1)), np.zeros(1))
    folds = [Fold(problem.on_rows(rows), {1.0: start}, validation_of(problem, np.arange(80, 120), None))]
    candidates = [Candidate(1.0, lam1, 0.0) for lam1 in (10.0, 1e-5, 30.0, 100.0)]
    choice = choose_candidate(folds, candidates, Training(20, 0.03, 9), rng=rng)
    assert choice.best == candidates[1]
    assert choice.last is None
    assert choice.scores.shape == (4,)
    assert choice.scores[1] == choice.scores.max()
    assert sorted(choice.n_epochs) == [3, 3, 9, 9]
    assert choice.n_epochs[1] == 9
    assert not start.W.any()


def test_fixed_frequencies_are_cross_validated_as_by_refitting(rng):
    """With squared loss nothing is trained: every score is that of a ridge regression on the other folds."""
    X = rng.uniform(-1, 1, (90, 2))
    y = np.sin(3 * X[:, :1]) + 0.1 * rng.normal(size=(90, 1))
    problem = SpectralLearning.stated(
        X, y, score_loss("least_squares"), SETTINGS["SK"], lam1=0.0, lam2=0.0, backend=BACKEND
    )
    drawn = SpectralMap.draw(2, 20, stationary=True, feature_map="phi", rng=rng, backend=BACKEND)
    sigmas, weights, parts = (0.1, 2.0), (1e-1, 1e-3, 1e-5), np.array_split(rng.permutation(90), 3)
    folds = []
    for part in parts:
        rows = np.setdiff1d(np.arange(90), part)
        starts = {s: SpectralPoint(drawn.scaled(s), np.zeros((20, 1)), np.zeros(1)) for s in sigmas}
        folds.append(Fold(problem.on_rows(rows), starts, validation_of(problem, part, None), 1.5))
    candidates = [Candidate(s, 1.0, 0.0) for s in sigmas]
    last = FinalWeights(weights, are_ridges=True)
    choice = choose_candidate(folds, candidates, Training(10, 0.03, 8), lambda sigma: last, rng=rng)
    expected = np.zeros((2, 3))
    for i, sigma in enumerate(sigmas):
        P = drawn.scaled(sigma)(X).values
        for j, weight in enumerate(weights):
            for part in parts:
                rows = np.setdiff1d(np.arange(90), part)
                peer = Ridge(alpha=90 * weight).fit(P[rows], y[rows, 0])  # as in the sum over all 90
                expected[i, j] -= np.mean((peer.predict(P[part]) - y[part, 0]) ** 2) / 3
    np.testing.assert_allclose(choice.scores, expected.max(axis=1), rtol=1e-6)
    assert choice.best == candidates[int(expected.max(axis=1).argmax())]
    assert choice.last == weights[int(expected.max(axis=0).argmax())]
    assert not choice.n_epochs.any()


@pytest.mark.parametrize("setting", ["SKL", "ASKL"])
def test_exact_points_solve_the_problem_of_the_weight_they_name(rng, setting):
    """Ridges with one output solve the trace norm's problem, too, at the lam1 that is named."""
    problem, point, _ = stated(rng, setting=setting, m=60, D=6, lam1=0.05, lam2=0.0)
    problem = dataclasses.replace(problem, Y=problem.Y[:, :1])
    moments = Moments.of(point.map, problem)
    for are_ridges in (True, False):
        path = exact_points(problem, moments, FinalWeights((1e-1, 1e-2, 1e-4), are_ridges))
        for lam1, found in path:
            at = dataclasses.replace(problem.with_weights(lam1, 0.0), learned=False)
            certificate = at.certificate(found)
            assert certificate.holds(1e-9) if setting == "SKL" else certificate.residual < 1e-5


@pytest.mark.parametrize(
    ("scores", "rise", "best"),
    [
        ((0.6, 0.6, 0.5, 0.5, 0.4, 0.7), False, 5),  # from a ridge that nothing has chosen
        ((0.6, 0.6, 0.6, 0.7), True, 3),
        ((0.6, 0.5, 0.5, 0.9), True, 0),
        ((0.6, 0.5, 0.7, 0.1), True, 2),
    ],
)
def test_a_path_of_weights_ends_where_scores_have_fallen_from_a_chosen_one(rng, scores, rise, best):
    problem, point, _ = stated(rng)
    weights, left = tuple(10.0 ** np.arange(len(scores))), iter(scores)
    last = FinalWeights(weights, True, rise)
    found = fitting._best_of(Moments.of(point.map, problem), problem, last, lambda point: next(left))
    assert found == (scores[best], weights[best])


@pytest.mark.parametrize(
    ("n_hits", "drawn", "trained", "stays"),
    [(0, -0.2, -0.19, True), (0, -0.2, -0.17, False), (9, 0.8, 0.81, True), (9, 0.8, 0.83, False)],
)
def test_trained_frequencies_have_nine_tenths_of_the_error_of_drawn_ones(
    rng, monkeypatch, n_hits, drawn, trained, stays
):
    problem, start, _ = stated(rng)
    moved = start.copy()
    run = SimpleNamespace(point=moved, best=moved, history=[...], n_hits=n_hits)
    scores = {start.map: (drawn, 1.0), moved.map: (trained, 2.0)}
    monkeypatch.setattr(fitting, "_best_of", lambda moments, *_: scores[moments.map])
    chosen, last = (start.map, 1.0) if stays else (moved.map, 2.0), FinalWeights((1.0, 2.0), True)
    assert fitting._validated(problem, run, None, last, Moments.of(start.map, problem)) == chosen


# ---- variable projection


@pytest.mark.parametrize("stationary", [False, True])
def test_variable_projection_is_the_objective_with_exact_weights(rng, stationary):
    """The value of the family is that of the problem at the exact W; its search ends where the certificate is small."""
    setting = "SKL" if stationary else "NSKL"
    problem, point, _ = stated(rng, setting=setting, m=40, D=4, lam1=0.05, lam2=0.0, feature_map="psi")
    family, loss = SpectralMaps(4, stationary=stationary), LeastSquares(0.05 * problem.m)
    outer = OuterLearning(family, loss, TrainingValue(), problem.X, problem.Y)
    solution = outer.solve("quasi-newton", start=point.map.omega.ravel(), tol=1e-5, max_iter=300)
    assert solution.value < outer.certificate(point.map.omega.ravel()).value
    spectral_map = point.map.with_omega(solution.theta.reshape(point.map.omega.shape))
    exact = solve_inner(problem, Moments.of(spectral_map, problem))
    assert problem.m * problem.objective(exact) == pytest.approx(solution.value, rel=1e-8)
    assert problem.certificate(exact).relative_residual < 1e-3
    np.testing.assert_allclose(solution.kernel(problem.X), Spectral.of(spectral_map)(problem.X))
    np.testing.assert_allclose(solution.decision_function(problem.X), exact.scores(problem.X), atol=1e-6)


# ---- the learned kernel on other rows


def solution_at(problem, point):
    return Solution(problem, point, problem.certificate(point), Status.UNPROVEN, 0, 0.0, (), "none")


def test_on_the_same_rows_one_kernel_gives_the_function_that_was_learned(rng):
    problem, point, _ = stated(rng, setting="NSK", classes=3)
    point = solve_inner(problem, Moments.of(point.map, problem))
    fixed = FixedKernel.of(solution_at(problem, point), problem.X, problem.Y)
    found = fixed.solve(lams=[fixed.loss.lam], tol=1e-8)
    np.testing.assert_allclose(found.decision_function(problem.X), point.scores(problem.X), atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "name"), [("least_squares", "LeastSquares"), ("hinge", "Hinge"), ("logistic", "Logistic")]
)
@pytest.mark.parametrize("setting", ["SK", "ASKL"])
def test_one_kernel_has_the_loss_and_the_ridge_of_what_was_learned(loss, name, setting, rng):
    problem, point, _ = stated(rng, loss=loss, setting=setting, classes=2, lam1=1e-2)
    fixed = FixedKernel.of(solution_at(problem, point), problem.X, problem.Y[:, 0])
    ridge = 1e-2 / (2.0 * np.linalg.norm(point.W)) if setting == "ASKL" else 1e-2
    assert type(fixed.loss).__name__ == name
    assert fixed.loss.lam == pytest.approx(ridge * problem.m)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_losses_of_several_classes_are_no_losses_of_one_kernel(loss, rng):
    problem, point, _ = stated(rng, loss=loss, classes=3)
    with pytest.raises(InvalidInputError, match="the loss of 3 classes is not a sum over outputs"):
        FixedKernel.of(solution_at(problem, point), problem.X, problem.Y)
