"""Numerical checks of a kernel a user brings: is it positive semidefinite, is its gradient right.

A check answers with a :class:`Verdict`: what numerics can say, by how much, and a witness to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_points, check_whole_number

__all__ = [
    "Outcome",
    "Verdict",
    "check_gradient",
    "check_psd",
    "gram_and_error",
    "richardson_derivative",
    "smallest_eigenvalue",
]

EPS = float(np.finfo(np.float64).eps)

# A kernel takes a difference, a product and a sum of every coordinate before anything else.
ROUNDINGS = 3

# Values of the same pair, asked for in another block, may differ by this share of the largest one: more is no rounding.
INCONSISTENT = 1e-6


class Outcome(Enum):
    """What a numerical check can say; neither is a proof that something holds."""

    HOLDS_NUMERICALLY = "holds numerically"
    REFUTED = "refuted"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Answer of a numerical check.

    Attributes
    ----------
    worst_violation : float
        Amount by which the statement fails in the worst case seen; inf for a value that is not finite.
    tolerance : float
        Largest amount that the arithmetic of that very case can explain.
    trials : int
        Number of cases looked at.
    witness : mapping of str to ndarray
        The data of the worst case.
    """

    worst_violation: float
    tolerance: float
    trials: int
    witness: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """REFUTED when the worst violation is above its tolerance (or is NaN)."""
        return Outcome.HOLDS_NUMERICALLY if self.worst_violation <= self.tolerance else Outcome.REFUTED

    @property
    def holds(self) -> bool:
        """Whether nothing was found that speaks against the statement."""
        return self.outcome is Outcome.HOLDS_NUMERICALLY

    @property
    def severity(self) -> float:
        """``worst_violation / tolerance``: above 1 means refuted; inf when it cannot be formed."""
        ratio = self.worst_violation / self.tolerance if self.tolerance > 0 else np.inf
        if self.holds:
            return float(ratio) if np.isfinite(ratio) else 0.0
        return float(ratio) if ratio > 1.0 else float("inf")

    @staticmethod
    def worst(verdicts: list[Verdict]) -> Verdict:
        """Join the verdicts of several cases: the most severe one speaks for all."""
        leader = max(verdicts, key=lambda verdict: verdict.severity)
        trials = sum(verdict.trials for verdict in verdicts)
        return Verdict(leader.worst_violation, leader.tolerance, trials, leader.witness)

    def __str__(self) -> str:
        return (
            f"{self.outcome.value}: worst violation {self.worst_violation:.3g}, "
            f"tolerance {self.tolerance:.3g}, {self.trials} trial{'s' if self.trials != 1 else ''}"
        )


def check_psd(kernel: Callable[[Any, Any], Any], X: Any) -> Verdict:
    """Check that a kernel is symmetric and positive semidefinite on given points.

    Parameters
    ----------
    kernel : Kernel or callable
        ``kernel(X, Y)`` returns the matrix of all pairs.
    X : array-like of shape (m, n)

    Returns
    -------
    Verdict
        The violation is the asymmetry ``max |K - K'|`` or minus the smallest eigenvalue, whichever
        is further beyond its tolerance. The witness holds ``X`` and, for the eigenvalue, ``c`` with
        ``|c| = 1`` and ``c'Kc`` equal to the smallest eigenvalue; for the asymmetry, the ``pair`` of rows. A kernel
        that gives a pair of rows another value in another block is no function of them and refuted as such; the
        witness holds the ``pair`` and both ``values``.

    Raises
    ------
    InvalidInputError
        For points that are not a finite table, or a kernel that returns the wrong shape.

    Notes
    -----
    Tolerances come from `gram_and_error` and `smallest_eigenvalue`. Costs O(m^3) and twelve Gram matrices.
    """
    X = check_points(X)
    function = _is_function(kernel, X, X)
    if not function.holds:
        return function
    K, error = gram_and_error(kernel, X)
    if not np.isfinite(K).all():
        return Verdict(float("inf"), 0.0, 1, {"X": X, "pair": np.argwhere(~np.isfinite(K))[0]})
    value, bound, c = smallest_eigenvalue(K, error)
    # The asymmetric part is part of the error E, whose norm `bound` is meant to cover.
    asymmetry = np.abs(K - K.T)
    pair = np.unravel_index(int(np.argmax(asymmetry)), K.shape)
    symmetric = Verdict(float(asymmetry[pair]), bound, 1, {"X": X, "pair": np.array(pair)})
    definite = Verdict(max(0.0, -value), bound, 1, {"X": X, "c": c, "smallest_eigenvalue": value})
    leader = Verdict.worst([definite, symmetric])
    return Verdict(leader.worst_violation, leader.tolerance, 1, leader.witness)


