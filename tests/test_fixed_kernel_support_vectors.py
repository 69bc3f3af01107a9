"""Support vector losses on all rows: the certified answer of one kernel is that of the dense problem."""

import pickle
import warnings

import numpy as np
import pytest

import convexkernels as ck
from convexkernels import Candidates, FixedKernel, Gaussian, InvalidInputError, KernelLearning
from convexkernels.kernels import KERNELS
from convexkernels.kernels.operator import TILE, GramOperator, OutOfTimeError
from convexkernels.losses import LOSSES
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.solution import Status
from convexkernels.solvers import SOLVERS, WITH_ONE_KERNEL
from convexkernels.solvers.convex import block_ascent
from convexkernels.solvers.convex import dense as dense_solver
from convexkernels.solvers.convex.block_ascent import BlockAscent
from tests.test_fixed_kernel import Interrupting, Slow

M = TILE + 90  # two rows of tiles
BOXED = [name for name, (_, make) in LOSSES.items() if isinstance(make(), SupportVectorLoss)]


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """What is tested here are the methods for more rows than one matrix in float64 bears."""
    monkeypatch.setattr(dense_solver, "MOST_ROWS", 0)


def table(rng, kind="labels", m=M, outputs=1):
    X = rng.uniform(size=(m, 3))
    Y = np.column_stack([np.sin(5.0 * X[:, 0] + k) + X[:, 1] ** (k + 1) for k in range(outputs)])
    Y += 0.2 * rng.standard_normal(Y.shape)
    if kind == "labels":
        Y = np.where(np.median(Y, axis=0) < Y, 1.0, -1.0)
    return X, Y[:, 0] if outputs == 1 else Y, rng.uniform(0.5, 2.0, m)


def small_blocks(monkeypatch, size=300):
    """As if the memory held the matrix of so few rows."""
    monkeypatch.setattr(block_ascent, "block_sizes", lambda problem: (size, size))


