"""Spectral kernels with few frequencies, which are the unknowns."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.families.curved.base import CurvedFamily, CurvedGram, CurvedGramSet, whole
from convexkernels.kernels.spectral import Spectral
from convexkernels.validation import check_number, check_whole_number

# Standard deviation of the frequencies of start 0, over the inverse root mean square distance; drawn for the others.
REACH = 1.5


class SpectralMaps(CurvedFamily):
    """``K = Phi Phi'`` for the features psi of :class:`Spectral`; z are the frequencies, all of them.

    With the value of the training problem as criterion the weights are exact at every step (variable projection), the
    other search than training frequencies and weights together. A step takes the memory and time of dense matrices.

    Parameters
    ----------
    n_components : int, >= 1
        Number of frequencies, or of pairs of them.
    stationary : bool
        Whether the kernel depends on differences of points only.
    sigma : float, > 0, optional
        Standard deviation of the frequencies that a search starts from; by the distances of the points when not given.
    """

    def __init__(self, n_components: int = 50, stationary: bool = False, sigma: float | None = None) -> None:
        self.n_components = check_whole_number("n_components", n_components, low=1)
        self.stationary = bool(stationary)
        self.sigma = None if sigma is None else check_number("sigma", sigma, low=0.0, open_low=True)

    def __repr__(self) -> str:
        return f"SpectralMaps({self.n_components}, stationary={self.stationary}, sigma={self.sigma})"

    def on(self, X: Array) -> SpectralMapsGramSet:
        return SpectralMapsGramSet(self, X)


class SpectralMapsGramSet(CurvedGramSet):
    """Gram matrices of spectral kernels on given points."""

    def __init__(self, family: SpectralMaps, X: Array) -> None:
        super().__init__(family, X)
        self.n_unknowns = X.shape[1] * family.n_components * (1 if family.stationary else 2)

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        """Frequencies from N(0, sigma^2); where sigma is not given, for `k` > 0 half to four times as large ones."""
        rng = rng.spawn(k + 1)[k]
        sigma = self.family.sigma
        if sigma is None:
            distance = float(np.sqrt(2.0 * self.X.var(axis=0).sum()))
            sigma = REACH / max(distance, 1e-12) * (1.0 if k == 0 else 2.0 ** rng.uniform(-1.0, 2.0))
        return sigma * rng.standard_normal(self.n_unknowns)

    def at(self, z: Array, dtype: Any = np.float64) -> SpectralMapsAt:
        return SpectralMapsAt(self, z, dtype)

    def kernel(self, z: Array) -> Spectral:
        omega = z.reshape(self.X.shape[1], -1)
        D = self.family.n_components
        return Spectral(omega) if self.family.stationary else Spectral(omega[:, :D], omega[:, D:])


class SpectralMapsAt(CurvedGram):
    """The kernel with one choice of frequencies."""

    def __init__(self, gram_set: SpectralMapsGramSet, z: Array, dtype: Any) -> None:
        self.kernel, self.X, self.dtype = gram_set.kernel(z), gram_set.X, dtype
        self.features = self.kernel.transform(self.X)

    def gram(self, *, lower: bool = False) -> Array:
        return (self.features @ self.features.T).astype(self.dtype, copy=False)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        return self.kernel.frequency_gradient(self.X, 2.0 * (whole(M, lower) @ self.features)).ravel()
