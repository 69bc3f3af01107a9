"""What is settled before a spectral kernel is trained: sigma, regularization weights, the start."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

from convexkernels.backend import to_numpy
from convexkernels.clock import Clock
from convexkernels.criteria.folds import random_folds
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.stacked_frequencies import draw_layers
from convexkernels.spectral.cross_validation import Candidate, Choice, FinalWeights, Fold, choose_candidate
from convexkernels.spectral.inner import Moments
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SquaredLoss
from convexkernels.spectral.options import Hyperparameters
from convexkernels.spectral.selection import Width, choose_width, matched_trace_weight
from convexkernels.spectral.training import validation_of

# The warm start reads at most so many rows: it need not be the last word on W.
WARM_ROWS = 20_000
# What a loss of margins or probabilities asks of scores that were fitted to 0 and 1.
SCORE_SCALE = {"least_squares": 1.0, "hinge": 2.0, "logistic": 4.0}
# The ridge that is right for frequencies as drawn, times this, is what training starts from and is weighed by. For
# squared loss it is a much stronger one: W stays small, the first steps do no damage, and it is the frequencies that
# have to learn (on 8 features of which 7 say nothing, R^2 rises from 0.88 to 0.99); the final solve takes it back.
LAM_SHARE = {"least_squares": 300.0, "hinge": 0.1, "logistic": 0.1}
# More than this would keep W, and with it the gradient of the frequencies, near 0.
LARGEST_LAM = 3e-3
# Cross-validation compares weights, not functions: so many rows and features, and half of the epochs, are enough to
# tell them apart (features have the factor 1 / sqrt(D), with which the weights do not depend on D).
CV_ROWS = 3000
CV_FEATURES = 1000
CV_EPOCHS = 0.5
# Of the time that is left, where it is limited.
CV_TIME = 0.5
# Of a list of sigmas those with the least closed-form risks are trained with: the cheapest rung of the halving.
SHORTLIST = 3
# A ridge for a sigma that was given; there is then no closed-form choice.
PLAIN_RIDGE = 1e-5
# Multiples of it that the final solve may choose from. A ridge of least leave-one-out risk is multiplied by 1 or more:
# it has the errors of all rows behind it, a smaller one only the rows held out, a tenth of them. On few rows that was
# chance: of twelve divisions of 188 rows of a table the worst R^2 was -1064, and without smaller ridges it is 0.72.
RIDGE_FACTORS = tuple(10.0 ** np.arange(-2.0, 3.5, 0.5))
DEFAULT_LAM2 = 1e-3
# What follows the choice of a width, in choices of one, up to so many rows, and in proportion to more of them: time is
# left for it before other widths are looked at.
FOLLOWING, FOLLOWING_ROWS = 3.0, 5000
# Weights of features that were found on the same rows, and frequencies that were trained, have to lower the risk to
# this part of it. (60 divisions of the training rows of tables: rows held out found trained frequencies better in 26,
# and other rows did in 15 of these. Where they gained a tenth, seven times, R^2 rose by .035 in the mean, else it fell
# by .004.)
CLEARLY = 0.9


class Preparation:
    """What is open before training, in the order in which it is settled.

    For squared loss, lam1 is the weight of the exact final solve; training finds the frequencies with a weight of its
    own, not less than the least lam1, and all lam1 of a list share one run.
    """

    def __init__(self, options: Hyperparameters, problem: SpectralLearning, rng: Any, clock: Clock) -> None:
        self.options, self.problem, self.rng, self.clock = options, problem, rng, clock
        self.is_exact = isinstance(problem.loss, SquaredLoss)
        self.factors: Any = None  # and what steps are relative to
        self.width = width = self._width()
        if width is None:
            self.sigmas: tuple[float, ...] = (float(options.sigma),)
        else:
            self.sigmas = (width.sigma,) if options.sigma is None else width.shortlist(SHORTLIST)
        twos = np.size(options.lam2) if options.setting.feature_norm else 1
        self.has_lists = max(len(self.sigmas), np.size(options.lam1), twos) > 1

    def _width(self) -> Width | None:
        """Choose sigma where there is a choice, and whether features are weighed, by risks on the same draws."""
        options = self.options
        if options.sigma is not None and np.ndim(options.sigma) == 0:
            return None
        state, began = copy.deepcopy(self.rng), self.clock.seconds
        width = self._width_with(None, self.rng)
        needed = (1.0 + self._following) * (self.clock.seconds - began)
        for find in options.factors:
            if self.clock.left is not None and self.clock.left < needed:
                self.clock.cut("the choice of the width")
                break
            if (found := find()) is not None and not self.clock.is_over:
                other = self._width_with(found[0], copy.deepcopy(state))
                if other.risks.min() < CLEARLY * width.risks.min():
                    self.factors, width = found, other
        return width

    @property
    def _following(self) -> float:
        """What follows the choice of a width, in choices of one."""
        return FOLLOWING * max(1.0, self.problem.m / FOLLOWING_ROWS)

    def _width_with(self, factors: Any, rng: Any) -> Width:
        options, problem = self.options, self.problem
        # Frequencies that stay as they are deserve a closer look at their width.
        n_rows, n_components = (1500, 384) if options.setting.learned else (3000, 768)
        asked: dict[str, Any] = {
            "stationary": options.setting.stationary,
            "feature_map": options.feature_map,
            "measure": options.setting.measure,
            "inner": options.setting.inner,
            "sigmas": options.sigma,
            "n_rows": n_rows,
            "n_components": min(n_components, options.n_components),
            "factors": factors,
        }

        def choice() -> dict[str, Any]:
            clock = self.clock.part(1.0 / (1.0 + self._following))
            width = choose_width(problem.X, problem.Y, problem.weights, rng=rng, clock=clock, **asked)
            if clock.interrupted:
                self.clock.interrupt()
            return vars(width) | {"rng": json.dumps(rng.bit_generator.state)}

        table = map(to_numpy, (problem.X, problem.Y, () if problem.weights is None else problem.weights))
        found = self.clock.once(choice, "width", asked, *table, json.dumps(rng.bit_generator.state))
        rng.bit_generator.state = json.loads(str(found.pop("rng")))
        numbers: dict[str, Any] = {name: value if value.ndim else float(value) for name, value in found.items()}
        return Width(**numbers)

    def ridge(self, sigma: float) -> float:
        """The weight of ``|W|_F^2`` that is right for frequencies as drawn."""
        return PLAIN_RIDGE if self.width is None else self.width.ridge(sigma)

    def training_ridge(self, sigma: float) -> float:
        """The weight of ``|W|_F^2`` that training starts from."""
        share = LAM_SHARE[self.problem.loss.name]
        if not self.problem.learned:
            return self.ridge(sigma) * min(1.0, share)
        return min(share * self.ridge(sigma), LARGEST_LAM)

    def draw(self, n_components: int) -> SpectralMap:
        """Frequencies of scale 1, times the factors of the features where these are weighed."""
        drawn = draw_layers(
            self.problem.X.shape[1],
            (*self.options.setting.inner, n_components),
            stationary=self.options.setting.stationary,
            feature_map=self.options.feature_map,
            rng=self.rng,
            backend=self.problem.backend,
            measure=self.options.setting.measure,
        )
        return drawn if self.factors is None else drawn.weighed(*self.factors)

    def moments(self, drawn: SpectralMap, sigma: float, rows: Any) -> Moments:
        """What a start needs to know of (some of) the rows, for the frequencies as drawn."""
        some = rows if len(rows) <= WARM_ROWS else self.rng.choice(rows, WARM_ROWS, replace=False)
        return Moments.of(drawn.scaled(sigma), self.problem.on_rows(some))

    def start(self, moments: Moments, sigma: float) -> SpectralPoint:
        """W by ridge regression, for the frequencies as drawn."""
        found = moments.point(moments.ridge(self.training_ridge(sigma)))
        scale = SCORE_SCALE[self.problem.loss.name]
        return SpectralPoint(found.map, found.W * scale, found.intercept * scale).copy()

    def candidates(self, *starts: SpectralPoint) -> list[Candidate]:
        """All triples, one start per sigma; lam1 is the weight that is trained with."""
        options, twos = self.options, [0.0]
        if options.setting.feature_norm:
            given = DEFAULT_LAM2 / self.problem.total if options.lam2 is None else options.lam2
            twos = [float(value) for value in np.atleast_1d(given)]
        found = []
        for sigma, start in zip(self.sigmas, starts, strict=False):
            weight = self.training_ridge(sigma)
            if options.setting.trace_norm:
                weight = matched_trace_weight(weight, start.W / SCORE_SCALE[self.problem.loss.name])
            ones = [weight] if options.lam1 is None else [float(value) for value in np.atleast_1d(options.lam1)]
            if self.is_exact:
                ones = [max(weight, min(ones))]
            found += [Candidate(sigma, one, two) for one in ones for two in twos]
        return found

    def final_weights(self, sigma: float) -> FinalWeights:
        """What the final solve chooses its weight from."""
        if self.options.lam1 is not None:
            return FinalWeights(tuple(sorted(map(float, np.atleast_1d(self.options.lam1)), reverse=True)), False)
        rise = self.width is not None
        factors = tuple(factor for factor in RIDGE_FACTORS if factor >= 1.0 or not rise)
        return FinalWeights(factors, True, rise).times(self.ridge(sigma))

    def chosen_weights(self, sigma: float, choice: Choice | None, can_validate: bool) -> FinalWeights:
        """The same, after cross-validation; where nothing has chosen or may, the ridge for frequencies as drawn."""
        weights = self.final_weights(sigma)
        if choice is not None and choice.last is not None and not (weights.are_ridges and can_validate):
            return replace(weights, weights=(choice.last,))
        if weights.are_ridges and not can_validate:
            return replace(weights, weights=(self.ridge(sigma),))
        return weights

    def coarse_weights(self, sigma: float) -> FinalWeights:
        """Every second ridge of the path: five folds of it have to be solved."""
        path = self.final_weights(sigma)
        return replace(path, weights=path.weights[::2]) if path.are_ridges else path

    def cross_validate(self, rows: Any, codes: Any) -> Choice | None:
        """Settle sigma, lam1 and lam2; None where an interrupt came before anything was known."""
        options = replace(self.options, factors=())
        piece = self.clock.piece("choice", options, self.sigmas, json.dumps(self.rng.bit_generator.state))
        if known := piece.found:
            self.rng.bit_generator.state = json.loads(str(known.pop("rng")))
            return Choice.of(**known)
        left, training = self.clock.left, self.options.training
        clock = Clock(None if left is None else CV_TIME * left)
        try:
            folds = self._folds(rows, codes)
        except KeyboardInterrupt:
            self.clock.interrupt()
            return None
        training = replace(
            training,
            max_epochs=math.ceil(CV_EPOCHS * training.max_epochs),
            batch_size=min(training.batch_size or folds[0].problem.m, folds[0].problem.m),
        )
        candidates, last = self.candidates(*folds[0].starts.values()), self.coarse_weights if self.is_exact else None
        choice = choose_candidate(folds, candidates, training, last, rng=self.rng, clock=clock)
        if clock.interrupted:
            self.clock.interrupt()
        elif clock.is_over:
            self.clock.cut("the choice of sigma, lam1 and lam2")
        else:
            piece.keep(rng=json.dumps(self.rng.bit_generator.state), **choice.numbers())
        return choice

    def _folds(self, rows: Any, codes: Any) -> list[Fold]:
        """Folds with the starts of all sigmas; fewer of them where the time is up."""
        folds = random_folds(rows, self.options.training.folds, self.rng, CV_ROWS)
        drawn = self.draw(min(CV_FEATURES, self.options.n_components))
        found: list[Fold] = []
        for train, part in folds:
            if found and self.clock.is_over:
                break
            validate, problem = validation_of(self.problem, part, codes), self.problem.on_rows(train)
            assert validate is not None
            starts = {sigma: self.start(self.moments(drawn, sigma, train), sigma) for sigma in self.sigmas}
            found.append(Fold(problem, starts, validate, self.problem.total / problem.total))
        return found
