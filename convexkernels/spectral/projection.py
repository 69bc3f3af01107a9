"""Variable projection: only the frequencies are searched, W is the exact solution for them at every point."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.outer.quasi_newton import Limits, descend
from convexkernels.solution import Record, Solution
from convexkernels.spectral.backend import to_numpy
from convexkernels.spectral.features import SpectralMap
from convexkernels.spectral.inner import solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SquaredLoss
from convexkernels.spectral.penalties import FrobeniusNorm

__all__ = ["project_variables"]


class _Projected:
    """The objective as a function of the frequencies alone, ``min over W and c``, with its gradient.

    By the envelope theorem that is the partial gradient at the minimizing W: nothing is differentiated through the
    inner solve.
    """

    def __init__(self, problem: SpectralLearning, spectral_map: SpectralMap) -> None:
        fit = solve_inner(problem, spectral_map, tol=1e-9, max_iter=2000)
        self.point: SpectralPoint = fit.point
        value, _, _, self._slope = problem.evaluate(self.point)
        self.value = value if math.isfinite(value) else math.inf

    def gradient(self) -> Any:
        return np.asarray(to_numpy(self._slope), dtype=np.float64).ravel()


def project_variables(
    problem: SpectralLearning,
    start: SpectralMap,
    *,
    tol: float = 1e-4,
    max_iter: int = 100,
    max_time: float | None = None,
) -> Solution:
    """Minimize (4) over the frequencies by a quasi-Newton method, W being exact at every step.

    The alternative to training all of it together by Adam: a descent method with a line search, on all rows at once.
    Every evaluation costs an inner solve (for squared loss, ``m D^2 + D^3`` operations), so it is for tables of some
    thousand rows and some hundred features.

    Parameters
    ----------
    problem : SpectralLearning
        With squared or logistic loss; on float64 arrays, for the line search to see small decreases.
    start : SpectralMap
    tol : float
        Relative gradient at which the point counts as stationary.
    max_iter : int
    max_time : float, optional
        Seconds.

    Returns
    -------
    Solution

    Raises
    ------
    InvalidInputError
        For the hinge loss, whose inner problem has no exact solver here, or a weight lam1 = 0.
    """
    if problem.loss.name == "hinge":
        raise InvalidInputError("variable projection needs an exact inner solution; loss must be squared or logistic.")
    if problem.penalty.weight <= 0.0:
        raise InvalidInputError("lam1 must be > 0 for variable projection: without a penalty W need not be unique.")
    began = time.monotonic()
    shape, backend = tuple(start.omega.shape), problem.backend
    # With the ridge in closed form the inner solution is exact; elsewhere the line search sees its tolerance.
    is_exact = isinstance(problem.loss, SquaredLoss) and isinstance(problem.penalty, FrobeniusNorm)

    def at(flat: Any) -> SpectralMap:
        return start.with_omega(backend.array(flat.reshape(shape)))

    limits = Limits(
        tol=tol,
        stall_tol=1e-12 if is_exact else 1e-9,
        max_iter=max_iter,
        deadline=math.inf if max_time is None else began + max_time,
    )
    first = np.asarray(to_numpy(start.omega), dtype=np.float64).ravel()
    found = descend(lambda flat: _Projected(problem, at(flat)), first, limits)
    point = solve_inner(problem, at(found.point), tol=1e-9, max_iter=2000).point
    problem = replace(problem, learned=True)
    history = tuple(
        Record(i, value, -math.inf, seconds)
        for i, (value, seconds) in enumerate(zip(found.values, found.times, strict=True))
    )
    certificate = problem.certificate(point)
    return Solution(
        problem,
        point,
        certificate,
        found.status,
        found.n_iter,
        time.monotonic() - began,
        history,
        "variable projection",
    )
