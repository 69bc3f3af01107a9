"""Choice of the regularization and the width of the kernel in one cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpotrf, dpotri

from convexkernels.cells.low_rank import pivoted_cholesky
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.validation import check_whole_number

__all__ = ["Grid", "held_out_blocks", "path_risks", "refine_squared_risks", "squared_risks"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Risk = Callable[[Array, Array], Array]  # targets, predictions -> losses, entry by entry

# Relative duality gap on the way along a path: what a validation risk can see of the solver.
PATH_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class Grid:
    """Candidates for ``lam |f|^2 + mean loss`` with the kernel ``exp(-|x - x'|^2 / width^2)``, both ascending."""

    lams: Array
    widths: Array

    @classmethod
    def of_cell(cls, m: int, n_features: int, n_lams: int = 10, n_widths: int = 10) -> Grid:
        """Candidates of a cell: geometric in ``[0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]``.

        The grid of [MS16 Section 5], for features and targets in [-1, 1] and m points to train on.
        """
        return cls(np.geomspace(0.001 / m, 0.1, n_lams), np.geomspace(0.5 * m ** (-1.0 / n_features), 10.0, n_widths))


def held_out_blocks(m: int, validation: int | str, rng: np.random.Generator) -> list[Rows] | None:
    """Rows that are held out in turn, for m rows.

    Parameters
    ----------
    m : int
    validation : int >= 2, "split" or "leave-one-out"
        A number of random folds; or the random second half, as in Section 4.2 of the paper (``m // 2 + 1`` rows to
        train on); or every row by itself.
    rng : numpy.random.Generator

    Returns
    -------
    list of ndarray of int, or None for every row by itself
        Empty when there is nothing left to validate on.
    """
    if isinstance(validation, str):
        if validation not in ("split", "leave-one-out"):
            raise InvalidInputError(
                f"validation must be a number of folds, 'split' or 'leave-one-out', got {validation!r}."
            )
        if validation == "leave-one-out":
            return None if m > 1 else []
        order = rng.permutation(m)
        return [np.sort(order[m // 2 + 1 :])] if m > 2 else []
    folds = min(check_whole_number("validation", validation, low=2), m)
    if folds < 2:
        return []
    labels = rng.permutation(m) % folds
    return [np.flatnonzero(labels == k) for k in range(folds)]


def squared_risks(
    D: Array, Y: Array, weights: Array, grid: Grid, blocks: list[Rows] | None, risk: Risk, rank: int
) -> Array:
    """Held-out risks of kernel ridge regression for all pairs of a grid, from one factorisation per width.

    Parameters
    ----------
    D : ndarray of shape (m, m)
        Squared distances of the points.
    Y : ndarray of shape (n_machines, m)
    weights : ndarray of shape (m,), > 0
    grid : Grid
    blocks : list of ndarray of int, or None
        As from `held_out_blocks`.
    risk : callable
        Loss of every entry of a prediction.
    rank : int, >= 1
        Most columns of the factor of the Gram matrix.

    Returns
    -------
    ndarray of shape (n_widths, n_lams)
        Weighted means over what is held out, added over the machines.

    Notes
    -----
    With ``K = Z Z'``, ``H = K (K + lam W^-1)^-1`` and fitted values f, the residual of a block B by the machine
    that has not seen B is ``(I - H_BB)^-1 (y_B - f_B)``: no machine is trained again. The eigenvectors of ``Z'Z``
    serve the whole path of lam. Per width O(m r^2 + r^3) for leave-one-out.
    """
    total = float(weights.sum())
    root = np.sqrt(weights)
    risks = np.empty((len(grid.widths), len(grid.lams)))
    for i, width in enumerate(grid.widths):
        rate = -1.0 / width**2
        # What the factor leaves out has to be small beside the least lam.
        tol = 0.01 * grid.lams[0] * total / float(weights.max())
        Z, _ = pivoted_cholesky(lambda rows, rate=rate: np.exp(rate * D[rows]), np.ones(len(D)), rank, tol)  # type: ignore[misc]
        Z *= root[:, None]
        values, vectors = eigh(Z.T @ Z, check_finite=False, driver="evd", overwrite_a=True)
        Z = Z @ vectors
        parts = (Z, np.maximum(values, 0.0), Z.T @ (root * Y).T)
        for k, lam in enumerate(grid.lams):
            residual = _held_out_residuals(*parts, lam * total, (root * Y).T, blocks) / root[:, None]
            risks[i, k] = _mean_risk(Y, Y - residual.T, weights, blocks, risk)
    return risks


def _held_out_residuals(
    Z: Array, values: Array, projected: Array, lam: float, Y: Array, blocks: list[Rows] | None
) -> Array:
    """Residuals of the machines that have not seen the rows, shape (m, n_machines); fitted ones elsewhere."""
    inverse = 1.0 / (values + lam)
    residual = Y - Z @ (inverse[:, None] * projected)
    if blocks is None:
        leverage = np.square(Z) @ inverse
        return np.asarray(residual / np.maximum(1.0 - leverage, np.finfo(np.float64).eps)[:, None])
    for block in blocks:
        part = Z[block]
        if len(block) <= Z.shape[1]:
            A = np.eye(len(block)) - (part * inverse) @ part.T
            residual[block] = _definite_solve(A, residual[block])
        else:  # the same by Woodbury's identity
            A = np.diag(values + lam) - part.T @ part
            residual[block] += part @ _definite_solve(A, part.T @ residual[block])
    return residual


def refine_squared_risks(
    D: Array, Y: Array, weights: Array, grid: Grid, blocks: list[Rows] | None, risk: Risk, risks: Array
) -> Array:
    """Walk from the best pair of a grid to its best neighbours, with exact Gram matrices.

    A factor of low rank makes narrow kernels look worse than they are; the walk corrects that.

    Parameters
    ----------
    D, Y, weights, grid, blocks, risk
        As in `squared_risks`.
    risks : ndarray of shape (n_widths, n_lams)
        Approximate risks; the walk starts where they are least.

    Returns
    -------
    ndarray of shape (n_widths, n_lams)
        Exact risks where the walk came by, inf elsewhere; their least one has no better neighbour. O(m^3) for each.
    """
    exact = np.full(risks.shape, np.inf)
    here = np.unravel_index(np.flatnonzero(risks.ravel() <= risks.min())[-1], risks.shape)
    at = (int(here[0]), int(here[1]))
    exact[at] = _exact_risk(D, Y, weights, grid, at, blocks, risk)
    moved = True
    while moved:
        moved = False
        # Narrower first: that is where the factors err.
        for i, k in ((at[0] - 1, at[1]), (at[0], at[1] + 1), (at[0], at[1] - 1), (at[0] + 1, at[1])):
            if 0 <= i < risks.shape[0] and 0 <= k < risks.shape[1] and np.isinf(exact[i, k]):
                exact[i, k] = _exact_risk(D, Y, weights, grid, (i, k), blocks, risk)
                if exact[i, k] < exact[at]:
                    at, moved = (i, k), True
                    break
    return exact


def _exact_risk(
    D: Array, Y: Array, weights: Array, grid: Grid, at: tuple[int, int], blocks: list[Rows] | None, risk: Risk
) -> float:
    """Risk of a pair by ``A = K + lam W^-1``: the residual of a block B held out is ``((A^-1)_BB)^-1 (A^-1 y)_B``."""
    A = (D * (-1.0 / grid.widths[at[0]] ** 2)).T  # symmetric; the transpose has the layout of LAPACK
    np.exp(A, out=A)
    A[np.diag_indices_from(A)] += grid.lams[at[1]] * float(weights.sum()) / weights
    factor, failed = dpotrf(A, lower=1, overwrite_a=1, clean=0)
    if failed:
        return float(np.finfo(np.float64).max)
    W = cho_solve((factor, True), Y.T, check_finite=False)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    residual = np.zeros_like(W)
    if blocks is None:
        residual = W / np.diagonal(inverse)[:, None]
    else:
        for block in blocks:
            part = np.tril(inverse[np.ix_(block, block)])
            residual[block] = _definite_solve(part + np.tril(part, -1).T, W[block])
    return _mean_risk(Y, Y - residual.T, weights, blocks, risk)


def _definite_solve(A: Array, right: Array) -> Array:
    try:
        return np.asarray(cho_solve(cho_factor(A, check_finite=False), right, check_finite=False))
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0], dtype=np.float64)


def _mean_risk(Y: Array, F: Array, weights: Array, blocks: list[Rows] | None, risk: Risk) -> float:
    rows = slice(None) if blocks is None else np.concatenate(blocks)
    losses = risk(Y[:, rows], F[:, rows]) @ weights[rows]
    return float(losses.sum() / weights[rows].sum())


def path_risks(
    D: Array, Y: Array, weights: Array, grid: Grid, blocks: list[Rows], risk: Risk, make_loss: Callable[[float], Loss]
) -> Array:
    """Held-out risks of any loss for all pairs of a grid; each path of lam is solved from its regular end.

    The coefficients of a machine start the next one, with less regularization, in the same fold.

    Parameters
    ----------
    D, Y, weights, grid, blocks, risk
        As in `squared_risks`; blocks are given.
    make_loss : callable
        The loss whose machine minimises ``lam |f|^2 + sum weights * loss``, up to a factor, without intercept.

    Returns
    -------
    ndarray of shape (n_widths, n_lams)
    """
    risks = np.zeros((len(grid.widths), len(grid.lams)))
    counted = float(weights[np.concatenate(blocks)].sum())
    for i, width in enumerate(grid.widths):
        K = np.exp(-D / width**2)
        for block in blocks:
            rest = np.ones(len(D), dtype=bool)
            rest[block] = False
            train = np.flatnonzero(rest)
            inner, cross = K[np.ix_(train, train)], K[np.ix_(block, train)]
            y, w = np.ascontiguousarray(Y[:, train]), weights[train]
            alpha: Array | None = None
            for k in range(len(grid.lams))[::-1]:
                loss = make_loss(grid.lams[k] * float(w.sum()))
                alpha = loss.maximise_all(inner, y, w, start=alpha, tol=PATH_TOL)
                coefficients = np.array([loss.coefficients(a, t) for a, t in zip(alpha, y, strict=True)])
                losses = risk(Y[:, block], coefficients @ cross.T) @ weights[block]
                risks[i, k] += float(losses.sum()) / counted
    return risks
