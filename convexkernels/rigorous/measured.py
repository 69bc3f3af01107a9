"""What a family tells about a point, enclosed."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from convexkernels.arrays import Array
from convexkernels.rigorous.rounding import UNDERFLOW, U, sum_above


@dataclass(frozen=True, eq=False)
class Measured:
    """Enclosures for coefficients W (of functions) and V (of a lower bound), rows being outputs.

    Attributes
    ----------
    theta : ndarray
        The parameter behind the functions: weights, or G of the parameter matrix ``G G'``. Its sum, or trace, is not
        exactly what the family asks for; that is charged to the norms.
    values, radius : ndarray of shape (n_outputs, m)
        Approximate ``(K + defect I) w`` at theta, up to a constant where a family leaves constants out.
    norms : ndarray of shape (n_outputs,)
        Upper bounds of the squared norms, in the feasible kernel.
    defect : float
        ``K(theta) + defect I`` is positive semidefinite.
    support, charged : float
        Upper bound of the support function at ``A*(V'V)``, and how much of it is error bounds.
    """

    theta: Array
    values: Array
    radius: Array
    norms: Array
    defect: float
    support: float
    charged: float


class EnclosedFamily(Protocol):
    """The Gram matrices of a family on the training points."""

    def measure(self, theta: Array, W: Array, V: Array) -> Measured:
        """Enclose what belongs to theta and W, and the support function at V."""


def quadratics_above(W: Array, values: Array, radius: Array) -> Array:
    """Upper bounds of ``w'f`` for all f within `radius` of `values`, one per row."""
    spread = np.abs(W) * (radius + 2.0 * U * np.abs(values)) + UNDERFLOW
    return np.array(
        [max(0.0, sum_above(np.concatenate([w * f, s]))) for w, f, s in zip(W, values, spread, strict=True)]
    )
