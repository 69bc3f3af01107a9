"""Algorithm 1 of Steinwart, Thomann and Schmid: annealing and gradient descent around functions that are held fixed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.criteria.base import clipped
from convexkernels.criteria.folds import Rows, have_all_classes, three_parts
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.trees import LARGEST_LOG, TreesGramSet
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.losses.fit import fit
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solvers.nonconvex.annealing import FixedFunction, anneal


@dataclass(frozen=True)
class Schedule:
    """The constants of Algorithm 1; those of the experiments [ST16 Section 5] by default.

    Attributes
    ----------
    rounds : int
        M, trainings of the function.
    passes : int
        L, alternations between two trainings.
    first_annealing, later_annealing : int
        N1 and N2, annealing steps after a training and after a local minimum.
    gradient_steps : int
        N3.
    n_lams, n_gammas : int
        The grid of the training: 10 by 10 in the paper. The values of gamma are factors around the present width, which
        is tried, too, where their number is even.
    """

    rounds: int = 15
    passes: int = 10
    first_annealing: int = 1000
    later_annealing: int = 500
    gradient_steps: int = 10
    n_lams: int = 10
    n_gammas: int = 10

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int | np.integer) or value < 1:
                raise InvalidInputError(f"{name} of the schedule must be a whole number >= 1, got {value!r}.")


# The grid of lam, per row, and of the factors of gamma.
LAMS_PER_ROW = (1e-7, 1e-1)
GAMMA_FACTORS = (0.25, 4.0)
# Armijo: a step has to gain this share of what the slope promises; it is halved at most so often.
ARMIJO, HALVINGS = 1e-4, 20
# A relative gain of a whole descent below this is a local minimum.
LOCAL = 1e-6
# Parts are drawn so often before a class counts as too small.
DRAWS = 20
# Relative duality gap of trainings.
FIT_TOL = 1e-3
# Larger weights are none of the family: nothing that is found there could be returned.
LARGEST = float(np.exp(LARGEST_LOG)) * (1.0 - 1e-12)
# Only squares of weights count, and 0 would cut a node off for ever: a step of a descent leaves this part of them.
LEAST_PART, LEAST = 1e-12, 1e-150


class Annealing(OuterSolver):
    """Annealing and gradient descent on three parts of the rows, for trees [ST16 Algorithm 1].

    A step is one pass of the inner loop. The answer is the point with the least risk on the third part.

    Parameters
    ----------
    initial : ndarray, optional
        A point to begin with.
    schedule : Schedule, optional
        The constants; those of the paper when not given.
    max_iter : int, optional
        Passes; those of the schedule when not given.
    random_state : int, numpy.random.Generator or None
    """

    name = "annealing"
    values_compare = False
    is_scheduled = True

    def __init__(
        self,
        initial: Any = None,
        schedule: Schedule | None = None,
        max_iter: int | None = None,
        random_state: Any = None,
    ) -> None:
        if schedule is not None and not isinstance(schedule, Schedule):
            raise InvalidInputError(f"schedule must be a Schedule or None, got {schedule!r}.")
        self.schedule = Schedule() if schedule is None else schedule
        self.initial, self.random_state = initial, random_state
        self.max_iter = self.schedule.rounds * self.schedule.passes if max_iter is None else max_iter

    def accepts(self, problem: Any) -> str | None:
        if not isinstance(problem.gram_set, TreesGramSet):
            return "it moves the weights of trees; use 'quasi-newton' or 'stochastic'"
        if len(problem.gram_set.weight_of) > problem.gram_set.n_unknowns:
            return "it moves every weight of a tree by itself, and some are tied; use 'quasi-newton' or 'stochastic'"
        if problem.loss.needs_definite:
            return f"{problem.loss!r} has no risk on rows that it does not interpolate"
        return None if problem.criterion.learns_lam else "it chooses lam; name a criterion that does, such as HeldOut"

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        rng = np.random.default_rng(self.random_state)
        theta = problem.start(rng) if self.initial is None else problem.check(self.initial)
        parts = _parts(problem, rng)
        return Iterate(theta, None, np.inf, memory=_Search(problem, self.schedule, rng, theta, parts))

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        search: _Search = iterate.memory
        search.deadline = np.inf if deadline is None else deadline
        search.advance()
        share = len(search.trace) / (self.schedule.rounds * self.schedule.passes)
        return Iterate(search.best, None, search.best_risk, memory=search, share=share)

    def findings(self, iterate: Iterate) -> dict[str, Any]:
        if iterate.memory is None:  # an end that was known
            return {}
        columns = np.array(iterate.memory.trace).reshape(-1, 4).T
        return {"trace": dict(zip(("seconds", "D1", "D2", "D3"), columns, strict=True))}


def _drawn(problem: Any, draw: Callable[[], tuple[Rows, ...]]) -> tuple[Rows, ...] | None:
    """Parts of the rows, drawn again where one of them lacks a class; None where one is too small for that."""
    for _ in range(DRAWS):
        parts = draw()
        if have_all_classes(problem.Y, parts):
            return parts
    return None


def _parts(problem: Any, rng: np.random.Generator) -> tuple[Rows, ...]:
    """The three parts of the rows."""
    parts = _drawn(problem, lambda: three_parts(problem.m, rng))
    if parts is None:
        raise InvalidInputError(
            f"a target of {problem.m} rows takes two values, of which the rarer one is in too few rows for each of "
            "three parts; pass more rows of it, or name another search than annealing."
        )
    return parts


def _halves(problem: Any, train: Rows, move: Rows, rng: np.random.Generator) -> tuple[Rows, ...]:
    """The first two parts shuffled, as they are where a class is too small for that."""

    def shuffled() -> tuple[Rows, Rows]:
        mixed = rng.permutation(np.concatenate([train, move]))
        return mixed[: len(train)], mixed[len(train) :]

    return _drawn(problem, shuffled) or (train, move)


@dataclass(eq=False)
class _Trained:
    """Step 3 of the algorithm: the function learned from D1, with lam and gamma by the risk on D2."""

    weights: Array  # gamma consumed
    lam: float
    alpha: Array  # (rows of D1, outputs)
    b: Array  # (outputs,)


class _Search:
    """Where the algorithm is."""

    deadline: float = np.inf

    def __init__(
        self, problem: Any, schedule: Schedule, rng: np.random.Generator, theta: Array, parts: tuple[Rows, ...]
    ) -> None:
        self.problem, self.schedule, self.rng, self.parts = problem, schedule, rng, parts
        self.tree, self.X = problem.gram_set.tree, problem.gram_set.X
        z, self.log_lam = problem.split(theta)
        self.weights = np.minimum(np.exp(z), LARGEST)
        self.best, self.best_risk, self.before = theta, np.inf, np.inf
        self.at_minimum, self.pass_number, self.began = False, 0, time.monotonic()
        self.trace: list[tuple[float, float, float, float]] = []

    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.deadline

    def advance(self) -> None:
        """One pass of the inner loop, after a training where a round begins."""
        if self.pass_number == 0:
            self.trained = self._train()
            self.weights, self.before, self.at_minimum = self.trained.weights, self.best_risk, False
            self._anneal(self.schedule.first_annealing)
        if self.at_minimum:
            self._anneal(self.schedule.later_annealing)
            self.at_minimum = False
        else:
            self._descend()
        risks = [self.risk_of_weights(part, self.weights) for part in self.parts]
        self.trace.append((time.monotonic() - self.began, risks[0], risks[1], risks[2]))
        if risks[2] < self.best_risk:
            self.best_risk = risks[2]
            self.best = self.problem.joined(np.log(self.weights), np.log(self.trained.lam))
        self.pass_number = (self.pass_number + 1) % self.schedule.passes
        if self.pass_number == 0 and not self.best_risk < self.before:
            train, move, choose = self.parts
            self.parts = *_halves(self.problem, train, move, self.rng), choose

    # -- risks of fixed functions ------------------------------------------------------------------

    def risk(self, rows: Rows, values: Array) -> tuple[float, Array]:
        """Risk of values on some rows, shape (k, outputs), and its slope in them: [ST16 (11)] on D2."""
        problem = self.problem
        F, moves = clipped(values.T, problem.bounds)
        losses, slope = problem.loss.pointwise(problem.Y[:, rows], F)
        share = problem.weights[rows] / (problem.weights[rows].sum() * len(F))
        return float((losses * share).sum()), (np.where(moves, slope, 0.0) * share).T

    def between(self, rows: Rows, weights: Array) -> TreeEvaluation:
        """The kernel between some rows and those of D1."""
        return TreeEvaluation(self.tree, weights**2, self.X[rows], self.X[self.parts[0]])

    def risk_of_weights(self, rows: Rows, weights: Array) -> float:
        """Risk on some rows of the trained coefficients with other weights."""
        return self.risk(rows, self.between(rows, weights).gram() @ self.trained.alpha + self.trained.b)[0]

    def slope(self) -> tuple[float, Array]:
        """Risk on D2 and its gradient in the weights, coefficients held fixed."""
        kernel = self.between(self.parts[1], self.weights)
        value, slope = self.risk(self.parts[1], kernel.gram() @ self.trained.alpha + self.trained.b)
        return value, kernel.gradient(slope @ self.trained.alpha.T) / self.weights

    # -- steps of the algorithm --------------------------------------------------------------------

    def _train(self) -> _Trained:
        """Step 3: the function learned from D1 whose lam and gamma err least on D2, among those there is time for."""
        problem, schedule, train = self.problem, self.schedule, self.parts[0]
        lams = np.geomspace(*LAMS_PER_ROW, schedule.n_lams)[::-1] * float(problem.weights[train].sum())
        if schedule.n_lams == 1:
            lams = np.array([np.exp(self.log_lam)])
        # A width that no value of the grid leaves as it is would move the weights without being asked.
        factors = np.geomspace(*GAMMA_FACTORS, schedule.n_gammas) if schedule.n_gammas > 1 else np.ones(1)
        if schedule.n_gammas % 2 == 0:
            factors = np.append(factors, 1.0)
        best, best_risk = None, np.inf
        top = self.tree.places[-1].weights
        for factor in sorted(factors, key=lambda factor: abs(float(np.log(factor)))):
            if best is not None and self.is_over():
                break
            scaled = self.weights.copy()
            scaled[top] /= factor
            if best is not None and scaled.max() > LARGEST:
                continue
            K = TreeEvaluation(self.tree, scaled**2, self.X[train]).gram()
            cross = self.between(self.parts[1], scaled).gram()
            for lam, alpha, b in self._path(K, lams):
                risk, _ = self.risk(self.parts[1], cross @ alpha + b)
                if risk < best_risk or best is None:
                    best, best_risk = _Trained(scaled, lam, alpha, b), risk
                if self.is_over():
                    break
        assert best is not None
        return best

    def _path(self, K: Array, lams: Array) -> Any:
        """Coefficients and intercepts on D1 for one lam after the other, as long as numbers stay finite."""
        problem, train = self.problem, self.parts[0]
        Y, weights = np.ascontiguousarray(problem.Y[:, train]), problem.weights[train]
        start: Array | None = None
        for lam in lams:
            found = fit(problem.loss.at(float(lam)), K, Y, weights, start=start, tol=FIT_TOL)
            start = found.alpha
            if not np.isfinite(found.W).all():
                return
            yield float(lam), found.W.T, found.b

    def _anneal(self, steps: int) -> None:
        """Steps 4 and 7."""
        train, move, _ = self.parts
        b = self.trained.b
        function = FixedFunction(self.tree, self.weights, self.X[move], self.X[train], self.trained.alpha)
        anneal(function, lambda values: self.risk(move, values + b)[0], steps, self.rng, self.is_over, LARGEST)
        self.weights = function.weights

    def _descend(self) -> None:
        """Step 9: gradient steps whose length satisfies Armijo's condition."""
        here, slope = self.slope()
        first, length = here, 0.1 * _ratio(self.weights, slope)
        for _ in range(self.schedule.gradient_steps):
            if self.is_over():
                break
            steepness = _norm(slope)
            for _ in range(HALVINGS):
                floor = np.maximum(LEAST_PART * self.weights, LEAST)
                trial = np.maximum(np.abs(self.weights - length * slope), floor)
                there = self.risk_of_weights(self.parts[1], trial) if trial.max() <= LARGEST else np.inf
                if there <= here - ARMIJO * (length * steepness) * steepness:
                    break
                length *= 0.5
            else:
                self.at_minimum = True
                return
            self.weights = trial
            here, slope = self.slope()
            # From where the risk is flat to where it is not, the slope may grow by any factor.
            length = min(2.0 * length, _ratio(trial, slope))
        self.at_minimum = first - here <= LOCAL * abs(first)


def _norm(x: Array) -> float:
    """The Euclidean norm of numbers whose squares may leave the range of floats."""
    largest = float(np.abs(x).max())
    return largest * float(np.linalg.norm(x / largest)) if largest > 0.0 else 0.0


def _ratio(weights: Array, slope: Array) -> float:
    """The length of a step along a slope that changes weights by as much as they are, in the root mean square.

    A weight that nothing depends on, however large, does not count.
    """
    return float(np.sqrt(len(weights)) / max(_norm(slope / weights), 1e-300))
