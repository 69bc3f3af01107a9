"""Oracle inequalities for localized least squares, for plain numbers and for fitted estimators."""

from math import log
from typing import Any, NamedTuple, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bounds.entropy import joined_entropy, local_entropy
from convexkernels.bounds.rates import learning_rate, net_constants, net_gap
from convexkernels.bounds.statement import (
    Bound,
    check_cells,
    check_count,
    check_exponent,
    check_features,
    check_finite,
    check_fits,
    check_inside,
    check_kind,
    check_open_constant,
)
from convexkernels.cells.cover import VoronoiCover
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.validation import as_array, check_number


class CellNumbers(NamedTuple):
    """What the oracle inequality has to know of a partition and of the functions on it.

    Attributes
    ----------
    lams : ndarray of shape (m,)
        Beside the mean over all rows.
    widths : ndarray of shape (m,)
        Of the kernels ``exp(-|x - y|^2 / width^2)``.
    masses : ndarray of shape (m,)
        P(A_j), with sum 1.
    radius : float
        Of the balls that the cells lie in, at most 1: the unit ball around 0 holds all points, and so every cell.
    n, d : int
        Rows and features.
    """

    lams: Array
    widths: Array
    masses: Array
    radius: float
    n: int
    d: int

    @classmethod
    def of(cls, model: Any) -> Self:
        """The numbers of a fitted :class:`VoronoiRidge` of one output with its own kernels and cells of kind "voronoi".

        They are in units of its scaled features; lengths are divided by the largest norm of a row, so that rows are in
        the unit ball. Masses are shares of the weights of rows, lams are beside means with these weights, and n
        counts rows. Shares instead of the distribution, and a lam and a width that were chosen on the same rows: an
        indication, no proof.

        Raises
        ------
        InvalidInputError
            For other models, kernels that were given, several outputs, functions that are still on a cluster, and cells
            that overlap or are not those of their nearest centers.
        """
        cover = getattr(model, "cover_", None)
        if type(cover) is not VoronoiCover:
            raise InvalidInputError(
                f"the theorem is about cells of nearest centers that do not overlap, got {model!r}; fit "
                'VoronoiRidge(cells=Cells("voronoi")).'
            )
        if model.kernel is not None:
            raise InvalidInputError(
                "the theorem is about Gaussian kernels whose widths are those of cells, got "
                f"kernel={model.kernel!r}, of which cells choose multiples; fit VoronoiRidge(kernel=None)."
            )
        functions = getattr(model.function_, "functions", None)
        if functions is None:
            raise InvalidInputError(
                "the functions of the cells are on a cluster; first set model.function_ = model.function_.gather()."
            )
        if not all(isinstance(getattr(f, "loss", None), LeastSquares) and np.isfinite(f.width) for f in functions):
            raise InvalidInputError(
                f"every cell must have a least squares function with a Gaussian kernel, got {model!r} with others or "
                "constants; use VoronoiRidge(estimator=None), with larger cells where targets are all equal in one."
            )
        if model.function_.n_outputs > 1:
            raise InvalidInputError(
                f"the theorem is about functions of one output, got {model.function_.n_outputs}; fit one VoronoiRidge "
                "for each."
            )
        n, d = sum(len(f.X) for f in functions), functions[0].X.shape[1]
        norm = max(float(np.linalg.norm(f.X, axis=1).max()) for f in functions)
        centered = zip(functions, cover.centers, strict=True)
        largest = max(float(np.linalg.norm(f.X - center, axis=1).max()) for f, center in centered)
        # Centers are rows: a cell may reach further from its own than the unit ball does from 0. The theorem wants a
        # ball of a radius up to 1, around any point, that holds the cell.
        radius = min(largest, norm)
        lams, widths = (np.array([getattr(f, name) for f in functions]) for name in ("lam", "width"))
        weights = np.array([float(f.weights.sum()) for f in functions])
        total = float(weights.sum())
        return cls(lams / total, widths / norm, weights / total, radius / norm, n, d)


