"""Values and diagonals of every kernel in the table `KERNELS`, against formulas that are written down once more here.

Nothing here calls a kernel of the library: pairs of points one by one, the Bessel function for Matern kernels, the
defining integral for tessellated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import kv

from convexkernels import kernels as k
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, gram_and_error
from convexkernels.kernels import KERNELS
from proofs_check.claim import Claim
from proofs_check.hierarchical.direct import Node, evaluate
from proofs_check.tessellated import direct
from proofs_check.tessellated.formulas import library_of, without_z

Generator = np.random.Generator
Formula = Callable[[Array, Array], float]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Values:
    """A kernel of the library with random parameters, and the formula of its values.

    Attributes
    ----------
    draw : callable
        ``draw(rng, n)`` returns the kernel and the formula.
    wrong : callable
        ``wrong(formula, x, y)``, nearly the formula: false on purpose.
    """

    draw: Callable[[Generator, int], tuple[Any, Formula]]
    wrong: Callable[[Formula, Array, Array], float] | None = None


def measure_values(subject: Values, rng: Generator) -> Verdict:
    """Every entry of the matrix between two tables, of the matrix of one table, and of the diagonal."""
    n = int(rng.integers(1, 4))
    kernel, formula = subject.draw(rng, n)
    X, Y = rng.uniform(0.05, 0.95, (5, n)), rng.uniform(0.05, 0.95, (4, n))
    X[1] = X[0]
    Y[0] = X[2]

    def value(x: Array, y: Array) -> float:
        return formula(x, y) if subject.wrong is None else subject.wrong(formula, x, y)

    whole = np.vstack([X, Y])
    expected = np.array([[value(x, y) for y in whole] for x in whole])
    _, error = gram_and_error(kernel, whole)
    apart = [
        np.abs(kernel(X, Y) - expected[:5, 5:]).max(),
        np.abs(kernel(whole) - expected).max(),
        np.abs(kernel.diag(whole) - np.diag(expected)).max(),
    ]
    # Entries carry the error that is seen when they are computed in other ways; the formula rounds as often.
    tolerance = 32.0 * (error + EPS * float(np.abs(expected).max()))
    witness = {"kernel": repr(kernel), "X": whole, "values": expected, "apart": np.array(apart)}
    return Verdict(float(max(apart)), tolerance, 1, witness)


# ---- formulas


def matern(order: float, t: float) -> float:
    """``2^(1 - nu) / Gamma(nu) t^nu K_nu(t)``, nu = order - 1/2; 1 at 0."""
    nu = order - 0.5
    return 1.0 if t < 1e-150 else float(2.0 ** (1.0 - nu) / gamma_function(nu) * t**nu * kv(nu, t))


def _matern(order: float | None) -> Callable[[Generator, int], tuple[Any, Formula]]:
    def draw(rng: Generator, n: int) -> tuple[Any, Formula]:
        s = float(rng.uniform(0.7, 4.5)) if order is None else order
        length, smoothing = float(rng.uniform(0.3, 2.0)), float(rng.choice([0.0, 0.3]))

        def formula(x: Array, y: Array) -> float:
            t = np.sqrt(np.sum((x - y) ** 2) / length**2 + smoothing**2)
            return matern(s, float(t)) / matern(s, smoothing)

        return k.Matern(s, length, smoothing), formula

    return draw


def _tensor_matern(rng: Generator, n: int) -> tuple[Any, Formula]:
    s, length = float(rng.choice([1.0, 2.0, 3.0, 1.7])), float(rng.uniform(0.3, 2.0))
    smoothing = float(rng.choice([0.0, 0.3]))

    def formula(x: Array, y: Array) -> float:
        distances = [float(np.sqrt(((a - b) / length) ** 2 + smoothing**2)) for a, b in zip(x, y, strict=True)]
        return float(np.prod([matern(s, t) / matern(s, smoothing) for t in distances]))

    return k.TensorMatern(s, length, smoothing), formula


def _stumps(rng: Generator, n: int) -> tuple[Any, Formula]:
    """By counting the stumps that both points pass, at the midpoints of a grid on which all ranks lie."""
    values = np.round(rng.random((7, n)), 1)

    def formula(x: Array, y: Array) -> float:
        quantiles = (np.arange(28) + 0.5) / 28.0
        ranks = [
            [(np.mean(column < t) + np.mean(column <= t)) / 2 for column, t in zip(values.T, z, strict=True)]
            for z in (x, y)
        ]
        passed = [[(quantiles < rank) for rank in point] for point in ranks]
        return float(np.mean([a & b for a, b in zip(*passed, strict=True)]))

    return k.Stumps(values), formula


def _beside_ranks(rng: Generator, n: int) -> tuple[Any, Formula]:
    """Ranks by integrating the slope of the distribution function, entry by entry."""
    values = np.round(rng.random((7, n)), 1)

    def rank(column: Array, t: float) -> float:
        known = sorted(set(column.tolist()))
        shares = [(float(np.mean(column < s)) + float(np.mean(column <= s))) / 2 for s in known]
        total = shares[0]
        for a, b, low, high in zip(known, known[1:], shares, shares[1:], strict=False):
            total += (high - low) * min(max((t - a) / (b - a), 0.0), 1.0)
        return 2.0 * total - 1.0

    def formula(x: Array, y: Array) -> float:
        seen = [(c, s, t) for c, s, t in zip(values.T, x, y, strict=True) if len(set(c.tolist())) > 2]
        ranks = sum((rank(c, s) - rank(c, t)) ** 2 for c, s, t in seen)
        return float(np.exp(-0.8 * (float(np.sum((x - y) ** 2)) + ranks)))

    return k.BesideRanks(k.Gaussian(0.8), values), formula


def _gauss(rate: float) -> Formula:
    return lambda x, y: float(np.exp(-rate * sum((a - b) ** 2 for a, b in zip(x, y, strict=True))))


def _gaussian(rng: Generator, n: int) -> tuple[Any, Formula]:
    rate = float(np.exp(rng.uniform(-2.0, 3.0)))
    return k.Gaussian(rate), _gauss(rate)


def _constant(rng: Generator, n: int) -> tuple[Any, Formula]:
    value = float(rng.uniform(0.5, 3.0))
    return k.Constant(value), lambda x, y: value


def _linear(rng: Generator, n: int) -> tuple[Any, Formula]:
    return k.Linear(), lambda x, y: float(x @ y)


def _polynomial(rng: Generator, n: int) -> tuple[Any, Formula]:
    degree, offset = int(rng.integers(1, 5)), float(rng.uniform(0.0, 2.0))
    return k.Polynomial(degree, offset), lambda x, y: (float(x @ y) + offset) ** degree


def _two(rng: Generator, n: int) -> tuple[Any, Formula, Any, Formula]:
    return *_gaussian(rng, n), *_polynomial(rng, n)


def _sum(rng: Generator, n: int) -> tuple[Any, Formula]:
    first, f, second, g = _two(rng, n)
    return first + second, lambda x, y: f(x, y) + g(x, y)


def _product(rng: Generator, n: int) -> tuple[Any, Formula]:
    first, f, second, g = _two(rng, n)
    return first * second, lambda x, y: f(x, y) * g(x, y)


def _scaled(rng: Generator, n: int) -> tuple[Any, Formula]:
    kernel, f = _polynomial(rng, n)
    scale = float(rng.uniform(0.1, 3.0))
    return k.Scaled(scale, kernel), lambda x, y: scale * f(x, y)


def _weighted_sum(rng: Generator, n: int) -> tuple[Any, Formula]:
    first, f, second, g = _two(rng, n)
    a, b = rng.uniform(0.1, 2.0, 2)
    return k.WeightedSum([first, second, k.Linear()], [a, b, 0.0]), lambda x, y: float(a * f(x, y) + b * g(x, y))


def _on_columns(rng: Generator, n: int) -> tuple[Any, Formula]:
    kernel, f = _polynomial(rng, n)
    columns = [int(column) for column in rng.integers(0, n, 2)]
    return k.OnColumns(kernel, columns), lambda x, y: f(x[columns], y[columns])


def _rescaled(rng: Generator, n: int) -> tuple[Any, Formula]:
    kernel, f = _polynomial(rng, n)
    offset, scale = rng.uniform(-1.0, 1.0, n), rng.uniform(0.3, 3.0, n)
    low, high = rng.uniform(0.0, 0.3, n), rng.uniform(0.7, 1.0, n)

    def features(x: Array) -> Array:
        return (np.where(x < low, low, np.where(x > high, high, x)) - offset) / scale

    return k.Rescaled(kernel, offset, scale, (low, high)), lambda x, y: f(features(x), features(y))


def _normalized(rng: Generator, n: int) -> tuple[Any, Formula]:
    kernel, f = _polynomial(rng, n)
    return k.Normalized(kernel), lambda x, y: f(x, y) / float(np.sqrt(f(x, x) * f(y, y)))


def _centered(rng: Generator, n: int) -> tuple[Any, Formula]:
    kernel, f = _gaussian(rng, n)
    Z = rng.uniform(0.0, 1.0, (6, n))
    grand = float(np.mean([f(z, u) for z in Z for u in Z]))

    def formula(x: Array, y: Array) -> float:
        return f(x, y) - float(np.mean([f(x, z) + f(z, y) for z in Z])) + grand

    return k.Centered(kernel, Z), formula


def _localized(rng: Generator, n: int) -> tuple[Any, Formula]:
    centers, lams = rng.uniform(0.0, 1.0, (3, n)), rng.uniform(0.2, 3.0, 3)
    drawn = [_gaussian(rng, n) for _ in range(3)]

    def cell(x: Array) -> int:
        return int(np.argmin([np.sum((x - center) ** 2) for center in centers]))

    def formula(x: Array, y: Array) -> float:
        j = cell(x)
        return drawn[j][1](x, y) / lams[j] if j == cell(y) else 0.0

    return k.Localized(centers, [kernel for kernel, _ in drawn], lams), formula


def _generalized_polynomial(rng: Generator, n: int) -> tuple[Any, Formula]:
    degree = int(rng.integers(0, 3))
    # Graded, powers of earlier features first: the order of the library's monomials.
    rows = sorted(
        {tuple(row[n:]) for row in np.hstack(direct.exponents(n, degree)).astype(int).tolist() if sum(row[:n]) == 0},
        key=lambda e: (sum(e), tuple(-power for power in e)),
    )
    G = rng.standard_normal((len(rows), len(rows)))
    P = G @ G.T
    center, scale = rng.uniform(-1.0, 1.0, n), rng.uniform(0.5, 2.0, n)

    def features(x: Array) -> Array:
        return np.array([np.prod(((x - center) / scale) ** np.array(row)) for row in rows])

    kernel = k.GeneralizedPolynomialKernel(P, degree, center, scale)
    return kernel, lambda x, y: float(features(x) @ P @ features(y))


def tessellated_pair(rng: Generator, n: int, degree: int, z_degree: int | None) -> tuple[Any, direct.Case]:
    """The library's kernel and the same kernel for the direct integral, entries of other monomials being 0."""
    case = direct.random_case(rng, n, degree)
    case = case if z_degree is None else without_z(case, z_degree)
    case = direct.Case(case.P, np.full(n, -0.2), rng.uniform(1.0, 1.5, n), degree)
    return library_of(case, z_degree), case


