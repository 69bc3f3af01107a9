"""Newton matrices of dual programs on features: factors, and conjugate gradients where there are many rows."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.factored import BLOCK, FactoredGram
from convexkernels.linalg import shifted_cholesky

# A matrix is made of as many rows as take so many operations, and of so many at least; of more rows it only
# preconditions conjugate gradients.
WORK, ROWS = 2e9, 500
# Most conjugate gradient steps, and the share of the residual at which they end.
GRADIENTS, FORCING = 30, 0.3


class NewtonMatrix:
    """``I + Psi' (S - s s' / sum s) Psi`` [without the second term where no intercept is fitted]."""

    def __init__(self, K: FactoredGram, s: Array, intercept: bool) -> None:
        self.K, self.s, self.intercept = K, s, intercept
        self.free: Index = np.flatnonzero(s)
        self.sample = some_rows(self.free, K.rank)
        self.is_exact = len(self.free) == len(self.sample)
        self.times = len(self.free) / max(1, len(self.sample))

    @cached_property
    def _few(self) -> Array | None:
        """Rows of the sample, times the root of s and less what the intercept takes; None where there are many."""
        if len(self.sample) > self.K.rank:
            return None
        Psi, s = self.K.rows(self.sample), self.times * self.s[self.sample]
        if self.intercept and len(s):
            Psi = Psi - s @ Psi / s.sum()
        return np.sqrt(s)[:, None] * Psi

    @cached_property
    def factor(self) -> Any:
        """Cholesky factor of the matrix on the sample of rows, or of ``I + rows rows'`` where these are few."""
        if self._few is not None:
            return _cholesky(self._few @ self._few.T)
        rank = self.K.rank
        H, mean = np.zeros((rank, rank)), np.zeros(rank)
        for rows in np.array_split(self.sample, len(self.sample) * rank // BLOCK + 1):
            Psi, s = self.K.rows(rows), self.times * self.s[rows]
            H += Psi.T @ (s[:, None] * Psi)
            mean += s @ Psi
        if self.intercept:
            H -= np.outer(mean, mean) / (self.times * self.s[self.sample].sum())
        return _cholesky(H)

    def inverse(self, g: Array) -> Array:
        """Of the matrix on the sample of rows, times a vector or columns."""
        few = self._few
        if few is None:
            return np.asarray(cho_solve(self.factor, g, check_finite=False))
        return np.asarray(g - few.T @ cho_solve(self.factor, few @ g, check_finite=False))

    def solve(self, g: Array) -> Array:
        """By the factor, or by conjugate gradients that it preconditions."""
        x = self.inverse(g)
        if self.is_exact:
            return x
        r = g - self.product(x)
        p = z = self.inverse(r)
        descent, first = float(r @ z), float(g @ x)
        for _ in range(GRADIENTS):
            if descent <= FORCING**2 * first:
                break
            Ap = self.product(p)
            length = descent / float(p @ Ap)
            x, r = x + length * p, r - length * Ap
            z = self.inverse(r)
            descent, old = float(r @ z), descent
            p = z + descent / old * p
        return x

    def product(self, p: Array) -> Array:
        """The matrix, on all rows, times a vector."""
        u = self.s * self.K.values(p)
        if self.intercept:
            u -= self.s * (float(u.sum()) / float(self.s.sum()))
        return p + self.K.pulled(u)


def some_rows(rows: Index, rank: int) -> Index:
    """Rows that a Newton matrix of so many columns is made of: all of them, or some drawn."""
    most = max(ROWS, int(max(np.sqrt(WORK / max(rank, 1)), WORK / max(rank, 1) ** 2)))
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _cholesky(H: Array) -> Any:
    """Factor of ``I + H``."""
    factor = shifted_cholesky(H + np.eye(len(H)))
    if factor is None:
        raise InvalidInputError("the features have values that are not finite on these points; rescale them.")
    return factor
