"""Cross-validation of sigma, lam1 and lam2 together: rungs of training, with exact solves where the loss allows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.spectral.backend import Backend
from convexkernels.spectral.features import SpectralMap
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.spectral.selection import matched_trace_weight
from convexkernels.spectral.training import Schedule, SpectralTraining

__all__ = ["Candidate", "Choice", "Fold", "LastWeights", "choose_candidate", "exact_points"]

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
class LastWeights:
    """Weights of W that the exact last solve may choose from, for squared loss.

    Attributes
    ----------
    weights : tuple of float
    are_ridges : bool
        Whether they weigh ``|W|_F^2`` whatever the penalty is; a trace norm then gets the lam1 that pulls as hard.
    """

    weights: tuple[float, ...]
    are_ridges: bool


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
    validate: Callable[[SpectralPoint], float]
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Choice:
    """The outcome of a cross-validation.

    Attributes
    ----------
    best : Candidate
    last : float or None
        The weight for the last solve, one of `LastWeights.weights` for the sigma that was chosen.
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
    scores: NDArray[np.float64]
    n_epochs: NDArray[np.int64]


def exact_points(
    problem: SpectralLearning, spectral_map: SpectralMap, moments: Moments, last: LastWeights
) -> list[tuple[float, SpectralPoint]]:
    """Solutions of the inner problem along a path of weights, each with its lam1.

    Ridges are solved in closed form. With `are_ridges` that is all: for the trace norm they stand in for the solution
    at the lam1 that is reported, which they equal where W has one column.
    """
    found: list[tuple[float, SpectralPoint]] = []
    is_ridge = isinstance(problem.penalty, FrobeniusNorm)
    for weight in last.weights:
        if last.are_ridges or is_ridge:
            W = moments.ridge(weight)
            lam1 = weight if is_ridge else matched_trace_weight(weight, W)
            found.append((lam1, _typed_point(spectral_map, W, moments.intercept(W), problem.backend)))
        else:
            at = problem.with_weights(weight, problem.lam2)
            start = found[-1][1] if found else None
            found.append((weight, solve_inner(at, spectral_map, start=start, moments=moments).point))
    return found


def _typed_point(spectral_map: SpectralMap, W: Any, c: Any, backend: Backend) -> SpectralPoint:
    """A point with W and c in the type of the features."""
    return SpectralPoint(spectral_map, backend.xp.astype(W, backend.dtype), backend.xp.astype(c, backend.dtype))


def choose_candidate(
    folds: Sequence[Fold],
    candidates: Sequence[Candidate],
    schedule: Schedule,
    last: Callable[[float], LastWeights] | None = None,
    *,
    rng: Any,
) -> Choice:
    """Choose (sigma, lam1, lam2) on rungs (successive halving): only the best third is trained further.

    A candidate that goes on continues its own run, moments of Adam included; nothing is trained again from zero. The
    candidates of one sigma share their start, W solved exactly. With `last`, for squared loss, a candidate is worth
    what the exact W for its frequencies is worth at the best of those weights: the whole path costs no training.

    Parameters
    ----------
    folds : sequence of Fold
    candidates : sequence of Candidate
    schedule : Schedule
        Its epochs are what the last candidate gets. After its deadline the candidate that leads is taken.
    last : callable, optional
        sigma -> LastWeights; always as many.
    rng : Generator
    """
    n_last = len(last(candidates[0].sigma).weights) if last is not None else 1
    scores = np.full((len(folds), len(candidates), n_last), -np.inf)
    n_epochs = np.zeros(len(candidates), dtype=np.int64)
    is_trained = schedule.max_epochs > 0 and (folds[0].problem.learned or last is None)
    seeds = rng.integers(2**32, size=len(folds))
    schedule = replace(schedule, patience=None)
    runs: list[dict[int, SpectralTraining]] = [
        {
            i: SpectralTraining(
                fold.problem.with_weights(fold.share * candidate.lam1, fold.share * candidate.lam2),
                fold.starts[candidate.sigma].copy(),
                schedule,
                np.random.default_rng(seed),  # the same order of rows for every candidate
            )
            for i, candidate in enumerate(candidates)
        }
        for fold, seed in zip(folds, seeds, strict=True)
    ]
    alive = list(range(len(candidates)))
    n_rungs = 1
    while is_trained and KEPT**n_rungs < len(candidates):
        n_rungs += 1
    scored = len(folds)
    for remaining in range(n_rungs, 0, -1):
        total = max(n_rungs - remaining + 1, schedule.max_epochs // KEPT ** (remaining - 1)) if is_trained else 0
        for f, fold in enumerate(folds[:scored]):
            if f and time.monotonic() > schedule.deadline:
                scored = f  # what is known of the first folds has to do
                break
            for i in alive:
                run = runs[f][i]
                run.run(total - len(run.history))
                n_epochs[i] = len(run.history)
                scores[f, i] = _worth(run, fold, None if last is None else last(candidates[i].sigma))
        means = scores[:scored].mean(axis=0).max(axis=1)
        order = sorted(alive, key=lambda i: -means[i])
        alive = order[: -(-len(order) // KEPT)] if remaining > 1 else order[:1]
        for fold_runs in runs:
            for i in set(fold_runs) - set(alive):
                del fold_runs[i]
        if time.monotonic() > schedule.deadline:
            break
    table = scores[:scored].mean(axis=0)
    best = candidates[alive[0]]
    chosen = None if last is None else last(best.sigma).weights[int(table[alive[0]].argmax())]
    return Choice(best, chosen, tuple(candidates), table.max(axis=1), n_epochs)


def _worth(run: SpectralTraining, fold: Fold, last: LastWeights | None) -> list[float]:
    """Validation scores of a run: of its point, or of the exact solutions for its frequencies."""
    if last is None:
        return [fold.validate(run.point)]
    problem, spectral_map = run.problem, run.point.map
    last = replace(last, weights=tuple(fold.share * weight for weight in last.weights))
    moments = Moments.of(spectral_map, problem)
    return [fold.validate(point) for _, point in exact_points(problem, spectral_map, moments, last)]
