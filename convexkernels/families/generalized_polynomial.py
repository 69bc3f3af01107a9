"""The family of generalized polynomial kernels (GPK)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.bases import monomial_basis, monomials
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.families.spectraplex import SpectraplexGramSet, check_work_space
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel
from convexkernels.validation import check_memory, check_points, check_range, check_scale, check_whole_number

__all__ = ["GeneralizedPolynomial", "GeneralizedPolynomialGramSet"]

Array = NDArray[np.float64]


class GeneralizedPolynomial(Family):
    """All kernels ``Z(x)' P Z(y)`` with ``P >= 0, trace P <= trace``, Z the monomials up to `degree`.

    Parameters
    ----------
    degree : int, >= 0
    trace : float, > 0

    Notes
    -----
    [CP20 (9)]
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
        check_memory(
            check_work_space(X.shape[0], basis.q, 1.2, dtype),
            memory_limit,
            what=f"learning a polynomial kernel on {X.shape[0]} rows with q = {basis.q}",
            remedy="Use fewer rows, dtype=numpy.float32, or a larger memory_limit.",
        )
        return GeneralizedPolynomialGramSet(self, psi, X, modulo_constants, dtype)


class GeneralizedPolynomialGramSet(SpectraplexGramSet):
    """Gram matrices of the generalized polynomial kernels on m points."""

    def __init__(self, family: GeneralizedPolynomial, psi: Array, X: Array, modulo_constants: bool, dtype: Any) -> None:
        super().__init__(psi.shape[0], family.trace)
        self.m, self.n = X.shape
        self.family = family
        self.psi = psi
        self.dtype = dtype
        self.modulo_constants = modulo_constants
        self.varying = self._without_constant(psi)

    def _without_constant(self, psi: Array) -> Array:
        if not self.modulo_constants:
            return psi
        varying = psi.copy()
        varying[0] = 0.0  # P_00 and P_0e Z_e(y) are functions of one point
        return varying

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty((self.m, self.m), dtype=self.dtype)
        left = (self.varying.T @ theta).astype(out.dtype, copy=False)
        return np.matmul(left, self.varying.astype(out.dtype, copy=False), out=out)

    def adjoint(self, W: Array) -> Array:
        sums = W @ self.varying.T
        return sums.T @ sums

    def derivative(self, w: Array, rows: NDArray[np.intp]) -> Array:
        half = np.multiply.outer(self.varying[:, rows].T, self.varying @ w)
        return 0.5 * (half + np.swapaxes(half, 1, 2))

    def envelope(self) -> Array:
        # A*(w w') = s s' has rank one, so its largest eigenvalue is s's.
        return self.trace * np.eye(self.size)

    def kernel(self, theta: Array) -> GeneralizedPolynomialKernel:
        return GeneralizedPolynomialKernel(theta.copy(), self.family.degree)

    def cross(self, theta: Array, Z: Any) -> Array:
        Z = check_points(Z, n_features=self.n)
        powers = monomial_basis(self.n, self.family.degree, 0).x_powers
        return self._without_constant(monomials(Z, powers)).T @ theta @ self.varying

    def with_constants(self, theta: Array, w: Array) -> float:
        if not self.modulo_constants:
            return 0.0
        return -float((0.5 * theta[0, 0] + theta[0, 1:] @ self.psi[1:]) @ w)
