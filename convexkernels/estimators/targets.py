"""How the targets of a table become targets of problems, and values of learned functions become predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from convexkernels.arrays import Array
from convexkernels.estimators.read_out import ReadOut
from convexkernels.estimators.table import TrainingTable
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_labels_finite, check_number

# Of the size of numbers, what is no more than the rounding of sums that were to be equal.
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)


class Targets(ABC):
    """An encoding in two steps: of rows, which can then be merged, and of merged rows into targets of problems."""

    @abstractmethod
    def encoded(self, table: TrainingTable) -> TrainingTable:
        """The table with encoded targets and the weights they ask for, without the rows whose weight is then 0."""

    @abstractmethod
    def expanded(self, t: NDArray[Any]) -> Array:
        """Targets of problems, shape (m,) or (m, n_outputs), from encoded ones."""

    @abstractmethod
    def shaped(self, F: Array) -> Array:
        """Values of the learned functions, shape (m,) or (m, n_outputs), in the shape scikit-learn asks for."""

    @abstractmethod
    def decoded(self, F: Array) -> NDArray[Any]:
        """Predictions from values of the learned functions."""

    def truth(self, Y: Array) -> NDArray[Any]:
        """What targets of a problem stand for."""
        return self.decoded(Y)


@dataclass(frozen=True, eq=False)
class ClassTargets(Targets):
    """Classes as their places in `classes`: one function for two of them, else one for each, against the rest.

    Classes ascend; those of weight 0 are as good as absent, other weights multiply those of the rows. Where there is a
    `read_out`, classes are decided by its scores in the place of the values.
    """

    classes: NDArray[Any]
    weights: Array
    read_out: ReadOut | None = None

    @classmethod
    def of_rows(cls, y: NDArray[Any], weights: Array, class_weight: Any = None) -> ClassTargets:
        """The encoding of labels of shape (m,), or a refusal where they are none."""
        check_labels(y)
        classes, codes = np.unique(y, return_inverse=True)
        totals = np.bincount(codes, weights=weights, minlength=len(classes)).astype(np.float64)
        return cls.of_classes(classes, totals, class_weight)

    @classmethod
    def of_classes(cls, classes: NDArray[Any], totals: Array, class_weight: Any = None) -> ClassTargets:
        """The encoding of classes in ascending order whose rows weigh `totals`; one class alone is refused.

        `class_weight` is None, "balanced" or a dict, as in scikit-learn.
        """
        weights = _class_weights(class_weight, classes, totals)
        if not weights.any():
            raise InvalidInputError(f"class_weight is 0 for every class of y ({classes.tolist()}).")
        kept = np.flatnonzero(weights)
        if len(kept) < 2:
            raise InvalidInputError(
                f"y holds one class only ({classes[kept].tolist()[0]!r}, in all rows of positive weight) where two or "
                "more classes are needed; check how the rows were selected."
            )
        return cls(classes[kept], weights[kept])

    @property
    def n_outputs(self) -> int:
        """Number of functions."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def encoded(self, table: TrainingTable) -> TrainingTable:
        codes = np.minimum(np.searchsorted(self.classes, table.y), len(self.classes) - 1)
        kept = np.flatnonzero(self.classes[codes] == table.y)
        codes = codes[kept]
        weights, keys = table.weights[kept] * self.weights[codes], None if table.keys is None else table.keys[kept]
        return TrainingTable(table.X[kept], codes, weights, table.rows[kept], keys)

    def expanded(self, t: NDArray[Any]) -> Array:
        """Targets -1 and 1, shape (m,) for two classes, else (m, n_classes)."""
        hit = t == 1 if self.n_outputs == 1 else t[:, None] == np.arange(self.n_outputs)
        return np.where(hit, 1.0, -1.0)

    def shaped(self, F: Array) -> Array:
        return F.reshape(-1) if self.n_outputs == 1 else F

    def decisions(self, F: Array) -> Array:
        """What classes are decided by, shape (m,) or (m, n_classes): the values, or the scores of the read-out."""
        return self.shaped(F) if self.read_out is None else self.read_out(F)

    def decoded(self, F: Array) -> NDArray[Any]:
        return self.labels_of(self.decisions(F))

    def labels_of(self, decisions: Array) -> NDArray[Any]:
        """The labels that win."""
        codes = (decisions > 0.0).astype(np.intp) if decisions.ndim == 1 else decisions.argmax(axis=1)
        return np.asarray(self.classes[codes])

    def truth(self, Y: Array) -> NDArray[Any]:
        return self.labels_of(self.shaped(Y))


