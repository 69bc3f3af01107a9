"""Cross-validation of sigma, lam1 and lam2 together: rungs of training, with exact solves where the loss allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection, survivors
from convexkernels.solution import Status
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.options import Training
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.spectral.selection import matched_trace_weight
from convexkernels.spectral.training import TrainingRun, Validation

# Of so many candidates one is trained further, for so many times as many epochs (successive halving, with thirds: at
# the first looks, when steps are large, weights can hardly be told apart).
KEPT = 3


@dataclass(frozen=True)
class Candidate:
    """What can be chosen before training starts; lam1 is the weight that is trained with."""

    sigma: float
    lam1: float
    lam2: float


@dataclass(frozen=True)
class FinalWeights:
    """Weights of W that the exact final solve may choose from, for squared loss.

    Where they `are_ridges` they weigh ``|W|_F^2`` whatever the penalty is; a trace norm then gets the lam1 that pulls
    as hard. They `rise` from one that was chosen for frequencies as drawn: scores that have fallen stay below.
    """

    weights: tuple[float, ...]
    are_ridges: bool
    rise: bool = False

    def times(self, share: float) -> FinalWeights:
        """All weights times `share`."""
        return replace(self, weights=tuple(share * weight for weight in self.weights))


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on, where training starts for every sigma, and how a point does on the other rows.

    Attributes
    ----------
    share : float
        Rows that the weights are meant for, over rows here: with it the penalties weigh as much against the *sum* of
        the losses, of which there are fewer here. (On 2,400 of 7,400 rows of a table the unscaled lam1 that was best
        was ten times what was best on all.)
    """

    problem: SpectralLearning
    starts: Mapping[float, SpectralPoint]
    validate: Validation
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Choice(Selection):
    """The outcome of a cross-validation.

    Attributes
    ----------
    best : Candidate
    last : float or None
        The weight for the final solve, one of `FinalWeights.weights` for the sigma that was chosen.
    candidates : tuple of Candidate
    scores : ndarray of shape (n_candidates,)
        Mean validation score over the folds, with as much training as the candidate got: the share of hits, or minus
        the mean loss.
    n_epochs : ndarray of shape (n_candidates,)
        How much that was, per fold.
    """

    best: Candidate
    last: float | None
    candidates: tuple[Candidate, ...]
    scores: Array
    n_epochs: NDArray[np.int64]

    @property
    def chosen(self) -> dict[str, float]:
        return {**asdict(self.best), **({} if self.last is None else {"lam1": self.last})}

    @property
    def curve(self) -> dict[str, Array]:
        tried = np.array([astuple(candidate) for candidate in self.candidates]).T
        return {**dict(zip(asdict(self.best), tried, strict=True)), "score on rows held out": self.scores}

    @classmethod
    def of(cls, best: Array, last: Array, candidates: Array, scores: Array, n_epochs: NDArray[np.int64]) -> Self:
        """The choice of these numbers."""
        found = tuple(Candidate(*row) for row in candidates.tolist())
        return cls(found[int(best)], None if np.isnan(last) else float(last), found, scores, n_epochs)

    def numbers(self) -> dict[str, Any]:
        """All of it as numbers, from which `of` makes it again."""
        found = {"candidates": [astuple(c) for c in self.candidates], "best": self.candidates.index(self.best)}
        last = np.nan if self.last is None else self.last
        return found | {"last": last, "scores": self.scores, "n_epochs": self.n_epochs}


def exact_points(
    problem: SpectralLearning, moments: Moments, last: FinalWeights, clock: Clock | None = None
) -> Iterator[tuple[float, SpectralPoint]]:
    """Solutions of the inner problem along a path of weights, each with its lam1.

    Ridges are solved in closed form. With `are_ridges` that is all: for the trace norm they stand in for the solution
    at the lam1 that is reported, which they equal where W has one column.
    """
    point, is_ridge = None, isinstance(problem.penalty, FrobeniusNorm)
    for weight in last.weights:
        if last.are_ridges or is_ridge:
            W = moments.ridge(weight)
            yield weight if is_ridge else matched_trace_weight(weight, W), moments.point(W)
        else:
            at = problem.with_weights(weight, problem.lam2)
            point = solve_inner(at, moments, start=point, clock=clock)
            yield weight, point


