"""Values of learned functions at rows that they were not trained on, for the kernel that was learned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.backend import to_numpy
from convexkernels.cells.function import LocalizedFunction
from convexkernels.cells.kernel_learner import CellFunction
from convexkernels.cells.stand_in import StandIn
from convexkernels.criteria.folds import split_rows
from convexkernels.criteria.ridge import solved_at
from convexkernels.exceptions import MissingAttributeError
from convexkernels.factored import FactoredGram
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit, fit
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.validation import check_memory

# Rows of a kernel matrix at most: in closed form, or trained on again in folds. Longer tables give a sample, unless
# all of them are asked for.
EXACT_ROWS, FOLD_ROWS = 4000, 2000
FOLDS = 5
# Of fewer rows none is held out: constants stand for the functions of such a cell.
FEWEST_ROWS = 4
# Against the mean of the squared errors, where no ridge was left by the choice of one.
SMALLEST_RIDGE = 1e-10
# Relative duality gap: of a value that may be one of outliers for the most part, and of one of labels.
TOL, TOL_OF_LABELS = 1e-8, 1e-5
# When values at rows left out are not worth their time any more, by time.monotonic().
_deadline: ContextVar[float] = ContextVar("_deadline", default=np.inf)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Values at rows by functions that have not seen the row; the kernel and its parameters have seen all.

    Attributes
    ----------
    F : ndarray of shape (n_outputs, m)
    Y : ndarray of shape (n_outputs, m)
        Targets.
    weights : ndarray of shape (m,), > 0
    rows : ndarray of int, shape (m,), optional
        Their places among the rows of the problem, -1 where they are not known; None for all of them in order.
    leverage : ndarray of shape (m,), optional
        How much of its own value a row with its whole weight makes, where a part of the weight can be left out, too.
    """

    F: Array
    Y: Array
    weights: Array
    rows: Index | None = None
    leverage: Array | None = None

    @classmethod
    def joined(cls, parts: list[LeftOut]) -> LeftOut:
        """All rows of several."""
        F, Y = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("F", "Y"))
        return cls(F, Y, *(np.concatenate([part.get(name) for part in parts]) for name in ("weights", "rows")))

    def get(self, name: str) -> Any:
        """An attribute, with the places of rows that are in order."""
        return np.arange(self.F.shape[1]) if name == "rows" and self.rows is None else getattr(self, name)

    def at(self, places: Index, weights: Array) -> LeftOut | None:
        """For rows of a table that were merged to these rows of the problem; None where one of them is not here.

        Of rows that were merged each is left out by itself where the leverage is known: it takes its share from the
        weight, and so from the leverage. Elsewhere they are left out together.
        """
        rows = self.get("rows")
        column = np.full(max(int(places.max()), int(rows.max(initial=0))) + 2, -1)
        column[rows] = np.arange(len(rows))
        column[-1] = -1  # where rows are not known
        found = column[places]
        if (found < 0).any():
            return None
        F, Y = self.F[:, found], self.Y[:, found]
        if self.leverage is not None:
            rest, share = 1.0 - self.leverage[found], weights / np.bincount(places, weights)[places]
            F = Y - (Y - F) * rest / np.maximum(1.0 - share * (1.0 - rest), np.finfo(np.float64).eps)
        return LeftOut(F, Y, weights)


def _sampled(loss: Loss, Y: Array, whole: bool = False) -> Index:
    """The rows to look at: all, or a random sample where there are many, and not all are asked for."""
    most = EXACT_ROWS if isinstance(loss, LeastSquares) else FOLD_ROWS
    m = Y.shape[1]
    return np.arange(m) if whole or m <= most else np.sort(np.random.default_rng(0).permutation(m)[:most])


