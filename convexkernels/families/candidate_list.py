"""What a user may call a candidate: a kernel, a kernel on some columns, a ready-made matrix."""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.tessellation.gram import Blocks
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.kernels.algebra import OnColumns, WeightedSum
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.normalized import Centered, Normalized, with_mean
from convexkernels.kernels.tessellated import TessellatedKernel
from convexkernels.linalg import smallest_eigenvalue
from convexkernels.validation import check_points

# Share of the largest entry of a P that differences of its blocks have to be for it to be added to others.
LEAST_DIFFERENCE = 0.01


class CandidateList:
    """Candidate kernels as they were given, checked as far as they can be without points.

    The `entries` are (name, Kernel, columns). Ready-made matrices, which must be positive semidefinite where that is
    asked for (`definite`), are :class:`Precomputed` kernels, whose points are the numbers of `n_rows` rows.
    """

    def __init__(self, kernels: Any, definite: bool = True) -> None:
        self.definite = definite
        self.n_rows: int | None = None
        self.entries: list[tuple[str, Kernel, Any]] = []
        if isinstance(kernels, np.ndarray) and kernels.dtype != object:
            self._take_matrices(kernels)
        elif isinstance(kernels, Kernel | str) or not isinstance(kernels, Sequence | np.ndarray) or len(kernels) == 0:
            raise InvalidInputError(
                f"kernels must be a non-empty list of kernels or an array of shape (l, m, m), got {kernels!r}."
            )
        elif all(isinstance(entry, np.ndarray) and entry.ndim == 2 for entry in kernels):
            shapes = sorted({entry.shape for entry in kernels})
            if len(shapes) > 1:
                raise InvalidInputError(f"the Gram matrices in kernels have different shapes: {shapes}.")
            self._take_matrices(np.stack(list(kernels)))
        else:
            self.entries = _with_distinct_names([_entry(k, entry) for k, entry in enumerate(kernels)])

    def _take_matrices(self, stack: Any) -> None:
        matrices = check_matrices(stack, definite=self.definite)
        self.n_rows = matrices.shape[1]
        self.entries = [(str(k), Precomputed(K), None) for k, K in enumerate(matrices)]

    def __len__(self) -> int:
        return len(self.entries)

    def on(self, X: Any) -> tuple[Array, list[Kernel], list[str]]:
        """Points, one kernel per candidate, and their names; row numbers are the points of ready-made matrices."""
        if self.n_rows is not None:
            numbers = row_numbers(self.n_rows)
            if X is not None and not np.array_equal(X, numbers):
                raise InvalidInputError(
                    f"with ready-made Gram matrices X must be None, or the row numbers 0..{self.n_rows - 1} as a "
                    f"column, got an array of shape {np.shape(X)}."
                )
            X = numbers
        elif X is None:
            raise InvalidInputError("X is None, but the candidates are kernels that need points; pass the table.")
        points = check_points(X)
        kernels = [_on_columns(name, kernel, columns, points.shape[1]) for name, kernel, columns in self.entries]
        for (name, _, _), kernel in zip(self.entries, kernels, strict=True):
            if self.definite and not type(kernel).__module__.startswith("convexkernels."):
                _check_definite(kernel(points), name)
        return points, kernels, [name for name, _, _ in self.entries]


