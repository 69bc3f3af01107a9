"""Kernel ridge on all rows: what tiles and conjugate gradients find is what a dense solve in float64 finds."""

import pickle
import time
import warnings

import numpy as np
import pytest

import convexkernels as ck
from convexkernels import FixedKernel, Gaussian, InvalidInputError, LeastSquares
from convexkernels.clock import Clock
from convexkernels.criteria.folds import held_out_share
from convexkernels.families import FAMILIES, example_points
from convexkernels.few_vectors import FEW
from convexkernels.kernels import KERNELS
from convexkernels.kernels.operator import TILE, GramOperator, OutOfTimeError, OverflowingTilesError
from convexkernels.progress import Silent
from convexkernels.solution import Status
from convexkernels.solvers.convex import dense as dense_solver
from convexkernels.solvers.convex.feature_scale import suited_scale
from convexkernels.solvers.convex.held_out_path import HeldOutPath, SharedPath
from convexkernels.solvers.convex.preparation import Preparation
from convexkernels.solvers.convex.shifted_systems import LowRank, ShiftedSystems

M = TILE + 90  # two rows of tiles
ROUNDING = {np.float64: 1e-13, np.float32: 1e-5}


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """What is tested here are the methods for more rows than one matrix in float64 bears."""
    monkeypatch.setattr(dense_solver, "MOST_ROWS", 0)


def table(rng, m=M, n=3, outputs=2):
    X = rng.uniform(size=(m, n))
    Y = np.column_stack([np.sin(5.0 * X[:, 0] + k) + X[:, 1] ** (k + 1) for k in range(outputs)])
    return X, Y + 0.1 * rng.standard_normal(Y.shape), rng.uniform(0.5, 2.0, m)


