"""Problems that broke bounds, solvers or checks once: each is kept as it was found."""

import re
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import convexkernels as ck
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.linalg import project_simplex
from convexkernels.losses import interior_point, support_vector
from convexkernels.losses.sequential import box_dual_gap
from convexkernels.plotting import ParameterMatrixDisplay
from convexkernels.solvers.convex.quadratic_models import SecondDerivatives, minimize_model
from tests.campaign.exact import exact_set, upper_bound


def relative(a, b):
    return abs(a - b) / max(abs(a), abs(b))


def is_solved(solution, tol):
    """Whether all of the gap is proven small, or what of it is no charge for rounding is: float64 holds no more."""
    gap = solution.certificate
    return solution.status.is_success or (
        solution.status is ck.Status.ROUNDED and gap.gap - gap.charged <= tol * gap.upper and gap.holds(1e-4)
    )


# --- distances that are small next to the lengths of the rows -------------------------------------


def one_far_row(far, m=60):
    X = np.random.default_rng(0).random((m, 3))
    X[m // 2] = far
    return X


def two_clusters(far, m=60):
    X = np.random.default_rng(0).random((m, 3))
    X[::3] += far
    return X


def differences(X, Y, weights=1.0):
    """Squared distances in extended precision, without an identity."""
    return ((weights * (X[:, None, :].astype(np.longdouble) - Y[None, :, :])) ** 2).sum(axis=2)


def matern(X, Y, length):
    r = np.sqrt(differences(X, Y)) / length
    return (1.0 + r) * np.exp(-r)


def product_matern(X, Y):
    t = np.abs(X[:, None, :].astype(np.longdouble) - Y[None, :, :])
    return ((1.0 + t) * np.exp(-t)).prod(axis=2)


RADIAL = {
    "gaussian": (ck.Gaussian(2.0), lambda X, Y: np.exp(-2.0 * differences(X, Y))),
    "wide gaussian": (ck.Gaussian(1e-3), lambda X, Y: np.exp(-1e-3 * differences(X, Y))),
    "matern": (ck.Matern(2), lambda X, Y: matern(X, Y, 1.0)),
    "short matern": (ck.Matern(2, 0.05), lambda X, Y: matern(X, Y, 0.05)),
    "tensor matern": (ck.TensorMatern(2), product_matern),
    "tree": (
        ck.HierarchicalGaussian(
            [0.7, 0.4],
            [ck.HierarchicalGaussian([1.0, 2.0], features=[0, 1]), ck.HierarchicalGaussian([1.5], features=[2])],
        ),
        lambda X, Y: np.exp(
            -0.98 * (1.0 - np.exp(-differences(X[:, :2], Y[:, :2], [1.0, 2.0])))
            - 0.32 * (1.0 - np.exp(-differences(X[:, 2:], Y[:, 2:], [1.5])))
        ),
    ),
}


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("table", [one_far_row, two_clusters])
def test_radial_kernels_keep_small_distances(name, far, table):
    kernel, formula = RADIAL[name]
    X = table(far)
    rest = X[5:40] + 0.01
    for K, exact in ((kernel(X), formula(X, X)), (kernel(X, rest), formula(X, rest))):
        assert np.abs(K - exact).max() < 1e-11


@pytest.mark.parametrize("far", [1e2, 1e6, 1e8])
@pytest.mark.parametrize("table", [one_far_row, two_clusters])
def test_derivatives_of_trees_keep_small_distances(table, far):
    X, weights = table(far), np.array([1.0, 2.0, 1.5])
    M = np.random.default_rng(1).normal(size=(60, 60))
    tree = KernelTree.build([0, 1, 2])
    D = X[:, None, :].astype(np.longdouble) - X[None, :, :]
    K = np.exp(-((weights * D) ** 2).sum(axis=2))
    exact = -2.0 * weights**2 * np.einsum("ij,ijk->k", M * K, D**2)
    found = TreeEvaluation(tree, weights**2, X).gradient(M)
    np.testing.assert_allclose(found, exact.astype(float), rtol=1e-9)
    slopes = -2.0 * weights**2 * np.einsum("ij,ijk->ik", M * K, D)
    found = TreeEvaluation(tree, weights**2, X, X.copy()).pullback(M)
    np.testing.assert_allclose(found, slopes.astype(float), rtol=1e-8, atol=1e-8)


def test_a_far_row_does_not_move_the_optimum():
    X = one_far_row(1e8)
    y = np.where(np.random.default_rng(1).random(60) < 0.5, -1.0, 1.0)
    family = ck.Candidates([ck.Gaussian(1.0), ck.Gaussian(4.0)], normalize="none")
    exact = ck.Candidates([np.exp(-g * differences(X, X)).astype(float) for g in (1.0, 4.0)], normalize="none")
    found = ck.KernelLearning(family, ck.Hinge(10.0), X, y).solve(tol=5e-9)  # 2e-9 are charged for such distances
    reference = ck.KernelLearning(exact, ck.Hinge(10.0), None, y).solve(tol=1e-9)
    assert relative(found.value, reference.value) < 1e-8


def test_rows_of_any_magnitude_make_no_warning():
    X = np.random.default_rng(0).random((20, 3))
    X[0] = 1e150
    for kernel in (ck.Gaussian(1e300), ck.Matern(5, 1e-160), ck.TensorMatern(4, 1e-60), ck.Matern(1.7)):
        K = kernel(X)
        assert np.isfinite(K).all()
        assert (K[0, 1:] == 0.0).all()


def test_polynomials_that_overflow_are_refused():
    X = np.random.default_rng(0).random((20, 3))
    X[0] = 1e150
    for call in (ck.Polynomial(3), ck.Polynomial(3).diag):
        with pytest.raises(ck.InvalidInputError, match=r"overflows float64.*scale the features"):
            call(X)


# --- SVMs: rows of K that are 0, matrices of any scale ----------------------------------------


def losses(C, intercept):
    return [
        ck.Hinge(C, intercept=intercept),
        ck.EpsilonInsensitive(C, 0.1, intercept=intercept),
        ck.Pinball(C, 0.3, intercept=intercept),
    ]


def labels_for(loss, rng, X):
    targets = X[:, 0] + 0.5 * rng.normal(size=len(X))
    return np.where(targets > 0, 1.0, -1.0) if loss.of_labels else targets


def test_rows_without_features():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 5)) < 0.2, 1.0, 0.0)
    y = np.where(rng.random(60) < 0.5, 1, -1)
    assert not X.any(axis=1).all()
    ck.MultipleKernelSVC(kernels=[ck.Linear()], intercept=False).fit(X, y)
    for loss in losses(1.0, False) + losses(1e4, False):
        problem = ck.KernelLearning(ck.Candidates([ck.Linear()]), loss, X, y)
        assert problem.solve(tol=1e-4).status.is_success


