"""Compiled loops over stacks of symmetric matrices, of which the lower triangles are stored row by row.

Entry (i, j), j <= i, of a packed matrix is at ``i (i + 1) / 2 + j``. Sums are formed in float64, whatever the
stored type.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from convexkernels.arrays import Array, Index

__all__ = ["apply_packed", "combine_packed", "pack_symmetric", "weigh_packed"]


FAST = {"contract", "reassoc", "nsz"}
BLOCK = 64


@njit(cache=True, parallel=True, fastmath=FAST)
def combine_packed(values: Array, active: Index, weights: Array, out: Array) -> None:  # pragma: no cover - compiled
    """``out = sum_a weights[a] values[active[a]]`` as a full matrix; O(number of active matrices m^2 / 2)."""
    m = out.shape[0]
    for p in prange(m):
        i = p // 2 if p % 2 == 0 else m - 1 - p // 2  # long and short rows alternate, so that threads share evenly
        first = i * (i + 1) // 2
        row = np.zeros(i + 1)
        for a in range(active.shape[0]):
            source = values[active[a], first : first + i + 1]
            weight = weights[a]
            for j in range(i + 1):
                row[j] += weight * source[j]
        for j in range(i + 1):
            out[i, j] = row[j]
    for block in prange((m + BLOCK - 1) // BLOCK):
        top = block * BLOCK
        bottom = min(m, top + BLOCK)
        for left in range(0, bottom, BLOCK):
            for i in range(top, bottom):
                for j in range(left, min(left + BLOCK, i)):
                    out[j, i] = out[i, j]


@njit(cache=True, parallel=True, fastmath=FAST)
def weigh_packed(values: Array, rows: Index, pairs: Array, out: Array) -> None:  # pragma: no cover - compiled
    """``out[k] = sum_ij pairs[i, j] K_k[rows[i], rows[j]]`` for symmetric `pairs` and ascending `rows`."""
    n = rows.shape[0]
    for k in prange(values.shape[0]):
        matrix = values[k]
        total = 0.0
        for i in range(n):
            first = rows[i] * (rows[i] + 1) // 2
            partial = 0.0
            for j in range(i):
                partial += pairs[i, j] * matrix[first + rows[j]]
            total += 2.0 * partial + pairs[i, i] * matrix[first + rows[i]]
        out[k] = total


@njit(cache=True, parallel=True, fastmath=FAST)
def apply_packed(values: Array, rows: Index, w: Array, out: Array) -> None:  # pragma: no cover - compiled
    """``out[k, i] = sum_j K_k[rows[i], rows[j]] w[j]`` for ascending `rows`."""
    n = rows.shape[0]
    for k in prange(values.shape[0]):
        matrix = values[k]
        image = np.zeros(n)
        for i in range(n):
            first = rows[i] * (rows[i] + 1) // 2
            partial = 0.0
            for j in range(i):
                entry = matrix[first + rows[j]]
                partial += entry * w[j]
                image[j] += entry * w[i]
            image[i] += partial + matrix[first + rows[i]] * w[i]
        for i in range(n):
            out[k, i] = image[i]


@njit(cache=True)
def pack_symmetric(K: Array, scale: float, out: Array) -> None:  # pragma: no cover - compiled
    """Write ``scale (K + K') / 2`` in packed form."""
    position = 0
    for i in range(K.shape[0]):
        for j in range(i + 1):
            out[position] = scale * 0.5 * (K[i, j] + K[j, i])
            position += 1
