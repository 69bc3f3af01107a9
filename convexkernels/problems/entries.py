"""The entries of a matrix as linear functions on a cone, and how far they are from given ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from convexkernels.arrays import Array


@dataclass(frozen=True, eq=False)
class Entries(ABC):
    """``minimize cost'x  over P in a cone and x >= 0  with  <A_k, P> + (B x)_k = target_k``.

    `A` and `target` belong to the entries k on and above the diagonal of a symmetric matrix, `weight` is 1 on the
    diagonal and 2 above it; the A_k of the diagonal sum to the unit of the cone. Targets, P and distances are in units
    of `unit`, the largest target. There may be several equations of every entry, `copies` sets of them one after the
    other. The dual problem is ``maximize target'y`` with ``-sum_k y_k A_k`` in the dual cone and ``cost - B'y >= 0``.
    """

    A: Array
    target: Array
    weight: Array
    unit: float

    copies: ClassVar[int] = 1

    @property
    @abstractmethod
    def B(self) -> Any:
        """What the slacks do in every equation, a sparse matrix."""

    @property
    @abstractmethod
    def cost(self) -> Array:
        """The cost of a unit of every slack."""

    @abstractmethod
    def distance(self, error: Array) -> float:
        """The distance of entries with these errors."""

    @abstractmethod
    def slacks(self, error: Array) -> Array:
        """An x inside that keeps the equations."""

    @abstractmethod
    def inside(self) -> Array:
        """A y inside."""

    @cached_property
    def right(self) -> Array:
        """Right-hand sides of all equations."""
        return np.tile(self.target, self.copies)

    def image(self, P: Array) -> Array:
        """``<A_k, P>``, once for every equation."""
        return np.tile(self.A.reshape(len(self.A), -1) @ P.ravel(), self.copies)

    def error(self, P: Array) -> Array:
        """``<A_k, P> - target_k`` of the entries."""
        return (self.image(P) - self.right)[: len(self.target)]

    def multipliers(self, y: Array) -> Array:
        """Those of the entries, with all equations of each."""
        return np.asarray(y.reshape(self.copies, -1).sum(axis=0))

    def dual(self, y: Array) -> Array:
        """``-sum_k y_k A_k``."""
        return -np.tensordot(self.multipliers(y), self.A, axes=1)


class Mean(Entries):
    """The mean of ``|<A_k, P> - target_k|`` over the matrix; x are the positive and negative parts."""

    @cached_property
    def B(self) -> Any:
        one = sparse.eye_array(len(self.target))
        return sparse.hstack([-one, one], "csr")

    @cached_property
    def cost(self) -> Array:
        return np.tile(self.weight, 2) / self.weight.sum()

    def distance(self, error: Array) -> float:
        return float(self.weight @ np.abs(error) / self.weight.sum())

    def slacks(self, error: Array) -> Array:
        return np.concatenate([np.maximum(error, 0.0), np.maximum(-error, 0.0)]) + 1.0

    def inside(self) -> Array:
        return np.where(self.weight == 1.0, -0.5 / self.weight.sum(), 0.0)


class Largest(Entries):
    """The largest ``|<A_k, P> - target_k|``; x are the rooms above and below every entry, and the distance."""

    copies: ClassVar[int] = 2

    @cached_property
    def B(self) -> Any:
        rooms = sparse.diags_array(np.repeat([1.0, -1.0], len(self.target)))
        distance = np.repeat([[-1.0], [1.0]], len(self.target), axis=0)
        return sparse.hstack([rooms, sparse.csr_array(distance)], "csr")

    @cached_property
    def cost(self) -> Array:
        return np.append(np.zeros(2 * len(self.target)), 1.0)

    def distance(self, error: Array) -> float:
        return float(np.abs(error).max())

    def slacks(self, error: Array) -> Array:
        distance = 2.0 * self.distance(error) + 1.0
        return np.concatenate([distance - error, distance + error, [distance]])

    def inside(self) -> Array:
        heavier = np.where(self.weight == 1.0, 2.0, 1.0)
        return 0.5 * np.concatenate([-heavier, np.ones_like(heavier)]) / (heavier.sum() + len(heavier))
