"""Claims about the formulas of tessellated kernels: integrals, positivity, continuity, counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb, factorial

import numpy as np
import sympy

from convexkernels import Box, GeneralizedPolynomialKernel, InvalidInputError, Tessellated, TessellatedKernel
from convexkernels.arrays import Array, Index, Mask
from convexkernels.bases.integrals import symbolic_entry
from convexkernels.bases.monomials import MonomialBasis, count_monomials, expansion, monomial_basis
from convexkernels.bases.tessellation.gram import Blocks
from convexkernels.checking import Verdict, check_psd
from proofs_check.claim import agreed
from proofs_check.tessellated import direct
from proofs_check.tessellated.direct import EPS, Case, Value

Generator = np.random.Generator
Formula = Callable[[Case, Array, Array], Value]


def inside(rng: Generator, case: Case, m: int, margin: float = 0.0) -> Array:
    """Random points of the box, at least `margin` box widths away from its faces."""
    return case.a + (case.b - case.a) * rng.uniform(margin, 1.0 - margin, (m, case.a.size))


# ---- formulas against the defining integral: Lemma 5, Corollary 13, the two readings of (10)


def measure_integral(subject: tuple[Formula, direct.Block, tuple[int, ...]], rng: Generator) -> Verdict:
    """A formula equals the integral [CP20 (7)], for (x, y) and for (y, x).

    Other formulas than the library's are compared where the library agrees with the integral, if it has that at all.
    """
    formula, block, dimensions = subject
    case = direct.random_case(rng, int(rng.choice(dimensions)), int(rng.integers(0, 3)))
    x, y = inside(rng, case, 2)
    verdicts = []
    for left, right in ((x, y), (y, x)):
        claimed, exact = formula(case, left, right), direct.integral(case, left, right, block)
        if block is direct.block_complement and formula not in OF_THE_LIBRARY:
            library = library_kernel(case, left, right)
            agreed(exact.value, library.value, exact.error + library.error)
        witness = {"P": case.P, "a": case.a, "b": case.b, "degree": case.degree, "x": left, "y": right}
        witness |= {"formula": claimed.value, "integral": exact.value, "formula_swapped": formula(case, y, x).value}
        verdicts.append(Verdict(abs(claimed.value - exact.value), claimed.error + exact.error, 1, witness))
    return Verdict.worst(verdicts)


def library_of(case: Case, z_degree: int | None = None) -> TessellatedKernel:
    """The library's kernel with the same P, its monomials matched by their exponents; others are left out."""
    _, places = library_places(case.a.size, case.degree, z_degree)
    return TessellatedKernel(case.P[np.ix_(places, places)], case.a, case.b, case.degree, z_degree)


def library_places(n: int, degree: int, z_degree: int | None = None) -> tuple[MonomialBasis, Index]:
    """The library's basis, and where the rows of its P are in that of a `Case`."""
    basis = monomial_basis(n, degree, z_degree)
    ours = {tuple(row): i for i, row in enumerate(np.hstack(direct.exponents(n, degree)).astype(int).tolist())}
    order = np.array([ours[tuple(row)] for row in np.hstack([basis.gamma, basis.delta]).tolist()], dtype=np.intp)
    return basis, np.append(order, order + len(ours))


def without_z(case: Case, z_degree: int) -> Case:
    """The same kernel without the monomials in which z has a higher degree."""
    _, places = library_places(case.a.size, case.degree, z_degree)
    P = np.zeros_like(case.P)
    P[np.ix_(places, places)] = case.P[np.ix_(places, places)]
    return Case(P, case.a, case.b, case.degree)


def corollary_13_printed(case: Case, x: Array, y: Array) -> Value:
    return direct.corollary_13(case, x, y, "t_ij(y,x)")


def corollary_13_without_third(case: Case, x: Array, y: Array) -> Value:
    return direct.corollary_13(case, x, y, "none")


def library_kernel(case: Case, x: Array, y: Array) -> Value:
    """The value by the library's kernel."""
    # Any regrouping of the same terms rounds by no more than adding them one by one.
    return Value(float(library_of(case)(x[None, :], y[None, :])[0, 0]), direct.corollary_13(case, x, y).error)


