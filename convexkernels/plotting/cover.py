"""Covers of the plane and their Voronoi cells."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Index, Mask
from convexkernels.cells.cover import TreeCover, VoronoiCover
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, Display, plane_around
from convexkernels.validation import check_number, check_points


@dataclass(eq=False, repr=False)
class CoverDisplay(Display):
    """Balls around centers, cells, and the cells that meet a set [MS16 (7), Figure 1, Figure 2, Figure 3, Figure 4].

    Parameters
    ----------
    xs, ys : ndarray of shape (n_points,)
        Values of the two features.
    cells : ndarray of shape (n_points, n_points)
        The cell of every point of the grid, the second feature along the rows.
    centers : ndarray of shape (n_cells, 2)
    radius : float or None
        Of the balls.
    X : ndarray of shape (m, 2)
        Points to draw.
    region : ndarray of bool, shape (n_points, n_points), or None
        A set T of points of the grid.
    tube : float
        T is also drawn enlarged by so much.
    """

    xs: Array
    ys: Array
    cells: Index
    centers: Array
    radius: float | None
    X: Array
    region: Mask | None = None
    tube: float = 0.0

    @classmethod
    def from_cover(
        cls,
        cover: VoronoiCover | TreeCover,
        X: Any,
        *,
        region: Any = None,
        tube: float = 0.0,
        pad: float = 0.08,
        n_points: int = 301,
    ) -> Self:
        """Find the cells of a grid around points.

        Parameters
        ----------
        cover : VoronoiCover or TreeCover of the plane
        X : array-like of shape (m, 2)
        region : callable, optional
            Points of shape (n, 2) -> whether they are in T.
        tube : float, >= 0
            Also draw T enlarged by so much.
        pad : float
            Space around the points, as a fraction of their range.
        n_points : int
            Points of the grid along each feature.
        """
        points = check_points(X)
        if not isinstance(cover, VoronoiCover | TreeCover) or points.shape[1] != 2 or cover.centers.shape[1] != 2:
            raise InvalidInputError(
                f"a picture needs Voronoi cells of the plane, got {cover!r} and points with {points.shape[1]} features."
            )
        xs, ys, grid = plane_around(points, pad, n_points)
        inside = None if region is None else np.asarray(region(grid), dtype=bool).reshape(n_points, n_points)
        centers = cover.leaf_centers() if isinstance(cover, TreeCover) else cover.centers
        cells = cover.cells(grid).reshape(n_points, n_points)
        tube = check_number("tube", tube, low=0.0)
        return cls(xs, ys, cells, centers, getattr(cover, "radius", None), points, inside, tube)

    def plot(self, ax: Any = None, *, balls: bool = True) -> Self:
        """Draw cells, centers, points, the region and, where their radius is known and `balls` is true, the balls."""
        self._draws_on(ax, size=(5.6, 5.4))
        self._plot_cells()
        self.ax_.plot(*self.X.T, ".", color="0.55", markersize=2.5, zorder=2)
        if balls and self.radius:
            from matplotlib.patches import Circle

            style: Any = {"fill": False, "color": "0.35", "linewidth": 0.7, "linestyle": "--", "zorder": 3}
            for center in self.centers:
                self.ax_.add_patch(Circle(center, self.radius, **style))
        self.ax_.plot(*self.centers.T, "o", color="black", markersize=4.5, zorder=5)
        if self.region is not None and self.region.any():
            self._plot_region(self.region)
        self.ax_.set(xlabel="x0", ylabel="x1", xlim=self.xs[[0, -1]], ylim=self.ys[[0, -1]], aspect="equal")
        return self

    def _plot_cells(self) -> None:
        met = np.unique(self.cells[self.region]) if self.region is not None else np.arange(len(self.centers))
        shade = np.isin(self.cells, met)
        self.ax_.contourf(self.xs, self.ys, shade, levels=[0.5, 1.5], colors=[CLASS_COLORS[5]], alpha=0.25)
        for j in range(len(self.centers)):
            inside = self.cells == j
            if inside.any() and not inside.all():
                self.ax_.contour(self.xs, self.ys, inside, levels=[0.5], colors="black", linewidths=0.9)

    def _plot_region(self, region: Mask) -> None:
        self.ax_.contourf(self.xs, self.ys, region, levels=[0.5, 1.5], colors=[CLASS_COLORS[1]], alpha=0.45)
        if self.tube > 0.0:
            from scipy.ndimage import distance_transform_edt

            steps = (self.ys[1] - self.ys[0], self.xs[1] - self.xs[0])
            far = distance_transform_edt(~region, sampling=steps)
            self.ax_.contour(self.xs, self.ys, far, levels=[self.tube], colors=CLASS_COLORS[1], linestyles="dashed")
