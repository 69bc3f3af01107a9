"""The family of generalized polynomial kernels (GPK)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases.monomials import expansion, monomial_basis, monomials
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.families.spectraplex import SpectraplexGramSet, check_spectraplex_memory
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel
from convexkernels.linalg import sorted_qr
from convexkernels.validation import check_points, check_range, check_scale, check_whole_number

# Monomials whose size, or that of their parts, is this multiple of what they differ by are recombined.
FAR = 1e3
# Monomials up to which they are recombined in extended precision: 300 take a second.
EXTENDED = 200


class GeneralizedPolynomial(Family):
    """All kernels ``Z(x)' P Z(y)`` with ``P >= 0, trace P <= trace``, Z the monomials up to `degree`.

    Parameters
    ----------
    degree : int, >= 0
    trace : float, > 0

    Notes
    -----
    [CP20 (9)]. theta is P. Where the points are so far from the origin that their monomials hardly differ, theta is
    ``U' P U`` with an orthogonal U that sorts combinations of monomials by size: the same set of kernels and the same
    trace, with digits left for what distinguishes the points (`GeneralizedPolynomialGramSet.parameter` is P then).
    """

    def __init__(self, degree: int, trace: float = 1.0) -> None:
        self.degree = check_whole_number("degree", degree, low=0)
        self.trace = check_scale("trace", trace, remedy="Scaling it by s is scaling C by s.")

    def __repr__(self) -> str:
        return f"GeneralizedPolynomial(degree={self.degree}, trace={self.trace:g})"

    def on(
        self, X: Any, *, modulo_constants: bool = False, memory_limit: float | None = None, dtype: Any = np.float64
    ) -> GeneralizedPolynomialGramSet:
        X = check_points(X)
        basis = monomial_basis(X.shape[1], self.degree, 0)
        with np.errstate(over="ignore"):
            psi = monomials(X, basis.x_powers)
        if not np.isfinite(psi).all() or np.abs(psi).max() > 1e150:
            raise InvalidInputError(
                f"monomials of degree {self.degree} of X overflow; scale the features to [-1, 1] or lower the degree."
            )
        check_range(
            repr(self),
            float(np.log(self.trace) + 2.0 * np.log(np.abs(psi).max())),
            dtype,
            remedy="scale the features to [-1, 1], lower the degree or the trace, or use dtype='float64'.",
        )
        check_spectraplex_memory(X.shape[0], basis.q, 1.2, dtype, memory_limit, "polynomial")
        return GeneralizedPolynomialGramSet(self, _Coordinates.of(X, self.degree), X, modulo_constants, dtype)


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Features ``G z`` of points, z the monomials of ``(x - center) / scale``: ``U'Z(x)`` for an orthogonal U.

    Entries of G are right to units in the last place of those of `size`.
    """

    center: Array
    scale: Array
    powers: Index
    G: Array | None = None
    U: Array | None = None
    size: Array | None = None

    @classmethod
    def of(cls, X: Array, degree: int) -> _Coordinates:
        """The monomials themselves where they differ from point to point, else those that do, sorted by QR."""
        powers = monomial_basis(X.shape[1], degree, 0).x_powers
        center = np.clip(X.mean(axis=0), X.min(axis=0), X.max(axis=0))  # a constant feature is its mean, exactly
        scale = np.abs(X - center).max(axis=0)
        scale[scale == 0.0] = 1.0
        if not degree * np.log1p(np.max(np.abs(center) / scale)) > np.log(FAR):
            return cls(np.zeros_like(center), np.ones_like(scale), powers)
        kind = np.longdouble if len(powers) <= EXTENDED else np.float64
        U, G, size = _sorted_combinations(expansion(powers, center.astype(kind), scale.astype(kind)))
        return cls(center, scale, powers, G, U, size)

    def features(self, X: Array, varying: bool) -> Array:
        """Shape (q, m); with `varying`, without what all points have in common."""
        return self._combined(X, self.G, varying)

    def sizes(self, X: Array, varying: bool) -> Array:
        """What the features are right to units in the last place of."""
        return self._combined(X, self.size, varying, np.abs)

    def _combined(self, X: Array, G: Array | None, varying: bool, of: Callable[[Array], Array] = np.asarray) -> Array:
        z = of(monomials(np.ascontiguousarray((X - self.center) / self.scale), self.powers))
        if G is not None:
            return G[:, 1:] @ z[1:] if varying else G @ z
        if varying:
            z[0] = 0.0
        return z

    @property
    def common(self) -> Array:
        """What all points have in common, shape (q,)."""
        return np.eye(1, len(self.powers))[0] if self.G is None else self.G[:, 0]


