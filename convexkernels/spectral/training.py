"""Training of frequencies and weights together: mini-batches, Adam, proximal steps, early stopping."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError
from convexkernels.progress import Silent
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.adam import Adam
from convexkernels.spectral.backend import to_numpy
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint, size_of
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.threads import threads_for
from convexkernels.validation import check_number, check_whole_number

__all__ = ["Epoch", "Schedule", "SpectralTraining", "accuracy", "negative_loss"]

SCHEDULES = ("cosine", "constant")
# Batches from which on a second thread helps (MNIST, one thread and two: 6.5 and 4.4 s an epoch with batches of 512,
# but 7.5 and 9.0 s with 256).
MULTITHREADED_BATCH = 512
# Steps between two looks at whether numbers are still finite and whether time is left.
STEPS_BETWEEN_LOOKS = 50


@dataclass(frozen=True)
class Epoch:
    """One line of the history: after so many passes over the data."""

    epoch: float
    objective: float
    validation: float
    seconds: float


@dataclass(frozen=True)
class Schedule:
    """How long is trained, and how fast.

    Attributes
    ----------
    batch_size : int
    learning_rate : float
        Size of the first steps of the frequencies, relative to their root mean square.
    weight_rate : float
        Size of the first steps of the entries of W, times the square root of the number of its rows: about how much a
        score changes when all of them agree.
    max_epochs : int
    kind : {"cosine", "constant"}
        Whether steps shrink to nothing along half a cosine.
    patience : int, optional
        Epochs without a better validation score before training stops. None: never.
    deadline : float
        In seconds of ``time.monotonic()``.
    """

    batch_size: int = 64
    learning_rate: float = 0.03
    weight_rate: float = 1.0
    max_epochs: int = 20
    kind: str = "cosine"
    patience: int | None = None
    deadline: float = math.inf

    def checked(self, m: int) -> Schedule:
        """Refuse what cannot be meant, by name."""
        check_whole_number("batch_size", self.batch_size, low=1)
        if self.batch_size > m:
            raise InvalidInputError(
                f"batch_size is {self.batch_size}, but there are only {m} rows to learn from; pass {m} or less."
            )
        check_number("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_number("weight_rate", self.weight_rate, low=0.0, open_low=True)
        check_whole_number("max_epochs", self.max_epochs, low=0)
        if self.kind not in SCHEDULES:
            raise InvalidInputError(f"schedule must be 'cosine' or 'constant', got {self.kind!r}.")
        if self.patience is not None:
            check_whole_number("patience", self.patience, low=1)
        return self

    def factor(self, done: float) -> float:
        """Multiple of the first step size after a share `done` of all steps."""
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done))) if self.kind == "cosine" else 1.0


@dataclass
class SpectralTraining:
    """A training run that can be continued.

    Attributes
    ----------
    problem : SpectralLearning
    point : SpectralPoint
        Where it is; changed in place.
    schedule : Schedule
    rng : Generator
        Shuffles the rows.
    validate : callable, optional
        Point -> score, larger being better.
    n_hits : int
        Number of points behind a score that is a share of hits. The last point is then kept unless its score is worse
        than the best one by more than the standard deviation of such a share; 0: the best one is kept.
    best : SpectralPoint
        The point of the best validation score, or the last one where nothing validates.
    history : list of Epoch
    status : Status
    """

    problem: SpectralLearning
    point: SpectralPoint
    schedule: Schedule
    rng: Any
    validate: Callable[[SpectralPoint], float] | None = None
    n_hits: int = 0
    progress: Silent = field(default_factory=Silent)
    history: list[Epoch] = field(default_factory=list, init=False)
    status: Status = field(default=Status.ITERATION_LIMIT, init=False)

    def __post_init__(self) -> None:
        backend = self.problem.backend
        # A proximal step belongs to a step length common to all of W; the smooth penalty is a part of the gradient.
        self._is_smooth = isinstance(self.problem.penalty, FrobeniusNorm)
        self._moments = {
            "W": Adam(self.point.W, common=not self._is_smooth),
            "c": Adam(self.point.intercept),
        }
        self._size = size_of(self.point.map.omega, backend)
        if self.problem.learned:
            self._moments["omega"] = Adam(self.point.map.omega)
        self._began = time.monotonic()
        self.n_steps = 0
        self._without_better = 0
        self.best = self.point.copy()
        self.best_score = self._score()

    def _score(self) -> float:
        return self.validate(self.point) if self.validate is not None else math.nan

    def run(self, n_epochs: int) -> Status:
        """Pass over the data so many times more, unless something ends it before; see :attr:`status`."""
        for _ in range(n_epochs):
            last, n_before = self.point.copy(), len(self.history)
            try:
                self._pass(last)
            except KeyboardInterrupt:
                self.status = Status.INTERRUPTED
                if len(self.history) == n_before:
                    self.point = last  # not from the middle of an epoch
            if self.status is not Status.ITERATION_LIMIT:
                break
        if self.history and self.history[-1].validation >= self.best_score - self._noise():
            self.best = self.point.copy()
        return self.status

    def _pass(self, last: SpectralPoint) -> None:
        """One pass over the data, and what it changes about the best point; `last` is where it began."""
        objective = self.one_epoch()
        if self.status is Status.NUMERICAL_ERROR:
            self._broke_down(last)
            return
        score, seconds = self._score(), time.monotonic() - self._began
        self.history.append(Epoch(len(self.history) + 1, objective, score, seconds))
        self._without_better = self._without_better + 1 if score < self.best_score else 0
        if self._without_better == 0:
            self.best, self.best_score = self.point.copy(), score
        patience = self.schedule.patience
        if self.status is Status.ITERATION_LIMIT and patience is not None and self._without_better >= patience:
            self.status = Status.EARLY_STOPPED
        said = "" if math.isnan(score) else f", validation {score:.6g}"
        self.progress.note(f"epoch {len(self.history):>4}: objective {objective:.6g}{said}, {seconds:.2f} s")

    def _noise(self) -> float:
        p = self.best_score
        return math.sqrt(max(p * (1.0 - p), 0.0) / self.n_hits) if self.n_hits else 0.0

    def one_epoch(self) -> float:
        """One pass over the data in a new order; returns the mean objective on the way."""
        backend, m, size = self.problem.backend, self.problem.m, self.schedule.batch_size
        order = backend.index(self.rng.permutation(m))
        total: Any = 0.0
        starts = range(0, m - m % size if m >= size else m, size)
        n_steps = max(1, self.schedule.max_epochs * len(starts))
        taken = 0
        for start in starts:
            rows = order[start : start + size]
            with threads_for(size, enough=MULTITHREADED_BATCH):
                total = total + self.step(rows, self.n_steps / n_steps)
            taken += 1
            if taken % STEPS_BETWEEN_LOOKS == 0 or taken == len(starts):
                if not math.isfinite(float(total)):
                    self.status = Status.NUMERICAL_ERROR
                    return math.nan
                if time.monotonic() > self.schedule.deadline:
                    self.status = Status.TIME_LIMIT
                    break
        if not self.point.is_finite:
            self.status = Status.NUMERICAL_ERROR
        return float(total) / max(1, taken) + self.problem.penalty.value(self.point.W, backend)

    def step(self, rows: Any, done: float) -> Any:
        """One step [LLW20 (7), (9)] on some rows, after a share `done` of all steps; returns their smooth objective."""
        problem, point, schedule = self.problem, self.point, self.schedule
        X, Y, weights = problem.X[rows], problem.Y[rows], problem.relative(rows)
        value, slope_W, slope_c, slope_omega = problem.smooth(point, X, Y, weights, learned=problem.learned)
        factor = schedule.factor(done)
        rate = factor * schedule.weight_rate
        rate_W = rate / math.sqrt(point.map.width)
        if self._is_smooth:
            if problem.penalty.weight > 0.0:
                slope_W += (2.0 * problem.penalty.weight) * point.W
            self._moments["W"].step(point.W, slope_W, rate_W)
        else:
            multiple = self._moments["W"].step(point.W, slope_W, rate_W)
            point.W[:] = problem.penalty.proximal(point.W, multiple, problem.backend)
        self._moments["c"].step(point.intercept, slope_c, 0.1 * rate)
        if self.problem.learned:
            self._moments["omega"].step(point.map.omega, slope_omega, factor * schedule.learning_rate * self._size)
        self.n_steps += 1
        return value

    def _broke_down(self, last: SpectralPoint) -> None:
        """Go back to the last finite point and say so."""
        self.point = last
        if self.validate is None:
            self.best = last
        warnings.warn(
            f"training stopped in epoch {len(self.history) + 1}, where numbers were not finite any more "
            f"({Status.NUMERICAL_ERROR.name}); the last good weights were kept. A smaller learning_rate helps.",
            ConvexKernelsWarning,
            stacklevel=4,
        )


def accuracy(problem: SpectralLearning, codes: Any) -> Callable[[SpectralPoint], float]:
    """Share of the points of `problem` whose largest score is that of their class."""
    weights = None if problem.weights is None else to_numpy(problem.weights)

    def score(point: SpectralPoint) -> float:
        F = to_numpy(point.scores(problem.X))
        found = (F[:, 0] > 0.0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)
        return float(np.average(found == codes, weights=weights))

    return score


def negative_loss(problem: SpectralLearning) -> Callable[[SpectralPoint], float]:
    """Minus the mean loss on the points of `problem`."""
    weights = problem.relative(slice(None))

    def score(point: SpectralPoint) -> float:
        return -problem.loss.value(point.scores(problem.X), problem.Y, problem.backend.xp, weights)

    return score