def cells_risk_bound(
    cells: CellNumbers, *, alpha: float, p: float, tau: float, constant: float | None, region: Any = None
) -> Bound:
    """Excess risk of localized least squares on a region [MS16 Theorem 4, Corollary 6].

    ``C (sum_J lam_j w_j^-d + (max_J w / min_J w)^d max_J w^(2 alpha) + r^(2p) (sum_j P(A_j) / lam_j
    w_j^(-(d + 2p) / p))^p / n + tau / n)``, J being the cells that meet the region, with probability ``1 - exp(-tau)``.

    Parameters
    ----------
    cells : CellNumbers
        lams and widths > 0, masses >= 0 with sum 1; widths are at most the radius, which is at most 1.
    alpha : float, >= 1
        Smoothness of the regression function on the cells of the region.
    p : float, in (0, 1)
    tau : float, >= 1
    constant : float, >= 0
        C, which depends on alpha, p, d, the largest label and norms of the regression function, and which the theorem
        does not determine (0 is no help here: it belongs to every term).
    region : array-like of bool, shape (m,), optional
        Which cells meet the region; all by default.
    """
    alpha, p = check_exponent("alpha", alpha, low=1.0), check_inside("p", p, 0.0, 1.0)
    tau, C = check_number("tau", tau, low=1.0), check_open_constant("constant", constant, "Theorem 4")
    cells = _checked(cells)
    lams, widths, r, n, d = cells.lams, cells.widths, cells.radius, cells.n, cells.d
    J = np.ones(len(lams), dtype=bool) if region is None else as_array(region, "region")
    if J.dtype != np.bool_ or J.shape != lams.shape or not J.any():
        raise InvalidInputError(
            f"region must name at least one of {len(lams)} cells, True or False for each, got {region!r}."
        )
    # What is infinite is refused below; a mass may be 0.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        regularization = float(np.sum(lams[J] * widths[J] ** -d))
        smoothness = float((widths[J].max() / widths[J].min()) ** d * widths[J].max() ** (2.0 * alpha))
        # The powers are large: w^(-d / p) leaves the range of numbers for small p.
        logs = np.log(cells.masses) - np.log(lams) - (d + 2.0 * p) / p * np.log(widths)
        estimation = r ** (2.0 * p) * float(np.exp(p * np.logaddexp.reduce(logs))) / n
    value = C * (regularization + smoothness + estimation + tau / n)
    what = (
        f"the bound for widths from {widths.min():g} to {widths.max():g} in d={d} features, {tau=:g} and constant={C:g}"
    )
    remedy = "fit with CellSelection(candidates=(lams, widths)) and larger widths, or on fewer features"
    check_finite(what, value, f"{remedy}, or pass a smaller tau or constant")
    return Bound(value, 1.0 - float(np.exp(-tau)))


def _checked(cells: CellNumbers) -> CellNumbers:
    """The same numbers as arrays, or a refusal of the first that no cells can have."""
    check_kind("cells", cells, CellNumbers)
    lams, r = _lams(cells), check_number("radius", cells.radius, low=0.0, high=1.0, open_low=True)
    widths = check_cells("widths", cells.widths, len(lams), open_low=True)
    masses = check_cells("masses", cells.masses, len(lams))
    n, d = check_count("n", cells.n), check_features(cells.d)
    if not abs(float(masses.sum()) - 1.0) <= 1e-6:
        raise InvalidInputError(
            f"masses must have the sum 1, got {masses.sum():g}; pass all cells, and masses divided by their sum."
        )
    if not (widths <= r).all():
        raise InvalidInputError(
            f"the theorem is for widths up to the radius of the cells, {r:g}, but the largest width is "
            f"{widths.max():g}; fit with CellSelection(candidates=(lams, widths)), whose widths are at most "
            f"{r:g} times the largest norm of a scaled row, or with larger cells."
        )
    return CellNumbers(lams, widths, masses, r, n, d)


def _lams(cells: CellNumbers) -> Array:
    return check_cells("lams", cells.lams, open_low=True)


def cells_entropy(cells: CellNumbers, *, p: float, constant: float | None, i: int = 1) -> float:
    """Bound of the i-th entropy number of the space of all cells, in the squared means [MS16 Theorem 11, Theorem 12].

    :func:`joined_entropy` of what :func:`local_entropy` says of every cell, as in the proof of Theorem 4.

    Parameters
    ----------
    cells : CellNumbers
        As in :func:`cells_risk_bound`.
    p : float, in (0, 1)
    constant : float, >= 0
        Of Theorem 12.
    i : int, >= 1
    """
    cells = _checked(cells)
    numbers = zip(cells.masses.tolist(), cells.widths.tolist(), strict=True)
    factors = [local_entropy(mass, cells.radius, width, cells.d, p=p, constant=constant) for mass, width in numbers]
    return joined_entropy(factors, cells.lams, p=p, i=i)


