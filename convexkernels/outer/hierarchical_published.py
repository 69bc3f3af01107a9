"""Algorithm 1 of Steinwart, Thomann and Schmid: annealing and gradient descent around machines that are held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.outer.hierarchical_annealing import FixedFunction, anneal
from convexkernels.outer.hierarchical_parts import Parts, check_classes, three_parts
from convexkernels.outer.hierarchical_search import Found, Watch
from convexkernels.solution import Record, Status

if TYPE_CHECKING:
    from convexkernels.outer.hierarchical import HierarchicalLearning

__all__ = ["PAPER_SCHEDULE", "Schedule", "search_as_published"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Schedule:
    """The constants of Algorithm 1; those of Section 5 by default.

    Attributes
    ----------
    rounds : int
        M, trainings of the machine.
    passes : int
        L, alternations between two trainings.
    first_annealing, later_annealing : int
        N1 and N2, annealing steps after a training and after a local minimum.
    gradient_steps : int
        N3.
    n_lams, n_gammas : int
        The grid of the machine: 10 by 10 in the paper. The values of gamma are factors around the present width.
    """

    rounds: int = 15
    passes: int = 10
    first_annealing: int = 1000
    later_annealing: int = 500
    gradient_steps: int = 10
    n_lams: int = 10
    n_gammas: int = 10


PAPER_SCHEDULE = Schedule()

# The grid of lam, per row, and of the factors of gamma.
LAMS_PER_ROW = (1e-7, 1e-1)
GAMMA_FACTORS = (0.25, 4.0)
# Armijo: a step has to gain this share of what the slope promises; it is halved at most so often.
ARMIJO, HALVINGS = 1e-4, 20
# A relative gain of a whole descent below this is a local minimum.
LOCAL = 1e-6


@dataclass(eq=False)
class _Trained:
    """Step 3 of the algorithm: a machine on D1, with lam and gamma by the risk on D2."""

    weights: Array  # gamma consumed
    lam: float
    alpha: Array  # (rows of D1, outputs)


class _Risks:
    """Risks of fixed functions on the parts."""

    def __init__(self, problem: HierarchicalLearning) -> None:
        self.problem = problem

    def of_values(self, rows: Rows, values: Array) -> tuple[float, Array]:
        """Risk of ``offset + values`` on some rows, and its slope in the values."""
        problem = self.problem
        F = values + problem.offset
        clipped = F if problem.clip is None else np.clip(F, -problem.clip, problem.clip)
        losses, slope = problem.judge(problem.Y[rows], clipped)
        share = problem.weights[rows][:, None] / (problem.weights[rows].sum() * losses.shape[1])
        return float((share * losses).sum()), np.where(clipped == F, slope, 0.0) * share

    def of_weights(self, rows: Rows, parts: Parts, weights: Array, alpha: Array) -> float:
        """Risk on some rows of the function of `alpha` with other weights."""
        return self.of_values(rows, self.cross(rows, parts, weights) @ alpha)[0]

    def cross(self, rows: Rows, parts: Parts, weights: Array) -> Array:
        problem = self.problem
        return problem.tree.evaluate(weights**2, problem.X[rows], problem.X[parts.train]).gram()

    def slope(self, parts: Parts, weights: Array, alpha: Array) -> tuple[float, Array]:
        """Risk on D2 and its gradient in the weights, alpha held fixed."""
        problem = self.problem
        kernel = problem.tree.evaluate(weights**2, problem.X[parts.move], problem.X[parts.train])
        value, slope = self.of_values(parts.move, kernel.gram() @ alpha)
        return value, kernel.gradient(slope @ alpha.T) / weights


def search_as_published(
    problem: HierarchicalLearning, start: Array, schedule: Schedule, rng: np.random.Generator, watch: Watch
) -> tuple[Found, dict[str, Array]]:
    """Algorithm 1: the weights with the least risk on D3, and the risks on all parts along the way."""
    check_schedule(schedule)
    parts = three_parts(len(problem.X), rng)
    if problem.loss_name == "hinge" or problem.clip is not None:
        check_classes(problem.Y, [parts.train, parts.move, parts.choose])
    risks = _Risks(problem)
    weights, best, best_risk = np.exp(start[:-1]), start, np.inf
    trace: list[tuple[float, float, float, float]] = []
    history: list[Record] = []
    status = Status.ITERATION_LIMIT
    try:
        for i in range(schedule.rounds):
            trained = _train(problem, risks, parts, weights, schedule, start[-1], watch)
            weights, before = trained.weights, best_risk
            weights = _anneal(problem, risks, parts, weights, trained.alpha, schedule.first_annealing, rng, watch)
            at_minimum = False
            for j in range(schedule.passes):
                if at_minimum:
                    weights = _anneal(
                        problem, risks, parts, weights, trained.alpha, schedule.later_annealing, rng, watch
                    )
                    at_minimum = False
                else:
                    weights, at_minimum = _descend(risks, parts, weights, trained.alpha, schedule.gradient_steps, watch)
                on = [
                    risks.of_weights(r, parts, weights, trained.alpha) for r in (parts.train, parts.move, parts.choose)
                ]
                trace.append((watch.seconds, on[0], on[1], on[2]))
                if on[2] < best_risk:
                    best_risk, best = on[2], np.append(np.log(weights), np.log(trained.lam))
                history.append(Record(len(trace), best_risk, -np.inf, watch.seconds))
                done = (i + (j + 1) / schedule.passes) / schedule.rounds
                watch.tell(done, f"round {i + 1} of {schedule.rounds}, risk on D3 {best_risk:.6g}", best)
                if watch.is_over:
                    status = Status.TIME_LIMIT
                    break
            if status is Status.TIME_LIMIT:
                break
            if not best_risk < before:
                parts = parts.reshuffled(rng)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    columns = np.array(trace).reshape(-1, 4).T
    return Found(best, status, len(trace), history), dict(zip(("seconds", "D1", "D2", "D3"), columns, strict=True))


def check_schedule(schedule: Schedule) -> None:
    """Refuse constants below 1."""
    for name, value in vars(schedule).items():
        if not isinstance(value, int | np.integer) or value < 1:
            raise InvalidInputError(f"{name} of the schedule must be a whole number >= 1, got {value!r}.")


def _train(
    problem: HierarchicalLearning,
    risks: _Risks,
    parts: Parts,
    weights: Array,
    schedule: Schedule,
    log_lam: float,
    watch: Watch,
) -> _Trained:
    """Step 3: the machine on D1 whose lam and gamma err least on D2, among those that there is time for."""
    lams = np.geomspace(*LAMS_PER_ROW, schedule.n_lams)[::-1] * float(problem.weights[parts.train].sum())
    factors = np.geomspace(*GAMMA_FACTORS, schedule.n_gammas)
    if schedule.n_lams == 1:
        lams = np.array([np.exp(log_lam)])
    # A width that no value of the grid leaves as it is would move the weights without being asked.
    factors = np.append(factors, 1.0) if schedule.n_gammas > 1 else np.ones(1)
    best, best_risk = None, np.inf
    top = problem.tree.places[-1].weights
    for factor in sorted(factors, key=lambda factor: abs(float(np.log(factor)))):
        if best is not None and watch.is_over:
            break
        scaled = weights.copy()
        scaled[top] /= factor
        K = problem.tree.evaluate(scaled**2, problem.X[parts.train]).gram()
        cross = risks.cross(parts.move, parts, scaled)
        start: Array | None = None
        for lam in lams:
            start, alpha = _machine(problem, parts, K, float(lam), start)
            if alpha is None:
                break
            risk, _ = risks.of_values(parts.move, cross @ alpha)
            if risk < best_risk or best is None:
                best, best_risk = _Trained(scaled, float(lam), alpha), risk
            if watch.is_over:
                break
    assert best is not None
    return best


def _machine(
    problem: HierarchicalLearning, parts: Parts, K: Array, lam: float, start: Array | None
) -> tuple[Array | None, Array | None]:
    """Dual variables and coefficients of the machine on D1; None where K is not definite at working precision."""
    loss, weights = problem.loss(lam), problem.weights[parts.train]
    Y = np.ascontiguousarray((problem.Y[parts.train] - problem.offset).T)
    if isinstance(loss, LeastSquares):
        try:
            factor = cho_factor(K + np.diag(lam / weights), lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None, None
        return None, cho_solve(factor, Y.T, check_finite=False)
    if start is not None:
        start = np.array([loss.feasible(a, y, weights) for a, y in zip(start, Y, strict=True)])
    duals = loss.maximise_all(K, Y, weights, start=start, tol=1e-3)
    return duals, np.array([loss.coefficients(a, y) for a, y in zip(duals, Y, strict=True)]).T


def _anneal(
    problem: HierarchicalLearning,
    risks: _Risks,
    parts: Parts,
    weights: Array,
    alpha: Array,
    steps: int,
    rng: np.random.Generator,
    watch: Watch,
) -> Array:
    """Steps 4 and 7."""
    function = FixedFunction(problem.tree, weights, problem.X[parts.move], problem.X[parts.train], alpha)
    anneal(
        function,
        lambda values: risks.of_values(parts.move, values)[0],
        steps,
        rng,
        lambda: watch.is_over,
    )
    return function.weights


def _descend(risks: _Risks, parts: Parts, weights: Array, alpha: Array, steps: int, watch: Watch) -> tuple[Array, bool]:
    """Step 9: gradient steps whose length satisfies Armijo's condition; says whether they ended at a local minimum."""
    here, slope = risks.slope(parts, weights, alpha)
    first, length = here, 0.1 * float(np.linalg.norm(weights)) / max(float(np.linalg.norm(slope)), 1e-300)
    for _ in range(steps):
        if watch.is_over:
            break
        for _ in range(HALVINGS):
            # Only squares of weights count; 0 would cut a node off for ever.
            trial = np.maximum(np.abs(weights - length * slope), 1e-12)
            there = risks.of_weights(parts.move, parts, trial, alpha)
            if there <= here - ARMIJO * length * float(slope @ slope):
                break
            length *= 0.5
        else:
            return weights, True
        weights = trial
        here, slope = risks.slope(parts, weights, alpha)
        length *= 2.0
    return weights, first - here <= LOCAL * abs(first)
