"""Learning in a curved family: an outer problem around convex inner ones."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.certificate import Stationarity
from convexkernels.checkpoint import Checkpoint
from convexkernels.clock import Clock
from convexkernels.criteria.base import BoundCriterion, Bounds, Criterion, CriterionValue
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.families.curved.base import Chart, CurvedFamily, CurvedGram
from convexkernels.families.curved.convex import Convex
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.narrower_start import narrower_start
from convexkernels.validation import check_points, check_weights

if TYPE_CHECKING:
    from convexkernels.progress import Silent
    from convexkernels.solution import Solution

Rows = Index

# Rows that certificates look at, where the family means the same kernel on any rows.
CERTIFICATE_ROWS = 1500


class OuterLearning:
    """``minimize over z, lam   criterion(loss at lam, K(z), y) + penalty(z)``, K(z) from a curved family.

    For fixed (z, lam) everything the criterion asks for is a convex problem, solved exactly. The whole is not convex:
    answers are stationary at best.

    Parameters
    ----------
    family : CurvedFamily or Family
        A convex family is searched by a smooth parametrization of its parameter.
    loss : Loss
        Its regularization parameter is where a criterion that learns lam begins.
    criterion : Criterion
    X : array-like of shape (m, n)
    y : array-like of shape (m,) or (m, n_outputs)
        What the loss asks for. Outputs share the kernel and lam.
    sample_weight : array-like of shape (m,), optional
        Weights > 0 that multiply the losses.
    offset : array-like of shape (n_outputs,), optional
        What the functions learn deviations from, for losses of differences; 0 when not given.
    bounds : (low, high), optional
        Predictions are clipped to this range, also where the criterion compares them with targets.

    Attributes
    ----------
    gram_set : CurvedGramSet
        The family on the rows.
    Y : ndarray of shape (n_outputs, m)
        Targets without their offset.
    n_unknowns : int
        Length of a point: z, and log lam where the criterion learns it.
    """

    def __init__(
        self,
        family: CurvedFamily | Family,
        loss: Loss,
        criterion: Criterion,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        if isinstance(family, Family):
            family = Convex(family, modulo_constants=loss.intercept)
        _check_parts(family, loss, criterion)
        self.family, self.loss, self.criterion = family, loss, criterion
        points = check_points(X)
        Y = loss.targets(y, len(points))
        rows = loss.rows_to_learn(points, Y)
        self.single = np.ndim(y) == 1
        self.X, weights = points[rows], check_weights(sample_weight, len(points), open_low=True)[rows]
        self.offset = np.zeros(len(Y)) if offset is None else np.asarray(offset, dtype=np.float64)
        self.Y, self.weights = np.ascontiguousarray(Y[:, rows] - self.offset[:, None]), weights
        self.bounds: Bounds = None
        if bounds is not None:
            self.bounds = (bounds[0] - self.offset[:, None], bounds[1] - self.offset[:, None])
        self.gram_set = family.on(self.X)
        self._forget()

    def _forget(self) -> None:
        """Nothing has been evaluated, and no certificate asked for."""
        self._bound: BoundCriterion | None = None
        self._certified: tuple[Array, BoundCriterion] | None = None

    def __repr__(self) -> str:
        name = type(self.criterion).__name__
        return f"OuterLearning({self.family!r}, {self.loss!r}, {name}, {self.m} points)"

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_unknowns(self) -> int:
        """Number of unknowns of the family on these rows, and log lam where it is learned."""
        return int(self.gram_set.n_unknowns) + int(self.criterion.learns_lam)

    def on_rows(self, rows: Rows) -> OuterLearning:
        """The problem on some of the rows; the family is restricted to them anew."""
        other = copy(self)
        other.X, other.weights = self.X[rows], self.weights[rows]
        other.Y, other.gram_set = np.ascontiguousarray(self.Y[:, rows]), self.gram_set.restrict(rows)
        other._forget()
        return other

    def of_rows(self, X: Array, Y: Array, weights: Array) -> OuterLearning:
        """The problem of other rows, with targets without the offset, for a family that means the same on any rows."""
        other = copy(self)
        other.X, other.Y, other.weights, other.gram_set = X, Y, weights, self.family.on(X)
        other._forget()
        return other

    def has_rows_of(self, other: OuterLearning) -> bool:
        """Whether points and targets are those of another problem."""
        return np.array_equal(self.X, other.X) and np.array_equal(self.Y, other.Y)

    def with_loss(self, loss: Loss, family: CurvedFamily | None = None) -> OuterLearning:
        """The same problem with another loss for the same targets, and perhaps another weight of the penalty."""
        other = copy(self)
        other.loss = loss
        other._forget()
        if family is not None:
            other.family, other.gram_set = family, self.gram_set.with_family(family)
        return other

    # -- objective ---------------------------------------------------------------------------------

    def bind(self, seed: int = 0, dtype: Any = np.float64) -> BoundCriterion:
        """The criterion on these rows; `seed` deals out the folds."""
        arguments = {"bounds": self.bounds, "seed": seed, "dtype": dtype}
        return self.criterion.on(self.loss, self.Y, self.weights, **arguments)

    def evaluate(
        self, chart: Chart, u: Array, bound: BoundCriterion | None = None, dtype: Any = np.float64
    ) -> OuterEvaluation:
        """The objective at coordinates `u` of a chart, followed by log lam where it is learned."""
        if bound is None:
            bound = self._bound = self.bind() if self._bound is None else self._bound
        return OuterEvaluation(self, chart, np.asarray(u, dtype=np.float64), bound, dtype)

    def split(self, theta: Any) -> tuple[Array, float]:
        """(z, log lam) of a point; the lam of the loss where the criterion does not learn it."""
        point = np.asarray(theta, dtype=np.float64)
        if not self.criterion.learns_lam:
            return point, float(np.log(self.loss.lam))
        return point[:-1], float(point[-1])

    def joined(self, z: Array, log_lam: float) -> Array:
        """The point of (z, log lam)."""
        return np.append(z, log_lam) if self.criterion.learns_lam else z

    def start(self, random_state: Any = None, k: int = 0) -> Array:
        """Initial point number `k`."""
        return self.joined(self.gram_set.start(np.random.default_rng(random_state), k), float(np.log(self.loss.lam)))

    def best_start(self, random_state: Any = None, k: int = 0) -> Array:
        """Initial point number `k`, or that of a narrower kernel, with a lam, where least squares err clearly less.

        At rows left out one by one, of some of the rows. Where functions change more quickly than all kernels near a
        point can, no slope leads away from it.
        """
        return narrower_start(self, self.start(random_state, k))

    def check(self, theta: Any) -> Array:
        """A point to begin with, which has a kernel, or a refusal."""
        point = np.array(theta, dtype=np.float64)
        if point.shape != (self.n_unknowns,) or not np.isfinite(point).all():
            raise InvalidInputError(
                f"start must be {self.n_unknowns} finite numbers, the unknowns of the family"
                + (" and log lam" if self.criterion.learns_lam else "")
                + f", got shape {point.shape}."
            )
        self._at(point)
        return point

    def certificate(self, theta: Any, alpha: Any = None, witness: Any = None) -> Stationarity:
        """Value and gradient at a point, on all rows or on a fixed sample of them."""
        here = self._looked_at()
        z, log_lam = self.split(theta)
        chart = here.gram_set.chart(z)
        u = here.joined(chart.u, log_lam)
        bound = here.bind()
        there = here.evaluate(chart, u, bound)
        if here is self:
            self._certified = np.array(theta, dtype=np.float64), bound
        if not np.isfinite(there.value):
            return Stationarity(float("inf"), float("inf"))
        return Stationarity.at(there.value, there.gradient(), u)

    def along_lam(self, theta: Any, lams: Array) -> Array:
        """Values of the criterion with the kernel of a point for several lam, on the rows of its certificate."""
        here = self._looked_at()
        there = here.gram_set.at(self.split(theta)[0])
        return np.full(len(lams), np.inf) if there is None else here.bind().along(there.gram(), lams)

    def _looked_at(self) -> OuterLearning:
        """The problem on all rows or on a fixed sample of them."""
        if not (self.gram_set.draws_rows and self.m > CERTIFICATE_ROWS):
            return self
        return self.on_rows(np.sort(np.random.default_rng(0).permutation(self.m)[:CERTIFICATE_ROWS]))

    # -- answers -----------------------------------------------------------------------------------

    def kernel(self, theta: Any) -> Kernel:
        """The kernel of a point."""
        return self.gram_set.kernel(self.split(theta)[0])

    def stated_at(self, theta: Any) -> dict[str, Any]:
        """Loss, offset, bounds and device of a point, as `FixedKernel` takes them: outputs have the same bounds."""
        bounds = None
        if self.bounds is not None:
            low, high = (float((end + self.offset[:, None])[0, 0]) for end in self.bounds)
            bounds = (low, high)
        loss = self.loss.at(self.bind().lam(self.split(theta)[1]))
        return {"loss": loss, "offset": self.offset, "bounds": bounds, "device": self.family.device}

    def train(self, theta: Any, tol: float = 1e-9) -> Fit:
        """The convex problem at a point, on all rows, not again where a certificate has solved it to `tol`."""
        there, certified = self._at(theta), self._certified
        if certified is not None and np.array_equal(certified[0], theta):
            known = certified[1].known(there.gram())
            if known is not None and known.upper - known.value <= tol * abs(known.upper):
                return known
        return self.bind().train(there.gram(), self.split(theta)[1], tol)

    def _at(self, theta: Any) -> CurvedGram:
        """The kernel matrix of a point, or a refusal."""
        z = self.split(theta)[0]
        there = self.gram_set.at(z)
        if there is None:
            raise InvalidInputError(
                f"a point with entries from {z.min():.3g} to {z.max():.3g} has no kernel of {self.family!r}; pass one "
                "whose entries are finite and within its bounds (start=None draws one), or rescale the features."
            )
        return there

    def function(self, theta: Any, alpha: Any = None) -> DecisionFunction:
        """The function of a point, trained on all rows."""
        found = self.train(theta)
        W, b = found.multiples[:, None] * found.W, found.multiples * found.b + self.offset
        return self.function_of(theta, W, b)

    def function_of(self, theta: Any, W: Array, b: Array) -> DecisionFunction:
        """The function with the kernel of a point and these coefficients, shapes (n_outputs, m) and (n_outputs,)."""
        bounds = self.bounds
        if bounds is not None:
            bounds = (bounds[0] + self.offset[:, None], bounds[1] + self.offset[:, None])
        return DecisionFunction.of_kernel(self.kernel(theta), self.X, W, b, single=self.single, bounds=bounds)

    def intercept(self, theta: Any, alpha: Any = None) -> Any:
        """Intercept that goes with `kernel`: a float, or shape (n_outputs,) for a matrix y."""
        b = self.function(theta).b
        return float(b[0]) if self.single else b

    # -- solving -----------------------------------------------------------------------------------

    def solve(
        self,
        solver: Any = "auto",
        *,
        start: Any = None,
        restarts: int = 1,
        tol: float = 1e-4,
        max_time: float | None = None,
        max_iter: int | None = None,
        progress: bool | Silent = False,
        checkpoint: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Solution:
        """Search for a point.

        Parameters
        ----------
        solver : str or solver object
            ``"quasi-newton"`` on all rows, ``"stochastic"`` on rows drawn anew, ``"annealing"`` as published for trees,
            or an object with settings. ``"auto"`` draws rows where there are many and the family allows it.
        start : ndarray of shape (n_unknowns,), optional
            A point to continue from, for example ``solution.theta``.
        restarts : int, >= 1
            Starts of quasi-Newton searches, of which the best is kept: :class:`Restarts`.
        tol : float, > 0
            Relative residual at which a point counts as stationary.
        max_time : float, optional
            Seconds after which the best point so far is returned.
        max_iter : int, optional
            Steps; the solver's own limit when not given.
        progress : bool or progress object
        checkpoint : path, optional
            A file that the point is written to, and gone on from, as :meth:`KernelLearning.solve` says.
        random_state : int, numpy.random.Generator or None
        n_jobs : int, optional
            Processes that share the starts.

        Returns
        -------
        Solution
            With a :class:`Stationarity` and, at best, status STATIONARY.
        """
        # Solvers see problems, so this layer cannot import them at the top.
        from convexkernels.solvers import search

        clock = Clock(max_time, progress, Checkpoint.of(checkpoint, self.X, self.Y, self.weights))
        settings: dict[str, Any] = {
            "start": start,
            "restarts": restarts,
            "random_state": random_state,
            "n_jobs": n_jobs,
        }
        return search(self, solver, clock, tol=tol, max_iter=max_iter, **settings)


class OuterEvaluation:
    """The objective at one point, inf outside of the domain; the gradient is computed on demand."""

    value: float = np.inf

    def __init__(self, problem: OuterLearning, chart: Chart, u: Array, bound: BoundCriterion, dtype: Any) -> None:
        self.problem = problem
        coordinates, log_lam = problem.split(u)
        at = chart.at(coordinates, dtype) if np.isfinite(u).all() else None
        if at is None:
            return
        self.at: CurvedGram = at
        self.criterion: CriterionValue = bound(at.gram(lower=problem.criterion.lower), log_lam)
        value = self.criterion.value + at.penalty
        self.value = value if np.isfinite(value) else np.inf

    def gradient(self) -> Array:
        """Gradient in the coordinates, and in log lam where it is learned."""
        M, slope = self.criterion.slopes()
        return self.problem.joined(self.at.gradient(M, lower=self.problem.criterion.lower), slope)


def _check_parts(family: Any, loss: Any, criterion: Any) -> None:
    if not isinstance(family, CurvedFamily):
        raise InvalidInputError(f"family must be a CurvedFamily such as Trees(8), or a Family, got {family!r}.")
    if not isinstance(loss, Loss):
        raise InvalidInputError(f"loss must be a Loss such as LeastSquares(lam=0.1), got {loss!r}.")
    if not isinstance(criterion, Criterion):
        raise InvalidInputError(f"criterion must be a Criterion such as LeaveOneOut(), got {criterion!r}.")
    reason = criterion.accepts(loss)
    if reason is not None:
        raise InvalidInputError(f"criterion {type(criterion).__name__} does not fit {loss!r}: {reason}.")
