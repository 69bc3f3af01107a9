"""What lam and the width of cells were chosen from, and what a checkpoint knows of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cells.cover import Assignment
from convexkernels.cells.selection import Grid
from convexkernels.criteria.comparison import Selection, least


@dataclass(frozen=True, eq=False)
class PairSelection(Selection):
    """Held-out risks of pairs of lam and width, and the least one.

    Attributes
    ----------
    grid : Grid
    risks : ndarray of shape (n_widths, n_lams)
        inf for pairs that the search did not come by.
    for_all : bool
        Whether it is the pair of all cells, and risks are means over some of them.
    is_cut : bool
        Whether the time was up, and other pairs might have been tried.
    """

    grid: Grid
    risks: Array
    for_all: bool = False
    is_cut: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Places of the width and of lam in the grid; of equal risks the most regular pair.

        The middle of the grid where the time was up before a pair was measured.
        """
        if self.is_cut and np.isinf(self.risks).all():
            return len(self.grid.widths) // 2, len(self.grid.lams) // 2
        return least(self.risks)

    @property
    def chosen(self) -> dict[str, float]:
        i, k = self.place
        return {"lam": float(self.grid.lams[k]), "width": float(self.grid.widths[i])}

    @property
    def curve(self) -> dict[str, Array]:
        widths, lams = np.meshgrid(self.grid.widths, self.grid.lams, indexing="ij")
        return {"lam": lams.ravel(), "width": widths.ravel(), "loss on rows held out": self.risks.ravel()}


@dataclass(frozen=True, eq=False)
class SelectionInCells(Selection):
    """How often a pair of lam and width was chosen, where every cell has chosen by itself.

    Grids of cells have one shape, and their values differ with the number of rows: the table has their medians.

    Attributes
    ----------
    cells : sequence of PairSelection
        Of those that have chosen.
    """

    cells: Sequence[PairSelection]

    @property
    def counts(self) -> Array:
        """Numbers of cells that have chosen each place of the grid, shape (n_widths, n_lams)."""
        counts = np.zeros(self.cells[0].risks.shape)
        np.add.at(counts, tuple(np.transpose([cell.place for cell in self.cells])), 1.0)
        return counts

    @property
    def at_an_edge(self) -> float:
        """Share of the cells whose pair is the first or the last of its grid in lam or in the width, if it has two."""
        counts = self.counts
        inside = tuple(slice(1, -1) if size > 1 else slice(None) for size in counts.shape)
        return float(1.0 - counts[inside].sum() / counts.sum())

    @property
    def chosen(self) -> dict[str, float]:
        row = int(self.counts.argmax())
        return {name: float(self.curve[name][row]) for name in ("lam", "width")}

    @property
    def curve(self) -> dict[str, Array]:
        grids = [cell.grid for cell in self.cells]
        medians = Grid(*(np.median([getattr(grid, name) for grid in grids], axis=0) for name in ("lams", "widths")))
        table = PairSelection(medians, self.counts).curve
        return {"lam": table["lam"], "width": table["width"], "cells that chose it": self.counts.ravel()}


class KnownCells:
    """Pairs of lam and width of cells, what they were chosen from, and dual variables, as a checkpoint keeps them.

    The `numbers` are arrays with a row for each cell, NaN where nothing is known; dual variables are one array for all
    cells, with a column for each row of the table that is one of the `members` of a cell.
    """

    def __init__(self, members: Assignment, n_outputs: int, known: Mapping[str, Array]) -> None:
        self.members, n_cells = members, members.n_cells
        *_, n_widths, n_lams = 0, 0, *np.shape(known.get("risks", ()))
        choices = {"risks": (n_cells, n_widths, n_lams), "widths": (n_cells, n_widths), "lams": (n_cells, n_lams)}
        shapes = {"pairs": (n_cells, 2), "alpha": (n_outputs, len(members.order)), **choices}
        # Another version may have written something else.
        fits = all(shapes.get(name) == value.shape and value.dtype == float for name, value in known.items())
        self.numbers = dict[str, Any](known) if fits else {}
        self._n_outputs = n_outputs

    def add(self, j: int, cell: Any) -> None:
        """Take what a cell has chosen and learned; a choice for all of them is known from elsewhere."""
        choice: PairSelection | None = cell.choice
        own = {} if choice is None or choice.for_all else {"risks": choice.risks, **vars(choice.grid)}
        for name, value in {"pairs": np.array([cell.width, cell.lam]), **own}.items():
            self._array(name, (self.members.n_cells, *value.shape))[j] = value
        self._alpha(j)[:, : cell.Y.shape[1]] = cell.alpha

    def settled(self, learner: Any, j: int) -> Any:
        """A learner that takes what a cell has chosen and begins with its function; the same where nothing is known."""
        per_cell = {name: values[j] for name, values in self.numbers.items() if name != "alpha"}
        rows = {name: values for name, values in per_cell.items() if not np.isnan(values).any()}
        if "pairs" not in rows:
            return learner
        choice = PairSelection(Grid(rows["lams"], rows["widths"]), rows["risks"]) if "risks" in rows else learner.choice
        return replace(learner, pair=tuple(rows["pairs"].tolist()), choice=choice, begin=self._alpha(j))

    def _alpha(self, j: int) -> Array:
        """Dual variables of a cell, in place; where it learns from some of its rows, the first columns are theirs."""
        all_cells = self._array("alpha", (self._n_outputs, len(self.members.order)))
        return all_cells[:, slice(*self.members.offsets[j : j + 2])]

    def _array(self, name: str, shape: tuple[int, ...]) -> Array:
        if name not in self.numbers or self.numbers[name].shape != shape:
            self.numbers[name] = np.full(shape, np.nan)
        known: Array = self.numbers[name]
        return known


def selection_of(choices: Sequence[PairSelection | None]) -> Selection | None:
    """What is to be said of the choices of all cells: of one, or of one for all, itself; None where there were none."""
    found = [choice for choice in choices if choice is not None]
    return SelectionInCells(found) if len(found) > 1 and not found[0].for_all else next(iter(found), None)
