"""Slices k(x0, .) of kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.plotting.canvas import SEQUENTIAL, Display, curve, draw_cross, legend, numbered
from convexkernels.validation import check_points, check_whole_number


@dataclass(eq=False, repr=False)
class KernelSliceDisplay(Display):
    """How similar a point is to a fixed one: k(x0, .) along one feature, or over two.

    The other features stay as they are at x0. [CP20 Figure 1] shows four such slices.

    Parameters
    ----------
    axes : list of ndarray
        Values of the one or two features that vary.
    slices : mapping of str to ndarray
        Name of a kernel and its values on the grid, of shape (n_points,) or, for two features, (n_points, n_points)
        with the second feature along the rows.
    center : ndarray of shape (1,) or (2,)
        The features of x0 that vary.
    names : list of str
        Names of the features that vary.
    normalized : bool
        Whether the values were divided by the largest of each slice.
    """

    axes: list[Array]
    slices: Mapping[str, Array]
    center: Array
    names: list[str]
    normalized: bool = False

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel | Mapping[str, Kernel],
        x0: Any,
        *,
        limits: Any,
        features: int | tuple[int, int] = 0,
        names: list[str] | None = None,
        normalize: bool = False,
        n_points: int = 401,
    ) -> Self:
        """Evaluate slices of one kernel, or of several under their names.

        Parameters
        ----------
        kernel : Kernel or mapping of str to Kernel
            Several kernels can be drawn along one feature only.
        x0 : array-like of shape (n_features,)
        limits : (float, float), or two of them
            Range of each feature that varies.
        features : int or pair of int
            Which features vary.
        names : list of str, optional
            Names of all features.
        normalize : bool
            Divide every slice by its largest absolute value.
        n_points : int
            Points along each feature.
        """
        kernels = kernel if isinstance(kernel, Mapping) else {"": kernel}
        point = check_points(np.atleast_2d(np.asarray(x0)), name="x0")
        varying = _checked_features(features, point.shape[1], len(kernels))
        check_whole_number("n_points", n_points, low=2)
        ranges = np.asarray(limits, dtype=np.float64).reshape(len(varying), 2)
        axes = [np.linspace(low, high, n_points) for low, high in ranges]
        mesh = np.meshgrid(*axes)
        grid = np.repeat(point, mesh[0].size, axis=0)
        for feature, values in zip(varying, mesh, strict=True):
            grid[:, feature] = values.ravel()
        slices = {name: k(point, grid).reshape(mesh[0].shape) for name, k in kernels.items()}
        if normalize:
            slices = {name: values / max(np.abs(values).max(), 1e-300) for name, values in slices.items()}
        if names is None:
            names = numbered(point.shape[1]) if point.shape[1] > 1 else ["x"]
        return cls(axes, slices, point[0, varying], [str(names[f]) for f in varying], normalize)

    @classmethod
    def from_estimator(cls, estimator: Any, x0: Any, *, features: int | tuple[int, int] = 0, **options: Any) -> Self:
        """Evaluate the slice of ``estimator.kernel_`` over the range of the training table, by default."""
        scaling = estimator.scaling_
        limits = [(scaling.offset[f], scaling.offset[f] + (scaling.scale[f] or 1.0)) for f in np.ravel(features)]
        given = {"limits": limits, "names": estimator.feature_labels_, **options}
        return cls.from_kernel(estimator.kernel_, x0, features=features, **given)

    @classmethod
    def from_solution(cls, solution: Any, x0: Any, *, features: int | tuple[int, int] = 0, **options: Any) -> Self:
        """Evaluate the slice of ``solution.kernel`` over the range of the points it was learned from, by default."""
        X = np.asarray(solution.problem.X, dtype=np.float64)
        limits = [(X[:, f].min(), X[:, f].max()) for f in np.ravel(features)]
        return cls.from_kernel(solution.kernel, x0, features=features, **{"limits": limits, **options})

    def plot(self, ax: Any = None) -> Self:
        """Draw curves over one feature, or a map over two with x0 as a cross."""
        ax = self._draws_on(ax)
        value = "k(c, x)" + (", divided by its largest value" if self.normalized else "")
        if len(self.axes) == 1:
            self._plot_curves(ax, value)
            return self
        shown = self.slices.values()
        image = ax.pcolormesh(*self.axes, *shown, cmap=SEQUENTIAL, shading="nearest", rasterized=True)
        self.figure_.colorbar(image, ax=ax, label=value)
        draw_cross(ax, self.center)
        ax.set(xlabel=self.names[0], ylabel=self.names[1], title="c is the cross")
        return self

    def _plot_curves(self, ax: Any, value: str) -> None:
        for i, (name, values) in enumerate(self.slices.items()):
            ax.plot(self.axes[0], values, linewidth=1.8, label=name, **curve(i))
        ax.axvline(self.center[0], color="0.6", linewidth=0.8, zorder=0)
        ax.set(xlabel=self.names[0], ylabel=value, title=f"gray line: c, {self.names[0]} = {self.center[0]:.4g}")
        ax.margins(x=0)
        if len(self.slices) > 1:
            legend(ax)


def _checked_features(features: int | tuple[int, int], n: int, n_kernels: int) -> list[int]:
    varying = [int(f) for f in np.ravel(features)]
    if len(varying) not in (1, 2) or not all(0 <= f < n for f in varying):
        raise InvalidInputError(
            f"features must be one or two indices in [0, {n}), got {features!r}; x0 has {n} features."
        )
    if len(varying) == 2 and n_kernels > 1:
        raise InvalidInputError(f"{n_kernels} kernels can only be drawn along one feature, got two features.")
    return varying
