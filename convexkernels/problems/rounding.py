"""What rounding may have taken from the two bounds of a certificate: estimates, which the bounds are charged with."""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import DualityGap
from convexkernels.families.base import sizes_by_diagonal
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit

# Terms of products are right to so many units in the last place, and their errors may all point the same way: those
# of centered entries do, and those of a matrix of few different entries.
UNITS = 4.0
UNIT = UNITS * float(np.finfo(np.float64).eps)


def charge_above(loss: Loss, Y: Array, weights: Array, F: Array, W: Array, errors: Array) -> float:
    """What an objective may be too small by, where the values `F` of functions with coefficients `W` are so inexact."""
    # A convex function changes by no more than its steepest slope at the ends; and its values are summed.
    values, slopes = zip(*(loss.pointwise(Y, end) for end in (F - errors, F + errors)), strict=True)
    changes = np.maximum(*map(np.abs, slopes)) * errors + UNIT * np.maximum(*values)
    return 0.5 * loss.scale * float(np.vdot(np.abs(W), errors)) + loss.cost * float((changes @ weights).sum())


def charged_gap(
    loss: Loss, Y: Array, weights: Array, squares: Array, found: Fit, F: Array, lowest: Fit | None = None
) -> DualityGap:
    """Bounds of one kernel from the functions `found`, whose values without intercepts are ``F = W K``.

    `squares` are the sizes that entries of K are right to (``Kernel._sizes``); `lowest` has the dual variables behind
    the lower bound, those of `found` where it is not given.
    """
    lowest = found if lowest is None else lowest
    if not np.isfinite(found.upper):
        return DualityGap(found.upper, 0.0)
    b, W = found.multiples * found.b, found.multiples[:, None] * found.W
    values = found.multiples[:, None] * F + b[:, None]
    errors = UNIT * (sizes_by_diagonal(squares, W) + loss.inexact(Y, values, b))
    above = charge_above(loss, Y, weights, values, W, errors)
    sizes = 0.5 * sizes_by_diagonal(squares, lowest.W) + loss.sizes(Y)
    below = loss.scale * UNIT * float(np.vdot(np.abs(lowest.W), sizes))
    return DualityGap(found.upper + above, max(0.0, lowest.value - below), charged=above + below)
