"""One page about a learned model: how it was found, what was learned, the kernel, the decision."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS as COLORS
from convexkernels.plotting.canvas import SEQUENTIAL, SIGNED, draw_cross
from convexkernels.plotting.hierarchical import FeatureRelevanceDisplay
from convexkernels.plotting.kernel_weights import KernelWeightsDisplay
from convexkernels.plotting.parameter_matrix import ParameterMatrixDisplay
from convexkernels.solvers.nonconvex.stochastic import Stochastic

if TYPE_CHECKING:
    from convexkernels.commands.scores import Split

POINTS_PER_SIDE = 121
# Size beyond which names of monomials cannot be read on a quarter of a page.
MOST_MONOMIALS = 24
# Different values of a column up to which its points are moved apart.
MOST_VALUES = 20


def draw_page(estimator: Any, split: Split, names: list[str]) -> Figure:
    """Draw four panels about a fitted estimator with ``solution_``, ``kernel_`` and ``predict``.

    Top: how far the bounds (or the objective) were from the end over the iterations; what was learned. Bottom: the
    kernel at the median point, and the decision, both over two features along which the decision varies much and which
    are not copies of each other. The other features follow these two by linear regression, so that the surface passes
    where the rows are; rows are faint where they lie far from it.
    """
    X, X_test = split.X, split.X_test
    if estimator.columns_ is not None:
        names = estimator.feature_labels_
        X, X_test = estimator.columns_.encoded(X), estimator.columns_.encoded(X_test)
        # The same functions on the encoded table.
        estimator = copy(estimator)
        estimator.columns_, estimator.n_features_in_ = None, X.shape[1]
    X, X_test = np.asarray(X, dtype=np.float64), np.asarray(X_test, dtype=np.float64)
    figure = Figure(figsize=(12.0, 9.6), layout="constrained")
    (progress, learned), (kernel, decision) = figure.subplots(2, 2)
    variation = _variation(estimator, X)
    _draw_progress(progress, estimator.solution_)
    _draw_learned(figure, learned, estimator, names)
    shown = _leading_features(X, variation)
    surface = _surface(X, shown)
    _draw_kernel(figure, kernel, estimator, surface, np.median(X[:, shown], axis=0))
    _draw_decision(figure, decision, estimator, surface, X_test, split.y_test, shown)
    others = "" if X.shape[1] <= 2 else ", other features by regression"
    values = "decision" if hasattr(estimator, "classes_") else "prediction"
    for axes, title in ((kernel, "kernel k(c, .), c the cross"), (decision, values)):
        axes.set(xlabel=names[shown[0]], title=title + others)
        if len(shown) == 2:
            axes.set_ylabel(names[shown[1]])
    return figure


def _draw_progress(axes: Any, solution: Any) -> None:
    """Distances of the bounds from each other's end on a log scale; the objective where there is one bound only."""
    history, certificate = solution.history, solution.certificate
    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not history:
        axes.set_axis_off()
        axes.text(0.5, 0.5, f"{certificate}\n{solution.status.value}", ha="center", va="center", wrap=True)
        return
    iterations = [record.iteration for record in history]
    upper, lower = (np.array([getattr(record, side) for record in history]) for side in ("upper", "lower"))
    if not isinstance(certificate, DualityGap):
        axes.plot(iterations, upper, color=COLORS[1], marker=".")
        ended = solution.status.name.lower().replace("_", " ")
        of = ", mean of the latest steps" if solution.solver == Stochastic.name else ""
        axes.set(ylabel=f"objective{of}", title=f"how the search went; its end: {ended}")
        return
    size = max(abs(certificate.upper), abs(certificate.lower), 1e-300)
    sides = (
        ("upper bound above", upper - certificate.lower),
        ("lower bound below", certificate.upper - lower),
    )
    for (label, distance), color in zip(sides, (COLORS[1], COLORS[0]), strict=True):
        axes.semilogy(
            iterations, np.maximum(distance / size, 1e-16), color=color, marker=".", label=label + " by at most"
        )
    axes.set(
        ylabel="relative distance from the optimum",
        title=f"the optimum is proved to a relative gap of {certificate.relative_gap:.1e}",
    )
    axes.legend(frameon=False, loc="best")


