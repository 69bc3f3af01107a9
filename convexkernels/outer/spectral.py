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
from convexkernels.outer.spectral_cross_validation import (
    Candidate,
    Choice,
    Fold,
    LastWeights,
    choose_candidate,
    exact_points,
)
from convexkernels.outer.spectral_features import SpectralMap
from convexkernels.outer.spectral_inner import Moments, solve_inner
from convexkernels.outer.spectral_learning import SETTINGS, Setting, SpectralLearning, SpectralPoint
from convexkernels.outer.spectral_losses import ScoreLoss, SquaredLoss
from convexkernels.outer.spectral_penalties import FrobeniusNorm
from convexkernels.outer.spectral_selection import Width, choose_width, matched_trace_weight
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
# Cross-validation compares weights, not machines: so many rows and features, and half of the epochs, are enough to tell
# them apart (features have the factor 1 / sqrt(D), with which the weights do not depend on D).
CV_ROWS = 3000
CV_FEATURES = 1000
CV_EPOCHS = 0.5
# Of a list of sigmas those with the least closed-form risks are trained with: the cheapest rung of the halving.
SHORTLIST = 3
# A ridge for a sigma that was given; there is then no closed-form choice.
PLAIN_RIDGE = 1e-5
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
        Whether W is solved exactly at the end, for squared loss. Training then only finds the frequencies.
    cv : int
        Folds behind the choice from lists.
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
    choice : Choice or None
        The cross-validation, where there was one.
    sigma, lam1, lam2 : float
        What was used.
    """

    solution: OuterSolution
    epochs: tuple[Epoch, ...]
    initial: SpectralMap
    width: Width | None
    choice: Choice | None
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

    1. sigma, or the most promising of a list, and a ridge from closed-form leave-one-out risks on random features;
    2. W exactly, by ridge regression, for the frequencies that were drawn: the warm start;
    3. sigma, lam1 and lam2, where there is a choice, by cross-validation with successive halving from those starts;
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
    held = np.zeros(X.shape[0], dtype=bool)
    held[[] if validation is None else validation] = True
    rows, validation = np.flatnonzero(~held), np.flatnonzero(held)
    problem = SpectralLearning.stated(X, Y, loss, setting, lam1=0.0, lam2=0.0, backend=backend)
    search = _Search(recipe, problem, width, rng)
    progress.note(f"sigma {search.sigmas[0]:.4g}, ridge {search.ridge(search.sigmas[0]):.2g}, {search.seconds():.2f} s")
    choice = search.cross_validate(rows, codes) if search.has_lists else None
    if choice is not None:
        progress.note(f"{choice.best} of {len(choice.candidates)}, {search.seconds():.2f} s")
    drawn = search.draw(recipe.n_features)
    start = search.start(drawn, search.sigmas[0] if choice is None else choice.best.sigma, rows)
    chosen = search.candidates(start)[0] if choice is None else choice.best
    problem = problem.with_weights(chosen.lam1, chosen.lam2)

    validate = _validation(problem, validation, codes)
    n_epochs = 0 if search.is_exact and not setting.learned else schedule.max_epochs
    training = SpectralTraining(
        problem.on_rows(rows), start, schedule, rng, validate, 0 if codes is None else len(validation), progress
    )
    initial = drawn.scaled(chosen.sigma)
    first = problem.on_rows(rows).certificate(training.point)
    training.run(n_epochs)
    point = training.best
    if search.is_exact:
        points = [training.point, point] if training.history else [point]
        problem, point = _polished(problem, points, rows, validate, search.last(chosen.sigma, choice, validate))
    solution = _solution(problem, point, training, first.residual, began)
    return SpectralFit(
        solution,
        tuple(training.history),
        initial,
        width,
        choice,
        chosen.sigma,
        problem.penalty.weight,
        problem.lam2,
    )


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


class _Search:
    """What is open before training, in the order in which it is settled.

    For squared loss with an exact last solve, lam1 is the weight of that solve; training finds the frequencies with a
    weight of its own, at least as strong, and all lam1 of a list share one run.
    """

    def __init__(self, recipe: Recipe, problem: SpectralLearning, width: Width | None, rng: Any) -> None:
        self.recipe, self.problem, self.width, self.rng = recipe, problem, width, rng
        self.is_exact = isinstance(problem.loss, SquaredLoss) and recipe.polish
        self._began = time.monotonic()
        if width is None:
            self.sigmas: tuple[float, ...] = (float(recipe.sigma),)
        else:
            self.sigmas = (width.sigma,) if recipe.sigma is None else width.shortlist(SHORTLIST)
        twos = np.size(recipe.lam2) if recipe.setting.feature_norm else 1
        self.has_lists = max(len(self.sigmas), np.size(recipe.lam1), twos) > 1

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def ridge(self, sigma: float) -> float:
        """The weight of ``|W|_F^2`` that is right for frequencies as drawn."""
        return PLAIN_RIDGE if self.width is None else self.width.ridge(sigma)

    def training_ridge(self, sigma: float) -> float:
        """The weight of ``|W|_F^2`` that training starts from."""
        name = self.problem.loss.name
        if not self.problem.learned:
            return self.ridge(sigma) * min(1.0, LAM_SHARE[name])
        return min(LAM_SHARE[name] * self.ridge(sigma), LARGEST_LAM)

    def draw(self, n_features: int) -> SpectralMap:
        """Frequencies from N(0, 1)."""
        recipe, backend = self.recipe, self.problem.backend
        return SpectralMap.draw(
            self.problem.X.shape[1],
            n_features,
            stationary=recipe.setting.stationary,
            feature_map=recipe.feature_map,
            rng=self.rng,
            backend=backend,
        )

    def start(self, drawn: SpectralMap, sigma: float, rows: Any) -> SpectralPoint:
        """W by ridge regression on (some of) the rows, for the frequencies as drawn."""
        spectral_map = drawn.scaled(sigma)
        some = rows if len(rows) <= WARM_ROWS else self.rng.choice(rows, WARM_ROWS, replace=False)
        penalty = FrobeniusNorm(self.training_ridge(sigma))
        found = solve_inner(replace(self.problem, loss=SquaredLoss(), penalty=penalty).on_rows(some), spectral_map)
        stretch = STRETCH[self.problem.loss.name]
        return SpectralPoint(spectral_map, found.point.W * stretch, found.point.intercept * stretch).copy()

    def candidates(self, *starts: SpectralPoint) -> list[Candidate]:
        """All triples, one start per sigma; lam1 is the weight that is trained with."""
        recipe, setting = self.recipe, self.recipe.setting
        twos = [0.0]
        if setting.feature_norm:
            given = DEFAULT_LAM2 / self.problem.m if recipe.lam2 is None else recipe.lam2
            twos = [float(value) for value in np.atleast_1d(given)]
        found = []
        for sigma, start in zip(self.sigmas, starts, strict=False):
            weight = self.training_ridge(sigma)
            if setting.trace_norm:
                weight = matched_trace_weight(weight, start.W / STRETCH[self.problem.loss.name])
            ones = [weight] if recipe.lam1 is None else [float(value) for value in np.atleast_1d(recipe.lam1)]
            if self.is_exact:
                ones = [max(weight, min(ones))]
            found += [Candidate(sigma, one, two) for one in ones for two in twos]
        return found

    def last_weights(self, sigma: float) -> LastWeights:
        """What the last solve chooses its weight from."""
        if self.recipe.lam1 is not None:
            return LastWeights(tuple(sorted((float(v) for v in np.atleast_1d(self.recipe.lam1)), reverse=True)), False)
        return LastWeights(tuple(self.ridge(sigma) * share for share in POLISH_SHARES), True)

    def last(self, sigma: float, choice: Choice | None, validate: Any) -> LastWeights:
        """The same, after cross-validation; where nothing has chosen, the ridge for frequencies as drawn."""
        weights = self.last_weights(sigma)
        if len(weights.weights) > 1 and (choice is not None and (not weights.are_ridges or validate is None)):
            assert choice.last is not None
            return replace(weights, weights=(choice.last,))
        if weights.are_ridges and validate is None:
            return replace(weights, weights=(self.ridge(sigma),))
        return weights

    def cross_validate(self, rows: Any, codes: Any) -> Choice:
        """Settle sigma, lam1 and lam2."""
        parts = np.array_split(self.rng.permutation(rows)[:CV_ROWS], self.recipe.cv)
        drawn = self.draw(min(CV_FEATURES, self.recipe.n_features))
        folds = []
        for part in parts:
            train = np.setdiff1d(np.concatenate(parts), part)
            validate = _validation(self.problem, part, codes)
            assert validate is not None
            starts = {sigma: self.start(drawn, sigma, train) for sigma in self.sigmas}
            folds.append(Fold(self.problem.on_rows(train), starts, validate, self.problem.m / len(train)))
        candidates = self.candidates(*folds[0].starts.values())
        schedule = self.recipe.schedule
        schedule = replace(
            schedule,
            max_epochs=math.ceil(CV_EPOCHS * schedule.max_epochs),
            batch_size=min(schedule.batch_size, folds[0].problem.m),
        )
        return choose_candidate(folds, candidates, schedule, self.coarse if self.is_exact else None, rng=self.rng)

    def coarse(self, sigma: float) -> LastWeights:
        """Every second ridge of the path: five folds of it have to be solved."""
        path = self.last_weights(sigma)
        return replace(path, weights=path.weights[::2]) if path.are_ridges else path


def _validation(problem: SpectralLearning, rows: Any, codes: Any) -> Callable[..., float] | None:
    """How a point is scored on rows that are not trained on."""
    if not len(rows):
        return None
    held = problem.on_rows(rows)
    return negative_loss(held) if codes is None else accuracy(held, codes[rows])


def _polished(
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
            path = exact_points(part, point.map, Moments.of(point.map, part.X, part.Y), last)
            for candidate, (_, solved) in zip(last.weights, path, strict=True):
                score = validate(solved)
                if score > top:
                    top, best, weight = score, point, candidate
    moments = Moments.of(best.map, problem.X, problem.Y)
    [(lam1, point)] = exact_points(problem, best.map, moments, replace(last, weights=(weight,)))
    problem = problem.with_weights(lam1, problem.lam2)
    return problem, solve_inner(problem, best.map, start=point, moments=moments, max_iter=300).point


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
