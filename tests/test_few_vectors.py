"""Products of a few vectors with a matrix that is read once, beside those of BLAS."""

import numpy as np
import pytest

from convexkernels import few_vectors, threads
from convexkernels.few_vectors import COLUMNS, FEW, LARGE, add_tile_products, times


def watched(monkeypatch):
    """The loops that are called."""
    called, in_parts = [], few_vectors.in_parts
    monkeypatch.setattr(
        few_vectors, "in_parts", lambda loop, *rest, **least: called.append(loop) or in_parts(loop, *rest, **least)
    )
    return called


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(300, 300), (64, COLUMNS), (65, COLUMNS + 1), (2 * COLUMNS + 3, 66), (7, 10_001)])
@pytest.mark.parametrize("vectors", [1, 2, 7, FEW])
def test_they_are_products(shape, order, vectors, rng, monkeypatch):
    A, called = np.asarray(rng.standard_normal(shape), order=order), watched(monkeypatch)
    for B in (A, A.T):
        V = rng.standard_normal((vectors, len(B)))
        scale = np.abs(V).sum(axis=1).max()
        for one in (V, np.asfortranarray(V)):
            np.testing.assert_allclose(times(one, B), V @ B, rtol=0.0, atol=1e-14 * scale)
    by_row, by_column = few_vectors.add_weighed_rows, few_vectors.add_row_products
    assert called == ([by_row] * 2 + [by_column] * 2)[:: 1 if order == "C" else -1]


def test_parts_of_several_threads_are_those_of_one(rng, monkeypatch):
    A = rng.standard_normal((4 * COLUMNS + 5, 3 * COLUMNS + 1))
    V, U = rng.standard_normal((3, len(A))), rng.standard_normal((3, A.shape[1]))
    found = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "n_threads", lambda count=count: count)
        found.append((times(V, A), times(U, A.T)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_what_blas_is_better_at_is_left_to_it(rng, monkeypatch):
    """Many vectors, small matrices, other types, and matrices that lie neither way."""
    A, called = rng.standard_normal((512, 512)), watched(monkeypatch)
    assert A[:100, :100].size < LARGE < A[::2].size
    V = rng.standard_normal((FEW + 1, 512))
    for some, B in ((V, A), (V[:3, :100], A[:100, :100]), (V[:3], A.astype(np.float32)), (V[:3], A[:, ::2])):
        np.testing.assert_array_equal(times(some, B), some @ B)
    for some in (V[:3, 1:], V[0, 1:]):
        with pytest.raises(ValueError, match="mismatch"):
            times(some, A)
    assert not called


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 4, 66])
def test_a_tile_contributes_from_both_sides(m, dtype, rng):
    """Below the diagonal its transpose counts, too; on it, it does not."""
    n, V = 9, rng.standard_normal((2, 80)).astype(dtype)
    tile, F = rng.standard_normal((m, n)).astype(dtype), rng.standard_normal((2, 80))
    expected, scale = F.copy(), 1e-6 if dtype is np.float32 else 1e-14
    expected[:, 12 : 12 + m] += V[:, :n] @ tile.T
    expected[:, :n] += V[:, 12 : 12 + m] @ tile
    add_tile_products(12, 0, tile, V, F)
    np.testing.assert_allclose(F, expected, rtol=0.0, atol=100 * scale)
    square, F = rng.standard_normal((m, m)).astype(dtype), np.zeros((2, 80))
    add_tile_products(12, 12, square, V, F)
    np.testing.assert_allclose(F[:, 12 : 12 + m], V[:, 12 : 12 + m] @ square.T, rtol=0.0, atol=100 * scale)
    assert not F[:, :12].any()
    assert not F[:, 12 + m :].any()