def left_out_values(K: Array | FactoredGram, loss: Loss, Y: Array, weights: Array) -> tuple[Array, Array | None]:
    """Values at every row by functions that have not seen it, and for least squares the leverage of the rows.

    Least squares leave out row by row, in closed form, O(m^3), and overwrite a matrix K; NaN where the arithmetic broke
    down. Others are trained anew, without each of five parts.
    """
    if isinstance(loss, LeastSquares):
        solved = solved_at(K, Y, weights, loss.lam, loss.intercept, diagonal=True)
        if solved is None:
            return np.full(Y.shape, np.nan), None
        W, diagonal = solved
        return np.asarray(Y - W / diagonal), 1.0 - loss.lam * diagonal / weights
    assert isinstance(K, np.ndarray)
    if Y.shape[1] < FEWEST_ROWS:
        return np.repeat(loss.constant(Y, weights)[:, None], Y.shape[1], axis=1), None
    F = np.empty(Y.shape)
    for train, held in split_rows(Y, min(FOLDS, Y.shape[1] // 2), np.random.default_rng(0)):
        inner, cross = (np.ascontiguousarray(K[np.ix_(rows, train)]) for rows in (train, held))
        trained = _fit(loss, inner, np.ascontiguousarray(Y[:, train]), weights[train])
        F[:, held] = trained.multiples[:, None] * (trained.W @ cross.T + trained.b[:, None])
    return F, None


def _fit(loss: Loss, K: Array, Y: Array, weights: Array) -> Fit:
    """The functions of some rows, if there is time."""
    tol, deadline = TOL if loss.is_of_differences else TOL_OF_LABELS, _deadline.get()
    trained = fit(loss, K, Y, weights, tol=tol, deadline=None if np.isinf(deadline) else deadline)
    check_time()
    return trained


@contextmanager
def before(deadline: float) -> Iterator[None]:
    """Within it, work on values at rows left out ends in a TimeoutError at a deadline, by ``time.monotonic()``."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time() -> None:
    """End the work where its deadline has passed."""
    if time.monotonic() > _deadline.get():
        raise TimeoutError


def left_out_of_problem(problem: Any, theta: Any, gram: Callable[[Index], Any], whole: bool) -> LeftOut:
    """For the functions of a problem at a point, from the learned kernel on some of its rows, or on all (`whole`).

    ``gram(rows)`` is their kernel matrix, which may be overwritten.
    """
    rows, loss, offset, bounds = _at(problem, theta, whole)
    Y, weights = np.ascontiguousarray(problem.Y[:, rows]), problem.weights[rows]
    F, leverage = left_out_values(gram(rows), loss, Y, weights)
    F, Y = F + offset[:, None], Y + offset[:, None]
    if bounds is None:
        return LeftOut(F, Y, weights, rows, leverage)
    return LeftOut(np.clip(F, *bounds), Y, weights, rows)


def learned_gram(problem: Any, theta: Array, rows: Index) -> Array | FactoredGram:
    """A new kernel matrix of some rows of a convex problem, or all factors where least squares work with these."""
    if not problem.gram_set.is_factored:
        return np.asarray(problem.gram_set.part(theta, rows))
    K = problem.gram_set.matrix(theta)
    keeps = isinstance(problem.loss, LeastSquares) and len(rows) == len(K)
    return K if keeps else K.rows(rows) @ K.rows(rows).T


def _at(problem: Any, theta: Any, whole: bool) -> tuple[Index, Loss, Array, Any]:
    """Rows to look at, the loss that weighs `|f|^2` per row as the problem does, offset and bounds of the functions."""
    if hasattr(problem, "split"):
        lam, offset, bounds = problem.bind().lam(problem.split(theta)[1]), problem.offset, problem.bounds
        bounds = None if bounds is None else tuple(bound + offset[:, None] for bound in bounds)
    else:
        lam, offset, bounds = problem.loss.lam, getattr(problem, "center", getattr(problem, "offset", None)), None
        offset = np.zeros(len(problem.Y)) if offset is None else offset
    rows = _sampled(problem.loss, problem.Y, whole)
    return rows, problem.loss.at(lam * float(problem.weights[rows].sum() / problem.weights.sum())), offset, bounds


def left_out_of_kernel(solution: Any, whole: bool) -> LeftOut:
    """For the functions of a solution, whose kernel is evaluated anew."""
    problem, kernel = solution.problem, solution.kernel
    return left_out_of_problem(problem, solution.theta, lambda rows: _gram(kernel, problem.X[rows]), whole)


def _gram(kernel: Any, X: Array) -> Array:
    """A kernel matrix, and as much room for its inverse."""
    remedy = "There are values for fewer rows: predict_proba and predict_interval take a sample."
    check_memory(16.0 * len(X) ** 2, None, what=f"leaving out each of {len(X)} rows", remedy=remedy)
    return np.asarray(kernel(X), dtype=np.float64)


def left_out_of_pairs(solution: Any, whole: bool) -> LeftOut:
    """For a vote of all pairs of classes: rows of other classes have not been seen by a pair in any case."""
    problem, kernel = solution.problem, solution.kernel
    rows, loss, offset, _ = _at(problem, solution.theta, whole)
    Y, weights = problem.Y[:, rows] + offset[:, None], problem.weights[rows]
    codes, K, F = Y.argmax(axis=0), _gram(kernel, problem.X[rows]), np.zeros((len(Y), len(rows)))
    for i, j in combinations(range(len(Y)), 2):
        pair, others = np.flatnonzero((codes == i) | (codes == j)), np.flatnonzero((codes != i) & (codes != j))
        y = np.where(codes[pair] == i, 1.0, -1.0)[None]
        own = loss.offset(y, weights[pair])
        shift = np.zeros(1) if own is None else own
        value = np.empty(len(rows))
        trained = _fit(loss, K[np.ix_(pair, pair)], y - shift[:, None], weights[pair])
        value[others] = trained.W[0] @ K[np.ix_(pair, others)] + trained.b[0]
        value[pair] = left_out_values(K[np.ix_(pair, pair)], loss, y - shift[:, None], weights[pair])[0][0]
        value = np.clip(value + shift[0], -1.0, 1.0)
        F[i] += value
        F[j] -= value
    return LeftOut(F, Y, weights, rows)


def left_out_of_cells(localized: Any, whole: bool, seed: int = 0) -> LeftOut:
    """For functions in cells, every row by the functions that predict at it; of many cells a sample, or all."""
    check_here(localized)
    parts: list[LeftOut] = []
    order = np.random.default_rng(seed).permutation(np.flatnonzero(localized.sizes)).tolist()
    while order and (whole or sum(part.F.shape[1] for part in parts) < EXACT_ROWS):
        check_time()
        parts.append(_of_cell(localized, order.pop(), whole))
    return LeftOut.joined(parts)


def points_of_cells(localized: Any) -> Array:
    """Points that the cells learned from, or a sample of them that is large enough to look at."""
    check_here(localized)
    kept = [cell.X for cell in localized.functions if cell.X.size]
    if not kept:  # constants everywhere
        return np.zeros((1, localized.cover.centers.shape[1]))
    return np.concatenate([X[:: max(1, len(kept) * len(X) // EXACT_ROWS)] for X in kept])


def left_out_of_features(kernel: Any, problem: Any, lam: float, whole: bool) -> LeftOut:
    """For ridge regression with an intercept on the features of a kernel: ``mean |f - y|^2 + lam |W|_F^2``."""
    Y = np.asarray(to_numpy(problem.Y), dtype=np.float64).T
    weights = np.ones(Y.shape[1]) if problem.weights is None else np.asarray(to_numpy(problem.weights), np.float64)
    loss = LeastSquares(1.0)
    rows = _sampled(loss, Y, whole)
    Y, weights = np.ascontiguousarray(Y[:, rows]), weights[rows]
    K = _gram(kernel, np.asarray(to_numpy(problem.X), dtype=np.float64)[rows])
    ridge = loss.at(max(lam, SMALLEST_RIDGE) * float(weights.sum()))
    F, leverage = left_out_values(K, ridge, Y, weights)
    return LeftOut(F, Y, weights, rows, leverage)


def check_here(localized: Any) -> None:
    """Refuse a function of cells that are on a cluster."""
    if not isinstance(localized, LocalizedFunction):
        raise MissingAttributeError(
            "the functions of the cells, and the rows they have seen, are on a cluster; bring them here first: "
            "model.function_ = model.function_.gather()."
        )


def _of_cell(localized: LocalizedFunction, j: int, whole: bool) -> LeftOut:
    """The rows that cell number `j` predicts at."""
    cell = localized.functions[j]
    places = localized.places(j)
    if not isinstance(cell, CellFunction):
        X, Y, weights = cell.rows.X, cell.rows.Y, cell.rows.weights
        F = cell.left_out(min(FOLDS, len(X) // 2)) if len(X) >= FEWEST_ROWS else cell.values(X).T
    elif isinstance(cell, StandIn):  # it is looked at where it has not seen the row
        rows = np.flatnonzero(~cell.seen)
        X, Y, weights, places = cell.X[rows], np.ascontiguousarray(cell.Y[:, rows]), cell.weights[rows], places[rows]
        F = cell.values(X).T
    elif not np.isfinite(cell.width):
        return _of_constant(cell, places)
    else:
        rows = _sampled(cell.loss, cell.Y, whole)
        share = float(cell.weights[rows].sum() / cell.weights.sum())
        X, Y, weights = cell.X[rows], np.ascontiguousarray(cell.Y[:, rows]), cell.weights[rows]
        F, places = left_out_values(cell.kernel(X), cell.loss.at(share * cell.loss.lam), Y, weights)[0], places[rows]
        if cell.function.bounds is not None:
            F = np.clip(F, *cell.function.bounds)
    if localized.cover.average:
        others = len(localized.functions) * localized.values(X).T - cell.values(X).T
        return LeftOut((others + F) / len(localized.functions), Y, weights, places)
    own = np.flatnonzero(localized.cover.cells(X) == j)
    return LeftOut(F[:, own], Y[:, own], weights[own], places[own])


def _of_constant(cell: CellFunction, places: Index) -> LeftOut:
    """Rows of a cell with a constant: for least squares the mean of the others, nothing where there are none."""
    weights, total = cell.weights, float(cell.weights.sum())
    F = np.repeat(cell.function.b[:, None], cell.Y.shape[1], axis=1)
    if isinstance(cell.loss, LeastSquares) and len(weights) > 1:
        F = (cell.Y @ weights)[:, None] - weights * cell.Y
        F /= np.maximum(total - weights, np.finfo(np.float64).tiny)
    return LeftOut(F, cell.Y, weights, places if len(weights) > 1 else np.full(len(places), -1))
