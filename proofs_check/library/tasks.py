"""Tessellated kernels of several tasks against the integrals of their blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from convexkernels import TessellatedKernel
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from proofs_check.claim import Claim
from proofs_check.tessellated import direct
from proofs_check.tessellated.formulas import inside, library_places

TASKS = 3


def measure_blocks(pick: Callable[[Array, int, int], Array], rng: np.random.Generator) -> Verdict:
    """The kernel between x in task s and y in task t is the integral with the block P_st, which is not symmetric."""
    n, degree = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    case = direct.random_case(rng, n, degree)
    _, places = library_places(n, degree)
    G = rng.standard_normal((len(places), TASKS, 4))
    blocks = np.einsum("isk,jtk->stij", G, G)
    P = np.transpose(blocks, (2, 0, 3, 1)).reshape(TASKS * len(places), -1)
    kernel = TessellatedKernel(P, case.a, case.b, degree, tasks=TASKS)
    X = inside(rng, case, 2)
    verdicts = []
    for s, t in ((0, 1), (2, 0), (1, 1)):
        block = np.zeros_like(case.P)
        block[np.ix_(places, places)] = pick(blocks, s, t)
        exact = direct.integral(direct.Case(block, case.a, case.b, degree), X[0], X[1])
        found = float(kernel(np.append(X[0], s)[None], np.append(X[1], t)[None])[0, 0])
        witness = {"P": P, "a": case.a, "b": case.b, "X": X, "tasks": (s, t), "library": found, "integral": exact.value}
        # Regrouping has four terms for one of the integral.
        verdicts.append(Verdict(abs(found - exact.value), 8.0 * exact.error, 1, witness))
    return Verdict.worst(verdicts)


def measure_similarity(correlation: Callable[[Array], Array], rng: np.random.Generator) -> Verdict:
    """``trace P_st`` of ``P = G G'`` are scalar products of the parts of G: a correlation matrix."""
    G = rng.standard_normal((4, TASKS, 3)) + rng.standard_normal((4, 1, 3))
    P = np.einsum("isk,jtk->isjt", G, G).reshape(4 * TASKS, -1)
    found = TessellatedKernel(P, [0.0], [1.0], 1, 0, tasks=TASKS).task_similarity()
    expected = correlation(np.transpose(G, (1, 0, 2)).reshape(TASKS, -1))
    return Verdict(float(np.abs(found - expected).max()), 1e-13, 1, {"G": G, "found": found, "expected": expected})


def cosines(parts: Array) -> Array:
    """Of the angles between the rows."""
    parts = parts / np.linalg.norm(parts, axis=1, keepdims=True)
    return np.asarray(parts @ parts.T)


def task_claims(paper: str) -> list[Claim]:
    """What is said about kernels of several tasks."""
    return [
        Claim(
            "tasks-blocks",
            "The library's kernel between two tasks is the integral of N(z, x)' P_st N(z, y).",
            paper,
            "kernels of several tasks",
            measure_blocks,
            lambda blocks, s, t: blocks[s, t],
            lambda blocks, s, t: blocks[t, s],
            trials=10,
        ),
        Claim(
            "tasks-similarity",
            "What tasks share in the library are cosines between the tasks' parts of a factor of P.",
            paper,
            "kernels of several tasks",
            measure_similarity,
            cosines,
            lambda parts: np.asarray(np.corrcoef(parts)),
            trials=5,
        ),
    ]
