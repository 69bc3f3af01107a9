"""What the estimators of multiple kernel learning share: candidates in, one readable set of weights out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.base import KernelLearner
from convexkernels.estimators.training_table import Scaling, TrainingTable
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family
from convexkernels.families.candidate_list import check_matrices, transform_rows
from convexkernels.families.candidates import Candidates
from convexkernels.families.library import kernel_library
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.losses.base import Loss

__all__ = ["CandidateLearner"]

Array = NDArray[np.float64]


class CandidateLearner(KernelLearner):
    """Candidates from the parameter `kernels`, and the learned weights as fitted attributes."""

    kernels: Any
    normalize: str
    center: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self._stack = None
        if isinstance(self.kernels, str) and self.kernels == "precomputed":
            self._stack = check_matrices(X)
            X = row_numbers(self._stack.shape[1])
        super().fit(X, y, sample_weight)  # type: ignore[misc]
        if self._stack is not None:
            self._stack = self._stack[:0]  # the solution holds what prediction needs
        return self

    def _scaling(self, X: Array) -> Scaling:
        if self.kernels is not None:
            return Scaling.none(X)
        # The bandwidths of the library are meant for features of unit spread.
        # Rows count once, so that repeating one and giving it weight are the same.
        distinct = np.unique(X, axis=0)
        centre, spread = distinct.mean(axis=0), distinct.std(axis=0)
        spread = np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, 0.0)
        varying = np.flatnonzero(spread > 0.0)
        return Scaling(centre, spread, varying if varying.size else np.array([0]))

    def _family(self, n_features: int) -> Family:
        if self.kernels is None:
            return Candidates(kernel_library(n_features), self.normalize, self.center, allow_duplicates=True)
        if self._stack is not None:
            return Candidates([Precomputed(K) for K in self._stack], self.normalize, self.center)
        if isinstance(self.kernels, np.ndarray) and self.kernels.dtype != object:
            matrices = check_matrices(self.kernels)
            return Candidates([Precomputed(K) for K in matrices], self.normalize, self.center)
        if isinstance(self.kernels, str):
            raise InvalidInputError(
                f"kernels must be None, 'precomputed', a list of kernels or an array of shape (l, N, N), got "
                f"{self.kernels!r}."
            )
        return Candidates([self._with_indices(entry) for entry in self.kernels], self.normalize, self.center)

    def _with_indices(self, entry: Any) -> Any:
        """Replace column names by their places, when the table that is fitted has column names."""
        if not (isinstance(entry, tuple) and len(entry) == 3):
            return entry
        name, kernel, columns = entry
        wanted = [columns] if isinstance(columns, str) else columns
        if not isinstance(wanted, list | tuple | np.ndarray) or not any(isinstance(c, str) for c in wanted):
            return entry
        known = list(getattr(self, "feature_names_in_", []))
        missing = [c for c in wanted if c not in known]
        if missing:
            raise InvalidInputError(
                f"kernel {name!r} asks for the column {missing[0]!r}, but the table has "
                + (f"the columns {known}." if known else "no column names; pass a DataFrame, or use indices.")
            )
        return name, kernel, [known.index(c) for c in wanted]

    def _learn(self, table: TrainingTable, targets: Array, family: Family, loss: Loss) -> None:
        super()._learn(table, targets, family, loss)
        self.weights_ = self.solution_.theta.copy()
        self.kernel_names_ = list(self.solution_.problem.gram_set.names)
        self._points = table.X

    def weights_by_name(self, smallest: float = 1e-6) -> dict[str, float]:
        """Weights above `smallest` under the names of their kernels, the largest first."""
        check_is_fitted(self)
        order = np.argsort(-self.weights_, kind="stable").tolist()
        return {self.kernel_names_[k]: float(self.weights_[k]) for k in order if self.weights_[k] > smallest}

    def _values(self, X: Any) -> Array:
        if not (isinstance(X, np.ndarray) and X.ndim == 3):
            return super()._values(X)
        check_is_fitted(self)
        rows, machine = np.asarray(X, dtype=np.float64), self.solution_.machine
        gram_set = self.solution_.problem.gram_set
        if len(rows) != len(self.weights_) or not np.isfinite(rows).all():
            raise InvalidInputError(
                f"a stack of new rows must be finite, of shape ({len(self.weights_)}, n_new, m), got {rows.shape}."
            )
        weights = self.weights_ * gram_set.scales
        used = np.flatnonzero(weights).tolist()
        cross = sum(weights[k] * transform_rows(gram_set.kernels[k], rows[k])[:, self.support_] for k in used)
        values = cross @ machine.W.T + machine.b
        return values[:, 0] if machine.single else values

    def transform(self, X: Any) -> Array:
        """Learned kernel between rows of `X` and the distinct training rows in sorted order, shape (n_samples, n_rows).

        Features for any linear method. For a Gram matrix whose columns are in the order of a table, call the fitted
        estimator or its `kernel_` on that table.
        """
        points = self.scaling_.apply(self._new_points(X))
        return self.solution_.kernel(points, self._points)

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, then `transform` the same table."""
        return self.fit(X, y, sample_weight).transform(X)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Evaluate the learned kernel: a fitted estimator is a valid ``kernel=`` of scikit-learn's machines."""
        return self.kernel_(X, Y)
