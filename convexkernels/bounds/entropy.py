"""Covering and entropy numbers of cells and of the spaces over them."""

from math import log
from typing import Any

import numpy as np
from scipy.special import gammaln

from convexkernels.arrays import Array, distinct_rows
from convexkernels.bounds.statement import (
    check_cells,
    check_count,
    check_exponent,
    check_features,
    check_fits,
    check_inside,
    check_open_constant,
)
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.distances import squared_distances
from convexkernels.validation import check_number, check_points

# Below are squares that have lost digits, or all of them.
LEAST_SQUARE = 1e-300


def cover_numbers(radius: float, d: int, *, c: float = 1.0) -> tuple[float, float]:
    """Bounds ``(c / r)^d`` and ``(1 + 2 c / r)^d`` of the least number of balls of a radius that cover one of radius c.

    The second is ``(r / (3 c))^-d`` or less, which is [MS16 Lemma 1, (5)]; farthest-first traversal keeps it, too.

    Parameters
    ----------
    radius : float, in (0, c]
    d : int, >= 1
        Number of features.
    c : float, > 0
    """
    c = check_number("c", c, low=0.0, open_low=True)
    ratio = c / check_number("radius", radius, low=0.0, high=c, open_low=True)
    d = check_features(d)
    what = f"the number of balls of radius={radius:g} that cover one of radius c={c:g} in d={d} features"
    check_fits(what, d * log(1.0 + 2.0 * ratio), "pass a larger radius or a smaller d")
    return ratio**d, (1.0 + 2.0 * ratio) ** d


def interior_radii(centers: Any) -> Array:
    """Radii of the largest balls around the centers inside their Voronoi cells [MS16 Lemma 8, Example 1].

    Half the distance to the nearest other center: that cells have interior points, with a number.

    Parameters
    ----------
    centers : array-like of shape (n_cells, n_features)
        Two or more, all different; of a fitted estimator ``cover_.centers``.

    Returns
    -------
    ndarray of shape (n_cells,)
    """
    points = check_points(centers, name="centers")
    n_different = len(distinct_rows(points)[0])
    if n_different < max(2, len(points)):
        raise InvalidInputError(
            f"centers must be two different points or more, got {len(points)} rows, {n_different} of them different; "
            "drop the doubles."
        )
    squares = squared_distances(points, points)
    np.fill_diagonal(squares, np.inf)
    if not squares.min() > LEAST_SQUARE:
        raise InvalidInputError(
            f"centers has two points that are nearer than {LEAST_SQUARE**0.5:g}, whose distance has no square among "
            "floats; pass centers multiplied by a number, and divide the radii by it."
        )
    return np.asarray(0.5 * np.sqrt(squares.min(axis=1)))


def joined_cover(radii: Any, numbers: Any) -> tuple[float, float]:
    """Radius and number of balls that cover the unit ball of a direct sum [MS16 Lemma 10].

    Where ``numbers[j]`` balls of radius ``radii[j]`` of the squared means over cell j cover the unit ball of
    ``lam_j |f|^2`` there, the product of the numbers covers at the square root of the sum of squared radii.

    Parameters
    ----------
    radii : array-like of shape (n_cells,)
        >= 0, of one cell or more.
    numbers : array-like of shape (n_cells,)
        >= 1.
    """
    eps = check_cells("radii", radii)
    count = check_cells("numbers", numbers, len(eps), low=1.0)
    check_fits("the product of the numbers", float(np.log(count).sum()), "pass fewer or smaller numbers")
    unit = float(eps.max()) or 1.0
    eps = eps / unit  # squares leave the range of numbers before radii do
    length = float(np.linalg.norm(eps))
    check_fits("the radius", log(unit) + log(length or 1.0), "pass smaller radii")
    return unit * length, float(count.prod())