@pytest.mark.parametrize("kernel", [ck.Linear(), ck.Polynomial(3), ck.Gaussian(0.05)], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_svms_on_matrices_of_scale_1e6(kernel, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    for loss in losses(1.0, intercept):
        y = labels_for(loss, rng, X)
        family = ck.Candidates([1e6 * kernel], normalize="none")
        assert is_solved(outcome(ck.KernelLearning(family, loss, X, y), "auto", tol=1e-6), 1e-6)


def test_machine_on_a_factor_agrees_with_a_conic_solver():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
    problem = ck.KernelLearning(ck.Candidates([1e9 * ck.Linear()], normalize="none"), ck.Hinge(1.0), X, y)
    cp = pytest.importorskip("cvxpy")
    v, b = cp.Variable(3), cp.Variable()
    slack = cp.sum(cp.pos(1.0 - cp.multiply(y, X @ v + b)))
    reference = cp.Problem(cp.Minimize(0.5e-9 * cp.sum_squares(v) + slack)).solve(solver="CLARABEL")
    evaluation = problem.evaluate(np.ones(1), tol=1e-7)
    assert relative(evaluation.upper, reference) < 1e-5
    assert relative(evaluation.value, reference) < 1e-5


# --- scales that leave no room for arithmetic -----------------------------------------------------

X, Y = np.random.default_rng(0).random((30, 2)), np.where(np.arange(30) % 2, 1.0, -1.0)
TRACED = {
    "tessellated": lambda trace: ck.Tessellated(degree=1, trace=trace),
    "polynomial": lambda trace: ck.GeneralizedPolynomial(2, trace=trace),
    "span": lambda trace: ck.Span([ck.Gaussian(1.0), ck.Linear()], trace=trace),
}


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("trace", [1e300, 1e-300])
def test_traces_without_room_are_refused(name, trace):
    with pytest.raises(ck.InvalidInputError, match=rf"trace must be .*{re.escape(repr(trace))}.* is scaling C"):
        TRACED[name](trace)


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("trace", [1e30, 1e-30])
def test_large_and_small_traces_are_solved(name, trace):
    for loss in (ck.Hinge(1.0 / trace), ck.LeastSquares(trace)):
        problem = ck.KernelLearning(TRACED[name](trace), loss, X, Y)
        unit = ck.KernelLearning(TRACED[name](1.0), type(loss)(1.0), X, Y)
        ratio = problem.solve(tol=1e-4).value / unit.solve(tol=1e-4).value
        assert ratio == pytest.approx(1.0 if isinstance(loss, ck.LeastSquares) else 1.0 / trace, rel=3e-4)


UNUSABLE = {
    "stack": (ck.Candidates([1e300 * np.eye(30), 1e300 * np.ones((30, 30))], normalize="none"), None, "float64"),
    "scaled": (ck.Candidates([1e300 * ck.Gaussian(1.0)], normalize="none"), X, "float64"),
    "scaled, float32": (ck.Candidates([1e60 * ck.Gaussian(1.0)]), X, "float32"),
    "span": (ck.Span([1e300 * np.eye(30), 1e300 * np.ones((30, 30))]), None, "float64"),
    "wide box": (ck.Tessellated(2, box=ck.Box([-1e60, -1e60], [1e60, 1e60])), X, "float64"),
    "wide box, float32": (ck.Tessellated(1, box=ck.Box([-1e15, -1e15], [1e15, 1e15])), X, "float32"),
    "polynomial, float32": (ck.GeneralizedPolynomial(2, trace=1e40), X, "float32"),
    "far polynomial": (ck.GeneralizedPolynomial(3), 1e20 * X, "float64"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_values_without_room_are_refused(name):
    family, points, dtype = UNUSABLE[name]
    with pytest.raises(ck.InvalidInputError, match=r"(has values up to|not finite).*(scale|rescale)"):
        ck.KernelLearning(family, ck.Hinge(1.0), points, Y, dtype=dtype)


# --- solvers end with a status --------------------------------------------------------------------


def outcome(problem, solver, tol=1e-4):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem.solve(solver, tol=tol, max_iter=60)
    assert np.isfinite([solution.certificate.upper, solution.certificate.lower]).all()
    return solution


@pytest.mark.parametrize("solver", ["auto", "frank-wolfe", "interior-point"])
@pytest.mark.parametrize("intercept", [True, False])
def test_matrices_of_rank_one_end_with_a_status(solver, intercept):
    v = np.random.default_rng(0).normal(size=50)
    K = np.outer(v, v) * (2e11 / (v @ v))
    for loss in [*losses(1.0, intercept), ck.LeastSquares(1.0, intercept=intercept)]:
        y = labels_for(loss, np.random.default_rng(1), v[:, None])
        for stack in ([K], [K, np.eye(50)]):
            outcome(ck.KernelLearning(ck.Candidates(stack, normalize="none"), loss, None, y), solver)


@pytest.mark.parametrize("solver", ["auto", "frank-wolfe", "interior-point"])
@pytest.mark.parametrize("family", [ck.Tessellated(degree=1), ck.Candidates([ck.Gaussian(1.0), ck.Linear()])], ids=repr)
def test_problems_that_are_over_before_they_begin(solver, family):
    for intercept in (True, False):
        one_class = ck.KernelLearning(family, ck.Hinge(1.0, intercept), X, Y, sample_weight=np.where(Y > 0, 1.0, 0.0))
        assert not intercept or outcome(one_class, solver).certificate.upper == 0.0
        for loss in [*losses(1.0, intercept)[1:], ck.LeastSquares(1.0, intercept=intercept)]:
            found = outcome(ck.KernelLearning(family, loss, X, 0.0 * Y), solver)
            assert abs(found.certificate.upper) < 1e-12


def test_one_of_several_outputs_with_one_class():
    outputs = np.column_stack([Y, np.where(np.arange(30) < 10, 1.0, -1.0)])
    weights = np.where(np.arange(30) < 10, 0.0, 1.0)
    problem = ck.KernelLearning(ck.Tessellated(degree=1), ck.Hinge(1.0), X, outputs, sample_weight=weights)
    alone = ck.KernelLearning(ck.Tessellated(degree=1), ck.Hinge(1.0), X, Y, sample_weight=weights)
    found, single = problem.solve("interior-point", tol=1e-6), alone.solve(tol=1e-6)
    assert relative(found.value, single.value) < 1e-5


@pytest.mark.parametrize("intercept", [True, False])
def test_spans_of_matrices_that_are_singular_together(intercept):
    rng = np.random.default_rng(0)
    v, points = rng.normal(size=30), rng.normal(size=(30, 2))
    loss = ck.Hinge(1.0, intercept)
    only = ck.KernelLearning(ck.Span([np.outer(v, v)], trace=3.0), loss, None, Y).solve(tol=1e-6)
    alone = ck.Candidates([3.0 / (v @ v) * np.outer(v, v)], normalize="none")
    assert relative(only.value, ck.KernelLearning(alone, loss, None, Y).solve(tol=1e-6).value) < 1e-5
    stack = [np.ones((30, 30)), points @ points.T]
    assert ck.KernelLearning(ck.Span(stack), loss, None, Y).solve(tol=1e-4).status.is_success


def test_bounds_of_spans_that_are_hardly_feasible_do_not_cross():
    rng = np.random.default_rng([1, 391])
    points, y = rng.random((12, 1)), rng.normal(size=12)
    points[6:] = points[:6]
    for loss in (ck.EpsilonInsensitive(0.0363, 0.5, intercept=False), ck.EpsilonInsensitive(0.7, 0.0, intercept=False)):
        for widths in ((25.8, 7.99), (0.8, 12.3)):
            family = ck.Span([ck.Gaussian(width) for width in widths], trace=8.27)
            solution = ck.KernelLearning(family, loss, points, y).solve(tol=1e-6)
            assert solution.status.is_success
            # The support function is not below its value at a member of the set.
            gram_set, W = solution.problem.gram_set, solution.problem.coefficients(np.atleast_2d(solution.alpha))
            D = gram_set.adjoint(W)
            assert gram_set.support(D)[0] >= (1.0 - 1e-9) * float(D @ solution.theta)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_where_products_lose_the_digits_of_the_answer(seed):
    rng = np.random.default_rng(seed)
    points, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    family = ck.GeneralizedPolynomial(2, trace=1.73e10)
    problem = ck.KernelLearning(family, ck.LeastSquares(1.85, intercept=False), points, y)
    for solver in ("auto", "spectral-gradient"):
        solution = outcome(problem, solver)
        exact, _, _ = upper_bound(problem, exact_set(problem), solution)
        assert solution.certificate.lower <= float(exact) * (1.0 + 1e-9)
        assert solution.certificate.lower <= solution.certificate.upper


def test_what_centering_leaves_without_digits_is_refused():
    points = 1e6 + np.random.default_rng(0).random((20, 2))
    with pytest.raises(ck.InvalidInputError, match="after centering"):
        ck.Candidates([ck.Linear()], center=True).on(points)
    ck.Candidates([ck.Linear()], center=True).on(points - 1e6)


def test_the_function_is_the_certified_one_where_dual_points_are_rounded_across_their_bounds():
    rng = np.random.default_rng(0)
    points, y = 6e3 * rng.normal(size=(6, 3)), np.array([1.0, -1.0, -1.0, -1.0, 1.0, -1.0])
    box = ck.Box(points.min(axis=0) - 2e3, points.max(axis=0) + 2e3)
    loss = ck.Logistic(0.0828, intercept=False)
    problem = ck.KernelLearning(ck.Tessellated(1, 0, box=box, trace=3.7), loss, points, y)
    evaluation = problem.evaluate(problem.gram_set.initial(), tol=1e-9)
    assert (evaluation.alpha >= 0.0).all()
    largest = evaluation.alpha.max()
    outside = np.where(evaluation.alpha < 0.5 * largest, -1e-3 * largest, evaluation.alpha)
    gap = problem.certificate(evaluation.theta, outside)
    function = problem.function(evaluation.theta, outside)
    f = function.values(points)[:, 0]
    cost = 0.5 * function.W[0] @ f[function.support] + loss.C * np.logaddexp(0.0, -y * f).sum()
    assert relative(gap.upper, cost) < 1e-9


def test_a_matrix_of_rounding_alone_ends_with_a_status():
    points, y = far_points(1e9)
    points[::3] *= 2.0
    for intercept in (True, False):
        outcome(ck.KernelLearning(ck.GeneralizedPolynomial(3), ck.Hinge(25.0, intercept), points, y), "auto")


def test_a_conic_solver_that_breaks_down_ends_with_a_status(monkeypatch):
    from convexkernels.solvers.convex import conic

    def failing(*arguments, **named):
        raise conic.NoAnswerError("no conic solver could solve the problem")

    monkeypatch.setattr(conic, "solve_statement", failing)
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0), ck.Linear()]), ck.Hinge(1.0), X, Y)
    assert outcome(problem, "conic").status is ck.Status.NUMERICAL_ERROR
    with pytest.raises(ck.SolverUnavailableError):
        problem.solve(problem.to_cvxpy())


