"""Functions of hierarchical estimators that are made of other functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.estimators.hierarchical.settings import TreeTask
from convexkernels.estimators.left_out import LeftOut, left_out_of_cells
from convexkernels.kernels.base import Kernel
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.solution import Solution


@dataclass(frozen=True, eq=False)
class MeanFunction:
    """The mean of several functions [ST16 Section 5], or with shares, >= 0 and of sum 1, a weighted one.

    Attributes
    ----------
    functions : sequence of TrainedFunction
    shares : ndarray of shape (n_functions,), optional
    names : tuple of str
        Of the functions, where they differ in kind.
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
        shares = np.full(len(self.functions), 1.0 / len(self.functions)) if self.shares is None else self.shares
        used = [(share, function) for share, function in zip(shares, self.functions, strict=True) if share > 0.0]
        return np.asarray(sum(share * function.values(X) for share, function in used))


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


@dataclass(frozen=True, eq=False)
class OffsetFunction:
    """Functions in cells that learned deviations from an offset.

    Attributes
    ----------
    localized : LocalizedFunction
    offset : ndarray of shape (n_outputs,)
    bounds : pair of ndarray of shape (n_outputs,), optional
        Values are clipped to it.
    """

    localized: Any
    offset: Array
    bounds: tuple[Array, Array] | None

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
    """A function of more rows than one matrix bears, with values at rows that were held out while lam was chosen.

    Attributes
    ----------
    function : DecisionFunction
    held_out : LeftOut
    """

    function: DecisionFunction
    held_out: LeftOut

    @classmethod
    def of(cls, solution: Solution) -> Any:
        """The function of a solution on all rows; by itself where no rows were held out."""
        problem, trace = solution.problem, solution.trace
        if "held_out" not in trace:
            return solution.function
        rows, offset = trace["held_out"].astype(np.intp), problem.offset[:, None]
        F, Y = trace["held_out_values"] + offset, problem.Y[:, rows] + offset
        F = F if problem.bounds is None else np.clip(F, *problem.bounds)
        return cls(solution.function, LeftOut(F, Y, problem.weights[rows], rows))

    @property
    def kernel(self) -> Kernel:
        """The kernel, scaled for all rows."""
        points: Any = self.function.gram_set
        kernel: Kernel = points.kernel
        return kernel

    def coefficients(self, m: int) -> Array:
        """Coefficients of all m rows of the table, shape (n_outputs, m)."""
        return self.function.coefficients(m)

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        return self.function.values(X)

    def left_out(self, whole: bool) -> LeftOut:
        """What is known of rows that functions have not seen: of those that were held out."""
        return self.held_out
