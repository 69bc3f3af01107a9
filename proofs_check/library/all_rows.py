"""Kernel ridge on all rows by conjugate gradients on tiles, against the bordered system of the whole matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels import FixedKernel, Gaussian, LeastSquares
from convexkernels.checking import Verdict
from convexkernels.criteria.folds import held_out_share
from proofs_check.risk_formulas import ridge

# More than one tile, and part of a second one.
ROWS = 560


def measure_all_rows(factor: float, rng: np.random.Generator) -> Verdict:
    """Bounds enclose the optimum at the lam of the least risk on held-out rows, and the function attains it.

    `factor` multiplies lam in the system that is solved directly: 1, or false on purpose.
    """
    X, weights, seed = rng.uniform(0.0, 1.0, (ROWS, 2)), rng.uniform(0.5, 2.0, ROWS), int(rng.integers(2**31))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.3 * (weights - 0.4) * rng.standard_normal(ROWS)
    rate, intercept = float(rng.uniform(5.0, 20.0)), bool(rng.integers(2))
    problem = FixedKernel(Gaussian(rate), LeastSquares(1.0, intercept=intercept), X, y, sample_weight=weights)
    solution = problem.solve("conjugate-gradients", lams=[0.003, 1.0, 30.0], tol=1e-6, random_state=seed)
    K = np.exp(-rate * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    held = held_out_share(ROWS, 0.1, None, np.random.default_rng(seed))
    rest, risks = np.setdiff1d(np.arange(ROWS), held), []
    for lam in solution.trace["lams"]:
        w, b = ridge(K[np.ix_(rest, rest)], y[rest], weights[rest], float(lam), intercept)
        squares = (y[held] - K[np.ix_(held, rest)] @ w - b) ** 2
        risks.append(float(squares @ weights[held] / weights[held].sum()))
    # Candidates are solved to a gap of 1 percent; weights, which grow with the noise, would change risks by a third.
    choice = Verdict(float(np.abs(solution.trace["risks"] / risks - 1.0).max()), 0.08, 1, {"risks": np.array(risks)})
    lam = solution.problem.loss.lam
    taken = float(risks[solution.trace["lams"].tolist().index(lam)] / min(risks) - 1.0)
    w, b = ridge(K, y, weights, factor * lam, intercept)
    f = K @ w
    optimum = float(weights @ (y - f - b) ** 2 + factor * lam * (w @ f))
    bounds: Any = solution.certificate
    outside = max(0.0, bounds.lower - optimum, optimum - bounds.upper, bounds.upper - bounds.lower - 1e-6 * optimum)
    witness = {"bounds": np.array([bounds.lower, bounds.upper]), "optimum": optimum, "lam": lam}
    apart = float(np.abs(solution.decision_function(X) - f - b).max())
    enclosed = Verdict(outside, 1e-9 * optimum, 1, witness)
    return Verdict.worst([choice, Verdict(taken, 0.08, 1, witness), enclosed, Verdict(apart, 1e-2, 1, witness)])
