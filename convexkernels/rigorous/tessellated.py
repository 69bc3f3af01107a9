"""Matrices of tessellated kernels and their adjoint, enclosed.

Entries are sums of products of P, monomials psi of the points and integrals over boxes. The integrals have factors
``b - max(x, y) >= 0``, right to one rounding, and ratios ``r_k(u, b) = sum_i b^(k-i) u^i / (k + 1)``, of size at most
``max(|u|, |b|)^k``. With absolute values for every factor the same sums bound the error of any order of evaluation,
up to `gamma` of the number of roundings. In the blocks of [CP20 Lemma 5] only the part with ``max(x, y)`` is a
matrix; the rest are products of vectors, which with an intercept are taken around their means: coefficients that sum to
0 exactly do not see the difference, and rounding would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.bases.monomials import monomial_basis
from convexkernels.bases.tessellation.adjoint import adjoint
from convexkernels.bases.tessellation.gram import BoxPoints, Tessellation
from convexkernels.rigorous.rounding import UNDERFLOW, U, gamma, product_in_blocks

__all__ = ["EnclosedBlocks", "PairPart", "Separable", "tessellated_entries"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EnclosedBlocks:
    """``P11 - P12 - P21 + P22``, ``P12 - P22`` and P22 of a parameter matrix, each (q, q), with radii."""

    g: Array
    x: Array
    a: Array
    dg: Array
    dx: Array
    da: Array

    @classmethod
    def of_factor(cls, G: Array) -> EnclosedBlocks:
        """Of ``G G'``, where G is made from doubles H and G2 as ``[[H + G2], [G2]]``, exactly."""
        q, rank = len(G) // 2, G.shape[1]
        H, last = G[:q], G[q:]
        error = gamma(rank + 2)
        h, k = np.abs(H), np.abs(last)
        return cls(H @ H.T, H @ last.T, last @ last.T, error * (h @ h.T), error * (h @ k.T), error * (k @ k.T))


def _ratio_roundings(tessellation: Tessellation) -> int:
    # Of Horner's rule 2k + 4 for every factor r_k, of which the k add up to 2 z_degree at most; products of factors.
    return 16 * tessellation.basis.z_degree


def _ratio_bounds(tessellation: Tessellation) -> Array:
    """Upper bounds of the ratios of every sum of z exponents, shape (n_sums,)."""
    corner = np.maximum(np.abs(tessellation.lower), np.abs(tessellation.upper))
    return np.asarray(np.prod(corner ** tessellation.basis.sums.astype(np.float64), axis=1))


def _by_monomial(tessellation: Tessellation, entries: Array) -> Array:
    """Entries over pairs of monomials of (z, x), added up over those with equal monomials of x."""
    index, size = tessellation.basis.x_index, int(tessellation.basis.width[0])
    table = np.zeros((size, size))
    np.add.at(table, (index[:, None], index[None, :]), entries)
    return table


class PairPart:
    """The part with ``max(x, y)``: products of monomials, ratios, and volumes of joint boxes."""

    def __init__(self, tessellation: Tessellation, x: BoxPoints, volumes: Array) -> None:
        basis = tessellation.basis
        self.tessellation, self.x, self.volumes = tessellation, x, volumes
        self.psi = np.abs(x.psi)
        self.ratios = _ratio_bounds(tessellation)[basis.sum_index]
        common = 2 * basis.degree + _ratio_roundings(tessellation) + 2 * basis.n + len(basis.sums) + 16
        together = int(np.bincount(basis.z_index).max())  # entries with one monomial of z are added up first
        self.of_matrix = together + len(basis.z_powers) + len(basis.x_powers) + common
        self.of_adjoint = 2 * len(volumes) + common

    def sums(self, w: Array) -> Array:
        """``sum_j volume_ij |psi_e(x_j)| |w_j|``, shape (m, n_delta), for the two bounds."""
        return self.volumes @ (self.psi * np.abs(w)).T

    def matrix(self, g: Array) -> Array:
        """The matrix of a block ``P11 - P12 - P21 + P22``."""
        zero = np.zeros_like(g)
        return self.tessellation.gram(np.block([[g, zero], [zero, zero]]), self.x, self.x, volumes=self.volumes)

    def image_radius(self, blocks: EnclosedBlocks, sums: Array, roundings: int) -> Array:
        """Radius of ``K w``, roundings of the product with the computed matrix included, shape (m,)."""
        bound = gamma(self.of_matrix + roundings + 2) * np.abs(blocks.g) + 1.001 * blocks.dg
        table = _by_monomial(self.tessellation, bound * self.ratios)
        return np.einsum("em,me->m", self.psi, sums @ table.T) + UNDERFLOW

    def adjoint(self, w: Array) -> Array:
        """The block of the adjoint, shape (q, q), by the code of `bases`."""
        q = self.tessellation.basis.q
        return adjoint(self.tessellation, w, self.x, modulo_constants=True, volumes=self.volumes)[:q, :q]

    def adjoint_radius(self, w: Array, sums: Array) -> Array:
        """Radius of that block."""
        index = self.tessellation.basis.x_index
        pairs = (self.psi * np.abs(w)) @ sums
        pairs = 0.5 * (pairs + pairs.T)[index[:, None], index[None, :]]
        return gamma(self.of_adjoint) * pairs * self.ratios + UNDERFLOW


