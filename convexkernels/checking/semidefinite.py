"""Is a kernel positive semidefinite."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.checking.matrices import gram_and_error, is_function, smallest_eigenvalue
from convexkernels.checking.verdict import Verdict
from convexkernels.validation import check_points


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
    function = is_function(kernel, X, X)
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
