"""The deep kernel of a concatenation of functions from reproducing kernel Hilbert spaces."""

from collections.abc import Sequence
from typing import Any

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Described, Kernel
from convexkernels.validation import check_points


class KernelMap(Described):
    """A vector-valued function spanned by kernel translates: ``f(x) = sum_i k(z_i, x) c_i``.

    The form that the representer theorem gives every layer of a concatenation [BGR19 (13)].

    Parameters
    ----------
    kernel : Kernel
    centers : array-like of shape (n_centers, n_features)
        The points z_i.
    coefficients : array-like of shape (n_centers, width)
        The vectors c_i; weights of a matrix-valued kernel ``k diag(a)`` are already multiplied in.
    """

    def __init__(self, kernel: Kernel, centers: Any, coefficients: Any) -> None:
        self.kernel, self.centers, self.coefficients = kernel, centers, coefficients

    def checked(self) -> tuple[Array, Array]:
        """Return centers and coefficients as arrays, or refuse them by name."""
        centers = check_points(self.centers, name="centers")
        coefficients = check_points(self.coefficients, name="coefficients")
        if coefficients.shape[0] != centers.shape[0]:
            raise InvalidInputError(
                f"coefficients has {coefficients.shape[0]} rows, but there are {centers.shape[0]} centers; "
                "one row per center is needed."
            )
        return centers, coefficients

    def __call__(self, X: Any) -> Array:
        """Evaluate the function, shape (n_samples, width)."""
        centers, coefficients = self.checked()
        return self.kernel(X, centers) @ coefficients


class Concatenated(Kernel):
    """k(x, y) = outer(g(x), g(y)) with g = f_2 o ... o f_L: the deep kernel [BGR19 (10), (11)].

    Its matrices as functions of the coefficients of the maps are [BGR19 (14)]. Positive semidefinite for every choice
    of the maps, because it is a kernel evaluated at images; differentiable when `outer` and the kernels of all maps
    are. A minimizer of a concatenated learning problem is a combination of translates of this kernel.

    Parameters
    ----------
    outer : Kernel
        K_1, on the images.
    maps : sequence of KernelMap
        f_2, ..., f_L, outermost first: the last one is applied to the points themselves.
    """

    def __init__(self, outer: Kernel, maps: Sequence[KernelMap]) -> None:
        self.outer, self.maps = outer, maps

    def images(self, X: Any) -> Array:
        """Return the inner images g(x) of the rows of `X`, shape (n_samples, width of f_2)."""
        return self._images(check_points(X))[-1]

    def _images(self, X: Array) -> list[Array]:
        """`X` and its images under f_L, f_(L-1) o f_L, ..., g."""
        images = [X]
        for layer in reversed(self.maps):
            centers, coefficients = layer.checked()
            if centers.shape[1] != images[-1].shape[1]:
                raise InvalidInputError(
                    f"a map of the concatenation expects {centers.shape[1]} features, but receives "
                    f"{images[-1].shape[1]}; the width of each map has to be the input dimension of the one before it."
                )
            images.append(layer.kernel._gram(images[-1], centers) @ coefficients)
        return images

    def _gram(self, X: Array, Y: Array) -> Array:
        left = self._images(X)[-1]
        return self.outer._gram(left, left if Y is X else self._images(Y)[-1])

    def _diag(self, X: Array) -> Array:
        return self.outer._diag(self._images(X)[-1])

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        images = self._images(X)
        gradient = self.outer._pullback(images[-1], self._images(Y)[-1], M)
        for layer, points in zip(self.maps, images[-2::-1], strict=True):
            centers, coefficients = layer.checked()
            gradient = layer.kernel._pullback(points, centers, gradient @ coefficients.T)
        return gradient
