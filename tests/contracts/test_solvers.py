"""Every solver that accepts a problem reaches the same certified optimum, for every family and every loss.

Run with ``pytest -s`` to see the table: one line per problem, one column of relative gaps per solver.
"""

import warnings

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.families import FAMILIES
from convexkernels.families.precomputed import row_numbers
from convexkernels.losses import LOSSES
from convexkernels.solvers import SOLVERS, make_solver

M = 12
TOL = 1e-4

# Steps towards vertices alone converge sublinearly; the method is a cross-check.
PROMISED = {"frank-wolfe": 2e-2}
# Every member of these families has a singular Gram matrix at its optimum (rank one): J has kinks there, at which
# methods of descent may stop. Their bounds must hold all the same, and other solvers accept the problem.
SINGULAR = {"generalized_polynomial", "all_kernel_matrices"}
DESCENT = {"spectral-gradient", "frank-wolfe"}


def problem_of(family, loss):
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(M, 2))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(M)
    kind, make = LOSSES[loss]
    if kind == "labels":
        y = np.where(y > np.median(y), 1.0, -1.0)
    points = row_numbers(M) if family == "all_kernel_matrices" else X
    return ck.KernelLearning(FAMILIES[family](), make(), points, y)


@pytest.mark.parametrize("loss", [name for name, (_, make) in LOSSES.items() if not make().needs_definite])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_solvers_reach_the_same_certified_optimum(family, loss):
    problem = problem_of(family, loss)
    found = {}
    for name in SOLVERS:
        if make_solver(name).accepts(problem) is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # an unlicensed MOSEK, and slow tails
                found[name] = problem.solve(name, tol=TOL, max_iter=80)
    print(f"{family:26s}{loss:34s}" + "  ".join(f"{n} {s.certificate.relative_gap:.0e}" for n, s in found.items()))
    assert "conic" in found
    assert len(found) >= (1 if family == "span" else 3)
    for name, solution in found.items():
        gap = solution.certificate.relative_gap
        assert gap >= -1e-9, f"{name}: bounds cross"
        if not (family in SINGULAR and name in DESCENT):
            assert gap <= PROMISED.get(name, TOL), f"{name} stopped at {solution.certificate}"
    # Intervals that contain the same number meet: the largest lower bound is below the smallest upper one.
    lower = max(solution.certificate.lower for solution in found.values())
    upper = min(solution.certificate.upper for solution in found.values())
    assert lower <= upper * (1.0 + 1e-9)
    assert upper - lower <= TOL * upper


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
@pytest.mark.parametrize("name", ["spectral-gradient", "frank-wolfe"])
def test_span_by_methods_that_project(name, loss):
    """The span has a projection and a support function, if slow ones: the conic program must agree with them."""
    problem = problem_of("span", loss)
    problem.gram_set.has_projection = problem.gram_set.has_support = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        conic, other = problem.solve("conic", tol=TOL), problem.solve(name, tol=1e-2, max_iter=20)
    assert other.certificate.relative_gap <= 2e-2
    assert other.certificate.lower <= conic.certificate.upper * (1.0 + 1e-9)
    assert conic.certificate.lower <= other.certificate.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_several_outputs_share_one_kernel(name):
    """Columns of targets: the sum of the objectives, one theta, certified as a whole."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(M, 2))
    Y = np.column_stack([X[:, 0] ** 2, np.cos(4.0 * X[:, 1]), X.sum(axis=1)])
    problem = ck.KernelLearning(FAMILIES["candidates"](), ck.LeastSquares(0.05), X, Y)
    if make_solver(name).accepts(problem) is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem.solve(name, tol=TOL, max_iter=80)
    assert solution.certificate.relative_gap <= PROMISED.get(name, TOL)
    assert solution.alpha.shape == (3, M)
    assert solution.decision_function(X[:5]).shape == (5, 3)
    apart = sum(problem_for(X, column, solution.theta) for column in Y.T)
    assert solution.value == pytest.approx(apart, rel=1e-3)


def problem_for(X, y, theta):
    """Objective of one machine at a given theta."""
    problem = ck.KernelLearning(FAMILIES["candidates"](), ck.LeastSquares(0.05), X, y)
    return problem.evaluate(theta, tol=1e-9).value


@pytest.mark.parametrize("name", SOLVERS)
def test_interrupted_and_hurried_runs_still_have_a_certificate(name):
    problem = problem_of("candidates", "hinge")
    if make_solver(name).accepts(problem) is not None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem.solve(name, tol=1e-12, max_iter=0)
    assert np.isfinite([solution.certificate.lower, solution.certificate.upper]).all()
    assert solution.certificate.gap >= -1e-9 * solution.certificate.upper
