"""Cells of so many rows that least squares are solved by steps: as with factors of the matrix, to the gap promised."""

import time

import numpy as np
import pytest
from sklearn.base import clone

from convexkernels import (
    Cells,
    CellSelection,
    FixedKernel,
    Gaussian,
    LeastSquares,
    Polynomial,
    VoronoiRidge,
    VoronoiSVC,
)
from convexkernels.cells import many_rows
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.criteria.folds import held_out_blocks
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.kernels.operator import GramOperator
from convexkernels.solution import Status
from convexkernels.solvers.convex.preparation import audited_gaps, audited_rows
from convexkernels.solvers.convex.shifted_systems import LowRank, ShiftedSystems, step_together


def rows_of(rng, m=400, n_outputs=1):
    X = rng.uniform(-1.0, 1.0, (m, 2))
    Y = np.clip(np.sin(3.0 * X[:, 0] + np.arange(n_outputs)[:, None]) + 0.3 * rng.standard_normal(m), -1.0, 1.0)
    return CellRows(X, Y, rng.uniform(0.5, 2.0, m))


def learner(validation, rows, **options):
    selection = CellSelection(validation, n_lams=4, n_widths=4, rank=50)
    return KernelLearner(LeastSquares(1.0, intercept=False), selection, total=float(rows.weights.sum()), **options)


def both(monkeypatch, learn):
    """What is learned with factors, and by steps."""
    with_factors = learn()
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    return with_factors, learn()


def test_values_at_rows_held_out_are_those_of_functions_trained_without_them(rng):
    rows = rows_of(rng, 300, 2)
    problem = FixedKernel(
        Gaussian(4.0), LeastSquares(0.3, intercept=False), rows.X, rows.Y.T, sample_weight=rows.weights
    )
    blocks = held_out_blocks(300, 4, rng)[:3]
    F = many_rows.Folds(problem, blocks).values(0.3)
    for block in blocks:
        rest = np.setdiff1d(np.arange(300), block)
        A = problem.kernel_(rows.X[rest]) + np.diag(0.3 / rows.weights[rest])
        exact = np.linalg.solve(A, rows.Y[:, rest].T).T @ problem.kernel_(rows.X[rest], rows.X[block])
        np.testing.assert_allclose(F[:, block], exact, atol=0.02)
    unseen = np.concatenate(blocks)
    assert not np.delete(F, unseen, axis=1).any()


@pytest.mark.parametrize("validation", [5, "split", "global-split"])
@pytest.mark.parametrize("options", [{}, {"kernel": Gaussian(3.0)}, {"n_outputs": 2}])
def test_steps_choose_and_learn_as_factors_do(validation, options, monkeypatch, rng):
    options = dict(options)
    rows = rows_of(rng, n_outputs=options.pop("n_outputs", 1))
    if validation == "global-split":
        rows = rows.divided(np.random.default_rng(0))
    made = learner(validation, rows, **options)
    expected, found = both(monkeypatch, lambda: made.learn(rows, np.random.default_rng(0)))
    assert (found.width, found.lam) == (expected.width, expected.lam)
    measured = np.isfinite(expected.choice.risks)
    np.testing.assert_allclose(found.choice.risks[measured], expected.choice.risks[measured], rtol=0.01)
    assert found.certificate.holds(made.tol)
    assert found.certificate.lower <= expected.certificate.upper * (1.0 + 1e-9)
    assert found.certificate.upper >= expected.certificate.lower * (1.0 - 1e-9)
    verified = found.verify()
    assert (verified.upper, verified.lower) == pytest.approx(
        (found.certificate.upper, found.certificate.lower), rel=1e-9
    )
    np.testing.assert_allclose(found.values(rows.X), expected.values(rows.X), atol=0.02)


def test_where_tiles_do_not_tell_factors_do(monkeypatch, rng):
    """Or the other way round, where lam is below the rounding of both: what proves more is taken."""
    rows, gaps = rows_of(rng), {}
    for lam in (1e-7, 1e-13):
        made = learner(5, rows, pair=(2.0, lam))
        factors, found = both(monkeypatch, lambda made=made: made.learn(rows, np.random.default_rng(0)))
        with monkeypatch.context() as patched:
            patched.setattr(many_rows, "allowed_memory", lambda limit: 1e6)
            without = made.learn(rows, np.random.default_rng(0))
        monkeypatch.undo()
        gaps[lam] = [one.certificate.gap for one in (factors, without)]
        assert found.certificate.gap == pytest.approx(min(gaps[lam]), rel=0.01)
    assert gaps[1e-7][0] < 0.1 * gaps[1e-7][1]
    assert gaps[1e-13][1] < gaps[1e-13][0]