def selected_risk_bound(
    cells: CellNumbers,
    *,
    alpha: float,
    beta: float,
    p: float,
    tau: float,
    n_pairs: int,
    largest_label: float,
    constant: float | None,
) -> Bound:
    """Excess risk of localized least squares that chose lam and widths from nets on D2 [MS16 Theorem 7].

    ``6 C (n / l a n^(xi - rate) + b mesh^(2 alpha) + (tau + L) / l) + 2048 M^2 (tau + 2 L) / n`` with probability
    ``1 - exp(-tau)`` for l rows of D1 and ``n = 2 l - 2``: the last but one line of the proof, L being
    ``ln(1 + n_pairs^m)`` for m cells, a and b the :func:`net_constants`, xi the :func:`net_gap`, and the mesh that of
    :func:`cell_nets`. The first part is at least 6 times what :func:`cells_risk_bound` says of D1, its tau being
    ``tau + L``, at the best of the nets: Theorem 4 is about the functions of D1 and divides by l, nearly n / 2, for
    which the proof goes on with a constant that is twice as large.

    Parameters
    ----------
    cells : CellNumbers
        Of a TV-VP-SVM, so that its n counts the ``n // 2 + 1`` rows of D1; ``(3 / radius)^d`` cells or fewer. Their
        lams and widths play no part.
    alpha : float, >= 1
        Smoothness of the regression function, which the choice does not have to know.
    beta : float, > 2 alpha / d + 1
        As large as ``radius <= n^(-1 / (beta d))`` asks for.
    p : float, in (0, ((beta - 1) d - 2 alpha) / (2 alpha + d + 2)]
    tau : float, >= 1
    n_pairs : int, >= 1
        How many pairs of the nets each cell chose from.
    largest_label : float, > 0
        M: labels are in [-M, M].
    constant : float, >= 0
        The C of Theorem 4, as in :func:`cells_risk_bound`, for all pairs at once; 0 leaves what the choice costs by
        itself.
    """
    check_kind("cells", cells, CellNumbers)
    alpha, tau = check_exponent("alpha", alpha, low=1.0), check_number("tau", tau, low=1.0)
    C, M = check_open_constant("constant", constant, "Theorem 4"), _largest(largest_label)
    rows, m = check_count("rows of D1", cells.n, low=3), len(_lams(cells))
    n, d = 2 * rows - 2, check_features(cells.d)
    xi, c = net_gap(alpha, d, beta=beta, p=p), _shrunk(cells, n, beta)
    a, b = net_constants(alpha, d, p=p, c=c)
    choices = float(np.logaddexp(0.0, m * np.log(float(check_count("n_pairs", n_pairs)))))
    size = log(2048.0) + 2.0 * log(M) + log(tau + 2.0 * choices) - log(n)
    what = f"the bound for largest_label={M:g} and {tau=:g}"
    check_fits(what, max(size, 2.0 * log(M) + log(2048.0)), "scale labels, or pass a smaller tau")
    mesh = n ** (-1.0 / (2.0 + d))
    # What is over n in Lemma 14 is over the rows of D1 here: nearly twice as large.
    best = n / rows * a * n ** (xi - learning_rate(alpha, d)) + b * mesh ** (2.0 * alpha) + (tau + choices) / rows
    value = 6.0 * C * best + 2048.0 * M**2 * (tau + 2.0 * choices) / n
    value = check_finite(f"the bound for {tau=:g} and constant={C:g}", value, "pass a smaller tau or constant")
    return Bound(value=value, probability=1.0 - float(np.exp(-tau)))


def _largest(label: float) -> float:
    return check_number("largest_label", label, low=0.0, open_low=True)


def _shrunk(cells: CellNumbers, n: int, beta: float) -> float:
    """The c of the radius ``c n^(-1 / (beta d))``; what Theorem 7 asks of cells, or a refusal."""
    r, m, d = check_number("radius", cells.radius, low=0.0, open_low=True), len(_lams(cells)), cells.d
    if not r < 1.0:
        raise InvalidInputError(
            f"the theorem is for cells that shrink as rows grow, got radius {r:g}, that of the unit ball; "
            "fit with smaller cells, Cells('voronoi', radius=...)."
        )
    c = r * n ** (1.0 / (beta * d))
    if not c <= 1.0:
        raise InvalidInputError(
            f"beta={beta:g} asks for cells of radius {n ** (-1.0 / (beta * d)):.3g} or less, got {r:.3g}; "
            "pass a larger beta."
        )
    if not log(m) <= d * log(3.0 / r) + 1e-9:
        raise InvalidInputError(
            f"the theorem is for (3 / radius)^d = {(3.0 / r) ** d:.4g} cells or fewer, got {m}; fit with "
            "Cells('voronoi', radius=...), whose cells are no more."
        )
    return c
