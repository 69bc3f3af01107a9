"""Claims of Meister and Steinwart, "Optimal learning rates for localized SVMs" (JMLR 2016)."""

from __future__ import annotations

from proofs_check import localized_formulas as formulas
from proofs_check.claim import Claim

PAPER = "localized"

CLAIMS = [
    Claim(
        "clipping",
        "Clipping a prediction at the largest label increases neither the squared nor the hinge loss.",
        PAPER,
        "Section 2",
        formulas.measure_clipping,
        1.0,
        0.5,
    ),
    Claim(
        "cell-problem-rescaled",
        "The cell problem (2) is the SVM (1) on the cell's data with lambda_j n / n_j.",
        PAPER,
        "after (3)",
        formulas.measure_rescaled,
        lambda n, size: n / size,
        lambda n, size: size / n,
    ),
    Claim(
        "lemma-1",
        "A ball of radius c is covered by m balls of radius r with r <= 3 c m^(-1/d), here by the library's "
        "farthest-first traversal.",
        PAPER,
        "Lemma 1",
        formulas.measure_cover,
        3.0,
        1.0,
        trials=6,
    ),
    Claim(
        "voronoi-cells",
        "The library's cells (6) partition the data, ties go to the smallest index, and each cell lies in its ball.",
        PAPER,
        "Example 1, (6)",
        formulas.measure_voronoi,
        formulas.library_cells,
        formulas.largest_index,
    ),
    Claim(
        "lemma-2",
        "The kernel extended by zero is the reproducing kernel of the functions extended by zero, norms unchanged.",
        PAPER,
        "Lemma 2",
        formulas.measure_zero_extension,
        formulas.zero_outside,
        formulas.kept_outside,
    ),
    Claim(
        "lemma-3",
        "k_A / lambda_A + k_B / lambda_B, made by the library, is the reproducing kernel of the direct sum with "
        "the norm (12).",
        PAPER,
        "Lemma 3",
        formulas.measure_direct_sum,
        formulas.direct_sum,
        formulas.multiplied,
    ),
    Claim(
        "identity-15",
        "The predictor of all cell SVMs is the library's one SVM with the kernel of the direct sum and lambda = 1.",
        PAPER,
        "(3), (15)",
        formulas.measure_one_svm,
        formulas.direct_sum,
        formulas.unweighted,
    ),
    Claim(
        "lemma-9",
        "The risk of a predictor made of cells is the sum of the cells' risks.",
        PAPER,
        "Lemma 9",
        formulas.measure_additive_risk,
        formulas.sum_of_cell_risks,
        formulas.mean_of_cell_risks,
    ),
    Claim(
        "selection-per-cell",
        "Choosing (lambda, gamma) cell by cell minimizes the validation risk over all combinations, "
        "with m |Lambda| |Gamma| fits.",
        PAPER,
        "Section 4.2, before Theorem 7",
        formulas.measure_selection,
        formulas.choose_per_cell,
        formulas.choose_in_common,
    ),
]
