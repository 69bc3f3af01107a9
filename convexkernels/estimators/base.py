"""What the estimators of convex kernel learning share: tables in, problems out, functions back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.kernels.algebra import OnColumns
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.rescaled import Rescaled, rescale
from convexkernels.losses.base import Loss
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.solution import Solution
from convexkernels.validation import check_number, check_points

__all__ = [
    "KernelClassifier",
    "KernelLearner",
    "KernelRegressor",
    "Scaling",
    "TableReader",
    "TrainingTable",
    "class_weights",
    "sorted_rows",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """How the features of a table become the features of a problem: ``(x - offset) / scale``, some columns.

    Attributes
    ----------
    offset, scale : ndarray of shape (n_features,)
        Columns of scale 0 become 0.
    columns : ndarray of int
        The columns that are used.
    """

    offset: Array
    scale: Array
    columns: NDArray[np.intp]

    @classmethod
    def to_unit_box(cls, X: Array) -> Scaling:
        """The scaling that takes every column of `X` onto [0, 1] and leaves constant columns out."""
        offset = X.min(axis=0)
        scale = X.max(axis=0) - offset
        varying = np.flatnonzero(scale > 0.0)
        # With every column constant, one of them (all 0) stands for the table.
        return cls(offset, scale, varying if varying.size else np.array([0]))

    @classmethod
    def none(cls, X: Array) -> Scaling:
        """The scaling that changes nothing."""
        n = X.shape[1]
        return cls(np.zeros(n), np.ones(n), np.arange(n))

    def apply(self, X: Array) -> Array:
        """Map a table."""
        return rescale(X[:, self.columns], self.offset[self.columns], self.scale[self.columns])

    def pull_back(self, kernel: Kernel) -> Kernel:
        """The kernel on tables before the map, from one on tables after it."""
        if len(self.columns) == len(self.scale):
            return Rescaled(kernel, self.offset, self.scale)
        return OnColumns(Rescaled(kernel, self.offset[self.columns], self.scale[self.columns]), self.columns.tolist())


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Validated rows of positive weight.

    Attributes
    ----------
    X : ndarray of shape (m, n)
    y : ndarray of shape (m, ...)
    weights : ndarray of shape (m,), > 0
    rows : ndarray of int, shape (m,)
        Their places in the table that was passed.
    """

    X: Array
    y: NDArray[Any]
    weights: Array
    rows: NDArray[np.intp]

    def points_of(self, rows: NDArray[np.intp]) -> Array:
        """The points at these places of the table that was passed (`self.rows` being sorted)."""
        return self.X[np.searchsorted(self.rows, rows)]

    def merged(self) -> TrainingTable:
        """One row for all that agree in features and target, with their weights added.

        The problem is the same and may be much smaller. As the rows are sorted, too, what is learned depends
        neither on the order of a table nor on whether it repeats rows or gives them weights.
        """
        y = self.y.reshape(len(self.y), -1).astype(np.float64)
        keys = np.hstack([self.X, y])
        order = sorted_rows(keys)
        keys = keys[order]
        is_new = np.ones(len(keys), dtype=bool)
        is_new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        weights = np.bincount(np.cumsum(is_new) - 1, weights=self.weights[order]).astype(np.float64)
        first = order[is_new]
        return TrainingTable(self.X[first], self.y[first], weights, self.rows[first])


class TableReader(BaseEstimator):
    """Validated tables for an estimator: refusals name the argument, the value found and the remedy."""

    # Whether targets may have several columns.
    _multi_output = False

    def _training_table(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        numeric_target = isinstance(self, RegressorMixin)
        try:
            points, target = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                ensure_all_finite=False,
                ensure_min_samples=2,
                multi_output=self._multi_output,
                y_numeric=numeric_target,
            )
        except ValueError as error:
            raise InvalidInputError(_explained(error, X, y)) from error
        points = check_points(points)
        weights = _checked_weights(sample_weight, len(points))
        rows = np.flatnonzero(weights)
        return TrainingTable(points[rows], target[rows], weights[rows], rows)

    def _new_points(self, X: Any) -> Array:
        check_is_fitted(self)
        try:
            points = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        except ValueError as error:
            raise InvalidInputError(_explained(error, X)) from error
        return check_points(points)


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


def _explained(error: ValueError, X: Any, y: Any = None) -> str:
    """The message of a refusal by scikit-learn, with the place and the remedy where they can be named."""
    message = str(error)
    if hasattr(X, "__len__") and hasattr(y, "__len__") and len(X) != len(y):
        return f"y has {len(y)} entries, but X has {len(X)} rows; pass one target per row."
    if "could not convert" in message or "unable to parse" in message.lower():
        return (
            f"X must hold numbers only, but {_first_text_column(X)} does not ({message}); encode text and category "
            "columns first, for example with sklearn.preprocessing.OneHotEncoder."
        )
    if "minimum of 2 is required" in message:
        return f"{message} Learning needs two rows or more, of two classes or with two targets."
    return message


def _first_text_column(X: Any) -> str:
    table = np.asarray(X, dtype=object)
    for column in range(table.shape[1] if table.ndim == 2 else 0):
        try:
            table[:, column].astype(np.float64)
        except (TypeError, ValueError):
            return f"column {X.columns[column]!r}" if hasattr(X, "columns") else f"column {column}"
    return "it"


def _checked_weights(sample_weight: Any, m: int) -> Array:
    if sample_weight is None:
        return np.ones(m)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold numbers ({error}).") from error
    if weights.ndim == 0:
        weights = np.full(m, float(weights))
    if weights.shape != (m,):
        raise InvalidInputError(
            f"sample_weight has shape {weights.shape}, but X has {m} rows; pass one weight per row."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(f"sample_weight must be finite and >= 0, got {weights[row]} at row {row}.")
    if not weights.any():
        raise InvalidInputError(
            "sample_weight is zero everywhere (all weights are 0); rows to learn from need a weight > 0."
        )
    return weights


def sorted_rows(table: Array) -> NDArray[np.intp]:
    """The rows in lexicographic order: by the first column, and by the others only where it does not decide."""
    order = np.argsort(table[:, 0], kind="stable")
    first = table[order, 0]
    equal = first[1:] == first[:-1]
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    rows = np.sort(order[tied])
    order[tied] = rows[np.lexsort(table[rows].T[::-1])]
    return order


def check_labels(y: Any) -> None:
    """Refuse targets that are not class labels."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise InvalidInputError(f"y must hold class labels: {error}") from error


def classes_and_codes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes in ascending order and the place of every label among them; one class alone is refused."""
    check_labels(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y holds one class only ({classes.tolist()[0]!r}, in all {len(codes)} rows of positive weight) where "
            "two or more classes are needed; check how the rows were selected."
        )
    return classes, codes


def one_against_rest(codes: NDArray[Any], n_classes: int) -> Array:
    """Targets -1 and 1: of shape (m,) for two classes, else one column per class."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def class_weights(class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: Array) -> Array:
    """Weight of every class, shape (n_classes,), from `class_weight` as scikit-learn takes it."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        return weights.sum() / (len(classes) * np.bincount(codes, weights=weights, minlength=len(classes)))
    if not isinstance(class_weight, dict):
        raise InvalidInputError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise InvalidInputError(f"class_weight names the class {unknown[0]!r}, but the classes of y are {labels}.")
    return np.array(
        [check_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), low=0.0) for label in labels]
    )