def _tessellated(z_degree: int | None) -> Callable[[Generator, int], tuple[Any, Formula]]:
    def draw(rng: Generator, n: int) -> tuple[Any, Formula]:
        kernel, case = tessellated_pair(rng, min(n, 2), int(rng.integers(0, 3)), z_degree)
        return k.OnColumns(kernel, list(range(min(n, 2)))), lambda x, y: direct.integral(case, x[:2], y[:2]).value

    return draw


def _nystrom(rng: Generator, n: int) -> tuple[Any, Formula]:
    gamma = float(rng.uniform(5.0, 10.0))
    L = np.array([0.1, 0.5, 0.9])[:, None] + rng.uniform(-0.1, 0.1, (3, n))

    def f(x: Array, y: Array) -> float:
        return float(np.exp(-gamma * np.sum((x - y) ** 2)))

    inverse = np.linalg.inv([[f(a, b) for b in L] for a in L])
    kernel = k.Nystrom(k.Gaussian(gamma), L)
    return kernel, lambda x, y: float(np.array([f(x, a) for a in L]) @ inverse @ np.array([f(a, y) for a in L]))


def _nystrom_by_reference(rng: Generator, n: int) -> tuple[Any, Formula]:
    """Coefficients minimize ``u'Fu - 2 u'F_x`` subject to ``sum u = 1``: a bordered system."""
    gamma, c = float(rng.uniform(5.0, 10.0)), float(rng.uniform(0.5, 1.5))
    L = np.array([0.1, 0.5, 0.9])[:, None] + rng.uniform(-0.1, 0.1, (3, n))

    def f(x: Array, y: Array) -> float:
        return float(np.exp(-gamma * np.sum((x - y) ** 2)))

    def u(x: Array) -> Array:
        bordered = np.ones((4, 4))
        bordered[:3, :3], bordered[3, 3] = [[f(a, b) for b in L] for a in L], 0.0
        return np.linalg.solve(bordered, np.append([f(x, a) for a in L], 1.0))[:3]

    K = np.array([[(a @ b + c) ** 2 for b in L] for a in L])
    return k.Nystrom(k.Polynomial(2, c), L, k.Gaussian(gamma)), lambda x, y: float(u(x) @ K @ u(y))


