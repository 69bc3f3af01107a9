"""Distances, lengths and widths of kernels: what they are in units of features, and of their own spaces."""

from __future__ import annotations

import numpy as np

from convexkernels import kernels as k
from convexkernels.cells.matrices import GaussianMatrices, KernelMatrices
from convexkernels.cells.metric import LEARNED_WIDTH
from convexkernels.checking import Verdict
from convexkernels.families.curved.widths import Widths
from convexkernels.kernels import KERNELS
from convexkernels.kernels.matern import without_kinks
from proofs_check.claim import Claim

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def measure_distances(factor: float, rng: Generator) -> Verdict:
    """``k(x, x) - 2 k(x, y) + k(y, y)``, or for a Gaussian of a map ``-log k(x, y)``, the squared distance of images.

    `factor` multiplies what is made of k(x, y).
    """
    X, Y = rng.uniform(0.05, 0.95, (4, 2)), rng.uniform(0.05, 0.95, (3, 2))
    verdicts = []
    for name, make in KERNELS.items():
        kernel = make(2)
        K, diagonals = kernel(X, Y), kernel.diag(X)[:, None] + kernel.diag(Y)
        found = kernel.squared_distances(X, Y)
        apart = float(np.abs(found - (diagonals - 2.0 * factor * K)).max())
        if (diagonals == 2.0).all() and (K > 0.0).all():
            apart = min(apart, float(np.abs(found + factor * np.log(K)).max()))
        size = 1e-11 * float(np.abs(diagonals).max() + np.abs(found).max())
        verdicts.append(Verdict(apart, size, 1, {"kernel": name, "X": X, "Y": Y}))
    return Verdict.worst(verdicts)


def measure_smoothing(factor: float, rng: Generator) -> Verdict:
    """A Matern kernel with a kink becomes ``exp(-(sqrt(r^2 + d^2) - d) / length)`` for the distance d, in sums, too.

    `factor` multiplies d.
    """
    X, length, distance = rng.uniform(-1.0, 1.0, (6, 2)), float(rng.uniform(0.3, 2.0)), float(rng.uniform(0.1, 0.5))
    smooth = k.Gaussian(1.5)
    found = without_kinks(k.WeightedSum([k.Matern(1, length), smooth], [0.7, 0.2]), distance)
    squares, d = ((X[:, None] - X[None]) ** 2).sum(axis=2), factor * distance
    expected = 0.7 * np.exp(-(np.sqrt(squares + d * d) - d) / length) + 0.2 * np.exp(-1.5 * squares)
    return Verdict(float(np.abs(found(X) - expected).max()), 64.0 * EPS, 1, {"X": X, "length": length, "d": distance})


def measure_cell_widths(power: float, rng: Generator) -> Verdict:
    """Matrices of cells at a width are those of points divided by it, `power` being 1.

    For a kernel that is given, for the Gaussian ``exp(-|x - y|^2 / width^2)``, and for the width that goes with learned
    factors of features, whose kernel is ``exp(-|s * (x - y)|^2 / 2)``.
    """
    X, width, s = rng.uniform(-1.0, 1.0, (6, 2)), float(rng.uniform(1.5, 3.0)), rng.uniform(0.5, 2.0, 2)
    rows = np.arange(4)

    def squares(by: float) -> np.ndarray:
        Z = X / by**power
        return np.asarray(((Z[:, None] - Z[None]) ** 2).sum(axis=2))

    given = KernelMatrices(k.Polynomial(2, 0.5), X)
    Z = X / width**power
    polynomial = (Z @ Z.T + 0.5) ** 2
    learned, at_width = Widths().on(X).at(np.log(s)), GaussianMatrices(X * s)(LEARNED_WIDTH**power)
    assert learned is not None
    apart = [
        np.abs(given(width) - polynomial).max(),
        np.abs(given(width, rows, rows) - polynomial[:4, :4]).max(),
        np.abs(given.diagonal(width) - np.diag(polynomial)).max(),
        np.abs(GaussianMatrices(X)(width) - np.exp(-squares(width))).max(),
        np.abs(at_width - learned.gram()).max(),
    ]
    return Verdict(float(max(apart)), 1e-13 * float(polynomial.max()), 1, {"X": X, "width": width, "s": s})


def distance_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "distances-of-kernels",
            "Squared distances of every kernel are those of images in its space; for a Gaussian of a map, of the map.",
            paper,
            "table KERNELS",
            measure_distances,
            1.0,
            1.001,
            trials=3,
        ),
        Claim(
            "smoothed-kinks",
            "A Matern kernel with a kink, smoothed over a distance in units of the features, is that of its formula.",
            paper,
            "kernels, without kinks",
            measure_smoothing,
            1.0,
            1.001,
        ),
        Claim(
            "widths-of-cells",
            "Matrices of cells at a width are those of points divided by it; those of learned factors are sqrt 2.",
            paper,
            "cells, widths",
            measure_cell_widths,
            1.0,
            1.001,
        ),
    ]
