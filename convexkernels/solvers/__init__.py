"""Solvers of the outer problem, by name.

A solver proposes points; the driver stops on the problem's certificate. A new solver is one file and
one line in `SOLVERS`, and the contract tests pick it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.checkpoint import Checkpoint
from convexkernels.clock import Clock
from convexkernels.driver import because_of_rounding, run, stated, tell_cuts, warn_unless_reached
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import check_regularization
from convexkernels.losses.factored import dual_of_values
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Solution, Status
from convexkernels.solvers.convex.preparation import seconds_of_tiles
from convexkernels.threads import threads_for
from convexkernels.validation import check_whole_number

if TYPE_CHECKING:
    from convexkernels.progress import Silent

__all__ = ["SEARCHES", "SOLVERS", "WITH_ONE_KERNEL", "make_solver", "search", "solve", "solve_on_all_rows"]

# name -> (module, class), best first; loaded when asked for, because CVXPY takes long to import.
SOLVERS: dict[str, tuple[str, str]] = {
    "envelope": ("convex.envelope", "Envelope"),
    "spectral-gradient": ("convex.spectral_gradient", "SpectralGradient"),
    "interior-point": ("convex.interior_point", "InteriorPoint"),
    "frank-wolfe": ("convex.frank_wolfe", "FrankWolfe"),
    "reduced-gradient": ("convex.reduced_gradient", "ReducedGradient"),
    "conic": ("convex.conic", "Conic"),
}

# name -> coefficients up to which the method is tried where the first one has stopped short, and its settings.
RESCUES: dict[str, tuple[int, dict[str, Any]]] = {"interior-point": (400, {}), "conic": (120, {"rescues": True})}
SHORT = (Status.STALLED, Status.NUMERICAL_ERROR, Status.ROUNDED)
# Rows up to which float32 matrices that are not exact enough are made again in float64.
LARGEST_AGAIN = 4000
# Matrices in float32 leave gaps of about this size.
FLOAT32_TOL = 1e-5

# Many rows that are met by features begin with the kernel of so many, and then of so many times as many where there are
# clearly more, in a share of the time; the gaps are so many times the tolerance.
FIRST_ROWS, MORE_ROWS, WORTH_IT, LESS_EXACT, FIRST_SHARE = 1000, 10, 3.0, 3.0, 0.3

# The same for problems with one kernel.
WITH_ONE_KERNEL: dict[str, tuple[str, str]] = {
    "dense": ("convex.dense", "Dense"),
    "conjugate-gradients": ("convex.conjugate_gradients", "ConjugateGradients"),
    "decomposition": ("convex.decomposition", "Decomposition"),
}

# The same for problems that are not convex.
SEARCHES: dict[str, tuple[str, str]] = {
    "stochastic": ("nonconvex.stochastic", "Stochastic"),
    "quasi-newton": ("nonconvex.quasi_newton", "QuasiNewton"),
    "restarts": ("nonconvex.restarts", "Restarts"),
    "annealing": ("nonconvex.algorithm1", "Annealing"),
}


def make_solver(name: str, table: dict[str, tuple[str, str]] = SOLVERS, **settings: Any) -> OuterSolver:
    """The solver of that name, with its default settings where none are given."""
    if name not in table:
        raise InvalidInputError(f"solver must be 'auto' or one of {sorted(table)}, got {name!r}.")
    module, cls = table[name]
    return getattr(import_module(f"convexkernels.solvers.{module}"), cls)(**settings)


def solve(
    problem: Any,
    solver: Any,
    *,
    tol: float,
    max_time: float | None,
    max_iter: int,
    progress: bool | Silent,
    checkpoint: Any = None,
    initial: Array | None = None,
) -> Solution:
    """Choose a solver and run it; see :meth:`KernelLearning.solve`."""
    begin = None if initial is None else _member(problem, initial)
    if hasattr(solver, "objective") and hasattr(solver, "theta"):
        from convexkernels.solvers.convex.conic import solve_program

        if checkpoint is not None:
            raise InvalidInputError(
                "CVXPY solves a Program in one step; pass checkpoint=None, or the name of a solver."
            )
        return solve_program(problem, solver, tol=tol, max_time=max_time, progress=progress)
    automatic = isinstance(solver, str) and solver == "auto"
    is_coarse = automatic and problem.dtype != np.float64 and problem.m <= LARGEST_AGAIN
    if is_coarse and tol < FLOAT32_TOL:
        problem, is_coarse = problem.in_float64(), False
    if isinstance(solver, str):
        solver = _automatic(problem) if automatic else make_solver(solver)
    if not isinstance(solver, OuterSolver):
        raise InvalidInputError(f"solver must be a name, a Program or a solver object, got {solver!r}.")
    if begin is not None and solver.initial is None:
        solver = copy(solver)
        solver.go_on(Iterate(begin, None, np.inf), 0)
    clock = Clock(max_time, progress, Checkpoint.of(checkpoint, problem.X, problem.Y, problem.weights))
    with threads_for(problem.m):
        if automatic and problem.gram_set.is_factored and problem.m > FIRST_ROWS:
            solver = make_solver(solver.name, initial=_start_of_sample(problem, tol, clock, solver.initial))
        solution = run(problem, solver, tol=tol, max_iter=max_iter, clock=clock, warn=False)
        if is_coarse and solution.status in SHORT:
            problem = problem.in_float64()
            other = run(problem, _automatic(problem), tol=tol, max_iter=max_iter, clock=clock, warn=False)
            solution = _joined(solution, other, tol)
        for name, (most, settings) in RESCUES.items() if automatic else ():
            if solution.status not in SHORT or clock.is_over or problem.m * len(problem.Y) > most:
                break
            rescue = make_solver(name, **settings)
            if name != solver.name and rescue.accepts(problem) is None:
                other = run(problem, rescue, tol=tol, max_iter=min(max_iter, 60), clock=clock, warn=False)
                solution = _joined(solution, other, tol)
    warn_unless_reached(solver, solution)
    return solution


def with_one_kernel(problem: Any, solver: Any = "auto") -> Any:
    """The solver of that name of a problem with one kernel; "auto" is the first that accepts it."""
    if solver == "auto":
        return _automatic(problem, WITH_ONE_KERNEL, " KernelLearning(Candidates([kernel]), ...) takes every loss.")
    return make_solver(solver, WITH_ONE_KERNEL) if isinstance(solver, str) else solver


def solve_on_all_rows(
    problem: Any,
    solver: Any,
    *,
    lams: Sequence[float] | None,
    tol: float,
    max_time: float | None,
    max_iter: int | None,
    progress: bool | Silent,
    checkpoint: Any,
    random_state: Any,
) -> Solution:
    """Choose the regularization parameter, and solve; see :meth:`FixedKernel.solve`."""
    if lams is not None and len(lams) == 0:
        raise InvalidInputError("lams is empty; name at least one candidate, or pass None.")
    if lams is not None:
        lams = [check_regularization("lams", lam) for lam in lams]
    solver = with_one_kernel(problem, solver)
    clock = Clock(max_time, progress, Checkpoint.of(checkpoint, problem.X, problem.Y, problem.weights))
    piece = clock.piece("lam on rows held out", solver.name, *stated(problem), lams, random_state)
    rng = np.random.default_rng(random_state)
    with threads_for(problem.m):
        if max_time is not None:  # the certificate comes after the last step
            clock.max_time = max(max_time - seconds_of_tiles(problem, np.float64), 0.5 * max_time)
        if known := piece.found:  # with one candidate nothing is held out
            problem = solver.prepare(problem, [float(known.pop("lam"))], clock, rng)
            solver.trace = known
        else:
            problem = solver.prepare(problem, lams, clock, rng)
            if getattr(solver, "trace", None) and not (clock.is_over or clock.cuts):
                piece.keep(lam=problem.loss.lam, **solver.trace)
        solution = run(problem, solver, tol=tol, max_iter=max_iter, clock=clock)
    tell_cuts(clock, solution.status)
    return solution


def _member(problem: Any, initial: Any) -> Array:
    """The theta of Theta to begin at."""
    shape = problem.gram_set.initial().shape
    try:
        theta = np.asarray(initial, dtype=np.float64)
    except (TypeError, ValueError):
        theta = np.zeros(0)
    if theta.shape != shape or not np.isfinite(theta).all():
        raise InvalidInputError(
            f"initial must be a theta of the family, an array of shape {shape} without NaN or infinity, got "
            f"{initial!r}; pass `solution.theta` of a problem over the same family, or None."
        )
    return problem.member(theta)


def _start_of_sample(problem: Any, tol: float, clock: Clock, start: Any) -> tuple[Array, Array | None]:
    """Where to begin on many rows: the kernel that some of them ask for, at the same regularization per row.

    With it come, for labels, the dual variables that their function asks for.
    """
    order, loss = np.random.default_rng(0).permutation(problem.m), problem.loss
    n_rungs = 1 + int(np.log(max(problem.m / (WORTH_IT * FIRST_ROWS), 1.0)) / np.log(MORE_ROWS))
    counts = [FIRST_ROWS * MORE_ROWS**rung for rung in range(n_rungs)]
    rungs = [problem.with_loss(loss.at(loss.lam * n / problem.m)).on_rows(np.sort(order[:n])) for n in counts]
    part = clock.part(FIRST_SHARE)
    for rung, (small, larger) in enumerate(pairwise([*rungs, problem])):
        solver = make_solver(_automatic(small).name, initial=start)
        gap = min(0.1, tol * LESS_EXACT * MORE_ROWS ** (n_rungs - 1 - rung))
        found = run(small, solver, tol=gap, max_iter=100, clock=part, warn=False)
        larger = problem if part.is_over else larger
        alpha = None
        if loss.of_labels:  # of numbers, rows at kinks are too many to be guessed: a cold start takes as few steps
            F = np.atleast_2d(found.decision_function(larger.X).T)
            alpha = dual_of_values(larger.loss, F, larger.Y, larger.weights)
        start = found.theta, alpha
        if part.is_over:
            break
    return start[0], start[1]


def _joined(first: Solution, second: Solution, tol: float) -> Solution:
    """The better upper bound of two runs with the better lower one."""
    both: list[Any] = [first, second]
    upper, lower = min(both, key=lambda s: s.certificate.upper), max(both, key=lambda s: s.certificate.lower)
    witness = lower.alpha if lower.witness is None else lower.witness
    gap = upper.problem.certificate(upper.theta, upper.alpha, witness)
    ending = second.status if second.status in (Status.INTERRUPTED, Status.TIME_LIMIT) else first.status
    ending = Status.STALLED if ending is Status.ROUNDED else ending
    return replace(
        upper,
        certificate=gap,
        witness=witness,
        status=Status.OPTIMAL if gap.holds(tol) else because_of_rounding(gap, ending, tol),
        n_iter=first.n_iter + second.n_iter,
        seconds=second.seconds,
        history=first.history + second.history,
    )


def search(
    problem: Any,
    solver: Any,
    clock: Clock,
    *,
    start: Any,
    restarts: int,
    tol: float,
    max_iter: int | None,
    random_state: Any,
    n_jobs: int | None,
) -> Solution:
    """Choose a solver for a problem that is not convex, and run it; see :meth:`OuterLearning.solve`."""
    rng = np.random.default_rng(random_state)
    restarts = check_whole_number("restarts", restarts, low=1)
    limit = {} if max_iter is None else {"max_iter": max_iter}
    if isinstance(solver, OuterSolver):
        solver = copy(solver)  # the one that was passed stays as it is
    elif not isinstance(solver, str):
        raise InvalidInputError(f"solver must be a name or a solver object, got {solver!r}.")
    elif solver == "restarts" or restarts > 1:
        steps = {} if max_iter is None else {"max_steps": max_iter}
        solver, max_iter = make_solver("restarts", SEARCHES, n_restarts=restarts, n_jobs=n_jobs, **steps), None
    else:
        solver = _automatic_search(problem, limit) if solver == "auto" else make_solver(solver, SEARCHES, **limit)
    solver.begin_at([] if start is None else [problem.check(start)], rng)
    with threads_for(problem.m):
        return run(problem, solver, tol=tol, max_iter=max_iter, clock=clock)


def _automatic_search(problem: Any, settings: dict[str, Any]) -> OuterSolver:
    """Rows drawn anew where there are more than a step takes, and the family and the criterion allow it."""
    drawn: Any = make_solver("stochastic", SEARCHES, **settings)
    if drawn.accepts(problem) is None and problem.m > drawn.rows(problem.m):
        return drawn
    return make_solver("quasi-newton", SEARCHES, **settings)


def _automatic(problem: Any, table: dict[str, tuple[str, str]] = SOLVERS, remedy: str = "") -> OuterSolver:
    """The first solver of the table that accepts the problem."""
    refusals = []
    for name in table:
        candidate = make_solver(name, table)
        reason = candidate.accepts(problem)
        if reason is None:
            return candidate
        refusals.append(f"{name}: {reason}")
    raise InvalidInputError(f"no solver fits {problem!r}; " + "; ".join(refusals) + f".{remedy}")
