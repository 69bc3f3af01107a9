"""Compiled sums over the points z of a tessellated kernel that are above a row, or over the rows below a point."""

from convexkernels.arrays import Array
from convexkernels.compiled import EXACT_FAST, MATRIX, VECTOR, compiled

BYTES = "u1[:,::1]"


@compiled(f"(i8,i8,{BYTES},{MATRIX},{MATRIX},{MATRIX},{VECTOR})", fastmath=EXACT_FAST)
def values_of_points(first: int, last: int, reached: Array, above: Array, below: Array, V: Array, out: Array) -> None:
    """``out[i] = sum_k above[i, k] (sum of V[k, z] over the points z above row i) + below[i, k] (over the others)``.

    Rows `first` to `last`. Shapes: reached (m, r) of 0 and 1, above and below (m, k), V (k, r), out (m,).
    """
    k, r = V.shape
    totals = V.sum(axis=1)
    for i in range(first, last):
        out[i] = 0.0
        for j in range(k):
            s = 0.0
            for z in range(r):
                s += reached[i, z] * V[j, z]
            out[i] += above[i, j] * s + below[i, j] * (totals[j] - s)


@compiled(f"(i8,i8,{BYTES},{MATRIX},{VECTOR},{MATRIX})", fastmath=EXACT_FAST)
def sums_of_points(first: int, last: int, reached: Array, features: Array, a: Array, out: Array) -> None:
    """``out[j, z] = sum of a_i features[i, j] over the rows i below z``, for the points `first` to `last`.

    Shapes: reached (m, r) of 0 and 1, features (m, k), a (m,), out (k, r).
    """
    m, k = features.shape
    out[:, first:last] = 0.0
    for i in range(m):
        if a[i] == 0.0:
            continue
        for j in range(k):
            c = a[i] * features[i, j]
            for z in range(first, last):
                out[j, z] += reached[i, z] * c
