"""Stacks of many matrices, stored or made anew, against matrices made entry by entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from convexkernels import Centered, Gaussian, Polynomial
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.families.stacks import base
from convexkernels.families.stacks.base import PackedStack, StreamedStack
from convexkernels.families.stacks.filling import SHARED_FROM, make_stack
from proofs_check.claim import Claim
from proofs_check.tessellated import direct
from proofs_check.tessellated.formulas import library_of

Generator = np.random.Generator


def centered(K: Array) -> Array:
    """The matrix of images less their mean."""
    H = np.eye(len(K)) - 1.0 / len(K)
    return np.asarray(H @ K @ H)


def measure_tessellated(factor: float, rng: Generator) -> Verdict:
    """Matrices of many tessellated kernels of one box, made together, are those of their integrals, centered or not.

    `factor` multiplies the integrals.
    """
    n, degree, m = int(rng.integers(1, 3)), int(rng.integers(0, 2)), 5
    first = direct.random_case(rng, n, degree)
    cases = [replace(first, P=direct.random_case(rng, n, degree).P) for _ in range(SHARED_FROM)]
    X, verdicts = rng.uniform(first.a + 0.05, first.b - 0.05, (m, n)), []
    kernels = [library_of(case) for case in cases]
    stacks = [
        make_stack(some, X, memory_limit=None, dtype=np.float64)
        for some in (kernels, [Centered(kernel, X) for kernel in kernels])
    ]
    for i, case in enumerate(cases):
        K = factor * np.array([[direct.integral(case, x, y).value for y in X] for x in X])
        for stack, exact in zip(stacks, (K, centered(K)), strict=True):
            apart = float(np.abs(stack.matrix(i) - exact).max())
            verdicts.append(Verdict(apart, 1e-11 * float(np.abs(K).max()), 1, {"X": X, "P": case.P}))
    return Verdict.worst(verdicts)


def measure_stacks(factor: float, rng: Generator) -> Verdict:
    """Sums, forms, traces of products, images and diagonals of scaled matrices, stored or made anew in chunks of rows.

    Of matrices made by their formulas, times factors that are given twice; `factor` multiplies them.
    """
    m, rate, X = 11, float(rng.uniform(0.5, 4.0)), rng.uniform(0.0, 1.0, (11, 2))
    kernels, scales, verdicts = [Gaussian(rate), Polynomial(2, 0.5), Gaussian(3.0 * rate)], rng.uniform(0.2, 5.0, 3), []
    squares, products = ((X[:, None] - X[None]) ** 2).sum(axis=2), X @ X.T
    matrices = np.array([np.exp(-rate * squares), (products + 0.5) ** 2, np.exp(-3.0 * rate * squares)])
    K = (factor * scales)[:, None, None] * matrices
    weights = rng.standard_normal(3) * np.array([1.0, 1.0, rng.integers(2)])
    W, w, G = rng.standard_normal((2, m)), rng.standard_normal(m), rng.standard_normal((m, m))
    W[:, rng.permutation(m)[:6]] = 0.0
    w[rng.permutation(m)[:6]] = 0.0
    M, rows = G + G.T, np.sort(rng.permutation(m)[:4])
    stored: Any = make_stack(kernels, X, memory_limit=None, dtype=np.float64)
    assert isinstance(stored, PackedStack)
    expected = [
        np.tensordot(weights, K, 1),
        np.array([sum(float(v @ one @ v) for v in W) for one in K]),
        np.array([float((M * one).sum()) for one in K]),
        np.array([one[rows] @ w for one in K]).T,
        np.array([np.diag(one) for one in K]),
    ]
    with patch.object(base, "CHUNK", 4):
        for stack in (stored, StreamedStack(kernels, X)):
            half = rng.uniform(0.5, 2.0, 3)
            stack.rescale(half)
            stack.rescale(scales / half)
            found = [
                stack.combine(weights, np.empty((m, m))),
                stack.weigh(W),
                stack.pullback(M),
                stack.apply(w, rows),
                stack.diagonals(),
            ]
            apart = [float(np.abs(one - other).max()) for one, other in zip(found, expected, strict=True)]
            witness = {"X": X, "scales": scales, "weights": weights, "apart": np.array(apart), "W": W, "w": w}
            verdicts.append(Verdict(max(apart), 1e-11 * float(np.abs(K).max()), 1, witness))
    return Verdict.worst(verdicts)


def stack_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "stacks-of-tessellated-kernels",
            "Matrices of tessellated kernels that are made together are those of their integrals, centered or not.",
            *(paper, "families, stacks", measure_tessellated, 1.0, 1.001),
            trials=3,
        ),
        Claim(
            "stacks-of-matrices",
            "Sums, forms and images of scaled matrices are those of their formulas, stored or made anew.",
            *(paper, "families, stacks", measure_stacks, 1.0, 1.001),
        ),
    ]
