"""Is the gradient of a kernel that of its values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.checking.matrices import EPS, is_function, matrix_of
from convexkernels.checking.verdict import Verdict
from convexkernels.validation import check_points, check_whole_number

# A kernel takes a difference, a product and a sum of every coordinate before anything else.
ROUNDINGS = 3


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
    function = is_function(kernel, X, Y)
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
        return M * matrix_of(kernel, X + t * V, Y)

    start = terms(0.0)
    size = float(np.abs(start).sum())
    # Relative error of a value: one rounding of every entry, and what the rounding of the data does.
    changes = sum(float(np.abs(M * matrix_of(kernel, *pair) - start).sum()) for pair in _moved(X, Y)[1:])
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
