"""Values at rows that a function has not seen, for every kind of function, against functions trained again."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
from sklearn.linear_model import Ridge

from convexkernels import (
    Candidates,
    FixedKernel,
    Gaussian,
    Hinge,
    KernelLearning,
    LeastSquares,
    LeaveOneOut,
    OuterLearning,
)
from convexkernels.arrays import Array
from convexkernels.cells.function import LocalizedFunction
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.cells.wrapped import ClassifierCell, RegressorCell, WrappedLearner
from convexkernels.checking import Verdict
from convexkernels.criteria.folds import split_rows
from convexkernels.estimators import left_out
from proofs_check.claim import Claim
from proofs_check.library.stated import far_targets, gaussian
from proofs_check.risk_formulas import gram, ridge

Generator = np.random.Generator


def hinge_coefficients(K: Array, y: Array, limits: Array) -> Array:
    """The best coefficients w, ``0 <= y w <= limits``, of ``sum limits max(0, 1 - y f) + |f|^2 / 2``, one by one."""
    w, f = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(400):
        for i in range(len(y)):
            better = y[i] * min(max(y[i] * w[i] + (1.0 - y[i] * f[i]) / K[i, i], 0.0), limits[i])
            f += K[i] * (better - w[i])
            w[i] = better
    return w


def measure_folds(factor: float, rng: Generator) -> Verdict:
    """Values of support vector machines at the rows of every fold, trained on the others with their weights and C.

    `factor` multiplies C.
    """
    m, C = 14, float(rng.uniform(0.3, 3.0))
    K, weights = gram(rng, m), rng.uniform(0.1, 3.0, m)
    y = np.where(rng.permutation(m) < m // 2, -1.0, 1.0)
    found, direct = left_out.left_out_values(K, Hinge(C, intercept=False), y[None], weights)[0][0], np.empty(m)
    for train, held in split_rows(y[None], left_out.FOLDS, np.random.default_rng(0)):
        w = hinge_coefficients(K[np.ix_(train, train)], y[train], factor * C * weights[train])
        direct[held] = K[np.ix_(held, train)] @ w
    witness = {"K": K, "y": y, "weights": weights, "values": found, "direct": direct}
    return Verdict(float(np.abs(found - direct).max()), 1e-3, 1, witness)


def without_each(K: Array, y: Array, weights: Array, lam: float, intercept: bool) -> Array:
    """Values at every row by kernel ridge on the others."""
    values = np.empty(len(y))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        w, b = ridge(K[np.ix_(rest, rest)], y[rest], weights[rest], lam, intercept)
        values[i] = K[i, rest] @ w + b
    return values


def measure_sample(factor: float, rng: Generator) -> Verdict:
    """Of a long table a sample is left out row by row, with the part of lam that its weights are of all.

    By a problem with candidates, one with a kernel that is given, and one with an offset and bounds, for targets around
    100; `factor` multiplies lam.
    """
    m, most = 24, 20
    X, y, weights, rate, lam = far_targets(rng, m)
    weights = weights * np.where(np.arange(m) % 3, 1.0, 10.0)
    loss, options = LeastSquares(lam), {"sample_weight": weights}
    family, limits = Candidates([Gaussian(rate)], "none"), (float(y.min()) + 0.2, float(y.max()) - 0.2)
    learned: Any = KernelLearning(family, loss, X, y, sample_weight=weights).solve(tol=1e-8)
    fixed: Any = FixedKernel(Gaussian(rate), loss, X, y, **options).solve(lams=[lam])  # type: ignore[arg-type]
    outer = OuterLearning(family, loss, LeaveOneOut(), X, y, offset=[99.0], bounds=limits, sample_weight=weights)
    verdicts = []
    with patch.object(left_out, "EXACT_ROWS", most):
        found = {
            "candidates": left_out.left_out_of_kernel(learned, False),
            "fixed": left_out.left_out_of_kernel(fixed, False),
            "outer": left_out.left_out_of_problem(
                outer, outer.start(0), lambda rows: gaussian(X[rows], X[rows], rate), False
            ),
        }
    for name, part in found.items():
        rows = part.get("rows")
        share = float(weights[rows].sum() / weights.sum())
        K = gaussian(X[rows], X[rows], rate)
        direct = without_each(K, y[rows], weights[rows], factor * lam * share, True)
        direct = np.clip(direct, *limits) if name == "outer" else direct
        apart = float(np.abs(part.F[0] - direct).max()) + float(np.abs(part.Y[0] - y[rows]).max())
        apart += float(len(rows) != most) + float(np.abs(part.weights - weights[rows]).max())
        verdicts.append(Verdict(apart, 1e-6, 1, {"X": X, "y": y, "weights": weights, "rows": rows, "problem": name}))
    return Verdict.worst(verdicts)


def measure_features(factor: float, rng: Generator) -> Verdict:
    """Rows of the problem ``mean of weighted |f - y|^2 + lam |W|^2`` on features, left out one by one.

    Lam is beside the mean over all rows; `factor` multiplies it.
    """
    m, rate, lam = 9, float(rng.uniform(2.0, 8.0)), float(rng.uniform(0.01, 0.2))
    X, Y, weights = rng.uniform(0.0, 1.0, (m, 2)), rng.standard_normal((m, 2)), rng.uniform(1.5, 6.0, m)
    found = left_out.left_out_of_features(Gaussian(rate), MagicMock(X=X, Y=Y, weights=weights), lam, True)
    price = factor * lam * float(weights.sum())
    direct = np.array([without_each(gaussian(X, X, rate), y, weights, price, True) for y in Y.T])
    return Verdict(float(np.abs(found.F - direct).max()), 1e-9, 1, {"X": X, "Y": Y, "weights": weights})


def measure_constants(factor: float, rng: Generator) -> Verdict:
    """In a cell with a constant the value at a row is the weighted mean of the others; `factor` multiplies targets."""
    m = int(rng.integers(3, 9))
    Y, weights = rng.standard_normal((2, m)), rng.uniform(0.2, 4.0, m)
    cell = KernelLearner(LeastSquares(0.1, intercept=False), clip=9.0).constant(Y, weights)
    found = left_out.left_out_of_cells(LocalizedFunction(MagicMock(), [cell], np.array([m]), 2), True)
    rest = [np.delete(np.arange(m), i) for i in range(m)]
    direct = factor * np.array([[np.average(y[part], weights=weights[part]) for part in rest] for y in Y])
    return Verdict(float(np.abs(found.F - direct).max()), 1e-12, 1, {"Y": Y, "weights": weights, "values": found.F})


# ---- cells of other estimators


def measure_wrapped(factor: float, rng: Generator) -> Verdict:
    """A cell of another estimator learns with the weights of its rows: ridge regression on features is one by a kernel.

    So does every fold of it, for rows that have not been seen; `factor` multiplies the ridge.
    """
    m, lam = 14, float(rng.uniform(0.05, 1.0))
    X, weights = rng.uniform(0.0, 1.0, (m, 2)), rng.uniform(0.1, 3.0, m)
    Y, Z = rng.standard_normal((1, m)), rng.uniform(0.0, 1.0, (5, 2))
    learner = WrappedLearner(Ridge(lam), KernelLearner(LeastSquares(0.1, intercept=False), clip=50.0), classifies=False)
    cell: RegressorCell = learner.learn(CellRows(X, Y, weights), rng)
    w, b = ridge(X @ X.T, Y[0], weights, factor * lam, intercept=True)
    apart = float(np.abs(cell.values(Z)[:, 0] - Z @ X.T @ w - b).max())
    held_out = cell.left_out(3)[0]
    for train, held in split_rows(Y, 3, np.random.default_rng(0)):
        w, b = ridge(X[train] @ X[train].T, Y[0, train], weights[train], factor * lam, intercept=True)
        apart = max(apart, float(np.abs(held_out[held] - X[held] @ X[train].T @ w - b).max()))
    return Verdict(apart, 1e-8, 1, {"X": X, "Y": Y, "weights": weights, "lam": lam})


def measure_unseen_classes(distance: float, rng: Generator) -> Verdict:
    """Classes that a cell has not seen are below every one that it has, by 1 at least, and below 0 by that.

    Values of others are those of the model; `distance` is 1, or false on purpose.
    """
    count, shift = int(rng.integers(3, 6)), float(rng.choice([-30.0, 0.0, 30.0]))
    seen = np.sort(rng.permutation(count)[: int(rng.integers(3, 4) if count > 3 else 2)])
    F = shift + rng.standard_normal((6, len(seen)))
    values = F if len(seen) > 2 else F[:, 1]
    model = MagicMock(classes_=seen)
    model.decision_function.return_value = values
    rows = CellRows(np.zeros((1, 1)), np.zeros((count, 1)), np.ones(1))
    found = ClassifierCell(MagicMock(), rows, model, count).values(np.zeros((6, 1)))
    known = F if len(seen) > 2 else np.column_stack([-F[:, 1], F[:, 1]])
    unseen = np.delete(found, seen, axis=1)
    above = max(
        0.0, float((unseen - known.min(axis=1, keepdims=True)).max()) + distance, float(unseen.max()) + distance
    )
    return Verdict(above + float(np.abs(found[:, seen] - known).max()), 1e-12, 1, {"F": F, "values": found})


def unseen_row_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "left-out-in-folds",
            "Values of support vector machines at rows left out are those of machines trained on the other folds.",
            *(paper, "estimators, rows left out", measure_folds, 1.0, 1.1),
            trials=2,
        ),
        Claim(
            "left-out-of-a-sample",
            "Of long tables a sample is left out row by row, with the part of lam that its weights are of all.",
            *(paper, "estimators, rows left out", measure_sample, 1.0, 1.01),
            trials=2,
        ),
        Claim(
            "left-out-of-features",
            "Rows of a problem on features are left out one by one, with lam beside the mean over all.",
            *(paper, "estimators, rows left out", measure_features, 1.0, 1.01),
            trials=4,
        ),
        Claim(
            "left-out-of-constants",
            "In a cell with a constant the value at a row is the weighted mean of the others.",
            *(paper, "estimators, rows left out", measure_constants, 1.0, 1.001),
        ),
        Claim(
            "cells-of-other-estimators",
            "A cell of another estimator learns with the weights of its rows, and so do those without a fold.",
            *(paper, "cells, other estimators", measure_wrapped, 1.0, 1.01),
            trials=4,
        ),
        Claim(
            "unseen-classes",
            "Classes that a cell has not seen are below all that it has.",
            *(paper, "cells, other estimators", measure_unseen_classes, 1.0, 1.01),
            trials=12,
        ),
    ]
