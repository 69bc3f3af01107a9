"""Decision surfaces in the plane."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Labels
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import SIGNED, Display, attribute_of, color, legend, plane_around
from convexkernels.validation import check_points

# More lines than this would hide the surface they divide.
MOST_LINES = 150


@dataclass(eq=False, repr=False)
class DecisionSurfaceDisplay(Display):
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
    """

    xs: Array
    ys: Array
    values: Array
    X: Array
    y: Labels
    classes: Labels
    breaks: Array | None = None
    names: tuple[str, str] = ("x0", "x1")

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
        kernel = getattr(getattr(estimator, "solution_", None), "kernel", None)
        given = {
            "X": _plane(X),
            "y": np.asarray(y),
            "classes": np.asarray(attribute_of(estimator, "classes_", "a classifier")),
            "breaks": getattr(estimator, "support_vectors_", None) if hasattr(kernel, "lower") else None,
            "names": tuple(getattr(estimator, "feature_names_in_", ("x0", "x1"))),
        }

        def values(grid: Array) -> Array:
            return estimator.decision_function(type(X)(grid, columns=X.columns) if hasattr(X, "columns") else grid)

        return cls._evaluated(values, given, pad, n_points)

    @classmethod
    def from_solution(cls, solution: Any, *, pad: float = 0.08, n_points: int = 241) -> Self:
        """Evaluate a solution around the points it was learned from."""
        problem = solution.problem
        X, Y = _plane(problem.X), problem.Y
        given = {
            "X": X,
            "y": Y[0] if problem.single else Y.argmax(axis=0),
            "classes": np.array([-1.0, 1.0]) if problem.single else np.arange(len(Y)),
            "breaks": X[solution.function.support] if hasattr(solution.kernel, "lower") else None,
        }
        return cls._evaluated(solution.decision_function, given, pad, n_points)

    @classmethod
    def _evaluated(cls, function: Any, given: dict[str, Any], pad: float, n_points: int) -> Self:
        xs, ys, grid = plane_around(given["X"], pad, n_points)
        values = np.asarray(function(grid))
        return cls(xs, ys, values.reshape(n_points, n_points, *values.shape[1:]), **given)

    def plot(self, ax: Any = None) -> Self:
        """Draw the surface, the tiles and the points."""
        ax = self._draws_on(ax, size=(7.0, 5.0))
        if self.values.ndim == 2:
            self._plot_values(ax)
        else:
            self._plot_winners(ax)
        self._plot_lines(ax)
        style: Any = {"s": 22, "edgecolor": "white", "linewidth": 0.6, "zorder": 4}
        for k, label in enumerate(self.classes.tolist()):
            name = f"{label:g}" if isinstance(label, float) else str(label)
            places = self.X[self.y == label].T
            ax.scatter(*places, marker="os^Dv"[k % 5], color=color(k), label=f"class {name}", **style)
        ax.set(xlabel=self.names[0], ylabel=self.names[1], xlim=self.xs[[0, -1]], ylim=self.ys[[0, -1]])
        legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=3)
        return self

    def _plot_values(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        surface = (self.xs, self.ys, self.values)
        # Beyond the margins the sign is what matters: a few far values should not bleach the rest.
        reach = max(float(np.quantile(np.abs(self.values), 0.95)), 1e-12)
        levels = MaxNLocator(20, symmetric=True).tick_values(-reach, reach)
        image = ax.contourf(*surface, levels=levels, cmap=SIGNED, extend="both", alpha=0.75)
        self.figure_.colorbar(image, ax=ax, label="decision function f(x)", ticks=MaxNLocator(8, symmetric=True))
        for marks, width, style, name in ((0.0,), 1.8, "solid", "f(x) = 0"), ((-1.0, 1.0), 0.9, "dashed", "f(x) = ±1"):
            seen = [level for level in marks if self.values.min() < level < self.values.max()]
            if seen:
                ax.contour(*surface, levels=seen, colors="black", linewidths=width, linestyles=style)
                ax.plot([], [], color="black", linewidth=width, linestyle=style, label=name)

    def _plot_winners(self, ax: Any) -> None:
        winner = self.values.argmax(axis=2)
        for k in range(self.values.shape[2]):
            ax.contourf(self.xs, self.ys, winner == k, levels=[0.5, 1.5], colors=[color(k)], alpha=0.25)
            ax.contour(self.xs, self.ys, winner == k, levels=[0.5], colors="black", linewidths=0.9)

    def _plot_lines(self, ax: Any) -> None:
        if self.breaks is None:
            return
        lines = [np.unique(self.breaks[:, k]) for k in range(2)]
        most = max(1, *map(len, lines))
        if most <= MOST_LINES:  # with many lines, every one of them says less
            style = {"colors": "black", "linewidths": 0.5, "alpha": min(0.35, 8.0 / most), "zorder": 2}
            ax.plot([], [], color="black", linewidth=0.5, label="coordinate of a support vector")
            ax.vlines(lines[0], self.ys[0], self.ys[-1], **style)
            ax.hlines(lines[1], self.xs[0], self.xs[-1], **style)


def _plane(X: Any) -> Array:
    points = check_points(X)
    if points.shape[1] != 2:
        raise InvalidInputError(
            f"a decision surface needs two features, but X has {points.shape[1]}; fit on two of them, "
            "or draw the kernel with KernelSliceDisplay."
        )
    return points
