"""Pictures of concatenations of functions on the plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number, check_points, check_whole_number

__all__ = ["ErrorMapDisplay", "GridTransformationDisplay", "SurfaceDisplay", "plane_grid"]

Function = Callable[[Array], Array]


def plane_grid(low: float = -1.0, high: float = 1.0, size: int = 101) -> Array:
    """Points of a uniform grid of the square ``[low, high]^2``, shape (size^2, 2), first coordinate slowest."""
    size = check_whole_number("size", size, low=2)
    axis = np.linspace(check_number("low", low), check_number("high", high, low=low, open_low=True), size)
    return np.column_stack([part.ravel() for part in np.meshgrid(axis, axis, indexing="ij")])


def _sides(grid: Array) -> tuple[Array, int]:
    size = round(np.sqrt(len(grid)))
    if grid.shape[1] != 2 or size * size != len(grid):
        raise InvalidInputError(
            f"grid must be a square grid of the plane as plane_grid makes it, got shape {grid.shape}."
        )
    return grid.reshape(size, size, 2), size


def _axes(n_rows: int, n_columns: int, axes: Any, **options: Any) -> Any:
    """The axes to draw on, shape (n_rows, n_columns); new ones when none are given."""
    if axes is None:
        from matplotlib import pyplot as plt

        _, axes = plt.subplots(
            n_rows, n_columns, figsize=(4.0 * n_columns, 3.6 * n_rows), squeeze=False, layout="constrained", **options
        )
    axes = np.asarray(axes, dtype=object).reshape(-1)
    if axes.size != n_rows * n_columns:
        raise InvalidInputError(f"axes must be {n_rows * n_columns} axes, one per panel, got {axes.size}.")
    return axes.reshape(n_rows, n_columns)


class SurfaceDisplay:
    """Functions on the plane as surfaces over the points they were learned from, as in Figure 1.

    Parameters
    ----------
    functions : mapping of str to ndarray of shape (n_points,)
        Title and values on `grid`.
    grid : ndarray of shape (size^2, 2)
    points : ndarray of shape (m, 2), optional
        Where values were known; drawn on the floor.
    """

    def __init__(self, functions: Mapping[str, Array], grid: Array, points: Array | None = None) -> None:
        self.functions = functions
        self.grid = grid
        self.points = points

    @classmethod
    def from_functions(
        cls, functions: Mapping[str, Function], *, points: Any = None, grid: Array | None = None
    ) -> SurfaceDisplay:
        """Evaluate functions, for example the ``predict`` of estimators, on a grid of the square."""
        grid = plane_grid() if grid is None else check_points(grid, name="grid", n_features=2)
        known = None if points is None else check_points(points, name="points", n_features=2)
        return cls({name: np.asarray(f(grid)) for name, f in functions.items()}, grid, known)

    def plot(self, axes: Any = None) -> SurfaceDisplay:
        """Draw one panel per function; `axes` need the 3d projection.

        Returns
        -------
        self, with `axes_` and `figure_`
        """
        sides, size = _sides(self.grid)
        self.axes_ = _axes(1, len(self.functions), axes, subplot_kw={"projection": "3d"})
        low = min(values.min() for values in self.functions.values())
        high = max(values.max() for values in self.functions.values())
        for ax, (name, values) in zip(self.axes_.ravel(), self.functions.items(), strict=True):
            surface = values.reshape(size, size)
            ax.plot_surface(
                sides[..., 0],
                sides[..., 1],
                surface,
                cmap="viridis",
                vmin=low,
                vmax=high,
                linewidth=0,
                rcount=size,
                ccount=size,
            )
            if self.points is not None:
                ax.scatter(*self.points.T, low - 0.2 * (high - low), color="black", s=3)
            ax.set(title=name, xlabel="x", ylabel="y", zlim=(low - 0.2 * (high - low), high))
        self.figure_ = self.axes_[0, 0].figure
        return self


class ErrorMapDisplay:
    """Pointwise errors on the plane, in percent of the largest value of the truth, as in Figures 3 to 10.

    Parameters
    ----------
    errors : mapping of str to ndarray of shape (n_points,)
        Title and ``|prediction - truth| / max |truth|`` on `grid`.
    grid : ndarray of shape (size^2, 2)
    points : ndarray of shape (m, 2), optional
    """

    def __init__(self, errors: Mapping[str, Array], grid: Array, points: Array | None = None) -> None:
        self.errors = errors
        self.grid = grid
        self.points = points

    @classmethod
    def from_functions(
        cls, functions: Mapping[str, Function], truth: Function, *, points: Any = None, grid: Array | None = None
    ) -> ErrorMapDisplay:
        """Compare functions with `truth` on a grid of the square."""
        grid = plane_grid() if grid is None else check_points(grid, name="grid", n_features=2)
        known = None if points is None else check_points(points, name="points", n_features=2)
        target = np.asarray(truth(grid))
        scale = np.abs(target).max()
        return cls({name: np.abs(f(grid) - target) / scale for name, f in functions.items()}, grid, known)

    def plot(self, axes: Any = None, *, highest: float = 0.1) -> ErrorMapDisplay:
        """Draw one panel per function, blue at 0 and red at `highest` (a fraction) and above.

        Returns
        -------
        self, with `axes_` and `figure_`
        """
        sides, size = _sides(self.grid)
        self.axes_ = _axes(1, len(self.errors), axes)
        for ax, (name, errors) in zip(self.axes_.ravel(), self.errors.items(), strict=True):
            values = 100.0 * errors.reshape(size, size)
            image = ax.pcolormesh(sides[..., 0], sides[..., 1], values, cmap="jet", vmin=0.0, vmax=100.0 * highest)
            if self.points is not None:
                ax.scatter(*self.points.T, color="white", edgecolor="black", s=6, linewidth=0.4)
            ax.set(title=name, xlabel="x", ylabel="y", aspect="equal")
        self.figure_ = self.axes_[0, 0].figure
        self.figure_.colorbar(image, ax=list(self.axes_.ravel()), label="error, % of the largest value", extend="max")
        return self


class GridTransformationDisplay:
    """Where inner maps send a grid of the plane, colored by the values of the truth, as in Figure 11.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_points, 2)
    values : ndarray of shape (n_points,)
    """

    def __init__(self, images: Mapping[str, Array], values: Array) -> None:
        self.images = images
        self.values = values

    @classmethod
    def from_maps(
        cls, maps: Mapping[str, Function], truth: Function, *, grid: Array | None = None
    ) -> GridTransformationDisplay:
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

    def plot(self, axes: Any = None) -> GridTransformationDisplay:
        """Draw one panel per map.

        Returns
        -------
        self, with `axes_` and `figure_`
        """
        self.axes_ = _axes(1, len(self.images), axes)
        for ax, (name, image) in zip(self.axes_.ravel(), self.images.items(), strict=True):
            dots = ax.scatter(*image.T, c=self.values, cmap="jet", s=4)
            # One scale on both axes: a collapse onto a line should look like one.
            ax.set(title=name, xlabel="$g_1$" if name != "grid" else "x", ylabel="$g_2$" if name != "grid" else "y")
            ax.set_aspect("equal", adjustable="datalim")
        self.figure_ = self.axes_[0, 0].figure
        self.figure_.colorbar(dots, ax=list(self.axes_.ravel()), label="value")
        return self
