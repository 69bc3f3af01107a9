"""Enclosed entries of kernels against a hundred digits, in places where rounding is as large as it can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from convexkernels import Candidates
from convexkernels import kernels as k
from convexkernels.arrays import Array
from convexkernels.bases.monomials import monomial_basis
from convexkernels.bases.tessellation.gram import Tessellation
from convexkernels.checking import Verdict
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.kernels.base import Product, Sum
from convexkernels.rigorous import compositions
from convexkernels.rigorous.candidates import EnclosedCandidates
from convexkernels.rigorous.compositions import COMPOSED, enclosure
from convexkernels.rigorous.kernels import SIMPLE, Pairs
from convexkernels.rigorous.rounding import largest_eigenvalue
from convexkernels.rigorous.tessellated import EnclosedBlocks, PairPart
from proofs_check.claim import Claim
from proofs_check.library.values import library_of, tessellated_pair

Generator = np.random.Generator
Point = Sequence[Decimal]
Exact = Callable[[Point, Point], Decimal]
Drawn = tuple[Any, Array, Exact]
DIGITS = 100
EPS = float(np.finfo(np.float64).eps)
# A radius of more times the error that is seen, or rounding of the largest entry, says hardly anything.
WIDEST = 2000.0
ONE, ZERO = Decimal(1), Decimal(0)


def decimals(values: Any) -> list[Decimal]:
    """Floats as they are."""
    return [Decimal(float(value)) for value in values]


def squared(x: Point, y: Point) -> Decimal:
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), ZERO)


def inner(x: Point, y: Point) -> Decimal:
    return sum((a * b for a, b in zip(x, y, strict=True)), ZERO)


# ---- points


def near_and_far(rng: Generator, n: int) -> Array:
    """Three points close to each other and three less close, far from these."""
    X = 0.03 * rng.standard_normal((6, n))
    X[3:] = 10.0 * X[3:] + 30.0 / n**0.5
    return X


def cancelling(rng: Generator) -> Array:
    """Points whose inner products are about 1 between the halves, of two terms of a million."""
    s, small = rng.uniform(1e3, 1.4e3, 6), rng.uniform(0.5e-3, 1e-3, 6)
    return np.column_stack([s, np.where(np.arange(6) < 3, s, small - s)])


# ---- kernels and their formulas


def _gaussian(rng: Generator, n: int = 3) -> Drawn:
    rate = Decimal(float(rng.uniform(0.3, 0.6)))
    return k.Gaussian(float(rate)), near_and_far(rng, n), lambda x, y: (-rate * squared(x, y)).exp()


def bessel(order: int, t: Decimal) -> Decimal:
    """``t^nu K_nu(t) exp(t)`` over its value at 0, nu = order - 1/2, by the recurrence of Bessel functions."""
    before, here, at_zero = ONE, ONE + t, ONE
    if order == 1:
        return before
    for j in range(2, order):
        before, here = here, (2 * j - 1) * here + t * t * before
        at_zero *= 2 * j - 1
    return here / at_zero


def _profile(order: int, length: float, smoothing: float) -> Callable[[Decimal], Decimal]:
    s, a = Decimal(smoothing), Decimal(length)

    def value(square: Decimal) -> Decimal:
        t = (square / a**2 + s**2).sqrt()
        return bessel(order, t) / bessel(order, s) * (s - t).exp()

    return value


def _matern(rng: Generator) -> Drawn:
    order, length, smoothing = int(rng.integers(1, 5)), float(rng.uniform(0.1, 0.3)), float(rng.choice([0.0, 0.3]))
    profile = _profile(order, length, smoothing)
    return k.Matern(order, length, smoothing), near_and_far(rng, 3), lambda x, y: profile(squared(x, y))


def _tensor_matern(rng: Generator) -> Drawn:
    order, length, smoothing = int(rng.integers(1, 4)), float(rng.uniform(0.2, 0.4)), float(rng.choice([0.0, 0.3]))
    profile = _profile(order, length, smoothing)

    def formula(x: Point, y: Point) -> Decimal:
        value = ONE
        for a, b in zip(x, y, strict=True):
            value *= profile((a - b) ** 2)
        return value

    return k.TensorMatern(order, length, smoothing), near_and_far(rng, 2), formula


def _linear(rng: Generator) -> Drawn:
    return k.Linear(), cancelling(rng), inner


def _polynomial(rng: Generator) -> Drawn:
    degree, offset = int(rng.integers(30, 40)), float(rng.uniform(0.5, 2.0))
    return k.Polynomial(degree, offset), cancelling(rng), lambda x, y: (inner(x, y) + Decimal(offset)) ** degree


def _generalized_polynomial(rng: Generator) -> Drawn:
    G, center, scale = rng.standard_normal((6, 6)), rng.uniform(-1.0, 1.0, 2), rng.uniform(0.5, 2.0, 2)
    powers = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    P = G @ G.T
    exact = [decimals(row) for row in P]
    c, s = decimals(center), decimals(scale)

    def features(x: Point) -> list[Decimal]:
        u, v = ((a - b) / d for a, b, d in zip(x, c, s, strict=True))
        return [(u**i if i else ONE) * (v**j if j else ONE) for i, j in powers]

    def formula(x: Point, y: Point) -> Decimal:
        terms = product(enumerate(features(x)), enumerate(features(y)))
        return sum((a * (exact[i][j] + exact[j][i]) / 2 * b for (i, a), (j, b) in terms), ZERO)

    return k.GeneralizedPolynomialKernel(P, 2, center, scale), near_and_far(rng, 2), formula


def _tessellated(rng: Generator) -> Drawn:
    """The defining integral for one feature: monomials in z over what is above x and y, above one, or not.

    In a box around the unit interval, or one whose lower end is far from points near 0.
    """
    kernel, case = tessellated_pair(rng, 1, 1, None)
    is_far = bool(rng.integers(2))
    if is_far:
        case = replace(case, a=np.array([-1000.0]), b=np.array([0.01]))
        kernel = library_of(case, None)
    P = [decimals(row) for row in 0.5 * (case.P + case.P.T)]
    q, low, high = len(P) // 2, Decimal(float(case.a[0])), Decimal(float(case.b[0]))
    powers = [(0, 0), (0, 1), (1, 0)]  # of z and of x, in the order of the case

    def formula(x: Point, y: Point) -> Decimal:
        total = ZERO
        for (i, (z, e)), (j, (u, f)) in product(enumerate(powers), enumerate(powers)):
            power = z + u + 1
            both, left, right, whole = (high**power - at**power for at in (max(x[0], y[0]), x[0], y[0], low))
            parts = P[i][j] * both + P[i][q + j] * (left - both) + P[q + i][j] * (right - both)
            parts += P[q + i][q + j] * (whole - left - right + both)
            total += (x[0] if e else ONE) * (y[0] if f else ONE) * parts / power
        return total

    return kernel, rng.uniform(*((-1.0, 0.009) if is_far else (0.0, 0.95)), (6, 1)), formula


def _precomputed(rng: Generator) -> Drawn:
    """Of a matrix that rounding has made not quite symmetric."""
    G = rng.standard_normal((6, 6))
    matrix = G @ G.T * (1.0 + 1e-15 * rng.integers(0, 3, (6, 6)))

    def formula(x: Point, y: Point) -> Decimal:
        i, j = int(x[0]), int(y[0])
        return (Decimal(float(matrix[i, j])) + Decimal(float(matrix[j, i]))) / 2

    return Precomputed(matrix), row_numbers(6), formula


def _constant(rng: Generator) -> Drawn:
    value = float(rng.uniform(0.5, 3.0))
    return k.Constant(value), near_and_far(rng, 2), lambda x, y: Decimal(value)


def _stumps(rng: Generator) -> Drawn:
    """Shares of counts: quotients by twice the number of entries."""
    values = np.round(rng.random((7, 2)), 1)

    def rank(column: Array, t: Decimal) -> Decimal:
        return Decimal(sum(int(Decimal(float(v)) < t) + int(Decimal(float(v)) <= t) for v in column))

    def formula(x: Point, y: Point) -> Decimal:
        least = (min(rank(c, a), rank(c, b)) for c, a, b in zip(values.T, x, y, strict=True))
        return sum(least, ZERO) / (2 * values.size)

    return k.Stumps(values), np.round(rng.random((6, 2)), 1), formula


def _sum(rng: Generator) -> Drawn:
    kernel, X, f = _linear(rng)
    value = float(rng.uniform(0.5, 3.0))
    return kernel + k.Constant(value), X, lambda x, y: f(x, y) + Decimal(value)


def _product(rng: Generator) -> Drawn:
    """One factor is exact, the other is not: the first or the second."""
    kernel, X, f = _linear(rng)
    constant = k.Constant(float(rng.uniform(0.5, 3.0)))
    value = Decimal(constant.value)
    both = Product(kernel, constant) if rng.integers(2) else Product(constant, kernel)
    return both, X, lambda x, y: f(x, y) * value


def _scaled(rng: Generator) -> Drawn:
    value, factor = rng.uniform(0.5, 3.0, 2)
    exact = Decimal(float(value)) * Decimal(float(factor))
    return k.Scaled(float(factor), k.Constant(float(value))), near_and_far(rng, 2), lambda x, y: exact


def _weighted_sum(rng: Generator) -> Drawn:
    (first, X, f), (second, _, g), weights = _gaussian(rng), _gaussian(rng), rng.uniform(0.1, 2.0, 2)
    a, b = decimals(weights)
    kernel = k.WeightedSum([first, second, k.Linear()], [*weights, 0.0])
    return kernel, X, lambda x, y: a * f(x, y) + b * g(x, y)


def _on_columns(rng: Generator) -> Drawn:
    kernel, X, f = _gaussian(rng, 2)
    points = np.column_stack([X[:, 1], 7.0 * X[:, 0], X[:, 0]])
    return k.OnColumns(kernel, [2, 0]), points, lambda x, y: f((x[2], x[0]), (y[2], y[0]))


def _centered(rng: Generator) -> Drawn:
    kernel, X, f = _gaussian(rng)
    points = [decimals(row) for row in X]
    grand = mean([f(z, u) for z in points for u in points])

    def formula(x: Point, y: Point) -> Decimal:
        return f(x, y) - mean([f(x, z) for z in points]) - mean([f(z, y) for z in points]) + grand

    return k.Centered(kernel, X), X, formula


def mean(values: list[Decimal]) -> Decimal:
    return sum(values, ZERO) / len(values)


def _normalized(rng: Generator) -> Drawn:
    """Of entries that are exact, or of those of a polynomial, which are not."""
    f: Exact
    if rng.integers(2):
        G = rng.standard_normal((6, 6))
        matrix = G @ G.T
        matrix = 0.5 * (matrix + matrix.T)
        inside: Any = Precomputed(matrix)
        X, f = row_numbers(6), lambda x, y: Decimal(float(matrix[int(x[0]), int(y[0])]))
    else:
        inside, X, f = k.Polynomial(9, 0.5), cancelling(rng), lambda x, y: (inner(x, y) + Decimal("0.5")) ** 9
    return k.Normalized(inside), X, lambda x, y: f(x, y) / (f(x, x) * f(y, y)).sqrt()


DRAWN: dict[type, Callable[[Generator], Drawn]] = {
    k.Centered: _centered,
    k.Constant: _constant,
    k.Gaussian: _gaussian,
    k.GeneralizedPolynomialKernel: _generalized_polynomial,
    k.Linear: _linear,
    k.Matern: _matern,
    k.Normalized: _normalized,
    k.OnColumns: _on_columns,
    k.Polynomial: _polynomial,
    Product: _product,
    k.Scaled: _scaled,
    k.Stumps: _stumps,
    Sum: _sum,
    k.TensorMatern: _tensor_matern,
    k.TessellatedKernel: _tessellated,
    k.WeightedSum: _weighted_sum,
    Precomputed: _precomputed,
}


# ---- what is measured


def exact_matrix(f: Exact, X: Array) -> list[list[Decimal]]:
    points = [decimals(row) for row in X]
    return [[f(x, y) for y in points] for x in points]


def measure_entries(stretch: Decimal, rng: Generator) -> Verdict:
    """Every entry is within its radius of the exact one, times `stretch`, and the radius says something.

    All kernels that have a radius are in the table here, and the other way round.
    """
    verdicts = [Verdict(float(len(DRAWN.keys() ^ {*SIMPLE, *COMPOSED})), 0.0, 1, {})]
    with localcontext(prec=DIGITS):
        for draw in DRAWN.values():
            kernel, X, f = draw(rng)
            rows = slice(0, len(X))
            K, R = enclosure(kernel, X)(Pairs(X, X), rows, rows)
            exact = exact_matrix(f, X)
            pairs = zip(K.ravel(), (value for row in exact for value in row), strict=True)
            apart = np.array([float(abs(Decimal(float(value)) - stretch * right)) for value, right in pairs])
            witness = {"kernel": repr(kernel), "X": X, "apart": apart, "radius": R}
            verdicts.append(Verdict(float(np.max(apart - R.ravel())), 0.0, 1, witness))
            seen = max(float(apart.max()), EPS * float(np.abs(K).max()))
            verdicts.append(Verdict(float(R.max()), WIDEST * seen, 1, witness))
    return Verdict.worst(verdicts)


def measure_tiles(stretch: float, rng: Generator) -> Verdict:
    """A combination of candidates whose entries are enclosed tile by tile, with tiles of 8 rows, or are stored.

    The exact values of the function are within their radii, norms and support function are from above, and the support
    function, times `stretch`, no higher than rounding of its size makes it.
    """
    X, m = np.vstack([near_and_far(rng, 2) for _ in range(3)]), 18
    drawn = [_generalized_polynomial(rng), _gaussian(rng), _generalized_polynomial(rng)]
    gram_set: Any = Candidates([kernel for kernel, _, _ in drawn], "mean").on(X)
    W, V, theta = rng.standard_normal((2, m)), rng.standard_normal((2, m)), rng.dirichlet(np.ones(3))
    with patch.object(compositions, "BLOCK", 8):
        found = EnclosedCandidates(gram_set).measure(theta, W, V)
    with localcontext(prec=DIGITS):
        total, support = [[ZERO] * m for _ in range(m)], ZERO
        rows_of_V, rows_of_W = [decimals(v) for v in V], [decimals(w) for w in W]
        for share, (_, _, f) in zip(decimals(found.theta), drawn, strict=True):
            K = exact_matrix(f, X)
            scale = m / sum((K[i][i] for i in range(m)), ZERO)
            form = sum((inner(v, [inner(row, v) for row in K]) for v in rows_of_V), ZERO)
            support = max(support, scale * form)
            total = [[a + share * scale * b for a, b in zip(*both, strict=True)] for both in zip(total, K, strict=True)]
        images = [[inner(row, w) for row in total] for w in rows_of_W]
        defect = Decimal(found.defect)
        apart = [
            [float(abs(Decimal(float(v)) - a - defect * b)) for v, a, b in zip(*rows, strict=True)]
            for rows in zip(found.values, images, rows_of_W, strict=True)
        ]
        norms = [float(inner(w, image)) for w, image in zip(rows_of_W, images, strict=True)]
        lack = float(Decimal(stretch) * support / Decimal(found.support) - 1)
    witness = {"X": X, "theta": theta, "W": W, "V": V, "support": found.support}
    return Verdict.worst(
        [
            Verdict(float(np.max(np.array(apart) - found.radius)), 0.0, 1, witness),
            Verdict(float(np.max(np.array(norms) - found.norms)), 0.0, 1, witness),
            Verdict(max(0.0, lack), 0.0, 1, witness),
            Verdict(-lack, 1e-9, 1, witness),
        ]
    )


def measure_many_terms(stretch: Fraction, rng: Generator) -> Verdict:
    """The image under a tessellated kernel whose parameter matrix is a product of many terms, and its radius.

    A constant feature and one point: the entry is the sum of 60,000 equal squares, and rounding goes one way in most of
    it, far beyond what the evaluation of the kernel adds.
    """
    t, terms = Tessellation(monomial_basis(1, 0, 0), np.zeros(1), np.ones(1)), 60_000
    x = t.points(np.zeros((1, 1)))
    pairs, w, verdicts = PairPart(t, x, t.volumes(x, x)), np.ones(1), []
    for c in rng.uniform(0.5, 1.0, 4).tolist():
        blocks = EnclosedBlocks.of_factor(np.vstack([np.full(terms, c), np.zeros(terms)]))
        found = float((pairs.matrix(blocks.g) @ w)[0])
        radius = float(pairs.image_radius(blocks, pairs.sums(w), 1)[0])
        error = float(abs(Fraction(found) - stretch * terms * Fraction(c) ** 2))
        verdicts.append(Verdict(max(0.0, error - radius), 0.0, 1, {"c": c, "apart": error, "radius": radius}))
    return Verdict.worst(verdicts)


def measure_eigenvalue(share: float, rng: Generator) -> Verdict:
    """The bound for all symmetric matrices within R of D is above the eigenvalues of one of the worst of them.

    That is ``D + R`` with the signs of the leading eigenvector of D, and a `share` of R. The bound is no more than the
    largest eigenvalue of D and the norm of R together, and rounding.
    """
    m, ones = int(rng.integers(3, 9)), rng.choice([-1.0, 1.0], 9)
    signs = np.outer(ones[:m], ones[:m])
    D, R = rng.uniform(1.0, 1.001, (m, m)), np.full((m, m), 0.01)
    D = (D + D.T) * signs
    found = largest_eigenvalue(D, R)
    worst, best, norm = (float(np.linalg.eigvalsh(A)[-1]) for A in (D + share * R * signs, D, R))
    size, witness = 1e-12 * m, {"D": D, "R": R, "bound": found, "worst": worst}
    above = Verdict(max(0.0, worst - found), size, 1, witness)
    return Verdict.worst([above, Verdict(max(0.0, found - best - norm), 0.002 * norm + size, 1, witness)])


def enclosure_claims(paper: str) -> list[Claim]:
    return [
        Claim(
            "enclosed-entries",
            "Entries of every kernel that rigorous bounds know are within their radii of values with a hundred digits, "
            "where terms cancel, powers are high and distances large.",
            paper,
            "kernels, rigorous bounds",
            measure_entries,
            ONE,
            ONE + Decimal("1e-14"),
            trials=6,
        ),
        Claim(
            "enclosed-candidates",
            "Values, norms and support function of candidates enclosed tile by tile are on the right side of exact.",
            paper,
            "families, rigorous bounds",
            measure_tiles,
            1.0,
            1.0 + 1e-8,
            trials=2,
        ),
        Claim(
            "enclosed-parameter-matrix",
            "The radius of a function with a tessellated kernel counts the roundings of its parameter matrix.",
            paper,
            "families, rigorous bounds",
            measure_many_terms,
            Fraction(1),
            Fraction(10**11 + 2, 10**11),
            trials=2,
        ),
        Claim(
            "enclosed-eigenvalue",
            "The bound on eigenvalues of all matrices within R of one is above the largest of them, and hardly above.",
            paper,
            "families, rigorous bounds",
            measure_eigenvalue,
            1.0,
            1.01,
        ),
    ]
