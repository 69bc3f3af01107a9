"""What hierarchical estimators do around a search: several of them, functions of functions, relevance, time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.estimators.all_rows import TIMED_ROWS
from convexkernels.estimators.hierarchical_settings import TreeTask
from convexkernels.exceptions import tell
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status

__all__ = ["Job", "MeanFunction", "PairwiseFunction", "one_after_the_other", "training_seconds"]


@dataclass(frozen=True, eq=False)
class MeanFunction:
    """The mean of several decision functions [ST16 Section 5]."""

    functions: Sequence[Any]

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return np.mean([function.values(X) for function in self.functions], axis=0)


@dataclass(frozen=True, eq=False)
class PairwiseFunction:
    """One decision function for every pair of classes; positive values speak for the first of the two."""

    pairs: Mapping[tuple[int, int], DecisionFunction]
    n_classes: int

    @classmethod
    def of(cls, task: TreeTask, solution: Solution) -> PairwiseFunction:
        """The functions of all pairs, each trained with the kernel of a solution on the rows of its classes."""
        problem = solution.problem
        n_classes = len(problem.Y)
        codes = (problem.Y + problem.offset[:, None]).argmax(axis=0)
        own = replace(task, X=problem.X, weights=problem.weights, loss=problem.loss)
        pairs: dict[tuple[int, int], DecisionFunction] = {}
        for i, j in combinations(range(n_classes), 2):
            rows = np.flatnonzero((codes == i) | (codes == j))
            labels = np.where(codes[rows] == i, 1.0, -1.0)
            pairs[i, j] = own.problem(problem.gram_set.tree, 0, rows, labels).function(solution.theta)
        return cls(pairs, n_classes)

    def values(self, X: Array) -> Array:
        """Sums of the values, clipped to [-1, 1], that speak for each class, shape (n_samples, n_classes)."""
        scores = np.zeros((len(X), self.n_classes))
        for (i, j), function in self.pairs.items():
            value = np.clip(function.values(X)[:, 0], -1.0, 1.0)
            scores[:, i] += value
            scores[:, j] -= value
        return scores


Job = Callable[[Clock], Solution]


def one_after_the_other(jobs: Sequence[Job], clock: Clock, then: str) -> tuple[list[Solution], bool]:
    """Searches, each with an equal share of the time that is left, and whether the user interrupted them.

    What follows is said with the announcement of each: an interrupt before there is anything would be lost otherwise.
    """
    solutions: list[Solution] = []
    try:
        for k, job in enumerate(jobs):
            clock.show.note(f"search {k + 1} of {len(jobs)}, then {then}")
            solutions.append(job(clock.part(1.0 / (len(jobs) - k))))
            clock.show.note(f"search {k + 1} of {len(jobs)}: {solutions[-1].certificate}")
            if solutions[-1].status is Status.INTERRUPTED:
                return solutions, True
    except KeyboardInterrupt:
        if not solutions:
            raise
        tell(f"INTERRUPTED by the user; the best of {len(solutions)} of {len(jobs)} searches is kept.")
        return solutions, True
    return solutions, False


def training_seconds(problem: OuterLearning) -> float:
    """About how long the functions of a point take to be trained on `TIMED_ROWS` rows."""
    rows: Index = np.arange(0, problem.m, max(1, problem.m // TIMED_ROWS))
    part = problem.on_rows(rows)
    began = time.monotonic()
    part.train(part.start(0))
    return (time.monotonic() - began) * (TIMED_ROWS / part.m) ** 3
