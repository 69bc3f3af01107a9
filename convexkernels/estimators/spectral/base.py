"""What the spectral estimators share: parameters, tables in, features and kernels out."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.backend import backend_for, is_tensor, to_numpy
from convexkernels.cells.metric import learned_metric
from convexkernels.clock import Clock
from convexkernels.criteria.folds import held_out_share
from convexkernels.estimators.base import KernelEstimator, seed_from
from convexkernels.estimators.left_out import LeftOut, left_out_of_features
from convexkernels.estimators.of_tables import of_tables
from convexkernels.estimators.scaling import Scaling, spread_of
from convexkernels.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from convexkernels.estimators.table import TrainingTable, read_points
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.spectral import Spectral
from convexkernels.spectral.fitting import SpectralFit, continue_training, learn_spectral
from convexkernels.spectral.learning import SpectralLearning
from convexkernels.spectral.losses import ScoreLoss
from convexkernels.spectral.options import Hyperparameters, Training, setting_of
from convexkernels.spectral.training import TrainingRun
from convexkernels.validation import check_number, check_weights, check_whole_number

# Steps over rows that come later, against those of the first training.
LATER_PACE = 0.3
# Rows that widths of features are learned on.
METRIC_ROWS = 10_000
# Widths of features that were learned may be wrong: steps of frequencies are at least this part of those of the feature
# that counts most. (Four tables of 300 rows on which widths mislead: R^2 .799, .887, .852 and .854 with steps of the
# widths themselves, .864, .934, .874 and .864 so, and as much with steps of one size. Where they do not, an irrelevant
# feature and two that count less: .987 and .983, .984 and .979, .979 and .966.)
LEAST_STEP = 0.5
# Weights from the reciprocal of this to this have sums and ratios in single precision.
LARGEST = 1e18


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base of the spectral estimators; subclasses encode targets and name the losses."""

    setting: Any = field(default="ASKL", kw_only=False)
    n_components: int = 2000
    feature_map: str = "phi"
    sigma: Any = None
    lam1: Any = None
    lam2: Any = None
    loss: str = "least_squares"
    training: Training | None = None
    random_state: Any = None

    # -- what subclasses say -----------------------------------------------------------------------

    @abstractmethod
    def _score_loss(self) -> ScoreLoss:
        """The loss, or a refusal."""

    @abstractmethod
    def _columns(self, t: Any, targets: Any) -> Any:
        """Targets of the loss, shape (m, K), from encoded ones."""

    def _codes(self, Y: Any) -> Any:
        """Classes as numbers, where all of them are there; None for numbers."""
        return None

    # -- tables ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._score_loss()
        setting_of(self.setting)
        check_whole_number("n_components", self.n_components, low=1)
        for name, value in (("sigma", self.sigma), ("lam1", self.lam1), ("lam2", self.lam2)):
            _check_choices(name, value, open_low=name == "sigma")
        if self.training is not None and not isinstance(self.training, Training):
            raise InvalidInputError(f"training must be a Training or None, got {self.training!r}.")

    @property
    def _options(self) -> Training:
        return Training() if self.training is None else self.training

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        """Validated rows; tensors say where to compute."""
        self._backend = backend_for({"X": X, "y": y}, dtype=self._options.dtype, device=self._options.device)
        return super()._read(*(_in_memory(part) for part in (X, y, sample_weight)))

    def _scaling_of(self, X: Array) -> Scaling:
        return Scaling.towards_zero(X)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        """More rows for a fitted model."""
        points, target = self.scaling_.apply(read_points(self, _in_memory(X))), np.asarray(_in_memory(y))
        if target.shape[:1] != points.shape[:1]:
            raise InvalidInputError(f"y has shape {target.shape}, but X has {len(points)} rows; pass one target a row.")
        weights = check_weights(_in_memory(sample_weight), len(points))
        rows = np.flatnonzero(weights)
        return TrainingTable(points[rows], target[rows], weights[rows], rows)

    def _points(self, X: Any) -> Any:
        """Validated new points: tensors as tensors, where the model is."""
        check_is_fitted(self)
        if not is_tensor(X):
            return super()._points(X)
        if X.ndim != 2 or X.shape[0] == 0:
            raise InvalidInputError(f"X must be a table of shape (rows, features) with rows, got {tuple(X.shape)}.")
        if X.shape[1] != self.n_features_in_:
            raise InvalidInputError(f"X has {X.shape[1]} features, but {self.n_features_in_} are expected.")
        backend = self.solution_.problem.backend
        offset = self.scaling_.offset
        points = backend.array(X.double() - X.double().new_tensor(offset) if offset.any() else X)
        if not bool(backend.xp.all(backend.xp.isfinite(points))):
            raise InvalidInputError("X has a missing or infinite value; impute or drop it first.")
        return points

    def _evaluate(self, points: Any) -> Any:
        return self.solution_.decision_function(points)

    def _answer(self, X: Any, finish: Callable[[Any], Any]) -> Any:
        return finish(np.asarray(to_numpy(self._values(X)), dtype=np.float64))

    @property
    def _is_least_squares(self) -> bool:
        return self.loss == "least_squares"

    def _left_out(self, whole: bool = False) -> LeftOut:
        """Squared loss by ridge regression on the learned features; others at the rows that validated the training."""
        problem = self.solution_.problem
        if self.loss == "least_squares":
            W = np.asarray(to_numpy(self.solution_.theta.W), dtype=np.float64)
            return left_out_of_features(self.solution_.kernel, problem, problem.penalty.as_ridge(W), whole)
        X, Y, weights = self._held_out
        return LeftOut(self.solution_.decision_function(X).T, Y.T, weights)

    # -- learning ----------------------------------------------------------------------------------

    def _problem(self, table: TrainingTable, targets: Any, clock: Clock) -> SpectralLearning:
        largest = float(np.abs(table.X).max(initial=0.0))
        most = 1e-3 * float(np.finfo(self._options.dtype).max)
        if largest and not 1.0 / most < largest < most:  # frequencies are of the size of 1 / X, and rows have a sum
            raise InvalidInputError(
                f"X has entries of up to {largest:.3g}, too near the ends of the range of {self._options.dtype} for "
                "sums of products; bring the table to a usual scale, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
        return SpectralLearning.stated(
            table.X,
            self._columns(table.y, targets),
            self._score_loss(),
            setting_of(self.setting),
            lam1=0.0,
            lam2=0.0,
            backend=self._backend,
            weights=_unless_equal(table.weights),
        )

    def _solve(self, problem: SpectralLearning, clock: Clock) -> Any:
        rng, m, training = self._generator(), problem.m, self._options.settled(problem.m)
        choices = self.sigma, self.lam1, self.lam2
        if training.folds > m // 2 and max(map(np.size, choices)) > 1:
            raise InvalidInputError(
                f"folds is {training.folds}, but {m} rows make at most {m // 2} folds of two; pass fewer, or one "
                "number instead of each list."
            )
        codes, held_out = self._codes(np.asarray(to_numpy(problem.Y))), None
        if share := training.validation_share(m, rejoins=self._is_least_squares):
            held_out = held_out_share(m, share, codes, rng)
        self._held_rows = np.arange(m) if held_out is None else held_out
        setting = setting_of(self.setting)
        factors = _scales(problem, clock, rng.spawn(1)[0], self._tied) if setting.learned and self.sigma is None else ()
        options = Hyperparameters(setting, self.n_components, self.feature_map, *choices, training, factors)
        self._run: TrainingRun | None = None
        self._fit = learn_spectral(problem, options, held_out=held_out, codes=codes, rng=rng, clock=clock)
        return self._fit.solution

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        held, Y = self._held_rows, np.asarray(self._columns(table.y, self.targets_), dtype=np.float64)
        self._held_out = table.X[held], Y[held], table.weights[held]
        self._keep(self._fit)

    def _generator(self) -> Any:
        """A stream of random numbers from `random_state`, which scikit-learn lets be several things."""
        return np.random.default_rng(self._kept_seed(seed_from(self.random_state)))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one pass over some rows, on top of what has been learned.

        The first call chooses sigma, the start and the scale of targets from its rows, so it should see a few hundred
        of them.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
        y : array-like or tensor of shape (n_samples,) or, for a regressor, (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if not hasattr(self, "solution_"):
            return self.fit(X, y, sample_weight)
        table = self.targets_.encoded(self._rows(X, y, sample_weight))
        self._merged_rows = None  # rows that were passed before are not kept
        array, weights = self.solution_.problem.backend.array, _unless_equal(table.weights)
        X, Y = array(table.X), array(self._columns(table.y, self.targets_))
        weights = None if weights is None else array(weights)
        training = self._options.settled(len(table.X), most=True).for_one_pass()
        rng = self._generator() if self._run is None else self._run.rng
        clock = self._clock(len(table.X))
        fit, self._run = continue_training(
            self._fit, self._run, X, Y, weights, training, rng, pace=LATER_PACE, clock=clock
        )
        self._keep(fit)
        return self

    def _keep(self, fit: SpectralFit) -> None:
        """Set the fitted attributes."""
        self._fit, self.solution_ = fit, fit.solution
        self.n_iter_ = max(1, fit.solution.n_iter)
        self.sigma_, self.lam1_, self.lam2_ = fit.sigma, fit.solution.problem.penalty.weight, fit.solution.problem.lam2
        self.history_, self.width_ = fit.epochs, fit.width
        self.selection_ = fit.width if fit.choice is None else fit.choice
        self._n_features_out = fit.solution.theta.map.width

    @property
    def feature_factors_(self) -> Array:
        """By which features are multiplied before frequencies of scale sigma_ meet them, where nothing is trained."""
        check_is_fitted(self)
        return np.ones(len(self.scaling_.scale)) if self._fit.factors is None else np.array(self._fit.factors)

    # -- kernels -----------------------------------------------------------------------------------

    @property
    def kernel_(self) -> Any:
        """The learned kernel, a valid ``kernel=`` of scikit-learn's SVC, with explicit features."""
        check_is_fitted(self)
        return of_tables(self._centered(self.solution_.kernel), self.columns_)

    @property
    def initial_kernel_(self) -> Spectral:
        """The kernel before anything was learned."""
        check_is_fitted(self)
        return self._centered(Spectral.of(self._fit.initial))

    def _centered(self, kernel: Spectral) -> Spectral:
        """The kernel on features as they were passed."""
        if self.scaling_.offset.any():
            kernel = copy(kernel)
            kernel.center = self.scaling_.offset
        return kernel

    def transform(self, X: Any) -> Any:
        """Explicit features of the learned kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or a tensor; the features are then tensors, too.

        Returns
        -------
        array of shape (n_samples, n_features_out)
            All at once: for long tables transform parts of them.
        """
        points = self._points(X)
        return self.solution_.theta.map(points).values if is_tensor(X) else self.solution_.kernel.transform(points)


def _scales(
    problem: SpectralLearning, clock: Clock, rng: Any, tied: Sequence[Index]
) -> list[Callable[[], tuple[Array, Array] | None]]:
    """Factors of the features: one over their spread, and from a Gaussian kernel with a width for each of them.

    With them comes what steps of frequencies are relative to.
    """
    rows = rng.permutation(problem.m)[:METRIC_ROWS]
    X, Y = (np.asarray(to_numpy(part[rows]), dtype=np.float64) for part in (problem.X, problem.Y))
    spread = spread_of(X, tied)
    units = 1.0 / np.where(spread > 0.0, spread, 1.0)

    def learned() -> tuple[Array, Array] | None:
        sample = np.ones(len(rows)) if problem.weights is None else to_numpy(problem.weights[rows])
        low, high = Y.min(axis=0), Y.max(axis=0)
        codes = np.ascontiguousarray(((2.0 * Y - low - high) / np.where(high > low, high - low, 1.0)).T)
        weights, seed = np.asarray(sample, dtype=np.float64), int(rng.integers(2**31))
        found, _ = learned_metric(X * units, codes, weights, clock, seed, tied=tied)
        return None if found is None else (units * found, units * np.maximum(found, LEAST_STEP * found.max()))

    return [lambda: (units, units), learned]


def _unless_equal(weights: Any) -> Any:
    """Weights in the range of single precision, None where all of them are 1.

    Beyond it only ratios count: sizes of weights of one call of `partial_fit` and another are then not compared.
    """
    if (weights == 1.0).all():
        return None
    largest = weights.max()
    weights = weights if 1.0 / LARGEST < largest < LARGEST else weights / largest
    return np.maximum(weights, weights.max() / LARGEST)


def _in_memory(part: Any) -> Any:
    """Tensors as arrays, anything else as it is."""
    return to_numpy(part) if is_tensor(part) else part


def _check_choices(name: str, value: Any, *, open_low: bool = False) -> None:
    """Refuse what is neither None, nor a number, nor a list of numbers."""
    if value is None:
        return
    if np.ndim(value) == 0:
        check_number(name, value, low=0.0, open_low=open_low)
        return
    if len(value) == 0:
        raise InvalidInputError(f"{name} is an empty list; pass None, a number, or a list of numbers to choose from.")
    for one in value:
        check_number(f"every {name}", one, low=0.0, open_low=open_low)
