"""What answers in cells that were not begun: the function of some rows of the whole table."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from convexkernels.arrays import Array, Mask
from convexkernels.cells.kernel_learner import CellFunction, KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.exceptions import MissingAttributeError
from convexkernels.losses.base import Loss
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.rounding import UNIT
from convexkernels.threads import threads_for

# Rows that it learns from, half of the table at most, and those that lam and the width are selected on.
ROWS, SELECTED_ROWS = 1500, 300
# Candidates for lam and for the width, at most.
N_LAMS, N_WIDTHS = 4, 4
# Share and seconds of the time that are kept for it, at most.
SHARE, SECONDS = 0.2, 3.0
# Seconds after which its selection ends with what it has: many times what it takes, for a part of it is worth little.
LONGEST = 10.0


@dataclass(frozen=True, eq=False)
class StandIn(CellFunction):
    """The function of some rows of the whole table in a cell that was not begun, `seen` being those that are here.

    It solves no problem of the cell: lam and the width are NaN. Its certificate is that of a constant, the sum of the
    losses, which is not below 0; no value is larger than the norm times the root of the diagonal of the kernel.
    """

    seen: Mask = field(kw_only=True, repr=False)

    @property
    def alpha(self) -> Array:
        raise MissingAttributeError("a cell that was not begun has no dual variables.")

    def verify(self) -> DualityGap:
        return _gap(self.function, _norms(self.function), self.loss, self.X, self.Y, self.weights)


@dataclass(frozen=True, eq=False)
class FunctionOfTable:
    """A function of some rows of a table, which are True in `seen`, and the norms of its outputs."""

    function: DecisionFunction
    loss: Loss
    seen: Mask
    norms: Array

    def __str__(self) -> str:
        return f"a function of {np.count_nonzero(self.seen)} of {len(self.seen)} rows"

    def in_cell(self, rows: CellRows, seen: Mask) -> StandIn:
        """What it is for the rows of a cell."""
        gap = _gap(self.function, self.norms, self.loss, rows.X, rows.Y, rows.weights)
        return StandIn(self.function, self.loss, rows.X, rows.Y, rows.weights, np.nan, gap, seen=seen)


def function_of_table(learner: KernelLearner, table: CellRows, clock: Clock, seed: int) -> FunctionOfTable | None:
    """The function of some rows, in a moment for which there is time after a limit, too.

    None where targets are all the same, or after an interrupt: of this work, or where a pair is still to be selected.
    """
    if learner.pair is None and clock.interrupted:
        return None
    # With the seed alone these would be the rows that a division of the table has kept for training.
    order = np.random.default_rng((seed, ROWS)).permutation(len(table.X))[: min(ROWS, len(table.X) // 2)]
    rows = np.sort(order)
    part = replace(table.part(rows), own=np.isin(rows, order[:SELECTED_ROWS]))  # on which the pair is selected
    if learner.pair is None and learner.selection.candidates is None:
        asked = learner.selection
        few = min(N_LAMS, asked.n_lams), min(N_WIDTHS, asked.n_widths or N_WIDTHS)
        learner = replace(learner, selection=replace(asked, n_lams=few[0], n_widths=few[1]))
    end = max(clock.deadline, time.monotonic() + LONGEST)
    seen = np.zeros(len(table.X), dtype=bool)
    seen[rows if part.held_out is None else rows[~part.held_out]] = True
    try:
        with threads_for(len(rows)):
            found = learner.learn(part, np.random.default_rng(seed), end)
            norms = _norms(found.function)
    except KeyboardInterrupt:
        clock.interrupt()
        return None
    return FunctionOfTable(found.function, found.loss, seen, norms) if np.isfinite(found.width) else None


def sparing(clock: Clock) -> Clock:
    """A clock that leaves the time for such a function."""
    return clock if clock.left is None or clock.is_over else clock.sparing(min(SHARE * clock.left, SECONDS))


def _norms(function: DecisionFunction) -> Array:
    """Norms of the outputs, shape (n_outputs,)."""
    points = function.gram_set.points  # type: ignore[attr-defined]
    K = function.gram_set.cross(function.theta, points)
    squares: Array = function.gram_set.kernel._sizes(points)  # type: ignore[attr-defined]
    hidden = UNIT * (np.abs(function.W) @ np.sqrt(squares)) ** 2
    return np.sqrt(np.maximum(np.einsum("ki,ki->k", function.W @ K, function.W), 0.0) + hidden)


def _gap(function: DecisionFunction, norms: Array, loss: Loss, X: Array, Y: Array, weights: Array) -> DualityGap:
    """No more than the sum of the losses, convex ones, at the ends of what values can be."""
    diagonal = function.gram_set.kernel.diag(X)  # type: ignore[attr-defined]
    reach = norms[:, None] * np.sqrt(diagonal) + np.abs(function.b)[:, None]
    if function.bounds is not None:
        reach = np.minimum(reach, function.bounds[1])
    losses = np.maximum(loss.pointwise(Y, reach)[0], loss.pointwise(Y, -reach)[0])
    return DualityGap(float((losses @ weights).sum()), 0.0)
