"""Intervals that hold a share of the targets, from residuals at rows that the functions have not seen."""

import numpy as np
from scipy.stats import mannwhitneyu

from convexkernels.arrays import Array, Mask
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number

# The part of the spread of targets that quantiles are not told apart by: some times what they are learned to.
EDGE = 2e-4
# Probability of a difference by chance below which residuals of rows that nothing has seen count as larger.
CHANCE = 0.01
# How many such rows there have to be, and quantiles of absolute residuals by which their levels are compared.
FEWEST_UNSEEN, LEVELS = 10, (0.5, 0.8, 0.9)


def check_coverage(coverage: float) -> None:
    """Refuse what is no share of the targets."""
    remedy = "It is a share: 0.9 holds nine targets in ten, and no interval of finite length holds all."
    check_number("coverage", coverage, low=0.0, high=1.0, open_low=True, open_high=True, remedy=remedy)


def margins(residuals: Array, weights: Array, coverage: float) -> Array:
    """How far below and above a prediction targets lie, in all but a share ``1 - coverage`` of the cases.

    The conformal quantiles of signed left-out residuals, half of what is left out on either side. If rows are
    exchangeable, an interval of split conformal prediction holds the target with at least this probability; the
    jackknife nearly always does.

    Residuals, targets minus predictions, have shape (m,) or (m, n_outputs); what is returned, (2,) or (n_outputs, 2),
    is to be added to predictions.
    """
    return np.stack([sign * conformal(sign * residuals, weights, coverage, sides=2) for sign in (-1.0, 1.0)], axis=-1)


def as_unseen(residuals: Array, unseen: Mask) -> Array:
    """Residuals at rows that a kernel has seen on the level of those at rows that it has not, where these are larger.

    The rows that nothing has seen, where `unseen` is True, are too few for quantiles of their own. Where chance alone
    makes such ranks of their absolute values in less than one case of a hundred, residuals at other rows are multiplied
    by the least of the ratios of three quantiles of both, for every output by itself. Residuals have shape (m,) or
    (m, n_outputs); rows count alike, whatever their weights.
    """
    columns = residuals.reshape(len(residuals), -1)
    fresh, rest = np.abs(columns[unseen]), np.abs(columns[~unseen])
    if min(len(fresh), len(rest)) < FEWEST_UNSEEN:
        return residuals
    above, below = np.quantile(fresh, LEVELS, axis=0), np.quantile(rest, LEVELS, axis=0)
    # Of residuals that are 0 no multiple is larger.
    ratios = np.divide(above, below, out=np.ones_like(above), where=below > np.finfo(np.float64).eps * above)
    clear = mannwhitneyu(fresh, rest, alternative="greater", axis=0).pvalue < CHANCE
    factors = np.where(clear & ~unseen[:, None], np.maximum(ratios.min(axis=0), 1.0), 1.0)
    return np.asarray((factors * columns).reshape(residuals.shape))


def as_fitted(residuals: Array, m: int, n: int) -> Array:
    """Residuals at some of m rows, to which n numbers of a kernel were fitted, on the level of those at new rows.

    That is what leaving rows out of the functions alone does not show: mean squares at new rows are larger by
    ``(m + n) / (m - n)``, Akaike's final prediction error (1969), of fewer than 2 n rows by three.
    """
    m = max(m, 2 * n)
    return residuals * float(np.sqrt((m + n) / (m - n)))


def between(first: Array, second: Array) -> tuple[Array, Array]:
    """Two quantiles at the same points, the lower one first: functions that were learned each by itself may cross."""
    return np.minimum(first, second), np.maximum(first, second)


def widened(first: Array, second: Array, margin: Array) -> Array:
    """Low and high, shape (..., 2), of what lies between two quantiles and a margin around it, which may be negative.

    What a negative one makes empty is the point in the middle.
    """
    low, high = between(first, second)
    middle = 0.5 * (low + high)
    return np.stack([np.minimum(low - margin, middle), np.maximum(high + margin, middle)], axis=-1)


def margin_around(
    first: Array, second: Array, y: Array, weights: Array, coverage: float, spread: float | Array
) -> Array:
    """The margin around two quantiles with which they hold targets `y` that they have not seen.

    Conformalized quantile regression (Romano, Patterson and Candes, 2019): the conformal quantile of how far targets
    are outside, less than 0 inside. Functions are learned to a tolerance, in units of a spread: a target that many rows
    share is an edge for them, where the last digits would decide whether it is held.
    """
    low, high = between(first, second)
    return conformal(np.maximum(low - y, y - high), weights, coverage) + EDGE * spread


def conformal(scores: Array, weights: Array, coverage: float, sides: int = 1) -> Array:
    """What scores of new rows exceed in a share ``(1 - coverage) / sides`` of the cases at most.

    A new row is a row more, of mean weight and with any score. Scores have shape (m,) or (m, n_outputs), what is
    returned () or (n_outputs,). Too few rows to speak of such rare scores are refused.
    """
    if not len(weights):
        raise InvalidInputError(
            "No function without a row has a finite value at it, so that nothing is known about residuals; "
            "fit more rows, or a larger regularization parameter."
        )
    share = weights / (weights.sum() + weights.mean())
    tail = (1.0 - coverage) / sides
    if share.sum() < 1.0 - tail:
        most = 1.0 - sides / (len(weights) + 1)
        raise InvalidInputError(
            f"coverage is {coverage:g}, but {len(weights)} rows say nothing about residuals that rare; pass at most "
            f"{np.floor(1e3 * most) / 1e3:g}, or fit more rows."
        )
    # The least scores up to which the shares reach the level, which rounding must not make miss it.
    level = min(1.0, (1.0 - tail - 1e-12) / float(share.sum()))
    columns = scores.reshape(len(scores), -1).T
    found = np.quantile(columns, level, 1, weights=share, method="inverted_cdf")
    return np.asarray(found).reshape(scores.shape[1:])
