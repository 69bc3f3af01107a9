"""Rigorous bounds, computed again in ball arithmetic; :mod:`proofs_check.exact.cases` runs it on random problems.

A :class:`RigorousGap` hands out the points it is made from. Here kernels, norms and losses are evaluated at these
points from their definitions, with 320 bits and a radius for every number (python-flint), and what the points have to
satisfy is checked on fractions. The value of the dual point must not be below `lower`, that of the functions not above
`upper`. Nothing of the library is used but the numbers it hands out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 320
Function = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, as plain numbers and definitions.

    `kernels` are functions of two points, of candidates; `products` the b_ij with
    ``k(x, y) = sum_ij P_ij b_ij(x, y)``.
    """

    X: Any
    Y: Any
    weights: Any
    loss: tuple[str, dict[str, float], bool]
    kernels: list[Function] | None = None
    normalize: str = "none"
    center: bool = False
    products: Callable[[Any, Any], Any] | None = None
    size: int = 0
    trace: float = 1.0
    is_equality: bool = False
    is_tessellated: bool = False


# -- kernels from their definitions --------------------------------------------------------------------


def _squares(x: Any, y: Any) -> Any:
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), arb(0))


def gaussian(rate: float) -> Function:
    return lambda x, y: (-arb(rate) * _squares(x, y)).exp()


def polynomial(degree: int, offset: float) -> Function:
    return lambda x, y: (sum((a * b for a, b in zip(x, y, strict=True)), arb(0)) + arb(offset)) ** degree


def matern(order: int, length: float, is_tensor: bool = False) -> Function:
    """By the Bessel function, not by the closed form of half-integers."""
    nu = arb(order) - arb(0.5)

    def profile(squared: Any) -> Any:
        t = squared.sqrt() / arb(length)
        if not t > 0:
            return arb(1)
        return 2 ** (1 - nu) / nu.gamma() * t**nu * t.bessel_k(nu)

    def kernel(x: Any, y: Any) -> Any:
        if not is_tensor:
            return profile(_squares(x, y))
        value = arb(1)
        for a, b in zip(x, y, strict=True):
            value *= profile((a - b) ** 2)
        return value

    return kernel


def _exponents(n: int, total: int) -> list[tuple[int, ...]]:
    return [tuple(c.count(j) for j in range(n)) for c in combinations_with_replacement(range(n), total)]


def _power(x: Any, exponent: tuple[int, ...]) -> Any:
    value = arb(1)
    for a, k in zip(x, exponent, strict=True):
        value *= a**k
    return value


def tessellated_products(n: int, degree: int, z_degree: int, lower: Any, upper: Any) -> tuple[Any, int]:
    """``b_ij(x, y)``: integrals of ``N_i(z, x) N_j(z, y)``, split where both indicators are constant."""
    basis = [(g, e) for total in range(degree + 1) for t in range(min(total, z_degree) + 1)
             for g in _exponents(n, t) for e in _exponents(n, total - t)]  # fmt: skip
    a, b = ([arb(v) for v in side] for side in (lower, upper))

    def above(corner: Any, power: tuple[int, ...]) -> Any:
        value = arb(1)
        for u, v, k in zip(corner, b, power, strict=True):
            value *= (v ** (k + 1) - u ** (k + 1)) / (k + 1)
        return value

    def products(x: Any, y: Any) -> Any:
        both, q = [arb.max(u, v) for u, v in zip(x, y, strict=True)], len(basis)
        table = [[arb(0)] * (2 * q) for _ in range(2 * q)]
        for i, (g, d) in enumerate(basis):
            for j, (h, e) in enumerate(basis):
                power = tuple(u + v for u, v in zip(g, h, strict=True))
                factor = _power(x, d) * _power(y, e)
                inside, first, second, all_ = (above(corner, power) for corner in (both, x, y, a))
                table[i][j] = factor * inside
                table[i][q + j] = factor * (first - inside)
                table[q + i][j] = factor * (second - inside)
                table[q + i][q + j] = factor * (all_ - first - second + inside)
        return table

    return products, 2 * len(basis)


def monomial_products(n: int, degree: int) -> tuple[Any, int]:
    powers = [e for total in range(degree + 1) for e in _exponents(n, total)]
    return lambda x, y: [[_power(x, d) * _power(y, e) for e in powers] for d in powers], len(powers)


# -- both bounds at given points ------------------------------------------------------------------------


def _form(u: Any, K: Any, v: Any) -> Any:
    return sum((a * K[i, j] * b for i, a in enumerate(u) for j, b in enumerate(v)), arb(0))


