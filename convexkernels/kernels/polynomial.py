"""The polynomial and the linear kernel."""

from collections.abc import Callable

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_number, check_whole_number

# Sums of many values of e to this power, and their squares, are still far from the largest float.
LARGEST_EXPONENT = 345.0


class Polynomial(Kernel):
    """k(x, y) = (x'y + offset)^degree.

    Parameters
    ----------
    degree : int, >= 1
    offset : float, >= 0
        With 0 the kernel is homogeneous.
    """

    def __init__(self, degree: int = 2, offset: float = 1.0) -> None:
        self.degree, self.offset = degree, offset

    def _checked(self) -> tuple[int, float]:
        degree = check_whole_number("degree", self.degree, low=1)
        return degree, check_number("offset", self.offset, low=0.0, remedy="A negative offset is not PSD.")

    def _gram(self, X: Array, Y: Array) -> Array:
        degree, offset = self._checked()
        self._refuse_overflow(X, Y, degree, offset)
        K = X @ Y.T
        K += offset
        return K**degree if degree > 1 else K

    def _refuse_overflow(self, X: Array, Y: Array, degree: int, offset: float) -> None:
        largest = X.shape[1] * float(np.abs(X).max()) * float(np.abs(Y).max()) + offset
        if degree * np.log(max(largest, 1.0)) > LARGEST_EXPONENT:
            raise InvalidInputError(
                f"{self!r} overflows float64 on X, whose inner products reach {largest:.3g}; scale the features "
                "to [-1, 1] or lower the degree."
            )

    def _diag(self, X: Array) -> Array:
        degree, offset = self._checked()
        self._refuse_overflow(X, X, degree, offset)
        return (np.einsum("ij,ij->i", X, X) + offset) ** degree

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        degree, offset = self._checked()
        return (M * (degree * (X @ Y.T + offset) ** (degree - 1))) @ Y


class Linear(Kernel):
    """k(x, y) = x'y."""

    def feature_map(self) -> Callable[[Array], Array]:
        return np.array

    def _gram(self, X: Array, Y: Array) -> Array:
        return X @ Y.T

    def _diag(self, X: Array) -> Array:
        return np.einsum("ij,ij->i", X, X)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return M @ Y
