"""The choice of lam and the width of a kernel: in a cell by itself, or one pair for all cells."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.choice import PairSelection
from convexkernels.cells.learner import GLOBAL_SPLIT, CellRows, CellSelection
from convexkernels.cells.matrices import Matrices
from convexkernels.cells.selection import Grid, GridSearch, walk
from convexkernels.criteria.folds import held_out_blocks
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss

# Multiples of a lam that is known for fewer rows.
LAMS = (1.0 / 16.0, 4.0)


@dataclass(frozen=True)
class PairChooser:
    """Chooses lam and the width by held-out risks; parameters are those of `KernelLearner`."""

    loss: Loss
    selection: CellSelection
    clip: float = 1.0
    width: float | None = None
    kernel: Kernel | None = None
    lam: float | None = None
    total: float = 1.0

    def of_cell(
        self, rows: CellRows, matrices: Matrices, rng: np.random.Generator, deadline: float
    ) -> tuple[float, float, PairSelection | None]:
        """Width and lam of the least held-out risk, and the risks."""
        blocks = self._blocks(rows, rng)
        grid = self._grid(rows, blocks)
        choice, i, k = None, len(grid.widths) - 1, len(grid.lams) - 1
        if (blocks is None or blocks) and len(grid.widths) * len(grid.lams) > 1:
            search = GridSearch(self.loss, matrices, rows.Y, rows.weights, grid, blocks, self.clip, deadline)
            risks = search.risks(self.selection.rank, rng)
            choice = PairSelection(grid, risks, is_cut=time.monotonic() > deadline)
            i, k = choice.place
        return float(grid.widths[i]), float(grid.lams[k]), choice

    def for_all(
        self,
        cells: Sequence[CellRows],
        matrices_of: Callable[[Array], Matrices],
        rng: np.random.Generator,
        deadline: float,
    ) -> PairSelection | None:
        """One pair for all cells: the best one in some of them together; None where they say nothing.

        Cells whose targets are all the same have nothing to say; the grid is that of the first one that has.
        """
        inside = [rows.inside() for rows in cells if not rows.training().is_constant]
        searches, shares = list[GridSearch](), list[float]()
        for rows in inside:
            blocks = self._blocks(rows, rng)
            if blocks is not None and not blocks:  # no row of D2, or too few for two parts
                continue
            shares.append(float(rows.weights.sum()))
            grid = searches[0].grid if searches else self._grid(rows, blocks)
            matrices = matrices_of(rows.X)
            searches.append(GridSearch(self.loss, matrices, rows.Y, rows.weights, grid, blocks, self.clip, deadline))
        if not searches:
            return None

        def exact(i: int, k: int, rival: tuple[int, int] | None) -> float:
            return sum(share * search.exact(i, k) for share, search in zip(shares, searches, strict=True))

        if self.lam is None:
            first = np.maximum(searches[0].risks(self.selection.rank, rng), searches[0].enough)
        else:
            first = _around(searches[0].grid, self.lam)
        enough = sum(share * search.enough for share, search in zip(shares, searches, strict=True))
        keeps_width = any(search.keeps_width for search in searches)
        risks = walk(first, exact, deadline, enough, keeps_width) / sum(shares)
        return PairSelection(searches[0].grid, risks, for_all=True, is_cut=time.monotonic() > deadline)

    def _blocks(self, rows: CellRows, rng: np.random.Generator) -> list[Index] | None:
        """The rows of a cell that are held out in turn, as from `held_out_blocks`; those of D2 are."""
        validation = self.selection.of_loss(self.loss)
        if validation != GLOBAL_SPLIT:
            return held_out_blocks(len(rows.X), validation, rng)
        return [] if rows.held_out is None or not rows.held_out.any() else [np.flatnonzero(rows.held_out)]

    def _grid(self, rows: CellRows, blocks: list[Index] | None) -> Grid:
        """Candidates, for what is left of the rows when the largest block is held out."""
        (m, n), selection = rows.X.shape, self.selection
        if selection.candidates is not None:
            lams, widths = map(np.unique, selection.candidates)
            return Grid(self.total * lams, widths)
        held_out = 0 if blocks is None else max((len(block) for block in blocks), default=0)
        total, counts = float(rows.training().weights.sum()), (selection.n_lams, selection.n_widths)
        grid = Grid.of_cell(m - held_out, n, total, *counts, self.width)
        if self.lam is not None:
            grid = replace(grid, lams=self.lam * np.geomspace(*LAMS, selection.n_lams))
        return grid if self.kernel is None else replace(grid, widths=multiples(selection.n_widths or 1))


def _around(grid: Grid, lam: float) -> Array:
    """A guess of risks: least for the kernel and the lam that are given."""
    return np.asarray(np.abs(np.log(grid.widths))[:, None] + np.abs(np.log(grid.lams / lam)))


def multiples(n_widths: int) -> Array:
    """Widths of a kernel that is given: so many multiples of its own."""
    return np.geomspace(0.5, 2.0, n_widths) if n_widths > 1 else np.ones(1)