def test_another_method_takes_over_where_the_first_stops_short(monkeypatch):
    from convexkernels.outer_solver import OuterSolver
    from convexkernels.solvers.convex.spectral_gradient import SpectralGradient

    def stuck(self, problem, iterate, tol, deadline):
        iterate.status = ck.Status.STALLED
        return iterate

    assert issubclass(SpectralGradient, OuterSolver)
    monkeypatch.setattr(SpectralGradient, "step", stuck)
    problem = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(1.0), X, Y)
    assert outcome(problem, "spectral-gradient").status is ck.Status.STALLED
    solution = problem.solve(tol=1e-4)
    assert solution.status.is_success
    assert solution.solver == "interior-point"
    assert solution.verify().holds(1e-4)


@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_float32_is_left_where_it_is_not_exact_enough(tol):
    y = X @ [[3.0, 1.0], [-1.0, 2.0]] + 0.1 * np.random.default_rng(2).normal(size=(30, 2))
    family, loss = ck.GeneralizedPolynomial(2, trace=1e4), ck.LeastSquares(0.01, intercept=False)
    problem = ck.KernelLearning(family, loss, X, y, dtype="float32")
    assert not outcome(problem, "spectral-gradient").certificate.holds(1e-6)
    solution = problem.solve(tol=tol)
    assert solution.status.is_success
    assert problem.dtype == np.float32
    exact = ck.KernelLearning(family, loss, X, y).solve(tol=1e-7)
    assert relative(solution.value, exact.value) < 2.0 * tol