def joined_entropy(factors: Any, lams: Any, *, p: float, i: int = 1) -> float:
    """Bound ``2 sqrt m (3 ln 4 sum_j lam_j^-p a_j^(2p))^(1 / (2p)) i^(-1 / (2p))`` [MS16 Theorem 11].

    That is for the i-th entropy number of the space of all m cells in the squared means, where those of cell j are at
    most ``a_j i^(-1 / (2p))`` for every i [MS16 (20), (21), (24)].

    Parameters
    ----------
    factors : array-like of shape (m,)
        a_j >= 0 of one cell or more, such as those of :func:`local_entropy`.
    lams : array-like of shape (m,)
        Weights > 0 of the squared norms.
    p : float, in (0, 1)
    i : int, >= 1
    """
    a, p = check_cells("factors", factors), check_inside("p", p, 0.0, 1.0)
    m, lam = len(a), check_cells("lams", lams, len(a), open_low=True)
    with np.errstate(divide="ignore"):  # a_j may be 0
        terms = 2.0 * p * np.log(a) - p * np.log(lam)
    # The power is large for small p: what leaves the range of numbers is seen by its logarithm.
    total = float(np.logaddexp.reduce(terms)) + log(3.0 * np.log(4.0)) - log(check_count("i", i))
    what = f"the bound of {m} cells for p={p:g} and factors up to {a.max():.3g}"
    check_fits(what, 0.5 * total / p + log(2.0 * m**0.5), "pass a larger p or smaller factors")
    return 2.0 * float(np.sqrt(m)) * float(np.exp(0.5 * total / p))


def local_entropy(mass: float, radius: float, width: float, d: int, *, p: float, constant: float | None) -> float:
    """The a of ``e_i <= a i^(-1 / (2p))`` for the Gaussian space of a cell [MS16 Theorem 12].

    ``c sqrt P(A) (r / width)^((d + 2p) / (2p))`` for a cell of mass P(A) in a ball of radius r.

    Parameters
    ----------
    mass : float, in [0, 1]
        The share of all points that the cell has.
    radius : float, > 0
    width : float, in (0, radius]
        Of the kernel ``exp(-|x - y|^2 / width^2)``.
    d : int, >= 1
        Number of features.
    p : float, in (0, 1)
    constant : float, >= 0
        c, which depends on p and d and which the theorem does not determine.
    """
    mass, r = check_number("mass", mass, low=0.0, high=1.0), check_number("radius", radius, low=0.0, open_low=True)
    ratio, p = r / check_number("width", width, low=0.0, high=r, open_low=True), check_inside("p", p, 0.0, 1.0)
    d, c = check_features(d), check_open_constant("constant", constant, "Theorem 12")
    factor = c * float(np.sqrt(mass))
    if factor == 0.0 or ratio == 1.0:
        return factor
    size = (d + 2.0 * p) / (2.0 * p) * log(ratio) + log(factor)
    what = f"the bound for p={p:g}, d={d} and width={width:g} in a ball of radius={r:g}, with constant={c:g},"
    check_fits(what, size, "pass a larger p or width")
    return float(np.exp(size))


def convolution_constant(alpha: float, d: int, *, q: float = 2.0, norm: float = 1.0) -> float:
    """The C of ``|sum_j 1_Aj (K_j * f) - f|^q <= C (w_max / w_min)^d w_max^(q alpha)`` [MS16 (26), Theorem 13].

    ``norm^q (d / 2)^(q alpha / 2) pi^(-1 / 4) Gamma(q alpha + 1 / 2)^(1 / 2)``: how well functions of smoothness alpha
    are approximated by such of Gaussian spaces, whose widths w_j differ from cell to cell.

    Parameters
    ----------
    alpha : float, >= 1
    d : int, >= 1
        Number of features.
    q : float, >= 1
        Of the norm of L_q on the left.
    norm : float, >= 0
        Of f in the Besov-like space of smoothness alpha; its seminorm is enough.
    """
    power = check_exponent("q", q, low=1.0) * check_exponent("alpha", alpha, low=1.0)
    half = 0.5 * check_features(d)
    with np.errstate(divide="ignore"):  # the norm may be 0
        size = q * np.log(check_number("norm", norm, low=0.0))
    size += 0.5 * power * np.log(half) - 0.25 * np.log(np.pi) + 0.5 * gammaln(power + 0.5)
    what = f"the constant for alpha={alpha:g}, d={d}, q={q:g} and norm={norm:g}"
    check_fits(what, float(size), "pass a smaller alpha, q or norm")
    return float(np.exp(size))
