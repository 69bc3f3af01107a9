"""What rounding may have taken from the two bounds of a certificate: estimates, which the bounds are charged with."""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.losses.base import Loss

# Terms of products are right to so many units in the last place, and their errors may all point the same way: those
# of centered entries do, and those of a matrix of few different entries.
UNITS = 4.0


def charge_above(loss: Loss, Y: Array, weights: Array, F: Array, W: Array, errors: Array) -> float:
    """What an objective may be too small by, where the values `F` of functions with coefficients `W` are so inexact."""
    # A convex function changes by no more than its steepest slope at the ends.
    slopes = [np.abs(loss.pointwise(Y, end)[1]) for end in (F - errors, F + errors)]
    losses = loss.cost * float(((np.maximum(*slopes) * errors) @ weights).sum())
    return 0.5 * loss.scale * float(np.vdot(np.abs(W), errors)) + losses
