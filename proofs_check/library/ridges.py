"""Training values of matrices with a diagonal of their own, and weights of penalties chosen along paths."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from convexkernels import (
    Concatenations,
    EpsilonInsensitive,
    Hinge,
    Interpolation,
    LeastSquares,
    Matern,
    OuterLearning,
    Polynomial,
)
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.criteria.training_value import TrainingValue
from convexkernels.solvers.nonconvex.paths import PAPER_GRID, select_weights
from proofs_check.claim import Claim
from proofs_check.risk_formulas import gram, losses
from proofs_check.risk_formulas import ridge as kernel_ridge

Generator = np.random.Generator


def measure_ridged_value(factor: float, rng: Generator) -> Verdict:
    """For losses of many optima V(K) is the value of ``K + ridge mean(diag K) I``, and its slope that of V.

    The value by the primal program in CVXPY, the slope by differences. Squares have one optimum, of the rows that have
    weight, and no ridge. `factor` multiplies the ridge.
    """
    name, m, lam, ridge = str(rng.choice(["hinge", "epsilon_insensitive"])), 8, float(rng.uniform(0.05, 0.5)), 0.3
    loss: Any = (Hinge(1.0, intercept=False) if name == "hinge" else EpsilonInsensitive(1.0, 0.1, intercept=False)).at(
        lam
    )
    K, weights = float(rng.uniform(0.5, 3.0)) * gram(rng, m), rng.uniform(0.5, 2.0, m)
    y = rng.choice([-1.0, 1.0], m)
    bound = TrainingValue(ridge=ridge).on(loss, y[None], weights)
    here = bound(K.copy(), 0.0)
    whole = K + factor * ridge * float(np.mean(np.diag(K))) * np.eye(m)
    root, a = np.linalg.cholesky(whole), cp.Variable(m)
    cost = weights @ losses(name, loss, y, root @ a, cp) + lam * cp.sum_squares(a)
    best = float(cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL))
    G = rng.standard_normal((m, m))
    direction = (G + G.T) / np.linalg.norm(G + G.T) + 0.5 * np.eye(m)

    def along(t: float) -> tuple[float, float]:
        value = float(bound(K + t * direction, 0.0).value)
        return value, 1e-9 * abs(value)

    slope, error = richardson_derivative(along, 1e-3)
    claimed, witness = float(np.sum(here.slopes()[0] * direction)), {"K": K, "y": y, "lam": lam, "loss": name}
    value = Verdict(abs(here.value - best), 1e-6 * best, 1, witness)
    squares = LeastSquares(lam, intercept=False)
    found = TrainingValue(ridge=ridge).on(squares, y[None], np.append(weights[1:], 0.0))(K.copy(), 0.0).value
    least = lam * float(y[:-1] @ kernel_ridge(K[:-1, :-1], y[:-1], weights[1:], lam, intercept=False)[0])
    value = Verdict.worst([value, Verdict(abs(found - least), 1e-9 * least, 1, witness)])
    return Verdict.worst([value, Verdict(abs(claimed - slope), 8.0 * error + 1e-4 * abs(slope), 1, witness)])


def measure_constant(factor: float, rng: Generator) -> Verdict:
    """The constant of least weighted squares for a loss that allows no error: where the slope of the squares is 0."""
    Y, weights = rng.standard_normal((2, 7)), rng.uniform(0.2, 3.0, 7)
    found = Interpolation().constant(Y, weights)
    slope = np.array([float(weights @ (factor * y - b)) for y, b in zip(Y, found, strict=True)])
    return Verdict(float(np.abs(slope).max()), 1e-12, 1, {"Y": Y, "weights": weights})


def measure_paths(factor: float, rng: Generator) -> Verdict:
    """Risks of weights are weighted means over held-out rows of losses of what was learned from the others.

    Of one pair, whose values at all rows are told; with targets far from 0, from which functions learn deviations.
    Pairs of the paper are 2^(1 - 2t), t = 1, ..., 10. `factor` multiplies values.
    """
    X, weights = rng.uniform(0.0, 1.0, (12, 2)), rng.uniform(0.3, 3.0, 12)
    y = 5.0 + np.sin(5.0 * X[:, 0]) + 0.2 * rng.standard_normal(12)
    family = Concatenations([Matern(order=2), Polynomial(1)], mu=0.1)
    problem = OuterLearning(
        family, LeastSquares(0.1, intercept=False), TrainingValue(), X, y, sample_weight=weights, offset=[5.0]
    )
    found = select_weights(
        problem, lambda part, lam, mu: part.with_loss(part.loss.at(lam)), [0.1], [0.1], n_splits=3, n_restarts=1
    )
    assert found.held_out is not None
    rows, F = found.held_out
    direct = float(weights[rows] @ (y[rows] - factor * F[0]) ** 2 / weights[rows].sum())
    wrong = float(sorted(rows.tolist()) != list(range(12)))
    wrong += float(np.abs(np.log2(PAPER_GRID) - np.arange(-1.0, -20.0, -2.0)).max())
    return Verdict(abs(found.risks[0, 0] / direct - 1.0) + wrong, 1e-9, 1, {"X": X, "y": y, "F": F})


def ridge_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "training-value-with-a-ridge",
            "For losses of many optima the training value is that of a matrix with a larger diagonal, and so is its "
            "slope.",
            *(paper, "criteria, TrainingValue", measure_ridged_value, 1.0, 1.01),
            trials=4,
        ),
        Claim(
            "constant-of-interpolation",
            "The best constant of a loss that allows no error is the weighted mean of the targets.",
            *(paper, "losses, interpolation", measure_constant, 1.0, 1.001),
        ),
        Claim(
            "risks-along-paths",
            "Weights of norms are compared by weighted mean losses at rows held out, of what others have taught.",
            *(paper, "solvers, paths", measure_paths, 1.0, 1.001),
            trials=2,
        ),
    ]
