"""A path of regularization parameters, along which the kernel is learned and rows are left out."""

import math
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection
from convexkernels.estimators.left_out import learned_gram, left_out_of_problem
from convexkernels.estimators.outliers import mean_of_targets
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.families.base import Family
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import deviation_of
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.problems.on_rows import free_centers
from convexkernels.solution import Solution, Status
from convexkernels.solvers import make_solver

# The loss at a value of the regularization parameter and a guess of the deviation of errors.
LossAt = Callable[[float, float], Loss]

# Values after which a path ends that lower the least error by no more than to this part of it. Wrong labels are counted
# in whole rows: they stay as many over a wider range. What lies beyond, a rival has seen.
PATIENCE, PATIENCE_OF_LABELS, PATIENCE_BESIDE_RIVAL, WORTHWHILE = 2, 3, 1, 0.99
# A path ends at once where squared errors have risen by this factor, or wrong labels by so many standard deviations of
# their number: values of less regularization take longest.
RISEN, RISEN_DEVIATIONS = 1.1, 1.5
# The place among the values of the second one that is tried: the most regular ones take long, and are seldom the best.
SECOND = 2
# Errors within this factor of the least one are as good.
ALL_BUT = 1.002
# The part of a bound up to which a coefficient is inside.
INSIDE = 1.0 - 1e-6
# The part of the deviation before to which it has to fall for values to be tried that only a narrower tube sets apart.
SETTLED = 0.9
# How exactly kernels are learned that are only compared.
PATH_TOL, PATH_STEPS = 1e-2, 10


@dataclass(frozen=True, eq=False)
class PathSelection(Selection):
    """What a regularization parameter was chosen by.

    Attributes
    ----------
    name : str
        ``"C"`` or ``"lam"``.
    values : ndarray of shape (n_values,)
        The values that were tried, ascending.
    scores : ndarray of shape (n_values,)
        Accuracy or R^2 on rows that neither the kernel nor the functions had seen, all folds together. Of ridge
        regression, by functions that had not seen the row, for the kernel learned from all rows; of support vector
        regression, without rows whose targets are outliers.
    value : float
        The value of the best score; the most regular one of those that are as good. Where the time was up after one of
        several, the one of a soft margin.
    deviation : float
        Deviation of the held-out errors there, in standard deviations of the outputs: by squares, or where outliers
        rule these by the median size. Of classes, 1.
    interrupted : bool
        Whether the user ended the choice.
    loss : str or None
        The loss, where it was chosen, too; the values are those that were tried with it.
    reference : float or None
        The score of Gaussian kernels of several widths on the same rows at that value, where it was asked whether the
        family suits the table.
    """

    name: str
    values: Array
    scores: Array
    value: float
    deviation: float
    interrupted: bool
    loss: str | None = None
    reference: float | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        return {self.name: self.value} | ({} if self.loss is None else {"loss": self.loss})

    @property
    def curve(self) -> dict[str, Array]:
        return {self.name: self.values, "score on rows held out": self.scores}

    @property
    def score(self) -> float:
        """The best score; -inf where there is none."""
        return float(self.scores.max(initial=-np.inf))


