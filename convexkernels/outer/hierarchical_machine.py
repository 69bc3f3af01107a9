"""A kernel machine with the learned hierarchical kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexkernels.kernels.hierarchical_tree import KernelTree
from convexkernels.losses.base import Loss

__all__ = ["AveragedMachine", "HierarchicalMachine", "PairwiseMachine", "train_machine"]

Array = NDArray[np.float64]

# Rows that are predicted at once.
CHUNK = 2048


@dataclass(frozen=True, eq=False)
class HierarchicalMachine:
    """``f(x) = sum_i W_ik k(x_i, x) + b_k``, clipped.

    Attributes
    ----------
    tree : KernelTree
    squares : ndarray of shape (n_weights,)
        Squared weights of the kernel.
    points : ndarray of shape (s, n_features)
        Training points with a coefficient other than 0.
    support : ndarray of int, shape (s,)
        Their rows in the training table.
    W : ndarray of shape (s, outputs)
    b : ndarray of shape (outputs,)
    clip : float
        inf where values are left as they are.
    """

    tree: KernelTree
    squares: Array
    points: Array
    support: NDArray[np.intp]
    W: Array
    b: Array
    clip: float

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, outputs)."""
        F = np.empty((len(X), len(self.b)))
        for start in range(0, len(X), CHUNK):
            part = slice(start, start + CHUNK)
            F[part] = self.tree.evaluate(self.squares, X[part], self.points).gram() @ self.W + self.b
        return np.clip(F, -self.clip, self.clip)


def train_machine(
    tree: KernelTree,
    squares: Array,
    X: Array,
    Y: Array,
    weights: Array,
    loss: Loss,
    offset: Array,
    clip: float | None,
    tol: float = 1e-5,
) -> HierarchicalMachine:
    """Train on all rows.

    Parameters
    ----------
    tree, squares
        The kernel.
    X : ndarray of shape (m, n)
    Y : ndarray of shape (m, outputs)
    weights : ndarray of shape (m,), > 0
    loss : Loss
    offset : ndarray of shape (outputs,)
        The machine learns ``Y - offset``.
    clip : float or None
    tol : float
        Relative duality gap.
    """
    K = tree.evaluate(squares, X).gram()
    centred = np.ascontiguousarray((Y - offset).T)
    alpha = loss.maximise_all(K, centred, weights, tol=tol)
    w = np.array([loss.coefficients(a, y) for a, y in zip(alpha, centred, strict=True)])
    b = offset.astype(np.float64).copy()
    if loss.intercept:
        for k, (c, y) in enumerate(zip(w, centred, strict=True)):
            f = K @ c
            b[k] += loss.primal(f, float(c @ f), y, weights)[1]
    support = np.flatnonzero(np.abs(w).max(axis=0) > 0.0)
    kept = support if support.size else np.array([0])
    return HierarchicalMachine(
        tree, squares, X[kept], kept, np.ascontiguousarray(w[:, kept].T), b, np.inf if clip is None else clip
    )


@dataclass(frozen=True, eq=False)
class AveragedMachine:
    """The mean of the decision functions of several machines, as the paper averages those of five folds."""

    machines: Sequence[HierarchicalMachine]

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, outputs)."""
        return np.mean([machine.values(X) for machine in self.machines], axis=0)


@dataclass(frozen=True, eq=False)
class PairwiseMachine:
    """One machine for every pair of classes; positive values speak for the first of the two.

    Attributes
    ----------
    pairs : dict of (int, int) to HierarchicalMachine
    n_classes : int
    """

    pairs: Mapping[tuple[int, int], HierarchicalMachine]
    n_classes: int

    def values(self, X: Array) -> Array:
        """Sums of the values, clipped to [-1, 1], that speak for each class, shape (n_samples, n_classes)."""
        scores = np.zeros((len(X), self.n_classes))
        for (i, j), machine in self.pairs.items():
            value = np.clip(machine.values(X)[:, 0], -1.0, 1.0)
            scores[:, i] += value
            scores[:, j] -= value
        return scores
