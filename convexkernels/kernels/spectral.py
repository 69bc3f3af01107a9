"""Spectral kernels: finite sums of cosines, stationary or not, with their explicit features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.backend import Backend, to_numpy
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.stacked_frequencies import StackedMap, draw_layers
from convexkernels.validation import check_number, check_points, check_vector, check_whole_number


class Spectral(Kernel):
    """k(x, y) = <psi(x), psi(y)>, psi(x) = (4D)^(-1/2) [cos(Omega'x) + cos(Omega2'x); sin(Omega'x) + sin(Omega2'x)].

    That is the mean over i of ``cos(w_i'x - w2_i'y) + cos(w2_i'x - w_i'y) + cos(w_i'(x - y)) + cos(w2_i'(x - y))``,
    over 4: the Monte Carlo form of [LLW20 (5)], and of [LLW20 (2)] where the kernel is stationary.

    Parameters
    ----------
    omega : array-like of shape (n_features, D)
        Frequencies w_i, in radians per unit of the features.
    omega2 : array-like of shape (n_features, D), optional
        Frequencies w2_i. Left out they equal `omega`, and the kernel is stationary.
    phase : array-like of shape (D,), optional
        Given, the features are the map ``phi(x) = (2D)^(-1/2) [cos(Omega'x + b) + cos(Omega2'x + b)]`` of
        [LLW20 (6)] with one phase for both frequencies; the kernel is that of psi in expectation over uniform phases.
    phase2 : array-like of shape (D,), optional
        A second, independent phase, as [LLW20 (6)] is printed. What that has in expectation is a *stationary*
        kernel; it is here for comparison.
    inner : Spectral, optional
        A kernel whose features (:meth:`transform`) take the place of the points: `omega` has a row for each of them.
    center : array-like of shape (n_features,), optional
        What is subtracted from the points first; 0 when not given. A stationary kernel is the same everywhere, but
        cosines of large numbers have few digits.

    Notes
    -----
    Positive semidefinite for every choice, being an inner product of explicit features (:meth:`transform`).
    With Gaussian frequencies and many components a stationary kernel with `inner` is near
    ``exp(-sigma^2 (1 - inner(x, y)))``, a :class:`HierarchicalGaussian` of depth 2 where `inner` is stationary, too.
    ``k(x, x)`` is the mean of ``(1 + cos((w_i - w2_i)'x)) / 2`` for psi: at most 1, and 1 everywhere when stationary.

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import Gaussian, Spectral
    >>> kernel = Spectral.random(2, 20_000, sigma=1.0, stationary=True, random_state=0)
    >>> X = np.array([[0.0, 0.0], [1.0, 0.5]])
    >>> bool(np.abs(kernel(X) - Gaussian(0.5)(X)).max() < 0.02)
    True
    """

    def __init__(
        self,
        omega: Any,
        omega2: Any = None,
        phase: Any = None,
        phase2: Any = None,
        inner: Spectral | None = None,
        center: Any = None,
    ) -> None:
        self.omega = omega
        self.omega2 = omega2
        self.phase = phase
        self.phase2 = phase2
        self.inner = inner
        self.center = center

    @classmethod
    def of(cls, spectral_map: SpectralMap) -> Spectral:
        """The kernel of a feature map, in float64."""
        if isinstance(spectral_map, StackedMap):
            first, *others = spectral_map.layers
            kernel = cls.of(first)
            for layer in others:
                inner, kernel = kernel, cls.of(layer.scaled(spectral_map.unit))
                kernel.inner = inner
            return kernel
        D, omega = spectral_map.D, to_numpy(spectral_map.omega).astype(np.float64)
        phase = None if spectral_map.phase is None else to_numpy(spectral_map.phase).astype(np.float64)
        if spectral_map.is_stationary:
            return cls(omega, None, phase)
        if phase is None:
            return cls(omega[:, :D], omega[:, D:])
        is_shared = np.array_equal(phase[:D], phase[D:])
        return cls(omega[:, :D], omega[:, D:], phase[:D], None if is_shared else phase[D:])

    @classmethod
    def random(
        cls,
        n_features: int,
        n_components: int,
        *,
        sigma: float = 1.0,
        stationary: bool = False,
        feature_map: str = "psi",
        measure: str = "gaussian",
        inner: Sequence[int] = (),
        random_state: Any = None,
    ) -> Spectral:
        """Draw frequencies, from N(0, sigma^2) by default: of ``exp(-sigma^2 |x - y|^2 / 2)`` when stationary.

        Parameters
        ----------
        n_features : int, >= 1
            Features of the points.
        n_components : int, >= 1
            D, the number of frequencies (of pairs of them, when not stationary).
        sigma : float, > 0
            Standard deviation of every frequency, in radians per unit of the features; the scale of other measures.
        stationary : bool
        feature_map : {"psi", "phi", "printed"}
            Exact features, features with a random phase for each pair, or the printed map with two phases.
        measure : {"gaussian", "student-1", "student-3", "student-5", "cauchy"}
            What frequencies are drawn from. Multivariate t with 1, 3, 5 degrees of freedom has the Matern kernels of
            smoothness nu = 1/2, 3/2, 5/2 at distance ``r = sqrt(2 nu) sigma |x - y|``: ``exp(-r)``,
            ``(1 + r) exp(-r)``, ``(1 + r + r^2 / 3) exp(-r)``; independent Cauchy frequencies have the product Laplace
            kernel ``exp(-sigma |x - y|_1)``.
        inner : sequence of int, >= 1
            Components of kernels below this one, whose features take the place of the points. `sigma` is then that of
            the first of them, and the others have 1.
        random_state : int, Generator or None

        Raises
        ------
        InvalidInputError
            For names that do not exist, and numbers that are out of range.
        """
        n = check_whole_number("n_features", n_features, low=1)
        sigma = check_number("sigma", sigma, low=0.0, open_low=True)
        rng, backend = np.random.default_rng(random_state), Backend("float64")
        drawn = draw_layers(
            n,
            (*inner, n_components),
            stationary=stationary,
            feature_map=feature_map,
            rng=rng,
            backend=backend,
            measure=measure,
        )
        return cls.of(drawn.scaled(sigma))

    @property
    def is_stationary(self) -> bool:
        """Whether k(x, y) depends on x - y only, those of `inner` where there is one (no second frequencies)."""
        return self.omega2 is None

    def without_phases(self) -> Spectral:
        """The kernel of psi with the same frequencies: the mean of this one over phases that pairs share."""
        return Spectral(self.omega, self.omega2, inner=self.inner, center=self.center)

    def transform(self, X: Any) -> Array:
        """Explicit features, whose inner products are the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2 D) for psi, (n_samples, D) where there are phases
        """
        return self._features(check_points(X))

    def frequency_gradient(self, X: Any, slope: Array) -> Array:
        """Gradient in the frequencies of the sum of ``slope * transform(X)`` [LLW20 (9)], D without its inverse.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        slope : ndarray, same shape as ``transform(X)``

        Returns
        -------
        ndarray of shape (n_features, D) or (n_features, 2 D)
            For `omega`, beside it for `omega2`; with `inner` one vector, the frequencies of `inner` first.
        """
        points = self._centered(check_points(X))
        return np.asarray(self._map(points)(points).gradient(slope))

    def _map(self, X: Array) -> SpectralMap:
        """The validated feature map."""
        omega = check_points(self.omega, name="omega")
        D = omega.shape[1]
        if self.inner is not None and not isinstance(self.inner, Spectral):
            raise InvalidInputError(f"inner must be a Spectral kernel or None, got {self.inner!r}.")
        below = None if self.inner is None else self.inner._map(X)
        name, n = ("X", X.shape[1]) if below is None else ("inner", below.width)
        if n != len(omega):
            raise InvalidInputError(
                f"{name} has {n} features, but omega has {len(omega)} rows; there is one row per feature."
            )
        phase, second = _phases("phase", self.phase, D), _phases("phase2", self.phase2, D)
        if second is not None and (phase is None or self.omega2 is None):
            raise InvalidInputError(
                "phase2 belongs to phase and omega2, but one of them is None; give both, or leave it."
            )
        if self.omega2 is None:
            return _above(below, SpectralMap(omega, phase, D))
        omega2 = check_points(self.omega2, name="omega2")
        if omega2.shape != omega.shape:
            raise InvalidInputError(
                f"omega2 has shape {omega2.shape}, but omega has shape {omega.shape}; they are pairs of frequencies."
            )
        if phase is not None:
            phase = np.concatenate([phase, phase if second is None else second])
        return _above(below, SpectralMap(np.hstack([omega, omega2]), phase, D))

    def _centered(self, X: Array) -> Array:
        points = X if self.center is None else X - check_vector("center", self.center, X.shape[1], per="feature")
        return points if self.inner is None else self.inner._centered(points)

    def _features(self, X: Array) -> Array:
        return np.asarray(self._map(X)(self._centered(X)).values)

    def _gram(self, X: Array, Y: Array) -> Array:
        left = self._features(X)
        return left @ (left if Y is X else self._features(Y)).T

    def _diag(self, X: Array) -> Array:
        features = self._features(X)
        return np.einsum("ij,ij->i", features, features)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        there = self._map(X)
        return np.asarray(there(self._centered(X)).both_gradients(M @ there(self._centered(Y)).values)[1])


def _above(below: SpectralMap | None, last: SpectralMap) -> SpectralMap:
    """The map at the features of another one, or by itself."""
    if below is None:
        return last
    return StackedMap.of([*(below.layers if isinstance(below, StackedMap) else [below]), last])


def _phases(name: str, value: Any, D: int) -> Array | None:
    if value is None:
        return None
    phases = check_points(np.atleast_2d(np.asarray(value, dtype=np.float64)), name=name)[0]
    if np.ndim(value) != 1 or phases.shape != (D,):
        raise InvalidInputError(
            f"{name} has shape {np.shape(value)}, but there are {D} frequencies; one phase for each."
        )
    return phases
