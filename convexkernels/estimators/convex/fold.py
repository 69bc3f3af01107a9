"""Rows that a kernel and its functions learn from, and rows that these are scored on."""

import math
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.folds import split_rows, spread_sample
from convexkernels.driver import approach
from convexkernels.estimators.left_out import learned_gram, left_out_of_problem
from convexkernels.estimators.outliers import mean_of_targets, usual_weights
from convexkernels.families.base import Family
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive, deviation_of
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.problems.on_rows import free_centers
from convexkernels.solvers import make_solver
from convexkernels.threads import threads_for

# Theta and alpha at values.
Points = dict[float, tuple[Array, Array]]
# The part of a bound up to which a coefficient is inside.
INSIDE = 1.0 - 1e-6
# Rows that a path is followed on: what is chosen there holds for longer tables, too.
LARGEST_SAMPLE = 1000
# Folds, and held-out rows that suffice: folds are left out beyond.
FOLDS, ENOUGH = 3, 400
# How exactly kernels are learned that are only compared: a fifth of that gap chooses nothing better.
PATH_TOL, PATH_STEPS = 0.05, 10


@dataclass(eq=False)
class Fold:
    """Training rows of a problem, for a family, what is held out, and where values of the path have led to.

    The first value may have a `start`. Targets are `scored` by weights of shape (n_outputs, n_held);
    kernels are learned to a `PART` of `tol`, or for ten steps.
    """

    PART: ClassVar[float] = 1.0

    whole: KernelLearning
    family: Family
    train: Index
    held: Index
    scored: Array
    tol: float = PATH_TOL
    points: Points = field(default_factory=dict)
    start: Array | None = None
    values: dict[float, Array] = field(default_factory=dict)
    errors: dict[float, Array] = field(default_factory=dict)
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
        other.values, other.errors, other.deviations, other.points = {}, {}, {}, {}
        for value, (theta, alpha) in self.points.items():
            W = problem.coefficients(np.atleast_2d(alpha))
            other.points[value] = theta, W.reshape(*np.shape(alpha)[:-1], -1)
        return other

    def begin_at(self, theta: Array, problem: KernelLearning | None = None) -> None:
        """Let the first value begin with a kernel of the family that all rows have led to, on matrices that are there.

        Not here: rows are held out, and as far as their gap is open kernels are those that they began with.
        """

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
        tol = self.PART * self.tol
        learned = problem.family, loss, problem.X, problem.Y, problem.weights, tol
        piece = clock.piece("values at rows held out", *learned, self.X)
        if known := piece.found:
            self.points[value] = known["theta"], known["alpha"]
            return self._scored(value, known["values"])
        nearest = min(self.points, key=lambda other: abs(math.log(other / value)), default=None)
        begun = None if self.start is None else (self.start, None)
        solver = make_solver("spectral-gradient", initial=begun if nearest is None else self.points[nearest])
        with threads_for(problem.m):
            theta, alpha = approach(problem, solver, tol=tol, max_iter=PATH_STEPS, clock=clock)
        self.points[value] = theta, alpha
        error = self._scored(value, self.values_of(problem, theta, alpha))
        if not clock.is_over:
            piece.keep(values=self.values[value], theta=theta, alpha=alpha)
        return error

    def _scored(self, value: float, F: Array) -> float:
        """The error of values of shape (n_outputs, n_held), which are kept."""
        errors = self.errors_of(F)
        errors[np.isnan(errors) | np.isnan(F).any(axis=0)] = math.inf  # the arithmetic of a value broke down
        self.values[value], self.errors[value] = F, errors
        self.deviations[value] = deviation_of(F - self.Y, self.scored) if self.whole.loss.is_of_differences else 1.0
        return float(errors.sum())

    def values_of(self, problem: KernelLearning, theta: Array, alpha: Array) -> Array:
        """Values at the rows held out, shape (n_outputs, n_held)."""
        return problem.function(theta, alpha).values(self.X).T

    def errors_of(self, F: Array) -> Array:
        """Weights of the rows with a wrong label and 0 of others, or squared errors, the mean over outputs."""
        if self.whole.loss.is_of_differences:
            return np.asarray(np.mean((F - self.Y) ** 2 * self.scored, axis=0))
        wrong = F[0] * self.Y[0] <= 0.0 if len(F) == 1 else F.argmax(axis=0) != self.Y.argmax(axis=0)
        return self.weights * wrong

    @cached_property
    def total(self) -> float:
        """The error that scores compare with: that of wrong labels only, or of means."""
        if not self.whole.loss.is_of_differences:
            return float(self.weights.sum())
        return float(self.errors_of(mean_of_targets(self.Y, self.scored)).sum())

    def errors_of_constants(self) -> Array:
        """Errors of the best constants, row by row: of labels those of the most frequent one."""
        Y, weights, loss = self.targets[:, self.train], self.whole.weights[self.train], self.whole.loss
        if loss.is_of_differences:
            center = free_centers(loss, Y, weights)
            b = center + loss.constant(Y - center[:, None], weights)
        else:
            counts = np.where(Y > 0.0, weights, 0.0).sum(axis=1)
            best = 2.0 * counts >= weights.sum() if len(Y) == 1 else np.arange(len(Y)) == counts.argmax()
            b = np.where(best, 1.0, -1.0)
        return self.errors_of(np.broadcast_to(b[:, None], self.Y.shape))


