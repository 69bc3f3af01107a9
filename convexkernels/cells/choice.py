"""What lam and the width of cells were chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
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
    """

    grid: Grid
    risks: Array
    for_all: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Places of the width and of lam in the grid; of equal risks the most regular pair."""
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


class KnownChoices:
    """Pairs of lam and width of cells, and what they were chosen from, as a checkpoint keeps them.

    The `numbers` are arrays with a row for each of `n_cells`, NaN where nothing is known.
    """

    def __init__(self, n_cells: int, known: Mapping[str, Array]) -> None:
        self.n_cells, self.numbers = n_cells, dict[str, Any](known)

    def add(self, j: int, width: float, lam: float, choice: PairSelection | None) -> None:
        """Take what a cell has chosen; a choice for all of them is known from elsewhere."""
        own = {} if choice is None or choice.for_all else {"risks": choice.risks, **vars(choice.grid)}
        for name, value in {"pairs": np.array([width, lam]), **own}.items():
            self.numbers.setdefault(name, np.full((self.n_cells, *value.shape), np.nan))[j] = value

    def settled(self, learner: Any, j: int) -> Any:
        """A learner that takes what a cell has chosen; the same where that is not known."""
        rows = {name: values[j] for name, values in self.numbers.items() if not np.isnan(values[j]).any()}
        if "pairs" not in rows:
            return learner
        choice = PairSelection(Grid(rows["lams"], rows["widths"]), rows["risks"]) if "risks" in rows else learner.choice
        return replace(learner, pair=tuple(rows["pairs"].tolist()), choice=choice)


def selection_of(choices: Sequence[PairSelection | None]) -> Selection | None:
    """What is to be said of the choices of all cells: of one, or of one for all, itself; None where there were none."""
    found = [choice for choice in choices if choice is not None]
    return SelectionInCells(found) if len(found) > 1 and not found[0].for_all else next(iter(found), None)