def library_blocks(case: Case, x: Array, y: Array) -> Value:
    """[CP20 Lemma 5] with the library's regrouped blocks of P, in its order of monomials."""
    basis, places = library_places(x.size, case.degree)
    blocks = Blocks.of(case.P[np.ix_(places, places)])
    back = np.argsort(places[: basis.q])
    parts = [part[np.ix_(back, back)] for part in (blocks.g, blocks.x, blocks.x.T, blocks.a)]
    zeros = direct.lemma_5(case, x, y)
    corners = (np.maximum(x, y), x, y, case.a)
    return Value(direct.four_parts(case, x, y, tuple(zip(parts, corners, strict=True))).value, zeros.error)


def library_symbols(case: Case, x: Array, y: Array) -> Value:
    """The library's symbolic g, t, t~ and h of [CP20 (23)], with numbers put in."""
    basis, places = library_places(x.size, case.degree)
    blocks = symbolic_values(basis, case, x, y)
    q = basis.q
    P = case.P[np.ix_(places, places)]
    parts = zip((P[:q, :q], P[:q, q:], P[q:, :q], P[q:, q:]), ("g", "t", "t_mirror", "h"), strict=True)
    total = float(sum(np.sum(block * blocks[name]) for block, name in parts))
    return Value(total, direct.corollary_13(case, x, y).error)


OF_THE_LIBRARY = (library_kernel, library_blocks, library_symbols)


@lru_cache(maxsize=16)
def _compiled(n: int, degree: int) -> Callable[..., tuple[Array, ...]]:
    """A numerical function of x, y, a, b and max(x, y) that returns the four symbolic matrices."""
    basis = monomial_basis(n, degree)
    entries = [[symbolic_entry(basis, i, j) for j in range(basis.q)] for i in range(basis.q)]
    symbols = [entries[0][0][letter] for letter in "xyabp"]
    blocks = [[[entry[name] for entry in row] for row in entries] for name in ("g", "t", "t_mirror", "h")]
    compiled: Callable[..., tuple[Array, ...]] = sympy.lambdify(symbols, blocks, "numpy")
    return compiled


def symbolic_values(basis: MonomialBasis, case: Case, x: Array, y: Array) -> dict[str, Array]:
    values = _compiled(basis.n, basis.degree)(x, y, case.a, case.b, np.maximum(x, y))
    return dict(zip(("g", "t", "t_mirror", "h"), (np.asarray(v, dtype=np.float64) for v in values), strict=True))


def measure_linearity(turn: Callable[[Array], Array], rng: Generator) -> Verdict:
    """The library's map from P to K(P) is linear, and ``<adjoint(w), P> = w'K(P) w`` [CP20 Section 3]."""
    # Of degree 0 the blocks of P are numbers, which are what their transposes are.
    n, degree = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    first, other = (direct.random_case(rng, n, degree) for _ in range(2))
    X, w = inside(rng, first, 5), rng.standard_normal(5)
    _, places = library_places(n, degree)
    P, R = (case.P[np.ix_(places, places)] for case in (first, other))
    gram_set = Tessellated(degree=degree, box=Box(first.a, first.b)).on(X)
    other = Case(turn(other.P), first.a, first.b, degree)
    values = [[[direct.integral(case, x, y) for y in X] for x in X] for case in (first, other)]
    one, two = (np.array([[v.value for v in row] for row in table]) for table in values)
    error = max(v.error for table in values for row in table for v in row)
    apart = float(np.abs(gram_set.gram(2.0 * P + 3.0 * R) - 2.0 * one - 3.0 * two).max())
    pulled = abs(float(np.sum(gram_set.adjoint(w[None, :]) * R)) - float(w @ two @ w))
    tolerance = 64.0 * (error + EPS * float(np.abs(one).max() + np.abs(two).max())) * float(1.0 + np.abs(w).sum() ** 2)
    return Verdict(max(apart, pulled), tolerance, 1, {"P": P, "R": R, "X": X, "w": w})


