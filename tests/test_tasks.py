"""Tessellated kernels of several tasks: values, the optimum of the whole set, what is shared, refusals."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest

import convexkernels as ck
from convexkernels.bases.monomials import monomial_basis
from convexkernels.plotting import ParameterMatrixDisplay
from convexkernels.solvers.convex.conic import Conic


def random_matrix(size, rng):
    G = rng.standard_normal((size, size))
    return G @ G.T / size


def with_tasks(X, codes):
    return np.column_stack([X, codes])


def nodes(X, lower, upper, n_nodes):
    """Points z and weights by which integrals of piecewise polynomials over the box are exact."""
    t, weight = np.polynomial.legendre.leggauss(n_nodes)
    sides = []
    for column, a, b in zip(X.T, lower, upper, strict=True):
        ends = np.unique([a, *column, b])
        half = np.diff(ends)[:, None] / 2
        sides.append(((ends[:-1, None] + half + half * t).ravel(), (half * weight).ravel()))
    z = np.array(list(product(*(side[0] for side in sides))))
    return z, np.array([np.prod(w) for w in product(*(side[1] for side in sides))])


def features(z, x, task, tasks, basis):
    """``N(z, x, task)``, written down from its definition: entry ``(half, monomial, task)``."""
    N = np.zeros((2, basis.q // tasks, tasks))
    for i in range(basis.q // tasks):
        value = np.prod(z ** basis.gamma[i * tasks]) * np.prod(x ** basis.delta[i * tasks])
        N[0 if (z >= x).all() else 1, i, task] = value
    return N.ravel()


@pytest.mark.parametrize(("degree", "z_degree"), [(1, None), (2, 0), (0, None)])
def test_values_are_the_integrals_of_all_blocks(degree, z_degree, rng):
    lower, upper, tasks = np.array([-0.3, -0.2]), np.array([1.2, 1.5]), 3
    X, codes = rng.random((5, 2)), np.array([0, 2, 1, 2, 0])
    basis = monomial_basis(2, degree, z_degree, tasks)
    P = random_matrix(2 * basis.q, rng)
    K = ck.TessellatedKernel(P, lower, upper, degree, z_degree, tasks=tasks)(with_tasks(X, codes))
    expected = np.zeros((5, 5))
    for z, weight in zip(*nodes(X, lower, upper, degree + 1), strict=True):
        N = np.array([features(z, x, s, tasks, basis) for x, s in zip(X, codes, strict=True)])
        expected += weight * N @ P @ N.T
    np.testing.assert_allclose(K, expected, rtol=1e-11, atol=1e-13)


def test_separate_blocks_are_separate_kernels_and_products_are_matrix_valued_ones(rng):
    lower, upper = [-0.5, -0.5], [1.5, 1.5]
    X, codes = rng.random((8, 2)), np.arange(8) % 2
    A = [random_matrix(6, rng) for _ in range(2)]
    single = [ck.TessellatedKernel(P, lower, upper, 1, 0)(X) for P in A]
    joint = np.zeros((6, 2, 6, 2))
    joint[:, 0, :, 0], joint[:, 1, :, 1] = A
    K = ck.TessellatedKernel(joint.reshape(12, 12), lower, upper, 1, 0, tasks=2)(with_tasks(X, codes))
    same = codes[:, None] == codes
    np.testing.assert_allclose(K, np.where(same, np.where(codes == 0, single[0], single[1]), 0.0), atol=1e-13)
    B = np.array([[2.0, -0.5], [-0.5, 1.0]])
    kernel = ck.TessellatedKernel(np.kron(A[0], B), lower, upper, 1, 0, tasks=2)
    np.testing.assert_allclose(kernel(with_tasks(X, codes)), B[codes][:, codes] * single[0], rtol=1e-11)
    np.testing.assert_allclose(kernel.task_similarity(), [[1.0, -0.5 / 2**0.5], [-0.5 / 2**0.5, 1.0]], rtol=1e-12)


def test_one_task_is_the_family_without_tasks(rng):
    X, W = rng.random((9, 2)), rng.standard_normal((2, 9))
    plain = ck.Tessellated(1).on(X)
    one = ck.Tessellated(1, tasks=1).on(with_tasks(X, np.zeros(9)))
    P = random_matrix(plain.size, rng)
    np.testing.assert_array_equal(one.gram(P), plain.gram(P))
    np.testing.assert_array_equal(one.adjoint(W), plain.adjoint(W))


@pytest.mark.parametrize(("m", "n", "degree"), [(10, 1, 1), (6, 2, 0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_optimum_is_that_of_the_spectral_norm_program(m, n, degree, intercept, rng):
    """Without a matrix P or a kernel: ``max 1'alpha - tau/2 |[sqrt(weight_z) sum_i w_i N(z, x_i)]_z|^2``."""
    X, codes, tasks, C, tau = rng.random((m, n)), np.arange(m) % 2, 2, 3.0, 2.0
    y = np.where(np.sin(6 * X[:, 0]) * (1 - 0.6 * codes) + 0.3 * rng.standard_normal(m) > 0.2, 1.0, -1.0)
    basis = monomial_basis(n, degree, None, tasks)
    Q = [
        np.sqrt(weight) * np.array([features(z, x, s, tasks, basis) for x, s in zip(X, codes, strict=True)])
        for z, weight in zip(*nodes(X, np.full(n, -0.4), np.full(n, 1.4), degree + 1), strict=True)
    ]
    alpha = cp.Variable(m, nonneg=True)
    V = cp.vstack([cp.multiply(y, alpha) @ N for N in Q])
    constraints = [alpha <= C, *([y @ alpha == 0] if intercept else [])]
    value = cp.Problem(cp.Maximize(cp.sum(alpha) - tau / 2 * cp.sigma_max(V) ** 2), constraints).solve(cp.CLARABEL)
    family = ck.Tessellated(degree, None, ck.UnitBox(0.4), trace=tau, tasks=tasks)
    problem = ck.KernelLearning(family, ck.Hinge(C=C, intercept=intercept), with_tasks(X, codes), y)
    for solver in ("auto", "frank-wolfe", Conic("CLARABEL")):
        tol = 2e-3 if solver == "frank-wolfe" else 1e-6
        certificate = problem.solve(solver, tol=tol, max_iter=2000).certificate
        assert certificate.relative_gap <= tol
        assert certificate.lower <= value * (1 + 1e-5)
        assert certificate.upper >= value * (1 - 1e-5)


