"""The checks of a kernel a user brings: what they accept, what they refute, and with which witness."""

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.checking import Outcome, Verdict, gram_and_error, richardson_derivative


def points(m=20, n=2, seed=0):
    return np.random.default_rng(seed).random((m, n))


class Tilted:
    """A kernel-like object whose values and pullback can be spoiled."""

    def __init__(self, values=lambda K: K, gradient=lambda G: G):
        self.kernel, self.values, self.gradient = ck.Gaussian(2.0), values, gradient

    def __call__(self, X, Y):
        return self.values(self.kernel(X, Y))

    def pullback(self, X, Y, M):
        return self.gradient(self.kernel.pullback(X, Y, M))


@pytest.mark.parametrize("spread", [1e-12, 1e-9, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("kernel", [ck.Gaussian(1.0), ck.Gaussian(100.0), ck.Linear(), ck.Polynomial(5), ck.Matern(2)])
def test_positive_kernels_hold_however_close_the_points_are(kernel, spread):
    X = 0.5 + spread * (points(30, 3) - 0.5)
    assert ck.check_psd(kernel, X).outcome is Outcome.HOLDS_NUMERICALLY


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e8, 1e100])
def test_verdict_does_not_depend_on_the_scale_of_the_kernel(scale):
    X = points()
    assert ck.check_psd(lambda U, V: scale * ck.Gaussian(1.0)(U, V), X).holds
    assert not ck.check_psd(lambda U, V: scale * (ck.Gaussian(1.0)(U, V) - 0.9), X).holds


def test_indefinite_kernel_is_refuted_by_a_vector_anyone_can_multiply():
    def sigmoid(U, V):
        return np.tanh(U @ V.T - 1.0)

    verdict = ck.check_psd(sigmoid, points())
    assert verdict.outcome is Outcome.REFUTED
    X, c = verdict.witness["X"], verdict.witness["c"]
    assert c @ sigmoid(X, X) @ c == pytest.approx(-verdict.worst_violation, rel=1e-9)
    assert -verdict.worst_violation < -verdict.tolerance


@pytest.mark.parametrize(("shift", "holds"), [(1e-17, True), (1e-10, False)])
def test_violation_far_below_the_entries_is_seen_and_rounding_is_not(shift, holds):
    def singular_minus(U, V):
        same = (U[:, None, :] == V[None, :, :]).all(axis=2)
        return U @ V.T - shift * same

    assert ck.check_psd(singular_minus, points(12, 2)).holds is holds


def test_asymmetric_kernel_is_refuted_by_a_pair_of_rows():
    def lopsided(U, V):
        return ck.Gaussian(1.0)(U, V) * (1.0 + 0.1 * (U[:, :1] > V[:, 0]))

    verdict = ck.check_psd(lopsided, points())
    X = verdict.witness["X"]
    i, j = verdict.witness["pair"]
    K = lopsided(X, X)
    assert verdict.outcome is Outcome.REFUTED
    assert abs(K[i, j] - K[j, i]) == verdict.worst_violation > verdict.tolerance


def test_kernel_that_is_not_finite_is_refuted_with_the_pair():
    def broken(U, V):
        K = ck.Gaussian(1.0)(U, V)
        K[0, -1] = np.nan
        return K

    verdict = ck.check_psd(broken, points(5))
    assert verdict.worst_violation == np.inf
    assert not verdict.holds
    np.testing.assert_array_equal(verdict.witness["pair"], [0, 4])


def test_single_point_and_zero_kernel_are_fine():
    assert ck.check_psd(ck.Gaussian(1.0), [[0.5, 0.5]]).holds
    assert ck.check_psd(lambda U, V: np.zeros((len(U), len(V))), points()).holds
    assert not ck.check_psd(lambda U, V: -np.ones((len(U), len(V))), [[0.5]]).holds


def test_points_are_not_modified():
    X = points()
    kept = X.copy()
    ck.check_psd(ck.Gaussian(1.0), X)
    ck.check_gradient(ck.Gaussian(1.0), X)
    np.testing.assert_array_equal(X, kept)


def test_wrong_shape_is_refused_by_name():
    with pytest.raises(ck.InvalidInputError, match=r"kernel\(X, Y\) must return shape \(20, 20\).*got \(20,\)"):
        ck.check_psd(lambda U, V: np.ones(len(U)), points())


@pytest.mark.parametrize("check", [ck.check_psd, ck.check_gradient])
def test_bad_points_are_refused_by_name(check):
    with pytest.raises(ck.InvalidInputError, match="X has a missing or infinite value at row 1"):
        check(ck.Gaussian(1.0), [[0.0], [np.nan]])


