"""What hierarchical estimators learn: the rows of a table, as an outer problem for any architecture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.cells.sampling import Keys, least
from convexkernels.criteria.base import Criterion
from convexkernels.estimators.hierarchical.settings import as_trees
from convexkernels.estimators.in_parts import TableInParts
from convexkernels.families.curved.trees import Trees
from convexkernels.kernels.beside_ranks import beside_ranks
from convexkernels.losses.base import Loss
from convexkernels.problems.outer_learning import OuterLearning


@dataclass(frozen=True, eq=False)
class TreeTask:
    """What is to be learned, for any architecture and any rows: targets in [-1, 1], to which functions `clip`.

    Rows are drawn by their `keys`, and may be some of a table `in_parts`. Functions of all of them learn deviations
    from the `offset`, that of the loss where none is given. Features that are `tied` share weights.
    """

    X: Array
    y: Array
    weights: Array
    loss: Loss
    criterion: Criterion
    clip: bool
    keys: Keys
    device: str | None = None
    offset: Array | None = None
    in_parts: TableInParts | None = None
    tied: Sequence[Index] = ()

    def part(self, rows: Index) -> Self:
        """The same for some of the rows."""
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.weights[rows], keys=self.keys[rows])

    def drawn(self, size: int) -> Self:
        """The same for so many rows at most."""
        return self if len(self.X) <= size else self.part(least(self.keys, size))

    def of_points(self) -> tuple[Self, Index]:
        """The same with equal points as one, with the mean of their targets, and the point of every row.

        Least squares stay what they are but for a constant, and leaving a point out leaves out all that is known about
        it. Of rows by themselves, those of the other targets at the point would speak against the one left out.
        """
        X, first, points = distinct_rows(self.X)
        weights = np.bincount(points, self.weights).astype(np.float64)
        columns = (self.y.reshape(len(points), -1) * self.weights[:, None]).T
        means = np.column_stack([np.bincount(points, column) / weights for column in columns])
        y = means.reshape(len(X), *self.y.shape[1:])
        return replace(self, X=X, y=y, weights=weights, keys=self.keys[first]), points

    def level(self, y: Array, weights: Array) -> Array | None:
        """What functions of some of the targets learn deviations from."""
        return self.loss.offset(self.loss.targets(y, len(y)), weights)

    def problem(self, architecture: Any, seed: int, rows: Index | None = None, y: Array | None = None) -> OuterLearning:
        """The outer problem, on some of the rows, perhaps with other targets for them."""
        offset = self.offset if rows is None else None
        rows = np.arange(len(self.X)) if rows is None else rows
        y, weights = self.y[rows] if y is None else y, self.weights[rows]
        if offset is None:
            offset = self.level(y, weights)
        family = as_trees(architecture)
        state = seed if family.random_state is None else family.random_state
        device, tied = family.device or self.device, family.tied or self.tied
        family = Trees(family.architecture, family.subsets, state, device, family.ranks_of, tied)
        return OuterLearning(
            family,
            self.loss,
            self.criterion,
            self.X[rows],
            y,
            sample_weight=weights,
            offset=offset,
            bounds=(-1.0, 1.0) if self.clip else None,
        )


def on_ranks(architecture: Any, X: Array) -> list[Trees]:
    """The same on columns of a table beside their ranks; nothing without these, or where a tree says what nodes see."""
    family = as_trees(architecture)
    is_open = isinstance(family.architecture, int | np.integer) and isinstance(family.subsets, str)
    if not is_open or beside_ranks(X[:1], X).shape[1] == X.shape[1]:
        return []
    return [Trees(family.architecture, family.subsets, family.random_state, family.device, X, family.tied)]
