"""Learned functions, reduced to what evaluating them takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.families.base import Crossing
from convexkernels.kernels.base import Kernel
from convexkernels.validation import refuse_other_tables

# Rows evaluated at once: the matrix between them and the support vectors stays small.
CHUNK = 2048


class TrainedFunction(Protocol):
    """What training leaves: of one problem, of a cell, of all cells, or the mean or the vote of several."""

    def values(self, X: Any) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""


@dataclass(frozen=True, eq=False)
class OnPoints:
    """A kernel and the points it is compared with; the parameter of a family plays no part."""

    kernel: Kernel
    points: Array

    def cross(self, theta: Array, Z: Any) -> Array:
        """Matrix ``k(z_i, x_j)``."""
        return self.kernel(Z, self.points)


@dataclass(frozen=True, eq=False)
class DecisionFunction:
    """The functions ``f_k(x) = sum_i W_ki k(x_i, x) + b_k``, with the points of nonzero coefficients only.

    The form that the representer theorem gives the solution [BGR19 (2)].

    Attributes
    ----------
    gram_set : Crossing
        The kernel on the support vectors, for ``cross``.
    theta : ndarray
        Its parameter.
    W : ndarray of shape (n_outputs, n_support)
    b : ndarray of shape (n_outputs,)
        Intercepts that go with ``gram_set.cross``.
    support : ndarray of int, shape (n_support,)
        Rows of the training table: those with a nonzero coefficient in some output.
    single : bool
        Whether there is one output, for a vector of targets.
    bounds : pair of ndarray of shape (n_outputs, 1), optional
        Least and largest value of each output.
    """

    gram_set: Crossing
    theta: Array
    W: Array
    b: Array
    support: Index
    single: bool
    bounds: tuple[Array, Array] | None = None

    @classmethod
    def of_kernel(
        cls, kernel: Kernel, X: Array, W: Array, b: Array, *, single: bool = False, bounds: Any = None
    ) -> DecisionFunction:
        """The function with coefficients `W`, shape (n_outputs, m), on the rows of `X`."""
        support = np.flatnonzero(W.any(axis=0))
        points = OnPoints(kernel, X[support])
        return cls(points, np.zeros(0), np.ascontiguousarray(W[:, support]), b, support, single, bounds)

    def coefficients(self, m: int) -> Array:
        """Coefficients of all m rows of the training table, shape (n_outputs, m)."""
        W = np.zeros((len(self.b), m))
        W[:, self.support] = self.W
        return W

    def values(self, X: Any) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        refuse_other_tables(X)
        X = np.asarray(X)
        size = X.shape[-2] if X.ndim > 1 else len(X)
        if not self.support.size:
            F = np.tile(self.b, (size, 1))
        else:  # rows of a table, or of a stack with a table for each kernel; anything else is refused by the kernel
            starts = range(0, max(size, 1), CHUNK)
            parts = [X[..., start : start + CHUNK, :] for start in starts] if X.ndim > 1 else [X]
            F = np.concatenate([self.gram_set.cross(self.theta, part) @ self.W.T + self.b for part in parts])
        return F if self.bounds is None else np.clip(F, self.bounds[0].T, self.bounds[1].T)

    def decision_function(self, X: Any) -> Array:
        """Values at the rows of `X`, shape (n_samples,) or (n_samples, n_outputs)."""
        values = self.values(X)
        return values[:, 0] if self.single else values
