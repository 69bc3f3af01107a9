"""The box integrals of [CP20 Corollary 13], as tables, and derived symbolically.

``T(u, b, zeta) = prod_l (b_l^zeta_l - u_l^zeta_l) / zeta_l`` is the integral of ``z^(zeta - 1)`` over the box
[u, b]. Every coordinate contributes ``integral_u^b z^k dz = (b - u) r_k(u, b)`` with a polynomial ``r_k`` that
does not cancel where b is close to u.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array

if TYPE_CHECKING:
    from convexkernels.bases.monomials import MonomialBasis


def ratio_coefficients(max_power: int) -> Array:
    """Coefficients of ``r_k(u, b) = (integral_u^b z^k dz) / (b - u)`` for k = 0..max_power, those of r_k in row k.

    Entry [k, i] multiplies ``b^(k - i) u^i``; it is ``1 / (k + 1)`` for i <= k.
    """
    return np.tril(np.repeat(1.0 / np.arange(1.0, max_power + 2.0)[:, None], max_power + 1, axis=1))


def interval_ratios(U: Array, b: Array, max_power: int) -> Array:
    """``r_k(U_l, b_l)`` for k = 0..max_power, shape (max_power + 1, n, m); U (n, m) has a row per coordinate."""
    table = ratio_coefficients(max_power)
    ratios = np.zeros((max_power + 1, *U.shape))
    for k in range(max_power + 1):
        for i in range(k, -1, -1):  # Horner in u
            ratios[k] = ratios[k] * U + table[k, i] * b[:, None] ** (k - i)
    return ratios


def box_integrals(U: Array, b: Array, basis: MonomialBasis) -> Array:
    """``T(U_j, b, s + 1)`` of [CP20 Corollary 13] for every s in ``basis.sums`` and every column j of `U`, (n_sums, m).

    The columns of U, shape (n, m), are lower corners of boxes; b, shape (n,), is their common upper corner.
    """
    ratios = interval_ratios(U, b, 2 * basis.z_degree)
    values = np.empty((basis.sums.shape[0], U.shape[1]))
    values[0] = np.prod(b[:, None] - U, axis=0)
    for s in range(1, basis.sums.shape[0]):
        np.multiply(values[basis.parent[s]], ratios[basis.power[s], basis.variable[s]], out=values[s])
    return values


def symbolic_entry(basis: MonomialBasis, i: int, j: int) -> dict[str, Any]:
    """One entry of the matrices g, t, t~ and h of [CP20 (23)] as sympy expressions, with t~ corrected.

    The printed corollary writes ``t_ij(y, x)`` where ``t~_ij(x, y) = t_ji(y, x)`` is needed. Of what is returned
    ``"x"``, ``"y"``, ``"a"``, ``"b"``, ``"p"`` are tuples of n symbols, p standing for max(x, y) element by element;
    ``"g"``, ``"t"``, ``"t_mirror"``, ``"h"`` are expressions in them.
    """
    import sympy

    names = {letter: sympy.symbols(f"{letter}1:{basis.n + 1}") for letter in "xyabp"}
    zeta = [int(e) for e in basis.gamma[i] + basis.gamma[j] + 1]
    power = sympy.prod([names["x"][k] ** int(e) for k, e in enumerate(basis.delta[i])])
    power *= sympy.prod([names["y"][k] ** int(e) for k, e in enumerate(basis.delta[j])])
    over = {
        corner: power * sympy.prod([(names["b"][k] ** e - names[corner][k] ** e) / e for k, e in enumerate(zeta)])
        for corner in "pxya"
    }
    g = over["p"]
    t, t_mirror = over["x"] - g, over["y"] - g
    return {**names, "g": g, "t": t, "t_mirror": t_mirror, "h": over["a"] - g - t - t_mirror}
