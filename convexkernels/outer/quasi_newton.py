"""A whole descent at once, for the searches that have not moved to the driver yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from convexkernels.solution import Status
from convexkernels.solvers.nonconvex import bfgs
from convexkernels.solvers.nonconvex.bfgs import Evaluation, Limits

__all__ = ["Descent", "Evaluation", "Limits", "descend"]

Array = NDArray[np.float64]


@dataclass
class Descent:
    """Where a descent ended and why."""

    point: Array
    value: float
    status: Status
    n_iter: int
    values: list[float] = field(repr=False)
    times: list[float] = field(repr=False)  # seconds since the start, one per value


def descend(evaluate: Callable[[Array], Evaluation], start: Array, limits: Limits) -> Descent:
    """All steps of a descent; an interrupt ends it with the best point so far."""
    began = time.monotonic()
    values: list[float] = []
    times: list[float] = []
    last = bfgs.Descent(start, np.inf, Status.NUMERICAL_ERROR, 0)
    try:
        for last in bfgs.descend(evaluate, start, limits):
            if len(values) <= last.n_iter and np.isfinite(last.value):
                values.append(last.value)
                times.append(time.monotonic() - began)
        status = last.status
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Descent(last.point, last.value, status or Status.STALLED, last.n_iter, values, times)
