"""Claims about kernel learning problems [CP20 (4), (6), (20), (21), (24), (25)]."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from convexkernels import Box, Gaussian, Hinge, KernelLearning, Tessellated
from convexkernels.checking import Verdict, check_psd
from proofs_check import direct_tessellated as direct
from proofs_check.optimal_kernel import bracket_for_matrix, feasible_dual, labels
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


def measure_gaussian_sign(sign: float, rng: np.random.Generator) -> Verdict:
    """exp(sign |x - y|^2 / gamma^2) is positive semidefinite, bandwidths as in [CP20 (22)]."""
    width = float(np.exp(rng.uniform(np.log(0.3), np.log(10.0))))

    def kernel(U: Array, V: Array) -> Array:
        return np.exp(sign * ((U[:, None, :] - V[None, :, :]) ** 2).sum(axis=2) / width**2)

    return check_psd(kernel, spiral(rng, 20)[0])


def measure_distance_to_target(library: Library, rng: np.random.Generator) -> Verdict:
    """Closest positive combination of the candidates to K* = y y', in the norms of [CP20 (20), (21)]."""
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


def _bracket_24(A: Array, y: Array, C: float, penalty: float) -> tuple[float, float]:
    """Rigorous bounds on half the optimum of TK-SDP [CP20 (24)] with ``penalty C delta'e`` in the corner.

    The program is solved by CVXPY and Clarabel as it is stated. For its P, made feasible, and any alpha the
    point ``v = G(P) alpha`` with the least t is feasible and bounds the optimum from above. The column of
    its multiplier is an alpha, and ``e'alpha - lambda_max(D(alpha)) / 2`` bounds it from below.
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
    cp.Problem(cp.Minimize(t), [lmi, cp.trace(P) <= 1.0]).solve(solver=cp.CLARABEL)
    multiplier, matrix = np.asarray(lmi.dual_value), np.asarray(P.value)
    alpha = feasible_dual(-multiplier[:m, m] / multiplier[m, m], y, 0.5 * penalty * C)
    D = np.einsum("k,ijkl,l->ij", alpha * y, A, alpha * y)
    lower = float(alpha.sum()) - 0.5 * max(0.0, float(np.linalg.eigvalsh(0.5 * (D + D.T))[-1]))
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    feasible = (vectors * np.maximum(values, 0.0)) @ vectors.T
    gram = np.einsum("ijkl,ij->kl", A, feasible / max(1.0, float(np.trace(feasible))))
    return lower, 0.5 * bracket_for_matrix(0.5 * (gram + gram.T), y, C, penalty).upper


def measure_strong_duality(subject: tuple[float, float], rng: np.random.Generator) -> Verdict:
    """The SDP [CP20 (24)] and the min-max problem [CP20 (4)], solved by two methods, have the same optimum.

    Each gives rigorous bounds on its own optimum; the two intervals have to overlap. `subject` holds the
    coefficient of ``C delta'e`` in the SDP and the bound on trace P in (4).
    """
    penalty, trace = subject
    n, degree = ((1, 1), (2, 0), (2, 1))[int(rng.integers(3))]
    case = direct.random_case(rng, n, degree)
    y = labels(rng, balanced=False)
    X = inside(rng, case, y.size, margin=0.1)
    C = float(np.exp(rng.uniform(0.0, 3.0)))
    lower, upper = _bracket_24(_coefficients(case, X), y, C, penalty)
    family = Tessellated(degree=degree, box=Box(case.a, case.b), trace=trace)
    other = KernelLearning(family, Hinge(C), X, y).solve(tol=1e-6).certificate
    witness = {"X": X, "y": y, "C": C, "a": case.a, "b": case.b, "degree": degree}
    witness |= {"bounds_24": np.array([lower, upper]), "bounds_4": np.array([other.lower, other.upper])}
    rounding = EPS * (y.size**2 + 8) * (1.0 + C) * abs(upper)
    return Verdict(max(0.0, lower - other.upper, other.lower - upper), rounding, 1, witness)


def measure_scaling(factor: float, rng: np.random.Generator) -> Verdict:
    """The objective of [CP20 (6), (25)] is strictly smaller at factor * mu than at mu."""
    y = labels(rng, balanced=False)
    X = rng.uniform(0.0, 1.0, (y.size, 2))
    mu = rng.uniform(0.1, 1.0, 3)
    K = sum(weight * Gaussian(gamma)(X) for weight, gamma in zip(mu, (0.5, 2.0, 8.0), strict=True))
    C = float(np.exp(rng.uniform(0.0, 3.0)))
    before = bracket_for_matrix(K, y, C, 2.0)
    after = bracket_for_matrix(factor * K, y, C, 2.0)
    witness = {"X": X, "y": y, "mu": mu, "C": C, "before": before.lower, "after": after.upper}
    return Verdict(max(0.0, 0.5 * (after.upper - before.lower)), 0.0, 1, witness)
