"""Families with a matrix parameter, enclosed: the point is ``G G'``, positive semidefinite for any doubles G."""

from dataclasses import replace

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.monomials import monomials
from convexkernels.families.all_kernel_matrices import AllKernelMatricesGramSet
from convexkernels.families.generalized_polynomial import GeneralizedPolynomialGramSet
from convexkernels.families.tessellated import TessellatedGramSet
from convexkernels.linalg import eigh
from convexkernels.rigorous.measured import Measured, quadratics_above
from convexkernels.rigorous.rounding import UNDERFLOW, U, gamma, largest_eigenvalue, product_in_blocks, sum_above
from convexkernels.rigorous.tessellated import EnclosedBlocks, PairPart, Separable


def factor(theta: Array) -> Array:
    """G with ``G G'`` near `theta`, from the eigenvectors of theta with diagonal 1: small parts keep their digits."""
    root = np.sqrt(np.maximum(np.diagonal(theta), 0.0))
    unit = np.where(root > 0.0, root, 1.0)
    values, vectors = eigh(0.5 * (theta + theta.T) / unit[:, None] / unit)
    keep = values > 0.0
    return root[:, None] * vectors[:, keep] * np.sqrt(values[keep])


def trace_above(G: Array) -> float:
    """An upper bound of the trace of ``G G'``."""
    return sum_above(G * G) * (1.0 + 4.0 * U)


class EnclosedTessellated:
    """The set of a :class:`Tessellated` family, from the matrices of `bases.tessellation.gram` and their companions."""

    def __init__(self, gram_set: TessellatedGramSet) -> None:
        t, x = gram_set.tessellation, gram_set.points
        self.trace = gram_set.trace
        self.pairs = PairPart(t, x, gram_set.volumes if gram_set.dtype == np.float64 else t.volumes(x, x))
        self.rest = Separable(t, x, gram_set.modulo_constants)

    def measure(self, theta: Array, W: Array, V: Array) -> Measured:
        G = factor(theta)
        q = len(G) // 2
        parts = np.vstack([G[:q] - G[q:], G[q:]])
        blocks = EnclosedBlocks.of_factor(parts)
        values, roundings = product_in_blocks(W, self.pairs.matrix(blocks.g))  # which is symmetric
        sums = [self.pairs.sums(w) for w in W]
        radius = np.array([self.pairs.image_radius(blocks, s, roundings) for s in sums])
        norms = quadratics_above(W, values, radius)
        for k, w in enumerate(W):
            f, df, form, dform = self.rest.measure(blocks, w)
            values[k], radius[k] = values[k] + f, radius[k] + df + 2.0 * U * (np.abs(values[k]) + np.abs(f))
            norms[k] = max(0.0, sum_above([norms[k], form, dform, 2.0 * U * abs(form)]))
        trace = trace_above(np.vstack([parts[:q] + parts[q:], parts[q:]]))
        grown = max(1.0, trace / self.trace * (1.0 + 2.0 * U))
        known = [s if np.array_equal(w, v) else self.pairs.sums(v) for s, w, v in zip(sums, W, V, strict=True)]
        D, bound = self._adjoint(V, known)
        rough = self.trace * max(0.0, largest_eigenvalue(D))
        support = self.trace * max(0.0, largest_eigenvalue(D, bound)) * (1.0 + 2.0 * U)
        return Measured(parts, values, radius, norms * grown * (1.0 + 4.0 * U), 0.0, support, support - rough)

    def _adjoint(self, V: Array, sums: list[Array]) -> tuple[Array, Array]:
        D, bound = (np.zeros((2 * len(self.rest.index),) * 2) for _ in range(2))
        for v, s in zip(V, sums, strict=True):
            g, dg = self.pairs.adjoint(v), self.pairs.adjoint_radius(v, s)
            x, dx, a, da = self.rest.adjoint(v)
            D += np.block([[g, x - g], [x.T - g, g - x - x.T + a]])
            size = [np.abs(part) * gamma(len(V) + 4) for part in (g, x, a)]
            dg, dx, da = dg + size[0], dx + size[1], da + size[2]
            bound += np.block([[dg, dx + dg], [dx.T + dg, dg + dx + dx.T + da]])
        return D, bound