def dense(K, Y, weights, lam, intercept):
    """Coefficients and intercepts by one linear system."""
    m, k = Y.shape
    A, right = K + np.diag(lam / weights), Y
    if intercept:
        A = np.block([[A, np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
        right = np.vstack([Y, np.zeros((1, k))])
    found = np.linalg.solve(A, right)
    return found[:m], found[m] if intercept else np.zeros(k)


def solved(problem, lam):
    """To the last digits: what rounding is charged may be more than is asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem.solve(lams=[lam], tol=1e-12)
    gap = solution.certificate
    assert abs(gap.gap - gap.charged) <= 1e-11 * gap.upper
    assert gap.charged <= 1e-6 * gap.upper
    assert solution.status is Status.OPTIMAL or solution.certificate.relative_gap > 1e-12
    return solution


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_gives_the_dense_solution(name, intercept, rng):
    kernel, (X, Y, weights) = KERNELS[name](3), table(rng)
    problem = FixedKernel(kernel, LeastSquares(0.05, intercept), X, Y, sample_weight=weights)
    solution = solved(problem, 0.05)
    K = kernel(X)
    W, b = dense(K, Y, weights, 0.05, intercept)
    # As much as values at rows may be apart for that gap, the losses being squares.
    apart = np.sqrt(solution.certificate.gap / weights.min())
    np.testing.assert_allclose(solution.decision_function(X), K @ W + b, rtol=0.0, atol=1e-9 + apart)
    # The optimum by the dense solution lies between the bounds, and they are reproduced without the matrix.
    F = K @ W
    value = 0.05 * float((W * F).sum()) + float((weights[:, None] * (Y - F - b) ** 2).sum())
    assert solution.certificate.lower <= value * (1.0 + 1e-12) <= solution.certificate.upper * (1.0 + 2e-12)
    again = solution.verify()
    assert (again.upper, again.lower) == pytest.approx((solution.certificate.upper, solution.certificate.lower))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_products_by_tiles_are_those_of_the_matrix(name, dtype, rng):
    kernel, X = KERNELS[name](3), rng.uniform(size=(2 * TILE + 7, 3))
    K = kernel(X)
    for memory in (0.0, 9.0 * TILE**2, np.inf):  # nothing is kept, a tile or two, everything
        operator = GramOperator(kernel, X, dtype, memory)
        for vectors in (2, 2, FEW + 1):  # read once, or by BLAS
            V = rng.standard_normal((vectors, len(X)))
            scale = (np.abs(V) @ np.abs(K)).max()
            np.testing.assert_allclose(
                operator.product(V), V @ K, rtol=0.0, atol=(1e-5, 1e-13)[dtype is np.float64] * scale
            )
    np.testing.assert_allclose(operator.rows(np.array([3, 600])), K[[3, 600]], rtol=0.0, atol=1e-12 * scale)
    with pytest.raises(OutOfTimeError):
        operator.product(V, deadline=0.0)
    for wrong in (V[:, 1:], V[0], V[:2, 1:]):
        with pytest.raises(InvalidInputError, match=rf"shape \(k, {len(X)}\)"):
            operator.product(wrong)


def test_what_does_not_fit_is_evaluated_again_with_the_same_result(rng):
    X, Y, weights = table(rng, m=1500)
    kernel = KERNELS["hierarchical_gaussian"](3)
    tight, roomy = (
        FixedKernel(kernel, LeastSquares(0.05), X, Y, sample_weight=weights, memory_limit=limit)
        for limit in (2**24, 2**30)
    )
    assert tight.forecast().kept == 0.0
    assert roomy.forecast().kept == 1.0
    assert roomy.forecast().bytes > 4 * 1500**2 / 2
    found = [solved(problem, 0.05).decision_function(X) for problem in (tight, roomy)]
    np.testing.assert_allclose(*found, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("loss", [LeastSquares(0.1), ck.Hinge(2.0)], ids=["least_squares", "hinge"])
def test_a_limit_that_nothing_fits_is_refused_with_what_is_needed(loss, rng, monkeypatch):
    X, Y, _ = table(rng, m=700, outputs=1)
    y = Y[:, 0] if loss.has_level else np.where(Y[:, 0] > 0.5, 1.0, -1.0)
    limited = [FixedKernel(Gaussian(6.0), loss, X, y, memory_limit=limit) for limit in (1e5, 8e6)]
    with monkeypatch.context() as patched:
        patched.setattr(Gaussian, "_gram", None)
        with pytest.raises(ck.MemoryLimitError, match=r"700 rows needs 0\.0\d+ GiB, .* is 9\.31e-05 GiB"):
            limited[0].solve()
    assert limited[1].solve().status.is_success
    assert limited[1].forecast().bytes <= 8e6


@pytest.mark.parametrize("name", ["gaussian", "hierarchical_gaussian", "inhomogeneous_gaussian", "matern"])
def test_far_rows_and_clusters_keep_their_digits(name, rng):
    X, Y, weights = table(rng)
    X[::7] += 3e4
    X[5] = -2e6
    kernel = KERNELS[name](3)
    problem = FixedKernel(kernel, LeastSquares(0.02), X, Y, sample_weight=weights)
    solution = solved(problem, 0.02)
    K = kernel(X)
    W, b = dense(K, Y, weights, 0.02, True)
    np.testing.assert_allclose(solution.decision_function(X), K @ W + b, rtol=0.0, atol=2e-6)


def test_lam_is_the_best_of_functions_that_have_not_seen_the_rows(rng):
    X, Y, weights = table(rng)
    kernel = Gaussian(6.0)
    problem = FixedKernel(kernel, LeastSquares(1.0), X, Y, sample_weight=weights)
    solution = problem.solve(random_state=3)
    lams, risks = solution.trace["lams"], solution.trace["risks"]
    assert solution.problem.loss.lam == lams[risks.argmin()] < 1.0
    # The same rows held out, every candidate by itself.
    held = held_out_share(M, 0.1, None, np.random.default_rng(3))
    seen, K = np.setdiff1d(np.arange(M), held), kernel(X)

    def exact(lam):
        W, b = dense(K[np.ix_(seen, seen)], Y[seen], weights[seen], lam, True)
        errors = (K[np.ix_(held, seen)] @ W + b - Y[held]) ** 2
        return weights[held] @ errors.mean(axis=1) / weights[held].sum()

    assert risks == pytest.approx([exact(lam) for lam in lams], rel=0.1)
    assert risks.min() < 1.05 * min(exact(lams[0] / 4.0), exact(lams[-1] * 4.0))
    assert FixedKernel(kernel, LeastSquares(1.0), X, Y).solve(lams=[0.3, 0.7]).problem.loss.lam in (0.3, 0.7)


def test_the_function_needs_no_other_look_at_the_matrix(rng, monkeypatch):
    X, Y, _ = table(rng)
    solution = FixedKernel(Gaussian(6.0), LeastSquares(0.01), X, Y).solve(lams=[0.01])
    monkeypatch.setattr(GramOperator, "product", None)
    assert solution.function.W.shape == (2, M)


def test_several_systems_in_one_step_are_solved_as_each_by_itself(rng):
    X, Y, weights = table(rng)
    operator = GramOperator(Gaussian(3.0), X, np.float64, np.inf)
    low_rank = LowRank.of(operator, weights, 40, 0.0)
    lams = np.array([0.1, 0.01])
    systems = ShiftedSystems(operator, low_rank, Y.T, lams, True)
    systems = systems.joined(ShiftedSystems(operator, low_rank, Y.T[:1], np.array([1.0]), True))
    for _ in range(60):
        systems.step(np.arange(3))
    for c, lam in enumerate([0.1, 0.01, 1.0]):
        W, b = dense(Gaussian(3.0)(X), Y[:, [c % 2]], weights, lam, True)
        np.testing.assert_allclose(systems.W[c], W[:, 0], rtol=0.0, atol=1e-6 * np.abs(W).max())
        assert systems.intercepts()[c] == pytest.approx(b[0], abs=1e-6)


def test_a_search_goes_on_to_all_rows(rng):
    X, Y, _ = table(rng, outputs=1)
    y = np.clip(Y[:, 0], -1.0, 1.0)
    searched = ck.OuterLearning(
        ck.Widths(),
        LeastSquares(0.1, intercept=False),
        ck.LeaveOneOut(),
        X[:80],
        y[:80],
        offset=[0.2],
        bounds=(-1.0, 1.0),
    ).solve(max_iter=5, random_state=0)
    solution = solved(FixedKernel.of(searched, X, y), 0.03)
    W, _ = dense(searched.kernel(X), y[:, None] - 0.2, np.ones(M), 0.03, False)
    expected = np.clip(searched.kernel(X, X) @ W[:, 0] + 0.2, -1.0, 1.0)
    np.testing.assert_allclose(solution.decision_function(X), expected, rtol=0.0, atol=1e-6)
    assert solution.function.bounds is not None
    assert solution.intercept == pytest.approx(0.2)
    copied = pickle.loads(pickle.dumps(solution))
    np.testing.assert_array_equal(copied.decision_function(X), solution.decision_function(X))


@pytest.mark.parametrize("loss", [LeastSquares(0.1), ck.Hinge(2.0)], ids=["least_squares", "hinge"])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_convex_family_has_learned_goes_on_to_all_rows(name, loss, rng):
    """On the same rows and at the same lam the function is the one that was learned with the kernel."""
    family, X, y = FAMILIES[name](), rng.uniform(size=(40, 3)), np.sign(rng.standard_normal(40))
    learned = ck.KernelLearning(family, loss, example_points(family, X), 3.0 + y if loss.has_level else y).solve()
    if name == "all_kernel_matrices":
        with pytest.raises(InvalidInputError):
            FixedKernel.of(learned, X, y).solve()
        return
    problem = FixedKernel.of(learned, learned.problem.X, 3.0 + y if loss.has_level else y)
    assert problem.loss.lam == loss.lam
    found = problem.solve(lams=[loss.lam], tol=1e-8)
    assert found.certificate.relative_gap <= 1e-6
    np.testing.assert_allclose(
        found.decision_function(learned.problem.X), learned.decision_function(learned.problem.X), atol=0.02
    )
    assert FixedKernel.of(found, learned.problem.X, y).loss.lam == loss.lam


def test_solutions_that_have_no_single_kernel_are_refused_by_name(rng):
    X, Y, _ = table(rng, outputs=1)
    cells = ck.VoronoiRidge(max_cell_size=200).fit(X, Y[:, 0])
    with pytest.raises(InvalidInputError, match="solution must be of a problem with one kernel and one lam"):
        FixedKernel.of(cells.solution_, X, Y[:, 0])


class Interrupting(Silent):
    """Raises a keyboard interrupt at the given line of the report."""

    def __init__(self, at):
        self.left = at

    def record(self, record):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


class Slow(Silent):
    """Takes its time to report, on every machine."""

    def record(self, record):
        time.sleep(0.1)


def test_an_interrupt_keeps_the_best_with_its_certificate(rng):
    X, Y, _ = table(rng)
    problem = FixedKernel(KERNELS["tessellated"](3), LeastSquares(0.01), X, Y)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        solution = problem.solve(lams=[1e-4], tol=1e-10, progress=Interrupting(3))
    assert solution.status is Status.INTERRUPTED
    assert 1e-10 < solution.certificate.relative_gap < 1.0
    assert np.isfinite(solution.decision_function(X)).all()


class Noted(Silent):
    """Keeps what is said."""

    def __init__(self):
        self.said = ""

    def note(self, message):
        self.said += message


@pytest.mark.parametrize("lams", [[1e-3], [1e-3, 1e-2]], ids=["given", "chosen"])
def test_what_the_preconditioner_leaves_out_is_said(lams, rng, monkeypatch):
    X, Y, weights = table(rng)
    made, of = [], LowRank.of
    monkeypatch.setattr(LowRank, "of", lambda *arguments: made.append(of(*arguments)) or made[-1])
    kernel, notes = Gaussian(200.0), Noted()
    problem = FixedKernel(kernel, LeastSquares(1e-3), X, Y, sample_weight=weights)
    solution = problem.solve(lams=lams, progress=notes, random_state=0)
    K, (low_rank,) = kernel(X), made
    (share,) = solution.trace["preconditioner_error"]
    assert share == pytest.approx(np.trace(K - low_rank.Z @ low_rank.Z.T) / np.trace(K))
    # No factor of this rank leaves out less than the smallest eigenvalues.
    least = np.linalg.eigvalsh(K)[: M - low_rank.Z.shape[1]].sum() / np.trace(K)
    assert 0.01 < least <= share < 3.0 * least
    assert f"of rank {low_rank.Z.shape[1]}, which leaves out {share:.1e} of the trace" in notes.said


def test_the_preconditioner_has_a_part_of_the_time(rng, monkeypatch):
    X, Y, _ = table(rng)
    ends, of = [], LowRank.of

    def watched(operator, weights, rank, tol, deadline=None):
        ends.append(None if deadline is None else deadline - time.monotonic())
        return of(operator, weights, rank, tol, deadline)

    monkeypatch.setattr(LowRank, "of", watched)
    for lams in ([1e-3], [1e-3, 1e-2]):
        for limit in (None, 100.0):
            FixedKernel(Gaussian(200.0), LeastSquares(1e-3), X, Y).solve(lams=lams, max_time=limit, random_state=0)
    assert (ends[0], ends[2]) == (None, None)
    assert ends[1] == pytest.approx(20.0, abs=2.0)
    assert ends[3] == pytest.approx(10.0, abs=1.0)  # of the half that the choice has


def test_an_interrupt_of_the_choice_keeps_what_there_is(rng, monkeypatch):
    X, Y, _ = table(rng)
    problem, calls, product = FixedKernel(Gaussian(6.0), LeastSquares(0.01), X, Y), [], GramOperator.product

    def interrupted(self, *arguments):
        calls.append(len(calls))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return product(self, *arguments)

    monkeypatch.setattr(GramOperator, "product", interrupted)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        solution = problem.solve()
    assert solution.status is Status.INTERRUPTED
    assert solution.certificate.relative_gap < 0.5
    assert len(solution.trace["lams"]) == 3


@pytest.mark.parametrize("max_time", [1e-6, 0.3])
def test_a_time_limit_gives_what_there_is_with_its_certificate(max_time, rng):
    X, Y, _ = table(rng)
    problem = FixedKernel(KERNELS["tessellated"](3), LeastSquares(1e-9), X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem.solve(lams=[1e-9], tol=1e-14, max_time=max_time, progress=Slow())
    assert solution.status is Status.TIME_LIMIT
    assert np.isfinite([solution.certificate.upper, solution.certificate.lower]).all()
    assert np.isfinite(solution.decision_function(X)).all()


def test_where_rounding_ends_the_certificate_says_so():
    """On which table steps go on to their limit instead depends on the order of sums, which a processor chooses."""
    by_rounding, ends = {Status.STALLED, Status.NUMERICAL_ERROR, Status.ROUNDED}, []
    for seed in range(5):
        X, Y, _ = table(np.random.default_rng(seed))
        problem = FixedKernel(KERNELS["polynomial"](3), LeastSquares(1e-14), X * 1e3, Y)
        with pytest.warns(ck.ConvexKernelsWarning):
            solution = problem.solve(lams=[1e-14], tol=1e-13)
        ends.append(solution.status)
        assert solution.certificate.upper >= solution.certificate.lower
    assert by_rounding & set(ends)
    assert set(ends) <= by_rounding | {Status.ITERATION_LIMIT}


@pytest.mark.parametrize("fits", [0, 1])
def test_directions_that_outgrow_the_tiles_end_the_search_with_what_was_found(fits, rng, monkeypatch):
    """Rounding may leave the matrix indefinite; a kernel that does not fit to begin with is refused."""
    X, Y, _ = table(rng)
    product, calls = GramOperator.product, []

    def overflowing(self, *arguments):
        if self.dtype == np.float32:
            calls.append(self)
            if len(calls) > fits:
                raise OverflowingTilesError("products overflow")
        return product(self, *arguments)

    monkeypatch.setattr(GramOperator, "product", overflowing)
    problem = FixedKernel(Gaussian(3.0), LeastSquares(0.05), X, Y)
    if fits == 0:
        with pytest.raises(OverflowingTilesError):
            problem.solve(lams=[0.05], tol=1e-9)
        return
    with pytest.warns(ck.ConvexKernelsWarning):
        solution = problem.solve(lams=[0.05], tol=1e-9)
    assert solution.status is Status.STALLED
    assert len(calls) == fits + 1
    assert np.isfinite([solution.certificate.upper, solution.certificate.lower]).all()
    assert solution.certificate.upper >= solution.certificate.lower


def test_a_row_or_two_are_enough():
    one = FixedKernel(Gaussian(1.0), LeastSquares(0.5), [[0.0]], [3.0]).solve()
    assert one.decision_function([[0.0], [9.0]]) == pytest.approx([3.0, 3.0])
    two = FixedKernel(Gaussian(1.0), LeastSquares(1.0, intercept=False), [[0.0], [9.0]], [3.0, -1.0]).solve(lams=[1.0])
    assert two.decision_function([[0.0], [9.0]]) == pytest.approx([1.5, -0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "gaussian"}, "kernel must be a Kernel"),
        ({"loss": "hinge"}, "loss must be a Loss"),
        (
            {"sample_weight": np.zeros(20)},
            "sample_weight must be finite and > 0; leave out rows of weight 0, got 0.0 at row 0",
        ),
        ({"X": np.full((20, 2), np.nan)}, "X"),
        ({"y": np.zeros(19)}, "19"),
        ({"memory_limit": -1.0}, "memory_limit"),
    ],
)
def test_refusals(arguments, message):
    stated = {"kernel": Gaussian(1.0), "loss": LeastSquares(0.1), "X": np.zeros((20, 2)), "y": np.zeros(20)} | arguments
    with pytest.raises(InvalidInputError, match=message):
        FixedKernel(**stated)


@pytest.mark.parametrize(("lams", "message"), [([0.1, -1.0], "lams"), ([], "lams is empty")])
def test_candidates_are_refused_by_name(lams, message, rng):
    with pytest.raises(InvalidInputError, match=message):
        FixedKernel(Gaussian(1.0), LeastSquares(0.1), rng.uniform(size=(20, 2)), np.arange(20.0)).solve(lams=lams)


@pytest.mark.parametrize("intercept", [True, False])
def test_an_output_that_is_solved_at_once_stops_no_other(intercept):
    """A constant target, where an intercept is fitted, or one of zeros: nothing is left of it for a step."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 2))
    f = np.sin(5.0 * X[:, 0]) + 0.1 * rng.normal(size=80)
    Y = np.column_stack([np.full(80, 3.0 * intercept), f])
    kernel, loss = ck.Gaussian(2.0), ck.LeastSquares(1e-3, intercept=intercept)
    for lams in ([1e-3], [1e-5, 1e-3, 1e-1]):
        both = ck.FixedKernel(kernel, loss, X, Y).solve(lams=lams, tol=1e-6, random_state=0)
        alone = ck.FixedKernel(kernel, loss, X, f).solve(lams=lams, tol=1e-6, random_state=0)
        assert both.status.is_success
        assert both.problem.loss.lam == alone.problem.loss.lam
        np.testing.assert_allclose(both.certificate.upper, alone.certificate.upper, rtol=1e-5)
        np.testing.assert_allclose(both.decision_function(X)[:, 0], 3.0 * intercept, atol=1e-12)
        np.testing.assert_allclose(both.decision_function(X)[:, 1], alone.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_of_a_kernel_on_rescaled_features_are_its_matrix(dtype, rng):
    X = rng.uniform(size=(40, 3))
    kernel = ck.Rescaled(Gaussian(2.0), np.zeros(3), np.array([0.5, 1.0, 0.0]))
    block = kernel.blocks(X, dtype)(slice(10, 30), slice(0, 12))
    assert block.dtype == dtype
    np.testing.assert_allclose(block, kernel(X)[10:30, :12], rtol=0.0, atol=ROUNDING[dtype])


@pytest.mark.parametrize(("gamma", "low", "high"), [(40.0, 1.2, 6.0), (4000.0, 1.0, 1.0)])
def test_a_kernel_that_is_too_wide_is_scaled_for_all_rows(gamma, low, high, rng):
    """In one column the best width is known by trying: a narrower kernel is never made wider."""
    X = rng.uniform(size=(2500, 1))
    y = np.sin(40.0 * X[:, 0]) + 0.1 * rng.standard_normal(2500)
    problem = FixedKernel(Gaussian(gamma), LeastSquares(0.01), X, y)
    which, scale, lam = suited_scale([problem], Clock(), 0)
    assert which == 0
    assert low <= scale <= high
    assert suited_scale([problem], Clock(), 0) == (0, scale, lam)
    found = problem.rescaled(scale).with_loss(problem.loss.at(lam)).solve(random_state=0)
    lams, risks = found.trace["lams"], found.trace["risks"]
    assert risks[np.isclose(lams, lam)] <= 1.05 * risks.min(), "what suits some rows suits all of them, about"
    assert found.status is Status.OPTIMAL
    K = Gaussian(gamma)(scale * X)
    W, b = dense(K, y[:, None], np.ones(2500), found.problem.loss.lam, True)
    np.testing.assert_allclose(found.decision_function(X), K @ W[:, 0] + b[0], rtol=0.0, atol=0.05)
    np.testing.assert_allclose(found.kernel(X[:9]), Gaussian(gamma)(scale * X[:9]))


def test_the_kernel_of_less_risk_on_held_out_rows_is_scaled(rng):
    """A column that says nothing: the kernel that does not see it is taken, wherever it stands."""
    X = rng.uniform(size=(1200, 2))
    y = np.sin(20.0 * X[:, 0]) + 0.1 * rng.standard_normal(1200)
    blind, both = (
        FixedKernel(ck.Rescaled(Gaussian(40.0), np.zeros(2), np.array([1.0, width])), LeastSquares(0.01), X, y)
        for width in (1e3, 1.0)
    )
    assert suited_scale([both, blind], Clock(), 0)[0] == 1
    found = suited_scale([blind, both], Clock(), 0)
    assert found[0] == 0
    assert found == suited_scale([blind], Clock(), 0)


def test_a_kernel_begins_with_the_lam_that_was_best_for_the_first_one(monkeypatch, rng):
    """A kernel that was learned among near rows has a small lam, of which systems take many steps."""
    X = rng.uniform(size=(900, 1))
    y = np.sin(20.0 * X[:, 0]) + 0.1 * rng.standard_normal(900)
    first, second = (FixedKernel(Gaussian(40.0), LeastSquares(lam), X, y) for lam in (0.1, 1e-7))
    tried, run = [], HeldOutPath._run

    def watched(self, *arguments):
        run(self, *arguments)
        tried.append((min(self.lams), self.lams[self.best()]))

    monkeypatch.setattr(HeldOutPath, "_run", watched)
    _, _, lam = suited_scale([first, second], Clock(), 0)
    assert min(least for least, _ in tried) > 1e-5
    assert lam == suited_scale([first], Clock(), 0)[2], "equal kernels are equal"
    assert lam in [best for _, best in tried]


@pytest.mark.parametrize(("center", "goes_on"), [(1e-4, False), (10.0, True)])
def test_a_path_looks_at_less_regularization_where_that_promises_something(center, goes_on, rng):
    X = rng.uniform(size=(300, 1))
    y = np.sin(20.0 * X[:, 0]) + 0.5 * rng.standard_normal(300)
    problem = FixedKernel(Gaussian(40.0), LeastSquares(center), X, y)
    path = SharedPath.of(problem, rng, prepared=Preparation(problem))
    best = path.follow(None, Clock())
    assert path.lams[:3] == [center, 4.0 * center, 16.0 * center]
    assert (min(path.lams) < center) == goes_on
    assert (best < center) == goes_on


def test_a_lam_far_below_the_rounding_of_tiles_goes_astray_and_is_not_chosen(rng):
    X = rng.uniform(size=(2500, 1))
    y = np.sin(40.0 * X[:, 0]) + 0.1 * rng.standard_normal(2500)
    problem = FixedKernel(Gaussian(68.0), LeastSquares(1e-6), X, y)
    path = SharedPath.of(problem, rng, prepared=Preparation(problem))
    assert path.follow([1e-3, 1e-6], Clock()) == 1e-3
    assert path.risks()[0] < 0.01


def test_an_interrupt_and_the_end_of_the_time_leave_the_scale_that_was_found(monkeypatch, rng):
    X = rng.uniform(size=(300, 1))
    problem = FixedKernel(Gaussian(40.0), LeastSquares(0.01), X, np.sin(40.0 * X[:, 0]))
    assert suited_scale([problem, problem.rescaled(2.0)], Clock(1e-9), 0) == (0, 1.0, 0.01)
    calls, run = [], HeldOutPath._run

    def interrupted(self, *arguments):
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(HeldOutPath, "_run", interrupted)
    clock = Clock()
    assert suited_scale([problem], clock, 0)[:2] == (0, 1.25)
    assert clock.interrupted


def test_the_choice_and_the_steps_of_an_earlier_run_are_not_taken_again(tmp_path, monkeypatch, rng):
    X = rng.random((1100, 3))
    y = np.sin(6.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(len(X))
    problem = ck.FixedKernel(ck.Gaussian(200.0), ck.LeastSquares(1e-3), X, y)
    options = {"solver": "conjugate-gradients", "tol": 1e-8, "random_state": 0}
    whole = problem.solve(**options)
    with pytest.warns(ck.ConvexKernelsWarning, match="ITERATION_LIMIT"):
        cut = problem.solve(max_iter=whole.n_iter // 2, checkpoint=tmp_path / "fit.npz", **options)
    monkeypatch.setattr(HeldOutPath, "follow", None)
    again = problem.solve(checkpoint=tmp_path / "fit.npz", **options)
    assert again.problem.loss.lam == cut.problem.loss.lam == whole.problem.loss.lam
    assert again.n_iter < 0.9 * whole.n_iter
    assert again.certificate.holds(1e-8)
    np.testing.assert_array_equal(again.trace["held_out_values"], cut.trace["held_out_values"])
    assert problem.solve(checkpoint=tmp_path / "fit.npz", **options).n_iter == 0
    other = ck.FixedKernel(ck.Gaussian(100.0), ck.LeastSquares(1e-3), X, y)
    with pytest.raises(TypeError):  # of another kernel nothing is known, and it chooses
        other.solve(checkpoint=tmp_path / "fit.npz", **options)
