"""Linear combinations of given symmetric matrices that are positive semidefinite, of fixed trace.

With an orthonormal basis B_r of the span of the matrices the set is ``{nu : M(nu) = sum_r nu_r B_r >= 0}`` with a
trace, a slice of the cone by a plane of few dimensions: a primal-dual interior-point method optimizes over it in about
twenty factorizations. Bounds do not rest on how exact its answer is: a multiplier Z is moved onto its equations, which
the orthonormal basis allows, and what is negative of it is paid for with the trace.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from convexkernels.arrays import Array
from convexkernels.cones import SemidefiniteCone
from convexkernels.linalg import eigh

# Combinations whose matrix is smaller than this, relative to their weights, are left out of the span: rounding.
SMALLEST_DIRECTION = 3e-7
# Eigenvalues may be as negative as this share of the trace: Gram matrices are singular to rounding.
ALLOWANCE = 1e-10
ROUNDS = 80


class SemidefiniteSlice:
    """Combinations of matrices with a given trace that are PSD, in coordinates theta of the combination.

    Computed in units in which the trace is 1, whatever it is: ``M(nu) = K(theta) / trace``.

    Parameters
    ----------
    matrices : ndarray of shape (l, m, m)
        Symmetric; they may be linearly dependent and indefinite.
    trace : float, > 0

    Attributes
    ----------
    back : ndarray of shape (l, R)
        ``theta = back @ nu``.
    basis : ndarray of shape (R, r, r)
        Orthonormal in the Frobenius inner product; in coordinates of the space that the ranges of all matrices span,
        of dimension r: where they are singular together, no combination is definite on all points.
    margin : float
        Smallest eigenvalue of a well-centered combination.
    """

    def __init__(self, matrices: Array, trace: float) -> None:
        self.trace = 1.0
        self.unit = trace
        self.matrices = matrices
        self.back, self.forth = _orthonormal(matrices)
        self.nearest = self.back @ self.forth
        self.basis = _on_joint_range(np.tensordot(self.back.T, matrices, axes=1))
        self.slack = ALLOWANCE
        self.margin, self.center = self._find_center()
        while abs(self.margin) <= 10.0 * self.slack and self._reduce():
            self.margin, self.center = self._find_center()
        self.back = self.back * trace
        self.forth = self.forth / trace

    @property
    def traces(self) -> Array:
        """Traces of the basis."""
        return np.trace(self.basis, axis1=1, axis2=2)

    @property
    def is_point(self) -> bool:
        """Whether the trace leaves one combination."""
        return len(self.basis) == 1

    def _reduce(self) -> bool:
        """Go on to the face of the cone that all combinations lie in, where none is definite; False: to no other.

        Where every M of the set has ``v'Mv = 0`` it has ``Mv = 0``: equations in nu, and the space can do without v.
        """
        values, vectors = eigh(self.matrix(self.center))
        null, rest = (vectors[:, small] for small in (values <= self.slack, values > self.slack))
        if not null.size or not rest.size:
            return False
        images = (self.basis @ null).reshape(len(self.basis), -1)
        left, sizes, _ = np.linalg.svd(images, full_matrices=True)
        Q = left[:, np.count_nonzero(sizes > np.sqrt(self.slack)) :]
        if not Q.size or not self._keeps_candidates(Q):
            return False
        reduced = rest.T @ np.tensordot(Q.T, self.basis, axes=1) @ rest
        reduced = 0.5 * (reduced + np.swapaxes(reduced, 1, 2))
        back, forth = _orthonormal(reduced)
        self.basis = np.tensordot(back.T, reduced, axes=1)
        self.back, self.forth = self.back @ Q @ back, forth @ Q.T @ self.forth
        return True

    def _keeps_candidates(self, Q: Array) -> bool:
        """Whether all matrices that are of the set by themselves are among the combinations ``nu = Q x``."""
        for nu in self.forth.T:
            trace = float(self.traces @ nu)
            inside = trace > 0.0 and np.linalg.eigvalsh(self.matrix(nu))[0] >= -self.slack * trace
            if inside and np.linalg.norm(nu - Q @ (Q.T @ nu)) > np.sqrt(self.slack) * np.linalg.norm(nu):
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether no combination of that trace is PSD."""
        return self.margin < -10.0 * self.slack

    def matrix(self, nu: Array) -> Array:
        """M(nu)."""
        return np.tensordot(nu, self.basis, axes=1)

    def maximize(self, d: Array) -> tuple[float, Array]:
        """Upper bound of ``max d'theta`` over the set, and a theta of the set that nearly attains it."""
        slope = self.back.T @ d
        if self.is_point:
            return float(slope @ self.center), self.back @ self.center
        size = float(np.linalg.norm(slope))
        if size == 0.0:
            return 0.0, self.back @ self.center
        slope = slope / size
        nu, Z, s = self._program().optimize(slope, None, self.center)
        return float(size * self._bound(slope, Z, s)), self.back @ nu

    def _bound(self, slope: Array, Z: Array, s: float) -> float:
        """``s tau - <Z, M>`` for any M of the set, once Z satisfies ``slope + B*(Z) = s traces`` exactly."""
        residual = slope + self.weigh(Z) - s * self.traces
        exact = Z - self.matrix(residual)
        values = np.linalg.eigvalsh(exact)
        negative = max(0.0, -float(values[0])) + len(Z) * np.finfo(float).eps * float(np.abs(values).max())
        total = self.trace + len(Z) * self.slack  # trace of M + slack I
        return s * self.trace + self.slack * float(np.trace(exact)) + negative * total

    def project(self, theta: Array) -> Array:
        """The nearest point of the set, in the Euclidean norm of theta."""
        if self.is_point:
            return self.back @ self.center
        start = self.forth @ theta
        smallest = float(np.linalg.eigvalsh(self.matrix(start))[0])
        outside = float(np.abs(np.tensordot(theta - self.back @ start, self.matrices, axes=1)).max())
        of_trace = abs(self.traces @ start - self.trace) <= 1e-9 * self.trace
        if of_trace and outside <= self.slack * self.unit and smallest >= -self.slack:
            return theta
        metric = self.back.T @ self.back
        scale = np.linalg.norm(metric, 2)
        slope = self.back.T @ (self.nearest @ theta) / scale
        nu, _, _ = self._program().optimize(slope, metric / scale, self.center)
        return self.back @ nu

    def weigh(self, Z: Array) -> Array:
        """``B*(Z)``: inner products with the basis."""
        return np.tensordot(self.basis, Z, 2)

    def _find_center(self) -> tuple[float, Array]:
        """Smallest eigenvalue of a well-centered combination of the given trace, and its coordinates."""
        size = float(self.traces @ self.traces)
        if size == 0.0:
            return -np.inf, np.zeros(len(self.basis))
        # Equal shares of the candidates, or weights as equal as possible: inside already where the candidates are PSD
        # and together definite.
        own = self.traces @ self.forth
        equal = self.forth @ np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
        ratio = self.forth @ np.abs(1.0 / np.linalg.norm(self.back, axis=1))
        starts = [nu * (self.trace / (self.traces @ nu)) for nu in (equal, ratio) if self.traces @ nu > 0.0]
        starts.append(self.traces * (self.trace / size))
        margins = [float(np.linalg.eigvalsh(self.matrix(nu))[0]) for nu in starts]
        smallest, nu = margins[int(np.argmax(margins))], starts[int(np.argmax(margins))]
        if smallest > -0.5 * self.slack:
            return smallest, nu
        # Maximize t with M(nu) >= t I: one more basis matrix, of no trace.
        lifted = _Program(
            np.concatenate([self.basis, -np.eye(self.basis.shape[1])[None]]), np.append(self.traces, 0.0), 0.0
        )
        start = np.append(nu, smallest - self.trace)
        found, _, _ = lifted.optimize(np.append(np.zeros(len(nu)), 1.0), None, start, enough=0.25)
        nu = found[:-1]
        return float(np.linalg.eigvalsh(self.matrix(nu))[0]), nu

    def _program(self) -> _Program:
        return _Program(self.basis, self.traces, self.slack)


