"""What is known of numbers that are in memory: entries, sums and norms are within their radii of exact ones."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from convexkernels import AllKernelMatrices, Candidates, GeneralizedPolynomial, Span
from convexkernels import kernels as k
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.families.precomputed import row_numbers
from convexkernels.families.stacks.filling import make_stack
from convexkernels.kernels.base import Product
from convexkernels.losses.base import BoxDual
from convexkernels.problems.rounding import UNIT
from convexkernels.rigorous.candidates import EnclosedCandidates
from convexkernels.rigorous.dual import exact_point
from convexkernels.rigorous.kernels import Pairs
from convexkernels.rigorous.matrices import EnclosedKernelMatrices, EnclosedPolynomials, trace_above
from convexkernels.rigorous.stored import RULES, StoredMatrices, known_entries, largest_rate
from proofs_check.claim import Claim
from proofs_check.library.enclosures import (
    DIGITS,
    DRAWN,
    ONE,
    ZERO,
    Drawn,
    cancelling,
    decimals,
    exact_matrix,
    inner,
    mean,
    squared,
)

Generator = np.random.Generator
Fractions = list[Fraction]


def _power(rng: Generator) -> Drawn:
    """A power whose values have a square that is no infinity."""
    degree, offset = int(rng.integers(2, 12)), float(rng.uniform(0.5, 2.0))
    return k.Polynomial(degree, offset), cancelling(rng), lambda x, y: (inner(x, y) + Decimal(offset)) ** degree


def _of_many_features(rng: Generator) -> Drawn:
    """A high power of sums of 200 terms, times a constant: all errors are those of one factor."""
    parts = k.Constant(1.0), k.Polynomial(30, 1.0)
    left, right = parts if rng.integers(2) else parts[::-1]
    return Product(left, right), rng.uniform(0.9, 1.1, (5, 200)), lambda x, y: (inner(x, y) + 1) ** 30


def _with_a_row_at_0(rng: Generator) -> Drawn:
    """Centered, with a row of length 0 and the others on one side of it."""
    X = np.vstack([np.zeros(3), rng.uniform(0.5, 1.5, (5, 3))])
    points = [decimals(row) for row in X]

    def formula(x: Any, y: Any) -> Decimal:
        means = [mean([inner(a, z) for z in points]) for a in (x, y)]
        return inner(x, y) - sum(means, ZERO) + mean([inner(z, u) for z in points for u in points])

    return k.Centered(k.Linear(), X), X, formula


def distances(K: Array, exact: list[list[Decimal]]) -> Array:
    """How far the entries are from exact ones."""
    pairs = zip(K.tolist(), exact, strict=True)
    return np.array([[float(abs(Decimal(a) - b)) for a, b in zip(*rows, strict=True)] for rows in pairs])


# ---- stored matrices


def measure_stored(stretch: Decimal, rng: Generator) -> Verdict:
    """Stored entries, and values of the diagonal, are within `error` times roots of exact ones, times `stretch`.

    No exact entry is larger than its roots, and none is below 0 where that is said. For every rule of the table.
    """
    draws = [(DRAWN | {k.Polynomial: _power})[kind] for kind in RULES]
    verdicts = []
    with localcontext(prec=DIGITS):
        for draw in (*draws, _of_many_features, _with_a_row_at_0):
            kernel, X, f = draw(rng)
            known = known_entries(kernel, Pairs(X, X), largest_rate([kernel]))
            if known is None:
                continue
            K = make_stack([kernel], X, memory_limit=None, dtype=np.float64).matrix(0)
            exact = [[stretch * value for value in row] for row in exact_matrix(f, X)]
            values = np.array(exact, dtype=np.float64)
            bound = np.outer(known.roots, known.roots)
            apart = np.maximum(distances(K, exact), 0.0)
            own = distances(kernel.diag(X)[:, None], [[row[i]] for i, row in enumerate(exact)])[:, 0]
            over = [
                float((apart - known.error * bound).max()),
                float((own - known.error * known.roots**2).max()),
                float((np.abs(values) - (1.0 + 1e-9) * bound).max()),
                -float(values.min()) if known.nonnegative else 0.0,
            ]
            verdicts.append(Verdict(max(0.0, *over), 0.0, 1, {"kernel": repr(kernel), "X": X, "over": np.array(over)}))
    return Verdict.worst(verdicts)


def measure_forms(stretch: Decimal, rng: Generator) -> Verdict:
    """Quadratic forms, diagonals and means of stored Gaussians are within their radii of exact ones, times `stretch`.

    Two pairs of close points, far from each other: distances have lost digits. Forms of few points, and of all.
    """
    m, half = 4, rng.uniform(17.0, 18.5, 3)
    X = np.repeat([half, -half], 2, axis=0) + 0.15 * rng.standard_normal((m, 3))
    rates = (1.0, 0.25)
    kernels = [k.Gaussian(rate) for rate in rates]
    stack = make_stack(kernels, X, memory_limit=None, dtype=np.float64)
    stack.rescale(rng.uniform(0.5, 2.0, 2))
    known = {i: known_entries(kernel, Pairs(X, X), largest_rate(kernels)) for i, kernel in enumerate(kernels)}
    stored, verdicts = StoredMatrices(stack, known), []  # type: ignore[arg-type]
    one, pair = np.zeros((1, m)), 2 * int(rng.integers(m // 2))
    one[0, pair : pair + 2] = rng.standard_normal(2)
    with localcontext(prec=DIGITS):
        points = [decimals(row) for row in X]
        matrices = [
            [[stretch * (-Decimal(rate) * squared(x, y)).exp() for y in points] for x in points] for rate in rates
        ]
        for V in (one, rng.standard_normal((2, m)), np.abs(rng.standard_normal((1, m)))):
            values, radii = stored.forms(V)
            for K, value, radius in zip(matrices, values.tolist(), radii.tolist(), strict=True):
                exact = sum((inner(v, [inner(row, v) for row in K]) for v in map(decimals, V)), ZERO)
                over = float(abs(Decimal(value) - exact)) - radius
                verdicts.append(Verdict(max(0.0, over), 0.0, 1, {"X": X, "V": V, "radius": radius}))
        means, diagonals = stored.means(), stored.diagonals()
        for i, K in enumerate(matrices):
            apart = [float(abs(Decimal(means[i][0]) - mean([value for row in K for value in row]))) - means[i][1]]
            apart += (
                distances(diagonals[i][0][:, None], [[row[j]] for j, row in enumerate(K)])[:, 0] - diagonals[i][1]
            ).tolist()
            verdicts.append(Verdict(max(0.0, *apart), 0.0, 1, {"X": X, "rate": rates[i]}))
    return Verdict.worst(verdicts)


# ---- candidates whose scales are inexact


def measure_scales(stretch: Decimal, rng: Generator) -> Verdict:
    """Candidates that are constant but for a billionth, with variance 1: their scales have lost all but six digits.

    Bounds of the support function, in floats and in exact arithmetic, are above the exact one, times `stretch`, and the
    latter hardly; values of functions are within their radii.
    """
    m, rates = 8, (1e-9, 1e-10)
    X, W = rng.uniform(0.0, 1.0, (m, 3)), np.zeros((1, m))
    W[0, :2] = rng.uniform(0.5, 2.0, 2)
    gram_set: Any = Candidates([k.Gaussian(rate) for rate in rates], "variance").on(X)
    D = gram_set.adjoint(W)
    K = gram_set.gram(gram_set.initial())
    above = gram_set.support_above(D, gram_set.support(D)[0], W, gram_set.sizes(gram_set.initial(), K, W), UNIT)
    found, theta = EnclosedCandidates(gram_set), rng.dirichlet(np.ones(2))
    proven = found.measure(theta, W, W)
    with localcontext(prec=DIGITS):
        points, w, forms = [decimals(row) for row in X], decimals(W[0]), []
        values = [ZERO] * m
        for share, rate in zip(decimals(proven.theta), rates, strict=True):
            exact = [[(-Decimal(rate) * squared(x, y)).exp() for y in points] for x in points]
            scale = 1 / (1 - mean([value for row in exact for value in row]))
            image = [scale * inner(row, w) for row in exact]
            forms.append(stretch * inner(w, image))
            values = [a + share * b for a, b in zip(values, image, strict=True)]
        support, away = (
            max(forms),
            [abs(Decimal(a) - b) for a, b in zip(proven.values[0].tolist(), values, strict=True)],
        )
        lack = [float(support / Decimal(bound) - 1) for bound in (above, proven.support)]
    outside = float((np.array(away, dtype=np.float64) - proven.radius[0]).max())
    witness = {"X": X, "W": W, "support": float(support), "bounds": np.array([above, proven.support])}
    return Verdict.worst(
        [
            Verdict(max(0.0, outside, *lack), 0.0, 1, witness),
            Verdict(-lack[1], 1e-2, 1, witness),
        ]
    )


# ---- matrices as parameters


def fractions(values: Any) -> Fractions:
    """Floats as they are."""
    return [Fraction(float(value)) for value in values]


def product(rows: list[Fractions], w: Fractions) -> Fractions:
    return [sum((a * b for a, b in zip(row, w, strict=True)), Fraction(0)) for row in rows]


def transposed(rows: list[Fractions]) -> list[Fractions]:
    return [list(column) for column in zip(*rows, strict=True)]


def enclosed(
    found: Any, Z: list[Fractions] | None, trace: float, W: Array, stretch: Fraction, is_equality: bool
) -> Any:
    """Whether values and norms of ``Z' F F' Z`` are on the right side; the trace of the kernel is at most, or just, so.

    The last norm, of coefficients that do not cancel, is hardly above the exact one. `Z` are features, shape (q, m), or
    None for unit vectors.
    """
    F = [fractions(row) for row in found.theta]
    size = sum((value * value for row in F for value in row), Fraction(0)) / Fraction(trace)
    grown = size if is_equality else max(Fraction(1), size)
    over = []
    for w, values, radius, norm in zip(W, found.values, found.radius, found.norms, strict=True):
        pulled = fractions(w) if Z is None else product(Z, fractions(w))
        h = product(transposed(F), pulled)
        image = product(F, h)
        image = image if Z is None else product(transposed(Z), image)
        exact = stretch * grown * sum((a * a for a in h), Fraction(0))
        over.append(float(exact - Fraction(float(norm))))
        over += [
            float(abs(Fraction(float(a)) - b) - Fraction(float(r)))
            for a, b, r in zip(values, image, radius, strict=True)
        ]
    over.append(float(Fraction(float(found.norms[-1])) / exact) - 1.0 - 1e-9)
    return Verdict(max(0.0, *over), 0.0, 1, {"F": np.array(found.theta), "W": W, "trace": trace})


def measure_parameter_matrices(stretch: Fraction, rng: Generator) -> Verdict:
    """Values and norms of functions whose kernel has a matrix as parameter are on the right side of exact ones.

    Of all kernel matrices, for coefficients that cancel where entries differ by units in the last place, and others;
    and of polynomials whose trace is smaller than is allowed, or larger. `stretch` multiplies norms.
    """
    m = 3
    free = EnclosedKernelMatrices(AllKernelMatrices().on(row_numbers(m)))  # type: ignore[arg-type]
    flat: Array = np.asarray(1.0 + 2.0**-52 * rng.integers(0, 4, (m, 4)), dtype=np.float64)
    a, b = rng.standard_normal(2)
    W = np.array([[a, b, -(a + b)], rng.standard_normal(m)])
    found = free._measure(flat, trace_above(flat), W, W)
    verdicts = [enclosed(found, None, float(m), W, stretch, True)]
    for share in (0.2, 3.0):
        G = share * rng.standard_normal((m, m))
        verdicts.append(enclosed(free.measure(G @ G.T, W, W), None, float(m), W, stretch, True))
    X, allowed = rng.uniform(-1.0, 1.0, (6, 2)), float(rng.uniform(0.5, 5.0))
    gram_set: Any = GeneralizedPolynomial(2, allowed).on(X)
    powers = gram_set.coordinates.powers.tolist()
    rows = [fractions(row) for row in X]
    Z = [[x**i * y**j for x, y in rows] for i, j in powers]
    theta, W = gram_set.initial(), rng.standard_normal((2, 6))
    theta = theta * (allowed / float(np.trace(theta)))
    for share in (0.4, 2.5):
        found = EnclosedPolynomials(gram_set, X).measure(share * theta, W, W)
        verdicts.append(enclosed(found, Z, allowed, W, stretch, False))
    return Verdict.worst(verdicts)


def measure_exact_points(stretch: Fraction, rng: Generator) -> Verdict:
    """Dual points have the exact sum 0, are inside of their box, and near what they are made of.

    Of numbers whose sum is 0 up to rounding; `stretch` multiplies the first one.
    """
    m = int(rng.integers(2, 12))
    cost = float(rng.uniform(1.0, 40.0)) * rng.uniform(0.1, 1.0, m)
    w = rng.uniform(-1.0, 1.0, m) * np.where(rng.integers(0, 3, m) == 0, 0.0, 1.0) * 0.5 * cost
    w = np.clip(w - w.mean(), -cost, cost)
    w -= w.mean()
    dual = BoxDual(w, np.zeros(m), -cost, cost)
    found = exact_point(w, dual, True)
    exact = fractions(found)
    exact[0] *= stretch
    outside = max(max(abs(v) - c for v, c in zip(exact, fractions(cost), strict=True)), Fraction(0))
    clipped = np.clip(w, -cost, cost)
    moved = float(np.abs(found - clipped).max()) - abs(float(clipped.sum()))
    off = max(0.0, moved - 1e-14 * float(cost.max()))
    return Verdict(float(abs(sum(exact, Fraction(0))) + outside) + off, 0.0, 1, {"w": w, "cost": cost})


# ---- sizes that values are right to


def measure_sizes(stretch: Decimal, rng: Generator) -> Verdict:
    """Values are right to four units in the last place of what sizes say, where terms cancel.

    Of a span of nearly equal Gaussians with weights of thousands, whose sizes are those of the terms, and of centered
    kernels with a row of length 0. `stretch` multiplies exact values.
    """
    verdicts = []
    with localcontext(prec=DIGITS):
        m, rates, trace = 6, (1.0, 1.01, 1.02), 1.0
        X, W = rng.uniform(0.0, 1.0, (m, 2)), rng.standard_normal((1, m))
        gram_set: Any = Span([k.Gaussian(rate) for rate in rates], trace).on(X)
        theta = float(rng.uniform(3000.0, 4000.0)) * np.array([1.0, -2.0, 1.0])
        points, w, values = [decimals(row) for row in X], decimals(W[0]), [ZERO] * m
        for share, rate in zip(decimals(theta), rates, strict=True):
            K = [[(-Decimal(rate) * squared(x, y)).exp() for y in points] for x in points]
            values = [a + share * inner(row, w) for a, row in zip(values, K, strict=True)]
        K = gram_set.gram(theta)
        sizes = gram_set.sizes(theta, K, W)[0]
        terms = float(np.abs(theta).sum() * np.abs(W).sum())
        apart = distances((W @ K).T, [[stretch * value] for value in values])[:, 0]
        witness = {"X": X, "theta": theta, "apart": apart, "sizes": sizes}
        verdicts.append(Verdict(max(0.0, float((apart - UNIT * sizes).max())), 0.0, 1, witness))
        verdicts.append(Verdict(float(sizes.max()), terms, 1, witness))
        kernel, X, f = _with_a_row_at_0(rng)
        bound = np.sqrt(np.outer(*(2 * [kernel._sizes(X)])))
        apart = distances(kernel(X), [[stretch * value for value in row] for row in exact_matrix(f, X)])
        over = float((apart - UNIT * bound).max())
        verdicts.append(Verdict(max(0.0, over), 0.0, 1, {"X": X, "apart": apart, "bound": bound}))
    return Verdict.worst(verdicts)


def radius_claims(paper: str) -> list[Claim]:
    """One claim each."""
    off, off_in_fractions = ONE + Decimal("1e-9"), Fraction(10**9 + 1, 10**9)
    rows: list[tuple[str, str, str, Any, Any, Any, int]] = [
        (
            "stored-entries",
            "Entries of matrices in memory are as exact as is said of their kernels, and no larger than their roots.",
            "rigorous bounds",
            *(measure_stored, ONE, off, 6),
        ),
        (
            "stored-forms",
            "Forms, diagonals and means of matrices in memory are within their radii, where distances lose digits.",
            "rigorous bounds",
            *(measure_forms, ONE, off, 6),
        ),
        (
            "scales-of-small-variances",
            "Bounds of the support function are above it where scales of candidates have lost most of their digits.",
            "families, Candidates",
            *(measure_scales, ONE, ONE + Decimal("0.01"), 6),
        ),
        (
            "enclosed-norms",
            "Values and norms of functions whose kernel has a matrix as parameter are on the right side of exact ones.",
            "families, rigorous bounds",
            *(measure_parameter_matrices, Fraction(1), off_in_fractions, 6),
        ),
        (
            "exact-dual-points",
            "Dual points of rigorous bounds have the sum 0 in fractions, and are inside of their box.",
            "rigorous bounds",
            *(measure_exact_points, Fraction(1), off_in_fractions, 20),
        ),
        (
            "sizes-of-values",
            "Values of kernels are right to units in the last place of their sizes, where terms cancel.",
            "kernels and families, sizes",
            *(measure_sizes, ONE, off, 6),
        ),
    ]
    return [
        Claim(name, statement, paper, number, measure, subject, impostor, trials=trials)
        for name, statement, number, measure, subject, impostor, trials in rows
    ]