def cross_block_transposed(P: Array) -> Array:
    """P with its off-diagonal blocks exchanged: symmetric still."""
    q = P.shape[0] // 2
    return np.block([[P[:q, :q], P[q:, :q]], [P[:q, q:], P[q:, q:]]])


def measure_without_z(kept: int, rng: Generator) -> Verdict:
    """The library's kernel with a bounded degree in z is the integral with the monomials that are left.

    `kept` is added to the bound of the integral.
    """
    n, degree = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    top = int(rng.integers(0, degree))
    case = direct.random_case(rng, n, degree)
    X = inside(rng, case, 3)
    values = [[direct.integral(without_z(case, top + kept), x, y) for y in X] for x in X]
    expected = np.array([[value.value for value in row] for row in values])
    kernel = library_of(case, top)
    apart = max(float(np.abs(kernel(X) - expected).max()), float(np.abs(kernel.diag(X) - np.diag(expected)).max()))
    error = max(value.error for row in values for value in row)
    witness = {"P": case.P, "a": case.a, "b": case.b, "degree": degree, "z_degree": top, "X": X}
    return Verdict(apart, 4.0 * error, 1, witness)


# ---- positivity: Proposition 3, Lemma 4


def measure_positive(draw_P: Callable[[Generator, int], Array], rng: Generator) -> Verdict:
    """Every kernel matrix is positive semidefinite [CP20 Proposition 3]."""
    case = direct.random_case(rng, int(rng.integers(1, 4)), int(rng.integers(0, 2)))
    case = Case(draw_P(rng, case.P.shape[0]), case.a, case.b, case.degree)
    X = inside(rng, case, 20)
    X[10:15] = X[:5]
    # The library refuses the P of the control, which is not positive.
    positive = np.linalg.eigvalsh(case.P)[0] > -1e-12
    verdict = check_psd(library_of(case) if positive else lambda U, V: direct.gram(case, U, V), X)
    witness = {**verdict.witness, "P": case.P, "a": case.a, "b": case.b, "degree": case.degree}
    return Verdict(verdict.worst_violation, verdict.tolerance, 1, witness)


def semidefinite(rng: Generator, size: int) -> Array:
    G = rng.standard_normal((size, int(rng.integers(1, size + 1))))
    return G @ G.T / size


def symmetric(rng: Generator, size: int) -> Array:
    G = rng.standard_normal((size, size))
    return G + G.T


def nearly_semidefinite(rng: Generator, size: int) -> Array:
    """Of rank 2, one eigenvalue being -10 % of the other one.

    Beside more positive ones it would seldom be seen on twenty points.
    """
    u, v = np.linalg.qr(rng.standard_normal((size, 2)))[0].T
    return np.asarray(np.outer(u, u) - 0.1 * np.outer(v, v))


def polynomial_features(X: Array, degree: int) -> Array:
    """All monomials of degree at most `degree`, one row per point."""
    gamma, delta = direct.exponents(X.shape[1], degree)
    plain = delta[gamma.sum(axis=1) == 0]
    return np.prod(X[:, None, :] ** plain, axis=2)


def measure_polynomial_criterion(criterion: Callable[[Array], bool], rng: Generator) -> Verdict:
    """A criterion on P predicts whether Z(x)'PZ(y) is a positive kernel, both ways [CP20 Lemma 4, (8)]."""
    X = rng.uniform(-1.0, 1.0, (12, 2))
    Z = polynomial_features(X, 2)
    size = Z.shape[1]
    # Off-diagonal mass grows with the draw, so that indefinite P with a positive diagonal occur.
    G = rng.standard_normal((size, size))
    S = symmetric(rng, size)
    P = G @ G.T + rng.uniform(0.0, 6.0) * (S - np.diag(np.diag(S)))
    verdict = check_psd(lambda U, V: polynomial_features(U, 2) @ P @ polynomial_features(V, 2).T, X)
    predicted = criterion(P)
    witness = {"P": P, **verdict.witness}
    if predicted == verdict.holds:
        return Verdict(0.0, verdict.tolerance, 1, witness)
    return Verdict(max(verdict.worst_violation, 2.0 * verdict.tolerance), verdict.tolerance, 1, witness)


