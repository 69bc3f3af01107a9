"""Both sides of a loss as rigorous bounds take them, against fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from convexkernels.checking import Verdict
from convexkernels.losses.base import BoxDual
from convexkernels.rigorous.dual import dual_below, primal_above
from proofs_check.claim import Claim


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


def beside(found: float, exact: Fraction, side: int, witness: dict[str, Any]) -> Verdict:
    """A number that has to be on one side of the exact one, and nearer than rounding of numbers of its size."""
    away = side * (Fraction(found) - exact)
    size = 1.0 + abs(float(exact))
    return Verdict(float(away) if away > 0 else float("inf"), 1e-12 * size, 1, {**witness, "found": found})


def measure_below(half: Fraction, rng: np.random.Generator) -> Verdict:
    """``c(s w) = s (lin'w - eps'|w|) - s^2 sum_i diagonal_i w_i^2 / 2`` from below, for multiples s of w."""
    m = int(rng.integers(2, 9))
    w, lin, eps, diagonal = rng.standard_normal(m), rng.standard_normal(m), rng.random(m), rng.random(m)
    linear, squares, charge = dual_below(w, BoxDual(lin, eps, np.full(m, -9.0), np.full(m, 9.0), diagonal))
    exact = list(zip(*map(fractions, (w, lin, eps, diagonal)), strict=True))
    first = sum((a * v - e * abs(v) for v, a, e, _ in exact), Fraction(0))
    second = half * sum((d * v * v for v, _, _, d in exact), Fraction(0))
    witness = {"w": w, "lin": lin, "eps": eps, "diagonal": diagonal}
    parts = [beside(linear, first, -1, witness), beside(squares, second, 1, witness)]
    return Verdict.worst([*parts, Verdict(charge, 1e-13 * (1.0 + float(np.abs(lin * w).sum())), 1, witness)])


def conjugates(half: Fraction, dual: BoxDual, defect: float, values: list[Fraction]) -> list[Fraction]:
    """``max over lo_i <= w <= hi_i of r_i w - eps_i |w| - (diagonal_i - defect) w^2 / 2`` for every i, r_i the values.

    Without limits it is where the slope is 0; without squares, or where they are those of the defect alone, at a limit
    or at 0.
    """
    lack, eps = Fraction(defect), fractions(dual.eps)
    if dual.diagonal is not None:
        squares = zip(values, eps, fractions(dual.diagonal), strict=True)
        return [half * max(abs(r) - e, Fraction(0)) ** 2 / (d - lack) for r, e, d in squares]
    limits = zip(values, eps, fractions(dual.lo), fractions(dual.hi), strict=True)
    ends = ([r * w - e * abs(w) + half * lack * w * w for w in (lo, hi)] for r, e, lo, hi in limits)
    return [max(Fraction(0), *pair) for pair in ends]


def measure_above(half: Fraction, rng: np.random.Generator) -> Verdict:
    """``s^2 quadratic / 2 + sum_i phi_i(lin_i - s (f_i + b))`` from above, for the worst f within a radius.

    In three cases in which the bound is as sharp as can be: limits without squares, squares without limits, and a
    defect with limits of one size, where f is known. The phi_i are convex: the worst is at an end.
    """
    m = int(rng.integers(2, 9))
    f, lin, b, s = rng.standard_normal(m), rng.standard_normal(m), float(rng.standard_normal()), float(rng.random())
    quadratic, limit, defect = float(rng.uniform(0.5, 2.0)), rng.uniform(0.5, 2.0, m), float(rng.uniform(0.01, 0.1))
    eps, none, far, radius = 0.2 * rng.random(m), np.zeros(m), np.full(m, np.inf), 0.5 * rng.random(m)
    verdicts = []
    for kind, dual, lack, wide in (
        ("limits", BoxDual(lin, eps, -0.5 * limit, limit), 0.0, radius),
        ("smooth", BoxDual(lin, eps, -far, far, rng.uniform(0.5, 2.0, m)), defect, radius),
        ("bent", BoxDual(lin, none, -limit, limit), defect, none),
    ):
        found = primal_above(dual, f, wide, quadratic, b, s, lack)
        rows = list(zip(*map(fractions, (lin, f, wide)), strict=True))
        ends = [[a - Fraction(s) * (v + side * r + Fraction(b)) for a, v, r in rows] for side in (-1, 1)]
        losses = [conjugates(half, dual, lack, end) for end in ends]
        value = half * Fraction(s) ** 2 * Fraction(quadratic) + sum(map(max, *losses), Fraction(0))
        witness = {"kind": kind, "lin": lin, "f": f, "b": b, "s": s}
        verdicts.append(beside(found, value, 1, witness))
    return Verdict.worst(verdicts)


def side_claims(paper: str) -> list[Claim]:
    """One claim per side."""
    return [
        Claim(
            f"rigorous-{name}",
            f"What rigorous bounds take for {what}, and nearer to it than rounding of its size.",
            paper,
            "losses, rigorous bounds",
            measure,
            Fraction(1, 2),
            Fraction(501, 1000),
        )
        for name, what, measure in (
            ("dual-side", "the dual of a loss at a point is below its value in fractions", measure_below),
            ("primal-side", "the value of a loss at a function is above its value in fractions", measure_above),
        )
    ]
