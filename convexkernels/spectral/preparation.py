"""What is settled before a spectral kernel is trained: sigma, regularization weights, the start."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from convexkernels.spectral.cross_validation import (
    Candidate,
    Choice,
    Fold,
    LastWeights,
    choose_candidate,
)
from convexkernels.spectral.features import SpectralMap
from convexkernels.spectral.inner import solve_inner
from convexkernels.spectral.learning import SETTINGS, Setting, SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SquaredLoss
from convexkernels.spectral.penalties import FrobeniusNorm
from convexkernels.spectral.selection import Width, choose_width, matched_trace_weight
from convexkernels.spectral.training import Schedule, accuracy, negative_loss

__all__ = ["Preparation", "Recipe", "validation_of"]

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
# Of the time that is left, where it is limited.
CV_TIME = 0.5
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


class Preparation:
    """What is open before training, in the order in which it is settled.

    For squared loss with an exact last solve, lam1 is the weight of that solve; training finds the frequencies with a
    weight of its own, not less than the least lam1, and all lam1 of a list share one run.
    """

    def __init__(self, recipe: Recipe, problem: SpectralLearning, rng: Any) -> None:
        self._began = time.monotonic()
        self.recipe, self.problem, self.rng = recipe, problem, rng
        self.width = width = _width(problem, recipe, rng)
        self.is_exact = isinstance(problem.loss, SquaredLoss) and recipe.polish
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
            given = DEFAULT_LAM2 / self.problem.total if recipe.lam2 is None else recipe.lam2
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
            validate = validation_of(self.problem, part, codes)
            assert validate is not None
            starts = {sigma: self.start(drawn, sigma, train) for sigma in self.sigmas}
            part_problem = self.problem.on_rows(train)
            folds.append(Fold(part_problem, starts, validate, self.problem.total / part_problem.total))
        candidates = self.candidates(*folds[0].starts.values())
        schedule, now = self.recipe.schedule, time.monotonic()
        schedule = replace(
            schedule,
            deadline=now + CV_TIME * (schedule.deadline - now),
            max_epochs=math.ceil(CV_EPOCHS * schedule.max_epochs),
            batch_size=min(schedule.batch_size, folds[0].problem.m),
        )
        return choose_candidate(folds, candidates, schedule, self.coarse if self.is_exact else None, rng=self.rng)

    def coarse(self, sigma: float) -> LastWeights:
        """Every second ridge of the path: five folds of it have to be solved."""
        path = self.last_weights(sigma)
        return replace(path, weights=path.weights[::2]) if path.are_ridges else path


def validation_of(problem: SpectralLearning, rows: Any, codes: Any) -> Callable[..., float] | None:
    """How a point is scored on rows that are not trained on."""
    if not len(rows):
        return None
    held = problem.on_rows(rows)
    return negative_loss(held) if codes is None else accuracy(held, codes[rows])


def _width(problem: SpectralLearning, recipe: Recipe, rng: Any) -> Width | None:
    """Choose sigma where there is a choice."""
    if recipe.sigma is not None and np.ndim(recipe.sigma) == 0:
        return None
    options: dict[str, Any] = {}
    if not recipe.setting.learned:
        # Frequencies that stay as they are deserve a closer look at their width.
        options = {"n_rows": 3000, "n_frequencies": 768}
    options["n_frequencies"] = min(options.get("n_frequencies", 384), recipe.n_features)
    return choose_width(
        problem.X,
        problem.Y,
        problem.weights,
        stationary=recipe.setting.stationary,
        feature_map=recipe.feature_map,
        rng=rng,
        sigmas=recipe.sigma,
        **options,
    )
