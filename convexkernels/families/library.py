"""Ready-made lists of candidate kernels: the libraries of the published comparisons."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from convexkernels.arrays import Array, Index
from convexkernels.bases.monomials import monomial_basis
from convexkernels.families.box import BoxRule, UnitBox
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import typical_of
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.polynomial import Polynomial
from convexkernels.kernels.tessellated import TessellatedKernel
from convexkernels.validation import check_number, check_whole_number

# Features from which on a single one has one candidate only, and none: forming a matrix of 2,000 rows for each of 256
# columns takes longer than learning from the others.
MANY_FEATURES, TOO_MANY_FEATURES = 30, 100
# Bandwidths of further Gaussians, in median distances, where functions change quickly.
NARROWER = (1.0 / 16.0, 1.0 / 8.0)


def kernel_library(
    n: int, n_bandwidths: int = 10, narrowest: float = 0.5, widest: float = 10.0, max_degree: int = 3
) -> list[tuple[str, Kernel, list[int]]]:
    """Gaussian and polynomial kernels on all features and on every feature alone.

    Parameters
    ----------
    n : int, >= 1
        Number of features.
    n_bandwidths : int, >= 1
        Bandwidths s of ``exp(-|x - y|^2 / (2 s^2))``, in equal ratios from `narrowest` to `widest`.
    max_degree : int, >= 0
        Polynomials ``(x'y + 1)^d`` for d = 1..max_degree.

    Returns
    -------
    list of (name, kernel, columns)
        ``(n_bandwidths + max_degree) (n + 1)`` candidates, 13 (n + 1) by default as in [CP20 Section 8];
        for a table of one feature, half of them, because "all" and "each" are the same there.
    """
    n = check_whole_number("n", n, low=1)
    count = check_whole_number("n_bandwidths", n_bandwidths, low=1)
    low = check_number("narrowest", narrowest, low=0.0, open_low=True)
    high = check_number("widest", widest, low=low)
    kernels: list[tuple[str, Kernel]] = [
        (f"gaussian s={s:.3g}", Gaussian(0.5 / s**2)) for s in np.geomspace(low, high, count).tolist()
    ]
    kernels += [
        (f"polynomial d={d}", Polynomial(d)) for d in range(1, check_whole_number("max_degree", max_degree, low=0) + 1)
    ]
    groups = [("all", list(range(n)))] + ([(f"x{j}", [j]) for j in range(n)] if n > 1 else [])
    return [(f"{name} on {where}", kernel, columns) for where, columns in groups for name, kernel in kernels]


def data_library(
    X: Array,
    rows: int = 500,
    single: bool = True,
    groups: Sequence[Sequence[int] | Index] = (),
    narrower: Sequence[float] = (),
) -> list[tuple[str, Kernel, list[int]]]:
    """Candidates with bandwidths from a table: kernels on all features, and Gaussians on every feature alone.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Features of comparable spread.
    rows : int
        Rows that distances are measured on, spread over the table.
    single : bool
        Whether there are candidates on single features.
    groups : sequence of lists of int
        Columns that are one feature, such as the indicators of a column of categories.
    narrower : sequence of float, > 0
        Bandwidths of further Gaussians on all features, in median distances, for functions that change quickly.

    Returns
    -------
    list of (name, kernel, columns)
        Those of `narrower` before all others. On all features Gaussians with bandwidths from a quarter of the median
        distance to four times of it, Laplacians ``exp(-r / length)`` at half of it and at twice, and polynomials of
        degree 1 to 3; on single features two Gaussians, one where there are more than 30, or none where there are more
        than 100: ``11 + 2 n``, ``11 + n`` or 11 candidates. Of a group of indicators one is all there is, since rows
        are of one category or not.
    """
    sample, columns = X[np.unique(np.linspace(0, len(X) - 1, rows).round().astype(np.intp))], list(range(X.shape[1]))
    grouped = [sorted(map(int, group)) for group in groups if len(group)]
    alone = set(columns).difference(*grouped)
    features = sorted([*([j] for j in alone), *grouped])
    typical, n = typical_of(pdist(sample)), len(features)
    found: list[tuple[str, Kernel, list[int]]] = []
    for s in (typical * np.append(narrower, np.geomspace(0.25, 4.0, 6))).tolist():
        found.append((f"gaussian s={s:.3g} on all", Gaussian(0.5 / s**2), columns))
    for length in (0.5 * typical, 2.0 * typical):
        found.append((f"laplacian length={length:.3g} on all", Matern(1, length), columns))
    # With n as offset, powers have a linear part of their own size for features of unit spread.
    found += [(f"polynomial d={d} on all", Polynomial(d, float(n)), columns) for d in (1, 2, 3)]
    for feature in features if single and 1 < n <= TOO_MANY_FEATURES else []:
        own = typical_of(pdist(sample[:, feature]))
        name = f"x{feature[0]}" if len(feature) == 1 else f"x{feature[0]} to x{feature[-1]}"
        for s in [own] if n > MANY_FEATURES or len(feature) > 1 else [0.3 * own, 1.5 * own]:
            found.append((f"gaussian s={s:.3g} on {name}", Gaussian(0.5 / s**2), feature))
    return found


def random_tessellated_kernels(
    n: int,
    count: int = 300,
    degree: int = 1,
    z_degree: int | None = None,
    box: BoxRule | None = None,
    rng: Any = 0,
) -> list[TessellatedKernel]:
    """Tessellated kernels of random positive matrices, as candidates for multiple kernel learning.

    Parameters
    ----------
    n : int, >= 1
        Number of features.
    count : int, >= 1
    degree, z_degree : int
        As for :class:`Tessellated`.
    box : BoxRule, optional
        ``UnitBox()`` by default.
    rng : int or numpy.random.Generator
        Seed or source of the matrices ``P = A A' / trace(A A')``, A with independent standard normal entries.

    Notes
    -----
    [CP20 (25)], with count = 300 there. :class:`Candidates` computes the Gram matrices of
    kernels of one tessellation together.
    """
    n = check_whole_number("n", n, low=1)
    count = check_whole_number("count", count, low=1)
    lower, upper = (UnitBox() if box is None else box).limits(n)
    size = 2 * monomial_basis(n, degree, z_degree).q
    generator = np.random.default_rng(rng)
    kernels = []
    for _ in range(count):
        A = generator.standard_normal((size, size))
        P = A @ A.T
        kernels.append(TessellatedKernel(P / np.trace(P), lower, upper, degree, z_degree))
    return kernels
