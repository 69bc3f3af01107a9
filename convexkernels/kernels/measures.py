"""Spectral measures: distributions of random frequencies, each with the kernel that is its Fourier transform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.tensor_matern import TensorMatern


@dataclass(frozen=True)
class Measure:
    """A distribution of frequencies, and its kernel ``k(x - y) = E cos(w'(x - y))`` [LLW20 (2)] by Bochner's theorem.

    Attributes
    ----------
    draw : callable
        ``draw(rng, n_features, count)``: independent columns of scale 1, an array of shape (n_features, count).
    kernel : callable
        sigma -> the kernel of these frequencies times sigma.
    has_long_tails : bool
        Whether a root mean square says little of the size of most frequencies.
    """

    draw: Callable[[Any, int, int], Array]
    kernel: Callable[[float], Kernel]
    has_long_tails: bool = True


def student(degrees: int) -> Measure:
    """Multivariate t with 2 nu degrees of freedom, whose kernel is the Matern kernel of smoothness nu and length 1.

    Its r is ``sqrt(2 nu) sigma |x - y|``. A column of normal numbers over the root of one chi-squared number.
    """

    def draw(rng: Any, n_features: int, count: int) -> Array:
        normal = rng.standard_normal((n_features, count))
        return np.asarray(normal / np.sqrt(rng.chisquare(degrees, count) / degrees))

    return Measure(draw, lambda sigma: Matern((degrees + 1) / 2, 1.0 / (sigma * degrees**0.5)))


MEASURES = {
    "gaussian": Measure(
        lambda rng, n_features, count: np.asarray(rng.standard_normal((n_features, count))),
        lambda sigma: Gaussian(0.5 * sigma**2),
        has_long_tails=False,
    ),
    "student-1": student(1),
    "student-3": student(3),
    "student-5": student(5),
    "cauchy": Measure(
        lambda rng, n_features, count: np.asarray(rng.standard_cauchy((n_features, count))),
        lambda sigma: TensorMatern(1, 1.0 / sigma),
    ),
}


def measure_of(name: Any) -> Measure:
    """The measure of a name, or a refusal that lists the names."""
    if not isinstance(name, str) or name not in MEASURES:
        raise InvalidInputError(f"measure must be one of {', '.join(MEASURES)}, got {name!r}.")
    return MEASURES[name]
