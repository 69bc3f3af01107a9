"""Pictures of concatenations of functions on the plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import SEQUENTIAL, Display
from convexkernels.validation import check_points, check_whole_number

Function = Callable[[Array], Array]


def plane_grid(size: int = 101) -> Array:
    """Points of a uniform grid of the square ``[-1, 1]^2``, shape (size^2, 2), first coordinate slowest."""
    axis = np.linspace(-1.0, 1.0, check_whole_number("size", size, low=2))
    return np.column_stack([part.ravel() for part in np.meshgrid(axis, axis, indexing="ij")])


def _grid_and_points(grid: Array | None, points: Any) -> tuple[Array, Array | None]:
    known = None if points is None else check_points(points, name="points", n_features=2)
    return plane_grid() if grid is None else check_points(grid, name="grid", n_features=2), known


def _sides(grid: Array) -> tuple[Array, int]:
    size = round(np.sqrt(len(grid)))
    if grid.shape[1] != 2 or size * size != len(grid):
        raise InvalidInputError(
            f"grid must be a square grid of the plane as plane_grid makes it, got shape {grid.shape}."
        )
    return np.moveaxis(grid.reshape(size, size, 2), 2, 0), size


@dataclass(eq=False, repr=False)
class SurfaceDisplay(Display):
    """Functions on the plane as surfaces over the points they were learned from, as in Figure 1.

    Parameters
    ----------
    functions : mapping of str to ndarray of shape (n_points,)
        Title and values on `grid`.
    grid : ndarray of shape (size^2, 2)
    points : ndarray of shape (m, 2), optional
        Where values were known; drawn on the floor.
    """

    functions: Mapping[str, Array]
    grid: Array
    points: Array | None = None

    @classmethod
    def from_functions(
        cls, functions: Mapping[str, Function], *, points: Any = None, grid: Array | None = None
    ) -> Self:
        """Evaluate functions, for example the ``predict`` of estimators, on a grid of the square."""
        grid, known = _grid_and_points(grid, points)
        return cls({name: np.asarray(f(grid)) for name, f in functions.items()}, grid, known)

    def plot(self, axes: Any = None) -> Self:
        """Draw one panel per function; `axes` need the 3d projection."""
        sides, size = _sides(self.grid)
        panels = self._draws_panels(len(self.functions), axes, subplot_kw={"projection": "3d"})
        low = min(values.min() for values in self.functions.values())
        high = max(values.max() for values in self.functions.values())
        floor = low - 0.2 * (high - low)
        for ax, (name, values) in zip(panels, self.functions.items(), strict=True):
            look = {"cmap": SEQUENTIAL, "vmin": low, "vmax": high, "linewidth": 0, "rcount": size, "ccount": size}
            ax.plot_surface(*sides, values.reshape(size, size), **look)
            if self.points is not None:
                ax.scatter(*self.points.T, floor, color="black", s=3)
            ax.set(title=name, xlabel="x0", ylabel="x1", zlabel="value", zlim=(floor, high))
            ax.set_box_aspect(None, zoom=0.85)  # else the name of the third axis is cut off
        return self


@dataclass(eq=False, repr=False)
class ErrorMapDisplay(Display):
    """Pointwise errors on the plane, in percent of the largest value of the truth, as in Figures 3 to 10.

    Parameters
    ----------
    errors : mapping of str to ndarray of shape (n_points,)
        Title and ``|prediction - truth| / max |truth|`` on `grid`.
    grid : ndarray of shape (size^2, 2)
    points : ndarray of shape (m, 2), optional
    """

    errors: Mapping[str, Array]
    grid: Array
    points: Array | None = None

    @classmethod
    def from_functions(
        cls, functions: Mapping[str, Function], truth: Function, *, points: Any = None, grid: Array | None = None
    ) -> Self:
        """Compare functions with `truth` on a grid of the square."""
        grid, known = _grid_and_points(grid, points)
        target = np.asarray(truth(grid))
        scale = np.abs(target).max()
        return cls({name: np.abs(f(grid) - target) / scale for name, f in functions.items()}, grid, known)

    def plot(self, axes: Any = None, *, highest: float = 0.1) -> Self:
        """Draw one panel per function, dark at 0 and bright at `highest` (a fraction) and above."""
        sides, size = _sides(self.grid)
        panels = self._draws_panels(len(self.errors), axes, sharey=True)
        for ax, (name, errors) in zip(panels, self.errors.items(), strict=True):
            values = 100.0 * errors.reshape(size, size)
            image = ax.pcolormesh(*sides, values, cmap=SEQUENTIAL, vmin=0.0, vmax=100.0 * highest, rasterized=True)
            if self.points is not None:
                ax.scatter(*self.points.T, color="white", edgecolor="black", s=6, linewidth=0.4)
            ax.set(title=name, xlabel="x0", aspect="equal")
        panels[0].set_ylabel("x1")
        self.figure_.colorbar(image, ax=list(panels), label="error, % of the largest value", extend="max")
        return self


@dataclass(eq=False, repr=False)
class GridTransformationDisplay(Display):
    """Where inner maps send a grid of the plane, colored by the values of the truth, as in Figure 11.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_points, 2)
    values : ndarray of shape (n_points,)
    """

    images: Mapping[str, Array]
    values: Array

    @classmethod
    def from_maps(cls, maps: Mapping[str, Function], truth: Function, *, grid: Array | None = None) -> Self:
        """Apply maps of the plane, for example the ``transform`` of estimators; the grid itself comes first.

        Images of other dimensions than 2 are refused, except 1, which is drawn on a line.
        """
        grid = plane_grid(size=41) if grid is None else check_points(grid, name="grid", n_features=2)
        images = {"grid": grid}
        for name, g in maps.items():
            image = np.asarray(g(grid))
            if image.ndim != 2 or image.shape[1] > 2:
                raise InvalidInputError(
                    f"the map {name!r} has images of shape {image.shape}; one or two columns can be drawn."
                )
            images[name] = np.column_stack([image, np.zeros(len(image))])[:, :2]
        return cls(images, np.asarray(truth(grid)))

    def plot(self, axes: Any = None) -> Self:
        """Draw one panel per map, the grid first."""
        panels = self._draws_panels(len(self.images), axes)
        for ax, (name, image) in zip(panels, self.images.items(), strict=True):
            dots = ax.scatter(*image.T, c=self.values, cmap=SEQUENTIAL, s=4)
            letter = "x{}" if name == "grid" else "$g_{}$"  # numbered as features are
            # One scale on both axes: a collapse onto a line should look like one.
            ax.set(title=name, xlabel=letter.format(0), ylabel=letter.format(1))
            ax.set_aspect("equal", adjustable="datalim")
        self.figure_.colorbar(dots, ax=list(panels), label="value of the function")
        return self
