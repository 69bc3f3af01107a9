"""How closely a family can imitate a given kernel matrix [CP20 (20), (21)]."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError, tell
from convexkernels.families.base import Family
from convexkernels.kernels.base import Kernel
from convexkernels.linalg import eigh
from convexkernels.validation import floats

NORMS = ("one", "infinity")


@dataclass(frozen=True, eq=False)
class Match:
    """The closest kernel, its theta, and bounds on the smallest possible distance, the upper one being its own."""

    theta: Array = field(repr=False)
    kernel: Kernel = field(repr=False)
    certificate: DualityGap
    seconds: float

    @property
    def value(self) -> float:
        """Distance of `kernel` from the target."""
        return self.certificate.upper


class KernelMatching:
    """``minimize over k in the cone of a family  |K - target|``, K the Gram matrix of k on given points.

    The cone of a family is all of its kernels and their positive multiples: P >= 0, or weights >= 0, without a bound.

    Parameters
    ----------
    family : Family
        With weights or a matrix as parameter: ``Candidates``, ``GeneralizedPolynomial``, ``Tessellated``.
    X : array-like of shape (m, n)
    target : array-like of shape (m, m)
        Symmetric, for example the matrix of :func:`optimal_kernel_matrix`.
    norm : {"one", "infinity"}
        Mean of ``|K_ij - target_ij|`` [CP20 (20)], or the largest of them [CP20 (21)].
    memory_limit : float, optional
        Bytes, checked before allocation.

    Notes
    -----
    [CP20 Section 4.3.3]. A linear program for weights, a semidefinite one for a matrix. The lower
    bound is ``<Z, target>`` for a Z in the unit ball of the dual norm with ``<Z, K> <= 0`` on the whole cone, made from
    the solver's multipliers and repaired.
    """

    def __init__(
        self, family: Family, X: Any, target: Any, norm: str = "one", *, memory_limit: float | None = None
    ) -> None:
        if norm not in NORMS:
            raise InvalidInputError(f"norm must be one of {list(NORMS)}, got {norm!r}.")
        self.family = family
        self.norm = norm
        self.gram_set = family.on(X, memory_limit=memory_limit)
        m = self.gram_set.m
        self.target = floats("target", target)
        if self.target.shape != (m, m) or not np.isfinite(self.target).all():
            raise InvalidInputError(f"target must be finite, of shape ({m}, {m}), got shape {self.target.shape}.")
        if np.abs(self.target - self.target.T).max() > 1e-9 * np.abs(self.target).max():
            raise InvalidInputError("target must be symmetric; pass (target + target.T) / 2.")
        self.unit = self.gram_set.adjoint(np.eye(m))  # <unit, theta> is the trace of K
        if not (self.gram_set.is_simplex or self.unit.ndim == 2):
            raise InvalidInputError(f"{family!r} has no cone of weights or of matrices that could be matched.")
        if self.unit.ndim == 2:
            values, vectors = eigh(self.unit)
            keep = values > 1e-14 * values[-1]
            # theta = half M half' with trace K = trace M: monomials are badly scaled, M is not.
            self.half = vectors[:, keep] / np.sqrt(values[keep])

    def __repr__(self) -> str:
        return f"KernelMatching({self.family!r}, {self.gram_set.m} points, norm={self.norm!r})"

    def distance(self, theta: Array) -> float:
        """Distance of the kernel of `theta` from the target."""
        error = np.abs(self.gram_set.gram(theta) - self.target)
        return float(error.mean() if self.norm == "one" else error.max())

    def lower_bound(self, Z: Array) -> float:
        """Bound on the distance of every kernel of the cone, from any symmetric matrix."""
        excess = self._largest_on_cone(Z)
        Z = Z - max(0.0, excess) * np.eye(len(Z))
        size = np.abs(Z).max() * Z.size if self.norm == "one" else np.abs(Z).sum()
        return max(0.0, float(np.vdot(Z, self.target)) / size) if size > 0.0 else 0.0

    def _largest_on_cone(self, Z: Array) -> float:
        """Smallest shift s for which ``<Z - s I, K> <= 0`` on the whole cone (inf when no shift is enough)."""
        image = self.gram_set.pullback(Z)
        if image.ndim == 1:
            return float((image / self.unit).max())
        return float(np.linalg.eigvalsh(self.half.T @ image @ self.half)[-1])

    def _cone(self) -> tuple[Any, Any, Any]:
        """Variable of the cone in CVXPY, the Gram matrix as an expression, and the map from its value to theta."""
        import cvxpy as cp

        m = self.gram_set.m
        if self.unit.ndim == 1:
            scale = 1.0 / self.unit
            mu = cp.Variable(self.unit.size, nonneg=True)
            columns = np.array([self.gram_set.gram(row).ravel() for row in np.diag(scale)]).T
            return mu, cp.reshape(columns @ mu, (m, m), order="C"), lambda value: scale * np.maximum(value, 0.0)
        size = self.half.shape[1]
        M = cp.Variable((size, size), PSD=True)
        columns = np.empty((m * m, size, size))
        for i in range(size):
            for j in range(i + 1):
                pair = np.outer(self.half[:, i], self.half[:, j])
                columns[:, i, j] = columns[:, j, i] = self.gram_set.gram(0.5 * (pair + pair.T)).ravel()
        gram = cp.reshape(columns.reshape(m * m, size * size) @ cp.vec(M, order="C"), (m, m), order="C")
        return M, gram, self._theta

    def _theta(self, M: Array) -> Array:
        values, vectors = eigh(0.5 * (M + M.T))
        left = self.half @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        return left @ left.T

    def solve(self, solver: str | None = None, *, tol: float = 1e-3, max_time: float | None = None) -> Match:
        """Solve the linear or semidefinite program and measure the answer.

        Parameters
        ----------
        solver : {"MOSEK", "CLARABEL", "SCS"}, optional
            The first that can be used, by default.
        tol : float
            A gap above `tol` times the norm of the target is worth a :class:`ConvexKernelsWarning`.
        max_time : float, optional
            Seconds.
        """
        import cvxpy as cp

        from convexkernels.solvers.convex.conic import solve_statement

        started = time.monotonic()
        m = self.gram_set.m
        variable, gram, to_theta = self._cone()
        error = cp.Variable((m, m))
        link = error == gram - self.target
        size = cp.sum(cp.abs(error)) / m**2 if self.norm == "one" else cp.max(cp.abs(error))
        program = cp.Problem(cp.Minimize(size), [link])
        solve_statement(program, solver, None if max_time is None else started + max_time)
        theta = to_theta(np.asarray(variable.value, dtype=np.float64))
        Z = np.zeros((m, m)) if link.dual_value is None else np.asarray(link.dual_value, dtype=np.float64)
        Z = 0.5 * (Z + Z.T)
        # Solvers differ in the sign of multipliers; the better bound is the right one.
        lower = max(self.lower_bound(Z), self.lower_bound(-Z))
        certificate = DualityGap(self.distance(theta), lower)
        if certificate.gap > tol * float(np.abs(self.target).max()):
            tell(f"{self!r} was not solved to {tol:g}: {certificate}.")
        return Match(theta, self.gram_set.kernel(theta), certificate, time.monotonic() - started)
