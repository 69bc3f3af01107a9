"""Strong duality of the library's convex problems, for every family and every loss in their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels import (
    AllKernelMatrices,
    Candidates,
    EpsilonInsensitive,
    Gaussian,
    GeneralizedPolynomial,
    Hinge,
    KernelLearning,
    LeastSquares,
)
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.families import FAMILIES, example_points
from convexkernels.families.base import Family
from convexkernels.losses import LOSSES
from proofs_check.claim import Claim
from proofs_check.risk_formulas import losses

Choose = Callable[[KernelLearning, Any], tuple[Array, Array]]
EPS = float(np.finfo(np.float64).eps)

# Relative gap that the solver is asked for, and that the bounds made here have to confirm.
TOL = 1e-5


def primal_value(name: str, problem: KernelLearning, theta: Array, alpha: Array) -> float:
    """Objective of the functions with the whole kernel matrix, the coefficients of `alpha` and its intercept."""
    loss: Any = problem.loss
    found = problem.measure(theta, np.atleast_2d(alpha), problem.gram_set.gram(theta))
    w, y = found.multiples[0] * found.W[0], problem.Y[0]
    f = problem.full_gram_set.gram(theta) @ w
    total = float(losses(name, loss, y, f + problem.intercept(theta, alpha), np).sum())
    if isinstance(loss, LeastSquares):
        return total + loss.lam * float(w @ f)
    return loss.C * total + 0.5 * float(w @ f)


def learned(problem: KernelLearning, solution: Any) -> tuple[Array, Array]:
    return solution.theta, solution.alpha


def not_learned(problem: KernelLearning, solution: Any) -> tuple[Array, Array]:
    """The kernel in the middle of the family, with the function that is best for it."""
    theta = problem.gram_set.initial()
    return theta, problem.evaluate(theta, tol=TOL).alpha


def measure_duality(subject: tuple[Callable[[], Family], Choose], rng: np.random.Generator) -> Verdict:
    """Look at every loss of the table in turn."""
    names = [name for name, (_, make_loss) in LOSSES.items() if not make_loss().needs_definite]
    return Verdict.worst(
        [measure_one_loss(subject, name, child) for name, child in zip(names, rng.spawn(len(names)), strict=True)]
    )


def measure_one_loss(subject: tuple[Callable[[], Family], Choose], name: str, rng: np.random.Generator) -> Verdict:
    """The primal at the learned kernel meets the dual bound over the whole family, and random points bracket both."""
    make, choose = subject
    X = rng.uniform(0.0, 1.0, (12, 2))
    kind, make_loss = LOSSES[name]
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(12)
    y = np.where(y > np.median(y), 1.0, -1.0) if kind == "labels" else y
    family = make()
    X = example_points(family, X)
    problem = KernelLearning(family, make_loss(), X, y)
    solution = problem.solve(tol=0.5 * TOL)
    lower = problem.certificate(solution.theta, solution.alpha, solution.witness).lower
    upper = primal_value(name, problem, *choose(problem, solution))
    size = float(np.abs(solution.theta).max())
    theta = problem.gram_set.project(size * rng.standard_normal(solution.theta.shape))
    anywhere = problem.certificate(theta, rng.standard_normal(12) * float(np.abs(solution.alpha).max()))
    weak = max(0.0, anywhere.lower - upper, lower - anywhere.upper)
    witness = {"X": X, "y": y, "loss": name, "family": repr(family), "theta": solution.theta, "alpha": solution.alpha}
    witness |= {"bounds": np.array([lower, upper]), "random_bounds": np.array([anywhere.lower, anywhere.upper])}
    # Above the optimum by the gap asked for at most, and below the bound by rounding only.
    crossing = Verdict(max(weak, lower - upper), EPS * 12.0**2 * 8.0 * abs(upper), 1, witness)
    return Verdict.worst([crossing, Verdict(max(0.0, upper - lower), TOL * abs(upper), 1, witness)])


def largest_of_all(bounds: Array) -> float:
    return float(bounds.max())


def first_of_all(bounds: Array) -> float:
    return float(bounds[-1])


def measure_multiple(choose: Callable[[Array], float], rng: np.random.Generator) -> Verdict:
    """The bound of a dual point is the largest of ``c(t alpha) - t^2 max_k w'K_k w / 2``, 0 <= t <= 1."""
    X, C, lam = rng.uniform(0.0, 1.0, (12, 2)), float(rng.uniform(0.5, 5.0)), float(rng.uniform(0.01, 0.5))
    kernels, t = [Gaussian(gamma) for gamma in (0.5, 2.0, 8.0)], np.linspace(0.0, 1.0, 4001)
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    w = y * rng.uniform(0.0, C, 12)
    sigma = max(float(w @ kernel(X) @ w) for kernel in kernels)
    squares = lam / 2.0 * float(w @ w)
    verdicts = []
    for loss, scale, linear, quadratic in (
        (Hinge(C, intercept=False), 1.0, float(y @ w), sigma / 2.0),
        (EpsilonInsensitive(C, 0.1, intercept=False), 1.0, float(y @ w - 0.1 * np.abs(w).sum()), sigma / 2.0),
        (LeastSquares(lam, intercept=False), 2.0 * lam, float(y @ w), sigma / 2.0 + squares),
    ):
        problem = KernelLearning(Candidates(kernels, normalize="none"), loss, X, y)
        found = problem.certificate(np.full(3, 1.0 / 3.0), y * w if loss.of_labels else w).lower
        direct = choose(scale * (t * linear - t * t * quadratic))
        verdicts.append(Verdict(abs(found - direct), 1e-6 * abs(direct), 1, {"w": w, "bound": found, "direct": direct}))
    return Verdict.worst(verdicts)


