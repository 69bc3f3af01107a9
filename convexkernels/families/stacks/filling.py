"""Filling a stack with the Gram matrices of kernels, where kernels share work together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.monomials import monomial_basis
from convexkernels.bases.tessellation.gram import Tessellation
from convexkernels.bases.tessellation.stack import tessellated_stack
from convexkernels.families.stacks.base import GramStack, PackedStack, StreamedStack
from convexkernels.families.stacks.packed import pack_symmetric
from convexkernels.kernels.algebra import OnColumns
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import squared_distances
from convexkernels.kernels.gaussian import NEGLIGIBLE, Gaussian
from convexkernels.kernels.normalized import Centered
from convexkernels.kernels.tessellated import TessellatedKernel
from convexkernels.validation import available_memory, check_memory, check_number

# Tessellated kernels that share a tessellation are computed together from this number on.
SHARED_FROM = 4


def make_stack(kernels: Sequence[Kernel], X: Array, *, memory_limit: float | None, dtype: Any) -> GramStack:
    """The Gram matrices of kernels on the rows of X, in the most exact form that fits the memory limit.

    float64 if that fits (and `dtype` asks for no less), else float32, else nothing is stored. Refused where not even
    the sum of the matrices fits.
    """
    m, count = X.shape[0], len(kernels)
    pairs = m * (m + 1) // 2
    # The sum, its factorization and one more matrix while the stack is filled; never a kernel's own work space.
    working = 4.0 * 8.0 * m * m
    check_memory(
        working,
        memory_limit,
        what=f"learning with {count} candidate kernels on {m} rows",
        remedy="Use fewer rows or a larger memory_limit.",
    )
    # Half of what is free is left to others unless a limit was given.
    allowed = (0.5 * available_memory() if memory_limit is None else float(memory_limit)) - working
    for stored in (np.float64, np.float32):
        size = np.dtype(stored).itemsize
        if size <= np.dtype(dtype).itemsize and count * pairs * size <= allowed:
            values = np.empty((count, pairs), dtype=stored)
            _fill(values, kernels, X)
            return PackedStack(values, m)
    return StreamedStack(kernels, X)


def _fill(values: Array, kernels: Sequence[Kernel], X: Array) -> None:
    """Write the packed matrices of the kernels; those centered on X as what varies of their inner kernels, centered."""
    centered = {k for k, kernel in enumerate(kernels) if isinstance(kernel, Centered) and kernel.points is X}
    if values.dtype != np.float64:  # float32 keeps too few digits of what centering takes away
        centered = set()
    inner = [kernel.kernel if k in centered else kernel for k, kernel in enumerate(kernels)]
    done = _fill_tessellated(values, inner, X, centered) | _fill_gaussian(values, inner, X)
    for k in set(range(len(kernels))) - done:
        pack_symmetric(inner[k]._varying(X, X) if k in centered else inner[k](X), 1.0, values[k])
    for k in centered:
        kernels[k].grand = _center_packed(values[k], X.shape[0])


def _fill_tessellated(values: Array, kernels: Sequence[Kernel], X: Array, varying: set[int]) -> set[int]:
    """Write what tessellated kernels that differ in P only can share, some but for constants; their positions."""
    groups: dict[Any, list[int]] = {}
    for k, kernel in enumerate(kernels):
        if isinstance(kernel, TessellatedKernel) and kernel.tasks is None:
            groups.setdefault((*kernel.tessellation_key, k in varying), []).append(k)
    shared = [group for group in groups.values() if len(group) >= SHARED_FROM]
    for group in shared:
        kernel, first, last = kernels[group[0]], group[0], group[-1] + 1
        basis = monomial_basis(X.shape[1], kernel.degree, kernel.z_degree)
        tessellation = Tessellation(basis, np.asarray(kernel.lower, float), np.asarray(kernel.upper, float))
        consecutive = last - first == len(group)
        target = values[first:last] if consecutive else np.empty((len(group), values.shape[1]))
        matrices = [np.asarray(kernels[k].P, dtype=np.float64) for k in group]
        tessellated_stack(tessellation, tessellation.points(X), matrices, target, modulo_constants=first in varying)
        if not consecutive:
            values[group] = target
    return {k for group in shared for k in group}


def _fill_gaussian(values: Array, kernels: Sequence[Kernel], X: Array) -> set[int]:
    """Write what Gaussians that see the same columns can share, their distances; returns their positions."""
    groups: dict[tuple[int, ...] | None, list[tuple[int, float]]] = {}
    for k, kernel in enumerate(kernels):
        columns, inner = (tuple(kernel.columns), kernel.kernel) if isinstance(kernel, OnColumns) else (None, kernel)
        if type(inner) is Gaussian:
            groups.setdefault(columns, []).append((k, check_number("gamma", inner.gamma, low=0.0, open_low=True)))
    shared = {columns: group for columns, group in groups.items() if len(group) > 1}
    for columns, group in shared.items():
        points = X if columns is None else np.ascontiguousarray(X[:, columns])
        distances = np.empty(values.shape[1])
        rates = [gamma for _, gamma in group]
        pack_symmetric(squared_distances(points, points, max(rates), NEGLIGIBLE / min(rates)), 1.0, distances)
        for k, gamma in group:
            with np.errstate(over="ignore"):
                values[k] = np.exp(-gamma * distances)
    return {k for group in shared.values() for k, _ in group}


def _center_packed(packed: Array, m: int) -> float:
    """Subtract row and column means from a packed matrix in place; returns the mean it had."""
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
