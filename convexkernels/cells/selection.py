"""Choice of the regularization parameter and the width of the kernel in one cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexkernels.cells.low_rank import pivoted_cholesky
from convexkernels.criteria.folds import Rows
from convexkernels.criteria.ridge_path import path_residuals, residuals_at
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import fit

__all__ = ["Grid", "GridSearch"]

Array = NDArray[np.float64]

# Relative duality gap on the way along a path: what a validation risk can see of the solver.
PATH_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class Grid:
    """Candidates for ``lam |f|^2 + sum of losses`` with the kernel ``exp(-|x - x'|^2 / width^2)``, both ascending."""

    lams: Array
    widths: Array

    @classmethod
    def of_cell(cls, m: int, n_features: int, total: float, n_lams: int = 10, n_widths: int = 10) -> Grid:
        """Candidates of a cell: geometric in ``total [0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]``.

        The grid of [MS16 Section 5], for features and targets in [-1, 1] and m points to train on. The paper
        regularizes the mean of the losses; `total`, the weight of all rows, makes it their sum.
        """
        lams = np.geomspace(0.001 / m, 0.1, n_lams)
        return cls(total * lams, np.geomspace(0.5 * m ** (-1.0 / n_features), 10.0, n_widths))


@dataclass(frozen=True, eq=False)
class GridSearch:
    """Held-out risks of the pairs of a grid in one cell: lam is the same for the folds as for the whole cell.

    Attributes
    ----------
    loss : Loss
    D : ndarray of shape (m, m)
        Squared distances of the points.
    Y : ndarray of shape (n_outputs, m)
    weights : ndarray of shape (m,), > 0
    grid : Grid
    blocks : list of ndarray of int, or None
        As from `criteria.folds.held_out_blocks`.
    clip : float
        Predictions are clipped to ``[-clip, clip]``.
    """

    loss: Loss
    D: Array
    Y: Array
    weights: Array
    grid: Grid
    blocks: list[Rows] | None
    clip: float = np.inf

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of widths and lams."""
        return len(self.grid.widths), len(self.grid.lams)

    def risk(self, F: Array) -> float:
        """Weighted mean over what is held out, added over the outputs, of predictions of shape (n_outputs, m)."""
        rows = slice(None) if self.blocks is None else np.concatenate(self.blocks)
        losses, _ = self.loss.pointwise(self.Y[:, rows], np.clip(F[:, rows], -self.clip, self.clip))
        return float((losses @ self.weights[rows]).sum() / self.weights[rows].sum())

    def squared_risks(self, rank: int) -> Array:
        """Risks of least squares for all pairs, shape (n_widths, n_lams), from factors of at most that rank."""
        risks = np.empty(self.shape)
        # What the factor leaves out has to be small beside the least lam.
        tol = 0.01 * self.grid.lams[0] / float(self.weights.max())
        for i, width in enumerate(self.grid.widths):
            rate = -1.0 / width**2
            Z, _ = pivoted_cholesky(
                lambda rows, rate=rate: np.exp(rate * self.D[rows]),  # type: ignore[misc]
                np.ones(len(self.D)),
                rank,
                tol,
            )
            path = path_residuals(Z, self.Y, self.weights, self.grid.lams, self.blocks)
            risks[i] = [self.risk(self.Y - residual) for residual in path]
        return risks

    def refined(self, risks: Array) -> Array:
        """Walk from the best pair to its best neighbors, with exact Gram matrices.

        A factor of low rank makes narrow kernels look worse than they are; the walk corrects that.

        Parameters
        ----------
        risks : ndarray of shape (n_widths, n_lams)
            Approximate risks; the walk starts where they are least.

        Returns
        -------
        ndarray of shape (n_widths, n_lams)
            Exact risks where the walk came by, inf elsewhere; their least one has no better neighbor. O(m^3) for each.
        """
        exact = np.full(risks.shape, np.inf)
        here = np.unravel_index(np.flatnonzero(risks.ravel() <= risks.min())[-1], risks.shape)
        at = (int(here[0]), int(here[1]))
        exact[at] = self._exact(*at)
        moved = True
        while moved:
            moved = False
            # Narrower first: that is where the factors err.
            for i, k in ((at[0] - 1, at[1]), (at[0], at[1] + 1), (at[0], at[1] - 1), (at[0] + 1, at[1])):
                if 0 <= i < risks.shape[0] and 0 <= k < risks.shape[1] and np.isinf(exact[i, k]):
                    exact[i, k] = self._exact(i, k)
                    if exact[i, k] < exact[at]:
                        at, moved = (i, k), True
                        break
        return exact

    def _exact(self, i: int, k: int) -> float:
        K = self.D * (-1.0 / self.grid.widths[i] ** 2)
        np.exp(K, out=K)
        residual = residuals_at(K, self.Y, self.weights, float(self.grid.lams[k]), self.blocks)
        return float(np.finfo(np.float64).max) if residual is None else self.risk(self.Y - residual)

    def path_risks(self) -> Array:
        """Risks of any loss for all pairs, shape (n_widths, n_lams); each path of lam is solved from its regular end.

        The coefficients for one lam start the next one, with less regularization, in the same fold. Blocks are given.
        """
        F = np.zeros((*self.shape, *self.Y.shape))
        for i, width in enumerate(self.grid.widths):
            K = np.exp(-self.D / width**2)
            for block in self.blocks or []:
                train = np.setdiff1d(np.arange(len(self.D)), block)
                inner, cross = K[np.ix_(train, train)], K[np.ix_(block, train)]
                y, alpha = np.ascontiguousarray(self.Y[:, train]), None
                for k in range(len(self.grid.lams))[::-1]:
                    loss = self.loss.at(float(self.grid.lams[k]))
                    found = fit(loss, inner, y, self.weights[train], start=alpha, tol=PATH_TOL)
                    alpha = found.alpha
                    F[i, k][:, block] = found.W @ cross.T
        return np.array([[self.risk(F[i, k]) for k in range(self.shape[1])] for i in range(self.shape[0])])
