"""Pairs of lam and width that all cells share, kernels that are given, and functions of cells that were not begun."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels import EpsilonInsensitive, Gaussian, Hinge, LeastSquares
from convexkernels.cells.kernel_learner import KernelLearner, _around, multiples
from convexkernels.cells.learner import CellRows, CellSelection
from convexkernels.cells.matrices import GaussianMatrices
from convexkernels.cells.selection import Grid, GridSearch
from convexkernels.cells.stand_in import FunctionOfTable, _norms
from convexkernels.checking import Verdict
from convexkernels.kernels import Scaled
from convexkernels.problems.decision_function import DecisionFunction
from proofs_check.localized.cells import chosen, direct_risks, gaussian, geometric, held_out
from proofs_check.risk_formulas import ridge

Generator = np.random.Generator


def measure_shared_pair(factor: float, rng: Generator) -> Verdict:
    """The risk of a pair for all cells is that of all their rows together, and the pair is the one of the least risk.

    Every row left out in turn, within its cell; the grid is that of the first cell. `factor` multiplies risks.
    """
    cells, direct, total, grid = [], np.zeros((2, 3)), 0.0, None
    for m in (7, 9):
        X, weights = rng.uniform(-1.0, 1.0, (m, 1)), float(m) * rng.uniform(0.5, 2.0, m)
        y = np.clip(np.sin(3.0 * X[:, 0]) + 0.4 * rng.standard_normal(m), -1.0, 1.0)
        cells.append(CellRows(X, y[None, :], weights))
        if grid is None:
            grid = float(weights.sum()) * geometric((0.001 / m, 0.1), 3), geometric((0.5 / m, 10.0), 2)
        rows = held_out(m, "leave-one-out", 0)
        direct += float(weights.sum()) * direct_risks(X, y, weights, rows, grid)
        total += float(weights.sum())
    learner = KernelLearner(LeastSquares(1.0, intercept=False), CellSelection("leave-one-out", 3, 2))
    found = learner.for_all(cells, np.random.default_rng(0))
    assert grid is not None
    assert found.choice is not None
    assert found.pair is not None
    risks, expected = found.choice.risks, factor * direct / total
    known = np.isfinite(risks)
    i, k = np.unravel_index(chosen(np.where(known, risks, np.inf)), risks.shape)
    pair = abs(found.pair[0] / grid[1][i] - 1.0) + abs(found.pair[1] / grid[0][k] - 1.0)
    apart = float((np.abs(risks / expected - 1.0))[known].max())
    # The walk goes on to better neighbors only: where it began it has the least risk of what it has measured.
    witness = {"risks": risks, "direct": expected, "known": known}
    return Verdict(max(apart, pair, abs(found.risk / risks[known].min() - 1.0)), 1e-9, 1, witness)


def measure_exact_risk(factor: float, rng: Generator) -> Verdict:
    """The risk of a pair on folds is the weighted mean of the losses of functions that are trained again.

    Of the hinge loss, clipped, against programs of CVXPY. `factor` multiplies risks.
    """
    m, weights = 15, rng.uniform(0.2, 3.0, 15)
    X = rng.uniform(-1.0, 1.0, (m, 2))
    y = np.where(np.sin(3.0 * X[:, 0]) + 0.8 * rng.standard_normal(m) > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    grid = Grid(np.array([0.2, 0.5]), np.array([0.5, 1.0]))
    blocks = held_out(m, 3, int(rng.integers(2**31)))
    search = GridSearch(Hinge(1.0, intercept=False), GaussianMatrices(X), y[None], weights, grid, blocks, 1.0)
    risks = np.array([[search.exact(i, k) for k in range(2)] for i in range(2)])
    direct = factor * direct_risks(X, y, weights, blocks, (grid.lams, grid.widths), loss="hinge")
    witness = {"X": X, "y": y, "weights": weights, "risks": risks, "direct": direct}
    # Functions are trained to a gap of 1 percent.
    return Verdict(float(np.abs(risks / direct - 1.0).max()), 0.05, 1, witness)


def measure_grid_of_division(factor: float, rng: Generator) -> Verdict:
    """Candidates for lam are those beside the mean over D1, whose rows functions learn from: D2 has no part in them.

    `factor` multiplies the weight of D1.
    """
    m, weights = int(rng.integers(12, 20)), rng.uniform(0.2, 3.0, 20)
    X, Y = rng.uniform(-1.0, 1.0, (m, 2)), rng.uniform(-1.0, 1.0, (1, m))
    rows = CellRows(X, Y, weights[:m]).divided(rng)
    assert rows.held_out is not None
    learner = KernelLearner(LeastSquares(1.0, intercept=False), CellSelection("global-split", 4, 3))
    choice = learner.learn(rows, rng).choice
    assert choice is not None
    D1, total = int((~rows.held_out).sum()), factor * float(weights[:m][~rows.held_out].sum())
    apart = [
        np.abs(choice.grid.lams / (total * geometric((0.001 / D1, 0.1), 4)) - 1.0).max(),
        np.abs(choice.grid.widths / geometric((0.5 * D1**-0.5, 10.0), 3) - 1.0).max(),
    ]
    return Verdict(float(max(apart)), 1e-12, 1, {"X": X, "weights": weights[:m], "lams": choice.grid.lams})


def measure_given_kernel(factor: float, rng: Generator) -> Verdict:
    """Widths of a kernel that is given are geometric from half its own to twice that: its own is in the middle.

    A search that knows lam and the kernel begins at the pair nearest to them, on the logarithmic scale; of a learned
    width candidates are 7 from a fifth of it to 3.5 times it. `factor` multiplies the upper ends.
    """
    count, width, m = int(rng.integers(2, 9)), float(np.exp(rng.uniform(-1.0, 1.0))), int(rng.integers(5, 500))
    widths = multiples(count)
    apart = [
        float(np.abs(widths / geometric((0.5, 2.0 * factor), count) - 1.0).max()),
        abs(float(multiples(1)[0]) - 1.0),
    ]
    learned = Grid.of_cell(m, 3, 1.0, width=width).widths
    direct = geometric((0.2 * width, 3.5 * factor * width), 7)
    apart.append(float("inf") if len(learned) != 7 else float(np.abs(learned / direct - 1.0).max()))
    grid = Grid(np.sort(np.exp(rng.uniform(-8.0, 2.0, 6))), multiples(5))
    lam = float(np.exp(rng.uniform(-8.0, 2.0)))
    i, k = np.unravel_index(_around(grid, lam).argmin(), (5, 6))
    nearest = min(range(6), key=lambda j: max(grid.lams[j] / lam, lam / grid.lams[j]))
    apart.append(float(i != 2) + float(k != nearest))
    return Verdict(max(apart), 1e-12, 1, {"widths": widths, "lams": grid.lams, "lam": lam})


def measure_stand_in(factor: float, rng: Generator) -> Verdict:
    """In a cell that was not begun the certificate is the most that losses can be for functions of such a norm.

    ``|f(x)| <= |f| sqrt(k(x, x)) + |b|``, attained by a multiple of k(x, .), and at most the bound of the values; the
    largest loss is at one of both ends. `factor` multiplies the norm.
    """
    scale, rate, clip = float(rng.uniform(0.1, 4.0)), float(rng.uniform(0.5, 3.0)), float(rng.uniform(0.5, 3.0))
    Z, X, w, b = (
        rng.uniform(-1.0, 1.0, (6, 2)),
        rng.uniform(-1.0, 1.0, (9, 2)),
        rng.standard_normal((1, 6)),
        rng.normal(),
    )
    y, weights = rng.choice([-1.0, 1.0], 9), rng.uniform(0.5, 2.0, 9)
    bounds = (np.array([[-clip]]), np.array([[clip]])) if rng.integers(2) else None
    K = scale * np.exp(-rate * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    norm = factor * float(np.sqrt(w[0] @ K @ w[0]))
    reach = norm * np.sqrt(scale) + abs(b)
    reach = reach if bounds is None else min(reach, clip)
    kernel = Scaled(scale, Gaussian(rate))
    function = DecisionFunction.of_kernel(kernel, Z, w, np.array([b]), bounds=bounds)
    ends = np.array([reach, -reach])[:, None]
    verdicts = []
    for loss, direct in (
        (LeastSquares(1.0, intercept=False), (y - ends) ** 2),
        (Hinge(1.0, intercept=False), np.maximum(0.0, 1.0 - y * ends)),
        (EpsilonInsensitive(1.0, 0.1, intercept=False), np.maximum(0.0, np.abs(y - ends) - 0.1)),
    ):
        known: Any = FunctionOfTable(function, loss, np.ones(6, dtype=bool), _norms(function))
        stands = known.in_cell(CellRows(X, y[None, :], weights), np.ones(9, dtype=bool))
        expected, below = (
            float(direct.max(axis=0) @ weights),
            float(loss.total(y[None], stands.values(X).T, weights).sum()),
        )
        apart = max(abs(stands.certificate.upper - expected), abs(stands.verify().upper - expected))
        witness = {"X": X, "Z": Z, "w": w, "loss": repr(loss), "upper": stands.certificate.upper}
        size = 1e-12 * (1.0 + expected)
        verdicts.append(
            Verdict(max(apart, below - stands.certificate.upper, stands.certificate.lower), size, 1, witness)
        )
    return Verdict.worst(verdicts)


def measure_race(errors: float, rng: Generator) -> Verdict:
    """Pairs stay in a race whose risks are within two standard errors of the least one, four or a third at most.

    All learn from the first third of a random order and are compared on the others; the error is that of the mean of
    differences. `errors` multiplies it.
    """
    m, seed = 300, int(rng.integers(2**31))
    X, weights, grid = (
        rng.uniform(-1.0, 1.0, (m, 1)),
        np.ones(m),
        Grid(np.geomspace(0.03, 3.0, 4), np.geomspace(0.2, 0.8, 3)),
    )
    y = np.sin(3.0 * X[:, 0]) + 0.5 * rng.standard_normal(m)
    search = GridSearch(LeastSquares(1.0, intercept=False), GaussianMatrices(X), y[None], weights, grid, None)
    found = search.raced_risks(np.random.default_rng(seed))
    order = np.random.default_rng(seed).permutation(m)
    train, rest = order[:100], order[100:]
    losses = np.empty((3, 4, 200))
    for i, width in enumerate(grid.widths):
        for k, lam in enumerate(grid.lams):
            w, _ = ridge(
                gaussian(X[train], X[train], float(width)), y[train], weights[train], float(lam), intercept=False
            )
            losses[i, k] = (y[rest] - gaussian(X[rest], X[train], float(width)) @ w) ** 2
    risks = losses.mean(axis=2)
    best = losses[np.unravel_index(risks.argmin(), risks.shape)]
    limit = risks.min() + errors * 2.0 * np.std(losses - best, axis=2) / np.sqrt(200.0)
    stay = (risks <= limit) & (risks <= np.sort(risks, axis=None)[3])
    apart = float(np.abs(np.where(stay, risks, 0.0) - np.where(np.isfinite(found), found, 0.0)).max())
    return Verdict(apart, 1e-9, 1, {"X": X, "y": y, "risks": risks, "found": found})
