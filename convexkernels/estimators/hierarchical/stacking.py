"""Functions of simple kernels beside learned ones, each with the share that is best on rows it has not seen.

Weights of a tree that were found on a few hundred noisy rows fit some of the noise. Linear functions, those of decision
stumps and of pairs of them, and for labels those of one Gaussian have one parameter to choose; where they are as good,
a combination is better than each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import pdist

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.base import clipped
from convexkernels.criteria.ridge import path_residuals, residuals_at
from convexkernels.estimators.hierarchical.functions import MeanFunction
from convexkernels.estimators.hierarchical.task import TreeTask
from convexkernels.estimators.left_out import LeftOut
from convexkernels.estimators.probabilities import likeliest
from convexkernels.estimators.relevance import spread_rows
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import typical_of
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.polynomial import Linear
from convexkernels.kernels.rescaled import Rescaled, rescale
from convexkernels.kernels.stumps import Stumps
from convexkernels.linalg import pivoted_cholesky
from convexkernels.losses.fit import fit
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.decision_function import DecisionFunction

# Candidates for lam, over the weight of all rows, and the rank of the matrices that they are compared with.
LAMS, RANK = np.geomspace(1e-6, 1e2, 25), 400
# Root of the squared error, beside that of the first function alone, from which on others are not worth their work.
WORTHWHILE = 0.998
# How much the sum of shares counts beside errors of at most 1.
SUM_TO_ONE = 1e4
# What simple kernels cost, in trainings of one function on all rows: matrices, factorizations and inverses.
SIMPLE_FITS = 16
# Bandwidth of a Gaussian in median distances, which are measured between so many rows.
WIDTH, MEASURED = 0.5, 300
# What pairs of stumps are added to: ``(k + c)^2 = k^2 + 2 c k + c^2``.
SINGLE = 0.25
# What a factor of that rank leaves out of a diagonal about 1: as much as the least lam of a thousand rows.
LEFT_OUT = 1e-3


def simple_kernels(X: Array, with_linear: bool, with_gaussian: bool) -> dict[str, Kernel]:
    """Kernels with nothing to learn, for which all columns of `X` count alike; diagonals are 1/2 to 1 on average."""
    stumps, center, spread = Stumps(X), X.mean(axis=0), X.std(axis=0)
    single = stumps + SINGLE
    kernels: dict[str, Kernel] = {"stumps": stumps, "pairs of stumps": single * single}
    if with_linear:
        kernels = {"linear": Rescaled(Linear(), center, spread * np.sqrt(X.shape[1])), **kernels}
    if with_gaussian:
        width = WIDTH * typical_of(pdist(rescale(X[spread_rows(len(X), MEASURED)], center, spread)))
        kernels["gaussian"] = Rescaled(Gaussian(0.5 / width**2), center, spread)
    return kernels


def stacked(
    function: Any,
    seen: LeftOut,
    task: TreeTask,
    parts: Sequence[Index] | None,
    rows: tuple[Index, Array, Array] | None,
    labels: bool,
    clock: Clock,
) -> tuple[Any, LeftOut]:
    """The best combination of a function with those of simple kernels, and its values at rows it has not seen.

    As many of them as there is time for; one interrupt ends the work, and keeps what there is. `seen` are values at the
    rows of the task by functions of its kind that have not seen the row, `parts` rows that were held out together (None
    for every row by itself), `rows` those of a table, where rows of the task are its points.
    """
    names, functions, values = ["learned"], [function], [seen.F]
    try:
        # Of many numbers a linear function goes astray at outliers, of few rows it may be all that they tell. Labels of
        # classes that are balls say too little of a weight for each column.
        kernels = simple_kernels(task.X, with_linear=labels or parts is not None, with_gaussian=labels)
        for name, kernel in kernels.items():
            if clock.is_over:
                clock.cut("the combination with other kernels")
                break
            found = ridge(kernel, seen, task, parts, clock)
            if found is not None:
                names.append(name)
                functions.append(found[0])
                values.append(found[1])
    except KeyboardInterrupt:
        clock.interrupt()
    points, Y, weights = (slice(None), seen.Y, seen.weights) if rows is None else rows
    shares = (likeliest_shares if labels else nearest_shares)([F[:, points] for F in values], Y, weights)
    if shares[0] == 1.0:
        return function, seen
    told = (f"{name} {share:.2f}" for name, share in zip(names, shares, strict=True))
    clock.show.note(f"what predicts, with shares that are best on rows held out: {', '.join(told)}")
    F = np.asarray(sum(share * part for share, part in zip(shares, values, strict=True)))
    return MeanFunction(functions, shares, tuple(names)), replace(seen, F=F)


def ridge(
    kernel: Kernel, seen: LeftOut, task: TreeTask, parts: Sequence[Index] | None, clock: Clock
) -> tuple[DecisionFunction, Array] | None:
    """Ridge regression with an intercept, and its values at rows held out; lam is the one of their least error.

    None where arithmetic breaks down.
    """
    X, Y, weights = task.X, seen.Y, seen.weights / seen.weights.mean()
    bounds = (np.full((len(Y), 1), -1.0), np.full((len(Y), 1), 1.0)) if task.clip else None
    found = clock.once(
        lambda: _ridge(kernel(X), Y, weights, parts, bounds), "ridge", kernel, X, Y, weights, parts, bounds
    )
    if not found:
        return None
    function = DecisionFunction.of_kernel(kernel, X, found["W"], found["b"], bounds=bounds)
    return function, clipped(Y - found["residual"], bounds)[0]


def _ridge(K: Array, Y: Array, weights: Array, parts: Sequence[Index] | None, bounds: Any) -> dict[str, Any]:
    """Coefficients, intercepts and residuals at rows held out; nothing where arithmetic breaks down."""
    Z, _ = pivoted_cholesky(lambda rows: K[rows], K.diagonal(), RANK, LEFT_OUT)
    lams = len(K) * LAMS
    path = path_residuals(Z, Y, weights, lams, parts, intercept=True)
    risks = [float(((clipped(Y - residual, bounds)[0] - Y) ** 2 @ weights).sum()) for residual in path]
    lam = float(lams[int(np.argmin(risks))])
    residual = residuals_at(K.copy(), Y, weights, lam, parts, intercept=True)
    if residual is None:
        return {}
    found = fit(LeastSquares(lam), K, Y, weights)
    return {"W": found.W, "b": found.b, "residual": residual}


def likeliest_shares(F: Sequence[Array], Y: Array, weights: Array) -> Array:
    """Shares, >= 0 with sum 1, of functions in the combination that makes labels likeliest by a sigmoid or a softmax.

    Each of F has values at rows that its function has not seen, shape (n_outputs, m), as Y, which is positive for the
    class of the row, or for the second of two. All to the first where none says anything.
    """
    units = np.array([float(np.sqrt(np.mean(values**2))) or 1.0 for values in F])
    codes: Index = (Y[0] > 0.0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0)
    found = likeliest([values.T / unit for values, unit in zip(F, units, strict=True)], codes, weights) / units
    found[[not values.any() for values in F]] = 0.0
    total = float(found.sum())
    return found / total if total > 0.0 else np.eye(len(F))[0]


def nearest_shares(F: Sequence[Array], Y: Array, weights: Array) -> Array:
    """Shares, >= 0 with sum 1, of functions in the combination with the least squared error; outputs count alike.

    Arguments as of `likeliest_shares`, with targets of any size. All to the first where the others hardly make it
    better.
    """
    spread = np.sqrt(np.average((Y - np.average(Y, axis=1, weights=weights)[:, None]) ** 2, axis=1, weights=weights))
    root = np.sqrt(weights) / np.where(spread > 0.0, spread, 1.0)[:, None]
    errors = np.array([(root * (values - Y)).ravel() for values in F])
    # With sum 1 the error is a combination of errors: the smallest point of their convex hull.
    size = float(np.abs(errors).max()) or 1.0
    hull, target = np.vstack([errors.T / size, np.full((1, len(F)), SUM_TO_ONE)]), np.zeros(Y.size + 1)
    target[-1] = SUM_TO_ONE
    found = nnls(hull, target)[0]
    shares: Array = found / found.sum()
    is_better = np.linalg.norm(shares @ errors) <= WORTHWHILE * np.linalg.norm(errors[0])
    return shares if is_better else np.eye(len(F))[0]
