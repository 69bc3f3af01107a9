"""The tessellated kernel of finitely many points z in the place of the integral over the box.

``k(x, y) = mean over z of N(z, x)' P N(z, y)`` is a sum over few features: learning with it takes memory and time in
proportion to the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from convexkernels.arrays import Array
from convexkernels.bases.monomials import MonomialBasis, monomials

# Points below which fewer or more rows lie than these shares divide the rows badly, and are not drawn.
FEWEST, MOST = 0.01, 0.99
# Draws from the box for every point that is wanted, and rows that shares are measured on.
DRAWS, ROWS = 64, 1000


def dividing_points(X: Array, lower: Array, upper: Array, count: int) -> Array:
    """Points of a box that divide the rows of `X`, shape (count, n): evenly drawn where enough of the box does.

    A point z divides rows into those with ``x <= z`` in all features, and the others. Where next to nothing of a box
    has rows on both sides (many features, a narrow box), the rest are componentwise maxima of some rows.
    """
    rng = np.random.default_rng(0)
    n = len(lower)
    rows = X[rng.permutation(len(X))[:ROWS]]
    drawn = lower + qmc.Sobol(n, rng=0).random(1 << int(DRAWS * count - 1).bit_length()) * (upper - lower)
    shares = np.concatenate([(rows[None] <= part[:, None]).all(axis=2).mean(axis=1) for part in _parts(drawn)])
    found = drawn[(shares >= FEWEST) & (shares <= MOST)][:count]
    # The maximum of k rows is above about (k / (k + 1))^n of them, where features have nothing to do with each other.
    root = rng.uniform(FEWEST, MOST, count - len(found)) ** (1.0 / n)
    sizes = np.maximum(1, np.round(root / (1.0 - root))).astype(np.intp)
    maxima = [rows[rng.integers(len(rows), size=k)].max(axis=0) for k in sizes]
    return np.clip(np.vstack([found, *maxima]), lower, upper)


def _parts(drawn: Array) -> Iterator[Array]:
    return (drawn[start : start + 256] for start in range(0, len(drawn), 256))


@dataclass(frozen=True, eq=False)
class PointTessellation:
    """Monomials of x on a box, and points z.

    Attributes
    ----------
    basis : MonomialBasis
        Without powers of z.
    lower, upper : ndarray of shape (n,)
    points : ndarray of shape (r, n)
    """

    basis: MonomialBasis
    lower: Array
    upper: Array
    points: Array

    def reached(self, X: Array) -> Array:
        """``1{z >= x}``, shape (m, r), as bytes."""
        X = np.clip(X, self.lower, self.upper)
        out = np.ones((len(X), len(self.points)), dtype=bool)
        for column, z in zip(X.T, self.points.T, strict=True):
            out &= column[:, None] <= z
        return out.view(np.uint8)

    def monomials(self, X: Array) -> Array:
        """``Z(x)``, shape (m, q)."""
        X = np.clip(X, self.lower, self.upper)
        return np.ascontiguousarray(monomials(X, self.basis.x_powers)[self.basis.x_index].T)

    def features(self, X: Array, root: Array) -> Array:
        """``N(z, x)' root / sqrt(r)`` for all points z side by side, shape (m, r * columns of root)."""
        q, r = self.basis.q, len(self.points)
        Z, reached = self.monomials(X), self.reached(X).astype(bool)
        scaled = root / np.sqrt(r)
        out = np.where(reached[:, :, None], (Z @ scaled[:q])[:, None, :], (Z @ scaled[q:])[:, None, :])
        return out.reshape(len(Z), r * root.shape[1])

    def gram(self, P: Array, X: Array, Y: Array) -> Array:
        """Kernel matrix of two tables, for any symmetric P."""
        q = self.basis.q
        left, right = self.reached(X).astype(np.float64), self.reached(Y).astype(np.float64)
        both, one, other = left @ right.T, left.sum(axis=1)[:, None], right.sum(axis=1)
        Z, W = self.monomials(X), self.monomials(Y)
        r = float(len(self.points))
        K = (Z @ P[:q, :q] @ W.T) * both + (Z @ P[:q, q:] @ W.T) * (one - both)
        return (K + (Z @ P[q:, :q] @ W.T) * (other - both) + (Z @ P[q:, q:] @ W.T) * (r - one - other + both)) / r

    def diagonal(self, P: Array, X: Array) -> Array:
        """``k(x, x)`` for every row."""
        q, Z, share = self.basis.q, self.monomials(X), self.reached(X).mean(axis=1)
        above, below = (np.einsum("ij,jk,ik->i", Z, P[part, part], Z) for part in (slice(0, q), slice(q, None)))
        return np.asarray(share * above + (1.0 - share) * below)
