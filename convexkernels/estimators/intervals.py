"""Intervals that hold a share of the targets, from residuals at rows that the functions have not seen."""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError


def margins(residuals: Array, weights: Array, coverage: float) -> Array:
    """How far below and above a prediction targets lie, in all but a share ``1 - coverage`` of the cases.

    The conformal quantiles of signed left-out residuals, half of what is left out on either side: a new row is a row
    more, of mean weight and with any residual. If rows are exchangeable, an interval of split conformal prediction
    holds the target with at least this probability; the jackknife nearly always does.

    Residuals, targets minus predictions, have shape (m,) or (m, n_outputs); what is returned, (2,) or (n_outputs, 2),
    is to be added to predictions. Too few rows to speak of such rare residuals are refused.
    """
    if not len(weights):
        raise InvalidInputError(
            "No function without a row has a finite value at it, so that nothing is known about residuals; "
            "fit more rows, or a larger regularization parameter."
        )
    share = weights / (weights.sum() + weights.mean())
    tail = 0.5 * (1.0 - coverage)
    if share.sum() < 1.0 - tail:
        most = 1.0 - 2.0 / (len(weights) + 1)
        raise InvalidInputError(
            f"coverage is {coverage:g}, but {len(weights)} rows say nothing about residuals that rare; pass at most "
            f"{np.floor(1e3 * most) / 1e3:g}, or fit more rows."
        )
    # The least residuals up to which the shares reach the level, which rounding must not make miss it.
    level = min(1.0, (1.0 - tail - 1e-12) / float(share.sum()))
    columns = residuals.reshape(len(residuals), -1).T
    ends = [sign * np.quantile(sign * columns, level, 1, weights=share, method="inverted_cdf") for sign in (-1.0, 1.0)]
    return np.stack(ends, axis=-1).reshape(*residuals.shape[1:], 2)
