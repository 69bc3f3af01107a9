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

    def landmark_error(self) -> tuple[float, float]:
        """How much of the learned kernel its landmarks do not see: what the certificate knows nothing of.

        Every row has an image in the feature space of the learned kernel, and what landmarks see of it is another point
        there. Both numbers are squared distances between the two, relative to the mean of squared lengths of images, of
        their distances from their mean where an intercept makes that free. Computed at the first call, in time and
        blocks of memory as one look at the features of all rows.

        Returns
        -------
        share : float
            The mean over all rows, between 0 and 1. Where what is seen are projections, and without an intercept, that
            is ``1 - trace(K_landmarks) / trace(K)``.
        largest : float
            The largest one of a row; it exceeds 1 at a row far from all others that no landmark is near to.

        Raises
        ------
        InvalidInputError
            Where there are no landmarks: for problems other than :class:`KernelLearning` over
            ``Tessellated(landmarks=...)`` or ``Candidates(landmarks=...)``.

        Examples
        --------
        >>> import numpy as np, convexkernels as ck
        >>> X = np.random.default_rng(0).random((300, 2))
        >>> y = np.sin(6.0 * X[:, 0]) * X[:, 1]
        >>> few, many = (
        ...     ck.KernelLearning(ck.Tessellated(1, 0, landmarks=n), ck.LeastSquares(0.1), X, y).solve()
        ...     for n in (10, 100)
        ... )
        >>> few.landmark_error()[0] > 0.1 > many.landmark_error()[0]
        True
        """
        measure = getattr(self.problem, "landmark_error", None)
        if measure is None:
            raise InvalidInputError(
                f"landmark_error: {self.problem!r} has no landmarks; KernelLearning over Tessellated(landmarks=...) or "
                "Candidates(landmarks=...) has them."
            )
        if "landmark error" not in self.derived:
            self.derived["landmark error"] = measure(self.theta)
        share, largest = self.derived["landmark error"]
        return share, largest

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
