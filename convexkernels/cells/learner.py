"""What learns in a cell, what it learns from, and what a user may say about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from convexkernels.arrays import Array, Index, Mask
from convexkernels.cells.sampling import Keys
from convexkernels.criteria.folds import held_out_blocks
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import TrainedFunction
from convexkernels.validation import check_whole_number

WIDTHS = ("per-feature", "isotropic")
GLOBAL_SPLIT = "global-split"


@dataclass(frozen=True, eq=False)
class CellRows:
    """The m rows that a cell learns from.

    Attributes
    ----------
    X : ndarray of shape (m, n_features)
    Y : ndarray of shape (n_outputs, m)
    weights : ndarray of shape (m,), > 0
    own : ndarray of bool, shape (m,), optional
        The rows whose predictions the cell makes; None stands for all.
    held_out : ndarray of bool, shape (m,), optional
        D2: the rows that only choose between functions of the others, in every cell that has them.
    keys : ndarray of shape (m,), optional
        Random numbers by which rows are drawn.
    """

    X: Array
    Y: Array
    weights: Array
    own: Mask | None = None
    held_out: Mask | None = None
    keys: Keys | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the targets of each output are all the same."""
        return is_constant(self.Y)

    def part(self, rows: Index | Mask) -> Self:
        """Some of the rows."""
        own, held_out = (None if mask is None else mask[rows] for mask in (self.own, self.held_out))
        keys = None if self.keys is None else self.keys[rows]
        return type(self)(self.X[rows], np.ascontiguousarray(self.Y[:, rows]), self.weights[rows], own, held_out, keys)

    def divided(self, rng: np.random.Generator) -> Self:
        """The same rows, with D2 drawn: all but ``m // 2 + 1`` of them."""
        held_out = np.zeros(len(self.X), dtype=bool)
        for block in held_out_blocks(len(self.X), "split", rng) or []:
            held_out[block] = True
        return replace(self, held_out=held_out)

    def training(self) -> Self:
        """The rows that functions learn from: all but those of D2."""
        return self if self.held_out is None else replace(self.part(~self.held_out), held_out=None)

    def inside(self) -> Self:
        """The cell's own rows, where they can be learned from; else all."""
        if self.own is None or self.own.all() or not self.own.any():
            return self
        inside = self.part(self.own)
        return self if inside.training().is_constant else inside


def is_constant(Y: Array) -> bool:
    """Whether the targets of each output, the rows of `Y`, are all the same."""
    return bool((Y[:, :1] == Y).all())


class CellLearner(Protocol):
    """What learns in a cell; it has to be picklable.

    Its functions may have a `certificate`, and then `verify`, which computes it again.
    """

    def learn(self, rows: CellRows, rng: np.random.Generator, deadline: float = np.inf) -> TrainedFunction:
        """Learn from the rows of a cell.

        After the deadline, by the monotonic clock, searches end with what they have.
        """

    def constant(self, Y: Array, weights: Array) -> TrainedFunction:
        """The best constants for targets of shape (n_outputs, m) and their weights."""


@dataclass(frozen=True)
class CellSelection:
    """How lam and the width of the kernel are selected in every cell.

    Parameters
    ----------
    validation : int >= 2, "split", "global-split", "leave-one-out" or None
        Folds; or training on one half of a cell and validation on the other, and then on all; or the TV-VP-SVM
        [MS16 Section 4.2]: one division of the table for all cells, whose functions of the first half are kept (0
        where a cell has none of it); or every point left out in turn, which has a closed form for least squares only.
        None is leave-one-out for least squares and 5 folds otherwise.
    n_lams : int, >= 1
        Candidates for lam, geometric in ``total [0.001 / m, 0.1]`` for a cell that trains on m points, `total` being
        the sum of the weights of its rows.
    n_widths : int, >= 1, optional
        Candidates for the width: 10, geometric in ``[0.5 m^(-1 / n_features), 10]`` as in the paper; or 7 between 0.2
        and 3.5 times the width of the kernel that was learned first; of a kernel that is given 1, or so many multiples
        of its features between 0.5 and 2.
    rank : int, >= 1
        Of the factors of Gram matrices that the selection for least squares starts with. In larger cells the best
        pair and its neighbors are measured again with exact ones; of more than 2,000 rows, where blocks of them are
        held out, by functions to a gap of 1e-3, and exact functions of the 300 rows near each of ten have a say in
        where that begins. The final functions are exact to the tolerance.
    widths : {"per-feature", "isotropic"}
        Whether a Gaussian kernel with a width for each feature is learned first, by leave-one-out on a sample of
        rows. Cells are then cells of that metric, and a cell chooses its width as a multiple; features that say
        nothing are damped. "isotropic" treats all features alike, as does "per-feature" where a width for each does
        not lower the risk by twice the share of features in rows.
    factors : array of shape (n_features,), optional
        Of the features, such as the `feature_factors_` of a fitted estimator, instead of learned ones; > 0 where a
        feature varies. With them `candidates` may be what another fit has chosen: the width of ``selection_.chosen``,
        and its lam over the weight of the rows.
    shared : bool, optional
        Whether all cells have one pair of lam and width, selected on the rows of a few of them; None: where a kernel is
        given.
    candidates : (lams, widths), optional
        Numbers > 0 to choose among, instead of the above, one width for all features; lam is beside the mean of the
        losses over all rows that functions learn from, as in [MS16 (2)]. :func:`convexkernels.bounds.cell_nets` makes
        those of [MS16 Theorem 7]; of one each, as by :func:`convexkernels.bounds.cell_schedule`, nothing is chosen.
        Then no factors are learned.
    """

    validation: Any = None
    n_lams: int = 10
    n_widths: int | None = None
    rank: int = 300
    widths: str = "per-feature"
    factors: Sequence[float] | Array | None = None
    shared: bool | None = None
    candidates: tuple[Sequence[float] | Array, Sequence[float] | Array] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.factors, np.ndarray):  # selections can be compared
            object.__setattr__(self, "factors", tuple(self.factors.ravel().tolist()))

    def of_loss(self, loss: Loss) -> Any:
        """The validation for a loss, or a refusal."""
        squared = isinstance(loss, LeastSquares)
        validation = self.validation
        if validation is None:
            validation = "leave-one-out" if squared else 5
        if validation != GLOBAL_SPLIT:
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
        if self.candidates is not None and not _are_candidates(self.candidates):
            raise InvalidInputError(
                "candidates must be None or (lams, widths), two lists of finite numbers > 0 such as "
                f"([1e-4, 1e-2], [0.5, 2.0]), or ([1e-3], [1.0]) to choose nothing, got {self.candidates!r}."
            )
        return validation


def _are_candidates(pair: Any) -> bool:
    """Whether these are two lists of finite numbers > 0."""
    try:
        lists = [np.asarray(values, dtype=np.float64) for values in pair]
    except (TypeError, ValueError):
        return False
    return len(lists) == 2 and all(v.ndim == 1 and v.size and ((v > 0.0) & (v < np.inf)).all() for v in lists)
