"""From rows of a table, here or on a worker, to rows of the problems in the cells."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.cells.learner import CellRows
from convexkernels.cells.sampling import Keys
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, Targets


@dataclass(frozen=True, eq=False)
class Encoding:
    """From rows of a table, or of a part of it on a worker, to rows of the problems in the cells.

    Where there is an `offset`, of shape (n_outputs,), problems have deviations from it.
    """

    scaling: Scaling
    targets: Targets
    offset: Array | None = None

    def no_rows(self) -> tuple[Array, NDArray[Any], Array]:
        """What `scaled` gives for a table without rows."""
        y = np.empty((0, *getattr(self.targets, "center", np.empty(())).shape))
        return np.empty((0, len(self.scaling.columns))), y, np.empty(0)

    def scaled(self, X: Array, y: NDArray[Any], weights: Array) -> tuple[Array, NDArray[Any], Array]:
        """Scaled points, encoded targets and weights > 0 of rows of the table; some may be left out."""
        table = self.targets.encoded(TrainingTable(X, y, weights, np.arange(len(X)))).scaled(self.scaling)
        return table.X, table.y, table.weights

    def merged(self, X: Array, y: NDArray[Any], weights: Array) -> CellRows:
        """The problem of the scaled rows of a cell: one row for all that agree, sorted."""
        rows = problem_of(TrainingTable(X, y, weights, np.arange(len(X))).merged()[0], self.targets)
        return rows if self.offset is None else replace(rows, Y=rows.Y - self.offset[:, None])

    def total(self, summary: TableSummary) -> float:
        """What all rows weigh, classes by their weights."""
        weights = self.targets.weights if isinstance(self.targets, ClassTargets) else 1.0
        return float((summary.totals[classes_kept(summary, self.targets)] * weights).sum())

    def drawn(self, summary: TableSummary) -> TrainingTable:
        """The rows that a summary has drawn, scaled and merged."""
        drawn = TrainingTable(summary.X, summary.y, summary.weights, np.arange(len(summary.X)), summary.keys)
        return self.targets.encoded(drawn).scaled(self.scaling).merged()[0]


def classes_kept(summary: TableSummary, targets: Targets) -> Any:
    """Places, in a summary, of the classes that have a say; of the one entry for all rows where targets are numbers."""
    return np.isin(summary.targets, targets.classes) if isinstance(targets, ClassTargets) else [0]


def keys_of(rows: CellRows) -> Keys:
    """The keys of rows that were drawn, or may be."""
    assert rows.keys is not None
    return rows.keys


def problem_of(table: TrainingTable, targets: Targets) -> CellRows:
    """The problem of scaled and merged rows with encoded targets."""
    Y = np.ascontiguousarray(np.atleast_2d(targets.expanded(table.y).T))
    return CellRows(table.X, Y, table.weights, keys=table.keys)
