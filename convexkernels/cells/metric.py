"""The metric in which a table is divided into cells: that of a kernel learned first, on a sample of its rows."""

import warnings

import numpy as np

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.exceptions import ConvexKernelsWarning
from convexkernels.families.curved.widths import Widths
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.stochastic import Stochastic

# exp(-|s * (x - x')|^2 / 2), the kernel of `Widths`, is exp(-|s * (x - x')|^2 / width^2) for this width.
LEARNED_WIDTH = float(np.sqrt(2.0))
# Rows that a search draws from, rows of one of its steps, and steps.
SAMPLE, STEP_ROWS, STEPS = 10_000, 1000, 40
# The search may take this share of the time that there is; cells learn in the rest.
SHARE = 0.25
# With fewer rows, in all or for each feature, a weight per feature is more than they can tell.
LEAST_ROWS, ROWS_PER_FEATURE = 100, 5


def learned_metric(X: Array, Y: Array, weights: Array, clock: Clock, seed: int) -> Array | None:
    """Factors of the features, shape (n_features,), that make the leave-one-out risk of least squares small.

    Parameters
    ----------
    X : ndarray of shape (m, n_features)
    Y : ndarray of shape (n_outputs, m)
        In [-1, 1]; predictions are clipped to it.
    weights : ndarray of shape (m,), > 0
    clock : Clock
        Of the whole work.
    seed : int

    Returns
    -------
    ndarray, or None where there is one feature only or too few rows

    Raises
    ------
    KeyboardInterrupt
        The search itself would keep its best point; there is nothing to use it for.
    """
    if not tells_widths(X) or (Y[:, :1] == Y).all():
        return None
    clock.show.note(f"a width for each of {X.shape[1]} features is learned")
    return learned_widths(Widths(), X, Y, weights, clock, seed, (-1.0, 1.0) if len(Y) == 1 else None)[0]


def tells_widths(X: Array) -> bool:
    """Whether a table has several features, and rows enough for a weight of each."""
    m, n = X.shape
    return n > 1 and m >= max(LEAST_ROWS, ROWS_PER_FEATURE * n)


def learned_widths(
    family: Widths,
    X: Array,
    Y: Array,
    weights: Array,
    clock: Clock,
    seed: int,
    bounds: tuple[float, float] | None = None,
) -> tuple[Array, float]:
    """Factors of the features that make the leave-one-out risk of least squares small, and that risk.

    Arguments are those of `learned_metric`; predictions are clipped to `bounds`.
    """
    m = len(X)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(m, SAMPLE, replace=False)) if m > SAMPLE else np.arange(m)
    loss, criterion = LeastSquares(lam=1.0, intercept=False), LeaveOneOut()
    y = Y[:, rows].T
    problem = OuterLearning(family, loss, criterion, X[rows], y, sample_weight=weights[rows], bounds=bounds)
    search = Stochastic(size=min(STEP_ROWS, max(50, len(rows) // 3)), max_iter=STEPS, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)  # the limit of time is told by the whole
        found = problem.solve(search, max_time=clock.part(SHARE).left)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    factors = np.broadcast_to(np.exp(problem.split(found.theta)[0]), X.shape[1:])
    return np.array(factors), float(found.certificate.value)
