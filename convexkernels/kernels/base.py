"""The contract of every kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from convexkernels.exceptions import NotDifferentiableError
from convexkernels.validation import check_points

__all__ = ["Kernel"]


class Kernel(ABC, BaseEstimator):
    """A positive semidefinite function k(x, y), called on tables of points [CP20 Definition 2].

    Parameters are ordinary constructor arguments stored under their own names, so that
    ``get_params``, ``set_params`` and scikit-learn's ``clone`` work, also through sums and products
    (``kernel__left__gamma``). A kernel is a valid ``kernel=`` argument of scikit-learn's
    ``SVC``, ``NuSVC``, ``SVR`` and ``OneClassSVM``; ``KernelRidge``, ``KernelPCA`` and others call a function on one
    pair of rows at a time and want ``kernel="precomputed"`` with ``kernel(X)`` instead.

    Subclasses implement `_gram` (and `_diag` where it is cheaper than the default); parameters are validated when
    the kernel is evaluated, as scikit-learn asks of estimators.
    """

    def __call__(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """Evaluate the kernel on all pairs of points [BGR19 (4)].

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
        Y : array-like of shape (n_samples_Y, n_features), optional
            ``X`` when not given; the result is then exactly symmetric.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)

        Raises
        ------
        InvalidInputError
            For tables that are empty, not numeric, not finite, or of different widths.
        """
        X = check_points(X)
        if Y is None:
            K = self._gram(X, X)
            return 0.5 * (K + K.T)
        Y = check_points(Y, name="Y", n_features=X.shape[1])
        return self._gram(X, Y)

    def diag(self, X: Any) -> NDArray[np.float64]:
        """Return ``k(x, x)`` for every row of `X`, shape (n_samples,), without forming the matrix."""
        return self._diag(check_points(X))

    def pullback(self, X: Any, Y: Any, M: Any) -> NDArray[np.float64]:
        """Gradient of ``sum_ij M_ij k(x_i, y_j)`` with respect to the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
        Y : array-like of shape (n_samples_Y, n_features)
            Held fixed, also where its rows equal those of `X`. For the Gram matrix of one table
            and symmetric `M`, the whole gradient is twice this one.
        M : array-like of shape (n_samples_X, n_samples_Y)

        Returns
        -------
        ndarray of shape (n_samples_X, n_features)

        Raises
        ------
        NotDifferentiableError
            When the kernel has no derivative everywhere.
        """
        X = check_points(X)
        Y = check_points(Y, name="Y", n_features=X.shape[1])
        return self._pullback(X, Y, np.asarray(M, dtype=np.float64))

    @abstractmethod
    def _gram(self, X: NDArray[np.float64], Y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Kernel matrix of two validated tables, as a new array the caller may overwrite."""

    def _diag(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Diagonal, one point at a time; subclasses do better."""
        return np.array([self._gram(x[None, :], x[None, :])[0, 0] for x in X])

    def _pullback(self, X: NDArray[np.float64], Y: NDArray[np.float64], M: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotDifferentiableError(
            f"{self!r} has no derivative with respect to its points; use a smooth kernel, "
            "for example Gaussian, Polynomial or Matern with order >= 2."
        )

    # scikit-learn estimators define no arithmetic; kernels do. The classes live in `algebra`,
    # which imports this module, hence the imports inside.
    def __add__(self, other: Any) -> Kernel:
        from convexkernels.kernels.algebra import Sum, as_kernel

        return Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        from convexkernels.kernels.algebra import Sum, as_kernel

        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        from convexkernels.kernels.algebra import Product, Scaled

        return Product(self, other) if isinstance(other, Kernel) else Scaled(other, self)

    def __rmul__(self, other: Any) -> Kernel:
        from convexkernels.kernels.algebra import Scaled

        return Scaled(other, self)
