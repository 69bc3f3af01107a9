"""The problem everything convex in the library is an instance of."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.base import Family, GramSet
from convexkernels.losses.base import Loss
from convexkernels.problems.certified import Certified
from convexkernels.problems.on_rows import check_bounded_loss, free_centers
from convexkernels.validation import check_weights, refuse_distributed, refuse_other_tables

if TYPE_CHECKING:
    from convexkernels.problems.program import Program
    from convexkernels.progress import Silent
    from convexkernels.solution import Solution


class KernelLearning(Certified):
    """``minimize over theta in Theta  J(theta) = scale sum_k max over alpha_k  c(alpha_k) - 1/2 w_k' K(theta) w_k``.

    The sum runs over the outputs that share the kernel: one for a vector of labels or targets, one
    per column for a matrix (one-vs-rest classes, several outputs).

    Parameters
    ----------
    family : Family
        The convex set of kernels.
    loss : Loss
    X : array-like of shape (m, n), or None for a family of precomputed matrices
    y : array-like of shape (m,) or (m, n_outputs)
        What the loss asks for: labels -1 and +1, or numbers.
    sample_weight : array-like of shape (m,), optional
        Weights >= 0 that multiply the loss of each point.
    memory_limit : float, optional
        Bytes the matrices may take, checked before they are allocated; by default the free memory.
    dtype : {"float64", "float32"}
        Type of the Gram matrices while solving; certificates are always recomputed in float64 (unless that
        does not fit `memory_limit`, in which case they carry the rounding of float32). ``solve("auto")`` goes on in
        float64 where float32 is not exact enough for the tolerance, on up to 4,000 points.

    Raises
    ------
    InvalidInputError, MemoryLimitError
        Before any work starts.

    Notes
    -----
    [LCBEJ04], [CP20 (4)]. A point (theta, alpha) is measured by the
    problem, whoever found it: the primal objective at theta is an upper bound of the optimum, and
    ``c(alpha) - 1/2 sigma(A*(w w'))``, with the adjoint A* of theta -> K(theta) and the support function sigma of
    Theta, a lower bound, for inexact alpha too.

    Examples
    --------
    >>> import numpy as np, convexkernels as ck
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], 1, -1)
    >>> solution = ck.KernelLearning(ck.Tessellated(degree=0), ck.Hinge(C=10.0), X, y).solve()
    >>> solution.certificate.relative_gap <= 1e-4
    True
    """

    def __init__(
        self,
        family: Family,
        loss: Loss,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        memory_limit: float | None = None,
        dtype: str = "float64",
    ) -> None:
        if not isinstance(family, Family):
            raise InvalidInputError(f"family must be a Family such as Tessellated(...), got {family!r}.")
        check_bounded_loss(loss, ", or OuterLearning")
        if dtype not in ("float64", "float32"):
            raise InvalidInputError(f"dtype must be 'float64' or 'float32', got {dtype!r}.")
        self.family = family
        self.loss = loss
        self.dtype = np.dtype(dtype)
        self.memory_limit = memory_limit
        self.X = X
        self.single = np.ndim(y) != 2
        m = _count_rows(X, y)
        self.weights = check_weights(sample_weight, m)
        self.Y = loss.targets(y, m)
        # What the intercept makes free is taken out of the targets: far from zero it would leave them few digits.
        self.center = free_centers(loss, self.Y, self.weights)
        self.Y = self.Y - self.center[:, None]
        self.gram_set: GramSet = family.on(
            X, modulo_constants=loss.intercept, memory_limit=memory_limit, dtype=self.dtype
        )
        if self.gram_set.m != m:
            raise InvalidInputError(f"y has {m} rows, but the family describes {self.gram_set.m} points.")

    def __repr__(self) -> str:
        outputs = f", {len(self.Y)} outputs" if len(self.Y) > 1 else ""
        return f"KernelLearning({self.family!r}, {self.loss!r}, {self.gram_set.m} points{outputs})"

    # -- solving -----------------------------------------------------------------------------------

    def solve(
        self,
        solver: Any = "auto",
        *,
        tol: float = 1e-4,
        max_time: float | None = None,
        max_iter: int = 10_000,
        progress: bool | Silent = False,
        checkpoint: Any = None,
        initial: Array | None = None,
    ) -> Solution:
        """Solve the problem up to a relative duality gap.

        Parameters
        ----------
        solver : str, Program or solver object
            ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"conic"`` ..., a :class:`Program` made by
            :meth:`to_cvxpy` (perhaps with constraints of your own), or a solver with settings.
        tol : float, > 0
            Relative duality gap at which to stop.
        max_time : float, optional
            Seconds after which the best certified point so far is returned.
        max_iter : int
        progress : bool or progress object
            Show a table of iteration, upper and lower bound, relative gap and time.
        checkpoint : path, optional
            A file that the best point is written to every few seconds and at the end. Where it is there at the start,
            the work goes on from it: its point is measured again, and steps are counted on. One file serves any
            problems with the same rows, targets and weights; any other file is refused, and stays as it is.
        initial : ndarray, optional
            A theta to begin at, as that of a similar problem: of part of the rows, or at another C. Projected onto
            Theta first. ``"spectral-gradient"`` begins there, which is what ``"auto"`` uses for tessellated kernels and
            candidates; other methods and CVXPY have points of their own, as has a solver object with one.

        Returns
        -------
        Solution
            With status OPTIMAL when its certificate proves `tol`. Otherwise the status says what came first, and
            one :class:`ConvexKernelsWarning` is issued.
        """
        # Solvers see problems, so this layer cannot import them at the top.
        from convexkernels.solvers import solve

        options: dict[str, Any] = {"max_time": max_time, "max_iter": max_iter, "progress": progress}
        return solve(self, solver, tol=tol, checkpoint=checkpoint, initial=initial, **options)

    def to_cvxpy(self) -> Program:
        """State the problem in CVXPY as the papers do; constraints of your own can be added.

        Returns
        -------
        Program
            ``program.problem``, ``program.variables`` (by the papers' names), ``program.theta``; solve it with
            ``problem.solve(program)``, which measures the answer with this problem's certificate.
        """
        from convexkernels.problems.program import state

        return state(self)

    def with_gram_set(self, gram_set: GramSet, family: Family | None = None) -> KernelLearning:
        """The same problem over another set of Gram matrices on the same points, perhaps of another family."""
        other = copy(self)
        other.gram_set = gram_set
        other.family = self.family if family is None else family
        return other

    def in_float64(self) -> KernelLearning:
        """The same problem with the matrices that its certificates are computed with."""
        other = self.with_gram_set(self._exact_gram_set())
        other.dtype = np.dtype(np.float64)
        other.__dict__.pop("_known", None)
        return other

    def on_rows(self, rows: Index, family: Family | None = None) -> KernelLearning:
        """The problem on some of the rows of a table, to which the family, or another one, is restricted anew."""
        y = (self.Y + self.center[:, None])[:, rows].T
        return KernelLearning(
            (self.family if family is None else family).of_part(),
            self.loss,
            self.X[rows],
            y[:, 0] if self.single else y,
            sample_weight=self.weights[rows],
            memory_limit=self.memory_limit,
            dtype=self.dtype.name,
        )

    @cached_property
    def full_gram_set(self) -> GramSet:
        """The Gram matrices with all their terms, in float64: what the CVXPY statement uses."""
        if self.gram_set_is_full:
            return self.gram_set
        return self.family.on(self.X, modulo_constants=False, memory_limit=self.memory_limit)

    @property
    def gram_set_is_full(self) -> bool:
        """Whether `gram_set` leaves nothing out."""
        return not self.loss.intercept and self.dtype == np.float64


def _count_rows(X: Any, y: Any) -> int:
    refuse_other_tables(X)
    refuse_distributed(y, "y")
    rows = len(y) if hasattr(y, "__len__") else 0
    if rows == 0:
        raise InvalidInputError("y is empty or not a sequence; one label or target per row of X is needed.")
    if X is not None and hasattr(X, "__len__") and len(X) != rows:
        raise InvalidInputError(f"y has {rows} entries, but X has {len(X)} rows; they must agree.")
    return rows