def _draw_learned(figure: Figure, axes: Any, estimator: Any, names: list[str]) -> None:
    if hasattr(estimator, "weights_"):
        KernelWeightsDisplay.from_estimator(estimator, largest=12).plot(axes)
        axes.set_title("learned weights of the kernels")
    elif _has_matrix(estimator):
        shown = [names[k] for k in estimator.scaling_.columns]
        display = ParameterMatrixDisplay.from_solution(estimator.solution_, names=shown).plot(axes)
        if display.P.shape[0] > MOST_MONOMIALS:
            axes.set(xticks=[], yticks=[])
        axes.set_title("learned P: " + axes.get_title(), fontsize="medium")
    else:
        FeatureRelevanceDisplay.from_estimator(estimator, names).plot(axes, most=15)
        axes.set_title("columns that the learned function changes with")


def _has_matrix(estimator: Any) -> bool:
    """Whether a matrix P was learned; cells that overlap have no kernel at all."""
    try:
        return hasattr(estimator.solution_.kernel, "P")
    except InvalidInputError:
        return False


def _variation(estimator: Any, X: Array) -> Array:
    """Range of the decision along each feature (5 % to 95 % quantile), the others at their medians."""
    variation = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        line = np.tile(np.median(X, axis=0), (21, 1))
        low, high = np.quantile(X[:, j], [0.05, 0.95])
        line[:, j] = np.linspace(low, high, 21)
        variation[j] = np.ptp(_values(estimator, line), axis=0).max()
    return variation


def _leading_features(X: Array, variation: Array) -> list[int]:
    """The feature along which the decision varies most, and the best one unlike it."""
    if X.shape[1] == 1:
        return [0]
    first = int(np.argmax(variation))
    # A second feature that repeats the first one would show the rows on a line.
    deviation = X - X.mean(axis=0)
    size = np.maximum(np.linalg.norm(deviation, axis=0), 1e-300)
    likeness = (deviation.T @ deviation[:, first] / size / size[first]) ** 2
    merit = variation * np.maximum(1.0 - likeness, 0.0)
    merit[first] = -1.0
    return [first, int(np.argmax(merit))]


def _values(estimator: Any, X: Array) -> Array:
    """What the estimator decides by, shape (n_samples, n_outputs)."""
    method = getattr(estimator, "decision_function", estimator.predict)
    return np.asarray(method(X)).reshape(len(X), -1)


def _surface(X: Array, shown: list[int]) -> tuple[list[Array], Array]:
    """Coordinates along one or two features, and the rows of the grid over them."""
    sides = []
    for j in shown:
        low, high = X[:, j].min(), X[:, j].max()
        reach = 0.05 * (high - low) or 1.0  # a constant feature gets some width
        sides.append(np.linspace(low - reach, high + reach, POINTS_PER_SIDE))
    coordinates = list(np.meshgrid(*sides))
    flat = np.column_stack([c.ravel() for c in coordinates])
    design = np.column_stack([np.ones(len(X)), X[:, shown]])
    coefficients = np.linalg.lstsq(design, X, rcond=None)[0]
    grid = np.column_stack([np.ones(len(flat)), flat]) @ coefficients
    grid = np.clip(grid, X.min(axis=0), X.max(axis=0))
    grid[:, shown] = flat
    return coordinates, grid


def _draw_kernel(figure: Figure, axes: Any, estimator: Any, surface: tuple[list[Array], Array], center: Array) -> None:
    coordinates, grid = surface
    flat = np.column_stack([c.ravel() for c in coordinates])
    nearest = int(np.argmin((((flat - center) / np.maximum(np.ptp(flat, axis=0), 1e-300)) ** 2).sum(axis=1)))
    try:
        values = estimator.kernel_(grid, grid[nearest][None, :]).reshape(coordinates[0].shape)
    except InvalidInputError as error:
        axes.set_axis_off()
        axes.text(0.5, 0.5, str(error), ha="center", va="center", wrap=True)
        return
    if len(coordinates) == 1:
        axes.plot(coordinates[0], values, color=COLORS[0])
        axes.plot(flat[nearest, 0], values[nearest], "x", color="black", markersize=10, markeredgewidth=2)
        return
    image = axes.pcolormesh(*coordinates, values, cmap=SEQUENTIAL, shading="nearest", rasterized=True)
    figure.colorbar(image, ax=axes, shrink=0.8)
    draw_cross(axes, flat[nearest])


