"""A path of regularization parameters, along which the kernel is learned and rows are left out."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection
from convexkernels.estimators.convex.fold import Fold
from convexkernels.estimators.probabilities import deviance_of
from convexkernels.families.base import Family
from convexkernels.losses.base import Loss

# The loss at a value of the regularization parameter and a guess of the deviation of errors.
LossAt = Callable[[float, float], Loss]

# A path ends with a value that does not lower the least error to this part of it.
WORTHWHILE = 0.99
# How many standard errors a family is ahead of another one by that is clearly ahead, or a mean is from 0.
CLEARLY = 2.0
# Numbers of labels are compared to so many digits: weights add up to others.
DIGITS = 12
# The place among the values of that of a soft margin, and steps to values farther on.
SOFT, FARTHER = 4, 2
# Errors within this factor of the least one are as good, and deviances that are larger by no more than this: one number
# that is fitted gains as much by chance in one of twenty tables.
ALL_BUT, ALL_BUT_DEVIANCE = 1.002, 2.0
# Squared errors of losses with a tube or a quantile that are no more than this part of all variance, a thousandth of
# the deviation, are as good as none: values of less regularization take minutes, and rounding keeps their gaps open.
EXACT = 1e-6
# The part of the deviation before to which it has to fall for values to be tried that only a narrower tube sets apart.
SETTLED = 0.9


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
        The value of the best score; the most regular one of those that are as good. Where none tells more labels than
        constants do, that of the likeliest ones; where the time was up after one of several, the one of a soft margin.
    deviation : float
        Deviation of the held-out errors there, in standard deviations of the outputs: by squares, or where outliers
        rule these by the median size. Of classes, 1.
    interrupted : bool
        Whether the user ended the choice.
    loss : str or None
        The loss, where it was chosen, too; the values are those that were tried with it.
    kernels : str or None
        The list of candidates, where it was chosen, too; the values are those that were tried with it.
    paths : dict of str to (ndarray, ndarray)
        All values for each list that was compared, or for the only family (""), and their R^2 by least squares, by
        functions that had not seen the row, for a kernel learned from all rows: what the list was chosen by, and where
        the path of values began.
    errors_by_squares : ndarray or None
        Errors of the rows that were looked at for these, at the best value, in parts of the variance.
    reference : float or None
        The R^2 by least squares, as in `paths`, of what the family is compared with (Gaussian kernels, of several
        widths or of a narrow one), where it was asked whether the family suits the table.
    theta : ndarray or None
        The parameter of the kernel that was learned with that value, the mean over folds: the last fit begins there.
    """

    name: str
    values: Array
    scores: Array
    value: float
    deviation: float
    interrupted: bool
    loss: str | None = None
    errors_by_squares: Array | None = None
    reference: float | None = None
    kernels: str | None = None
    paths: Mapping[str, tuple[Array, ...]] = field(default_factory=dict)
    theta: Array | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        others = {"kernels": self.kernels, "loss": self.loss}
        return {self.name: self.value} | {name: value for name, value in others.items() if value is not None}

    @property
    def curve(self) -> dict[str, Any]:
        if self.kernels is None or not self.paths:
            return {self.name: self.values, "score on rows held out": self.scores}
        paths = {**self.paths, f"{self.kernels}, learned anew": (self.values, self.scores)}
        values, scores = map(np.concatenate, zip(*paths.values(), strict=True))
        names = [name for name, (tried, _) in paths.items() for _ in tried]
        # Without regularization a ridge may err a hundred times as much as a constant.
        return {self.name: values, "kernels": names, "score on rows left out, 0 at least": np.maximum(scores, 0.0)}

    @property
    def score(self) -> float:
        """The best score; -inf where there is none."""
        return float(self.scores.max(initial=-np.inf))


