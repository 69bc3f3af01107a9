"""The answer of a non-convex outer loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.certificate import Stationarity
from convexkernels.solution import Record, Status

__all__ = ["OuterSolution"]


@dataclass(frozen=True, eq=False)
class OuterSolution:
    """Best point found by an outer loop that searches a non-convex problem from several starts.

    Attributes
    ----------
    problem : object
        The problem that was solved; it made the certificate.
    point : object
        What the outer loop learned, in the problem's own form (for concatenated kernels a tuple of
        coefficient matrices).
    certificate : Stationarity
        Value and gradient norm at `point`, recomputed from `problem`. It says nothing about other
        points: no outer loop can call its answer optimal.
    status : Status
        STATIONARY at best.
    n_iter : int
        Iterations of all starts together.
    seconds : float
    history : tuple of Record
        Values along the start that won; ``lower`` is -inf, since nothing bounds a non-convex problem.
    restart_values : ndarray of shape (n_restarts,)
        Final value of each start, inf where it was dropped.
    solver : str
    """

    problem: Any = field(repr=False)
    point: Any = field(repr=False)
    certificate: Stationarity
    status: Status
    n_iter: int
    seconds: float
    history: tuple[Record, ...] = field(repr=False)
    restart_values: NDArray[np.float64] = field(repr=False)
    solver: str

    @property
    def value(self) -> float:
        """Objective at `point`."""
        return self.certificate.value

    @property
    def n_dropped(self) -> int:
        """Number of starts that diverged and were left out."""
        return int(np.count_nonzero(~np.isfinite(self.restart_values)))

    @property
    def kernel(self) -> Any:
        """The learned kernel, a :class:`convexkernels.Kernel`."""
        return self.problem.kernel(self.point)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Evaluate the learned function at the rows of `X`, shape (n_samples,) or (n_samples, n_outputs)."""
        return self.problem.decision_function(self.point, X)

    def verify(self) -> Stationarity:
        """Recompute the certificate from the problem and the stored point."""
        return self.problem.certificate(self.point)