def accepted_by_the_library(P: Array) -> bool:
    """Whether the library takes P for a generalized polynomial kernel on the plane."""
    try:
        GeneralizedPolynomialKernel(P, 2)(np.zeros((1, 2)))
    except InvalidInputError:
        return False
    return True


def positive_diagonal(P: Array) -> bool:
    return bool((np.diag(P) >= 0.0).all())


# ---- Theorem 6 and the tiles of Section 3.3


def measure_continuity(mass: float, rng: Generator) -> Verdict:
    """No jump of x -> k(x, y) where a coordinate of x passes that of y [CP20 Theorem 6].

    `mass` is that of an atom at z = y beside the Lebesgue measure of the integral: PSD for any mass that is not
    negative, but continuous for none that is positive.

    The jump over a gap of half width h is J + O(h); extrapolating three gaps to 0 leaves J, and the
    extrapolation's own spread is its error estimate.
    """
    case = direct.random_case(rng, 2, 1)
    x, y = inside(rng, case, 2, margin=0.2)
    axis = int(rng.integers(2))
    x[axis] = y[axis]
    x[1 - axis] = case.a[1 - axis]  # below y, so that the crossing changes the indicators' product

    def value(u: Array) -> Value:
        left, right = (direct.features(y[None, :], v, case.degree, direct.block_complement) for v in (u, y))
        atom = mass * float((left @ case.P @ right.T)[0, 0])
        size = mass * float((np.abs(left) @ np.abs(case.P) @ np.abs(right).T)[0, 0])
        integral = library_kernel(case, u, y)
        return Value(integral.value + atom, integral.error + EPS * case.P.size * size)

    jumps, noise = [], 0.0
    for h in (1e-3, 5e-4, 2.5e-4, 1.25e-4):
        shift = h * np.eye(2)[axis]
        above, below = value(x + shift), value(x - shift)
        jumps.append(above.value - below.value)
        noise = max(noise, above.error + below.error)
    first = 2.0 * np.array(jumps[1:]) - np.array(jumps[:-1])
    second = (4.0 * first[1:] - first[:-1]) / 3.0
    witness = {"P": case.P, "a": case.a, "b": case.b, "x": x, "y": y, "axis": axis, "jumps": np.array(jumps)}
    spread = float(abs(second[1] - second[0])) + float(abs(second[1] - first[-1]))
    return Verdict(abs(float(second[1])), spread + 8.0 * noise, 1, witness)


def measure_tiles(beta_is_one: Callable[[Array, Array], Mask], rng: Generator) -> Verdict:
    """On a tile the classifier is the sum of the polynomials k_beta(i, gamma)(x_i, z) [CP20 Section 3.3]."""
    case = direct.random_case(rng, 2, 1)
    X = inside(rng, case, 5)
    alpha = rng.standard_normal(5)
    z = inside(rng, case, 1)[0]
    lower = np.array([max([v for v in X[:, j] if v <= z[j]], default=case.a[j]) for j in range(2)])
    true = [library_kernel(case, x, z) for x in X]
    claimed = [direct.orthant_polynomial(case, x, z, beta_is_one(lower, x)) for x in X]
    violation = abs(sum(a * (c.value - t.value) for a, c, t in zip(alpha, claimed, true, strict=True)))
    tolerance = sum(abs(a) * (c.error + t.error) for a, c, t in zip(alpha, claimed, true, strict=True))
    witness = {"P": case.P, "a": case.a, "b": case.b, "X": X, "alpha": alpha, "z": z, "tile_corner": lower}
    return Verdict(float(violation), float(tolerance), 1, witness)


# ---- Lemma 11, Theorem 12, the counts


def printed_integral(case: Case, x: Array, y: Array) -> Value:
    return direct.integral(case, x, y, direct.block_printed)


