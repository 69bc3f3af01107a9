"""The linear system of one step of the interior-point method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from convexkernels.arrays import Array
from convexkernels.cones import Cone, Scaling
from convexkernels.linalg import shifted_cholesky
from convexkernels.solvers.convex.box_program import Program, values


@dataclass(eq=False)
class State:
    """A point inside all cones, with ``K = K(P)`` and T the derivatives of ``(K w)_i`` in P.

    S = s I - A*(w w') holds all the way; z and t are the multipliers of ``x >= 0`` and ``slack = cap - x >= 0``, b that
    of the sums of w; `total` is the sum or trace that theta keeps.
    """

    P: Array
    S: Array
    s: float
    w: Array
    x: Array
    slack: Array
    z: Array
    t: Array
    b: Array
    K: Array
    T: Array
    total: float

    def mu(self, cone: Cone) -> float:
        """Mean complementarity."""
        pairs = float(self.x @ self.z + self.slack @ self.t) + 0.5 * (float(np.vdot(self.P, self.S)) + cone.excess)
        return pairs / (2 * len(self.x) + cone.rank)


@dataclass(eq=False)
class Direction:
    """Changes of a `State`; S also bends by `bend = -A*(dw dw')` away from its straight line."""

    P: Array
    S: Array
    s: float
    w: Array
    x: Array
    z: Array
    t: Array
    b: Array
    bend: Array


@dataclass(frozen=True, eq=False)
class System:
    """The Newton system at a state, factorized: ``M dw + B db - q ds = right``, ``B'dw``, ``q'dw - h/2 ds`` given."""

    program: Program
    cone: Cone
    scaling: Scaling
    state: State
    f: Array
    quadratic: Array
    D: Array
    E: Array
    factor: Any
    border: Array
    solved: Array
    WI: Array
    q: Array

    @classmethod
    def build(cls, program: Program, cone: Cone, scaling: Scaling, state: State) -> System | None:
        """None when the matrix cannot be factorized."""
        D = state.z / state.x + state.t / state.slack
        E = np.bincount(program.point, 1.0 / D, minlength=len(program.lin)).astype(np.float64, copy=False)
        M = np.zeros((len(program.lin), len(program.lin)))
        for k in range(program.n_outputs):
            mine = np.flatnonzero(program.output == k)
            rows = program.row[mine]
            M[np.ix_(mine, mine)] = program.unit * state.K[np.ix_(rows, rows)]
        H = scaling.halves(state.T)
        M += 2.0 * (H @ H.T)
        quadratic = M.copy()
        M[np.diag_indices_from(M)] += np.where(program.free, program.diagonal, 1.0 / np.where(E > 0, E, 1.0))
        factor = shifted_cholesky(M)
        if factor is None:
            return None
        WI = scaling.apply(cone.one)
        q = np.tensordot(state.T, WI, WI.ndim)
        border = q[:, None]
        if program.intercept:
            border = np.column_stack([np.equal.outer(program.output, np.arange(program.n_outputs)), q])
        solved = cho_solve(factor, border, check_finite=False)
        f = values(program, state.K, state.w)
        return cls(program, cone, scaling, state, f, quadratic, D, E, factor, border, solved, WI, q)

    def direction(self, mu: float, ahead: Direction | None = None) -> Direction:
        """Direction towards the point of the central path of parameter `mu`, corrected by a predictor."""
        program, s = self.program, self.state
        point, sign = program.point, program.sign
        comp_x, comp_slack = mu - s.x * s.z, mu - s.slack * s.t
        if ahead is None:
            right_P = self.scaling.target(2.0 * mu)
        else:
            comp_x, comp_slack = comp_x - ahead.x * ahead.z, comp_slack + ahead.x * ahead.t
            right_P = self.scaling.target(2.0 * mu, ahead.P, ahead.S + ahead.bend) - self.scaling.apply(ahead.bend)
        constant = np.tensordot(s.T, right_P, right_P.ndim)
        slope = self.f + s.b[program.output]
        r = program.cost + sign * slope[point] - s.z + s.t - comp_x / s.x + comp_slack / s.slack
        rho = np.bincount(point, sign * r / self.D, minlength=len(program.lin))
        right = np.where(
            program.free,
            program.lin - program.diagonal * s.w - slope,
            -rho / np.where(self.E > 0, self.E, 1.0),
        )
        right = right - constant
        dw, db, ds = self._solve(right, right_P)
        g = self.quadratic @ dw + constant - self.q * ds + db[program.output]
        dx = -(r + sign * g[point]) / self.D
        dS = ds * self.cone.one - 2.0 * np.tensordot(dw, s.T, 1)
        bend = 0.0 if ahead is None else ahead.bend
        return Direction(
            P=right_P - self.scaling.apply(dS),
            S=dS,
            s=ds,
            w=dw,
            x=dx,
            z=(comp_x - s.z * dx) / s.x,
            t=(comp_slack + s.t * dx) / s.slack,
            b=db,
            bend=np.zeros_like(dS) + bend,
        )

    def _solve(self, right: Array, right_P: Array) -> tuple[Array, Array, float]:
        program, s = self.program, self.state
        u = cho_solve(self.factor, right, check_finite=False)
        # Columns of the border: one per intercept, then q; ds enters with the opposite sign.
        small = self.border.T @ self.solved
        values = self.border.T @ u
        idle = np.flatnonzero(~self.border[:, :-1].any(axis=0))  # outputs that no coefficient belongs to
        small[idle, idle] = 1.0
        small[-1, -1] -= 0.5 * float(np.vdot(self.cone.one, self.WI))
        values[-1] -= 0.5 * (s.total - float(np.vdot(self.cone.one, s.P + right_P)))
        if program.intercept:
            values[:-1] += program.sums(s.w)
        unknown = np.linalg.solve(small, values)  # (db, -ds)
        dw = u - self.solved @ unknown
        db = unknown[:-1] if program.intercept else np.zeros(program.n_outputs)
        return dw, db, -float(unknown[-1])
