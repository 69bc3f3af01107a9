"""The interior-point method: its cones, the problems it is for, and when it is asked."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.cones import Orthant, SemidefiniteCone
from convexkernels.solvers.convex.interior_point import InteriorPoint
from convexkernels.solvers.convex.newton_system import System
from convexkernels.solvers.convex.spectral_gradient import SpectralGradient


def inside(cone, rng):
    if isinstance(cone, Orthant):
        return rng.uniform(0.1, 2.0, cone.rank)
    root = rng.standard_normal((cone.rank, cone.rank))
    return root @ root.T + 0.1 * np.eye(cone.rank)


def symmetric(cone, rng):
    D = rng.standard_normal(cone.one.shape)
    return D if D.ndim == 1 else D + D.T


@pytest.mark.parametrize("cone", [Orthant(5), SemidefiniteCone(4)])
def test_the_scaling_maps_one_point_to_the_other(cone):
    rng = np.random.default_rng(0)
    P, S = inside(cone, rng), inside(cone, rng)
    scaling = cone.scaling(P, S)
    np.testing.assert_allclose(scaling.apply(S), P, rtol=1e-10)
    T = np.array([symmetric(cone, rng) for _ in range(6)])
    half = scaling.halves(T)
    expected = [[np.vdot(a, scaling.apply(b)) for b in T] for a in T]
    np.testing.assert_allclose(half @ half.T, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cone", [Orthant(5), SemidefiniteCone(4)])
def test_the_corrected_target_is_the_linearized_product_of_scaled_points(cone):
    """``sym((Lambda + dP~)(Lambda + dS~)) = mu`` for a direction that satisfies ``dP + W(dS) = target``."""
    rng = np.random.default_rng(1)
    P, S, dS = inside(cone, rng), inside(cone, rng), symmetric(cone, rng)
    scaling, mu = cone.scaling(P, S), 0.3
    plain = scaling.target(mu) - scaling.apply(dS)
    if P.ndim == 1:
        np.testing.assert_allclose(P * S + plain * S + P * dS, mu)
        corrected = scaling.target(mu, plain, dS) - scaling.apply(dS)
        np.testing.assert_allclose(P * S + corrected * S + P * dS + plain * dS, mu)
        return
    spectrum = np.diag(scaling.spectrum)

    def scaled(dP):
        return scaling.inverse @ dP @ scaling.inverse.T, scaling.G.T @ dS @ scaling.G

    def sym(A):
        return 0.5 * (A + A.T)

    p, s = scaled(plain)
    np.testing.assert_allclose(sym(spectrum @ spectrum + spectrum @ s + p @ spectrum), mu * np.eye(4), atol=1e-9)
    q, _ = scaled(scaling.target(mu, plain, dS) - scaling.apply(dS))
    np.testing.assert_allclose(
        sym(spectrum @ spectrum + spectrum @ s + q @ spectrum) + sym(p @ s), mu * np.eye(4), atol=1e-9
    )


@pytest.mark.parametrize("cone", [Orthant(5), SemidefiniteCone(4)])
def test_the_longest_step_ends_on_the_boundary(cone):
    rng = np.random.default_rng(2)
    P, S = inside(cone, rng), inside(cone, rng)
    dP, dS = -symmetric(cone, rng) - cone.one, symmetric(cone, rng)
    reach = cone.scaling(P, S).reach(dP, dS)
    assert cone.scaling(P + 0.999 * reach * dP, S + 0.999 * reach * dS) is not None
    assert cone.scaling(P + 1.001 * reach * dP, S + 1.001 * reach * dS) is None


def kinked_problem():
    """Nearly a hard margin with more monomials than points carry: the best kernel is singular on the data."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 12))
    y = np.where(X[:, :4].sum(axis=1) + 0.2 * rng.normal(size=80) > 2.0, 1.0, -1.0)
    return ck.KernelLearning(ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1)), ck.Hinge(1.0), X, y)


def noisy_labels():
    """120 rows of four features, two of which matter."""
    rng = np.random.default_rng(0)
    X = rng.random((120, 4))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(120) > 0.85, 1.0, -1.0)


def test_singular_best_kernels_are_certified_to_many_digits():
    problem = kinked_problem()
    solution = problem.solve("interior-point", tol=1e-7)
    assert solution.status is ck.Status.OPTIMAL
    assert solution.n_iter <= 50
    assert np.linalg.eigvalsh(solution.theta)[0] >= 0.0


