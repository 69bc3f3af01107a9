"""Evaluation of k(x, y) = integral over [a, b] of N(z, x)' P N(z, y) dz and of its adjoint in P.

With ``P = [[P11, P12], [P21, P22]]`` the four products of indicators regroup [CP20 Lemma 5] into

    k = (g-part with P11 - P12 - P21 + P22, box from max(x, y))  + (P12 - P22, box from x)
        + (P21 - P22, box from y)  + (P22, the whole box).

Only the first couples x and y; the others are products of tall matrices. Nothing is formed as the
difference of larger quantities, so the g-part keeps its relative accuracy even where it is many orders
of magnitude smaller than the volume of the box.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases.integrals import box_integrals, ratio_coefficients
from convexkernels.bases.monomials import MonomialBasis, monomials
from convexkernels.threads import in_parts

__all__ = ["Blocks", "BoxPoints", "Tessellation"]


@dataclass(frozen=True, eq=False)
class BoxPoints:
    """Points of the box and what every kernel matrix on them needs.

    Attributes
    ----------
    columns : ndarray of shape (n, m)
        The points, one per column, moved to the nearest point of the box.
    psi : ndarray of shape (n_delta, m)
        Monomials x^delta.
    reach : ndarray of shape (n_sums, m)
        ``T(x, b, s + 1)``.
    """

    columns: Array
    psi: Array
    reach: Array

    def take(self, index: Index) -> BoxPoints:
        """Return the points at `index`."""
        return BoxPoints(*(np.ascontiguousarray(part[:, index]) for part in (self.columns, self.psi, self.reach)))


@dataclass(frozen=True, eq=False)
class Blocks:
    """P regrouped as in [CP20 (13)]: `g` = P11 - P12 - P21 + P22, `x` = P12 - P22 and `a` = P22, each (q, q)."""

    g: Array
    x: Array
    a: Array

    @classmethod
    def of(cls, P: Array) -> Blocks:
        """Regroup a symmetric (2q, 2q) matrix."""
        q = P.shape[0] // 2
        P11, P12, P22 = P[:q, :q], P[:q, q:], P[q:, q:]
        return cls(P11 - P12 - P12.T + P22, P12 - P22, P22)


class Tessellation:
    """A monomial basis on a box: matrices of tessellated kernels and their adjoint.

    Parameters
    ----------
    basis : MonomialBasis
    lower, upper : ndarray of shape (n,)
        The box [a, b].
    """

    def __init__(self, basis: MonomialBasis, lower: Array, upper: Array) -> None:
        self.basis = basis
        self.lower = lower
        self.upper = upper

    def points(self, X: Array) -> BoxPoints:
        """Prepare a table of points, shape (m, n); those outside move to the nearest point of the box."""
        columns = np.ascontiguousarray(np.clip(X, self.lower, self.upper).T)
        return BoxPoints(
            columns, monomials(columns.T, self.basis.x_powers), box_integrals(columns, self.upper, self.basis)
        )

    @cached_property
    def whole(self) -> Array:
        """``T(a, b, s + 1)`` of the whole box, shape (n_sums,)."""
        return box_integrals(self.lower[:, None], self.upper, self.basis)[:, 0]

    @cached_property
    def _tables(self) -> Any:
        basis = self.basis
        offset = np.concatenate([[0], np.cumsum(basis.width)[:-1]])
        table = ratio_coefficients(2 * basis.z_degree)
        k = np.arange(table.shape[0])
        # horner[l, k, i] = table[k, i] b_l^(k - i), so that r_k(u, b_l) = sum_i horner[l, k, i] u^i.
        horner = table * self.upper[:, None, None] ** np.maximum(k[:, None] - k[None, :], 0)
        return horner, basis.parent, basis.variable, basis.power, basis.width, offset

    def volumes(self, x: BoxPoints, y: BoxPoints, out: Array | None = None) -> Array:
        """``prod_l (b_l - max(x_l, y_l))`` for all pairs, shape (m_x, m_y)."""
        from convexkernels.bases.tiles import pair_volumes

        if out is None:
            out = np.empty((x.columns.shape[1], y.columns.shape[1]))
        in_parts(pair_volumes, len(out), x.columns, y.columns, self.upper, out)
        return out

    def gram(
        self,
        P: Array,
        x: BoxPoints,
        y: BoxPoints,
        *,
        modulo_constants: bool = False,
        volumes: Array | None = None,
        out: Array | None = None,
    ) -> Array:
        """Kernel matrix of prepared points, shape (m_x, m_y).

        Parameters
        ----------
        P : ndarray of shape (2q, 2q)
            Symmetric.
        modulo_constants : bool
            Leave out every term of the form u(x) + v(y). They change neither ``w' K w`` nor, up to a
            constant, ``K w`` when the entries of w sum to 0, and can be larger than the rest by many
            orders of magnitude.
        volumes : ndarray of shape (m_x, m_y), optional
            The result of `volumes`, when it is kept between calls.
        out : ndarray of shape (m_x, m_y), optional
            Where to write; may be float32.
        """
        blocks = Blocks.of(P)
        coefficients, splits = self._pair_coefficients(blocks.g, x)
        n_delta = self.basis.width[0]
        if out is None:
            out = np.empty((x.columns.shape[1], y.columns.shape[1]))
        product = np.ascontiguousarray(coefficients[:, :n_delta]).astype(out.dtype, copy=False)
        np.matmul(product, y.psi.astype(out.dtype, copy=False), out=out)
        if splits > 1:
            from convexkernels.bases.tiles import shifted_gram

            arguments = (x.columns, y.columns, *self._tables, coefficients, y.psi, out)
            in_parts(shifted_gram, len(out), *arguments)
        if volumes is None:
            volumes = self.volumes(x, y)
        out *= volumes
        self._add_separable(blocks, x, y, modulo_constants, out)
        return out

    def _pair_coefficients(self, Q: Array, x: BoxPoints) -> tuple[Array, int]:
        """Coefficients c_i[s, e] with ``g-part(x_i, y) = T0 sum_s R_s sum_e c_i[s, e] y^delta_e``, (m, sum width)."""
        basis = self.basis
        total = basis.sums.shape[0]
        offset = self._tables[-1]
        result = np.zeros((x.psi.shape[1], int(basis.width.sum())))
        groups = [np.flatnonzero(basis.z_index == g) for g in range(len(basis.z_powers))]
        for g, rows in enumerate(groups):
            psi = x.psi[basis.x_index[rows]]
            for h, columns in enumerate(groups):
                block = Q[np.ix_(rows, columns)]
                if block.any():
                    start = offset[basis.pair_sum[g, h]]
                    result[:, start + basis.x_index[columns]] += psi.T @ block
        return result, total

    def _separable(self, blocks: Blocks, x: BoxPoints, modulo_constants: bool = False) -> Array:
        """E with ``x-part + half the constant part = E(x)' psi(y)``, shape (n_delta, m)."""
        basis = self.basis
        E = np.zeros((basis.width[0], x.psi.shape[1]))
        whole = 0.5 * blocks.a * self.whole[basis.sum_index]
        if modulo_constants:  # a constant in x times a monomial of y is a function of y alone
            whole[basis.x_index == 0] = 0.0
        np.add.at(E, basis.x_index, whole.T @ x.psi[basis.x_index])
        for j in range(basis.q):  # columns of P12 - P22, one monomial of y at a time
            column = blocks.x[:, j]
            used = np.flatnonzero(column)
            if used.size:
                sums = basis.sum_index[used, j]
                E[basis.x_index[j]] += np.einsum("i,im,im->m", column[used], x.psi[basis.x_index[used]], x.reach[sums])
        return E

    def constants(self, P: Array, x: BoxPoints) -> Array:
        """The u with ``k(x, y) = u(x) + u(y) + (what gram leaves modulo constants)``, shape (m,)."""
        blocks = Blocks.of(P)
        basis = self.basis
        whole = 0.5 * (blocks.a * self.whole[basis.sum_index])[basis.x_index == 0]
        whole[:, basis.x_index == 0] = 0.0  # these are in E_0 already
        return self._separable(blocks, x)[0] + whole.sum(axis=0) @ x.psi[basis.x_index]

    def _add_separable(self, blocks: Blocks, x: BoxPoints, y: BoxPoints, modulo_constants: bool, out: Array) -> None:
        Ex = self._separable(blocks, x, modulo_constants)
        Ey = Ex if y is x else self._separable(blocks, y, modulo_constants)
        first = 1 if modulo_constants else 0
        left = np.ascontiguousarray(np.vstack([Ex[first:], x.psi[first:]]).T).astype(out.dtype, copy=False)
        right = np.vstack([y.psi[first:], Ey[first:]]).astype(out.dtype, copy=False)
        for start in range(0, out.shape[0], 1024):  # a second full matrix would double the memory
            stop = min(out.shape[0], start + 1024)
            out[start:stop] += left[start:stop] @ right

    def diagonal(self, P: Array, x: BoxPoints) -> Array:
        """``k(x, x)`` for every point, shape (m,)."""
        blocks = Blocks.of(P)
        basis = self.basis
        psi = x.psi[basis.x_index]
        both = np.zeros(x.psi.shape[1])
        for i in range(basis.q):
            weight = (blocks.g[i] + 2.0 * blocks.x[:, i])[:, None] * x.reach[basis.sum_index[i]]
            weight += (blocks.a[i] * self.whole[basis.sum_index[i]])[:, None]
            both += psi[i] * np.einsum("jm,jm->m", weight, psi)
        return both

    def adjoint(self, w: Array, x: BoxPoints, *, modulo_constants: bool = False, volumes: Array | None = None) -> Array:
        """The matrix D with ``<D, P> = w' K(P) w`` for every P, shape (2q, 2q).

        `modulo_constants` promises that the entries of w sum to 0 and uses it exactly.
        """
        basis = self.basis
        support = np.flatnonzero(w)
        points, w = x.take(support), w[support]
        g = self._pair_adjoint(w, points, volumes, support)
        weighted = points.psi * w
        v = weighted.sum(axis=1)
        if modulo_constants:
            v[0] = 0.0
        reach = weighted @ points.reach.T  # (n_delta, n_sums): sum_k w_k x_k^delta T(x_k, b, s + 1)
        from_x = reach[basis.x_index[:, None], basis.sum_index] * v[basis.x_index][None, :]
        whole = self.whole[basis.sum_index] * np.outer(v, v)[np.ix_(basis.x_index, basis.x_index)]
        return np.block([[g, from_x - g], [from_x.T - g, g - from_x - from_x.T + whole]])

    def pullback(
        self, M: Array, x: BoxPoints, *, modulo_constants: bool = False, volumes: Array | None = None
    ) -> Array:
        """The matrix D with ``<D, P> = <M, K(P)>`` for every P and a symmetric matrix M, shape (2q, 2q).

        `modulo_constants` promises that the rows of M sum to 0. O(m^2 n) without z in the monomials.
        """
        basis, n_delta = self.basis, self.basis.width[0]
        index, sums_of = basis.x_index, basis.sum_index
        sums = np.empty((len(M), int(basis.width.sum())))
        if len(basis.sums) > 1:
            from convexkernels.bases.tiles import shifted_adjoint

            arguments = (x.columns, x.columns, self.upper, *self._tables, M, x.psi, sums)
            in_parts(shifted_adjoint, len(sums), *arguments)
        sums[:, :n_delta] = (M * (self.volumes(x, x) if volumes is None else volumes)) @ x.psi.T
        g = _symmetric((x.psi @ sums)[index[:, None], self._tables[-1][sums_of] + index[None, :]])
        right = x.psi @ M
        if modulo_constants:
            right[0] = 0.0
        reach = np.array([(x.psi * row) @ right.T for row in x.reach])  # (n_sums, n_delta, n_delta)
        from_x = reach[sums_of, index[:, None], index[None, :]]
        pairs = x.psi @ right.T
        if modulo_constants:
            pairs[0] = 0.0
        whole = self.whole[sums_of] * pairs[index[:, None], index[None, :]]
        return np.block([[g, from_x - g], [from_x.T - g, g - from_x - from_x.T + whole]])

    def derivative(self, w: Array, x: BoxPoints, rows: Index, *, modulo_constants: bool = False) -> Array:
        """Derivative of ``(K(P) w)_rows`` in P, shape (n_rows, 2q, 2q): ``<out[r], dP> = (K(dP) w)_r``, symmetric in P.

        With `modulo_constants`, up to a constant common to all rows.
        """
        basis = self.basis
        support = np.flatnonzero(w)
        columns, w = x.take(support), w[support]
        here = x.take(rows)
        index, sums_of = basis.x_index, basis.sum_index
        pair_sums = self._pair_sums(w, here, columns, None)
        at = self._tables[-1][sums_of] + index[None, :]
        psi = here.psi[index].T  # (n_rows, q)
        varying = psi.copy()
        weighted = columns.psi * w
        v = weighted.sum(axis=1)
        if modulo_constants:
            v[0] = 0.0
            varying[:, index == 0] = 0.0
        g = psi[:, :, None] * pair_sums[:, at]
        reach = (weighted @ columns.reach.T)[index[:, None], sums_of]
        from_x = (
            psi[:, :, None] * here.reach.T[:, sums_of] * v[index][None, None, :] + reach[None] * varying[:, None, :]
        )
        whole = self.whole[sums_of][None] * varying[:, :, None] * v[index][None, None, :]
        g, whole = _symmetric(g), _symmetric(whole)
        half = 0.5 * from_x - g
        last = g - _symmetric(from_x) + whole
        top = np.concatenate([g, half], axis=2)
        return np.concatenate([top, np.concatenate([np.swapaxes(half, 1, 2), last], axis=2)], axis=1)

    def _pair_adjoint(self, w: Array, x: BoxPoints, volumes: Array | None, support: Index) -> Array:
        """``sum_kl w_k w_l x_k^delta_i x_l^delta_j T(max(x_k, x_l), b, gamma_i + gamma_j + 1)``, shape (q, q)."""
        basis = self.basis
        part = None if volumes is None else (volumes, support)
        table = (x.psi * w) @ self._pair_sums(w, x, x, part)
        return _symmetric(table[basis.x_index[:, None], self._tables[-1][basis.sum_index] + basis.x_index[None, :]])

    def _pair_sums(self, w: Array, x: BoxPoints, y: BoxPoints, known: tuple[Array, Index] | None) -> Array:
        """``out[i, offset[s] + e] = sum_j w_j y_j^delta_e T(max(x_i, y_j), b, s + 1)``; `known`: volumes for x = y."""
        n_delta = self.basis.width[0]
        weighted = y.psi * w
        sums = np.empty((x.psi.shape[1], int(self.basis.width.sum())))
        if len(self.basis.sums) > 1:
            from convexkernels.bases.tiles import shifted_adjoint

            arguments = (x.columns, y.columns, self.upper, *self._tables, w[None, :], y.psi, sums)
            in_parts(shifted_adjoint, len(sums), *arguments)
        for start in range(0, len(sums), 1024):
            stop = min(len(sums), start + 1024)
            if known is None:
                part = self.volumes(x.take(np.arange(start, stop)), y)
            else:
                volumes, support = known
                part = volumes[np.ix_(support[start:stop], support)]
            sums[start:stop, :n_delta] = part @ weighted.T
        return sums


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + np.swapaxes(A, -1, -2))
