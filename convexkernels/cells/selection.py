"""Choice of the regularization parameter and the width of the kernel in one cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from convexkernels.arrays import Array, Index, Mask
from convexkernels.cells.many_rows import Folds, fits
from convexkernels.cells.matrices import Matrices
from convexkernels.criteria.comparison import is_clearly_worse, least, over_folds, survivors
from convexkernels.criteria.folds import Rows
from convexkernels.criteria.ridge import matrix_path_residuals, path_residuals, residuals_at
from convexkernels.linalg import pivoted_cholesky
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import fit
from convexkernels.losses.least_squares import LeastSquares

# Relative duality gap on the way along a path. A validation risk of a thousand rows is known to 1e-2 or worse; on cells
# of covtype risks moved by 0.002 at most against those of a gap of 1e-3, which took twice as long.
PATH_TOL = 1e-2
# Losses with a tube or a quantile that are no more than this part of those of constants are as good as none: pairs of
# less regularization take long, and have coefficients that rounding is seen in.
EXACT = 1e-3
# Rows that the first functions of a race learn from, at least.
SMALLEST_RUNG = 100


@dataclass(frozen=True, eq=False)
class Grid:
    """Candidates for ``lam |f|^2 + sum of losses`` with the kernel ``k(x / width, x' / width)``, both ascending."""

    lams: Array
    widths: Array

    @classmethod
    def of_cell(
        cls,
        m: int,
        n_features: int,
        total: float,
        n_lams: int = 10,
        n_widths: int | None = None,
        width: float | None = None,
    ) -> Grid:
        """Candidates of a cell: geometric in ``total [0.001 / m, 0.1] x [0.5 m^(-1 / n_features), 10]``.

        The grid of [MS16 Section 5], for features and targets in [-1, 1] and m points to train on. The paper
        regularizes the mean of the losses; `total`, the weight of all rows, makes it their sum. Where a width is
        known for the table, a cell seeks its own around it.
        """
        lams = total * np.geomspace(0.001 / m, 0.1, n_lams)
        if width is None:
            return cls(lams, np.geomspace(0.5 * m ** (-1.0 / n_features), 10.0, n_widths or 10))
        return cls(lams, np.geomspace(0.2 * width, 3.5 * width, n_widths or 7))


@dataclass(frozen=True, eq=False)
class GridSearch:
    """Held-out risks of the pairs of a grid in one cell: lam is the same for the folds as for the whole cell.

    Attributes
    ----------
    loss : Loss
    matrices : Matrices
        Of the kernel on the points.
    Y : ndarray of shape (n_outputs, m)
    weights : ndarray of shape (m,), > 0
    grid : Grid
    blocks : list of ndarray of int, or None
        As from `criteria.folds.held_out_blocks`.
    clip : float
        Predictions are clipped to ``[-clip, clip]``.
    deadline : float
        By the monotonic clock: when it has passed, what is measured so far decides.
    """

    loss: Loss
    matrices: Matrices
    Y: Array
    weights: Array
    grid: Grid
    blocks: list[Rows] | None
    clip: float = np.inf
    deadline: float = np.inf
    # Losses of the rows that are held out, by pairs that were measured with all rows.
    _known: dict[tuple[int, int], Array] = field(default_factory=dict, init=False, repr=False)
    # What functions without some of the rows begin with, by the place of the width.
    _folds: dict[int, Folds] = field(default_factory=dict, init=False, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of widths and lams."""
        return len(self.grid.widths), len(self.grid.lams)

    @property
    def keeps_width(self) -> bool:
        """Whether what steps on folds begin with is made anew for another width."""
        return self.blocks is not None and self.matrices.by_steps

    def risk(self, F: Array) -> float:
        """Weighted mean over what is held out, added over the outputs, of predictions of shape (n_outputs, m)."""
        rows = slice(None) if self.blocks is None else np.concatenate(self.blocks)
        return float(self._losses(F[:, rows], rows) @ self.weights[rows] / self.weights[rows].sum())

    def risks(self, rank: int, rng: np.random.Generator) -> Array:
        """Risks of the pairs that the search came by, shape (n_widths, n_lams), inf for the others.

        Many rows are searched in two steps: all pairs with less work, then a walk with all of it.
        """
        if isinstance(self.loss, LeastSquares):
            if rank >= self.matrices.m:
                return self.squared_risks(rank)
            # One block is held out from rows that are less dense than those of a place.
            are_asked = self.keeps_width and len(self.blocks or []) > 1
            risks, in_places = self.first_risks(rank, self.matrices.places(rng) if are_asked else [])
            return self.refined(risks, least(in_places) if are_asked else None)
        if self.matrices.m < 3 * SMALLEST_RUNG:
            return self.path_risks()
        return self.refined(self.raced_risks(rng))

    @cached_property
    def enough(self) -> float:
        """Risks up to here are as good as none: of numbers that have a tube or a quantile, a part of the constants'."""
        if not self.loss.bears_outliers:
            return 0.0
        usual = np.clip(self.Y, -self.clip, self.clip)  # an outlier is no measure of what is good
        constants = np.broadcast_to(self.loss.constant(usual, self.weights)[:, None], usual.shape)
        losses = self.loss.pointwise(usual, constants)[0].sum(axis=0)
        return EXACT * float(losses @ self.weights / self.weights.sum())

    def squared_risks(self, rank: int) -> Array:
        """Risks of least squares for all pairs, shape (n_widths, n_lams), from factors of at most that rank."""
        return self.first_risks(rank, [])[0]

    def first_risks(self, rank: int, places: list[Index]) -> tuple[Array, Array]:
        """Those risks, and beside them those that the rows of some places of a large table tell."""
        risks, in_places = np.full((2, *self.shape), np.inf)
        # What the factor leaves out has to be small beside the least lam.
        tol = 0.01 * self.grid.lams[0] / float(self.weights.max())
        for i in self._from_the_middle(range(len(self.grid.widths))):
            if time.monotonic() > self.deadline:
                break
            width = float(self.grid.widths[i])
            Z, _ = pivoted_cholesky(partial(self.matrices, width), self.matrices.diagonal(width), rank, tol)
            path = path_residuals(Z, self.Y, self.weights, self.grid.lams, self.blocks)
            risks[i] = [self.risk(self.Y - residual) for residual in path]
            if places:
                in_places[i] = self._in_places(width, Z, places, is_whole=Z.shape[1] < rank)
        return risks, in_places

    def _in_places(self, width: float, Z: Array, places: list[Index], *, is_whole: bool) -> Array:
        """Risks at the rows of some places, each left out by itself, for a width and every lam.

        A factor Z that is not whole makes narrow kernels look worse than they are. Functions that learn from the rows
        of a place, which are as dense as all are, do not; so the less of both risks counts. Where the factor is whole
        they have nothing to say: few rows are worse for a wide kernel, or better, being alike.
        """
        rows, lams = np.concatenate(places), self.grid.lams
        Y, shares = self.Y[:, rows], self.weights[rows] / self.weights[rows].sum()
        ways = [[residual[:, rows] for residual in path_residuals(Z, self.Y, self.weights, lams, None)]]
        if not is_whole:
            apart = [
                matrix_path_residuals(self.matrices(width, place, place), self.Y[:, place], self.weights[place], lams)
                for place in places
            ]
            ways.append([np.hstack(residuals) for residuals in zip(*apart, strict=True)])
        return np.min([[self._losses(Y - residual, rows) @ shares for residual in way] for way in ways], axis=0)

    def raced_risks(self, rng: np.random.Generator) -> Array:
        """Risks of any loss, shape (n_widths, n_lams), by successive halving; inf for pairs that fell out.

        All pairs learn from few rows and are compared on the others; those within two standard errors of the best,
        a third of them at most, learn from three times as many, and so on up to a third of all, or until one is good
        `enough`.
        """
        m, order = self.matrices.m, rng.permutation(self.matrices.m)
        alive, risks = np.ones(self.shape, dtype=bool), np.full(self.shape, np.inf)
        size = m // 9 if m // 9 >= SMALLEST_RUNG else m // 3
        while size <= m // 3 and alive.any():
            train, held = order[:size], order[size:]
            losses, shares = np.full((*self.shape, len(held)), np.inf), self.weights[held] / self.weights[held].sum()
            for (i, k), F in self._paths(alive, train, held):
                losses[i, k] = self._losses(F, held)
            risks = losses @ shares
            if not np.isfinite(risks).any() or risks.min() <= self.enough:
                break
            excess = losses - losses[np.unravel_index(risks.argmin(), self.shape)]
            with np.errstate(invalid="ignore"):
                noise = np.sqrt(np.square(excess - excess.mean(axis=-1, keepdims=True)).sum(axis=-1)) / len(held)
            places = survivors(risks, max(4, alive.sum() // 3), noise)
            alive = np.isin(np.arange(risks.size), places).reshape(self.shape)
            size *= 3
        return np.where(alive, risks, np.inf) if np.isfinite(risks).any() else risks

    def _paths(self, wanted: Mask, train: Rows, held: Rows) -> Iterator[tuple[tuple[int, int], Array]]:
        """Values on held-out rows for the pairs that are wanted, each path of lam solved from its regular end.

        The coefficients for one lam start the next one, with less regularization; a width has one Gram matrix. Ends
        when the time is up: widths in the middle of the grid come first.
        """
        Y, weights = np.ascontiguousarray(self.Y[:, train]), self.weights[train]
        for i in self._from_the_middle(np.flatnonzero(wanted.any(axis=1)).tolist()):
            inner, cross = (self.matrices(self.grid.widths[i], rows, train) for rows in (train, held))
            alpha = None
            for k in np.flatnonzero(wanted[i])[::-1].tolist():
                if time.monotonic() > self.deadline:
                    return
                loss = self.loss.at(float(self.grid.lams[k]))
                found = fit(loss, inner, Y, weights, start=alpha, tol=PATH_TOL, deadline=self.deadline)
                alpha = found.alpha
                yield (i, k), found.W @ cross.T

    def _from_the_middle(self, places: Iterable[int]) -> list[int]:
        """Places of widths, those in the middle of the grid first: where time is up, they are what was looked at."""
        middle = len(self.grid.widths) // 2
        return sorted(places, key=lambda i: abs(i - middle))

    def _losses(self, F: Array, rows: Rows | slice) -> Array:
        """Loss of each of the rows, added over the outputs, of predictions of shape (n_outputs, n_rows)."""
        losses, _ = self.loss.pointwise(self.Y[:, rows], np.clip(F, -self.clip, self.clip))
        return np.asarray(losses.sum(axis=0))

    def refined(self, risks: Array, begin: tuple[int, int] | None = None) -> Array:
        """Walk from the best pair, or another one, measuring others by functions learned from all rows: `walk`."""
        return walk(np.maximum(risks, self.enough), self.exact, self.deadline, self.enough, self.keeps_width, begin)

    def exact(self, i: int, k: int, rival: tuple[int, int] | None = None) -> float:
        """The risk of one pair, by functions that are learned from all rows but those held out.

        inf where its matrix is not definite at working precision, or where it is clearly worse than the rival, a pair
        that was measured before, on some folds: it is spared the others.
        """
        if isinstance(self.loss, LeastSquares):
            width, lam = float(self.grid.widths[i]), float(self.grid.lams[k])
            if i not in self._folds and self.blocks is not None:
                self._folds.clear()  # there is memory for those of one width
                # Of the least lam, beside which the preconditioner may leave out what is negligible.
                loss = self.loss.at(float(self.grid.lams[0]))
                problem = self.matrices.for_steps(width, loss, self.Y, self.weights)
                if problem is not None:
                    self._folds[i] = Folds(problem, self.blocks, self.deadline)
            if i in self._folds:
                F = self._folds[i].values(lam, self.deadline)
                if F is not None:
                    return self.risk(F)
                if time.monotonic() > self.deadline or not fits(self.matrices.m):
                    return np.inf
            residual = residuals_at(self.matrices(width), self.Y, self.weights, lam, self.blocks)
            return np.inf if residual is None else self.risk(self.Y - residual)
        wanted = np.zeros(self.shape, dtype=bool)
        wanted[i, k] = True
        losses = self._known[i, k] = np.full(self.matrices.m, np.nan)
        for block in self.blocks or []:
            for _, F in self._paths(wanted, self._others(block), block):
                losses[block] = self._losses(F, block)
            if rival is not None and is_clearly_worse(losses, self._known[rival], self.weights):
                return np.inf
        blocks = self.blocks or []
        sums = np.array([losses[block] @ self.weights[block] for block in blocks])
        return float(over_folds(sums, self._weights_of(blocks)))

    def path_risks(self) -> Array:
        """Risks of any loss, shape (n_widths, n_lams), by functions that are trained again without each block.

        Pairs for which there was no time have the risk inf.
        """
        blocks = self.blocks or []
        sums = np.full((len(blocks), *self.shape), np.inf)
        for fold, block in zip(sums, blocks, strict=True):
            for pair, F in self._paths(np.ones(self.shape, dtype=bool), self._others(block), block):
                fold[pair] = self._losses(F, block) @ self.weights[block]
        return over_folds(sums, self._weights_of(blocks))

    def _others(self, block: Rows) -> Rows:
        return np.setdiff1d(np.arange(self.matrices.m), block)

    def _weights_of(self, blocks: list[Rows]) -> Array:
        return np.array([self.weights[block].sum() for block in blocks])


def walk(
    risks: Array,
    exact: Callable[[int, int, tuple[int, int] | None], float],
    deadline: float,
    enough: float = -np.inf,
    keeps_width: bool = False,
    begin: tuple[int, int] | None = None,
) -> Array:
    """Walk from the best pair of a grid to better neighbors, measuring each exactly.

    A factor of low rank, and functions of few rows, make narrow kernels look worse than they are; the walk corrects
    that.

    Parameters
    ----------
    risks : ndarray of shape (n_widths, n_lams)
        Approximate risks; the walk starts where they are least, or at `begin`.
    exact : callable
        Places of a width and a lam, and those of a pair that they have to be better than -> their risk.
    deadline : float
        By the monotonic clock.
    enough : float
        A pair of no more risk needs no better neighbor.
    keeps_width : bool
        Whether neighbors of the same width come first, because another one takes long to begin with, and wider kernels,
        also with the less regularization that they want, last.
    begin : (int, int), optional
        Where the walk starts, unless the risk there is above the least approximate one and that of its pair is less.

    Returns
    -------
    ndarray of shape (n_widths, n_lams)
        Risks where the walk measured, inf elsewhere. Beside the least one, none that is more or less regular, narrower,
        or narrower and more regular has less, nor one the other way, where these are looked at, unless risks are equal,
        it is good `enough`, or the time was up. Approximate ones where none can be measured.
    """
    if time.monotonic() > deadline:
        return risks
    found, seen = np.full(risks.shape, np.inf), np.zeros(risks.shape, dtype=bool)
    first = least(risks)
    at = first if begin is None else begin
    found[at], seen[at] = exact(*at, None), True
    if found[at] > risks[first] and not seen[first] and time.monotonic() <= deadline:
        found[first], seen[first] = exact(*first, at), True
        at = first if found[first] < found[at] else at
    while np.isinf(found[at]) and at[1] + 1 < risks.shape[1] and time.monotonic() <= deadline:
        at = (at[0], at[1] + 1)  # more regular functions can be told
        found[at], seen[at] = exact(*at, None), True
    # Narrower first: that is where factors of low rank and few rows err, and why nothing better is wider. Then
    # narrower kernels with the more regularization that they want: where neither alone is better, both may be.
    narrower, others, both, wider = [(-1, 0)], [(0, 1), (0, -1)], [(-1, 1)], [(1, 0), (1, -1)]
    ways = others + narrower + both + wider if keeps_width else narrower + others + both
    moved = True
    while moved and found[at] > enough:
        moved = False
        for i, k in [(at[0] + di, at[1] + dk) for di, dk in ways]:
            inside = 0 <= i < risks.shape[0] and 0 <= k < risks.shape[1]
            if inside and not seen[i, k] and time.monotonic() <= deadline:
                found[i, k], seen[i, k] = exact(i, k, at), True
                if found[i, k] < found[at]:
                    at, moved = (i, k), True
                    break
    return found if np.isfinite(found).any() else risks
