"""Learning with one kernel, on as many rows as time allows: the matrix is never held here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.backend import device_name
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.operator import GramOperator
from convexkernels.kernels.rescaled import Rescaled
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit, measure_values
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.on_rows import OnRows, check_bounded_loss, free_centers
from convexkernels.problems.rounding import charged_gap
from convexkernels.validation import check_number, check_points, check_weights

if TYPE_CHECKING:
    from convexkernels.progress import Silent
    from convexkernels.solution import Solution
    from convexkernels.solvers.convex.preparation import Forecast


class FixedKernel(OnRows):
    """``minimize over f, b  sum_i weights_i loss(y_i, f(x_i) + b) + lam |f|^2`` in the space of one kernel.

    The last step after a kernel was learned on some of the rows: the same kernel on all of them, to about 50,000.
    Kernel ridge [BGR19 (5), (6)], and support vector machines.

    Parameters
    ----------
    kernel : Kernel
    loss : LeastSquares, Hinge, EpsilonInsensitive or Pinball
    X : array-like of shape (m, n)
    y : array-like of shape (m,) or (m, n_outputs)
        What the loss asks for: labels -1 and +1, or numbers.
    sample_weight : array-like of shape (m,), optional
        Weights > 0 that multiply the losses.
    offset : array-like of shape (n_outputs,), optional
        What the functions learn deviations from; when not given 0, or the means of targets far from zero where an
        intercept is fitted.
    bounds : (low, high), optional
        Predictions are clipped to this range.
    memory_limit : float, optional
        Bytes that solving may take; the free memory when not given. What does not fit of the matrix is evaluated
        again. Support vector losses are solved fastest where the matrix of all support vectors fits in float32.
    device : str or torch.device, optional
        A device of PyTorch, for example "cuda", that evaluates the matrix and multiplies with it; numpy when not given.
        For kernels `HierarchicalGaussian` and `Gaussian`. There `memory_limit` is that of the tiles on the device, and
        its free memory when not given. The certificate is in float64 there as well.

    Attributes
    ----------
    Y : ndarray of shape (n_outputs, m)
        Targets without their offset.

    Examples
    --------
    >>> import numpy as np, convexkernels as ck
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> problem = ck.FixedKernel(ck.Gaussian(5.0), ck.LeastSquares(0.01), X, np.sin(6.0 * X[:, 0]) * X[:, 1])
    >>> solution = problem.solve()
    >>> solution.certificate.relative_gap <= 1e-3
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        bounds: tuple[float, float] | None = None,
        memory_limit: float | None = None,
        device: Any = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(f"kernel must be a Kernel such as Gaussian(1.0), got {kernel!r}.")
        check_bounded_loss(loss)
        if memory_limit is not None:
            check_number("memory_limit", memory_limit, low=0.0, remedy="Pass None for the free memory.")
        self.kernel_, self.loss, self.memory_limit = kernel, loss, memory_limit
        self.X, self.device = check_points(X), device_name(device)
        if device is not None:
            kernel.blocks(self.X[:1], device=device)  # refuses kernels that are not evaluated there
        Y = loss.targets(y, len(self.X))
        self.single = np.ndim(y) == 1
        self.weights = check_weights(sample_weight, len(self.X), open_low=True)
        self.offset = np.zeros(len(Y)) if offset is None else np.asarray(offset, dtype=np.float64)
        if loss.of_labels and self.offset.any():
            raise InvalidInputError(f"offset must be 0 for {loss!r}, which learns labels, got {offset!r}.")
        self.offset = self.offset + free_centers(loss, Y - self.offset[:, None], self.weights)
        self.Y = Y - self.offset[:, None]
        self.bounds = bounds

    @classmethod
    def of(cls, solution: Solution, X: Any, y: Any, **settings: Any) -> FixedKernel:
        """What a solution has, on other rows: kernel, regularization parameter, offset, bounds and device.

        Settings of this class take the place of what the solution has, such as ``device=None``.

        Of any problem with one kernel and a loss of :class:`FixedKernel`: :class:`KernelLearning`,
        :class:`OuterLearning`, this one, and spectral kernels; in the place of a trace norm stands the ridge that pulls
        as hard.
        """
        problem = solution.problem
        if not hasattr(problem, "stated_at"):
            raise InvalidInputError(
                f"solution must be of a problem with one kernel and one lam, such as KernelLearning or OuterLearning, "
                f"got one of {type(problem).__name__}; pass a kernel and a loss to FixedKernel."
            )
        return cls(solution.kernel, X=X, y=y, **{**problem.stated_at(solution.theta), **settings})

    def __repr__(self) -> str:
        outputs = f", {len(self.Y)} outputs" if len(self.Y) > 1 else ""
        return f"FixedKernel({type(self.kernel_).__name__}, {self.loss!r}, {self.m} points{outputs})"

    def on_rows(self, rows: Index) -> FixedKernel:
        """The problem on some of the rows."""
        other = self.with_loss(self.loss)
        other.X, other.weights = self.X[rows], self.weights[rows]
        other.Y = np.ascontiguousarray(self.Y[:, rows])
        return other

    def rescaled(self, factor: float) -> FixedKernel:
        """The problem with the kernel ``k(factor x, factor x')``."""
        other, n = self.with_loss(self.loss), self.X.shape[1]
        if factor != 1.0:
            other.kernel_ = Rescaled(self.kernel_, np.zeros(n), np.full(n, 1.0 / factor))
        return other

    def operator(self, dtype: Any, memory: float = 0.0) -> GramOperator:
        """Products with the matrix, by tiles of a type that may take some memory."""
        return GramOperator(self.kernel_, self.X, dtype, memory, self.device)

    def stated_at(self, theta: Any) -> dict[str, Any]:
        """Loss, offset, bounds and device, as :meth:`of` takes them."""
        return {"loss": self.loss, "offset": self.offset, "bounds": self.bounds, "device": self.device}

    # -- measuring ---------------------------------------------------------------------------------

    def measure(self, alpha: Array, F: Array) -> Fit:
        """What dual variables are worth, given the values ``F = W K`` of their functions without intercepts."""
        return measure_values(self.loss, F, self.coefficients(alpha), self.Y, self.weights, alpha)

    def certificate(self, theta: Any, alpha: Any, witness: Any = None) -> DualityGap:
        """Bounds on the optimum from any dual variables, in float64 and tile by tile; `theta` is empty.

        One evaluation of the lower triangle of the matrix.
        """
        points = [self.feasible(alpha)]
        if witness is not None and not np.array_equal(witness, alpha):
            points.append(self.feasible(witness))
        F = (
            self.operator(np.float64)
            .product(np.vstack([self.coefficients(alpha) for alpha in points]))
            .reshape(len(points), *self.Y.shape)
        )
        found = self.measure(points[0], F[0])
        self.__dict__["_known"] = np.array(alpha, ndmin=2), found  # who asks for the function next needs no other look
        lowest = found if len(points) == 1 else self.measure(points[1], F[1])
        return charged_gap(self.loss, self.Y, self.weights, self.kernel_._sizes(self.X), found, F[0], lowest)

    @property
    def value_of_constants(self) -> float:
        """The objective of the best constants, the functions with ``alpha = 0``."""
        return self.measure(np.zeros(self.Y.shape), np.zeros(self.Y.shape)).upper

    # -- using a point -----------------------------------------------------------------------------

    def kernel(self, theta: Any = None) -> Kernel:
        """The kernel."""
        return self.kernel_

    def intercept(self, theta: Any, alpha: Any) -> Any:
        """Intercept that goes with `kernel`: a float, or shape (n_outputs,) for a matrix y."""
        b = self.function(theta, alpha).b
        return float(b[0]) if self.single else b

    def found(self, alpha: Any) -> Fit:
        """What dual variables are worth, as they are certified."""
        if "_known" not in self.__dict__ or not np.array_equal(self.__dict__["_known"][0], np.atleast_2d(alpha)):
            self.certificate(np.zeros(0), alpha)
        known: Fit = self.__dict__["_known"][1]
        return known

    def function(self, theta: Any, alpha: Any) -> DecisionFunction:
        """The functions behind the upper bound."""
        found = self.found(alpha)
        bounds = None if self.bounds is None else tuple(np.full((len(self.Y), 1), end) for end in self.bounds)
        W, b = found.multiples[:, None] * found.W, found.multiples * found.b + self.offset
        return DecisionFunction.of_kernel(self.kernel_, self.X, W, b, single=self.single, bounds=bounds)

    # -- solving -----------------------------------------------------------------------------------

    def forecast(self) -> Forecast:
        """What :meth:`solve` takes in time and memory, about."""
        from convexkernels.solvers import with_one_kernel

        forecast: Forecast = with_one_kernel(self).forecast(self)
        return forecast

    def solve(
        self,
        solver: Any = "auto",
        *,
        lams: Sequence[float] | None = None,
        tol: float = 1e-3,
        max_time: float | None = None,
        max_iter: int | None = None,
        progress: bool | Silent = False,
        checkpoint: Any = None,
        random_state: Any = None,
    ) -> Solution:
        """Solve on all rows: least squares by conjugate gradients, support vector losses block by block.

        Up to 1,000 rows, where the memory holds their matrix, both are solved with it in float64.

        Parameters
        ----------
        solver : str or solver object
            "dense", "conjugate-gradients" or "decomposition"; "auto" takes the first for the rows and the loss.
        lams : sequence of float > 0, optional
            Candidates for the regularization parameter of least squares, chosen on held-out rows. When not given they
            are placed around that of the loss until the best one is none of the ends; with one candidate nothing is
            held out. Support vector losses take one, ``1 / (2 C)``, or that of the loss.
        tol : float, > 0
            Relative duality gap at which to stop. Held-out risks move by less than that.
        max_time : float, optional
            Seconds, for the choice and the solution. The certificate, one evaluation of the matrix, is allowed for.
        max_iter : int, optional
            Steps, each of them one product with the matrix; of support vector losses a second or two of work.
        progress : bool or progress object
        checkpoint : path, optional
            A file that the choice and the best point are written to, as :meth:`KernelLearning.solve` says.
        random_state : int, numpy.random.Generator or None
            Which rows are held out.

        Returns
        -------
        Solution
            Of the problem at the chosen parameter, ``solution.problem.loss.lam``; where there was a choice,
            ``solution.trace`` has the candidates "lams" in ascending order and their "risks", mean losses on held-out
            rows, these rows ("held_out"), and the values there of functions that have not seen them
            ("held_out_values", shape (n_outputs, n_held_out), without the offset). By conjugate gradients it has
            "preconditioner_error", too: the share of the trace of the matrix that the low-rank factor behind their
            steps leaves out. Many steps and a share near 1 mean a kernel that is too narrow for such a factor. After
            an interrupt or at the end of the time, the best point so far with its certificate.

        Raises
        ------
        InvalidInputError
            Where no solver takes the loss, such as Logistic.
        MemoryLimitError
            Where `memory_limit` is less than vectors and some rows of the matrix take.
        """
        # Solvers see problems, so this layer cannot import them at the top.
        from convexkernels.solvers import solve_on_all_rows

        return solve_on_all_rows(
            self,
            solver,
            lams=lams,
            tol=tol,
            max_time=max_time,
            max_iter=max_iter,
            progress=progress,
            checkpoint=checkpoint,
            random_state=random_state,
        )
