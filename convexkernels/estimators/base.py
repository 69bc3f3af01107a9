"""The rooms that every estimator walks through, from a table to a learned function and back."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.backend import to_numpy
from convexkernels.clock import Clock
from convexkernels.estimators.callbacks import told
from convexkernels.estimators.intervals import margins
from convexkernels.estimators.left_out import LeftOut, left_out_of_kernel
from convexkernels.estimators.probabilities import Link, link_of
from convexkernels.estimators.relevance import effective_rank, relevance, spread_rows
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.scikit_learn import (
    BaseEstimator,
    CallbackSupportMixin,
    ClassifierMixin,
    RegressorMixin,
    with_callbacks,
)
from convexkernels.estimators.table import TrainingTable, read_points, read_table
from convexkernels.estimators.targets import ClassTargets, NumberTargets, Targets
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.notebook import page_about
from convexkernels.validation import check_number

# Seconds of a fit when none are given, and the rows beyond which there are more of them, in proportion.
SECONDS, QUICK_ROWS = 60.0, 2000
# Rows that the effective rank of a kernel is measured on.
RANK_ROWS = 1000


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(CallbackSupportMixin, BaseEstimator, ABC):
    """Fit and evaluate functions whose kernel is learned.

    Subclasses are dataclasses whose fields are their parameters; they say how targets are encoded and features scaled,
    state the problem, and set attributes of their own.
    """

    max_time: float | str | None = "auto"
    verbose: bool = False

    # Whether equal rows become one row with the sum of their weights.
    _merges_rows: ClassVar[bool] = True
    # Whether targets may have several columns.
    _multi_output: ClassVar[bool] = False

    # -- hooks, in the order in which they are called ----------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse what can be refused before there is data."""
        if self.max_time not in (None, "auto"):
            check_number("max_time", self.max_time, low=0.0, open_low=True, remedy="Pass 'auto', or None for no limit.")

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
    def _problem(self, table: TrainingTable, targets: Targets) -> Any:
        """The problem of scaled and merged rows with encoded targets; ``targets.expanded(table.y)`` are its targets."""

    @abstractmethod
    def _solve(self, problem: Any) -> Any:
        """The solution of the problem, by a clock of its own."""

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        """Set attributes beyond ``solution_``, from the rows before scaling and merging and after it."""

    def _left_out(self) -> LeftOut:
        """Values at training rows by functions with the learned kernel that were trained without the row."""
        return left_out_of_kernel(self.solution_)

    def _training_points(self) -> Array:
        """Scaled points that were learned from."""
        return np.asarray(to_numpy(self.solution_.problem.X), dtype=np.float64)

    def _clock(self, n_rows: int) -> Clock:
        """The limit of a fit to so many rows, and where its messages go."""
        limit = SECONDS * max(1.0, n_rows / QUICK_ROWS) if self.max_time == "auto" else self.max_time
        return Clock(cast("float | None", limit), told(self, bool(self.verbose)))

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
        self._check_parameters()
        context = self._init_callback_context(max_subtasks=None)
        given = {"X": X, "y": y, "metadata": {} if sample_weight is None else {"sample_weight": sample_weight}}
        if context is not None:
            context.call_on_fit_task_begin(estimator=self, **given)
        read = self._read(X, y, sample_weight)
        targets = self._targets_of(read)
        rows = targets.encoded(read)
        scaling = self._scaling_of(rows.X)
        table = rows.scaled(scaling)
        if self._merges_rows:
            table = table.merged()
        solution = self._solve(self._problem(table, targets))
        self.targets_, self.scaling_, self.solution_ = targets, scaling, solution
        self.n_iter_ = max(1, solution.n_iter)
        self._finish(rows, table)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, reconstruction_attributes={}, **given)
        return self

    @property
    def kernel_(self) -> Kernel:
        """The learned kernel on features as they were passed, a valid ``kernel=`` of scikit-learn's SVC."""
        check_is_fitted(self)
        return self.scaling_.pull_back(self.solution_.kernel)

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

    def _derived(self, name: str, compute: Callable[[], Any]) -> Any:
        """What is computed from the solution when it is first asked for, and kept with it."""
        check_is_fitted(self)
        known: dict[str, Any] = self.solution_.derived
        if name not in known:
            known[name] = compute()
        return known[name]

    @property
    def feature_relevance_(self) -> Array:
        """How much the learned functions change with each feature, shares of shape (n_encoded_features,)."""

        def compute() -> Array:
            found, columns = np.zeros(len(self.scaling_.scale)), self.scaling_.columns
            found[columns] = relevance(self._evaluate, self._training_points())
            return found

        return np.array(self._derived("relevance", compute))

    @property
    def effective_rank_(self) -> float:
        """``trace(K)^2 / |K|_F^2`` of the learned kernel on training rows: how many dimensions it has."""

        def compute() -> float:
            points = self._training_points()
            return effective_rank(self.solution_.kernel(points[spread_rows(len(points), RANK_ROWS)]))

        return float(self._derived("rank", compute))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _get_doc_link(self) -> str:
        """The page about the estimator, to which its picture in notebooks leads; empty where there is no site."""
        return page_about(type(self).__name__)

    def predict(self, X: Any) -> NDArray[Any]:
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
        values = self._values(X)
        return self.targets_.decoded(values)


