"""What is known about an answer, recomputed from the problem and never taken from a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["DualityGap", "Stationarity"]


@dataclass(frozen=True)
class DualityGap:
    """Two-sided bound on the optimal value of a convex problem.

    Parameters
    ----------
    upper : float
        Objective of the problem at a feasible point: the optimum is not above it.
    lower : float
        Objective of the dual problem at a feasible point: the optimum is not below it.
    """

    upper: float
    lower: float

    @property
    def value(self) -> float:
        """Objective at the point behind `upper`."""
        return self.upper

    @property
    def gap(self) -> float:
        """``upper - lower``; a clearly negative gap is a defect, not a proof."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """``gap / max(|upper|, |lower|)``; 0 when both bounds are 0, inf when one is not finite."""
        scale = max(abs(self.upper), abs(self.lower))
        if not np.isfinite(scale) or np.isnan(self.gap):
            return float("inf")
        return self.gap / scale if scale > 0 else 0.0

    def holds(self, tol: float) -> bool:
        """Whether the point behind `upper` is optimal up to the relative tolerance `tol`."""
        # Rounding can make the bounds cross by a few units in the last place, never by more.
        return bool(-1e-9 <= self.relative_gap <= tol)

    def __str__(self) -> str:
        return f"optimum in [{self.lower:.10g}, {self.upper:.10g}], relative gap {self.relative_gap:.2e}"


@dataclass(frozen=True)
class Stationarity:
    """First-order condition at a point of a non-convex problem: says nothing about other points.

    Parameters
    ----------
    value : float
        Objective at the point.
    residual : float
        Norm of the (projected) gradient at the point, in the coordinates the method searches.
    scale : float
        The residual that a relative statement divides by. In :meth:`at`, the one meaning it has in the library, a
        relative residual of 1e-4 says that, to first order, no move of the size of the point lowers the objective by
        more than 1e-4 of its value.
    """

    value: float
    residual: float
    scale: float = 1.0

    @classmethod
    def at(cls, value: float, gradient: Any, point: Any) -> Stationarity:
        """The condition at a point, from the gradient and the point in the coordinates of the search."""
        size = max(1.0, float(np.linalg.norm(point)))
        residual = float(np.linalg.norm(gradient))
        return cls(float(value), residual, max(abs(float(value)), 1e-300) / size)

    @property
    def relative_residual(self) -> float:
        """``residual / scale``; inf when it is not finite."""
        ratio = self.residual / self.scale if self.scale > 0 else self.residual
        return float(ratio) if np.isfinite(ratio) else float("inf")

    def holds(self, tol: float) -> bool:
        """Whether the point is stationary up to the relative tolerance `tol`."""
        return self.relative_residual <= tol

    def __str__(self) -> str:
        return f"value {self.value:.10g}, relative gradient {self.relative_residual:.2e} (stationarity only)"
