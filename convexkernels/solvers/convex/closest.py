"""The member of a cone whose entries are closest to given numbers: an interior-point method for few equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.cones import Cone, Scaling
from convexkernels.linalg import longest_step, shifted_cholesky
from convexkernels.problems.entries import Entries
from convexkernels.solution import Record
from convexkernels.solvers.convex.interior_point import Pace

# More steps than any of these problems needs; within so many the gap has to halve, or rounding is what is left of it.
MOST_STEPS, PATIENCE = 200, 12


@dataclass(eq=False)
class _State:
    """Points inside all cones; S and z follow from y, which therefore never leaves the equations of the dual."""

    P: Array
    S: Array
    x: Array
    z: Array
    y: Array

    @classmethod
    def at(cls, entries: Entries, P: Array, x: Array, y: Array) -> _State:
        """With what follows from y."""
        return cls(P, entries.dual(y), x, entries.cost - entries.B.T @ y, y)

    def mu(self, cone: Cone) -> float:
        """The mean product of a pair."""
        return float(np.vdot(self.P, self.S) + self.x @ self.z) / (cone.rank + len(self.x))


def closest(entries: Entries, cone: Cone, tol: float, clock: Clock) -> tuple[Array, Array]:
    """P and multipliers of the entries at a gap of `tol`, all in units of the target, or as good as time allows.

    Nesterov and Todd's scaling W with Mehrotra's predictor and corrector [TTT98]. A step solves one system in the r
    multipliers, whose matrix is ``<A_k, W(A_l)>`` and what the slacks add to it: O(r q^3 + r^2 q^2 + r^3) for P of
    shape (q, q), however many numbers that has. Every y is inside, so that ``target'y`` is a bound at any time.
    """
    P = cone.one * (float((entries.weight == 1.0).sum()) / cone.rank)
    state = _State.at(entries, P, entries.slacks(entries.error(P)), entries.inside())
    upper, lower, theta, y, pace = np.inf, -np.inf, state.P, state.y, Pace(PATIENCE)
    clock.show.tol = tol
    try:
        for step in range(MOST_STEPS):
            distance, bound = entries.distance(entries.error(state.P)), float(entries.right @ state.y)
            if distance < upper:
                upper, theta = distance, state.P
            if bound > lower:
                lower, y = bound, state.y
            shown = Record(step, entries.unit * upper, entries.unit * max(lower, 0.0), clock.seconds)
            clock.show.record(shown)
            if upper - lower <= tol or pace.is_over(upper - lower) or clock.is_over:
                break
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                following = _step(entries, cone, state)
            if following is None:
                break
            state = following
    except KeyboardInterrupt:
        clock.interrupt()
    return theta, entries.multipliers(y)


def _step(entries: Entries, cone: Cone, state: _State) -> _State | None:
    """The next point, None where arithmetic allows no step."""
    scaling, mu = cone.scaling(state.P, state.S), state.mu(cone)
    if scaling is None or not mu > 0.0:
        return None
    halves, ratio = scaling.halves(entries.A), state.x / state.z
    system = np.tile(halves @ halves.T, (entries.copies, entries.copies))
    system += ((entries.B * ratio) @ entries.B.T).toarray()
    factor = shifted_cholesky(system)
    if factor is None:
        return None
    residual = entries.right - entries.image(state.P) - entries.B @ state.x

    def direction(mu: float, ahead: _State | None = None) -> _State:
        R = scaling.target(mu) if ahead is None else scaling.target(mu, ahead.P, ahead.S)
        r = (mu - (0.0 if ahead is None else ahead.x * ahead.z)) / state.z - state.x
        y = cho_solve(factor, residual - entries.image(R) - entries.B @ r)
        S, z = entries.dual(y), -(entries.B.T @ y)
        return _State(R - scaling.apply(S), S, r - ratio * z, z, y)

    ahead = direction(0.0)
    reached = _moved(state, ahead, _reach(scaling, state, ahead))
    final = direction(max(min(1.0, reached.mu(cone) / mu) ** 3, 1e-6) * mu, ahead)
    step = min(1.0, 0.98 * _reach(scaling, state, final))
    if not step > 1e-10:
        return None
    moved = _moved(state, final, step)
    return _State.at(entries, 0.5 * (moved.P + moved.P.T), moved.x, moved.y)


def _reach(scaling: Scaling, state: _State, ahead: _State) -> float:
    """Longest step up to 1 that stays inside."""
    return min(1.0, scaling.reach(ahead.P, ahead.S), longest_step(state.x, ahead.x), longest_step(state.z, ahead.z))


def _moved(state: _State, ahead: _State, step: float) -> _State:
    """All parts by a step along their directions."""
    names = ("P", "S", "x", "z", "y")
    return _State(*(getattr(state, name) + step * getattr(ahead, name) for name in names))
