"""Linear combinations of given symmetric matrices that are positive semidefinite: cuts instead of cones.

``{nu : sum_r nu_r B_r >= 0, trace = c}`` is an intersection of half spaces ``v'(sum_r nu_r B_r) v >= 0``. Those that
matter are found as eigenvectors of points outside, and are kept, because the set never changes: every
optimization over it starts with all that is known about it. The half spaces found so far contain the set, so
what is optimal over them bounds what is optimal over the set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

__all__ = ["SemidefiniteSlice"]

Array = NDArray[np.float64]

ROUNDS = 400
# Eigenvectors turned into cuts per round.
CUTS = 6
# Directions in which every matrix is smaller than this, relative to its largest eigenvalue, are left to rounding.
RANGE = 1e-9


class SemidefiniteSlice:
    """Combinations of matrices with a given trace that are PSD, in coordinates theta of the combination.

    Parameters
    ----------
    matrices : ndarray of shape (l, m, m)
        Symmetric; they may be linearly dependent and indefinite.
    trace : float, > 0
    tol : float
        Relative accuracy of the answers; the bound of `maximise` holds whatever it is.
    """

    def __init__(self, matrices: Array, trace: float, tol: float = 1e-9) -> None:
        self.trace = trace
        self.tol = tol
        traces = np.trace(matrices, axis1=1, axis2=2)
        reduced = _on_joint_range(matrices)
        self.margin, centre = _find_centre(reduced, traces, trace)
        self.basis = _whitened(reduced, np.tensordot(centre, reduced, axes=1))
        inner = np.einsum("kij,lij->kl", self.basis, self.basis, optimize=True)
        values, vectors = np.linalg.eigh(inner)
        keep = values > 1e-13 * values[-1]
        roots = np.sqrt(values[keep])
        # theta = back @ nu, nu = forth @ theta, with Frobenius-orthonormal whitened matrices B_r.
        self.back = vectors[:, keep] / roots
        self.forth = (vectors[:, keep] * roots).T
        self.basis = np.einsum("kr,kij->rij", self.back, self.basis, optimize=True)
        self.traces = self.back.T @ traces
        self.centre = self.forth @ centre
        # Diagonals in the basis of the centre: with the trace, they bound the set.
        self.cuts = _unit_rows(np.einsum("rii->ir", self.basis))

    @property
    def is_empty(self) -> bool:
        """Whether no combination of that trace is PSD."""
        return self.margin < -1e-9 * self.trace

    def eigen(self, nu: Array) -> tuple[Array, Array]:
        """Eigenvalues (ascending) and eigenvectors of ``sum_r nu_r B_r``, of which the centre has 1 only."""
        return np.linalg.eigh(np.tensordot(nu, self.basis, axes=1))

    def _cut(self, values: Array, vectors: Array) -> None:
        chosen = vectors[:, :CUTS][:, values[:CUTS] < 0.0]
        rows = np.einsum("ip,rij,jp->pr", chosen, self.basis, chosen, optimize=True)
        self.cuts = np.vstack([self.cuts, _unit_rows(rows)])

    def inside(self, nu: Array) -> Array:
        """A point of the set near `nu`: the part of the way from the centre that is PSD."""
        nu = nu * (self.trace / (self.traces @ nu)) if self.traces @ nu > 0.0 else self.centre
        smallest = float(self.eigen(nu)[0][0])
        share = 0.0 if smallest >= 0.0 else -smallest / (1.0 - smallest)
        return (1.0 - share) * nu + share * self.centre

    def maximise(self, d: Array) -> tuple[float, Array]:
        """Upper bound of ``max d'theta`` over the set, and a theta of the set that nearly attains it."""
        slope = self.back.T @ d
        size = float(np.abs(slope).max(initial=0.0))
        if size == 0.0:
            return 0.0, self.back @ self.centre
        best, bound = self.centre, np.inf
        for _ in range(ROUNDS):
            answer = linprog(
                -slope / size,
                A_ub=-self.cuts if len(self.cuts) else None,
                b_ub=np.zeros(len(self.cuts)) if len(self.cuts) else None,
                A_eq=self.traces[None, :],
                b_eq=[self.trace],
                bounds=(None, None),
                method="highs",
            )
            if answer.x is None:
                break
            # The linear program is exact to its feasibility tolerance.
            bound = min(bound, size * (-answer.fun + 1e-9 * self.trace))
            values, vectors = self.eigen(answer.x)
            candidate = self.inside(answer.x)
            if slope @ candidate > slope @ best:
                best = candidate
            if bound - slope @ best <= 100.0 * self.tol * max(abs(bound), 1e-6 * size * self.trace):
                break
            self._cut(values, vectors)
        return float(bound), self.back @ best

    def project(self, theta: Array) -> Array:
        """The nearest point of the set, in the Euclidean norm of theta."""
        start = self.forth @ theta
        # Directions of theta in which the combination does not change stay as they are.
        rest = theta - self.back @ start
        values, vectors = self.eigen(start)
        if values[0] >= 0.0 and abs(self.traces @ start - self.trace) <= 1e-14 * self.trace:
            return theta
        for _ in range(ROUNDS):
            nu = self._nearest_over_cuts(start)
            values, vectors = self.eigen(nu)
            if values[0] >= -self.tol:
                break
            self._cut(values, vectors)
        return self.back @ self.inside(nu) + rest

    def _nearest_over_cuts(self, start: Array) -> Array:
        """Minimise ``|back (nu - start)|`` under the cuts and the trace, by least distance programming (NNLS)."""
        particular = self.traces * (self.trace / (self.traces @ self.traces))
        free = np.linalg.svd(self.traces[None, :])[2][1:].T
        if free.shape[1] == 0:
            return particular
        Q, R = np.linalg.qr(self.back @ free)
        shift = Q.T @ (self.back @ (start - particular))
        # y = R z - shift; cuts @ (particular + free z) >= 0 becomes G y >= h.
        G = np.linalg.solve(R.T, (self.cuts @ free).T).T if len(self.cuts) else np.zeros((0, len(shift)))
        h = -(self.cuts @ particular) - G @ shift
        if len(h) == 0 or (h <= 0.0).all():
            y = np.zeros(len(shift))
        else:
            scale = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
            E = np.vstack([(G / scale[:, None]).T, h / scale])
            u, _ = nnls(E, np.append(np.zeros(len(shift)), 1.0), maxiter=50 * E.shape[1])
            residual = E @ u - np.append(np.zeros(len(shift)), 1.0)
            y = -residual[:-1] / residual[-1]
        return particular + free @ np.linalg.solve(R, shift + y)


