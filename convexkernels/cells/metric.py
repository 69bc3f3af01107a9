"""The metric in which a table is divided into cells: that of a kernel learned first, on a sample of its rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.cells.learner import is_constant
from convexkernels.cells.sampling import Keys, least
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.criteria.ridge import residuals_at
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.families.curved.widths import Widths, weights_of
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.losses.epsilon_insensitive import deviation_of
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status
from convexkernels.solvers.nonconvex.stochastic import Stochastic
from convexkernels.threads import threads_for

# exp(-|s * (x - x')|^2 / 2), the kernel of `Widths`, is exp(-|s * (x - x')|^2 / width^2) for this width.
LEARNED_WIDTH = float(np.sqrt(2.0))
# Rows that a search draws from, rows of one of its steps (for one width), steps of so many rows, and shorter ones.
SAMPLE, STEP_ROWS, FEW_STEP_ROWS, STEPS, SHORT_STEPS = 10_000, 1000, 300, 40, 80
# The search may take this share of the time that there is; cells learn in the rest.
SHARE = 0.25
# With fewer rows, in all or for each feature, a weight per feature is more than they can tell. A number tells more than
# a label: with 80 training rows of tables with up to 20 features (three draws each) R^2 of cells gained .035 in the
# mean and nowhere lost, but accuracy lost .027 (heart .08); with 60 R^2 of kin40k, pendulum and space_ga lost .3.
LEAST_ROWS, LEAST_NUMBERS, ROWS_PER_FEATURE = 100, 80, 5
# With fewer rows, as weights count them, errors at those left out say nothing of a tube: four of sin(3 x) had larger
# errors by .05.
LEAST_OF_ERRORS = 10
# Rows of a smaller part of the mean weight are as good as absent, and one over their weight has no single precision.
LEAST_WEIGHT = 1e-20
# Rows on which a weight per feature is compared with one for all.
COMPARED_ROWS = 700
# n weights found on m rows lower the risk at these by a share n / m of what rows themselves say, and raise that at
# others by as much: they have to gain twice that (Akaike's price). On 37 tables, a quarter of whose rows was kept from
# all of it, 22 of 65 fits gained more than half a point so, and 3 lost as much; with a gain of a tenth 14 and 3.
PRICE = 2.0


def learned_metric(
    X: Array,
    Y: Array,
    weights: Array,
    clock: Clock,
    seed: int,
    keys: Keys | None = None,
    tied: Sequence[Index] = (),
    of_errors: bool = False,
) -> tuple[Array | None, float]:
    """Factors of the features, shape (n_features,), that make the leave-one-out risk of least squares small.

    With them comes the deviation of errors at rows left out. No factors where one for all is about as good, or there
    are too few rows or features; then no error is known (NaN), unless it is asked for (`of_errors`). Targets are in
    [-1, 1], and predictions are clipped to it. Rows are drawn by their `keys`, where there are some; features of one of
    the groups that are `tied` share a factor. An interrupt is raised: there is nothing to use the best point of the
    search for.
    """
    shares = weights / weights.sum()
    tells_errors = of_errors and 1.0 / np.square(shares).sum() > LEAST_OF_ERRORS - 0.5
    if is_constant(Y) or not (tells_widths(X, Y, tied) or tells_errors):
        return None, np.nan
    each = f"each of {_count(X, tied)} features" if tells_widths(X, Y, tied) else "all features, and errors with it,"
    clock.show.note(f"a width for {each} is learned")
    bounds = (-1.0, 1.0) if len(Y) == 1 else None
    found = learned_widths(Gaussian(0.5), X, Y, weights, clock, seed, bounds, keys, tied)
    pays = found.share < 1.0 - PRICE * _count(X, tied) / min(len(X), SAMPLE)
    return found.by_feature if pays else None, found.deviation


@dataclass(frozen=True, eq=False)
class LearnedWidths:
    """Factors of features, shape (n_features,), that make a leave-one-out risk small.

    The same for all (`alike`) and one for each, None where there are too few rows; `share` is the risk of these over
    that of the others, `deviation` that of the errors of the better ones at rows left out, NaN where it is not known.
    """

    alike: Array
    by_feature: Array | None
    share: float
    deviation: float


def _count(X: Array, tied: Sequence[Index]) -> int:
    """Number of weights, where features of a group share one."""
    return int(weights_of(X.shape[1], tied).max()) + 1


def tells_widths(X: Array, Y: Array, tied: Sequence[Index] = ()) -> bool:
    """Whether a table has rows enough for a weight of each of its several features; targets -1 and 1 are labels."""
    m, n = len(X), _count(X, tied)
    least = LEAST_ROWS if (np.abs(Y) == 1.0).all() else LEAST_NUMBERS
    return n > 1 and m >= max(least, ROWS_PER_FEATURE * n)


def learned_widths(
    kernel: Kernel,
    X: Array,
    Y: Array,
    weights: Array,
    clock: Clock,
    seed: int,
    bounds: tuple[float, float] | None = None,
    keys: Keys | None = None,
    tied: Sequence[Index] = (),
) -> LearnedWidths:
    """The factors for a kernel; other arguments are those of `learned_metric`, predictions are clipped to `bounds`."""
    # The search begins with a lam for rows of weight 1.
    weights = np.maximum(weights * (len(weights) / weights.sum()), LEAST_WEIGHT)
    piece = clock.piece("widths and errors", kernel, X, Y, weights, seed, bounds, [group.tolist() for group in tied])
    if known := piece.found:
        return LearnedWidths(known["alike"], known.get("by_feature"), float(known["share"]), float(known["deviation"]))
    rng = np.random.default_rng(seed)
    drawn = rng.random(len(X)) if keys is None else keys
    rows, few = least(drawn, SAMPLE), least(drawn, COMPARED_ROWS)

    def problem(per_feature: bool, rows: Index) -> OuterLearning:
        family, loss = Widths(kernel, per_feature, tied), LeastSquares(lam=1.0, intercept=False)
        options: dict[str, Any] = {"sample_weight": weights[rows], "bounds": bounds}
        return OuterLearning(family, loss, LeaveOneOut(), X[rows], Y[:, rows].T, **options)

    def search(most: int, count: int) -> Stochastic:
        size = min(most, max(50, count // 3))
        return Stochastic(size=size, max_iter=STEPS if size == STEP_ROWS else SHORT_STEPS, random_state=rng)

    def deviation_at(factors: Array, log_lam: float) -> float:
        Z = X[few] * factors
        residuals = residuals_at(kernel(Z, Z), Y[:, few], weights[few], float(np.exp(log_lam)), None)
        if residuals is None:
            return np.nan
        F = Y[:, few] - residuals
        return deviation_of(Y[:, few] - (F if bounds is None else np.clip(F, *bounds)), weights[few])

    alike = _solved(problem(False, few), search(FEW_STEP_ROWS, len(few)), clock)
    factor = np.full(X.shape[1], np.exp(alike.theta[0]))
    if not tells_widths(X, Y, tied):
        if alike.status is Status.TIME_LIMIT:  # errors of a search that was cut say nothing
            return LearnedWidths(factor, None, np.inf, np.nan)
        deviation = deviation_at(factor, alike.theta[-1])
        piece.keep(alike=factor, share=np.inf, deviation=deviation)
        return LearnedWidths(factor, None, np.inf, deviation)
    each = _solved(problem(True, rows), search(STEP_ROWS, len(rows)), clock)
    share = float(problem(True, few).certificate(each.theta).value / alike.certificate.value)
    by_feature = np.exp(each.theta[:-1])[weights_of(X.shape[1], tied)]
    better = (by_feature, each.theta[-1]) if share < 1.0 else (factor, alike.theta[-1])
    found = LearnedWidths(factor, by_feature, share, deviation_at(*better))
    if Status.TIME_LIMIT not in (alike.status, each.status):
        piece.keep(**vars(found))
    return found


def _solved(problem: OuterLearning, search: Stochastic, clock: Clock) -> Solution:
    """The end of a search; the limit of time is told by the whole, and an interrupt is not for it to keep."""
    with warnings.catch_warnings(), threads_for(search.rows(problem.m)):
        warnings.simplefilter("ignore", ConvexKernelsWarning)
        found = problem.solve(search, max_time=clock.part(SHARE).left)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if found.status is Status.TIME_LIMIT:
        clock.cut("the search for widths")
    return found
