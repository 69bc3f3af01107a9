"""The contract of a loss: a convex dual program in alpha for a fixed Gram matrix."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_labels_finite, check_number

# Regularization parameters between these, of data of ordinary size, give products that float64 can hold.
SMALLEST_PARAMETER, LARGEST_PARAMETER = 1e-100, 1e100


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

    def on_rows(self, rows: Index, lin: Array) -> "BoxDual":
        """The program in some of the coefficients, with what the others make of `lin`."""
        diagonal = None if self.diagonal is None else self.diagonal[rows]
        return BoxDual(lin, self.eps[rows], self.lo[rows], self.hi[rows], diagonal)


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
    of_labels : bool
        Whether targets are the labels -1 and 1, and ``w = y alpha`` with alpha >= 0; otherwise alpha is w.
    has_parabola : bool
        Whether ``c(s alpha) = s linear - s^2 quadratic`` for 0 <= s <= 1, all multiples being feasible: a lower bound
        can then take the best multiple of any dual point.
    is_of_differences : bool
        Whether losses depend on ``y - f`` alone: with an intercept a shift of y is a shift of b.
    bears_outliers : bool
        Whether they grow no faster than these differences.
    has_level : bool
        Whether its best constant is one number, a mean or a quantile: see `offset`.
    needs_definite : bool
        Whether J is infinite where K is singular at working precision; the dual variables are then NaN.
    """  # noqa: D400

    intercept: bool
    scale: float = 1.0
    cost: float = 1.0
    of_labels: bool = False
    has_parabola: bool = True
    is_of_differences: bool = False
    bears_outliers: bool = False
    has_level: bool = False
    needs_definite: bool = False

    def __repr__(self) -> str:
        settings = {name: getattr(self, name) for name in signature(type(self)).parameters}
        shown = (f"{name}={value if isinstance(value, bool) else f'{value:g}'}" for name, value in settings.items())
        return f"{type(self).__name__}({', '.join(shown)})"

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

    def sizes(self, Y: Array) -> Array:
        """What is summed in the dual objective for a coefficient of size 1, entry by entry of the targets."""
        return np.abs(Y)

    def inexact(self, Y: Array, F: Array, b: Array) -> Array:
        """Numbers whose rounding is felt beside that of ``F - b``, where `F` has the intercepts b in it.

        ``y - f - b`` is one difference, right to its own size, where f or b is 0. Shape of `F`.
        """
        f = F - b[:, None]
        return np.where((f != 0.0) & (b[:, None] != 0.0), np.abs(Y - f), 0.0)

    def total(self, Y: Array, F: Array, weights: Array) -> Array:
        """Weighted sums of the losses over rows, the last axis, of `pointwise`."""
        return np.asarray(self.pointwise(Y, F)[0] @ weights)

    def constant(self, Y: Array, weights: Array) -> Array:
        """The constant of least loss for each row of `Y`: a mean, a majority, a quantile; shape (n_outputs,)."""
        free = copy(self)
        free.intercept = True
        return np.array([free.primal(np.zeros_like(y), 0.0, y, weights)[1] for y in Y])

    def least_constant(self, Y: Array, weights: Array) -> Array:
        """The same to the last digit of the loss: `constant` may be the middle of a piece that is nearly flat."""
        return self.constant(Y, weights)

    def offset(self, Y: Array, weights: Array) -> Array | None:
        """What functions without an intercept learn deviations from, shape (n_outputs,), where the loss has a level."""
        return self.constant(Y, weights) if self.has_level and not self.intercept else None

    def rows_to_learn(self, X: Array, Y: Array) -> Index:
        """Rows of the points `X` to learn from: all, unless the loss cannot bear repetitions."""
        return np.arange(len(X))

    def targets(self, y: Any, m: int) -> Array:
        """Validate the targets and return one row per output, shape (n_outputs, m)."""
        values = check_labels_finite(y, m)
        if self.of_labels:
            _check_two_labels(values)
        return np.ascontiguousarray(np.atleast_2d(values.T))

    # -- the dual program --------------------------------------------------------------------------

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
        """Return alphas in A, one for each output, that are optimal up to the relative duality gap `tol`.

        Parameters
        ----------
        K : ndarray of shape (m, m)
            Symmetric PSD, float64 or float32; not modified.
        Y : ndarray of shape (n_outputs, m)
            As from `targets`.
        weights : ndarray of shape (m,)
            Sample weights, >= 0.
        start : ndarray of shape (n_outputs, m), optional
            Any alphas to start from, for example the optima of a nearby matrix or regularization parameter.
        deadline : float, optional
            Value of ``time.monotonic()`` after which the best alphas so far are returned.
        """
        return output_by_output(Y, start, lambda y, alpha: self._maximum(K, y, weights, alpha, tol, deadline))

    def maximize(self, K: Array, y: Array, weights: Array, *, start: Array | None = None, **settings: Any) -> Array:
        """:meth:`maximize_all` for one output, with `y` and `start` of shape (m,)."""
        return self.maximize_all(K, y[None], weights, start=None if start is None else start[None], **settings)[0]

    def _maximum(
        self, K: Array, y: Array, weights: Array, start: Array | None, tol: float, deadline: float | None
    ) -> Array:
        """The alpha of one output, where a loss cannot share work between them."""
        raise NotImplementedError

    def optimum(
        self, K: Array, Y: Array, weights: Array, *, start: Array | None = None, tol: float = 1e-6
    ) -> tuple[Array, Array, float]:
        """Alphas, coefficients w and J(K) for a search, which asks for no certificate; arguments as `maximize_all`."""
        alpha = self.maximize_all(K, Y, weights, start=start, tol=tol)
        W = np.array([self.coefficients(a, y) for a, y in zip(alpha, Y, strict=True)])
        constant = sum(self.dual_constant(a, y, weights) for a, y in zip(alpha, Y, strict=True))
        return alpha, W, self.scale * (constant - 0.5 * sum(float(w @ product(K, w)) for w in W))

    @abstractmethod
    def feasible(self, alpha: Array, y: Array, weights: Array) -> Array:
        """A point of A near `alpha` (itself when it lies in A)."""

    def coefficients(self, alpha: Array, y: Array) -> Array:
        """The expansion coefficients w, shape (m,)."""
        return y * alpha if self.of_labels else alpha

    def dual_variable(self, w: Array, y: Array) -> Array:
        """The alpha with the given coefficients, inverse of `coefficients`."""
        return np.abs(w) if self.of_labels else w

    def free(self, alpha: Array, y: Array, weights: Array) -> tuple[Index, Array]:
        """Which coefficients answer smoothly to a small change of K, and the diagonal the loss adds to K on them.

        With those coefficients F and ``A = K_FF + diag``, the second derivative of J along dK is
        ``scale * r' A^-1 r``, ``r = (dK w)_F`` (A^-1 restricted to ``sum = 0`` with an intercept).
        """
        return np.zeros(0, dtype=np.intp), np.zeros(0)

    def box_dual(self, y: Array, weights: Array) -> BoxDual | None:
        """The dual program of one output in its coefficients w, where it has this form."""
        return None

    def parabola(self, w: Array, y: Array, weights: Array) -> BoxDual | None:
        """The dual program with a parabola for c that touches it at `w`; its box is open where that is another c."""
        return self.box_dual(y, weights)

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

    def _fitted(self, m: int) -> tuple[Any, Any, dict[str, Any]]:
        """f, f + b and their variables by name, for a statement."""
        import cvxpy as cp

        f = cp.Variable(m, name="f")
        if not self.intercept:
            return f, f, {"f": f}
        b = cp.Variable(name="b")
        return f, f + b, {"f": f, "b": b}


