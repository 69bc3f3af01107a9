"""Learning rates of localized least squares: the schedules that have them, and the nets that find them."""

from math import log
from typing import NamedTuple

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bounds.statement import (
    LARGEST_LOG,
    check_count,
    check_exponent,
    check_features,
    check_fits,
    check_inside,
)
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_memory, check_number, check_vector


class CellSchedule(NamedTuple):
    """What n rows call for: the radius of cells, lam beside the mean over all rows, and the width of the kernel."""

    radius: float
    lam: float
    width: float


def learning_rate(alpha: float, d: int) -> float:
    """The exponent ``2 alpha / (2 alpha + d)``: excess risks fall as n to minus that, or nearly [MS16 Theorem 5].

    Parameters
    ----------
    alpha : float, > 0
        Smoothness of the regression function.
    d : int, >= 1
        Number of features.
    """
    double = 2.0 * check_exponent("alpha", alpha, low=0.0, open_low=True)
    return double / (double + check_features(d))


def cell_schedule(
    n: int, alpha: float, d: int, *, beta: float, constants: tuple[float, float, float] = (1.0, 1.0, 0.5)
) -> CellSchedule:
    """Radius, lam and width for n rows [MS16 (16), (17), (18)].

    ``c1 n^(-1 / (beta d))``, ``c2 r^d / n`` and ``c3 n^(-1 / (2 alpha + d))``; the constants are the user's
    [MS16 Corollary 6].

    Parameters
    ----------
    n : int, >= 1
    alpha : float, >= 1
        Smoothness of the regression function.
    d : int, >= 1
        Number of features, scaled so that points have norms up to 1.
    beta : float, > 2 alpha / d + 1
        How fast cells shrink; the theorem needs widths that are no larger than the radius.
    constants : tuple of three float, > 0
        c1, c2 and c3, c3 < c1.
    """
    n, (alpha, d, beta) = check_count("n", n), _shrinking(alpha, d, beta)
    c1, c2, c3 = check_vector("constants", constants, 3, per="constant c1, c2, c3", low=0.0, open_low=True).tolist()
    if not c3 < c1:
        raise InvalidInputError(f"c3 must be less than c1, got {c3:g} and {c1:g}; widths would exceed the radius.")
    radius = c1 * n ** (-1.0 / (beta * d))
    # Of the radius and of lam, the one of the three that leaves the range of numbers where d is large.
    length = log(c1) - log(n) / (beta * d)
    size = max(d * length, d * length + log(c2) - log(n), key=abs)
    remedy = f"pass a c1 for which c1^d is nearer to 1, got constants={constants!r}, or a smaller d"
    check_fits(f"lam for n={n} and d={d}", size, remedy, low=-LARGEST_LOG)
    narrow = log(c3) - log(n) / (2.0 * alpha + d)
    check_fits("the width", narrow, f"pass a larger c3, got constants={constants!r}", low=-LARGEST_LOG)
    return CellSchedule(radius, c2 * radius**d / n, c3 * n ** (-1.0 / (2.0 * alpha + d)))


def rate_gap(alpha: float, d: int, *, beta: float, p: float) -> float:
    """By how much less than the :func:`learning_rate` Theorem 5 shows the exponent to be, for a p [MS16 Theorem 5].

    ``(1 + 2 / (2 alpha + d) + 1 / beta - 2 / (beta d)) p``, from the proof: as small as wanted, at the price of a
    constant that grows without a known limit as p falls.

    Parameters
    ----------
    alpha, d, beta
        As in :func:`cell_schedule`.
    p : float, in (0, 1)
    """
    (alpha, d, beta), p = _shrinking(alpha, d, beta), check_inside("p", p, 0.0, 1.0)
    return (1.0 + 2.0 / (2.0 * alpha + d) + 1.0 / beta - 2.0 / (beta * d)) * p


def smallest_sample(margin: float, d: int, *, beta: float, c: float = 1.0) -> int:
    """From how many rows on cells that meet a set T are within `margin` of it [MS16 Corollary 6, (19)].

    ``ceil((2 c / margin)^(beta d))``, for the radius ``c n^(-1 / (beta d))``.

    Parameters
    ----------
    margin : float, > 0
    d : int, >= 1
    beta, c : float, > 0
    """
    delta, c = check_number("margin", margin, low=0.0, open_low=True), check_number("c", c, low=0.0, open_low=True)
    power = check_exponent("beta", beta, low=0.0, open_low=True) * check_features(d)
    what = f"the number of rows for margin={delta:g}, d={d}, beta={beta:g} and c={c:g}"
    check_fits(what, power * log(max(2.0 * c / delta, 1.0)), "pass a larger margin, or a smaller beta, d or c")
    return max(1, int(np.ceil((2.0 * c / delta) ** power)))


