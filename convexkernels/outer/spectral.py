"""Automated spectral kernel learning from a table to an answer: choices, warm start, training, polish, certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from convexkernels.outer.solution import OuterSolution
from convexkernels.outer.spectral_arrays import Backend
from convexkernels.outer.spectral_features import SpectralMap
from convexkernels.outer.spectral_inner import Moments, solve_inner
from convexkernels.outer.spectral_learning import SETTINGS, Setting, SpectralLearning, SpectralPoint
from convexkernels.outer.spectral_losses import ScoreLoss, SquaredLoss
from convexkernels.outer.spectral_penalties import FrobeniusNorm
from convexkernels.outer.spectral_selection import Width, choose_weights, choose_width, matched_trace_weight
from convexkernels.outer.spectral_training import Epoch, Schedule, SpectralTraining, accuracy, negative_loss
from convexkernels.progress import Silent
from convexkernels.solution import Record

__all__ = ["Recipe", "SpectralFit", "continue_training", "learn_spectral"]

# The warm start reads at most so many rows: it need not be the last word on W.
WARM_ROWS = 20_000
# What a loss of margins or probabilities asks of scores that were fitted to 0 and 1.
STRETCH = {"squared": 1.0, "hinge": 2.0, "logistic": 4.0}
# The ridge that is right for frequencies as drawn, times this, is what training starts from and is weighed by. For
# squared loss it is a much stronger one: W stays small, the first steps do no damage, and it is the frequencies that
# have to learn (on 8 features of which 7 say nothing, R^2 rises from 0.88 to 0.99); the last solve takes it back.
LAM_SHARE = {"squared": 300.0, "hinge": 0.1, "logistic": 0.1}
# More than this would keep W, and with it the gradient of the frequencies, near 0.
LARGEST_LAM = 3e-3
# Rows behind the choice of lam1 and lam2 from lists.
CV_ROWS = 5000
# Multiples of it that the final solve may choose from.
POLISH_SHARES = tuple(10.0 ** np.arange(-2.0, 3.5, 0.5))
DEFAULT_LAM2 = 1e-3


@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything that decides how a spectral kernel is learned, validated by the parts that use it.

    Attributes
    ----------
    setting : Setting
    n_features : int
        D.
    feature_map : {"phi", "psi", "printed"}
    sigma : float, sequence of float or None
    lam1, lam2 : float, sequence of float or None
    schedule : Schedule
    polish : bool
        Whether W is solved exactly at the end, for squared loss.
    cv : int
        Folds behind the choice of lam1 and lam2.
    """

    setting: Setting = field(default_factory=lambda: SETTINGS["ASKL"])
    n_features: int = 2000
    feature_map: str = "phi"
    sigma: Any = None
    lam1: Any = None
    lam2: Any = None
    schedule: Schedule = field(default_factory=Schedule)
    polish: bool = True
    cv: int = 5


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What was learned and how.

    Attributes
    ----------
    solution : OuterSolution
    epochs : tuple of Epoch
    initial : SpectralMap
        Frequencies before training.
    width : Width or None
        The choice of sigma, where there was one.
    scores : ndarray or None
        Validation scores of the pairs (lam1, lam2), where there was a choice.
    sigma, lam1, lam2 : float
        What was used.
    """

    solution: OuterSolution
    epochs: tuple[Epoch, ...]
    initial: SpectralMap
    width: Width | None
    scores: Any
    sigma: float
    lam1: float
    lam2: float


def learn_spectral(
    X: Any,
    Y: Any,
    loss: ScoreLoss,
    recipe: Recipe,
    *,
    validation: Any = None,
    codes: Any = None,
    rng: Any,
    backend: Backend,
    progress: Silent | None = None,
) -> SpectralFit:
    """Learn frequencies and weights.

    1. sigma and a ridge from closed-form leave-one-out risks on random features;
    2. W exactly, by ridge regression, for the frequencies that were drawn: the warm start;
    3. lam1 and lam2, where there is a choice, by successive halving from that start;
    4. mini-batch training of everything, the best validation score being kept;
    5. for squared loss, W exactly again, on all rows.

    Parameters
    ----------
    X, Y : arrays of `backend`, shapes (m, n) and (m, K)
    loss : ScoreLoss
    recipe : Recipe
    validation : array of int, optional
        Rows that are not trained on (they join in step 5).
    codes : array of int, shape (m,), optional
        Classes: validation then counts hits instead of averaging the loss.
    rng : Generator
    """
    began, progress = time.monotonic(), progress or Silent()
    setting, schedule = recipe.setting, recipe.schedule
    width = _width(X, Y, recipe, rng)
    sigma, ridge = (float(recipe.sigma), 1e-5) if width is None else (width.sigma, width.lam)
    initial = SpectralMap.draw(
        X.shape[1],
        recipe.n_features,
        stationary=setting.stationary,
        feature_map=recipe.feature_map,
        rng=rng,
        backend=backend,
    ).scaled(sigma)
    m = X.shape[0]
    held = np.zeros(m, dtype=bool)
    held[[] if validation is None else validation] = True
    rows, validation = np.flatnonzero(~held), np.flatnonzero(held)
    problem = SpectralLearning.stated(X, Y, loss, setting, lam1=0.0, lam2=0.0, backend=backend)
    progress.note(f"sigma {sigma:.4g}, ridge {ridge:.2g}, {time.monotonic() - began:.2f} s")

    start = _warm_start(problem, initial, rows, ridge, rng)
    pairs = _pairs(recipe, _training_lam(problem, ridge), start, problem)
    scores = None
    if len(pairs) > 1:
        folds = _folds(problem, initial, rows, codes, ridge, recipe.cv, rng)
        (lam1, lam2), scores = choose_weights(folds, pairs, schedule, rng=rng)
        progress.note(f"lam1 {lam1:.3g}, lam2 {lam2:.3g} of {len(pairs)} pairs")
    else:
        lam1, lam2 = pairs[0]
    problem = problem.with_weights(lam1, lam2 if setting.feature_norm else 0.0)

    validate = _validation(problem, validation, codes)
    is_exact = isinstance(loss, SquaredLoss) and recipe.polish
    n_epochs = 0 if is_exact and not setting.learned else schedule.max_epochs
    training = SpectralTraining(
        problem.on_rows(rows), start, schedule, rng, validate, 0 if codes is None else len(validation), progress
    )
    first = problem.on_rows(rows).certificate(training.point)
    training.run(n_epochs)
    point = training.best
    if is_exact:
        points = [training.point, point] if training.history else [point]
        problem, point = _polished(problem, points, rows, validate, ridge if recipe.lam1 is None else None)
        lam1 = problem.penalty.weight
    solution = _solution(problem, point, training, first.residual, began)
    return SpectralFit(solution, tuple(training.history), initial, width, scores, sigma, lam1, lam2)


def continue_training(
    fit: SpectralFit, training: SpectralTraining | None, X: Any, Y: Any, schedule: Schedule, rng: Any
) -> tuple[SpectralFit, SpectralTraining]:
    """One more pass, over new rows only; `training` carries the moments of Adam from call to call."""
    began = time.monotonic()
    old = fit.solution.problem
    problem = replace(old, X=X, Y=Y)
    if training is None:
        training = SpectralTraining(problem, fit.solution.point.copy(), schedule, rng)
    training.problem, training.schedule = problem, schedule
    training.run(1)
    solution = _solution(problem, training.best, training, 1.0, began)
    epochs = (*fit.epochs, *training.history[-1:])
    return replace(fit, solution=solution, epochs=epochs), training


def _width(X: Any, Y: Any, recipe: Recipe, rng: Any) -> Width | None:
    """Choose sigma where there is a choice."""
    if recipe.sigma is not None and np.ndim(recipe.sigma) == 0:
        return None
    options: dict[str, Any] = {}
    if not recipe.setting.learned:
        # Frequencies that stay as they are deserve a closer look at their width.
        options = {"n_rows": 3000, "n_frequencies": 768}
    options["n_frequencies"] = min(options.get("n_frequencies", 384), recipe.n_features)
    return choose_width(
        X,
        Y,
        stationary=recipe.setting.stationary,
        feature_map=recipe.feature_map,
        rng=rng,
        sigmas=recipe.sigma,
        **options,
    )


def _training_lam(problem: SpectralLearning, ridge: float) -> float:
    """The weight of ``|W|_F^2`` that training starts from."""
    name = problem.loss.name
    if not problem.learned:
        return ridge * min(1.0, LAM_SHARE[name])
    return min(LAM_SHARE[name] * ridge, LARGEST_LAM)


def _warm_start(
    problem: SpectralLearning, spectral_map: SpectralMap, rows: Any, ridge: float, rng: Any
) -> SpectralPoint:
    """W by ridge regression on (some of) the rows."""
    some = rows if len(rows) <= WARM_ROWS else rng.choice(rows, WARM_ROWS, replace=False)
    squared = replace(problem, loss=SquaredLoss(), penalty=FrobeniusNorm(_training_lam(problem, ridge))).on_rows(some)
    found = solve_inner(squared, spectral_map).point
    stretch = STRETCH[problem.loss.name]
    return SpectralPoint(spectral_map, found.W * stretch, found.intercept * stretch).copy()


def _pairs(recipe: Recipe, lam: float, start: SpectralPoint, problem: SpectralLearning) -> list[tuple[float, float]]:
    """All pairs (lam1, lam2) to choose from; one where nothing is left open."""
    if recipe.lam1 is None:
        trace = recipe.setting.trace_norm
        ones = [matched_trace_weight(lam, start.W / STRETCH[problem.loss.name]) if trace else lam]
    else:
        ones = [float(value) for value in np.atleast_1d(recipe.lam1)]
    twos = [DEFAULT_LAM2 / problem.m] if recipe.lam2 is None else [float(value) for value in np.atleast_1d(recipe.lam2)]
    if not recipe.setting.feature_norm:
        twos = twos[:1]
    return [(one, two) for one in ones for two in twos]


def _validation(problem: SpectralLearning, rows: Any, codes: Any) -> Callable[..., float] | None:
    """How a point is scored on rows that are not trained on."""
    if not len(rows):
        return None
    held = problem.on_rows(rows)
    return negative_loss(held) if codes is None else accuracy(held, codes[rows])


def _folds(
    problem: SpectralLearning, initial: SpectralMap, rows: Any, codes: Any, ridge: float, cv: int, rng: Any
) -> list[tuple[SpectralLearning, SpectralPoint, Callable[..., float]]]:
    parts = np.array_split(rng.permutation(rows)[:CV_ROWS], cv)
    folds = []
    for part in parts:
        train = np.setdiff1d(np.concatenate(parts), part)
        validate = _validation(problem, part, codes)
        assert validate is not None
        folds.append((problem.on_rows(train), _warm_start(problem, initial, train, ridge, rng), validate))
    return folds


def _polished(
    problem: SpectralLearning,
    points: list[SpectralPoint],
    rows: Any,
    validate: Callable[..., float] | None,
    ridge: float | None,
) -> tuple[SpectralLearning, SpectralPoint]:
    """The exact W for learned frequencies, from all rows.

    Validation chooses between the frequencies of `points`, each with the W that is exact for it, and the weight where
    `ridge` leaves it open. Scores of the W that was trained on the way say little about that.
    """
    penalty, best = problem.penalty, points[0]
    lam = penalty.weight if isinstance(penalty, FrobeniusNorm) else 1e-6
    if validate is not None:
        part, top = problem.on_rows(rows), -math.inf
        for point in points:
            moments = Moments.of(point.map, part.X, part.Y)
            for candidate in [lam] if ridge is None else [ridge * share for share in POLISH_SHARES]:
                W = moments.ridge(candidate)
                score = validate(_typed(point.map, W, moments.intercept(W), problem.backend))
                if score > top:
                    top, best, lam = score, point, candidate
                    pull = matched_trace_weight(candidate, W)
        if ridge is not None:
            penalty = replace(penalty, weight=lam if isinstance(penalty, FrobeniusNorm) else pull)
            problem = replace(problem, penalty=penalty)
    moments = Moments.of(best.map, problem.X, problem.Y)
    W = moments.ridge(lam)
    start = _typed(best.map, W, moments.intercept(W), problem.backend)
    return problem, solve_inner(problem, best.map, start=start, moments=moments, max_iter=300).point


def _typed(spectral_map: SpectralMap, W: Any, c: Any, backend: Backend) -> SpectralPoint:
    return SpectralPoint(spectral_map, backend.xp.astype(W, backend.dtype), backend.xp.astype(c, backend.dtype))


def _solution(
    problem: SpectralLearning, point: SpectralPoint, training: SpectralTraining, scale: float, began: float
) -> OuterSolution:
    certificate = problem.certificate(point, scale=scale)
    history = tuple(Record(int(e.epoch), e.objective, -math.inf, e.seconds) for e in training.history)
    return OuterSolution(
        problem,
        point,
        certificate,
        training.status,
        training.n_steps,
        time.monotonic() - began,
        history,
        np.array([certificate.value]),
        "adam",
    )
