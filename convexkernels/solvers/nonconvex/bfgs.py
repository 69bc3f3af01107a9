"""Quasi-Newton descent for smooth non-convex functions that may be infinite at some points."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from convexkernels.arrays import Array
from convexkernels.solution import Status

# Up to this many unknowns the whole inverse Hessian is stored; beyond, the last MEMORY steps.
LARGEST_DENSE = 300
MEMORY = 20
SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
# The square of a smaller product of step and change underflows.
LEAST_CURVATURE = 1e-150
# Times what ten steps have to gain, by which a descent has left its start.
BEGUN = 3.0


class Evaluation(Protocol):
    """Value of the objective at a point, and its gradient if somebody asks."""

    value: float

    def gradient(self) -> Array:
        """Gradient at the point."""
        ...


@dataclass(frozen=True)
class Limits:
    """When a descent stops.

    Attributes
    ----------
    tol : float
        With STATIONARY, when ``|gradient| max(1, |point|) <= tol |value|``.
    stall_tol : float
        With STALLED, when ten iterations together lowered the value by no more than this fraction.
    early_tol : float
        With EARLY_STOPPED, when they lowered it by no more than this fraction, and all of them by three times as much:
        a descent that has hardly left its start, perhaps a plateau, goes on.
    max_iter : int
        With ITERATION_LIMIT.
    deadline : float
        With TIME_LIMIT, when ``time.monotonic()`` is past this.
    max_trials : int
        Points that one line search may try. Few where the objective carries noise, as in float32.
    """

    tol: float
    stall_tol: float = 0.0
    max_iter: int = 500
    deadline: float = np.inf
    max_trials: int = 25
    early_tol: float = 0.0

    def reached(self, values: list[float], gradient: Array, point: Array) -> Status | None:
        """The reason to stop, if there is one, given all values so far."""
        value = values[-1]
        if np.linalg.norm(gradient) * max(1.0, float(np.linalg.norm(point))) <= self.tol * abs(value):
            return Status.STATIONARY
        if len(values) > 10 and values[-11] - value <= self.stall_tol * abs(value):
            return Status.STALLED
        if len(values) > 10 and values[-11] - value <= self.early_tol * abs(value) < (values[0] - value) / BEGUN:
            return Status.EARLY_STOPPED
        if len(values) > self.max_iter:
            return Status.ITERATION_LIMIT
        if time.monotonic() > self.deadline:
            return Status.TIME_LIMIT
        return None


@dataclass
class Descent:
    """Where a descent is, and why it ended where it has."""

    point: Array
    value: float
    status: Status | None
    n_iter: int


class _DenseInverseHessian:
    """The BFGS approximation of the inverse Hessian."""

    def __init__(self, size: int) -> None:
        self.H: Array | None = None
        self.size = size

    @property
    def is_empty(self) -> bool:
        return self.H is None

    def direction(self, gradient: Array) -> Array:
        return -gradient if self.H is None else -(self.H @ gradient)

    def update(self, step: Array, change: Array) -> None:
        curvature = step @ change
        if self.H is None:
            self.H = np.eye(self.size) * (curvature / (change @ change))
        Hy = self.H @ change
        self.H += np.outer(step, step * ((curvature + change @ Hy) / curvature**2) - Hy / curvature)
        self.H -= np.outer(Hy / curvature, step)

    def reset(self) -> None:
        self.H = None


class _LimitedInverseHessian:
    """The limited-memory BFGS approximation (two-loop recursion)."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    @property
    def is_empty(self) -> bool:
        return not self.pairs

    def direction(self, gradient: Array) -> Array:
        d = -gradient
        if not self.pairs:
            return d
        shares = []
        for step, change, curvature in reversed(self.pairs):
            share = (step @ d) / curvature
            d = d - share * change
            shares.append(share)
        step, change, curvature = self.pairs[-1]
        d *= curvature / (change @ change)
        for (step, change, curvature), share in zip(self.pairs, reversed(shares), strict=True):
            d += (share - (change @ d) / curvature) * step
        return d

    def update(self, step: Array, change: Array) -> None:
        self.pairs.append((step, change, float(step @ change)))

    def reset(self) -> None:
        self.pairs.clear()


