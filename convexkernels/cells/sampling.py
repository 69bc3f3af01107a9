"""The one way in which rows are drawn: those with the least keys, random numbers that are made of what rows hold.

The rows of a table that are drawn are then the same in memory and on a cluster, in whatever order and parts they are
there, and samples of parts merge into a sample of the whole.
"""

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index

Keys = NDArray[np.uint64]

# The generator SplitMix64: its step, and the shifts and factors that scatter a number over all 64 bits.
STEP = np.uint64(0x9E3779B97F4A7C15)
ROUNDS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
LAST_SHIFT = np.uint64(31)


def content_keys(*tables: NDArray[np.float64]) -> Keys:
    """A number for each of m rows, equal where all columns of the tables, of shape (m,) or (m, k), agree."""
    keys = np.zeros(len(tables[0]), dtype=np.uint64)
    for table in tables:
        for column in np.asarray(table, dtype=np.float64).reshape(len(keys), -1).T:
            keys = _scattered(keys ^ (column + 0.0).view(np.uint64))  # -0.0 is 0.0
    return keys


def seeded(keys: Keys, seed: int) -> Keys:
    """Keys that have little to do with those of another seed."""
    return _scattered(keys ^ _scattered(np.array([seed], dtype=np.uint64)))


def _scattered(numbers: Keys) -> Keys:
    found = numbers + STEP
    for shift, factor in ROUNDS:
        found = (found ^ (found >> shift)) * factor
    return np.asarray(found ^ (found >> LAST_SHIFT))


def least(keys: Keys | Array, size: int) -> Index:
    """The `size` rows with the least keys, ascending; all rows where there are no more."""
    return np.sort(np.argsort(keys, kind="stable")[:size])


def rows_by_share(keys: Keys, size: int) -> int:
    """How many rows a table has about, from the `size` least of its keys and the next one.

    As many keys of m are below that one as its share of all numbers says. Who holds only a sample knows no better; who
    holds the table asks here, too, where cells are to be the same.
    """
    ordered = np.partition(keys, size)
    return max(size, round(size / ((float(ordered[size]) + 1.0) / 2.0**64)))