def _matrix(kernel: Function, X: Any) -> Any:
    return arb_mat([[kernel(x, y) for y in X] for x in X])


def _normalized(K: Any, rule: str, center: bool) -> Any:
    m = K.nrows()
    P = arb_mat([[arb(int(i == j)) - arb(1) / m for j in range(m)] for i in range(m)])
    K = P * K * P if center else K
    if rule == "cosine":
        roots = [K[i, i].sqrt() if K[i, i] != 0 else arb(1) for i in range(m)]  # rows of length 0 are 0
        return arb_mat([[K[i, j] / (roots[i] * roots[j]) for j in range(m)] for i in range(m)])
    total = (P * K if rule == "variance" else K).trace()
    return K * {"none": arb(1), "trace": 1 / total}.get(rule, m / total)


def largest_eigenvalue(D: Any) -> Any:
    """A ball whose upper end is proven by pivots of ``t I - D``: Rayleigh quotients find it, nothing relies on them."""
    n = D.nrows()
    floats = np.array([[float(D[i, j].mid()) for j in range(n)] for i in range(n)])
    scale = float(np.abs(floats).max())
    if scale == 0.0:
        return arb(0)
    vector = arb_mat([[arb(float(v))] for v in np.linalg.eigh(floats / scale)[1][:, -1]])
    eye = arb_mat([[int(i == j) for j in range(n)] for i in range(n)])
    for _ in range(4):
        top = (vector.transpose() * D * vector)[0, 0] / (vector.transpose() * vector)[0, 0]
        try:
            vector = (D - eye * (top.mid() + abs(top.mid()) * arb(2) ** -100)).solve(vector).mid()
        except ZeroDivisionError:
            break
        vector = vector / max(abs(vector[i, 0]).mid() for i in range(n))
    for shift in range(-220, 0, 12):
        t = (top + arb(scale) * arb(2) ** shift).upper()
        if _pivots_are_positive(eye * t - D):
            return t
    raise ArithmeticError("the largest eigenvalue could not be enclosed")


