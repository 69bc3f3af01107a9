"""How rows of a table become rows of the problems in the cells: scaled points, and targets in [-1, 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.estimators.labels import class_weights
from convexkernels.estimators.training_table import Scaling, TrainingTable
from convexkernels.exceptions import InvalidInputError
from convexkernels.partition.summary import TableSummary

__all__ = ["ClassEncoding", "Encoding", "RangeEncoding"]

Array = NDArray[np.float64]
Rows = tuple[Array, NDArray[Any], Array]


def to_symmetric_box(summary: TableSummary, scale: bool) -> Scaling:
    """The scaling that takes every feature onto [-1, 1] and leaves constant ones out; or none."""
    if not scale:
        return Scaling.none(summary.low[None, :])
    unit = Scaling.to_unit_box(np.stack([summary.low, summary.high]))
    return Scaling(unit.offset + 0.5 * unit.scale, 0.5 * unit.scale, unit.columns)


@dataclass(frozen=True, eq=False)
class Encoding(ABC):
    """From a table, or a part of it, to problems; it has to be picklable.

    Attributes
    ----------
    scaling : Scaling
    """

    scaling: Scaling

    @property
    @abstractmethod
    def n_machines(self) -> int:
        """Machines of every cell."""

    @abstractmethod
    def scaled(self, X: Array, y: NDArray[Any], weights: Array) -> Rows:
        """Scaled points, encoded targets and weights > 0 of rows of the table; some may be left out."""

    @abstractmethod
    def targets(self, y: NDArray[Any]) -> Array:
        """Targets of the machines, shape (n_machines, m), from encoded ones."""

    @abstractmethod
    def predictions(self, F: Array) -> NDArray[Any]:
        """What is predicted, from values of the machines, shape (m, n_machines)."""

    def merged(self, X: Array, y: NDArray[Any], weights: Array) -> tuple[Array, Array, Array]:
        """One row for all that agree, sorted, with the targets of the machines, of the scaled rows of a cell."""
        table = TrainingTable(X, y, weights, np.arange(len(X))).merged()
        return table.X, self.targets(table.y), table.weights


@dataclass(frozen=True, eq=False)
class ClassEncoding(Encoding):
    """Classes as their places in `classes`; one machine for two of them, else one for each.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Those of positive weight.
    weights : ndarray of shape (n_classes,), > 0
    """

    classes: NDArray[Any]
    weights: Array

    @classmethod
    def of_table(cls, summary: TableSummary, class_weight: Any, *, scale: bool) -> ClassEncoding:
        """The encoding of a table, or a refusal when it has one class."""
        weights = class_weights(class_weight, summary.targets, np.arange(len(summary.targets)), summary.totals)
        if not weights.any():
            raise InvalidInputError(f"class_weight is 0 for every class of y ({summary.targets.tolist()}).")
        kept = np.flatnonzero(weights)
        classes = summary.targets[kept]
        if len(classes) < 2:
            raise InvalidInputError(
                f"y holds one class only ({classes.tolist()[0]!r}, in all rows of positive weight) where two or more "
                "classes are needed; check how the rows were selected."
            )
        return cls(to_symmetric_box(summary, scale), classes, weights[kept])

    @property
    def n_machines(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    def scaled(self, X: Array, y: NDArray[Any], weights: Array) -> Rows:
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        rows = np.flatnonzero(self.classes[codes] == y)  # a class of weight 0 is as good as absent
        codes = codes[rows]
        return self.scaling.apply(X[rows]), codes, weights[rows] * self.weights[codes]

    def targets(self, y: NDArray[Any]) -> Array:
        positive = np.arange(1, 2) if self.n_machines == 1 else np.arange(self.n_machines)
        return np.where(y == positive[:, None], 1.0, -1.0)

    def decisions(self, F: Array) -> Array:
        """Values as scikit-learn has them: one column for two classes is a vector."""
        return F[:, 0] if self.n_machines == 1 else F

    def predictions(self, F: Array) -> NDArray[Any]:
        codes = (F[:, 0] > 0.0).astype(np.intp) if self.n_machines == 1 else F.argmax(axis=1)
        return np.asarray(self.classes[codes])


@dataclass(frozen=True, eq=False)
class RangeEncoding(Encoding):
    """Numbers as ``centre + half_range * t`` with t in [-1, 1]."""

    centre: float
    half_range: float

    @classmethod
    def of_table(cls, summary: TableSummary, *, scale: bool) -> RangeEncoding:
        """The encoding of a table."""
        low, high = float(summary.targets[0]), float(summary.targets[1])
        return cls(to_symmetric_box(summary, scale), 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low)

    @property
    def n_machines(self) -> int:
        return 1

    def scaled(self, X: Array, y: NDArray[Any], weights: Array) -> Rows:
        # With all targets equal, the one that is left is the centre.
        t = np.clip((y - self.centre) / (self.half_range or 1.0), -1.0, 1.0)
        return self.scaling.apply(X), t, weights

    def targets(self, y: NDArray[Any]) -> Array:
        return np.asarray(y, dtype=np.float64)[None, :]

    def predictions(self, F: Array) -> NDArray[Any]:
        return self.centre + self.half_range * F[:, 0]
