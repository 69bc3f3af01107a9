"""Claims about kernel learning problems: (4), (6), (20), (21), (24), (25) of the tessellated-kernel paper."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from convexkernels import Gaussian
from convexkernels.checking import Verdict
from proofs_check import direct_tessellated as direct
from proofs_check.optimal_kernel import bracket_for_matrix, labels
from proofs_check.tessellated_formulas import inside, polynomial_features

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Library:
    """Candidate kernels: Gaussians of bandwidths .01 to 10, and one GPK of the given degree unless None."""

    degree: int | None


def spiral(rng: np.random.Generator, m: int) -> tuple[Array, Array]:
    """Two interleaved spirals of m / 2 points each, labels +1 and -1."""
    half = m // 2
    angle = np.linspace(0.5, 3.0 * np.pi, half) + rng.uniform(-0.05, 0.05, half)
    arm = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / (3.0 * np.pi)
    return np.vstack([arm, -arm]), np.repeat([1.0, -1.0], half)


def measure_distance_to_target(library: Library, rng: np.random.Generator) -> Verdict:
    """Closest positive combination of the candidates to K* = y y', in the norms of (20) and (21)."""
    X, y = spiral(rng, 16)
    target = np.outer(y, y)
    stack = [Gaussian(gamma=float(width) ** -2)(X) for width in np.geomspace(0.01, 10.0, 12)]
    if library.degree is not None:
        Z = polynomial_features(X, library.degree)
        weights = np.linalg.lstsq(Z, y, rcond=None)[0]
        stack.append(np.outer(Z @ weights, Z @ weights))
    columns = np.stack([K.ravel() for K in stack], axis=1)
    rows, size = columns.shape
    A = np.block([[columns, -np.eye(rows)], [-columns, -np.eye(rows)]])
    b = np.append(target.ravel(), -target.ravel())
    mean = linprog(np.append(np.zeros(size), np.full(rows, 1.0 / rows)), A_ub=A, b_ub=b, method="highs")
    one = np.vstack([np.hstack([columns, -np.ones((rows, 1))]), np.hstack([-columns, -np.ones((rows, 1))])])
    largest = linprog(np.append(np.zeros(size), 1.0), A_ub=one, b_ub=b, method="highs")
    mu_mean, mu_largest = np.maximum(mean.x[:size], 0.0), np.maximum(largest.x[:size], 0.0)
    distances = (
        float(np.abs(columns @ mu_mean - target.ravel()).mean()),
        float(np.abs(columns @ mu_largest - target.ravel()).max()),
    )
    witness = {"X": X, "y": y, "mu_20": mu_mean, "mu_21": mu_largest, "distances": np.array(distances)}
    rounding = EPS * (rows + size) * (1.0 + float(np.abs(columns).max() * max(mu_mean.sum(), mu_largest.sum())))
    return Verdict(max(0.0, 0.5 - distances[0], 1.0 - distances[1]), rounding, 1, witness)


def _coefficients(case: direct.Case, X: Array) -> Array:
    """A with K(P)_kl = sum_ij A_ijkl P_ij, shape (2q, 2q, m, m)."""
    size, m = case.P.shape[0], X.shape[0]
    A = np.empty((size, size, m, m))
    for i in range(size):
        for j in range(size):
            unit = np.zeros((size, size))
            unit[i, j] = 1.0
            A[i, j] = direct.gram(direct.Case(unit, case.a, case.b, case.degree), X, X)
    return A


def _solve_24(A: Array, y: Array, C: float, penalty: float) -> tuple[float, float, Array]:
    """TK-SDP (24) as printed, with ``penalty C delta'e`` in the corner; optimum, its error, and P.

    The solver meets its matrix inequality and its gap to a tolerance it is told; shifting the
    inequality by that much moves the optimum by at most that much times the trace of the multiplier.
    """
    size, m = A.shape[0], A.shape[2]
    P = cp.Variable((size, size), PSD=True)
    t, gamma = cp.Variable(), cp.Variable()
    nu, delta = cp.Variable(m, nonneg=True), cp.Variable(m, nonneg=True)
    K = cp.reshape(A.reshape(size * size, m * m).T @ cp.vec(P, order="C"), (m, m), order="C")
    G = cp.multiply(np.outer(y, y), K)
    column = cp.reshape(1.0 + nu - delta + gamma * y, (m, 1), order="C")
    corner = cp.reshape(t - penalty * C * cp.sum(delta), (1, 1), order="C")
    lmi = cp.bmat([[0.5 * (G + G.T), column], [column.T, corner]]) >> 0
    asked = 1e-8
    program = cp.Problem(cp.Minimize(t), [lmi, cp.trace(P) <= 1.0])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=asked, tol_gap_rel=asked, tol_feas=asked)
    error = asked * (1.0 + abs(float(t.value)) + float(np.trace(lmi.dual_value)))
    values, vectors = np.linalg.eigh(0.5 * (P.value + P.value.T))
    feasible = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return float(t.value), error, feasible / max(1.0, float(np.trace(feasible)))


def measure_strong_duality(penalty: float, rng: np.random.Generator) -> Verdict:
    """The SDP's optimum, halved, lies between an upper and a lower bound of the min-max problem (4).

    Upper: primal SVM objective at the SDP's P. Lower: ``e'alpha - lambda_max(D(alpha)) / 2`` at the
    dual solution for that P. Both hold for any feasible point; half their distance and the error of
    the solver's optimum are the tolerance.
    """
    n, degree = ((1, 1), (2, 0), (1, 0))[int(rng.integers(3))]
    case = direct.random_case(rng, n, degree)
    y = labels(rng, balanced=False)
    X = inside(rng, case, y.size, margin=0.1)
    A = _coefficients(case, X)
    C = float(np.exp(rng.uniform(0.0, 3.0)))
    optimum, error, P = _solve_24(A, y, C, penalty)
    K = np.einsum("ijkl,ij->kl", A, P)
    bound = bracket_for_matrix(0.5 * (K + K.T), y, C, 2.0)
    w = bound.alpha * y
    D = np.einsum("k,ijkl,l->ij", w, A, w)
    lower = float(bound.alpha.sum()) - 0.5 * max(0.0, float(np.linalg.eigvalsh(0.5 * (D + D.T))[-1]))
    upper = 0.5 * bound.upper
    witness = {"X": X, "y": y, "C": C, "a": case.a, "b": case.b, "degree": degree, "P": P, "alpha": bound.alpha}
    witness |= {"half_of_sdp": 0.5 * optimum, "lower": lower, "upper": upper}
    return Verdict(abs(0.5 * optimum - 0.5 * (lower + upper)), 0.5 * (upper - lower) + 0.5 * error, 1, witness)


def measure_scaling(factor: float, rng: np.random.Generator) -> Verdict:
    """The objective of (6) and (25) is strictly smaller at factor * mu than at mu."""
    y = labels(rng, balanced=False)
    X = rng.uniform(0.0, 1.0, (y.size, 2))
    mu = rng.uniform(0.1, 1.0, 3)
    K = sum(weight * Gaussian(gamma)(X) for weight, gamma in zip(mu, (0.5, 2.0, 8.0), strict=True))
    C = float(np.exp(rng.uniform(0.0, 3.0)))
    before = bracket_for_matrix(K, y, C, 2.0)
    after = bracket_for_matrix(factor * K, y, C, 2.0)
    witness = {"X": X, "y": y, "mu": mu, "C": C, "before": before.lower, "after": after.upper}
    return Verdict(max(0.0, 0.5 * (after.upper - before.lower)), 0.0, 1, witness)
