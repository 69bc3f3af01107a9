"""Compiled loops over stacks of symmetric matrices, of which the lower triangles are stored row by row.

Entry (i, j), j <= i, of a packed matrix is at ``i (i + 1) / 2 + j``. Sums are formed in float64, whatever the
stored type.
"""

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.compiled import EXACT_FAST, INTEGERS, MATRIX, MATRIX32, VECTOR, VECTOR32, compiled

BLOCK = 64
# Rows of triangles that are summed at once: 64 bytes for a row of the matrices, which stay near the processor.
FEW = 8
_STACKS = (MATRIX, MATRIX32)


@compiled(
    *(f"(i8,i8,{stack},{INTEGERS},{VECTOR},{stack})" for stack in _STACKS),
    fastmath=EXACT_FAST,
)
def combine_packed(start: int, stop: int, values: Array, active: Index, weights: Array, out: Array) -> None:
    """The lower triangle of ``sum_a weights[a] values[active[a]]``, in ``ceil(m / FEW)`` blocks of rows.

    O(number of active matrices m^2 / 2); the rows of a block are read in one go.
    """
    m = out.shape[0]
    blocks = -(-m // FEW)
    for p in range(start, stop):
        block = p // 2 if p % 2 == 0 else blocks - 1 - p // 2  # long and short rows alternate: threads share evenly
        top, bottom = block * FEW, min(m, block * FEW + FEW)
        first, last = top * (top + 1) // 2, bottom * (bottom + 1) // 2
        total = np.zeros(last - first)
        for a in range(active.shape[0]):
            source = values[active[a], first:last]
            weight = weights[a]
            for j in range(last - first):
                total[j] += weight * source[j]
        for i in range(top, bottom):
            row = total[i * (i + 1) // 2 - first :]
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
    """``out[k] = sum_ij pairs[i, j] K_k[rows[i], rows[j]]`` for symmetric `pairs` and ascending `rows`.

    Where `rows` are all rows, a row of a matrix is read in one go.
    """
    n = rows.shape[0]
    every = n > 0 and rows[n - 1] == n - 1
    for k in range(start, stop):
        matrix = values[k]
        total = 0.0
        for i in range(n):
            first = rows[i] * (rows[i] + 1) // 2
            partial = 0.0
            if every:
                source = matrix[first : first + i]
                for j in range(i):
                    partial += pairs[i, j] * source[j]
            else:
                for j in range(i):
                    partial += pairs[i, j] * matrix[first + rows[j]]
            total += 2.0 * partial + pairs[i, i] * matrix[first + rows[i]]
        out[k] = total


@compiled(*(f"(i8,i8,{stack},{INTEGERS},{VECTOR},{MATRIX})" for stack in _STACKS), fastmath=EXACT_FAST)
def apply_packed(start: int, stop: int, values: Array, rows: Index, w: Array, out: Array) -> None:
    """``out[k, i] = sum_j K_k[rows[i], rows[j]] w[j]`` for ascending `rows`; see `weigh_packed`."""
    n = rows.shape[0]
    every = n > 0 and rows[n - 1] == n - 1
    for k in range(start, stop):
        matrix = values[k]
        image = np.zeros(n)
        for i in range(n):
            first = rows[i] * (rows[i] + 1) // 2
            partial = 0.0
            if every:
                source = matrix[first : first + i]
                for j in range(i):
                    partial += source[j] * w[j]
                    image[j] += source[j] * w[i]
            else:
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