def related(rng, m, sign=1.0):
    """Two tasks of m rows each, the second one `sign` times the first, and a little more."""
    X, codes = rng.random((2 * m, 2)), np.repeat([0, 1], m)
    return X, codes, truth(X, codes, sign) + 0.1 * rng.standard_normal(2 * m)


def truth(X, codes, sign=1.0):
    first = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 - 0.7
    return np.where(codes == 0, first, sign * first + 0.3 * X[:, 0] - 0.15)


def test_tasks_that_share_predict_better_than_each_by_itself(rng):
    errors = []
    for _ in range(3):
        X, codes, y = related(rng, 12)
        Z, loss = rng.random((300, 2)), ck.LeastSquares(0.03)
        joint = ck.KernelLearning(ck.Tessellated(1, 0, tasks=2), loss, with_tasks(X, codes), y).solve(tol=1e-4)
        assert joint.kernel.task_similarity()[0, 1] > 0.6
        for s in range(2):
            own = ck.KernelLearning(ck.Tessellated(1, 0), loss, X[codes == s], y[codes == s]).solve(tol=1e-4)
            expected, there = truth(Z, np.full(300, s)), with_tasks(Z, np.full(300, s))
            found = joint.decision_function(there), own.decision_function(Z)
            errors.append([np.mean((values - expected) ** 2) for values in found])
    shared, apart = np.mean(errors, axis=0)
    assert shared < 0.8 * apart


def test_opposite_tasks_are_seen_as_such_and_tasks_apart_as_special_cases(rng):
    X, codes, y = related(rng, 15, sign=-1.0)
    problem = ck.KernelLearning(ck.Tessellated(0, tasks=2), ck.LeastSquares(0.1), with_tasks(X, codes), y)
    solution = problem.solve(tol=1e-5)
    assert solution.kernel.task_similarity()[0, 1] < -0.5
    program = problem.to_cvxpy()
    program.constraints.append(program.theta[0::2, 1::2] == 0)
    with pytest.warns(ck.ConvexKernelsWarning, match="STALLED"):  # the best without sharing is not the best
        apart = problem.solve(Conic("CLARABEL", program=program), tol=1e-3)
    np.testing.assert_allclose(apart.kernel.task_similarity(), np.eye(2), atol=1e-5)
    assert apart.certificate.upper > 1.01 * solution.certificate.upper
    assert apart.certificate.lower <= solution.certificate.upper


def test_kernels_with_tasks_are_candidates_like_any_other(rng):
    X = with_tasks(rng.random((7, 1)), np.arange(7) % 2)
    kernels = [ck.TessellatedKernel(random_matrix(4, rng), [-1.0], [2.0], 0, tasks=2) for _ in range(9)]
    gram_set = ck.Candidates(kernels, normalize="none").on(X)
    for k, kernel in enumerate(kernels):
        np.testing.assert_allclose(gram_set.gram(np.eye(9)[k]), kernel(X), rtol=1e-12)


def test_labels_of_the_matrix_name_the_tasks():
    kernel = ck.TessellatedKernel(np.eye(8), [0.0], [1.0], 1, 0, tasks=2)
    labels = ParameterMatrixDisplay.from_kernel(kernel, names=["age"]).labels
    assert labels[:4] == ["1, task 0", "1, task 1", "age, task 0", "age, task 1"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0, 1, 0.5], r"last column of X must be one of 0, \.\.\., 1, got X\[2, 1\] = 0.5; number the tasks"),
        ([0, 2, 1], r"got X\[1, 1\] = 2"),
        ([-1, 0, 1], r"got X\[0, 1\] = -1"),
    ],
)
def test_what_is_no_task_is_refused(column, message, rng):
    X = with_tasks(rng.random((3, 1)), column)
    with pytest.raises(ck.InvalidInputError, match=message):
        ck.Tessellated(0, tasks=2).on(X)
    with pytest.raises(ck.InvalidInputError, match=message):
        ck.TessellatedKernel(np.eye(4), [0.0], [1.0], 0, tasks=2)(X)


def test_other_refusals(rng):
    with pytest.raises(ck.InvalidInputError, match="tasks must be a whole number >= 1, got 0"):
        ck.Tessellated(0, tasks=0)
    with pytest.raises(ck.InvalidInputError, match="X has 1 column and no features"):
        ck.Tessellated(0, tasks=2).on(np.zeros((3, 1)))
    with pytest.raises(ck.InvalidInputError, match="X has 1 features, but the box of the kernel has 1 and the task"):
        ck.TessellatedKernel(np.eye(4), [0.0], [1.0], 0, tasks=2)(np.zeros((3, 1)))
    with pytest.raises(ck.InvalidInputError, match="task_similarity needs a kernel with tasks"):
        ck.TessellatedKernel(np.eye(2), [0.0], [1.0], 0).task_similarity()
    silent = ck.TessellatedKernel(np.diag([1.0, 0.0, 1.0, 0.0]), [0.0], [1.0], 0, tasks=2)
    np.testing.assert_array_equal(silent.task_similarity(), np.eye(2))