def _inhomogeneous(rng: Generator, n: int) -> tuple[Any, Formula]:
    w, width = rng.uniform(0.3, 2.0, n), float(rng.uniform(0.5, 2.0))
    return k.HierarchicalGaussian(w, gamma=width), lambda x, y: float(np.exp(-np.sum((w * (x - y) / width) ** 2)))


def _hierarchical(rng: Generator, n: int) -> tuple[Any, Formula]:
    first, other, top = rng.uniform(0.3, 2.0, n), rng.uniform(0.3, 2.0, 1), rng.uniform(0.3, 1.5, 2)
    width = float(rng.uniform(0.5, 2.0))
    node = Node(top, children=[Node(first, np.arange(n)), Node(other, np.array([n - 1]))], gamma=width)
    children = [k.HierarchicalGaussian(first), k.HierarchicalGaussian(other, features=[n - 1])]
    return k.HierarchicalGaussian(top, children, gamma=width), lambda x, y: float(evaluate(node, x, y))


def _concatenated(rng: Generator, n: int) -> tuple[Any, Formula]:
    outer, f = _gaussian(rng, n)
    inner, g = _polynomial(rng, n)
    Z, c = rng.uniform(0.0, 1.0, (3, n)), 0.1 * rng.standard_normal((3, 2))

    def image(x: Array) -> Array:
        return np.array([g(z, x) for z in Z]) @ c

    return k.Concatenated(outer, [k.KernelMap(inner, Z, c)]), lambda x, y: f(image(x), image(y))