@dataclass(frozen=True, eq=False)
class NumberTargets(Targets):
    """Numbers as ``center + spread * t``; predictions are clipped to magnitudes of t up to the limit.

    The `ends` are the numbers that t = -1 and t = 1 stand for, where rounding must not move them: many rows may have
    the least or the largest target, and a quantile that is clipped to it has to be it; targets beyond them are
    outliers. `constants` stand for columns that are constant but for rounding, which is not to be learned; NaN for
    others.
    """

    center: Array
    spread: Array
    limit: float = np.inf
    ends: tuple[Array, Array] | None = None
    constants: Array | None = None

    @classmethod
    def as_given(cls, y: Array) -> NumberTargets:
        """Numbers as they are."""
        return cls(np.zeros(y.shape[1:]), np.ones(y.shape[1:]))

    @classmethod
    def by_range(cls, y: Array, limits: tuple[Array, Array] | None = None, *, clip: bool = True) -> NumberTargets:
        """Every column of `y`, within limits, onto [-1, 1]; the range of the targets of a table will do for it."""
        inside = np.ones(y.shape, dtype=bool) if limits is None else (limits[0] <= y) & (y <= limits[1])
        ends = np.where(inside, y, np.inf).min(axis=0), np.where(inside, y, -np.inf).max(axis=0)
        low, high, constants = 0.5 * ends[0], 0.5 * ends[1], _constants(y)
        half = np.where(np.isnan(constants), high - low, 0.0)
        return cls(np.asarray(low + high), _positive(half), 1.0 if clip else np.inf, ends, constants)

    @classmethod
    def standard(cls, y: Array, weights: Array, limits: tuple[Array, Array] | None = None) -> NumberTargets:
        """Every column of `y` to mean 0 and standard deviation 1, of what is within limits, rows counting by weights.

        One that is constant but for rounding has its size as unit.
        """
        weights = np.broadcast_to(weights, y.T.shape).T
        weights = weights if limits is None else np.where((limits[0] <= y) & (y <= limits[1]), weights, 0.0)
        center, size = np.asarray(np.average(y, axis=0, weights=weights)), np.abs(y).max(axis=0)
        constants, sizes = _constants(y), np.where(weights > 0.0, np.abs(y - center), 0.0)
        farthest = _positive(sizes.max(axis=0))  # squares of what is not near 1 may be 0 or infinite
        spread = farthest * np.sqrt(np.average((sizes / farthest) ** 2, axis=0, weights=weights))
        return cls(center, _positive(np.where(np.isnan(constants), spread, size)), constants=constants)

    def around_zero(self) -> NumberTargets:
        """The same units with 0 where it is: an intercept finds the mean by itself, and without one there is none."""
        return replace(self, center=np.zeros_like(self.center))

    def encoded(self, table: TrainingTable) -> TrainingTable:
        y = check_labels_finite(table.y, len(table.X))
        if self.constants is not None:  # rows that come later may differ from them
            y = np.where(np.abs(y - self.constants) <= ROUNDING * np.abs(self.constants), self.constants, y)
        t = (y - self.center) / self.spread
        if self.ends is not None:  # not beyond them by rounding
            t = np.where((self.ends[0] <= y) & (y <= self.ends[1]), np.clip(t, -1.0, 1.0), t)
        return replace(table, y=t)

    def expanded(self, t: NDArray[Any]) -> Array:
        return np.asarray(t, dtype=np.float64)

    def shaped(self, F: Array) -> Array:
        return F.reshape(-1) if self.center.ndim == 0 else F

    def decoded(self, F: Array) -> NDArray[Any]:
        return self.truth(np.clip(F, -self.limit, self.limit))

    def truth(self, Y: NDArray[Any]) -> Array:
        t = self.shaped(Y)
        y = self.center + self.spread * t
        if self.ends is not None:
            y = np.where(np.abs(t) == 1.0, np.where(t < 0.0, *self.ends), y)
        return np.asarray(y)


def check_labels(y: Any) -> None:
    """Refuse targets that are not class labels."""
    if y.dtype == object and len({isinstance(label, str) for label in y.flat}) > 1:
        found = " and ".join(sorted({type(label).__name__ for label in y.flat}))
        raise InvalidInputError(f"y holds labels without an order ({found}); make all of them text.")
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise InvalidInputError(
            f"y must hold class labels: {error} Pass text, whole numbers or bools; a regressor learns other numbers."
        ) from error


def _class_weights(class_weight: Any, classes: NDArray[Any], totals: Array) -> Array:
    """Weight of every class, shape (n_classes,)."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        if missing := classes[totals == 0.0].tolist():
            raise InvalidInputError(
                f"class_weight='balanced' needs rows of every class, but y has none of {missing[0]!r}; pass a dict of "
                "weights."
            )
        return np.asarray(totals.sum() / (len(classes) * totals))
    if not isinstance(class_weight, dict):
        raise InvalidInputError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise InvalidInputError(f"class_weight names the class {unknown[0]!r}, but the classes of y are {labels}.")
    return np.array(
        [check_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), low=0.0) for label in labels]
    )


def _constants(y: Array) -> Array:
    """The middle of every column of `y` that is constant but for rounding, NaN for others."""
    low, high = y.min(axis=0), y.max(axis=0)
    is_constant = 0.5 * high - 0.5 * low <= 0.5 * ROUNDING * np.maximum(np.abs(low), np.abs(high))
    return np.where(is_constant, 0.5 * low + 0.5 * high, np.nan)


def _positive(spread: Array) -> Array:
    """Spreads, 1 where all targets are equal."""
    return np.where(spread > 0.0, spread, 1.0)
