"""Covers: farthest-first traversal, Voronoi cells, trees, overlaps, chunks, budgets, and refusals."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from convexkernels import Gaussian, InvalidInputError
from convexkernels.cells.cover import OverlappingCover, RandomChunks, VoronoiCover
from convexkernels.cells.covering import cell_size_within, tree_cover, voronoi_cover
from convexkernels.cells.matrices import GaussianMatrices
from convexkernels.cells.traversal import farthest_first, split_largest
from convexkernels.kernels.distances import nearest_rows
from convexkernels.linalg import pivoted_cholesky

WHOLE = arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 3)), elements=st.integers(-4, 4).map(float))


def exact(X, Y):
    return ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)


@settings(max_examples=60, deadline=None)
@given(X=WHOLE, radius=st.floats(0.0, 6.0))
def test_traversal_is_the_textbook_one_and_its_owners_are_nearest(X, radius):
    found = farthest_first(X, radius=radius)
    chosen, distance = [0], exact(X, X[:1])[:, 0]
    while np.sqrt(distance.max()) > radius:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, exact(X, X[chosen[-1:]])[:, 0])
    assert found.centers.tolist() == chosen
    assert np.array_equal(found.owner, exact(X, X[chosen]).argmin(axis=1))
    assert np.allclose(found.distances, np.sqrt(distance))
    assert found.radii[-1] <= radius
    assert (np.diff(found.radii) <= 0).all()
    apart = exact(X[chosen], X[chosen])[np.triu_indices(len(chosen), 1)]
    assert (apart > radius**2).all()


@settings(max_examples=60, deadline=None)
@given(X=WHOLE, Y=WHOLE)
def test_nearest_rows_breaks_ties_by_the_smallest_index(X, Y):
    n = min(X.shape[1], Y.shape[1])
    X, Y = X[:, :n], Y[:, :n]
    nearest, square = nearest_rows(X, Y)
    assert np.array_equal(nearest, exact(X, Y).argmin(axis=1))
    assert np.array_equal(square, exact(X, Y).min(axis=1))


def test_nearest_rows_does_not_depend_on_the_rows_beside_it(rng):
    Y = 1e6 + 1e-3 * rng.standard_normal((300, 5))
    X = 1e6 + 1e-3 * rng.standard_normal((2000, 5))
    whole = nearest_rows(X, Y)[0]
    parts = np.concatenate([nearest_rows(part, Y)[0] for part in np.array_split(X, 37)])
    assert np.array_equal(whole, parts)
    assert np.array_equal(whole, exact(X, Y).argmin(axis=1))


@settings(max_examples=40, deadline=None)
@given(X=WHOLE, size=st.integers(2, 8))
def test_size_limits_hold_and_cells_partition_the_table(X, size):
    most = max(size, np.unique(X, axis=0, return_counts=True)[1].max())
    for cover in (voronoi_cover(X, max_cell_size=size), tree_cover(X, max_cell_size=size, branches=3)):
        members = cover.members(X)
        assert members.sizes.max() <= most
        assert np.array_equal(np.sort(members.order), np.arange(len(X)))
        assert members.n_cells == cover.n_cells
        labels = cover.cells(X)
        for j in range(cover.n_cells):
            assert np.array_equal(members.rows(j), np.flatnonzero(labels == j))
    assert np.array_equal(split_largest(X, size).owner, exact(X, X[split_largest(X, size).centers]).argmin(axis=1))


@settings(max_examples=30, deadline=None)
@given(X=WHOLE, radius=st.floats(0.5, 5.0))
def test_cells_by_radius_lie_in_their_balls(X, radius):
    cover = voronoi_cover(X, radius=radius)
    cells = cover.cells(X)
    assert (exact(X, cover.centers)[np.arange(len(X)), cells] <= radius**2 * (1 + 1e-12)).all()
    assert cover.radius <= radius
    assert cover.members(X).sizes.min() >= 1


def test_radius_is_within_twice_the_best(rng):
    """Gonzalez: k + 1 points pairwise farther than r prove that k balls of radius below r / 2 do not suffice."""
    X = rng.uniform(size=(400, 2))
    found = farthest_first(X, n_centers=10)
    apart = np.sqrt(exact(X[found.centers], X[found.centers]))[np.triu_indices(10, 1)]
    assert apart.min() >= found.radii[-1]


def test_centers_from_a_subset_cover_the_whole_about(rng):
    X = rng.uniform(size=(5000, 2))
    cover = voronoi_cover(X, max_cell_size=250, subset=1000, random_state=0)
    sizes = cover.members(X).sizes
    assert sizes.sum() == 5000
    assert sizes.max() < 2 * 250
    assert {tuple(z) for z in cover.centers} <= {tuple(x) for x in X}


def test_overlapping_cells_hold_the_voronoi_cells_and_the_near_points(rng):
    X = rng.uniform(size=(300, 2))
    plain = voronoi_cover(X, n_cells=7)
    cover = voronoi_cover(X, n_cells=7, overlap=0.3)
    assert isinstance(cover, OverlappingCover)
    assert np.array_equal(cover.cells(X), plain.cells(X))
    D = np.sqrt(exact(X, cover.centers))
    for j in range(7):
        expected = np.flatnonzero(D[:, j] <= 1.3 * D.min(axis=1) + 1e-12)
        assert np.array_equal(cover.members(X).rows(j), expected)
    none = OverlappingCover(cover.centers, 0.0).members(X)
    assert np.array_equal(none.order, plain.members(X).order)


def test_chunks_are_random_parts_of_almost_equal_size(rng):
    X = rng.uniform(size=(103, 2))
    members = RandomChunks(10, random_state=0).members(X)
    assert sorted(members.sizes.tolist()) == [10] * 7 + [11] * 3
    assert np.array_equal(np.sort(members.order), np.arange(103))
    assert np.array_equal(members.order, RandomChunks(10, random_state=0).members(X).order)
    assert not np.array_equal(members.order, RandomChunks(10, random_state=1).members(X).order)


def test_far_queries_have_a_cell(rng):
    X = rng.uniform(size=(100, 3))
    for cover in (voronoi_cover(X, n_cells=5), tree_cover(X, max_cell_size=10)):
        cells = cover.cells(np.array([[1e100, 0, 0], [-1e149, 1e149, 0.5]]))
        assert ((cells >= 0) & (cells < cover.n_cells)).all()


def test_equal_points_make_one_cell():
    X = np.full((50, 2), 0.3)
    assert voronoi_cover(X, radius=1e-9).n_cells == 1
    assert voronoi_cover(X, max_cell_size=5).n_cells == 1
    assert tree_cover(X, max_cell_size=5).members(X).sizes.tolist() == [50]


def test_budget_takes_the_largest_cells_it_can_pay_for(rng):
    X = rng.uniform(size=(4000, 2))
    costs = {"seconds_of": lambda m: 1e-6 * m**2, "bytes_of": lambda m: 8.0 * m**2}
    assert cell_size_within(X, time_budget=17.0, **costs) == 4000
    tight = cell_size_within(X, time_budget=2.0, **costs)
    assert sum(1e-6 * s**2 for s in voronoi_cover(X, max_cell_size=tight).members(X).sizes) <= 2.0
    double = voronoi_cover(X, max_cell_size=2 * tight).members(X).sizes
    assert sum(1e-6 * s**2 for s in double) > 2.0
    small = cell_size_within(X, memory_budget=8.0 * 300**2, **costs)
    assert voronoi_cover(X, max_cell_size=small).members(X).sizes.max() <= 300
    with pytest.raises(InvalidInputError, match="too small for 4000 points"):
        cell_size_within(X, time_budget=1e-9, **costs)


def test_pivoted_cholesky_meets_its_promise(rng):
    X = rng.uniform(size=(200, 2))
    K = np.exp(-3.0 * exact(X, X))
    for tol in (1e-2, 1e-6):
        Z, pivots = pivoted_cholesky(lambda rows: K[rows], np.diag(K), 200, tol)
        E = K - Z @ Z.T
        assert np.diag(E).max() <= tol
        assert np.linalg.eigvalsh(E)[0] >= -1e-10
        assert np.abs(E[pivots]).max() < 1e-10
    assert pivoted_cholesky(lambda rows: K[rows], np.diag(K), 7, 0.0)[0].shape == (200, 7)
    whole = np.eye(50)
    Z, _ = pivoted_cholesky(lambda rows: whole[rows], np.ones(50), 100, 0.0)
    assert np.allclose(Z @ Z.T, whole)
    full, _ = pivoted_cholesky(lambda rows: K[rows], np.diag(K), 200, 1e-6)
    begun, _ = pivoted_cholesky(lambda rows: K[rows], np.diag(K), 200, 1e-6, time.monotonic() - 1.0)
    assert 0 < begun.shape[1] < full.shape[1]
    assert np.array_equal(begun, full[:, : begun.shape[1]])


X10 = np.arange(20.0).reshape(10, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: voronoi_cover(X10, radius=0.0), "radius must be a finite number > 0, got 0"),
        (lambda: voronoi_cover(X10, radius=-1.0), "radius must be a finite number > 0, got -1"),
        (lambda: voronoi_cover(X10, max_cell_size=1), "max_cell_size must be a whole number >= 2, got 1"),
        (lambda: tree_cover(X10, max_cell_size=1), "max_cell_size must be a whole number >= 2, got 1"),
        (lambda: voronoi_cover(X10, n_cells=11), "n_cells is 11, but there are only 10 points"),
        (lambda: voronoi_cover(X10), "give exactly one of radius, n_cells and max_cell_size, got none"),
        (lambda: voronoi_cover(X10, radius=1.0, n_cells=2), "got \\['radius', 'n_cells'\\]"),
        (lambda: voronoi_cover(X10, n_cells=2, overlap=-0.1), "overlap must be a finite number >= 0"),
        (lambda: RandomChunks(0), "n_chunks must be a whole number >= 1, got 0"),
        (lambda: RandomChunks(11).members(X10), "n_chunks is 11, but there are only 10 points"),
        (lambda: farthest_first(X10, n_centers=11), "n_centers is 11, but there are only 10 points"),
        (lambda: farthest_first(X10, start=10), "start is 10, but X has 10 rows"),
        (lambda: VoronoiCover(X10).cells(np.ones((2, 3))), "X has 3 features, but 2 are expected"),
        (lambda: voronoi_cover(X10 * np.nan, n_cells=2), "missing or infinite"),
        (
            lambda: cell_size_within(X10, time_budget=0.0, seconds_of=float, bytes_of=float),
            "time_budget must be a finite number > 0, got 0",
        ),
    ],
)
def test_refusals_name_argument_and_value(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_matrices_of_narrow_kernels_hold_no_subnormal_numbers(rng):
    """Nor do factors of them: products of three entries are normal numbers, or 0."""
    X = np.sort(rng.uniform(0.0, 50.0, (300, 1)), axis=0)
    matrices = GaussianMatrices(X)
    for K in (matrices(0.5), matrices.last(0.5)):
        np.testing.assert_allclose(K, Gaussian(4.0)(X), rtol=0.0, atol=1e-11)
        assert (K == 0.0).mean() > 0.5
        assert K[K > 0.0].min() ** 3 > np.finfo(np.float64).tiny