# --- several SVMs on one matrix parameter -----------------------------------------------------


@pytest.mark.parametrize("family", [ck.AllKernelMatrices(), ck.GeneralizedPolynomial(2, trace=10.0)], ids=repr)
def test_several_outputs_take_tens_of_iterations(family):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3))
    classes = np.where(np.argmax(points, axis=1)[:, None] == np.arange(3), 1.0, -1.0)
    epsilon = ck.EpsilonInsensitive(1.0, 0.1, intercept=False)
    for loss, y in ((ck.Hinge(1.0), classes), (ck.Logistic(5.0), classes), (epsilon, points)):
        solution = ck.KernelLearning(family, loss, points, y).solve(tol=1e-6, max_iter=60)
        assert solution.status.is_success


# --- polynomials far from the origin --------------------------------------------------------------


def far_points(center, m=30):
    rng = np.random.default_rng(0)
    return center + rng.normal(size=(m, 2)), np.where(rng.random(m) < 0.45, 1.0, -1.0)


@pytest.mark.parametrize(("degree", "center"), [(1, 1e6), (2, 1e3), (2, 1e5), (3, 1e2), (3, 1e3)])
@pytest.mark.parametrize("intercept", [True, False])
def test_polynomials_far_from_the_origin_are_certified(degree, center, intercept):
    points, y = far_points(center)
    for loss in (
        ck.Hinge(0.25, intercept),
        ck.LeastSquares(4.0, intercept),
        ck.EpsilonInsensitive(1.0, 0.1, intercept),
    ):
        problem = ck.KernelLearning(ck.GeneralizedPolynomial(degree, trace=2.0), loss, points, y)
        solution = problem.solve(tol=1e-4)
        assert solution.status.is_success
        assert solution.verify().holds(1e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_polynomial_set_is_the_same_far_from_the_origin(intercept):
    points, y = far_points(300.0)
    family = ck.GeneralizedPolynomial(2, trace=2.0)
    gram_set = family.on(points, modulo_constants=intercept)
    A = np.random.default_rng(0).normal(size=(6, 6))
    theta = gram_set.project(A @ A.T)
    P = gram_set.parameter(theta)
    assert np.trace(P) == pytest.approx(np.trace(theta), rel=1e-12)
    kernel = gram_set.kernel(theta)
    paper = ck.GeneralizedPolynomialKernel(P, 2)
    assert np.abs(kernel(points) - paper(points)).max() <= 1e-9 * np.abs(paper(points)).max()
    w = np.random.default_rng(1).normal(size=30)
    w -= w.mean()
    difference = (kernel(points) - gram_set.gram(theta)) @ w
    left_out = gram_set.with_constants(theta, w)
    scale = np.abs(kernel(points)).max() * np.abs(w).sum()
    assert np.abs(difference - (-left_out if intercept else 0.0)).max() <= 1e-9 * scale
    # The optimum is that of one SVM with the kernel of tau I, computed from the monomials in extended precision.
    z = points.astype(np.longdouble)
    monomials = np.stack([z[:, 0] ** 0, z[:, 0], z[:, 1], z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])
    K = (2.0 * monomials.T @ monomials).astype(float)
    loss = ck.LeastSquares(1e6, intercept)
    found = ck.KernelLearning(family, loss, points, y).solve(tol=1e-6).value
    assert found == pytest.approx(ck.KernelLearning(ck.Candidates([K], normalize="none"), loss, None, y).solve().value)


def test_beyond_the_reach_of_doubles_the_bounds_still_hold():
    points, y = far_points(1e8)
    solution = outcome(
        ck.KernelLearning(ck.GeneralizedPolynomial(3), ck.Hinge(0.25, intercept=False), points, y), "auto"
    )
    assert solution.status is ck.Status.ROUNDED
    # A constant of the better sign costs next to nothing: the optimum is not above it, and not below no slack.
    constant = 0.5 * min((y > 0).sum(), (y < 0).sum())
    assert 0.0 <= solution.certificate.lower <= constant * (1.0 + 1e-9)


def test_labels_of_a_far_polynomial_say_what_they_are_of():
    points, y = far_points(1e3)
    solution = ck.KernelLearning(ck.GeneralizedPolynomial(2), ck.Hinge(1.0), points, y).solve(tol=1e-3)
    labels = ParameterMatrixDisplay.from_solution(solution, names=["year", "day"]).labels
    assert any("(year - 1e+03)/" in label for label in labels)


# -- sets without inner points, and units -------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [ck.Hinge(3.0), ck.EpsilonInsensitive(2.0, intercept=False), ck.Logistic(3.0)])
@pytest.mark.parametrize("corners", [1, 2])
def test_spans_without_a_definite_combination_are_solved_on_their_face(loss, corners):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(corners, 9))
    ends = np.array([np.outer(a, a) / (a @ a) for a in points])
    b, c = rng.normal(size=(2, 9))
    stack = np.array([*ends, np.outer(b, b) - np.outer(c, c)])
    mixed = np.tensordot(rng.normal(size=(corners + 1, corners + 1)), stack, axes=1)
    y = labels_for(loss, rng, rng.normal(size=(9, 1)))
    # What is left of the indefinite matrix makes every combination indefinite: the set is what the ends span.
    expected = ck.KernelLearning(ck.Candidates(ends), loss, None, y).solve(tol=1e-7)
    found = ck.KernelLearning(ck.Span(mixed), loss, None, y).solve(tol=1e-6)
    assert found.status.is_success
    assert relative(found.value, expected.value) < 1e-5


