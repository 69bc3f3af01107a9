"""Bounds that hold in exact arithmetic: for every family, kernel and loss, or a refusal that says why not."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import convexkernels as ck
from convexkernels.families import FAMILIES, example_points
from convexkernels.families.candidates import NORMALIZATIONS
from convexkernels.kernels import KERNELS
from convexkernels.losses import LOSSES
from convexkernels.losses.base import BoxDual
from convexkernels.rigorous.compositions import enclosure
from convexkernels.rigorous.dual import exact_point
from convexkernels.rigorous.kernels import Pairs
from convexkernels.rigorous.rounding import largest_eigenvalue
from convexkernels.rigorous.stored import known_entries

# Every other kernel has to be refused.
BOUNDED_KERNELS = {
    *("Centered", "Constant", "Gaussian", "GeneralizedPolynomialKernel", "Linear", "Matern", "Normalized"),
    *("OnColumns", "Polynomial", "Product", "Scaled", "Stumps", "Sum", "TensorMatern", "TessellatedKernel"),
    "WeightedSum",
}


def targets(loss, X, rng):
    steep = X[:, 0] + 0.3 * rng.standard_normal(len(X))
    return np.where(steep > np.median(steep), 1.0, -1.0) if loss.of_labels else steep


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", LOSSES)
def test_bounds_are_proven_near_those_of_floats_or_refused(family, name, intercept, rng):
    loss = LOSSES[name][1]()
    if loss.needs_definite:
        return
    loss.intercept = intercept
    X = rng.random((25, 3))
    made = FAMILIES[family]()
    y = targets(loss, X, rng)
    problem = ck.KernelLearning(made, loss, example_points(made, X), y, sample_weight=rng.random(25))
    no_set = not problem.gram_set.has_support or problem.gram_set.is_factored
    if no_set or loss.box_dual(problem.Y[0], problem.weights) is None:
        with pytest.raises(ck.InvalidInputError, match=r"rigorous=True: no error bound is known for"):
            problem.rigorous_certificate(problem.gram_set.initial(), np.zeros(25))
        return
    solution = problem.solve(tol=1e-5)
    plain, proven = solution.verify(), solution.verify(rigorous=True)
    assert isinstance(proven, ck.RigorousGap)
    size = abs(plain.upper)
    assert proven.lower <= plain.lower + 1e-11 * size
    assert proven.upper >= plain.upper - 1e-11 * size
    assert proven.gap > 0.0
    assert proven.gap <= plain.gap + 1e-8 * size
    assert 0.0 < proven.charged <= 1e-8 * size
    assert proven.holds(1e-4)
    assert proven.note == ""
    assert "in exact arithmetic" in str(proven)


def is_bounded(kernel):
    return type(kernel).__name__ in BOUNDED_KERNELS


@pytest.mark.parametrize("name", KERNELS)
def test_entries_of_every_kernel_are_enclosed_or_refused(name, rng):
    kernel, X = KERNELS[name](2), rng.random((7, 2))
    if not is_bounded(kernel):
        with pytest.raises(
            ck.InvalidInputError, match=f"no error bound is known for the kernel {type(kernel).__name__}"
        ):
            enclosure(kernel, X)(Pairs(X, X), slice(0, 7), slice(0, 7))
        return
    if isinstance(kernel, ck.Centered):
        with pytest.raises(ck.InvalidInputError, match="not the training points"):
            enclosure(kernel, X)
        kernel = ck.Centered(kernel.kernel, X)
    K, R = enclosure(kernel, X)(Pairs(X, X), slice(0, 7), slice(0, 7))
    assert (1e-11 * np.abs(K).max() >= R).all()
    np.testing.assert_allclose(K, kernel(X), rtol=0.0, atol=1e-11 * np.abs(K).max())


MADE_AGAIN = {"GeneralizedPolynomialKernel", "Precomputed", "TessellatedKernel"}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("far", [0.0, 5.0])
def test_what_is_known_of_stored_entries_holds(name, far, rng):
    kernel, X = KERNELS[name](2), rng.random((40, 2))
    X[::2] += far
    if isinstance(kernel, ck.Centered):
        kernel = ck.Centered(kernel.kernel, X)
    known = known_entries(kernel, Pairs(X, X), 1.0)
    if not is_bounded(kernel) or type(kernel).__name__ in MADE_AGAIN:
        assert known is None
        return
    E, R = enclosure(kernel, X)(Pairs(X, X), slice(0, 40), slice(0, 40))
    bound = np.outer(known.roots, known.roots)
    assert (np.abs(E) <= bound * (1.0 + 1e-9) + R).all()
    assert (np.abs(kernel(X) - E) <= known.error * bound + R).all()
    assert (np.abs(kernel.diag(X) - np.diagonal(E)) <= known.error * known.roots**2 + np.diagonal(R)).all()
    assert not known.nonnegative or (E >= -R).all()
    assert known.error < 1e-11


def test_kernels_of_ones_own_and_bessel_functions_are_refused_by_name(rng):
    class Own(ck.Gaussian):
        pass

    X = rng.random((20, 2))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    for kernel, words in ((Own(1.0), "Own"), (ck.Matern(1.7), "Bessel"), (ck.Gaussian(1.0) + Own(2.0), "Own")):
        solution = ck.KernelLearning(ck.Candidates([kernel]), ck.Hinge(1.0), X, y).solve()
        with pytest.raises(ck.InvalidInputError, match=words):
            solution.verify(rigorous=True)


def test_problems_that_are_not_convex_and_extreme_numbers_are_refused(rng):
    X = rng.random((20, 2))
    y = np.sin(4.0 * X[:, 0])
    outer = ck.OuterLearning(ck.Widths(ck.Gaussian(1.0)), ck.LeastSquares(0.1), ck.LeaveOneOut(), X, y)
    with pytest.raises(ck.InvalidInputError, match="OuterLearning has no bounds in exact arithmetic"):
        outer.solve(max_iter=3, tol=0.5).verify(rigorous=True)
    tiny = X.copy()
    tiny[3, 1] = 1e-60
    solution = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0)]), ck.LeastSquares(0.1), tiny, y).solve()
    with pytest.raises(ck.InvalidInputError, match="X has an entry of magnitude 1e-60"):
        solution.verify(rigorous=True)


def test_a_matrix_that_is_not_quite_positive_is_charged(rng):
    A = rng.standard_normal((30, 4))
    low = A @ A.T
    y = np.where(A[:, 0] > 0.0, 1.0, -1.0)
    indefinite = low - 1e-11 * np.trace(low) * np.eye(30)  # within what the family takes for rounding
    proven = [
        ck.KernelLearning(ck.Candidates(K[None], "none"), ck.Hinge(10.0), None, y).solve().verify(rigorous=True)
        for K in (low, 0.5 * (indefinite + indefinite.T))
    ]
    assert proven[1].charged > 1e-11 * np.trace(low) * 0.5 * 30 * 10.0**2
    assert proven[0].charged < 0.1 * proven[1].charged


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_bounds_do_not_depend_on_how_matrices_are_kept(normalize, center, rng):
    X = rng.random((40, 3))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    kernels = [ck.Gaussian(2.0), ck.Polynomial(2), ck.Matern(2) * ck.Gaussian(1.0), ("first", ck.Gaussian(9.0), [0])]
    family = ck.Candidates(kernels, normalize, center)
    problem = ck.KernelLearning(family, ck.Hinge(10.0), X, y)
    solution = problem.solve(tol=1e-6)
    stored = solution.verify(rigorous=True)
    problem.gram_set.release()
    made = solution.verify(rigorous=True)
    plain = solution.verify()
    assert stored.gap <= plain.gap + 1e-8 * plain.upper
    assert stored.lower <= plain.upper * (1.0 + 1e-12)
    assert stored.lower <= made.upper
    assert made.lower <= stored.upper
    assert made.gap == pytest.approx(stored.gap, rel=1e-3, abs=1e-8 * plain.upper)


def test_where_the_matrix_has_lost_its_digits_the_result_says_so(rng):
    X = rng.random((60, 34))
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    C = 10.0 / float(np.prod(1.5 - X.mean(axis=0)))
    problem = ck.KernelLearning(ck.Tessellated(0), ck.Hinge(C, intercept=False), X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        proven = problem.solve("spectral-gradient", tol=1e-3, max_iter=20).verify(rigorous=True)
    assert "lost the digits" in proven.note
    assert not proven.holds(1e-3)
    assert proven.lower <= proven.upper


def test_overflow_makes_bounds_infinite_and_never_wrong(rng):
    X = 1e30 * rng.random((10, 2))
    problem = ck.KernelLearning(ck.Candidates([ck.Matern(2, 1e-3)]), ck.LeastSquares(1e-3), X, rng.random(10))
    proven = problem.rigorous_certificate(np.ones(1), 1e39 * np.ones(10))
    assert proven.lower >= 0.0
    assert proven.lower <= proven.upper


finite = st.floats(-1e3, 1e3)


@given(st.lists(finite, min_size=1, max_size=30), st.floats(1e-6, 1e4), st.booleans())
@example([0.0, 0.0, 0.0, 94.0, 4.5, 2.0, 0.0, 9.0, 31.0, 15.5625], 33.0, True)
def test_dual_points_are_feasible_in_fractions(values, C, is_bounded):
    w = np.array(values)
    cost = C * np.linspace(0.1, 1.0, len(w))
    hi = cost if is_bounded else np.full(len(w), np.inf)
    dual = BoxDual(w, np.zeros(len(w)), -0.7 * hi, hi)
    found = exact_point(w - w.mean(), dual, True)
    exact = [Fraction(v) for v in found.tolist()]
    assert sum(exact) == 0
    if is_bounded:
        fractions = [Fraction(C) * Fraction(s) for s in np.linspace(0.1, 1.0, len(w)).tolist()]
        assert all(-Fraction(0.7) * c <= v <= c for v, c in zip(exact, fractions, strict=True))


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), st.integers(-30, 30))
def test_largest_eigenvalues_are_bounded_from_above(entries, exponent):
    v = np.array(entries, dtype=float) * 2.0**exponent
    exact = sum(Fraction(x) ** 2 for x in v.tolist())
    bound = largest_eigenvalue(np.outer(v, v))
    assert exact <= Fraction(bound)
    assert bound <= float(exact) * (1.0 + 1e-12) + 1e-280


def test_evidence_is_not_compared_and_certificates_stay_small(rng):
    X = rng.random((12, 2))
    solution = ck.KernelLearning(ck.Tessellated(0), ck.LeastSquares(0.1), X, X[:, 0]).solve()
    proven = solution.verify(rigorous=True)
    assert replace(proven, evidence=None) == proven
    assert "array" not in repr(proven)
    assert proven.evidence.dual.shape == (1, 12)
