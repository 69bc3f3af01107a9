"""Searches on folds: architectures compared, and searches whose functions are combined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.folds import split_rows
from convexkernels.estimators.hierarchical.all_rows import Plan
from convexkernels.estimators.hierarchical.choices import ArchitectureChoice
from convexkernels.estimators.hierarchical.combination import Combination
from convexkernels.estimators.hierarchical.functions import MeanFunction, trained_solution
from convexkernels.estimators.hierarchical.settings import Job, TreeSearch, TreeSelection, one_after_the_other
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.solution import Solution

# Share of the time limit that the choice of the architecture may take.
CHOICE_SHARE = 0.5
# Rows of a long table that architectures are compared on.
CHOICE_ROWS = 5000


@dataclass(frozen=True, eq=False)
class FoldSearches:
    """Searches on the training rows of folds.

    Solutions are those of the best architecture, fold by fold, `trained` their functions, where these are combined,
    `parts` the rows held out, and F, shape (n_outputs, m), values at them by functions that have not seen them; NaN
    where an interrupt came first.
    """

    choice: ArchitectureChoice
    solutions: list[Solution]
    trained: list[tuple[Any, Plan]]
    parts: list[Index]
    F: Array
    interrupted: bool


class SearchesOnFolds:
    """What compares architectures, and searches on folds whose functions are combined."""

    search: TreeSearch | None
    selection: TreeSelection | None
    _combination: Combination
    # Whether targets are labels, which a search on few rows fits too well.
    _labels: ClassVar[bool]

    @abstractmethod
    def _trained(self, task: TreeTask, solution: Solution, plan: Plan, clock: Clock, seed: int) -> tuple[Any, Plan]:
        """The function of a solution on the rows of the task, and what was done, with its certificate."""

    def _choose(
        self, task: TreeTask, candidates: Sequence[Any], earlier: list[Solution], seed: int, clock: Clock, plan: Plan
    ) -> FoldSearches:
        """Cross-validate the architectures, and search for the weights that combinations take.

        Of more rows than one matrix bears, a random sample says which is best. Searches go on from earlier ones on the
        same rows only: others may have seen what is held out.
        """
        combines, search = self._combination.in_folds, self.search or TreeSearch()
        if plan.method != "dense" and not combines:
            task = task.drawn(CHOICE_ROWS)
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
        part = clock.part(1.0 if combines else CHOICE_SHARE).sparing(
            self._combination.n_trainings(len(jobs)) * plan.seconds
        )
        solutions, interrupted = one_after_the_other(jobs, part, repr(plan))
        if interrupted:
            clock.interrupt()
        if combines:
            rows = [folds[k // each % n_folds][0] for k in range(len(solutions))]
            trained = [
                self._trained(task.part(some), solution, plan, clock, seed)
                for some, solution in zip(rows, solutions, strict=True)
            ]
        else:
            trained = [(trained_solution(solution, clock), plan) for solution in solutions]
        risks, F = np.full((len(candidates), n_folds), np.inf), np.full((len(candidates), *Y.shape), np.nan)
        for k in range(0, len(solutions), each):
            candidate, fold = divmod(k // each, n_folds)
            function, held = MeanFunction.of([one for one, _ in trained[k : k + each]]), folds[fold][1]
            F[candidate][:, held] = values = function.values(task.X[held]).T
            risks[candidate, fold] = task.loss.total(Y[:, held], values, task.weights[held]).mean()
            risks[candidate, fold] /= task.weights[held].sum()
        best = int(risks.mean(axis=1).argmin())
        own = slice(best * n_folds * each, (best + 1) * n_folds * each)
        choice = ArchitectureChoice(tuple(candidates), risks, best)
        return FoldSearches(
            choice, solutions[own], trained[own] if combines else [], [held for _, held in folds], F[best], interrupted
        )
