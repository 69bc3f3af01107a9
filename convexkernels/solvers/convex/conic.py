"""The problem as a conic program: CVXPY with MOSEK where it is licensed, else Clarabel, else SCS."""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.driver import run
from convexkernels.exceptions import InvalidInputError, SolverUnavailableError, tell
from convexkernels.families.base import FamilyStatement, GramSet
from convexkernels.kernels.base import Kernel
from convexkernels.outer_solver import Iterate, OuterSolver
from convexkernels.solution import Status

if TYPE_CHECKING:
    from convexkernels.problems.program import Program
    from convexkernels.progress import Silent
    from convexkernels.solution import Solution

# Tried in this order. Interior-point methods reach the certificate; SCS, a first-order method, often does not.
PREFERENCE = ("MOSEK", "CLARABEL", "SCS")


def available_solvers() -> list[tuple[str, bool, bool, str]]:
    """Name, installed, usable and a remark of every conic solver, in order of preference."""
    rows = []
    for name in PREFERENCE:
        missing = [part for part in ("cvxpy", name.lower()) if find_spec(part) is None]
        installed, usable = name.lower() not in missing, not missing
        remark = f"pip install {' '.join(missing)}" if missing else ""
        if name == "MOSEK" and usable:
            remark = _mosek_refusal() or "licensed"
            usable = remark == "licensed"
        rows.append((name, installed, usable, remark))
    return rows


def _mosek_refusal() -> str | None:
    """Why the installed MOSEK cannot be used, in its own words, or None."""
    import mosek

    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        return f"no license: {error}".rstrip(" :")
    return None


class NoAnswerError(SolverUnavailableError):
    """Solvers were there, but their arithmetic broke down."""


