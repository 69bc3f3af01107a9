"""What can be read from fitted hierarchical estimators: kernel, tree, coefficients, values at rows left out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.criteria.comparison import Selection
from convexkernels.estimators.hierarchical.choices import ArchitectureChoice, LamSelection
from convexkernels.estimators.hierarchical.combination import Combination
from convexkernels.estimators.hierarchical.functions import FunctionOfManyRows, MeanFunction
from convexkernels.estimators.hierarchical.settings import TreeSearch
from convexkernels.estimators.learned import Learned
from convexkernels.estimators.left_out import LeftOut, left_out_of_kernel
from convexkernels.exceptions import MissingAttributeError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.solution import Solution


class LearnedTrees(Learned):
    """Of the mean of the functions of all searches, or of what they are combined to."""

    search: TreeSearch | None
    solutions_: list[Solution]
    choice_: ArchitectureChoice | None
    function_: Any
    # Functions of the searches, and the number of rows that they are of.
    _functions: list[Any]
    _m: int
    # Rows of the table where equal points are one, values at rows held out, and these rows, where there are folds.
    _rows: tuple[Index, Array, Array] | None
    _seen: LeftOut | None
    _held_out: list[Index]
    # What predicts.
    _combination: Combination

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss at its first regularization parameter."""

    # -- what is read ------------------------------------------------------------------------------

    def _kernel(self) -> Kernel:
        """That of the first function: scaled for all rows, or as landmarks see it, where there are many rows."""
        first = self._functions[0]
        return first.kernel if isinstance(first, FunctionOfManyRows) else super()._kernel()

    @property
    def lam_(self) -> float:
        """Weight of ``|f|^2`` beside the sum of the losses in the function of the first search."""
        check_is_fitted(self)
        found: float | None = getattr(self._functions[0], "lam", None)
        return self._lam_of_search if found is None else found

    @property
    def _lam_of_search(self) -> float:
        return float(self.solution_.problem.stated_at(self.solution_.theta)["loss"].lam)

    @property
    def selection_(self) -> Selection:
        """How the architectures compare, where there are several, else what lam was chosen from."""
        check_is_fitted(self)
        if self.choice_ is not None and len(self.choice_.candidates) > 1:
            return self.choice_
        of_all_rows: Selection | None = getattr(self._functions[0], "selection", None)
        if of_all_rows is not None:
            return of_all_rows
        if not self.solution_.problem.criterion.learns_lam:
            raise MissingAttributeError(
                f"{type(self).__name__} had one architecture and a criterion that learns no lam: nothing to choose."
            )
        return LamSelection(self.solution_, self._lam_of_search)

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
            if solution.problem.m != len(seen):
                raise MissingAttributeError("functions of some of the rows have their own")
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
        is_of_rows = not (in_cells or self._combination.in_folds) and parts[0].F.shape[1] == self._m
        mean = replace(parts[0], F=np.mean([part.F for part in parts], axis=0))
        return (mean if len(parts) == 1 else replace(mean, leverage=None)), is_of_rows

    def _left_out_of(self, solution: Solution, whole: bool) -> LeftOut:
        """Left-out values of the functions of one search."""
        return left_out_of_kernel(solution, whole)