def check_regularization(name: str, value: Any) -> float:
    """A value of C or of lam, or a refusal by name."""
    check_number(name, value, low=0.0, open_low=True)
    return check_number(name, value, low=SMALLEST_PARAMETER, high=LARGEST_PARAMETER)


def output_by_output(Y: Array, start: Array | None, maximum: Callable[[Array, Array | None], Array]) -> Array:
    """Alphas of all outputs, from those of one with its targets and its start, if there is any."""
    starts = [None] * len(Y) if start is None else list(start)
    return np.array([maximum(y, alpha) for y, alpha in zip(Y, starts, strict=True)])


def product(K: Array, w: Array) -> Array:
    """``K w`` in float64, without a float64 copy of a float32 matrix."""
    if K.dtype == np.float64:
        return K @ w
    f = np.empty(len(K))
    for start in range(0, len(K), 1024):
        f[start : start + 1024] = K[start : start + 1024].astype(np.float64) @ w
    return f


def _check_two_labels(values: Array) -> None:
    """Refuse anything but the labels -1 and +1, both in every output."""
    found = np.unique(values)
    if not np.isin(found, (-1.0, 1.0)).all():
        raise InvalidInputError(
            f"y must hold the labels -1 and +1 (one column per output), found {found[:6].tolist()}; "
            "encode classes first, for example with numpy.where(y == positive, 1, -1)."
        )
    for column, row in enumerate(np.atleast_2d(values.T)):
        if (row == row[0]).all():
            where = f"column {column} of y" if values.ndim == 2 else "y"
            raise InvalidInputError(f"{where} holds one class only ({row[0]:+.0f}); two classes are needed.")