@dataclass(frozen=True, eq=False)
class Combination:
    """``sum_k theta_k scales_k k_k`` against fixed points."""

    kernels: Sequence[Kernel]
    scales: Array
    points: Array

    def cross(self, theta: Array, Z: Any) -> Array:
        """Matrix between new points and the fixed ones, shape (n_new, n_points).

        `Z` is a table, or for ready-made matrices a stack of shape (l, n_new, m): the values of every candidate
        between new points and all m rows.
        """
        weights = theta * self.scales
        if np.ndim(Z) == 3 and isinstance(_innermost(self.kernels[0]), Precomputed):
            return self._combine_stack(weights, np.asarray(Z, dtype=np.float64))
        total = np.zeros((len(Z), len(self.points)))
        for weight, kernel in _merged(self.kernels, weights) if len(self.points) else ():
            total += weight * kernel(Z, self.points)
        return total

    def _combine_stack(self, weights: Array, Z: Array) -> Array:
        stored: Any = _innermost(self.kernels[0])
        shape = (len(self.kernels), Z.shape[1], len(stored.matrix))
        if Z.shape != shape or not np.isfinite(Z).all():
            raise InvalidInputError(
                f"a stack of new rows must be finite, of shape ({shape[0]}, n_new, {shape[2]}), got {Z.shape}."
            )
        columns = stored.rows(self.points)
        total = np.zeros((Z.shape[1], columns.size))
        for k in np.flatnonzero(weights).tolist():
            total += weights[k] * _transformed(self.kernels[k], Z[k])[:, columns]
        return total


def combination(kernels: Sequence[Kernel], weights: Array) -> Kernel:
    """The kernel ``sum_k weights_k kernels_k``, without the ones of weight 0; see `_merged`."""
    used = _merged(kernels, weights)
    return WeightedSum([kernel for _, kernel in used], [weight for weight, _ in used])


def _merged(kernels: Sequence[Kernel], weights: Array) -> list[tuple[float, Kernel]]:
    """The terms of the sum; tessellated kernels that differ in P only are one of them where that costs nothing."""
    terms: list[tuple[float, Kernel]] = []
    groups: dict[Any, list[int]] = {}
    for k in np.flatnonzero(weights).tolist():
        kernel, points = kernels[k], None
        if type(kernel) is Centered:
            kernel, points = kernel.kernel, kernel.points
        # Weights of other signs may make P indefinite.
        if type(kernel) is TessellatedKernel and weights[k] > 0.0 and _may_be_added(kernel):
            groups.setdefault((id(points), *kernel.tessellation_key), []).append(k)
        else:
            terms.append((float(weights[k]), kernels[k]))
    for group in groups.values():
        first = group[0]
        if len(group) == 1:
            terms.append((float(weights[first]), kernels[first]))
        else:
            terms.append((1.0, _one_of(group, kernels, weights)))
    return terms


def _may_be_added(kernel: TessellatedKernel) -> bool:
    """Whether P is no larger than what tells points apart: small differences of its blocks would be lost in a sum."""
    P = np.asarray(kernel.P, dtype=np.float64)
    return bool(np.abs(Blocks.of(P).g).max() >= LEAST_DIFFERENCE * np.abs(P).max())


def _one_of(group: list[int], kernels: Sequence[Kernel], weights: Array) -> Kernel:
    """The sum of tessellated kernels that differ in P only, or of such kernels centered on the same points."""
    members: list[Any] = [kernels[k] for k in group]
    inner = [kernel.kernel if type(kernel) is Centered else kernel for kernel in members]
    merged = copy(inner[0])
    merged.P = np.einsum("k,kij->ij", weights[group], np.array([kernel.P for kernel in inner], dtype=np.float64))
    if type(members[0]) is not Centered:
        return merged
    centered = Centered(merged, members[0].points)
    means = [with_mean(kernel).grand for kernel in members]  # known, but for kernels that no stack has seen
    centered.grand = float(weights[group] @ means)
    return centered


def _innermost(kernel: Kernel) -> Kernel:
    while isinstance(kernel, Centered | Normalized):
        kernel = kernel.kernel
    return kernel


def _transformed(kernel: Kernel, rows: Array) -> Array:
    """What was done to a ready-made matrix, done to rows of new points."""
    if isinstance(kernel, Normalized):
        raise InvalidInputError(
            "rows of new points cannot be divided by the lengths of their images, which the matrices do not tell; "
            "normalize the matrices yourself and pass normalize='none'."
        )
    if isinstance(kernel, Centered):
        stored: Any = kernel.kernel
        at = stored.rows(kernel.points)
        means = np.asarray(stored.matrix, dtype=np.float64)[at].mean(axis=0)
        return rows - rows[:, at].mean(axis=1, keepdims=True) - means + means[at].mean()
    return rows


