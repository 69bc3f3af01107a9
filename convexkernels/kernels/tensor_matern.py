"""The tensor-product Matern kernel, of the Sobolev space of dominating mixed smoothness."""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.kernels.matern import FARTHEST, LARGEST_EXPONENT, MaternBase


class TensorMatern(MaternBase):
    r"""k(x, y) = prod_j M(\|x_j - y_j\| / length), one Matern kernel per feature, k(x, x) = 1.

    Parameters
    ----------
    order : float, > 1/2
        Sobolev order in each feature; see :class:`Matern` for M and for non-whole orders.
    length : float, > 0
        Length scale, the same for all features, in their units.
    smoothing : float, >= 0
        As in :class:`Matern`, for each feature: rounds the kinks of order 1 off, so that the kernel
        can be the outer one of a concatenation.

    Notes
    -----
    Functions in its space may have kinks and (for order 1) even jumps in the derivative along the
    coordinate axes, not along a diagonal. [BGR19 Section 4] prints it without the factors that
    make k(x, x) = 1: theirs is ``(2^(nu - 1) Gamma(nu))^n`` times this one, ``nu = order - 1/2``.
    Costs O(n_samples_X n_samples_Y n_features).
    """

    def __init__(self, order: float = 1, length: float = 1.0, smoothing: float = 0.0) -> None:
        super().__init__(order, length, smoothing)

    @staticmethod
    def _radius(difference: Array, length: float, smoothing: float, farthest: float) -> Array:
        with np.errstate(over="ignore"):
            t = difference / length
            if smoothing == 0:
                np.abs(t, out=t)
            else:
                t *= t
                t += smoothing * smoothing
                np.sqrt(t, out=t)
        return np.minimum(t, farthest + smoothing, out=t)

    def _may_overflow(self, X: Array, Y: Array) -> bool:
        """Whether products of the polynomials before the exponential may: they are then added as logarithms."""
        reach = float(max(X.max(), Y.max()) - min(X.min(), Y.min())) / self.length + self.smoothing
        return bool(self.order * X.shape[1] * np.log1p(min(reach, FARTHEST)) >= LARGEST_EXPONENT)

    def _gram(self, X: Array, Y: Array) -> Array:
        profile, length, smoothing = self._checked()
        in_logarithms = self._may_overflow(X, Y)
        start = -smoothing
        if in_logarithms:
            start += float(np.log(profile.value(np.array(smoothing))))
        total = np.full((X.shape[0], Y.shape[0]), start * X.shape[1])
        factor = None
        for x, y in zip(X.T, Y.T, strict=True):
            t = self._radius(x[:, None] - y, length, smoothing, profile.farthest)
            total += t
            if self.order != 1:
                value = profile.value(t)
                if in_logarithms:
                    total -= np.log(value, out=value)
                else:
                    factor = value if factor is None else np.multiply(factor, value, out=factor)
        np.negative(total, out=total)
        K = np.exp(total, out=total)
        if factor is not None:
            K *= factor
            K /= float(profile.value(np.array(smoothing))) ** X.shape[1]
        return K

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        profile, length, smoothing = self._checked()
        self._refuse_kinks()
        weighted = M * self._gram(X, Y)
        gradient = np.empty_like(X)
        for j, (x, y) in enumerate(zip(X.T, Y.T, strict=True)):
            difference = x[:, None] - y
            t = self._radius(difference, length, smoothing, profile.farthest)
            # The logarithmic derivative of one factor: both parts carry the same exp(t).
            ratio = profile.slope(t)
            ratio[t == 0.0] = 0.0
            if self.order != 1:
                ratio /= profile.value(t)
            difference *= ratio
            gradient[:, j] = (2.0 / length**2) * np.einsum("ij,ij->i", weighted, difference)
        return gradient
