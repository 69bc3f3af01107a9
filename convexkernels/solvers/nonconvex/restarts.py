"""Quasi-Newton descents from many starts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from convexkernels.arrays import Array, Index
from convexkernels.checkpoint import Piece
from convexkernels.criteria.folds import spread_sample
from convexkernels.exceptions import InvalidInputError
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status
from convexkernels.solvers.nonconvex.bfgs import Limits
from convexkernels.solvers.nonconvex.quasi_newton import descents, told_by_rows
from convexkernels.validation import check_whole_number

NOTHING_KNOWN = Piece(None)
# Starts are first searched until ten steps gain less than this fraction; the best few go on.
COARSE_STALL = 1e-3
N_FINALISTS = 4
# Ends of descents that are none.
CUT = (Status.TIME_LIMIT, Status.INTERRUPTED)
COARSE_RENEWALS = 1


@dataclass(frozen=True, eq=False)
class Start:
    """Where a descent begins: a point, or the seed of start number `index` of the family."""

    index: int
    seed: np.random.SeedSequence | None = None
    theta: Array | None = None

    @property
    def stated(self) -> tuple[Any, ...]:
        """What it is known again by."""
        return self.index, self.theta, None if self.seed is None else self.seed.generate_state(4)


@dataclass(frozen=True, eq=False)
class Found:
    """Where the descent of start number `index` ended."""

    index: int
    theta: Array
    value: float
    status: Status
    n_iter: int

    @classmethod
    def known(cls, index: int, piece: Piece) -> Self | None:
        """What an earlier run has found from the start of that number."""
        known = piece.found
        if not known:
            return None
        return cls(index, known["theta"], float(known["value"]), Status[str(known["status"])], int(known["n_iter"]))

    def keep(self, piece: Piece) -> None:
        """Write it down."""
        piece.keep(theta=self.theta, value=self.value, status=self.status.name, n_iter=self.n_iter)


class Restarts(OuterSolver):
    """Coarse descents from all starts, of which the best four are continued to the tolerance [BGR19 Section 3.3.2].

    Start number 0 is the plainest one of the family, the others are drawn; each where :meth:`OuterLearning.best_start`
    moves it. A step is a start that has ended.

    Parameters
    ----------
    n_restarts : int, >= 1
    search_size : int, optional
        With more rows than this the starts are searched on about so many of them, spread evenly over the targets, and
        the best point found is continued on all.
    max_steps : int, >= 1
        Quasi-Newton steps of a descent.
    initial : sequence of points
        Further starts, on all rows.
    random_state : int, numpy.random.Generator or None
        The same seed gives the same starts whatever `n_jobs` is.
    n_jobs : int, optional
        Processes that share the starts; -1 for all cores.
    """

    name = "restarts"
    long_steps = True

    def __init__(
        self,
        n_restarts: int = 64,
        search_size: int | None = None,
        max_steps: int = 500,
        *,
        initial: Sequence[Any] = (),
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_restarts = check_whole_number("n_restarts", n_restarts, low=1)
        self.search_size = None if search_size is None else check_whole_number("search_size", search_size, low=2)
        self.max_steps = check_whole_number("max_steps", max_steps, low=1)
        self.initial, self.random_state, self.n_jobs = initial, random_state, n_jobs

    def __repr__(self) -> str:
        return f"Restarts({self.n_restarts}, search_size={self.search_size}, max_steps={self.max_steps})"

    def begin_at(self, points: list[Array], rng: np.random.Generator) -> None:
        super().begin_at([], rng)
        self.initial = [*self.initial, *points]

    def go_on(self, iterate: Iterate, n_steps: int) -> None:
        if not n_steps:  # of the same search the starts that have ended are known
            self.initial = [*self.initial, iterate.theta]

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        end, early = np.inf if deadline is None else deadline, told_by_rows(problem)
        limits = Limits(tol, problem.criterion.resolution, self.max_steps, end, early_tol=early)
        return next(_Search(self, problem, limits).iterates)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        return next(iterate.memory.iterates)

    def findings(self, iterate: Iterate) -> dict[str, Any]:
        search: _Search | None = iterate.memory  # of an end that was known there is none
        return {} if search is None else {"restarts": search.values, "n_iter": search.n_iter}


class _Search:
    """One search: what its starts have found so far, and the iterates still to come."""

    def __init__(self, settings: Restarts, problem: Any, limits: Limits) -> None:
        self.settings, self.problem, self.limits = settings, problem, limits
        self.values = np.full(settings.n_restarts + len(settings.initial), np.inf)
        self.n_iter = 0
        self.iterates = self._iterates()

    def _iterates(self) -> Iterator[Iterate]:
        settings, problem = self.settings, self.problem
        seed = seed_of(settings.random_state)
        starts = starts_of(settings.n_restarts, seed)
        given = [Start(settings.n_restarts + k, theta=problem.check(theta)) for k, theta in enumerate(settings.initial)]
        rows = sampled_rows(problem, settings.search_size, seed)
        if rows is None:
            yield from self._both_rounds([*starts, *given], whole=True)
            return
        small, best = problem.on_rows(rows), np.inf
        for found, _ in rounds(small, starts, self.limits, settings.n_jobs, settings.piece.part("some rows", rows)):
            self._count(found)
            theta, value = extended(problem, found.theta, rows), np.inf
            if found.value < best:  # values of the sample do not compare with those of all rows
                best, point = found.value, theta
                value = objective(problem, theta)
            stopped = found.status if found.status is Status.INTERRUPTED else None
            yield Iterate(theta, None, value, memory=self, status=stopped)
        yield from self._both_rounds([Start(0, theta=point), *given], whole=False)

    def _both_rounds(self, starts: list[Start], whole: bool) -> Iterator[Iterate]:
        best: Found | None = None
        for found, is_last in rounds(self.problem, starts, self.limits, self.settings.n_jobs, self.settings.piece):
            self._count(found, whole)
            if best is None or found.value < best.value:
                best = found
            status = best.status if is_last else found.status if found.status is Status.INTERRUPTED else None
            yield Iterate(found.theta, None, found.value, memory=self, status=status)

    def _count(self, found: Found, with_value: bool = True) -> None:
        self.n_iter += found.n_iter
        if with_value:
            self.values[found.index] = min(self.values[found.index], found.value)


def rounds(
    problem: Any, starts: list[Start], limits: Limits, n_jobs: int | None, piece: Piece = NOTHING_KNOWN
) -> Iterator[tuple[Found, bool]]:
    """Every start searched coarsely, then the best few to the end; with each whether it is the last one.

    A single start is searched to the end at once. What ended in an earlier run is not searched again.
    """
    again = starts
    if len(starts) > 1:
        coarse = replace(limits, stall_tol=max(COARSE_STALL, limits.stall_tol))
        ended = []
        for found in _each(problem, starts, coarse, COARSE_RENEWALS, n_jobs, piece):
            ended.append(found)
            yield found, False
        best = sorted(ended, key=lambda f: (f.value, f.index))[:N_FINALISTS]
        again = [Start(f.index, theta=f.theta) for f in best if np.isfinite(f.value)]
        if not again:
            raise _nowhere_finite(problem, starts)
    for count, found in enumerate(_each(problem, again, limits, None, n_jobs, piece), start=1):
        if len(starts) == 1 and not np.isfinite(found.value):
            raise _nowhere_finite(problem, starts)
        yield found, count == len(again)


def _nowhere_finite(problem: Any, starts: list[Start]) -> InvalidInputError:
    return InvalidInputError(
        f"the objective is not finite at any of the {len(starts)} starts: the kernel of {problem.family!r} is "
        "numerically singular there; use a rougher or narrower outer kernel, a larger nugget, or regression."
    )


def descended(problem: Any, start: Start, limits: Limits, renewals: int | None = None) -> Found:
    """The end of one descent; an interrupt ends it with what it has found."""
    problem = problem.with_loss(problem.loss)  # with no solution of another start to begin from
    theta = start.theta
    if theta is None:
        theta = problem.best_start(np.random.default_rng(start.seed), start.index)
    last = None
    try:
        for step in descents(problem, theta, limits, renewals):
            last = step
    except KeyboardInterrupt:
        if last is None or not np.isfinite(last[1].value):
            raise
        last[1].status = Status.INTERRUPTED
    assert last is not None
    theta, descent = last
    return Found(start.index, theta, descent.value, descent.status or Status.STALLED, descent.n_iter)


def _each(
    problem: Any, starts: list[Start], limits: Limits, renewals: int | None, n_jobs: int | None, piece: Piece
) -> Iterator[Found]:
    """The ends of all descents, first of those that are known; what a limit has cut goes on from where it stopped."""
    asked, left = (replace(limits, deadline=np.inf), renewals), list[Start]()
    pieces = {start.index: piece.part("descent", *start.stated, *asked) for start in starts}
    for start in starts:
        known = Found.known(start.index, pieces[start.index])
        if known is None or known.status in CUT:
            left.append(start if known is None else replace(start, theta=known.theta))
        else:
            yield known
    for found in _searched(problem, left, limits, renewals, n_jobs):
        found.keep(pieces[found.index])
        yield found


def _searched(
    problem: Any, starts: list[Start], limits: Limits, renewals: int | None, n_jobs: int | None
) -> Iterator[Found]:
    if effective_n_jobs(n_jobs) == 1 or len(starts) < 2:
        return (descended(problem, start, limits, renewals) for start in starts)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    return iter(parallel(delayed(descended)(problem, start, limits, renewals) for start in starts))


def starts_of(count: int, seed: int) -> list[Start]:
    """The first `count` starts of the family; more of them only add to these."""
    return [Start(k, child) for k, child in enumerate(np.random.SeedSequence(seed_of(seed)).spawn(count))]


def sampled_rows(problem: Any, size: int | None, seed: int) -> Index | None:
    """About `size` rows, spread evenly over the targets; None where there are no more."""
    if size is None or problem.m <= size:
        return None
    return spread_sample(problem.Y, size, np.random.default_rng(seed))


def extended(problem: Any, theta: Array, rows: Index) -> Array:
    """The point of a problem whose kernel is that of `theta` for the problem on some of the rows."""
    z, log_lam = problem.split(theta)
    return np.asarray(problem.joined(problem.gram_set.extend(z, rows), log_lam))


def seed_of(random_state: Any) -> int:
    """A seed from whatever NumPy accepts as `random_state`."""
    return int(np.random.default_rng(random_state).integers(2**63 - 1))


def objective(problem: Any, theta: Array) -> float:
    """The objective at a point."""
    z, log_lam = problem.split(theta)
    chart = problem.gram_set.chart(z)
    return float(problem.with_loss(problem.loss).evaluate(chart, problem.joined(chart.u, log_lam)).value)
