"""Learning over a span [CP20 (5)], over the simplex [CP20 (6)] and over all matrices of a trace [CP20 (17)].

Every program is stated here directly for CVXPY. Dual and primal points, repaired to be feasible, bound
its optimum on both sides; so does the library's certificate, and the two intervals have to overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from convexkernels import AllKernelMatrices, Candidates, Gaussian, Hinge, KernelLearning, Matern, Polynomial, Span
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.families.base import Family
from convexkernels.solvers.convex.conic import Conic
from proofs_check.tessellated.optimal_kernel import bracket_17, bracket_for_matrix, feasible_dual, labels

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)

# Relative gap asked of the library: far below what the false variants change, far above rounding.
TOL = 1e-6
CLARABEL = Conic("CLARABEL")


def factor(K: Array) -> Array:
    """L with ``L L' = K`` for a positive semidefinite K."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def apart(direct: tuple[float, float], problem: KernelLearning, solver: Any, witness: dict[str, Any]) -> Verdict:
    """Distance between the direct bounds and those of the library's certificate; 0 where they overlap."""
    certificate: Any = problem.solve(solver, tol=TOL).verify()
    lower, upper = direct
    witness |= {"bounds": np.array(direct), "library": np.array([certificate.lower, certificate.upper])}
    witness |= {"family": repr(problem.family), "solver": getattr(solver, "name", solver)}
    rounding = EPS * (problem.m**2 + 8) * (abs(upper) + problem.m * getattr(problem.loss, "C", 1.0))
    distance = max(0.0, lower - certificate.upper, certificate.lower - upper)
    return Verdict(distance, rounding, 1, witness)


# ---- (6) with sum mu = 1, as SimpleMKL solves it


def bracket_simplex(stack: Array, y: Array, C: float) -> tuple[float, float]:
    """Bounds on ``min over the simplex, max over alpha``, from its second-order cone program.

    ``max e'alpha - t / 2`` with ``alpha'Y K_k Y alpha <= t`` for every k: the multipliers are half the weights.
    """
    alpha, t = cp.Variable(y.size), cp.Variable()
    cones = [cp.sum_squares((y[:, None] * factor(K)).T @ alpha) <= t for K in stack]
    box = [alpha >= 0.0, alpha <= C, y @ alpha == 0.0]
    cp.Problem(cp.Maximize(cp.sum(alpha) - 0.5 * t), [*cones, *box]).solve(solver=cp.CLARABEL)
    point = feasible_dual(np.asarray(alpha.value), y, C)
    lower = float(point.sum()) - 0.5 * max(float(y * point @ K @ (y * point)) for K in stack)
    mu = np.maximum([float(np.ravel(cone.dual_value)[0]) for cone in cones], 0.0)
    K = np.tensordot(mu / mu.sum(), stack, axes=1)
    return lower, 0.5 * bracket_for_matrix(K, y, C, 2.0).upper


def measure_simplex(normalize: str, rng: Generator) -> Verdict:
    """SimpleMKL over candidates of trace 1, by one of the library's searches, against the cone program."""
    y = labels(rng, balanced=False)
    X = rng.uniform(0.0, 1.0, (y.size, 2))
    kernels = [Gaussian(0.5), Gaussian(8.0), Gaussian(40.0), Polynomial(2), Matern(2, 0.3)]
    stack = np.array([K / np.trace(K) for K in (kernel(X) for kernel in kernels)])
    C = float(np.exp(rng.uniform(0.0, 4.0)))
    solver = str(rng.choice(["spectral-gradient", "frank-wolfe", "reduced-gradient"]))
    problem = KernelLearning(Candidates(kernels, normalize), Hinge(C), X, y)
    return apart(bracket_simplex(stack, y, C), problem, solver, {"X": X, "y": y, "C": C})


# ---- (5): weights of any sign, positive semidefinite on the training and test points


def bracket_span(stack: Array, y: Array, C: float, trace: float) -> tuple[float, float]:
    """Bounds on half the optimum of [CP20 (5)], which asks for K >= 0 on all rows of `stack`, the first of which train.

    Upper bound: the weights found, moved towards those of the first (positive definite) kernel until K is
    positive semidefinite. Lower bound: `largest_quadratic_form` at the multiplier.
    """
    m, (size, total, _) = y.size, stack.shape
    mu, t, gamma = cp.Variable(size), cp.Variable(), cp.Variable()
    nu, delta = cp.Variable(m, nonneg=True), cp.Variable(m, nonneg=True)
    K = cp.reshape(stack.reshape(size, -1).T @ mu, (total, total), order="C")
    column = cp.reshape(1.0 + nu - delta + gamma * y, (m, 1), order="C")
    corner = cp.reshape(t - 2.0 * C * cp.sum(delta), (1, 1), order="C")
    lmi = cp.bmat([[cp.multiply(np.outer(y, y), K[:m, :m]), column], [column.T, corner]]) >> 0
    traces = np.trace(stack, axis1=1, axis2=2)
    cp.Problem(cp.Minimize(t), [lmi, K >> 0, traces @ mu == trace]).solve(solver=cp.CLARABEL)
    multiplier = np.asarray(lmi.dual_value)
    alpha = feasible_dual(-multiplier[:m, m] / multiplier[m, m], y, C)
    lower = float(alpha.sum()) - 0.5 * largest_quadratic_form(stack, y * alpha, trace)
    found = np.tensordot(np.asarray(mu.value), stack, axes=1)
    found *= trace / np.trace(found)
    safe = stack[0] * trace / traces[0]
    lowest, slack = float(np.linalg.eigvalsh(found)[0]), float(np.linalg.eigvalsh(safe)[0])
    share = max(0.0, -lowest) / (max(0.0, -lowest) + slack)
    K_feasible = ((1.0 - share) * found + share * safe)[:m, :m]
    return lower, 0.5 * bracket_for_matrix(K_feasible, y, C, 2.0).upper


