"""Small matrices are worked on by one thread, and what was set before comes back."""

import numba
import numpy as np
import scipy.linalg  # noqa: F401  its BLAS has a pool of its own
from threadpoolctl import threadpool_info, threadpool_limits

from convexkernels.threads import MULTITHREADED_SIZE, threads_for


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_matrices_get_one_thread_and_large_ones_keep_theirs():
    np.eye(2) @ np.eye(2)
    with threadpool_limits(2):
        before = blas_threads(), numba.get_num_threads()
        with threads_for(MULTITHREADED_SIZE - 1):
            assert blas_threads() == {1}
            assert numba.get_num_threads() == 1
        assert (blas_threads(), numba.get_num_threads()) == before
        with threads_for(MULTITHREADED_SIZE):
            assert blas_threads() == before[0]
        with threads_for(MULTITHREADED_SIZE, alone=False):
            assert blas_threads() == {1}
        with threads_for(512, enough=512):
            assert blas_threads() == before[0]
        with threads_for(511, enough=512):
            assert blas_threads() == {1}


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
