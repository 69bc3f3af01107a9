"""Tessellated kernels evaluated straight from their definition, the slow independent oracle.

``k(x, y) = integral over the box of N(z, x)' P N(z, y) dz`` with N from equation (10). The box is cut
along every coordinate of x and y; on each tile the integrand is one polynomial in z, which a
Gauss-Legendre rule with degree + 1 nodes integrates exactly. What is left is rounding, and it is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from convexkernels.arrays import Array, Mask

EPS = float(np.finfo(np.float64).eps)

Block = Callable[[Array, Array], Mask]


@dataclass(frozen=True)
class Value:
    """A number and a bound on the rounding error it carries."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Case:
    """A tessellated kernel: matrix P (2q, 2q), box [a, b], degree d; see :func:`exponents`."""

    P: Array
    a: Array
    b: Array
    degree: int

    @property
    def blocks(self) -> tuple[Array, Array, Array, Array]:
        """P11, P12, P21, P22 of Lemma 5 (Q, R, R', S of Corollary 13)."""
        q = self.P.shape[0] // 2
        return self.P[:q, :q], self.P[:q, q:], self.P[q:, :q], self.P[q:, q:]


def exponents(n: int, degree: int) -> tuple[Array, Array]:
    """Exponents gamma (of z) and delta (of x) of all monomials with |gamma| + |delta| <= degree."""
    rows = [e for e in product(range(degree + 1), repeat=2 * n) if sum(e) <= degree]
    table = np.array(sorted(rows, key=lambda e: (sum(e), e)), dtype=np.float64)
    return table[:, :n], table[:, n:]


def monomials(z: Array, x: Array, degree: int) -> Array:
    """Z_d(z, x) for every row of `z`, shape (len(z), q)."""
    gamma, delta = exponents(x.size, degree)
    return np.prod(z[:, None, :] ** gamma, axis=2) * np.prod(x**delta, axis=1)


def block_complement(z: Array, x: Array) -> Mask:
    """Second block of N lives where not z >= x: the reading Lemma 5 and Corollary 13 use."""
    return np.logical_not(np.all(z >= x, axis=1))


def block_printed(z: Array, x: Array) -> Mask:
    """Second block of N lives where x >= z: equation (10) as printed."""
    return np.asarray(np.all(x >= z, axis=1))


def features(z: Array, x: Array, degree: int, block: Block) -> Array:
    """N(z, x) of [CP20 (10)] for every row of `z`, shape (len(z), 2q)."""
    Z = monomials(z, x, degree)
    first = np.logical_not(block_complement(z, x))
    return np.hstack([Z * first[:, None], Z * block(z, x)[:, None]])


def integral(case: Case, x: Array, y: Array, block: Block = block_complement) -> Value:
    """The defining integral [CP20 (7)] with N from [CP20 (10)]."""
    nodes, weights = np.polynomial.legendre.leggauss(case.degree + 1)
    z_axes, w_axes = [], []
    for low, high, u, v in zip(case.a, case.b, x, y, strict=True):
        cuts = np.unique(np.clip([low, u, v, high], low, high))
        middle, radius = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
        z_axes.append((middle[:, None] + radius[:, None] * nodes).ravel())
        w_axes.append((radius[:, None] * weights).ravel())
    z = np.stack([axis.ravel() for axis in np.meshgrid(*z_axes, indexing="ij")], axis=1)
    w = np.prod(np.stack([axis.ravel() for axis in np.meshgrid(*w_axes, indexing="ij")]), axis=0)
    left, right = features(z, x, case.degree, block), features(z, y, case.degree, block)
    value = float(np.einsum("k,ki,ij,kj->", w, left, case.P, right))
    size = float(np.einsum("k,ki,ij,kj->", w, np.abs(left), np.abs(case.P), np.abs(right)))
    # A sum of N products of few factors is off by at most about (N + factors) eps times the sum of
    # absolute values; the powers of z add the degree, nodes and weights a few units more.
    operations = w.size + 2 * case.P.shape[0] + 4 * case.degree + 8 * x.size
    return Value(value, operations * EPS * size)


def _tail(u: Array, b: Array, zeta: Array) -> tuple[Array, Array]:
    """T(u, b, zeta) of [CP20 Corollary 13], and the same with every sign positive."""
    upper, lower = b**zeta, u**zeta
    return np.prod((upper - lower) / zeta, axis=-1), np.prod((np.abs(upper) + np.abs(lower)) / zeta, axis=-1)


def _zeta(n: int, degree: int) -> Array:
    gamma, _ = exponents(n, degree)
    return gamma[:, None, :] + gamma[None, :, :] + 1.0


def _outer(case: Case, x: Array, y: Array) -> Array:
    """The matrix x^delta_i y^delta_j."""
    _, delta = exponents(x.size, case.degree)
    return np.outer(np.prod(x**delta, axis=1), np.prod(y**delta, axis=1))


def _rounded(case: Case, terms: list[Array], sizes: list[Array], x: Array) -> Value:
    operations = sum(term.size for term in terms) + 4 * case.degree + 8 * x.size
    return Value(float(sum(term.sum() for term in terms)), operations * EPS * float(sum(size.sum() for size in sizes)))


