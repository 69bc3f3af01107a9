"""How the weights of hierarchical kernels are searched for: groups of options, candidates, and the searches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.criteria.base import Criterion
from convexkernels.criteria.held_out import HeldOut
from convexkernels.criteria.leave_one_out import LeaveOneOut
from convexkernels.estimators.hierarchical.all_rows import AllRows
from convexkernels.exceptions import InvalidInputError, kept_back, tell, tell_again
from convexkernels.families.curved.trees import PAPER_ARCHITECTURES, Trees
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.outer_solver import OuterSolver
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status
from convexkernels.solvers.nonconvex.algorithm1 import Annealing, Schedule
from convexkernels.solvers.nonconvex.quasi_newton import QuasiNewton
from convexkernels.solvers.nonconvex.stochastic import Stochastic
from convexkernels.validation import check_number, check_whole_number

METHODS = ("auto", "stochastic", "quasi-newton", "annealing")
COMBINATIONS = ("auto", "one", "mean", "stack")


@dataclass(frozen=True)
class TreeSearch:
    """How weights are searched for.

    Parameters
    ----------
    method : {"auto", "stochastic", "quasi-newton", "annealing"}
        Exact gradients of the risk, on rows drawn anew for every step or on all rows, or the published annealing
        [ST16 Algorithm 1]. "auto" draws rows where there are more than a step takes.
    lam : float, > 0, optional
        Regularization parameter at the start, the weight of ``|f|^2`` against the sum of losses; the search moves it.
        That of the loss when it is given as an object, else 0.1. Where a search begins with a narrower kernel
        (:meth:`OuterLearning.best_start`), with a lam that suits it.
    size : int, >= 4, optional
        Rows that a step draws: a third of them, but 50 at least and 1,500 at most, and 750 at most in the first 70 % of
        the steps, when not given.
    max_iter : int, >= 1
        Steps along gradients. On rows drawn anew all of them are taken, each shorter in the second half: what the
        steps see does not say whether more would pay. Of squared errors on rows held out 200 cost or gain 2 % in the
        mean, from a half more to a fifth less, 50 cost 2 to 5 %. On all rows a search ends earlier, where ten steps
        gain less of the risk than the rows can tell.
    tol : float, > 0
        Relative gradient at which weights count as stationary.
    n_restarts : int, >= 1
        Independent searches; their functions are averaged.
    schedule : Schedule, optional
        The constants of the published annealing; those of the paper when not given.
    device : str or torch.device, optional
        A device of PyTorch, for example "cuda", that evaluates trees and their gradients, and products with the matrix
        of all rows; numpy when not given. Risks, factorizations, cells and predictions are met by numpy.
    """

    method: str = "auto"
    lam: float | None = None
    size: int | None = None
    max_iter: int = 100
    tol: float = 1e-4
    n_restarts: int = 1
    schedule: Schedule | None = None
    device: Any = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidInputError(f"method must be one of {METHODS}, got {self.method!r}.")
        if self.lam is not None:
            check_number("lam", self.lam, low=0.0, open_low=True)
        if self.size is not None:
            check_whole_number("size", self.size, low=4)
        check_whole_number("max_iter", self.max_iter, low=1)
        check_number("tol", self.tol, low=0.0, open_low=True)
        check_whole_number("n_restarts", self.n_restarts, low=1)
        if self.schedule is not None and not isinstance(self.schedule, Schedule):
            raise InvalidInputError(f"schedule must be a Schedule or None, got {self.schedule!r}.")
        if self.device is not None:
            object.__setattr__(self, "device", str(self.device))  # a name needs no PyTorch to be loaded
            if self.method == "annealing":
                raise InvalidInputError(
                    f"device={self.device!r} is for searches along gradients, not for method='annealing'; pass "
                    "method='auto', or device=None for numpy."
                )

    def solver(self, problem: OuterLearning) -> OuterSolver:
        """The method with its settings."""
        if self.method == "annealing":
            return Annealing(schedule=self.schedule)
        drawn = Stochastic(size=self.size, max_iter=self.max_iter)
        fits = drawn.accepts(problem) is None and problem.m > drawn.rows(problem.m)
        if self.method == "stochastic" or (self.method == "auto" and fits):
            return drawn
        return QuasiNewton(max_iter=self.max_iter)

    def run(self, problem: OuterLearning, seed: int, start: Array | None, clock: Clock) -> Solution:
        """One search, with a seed and perhaps a point to begin with of its own."""
        solver = self.solver(problem)
        solver.seed = seed  # the searches of an estimator are not those of a user, who goes on from what was found
        solution: Solution = problem.solve(
            solver,
            start=start if start is not None and len(start) == problem.n_unknowns else None,
            tol=self.tol,
            max_time=clock.left,
            progress=clock.show,
            checkpoint=clock.checkpoint,
            random_state=seed,
        )
        return solution


@dataclass(frozen=True)
class TreeSelection:
    """How architectures are chosen, and functions trained on all rows.

    Parameters
    ----------
    folds : int, >= 2
        Folds of the cross-validation of several architectures, and of combinations.
    combine : {"auto", "one", "mean", "stack"}
        What predicts: one function, trained on all rows with the kernel that was found on them; the mean of the
        functions of the folds [ST16 Section 5]; or a stack, for least squares: functions of simple kernels (`Linear`,
        `Stumps` and pairs of these, for classes one `Gaussian`) beside this mean, for classes and for numbers of fewer
        than 150 rows, or than ten for each column, where the criterion divides none, or, for other numbers, beside the
        mean of two functions of all rows, whose kernels see the features and these beside their ranks, each with the
        share that is best on rows held out, or left out one by one. "auto" stacks where a table is small, up to 3,000
        rows and 300,000 numbers, nearly all of its points are different, there are two for every fold (50 where the
        criterion divides them again), and no short `max_time` was given. Otherwise one function.
    training : AllRows, optional
        How functions are trained on all rows, and the memory it may take; ``AllRows()`` when not given.
    """

    folds: int = 5
    combine: str = "auto"
    training: AllRows | None = None

    def __post_init__(self) -> None:
        check_whole_number("folds", self.folds, low=2)
        if self.combine not in COMBINATIONS:
            raise InvalidInputError(f"combine must be one of {COMBINATIONS}, got {self.combine!r}.")
        if not isinstance(self.training, AllRows | None):
            raise InvalidInputError(f"training must be None or AllRows(...), got {self.training!r}.")


def as_candidates(architecture: Any) -> Sequence[Any]:
    """The architectures to choose from: a tuple, or the one that was given; "paper" is the list of [ST16 Section 5]."""
    if isinstance(architecture, str):
        if architecture != "paper":
            raise InvalidInputError(
                f"architecture must be a number of nodes, a nested list, Trees, a tuple of candidates or 'paper', got "
                f"{architecture!r}."
            )
        return PAPER_ARCHITECTURES
    if isinstance(architecture, tuple):
        if not architecture:
            raise InvalidInputError("architecture is an empty tuple of candidates; name at least one.")
        return architecture
    return (architecture,)


def as_trees(architecture: Any) -> Trees:
    """The family of an architecture, which may be one."""
    return architecture if isinstance(architecture, Trees) else Trees(architecture)


def as_criterion(criterion: Any, loss: Loss) -> Criterion:
    """The criterion that a parameter means."""
    if criterion is None:
        return LeaveOneOut() if isinstance(loss, LeastSquares) else HeldOut(1)
    if isinstance(criterion, HeldOut) and not isinstance(criterion.folds, Integral):
        raise InvalidInputError(
            "criterion is HeldOut with rows of its own, but an estimator sorts and divides the rows of a table: pass a "
            "number of folds, or solve an OuterLearning problem of these rows."
        )
    if isinstance(criterion, Criterion):
        return criterion
    if criterion == "leave-one-out":
        return LeaveOneOut()
    return HeldOut(check_whole_number("criterion", criterion, low=1, remedy="Or pass 'leave-one-out' or a Criterion."))


Job = Callable[[Clock], Solution]


def one_after_the_other(jobs: Sequence[Job], clock: Clock, then: str) -> tuple[list[Solution], bool]:
    """Searches, each with an equal share of the time that is left, and whether the user interrupted them.

    What follows is said with the announcement of each: an interrupt before there is anything would be lost otherwise.
    """
    solutions: list[Solution] = []
    try:
        for k, job in enumerate(jobs):
            clock.show.note(f"search {k + 1} of {len(jobs)}, then {then}")
            with kept_back() as said:
                found = job(clock.part(1.0 / (len(jobs) - k)))
            is_told = found.status is Status.TIME_LIMIT and any(one.status is found.status for one in solutions)
            solutions.append(found)
            tell_again([] if is_told else said)
            clock.show.note(f"search {k + 1} of {len(jobs)}: {solutions[-1].certificate}")
            if solutions[-1].status is Status.INTERRUPTED:
                return solutions, True
    except KeyboardInterrupt:
        if not solutions:
            raise
        tell(f"INTERRUPTED by the user; the best of {len(solutions)} of {len(jobs)} searches is kept.")
        return solutions, True
    return solutions, False
