"""Evaluation of k(x, y) = integral over [a, b] of N(z, x)' P N(z, y) dz.

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
from convexkernels.exceptions import InvalidInputError
from convexkernels.threads import in_parts


@dataclass(frozen=True, eq=False)
class BoxPoints:
    """Points of the box, one per column, moved to the nearest point of it, and what every kernel matrix on them needs.

    `psi`, shape (n_delta, m), are monomials x^delta; with tasks each of them once for every task, 0 but for that of the
    point. `reach`, shape (n_sums, m), is ``T(x, b, s + 1)``.
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


def split_tasks(X: Array, tasks: int) -> tuple[Array, Array]:
    """The features of a table, and its last column: the tasks of the rows, refused where they are none of 0, 1, ..."""
    if X.shape[1] < 2:
        raise InvalidInputError(
            f"with tasks={tasks} the last column of X is the task of a row; X has {X.shape[1]} column and no features."
        )
    codes = X[:, -1]
    bad = np.flatnonzero((codes != np.floor(codes)) | (codes < 0) | (codes >= tasks))
    if bad.size:
        raise InvalidInputError(
            f"with tasks={tasks} the last column of X must be one of 0, ..., {tasks - 1}, "
            f"got X[{bad[0]}, {X.shape[1] - 1}] = {codes[bad[0]]:g}; number the tasks (sklearn.preprocessing."
            "OrdinalEncoder does), and leave out rows of other ones."
        )
    return X[:, :-1], codes


