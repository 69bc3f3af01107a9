"""The paragraphs that the docstrings of estimators in cells share."""

CELL_WORDS = {
    "cell_notes": "{cell_numbers} {cell_tables}",
    "cell_tol": """
tol : float, > 0
    Relative duality gap of the function of every cell, at the lam and the width that were selected.
""",
    "cell_fitted": """
cover_ : Cover
n_cells_ : int
function_ : LocalizedFunction or DistributedFunction
    ``function_.functions`` has that of each cell: its lam, width, coefficients, duality gap, and the `choice` of both.
selection_ : Selection or None
    What lam and the width were chosen from. Of several cells that choose by themselves the medians of their grids,
    how many cells chose each pair, and with `at_an_edge` the share of those at an end of a grid. {a_selection}
feature_factors_ : ndarray of shape (n_features_in_,), or of the columns of ``columns_.encoded(X)``
    By which scaled features are multiplied in the metric of the cells and their Gaussians; 0 for constant features.
    ``CellSelection(factors=...)`` takes them.
kernel_ : Kernel
    For Voronoi cells, and for a single cell of any kind, the kernel with which one SVM, at lam = 1, is those of all
    cells. Others have none: `hasattr` says so. Their `effective_rank_` is the mean over cells, by their rows; there is
    none of an `estimator`, or of cells on a cluster.
solution_ : Solution
    Its certificate is the worst one of all cells, each at the lam and width selected for it; it is UNPROVEN where an
    `estimator` learns in the cells. ``theta`` has a row (lam, width) for every cell.
{columns}
targets_ : Targets
    How targets are encoded: classes, or ``center + spread * t`` with t in [-1, 1].
n_iter_ : int
    Number of cells that learned, at least 1.
{names}
""",
    "cell_numbers": """
Targets are scaled to [-1, 1], but for outliers of losses that hardly feel them, and predictions clipped to it.
Functions have no intercept. A cell whose targets are all the same, or with one point, answers with that constant; with
nothing to validate on, the most regular pair of the grid is taken.
""",
    "cell_tables": """
By default a Gaussian kernel with a width for each feature is learned first, by leave-one-out on a sample of rows; cells
are those of its metric, and a cell selects a multiple of its width. ``CellSelection(widths="isotropic")`` does without.

Equal rows are merged into one with the sum of their weights. `max_time` bounds the whole of it: cells for whose rows
it is too short learn from some of them, and those that were not begun when it is over answer with a function of 1,500
rows of the table, or of half of a shorter one; when the user interrupts before lam and the width are known for all,
with the best constant for their rows. One warning says how many were not begun, how many learned from
some rows, and from which share (``function_.of_some_rows``).
Cost: O(m) for cells of bounded size, besides finding the centers, O(m) each.

Dask arrays and dataframes (extra ``distributed``) are read part by part, twice: centers come from a random sample of
rows, a shuffle of Dask takes the rows to their cells, and cells are tasks of the active `distributed.Client`, or of
Dask's local scheduler when there is none. Predictions for them are lazy Dask arrays.
""",
}
