"""Universality, as far as numbers can show it: translates that approximate functions better and better.

The translates of a universal kernel are dense in the continuous functions, so that the uniform distance of a function
from the span of N of them falls to 0 as N grows. Approximating some functions well does not prove universality, but the
translates of a kernel that is not universal stay away from some function, however many they are. A universal kernel is
strictly positive definite, too, so that a Gram matrix of distinct points that is singular refutes universality.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog

from convexkernels import GeneralizedPolynomialKernel, OnColumns, Polynomial, TessellatedKernel
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, gram_and_error, smallest_eigenvalue
from proofs_check.claim import agreed
from proofs_check.tessellated import direct
from proofs_check.tessellated.direct import EPS, Case
from proofs_check.tessellated.formulas import library_of, semidefinite

Generator = np.random.Generator


def measure_strictly_positive(draw: Callable[[Generator], tuple[Any, Array]], rng: Generator) -> Verdict:
    """The Gram matrix of distinct points is nonsingular, as for universal kernels.

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
    """k_1(x, y) = prod min(x_i, y_i) of the proof of Theorem 8, on the closed box with its origin.

    The library has it as a product of tessellated kernels of one feature each, of which only P22 is not zero.
    """
    kernel = OnColumns(_minimum(), [0]) * OnColumns(_minimum(), [1])
    X = np.vstack([np.zeros((1, 2)), separated(rng, 6, 2)])
    agreed(np.prod(np.minimum(X[:, None, :], X[None, :, :]), axis=2), kernel(X), 32.0 * EPS)
    return kernel, X


def _minimum() -> TessellatedKernel:
    """min(x, y): the integral over [0, 1] of 1{z < x} 1{z < y}."""
    return TessellatedKernel(np.diag([0.0, 1.0]), np.zeros(1), np.ones(1), degree=0)


def minimum_kernel_away_from_zero(rng: Generator) -> tuple[Any, Array]:
    kernel, X = minimum_kernel(rng)
    return kernel, X[1:]


# ---- convergence


@dataclass(frozen=True)
class Resolution:
    """How finely the unit cube is looked at: points of its grid and first translates along an axis, width of hats."""

    grid: int
    first: int
    width: float


# By the number of features; the last translates are still fewer along an axis than the points of the grid.
RESOLUTIONS = {1: Resolution(241, 6, 0.2), 2: Resolution(25, 3, 0.35), 3: Resolution(9, 2, 0.5)}


def lattice(sides: Sequence[int]) -> Array:
    """Points of the unit cube on a lattice that includes its corners."""
    axes = [np.linspace(0.0, 1.0, side) for side in sides]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(sides))


def orthonormal(columns: Array) -> Array:
    """An orthonormal basis of what the columns span, without the directions that are not above their rounding."""
    Q, R, _ = qr(columns, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return np.asarray(Q[:, size > 1e-12 * size[0]])


def uniform_distance(basis: Array, target: Array) -> float:
    """Smallest maximal error of target - basis c over c (a linear program on the grid)."""
    rows, size = basis.shape
    one = np.ones((rows, 1))
    answer = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=np.block([[basis, -one], [-basis, -one]]),
        b_ub=np.append(target, -target),
        bounds=[(None, None)] * size + [(0, None)],
        method="highs",
    )
    return float(np.abs(target - basis @ answer.x[:size]).max())


def measure_dense(draw: Callable[[Generator], tuple[Any, Array]], rng: Generator) -> Verdict:
    """The uniform distance of hats from the span of translates falls as their number is doubled.

    What universality says of a kernel [CP20 Theorem 8], [ST16 Theorem 3.1].

    The violation is how much of the distance is left when the number of translates has been doubled along every
    feature (twice for one feature), from two numbers on. The slope of a hat is bounded, so that piecewise polynomials
    on k pieces along every axis come as close as 1 / k. Of several hats the farthest one counts, because kinks that
    fall on a coarse lattice say nothing of finer ones.
    """
    kernel, centers = draw(rng)
    n = centers.shape[1]
    look, doublings = RESOLUTIONS[n], max(n, 2)
    grid = lattice([look.grid] * n)
    hats = [np.maximum(0.0, 1.0 - np.abs(grid - center).max(axis=1) / look.width) for center in centers]
    sides, distances = [look.first] * n, []
    for axis in range(doublings + 2):
        basis = orthonormal(kernel(grid, lattice(sides)))
        distances.append(max(uniform_distance(basis, hat) for hat in hats))
        sides[axis % n] *= 2
    left = max(distances[-2] / distances[0], distances[-1] / distances[1])
    return Verdict(left, 0.6, 1, {"kernel": kernel, "centers": centers, "distances": np.array(distances)})


def hats_inside(rng: Generator, n: int) -> Array:
    """Centers of two hats away from the faces, a quarter of the first mesh width apart along every axis."""
    center = rng.uniform(0.25, 0.7, n)
    return np.stack([center, center + 0.25 / (RESOLUTIONS[n].first - 1)])


def tessellated_kernel(rng: Generator) -> tuple[Any, Array]:
    """The library's kernel on [0, 1] with P > 0."""
    return library_of(definite_case(rng, 1, int(rng.integers(0, 2)))), hats_inside(rng, 1)


def polynomial_kernel(rng: Generator) -> tuple[Any, Array]:
    """13 dimensions: enough for 6 and for 12 translates, and for no more."""
    return Polynomial(12), hats_inside(rng, 1)


def closed_interval(rng: Generator) -> tuple[Any, Array]:
    """P > 0 and one feature, hats at the ends of the interval and between them."""
    case = definite_case(rng, 1, int(rng.integers(0, 2)))
    return library_of(case), np.vstack([[0.0], hats_inside(rng, 1), [1.0]])


def semidefinite_on_the_interval(rng: Generator) -> tuple[Any, Array]:
    """The same with a P >= 0 that is zero for all (c, -c): at degree 0 that is one eigenvalue, and k a constant."""
    case = definite_case(rng, 1, int(rng.integers(0, 2)))
    one = np.eye(case.P.shape[0] // 2)
    sums = 0.5 * np.block([[one, one], [one, one]])
    _, centers = closed_interval(rng)
    return library_of(Case(sums @ case.P @ sums, case.a, case.b, case.degree)), centers


def _beyond_the_data(rng: Generator, n: int, margin_above: float) -> tuple[Any, Array]:
    """Data in [0, 1]^n, the box [-eps, 1 + eps]^n but for the upper end of the first feature, hats at that face."""
    case = definite_case(rng, n, int(rng.integers(0, 2)))
    upper = np.full(n, 1.25)
    upper[0] = 1.0 + margin_above
    centers = hats_inside(rng, n)
    centers[:, 0] = 1.0, 0.97
    return library_of(Case(case.P, np.full(n, -0.25), upper, case.degree)), centers


def margin_on_every_side(rng: Generator) -> tuple[Any, Array]:
    return _beyond_the_data(rng, int(rng.integers(1, 4)), 0.25)


def margin_on_every_side_but_one(rng: Generator) -> tuple[Any, Array]:
    """On the face x_1 = b_1 the functions of k are polynomials; for one feature that face is a point."""
    return _beyond_the_data(rng, int(rng.integers(2, 4)), 0.0)