class Conic(OuterSolver):
    """Solve the CVXPY statement of the problem; meant for some hundred points and as a reference.

    The answer is projected onto Theta, the inner problems are solved there, and the problem's certificate says how
    good it is: the status a conic solver reports is never trusted.

    Parameters
    ----------
    solver : {"MOSEK", "CLARABEL", "SCS"}, optional
        By default the first of them that is installed, licensed and gives an answer. Falling back from an
        unlicensed MOSEK is said in one warning.
    program : Program, optional
        Statement to solve instead of ``problem.to_cvxpy()``.
    rescues : bool
        Take over where another method stopped short: fall back without a word, and give up early, because most of these
        problems are beyond the numbers.
    """

    name = "conic"
    passes_kinks = True

    def __init__(self, solver: str | None = None, program: Program | None = None, rescues: bool = False) -> None:
        if solver is not None and solver not in PREFERENCE:
            raise InvalidInputError(f"solver must be one of {list(PREFERENCE)}, got {solver!r}.")
        self.solver = solver
        self.program = program
        self.rescues = rescues

    def start(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        program = self.program if self.program is not None else problem.to_cvxpy()
        statement = program.problem
        try:
            solve_statement(statement, self.solver, deadline, warn=not self.rescues, patient=not self.rescues)
        except NoAnswerError:
            if self.program is not None:
                raise
            return self._center(problem, tol, deadline)
        if program.theta.value is None:
            if self.program is None:  # a statement of ours has feasible points: arithmetic failed
                return self._center(problem, tol, deadline)
            raise SolverUnavailableError(
                f"the conic program has no solution: the solver says {statement.status!r}. "
                "Check that your constraints leave a feasible kernel."
            )
        theta = problem.gram_set.project(np.asarray(program.theta.value, dtype=np.float64))
        evaluation = problem.evaluate(theta, tol=min(1e-3 * tol, 1e-7), deadline=deadline)
        lower, _, _ = problem.lower_bound(evaluation)
        iterate = Iterate(theta, evaluation.alpha, evaluation.upper, lower)
        return _with_multipliers(problem, program, iterate)

    def _center(self, problem: Any, tol: float, deadline: float | None) -> Iterate:
        """What is known where all conic solvers broke down: a kernel in the middle."""
        evaluation = problem.evaluate(problem.gram_set.initial(), tol=tol, deadline=deadline)
        lower, _, _ = problem.lower_bound(evaluation)
        return Iterate(evaluation.theta, evaluation.alpha, evaluation.upper, lower, status=Status.NUMERICAL_ERROR)

    def step(self, problem: Any, iterate: Iterate, tol: float, deadline: float | None) -> Iterate:
        iterate.status = Status.STALLED
        return iterate


def _with_multipliers(problem: Any, program: Program, iterate: Iterate) -> Iterate:
    """Take the lower bound from the program's multipliers where that is better.

    Where the optimal Gram matrix is singular, the SVMs at the optimal theta are not unique and most of
    them prove little; the multipliers are the ones that do.
    """
    found = program.coefficients()
    if found is None:
        return iterate
    alpha = problem.feasible([problem.loss.dual_variable(w, y) for w, y in zip(found, problem.Y, strict=True)])
    gap = problem.certificate(iterate.theta, iterate.alpha, alpha)
    if gap.lower > iterate.lower:
        iterate.witness, iterate.lower = alpha, gap.lower
    return iterate


def solve_statement(
    statement: Any,
    solver: str | None = None,
    deadline: float | None = None,
    *,
    warn: bool = False,
    patient: bool = True,
) -> None:
    """Solve a ``cvxpy.Problem`` with the named solver, or the first that gives an answer.

    With `warn`, falling back from a solver that is installed but unusable is said in one warning. Unless it is
    `patient`, SCS may take a tenth of its steps. SolverUnavailableError says what each of them said where all fail.
    """
    import cvxpy as cp

    said, tried = [], False
    for name, installed, usable, remark in available_solvers():
        if solver is not None and name != solver:
            continue
        if not usable:
            said.append(f"{name}: {remark}")
            if installed and solver is None and warn:
                tell(f"{name} is installed but cannot be used ({remark}); falling back to the next solver.")
            continue
        tried = True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "solution may be inaccurate": the certificate will tell
                statement.solve(solver=name, **_options(name, deadline, patient))
        except (cp.error.SolverError, ArithmeticError, ValueError) as error:
            said.append(f"{name}: {error}")
            continue
        if statement.status in ("infeasible", "unbounded") or _has_answer(statement):
            return
        said.append(f"{name}: {statement.status}")
    failure = NoAnswerError if tried else SolverUnavailableError
    raise failure("no conic solver could solve the problem; " + "; ".join(said))


def _has_answer(statement: Any) -> bool:
    return all(variable.value is not None for variable in statement.variables())


def _options(name: str, deadline: float | None, patient: bool) -> dict[str, Any]:
    left = None if deadline is None else max(deadline - time.monotonic(), 0.1)
    if name == "SCS":
        options: dict[str, Any] = {"eps": 1e-7, "max_iters": 50_000 if patient else 5_000}
        return options if left is None else {**options, "time_limit_secs": left}
    if name == "CLARABEL":
        return {} if left is None else {"time_limit": left}
    return {} if left is None else {"mosek_params": {"MSK_DPAR_OPTIMIZER_MAX_TIME": left}}


class RestrictedGramSet(GramSet):
    """A set of Gram matrices cut down by further convex constraints on theta, stated in CVXPY.

    Projection and support function are conic programs of the size of theta.
    """

    has_projection = False
    has_support = False

    def __init__(self, base: GramSet, theta: Any, constraints: list[Any]) -> None:
        self.base = base
        self.theta = theta
        self.constraints = constraints
        self.m = base.m

    def initial(self) -> Array:
        return self.project(self.base.initial())

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        return self.base.gram(theta, out)

    def adjoint(self, W: Array) -> Array:
        return self.base.adjoint(W)

    def project(self, theta: Array) -> Array:
        import cvxpy as cp

        distance = cp.norm(cp.vec(self.theta - theta, order="F"))  # its square is less accurate near 0
        solve_statement(cp.Problem(cp.Minimize(distance), self.constraints))
        # Interior-point answers violate theta >= 0 by rounding; the exact set is projected onto last.
        return self.base.project(np.asarray(self.theta.value, dtype=np.float64))

    def support(self, D: Array) -> tuple[float, Array]:
        import cvxpy as cp

        scale = max(float(np.abs(D).max()), 1e-300)
        statement = cp.Problem(cp.Maximize(cp.sum(cp.multiply(D / scale, self.theta))), self.constraints)
        solve_statement(statement)
        value = float(statement.value)
        # The solver's accuracy is part of the bound.
        return scale * (value + 1e-7 * max(abs(value), 1e-3)), np.asarray(self.theta.value, dtype=np.float64)

    def kernel(self, theta: Array) -> Kernel:
        return self.base.kernel(theta)

    def cross(self, theta: Array, Z: Any) -> Array:
        return self.base.cross(theta, Z)

    def statement(self) -> FamilyStatement:
        return self.base.statement()

    def with_constants(self, theta: Array, w: Array) -> float:
        return self.base.with_constants(theta, w)


def solve_program(
    problem: Any, program: Program, *, tol: float, max_time: float | None, progress: bool | Silent
) -> Solution:
    """Solve a program made by ``problem.to_cvxpy()``, perhaps extended by constraints on its theta.

    The certificate is that of the restricted problem: its lower bound uses the support function of the restricted
    set, its upper bound the SVMs at the restricted theta.
    """
    target = problem
    if program.is_extended:
        extra = program.constraints[program.n_own :]
        foreign = {v.name() for c in extra for v in c.variables()} - {program.theta.name()}
        if any(v.id != program.theta.id for c in extra for v in c.variables()):
            raise InvalidInputError(
                f"constraints added to a program may use program.theta only, found {sorted(foreign)}; solve "
                "program.problem yourself for anything else (there is no certificate for it)."
            )
        family = [c for c in program.constraints[: program.n_own] if _only_uses(c, program.theta)]
        target = problem.with_gram_set(RestrictedGramSet(problem.gram_set, program.theta, family + extra))
    return run(target, Conic(program=program), tol=tol, max_time=max_time, progress=progress)


def _only_uses(constraint: Any, variable: Any) -> bool:
    return all(v.id == variable.id for v in constraint.variables())
