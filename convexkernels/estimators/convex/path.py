"""A path of regularization parameters, along which the kernel is learned and rows are left out."""

import math
from collections.abc import Callable, Iterator, Mapping
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

# Values after which a path ends that lower the least error by no more than to this part of it. Wrong labels are counted
# in whole rows: they stay as many over a wider range. What lies beyond, a rival has seen.
PATIENCE, PATIENCE_OF_LABELS, PATIENCE_BESIDE_RIVAL, WORTHWHILE = 2, 3, 1, 0.99
# A path ends at once where squared errors have risen by this factor, or wrong labels by so many standard deviations of
# their number: values of less regularization take longest.
RISEN, RISEN_DEVIATIONS = 1.1, 1.5
# How many standard errors a family is ahead of another one by that is clearly ahead, or a mean from 0.
CLEARLY = 2.0
# Numbers of labels are compared to so many digits, and with standard errors beyond rounding: weights add up to others.
DIGITS, TIE = 12, 1.0 + 1e-9
# The place among the values of the second one that is tried: the most regular ones take long, and are seldom the best.
SECOND = 2
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
        Values that were tried with each of these lists, and their scores: with the loss that was chosen for the list
        that was, with the first loss for others. Lists are not tried where those before, or half of the rows, say that
        they gain nothing.
    reference : float or None
        The score of what the family is compared with (Gaussian kernels, of several widths or of a narrow one) on the
        same rows, where it was asked whether it suits the table: at that value, or the best one of a few with less
        regularization, where it is more regular than a soft margin or predicts hardly better than constants.
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
        if not self.paths:
            return {self.name: self.values, "score on rows held out": self.scores}
        values, scores = map(np.concatenate, zip(*self.paths.values(), strict=True))
        names = [name for name, (tried, _) in self.paths.items() for _ in tried]
        return {self.name: values, "kernels": names, "score on rows held out": scores}

    @property
    def score(self) -> float:
        """The best score; -inf where there is none."""
        return float(self.scores.max(initial=-np.inf))


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
    deviances: dict[float, float] = field(default_factory=dict)
    is_inside: bool = False
    is_at_end: bool = False
    is_cut: bool = False
    waited: int = 0

    @property
    def best(self) -> float:
        """The most regular value whose error is all but the least one."""
        return self._first_within(self.errors, ALL_BUT * min(self.errors.values()))

    def _first_within(self, errors: dict[float, float], good: float) -> float:
        first = min if self.values[0] <= self.values[-1] else max
        return first(value for value, error in errors.items() if error <= good)

    @property
    def chosen(self) -> float:
        """The best value; of labels that none tells better than constants the one of the least deviance.

        Probabilities may tell them all the same. It is the most regular value that does so all but as well.
        """
        told = [value for value, error in self.errors.items() if math.isfinite(error)]
        if len(told) < 2 or self._is_of_differences or self.errors[self.best] < self.constant:
            return self.best
        deviances = {value: self._deviance(value) for value in told}
        return self._first_within(deviances, min(deviances.values()) + ALL_BUT_DEVIANCE)

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
            self.deviation = float(np.sqrt(np.average(squares, weights=shares)))
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
        if self.is_cut and len(tried) == 1 and self.rival is None:  # there was nothing to compare it with
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
    def errors_of_constants(self) -> Array:
        """Errors of the best constants, row by row."""
        return np.concatenate([fold.errors_of_constants() for fold in self.folds])

    @property
    def constant(self) -> float:
        """The error of the best constants."""
        return self._settled(float(self.errors_of_constants.sum()))

    def _settled(self, error: float) -> float:
        """An error in units of the total one to some digits: equal numbers of labels are equal whatever rows weigh."""
        return error if self._is_of_differences else round(error / self.total, DIGITS) * self.total

    @property
    def says_something(self) -> bool:
        """Whether values were compared, or the one that time left is better than constants."""
        if self.is_cut and len(self.errors) == 1 and len(self.values) > 1:
            return self.errors[self.best] < self.constant
        return bool(self.errors)

    def errors_of_rows(self) -> Array | None:
        """Errors at the best value, row by row; None where the arithmetic broke down or there is none."""
        if not (self.errors and math.isfinite(self.errors[self.best])):
            return None
        return np.concatenate([fold.errors[self.best] for fold in self.folds])

    def is_clearly_ahead_of(self, others: Array | None) -> bool:
        """Whether rows held out say that the family is better than one of these errors, by more than chance."""
        own = self.errors_of_rows()
        if own is None or others is None:
            return False
        more = others - own
        return bool(more.sum() > TIE * CLEARLY * math.hypot(*more.tolist()))

    def may_gain_by_squares(self) -> bool:
        """Whether squares may be better than the loss: of classes; of numbers where its functions are not the mean.

        That is where errors of rows held out have a mean, in some output, that chance does not explain. So they may
        where the mean of all targets errs less.
        """
        if not self._is_of_differences or self.score(self.best) < 0.0:
            return True
        errors = np.hstack([(fold.values[self.best] - fold.Y) * fold.scored for fold in self.folds])
        return bool((np.abs(errors.sum(axis=1)) > CLEARLY * np.linalg.norm(errors, axis=1)).any())

    def _in_order(self) -> Iterator[float]:
        """Two values, the second and the third or the one before the rival's and its own, and on from the better one.

        To begin with the rival's own takes several times as long: nothing leads there.

        Where more regularization was better but nothing beats constants, with less of it, too; so for labels, of which
        a few may be right by chance, unless clearly more are wrong there.
        """
        values = self.values.tolist()
        at = min(SECOND if self.rival is None else values.index(self.rival.value), len(values) - 1)
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
        return error - least > TIE * RISEN_DEVIATIONS * math.sqrt(of_a_row * error)

    def follow(self, clock: Clock) -> None:
        """Visit the values until some in a row are hardly better than one that beats constants, or one is much worse.

        Beside a rival, begin with the value before the one chosen there; where not ahead, go on only while a step as
        good as the last one would come level. Values that find the same functions as the one before say nothing.
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
                if behind >= 0.0 and TIE * gained < behind:
                    return
            self.waited = 0 if of_two else self.waited
            least = min(least, error)
            if self.is_exact:
                return

    def visit_all(self, clock: Clock) -> bool:
        """Visit every value, if there is time."""
        return all(self.visit(value, clock) for value in self.values.tolist())

    def climb(self, gain: float, clock: Clock) -> None:
        """Visit the values in their order, as long as each has a score that is better by a gain than those before."""
        best = -math.inf
        for value in self.values.tolist():
            if not self.visit(value, clock) or self.score(value) < best + gain:
                return
            best = self.score(value)

    def refine(self, clock: Clock) -> None:
        """Visit the values between the best one and its neighbors."""
        visited = [value for value in self.values.tolist() if value in self.errors]
        at = visited.index(self.chosen)
        for other in visited[max(at - 1, 0) : at + 2] if not self.is_exact else []:
            if other != visited[at] and (clock.is_over or not self.visit(float(np.sqrt(other * visited[at])), clock)):
                return


def soft(values: Array) -> float:
    """The value for kernels of unit scale, where nothing is known of the others."""
    return float(values[min(SECOND, len(values) - 1)])
