"""One kernel on few rows: solved with the matrix in float64, whatever lam or C is; lam by rows that are held out."""

import warnings

import numpy as np
import pytest

import convexkernels as ck
from convexkernels import FixedKernel, Gaussian, Hinge, LeastSquares, Polynomial
from convexkernels.criteria.folds import held_out_share
from convexkernels.kernels.operator import OutOfTimeError
from convexkernels.losses import support_vector
from convexkernels.losses.fit import fit
from convexkernels.losses.sequential import box_dual_gap
from convexkernels.solution import Status
from convexkernels.solvers.convex import dense


def table(rng, m=200, noise=0.0):
    X = rng.uniform(size=(m, 3))
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(m)


def test_rows_without_noise_are_solved_at_any_lam(rng):
    """Float32 and a preconditioner left a gap of 1 here, after a thousand steps."""
    X, y = table(rng)
    for kernel in (Gaussian(1.0), Gaussian(6.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # of 1e-9 rounding may be more than a thousandth
            solution = FixedKernel(kernel, LeastSquares(1.5e-8), X, y).solve(random_state=0)
        assert solution.solver == "dense"
        assert solution.certificate.holds(1e-2)
        assert np.abs(solution.decision_function(X) - y).max() < 0.01


@pytest.mark.parametrize(("kernel", "C"), [(Polynomial(5), 1e4), (Gaussian(1.0), 1e8), (Polynomial(2), 1e8)])
def test_support_vector_machines_of_nearly_singular_matrices_are_solved(kernel, C, rng):
    X, _ = table(rng, 120)
    y = np.where(rng.random(120) < 0.5, 1.0, -1.0)
    solution = FixedKernel(kernel, Hinge(C), X, y).solve(tol=5e-3)
    assert solution.solver == "dense"
    assert solution.status is Status.OPTIMAL


def test_factorizations_are_spared_where_the_gap_with_the_best_intercept_holds(monkeypatch, rng):
    """Steps know the intercept between bounds only, and report gaps that are those of another one."""
    X, y = table(rng, 80, noise=0.3)
    K, dual = Gaussian(1.0)(X), ck.EpsilonInsensitive(1.0, 0.1).box_dual(y, np.ones(80))
    calls, ascend = [], support_vector.ascend_pairs

    def pessimistic(*arguments):
        calls.append("steps")
        exact, budget = (1e-9, 10**6) if len(calls) > 1 else (0.1, 5)
        return ascend(*arguments[:-2], exact, budget)[0], 1.0

    def from_inside(K, dual, w, *rest):
        calls.append("factorizations")
        return w, np.inf

    monkeypatch.setattr(support_vector, "ascend_pairs", pessimistic)
    monkeypatch.setattr(support_vector, "_from_inside", from_inside)
    w = support_vector._ascend(K, dual, np.zeros(80), True, 1e-6, None)
    r = dual.lin - K @ w
    upper, lower = box_dual_gap(dual.lin, dual.eps, dual.lo, dual.hi, w, r, support_vector.best_intercept(r, dual))
    assert upper - lower <= 1e-6 * upper
    assert calls == ["steps", "steps"]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("loss", "options"), [(ck.EpsilonInsensitive, {"epsilon": 0.05}), (ck.Pinball, {"quantile": 0.7}), (Hinge, {})]
)
def test_smooth_kernels_are_solved_by_a_factor_of_few_columns(loss, options, intercept, monkeypatch, rng):
    """Of 600 rows steps were far from the end, and a dozen factorizations of the whole matrix followed."""
    X, y = table(rng, 600, noise=0.3)
    loss = loss(C=300.0, intercept=intercept, **options)
    y = np.where(y > y.mean(), 1.0, -1.0) if loss.of_labels else y
    K, weights, called = Gaussian(0.7)(X), rng.uniform(0.5, 2.0, 600), []

    def whole(*arguments):
        called.append("whole")
        return arguments[2], np.inf

    with monkeypatch.context() as patched:
        patched.setattr(support_vector, "_from_inside", whole)
        found = fit(loss, K, y[None], weights, tol=1e-3)
    assert not called
    assert found.upper - found.value <= 1e-3 * found.upper
    monkeypatch.setattr(support_vector, "SMALLEST_FACTORED", 10**9)
    other = fit(loss, K, y[None], weights, tol=1e-6)
    assert other.value <= found.upper + 1e-6 * abs(other.value)
    assert found.value <= other.upper + 1e-6 * abs(other.value)


def test_a_factor_that_leaves_something_out_is_judged_by_the_matrix_itself(monkeypatch, rng):
    X, y = table(rng, 400, noise=0.1)
    loss, weights, K = ck.EpsilonInsensitive(50.0, 0.02), np.ones(400), Gaussian(0.25)(X)
    tried, from_factor = [], support_vector._from_factor

    def watched(K, dual, w, g, gap, *rest):
        tried.append((gap, *from_factor(K, dual, w, g, gap, *rest)))
        return tried[-1][1:]

    monkeypatch.setattr(support_vector, "_from_factor", watched)
    monkeypatch.setattr(support_vector, "LOOSE", 1e12)  # anything goes
    found = fit(loss, K, y[None], weights, tol=1e-5)  # far below what the first steps lead to
    [(before, w, residual, after)] = tried
    assert after <= before
    dual = loss.box_dual(y, weights)
    np.testing.assert_allclose(residual, dual.lin - K @ w, atol=1e-9)
    assert after == pytest.approx(support_vector._gap(dual, w, dual.lin - K @ w, True))
    assert found.upper - found.value <= 1e-5 * found.upper


@pytest.mark.parametrize("intercept", [True, False])
def test_lam_is_that_of_the_least_risk_on_held_out_rows(intercept, rng):
    X, y = table(rng, noise=0.1)
    Y, weights, kernel = np.column_stack([y, y**2]), rng.uniform(0.5, 2.0, 200), Gaussian(6.0)
    problem = FixedKernel(kernel, LeastSquares(10.0, intercept), X, Y, sample_weight=weights, bounds=(-1.0, 1.5))
    solution = problem.solve(random_state=3)
    held = held_out_share(200, 0.1, None, np.random.default_rng(3))
    seen, K, risks = np.setdiff1d(np.arange(200), held), kernel(X), []
    for lam in solution.trace["lams"]:
        found = fit(LeastSquares(lam, intercept), K[np.ix_(seen, seen)], problem.Y[:, seen], weights[seen])
        F = np.clip((found.W @ K[np.ix_(seen, held)] + (found.b + problem.offset)[:, None]).T, -1.0, 1.5)
        risks.append(weights[held] @ ((F - Y[held]) ** 2).mean(axis=1) / weights[held].sum())
    assert solution.trace["risks"] == pytest.approx(risks)
    assert solution.problem.loss.lam == solution.trace["lams"][np.argmin(risks)] < 10.0


def test_rows_memory_and_losses_decide_who_solves(rng, monkeypatch):
    X, y = table(rng)
    assert FixedKernel(Gaussian(6.0), LeastSquares(0.1), X, y).forecast().kept == 1.0
    tight = FixedKernel(Gaussian(6.0), LeastSquares(0.1), X, y, memory_limit=8 * dense.MATRICES * 200**2 - 1)
    with pytest.raises(ck.InvalidInputError, match=r"it needs 1.28e\+06 bytes"):
        tight.solve("dense")
    monkeypatch.setattr(dense, "MOST_ROWS", 199)
    with pytest.raises(ck.InvalidInputError, match="it holds the matrix of at most 199 rows, here are 200"):
        FixedKernel(Gaussian(6.0), LeastSquares(0.1), X, y).solve("dense")
    assert FixedKernel(Gaussian(6.0), LeastSquares(0.1), X, y).solve().solver == "conjugate-gradients"


def test_an_interrupt_of_the_choice_and_the_end_of_the_time_leave_a_solution(rng, monkeypatch):
    X, y = table(rng, noise=0.1)
    problem, calls = FixedKernel(Gaussian(6.0), LeastSquares(0.1), X, y), []

    def interrupted(*arguments, **settings):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(*arguments, **settings)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        assert problem.solve(max_time=1e-9).status in (Status.TIME_LIMIT, Status.OPTIMAL)
        monkeypatch.setattr(dense, "fit", interrupted)
        solution = problem.solve()
    assert solution.status is Status.INTERRUPTED
    assert len(solution.trace["lams"]) == 2
    assert solution.certificate.holds(1e-6)


def test_a_choice_of_lam_that_the_time_has_ended_is_told_and_not_kept(rng, monkeypatch, tmp_path):
    X, y = table(rng, noise=0.1)
    problem, add = FixedKernel(Gaussian(6.0), LeastSquares(10.0), X, y), dense.MatrixPath.add

    def short(path, lams, near, deadline, stage):
        if path.lams:
            raise OutOfTimeError
        add(path, lams, near, deadline, stage)

    with monkeypatch.context() as patch:
        patch.setattr(dense.MatrixPath, "add", short)
        patch.setattr(dense.MatrixPath, "_may_gain", lambda path: True)
        with pytest.warns(ck.ConvexKernelsWarning, match="max_time ended the choice of lam early") as said:
            solution = problem.solve(checkpoint=tmp_path / "kept", max_time=60.0, random_state=0)
    assert (len(said), solution.status, len(solution.trace["lams"])) == (1, Status.OPTIMAL, 3)
    again = problem.solve(checkpoint=tmp_path / "kept", random_state=0)
    assert len(again.trace["lams"]) == len(problem.solve(random_state=0).trace["lams"]) > 3