def test_near_singular_kernels_stay_in_their_span():
    points = np.random.default_rng(0).normal(size=(30, 2))
    kernels = [ck.Matern(2, 2.0), ck.Matern(2, 20.0)]
    gram_set = ck.Span(kernels).on(points)
    for k, kernel in enumerate(kernels):
        corner = np.eye(2)[k] / np.trace(kernel(points))
        np.testing.assert_allclose(gram_set.project(corner), corner, atol=1e-6 * np.abs(corner).max())


def test_several_outputs_share_a_matrix_of_any_kind():
    rng = np.random.default_rng(3)
    Y2 = np.column_stack([np.sin(np.arange(14.0)), rng.normal(size=14)])
    loss = ck.EpsilonInsensitive(0.5, epsilon=0.1)
    problem = ck.KernelLearning(ck.AllKernelMatrices(), loss, np.arange(14.0)[:, None], Y2)
    interior = problem.solve("interior-point", tol=1e-6)
    assert interior.status.is_success
    assert interior.n_iter < 40
    assert relative(interior.value, outcome(problem, "conic").value) < 2e-4


@pytest.mark.parametrize("scale", [1e-12, 1e6, 1e12])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_matrix_of_any_scale_is_one_of_scale_one_with_another_C(scale, intercept):
    points = np.random.default_rng(0).normal(size=(24, 3))
    K = ck.Gaussian(1.0)(points)
    for loss in [*losses(10.0, intercept), ck.Logistic(10.0, intercept), ck.LeastSquares(0.1, intercept)]:
        y = labels_for(loss, np.random.default_rng(1), points[:, :1])
        found = outcome(ck.KernelLearning(ck.Candidates(scale * K[None], "none"), loss, None, y), "auto", tol=1e-6)
        factor = 1.0 if isinstance(loss, ck.LeastSquares) else scale
        if found.status is ck.Status.ROUNDED:  # C times the scale is 1e13
            assert scale == 1e12
            assert found.certificate.charged > 1e-6 * found.value
            continue
        same = ck.KernelLearning(ck.Candidates(K[None], "none"), loss.at(loss.lam / scale), None, y).solve(tol=1e-6)
        assert found.status.is_success, (loss, found.certificate)
        assert relative(found.value * factor, same.value) < 1e-5


