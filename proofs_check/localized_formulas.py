"""Checks behind the claims about localized SVMs: covers, zero extensions, direct sums, selection per cell."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels import (
    Candidates,
    Gaussian,
    Kernel,
    KernelLearning,
    LeastSquares,
    Localized,
    VoronoiCover,
    farthest_first,
    voronoi_cover,
)
from convexkernels.checking import Verdict, check_psd

Array = NDArray[np.float64]
Cells = NDArray[np.intp]
Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


# ---- Lemma 1 and the Voronoi partition (6)


def projected_grid(d: int, c: float, spacing: float) -> Array:
    """Points of the ball of radius c such that every point of it is within spacing sqrt(d) / 2 of one.

    The nearest grid point may lie outside; projecting it onto the ball brings it no further away.
    """
    axis = np.arange(-c - spacing, c + 1.5 * spacing, spacing)
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    length = np.linalg.norm(grid, axis=1)
    near = length <= c + 0.5 * spacing * np.sqrt(d)
    return grid[near] * np.minimum(1.0, c / np.maximum(length[near], c))[:, None]


def measure_cover(constant: float, rng: Generator) -> Verdict:
    """The library's m balls cover that of radius c, with r <= constant * c * m^(-1/d) [MS16 Lemma 1, (4), (5)].

    The violation is the excess of r, or of the distance of some point of the ball from all centers.
    """
    d, c = int(rng.integers(1, 4)), float(rng.uniform(0.5, 3.0))
    r = c * float(rng.uniform(0.25, 1.0))
    spacing = 0.1 * r
    X, between = projected_grid(d, c, spacing), 0.5 * spacing * np.sqrt(d)
    centers = X[farthest_first(X, radius=r - between, start=int(rng.integers(X.shape[0]))).centers]
    nearest_center = np.full(X.shape[0], np.inf)
    for center in centers:
        nearest_center = np.minimum(nearest_center, np.linalg.norm(X - center, axis=1))
    excess = max(0.0, r - constant * c * len(centers) ** (-1.0 / d), float(nearest_center.max()) + between - r)
    return Verdict(excess, EPS * 16.0 * c, 1, {"d": d, "c": c, "r": r, "m": len(centers)})


def library_cells(X: Array, centers: Array) -> Cells:
    return VoronoiCover(centers).cells(X)


def largest_index(X: Array, centers: Array) -> Cells:
    return np.asarray(len(centers) - 1 - VoronoiCover(centers[::-1]).cells(X))


def measure_voronoi(assign: Callable[[Array, Array], Cells], rng: Generator) -> Verdict:
    """Cells of [MS16 Example 1, (6)]: nearest center, ties to the smallest index, each inside its ball.

    Whole numbers make the distances, and so the ties, exact. The violation counts misplaced points.
    """
    X = rng.integers(-6, 7, (60, 2)).astype(np.float64)
    centers = np.unique(voronoi_cover(X, radius=4.0).centers, axis=0)
    squares = ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    cells = assign(X, centers)
    expected = np.array([min(np.flatnonzero(row == row.min())) for row in squares])
    outside = squares[np.arange(60), cells] > 16.0
    return Verdict(int((cells != expected).sum() + outside.sum()), 0.0, 1, {"X": X, "centers": centers, "cells": cells})


# ---- Lemmas 2 and 3


def _in_cell(X: Array) -> NDArray[np.bool_]:
    """The cell A of the checks: points whose first coordinate is at most one half."""
    return np.asarray(X[:, 0] <= 0.5)


def zero_outside(K: Array, left: NDArray[np.bool_], right: NDArray[np.bool_]) -> Array:
    return np.asarray(np.where(np.outer(left, right), K, 0.0), dtype=np.float64)


def kept_outside(K: Array, left: NDArray[np.bool_], right: NDArray[np.bool_]) -> Array:
    """Zero only when one point is inside and the other is not: PSD, but not the extension."""
    return np.asarray(np.where(left[:, None] == right[None, :], K, 0.0), dtype=np.float64)


def measure_zero_extension(extend: Callable[..., Array], rng: Generator) -> Verdict:
    """The extended kernel [MS16 Lemma 2, (10)] is PSD, and reproduces the zero extension of f with the same norm."""
    kernel = Gaussian(float(rng.uniform(1.0, 5.0)))
    X, T = rng.uniform(0.0, 1.0, (12, 2)), rng.uniform(0.0, 1.0, (20, 2))
    A = X[_in_cell(X)]
    alpha = rng.standard_normal(A.shape[0])

    def extended(U: Array, V: Array) -> Array:
        return extend(kernel(U, V), _in_cell(U), _in_cell(V))

    psd = check_psd(extended, T)
    f = np.where(_in_cell(T), kernel(T, A) @ alpha if A.size else 0.0, 0.0)
    reproduced = extended(T, A) @ alpha if A.size else np.zeros(20)
    diagonal = np.abs(np.diag(extended(T, T)) - np.where(_in_cell(T), 1.0, 0.0))
    worst = float(max(np.abs(f - reproduced).max(), diagonal.max()))
    witness = {"gamma": kernel.gamma, "X": X, "alpha": alpha, "T": T, "f": f, "reproduced": reproduced}
    rounding = EPS * (A.shape[0] + 2) * (float(np.abs(alpha).sum()) + 1.0)
    return Verdict.worst(
        [Verdict(worst, rounding, 1, witness), Verdict(psd.worst_violation, psd.tolerance, 1, witness)]
    )


Join = Callable[[Array, list[Gaussian], Array], Kernel]


def direct_sum(centers: Array, kernels: list[Gaussian], lam: Array) -> Kernel:
    """The library's ``sum_j k_j / lam_j`` over Voronoi cells."""
    return Localized(centers, kernels, lam)


