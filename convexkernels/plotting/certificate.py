"""How the bounds on the optimum met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.plotting.canvas import CLASS_COLORS, new_axes
from convexkernels.solution import Record

__all__ = ["CertificateDisplay"]


class CertificateDisplay:
    """Upper and lower bound of the optimum over the run of a solver, and the relative gap between them.

    Parameters
    ----------
    history : sequence of Record
        Best bounds so far, one record per iteration.
    title : str
    tol : float, optional
        Gap to mark.

    Attributes
    ----------
    ax_ : array of two matplotlib axes
        Bounds, and gap.
    figure_ : matplotlib figure
    """

    def __init__(self, history: Sequence[Record], title: str = "", tol: float | None = None) -> None:
        self.history = history
        self.title = title
        self.tol = tol

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
        """Draw the bounds above and the gap below.

        Parameters
        ----------
        ax : sequence of two matplotlib axes, optional
        against : {"iteration", "seconds"}

        Returns
        -------
        self, with `ax_` and `figure_`
        """
        if against not in ("iteration", "seconds"):
            raise InvalidInputError(f"against must be 'iteration' or 'seconds', got {against!r}.")
        if ax is not None and len(np.ravel(ax)) != 2:
            raise InvalidInputError(f"ax must be two axes, for the bounds and for the gap, got {ax!r}.")
        self.ax_ = np.ravel(new_axes(ax, size=(6.4, 5.4), rows=2))
        self.figure_ = self.ax_[0].figure
        where = np.array([getattr(record, against) for record in self.history], dtype=np.float64)
        upper = np.array([record.upper for record in self.history])
        lower = np.array([record.lower for record in self.history])
        self._plot_bounds(where, upper, lower)
        self._plot_gap(where, against)
        if self.title:
            self.ax_[0].set_title(self.title, fontsize="medium")
        return self

    def _plot_bounds(self, where: Any, upper: Any, lower: Any) -> None:
        ax = self.ax_[0]
        marker = "." if len(where) <= 40 else None
        ax.plot(where, upper, color=CLASS_COLORS[1], marker=marker, label="upper bound (primal)")
        ax.plot(where, lower, color=CLASS_COLORS[0], marker=marker, label="lower bound (dual)")
        ax.fill_between(where, lower, upper, color="0.85", zorder=0, label="the optimum is in here")
        # The first lower bounds can be far off; the window shows where the two meet.
        reach = max(upper[0] - upper[-1], 0.02 * abs(upper[-1]), 1e-300)
        bottom = max(lower[0] - 0.1 * reach, lower[-1] - 1.5 * reach)
        ax.set_ylim(bottom, upper[-1] + 1.3 * reach)
        ax.set_ylabel("objective J")
        ax.legend(frameon=False, fontsize="small")

    def _plot_gap(self, where: Any, against: str) -> None:
        from matplotlib.ticker import MaxNLocator

        ax = self.ax_[1]
        gap = np.array([max(record.relative_gap, 1e-16) for record in self.history])
        ax.semilogy(where, gap, color="black", marker="." if len(where) <= 40 else None)
        if self.tol is not None:
            ax.axhline(self.tol, color="0.5", linestyle="--", linewidth=0.9)
            ax.annotate(
                f" tol = {self.tol:.0e}", (0.0, self.tol), xycoords=("axes fraction", "data"), va="bottom", color="0.35"
            )
        ax.set(xlabel="iteration" if against == "iteration" else "time / s", ylabel="relative gap")
        if against == "iteration":
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(axis="y", color="0.92")
