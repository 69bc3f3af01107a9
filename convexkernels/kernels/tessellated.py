"""Tessellated kernels, and the generalized polynomial kernels they contain."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.monomials import count_monomials, monomial_basis, monomials
from convexkernels.bases.tessellation.gram import Tessellation
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.rescaled import rescale
from convexkernels.validation import check_whole_number, floats


def check_parameter_matrix(P: Any, size: int, what: str) -> Array:
    """Return `P` as a symmetric PSD float64 matrix of the given size, or refuse it by name."""
    matrix = np.asarray(P, dtype=np.float64)
    if matrix.shape != (size, size):
        raise InvalidInputError(f"P must have shape ({size}, {size}) for {what}, got {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise InvalidInputError("P has an entry that is not finite.")
    scale = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-9 * scale:
        raise InvalidInputError("P must be symmetric; pass (P + P.T) / 2.")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -1e-9 * scale * size:
        raise InvalidInputError(
            f"P must be positive semidefinite, its smallest eigenvalue is {smallest:.3g}; clip its eigenvalues at 0."
        )
    return 0.5 * (matrix + matrix.T)


def check_corners(lower: Any, upper: Any) -> tuple[Array, Array]:
    """Return the corners of a box as float64 vectors, or refuse them by name."""
    low, high = floats("lower", lower).copy(), floats("upper", upper).copy()
    if low.ndim != 1 or low.shape != high.shape:
        raise InvalidInputError(
            f"lower and upper must be lists of equal length, got shapes {low.shape} and {high.shape}."
        )
    bad = np.flatnonzero(~((low < high) & np.isfinite(low) & np.isfinite(high)))
    if bad.size:
        j = bad[0]
        raise InvalidInputError(
            f"a box needs finite lower < upper, got lower[{j}] = {low[j]:g} and upper[{j}] = {high[j]:g}."
        )
    return low, high


class TessellatedKernel(Kernel):
    """k(x, y) = integral over [lower, upper] of N(z, x)' P N(z, y) dz.

    ``N(z, x) = [Z(z, x) 1{z >= x};  Z(z, x) (1 - 1{z >= x})]`` with all monomials
    ``Z = z^gamma x^delta, |gamma| + |delta| <= degree, |gamma| <= z_degree``.

    Parameters
    ----------
    P : array-like of shape (2q, 2q)
        Symmetric positive semidefinite; ``q`` is ``bases.count_monomials(n, degree, z_degree)`` and the order of
        the monomials is that of ``bases.monomial_basis(n, degree, z_degree)``.
    lower, upper : array-like of shape (n_features,)
        The box; every feature needs lower < upper.
    degree : int, >= 0
    z_degree : int, >= 0, optional
        `degree` when None.
    tasks : int, >= 1, optional
        The last column of a table is then no feature but the task of the row, 0, ..., tasks - 1, and N has every
        monomial once for each task, 0 but for that of x: rows ``i * tasks + s`` of each half of P, which are
        ``tasks`` times as many, belong to monomial i in task s (`task_similarity`).

    Notes
    -----
    [CP20 (7), (10), Corollary 13] with two corrections. The second block of N carries the complement of
    ``{z >= x}``, as [CP20 Lemma 5, (23)] use it, not the printed ``{x >= z}``; and the third term of [CP20 (23)] is
    ``t_ji(y, x)``, without which the function is not even symmetric. Points outside the box are
    moved to its nearest point, in the monomials as well as in the integration limits: the kernel stays PSD
    and every function of its space is constant along the way out of the box.

    One matrix of m by k points costs O(n_sums n) per pair, where n_sums is 1 for ``z_degree=0`` and
    binom(n + 2 z_degree, 2 z_degree) otherwise, besides matrix products with q inner terms.
    """

    def __init__(
        self,
        P: Any,
        lower: Any,
        upper: Any,
        degree: int = 1,
        z_degree: int | None = None,
        tasks: int | None = None,
    ) -> None:
        self.P, self.lower, self.upper, self.degree, self.z_degree = P, lower, upper, degree, z_degree
        self.tasks = tasks

    @property
    def tessellation_key(self) -> tuple[Any, ...]:
        """What kernels that differ in P only have in common; a sum of them has the sum of their P."""
        box = (np.asarray(corner, dtype=np.float64).tobytes() for corner in (self.lower, self.upper))
        return (*box, self.degree, self.z_degree, self.tasks)

    def task_similarity(self) -> Array:
        """How much the tasks share: ``trace P_st / sqrt(trace P_ss trace P_tt)`` for the blocks of P, shape (T, T).

        A correlation matrix: 1 where two tasks have the same functions, 0 where they know nothing of each other (or
        the kernel is 0 in one of them), -1 where one has the negative functions of the other. The kernel
        ``B_st k(x, x')`` has B, scaled to the diagonal 1.

        Raises
        ------
        InvalidInputError
            Without tasks.
        """
        if self.tasks is None:
            raise InvalidInputError("task_similarity needs a kernel with tasks, got tasks=None.")
        P, tasks = np.asarray(self.P, dtype=np.float64), self.tasks
        traces = np.einsum("isit->st", P.reshape(len(P) // tasks, tasks, -1, tasks))
        root = np.sqrt(np.maximum(np.diagonal(traces), 0.0))
        similarity = np.divide(traces, np.outer(root, root), out=np.zeros_like(traces), where=np.outer(root, root) > 0)
        np.fill_diagonal(similarity, 1.0)
        return np.asarray(np.clip(similarity, -1.0, 1.0))

    def _prepare(self, X: Array) -> tuple[Array, Tessellation]:
        lower, upper = check_corners(self.lower, self.upper)
        basis = monomial_basis(lower.size, self.degree, self.z_degree, self.tasks)
        what = f"{lower.size} features, degree={self.degree}, z_degree={self.z_degree}, tasks={self.tasks}"
        P = check_parameter_matrix(self.P, 2 * basis.q, what)
        own = lower.size + (self.tasks is not None)
        if X.shape[1] != own:
            with_task = "" if self.tasks is None else " and the task"
            raise InvalidInputError(
                f"X has {X.shape[1]} features, but the box of the kernel has {lower.size}{with_task}."
            )
        return P, Tessellation(basis, lower, upper)

    def _gram(self, X: Array, Y: Array) -> Array:
        P, tessellation = self._prepare(X)
        x = tessellation.points(X)
        return tessellation.gram(P, x, x if Y is X else tessellation.points(Y))

    def _diag(self, X: Array) -> Array:
        P, tessellation = self._prepare(X)
        return np.asarray(tessellation.diagonal(P, tessellation.points(X)))

    def _varying(self, X: Array, Y: Array) -> Array:
        P, tessellation = self._prepare(X)
        x = tessellation.points(X)
        y = x if Y is X else tessellation.points(Y)
        return tessellation.gram(P, x, y, modulo_constants=self.tasks is None)

    def _varying_diag(self, X: Array) -> Array:
        P, tessellation = self._prepare(X)
        return np.asarray(tessellation.diagonal(P, tessellation.points(X), modulo_constants=self.tasks is None))

    def _varying_sizes(self, X: Array) -> Array:
        if self.tasks is not None:
            return self._sizes(X)
        P, tessellation = self._prepare(X)
        return np.asarray(tessellation.sizes(P, tessellation.points(X)))


class GeneralizedPolynomialKernel(Kernel):
    """k(x, y) = Z(x)' P Z(y) with all monomials Z of ``(x - center) / scale`` up to `degree`.

    Parameters
    ----------
    P : array-like of shape (q, q)
        Symmetric positive semidefinite, ``q = binom(n + degree, degree)``; monomials in graded lexicographic order.
    degree : int, >= 0
    center, scale : array-like of shape (n_features,), optional
        0 and 1 by default. A kernel that was learned far from the origin has others: the monomials of x itself have no
        digits left for what distinguishes the points there.

    Notes
    -----
    [CP20 (8), (9)]. Not universal: its functions are polynomials.
    """

    def __init__(self, P: Any, degree: int = 1, center: Any = None, scale: Any = None) -> None:
        self.P, self.degree, self.center, self.scale = P, degree, center, scale

    def _parameter(self, X: Array) -> Array:
        degree, n = check_whole_number("degree", self.degree, low=0), X.shape[1]
        return check_parameter_matrix(self.P, count_monomials(n, degree, 0), f"{n} features, degree={degree}")

    def _features(self, X: Array) -> Array:
        n = X.shape[1]
        if self.center is not None or self.scale is not None:
            center = np.broadcast_to(np.asarray(0.0 if self.center is None else self.center, dtype=np.float64), (n,))
            scale = np.broadcast_to(np.asarray(1.0 if self.scale is None else self.scale, dtype=np.float64), (n,))
            X = rescale(X, center, scale)
        return monomials(X, monomial_basis(n, self.degree, 0).x_powers)

    def _gram(self, X: Array, Y: Array) -> Array:
        P, psi = self._parameter(X), self._features(X)
        return psi.T @ P @ (psi if Y is X else self._features(Y))

    def _diag(self, X: Array) -> Array:
        P, psi = self._parameter(X), self._features(X)
        return np.einsum("im,ij,jm->m", psi, P, psi, optimize=True)
