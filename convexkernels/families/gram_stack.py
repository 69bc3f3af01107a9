"""Stores of many Gram matrices on the same points: packed in memory, or made again when they are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases import monomial_basis
from convexkernels.bases.tessellation import Tessellation
from convexkernels.bases.tessellation_stack import tessellated_stack
from convexkernels.kernels.algebra import OnColumns
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import squared_distances
from convexkernels.kernels.gaussian import NEGLIGIBLE, Gaussian
from convexkernels.kernels.normalized import Centered
from convexkernels.kernels.tessellated import TessellatedKernel
from convexkernels.threads import in_parts
from convexkernels.validation import available_memory, check_memory, check_number

__all__ = ["GramStack", "PackedStack", "StreamedStack", "make_stack"]


# Tessellated kernels that share a tessellation are computed together from this number on.
SHARED_FROM = 4
# Rows of a matrix that is made and forgotten at once.
CHUNK = 512


class GramStack(ABC):
    """The symmetric matrices ``scales[k] K_k``, k < l, on m points.

    Attributes
    ----------
    l, m : int
    scales : ndarray of shape (l,)
        Factors applied to the matrices; set with `rescale`.
    """

    l: int  # noqa: E741 - the number of kernels in all papers
    m: int
    scales: Array

    @abstractmethod
    def combine(self, weights: Array, out: Array) -> Array:
        """Write ``sum_k weights[k] scales[k] K_k`` to `out`, shape (m, m)."""

    @abstractmethod
    def weigh(self, W: Array) -> Array:
        """``sum_r w_r' scales[k] K_k w_r`` for the rows w_r of `W` and every k, shape (l,)."""

    @abstractmethod
    def pullback(self, M: Array) -> Array:
        """``<M, scales[k] K_k>`` for a symmetric matrix M and every k, shape (l,)."""

    @abstractmethod
    def apply(self, w: Array, rows: Index) -> Array:
        """Entries `rows` (ascending) of ``scales[k] K_k w``, shape (n_rows, l)."""

    @abstractmethod
    def diagonals(self) -> Array:
        """Diagonals of the ``scales[k] K_k``, shape (l, m)."""

    def rescale(self, factors: Array) -> None:
        """Multiply the matrices by factors, shape (l,)."""
        self.scales = self.scales * factors

    def matrix(self, k: int) -> Array:
        """``scales[k] K_k`` in float64."""
        weights = np.zeros(self.l)
        weights[k] = 1.0
        return self.combine(weights, np.empty((self.m, self.m)))


