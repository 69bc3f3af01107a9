"""Rigorous bounds against ball arithmetic: ``python -m proofs_check.exact.cases [--trials N] [--seed S]``.

Random small problems of every family, kernel and loss with bounds in exact arithmetic, stated to the library and to
:mod:`proofs_check.exact.bounds`: ordinary points, clusters, points far from the origin; weights, some of them 0; one
output or two; points that a solver found, and points at random. Ends with exit code 1 when a bound is not proven.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import convexkernels as ck
from proofs_check.exact.bounds import (
    Case,
    gaussian,
    matern,
    monomial_products,
    polynomial,
    tessellated_products,
    violation,
)

Prove = Callable[[ck.KernelLearning, Any, Any, Any], Any]


def _points(rng: np.random.Generator) -> Any:
    m, n = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    X = rng.random((m, n))
    kind = rng.integers(0, 5)
    if kind == 0:
        X = X[rng.integers(0, 2, m)] + 10.0 ** rng.integers(-9, -3) * rng.standard_normal((m, n))
    if kind == 1:
        X = X + 10.0 ** rng.integers(1, 4)
    return np.round(X, 2) if kind == 2 else X


def _loss(rng: np.random.Generator) -> tuple[ck.Loss, tuple[str, dict[str, float], bool]]:
    intercept, C = bool(rng.integers(0, 2)), float(10.0 ** rng.uniform(-2.0, 4.0))
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return ck.Hinge(C, intercept), ("hinge", {"C": C}, intercept)
    if kind == 1:
        epsilon = float(rng.random() * 0.3)
        return ck.EpsilonInsensitive(C, epsilon, intercept), ("epsilon", {"C": C, "epsilon": epsilon}, intercept)
    if kind == 2:
        return ck.LeastSquares(1.0 / C, intercept), ("squares", {"lam": 1.0 / C}, intercept)
    quantile = float(rng.uniform(0.05, 0.95))
    return ck.Pinball(C, quantile, intercept), ("pinball", {"C": C, "quantile": quantile}, intercept)


def _kernel(rng: np.random.Generator) -> tuple[ck.Kernel, Any]:
    rate, length = float(10.0 ** rng.uniform(-2.0, 2.0)), float(10.0 ** rng.uniform(-1.0, 1.0))
    order, degree = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    offset = float(rng.random())
    plain = [
        (ck.Gaussian(rate), gaussian(rate)),
        (ck.Linear(), polynomial(1, 0.0)),
        (ck.Polynomial(degree, offset), polynomial(degree, offset)),
        (ck.Matern(order, length), matern(order, length)),
        (ck.TensorMatern(order, length), matern(order, length, is_tensor=True)),
    ]
    (k, f), (other, g) = (plain[i] for i in rng.integers(0, len(plain), 2))
    kind = rng.integers(0, 5)
    if kind == 0:
        return k + other, lambda x, y: f(x, y) + g(x, y)
    if kind == 1:
        return k * other, lambda x, y: f(x, y) * g(x, y)
    if kind == 2:
        return ck.OnColumns(k, [0]), lambda x, y: f(x[:1], y[:1])
    return k, f


def _candidates(rng: np.random.Generator) -> tuple[ck.Family, dict[str, Any]]:
    pairs = [_kernel(rng) for _ in range(int(rng.integers(1, 4)))]
    rule, center = str(rng.choice(["none", "trace", "mean", "variance", "cosine"])), bool(rng.random() < 0.2)
    family = ck.Candidates([pair[0] for pair in pairs], rule, center, allow_duplicates=True)
    return family, {"kernels": [pair[1] for pair in pairs], "normalize": rule, "center": center}


def _with_matrix(rng: np.random.Generator, X: Any) -> tuple[ck.Family, dict[str, Any]]:
    m, n = X.shape
    kind, trace = int(rng.integers(0, 3)), float(10.0 ** rng.uniform(-1.0, 1.5))
    if kind == 0:

        def units(x: Any, y: Any) -> Any:
            return [[1.0 if (i, j) == (x[0], y[0]) else 0.0 for j in range(m)] for i in range(m)]

        numbers = np.arange(m, dtype=float)[:, None]
        parts = {"X": numbers, "products": units, "size": m, "trace": float(m), "is_equality": True}
        return ck.AllKernelMatrices(), parts
    degree = int(rng.integers(0, 3))
    if kind == 1:
        b, size = monomial_products(n, degree)
        return ck.GeneralizedPolynomial(degree, trace), {"products": b, "size": size, "trace": trace}
    degree, z_degree = (degree, 0) if degree == 2 else (degree, int(rng.integers(0, degree + 1)))
    box = ck.Box.around(X, float(10.0 ** rng.uniform(-1.0, 1.0)))
    b, size = tessellated_products(n, degree, z_degree, box.lower, box.upper)
    family = ck.Tessellated(degree, z_degree, box, trace)
    return family, {"products": b, "size": size, "trace": trace, "is_tessellated": True}


def random_case(rng: np.random.Generator) -> tuple[ck.KernelLearning, Case]:
    """A problem, twice: for the library, and as numbers and definitions."""
    X, (loss, description) = _points(rng), _loss(rng)
    family, parts = _candidates(rng) if rng.random() < 0.5 else _with_matrix(rng, X)
    m, outputs = len(X), int(rng.integers(1, 3))
    Y = rng.standard_normal((m, outputs))
    if description[0] == "hinge":
        Y = np.where(Y > 0.0, 1.0, -1.0)
        Y[0], Y[1] = 1.0, -1.0
    weights = rng.random(m) if rng.random() < 0.3 else np.ones(m)
    if rng.random() < 0.2:
        weights[rng.integers(2, m)] = 0.0
    problem = ck.KernelLearning(family, loss, X, Y if outputs > 1 else Y[:, 0], sample_weight=weights)
    return problem, Case(**{"X": X, **parts}, Y=Y.T, weights=weights, loss=description)


def certified(problem: ck.KernelLearning, theta: Any, alpha: Any, witness: Any) -> Any:
    """What is checked: bounds by the library."""
    return problem.rigorous_certificate(theta, alpha, witness)


def _point(rng: np.random.Generator, problem: ck.KernelLearning) -> tuple[Any, Any, Any]:
    """One that a solver found, or one at random."""
    if rng.random() < 0.5:
        solution = problem.solve(tol=1e-6, max_iter=30, max_time=2.0)
        return solution.theta, solution.alpha, solution.witness
    theta = problem.gram_set.initial()
    theta = problem.gram_set.project(theta + 0.3 * float(np.abs(theta).max()) * rng.standard_normal(theta.shape))
    alpha = 10.0 ** rng.uniform(-3.0, 2.0) * rng.standard_normal(problem.Y.shape)
    return theta, alpha, None


def check(seed: int, trial: int, prove: Prove = certified) -> tuple[float, float, ck.KernelLearning]:
    """Violation, and share of the optimum that is charged, of one random problem."""
    rng = np.random.default_rng([seed, trial])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        while True:
            try:
                problem, case = random_case(rng)
            except ck.InvalidInputError:  # two kernels that are the same, a box without volume
                continue
            break
        gap = prove(problem, *_point(rng, problem))
    size = max(abs(gap.upper), abs(gap.lower))
    share = min(1.0, gap.charged / size) if np.isfinite(gap.charged) else 1.0
    return violation(case, gap), share if size > 0.0 else 0.0, problem


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m proofs_check.exact.cases", description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    wrong, charged = 0, []
    for trial in range(options.trials):
        excess, share, problem = check(options.seed, trial)
        charged.append(share)
        if not excess <= 0.0:
            wrong += 1
            print(f"trial {trial}: wrong by {excess:.2e}: {problem!r}", flush=True)
    quantiles = ", ".join(f"{q:.1e}" for q in np.quantile(charged, [0.5, 0.9, 0.99, 1.0]))
    print(f"{options.trials} problems, {wrong} wrong; charged for rounding (median, 90, 99, 100 %): {quantiles}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
