"""Any estimator of scikit-learn as the learner of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from convexkernels.cells.machines import CellFunction, GaussianLearner

__all__ = ["ClassifierLearner", "RegressorLearner"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegressorLearner:
    """A clone of a scikit-learn regressor in every cell; its targets have the units of the table."""

    estimator: Any
    fallback: GaussianLearner

    def learn(self, X: Array, Y: Array, weights: Array, rng: np.random.Generator, own: Any = None) -> Any:
        """Fit a clone, or take a constant where there is nothing to learn."""
        if len(X) == 1 or (Y[:, :1] == Y).all():
            return self.constant(Y, weights)
        model = _fitted(clone(self.estimator), X, Y[0] if len(Y) == 1 else Y.T, weights)
        return _RegressorCell(model, self.fallback.clip)

    def constant(self, Y: Array, weights: Array) -> CellFunction:
        """The best constant."""
        return self.fallback.constant(Y, weights)


@dataclass(frozen=True, eq=False)
class ClassifierLearner:
    """A clone of a scikit-learn classifier in every cell, on the classes that the cell has."""

    estimator: Any
    fallback: GaussianLearner

    def learn(self, X: Array, Y: Array, weights: Array, rng: np.random.Generator, own: Any = None) -> Any:
        """Fit a clone, or take a constant in a cell of one class."""
        codes = (Y[0] > 0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0)
        if (codes == codes[0]).all():
            return self.constant(Y, weights)
        return _ClassifierCell(_fitted(clone(self.estimator), X, codes, weights), len(Y))

    def constant(self, Y: Array, weights: Array) -> CellFunction:
        """The majority."""
        return self.fallback.constant(Y, weights)


@dataclass(frozen=True, eq=False)
class _RegressorCell:
    model: Any
    clip: float

    def values(self, X: Array) -> Array:
        return np.clip(np.asarray(self.model.predict(X), dtype=np.float64).reshape(len(X), -1), -self.clip, self.clip)


@dataclass(frozen=True, eq=False)
class _ClassifierCell:
    model: Any
    n_machines: int

    def values(self, X: Array) -> Array:
        F = self._decisions(X)
        if self.n_machines == 1:
            return F.reshape(-1, 1)
        if F.ndim == 1:
            F = np.column_stack([-F, F])
        # Classes the cell has not seen lose against all others.
        values = np.repeat(np.minimum(-1.0, F.min(axis=1, keepdims=True) - 1.0), self.n_machines, axis=1)
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


def _fitted(model: Any, X: Array, y: NDArray[Any], weights: Array) -> Any:
    """Fit with weights where they say something; then the learner has to take them."""
    return model.fit(X, y) if (weights == weights[0]).all() else model.fit(X, y, sample_weight=weights)
