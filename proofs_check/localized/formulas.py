"""Checks behind the claims about localized SVMs: covers, zero extensions, direct sums, selection per cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
from convexkernels.arrays import Array, Index, Mask
from convexkernels.checking import Verdict, check_psd
from convexkernels.losses.fit import fit

Cells = Index
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

    The violation is the excess of r, or of the distance of some point of the ball from all centers. The constant is
    reached, by a traversal that begins in the middle of an interval: its 3 balls are as large as the interval.
    """
    d, c = int(rng.integers(1, 4)), float(rng.uniform(0.5, 3.0))
    anywhere = _excess_of_cover(constant, d, c, c * float(rng.uniform(0.25, 1.0)), lambda X: int(rng.integers(len(X))))
    extreme = _excess_of_cover(constant, 1, c, 0.999 * c, lambda X: int(np.argmin(np.abs(X[:, 0]))))
    return Verdict.worst([anywhere, extreme])


def _excess_of_cover(constant: float, d: int, c: float, r: float, start: Callable[[Array], int]) -> Verdict:
    spacing = 0.1 * r
    X, between = projected_grid(d, c, spacing), 0.5 * spacing * np.sqrt(d)
    centers = X[farthest_first(X, radius=r - between, start=start(X)).centers]
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


def _in_cell(X: Array) -> Mask:
    """The cell A of the checks: points whose first coordinate is at most one half."""
    return np.asarray(X[:, 0] <= 0.5)


Extension = Callable[[Gaussian, Array, Array], Array]

# Centers whose first cell is A.
CENTERS = np.array([[0.25, 0.5], [0.75, 0.5]])


def extended_by_the_library(kernel: Gaussian, U: Array, V: Array) -> Array:
    """The kernel of cell A alone: the other cell's is divided by so much that nothing is left."""
    return np.asarray(Localized(CENTERS, [kernel, kernel], [1.0, 1e300])(U, V))


def kept_outside(kernel: Gaussian, U: Array, V: Array) -> Array:
    """Zero only when one point is inside and the other is not: PSD, but not the extension."""
    return np.asarray(Localized(CENTERS, [kernel, kernel])(U, V))


def measure_zero_extension(extend: Extension, rng: Generator) -> Verdict:
    """The extended kernel [MS16 Lemma 2, (10)] is PSD, and reproduces the zero extension of f with the same norm."""
    kernel = Gaussian(float(rng.uniform(1.0, 5.0)))
    X, T = rng.uniform(0.0, 1.0, (12, 2)), rng.uniform(0.0, 1.0, (20, 2))
    A = X[_in_cell(X)]
    alpha = rng.standard_normal(A.shape[0])

    def extended(U: Array, V: Array) -> Array:
        return extend(kernel, U, V)

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
        values += np.where(inside(T), kernels[index](T, X[own]) @ alpha[own], 0.0)
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
    """[MS16 (2)] on a cell equals [MS16 (1)] on the cell's own data with lambda multiplied by factor(n, n_j).

    The library fits the latter, as the sum of n_j losses.
    """
    X, y, cells, lam, gamma = _problem(rng)
    j = int(np.argmax(np.bincount(cells, minlength=3)))
    own = cells == j
    K, size = Gaussian(float(gamma[j]))(X[own]), int(own.sum())
    local = cell_solution(K, y[own], float(lam[j]), y.size)
    alone = fit(LeastSquares(size * factor(y.size, size) * float(lam[j]), False), K, y[None, own], np.ones(size)).W[0]
    condition = float(np.linalg.cond(K + min(y.size * lam[j], size * factor(y.size, size) * lam[j]) * np.eye(size)))
    witness = {"X": X[own], "y": y[own], "lam": lam[j], "gamma": gamma[j], "n": y.size}
    tolerance = 8.0 * EPS * size * condition * float(np.linalg.norm(local) + np.linalg.norm(alone))
    return Verdict(float(np.linalg.norm(local - alone)), tolerance, 1, witness)
