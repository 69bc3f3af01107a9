"""One inner problem in place of a search, for families whose support function is itself a squared norm."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import norm

from convexkernels.arrays import Array
from convexkernels.losses.base import BoxDual
from convexkernels.losses.interior_point import solve_on_factor
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status


class Envelope(OuterSolver):
    """Solve one inner problem at the envelope of the family; its best kernel is the vertex that it selects.

    If ``sigma(A*(w w')) = w' K(E) w`` for a fixed E, the saddle problem ``max over alpha of c(alpha) - 1/2 sigma`` is
    the dual of one problem with the matrix K(E). Its w is optimal, the vertex that attains sigma the optimal
    theta. That is so for generalized polynomial kernels (E = tau I, optimal P of rank one) and for all kernel matrices
    of a given trace (E = m I; [CP20 Theorem 10] is the closed form for the hinge loss).
    """

    name = "envelope"
    passes_kinks = True

    def accepts(self, problem: Any) -> str | None:
        if problem.gram_set.envelope() is None:
            return "the support function of its family is no squared norm"
        return None if len(problem.Y) == 1 else "it has several outputs, whose squared norms do not add up to one"

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        first = self._at(problem, None, 1e-2 * tol, deadline)
        if -1e-9 * abs(first.upper) <= first.upper - first.lower <= tol * abs(first.upper):
            return first
        V = problem.gram_set.envelope_factor()
        dual = problem.loss.box_dual(problem.Y[0], problem.weights)
        return first if V is None or dual is None else _better(first, self._on_factor(problem, V, dual, tol, deadline))

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        inner_tol = iterate.memory * 1e-2
        if inner_tol < 1e-13:
            iterate.status = Status.NUMERICAL_ERROR  # without rounding, one inner problem would have been enough
            return iterate
        return self._at(problem, iterate.witness, inner_tol, deadline)

    def _at(self, problem: Any, start: Any, inner_tol: float, deadline: float | None) -> Iterate:
        E = problem.gram_set.envelope()
        outer = problem.evaluate(E, start=start, tol=inner_tol, deadline=deadline)
        lower, _, theta = problem.lower_bound(outer)
        K = problem.gram_set.gram(theta)
        # At the vertex the same w is optimal, among many: K(theta) has rank one on it.
        found = problem.measure(theta, outer.alpha, K)
        return Iterate(theta, outer.alpha, found.upper, lower, memory=inner_tol, witness=outer.alpha)

    def _on_factor(self, problem: Any, V: Array, dual: BoxDual, tol: float, deadline: float | None) -> Iterate:
        """The same inner problem on ``K(E) = V V'``, where K(E) is so large that it has lost what matters.

        The vertex is made of ``u = V'w``, which is an unknown of its own: formed from w it would be rounding.
        """
        w, u = solve_on_factor(V, dual, problem.loss.intercept, tol=1e-3 * tol, deadline=deadline)
        alpha = problem.feasible(problem.loss.dual_variable(w, problem.Y[0])[None])
        length = float(norm(u)) or 1.0  # BLAS's, which squares nothing that is small
        u = u / length
        theta = problem.gram_set.envelope()[0, 0] * np.outer(u, u)
        K = problem.gram_set.gram(theta)
        found = problem.measure(theta, alpha, K)
        lower, _, _ = problem.lower_bound(found)
        # K(theta) w is V u times w'V u / |u|^2, which rounding of w can have moved away from 1.
        ratio = float(w @ (V @ u)) / length
        if ratio > 1.0:
            found = min(found, problem.measure(theta, alpha / ratio, K), key=lambda point: point.upper)
        return Iterate(theta, found.alpha, found.upper, lower, memory=1e-2 * tol, witness=alpha)


def _better(first: Iterate, second: Iterate) -> Iterate:
    """The lower upper bound with the higher lower bound; the second alone where rounding made them cross.

    With no memory: what neither of them proves, a more exact inner problem on the same matrix does not prove either.
    """
    upper, lower = min(first, second, key=lambda it: it.upper), max(first, second, key=lambda it: it.lower)
    if upper.upper < lower.lower:
        upper = lower = second
    return replace(upper, lower=lower.lower, witness=lower.witness, memory=0.0)
