"""The rooms that every estimator walks through, from a table to a learned function and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.scikit_learn import BaseEstimator, ClassifierMixin, RegressorMixin
from convexkernels.estimators.table import TrainingTable, read_points, read_table
from convexkernels.estimators.targets import ClassTargets, NumberTargets, Targets
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_number

__all__ = ["KernelClassifier", "KernelEstimator", "KernelRegressor", "seed_from"]

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(BaseEstimator, ABC):
    """Fit and evaluate functions whose kernel is learned.

    Subclasses are dataclasses whose fields are their parameters; they say how targets are encoded and features scaled,
    state the problem, and set attributes of their own.
    """

    max_time: float | None = None
    verbose: bool = False

    # Whether equal rows become one row with the sum of their weights.
    _merges_rows: ClassVar[bool] = True
    # Whether targets may have several columns.
    _multi_output: ClassVar[bool] = False

    # -- hooks, in the order in which they are called ----------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse what can be refused before there is data."""
        if self.max_time is not None:
            check_number("max_time", self.max_time, low=0.0, open_low=True, remedy="Pass None for no limit.")

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

    def _solve(self, problem: Any) -> Any:
        """The solution of the problem."""
        return problem.solve(max_time=self.max_time, progress=bool(self.verbose), **self._search())

    def _search(self) -> dict[str, Any]:
        """Further arguments of ``problem.solve``."""
        return {}

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        """Set attributes beyond ``solution_``, from the rows before scaling and merging and after it."""

    # -- the walk ----------------------------------------------------------------------------------

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
        return np.asarray(self.solution_.decision_function(self._points(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

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


class KernelRegressor(RegressorMixin, KernelEstimator):
    """Numbers, one or several for every row, by functions that share the kernel they learn."""

    _multi_output = True

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.as_given(table.y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def seed_from(random_state: Any) -> int:
    """A seed from `random_state`, which scikit-learn lets be None, a number or a generator."""
    return int(check_random_state(random_state).randint(2**31 - 1))
