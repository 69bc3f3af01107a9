"""Enclosed entries of kernels that are made from others, and what else is asked of any kernel on a table."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.precomputed import Precomputed
from convexkernels.kernels.algebra import OnColumns, WeightedSum
from convexkernels.kernels.base import Product, Scaled, Sum
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.normalized import Centered, Normalized
from convexkernels.kernels.tensor_matern import TensorMatern
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel, TessellatedKernel
from convexkernels.rigorous.kernels import SIMPLE, Enclosure, Pairs, whole_order
from convexkernels.rigorous.rounding import gamma

# Rows and columns of a tile: its arrays stay in the second-level cache.
BLOCK = 512
# Values and radii of a tile: its pairs, and where its rows and columns are in the table.
Entries = Callable[[Pairs, slice, slice], Enclosure]


def tiles(m: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows and columns on and below the diagonal."""
    starts = range(0, m, BLOCK)
    return ((slice(i, min(m, i + BLOCK)), slice(j, min(m, j + BLOCK))) for i in starts for j in starts if j <= i)


def enclosure(kernel: Any, X: Array) -> Entries:
    """How to enclose the entries of a kernel on the rows of a table, tile by tile.

    The arrays that it returns may be shared and are not to be overwritten. A kernel of a part of which no error bound
    is known is refused by name.
    """
    if type(kernel) in SIMPLE:
        if isinstance(kernel, Matern | TensorMatern):
            whole_order(kernel)
        simple = SIMPLE[type(kernel)]
        return lambda pairs, rows, columns: simple(kernel, pairs)
    if type(kernel) in COMPOSED:
        return COMPOSED[type(kernel)](kernel, X)
    known = ", ".join(sorted(cls.__name__ for cls in (*SIMPLE, *COMPOSED)))
    raise InvalidInputError(
        f"rigorous=True: no error bound is known for the kernel {kernel!r}; there is one for {known}. "
        "verify() without it measures any kernel."
    )


def diagonal(entries: Entries, X: Array) -> Enclosure:
    """``k(x, x)`` of every row, and radii, shape (m,)."""
    parts = []
    for start in range(0, len(X), 64):
        rows = slice(start, min(len(X), start + 64))
        parts.append([np.diagonal(part) for part in entries(Pairs(X[rows], X[rows]), rows, rows)])
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _sum(kernel: Any, X: Array) -> Entries:
    return _combined([1.0, 1.0], [kernel.left, kernel.right], X)


def _combined(weights: Any, kernels: Any, X: Array) -> Entries:
    used = [(float(w), enclosure(k, X)) for w, k in zip(weights, kernels, strict=True) if w != 0.0]

    def entries(pairs: Pairs, rows: slice, columns: slice) -> Enclosure:
        shape = (len(pairs.X), len(pairs.Y))
        K, R = np.zeros(shape), np.zeros(shape)
        for weight, part in used:
            value, radius = part(pairs, rows, columns)
            K += weight * value
            R += abs(weight) * (radius + gamma(len(used) + 2) * np.abs(value))
        return K, R

    return entries


def _product(kernel: Any, X: Array) -> Entries:
    left, right = enclosure(kernel.left, X), enclosure(kernel.right, X)

    def entries(pairs: Pairs, rows: slice, columns: slice) -> Enclosure:
        (A, a), (B, b) = left(pairs, rows, columns), right(pairs, rows, columns)
        return A * B, np.abs(A) * (b + gamma(2) * np.abs(B)) + a * (np.abs(B) + b)

    return entries


def _on_columns(kernel: Any, X: Array) -> Entries:
    chosen = tuple(int(c) for c in kernel.columns)
    inner = enclosure(kernel.kernel, X[:, chosen])
    return lambda pairs, rows, columns: inner(pairs.of_columns(chosen), rows, columns)


