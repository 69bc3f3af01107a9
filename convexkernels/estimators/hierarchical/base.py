"""What estimators that learn a hierarchical Gaussian kernel share: the choice of the tree, searches, and training."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from convexkernels.arrays import Array, Index, as_counts
from convexkernels.cells.distributed.cluster import threads_and_memory
from convexkernels.cells.distributed.table import FAN_IN
from convexkernels.cells.function import worst
from convexkernels.cells.options import Cells
from convexkernels.cells.sampling import seeded
from convexkernels.clock import Clock
from convexkernels.estimators.base import seed_from
from convexkernels.estimators.hierarchical.all_rows import (
    DENSE_ROWS,
    PARTS_SHARE,
    SEARCH_ROWS,
    TABLES,
    AllRows,
    Plan,
    TrainingTime,
)
from convexkernels.estimators.hierarchical.choices import ArchitectureChoice
from convexkernels.estimators.hierarchical.combination import Combination
from convexkernels.estimators.hierarchical.folds import FoldSearches, SearchesOnFolds
from convexkernels.estimators.hierarchical.functions import MeanFunction, trained_solution
from convexkernels.estimators.hierarchical.learned import LearnedTrees
from convexkernels.estimators.hierarchical.settings import (
    Job,
    TreeSearch,
    TreeSelection,
    as_candidates,
    as_criterion,
    one_after_the_other,
)
from convexkernels.estimators.hierarchical.stacking import stacked
from convexkernels.estimators.hierarchical.task import TreeTask, on_ranks
from convexkernels.estimators.hierarchical.training import (
    ROWS_OF_A_MOMENT,
    TRAINERS,
    train_at_once,
    training_time,
)
from convexkernels.estimators.in_parts import LARGEST_SAMPLE, LearnsInParts, TableInParts
from convexkernels.estimators.left_out import (
    EXACT_ROWS,
    FEWEST_ROWS,
    LeftOut,
)
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import InvalidInputError, tell
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status

# lam at the start where neither the search nor the loss says.
FIRST_LAM = 0.1


@dataclass(eq=False, repr=False, kw_only=True)
class HierarchicalEstimator(LearnedTrees, SearchesOnFolds, LearnsInParts):
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
    # Whether targets are labels, which a search on few rows fits too well.
    _labels: ClassVar[bool] = False

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

    def _suited_loss(self, task: TreeTask, clock: Clock, seed: int) -> Loss:
        """The loss of a task, with what its rows choose of it."""
        return task.loss

    def _scaling_of(self, X: Array) -> Scaling:
        if isinstance(self._loss(), LeastSquares):  # begins with widths per column, which bear far entries
            return Scaling.to_symmetric_box(X)
        return Scaling.without_outliers(X, Scaling.to_symmetric_box)

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> TreeTask:
        return self._task(table, targets)

    def _task(self, table: TrainingTable, targets: Targets, in_parts: TableInParts | None = None) -> TreeTask:
        loss = self._loss()
        criterion = as_criterion(self.criterion, loss)
        device = None if self.search is None else self.search.device
        assert table.keys is not None
        task = TreeTask(
            table.X,
            targets.expanded(table.y),
            table.weights if in_parts is not None else as_counts(table.weights),
            loss,
            criterion,
            self.clip,
            table.keys,
            device,
            in_parts=in_parts,
            tied=() if self._moves_each_weight else self._tied,
        )
        for candidate in as_candidates(self.architecture):  # all of them are checked before the first is searched
            task.problem(candidate, 0)
        self._rows, self._m = None, len(task.X)
        if in_parts is not None and not in_parts.is_here:
            self._combination = Combination()
            return task
        merged, points = task.of_points()
        # Of rows whose points are one: the point of each, targets and weights.
        if self._learns_from_points and FEWEST_ROWS <= len(merged.X) < min(len(points), EXACT_ROWS):
            task, self._rows = merged, (points, task.loss.targets(task.y, len(points)), task.weights)
        self._m = len(task.X)
        self._combination = Combination.of(
            task,
            len(merged.X) / len(points),
            self.search or TreeSearch(),
            self.selection or TreeSelection(),
            suited=self._learns_from_points,
            labels=self._labels,
            memory_limit=self._all_rows.memory_limit,
        )
        return task

    @property
    def _moves_each_weight(self) -> bool:
        """Whether the search is the published one, which knows of no weights that features share."""
        return self.search is not None and self.search.method == "annealing"

    @property
    def _learns_from_points(self) -> bool:
        """Whether equal points may be one: one matrix of least squares for all of them."""
        return isinstance(self._loss(), LeastSquares) and self._all_rows.method in ("auto", "dense")

    # -- Dask tables -------------------------------------------------------------------------------

    def _check_parts(self) -> None:
        self._all_rows.check_gathered()

    def _n_drawn(self, n_columns: int) -> int:
        subset, (here, there) = (self._all_rows.cells or Cells()).subset, self._all_rows.memory(threads_and_memory()[1])
        most = max(SEARCH_ROWS, LARGEST_SAMPLE if subset is None else subset)
        bears = PARTS_SHARE * min(here / TABLES, there / (FAN_IN + 1)) / (8.0 * (n_columns + 2))
        return int(max(2, min(most, bears)))

    def _learned_in_parts(self, parts: TableInParts, clock: Clock, seed: int) -> tuple[Solution, Scaling]:
        task = self._task(parts.sample, parts.encoding.targets, parts)
        return self._learned(task, clock, seed), parts.encoding.scaling

    def _finish_parts(self) -> None:
        self.n_iter_ = max(1, sum(solution.n_iter for solution in self.solutions_))

    @property
    def _n_values(self) -> int:
        return len(self.solution_.problem.Y)

    # -- searching ---------------------------------------------------------------------------------

    def _solve(self, task: TreeTask, clock: Clock) -> Solution:
        seed = self._kept_seed(seed_from(self.random_state))
        return self._learned(replace(task, keys=seeded(task.keys, seed)), clock, seed)

    def _learned(self, task: TreeTask, clock: Clock, seed: int) -> Solution:
        """Choose the tree, search for its weights, train on all rows: all of it within the time limit."""
        candidates = as_candidates(self.architecture)
        task = replace(task, loss=self._suited_loss(task, clock, seed))
        earlier: list[Solution] = getattr(self, "solutions_", []) if self.warm_start else []
        drawn = task.drawn(SEARCH_ROWS)
        if drawn is not task:
            task = replace(task, offset=task.level(drawn.y, drawn.weights))
        plan = self._plan(task, candidates[0], seed, clock)
        if self._combination.kind != "one" and not self._has_time_to_combine(plan, clock):
            self._combination = Combination()
            clock.cut("the combination of several searches")
            plan = replace(plan, why=f"{plan.why}; one search, as max_time leaves no time to combine several")
        self.choice_: ArchitectureChoice | None = None
        self._seen: LeftOut | None = None  # values on rows held out, of functions that are combined
        found: FoldSearches | None = None
        if len(candidates) > 1 or self._combination.in_folds:
            found = self._choose(task, candidates, earlier, seed, clock, plan)
            self.choice_, candidates = found.choice, (candidates[found.choice.best],)
        if found is not None and (self._combination.in_folds or found.interrupted):
            solutions, interrupted = found.solutions, found.interrupted
        else:
            solutions, interrupted = self._searched(task, drawn, candidates[0], earlier, seed, clock, plan)
        if interrupted:
            clock.interrupt()
        if found is not None and found.trained:
            trained = found.trained
        else:
            trained = [self._trained(task, solution, plan, clock, seed) for solution in solutions]
        functions, self.plan_ = [function for function, _ in trained], _joined([done for _, done in trained])
        status = Status.INTERRUPTED if interrupted else self.plan_.status
        if status is not None:
            solutions[0] = replace(solutions[0], status=status)
        self.solutions_, self.architecture_ = solutions, candidates[0]
        of_folds = found if self._combination.in_folds else None
        self._functions, self._held_out = functions, [] if of_folds is None else of_folds.parts
        self.function_: Any = MeanFunction.of(functions)
        if of_folds is not None and not interrupted:
            self._seen = LeftOut(of_folds.F, task.loss.targets(task.y, len(task.y)), task.weights)
        if self._combination.kind == "stack" and not clock.interrupted:
            self._stack(task, None if of_folds is None else of_folds.parts, clock)
        if any(solution.status is Status.TIME_LIMIT for solution in self.solutions_):
            clock.cuts.clear()  # a search has said that the limit came first
        return self.solutions_[0]

    def _searched(
        self,
        task: TreeTask,
        drawn: TreeTask,
        architecture: Any,
        earlier: Sequence[Solution],
        seed: int,
        clock: Clock,
        plan: Plan,
    ) -> tuple[list[Solution], bool]:
        """Weights of one architecture, by every restart, on the rows that were drawn; and whether the user ended it."""
        search, families = self.search or TreeSearch(), [architecture]
        if self._combination.kind == "stack" and plan.method == "dense":  # two kinds of kernels err in different places
            families += on_ranks(architecture, task.X)
        jobs: list[Job] = []
        for k, (family, each) in enumerate(product(families, range(search.n_restarts))):
            start = earlier[k].theta if k < len(earlier) else None
            jobs.append(partial(search.run, drawn.problem(family, seed + each), seed + each, start))
        spared = clock.sparing(self._combination.n_trainings(len(jobs)) * plan.seconds)
        solutions, interrupted = one_after_the_other(jobs, spared, repr(plan))
        if drawn is not task:
            solutions = [_of_problem(task.problem(one.problem.family, seed), one) for one in solutions]
        return solutions, interrupted

    def _stack(self, task: TreeTask, parts: Sequence[Index] | None, clock: Clock) -> None:
        """Put functions of simple kernels beside the one there is, which an interrupt leaves alone."""
        try:
            seen, is_of_rows = (self._seen, True) if self._seen is not None else self._left_out_of_searches()
            if is_of_rows and np.isfinite(seen.F).all():
                self.function_, self._seen = stacked(self.function_, seen, task, parts, self._rows, self._labels, clock)
        except KeyboardInterrupt:
            clock.interrupt()
        if clock.interrupted:
            tell("INTERRUPTED by the user while functions were combined; what was learned by then is kept.")
            self.solutions_[0] = replace(self.solutions_[0], status=Status.INTERRUPTED)

    def _has_time_to_combine(self, plan: Plan, clock: Clock) -> bool:
        """Whether a limit that was given leaves most of its time to the searches of a combination that was not."""
        selection = self.selection or TreeSelection()
        if self.max_time == "auto" or clock.left is None or selection.combine != "auto":
            return True
        n_restarts = (self.search or TreeSearch()).n_restarts
        return self._combination.is_in_time(n_restarts, selection.folds, plan.seconds, clock.left)

    @property
    def _all_rows(self) -> AllRows:
        return (self.selection or TreeSelection()).training or AllRows()

    def _plan(self, task: TreeTask, architecture: Any, seed: int, clock: Clock) -> Plan:
        """How the functions of all rows are going to be trained."""
        problem, parts, rule = task.problem(architecture, seed), task.in_parts, self._all_rows
        votes = self._votes(problem)
        if parts is not None and not parts.is_here:
            rule.check_parts((self.selection or TreeSelection()).combine, votes)
            why = f"about {parts.n_rows} rows of a Dask table, {problem.m} of which are here"
            return rule.plan_in_parts(problem, parts.n_rows, training_time(problem), why, *threads_and_memory())
        if votes:
            rule.check_votes()
        is_short = self._learns_from_points and problem.m <= DENSE_ROWS
        takes = TrainingTime() if is_short and clock.left is None else training_time(problem)
        # A limit by default is generous: how busy a computer is must not decide what is learned.
        limit = None if self.max_time == "auto" else clock.left
        plan = rule.plan(problem, limit, takes, votes)
        if parts is None:
            return plan
        if plan.method == "cells" and self._rows is None:
            return rule.plan_in_parts(problem, problem.m, takes, plan.why, *threads_and_memory())
        return replace(plan, why=f"{plan.why}; all rows of the Dask table are here")

    def _votes(self, problem: OuterLearning) -> bool:
        """Whether every pair of classes has a function."""
        return False

    def _trained(self, task: TreeTask, solution: Solution, plan: Plan, clock: Clock, seed: int) -> tuple[Any, Plan]:
        """The function of a solution on all rows of the task, and what was done, with its certificate.

        One interrupt ends all of it: what is not trained by then is trained on some rows, as where time left nothing.
        """
        votes, early = self._votes(solution.problem), clock.interrupted
        try:
            if plan.method == "dense" and (not early or votes or solution.problem.m <= ROWS_OF_A_MOMENT):
                return self._function(task, solution, clock), plan
            if plan.method in TRAINERS and not early:
                train = TRAINERS[plan.method]
                found: tuple[Any, Plan] | None = train(task, solution, plan, self._all_rows, clock, seed)
                if found is not None:
                    return found
        except KeyboardInterrupt:
            if votes:
                raise
            clock.interrupt()
        status = Status.INTERRUPTED if clock.interrupted else Status.TIME_LIMIT
        return train_at_once(task, solution, plan, clock, seed, status)

    def _function(self, task: TreeTask, solution: Solution, clock: Clock) -> Any:
        """The function of a solution, trained on all rows that its problem has."""
        return trained_solution(solution, clock)

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self._finish_parts()


def _of_problem(problem: OuterLearning, found: Solution) -> Solution:
    """What was found on some rows, as a solution of the problem of all of them."""
    return replace(found, problem=problem, certificate=problem.certificate(found.theta))


def _joined(plans: Sequence[Plan]) -> Plan:
    """What was done for several functions: the first plan that was cut short, else any, with the worst certificate."""
    gaps = [plan.certificate for plan in plans if plan.certificate is not None]
    plan = next((plan for plan in plans if plan.status is not None), plans[0])
    return replace(plan, certificate=worst(gaps) if gaps else None)
