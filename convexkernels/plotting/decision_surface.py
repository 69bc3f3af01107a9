"""Decision surfaces in the plane."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, new_axes
from convexkernels.validation import check_points, check_whole_number

__all__ = ["DecisionSurfaceDisplay"]


# More lines than this would hide the surface they divide.
MOST_LINES = 150


class DecisionSurfaceDisplay:
    """The function a classifier decides by, over its two features, as in [CP20 Figure 6].

    For two classes: the value, with the boundary (solid) and the margins -1 and 1 (dashed). For more: the class
    that wins. A tessellated kernel divides the plane by the lines through the coordinates of the support vectors;
    in every tile the function is one polynomial.

    Parameters
    ----------
    xs, ys : ndarray of shape (n_points,)
        Values of the two features.
    values : ndarray of shape (n_points, n_points) or (n_points, n_points, n_classes)
        Decision function, the second feature along the rows.
    X : ndarray of shape (m, 2)
        Points to draw.
    y : ndarray of shape (m,)
        Their classes.
    classes : ndarray of shape (n_classes,)
    breaks : ndarray of shape (n_support, 2), optional
        Points through whose coordinates lines are drawn.
    names : pair of str

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(
        self,
        xs: Array,
        ys: Array,
        values: Array,
        X: Array,
        y: NDArray[Any],
        classes: NDArray[Any],
        breaks: Array | None = None,
        names: tuple[str, str] = ("x1", "x2"),
    ) -> None:
        self.xs = xs
        self.ys = ys
        self.values = values
        self.X = X
        self.y = y
        self.classes = classes
        self.breaks = breaks
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, pad: float = 0.08, n_points: int = 241) -> Self:
        """Evaluate a fitted classifier around points.

        Parameters
        ----------
        estimator : fitted classifier of two features
            With ``decision_function`` and ``classes_``; lines are drawn when it has ``support_vectors_`` and learned a
            tessellated kernel.
        X : array-like of shape (m, 2)
        y : array-like of shape (m,)
        pad : float
            Space around the points, as a fraction of their range.
        n_points : int
            Points of the grid along each feature.
        """
        breaks = estimator.support_vectors_ if _tessellates(estimator) else None
        names = getattr(estimator, "feature_names_in_", ("x1", "x2"))
        table = _plane(X)

        def values(grid: Array) -> Array:
            if hasattr(X, "columns"):
                return estimator.decision_function(type(X)(grid, columns=X.columns))
            return estimator.decision_function(grid)

        labels = np.asarray(y)
        return cls._evaluate(values, table, labels, np.asarray(estimator.classes_), breaks, tuple(names), pad, n_points)

    @classmethod
    def from_solution(cls, solution: Any, *, pad: float = 0.08, n_points: int = 241) -> Self:
        """Evaluate a solution around the points it was learned from."""
        problem = solution.problem
        X = _plane(problem.X)
        Y = problem.Y
        labels = Y[0] if problem.single else Y.argmax(axis=0)
        classes = np.array([-1.0, 1.0]) if problem.single else np.arange(len(Y))
        breaks = X[solution.function.support] if hasattr(solution.kernel, "lower") else None
        return cls._evaluate(solution.decision_function, X, labels, classes, breaks, ("x1", "x2"), pad, n_points)

    @classmethod
    def _evaluate(
        cls,
        function: Any,
        X: Array,
        y: NDArray[Any],
        classes: NDArray[Any],
        breaks: Array | None,
        names: Any,
        pad: float,
        n_points: int,
    ) -> Self:
        check_whole_number("n_points", n_points, low=2)
        low, high = X.min(axis=0), X.max(axis=0)
        reach = pad * np.where(high > low, high - low, 1.0)
        xs, ys = (np.linspace(low[k] - reach[k], high[k] + reach[k], n_points) for k in range(2))
        mesh = np.meshgrid(xs, ys)
        values = np.asarray(function(np.column_stack([part.ravel() for part in mesh])))
        return cls(xs, ys, values.reshape(n_points, n_points, *values.shape[1:]), X, y, classes, breaks, names)

    def plot(self, ax: Any = None) -> Self:
        """Draw the surface, the tiles and the points.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        self, with `ax_` and `figure_`
        """
        self.ax_ = new_axes(ax, size=(6.4, 5.0))
        self.figure_ = self.ax_.figure
        if self.values.ndim == 2:
            self._plot_values()
        else:
            self._plot_winners()
        self._plot_lines()
        for k, label in enumerate(self.classes.tolist()):
            rows = self.y == label
            self.ax_.scatter(
                *self.X[rows].T,
                s=22,
                marker="os^Dv"[k % 5],
                color=CLASS_COLORS[k % len(CLASS_COLORS)],
                edgecolor="white",
                linewidth=0.6,
                label=f"{label:g}" if isinstance(label, float) else str(label),
                zorder=4,
            )
        self.ax_.set(
            xlabel=self.names[0], ylabel=self.names[1], xlim=(self.xs[0], self.xs[-1]), ylim=(self.ys[0], self.ys[-1])
        )
        self.ax_.legend(title="class", framealpha=0.9, fontsize="small")
        return self

    def _plot_values(self) -> None:
        from matplotlib.ticker import MaxNLocator

        # Beyond the margins the sign is what matters: a few far values should not bleach the rest.
        reach = max(float(np.quantile(np.abs(self.values), 0.95)), 1e-12)
        levels = MaxNLocator(20, symmetric=True).tick_values(-reach, reach)
        image = self.ax_.contourf(
            self.xs, self.ys, self.values, levels=levels, cmap="RdBu_r", extend="both", alpha=0.75
        )
        self.figure_.colorbar(image, ax=self.ax_, label="decision function f(x)", ticks=MaxNLocator(8, symmetric=True))
        if self.values.min() < 0.0 < self.values.max():
            self.ax_.contour(self.xs, self.ys, self.values, levels=[0.0], colors="black", linewidths=1.8)
        inside = [level for level in (-1.0, 1.0) if self.values.min() < level < self.values.max()]
        if inside:
            self.ax_.contour(
                self.xs, self.ys, self.values, levels=inside, colors="black", linewidths=0.9, linestyles="dashed"
            )

    def _plot_winners(self) -> None:
        winner = self.values.argmax(axis=2)
        for k in range(self.values.shape[2]):
            color = CLASS_COLORS[k % len(CLASS_COLORS)]
            self.ax_.contourf(self.xs, self.ys, winner == k, levels=[0.5, 1.5], colors=[color], alpha=0.25)
            self.ax_.contour(self.xs, self.ys, winner == k, levels=[0.5], colors="black", linewidths=0.9)

    def _plot_lines(self) -> None:
        if self.breaks is None:
            return
        lines = [np.unique(self.breaks[:, k]) for k in range(2)]
        # With many lines, every one of them says less.
        strength = min(0.55, 12.0 / max(len(lines[0]), len(lines[1]), 1))
        if max(len(lines[0]), len(lines[1])) > MOST_LINES:
            return
        style = {"colors": "black", "linewidths": 0.5, "alpha": strength, "zorder": 2}
        self.ax_.vlines(lines[0], self.ys[0], self.ys[-1], **style)
        self.ax_.hlines(lines[1], self.xs[0], self.xs[-1], **style)


def _plane(X: Any) -> Array:
    points = check_points(X)
    if points.shape[1] != 2:
        raise InvalidInputError(
            f"a decision surface needs two features, but X has {points.shape[1]}; fit on two of them, "
            "or draw the kernel with KernelSliceDisplay."
        )
    return points


def _tessellates(estimator: Any) -> bool:
    solution = getattr(estimator, "solution_", None)
    return hasattr(estimator, "support_vectors_") and hasattr(getattr(solution, "kernel", None), "lower")
