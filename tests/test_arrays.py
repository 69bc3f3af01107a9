"""Rows in order, and those that are the same, against numpy's own, slower and less safe, way."""

import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from convexkernels.arrays import distinct_rows, sorted_rows

tables = arrays(
    np.float64,
    st.tuples(st.integers(0, 30), st.integers(1, 3)),
    elements=st.integers(-2, 2).map(float) | st.just(-0.0),
)


@settings(max_examples=50, deadline=None)
@given(tables)
def test_rows_are_sorted_by_all_columns(X):
    assert np.array_equal(sorted_rows(X), np.lexsort(X.T[::-1]))


@settings(max_examples=50, deadline=None)
@given(tables)
def test_distinct_rows_are_those_of_numpy(X):
    points, first, group = distinct_rows(X + 0.0)
    there = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    for ours, theirs in zip((points, first, group), there, strict=True):
        assert np.array_equal(ours, np.reshape(theirs, ours.shape))
    assert np.array_equal(distinct_rows(X)[2], group)  # a zero has no sign


def test_ctrl_c_while_rows_are_compared_is_an_interrupt():
    X = np.random.default_rng(0).integers(0, 2, (20, 40)).astype(float)

    def ring(signum, frame):
        raise KeyboardInterrupt

    def compare_until(moment):
        signal.setitimer(signal.ITIMER_REAL, moment, 1.0)  # again, should the first one come where nobody hears it
        while True:
            distinct_rows(X)

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for moment in np.linspace(2e-5, 2e-3, 100):
            with pytest.raises(KeyboardInterrupt):
                compare_until(moment)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