def multiplied(centers: Array, kernels: list[Gaussian], lam: Array) -> Kernel:
    """``sum_j lam_j k_j`` instead."""
    return Localized(centers, kernels, 1.0 / lam)


def unweighted(centers: Array, kernels: list[Gaussian], lam: Array) -> Kernel:
    return Localized(centers, kernels)


def measure_direct_sum(join: Join, rng: Generator) -> Verdict:
    """The joined kernel k reproduces under the norm [MS16 Lemma 3, (12)] of the direct sum, and is 0 across cells.

    With ``f = sum_i alpha_i k_j(x_i, .)`` over the x_i in cell j, the inner product of f with k(t, .) in (12) is
    ``sum_j lam_j <f_j, k(t, .)>_j = sum_i lam_j(i) alpha_i k(t, x_i)`` and has to be f(t).
    """
    lam, centers = np.exp(rng.uniform(-2.0, 2.0, 2)), np.array([[0.25, 0.5], [0.75, 0.5]])
    X, T = rng.uniform(0.0, 1.0, (14, 2)), rng.uniform(0.0, 1.0, (20, 2))
    kernels, alpha, values = [Gaussian(3.0), Gaussian(4.0)], rng.standard_normal(14), np.zeros(20)
    price = np.empty(14)
    for index, inside in enumerate((_in_cell, lambda U: ~_in_cell(U))):
        own = inside(X)
        values += zero_outside(kernels[index](T, X[own]), inside(T), np.ones(int(own.sum()), dtype=bool)) @ alpha[own]
        price[own] = lam[index]
    inner = join(centers, kernels, lam)(T, X) @ (price * alpha)
    witness = {"lam": lam, "X": X, "alpha": alpha, "T": T, "f": values, "inner": inner}
    return Verdict(float(np.abs(values - inner).max()), 4.0 * EPS * 14.0 * float(np.abs(alpha).sum()), 1, witness)


# ---- (2), (3), (15): the cell SVMs are one SVM


