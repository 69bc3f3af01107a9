"""The answer to a problem: a point, its certificate, and how it was found."""

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap, Stationarity
from convexkernels.exceptions import InvalidInputError
from convexkernels.notebook import html_table


class Status(Enum):
    """Why a solver stopped; the value is the sentence a user reads."""

    OPTIMAL = "the certificate proves the tolerance"
    STATIONARY = "a stationary point of a non-convex problem was reached; it may not be the best one"
    COMPLETED = "all steps of the schedule were taken; a longer one may find a better point"
    ITERATION_LIMIT = "the iteration limit came first; the certificate says how good the point is"
    TIME_LIMIT = "the time limit came first; the certificate says how good the point is"
    EARLY_STOPPED = "what rows left out say stopped improving by more than they can tell; the best point was kept"
    INTERRUPTED = "interrupted by the user; the best certified point so far was kept"
    STALLED = "no step improves the point any more at working precision"
    ROUNDED = "the gap is rounding: float64 holds no more digits of numbers so far apart; rescale features, C or lam"
    NUMERICAL_ERROR = "the arithmetic broke down; the best certified point so far was kept"
    UNPROVEN = "learning came to its end; nothing is proven about how good the answer is"
    INFEASIBLE = "no point satisfies the constraints"

    @property
    def is_success(self) -> bool:
        """Whether the method reached what it promises."""
        return self in (Status.OPTIMAL, Status.STATIONARY)


@dataclass(frozen=True)
class Record:
    """One line of the history of a run."""

    iteration: int
    upper: float
    lower: float
    seconds: float

    @property
    def relative_gap(self) -> float:
        """Relative gap at that moment."""
        return DualityGap(self.upper, self.lower).relative_gap


@dataclass(frozen=True, eq=False)
class Solution:
    """Answer to a problem, with what is known about it.

    Attributes
    ----------
    problem : object
        The problem that was solved; it made the certificate.
    theta : ndarray
        What was learned: the parameter of the kernel in its family (weights, the matrix P), for curved families their
        unknowns, followed by log lam where the criterion learns it.
    certificate : DualityGap or Stationarity
        Recomputed from `problem`: bounds on the optimal value of a convex problem, or how nearly a point of another
        is stationary, which says nothing about other points.
    status : Status
    n_iter : int
    seconds : float
    history : tuple of Record
        For problems that are not convex ``lower`` is -inf.
    solver : str
        Name of the solver that proposed the point.
    alpha : ndarray of shape (n_outputs, m) or (m,), optional
        Dual variables behind the upper bound of a convex problem.
    witness : ndarray, same shape as `alpha`, optional
        Dual feasible point behind the lower bound (often `alpha` itself).
    restarts : ndarray of shape (n_restarts,)
        Final value of each start of a search with several, inf where it was dropped; else empty.
    trace : dict of str to ndarray
        What else the solver saw on its way, all of one length.
    derived : dict
        What was computed from the answer when it was first asked for.
    """

    problem: Any = field(repr=False)
    theta: Any = field(repr=False)
    certificate: DualityGap | Stationarity
    status: Status
    n_iter: int
    seconds: float
    history: tuple[Record, ...] = field(repr=False)
    solver: str
    alpha: Any = field(default=None, repr=False)
    witness: Any = field(default=None, repr=False)
    restarts: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    trace: dict[str, Array] = field(default_factory=dict, repr=False)
    derived: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def value(self) -> float:
        """Objective at `theta`."""
        return self.certificate.value

    @property
    def kernel(self) -> Any:
        """The learned kernel, a :class:`convexkernels.Kernel`."""
        return self.problem.kernel(self.theta)

    @property
    def intercept(self) -> Any:
        """Intercept b of ``f(x) = sum_i w_i k(x_i, x) + b`` with the learned `kernel`, per output."""
        return self.problem.intercept(self.theta, self.alpha)

    def decision_function(self, X: Any) -> Array:
        """Evaluate the learned functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self.function.decision_function(X)

    @cached_property
    def function(self) -> Any:
        """The learned functions, kept with their support vectors only: a :class:`DecisionFunction`."""
        return self.problem.function(self.theta, self.alpha)

    def _repr_html_(self) -> str:
        """What notebooks show: the answer and what is known about it, as a small table."""
        rows = {
            "problem": repr(self.problem),
            "certificate": str(self.certificate),
            "status": f"{self.status.name.lower().replace('_', ' ')}: {self.status.value}",
            "found by": f"{self.solver}, {self.n_iter} iterations, {self.seconds:.3g} s",
        }
        return html_table("Solution", rows)

    def __getstate__(self) -> dict[str, Any]:
        # The status by its name: not every format of stored models knows enumerations.
        return {**self.__dict__, "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=Status[state["status"]])

    def verify(self, rigorous: bool = False) -> DualityGap | Stationarity:
        """Recompute the certificate from the problem and the stored point.

        Parameters
        ----------
        rigorous : bool
            Bounds that hold in exact arithmetic, a :class:`RigorousGap`, for problems over a convex family.

        Raises
        ------
        InvalidInputError
            With ``rigorous=True``, where there are no such bounds: the message names the problem, the family, the
            kernel or the loss.
        """
        if not rigorous:
            return self.problem.certificate(self.theta, self.alpha, self.witness)
        prove = getattr(self.problem, "rigorous_certificate", None)
        if prove is None:
            raise InvalidInputError(
                f"rigorous=True: {type(self.problem).__name__} has no bounds in exact arithmetic, its certificate says "
                f"'{self.certificate}'; KernelLearning over a convex family has them."
            )
        return prove(self.theta, self.alpha, self.witness)
