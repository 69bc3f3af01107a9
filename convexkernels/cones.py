"""Self-scaled cones for interior-point methods: non-negative vectors and positive semidefinite matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from convexkernels.arrays import Array
from convexkernels.linalg import longest_step


class Cone(ABC):
    """A cone of points P with the dual cone of points S; Theta is its part with ``<one, P> = total``.

    The `rank` is the barrier parameter: ``<P, S> = rank * mu`` on the central path.
    """

    rank: int
    one: Array

    @abstractmethod
    def largest(self, D: Array) -> float:
        """An s beyond which ``s one - D`` is in the dual cone."""

    @abstractmethod
    def scaling(self, P: Array, S: Array) -> Scaling | None:
        """The scaling of the pair, None where it is not inside the cones."""

    def begin(self, s: float, D: Array) -> Array:
        """The first S, ``s one - D``."""
        return s * self.one - D

    @property
    def excess(self) -> float:
        """What the barrier's pairing of P and S has more than ``<P, S>``."""
        return 0.0

    def theta(self, P: Array) -> Array:
        """The parameter of the family with coordinates P."""
        return P

    def coordinates(self, theta: Array) -> Array:
        """Inverse of `theta`."""
        return theta

    def pull(self, D: Array) -> Array:
        """Derivatives in theta (last axes) as derivatives in P."""
        return D


class Scaling(ABC):
    """Nesterov and Todd's scaling of a pair (P, S) of interior points: the map with ``W(S) = P``.

    [TTT98]. In scaled coordinates P and S are the same point `spectrum`, a vector
    or a diagonal matrix.
    """

    @abstractmethod
    def apply(self, D: Array) -> Array:
        """W(D)."""

    @abstractmethod
    def halves(self, T: Array) -> Array:
        """Rows of T in scaled coordinates: ``halves(T) @ halves(T).T`` is the matrix of ``<T_i, W(T_j)>``."""

    @abstractmethod
    def target(self, mu: float, dP: Array | None = None, dS: Array | None = None) -> Array:
        """Right-hand side R of ``dP + W(dS) = R`` that aims at ``P S = mu``.

        With the directions of a predictor, its second-order error is taken off (Mehrotra).
        """

    @abstractmethod
    def reach(self, dP: Array, dS: Array) -> float:
        """Longest step that keeps ``P + step dP`` and ``S + step dS`` in the cones."""

    @abstractmethod
    def holds(self, step: float, dP: Array, dS: Array, S: Array) -> bool:
        """Whether S is in the dual cone, after that step in directions dP and (about) dS."""

    def advance(self, step: float, dP: Array, dS: Array, S: Array) -> None:  # noqa: B027 - most have no state
        """Take note that the step was made."""


class Orthant(Cone):
    """Non-negative vectors; with ``sum = total`` the simplex."""

    def __init__(self, size: int) -> None:
        self.rank = size
        self.one = np.ones(size)

    def largest(self, D: Array) -> float:
        return float(D.max())

    def scaling(self, P: Array, S: Array) -> Scaling | None:
        return _OrthantScaling(P, S) if min(P.min(), S.min()) > 0.0 else None


class _OrthantScaling(Scaling):
    def __init__(self, P: Array, S: Array) -> None:
        self.P, self.S = P, S
        self.spectrum = np.sqrt(P * S)

    def apply(self, D: Array) -> Array:
        return self.P / self.S * D

    def halves(self, T: Array) -> Array:
        return T * np.sqrt(self.P / self.S)

    def target(self, mu: float, dP: Array | None = None, dS: Array | None = None) -> Array:
        error = 0.0 if dP is None or dS is None else dP * dS
        return (mu - error) / self.S - self.P

    def reach(self, dP: Array, dS: Array) -> float:
        return min(longest_step(self.P, dP), longest_step(self.S, dS))

    def holds(self, step: float, dP: Array, dS: Array, S: Array) -> bool:
        return bool(S.min() > 0.0)


class SemidefiniteCone(Cone):
    """Positive semidefinite matrices; with ``trace = total`` the spectraplex."""

    def __init__(self, size: int) -> None:
        self.rank = size
        self.one = np.eye(size)

    def largest(self, D: Array) -> float:
        return float(np.linalg.eigvalsh(D)[-1])

    def scaling(self, P: Array, S: Array) -> Scaling | None:
        try:
            return _SemidefiniteScaling(cholesky(P, lower=True), cholesky(S, lower=True))
        except LinAlgError:
            return None


class _SemidefiniteScaling(Scaling):
    """``W(D) = G G' D G G'`` with ``G^-1 P G^-T = G' S G = diag(spectrum)``."""

    def __init__(self, L: Array, R: Array) -> None:
        _, self.spectrum, V = np.linalg.svd(R.T @ L)
        self.L, self.R = L, R
        self.G = (L @ V.T) / np.sqrt(self.spectrum)
        self.inverse = np.sqrt(self.spectrum)[:, None] * (V @ solve_triangular(L, np.eye(len(L)), lower=True))

    def apply(self, D: Array) -> Array:
        W = self.G @ self.G.T
        return W @ D @ W

    def halves(self, T: Array) -> Array:
        q = len(self.G)
        low = np.tril_indices(q)
        weight = np.where(low[0] == low[1], 1.0, np.sqrt(2.0))
        rows = np.empty((len(T), low[0].size))
        chunk = max(1, 4_000_000 // (q * q))
        for start in range(0, len(T), chunk):
            part = T[start : start + chunk] @ self.G
            part = self.G.T @ part
            rows[start : start + chunk] = part[:, low[0], low[1]] * weight
        return rows

    def target(self, mu: float, dP: Array | None = None, dS: Array | None = None) -> Array:
        scaled = np.diag(mu / self.spectrum - self.spectrum)
        if dP is not None and dS is not None:
            product = (self.inverse @ dP @ self.inverse.T) @ (self.G.T @ dS @ self.G)
            scaled -= (product + product.T) / np.add.outer(self.spectrum, self.spectrum)
        return self.G @ scaled @ self.G.T

    def reach(self, dP: Array, dS: Array) -> float:
        return min(_longest_semidefinite(self.L, dP), _longest_semidefinite(self.R, dS))

    def holds(self, step: float, dP: Array, dS: Array, S: Array) -> bool:
        return is_definite(S)


def is_definite(A: Array) -> bool:
    """Whether a symmetric matrix is positive definite to rounding."""
    try:
        cholesky(A)
    except LinAlgError:
        return False
    return True


def _longest_semidefinite(factor: Array, change: Array) -> float:
    """Longest step with ``factor factor' + step change >= 0``."""
    half = solve_triangular(factor, change, lower=True)
    whole = solve_triangular(factor, half.T, lower=True)
    least = float(np.linalg.eigvalsh(0.5 * (whole + whole.T))[0])
    return min(1e10, -1.0 / least) if least < 0.0 else 1e10
