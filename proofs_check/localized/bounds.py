"""Checks behind the claims about bounds for localized SVMs: covers, entropy numbers, approximation, rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import comb, gammaln
from scipy.stats import norm

from convexkernels import Cells, CellSelection, Gaussian, Localized, VoronoiCover, VoronoiRidge, farthest_first
from convexkernels.arrays import Array
from convexkernels.bounds import (
    CellNumbers,
    CellSchedule,
    cell_nets,
    cell_schedule,
    cells_risk_bound,
    joined_entropy,
    learning_rate,
    local_entropy,
    net_constants,
    net_gap,
    rate_gap,
)
from convexkernels.checking import Verdict

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def _apart(claimed: Any, exact: Any, witness: dict[str, Any], roundings: float = 256.0) -> Verdict:
    """The relative distance of numbers that have to agree up to rounding."""
    claimed, exact = np.asarray(claimed, dtype=np.float64), np.asarray(exact, dtype=np.float64)
    distance = float(np.max(np.abs(claimed - exact) / np.abs(exact)))
    return Verdict(distance, roundings * EPS, 1, {**witness, "claimed": claimed, "exact": exact})


# ---- covers


def measure_cover_numbers(bounds: Callable[..., tuple[float, float]], rng: Generator) -> Verdict:
    """Numbers of intervals that cover an interval, which are known, and of balls that a traversal finds [MS16 Lemma 1].

    Centers of the traversal are farther apart than the radius; that many are at least as many as a cover needs. From
    one end of an interval, and with a radius just below a half, a quarter, an eighth of it, they are as many as can be.
    The lower bound is the ratio of the volumes of the balls.
    """
    c, r, halvings = 1.0, float(rng.uniform(0.06, 0.9)), int(rng.integers(1, 4))
    X = np.linspace(-c, c, 1001)[:, None]
    d = int(rng.integers(2, 4))
    Z = rng.standard_normal((1000, d))
    Z *= (rng.uniform(0.0, 1.0, 1000) ** (1.0 / d) * c / np.linalg.norm(Z, axis=1))[:, None]
    excess = len(farthest_first(Z, radius=max(r, 0.3)).centers) - bounds(max(r, 0.3), d, c=c)[1]
    for radius in (r, 0.999 * 2.0 * c / 2**halvings):
        low, high = bounds(radius, 1, c=c)
        line = float(np.ceil(c / radius))
        excess = max(excess, low - line, line - high, len(farthest_first(X, radius=radius, start=0).centers) - high)
    witness = {"r": r, "d": d, "halvings": halvings}
    enough = Verdict(max(0.0, excess), 64.0 * EPS * (1.0 + 2.0 / r) ** d, 1, witness)
    volumes = [log_volume(c, d) - log_volume(r, d), log_volume(c, 1) - log_volume(r, 1)]
    least = _apart([bounds(r, d, c=c)[0], bounds(r, 1, c=c)[0]], np.exp(volumes), witness)
    return Verdict.worst([enough, least])


def log_volume(radius: float, d: int) -> float:
    """Logarithm of the volume ``pi^(d / 2) r^d / Gamma(d / 2 + 1)`` of a ball."""
    return float(0.5 * d * np.log(np.pi) + d * np.log(radius) - gammaln(0.5 * d + 1.0))


def measure_interior(radii: Callable[[Array], Array], rng: Generator) -> Verdict:
    """Balls of these radii are inside the library's cells, and any larger ones are not [MS16 Lemma 8, Example 1].

    The violation counts points just inside of a ball that another cell has, and balls that could be larger.
    """
    centers = rng.uniform(-1.0, 1.0, (8, 2))
    cover, wrong = VoronoiCover(centers), 0
    angles = np.linspace(0.0, 2.0 * np.pi, 721)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for j, radius in enumerate(radii(centers)):
        others = np.delete(centers, j, axis=0)
        towards = others[np.argmin(((others - centers[j]) ** 2).sum(axis=1))] - centers[j]
        around = np.vstack([circle, towards / np.linalg.norm(towards)])
        wrong += int((cover.cells(centers[j] + (1.0 - 1e-6) * radius * around) != j).any())
        wrong += int((cover.cells(centers[j] + (1.0 + 1e-6) * radius * around) == j).all())
    return Verdict(float(wrong), 0.0, 1, {"centers": centers})


def measure_joined_cover(join: Callable[..., tuple[float, float]], rng: Generator) -> Verdict:
    """Products of covers of two cells cover the unit ball of their direct sum [MS16 Lemma 10].

    Each cell is one point of mass s_j, so that its unit ball is the interval up to ``sqrt(s_j k(x_j, x_j))``, k being
    the library's joined kernel: covered by so many intervals of length 2 eps_j. The ball of the sum is an ellipse.
    """
    points, lam = np.array([[0.25, 0.5], [0.75, 0.5]]), np.exp(rng.uniform(-2.0, 2.0, 2))
    masses = rng.dirichlet([2.0, 2.0])
    ends = np.sqrt(masses * Localized(points, [Gaussian(3.0), Gaussian(4.0)], lam).diag(points))
    numbers = rng.integers(6, 12, 2)
    eps = ends / numbers
    axes = [end * (2.0 * np.arange(k) + 1.0 - k) / k for end, k in zip(ends, numbers, strict=True)]
    radius, number = join(eps, numbers)
    # A fine grid of the ellipse; the farthest points of the cover's rectangles are on it.
    fine = [np.linspace(-end, end, 12 * k + 1) for end, k in zip(ends, numbers, strict=True)]
    grid = np.stack(np.meshgrid(*fine, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = grid[((grid / ends) ** 2).sum(axis=1) <= 1.0]
    squares = sum(np.abs(grid[:, [k]] - axes[k]).min(axis=1) ** 2 for k in range(2))
    excess = max(0.0, float(np.sqrt(np.max(squares))) - radius) + abs(number - float(numbers.prod()))
    return Verdict(excess, 64.0 * EPS * float(ends.sum()), 1, {"ends": ends, "numbers": numbers, "radius": radius})


# ---- entropy numbers


def measure_joined_entropy(bound: Callable[..., float], rng: Generator) -> Verdict:
    """The bound follows from (20), Lemma 10 and (21), and holds where entropy numbers are known [MS16 Theorem 11].

    Known are those of m cells of one point each: intervals of length 2 s_j have ``e_i = s_j 2^(1 - i)``, and the first
    entropy number of the joined ball, an ellipsoid, is its longest semiaxis.
    """
    m, p, i = int(rng.integers(2, 6)), float(rng.uniform(0.2, 0.8)), int(rng.integers(1, 9))
    s, lam, q = rng.uniform(0.2, 1.0, m), np.exp(rng.uniform(-1.0, 1.0, m)), 2.0 * p
    k = np.arange(1.0, 60.0)
    a = s * float((2.0 ** (1.0 - k) * k ** (1.0 / q)).max())
    # The step to balls of radius 1 / sqrt(lam_j), (20) at eps / sqrt m in every cell, and (21) for the sum.
    sum_of_logs = np.sum(np.log(4.0) * (2.0 * a / np.sqrt(lam) * np.sqrt(m)) ** q)
    chained = 3.0 ** (1.0 / q) * float(sum_of_logs) ** (1.0 / q) * i ** (-1.0 / q)
    claimed, witness = bound(a, lam, p=p, i=i), {"p": p, "i": i, "a": a, "lam": lam}
    known = Verdict(max(0.0, float((s / np.sqrt(lam)).max()) - bound(a, lam, p=p)), 64.0 * EPS, 1, witness)
    return Verdict.worst([_apart(claimed, chained, witness, 2048.0), known])


def estimation_term(cells: CellNumbers, p: float) -> float:
    """The third term of Theorem 4 times n, of the library: the others taken away from the whole."""
    n, J = cells.n, np.zeros(len(cells.lams), dtype=bool)
    J[0] = True
    whole = cells_risk_bound(cells, alpha=1.0, p=p, tau=1.0, constant=1.0, region=J).value
    width = cells.widths[0]
    return float(n * (whole - cells.lams[0] * width**-cells.d - width**2) - 1.0)


def measure_estimation(entropy: Callable[..., float], rng: Generator) -> Verdict:
    """Theorems 11 and 12 give the third term of Theorem 4: they agree where all cells are alike [MS16 Theorem 12].

    With ``m r^d = 3^d`` and equal cells, ``m^p sum_j lam_j^-p a_j^(2p)`` is ``3^d r^(2p) (sum ..)^p``.
    """
    d, p, m = int(rng.integers(1, 4)), float(rng.uniform(0.3, 0.8)), int(rng.integers(30, 60))
    r = 3.0 * m ** (-1.0 / d)
    r, m = (r, m) if r <= 1.0 else (1.0, 3**d)
    lam, width = float(np.exp(rng.uniform(-6.0, -4.0))), r * float(rng.uniform(0.3, 0.9))
    a = np.full(m, entropy(1.0 / m, r, width, d, p=p, constant=1.0))
    factor = (3.0 * np.log(4.0)) * 2.0 ** (2.0 * p)
    from_entropy = joined_entropy(a, np.full(m, lam), p=p) ** (2.0 * p) / factor
    # One row: what is subtracted from the whole is small against the term.
    cells = CellNumbers(np.full(m, lam), np.full(m, width), np.full(m, 1.0 / m), r, 1, d)
    witness = {"d": d, "p": p, "m": m, "r": r, "lam": lam, "width": width}
    return _apart(from_entropy, 3.0**d * estimation_term(cells, p), witness, 1e5)


# ---- the approximation by convolutions


def measure_convolution(constant: Callable[..., float], rng: Generator) -> Verdict:
    """The constant is what its proof integrates, and the bound holds for cosines [MS16 (26), Theorem 13].

    ``K_j * cos(u'x)`` is ``cos(u'x) sum_l (s over l) (-1)^(1-l) exp(-l^2 w_j^2 |u|^2 / 8)``, and the s-th modulus of
    smoothness of a cosine is at most ``min(|u| t, 2)^s``: its seminorm is at most ``2^(s - alpha) |u|^alpha``.
    """
    alpha, q, d = float(rng.uniform(1.0, 3.0)), float(rng.uniform(1.0, 3.0)), int(rng.integers(1, 4))
    s, r = int(alpha) + 1, q * alpha
    # E |h_1|^(2r) d^r over the Gaussian of variance 1/4: the last step of the proof, by quadrature.
    moment = 2.0 * quad(lambda t: t ** (2.0 * r) * norm.pdf(t, scale=0.5), 0.0, np.inf, epsabs=0.0, epsrel=1e-12)[0]
    witness = {"alpha": alpha, "q": q, "d": d}
    constants = [constant(alpha, d, q=q), constant(alpha, d, q=q, norm=2.0)]
    integral = _apart(constants, np.sqrt(d**r * moment) * np.array([1.0, 2.0**q]), witness, 1e-9 / EPS)
    u, widths = rng.normal(0.0, 2.0, d), np.exp(rng.uniform(-3.0, 0.0, 3))
    X = rng.uniform(-1.0, 1.0, (60, d))
    cells, length = rng.integers(0, 3, 60), float(np.linalg.norm(u))
    ways = np.arange(1.0, s + 1.0)
    damped = np.exp(-0.125 * np.outer(widths**2, ways**2) * length**2) @ (comb(s, ways) * (-1.0) ** (1.0 - ways))
    left = float(np.mean(np.abs(np.cos(X @ u) * (damped[cells] - 1.0)) ** q))
    spread = (widths.max() / widths.min()) ** d * widths.max() ** r
    right = constant(alpha, d, q=q, norm=2.0 ** (s - alpha) * length**alpha) * spread
    return Verdict.worst([integral, Verdict(max(0.0, left - right), 64.0 * EPS * right, 1, {**witness, "u": u})])


# ---- rates


def equal_cells(schedule: CellSchedule, n: float, d: int) -> CellNumbers:
    """One cell that stands for all m of them: cells are equal, and only sums over them matter."""
    return CellNumbers(np.array([schedule.lam]), np.array([schedule.width]), np.ones(1), schedule.radius, int(n), d)


def bracket(schedule: CellSchedule, n: float, d: int, alpha: float, p: float) -> float:
    """Theorem 4 without its constant for ``3^d r^-d`` equal cells."""
    cells, m = equal_cells(schedule, n, d), 3.0**d * schedule.radius**-d
    value = cells_risk_bound(cells, alpha=alpha, p=p, tau=1.0, constant=1.0).value
    return float(value + (m - 1.0) * schedule.lam * schedule.width**-d)


def measure_rate(schedule: Callable[..., CellSchedule], rng: Generator) -> Verdict:
    """The schedule (16) to (18) makes the bound fall as fast as Theorem 5 says, and no faster [MS16 Theorem 5].

    The slope of log bound against log n, far out, is minus the rate, plus the gap where that is positive.
    """
    alpha, d, p = float(rng.uniform(1.0, 3.0)), int(rng.integers(1, 4)), float(rng.uniform(0.01, 0.1))
    beta = 2.0 * alpha / d + float(rng.uniform(1.5, 3.0))
    n = 10**60, 10**62
    bounds = [bracket(schedule(k, alpha, d, beta=beta), float(k), d, alpha, p) for k in n]
    slope = float(np.log(bounds[1] / bounds[0]) / np.log(n[1] / n[0]))
    claimed = -learning_rate(alpha, d) + rate_gap(alpha, d, beta=beta, p=p)
    witness = {"alpha": alpha, "d": d, "beta": beta, "p": p, "slope": slope, "claimed": claimed}
    # What is left of the terms that fall faster, by n^-gap.
    rest = n[0] ** -rate_gap(alpha, d, beta=beta, p=p)
    return Verdict(abs(slope - claimed), 1e-9 + 30.0 * 3.0**d * rest, 1, witness)


def measure_smallest_sample(sample: Callable[..., int], rng: Generator) -> Verdict:
    """From this n on, and no earlier, two radii are at most the margin [MS16 Corollary 6, (19)]."""
    d, beta, c = int(rng.integers(1, 4)), float(rng.uniform(1.1, 2.0)), float(rng.uniform(0.5, 1.0))
    margin = float(rng.uniform(0.3, 0.8))
    n = sample(margin, d, beta=beta, c=c)
    reach = [2.0 * c * max(k, 0.1) ** (-1.0 / (beta * d)) for k in (n, n - 1)]
    wrong = float(reach[0] > margin * (1.0 + 8.0 * EPS)) + float(reach[1] <= margin)
    return Verdict(wrong, 0.0, 1, {"d": d, "beta": beta, "c": c, "margin": margin, "n": n})


def measure_nets(nets: Callable[..., tuple[Array, Array]], rng: Generator) -> Verdict:
    """Nets have their meshes, hold the largest lam and width, and have no point too many [MS16 Theorem 7]."""
    n, d, r = int(rng.integers(20, 400)), int(rng.integers(1, 4)), float(rng.uniform(0.3, 1.0))
    wrong = 0
    for net, end, mesh in zip(nets(n, d, r), (r**d, r), (r**d / n, n ** (-1.0 / (2.0 + d))), strict=True):
        fine = np.linspace(1e-9 * end, end, 20_001)
        distance = np.abs(fine[:, None] - net).min(axis=1).max()
        needed = np.ceil(0.5 * (end / mesh - 1.0) - 1e-6) + 1.0
        wrong += int(distance > mesh * (1.0 + 1e-6)) + int(net[0] != end) + int(len(net) > max(1.0, needed))
        wrong += int((net <= 0.0).any())
    return Verdict(float(wrong), 0.0, 1, {"n": n, "d": d, "r": r})


def numbers_of_the_library(alpha: float, d: int, *, beta: float, p: float, c: float) -> tuple[float, float, float]:
    """a, b and xi of Lemma 14."""
    return *net_constants(alpha, d, p=p, c=c), net_gap(alpha, d, beta=beta, p=p)


def numbers_of_the_proof(alpha: float, d: int, *, beta: float, p: float, c: float) -> tuple[float, float, float]:
    """a, b and xi such that (32) is at most ``a n^(-rate + xi) + b mesh^(2 alpha)`` [MS16 Lemma 14].

    With ``lam* = n^(-(2 alpha + d) / D)``, ``gamma* = c n^(-1 / D)`` and ``D = (2 alpha + d)(1 + p) + 2p`` the terms
    are ``3^d r^-d 3 r^d lam* gamma*^-d``, then ``(gamma* + 2 mesh)^(2 alpha)``, and ``lam*^-p gamma*^-(d + 2p)
    r^((2 - d) p) / n``. The second is split into powers of gamma* and of 2 mesh by the least constant that does.
    """
    D = (2.0 * alpha + d) * (1.0 + p) + 2.0 * p
    # (s + t)^q <= C (s^q + t^q): the ratio is largest where s = t, or where one of them is 0.
    C = max(2.0 ** (2.0 * alpha) / 2.0, 1.0)
    a = 3.0 * (3.0 / c) ** d + C * c ** (2.0 * alpha) + c ** (-d * (1.0 + p))
    xi = 2.0 * alpha / (2.0 * alpha + d) - 2.0 * alpha / D + max(0.0, p / beta - 2.0 * p / (beta * d))
    return a, C * 4.0**alpha, xi


def measure_net_numbers(numbers: Callable[..., tuple[float, float, float]], rng: Generator) -> Verdict:
    """Constants and exponent are those of the proof, for every smoothness and every radius [MS16 Lemma 14]."""
    alpha, d, c = float(rng.uniform(0.2, 2.5)), int(rng.integers(1, 6)), float(rng.uniform(0.3, 1.0))
    beta = 2.0 * alpha / d + float(rng.uniform(1.5, 3.0))
    p = float(rng.uniform(0.2, 0.9)) * min(1.0, ((beta - 1.0) * d - 2.0 * alpha) / (2.0 * alpha + d + 2.0))
    witness = {"alpha": alpha, "d": d, "beta": beta, "p": p, "c": c}
    exact = numbers_of_the_proof(alpha, d, beta=beta, p=p, c=c)
    return _apart(numbers(alpha, d, beta=beta, p=p, c=c), exact, witness, 4096.0)


def measure_net_gap(gap: Callable[..., float], rng: Generator) -> Verdict:
    """The best of the nets is at most what the lemma says, with the constants of its proof [MS16 Lemma 14].

    For small n with the library's nets; for large n with the two points of a net that the proof takes, as far off as
    a net allows: there the exponent is what matters.
    """
    alpha, d, c = float(rng.uniform(1.0, 2.0)), int(rng.integers(1, 4)), 1.0
    beta = 2.0 * alpha / d + float(rng.uniform(2.0, 3.0))
    p = 0.9 * min(1.0, ((beta - 1.0) * d - 2.0 * alpha) / (2.0 * alpha + d + 2.0))
    a, b, _ = numbers_of_the_proof(alpha, d, beta=beta, p=p, c=c)
    rate, xi, D = learning_rate(alpha, d), gap(alpha, d, beta=beta, p=p), (2.0 * alpha + d) * (1.0 + p) + 2.0 * p
    excess = 0.0
    for n in (100, 10**200):
        r = c * n ** (-1.0 / (beta * d))
        if n < 1000:
            lams, widths = cell_nets(n, d, r)
            mesh = float(n) ** (-1.0 / (2.0 + d))
        else:
            lams, widths, mesh = np.array([r**d * (n ** (-(2.0 * alpha + d) / D) + 2.0 / n)]), np.array([0.0]), 0.0
            widths = np.array([c * n ** (-1.0 / D)])
        least = min(
            bracket(CellSchedule(r, lam, width), float(n), d, alpha, p) - 1.0 / n for lam in lams for width in widths
        )
        excess = max(excess, least / (a * float(n) ** (xi - rate) + b * mesh ** (2.0 * alpha)) - 1.0)
    return Verdict(max(0.0, excess), 1e-9, 1, {"alpha": alpha, "d": d, "beta": beta, "p": p})


# ---- numbers of a fitted estimator


def measure_fitted_cells(scale: float, rng: Generator) -> Verdict:
    """The bound of a fitted estimator is that of numbers read off its cells one by one [MS16 Theorem 4].

    Of rows with weights: masses are shares of these, and lam is beside the mean with these.
    """
    X, weights = rng.uniform(-1.0, 1.0, (120, 2)), rng.uniform(0.3, 3.0, 120)
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    selection = CellSelection(n_lams=3, n_widths=3, widths="isotropic")
    model: Any = VoronoiRidge(cells=Cells("voronoi", radius=0.8), selection=selection, random_state=0)
    model.fit(X, y, sample_weight=weights)
    Z, cells = model.scaling_.apply(X), model.cover_.cells(model.scaling_.apply(X))
    unit = float(np.linalg.norm(Z, axis=1).max())
    parts = [model.function_.functions[j] for j in range(model.n_cells_)]
    masses = np.bincount(cells, weights=weights) / weights.sum()
    lams, widths = np.array([f.lam for f in parts]) / weights.sum(), np.array([f.width for f in parts]) / unit
    r = float(max(np.linalg.norm(Z[cells == j] - c, axis=1).max() for j, c in enumerate(model.cover_.centers))) / unit
    r = min(r, 1.0)  # all rows are in the unit ball
    found = CellNumbers.of(model)
    witness = {"X": X, "y": y, "weights": weights}
    numbers = _apart(
        np.r_[found.lams, found.widths, found.masses, found.radius], np.r_[lams, widths, masses, r], witness
    )
    alpha, p, tau = 1.5, 0.4, 2.0
    # Widths that differ from cell to cell, whichever were chosen.
    shrunk = found._replace(widths=np.minimum(found.widths, found.radius) * rng.uniform(0.5, 1.0, len(parts)))
    w = shrunk.widths
    third = r ** (2.0 * p) * np.sum(masses / lams * w ** (-(2.0 + 2.0 * p) / p)) ** p / 120.0
    exact = np.sum(lams / w**2) + (w.max() / w.min()) ** 2 * w.max() ** (2.0 * alpha) + third + scale * tau / 120.0
    claimed = cells_risk_bound(shrunk, alpha=alpha, p=p, tau=tau, constant=3.0)
    values = _apart([claimed.value, 1.0 - claimed.probability], [3.0 * exact, np.exp(-tau)], witness, 4096.0)
    return Verdict.worst([numbers, values])


# ---- false variants


def half_a_power(*arguments: Any, **named: Any) -> float:
    """Theorem 12 with d in place of d + 2p."""
    return local_entropy(*arguments, **named) * float(arguments[2] / arguments[1])


def with_larger_p(alpha: float, d: int, *, beta: float, p: float, c: float) -> tuple[float, float, float]:
    """The constants of a p that is larger by a thousandth."""
    a, b = net_constants(alpha, d, p=1.001 * p, c=c)
    return a, b, net_gap(alpha, d, beta=beta, p=p)


def narrower(n: int, alpha: float, d: int, *, beta: float) -> CellSchedule:
    """Widths that shrink a little too fast."""
    right = cell_schedule(n, alpha, d, beta=beta)
    return right._replace(width=0.5 * n ** (-1.0 / (2.0 * alpha + d - 0.1)))
