"""Pictures of covers show what the cover says."""

import numpy as np
import pytest

from convexkernels import InvalidInputError, RandomChunks, tree_cover, voronoi_cover
from convexkernels.plotting import CoverDisplay


def test_picture_of_a_cover_by_radius(rng):
    X = rng.uniform(-1, 1, (300, 2))
    cover = voronoi_cover(X, radius=0.6)
    display = CoverDisplay.from_cover(cover, X, n_points=61).plot()
    assert len(display.ax_.patches) == cover.n_cells
    corner = np.array([[display.xs[0], display.ys[-1]]])
    assert display.cells[-1, 0] == cover.cells(corner)[0]
    plain = CoverDisplay.from_cover(cover, X, n_points=61).plot(balls=False)
    assert not plain.ax_.patches


def test_picture_of_a_region_shades_the_cells_it_meets(rng):
    X = rng.uniform(-1, 1, (300, 2))
    cover = voronoi_cover(X, radius=0.5)
    display = CoverDisplay.from_cover(cover, X, region=lambda Z: (Z**2).sum(axis=1) < 0.04, tube=0.1, n_points=61)
    display.plot()
    met = np.unique(display.cells[display.region])
    assert 1 <= len(met) < cover.n_cells


def test_picture_of_a_tree_and_refusals(rng):
    X = rng.uniform(-1, 1, (300, 2))
    display = CoverDisplay.from_cover(tree_cover(X, max_cell_size=40), X, n_points=41).plot()
    assert len(display.centers) == display.cells.max() + 1
    with pytest.raises(InvalidInputError, match="Voronoi cells of the plane"):
        CoverDisplay.from_cover(RandomChunks(3), X)
    with pytest.raises(InvalidInputError, match="3 features"):
        CoverDisplay.from_cover(voronoi_cover(X, n_cells=3), np.ones((4, 3)))
