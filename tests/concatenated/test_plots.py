"""The displays hold the right numbers, draw every panel, and refuse what cannot be drawn."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from convexkernels import InvalidInputError
from convexkernels.plotting.concatenated import (
    ErrorMapDisplay,
    GridTransformationDisplay,
    SurfaceDisplay,
    plane_grid,
)


def truth(X):
    return 4.0 * X[:, 0] * X[:, 1]


def flat(X):
    return np.zeros(len(X))


def test_grid_is_the_one_of_the_paper():
    grid = plane_grid()
    assert grid.shape == (101**2, 2)
    assert np.allclose(np.diff(np.unique(grid[:, 0].round(12))), 1 / 50)
    with pytest.raises(InvalidInputError, match="size must be a whole number >= 2"):
        plane_grid(size=1)


def test_errors_are_relative_to_the_largest_value():
    display = ErrorMapDisplay.from_functions({"flat": flat, "exact": truth}, truth, points=[[0.0, 0.5]]).plot()
    assert np.allclose(display.errors["flat"], np.abs(truth(plane_grid())) / 4.0)
    assert np.array_equal(display.errors["exact"], np.zeros(101**2))
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["flat", "exact"]
    drawn = display.axes_[0].collections[0]
    assert drawn.get_clim() == (0.0, 10.0)
    assert np.allclose(np.ravel(drawn.get_array()), 100 * display.errors["flat"])


def test_surfaces_share_one_scale_and_existing_axes_are_used():
    figure, axes = plt.subplots(1, 2, subplot_kw={"projection": "3d"})
    display = SurfaceDisplay.from_functions({"a": truth, "b": flat}, points=[[0.1, 0.2]], grid=plane_grid(size=9))
    display.plot(axes)
    assert display.figure_ is figure
    assert axes[0].get_zlim() == axes[1].get_zlim()


def test_transformed_grid_is_the_image_of_the_grid():
    grid = plane_grid(size=5)
    maps = {"turned": lambda X: X @ [[0.0, 1.0], [-1.0, 0.0]], "line": lambda X: X[:, :1]}
    display = GridTransformationDisplay.from_maps(maps, truth, grid=grid).plot()
    assert list(display.images) == ["grid", "turned", "line"]
    assert np.allclose(display.axes_[1].collections[0].get_offsets(), grid @ [[0.0, 1.0], [-1.0, 0.0]])
    assert np.allclose(display.images["line"], np.column_stack([grid[:, 0], np.zeros(25)]))
    assert np.allclose(display.axes_[0].collections[0].get_array(), truth(grid))


def test_refuses_what_cannot_be_drawn():
    with pytest.raises(InvalidInputError, match="'solid' has images of shape"):
        GridTransformationDisplay.from_maps({"solid": lambda X: np.zeros((len(X), 3))}, truth)
    with pytest.raises(InvalidInputError, match="square grid of the plane"):
        ErrorMapDisplay({"a": np.zeros(7)}, np.zeros((7, 2))).plot()
    with pytest.raises(InvalidInputError, match="2 axes, one per panel, got 1"):
        ErrorMapDisplay.from_functions({"a": flat, "b": flat}, truth).plot(plt.gca())