class PackedStack(GramStack):
    """Lower triangles in memory, l m (m + 1) / 2 numbers of float64 or float32."""

    def __init__(self, values: Array, m: int) -> None:
        self.values = values
        self.l, self.m = values.shape[0], m
        self.scales = np.ones(self.l)

    def combine(self, weights: Array, out: Array) -> Array:
        from convexkernels.families.packed import BLOCK, combine_packed, mirror

        active = np.flatnonzero(weights)
        in_parts(combine_packed, self.m, self.values, active, weights[active] * self.scales[active], out)
        in_parts(mirror, -(-self.m // BLOCK), out)
        return out

    def weigh(self, W: Array) -> Array:
        from convexkernels.families.packed import weigh_packed

        rows = np.flatnonzero(W.any(axis=0))
        support = W[:, rows]
        result = np.empty(self.l)
        in_parts(weigh_packed, self.l, self.values, rows, support.T @ support, result)
        return self.scales * result

    def pullback(self, M: Array) -> Array:
        from convexkernels.families.packed import weigh_packed

        result = np.empty(self.l)
        in_parts(weigh_packed, self.l, self.values, np.arange(self.m), M, result)
        return self.scales * result

    def apply(self, w: Array, rows: Index) -> Array:
        from convexkernels.families.packed import apply_packed

        used = np.union1d(np.flatnonzero(w), rows)
        images = np.empty((self.l, used.size))
        in_parts(apply_packed, self.l, self.values, used, w[used], images)
        return (self.scales[:, None] * images[:, np.searchsorted(used, rows)]).T

    def diagonals(self) -> Array:
        i = np.arange(self.m)
        return self.scales[:, None] * self.values[:, i * (i + 1) // 2 + i].astype(np.float64)


class StreamedStack(GramStack):
    """Matrices made from their kernels every time they are used; memory for a few rows of one matrix."""

    def __init__(self, kernels: Sequence[Kernel], X: Array) -> None:
        self.kernels = kernels
        self.X = X
        self.l, self.m = len(kernels), X.shape[0]
        self.scales = np.ones(self.l)

    def combine(self, weights: Array, out: Array) -> Array:
        for start in range(0, self.m, CHUNK):
            rows = np.ascontiguousarray(self.X[start : start + CHUNK])
            total = np.zeros((len(rows), self.m))
            for k in np.flatnonzero(weights).tolist():
                total += weights[k] * self.scales[k] * self.kernels[k](rows, self.X)
            out[start : start + CHUNK] = total
        return out

    def weigh(self, W: Array) -> Array:
        support = np.flatnonzero(W.any(axis=0))
        if support.size == 0:
            return np.zeros(self.l)
        points, W = np.ascontiguousarray(self.X[support]), W[:, support]
        result = np.zeros(self.l)
        for start in range(0, support.size, CHUNK):
            rows, left = np.ascontiguousarray(points[start : start + CHUNK]), W[:, start : start + CHUNK]
            for k, kernel in enumerate(self.kernels):
                result[k] += np.vdot(left, W @ kernel(rows, points).T)
        return self.scales * result

    def pullback(self, M: Array) -> Array:
        result = np.zeros(self.l)
        for start in range(0, self.m, CHUNK):
            rows = np.ascontiguousarray(self.X[start : start + CHUNK])
            for k, kernel in enumerate(self.kernels):
                result[k] += np.vdot(M[start : start + CHUNK], kernel(rows, self.X))
        return self.scales * result

    def apply(self, w: Array, rows: Index) -> Array:
        support = np.flatnonzero(w)
        images = np.zeros((rows.size, self.l))
        if support.size == 0 or rows.size == 0:
            return images
        points, targets = np.ascontiguousarray(self.X[support]), np.ascontiguousarray(self.X[rows])
        for k, kernel in enumerate(self.kernels):
            for start in range(0, rows.size, CHUNK):
                part = np.ascontiguousarray(targets[start : start + CHUNK])
                images[start : start + CHUNK, k] = kernel(part, points) @ w[support]
        return images * self.scales

    def diagonals(self) -> Array:
        return self.scales[:, None] * np.array([kernel.diag(self.X) for kernel in self.kernels])


def make_stack(
    kernels: Sequence[Kernel], X: Array, *, memory_limit: float | None, dtype: Any, what: str = "candidate"
) -> GramStack:
    """The Gram matrices of kernels on the rows of X, in the most exact form that fits the memory limit.

    float64 if that fits (and `dtype` asks for no less), else float32, else nothing is stored.

    Raises
    ------
    MemoryLimitError
        When not even the sum of the matrices fits.
    """
    m, count = X.shape[0], len(kernels)
    pairs = m * (m + 1) // 2
    # The sum, its factorization and one more matrix while the stack is filled; never a kernel's own work space.
    working = 4.0 * 8.0 * m * m
    check_memory(
        working,
        memory_limit,
        what=f"learning with {count} {what} kernels on {m} rows",
        remedy="Use fewer rows or a larger memory_limit.",
    )
    # Half of what is free is left to others unless a limit was given.
    allowed = (0.5 * available_memory() if memory_limit is None else float(memory_limit)) - working
    for stored in (np.float64, np.float32):
        if (
            np.dtype(stored).itemsize <= np.dtype(dtype).itemsize
            and count * pairs * np.dtype(stored).itemsize <= allowed
        ):
            values = np.empty((count, pairs), dtype=stored)
            _fill(values, kernels, X)
            return PackedStack(values, m)
    return StreamedStack(kernels, X)


def _fill(values: Array, kernels: Sequence[Kernel], X: Array) -> None:
    """Write the packed matrices of the kernels; those centered on X as their inner kernels, centered afterwards."""
    from convexkernels.families.packed import pack_symmetric

    centered = [k for k, kernel in enumerate(kernels) if isinstance(kernel, Centered) and kernel.points is X]
    if centered and values.dtype == np.float64:  # float32 keeps too few digits of what centering takes away
        _fill(values, [kernel.kernel if k in set(centered) else kernel for k, kernel in enumerate(kernels)], X)
        for k in centered:
            kernels[k].grand_mean = _center_packed(values[k], X.shape[0])
        return
    rest = set(range(len(kernels)))
    for group in _shared_tessellations(kernels):
        kernel = kernels[group[0]]
        basis = monomial_basis(X.shape[1], kernel.degree, kernel.z_degree)
        tessellation = Tessellation(basis, np.asarray(kernel.lower, float), np.asarray(kernel.upper, float))
        first, last = group[0], group[-1] + 1
        target = values[first:last] if last - first == len(group) else np.empty((len(group), values.shape[1]))
        matrices = [np.asarray(kernels[k].P, dtype=np.float64) for k in group]
        tessellated_stack(tessellation, tessellation.points(X), matrices, target)
        if last - first != len(group):
            values[group] = target
        rest -= set(group)
    for columns, gaussians in _shared_distances(kernels).items():
        points = X if columns is None else np.ascontiguousarray(X[:, columns])
        distances = np.empty(values.shape[1])
        rates = [gamma for _, gamma in gaussians]
        pack_symmetric(squared_distances(points, points, max(rates), NEGLIGIBLE / min(rates)), 1.0, distances)
        for k, gamma in gaussians:
            with np.errstate(over="ignore"):
                values[k] = np.exp(-gamma * distances)
        rest -= {k for k, _ in gaussians}
    for k in sorted(rest):
        pack_symmetric(kernels[k](X), 1.0, values[k])


def _center_packed(packed: Array, m: int) -> float:
    """Subtract row and column means from a packed matrix in place; returns the mean it had."""
    from convexkernels.families.packed import pack_symmetric

    K = np.zeros((m, m))
    low = np.tril_indices(m)
    K[low] = packed
    K.T[low] = packed
    means = K.mean(axis=0)
    grand = float(means.mean())
    K -= means[:, None]
    K -= means[None, :]
    K += grand
    pack_symmetric(K, 1.0, packed)
    return grand


def _shared_tessellations(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Positions of tessellated kernels that differ in P only, where there are several."""
    groups: dict[Any, list[int]] = {}
    for k, kernel in enumerate(kernels):
        if isinstance(kernel, TessellatedKernel):
            box = (np.asarray(kernel.lower, float).tobytes(), np.asarray(kernel.upper, float).tobytes())
            groups.setdefault((*box, kernel.degree, kernel.z_degree), []).append(k)
    return [group for group in groups.values() if len(group) >= SHARED_FROM]


def _shared_distances(kernels: Sequence[Kernel]) -> dict[tuple[int, ...] | None, list[tuple[int, float]]]:
    """Positions and rates of Gaussians that see the same columns, where there are several."""
    groups: dict[tuple[int, ...] | None, list[tuple[int, float]]] = {}
    for k, kernel in enumerate(kernels):
        columns, inner = (tuple(kernel.columns), kernel.kernel) if isinstance(kernel, OnColumns) else (None, kernel)
        if type(inner) is Gaussian:
            gamma = check_number("gamma", inner.gamma, low=0.0, open_low=True)
            groups.setdefault(columns, []).append((k, gamma))
    return {columns: group for columns, group in groups.items() if len(group) > 1}
