"""How candidates are compared by held-out risks, how a table is divided, and what is said of all cells."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np

from convexkernels import Gaussian
from convexkernels.arrays import Array
from convexkernels.cells.choice import PairSelection, SelectionInCells
from convexkernels.cells.covering import cell_size_within, voronoi_cover
from convexkernels.cells.function import of_some_rows, worst
from convexkernels.cells.learner import CellRows
from convexkernels.cells.selection import Grid
from convexkernels.cells.training import seconds_by_size
from convexkernels.cells.traversal import split_largest, traverse_in
from convexkernels.certificate import DualityGap
from convexkernels.checking import Verdict
from convexkernels.criteria.comparison import is_clearly_worse, over_folds, survivors
from convexkernels.solvers.convex.feature_scale import _vertex
from convexkernels.solvers.convex.held_out_path import RATIO, HeldOutPath
from proofs_check.claim import Claim

Generator = np.random.Generator


# ---- risks of folds


def measure_folds(factor: float, rng: Generator) -> Verdict:
    """The risk of a candidate is the weighted mean over all rows of the folds that are known of it.

    Candidates of which fewer folds are known than of others are inf; `factor` multiplies sums of losses.
    """
    sizes = rng.integers(2, 6, 4)
    weights = [rng.uniform(0.5, 2.0, size) for size in sizes]
    losses = [rng.uniform(0.0, 3.0, (3, size)) for size in sizes]
    known = np.ones((4, 3), dtype=bool)
    known[-1] = bool(rng.integers(2))
    known[rng.integers(0, 3), 2] = False  # of the last candidate one fold less
    rows = zip(losses, weights, strict=True)
    sums = np.array([[factor * float(row @ w) for row in part] for part, w in rows])
    found = over_folds(np.where(known, sums, rng.choice([np.inf, np.nan])), np.array([w.sum() for w in weights]))
    direct = []
    for k in (0, 1):
        used = [i for i in range(4) if known[i, k]]
        all_losses, all_weights = (
            np.concatenate([part[i] for i in used]) for part in ([x[k] for x in losses], weights)
        )
        direct.append(float(np.average(all_losses, weights=all_weights)))
    wrong = float(np.isfinite(found[2]))
    return Verdict(float(np.abs(found[:2] - direct).max()) + wrong, 1e-13, 1, {"sums": sums, "known": known})


def measure_clearly_worse(errors: float, rng: Generator) -> Verdict:
    """Worse by more than two standard errors of the sum of weighted differences, `errors` being 1; no more, no less."""
    m, weights = int(rng.integers(5, 30)), rng.uniform(0.5, 2.0, 40)
    others = rng.uniform(0.0, 1.0, 40)
    noise = rng.standard_normal(m)
    noise -= noise.mean()
    error = np.sqrt(m) * float(np.std(noise))  # of the sum of m independent differences
    wrong = 0
    for multiple, expected in ((1.99, False), (2.01, True), (-2.01, False)):
        losses = np.full(40, np.nan)
        losses[:m] = others[:m] + (noise + multiple * errors * error / m) / weights[:m]
        wrong += int(is_clearly_worse(losses, others, weights) != expected)
    return Verdict(float(wrong), 0.0, 1, {"noise": noise, "weights": weights})


def measure_survivors(errors: float, rng: Generator) -> Verdict:
    """Who goes on: the least risks, so many at most, up to two standard errors above the least one.

    `errors` multiplies them.
    """
    risks, count, noise = rng.uniform(0.0, 1.0, (4, 5)), int(rng.integers(1, 12)), rng.uniform(0.02, 0.3, (4, 5))
    risks[rng.integers(4), rng.integers(5)] = np.nan
    flat, allowed = risks.ravel(), errors * 2.0 * noise.ravel()
    best = float(np.nanmin(flat))
    ranked = sorted((r, i) for i, r in enumerate(flat.tolist()) if np.isfinite(r))[:count]
    expected = {i for r, i in ranked if r <= best + allowed[i]}
    apart = expected ^ set(survivors(risks, count, noise).tolist())
    return Verdict(float(len(apart)), 0.0, 1, {"risks": risks, "noise": noise, "count": count})


def measure_parabola(factor: float, rng: Generator) -> Verdict:
    """Where logarithms of risks are a parabola its least point is found, and what the next candidate would gain.

    A path goes on where it promises a gain of 2 percent; `factor` multiplies the bend of the parabola.
    """
    bend, at, level = float(rng.uniform(0.1, 2.0)), float(rng.uniform(-0.45, 0.45)), float(rng.uniform(-3.0, 3.0))
    steps = np.arange(3.0) - 1.0
    risks = np.exp(level + bend * (steps - at) ** 2 + (factor - 1.0) * bend * steps).tolist()
    apart = abs(_vertex(risks, 1) - at)
    wrong = 0
    for gain, goes_on in ((0.0199, False), (0.0201, True)):
        # From the second to the first one 0.03 are gained, from the third to the second twice that less the next gain.
        logs = np.cumsum([0.0, 0.03, 0.06 - factor * gain])
        path: Any = MagicMock(lams=[1.0, RATIO, RATIO**2])
        path.risks.return_value = np.exp(level + logs)
        wrong += int(HeldOutPath._may_gain(path) != goes_on)
    return Verdict(apart + wrong, 1e-9, 1, {"risks": np.array(risks), "at": at})


# ---- cells


def measure_split(more: int, rng: Generator) -> Verdict:
    """Cells have no more points than they may, `more` being 0, and before the last center one of them had more."""
    X, wrong = rng.standard_normal((25, 2)), 0
    for size in range(2, 25):
        found = split_largest(X, size)
        centers = X[found.centers]
        for count, fits in ((len(centers), True), (len(centers) - 1, False)):
            if count:
                D = np.linalg.norm(X[:, None] - centers[None, :count], axis=2)
                largest = int(np.bincount(D.argmin(axis=1)).max())
                wrong += int((largest <= size - more) != fits)
    return Verdict(float(wrong), 0.0, 1, {"X": X})


def measure_traversal_in_space(factor: float, rng: Generator) -> Verdict:
    """Farthest-first in the space of a Gaussian: radii are the largest distances ``sqrt(2 - 2 k)`` to the centers."""
    X, kernel = rng.standard_normal((20, 2)), Gaussian(0.7)
    found = traverse_in(_Sines(), X, n_centers=6, start=3) if rng.integers(2) else None
    K = np.sin(X) @ np.sin(X).T if found is not None else kernel(X)
    found = traverse_in(kernel, X, n_centers=6, start=3) if found is None else found
    D = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K) - 2.0 * K, 0.0))
    if np.abs(np.diag(K) - 1.0).max() < 1e-12:  # a Gaussian of the points measures by them: by -log k
        D = np.sqrt(-np.log(K))
    near, radii = D[:, 3], []
    centers = [3]
    for _ in range(6):
        radii.append(factor * float(near.max()))
        centers.append(int(near.argmax()))
        near = np.minimum(near, D[:, centers[-1]])
    apart = float(np.abs(found.radii - radii).max()) + float((found.centers != centers[:6]).sum())
    return Verdict(apart, 1e-7, 1, {"X": X, "radii": found.radii})


class _Sines:
    """The metric of the sines of the features."""

    def squared_distances(self, X: Array, Y: Array) -> Array:
        return np.asarray(((np.sin(X)[:, None] - np.sin(Y)[None]) ** 2).sum(axis=2))

    def distances_from(self, X: Array) -> Any:
        return lambda i: ((np.sin(X) - np.sin(X[i])) ** 2).sum(axis=1)


def measure_budget(factor: float, rng: Generator) -> Verdict:
    """The largest size among m, m/2, ... whose cells take no more than the time for all of them, and memory for one.

    The table is a sample of three times as many rows; a cell of c rows takes c^2, and c. `factor` multiplies the time.
    """
    X, rows = rng.standard_normal((240, 2)), 720
    sizes, size = [rows], rows // 2
    costs = [(float(rows) ** 2, float(rows))]
    while size >= 16:
        cover = voronoi_cover(X, max_cell_size=size, n_rows=rows)
        counts = np.ceil(3.0 * np.bincount(cover.cells(X)))
        sizes.append(size)
        costs.append((float((counts**2).sum()), float(counts.max())))
        size //= 2
    k, wrong = int(rng.integers(0, len(sizes) - 1)), []
    for budget in ("time_budget", "memory_budget"):
        limit = costs[k][0] * factor if budget == "time_budget" else costs[k][1]
        given: dict[str, Any] = {budget: limit * (1.0 + 1e-12)}
        found = cell_size_within(X, seconds_of=lambda c: float(c) ** 2, bytes_of=float, n_rows=rows, **given)
        place = int(budget != "time_budget")
        wrong.append(
            abs(found - next(s for s, cost in zip(sizes, costs, strict=True) if cost[place] <= costs[k][place]))
        )
    return Verdict(float(max(wrong)), 0.0, 1, {"X": X, "costs": np.array(costs)})


def measure_cost(factor: float, rng: Generator) -> Verdict:
    """The time of a cell is a power of its number of points, found from two cells of the table that were timed.

    By a clock that stands still but for learning; `factor` multiplies the power.
    """
    power, unit, now = float(rng.uniform(1.1, 2.9)), float(rng.uniform(1e-6, 1e-3)), [0.0]
    learner: Any = MagicMock()

    def learn(rows: CellRows, *_: Any) -> None:
        now[0] += unit * len(rows.X) ** power

    learner.learn = learn
    table = CellRows(np.zeros((900, 1)), np.zeros((1, 900)), np.ones(900))
    with patch.object(time, "perf_counter", lambda: now[0]):
        seconds = seconds_by_size(table, learner, rng, np.inf)
    sizes = np.array([50, 600, 5000])
    direct = unit * 600.0**power * (sizes / 600.0) ** (factor * power)
    apart = float(np.abs([seconds(int(m)) / t - 1.0 for m, t in zip(sizes, direct, strict=True)]).max())
    return Verdict(apart, 1e-6, 1, {"power": np.array(power), "unit": np.array(unit)})


def measure_said_of_cells(factor: float, rng: Generator) -> Verdict:
    """The worst certificate, the share of cells at an edge of their grids, and the share of rows that was learned from.

    Bounds that cross are as bad as they are apart. `factor` multiplies the worst relative gap, and the share at an
    edge.
    """
    uppers, gaps = rng.uniform(1.0, 9.0, 5), rng.uniform(0.01, 0.9, 5)
    found = worst([DualityGap(u, u * (1.0 - g)) for u, g in zip(uppers, gaps, strict=True)]).relative_gap
    apart = [abs(found - factor * float(np.sort(gaps)[-1]))]
    crossed = int(np.argmax(gaps))
    bounds = [(u, u * (1.0 - g)) for u, g in zip(uppers, gaps, strict=True)]
    bounds[crossed] = bounds[crossed][::-1]
    found = worst([DualityGap(*pair) for pair in bounds]).relative_gap
    apart.append(abs(found + factor * float(np.sort(gaps)[-1])))
    grid, cells, edge = Grid(np.arange(1.0, 5.0), np.arange(1.0, 4.0)), [], 0
    for _ in range(8):
        i, k = int(rng.integers(3)), int(rng.integers(4))
        risks = np.ones((3, 4))
        risks[i, k] = 0.5
        cells.append(PairSelection(grid, risks))
        edge += int(i != 1 or k in (0, 3))
    apart.append(abs(SelectionInCells(cells).at_an_edge - factor * edge / 8.0))
    spared, sizes = np.array([0, 30, 0, 20]), rng.integers(60, 200, 4)
    percent = 100.0 * (1.0 - 50.0 / (sizes[1] + sizes[3]))
    said = of_some_rows(spared, sizes)
    apart.append(0.0 if said == f"2 of 4 cells learned from {percent:.0f} % of their rows" else 1.0)
    return Verdict(max(apart), 1e-12, 1, {"gaps": gaps, "uppers": uppers, "said": said})


def comparison_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "risks-over-folds",
            "Risks of candidates are weighted means over the folds that are known; with fewer of them they are inf.",
            *(paper, "criteria, comparison", measure_folds, 1.0, 1.001),
        ),
        Claim(
            "clearly-worse",
            "A candidate is given up where it is worse by more than two standard errors of the sum of differences.",
            *(paper, "criteria, comparison", measure_clearly_worse, 1.0, 0.98),
        ),
        Claim(
            "who-goes-on",
            "Candidates go on that are within two standard errors of the least risk, so many at most.",
            *(paper, "criteria, comparison", measure_survivors, 1.0, 0.8),
            trials=30,
        ),
        Claim(
            "parabola-of-risks",
            "Candidates between and beyond those that were tried are judged by the parabola through three of them.",
            *(paper, "solvers, held-out path", measure_parabola, 1.0, 1.05),
        ),
        Claim(
            "split-cells",
            "Cells that are split while they are too large have at most so many points, and no center is one too many.",
            *(paper, "cells, traversal", measure_split, 0, 1),
            trials=2,
        ),
        Claim(
            "farthest-first-in-a-space",
            "Farthest-first traversal in the geometry of a kernel has the radii and centers of the distances there.",
            *(paper, "cells, traversal", measure_traversal_in_space, 1.0, 1.001),
        ),
        Claim(
            "cells-within-a-budget",
            "Cells are the largest of m, m/2, ... rows that take no more than the time of all and the memory of one.",
            *(paper, "cells, budget", measure_budget, 1.0, 0.5),
            trials=4,
        ),
        Claim(
            "time-of-cells",
            "The time that a cell will take is a power of its number of points, found from two of them.",
            *(paper, "cells, budget", measure_cost, 1.0, 1.01),
        ),
        Claim(
            "said-of-cells",
            "The certificate of all cells is their worst one; shares at an edge and of rows are those of the cells.",
            *(paper, "cells, certificates", measure_said_of_cells, 1.0, 1.001),
        ),
    ]
