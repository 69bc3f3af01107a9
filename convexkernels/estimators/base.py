"""What the estimators of convex kernel learning share: problems out of tables, functions back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.labels import check_labels, class_weights, classes_and_codes, one_against_rest
from convexkernels.estimators.training_table import Scaling, TableReader, TrainingTable
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.solution import Solution

__all__ = ["KernelClassifier", "KernelLearner", "KernelRegressor"]

Array = NDArray[np.float64]


class KernelLearner(TableReader, ABC):
    """Fit and evaluate machines whose kernel is learned from a family.

    Subclasses name the family and the loss; this class validates, scales, builds the problem, solves it and
    sets the fitted attributes.
    """

    tol: float
    max_iter: int
    max_time: float | None
    solver: Any
    memory_limit: float | None
    verbose: bool

    @abstractmethod
    def _family(self, n_features: int) -> Family:
        """The family, from the parameters, for a table of `n_features` used features."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss, from the parameters."""

    def _scaling(self, X: Array) -> Scaling:
        """The scaling of the features, from the training table."""
        return Scaling.to_unit_box(X)

    # -- problem and solution ----------------------------------------------------------------------

    def _learn(self, table: TrainingTable, targets: Array, family: Family, loss: Loss) -> None:
        """Solve the problem of a table and set the fitted attributes.

        Parameters
        ----------
        table : TrainingTable
            Scaled and merged.
        targets : ndarray of shape (m,) or (m, n_machines)
            What `loss` asks for.
        """
        # With weights all alike, the problem is the plain one, and says so.
        weights = None if (table.weights == 1.0).all() else table.weights
        problem = KernelLearning(family, loss, table.X, targets, sample_weight=weights, memory_limit=self.memory_limit)
        solution: Solution = problem.solve(
            self.solver,
            tol=self.tol,
            max_time=self.max_time,
            max_iter=self.max_iter,
            progress=bool(self.verbose),
        )
        self.solution_ = solution
        self.n_iter_ = max(1, solution.n_iter)
        self.support_ = table.rows[solution.machine.support]
        problem.gram_set.release()  # a fitted estimator lives longer than its m x m matrices should

    @property
    def kernel_(self) -> Kernel:
        """The learned kernel on features as they were passed, a valid ``kernel=`` of scikit-learn's machines."""
        check_is_fitted(self)
        return self.scaling_.pull_back(self.solution_.kernel)

    def _values(self, X: Any) -> Array:
        """Values of the learned machines at new points, shape (n_samples,) or (n_samples, n_machines)."""
        points = self._new_points(X)
        return self.solution_.decision_function(self.scaling_.apply(points))


class KernelClassifier(ClassifierMixin, KernelLearner):
    """Classes, one against the rest, by machines that share the kernel they learn."""

    class_weight: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers of magnitude at most 1e150.
        y : array-like of shape (n_samples,)
            Class labels, numbers or text; at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 that multiply C; rows of weight 0 are as good as absent.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts; the message names the argument, the value found and the remedy.
        MemoryLimitError
            When the matrices would not fit `memory_limit`.
        """
        loss = self._loss()
        table = self._training_table(X, y, sample_weight)
        check_labels(table.y)
        table = self._with_class_weights(table)
        classes, codes = classes_and_codes(table.y)
        scaling = self._scaling(table.X)
        scaled = TrainingTable(scaling.apply(table.X), codes, table.weights, table.rows).merged()
        family = self._family(scaled.X.shape[1])
        self._learn(scaled, one_against_rest(scaled.y, len(classes)), family, loss)
        self.classes_, self.scaling_ = classes, scaling
        self.support_vectors_ = table.points_of(self.support_)
        return self

    def _with_class_weights(self, table: TrainingTable) -> TrainingTable:
        """The rows whose class has a positive weight."""
        classes, codes = np.unique(table.y, return_inverse=True)
        weights = table.weights * class_weights(self.class_weight, classes, codes, table.weights)[codes]
        kept = np.flatnonzero(weights)
        if not kept.size:
            raise InvalidInputError(f"class_weight is 0 for every class of y ({classes.tolist()}).")
        return TrainingTable(table.X[kept], table.y[kept], weights[kept], table.rows[kept])

    def decision_function(self, X: Any) -> Array:
        """Evaluate the learned machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins.
        """
        return self._values(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,)."""
        values = self.decision_function(X)
        codes = (values > 0.0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[codes]


class KernelRegressor(RegressorMixin, KernelLearner):
    """Numbers, by a machine whose kernel is learned."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers of magnitude at most 1e150.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 that multiply the loss; rows of weight 0 are as good as absent.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError, MemoryLimitError
            Before any work starts.
        """
        loss = self._loss()
        table = self._training_table(X, y, sample_weight)
        scaling = self._scaling(table.X)
        scaled = TrainingTable(scaling.apply(table.X), table.y, table.weights, table.rows).merged()
        self._learn(scaled, scaled.y, self._family(scaled.X.shape[1]), loss)
        self.scaling_ = scaling
        self.support_vectors_ = table.points_of(self.support_)
        return self

    def predict(self, X: Any) -> Array:
        """Predicted numbers for the rows of `X`, shape (n_samples,)."""
        return self._values(X)