def _spectral(phases: bool) -> Callable[[Generator, int], tuple[Any, Formula]]:
    def draw(rng: Generator, n: int) -> tuple[Any, Formula]:
        D = 6
        u, v = rng.normal(0.5, 2.0, (n, D)), rng.normal(-0.5, 1.0, (n, D))
        second = None if rng.random() < 0.3 else v
        other = u if second is None else v
        center = None if rng.random() < 0.5 else rng.normal(0.0, 1.0, n)
        origin = np.zeros(n) if center is None else center
        if phases:
            b = rng.uniform(0.0, 2.0 * np.pi, D)
            b2 = rng.uniform(0.0, 2.0 * np.pi, D) if second is not None and rng.random() < 0.5 else None
            kernel = k.Spectral(u, second, b, b2, center=center)

            def phi(x: Array) -> Array:
                x = x - origin
                return (np.cos(x @ u + b) + np.cos(x @ other + (b if b2 is None else b2))) / np.sqrt(2.0 * D)

            return kernel, lambda x, y: float(phi(x) @ phi(y))

        def cosines(x: Array, y: Array) -> float:
            x, y = x - origin, y - origin
            total = (
                np.cos(x @ u - y @ other) + np.cos(x @ other - y @ u) + np.cos((x - y) @ u) + np.cos((x - y) @ other)
            )
            return float(total.sum()) / (4.0 * D)

        return k.Spectral(u, second, center=center), cosines

    return draw