def _centered(kernel: Any, X: Array) -> Entries:
    if not np.array_equal(np.asarray(kernel.points, dtype=np.float64), X):
        raise InvalidInputError(f"rigorous=True: {kernel!r} is centered on points that are not the training points.")
    inner = enclosure(kernel.kernel, X)
    means, errors = _means(inner, X)
    size = np.abs(means)
    grand, error = _mean(means, errors)

    def entries(pairs: Pairs, rows: slice, columns: slice) -> Enclosure:
        K, R = inner(pairs, rows, columns)
        rounding = gamma(6) * (np.abs(K) + size[rows, None] + size[columns] + abs(grand))
        value = K - means[rows, None] - means[columns] + grand
        return value, R + errors[rows, None] + errors[columns] + error + rounding

    return entries


def _means(entries: Entries, X: Array) -> Enclosure:
    """Means of the rows of a matrix, and radii."""
    m = len(X)
    sums, radii = np.zeros(m), np.zeros(m)
    for rows, columns in tiles(m):
        K, R = entries(Pairs(X[rows], X[columns]), rows, columns)
        S = R + gamma(m + 2) * np.abs(K)
        sums[rows], radii[rows] = sums[rows] + K.sum(axis=1), radii[rows] + S.sum(axis=1)
        if columns != rows:
            sums[columns], radii[columns] = sums[columns] + K.sum(axis=0), radii[columns] + S.sum(axis=0)
    return sums / m, radii / m


def _mean(values: Array, radii: Array) -> tuple[float, float]:
    return float(values.mean()), float(radii.mean()) + gamma(len(values) + 2) * float(np.abs(values).mean())


def mean_entry(entries: Entries, X: Array) -> tuple[float, float]:
    """The mean of all entries of a matrix, and its radius."""
    return _mean(*_means(entries, X))


def _normalized(kernel: Any, X: Array) -> Entries:
    inner = enclosure(kernel.kernel, X)
    inverse, e = _inverse_roots(*diagonal(inner, X))

    def entries(pairs: Pairs, rows: slice, columns: slice) -> Enclosure:
        K, R = inner(pairs, rows, columns)
        value, both = K * inverse[rows, None] * inverse[columns], e[rows, None] + e[columns]
        return value, (R * inverse[rows, None] * inverse[columns] + np.abs(value) * both) * (1.0 + 2.0 * both)

    return entries


def _inverse_roots(squares: Array, radius: Array) -> Enclosure:
    """``1 / sqrt`` of enclosed numbers >= 0, with relative errors; 0 where nothing but 0 is enclosed."""
    positive = squares > 0.0
    relative = np.where(positive, radius / np.where(positive, squares, 1.0), np.where(radius > 0.0, np.inf, 0.0))
    inverse = np.where(positive, 1.0 / np.sqrt(np.where(positive, squares, 1.0)), 0.0)
    return inverse, np.where(relative < 0.25, relative + gamma(6), np.inf)


COMPOSED: dict[type, Callable[[Any, Array], Entries]] = {
    Centered: _centered,
    Normalized: _normalized,
    OnColumns: _on_columns,
    Product: _product,
    Scaled: lambda kernel, X: _combined([kernel.scale], [kernel.kernel], X),
    Sum: _sum,
    WeightedSum: lambda kernel, X: _combined(kernel.weights, kernel.kernels, X),
}
# Kernels of a matrix that came as it is: positive semidefinite as far as that can be proven.
UNPROVEN = (Precomputed, TessellatedKernel, GeneralizedPolynomialKernel)


def is_positive(kernel: Any) -> bool:
    """Whether a theorem says that the exact matrices of a kernel are positive semidefinite."""
    parts = kernel.kernels if isinstance(kernel, WeightedSum) else []
    parts = [*parts, *(getattr(kernel, name) for name in ("left", "right", "kernel") if hasattr(kernel, name))]
    return not isinstance(kernel, UNPROVEN) and all(is_positive(part) for part in parts)
