"""The rooms that every estimator walks through, from a table to a learned function and back."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.checkpoint import Checkpoint, Piece, checked_path
from convexkernels.clock import Clock
from convexkernels.driver import tell_cuts
from convexkernels.estimators.callbacks import told
from convexkernels.estimators.columns import labels_of
from convexkernels.estimators.learned import Learned
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.scikit_learn import BaseEstimator, CallbackSupportMixin, with_callbacks
from convexkernels.estimators.table import TrainingTable, read_points, read_table
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import InvalidInputError
from convexkernels.notebook import page_about
from convexkernels.validation import check_number, shown

# Seconds of a search when none are given, so that what comes after it ends within a minute, and the rows beyond which
# there are more of them, in proportion.
SECONDS, QUICK_ROWS = 55.0, 2000


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(Learned, CallbackSupportMixin, BaseEstimator, ABC):
    """Fit and evaluate functions whose kernel is learned.

    Subclasses are dataclasses whose fields are their parameters; they say how targets are encoded and features scaled,
    state the problem, and set attributes of their own.
    """

    max_time: float | str | None = "auto"
    checkpoint: Any = None
    verbose: bool = False

    # Whether targets may have several columns.
    _multi_output: ClassVar[bool] = False

    # -- hooks, in the order in which they are called ----------------------------------------------

    # The part of what losses add up to that functions can differ in: the rest is that of outliers.
    _usual_share = 1.0

    def _check_parameters(self) -> None:
        """Refuse what can be refused before there is data."""
        if self.max_time not in (None, "auto"):
            check_number("max_time", self.max_time, low=0.0, open_low=True, remedy="Pass 'auto', or None for no limit.")
        if self.checkpoint is not None:
            checked_path(self.checkpoint)
        jobs = getattr(self, "n_jobs", None)
        is_number = isinstance(jobs, Integral) and not isinstance(jobs, bool) and 0 < abs(int(jobs)) < 2**15
        if jobs is not None and not is_number:
            raise InvalidInputError(
                f"n_jobs must be None or a number of processes, -1 for one a processor, -2 for one less and so on, got "
                f"{shown(jobs)}."
            )

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        """The rows of positive weight, validated."""
        return read_table(self, X, y, sample_weight, multi_output=self._multi_output)

    @abstractmethod
    def _targets_of(self, table: TrainingTable) -> Targets:
        """How the targets of the training table are encoded."""

    def _scaling_of(self, X: Array) -> Scaling:
        """How features are scaled, from those of the training table."""
        return Scaling.none(X)

    @abstractmethod
    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> Any:
        """The problem of scaled and merged rows with encoded targets; ``targets.expanded(table.y)`` are its targets."""

    @abstractmethod
    def _solve(self, problem: Any, clock: Clock) -> Any:
        """The solution of the problem, in the time that is left."""

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        """Set attributes beyond ``solution_``, from the rows before scaling and merging and after it."""

    def _decide(self, clock: Clock) -> None:
        """Choose how predictions are read from the learned functions, in the time that is left."""

    def _usual(self, table: TrainingTable) -> tuple[Array, Array] | None:
        """Between what targets are no outliers, where the loss hardly feels these; None where all of them count."""
        return None

    def _finer(self, tol: float) -> float:
        """The relative gap at which that of the rows without outliers is `tol`, as far as rounding can be certified."""
        return tol

    def _clock(self, n_rows: int, since: Clock | None = None) -> Clock:
        """The limit of a fit to so many rows, since it began, and where its messages go."""
        limit = SECONDS * max(1.0, n_rows / QUICK_ROWS) if self.max_time == "auto" else self.max_time
        shown, checkpoint = told(self, bool(self.verbose)), self.__dict__.get("_checkpoint")
        return Clock(cast("float | None", limit), shown, checkpoint, since)

    def _kept_seed(self, drawn: int) -> int:
        """The seed of a fit: where chance has drawn it, the one that the checkpoint has begun with."""
        if isinstance(getattr(self, "random_state", None), int | np.integer):
            return drawn
        piece = Piece(self.__dict__.get("_checkpoint"), type(self).__name__, "seed")
        seed = int(piece.found.get("seed", drawn))
        piece.keep(seed=seed)
        return seed

    # -- the walk ----------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the functions that use it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers of magnitude at most 1e150, columns of text or of a data frame's categories. NaN, None and NA are
            missing values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            For classifiers labels of two classes or more, numbers or text. For regressors numbers; the functions of
            several outputs share one kernel.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 that multiply the loss; rows of weight 0 are as good as absent.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts; the message names the argument, the value found and the remedy.
        MemoryLimitError
            When the matrices would not fit the memory.
        """
        given = {"X": X, "y": y, "metadata": {} if sample_weight is None else {"sample_weight": sample_weight}}
        context = self._init_callback_context(max_subtasks=None)  # which outlives a fit that fails, to be torn down
        with whole_or_not_at_all(self):
            self._check_parameters()
            if context is not None:
                context.call_on_fit_task_begin(estimator=self, **given)
            self._walk(X, y, sample_weight)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, reconstruction_attributes={}, **given)
        return self

    def _walk(self, X: Any, y: Any, sample_weight: Any) -> None:
        """From a table to learned functions."""
        self.__dict__.pop("_usual_share", None)  # of earlier targets
        begun = Clock(progress=told(self, bool(self.verbose)))
        read = self._read(X, y, sample_weight)
        self._checkpoint = Checkpoint.of(self.checkpoint, read.X, read.y, read.weights)
        targets = self._targets_of(read)
        rows = targets.encoded(read)
        scaling = self._scaling_of(rows.X)
        self._tied = self._categories(scaling)
        table, places = rows.scaled(scaling).merged()
        clock = self._clock(len(table.X), begun)
        try:
            solution = self._solve(self._problem(table, targets, clock), clock)
        finally:
            if self._checkpoint is not None:
                self._checkpoint.write()
        self.targets_, self.scaling_, self.solution_ = targets, scaling, solution
        self._merged_rows = places, rows.weights, table.rows
        self.feature_labels_ = labels_of(self)
        self.n_iter_ = max(1, solution.n_iter)
        self._finish(rows, table)
        self._decide(clock)
        tell_cuts(clock, solution.status)
        del self._checkpoint, self._tied  # what is fitted is kept without them

    def _points(self, X: Any) -> Array:
        """New points, validated and scaled."""
        check_is_fitted(self)
        return self.scaling_.apply(read_points(self, X))

    def _values(self, X: Any) -> Array:
        """Values of the learned functions at new points, shape (n_samples,) or (n_samples, n_outputs)."""
        return self._evaluate(self._points(X))

    def _evaluate(self, points: Array) -> Array:
        """The same at scaled points."""
        return np.asarray(self.solution_.decision_function(points))

    def _answer(self, X: Any, finish: Callable[[Array], NDArray[Any]]) -> Any:
        """What `finish` makes of the values at new points."""
        return finish(self._values(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _get_doc_link(self) -> str:
        """The page about the estimator, to which its picture in notebooks leads; empty where there is no site."""
        return page_about(type(self).__name__)

    def predict(self, X: Any) -> Any:
        """Predict the targets of new points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or numbers.
        """
        check_is_fitted(self)
        return self._answer(X, self.targets_.decoded)


@contextmanager
def whole_or_not_at_all(estimator: KernelEstimator) -> Iterator[None]:
    """A fit that comes to no end leaves what was fitted before: not its functions beside a lam of the other one."""
    had = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(had)
        raise


def seed_from(random_state: Any) -> int:
    """A seed from `random_state`, which scikit-learn lets be None, a number or a generator."""
    try:
        if isinstance(random_state, bool):
            raise ValueError
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidInputError(
            "random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState, got "
            f"{shown(random_state)}."
        ) from error