def _stacked(rng: Generator, n: int) -> tuple[Any, Formula]:
    """The features psi of the features psi of the points."""
    layers = [(rng.normal(0.5, 2.0, (width, D)), rng.normal(-0.5, 1.0, (width, D))) for width, D in ((n, 4), (8, 6))]

    def psi(x: Array) -> Array:
        for u, v in layers:
            sums = [np.cos(x @ u) + np.cos(x @ v), np.sin(x @ u) + np.sin(x @ v)]
            x = np.concatenate(sums) / np.sqrt(4.0 * u.shape[1])
        return x

    return k.Spectral(*layers[1], inner=k.Spectral(*layers[0])), lambda x, y: float(psi(x) @ psi(y))


FORMULAS: dict[str, Callable[[Generator, int], tuple[Any, Formula]]] = {
    "constant": _constant,
    "gaussian": _gaussian,
    "linear": _linear,
    "polynomial": _polynomial,
    "sum": _sum,
    "product": _product,
    "scaled": _scaled,
    "weighted_sum": _weighted_sum,
    "generalized_polynomial": _generalized_polynomial,
    "tessellated": _tessellated(None),
    "tessellated_no_z": _tessellated(0),
    "on_columns": _on_columns,
    "rescaled": _rescaled,
    "normalized": _normalized,
    "nystrom": _nystrom,
    "nystrom_by_reference": _nystrom_by_reference,
    "centered": _centered,
    "stumps": _stumps,
    "beside_ranks": _beside_ranks,
    "localized": _localized,
    "matern": _matern(None),
    "tensor_matern": _tensor_matern,
    "inhomogeneous_gaussian": _inhomogeneous,
    "hierarchical_gaussian": _hierarchical,
    "concatenated": _concatenated,
    "spectral": _spectral(phases=False),
    "spectral_shared_phase": _spectral(phases=True),
    "spectral_stacked": _stacked,
}


def slightly_off(formula: Formula, x: Array, y: Array) -> float:
    """One part in a million more, and only on pairs that are not the same point."""
    return formula(x, y) * (1.0 if (x == y).all() else 1.0 + 1e-6) + (0.0 if (x == y).all() else 1e-7)


def slightly_off_diagonal(formula: Formula, x: Array, y: Array) -> float:
    return formula(x, y) + (1e-6 if (x == y).all() else 0.0)


def values_claims(paper: str) -> list[Claim]:
    """One claim per kernel of the table, and one per whole order of the Matern kernel."""
    drawn = {name: FORMULAS[name] for name in KERNELS}
    drawn |= {f"matern_order_{order}": _matern(float(order)) for order in (1, 2, 3, 4)}
    claims = []
    for index, (name, draw) in enumerate(drawn.items()):
        subject = Values(draw)
        claims.append(
            Claim(
                f"values-{name.replace('_', '-')}",
                f"Values and diagonal of the kernel '{name}' are those of its formula, written down once more.",
                paper,
                "table KERNELS",
                measure_values,
                subject,
                replace(subject, wrong=(slightly_off, slightly_off_diagonal)[index % 2]),
                trials=2 if name.startswith("tessellated") else 6,
            )
        )
    return claims
