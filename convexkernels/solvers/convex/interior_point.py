"""A primal-dual interior-point method for kernel and coefficients together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from convexkernels.arrays import Array
from convexkernels.cones import Cone, Scaling
from convexkernels.families.base import GramSet
from convexkernels.linalg import longest_step
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.convex.box_program import Program, adjoint, at_point, collect, derivative
from convexkernels.solvers.convex.newton_system import Direction, State, System

# Steps shorter than this are made without the correction, and if these are short, too, towards the central path.
SHORT = 0.1
# By how much pairs grow when steps are short although they aim at the central path.
WIDER = 10.0
# Steps within which the gap has to halve; beyond them rounding is what is left of it.
PATIENCE = 30
# Rows of all outputs together: one factorization of a matrix of this size takes seconds.
LARGEST_SYSTEM = 4000
# Numbers in the derivative of the Gram matrices, 8 bytes each.
LARGEST_DERIVATIVE = 20_000_000


@dataclass(eq=False)
class Pace:
    """The gap when it had halved last, and how many steps ago that was; it is over after `patience` of them."""

    patience: int
    halved: float = np.inf
    age: int = 0

    def is_over(self, gap: float) -> bool:
        """Whether too many steps have brought too little, the last one with this gap included."""
        self.age += 1
        if gap <= 0.5 * self.halved:
            self.halved, self.age = gap, 0
        return self.age >= self.patience


class InteriorPoint(OuterSolver):
    """Newton's method on the optimality conditions of theta and alpha at once, along the central path.

    The problem is ``max over alpha of c(alpha) - tau/2 * s`` with ``S = s I - A*(w w')`` in the cone of Theta, and the
    multiplier of S is theta itself. With S as a function of s and w, a step of the primal-dual method (Nesterov and
    Todd's scaling W, Mehrotra's predictor and corrector) solves one system in the coefficients,

        (K(theta) + E^-1 + 2 T (W x W) T') dw + db - T(W(I)) ds = r,        T_i = derivative of (K(theta) w)_i,

    so that neither the number of steps nor their cost depends on how singular the best kernel is: J may have kinks.
    For up to a few thousand coefficients and Theta a simplex or the PSD matrices of bounded trace; 15 to 30 steps,
    O(m^3 + m^2 q^2) each for a q x q parameter.
    """

    name = "interior-point"
    passes_kinks = True

    def accepts(self, problem: Any) -> str | None:
        gram_set = problem.gram_set
        if gram_set.cone() is None or type(gram_set).derivative is GramSet.derivative:
            return "it needs a family over a cone (weights >= 0, PSD matrices) with derivatives of its Gram matrices"
        if problem.loss.parabola(np.zeros_like(problem.Y[0]), problem.Y[0], problem.weights) is None:
            return "the dual of its loss is not known by its parabolas"
        size = len(problem.Y) * problem.m
        if size > LARGEST_SYSTEM or size * gram_set.initial().size > LARGEST_DERIVATIVE:
            return f"{size} coefficients with a parameter of {gram_set.initial().size} numbers are too many"
        return None

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        theta = problem.gram_set.initial()
        K = problem.gram_set.gram(theta)
        program, cone = collect(problem, K), problem.gram_set.cone()
        assert cone is not None
        state = _starting_point(problem, program, cone, cone.coordinates(theta), K)
        return self._iterate(problem, program, cone, state, Pace(PATIENCE))

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        program, cone, state, pace = iterate.memory
        try:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                moved = _step(problem, program, cone, state)
                if moved and np.isfinite(state.w).all() and np.isfinite(state.P).all():
                    found = self._iterate(problem, program, cone, state, pace)
                    found.status = Status.STALLED if pace.is_over(found.relative_gap) else None
                    return found
                iterate.status = Status.NUMERICAL_ERROR if moved else Status.STALLED
        except (LinAlgError, ValueError):  # numpy's for singular matrices, scipy's for infinities
            iterate.status = Status.NUMERICAL_ERROR
        return iterate

    def _iterate(self, problem: Any, program: Program, cone: Cone, state: State, pace: Pace) -> Iterate:
        loss = problem.loss
        W = program.unstack(program.size * state.w, problem.m)
        alpha = np.array(
            [loss.feasible(loss.dual_variable(w, y), y, problem.weights) for w, y in zip(W, problem.Y, strict=True)]
        )
        theta = cone.theta(state.P)
        found = problem.measure(theta, alpha, state.K)
        lower, _, _ = problem.lower_bound(found)
        return Iterate(theta.copy(), alpha, found.upper, lower, memory=(program, cone, state, pace))


def _starting_point(problem: Any, program: Program, cone: Cone, P: Array, K: Array) -> State:
    """The center P of Theta, coefficients well inside the box, and an S as large as the rest."""
    # Without it the first steps would be cut to nothing where the optimum is far below the bounds; the constant part
    # of K, which an intercept makes free, says nothing of where that is.
    size = float(np.diagonal(K).mean()) - (float(K.mean()) if program.intercept else 0.0)
    first = min(0.5, 1.0 / max(program.unit * size, 1e-300))
    x = first * program.cap
    if program.intercept and x.size:
        x = x * _balancing(program, x)
    w = np.bincount(program.point, program.sign * x, minlength=len(program.lin)).astype(np.float64, copy=False)
    if program.free.any():
        w = (
            problem.coefficients(problem.loss.maximize_all(K, problem.Y, problem.weights))[program.output, program.row]
            / program.size
        )
    D = adjoint(problem, program, cone, w)
    largest = max(cone.largest(D), 0.0)
    tau = float(np.vdot(cone.one, P))
    s = 2.0 * largest + 2.0 * cone.rank / tau * (float(x.mean()) if x.size else 1e-3)
    return State(
        P=P,
        S=cone.begin(s, D),
        s=s,
        w=w,
        x=x,
        slack=program.cap - x,
        z=np.ones_like(x),
        t=x / (program.cap - x),  # as far from the path as z
        b=np.zeros(program.n_outputs),
        K=K,
        T=derivative(problem, program, cone, w),
        total=tau,
    )


def _balancing(program: Program, x: Array) -> Array:
    """Factors that shrink the heavier sign of every output until its coefficients sum to 0."""
    owner = program.output[program.point]
    up = np.bincount(owner, np.where(program.sign > 0, x, 0.0), minlength=program.n_outputs)
    down = np.bincount(owner, np.where(program.sign < 0, x, 0.0), minlength=program.n_outputs)
    least = np.minimum(up, down)
    rising, falling = (np.divide(least, part, out=np.zeros_like(part), where=part > 0.0)[owner] for part in (up, down))
    return np.where(program.sign > 0, rising, falling)


def _step(problem: Any, program: Program, cone: Cone, state: State) -> bool:
    """One predictor-corrector step on `state` in place; False when it cannot be made."""
    scaling = cone.scaling(state.P, state.S)
    if scaling is None:
        return False
    program = at_point(problem, program, state.w)
    system = System.build(program, cone, scaling, state)
    if system is None:
        return False
    mu = state.mu(cone)
    ahead = system.direction(0.0)
    ahead.bend = -adjoint(problem, program, cone, ahead.w)
    reach = _reach(program, scaling, state, ahead)
    pairs = float((state.x + reach * ahead.x) @ (state.z + reach * ahead.z))
    pairs += float((state.slack - reach * ahead.x) @ (state.t + reach * ahead.t))
    S = state.S + reach * ahead.S + reach * reach * ahead.bend
    pairs += 0.5 * (float(np.vdot(state.P + reach * ahead.P, S)) + cone.excess)
    # Where the predictor is soon blocked, its second-order error says nothing of the step that can be made.
    share = max(pairs, 0.0) / (mu * (2 * len(state.x) + cone.rank))
    sigma = min(1.0, share) ** 3
    # Where it is blocked so that the corrected step is short, the correction is what is wrong; else the path is far.
    for aim, correction in ((max(sigma, 1e-6) * mu, ahead), (max(sigma, 1e-6) * mu, None), (mu, None)):
        final, step = _farthest(problem, program, cone, scaling, system, state, aim, correction)
        if step >= SHORT:
            break
    S, P = state.S + step * final.S + step * step * final.bend, state.P + step * final.P
    if not np.isfinite(step) or step <= 1e-10:
        return False
    scaling.advance(step, final.P, final.S + step * final.bend, S)
    state.P, state.S, state.s = P, 0.5 * (S + S.T), state.s + step * final.s
    state.w = state.w + step * final.w
    state.x, state.slack = state.x + step * final.x, state.slack - step * final.x
    state.z, state.t, state.b = state.z + step * final.z, state.t + step * final.t, state.b + step * final.b
    state.K = problem.gram_set.gram(cone.theta(P), out=state.K)
    if step < SHORT:
        _widen(problem, program, cone, state)
    state.T = derivative(problem, program, cone, state.w)
    return True


def _widen(problem: Any, program: Program, cone: Cone, state: State) -> None:
    """A point farther from the boundary: S follows w along a parabola, which a small S allows small steps only."""
    state.z, state.t = WIDER * state.z, WIDER * state.t
    room = (float(np.vdot(state.P, state.S)) + cone.excess) / state.total
    D = adjoint(problem, program, cone, state.w)
    state.s = max(state.s, cone.largest(D)) + (WIDER - 1.0) * room
    state.S = cone.begin(state.s, D)


def _farthest(
    problem: Any, program: Program, cone: Cone, scaling: Scaling, system: System, state: State, mu: float,
    ahead: Direction | None,
) -> tuple[Direction, float]:  # fmt: skip
    """A direction towards the central path, and how far it is followed."""
    found = system.direction(mu, ahead)
    found.bend = -adjoint(problem, program, cone, found.w)
    return found, 0.98 * _reach(program, scaling, state, found)


def _reach(program: Program, scaling: Scaling, state: State, ahead: Direction) -> float:
    """Longest step up to 1 that leaves all pairs positive; S follows the coefficients exactly, along a parabola."""
    free, w, dw = program.free, state.w[program.free], ahead.w[program.free]
    rooms = ((w - program.lo[free], dw), (program.hi[free] - w, -dw))
    pairs = ((state.x, ahead.x), (state.slack, -ahead.x), (state.z, ahead.z), (state.t, ahead.t), *rooms)
    others = min(1.0, *(longest_step(value, change) for value, change in pairs))
    # The parabola bends downwards: it is above its chord up to 1, and below its tangent.
    low = min(others, scaling.reach(ahead.P, ahead.S + ahead.bend))
    high = min(others, scaling.reach(ahead.P, ahead.S))
    for _ in range(8):
        if high - low <= 1e-3 * high:
            break
        middle = 0.5 * (low + high)
        S = state.S + middle * ahead.S + middle * middle * ahead.bend
        inside = scaling.holds(middle, ahead.P, ahead.S + middle * ahead.bend, S)
        low, high = (middle, high) if inside else (low, middle)
    return low
