"""What families make of training points: the sizes that candidates are scaled to, and boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels import Box, Candidates, Gaussian, Polynomial, UnitBox, data_library
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from proofs_check.claim import Claim

EPS = float(np.finfo(np.float64).eps)


def sizes_of(K: Array) -> dict[str, float]:
    """What every rule makes 1: the trace, its mean, the mean squared distance of images from their mean.

    That mean is half the mean squared distance of pairs; it does not feel what is constant, or a function of one point.
    """
    diagonal = np.array([K[i, i] for i in range(len(K))])
    squares = [K[i, i] + K[j, j] - 2.0 * K[i, j] for i in range(len(K)) for j in range(len(K))]
    variance = 0.5 * float(np.mean(squares))
    return {"trace": float(diagonal.sum()), "mean": float(diagonal.mean()), "variance": variance, "none": 1.0}


def measure_scaled_candidates(factor: float, rng: np.random.Generator) -> Verdict:
    """Every candidate's matrix is that of its kernel, divided by the number that the rule makes 1.

    With and without centered images; what is learned for new points is scaled alike. `factor` multiplies that number.
    """
    X, Z = rng.uniform(0.0, 1.0, (7, 2)), rng.uniform(0.0, 1.0, (3, 2))
    rate, offset = float(rng.uniform(0.5, 5.0)), float(rng.uniform(0.5, 3.0))
    kernels = [Gaussian(rate), Polynomial(2, offset), Gaussian(4.0 * rate)]
    both = np.vstack([X, Z])
    squares, products = ((both[:, None] - both[None]) ** 2).sum(axis=2), both @ both.T
    matrices = [np.exp(-rate * squares), (products + offset) ** 2, np.exp(-4.0 * rate * squares)]
    verdicts = []
    for rule in ("trace", "mean", "variance", "none"):
        for center in (False, True):
            gram_set: Any = Candidates(kernels, rule, center).on(X)
            for k, theta in enumerate(np.eye(3)):
                K, m = matrices[k], len(X)
                if center:
                    K = K - K[:, :m].mean(axis=1)[:, None] - K[:m].mean(axis=0) + K[:m, :m].mean()
                expected = K / (factor * sizes_of(K[:m, :m])[rule])
                apart = max(
                    float(np.abs(gram_set.gram(theta) - expected[:m, :m]).max()),
                    float(np.abs(gram_set.cross(theta, Z) - expected[m:, :m]).max()),
                )
                witness = {"X": X, "rule": rule, "center": center, "kernel": repr(kernels[k])}
                # Centering cancels what is constant.
                tolerance = 1024.0 * EPS * float(np.abs(matrices[k]).max() / sizes_of(K[:m, :m])[rule])
                verdicts.append(Verdict(apart, tolerance, 1, witness))
    return Verdict.worst(verdicts)


def measure_boxes(factor: float, rng: np.random.Generator) -> Verdict:
    """``[-margin, 1 + margin]`` for every feature, or margin times its range beyond its extremes; 1 for no range."""
    n, margin = int(rng.integers(2, 5)), float(rng.uniform(0.1, 2.0))
    X = rng.normal(0.0, 1.0, (6, n)) * rng.uniform(0.1, 10.0, n)
    X[:, 0] = X[0, 0]
    low, high = np.sort(X, axis=0)[[0, -1]]
    pads = np.array([factor * margin * (b - a or 1.0) for a, b in zip(low, high, strict=True)])
    unit = factor * margin * np.ones(n)
    found = [*Box.around(X, margin).containing(X), *UnitBox(margin).limits(n)]
    apart = max(
        float(np.abs(side - exact).max())
        for side, exact in zip(found, [low - pads, high + pads, 0.0 - unit, 1.0 + unit], strict=True)
    )
    return Verdict(apart, 16.0 * EPS * float(np.abs(X).max() + pads.max()), 1, {"X": X, "margin": margin})


def measure_data_library(factor: float, rng: np.random.Generator) -> Verdict:
    """Candidates of a table have the median distance s of its rows as unit.

    At distance s a Gaussian of bandwidth s is ``exp(-1/2)``. Six bandwidths from s / 4 to 4 s, Laplacians of lengths
    s / 2 and 2 s, three powers of ``x'y + n``, and two Gaussians for each feature with the median distance there.
    `factor` multiplies median distances.
    """
    m, n = int(rng.integers(20, 40)), int(rng.integers(2, 4))
    X = rng.standard_normal((m, n)) * rng.uniform(0.5, 2.0, n)
    pairs = [(i, k) for i in range(m) for k in range(i)]

    def median(columns: list[int]) -> float:
        return factor * float(np.median([np.sqrt(np.sum((X[i, columns] - X[k, columns]) ** 2)) for i, k in pairs]))

    everywhere = list(range(n))
    s, expected = median(everywhere), []
    apart = np.array([[np.sqrt(np.sum((x - z) ** 2)) for z in X] for x in X])
    expected += [(everywhere, np.exp(-0.5 * (apart / (s * 0.25 * 16.0 ** (k / 5.0))) ** 2)) for k in range(6)]
    expected += [(everywhere, np.exp(-apart / (multiple * s))) for multiple in (0.5, 2.0)]
    expected += [(everywhere, (X @ X.T + n) ** d) for d in (1, 2, 3)]
    for j in range(n):
        squares = (X[:, j, None] - X[None, :, j]) ** 2
        expected += [([j], np.exp(-0.5 * squares / (multiple * median([j])) ** 2)) for multiple in (0.3, 1.5)]
    found, verdicts = data_library(X), []
    if [columns for _, _, columns in found] != [columns for columns, _ in expected]:
        return Verdict(float("inf"), 0.0, 1, {"columns": str([columns for _, _, columns in found])})
    for (name, kernel, columns), (_, values) in zip(found, expected, strict=True):
        difference = float(np.abs(kernel(X[:, columns]) - values).max())
        verdicts.append(Verdict(difference, 1e-12 * float(np.abs(values).max()), 1, {"X": X, "name": name}))
    return Verdict.worst(verdicts)


def training_point_claims(paper: str) -> list[Claim]:
    """Claims about candidates, and one about boxes."""
    return [
        Claim(
            "scaled-candidates",
            "The library divides candidates by their trace, its mean, or the mean squared distance of images from "
            "their mean, which is what an intercept leaves, and scales them alike for new points.",
            paper,
            "families, Candidates",
            measure_scaled_candidates,
            1.0,
            1.001,
            trials=4,
        ),
        Claim(
            "candidates-of-a-table",
            "Candidates that the library makes of a table are Gaussians and Laplacians in units of the median distance "
            "of its rows, three polynomials, and Gaussians in units of that of each feature.",
            paper,
            "families, ready-made lists",
            measure_data_library,
            1.0,
            1.001,
            trials=3,
        ),
        Claim(
            "boxes",
            "The library's boxes are [-margin, 1 + margin], or the data's extended by margin times ranges.",
            paper,
            "families, boxes of tessellated kernels",
            measure_boxes,
            1.0,
            1.001,
        ),
    ]
