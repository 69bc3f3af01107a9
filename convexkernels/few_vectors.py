"""Products of a few vectors with a large matrix, which is read once and as it lies.

BLAS copies a matrix into blocks before it multiplies it, which many vectors pay for and few do not: of a tile of 512
rows in float32 and five vectors, both products take a third of the time that way.
"""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.compiled import EXACT_FAST, MATRIX, MATRIX32, compiled
from convexkernels.threads import in_parts

# Vectors up to which that is so of any matrix (of tiles up to twice as many), and entries from which on.
FEW, LARGE = 24, 2**16
# Rows of the matrix that loops are written to read at once, and columns of which all vectors stay near the processor.
ROWS, COLUMNS = 4, 1024


def is_few(vectors: int) -> bool:
    """Whether BLAS takes longer for so many vectors, or as long."""
    return vectors <= FEW


def times(V: Any, A: Any) -> Any:
    """``V A``, shape (k, n), for matrices of any backend; by loops in the threads of `threads.n_threads`."""
    is_plain = type(A) is np.ndarray and A.dtype == V.dtype == np.float64 and is_few(len(V)) and A.size >= LARGE
    # Loops look at no shapes: what does not fit is left to BLAS, which refuses it.
    if not is_plain or V.shape[1:] != A.shape[:1] or not (A.flags.c_contiguous or A.flags.f_contiguous):
        return V @ A
    V, (m, n) = np.ascontiguousarray(V), A.shape
    out = np.zeros((len(V), n))
    loop, B, side = (add_weighed_rows, A, COLUMNS) if A.flags.c_contiguous else (add_row_products, A.T, ROWS)
    in_parts(loop, -(-n // side), V, B, out, least=-(-LARGE // (side * m)))  # a part is worth a thread
    return out


@compiled(
    f"(i8,i8,{MATRIX32},{MATRIX32},{MATRIX})",
    f"(i8,i8,{MATRIX},{MATRIX},{MATRIX})",
    fastmath=EXACT_FAST,
)
def add_tile_products(top: int, left: int, tile: Array, V: Array, F: Array) -> None:
    """Add to ``F = V K`` what one tile of the symmetric K contributes from both sides of the diagonal.

    `top` and `left` are where the tile is; sums over it are of its type, and those over tiles of that of F.
    """
    m, n = tile.shape
    k = V.shape[0]
    # Loops over what lies side by side at known places are those that processors do in one go.
    right, below = V[:, left : left + n].copy(), V[:, top : top + m].copy()
    own, other = np.zeros((k, m), V.dtype), np.zeros((k, n), V.dtype)
    for i in range(0, m - 3, 4):
        for c in range(k):
            w0, w1, w2, w3 = below[c, i], below[c, i + 1], below[c, i + 2], below[c, i + 3]
            s0 = s1 = s2 = s3 = V.dtype.type(0)
            for j in range(n):
                t0, t1, t2, t3 = tile[i, j], tile[i + 1, j], tile[i + 2, j], tile[i + 3, j]
                v = right[c, j]
                s0 += t0 * v
                s1 += t1 * v
                s2 += t2 * v
                s3 += t3 * v
                other[c, j] += t0 * w0 + t1 * w1 + t2 * w2 + t3 * w3
            own[c, i], own[c, i + 1], own[c, i + 2], own[c, i + 3] = s0, s1, s2, s3
    for i in range(m - m % 4, m):
        for c in range(k):
            w, s = below[c, i], V.dtype.type(0)
            for j in range(n):
                s += tile[i, j] * right[c, j]
                other[c, j] += tile[i, j] * w
            own[c, i] = s
    for c in range(k):
        for i in range(m):
            F[c, top + i] += own[c, i]
        if top != left:
            for j in range(n):
                F[c, left + j] += other[c, j]


@compiled(f"(i8,i8,{MATRIX},{MATRIX},{MATRIX})", fastmath=EXACT_FAST)
def add_weighed_rows(start: int, stop: int, V: Array, A: Array, out: Array) -> None:
    """Add ``V A`` to `out`, in ``ceil(n / COLUMNS)`` blocks of columns."""
    k, m = V.shape
    for block in range(start, stop):
        left = block * COLUMNS
        right = min(A.shape[1], left + COLUMNS)
        total = np.zeros((k, right - left))
        for i in range(0, m - 3, 4):
            a0, a1, a2, a3 = A[i, left:right], A[i + 1, left:right], A[i + 2, left:right], A[i + 3, left:right]
            for c in range(k):
                v0, v1, v2, v3 = V[c, i], V[c, i + 1], V[c, i + 2], V[c, i + 3]
                for j in range(right - left):
                    total[c, j] += v0 * a0[j] + v1 * a1[j] + v2 * a2[j] + v3 * a3[j]
        for i in range(m - m % 4, m):
            a = A[i, left:right]
            for c in range(k):
                for j in range(right - left):
                    total[c, j] += V[c, i] * a[j]
        for c in range(k):
            for j in range(right - left):
                out[c, left + j] += total[c, j]


@compiled(f"(i8,i8,{MATRIX},{MATRIX},{MATRIX})", fastmath=EXACT_FAST)
def add_row_products(start: int, stop: int, V: Array, A: Array, out: Array) -> None:
    """Add ``V A'`` to `out`, in ``ceil(m / ROWS)`` blocks of rows."""
    k, n = V.shape
    for left in range(0, n, COLUMNS):
        right = min(n, left + COLUMNS)
        part = V[:, left:right].copy()
        for block in range(start, stop):
            i = block * ROWS
            if i + ROWS <= A.shape[0]:
                a0, a1, a2, a3 = A[i, left:right], A[i + 1, left:right], A[i + 2, left:right], A[i + 3, left:right]
                for c in range(k):
                    s0 = s1 = s2 = s3 = 0.0
                    for j in range(right - left):
                        v = part[c, j]
                        s0 += a0[j] * v
                        s1 += a1[j] * v
                        s2 += a2[j] * v
                        s3 += a3[j] * v
                    out[c, i] += s0
                    out[c, i + 1] += s1
                    out[c, i + 2] += s2
                    out[c, i + 3] += s3
            else:
                for row in range(i, A.shape[0]):
                    a = A[row, left:right]
                    for c in range(k):
                        s = 0.0
                        for j in range(right - left):
                            s += a[j] * part[c, j]
                        out[c, row] += s
