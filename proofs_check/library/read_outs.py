"""Read-outs of classes, against the same problem stated for CVXPY, and what they are to notice."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.special import log_softmax

from convexkernels.arrays import Array, Index
from convexkernels.checking import Verdict
from convexkernels.criteria.folds import split_rows
from convexkernels.estimators.read_out import CLEARLY, FOLDS, RIDGE, ReadOut, held_out_scores, read_out_for
from proofs_check.claim import Claim

Generator = np.random.Generator


def unlikelihood(A: Array, c: Array, F: Array, codes: Index, weights: Array) -> float:
    """Minus the weighted logarithm of the likelihood, and the prior with the slope for all that suits it best."""
    slopes = -F.std(axis=0).mean() * A[~np.eye(len(c), dtype=bool)]
    prior = 0.5 * RIDGE * float(((slopes - slopes.mean()) ** 2).sum())
    return prior - float(weights @ log_softmax(F @ A + c, axis=1)[np.arange(len(F)), codes])


def least_unlikelihood(F: Array, codes: Index, weights: Array) -> float:
    """The least value, by an interior-point method."""
    n = F.shape[1]
    others = 1.0 - np.eye(n)
    N, c, slope = cp.Variable((n, n), nonneg=True), cp.Variable(n), cp.Variable(nonneg=True)
    scores = np.ones((len(F), 1)) @ cp.reshape(c, (1, n), order="C") - F @ cp.multiply(others, N)
    own = cp.sum(cp.multiply(np.eye(n)[codes], scores), axis=1)
    apart = cp.multiply(others, F.std(axis=0).mean() * N - slope)
    losses = weights @ (cp.log_sum_exp(scores, axis=1) - own)
    problem = cp.Problem(cp.Minimize(losses + 0.5 * RIDGE * cp.sum_squares(apart)))
    return float(problem.solve(solver=cp.CLARABEL))  # type: ignore[no-untyped-call]


def measure_read_out(factor: float, rng: Generator) -> Verdict:
    """No scores of their form are likelier, by weights and with the prior; `factor` multiplies the matrix."""
    m, n = 40, 3
    codes, weights = rng.integers(0, n, m), rng.uniform(0.2, 3.0, m)
    F = 5.0 + 0.1 * rng.standard_normal((m, n)) + 0.05 * (codes[:, None] == np.arange(n)) * rng.uniform(0.0, 4.0, n)
    found = ReadOut.of(F, codes, weights)
    best = least_unlikelihood(F, codes, weights)
    # What the factor changes at the mean is no matter of slopes.
    c = found.c + (1.0 - factor) * F.mean(axis=0) @ found.A
    apart = unlikelihood(factor * found.A, c, F, codes, weights) - best
    apart += float(max(0.0, found.A.max())) + float(np.abs(np.diag(found.A)).max())
    return Verdict(abs(apart), 1e-4 * best, 1, {"F": F, "codes": codes, "weights": weights})


def measure_choice(more: float, rng: Generator) -> Verdict:
    """A read-out is taken where it is right at more of the rows of other folds, by two standard errors.

    Rows count by their weights; `more` is added to how many standard errors are asked for.
    """
    m, wrong, near = 60, 0, []
    for spread in np.geomspace(0.05, 3.0, 12):
        t = rng.uniform(-1.0, 1.0, m)
        codes, weights = np.digitize(t, [-1 / 3, 1 / 3]), np.where(rng.integers(0, 6, m), 1.0, 25.0)
        F, Y = np.array([-t, np.full(m, -0.4), t]), np.where(codes == np.arange(3)[:, None], 1.0, -1.0)
        F += spread * rng.standard_normal(F.shape)
        scores = np.empty_like(F)
        for train, held in split_rows(Y, FOLDS, np.random.default_rng(0)):
            scores[:, held] = ReadOut.of(F[:, train].T, codes[train], weights[train])(F[:, held].T).T
        wrong += int(np.abs(scores - held_out_scores(F, Y, weights)).max() > 1e-9)
        right = [values.argmax(axis=0) == codes for values in (F, scores)]
        gained = weights * (right[1].astype(np.float64) - right[0])
        told = gained.sum() / max(float(np.sqrt((gained**2).sum())), 1e-300)
        near.append(told)
        wrong += int((told > CLEARLY + more) != (read_out_for(F, Y, weights)[0] is not None))
    return Verdict(float(wrong), 0.0, 1, {"standard errors": np.array(near)})


def measure_leaks(slope: float, rng: Generator) -> Verdict:
    """Means of all other rows say nothing about the label of a row: scores of classes that nothing tells are all alike.

    `slope` is 0, or what a read-out makes of a mean on purpose.
    """
    m, n = 120, 3
    codes = rng.choice(n, m, p=[0.6, 0.25, 0.15])
    Y = np.where(codes == np.arange(n)[:, None], 1.0, -1.0)
    F = (Y.sum(axis=1)[:, None] - Y) / (m - 1.0)
    scores = held_out_scores(F, Y, np.ones(m)) - slope * (m - 1.0) * F
    P = np.exp(log_softmax(scores, axis=0))
    apart = float(np.abs(P.mean(axis=1) - np.bincount(codes, minlength=n) / m).max()) + float(P.std(axis=1).max())
    return Verdict(apart, 0.05, 1, {"codes": codes, "P": P})


def read_out_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "read-outs",
            "Read-outs of classes are the likeliest scores of their form, by weights and with the prior.",
            *(paper, "estimators, read-outs", measure_read_out, 1.0, 1.1),
            trials=4,
        ),
        Claim(
            "read-outs-taken",
            "A read-out is taken where it is right at more rows that it has not seen, by two standard errors.",
            *(paper, "estimators, read-outs", measure_choice, 0.0, 2.0),
            trials=2,
        ),
        Claim(
            "read-outs-of-means",
            "Means of all other rows do not give the label of a row away to a read-out.",
            *(paper, "estimators, read-outs", measure_leaks, 0.0, 1.0),
            trials=4,
        ),
    ]
