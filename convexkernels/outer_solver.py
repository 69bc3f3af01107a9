"""What a method for the outer problem is: settings, a first iterate, and steps; the loop is the driver's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.checkpoint import Piece
from convexkernels.solution import Status


@dataclass(eq=False)
class Iterate:
    """What a solver proposes after a step.

    Attributes
    ----------
    theta : ndarray
        A point.
    alpha : ndarray or None
        Dual variables there, for convex problems.
    upper, lower : float
        The problem's bounds there (`lower` from `alpha`, or from `witness`); of a problem that is not convex its value
        and -inf.
    memory : object
        The solver's own state.
    witness : ndarray, optional
        Dual variables behind `lower` where they are not `alpha`.
    status : Status, optional
        A reason of the solver's own to stop: STALLED where it cannot move, NUMERICAL_ERROR where arithmetic broke down.
    share : float
        How much of its work is done, where the solver knows.
    """

    theta: Array
    alpha: Array | None
    upper: float
    lower: float = -np.inf
    memory: Any = field(default=None, repr=False)
    witness: Array | None = None
    status: Status | None = None
    share: float = 0.0

    @property
    def relative_gap(self) -> float:
        """Relative gap between the bounds."""
        return DualityGap(self.upper, self.lower).relative_gap

    def inner_tol(self, least: float = 1e-12, share: float = 0.02) -> float:
        """How exactly inner problems are worth solving: to a fiftieth of the gap that is still open."""
        return float(np.clip(share * self.relative_gap, least, 1e-3))


class OuterSolver(ABC):
    """A method for the outer problem: settings, and two verbs. The loop is the driver's.

    Attributes
    ----------
    name : str
    max_iter : int
        Steps after which the driver stops, unless it is told another number.
    values_compare : bool
        Whether the values of two iterates can be compared: not where each step sees other rows. The last iterate is
        then the answer, unless the certificate of the first one has the lower value.
    certificates_compare : bool
        Whether those certificates can be compared: not where steps see rows of another kind than certificates do.
    is_scheduled : bool
        Whether `max_iter` is a schedule that steps are made for: a search that comes to its end is complete, not cut.
    value_name : str
        What the value of an iterate is called in reports.
    long_steps : bool
        Whether every step is worth a line of the report.
    passes_kinks : bool
        Whether it reaches a kernel that is singular on the data, at which J has kinks.
    sublinear : bool
        Whether gaps fall so slowly at the end that it is a cross-check.
    initial, random_state, seed
        A point to begin with and the randomness of a search; searches of one problem that differ in a seed are known
        apart by a checkpoint.
    piece : Piece
        What is known of the work from before, and where the solver may keep what it finds on its way.
    """

    name: str
    max_iter: int = 10_000
    values_compare: bool = True
    certificates_compare: bool = True
    is_scheduled: bool = False
    value_name: str = "value"
    long_steps: bool = False
    passes_kinks: bool = False
    sublinear: bool = False
    initial: Any = None
    random_state: Any = None
    seed: int | None = None
    piece: Piece = Piece(None)

    @property
    def settings(self) -> dict[str, Any]:
        """What it was asked for, by which its work is known again; nothing where `prepare` fills what it has."""
        return {} if hasattr(self, "prepare") else vars(self)

    def accepts(self, problem: Any) -> str | None:
        """None when the solver can solve `problem`, else the reason why not."""
        return None

    def begin_at(self, points: list[Array], rng: np.random.Generator) -> None:
        """Take a point to begin with (of several the last) and randomness, where the solver has none of its own."""
        if points and self.initial is None:
            self.initial = points[-1]
        if self.random_state is None:
            self.random_state = rng

    def go_on(self, iterate: Iterate, n_steps: int) -> None:
        """Begin where an earlier run has stopped after so many steps, if that is of use."""
        self.initial = iterate.theta

    @abstractmethod
    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        """First iterate."""

    @abstractmethod
    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """Next iterate; `tol` is the relative gap or residual asked for, `deadline` a ``time.monotonic()`` value."""

    def findings(self, iterate: Iterate) -> dict[str, Any]:
        """What the solution has besides its point: ``restarts``, ``trace``, or another ``n_iter``."""
        return {}


class Kept(OuterSolver):
    """A point that is the answer because an interrupt has ended what was to come before the search."""

    name = "interrupted"

    def __init__(self, theta: Array) -> None:
        self.theta = theta

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        return Iterate(self.theta, None, np.inf, status=Status.INTERRUPTED)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        return iterate
