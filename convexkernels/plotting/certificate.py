"""How the bounds on the optimum met."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, Display, legend
from convexkernels.solution import Record


@dataclass(eq=False, repr=False)
class CertificateDisplay(Display):
    """Upper and lower bound of the optimum over the run of a solver, and the relative gap between them.

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
        """Take the history of a solution."""
        gap = solution.certificate.relative_gap
        title = f"{solution.solver}: {solution.status.name.lower().replace('_', ' ')}, relative gap {gap:.1e}"
        return cls(solution.history, title, tol)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the history of a fitted estimator; its tolerance is marked."""
        return cls.from_solution(estimator.solution_, tol=estimator.tol)

    def plot(self, ax: Any = None, *, against: str = "iteration") -> Self:
        """Draw the bounds above and the gap below, on two axes, against "iteration" or "seconds"."""
        if against not in ("iteration", "seconds"):
            raise InvalidInputError(f"against must be 'iteration' or 'seconds', got {against!r}.")
        if ax is not None and len(np.ravel(ax)) != 2:
            raise InvalidInputError(f"ax must be two axes, for the bounds and for the gap, got {ax!r}.")
        self.ax_ = np.ravel(self._draws_on(ax, size=(7.6, 5.4), rows=2))
        where = np.array([getattr(record, against) for record in self.history], dtype=np.float64)
        marker = "." if len(where) <= 40 else None
        self._plot_bounds(where, marker)
        self._plot_gap(where, marker, against)
        self.ax_[0].set_title(self.title)
        return self

    def _plot_bounds(self, where: Any, marker: str | None) -> None:
        ax = self.ax_[0]
        upper, lower = (np.array([getattr(record, side) for record in self.history]) for side in ("upper", "lower"))
        ax.plot(where, upper, color=CLASS_COLORS[1], marker=marker, label="upper bound (primal)")
        ax.plot(where, lower, color=CLASS_COLORS[0], marker=marker, label="lower bound (dual)")
        ax.fill_between(where, lower, upper, color="0.85", zorder=0, label="the optimum is in here")
        # The first lower bounds can be far off; the window shows where the two meet.
        reach = max(upper[0] - upper[-1], 0.02 * abs(upper[-1]), 1e-300)
        ax.set_ylim(max(lower[0] - 0.1 * reach, lower[-1] - 1.5 * reach), upper[-1] + 1.3 * reach)
        ax.set_ylabel("objective J")
        legend(ax)

    def _plot_gap(self, where: Any, marker: str | None, against: str) -> None:
        from matplotlib.ticker import MaxNLocator

        ax = self.ax_[1]
        ax.semilogy(where, [max(record.relative_gap, 1e-16) for record in self.history], color="black", marker=marker)
        if self.tol is not None:
            ax.axhline(self.tol, color="0.5", linestyle="--", linewidth=0.9)
            place: Any = {"xycoords": ("axes fraction", "data"), "va": "center", "color": "0.35", "fontsize": "small"}
            ax.annotate(f"tol = {self.tol:.0e}", (1.01, self.tol), **place)
        ax.set(xlabel="iteration" if against == "iteration" else "time / s", ylabel="relative gap")
        if against == "iteration":
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(axis="y", color="0.92")
