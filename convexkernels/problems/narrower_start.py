"""Where a search begins: at a narrower kernel, where least squares say that functions change quickly."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.criteria.base import LARGEST_LOG_LAM
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.losses.least_squares import LeastSquares

# Rows at most, and at least, on which starts are compared, values of lam for rows of unit weight, and the part of the
# error of the plainest one that another has to have.
START_ROWS, FEWEST_ROWS, START_LAMS, CLEARLY_LESS = 300, 20, np.geomspace(1e-4, 1e1, 6), 0.9
# Between these lam begins, well within what criteria know.
USUAL_LAMS = float(np.exp(5.0 - LARGEST_LOG_LAM)), float(np.exp(LARGEST_LOG_LAM - 5.0))


def narrower_start(problem: Any, theta: Array) -> Array:
    """A point of an `OuterLearning`, or that of a narrower kernel with a lam, as its `best_start` says."""
    z = problem.split(theta)[0]
    others = problem.gram_set.narrower(z)
    if not (others and problem.criterion.learns_lam) or problem.m < FEWEST_ROWS:
        return theta
    some = problem.on_rows(np.sort(np.random.default_rng(0).permutation(problem.m)[:START_ROWS]))
    least = _left_out_errors(some, z).min()
    errors = np.array([_left_out_errors(some, other) for other in others])
    i, j = np.unravel_index(errors.argmin(), errors.shape)
    if errors[i, j] >= CLEARLY_LESS * least:
        return theta
    return problem.joined(others[i], float(np.log(np.clip(START_LAMS[j] * problem.weights.mean(), *USUAL_LAMS))))


def _left_out_errors(problem: Any, z: Array) -> Array:
    """Errors of least squares at rows left out, for a few lam, by the kernel of a point; inf where it has none."""
    at = problem.gram_set.at(z)
    if at is None:
        return np.full(len(START_LAMS), np.inf)
    squares = LeaveOneOut().on(LeastSquares(intercept=problem.loss.intercept), problem.Y, problem.weights)
    return squares.along(at.gram(), START_LAMS * float(problem.weights.mean()))
