"""What solving on all rows begins with: tiles that fit the memory, a preconditioner, and what it will cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.backend import Backend
from convexkernels.clock import Clock
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.operator import TILE, n_tiles, tile_side
from convexkernels.outer_solver import Iterate
from convexkernels.solvers.convex.shifted_systems import LowRank, ShiftedSystems
from convexkernels.validation import FREE_SHARE, allowed_memory, check_memory

# Rank of the preconditioner: this many times the root of the rows, because a factor of rank r costs m r^2 and spares
# products of m^2; as far as a quarter of the memory holds it, and a fifth of the time lasts.
RANK, RANK_SHARE, RANK_TIME = 10.0, 0.25, 0.2
# The preconditioner may leave out what is this small against lam.
NEGLIGIBLE = 0.1
# Steps that are reckoned with: with several regularization parameters, and with the one that was chosen.
PATH_STEPS, STEPS = 40, 40
# Share of a stage that its first product is, and the relative gap that its steps begin with.
FIRST_PRODUCT, LARGEST_GAP = 0.2, 1e3
# Vectors of float64 that are alive, for each output and regularization parameter.
VECTORS = 12
# Rows on which values by rounded tiles are compared with exact ones.
AUDITED = 512
# Shares of the tolerance that values by rounded tiles have to meet before they are compared, and then exact ones: from
# the rest, the certificate charges for rounding.
OWN_SHARE, EXACT_SHARE = 0.5, 0.8
# Where the certificate begins, as a share of the work.
BEFORE_CERTIFICATE = 0.9


@dataclass(frozen=True)
class Forecast:
    """What solving on all rows takes, about; what is not `kept` of the matrix is evaluated anew for every product."""

    seconds: float
    bytes: float
    kept: float


class Stage:
    """A stage of the work that covers a part of the whole; called while a product is formed, it reports.

    Steps shrink duality gaps by about the same factor each, so that the logarithm of the gap says how far they are.
    """

    def __init__(self, clock: Clock | None, what: str, first: float, last: float) -> None:
        self.clock, self.what, self.first, self.last, self.done = clock, what, first, last, 0.0

    def __call__(self, share: float) -> None:
        """A share of a product is done: of the first one, that evaluates the matrix, it counts."""
        self.done = max(self.done, FIRST_PRODUCT * share)
        if self.clock is not None:
            self.clock.tell(self.first + (self.last - self.first) * self.done, self.what)

    def reached(self, gap: float, tol: float) -> None:
        """The relative gap that was reached, of the one that is sought."""
        ratio = np.log(LARGEST_GAP / np.clip(gap, tol, LARGEST_GAP)) / np.log(LARGEST_GAP / min(tol, 1.0))
        self.done = max(self.done, float(ratio))


class Preparation:
    """Tiles of a problem, and a preconditioner of so many columns (`rank`, beside the root of the rows) at most."""

    def __init__(self, problem: Any, rank: float = RANK) -> None:
        self.problem = problem
        m, limit = problem.m, allowed_bytes(problem)
        # The factor is alive twice while it is made.
        fits = (limit - other_bytes(problem)) / (2.0 * 8.0 * m)
        self.rank = int(max(1, min(m, rank * np.sqrt(m), RANK_SHARE * limit / (8.0 * m), fits)))
        self.other_bytes = other_bytes(problem) + 2.0 * 8.0 * m * self.rank
        self.operator = problem.operator(np.float32, tile_bytes(problem, self.other_bytes))
        self._low_rank: LowRank | None = None

    def low_rank(self, deadline: float | None = None) -> LowRank:
        """The preconditioner for all rows and any lam; what is negligible is so for the lam of the problem.

        It is made once. Where a deadline is near, its rank is what a part of the time suffices for.
        """
        if self._low_rank is None:
            now, tol = time.monotonic(), NEGLIGIBLE * self.problem.loss.lam / float(self.problem.weights.mean())
            end = None if deadline is None else now + RANK_TIME * (deadline - now)
            self._low_rank = LowRank.of(self.operator, self.problem.weights, self.rank, tol, end)
        return self._low_rank

    def findings(self) -> dict[str, Array]:
        """What the preconditioner leaves out of the trace of the matrix, once it is made."""
        return {} if self._low_rank is None else {"preconditioner_error": np.array([self._low_rank.left_out])}

    def seconds_of_certificate(self) -> float:
        """Seconds of one look at the matrix in float64, by the time that one tile takes."""
        return seconds_of_tiles(self.problem, np.float64)

    def forecast(self) -> Forecast:
        """What solving will take; evaluates a tile or two."""
        m, operator = self.problem.m, self.operator
        evaluation = seconds_of_tiles(self.problem, np.float32)
        steps = (PATH_STEPS + STEPS) * (
            (1.0 - operator.share_kept) * evaluation + 0.1 * operator.share_kept * evaluation
        )
        seconds = (
            evaluation + self.seconds_of_certificate() * (1.0 + 2.0 * self.rank / m) + steps + 1e-10 * m * self.rank**2
        )
        return Forecast(seconds, operator.kept_bytes + self.other_bytes, operator.share_kept)


def audited_rows(m: int) -> Index:
    """Rows on which values by rounded tiles are compared with exact ones."""
    return np.arange(m) if m <= AUDITED else np.sort(np.random.default_rng(0).choice(m, AUDITED, replace=False))


def audited(operator: Any, W: Array, F: Array) -> tuple[Index, Array]:
    """Rows of `audited_rows`, and exact values there less those of `F`, which rounded tiles have made of `W`."""
    rows = audited_rows(operator.m)
    return rows, W @ operator.rows(rows).T - F[:, rows]


def audited_gaps(systems: ShiftedSystems) -> Array:
    """Duality gaps by exact values on some of the rows, shape (c,)."""
    rows, errors = audited(systems.operator, systems.W, systems.F)
    m, R = systems.operator.m, systems.R[:, rows]
    change = (np.square(R - errors) - np.square(R)) @ systems.weights[rows]
    return np.asarray(systems.gaps() + m / len(rows) * change)


def one_candidate(problem: Any, lams: Sequence[float] | None, name: str) -> Any:
    """The problem at the regularization parameter that is asked for, or at its own, where nothing chooses."""
    if lams is not None and len(lams) > 1:
        raise InvalidInputError(
            f"lams has {len(lams)} candidates, among which {name} cannot choose for {problem.loss!r}; pass one, "
            "1 / (2 C), or None for that of the loss."
        )
    return problem if lams is None else problem.with_loss(problem.loss.at(lams[0]))


def without_choice(problem: Any, lams: Sequence[float] | None) -> Any:
    """The problem where there is nothing to choose, because of one candidate or one row; else None."""
    if lams is not None and len(lams) == 1:
        return problem.with_loss(problem.loss.at(lams[0]))
    return problem if problem.m == 1 else None


def unproven(iterate: Iterate, tol: float) -> Iterate:
    """A point whose values rounded tiles have made: it does not claim the tolerance."""
    iterate.lower = min(iterate.lower, iterate.upper - 1.01 * tol * abs(iterate.upper))
    return iterate


def allowed_bytes(problem: Any) -> float:
    """Bytes that solving may take."""
    return allowed_memory(problem.memory_limit)


def tile_bytes(problem: Any, others: float) -> float:
    """Bytes that tiles may take, of the memory of a device where there is one; `others` are taken beside them."""
    if problem.memory_limit is None and problem.device is not None:
        return FREE_SHARE * Backend(device=problem.device).free_memory()
    return max(allowed_bytes(problem) - others, 0.0)


def other_bytes(problem: Any) -> float:
    """What is alive beside the matrix: vectors, and some of its rows."""
    return 8.0 * problem.m * (4.0 * VECTORS * len(problem.Y) + 2 * min(TILE, problem.m))


def check_needed(problem: Any, needed: float) -> None:
    """Refuse what does not fit, however little of the matrix is kept."""
    check_memory(
        needed,
        allowed_bytes(problem),
        what=f"one kernel on {problem.m} rows",
        remedy="Pass a larger memory_limit or fewer rows, or take VoronoiRidge(kernel=...) or VoronoiSVC(kernel=...).",
    )


def seconds_of_tiles(problem: Any, dtype: Any) -> float:
    """Seconds of one evaluation of the lower triangle of the matrix, by the time that one tile takes."""
    side = tile_side(problem.m, problem.device)
    part = problem.X[: 2 * side]
    rows, columns = slice(len(part) // 2, len(part)), slice(0, max(1, len(part) // 2))
    blocks = problem.kernel_.blocks(part, dtype, problem.device)
    # A device has a clock of its own, and reading a number waits for it.
    now = time.thread_time if problem.device is None else time.monotonic
    float(blocks(rows, columns)[0, 0])
    began = now()
    float(blocks(rows, columns)[0, 0])
    return (now() - began) * n_tiles(problem.m, side)
