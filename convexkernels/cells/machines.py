"""The machine of one cell, and how it is learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from convexkernels.cells.selection import Grid, held_out_blocks, path_risks, refine_squared_risks, squared_risks
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.distances import squared_distances
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.pinball import Pinball
from convexkernels.validation import check_number, check_whole_number

__all__ = ["CellLearner", "CellMachine", "GaussianLearner"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Rows that are predicted at once.
CHUNK = 4096


class CellPredictor(Protocol):
    """What a cell keeps."""

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_machines)."""


class CellLearner(Protocol):
    """What learns in a cell; it has to be picklable."""

    def learn(
        self, X: Array, Y: Array, weights: Array, rng: np.random.Generator, own: Mask | None = None
    ) -> CellPredictor:
        """Learn from the m rows of a cell and their targets of shape (n_machines, m).

        `own` marks the rows that the cell answers for; None stands for all.
        """

    def constant(self, Y: Array, weights: Array) -> CellPredictor:
        """The best constants."""


@dataclass(frozen=True, eq=False)
class CellMachine:
    """``f(x) = sum_i W_ki exp(-|x - x_i|^2 / width^2) + b_k``, clipped to the range of the targets.

    Attributes
    ----------
    points : ndarray of shape (s, n_features)
        None of them where the machine is constant.
    W : ndarray of shape (n_machines, s)
    b : ndarray of shape (n_machines,)
        0, except for constant machines.
    width : float
    lam : float
        The pair that was chosen; `lam` is the price of ``|f|^2`` against the mean of the losses.
    price : float
        That of ``|f|^2`` against their weighted sum: `lam` times the weight of the rows that the cell answers for.
    clip : float
        Values are clipped to ``[-clip, clip]``.
    risks : ndarray of shape (n_widths, n_lams) or None
        Held-out risks it was chosen by; inf for pairs that the selection did not come by.
    """

    points: Array
    W: Array
    b: Array
    width: float = np.nan
    lam: float = np.nan
    price: float = np.nan
    clip: float = np.inf
    risks: Array | None = None

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_machines)."""
        F = np.empty((len(X), len(self.b)))
        for start in range(0, len(X), CHUNK):
            part = slice(start, start + CHUNK)
            if len(self.points):
                K = squared_distances(X[part], self.points)
                K *= -1.0 / self.width**2
                F[part] = np.exp(K, out=K) @ self.W.T + self.b
            else:
                F[part] = self.b
        return np.clip(F, -self.clip, self.clip, out=F)


@dataclass(frozen=True)
class GaussianLearner:
    """The SVM of one cell [MS16 (2)], with a Gaussian kernel and no intercept; lam and the width are selected.

    Parameters
    ----------
    loss : {"least_squares", "hinge", "epsilon_insensitive", "pinball"}
    validation : int >= 2, "split" or "leave-one-out"
        Leave-one-out has a closed form for least squares only.
    n_lams, n_widths : int, >= 1
        Size of the grid.
    rank : int, >= 1
        Of the factors of Gram matrices that selection for least squares starts with. In larger cells the best pair
        and its neighbours are measured again with exact ones. The final machine is exact.
    epsilon, quantile : float
        Of the losses that have them, in units of the targets.
    clip : float
        Bound of the targets.
    tol : float
        Relative duality gap of the final machine, for losses that are solved by iteration.
    """

    loss: str
    validation: Any = 5
    n_lams: int = 10
    n_widths: int = 10
    rank: int = 300
    epsilon: float = 0.1
    quantile: float = 0.5
    clip: float = 1.0
    tol: float = 1e-4

    def check(self) -> None:
        """Refuse bad parameters by name."""
        held_out_blocks(2, self.validation, np.random.default_rng(0))
        if self.validation == "leave-one-out" and self.loss != "least_squares":
            raise InvalidInputError(
                f"validation='leave-one-out' has a closed form for least squares only, got loss={self.loss!r}; "
                "pass a number of folds or 'split'."
            )
        for name in ("n_lams", "n_widths", "rank"):
            check_whole_number(name, getattr(self, name), low=1)
        check_number("tol", self.tol, low=0.0, open_low=True)
        self.make_loss(1.0)

    def make_loss(self, lam: float) -> Loss:
        """The loss whose machine minimises ``lam |f|^2 + sum weights * loss``; its C is 1 / (2 lam)."""
        C = 0.5 / lam
        if self.loss == "least_squares":
            return LeastSquares(lam, intercept=False)
        if self.loss == "hinge":
            return Hinge(C, intercept=False)
        if self.loss == "epsilon_insensitive":
            return EpsilonInsensitive(C, self.epsilon, intercept=False)
        if self.loss == "pinball":
            return Pinball(C, self.quantile, intercept=False)
        raise InvalidInputError(
            f"loss must be 'least_squares', 'hinge', 'epsilon_insensitive' or 'pinball', got {self.loss!r}."
        )

    def losses(self, Y: Array, F: Array) -> Array:
        """Loss of every prediction, after clipping."""
        F = np.clip(F, -self.clip, self.clip)
        if self.loss == "least_squares":
            return (Y - F) ** 2
        if self.loss == "hinge":
            return np.maximum(0.0, 1.0 - Y * F)
        if self.loss == "epsilon_insensitive":
            return np.maximum(0.0, np.abs(Y - F) - self.epsilon)
        return np.maximum(self.quantile * (Y - F), (self.quantile - 1.0) * (Y - F))

    def constant(self, Y: Array, weights: Array) -> CellMachine:
        """The constants of least loss: a mean, a majority, a median or a quantile."""
        if self.loss == "least_squares":
            b = Y @ weights / weights.sum()
        elif self.loss == "hinge":
            b = np.where(Y @ weights > 0.0, 1.0, -1.0)
        else:
            share = self.quantile if self.loss == "pinball" else 0.5
            b = np.array([_weighted_quantile(y, weights, share) for y in Y])
        return CellMachine(np.empty((0, 0)), np.empty((len(Y), 0)), b, clip=self.clip)

    def learn(
        self, X: Array, Y: Array, weights: Array, rng: np.random.Generator, own: Mask | None = None
    ) -> CellMachine:
        """Select lam and width, and train on all rows; targets that are all the same give a constant.

        Where the cell answers for some rows only (`own`), the selection is made on these: held-out risks beyond the
        border are not its business, and cost as much. The price of ``|f|^2`` is kept for the machine that learns from
        all rows, because they are as dense beyond the border as before it.
        """
        if _is_constant(Y):
            return self.constant(Y, weights)
        if own is None or own.all() or not own.any() or _is_constant(Y[:, own]):
            judged, D = (X, Y, weights), squared_distances(X, X)
            width, lam, risks = self._selected(X, Y, weights, D, rng)
        else:
            judged = (X[own], np.ascontiguousarray(Y[:, own]), weights[own])
            width, lam, risks = self._selected(*judged, squared_distances(judged[0], judged[0]), rng)
            D = squared_distances(X, X)
        price = lam * float(judged[2].sum())
        D *= -1.0 / width**2
        loss = self.make_loss(price)
        alpha = loss.maximise_all(np.exp(D, out=D), Y, weights, tol=self.tol)
        W = np.array([loss.coefficients(a, y) for a, y in zip(alpha, Y, strict=True)])
        support = np.flatnonzero(W.any(axis=0))
        clip = self.clip if len(Y) == 1 else np.inf  # between several machines, clipping would make ties
        return CellMachine(X[support], W[:, support], np.zeros(len(Y)), width, lam, price, clip, risks)

    def _selected(
        self, X: Array, Y: Array, weights: Array, D: Array, rng: np.random.Generator
    ) -> tuple[float, float, Array | None]:
        """Width and lam of the least held-out risk, and the risks."""
        m, n = X.shape
        blocks = held_out_blocks(m, self.validation, rng)
        held_out = m if blocks is None else max((len(block) for block in blocks), default=0)
        grid = Grid.of_cell(m if blocks is None else m - held_out, n, self.n_lams, self.n_widths)
        risks, i, k = None, len(grid.widths) - 1, len(grid.lams) - 1
        if (blocks is None or blocks) and len(grid.widths) * len(grid.lams) > 1:
            risks = self._risks(D, Y, weights, grid, blocks)
            # Of equal risks the most regular pair.
            i, k = np.unravel_index(np.flatnonzero(risks.ravel() <= risks.min())[-1], risks.shape)
        return float(grid.widths[i]), float(grid.lams[k]), risks

    def _risks(self, D: Array, Y: Array, weights: Array, grid: Grid, blocks: Any) -> Array:
        if self.loss == "least_squares":
            risks = squared_risks(D, Y, weights, grid, blocks, self.losses, self.rank)
            if self.rank < len(D):
                risks = refine_squared_risks(D, Y, weights, grid, blocks, self.losses, risks)
            return risks
        make: Callable[[float], Loss] = self.make_loss
        return path_risks(D, Y, weights, grid, blocks, self.losses, make)

    def bytes_of(self, m: int) -> float:
        """Bytes that learning from m rows takes, about."""
        return 8.0 * m * (4.0 * m + 4.0 * min(m, self.rank))


def _is_constant(Y: Array) -> bool:
    return bool((Y[:, :1] == Y).all())


def _weighted_quantile(y: Array, weights: Array, share: float) -> float:
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weights[order])
    return float(y[order][np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12))])
