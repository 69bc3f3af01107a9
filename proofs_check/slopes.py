"""Claims about derivatives of Gram matrices in the unknowns of curved families, and about what certificates mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.certificate import DualityGap, Stationarity
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.families.curved import CURVED
from proofs_check.claim import Claim

Array = NDArray[np.float64]
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
    """Relative gaps are relative to the larger bound, relative residuals to value over length of the point."""
    lower, gap = float(rng.uniform(0.5, 5.0)), float(rng.uniform(0.1, 2.0))
    found = DualityGap(lower + gap, lower)
    point, gradient = 3.0 * rng.standard_normal(5), rng.standard_normal(5)
    value = float(rng.uniform(0.1, 4.0))
    residual = float(np.linalg.norm(gradient)) * max(1.0, float(np.linalg.norm(point))) / value
    apart = [
        abs(found.relative_gap - factor * gap / (lower + gap)),
        abs(Stationarity.at(value, gradient, point).relative_residual / residual - 1.0),
        float(found.holds(0.99 * found.relative_gap)) + float(not found.holds(1.01 * found.relative_gap)),
    ]
    return Verdict(max(apart), 16.0 * EPS, 1, {"bounds": np.array([lower, lower + gap]), "apart": np.array(apart)})


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
    return [*slopes, certificates]