def _on_joint_range(matrices: Array) -> Array:
    """The matrices in coordinates of the space where not all of them are at rounding level."""
    total = np.zeros(matrices.shape[1:])
    for K in matrices:
        values, vectors = np.linalg.eigh(K)
        size = np.abs(values) / max(float(np.abs(values).max()), 1e-300)
        total += (vectors * size) @ vectors.T
    values, vectors = np.linalg.eigh(total)
    U = vectors[:, values > RANGE * values[-1]]
    reduced = np.einsum("ia,kij,jb->kab", U, matrices, U, optimize=True)
    return 0.5 * (reduced + reduced.transpose(0, 2, 1))


def _find_centre(matrices: Array, traces: Array, trace: float) -> tuple[float, Array]:
    """Smallest eigenvalue of a well-centred combination of the given trace, and its theta."""
    weights = np.where(traces > 0.0, 1.0 / np.where(traces > 0.0, traces, 1.0), 0.0)
    if weights.any():
        theta = weights * (trace / (weights @ traces))
        margin = float(np.linalg.eigvalsh(np.tensordot(theta, matrices, axes=1))[0])
        if margin > 0.0:
            return margin, theta
    return _maximise_margin(matrices, traces, trace)


def _maximise_margin(matrices: Array, traces: Array, trace: float) -> tuple[float, Array]:
    """``max t`` over theta with ``sum theta_k K_k >= t I`` and the trace, by cuts."""
    l = len(matrices)  # noqa: E741
    sizes = np.linalg.norm(matrices.reshape(l, -1), axis=1)
    scaled, scaled_traces = matrices / sizes[:, None, None], traces / sizes
    cuts, best, centre = np.einsum("kii->ik", scaled), -np.inf, np.zeros(l)
    for _ in range(ROUNDS):
        answer = linprog(
            np.append(np.zeros(l), -1.0),
            A_ub=np.column_stack([-cuts, np.ones(len(cuts))]),
            b_ub=np.zeros(len(cuts)),
            A_eq=np.append(scaled_traces, 0.0)[None, :],
            b_eq=[trace],
            bounds=[(-1e6 * trace, 1e6 * trace)] * l + [(None, trace)],
            method="highs",
        )
        if answer.x is None:
            break
        values, vectors = np.linalg.eigh(np.tensordot(answer.x[:-1], scaled, axes=1))
        if values[0] > best:
            best, centre = float(values[0]), answer.x[:-1]
        # A quarter of the best margin is as good a centre as the best one.
        if answer.x[-1] <= best + 1e-9 * trace or best >= 0.25 * answer.x[-1] > 0.0 or answer.x[-1] < -1e-9 * trace:
            break
        low = vectors[:, :CUTS][:, values[:CUTS] < answer.x[-1]]
        cuts = np.vstack([cuts, np.einsum("ip,kij,jp->pk", low, scaled, low, optimize=True)])
    return best, centre / sizes


def _whitened(matrices: Array, centre: Array) -> Array:
    """``C^-1 K C^-T`` for ``centre = C C'``, raised to be definite where it is only just semidefinite."""
    values, vectors = np.linalg.eigh(centre)
    half = vectors / np.sqrt(np.maximum(values, RANGE * values[-1]))
    return np.einsum("ia,kij,jb->kab", half, matrices, half, optimize=True)


def _unit_rows(rows: Array) -> Array:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
