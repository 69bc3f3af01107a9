"""How the bounds on the optimum met."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, Display, legend
from convexkernels.solution import Record


@dataclass(eq=False, repr=False)
class CertificateDisplay(Display):
    """Upper and lower bound of the optimum over the run of a solver, and the relative gap between them.

    Problems that are not convex have no lower bound: the objective, and how far above its least value it was.

    Parameters
    ----------
    history : sequence of Record
        Best bounds so far, one record per iteration.
    title : str
    tol : float, optional
        Gap to mark.
    """

    history: Sequence[Record]
    title: str = ""
    tol: float | None = None

    @classmethod
    def from_solution(cls, solution: Any, *, tol: float | None = None) -> Self:
        """Take the history of a solution; one without is refused, with its certificate."""
        known = solution.certificate
        if not solution.history:
            raise InvalidInputError(
                f"the solution by {solution.solver!r} has no history to draw: its parts were solved by themselves, "
                f"or at once. Its certificate, the worst one of all parts: {known}."
            )
        is_bounded = isinstance(known, DualityGap)
        said = (
            f"relative gap {known.relative_gap:.1e}"
            if is_bounded
            else f"relative gradient {known.relative_residual:.1e}"
        )
        title = f"{solution.solver}: {solution.status.name.lower().replace('_', ' ')}, {said}"
        return cls(solution.history, title, tol if is_bounded else None)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the history of a fitted estimator; its tolerance is marked where it is one of the gap."""
        check_is_fitted(estimator)
        return cls.from_solution(estimator.solution_, tol=getattr(estimator, "tol", None))

    def plot(self, ax: Any = None, *, against: str = "iteration") -> Self:
        """Draw the bounds above and the gap below, on two axes, against "iteration" or "seconds"."""
        if against not in ("iteration", "seconds"):
            raise InvalidInputError(f"against must be 'iteration' or 'seconds', got {against!r}.")
        if ax is not None and len(np.ravel(ax)) != 2:
            raise InvalidInputError(f"ax must be two axes, for the bounds and for the gap, got {ax!r}.")
        self.ax_ = np.ravel(self._draws_on(ax, size=(7.6, 5.4), rows=2))
        where = np.array([getattr(record, against) for record in self.history], dtype=np.float64)
        marker = "." if len(where) <= 40 else None
        upper, lower = (np.array([getattr(record, side) for record in self.history]) for side in ("upper", "lower"))
        if np.isfinite(lower).any():
            self._plot_bounds(where, upper, lower, marker)
            self._plot_gap(where, [record.relative_gap for record in self.history], marker, "relative gap")
        else:
            self.ax_[0].plot(where, upper, color=CLASS_COLORS[1], marker=marker)
            self._plot_gap(where, upper - np.nanmin(upper), marker, "above the least value")
        self.ax_[0].set(title=self.title, ylabel="objective J")
        self.ax_[1].set_xlabel("iteration" if against == "iteration" else "time / s")
        if against == "iteration":  # of which there may be none, where a fit begins at its end
            self.ax_[1].locator_params(axis="x", integer=True, min_n_ticks=1)
        return self

    def _plot_bounds(self, where: Array, upper: Array, lower: Array, marker: str | None) -> None:
        ax = self.ax_[0]
        ax.plot(where, upper, color=CLASS_COLORS[1], marker=marker, label="upper bound (primal)")
        ax.plot(where, lower, color=CLASS_COLORS[0], marker=marker, label="lower bound (dual)")
        ax.fill_between(where, lower, upper, color="0.85", zorder=0, label="the optimum is in here")
        # The first lower bounds can be far off; the window shows where the two meet.
        reach = max(upper[0] - upper[-1], 0.02 * abs(upper[-1]), 1e-300)
        ax.set_ylim(max(lower[0] - 0.1 * reach, lower[-1] - 1.5 * reach), upper[-1] + 1.3 * reach)
        legend(ax)

    def _plot_gap(self, where: Array, gaps: Any, marker: str | None, label: str) -> None:
        from matplotlib.ticker import MaxNLocator

        ax = self.ax_[1]
        ax.semilogy(where, np.maximum(gaps, 1e-16), color="black", marker=marker)
        if self.tol is not None:
            ax.axhline(self.tol, color="0.5", linestyle="--", linewidth=0.9)
            place: Any = {"xycoords": ("axes fraction", "data"), "va": "center", "color": "0.35", "fontsize": "small"}
            ax.annotate(f"tol = {self.tol:.0e}", (1.01, self.tol), **place)
        ax.set_ylabel(label)
        if (where == where.round()).all():
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(axis="y", color="0.92")
