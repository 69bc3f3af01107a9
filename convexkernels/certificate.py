"""What is known about an answer, recomputed from the problem and never taken from a solver."""

from dataclasses import dataclass

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
        The residual a relative statement divides by, for example the norm at the start.
    """

    value: float
    residual: float
    scale: float = 1.0

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
