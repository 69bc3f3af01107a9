"""Bounds on the way to an answer and in exact arithmetic: none of them is on the wrong side of the optimum."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest.mock import MagicMock

import numpy as np

from convexkernels import (
    Candidates,
    Gaussian,
    GeneralizedPolynomial,
    Hinge,
    KernelLearning,
    LeastSquares,
    Logistic,
    Tessellated,
    UnitBox,
)
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.families.semidefinite_slice import SemidefiniteSlice
from convexkernels.losses.base import BoxDual
from convexkernels.losses.support_vector import best_intercept
from convexkernels.rigorous.matrices import EnclosedTessellated
from convexkernels.rigorous.rounding import U, gamma
from convexkernels.solvers.convex.envelope import Envelope
from convexkernels.solvers.convex.witness import DualPoint, DualPoints
from proofs_check.claim import Claim

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def task(rng: Generator, m: int = 12) -> tuple[Array, Array]:
    """Points in the unit square with labels of both kinds."""
    X = rng.uniform(0.0, 1.0, (m, 2))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(m)
    return X, np.where(y > np.median(y), 1.0, -1.0)


def measure_history(subject: tuple[str, float], rng: Generator) -> Verdict:
    """Every bound that a method names on its way encloses the optimum, which another method knows to 1e-8.

    `subject`: the method, and a factor of its bounds.
    """
    name, factor = subject
    X, y = task(rng)
    family: Any = (
        GeneralizedPolynomial(2, 3.0)
        if name == "envelope"
        else Candidates([Gaussian(g) for g in (0.5, 4.0, 30.0)], "mean")
    )
    problem = KernelLearning(family, Hinge(float(rng.uniform(1.0, 8.0))), X, y)
    best: Any = problem.solve("interior-point", tol=1e-9).certificate
    found = problem.solve(name, tol=1e-2)
    bounds = [(record.upper, record.lower) for record in found.history]
    bounds.append((found.certificate.upper, found.certificate.lower))  # type: ignore[union-attr]
    wrong = max(max(factor * lower - best.upper, best.lower - upper / factor) for upper, lower in bounds)
    witness = {"X": X, "y": y, "bounds": np.array(bounds), "optimum": best.upper}
    return Verdict(max(0.0, float(wrong)), 1e-8 * best.upper, 1, witness)


def measure_mixed_duals(factor: float, rng: Generator) -> Verdict:
    """A combination of dual points bounds the optimum by no more than its own dual value, ``c(a) - max_k w'K_k w / 2``.

    With all of one point it is the value of that point. `factor` multiplies the quadratic parts.
    """
    X, y = task(rng)
    kernels = [Gaussian(g)(X) for g in (0.5, 4.0, 30.0)]

    def value(a: Array) -> float:
        return float(a.sum()) - 0.5 * max(float(y * a @ K @ (y * a)) for K in kernels)

    def point(a: Array) -> DualPoint:
        return DualPoint(a, float(a.sum()), factor * 0.5 * np.array([float(y * a @ K @ (y * a)) for K in kernels]))

    points = DualPoints(lambda D: (float(D.max()), np.eye(3)[int(D.argmax())]))
    first, second = rng.uniform(0.0, 0.4, (2, 12))
    verdicts = []
    for t in (0.0, float(rng.uniform(0.1, 0.9)), 1.0):
        mixed = point(first).towards(point(second), t)
        a = (1.0 - t) * first + t * second
        over, size = points.bound(mixed) - value(a), 1e-12 * (1.0 + abs(value(a)))
        exact = t in (0.0, 1.0)
        apart = float(np.abs(mixed.alpha - a).max()) + (abs(over) if exact else max(0.0, over))
        verdicts.append(Verdict(apart, size, 1, {"first": first, "second": second, "t": t}))
    points.add(point(first), points.bound(point(first)))
    points.add(point(second), points.bound(point(second)))
    assert points.best is not None
    over = points.lower - value(points.best.alpha)
    less = max(value(first), value(second)) - points.lower
    verdicts.append(Verdict(max(0.0, over, less), 1e-12 * (1.0 + abs(points.lower)), 1, {"first": first}))
    return Verdict.worst(verdicts)


def measure_slice(factor: float, rng: Generator) -> Verdict:
    """Any multiplier, of any sign, bounds linear functions over combinations of matrices that are PSD, of fixed trace.

    And that of the method is sharp; `factor` multiplies bounds.
    """
    m = 5
    G = rng.standard_normal((3, m, 4))
    matrices = G @ np.swapaxes(G, 1, 2)
    matrices[2] -= 0.8 * matrices[0]  # not definite by itself
    trace, d = float(rng.uniform(0.5, 5.0)), rng.standard_normal(3)
    found = SemidefiniteSlice(matrices, trace)
    bound, theta = found.maximize(d)
    K = np.tensordot(theta, matrices, axes=1)
    inside = max(abs(float(np.trace(K)) - trace), -float(np.linalg.eigvalsh(K)[0]))
    value, verdicts = float(d @ theta), []
    size = 1e-7 * (abs(value) + trace)
    witness = {"matrices": matrices, "trace": trace, "d": d, "bound": bound, "value": value}
    verdicts.append(Verdict(max(inside, factor * bound - value, value - bound), size, 1, witness))
    slope = found.back.T @ d
    for _ in range(5):
        Z = rng.standard_normal((len(found.basis[0]),) * 2)
        above = found._bound(slope, Z + Z.T, float(rng.standard_normal()))
        verdicts.append(Verdict(max(0.0, value - above), size, 1, {**witness, "Z": Z, "above": above}))
    return Verdict.worst(verdicts)


def measure_envelope_on_factor(factor: float, rng: Generator) -> Verdict:
    """The best polynomial kernel is the vertex ``trace u u' / |u|^2`` with u the sums of features, for any trace.

    Bounds by the matrix and by its factor meet, and enclose one optimum; `factor` multiplies the upper ones.
    """
    X, y = task(rng)
    problem: Any = KernelLearning(GeneralizedPolynomial(2, float(rng.uniform(0.2, 6.0))), Hinge(5.0), X, y)
    V, dual = problem.gram_set.envelope_factor(), problem.loss.box_dual(problem.Y[0], problem.weights)
    ways = [Envelope()._on_factor(problem, V, dual, 1e-7, None), Envelope().start(problem, 1e-7, None)]
    uppers, lowers = [factor * way.upper for way in ways], [way.lower for way in ways]
    traces = max(abs(float(np.trace(way.theta)) / problem.family.trace - 1.0) for way in ways)
    apart = max(max(uppers) / max(lowers) - 1.0, max(lowers) / min(uppers) - 1.0, traces)
    return Verdict(apart, 1e-5, 1, {"X": X, "y": y, "uppers": np.array(uppers), "lowers": np.array(lowers)})


def measure_best_intercept(factor: float, rng: Generator) -> Verdict:
    """The best intercept is the middle of all best ones, which the ends of the losses' pieces say.

    Losses ``max over lo <= w <= hi of (r - b) w - eps |w|``, with ties so that many are best; `factor` multiplies it.
    """
    m = 6
    r, eps = rng.standard_normal(m), rng.uniform(0.0, 0.3, m)
    costs = np.ones(m) if rng.integers(2) else rng.uniform(0.5, 2.0, m)
    dual = BoxDual(r, eps, -costs, costs)
    ends = np.sort(np.concatenate([r - eps, r + eps]))
    losses = np.array([float(costs @ np.maximum(0.0, np.abs(r - b) - eps)) for b in ends])
    best = ends[losses <= losses.min() + 1e-12]
    middle = factor * 0.5 * float(best[0] + best[-1])
    return Verdict(abs(best_intercept(r, dual) - middle), 1e-12, 1, {"r": r, "eps": eps, "costs": costs})


def measure_parabola(factor: float, rng: Generator) -> Verdict:
    """The parabola in the place of the logistic dual has its slope and curvature at a point, by differences.

    ``-c'(w) = diagonal w - lin``; `factor` multiplies lin.
    """
    m, loss = 5, Logistic(float(rng.uniform(0.5, 5.0)))
    y, weights = rng.choice([-1.0, 1.0], m), rng.uniform(0.5, 2.0, m)
    cap = loss.C * weights
    w = y * cap * rng.uniform(0.05, 0.95, m)
    found = loss.parabola(w, y, weights)
    verdicts = []
    for i in range(m):

        def entropy(t: float, i: int = i) -> tuple[float, float]:
            u = (y[i] * w[i] + y[i] * t) / cap[i]
            return float(-cap[i] * (u * np.log(u) + (1.0 - u) * np.log1p(-u))), 4.0 * EPS * float(cap[i])

        def slope_at(t: float, i: int = i) -> tuple[float, float]:
            u = (y[i] * w[i] + y[i] * t) / cap[i]
            return float(y[i] * np.log((1.0 - u) / u)), 16.0 * EPS * float(1.0 + abs(np.log((1.0 - u) / u)))

        step = 0.2 * float(min(abs(w[i]), cap[i] - abs(w[i])))
        slope, error = richardson_derivative(entropy, step)
        bend, doubt = richardson_derivative(slope_at, step)
        claimed = factor * found.lin[i] - found.diagonal[i] * w[i]  # type: ignore[index]
        size = 8.0 * error + 1e-9 * (1.0 + abs(slope))
        verdicts.append(Verdict(abs(claimed - slope), size, 1, {"w": w, "y": y, "C": loss.C}))
        size = 8.0 * doubt + 1e-7 * abs(bend)
        verdicts.append(Verdict(abs(found.diagonal[i] + bend), size, 1, {"w": w, "y": y}))  # type: ignore[index]
    return Verdict.worst(verdicts)


# ---- exact arithmetic


def measure_roundings(factor: float, rng: Generator) -> Verdict:
    """``gamma(n)`` is above what n roundings of one direction do, ``(1 + u)^n - 1``, and hardly; in fractions."""
    n = int(rng.integers(1, 400))
    exact = (1 + Fraction(U)) ** n - 1
    found = Fraction(factor * gamma(n))
    away = float((found - exact) / exact)
    return Verdict(away if away >= 0.0 else float("inf"), 2e-3, 1, {"n": n})


def measure_blocks_of_adjoints(factor: float, rng: Generator) -> Verdict:
    """Radii of the adjoint of a tessellated kernel hold for all parts within theirs, and are attained.

    Parts and radii are made up; at the worst case every entry is at one end. `factor` multiplies what parts are off by.
    """
    problem: Any = KernelLearning(Tessellated(0, box=UnitBox(0.3)), Hinge(1.0), *task(rng, 6))
    family = EnclosedTessellated(problem.gram_set)
    index, q = family.rest.index, len(family.rest.index)
    G, X, A, dG, dX, dA = (rng.uniform(0.1, 1.0, (q, q)) for _ in range(6))
    G, A, dG, dA = (part + part.T for part in (G, A, dG, dA))

    def adjoint(shift: tuple[float, float, float]) -> tuple[Array, Array]:
        g, x, a = (part + factor * s * d for part, s, d in zip((G, X, A), shift, (dG, dX, dA), strict=True))
        family.pairs, family.rest = MagicMock(), MagicMock(index=index)
        family.pairs.adjoint.return_value, family.pairs.adjoint_radius.return_value = g, dG
        family.rest.adjoint.return_value = x, dX, a, dA
        return family._adjoint(np.ones((1, 6)), [None])  # type: ignore[list-item]

    D, bound = adjoint((0.0, 0.0, 0.0))
    ends = [adjoint((s, t, u))[0] - D for s in (-1.0, 1.0) for t in (-1.0, 1.0) for u in (-1.0, 1.0)]
    worst = np.abs(ends).max(axis=0)
    return Verdict(float(np.abs(worst - bound).max()), 1e-12, 1, {"radii": np.array([dG, dX, dA]), "bound": bound})


def measure_rigorous(factor: float, rng: Generator) -> Verdict:
    """Rigorous bounds enclose the optimum, and are those of floats up to what is charged; for any dual point, too.

    Where a point has a larger trace than is allowed, the upper bound is that of its functions with the kernel that is
    allowed, whose norms are larger by the ratio. `factor` multiplies bounds.
    """
    X, y = task(rng, 10)
    loss: Any = Hinge(3.0) if rng.integers(2) else LeastSquares(0.1)
    verdicts = []
    for family in (
        Candidates([Gaussian(0.5), Gaussian(8.0)], "none"),
        GeneralizedPolynomial(2, 1.5),
        Tessellated(0, box=UnitBox(0.3)),
    ):
        problem: Any = KernelLearning(family, loss, X, y)
        solution = problem.solve(tol=1e-7)
        at = solution.theta, solution.alpha, solution.witness
        best, proven = problem.certificate(*at), problem.rigorous_certificate(*at)
        size = 2e-7 * best.upper
        apart = max(abs(factor * proven.upper - best.upper), abs(factor * proven.lower - best.lower))
        witness = {"X": X, "y": y, "family": repr(family), "loss": repr(loss), "proven": str(proven)}
        verdicts.append(Verdict(float(apart), size, 1, witness))
        anywhere = rng.uniform(0.2, 3.0) * solution.alpha
        far, plain = (check(solution.theta, anywhere) for check in (problem.rigorous_certificate, problem.certificate))
        crossed = max(0.0, far.lower - best.upper, best.lower - far.upper)
        verdicts.append(Verdict(crossed + abs(far.lower - plain.lower), size + far.charged, 1, witness))
        if solution.theta.ndim == 2:
            verdicts.append(_of_larger_trace(problem, solution, float(rng.uniform(1.5, 4.0)), size))
    return Verdict.worst(verdicts)


def _of_larger_trace(problem: Any, solution: Any, ratio: float, size: float) -> Verdict:
    """The upper bound at ``ratio theta`` with coefficients over ratio: the functions, hence the bound, are the same."""
    theta = solution.theta * (problem.gram_set.trace / np.trace(solution.theta))
    loss, W = problem.loss, np.atleast_2d(solution.alpha) * (problem.Y if problem.loss.of_labels else 1.0)
    small = W / ratio
    proven = problem.rigorous_certificate(ratio * theta, small * (problem.Y if loss.of_labels else 1.0))
    K = problem.gram_set.gram(theta)
    f, norm = K @ W[0], float(W[0] @ K @ W[0])
    direct = loss.scale * loss.primal(f, norm, problem.Y[0], problem.weights)[0]
    return Verdict(abs(proven.upper - direct), size + proven.charged, 1, {"ratio": ratio, "direct": direct})


def certain_claims(paper: str) -> list[Claim]:
    """One claim per method, and one for each kind of bound."""
    histories = [
        Claim(
            f"bounds-of-{name}",
            f"Every bound that the method '{name}' names on its way encloses the optimum.",
            *(paper, "solvers, bounds", measure_history, (name, 1.0), (name, 1.01)),
            trials=2,
        )
        for name in ("envelope", "spectral-gradient", "interior-point", "frank-wolfe", "reduced-gradient")
    ]
    return [
        *histories,
        Claim(
            "mixed-dual-points",
            "Combinations of dual points bound the optimum by no more than their dual value, and by it at the points.",
            *(paper, "solvers, lower bounds", measure_mixed_duals, 1.0, 0.999),
        ),
        Claim(
            "multipliers-of-a-slice",
            "Any multiplier bounds linear functions over PSD combinations of fixed trace; that of the method is sharp.",
            *(paper, "families, Span", measure_slice, 1.0, 1.01),
            trials=4,
        ),
        Claim(
            "envelope-on-a-factor",
            "The best polynomial kernel by a factor of the envelope is that by its matrix, for any trace.",
            *(paper, "families, envelopes", measure_envelope_on_factor, 1.0, 1.001),
            trials=4,
        ),
        Claim(
            "best-intercept",
            "The intercept of piecewise linear losses is the middle of all that are best.",
            *(paper, "losses, intercepts", measure_best_intercept, 1.0, 1.001),
            trials=20,
        ),
        Claim(
            "logistic-parabola",
            "The parabola in the place of the logistic dual has its slope and curvature.",
            *(paper, "losses, logistic", measure_parabola, 1.0, 1.001),
            trials=4,
        ),
        Claim(
            "roundings",
            "What n roundings are said to do is more than they do, and hardly more.",
            *(paper, "rigorous bounds", measure_roundings, 1.0, 0.998),
        ),
        Claim(
            "radii-of-adjoints",
            "Radii of the adjoint of a tessellated kernel are what its parts may be off by together, entry by entry.",
            *(paper, "rigorous bounds", measure_blocks_of_adjoints, 1.0, 1.001),
        ),
        Claim(
            "rigorous-gap",
            "Bounds in exact arithmetic enclose the optimum, and are those in floats up to what is charged.",
            *(paper, "rigorous bounds", measure_rigorous, 1.0, 1.0001),
            trials=3,
        ),
    ]
