"""The two tasks: classes with their probabilities, numbers with their intervals."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.estimators.base import KernelEstimator
from convexkernels.estimators.intervals import check_coverage, margins
from convexkernels.estimators.left_out import before
from convexkernels.estimators.probabilities import Sigmoid, link_of
from convexkernels.estimators.read_out import ReadOut, held_out_scores, read_out_for
from convexkernels.estimators.scikit_learn import ClassifierMixin, RegressorMixin
from convexkernels.estimators.table import TrainingTable, refuse_distributed_of
from convexkernels.estimators.targets import ClassTargets, NumberTargets
from convexkernels.exceptions import MemoryLimitError, tell
from convexkernels.solution import Status


@dataclass(eq=False, repr=False, kw_only=True)
class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Classes, one against the rest, by functions that share the kernel they learn."""

    class_weight: Any = None

    def _decide(self, clock: Clock) -> None:
        if len(self.classes_) == 2 or self.solution_.status is Status.INTERRUPTED:
            return
        if clock.is_over:
            clock.cut("the choice of how several functions decide")
            return
        try:
            with before(clock.deadline):
                left = self._left_out()
                found, values = read_out_for(left.F, left.Y, left.weights)
                link = link_of(values, left.Y, left.weights)
        except MemoryLimitError:  # the largest value decides
            return
        except TimeoutError:
            clock.cut("the choice of how several functions decide")
            return
        except KeyboardInterrupt:
            tell("interrupted while it was chosen how several functions decide: the largest value does.")
            return
        self._derived("link", lambda: link)
        self.targets_ = replace(cast(ClassTargets, self.targets_), read_out=found)

    def _targets_of(self, table: TrainingTable) -> ClassTargets:
        return ClassTargets.of_rows(table.y, table.weights, self.class_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in ascending order, shape (n_classes,)."""
        targets: Any = self.targets_
        return np.asarray(targets.classes)

    @property
    def read_out_(self) -> ReadOut | None:
        """Linear scores that decide among several classes in the place of the largest value, None where that does."""
        targets: Any = self.targets_
        found: ReadOut | None = targets.read_out
        return found

    def decision_function(self, X: Any) -> Any:
        """Evaluate the learned functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins; the
            values of the functions, or the scores of `read_out_`.
        """
        check_is_fitted(self)
        targets: Any = self.targets_
        return self._answer(X, targets.decisions)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As scikit-learn has it: the share of rows whose label is right."""
        refuse_distributed_of(self, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, calibrated on rows by functions that have not seen them.

        With the learned kernel and its regularization parameter, functions are trained without the row (least squares,
        in closed form) or without a fifth of the rows, and so is a read-out; a sigmoid (the softmax, for several
        classes) takes their values to probabilities, with a slope for positive and one for negative values, or eight
        each for 1,000 rows or more of two classes. The likeliest class is the one that `predict` returns, and several
        others share what it leaves by their values and by how often each is found there; class weights count as if the
        class had as many more rows. The kernel has seen all rows, so that probabilities are a little too sure of
        themselves where rows are few, unless functions of folds are combined.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. Of two classes the first call costs about as much as the training of five
            functions with the learned kernel, on at most 2,000 rows (4,000 for least squares); later ones, and those
            for more classes, of which `fit` has done it, as much as `predict`.
        """
        link: Sigmoid = self._derived("link", self._link)
        targets: Any = self.targets_
        return self._answer(X, lambda values: link(np.asarray(targets.decisions(values)).reshape(len(values), -1)))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            logarithms: Array = np.log(self.predict_proba(X))
            return logarithms

    def _link(self) -> Sigmoid:
        left = self._left_out()
        parts = left.F, left.Y, left.weights
        return link_of(left.F if self.read_out_ is None else held_out_scores(*parts), left.Y, left.weights)


class KernelRegressor(RegressorMixin, KernelEstimator):
    """Numbers, one or several for every row, by functions that share the kernel they learn."""

    _multi_output = True

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        # C, epsilon and lam mean the same in every unit of y, and one serves several outputs.
        return NumberTargets.standard(table.y, table.weights, self._usual(table)).around_zero()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Intervals that hold the targets of new rows with a given probability.

        Predictions plus conformal quantiles of the residuals of rows, by functions that were trained without the row
        with the learned kernel and its regularization parameter (least squares), or without a fifth of the rows. All
        intervals of an output have one length. Unless functions of folds are combined, the kernel has seen all rows:
        where these are few beside the columns, or it has many parameters, targets are covered less often. For a width
        of each column hierarchical estimators allow.

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
        check_coverage(coverage)
        residuals, weights = self._derived("residuals", self._residuals)
        found = margins(residuals, weights, coverage)
        targets: Any = self.targets_
        return self._answer(X, lambda values: targets.decoded(np.asarray(values))[..., None] + found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As scikit-learn has it: R^2, the mean of it over outputs."""
        refuse_distributed_of(self, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))

    def _residuals(self) -> tuple[Array, Array]:
        """Left-out residuals in units of y, and weights of their rows."""
        left, targets = self._left_out(), self.targets_
        seen = np.isfinite(left.F).all(axis=0)
        F, Y = (np.ascontiguousarray(part[:, seen].T) for part in (left.F, left.Y))
        return self._levelled(targets.truth(Y) - targets.decoded(F), left.get("rows")[seen]), left.weights[seen]

    def _levelled(self, residuals: Array, rows: Index) -> Array:
        """Residuals at rows of the problem on the level of rows that the kernel has not seen, where that is known."""
        return residuals
