"""Rows to learn from and rows to validate on: the only place that splits rows."""

from collections.abc import Sequence

import numpy as np

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_whole_number

Rows = Index

# Shares of D1 and D2 in the published search of hierarchical kernels; D3 has the rest, a third [ST16 Algorithm 1].
SHARES = (4.0 / 9.0, 2.0 / 9.0)


def split_rows(Y: Array, folds: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Training and validation rows: `folds` folds in turn, or for 1 a random third; labels are dealt out evenly.

    Too few rows are refused.
    """
    m = Y.shape[1]
    if m < 2 * max(folds, 2):
        raise InvalidInputError(f"{m} rows are too few for {max(folds, 2)} parts of at least 2; pass more rows.")
    labels = np.empty(m, dtype=np.intp)
    count = folds if folds > 1 else 3
    # Dealt out within each label where there are few, so that no part lacks one.
    keys, _, codes = distinct_rows(Y.T)
    codes = codes if len(keys) <= m // count else np.zeros(m, dtype=np.intp)
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


def held_out_blocks(m: int, validation: int | str, rng: np.random.Generator) -> list[Rows] | None:
    """Rows of a cell that are held out in turn, for m rows; None for every row by itself.

    A number of random folds; or the random second half ("split"), as in [MS16 Section 4.2] (``m // 2 + 1`` rows to
    train on); or "leave-one-out". Empty when there is nothing left to validate on. "global-split" divides a whole
    table, not the rows of a cell.
    """
    if isinstance(validation, str):
        if validation not in ("split", "leave-one-out"):
            raise InvalidInputError(
                f"validation must be a number of folds, 'split', 'global-split' or 'leave-one-out', got {validation!r}."
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


def held_out_share(m: int, share: float, codes: Index | None, rng: np.random.Generator) -> Rows:
    """A share of m rows, in ascending order; in it are as many of each class, by `codes`, where there are enough."""
    from sklearn.model_selection import train_test_split

    n_held, strata = max(1, round(share * m)), None
    if codes is not None:
        counts = np.bincount(codes)
        strata = codes if counts.min() >= 2 and len(counts) <= min(n_held, m - n_held) else None
    seed = int(rng.integers(2**31))
    return np.sort(train_test_split(np.arange(m), test_size=n_held, stratify=strata, random_state=seed)[1])


def random_folds(rows: Rows, folds: int, rng: np.random.Generator, at_most: int) -> list[tuple[Rows, Rows]]:
    """Training and validation rows of every fold of at most so many of the rows."""
    parts = np.array_split(rng.permutation(rows)[:at_most], folds)
    return [(np.setdiff1d(np.concatenate(parts), part), part) for part in parts]


def three_parts(m: int, rng: np.random.Generator) -> tuple[Rows, Rows, Rows]:
    """D1, D2 and D3 of the published search: 44.44 %, 22.22 % and 33.33 % of the rows [ST16 Algorithm 1]."""
    if m < 6:
        raise InvalidInputError(
            f"{m} rows are too few for the three parts of the published search; at least 6 are needed."
        )
    order = rng.permutation(m)
    ends = np.round(np.cumsum(SHARES) * m).astype(np.intp)
    return order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :]


def have_all_classes(Y: Array, parts: Sequence[Rows]) -> bool:
    """Whether every part has both values of each target of two values."""
    two_valued = [row for row in Y if len(np.unique(row)) == 2]
    return all(np.ptp(row[part]) > 0.0 for row in two_valued for part in parts)


def spread_sample(Y: Array, size: int, rng: np.random.Generator) -> Rows:
    """About `size` rows, spread evenly over the targets and with every class among them."""
    order = np.lexsort((rng.random(Y.shape[1]), *Y))
    chosen = order[np.linspace(0, order.size - 1, size).round().astype(np.intp)]
    _, representatives, _ = distinct_rows(Y.T)
    if representatives.size <= size // 4:
        chosen = np.concatenate([chosen, representatives])
    return np.unique(chosen)


def spread_folds(Y: Array, folds: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Training and validation rows of every fold: neighbors in the order of the targets go to different folds."""
    m = Y.shape[1]
    labels = np.empty(m, dtype=np.intp)
    order = np.lexsort((rng.random(m), *Y))
    for at in range(0, m, folds):
        block = order[at : at + folds]
        labels[block] = rng.permutation(folds)[: block.size]
    return [(np.flatnonzero(labels != k), np.flatnonzero(labels == k)) for k in range(folds)]
