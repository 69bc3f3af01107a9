"""Kernel matrices and how far they can be trusted."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.checking.verdict import Verdict
from convexkernels.exceptions import InvalidInputError

EPS = float(np.finfo(np.float64).eps)

# Values of the same pair, asked for in another block, may differ by this share of the largest one: more is no rounding.
INCONSISTENT = 1e-6


def is_function(kernel: Callable[[Any, Any], Any], X: Array, Y: Array) -> Verdict:
    """Whether the value of a pair is the same in every block: asked twice, one half at a time, in reverse order.

    The tolerance is 1e-6 of the largest value, and what moving all points by one unit in the last place changes.
    """
    K = matrix_of(kernel, X, Y)
    others = [matrix_of(kernel, X, Y), matrix_of(kernel, np.ascontiguousarray(X[::-1]), Y)[::-1]]
    rows, columns = (np.array_split(np.arange(len(table)), 2 if len(table) > 1 else 1) for table in (X, Y))
    others.append(np.concatenate([matrix_of(kernel, X[part], Y) for part in rows]))
    others.append(np.concatenate([matrix_of(kernel, X, Y[part]) for part in columns], axis=1))
    changes = np.array([np.abs(other - K) for other in others])
    changes = np.where(np.isfinite(changes), changes, 0.0)  # what is not finite is refuted by the checks themselves
    which, i, j = np.unravel_index(int(np.argmax(changes)), changes.shape)
    moved = [matrix_of(kernel, np.nextafter(X, way), np.nextafter(Y, way)) for way in (np.inf, -np.inf)]
    shift = np.minimum(*(np.abs(other - K) for other in moved))
    tolerance = INCONSISTENT * float(np.abs(K).max()) + float(shift.max())
    witness = {"X": X, "Y": Y, "pair": np.array([i, j]), "values": np.array([K[i, j], others[which][i, j]])}
    return Verdict(float(changes[which, i, j]), tolerance if np.isfinite(tolerance) else np.inf, 1, witness)


def smallest_eigenvalue(K: Array, error: float = 0.0) -> tuple[float, float, Array]:
    """The smallest eigenvalue of a symmetric matrix, how far it can be trusted, and its vector.

    Entries are off by at most `error`. The exact matrix K has an eigenvalue within the bound of the value: with K + E
    the computed one, by Weyl's inequality an eigenvalue moves by at most ``|E|_2 <= |E|_F <= m error``, and the values
    of a backward stable eigenvalue solver are those of a matrix that differs from the computed one by at most ``m eps
    |K|_2``; the bound is the sum of the two.
    """
    m = K.shape[0]
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    return float(values[0]), m * (EPS * float(np.abs(values).max()) + error), vectors[:, 0]


def gram_and_error(kernel: Callable[[Any, Any], Any], X: Array) -> tuple[Array, float]:
    """Evaluate a Gram matrix and measure how far its entries can be trusted.

    The error of an entry is the largest change seen anywhere when the same matrix is evaluated in other ways, plus one
    rounding of the largest entry. Each way is as good as the first in exact arithmetic, or differs by the rounding of
    the data: rows one half at a time, points in reverse order, and every coordinate moved by one unit in the last
    place, up or down.
    """
    K = matrix_of(kernel, X, X)
    reverse = np.ascontiguousarray(X[::-1])
    changes = [matrix_of(kernel, reverse, reverse)[::-1, ::-1] - K]
    halves = [rows for rows in np.array_split(np.arange(X.shape[0]), 2) if rows.size]
    changes += [matrix_of(kernel, X[rows], X) - K[rows] for rows in halves]
    # All points move together, so that equal coordinates stay equal, and the smaller change of the two
    # directions counts: a kernel may jump at a point of the table, and a jump is not rounding.
    up, down = (np.nextafter(X, way) for way in (np.inf, -np.inf))
    changes.append(np.minimum(np.abs(matrix_of(kernel, up, up) - K), np.abs(matrix_of(kernel, down, down) - K)))
    return K, EPS * float(np.abs(K).max()) + max(float(np.abs(change).max()) for change in changes)


def matrix_of(kernel: Callable[[Any, Any], Any], X: Array, Y: Array) -> Array:
    """Kernel matrix as float64, of the right shape or refused."""
    K = np.asarray(kernel(X, Y), dtype=np.float64)
    if K.shape != (X.shape[0], Y.shape[0]):
        raise InvalidInputError(
            f"kernel(X, Y) must return shape ({X.shape[0]}, {Y.shape[0]}), one row per row of X, got {K.shape}."
        )
    return K