class Tessellation:
    """A monomial basis on the box [lower, upper]: matrices of tessellated kernels and their adjoint."""

    def __init__(self, basis: MonomialBasis, lower: Array, upper: Array) -> None:
        self.basis = basis
        self.lower = lower
        self.upper = upper

    @property
    def n_columns(self) -> int:
        """Columns of a table of points: the features, and the task where there are any."""
        return len(self.lower) + (self.basis.tasks is not None)

    def points(self, X: Array) -> BoxPoints:
        """Prepare a table of points, shape (m, n_columns); those outside move to the nearest point of the box."""
        features, codes = (X, None) if self.basis.tasks is None else split_tasks(X, self.basis.tasks)
        columns = np.ascontiguousarray(np.clip(features, self.lower, self.upper).T)
        psi = monomials(columns.T, self.basis.x_powers)
        if codes is not None:
            belongs = codes == np.arange(self.basis.tasks or 1)[:, None]
            psi = (psi[:, None, :] * belongs).reshape(-1, len(X))
        return BoxPoints(columns, psi, box_integrals(columns, self.upper, self.basis))

    @cached_property
    def whole(self) -> Array:
        """``T(a, b, s + 1)`` of the whole box, shape (n_sums,)."""
        return box_integrals(self.lower[:, None], self.upper, self.basis)[:, 0]

    @cached_property
    def tables(self) -> Any:
        """What the compiled loops need to know of the basis; the last is where each sum begins in a row of sums."""
        basis = self.basis
        offset = np.concatenate([[0], np.cumsum(basis.width)[:-1]])
        table = ratio_coefficients(2 * basis.z_degree)
        k = np.arange(table.shape[0])
        # horner[l, k, i] = table[k, i] b_l^(k - i), so that r_k(u, b_l) = sum_i horner[l, k, i] u^i.
        horner = table * self.upper[:, None, None] ** np.maximum(k[:, None] - k[None, :], 0)
        return horner, basis.parent, basis.variable, basis.power, basis.width, offset

    def volumes(self, x: BoxPoints, y: BoxPoints, out: Array | None = None) -> Array:
        """``prod_l (b_l - max(x_l, y_l))`` for all pairs, shape (m_x, m_y)."""
        from convexkernels.bases.tessellation.tiles import pair_volumes

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
        coefficients = self.pair_coefficients(blocks.g, x)
        n_delta = self.basis.width[0]
        if out is None:
            out = np.empty((x.columns.shape[1], y.columns.shape[1]))
        product = np.ascontiguousarray(coefficients[:, :n_delta]).astype(out.dtype, copy=False)
        np.matmul(product, y.psi.astype(out.dtype, copy=False), out=out)
        if len(self.basis.sums) > 1:
            from convexkernels.bases.tessellation.tiles import shifted_gram

            arguments = (x.columns, y.columns, *self.tables, coefficients, y.psi, out)
            in_parts(shifted_gram, len(out), *arguments)
        out *= self.volumes(x, y) if volumes is None else volumes
        self._add_separable(blocks, x, y, modulo_constants, out)
        return out

    def pair_coefficients(self, Q: Array, x: BoxPoints) -> Array:
        """Coefficients c_i[s, e] with ``g-part(x_i, y) = T0 sum_s R_s sum_e c_i[s, e] y^delta_e``, (m, sum width)."""
        basis, offset = self.basis, self.tables[-1]
        result = np.zeros((x.psi.shape[1], int(basis.width.sum())))
        groups = [np.flatnonzero(basis.z_index == g) for g in range(len(basis.z_powers))]
        for g, rows in enumerate(groups):
            psi = x.psi[basis.x_index[rows]]
            for h, columns in enumerate(groups):
                block = Q[np.ix_(rows, columns)]
                if block.any():
                    start = offset[basis.pair_sum[g, h]]
                    result[:, start + basis.x_index[columns]] += psi.T @ block
        return result

    def separable(self, blocks: Blocks, x: BoxPoints, modulo_constants: bool = False) -> Array:
        """E with ``x-part + half the constant part = E(x)' psi(y)``, shape (n_delta, m)."""
        basis, psi = self.basis, x.psi[self.basis.x_index]
        whole = 0.5 * blocks.a * self.whole[basis.sum_index]
        if modulo_constants:  # a constant in x times a monomial of y is a function of y alone
            whole[basis.x_index == 0] = 0.0
        parts = whole.T @ psi
        for g, sums in enumerate(basis.pair_sum[:, basis.z_index]):  # the rows of P12 - P22 with the same power of z
            rows = basis.z_index == g
            parts += (blocks.x[rows].T @ psi[rows]) * x.reach[sums]
        E = np.zeros((basis.width[0], x.psi.shape[1]))
        np.add.at(E, basis.x_index, parts)
        return E

    def constants(self, P: Array, x: BoxPoints) -> Array:
        """The u with ``k(x, y) = u(x) + u(y) + (what gram leaves modulo constants)``, shape (m,)."""
        blocks = Blocks.of(P)
        basis = self.basis
        whole = 0.5 * (blocks.a * self.whole[basis.sum_index])[basis.x_index == 0]
        whole[:, basis.x_index == 0] = 0.0  # these are in E_0 already
        return self.separable(blocks, x)[0] + whole.sum(axis=0) @ x.psi[basis.x_index]

    def _add_separable(self, blocks: Blocks, x: BoxPoints, y: BoxPoints, modulo_constants: bool, out: Array) -> None:
        Ex = self.separable(blocks, x, modulo_constants)
        Ey = Ex if y is x else self.separable(blocks, y, modulo_constants)
        first = 1 if modulo_constants else 0
        left = np.ascontiguousarray(np.vstack([Ex[first:], x.psi[first:]]).T).astype(out.dtype, copy=False)
        right = np.vstack([y.psi[first:], Ey[first:]]).astype(out.dtype, copy=False)
        for start in range(0, out.shape[0], 1024):  # a second full matrix would double the memory
            stop = min(out.shape[0], start + 1024)
            out[start:stop] += left[start:stop] @ right

    def diagonal(self, P: Array, x: BoxPoints, *, modulo_constants: bool = False) -> Array:
        """``k(x, x)`` for every point, or what `gram` has there, shape (m,)."""
        blocks, first = Blocks.of(P), 1 if modulo_constants else 0
        separable = np.einsum("dm,dm->m", self.separable(blocks, x, modulo_constants)[first:], x.psi[first:])
        return self._paired(blocks.g, x) + 2.0 * separable

    def _paired(self, g: Array, x: BoxPoints) -> Array:
        """The part of the diagonal with `g`, which is that of a kernel."""
        psi = x.psi[self.basis.x_index]
        both = np.zeros(x.psi.shape[1])
        for i, sums in enumerate(self.basis.sum_index):
            both += psi[i] * np.einsum("jm,jm->m", g[i][:, None] * x.reach[sums], psi)
        return both

    def sizes(self, P: Array, x: BoxPoints) -> Array:
        """Sizes s: entries of `gram` modulo constants are made of terms of at most ``sqrt(s_i s_j)`` together, (m,)."""
        blocks = Blocks.of(P)
        absolute = BoxPoints(x.columns, np.abs(x.psi), np.abs(x.reach))
        signs = np.copysign(1.0, self.whole[self.basis.sum_index])
        E = self.separable(Blocks(blocks.g, np.abs(blocks.x), signs * np.abs(blocks.a)), absolute, True)[1:]
        # |E_i||psi_j| + |psi_i||E_j| is at most the product of such lengths, whatever the scale of E.
        left, right = np.square(E).sum(axis=0), np.square(x.psi[1:]).sum(axis=0)
        scale = np.sqrt(right.mean() / left.mean()) if left.any() and right.any() else 1.0
        return np.maximum(self._paired(blocks.g, x), 0.0) + scale * left + right / scale * bool(left.any())
