"""How rows of a table become rows of the problems in the cells: scaled points, and encoded targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets

__all__ = ["Encoding"]

Array = NDArray[np.float64]
Rows = tuple[Array, NDArray[Any], Array]


@dataclass(frozen=True, eq=False)
class Encoding:
    """From a table, or a part of it on a worker, to problems.

    Attributes
    ----------
    scaling : Scaling
    targets : Targets
    """

    scaling: Scaling
    targets: Targets

    def scaled(self, X: Array, y: NDArray[Any], weights: Array) -> Rows:
        """Scaled points, encoded targets and weights > 0 of rows of the table; some may be left out."""
        table = self.targets.encoded(TrainingTable(X, y, weights, np.arange(len(X)))).scaled(self.scaling)
        return table.X, table.y, table.weights

    def merged(self, X: Array, y: NDArray[Any], weights: Array) -> tuple[Array, Array, Array]:
        """One row for all that agree, sorted, with targets of shape (n_outputs, m), of the scaled rows of a cell."""
        table = TrainingTable(X, y, weights, np.arange(len(X))).merged()
        return table.X, np.ascontiguousarray(np.atleast_2d(self.targets.expanded(table.y).T)), table.weights
