"""The function of one cell, and how it is learned."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from convexkernels.arrays import Array, Mask
from convexkernels.cells.selection import Grid, GridSearch
from convexkernels.certificate import DualityGap
from convexkernels.criteria.folds import held_out_blocks
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.distances import squared_distances
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import fit, measure
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.validation import check_number, check_whole_number

WIDTHS = ("per-feature", "isotropic")


class CellPredictor(Protocol):
    """What a cell keeps. It may have a `certificate`, and then `verify`, which computes it again."""

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""


class CellLearner(Protocol):
    """What learns in a cell; it has to be picklable."""

    def learn(
        self,
        X: Array,
        Y: Array,
        weights: Array,
        rng: np.random.Generator,
        own: Mask | None = None,
        deadline: float = np.inf,
    ) -> CellPredictor:
        """Learn from the m rows of a cell and their targets of shape (n_outputs, m).

        `own` marks the rows whose predictions the cell makes; None stands for all. After the deadline, by the
        monotonic clock, searches end with what they have.
        """

    def constant(self, Y: Array, weights: Array) -> CellPredictor:
        """The best constants."""


@dataclass(frozen=True, eq=False)
class CellFunction:
    """``f(x) = sum_i W_ki exp(-|x - x_i|^2 / width^2) + b_k``, clipped to the range of the targets, and what is proven.

    Attributes
    ----------
    function : DecisionFunction
        Without support vectors where it is constant; b is 0 elsewhere.
    loss : Loss
        At the regularization parameter that was chosen.
    X, Y, weights : ndarray
        What the cell learned from, of shapes (m, n_features), (n_outputs, m) and (m,).
    width : float
        Chosen; NaN for a constant.
    certificate : DualityGap
        Of the problem of the cell at the chosen lam and width. For a constant the sum of the losses, which is not
        below 0: a proof where the targets are all the same, and none where a limit came first.
    risks : ndarray of shape (n_widths, n_lams) or None
        Held-out risks it was chosen by; inf for pairs that the selection did not come by.
    """

    function: DecisionFunction
    loss: Loss = field(repr=False)
    X: Array = field(repr=False)
    Y: Array = field(repr=False)
    weights: Array = field(repr=False)
    width: float
    certificate: DualityGap
    risks: Array | None = field(default=None, repr=False)

    @property
    def lam(self) -> float:
        """Regularization parameter, beside the sum of the losses; NaN for a constant."""
        return self.loss.lam if np.isfinite(self.width) else np.nan

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return self.function.values(X)

    def verify(self) -> DualityGap:
        """Compute the certificate again, from the rows and the function."""
        if not np.isfinite(self.width):
            return _gap_of_constant(self.loss, self.function.b, self.Y, self.weights)
        W = np.zeros(self.Y.shape)
        W[:, self.function.support] = self.function.W
        alpha = np.array([self.loss.dual_variable(w, y) for w, y in zip(W, self.Y, strict=True)])
        found = measure(self.loss, Gaussian(self.width**-2)(self.X), self.Y, self.weights, alpha)
        return DualityGap(found.upper, found.value)


@dataclass(frozen=True)
class CellSelection:
    """How lam and the width of the kernel are selected in every cell.

    Parameters
    ----------
    validation : int >= 2, "split", "leave-one-out" or None
        Folds; or training on one half and validation on the other (TV-VP-SVM); or every point left out in turn, which
        has a closed form for least squares only. None is leave-one-out for least squares and 5 folds otherwise.
    n_lams : int, >= 1
        Candidates for lam, geometric in ``total [0.001 / m, 0.1]`` for a cell that trains on m points, `total` being
        the sum of the weights of its rows.
    n_widths : int, >= 1, optional
        Candidates for the width: 10, geometric in ``[0.5 m^(-1 / n_features), 10]`` as in the paper; or 7 between 0.2
        and 3.5 times the width of the kernel that was learned first. A number changes how many.
    rank : int, >= 1
        Of the factors of Gram matrices that the selection for least squares starts with. In larger cells the best
        pair and its neighbors are measured again with exact ones. The final functions are exact.
    widths : {"per-feature", "isotropic"}
        Whether a Gaussian kernel with a width for each feature is learned first, by leave-one-out on a sample of
        rows. Cells are then cells of that metric, and a cell chooses its width as a multiple; features that say
        nothing are damped. "isotropic" treats all features alike.
    """

    validation: Any = None
    n_lams: int = 10
    n_widths: int | None = None
    rank: int = 300
    widths: str = "per-feature"

    def of_loss(self, loss: Loss) -> Any:
        """The validation for a loss, or a refusal."""
        squared = isinstance(loss, LeastSquares)
        validation = self.validation
        if validation is None:
            validation = "leave-one-out" if squared else 5
        held_out_blocks(2, validation, np.random.default_rng(0))
        if validation == "leave-one-out" and not squared:
            raise InvalidInputError(
                f"validation='leave-one-out' has a closed form for least squares only, got {loss!r}; pass a number of "
                "folds or 'split'."
            )
        for name in ("n_lams", "n_widths", "rank"):
            if getattr(self, name) is not None:
                check_whole_number(name, getattr(self, name), low=1)
        if self.widths not in WIDTHS:
            raise InvalidInputError(f"widths must be one of {WIDTHS}, got {self.widths!r}.")
        return validation


@dataclass(frozen=True)
class GaussianLearner:
    """The SVM of one cell [MS16 (2)], with a Gaussian kernel and no intercept; lam and the width are selected.

    Parameters
    ----------
    loss : Loss
        Without intercept, at any regularization parameter.
    selection : CellSelection
    clip : float
        Bound of the targets.
    tol : float
        Relative duality gap of the final function, for losses that are solved by iteration.
    width : float, optional
        Of the kernel that was learned on the whole table, around which widths are sought.
    """

    loss: Loss
    selection: CellSelection = CellSelection()
    clip: float = 1.0
    tol: float = 1e-4
    width: float | None = None

    def check(self) -> None:
        """Refuse bad parameters by name."""
        self.selection.of_loss(self.loss)
        check_number("tol", self.tol, low=0.0, open_low=True)

    def constant(self, Y: Array, weights: Array) -> CellFunction:
        """The constants of least loss: a mean, a majority, a median or a quantile."""
        b = self.loss.constant(Y, weights)
        nowhere = np.empty((Y.shape[1], 0))
        function = DecisionFunction.of_kernel(Gaussian(), nowhere, np.zeros(Y.shape), b, bounds=self._bounds(len(Y)))
        gap = _gap_of_constant(self.loss, b, Y, weights)
        return CellFunction(function, self.loss, nowhere, Y, weights, np.nan, gap)

    def _bounds(self, n_outputs: int) -> tuple[Array, Array] | None:
        # Between several functions, clipping would make ties.
        return (np.array([[-self.clip]]), np.array([[self.clip]])) if n_outputs == 1 else None

    def learn(
        self,
        X: Array,
        Y: Array,
        weights: Array,
        rng: np.random.Generator,
        own: Mask | None = None,
        deadline: float = np.inf,
    ) -> CellFunction:
        """Select lam and width, and train on all rows; targets that are all the same give a constant.

        Where the cell predicts for some rows only (`own`), the selection is made on these: held-out risks beyond the
        border are not its business, and cost as much. lam, the weight of ``|f|^2`` beside the sum of the losses, is
        kept for the function that learns from all rows, because they are as dense beyond the border as before it.
        """
        if _is_constant(Y):
            return self.constant(Y, weights)
        inside, D = (X, Y, weights), None
        if own is not None and not own.all() and own.any() and not _is_constant(Y[:, own]):
            inside = X[own], np.ascontiguousarray(Y[:, own]), weights[own]
        else:
            D = squared_distances(X, X)
        width, lam, risks = self._selected(*inside, D, rng, deadline)
        D = squared_distances(X, X) if D is None else D
        D *= -1.0 / width**2
        loss = self.loss.at(lam)
        found = fit(loss, np.exp(D, out=D), Y, weights, tol=self.tol, deadline=deadline)
        function = DecisionFunction.of_kernel(Gaussian(width**-2), X, found.W, found.b, bounds=self._bounds(len(Y)))
        gap = DualityGap(found.upper, found.value)
        if function.support.size == len(X):
            X = function.gram_set.points  # type: ignore[attr-defined]  # one copy of the rows is enough
        return CellFunction(function, loss, X, Y, weights, width, gap, risks)

    def _selected(
        self, X: Array, Y: Array, weights: Array, D: Array | None, rng: np.random.Generator, deadline: float
    ) -> tuple[float, float, Array | None]:
        """Width and lam of the least held-out risk, and the risks."""
        m, n = X.shape
        selection = self.selection
        blocks = held_out_blocks(m, selection.of_loss(self.loss), rng)
        held_out = 0 if blocks is None else max((len(block) for block in blocks), default=0)
        grid = Grid.of_cell(m - held_out, n, float(weights.sum()), selection.n_lams, selection.n_widths, self.width)
        risks, i, k = None, len(grid.widths) - 1, len(grid.lams) - 1
        if (blocks is None or blocks) and len(grid.widths) * len(grid.lams) > 1:
            D = squared_distances(X, X) if D is None else D
            search = GridSearch(self.loss, D, Y, weights, grid, blocks, self.clip, deadline)
            risks = search.risks(selection.rank, rng)
            # Of equal risks the most regular pair.
            i, k = np.unravel_index(np.flatnonzero(risks.ravel() <= risks.min())[-1], risks.shape)
        return float(grid.widths[i]), float(grid.lams[k]), risks

    def bytes_of(self, m: int) -> float:
        """Bytes that learning from m rows takes, about."""
        return 8.0 * m * (4.0 * m + 4.0 * min(m, self.selection.rank))


def _gap_of_constant(loss: Loss, b: Array, Y: Array, weights: Array) -> DualityGap:
    """The weighted sum of the losses of constants; losses are not below 0."""
    losses, _ = loss.pointwise(Y, np.broadcast_to(b[:, None], Y.shape))
    return DualityGap(float((losses @ weights).sum()), 0.0)


def _is_constant(Y: Array) -> bool:
    return bool((Y[:, :1] == Y).all())
