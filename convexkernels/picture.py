"""One page about a learned model: the certificate, the matrix P, the kernel, the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from convexkernels.plotting.canvas import CLASS_COLORS as COLORS

if TYPE_CHECKING:
    from convexkernels.learning import Split

__all__ = ["draw_page"]

Array = NDArray[np.float64]
POINTS_PER_SIDE = 121


def draw_page(estimator: Any, split: Split, names: list[str]) -> Figure:
    """Draw four panels about a fitted estimator.

    Top: the two bounds over the iterations; the learned matrix P. Bottom: the kernel at the median
    point, and the decision, both over two features along which the decision varies much and which are
    not copies of each other. The other features follow these two by linear regression, so that the
    surface passes where the rows are.

    Parameters
    ----------
    estimator : fitted estimator
        With ``solution_``, ``kernel_`` and ``predict``.
    split : Split
    names : list of str
        Names of the features.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(11.0, 9.0), layout="constrained")
    (bounds, matrix), (kernel, decision) = figure.subplots(2, 2)
    _draw_bounds(bounds, estimator.solution_)
    _draw_matrix(figure, matrix, estimator.solution_.theta)
    shown = _leading_features(estimator, split.X)
    surface = _surface(split.X, shown)
    _draw_kernel(figure, kernel, estimator.kernel_, surface, np.median(split.X[:, shown], axis=0))
    _draw_decision(figure, decision, estimator, surface, split, shown)
    others = "" if split.X.shape[1] <= 2 else ", other features by regression"
    for axes, title in ((kernel, "kernel k(x0, .), x0 the cross"), (decision, "decision")):
        axes.set(xlabel=names[shown[0]], title=title + others)
        if len(shown) == 2:
            axes.set_ylabel(names[shown[1]])
    return figure


def _draw_bounds(axes: Any, solution: Any) -> None:
    iterations = [record.iteration for record in solution.history]
    axes.plot(iterations, [record.upper for record in solution.history], color=COLORS[1], label="upper bound")
    axes.plot(iterations, [record.lower for record in solution.history], color=COLORS[0], label="lower bound")
    certificate = solution.certificate
    # Early lower bounds can be far below; the interesting part is where the two meet.
    width = max(3.0 * abs(solution.history[0].upper - certificate.upper), 1e-3 * abs(certificate.upper), 1e-12)
    axes.set_ylim(certificate.lower - width, certificate.upper + width)
    axes.set(xlabel="iteration", ylabel="objective", title=f"the optimum, relative gap {certificate.relative_gap:.1e}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)


def _draw_matrix(figure: Figure, axes: Any, P: Array) -> None:
    largest = max(float(np.abs(P).max()), 1e-300)
    image = axes.imshow(P, cmap="RdBu_r", vmin=-largest, vmax=largest)
    figure.colorbar(image, ax=axes, shrink=0.8)
    values = np.linalg.eigvalsh(P)
    rank = int((values > 1e-3 * max(values[-1], 0.0)).sum())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title=f"learned P, {P.shape[0]} x {P.shape[0]}, rank {rank} (eigenvalues above 1e-3 of the largest)")
    axes.title.set_fontsize("medium")


def _leading_features(estimator: Any, X: Array) -> list[int]:
    """The feature along which the decision varies most (5 % to 95 % quantile), and the best one unlike it."""
    if X.shape[1] == 1:
        return [0]
    variation = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        line = np.tile(np.median(X, axis=0), (21, 1))
        low, high = np.quantile(X[:, j], [0.05, 0.95])
        line[:, j] = np.linspace(low, high, 21)
        variation[j] = np.ptp(_values(estimator, line), axis=0).max()
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


def _draw_kernel(figure: Figure, axes: Any, kernel: Any, surface: tuple[list[Array], Array], center: Array) -> None:
    coordinates, grid = surface
    flat = np.column_stack([c.ravel() for c in coordinates])
    nearest = int(np.argmin((((flat - center) / np.maximum(np.ptp(flat, axis=0), 1e-300)) ** 2).sum(axis=1)))
    values = kernel(grid, grid[nearest][None, :]).reshape(coordinates[0].shape)
    if len(coordinates) == 1:
        axes.plot(coordinates[0], values, color=COLORS[0])
        axes.plot(flat[nearest, 0], values[nearest], "x", color="black", markersize=10, markeredgewidth=2)
        return
    image = axes.pcolormesh(*coordinates, values, cmap="viridis", shading="nearest", rasterized=True)
    figure.colorbar(image, ax=axes, shrink=0.8)
    axes.plot(*flat[nearest], "x", color="white", markersize=10, markeredgewidth=2)


def _draw_decision(
    figure: Figure, axes: Any, estimator: Any, surface: tuple[list[Array], Array], split: Split, shown: list[int]
) -> None:
    coordinates, grid = surface
    values = _values(estimator, grid)
    if len(coordinates) == 1:
        axes.plot(coordinates[0], values, color="black")
    elif values.shape[1] == 1:
        _draw_values(figure, axes, coordinates, values[:, 0].reshape(coordinates[0].shape))
    else:
        for k in range(values.shape[1]):
            wins = (values.argmax(axis=1) == k).reshape(coordinates[0].shape)
            axes.contourf(*coordinates, wins, levels=[0.5, 1.5], colors=[COLORS[k % len(COLORS)]], alpha=0.25)
    # In one dimension rows sit at the value that is decided for them.
    heights = split.X_test[:, shown[1]] if len(shown) == 2 else _values(estimator, split.X_test)[:, 0]
    classes = getattr(estimator, "classes_", None)
    for k, label in enumerate([None] if classes is None else classes):
        rows = np.full(len(heights), True) if label is None else split.y_test == label
        place = split.X_test[rows, shown[0]], heights[rows]
        axes.scatter(*place, s=22, color=COLORS[k % len(COLORS)], edgecolor="white", label=label)
    if classes is not None:
        axes.legend(title="test rows", fontsize="small", framealpha=0.9)


def _draw_values(figure: Figure, axes: Any, coordinates: list[Array], values: Array) -> None:
    reach = max(float(np.abs(values).max()), 1e-300)
    image = axes.pcolormesh(
        *coordinates, values, cmap="PuOr_r", vmin=-reach, vmax=reach, shading="nearest", rasterized=True
    )
    figure.colorbar(image, ax=axes, shrink=0.8)
    if values.min() < 0.0 < values.max():
        axes.contour(*coordinates, values, levels=[0.0], colors="black", linewidths=1.5)