class Separable:
    """What is made of functions of one point: ``psi_i(x) reach_s(x) psi_j(y)`` and ``psi_i(x) psi_j(y)``.

    ``A`` are the monomials of the points, ``B`` the products with integrals from the point to the corner.
    """

    def __init__(self, tessellation: Tessellation, x: BoxPoints, modulo_constants: bool) -> None:
        basis = tessellation.basis
        self.index, roundings = basis.x_index, _ratio_roundings(tessellation) + 2 * basis.n + 8
        bounds = _ratio_bounds(tessellation)
        keys = self.index[:, None] * len(basis.sums) + basis.sum_index
        used, place = np.unique(keys, return_inverse=True)
        self.place = place.reshape(keys.shape)
        e, s = np.divmod(used, len(basis.sums))
        self.A, self.B = x.psi, x.psi[e] * x.reach[s]
        own = np.prod(tessellation.upper[:, None] - x.columns, axis=0)
        self.dA = gamma(2 * basis.degree) * np.abs(x.psi) if basis.degree > 1 else np.zeros_like(x.psi)
        self.dB = gamma(roundings + 2 * basis.degree + 2) * np.abs(x.psi[e]) * own * bounds[s, None]
        if modulo_constants:
            self.A = self.A - self.A.mean(axis=1, keepdims=True)
            self.B = self.B - self.B.mean(axis=1, keepdims=True)
            self.A[0] = 0.0
            self.dA, self.dB = self.dA + 2.0 * U * np.abs(self.A), self.dB + 2.0 * U * np.abs(self.B)
        self.whole = tessellation.whole[basis.sum_index]
        volume = float(np.prod(tessellation.upper - tessellation.lower))
        self.dwhole = gamma(roundings) * volume * bounds[basis.sum_index]

    def sums(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """``A w`` and ``B w`` with their radii, once per pair of monomials: (q,), (q,), (q, q), (q, q)."""
        v, dv, r, dr = self._applied(w)
        return v[self.index], dv[self.index], r[self.place], dr[self.place]

    def _applied(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """``A w`` and ``B w`` with their radii."""
        size, (v, roundings), (r, _) = np.abs(w), *(product_in_blocks(part, w[:, None]) for part in (self.A, self.B))
        error = gamma(roundings + 2)
        dv, dr = ((error * np.abs(part) + d) @ size for part, d in ((self.A, self.dA), (self.B, self.dB)))
        return v[:, 0], dv + UNDERFLOW, r[:, 0], dr + UNDERFLOW

    def measure(self, blocks: EnclosedBlocks, w: Array) -> tuple[Array, Array, float, float]:
        """``K w`` with its radius, ``w'K w`` with its radius."""
        v, dv, r, dr = self.sums(w)
        count = gamma(2 * self.index.size**2 + 8)
        first, dfirst = _times(blocks.x, blocks.dx, v[None, :], dv[None, :])
        second, dsecond = _times(blocks.x, blocks.dx, r, dr)
        weight, dweight = _times(blocks.a, blocks.da, self.whole, self.dwhole)
        third, dthird = _times(weight, dweight, v[None, :], dv[None, :])
        beta, dbeta = (self._added(self.place, part, len(self.B)) for part in (first, dfirst + count * np.abs(first)))
        alpha, dalpha = np.zeros(len(self.A)), np.zeros(len(self.A))
        for part, radius, where in ((second.T, dsecond.T, self.index), (third, dthird, self.index)):
            places = np.broadcast_to(where[:, None], part.shape)
            alpha += self._added(places, part, len(self.A))
            dalpha += self._added(places, radius + count * np.abs(part), len(self.A))
        return self._evaluated(w, alpha, dalpha, beta, dbeta)

    def _evaluated(
        self, w: Array, alpha: Array, dalpha: Array, beta: Array, dbeta: Array
    ) -> tuple[Array, Array, float, float]:
        error = gamma(len(alpha) + len(beta) + 4)
        f = alpha @ self.A + beta @ self.B
        radius = dalpha @ (np.abs(self.A) + self.dA) + dbeta @ (np.abs(self.B) + self.dB)
        radius += np.abs(alpha) @ (self.dA + error * np.abs(self.A)) + np.abs(beta) @ (self.dB + error * np.abs(self.B))
        v, dv, r, dr = self._applied(w)
        form = float(alpha @ v + beta @ r)
        spread = dalpha @ (np.abs(v) + dv) + dbeta @ (np.abs(r) + dr) + np.abs(alpha) @ dv + np.abs(beta) @ dr
        spread += error * (np.abs(alpha) @ np.abs(v) + np.abs(beta) @ np.abs(r))
        return f, radius + UNDERFLOW, form, float(spread) + UNDERFLOW

    @staticmethod
    def _added(places: NDArray[Any], entries: Array, size: int) -> Array:
        return np.asarray(np.bincount(places.ravel(), weights=entries.ravel(), minlength=size), dtype=np.float64)

    def adjoint(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """The blocks of the adjoint for x-part and constant part, with their radii, each (q, q)."""
        v, dv, r, dr = self.sums(w)
        from_x, dfrom_x = _times(r, dr, v[None, :], dv[None, :])
        square, dsquare = _times(v[:, None], dv[:, None], v[None, :], dv[None, :])
        whole, dwhole = _times(self.whole, self.dwhole, square, dsquare)
        return from_x, dfrom_x, whole, dwhole


def _times(a: Array, da: Array, b: Array, db: Array) -> tuple[Array, Array]:
    """Product of enclosed numbers."""
    return a * b, np.abs(a) * db + da * (np.abs(b) + db) + gamma(2) * np.abs(a * b)


def tessellated_entries(kernel: Any, X: Array, Y: Array) -> tuple[Array, Array]:
    """Values and radii of a `TessellatedKernel` whose P is exactly what it says, symmetric part only."""
    lower, upper = (np.asarray(side, dtype=np.float64) for side in (kernel.lower, kernel.upper))
    t = Tessellation(monomial_basis(len(lower), kernel.degree, kernel.z_degree, kernel.tasks), lower, upper)
    P = np.asarray(kernel.P, dtype=np.float64)
    P = 0.5 * (P + P.T)
    x, y, basis, q = t.points(X), t.points(Y), t.basis, t.basis.q
    size, ratios = np.abs(P), _ratio_bounds(t)[t.basis.sum_index]
    pair = _by_monomial(t, (size[:q, :q] + size[:q, q:] + size[q:, :q] + size[q:, q:]) * ratios)
    single = _by_monomial(t, (size[:q, q:] + size[q:, q:]) * ratios)
    constant = float(np.prod(upper - lower)) * _by_monomial(t, size[q:, q:] * ratios)
    left, right = np.abs(x.psi), np.abs(y.psi)
    own, other = (np.prod(upper[:, None] - p.columns, axis=0) for p in (x, y))
    bound = (left.T @ pair @ right) * t.volumes(x, y) + left.T @ constant @ right
    bound += (left * own).T @ single @ right + left.T @ single.T @ (right * other)
    roundings = 3 * q + len(basis.z_powers) + 3 * len(basis.x_powers) + len(basis.sums) + 2 * basis.degree
    return t.gram(P, x, y), gamma(roundings + _ratio_roundings(t) + 2 * basis.n + 40) * bound
