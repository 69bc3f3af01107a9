"""Automated spectral kernel learning from a table to an answer: choices, warm start, training, polish, certificate."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.certificate import DualityGap
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.progress import Silent
from convexkernels.solution import Record, Solution, Status
from convexkernels.spectral.cross_validation import Choice, LastWeights, exact_points
from convexkernels.spectral.features import SpectralMap
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.spectral.preparation import Preparation, Recipe, validation_of
from convexkernels.spectral.selection import Width
from convexkernels.spectral.training import Epoch, Schedule, SpectralTraining

__all__ = ["SpectralFit", "continue_training", "learn_spectral"]

# Relative duality gap at which the answer to a convex setting is called optimal.
OPTIMAL = 1e-4


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What was learned and how.

    Attributes
    ----------
    solution : Solution
    epochs : tuple of Epoch
    initial : SpectralMap
        Frequencies before training.
    width : Width or None
        The choice of sigma, where there was one.
    choice : Choice or None
        The cross-validation, where there was one.
    sigma, lam1, lam2 : float
        What was used.
    """

    solution: Solution
    epochs: tuple[Epoch, ...]
    initial: SpectralMap
    width: Width | None
    choice: Choice | None
    sigma: float
    lam1: float
    lam2: float


def learn_spectral(
    problem: SpectralLearning,
    recipe: Recipe,
    *,
    validation: Any = None,
    codes: Any = None,
    rng: Any,
    progress: Silent | None = None,
) -> SpectralFit:
    """Learn frequencies and weights.

    1. sigma, or the most promising of a list, and a ridge from closed-form leave-one-out risks on random features;
    2. W exactly, by ridge regression, for the frequencies that were drawn: the warm start;
    3. sigma, lam1 and lam2, where there is a choice, by cross-validation with successive halving from those starts;
    4. mini-batch training of everything, the best validation score being kept;
    5. for squared loss, W exactly again, on all rows.

    Parameters
    ----------
    problem : SpectralLearning
        Its regularization weights are those of the recipe, whatever they are here.
    recipe : Recipe
    validation : array of int, optional
        Rows that are not trained on (they join in step 5).
    codes : array of int, shape (m,), optional
        Classes: validation then counts hits instead of averaging the loss.
    rng : Generator
    """
    began, progress = time.monotonic(), progress or Silent()
    setting, schedule = recipe.setting, recipe.schedule
    held = np.zeros(problem.m, dtype=bool)
    held[[] if validation is None else validation] = True
    rows, validation = np.flatnonzero(~held), np.flatnonzero(held)
    preparation = Preparation(recipe, problem, rng)
    sigma = preparation.sigmas[0]
    progress.note(f"sigma {sigma:.4g}, ridge {preparation.ridge(sigma):.2g}, {preparation.seconds():.2f} s")
    choice, interrupted = _chosen(preparation, rows, codes, progress)
    drawn = preparation.draw(recipe.n_features)
    start = preparation.start(drawn, sigma if choice is None else choice.best.sigma, rows)
    chosen = preparation.candidates(start)[0] if choice is None else choice.best
    problem = problem.with_weights(chosen.lam1, chosen.lam2)

    validate = validation_of(problem, validation, codes)
    n_epochs = 0 if interrupted or (preparation.is_exact and not setting.learned) else schedule.max_epochs
    training = SpectralTraining(
        problem.on_rows(rows), start, schedule, rng, validate, 0 if codes is None else len(validation), progress
    )
    training.run(n_epochs)
    point = training.best
    if preparation.is_exact:
        points = [training.point, point] if training.history else [point]
        problem, point = _refitted(problem, points, rows, validate, preparation.last(chosen.sigma, choice, validate))
    try:
        progress.note(f"weights W are found, {time.monotonic() - began:.2f} s")
    except KeyboardInterrupt:
        interrupted = True
    if interrupted:
        training.status = Status.INTERRUPTED
    solution = _solution(problem, point, training, began)
    return SpectralFit(
        solution,
        tuple(training.history),
        drawn.scaled(chosen.sigma),
        preparation.width,
        choice,
        chosen.sigma,
        problem.penalty.weight,
        problem.lam2,
    )


def _chosen(preparation: Preparation, rows: Any, codes: Any, progress: Silent) -> tuple[Choice | None, bool]:
    """The cross-validation, where there are lists, and whether it was interrupted; then nothing is chosen."""
    if not preparation.has_lists:
        return None, False
    try:
        choice = preparation.cross_validate(rows, codes)
        progress.note(f"{choice.best} of {len(choice.candidates)}, {preparation.seconds():.2f} s")
    except KeyboardInterrupt:
        return None, True
    return choice, False


def continue_training(
    fit: SpectralFit, training: SpectralTraining | None, X: Any, Y: Any, weights: Any, schedule: Schedule, rng: Any
) -> tuple[SpectralFit, SpectralTraining]:
    """One more pass, over new rows only; `training` carries the moments of Adam from call to call."""
    began = time.monotonic()
    old = fit.solution.problem
    problem = replace(old, X=X, Y=Y, weights=weights)
    if training is None:
        training = SpectralTraining(problem, fit.solution.theta.copy(), schedule, rng)
    training.problem, training.schedule = problem, schedule
    training.run(1)
    solution = _solution(problem, training.best, training, began)
    epochs = (*fit.epochs, *training.history[-1:])
    return replace(fit, solution=solution, epochs=epochs), training


def _refitted(
    problem: SpectralLearning,
    points: list[SpectralPoint],
    rows: Any,
    validate: Callable[..., float] | None,
    last: LastWeights,
) -> tuple[SpectralLearning, SpectralPoint]:
    """The exact W for learned frequencies, from all rows.

    Validation chooses between the frequencies of `points`, each with the W that is exact for it, and the weight where
    `last` leaves it open. Scores of the W that was trained on the way say little about that.
    """
    best, weight = points[0], last.weights[0]
    if validate is not None and (len(points) > 1 or len(last.weights) > 1):
        part, top = problem.on_rows(rows), -math.inf
        for point in points:
            path = exact_points(part, point.map, Moments.of(point.map, part), last)
            for candidate, (_, solved) in zip(last.weights, path, strict=True):
                score = validate(solved)
                if score > top:
                    top, best, weight = score, point, candidate
    if not problem.learned:  # the optimum of a convex problem is not to be missed by the rounding of float32
        problem, best = problem.doubled(), best.doubled()
    moments = Moments.of(best.map, problem)
    [(lam1, point)] = exact_points(problem, best.map, moments, replace(last, weights=(weight,)))
    problem = problem.with_weights(lam1, problem.lam2)
    if last.are_ridges and not isinstance(problem.penalty, FrobeniusNorm):  # the ridge was a stand-in
        point = solve_inner(problem, best.map, start=point, moments=moments, max_iter=300).point
    return problem, point


def _solution(problem: SpectralLearning, point: SpectralPoint, training: SpectralTraining, began: float) -> Solution:
    certificate = problem.certificate(point)
    status = training.status
    if isinstance(certificate, DualityGap) and status is not Status.INTERRUPTED and certificate.holds(OPTIMAL):
        status = Status.OPTIMAL
    if status is Status.INTERRUPTED:
        warnings.warn(
            f"learning was interrupted ({status.name}); the best weights so far were kept, {certificate}.",
            ConvexKernelsWarning,
            stacklevel=4,
        )
    history = tuple(Record(int(e.epoch), e.objective, -math.inf, e.seconds) for e in training.history)
    seconds = time.monotonic() - began
    return Solution(problem, point, certificate, status, training.n_steps, seconds, history, "adam")