def _is_function(kernel: Callable[[Any, Any], Any], X: Array, Y: Array) -> Verdict:
    """Whether the value of a pair is the same in every block: asked twice, one half at a time, in reverse order.

    The tolerance is 1e-6 of the largest value, and what moving all points by one unit in the last place changes.
    """
    K = _matrix(kernel, X, Y)
    others = [_matrix(kernel, X, Y), _matrix(kernel, np.ascontiguousarray(X[::-1]), Y)[::-1]]
    rows, columns = (np.array_split(np.arange(len(table)), 2 if len(table) > 1 else 1) for table in (X, Y))
    others.append(np.concatenate([_matrix(kernel, X[part], Y) for part in rows]))
    others.append(np.concatenate([_matrix(kernel, X, Y[part]) for part in columns], axis=1))
    changes = np.array([np.abs(other - K) for other in others])
    changes = np.where(np.isfinite(changes), changes, 0.0)  # what is not finite is refuted by the checks themselves
    which, i, j = np.unravel_index(int(np.argmax(changes)), changes.shape)
    moved = [_matrix(kernel, np.nextafter(X, way), np.nextafter(Y, way)) for way in (np.inf, -np.inf)]
    shift = np.minimum(*(np.abs(other - K) for other in moved))
    tolerance = INCONSISTENT * float(np.abs(K).max()) + float(shift.max())
    witness = {"X": X, "Y": Y, "pair": np.array([i, j]), "values": np.array([K[i, j], others[which][i, j]])}
    return Verdict(float(changes[which, i, j]), tolerance if np.isfinite(tolerance) else np.inf, 1, witness)


def smallest_eigenvalue(K: Array, error: float = 0.0) -> tuple[float, float, Array]:
    """Return the smallest eigenvalue of a symmetric matrix and how far it can be trusted.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetrized before use.
    error : float, >= 0
        Bound on the error of every entry.

    Returns
    -------
    value, bound : float
        The exact matrix has an eigenvalue within `bound` of `value`. Let K be the exact matrix and
        K + E the computed one. By Weyl's inequality an eigenvalue moves by at most
        ``|E|_2 <= |E|_F <= m error``, and a backward stable eigenvalue solver answers for a matrix that
        differs from the computed one by at most ``m eps |K|_2``; `bound` is the sum of the two.
    vector : ndarray of shape (m,)
    """
    m = K.shape[0]
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    return float(values[0]), m * (EPS * float(np.abs(values).max()) + error), vectors[:, 0]


def gram_and_error(kernel: Callable[[Any, Any], Any], X: Array) -> tuple[Array, float]:
    """Evaluate a Gram matrix and measure how far its entries can be trusted.

    Returns
    -------
    K : ndarray of shape (m, m)
    error : float
        Error of an entry: the largest change seen anywhere when the same matrix is evaluated in other
        ways, plus one rounding of the largest entry. Each way is as good as the first in exact
        arithmetic, or differs by the rounding of the data: rows one half at a time, points in reverse
        order, and every coordinate moved by one unit in the last place, up or down.
    """
    K = _matrix(kernel, X, X)
    reverse = np.ascontiguousarray(X[::-1])
    changes = [_matrix(kernel, reverse, reverse)[::-1, ::-1] - K]
    halves = [rows for rows in np.array_split(np.arange(X.shape[0]), 2) if rows.size]
    changes += [_matrix(kernel, X[rows], X) - K[rows] for rows in halves]
    # All points move together, so that equal coordinates stay equal, and the smaller change of the two
    # directions counts: a kernel may jump at a point of the table, and a jump is not rounding.
    up, down = (np.nextafter(X, way) for way in (np.inf, -np.inf))
    changes.append(np.minimum(np.abs(_matrix(kernel, up, up) - K), np.abs(_matrix(kernel, down, down) - K)))
    return K, EPS * float(np.abs(K).max()) + max(float(np.abs(change).max()) for change in changes)


def _matrix(kernel: Callable[[Any, Any], Any], X: Array, Y: Array) -> Array:
    """Kernel matrix as float64, of the right shape or refused."""
    K = np.asarray(kernel(X, Y), dtype=np.float64)
    if K.shape != (X.shape[0], Y.shape[0]):
        raise InvalidInputError(
            f"kernel(X, Y) must return shape ({X.shape[0]}, {Y.shape[0]}), one row per row of X, got {K.shape}."
        )
    return K


