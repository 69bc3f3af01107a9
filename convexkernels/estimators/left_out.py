"""Values of learned functions at rows that they were not trained on, for the kernel that was learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.backend import to_numpy
from convexkernels.cells.function import LocalizedFunction
from convexkernels.cells.kernel_learner import CellFunction
from convexkernels.criteria.folds import split_rows
from convexkernels.criteria.ridge import residuals_at
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import fit
from convexkernels.losses.least_squares import LeastSquares

# Rows of a kernel matrix at most: in closed form, or trained on again in folds. Longer tables give a sample.
EXACT_ROWS, FOLD_ROWS = 4000, 2000
FOLDS = 5
# Of fewer rows none is held out: constants stand for the functions of such a cell.
FEWEST_ROWS = 4
# Against the mean of the squared errors, where no ridge was left by the choice of one.
SMALLEST_RIDGE = 1e-10
# Relative duality gap of functions that are only looked at.
TOL = 1e-4


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Values at rows by functions that have not seen the row; the kernel and its parameters have seen all.

    Attributes
    ----------
    F : ndarray of shape (n_outputs, m)
    Y : ndarray of shape (n_outputs, m)
        Targets.
    weights : ndarray of shape (m,), > 0
    """

    F: Array
    Y: Array
    weights: Array

    @classmethod
    def joined(cls, parts: list[LeftOut]) -> LeftOut:
        """All rows of several."""
        F, Y = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("F", "Y"))
        return cls(F, Y, np.concatenate([part.weights for part in parts]))


def _sampled(loss: Loss, Y: Array) -> Index:
    """The rows to look at: all, or a random sample where there are many."""
    most = EXACT_ROWS if isinstance(loss, LeastSquares) else FOLD_ROWS
    m = Y.shape[1]
    return np.arange(m) if m <= most else np.sort(np.random.default_rng(0).permutation(m)[:most])


