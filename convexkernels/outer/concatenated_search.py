"""Search for the inner layers of a concatenation from many starts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.layers import Coordinates
from convexkernels.outer.quasi_newton import Descent, Limits, descend
from convexkernels.outer.solution import OuterSolution
from convexkernels.progress import as_progress
from convexkernels.solution import Record, Status
from convexkernels.threads import threads_for

if TYPE_CHECKING:
    from convexkernels.outer.concatenated import ConcatenatedEvaluation, ConcatenatedLearning
    from convexkernels.outer.outermost import OutermostFit

__all__ = ["entropy", "identity_start", "limited_threads", "random_start", "refine", "sample_rows", "search"]

Array = NDArray[np.float64]
Point = Sequence[Array]
Job = tuple[int, np.random.SeedSequence | None, Point | None]

# Starts are first searched until ten iterations gain less than this fraction; the best few go on.
COARSE_STALL = 1e-3
N_FINALISTS = 4
# Rounding of the objective hides smaller gains.
FINE_STALL = 1e-11
# With three or more layers the whitening depends on the images: this often it is renewed, at most.
N_WHITENINGS = 8


@dataclass
class Run:
    """One start: where it ended, in coefficients."""

    index: int
    point: tuple[Array, ...]
    descent: Descent


class _Objective:
    """J in fixed coordinates, passing each outermost solution on as the next one's starting point."""

    def __init__(self, problem: ConcatenatedLearning, coordinates: Coordinates) -> None:
        self.problem = problem
        self.coordinates = coordinates
        self.last: OutermostFit | None = None

    def __call__(self, u: Array) -> ConcatenatedEvaluation:
        there = self.problem.evaluate(self.coordinates, u, self.last)
        if np.isfinite(there.value):
            self.last = there.machine
        return there


def search(
    problem: ConcatenatedLearning,
    limits: Limits,
    *,
    n_restarts: int,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Any = False,
    starts: Sequence[Point] = (),
) -> OuterSolution:
    """Search coarsely from all starts, then the best few to `limits`; see `ConcatenatedLearning.solve`."""
    began = time.monotonic()
    show = as_progress(progress)
    n_starts = n_restarts + len(starts)
    show.start(f"concatenated learning: {problem.X.shape[0]} points, {len(problem.layers)} layers, {n_starts} starts")
    seeds = np.random.SeedSequence(entropy(random_state)).spawn(n_restarts)
    jobs: list[Job] = [(k, seed, None) for k, seed in enumerate(seeds)]
    jobs += [(n_restarts + k, None, start) for k, start in enumerate(starts)]
    coarse = replace(limits, stall_tol=COARSE_STALL)
    with limited_threads(problem, n_jobs):
        runs = list(_watched(_all_runs(problem, jobs, coarse, n_jobs), began, show))
        interrupted = len(runs) < n_starts or any(run.descent.status is Status.INTERRUPTED for run in runs)
        finalists = sorted(runs, key=lambda run: (run.descent.value, run.index))[:N_FINALISTS]
        jobs = [(run.index, None, run.point) for run in finalists if np.isfinite(run.descent.value)]
        polished = [] if interrupted else list(_watched(_all_runs(problem, jobs, limits, n_jobs), began, show))
        interrupted |= any(run.descent.status is Status.INTERRUPTED for run in polished)
        solution = _conclude(problem, [*polished, *runs], n_starts, limits.tol, interrupted, began)
    show.finish(f"{solution.status.value}: {solution.certificate}, {solution.n_dropped} of {n_starts} starts dropped")
    return solution


def _conclude(
    problem: ConcatenatedLearning, runs: list[Run], n_starts: int, tol: float, interrupted: bool, began: float
) -> OuterSolution:
    """Certify the best run; what the descent believes about its end does not count."""
    values = np.full(n_starts, np.inf)
    for run in runs:
        values[run.index] = min(values[run.index], run.descent.value)
    if not np.isfinite(values).any():
        raise InvalidInputError(
            f"the objective is not finite at any of the {n_starts} starts: the outer kernel {problem.layers[0]!r} is "
            "numerically singular there; use a rougher or narrower outer kernel, a larger nugget, or regression."
        )
    best = min(runs, key=lambda run: (run.descent.value, run.index))
    certificate = problem.certificate(best.point)
    status = best.descent.status
    if certificate.holds(tol):
        status = Status.STATIONARY
    elif status is Status.STATIONARY:
        status = Status.STALLED
    trace = zip(best.descent.values, best.descent.times, strict=True)
    return OuterSolution(
        problem=problem,
        point=best.point,
        certificate=certificate,
        status=Status.INTERRUPTED if interrupted else status,
        n_iter=sum(run.descent.n_iter for run in runs),
        seconds=time.monotonic() - began,
        history=tuple(Record(k, value, -np.inf, seconds) for k, (value, seconds) in enumerate(trace)),
        restart_values=values,
        solver="restarted BFGS",
    )