def _with_distinct_names(entries: list[tuple[str, Kernel, Any]]) -> list[tuple[str, Kernel, Any]]:
    """Printed forms of kernels leave out what is long: numbers tell equal ones apart."""
    known = Counter(name for name, _, _ in entries)
    return [(f"{name} [{k}]" if known[name] > 1 else name, *rest) for k, (name, *rest) in enumerate(entries)]


def _entry(k: int, entry: Any) -> tuple[str, Kernel, Any]:
    if isinstance(entry, Kernel):
        return repr(entry), entry, None
    if isinstance(entry, tuple) and len(entry) == 3 and isinstance(entry[0], str) and isinstance(entry[1], Kernel):
        return entry
    raise InvalidInputError(
        f"kernels[{k}] must be a Kernel or (name, Kernel, columns), got {entry!r}; to use a function of your own, "
        "derive a class from convexkernels.Kernel."
    )


def _on_columns(name: str, kernel: Kernel, columns: Any, n: int) -> Kernel:
    if columns is None:
        return kernel
    if isinstance(columns, slice):
        indices = np.arange(n)[columns]
    else:
        indices = np.atleast_1d(np.asarray(columns))
        if indices.dtype == bool and indices.shape == (n,):
            indices = np.flatnonzero(indices)
    if (
        indices.ndim != 1
        or indices.size == 0
        or indices.dtype.kind not in "iu"
        or not (np.abs(indices + 0.5) < n).all()
    ):
        raise InvalidInputError(
            f"columns of kernel {name!r} must be indices in [0, {n}), a slice or a mask of length {n}, got {columns!r}."
        )
    return OnColumns(kernel, (indices % n).tolist())


def check_matrices(stack: Any, definite: bool = True) -> Array:
    """Return a stack of Gram matrices, symmetric and (if asked) positive semidefinite, or refuse it by name."""
    matrices = np.asarray(stack)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or 0 in matrices.shape:
        raise InvalidInputError(
            f"a stack of Gram matrices must have shape (l, m, m), one matrix per kernel, got {matrices.shape}."
        )
    if matrices.dtype.kind not in "fiu":
        raise InvalidInputError(f"a stack of Gram matrices must hold real numbers, got dtype {matrices.dtype}.")
    if matrices.dtype not in (np.float64, np.float32):
        matrices = matrices.astype(np.float64)
    precision = float(np.finfo(matrices.dtype).eps)
    for k, K in enumerate(matrices):
        if not np.isfinite(K).all():
            raise InvalidInputError(f"Gram matrix {k} has an entry that is not finite.")
        asymmetry = float(np.abs(K - K.T).max())
        if asymmetry > max(1e-9, 100 * precision) * float(np.abs(K).max()):
            raise InvalidInputError(
                f"Gram matrix {k} is not symmetric: entries differ from their mirror image by up to {asymmetry:.3g}; "
                "pass (K + K.T) / 2 if that is what you mean."
            )
        if definite:
            _check_definite(K, str(k))
    return matrices


def _check_definite(K: Array, name: str) -> None:
    """Cholesky of a slightly shifted matrix first, eigenvalues only where it fails."""
    tolerance = max(1e-10, 100 * float(np.finfo(K.dtype).eps)) * float(np.abs(np.diagonal(K)).sum())
    shifted = K.astype(np.float64) + tolerance * np.eye(len(K))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        smallest = smallest_eigenvalue(K.astype(np.float64))
        if smallest < -tolerance:
            raise InvalidInputError(
                f"Gram matrix {name} is not positive semidefinite: its smallest eigenvalue is {smallest:.6g}; "
                "clip its eigenvalues at 0, or use a kernel that is positive semidefinite."
            ) from None
