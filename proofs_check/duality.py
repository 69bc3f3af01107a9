"""Strong duality of the library's convex problems, for every family and every loss in their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels import EpsilonInsensitive, Hinge, KernelLearning, LeastSquares, Logistic, Pinball
from convexkernels.checking import Verdict
from convexkernels.families import FAMILIES, Family
from convexkernels.losses import LOSSES
from convexkernels.solvers.convex.conic import Conic
from proofs_check.claim import Claim

Array = NDArray[np.float64]
Choose = Callable[[KernelLearning, Any], tuple[Array, Array]]
EPS = float(np.finfo(np.float64).eps)

# Relative gap that the solver is asked for, and that the bounds made here have to confirm.
TOL = 1e-5


def total_loss(loss: Any, f: Array, y: Array) -> float:
    """Sum of the losses, from their definitions."""
    if isinstance(loss, Hinge):
        return loss.C * float(np.maximum(0.0, 1.0 - y * f).sum())
    if isinstance(loss, EpsilonInsensitive):
        return loss.C * float(np.maximum(0.0, np.abs(y - f) - loss.epsilon).sum())
    if isinstance(loss, LeastSquares):
        return float(((y - f) ** 2).sum())
    if isinstance(loss, Pinball):
        r = y - f
        return loss.C * float(np.maximum(loss.quantile * r, (loss.quantile - 1.0) * r).sum())
    if isinstance(loss, Logistic):
        return loss.C * float(np.logaddexp(0.0, -y * f).sum())
    raise TypeError(f"no definition of {loss!r} here yet")


def primal_value(problem: KernelLearning, theta: Array, alpha: Array) -> float:
    """Objective of the machine with the whole kernel matrix, the coefficients of `alpha` and its intercept."""
    loss: Any = problem.loss
    found = problem.measure(theta, np.atleast_2d(alpha), problem.gram_set.gram(theta))
    w, y = found.multiples[0] * found.W[0], problem.Y[0]
    f = problem.full_gram_set.gram(theta) @ w
    price = loss.lam if isinstance(loss, LeastSquares) else 0.5
    return total_loss(loss, f + problem.intercept(theta, alpha), y) + price * float(w @ f)


def learned(problem: KernelLearning, solution: Any) -> tuple[Array, Array]:
    return solution.theta, solution.alpha


def not_learned(problem: KernelLearning, solution: Any) -> tuple[Array, Array]:
    """The kernel in the middle of the family, with the machine that is best for it."""
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
    problem = KernelLearning(family, make_loss(), X, y)
    # Only the conic solver learns in a family without a cheap projection.
    solution = problem.solve("auto" if problem.gram_set.has_projection else Conic("CLARABEL"), tol=0.5 * TOL)
    lower = problem.certificate(solution.theta, solution.alpha, solution.witness).lower
    upper = primal_value(problem, *choose(problem, solution))
    size = float(np.abs(solution.theta).max())
    theta = problem.gram_set.project(size * rng.standard_normal(solution.theta.shape))
    anywhere = problem.certificate(theta, rng.standard_normal(12) * float(np.abs(solution.alpha).max()))
    weak = max(0.0, anywhere.lower - upper, lower - anywhere.upper)
    witness = {"X": X, "y": y, "loss": name, "family": repr(family), "theta": solution.theta, "alpha": solution.alpha}
    witness |= {"bounds": np.array([lower, upper]), "random_bounds": np.array([anywhere.lower, anywhere.upper])}
    # Above the optimum by the gap asked for at most, and below the bound by rounding only.
    crossing = Verdict(max(weak, lower - upper), EPS * 12.0**2 * 8.0 * abs(upper), 1, witness)
    return Verdict.worst([crossing, Verdict(max(0.0, upper - lower), TOL * abs(upper), 1, witness)])


def duality_claims(paper: str) -> list[Claim]:
    """One claim per family of the table."""
    return [
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