def cell_nets(n: int, d: int, radius: float) -> tuple[Array, Array]:
    """The smallest nets of lam and of the width that have the rates without knowing alpha [MS16 Theorem 7].

    Every lam in ``(0, r^d]`` is within ``r^d / n`` of one of the first, every width in ``(0, r]`` within
    ``n^(-1 / (2 + d))`` of one of the second; r^d and r are among them, as Lemma 14 wants it. They are lam beside the
    mean over all n rows: that of a cell's own rows is ``n / n_j`` times as large.

    Parameters
    ----------
    n : int, >= 1
        Rows of the table; there will be about n / 2 lams.
    d : int, >= 1
    radius : float, in (0, 1]

    Returns
    -------
    lams, widths : ndarray
        Decreasing.
    """
    n, d = check_count("n", n), check_features(d)
    r = check_number("radius", radius, low=0.0, high=1.0, open_low=True)
    what = f"the mesh r^d / n of lams for radius={r:g}, d={d} and n={n}"
    check_fits(what, d * log(r) - log(n), "pass a larger radius, or fewer features", low=-LARGEST_LOG)
    return _net(r**d, r**d / n), _net(r, n ** (-1.0 / (2.0 + d)))


def _net(end: float, mesh: float) -> Array:
    """Points of ``(0, end]``, `end` among them, such that all others of it are within `mesh`."""
    count = max(1, int(np.ceil(0.5 * (end / mesh - 1.0) - 1e-9)) + 1)
    check_memory(32.0 * count, None, what=f"A net of {count:.4g} points", remedy="Pass a smaller n.")
    net = end - 2.0 * mesh * np.arange(count)
    if count > 1 and not net[-1] > 1e-6 * mesh:  # 0 is outside, and the point before is less than two meshes from it
        net[-1] = 0.5 * net[-2]
    return np.asarray(net)


def net_gap(alpha: float, d: int, *, beta: float, p: float) -> float:
    """The xi of Lemma 14: the exponent that nets lose for a p [MS16 Lemma 14].

    ``(2 alpha (2 alpha + d + 2) / ((2 alpha + d) D) + max((d - 2) / (beta d), 0)) p``, where
    ``D = (2 alpha + d)(1 + p) + 2 p``.

    Parameters
    ----------
    alpha : float, in (0, (beta - 1) d / 2)
    d : int, >= 1
    beta : float, > 1
    p : float, in (0, ((beta - 1) d - 2 alpha) / (2 alpha + d + 2)]
    """
    d, beta = check_features(d), check_exponent("beta", beta, low=1.0, open_low=True)
    alpha = check_inside("alpha", alpha, 0.0, 0.5 * (beta - 1.0) * d)
    most = ((beta - 1.0) * d - 2.0 * alpha) / (2.0 * alpha + d + 2.0)
    p = check_number("p", check_inside("p", p, 0.0, 1.0), high=most)
    smooth = 2.0 * alpha + d
    loss = 2.0 * alpha * (smooth + 2.0) / (smooth * (smooth * (1.0 + p) + 2.0 * p))
    return (loss + max((d - 2.0) / (beta * d), 0.0)) * p


def net_constants(alpha: float, d: int, *, p: float, c: float = 1.0) -> tuple[float, float]:
    """Constants a, b such that the best of nets is at most ``a n^(-rate + xi) + b mesh^(2 alpha)`` [MS16 Lemma 14].

    What is bounded are the first three terms of :func:`cells_risk_bound` without their constant, at the best lam and
    width of nets; `mesh` is that of the widths. The lemma says that there are constants, its proof has these.

    Parameters
    ----------
    alpha : float, > 0
    d : int, >= 1
    p : float, in (0, 1)
        As in :func:`net_gap`, where beta says how large alpha and p may be.
    c : float, in (0, 1]
        Of the radius ``c n^(-1 / (beta d))``.
    """
    c, d = check_number("c", c, low=0.0, high=1.0, open_low=True), check_features(d)
    alpha, p = check_exponent("alpha", alpha, low=0.0, open_low=True), check_inside("p", p, 0.0, 1.0)
    # The three terms of a, and b, which is more than the second of them for all c up to 1.
    sizes = (d + 1) * log(3.0) - d * log(c), 4.0 * alpha * log(2.0), -(1.0 + p) * d * log(c)
    what = f"a constant for alpha={alpha:g}, d={d}, p={p:g} and c={c:g}"
    check_fits(what, max(sizes), "pass a smaller alpha or d, or a larger c")
    split = max(1.0, 2.0 ** (2.0 * alpha - 1.0))  # of (s + t)^(2 alpha) into powers
    a = 3.0 ** (d + 1) * c**-d + split * c ** (2.0 * alpha) + c ** ((2.0 - d) * p - (d + 2.0 * p))
    return a, split * 2.0 ** (2.0 * alpha)


def _shrinking(alpha: float, d: int, beta: float) -> tuple[float, int, float]:
    """Smoothness, features and how fast cells shrink, as Theorem 5 has them."""
    alpha, d = check_exponent("alpha", alpha, low=1.0), check_features(d)
    return alpha, d, check_exponent("beta", beta, low=2.0 * alpha / d + 1.0, open_low=True)