def check_gradient(kernel: Any, X: Any, Y: Any = None, *, trials: int = 5, rng: Any = 0) -> Verdict:
    """Check ``kernel.pullback`` against differences of the kernel's own values.

    For random M and V the slope of ``t -> sum_ij M_ij k(x_i + t v_i, y_j)`` at 0 is compared with
    ``sum(pullback(X, Y, M) * V)``.

    Parameters
    ----------
    kernel : Kernel
        Anything callable on two tables that has ``pullback(X, Y, M)``.
    X : array-like of shape (n_samples_X, n_features)
    Y : array-like of shape (n_samples_Y, n_features), optional
        ``X`` (held fixed) when not given.
    trials : int, >= 1
    rng : int or numpy.random.Generator

    Returns
    -------
    Verdict
        The violation is the difference of the two slopes, the tolerance the error of the extrapolated
        differences and the rounding of the data. The witness holds ``X, Y, M, V`` and both slopes. A kernel that is no
        function of pairs of rows is refuted as by :func:`check_psd`: it has no slope.

    Raises
    ------
    InvalidInputError
        For tables that do not fit, or `trials` below 1.
    NotDifferentiableError
        By a kernel that has no derivative.
    """
    X = check_points(X)
    Y = X.copy() if Y is None else check_points(Y, name="Y", n_features=X.shape[1])
    trials = check_whole_number("trials", trials, low=1)
    rng = np.random.default_rng(rng)
    function = _is_function(kernel, X, Y)
    if not function.holds:
        return function
    verdicts = []
    for _ in range(trials):
        M = rng.standard_normal((X.shape[0], Y.shape[0]))
        V = rng.standard_normal(X.shape)
        V /= np.abs(V).max()
        slope, error = _slope(kernel, X, Y, M, V)
        terms = [np.asarray(kernel.pullback(*pair, M), dtype=np.float64) * V for pair in _moved(X, Y)]
        claimed = float(terms[0].sum())
        # The gradient is as uncertain as its data, and adding it up rounds once per entry.
        error += ROUNDINGS * sum(float(np.abs(moved - terms[0]).sum()) for moved in terms[1:])
        error += EPS * X.size * float(np.abs(terms[0]).sum()) + float(np.finfo(np.float64).tiny)
        witness = {"X": X, "Y": Y, "M": M, "V": V, "slope": slope, "claimed_slope": claimed}
        verdicts.append(Verdict(abs(claimed - slope), error, 1, witness))
    return Verdict.worst(verdicts)


def _moved(X: Array, Y: Array) -> list[tuple[Array, Array]]:
    """The tables, and the tables with coordinates moved by one unit in the last place."""
    up, down, Y_up, Y_down = (np.nextafter(table, way) for table in (X, Y) for way in (np.inf, -np.inf))
    return [(X, Y), (up, Y), (down, Y), (X, Y_up), (up, Y_down)]


def _slope(kernel: Callable[[Any, Any], Any], X: Array, Y: Array, M: Array, V: Array) -> tuple[float, float]:
    """Slope at 0 of ``t -> sum_ij M_ij k(x_i + t v_i, y_j)``, and its error."""

    def terms(t: float) -> Array:
        return M * _matrix(kernel, X + t * V, Y)

    start = terms(0.0)
    size = float(np.abs(start).sum())
    # Relative error of a value: one rounding of every entry, and what the rounding of the data does.
    changes = sum(float(np.abs(M * _matrix(kernel, *pair) - start).sum()) for pair in _moved(X, Y)[1:])
    noise = EPS + (ROUNDINGS * changes / size if size > 0 else 0.0)
    # Steps have to be shorter than the length over which the values change.
    step = 0.1 * (float(np.abs(X).max()) or 1.0)
    for _ in range(60):
        if max(float(np.abs(terms(t) - start).sum()) for t in (step, -step)) <= 0.5 * size:
            break
        step *= 0.5

    def value(t: float) -> tuple[float, float]:
        parts = terms(t)
        return float(parts.sum()), noise * float(np.abs(parts).sum())

    return richardson_derivative(value, step)


def richardson_derivative(f: Callable[[float], tuple[float, float]], step: float) -> tuple[float, float]:
    """Derivative at 0 by central differences, extrapolated to step 0 [Rid82], and its error.

    `f` returns the value at t and that value's rounding error; `step`, the largest one taken, is of the
    order of the length over which `f` changes. The answer is the entry of the table with the smallest
    error estimate: its distances to the entries it was made from and to the one of its order before it,
    plus the rounding error of the values, divided by their step and amplified by the weights.
    """
    shrink = 2.0
    previous: list[tuple[float, float]] = []
    best, best_error = 0.0, float("inf")
    for level in range(14):
        h = step / shrink**level
        above, below = f(h), f(-h)
        row = [((above[0] - below[0]) / (2 * h), (above[1] + below[1]) / (2 * h))]
        for order in range(min(level, 8)):
            weight = shrink ** (2 * (order + 1))
            finer, coarser = row[order], previous[order]
            value = (weight * finer[0] - coarser[0]) / (weight - 1.0)
            noise = (weight * finer[1] + coarser[1]) / (weight - 1.0)
            row.append((value, noise))
            if order + 1 < len(previous):
                near = (finer[0], coarser[0], previous[order + 1][0])
                error = sum(abs(value - other) for other in near) + noise
                if error < best_error:
                    best, best_error = value, error
        previous = row
    return best, best_error
