"""Any estimator of scikit-learn as the learner of a cell."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from convexkernels.arrays import Array
from convexkernels.cells.kernel_learner import CellFunction, KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.criteria.folds import split_rows
from convexkernels.exceptions import UnsuitedFamilyWarning

# Rows that a cell keeps for values of models that have not seen them.
KEPT_ROWS = 500


@dataclass(frozen=True, eq=False)
class WrappedLearner:
    """A clone of an estimator in every cell: of a classifier on the classes that the cell has.

    It gets what is left of the time as its ``max_time``, where it has one; constants are those of the `fallback`.
    """

    estimator: Any
    fallback: KernelLearner
    classifies: bool

    def constant(self, Y: Array, weights: Array) -> CellFunction:
        """The best constant, or the majority."""
        return self.fallback.constant(Y, weights)

    def learn(self, rows: CellRows, rng: np.random.Generator, deadline: float = np.inf) -> Any:
        """Fit a clone, or take a constant where there is nothing to learn."""
        X, Y, weights = rows.X, rows.Y, rows.weights
        targets = Y[0] if len(Y) == 1 else Y.T
        if self.classifies:
            targets = (Y[0] > 0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0)
        if len(X) == 1 or (targets == targets[0]).all():
            return self.constant(Y, weights)
        model = clone(self.estimator)
        if np.isfinite(deadline) and "max_time" in model.get_params(deep=False):
            left = max(deadline - time.monotonic(), 1e-3)
            model.set_params(max_time=min(left, model.max_time) if isinstance(model.max_time, float | int) else left)
        # With weights where they say something; then the estimator has to take them.
        named = {} if (weights == weights[0]).all() else {"sample_weight": weights}
        with warnings.catch_warnings():
            # Advice on what suits a table better is none on a cell: among many, some are better by chance.
            warnings.simplefilter("ignore", UnsuitedFamilyWarning)
            model.fit(X, targets, **named)
        # A function travels to whoever predicts: it cannot carry a table that no memory holds.
        kept = np.sort(np.random.default_rng(0).permutation(len(X))[:KEPT_ROWS])
        learned = self, rows.part(kept), model
        return ClassifierCell(*learned, len(Y)) if self.classifies else RegressorCell(*learned, self.fallback.clip)


@dataclass(frozen=True, eq=False)
class _WrappedCell:
    """A model, what it learned from or a sample of it, and what can learn another one."""

    learner: WrappedLearner
    rows: CellRows
    model: Any

    @property
    def X(self) -> Array:
        """Points of what it keeps."""
        return self.rows.X

    def left_out(self, folds: int) -> Array:
        """Values at every row by a model that has not seen it, shape (n_outputs, m)."""
        rng, F = np.random.default_rng(0), np.empty(self.rows.Y.shape)
        for train, held in split_rows(self.rows.Y, folds, rng):
            F[:, held] = self.learner.learn(self.rows.part(train), rng).values(self.rows.X[held]).T
        return F


@dataclass(frozen=True, eq=False)
class RegressorCell(_WrappedCell):
    """A regressor in a cell; its targets have the units of the problem."""

    clip: float

    def values(self, X: Array) -> Array:
        """Predictions, clipped to the range of the targets, shape (n_samples, n_outputs)."""
        return np.clip(np.asarray(self.model.predict(X), dtype=np.float64).reshape(len(X), -1), -self.clip, self.clip)


@dataclass(frozen=True, eq=False)
class ClassifierCell(_WrappedCell):
    """A classifier in a cell; the classes it has not seen lose against all others."""

    n_outputs: int

    def values(self, X: Array) -> Array:
        """Values of all classes, shape (n_samples, n_outputs)."""
        F = self._decisions(X)
        if self.n_outputs == 1:
            return F.reshape(-1, 1)
        if F.ndim == 1:
            F = np.column_stack([-F, F])
        values = np.repeat(np.minimum(-1.0, F.min(axis=1, keepdims=True) - 1.0), self.n_outputs, axis=1)
        values[:, self.model.classes_] = F
        return values

    def _decisions(self, X: Array) -> Array:
        """What the model decides by: its own values, or votes between -1 and 1 for its classes."""
        if hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(X), dtype=np.float64)
        if hasattr(self.model, "predict_proba"):
            votes = 2.0 * np.asarray(self.model.predict_proba(X), dtype=np.float64) - 1.0
        else:
            votes = np.where(np.asarray(self.model.predict(X))[:, None] == self.model.classes_, 1.0, -1.0)
        return votes[:, 1] if votes.shape[1] == 2 else votes
