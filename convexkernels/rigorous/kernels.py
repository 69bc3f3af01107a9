"""Kernel entries enclosed: values and how far they may be from the exact ones.

Every enclosure is computed here, from simple formulas whose roundings can be counted, not taken from the fast code of
the kernels: distances are sums of squared differences, never the identity ``|x|^2 - 2 x'y + |y|^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from convexkernels.bases.monomials import monomial_basis, monomials
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.precomputed import Precomputed
from convexkernels.kernels.base import Constant
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.polynomial import Linear, Polynomial
from convexkernels.kernels.stumps import Stumps
from convexkernels.kernels.tensor_matern import TensorMatern
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel, TessellatedKernel
from convexkernels.rigorous.rounding import U, gamma
from convexkernels.rigorous.tessellated import tessellated_entries

__all__ = ["SIMPLE", "Enclosure", "Pairs", "whole_order"]

Array = NDArray[np.float64]
Enclosure = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of X against rows of Y; what several kernels need of them is computed once."""

    X: Array
    Y: Array
    memory: dict[Any, Any] = field(default_factory=dict)

    def of_columns(self, columns: tuple[int, ...]) -> Pairs:
        """The same pairs, seen through some columns."""
        return self.remembered(("columns", columns), lambda: Pairs(self.X[:, columns], self.Y[:, columns]))

    def distances(self) -> Array:
        """Squared distances, right to n + 3 roundings; not to be overwritten."""
        return self.remembered("distances", lambda: cdist(self.X, self.Y, "sqeuclidean"))

    def remembered(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made under a key before, or is made now."""
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]


def _gaussian(kernel: Any, pairs: Pairs) -> Enclosure:
    t = np.minimum(pairs.distances() * kernel.gamma, 800.0)  # beyond, the exponential is 0
    K = np.exp(-t)
    t *= gamma(pairs.X.shape[1] + 6)  # what the argument is wrong by, and 4 units for the exponential
    t += gamma(8)
    t *= K
    return K, t


def _matern(kernel: Any, pairs: Pairs) -> Enclosure:
    p, s, roundings = whole_order(kernel), float(kernel.smoothing), pairs.X.shape[1] + 12
    t = np.sqrt(pairs.distances() / kernel.length / kernel.length + s * s)
    near = np.minimum(t, 1e5)
    K = _polynomial_part(near, p) / float(_polynomial_part(np.array(s), p)) * np.exp(s - t)
    return K, K * (gamma(roundings) * (near + s) + gamma(p * (roundings + 16) + 24))


def _tensor_matern(kernel: Any, pairs: Pairs) -> Enclosure:
    p, s, n = whole_order(kernel), float(kernel.smoothing), pairs.X.shape[1]
    total, factor = np.zeros((len(pairs.X), len(pairs.Y))), np.ones((len(pairs.X), len(pairs.Y)))
    for x, y in zip(pairs.X.T, pairs.Y.T, strict=True):
        t = np.abs(x[:, None] - y) / kernel.length
        t = np.sqrt(t * t + s * s) if s else t
        total += t
        factor *= _polynomial_part(np.minimum(t, 1e3), p)
    factor /= float(_polynomial_part(np.array(s), p)) ** n
    total = np.minimum(total, 1e6)
    K = factor * np.exp(-(total - n * s))
    return K, K * (gamma(n + 12) * (total + n * s) + gamma(n * (32 * p + 40)))


def _polynomial_part(t: Array, p: int) -> Array:
    """``sum_j p! / (2p)! (2p - j)! / (p - j)! / j! (2t)^j``, from j = p down; up to 4p + 4 roundings."""
    coefficients = [
        2.0**j * (factorial(p) * factorial(2 * p - j) / (factorial(2 * p) * factorial(p - j) * factorial(j)))
        for j in range(p + 1)
    ]
    value = np.full_like(t, coefficients[p])
    for c in coefficients[-2::-1]:
        value = value * t + c
    return value


def whole_order(kernel: Any) -> int:
    """``order - 1`` of a Matern kernel whose order is whole, or a refusal that names it."""
    if not float(kernel.order).is_integer():
        raise InvalidInputError(
            f"rigorous=True: {kernel!r} has a Bessel function, whose rounding nobody bounds; use a whole order."
        )
    return int(kernel.order) - 1


def _linear(kernel: Any, pairs: Pairs, offset: float = 0.0) -> Enclosure:
    n = pairs.X.shape[1]
    return pairs.remembered(
        ("products", offset),
        lambda: (
            pairs.X @ pairs.Y.T + offset,
            gamma(n + 1) * (np.abs(pairs.X) @ np.abs(pairs.Y).T + offset),
        ),
    )


def _polynomial(kernel: Any, pairs: Pairs) -> Enclosure:
    base, radius = _linear(kernel, pairs, float(kernel.offset))
    degree = int(kernel.degree)
    size = np.abs(base) + radius
    K, power = base.copy(), np.ones_like(size)
    for _ in range(degree - 1):
        K *= base
        power *= size
    return K, degree * power * (radius + gamma(degree) * size)


def _precomputed(kernel: Any, pairs: Pairs) -> Enclosure:
    matrix = np.asarray(kernel.matrix)
    rows, columns = kernel.rows(pairs.X), kernel.rows(pairs.Y)
    A = matrix[np.ix_(rows, columns)].astype(np.float64)
    B = matrix[np.ix_(columns, rows)].T.astype(np.float64)
    K = 0.5 * (A + B)  # quadratic forms see the symmetric part only
    return K, U * np.abs(K) * (A != B)


def _generalized_polynomial(kernel: Any, pairs: Pairs) -> Enclosure:
    n, degree = pairs.X.shape[1], int(kernel.degree)
    center = np.broadcast_to(np.asarray(0.0 if kernel.center is None else kernel.center, dtype=np.float64), (n,))
    scale = np.broadcast_to(np.asarray(1.0 if kernel.scale is None else kernel.scale, dtype=np.float64), (n,))
    powers = monomial_basis(n, degree, 0).x_powers
    Z = [monomials((T - center) / scale, powers) for T in (pairs.X, pairs.Y)]
    P = np.asarray(kernel.P, dtype=np.float64)
    P = 0.5 * (P + P.T)
    bound = np.abs(Z[0]).T @ np.abs(P) @ np.abs(Z[1])
    return Z[0].T @ P @ Z[1], gamma(2 * len(P) + 6 * degree + 8) * bound


def _constant(kernel: Any, pairs: Pairs) -> Enclosure:
    shape = (len(pairs.X), len(pairs.Y))
    return np.full(shape, float(kernel.value)), np.zeros(shape)


def _tessellated(kernel: Any, pairs: Pairs) -> Enclosure:
    return tessellated_entries(kernel, pairs.X, pairs.Y)


def _stumps(kernel: Any, pairs: Pairs) -> Enclosure:
    K = kernel(pairs.X, pairs.Y)  # sums of whole numbers, which are exact, and one quotient
    return K, 2.0 * U * K


SIMPLE: dict[type, Callable[[Any, Pairs], Enclosure]] = {
    Constant: _constant,
    Gaussian: _gaussian,
    GeneralizedPolynomialKernel: _generalized_polynomial,
    Linear: _linear,
    Matern: _matern,
    Polynomial: _polynomial,
    Precomputed: _precomputed,
    Stumps: _stumps,
    TensorMatern: _tensor_matern,
    TessellatedKernel: _tessellated,
}