@dataclass(eq=False, repr=False, kw_only=True)
class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Classes, one against the rest, by functions that share the kernel they learn."""

    class_weight: Any = None

    def _targets_of(self, table: TrainingTable) -> ClassTargets:
        return ClassTargets.of_rows(table.y, table.weights, self.class_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in ascending order, shape (n_classes,)."""
        targets: Any = self.targets_
        return np.asarray(targets.classes)

    def decision_function(self, X: Any) -> Array:
        """Evaluate the learned functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins.
        """
        check_is_fitted(self)
        values = self._values(X)
        return self.targets_.decisions(values)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, calibrated on rows by functions that have not seen them.

        With the learned kernel and its regularization parameter, functions are trained without the row (least squares,
        in closed form) or without a fifth of the rows; a link takes their values to probabilities: for 1,000 rows or
        more of two classes an isotonic function, else a sigmoid (the softmax, for several classes) with a slope for
        positive and one for negative values. The likeliest class is the one that `predict` returns; class weights
        count as if the class had as many more rows. The kernel has seen all rows, so that probabilities are a little
        too sure of themselves where rows are few.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. The first call costs about as much as the training of five functions with the
            learned kernel, on at most 2,000 rows (4,000 for least squares); later ones as much as `predict`.
        """
        link: Link = self._derived("link", self._link)
        return self._answer(X, lambda values: link(np.asarray(values).reshape(len(values), -1)))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _link(self) -> Link:
        left = self._left_out()
        return link_of(left.F, left.Y, left.weights)


class KernelRegressor(RegressorMixin, KernelEstimator):
    """Numbers, one or several for every row, by functions that share the kernel they learn."""

    _multi_output = True

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.as_given(table.y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Intervals that hold the targets of new rows with a given probability.

        Predictions plus conformal quantiles of the residuals of rows, by functions that were trained without the row
        with the learned kernel and its regularization parameter (least squares), or without a fifth of the rows. All
        intervals of an output have one length. The kernel has seen all rows: where these are few, or it has many
        parameters, targets are covered a little less often.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float, strictly between 0 and 1
            For each output by itself.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Low and high. The first call costs about as much as the training of five functions with the learned
            kernel, on at most 2,000 rows (4,000 for least squares); later ones as much as `predict`.
        """
        check_is_fitted(self)
        if check_number("coverage", coverage, low=0.0, high=1.0, open_low=True) == 1.0:
            raise InvalidInputError("coverage is 1, which no interval of finite length has; pass a smaller one.")
        residuals, weights = self._derived("residuals", self._residuals)
        found = margins(residuals, weights, coverage)
        targets: Any = self.targets_
        return self._answer(X, lambda values: targets.decoded(np.asarray(values))[..., None] + found)

    def _residuals(self) -> tuple[Array, Array]:
        """Left-out residuals in units of y, and weights of their rows."""
        left, targets = self._left_out(), self.targets_
        seen = np.isfinite(left.F).all(axis=0)
        F, Y = (np.ascontiguousarray(part[:, seen].T) for part in (left.F, left.Y))
        return targets.decoded(Y) - targets.decoded(F), left.weights[seen]


def seed_from(random_state: Any) -> int:
    """A seed from `random_state`, which scikit-learn lets be None, a number or a generator."""
    return int(check_random_state(random_state).randint(2**31 - 1))
