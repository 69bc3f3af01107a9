"""Gram matrices that are in memory already, with what is known of the error of their entries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.families.stacks.base import GramStack
from convexkernels.kernels.algebra import OnColumns, WeightedSum
from convexkernels.kernels.base import Constant, Product, Scaled, Sum
from convexkernels.kernels.distances import has_lost_digits
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.normalized import Centered, Normalized
from convexkernels.kernels.polynomial import Linear, Polynomial
from convexkernels.kernels.stumps import Stumps
from convexkernels.kernels.tensor_matern import TensorMatern
from convexkernels.rigorous.kernels import Pairs, whole_order
from convexkernels.rigorous.rounding import UNDERFLOW, gamma, product_in_blocks

# Rows of a matrix whose absolute values are formed at once.
CHUNK = 512
# Rows up to which roundings of a sum are so few that its absolute values are not worth a second look at the matrices.
FEW = 300


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a matrix: ``|K_ij| <= roots_i roots_j``, and stored entries are off by that times `error`.

    So are values of the diagonal that are computed by themselves.
    """

    roots: Array
    error: float
    nonnegative: bool = True


def known_entries(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    """What is known of the entries a :class:`PackedStack` holds for a kernel; None where that is nothing.

    `kernels.distances` takes the rows around their mean, where it has not lost digits that matter, and uses ``|x|^2 - 2
    x'y + |y|^2``: n + 8 roundings of ``(|x| + |y|)^2``. Inner products are wrong by n roundings of ``|x| |y|``, which
    with the offset are at most ``sqrt((|x|^2 + offset) (|y|^2 + offset))``. `rate` is the largest gamma of the
    Gaussians in the stack: their distances may be shared.
    """
    return RULES[type(kernel)](kernel, rows, rate) if type(kernel) in RULES else None


def _squares(X: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _distance_error(rows: Pairs, rate: float, slope: float) -> float:
    """What the identity makes of a function of squared distances of at most that slope; inf with lost digits."""
    largest = rows.remembered("largest", lambda: _squares(rows.X - rows.X.mean(axis=0)).max(keepdims=True))
    if has_lost_digits(largest, largest, rate):
        return np.inf
    return 4.0 * gamma(rows.X.shape[1] + 10) * slope * float(largest[0])


def _radial(rows: Pairs, error: float) -> Known | None:
    return Known(np.ones(len(rows.X)), error) if error < np.inf else None


def _gaussian(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    return _radial(rows, _distance_error(rows, rate, float(kernel.gamma)) + gamma(12))


def _matern(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    """``dM/d(t^2)`` is at most ``1 / (4 nu - 4)``, and ``t M(t)``, what t being wrong is multiplied by, p + 1."""
    if not float(kernel.order).is_integer():
        return None
    p, steepest = whole_order(kernel), 1.0 / float(kernel.length) ** 2
    error = gamma(16 if p else rows.X.shape[1] + 20) * max(float(kernel.smoothing), p + 1.0) + gamma(40 * p + 40)
    return _radial(rows, error + (_distance_error(rows, steepest, steepest / (4.0 * p - 2.0)) if p else 0.0))


def _tensor_matern(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    if not float(kernel.order).is_integer() or kernel._may_overflow(rows.X, rows.X):
        return None
    p, n = whole_order(kernel), rows.X.shape[1]
    largest = n * max(float(kernel.smoothing), p + 1.0)  # of all t together, times the value
    return _radial(rows, gamma(n + 16) * largest + gamma(n * (40 * p + 40)))


def _polynomial(kernel: Any, rows: Pairs, rate: float) -> Known:
    degree, offset = (1, 0.0) if type(kernel) is Linear else (int(kernel.degree), float(kernel.offset))
    base = rows.remembered("squares", lambda: _squares(rows.X)) + offset
    # The roots are rounded, too.
    return Known(np.sqrt(base**degree), gamma(degree * (rows.X.shape[1] + 4) + 16), nonnegative=False)


def _combined(weights: Any, kernels: Any, rows: Pairs, rate: float) -> Known | None:
    """By the inequality of Cauchy and Schwarz the roots of a sum are those of the sum of the squares."""
    pairs = [(float(w), known_entries(k, rows, rate)) for w, k in zip(weights, kernels, strict=True) if w != 0.0]
    parts = [(w, part) for w, part in pairs if part is not None]
    if len(parts) < len(pairs) or not parts:
        return None
    roots = np.sqrt(sum((w * part.roots**2 for w, part in parts), np.zeros(len(rows.X))))
    error = max(part.error for _, part in parts) + gamma(2 * len(parts) + 8)
    return Known(roots, error, all(part.nonnegative for _, part in parts))


def _product(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    a, b = (known_entries(part, rows, rate) for part in (kernel.left, kernel.right))
    if a is None or b is None:
        return None
    error = 1.01 * (a.error + b.error) + gamma(8)
    return Known(a.roots * b.roots, error, a.nonnegative and b.nonnegative) if error < 1e-3 else None


def _centered(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    """``|phi_i - mean| <= |phi_i| + mean of the lengths``; means are sums of m terms."""
    inner = known_entries(kernel.kernel, rows, rate)
    if inner is None or not np.array_equal(np.asarray(kernel.points, dtype=np.float64), rows.X):
        return None
    return Known(
        inner.roots + inner.roots.mean() * (1.0 + 1e-9), inner.error + gamma(len(rows.X) + 16), nonnegative=False
    )


def _normalized(kernel: Any, rows: Pairs, rate: float) -> Known | None:
    """Lengths are right to the error of the diagonal over the diagonal, which has to be small."""
    inner = known_entries(kernel.kernel, rows, rate)
    if inner is None:
        return None
    squares, sizes = kernel.kernel.diag(rows.X), inner.roots**2
    if not (1e-3 * squares >= inner.error * sizes).all() or not squares.all():
        return None
    return Known(1.01 * sizes / squares, 3.0 * inner.error + gamma(20), inner.nonnegative)


RULES: dict[type, Callable[[Any, Pairs, float], Known | None]] = {
    Centered: _centered,
    Constant: lambda kernel, rows, rate: Known(np.full(len(rows.X), np.sqrt(float(kernel.value))), gamma(8)),
    Gaussian: _gaussian,
    Linear: _polynomial,
    Matern: _matern,
    Normalized: _normalized,
    OnColumns: lambda kernel, rows, rate: known_entries(kernel.kernel, rows.of_columns(tuple(kernel.columns)), rate),
    Polynomial: _polynomial,
    Product: _product,
    Scaled: lambda kernel, rows, rate: _combined([kernel.scale], [kernel.kernel], rows, rate),
    Stumps: lambda kernel, rows, rate: Known(np.sqrt(kernel.diag(rows.X)), gamma(8)),
    Sum: lambda kernel, rows, rate: _combined([1.0, 1.0], [kernel.left, kernel.right], rows, rate),
    TensorMatern: _tensor_matern,
    WeightedSum: lambda kernel, rows, rate: _combined(kernel.weights, kernel.kernels, rows, rate),
}


def largest_rate(kernels: Any) -> float:
    """Largest gamma among the Gaussians of a list of candidates."""
    inner = [kernel.kernel if type(kernel) in (Centered, OnColumns) else kernel for kernel in kernels]
    inner = [kernel.kernel if type(kernel) is OnColumns else kernel for kernel in inner]
    return max((float(kernel.gamma) for kernel in inner if type(kernel) is Gaussian), default=0.0)


class StoredMatrices:
    """Matrices of a stack of whose entries something is known."""

    def __init__(self, stack: GramStack, known: dict[int, Known]) -> None:
        self.stack, self.known = stack, known
        self.used = np.array(list(known), dtype=np.intp)
        self.roots = np.array([entry.roots for entry in known.values()]).reshape(len(known), stack.m)
        self.errors = np.array([entry.error for entry in known.values()])
        self.nonnegative = np.array([entry.nonnegative for entry in known.values()], dtype=bool)

    def forms(self, V: Array) -> tuple[Array, Array]:
        """``sum over the rows v of v' K_k v`` of the known matrices, without their scales, and radii."""
        values = self.stack.weigh(V)[self.used] / self.stack.scales[self.used]
        sizes = ((np.abs(V) @ self.roots.T) ** 2).sum(axis=0)
        absolute = sizes.copy()
        signed = bool((V < 0.0).any())
        if self.nonnegative.any() and (self.stack.m > FEW or not signed):
            weighed = self.stack.weigh(np.abs(V))[self.used] / self.stack.scales[self.used] if signed else values
            absolute = np.where(self.nonnegative, np.minimum(sizes, 1.01 * weighed + self.errors * sizes), sizes)
        radii = 1.01 * self.errors * sizes + gamma(2 * self.stack.m + len(V) + 16) * absolute + UNDERFLOW
        return values, radii

    def diagonals(self) -> dict[int, tuple[Array, Array]]:
        """Diagonals of the known matrices, without their scales, and radii."""
        values = (self.stack.diagonals() / self.stack.scales[:, None])[self.used]
        radii = (1.01 * self.errors + gamma(4))[:, None] * self.roots**2
        return {k: (values[i], radii[i]) for i, k in enumerate(self.known)}

    def means(self) -> dict[int, tuple[float, float]]:
        """Mean entries of the known matrices, without their scales, and radii."""
        values, radii = (part / self.stack.m**2 for part in self.forms(np.ones((1, self.stack.m))))
        radii += gamma(2) * np.abs(values)
        return {k: (float(values[i]), float(radii[i])) for i, k in enumerate(self.known)}

    def add(self, sums: Any) -> None:
        """Take note of all of them."""
        if not self.known:
            return
        m, used = self.stack.m, self.used
        sums.forms[used], sums.spread[used] = self.forms(sums.V)
        coefficients = np.zeros(self.stack.l)
        coefficients[used] = sums.coefficients[used] / self.stack.scales[used]
        if not coefficients.any():
            return
        K = self.stack.combine(coefficients, np.empty((m, m)))
        values, roundings = product_in_blocks(sums.W, K)
        sums.values += values
        share = sums.coefficients[used] * (1.01 * self.errors + sums.family.relative[used] + gamma(sums.active + 8))
        size = np.abs(sums.W)
        sums.radius += ((size @ self.roots.T) * share) @ self.roots
        for start in range(0, m, CHUNK):
            rows = slice(start, min(m, start + CHUNK))
            sums.radius[:, rows] += gamma(roundings + 8) * (size @ np.abs(K[rows]).T)