def test_after_the_deadline_nothing_is_said_of_a_pair(monkeypatch, rng):
    """And the function of some rows is learned, which takes a moment, in the place of none."""
    rows = rows_of(rng, 2500)
    rows = CellRows(rows.X, 0.05 * rows.Y + 0.8, rows.weights)
    problem = FixedKernel(Gaussian(4.0), LeastSquares(0.3, intercept=False), rows.X, rows.Y[0])
    assert many_rows.Folds(problem, held_out_blocks(2500, 5, rng)).values(0.3, time.monotonic() - 1.0) is None
    monkeypatch.setattr(many_rows, "MANY_ROWS", 1500)
    for options in ({}, {"pair": (1.0, 0.1)}):
        made = learner(5, rows, **options)
        found = made.learn(rows, np.random.default_rng(0), time.monotonic() + 1e-3)
        assert np.square(found.values(rows.X) - rows.Y).mean() < 0.1 * np.square(rows.Y).mean()
        assert found.n_spared == 1500


def test_a_pair_that_time_has_cut_does_not_win(monkeypatch, rng):
    """The first one, which was measured, is the choice."""
    rows, whole, asked = rows_of(rng), many_rows.Folds.values, []

    def late(self, lam, deadline):
        asked.append(lam)
        return whole(self, lam, deadline if len(asked) == 1 else time.monotonic() - 1.0)

    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    expected = learner(5, rows).learn(rows, np.random.default_rng(0)).choice
    monkeypatch.setattr(many_rows.Folds, "values", late)
    monkeypatch.setattr("convexkernels.cells.selection.fits", lambda m: False)
    choice = learner(5, rows).learn(rows, np.random.default_rng(0)).choice
    assert len(asked) > 1
    assert np.isfinite(choice.risks).sum() == 1
    assert choice.risks[choice.place] == expected.risks[choice.place]


@pytest.mark.parametrize("lams", [[1e-7, 1e-6], [1e-6, 1e-5]])
def test_risks_that_tiles_do_not_tell_are_those_of_factors(lams, monkeypatch, rng):
    """Of functions that have not converged they had been .31 for .002."""
    X = rng.uniform(-1.0, 1.0, (400, 2))
    rows = CellRows(X, np.sin(3.0 * X[:, :1]).T + 0.05 * rng.standard_normal((1, 400)), np.ones(400))
    selection = CellSelection(5, rank=50, candidates=(np.array(lams) / 400.0, [2.0]), factors=[1.0, 1.0])
    made = KernelLearner(LeastSquares(1.0, intercept=False), selection, total=400.0)
    factors, found = both(monkeypatch, lambda: made.learn(rows, np.random.default_rng(0)))
    measured = np.isfinite(found.choice.risks)
    np.testing.assert_allclose(found.choice.risks[measured], factors.choice.risks[measured], rtol=0.01)
    assert found.lam == factors.lam


def test_gaps_by_rounded_tiles_are_audited(monkeypatch, rng):
    """Where exact values on some rows say more, all of them are formed anew."""
    rows = rows_of(rng, 300)
    problem = FixedKernel(Gaussian(4.0), LeastSquares(0.3, intercept=False), rows.X, rows.Y[0])
    folds, product = many_rows.Folds(problem, held_out_blocks(300, 3, rng)), GramOperator.product
    exact = folds.values(0.3, tol=1e-8)
    formed = []

    def rounded(self, V, *arguments):
        formed.append(self.dtype)
        noise = 0.0 if self.dtype == np.float64 else 0.01 * np.random.default_rng(0).standard_normal(V.shape)
        return product(self, V, *arguments) * (1.0 + noise)

    monkeypatch.setattr(GramOperator, "product", rounded)
    found = folds.values(0.3, tol=1e-5)
    assert np.dtype(np.float64) in formed
    assert found is None or np.abs(found - exact).max() < 0.05


