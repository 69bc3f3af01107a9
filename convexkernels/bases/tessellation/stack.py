"""Gram matrices of many tessellated kernels of one tessellation at once.

K(P) is linear in P, so many of them are one matrix product of coefficients with features of the pairs of
points, which are computed once instead of once per P.
"""

from collections.abc import Sequence

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases.integrals import box_integrals
from convexkernels.bases.tessellation.gram import Blocks, BoxPoints, Tessellation

# Pairs of points per matrix product: their features stay in cache.
PAIRS = 4096


def tessellated_stack(
    tessellation: Tessellation, x: BoxPoints, matrices: Sequence[Array], out: Array, *, modulo_constants: bool = False
) -> None:
    """Lower triangles, row by row, of the Gram matrices of every P, in `out` of shape (L, m (m + 1) / 2).

    O(m^2 q^2 / 4 L) multiplications, all of them in matrix products. `modulo_constants` as in `Tessellation.gram`.
    """
    blocks = [Blocks.of(P) for P in matrices]
    m = x.columns.shape[1]
    rows, columns = np.tril_indices(m)
    first, second = np.triu_indices(tessellation.basis.q)
    coefficients = np.array([block.g[first, second] for block in blocks])
    for start in range(0, rows.size, PAIRS):
        stop = min(start + PAIRS, rows.size)
        i, j = rows[start:stop], columns[start:stop]
        out[:, start:stop] = coefficients @ _pair_features(tessellation, x, i, j, first, second)
    kept = 1 if modulo_constants else 0
    for k, block in enumerate(blocks):
        separable = tessellation.separable(block, x, modulo_constants)[kept:].T @ x.psi[kept:]
        separable += separable.T.copy()
        out[k] += separable[rows, columns]


def _pair_features(tessellation: Tessellation, x: BoxPoints, i: Index, j: Index, first: Index, second: Index) -> Array:
    """What the entries on and above the diagonal of ``P11 - P12 - P21 + P22`` multiply, shape (n_entries, pairs)."""
    basis = tessellation.basis
    upper = tessellation.upper
    volumes = box_integrals(np.maximum(x.columns[:, i], x.columns[:, j]), upper, basis)
    products = x.psi[:, None, i] * x.psi[None, :, j]
    features = np.empty((first.size, i.size))
    for k, (p, q) in enumerate(zip(first, second, strict=True)):
        d, e = basis.x_index[p], basis.x_index[q]
        both = products[d, e] if p == q else products[d, e] + products[e, d]
        np.multiply(both, volumes[basis.sum_index[p, q]], out=features[k])
    return features