def measure_envelope(factor: float, rng: np.random.Generator) -> Verdict:
    """``sigma(A*(w w')) = w'K(E) w``, that is ``tau |Z w|^2`` with the monomials Z or the unit vectors."""
    X, w, trace = rng.uniform(0.0, 1.0, (8, 2)), rng.standard_normal(8), float(rng.uniform(0.2, 5.0))
    Z = np.array([X[:, 0] ** i * X[:, 1] ** j for i in range(3) for j in range(3 - i)])
    verdicts = []
    for family, direct in (
        (GeneralizedPolynomial(2, trace), trace * float(((Z @ w) ** 2).sum())),
        (AllKernelMatrices(), 8.0 * float(w @ w)),
    ):
        gram_set, direct = family.on(X), factor * direct
        E: Any = gram_set.envelope()
        V = gram_set.envelope_factor()
        values = [float(w @ gram_set.gram(E) @ w), gram_set.support(gram_set.adjoint(w[None]))[0]]
        values += [] if V is None else [float(((V.T @ w) ** 2).sum())]
        apart = max(abs(value - direct) for value in values)
        verdicts.append(Verdict(apart, 1e-12 * direct, 1, {"X": X, "w": w, "values": values, "direct": direct}))
    return Verdict.worst(verdicts)


def duality_claims(paper: str) -> list[Claim]:
    """One claim per family of the table, and two about where bounds come from."""
    shared = [
        Claim(
            "bound-of-multiples",
            "The bound of a dual point is the best one of its multiples, which are feasible with it.",
            paper,
            "problems, lower bounds",
            measure_multiple,
            largest_of_all,
            first_of_all,
        ),
        Claim(
            "envelopes",
            "Where a family has an envelope E, the support function at w w' is w' K(E) w for every w.",
            paper,
            "families, envelopes",
            measure_envelope,
            1.0,
            1.01,
        ),
    ]
    return shared + [
        Claim(
            f"duality-{name.replace('_', '-')}",
            f"Over the family '{name}' the least primal value is the greatest dual bound, up to the gap asked for, "
            "for every loss.",
            paper,
            "table FAMILIES",
            measure_duality,
            (make, learned),
            (make, not_learned),
            trials=2,
        )
        for name, make in FAMILIES.items()
    ]
