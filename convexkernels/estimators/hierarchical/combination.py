"""Which functions of a hierarchical estimator predict: one, the mean of those of folds, or a stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from convexkernels.criteria.held_out import HeldOut
from convexkernels.estimators.hierarchical.settings import TreeSearch, TreeSelection
from convexkernels.estimators.hierarchical.stacking import SIMPLE_FITS
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.estimators.left_out import EXACT_ROWS
from convexkernels.exceptions import InvalidInputError

# Tables that functions are stacked on by default: rows, numbers, and the share of their rows that differ in features.
MAX_STACKED, STACKED_NUMBERS, DIFFERENT = 3000, 300_000, 0.8
# Fewer rows, in all or for each column, tell a search that has seen all of them too little, of numbers, too: those of
# folds are stacked, but below the last number not where a criterion or a method divides the rows of a fold once more.
FEW_ROWS, ROWS_OF_A_COLUMN, FEWEST_TO_DIVIDE = 150, 10, 50
# Of a stack, for every pair of rows: four matrices in float64.
BYTES_OF_A_STACK = 32
# What the two certificates of a search take, in trainings of its function, and the share of a limit that certificates
# and trainings of a stack may take: where it is more, one search with all of the time finds a better function.
CERTIFICATES, FIXED_SHARE = 4, 0.25


@dataclass(frozen=True)
class Combination:
    """What predicts, and what it costs.

    Attributes
    ----------
    kind : {"one", "mean", "stack"}
        As :class:`TreeSelection` says.
    in_folds : bool
        Whether the learned functions are those of folds, and have not seen what is held out there.
    """

    kind: str = "one"
    in_folds: bool = False

    @classmethod
    def of(
        cls,
        task: TreeTask,
        different: float,
        search: TreeSearch,
        selection: TreeSelection,
        *,
        suited: bool,
        labels: bool,
        memory_limit: float | None,
    ) -> Self:
        """For the rows of a task, of which a share has `different` features.

        `suited` says that functions are those of one matrix of least squares, `labels` that targets are labels.
        """
        m, asked = len(task.X), selection.combine
        fits = m <= EXACT_ROWS and (memory_limit is None or BYTES_OF_A_STACK * m**2 <= memory_limit)
        stacks, divides = suited and fits, m >= 2 * selection.folds
        again = isinstance(task.criterion, HeldOut) or search.method == "annealing"
        few = max(FEW_ROWS, ROWS_OF_A_COLUMN * task.X.shape[1])
        overfits = labels or (divides and not again and m < few)
        if not divides and (asked == "mean" or (asked == "stack" and labels)):
            raise InvalidInputError(
                f"combine={asked!r} divides the table in {selection.folds} folds of two different rows or more, but it "
                f"has {m} of them; take fewer folds, or combine='one'."
            )
        if asked == "stack" and not stacks:
            raise InvalidInputError(
                f"combine='stack' is for least squares, classes each against the rest, with matrices of at most "
                f"{EXACT_ROWS} rows that fit memory_limit, and the method 'auto' or 'dense' of AllRows; pass "
                "combine='one' or combine='mean'."
            )
        if asked == "auto":
            is_small = m <= MAX_STACKED and task.X.size <= STACKED_NUMBERS and different >= DIFFERENT
            divides &= not again or m >= FEWEST_TO_DIVIDE
            asked = "stack" if stacks and divides and is_small else "one"
        return cls(asked, asked == "mean" or (asked == "stack" and overfits))

    def n_trainings(self, n_searches: int) -> int:
        """What follows so many searches, in trainings of one function: their functions, and those of simple kernels."""
        return n_searches + (SIMPLE_FITS if self.kind == "stack" else 0)

    def is_in_time(self, n_restarts: int, folds: int, seconds: float, left: float) -> bool:
        """Whether certificates and trainings leave most of the time to the searches; `seconds` is one training."""
        n_searches = n_restarts * (folds if self.in_folds else 2)
        return self.n_trainings(n_searches * (1 + CERTIFICATES)) * seconds <= FIXED_SHARE * left
