"""Concatenated learning: minimize over functions f_1 o f_2 o ... o f_L from reproducing kernel Hilbert spaces."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.certificate import Stationarity
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError
from convexkernels.families.curved.layers import Coordinates, LayerStack
from convexkernels.kernels import Concatenated, Kernel
from convexkernels.kernels.distances import radial_pullback, squared_distances
from convexkernels.outer.concatenated_search import FINE_STALL, entropy, sample_rows, search
from convexkernels.outer.outermost import OutermostFit, OutermostLoss, as_outermost
from convexkernels.outer.quasi_newton import Limits
from convexkernels.outer.solution import OuterSolution
from convexkernels.solution import Status
from convexkernels.validation import check_number, check_points, check_whole_number

__all__ = ["ConcatenatedLearning"]

Array = NDArray[np.float64]
Point = Sequence[Array]


class ConcatenatedLearning:
    """minimize over f_1, ..., f_L the loss of ``f_1 o ... o f_L`` plus ``lam |f_1|^2 + sum_l mu_l |f_l|^2``.

    By the representer theorem every f_l is a combination of translates of its kernel at the images
    of the data, and for fixed inner layers the outermost one is the solution of a convex problem.
    What is left is a function of the inner coefficients alone (variable projection),

        ``J(c_2, ..., c_L) = V(K_1(g(X), g(X))) + sum_l mu_l c_l' K_l c_l,   g = f_2 o ... o f_L``,

    with V the optimal value of the outermost problem. Its gradient needs one backward sweep, at the
    cost of one to two evaluations of J: O(m^3 + m^2 (n_unknowns / m)) where the paper differentiates
    one coefficient at a time for O(m^3 d + (m d)^2).

    Parameters
    ----------
    layers : sequence of Kernel, length L >= 2
        K_1, ..., K_L, outermost first. All but the last have to be differentiable.
    loss : Interpolation or a loss of the library
        ``Interpolation()``, ``LeastSquares(lam)``, ``Hinge(C)``, ``EpsilonInsensitive(C, epsilon)``, ... For a
        price C, the objective is divided by it: ``lam = 1 / (2 C)`` weighs the norm of f_1.
    X : array-like of shape (m, n)
    y : array-like of shape (m,) or (m, outputs)
        Several outputs share the inner layers.
    widths : int or sequence of int, optional
        Output dimensions of f_2, ..., f_L, outermost first; n when not given.
    weights : sequence of array-like, optional
        Vectors a of the matrix-valued kernels ``K_l diag(a)`` of f_2, ..., f_L; ones when not given.
    mu : float or sequence of float, > 0
        Weights of the squared norms of f_2, ..., f_L.
    repulsion : float, >= 0
        The gamma of (12): adds ``repulsion * sum_{i<j} coth(|g(x_i) - g(x_j)|^2)``.

    Raises
    ------
    InvalidInputError
        Also for repeated points with different values under interpolation (rows are named).
    NotDifferentiableError
        When K_1, ..., K_(L-1) are not all differentiable.
    """

    def __init__(
        self,
        layers: Sequence[Kernel],
        loss: Any,
        X: Any,
        y: Any,
        *,
        widths: Any = None,
        weights: Any = None,
        mu: Any = 1.0,
        repulsion: float = 0.0,
    ) -> None:
        points = check_points(X)
        _check_layers(layers)
        self.layers = tuple(layers)
        self.loss: OutermostLoss = as_outermost(loss)
        Y = self.loss.targets(y, points.shape[0])
        rows = self.loss.distinct_rows(points, Y)
        self.X, self.Y = points[rows], Y[rows]
        self.stack = LayerStack(layers[1:], self.X, points.shape[1] if widths is None else widths, weights)
        for kernel, width in zip(layers[:-1], self.stack.widths, strict=True):
            kernel.pullback(np.ones((1, width)), np.ones((1, width)), np.ones((1, 1)))  # refuses kinks
        self.mu = _check_mu(mu, self.stack.depth)
        self.repulsion = check_number("repulsion", repulsion, low=0.0)
        self.is_single_output = np.ndim(y) == 1

    def with_parameters(self, loss: Any, mu: Any) -> ConcatenatedLearning:
        """Return the same problem with another loss and other norm weights; the layers are shared."""
        other = copy.copy(self)
        other.loss, other.mu = as_outermost(loss), _check_mu(mu, self.stack.depth)
        return other

    def restricted_to(self, rows: NDArray[np.intp]) -> ConcatenatedLearning:
        """Return the problem on some of the rows."""
        other = copy.copy(self)
        other.X, other.Y = self.X[rows], self.Y[rows]
        other.stack = self.stack.at(other.X)
        return other

    def sampled(self, size: int | None, random_state: Any) -> ConcatenatedLearning:
        """Return the problem on about `size` rows, spread evenly over the targets, or itself if it is not larger."""
        if size is None or self.X.shape[0] <= check_whole_number("search_size", size, low=2):
            return self
        return self.restricted_to(sample_rows(self, size, np.random.default_rng(entropy(random_state))))

    def extend(self, point: Point, rows: NDArray[np.intp]) -> tuple[Array, ...]:
        """Coefficients here of the functions that a solution of the problem on `rows` describes."""
        extended = []
        for c in point:
            full = np.zeros((self.X.shape[0], c.shape[1]))
            full[rows] = c
            extended.append(full)
        return tuple(extended)

    def evaluate(self, coordinates: Coordinates, u: Array, start: OutermostFit | None = None) -> ConcatenatedEvaluation:
        """Evaluate J at the unknowns `u` in the given coordinates; the gradient is computed on demand."""
        return ConcatenatedEvaluation(self, coordinates, u, start)

    def certificate(self, point: Point) -> Stationarity:
        """Value and gradient norm at `point`, in whitened coordinates.

        The scale is ``value / max(1, |u|)``: a relative residual of 1e-4 says that, to first order, no
        move of relative size 1 in the unknowns lowers the objective by more than 1e-4 of its value.
        """
        coordinates, u = self.stack.coordinates_at(point)
        there = self.evaluate(coordinates, u)
        residual = float(np.linalg.norm(there.gradient()))
        return Stationarity(there.value, residual, scale=abs(there.value) / max(1.0, float(np.linalg.norm(u))))

    def kernel(self, point: Point) -> Concatenated:
        """The deep kernel (10) at `point`."""
        return Concatenated(self.layers[0], self.stack.maps(point))

    def machine(self, point: Point) -> OutermostFit:
        """The outermost kernel machine at `point`: the exact solution for its deep kernel."""
        return self.loss.solve(self.kernel(point)(self.X), self.Y)

    def decision_function(self, point: Point, X: Any) -> NDArray[np.float64]:
        """Evaluate the learned function at the rows of `X`, shape (n_samples,) or (n_samples, outputs)."""
        values = self.machine(point).predict(self.kernel(point)(X, self.X))
        return values[:, 0] if self.is_single_output else values

    def solve(
        self,
        *,
        n_restarts: int = 64,
        random_state: Any = None,
        n_jobs: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 500,
        max_time: float | None = None,
        progress: Any = False,
        starts: Sequence[Point] = (),
        search_size: int | None = None,
    ) -> OuterSolution:
        """Search from several starts and keep the best objective.

        Parameters
        ----------
        n_restarts : int, >= 1
            The first start is the identity (as far as the inner kernels can express it), the others
            are random. All are searched coarsely, the best few to the tolerance.
        random_state : int, numpy.random.Generator or None
            The same seed gives the same starts whatever `n_jobs` is.
        n_jobs : int, optional
            Processes that share the starts; -1 for all cores.
        tol : float, > 0
            Relative residual of the certificate at which a point counts as stationary.
        max_iter : int, >= 1
            Iterations per start.
        max_time : float, optional
            Seconds after which the best point so far is returned.
        progress : bool or Progress
        starts : sequence of points
            Further starting points, searched in addition.
        search_size : int, optional
            With more points than this the restarts are searched on so many of them, spread evenly over
            the targets, and the best is continued on all: the functions found are the same object there.

        Returns
        -------
        OuterSolution
        """
        n_restarts = check_whole_number("n_restarts", n_restarts, low=1)
        max_iter = check_whole_number("max_iter", max_iter, low=1)
        tol = check_number("tol", tol, low=0.0, open_low=True)
        deadline = np.inf if max_time is None else time.monotonic() + check_number("max_time", max_time, low=0.0)
        limits = Limits(tol, FINE_STALL, max_iter, deadline)
        how: dict[str, Any] = {"n_restarts": n_restarts, "random_state": entropy(random_state), "n_jobs": n_jobs}
        if search_size is None or self.X.shape[0] <= check_whole_number("search_size", search_size, low=2):
            solution = search(self, limits, progress=progress, starts=starts, **how)
        else:
            solution = self._solve_from_sample(search_size, limits, how, progress, starts)
        if not solution.status.is_success:
            warnings.warn(f"{solution.status.value}: {solution.certificate}.", ConvexKernelsWarning, stacklevel=2)
        return solution

    def _solve_from_sample(
        self, size: int, limits: Limits, how: dict[str, Any], progress: Any, starts: Sequence[Point]
    ) -> OuterSolution:
        """Search on some of the rows and continue the functions found on all of them."""
        rows = sample_rows(self, size, np.random.default_rng(how["random_state"]))
        first = search(self.restricted_to(rows), limits, progress=progress, **how)
        starts = [self.extend(first.point, rows), *starts]
        if first.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            limits = replace(limits, deadline=-np.inf)
        last = search(self, limits, n_restarts=0, n_jobs=how["n_jobs"], progress=progress, starts=starts)
        status = Status.INTERRUPTED if first.status is Status.INTERRUPTED else last.status
        return replace(
            last,
            status=status,
            n_iter=first.n_iter + last.n_iter,
            seconds=first.seconds + last.seconds,
            restart_values=first.restart_values,
        )


class ConcatenatedEvaluation:
    """J at one point, with its gradient by the adjoint method on demand."""

    def __init__(
        self, problem: ConcatenatedLearning, coordinates: Coordinates, u: Array, start: OutermostFit | None = None
    ) -> None:
        self.problem = problem
        self.coordinates = coordinates
        stack = problem.stack
        self.passes = stack.forward(coordinates, u)
        self.images = stack.images(self.passes)
        if not np.isfinite(self.images).all() or np.abs(self.images).max() > 1e100:
            self.value = np.inf
            return
        self.machine = problem.loss.solve(problem.layers[0](self.images), problem.Y, start)
        self.value = self.machine.value + float(problem.mu @ stack.norms(self.passes))
        if problem.repulsion > 0:
            self.value += problem.repulsion * _repulsion(self._distances)

    @cached_property
    def _distances(self) -> Array:
        return squared_distances(self.images, self.images)

    def gradient(self) -> Array:
        """Gradient of J in the whitened unknowns."""
        problem, Z, W = self.problem, self.images, self.machine.coefficients
        # Both arguments of K_1 move with the images, hence twice the pullback of -lam W W'.
        sensitivity = problem.layers[0].pullback(Z, Z, (-2.0 * problem.loss.lam * W) @ W.T)
        if problem.repulsion > 0:
            sensitivity += problem.repulsion * radial_pullback(Z, Z, _repulsion_slope(self._distances))
        return problem.stack.adjoint(self.coordinates, self.passes, sensitivity, problem.mu)


def _repulsion(distances: Array) -> float:
    """``sum_{i<j} coth(d_ij)`` of squared distances, inf where two images coincide."""
    pairs = distances[np.triu_indices(distances.shape[0], 1)]
    with np.errstate(divide="ignore"):
        return float(np.sum(1.0 / np.tanh(pairs)))


def _repulsion_slope(distances: Array) -> Array:
    """``d coth(d) / dd = -1 / sinh(d)^2`` off the diagonal, 0 on it."""
    slope = -1.0 / np.sinh(np.clip(distances, 1e-150, 300.0)) ** 2
    np.fill_diagonal(slope, 0.0)
    return slope


def _check_layers(layers: Sequence[Kernel]) -> None:
    """Refuse fewer than two layers and things that are not kernels."""
    if len(layers) < 2:
        raise InvalidInputError(
            f"layers must hold at least two kernels, outermost first, got {len(layers)}; a single layer is an "
            "ordinary kernel machine."
        )
    for kernel in layers:
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(f"layers must hold kernels, got {kernel!r}.")


def _check_mu(mu: Any, depth: int) -> Array:
    values = [mu] * depth if np.ndim(mu) == 0 else list(mu)
    if len(values) != depth:
        raise InvalidInputError(f"mu must be one number or {depth} numbers, one per inner layer, got {mu!r}.")
    return np.array([check_number("mu", value, low=0.0, open_low=True) for value in values])
