"""What estimators that learn a hierarchical Gaussian kernel share: the choice of the tree, searches, and training."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.cells.function import worst
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.criteria.folds import split_rows
from convexkernels.estimators.base import KernelEstimator, seed_from
from convexkernels.estimators.hierarchical.all_rows import DENSE_ROWS, AllRows, Plan
from convexkernels.estimators.hierarchical.functions import MeanFunction, OffsetFunction
from convexkernels.estimators.hierarchical.settings import (
    ArchitectureChoice,
    Job,
    TreeSearch,
    TreeSelection,
    TreeTask,
    as_candidates,
    as_criterion,
    one_after_the_other,
)
from convexkernels.estimators.hierarchical.training import (
    ROWS_OF_A_MOMENT,
    train_at_once,
    train_by_products,
    train_in_cells,
    training_seconds,
)
from convexkernels.estimators.left_out import (
    EXACT_ROWS,
    FEWEST_ROWS,
    LeftOut,
    left_out_of_kernel,
)
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status

# lam at the start where neither the search nor the loss says.
FIRST_LAM = 0.1
# Share of the time limit that the choice of the architecture may take.
CHOICE_SHARE = 0.5
# Rows of a long table that architectures are compared on.
CHOICE_ROWS = 5000


@dataclass(eq=False, repr=False, kw_only=True)
class HierarchicalEstimator(KernelEstimator):
    """Search for the weights of a tree, perhaps of the best of several, and train on all rows with its kernel."""

    architecture: Any = field(default=8, kw_only=False)
    loss: Any = "least_squares"
    criterion: Any = None
    clip: bool = True
    search: TreeSearch | None = None
    selection: TreeSelection | None = None
    warm_start: bool = False
    random_state: Any = None

    _losses: ClassVar[dict[str, Loss]] = {}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, kind in (("search", TreeSearch), ("selection", TreeSelection)):
            if not isinstance(getattr(self, name), kind | None):
                raise InvalidInputError(f"{name} must be a {kind.__name__} or None, got {getattr(self, name)!r}.")
        self._loss()
        as_candidates(self.architecture)

    def _loss(self) -> Loss:
        lam = None if self.search is None else self.search.lam
        if isinstance(self.loss, Loss):
            return self.loss if lam is None else self.loss.at(lam)
        if self.loss not in self._losses:
            raise InvalidInputError(f"loss must be one of {list(self._losses)} or a Loss, got {self.loss!r}.")
        return self._losses[self.loss].at(FIRST_LAM if lam is None else lam)

    def _scaling_of(self, X: Array) -> Scaling:
        return Scaling.to_symmetric_box(X)

    def _problem(self, table: TrainingTable, targets: Targets) -> TreeTask:
        loss = self._loss()
        criterion = as_criterion(self.criterion, loss)
        task = TreeTask(table.X, targets.expanded(table.y), table.weights, loss, criterion, self.clip)
        for candidate in as_candidates(self.architecture):  # all of them are checked before the first is searched
            task.problem(candidate, 0)
        merged, points = task.of_points()
        # Of rows whose points are one: the point of each, targets and weights.
        self._rows: tuple[Index, Array, Array] | None = None
        if self._learns_from_points and FEWEST_ROWS <= len(merged.X) < min(len(points), EXACT_ROWS):
            task, self._rows = merged, (points, task.loss.targets(task.y, len(points)), task.weights)
        return task

    @property
    def _learns_from_points(self) -> bool:
        """Whether equal points may be one: one matrix of least squares for all of them."""
        one_matrix = self._all_rows.method in ("auto", "dense")
        return isinstance(self._loss(), LeastSquares) and one_matrix and not (self.selection or TreeSelection()).average

    # -- searching ---------------------------------------------------------------------------------

    def _solve(self, task: TreeTask) -> Solution:
        """Choose the tree, search for its weights, train on all rows: all of it within the time limit."""
        clock, seed = self._clock(len(task.X)), self._kept_seed(seed_from(self.random_state))
        search, selection = self.search or TreeSearch(), self.selection or TreeSelection()
        candidates = as_candidates(self.architecture)
        earlier = [solution.theta for solution in getattr(self, "solutions_", [])] if self.warm_start else []
        plan = self._plan(task.problem(candidates[0], seed), clock)
        self.choice_, interrupted = None, False
        solutions: list[Solution] = []
        if len(candidates) > 1 or selection.average:
            self.choice_, solutions, interrupted = self._choose(task, candidates, selection, seed, clock, plan)
            candidates = (candidates[self.choice_.best],)
        if not (selection.average or interrupted):
            jobs: list[Job] = []
            for k in range(search.n_restarts):
                start = earlier[k] if k < len(earlier) else None
                problem = task.problem(candidates[0], seed + k)
                jobs.append(partial(search.run, problem, seed + k, start))
            solutions, interrupted = one_after_the_other(jobs, clock.sparing(len(jobs) * plan.seconds), repr(plan))
        if interrupted:
            clock.interrupt()
        trained = [self._trained(task, solution, plan, clock, seed) for solution in solutions]
        functions, gaps = [function for function, _ in trained], [gap for _, gap in trained if gap is not None]
        if interrupted:
            solutions[0] = replace(solutions[0], status=Status.INTERRUPTED)
        self.solutions_, self.architecture_ = solutions, candidates[0]
        self.plan_ = replace(plan, certificate=worst(gaps) if gaps else None)
        self.function_: Any = functions[0] if len(functions) == 1 else MeanFunction(functions)
        return solutions[0]

    @property
    def _all_rows(self) -> AllRows:
        return (self.selection or TreeSelection()).training or AllRows()

    def _plan(self, problem: OuterLearning, clock: Clock) -> Plan:
        """How the functions of all rows are going to be trained."""
        takes = training_seconds(problem) if clock.left is not None or problem.m > DENSE_ROWS else 0.0
        # A limit by default is generous: how busy a computer is must not decide what is learned.
        limit = None if self.max_time == "auto" else clock.left
        return self._all_rows.plan(problem, limit, takes, self._votes(problem))

    def _votes(self, problem: OuterLearning) -> bool:
        """Whether every pair of classes has a function."""
        return False

    def _trained(
        self, task: TreeTask, solution: Solution, plan: Plan, clock: Clock, seed: int
    ) -> tuple[Any, DualityGap | None]:
        """The function of a solution on all rows that its problem has, and the worst certificate of its cells.

        One interrupt ends all of it: what is not trained by then is trained on some rows.
        """
        votes, early = self._votes(solution.problem), clock.interrupted
        try:
            if plan.method == "dense" and (not early or votes or solution.problem.m <= ROWS_OF_A_MOMENT):
                return self._function(task, solution), None
            if plan.method == "cells" and not early:
                return train_in_cells(solution, plan, self._all_rows, clock, seed)
            if plan.method == "iterative" and not early:
                return train_by_products(solution, self._all_rows, clock, seed)
        except KeyboardInterrupt:
            if votes:
                raise
            clock.interrupt()
        return train_at_once(solution, clock, seed)

    def _choose(
        self,
        task: TreeTask,
        candidates: Sequence[Any],
        selection: TreeSelection,
        seed: int,
        clock: Clock,
        plan: Plan,
    ) -> tuple[ArchitectureChoice, list[Solution], bool]:
        """Cross-validate the architectures; returns the searches of the folds of the best one, too.

        Of more rows than one matrix bears, a random sample says which is best.
        """
        if plan.method != "dense" and not selection.average:
            task = task.part(np.sort(np.random.default_rng(seed).permutation(len(task.X))[:CHOICE_ROWS]))
        Y = task.loss.targets(task.y, len(task.y))
        folds, search = split_rows(Y, selection.folds, np.random.default_rng(seed)), self.search or TreeSearch()
        jobs: list[Job] = []
        for candidate in candidates:
            for k, (train, _) in enumerate(folds):
                problem = task.problem(candidate, seed, train)
                jobs.append(partial(search.run, problem, seed + k, None))
        part = clock.part(1.0 if selection.average else CHOICE_SHARE).sparing(len(jobs) * plan.seconds)
        solutions, interrupted = one_after_the_other(jobs, part, repr(plan))
        if interrupted:
            clock.interrupt()
        risks = np.full((len(candidates), len(folds)), np.inf)
        for k, solution in enumerate(solutions):
            function, _ = (
                self._trained(task, solution, plan, clock, seed) if selection.average else (solution.function, None)
            )
            risks.flat[k] = task.risk(function, folds[k % len(folds)][1])
        best = int(risks.mean(axis=1).argmin())
        chosen = solutions[best * len(folds) : (best + 1) * len(folds)]
        return ArchitectureChoice(tuple(candidates), risks, best), chosen, interrupted

    def _function(self, task: TreeTask, solution: Solution) -> Any:
        """The function of a solution, trained on all rows that its problem has."""
        return solution.function

    # -- what was learned --------------------------------------------------------------------------

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self.n_iter_ = max(1, sum(solution.n_iter for solution in self.solutions_))

    @property
    def tree_(self) -> HierarchicalGaussian:
        """The kernel of the first search, on features scaled to [-1, 1] without the constant ones."""
        check_is_fitted(self)
        kernel: HierarchicalGaussian = self.solution_.kernel
        return kernel

    def _evaluate(self, points: Array) -> Array:
        return np.asarray(self.function_.values(points))

    def _left_out(self) -> LeftOut:
        functions = getattr(self.function_, "functions", [self.function_])
        parts = [
            function.left_out() if isinstance(function, OffsetFunction) else self._left_out_of(solution)
            for function, solution in zip(functions, self.solutions_, strict=True)
        ]
        if any(part.Y.shape != parts[0].Y.shape or (part.Y != parts[0].Y).any() for part in parts):
            return LeftOut.joined(parts)  # functions of folds, each with rows of its own
        F = np.mean([part.F for part in parts], axis=0)
        if self._rows is None:
            return LeftOut(F, parts[0].Y, parts[0].weights)
        points, Y, weights = self._rows
        return LeftOut(F[:, points], Y, weights)

    def _left_out_of(self, solution: Solution) -> LeftOut:
        """Left-out values of the functions of one search."""
        return left_out_of_kernel(solution)