class EachRow(Fold):
    """Rows of which each is left out by itself, in closed form: the function has not seen it, but the kernel has.

    What that promises depends on how far the kernel was learned, so it is learned more exactly.
    """

    PART: ClassVar[float] = 0.2

    @cached_property
    def problem(self) -> KernelLearning:
        whole = self.whole
        return whole if self.family is whole.family and len(self.train) == whole.m else super().problem

    def begin_at(self, theta: Array, problem: KernelLearning | None = None) -> None:
        self.start = theta
        if problem is not None:
            self.problem = problem

    def values_of(self, problem: KernelLearning, theta: Array, alpha: Array) -> Array:
        return left_out_of_problem(problem, theta, lambda rows: learned_gram(problem, theta, rows), whole=True).F


def scored_weights(problem: KernelLearning) -> Array:
    """Weights of targets by which errors are scored: a loss that hardly feels outliers is not judged by them."""
    Y = problem.Y + problem.center[:, None]
    if not isinstance(problem.loss, EpsilonInsensitive):
        return np.broadcast_to(problem.weights, Y.shape)
    return usual_weights(problem.X, Y, problem.weights)


def folds_of(
    problem: KernelLearning,
    family: Family,
    scored: Array,
    tol: float = PATH_TOL,
) -> list[Fold]:
    """Rows to learn from and to score on, of all rows or of a sample; none where there are too few rows.

    There are as many folds as hold enough rows out together. Where one suffices, rows beyond the sample are scored on,
    too, which costs little.
    """
    rng = np.random.default_rng(0)
    m, Y = problem.m, problem.Y + problem.center[:, None]
    rows = np.arange(m) if m <= LARGEST_SAMPLE else spread_sample(Y, LARGEST_SAMPLE, rng)
    if m < 2 * FOLDS:
        return []
    if isinstance(problem.loss, LeastSquares):
        return [EachRow(problem, family, rows, rows, scored[:, rows], tol)]
    folds = [(rows[train], rows[held]) for train, held in split_rows(Y[:, rows], FOLDS, rng)]
    if m - len(folds[0][0]) >= ENOUGH:
        others = np.arange(m) if m <= 2 * LARGEST_SAMPLE else spread_sample(Y, 2 * LARGEST_SAMPLE, rng)
        folds = [(train, np.setdiff1d(others, train)) for train, _ in folds]
        needed = 1
    else:
        needed = math.ceil(min(ENOUGH * FOLDS / len(rows), FOLDS))
    parts = [Fold(problem, family, train, held, scored[:, held], tol) for train, held in folds]
    if not problem.loss.is_of_differences:
        parts = [part for part in parts if _has_both(Y[:, part.train])]
    parts.sort(key=lambda part: part.total == 0.0)  # targets that are all alike compare nothing
    return parts[:needed] if any(part.total for part in parts) else []


def _has_both(Y: Array) -> bool:
    """Whether every row has two labels."""
    return bool((Y.min(axis=1) < Y.max(axis=1)).all())
