"""The feature maps of spectral kernels with their derivatives, on any backend."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from convexkernels.arrays import NORMAL_MEDIAN, Array
from convexkernels.backend import Backend, to_numpy
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.measures import measure_of
from convexkernels.validation import check_whole_number

# The exact map, one shared phase per pair of frequencies, and the printed map with two.
FEATURE_MAPS = ("psi", "phi", "printed")


@dataclass(frozen=True, eq=False)
class SpectralMap:
    """Frequencies and phases of the features [LLW20 (6)], both bands in one matrix: one product serves them.

    Attributes
    ----------
    omega : array of shape (n_features, D) or (n_features, 2 D)
        Omega, beside it Omega2 when the kernel is not stationary.
    phase : array of shape (D,) or (2 D,), or None
        None for the exact map psi.
    D : int
        Number of frequencies, or of pairs of them.
    backend : Backend
    measure : str
        What the frequencies were drawn from, a name of `MEASURES`.
    steps : array of shape (n_features,), or None
        What steps of the frequencies of every feature are relative to, where these were multiplied by factors of their
        own when they were drawn.
    """

    omega: Any
    phase: Any
    D: int
    backend: Backend = field(default_factory=lambda: Backend("float64"))
    measure: str = "gaussian"
    steps: Array | None = None

    @classmethod
    def draw(
        cls,
        n_features: int,
        n_components: int,
        *,
        stationary: bool,
        feature_map: str,
        rng: Any,
        backend: Backend,
        measure: str = "gaussian",
    ) -> SpectralMap:
        """Frequencies of scale 1 from a measure, N(0, 1) by default; multiply by sigma with :meth:`scaled`."""
        if feature_map not in FEATURE_MAPS:
            raise InvalidInputError(f"feature_map must be one of {', '.join(FEATURE_MAPS)}, got {feature_map!r}.")
        D = check_whole_number("n_components", n_components, low=1)
        omega = measure_of(measure).draw(rng, n_features, D if stationary else 2 * D)
        phase = None
        if feature_map != "psi":
            first = rng.uniform(0.0, 2.0 * np.pi, D)
            other = rng.uniform(0.0, 2.0 * np.pi, D) if feature_map == "printed" else first
            phase = backend.array(first if stationary else np.concatenate([first, other]))
        return cls(backend.array(omega), phase, D, backend, measure)

    @property
    def is_stationary(self) -> bool:
        return self.omega.shape[1] == self.D

    @property
    def width(self) -> int:
        """Number of features."""
        return self.D if self.phase is not None else 2 * self.D

    @property
    def scale(self) -> float:
        """Factor of the sums of cosines, (2D)^(-1/2) or (4D)^(-1/2); a single one counts as two equal ones."""
        factor = 2.0 if self.is_stationary else 1.0
        return factor / float(np.sqrt((2.0 if self.phase is not None else 4.0) * self.D))

    def scaled(self, sigma: float) -> SpectralMap:
        """All frequencies times `sigma`, and what steps are relative to."""
        steps = None if self.steps is None else self.steps * float(sigma)
        return replace(self, omega=self.omega * float(sigma), steps=steps)

    def weighed(self, factors: Array, steps: Array | None = None) -> SpectralMap:
        """The frequencies of every feature times a factor of its own.

        Steps are relative to their size before, times `steps`, or the factors.
        """
        steps = self.size() * np.asarray(factors if steps is None else steps)
        return replace(self, omega=self.omega * self.by_feature(factors), steps=steps)

    def on(self, backend: Backend) -> SpectralMap:
        """The same map on another backend."""
        phase = None if self.phase is None else backend.array(self.phase)
        return SpectralMap(backend.array(self.omega), phase, self.D, backend, self.measure, self.steps)

    def size(self) -> float:
        """Root mean square of the frequencies; of a Gaussian of the same medians where their measure has long tails."""
        if measure_of(self.measure).has_long_tails:
            medians = np.median(np.abs(to_numpy(self.omega)), axis=1) / NORMAL_MEDIAN
            return float(np.sqrt(np.mean(medians.astype(np.float64) ** 2)))
        unit = 2.0 ** (math.frexp(float(abs(self.omega).max()))[1] - 1)  # squares of small numbers vanish
        squares = float(self.backend.xp.sum((self.omega / unit) ** 2))
        return unit * math.sqrt(squares / max(1, math.prod(self.omega.shape)))

    def reach(self) -> Any:
        """What steps of the frequencies are relative to: a number, their size, or like `omega` up to broadcasting.

        The `steps` stay what they were: where training has moved frequencies that a small factor had damped, ratios to
        the factors say nothing any more.
        """
        return (self.size() or 1e-30) if self.steps is None else self.by_feature(self.steps)

    def by_feature(self, columns: Array) -> Any:
        """Numbers of the features, shape (n_features,), like `omega` up to broadcasting."""
        return self.backend.array(columns)[:, None]

    def slope_units(self, columns: Array) -> Any:
        """How slopes of the frequencies grow with units of the features, shape (n_features,)."""
        return self.by_feature(columns)

    def with_omega(self, omega: Any) -> SpectralMap:
        """The same map with other frequencies."""
        return replace(self, omega=omega)

    def __call__(self, X: Any) -> Features:
        """The features of the rows of `X`."""
        return Features(self, X)


class Features:
    """Features of some points, their `values`, and the way back from a derivative to frequencies and points."""

    def __init__(self, spectral_map: SpectralMap, X: Any) -> None:
        self.map, self.X = spectral_map, X
        self.angles = X @ spectral_map.omega
        if spectral_map.phase is not None:
            self.angles += spectral_map.phase
        xp = spectral_map.backend.xp
        values = self._folded(xp.cos(self.angles))
        if spectral_map.phase is None:
            values = xp.concat([values, self._folded(xp.sin(self.angles))], axis=1)
        values *= spectral_map.scale
        self.values = values

    def _folded(self, both: Any) -> Any:
        """The sum of both bands."""
        if self.map.is_stationary:
            return both
        folded = both[:, : self.map.D]
        folded += both[:, self.map.D :]
        return folded

    def angle_gradient(self, slope: Any) -> Any:
        """Gradient in ``Omega'x + b``, shape (m, D) or (m, 2 D), of the sum of ``slope * values``.

        To be asked for once: on the processor the angles make room for their sines, since a fresh array of that size
        costs as much as filling it.
        """
        xp, D, scale = self.map.backend.xp, self.map.D, self.map.scale
        in_place = self.map.backend.is_numpy and self.map.phase is not None
        along = np.sin(self.angles, out=self.angles) if in_place else xp.sin(self.angles)
        along *= -scale
        bands = range(0, along.shape[1], D)
        for start in bands:
            along[:, start : start + D] *= slope[:, :D]
        if self.map.phase is None:
            cosines = xp.cos(self.angles)
            cosines *= scale
            for start in bands:
                along[:, start : start + D] += cosines[:, start : start + D] * slope[:, D:]
        return along

    def gradient(self, slope: Any) -> Any:
        """The same in ``map.omega`` [LLW20 (9)]: D is diag(-scale sin(..)), not its inverse."""
        return self.X.T @ self.angle_gradient(slope)

    def both_gradients(self, slope: Any) -> tuple[Any, Any]:
        """That, and the gradient in the points, shape (m, n_features)."""
        along = self.angle_gradient(slope)
        return self.X.T @ along, along @ self.map.omega.T
