"""Problems as they are stated: in CVXPY, on some of the rows, and with targets far from 0."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from convexkernels import Candidates, FixedKernel, Gaussian, KernelLearning, LeastSquares, LeaveOneOut, OuterLearning
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.families import FAMILIES
from convexkernels.losses import LOSSES
from proofs_check.claim import Claim
from proofs_check.risk_formulas import ridge

Generator = np.random.Generator

# Families whose programs Clarabel can solve, and outputs: cones for weights, matrix inequalities for the others.
STATED = {
    "candidates": 2,
    "candidates_centered_cosine": 1,
    "tessellated_no_z": 1,
    "tessellated_on_landmarks": 1,
    "all_kernel_matrices": 1,
}


def measure_statement(subject: tuple[str, float], rng: Generator) -> Verdict:
    """The optimum of the program, by Clarabel, is between the bounds of what the library learns in a family.

    For the loss with and without an intercept, one output and two, rows with weights; `subject` is the name of the loss
    and a factor of the optimum of the program.
    """
    name, factor = subject
    m, verdicts = 8, []
    for family_name, outputs in STATED.items():
        family, (kind, make_loss) = FAMILIES[family_name](), LOSSES[str(rng.choice([name, f"{name}_no_intercept"]))]
        X, weights, loss = rng.uniform(0.0, 1.0, (m, 2)), rng.uniform(0.3, 3.0, m), make_loss()
        y = np.sin(5.0 * X[:, :1]) + X + 0.2 * rng.standard_normal((m, 2))
        y = np.where(y > np.median(y, axis=0), 1.0, -1.0) if kind == "labels" else y
        y = y[:, 0] if outputs == 1 else y
        problem = KernelLearning(family, loss, X, y, sample_weight=weights)
        bounds: Any = problem.solve(tol=1e-6).certificate
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # where Clarabel is inaccurate the tolerance says enough
            optimum = factor * float(problem.to_cvxpy().problem.solve(solver=cp.CLARABEL))
        outside = max(0.0, bounds.lower - optimum, optimum - bounds.upper, bounds.gap - 1e-6 * bounds.upper)
        witness = {"X": X, "y": y, "weights": weights, "family": repr(family), "loss": repr(loss)}
        witness |= {"bounds": np.array([bounds.lower, bounds.upper]), "optimum": optimum}
        # Clarabel answers to 1e-5 where the kernel matrix is at an end of its set.
        verdicts.append(Verdict(outside, 1e-4 * abs(bounds.upper), 1, witness))
    return Verdict.worst(verdicts)


def gaussian(X: Array, Z: Array, rate: float) -> Array:
    return np.asarray(np.exp(-rate * ((X[:, None] - Z[None]) ** 2).sum(axis=2)))


def far_targets(rng: Generator, m: int) -> tuple[Array, Array, Array, float, float]:
    """Points, targets around 100, weights, the rate of a Gaussian and lam."""
    X, weights = rng.uniform(0.0, 1.0, (m, 2)), rng.uniform(0.3, 3.0, m)
    y = 100.0 + np.sin(6.0 * X[:, 0]) + 0.3 * rng.standard_normal(m)
    return X, y, weights, float(rng.uniform(2.0, 10.0)), float(rng.uniform(0.02, 0.5))


def measure_rows(factor: float, rng: Generator) -> Verdict:
    """A problem on some of the rows is kernel ridge with an intercept on these, whatever the others are.

    Of one candidate, and of one kernel that is given; `factor` multiplies lam.
    """
    X, y, weights, rate, lam = far_targets(rng, 14)
    rows, Z = np.sort(rng.permutation(14)[:9]), rng.uniform(0.0, 1.0, (5, 2))
    w, b = ridge(gaussian(X[rows], X[rows], rate), y[rows], weights[rows], factor * lam, intercept=True)
    direct, loss = gaussian(Z, X[rows], rate) @ w + b, LeastSquares(lam)
    witness, verdicts = {"X": X, "y": y, "weights": weights, "rows": rows, "direct": direct}, []
    for problem in (
        KernelLearning(Candidates([Gaussian(rate)], "none"), loss, X, y, sample_weight=weights),
        FixedKernel(Gaussian(rate), loss, X, y, sample_weight=weights),
    ):
        options: dict[str, Any] = {"lams": [lam]} if isinstance(problem, FixedKernel) else {}
        found = problem.on_rows(rows).solve(tol=1e-10, **options).decision_function(Z)
        verdicts.append(Verdict(float(np.abs(found - direct).max()), 1e-6, 1, witness | {"values": found}))
    return Verdict.worst(verdicts)


def measure_far_targets(factor: float, rng: Generator) -> Verdict:
    """Of targets around 100 functions are kernel ridge with its intercept, clipped where bounds are given.

    By all three problems, and by what one states for another; the search for a kernel, which is that of one candidate
    here, learns deviations from an offset that is given. `factor` multiplies lam.
    """
    X, y, weights, rate, lam = far_targets(rng, 12)
    Z, loss = rng.uniform(0.0, 1.0, (15, 2)), LeastSquares(lam)
    w, b = ridge(gaussian(X, X, rate), y, weights, factor * lam, intercept=True)
    direct, family = gaussian(Z, X, rate) @ w + b, Candidates([Gaussian(rate)], "none")
    limits = float(np.quantile(direct, 0.2)), float(np.quantile(direct, 0.8))
    options: dict[str, Any] = {"sample_weight": weights, "bounds": limits}
    outer = OuterLearning(family, loss, LeaveOneOut(), X, y, offset=[99.0], **options)
    fixed = FixedKernel(Gaussian(rate), loss, X, y, **options)
    found = {
        "learned": KernelLearning(family, loss, X, y, sample_weight=weights).solve(tol=1e-10).decision_function(Z),
        "fixed": fixed.solve(lams=[lam], tol=1e-10).decision_function(Z),
        "outer": outer.function(outer.start(0)).values(Z)[:, 0],
    }
    stated, verdicts = outer.stated_at(outer.start(0)), []
    again = FixedKernel(Gaussian(rate), stated["loss"], X, y, **options | {"bounds": stated["bounds"]})
    found["stated"] = again.solve(lams=[stated["loss"].lam], tol=1e-10).decision_function(Z)
    for name, values in found.items():
        expected = direct if name == "learned" else np.clip(direct, *limits)
        witness = {"X": X, "y": y, "weights": weights, "problem": name, "values": values, "direct": expected}
        verdicts.append(Verdict(float(np.abs(values - expected).max()), 1e-6, 1, witness))
    return Verdict.worst(verdicts)


def stated_claims(paper: str) -> list[Claim]:
    """One claim per loss that bounds the optimum, and two about rows and targets."""
    names = [name for name, (_, make) in LOSSES.items() if not make().needs_definite]
    rest: list[tuple[str, str, Callable[..., Verdict]]] = [
        (
            "problems-on-some-rows",
            "A problem on some of the rows is the problem that is stated on these, also where targets are far from 0.",
            measure_rows,
        ),
        (
            "targets-far-from-0",
            "Of targets around 100 the functions of all problems are kernel ridge with its intercept, clipped where "
            "bounds are given.",
            measure_far_targets,
        ),
    ]
    return [
        *(
            Claim(
                f"statement-{name.replace('_', '-')}",
                f"The statement in CVXPY for the loss '{name}' has the optimum that the library's bounds enclose, with "
                "candidates and with matrices as parameters.",
                *(paper, "problems, programs", measure_statement, (name, 1.0), (name, 1.001)),
                trials=2,
            )
            for name in names
            if not name.endswith("_no_intercept")
        ),
        *(
            Claim(name, statement, *(paper, "problems, rows and targets", measure, 1.0, 1.01), trials=4)
            for name, statement, measure in rest
        ),
    ]
