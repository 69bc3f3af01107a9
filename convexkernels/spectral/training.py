"""Training of frequencies and weights together: mini-batches, Adam, proximal steps, early stopping."""

import json
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np

from convexkernels.backend import to_numpy
from convexkernels.checkpoint import Numbers, Piece
from convexkernels.clock import Clock
from convexkernels.exceptions import tell
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.adam import Adam
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SquaredLoss
from convexkernels.spectral.options import Training
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.threads import threads_for

Validation = Callable[[SpectralPoint], float]

# Batches from which on a second thread helps (MNIST, one thread and two: 6.5 and 4.4 s an epoch with batches of 512,
# but 7.5 and 9.0 s with 256).
MULTITHREADED_BATCH = 512
# Steps between two looks at whether numbers are still finite and whether time is left.
STEPS_BETWEEN_LOOKS = 50
# First steps of the frequencies relative to their size, feature by feature where these have factors: steps of one size
# for a column in meters and one in millimeters are none for the one, or take the other out of the range that suits it.
FIRST_STEPS = {"least_squares": 0.1, "hinge": 0.03, "logistic": 0.03}
# They change scores, on so many rows, by no more than this share of the spread of the scores.
LARGEST_CHANGE = 0.1
ROWS_OF_FIRST_STEP = 500
# A change so many times as large need not be proportional to the step.
FOLDED, MOST_TRIES = 3.0, 12
# Usual entries of columns from whose slopes Adam learns as they are.
USUAL = 1e-3, 1e6
# What is said after an epoch that nothing has cut short.
WHOLE_EPOCHS = (Status.ITERATION_LIMIT, Status.EARLY_STOPPED)
# The parts of a point.
PARTS = ("omega", "W", "c")


@dataclass(frozen=True)
class Epoch:
    """One line of the history: after so many passes over the data."""

    epoch: float
    objective: float
    validation: float
    seconds: float


