"""Small matrices are worked on by one thread, what was set before comes back, and forks and threads learn, too."""

import importlib
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import convexkernels as ck
from convexkernels import threads
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.cells.training import learn_cell, shared_learner
from convexkernels.clock import Clock
from convexkernels.criteria.ridge import inverted
from convexkernels.linalg import shifted_cholesky
from convexkernels.losses.quadratic_terms import DenseTerm
from convexkernels.threads import MULTITHREADED_SIZE, in_parts, n_threads, threads_for


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_matrices_get_one_thread_and_large_ones_keep_theirs():
    np.eye(2) @ np.eye(2)
    with threadpool_limits(2):
        before = blas_threads(), n_threads()
        with threads_for(MULTITHREADED_SIZE - 1):
            assert blas_threads() == {1}
            assert n_threads() == 1
        assert (blas_threads(), n_threads()) == before
        with threads_for(MULTITHREADED_SIZE):
            assert blas_threads() == before[0]
        with threads_for(MULTITHREADED_SIZE, alone=False):
            assert blas_threads() == {1}
        with threads_for(512, enough=512):
            assert blas_threads() == before[0]
        with threads_for(511, enough=512):
            assert blas_threads() == {1}


@pytest.mark.parametrize("m", [20, MULTITHREADED_SIZE])
def test_cells_of_few_rows_are_worked_on_by_one_thread(m, monkeypatch):
    given = []
    monkeypatch.setattr(KernelLearner, "learn", lambda learner, rows, *asked: given.append(blas_threads()))
    monkeypatch.setattr(KernelLearner, "for_all", lambda learner, *asked: given.append(blas_threads()) or learner)
    learner, rows = KernelLearner(ck.LeastSquares()), CellRows(np.zeros((m, 1)), np.zeros((1, m)), np.ones(m))
    with threadpool_limits(2):
        expected = {1} if m < MULTITHREADED_SIZE else blas_threads()
        learn_cell(learner, rows, np.random.SeedSequence(0), np.inf)
        shared_learner(learner, [rows], Clock(), 0)
    assert given == [expected, expected]


def test_the_limit_is_lifted_when_overlapping_callers_have_all_left():
    first, second = threads_for(10), threads_for(10)
    with threadpool_limits(2):
        before = blas_threads()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_an_error_inside_lifts_the_limit_too():
    with threadpool_limits(2):
        before = blas_threads()
        try:
            with threads_for(10):
                raise RuntimeError
        except RuntimeError:
            pass
        assert blas_threads() == before


def test_parts_cover_the_range_once(monkeypatch):
    monkeypatch.setattr(threads, "_processors", lambda: 3)

    def add(first, last, out):
        out[first:last] += 1

    for size in (0, 1, 2, 7, 100):
        out = np.zeros(size)
        in_parts(add, size, out)
        assert (out == 1).all()
    with threads_for(10):
        in_parts(lambda first, last: out.__setitem__(slice(first, last), last), 100)
    assert (out == 100).all()
    in_parts(lambda first, last: out.__setitem__(slice(first, last), last - first), 100, least=40)
    assert set(out) == {50.0}


def learn(seed=0):
    """Certified values of problems whose loops are compiled: volumes, packed triangles, both ascents."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((60, 3)), np.where(np.arange(60) % 3 > 0, 1.0, -1.0)
    families = [ck.Tessellated(1), ck.Candidates([ck.Gaussian(1.0), ck.Linear()])]
    losses = [ck.Hinge(1.0), ck.Hinge(1.0, intercept=False)]
    return [ck.KernelLearning(f, loss, X, y).solve().value for f in families for loss in losses]


@pytest.mark.parametrize("rows", [40, 60])
def test_large_matrices_are_factorized_by_one_thread(rows, monkeypatch):
    """Several threads of a BLAS crash the process there."""
    seen, lapack = [], "convexkernels.criteria.ridge.get_lapack_funcs"
    monkeypatch.setattr(threads, "LARGEST_FACTORIZED", 50)

    def watched(names, arrays):
        functions = scipy.linalg.get_lapack_funcs(names, arrays)
        return [lambda *a, f=f, **k: (seen.append(n_threads()), f(*a, **k))[1] for f in functions]

    monkeypatch.setattr(threads, "_processors", lambda: 2)
    monkeypatch.setattr(lapack, watched)
    K = np.eye(rows)
    _, solved = inverted(K, np.ones(rows), np.ones((rows, 1)))
    np.testing.assert_allclose(solved, 0.5)
    assert seen == [2 if rows == 40 else 1] * 3
    with monkeypatch.context() as patch:
        patch.setattr("convexkernels.linalg.cho_factor", lambda A, **k: (seen.append(n_threads()), (A, True))[1])
        shifted_cholesky(np.eye(rows))
    assert seen[-1] == (2 if rows == 40 else 1)


@pytest.mark.parametrize("rows", [40, 60])
@pytest.mark.parametrize(
    ("place", "work"),
    [
        ("least_squares.dpotrf", lambda K, ones: ck.LeastSquares(1.0).maximize(K, ones, ones)),
        ("interpolation.dpotrf", lambda K, ones: ck.Interpolation().maximize(K, ones, ones)),
        ("quadratic_terms.cho_factor", lambda K, ones: DenseTerm(K).factorize(ones, False)),
    ],
)
def test_losses_factorize_large_matrices_by_one_thread(place, work, rows, monkeypatch):
    module, name = place.split(".")
    seen, function = [], getattr(importlib.import_module(f"convexkernels.losses.{module}"), name)
    monkeypatch.setattr(threads, "LARGEST_FACTORIZED", 50)
    monkeypatch.setattr(threads, "_processors", lambda: 2)
    watched = lambda *a, **k: (seen.append(n_threads()), function(*a, **k))[1]  # noqa: E731
    monkeypatch.setattr(f"convexkernels.losses.{place}", watched)
    work(np.eye(rows), np.ones(rows))
    assert set(seen) == {2 if rows == 40 else 1}


def several_threads(monkeypatch):
    """Let every loop be divided, as it is on large tables."""
    monkeypatch.setattr(threads, "_processors", lambda: 2)
    monkeypatch.setattr("convexkernels.solvers.threads_for", lambda size: threads_for(MULTITHREADED_SIZE))


def test_a_fork_after_a_fit_can_fit(monkeypatch):
    several_threads(monkeypatch)
    expected = learn()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(learn, [0, 0, 0]).get(timeout=120) == [expected] * 3
    found = joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(learn)(0) for _ in range(2))
    assert found == [expected] * 2


def test_threads_can_fit_at_the_same_time(monkeypatch):
    several_threads(monkeypatch)
    expected = [learn(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(learn, range(4))) == expected