@dataclass(eq=False)
class Path:
    """Errors of the values visited so far for a family; `deviation` is that of the best of them.

    It begins with the value `begin`. `is_inside` says that values of less regularization than the one visited last find
    the same functions, or nearly, `is_at_end` that those of less than any that was visited do, `is_cut` that the time
    was up.
    """

    family: Family
    folds: list[Fold]
    loss_at: LossAt
    values: Array
    deviation: float
    begin: float | None = None
    errors: dict[float, float] = field(default_factory=dict)
    deviances: dict[float, float] = field(default_factory=dict)
    is_inside: bool = False
    is_at_end: bool = False
    is_cut: bool = False

    @property
    def best(self) -> float:
        """The most regular value whose error is all but the least one."""
        return first_within(self._in_order(self.errors))

    def _in_order(self, numbers: Mapping[float, float]) -> dict[float, float]:
        """What belongs to values, the most regular first."""
        return dict(sorted(numbers.items(), reverse=bool(self.values[0] > self.values[-1])))

    @property
    def chosen(self) -> float:
        """The best value; of labels that none tells better than constants the one of the least deviance.

        Probabilities may tell them all the same. It is the most regular value that does so all but as well.
        """
        told = [value for value, error in self.errors.items() if math.isfinite(error)]
        if len(told) < 2 or self._is_of_differences or self.errors[self.best] < self.constant:
            return self.best
        deviances = {value: self._deviance(value) for value in told}
        return first_within(self._in_order(deviances), min(deviances.values()) + ALL_BUT_DEVIANCE)

    def _deviance(self, value: float) -> float:
        """Minus the logarithm of the likelihood of the labels held out, by the link of a value that was visited."""
        if value not in self.deviances:
            parts = [(fold.values[value], fold.Y, fold.weights) for fold in self.folds]
            self.deviances[value] = deviance_of(*map(np.hstack, zip(*parts, strict=True)))
        return self.deviances[value]

    def visit(self, value: float, clock: Clock) -> bool:
        """Try a value, if there is time."""
        total, loss = 0.0, self.loss_at(value, self.deviation)
        for fold in self.folds:
            total += fold.error(value, loss, clock)
            if clock.is_over:  # the next fold would form matrices first
                return False
        self.errors[value], before = self._settled(total), self.deviation
        if value == self.best and self._is_of_differences and math.isfinite(total):
            shares = [fold.weights.sum() for fold in self.folds]
            squares = [fold.deviations[value] ** 2 for fold in self.folds]
            self.deviation = widened(float(np.sqrt(np.average(squares, weights=shares))), self.folds[0].whole.loss)
        # In a narrower tube functions are other ones, and coefficients larger.
        is_settled = self.deviation > SETTLED * before
        self.is_inside = is_settled and all(fold.is_inside(value, loss) for fold in self.folds)
        self.is_at_end |= self.is_inside
        return True

    @cached_property
    def total(self) -> float:
        """The error that scores compare with."""
        return sum(fold.total for fold in self.folds)

    def score(self, value: float) -> float:
        """Accuracy or R^2 at a value that was visited."""
        return 1.0 - self.errors[value] / self.total

    def selection(self, name: str, interrupted: bool = False) -> PathSelection:
        """What is chosen by the values visited so far, the most regular one where there are none."""
        tried = np.sort(np.array(list(self.errors)))
        scores = np.array([self.score(value) for value in tried.tolist()])
        value = self.chosen if self.errors else float(self.values[0])
        if self.is_cut and len(tried) == 1 and self.begin is None:  # there was nothing to compare it with
            value = soft(self.values)
        thetas = [fold.points[value][0] for fold in self.folds if value in fold.points]
        theta = np.mean(thetas, axis=0) if thetas else None
        return PathSelection(name, tried, scores, value, self.deviation, interrupted, theta=theta)

    @property
    def is_exact(self) -> bool:
        """Whether errors of functions that have a tube to be in are as good as none."""
        least = min(self.errors.values(), default=math.inf)
        return self.folds[0].whole.loss.bears_outliers and least <= EXACT * self.total

    @cached_property
    def constant(self) -> float:
        """The error of the best constants."""
        return self._settled(float(sum(fold.errors_of_constants().sum() for fold in self.folds)))

    def _settled(self, error: float) -> float:
        """An error in units of the total one to some digits: equal numbers of labels are equal whatever rows weigh."""
        return error if self._is_of_differences else round(error / self.total, DIGITS) * self.total

    @property
    def says_something(self) -> bool:
        """Whether values were compared, or the one that time left is better than constants."""
        if self.is_cut and len(self.errors) == 1 and len(self.values) > 1:
            return self.errors[self.best] < self.constant
        return bool(self.errors)

    def may_gain_by_squares(self) -> bool:
        """Whether squares may be better than the loss: of classes; of numbers where its functions are not the mean.

        That is where errors of rows held out have a mean, in some output, that chance does not explain. So they may
        where the mean of all targets errs less.
        """
        if not self._is_of_differences or self.score(self.best) < 0.0:
            return True
        errors = np.hstack([(fold.values[self.best] - fold.Y) * fold.scored for fold in self.folds])
        return bool((np.abs(errors.sum(axis=1)) > CLEARLY * np.linalg.norm(errors, axis=1)).any())

    @property
    def _is_of_differences(self) -> bool:
        return self.folds[0].whole.loss.is_of_differences

    def follow(self, clock: Clock) -> None:
        """Visit the value to begin with and the one before it, and go on from the better one until one gains little.

        Of labels that no value tells better than constants do, also some with less regularization: what a path begins
        with is the best one for squares, which count probabilities.
        """
        if not self.folds or not self._walk(clock) or self._is_of_differences:
            return
        values = self.values.tolist()
        for value in values[max(map(values.index, self.errors)) + FARTHER :: FARTHER]:
            beats = min(self.errors.values()) < self.constant
            if beats or self.is_at_end or not self.visit(value, clock):
                return

    def _walk(self, clock: Clock) -> bool:
        """Visit values from that to begin with on, if there is time.

        The more regular one comes first, because it leads to the other in few steps. Where it finds the same functions
        as all of less regularization, these are not visited, and steps away from such values may gain nothing.
        """
        values = self.values.tolist()
        at = min(SOFT, len(values) - 1) if self.begin is None else values.index(self.begin)
        if not all(self.visit(value, clock) for value in values[max(at - 1, 0) : at]):
            return False
        before, is_same = min(self.errors.values(), default=math.inf), self.is_at_end
        if not is_same and not self.visit(values[at], clock):
            return False
        least = min(self.errors.values())
        turns = is_same or (at > 0 and before <= self.errors[values[at]])
        for value in values[: max(at - 1, 0)][::-1] if turns else values[at + 1 :]:
            if self.is_exact or (self.is_at_end and not turns):
                return True
            if not self.visit(value, clock):
                return False
            gains = self.errors[value] < WORTHWHILE * least or math.isinf(least)  # the arithmetic had broken down
            if not (gains or (self.is_inside and turns)):
                return True
            least = min(least, self.errors[value])
        return True


def soft(values: Array) -> float:
    """The value for kernels of unit scale, where nothing is known of the others."""
    return float(values[min(SOFT, len(values) - 1)])


def widened(deviation: float, loss: Loss) -> float:
    """A deviation of errors, not below one that is as good as none: rounding keeps gaps of narrower tubes open."""
    return max(deviation, math.sqrt(EXACT)) if loss.bears_outliers else deviation


def first_within(errors: Mapping[float, float], good: float | None = None) -> float:
    """The first value whose error is at most a good one, which is all but the least one where none is given."""
    good = ALL_BUT * min(errors.values()) if good is None else good
    return next(value for value, error in errors.items() if error <= good)
