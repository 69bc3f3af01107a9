"""The function of one cell: an SVM or a ridge with a Gaussian kernel, or with one that is given."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cells.choice import PairSelection
from convexkernels.cells.learner import CellRows, CellSelection, is_constant
from convexkernels.cells.many_rows import MANY_ROWS, bytes_of, fits, is_many, solved
from convexkernels.cells.matrices import GaussianMatrices, GaussianRows, KernelMatrices, Matrices
from convexkernels.cells.pairs import PairChooser
from convexkernels.certificate import DualityGap
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.operator import OverflowingTilesError
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit, fit, measure
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.rounding import charged_gap
from convexkernels.threads import threads_for
from convexkernels.validation import check_number

DEFAULT = CellSelection()
# Share of its time that a cell may spend on the selection.
SELECTION_TIME = 0.7
# Share of the tolerance that a charge has to leave for a function to be trained on.
LEAST_LEFT = 0.1
# Rows on which the time of a function is measured where it may be too long.
TIMED_ROWS = 1000


@dataclass(frozen=True, eq=False)
class CellFunction:
    """``f(x) = sum_i W_ki k(x, x_i) + b_k``, clipped to the range of the targets, and what is proven.

    Attributes
    ----------
    function : DecisionFunction
        Without support vectors where it is constant; b is 0 elsewhere.
    loss : Loss
        At the regularization parameter that was chosen.
    X, Y, weights : ndarray
        What the cell learned from, of shapes (m, n_features), (n_outputs, m) and (m,).
    width : float
        Chosen: of the Gaussian ``exp(-|x - x_i|^2 / width^2)``, or by which features are divided for a kernel that was
        given; NaN for a constant.
    certificate : DualityGap
        Of the problem of the cell at the chosen lam and width. For a constant the sum of the losses, which is not
        below 0: a proof where the targets are all the same, and none where a limit came first.
    choice : PairSelection or None
        What lam and the width were chosen from.
    n_spared : int
        Rows of the cell beside those it learned from, for which there was no time.
    """

    function: DecisionFunction
    loss: Loss = field(repr=False)
    X: Array = field(repr=False)
    Y: Array = field(repr=False)
    weights: Array = field(repr=False)
    width: float
    certificate: DualityGap
    choice: PairSelection | None = field(default=None, repr=False)
    n_spared: int = 0

    @property
    def lam(self) -> float:
        """Regularization parameter, beside the sum of the losses; NaN for a constant."""
        return self.loss.lam if np.isfinite(self.width) else np.nan

    @property
    def kernel(self) -> Kernel:
        """The kernel k; any will do for a constant."""
        points: Any = self.function.gram_set
        kernel: Kernel = points.kernel
        return kernel

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return self.function.values(X)

    @property
    def alpha(self) -> Array:
        """Dual variables of all rows, shape (n_outputs, m)."""
        W = self.function.coefficients(self.Y.shape[1])
        return np.array([self.loss.dual_variable(w, y) for w, y in zip(W, self.Y, strict=True)])

    def verify(self) -> DualityGap:
        """Compute the certificate again, from the rows and the function."""
        if not np.isfinite(self.width):
            return _gap_of_constant(self.loss, self.function.b, self.Y, self.weights)
        if isinstance(self.loss, LeastSquares) and is_many(len(self.X)):
            problem = FixedKernel(self.kernel, self.loss, self.X, self.Y.T, sample_weight=self.weights)
            return problem.certificate(np.zeros(0), self.alpha)
        K = self.kernel(self.X)
        found = measure(self.loss, K, self.Y, self.weights, self.alpha)
        return charged_gap(self.loss, self.Y, self.weights, self.kernel._sizes(self.X), found, found.W @ K)


@dataclass(frozen=True)
class KernelLearner:
    """The SVM of one cell [MS16 (2)] without intercept; lam and the width of the kernel are selected.

    Parameters
    ----------
    loss : Loss
        Without intercept, at any regularization parameter.
    clip : float
        Bound of the targets.
    width, lam : float, optional
        Of the kernel that was learned on the whole table: around these they are sought.
    kernel : Kernel, optional
        A kernel that is given, instead of Gaussians of all widths.
    pair : (width, lam), optional
        What is used in all cells; nothing is selected then.
    choice : PairSelection, optional
        What it was chosen from.
    begin : ndarray of shape (n_outputs, m), optional
        Dual variables that an earlier run has found for the rows of the cell, NaN where it has not.
    max_rows : float
        A cell of more rows, as of many equal ones, learns from so many of them, drawn at random.
    total : float
        Weight of the rows of the table that functions learn from, beside whose mean candidates for lam are.
    """

    loss: Loss
    selection: CellSelection = DEFAULT
    clip: float = 1.0
    tol: float = 1e-4
    width: float | None = None
    kernel: Kernel | None = None
    lam: float | None = None
    pair: tuple[float, float] | None = None
    choice: PairSelection | None = None
    begin: Array | None = field(default=None, compare=False, repr=False)
    max_rows: float = np.inf
    total: float = 1.0

    @property
    def risk(self) -> float:
        """Held-out risk of the pair for all cells; inf where it is not known."""
        return np.inf if self.choice is None else float(self.choice.risks.min())

    def check(self) -> None:
        """Refuse bad parameters by name."""
        self.selection.of_loss(self.loss)
        check_number("tol", self.tol, low=0.0, open_low=True)

    def constant(self, Y: Array, weights: Array) -> CellFunction:
        """The constants of least loss: a mean, a majority, a median or a quantile; 0 where there are no rows."""
        # The mean of equal numbers is another one, by rounding.
        if not Y.size:
            b = np.zeros(len(Y))
        else:
            b = Y[:, 0].copy() if self.loss.is_of_differences and is_constant(Y) else self.loss.constant(Y, weights)
        nowhere = np.empty((Y.shape[1], 0))
        function = DecisionFunction.of_kernel(Gaussian(), nowhere, np.zeros(Y.shape), b, bounds=self._bounds(len(Y)))
        gap = _gap_of_constant(self.loss, b, Y, weights)
        return CellFunction(function, self.loss, nowhere, Y, weights, np.nan, gap)

    def learned_again(self, cell: CellFunction) -> CellFunction:
        """The function of the rows of a cell for the loss that is here, with lam and the width that are known for it.

        Where the cell has a constant, or was not begun, the best constant.
        """
        if not np.isfinite(cell.width):
            return self.constant(cell.Y, cell.weights)
        rows, known = CellRows(cell.X, cell.Y, cell.weights), replace(self, pair=(cell.width, cell.lam))
        with threads_for(len(cell.X)):
            return known.learn(rows, np.random.default_rng(0))

    def _bounds(self, n_outputs: int) -> tuple[Array, Array] | None:
        # Between several functions, clipping would make ties.
        return (np.array([[-self.clip]]), np.array([[self.clip]])) if n_outputs == 1 else None

    def learn(self, rows: CellRows, rng: np.random.Generator, deadline: float = np.inf) -> CellFunction:
        """Select lam and width, and train on all rows that there is time for; equal targets give a constant.

        Where the cell predicts for some rows only (`own`), the selection is made on these: held-out risks beyond the
        border are not its business, and cost as much. lam, the weight of ``|f|^2`` beside the sum of the losses, is
        kept for the function that learns from all rows, because they are as dense beyond the border as before it.
        Rows of D2 choose, and teach nothing.
        """
        if len(rows.X) > self.max_rows:
            rows = rows.part(np.sort(rng.permutation(len(rows.X))[: int(self.max_rows)]))
        inside, matrices, choice, rows = rows.inside(), None, self.choice, rows.training()
        if rows.is_constant:
            return self.constant(rows.Y, rows.weights)
        (width, lam), m, of_factors = self.pair or (np.nan, np.nan), len(rows.X), 0.0
        if self.pair is None:
            matrices = self._matrices(inside.X)
            # Where a limit cuts the selection short, the function of what it has found is still to be trained.
            now = time.monotonic()
            width, lam, choice = self._chooser.of_cell(inside, matrices, rng, now + SELECTION_TIME * (deadline - now))
        if matrices is None or inside is not rows or self._is_by_steps(m):
            rows, of_factors = self._in_time(rows, width, lam, rng, deadline)
            matrices = self._matrices(rows.X)
        X, loss, kernel, bounds = rows.X, self.loss.at(lam), matrices.kernel(width), self._bounds(len(rows.Y))
        found, gap = self._trained(loss, matrices, width, rows, deadline, of_factors)
        function = DecisionFunction.of_kernel(kernel, X, found.W, found.b, bounds=bounds)
        if function.support.size == len(X):
            X = function.gram_set.points  # type: ignore[attr-defined]  # one copy of the rows is enough
        return CellFunction(function, loss, X, rows.Y, rows.weights, width, gap, choice, m - len(rows.X))

    def _in_time(
        self, rows: CellRows, width: float, lam: float, rng: np.random.Generator, deadline: float
    ) -> tuple[CellRows, float]:
        """The rows that there is time to learn from, and the seconds that factors of their matrix would take.

        Of rows beyond the border, which can be many, perhaps only some have time.

        In many dimensions distances to all centers are nearly the same, and a cell that overlaps others learns from ten
        times as many rows as it predicts for. How long factors take is measured on some of them; steps are taken to be
        as fast where they begin, and like the square of the rows beyond.
        """
        m = len(rows.X)
        if m <= 2 * TIMED_ROWS or np.isinf(deadline):
            return rows, 0.0
        drawn = rng.permutation(m)
        began, part = time.monotonic(), rows.part(np.sort(drawn[:TIMED_ROWS]))
        fit(self.loss.at(lam), self._matrices(part.X)(width), part.Y, part.weights, tol=self.tol, deadline=deadline)
        now = time.monotonic()
        seconds = max(now - began, 1e-6)
        times = max(deadline - now, 0.0) / seconds
        most = TIMED_ROWS * times ** (1.0 / 3.0 if isinstance(self.loss, LeastSquares) else 0.5)
        if self._is_by_steps(int(min(most, m))):  # like a factor where steps begin, and like the matrix beyond
            most = MANY_ROWS * (times * (TIMED_ROWS / MANY_ROWS) ** 3) ** 0.5
        if most < m:
            own = np.zeros(m, dtype=bool) if rows.own is None else rows.own
            rows = rows.part(np.sort(drawn[np.argsort(~own[drawn], kind="stable")][: max(int(most), TIMED_ROWS)]))
        return rows, seconds * (len(rows.X) / TIMED_ROWS) ** 3

    def _trained(
        self, loss: Loss, matrices: Matrices, width: float, rows: CellRows, deadline: float, of_factors: float
    ) -> tuple[Fit, DualityGap]:
        """What is found at lam and a width: by steps where the rows are many, and by factors where these fall short.

        These take so many seconds, which are left for them where there are as many.
        """
        m, squares = len(rows.X), matrices.kernel(width)._sizes(rows.X)
        problem = matrices.for_steps(width, loss, rows.Y, rows.weights)
        if problem is None:
            return self._by_factors(loss, matrices.last(width), squares, rows, deadline)
        begin, are_possible = None if self.begin is None else self.begin[:, :m], fits(m)
        end = deadline - of_factors if are_possible and deadline - of_factors > time.monotonic() else deadline
        found = []
        # Tiles tell nothing of functions with lam far below their rounding, nor hold those of no regularization at all.
        try:
            found.append(solved(problem, self.tol, end, begin))
            if found[0][1].holds(self.tol) or time.monotonic() + of_factors > deadline or not are_possible:
                return found[0]
        except OverflowingTilesError:
            if not are_possible:
                raise
        found.append(self._by_factors(loss, matrices.last(width), squares, rows, deadline))
        return min(found, key=lambda one: one[1].gap)

    def _by_factors(
        self, loss: Loss, K: Array, squares: Array, rows: CellRows, deadline: float
    ) -> tuple[Fit, DualityGap]:
        """The function of an earlier run, where its certificate, computed anew, holds; else one that is trained."""
        Y, weights, found = rows.Y, rows.weights, None
        if self.begin is not None:
            known = zip(self.begin[:, : len(K)], Y, strict=True)
            found = measure(loss, K, Y, weights, np.array([loss.feasible(a, y, weights) for a, y in known]))
        if found is None or not self._reaches(found):
            found = fit(loss, K, Y, weights, tol=self.tol, deadline=deadline)
        gap = charged_gap(loss, Y, weights, squares, found, found.W @ K)
        if self._reaches(found) and not gap.holds(self.tol):  # the charge takes its share of the tolerance
            left = self.tol - gap.charged / max(abs(gap.upper), abs(gap.lower))
            if left > LEAST_LEFT * self.tol:
                closer = fit(loss, K, Y, weights, start=found.alpha, tol=0.9 * left, deadline=deadline)
                other = charged_gap(loss, Y, weights, squares, closer, closer.W @ K)
                return (closer, other) if other.gap < gap.gap else (found, gap)
        return found, gap

    def _reaches(self, found: Fit) -> bool:
        """Whether a function is within the tolerance, before rounding is charged."""
        return DualityGap(found.upper, found.value).holds(self.tol)

    def _matrices(self, X: Array) -> Matrices:
        by_steps = self._is_by_steps(len(X))
        if self.kernel is not None:
            return KernelMatrices(self.kernel, X, by_steps)
        return GaussianRows(X) if by_steps else GaussianMatrices(X)

    def _is_by_steps(self, m: int) -> bool:
        """Whether functions come from steps on tiles of the matrix; not where every row is left out by itself."""
        return isinstance(self.loss, LeastSquares) and self._n_blocks < m and is_many(m, int(self._n_blocks))

    @property
    def _n_blocks(self) -> float:
        """Parts of the rows that are held out in turn; inf where each row is by itself."""
        validation = 0 if self.pair is not None else self.selection.of_loss(self.loss)
        if isinstance(validation, str):
            return np.inf if validation == "leave-one-out" else 1
        return validation

    def for_all(self, cells: Sequence[CellRows], rng: np.random.Generator, deadline: float = np.inf) -> KernelLearner:
        """The learner that takes one pair in all cells, the best one in some of them together, whose risk it keeps."""
        choice = self._chooser.for_all(cells, self._matrices, rng, deadline)
        if choice is None:
            return self
        return replace(self, pair=(choice.chosen["width"], choice.chosen["lam"]), choice=choice)

    @property
    def _chooser(self) -> PairChooser:
        known = (self.width, self.kernel, self.lam)
        return PairChooser(self.loss, self.selection, self.clip, *known, self.total)

    def bytes_of(self, m: int) -> float:
        """Bytes that learning from m rows takes, about."""
        if self._is_by_steps(m):
            return bytes_of(m, int(self._n_blocks))
        return 8.0 * m * (4.0 * m + 4.0 * min(m, self.selection.rank))


def _gap_of_constant(loss: Loss, b: Array, Y: Array, weights: Array) -> DualityGap:
    """The weighted sum of the losses of constants; losses are not below 0."""
    return DualityGap(float(loss.total(Y, np.broadcast_to(b[:, None], Y.shape), weights).sum()), 0.0)
