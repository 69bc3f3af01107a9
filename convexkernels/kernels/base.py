"""The contract of every kernel, and the arithmetic of kernels: sums, products and positive multiples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError, NotDifferentiableError
from convexkernels.kernels.gaussian_process import Covariance, CovarianceFunction
from convexkernels.notebook import html_table
from convexkernels.validation import check_number, check_points


class Described(BaseEstimator):
    """What is described by its constructor arguments."""

    def __repr__(self) -> str:
        """Parameters that differ from their defaults; of large arrays and long lists the size only."""
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._told().items())})"

    def _told(self) -> dict[str, str]:
        told = ((name, p.default, getattr(self, name)) for name, p in signature(type(self)).parameters.items())
        return {name: _brief(value) for name, default, value in told if _brief(value) != repr(default)}

    def _repr_html_(self) -> str:
        """What notebooks show: the same as a table."""
        return html_table(type(self).__name__, self._told())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class Kernel(ABC, Described):
    """A positive semidefinite function k(x, y), called on tables of points [CP20 Definition 2].

    Parameters are ordinary constructor arguments stored under their own names, so that
    ``get_params``, ``set_params`` and scikit-learn's ``clone`` work, also through sums and products
    (``kernel__left__gamma``). A kernel is a valid ``kernel=`` argument of scikit-learn's ``SVC``, ``SVR``,
    ``KernelRidge``, ``KernelPCA``, ``Nystroem`` and others, and by `for_gaussian_process` the ``kernel=`` of
    ``GaussianProcessRegressor``. A kernel without negative values, such as a (hierarchical) Gaussian, is a valid
    ``affinity=`` of ``SpectralClustering``; others are not.

    Subclasses implement `_gram` (and `_diag` where it is cheaper than the default); parameters are validated when
    the kernel is evaluated, as scikit-learn asks of estimators.
    """

    def __call__(self, X: Any, Y: Any = None) -> Array:
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
        X = self._points(X)
        if Y is None:
            K = self._gram(X, X)
            return 0.5 * (K + K.T)
        return self._gram(X, self._points(Y, name="Y", n_features=X.shape[1]))

    def diag(self, X: Any) -> Array:
        """Return ``k(x, x)`` for every row of `X`, shape (n_samples,), without forming the matrix."""
        return self._diag(self._points(X))

    def squared_distances(self, X: Array, Y: Array) -> Array:
        """Squared distances in the geometry of the kernel, shape (n_samples_X, n_samples_Y).

        Those of the images in its feature space, ``k(x, x) - 2 k(x, y) + k(y, y)``; for a Gaussian of a map,
        ``exp(-|Phi(x) - Phi(y)|^2)``, those of Phi, which tell far points apart, too. For validated tables.
        """
        D = self._diag(X)[:, None] + self._diag(Y) - 2.0 * self._gram(X, Y)
        return np.maximum(D, 0.0, out=D)

    def distances_from(self, X: Array) -> Callable[[int], Array]:
        """Row number of a validated table -> `squared_distances` of all rows from it, shape (n_samples,)."""
        return lambda i: self.squared_distances(X[i : i + 1], X)[0]

    def pullback(self, X: Any, Y: Any, M: Any) -> Array:
        """Gradient of ``sum_ij M_ij k(x_i, y_j)`` with respect to the rows of `X`, in the shape of `X`.

        `Y` is held fixed, also where its rows equal those of `X`: for the Gram matrix of one table and symmetric `M`,
        the whole gradient is twice this one.

        Raises
        ------
        NotDifferentiableError
            When the kernel has no derivative everywhere.
        """
        X = self._points(X)
        Y = self._points(Y, name="Y", n_features=X.shape[1])
        return self._pullback(X, Y, np.asarray(M, dtype=np.float64))

    def for_gaussian_process(self, variance: float = 1.0, variance_bounds: Any = (1e-5, 1e5)) -> Covariance:
        """The kernel times a variance, as a covariance function of scikit-learn's Gaussian processes.

        Parameters
        ----------
        variance : float, > 0
            Where the optimizer of the process begins.
        variance_bounds : pair of float, or "fixed"
        """
        return Covariance(self, variance, variance_bounds)

    def linearized(self, X: Any) -> tuple[Array, Callable[[Array], Array]]:
        """The Gram matrix of one table and its derivative: for searches that move the points.

        Returns
        -------
        K : ndarray of shape (n_samples, n_samples)
            Exactly symmetric.
        slope : callable
            A symmetric M -> gradient of ``sum_ij M_ij k(x_i, x_j)`` in the rows of `X`, which move on both sides.
        """
        X = self._points(X)
        K, slope = self._linearized(X)
        return 0.5 * (K + K.T), slope

    def _linearized(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """As `linearized`; where values and derivatives have parts in common, subclasses share them."""
        return self._gram(X, X), lambda M: 2.0 * self._pullback(X, X, M)

    def blocks(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Callable[[slice, slice], Any]:
        """Blocks of the Gram matrix of one table, for those who never hold all of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        dtype : float64 or float32
            Of the blocks; kernels may compute in it.
        device : str or torch.device, optional
            A device of PyTorch where blocks are evaluated, and stay; numpy when not given.

        Returns
        -------
        callable
            Rows, columns -> a new array ``k(x_i, x_j)``; from several threads at a time.

        Raises
        ------
        InvalidInputError
            For a device, by kernels that are evaluated by numpy only.
        MissingTorchError
            For a device where PyTorch is not installed.
        """
        if device is not None:
            raise InvalidInputError(
                f"device={str(device)!r} evaluates HierarchicalGaussian and Gaussian kernels, not {self!r}; pass one "
                "of them, or device=None for numpy."
            )
        X = check_points(X)

        def block(rows: slice, columns: slice) -> Array:
            left = X[rows]
            return self._gram(left, left if rows == columns else X[columns]).astype(dtype, copy=False)

        return block

    def feature_map(self) -> Callable[[Array], Array] | None:
        """Validated table -> features, shape (n_samples, rank), whose products are the kernel; None: too many."""
        return None

    def _points(self, X: Any, *, name: str = "X", n_features: int | None = None) -> Array:
        """A table that was passed, validated."""
        return check_points(X, name=name, n_features=n_features)

    @abstractmethod
    def _gram(self, X: Array, Y: Array) -> Array:
        """Kernel matrix of two validated tables, as a new array the caller may overwrite."""

    def _diag(self, X: Array) -> Array:
        """Diagonal, one point at a time; subclasses do better."""
        return np.array([self._gram(x[None, :], x[None, :])[0, 0] for x in X])

    def _sizes(self, X: Array) -> Array:
        """Sizes s: k(x_i, x_j) is right to some units in the last place of ``sqrt(s_i s_j)``, shape (n_samples,).

        The diagonal, unless values are differences of larger numbers.
        """
        return self._diag(X)

    def _varying(self, X: Array, Y: Array) -> Array:
        """``k(x_i, y_j)`` but for terms u(x_i) + u(y_j), which centering takes away; as `_gram`.

        The kernel itself, unless such terms leave the rest no digits.
        """
        return self._gram(X, Y)

    def _varying_diag(self, X: Array) -> Array:
        """Diagonal of `_varying`."""
        return self._diag(X)

    def _varying_sizes(self, X: Array) -> Array:
        """`_sizes` of `_varying`."""
        return self._sizes(X)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        raise NotDifferentiableError(
            f"{self!r} has no derivative with respect to its points; use Gaussian, Polynomial or Matern with order "
            ">= 2, by themselves or in sums and products, but not normalized or centered."
        )

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(other, self)

    def __rmul__(self, other: Any) -> Kernel:
        return Scaled(other, self)


# Covariance functions are called with whole tables by scikit-learn, other functions with one pair of rows at a time.
CovarianceFunction.register(Kernel)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray | list | tuple) and len(value) and not isinstance(value[0], str):
        if isinstance(value[0], BaseEstimator):
            return repr(value) if len(value) <= 3 else f"[{value[0]!r}, ..., {len(value)} in all]"
        shape = np.shape(value)
        many = np.prod(shape) > 6
        return f"<{' x '.join(map(str, shape))}>" if many else repr(np.asarray(value).tolist())
    return repr(value)


def as_kernel(value: Any) -> Kernel:
    """Return `value` if it is a kernel, or the constant kernel of a non-negative number."""
    return value if isinstance(value, Kernel) else Constant(value)


class Constant(Kernel):
    """k(x, y) = value, with value >= 0."""

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def _checked(self) -> float:
        return check_number("value", self.value, low=0.0, remedy="A constant kernel is PSD only then.")

    def _gram(self, X: Array, Y: Array) -> Array:
        return np.full((X.shape[0], Y.shape[0]), self._checked())

    def _diag(self, X: Array) -> Array:
        return np.full(X.shape[0], self._checked())

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return np.zeros_like(X)


class Scaled(Kernel):
    """k(x, y) = scale * kernel(x, y), with scale >= 0."""

    def __init__(self, scale: float, kernel: Kernel) -> None:
        self.scale, self.kernel = scale, kernel

    def _factor(self) -> float:
        return check_number("scale", self.scale, low=0.0, remedy="A negative multiple of a kernel is not a kernel.")

    def _gram(self, X: Array, Y: Array) -> Array:
        return self._factor() * self.kernel._gram(X, Y)

    def _diag(self, X: Array) -> Array:
        return self._factor() * self.kernel._diag(X)

    def _sizes(self, X: Array) -> Array:
        return self._factor() * self.kernel._sizes(X)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return self._factor() * self.kernel._pullback(X, Y, M)


class _Pair(Kernel):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left, self.right = left, right


class Sum(_Pair):
    """k = left + right."""

    def _gram(self, X: Array, Y: Array) -> Array:
        K = self.left._gram(X, Y)
        K += self.right._gram(X, Y)
        return K

    def _diag(self, X: Array) -> Array:
        return self.left._diag(X) + self.right._diag(X)

    def _sizes(self, X: Array) -> Array:
        return self.left._sizes(X) + self.right._sizes(X)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return self.left._pullback(X, Y, M) + self.right._pullback(X, Y, M)


class Product(_Pair):
    """k = left * right, PSD by Schur's product theorem."""

    def _gram(self, X: Array, Y: Array) -> Array:
        K = self.left._gram(X, Y)
        K *= K if self.right is self.left else self.right._gram(X, Y)
        return K

    def _diag(self, X: Array) -> Array:
        return self.left._diag(X) * self.right._diag(X)

    def _sizes(self, X: Array) -> Array:
        return self.left._sizes(X) * self.right._sizes(X)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        left = self.left._pullback(X, Y, M * self.right._gram(X, Y))
        return left + self.right._pullback(X, Y, M * self.left._gram(X, Y))
