"""Solvers of the outer problem, by name.

A solver proposes points; the driver stops on the problem's certificate. A new solver is one file and
one line in `SOLVERS`, and the contract tests pick it up.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convexkernels.driver import OuterSolver, run
from convexkernels.exceptions import InvalidInputError
from convexkernels.progress import as_progress
from convexkernels.threads import threads_for

if TYPE_CHECKING:
    from convexkernels.progress import Silent
    from convexkernels.solution import Solution

__all__ = ["SOLVERS", "make_solver", "solve"]

# name -> (module, class), best first; loaded when asked for, because CVXPY takes long to import.
SOLVERS: dict[str, tuple[str, str]] = {
    "envelope": ("envelope", "Envelope"),
    "spectral-gradient": ("spectral_gradient", "SpectralGradient"),
    "interior-point": ("interior_point", "InteriorPoint"),
    "frank-wolfe": ("frank_wolfe", "FrankWolfe"),
    "reduced-gradient": ("reduced_gradient", "ReducedGradient"),
    "conic": ("conic", "Conic"),
}


def make_solver(name: str) -> OuterSolver:
    """The solver of that name with its default settings."""
    if name not in SOLVERS:
        raise InvalidInputError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {name!r}.")
    module, cls = SOLVERS[name]
    return getattr(import_module(f"convexkernels.solvers.{module}"), cls)()


def solve(
    problem: Any, solver: Any, *, tol: float, max_time: float | None, max_iter: int, progress: bool | Silent
) -> Solution:
    """Choose a solver and run it; see :meth:`KernelLearning.solve`."""
    if hasattr(solver, "objective") and hasattr(solver, "theta"):
        from convexkernels.solvers.conic import solve_program

        return solve_program(problem, solver, tol=tol, max_time=max_time, progress=progress)
    if isinstance(solver, str):
        solver = _automatic(problem) if solver == "auto" else make_solver(solver)
    if not isinstance(solver, OuterSolver):
        raise InvalidInputError(f"solver must be a name, a Program or a solver object, got {solver!r}.")
    progress = as_progress(progress)
    if _compiles_first():
        progress.note("compiling numerical code: first use of this installation, about 15 seconds; cached afterwards")
    with threads_for(problem.m):
        return run(problem, solver, tol=tol, max_time=max_time, max_iter=max_iter, progress=progress)


def _compiles_first() -> bool:
    """Whether no compiled code of the machines is on disk yet."""
    from convexkernels.losses.sequential import ascend_pairs

    return not any(Path(str(ascend_pairs.stats.cache_path)).glob("sequential.ascend_pairs*.nbc"))


def _automatic(problem: Any) -> OuterSolver:
    """The first solver of the table that accepts the problem."""
    refusals = []
    for name in SOLVERS:
        candidate = make_solver(name)
        reason = candidate.accepts(problem)
        if reason is None:
            return candidate
        refusals.append(f"{name}: {reason}")
    raise InvalidInputError("no solver fits this problem; " + "; ".join(refusals))
