"""Learned machines, reduced to what evaluating them takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.families.base import Crossing

__all__ = ["Machine"]

Array = NDArray[np.float64]

# Rows evaluated at once: the matrix between them and the support vectors stays small.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Machine:
    """The functions ``f_k(x) = sum_i w_ki k(x_i, x) + b_k``, with the points of nonzero coefficients only.

    The form that the representer theorem gives the solution [BGR19 (2)].

    Attributes
    ----------
    gram_set : Crossing
        The family on the support vectors, for ``cross``.
    theta : ndarray
        The kernel.
    W : ndarray of shape (n_machines, n_support)
    b : ndarray of shape (n_machines,)
        Intercepts that go with ``gram_set.cross``.
    support : ndarray of int, shape (n_support,)
        Rows of the training table: those with a nonzero coefficient in some machine.
    single : bool
        Whether there is one machine, for a vector of targets.
    """

    gram_set: Crossing
    theta: Array
    W: Array
    b: Array
    support: NDArray[np.intp]
    single: bool

    def decision_function(self, X: Any) -> Array:
        """Values at the rows of `X`, shape (n_samples,) or (n_samples, n_machines)."""
        rows = len(X)
        parts = [
            self.gram_set.cross(self.theta, X[start : start + CHUNK]) @ self.W.T + self.b
            for start in range(0, max(rows, 1), CHUNK)
        ]
        values = np.concatenate(parts)
        return values[:, 0] if self.single else values
