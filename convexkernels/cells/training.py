"""Learning in all cells of a cover, within one limit of time."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from convexkernels.arrays import Array, Index
from convexkernels.cells.choice import KnownCells, PairSelection
from convexkernels.cells.cover import Assignment, Cover
from convexkernels.cells.function import UNKNOWN, LocalizedFunction, of_some_rows, worst
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellLearner, CellRows
from convexkernels.cells.sampling import Keys
from convexkernels.cells.selection import Grid
from convexkernels.cells.stand_in import FunctionOfTable, function_of_table, sparing
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.driver import because_of_rounding
from convexkernels.exceptions import tell
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.distances import squared_distances
from convexkernels.solution import Solution, Status
from convexkernels.threads import threads_for

# Cells on which one pair of lam and width for all is selected, rows of each, and the share of the time it may take.
SHARED_CELLS, SHARED_ROWS, SHARED_TIME = 4, 1500, 0.25


@dataclass(frozen=True, eq=False)
class LearnedCell:
    """What learning in one cell gives: its function, what is said of it, and whether there was time to learn."""

    function: Any
    size: int
    in_time: bool
    certificate: DualityGap
    lam: float
    width: float
    # Whether the time was up before lam and the width were selected, and whether it was not before all was done.
    is_cut: bool
    is_whole: bool
    # Rows for which there was no time.
    n_spared: int

    @classmethod
    def of(cls, function: Any, size: int, in_time: bool = True, is_whole: bool = False) -> Self:
        """Say of a function what it keeps."""
        certificate = getattr(function, "certificate", UNKNOWN)
        lam, width = getattr(function, "lam", np.nan), getattr(function, "width", np.nan)
        is_cut = getattr(getattr(function, "choice", None), "is_cut", False)
        n_spared = getattr(function, "n_spared", 0)
        is_whole = is_whole and not (is_cut or n_spared)
        return cls(function, size, in_time, certificate, lam, width, is_cut, is_whole, n_spared)


def learn_cell(
    learner: CellLearner, rows: CellRows, stream: np.random.SeedSequence, deadline: float, allowed: float = np.inf
) -> LearnedCell:
    """Learn in one cell in the seconds that it is allowed, or take the best constant where the time is up.

    `deadline` is by the monotonic clock.
    """
    now = time.monotonic()
    if now > deadline:
        return LearnedCell.of(learner.constant(rows.Y, rows.weights), len(rows.X), in_time=False)
    end = min(deadline, now + allowed)
    with threads_for(len(rows.X)):
        function = learner.learn(rows, np.random.default_rng(stream), end)
    return LearnedCell.of(function, len(rows.X), is_whole=time.monotonic() < end)


def learn_cells(
    table: CellRows,
    cover: Cover,
    learner: CellLearner,
    clock: Clock,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    tol: float = np.inf,
    interrupted: bool = False,
    assigned: tuple[Index, Assignment] | None = None,
    stand_in: KernelLearner | None = None,
) -> Solution:
    """Learn in every cell, the largest first.

    When the time is up, or at a keyboard interrupt (perhaps of what came before: `interrupted`), no further cell is
    begun, and the searches of those begun end with the best pair so far. Cells that were not begun answer with a
    function of some rows of the whole table (`stand_in`), or where there is none with a constant: the best one for
    their points. That of cells without points is the best one for all.

    Parameters
    ----------
    seed : int
        Every cell draws from a stream of its own, so that the answer does not depend on `n_jobs`.
    tol : float
        Relative duality gap that the learner promises for every cell.
    assigned : (cells, Assignment), optional
        ``cover.assigned(table.X)``, where it is known.
    stand_in : KernelLearner, optional
        What learns the function of some rows; the `learner`, if not given, where it is one.

    Returns
    -------
    Solution
        Its problem is a `LocalizedFunction`, its certificate the worst one of all cells, and `theta`, of shape
        (n_cells, 2), what lam and the width of each cell are.
    """
    answering, members = cover.assigned(table.X) if assigned is None else assigned
    order = np.argsort(-members.sizes, kind="stable")
    streams = np.random.SeedSequence(seed).spawn(members.n_cells)

    piece = clock.piece("cells", learner, cover, seed, table.X, table.Y, table.weights)
    known = KnownCells(members, len(table.Y), piece.found)
    if interrupted:
        clock.interrupt()
    begun = [] if interrupted else [int(j) for j in order if members.sizes[j]]
    stand_in = learner if stand_in is None and isinstance(learner, KernelLearner) else stand_in
    own_clock = clock if stand_in is None else sparing(clock)
    shown = CellProgress(own_clock, members.sizes, effective_n_jobs(n_jobs))

    def task(j: int) -> tuple[Any, ...]:
        rows = members.rows(j)
        inside = table.part(rows)
        if cover.overlaps:
            inside = replace(inside, own=answering[rows] == j)
        own = known.settled(learner, j) if isinstance(learner, KernelLearner) else learner
        return own, inside, streams[j], own_clock.deadline, shown.allowed(j)

    learned: dict[int, LearnedCell] = {}
    status = Status.INTERRUPTED if interrupted else Status.OPTIMAL
    try:
        clock.show.note(f"{cover!r}: {members.sizes.min()} to {members.sizes.max()} of {len(table.X)} rows per cell")
        for j, cell in zip(begun, _results(map(task, begun), n_jobs), strict=True):
            learned[j] = cell
            shown.learned(j)
            # Constants and models of other libraries are learned again.
            if clock.checkpoint is not None and cell.is_whole and np.isfinite(cell.width):
                known.add(j, cell.function)
            if piece.is_due:
                piece.keep(**known.numbers)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        clock.interrupt()
    piece.keep(**known.numbers)
    if status is Status.OPTIMAL and own_clock.is_over:
        status = Status.TIME_LIMIT
    has_all = all(j in learned and learned[j].in_time for j in np.flatnonzero(members.sizes).tolist())
    whole = None if stand_in is None or has_all else function_of_table(stand_in, table, clock, seed)
    cells = [_answer(j, learned.get(j), members, table, learner, whole) for j in range(members.n_cells)]
    function = LocalizedFunction(cover, [cell.function for cell in cells], members.sizes, len(table.Y), members)
    return conclude(function, cells, status, clock, tol, "a constant" if whole is None else str(whole))


def _answer(
    j: int,
    learned: LearnedCell | None,
    members: Assignment,
    table: CellRows,
    learner: CellLearner,
    whole: FunctionOfTable | None,
) -> LearnedCell:
    """What a cell has learned, or what answers where it was not begun."""
    size = int(members.sizes[j])
    if learned is not None and (learned.in_time or whole is None):
        return learned
    rows = members.rows(j) if size else np.arange(len(table.X))
    if size and whole is not None:
        return LearnedCell.of(whole.in_cell(table.part(rows), whole.seen[rows]), size, in_time=False)
    return LearnedCell.of(learner.constant(table.Y[:, rows], table.weights[rows]), size, in_time=not size)


def _results(tasks: Iterable[tuple[Any, ...]], n_jobs: int | None) -> Iterator[LearnedCell]:
    """Learn cell after cell, or a few times as many as there are processes at once."""
    jobs, tasks = effective_n_jobs(n_jobs), iter(tasks)
    if jobs == 1:
        yield from (learn_cell(*task) for task in tasks)
        return
    # In batches: an interrupted generator of joblib would leave its processes at work.
    with Parallel(n_jobs=n_jobs) as pool:
        while batch := [task for _, task in zip(range(4 * jobs), tasks, strict=False)]:
            yield from pool(delayed(learn_cell)(*task) for task in batch)


def some_cells(table: CellRows, cells: Assignment, seed: int, kernel: Kernel | None = None) -> list[CellRows]:
    """The rows that a few random cells predict at, as `random_cells` and `rows_near` give them."""
    keys = np.random.default_rng(seed).random(len(table.X)) if table.keys is None else table.keys
    chosen = random_cells(_labels(cells), keys, SHARED_CELLS)
    return [rows_near(table.part(cells.rows(j)), table.X[row], kernel) for j, row in chosen.items()]


def whole_cells(table: CellRows, cells: Assignment, n: int) -> list[CellRows]:
    """All rows that n random cells predict at, by the keys of the rows; cells ascend."""
    assert table.keys is not None
    return [table.part(cells.rows(j)) for j in sorted(random_cells(_labels(cells), table.keys, n))]


def _labels(cells: Assignment) -> Index:
    labels = np.empty(len(cells.order), dtype=np.intp)
    labels[cells.order] = np.repeat(np.arange(cells.n_cells), cells.sizes)
    return labels


def random_cells(labels: Index, keys: Keys | Array, n: int) -> dict[int, int]:
    """N cells, large ones coming more often, each with one of its rows: those of the rows with the least keys."""
    order = np.argsort(keys, kind="stable")
    first = np.sort(np.unique(labels[order], return_index=True)[1])[:n]
    return {int(labels[row]): int(row) for row in order[first]}


def rows_near(rows: CellRows, point: Array, kernel: Kernel | None = None) -> CellRows:
    """The rows of a cell; of a large one those near a point, which are as dense, as random ones would not be."""
    if len(rows.X) <= SHARED_ROWS:
        return rows
    near = squared_distances(rows.X, point[None]) if kernel is None else kernel.squared_distances(rows.X, point[None])
    return rows.part(np.sort(np.argsort(near[:, 0], kind="stable")[:SHARED_ROWS]))


def shared_learner(learner: KernelLearner, cells: Sequence[CellRows], clock: Clock, seed: int) -> KernelLearner:
    """The learner with one pair of lam and width for all cells, selected on some of them."""
    clock.show.note(f"lam and the width for all cells are selected on {len(cells)} of them")
    piece = clock.piece("pair for all cells", learner, seed, *(rows.X for rows in cells))
    if known := piece.found:
        choice = PairSelection(Grid(known["lams"], known["widths"]), known["risks"], for_all=True)
        return replace(learner, pair=tuple(known["pair"].tolist()), choice=choice)
    deadline = clock.part(SHARED_TIME).deadline
    with threads_for(max((len(rows.X) for rows in cells), default=0)):
        found = learner.for_all(cells, np.random.default_rng(seed), deadline)
    if found.choice is not None and not found.choice.is_cut:
        piece.keep(pair=found.pair, risks=found.choice.risks, **vars(found.choice.grid))
    return found


def conclude(
    function: Any,
    cells: Sequence[LearnedCell],
    status: Status,
    clock: Clock,
    tol: float = np.inf,
    instead: str = "a constant",
) -> Solution:
    """State what was learned, and warn where a limit came first or a cell does not keep the gap `tol` that is promised.

    Functions may be elsewhere; `status` is OPTIMAL, INTERRUPTED or TIME_LIMIT. `instead` is what cells answer with that
    were not begun.
    """
    # Where there are no rows, there is nothing to be proven.
    certificate = worst([cell.certificate for cell in cells if cell.size])
    n_left, said = sum(not cell.in_time for cell in cells), None
    some = of_some_rows(np.array([cell.n_spared for cell in cells]), np.array([cell.size for cell in cells]))
    if status is not Status.INTERRUPTED and (n_left or some or clock.is_over):
        status = Status.TIME_LIMIT
    if status is not Status.OPTIMAL:
        of_cells = f"of {len(cells)} cells"
        if n_left:
            why = f"{n_left} {of_cells} answer with {instead} ({status.name}){some and f', {some}'}, and the search of "
            why += "others may have been cut short"
        else:
            why = f"{status.name} may have cut the search of some {of_cells} short{some and f', {some}'}"
        said = f"{why}; raise max_time, or use smaller cells."
    elif not np.isfinite(certificate.relative_gap):
        status = Status.UNPROVEN
    elif not certificate.holds(tol):
        status = because_of_rounding(certificate, Status.STALLED, tol)
        why = "which rounding may have cost" if status is Status.ROUNDED else "or bounds that cross"
        said = (
            f"the worst of {len(cells)} cells has the relative gap {certificate.relative_gap:.1e}, above tol={tol:g}, "
            f"{why}; raise tol."
        )
    if said:
        tell(said)
    if n_cut := sum(cell.is_cut for cell in cells):
        clock.cut(f"the choice of lam and the width in {n_cut} of {len(cells)} cells")
    done = len(cells) - n_left
    clock.show.finish(f"{status.name.lower()}: {done} cells learned in {clock.seconds:.2f} s")
    theta = np.array([[cell.lam, cell.width] for cell in cells])
    return Solution(function, theta, certificate, status, done, clock.seconds, (), "cells")


class CellProgress:
    """Says how far the work is, and what a cell may take: unknown costs grow like the square of the size of a cell."""

    def __init__(self, clock: Clock, sizes: Index, jobs: int = 1) -> None:
        self.clock, self.cost, self.jobs = clock, sizes.astype(np.float64) ** 2, jobs
        self.count, self.done, self.begun = 0, 0.0, 0.0

    def allowed(self, j: int) -> float:
        """Seconds for a cell that is begun: almost twice its share of those left, so that others get theirs."""
        share = min(1.0, self.jobs * self.cost[j] / max(float(self.cost.sum()) - self.begun, self.cost[j]))
        self.begun += self.cost[j]
        return share * (2.0 - share) * (self.clock.deadline - time.monotonic())

    def learned(self, j: int) -> None:
        """One more cell was learned."""
        self.count, self.done = self.count + 1, self.done + self.cost[j]
        share = self.done / max(float(self.cost.sum()), 1.0)
        self.clock.tell(share, f"{self.count} of {len(self.cost)} cells", now=self.count == 1)


class ChoiceForAll(Protocol):
    """What is chosen for all cells, by the rows of a few; it has to be picklable.

    It is called with a learner, rows of a few random cells (`some_cells`), and all rows that `n_whole` random cells
    predict at (`whole_cells`).
    """

    @property
    def n_whole(self) -> int:
        """How many cells it looks at all rows of."""

    def __call__(
        self, learner: KernelLearner, near: Sequence[CellRows], whole: Sequence[CellRows], clock: Clock, seed: int
    ) -> KernelLearner:
        """The learner for all cells."""


@dataclass(frozen=True)
class PairForAll:
    """One pair of lam and width for all cells."""

    n_whole: int = 0

    def __call__(
        self, learner: KernelLearner, near: Sequence[CellRows], whole: Sequence[CellRows], clock: Clock, seed: int
    ) -> KernelLearner:
        """The learner with the pair."""
        return shared_learner(learner, near, clock, seed)


def seconds_by_size(
    table: CellRows, learner: CellLearner, rng: np.random.Generator, deadline: float
) -> Callable[[int], float]:
    """How long a cell takes by its number of points: a power of it, from two cells that are learned for it."""
    sizes = sorted({min(len(table.X), size) for size in (200, 600)})
    seconds = []
    for size in [min(len(table.X), 20), *sizes]:  # the first one compiles and loads
        rows = rng.choice(len(table.X), size, replace=False)
        began = time.perf_counter()
        learner.learn(table.part(rows), rng, deadline)
        seconds.append(time.perf_counter() - began)
    power = 2.0
    if len(sizes) == 2 and seconds[1] > 0.0:
        power = float(np.clip(np.log(seconds[2] / seconds[1]) / np.log(sizes[1] / sizes[0]), 1.0, 3.0))
    last, size = max(seconds[-1], 1e-6), sizes[-1]
    return lambda m: last * (m / size) ** power
