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
from convexkernels.estimators.hierarchical.all_rows import DENSE_ROWS, AllRows, Plan, TrainingTime
from convexkernels.estimators.hierarchical.functions import FunctionOfManyRows, MeanFunction, PairwiseFunction
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
from convexkernels.estimators.hierarchical.stacking import SIMPLE_FITS, stacked
from convexkernels.estimators.hierarchical.training import (
    ROWS_OF_A_MOMENT,
    TRAINERS,
    train_at_once,
    training_time,
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
from convexkernels.exceptions import InvalidInputError, MissingAttributeError, tell
from convexkernels.kernels.base import Kernel
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
# Tables that functions are stacked on by default: rows, numbers, and the share of their rows that differ in features.
MIN_STACKED, MAX_STACKED, STACKED_NUMBERS, DIFFERENT = 50, 3000, 300_000, 0.8
# Of a stack, for every pair of rows: four matrices in float64.
BYTES_OF_A_STACK = 32


@dataclass(frozen=True, eq=False)
class FoldSearches:
    """Searches on the training rows of folds.

    Attributes
    ----------
    choice : ArchitectureChoice
    solutions : list of Solution
        Of the best architecture, fold by fold.
    trained : list of (TrainedFunction, DualityGap or None)
        Their functions, where these are combined.
    parts : list of ndarray of int
        The rows held out.
    F : ndarray of shape (n_outputs, m)
        Values at them by functions that have not seen them; NaN where an interrupt came first.
    interrupted : bool
    """

    choice: ArchitectureChoice
    solutions: list[Solution]
    trained: list[tuple[Any, DualityGap | None]]
    parts: list[Index]
    F: Array
    interrupted: bool


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

    def _scaling_of(self, X: Array) -> Scaling:
        return Scaling.to_symmetric_box(X)

    def _problem(self, table: TrainingTable, targets: Targets) -> TreeTask:
        loss = self._loss()
        criterion = as_criterion(self.criterion, loss)
        device = None if self.search is None else self.search.device
        task = TreeTask(table.X, targets.expanded(table.y), table.weights, loss, criterion, self.clip, device)
        for candidate in as_candidates(self.architecture):  # all of them are checked before the first is searched
            task.problem(candidate, 0)
        merged, points = task.of_points()
        # Of rows whose points are one: the point of each, targets and weights.
        self._rows: tuple[Index, Array, Array] | None = None
        if self._learns_from_points and FEWEST_ROWS <= len(merged.X) < min(len(points), EXACT_ROWS):
            task, self._rows = merged, (points, task.loss.targets(task.y, len(points)), task.weights)
        self._m = len(task.X)
        self._combines = self._combination(task, len(merged.X), len(points))
        return task

    @property
    def _learns_from_points(self) -> bool:
        """Whether equal points may be one: one matrix of least squares for all of them."""
        return isinstance(self._loss(), LeastSquares) and self._all_rows.method in ("auto", "dense")

    def _combination(self, task: TreeTask, n_points: int, n_rows: int) -> str:
        """Which functions predict: "one", "mean" or "stack" of `TreeSelection`."""
        selection, most = self.selection or TreeSelection(), self._all_rows.memory_limit
        fits = len(task.X) <= EXACT_ROWS and (most is None or BYTES_OF_A_STACK * len(task.X) ** 2 <= most)
        suited, divides = self._learns_from_points and fits, len(task.X) >= 2 * selection.folds
        if not divides and (selection.combine == "mean" or (selection.combine == "stack" and self._labels)):
            raise InvalidInputError(
                f"combine={selection.combine!r} divides the table in {selection.folds} folds of two different rows or "
                f"more, but it has {len(task.X)} of them; take fewer folds, or combine='one'."
            )
        if selection.combine == "stack" and not suited:
            raise InvalidInputError(
                f"combine='stack' is for least squares, classes each against the rest, with matrices of at most "
                f"{EXACT_ROWS} rows that fit memory_limit, and the method 'auto' or 'dense' of AllRows; pass "
                "combine='one' or combine='mean'."
            )
        if selection.combine != "auto":
            return selection.combine
        is_small = MIN_STACKED <= len(task.X) <= MAX_STACKED and task.X.size <= STACKED_NUMBERS
        suited &= divides or not self._labels
        return "stack" if suited and is_small and n_points >= DIFFERENT * n_rows else "one"

    @property
    def _in_folds(self) -> bool:
        """Whether functions of folds predict."""
        return self._combines == "mean" or (self._combines == "stack" and self._labels)

    # -- searching ---------------------------------------------------------------------------------

    def _solve(self, task: TreeTask) -> Solution:
        """Choose the tree, search for its weights, train on all rows: all of it within the time limit."""
        clock, seed = self._clock(len(task.X)), self._kept_seed(seed_from(self.random_state))
        search = self.search or TreeSearch()
        candidates = as_candidates(self.architecture)
        earlier: list[Solution] = getattr(self, "solutions_", []) if self.warm_start else []
        plan = self._plan(task.problem(candidates[0], seed), clock)
        self.choice_: ArchitectureChoice | None = None
        self._seen: LeftOut | None = None  # values on rows held out, of functions that are combined
        found: FoldSearches | None = None
        if len(candidates) > 1 or self._in_folds:
            found = self._choose(task, candidates, earlier, seed, clock, plan)
            self.choice_, candidates = found.choice, (candidates[found.choice.best],)
        if found is not None and (self._in_folds or found.interrupted):
            solutions, interrupted = found.solutions, found.interrupted
        else:
            jobs: list[Job] = []
            for k in range(search.n_restarts):
                start = earlier[k].theta if k < len(earlier) else None
                jobs.append(partial(search.run, task.problem(candidates[0], seed + k), seed + k, start))
            spared = clock.sparing((len(jobs) + self._n_beside) * plan.seconds)
            solutions, interrupted = one_after_the_other(jobs, spared, repr(plan))
        if interrupted:
            clock.interrupt()
        if found is not None and found.trained:
            trained = found.trained
        else:
            trained = [self._trained(task, solution, plan, clock, seed) for solution in solutions]
        functions, gaps = [function for function, _ in trained], [gap for _, gap in trained if gap is not None]
        if interrupted:
            solutions[0] = replace(solutions[0], status=Status.INTERRUPTED)
        self.solutions_, self.architecture_ = solutions, candidates[0]
        self.plan_ = replace(plan, certificate=worst(gaps) if gaps else None)
        self._functions = functions
        self._held_out = found.parts if found is not None and self._in_folds else []
        self.function_: Any = MeanFunction.of(functions)
        if found is not None and self._in_folds and not interrupted:
            self._seen = LeftOut(found.F, task.loss.targets(task.y, len(task.y)), task.weights)
        if self._combines == "stack" and not clock.interrupted:
            self._stack(task, found.parts if found is not None and self._in_folds else None, clock)
        return self.solutions_[0]

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

    @property
    def _n_beside(self) -> int:
        """What functions of simple kernels cost, in trainings of one function."""
        return SIMPLE_FITS if self._combines == "stack" else 0

    @property
    def _all_rows(self) -> AllRows:
        return (self.selection or TreeSelection()).training or AllRows()

    def _plan(self, problem: OuterLearning, clock: Clock) -> Plan:
        """How the functions of all rows are going to be trained."""
        is_short = self._learns_from_points and problem.m <= DENSE_ROWS
        takes = TrainingTime() if is_short and clock.left is None else training_time(problem)
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
            if plan.method in TRAINERS and not early:
                return TRAINERS[plan.method](solution, plan, self._all_rows, clock, seed)
        except KeyboardInterrupt:
            if votes:
                raise
            clock.interrupt()
        return train_at_once(solution, clock, seed)

    def _choose(
        self, task: TreeTask, candidates: Sequence[Any], earlier: list[Solution], seed: int, clock: Clock, plan: Plan
    ) -> FoldSearches:
        """Cross-validate the architectures, and search for the weights that combinations take.

        Of more rows than one matrix bears, a random sample says which is best. Searches go on from earlier ones on the
        same rows only: others may have seen what is held out.
        """
        combines, search = self._in_folds, self.search or TreeSearch()
        if plan.method != "dense" and not combines:
            task = task.part(np.sort(np.random.default_rng(seed).permutation(len(task.X))[:CHOICE_ROWS]))
        Y, n_folds = task.loss.targets(task.y, len(task.y)), (self.selection or TreeSelection()).folds
        folds = split_rows(np.sign(Y) if self._labels else Y, n_folds, np.random.default_rng(seed))
        each = search.n_restarts if combines else 1
        jobs: list[Job] = []
        for candidate in candidates:
            for k in range(n_folds * each):
                problem = task.problem(candidate, seed, folds[k // each][0])
                start = None
                if combines and k < len(earlier) and problem.has_rows_of(earlier[k].problem):
                    start = earlier[k].theta
                jobs.append(partial(search.run, problem, seed + k, start))
        part = clock.part(1.0 if combines else CHOICE_SHARE).sparing((len(jobs) + self._n_beside) * plan.seconds)
        solutions, interrupted = one_after_the_other(jobs, part, repr(plan))
        if interrupted:
            clock.interrupt()
        if combines:
            trained = [self._trained(task, solution, plan, clock, seed) for solution in solutions]
        else:
            trained = [(solution.function, None) for solution in solutions]
        risks, F = np.full((len(candidates), n_folds), np.inf), np.full((len(candidates), *Y.shape), np.nan)
        for k in range(0, len(solutions), each):
            candidate, fold = divmod(k // each, n_folds)
            function, held = MeanFunction.of([one for one, _ in trained[k : k + each]]), folds[fold][1]
            risks[candidate, fold] = task.risk(function, held)
            F[candidate][:, held] = function.values(task.X[held]).T
        best = int(risks.mean(axis=1).argmin())
        own = slice(best * n_folds * each, (best + 1) * n_folds * each)
        choice = ArchitectureChoice(tuple(candidates), risks, best)
        return FoldSearches(
            choice, solutions[own], trained[own] if combines else [], [held for _, held in folds], F[best], interrupted
        )

    def _function(self, task: TreeTask, solution: Solution) -> Any:
        """The function of a solution, trained on all rows that its problem has."""
        return solution.function

    # -- what was learned --------------------------------------------------------------------------

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self.n_iter_ = max(1, sum(solution.n_iter for solution in self.solutions_))

    def _kernel(self) -> Kernel:
        """That of the first function: scaled for all rows, or as landmarks see it, where there are many rows."""
        first = self._functions[0]
        return first.kernel if isinstance(first, FunctionOfManyRows) else super()._kernel()

    @property
    def selection_(self) -> ArchitectureChoice:
        """How the architectures compare, where there are several."""
        check_is_fitted(self)
        if self.choice_ is None or len(self.choice_.candidates) == 1:
            raise MissingAttributeError(
                f"{type(self).__name__} had one architecture, and nothing to choose: its weights and lam were found by "
                "a search, see solution_ and RiskHistoryDisplay."
            )
        return self.choice_

    @property
    def tree_(self) -> HierarchicalGaussian:
        """The kernel of the first search, on features scaled to [-1, 1] without the constant ones."""
        check_is_fitted(self)
        kernel: HierarchicalGaussian = self.solution_.kernel
        return kernel

    def _evaluate(self, points: Array) -> Array:
        return np.asarray(self.function_.values(points))

    def _coefficients(self, m: int) -> Array:
        """Of the mean of the functions of all searches, beside those of simple kernels where there are some."""
        W, each = np.zeros((1, self._m)), (self.search or TreeSearch()).n_restarts
        for k, (function, solution) in enumerate(zip(self._functions, self.solutions_, strict=True)):
            seen = np.delete(np.arange(self._m), self._held_out[k // each] if self._held_out else [])
            if solution.problem.m != len(seen) or isinstance(function, PairwiseFunction):
                raise MissingAttributeError("functions of pairs of classes, or of some of the rows, have their own")
            part = function.coefficients(len(seen)) / len(self._functions)
            W = np.zeros((len(part), self._m)) if k == 0 else W
            W[:, seen] += part
        combined = self.function_
        if isinstance(combined, MeanFunction) and combined.shares is not None:
            others = zip(combined.shares[1:], combined.functions[1:], strict=True)
            W = combined.shares[0] * W + sum(share * other.coefficients(self._m) for share, other in others)
        if self._rows is None:
            return W
        of_rows = np.zeros((len(W), m))
        of_rows[:, np.unique(self._rows[0], return_index=True)[1]] = W
        return of_rows

    @property
    def _is_least_squares(self) -> bool:
        return isinstance(self._loss(), LeastSquares)

    def _left_out(self, whole: bool = False) -> LeftOut:
        left, is_of_rows = (self._seen, True) if self._seen is not None else self._left_out_of_searches(whole)
        if self._rows is None:
            return left
        if not is_of_rows:  # of points, and not in the order of those
            return replace(left, rows=np.full(left.F.shape[1], -1))
        points, Y, weights = self._rows
        return LeftOut(left.F[:, points], Y, weights)

    def _left_out_of_searches(self, whole: bool = False) -> tuple[LeftOut, bool]:
        """Of the mean of the functions of all searches, and whether its columns are the rows of the task.

        They are not where functions have rows of their own, those of cells or folds: then these follow one another.
        """
        parts = [
            function.left_out(whole) if hasattr(function, "left_out") else self._left_out_of(solution, whole)
            for function, solution in zip(self._functions, self.solutions_, strict=True)
        ]
        if any(part.Y.shape != parts[0].Y.shape or (part.Y != parts[0].Y).any() for part in parts):
            return replace(LeftOut.joined(parts), rows=np.full(sum(part.F.shape[1] for part in parts), -1)), False
        in_cells = any(hasattr(function, "left_out") for function in self._functions)
        is_of_rows = not (in_cells or self._in_folds) and parts[0].F.shape[1] == self._m
        mean = replace(parts[0], F=np.mean([part.F for part in parts], axis=0))
        return (mean if len(parts) == 1 else replace(mean, leverage=None)), is_of_rows

    def _left_out_of(self, solution: Solution, whole: bool) -> LeftOut:
        """Left-out values of the functions of one search."""
        return left_out_of_kernel(solution, whole)