def refine(problem: ConcatenatedLearning, start: Point, limits: Limits) -> Run:
    """Descend from given coefficients."""
    return _run(problem, 0, None, start, limits)


def _run(
    problem: ConcatenatedLearning,
    index: int,
    seed: np.random.SeedSequence | None,
    start: Point | None,
    limits: Limits,
) -> Run:
    """Descend from one start, renewing the whitening of the intermediate layers until it no longer helps."""
    if start is not None:
        coordinates, u = problem.stack.coordinates_at(start)
    elif index == 0:
        coordinates, u = identity_start(problem)
    else:
        coordinates, u = random_start(problem, np.random.default_rng(seed))
    descent = descend(_Objective(problem, coordinates), u, limits)
    point = coordinates.coefficients(descent.point)
    is_coarse = limits.stall_tol >= COARSE_STALL
    n_more = 0 if problem.stack.depth == 1 or not np.isfinite(descent.value) else (1 if is_coarse else N_WHITENINGS)
    for _ in range(n_more):
        if descent.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
            break
        coordinates, u = problem.stack.coordinates_at(point)
        again = descend(_Objective(problem, coordinates), u, limits)
        if not again.value < descent.value * (1.0 - 1e-9):
            break
        point = coordinates.coefficients(again.point)
        again.n_iter += descent.n_iter
        again.times = descent.times + [descent.times[-1] + seconds for seconds in again.times[1:]]
        again.values = descent.values + again.values[1:]
        descent = again
    return Run(index, point, descent)


def random_start(problem: ConcatenatedLearning, rng: np.random.Generator) -> tuple[Coordinates, Array]:
    """Draw every layer from the Gaussian process with its kernel, at a random scale."""

    def draw(layer: int, points: Array, gram: Array, basis: Array) -> Array:
        size = np.exp(rng.uniform(np.log(0.1), np.log(3.0)))
        return size * rng.standard_normal((basis.shape[1], problem.stack.widths[layer]))

    return problem.stack.build(draw)


def identity_start(problem: ConcatenatedLearning) -> tuple[Coordinates, Array]:
    """Layers as close to the identity as their kernels allow: close to the single-layer machine.

    With fewer outputs than inputs, the leading principal components; with more, zeros are added.
    """

    def project(layer: int, points: Array, gram: Array, basis: Array) -> Array:
        width = problem.stack.widths[layer]
        target = points
        if width < points.shape[1]:
            centred = points - points.mean(axis=0)
            target = centred @ np.linalg.svd(centred, full_matrices=False)[2][:width].T
        target = np.pad(target, ((0, 0), (0, max(width - target.shape[1], 0)))) / problem.stack.scales[layer]
        # Ridge: exact interpolation of the identity by a very smooth kernel would have a huge norm.
        values, vectors = np.linalg.eigh(gram)
        shrink = np.maximum(values, 0.0) / (np.maximum(values, 0.0) + 1e-6 * values[-1])
        return basis.T @ (vectors @ (shrink[:, None] * (vectors.T @ target)))

    return problem.stack.build(project)


def limited_threads(problem: ConcatenatedLearning, n_jobs: int | None) -> AbstractContextManager[None]:
    """One thread for small matrices and for parallel starts, all of them otherwise."""
    return threads_for(problem.X.shape[0], alone=effective_n_jobs(n_jobs) == 1)


def _all_runs(problem: ConcatenatedLearning, jobs: list[Job], limits: Limits, n_jobs: int | None) -> Iterator[Run]:
    if effective_n_jobs(n_jobs) == 1 or len(jobs) < 2:
        return (_run(problem, *job, limits) for job in jobs)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    return iter(parallel(delayed(_run)(problem, *job, limits) for job in jobs))


def _watched(runs: Iterable[Run], began: float, show: Any) -> Iterator[Run]:
    """Report every finished start; an interrupt keeps the finished ones."""
    best = np.inf
    try:
        for count, run in enumerate(runs, start=1):
            yield run
            best = min(best, run.descent.value)
            show.record(Record(count, best, -np.inf, time.monotonic() - began))
            if run.descent.status is Status.INTERRUPTED:
                return
    except KeyboardInterrupt:
        return


def sample_rows(problem: ConcatenatedLearning, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw about `size` rows, spread evenly over the targets and with every class among them."""
    order = np.lexsort((rng.random(problem.X.shape[0]), *problem.Y.T))
    chosen = order[np.linspace(0, order.size - 1, size).round().astype(np.intp)]
    _, representatives = np.unique(problem.Y, axis=0, return_index=True)
    if representatives.size <= size // 4:
        chosen = np.concatenate([chosen, representatives])
    return np.unique(chosen)


def entropy(random_state: Any) -> int:
    """A seed from whatever scikit-learn and NumPy accept as `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**63 - 1))