def lemma_5(case: Case, x: Array, y: Array) -> Value:
    """[CP20 (13)]: four integrals over boxes, three of which separate x from y."""
    P11, P12, P21, P22 = case.blocks
    parts = ((P11 - P12 - P21 + P22, np.maximum(x, y)), (P12 - P22, x), (P21 - P22, y), (P22, case.a))
    return four_parts(case, x, y, parts)


def gram(case: Case, X: Array, Y: Array) -> Array:
    """Kernel matrix by [CP20 Lemma 5] for all pairs of rows at once, points inside the box."""
    P11, P12, P21, P22 = case.blocks
    zeta = _zeta(X.shape[1], case.degree)
    _, delta = exponents(X.shape[1], case.degree)
    Zx = np.prod(X[:, None, :] ** delta, axis=2)
    Zy = np.prod(Y[:, None, :] ** delta, axis=2)
    at_max = _tail(np.maximum(X[:, None, :], Y[None, :, :])[:, :, None, None, :], case.b, zeta)[0]
    at_x = _tail(X[:, None, None, :], case.b, zeta)[0]
    at_y = _tail(Y[:, None, None, :], case.b, zeta)[0]
    at_a = _tail(case.a, case.b, zeta)[0]
    K = np.einsum("ai,bj,abij,ij->ab", Zx, Zy, at_max, P11 - P12 - P21 + P22)
    K += np.einsum("ai,aij,bj->ab", Zx, at_x * (P12 - P22), Zy)
    K += np.einsum("ai,bij,bj->ab", Zx, at_y * (P21 - P22), Zy)
    return K + np.einsum("ai,ij,bj->ab", Zx, at_a * P22, Zy)


def lemma_5_swapped(case: Case, x: Array, y: Array) -> Value:
    """Lemma 5 with Q2 and Q3 exchanged: false on purpose."""
    P11, P12, P21, P22 = case.blocks
    parts = ((P11 - P12 - P21 + P22, np.maximum(x, y)), (P21 - P22, x), (P12 - P22, y), (P22, case.a))
    return four_parts(case, x, y, parts)


def orthant_polynomial(case: Case, x: Array, y: Array, beta: Mask) -> Value:
    """The polynomial k_beta [CP20 Lemma 5, (11), (12)]: its first lower limit is y where beta is 1, x where it is 0."""
    P11, P12, P21, P22 = case.blocks
    limit = np.where(beta, y, x)
    parts = ((P11 - P12 - P21 + P22, limit), (P12 - P22, x), (P21 - P22, y), (P22, case.a))
    return four_parts(case, x, y, parts)


def four_parts(case: Case, x: Array, y: Array, parts: tuple[tuple[Array, Array], ...]) -> Value:
    """Sum over (Q, u) of ``Q_ij x^delta_i y^delta_j T(u, b, gamma_i + gamma_j + 1)``."""
    zeta, outer = _zeta(x.size, case.degree), _outer(case, x, y)
    terms, sizes = [], []
    for Q, limit in parts:
        tail, size = _tail(limit, case.b, zeta)
        terms.append(Q * outer * tail)
        sizes.append(np.abs(Q * outer) * size)
    return _rounded(case, terms, sizes, x)


def corollary_13(case: Case, x: Array, y: Array, third: str = "t_ji(y,x)") -> Value:
    """[CP20 (23)] with the third map as printed (``t_ij(y,x)``) or as it has to be (``t_ji(y,x)``)."""
    Q, R, Rt, S = case.blocks
    zeta = _zeta(x.size, case.degree)
    outer, outer_yx = _outer(case, x, y), _outer(case, y, x)
    at_max, max_size = _tail(np.maximum(x, y), case.b, zeta)
    at_x, x_size = _tail(x, case.b, zeta)
    at_y, y_size = _tail(y, case.b, zeta)
    at_a, a_size = _tail(case.a, case.b, zeta)
    g = outer * at_max
    t = outer * at_x - g
    t_yx = outer_yx * at_y - outer_yx * at_max
    t_third = {"t_ij(y,x)": t_yx, "t_ji(y,x)": t_yx.T, "none": np.zeros_like(t)}[third]
    h = outer * at_a - g - t - t_third
    size = np.maximum(np.abs(outer), np.abs(outer_yx)) * (max_size + x_size + y_size + a_size)
    terms = [Q * g, R * t, Rt * t_third, S * h]
    return _rounded(case, terms, [np.abs(B) * (size + size.T) for B in (Q, R, Rt, S)], x)


def random_case(rng: np.random.Generator, n: int, degree: int, *, rank: int | None = None) -> Case:
    """A random kernel with P >= 0 (of full rank unless told otherwise), trace 1, on a random box."""
    size = 2 * exponents(n, degree)[0].shape[0]
    G = rng.standard_normal((size, size if rank is None else rank))
    P = G @ G.T
    a = rng.uniform(-0.5, 0.0, n)
    return Case(P / np.trace(P), a, a + rng.uniform(1.0, 2.0, n), degree)