def _symmetric(Z: Array) -> Array:
    """Rounding leaves multipliers not quite symmetric, and what is said of their eigenvalues does not see that."""
    return 0.5 * (Z + Z.T)


def _orthonormal(matrices: Array) -> tuple[Array, Array]:
    """`back` that combines matrices to an orthonormal basis of their span, and `forth` that takes weights to it."""
    sizes = np.linalg.norm(matrices.reshape(len(matrices), -1), axis=1)
    unit = matrices / sizes[:, None, None]
    values, vectors = eigh(np.einsum("kij,lij->kl", unit, unit, optimize=True))
    keep = values > SMALLEST_DIRECTION**2 * values[-1]
    back = vectors[:, keep] / np.sqrt(values[keep]) / sizes[:, None]
    return back, (vectors[:, keep] * np.sqrt(values[keep])).T * sizes


def _on_joint_range(basis: Array) -> Array:
    """The matrices in an orthonormal basis of the sum of their ranges; themselves where that is everything."""
    vectors, sizes, _ = np.linalg.svd(np.concatenate(list(basis), axis=1), full_matrices=False)
    joint = vectors[:, sizes > len(vectors) * np.finfo(np.float64).eps * sizes[0]]
    if joint.shape[1] == len(vectors):
        return basis
    reduced = joint.T @ basis @ joint
    return 0.5 * (reduced + np.swapaxes(reduced, 1, 2))