@dataclass(eq=False)
class Fold:
    """Training rows of a problem, for a family, what is held out, and where values of the path have led to.

    Targets are `scored` by weights of shape (n_outputs, n_held); kernels are learned to `tol`.
    """

    whole: KernelLearning
    family: Family
    train: Index
    held: Index
    scored: Array
    tol: float = PATH_TOL
    points: dict[float, tuple[Array, Array]] = field(default_factory=dict)
    deviations: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = self.whole
        self.targets = whole.Y + whole.center[:, None]
        self.X, self.Y, self.weights = whole.X[self.held], self.targets[:, self.held], whole.weights[self.held]

    @cached_property
    def problem(self) -> KernelLearning:
        """What is learned from; its matrices are formed when a value is tried, not all at the start."""
        return self.whole.on_rows(self.train, self.family)

    def again(self) -> "Fold":
        """The same rows for another loss, with their matrices; its values begin where these have led to."""
        other, problem = copy(self), self.problem
        other.deviations = {}
        other.points = {value: (theta, problem.coefficients(alpha)) for value, (theta, alpha) in self.points.items()}
        return other

    def is_inside(self, value: float, loss: Loss) -> bool:
        """Whether no coefficient is at the bound that C sets: a larger one finds the same functions."""
        problem, (_, alpha) = self.problem, self.points[value]
        for y, a in zip(problem.Y, np.atleast_2d(alpha), strict=True):
            dual = loss.box_dual(y, problem.weights)
            if dual is None or dual.diagonal is not None:  # regularization is not, or not only, a bound
                return False
            if (np.abs(loss.coefficients(a, y)) > INSIDE * np.maximum(-dual.lo, dual.hi)).any():
                return False
        return True

    def error(self, value: float, loss: Loss, clock: Clock) -> float:
        """Error of the functions on the rows held out, whose kernel has not seen them either."""
        problem = self.problem.with_loss(loss)
        piece = clock.piece(
            "errors at rows held out", problem.family, loss, problem.X, problem.Y, problem.weights, self.X
        )
        if known := piece.found:
            self.points[value], self.deviations[value] = (known["theta"], known["alpha"]), float(known["deviation"])
            return float(known["error"])
        nearest = min(self.points, key=lambda other: abs(math.log(other / value)), default=None)
        solver = make_solver("spectral-gradient", initial=None if nearest is None else self.points[nearest])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvexKernelsWarning)
            found = problem.solve(solver, tol=self.tol, max_iter=PATH_STEPS, max_time=clock.left)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.points[value] = found.theta, found.alpha
        F = self.values_of(found)
        error, of_numbers = self.error_of(F), self.whole.loss.is_of_differences
        deviation = deviation_of(F - self.Y, self.scored) if of_numbers else 1.0
        error = math.inf if math.isnan(error) else error  # the arithmetic of a value broke down
        self.deviations[value] = deviation
        if not clock.is_over:
            piece.keep(error=error, deviation=deviation, theta=found.theta, alpha=found.alpha)
        return error

    def values_of(self, found: Solution) -> Array:
        """Values at the rows held out, shape (n_outputs, n_held)."""
        return np.atleast_2d(found.decision_function(self.X).T)

    def error_of(self, F: Array) -> float:
        """Weight of the rows with a wrong label, or sum of squared errors, the mean over outputs."""
        if self.whole.loss.is_of_differences:
            return float(np.mean(np.sum((F - self.Y) ** 2 * self.scored, axis=1)))
        wrong = F[0] * self.Y[0] <= 0.0 if len(F) == 1 else F.argmax(axis=0) != self.Y.argmax(axis=0)
        return float(self.weights @ wrong)

    def constant_error(self) -> float:
        """Error of the best constants."""
        Y, weights, loss = self.targets[:, self.train], self.whole.weights[self.train], self.whole.loss
        center = free_centers(loss, Y, weights)
        b = center + loss.constant(Y - center[:, None], weights)
        return self.error_of(np.broadcast_to(b[:, None], self.Y.shape))


class EachRow(Fold):
    """Rows of which each is left out by itself, in closed form: the function has not seen it, but the kernel has."""

    @cached_property
    def problem(self) -> KernelLearning:
        whole = self.whole
        return whole if self.family is whole.family and len(self.train) == whole.m else super().problem

    def values_of(self, found: Solution) -> Array:
        problem, theta = found.problem, found.theta
        return left_out_of_problem(problem, theta, lambda rows: learned_gram(problem, theta, rows), whole=True).F


