"""Checks behind the claims about localized SVMs: covers, zero extensions, direct sums, selection per cell."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels import Gaussian
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


def farthest_first(X: Array, radius: float, start: int) -> list[int]:
    """Indices of centres, each the point farthest from those before it, until all are within `radius`."""
    centres = [start]
    distance = np.linalg.norm(X - X[start], axis=1)
    while distance.max() > radius:
        centres.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(X - X[centres[-1]], axis=1))
    return centres


def measure_cover(constant: float, rng: Generator) -> Verdict:
    """A farthest-first cover of the ball of radius c by m balls has r <= constant * c * m^(-1/d)."""
    d, c = int(rng.integers(1, 4)), float(rng.uniform(0.5, 3.0))
    r = c * float(rng.uniform(0.25, 1.0))
    spacing = 0.1 * r
    X = projected_grid(d, c, spacing)
    m = len(farthest_first(X, r - 0.5 * spacing * np.sqrt(d), int(rng.integers(X.shape[0]))))
    return Verdict(max(0.0, r - constant * c * m ** (-1.0 / d)), 0.0, 1, {"d": d, "c": c, "r": r, "m": m})


def smallest_index(distances: Array) -> Cells:
    return np.asarray(np.argmin(distances, axis=1))


def largest_index(distances: Array) -> Cells:
    return np.asarray(distances.shape[1] - 1 - np.argmin(distances[:, ::-1], axis=1))


def measure_voronoi(assign: Callable[[Array], Cells], rng: Generator) -> Verdict:
    """Cells of (6): nearest centre, ties to the smallest index, each inside its ball.

    Whole numbers make the distances, and so the ties, exact. The violation counts misplaced points.
    """
    X = rng.integers(-6, 7, (60, 2)).astype(np.float64)
    centres = np.unique(X[farthest_first(X, 4.0, 0)], axis=0)
    squares = ((X[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    cells = assign(squares)
    expected = np.array([min(np.flatnonzero(row == row.min())) for row in squares])
    outside = squares[np.arange(60), cells] > 16.0
    return Verdict(int((cells != expected).sum() + outside.sum()), 0.0, 1, {"X": X, "centres": centres, "cells": cells})


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
    """The extended kernel (10) is PSD, and reproduces the zero extension of f with the same norm."""
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


def measure_direct_sum(weight: Callable[[float], float], rng: Generator) -> Verdict:
    """weight(lam_A) k_A + weight(lam_B) k_B reproduces under the norm (12) of the direct sum.

    With f = f_A + f_B the inner product of f with k(x, .) is
    ``lam_A weight(lam_A) f_A(x) + lam_B weight(lam_B) f_B(x)``, and has to be f(x).
    """
    lam = np.exp(rng.uniform(-2.0, 2.0, 2))
    X, T = rng.uniform(0.0, 1.0, (14, 2)), rng.uniform(0.0, 1.0, (20, 2))
    values, inner, norm = np.zeros(20), np.zeros(20), 0.0
    alpha = rng.standard_normal(14)
    for index, inside in enumerate((_in_cell, lambda U: ~_in_cell(U))):
        own = inside(X)
        part = zero_outside(Gaussian(3.0 + index)(T, X[own]), inside(T), np.ones(int(own.sum()), dtype=bool))
        values += part @ alpha[own]
        inner += lam[index] * weight(float(lam[index])) * (part @ alpha[own])
        norm += float(np.abs(alpha[own]).sum())
    witness = {"lam": lam, "X": X, "alpha": alpha, "T": T, "f": values, "inner": inner}
    return Verdict(float(np.abs(values - inner).max()), 4.0 * EPS * 14.0 * norm, 1, witness)


# ---- (2), (3), (15): the cell SVMs are one SVM


def _problem(rng: Generator) -> tuple[Array, Array, Cells, Array, Array]:
    """Data, cells of three centres, and each cell's own lambda and gamma."""
    X = rng.uniform(0.0, 1.0, (24, 2))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(24)
    centres = np.array([[0.2, 0.3], [0.8, 0.3], [0.5, 0.9]])
    return X, y, nearest(X, centres), 10.0 ** rng.uniform(-4.0, -1.0, 3), rng.uniform(1.0, 10.0, 3)


def nearest(X: Array, centres: Array) -> Cells:
    return np.asarray(np.argmin(((X[:, None] - centres[None]) ** 2).sum(axis=2), axis=1))


def cell_solution(K: Array, y: Array, lam: float, n: int) -> Array:
    """Coefficients of (2) for least squares: (K + n lam I)^-1 y."""
    return np.asarray(np.linalg.solve(K + n * lam * np.eye(y.size), y), dtype=np.float64)


def measure_one_svm(weight: Callable[[float], float], rng: Generator) -> Verdict:
    """The predictor (3) of the cells equals the one SVM with sum_j weight(lam_j) k_j and lambda = 1."""
    X, y, cells, lam, gamma = _problem(rng)
    n = y.size
    T = rng.uniform(0.0, 1.0, (30, 2))
    where = nearest(T, np.array([[0.2, 0.3], [0.8, 0.3], [0.5, 0.9]]))
    local, K, KT, condition = np.zeros(30), np.zeros((n, n)), np.zeros((30, n)), 1.0
    for j in range(3):
        own, there = cells == j, where == j
        kernel = Gaussian(float(gamma[j]))
        if own.any():
            block = kernel(X[own])
            alpha = cell_solution(block, y[own], float(lam[j]), n)
            condition = max(condition, float(np.linalg.cond(block + n * lam[j] * np.eye(int(own.sum())))))
            local[there] = kernel(T[there], X[own]) @ alpha
        K += weight(float(lam[j])) * zero_outside(kernel(X), own, own)
        KT += weight(float(lam[j])) * zero_outside(kernel(T, X), there, own)
    joint = KT @ np.linalg.solve(K + n * np.eye(n), y)
    condition = max(condition, float(np.linalg.cond(K + n * np.eye(n))))
    witness = {"X": X, "y": y, "cells": cells, "lam": lam, "gamma": gamma, "T": T, "local": local, "joint": joint}
    # Both solves lose at most their condition number; predictions are of the size of the labels.
    tolerance = 8.0 * EPS * n * condition * float(np.linalg.norm(y))
    return Verdict(float(np.abs(local - joint).max()), tolerance, 1, witness)


def measure_rescaled(factor: Callable[[int, int], float], rng: Generator) -> Verdict:
    """(2) on a cell equals (1) on the cell's own data with lambda multiplied by factor(n, n_j)."""
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
    """The risk of f = sum_j 1_{A_j} f_j is the sum of the risks with the losses L_j (Lemma 9)."""
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
