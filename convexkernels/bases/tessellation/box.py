"""How tessellated kernels change with their box [a, b].

A box integral is a product over coordinates, ``T(u, b, s + 1) = prod_l I_l`` with ``I_l = integral_u^b z^(s_l) dz``.
Its derivative in b_l is ``T b_l^(s_l) / I_l``, and that of the whole box in a_l is ``-T a_l^(s_l) / I_l``.
"""

from copy import copy
from dataclasses import replace

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.integrals import box_integrals, interval_ratios
from convexkernels.bases.tessellation.gram import Blocks, BoxPoints, Tessellation

# Pairs of points whose integrals are held at once.
PAIRS = 100_000


def margin_slope(t: Tessellation, P: Array, M: Array, x: BoxPoints, *, modulo_constants: bool = False) -> float:
    """Derivative of ``<M, K(P)>`` as all sides of the box move outwards at the same speed, the points staying.

    [CP20 Corollary 13], differentiated in a and b. P and M are symmetric; rows of M sum to 0 with `modulo_constants`.
    O(m^2 n_sums (n + width)).
    """
    blocks, basis, offset = Blocks.of(P), t.basis, t.tables[-1]
    moved, first = copy(t), 1 if modulo_constants else 0
    # Both corners move: b upwards, and a downwards.
    moved.whole = t.whole * _rates(t, t.lower[:, None], [t.upper, t.lower])[:, 0]
    E = moved.separable(blocks, replace(x, reach=x.reach * _rates(t, x.columns, [t.upper])), modulo_constants)
    total = 2.0 * float(np.vdot(E[first:] @ M, x.psi[first:]))
    coefficients, m = t.pair_coefficients(blocks.g, x), len(M)
    for start in range(0, m, max(1, PAIRS // m)):
        rows = slice(start, start + max(1, PAIRS // m))
        U = np.maximum(x.columns[:, rows, None], x.columns[:, None, :]).reshape(len(x.columns), -1)
        slopes = box_integrals(U, t.upper, basis) * _rates(t, U, [t.upper])
        for s, width in enumerate(basis.width.tolist()):
            terms = coefficients[rows, offset[s] : offset[s] + width] @ x.psi[:width]
            total += float(np.vdot(terms * M[rows], slopes[s].reshape(-1, m)))
    return total


def _rates(t: Tessellation, U: Array, corners: list[Array]) -> Array:
    """``sum_l c_l^(s_l) / I_l`` over the corners c that move, for lower corners in the columns of U; (n_sums, m)."""
    k = np.arange(2 * t.basis.z_degree + 1)
    integrals = (t.upper[:, None] - U) * interval_ratios(U, t.upper, int(k[-1]))
    ratios = np.sum([c[None, :] ** k[:, None] for c in corners], axis=0)[:, :, None] / integrals
    return np.asarray(ratios[t.basis.sums, np.arange(len(U))].sum(axis=1))
