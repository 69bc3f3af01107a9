"""Compiled loops over pairs of points: the part of a tessellated kernel that couples them through max(x, y).

Every loop runs over blocks of consecutive points, so that the inner statements are long vector
operations and the working set stays in cache. Rows ``first`` to ``last`` are worked on by one call.
"""

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.compiled import EXACT_FAST, INTEGERS, MATRIX, MATRIX32, VECTOR, compiled

BLOCK = 256
_HORNER = ",".join(["f8[:,:,::1]", *[INTEGERS] * 5])


@compiled(*(f"(i8,i8,{MATRIX},{MATRIX},{VECTOR},{out})" for out in (MATRIX, MATRIX32)), fastmath=EXACT_FAST)
def pair_volumes(first: int, last: int, X: Array, Y: Array, b: Array, out: Array) -> None:
    """``out[i, j] = prod_l (b_l - max(X[l, i], Y[l, j]))``: the volume of the box both points reach.

    Shapes: X (n, m), Y (n, k), b (n,), out (m, k) of any float type.
    """
    n, k = X.shape[0], Y.shape[1]
    for i in range(first, last):
        for j in range(k):
            out[i, j] = b[0] - max(X[0, i], Y[0, j])
        for v in range(1, n):
            x, top = X[v, i], b[v]
            for j in range(k):
                out[i, j] *= top - max(x, Y[v, j])


# The helpers below take whole rows: with one-dimensional arguments the loops become vector code.
@compiled(fastmath=EXACT_FAST)
def _ratio(x: float, y: Array, horner: Array, k: int, out: Array) -> None:
    """``out = r_k(max(x, y), b)`` by Horner's rule."""
    out[:] = horner[k]
    for i in range(k - 1, -1, -1):
        c = horner[i]
        for j in range(y.shape[0]):
            out[j] = out[j] * max(x, y[j]) + c


@compiled(fastmath=EXACT_FAST)
def _multiply(a: Array, b: Array, out: Array) -> None:
    for j in range(out.shape[0]):
        out[j] = a[j] * b[j]


@compiled(fastmath=EXACT_FAST)
def _add_product(a: Array, b: Array, out: Array) -> None:
    for j in range(out.shape[0]):
        out[j] += a[j] * b[j]


@compiled(fastmath=EXACT_FAST)
def _add_multiple(c: float, a: Array, out: Array) -> None:
    for j in range(out.shape[0]):
        out[j] += c * a[j]


@compiled(fastmath=EXACT_FAST)
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@compiled(fastmath=EXACT_FAST)
def _block_factors(
    x: Array, Y: Array, start: int, stop: int, horner: Array, parent: Index, variable: Index, power: Index,
    ratios: Array, factors: Array,
) -> None:  # fmt: skip
    """``factors[s, j] = prod_l r_{s_l}(max(x_l, Y[l, start + j]), b_l)`` for every sum s of z exponents."""
    size = stop - start
    for v in range(x.shape[0]):
        for k in range(1, horner.shape[1]):
            _ratio(x[v], Y[v, start:stop], horner[v, k], k, ratios[v, k, :size])
    factors[0, :size] = 1.0
    for s in range(1, parent.shape[0]):
        _multiply(factors[parent[s], :size], ratios[variable[s], power[s], :size], factors[s, :size])


@compiled(
    *(f"(i8,i8,{MATRIX},{MATRIX},{_HORNER},{MATRIX},{MATRIX},{out})" for out in (MATRIX, MATRIX32)),
    fastmath=EXACT_FAST,
)
def shifted_gram(
    first: int, last: int, X: Array, Y: Array, horner: Array, parent: Index, variable: Index, power: Index,
    width: Index, offset: Index, coefficients: Array, psi: Array, out: Array,
) -> None:  # fmt: skip
    """Add the terms with z in the monomials, all but the volume factor, to ``out``.

    ``out[i, j] += sum_{s >= 1} R_s(max(x_i, y_j)) sum_e coefficients[i, offset[s] + e] psi[e, j]``.
    """
    k, n, n_sums, top = Y.shape[1], X.shape[0], parent.shape[0], horner.shape[1]
    ratios, factors = np.empty((n, top, BLOCK)), np.empty((n_sums, BLOCK))
    inner, total = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(first, last):
        x = X[:, i].copy()
        for start in range(0, k, BLOCK):
            stop = min(k, start + BLOCK)
            size = stop - start
            _block_factors(x, Y, start, stop, horner, parent, variable, power, ratios, factors)
            total[:] = 0.0
            for s in range(1, n_sums):
                inner[:] = 0.0
                for e in range(width[s]):
                    c = coefficients[i, offset[s] + e]
                    if c != 0.0:
                        _add_multiple(c, psi[e, start:stop], inner[:size])
                _add_product(factors[s, :size], inner[:size], total[:size])
            for j in range(size):
                out[i, start + j] += total[j]


@compiled(f"(i8,i8,{MATRIX},{MATRIX},{VECTOR},{_HORNER},{MATRIX},{MATRIX},{MATRIX})", fastmath=EXACT_FAST)
def shifted_adjoint(
    first: int, last: int, X: Array, Y: Array, b: Array, horner: Array, parent: Index, variable: Index, power: Index,
    width: Index, offset: Index, w: Array, psi: Array, out: Array,
) -> None:  # fmt: skip
    """``out[i, offset[s] + e] = sum_j w_ij T(max(x_i, y_j), b, s + 1) psi[e, j]`` for s >= 1; one w may serve all."""
    k, n, n_sums, top = Y.shape[1], X.shape[0], parent.shape[0], horner.shape[1]
    ratios, factors, weight = np.empty((n, top, BLOCK)), np.empty((n_sums, BLOCK)), np.empty(BLOCK)
    for i in range(first, last):
        x = X[:, i].copy()
        own = w[i].copy() if w.shape[0] > 1 else w[0].copy()
        out[i, :] = 0.0
        for start in range(0, k, BLOCK):
            stop = min(k, start + BLOCK)
            size = stop - start
            _block_factors(x, Y, start, stop, horner, parent, variable, power, ratios, factors)
            weight[:size] = own[start:stop]
            for v in range(n):
                for j in range(size):
                    weight[j] *= b[v] - max(x[v], Y[v, start + j])
            for s in range(1, n_sums):
                _multiply(weight[:size], factors[s, :size], factors[s, :size])
                for e in range(width[s]):
                    out[i, offset[s] + e] += _dot(factors[s, :size], psi[e, start:stop])