class _Features:
    """Kernels ``z_i' G G' z_j`` of explicit features z of the points, with radii: nothing of size m^2 is formed."""

    Z: Array | None  # (q, m); None for the m unit vectors
    R: Array
    trace: float
    is_equality: bool

    def _pulled(self, W: Array) -> tuple[Array, Array]:
        """``Z w`` for the rows of W, and radii."""
        if self.Z is None:
            return W, np.zeros_like(W)
        return W @ self.Z.T, np.abs(W) @ (self.R + gamma(self.Z.shape[1] + 2) * np.abs(self.Z)).T + UNDERFLOW

    def _measure(self, F: Array, trace: float, W: Array, V: Array) -> Measured:
        size = np.abs(F)
        q, r = F.shape
        pulled, error = self._pulled(W)
        h, dh = pulled @ F, error @ size + gamma(q + 2) * (np.abs(pulled) @ size) + UNDERFLOW
        g, dg = h @ F.T, dh @ size.T + gamma(r + 2) * (np.abs(h) @ size.T) + UNDERFLOW
        values, radius = g, dg
        if self.Z is not None:
            spread = self.R + gamma(q + 2) * np.abs(self.Z)
            values, radius = g @ self.Z, dg @ (np.abs(self.Z) + self.R) + np.abs(g) @ spread + UNDERFLOW
        grown = trace / self.trace * (1.0 + 2.0 * U)
        grown = grown if self.is_equality else max(1.0, grown)
        norms = (
            np.array([sum_above((np.abs(a) + b) ** 2) for a, b in zip(h, dh, strict=True)]) * grown * (1.0 + 8.0 * U)
        )
        v, dv = self._pulled(V)
        M, dM = v @ v.T, np.abs(v) @ dv.T
        dM = dM + dM.T + dv @ dv.T + gamma(v.shape[1] + 2) * (np.abs(v) @ np.abs(v).T)
        support = self.trace * max(0.0, largest_eigenvalue(M, dM + UNDERFLOW)) * (1.0 + 2.0 * U)
        rough = self.trace * max(0.0, largest_eigenvalue(M))
        return Measured(F, values, radius, norms, 0.0, support, support - rough)


class EnclosedPolynomials(_Features):
    """The set of a :class:`GeneralizedPolynomial` family; features are the monomials of the points themselves.

    With an intercept they are taken around their means: coefficients that sum to 0 exactly do not see the difference.
    """

    is_equality = False

    def __init__(self, gram_set: GeneralizedPolynomialGramSet, X: Array) -> None:
        self.gram_set, self.trace = gram_set, gram_set.trace
        powers = gram_set.coordinates.powers
        Z = monomials(X, powers)
        products = np.maximum(powers.sum(axis=1) - 1, 0)[:, None]
        self.first = 1 if gram_set.modulo_constants else 0
        self.R = (gamma(1) * 2.0 * products * np.abs(Z))[self.first :]
        self.Z = Z[self.first :]
        if self.first:
            self.Z = self.Z - self.Z.mean(axis=1, keepdims=True)
            self.R = self.R + 2.0 * U * np.abs(self.Z)

    def measure(self, theta: Array, W: Array, V: Array) -> Measured:
        rotation = self.gram_set.coordinates.U
        F = factor(theta) if rotation is None else rotation @ factor(theta)
        return replace(self._measure(F[self.first :], trace_above(F), W, V), theta=F)


class EnclosedKernelMatrices(_Features):
    """The set of :class:`AllKernelMatrices`."""

    is_equality = True
    Z = None

    def __init__(self, gram_set: AllKernelMatricesGramSet) -> None:
        self.trace = float(gram_set.m)

    def measure(self, theta: Array, W: Array, V: Array) -> Measured:
        G = factor(theta)
        return self._measure(G, trace_above(G), W, V)
