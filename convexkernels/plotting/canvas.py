"""Where displays draw, and what all figures have in common: colors, scales, legends beside the data."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.exceptions import ConvexKernelsError, InvalidInputError
from convexkernels.validation import check_points, check_whole_number

# Okabe and Ito's palette: told apart by color-blind readers and in gray.
CLASS_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
# Color maps of values from low to high, and of values on both sides of 0.
SEQUENTIAL, SIGNED = "viridis", "RdBu_r"
STYLE = {"axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": "medium", "savefig.dpi": 130}


class MissingPlotExtraError(ConvexKernelsError, ImportError):
    """Something should be drawn, but matplotlib is not installed."""


class Display:
    """The numbers of a picture. `plot` draws them on given axes, or on a new figure, and returns the display.

    Attributes
    ----------
    ax_ or axes_ : matplotlib axes, or an array of them where there are panels
        Where `plot` has drawn.
    figure_ : matplotlib figure
    """

    ax_: Any
    axes_: Any
    figure_: Any

    def _draws_on(self, ax: Any, **options: Any) -> Any:
        self.ax_ = new_axes(ax, **options)
        self.figure_ = np.ravel(self.ax_)[0].figure
        return self.ax_

    def _draws_panels(self, n: int, axes: Any, **options: Any) -> Any:
        self.axes_ = new_panels(n, axes, **options)
        self.figure_ = self.axes_[0].figure
        return self.axes_


def attribute_of(estimator: Any, name: str, whose: str) -> Any:
    """What a picture is made of, refused by name where the estimator is of another kind."""
    check_is_fitted(estimator)
    if not hasattr(type(estimator), name) and name not in vars(estimator):
        raise InvalidInputError(f"{type(estimator).__name__} has no {name}; pass {whose}.")
    return getattr(estimator, name)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingPlotExtraError(
            "drawing needs matplotlib, which is not installed: pip install 'convexkernels[plot]'."
        ) from error
    return plt


def new_axes(ax: Any = None, *, size: tuple[float, float] = (6.0, 4.2), rows: int = 1) -> Any:
    """Return `ax`, or the axes of a new figure: one, or an array of `rows` that share their abscissa.

    Raises
    ------
    MissingPlotExtraError
        When matplotlib is not installed.
    """
    plt = _pyplot()
    if ax is not None:
        return ax
    with plt.rc_context(STYLE):
        return plt.subplots(rows, 1, figsize=size, sharex=True, layout="constrained")[1]


def new_panels(n: int, axes: Any = None, *, size: tuple[float, float] = (4.0, 3.6), **options: Any) -> Any:
    """Return `axes`, or those of a new figure, side by side: an array of `n`, each of the given size."""
    plt = _pyplot()
    if axes is None:
        with plt.rc_context(STYLE):
            whole = (size[0] * n, size[1])
            # Flat panels of a given aspect need the other layout, which leaves room for their titles.
            layout = "constrained" if "subplot_kw" in options else "compressed"
            axes = plt.subplots(1, n, figsize=whole, squeeze=False, layout=layout, **options)[1]
    axes = np.asarray(axes, dtype=object).reshape(-1)
    if axes.size != n:
        raise InvalidInputError(f"axes must be {n} axes, one per panel, got {axes.size}.")
    return axes


def color(k: int) -> str:
    """Color of class or curve number `k`."""
    return CLASS_COLORS[k % len(CLASS_COLORS)]


def curve(k: int, *, marked: bool = False) -> dict[str, Any]:
    """How curve number `k` is drawn: color is not all that tells curves apart."""
    marks = {"marker": "osD^vP"[k % 6], "markersize": 4} if marked else {}
    return {"color": color(k), "linestyle": ("-", "--", ":", "-.")[k % 4], **marks}


def draw_cross(ax: Any, at: Any) -> None:
    """A cross that is seen on any color."""
    for shade, width in (("black", 4.0), ("white", 2.0)):
        ax.plot(*at, "x", color=shade, markersize=7 + width, markeredgewidth=width)


def numbered(n: int) -> list[str]:
    """Names of features that have none, as scikit-learn numbers them."""
    return [f"x{k}" for k in range(n)]


def legend(ax: Any, **options: Any) -> None:
    """A legend on the right of the axes, where it hides nothing."""
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    ax.legend(**{"frameon": False, "fontsize": "small", **place, **options})


def plain_ticks(axis: Any, at: Any = None) -> None:
    """Numbers without powers of ten on an axis, where there are few of them; only those `at`, if given."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if at is not None:
        axis.set_ticks(list(at))
    elif axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        # Beyond two decades more numbers than these run into each other.
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 100.0 * low else (1.0, 3.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def signed_scale(values: Any) -> dict[str, Any]:
    """Color map and limits that show 0 as white and both signs alike."""
    largest = max(float(np.abs(values).max()), 1e-300)
    return {"cmap": SIGNED, "vmin": -largest, "vmax": largest}


def draw_bars(ax: Any, names: Any, values: Any, label: str) -> None:
    """Horizontal bars, the first one on top."""
    ax.barh(np.arange(len(values)), values, color=CLASS_COLORS[0])
    ax.set_yticks(np.arange(len(values)), list(names), fontsize="small")
    ax.invert_yaxis()
    ax.set_xlabel(label)


def plane_around(X: Any, pad: float, n_points: int) -> tuple[Array, Array, Array]:
    """Values along both features around points of the plane, and the grid of them, the second one slowest."""
    points = check_points(X, n_features=2)
    check_whole_number("n_points", n_points, low=2)
    low, high = points.min(axis=0), points.max(axis=0)
    reach = pad * np.where(high > low, high - low, 1.0)
    xs, ys = (np.linspace(low[k] - reach[k], high[k] + reach[k], n_points) for k in range(2))
    return xs, ys, np.column_stack([part.ravel() for part in np.meshgrid(xs, ys)])