def left_out_values(K: Array, loss: Loss, Y: Array, weights: Array) -> Array:
    """Values at every row by functions that have not seen it.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Overwritten.
    loss : Loss
        Least squares leave out row by row, in closed form. Others are trained anew, without each of five parts.
    Y : ndarray of shape (n_outputs, m)
    weights : ndarray of shape (m,), > 0

    Returns
    -------
    ndarray of shape (n_outputs, m)
        NaN where the arithmetic broke down. O(m^3).
    """
    if isinstance(loss, LeastSquares):
        residual = residuals_at(K, Y, weights, loss.lam, None, intercept=loss.intercept)
        return np.full(Y.shape, np.nan) if residual is None else np.asarray(Y - residual)
    if Y.shape[1] < FEWEST_ROWS:
        return np.repeat(loss.constant(Y, weights)[:, None], Y.shape[1], axis=1)
    F = np.empty(Y.shape)
    for train, held in split_rows(Y, min(FOLDS, Y.shape[1] // 2), np.random.default_rng(0)):
        inner, cross = (np.ascontiguousarray(K[np.ix_(rows, train)]) for rows in (train, held))
        trained = fit(loss, inner, np.ascontiguousarray(Y[:, train]), weights[train], tol=TOL)
        F[:, held] = trained.multiples[:, None] * (trained.W @ cross.T + trained.b[:, None])
    return F


def left_out_of_problem(problem: Any, theta: Any, gram: Callable[[Index], Array]) -> LeftOut:
    """For the functions of a problem at a point, from the learned kernel on some of its rows.

    Parameters
    ----------
    problem : KernelLearning or OuterLearning
    theta : ndarray
    gram : callable
        Rows of the problem -> their kernel matrix, which may be overwritten.
    """
    rows, loss, offset, bounds = _at(problem, theta)
    Y, weights = np.ascontiguousarray(problem.Y[:, rows]), problem.weights[rows]
    F = left_out_values(gram(rows), loss, Y, weights) + offset[:, None]
    return LeftOut(F if bounds is None else np.clip(F, *bounds), Y + offset[:, None], weights)


def _at(problem: Any, theta: Any) -> tuple[Index, Loss, Array, Any]:
    """Rows to look at, the loss that weighs `|f|^2` per row as the problem does, offset and bounds of the functions."""
    if hasattr(problem, "split"):
        lam, offset, bounds = problem.bind().lam(problem.split(theta)[1]), problem.offset, problem.bounds
        bounds = None if bounds is None else tuple(bound + offset[:, None] for bound in bounds)
    else:
        lam, offset, bounds = problem.loss.lam, problem.center, None
    rows = _sampled(problem.loss, problem.Y)
    return rows, problem.loss.at(lam * float(problem.weights[rows].sum() / problem.weights.sum())), offset, bounds


def left_out_of_kernel(solution: Any) -> LeftOut:
    """For the functions of a solution, whose kernel is evaluated anew."""
    problem, kernel = solution.problem, solution.kernel
    return left_out_of_problem(problem, solution.theta, lambda rows: kernel(problem.X[rows]))


def left_out_of_pairs(solution: Any) -> LeftOut:
    """For a vote of all pairs of classes: rows of other classes have not been seen by a pair in any case."""
    problem, kernel = solution.problem, solution.kernel
    rows, loss, offset, _ = _at(problem, solution.theta)
    Y, weights = problem.Y[:, rows] + offset[:, None], problem.weights[rows]
    codes, K, F = Y.argmax(axis=0), kernel(problem.X[rows]), np.zeros((len(Y), len(rows)))
    for i, j in combinations(range(len(Y)), 2):
        pair, others = np.flatnonzero((codes == i) | (codes == j)), np.flatnonzero((codes != i) & (codes != j))
        y = np.where(codes[pair] == i, 1.0, -1.0)[None]
        own = loss.offset(y, weights[pair])
        shift = np.zeros(1) if own is None else own
        value = np.empty(len(rows))
        trained = fit(loss, K[np.ix_(pair, pair)], y - shift[:, None], weights[pair], tol=TOL)
        value[others] = trained.W[0] @ K[np.ix_(pair, others)] + trained.b[0]
        value[pair] = left_out_values(K[np.ix_(pair, pair)], loss, y - shift[:, None], weights[pair])[0]
        value = np.clip(value + shift[0], -1.0, 1.0)
        F[i] += value
        F[j] -= value
    return LeftOut(F, Y, weights)


def left_out_of_cells(localized: Any, seed: int = 0) -> LeftOut:
    """For functions in cells, every row by the functions that predict at it; of many cells a random sample."""
    _check_here(localized)
    parts: list[LeftOut] = []
    order = np.random.default_rng(seed).permutation(np.flatnonzero(localized.sizes)).tolist()
    while order and sum(part.F.shape[1] for part in parts) < EXACT_ROWS:
        parts.append(_of_cell(localized, order.pop()))
    return LeftOut.joined(parts)


def points_of_cells(localized: Any) -> Array:
    """Points that the cells learned from, or a sample of them that is large enough to look at."""
    _check_here(localized)
    kept = [cell.X for cell in localized.functions if cell.X.size]
    if not kept:  # constants everywhere
        return np.zeros((1, localized.cover.centers.shape[1]))
    return np.concatenate([X[:: max(1, len(kept) * len(X) // EXACT_ROWS)] for X in kept])


def left_out_of_features(kernel: Any, problem: Any, lam: float) -> LeftOut:
    """For ridge regression with an intercept on the features of a kernel: ``mean |f - y|^2 + lam |W|_F^2``."""
    Y = np.asarray(to_numpy(problem.Y), dtype=np.float64).T
    weights = np.ones(Y.shape[1]) if problem.weights is None else np.asarray(to_numpy(problem.weights), np.float64)
    loss = LeastSquares(1.0)
    rows = _sampled(loss, Y)
    Y, weights = np.ascontiguousarray(Y[:, rows]), weights[rows]
    K = kernel(np.asarray(to_numpy(problem.X), dtype=np.float64)[rows])
    return LeftOut(left_out_values(K, loss.at(max(lam, SMALLEST_RIDGE) * float(weights.sum())), Y, weights), Y, weights)


def _check_here(localized: Any) -> None:
    if not isinstance(localized, LocalizedFunction):
        raise InvalidInputError(
            "the functions of the cells, and the rows they have seen, are on a cluster; bring them here first: "
            "model.function_ = model.function_.gather()."
        )


def _of_cell(localized: LocalizedFunction, j: int) -> LeftOut:
    """The rows that cell number `j` predicts at."""
    cell = localized.functions[j]
    if not isinstance(cell, CellFunction):
        X, Y, weights = cell.rows.X, cell.rows.Y, cell.rows.weights
        F = cell.left_out(min(FOLDS, len(X) // 2)) if len(X) >= FEWEST_ROWS else cell.values(X).T
    elif not np.isfinite(cell.width):
        return LeftOut(np.repeat(cell.function.b[:, None], cell.Y.shape[1], axis=1), cell.Y, cell.weights)
    else:
        rows = _sampled(cell.loss, cell.Y)
        share = float(cell.weights[rows].sum() / cell.weights.sum())
        X, Y, weights = cell.X[rows], np.ascontiguousarray(cell.Y[:, rows]), cell.weights[rows]
        F = left_out_values(cell.kernel(X), cell.loss.at(share * cell.loss.lam), Y, weights)
        if cell.function.bounds is not None:
            F = np.clip(F, *cell.function.bounds)
    if localized.cover.average:
        others = len(localized.functions) * localized.values(X).T - cell.values(X).T
        return LeftOut((others + F) / len(localized.functions), Y, weights)
    own = np.flatnonzero(localized.cover.cells(X) == j)
    return LeftOut(F[:, own], Y[:, own], weights[own])
