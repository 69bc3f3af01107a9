"""Compiled loops over stacks of symmetric matrices, of which the lower triangles are stored row by row.

Entry (i, j), j <= i, of a packed matrix is at ``i (i + 1) / 2 + j``. Sums are formed in float64, whatever the
stored type.
"""

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.compiled import EXACT_FAST, INTEGERS, MATRIX, MATRIX32, VECTOR, VECTOR32, compiled

BLOCK = 64
_STACKS = (MATRIX, MATRIX32)


@compiled(
    *(f"(i8,i8,{stack},{INTEGERS},{VECTOR},{stack})" for stack in _STACKS),
    fastmath=EXACT_FAST,
)
def combine_packed(start: int, stop: int, values: Array, active: Index, weights: Array, out: Array) -> None:
    """The lower triangle of ``sum_a weights[a] values[active[a]]``; O(number of active matrices m^2 / 2)."""
    m = out.shape[0]
    for p in range(start, stop):
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


@compiled(*(f"(i8,i8,{out})" for out in _STACKS))
def mirror(start: int, stop: int, out: Array) -> None:
    """Write the lower triangle to the upper one, in ``ceil(m / BLOCK)`` blocks of rows."""
    m = out.shape[0]
    for block in range(start, stop):
        top = block * BLOCK
        bottom = min(m, top + BLOCK)
        for left in range(0, bottom, BLOCK):
            for i in range(top, bottom):
                for j in range(left, min(left + BLOCK, i)):
                    out[j, i] = out[i, j]


@compiled(*(f"(i8,i8,{stack},{INTEGERS},{MATRIX},{VECTOR})" for stack in _STACKS), fastmath=EXACT_FAST)
def weigh_packed(start: int, stop: int, values: Array, rows: Index, pairs: Array, out: Array) -> None:
    """``out[k] = sum_ij pairs[i, j] K_k[rows[i], rows[j]]`` for symmetric `pairs` and ascending `rows`."""
    n = rows.shape[0]
    for k in range(start, stop):
        matrix = values[k]
        total = 0.0
        for i in range(n):
            first = rows[i] * (rows[i] + 1) // 2
            partial = 0.0
            for j in range(i):
                partial += pairs[i, j] * matrix[first + rows[j]]
            total += 2.0 * partial + pairs[i, i] * matrix[first + rows[i]]
        out[k] = total


@compiled(*(f"(i8,i8,{stack},{INTEGERS},{VECTOR},{MATRIX})" for stack in _STACKS), fastmath=EXACT_FAST)
def apply_packed(start: int, stop: int, values: Array, rows: Index, w: Array, out: Array) -> None:
    """``out[k, i] = sum_j K_k[rows[i], rows[j]] w[j]`` for ascending `rows`."""
    n = rows.shape[0]
    for k in range(start, stop):
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


@compiled(*(f"({MATRIX},f8,{out})" for out in (VECTOR, VECTOR32)))
def pack_symmetric(K: Array, scale: float, out: Array) -> None:
    """Write ``scale (K + K') / 2`` in packed form."""
    position = 0
    for i in range(K.shape[0]):
        for j in range(i + 1):
            out[position] = scale * 0.5 * (K[i, j] + K[j, i])
            position += 1
