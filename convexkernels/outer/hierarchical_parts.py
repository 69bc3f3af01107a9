"""Rows to train on and rows to judge by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError

__all__ = ["Parts", "check_classes", "split_rows", "three_parts"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# Sizes of D1 and D2; D3 has the rest, a third.
SHARES = (4.0 / 9.0, 2.0 / 9.0)


@dataclass(frozen=True)
class Parts:
    """Rows to train on, to move weights by, and to choose the answer by."""

    train: Rows
    move: Rows
    choose: Rows

    def reshuffled(self, rng: np.random.Generator) -> Parts:
        """New first two parts from their union."""
        joined = rng.permutation(np.concatenate([self.train, self.move]))
        return Parts(joined[: len(self.train)], joined[len(self.train) :], self.choose)


def three_parts(m: int, rng: np.random.Generator) -> Parts:
    """D1, D2 and D3: 44.44 %, 22.22 % and 33.33 % of the rows."""
    if m < 6:
        raise InvalidInputError(
            f"{m} rows are too few for the three parts of the published search; at least 6 are needed."
        )
    order = rng.permutation(m)
    ends = np.round(np.cumsum(SHARES) * m).astype(np.intp)
    return Parts(order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :])


def split_rows(Y: Array, folds: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Training and held-out rows: `folds` folds in turn, or for 1 a random third; labels are dealt out evenly.

    Raises
    ------
    InvalidInputError
        When there are too few rows.
    """
    m = len(Y)
    if m < 2 * max(folds, 2):
        raise InvalidInputError(f"{m} rows are too few for {max(folds, 2)} parts of at least 2; pass more rows.")
    labels = np.empty(m, dtype=np.intp)
    count = folds if folds > 1 else 3
    # Dealt out within each label where there are few, so that no part lacks one.
    keys, codes = np.unique(Y, axis=0, return_inverse=True)
    codes = codes.ravel() if len(keys) <= m // count else np.zeros(m, dtype=np.intp)
    position = 0
    for code in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero(codes == code))
        if len(members) == 1 and folds == 1:  # a label that occurs once is there to learn from
            labels[members] = count - 1
            continue
        labels[members] = (position + np.arange(len(members))) % count
        position += len(members)
    everywhere = [np.flatnonzero(labels == k) for k in range(count)]
    parts = everywhere if folds > 1 else everywhere[:1]
    return [(np.setdiff1d(np.arange(m), part), part) for part in parts]


def check_classes(Y: Array, parts: list[Rows]) -> None:
    """Refuse a part in which a two-valued target takes one value only."""
    for k in range(Y.shape[1]):
        values = np.unique(Y[:, k])
        if len(values) != 2:
            continue
        for part in parts:
            here = np.unique(Y[part, k])
            if len(here) < 2:
                raise InvalidInputError(
                    f"a part of {len(part)} rows has only the label {here[0]:g} of {values.tolist()}; the rarer class "
                    "is too small to be split, so pass more rows of it."
                )