@dataclass(eq=False)
class Path:
    """Errors of the values visited so far for a family; `deviation` is that of the best of them.

    `is_inside` says that values of less regularization than the one visited last find the same functions, or nearly,
    `is_at_end` that those of less than any that was visited do; `waited` counts those in a row that were no better.
    `is_cut` says that the time was up.
    """

    family: Family
    folds: list[Fold]
    loss_at: LossAt
    values: Array
    deviation: float
    rival: PathSelection | None = None
    errors: dict[float, float] = field(default_factory=dict)
    is_inside: bool = False
    is_at_end: bool = False
    is_cut: bool = False
    waited: int = 0

    @property
    def best(self) -> float:
        """The most regular value whose error is all but the least one."""
        good = ALL_BUT * min(self.errors.values())
        first = min if self.values[0] <= self.values[-1] else max
        return first(value for value, error in self.errors.items() if error <= good)

    def visit(self, value: float, clock: Clock) -> bool:
        """Try a value, if there is time."""
        total, loss = 0.0, self.loss_at(value, self.deviation)
        for fold in self.folds:
            total += fold.error(value, loss, clock)
            if clock.is_over:  # the next fold would form matrices first
                return False
        self.errors[value], before = total, self.deviation
        if value == self.best and self._is_of_differences and math.isfinite(total):
            shares = [fold.weights.sum() for fold in self.folds]
            squares = [fold.deviations[value] ** 2 for fold in self.folds]
            self.deviation = float(np.sqrt(np.average(squares, weights=shares)))
        # In a narrower tube functions are other ones, and coefficients larger.
        is_settled = self.deviation > SETTLED * before
        self.is_inside = is_settled and all(fold.is_inside(value, loss) for fold in self.folds)
        self.is_at_end |= self.is_inside
        return True

    @cached_property
    def total(self) -> float:
        """The error that scores compare with."""
        return sum(_total(fold) for fold in self.folds)

    def score(self, value: float) -> float:
        """Accuracy or R^2 at a value that was visited."""
        return 1.0 - self.errors[value] / self.total

    def selection(self, name: str, interrupted: bool = False) -> PathSelection:
        """What is chosen by the values visited so far, the most regular one where there are none."""
        tried = np.sort(np.array(list(self.errors)))
        scores = np.array([self.score(value) for value in tried.tolist()])
        value = self.best if self.errors else float(self.values[0])
        if self.is_cut and len(tried) == 1 and self.rival is None:  # there was nothing to compare it with
            value = soft(self.values)
        return PathSelection(name, tried, scores, value, self.deviation, interrupted)

    @cached_property
    def constant(self) -> float:
        """The error of the best constants."""
        return sum(fold.constant_error() for fold in self.folds)

    def _in_order(self) -> Iterator[float]:
        """Two values, the second and the third or the rival's own and the next one, and on from the better of the two.

        Where more regularization was better but nothing beats constants, with less of it, too; so for labels, of which
        a few may be right by chance, unless clearly more are wrong there.
        """
        values = self.values.tolist()
        at = min(SECOND if self.rival is None else values.index(self.rival.value) + 1, len(values) - 1)
        regular, less = values[:at][::-1], values[at:]
        yield from regular[:1]
        turns = self.is_at_end
        if not turns:
            yield less[0]
            change = self.errors[regular[0]] - self.errors[less[0]] if regular else math.inf
            turns = change < 0.0 or (change == 0.0 and self.rival is not None)
        if turns:
            yield from regular[1:]
            least = min(self.errors.values())
            beats = least < self.constant and self._is_of_differences
            if self.is_at_end or beats or self._has_risen(self.errors[less[0]], least):
                return
            self.waited = 0  # in the other direction
        for value in less[1:]:
            if self.is_at_end:
                return
            yield value

    @property
    def _is_of_differences(self) -> bool:
        return self.folds[0].whole.loss.is_of_differences

    def _has_risen(self, error: float, least: float) -> bool:
        """Whether an error is so much larger than the least one that no other value needs to be tried."""
        if self._is_of_differences:
            return error > RISEN * least
        of_a_row = float(np.mean(np.concatenate([fold.weights for fold in self.folds])))
        return error - least > RISEN_DEVIATIONS * math.sqrt(of_a_row * error)

    def follow(self, clock: Clock) -> None:
        """Visit the values until some in a row are hardly better than one that beats constants, or one is much worse.

        Beside a rival, begin with what it chose; where not ahead, go on only while a step as good as the last one would
        come level. Values that find the same functions as the one before say nothing.
        """
        if not self.folds:
            return
        least = math.inf
        patience = PATIENCE if self._is_of_differences else PATIENCE_OF_LABELS
        patience = patience if self.rival is None else PATIENCE_BESIDE_RIVAL
        for k, value in enumerate(self._in_order()):
            of_two = k == 1 and not self.is_at_end  # the path may go on from the first one
            if self.waited == patience or not self.visit(value, clock):
                return
            error = self.errors[value]
            if k > 0 and not of_two and self.is_inside:
                least = min(least, error)
                continue
            self.waited = 0 if error < WORTHWHILE * least or least >= self.constant else self.waited + 1
            if self._has_risen(error, least):  # also where constants are best: it is noise
                self.waited = patience
            if k > 0 and self.rival is not None:
                behind = (self.rival.score - self.score(self.best)) * self.total
                gained = abs(least - error) if of_two else least - error
                if behind >= 0.0 and gained < behind:
                    return
            self.waited = 0 if of_two else self.waited
            least = min(least, error)

    def refine(self, clock: Clock) -> None:
        """Visit the values between the best one and its neighbors."""
        visited = [value for value in self.values.tolist() if value in self.errors]
        at = visited.index(self.best)
        for other in visited[max(at - 1, 0) : at + 2]:
            if other != visited[at] and (clock.is_over or not self.visit(float(np.sqrt(other * visited[at])), clock)):
                return


def soft(values: Array) -> float:
    """The value for kernels of unit scale, where nothing is known of the others."""
    return float(values[min(SECOND, len(values) - 1)])


def _total(fold: Fold) -> float:
    """The error that scores compare with: that of wrong labels only, or of means."""
    if not fold.whole.loss.is_of_differences:
        return float(fold.weights.sum())
    return fold.error_of(mean_of_targets(fold.Y, fold.scored))
