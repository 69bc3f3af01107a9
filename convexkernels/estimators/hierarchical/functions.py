"""Functions of hierarchical estimators that are made of other functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.choice import selection_of
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection
from convexkernels.driver import stated
from convexkernels.estimators.hierarchical.choices import LamSelection
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.estimators.left_out import LeftOut, left_out_of_cells, left_out_of_kernel, left_out_of_problem
from convexkernels.exceptions import MissingAttributeError
from convexkernels.families.curved.trees import Trees
from convexkernels.kernels.base import Kernel
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import DecisionFunction, differences
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution


def trained(problem: OuterLearning, theta: Array, clock: Clock) -> DecisionFunction:
    """The function of a point by one matrix of all rows, with the coefficients of an earlier run where it has ended."""

    def coefficients() -> dict[str, Any]:
        function = problem.function(theta)
        return {"W": function.coefficients(problem.m), "b": function.b}

    found = clock.once(coefficients, "training", *stated(problem), theta)
    return problem.function_of(theta, found["W"], found["b"])


def trained_solution(solution: Solution, clock: Clock) -> DecisionFunction:
    """The same for a solution, which keeps it."""
    if "function" not in vars(solution):
        vars(solution)["function"] = trained(solution.problem, solution.theta, clock)
    function: DecisionFunction = solution.function
    return function


@dataclass(frozen=True, eq=False)
class MeanFunction:
    """The mean of several functions [ST16 Section 5], or with shares, >= 0 and of sum 1, a weighted one.

    They have names where they differ in kind.
    """

    functions: Sequence[Any]
    shares: Array | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, functions: Sequence[Any]) -> Any:
        """Their mean; of one, itself."""
        return cls(functions) if len(functions) > 1 else functions[0]

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return np.asarray(sum(share * function.values(X) for share, function in self._used))

    def changes(self, X: Array, steps: Array) -> Array:
        """As those of a `DecisionFunction`."""
        found = [
            share * (f.changes(X, steps) if hasattr(f, "changes") else differences(f.values, X, steps))
            for share, f in self._used
        ]
        return np.asarray(sum(found))

    @property
    def _used(self) -> list[tuple[float, Any]]:
        """Shares and functions that predict."""
        shares = np.full(len(self.functions), 1.0 / len(self.functions)) if self.shares is None else self.shares
        return [(share, function) for share, function in zip(shares, self.functions, strict=True) if share > 0.0]


@dataclass(frozen=True, eq=False)
class PairwiseFunction:
    """One decision function for every pair of classes; positive values speak for the first of the two.

    Attributes
    ----------
    pairs : mapping of (int, int) to DecisionFunction
    rows : mapping of (int, int) to ndarray of int
        Rows that each has learned from.
    n_classes : int
    """

    pairs: Mapping[tuple[int, int], DecisionFunction]
    rows: Mapping[tuple[int, int], Index]
    n_classes: int

    @classmethod
    def of(cls, task: TreeTask, solution: Solution, clock: Clock) -> PairwiseFunction:
        """The functions of all pairs, each trained with the kernel of a solution on the rows of its classes."""
        problem = solution.problem
        n_classes = len(problem.Y)
        codes = (problem.Y + problem.offset[:, None]).argmax(axis=0)
        own = replace(task, X=problem.X, weights=problem.weights, loss=problem.loss)
        trees: Any = problem.gram_set
        family = Trees(trees.tree, ranks_of=trees.ranks_of, tied=trees.tied)
        pairs: dict[tuple[int, int], DecisionFunction] = {}
        rows = {(i, j): np.flatnonzero((codes == i) | (codes == j)) for i, j in combinations(range(n_classes), 2)}
        for pair, some in rows.items():
            labels = np.where(codes[some] == pair[0], 1.0, -1.0)
            pairs[pair] = trained(own.problem(family, 0, some, labels), solution.theta, clock)
        return cls(pairs, rows, n_classes)

    def coefficients(self, m: int) -> Array:
        """Coefficients of all m rows, shape (n_pairs, m)."""
        W = np.zeros((len(self.pairs), m))
        for part, (pair, function) in zip(W, self.pairs.items(), strict=True):
            part[self.rows[pair]] = function.coefficients(len(self.rows[pair]))[0]
        return W

    def values(self, X: Array) -> Array:
        """Sums of the values, clipped to [-1, 1], that speak for each class, shape (n_samples, n_classes)."""
        scores = np.zeros((len(X), self.n_classes))
        for (i, j), function in self.pairs.items():
            value = np.clip(function.values(X)[:, 0], -1.0, 1.0)
            scores[:, i] += value
            scores[:, j] -= value
        return scores


@dataclass(frozen=True, eq=False)
class OffsetFunction:
    """Functions in cells that learned deviations from an offset; values are clipped to bounds."""

    localized: Any
    offset: Array
    bounds: tuple[Array, Array] | None

    @property
    def lam(self) -> float | None:
        """The same in all cells, None where all are constants."""
        return next((cell.lam for cell in self.localized.functions if np.isfinite(cell.lam)), None)

    @property
    def selection(self) -> Selection | None:
        """What lam and the width of all cells were chosen from; None where there was no choice."""
        return selection_of([cell.choice for cell in self.localized.functions])

    def coefficients(self, m: int) -> Array:
        """Coefficients of all m rows of the table, shape (n_outputs, m): of each in the cell that predicts at it."""
        return np.asarray(self.localized.coefficients(m))

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return self._of_deviations(self.localized.values(X))

    def left_out(self, whole: bool) -> LeftOut:
        """Values at rows of some cells, or of all, by functions that have not seen the row."""
        left = left_out_of_cells(self.localized, whole)
        return replace(left, F=self._of_deviations(left.F.T).T, Y=left.Y + self.offset[:, None])

    def _of_deviations(self, F: Array) -> Array:
        F = F + self.offset
        return F if self.bounds is None else np.clip(F, *self.bounds)


@dataclass(frozen=True, eq=False)
class FunctionOfManyRows:
    """A function of more rows than one matrix bears: by products with the matrix, or on landmarks.

    The solution is that of a :class:`FixedKernel`, or of a :class:`KernelLearning` of one kernel on landmarks, whose
    functions learned deviations from the offset; values are clipped to bounds.
    """

    solution: Solution
    function: DecisionFunction
    offset: Array
    bounds: tuple[float, float] | None

    @property
    def is_on_landmarks(self) -> bool:
        """Whether it is a sum of the kernel at landmarks."""
        return isinstance(self.solution.problem, KernelLearning)

    @property
    def lam(self) -> float:
        """Weight of ``|f|^2`` beside the sum of the losses."""
        return float(self.solution.problem.loss.lam)

    @property
    def selection(self) -> Selection | None:
        """What lam was chosen from; None where it is that of the search."""
        return LamSelection(self.solution, self.lam) if "risks" in self.solution.trace else None

    @property
    def kernel(self) -> Kernel:
        """The kernel of the function: scaled for all rows, or as landmarks see it."""
        kernel: Kernel = self.solution.kernel
        return kernel

    def coefficients(self, m: int) -> Array:
        """Coefficients of all m rows of the table, shape (n_outputs, m)."""
        if self.is_on_landmarks:
            raise MissingAttributeError("its functions are sums of kernels at landmarks")
        return self.function.coefficients(m)

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return self.function.values(X)

    def left_out(self, whole: bool) -> LeftOut:
        """Values at rows that functions have not seen.

        By products those at the rows that were held out while lam was chosen, where there are some. On landmarks each
        of all rows is left out in closed form, for least squares. Else it is a sample of rows, by functions of these.
        """
        problem, theta, trace = self.solution.problem, self.solution.theta, self.solution.trace
        if "held_out" in trace:
            rows = trace["held_out"].astype(np.intp)
            left = LeftOut(trace["held_out_values"], problem.Y[:, rows], problem.weights[rows], rows)
        elif self.is_on_landmarks and isinstance(problem.loss, LeastSquares):
            left = left_out_of_problem(problem, theta, lambda rows: problem.gram_set.matrix(theta), True)
        elif whole:
            raise MissingAttributeError("no row was left out of functions of so many rows")
        else:
            left = left_out_of_kernel(self.solution, False)
        F, Y = left.F + self.offset[:, None], left.Y + self.offset[:, None]
        if self.bounds is None:
            return replace(left, F=F, Y=Y)
        return replace(left, F=np.clip(F, *self.bounds), Y=Y, leverage=None)
