"""Learning the weights of a hierarchical Gaussian kernel around convex kernel machines."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.certificate import Stationarity
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError
from convexkernels.kernels.hierarchical_gaussian import HierarchicalGaussian
from convexkernels.kernels.hierarchical_tree import KernelTree
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.outer.hierarchical_architecture import make_tree, start_point
from convexkernels.outer.hierarchical_inner import HeldOut, Judge, epsilon_judge, hinge_judge, squared_judge
from convexkernels.outer.hierarchical_machine import HierarchicalMachine, train_machine
from convexkernels.outer.hierarchical_parts import split_rows
from convexkernels.outer.hierarchical_published import PAPER_SCHEDULE, Schedule, search_as_published
from convexkernels.outer.hierarchical_risk import LeaveOneOut
from convexkernels.outer.hierarchical_search import Found, Watch, descend_on_all, descend_on_samples, load_checkpoint
from convexkernels.outer.solution import OuterSolution
from convexkernels.solution import Status
from convexkernels.threads import threads_for
from convexkernels.validation import check_labels_finite, check_number, check_points, check_whole_number

__all__ = ["LOSS_NAMES", "HierarchicalLearning", "HierarchicalSolution"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

LOSS_NAMES = ("least_squares", "hinge", "epsilon_insensitive")
SEARCHES = ("hypergradient", "published")

# Rows of a step. On few rows, too, drawing a third of them anew for every step does better than descending on all
# (`outer.hierarchical_search` has numbers).
SMALLEST_SAMPLE, LARGEST_SAMPLE = 50, 1500
# A search has to lower the risk by more than this fraction to replace its start.
LEAST_GAIN = 1e-9


@dataclass(frozen=True, eq=False)
class HierarchicalSolution(OuterSolution):
    """An `OuterSolution` whose point is ``(log w, log lam)``.

    Attributes
    ----------
    risks : dict of str to ndarray
        What the search saw on its way, all of one length: ``"seconds"``, and for the published search ``"D1"``,
        ``"D2"``, ``"D3"`` (the risks on the three parts), for the other one ``"held out"``.
    """

    risks: dict[str, Array] = field(default_factory=dict, repr=False)


class HierarchicalLearning:
    """Find the weights w of a hierarchical Gaussian kernel, and lam, by the risk of machines on rows they do not know.

    For fixed weights the machine is convex, ``min over f of sum_i s_i loss(y_i, f(x_i)) + lam |f|^2``. Its risk on
    other rows is not convex in the weights: answers are stationary at best.

    Parameters
    ----------
    architecture : KernelTree, int or nested list
        See :func:`convexkernels.outer.hierarchical_architecture.make_tree`.
    loss : {"least_squares", "hinge", "epsilon_insensitive"}
        Without intercept, as in the paper; least squares learns the deviation from the mean target.
    X : array-like of shape (m, n)
        Of comparable scale; the paper has [-1, 1].
    y : array-like of shape (m,) or (m, outputs)
        Outputs share the kernel and lam. Hinge wants -1 and 1.
    sample_weight : array-like of shape (m,), optional
    clip : float, optional
        Predictions are clipped to [-clip, clip], also when the search judges them.
    epsilon : float, >= 0
        Of the epsilon-insensitive loss.
    folds : "leave-one-out" or int
        How least squares judges weights: every row by the machine that has not seen it, in closed form. With a number,
        and for the other losses, folds of that number are held out in turn; 1 is a single third of the rows.
    subsets : {"all", "random"} or list of lists
        What the nodes of a numbered architecture see.
    random_state : int, numpy.random.Generator or None
        For random subsets.
    """

    def __init__(
        self,
        architecture: Any,
        loss: str,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        clip: float | None = None,
        epsilon: float = 0.05,
        folds: Any = None,
        subsets: Any = "all",
        random_state: Any = None,
    ) -> None:
        if loss not in LOSS_NAMES:
            raise InvalidInputError(f"loss must be one of {LOSS_NAMES}, got {loss!r}.")
        self.loss_name = loss
        self.X = check_points(X)
        m, n = self.X.shape
        Y = check_labels_finite(y, m)
        self.single = Y.ndim == 1
        self.Y = Y[:, None] if self.single else Y
        self.weights = (
            np.ones(m) if sample_weight is None else check_labels_finite(sample_weight, m, name="sample_weight")
        )
        if self.weights.ndim != 1 or not (self.weights > 0.0).all():
            raise InvalidInputError("sample_weight must be one number > 0 per row; leave out rows of weight 0.")
        self.clip = None if clip is None else check_number("clip", clip, low=0.0, open_low=True)
        self.epsilon = check_number("epsilon", epsilon, low=0.0)
        default = "leave-one-out" if loss == "least_squares" else 1
        self.folds = default if folds is None else folds
        if self.folds == "leave-one-out" and loss != "least_squares":
            raise InvalidInputError(
                f"folds='leave-one-out' is a closed form for least squares, not for {loss}; name a number."
            )
        if self.folds != "leave-one-out":
            check_whole_number("folds", self.folds, low=1)
        rng = np.random.default_rng(random_state)
        self.tree = architecture if isinstance(architecture, KernelTree) else make_tree(architecture, n, subsets, rng)
        if loss == "hinge":
            self.loss(1.0).targets(self.Y, m)
        self.offset = np.zeros(self.Y.shape[1])
        if loss == "least_squares":
            self.offset = self.weights @ self.Y / self.weights.sum()

    def __repr__(self) -> str:
        layers = f"depth {self.tree.depth}, {len(self.tree.leaves)} leaves, {self.tree.n_weights} weights"
        return f"HierarchicalLearning({layers}, {self.loss_name}, {self.X.shape[0]} rows)"

    # -- objectives --------------------------------------------------------------------------------

    def loss(self, lam: float) -> Loss:
        """The loss at a regularization; prices are C = 1 / (2 lam)."""
        if self.loss_name == "least_squares":
            return LeastSquares(lam, intercept=False)
        if self.loss_name == "hinge":
            return Hinge(0.5 / lam, intercept=False)
        return EpsilonInsensitive(0.5 / lam, self.epsilon, intercept=False)

    @property
    def judge(self) -> Judge:
        """The loss of predictions, with its slope."""
        judges = {"least_squares": squared_judge, "hinge": hinge_judge}
        return judges.get(self.loss_name) or epsilon_judge(self.epsilon)

    def risk(self, rows: Rows | None = None, *, seed: int = 0, dtype: Any = np.float64) -> LeaveOneOut | HeldOut:
        """The risk on some of the rows, a function of ``(log w, log lam)``.

        Parameters
        ----------
        rows : ndarray of int, optional
            All rows when not given.
        seed : int
            Of the folds.
        dtype : numpy dtype
            For leave-one-out.
        """
        rows = np.arange(len(self.X)) if rows is None else rows
        X, Y, weights = self.X[rows], self.Y[rows], self.weights[rows]
        if self.folds == "leave-one-out":
            return LeaveOneOut(self.tree, X, Y, weights, self.clip, self.offset, dtype)
        folds = split_rows(Y, int(self.folds), np.random.default_rng(seed))
        return HeldOut(self.tree, X, Y, weights, folds, self.loss, self.judge, self.clip, self.offset)

    def start(self, lam: float = 0.1, random_state: Any = None) -> Array:
        """A point to start from."""
        return start_point(self.tree, self.X, lam, np.random.default_rng(random_state))

    # -- answers -----------------------------------------------------------------------------------

    def kernel(self, point: Array) -> HierarchicalGaussian:
        """The kernel of a point."""
        return HierarchicalGaussian.from_tree(self.tree, np.exp(point[:-1]))

    def machine(self, point: Array, rows: Rows | None = None, Y: Array | None = None) -> HierarchicalMachine:
        """The machine of a point, trained on all rows, or on some of them with other targets."""
        loss, squares = self.loss(float(np.exp(point[-1]))), np.exp(2.0 * point[:-1])
        X, weights, offset = self.X, self.weights, self.offset
        if rows is not None and Y is not None:
            X, weights = X[rows], weights[rows]
            offset = weights @ Y / weights.sum() if self.loss_name == "least_squares" else np.zeros(Y.shape[1])
        return train_machine(self.tree, squares, X, self.Y if Y is None else Y, weights, loss, offset, self.clip)

    def decision_function(self, point: Array, X: Any) -> Array:
        """Values at new points of the machine of a point, trained on all rows."""
        F = self.machine(point).values(check_points(X, n_features=self.X.shape[1]))
        return F[:, 0] if self.single else F

    def certificate(self, point: Array) -> Stationarity:
        """Risk and gradient norm at a point, on all rows or on a fixed sample of 1,500."""
        there = self.risk(self._certificate_rows())(point)
        if not np.isfinite(there.value):
            return Stationarity(float("inf"), float("inf"))
        return Stationarity(there.value, float(np.linalg.norm(there.gradient())), max(there.value, 1e-300))

    def _certificate_rows(self) -> Rows:
        """The rows that certificates look at: the same ones at every call."""
        m = len(self.X)
        return (
            np.arange(m) if m <= LARGEST_SAMPLE else np.sort(np.random.default_rng(0).permutation(m)[:LARGEST_SAMPLE])
        )

    def solve(
        self,
        search: str = "hypergradient",
        *,
        start: Array | None = None,
        lam: float = 0.1,
        search_size: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        max_time: float | None = None,
        random_state: Any = None,
        progress: Any = False,
        checkpoint: Any = None,
        schedule: Schedule = PAPER_SCHEDULE,
    ) -> HierarchicalSolution:
        """Search for weights.

        Parameters
        ----------
        search : {"hypergradient", "published"}
            Exact gradients of the risk in all weights and in lam, or Algorithm 1 of the paper.
        start : ndarray of shape (n_weights + 1,), optional
            A point to continue from, for example ``solution.point``.
        lam : float, > 0
            At the start.
        search_size : int, optional
            Rows that every step of the hypergradient search looks at: a third of them, but 50 at least and 1,500 at
            most, when not given. With no more rows than that, quasi-Newton steps on all of them.
        max_iter : int
            Steps of the hypergradient search.
        tol : float
            Relative gradient at which a point counts as stationary.
        max_time : float, optional
            Seconds after which the best point so far is returned.
        random_state : int, numpy.random.Generator or None
        progress : bool or Progress
            Show where the search is and when it will be over.
        checkpoint : path, optional
            A file that the point is written to every few seconds, and read from when it is there at the start.
        schedule : Schedule
            The constants of the published search.

        Returns
        -------
        HierarchicalSolution
            Not worse than the start on the rows of the certificate; the start itself, with status STALLED, when the
            search found nothing better there.
        """
        if search not in SEARCHES:
            raise InvalidInputError(f"search must be one of {SEARCHES}, got {search!r}.")
        lam = check_number("lam", lam, low=0.0, open_low=True)
        if search_size is None:
            search_size = min(max(len(self.X) // 3, SMALLEST_SAMPLE), LARGEST_SAMPLE)
        search_size = check_whole_number("search_size", search_size, low=4)
        max_iter = check_whole_number("max_iter", max_iter, low=1)
        tol = check_number("tol", tol, low=0.0, open_low=True)
        if max_time is not None:
            check_number("max_time", max_time, low=0.0, open_low=True, remedy="Pass None for no limit.")
        rng = np.random.default_rng(random_state)
        begin = self.start(lam, rng) if start is None else self._checked(start)
        saved = None if checkpoint is None else load_checkpoint(checkpoint, len(begin))
        watch = Watch(max_time, progress, checkpoint)
        watch.show.start(f"{self!r}, {search} search")
        with threads_for(min(len(self.X), search_size)):
            return self._searched(search, begin, saved, search_size, max_iter, tol, schedule, rng, watch)

    def _searched(
        self,
        search: str,
        begin: Array,
        saved: Array | None,
        search_size: int,
        max_iter: int,
        tol: float,
        schedule: Schedule,
        rng: np.random.Generator,
        watch: Watch,
    ) -> HierarchicalSolution:
        """Run a search from a checked start, or from what was saved, and conclude."""
        start = begin if saved is None else saved
        if search == "published":
            found, risks = search_as_published(self, start, schedule, rng, watch)
        else:
            found = self._hypergradient(start, search_size, max_iter, tol, rng, watch)
            risks = {
                "seconds": np.array([record.seconds for record in found.history]),
                "held out": np.array([record.upper for record in found.history]),
            }
        solution = self._concluded(begin, found, tol, search, watch, risks)
        watch.tell(1.0, "done", solution.point, now=True)
        watch.show.finish(f"{solution.status.value}: {solution.certificate}")
        if solution.status in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.NUMERICAL_ERROR):
            warnings.warn(f"{solution.status.value}: {solution.certificate}.", ConvexKernelsWarning, stacklevel=3)
        return solution

    def _checked(self, start: Any) -> Array:
        point = np.array(start, dtype=np.float64)
        if point.shape != (self.tree.n_weights + 1,) or not np.isfinite(point).all():
            raise InvalidInputError(
                f"start must be {self.tree.n_weights} logarithms of weights and that of lam, all finite, got shape "
                f"{point.shape}."
            )
        return point

    def _hypergradient(
        self, start: Array, size: int, max_iter: int, tol: float, rng: np.random.Generator, watch: Watch
    ) -> Found:
        m = len(self.X)
        if m <= size:
            return descend_on_all(self.risk(seed=0), start, tol, max_iter, watch)

        def risk_on(rows: Rows) -> Any:
            return self.risk(rows, seed=int(rng.integers(2**31)), dtype=np.float32)

        return descend_on_samples(risk_on, m, size, start, max_iter, rng, watch)

    def _concluded(
        self, start: Array, found: Found, tol: float, search: str, watch: Watch, risks: dict[str, Array]
    ) -> HierarchicalSolution:
        """Compare with the start on the rows of the certificate; what the search believes does not count."""
        point, status = found.point, found.status
        certificate = self.certificate(point)
        if not np.array_equal(point, start):
            first = self.certificate(start)
            if not certificate.value <= first.value * (1.0 - LEAST_GAIN):
                point, certificate, status = start, first, Status.STALLED
        if certificate.holds(tol) and status is not Status.INTERRUPTED:
            status = Status.STATIONARY
        elif status is Status.STATIONARY:
            status = Status.STALLED
        return HierarchicalSolution(
            problem=self,
            point=point,
            certificate=certificate,
            status=status,
            n_iter=found.n_iter,
            seconds=watch.seconds,
            history=tuple(found.history),
            restart_values=np.array([certificate.value]),
            solver=search,
            risks=risks,
        )
