"""Choice of lam and of the weight of a family's penalty by cross-validation along warm-started paths."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from convexkernels.criteria.folds import Rows, spread_folds
from convexkernels.exceptions import InvalidInputError
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.bfgs import Limits
from convexkernels.solvers.nonconvex.restarts import COARSE_STALL, Found, Start, descended, objective, rounds, starts_of
from convexkernels.threads import threads_for
from convexkernels.validation import check_number, check_whole_number

__all__ = ["DEFAULT_GRID", "PAPER_GRID", "Selection", "select_weights"]

Array = NDArray[np.float64]

# lam and mu of [BGR19 Section 4.1.2]: 2^(-2t + 1), t = 1, ..., 10.
PAPER_GRID = tuple(2.0 ** (1 - 2 * t) for t in range(1, 11))
# Its range at every other exponent, and two larger values: noisy tables need stronger weights than the
# paper's almost noise-free functions.
DEFAULT_GRID = tuple(2.0 ** (1 - 2 * t) for t in range(-2, 11, 2))

PATH_TOL = 1e-3
PATH_STEPS = 40


@dataclass(frozen=True, eq=False)
class Selection:
    """Validation risks on a grid and the pair with the smallest.

    Attributes
    ----------
    lams, mus : ndarray
        The grid, ascending.
    risks : ndarray of shape (n_lams, n_mus)
        Weighted mean loss on the held-out rows, inf where no function was found or the time was up.
    lam, mu : float
        The best pair; of equal ones the most regular.
    """

    lams: Array
    mus: Array
    risks: Array
    lam: float
    mu: float


@dataclass(frozen=True, eq=False)
class _Paths:
    """What the paths of all folds have in common."""

    weighed: Callable[[Any, float, float], Any]
    lams: Array
    mus: Array
    n_restarts: int
    seed: int
    limits: Limits


def select_weights(
    problem: Any,
    weighed: Callable[[Any, float, float], Any],
    lams: Sequence[float],
    mus: Sequence[float],
    *,
    n_splits: int = 5,
    n_restarts: int = 8,
    seed: int = 0,
    n_jobs: int | None = None,
    deadline: float = np.inf,
) -> Selection:
    """Cross-validate every pair of a grid, each descent starting from those of its neighbors.

    The paper says "smallest function value", which always is that of the smallest pair; what decides here are losses on
    rows that were not learned from.

    Parameters
    ----------
    problem : OuterLearning
    weighed : callable
        ``(problem, lam, mu) -> problem`` with these weights.
    lams, mus : sequence of float, > 0
    n_splits : int, >= 2
    n_restarts : int
        Starts of the first point of a path.
    seed : int
    n_jobs : int, optional
        Processes that share the folds.
    deadline : float
        Value of ``time.monotonic()`` after which pairs that were not reached have the risk inf.
    """
    lam_grid, mu_grid = _grid("lam", lams), _grid("mu", mus)
    n_splits = check_whole_number("cv", n_splits, low=2)
    if problem.m < n_splits:
        raise InvalidInputError(
            f"cv is {n_splits}, but there are only {problem.m} points; give lam and mu as numbers instead."
        )
    folds = spread_folds(problem.Y, n_splits, np.random.default_rng(seed))
    limits = Limits(PATH_TOL, COARSE_STALL, PATH_STEPS, deadline)
    paths = _Paths(weighed, lam_grid, mu_grid, n_restarts, seed, limits)
    with threads_for(problem.m):
        parts = Parallel(n_jobs=n_jobs)(delayed(_risks_of)(problem, *fold, paths) for fold in folds)
    risks = np.sum(parts, axis=0) / problem.weights.sum()
    if np.isfinite(risks).any():
        best = int(np.flatnonzero(risks.ravel() <= risks.min())[-1])
    else:  # nothing is known: neither end of the grid
        best = int(np.ravel_multi_index((lam_grid.size // 2, mu_grid.size // 2), risks.shape))
    i, j = np.unravel_index(best, risks.shape)
    return Selection(lam_grid, mu_grid, risks, float(lam_grid[i]), float(mu_grid[j]))


def _grid(name: str, values: Sequence[float]) -> Array:
    if np.ndim(values) != 1 or len(values) == 0:
        raise InvalidInputError(f"{name} must be a number or a list of numbers > 0, got {values!r}.")
    return np.unique([check_number(name, float(value), low=0.0, open_low=True) for value in values])


def _risks_of(problem: Any, train_rows: Rows, held_out: Rows, paths: _Paths) -> Array:
    """Weighted sum of losses on the held-out rows for every pair, strongest lam and weakest mu first."""
    train = problem.on_rows(train_rows)
    plainest = train.start(0)
    thetas: dict[tuple[int, int], Array] = {}
    risks = np.full((paths.lams.size, paths.mus.size), np.inf)
    for i in reversed(range(paths.lams.size)):
        for j in range(paths.mus.size):
            here = paths.weighed(train, paths.lams[i], paths.mus[j])
            if not thetas:
                first = rounds(here, starts_of(paths.n_restarts, paths.seed), paths.limits, 1)
                thetas[i, j - 1] = min((_ended(found) for found, _ in first), key=lambda found: found.value).theta
            elif time.monotonic() > paths.limits.deadline:
                return risks
            near = [thetas[key] for key in ((i, j - 1), (i + 1, j)) if key in thetas]
            begin = min([*near, plainest], key=lambda theta: objective(here, theta))
            thetas[i, j] = _ended(descended(here, Start(0, theta=begin), paths.limits)).theta
            F = here.function(thetas[i, j]).values(problem.X[held_out]).T - problem.offset[:, None]
            losses, _ = here.loss.pointwise(problem.Y[:, held_out], F)
            risk = float((losses @ problem.weights[held_out]).sum())
            risks[i, j] = risk if np.isfinite(risk) else np.inf
    return risks


def _ended(found: Found) -> Found:
    """What a descent has found; an interrupt goes on: there is no choice without all folds."""
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found
