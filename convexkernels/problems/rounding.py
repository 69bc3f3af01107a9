"""What rounding may have taken from the two bounds of a certificate: estimates, which the bounds are charged with."""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.factored import FactoredGram
from convexkernels.losses.base import Loss

# Errors of products are those of their terms, of a few units in the last place each, and independent.
UNITS = 4.0
# Rows of K that are looked at together.
ROWS = 512


def charge_above(loss: Loss, Y: Array, weights: Array, F: Array, values: Array, squares: Array) -> float:
    """What an objective may be too small by, where values `F` may be off by `values` and squared norms by `squares`."""
    # A convex function changes by no more than its steepest slope at the ends.
    slopes = [np.abs(loss.pointwise(Y, end)[1]) for end in (F - values, F + values)]
    losses = loss.cost * float(((np.maximum(*slopes) * values) @ weights).sum())
    return 0.5 * loss.scale * float(squares.sum()) + losses


def rounding_of(K: Array | FactoredGram, W: Array) -> tuple[Array, Array]:
    """What rounding makes of ``K w`` and of ``w' K w`` for every row w of `W`: shapes (k, m) and (k,).

    An estimate that a few digits more do not contradict; bounds that hold in exact arithmetic are another matter. It
    is next to nothing until K times the largest coefficients has lost the digits of the answer.
    """
    if isinstance(K, FactoredGram):
        return rounding_by_diagonal(K.diagonal(), W)
    squares = np.empty(W.shape)
    for start in range(0, len(K), ROWS):
        squares[:, start : start + ROWS] = W**2 @ np.square(K[start : start + ROWS], dtype=np.float64).T
    unit = UNITS * np.finfo(np.float64).eps
    return unit * np.sqrt(squares), unit * np.sqrt(np.einsum("km,km->k", W**2, squares))


def rounding_by_diagonal(diagonal: Array, W: Array) -> tuple[Array, Array]:
    """The same by ``k(x, z)^2 <= k(x, x) k(z, z)``, without a look at the matrix; it is not below the other."""
    unit = UNITS * np.finfo(np.float64).eps
    total = np.square(W) @ diagonal
    return unit * np.sqrt(np.outer(total, diagonal)), unit * total
