"""The function of all cells, where it was learned or on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.cover import Assignment, Cover, VoronoiCover
from convexkernels.cells.kernel_learner import CellFunction
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import MissingAttributeError
from convexkernels.kernels.algebra import WeightedSum
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.localized import Localized

# The certificate of learners that prove nothing.
UNKNOWN = DualityGap(np.inf, -np.inf)
# Relative gaps below this are rounding: which of them is the worst would be chance.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LocalizedFunction:
    """The function of the cell that a point is in [MS16 (3)]; for random chunks the mean of all [ZDW15].

    It is the problem of its own solution: it measures the certificates of its cells again. `sizes` are numbers of rows
    that cells learned from, `members` these rows; None for a table that is on a cluster.
    """

    cover: Cover
    functions: list[Any]
    sizes: Index
    n_outputs: int
    members: Assignment | None = None

    @property
    def of_some_rows(self) -> str:
        """What is to be said of cells that learned from some of their rows, because time was short; empty for none."""
        return of_some_rows(np.array([getattr(cell, "n_spared", 0) for cell in self.functions]), self.sizes)

    def places(self, j: int) -> Index:
        """Rows of the table that cell `j` keeps, -1 where it is not known which."""
        kept = self.functions[j]
        size = (kept.Y if isinstance(kept, CellFunction) else kept.rows.Y).shape[1]
        rows = np.empty(0, dtype=np.intp) if self.members is None else self.members.rows(j)
        return rows if len(rows) == size else np.full(size, -1)

    def coefficients(self, m: int) -> Array:
        """Coefficients of all m rows of the table, shape (n_outputs, m): of each in the cell that predicts at it.

        Times lam of the cell, as they go with `kernel`. MissingAttributeError where cells have none, or it is not known
        of which rows.
        """
        W = np.zeros((self.n_outputs, m))
        for j in np.flatnonzero(self.sizes).tolist():
            cell, rows = self.functions[j], self.places(j)
            if not isinstance(cell, CellFunction) or (rows < 0).any():
                raise MissingAttributeError(f"{type(cell).__name__} of cell {j} has no coefficients of known rows.")
            if np.isfinite(cell.width):
                own = slice(None) if self.cover.average else np.flatnonzero(self.cover.cells(cell.X) == j)
                W[:, rows[own]] = cell.lam * cell.function.coefficients(len(rows))[:, own]
        return W / self.cover.n_cells if self.cover.average else W

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs): one pass, grouped by cell."""
        if self.cover.average:
            return np.mean([function.values(X) for function in self.functions], axis=0)
        groups = Assignment.from_labels(self.cover.cells(X), self.cover.n_cells)
        F = np.empty((len(X), self.n_outputs))
        for j in np.flatnonzero(groups.sizes).tolist():
            rows = groups.rows(j)
            F[rows] = self.functions[j].values(X[rows])
        return F

    decision_function = values

    def function(self, theta: Any, alpha: Any) -> Self:
        """The learned function."""
        return self

    def certificate(self, theta: Any, alpha: Any, witness: Any) -> DualityGap:
        """The worst certificate of all cells, computed again."""
        return worst([verified(function) for function, size in zip(self.functions, self.sizes, strict=True) if size])

    def kernel(self, theta: Any) -> Kernel:
        """The kernel with which one SVM, at lam = 1, is those of all cells [MS16 (15)], or of one cell of any kind.

        MissingAttributeError for covers and learners that have none.
        """
        cover, functions = self.cover, self.functions
        if all(isinstance(f, CellFunction) for f in functions):
            lams = [f.lam if np.isfinite(f.lam) else 1.0 for f in functions]
            if cover.n_cells == 1:
                return WeightedSum([functions[0].kernel], [1.0 / lams[0]])
            if type(cover) is VoronoiCover:
                return Localized(cover.centers, [f.kernel for f in functions], lams, cover.kernel)
        raise MissingAttributeError(
            f"a localized kernel belongs to Voronoi cells with kernels, or to one cell, got {cover!r} and "
            f"{type(functions[0]).__name__}; use cells=Cells('voronoi') and estimator=None."
        )


@dataclass(frozen=True, eq=False)
class FunctionsOfCells:
    """Several functions of all cells, whose values stand side by side."""

    functions: list[LocalizedFunction]

    @property
    def n_outputs(self) -> int:
        """Number of values at a point."""
        return sum(function.n_outputs for function in self.functions)

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return np.hstack([function.values(X) for function in self.functions])


def of_some_rows(spared: Index, sizes: Index) -> str:
    """What is to be said of cells of such sizes that spared so many rows, because time was short; empty for none."""
    short = spared > 0
    if not short.any():
        return ""
    share = 100.0 * (1.0 - spared.sum() / sizes[short].sum())
    return f"{short.sum()} of {len(sizes)} cells learned from {share:.0f} % of their rows"


def verified(function: Any) -> DualityGap:
    """The certificate of what a cell keeps, computed again; nothing is known of learners without one."""
    return function.verify() if hasattr(function, "verify") else UNKNOWN


def worst(gaps: Sequence[DualityGap]) -> DualityGap:
    """The certificate of the largest relative gap, crossed or not; of the largest value where all are rounding."""
    return max(gaps, key=lambda gap: (max(abs(gap.relative_gap), ROUNDING), gap.upper))
