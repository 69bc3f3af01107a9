"""The Matern kernel, the reproducing kernel of a Sobolev space."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln, kve
from sklearn.base import clone

from convexkernels.arrays import Array
from convexkernels.exceptions import NotDifferentiableError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import radial_pullback, radial_sizes, squared_distances
from convexkernels.validation import check_number

# Beyond this distance Matern kernels are 0.
FARTHEST = 1e5
# Exponentials of this do not overflow.
LARGEST_EXPONENT = 690.0
# Beyond this many lengths, and ten more per order, values are below the rounding of 1.
NEGLIGIBLE = 40.0


class MaternProfile:
    """The function M of :class:`Matern`; for whole orders it is a polynomial times ``exp(-t)``.

    Methods return it times ``exp(t)``, which neither under- nor overflows for large t.
    """

    def __init__(self, order: float) -> None:
        self.nu = order - 0.5
        self.is_closed_form = float(order).is_integer()
        # Where ``exp(t) M(t)``, at most exp(t) and at most ``(1 + t)^order``, cannot overflow; M is next to 0 beyond.
        self.farthest = min(FARTHEST, max(LARGEST_EXPONENT, float(np.expm1(min(LARGEST_EXPONENT / order, 20.0)))))

    def value(self, t: Array) -> Array:
        """``exp(t) M(t)``."""
        return self._polynomial(int(self.nu), t) if self.is_closed_form else self._bessel(self.nu, t)

    def slope(self, t: Array) -> Array:
        """``exp(t) dM / d(t^2)``, which is -inf or finite at ``t = 0`` (finite for order > 3/2)."""
        if self.is_closed_form:
            if self.nu > 1.0:
                return self._polynomial(int(self.nu) - 1, t) / (-4.0 * (self.nu - 1.0))
            with np.errstate(divide="ignore"):
                return -0.5 / t
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            # d/dt [t^nu K_nu(t)] = -t^nu K_(nu-1)(t), hence d/d(t^2) = -t^(nu-1) K_(nu-1)(t) / 2.
            log_scale = (1.0 - self.nu) * np.log(2.0) - gammaln(self.nu)
            slope = -0.5 * np.exp(log_scale + (self.nu - 1.0) * np.log(t)) * kve(self.nu - 1.0, t)
        limit = -0.25 / (self.nu - 1.0) if self.nu > 1.0 else -np.inf
        return np.where(np.isfinite(slope), slope, limit)

    @staticmethod
    def _polynomial(p: int, t: Array) -> Array:
        """Horner's rule for ``exp(t) M(t)`` at ``nu = p + 1/2``; the coefficients are all positive."""
        coefficients = [1.0]
        for j in range(p):
            coefficients.append(coefficients[-1] * 2.0 * (p - j) / ((2.0 * p - j) * (j + 1.0)))
        result = np.full_like(t, coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            result *= t
            result += coefficient
        return result

    @staticmethod
    def _bessel(nu: float, t: Array) -> Array:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            value = np.exp((1.0 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(t)) * kve(nu, t)
        # K_nu overflows only where t is so small that M(t) equals 1 to working precision.
        return np.where(np.isfinite(value), value, 1.0)


class MaternBase(Kernel):
    """What both Matern kernels share: parameters, values of 1 on the diagonal, kinks."""

    def __init__(self, order: float = 2, length: float = 1.0, smoothing: float = 0.0) -> None:
        self.order, self.length, self.smoothing = order, length, smoothing

    def _checked(self) -> tuple[MaternProfile, float, float]:
        order = check_number("order", self.order, low=0.5, open_low=True)
        length = check_number("length", self.length, low=0.0, open_low=True)
        return MaternProfile(order), length, check_number("smoothing", self.smoothing, low=0.0)

    def _diag(self, X: Array) -> Array:
        self._checked()
        return np.ones(X.shape[0])

    @property
    def has_kink(self) -> bool:
        """Whether it has no derivative where points meet."""
        return bool(self.order <= 1 and self.smoothing == 0)

    def _refuse_kinks(self) -> None:
        if self.has_kink:
            raise NotDifferentiableError(
                f"{self!r} has order {self.order:g} and therefore a kink where points meet, so no derivative with "
                "respect to them; use order > 1 (order=2 is the next whole one) or smoothing > 0, for example "
                "smoothing=1e-3."
            )


class Matern(MaternBase):
    r"""k(x, y) = M(r) with r = \|x - y\| / length and M the Matern function, k(x, x) = 1.

    ``M(r) = 2^(1 - nu) / Gamma(nu) * r^nu * K_nu(r)`` with ``nu = order - 1/2`` and K_nu the modified Bessel function
    of the second kind; order 1 is ``exp(-r)``, order 2 ``(1 + r) exp(-r)``, order 3 ``(1 + r + r^2 / 3) exp(-r)``.

    Parameters
    ----------
    order : float, > 1/2
        The Sobolev order s in one dimension. Whole numbers use the closed form, others the Bessel
        function of scipy. On R^n the kernel reproduces the Sobolev space of order
        ``order + (n - 1) / 2``: the statement of [BGR19 Section 4] that it "characterizes the
        Sobolev space of order s" holds for n = 1 only.
    length : float, > 0
        Length scale, in units of the features. scikit-learn's ``Matern(nu, length_scale)`` is this
        kernel with ``order = nu + 1/2`` and ``length = length_scale / sqrt(2 nu)``.
    smoothing : float, >= 0
        With a positive value r is replaced by ``t = sqrt(r^2 + smoothing^2)`` and the kernel divided
        by ``M(smoothing)``: still positive semidefinite in every dimension (M is a mixture of
        Gaussians in r), and differentiable everywhere for every order. In units of `length`.

    Notes
    -----
    [BGR19 Section 4] prints the kernel without its factor; theirs is
    ``2^(nu - 1) Gamma(nu)`` times this one (``sqrt(pi / 2)`` for orders 1 and 2), with length 1.
    Without smoothing the kernel is differentiable for ``order > 1``.
    """

    def _sizes(self, X: Array) -> Array:
        return self._diag(X) if self.order < 2 else radial_sizes(X, float(self.length) ** -2.0)

    def _radius(self, X: Array, Y: Array, length: float, smoothing: float, farthest: float) -> Array:
        # Rounding of the fast distances, 1e-8 between equal points, is harmless only where the
        # kernel is flat at 0; rougher ones would become indefinite by as much.
        rough = self.order < 2
        reach = (NEGLIGIBLE + 10.0 * self.order) * length
        D = cdist(X, Y, "sqeuclidean") if rough else squared_distances(X, Y, 1.0 / length / length, reach * reach)
        with np.errstate(over="ignore"):
            D /= length
            D /= length
        D += smoothing * smoothing
        np.sqrt(D, out=D)
        return np.minimum(D, farthest + smoothing, out=D)

    def _gram(self, X: Array, Y: Array) -> Array:
        profile, t, decay = self._parts(X, Y)
        decay *= profile.value(t)
        return decay

    def _parts(self, X: Array, Y: Array) -> tuple[MaternProfile, Array, Array]:
        """The profile, where it is evaluated, and the factor ``exp(-t)`` that it leaves out, over its value at 0."""
        profile, length, smoothing = self._checked()
        t = self._radius(X, Y, length, smoothing, profile.farthest)
        decay = np.subtract(smoothing, t)
        np.exp(decay, out=decay)
        if smoothing > 0.0:
            decay /= profile.value(np.array(smoothing))
        return profile, t, decay

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        profile, t, decay = self._parts(X, Y)
        return self._slope(X, Y, profile, t, decay, M)

    def _slope(self, X: Array, Y: Array, profile: MaternProfile, t: Array, decay: Array, M: Array) -> Array:
        self._refuse_kinks()
        slope = profile.slope(t)
        slope[t == 0.0] = 0.0  # equal points: the derivative is 0 although the slope may be infinite
        slope *= decay
        slope *= M
        slope /= self.length * self.length
        return radial_pullback(X, Y, slope)

    def _linearized(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        profile, t, decay = self._parts(X, X)
        return profile.value(t) * decay, lambda M: 2.0 * self._slope(X, X, profile, t, decay, M)


def without_kinks(kernel: Kernel, distance: float) -> Kernel:
    """The kernel itself, or one with smoothing over a distance for every Matern kernel in it that has a kink.

    The distance is in units of the features.
    """
    parameters = kernel.get_params(deep=False)
    found = {name: _without_kinks(value, distance) for name, value in parameters.items()}
    changed = {name: value for name, value in found.items() if value is not parameters[name]}
    if isinstance(kernel, MaternBase) and kernel.has_kink:
        changed["smoothing"] = distance / kernel.length
    return clone(kernel).set_params(**changed) if changed else kernel


def _without_kinks(value: Any, distance: float) -> Any:
    """The same of a parameter: a kernel, a list with kernels, or anything else, which stays as it is."""
    if isinstance(value, Kernel):
        return without_kinks(value, distance)
    if not isinstance(value, list | tuple):
        return value
    parts = [_without_kinks(part, distance) for part in value]
    return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
