"""Pictures of spectral kernels: where their density is, how training went, and that they are not stationary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.spectral import Spectral
from convexkernels.plotting.canvas import (
    SEQUENTIAL,
    Display,
    attribute_of,
    color,
    curve,
    legend,
    numbered,
    plain_ticks,
)
from convexkernels.spectral.training import Epoch
from convexkernels.validation import check_number, check_points, check_whole_number

# Share of the largest root of a density below which nothing is drawn.
NEXT_TO_NONE = 0.02


@dataclass(eq=False, repr=False)
class SpectralDensityDisplay(Display):
    """The spectral density s(w, w2) of kernels along one feature, smoothed from their frequencies.

    Each pair of frequencies is four points of the plane, as in (5): (w, w2), (w2, w), (w, w) and (w2, w2). A stationary
    kernel lives on the diagonal. Drawn before and after training, the panels show what has been learned.

    Parameters
    ----------
    densities : mapping of str to ndarray of shape (n_points, n_points)
        Title and density on the grid.
    axis : ndarray of shape (n_points,)
        Frequencies, in radians per unit of the feature.
    """

    densities: Mapping[str, Array]
    axis: Array

    @classmethod
    def from_kernels(
        cls, kernels: Mapping[str, Spectral], *, feature: int = 0, limit: float | None = None, n_points: int = 121
    ) -> Self:
        """Smooth the frequencies of kernels along one feature.

        Parameters
        ----------
        kernels : mapping of str to Spectral
        feature : int
            Row of Omega.
        limit : float, optional
            Largest frequency shown; None: almost all of them.
        n_points : int
        """
        check_whole_number("n_points", n_points, low=2)
        pairs = {name: _pairs(kernel, feature) for name, kernel in kernels.items()}
        if limit is None:
            limit = float(max(np.quantile(np.abs(pair), 0.995) for pair in pairs.values())) * 1.1 + 1e-12
        axis = np.linspace(-check_number("limit", limit, low=0.0, open_low=True), limit, n_points)
        return cls({name: _smoothed(pair, axis) for name, pair in pairs.items()}, axis)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """The density a fitted estimator started from, and the one it learned."""
        initial = attribute_of(estimator, "initial_kernel_", "a spectral estimator")
        return cls.from_kernels({"before": initial, "after": estimator.solution_.kernel}, **options)

    def plot(self, axes: Any = None) -> Self:
        """Draw one panel per kernel, on one color scale; stationary kernels live on the dotted diagonal."""
        panels = self._draws_panels(len(self.densities), axes)
        # One scale, on the root: peaks on the diagonal are much higher than what surrounds them.
        high = max(float(density.max()) for density in self.densities.values())
        scale = {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": 1.0, "shading": "nearest", "rasterized": True}
        for ax, (name, density) in zip(panels, self.densities.items(), strict=True):
            # Where there are next to no frequencies the paper stays white.
            shown = np.ma.masked_less(np.sqrt(density / high), NEXT_TO_NONE)
            image = ax.pcolormesh(self.axis, self.axis, shown, **scale)
            ax.axline((0.0, 0.0), slope=1.0, color="0.5", linewidth=0.6, linestyle=":")
            ax.set(title=name, xlabel="frequency $w$", ylabel="paired frequency $w'$", aspect="equal")
            ax.set(xlim=self.axis[[0, -1]], ylim=self.axis[[0, -1]])
        self.figure_.colorbar(image, ax=list(panels), label="root of the density, over the largest one")
        return self


@dataclass(eq=False, repr=False)
class LearningCurvesDisplay(Display):
    """Validation accuracy or loss, and objective over epochs, one curve per setting, as in Figures 3 and 4.

    Parameters
    ----------
    curves : mapping of str to sequence of Epoch
    score : str
        What the validation score is called.
    """

    curves: Mapping[str, Sequence[Epoch]]
    score: str = "validation accuracy"

    @classmethod
    def from_estimators(cls, estimators: Mapping[str, Any]) -> Self:
        """Take the histories of fitted estimators, under their names."""
        kinds = {hasattr(estimator, "classes_") for estimator in estimators.values()}
        if len(kinds) != 1:
            raise InvalidInputError(
                "estimators must all be classifiers or all be regressors: scores differ in meaning."
            )
        score = "validation accuracy" if kinds.pop() else "validation loss"
        whose = "spectral estimators"
        return cls({name: attribute_of(one, "history_", whose) for name, one in estimators.items()}, score)

    def plot(self, axes: Any = None) -> Self:
        """Draw the score above, where rows were held out, and the objective below."""
        self.axes_ = above, below = np.ravel(self._draws_on(axes, size=(6.4, 5.6), rows=2))
        for i, (name, history) in enumerate(self.curves.items()):
            style = {"label": name, "linewidth": 1.6, **curve(i)}
            where = [epoch.epoch for epoch in history]
            sign = 1.0 if self.score == "validation accuracy" else -1.0  # scores of regressors are minus their losses
            above.plot(where, [sign * epoch.validation for epoch in history], **style)
            below.semilogy(where, [epoch.objective for epoch in history], **style)
        above.set_ylabel(self.score)
        if all(np.isnan(epoch.validation) for history in self.curves.values() for epoch in history):
            above.set_yticks([])
            above.text(0.5, 0.5, "no rows were held out", transform=above.transAxes, ha="center")
        below.set(ylabel="training objective", xlabel="epoch")
        below.locator_params(axis="x", integer=True)
        plain_ticks(below.yaxis)
        legend(above)
        for ax in self.axes_:
            ax.grid(axis="y", color="0.92")
        return self


@dataclass(eq=False, repr=False)
class NonStationarityDisplay(Display):
    """k(c, c + t) over the difference t, for several c: one curve for a stationary kernel, as many as c else.

    Parameters
    ----------
    slices : mapping of str to ndarray of shape (n_centers, n_points)
        Title and values.
    steps : ndarray of shape (n_points,)
        The differences t along one feature.
    centers : ndarray of shape (n_centers,)
        That feature of the c.
    name : str
        Name of the feature.
    """

    slices: Mapping[str, Array]
    steps: Array
    centers: Array
    name: str = "x0"

    @classmethod
    def from_kernels(
        cls,
        kernels: Mapping[str, Any],
        centers: Any,
        *,
        reach: float,
        feature: int = 0,
        name: str | None = None,
        n_points: int = 201,
    ) -> Self:
        """Evaluate slices.

        Parameters
        ----------
        kernels : mapping of str to Kernel
        centers : array-like of shape (n_centers, n_features)
            The points c.
        reach : float, > 0
            Largest difference.
        feature : int
            The feature that varies.
        """
        points = check_points(centers, name="centers")
        reach = check_number("reach", reach, low=0.0, open_low=True)
        _check_feature(feature, points.shape[1])
        steps = np.linspace(-reach, reach, check_whole_number("n_points", n_points, low=2))
        moved = np.repeat(points[:, None, :], len(steps), axis=1)
        moved[:, :, feature] += steps
        slices = {
            title: np.vstack([kernel(point[None, :], rows) for point, rows in zip(points, moved, strict=True)])
            for title, kernel in kernels.items()
        }
        return cls(slices, steps, points[:, feature], name or numbered(feature + 1)[-1])

    def plot(self, axes: Any = None) -> Self:
        """Draw one panel per kernel."""
        panels = self._draws_panels(len(self.slices), axes, sharey=True)
        for ax, (title, rows) in zip(panels, self.slices.items(), strict=True):
            for i, (center, values) in enumerate(zip(self.centers, rows, strict=True)):
                # Curves of a stationary kernel are one: the first is the widest, so that none hides another.
                style = {"color": color(i), "linewidth": 1.4 + 2.2 * (len(rows) - 1 - i) / max(len(rows) - 1, 1)}
                ax.plot(self.steps, values, label=f"{self.name} = {center:.2g}", **style)
            ax.set(title=title, xlabel=f"t, along {self.name}")
            ax.margins(x=0)
            ax.locator_params(axis="x", nbins=5)
        panels[0].set_ylabel("k(c, c + t)")
        legend(panels[-1], title="c")
        return self


def _check_feature(feature: int, n: int) -> None:
    if not 0 <= feature < n:
        raise InvalidInputError(f"feature must be in [0, {n}), got {feature!r}.")


def _pairs(kernel: Spectral, feature: int) -> Array:
    """The four points of each pair of frequencies along one feature, shape (4 D, 2)."""
    if not isinstance(kernel, Spectral):
        raise InvalidInputError(f"kernels must be spectral, with frequencies; got {kernel!r}.")
    if kernel.inner is not None:
        raise InvalidInputError("frequencies at features of another kernel are not those of points; pass its inner.")
    omega = check_points(kernel.omega, name="omega")
    _check_feature(feature, len(omega))
    w = omega[feature]
    v = w if kernel.omega2 is None else check_points(kernel.omega2, name="omega2")[feature]
    return np.vstack([np.column_stack(pair) for pair in ((w, v), (v, w), (w, w), (v, v))])


def _smoothed(pairs: Array, axis: Array) -> Array:
    """Gaussian smoothing of the points, symmetric like the density of a real kernel."""
    pairs = np.vstack([pairs, -pairs])
    spread = max(float(pairs.std()), 1e-12)
    width = max(1.06 * spread * len(pairs) ** (-1.0 / 6.0) * 0.5, axis[1] - axis[0])
    bumps = [np.exp(-0.5 * ((axis[:, None] - side[None, :]) / width) ** 2) for side in pairs.T]
    return (bumps[1] @ bumps[0].T) / (2.0 * np.pi * width**2 * len(pairs))