def test_descent_hands_over_where_it_is_slow_and_takes_back_where_the_other_stalls():
    problem = kinked_problem()
    solver = SpectralGradient(newton_below=0.0, patience=3)
    handed = problem.solve(solver, tol=1e-6)
    assert handed.status is ck.Status.OPTIMAL

    class Stalling(InteriorPoint):
        def step(self, problem, iterate, tol, deadline):
            iterate.status = ck.Status.STALLED
            return iterate

    solver.other = Stalling()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        alone = problem.solve(solver, tol=1e-6, max_iter=40)
    assert alone.n_iter > 5
    assert alone.certificate.upper >= handed.certificate.lower


class Refusing(InteriorPoint):
    """Takes over from nobody."""

    def accepts(self, problem):
        return "not this one"


@pytest.mark.parametrize(("seed", "other"), [(3, InteriorPoint), (4, InteriorPoint), (3, Refusing), (4, Refusing)])
def test_descent_leaves_a_kink_far_from_the_optimum(seed, other):
    """At a kernel of one category the SVM has many solutions, and none of them says how J falls."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (150, 6)).astype(float)
    y = np.where(rng.random(150) < 0.6, 0.0, rng.poisson(1 + X[:, 0]))
    kernels = [ck.OnColumns(ck.Gaussian(1.0), [i]) for i in range(6)] + [ck.Gaussian(g) for g in (0.01, 0.1, 1.0, 10.0)]
    family = ck.Candidates(kernels, normalize="variance", allow_duplicates=True)
    problem = ck.KernelLearning(family, ck.EpsilonInsensitive(10.0, 0.2), X, y)
    theta = np.eye(10)[5]
    solver = SpectralGradient(initial=(theta, problem.evaluate(theta).alpha))
    solver.other = other()
    assert problem.solve(solver, tol=1e-2, max_iter=100).status is ck.Status.OPTIMAL


@pytest.mark.parametrize(
    ("gap", "tightening", "interior", "expected"),
    [(0.5, 1e-2, 0.0, "leave"), (0.05, 1e-2, 0.0, "tighten"), (0.5, 1.0, 0.0, "tighten"), (0.5, 1e-2, 0.1, "tighten")],
)
def test_only_exact_machines_far_from_the_optimum_tell_of_a_kink(gap, tightening, interior, expected, monkeypatch):
    """Near the optimum, or before machines were solved more exactly, the fall of J may be lost in their errors."""
    problem, solver = kinked_problem(), SpectralGradient()
    iterate = solver.start(problem, 1e-6, None)
    iterate.lower = (1.0 - gap) * iterate.upper
    iterate.memory = replace(iterate.memory, tightening=tightening, interior=interior)
    assert iterate.relative_gap == pytest.approx(gap)
    monkeypatch.setattr(solver, "_search", lambda *_: None)
    monkeypatch.setattr(solver, "_leave", lambda *_: "leave")
    monkeypatch.setattr(solver, "_tighten", lambda *_: "tighten")
    assert solver.step(problem, iterate, 1e-6, None) == expected


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_bounds_far_from_the_optimum_and_many_candidates(C):
    """Whether all, some or no coefficients are at their bounds; nearly collinear kernels."""
    rng = np.random.default_rng(3)
    X = rng.random((60, 3))
    y = np.where(X[:, 0] > 0.5 + 0.1 * np.sin(9.0 * X[:, 1]), 1.0, -1.0)
    kernels = [ck.Gaussian(gamma=g) for g in np.geomspace(0.5, 50.0, 40)]
    problem = ck.KernelLearning(ck.Candidates(kernels), ck.Hinge(C), X, y)
    solution = problem.solve("interior-point", tol=1e-6)
    assert solution.status is ck.Status.OPTIMAL
    assert solution.n_iter <= 60


@pytest.mark.parametrize(
    ("kernels", "normalize", "intercept"),
    [
        # Wide Gaussians are nearly constant: all but the constant is what an intercept leaves of them.
        (ck.kernel_library(4, narrowest=0.1, widest=5.0), "variance", True),
        # Without an intercept the first point is far from the optimum, and the way there starts with short steps.
        (ck.kernel_library(4), "mean", False),
    ],
    ids=["large constants", "far from the start"],
)
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_few_steps_from_wherever_it_starts(kernels, normalize, intercept, C):
    X, y = noisy_labels()
    family = ck.Candidates(kernels, normalize=normalize, allow_duplicates=True)
    solution = ck.KernelLearning(family, ck.Hinge(C, intercept=intercept), X, y).solve("interior-point", tol=1e-6)
    assert solution.status is ck.Status.OPTIMAL
    assert solution.n_iter <= 30


def test_constants_say_nothing_of_where_to_start():
    """Of Gaussians as wide as these, all but a share of 1e-4 is constant, and so much smaller would the start be."""
    X, y = noisy_labels()
    kernels = ck.kernel_library(4, narrowest=100.0, widest=1000.0)
    family = ck.Candidates(kernels, normalize="variance", allow_duplicates=True)
    solution = ck.KernelLearning(family, ck.Hinge(1.0), X, y).solve("interior-point", tol=1e-6)
    assert solution.status is ck.Status.OPTIMAL
    assert solution.n_iter <= 25


def test_a_correction_that_makes_steps_short_is_left_out(monkeypatch):
    """Far from the path the second-order error of a whole step says nothing; centering alone would stay where it is."""
    direct = System.direction

    def misled(self, mu, ahead=None):
        found = direct(self, mu, ahead)
        if ahead is not None:
            found.P = -100.0 * self.state.P
        return found

    monkeypatch.setattr(System, "direction", misled)
    solution = kinked_problem().solve("interior-point", tol=1e-5, max_iter=100)
    assert solution.status is ck.Status.OPTIMAL


def test_rows_of_weight_zero_and_several_outputs():
    rng = np.random.default_rng(4)
    X = rng.random((40, 2))
    Y = np.column_stack([X[:, 0] ** 2, np.cos(4.0 * X[:, 1]), X.sum(axis=1)])
    weights = np.where(np.arange(40) % 5 == 0, 0.0, 1.0)
    kernels = [ck.Gaussian(gamma=g) for g in (0.1, 1.0, 10.0)]
    for loss in (ck.LeastSquares(0.05), ck.EpsilonInsensitive(C=2.0, epsilon=0.05)):
        whole = ck.KernelLearning(ck.Candidates(kernels, normalize="none"), loss, X, Y, sample_weight=weights)
        fewer = ck.KernelLearning(ck.Candidates(kernels, normalize="none"), loss, X[weights > 0], Y[weights > 0])
        a, b = whole.solve("interior-point", tol=1e-7), fewer.solve("spectral-gradient", tol=1e-7)
        assert a.value == pytest.approx(b.value, rel=1e-6)
        assert not a.alpha[:, weights == 0].any()


def test_what_it_cannot_solve_is_refused():
    y = np.where(np.arange(300) % 2, 1.0, -1.0)
    problem = ck.KernelLearning(ck.AllKernelMatrices(), ck.Hinge(1.0), y[:, None], y)
    with pytest.raises(ck.InvalidInputError, match=r"interior-point.*90000 numbers are too many"):
        problem.solve("interior-point")


@pytest.mark.parametrize(("m", "count"), [(6, 30), (15, 10)])
@pytest.mark.parametrize("loss", [ck.Hinge(1.0), ck.LeastSquares(0.1)])
def test_spans_of_nearly_dependent_kernels_are_certified_without_a_warning(m, count, loss):
    X = np.random.default_rng(0).random((m, 2))
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    family = ck.Span([ck.Gaussian(gamma=g) for g in np.geomspace(0.1, 30.0, count)], trace=float(m))
    solution = ck.KernelLearning(family, loss, X, y).solve(tol=1e-4)
    assert solution.status is ck.Status.OPTIMAL
    assert solution.certificate.gap >= 0.0
    assert np.linalg.eigvalsh(solution.kernel(X))[0] >= -1e-9 * m


def test_steps_end_where_rounding_is_what_is_left_of_the_gap():
    X, y = noisy_labels()
    library = ck.kernel_library(4, narrowest=10.0, widest=100.0)  # constant to five digits and more
    problem = ck.KernelLearning(ck.Candidates(library, "variance", allow_duplicates=True), ck.Hinge(1e3), X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem.solve("interior-point", tol=1e-9)
    assert solution.n_iter <= 150
    assert solution.certificate.relative_gap < 1e-3