def _pivots_are_positive(A: Any) -> bool:
    n = A.nrows()
    rows = [[A[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        if not rows[k][k] > 0:
            return False
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return True


def _loss_value(case: Case, k: int, i: int, g: Any) -> Any:
    """Loss of a value, without weight and C."""
    kind, parameters, _ = case.loss
    y = arb(float(case.Y[k, i]))
    if kind == "hinge":
        return arb.max(arb(0), 1 - y * g)
    if kind == "epsilon":
        return arb.max(arb(0), abs(y - g) - arb(parameters["epsilon"]))
    if kind == "squares":
        return (y - g) ** 2
    q = arb(parameters["quantile"])
    return arb.max(q * (y - g), (q - 1) * (y - g))


def _dual_value(case: Case, k: int, w: Sequence[Fraction]) -> Any:
    """The concave part of the dual, after checking on fractions that w is feasible."""
    kind, parameters, intercept = case.loss
    C, y = Fraction(parameters.get("C", 1.0)), [Fraction(float(v)) for v in case.Y[k]]
    weights = [Fraction(float(s)) for s in case.weights]
    if intercept and sum(w) != 0:
        raise ArithmeticError("the coefficients do not sum to 0")
    low, high = [-C * s for s in weights], [C * s for s in weights]
    if kind == "pinball":
        q = Fraction(parameters["quantile"])
        low, high = [(1 - q) * v for v in low], [q * v for v in high]
    if kind == "hinge":
        low = [v if t < 0 else Fraction(0) for v, t in zip(low, y, strict=True)]
        high = [v if t > 0 else Fraction(0) for v, t in zip(high, y, strict=True)]
    if kind == "squares":
        low, high = [Fraction(-(s > 0)) * 10**300 for s in weights], [Fraction(s > 0) * 10**300 for s in weights]
    if not all(a <= v <= b for a, v, b in zip(low, w, high, strict=True)):
        raise ArithmeticError("a coefficient is outside its box")
    value = sum(a * b for a, b in zip(y, w, strict=True))
    if kind == "epsilon":
        value -= Fraction(parameters["epsilon"]) * sum(abs(v) for v in w)
    if kind == "squares":
        value -= Fraction(parameters["lam"]) / 2 * sum(v * v / s for v, s in zip(w, weights, strict=True) if s > 0)
    return arb(value.numerator) / arb(value.denominator)


def _bounds(case: Case, evidence: Any) -> tuple[Any, Any]:
    """Values of the dual point and of the functions, as balls."""
    X = [[arb(float(v)) for v in x] for x in case.X]
    m = len(X)
    share = Fraction(float(evidence.share))
    duals = [[share * Fraction(float(v)) for v in row] for row in evidence.dual]
    V = [[arb(v.numerator) / arb(v.denominator) for v in row] for row in duals]
    W = [[arb(float(v)) for v in row] for row in evidence.coefficients]
    if case.kernels is not None:
        matrices = [_normalized(_matrix(kernel, X), case.normalize, case.center) for kernel in case.kernels]
        forms = [sum((_form(v, K, v) for v in V), arb(0)) for K in matrices]
        sigma = forms[0]
        for form in forms[1:]:
            sigma = arb.max(sigma, form)
        theta = [arb(float(v)) for v in evidence.theta]
        if not all(t >= 0 for t in theta):
            raise ArithmeticError("a weight is negative")
        K, grown = sum((K * t for K, t in zip(matrices, theta, strict=True)), arb_mat(m, m)), sum(theta, arb(0))
    else:
        sigma, K, grown = _of_matrix(case, evidence, X, V)
    scale = 2 * arb(case.loss[1]["lam"]) if case.loss[0] == "squares" else arb(1)
    constant = sum((_dual_value(case, k, w) for k, w in enumerate(duals)), arb(0))
    above = arb(0)
    for k, w in enumerate(W):
        values = [sum((K[i, j] * v for j, v in enumerate(w)), arb(0)) for i in range(m)]
        above += _objective(case, k, values, grown * _form(w, K, w), arb(float(evidence.multiples[k])))
    return scale * (constant - sigma / 2), above


def _of_matrix(case: Case, evidence: Any, X: Any, V: Any) -> tuple[Any, Any, Any]:
    """Support function, matrix and growth of the norm for a family with a matrix parameter."""
    m, q = len(X), case.size
    G = arb_mat([[arb(float(v)) for v in row] for row in evidence.theta])
    if case.is_tessellated:
        half = q // 2
        G = arb_mat([[G[i, c] + (G[half + i, c] if i < half else 0) for c in range(G.ncols())] for i in range(q)])
    P = G * G.transpose()
    assert case.products is not None
    b = [[case.products(x, y) for y in X] for x in X]
    K = arb_mat([[sum((P[i, j] * b[r][c][i][j] for i in range(q) for j in range(q)), arb(0))
                  for c in range(m)] for r in range(m)])  # fmt: skip
    D = [[sum((v[r] * v[c] * b[r][c][i][j] for v in V for r in range(m) for c in range(m)), arb(0))
          for j in range(q)] for i in range(q)]  # fmt: skip
    top = largest_eigenvalue(arb_mat([[(D[i][j] + D[j][i]) / 2 for j in range(q)] for i in range(q)]))
    grown = sum((P[i, i] for i in range(q)), arb(0)) / arb(case.trace)
    return arb(case.trace) * arb.max(arb(0), top), K, grown if case.is_equality else arb.max(arb(1), grown)


def _objective(case: Case, k: int, f: Any, norm: Any, s: Any) -> Any:
    """Objective of ``s f + b`` for the best b among all at which the objective has a kink, or the mean for squares."""
    kind, parameters, intercept = case.loss
    y, weights = ([arb(float(v)) for v in part] for part in (case.Y[k], case.weights))
    rest = [a - s * v for a, v in zip(y, f, strict=True)]
    shifts = [arb(0)]
    if intercept and kind == "squares":
        shifts = [sum((w * r for w, r in zip(weights, rest, strict=True)), arb(0)) / sum(weights, arb(0))]
    elif intercept:
        epsilon = arb(parameters.get("epsilon", 0.0))
        shifts = [r + sign * epsilon for r in rest for sign in (-1, 1)]
    price = arb(parameters["lam"]) if kind == "squares" else arb(0.5)
    values = [
        arb(parameters.get("C", 1.0))
        * sum((w * _loss_value(case, k, i, s * f[i] + b) for i, w in enumerate(weights)), arb(0))
        for b in shifts
    ]
    return price * s * s * norm + min(values, key=lambda value: value.mid())


def violation(case: Case, gap: Any) -> float:
    """By how much the two numbers are wrong, relative to the larger; 0 when they are proven."""
    ctx.prec = BITS
    below, above = _bounds(case, gap.evidence)
    size = max(abs(gap.upper), abs(gap.lower), 1e-300)
    excess = [0.0 if arb(gap.lower) <= below else float((arb(gap.lower) - below).upper()),
              0.0 if above <= arb(gap.upper) else float((above - arb(gap.upper)).upper())]  # fmt: skip
    return max(excess) / size
