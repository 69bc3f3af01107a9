"""What the concatenated estimators with numbers as targets share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from convexkernels.estimators.concatenated_base import ConcatenatedEstimator
from convexkernels.estimators.targets import NumberTargets

__all__ = ["ConcatenatedNumbers"]

Array = NDArray[np.float64]


class ConcatenatedNumbers(RegressorMixin, ConcatenatedEstimator):
    """Numbers as targets, one or several per row."""

    normalize_y: bool

    def _encoded(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Points, and targets in the units of the problem."""
        points, targets = self._table(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(targets, dtype=np.float64)
        self.targets_ = NumberTargets.standard(y, np.ones(len(y))) if self.normalize_y else NumberTargets.as_given(y)
        return points, (y - self.targets_.center) / self.targets_.spread

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Evaluate the learned function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        values = self._outputs(X)
        return self.targets_.decoded(values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
