"""The library's cells against [MS16]: the function of a cell, its grid, its selection, the risk of all cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from convexkernels import EpsilonInsensitive, Hinge, LeastSquares, VoronoiCover, farthest_first
from convexkernels.arrays import Array, Index, Mask
from convexkernels.cells.cover import OverlappingCover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows, CellSelection
from convexkernels.cells.selection import Grid
from convexkernels.cells.training import learn_cells
from convexkernels.checking import Verdict
from convexkernels.clock import Clock
from proofs_check.risk_formulas import ridge

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)
TUBE = 0.1
# A function is right to about the root of what its objective is right to.
FINE = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
LOSSES = {
    "least_squares": LeastSquares(1.0, intercept=False),
    "hinge": Hinge(1.0, intercept=False),
    "epsilon_insensitive": EpsilonInsensitive(1.0, TUBE, intercept=False),
}


def gaussian(X: Array, Z: Array, width: float) -> Array:
    """exp(-|x - z|^2 / width^2) [MS16 Section 2]."""
    return np.asarray(np.exp(-np.sum((X[:, None] - Z[None]) ** 2, axis=2) / width**2))


# ---- the function of one cell: (2) at the first point of the grid


@dataclass(frozen=True)
class CellRule:
    """How lambda in ``lambda |f|^2 + mean loss`` and the width are formed for m points of n features."""

    lam: Callable[[int], float] = lambda m: 0.001 / m
    width: Callable[[int, int], float] = lambda m, n: 0.5 * m ** (-1.0 / n)


def svm_of_cell(
    X: Array, y: Array, weights: Array, lam: float, width: float, loss: str = "least_squares"
) -> Callable[[Array], Array]:
    """The minimizer of ``lam |f|^2 + mean of the weighted losses``, clipped to [-1, 1]; [MS16 (1)] on a cell."""
    K, share = gaussian(X, X, width), weights / weights.sum()
    if loss != "least_squares":
        root = np.linalg.cholesky(K + 1e-12 * np.eye(len(y)))
        a = cp.Variable(len(y))
        excess = 1.0 - cp.multiply(y, root @ a) if loss == "hinge" else cp.abs(y - root @ a) - TUBE
        losses = share @ cp.pos(excess)
        cp.Problem(cp.Minimize(lam * cp.sum_squares(a) + losses)).solve(solver=cp.CLARABEL, **FINE)
        w = np.linalg.solve(root.T, np.asarray(a.value))
    else:
        w, _ = ridge(K, y, share, lam, intercept=False)
    return lambda Z: np.asarray(np.clip(gaussian(Z, X, width) @ w, -1.0, 1.0))


def measure_cell_function(subject: tuple[CellRule, str], rng: Generator) -> Verdict:
    """What a cell learns is the SVM with lambda, not lambda n, beside the mean of its losses."""
    rule, name = subject
    hinge = name == "hinge"
    m, n = int(rng.integers(8, 13)), 2
    X, Z, weights = rng.uniform(-1.0, 1.0, (m, n)), rng.uniform(-1.0, 1.0, (20, n)), rng.uniform(0.5, 2.0, m)
    X[:2, 0] = np.abs(X[:2, 0]) * [-1.0, 1.0]  # of one label there would be a constant
    y = np.sign(X[:, 0]) if hinge else np.clip(np.sin(3.0 * X[:, 0]) + 0.5 * rng.standard_normal(m), -1.0, 1.0)
    selection = CellSelection(validation="split" if hinge else None, n_lams=1, n_widths=1)
    learner = KernelLearner(LOSSES[name], selection, tol=1e-9)
    own = np.arange(m) % 4 > 0 if rng.integers(2) else np.ones(m, dtype=bool)
    own |= np.ptp(y[own]) == 0.0  # rows of one label choose nothing by themselves
    found = learner.learn(CellRows(X, y[None, :], weights, own), np.random.default_rng(0))
    # The grid is that of the points that choose, of which "split" holds half out; lam of the sum of losses is kept.
    chooses = int(own.sum())
    trained = chooses // 2 + 1 if hinge else chooses
    lam = rule.lam(trained) * float(weights[own].sum() / weights.sum())
    expected = svm_of_cell(X, y, weights, lam, rule.width(trained, n), name)
    values = found.values(Z)[:, 0]
    # Of hinge losses Clarabel knows the function to about the root of its tolerance.
    tolerance = 1e-4 if hinge else 1e-8
    witness = {"X": X, "y": y, "weights": weights, "Z": Z, "values": values, "direct": expected(Z)}
    return Verdict(float(np.abs(values - expected(Z)).max()), tolerance, 1, witness)


# ---- the grid of Section 5 and the selection of Section 4.2


@dataclass(frozen=True)
class GridRule:
    """Ends of the grid of lambda and of the widths, for m points of n features."""

    lams: Callable[[int], tuple[float, float]] = lambda m: (0.001 / m, 0.1)
    widths: Callable[[int, int], tuple[float, float]] = lambda m, n: (0.5 * m ** (-1.0 / n), 10.0)


def geometric(ends: tuple[float, float], count: int) -> Array:
    """Numbers with equal ratios from one end to the other."""
    steps = np.arange(count) / max(count - 1, 1)
    return np.asarray(ends[0] * (ends[1] / ends[0]) ** steps)


def measure_grid(rule: GridRule, rng: Generator) -> Verdict:
    """10 values of lambda and of gamma, geometric [MS16 Section 5]; lam belongs to the sum of the losses."""
    m, n, total = int(rng.integers(2, 5000)), int(rng.integers(1, 20)), float(rng.uniform(1.0, 1e4))
    counts = (10, 10) if rng.integers(2) else (int(rng.integers(2, 7)), int(rng.integers(2, 7)))
    grid = Grid.of_cell(m, n, total) if counts == (10, 10) else Grid.of_cell(m, n, total, *counts)
    lams, widths = total * geometric(rule.lams(m), counts[0]), geometric(rule.widths(m, n), counts[1])
    if (len(grid.lams), len(grid.widths)) != counts:
        return Verdict(float("inf"), 0.0, 1, {"lams": grid.lams, "widths": grid.widths})
    apart = max(float(np.abs(grid.lams / lams - 1.0).max()), float(np.abs(grid.widths / widths - 1.0).max()))
    return Verdict(apart, 1e-12, 1, {"m": m, "n": n, "total": total, "lams": grid.lams, "widths": grid.widths})


def chosen(risks: Array) -> int:
    """The pair of the least risk, the last of several."""
    return int(np.flatnonzero(risks.ravel() <= risks.min())[-1])


def next_to_chosen(risks: Array) -> int:
    """Another pair, whichever has the least risk."""
    return (chosen(risks) + 1) % risks.size


@dataclass(frozen=True)
class Selection:
    """How rows are held out, the loss, and the rank of the factors that least squares starts with."""

    validation: Any
    loss: str = "least_squares"
    rank: int = 300
    choice: Callable[[Array], int] = chosen


def held_out(m: int, validation: Any, seed: int) -> list[Index]:
    """Rows that are held out together: all but the first m // 2 + 1 of a random order, folds, or one at a time."""
    if validation == "leave-one-out":
        return [np.array([i]) for i in range(m)]
    order = np.random.default_rng(seed).permutation(m)
    if validation == "split":
        return [order[m // 2 + 1 :]]
    return [np.flatnonzero(order % validation == k) for k in range(validation)]


def direct_risks(
    X: Array, y: Array, weights: Array, rows: list[Index], grid: Any, loss: str = "least_squares"
) -> Array:
    """Weighted mean losses of clipped predictions on held-out rows, trained anew for every pair and block."""
    counted, risks = np.concatenate(rows), np.empty((len(grid[1]), len(grid[0])))
    for i, width in enumerate(grid[1]):
        for k, lam in enumerate(grid[0]):
            F = np.zeros(len(y))
            for block in rows:
                rest = np.setdiff1d(np.arange(len(y)), block)
                total = float(weights[rest].sum())
                function = svm_of_cell(X[rest], y[rest], weights[rest], float(lam) / total, float(width), loss)
                F[block] = function(X[block])
            excess = 1.0 - y * F if loss == "hinge" else np.abs(y - F) - TUBE
            losses = (y - F) ** 2 if loss == "least_squares" else np.maximum(0.0, excess)
            risks[i, k] = float(losses[counted] @ weights[counted] / weights[counted].sum())
    return risks


def measure_selection(subject: Selection, rng: Generator) -> Verdict:
    """Risks of all pairs of a grid, |Lambda| |Gamma| of them, and the pair of the least one [MS16 Section 4.2].

    Of ranks below the number of points only risks that were measured exactly are compared. Weights have any unit.
    """
    m, n, seed = 11, 2, int(rng.integers(2**31))
    X, weights = rng.uniform(-1.0, 1.0, (m, n)), float(10.0 ** rng.uniform(-2.0, 4.0)) * rng.uniform(0.5, 2.0, m)
    y = np.clip(np.sin(3.0 * X[:, 0]) + 0.4 * rng.standard_normal(m), -1.0, 1.0)
    y = np.where(y > np.median(y), 1.0, -1.0) if subject.loss == "hinge" else y
    learner = KernelLearner(LOSSES[subject.loss], CellSelection(subject.validation, 3, 3, subject.rank), tol=1e-9)
    found = learner.learn(CellRows(X, y[None, :], weights), np.random.default_rng(seed))
    rows = held_out(m, subject.validation, seed)
    trained = m - max(len(block) for block in rows) if subject.validation != "leave-one-out" else m
    rule = GridRule()
    grid = float(weights.sum()) * geometric(rule.lams(trained), 3), geometric(rule.widths(trained, n), 3)
    expected = direct_risks(X, y, weights, rows, grid, subject.loss)
    assert found.choice is not None
    risks = found.choice.risks
    known = np.isfinite(risks)
    # Along a path problems are solved to 1e-2, and factors of full rank leave out 1 percent of the least lam.
    tolerance = 1e-9 if subject.rank < m else (0.02 if subject.loss == "least_squares" else 0.05)
    # Where no point lies within the margin, a hinge risk is 0.
    apart = float((np.abs(risks - expected) / np.maximum(expected, EPS))[known].max())
    i, k = np.unravel_index(subject.choice(np.where(known, risks, np.inf)), (3, 3))
    apart_from = abs(np.log(found.width / grid[1][i])) + abs(np.log(found.lam / grid[0][k]))
    fits = abs(risks.size - 9)
    witness = {"X": X, "y": y, "weights": weights, "risks": risks, "direct": expected}
    pair = Verdict(float(apart_from + fits), 1e-9, 1, witness | {"width": found.width, "lam": found.lam})
    return Verdict.worst([Verdict(apart, tolerance, 1, witness), pair])


# ---- all cells: the predictor (3) and Lemma 9


def partition(D: Array) -> Mask:
    """Whether a point, of given distances to the centers, is in a cell: in that of the nearest center only."""
    return np.asarray(np.arange(D.shape[1]) == np.argmin(D, axis=1)[:, None])


def one_point_in_two_cells(D: Array) -> Mask:
    """The point nearest to a border is in the cells of both sides: cells are no longer disjoint."""
    inside, ordered = partition(D), np.sort(D, axis=1)
    point = int(np.argmin(ordered[:, 1] - ordered[:, 0]))
    inside[point, int(np.argsort(D[point])[1])] = True
    return inside


def measure_risk_of_cells(members: Callable[[Array], Mask], rng: Generator) -> Verdict:
    """The risk of the library's predictor [MS16 (3)] is the sum of those of the cells' own SVMs [MS16 Lemma 9].

    The risk of a cell counts the points that are in it.
    """
    X, T = rng.uniform(-1.0, 1.0, (30, 2)), rng.uniform(-1.0, 1.0, (40, 2))
    y, t = (np.clip(np.sin(3.0 * Z[:, 0]) + 0.3 * rng.standard_normal(len(Z)), -1.0, 1.0) for Z in (X, T))
    centers = np.array([[-0.5, -0.3], [0.5, -0.3], [0.0, 0.6]])
    cells, there = (np.linalg.norm(Z[:, None] - centers[None], axis=2) for Z in (X, T))
    learner = KernelLearner(LeastSquares(1.0, intercept=False), CellSelection(n_lams=1, n_widths=1))
    found = learn_cells(CellRows(X, y[None, :], np.ones(30)), VoronoiCover(centers), learner, Clock())
    risk = float(np.mean((found.problem.values(T)[:, 0] - t) ** 2))
    direct, rule = 0.0, CellRule()
    for own, counted in zip(partition(cells).T, members(there).T, strict=True):
        m = int(own.sum())
        cell = svm_of_cell(X[own], y[own], np.ones(m), rule.lam(m), rule.width(m, 2))
        direct += float(np.sum((cell(T[counted]) - t[counted]) ** 2)) / 40.0
    return Verdict(abs(risk - direct), 1e-8 * direct, 1, {"X": X, "y": y, "T": T, "risk": risk, "direct": direct})


# ---- covers


def measure_overlap(power: float, rng: Generator) -> Verdict:
    """A point teaches the cells whose center is at most 1 + overlap times as far as the nearest one."""
    X, centers = rng.uniform(0.0, 1.0, (60, 2)), rng.uniform(0.0, 1.0, (6, 2))
    overlap = float(rng.uniform(0.1, 0.6))
    D = np.sqrt(((X[:, None] - centers[None]) ** 2).sum(axis=2))
    members = OverlappingCover(centers, overlap).members(X)
    wrong = 0
    for j in range(6):
        expected = np.flatnonzero(D[:, j] <= (1.0 + overlap) ** power * D.min(axis=1))
        wrong += np.setxor1d(members.rows(j), expected).size
    return Verdict(float(wrong), 0.0, 1, {"X": X, "centers": centers, "overlap": overlap})


def farthest(distances: Array) -> int:
    return int(np.argmax(distances))


def second_farthest(distances: Array) -> int:
    return int(np.argsort(distances)[-2])


def measure_traversal(choose: Callable[[Array], int], rng: Generator) -> Verdict:
    """Every center is the point farthest from those before it [MS16 Algorithm 1], all distances computed."""
    X, start = rng.uniform(0.0, 1.0, (80, 2)), int(rng.integers(80))
    found = farthest_first(X, n_centers=12, start=start)
    centers, nearest = [start], np.linalg.norm(X - X[start], axis=1)
    radii = [float(nearest.max())]
    while len(centers) < 12:
        centers.append(choose(nearest))
        nearest = np.minimum(nearest, np.linalg.norm(X - X[centers[-1]], axis=1))
        radii.append(float(nearest.max()))
    wrong = int((found.centers != np.array(centers)).sum()) + float(np.abs(found.radii - radii).max() > 1e-12)
    return Verdict(float(wrong), 0.0, 1, {"X": X, "centers": np.array(centers), "found": found.centers})


def measure_clipping(factor: float, rng: Generator) -> Verdict:
    """Clipping increases no loss [MS16 Section 2], and the function of a cell is clipped at the bound of its targets.

    The function is that of a cell with the bound M; without clipping it is K w.
    """
    M = float(rng.uniform(0.5, 3.0))
    X, Z = rng.uniform(-1.0, 1.0, (12, 1)), rng.uniform(-1.0, 1.0, (80, 1))
    # Targets at both bounds make the function overshoot between points.
    y, t = M * np.sign(rng.standard_normal(12)), rng.uniform(-M, M, 80)
    y[:2] = M, -M
    learner = KernelLearner(LeastSquares(1.0, intercept=False), CellSelection(n_lams=1, n_widths=1), clip=M)
    cell = learner.learn(CellRows(X, y[None, :], np.ones(12)), np.random.default_rng(0))
    free = replace(cell.function, bounds=None).values(Z)[:, 0]
    values = cell.values(Z)[:, 0]
    apart = float(np.abs(values - np.clip(free, -factor * M, factor * M)).max())
    more = float(np.maximum(0.0, (values - t) ** 2 - (free - t) ** 2).max())
    witness = {"M": M, "free": free, "values": values}
    return Verdict(max(apart, more), 64.0 * EPS * (1.0 + float(np.abs(free).max()) ** 2), 1, witness)
