"""Universality, as far as numbers can show it: nonsingular Gram matrices and approximation.

A universal kernel is strictly positive definite, so a Gram matrix of distinct points that is singular
refutes universality. Approximating one function well does not prove it, but a kernel that is not
universal has no way to do it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
from scipy.optimize import linprog

from convexkernels import GeneralizedPolynomialKernel, Polynomial
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, gram_and_error, smallest_eigenvalue
from proofs_check.tessellated import direct
from proofs_check.tessellated.direct import EPS, Case
from proofs_check.tessellated.formulas import library_of, semidefinite

Generator = np.random.Generator


def measure_strictly_positive(draw: Callable[[Generator], tuple[Any, Array]], rng: Generator) -> Verdict:
    """The Gram matrix of distinct points is nonsingular, as for universal kernels [CP20 Theorem 8], [ST16 Theorem 3.1].

    Reported the other way round: the rounding error of the smallest eigenvalue is the "violation" and
    the eigenvalue is the "tolerance", so that a matrix that cannot be told from a singular one is refuted.
    The points are well separated; an eigenvalue of a few eps is then no accident.
    """
    kernel, X = draw(rng)
    K, error = gram_and_error(kernel, X)
    smallest, bound, c = smallest_eigenvalue(K, error)
    return Verdict(bound, max(smallest, 0.0), 1, {"X": X, "K": K, "c": c, "smallest_eigenvalue": smallest})


def measure_singular(draw: Callable[[Generator], tuple[Any, Array]], rng: Generator) -> Verdict:
    """The Gram matrix of distinct points is singular to rounding, which no universal kernel allows."""
    kernel, X = draw(rng)
    K, error = gram_and_error(kernel, X)
    smallest, bound, c = smallest_eigenvalue(K, error)
    return Verdict(abs(smallest), bound, 1, {"X": X, "K": K, "c": c, "smallest_eigenvalue": smallest})


def separated(rng: Generator, m: int, n: int) -> Array:
    """Points of [0, 1]^n on a jittered grid: no two closer than a third of the mesh width."""
    side = int(np.ceil(m ** (1.0 / n)))
    cells = np.stack(np.meshgrid(*[np.arange(side)] * n, indexing="ij"), axis=-1).reshape(-1, n)
    cells = cells[rng.permutation(cells.shape[0])[:m]]
    return (cells + rng.uniform(1.0 / 3.0, 2.0 / 3.0, cells.shape)) / side


def definite_case(rng: Generator, n: int, degree: int) -> Case:
    """A random kernel with P > 0, its smallest eigenvalue a tenth of the mean one."""
    case = direct.random_case(rng, n, degree)
    size = case.P.shape[0]
    return Case(0.9 * case.P + 0.1 * np.eye(size) / size, np.zeros(n), np.ones(n), degree)


def closed_box_several_features(rng: Generator) -> tuple[Any, Array]:
    """Points on the upper face x_1 = b_1, complement reading of (10)."""
    n, degree = int(rng.integers(2, 4)), int(rng.integers(0, 2))
    case = definite_case(rng, n, degree)
    m = comb(n - 1 + degree, degree) + 1  # one point more than there are monomials on the face
    X = np.hstack([np.ones((m, 1)), separated(rng, m, n - 1)])
    return library_of(case), X


def closed_box_printed_reading(rng: Generator) -> tuple[Any, Array]:
    """A single point on a lower and on an upper face, (10) as printed: N vanishes there."""
    case = definite_case(rng, 2, int(rng.integers(0, 2)))
    X = np.array([[0.0, 1.0], [0.4, 0.7]])

    def kernel(U: Array, V: Array) -> Array:
        return np.array([[direct.integral(case, u, v, direct.block_printed).value for v in V] for u in U])

    return kernel, X


def closed_interval(rng: Generator) -> tuple[Any, Array]:
    case = definite_case(rng, 1, int(rng.integers(0, 2)))
    X = np.vstack([[0.0], separated(rng, 8, 1), [1.0]])
    return library_of(case), X


def inside_margin(rng: Generator) -> tuple[Any, Array]:
    """Data scaled to [0, 1]^n and the box [-eps, 1 + eps]^n of Section 8."""
    n = int(rng.integers(1, 4))
    case = definite_case(rng, n, int(rng.integers(0, 2)))
    wide = Case(case.P, np.full(n, -0.25), np.full(n, 1.25), case.degree)
    return library_of(wide), separated(rng, 12, n)


def generalized_polynomial(rng: Generator) -> tuple[Any, Array]:
    """A GPK with P > 0 and more points than monomials: never universal."""
    return GeneralizedPolynomialKernel(semidefinite(rng, 6) + 0.1 * np.eye(6), 2), separated(rng, 12, 2)


def minimum_kernel(rng: Generator) -> tuple[Any, Array]:
    """k_1(x, y) = prod min(x_i, y_i) of the proof of Theorem 8, on the closed box with its origin."""
    X = np.vstack([np.zeros((1, 2)), separated(rng, 6, 2)])
    return (lambda U, V: np.prod(np.minimum(U[:, None, :], V[None, :, :]), axis=2)), X


def minimum_kernel_away_from_zero(rng: Generator) -> tuple[Any, Array]:
    kernel, X = minimum_kernel(rng)
    return kernel, X[1:]


def uniform_distance(columns: Array, target: Array) -> float:
    """Smallest maximal error of target - columns c over c (a linear program on the grid)."""
    Q, R = np.linalg.qr(columns)
    Q = Q[:, np.abs(np.diag(R)) > EPS * columns.shape[0] * np.abs(R).max()]
    rows, size = Q.shape
    one = np.ones((rows, 1))
    answer = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=np.block([[Q, -one], [-Q, -one]]),
        b_ub=np.append(target, -target),
        bounds=[(None, None)] * size + [(0, None)],
        method="highs",
    )
    return float(np.abs(target - Q @ answer.x[:size]).max())


def measure_dense(make: Callable[[Generator, int], Any], rng: Generator) -> Verdict:
    """The uniform distance of hats from the span of N translates falls with N: universality, seen as convergence.

    The violation is how much of the distance is left when the number of translates is doubled twice, for 6 and for 12
    of them; the slope of a hat is bounded, so that piecewise polynomials on N pieces come as close as 1 / N. Of two
    hats the farther one counts, because kinks that fall on a coarse grid say nothing of finer ones.
    """
    degree = int(rng.integers(0, 2))
    kernel = make(rng, degree)
    grid = np.linspace(0.0, 1.0, 241)[:, None]
    center, width = rng.uniform(0.25, 0.7), 0.2
    hats = [np.maximum(0.0, 1.0 - np.abs(grid[:, 0] - center - shift) / width) for shift in (0.0, 0.05)]
    distances = []
    for N in (6, 12, 24, 48):
        columns = kernel(grid, np.linspace(0.0, 1.0, N)[:, None])
        distances.append(max(uniform_distance(columns, hat) for hat in hats))
    left = max(distances[2] / distances[0], distances[3] / distances[1])
    return Verdict(left, 0.6, 1, {"degree": degree, "center": center, "distances": np.array(distances)})


def tessellated_kernel(rng: Generator, degree: int) -> Any:
    """The library's kernel on [0, 1] with P > 0."""
    return library_of(definite_case(rng, 1, degree))


def polynomial_kernel(rng: Generator, degree: int) -> Any:
    """13 dimensions: enough for 6 and for 12 translates, and for no more."""
    return Polynomial(12)