def largest_quadratic_form(stack: Array, w: Array, trace: float) -> float:
    """Upper bound of ``w'K w`` over all K >= 0 in the span with that trace, from the dual of this program.

    For any S >= 0 and lam, with ``r_k = D_k - lam tr K_k + <S, K_k>``, the form ``D'mu`` is at most
    ``lam trace + |r| |mu|``, and ``|mu| <= |K|_F / s <= trace / s`` for the least singular value s of the stack.
    """
    size, total, _ = stack.shape
    D = np.array([w @ K[: w.size, : w.size] @ w for K in stack])
    traces = np.trace(stack, axis1=1, axis2=2)
    columns = stack.reshape(size, -1)
    S, lam = cp.Variable((total, total), PSD=True), cp.Variable()
    balance = [columns @ cp.vec(S, order="C") == lam * traces - D]
    cp.Problem(cp.Minimize(trace * lam), balance).solve(solver=cp.CLARABEL)
    half = factor(np.asarray(S.value))
    least = float(np.asarray(lam.value))
    residual = D - least * traces + columns @ (half @ half.T).ravel()
    smallest = float(np.linalg.svd(columns, compute_uv=False)[-1])
    return trace * (least + float(np.linalg.norm(residual)) / smallest)


def measure_span(make: Callable[[Sequence[Any], float, Array], Family], rng: Generator) -> Verdict:
    """(5) on training and test points, by the library's conic solver, against the program as it is stated."""
    # More points than kernels, so that different weights are different matrices.
    y = np.append(labels(rng, balanced=False), labels(rng, balanced=False))
    X, Z = rng.uniform(0.0, 1.0, (y.size, 2)), rng.uniform(0.0, 1.0, (5, 2))
    kernels = [Matern(1, 0.5), Gaussian(2.0), Gaussian(6.0), Gaussian(30.0)]
    everywhere = np.vstack([X, Z])
    stack = np.array([kernel(everywhere) for kernel in kernels])
    C, trace = float(np.exp(rng.uniform(0.0, 3.0))), float(len(everywhere))
    problem = KernelLearning(make(kernels, trace, Z), Hinge(C), X, y)
    witness = {"X": X, "Z": Z, "y": y, "C": C}
    solver = CLARABEL if isinstance(problem.family, Span) else "auto"
    return apart(bracket_span(stack, y, C, trace), problem, solver, witness)


def span_on_all_points(kernels: Sequence[Any], trace: float, Z: Array) -> Family:
    return Span(kernels, trace, test=Z)


def span_on_training_points(kernels: Sequence[Any], trace: float, Z: Array) -> Family:
    """Positive semidefinite on the training points only; their share of the trace, since k(x, x) is constant."""
    return Span(kernels, trace * (trace - len(Z)) / trace)


def nonnegative_weights(kernels: Sequence[Any], trace: float, Z: Array) -> Family:
    """The candidates of (6) instead: weights >= 0, the same mean of the diagonal."""
    return Candidates(kernels, normalize="mean")


# ---- (17): all matrices


@dataclass(frozen=True)
class Learner:
    """A family of matrices of trace m, and the solvers that may learn in it."""

    family: Callable[[int], Family]
    solvers: tuple[Any, ...]


ALL_MATRICES = Learner(AllKernelMatrices, ("envelope", "spectral-gradient", CLARABEL))


def diagonal_matrices(m: int) -> Family:
    return Candidates(m * np.eye(m)[:, :, None] * np.eye(m)[:, None, :], normalize="none")


def measure_all_matrices(learner: Learner, rng: Generator) -> Verdict:
    """Half the optimum of [CP20 (17)], for large and small C, is what the library learns."""
    y = labels(rng, balanced=bool(rng.integers(2)))
    C = float(np.exp(rng.uniform(-2.0, 2.0))) * 2.0 / y.size
    bound = bracket_17(y, C, 2.0)
    problem = KernelLearning(learner.family(y.size), Hinge(C), None, y)
    solver = learner.solvers[int(rng.integers(len(learner.solvers)))]
    return apart((0.5 * bound.lower, 0.5 * bound.upper), problem, solver, {"y": y, "C": C})