def measure_polynomials_inside(formula: Formula, rng: Generator) -> Verdict:
    """The matrix P of [CP20 Lemma 11] turns a generalized polynomial kernel into a tessellated one."""
    n, degree = 2, int(rng.integers(0, 3))
    gamma, _ = direct.exponents(n, degree)
    plain = np.flatnonzero(gamma.sum(axis=1) == 0)
    P1 = semidefinite(rng, plain.size)
    template = direct.random_case(rng, n, degree)
    corner = np.zeros((gamma.shape[0], gamma.shape[0]))
    corner[np.ix_(plain, plain)] = P1 / np.prod(template.b - template.a)
    case = Case(np.block([[corner, corner], [corner, corner]]), template.a, template.b, degree)
    x, y = inside(rng, case, 2)
    exact = formula(case, x, y)
    zx, zy = (direct.monomials(np.zeros((1, n)), u, degree)[0, plain] for u in (x, y))
    polynomial = float(zx @ P1 @ zy)
    rounding = EPS * (P1.size + 8) * float(np.abs(zx) @ np.abs(P1) @ np.abs(zy))
    witness = {"P1": P1, "a": case.a, "b": case.b, "degree": degree, "x": x, "y": y}
    return Verdict(abs(exact.value - polynomial), exact.error + rounding, 1, witness)


def measure_pointwise_density(surplus: int, rng: Generator) -> Verdict:
    """Some GPK matches a given kernel matrix exactly [CP20 Definition 9, Theorem 12], with the degree its proof needs.

    `surplus` is added to the smallest degree with at least as many monomials as points.
    """
    n, m = 2, int(rng.integers(6, 16))
    X = rng.uniform(-1.0, 1.0, (m, n))
    degree = next(d for d in range(20) if comb(n + d, d) >= m) + surplus
    M = rng.standard_normal((m, m))
    target = M.T @ M
    Z = polynomial_features(X, degree)
    Q = np.linalg.lstsq(Z, M.T, rcond=None)[0].T
    P = Q.T @ Q
    # The library's kernel, whose monomials have another order.
    mine = exponents_of_x(n, degree)
    order = [mine.index(tuple(row)) for row in monomial_basis(n, degree, 0).x_powers.tolist()]
    matched = GeneralizedPolynomialKernel(P[np.ix_(order, order)], degree)(X)
    # Rounding of Z P Z', and of the backward stable solve behind Q: both are relative to |Z|^2 |P|.
    rounding = EPS * (m + 2 * Z.shape[1]) * float(np.linalg.norm(Z, 2) ** 2 * np.linalg.norm(P, 2))
    rounding += 2.0 * EPS * m * float(np.linalg.norm(Z, 2) * np.linalg.norm(Q, 2) * np.linalg.norm(M, 2))
    witness = {"X": X, "K": target, "degree": degree, "P": P}
    return Verdict(float(np.abs(matched - target).max()), rounding, 1, witness)


def exponents_of_x(n: int, degree: int) -> list[tuple[int, ...]]:
    """Exponents of the monomials without z, in the order of `polynomial_features`."""
    gamma, delta = direct.exponents(n, degree)
    return [tuple(row) for row in delta[gamma.sum(axis=1) == 0].astype(int).tolist()]


def measure_count(count: Callable[[int, int], float], rng: Generator) -> Verdict:
    """Number of monomials of degree at most d in z and x, both of n features: counted, and in the library's basis."""
    n, degree = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    q = direct.exponents(n, degree)[0].shape[0]
    wrong = abs(count(n, degree) - q) + abs(monomial_basis(n, degree).q - q)
    return Verdict(float(wrong), 0.0, 1, {"n": n, "degree": degree, "q": q})


