"""The cone of a semidefinite slice, for methods that work with a self-scaled cone."""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from convexkernels.arrays import Array
from convexkernels.cones import Cone, Scaling, SemidefiniteCone, is_definite
from convexkernels.families.semidefinite_slice import SemidefiniteSlice


class SliceCone(Cone):
    """The cone of the nu with ``M(nu) >= 0``; its dual cone are the ``S = B*(Z)`` with Z >= 0, of which Z is kept."""

    def __init__(self, part: SemidefiniteSlice) -> None:
        self.slice = part
        self.inner = SemidefiniteCone(part.basis.shape[1])
        self.rank = self.inner.rank
        self.one = part.traces
        self.Z: Array = self.inner.one

    def largest(self, D: Array) -> float:
        return self.inner.largest(self.slice.matrix(D))

    def begin(self, s: float, D: Array) -> Array:
        # B*(I) are the traces.
        self.Z = s * self.inner.one - self.slice.matrix(D)
        return s * self.one - D

    @property
    def excess(self) -> float:
        return self.slice.slack * float(np.trace(self.Z))

    def theta(self, P: Array) -> Array:
        return self.slice.back @ P

    def coordinates(self, theta: Array) -> Array:
        return self.slice.forth @ theta

    def pull(self, D: Array) -> Array:
        return D @ self.slice.back

    def onto(self, Z: Array, S: Array) -> Array:
        """The matrix nearest to Z with ``B*(Z) = S``: the basis is orthonormal."""
        return 0.5 * (Z + Z.T) + self.slice.matrix(S - self.slice.weigh(Z))

    def scaling(self, P: Array, S: Array) -> Scaling | None:
        Z, X = self.onto(self.Z, S), self.slice.matrix(P) + self.slice.slack * self.inner.one
        pair = self.inner.scaling(Z, X)
        if pair is None:
            return None
        half = pair.halves(self.slice.basis)
        try:
            factor = cho_factor(half @ half.T, lower=True, check_finite=False)
        except LinAlgError:
            return None
        return _SliceScaling(self, Z, pair, factor)


class _SliceScaling(Scaling):
    """``W(D) = N^-1 D`` with ``N_qr = <B_q, W_Z(B_r)>``, from the scaling W_Z of Z and X."""

    def __init__(self, cone: SliceCone, Z: Array, pair: Scaling, factor: Any) -> None:
        self.cone, self.Z, self.pair, self.factor = cone, Z, pair, factor
        self.aim = np.zeros_like(Z)

    def apply(self, D: Array) -> Array:
        return cho_solve(self.factor, D, check_finite=False)

    def halves(self, T: Array) -> Array:
        return solve_triangular(self.factor[0], T.T, lower=True, check_finite=False).T

    def target(self, mu: float, dP: Array | None = None, dS: Array | None = None) -> Array:
        if dP is None or dS is None:
            self.aim = self.pair.target(mu)
        else:
            self.aim = self.pair.target(mu, self._change(dP, dS), self.cone.slice.matrix(dP))
        return self.apply(self.cone.slice.weigh(self.aim))

    def _change(self, dP: Array, dS: Array) -> Array:
        """The change of Z that goes with the last target."""
        return self.cone.onto(self.aim - self.pair.apply(self.cone.slice.matrix(dP)), dS)

    def reach(self, dP: Array, dS: Array) -> float:
        return self.pair.reach(self._change(dP, dS), self.cone.slice.matrix(dP))

    def _moved(self, step: float, dP: Array, dS: Array, S: Array) -> Array:
        return self.cone.onto(self.Z + step * self._change(dP, dS), S)

    def holds(self, step: float, dP: Array, dS: Array, S: Array) -> bool:
        return is_definite(self._moved(step, dP, dS, S))

    def advance(self, step: float, dP: Array, dS: Array, S: Array) -> None:
        self.cone.Z = self._moved(step, dP, dS, S)
