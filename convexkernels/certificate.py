"""What is known about an answer, recomputed from the problem and never taken from a solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexkernels.notebook import html_table


@dataclass(frozen=True)
class DualityGap:
    """Two-sided bound on the optimal value of a convex problem.

    Parameters
    ----------
    upper : float
        Objective of the problem at a feasible point: the optimum is not above it.
    lower : float
        Objective of the dual problem at a feasible point: the optimum is not below it.
    charged : float
        How much of ``upper - lower`` is what rounding of sums may have cost.
    """

    upper: float
    lower: float
    charged: float = 0.0

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

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return html_table(type(self).__name__, self._shown())

    def _shown(self) -> dict[str, str]:
        bounds = {"upper bound": f"{self.upper:.10g}", "lower bound": f"{self.lower:.10g}"}
        return {**bounds, "relative gap": f"{self.relative_gap:.2e}"}


@dataclass(frozen=True, eq=False)
class Evidence:
    """The points behind a :class:`RigorousGap`: with them anyone can compute its two numbers again.

    Attributes
    ----------
    theta : ndarray
        Weights of candidates (to be divided by their sum), or the G of a parameter matrix ``G G'`` (to be divided by
        what its trace exceeds the bound by; by ``trace / m`` where the trace is given). For tessellated kernels the
        first half of the rows is the difference of the two halves of G, the second half is that of G.
    coefficients : ndarray of shape (n_outputs, m)
    intercepts, multiples : ndarray of shape (n_outputs,)
        The functions behind `upper` are ``multiples (K w + b)``, b up to a constant of the family.
    dual : ndarray of shape (n_outputs, m)
        Coefficients w behind `lower`, inside the box of the loss; with an intercept their sum is exactly 0.
    share : float
        ``share * dual`` is the point that `lower` is the value of.
    """

    theta: Any
    coefficients: Any
    intercepts: Any
    multiples: Any
    dual: Any
    share: float


@dataclass(frozen=True)
class RigorousGap(DualityGap):
    """Bounds that hold in exact arithmetic, for the problem over the given doubles.

    What a :class:`DualityGap` claims up to rounding, proven: every kernel entry, sum and eigenvalue carries a bound of
    its error, outwards. The model of arithmetic is that of :mod:`convexkernels.rigorous`.

    Parameters
    ----------
    upper, lower : float
        The optimum in real numbers lies between them; infinite where the arithmetic breaks down.
    charged : float
        How much of ``upper - lower`` is error bounds, which are proven here.
    note : str
        Says so where error bounds are more than a millionth of the optimum; else empty.
    evidence : Evidence
    """

    note: str = ""
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    def holds(self, tol: float) -> bool:
        """Whether the point behind `upper` is proven optimal up to the relative tolerance `tol`."""
        return bool(0.0 <= self.relative_gap <= tol)

    def __str__(self) -> str:
        return f"{super().__str__()}, in exact arithmetic" + (f" ({self.note})" if self.note else "")

    def _shown(self) -> dict[str, str]:
        return {**super()._shown(), "in exact arithmetic": f"rounding is {self.charged:.2e} of the gap"}


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

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = {"value": f"{self.value:.10g}", "relative gradient": f"{self.relative_residual:.2e}"}
        return html_table("Stationarity", {**rows, "says": "nothing about other points"})
