"""One machine in place of a search, for families whose support function is itself a squared norm."""

from __future__ import annotations

from typing import Any

from convexkernels.driver import Iterate, OuterSolver

__all__ = ["Envelope"]


class Envelope(OuterSolver):
    """Solve one machine at the envelope of the family; its best kernel is the vertex that machine selects.

    If ``sigma(A*(w w')) = w' K(E) w`` for a fixed E, the saddle problem ``max over alpha of c(alpha) - 1/2 sigma`` is
    the dual of one machine with the matrix K(E). Its w is optimal and the vertex that attains sigma is the optimal
    theta. That is so for generalized polynomial kernels (E = tau I, optimal P of rank one) and for all kernel matrices
    of a given trace (E = m I; [CP20 Theorem 10] is the closed form for the hinge loss).
    """

    name = "envelope"

    def accepts(self, problem: Any) -> str | None:
        if problem.gram_set.envelope() is None:
            return "the support function of its family is no squared norm"
        return None if len(problem.Y) == 1 else "it has several machines, whose squared norms do not add up to one"

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        return self._at(problem, None, 1e-2 * tol, deadline)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        inner_tol = iterate.memory * 1e-2
        if inner_tol < 1e-13:
            iterate.stalled = True
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
