"""The types of arrays, under the names that signatures use, and what is equal among their rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
# Of any type that says which class a row is of.
Labels = NDArray[Any]
# Median, and the quantile at .9, of the absolute value of a standard normal number.
NORMAL_MEDIAN, NORMAL_NINE_TENTHS = 0.6744897501960817, 1.6448536269514722


def sorted_rows(table: Array) -> Index:
    """The rows in lexicographic order: by the first column, and by the others only where it does not decide."""
    order = np.argsort(table[:, 0], kind="stable")
    first = table[order, 0]
    equal = first[1:] == first[:-1]
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    rows = np.sort(order[tied])
    order[tied] = rows[np.lexsort(table[rows].T[::-1])]
    return order


def as_counts(weights: Array) -> Array:
    """Weights that count rows: where their mean over (different) rows is below 1, in the unit in which it is 1."""
    return weights * max(1.0, len(weights) / float(weights.sum()))


def distinct_rows(table: Array) -> tuple[Array, Index, Index]:
    """The different rows in lexicographic order, where each occurs first, and which of them every row is.

    By columns of numbers: of rows as records, as numpy has it, a comparison that Ctrl-C comes into ends in a
    ``TypeError``, and nobody learns that there was an interrupt.
    """
    order = sorted_rows(table)
    ordered = table[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(table)]
    group = np.empty(len(table), dtype=np.intp)
    group[order] = np.cumsum(is_new) - 1
    return ordered[is_new], order[is_new], group
