"""Cells of so many rows that least squares are solved by steps: as with factors of the matrix, to the gap promised."""

import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from convexkernels import Cells, CellSelection, FixedKernel, Gaussian, LeastSquares, VoronoiRidge, VoronoiSVC
from convexkernels.cells import many_rows
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.criteria.folds import held_out_blocks
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.kernels.operator import GramOperator
from convexkernels.solution import Status


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


def test_after_the_deadline_values_are_those_of_the_last_step(monkeypatch, rng):
    rows = rows_of(rng)
    problem = FixedKernel(Gaussian(4.0), LeastSquares(0.3, intercept=False), rows.X, rows.Y[0])
    assert not many_rows.Folds(problem, held_out_blocks(400, 5, rng)).values(0.3, time.monotonic() - 1.0).any()
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)
    found = learner(5, rows).learn(rows, np.random.default_rng(0), time.monotonic() + 1e-3)
    assert np.isfinite(found.values(rows.X)).all()
    assert np.isfinite(found.certificate.upper)


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
    selection = CellSelection(5)
    by_steps, with_factors = (KernelLearner(loss, selection) for loss in (LeastSquares(1.0, intercept=False),) * 2)
    assert by_steps.bytes_of(many_rows.MANY_ROWS + 1) < 0.2 * with_factors.bytes_of(many_rows.MANY_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KernelLearner(LeastSquares(1.0), CellSelection()).bytes_of(10_000) > 20.0 * 10_000**2