def _problem(rng: Generator) -> tuple[Array, Array, Cells, Array, Array]:
    """Data, cells of three centers, and each cell's own lambda and gamma."""
    X = rng.uniform(0.0, 1.0, (24, 2))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(24)
    centers = np.array([[0.2, 0.3], [0.8, 0.3], [0.5, 0.9]])
    return X, y, nearest(X, centers), 10.0 ** rng.uniform(-4.0, -1.0, 3), rng.uniform(1.0, 10.0, 3)


def nearest(X: Array, centers: Array) -> Cells:
    return np.asarray(np.argmin(((X[:, None] - centers[None]) ** 2).sum(axis=2), axis=1))


def cell_solution(K: Array, y: Array, lam: float, n: int) -> Array:
    """Coefficients of [MS16 (2)] for least squares: (K + n lam I)^-1 y."""
    return np.asarray(np.linalg.solve(K + n * lam * np.eye(y.size), y), dtype=np.float64)


def measure_one_svm(join: Join, rng: Generator) -> Verdict:
    """The predictor [MS16 (3)] of the cells, solved one by one, is one SVM with the joined kernel [MS16 (15)].

    (1) with lambda = 1 is ``min |f|^2 + sum (y - f)^2 / n``: least squares of price n in the library.
    """
    X, y, cells, lam, gamma = _problem(rng)
    n, centers = y.size, np.array([[0.2, 0.3], [0.8, 0.3], [0.5, 0.9]])
    T = rng.uniform(0.0, 1.0, (30, 2))
    where, local, condition = nearest(T, centers), np.zeros(30), 1.0
    kernels = [Gaussian(float(rate)) for rate in gamma]
    for j in range(3):
        own, there = cells == j, where == j
        if own.any():
            block = kernels[j](X[own])
            alpha = cell_solution(block, y[own], float(lam[j]), n)
            condition = max(condition, float(np.linalg.cond(block + n * lam[j] * np.eye(int(own.sum())))))
            local[there] = kernels[j](T[there], X[own]) @ alpha
    kernel = join(centers, kernels, lam)
    family = Candidates([kernel], normalize="none")
    joint = KernelLearning(family, LeastSquares(float(n), intercept=False), X, y).solve().decision_function(T)
    condition = max(condition, float(np.linalg.cond(kernel(X) + n * np.eye(n))))
    witness = {"X": X, "y": y, "cells": cells, "lam": lam, "gamma": gamma, "T": T, "local": local, "joint": joint}
    # Both solves lose at most their condition number; predictions are of the size of the labels.
    tolerance = 8.0 * EPS * n * condition * float(np.linalg.norm(y))
    return Verdict(float(np.abs(local - joint).max()), tolerance, 1, witness)


def measure_rescaled(factor: Callable[[int, int], float], rng: Generator) -> Verdict:
    """[MS16 (2)] on a cell equals [MS16 (1)] on the cell's own data with lambda multiplied by factor(n, n_j)."""
    X, y, cells, lam, gamma = _problem(rng)
    j = int(np.argmax(np.bincount(cells, minlength=3)))
    own = cells == j
    K, size = Gaussian(float(gamma[j]))(X[own]), int(own.sum())
    local = cell_solution(K, y[own], float(lam[j]), y.size)
    alone = cell_solution(K, y[own], factor(y.size, size) * float(lam[j]), size)
    condition = float(np.linalg.cond(K + min(y.size * lam[j], size * factor(y.size, size) * lam[j]) * np.eye(size)))
    witness = {"X": X[own], "y": y[own], "lam": lam[j], "gamma": gamma[j], "n": y.size}
    tolerance = 8.0 * EPS * size * condition * float(np.linalg.norm(local) + np.linalg.norm(alone))
    return Verdict(float(np.linalg.norm(local - alone)), tolerance, 1, witness)


