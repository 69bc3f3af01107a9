"""What the spectral estimators share: parameters, tables in, features and kernels out."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.base import KernelEstimator, seed_from
from convexkernels.estimators.table import TrainingTable, checked_weights, read_points
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.spectral import Spectral
from convexkernels.progress import as_progress
from convexkernels.spectral.backend import Backend, backend_for, is_tensor, to_numpy
from convexkernels.spectral.fitting import SpectralFit, continue_training, learn_spectral
from convexkernels.spectral.learning import SpectralLearning, setting_of
from convexkernels.spectral.losses import ScoreLoss
from convexkernels.spectral.preparation import Recipe
from convexkernels.spectral.training import Schedule, SpectralTraining
from convexkernels.validation import check_number, check_whole_number

__all__ = ["SpectralEstimator"]

DEFAULT_BATCH = 64
# Fewer rows than this are all needed for training.
FEWEST_TO_SPLIT = 20


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Base of the spectral estimators; subclasses encode targets and name the losses."""

    setting: str = field(default="ASKL", kw_only=False)
    n_features: int = 2000
    feature_map: str = "phi"
    sigma: Any = None
    lam1: Any = None
    lam2: Any = None
    loss: str = "squared"
    batch_size: int | None = None
    learning_rate: float | None = None
    max_epochs: int = 20
    schedule: str = "cosine"
    early_stopping: bool = True
    validation_fraction: float = 0.1
    patience: int | None = None
    folds: int = 5
    polish: bool = True
    dtype: str = "float32"
    device: Any = None
    random_state: Any = None

    # -- parameters --------------------------------------------------------------------------------

    def _recipe(self, m: int) -> Recipe:
        """The parameters, refused by name where they cannot be meant."""
        setting = setting_of(self.setting)
        check_whole_number("n_features", self.n_features, low=1)
        _check_choices("sigma", self.sigma, open_low=True)
        _check_choices("lam1", self.lam1)
        _check_choices("lam2", self.lam2)
        check_whole_number("folds", self.folds, low=2)
        if self.folds > m // 2 and max(np.size(value) for value in (self.sigma, self.lam1, self.lam2)) > 1:
            raise InvalidInputError(
                f"folds is {self.folds}, but {m} rows make at most {m // 2} folds of two; pass fewer, or one number "
                "instead of each list."
            )
        fraction = check_number("validation_fraction", self.validation_fraction, low=0.0, high=1.0, open_low=True)
        if fraction == 1.0:
            raise InvalidInputError("validation_fraction is 1, which leaves no rows to learn from; pass a smaller one.")
        deadline = np.inf
        if self.max_time is not None:
            deadline = time.monotonic() + self.max_time
        schedule = Schedule(
            batch_size=min(DEFAULT_BATCH, m) if self.batch_size is None else self.batch_size,
            learning_rate=self._rate(),
            max_epochs=self.max_epochs,
            kind=self.schedule,
            patience=self.patience if self.early_stopping else None,
            deadline=deadline,
        ).checked(m)
        return Recipe(
            setting,
            self.n_features,
            self.feature_map,
            self.sigma,
            self.lam1,
            self.lam2,
            schedule,
            self.polish,
            self.folds,
        )

    def _rate(self) -> float:
        if self.learning_rate is not None:
            return self.learning_rate
        return 0.1 if self.loss == "squared" else 0.03

    def _held_out(self, m: int, codes: Any, rng: Any) -> Any:
        """Rows that are not trained on; none where there are too few."""
        if not self.early_stopping or m < FEWEST_TO_SPLIT:
            return None
        strata = None
        n_held = max(1, round(self.validation_fraction * m))
        if codes is not None:
            counts = np.bincount(codes)
            if counts.min() >= 2 and len(counts) <= min(n_held, m - n_held):
                strata = codes
        seed = int(rng.integers(2**31))
        return np.sort(train_test_split(np.arange(m), test_size=n_held, stratify=strata, random_state=seed)[1])

    # -- tables ------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        """Validated rows; tensors say where to compute."""
        self._backend = backend_for({"X": X, "y": y}, dtype=self.dtype, device=self.device)
        X, y, sample_weight = (to_numpy(part) if is_tensor(part) else part for part in (X, y, sample_weight))
        return super()._read(X, y, sample_weight)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        """More rows for a fitted model."""
        points = read_points(self, to_numpy(X) if is_tensor(X) else X)
        target = np.asarray(to_numpy(y))
        if target.shape[:1] != points.shape[:1]:
            raise InvalidInputError(f"y has shape {target.shape}, but X has {len(points)} rows; pass one target a row.")
        weights = checked_weights(to_numpy(sample_weight) if is_tensor(sample_weight) else sample_weight, len(points))
        rows = np.flatnonzero(weights)
        return TrainingTable(points[rows], target[rows], weights[rows], rows)

    def _values(self, X: Any) -> Any:
        """Scores at new points: tensors where tensors come in."""
        check_is_fitted(self)
        return self.solution_.decision_function(self._tensors(X) if is_tensor(X) else read_points(self, X))

    def _tensors(self, X: Any) -> Any:
        """Validated new points where the model is."""
        points = _checked_tensor(X, self.solution_.problem.backend)
        if points.shape[1] != self.n_features_in_:
            raise InvalidInputError(f"X has {points.shape[1]} features, but {self.n_features_in_} are expected.")
        return points

    # -- learning ----------------------------------------------------------------------------------

    @abstractmethod
    def _score_loss(self) -> ScoreLoss:
        """The loss, or a refusal."""

    @abstractmethod
    def _columns(self, t: Any, targets: Any) -> Any:
        """Targets of the loss, shape (m, K), from encoded ones."""

    def _codes(self, Y: Any) -> Any:
        """Classes as numbers, where all of them are there; None for numbers."""
        return None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._score_loss()

    def _problem(self, table: TrainingTable, targets: Any) -> SpectralLearning:
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

    def _solve(self, problem: SpectralLearning) -> Any:
        rng, recipe = self._generator(), self._recipe(problem.m)
        codes = self._codes(np.asarray(to_numpy(problem.Y)))
        self._training: SpectralTraining | None = None
        held, progress = self._held_out(problem.m, codes, rng), as_progress(bool(self.verbose))
        self._fit = learn_spectral(problem, recipe, validation=held, codes=codes, rng=rng, progress=progress)
        return self._fit.solution

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self._keep(self._fit)

    def _generator(self) -> Any:
        """A stream of random numbers from `random_state`, which scikit-learn lets be several things."""
        return np.random.default_rng(seed_from(self.random_state))

    def _learn_more(self, table: TrainingTable) -> None:
        """One pass over new rows."""
        m, backend = len(table.X), self.solution_.problem.backend
        schedule = Schedule(
            batch_size=min(DEFAULT_BATCH if self.batch_size is None else self.batch_size, m),
            learning_rate=0.3 * self._rate(),
            weight_rate=0.3,
            max_epochs=1,
            kind="constant",
        )
        training = getattr(self, "_training", None)
        rng = training.rng if training is not None else self._generator()
        weights = _unless_equal(table.weights)
        X, Y = backend.array(table.X), backend.array(self._columns(table.y, self.targets_))
        weights = None if weights is None else backend.array(weights)
        fit, self._training = continue_training(self._fit, training, X, Y, weights, schedule, rng)
        self._keep(fit)

    def _keep(self, fit: SpectralFit) -> None:
        """Set the fitted attributes."""
        self._fit = fit
        self.solution_ = fit.solution
        self.n_iter_ = max(1, fit.solution.n_iter)
        self.sigma_, self.lam1_, self.lam2_ = fit.sigma, fit.lam1, fit.lam2
        self.history_ = fit.epochs
        self.width_, self.selection_ = fit.width, fit.choice
        self._n_features_out = fit.solution.theta.map.width

    # -- kernels -----------------------------------------------------------------------------------

    @property
    def kernel_(self) -> Spectral:
        """The learned kernel, a valid ``kernel=`` of scikit-learn's machines, with explicit features."""
        check_is_fitted(self)
        kernel: Spectral = self.solution_.kernel
        return kernel

    @property
    def initial_kernel_(self) -> Spectral:
        """The kernel before anything was learned."""
        check_is_fitted(self)
        return self._fit.initial.kernel()

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
        check_is_fitted(self)
        if is_tensor(X):
            return self.solution_.theta.map(self._tensors(X)).values
        return self.solution_.kernel.transform(read_points(self, X))


def _unless_equal(weights: Any) -> Any:
    """Weights, None where all of them are 1."""
    return None if (weights == 1.0).all() else weights


def _checked_tensor(X: Any, backend: Backend) -> Any:
    if X.ndim != 2 or 0 in X.shape:
        raise InvalidInputError(f"X must be a table of shape (rows, features), not empty; got shape {tuple(X.shape)}.")
    points = backend.array(X)
    if not bool(backend.xp.all(backend.xp.isfinite(points))):
        raise InvalidInputError("X has a missing or infinite value; impute or drop it first.")
    return points


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