def measure_expansion(shift: float, rng: Generator) -> Verdict:
    """Monomials of points far from the origin by the library's expansion; `shift` is added to the center."""
    n, degree = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    powers = monomial_basis(n, degree, 0).x_powers
    center, scale, z = rng.uniform(-2.0, 2.0, n), rng.uniform(0.5, 2.0, n), rng.uniform(-1.0, 1.0, n)
    direct_values = np.prod((center + shift + scale * z) ** powers, axis=1)
    values = expansion(powers, center, scale) @ np.prod(z**powers, axis=1)
    return Verdict(float(np.abs(values - direct_values).max()), 1e-12 * float(4.0**degree), 1, {"z": z})


def measure_count_of_z(shift: int, rng: Generator) -> Verdict:
    """The library counts monomials whose degree in z is bounded, too."""
    n, degree, top = (int(rng.integers(1, 4)) for _ in range(3))
    gamma, _ = direct.exponents(n, degree)
    q = int((gamma.sum(axis=1) <= top - shift).sum())
    wrong = abs(count_monomials(n, degree, top) - q) + abs(monomial_basis(n, degree, top).q - q)
    return Verdict(float(wrong), 0.0, 1, {"n": n, "degree": degree, "z_degree": top, "q": q})


def count_section_5(n: int, d: int) -> float:
    return count_monomials(n, d)


def count_section_7(n: int, d: int) -> float:
    return factorial(n + d - 1) / (factorial(n) * factorial(d))


def count_one_less(n: int, d: int) -> float:
    return comb(2 * n + d, d) - 1


def measure_appendix(last_map: Callable[[Array, Array], Array], rng: Generator) -> Verdict:
    """[CP20 Appendix A]: the constant part of h for a = (0, 0), b = (3, 4) and monomials 1, x_1, z_1.

    Constants that are written down are compared where the library's symbolic matrices agree with the integral.
    """
    a, b = np.zeros(2), np.array([3.0, 4.0])
    x, y = rng.uniform(a, b), rng.uniform(a, b)
    gamma, delta = direct.exponents(2, 1)
    names = [tuple(np.append(g, d)) for g, d in zip(gamma, delta, strict=True)]
    pick = [names.index(e) for e in ((0, 0, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0))]
    exact = np.zeros((3, 3))
    error = np.zeros((3, 3))
    for i, row in enumerate(pick):
        for j, column in enumerate(pick):
            unit = np.zeros((10, 10))
            unit[row, column] = unit[row, column + 5] = unit[row + 5, column] = unit[row + 5, column + 5] = 1.0
            value = direct.integral(Case(unit, a, b, 1), x, y)
            exact[i, j], error[i, j] = value.value, value.error
    agreed(exact, appendix_by_the_library(x, y), float(error.max()) + 8.0 * EPS * float(exact.max()))
    printed = last_map(x, y)
    where = np.unravel_index(int(np.argmax(np.abs(printed - exact) - error)), (3, 3))
    tolerance = float(error[where] + 8.0 * EPS * abs(printed[where]))
    witness = {"x": x, "y": y, "printed": printed, "exact": exact, "entry": np.array(where)}
    return Verdict(float(abs(printed - exact)[where]), tolerance, 1, witness)


def appendix_printed(x: Array, y: Array) -> Array:
    return np.array([[12, 12 * y[0], 36], [12 * x[0], 12 * x[0] * y[0], 36 * x[0]], [36, 36 * y[0], 108]])


def appendix_corrected(x: Array, y: Array) -> Array:
    return np.array([[12, 12 * y[0], 18], [12 * x[0], 12 * x[0] * y[0], 18 * x[0]], [18, 18 * y[0], 36]])


def appendix_by_the_library(x: Array, y: Array) -> Array:
    """The sum g + t + t~ + h, which is the integral over the whole box, from the library's symbolic matrices."""
    basis = monomial_basis(2, 1)
    values = symbolic_values(basis, Case(np.zeros((10, 10)), np.zeros(2), np.array([3.0, 4.0]), 1), x, y)
    rows = np.hstack([basis.gamma, basis.delta]).tolist()
    pick = [rows.index(e) for e in ([0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0])]
    return np.asarray(sum(value[np.ix_(pick, pick)] for value in values.values()))


def appendix_transposed(x: Array, y: Array) -> Array:
    return appendix_corrected(x, y).T