@dataclass
class TrainingRun:
    """A training run that can be continued.

    Attributes
    ----------
    problem : SpectralLearning
    point : SpectralPoint
        Where it is; changed in place.
    training : Training
        Settled.
    rng : Generator
        Shuffles the rows.
    validate : callable, optional
        Point -> score, larger being better.
    n_hits : int
        Number of points behind a score that is a share of hits. The last point is then kept unless its score is worse
        than the best one by more than the standard deviation of such a share; 0: the best one is kept.
    clock : Clock
    pace : float
        Size of all steps. With 1 the first steps change the frequencies by the learning rate times their reach, and a
        score by about 1 when all entries of W agree.
    continues : bool
        Whether W is exact for the frequencies to begin with, and not one to train them with.
    piece : Piece
        What a checkpoint knows of the run, which then goes on from there, between two epochs.
    best : SpectralPoint
        The point of the best validation score, or the last one where nothing validates.
    history : list of Epoch
    status : Status
    """

    problem: SpectralLearning
    point: SpectralPoint
    training: Training
    rng: Any
    validate: Validation | None = None
    n_hits: int = 0
    clock: Clock = field(default_factory=Clock)
    pace: float = 1.0
    continues: bool = False
    piece: Piece = field(default_factory=lambda: Piece(None))
    history: list[Epoch] = field(default_factory=list, init=False)
    status: Status = field(default=Status.ITERATION_LIMIT, init=False)

    def __post_init__(self) -> None:
        # A proximal step belongs to a step length common to all of W; the smooth penalty is a part of the gradient.
        self._is_smooth = isinstance(self.problem.penalty, FrobeniusNorm)
        omega = self.point.map.omega
        self._moments = {
            "W": Adam(self.point.W, common=not self._is_smooth),
            "c": Adam(self.point.intercept),
            "omega": Adam(omega),
        }
        self._units = _units_of(self.problem, self.point.map)
        self._reach = self._first_step() * self.point.map.reach()
        self.n_steps = 0
        self._without_better = 0
        self.best = self.point.copy()
        self.best_score = self._score()
        if self.piece.found:
            self._resume(self.piece.found)

    def __getstate__(self) -> dict[str, Any]:
        # The status by its name, as in Solution.
        return {**self.__dict__, "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=Status[state["status"]])

    def _first_step(self) -> float:
        """The first step of the frequencies relative to their reach.

        Where W is large, on few rows or in units in which sigma is small, an ordinary step changes scores by many times
        their spread (216 rows in raw units: 68, the spread 3), and the steps that are left do not mend that. With the
        squared loss W is small while frequencies are trained, but not where an earlier training has ended.
        """
        problem, point, given = self.problem, self.point, self.training.learning_rate
        rate = FIRST_STEPS[problem.loss.name] if given is None else given
        has_small_weights = isinstance(problem.loss, SquaredLoss) and not self.continues
        if given is not None or has_small_weights or not problem.learned:
            return rate
        some = slice(None, None, -(-problem.m // ROWS_OF_FIRST_STEP))
        X = problem.X[some]
        slope = problem.smooth(point, X, problem.Y[some], problem.relative(some))[3]
        along, before = self.pace * point.map.reach() * problem.backend.xp.sign(slope), point.scores(X)
        largest = LARGEST_CHANGE * _distance(before, before.mean(0))
        for _ in range(MOST_TRIES):
            moved = replace(point, map=point.map.with_omega(point.map.omega - rate * along))
            change = _distance(moved.scores(X), before)
            if not change > largest:
                break
            rate *= largest / change
            if change <= FOLDED * largest:  # beyond, the cosines of a column of large numbers have come around
                break
        return rate

    def _score(self) -> float:
        return self.validate(self.point) if self.validate is not None else math.nan

    def _resume(self, known: Numbers) -> None:
        """Take over what `_state` says of an earlier run."""
        array = self.problem.backend.array
        self.point, self.best = (
            SpectralPoint(self.point.map.with_omega(array(omega)), array(W), array(c))
            for omega, W, c in ([known[f"{place}-{name}"] for name in PARTS] for place in ("last", "best"))
        )
        for name, adam in self._moments.items():
            adam.mean, square = array(known[f"mean-{name}"]), known[f"square-{name}"]
            adam.square = float(square) if adam.common else array(square)
            adam.n_steps = int(known["n_steps"])
        self.history = [Epoch(*line) for line in known["history"].tolist()]
        self.n_steps, self._without_better = int(known["n_steps"]), int(known["without_better"])
        self.best_score, self.status = float(known["best_score"]), Status[str(known["status"])]
        self.rng.bit_generator.state = json.loads(str(known["rng"]))

    def _state(self) -> dict[str, Any]:
        """Points, moments, history and random numbers after an epoch."""
        places = {"last": self.point, "best": self.best}
        points = {place: (at.map.omega, at.W, at.intercept) for place, at in places.items()}
        found = {f"{place}-{name}": part for place in points for name, part in zip(PARTS, points[place], strict=True)}
        for name, adam in self._moments.items():
            found |= {f"mean-{name}": adam.mean, f"square-{name}": adam.square}
        return {name: part if isinstance(part, float) else to_numpy(part) for name, part in found.items()} | {
            "history": [astuple(epoch) for epoch in self.history],
            "n_steps": self.n_steps,
            "without_better": self._without_better,
            "best_score": self.best_score,
            "status": self.status.name,
            "rng": json.dumps(self.rng.bit_generator.state),
        }

    def run(self, n_epochs: int) -> Status:
        """Pass over the data so many times more, unless something ends it before; see :attr:`status`."""
        began = self.clock.seconds
        for k in range(n_epochs):
            last, n_before = self.point.copy(), len(self.history)
            try:
                if self._pass(last):
                    if self.piece.checkpoint is not None and self.status in WHOLE_EPOCHS:
                        self.piece.keep(**self._state())
                    self._say((self.clock.seconds - began) * (n_epochs - k - 1) / (k + 1))
            except KeyboardInterrupt:
                self.clock.interrupt()
                self.status = Status.INTERRUPTED
                if len(self.history) == n_before:
                    self.point = last  # not from the middle of an epoch
            if self.status is not Status.ITERATION_LIMIT:
                break
        if self.history and self.history[-1].validation >= self.best_score - self._noise():
            self.best = self.point.copy()
        return self.status

    def _pass(self, last: SpectralPoint) -> bool:
        """One pass over the data, if numbers stay finite, and what it changes about the best; `last` is its start."""
        objective = self.one_epoch()
        if self.status is Status.NUMERICAL_ERROR:
            self._broke_down(last)
            return False
        score = self._score()
        self.history.append(Epoch(len(self.history) + 1, objective, score, self.clock.seconds))
        self._without_better = self._without_better + 1 if score < self.best_score else 0
        if self._without_better == 0:
            self.best, self.best_score = self.point.copy(), score
        if self.status is Status.ITERATION_LIMIT and self._without_better == self.training.patience:
            self.status = Status.EARLY_STOPPED
        return True

    def _say(self, left: float) -> None:
        last, left = self.history[-1], left if self.clock.left is None else min(left, self.clock.left)
        said = "" if math.isnan(last.validation) else f", validation {last.validation:.6g}"
        self.clock.show.note(
            f"epoch {last.epoch:>4}: objective {last.objective:.6g}{said}, {last.seconds:.2f} s, about "
            f"{left:.2f} s left"
        )

    def _noise(self) -> float:
        p = self.best_score
        return math.sqrt(max(p * (1.0 - p), 0.0) / self.n_hits) if self.n_hits else 0.0

    def one_epoch(self) -> float:
        """One pass over the data in a new order; returns the mean objective on the way."""
        backend, m, size = self.problem.backend, self.problem.m, self.training.batch_size or self.problem.m
        order = backend.there(self.rng.permutation(m))
        total: Any = 0.0
        starts = range(0, m - m % size if m >= size else m, size)
        n_steps = max(1, self.training.max_epochs * len(starts))
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
                if self.clock.is_over:
                    self.status = Status.TIME_LIMIT
                    break
        if not self.point.is_finite:
            self.status = Status.NUMERICAL_ERROR
        return float(total) / max(1, taken) + self.problem.penalty.value(self.point.W, backend)

    def step(self, rows: Any, done: float) -> Any:
        """One step [LLW20 (7), (9)] on some rows, after a share `done` of all steps; returns their smooth objective."""
        problem, point = self.problem, self.point
        X, Y, weights = problem.X[rows], problem.Y[rows], problem.relative(rows)
        value, slope_W, slope_c, slope_omega = problem.smooth(point, X, Y, weights, learned=problem.learned)
        shrink = self.training.schedule == "cosine"
        factor = 0.5 * (1.0 + math.cos(math.pi * min(1.0, done))) if shrink else 1.0
        rate = factor * self.pace
        rate_W = rate / math.sqrt(point.map.width)
        adam_W, adam_c, adam_omega = self._moments.values()
        if self._is_smooth:
            if problem.penalty.weight > 0.0:
                slope_W += (2.0 * problem.penalty.weight) * point.W
            adam_W.step(point.W, slope_W, rate_W)
        else:
            multiple = adam_W.step(point.W, slope_W, rate_W)
            point.W[:] = problem.penalty.proximal(point.W, multiple, problem.backend)
        adam_c.step(point.intercept, slope_c, 0.1 * rate)
        if problem.learned:
            slope_omega = slope_omega if self._units is None else slope_omega / self._units
            adam_omega.step(point.map.omega, slope_omega, rate * self._reach)
        self.n_steps += 1
        return value

    def _broke_down(self, last: SpectralPoint) -> None:
        """Go back to the last finite point and say so."""
        self.point = last
        if self.validate is None:
            self.best = last
        tell(
            f"training stopped in epoch {len(self.history) + 1}, where numbers were not finite any more "
            f"({Status.NUMERICAL_ERROR.name}); the last good weights were kept. A smaller learning_rate helps."
        )


def _units_of(problem: SpectralLearning, there: SpectralMap) -> Any:
    """What slopes of frequencies, which grow with the entries of their column, are divided by; None for nothing.

    Steps do not depend on it where slopes neither vanish beside the smallest ones that count nor have squares beyond
    single precision.
    """
    X = np.abs(to_numpy(problem.X[:: -(-problem.m // ROWS_OF_FIRST_STEP)])).astype(np.float64)
    sizes = np.array([np.median(column[column > 0.0]) if column.any() else 1.0 for column in X.T])
    usual = (sizes > USUAL[0]) & (sizes < USUAL[1])
    return None if usual.all() else there.slope_units(np.where(usual, 1.0, 2.0 ** np.round(np.log2(sizes))))


def _distance(F: Any, G: Any) -> float:
    """Root mean squared difference."""
    return float(((F - G) ** 2).mean()) ** 0.5


def validation_of(problem: SpectralLearning, rows: Any, codes: Any) -> Validation | None:
    """How a point is scored on rows that are not trained on, None where there are none.

    The share of hits, where the classes of all rows are given as `codes`; else minus the mean loss.
    """
    if not len(rows):
        return None
    held = problem.on_rows(rows)
    if codes is None:
        weights = held.relative(slice(None))
        return lambda point: -held.loss.value(point.scores(held.X), held.Y, held.backend.xp, weights)
    truth, shares = codes[rows], None if held.weights is None else to_numpy(held.weights)

    def hits(point: SpectralPoint) -> float:
        F = to_numpy(point.scores(held.X))
        found = (F[:, 0] > 0.0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)
        return float(np.average(found == truth, weights=shares))

    return hits
