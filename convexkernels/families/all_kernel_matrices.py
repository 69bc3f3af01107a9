"""The largest family: every kernel matrix of trace m, whether or not a kernel function is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cones import SemidefiniteCone
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family, FamilyStatement, GramSet
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.linalg import eigh, leading_eigenpair, project_simplex
from convexkernels.validation import check_memory, check_number, check_whole_number


class AllKernelMatrices(Family):
    """``{K >= 0 : trace K = m}``; theta is K itself.

    Parameters
    ----------
    m : int, optional
        Number of points; the number of rows of X when None.

    Notes
    -----
    [CP20 (17)]. The solution says how small the objective of any kernel of that trace
    can be, and :func:`optimal_kernel_matrix` is it in closed form for the hinge loss. As a kernel, K is a
    function of row numbers.
    """

    of_rows = True

    def __init__(self, m: int | None = None) -> None:
        self.m = None if m is None else check_whole_number("m", m, low=1)

    def __repr__(self) -> str:
        return "AllKernelMatrices()" if self.m is None else f"AllKernelMatrices(m={self.m})"

    def on(
        self, X: Any, *, modulo_constants: bool = False, memory_limit: float | None = None, dtype: Any = np.float64
    ) -> AllKernelMatricesGramSet:
        m = self.m if X is None else len(X)
        if m is None:
            raise InvalidInputError("the number of points is not known: pass X, or AllKernelMatrices(m=...).")
        if self.m is not None and m != self.m:
            raise InvalidInputError(f"X has {m} rows, but the family was made for m = {self.m}.")
        check_memory(
            60.0 * 8.0 * m * m,
            memory_limit,
            what=f"optimizing a kernel matrix of {m} rows",
            remedy="Use fewer rows; optimal_kernel_matrix(y) needs no optimization.",
        )
        return AllKernelMatricesGramSet(m)


class AllKernelMatricesGramSet(GramSet):
    """All positive semidefinite matrices of trace m; ``sigma(D) = m lambda_max(D)``."""

    def __init__(self, m: int) -> None:
        self.m = m

    def initial(self) -> Array:
        return np.eye(self.m)

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        if out is None:
            return theta.copy()
        out[:] = theta
        return out

    def adjoint(self, W: Array) -> Array:
        return W.T @ W

    def derivative(self, w: Array, rows: Index) -> Array:
        half = np.zeros((rows.size, self.m, self.m))
        half[np.arange(rows.size), rows] = 0.5 * w
        return half + np.swapaxes(half, 1, 2)

    def cone(self) -> SemidefiniteCone:
        return SemidefiniteCone(self.m)

    def project(self, theta: Array) -> Array:
        values, vectors = eigh(0.5 * (theta + theta.T))
        values = project_simplex(values, float(self.m))
        keep = values > 0.0
        half = vectors[:, keep] * np.sqrt(values[keep])
        return half @ half.T

    def support(self, D: Array) -> tuple[float, Array]:
        value, vector = leading_eigenpair(D)
        return self.m * value, self.m * np.outer(vector, vector)

    def envelope(self) -> Array:
        return self.m * np.eye(self.m)

    def kernel(self, theta: Array) -> Precomputed:
        return Precomputed(theta.copy())

    def cross(self, theta: Array, Z: Any) -> Array:
        """Rows of K for row numbers; nothing is known about other points."""
        return self.kernel(theta)(Z, row_numbers(self.m))

    def statement(self) -> FamilyStatement:
        import cvxpy as cp

        K = cp.Variable((self.m, self.m), PSD=True, name="K")
        return FamilyStatement(K, [cp.trace(K) == self.m], K)


def optimal_kernel_matrix(y: Any, C: float | None = None) -> tuple[Array, float]:
    """The best of all kernel matrices of trace m for the hinge loss with intercept, in closed form.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels -1 and +1, both present.
    C : float, > 0, optional
        Weight of the losses; None for any ``C >= 2 / m``.

    Returns
    -------
    K : ndarray of shape (m, m)
        ``m v v' / |v|^2`` with ``v = y (1 - mean(y) y)``; its entries have both signs.
    value : float
        Its objective J(K), half the t* of the paper: ``|v|^2 / (2 m)`` for ``C >= max |v| / m``.

    Notes
    -----
    [CP20 Theorem 10]. [CP20 (17)] is printed with ``t - C sum(delta)``; proof and bound belong to
    ``t - 2 C sum(delta)``. The dual variables that go with K are ``s |v| / m`` with ``s = min(1, C m / max |v|)``: they
    maximize ``sum(alpha) - m / 2 |alpha|^2``, the lower bound that holds for every K of trace m, and keep their
    proportions when C cuts them off, so that K is optimal for every C > 0, with value ``|v|^2 (s - s^2 / 2) / m``.
    """
    from convexkernels.losses.hinge import Hinge

    try:
        shape = np.shape(y)
    except ValueError:  # a ragged list, which `targets` refuses
        shape = (len(y),)
    if len(shape) not in (1, 2) or shape[0] == 0 or math.prod(shape[1:]) != 1:
        got = f"an array of shape {shape}" if shape else repr(y)
        raise InvalidInputError(f"y must have one label a row, got {got}; pass a list or a column of them, shape (m,).")
    labels = Hinge().targets(y, shape[0])[0]
    m = labels.size
    v = labels - labels.mean()
    s = 1.0
    if C is not None:
        s = min(1.0, check_number("C", C, low=0.0, open_low=True) * m / float(np.abs(v).max()))
    squared = float(v @ v)
    return (m / squared) * np.outer(v, v), squared * (s - 0.5 * s * s) / m
