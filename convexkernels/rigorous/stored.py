"""Gram matrices that are in memory already, with what is known of the error of their entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.families.gram_stack import GramStack
from convexkernels.kernels.algebra import OnColumns
from convexkernels.kernels.distances import has_lost_digits
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.polynomial import Linear, Polynomial
from convexkernels.rigorous.rounding import UNDERFLOW, gamma

__all__ = ["StoredMatrices", "largest_rate", "stored_entries"]

Array = NDArray[np.float64]

# Rows of a matrix whose absolute values are formed at once.
CHUNK = 512


def stored_entries(kernel: Any, X: Array, rate: float) -> tuple[Array, float, float, bool] | None:
    """What is known of the entries a :class:`PackedStack` holds for a kernel, or None.

    Parameters
    ----------
    rate : float
        Largest gamma of the Gaussians in the stack: their distances may be shared.

    Returns
    -------
    diagonal : ndarray of shape (m,)
        Positive; ``|k(x_i, x_j)| <= sqrt(diagonal_i diagonal_j)``, as for every kernel.
    relative, error : float
        Relative error of `diagonal`, and of stored entries as a multiple of that bound.
    nonnegative : bool
        Whether all entries are >= 0.

    Notes
    -----
    `kernels.distances` takes the rows around their mean, where it has not lost digits that matter, and uses
    ``|x|^2 - 2 x'y + |y|^2``: n + 8 roundings of ``(|x| + |y|)^2``. Inner products are wrong by n roundings of
    ``|x| |y|``, which with the offset are at most ``sqrt((|x|^2 + offset) (|y|^2 + offset))``.
    """
    if type(kernel) is OnColumns:
        return stored_entries(kernel.kernel, X[:, tuple(kernel.columns)], rate)
    m, n = X.shape
    if type(kernel) is Gaussian:
        offsets = X - X.mean(axis=0)
        lengths = np.einsum("ij,ij->i", offsets, offsets)
        if has_lost_digits(lengths, lengths, rate):
            return None
        return np.ones(m), 0.0, 4.0 * gamma(n + 10) * kernel.gamma * float(lengths.max()) + gamma(12), True
    if type(kernel) in (Linear, Polynomial):
        degree, offset = (1, 0.0) if type(kernel) is Linear else (int(kernel.degree), float(kernel.offset))
        base = np.einsum("ij,ij->i", X, X) + offset
        roundings = degree * (n + 4) + 12
        return base**degree, gamma(roundings), gamma(roundings), False
    return None


def largest_rate(kernels: Any) -> float:
    """Largest gamma among the Gaussians of a list of candidates."""
    inner = [kernel.kernel if type(kernel) is OnColumns else kernel for kernel in kernels]
    return max((float(kernel.gamma) for kernel in inner if type(kernel) is Gaussian), default=0.0)


class StoredMatrices:
    """Matrices of a stack whose entries are wrong by a multiple of ``sqrt(k(x_i, x_i) k(x_j, x_j))``."""

    def __init__(self, stack: GramStack, known: dict[int, tuple[Array, float, float, bool]]) -> None:
        self.stack, self.known = stack, known

    def add(self, sums: Any) -> None:
        """Take note of all of them."""
        if not self.known:
            return
        m = self.stack.m
        used = np.array(list(self.known))
        roots = np.sqrt(np.array([self.known[k][0] for k in used.tolist()]))
        errors = np.array([self.known[k][2] for k in used.tolist()])
        sums.forms[used] = self.stack.weigh(sums.V)[used] / self.stack.scales[used]
        sizes = ((np.abs(sums.V) @ roots.T) ** 2).sum(axis=0)
        absolute = sizes.copy()
        nonnegative = np.array([self.known[k][3] for k in used.tolist()])
        if nonnegative.any():
            weighed = self.stack.weigh(np.abs(sums.V))[used] / self.stack.scales[used]
            absolute[nonnegative] = np.minimum(sizes, 1.01 * weighed + errors * sizes)[nonnegative]
        sums.spread[used] = 1.01 * errors * sizes + gamma(2 * m + len(sums.V) + 16) * absolute + UNDERFLOW
        coefficients = np.zeros(self.stack.l)
        coefficients[used] = sums.coefficients[used] / self.stack.scales[used]
        if not coefficients.any():
            return
        K = self.stack.combine(coefficients, np.empty((m, m)))
        sums.values += sums.W @ K
        share = sums.coefficients[used] * (1.01 * errors + sums.family.relative[used] + gamma(sums.active + 8))
        size = np.abs(sums.W)
        sums.radius += ((size @ roots.T) * share) @ roots
        for start in range(0, m, CHUNK):
            rows = slice(start, min(m, start + CHUNK))
            sums.radius[:, rows] += gamma(m + 8) * (size @ np.abs(K[rows]).T)