class _Program:
    """``max slope'nu - nu' metric nu / 2`` over ``X = sum_r nu_r B_r + slack I >= 0``, ``traces'nu`` of the start."""

    def __init__(self, basis: Array, traces: Array, slack: float) -> None:
        self.basis, self.traces, self.slack = basis, traces, slack
        self.cone = SemidefiniteCone(basis.shape[1])

    def optimize(
        self, slope: Array, metric: Array | None, start: Array, enough: float | None = None
    ) -> tuple[Array, Array, float]:
        """Optimum, multiplier Z of X and multiplier s of the trace, from a start with X > 0.

        With `enough`, stop once slope'nu is positive and at least that share of its bound.
        """
        nu, s = start, 0.0
        Q = np.zeros((len(nu), len(nu))) if metric is None else metric
        Z = self.cone.one * float(np.linalg.norm(slope - Q @ nu))
        best, best_error = (nu, Z, s), np.inf
        for _ in range(ROUNDS):
            X = np.tensordot(nu, self.basis, axes=1) + self.slack * self.cone.one
            rest = slope - Q @ nu + np.tensordot(self.basis, Z, 2) - s * self.traces
            gap = float(np.vdot(X, Z))
            error = gap + float(np.linalg.norm(rest)) * float(np.trace(X))
            if error < best_error:
                best, best_error = (nu, Z, s), error
            gain = float(slope @ nu)
            done = enough is not None and gain > 0.0 and gain >= enough * (gain + error)
            if done or error <= 1e-11 * (abs(gain) + error) or error > 1e6 * best_error:
                break
            moved = self._step(X, Z, nu, s, Q, rest, gap / self.cone.rank)
            if moved is None:
                break
            nu, Z, s = moved
        return best

    def _step(
        self, X: Array, Z: Array, nu: Array, s: float, Q: Array, rest: Array, mu: float
    ) -> tuple[Array, Array, float] | None:
        """Predictor and corrector; None when rounding allows no more."""
        scaling = self.cone.scaling(Z, X)
        if scaling is None:
            return None
        H = scaling.halves(self.basis)
        R = len(nu)
        system = np.zeros((R + 1, R + 1))
        system[:R, :R] = H @ H.T + Q
        system[:R, R] = system[R, :R] = self.traces

        def direction(target: Array) -> tuple[Array, float, Array, Array]:
            right = np.append(rest + np.tensordot(self.basis, target, 2), 0.0)
            answer = np.linalg.solve(system, right)  # ill-conditioned near the optimum, as it has to be
            dX = np.tensordot(answer[:R], self.basis, axes=1)
            return answer[:R], float(answer[R]), dX, target - scaling.apply(dX)

        try:
            _, _, dX, dZ = direction(scaling.target(0.0))
            reach = min(1.0, scaling.reach(dZ, dX))
            ahead = float(np.vdot(X + reach * dX, Z + reach * dZ)) / self.cone.rank
            sigma = min(1.0, max(ahead, 0.0) / mu) ** 3
            step_nu, step_s, dX, dZ = direction(scaling.target(max(sigma, 1e-6) * mu, dZ, dX))
        except (LinAlgError, ValueError):
            return None
        step = min(1.0, 0.98 * scaling.reach(dZ, dX))
        if not step > 1e-8:
            return None
        return nu + step * step_nu, _symmetric(Z + step * dZ), s + step * step_s
