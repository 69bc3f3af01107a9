"""Choice of the norm weights lam and mu of a concatenation by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.outer.concatenated import ConcatenatedLearning
from convexkernels.outer.concatenated_search import COARSE_STALL, entropy, identity_start, limited_threads, search
from convexkernels.outer.concatenated_search import refine as refine_run
from convexkernels.outer.quasi_newton import Limits
from convexkernels.validation import check_number, check_whole_number

__all__ = ["DEFAULT_GRID", "PAPER_GRID", "Selection", "select_weights"]

Array = NDArray[np.float64]

# lam and mu of Section 4.1.2 of the paper: 2^(-2t + 1), t = 1, ..., 10.
PAPER_GRID = tuple(2.0 ** (1 - 2 * t) for t in range(1, 11))

# Its range at every other exponent, and two larger values: noisy tables need stronger weights than the
# paper's almost noise-free functions.
DEFAULT_GRID = tuple(2.0 ** (1 - 2 * t) for t in range(-2, 11, 2))

PATH_TOL = 1e-3
PATH_ITERATIONS = 40


@dataclass(frozen=True, eq=False)
class Selection:
    """Validation risks on a grid and the pair with the smallest.

    Attributes
    ----------
    lams, mus : ndarray
        The grid, ascending.
    risks : ndarray of shape (n_lams, n_mus)
        Mean loss on the held-out points, inf where no fold gave a finite answer.
    lam, mu : float
        The best pair; of equal ones the most regular.
    """

    lams: Array
    mus: Array
    risks: Array
    lam: float
    mu: float


def select_weights(
    problem: ConcatenatedLearning,
    make_loss: Callable[[float], Any],
    lams: Sequence[float],
    mus: Sequence[float],
    *,
    n_splits: int = 5,
    n_restarts: int = 8,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Cross-validate all pairs (lam, mu) along warm-started paths.

    In each fold the strongest lam is searched from several starts at the weakest mu; the other pairs
    start from the better of their two neighbours already visited and of the identity, so that a
    collapsed inner map is never handed on. The paper solves every pair from scratch 64 times.

    Parameters
    ----------
    problem : ConcatenatedLearning
        Its layers and data; its own loss and weights are not used.
    make_loss : callable
        lam -> loss.
    lams, mus : sequence of float, > 0
    n_splits : int, >= 2
        Folds, spread evenly over the targets.
    n_restarts : int, >= 1
        Starts of the first pair of each fold.
    random_state, n_jobs
        As in `ConcatenatedLearning.solve`; folds are shared among the processes.

    Returns
    -------
    Selection

    Notes
    -----
    The paper says that the pair "for which the smallest function value of (Reg) is achieved" was taken,
    which would always be the smallest lam and mu of the grid; what can be meant is the error on the
    held-out points, which is used here.
    """
    lam_grid, mu_grid = _grid("lam", lams), _grid("mu", mus)
    m = problem.X.shape[0]
    n_splits = check_whole_number("cv", n_splits, low=2)
    if m < n_splits:
        raise InvalidInputError(f"cv is {n_splits}, but there are only {m} points; give lam and mu as numbers instead.")
    seed = entropy(random_state)
    folds = _folds(problem, n_splits, np.random.default_rng(seed))
    how = (make_loss, lam_grid, mu_grid, n_restarts, seed)
    with limited_threads(problem, n_jobs):
        parts = Parallel(n_jobs=n_jobs)(delayed(_fold_risks)(problem, folds == k, *how) for k in range(n_splits))
    risks = np.sum(parts, axis=0) / m
    best = np.flatnonzero(risks.ravel() <= risks.min())[-1]
    i, j = np.unravel_index(best, risks.shape)
    return Selection(lam_grid, mu_grid, risks, float(lam_grid[i]), float(mu_grid[j]))


def _grid(name: str, values: Sequence[float]) -> Array:
    if np.ndim(values) != 1 or len(values) == 0:
        raise InvalidInputError(f"{name} must be a number or a list of numbers > 0, got {values!r}.")
    return np.unique([check_number(name, float(value), low=0.0, open_low=True) for value in values])


def _folds(problem: ConcatenatedLearning, n_splits: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Fold of every row: neighbours in the order of the targets go to different folds."""
    m = problem.X.shape[0]
    folds = np.empty(m, dtype=np.intp)
    order = np.lexsort((rng.random(m), *problem.Y.T))
    for at in range(0, m, n_splits):
        block = order[at : at + n_splits]
        folds[block] = rng.permutation(n_splits)[: block.size]
    return folds


def _fold_risks(
    problem: ConcatenatedLearning,
    held_out: NDArray[np.bool_],
    make_loss: Callable[[float], Any],
    lams: Array,
    mus: Array,
    n_restarts: int,
    seed: int,
) -> Array:
    """Sum of losses on the held-out rows for every pair, strongest lam and weakest mu first."""
    train = problem.restricted_to(np.flatnonzero(~held_out))
    X, Y = problem.X[held_out], problem.Y[held_out]
    limits = Limits(PATH_TOL, COARSE_STALL, PATH_ITERATIONS)
    first = train.with_parameters(make_loss(lams[-1]), mus[0])
    coordinates, u = identity_start(train)
    identity = coordinates.coefficients(u)
    points = {(len(lams) - 1, -1): search(first, limits, n_restarts=n_restarts, random_state=seed).point}
    risks = np.empty((lams.size, mus.size))
    for i in reversed(range(lams.size)):
        loss = make_loss(lams[i])
        for j in range(mus.size):
            here = train.with_parameters(loss, mus[j])
            near = [points[key] for key in ((i, j - 1), (i + 1, j)) if key in points]
            start = min([*near, identity], key=lambda point: here.evaluate(*here.stack.coordinates_at(point)).value)
            points[i, j] = refine_run(here, start, limits).point
            kernel, machine = here.kernel(points[i, j]), here.machine(points[i, j])
            risks[i, j] = here.loss.risk(machine.predict(kernel(X, here.X)), Y)
    return np.where(np.isfinite(risks), risks, np.inf)