def test_kernels_beyond_float32_are_learned_by_factors(monkeypatch, rng):
    rows = rows_of(rng)
    rows = CellRows(1e10 * rows.X, rows.Y, rows.weights)
    made = learner(5, rows, kernel=Polynomial(2))
    factors, found = both(monkeypatch, lambda: made.learn(rows, np.random.default_rng(0)))
    np.testing.assert_array_equal(found.values(rows.X), factors.values(rows.X))


def test_a_cell_of_one_class_by_another_loss_is_verified(monkeypatch, rng):
    X = rng.uniform(-1.0, 1.0, (300, 2))
    classes = np.where(X[:, 0] > 0.8, 2, (X[:, 1] > 0.0).astype(int))
    classes[(classes == 2) & (X[:, 1] < 0.0)] = 0
    monkeypatch.setattr("convexkernels.cells.kernel_learner.is_many", lambda m: m > 50)
    model = VoronoiSVC(loss="hinge", max_cell_size=80, selection=CellSelection("split"), random_state=0, max_time=None)
    assert model.fit(X, classes).solution_.verify().holds(model.tol)


def table(m=600):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (m, 2))
    return X, np.sin(3.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(m)


@pytest.mark.parametrize("overlap", [0.0, 0.3])
def test_estimators_keep_what_steps_have_found(overlap, monkeypatch, tmp_path):
    """In a checkpoint, whose functions are the same ones without another step."""
    X, y = table()
    settings = {"selection": CellSelection(5, n_lams=3, n_widths=3), "random_state": 0, "max_time": None}
    model = VoronoiRidge(max_cell_size=250, cells=Cells(overlap=overlap), **settings, checkpoint=tmp_path / "cells.npz")
    plain, first = both(monkeypatch, lambda: clone(model).set_params(checkpoint=None).fit(X, y))
    first = clone(model).fit(X, y)
    monkeypatch.setattr(many_rows, "run", None)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    np.testing.assert_array_equal(first.solution_.theta, plain.solution_.theta)
    np.testing.assert_allclose(first.predict(X), plain.predict(X), atol=0.01)
    assert first.solution_.status is Status.OPTIMAL
    assert first.solution_.verify().holds(model.tol)


def test_classes_are_the_same_by_steps(monkeypatch):
    X, y = table()
    classes = np.digitize(y, [-0.2, 0.2])
    model = VoronoiSVC(
        loss="least_squares", max_cell_size=250, selection=CellSelection(5), random_state=0, max_time=None
    )
    plain, found = both(monkeypatch, lambda: clone(model).fit(X, classes))
    assert np.mean(found.predict(X) == plain.predict(X)) > 0.99


def test_an_interrupt_within_steps_ends_all_cells(monkeypatch):
    X, y = table()
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    asked, product = [], GramOperator.product

    def interrupted(self, *arguments):
        asked.append(self.dtype)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return product(self, *arguments)

    monkeypatch.setattr(GramOperator, "product", interrupted)
    selection = CellSelection(5, factors=[1.0, 1.0], candidates=([1e-3], [1.0]))
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED"):
        model = VoronoiRidge(max_cell_size=250, selection=selection).fit(X, y)
    assert model.solution_.status is Status.INTERRUPTED
    assert len(asked) < 20


def test_steps_take_less_memory_than_factors():
    by_steps, with_factors = (KernelLearner(LeastSquares(1.0), CellSelection(kind)) for kind in (5, "leave-one-out"))
    assert by_steps.bytes_of(20_000) < 0.2 * with_factors.bytes_of(20_000)
    assert by_steps.bytes_of(many_rows.MANY_ROWS + 1) < with_factors.bytes_of(many_rows.MANY_ROWS)


def test_many_folds_take_memory_and_too_many_are_left_to_factors():
    """Each has factors of the preconditioner's rank."""
    made = {n: KernelLearner(LeastSquares(1.0), CellSelection(n)) for n in (5, 10, 100)}
    rank = many_rows.RANK * np.sqrt(20_000)
    assert made[10].bytes_of(20_000) - made[5].bytes_of(20_000) > 5 * 2 * 8 * rank**2
    few, many = (type(made[n]._matrices(np.zeros((3001, 1)))) for n in (10, 100))
    assert few is not many


def test_walks_of_many_rows_begin_with_a_width_once(monkeypatch, rng):
    """Narrower neighbors come last: tiles and the preconditioner of another width are made anew."""
    rows, made = rows_of(rng), []
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    begin = many_rows.Folds.__init__

    def counted(self, problem, *arguments):
        made.append(problem.kernel_)
        begin(self, problem, *arguments)

    monkeypatch.setattr(many_rows.Folds, "__init__", counted)
    choice = learner(5, rows).learn(rows, np.random.default_rng(0)).choice
    measured = np.isfinite(choice.risks)
    assert measured.any(axis=0).sum() > 1
    assert len(made) == measured.any(axis=1).sum() > 1


def test_folds_keep_factors_of_one_lam(rng):
    rows = rows_of(rng, 300)
    problem = FixedKernel(Gaussian(4.0), LeastSquares(0.1, intercept=False), rows.X, rows.Y[0])
    folds = many_rows.Folds(problem, held_out_blocks(300, 3, rng))
    for lam in (0.1, 0.3, 1.0):
        folds.values(lam)
    assert [list(low_rank._factors) for low_rank in folds.low_ranks] == [[1.0]] * 3


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("left_out", [0, 7])
def test_preconditioners_of_folds_are_those_of_the_rows_that_count(ones, left_out, rng, monkeypatch):
    """Whether folds are all rows, or the sum over all is formed by itself."""
    Z, weights = rng.standard_normal((60, 5)), np.ones(60) if ones else rng.uniform(0.5, 2.0, 60)
    blocks = np.array_split(rng.permutation(60)[left_out:], 3)
    low_rank, masks = LowRank(Z, weights), [np.isin(np.arange(60), block) for block in blocks]
    looked_at, inner_of = [], LowRank._inner_of
    with monkeypatch.context() as patch:
        patch.setattr(LowRank, "_inner_of", lambda self, rows: looked_at.append(rows) or inner_of(self, rows))
        found = low_rank.without_each(blocks)
    assert len(looked_at) == len(blocks) + (left_out > 0)  # over all rows it is a sum, and not formed by itself
    assert LowRank(Z, weights).without_each([]) == []
    for made, same in zip(found, LowRank(Z, weights).without_each(masks), strict=True):
        np.testing.assert_allclose(made._inner, same._inner, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(low_rank._inner, (Z.T * weights) @ Z, rtol=0.0, atol=1e-12)
    for made, block in zip(found, blocks, strict=True):
        at = np.setdiff1d(np.arange(60), block)
        R = rng.standard_normal((1, 60))
        expected = np.zeros((1, 60))
        expected[0, at] = np.linalg.solve(Z[at] @ Z[at].T + np.diag(0.3 / weights[at]), R[0, at])
        np.testing.assert_allclose(made.solve(R, np.array([0.3])), expected, rtol=0.0, atol=1e-10)


def test_heavy_rows_do_not_make_the_audit_lie(rng):
    """Some of those that it looks at weigh as much as all others: gaps had seemed to be up to m / 512 times theirs."""
    m = 3000
    rows, weights = rows_of(rng, m), np.ones(m)
    weights[audited_rows(m)[:3]] = 1e3
    problem = FixedKernel(Gaussian(4.0), LeastSquares(3.0, intercept=False), rows.X, rows.Y[0], sample_weight=weights)
    tiles, exact = problem.operator(np.float32, 1e9), problem.operator(np.float64)
    preconditioner = LowRank.of(exact, weights, 20, 0.0)
    systems = ShiftedSystems(tiles, preconditioner, problem.Y, np.array([3.0]), intercept=False)
    for _ in range(2):
        step_together([systems], [np.arange(1)])
    residuals = problem.Y - exact.product(systems.W) - 3.0 / weights * systems.W
    gap = np.square(residuals) @ weights
    assert audited_gaps(systems) == pytest.approx(gap, rel=0.1)
    drawn = audited_rows(m)
    assert m / len(drawn) * np.square(residuals[:, drawn]) @ weights[drawn] > 2.0 * gap


def test_the_audit_finds_what_rounding_hides(rng):
    """Errors of values on all rows, of which it sees some."""
    m = 2000
    rows = rows_of(rng, m)
    problem = FixedKernel(Gaussian(4.0), LeastSquares(3.0, intercept=False), rows.X, rows.Y[0])
    preconditioner = LowRank.of(problem.operator(np.float64), np.ones(m), 20, 0.0)
    systems = ShiftedSystems(
        problem.operator(np.float32, 1e9), preconditioner, problem.Y, np.array([3.0]), intercept=False
    )
    step_together([systems], [np.arange(1)])
    gap, noise = float(systems.gaps()[0]), rng.standard_normal((1, m))
    systems.begin_again(systems.F + 3.0 * np.sqrt(gap / m) * noise)
    assert systems.gaps()[0] > 5.0 * gap
    assert audited_gaps(systems)[0] == pytest.approx(gap, abs=0.25 * systems.gaps()[0])


def test_where_one_pair_serves_all_cells_those_without_rows_held_out_say_nothing(rng):
    rows = rows_of(rng, 60).divided(np.random.default_rng(0))
    without, shared = rows.part(~rows.held_out), learner("global-split", rows)
    found = shared.for_all([without, rows], np.random.default_rng(0))
    assert found.pair == shared.for_all([rows], np.random.default_rng(0)).pair
    assert shared.for_all([without], np.random.default_rng(0)).pair is None


def test_candidates_beside_which_a_kernel_is_negligible_are_compared(rng):
    X, y = table(400)
    selection = CellSelection(5, candidates=([1.0, 10.0], [0.5, 1.0]), rank=100)
    assert VoronoiRidge(selection=selection).fit(X, y).selection_.chosen["lam"] in {400.0, 4000.0}


def test_least_squares_almost_without_regularization_are_left_to_factors(monkeypatch, rng):
    """Products of such coefficients are beyond float32, and had been refused."""
    rows = rows_of(rng)
    selection = CellSelection(5, candidates=(np.array([1e-40, 1e-3]) / 400.0, [1.0]), factors=[1.0, 1.0], rank=50)
    made = KernelLearner(LeastSquares(1.0, intercept=False), selection, total=400.0)
    factors, found = both(monkeypatch, lambda: made.learn(rows, np.random.default_rng(0)))
    assert (found.width, found.lam) == (factors.width, factors.lam)
    pair = learner(5, rows, pair=(1.0, 1e-40))
    assert np.isfinite(pair.learn(rows, np.random.default_rng(0)).certificate.upper)


def test_where_only_more_regular_functions_can_be_told_one_of_these_is_chosen(monkeypatch, rng):
    """Not the most regular one of all, because nothing is known of the best."""
    X = rng.uniform(-1.0, 1.0, (400, 2))
    rows = CellRows(X, np.sin(3.0 * X[:, :1]).T + 1e-3 * rng.standard_normal((1, 400)), np.ones(400))
    selection = CellSelection(5, rank=50, candidates=(np.geomspace(1e-14, 1.0, 8), [2.0]), factors=[1.0, 1.0])
    made = KernelLearner(LeastSquares(1.0, intercept=False), selection, total=400.0)
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    monkeypatch.setattr("convexkernels.cells.selection.fits", lambda m: False)
    choice = made.learn(rows, np.random.default_rng(0)).choice
    assert np.isinf(choice.risks[0, 0])
    assert choice.place[1] < 7
    assert choice.risks[choice.place] < 0.02


@pytest.mark.parametrize("left", [0.0, 1e6])
def test_factors_have_their_time_or_are_not_begun(left, monkeypatch, rng):
    """Steps that tell nothing end before it; where it is not there, they have all of it, and nothing comes after."""
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    rows, ends, begun, steps, factors = rows_of(rng), [], [], many_rows.solved, KernelLearner._by_factors

    def solved(problem, tol, deadline, begin):
        ends.append(deadline)
        return steps(problem, tol, deadline, begin)

    def by_factors(self, *arguments):
        begun.append(arguments)
        return factors(self, *arguments)

    monkeypatch.setattr("convexkernels.cells.kernel_learner.solved", solved)
    monkeypatch.setattr(KernelLearner, "_by_factors", by_factors)
    made, deadline = learner(5, rows, pair=(2.0, 1e-7)), time.monotonic() + 100.0
    made._trained(made.loss.at(1e-7), made._matrices(rows.X), 2.0, rows, deadline, 10.0 + left)
    assert ends == [deadline if left else deadline - 10.0]
    assert len(begun) == (0 if left else 1)