def choose_candidate(
    folds: Sequence[Fold],
    candidates: Sequence[Candidate],
    training: Training,
    last: Callable[[float], FinalWeights] | None = None,
    *,
    rng: Any,
    clock: Clock | None = None,
) -> Choice:
    """Choose (sigma, lam1, lam2) on rungs (successive halving): only the best third is trained further.

    A candidate that goes on continues its own run, moments of Adam included; nothing is trained again from zero. The
    candidates of one sigma share their start, W solved exactly. With `last`, for squared loss, a candidate is worth
    what the exact W for its frequencies is worth at the best of those weights, always as many: the whole path costs no
    training. Epochs of `training` are what the last candidate gets; when the time is up, or at an interrupt, the
    candidate that leads is taken.
    """
    clock = Clock() if clock is None else clock
    race = _Race(folds, candidates, replace(training, patience=None), last, rng, clock)
    is_trained = training.max_epochs > 0 and (folds[0].problem.learned or last is None)
    n_rungs = 1
    while is_trained and KEPT**n_rungs < len(candidates):
        n_rungs += 1
    try:
        for left in range(n_rungs - 1, -1, -1):
            race.rung(max(n_rungs - left, training.max_epochs // KEPT**left) if is_trained else 0, is_last=left == 0)
            if clock.is_over:
                break
    except KeyboardInterrupt:
        clock.interrupt()
    return race.choice()


class _Race:
    """Runs of all candidates that are still alive on all folds, and their scores so far."""

    def __init__(
        self,
        folds: Sequence[Fold],
        candidates: Sequence[Candidate],
        training: Training,
        last: Callable[[float], FinalWeights] | None,
        rng: Any,
        clock: Clock,
    ) -> None:
        self.folds, self.candidates, self.clock = folds, candidates, clock
        self.last = None if last is None else {c.sigma: last(c.sigma) for c in candidates}
        n_last = 1 if self.last is None else len(self.last[candidates[0].sigma].weights)
        self.scores = np.full((len(folds), len(candidates), n_last), -np.inf)
        self.n_epochs = np.zeros(len(candidates), dtype=np.int64)
        self.alive, self.n_scored, self.n_complete = list(range(len(candidates))), len(folds), 0
        self.runs = [
            {
                i: TrainingRun(
                    fold.problem.with_weights(fold.share * candidate.lam1, fold.share * candidate.lam2),
                    fold.starts[candidate.sigma].copy(),
                    training,
                    np.random.default_rng(seed),  # the same order of rows for every candidate
                    clock=clock,
                )
                for i, candidate in enumerate(candidates)
            }
            for fold, seed in zip(folds, rng.integers(2**32, size=len(folds)), strict=True)
        ]

    def rung(self, n_epochs: int, is_last: bool) -> None:
        """Train what is alive until it has had so many epochs, and keep the best third, or one."""
        for f, fold in enumerate(self.folds[: self.n_scored]):
            if f and self.clock.is_over:
                self.n_scored = f  # what is known of the first folds has to do
                break
            for i in self.alive:
                run = self.runs[f][i]
                if run.run(n_epochs - len(run.history)) is Status.INTERRUPTED:
                    raise KeyboardInterrupt
                self.n_epochs[i] = len(run.history)
                self.scores[f, i] = self._worth(run, fold, self.candidates[i].sigma)
            self.n_complete = max(self.n_complete, f + 1)
        places = survivors(-self._means().max(axis=1)[self.alive], 1 if is_last else -(-len(self.alive) // KEPT))
        self.alive = [self.alive[place] for place in places]
        self.runs = [{i: runs[i] for i in self.alive} for runs in self.runs]

    def _worth(self, run: TrainingRun, fold: Fold, sigma: float) -> list[float]:
        """Validation scores of a run: of its point, or of the exact solutions for its frequencies."""
        if self.last is None:
            return [fold.validate(run.point)]
        moments, last = Moments.of(run.point.map, run.problem), self.last[sigma].times(fold.share)
        return [fold.validate(point) for _, point in exact_points(run.problem, moments, last, self.clock)]

    def _means(self) -> Array:
        """Scores over the folds that all have been through; after an early interrupt what the first one knows."""
        return np.asarray(self.scores[: max(1, min(self.n_scored, self.n_complete))].mean(axis=0))

    def choice(self) -> Choice:
        """The candidate that leads."""
        table = self._means()
        best = max(self.alive, key=lambda i: table[i].max())
        candidate = self.candidates[best]
        last = None if self.last is None else self.last[candidate.sigma].weights[int(table[best].argmax())]
        return Choice(candidate, last, tuple(self.candidates), table.max(axis=1), self.n_epochs)