def descend(evaluate: Callable[[Array], Evaluation], start: Array, limits: Limits) -> Iterator[Descent]:
    """Minimize by BFGS (limited-memory beyond 300 unknowns) with a weak Wolfe line search; yields start and steps.

    A value that is not finite means that the point is outside the domain; such trial points are stepped back from. Only
    the last step has a status: NUMERICAL_ERROR when the objective is not finite at `start`.
    """
    point = np.array(start)
    here = evaluate(point)
    if not np.isfinite(here.value):
        yield Descent(point, np.inf, Status.NUMERICAL_ERROR, 0)
        return
    value, gradient, values = here.value, here.gradient(), [here.value]
    model = _DenseInverseHessian(point.size) if point.size <= LARGEST_DENSE else _LimitedInverseHessian()
    while (status := limits.reached(values, gradient, point)) is None:
        yield Descent(point, value, None, len(values) - 1)
        found = _step(evaluate, model, point, value, gradient, limits.max_trials)
        if found is None:
            status = Status.STALLED
            break
        point, value, gradient = found
        values.append(value)
    yield Descent(point, value, status, len(values) - 1)


def _step(
    evaluate: Callable[[Array], Evaluation],
    model: _DenseInverseHessian | _LimitedInverseHessian,
    point: Array,
    value: float,
    gradient: Array,
    max_trials: int,
) -> tuple[Array, float, Array] | None:
    """One quasi-Newton step, with a second chance along the gradient; None when neither descends."""
    for _ in range(2):
        direction = model.direction(gradient)
        slope, length = float(gradient @ direction), float(np.linalg.norm(direction))
        if slope < 0 and np.isfinite(slope) and length > 0:  # whose squares may be 0
            # Without curvature information a step of the size of the point is a sensible first guess.
            size = max(1.0, float(np.linalg.norm(point))) / length
            first = min(1.0, 0.1 * size) if model.is_empty else 1.0
            found = _line_search(evaluate, point, value, direction, slope, first, max_trials)
            if found is not None:
                step, change = found[0] - point, found[2] - gradient
                least = max(1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)), LEAST_CURVATURE)
                if step @ change > least:
                    model.update(step, change)
                return found
        model.reset()
    return None


def _line_search(
    evaluate: Callable[[Array], Evaluation],
    point: Array,
    value: float,
    direction: Array,
    slope: float,
    step: float,
    max_trials: int,
) -> tuple[Array, float, Array] | None:
    """Step with sufficient decrease and, if `max_trials` suffice, the weak Wolfe curvature condition.

    Bracketing by bisection and doubling needs no smoothness and tolerates infinite values.
    """
    low, high, best = 0.0, np.inf, None
    for _ in range(max_trials):
        trial = point + step * direction
        there = evaluate(trial)
        if not there.value <= value + SUFFICIENT_DECREASE * step * slope:  # also when it is not a number
            high = step
            step = _shorter(low, step, value, there.value, slope)
        else:
            gradient = there.gradient()
            if best is None or there.value < best[1]:
                best = (trial, there.value, gradient)
            if gradient @ direction >= CURVATURE * slope or step > 1e6:
                return trial, there.value, gradient
            low = step
            step = 2.0 * step if np.isinf(high) else 0.5 * (low + high)
        if np.isfinite(high) and high - low <= 1e-14 * high:
            break
    return best


def _shorter(low: float, step: float, value: float, trial_value: float, slope: float) -> float:
    """Minimizer of the parabola through what is known, kept inside ``[low, step]``."""
    if low > 0.0 or not np.isfinite(trial_value):
        return 0.5 * (low + step)
    minimizer = -0.5 * slope * step * step / (trial_value - value - slope * step)
    return min(max(minimizer, 0.05 * step), 0.6 * step)