class GeneralizedPolynomialGramSet(SpectraplexGramSet):
    """Gram matrices of the generalized polynomial kernels on m points."""

    def __init__(
        self, family: GeneralizedPolynomial, coordinates: _Coordinates, X: Array, modulo_constants: bool, dtype: Any
    ) -> None:
        super().__init__(len(coordinates.powers), family.trace)
        self.m, self.n = X.shape
        self.family, self.coordinates = family, coordinates
        self.dtype, self.modulo_constants = dtype, modulo_constants
        # P_00 and P_0e Z_e(y) are functions of one point.
        self.varying = coordinates.features(X, modulo_constants)
        self.rounded = coordinates.sizes(X, modulo_constants)

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty((self.m, self.m), dtype=self.dtype)
        left = (self.varying.T @ theta).astype(out.dtype, copy=False)
        return np.matmul(left, self.varying.astype(out.dtype, copy=False), out=out)

    def sizes(self, theta: Array, K: Any, W: Array) -> Array:
        size = self.rounded
        return np.abs(W) @ size.T @ np.abs(theta) @ size

    def support_above(self, D: Array, sigma: float, W: Array, sizes: Array, unit: float) -> float:
        # D is formed of sums over rows, one a feature: those are rounded.
        errors = unit * float(np.linalg.norm(np.abs(W) @ self.rounded.T))
        return float(self.trace * (np.sqrt(max(sigma, 0.0) / self.trace) + errors) ** 2)

    def adjoint(self, W: Array) -> Array:
        sums = W @ self.varying.T
        return sums.T @ sums

    def project(self, theta: Array) -> Array:
        if self.coordinates.G is not None and _is_inside(theta, self.trace):
            return theta.copy()
        return super().project(theta)

    def derivative(self, w: Array, rows: Index) -> Array:
        half = np.multiply.outer(self.varying[:, rows].T, self.varying @ w)
        return 0.5 * (half + np.swapaxes(half, 1, 2))

    def envelope(self) -> Array:
        # A*(w w') = s s' has rank one, so its largest eigenvalue is s's.
        return self.trace * np.eye(self.size)

    def envelope_factor(self) -> Array:
        return np.sqrt(self.trace) * self.varying.T

    def parameter(self, theta: Array) -> Array:
        """P, the matrix that monomials of x are weighed with."""
        U = self.coordinates.U
        return theta.copy() if U is None else U @ theta @ U.T

    def kernel(self, theta: Array) -> GeneralizedPolynomialKernel:
        c = self.coordinates
        if c.G is None:
            return GeneralizedPolynomialKernel(theta.copy(), self.family.degree)
        P = c.G.T @ theta @ c.G
        return GeneralizedPolynomialKernel(0.5 * (P + P.T), self.family.degree, c.center, c.scale)

    def cross(self, theta: Array, Z: Any) -> Array:
        Z = check_points(Z, n_features=self.n)
        return self.coordinates.features(Z, self.modulo_constants).T @ theta @ self.varying

    def with_constants(self, theta: Array, w: Array) -> float:
        if not self.modulo_constants:
            return 0.0
        common = theta @ self.coordinates.common
        return -float(0.5 * (self.coordinates.common @ common) * w.sum() + (common @ self.varying) @ w)


def _sorted_combinations(T: Array) -> tuple[Array, Array, Array]:
    """U and G with ``T = U G`` and U orthogonal, and what entries of G are right to units in the last place of.

    The last place of T says what is left of rounding: the factor of a T that differs there differs by as much.
    """
    U, G, pivots = sorted_qr(T)
    moved = T * (1 + np.finfo(T.dtype).eps * np.random.default_rng(0).choice([-1, 1], T.shape))
    errors = np.abs(sorted_qr(moved, pivots)[1] - G) / np.finfo(np.float64).eps
    return U.astype(np.float64), G.astype(np.float64), (np.abs(G) + errors).astype(np.float64)


def _is_inside(theta: Array, trace: float) -> bool:
    """Whether a matrix whose entries may be of very different size is in the spectraplex, up to rounding of each."""
    root = np.sqrt(np.maximum(np.diagonal(theta), 0.0))
    if not np.trace(theta) <= trace * (1.0 + 1e-14) or np.abs(theta[root == 0.0]).any():
        return False
    unit = theta / np.where(root > 0.0, root, 1.0)[:, None] / np.where(root > 0.0, root, 1.0)
    return bool(np.linalg.eigvalsh(unit)[0] > -1e-14 * len(theta))