def measure_additive_risk(join: Callable[[Array, Cells], float], rng: Generator) -> Verdict:
    """The risk of f = sum_j 1_{A_j} f_j is the sum of the risks with the losses L_j [MS16 Lemma 9]."""
    _, y, cells, _, _ = _problem(rng)
    losses = (rng.standard_normal(y.size) - y) ** 2
    witness = {"losses": losses, "cells": cells}
    return Verdict(abs(join(losses, cells) - float(losses.mean())), EPS * 32.0 * float(losses.mean()), 1, witness)


def sum_of_cell_risks(losses: Array, cells: Cells) -> float:
    return sum(float(np.sum(losses * (cells == j))) / losses.size for j in range(3))


def mean_of_cell_risks(losses: Array, cells: Cells) -> float:
    used = [j for j in range(3) if (cells == j).any()]
    return float(np.mean([losses[cells == j].mean() for j in used]))


def measure_clipping(factor: float, rng: Generator) -> Verdict:
    """Clipping at factor * M increases neither the squared loss, labels in [-M, M], nor the hinge loss, M = 1."""
    M = float(rng.uniform(0.5, 3.0))
    y, t = rng.uniform(-M, M, 200), rng.normal(0.0, 3.0 * M, 200)
    labels, margins = np.sign(y), t / M
    squared = (y - np.clip(t, -factor * M, factor * M)) ** 2 - (y - t) ** 2
    hinge = np.maximum(0.0, 1.0 - labels * np.clip(margins, -factor, factor)) - np.maximum(0.0, 1.0 - labels * margins)
    worst = max(float(squared.max()), float(hinge.max()), 0.0)
    rounding = 4.0 * EPS * float(np.max((np.abs(y) + np.abs(t)) ** 2))
    return Verdict(worst, rounding, 1, {"M": M, "y": y, "t": t})


# ---- Section 4.2: selection per cell


def choose_per_cell(risks: Array) -> tuple[tuple[int, ...], int]:
    """Each cell takes its own best candidate; returns the choice and how many fits were looked at."""
    return tuple(int(row.argmin()) for row in risks), risks.size


def choose_in_common(risks: Array) -> tuple[tuple[int, ...], int]:
    """One candidate for all cells."""
    best = int(risks.sum(axis=0).argmin())
    return (best,) * risks.shape[0], risks.size


def measure_selection(choose: Callable[[Array], tuple[tuple[int, ...], int]], rng: Generator) -> Verdict:
    """Of all combinations the choice has the least validation risk, and looked at m |Lambda| |Gamma| fits."""
    X, y, cells, _, _ = _problem(rng)
    train = rng.random(y.size) < 0.6
    candidates = list(product((1e-4, 1e-2, 1e-1), (1.0, 6.0)))
    risks = np.zeros((3, len(candidates)))
    for j, (index, (lam, gamma)) in product(range(3), enumerate(candidates)):
        fit, check = train & (cells == j), ~train & (cells == j)
        prediction = np.zeros(int(check.sum()))
        if fit.any():
            alpha = cell_solution(Gaussian(gamma)(X[fit]), y[fit], lam, int(train.sum()))
            prediction = Gaussian(gamma)(X[check], X[fit]) @ alpha if check.any() else prediction
        risks[j, index] = float(np.sum((prediction - y[check]) ** 2)) / max(1, int((~train).sum()))
    totals = {combination: _total(risks, combination) for combination in product(range(len(candidates)), repeat=3)}
    chosen, looked_at = choose(risks)
    excess = _total(risks, chosen) - min(totals.values())
    surplus = abs(looked_at - 3 * 3 * 2)
    witness: dict[str, Any] = {"risks": risks, "chosen": np.array(chosen), "combinations": len(totals)}
    return Verdict(excess + surplus, 0.0, 1, witness)


def _total(risks: Array, combination: tuple[int, ...]) -> float:
    return float(sum(risks[j, index] for j, index in enumerate(combination)))
