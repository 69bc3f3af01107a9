"""Learned functions, reduced to what evaluating them takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import NotDifferentiableError
from convexkernels.families.base import Crossing
from convexkernels.kernels.base import Kernel
from convexkernels.validation import refuse_other_tables

# Rows evaluated at once: the matrix between them and the support vectors stays small.
CHUNK = 2048


class TrainedFunction(Protocol):
    """What training leaves: of one problem, of a cell, of all cells, or the mean or the vote of several."""

    def values(self, X: Any) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""


def differences(values: Callable[[Array], Array], X: Array, steps: Array) -> Array:
    """Values half a step ahead minus those half a step back, feature by feature; as `DecisionFunction.changes`."""
    found = []
    for j, step in enumerate(steps.tolist()):
        up, down = X.copy(), X.copy()
        up[:, j] += 0.5 * step
        down[:, j] -= 0.5 * step
        change = values(up) - values(down) if step > 0.0 else np.zeros(len(X))
        found.append(change.reshape(len(X), -1))
    return np.array(np.broadcast_arrays(*found))


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

    def changes(self, X: Array, steps: Array) -> Array:
        """How values change when a feature moves by its step around a row, shape (n_features, n_samples, n_outputs).

        By the derivative where the kernel has one, whose cost does not grow with the number of features as that of
        differences does.
        """
        if not isinstance(self.gram_set, OnPoints) or not self.support.size:
            return differences(self.values, X, steps)
        kernel, points = self.gram_set.kernel, self.gram_set.points
        try:
            slopes = [kernel.pullback(X, points, np.tile(w, (len(X), 1))) * steps for w in self.W]
        except NotDifferentiableError:
            return differences(self.values, X, steps)
        found = np.stack(slopes, axis=-1).transpose(1, 0, 2)
        if self.bounds is None:
            return found
        F = self.values(X)
        return np.where((self.bounds[0].T < F) & (F < self.bounds[1].T), found, 0.0)

    def decision_function(self, X: Any) -> Array:
        """Values at the rows of `X`, shape (n_samples,) or (n_samples, n_outputs)."""
        values = self.values(X)
        return values[:, 0] if self.single else values
