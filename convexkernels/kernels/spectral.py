"""Spectral kernels: finite sums of waves, stationary or not, with their explicit features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_number, check_points, check_whole_number

__all__ = ["FEATURE_MAPS", "Spectral"]

Array = NDArray[np.float64]

# How waves become features: the exact map, one shared phase per pair, and the printed map with two.
FEATURE_MAPS = ("psi", "phi", "printed")


@dataclass(frozen=True, eq=False)
class _Waves:
    """Validated frequencies and phases; `second` and `shift2` are None for a stationary kernel."""

    first: Array
    second: Array | None
    shift: Array | None
    shift2: Array | None

    @property
    def is_exact(self) -> bool:
        return self.shift is None

    @property
    def scale(self) -> float:
        """Factor of the sums of waves: as printed for pairs; a single wave counts twice."""
        D = self.first.shape[1]
        single = 1.0 if self.second is not None else 2.0
        return single / float(np.sqrt((4.0 if self.is_exact else 2.0) * D))

    def angles(self, X: Array) -> list[Array]:
        """``Omega'x + b`` of each band, shape (m, D)."""
        bands = [(self.first, self.shift)]
        if self.second is not None:
            bands.append((self.second, self.shift if self.shift2 is None else self.shift2))
        return [X @ omega if shift is None else X @ omega + shift for omega, shift in bands]

    def features(self, X: Array) -> Array:
        angles = self.angles(X)
        parts = [sum(np.cos(u) for u in angles)]
        if self.is_exact:
            parts.append(sum(np.sin(u) for u in angles))
        return self.scale * np.hstack(parts)

    def angle_gradient(self, X: Array, slope: Array) -> list[Array]:
        """Gradient in the angles of each band of the sum of ``slope * features(X)``."""
        D = self.first.shape[1]
        found = []
        for u in self.angles(X):
            along = -np.sin(u) * slope[:, :D]
            if self.is_exact:
                along += np.cos(u) * slope[:, D:]
            found.append(self.scale * along)
        return found

    def pull_back(self, X: Array, slope: Array) -> Array:
        """Gradient in the rows of `X` of the sum of ``slope * features(X)``."""
        bands = zip([self.first, self.second], self.angle_gradient(X, slope), strict=False)
        return np.asarray(sum(along @ omega.T for omega, along in bands if omega is not None))


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
        [LLW20 (6)] with one phase for both waves; the kernel is that of psi in expectation over uniform phases.
    phase2 : array-like of shape (D,), optional
        A second, independent phase, as [LLW20 (6)] is printed. What that has in expectation is a *stationary*
        kernel; it is here for comparison.

    Notes
    -----
    Positive semidefinite for every choice, being an inner product of explicit features (:meth:`transform`).
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

    def __init__(self, omega: Any, omega2: Any = None, phase: Any = None, phase2: Any = None) -> None:
        self.omega = omega
        self.omega2 = omega2
        self.phase = phase
        self.phase2 = phase2

    @classmethod
    def random(
        cls,
        n_features: int,
        n_frequencies: int,
        *,
        sigma: float = 1.0,
        stationary: bool = False,
        feature_map: str = "psi",
        random_state: Any = None,
    ) -> Spectral:
        """Draw frequencies from N(0, sigma^2): of the Gaussian kernel ``exp(-sigma^2 |x - y|^2 / 2)`` when stationary.

        Parameters
        ----------
        n_features : int, >= 1
            Features of the points.
        n_frequencies : int, >= 1
            D, the number of waves (of pairs of waves, when not stationary).
        sigma : float, > 0
            Standard deviation of every frequency, in radians per unit of the features.
        stationary : bool
        feature_map : {"psi", "phi", "printed"}
            Exact features, features with a random phase shared by both waves, or the printed map with two phases.
        random_state : int, Generator or None
        """
        n = check_whole_number("n_features", n_features, low=1)
        D = check_whole_number("n_frequencies", n_frequencies, low=1)
        sigma = check_number("sigma", sigma, low=0.0, open_low=True)
        if feature_map not in FEATURE_MAPS:
            raise InvalidInputError(f"feature_map must be one of {', '.join(FEATURE_MAPS)}, got {feature_map!r}.")
        rng = np.random.default_rng(random_state)
        omega = sigma * rng.standard_normal((n, D))
        omega2 = None if stationary else sigma * rng.standard_normal((n, D))
        phase = None if feature_map == "psi" else rng.uniform(0.0, 2.0 * np.pi, D)
        has_two = feature_map == "printed" and not stationary
        return cls(omega, omega2, phase, rng.uniform(0.0, 2.0 * np.pi, D) if has_two else None)

    @property
    def is_stationary(self) -> bool:
        """Whether k(x, y) depends on x - y only (there are no second frequencies)."""
        return self.omega2 is None

    def without_phases(self) -> Spectral:
        """The kernel of psi with the same frequencies: the mean of this one over phases that both waves share."""
        return Spectral(self.omega, self.omega2)

    def transform(self, X: Any) -> Array:
        """Explicit features, whose inner products are the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2 D) for psi, (n_samples, D) where there are phases
        """
        points = check_points(X)
        return self._waves(points).features(points)

    def frequency_gradient(self, X: Any, slope: Array) -> Array:
        """Gradient in the frequencies of the sum of ``slope * transform(X)`` [LLW20 (9)], D without its inverse.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        slope : ndarray, same shape as ``transform(X)``

        Returns
        -------
        ndarray of shape (n_features, D) or (n_features, 2 D)
            For `omega`, beside it for `omega2`.
        """
        points = check_points(X)
        return points.T @ np.hstack(self._waves(points).angle_gradient(points, slope))

    def _waves(self, X: Array) -> _Waves:
        first = check_points(self.omega, name="omega")
        if X.shape[1] != first.shape[0]:
            raise InvalidInputError(
                f"X has {X.shape[1]} features, but omega has {first.shape[0]} rows; there is one row per feature."
            )
        second = None if self.omega2 is None else check_points(self.omega2, name="omega2")
        if second is not None and second.shape != first.shape:
            raise InvalidInputError(
                f"omega2 has shape {second.shape}, but omega has shape {first.shape}; they are pairs of frequencies."
            )
        shift = _phases("phase", self.phase, first.shape[1])
        shift2 = _phases("phase2", self.phase2, first.shape[1])
        if shift2 is not None and (shift is None or second is None):
            raise InvalidInputError(
                "phase2 belongs to phase and omega2, but one of them is None; give both, or leave it."
            )
        return _Waves(first, second, shift, shift2)

    def _gram(self, X: Array, Y: Array) -> Array:
        waves = self._waves(X)
        left = waves.features(X)
        return left @ (left if Y is X else waves.features(Y)).T

    def _diag(self, X: Array) -> Array:
        features = self._waves(X).features(X)
        return np.einsum("ij,ij->i", features, features)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        waves = self._waves(X)
        return waves.pull_back(X, M @ waves.features(Y))


def _phases(name: str, value: Any, D: int) -> Array | None:
    if value is None:
        return None
    phases = check_points(np.atleast_2d(np.asarray(value, dtype=np.float64)), name=name)[0]
    if np.ndim(value) != 1 or phases.shape != (D,):
        raise InvalidInputError(
            f"{name} has shape {np.shape(value)}, but there are {D} frequencies; one phase for each."
        )
    return phases
