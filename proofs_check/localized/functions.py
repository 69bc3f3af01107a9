"""The function of all cells: the mean of random chunks [ZDW15], and the one kernel and its weights [MS16 (15)]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from convexkernels import CellSelection, LeastSquares, RandomChunks, VoronoiCover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.cells.training import learn_cells
from convexkernels.checking import Verdict
from convexkernels.clock import Clock
from proofs_check.localized.cells import CellRule, gaussian, svm_of_cell
from proofs_check.risk_formulas import ridge

Generator = np.random.Generator
LOSS = LeastSquares(1.0, intercept=False)


def _table(rng: Generator, m: int) -> CellRows:
    """Rows with weights; targets are small, so that nothing is clipped."""
    X = rng.uniform(-1.0, 1.0, (m, 2))
    y = 0.2 * np.sin(3.0 * X[:, 0]) + 0.05 * rng.standard_normal(m)
    return CellRows(X, y[None, :], rng.uniform(0.5, 2.0, m))


def measure_chunks(share: Callable[[int, int, int], float], rng: Generator) -> Verdict:
    """The mean of the SVMs of the chunks, each of which counts alike, and its coefficients.

    `share` is that of one chunk, by the number of chunks, its rows and all rows.
    """
    table, Z, width = _table(rng, 31), rng.uniform(-1.0, 1.0, (20, 2)), float(rng.uniform(0.3, 1.0))
    lam = float(np.exp(rng.uniform(-7.0, -4.0)))
    total = float(table.weights.sum())
    learner = KernelLearner(LOSS, CellSelection(candidates=([lam], [width])), total=total)
    found = learn_cells(table, RandomChunks(3, int(rng.integers(2**31))), learner, Clock()).problem
    chunks = [found.members.rows(j) for j in range(3)]
    direct = np.zeros(len(Z))
    for rows in chunks:
        own = lam * total / float(table.weights[rows].sum())
        function = svm_of_cell(table.X[rows], table.Y[0, rows], table.weights[rows], own, width)
        direct += share(3, len(rows), 31) * function(Z)
    # Coefficients go with kernels divided by lam beside the sum of the losses.
    expanded = gaussian(Z, table.X, width) @ found.coefficients(31)[0] / (lam * total)
    apart = max(float(np.abs(values - direct).max()) for values in (found.values(Z)[:, 0], expanded))
    missing = int((np.sort(np.concatenate(chunks)) != np.arange(31)).sum())
    return Verdict(apart + missing, 1e-9, 1, {"X": table.X, "y": table.Y[0], "Z": Z, "lam": lam, "width": width})


def measure_one_kernel(price: float, rng: Generator) -> Verdict:
    """Values and coefficients of all cells, or of one, are those of one SVM with the sum of kernels over lambda.

    `price` is lambda of that SVM.
    """
    centers = np.array([[-0.5, -0.3], [0.5, -0.3], [0.0, 0.6]])[: int(rng.choice([1, 3]))]
    table, Z, rule = _table(rng, 30), rng.uniform(-1.0, 1.0, (20, 2)), CellRule()
    learner = KernelLearner(LOSS, CellSelection(n_lams=1, n_widths=1))
    found = learn_cells(table, VoronoiCover(centers), learner, Clock()).problem
    cells, there = (np.argmin(((U[:, None] - centers[None]) ** 2).sum(axis=2), axis=1) for U in (table.X, Z))
    K, across = np.zeros((30, 30)), np.zeros((20, 30))
    for j in range(len(centers)):
        own = cells == j
        m, weight = int(own.sum()), float(table.weights[own].sum())
        lam, width = rule.lam(m) * weight, rule.width(m, 2)
        K[np.ix_(own, own)] = gaussian(table.X[own], table.X[own], width) / lam
        across[np.ix_(there == j, own)] = gaussian(Z[there == j], table.X[own], width) / lam
    w, _ = ridge(K, table.Y[0], table.weights, price, intercept=False)
    kernel = found.kernel(None)
    coefficients = float(np.abs(found.coefficients(30)[0] - w).max()) / float(np.abs(w).max())
    matrix = max(float(np.abs(A - B).max()) for A, B in ((kernel(table.X), K), (kernel(Z, table.X), across)))
    values = float(np.abs(found.values(Z)[:, 0] - across @ w).max())
    witness = {"X": table.X, "y": table.Y[0], "Z": Z, "centers": centers}
    return Verdict(max(coefficients, matrix / float(K.max()), values), 1e-8, 1, witness)
