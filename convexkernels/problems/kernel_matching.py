"""How closely a family can imitate a given kernel matrix [CP20 (20), (21)]."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.monomials import count_monomials, exact_rank, exponents
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.cones import Cone, Orthant, SemidefiniteCone
from convexkernels.exceptions import InvalidInputError, tell
from convexkernels.families.base import Family
from convexkernels.kernels.base import Kernel
from convexkernels.linalg import eigh, leading_eigenpair
from convexkernels.problems.entries import Entries, Largest, Mean
from convexkernels.progress import Silent
from convexkernels.validation import LARGEST_TARGET, check_memory, check_number, floats

NORMS: dict[str, type[Entries]] = {"one": Mean, "infinity": Largest}
EPS = float(np.finfo(np.float64).eps)
# Directions of P with no more of the largest trace, in monomials of one size, cannot be told from such as have none.
NO_TRACE = 1e-14
# Up to here a trace that is kept, or that is not, may be the one or the other.
UNCLEAR = 1e-15, 1e-13
# The part of the gap asked for that the interior-point method aims at.
AIM = 0.01


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
        With weights or a matrix as parameter: ``Candidates``, ``GeneralizedPolynomial``, ``Tessellated``,
        ``AllKernelMatrices``.
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
    the solver's multipliers and repaired, with what rounding may have hidden.

    Directions of a matrix P whose kernels are 0 on the points, to rounding of their squares, are left out. Where these
    are more than have no trace, because points nearly coincide or features are far from 0 for what they vary, a warning
    says so, and lower bounds are those of all positive semidefinite matrices.
    """

    def __init__(
        self, family: Family, X: Any, target: Any, norm: str = "one", *, memory_limit: float | None = None
    ) -> None:
        if not isinstance(family, Family):
            raise InvalidInputError(f"family must be a family of kernels, such as Tessellated(), got {family!r}.")
        if norm not in list(NORMS):
            raise InvalidInputError(f"norm must be one of {list(NORMS)}, got {norm!r}.")
        self.family = family
        self.norm = norm
        self.gram_set = family.on(X, memory_limit=memory_limit)
        m = self.gram_set.m
        self.target = floats("target", target)
        if self.target.shape != (m, m) or not np.isfinite(self.target).all():
            raise InvalidInputError(f"target must be finite, of shape ({m}, {m}), got shape {self.target.shape}.")
        self.size = float(np.abs(self.target).max()) or 1.0
        if self.size > LARGEST_TARGET:
            raise InvalidInputError(f"target has entries up to {self.size:.3g}, above {LARGEST_TARGET:g}; rescale it.")
        if np.abs(self.target - self.target.T).max() > 1e-9 * np.abs(self.target).max():
            raise InvalidInputError("target must be symmetric; pass (target + target.T) / 2.")
        self.memory_limit = memory_limit
        self.unit = self.gram_set.adjoint(np.eye(m))  # <unit, theta> is the trace of K
        if not (self.gram_set.is_simplex or self.unit.ndim == 2):
            raise InvalidInputError(f"{family!r} has no cone of weights or of matrices that could be matched.")
        # theta is found in coordinates P in which the trace of K is the sum, or the trace, of P: monomials are badly
        # scaled, P is not. Without directions that have no trace: their kernels are 0 on the points, to rounding.
        if self.unit.ndim == 1:
            self.kept = self.unit > 0.0
            self.cone: Cone = Orthant(int(self.kept.sum()))
            self.traces, self.is_whole = np.ones(self.cone.rank), True
        else:
            size = np.sqrt(np.where(np.diagonal(self.unit) > 0.0, np.diagonal(self.unit), 1.0))
            values, vectors = eigh(self.unit / np.outer(size, size))
            keep = values > NO_TRACE * values[-1]
            self.half = vectors[:, keep] / (size[:, None] * np.sqrt(values[keep]))
            self.cone = SemidefiniteCone(self.half.shape[1])
            self.traces = values[keep] / values[-1]
            unclear = (values > UNCLEAR[0] * values[-1]) & (values < UNCLEAR[1] * values[-1])
            known = _directions(family, X, len(values))
            if known is None:
                self.is_whole = not unclear.any()
            else:  # the trace of a projection is its rank, that of its part where parts have no trace in common
                parts = np.array_split(vectors[:, keep], len(known))
                self.is_whole = known == [round(float(np.square(part).sum())) for part in parts]
            if not self.is_whole:
                tell(
                    f"arithmetic cannot tell all directions of the parameter of {family!r} from 0: lower bounds are "
                    "those of all positive semidefinite matrices. Bring features to [-0.5, 0.5], leave out points that "
                    "nearly coincide, or lower the degree."
                )

    def __repr__(self) -> str:
        return f"KernelMatching({self.family!r}, {self.gram_set.m} points, norm={self.norm!r})"

    def distance(self, theta: Array) -> float:
        """Distance of the kernel of `theta` from the target."""
        error = np.abs(self.gram_set.gram(theta) - self.target)
        return float(error.mean() if self.norm == "one" else error.max())

    def lower_bound(self, Z: Array) -> float:
        """Bound on the distance of every kernel of the cone, from any symmetric matrix."""
        Z = Z - max(0.0, self._largest_on_cone(Z)) * np.eye(len(Z))
        size = np.abs(Z).max() * Z.size if self.norm == "one" else np.abs(Z).sum()
        return max(0.0, float(np.vdot(Z, self.target / self.size)) / float(size)) * self.size if size > 0.0 else 0.0

    def _largest_on_cone(self, Z: Array) -> float:
        """A shift s for which ``<Z - s I, K> <= 0`` on the whole cone, with what rounding may have hidden."""
        # A direction of little trace in monomials of one size is large in these coordinates, with its rounding.
        if not self.is_whole:
            return leading_eigenpair(Z)[0]
        hidden = 8.0 * math.sqrt(len(Z) + len(self.unit)) * EPS * float(np.linalg.norm(Z)) / self.traces
        return self.cone.largest(self._pull(Z) + (hidden if hidden.shape == self.cone.one.shape else np.diag(hidden)))

    def _pull(self, M: Array) -> Array:
        """D with ``<D, P> = <M, K>``."""
        D = self.gram_set.pullback(M)
        if D.ndim == 1:
            return D[self.kept] / self.unit[self.kept]
        D = self.half.T @ D @ self.half
        return 0.5 * (D + D.T)

    def _theta(self, P: Array) -> Array:
        """The parameter of the family with coordinates P, which are moved into the cone."""
        if P.ndim == 1:
            theta = np.zeros_like(self.unit)
            theta[self.kept] = np.maximum(P, 0.0) / self.unit[self.kept]
            return theta
        values, vectors = eigh(0.5 * (P + P.T))
        left = self.half @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        return left @ left.T

    def entries(self, clock: Clock | None = None) -> Entries | None:
        """The entries of K on and above the diagonal as linear functions of the coordinates P, and the target.

        None where the time of the clock does not suffice.
        """
        m, shape = self.gram_set.m, self.cone.one.shape
        rows, columns = np.triu_indices(m)
        count, numbers = len(rows), len(rows) * self.cone.one.size
        check_memory(
            8.0 * (1.5 * numbers + min(2.0 * numbers, 8e6) + 4.0 * (NORMS[self.norm].copies * count) ** 2),
            self.memory_limit,
            what=f"matching {count} entries of a matrix with {self.cone.one.size} numbers",
            remedy="Use fewer points, a lower degree or a larger memory_limit.",
        )
        A = np.empty((count, *shape))
        for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
            if clock is not None and clock.is_over:
                return None
            entry = np.zeros((m, m))
            entry[i, j] += 0.5
            entry[j, i] += 0.5
            A[k] = self._pull(entry)
        target, weight = self.target[rows, columns] / self.size, np.where(rows == columns, 1.0, 2.0)
        return NORMS[self.norm](A, target, weight, self.size)

    def _bound_matrix(self, multipliers: Array) -> Array:
        """The Z of multipliers of the entries."""
        Z = np.zeros_like(self.target)
        Z[np.triu_indices(len(Z))] = multipliers
        return 0.5 * (Z + Z.T)

    def to_cvxpy(self, entries: Entries | None = None) -> Any:
        """The statement as a :class:`cvxpy.Problem`, of the entries on and above the diagonal.

        All is in units of the largest entry of the target. Its variable ``"P"`` is the parameter in coordinates in
        which the trace of K is its sum, or its trace; the multipliers of its first constraint are those of the entries.
        """
        import cvxpy as cp

        entries = self.entries() if entries is None else entries
        assert entries is not None
        shape = self.cone.one.shape
        P = cp.Variable(shape, nonneg=True, name="P") if len(shape) == 1 else cp.Variable(shape, PSD=True, name="P")
        error = cp.Variable(len(entries.target), name="error")
        link = error == entries.A.reshape(len(entries.A), -1) @ cp.vec(P, order="C") - entries.target
        mean = entries.weight @ cp.abs(error) / self.gram_set.m**2
        return cp.Problem(cp.Minimize(mean if self.norm == "one" else cp.max(cp.abs(error))), [link])

    def solve(
        self,
        solver: str = "interior-point",
        *,
        tol: float = 1e-5,
        max_time: float | None = None,
        progress: bool | Silent = False,
    ) -> Match:
        """Solve the linear or semidefinite program and measure the answer.

        Parameters
        ----------
        solver : {"interior-point", "MOSEK", "CLARABEL", "SCS"}
            The interior-point method of the library, whose work depends on the number of points more than on that of
            the parameters, or the statement in CVXPY by one of these solvers.
        tol : float
            A gap above `tol` times the largest entry of the target is worth a :class:`ConvexKernelsWarning`.
        max_time : float, optional
            Seconds.
        progress : bool
            Show bounds and time while the interior-point method works; stopped by the keyboard then, it returns the
            best kernel so far.
        """
        from convexkernels.solvers.convex.conic import PREFERENCE

        tol = check_number("tol", tol, low=0.0, open_low=True)
        if solver not in ("interior-point", *PREFERENCE):
            raise InvalidInputError(f"solver must be one of {['interior-point', *PREFERENCE]}, got {solver!r}.")
        clock = Clock(max_time, progress)
        clock.show.start(f"{self!r} by {solver}")
        P, multipliers = self._found(solver, tol, clock)
        theta, Z = self.size * self._theta(P), self._bound_matrix(multipliers)
        # Solvers differ in the sign of multipliers; the better bound is the right one.
        certificate = DualityGap(self.distance(theta), max(self.lower_bound(Z), self.lower_bound(-Z)))
        if not abs(certificate.gap) <= tol * self.size:
            tell(f"{self!r} was not solved to {tol:g}: {certificate}.")
        clock.show.finish(f"{certificate}, {clock.seconds:.2f} s")
        return Match(theta, self.gram_set.kernel(theta), certificate, clock.seconds)

    def _found(self, solver: str, tol: float, clock: Clock) -> tuple[Array, Array]:
        """Coordinates and multipliers of the entries by a method, those of the kernel 0 where there was no time."""
        from convexkernels.solvers.convex.closest import closest
        from convexkernels.solvers.convex.conic import solve_statement

        m = self.gram_set.m
        entries, nothing = self.entries(clock), (np.zeros_like(self.cone.one), np.zeros(m * (m + 1) // 2))
        if entries is None:
            return nothing
        if solver == "interior-point":
            # Repairing the multipliers costs a part of the gap.
            return closest(entries, self.cone, AIM * tol, clock)
        program = self.to_cvxpy(entries)
        solve_statement(program, solver, None if np.isinf(clock.max_time) else clock.deadline)
        P, multipliers = program.var_dict["P"].value, program.constraints[0].dual_value
        return nothing if P is None or multipliers is None else (np.asarray(P), np.asarray(multipliers))


def _directions(family: Any, X: Any, size: int) -> list[int] | None:
    """How many directions of a matrix of so many rows have a trace, by parts of it; None where only traces say so.

    With z^gamma go all monomials of x up to the degree that gamma leaves; a combination of these has no trace where it
    is 0 on the points, which the doubles themselves say. Traces, squares of it, do not. The first half of the
    parameter of a tessellated kernel belongs to the z >= x, the second one to the others: points at the ends of a box
    may have none.
    """
    degree = getattr(family, "degree", None)
    if degree is None or getattr(family, "tasks", None) is not None or getattr(family, "landmarks", None) is not None:
        return None
    X = np.asarray(X, dtype=np.float64)
    n, with_z = X.shape[1], getattr(family, "z_degree", 0)
    most = degree if with_z is None else min(with_z, degree)
    if box := getattr(family, "box", None):
        lower, upper = box.containing(X)
        parts = [(upper > X).all(axis=1), (lower < X).any(axis=1)]
    else:
        parts = [np.full(len(X), True)] * (size // count_monomials(n, degree, with_z))
    powers = [exponents(n, degree - g) for g in range(most + 1)]
    return [sum(math.comb(n + g - 1, g) * exact_rank(X[part], powers[g]) for g in range(most + 1)) for part in parts]
