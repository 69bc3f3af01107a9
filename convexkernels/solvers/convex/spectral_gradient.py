"""Spectral projected gradient on the parameter of the kernel, with a quasi-Newton model of J."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.convex.interior_point import InteriorPoint
from convexkernels.solvers.convex.quadratic_models import QuasiNewtonModel, SecondDerivatives, minimize_model
from convexkernels.solvers.convex.witness import DualPoint, DualPoints

# Inner solutions cannot be solved more exactly than this relative gap in float64.
SMALLEST_TOL = 1e-13
# By how much J may bend more than its second derivatives say.
STIFFEST = 10.0
# Relative gap above which it is not for want of digits that J falls less than its gradient says: it has kinks.
FAR = 0.1


@dataclass(eq=False)
class _Memory:
    evaluation: Any
    gradient: Array
    model: QuasiNewtonModel
    values: list[float]
    K: Array
    points: DualPoints
    tightening: float = 1.0
    interior: float = 0.0
    checkpoint: float = np.inf
    age: int = 0
    stiffness: float = 1.0


@dataclass(frozen=True, eq=False)
class _HandedOver:
    """Where the interior-point method stands, and where this one stood when it handed over."""

    current: Iterate
    before: Iterate


class SpectralGradient(OuterSolver):
    """Projected gradient steps scaled by a limited-memory quasi-Newton matrix.

    J is differentiable with gradient ``-scale / 2 A*(w w')`` (Danskin). Each step minimizes a quadratic model
    of J over Theta by spectral projected gradient [BMR00], as in
    [SBFM09]: projections onto Theta are cheap, values of J are not. On a simplex the model with second derivatives is
    minimized exactly. With ``memory=0``
    the model is a multiple of the identity and the method is spectral projected gradient itself. Inner solutions are
    warm-started and solved to a fraction of the gap still open. Lower bounds combine the dual variables of the last
    iterates.

    Parameters
    ----------
    memory : int, >= 0
        Number of steps the quasi-Newton matrix remembers.
    history : int, >= 1
        Number of past values the non-monotone line search compares with.
    newton_below : float
        Relative gap below which the model uses second derivatives of J, where problem and family offer them.
    patience : int
        Iterations within which the gap has to halve. Where it does not, or where J does not fall from a point far from
        the optimum whose SVMs are exact, the interior-point method takes over if it accepts the problem; else iterates
        keep a distance from the boundary of Theta, on which J has kinks, in proportion to the gap.
    initial : (theta, alpha), optional
        A point of a similar problem to start from, for example its solution at another regularization parameter; alpha
        may be None.
    """

    name = "spectral-gradient"

    def __init__(
        self,
        memory: int = 20,
        history: int = 1,
        newton_below: float = 0.1,
        patience: int = 5,
        initial: tuple[Array, Array | None] | None = None,
    ) -> None:
        self.memory = memory
        self.history = history
        self.newton_below = newton_below
        self.patience = patience
        self.initial = initial
        self.other = InteriorPoint()

    def accepts(self, problem: Any) -> str | None:
        return None if problem.gram_set.has_projection else "its family has no cheap projection; use 'conic'"

    def go_on(self, iterate: Iterate, n_steps: int) -> None:
        self.initial = iterate.theta, iterate.alpha

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        theta, alpha = (problem.gram_set.initial(), None) if self.initial is None else self.initial
        K = problem.gram_set.matrix(theta)
        known = None if alpha is None else problem.feasible(alpha)
        evaluation = problem.evaluate(theta, K=K, start=known, tol=1e-3, deadline=deadline)
        lower, gradient, vertex = problem.lower_bound(evaluation)
        # A first step about as long as the set: from theta to the best vertex.
        length = max(float(np.linalg.norm(vertex - theta)), 1e-300)
        model = QuasiNewtonModel(self.memory, max(float(np.linalg.norm(gradient)) / length, 1e-300))
        memory = _Memory(evaluation, gradient, model, [evaluation.upper], K, DualPoints(problem.gram_set.support))
        return self._iterate(memory, lower, tol)

    def _iterate(self, memory: _Memory, lower: float, tol: float) -> Iterate:
        """The point just evaluated, with the best lower bound its dual variables and earlier ones prove together."""
        found, points = memory.evaluation, memory.points
        if found.upper - lower > tol * abs(found.upper):
            points.add(DualPoint(found.alpha, found.constant, -memory.gradient), lower)
        witness = None
        if points.best is not None and points.lower > lower:
            witness, lower = points.best.alpha, points.lower
        return Iterate(found.theta, found.alpha, found.upper, lower, memory=memory, witness=witness)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        if isinstance(iterate.memory, _HandedOver):
            return self._go_on(problem, iterate, tol, deadline)
        memory: _Memory = iterate.memory
        theta = memory.evaluation.theta
        if self._is_slow(iterate) and not memory.interior:
            return self._leave(problem, iterate, tol, deadline)
        model, project = memory.model, self._projection(problem, iterate)
        product = self._product(problem, iterate)
        ahead = None
        if isinstance(product, SecondDerivatives) and problem.gram_set.is_simplex:
            ahead = product.minimize_on_simplex(theta, memory.gradient, memory.interior / theta.size)
        if ahead is None:
            ahead = minimize_model(theta, memory.gradient, product, model.sigma, project)
        direction = ahead - theta
        slope = float(np.vdot(memory.gradient, direction))
        found = self._search(problem, iterate, direction, slope, product, deadline) if slope < 0.0 else None
        if found is None:
            is_kink = iterate.relative_gap > FAR and memory.tightening < 1.0 and not memory.interior
            return (self._leave if is_kink else self._tighten)(problem, iterate, tol, deadline)
        lower, gradient, _ = problem.lower_bound(found)
        model.update(found.theta - theta, gradient - memory.gradient)
        values = [*memory.values, found.upper][-self.history :]
        memory = replace(memory, evaluation=found, gradient=gradient, values=values)
        return self._iterate(memory, lower, tol)

    def _leave(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """Hand over to the interior-point method, or keep off the boundary of Theta."""
        if self.other.accepts(problem) is not None:
            return self._move_inside(problem, iterate, tol, deadline)
        begun = self.other.start(problem, tol, deadline)
        return replace(begun, memory=_HandedOver(begun, iterate))

    def _go_on(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """A step of the other method, or back to this one where that stalls."""
        taken: _HandedOver = iterate.memory
        found = self.other.step(problem, taken.current, tol, deadline)
        if found.status is not None:
            return self._move_inside(problem, taken.before, tol, deadline)
        return replace(found, memory=_HandedOver(found, taken.before))

    def _is_slow(self, iterate: Iterate) -> bool:
        """Whether the gap was not halved by the last few iterations."""
        memory: _Memory = iterate.memory
        memory.age += 1
        if memory.age % self.patience:
            return False
        gap = iterate.relative_gap
        slow = gap > 0.5 * memory.checkpoint
        memory.checkpoint = gap
        return slow

    def _projection(self, problem: Any, iterate: Iterate) -> Callable[[Array], Array]:
        """Projection onto ``(1 - e) Theta + e center``; e is 0, or follows the gap once there is need."""
        memory: _Memory = iterate.memory
        project = problem.gram_set.project
        if not memory.interior:
            return project
        memory.interior = e = min(memory.interior, 0.3 * iterate.relative_gap)
        center = problem.gram_set.initial()
        return lambda theta: (1.0 - e) * project((theta - e * center) / (1.0 - e)) + e * center

    def _move_inside(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """Keep a distance from the boundary of Theta from here on.

        Where the best kernel is singular on the data, J has kinks at the boundary and the inner solutions there are not
        unique. Inside it is smooth. A distance e costs a factor ``1 / (1 - e)`` of J at most, so it shrinks with the
        gap.
        """
        memory: _Memory = iterate.memory
        e = float(np.clip(0.3 * iterate.relative_gap, 1e-12, 0.1))
        theta = (1.0 - e) * memory.evaluation.theta + e * problem.gram_set.initial()
        memory = replace(memory, interior=e)
        return self._evaluate_afresh(problem, replace(iterate, memory=memory), theta, tol, deadline)

    def _product(self, problem: Any, iterate: Iterate) -> Callable[[Array], Array]:
        """The matrix of the quadratic model: exact second derivatives near the optimum, where there are any."""
        memory: _Memory = iterate.memory
        if not self.memory or (iterate.relative_gap > self.newton_below and not memory.interior):
            return memory.model.product()
        R = problem.curvature(memory.evaluation, memory.K)
        if R is None:
            return memory.model.product()
        # A little of the quasi-Newton scale keeps directions to which no free coefficient answers bounded.
        floor = 1e-8 * float(np.einsum("ij,ij->", R, R)) / R.shape[1]
        return SecondDerivatives(R, floor, memory.stiffness)

    def _inner_tol(self, iterate: Iterate) -> float:
        return iterate.inner_tol(SMALLEST_TOL, 0.02 * iterate.memory.tightening)

    def _tighten(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        """Solve the SVMs at the same theta more exactly: what is left of the gap may be theirs."""
        memory: _Memory = iterate.memory
        if memory.tightening < 1e-6 or self._inner_tol(iterate) <= SMALLEST_TOL:
            iterate.status = Status.STALLED
            return iterate
        memory.tightening *= 1e-2
        return self._evaluate_afresh(problem, iterate, memory.evaluation.theta, tol, deadline)

    def _evaluate_afresh(
        self, problem: Any, iterate: Iterate, theta: Array, tol: float, deadline: float | None
    ) -> Iterate:
        """Evaluate `theta`, with a model that has forgotten what it learnt: it would mislead from here on."""
        memory: _Memory = iterate.memory
        K = problem.gram_set.matrix(theta, out=memory.K)
        start, inner_tol = memory.evaluation.alpha, self._inner_tol(iterate)
        found = problem.evaluate(theta, K=K, start=start, tol=inner_tol, deadline=deadline)
        lower, gradient, _ = problem.lower_bound(found)
        model = QuasiNewtonModel(self.memory, memory.model.sigma)
        memory = replace(memory, evaluation=found, gradient=gradient, model=model, values=[found.upper], K=K)
        return self._iterate(memory, lower, tol)

    def _stiffness(
        self, memory: _Memory, curvature: float, direction: Array, slope: float, product: Any, inner_tol: float
    ) -> float:
        """By how much J bends more than its second derivatives say, judged by a whole step.

        Where the step promised less than inner solutions are exact to, what was seen is their error.
        """
        expected = float(np.vdot(direction, product(direction)))
        if not expected > 0.0 or -slope <= inner_tol * abs(memory.evaluation.value):
            return 1.0
        return float(np.clip(memory.stiffness * curvature / expected, 1.0, STIFFEST))

    def _search(
        self,
        problem: Any,
        iterate: Iterate,
        direction: Array,
        slope: float,
        product: Callable[[Array], Array],
        deadline: float | None,
    ) -> Any:
        """First point along `direction` that decreases J enough, evaluated; None at working precision.

        The whole step also shows how much more J bends than the model: second derivatives hold while the active bounds
        stay as they are, and with many rows many of them change.
        """
        memory: _Memory = iterate.memory
        here = memory.evaluation
        inner_tol = self._inner_tol(iterate)
        target, start, eta = max(memory.values), here.alpha, 1.0
        for _ in range(30):
            theta = here.theta + eta * direction
            K = problem.gram_set.matrix(theta, out=memory.K)
            trial = problem.evaluate(theta, K=K, start=start, tol=inner_tol, deadline=deadline)
            curvature = 2.0 * (trial.value - here.value - eta * slope) / eta**2
            if eta == 1.0:
                memory.stiffness = self._stiffness(memory, curvature, direction, slope, product, inner_tol)
            # Inner solutions are inexact: J lies between `value` and `upper`, here and there.
            if trial.value <= target + 1e-4 * eta * slope:
                return trial
            eta = float(np.clip(-slope / curvature if curvature > 0 else 0.5 * eta, 0.1 * eta, 0.5 * eta))
            start = trial.alpha
        return None
