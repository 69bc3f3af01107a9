"""The contract of a loss: a convex dual program in alpha for a fixed Gram matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_labels_finite, check_number

# Regularization parameters between these, of data of ordinary size, give products that float64 can hold.
SMALLEST_PARAMETER, LARGEST_PARAMETER = 1e-100, 1e100

__all__ = ["BoxDual", "Loss", "LossStatement", "check_regularization", "label_rows", "target_rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoxDual:
    """``maximize lin'w - sum_i eps_i |w_i| - 1/2 sum_i diagonal_i w_i^2 - 1/2 w'Kw`` over ``lo <= w <= hi``.

    All of shape (m,); `lo` <= 0 <= `hi` may be infinite together, `diagonal` is None for zeros.
    """

    lin: Array
    eps: Array
    lo: Array
    hi: Array
    diagonal: Array | None = None


@dataclass(frozen=True, eq=False)
class LossStatement:
    """The dual of the inner maximization in CVXPY: ``J(K) = min 1/2 u' K^-1 u + cost`` over `constraints`.

    Attributes
    ----------
    u : cvxpy.Expression of shape (m,)
    cost : cvxpy.Expression
    constraints : list of cvxpy constraints
    variables : dict of str to cvxpy.Variable
        Under the names the papers use.
    signs : ndarray of shape (m,) or None
        The paper states the program with ``G = diag(signs) K diag(signs)`` and ``v = signs * u``.
    """

    u: Any
    cost: Any
    constraints: list[Any]
    variables: dict[str, Any]
    signs: Array | None = None


class Loss(ABC):
    """A regularized risk for a fixed Gram matrix K, one target vector at a time:

        J(K) = scale * max over alpha in A of  c(alpha) - 1/2 w' K w,     w = coefficients(alpha),
             = cost * min over f, b of  sum_i weights_i loss(y_i, f(x_i) + b) + lam |f|^2,

    the function found being ``f = K w + b``, which minimizes a regularized empirical risk [ST16 (8)], [MS16 (1)]. `c`
    is concave, A convex. Methods see matrices, never tables.

    Attributes
    ----------
    intercept : bool
        Whether b is fitted; then every alpha in A has ``sum w = 0``.
    scale : float
    cost : float
        Weight of the sum of losses in J: C where the loss has one, 1 otherwise.
    has_parabola : bool
        Whether ``c(s alpha) = s linear - s^2 quadratic`` for 0 <= s <= 1, all multiples being feasible: a lower bound
        can then take the best multiple of any dual point.
    is_of_differences : bool
        Whether losses depend on ``y - f`` alone: with an intercept a shift of y is a shift of b.
    needs_definite : bool
        Whether J is infinite where K is singular at working precision; the dual variables are then NaN.
    """  # noqa: D400

    intercept: bool
    scale: float = 1.0
    cost: float = 1.0
    has_parabola: bool = True
    is_of_differences: bool = False
    needs_definite: bool = False

    @property
    def lam(self) -> float:
        """Regularization parameter: weight of ``|f|^2`` beside the weighted *sum* of the losses; 1 / (2 C)."""
        return 0.5 * self.scale / self.cost

    @abstractmethod
    def at(self, lam: float) -> Self:
        """The same loss with another regularization parameter: C = 1 / (2 lam) where it has one."""

    @abstractmethod
    def pointwise(self, Y: Any, F: Any) -> tuple[Any, Any]:
        """Losses of function values `F` (intercepts included) for targets `Y`, and their slopes in `F`, entry by entry.

        Parameters
        ----------
        Y, F : ndarray of the same shape, any shape

        Returns
        -------
        values, slopes : ndarray
            At a kink any subgradient.
        """

    def constant(self, Y: Array, weights: Array) -> Array:
        """The constant of least loss for each row of `Y`: a mean, a majority, a quantile; shape (n_outputs,)."""
        free = copy(self)
        free.intercept = True
        return np.array([free.primal(np.zeros_like(y), 0.0, y, weights)[1] for y in Y])

    def distinct_rows(self, X: Array, Y: Array) -> NDArray[np.intp]:
        """Rows of the points `X` to learn from: all, unless the loss cannot bear repetitions."""
        return np.arange(len(X))

    @abstractmethod
    def targets(self, y: Any, m: int) -> Array:
        """Validate the targets and return one row per output, shape (n_outputs, m)."""

    @abstractmethod
    def maximize(
        self,
        K: Array,
        y: Array,
        weights: Array,
        *,
        start: Array | None = None,
        tol: float = 1e-6,
        deadline: float | None = None,
    ) -> Array:
        """Return an alpha in A that is optimal up to the relative duality gap `tol`.

        Parameters
        ----------
        K : ndarray of shape (m, m)
            Symmetric PSD, float64 or float32; not modified.
        y : ndarray of shape (m,)
            One row of `targets`.
        weights : ndarray of shape (m,)
            Sample weights, >= 0.
        start : ndarray of shape (m,), optional
            Any alpha to start from, for example the optimum of a nearby matrix.
        deadline : float, optional
            Value of ``time.monotonic()`` after which the best alpha so far is returned.
        """

    def maximize_all(
        self,
        K: Array,
        Y: Array,
        weights: Array,
        *,
        start: Array | None = None,
        tol: float = 1e-6,
        deadline: float | None = None,
    ) -> Array:
        """Return the alphas of all machines that share K, shape (n_machines, m).

        One machine at a time, unless a loss can share work between them. Arguments are those of `maximize`,
        with one row per machine in `Y` and `start`.
        """
        rows: list[Any] = [None] * len(Y) if start is None else list(start)
        return np.array(
            [self.maximize(K, y, weights, start=a, tol=tol, deadline=deadline) for y, a in zip(Y, rows, strict=True)]
        )

    @abstractmethod
    def feasible(self, alpha: Array, y: Array, weights: Array) -> Array:
        """A point of A near `alpha` (itself when it lies in A)."""

    @abstractmethod
    def coefficients(self, alpha: Array, y: Array) -> Array:
        """The expansion coefficients w, shape (m,)."""

    def dual_variable(self, w: Array, y: Array) -> Array:
        """The alpha with the given coefficients, inverse of `coefficients`; w itself unless a loss says otherwise."""
        return w

    def free(self, alpha: Array, y: Array, weights: Array) -> tuple[NDArray[np.intp], Array]:
        """Which coefficients answer smoothly to a small change of K, and the diagonal the loss adds to K on them.

        With those coefficients F and ``A = K_FF + diag``, the second derivative of J along dK is
        ``scale * r' A^-1 r``, ``r = (dK w)_F`` (A^-1 restricted to ``sum = 0`` with an intercept).
        """
        return np.zeros(0, dtype=np.intp), np.zeros(0)

    def box_dual(self, y: Array, weights: Array) -> BoxDual | None:
        """The dual program of one machine in its coefficients w, where it has this form."""
        return None

    @abstractmethod
    def dual_constant(self, alpha: Array, y: Array, weights: Array) -> float:
        """The concave part c(alpha), without the term in K."""

    @abstractmethod
    def primal(self, f: Array, quadratic: float, y: Array, weights: Array) -> tuple[float, float, float]:
        """Primal objective of a multiple ``s (f + b)``, with the intercept b that is best for f.

        Parameters
        ----------
        f : ndarray of shape (m,)
            Values ``K w`` on the training points, without intercept.
        quadratic : float
            ``w' K w``.

        Returns
        -------
        value : float
            Not below J(K), whatever w is.
        b : float
            0 without intercept.
        s : float
            The multiple that attains `value`; 1 unless the loss knows a better one.
        """

    @abstractmethod
    def statement(self, y: Array, weights: Array) -> LossStatement:
        """The dual of the inner maximization, in CVXPY."""


def check_regularization(name: str, value: Any) -> float:
    """A value of C or of lam, or a refusal by name."""
    check_number(name, value, low=0.0, open_low=True)
    return check_number(name, value, low=SMALLEST_PARAMETER, high=LARGEST_PARAMETER)


def target_rows(y: Any, m: int) -> Array:
    """Finite numbers as targets: one row per machine, shape (n_machines, m)."""
    values = check_labels_finite(y, m)
    return np.ascontiguousarray(np.atleast_2d(values.T))


def label_rows(y: Any, m: int) -> Array:
    """Labels -1 and +1, both in every output: one row per output, shape (n_outputs, m)."""
    values = check_labels_finite(y, m)
    rows = np.atleast_2d(values.T)
    found = np.unique(values)
    if not np.isin(found, (-1.0, 1.0)).all():
        raise InvalidInputError(
            f"y must hold the labels -1 and +1 (one column per machine), found {found[:6].tolist()}; "
            "encode classes first, for example with numpy.where(y == positive, 1, -1)."
        )
    for column, row in enumerate(rows):
        if (row == row[0]).all():
            where = f"column {column} of y" if values.ndim == 2 else "y"
            raise InvalidInputError(f"{where} holds one class only ({row[0]:+.0f}); two classes are needed.")
    return np.ascontiguousarray(rows)