def optimum(kernel, loss, X, y, weights, tol=1e-9):
    """Bounds by the solvers of one matrix in float64."""
    problem = KernelLearning(Candidates([kernel], normalize="none"), loss, X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        return problem.solve(tol=tol)


@pytest.mark.parametrize("blocks", ["one", "several"])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("name", BOXED)
def test_every_loss_gives_the_optimum_of_the_dense_problem(name, outputs, blocks, rng, monkeypatch):
    kind, make = LOSSES[name]
    kernel, loss, (X, y, weights) = Gaussian(6.0), make(), table(rng, kind, outputs=outputs)
    if blocks == "several":
        small_blocks(monkeypatch)
    solution = FixedKernel(kernel, loss, X, y, sample_weight=weights).solve(tol=1e-6)
    dense = optimum(kernel, loss, X, y, weights)
    assert solution.status is Status.OPTIMAL
    assert solution.solver == "decomposition"
    assert solution.certificate.lower <= dense.certificate.upper
    assert dense.certificate.lower <= solution.certificate.upper
    again = solution.verify()
    assert (again.upper, again.lower) == pytest.approx((solution.certificate.upper, solution.certificate.lower))
    np.testing.assert_allclose(solution.decision_function(X), dense.decision_function(X), rtol=0.0, atol=0.02)
    assert np.shape(solution.intercept) == (() if outputs == 1 else (outputs,))


@pytest.mark.parametrize("name", BOXED)
def test_the_function_is_the_one_that_is_certified(name, rng):
    """Its objective, from the values of the function that is returned, is the upper bound, at any tolerance."""
    kind, make = LOSSES[name]
    kernel, loss, (X, Y, weights) = Gaussian(6.0), make(), table(rng, kind, outputs=2)
    problem = FixedKernel(kernel, loss, X, Y, sample_weight=weights)
    for tol in (0.3, 1e-5):
        solution = problem.solve(tol=tol)
        F, W = solution.decision_function(X), solution.function.W
        K = kernel(X[solution.function.support])
        losses = loss.pointwise(Y, F)[0]
        value = 0.5 * np.vdot(W @ K, W) + loss.C * float((weights[:, None] * losses).sum())
        assert value == pytest.approx(solution.certificate.upper, rel=1e-9)
        assert solution.certificate.relative_gap <= tol
    copied = pickle.loads(pickle.dumps(solution))
    np.testing.assert_array_equal(copied.decision_function(X), solution.decision_function(X))


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_reaches_the_gap(name, rng):
    X, y, weights = table(rng)
    solution = FixedKernel(KERNELS[name](3), ck.Hinge(2.0), X, y, sample_weight=weights).solve()
    assert solution.status is Status.OPTIMAL
    dense = optimum(KERNELS[name](3), ck.Hinge(2.0), X, y, weights, tol=1e-4).certificate
    assert solution.certificate.lower <= dense.upper
    assert dense.lower <= solution.certificate.upper


@pytest.mark.parametrize("intercept", [True, False])
def test_what_does_not_fit_is_evaluated_again_with_the_same_result(intercept, rng):
    X, y, weights = table(rng, m=1500)
    tight, roomy = (
        FixedKernel(Gaussian(6.0), ck.Hinge(5.0, intercept), X, y, sample_weight=weights, memory_limit=limit)
        for limit in (2**24, 2**30)
    )
    assert tight.forecast().kept < 0.3
    assert roomy.forecast().kept == 1.0
    assert roomy.forecast().bytes > 4 * 1500**2 > tight.forecast().bytes - 8 * 1500 * 2 * TILE
    found = [problem.solve(tol=1e-5) for problem in (tight, roomy)]
    for solution in found:
        assert solution.status is Status.OPTIMAL
    assert found[0].value == pytest.approx(found[1].value, rel=1e-5)


def test_newton_steps_go_on_where_pairs_crawl(rng, monkeypatch):
    X, y, weights = table(rng, m=300)
    problem = FixedKernel(Gaussian(6.0), ck.Hinge(1e4), X, y, sample_weight=weights)
    steps, dense = [], optimum(Gaussian(6.0), ck.Hinge(1e4), X, y, weights).certificate
    monkeypatch.setattr(block_ascent, "WORK", 1e6)
    for largest in (block_ascent.LARGEST_NEWTON, 0):
        monkeypatch.setattr(block_ascent, "LARGEST_NEWTON", largest)
        solution = problem.solve(tol=1e-5)
        assert solution.certificate.lower <= dense.upper
        assert dense.lower <= solution.certificate.upper
        assert solution.status is Status.OPTIMAL
        steps.append(solution.n_iter)
    assert steps[0] < steps[1]


def test_where_float32_ends_values_are_formed_anew(rng, monkeypatch):
    X, y, _ = table(rng)
    problem, types, product = FixedKernel(Gaussian(6.0), ck.Hinge(5.0), X, y), [], GramOperator.product

    def noted(self, *arguments):
        types.append(self.dtype)
        return product(self, *arguments)

    monkeypatch.setattr(GramOperator, "product", noted)
    assert problem.solve(tol=1e-3).status is Status.OPTIMAL
    assert types == [np.float64]  # of the certificate
    types.clear()
    solution = problem.solve(tol=1e-9)
    assert solution.certificate.relative_gap <= 1e-8
    assert types.count(np.float64) > 1


def test_the_regularization_parameter_is_that_of_the_loss_or_the_one_that_is_passed(rng):
    X, y, _ = table(rng)
    problem = FixedKernel(Gaussian(6.0), ck.Hinge(5.0), X, y)
    assert problem.solve(tol=1e-2).problem.loss.C == 5.0
    assert problem.solve(lams=[0.25], tol=1e-2).problem.loss.C == 2.0
    with pytest.raises(InvalidInputError, match=r"lams has 2 candidates, among which decomposition cannot choose"):
        problem.solve(lams=[0.25, 0.5])


@pytest.mark.parametrize("blocks", ["one", "several"])
def test_an_interrupt_keeps_the_best_with_its_certificate(blocks, rng, monkeypatch):
    X, y, _ = table(rng)
    monkeypatch.setattr(block_ascent, "WORK", 1e4)
    if blocks == "several":
        small_blocks(monkeypatch)
    problem = FixedKernel(Gaussian(6.0), ck.Hinge(100.0), X, y)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        solution = problem.solve(tol=1e-8, progress=Interrupting(3))
    assert solution.status is Status.INTERRUPTED
    assert 1e-8 < solution.certificate.relative_gap < 1.0
    assert np.isfinite(solution.decision_function(X)).all()


@pytest.mark.parametrize("max_time", [1e-6, 0.3])
def test_a_time_limit_gives_what_there_is_with_its_certificate(max_time, rng, monkeypatch):
    monkeypatch.setattr(block_ascent, "WORK", 1e5)
    X, y, _ = table(rng)
    with pytest.warns(ck.ConvexKernelsWarning, match="TIME_LIMIT"):
        solution = FixedKernel(Gaussian(6.0), ck.Hinge(1e6), X, y).solve(tol=1e-13, max_time=max_time, progress=Slow())
    assert solution.status is Status.TIME_LIMIT
    assert np.isfinite([solution.certificate.upper, solution.certificate.lower]).all()
    assert np.isfinite(solution.decision_function(X)).all()


@pytest.mark.parametrize("blocks", ["one", "several"])
@pytest.mark.parametrize(("name", "outputs"), [("hinge", 1), ("hinge", 3), ("epsilon_insensitive", 2)])
def test_the_steps_of_an_earlier_run_are_not_taken_again(name, outputs, blocks, rng, tmp_path, monkeypatch):
    kind, make = LOSSES[name]
    X, y, weights = table(rng, kind, outputs=outputs)
    monkeypatch.setattr(block_ascent, "WORK", 1e6)
    if blocks == "several":
        small_blocks(monkeypatch)
    problem = FixedKernel(Gaussian(6.0), make().at(1e-3), X, y, sample_weight=weights)
    whole, file = problem.solve(tol=1e-6), tmp_path / "fit.npz"
    assert whole.n_iter >= 4
    with pytest.warns(ck.ConvexKernelsWarning, match="ITERATION_LIMIT"):
        cut = problem.solve(tol=1e-6, max_iter=whole.n_iter // 2 + 1, checkpoint=file)
    again = problem.solve(tol=1e-6, checkpoint=file)
    assert again.n_iter < 0.9 * whole.n_iter
    assert again.history[0].relative_gap == pytest.approx(cut.certificate.relative_gap)
    assert again.certificate.holds(1e-6)
    assert again.verify() == again.certificate
    assert problem.solve(tol=1e-6, checkpoint=file).n_iter == 0


def test_what_was_known_is_the_answer_where_no_time_is_left(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(block_ascent, "WORK", 1e6)
    X, y, _ = table(rng)
    problem, options = FixedKernel(Gaussian(6.0), ck.Hinge(1e4), X, y), {"tol": 1e-9, "checkpoint": tmp_path / "fit"}
    with pytest.warns(ck.ConvexKernelsWarning, match="ITERATION_LIMIT"):
        first = problem.solve(max_iter=2, **options)
    with pytest.warns(ck.ConvexKernelsWarning, match="TIME_LIMIT"):
        again = problem.solve(max_time=1e-6, **options)
    assert again.certificate.relative_gap == pytest.approx(first.certificate.relative_gap)


def test_blocks_hold_what_moves(rng):
    X, y, weights = table(rng)
    loss = ck.Hinge(2.0)
    ascent = BlockAscent(
        FixedKernel(Gaussian(6.0), loss, X, y, sample_weight=weights), np.zeros((1, M)), np.zeros((1, M))
    )
    ascent.size = 100
    rows = ascent._violators(0)
    assert len(np.unique(rows)) == 100
    assert (y[rows] > 0).sum() == 50  # pairs of both classes, of which one rises and the other falls
    assert ascent.step(1e-6, None, lambda share: None)
    moved = np.flatnonzero(ascent.W[0])
    assert np.isin(moved, rows).all()
    assert abs(ascent.W.sum()) < 1e-10
    np.testing.assert_allclose(ascent.F, ascent.W @ Gaussian(6.0)(X), atol=1e-4)


def test_the_matrix_of_some_rows_is_that_of_the_kernel(rng):
    X = rng.uniform(size=(2 * TILE + 7, 3))
    rows = np.sort(rng.permutation(len(X))[: TILE + 100])
    operator = GramOperator(Gaussian(3.0), X)
    np.testing.assert_allclose(operator.square(rows), Gaussian(3.0)(X[rows]), atol=1e-6)
    with pytest.raises(OutOfTimeError):
        operator.square(rows, deadline=0.0)
    with pytest.raises(InvalidInputError, match="overflows float32; rescale the kernel"):
        GramOperator(1e30 * ck.Polynomial(8), 1e3 * X).square(rows)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("hinge", "loss must be a Loss"),
        (ck.Interpolation(), "no finite value where the Gram matrix is singular"),
        (ck.Logistic(1.0), r"no solver fits FixedKernel.*decomposition: its loss is Hinge.*KernelLearning\(Candidates"),
    ],
)
def test_losses_that_cannot_be_are_refused(loss, message, rng):
    X, y, _ = table(rng, m=20)
    with pytest.raises(InvalidInputError, match=message):
        FixedKernel(Gaussian(1.0), loss, X, y).solve()


def test_refusals(rng):
    X, y, _ = table(rng, m=20)
    with pytest.raises(InvalidInputError, match=r"y must hold the labels -1 and \+1"):
        FixedKernel(Gaussian(1.0), ck.Hinge(), X, np.arange(20.0))
    with pytest.raises(InvalidInputError, match="offset must be 0 for Hinge"):
        FixedKernel(Gaussian(1.0), ck.Hinge(), X, y, offset=[0.5])
    problem = FixedKernel(Gaussian(1.0), ck.Hinge(), X, y)
    with pytest.raises(InvalidInputError, match="solver must be 'auto' or one of"):
        problem.solve("smo")
    with pytest.raises(InvalidInputError, match="does not fit this problem: its loss is LeastSquares"):
        problem.solve("conjugate-gradients")
    assert set(WITH_ONE_KERNEL).isdisjoint(SOLVERS)


@pytest.mark.parametrize("heavy", [1.0, 1e10])
def test_coefficients_that_rounding_keeps_from_their_bounds_are_there_and_others_are_not(heavy):
    """The bound of a coefficient says how near to it is at it, not what heavy rows have."""
    y, weights = np.array([1.0, -1.0, 1.0, -1.0, 1.0]), np.array([heavy, heavy, 1.0, 1.0, 1.0])
    alpha = np.array([10.0 * heavy, 10.0 * heavy, 3.0, 10.0 * (1.0 - 1e-12), 1e-12])
    assert ck.Hinge(10.0).free(alpha, y, weights)[0].tolist() == [2]
    w, tube = y * alpha, ck.EpsilonInsensitive(10.0, 0.1)
    assert tube.free(w, y, weights)[0].tolist() == [2]
    assert ck.Hinge(1e14).free(alpha, y, weights)[0].tolist() == ([0, 1, 2, 3] if heavy == 1.0 else [0, 1])
