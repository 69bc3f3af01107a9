"""The candidates of multiple kernel learning [CP20 Section 8], and kernels without what an intercept makes free."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from convexkernels import Box, kernel_library, random_tessellated_kernels
from convexkernels.arrays import Array
from convexkernels.bases.tessellation.gram import Tessellation
from convexkernels.checking import Verdict
from proofs_check.claim import Claim
from proofs_check.tessellated import direct
from proofs_check.tessellated.direct import EPS, Case
from proofs_check.tessellated.formulas import inside, library_places

Generator = np.random.Generator


def measure_library(rate: float, rng: Generator) -> Verdict:
    """13 kernels on all features and on each: ``exp(-rate |x - z|^2 / s^2)`` for 10 widths, and 3 polynomials."""
    n = int(rng.integers(1, 4))
    X, Z = rng.uniform(0.0, 1.0, (5, n)), rng.uniform(0.0, 1.0, (4, n))
    groups = [list(range(n))] + [[j] for j in range(n) if n > 1]
    found, verdicts = kernel_library(n), []
    if len(found) != 13 * len(groups):
        return Verdict(float("inf"), 0.0, 1, {"count": len(found)})
    for place, (name, kernel, columns) in enumerate(found):
        own = groups[place // 13]
        U, V, k = X[:, own], Z[:, own], place % 13
        squares, products = ((U[:, None] - V[None]) ** 2).sum(axis=2), U @ V.T
        width = 0.5 * 20.0 ** (k / 9.0)
        values = np.exp(-rate * squares / width**2) if k < 10 else (1.0 + products) ** (k - 9)
        apart = float(np.abs(kernel(X[:, columns], Z[:, columns]) - values).max())
        witness = {"X": X, "Z": Z, "name": name, "columns": columns}
        verdicts.append(Verdict(apart + (columns != own), 256.0 * EPS * float(values.max()), 1, witness))
    return Verdict.worst(verdicts)


def measure_random_matrices(size_of: Callable[[Array], float], rng: Generator) -> Verdict:
    """``P = A A' / trace(A A')``, A with independent standard normal entries, on the box asked for."""
    n, degree = ((1, 1), (2, 0), (2, 1))[int(rng.integers(3))]
    a, b = -rng.uniform(0.1, 0.9, n), 1.0 + rng.uniform(0.1, 0.9, n)
    X, seed = rng.uniform(0.0, 1.0, (3, n)), int(rng.integers(2**31))
    found = random_tessellated_kernels(n, 3, degree, box=Box(a, b), rng=seed)
    entries, size = np.random.default_rng(seed), 2 * comb(2 * n + degree, degree)
    places = library_places(n, degree)[1]
    verdicts = []
    for kernel in found:
        A = entries.standard_normal((size, size))
        P = np.empty_like(A)
        P[np.ix_(places, places)] = A @ A.T / size_of(A @ A.T)
        values = direct.gram(Case(P, a, b, degree), X, X)
        witness = {"X": X, "P": P, "a": a, "b": b, "degree": degree}
        verdicts.append(Verdict(float(np.abs(kernel(X) - values).max()), 1e-12 * float(values.max()), 1, witness))
    return Verdict.worst(verdicts)


def measure_constants(factor: float, rng: Generator) -> Verdict:
    """``k(x, y) = u(x) + u(y) + (the matrix modulo constants)``: what is left out, u being times factor."""
    n, degree = ((1, 1), (1, 2), (2, 0), (2, 1))[int(rng.integers(4))]
    case = direct.random_case(rng, n, degree)
    basis, places = library_places(n, degree)
    P, X = case.P[np.ix_(places, places)], inside(rng, case, 4)
    tessellation = Tessellation(basis, case.a, case.b)
    x = tessellation.points(X)
    u = factor * tessellation.constants(P, x)
    found = tessellation.gram(P, x, x, modulo_constants=True)
    diagonal = tessellation.diagonal(P, x, modulo_constants=True)
    values = direct.gram(case, X, X)
    apart = np.abs(found + u[:, None] + u - values).max(), np.abs(diagonal + 2.0 * u - np.diag(values)).max()
    witness = {"X": X, "P": P, "a": case.a, "b": case.b, "degree": degree, "found": found, "u": u}
    return Verdict(float(max(apart)), 1e-12 * float(np.abs(values).max() + np.abs(u).max()), 1, witness)


def candidate_claims(paper: str) -> list[Claim]:
    """The two lists of candidates, and matrices modulo constants."""
    return [
        Claim(
            "library-of-candidates",
            "The library's 13 (n + 1) candidates are Gaussians of bandwidths .5 to 10, in equal ratios, and powers "
            "1 to 3 of x'y + 1, on all features and on each.",
            paper,
            "Section 8",
            measure_library,
            0.5,
            0.501,
        ),
        Claim(
            "random-positive-matrices",
            "The library's random tessellated kernels have P = A A' / trace(A A'), A of standard normal entries.",
            paper,
            "(25)",
            measure_random_matrices,
            lambda P: float(np.trace(P)),
            lambda P: 1.001 * float(np.trace(P)),
            trials=4,
        ),
        Claim(
            "modulo-constants",
            "What the library's matrices modulo constants leave out of k(x, y) is u(x) + u(y), with its own u.",
            paper,
            "Lemma 5, (13)",
            measure_constants,
            1.0,
            1.001,
            trials=6,
        ),
    ]