def _draw_decision(
    figure: Figure,
    axes: Any,
    estimator: Any,
    surface: tuple[list[Array], Array],
    X: Array,
    y: Any,
    shown: list[int],
) -> None:
    coordinates, grid = surface
    values = _values(estimator, grid)
    classes = getattr(estimator, "classes_", None)
    scale: dict[str, Any] = {}
    if len(coordinates) == 1:
        axes.plot(coordinates[0], values, color="black")
    elif values.shape[1] > 1:
        for k in range(values.shape[1]):
            wins = (values.argmax(axis=1) == k).reshape(coordinates[0].shape)
            axes.contourf(*coordinates, wins, levels=[0.5, 1.5], colors=[COLORS[k % len(COLORS)]], alpha=0.25)
    else:
        scale = _draw_values(figure, axes, coordinates, values.reshape(coordinates[0].shape), classes is not None)
    # In one dimension rows sit at the value that is decided for them.
    across = _apart(X[:, shown[0]])
    heights = _apart(X[:, shown[1]]) if len(shown) == 2 else _values(estimator, X)[:, 0]
    points = {"s": 24, "edgecolor": "black", "linewidth": 0.6}
    faint = 0.3 + 0.7 * _nearness(X, grid, coordinates, shown)
    if classes is None:
        colored = {"c": y, **scale} if scale else {"color": COLORS[0]}
        axes.scatter(across, heights, alpha=faint, **colored, **points)
        return
    for k, label in enumerate(classes):
        rows, color = y == label, COLORS[k % len(COLORS)]
        axes.scatter(across[rows], heights[rows], color=color, alpha=faint[rows], **points)
        axes.scatter([], [], color=color, label=label, **points)
    axes.legend(title="test rows", fontsize="small", loc="upper left", bbox_to_anchor=(0.0, -0.12), ncols=6)


def _apart(column: Array) -> Array:
    """Places of points in a column with few different values: moved a little, so that they do not hide each other."""
    values = np.unique(column)
    if not 1 < len(values) <= min(MOST_VALUES, len(column) // 2):
        return column
    return np.asarray(column + 0.25 * np.diff(values).min() * np.random.default_rng(0).uniform(-1.0, 1.0, len(column)))


def _nearness(X: Array, grid: Array, coordinates: list[Array], shown: list[int]) -> Array:
    """1 for rows on the surface, 0 for those that are farther away than most."""
    places = [np.searchsorted(np.unique(side), X[:, j]) for side, j in zip(coordinates, shown, strict=True)]
    places = [np.clip(place, 0, POINTS_PER_SIDE - 1) for place in places]
    at = places[0] if len(places) == 1 else places[1] * POINTS_PER_SIDE + places[0]
    spread = np.maximum(X.std(axis=0), 1e-300)
    distance = np.sqrt((((X - grid[at]) / spread) ** 2).mean(axis=1))
    return np.clip(1.5 - distance / max(float(np.median(distance)), 1e-300), 0.0, 1.0)


def _draw_values(
    figure: Figure, axes: Any, coordinates: list[Array], values: Array, is_decision: bool
) -> dict[str, Any]:
    """Draw values over two features; returns the scale of their colors."""
    reach = max(float(np.abs(values).max()), 1e-300)
    low, high = (-reach, reach) if is_decision else (float(values.min()), float(values.max()))
    scale = {"cmap": SIGNED if is_decision else SEQUENTIAL, "vmin": low, "vmax": high}
    image = axes.pcolormesh(*coordinates, values, shading="nearest", rasterized=True, **scale)
    label = "decision function" if is_decision else "predicted value; points: true values of test rows"
    figure.colorbar(image, ax=axes, shrink=0.8, label=label)
    if is_decision and values.min() < 0.0 < values.max():
        axes.contour(*coordinates, values, levels=[0.0], colors="black", linewidths=1.5)
    return scale