def test_a_gap_that_is_rounding_says_so():
    points = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(points[:, 0] + np.random.default_rng(1).normal(size=40) > 0, 1.0, -1.0)
    K = 1e12 * points @ points.T
    solution = outcome(ck.KernelLearning(ck.Candidates(K[None], "none"), ck.Hinge(10.0), None, y), "auto")
    certificate = solution.certificate
    assert solution.status is ck.Status.ROUNDED
    assert 1e-4 * certificate.upper < certificate.charged <= 1.001 * certificate.gap
    # One unit in the last place of the entries is worth as much: no tolerance below that can be proven.
    w = solution.problem.coefficients(np.atleast_2d(solution.witness))[0]
    assert np.abs(w) @ (np.spacing(np.abs(K)) @ np.abs(w)) > 1e-4 * certificate.upper


def test_vertices_of_next_to_nothing_make_no_warning():
    from tests.campaign.cases import make_case

    outcome(make_case(1122, 512).problem(), "envelope")


def test_one_class_that_counts_leaves_no_logistic_loss():
    points = np.random.default_rng(0).normal(size=(12, 2))
    y = np.where(np.arange(12) < 4, 1.0, -1.0)
    for sign in (1.0, -1.0):
        problem = ck.KernelLearning(
            ck.Candidates([ck.Gaussian(1.0)]), ck.Logistic(2.0), points, sign * y, sample_weight=(y > 0).astype(float)
        )
        solution = problem.solve(tol=1e-9)
        assert solution.status.is_success
        assert solution.value == 0.0
        assert (sign * y * solution.decision_function(points))[:4].min() > 30.0


