"""What the spectral estimators share: parameters, tables in, features and kernels out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_regressor
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.base import seed_from
from convexkernels.estimators.table import read_points, read_table
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.spectral import Spectral
from convexkernels.progress import as_progress
from convexkernels.spectral.backend import Backend, backend_for, is_tensor, to_numpy
from convexkernels.spectral.fitting import SpectralFit, continue_training, learn_spectral
from convexkernels.spectral.learning import SpectralPoint, blocks, setting_of
from convexkernels.spectral.losses import ScoreLoss
from convexkernels.spectral.preparation import Recipe
from convexkernels.spectral.training import Schedule, SpectralTraining
from convexkernels.validation import check_number, check_whole_number

__all__ = ["SpectralEstimator"]

DEFAULT_BATCH = 64
# Fewer rows than this are all needed for training.
FEWEST_TO_SPLIT = 20


class SpectralEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the spectral estimators; subclasses encode targets and name the losses."""

    setting: str
    n_features: int
    feature_map: str
    sigma: Any
    lam1: Any
    lam2: Any
    loss: str
    batch_size: int | None
    learning_rate: float | None
    max_epochs: int
    schedule: str
    early_stopping: bool
    validation_fraction: float
    patience: int | None
    cv: int
    polish: bool
    dtype: str
    device: Any
    max_time: float | None
    random_state: Any
    verbose: bool

    # -- parameters --------------------------------------------------------------------------------

    def _recipe(self, m: int) -> Recipe:
        """The parameters, refused by name where they cannot be meant."""
        setting = setting_of(self.setting)
        check_whole_number("n_features", self.n_features, low=1)
        _check_choices("sigma", self.sigma, open_low=True)
        _check_choices("lam1", self.lam1)
        _check_choices("lam2", self.lam2)
        check_whole_number("cv", self.cv, low=2)
        if self.cv > m // 2 and max(np.size(value) for value in (self.sigma, self.lam1, self.lam2)) > 1:
            raise InvalidInputError(
                f"cv is {self.cv}, but {m} rows make at most {m // 2} folds of two; pass fewer folds, or one number "
                "instead of each list."
            )
        fraction = check_number("validation_fraction", self.validation_fraction, low=0.0, high=1.0, open_low=True)
        if fraction == 1.0:
            raise InvalidInputError("validation_fraction is 1, which leaves no rows to learn from; pass a smaller one.")
        deadline = np.inf
        if self.max_time is not None:
            deadline = time.monotonic() + check_number("max_time", self.max_time, low=0.0, open_low=True)
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
            self.cv,
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

    def _read(self, X: Any, y: Any) -> tuple[Any, Any, Backend]:
        """Validated points (tensors stay where they are) and targets, and where to compute."""
        backend = backend_for({"X": X, "y": y}, dtype=self.dtype, device=self.device)
        if not is_tensor(X):
            target = to_numpy(y) if is_tensor(y) else y
            table = read_table(self, X, target, None, multi_output=is_regressor(self))
            return backend.array(table.X), table.y, backend
        points = _checked_tensor(X, backend)
        target = to_numpy(y)
        if target.shape[:1] != (points.shape[0],):
            raise InvalidInputError(
                f"y has shape {target.shape}, but X has {points.shape[0]} rows; pass one target per row."
            )
        if target.dtype.kind == "f" and not np.isfinite(target).all():
            raise InvalidInputError("y has a missing or infinite value; drop that row first.")
        self.n_features_in_ = int(points.shape[1])
        return points, target, backend

    def _points(self, X: Any) -> Any:
        """Validated new points on the backend of the fit."""
        check_is_fitted(self)
        backend = self.solution_.problem.backend
        if not is_tensor(X):
            return backend.array(read_points(self, X))
        points = _checked_tensor(X, backend)
        if points.shape[1] != self.n_features_in_:
            raise InvalidInputError(f"X has {points.shape[1]} features, but {self.n_features_in_} are expected.")
        return points

    def _scores(self, X: Any) -> Any:
        """Scores at new points: tensors where tensors come in, else float64, one block of rows at a time.

        In float64 the answer for a row does not depend on the rows beside it.
        """
        point = self._learned()
        if is_tensor(X):
            return point.scores(self._points(X))
        points, kernel = read_points(self, X), self.kernel_
        W, c = to_numpy(point.W).astype(np.float64), to_numpy(point.intercept).astype(np.float64)
        return np.concatenate([kernel.transform(points[at]) @ W + c for at in blocks(len(points))])

    def _learned(self) -> SpectralPoint:
        check_is_fitted(self)
        return self.solution_.theta

    # -- learning ----------------------------------------------------------------------------------

    def _learn(self, X: Any, Y: Any, loss: ScoreLoss, recipe: Recipe, codes: Any, backend: Backend) -> None:
        rng = self._generator()
        self._training: SpectralTraining | None = None
        self._keep(
            learn_spectral(
                X,
                backend.array(Y),
                loss,
                recipe,
                validation=self._held_out(X.shape[0], codes, rng),
                codes=codes,
                rng=rng,
                backend=backend,
                progress=as_progress(bool(self.verbose)),
            )
        )

    def _generator(self) -> Any:
        """A stream of random numbers from `random_state`, which scikit-learn lets be several things."""
        return np.random.default_rng(seed_from(self.random_state))

    def _learn_more(self, X: Any, Y: Any) -> None:
        """One pass over new rows."""
        m = X.shape[0]
        schedule = Schedule(
            batch_size=min(DEFAULT_BATCH if self.batch_size is None else self.batch_size, m),
            learning_rate=0.3 * self._rate(),
            weight_rate=0.3,
            max_epochs=1,
            kind="constant",
        )
        training = getattr(self, "_training", None)
        rng = training.rng if training is not None else self._generator()
        fit, self._training = continue_training(
            self._fit, training, X, self.solution_.problem.backend.array(Y), None, schedule, rng
        )
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
        return self.solution_.kernel

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
        point = self._learned()
        return point.map(self._points(X)).values if is_tensor(X) else self.kernel_.transform(read_points(self, X))


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
