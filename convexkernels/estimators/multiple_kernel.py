"""Estimators that learn the weights of candidate kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.base import KernelClassifier, KernelRegressor
from convexkernels.estimators.convex import ConvexEstimator
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.candidate_list import check_matrices, transform_rows
from convexkernels.families.candidates import Candidates
from convexkernels.families.library import kernel_library
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares

__all__ = ["MultipleKernelRidge", "MultipleKernelSVC", "MultipleKernelSVR"]

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class _CandidateEstimator(ConvexEstimator):
    """Candidates from the parameter `kernels`, and the learned weights as fitted attributes."""

    kernels: Any = field(default=None, kw_only=False)
    normalize: str = "mean"
    center: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        self._stack = None
        if isinstance(self.kernels, str) and self.kernels == "precomputed":
            self._stack = check_matrices(X)
            X = row_numbers(self._stack.shape[1])
        return super()._read(X, y, sample_weight)

    def _scaling_of(self, X: Array) -> Scaling:
        # The bandwidths of the library are meant for features of unit spread.
        return Scaling.standard(X) if self.kernels is None else Scaling.none(X)

    def _family(self, n_features: int) -> Candidates:
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
        named = hasattr(self, "feature_names_in_")
        places = {name: [j] for j, name in enumerate(self.feature_names_in_)} if named else {}
        if self.columns_ is not None:
            places = self.columns_.places
        missing = [c for c in wanted if c not in places]
        if missing:
            raise InvalidInputError(
                f"kernel {name!r} asks for the column {missing[0]!r}, but the table has "
                + (f"the columns {list(places)}." if places else "no column names; pass a DataFrame, or use indices.")
            )
        return name, kernel, [j for c in wanted for j in places[c]]

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        super()._finish(rows, table)
        self.weights_ = self.solution_.theta.copy()
        self.kernel_names_ = list(self.solution_.problem.gram_set.names)
        self._learned_points = table.X
        if self._stack is not None:
            self._stack = self._stack[:0]  # the solution holds what prediction needs

    def weights_by_name(self, smallest: float = 1e-6) -> dict[str, float]:
        """Weights above `smallest` under the names of their kernels, the largest first."""
        check_is_fitted(self)
        order = np.argsort(-self.weights_, kind="stable").tolist()
        return {self.kernel_names_[k]: float(self.weights_[k]) for k in order if self.weights_[k] > smallest}

    def _values(self, X: Any) -> Array:
        if not (isinstance(X, np.ndarray) and X.ndim == 3):
            return super()._values(X)
        check_is_fitted(self)
        rows, machine = np.asarray(X, dtype=np.float64), self.solution_.function
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
        return np.asarray(self.solution_.kernel(self._points(X), self._learned_points))

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Fit, then `transform` the same table."""
        return self.fit(X, y, sample_weight).transform(X)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Evaluate the learned kernel: a fitted estimator is a valid ``kernel=`` of scikit-learn's SVC."""
        return self.kernel_(X, Y)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class MultipleKernelSVC(KernelClassifier, _CandidateEstimator):
    """Support vector classifier that learns a convex combination of candidate kernels, to a certified optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
    kernel_names_ : list of str
    classes_ : ndarray of shape (n_classes,)
    {learned}

    Notes
    -----
    Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6).

    {one_kernel}
    The optimum is certified by its duality gap, whatever the solver.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from convexkernels import Gaussian, MultipleKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [(name, Gaussian(1.0), [j]) for j, name in enumerate(load_iris().feature_names)]
    >>> model = MultipleKernelSVC(kernels, C=10.0).fit(X, y)
    >>> len(model.weights_), model.score(X, y) > 0.9
    (4, True)
    """

    C: float = 1.0

    def _loss(self) -> Hinge:
        return Hinge(self.C, self.intercept)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class MultipleKernelSVR(KernelRegressor, _CandidateEstimator):
    """Support vector regression that learns a convex combination of candidate kernels, to a certified optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
    kernel_names_ : list of str
    {learned}

    Notes
    -----
    Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6).

    {one_kernel}
    The optimum is certified by its duality gap, whatever the solver.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import MultipleKernelSVR
    >>> X, y = make_friedman1(100, random_state=0)
    >>> MultipleKernelSVR(C=10.0).fit(X, y).score(X, y) > 0.9
    True
    """

    C: float = 1.0
    epsilon: float = 0.1

    def _loss(self) -> EpsilonInsensitive:
        return EpsilonInsensitive(self.C, self.epsilon, self.intercept)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class MultipleKernelRidge(KernelRegressor, _CandidateEstimator):
    """Kernel ridge regression that learns a convex combination of candidate kernels, to a certified optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
    kernel_names_ : list of str
    {learned}

    Notes
    -----
    Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6).

    {one_kernel}
    The optimum is certified by its duality gap, whatever the solver.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import MultipleKernelRidge
    >>> X, y = make_friedman1(100, random_state=0)
    >>> MultipleKernelRidge(lam=0.1).fit(X, y).score(X, y) > 0.9
    True
    """

    lam: float = 1.0

    def _loss(self) -> LeastSquares:
        return LeastSquares(self.lam, self.intercept)
