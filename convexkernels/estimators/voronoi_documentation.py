"""The words that the docstrings of all Voronoi estimators share, written once."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["documented"]

Estimator = TypeVar("Estimator", bound=type)

_CELLS = """scale : bool
        Scale every feature to [-1, 1] by its range in the table. False takes features as they are; the grid of widths
        is meant for about that range.
    radius : float, > 0, optional
        Of the balls that the cells lie in, on scaled features.
    max_cell_size : int, >= 2, optional
        Most training points of a cell; 2000 when neither a radius nor a budget is given.
    time_budget, memory_budget : float, > 0, optional
        Seconds that the learning may take (estimated from small cells), bytes that one cell may take: the largest
        cells are used that keep both.
    partition : {"voronoi", "tree", "overlapping", "random"}
        Voronoi cells; cells divided again and again; Voronoi cells that also learn from near points of their
        neighbours; random chunks of the table, whose machines are averaged (the baseline).
    overlap : float, >= 0
        For "overlapping": a point teaches the cells whose centres are at most ``1 + overlap`` times as far as the
        nearest one. A cell selects lam and the width on the points that it answers for, and trains on all.
    subset : int, optional
        Centres are sought among so many random points."""

_FOLDS = """validation : int >= 2, or "split"
        How lam and the width of each cell are selected: folds, or training on one half and validation on the other
        (TV-VP-SVM).
    n_lams, n_widths : int, >= 1
        Size of the grid, geometric in ``[0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]`` for a cell that trains on
        m points."""

_SELECTION = """validation : int >= 2, "split", or "leave-one-out"
        How lam and the width of each cell are selected: folds, or training on one half and validation on the other
        (TV-VP-SVM), or every point left out in turn, which has a closed form for least squares.
    n_lams, n_widths : int, >= 1
        Size of the grid, geometric in ``[0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]`` for a cell that trains on
        m points.
    rank : int, >= 1
        Rank of the factors of Gram matrices that the selection for least squares starts with. In larger cells the
        best pair and its neighbours are measured again with exact ones. The final machines are exact."""

_LEARNING = """tol : float, > 0
        Relative duality gap of final machines that are solved by iteration.
    estimator : estimator object, optional
        A clone of it learns in each cell, on scaled features and targets, instead of a Gaussian machine; it takes
        ``sample_weight`` where there are weights or repeated rows.
    gather : bool
        What becomes of machines that a Dask cluster learned: they are brought here, or stay there until
        ``machines_.gather()``. Many and large ones should stay: predictions for Dask tables take them along.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Processes that share the cells. With 1, the linear algebra may use all cores. A Dask cluster has its own.
    max_time : float, > 0, optional
        Seconds after which no further cell is begun; the others answer with a constant, and a warning says so.
    verbose : bool
        Show how many cells are learned and how long the rest will take."""

_FITTED = """cover_ : Cover
    n_cells_ : int
    machines_ : LocalizedMachines or DistributedMachines
        With the machine of each cell: its lam, width, coefficients and held-out risks.
    kernel_ : Kernel
        For Voronoi cells, the kernel with which one machine at price 1 is the machines of all cells.
    scaling_ : Scaling
        How features are scaled.
    n_features_in_ : int"""

_RANGE = """centre_, half_range_ : float
        Targets are ``centre_ + half_range_ * t`` with t in [-1, 1]."""

_NUMBERS = """Targets are scaled to [-1, 1], and predictions clipped to their range. Machines have no intercept. A cell
    whose targets are all the same, or with one point, answers with that constant; with nothing to validate on, the
    most regular pair of the grid is taken."""

_TABLES = """Equal rows are merged into one with the sum of their weights. Cost: O(m) for cells of bounded size, besides
    finding the centres, O(m) each.

    Dask arrays and dataframes (extra ``distributed``) are read part by part, twice: centres come from `subset` random
    rows, a shuffle of Dask takes the rows to their cells, and cells are tasks of the active `distributed.Client`, or of
    Dask's local scheduler when there is none. Predictions for them are lazy Dask arrays."""

_SHARED = {
    "{cells}": _CELLS,
    "{folds}": _FOLDS,
    "{selection}": _SELECTION,
    "{learning}": _LEARNING,
    "{fitted}": _FITTED,
    "{range}": _RANGE,
    "{numbers}": _NUMBERS,
    "{tables}": _TABLES,
}


def documented(cls: Estimator) -> Estimator:
    """Put the shared paragraphs in the place of their names in braces, in the docstring of a class."""
    text = cls.__doc__ or ""
    for name, paragraph in _SHARED.items():
        text = text.replace(name, paragraph)
    cls.__doc__ = text
    return cls
