"""Claims about kernel learning problems [CP20 (4), (6), (20), (21), (24), (25)]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

from convexkernels import (
    Box,
    Candidates,
    Gaussian,
    GeneralizedPolynomialKernel,
    Hinge,
    KernelLearning,
    KernelMatching,
    Polynomial,
    Tessellated,
    WeightedSum,
)
from convexkernels.arrays import Array
from convexkernels.bases.monomials import monomial_basis, monomials
from convexkernels.checking import Verdict, check_psd
from convexkernels.losses.fit import fit
from proofs_check.claim import agreed
from proofs_check.tessellated import direct
from proofs_check.tessellated.formulas import inside
from proofs_check.tessellated.optimal_kernel import bracket_for_matrix, feasible_dual, labels

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


def measure_gaussian_sign(turned: Callable[[Array], Array], rng: np.random.Generator) -> Verdict:
    """What the exponents of the library's Gaussian [CP20 (22)] are turned into still gives a positive kernel.

    The exponents are compared with -|x - y|^2 / gamma^2, too.
    """
    width = float(np.exp(rng.uniform(np.log(0.3), np.log(10.0))))
    X, library = spiral(rng, 20)[0], Gaussian(width**-2)
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    agreed(np.exp(-squares / width**2), library(X), 64.0 * EPS * (1.0 + width**-2))
    return check_psd(lambda U, V: np.exp(turned(np.log(library(U, V)))), X)


def closest(columns: Array, target: Array) -> tuple[float, float]:
    """Least mean and least largest distance of a nonnegative combination from the target, by linear programs."""
    rows, size = columns.shape
    A = np.block([[columns, -np.eye(rows)], [-columns, -np.eye(rows)]])
    b = np.append(target, -target)
    mean = linprog(np.append(np.zeros(size), np.full(rows, 1.0 / rows)), A_ub=A, b_ub=b, method="highs")
    one = np.vstack([np.hstack([columns, -np.ones((rows, 1))]), np.hstack([-columns, -np.ones((rows, 1))])])
    largest = linprog(np.append(np.zeros(size), 1.0), A_ub=one, b_ub=b, method="highs")
    return float(mean.fun), float(largest.fun)


def closest_of_matrices(A: Array, target: Array) -> tuple[float, float]:
    """Least mean and least largest distance of ``sum_ij A_ijkl P_ij``, P positive semidefinite, by CVXPY."""
    size, m = A.shape[0], A.shape[2]
    P = cp.Variable((size, size), PSD=True)
    error = cp.abs(A.reshape(size * size, m * m).T @ cp.vec(P, order="C") - target.ravel())
    mean, largest = (cp.Problem(cp.Minimize(of_error)) for of_error in (cp.sum(error) / m**2, cp.max(error)))
    return float(mean.solve(solver=cp.CLARABEL)), float(largest.solve(solver=cp.CLARABEL))


def measure_matching(subject: tuple[str, int], rng: np.random.Generator) -> Verdict:
    """Bounds of the library's matching [CP20 (20), (21)] enclose the optimum of a program of its own, and are tight.

    For weights and for a matrix, by the interior-point method and by the statement. `subject` is the library's norm and
    which of the two optima it is compared with.
    """
    norm, which = subject
    case = direct.random_case(rng, 2, 1)
    X, y = inside(rng, case, 7, margin=0.1), labels_of(rng, 7)
    kernels = [Gaussian(0.5), Gaussian(4.0), Gaussian(40.0), Polynomial(2)]
    # A target that the candidates come close to, and labels that they do not.
    target = np.outer(y, y) + 2.0 * Gaussian(6.0)(X)
    columns = np.stack([kernel(X).ravel() for kernel in kernels], axis=1)
    optima = {
        Candidates(kernels): closest(columns, target.ravel())[which],
        Tessellated(degree=1, box=Box(case.a, case.b)): closest_of_matrices(_coefficients(case, X), target)[which],
    }
    verdicts, size = [], 1e-5 * float(np.abs(target).max())
    for family, best in optima.items():
        for solver in ("interior-point", "CLARABEL"):
            found = KernelMatching(family, X, target, norm).solve(solver, tol=1e-5)
            distance = np.abs(found.kernel(X) - target)
            direct_value = float((distance.mean(), distance.max())[which])
            bounds = found.certificate
            apart = max(0.0, bounds.lower - best, best - bounds.upper, abs(direct_value - bounds.upper), bounds.gap)
            witness = {"X": X, "target": target, "optimum": best, "bounds": np.array([bounds.lower, bounds.upper])}
            verdicts.append(Verdict(apart, size, 1, witness))
    return Verdict.worst(verdicts)


def measure_bound_of_matching(lowered: float, rng: np.random.Generator) -> Verdict:
    """For a target that is a kernel of the family no matrix Z gives a lower bound above 0 [CP20 (20), (21)].

    With weights and with matrices as parameters. `lowered` is how many times its least eigenvalue is taken from the
    diagonal of the target, which then is no kernel: 0, or more than 1 to be false.
    """
    X, verdicts = rng.uniform(0.0, 1.0, (6, 2)), []
    for family in (Candidates([Gaussian(20.0), Gaussian(60.0), Polynomial(2)]), Tessellated(degree=0)):
        middle = np.asarray(family.on(X).initial())
        v = np.eye(len(middle))[int(rng.integers(len(middle)))]
        inside = family.on(X).gram(middle + 9.0 * (v if middle.ndim == 1 else np.outer(v, v)))
        values, vectors = np.linalg.eigh(inside)
        target = inside - lowered * values[0] * np.eye(6)
        matching = KernelMatching(family, X, target, str(rng.choice(["one", "infinity"])))
        tried = [inside, -np.outer(vectors[:, 0], vectors[:, 0]), *rng.standard_normal((8, 6, 6))]
        bounds = np.array([matching.lower_bound(0.5 * (Z + Z.T)) for Z in tried])
        witness = {"X": X, "target": target, "bounds": bounds}
        verdicts.append(Verdict(float(bounds.max()), 1e-12 * float(np.abs(target).max()), 1, witness))
    return Verdict.worst(verdicts)


def labels_of(rng: np.random.Generator, m: int) -> Array:
    """Labels of both classes."""
    y = np.where(np.arange(m) < m // 2, 1.0, -1.0)
    rng.shuffle(y)
    return y


def measure_distance_to_target(library: Library, rng: np.random.Generator) -> Verdict:
    """The library's lower bounds say how far positive combinations of the candidates stay from K* = y y'."""
    X, y = spiral(rng, 16)
    kernels: list[Any] = [Gaussian(gamma=float(width) ** -2) for width in np.geomspace(0.01, 10.0, 12)]
    target = np.outer(y, y)
    if library.degree is not None:
        Z = monomials(X, monomial_basis(2, library.degree, 0).x_powers).T
        weights = np.linalg.lstsq(Z, y, rcond=None)[0]
        kernels.append(GeneralizedPolynomialKernel(np.outer(weights, weights), library.degree))
    family = Candidates(kernels, allow_duplicates=True)  # the narrowest ones are the identity on so few points
    found = [KernelMatching(family, X, target, norm).solve().certificate for norm in ("one", "infinity")]
    witness = {"X": X, "y": y, "bounds": np.array([[bound.lower, bound.upper] for bound in found])}
    # Linear programs are solved to 1e-6 or so.
    return Verdict(max(0.0, 0.5 - found[0].lower, 1.0 - found[1].lower), 1e-4, 1, witness)


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
    other: Any = KernelLearning(family, Hinge(C), X, y).solve(tol=1e-6).certificate
    witness = {"X": X, "y": y, "C": C, "a": case.a, "b": case.b, "degree": degree}
    witness |= {"bounds_24": np.array([lower, upper]), "bounds_4": np.array([other.lower, other.upper])}
    rounding = EPS * (y.size**2 + 8) * (1.0 + C) * abs(upper)
    return Verdict(max(0.0, lower - other.upper, other.lower - upper), rounding, 1, witness)


def measure_scaling(factor: float, rng: np.random.Generator) -> Verdict:
    """The library's objective of [CP20 (6), (25)] is strictly smaller at factor * mu than at mu."""
    y = labels(rng, balanced=False)
    X = rng.uniform(0.0, 1.0, (y.size, 2))
    mu = rng.uniform(0.1, 1.0, 3)
    kernels = [Gaussian(gamma) for gamma in (0.5, 2.0, 8.0)]
    C = float(np.exp(rng.uniform(0.0, 3.0)))
    before = bracket_for_matrix(WeightedSum(kernels, mu)(X), y, C, 2.0)
    K = WeightedSum(kernels, factor * mu)(X)
    after = 2.0 * fit(Hinge(C), K, y[None, :], np.ones(y.size), tol=1e-9).upper
    witness = {"X": X, "y": y, "mu": mu, "C": C, "before": before.lower, "after": after}
    return Verdict(max(0.0, 0.5 * (after - before.lower)), 0.0, 1, witness)