@pytest.mark.parametrize(
    "kernel",
    [
        ck.Gaussian(3.0),
        ck.Polynomial(4, 0.3),
        ck.Linear(),
        ck.Matern(3, 0.5),
        ck.Gaussian(1.0) * ck.Polynomial(2) + 1.0,
    ],
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_right_gradients_hold_at_any_scale(kernel, scale):
    verdict = ck.check_gradient(kernel, scale * points(6), scale * points(5, seed=1), trials=3)
    assert verdict.holds, verdict


@pytest.mark.parametrize("error", [1.0, 1e-3, 1e-6, 1e-9])
def test_wrong_gradients_are_refuted_down_to_small_errors(error):
    kernel = Tilted(gradient=lambda G: (1.0 + error) * G)
    verdict = ck.check_gradient(kernel, points(6), points(5, seed=1))
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.witness["claimed_slope"] == pytest.approx((1.0 + error) * verdict.witness["slope"], rel=1e-10)


def test_gradient_of_a_moved_origin_is_refuted():
    assert not ck.check_gradient(Tilted(gradient=lambda G: G + 1e-6), points(4)).holds


@pytest.mark.parametrize("noise", [0.3, 1e-4])
def test_kernels_that_answer_differently_are_refuted(noise):
    rng = np.random.default_rng(0)
    noisy = Tilted(lambda K: K + noise * rng.standard_normal(K.shape), gradient=np.zeros_like)
    for verdict in (ck.check_psd(noisy, points()), ck.check_gradient(noisy, points())):
        assert verdict.outcome is Outcome.REFUTED
        one, other = verdict.witness["values"]
        assert abs(one - other) == verdict.worst_violation > 0.1 * noise


def test_kernels_that_look_at_their_block_are_refuted():
    def centered(U, V):
        return (U - V.mean(axis=0)) @ (V - V.mean(axis=0)).T

    assert not ck.check_psd(centered, points()).holds
    assert not ck.check_psd(lambda U, V: np.exp(-np.arange(len(U))[:, None] - 0.0 * V[:, 0]), points()).holds


def test_kernel_without_derivative_says_so():
    with pytest.raises(ck.NotDifferentiableError):
        ck.check_gradient(ck.Matern(order=1), points(4))


@pytest.mark.parametrize("trials", [0, -1, 1.5])
def test_trials_below_one_are_refused(trials):
    with pytest.raises(ck.InvalidInputError, match="trials must be a whole number >= 1"):
        ck.check_gradient(ck.Gaussian(1.0), points(3), trials=trials)


def test_same_seed_same_verdict():
    first, second, other = (ck.check_gradient(ck.Gaussian(1.0), points(4), rng=seed) for seed in (3, 3, 4))
    assert first.worst_violation == second.worst_violation
    np.testing.assert_array_equal(first.witness["V"], second.witness["V"])
    assert not np.array_equal(first.witness["V"], other.witness["V"])


@pytest.mark.parametrize(
    ("f", "slope"),
    [(np.sin, 1.0), (np.exp, 1.0), (lambda t: 1.0 / (2.0 + t), -0.25), (lambda t: t**3 - 4.0 * t, -4.0)],
)
def test_extrapolated_derivative_is_within_its_own_error(f, slope):
    value, error = richardson_derivative(lambda t: (float(f(t)), 4 * np.finfo(float).eps * abs(float(f(t)))), 0.5)
    assert abs(value - slope) <= error < 1e-10


def test_extrapolated_derivative_of_noisy_values_admits_the_noise():
    def noisy(t):
        return float(np.sin(t) + 1e-6 * np.cos(1e9 * t)), 1e-6

    value, error = richardson_derivative(noisy, 0.5)
    assert abs(value - 1.0) <= error
    assert error > 1e-6


def test_verdict_words():
    assert Verdict(0.0, 0.0, 1).holds
    assert Verdict(1.0, 2.0, 1).holds
    assert not Verdict(2.0, 1.0, 1).holds
    assert not Verdict(float("nan"), 1.0, 1).holds
    assert str(Verdict(2.0, 1.0, 3)) == "refuted: worst violation 2, tolerance 1, 3 trials"
    joined = Verdict.worst([Verdict(0.1, 1.0, 2), Verdict(3.0, 1.0, 1), Verdict(0.0, 0.0, 4)])
    assert (joined.worst_violation, joined.trials, joined.holds) == (3.0, 7, False)
    unsure = Verdict.worst([Verdict(5.0, 1.0, 1), Verdict(float("nan"), 1.0, 1)])
    assert np.isnan(unsure.worst_violation)


def test_measured_error_bounds_the_distance_to_a_longer_arithmetic():
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no arithmetic longer than float64 here")
    X = points(25, 3)
    K, error = gram_and_error(ck.Gaussian(2.0), X)
    wide = X.astype(np.longdouble)
    exact = np.exp(-2 * ((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    assert np.abs(K - exact).max() <= error < 1e-14
