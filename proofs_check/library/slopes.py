"""Claims about derivatives of Gram matrices in the unknowns of curved families, and about what certificates mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap, RigorousGap, Stationarity
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.families import FAMILIES, example_points
from convexkernels.families.curved import CURVED
from proofs_check.claim import Claim

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def measure_slope(subject: tuple[Callable[[], Any], float], rng: Generator) -> Verdict:
    """The gradient of ``<M, K(z)>``, and of the penalty of the family, along a random direction; a factor of it."""
    make, factor = subject
    X = rng.uniform(0.1, 0.9, (7, 2))
    gram_set = make().on(X)
    chart = gram_set.chart(gram_set.start(rng, 0))
    u = chart.u + 0.1 * rng.standard_normal(chart.u.size)
    M, direction = rng.standard_normal((7, 7)), rng.standard_normal(u.size)
    M, direction = M + M.T, direction / np.linalg.norm(direction)

    def along(t: float) -> tuple[float, float]:
        there = chart.at(u + t * direction)
        terms = M * there.gram()
        return float(terms.sum() + there.penalty), 16.0 * EPS * float(np.abs(terms).sum() + abs(there.penalty))

    slope, error = richardson_derivative(along, 0.05)
    here = chart.at(u)
    here.gram()
    slopes = np.asarray(here.gradient(M))
    claimed = factor * float(slopes @ direction)
    error += 64.0 * EPS * u.size * float(np.abs(slopes) @ np.abs(direction))
    return Verdict(abs(claimed - slope), 4.0 * error, 1, {"X": X, "u": u, "direction": direction, "slope": slope})


def measure_certificates(factor: float, rng: Generator) -> Verdict:
    """Relative gaps are relative to the larger bound, relative residuals to value over length of the point.

    Bounds that cross prove nothing, in exact arithmetic not even by a unit in the last place.
    """
    lower, gap = float(rng.uniform(0.5, 5.0)), float(rng.uniform(0.1, 2.0))
    found = DualityGap(lower + gap, lower)
    point, gradient = 3.0 * rng.standard_normal(5), rng.standard_normal(5)
    value = float(rng.uniform(0.1, 4.0))
    residual = float(np.linalg.norm(gradient)) * max(1.0, float(np.linalg.norm(point))) / value
    apart = [
        abs(found.relative_gap - factor * gap / (lower + gap)),
        abs(Stationarity.at(value, gradient, point).relative_residual / residual - 1.0),
        float(found.holds(0.99 * found.relative_gap)) + float(not found.holds(1.01 * found.relative_gap)),
        float(DualityGap(lower, lower + gap).holds(1.0)) + float(RigorousGap(lower, lower + gap).holds(1.0)),
        float(RigorousGap(lower, lower * (1.0 + 2.0 * EPS)).holds(1.0)),
        float(not RigorousGap(lower + gap, lower).holds(1.01 * found.relative_gap)),
    ]
    return Verdict(max(apart), 16.0 * EPS, 1, {"bounds": np.array([lower, lower + gap]), "apart": np.array(apart)})


def measure_linear(subject: tuple[Callable[[], Any], float], rng: Generator) -> Verdict:
    """``<A*(w w'), dP> = w'K(dP) w``, ``<derivative[r], dP> = (K(dP) w)_r``; ``sigma(A*(w w')) = w'K(E) w``."""
    make, factor = subject
    family = make()
    gram_set = family.on(example_points(family, rng.uniform(0.1, 0.9, (6, 2))))
    w, rows, theta = rng.standard_normal(6), np.array([0, 2, 5]), np.asarray(gram_set.initial())
    dP = rng.standard_normal(theta.shape)
    dP = dP + dP.T if dP.ndim == 2 else dP
    image = gram_set.gram(dP) @ w
    pulled = factor * float(np.sum(gram_set.adjoint(w[None, :]) * dP))
    verdicts = [Verdict(abs(pulled - float(w @ image)), 1e-11 * float(1.0 + np.abs(image).max()), 1, {"dP": dP})]
    D = gram_set.derivative(w, rows)
    if D is not None:
        direct = image[rows]
        apart = np.abs(factor * D.reshape(3, -1) @ dP.ravel() - direct).max()
        verdicts.append(Verdict(float(apart), 1e-11 * float(1.0 + np.abs(direct).max()), 1, {"w": w, "dP": dP}))
    E = gram_set.envelope()
    if E is not None:
        direct_sigma = float(w @ gram_set.gram(E) @ w)
        apart = abs(factor * gram_set.support(gram_set.adjoint(w[None, :]))[0] - direct_sigma)
        verdicts.append(Verdict(float(apart), 1e-10 * direct_sigma, 1, {"w": w}))
    return Verdict.worst([*verdicts, *_of_matrices(gram_set, theta, w, dP, factor), *_by_features(gram_set, theta, w)])


def _of_matrices(gram_set: Any, theta: Array, w: Array, dP: Array, factor: float) -> list[Verdict]:
    """``<pullback(M), dP> = <M, K(dP)>``, and no kernel of the family has more variance than is said."""
    m = len(w)
    M = np.outer(w, w[::-1]) + np.outer(w[::-1], w) + np.diag(w)
    direct, pulled = float(np.sum(M * gram_set.gram(dP))), float(np.sum(gram_set.pullback(M) * dP))
    size = float(np.abs(M).sum() * (1.0 + np.abs(gram_set.gram(dP)).max()))
    verdicts = [Verdict(abs(factor * pulled - direct), 1e-11 * size, 1, {"M": M, "dP": dP})]
    if gram_set.has_support:
        centered = np.eye(m) / m - 1.0 / m**2
        scale, (_, best) = gram_set.largest_scale(True), gram_set.support(gram_set.pullback(centered))
        reached, usual = (float(np.sum(centered * gram_set.gram(point))) for point in (best, theta))
        apart = max(abs(factor * scale / reached - 1.0), usual / scale - 1.0)
        verdicts.append(Verdict(apart, 1e-8, 1, {"scale": scale, "reached": reached}))
    return verdicts


def _by_features(gram_set: Any, theta: Array, w: Array) -> list[Verdict]:
    """``Psi Psi' = K``, its diagonal, and functions by features at new points, where matrices are never formed."""
    if not gram_set.is_factored:
        return []
    K, found = gram_set.gram(theta), gram_set.matrix(theta)
    Z = np.random.default_rng(0).uniform(0.1, 0.9, (5, 2))
    crossing, coefficients, _ = gram_set.expansion(theta, w[None, :])
    pairs = [
        (found @ w, K @ w),
        (found.diagonal(), np.diag(K)),
        (found.dense(), K),
        (crossing.cross(theta, Z) @ coefficients[0], gram_set.cross(theta, Z) @ w),
    ]
    size = 1e-11 * float(1.0 + np.abs(w).sum() * np.abs(K).max())
    return [Verdict(float(np.abs(one - other).max()), size, 1, {"w": w}) for one, other in pairs]


def slope_claims(paper: str) -> list[Claim]:
    """One claim per curved family of the table."""
    slopes = [
        Claim(
            f"slope-{name.replace('_', '-')}",
            f"The library's gradient of matrices, and of penalties, of the family '{name}' is their slope.",
            paper,
            "table CURVED",
            measure_slope,
            (make, 1.0),
            (make, 1.001),
            trials=2,
        )
        for name, make in CURVED.items()
    ]
    certificates = Claim(
        "certificates",
        "A relative gap is upper - lower over the larger one; a relative residual is |gradient| max(1, |u|) / value.",
        paper,
        "certificates",
        measure_certificates,
        1.0,
        1.001,
    )
    linear = [
        Claim(
            f"linear-{name.replace('_', '-')}",
            f"Derivatives of K(theta) in the library, envelope, largest variance and features of the family "
            f"'{name}' are what they say.",
            paper,
            "table FAMILIES",
            measure_linear,
            (make, 1.0),
            (make, 1.001),
            trials=2,
        )
        for name, make in FAMILIES.items()
    ]
    return [*slopes, certificates, *linear]
