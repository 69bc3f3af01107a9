"""What a user may call a candidate: a kernel, a kernel on some columns, a ready-made matrix."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Crossing
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.kernels.algebra import OnColumns, WeightedSum
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.normalized import Centered, Normalized
from convexkernels.linalg import smallest_eigenvalue
from convexkernels.validation import check_points


class CandidateList:
    """Candidate kernels as they were given, checked as far as they can be without points.

    Parameters
    ----------
    kernels : sequence of Kernel or (name, Kernel, columns), or array of shape (l, m, m)
    definite : bool
        Whether ready-made matrices must be positive semidefinite.
    """

    def __init__(self, kernels: Any, definite: bool = True) -> None:
        self.definite = definite
        self.matrices: Array | None = None
        self.entries: list[tuple[str, Kernel, Any]] = []
        if isinstance(kernels, np.ndarray) and kernels.dtype != object:
            self.matrices = check_matrices(kernels, definite=definite)
            return
        if isinstance(kernels, Kernel | str) or not isinstance(kernels, Sequence | np.ndarray) or len(kernels) == 0:
            raise InvalidInputError(
                f"kernels must be a non-empty list of kernels or an array of shape (l, m, m), got {kernels!r}."
            )
        if all(isinstance(entry, np.ndarray) and entry.ndim == 2 for entry in kernels):
            shapes = sorted({entry.shape for entry in kernels})
            if len(shapes) > 1:
                raise InvalidInputError(f"the Gram matrices in kernels have different shapes: {shapes}.")
            self.matrices = check_matrices(np.stack(list(kernels)), definite=definite)
            return
        entries = [_entry(k, entry) for k, entry in enumerate(kernels)]
        known = Counter(name for name, _, _ in entries)
        # Printed forms of kernels leave out what is long.
        self.entries = [
            (f"{name} [{k}]" if known[name] > 1 else name, kernel, columns)
            for k, (name, kernel, columns) in enumerate(entries)
        ]

    def __len__(self) -> int:
        return len(self.entries) if self.matrices is None else len(self.matrices)

    def on(self, X: Any) -> tuple[Array, list[Kernel], list[str]]:
        """Points, one kernel per candidate, and their names; row numbers are the points of ready-made matrices."""
        if self.matrices is not None:
            m = self.matrices.shape[1]
            if X is not None and (np.ndim(X) != 2 or np.shape(X) != (m, 1) or (np.asarray(X) != row_numbers(m)).any()):
                raise InvalidInputError(
                    f"with ready-made Gram matrices X must be None, or the row numbers 0..{m - 1} as a column, got an "
                    f"array of shape {np.shape(X)}."
                )
            return row_numbers(m), [Precomputed(K) for K in self.matrices], [str(k) for k in range(len(self))]
        if X is None:
            raise InvalidInputError("X is None, but the candidates are kernels that need points; pass the table.")
        points = check_points(X)
        kernels = [_on_columns(name, kernel, columns, points.shape[1]) for name, kernel, columns in self.entries]
        for (name, _, _), kernel in zip(self.entries, kernels, strict=True):
            if self.definite and not type(kernel).__module__.startswith("convexkernels."):
                _check_definite(kernel(points), name)
        return points, kernels, [name for name, _, _ in self.entries]

    def crossing(self, kernels: Sequence[Kernel], scales: Array, X: Array, index: Index) -> Crossing:
        """Evaluation of combinations of the kernels against the points at `index`."""
        stacked = self.matrices is not None
        return Combination(kernels, scales, np.ascontiguousarray(X[index]), index if stacked else None)


@dataclass(frozen=True, eq=False)
class Combination:
    """``sum_k theta_k scales_k k_k`` against fixed points.

    Attributes
    ----------
    kernels : sequence of Kernel
    scales : ndarray of shape (l,)
    points : ndarray of shape (n_points, n)
    index : ndarray of int or None
        For ready-made matrices: which of their columns the points are, so that a stack of new rows can be used.
    """

    kernels: Sequence[Kernel]
    scales: Array
    points: Array
    index: Index | None

    def cross(self, theta: Array, Z: Any) -> Array:
        """Matrix between new points and the fixed ones, shape (n_new, n_points).

        `Z` is a table, or for ready-made matrices a stack of shape (l, n_new, m): the values of every candidate
        between new points and all training points.
        """
        weights = theta * self.scales
        if self.index is not None and np.ndim(Z) == 3:
            return self._combine_stack(weights, np.asarray(Z, dtype=np.float64))
        if len(self.points) == 0:
            return np.zeros((len(Z), 0))
        total = np.zeros((len(Z), len(self.points)))
        for k in np.flatnonzero(weights).tolist():
            total += weights[k] * self.kernels[k](Z, self.points)
        return total

    def _combine_stack(self, weights: Array, Z: Array) -> Array:
        assert self.index is not None
        m = len(_matrix_of(self.kernels[0]))
        if Z.shape[0] != len(self.kernels) or Z.shape[2] != m:
            raise InvalidInputError(
                f"a stack of new rows must have shape ({len(self.kernels)}, n_new, {m}), got {Z.shape}."
            )
        total = np.zeros((Z.shape[1], self.index.size))
        for k in np.flatnonzero(weights).tolist():
            total += weights[k] * transform_rows(self.kernels[k], Z[k])[:, self.index]
        return total


def combination(kernels: Sequence[Kernel], weights: Array) -> Kernel:
    """The kernel ``sum_k weights_k kernels_k``, without the ones of weight 0."""
    used = np.flatnonzero(weights).tolist()
    return WeightedSum([kernels[k] for k in used], weights[used].tolist())


def _matrix_of(kernel: Kernel) -> Any:
    while isinstance(kernel, Centered | Normalized):
        kernel = kernel.kernel
    assert isinstance(kernel, Precomputed)
    return kernel.matrix


def transform_rows(kernel: Kernel, rows: Array) -> Array:
    """Apply what was done to a ready-made matrix to rows of new points."""
    if isinstance(kernel, Normalized):
        raise InvalidInputError(
            "rows of new points cannot be divided by the lengths of their images, which the matrices do not tell; "
            "normalize the matrices yourself and pass normalize='none'."
        )
    if isinstance(kernel, Centered):
        means = np.asarray(_matrix_of(kernel), dtype=np.float64).mean(axis=0)
        return rows - rows.mean(axis=1, keepdims=True) - means + means.mean()
    return rows


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
