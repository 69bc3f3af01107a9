"""The term ``w'Kw`` of a box dual inside an interior-point method: from a matrix, or from a factor of it."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpstrf, dsytrf, dsytrf_lwork, dsytrs

from convexkernels.arrays import Array, Index
from convexkernels.threads import threads_to_factorize


class QuadraticTerm(ABC):
    """Values ``K w``, and the Newton system ``(K + E^-1) dw + 1 db = rho``, ``[sum dw = -balance]``.

    It `has_unknowns` of its own where values come from these, which need not agree with w yet.
    """

    has_unknowns = True

    @abstractmethod
    def values(self, w: Array) -> Array:
        """``K w``."""

    @abstractmethod
    def factorize(self, E: Array, intercept: bool) -> bool:
        """Prepare systems with the positive diagonal E; False when that breaks down."""

    @abstractmethod
    def solve(self, rho: Array, balance: float) -> tuple[Array, Array, float]:
        """``K dw``, dw and db."""

    def infeasible(self, point: Index, cap: Array) -> float:
        """What the objective may be wrong by because other unknowns do not agree with w yet."""
        return 0.0

    def move(self, step: float) -> None:  # noqa: B027 - what follows from w needs no moving
        """Take note of a step along the last solution."""

    def keep(self) -> None:  # noqa: B027
        """Take note that the present point is the best so far."""


class DenseTerm(QuadraticTerm):
    """K as a matrix: one Cholesky factorization of ``K + E^-1`` an iteration."""

    has_unknowns = False

    def __init__(self, K: Array) -> None:
        self.K = K

    def values(self, w: Array) -> Array:
        return self.K @ w

    def factorize(self, E: Array, intercept: bool) -> bool:
        A = self.K.copy()
        A[np.diag_indices_from(A)] += 1.0 / E
        try:
            with threads_to_factorize(len(A)):
                self.factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return False
        self.ones = cho_solve(self.factor, np.ones(len(E)), check_finite=False) if intercept else None
        return True

    def solve(self, rho: Array, balance: float) -> tuple[Array, Array, float]:
        dw = cho_solve(self.factor, rho, check_finite=False)
        db = 0.0
        if self.ones is not None:
            db = float((dw.sum() + balance) / self.ones.sum())
            dw = dw - db * self.ones
        return self.K @ dw, dw, db


class FactoredTerm(QuadraticTerm):
    """``K = V V'``, and p with ``K w = U p`` as unknowns beside w, ``V = U S``, U with columns of length 1.

    The system is

        [[E^-1, U, 1], [U', -S^-2, 0], [1', 0, 0]] (dw, dp, db) = (rho, S^-2 p - U'w, -balance),

    with rows scaled to entries of at most 1, factorized with Bunch and Kaufman's pivots, refined once.

    Parameters
    ----------
    V : ndarray of shape (m, q)
        No column is 0.
    given : bool
        Whether V is the problem, so that U p are the values; otherwise they have to agree with those of K and w.
    """

    def __init__(self, V: Array, given: bool = False) -> None:
        self.given = given
        self.sizes = np.linalg.norm(V, axis=0)
        self.U = V / self.sizes
        self.lengths = np.linalg.norm(self.U, axis=1)
        # With given values the start may be far from agreeing: from within the box Newton's steps find the way.
        self.p: Array | None = np.zeros(V.shape[1]) if given else None
        self.best: Array = np.zeros(V.shape[1])

    def values(self, w: Array) -> Array:
        image = self.U.T @ w
        self.p = image * self.sizes**2 if self.p is None else self.p
        self.gap = image - self.p / self.sizes**2
        return self.U @ self.p

    def keep(self) -> None:
        assert self.p is not None
        self.best = self.p / self.sizes

    def infeasible(self, point: Index, cap: Array) -> float:
        if self.given:
            assert self.p is not None
            return float(np.abs(self.gap) @ np.abs(self.p) + 0.5 * np.sum((self.gap * self.sizes) ** 2))
        return float(np.abs((self.U @ (self.gap * self.sizes**2))[point]) @ cap)

    def factorize(self, E: Array, intercept: bool) -> bool:
        m, rank = self.U.shape
        self.scale = 1.0 / np.maximum(np.maximum(self.lengths, 1e-8), E**-0.5)
        n = m + rank + intercept
        self.matrix = A = np.zeros((n, n), order="F")  # its lower triangle
        A[np.arange(m), np.arange(m)] = self.scale**2 / E
        A[m : m + rank, :m] = (self.U * self.scale[:, None]).T
        A[np.arange(m, m + rank), np.arange(m, m + rank)] = -1.0 / self.sizes**2
        A[m + rank :, :m] = self.scale
        # With as much memory as LAPACK wants it works in blocks: four to seven times as fast.
        self.factor: Any = dsytrf(A, lower=1, lwork=int(dsytrf_lwork(n, lower=1)[0]))
        return bool(self.factor[2] == 0)

    def solve(self, rho: Array, balance: float) -> tuple[Array, Array, float]:
        m, rank = self.U.shape
        right = np.concatenate([rho * self.scale, -self.gap, np.full(len(self.matrix) - m - rank, -balance)])
        answer = dsytrs(*self.factor[:2], right, lower=1)[0]
        answer += dsytrs(*self.factor[:2], right - dsymv(1.0, self.matrix, answer, lower=1), lower=1)[0]
        self.change = answer[m : m + rank]
        return self.U @ self.change, self.scale * answer[:m], float(answer[m + rank :].sum())

    def move(self, step: float) -> None:
        self.p = self.p + step * self.change


def pivoted_factor(K: Array) -> Array:
    """V with ``K = V V'`` to rounding, by pivoted Cholesky; as many columns as K has rank."""
    tolerance = len(K) * np.finfo(np.float64).eps * float(np.diagonal(K).max())
    packed, pivots, rank, _ = dpstrf(K, lower=1, tol=tolerance)
    V = np.empty((len(K), rank))
    V[pivots - 1] = np.tril(packed)[:, :rank]
    return V
