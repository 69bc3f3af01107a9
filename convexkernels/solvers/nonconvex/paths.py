"""Choice of lam and of the weight of a family's penalty by cross-validation along warm-started paths."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection, least, over_folds
from convexkernels.criteria.folds import spread_folds
from convexkernels.exceptions import InvalidInputError
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.bfgs import Limits
from convexkernels.solvers.nonconvex.restarts import (
    COARSE_STALL,
    N_FINALISTS,
    Found,
    Start,
    descended,
    extended,
    objective,
    rounds,
    starts_of,
)
from convexkernels.threads import threads_for
from convexkernels.validation import check_number, check_whole_number

# lam and mu of [BGR19 Section 4.1.2]: 2^(-2t + 1), t = 1, ..., 10.
PAPER_GRID = tuple(2.0 ** (1 - 2 * t) for t in range(1, 11))

PATH_TOL = 1e-3
PATH_STEPS = 40


@dataclass(frozen=True, eq=False)
class WeightsSelection(Selection):
    """Validation risks on a grid and the pair with the smallest.

    Attributes
    ----------
    lams, mus : ndarray
        The grid, ascending.
    risks : ndarray of shape (n_lams, n_mus)
        Weighted mean loss on held-out rows; inf where a limit or an interrupt has left fewer folds than elsewhere.
    lam, mu : float
        The best pair; of equal ones the most regular.
    theta : ndarray or None
        The answer where an interrupt has ended the choice: what the best pair has learned from a fold.
    held_out : (ndarray, ndarray) or None
        Rows that were held out, and values at them, shape (n_outputs, n_rows), by what the best pair has learned from
        the others; None after an interrupt, or where no fold was in time.
    """

    lams: Array
    mus: Array
    risks: Array
    lam: float
    mu: float
    theta: Array | None = None
    held_out: tuple[Index, Array] | None = None

    @property
    def chosen(self) -> dict[str, float]:
        return {"lam": self.lam, "mu": self.mu}

    @property
    def curve(self) -> dict[str, Array]:
        lams, mus = np.meshgrid(self.lams, self.mus, indexing="ij")
        return {"lam": lams.ravel(), "mu": mus.ravel(), "loss on rows held out": self.risks.ravel()}


@dataclass(frozen=True, eq=False)
class _Paths:
    """What the paths of all folds have in common."""

    weighed: Callable[[Any, float, float], Any]
    lams: Array
    mus: Array
    n_restarts: int
    seed: int
    limits: Limits


@dataclass(frozen=True, eq=False)
class _Fold:
    """The paths of one fold: sums of weighted losses on held-out rows, inf where unknown, and the points.

    `in_time` says that no descent was cut by the limit.
    """

    risks: Array
    thetas: dict[tuple[int, ...], Array]
    interrupted: bool = False
    in_time: bool = True

    @classmethod
    def of(cls, risks: Array, thetas: Array) -> Self:
        """Complete paths, with a point for each pair, row by row."""
        return cls(risks, dict(zip(np.ndindex(risks.shape), thetas, strict=True)))


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
    clock: Clock | None = None,
    tol: float = PATH_TOL,
) -> WeightsSelection:
    """Cross-validate every pair of a grid, each descent starting from those of its neighbors.

    The paper says "smallest function value", which always is that of the smallest pair; what decides here are losses on
    rows that were not learned from. An interrupt ends the choice with what is known, if anything is. A limit is shared
    among folds and pairs, each of which leaves its time to the next ones: where it is short, pairs are compared by
    descents that it has cut. Pairs that were not reached have the risk inf. ``weighed(problem, lam, mu)`` is the
    problem with these weights; the first point of a path has `n_restarts` starts. Descents end at a relative gradient
    of `tol`, or where values fall by no larger part.
    """
    lam_grid, mu_grid = _grid("lam", lams), _grid("mu", mus)
    n_splits = check_whole_number("cv", n_splits, low=2)
    if problem.m < n_splits:
        raise InvalidInputError(
            f"cv is {n_splits}, but there are only {problem.m} points; give lam and mu as numbers instead."
        )
    folds = spread_folds(problem.Y, n_splits, np.random.default_rng(seed))
    clock = Clock() if clock is None else clock
    limits = Limits(tol, COARSE_STALL * tol / PATH_TOL, PATH_STEPS, clock.deadline)
    paths = _Paths(weighed, lam_grid, mu_grid, n_restarts, seed, limits)
    with threads_for(problem.m):
        done, interrupted = _all_folds(problem, folds, paths, n_jobs, clock)
    sums = np.array([fold.risks for fold in done])
    risks = over_folds(sums, np.array([problem.weights[held_out].sum() for _, held_out in folds[: len(done)]]))
    compared = bool(np.isfinite(risks).any())
    i, j = least(risks) if compared else (lam_grid.size // 2, mu_grid.size // 2)  # nothing is known: no end of the grid
    if not (interrupted or all(fold.in_time and np.isfinite(fold.risks).all() for fold in done)):
        clock.cut("the choice of lam and mu")
    theta, lam, mu = None, float(lam_grid[i]), float(mu_grid[j])
    if interrupted:
        if not compared:
            raise KeyboardInterrupt
        k = int(np.flatnonzero(np.isfinite(sums[:, i, j]))[0])
        theta = extended(problem, done[k].thetas[i, j], folds[k][0])
        return WeightsSelection(lam_grid, mu_grid, risks, lam, mu, theta)
    known = [(*rows, fold.thetas[i, j]) for rows, fold in zip(folds, done, strict=False) if (i, j) in fold.thetas]
    return WeightsSelection(lam_grid, mu_grid, risks, lam, mu, held_out=_held_out(weighed(problem, lam, mu), known))


def _held_out(problem: Any, folds: list[tuple[Index, Index, Array]]) -> tuple[Index, Array] | None:
    """Rows held out of folds, and values at them by the points that were found on the others."""
    if not folds:
        return None
    values = [problem.on_rows(train).function(theta).values(problem.X[held]).T for train, held, theta in folds]
    return np.concatenate([held for _, held, _ in folds]), np.concatenate(values, axis=1)


def _all_folds(
    problem: Any, folds: list[tuple[Index, Index]], paths: _Paths, n_jobs: int | None, clock: Clock
) -> tuple[list[_Fold], bool]:
    """The folds that there was time for, and whether the user interrupted them."""
    done: list[_Fold] = []
    stated = problem.family, problem.loss, problem.X, problem.Y, problem.weights
    asked = paths.lams, paths.mus, paths.n_restarts, paths.seed, paths.limits.tol
    pieces = [clock.piece("fold of paths", stated, asked, train) for train, _ in folds]
    todo = [fold for fold, piece in zip(folds, pieces, strict=True) if not piece.found]
    turns = [math.ceil((len(todo) - k) / effective_n_jobs(n_jobs)) for k in range(len(todo))]
    calls = (delayed(_fold)(problem, *fold, paths, 1.0 / left) for fold, left in zip(todo, turns, strict=True))
    try:
        walked = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        for piece in pieces:
            known = piece.found
            fold = _Fold.of(known["risks"], known["thetas"]) if known else next(walked)
            done.append(fold)
            if fold.interrupted:
                break
            if fold.in_time and np.isfinite(fold.risks).all():
                piece.keep(risks=fold.risks, thetas=[fold.thetas[pair] for pair in np.ndindex(fold.risks.shape)])
    except KeyboardInterrupt:
        if not done:
            raise
        return done, True
    return done, done[-1].interrupted


def _grid(name: str, values: Sequence[float]) -> Array:
    if np.ndim(values) != 1 or len(values) == 0:
        raise InvalidInputError(f"{name} must be a number or a list of numbers > 0, got {values!r}.")
    return np.unique([check_number(name, float(value), low=0.0, open_low=True) for value in values])


def _fold(problem: Any, train_rows: Index, held_out: Index, paths: _Paths, share: float) -> _Fold:
    """The paths of one fold, as far as its share of the time and the user let them go."""
    fold = _Fold(np.full((paths.lams.size, paths.mus.size), np.inf), {})
    limits = replace(paths.limits, deadline=_until(paths.limits.deadline, share))
    try:
        return _walk(problem, train_rows, held_out, replace(paths, limits=limits), fold)
    except KeyboardInterrupt:
        return replace(fold, interrupted=True)


def _until(deadline: float, share: float) -> float:
    """When a share of the time that is left will be over."""
    now = time.monotonic()
    return now + share * max(deadline - now, 0.0)


def _walk(problem: Any, train_rows: Index, held_out: Index, paths: _Paths, fold: _Fold) -> _Fold:
    """Every pair, strongest lam and weakest mu first, each from the best of its neighbors."""
    train, thetas, end = problem.on_rows(train_rows), fold.thetas, paths.limits.deadline
    plainest, in_time = train.start(0), True
    for i in reversed(range(paths.lams.size)):
        for j in range(paths.mus.size):
            here = paths.weighed(train, paths.lams[i], paths.mus[j])
            near = [thetas[key] for key in ((i, j - 1), (i + 1, j)) if key in thetas]
            if not near:
                first = _first(here, paths, fold.risks.size)
                in_time, near = all(map(_in_time, first)), [min(first, key=_value).theta]
            elif time.monotonic() > end:
                return replace(fold, in_time=False)
            begin = min([*near, plainest], key=lambda theta: objective(here, theta))
            limits = replace(paths.limits, deadline=_until(end, 1.0 / (fold.risks.size - len(thetas))))
            found = _ended(descended(here, Start(0, theta=begin), limits))
            in_time, thetas[i, j] = in_time and _in_time(found), found.theta
            F = here.function(thetas[i, j]).values(problem.X[held_out]).T - problem.offset[:, None]
            fold.risks[i, j] = here.loss.total(problem.Y[:, held_out], F, problem.weights[held_out]).sum()
    return replace(fold, in_time=in_time)


def _first(problem: Any, paths: _Paths, n_pairs: int) -> list[Found]:
    """The ends of all starts of the first pair; each of their descents may take as long as a pair."""
    descents = paths.n_restarts + min(paths.n_restarts, N_FINALISTS)
    limits = replace(paths.limits, deadline=_until(paths.limits.deadline, descents / (descents + n_pairs)))
    found = rounds(problem, starts_of(paths.n_restarts, paths.seed), limits, 1)
    return [_ended(one) for one, _ in found]


def _value(found: Found) -> float:
    return found.value


def _in_time(found: Found) -> bool:
    return found.status is not Status.TIME_LIMIT


def _ended(found: Found) -> Found:
    """What a descent has found; one that the user interrupted ends the paths of its fold."""
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found