def test_bounds_far_above_the_coefficients_cost_the_interior_method_no_second_run(rng, monkeypatch):
    X = rng.uniform(-1, 1, (300, 6))
    K, y = ck.Gaussian(0.5)(X), np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(300)
    dual = ck.EpsilonInsensitive(C=100.0, epsilon=0.05, intercept=False).box_dual(y, np.ones(300))
    monkeypatch.setattr(interior_point, "FactoredTerm", None)  # the second run would fail
    w = interior_point.interior_point(K, dual, False, tol=1e-6)
    primal, value = box_dual_gap(y, dual.eps, dual.lo, dual.hi, w, y - K @ w, 0.0)
    assert 0.0 <= primal - value <= 1e-6 * value
    assert np.abs(w).max() < 100.0


@pytest.mark.parametrize("width", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("C", [1e3, 1e5])
def test_nearly_singular_matrices_cost_the_interior_method_no_second_run(width, C, rng, monkeypatch):
    """Steps of free coefficients were what values had been rounded by, divided by nearly nothing."""
    X = rng.uniform(-1, 1, (200, 3))
    K = np.exp(-cdist(X, X, "sqeuclidean") / (2.0 * width**2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    dual = ck.EpsilonInsensitive(C=C, epsilon=0.05, intercept=True).box_dual(y, np.ones(200))
    monkeypatch.setattr(interior_point, "FactoredTerm", None)  # the second run would fail
    w = support_vector._balance(np.clip(interior_point.interior_point(K, dual, True, tol=1e-7), dual.lo, dual.hi))
    g = y - K @ w
    primal, value = box_dual_gap(y, dual.eps, dual.lo, dual.hi, w, g, support_vector.best_intercept(g, dual))
    assert primal - value <= 1e-6 * value


def test_the_interior_method_is_patient_while_it_comes_from_far_away():
    """The objective falls as fast as what is left of it, and their ratio stays where it was."""
    X, C = np.random.default_rng(7).standard_normal((120, 8)), 1e6
    K, sign = (1.0 + X @ X.T) ** 4, np.where(X[:, 0] > 0.0, 1.0, -1.0)
    dual = ck.Hinge(C=C, intercept=False).box_dual(sign, np.ones(120))
    w = interior_point.interior_point(K, dual, False, tol=1e-6)
    primal, value = box_dual_gap(sign, dual.eps, dual.lo, dual.hi, w, sign - K @ w, 0.0)
    assert 0.0 <= primal - value <= 1e-5 * value


@pytest.mark.parametrize(("left", "runs"), [(0.05, 1), (0.9, 1), (1.1, 2)])
def test_a_second_run_is_for_what_the_tolerance_leaves(left, runs, rng, monkeypatch):
    X = rng.uniform(-1, 1, (30, 2))
    dual = ck.EpsilonInsensitive(C=10.0, epsilon=0.05, intercept=True).box_dual(X[:, 0] ** 2, np.ones(30))
    aims = []

    def run(term, diagonal, *problem):
        aims.append(problem[5])
        return np.zeros(30), left * 1e-3

    monkeypatch.setattr(interior_point, "_run", run)
    support_vector._from_inside(ck.Gaussian(0.5)(X), dual, np.zeros(30), True, 1e-3, None)
    assert aims == [pytest.approx(1e-4)] * runs


def test_a_model_whose_steps_overflow_stays_where_it_is():
    """As index 5007 of seed 1126 had it, where rounding was unlucky."""
    theta, slope = np.array([0.25, 0.75]), np.array([1e250, -1e250])
    found = minimize_model(theta, slope, lambda d: 1e-200 * d, 1e-100, project_simplex)
    np.testing.assert_array_equal(found, theta)


@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_models_are_minimized_exactly_on_the_simplex(least, rng):
    """Second derivatives from 1e-6 to 1e6; steps along projected gradients stop at a ten thousandth of the fall."""
    R = rng.normal(size=(62, 62)) * np.geomspace(1e-3, 1e3, 62)[:, None]
    g, theta = rng.normal(size=62), np.full(62, 1.0 / 62.0)
    model = SecondDerivatives(R, 1e-9, 2.0)
    np.testing.assert_allclose(model(g), 2.0 * (R.T @ R @ g + 1e-9 * g), rtol=1e-9)

    def fall(point):
        return float(-(g @ (point - theta)) - np.sum((R @ (point - theta)) ** 2))

    found, point = model.minimize_on_simplex(theta, g, least), cp.Variable(62)
    objective = cp.Minimize(g @ (point - theta) + cp.sum_squares(R @ (point - theta)))
    cp.Problem(objective, [cp.sum(point) == 1.0, point >= least]).solve("CLARABEL")
    assert found.min() >= least
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert fall(found) == pytest.approx(fall(point.value), rel=1e-4)
    assert fall(minimize_model(theta, g, model, 1e6, project_simplex)) < 1e-3 * fall(found)


def test_a_constant_slope_moves_no_weights_and_a_steep_one_is_no_square(rng):
    """All weights have one sum; where H is nothing beside g, projected steps find the best vertex."""
    R, theta = rng.normal(size=(20, 20)), np.full(20, 0.05)
    g, model = rng.normal(size=20), SecondDerivatives(R, 1e-9, 1.0)
    found = model.minimize_on_simplex(theta, g, 0.0)
    for constant in (-1e3, 1e7):
        np.testing.assert_allclose(model.minimize_on_simplex(theta, g + constant, 0.0), found, atol=1e-7)
    assert model.minimize_on_simplex(theta, 1e7 * g, 0.0) is None
    vertex = minimize_model(theta, 1e7 * g, model, float(np.linalg.norm(R, 2) ** 2), project_simplex)
    np.testing.assert_allclose(vertex, np.arange(20) == np.argmin(g), atol=1e-6)


def test_models_of_many_weights_are_not_minimized_exactly(rng):
    """The time of that grows with their third power, also where there are few rows, and no limit ends it."""
    theta = np.full(1000, 1e-3)
    assert SecondDerivatives(rng.normal(size=(40, 1000)), 1e-9, 1.0).minimize_on_simplex(theta, theta, 0.0) is None


def test_models_that_break_down_have_no_minimizer(rng):
    theta, g = np.full(3, 1.0 / 3.0), rng.normal(size=3)
    for R in (np.full((3, 3), np.nan), np.full((3, 3), 1e200), np.zeros((3, 3))):
        with np.errstate(over="ignore"):
            assert SecondDerivatives(R, 0.0, 1.0).minimize_on_simplex(theta, g, 0.0) is None
    assert SecondDerivatives(np.eye(3), 0.0, 1.0).minimize_on_simplex(theta, np.zeros(3), 0.0) is None  # it is there
