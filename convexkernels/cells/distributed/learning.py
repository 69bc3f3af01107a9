"""Learning in the cells of a table on a Dask cluster."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cells.cover import Cover
from convexkernels.cells.distributed.cluster import active_client, cluster_errors
from convexkernels.cells.distributed.function import DistributedFunction
from convexkernels.cells.distributed.table import DistributedTable, RowEncoding, balanced_groups, rows_of
from convexkernels.cells.function import LocalizedFunction
from convexkernels.cells.learner import CellLearner, CellRows
from convexkernels.cells.training import (
    SHARED_CELLS,
    CellProgress,
    ChoiceForAll,
    LearnedCell,
    conclude,
    learn_cell,
    random_cells,
    rows_near,
)
from convexkernels.clock import Clock
from convexkernels.solution import Solution, Status


def learn_distributed_cells(
    table: DistributedTable,
    encoding: RowEncoding,
    cover: Cover,
    learner: CellLearner,
    sample: CellRows,
    clock: Clock,
    *,
    seed: int = 0,
    choose: ChoiceForAll | None = None,
    gather: bool = True,
    tol: float = np.inf,
) -> Solution:
    """Shuffle a table to the cells of a cover, and learn in every cell as a task of its own.

    As `training.learn_cells`, by the clock of each worker; functions are brought here where `gather` asks for it, or
    there is no cluster. `sample` are scaled rows of the table as the learner takes them: they say how large cells are
    about, and what cells answer that have no rows, or were not learned before a keyboard interrupt. What
    is the same in all cells is chosen first (`choose`), as a task on rows of some of them.

    A ClusterError says that the scheduler is gone, or workers die again and again. One that dies otherwise costs time
    only: what it had is done again elsewhere.
    """
    from dask import delayed

    client = active_client()
    labels = cover.cells(sample.X)
    expected = np.bincount(labels, minlength=cover.n_cells)
    groups = balanced_groups(expected, len(table.parts))
    shuffled = table.shuffled(encoding, cover, groups, seed)
    clock.show.note(f"{cover!r}: {len(table.parts)} parts of the table are shuffled to {len(shuffled)} groups of cells")
    # Clocks that count from the start of a computer do not travel.
    limit = time.time() + clock.max_time - clock.seconds
    fallback = learner.constant(sample.Y, sample.weights)
    rule = delayed((encoding, cover, learner, limit, fallback), traverse=False)
    if choose is not None:
        assert sample.keys is not None
        near = random_cells(labels, sample.keys, SHARED_CELLS)
        some = [delayed(_near)(shuffled[groups[j]], j, rule, sample.X[row]) for j, row in near.items()]
        whole = [
            delayed(_own)(shuffled[groups[j]], j, rule)
            for j in sorted(random_cells(labels, sample.keys, choose.n_whole))
        ]
        rule = delayed(_chosen)(rule, delayed(choose, traverse=False), some, whole, seed)
    streams = np.random.SeedSequence(seed).spawn(cover.n_cells)
    order = np.argsort(-expected, kind="stable").tolist()
    tasks = {j: delayed(_learned)(shuffled[groups[j]], j, rule, streams[j]) for j in order}
    shown, missing = CellProgress(clock, expected), [LearnedCell.of(fallback, int(n), False) for n in expected]
    with cluster_errors():
        tasks, learned, status = _computed(client, tasks, gather, shown)
        if status is Status.INTERRUPTED:
            clock.interrupt()
        cells = [learned.get(j, missing[j]) for j in range(cover.n_cells)]
        sizes = np.array([cell.size for cell in cells], dtype=np.intp)
        found: LocalizedFunction | DistributedFunction
        if client is None or gather:
            found = LocalizedFunction(cover, [cell.function for cell in cells], sizes, len(sample.Y))
        else:
            kept = {j: tasks[j] if j in learned else missing[j] for j in order}
            found = DistributedFunction(cover, _kept(client, kept, groups.tolist()), sizes, len(sample.Y))
    return conclude(found, cells, status, clock, tol)


def _computed(
    client: Any, tasks: dict[int, Any], gather: bool, shown: CellProgress
) -> tuple[dict[int, Any], dict[int, LearnedCell], Status]:
    """The tasks, what came of them, without functions unless they are gathered, and whether it came to its end."""
    import dask
    from dask import delayed

    if client is None:
        return tasks, dict(zip(tasks, dask.compute(*tasks.values()), strict=True)), Status.OPTIMAL
    if not gather:
        tasks = dict(zip(tasks, client.persist(list(tasks.values())), strict=True))
    wanted = tasks if gather else {j: delayed(_without_function)(task) for j, task in tasks.items()}
    futures = dict(zip(client.compute(list(wanted.values())), wanted, strict=True))
    learned: dict[int, LearnedCell] = {}
    try:
        for future, cell in _as_completed(futures):
            if isinstance(cell, BaseException):  # of a future that was cancelled, with its scheduler
                raise cell
            learned[futures[future]] = cell
            shown.learned(futures[future])
            future.release()
    except KeyboardInterrupt:
        client.cancel([future for future, j in futures.items() if j not in learned])
        return tasks, learned, Status.INTERRUPTED
    return tasks, learned, Status.OPTIMAL


def _as_completed(futures: dict[Any, int]) -> Any:
    from distributed import as_completed

    return iter(as_completed(list(futures), with_results=True))


def _kept(client: Any, cells: dict[int, Any], groups: list[int]) -> list[Any]:
    """Functions of the cells of each group, on the cluster."""
    from dask import delayed
    from distributed import wait

    held: list[dict[int, Any]] = [{} for _ in range(max(groups) + 1)]
    for j in sorted(cells):
        held[groups[j]][j] = cells[j]
    parts = client.persist([delayed(_functions)(list(part), list(part.values())) for part in held])
    wait(parts)
    return list(parts)


def _learned(part: Any, cell: int, rule: Any, stream: np.random.SeedSequence) -> LearnedCell:
    """Learn in one cell of a part of the shuffled table."""
    _, _, learner, limit, fallback = rule
    rows = _inside(part, cell, rule)
    if rows is None:
        return LearnedCell.of(fallback, 0)
    return learn_cell(learner, rows, stream, time.monotonic() + limit - time.time())


def _inside(part: Any, cell: int, rule: Any) -> CellRows | None:
    """The rows of a part of the shuffled table that a cell learns from."""
    encoding, cover, *_ = rule
    inside = part.iloc[np.flatnonzero(part["cell"].to_numpy() == cell)]
    if not len(inside):
        return None
    rows: CellRows = encoding.merged(*rows_of(inside))
    return replace(rows, own=cover.cells(rows.X) == cell) if cover.overlaps else rows


def _near(part: Any, cell: int, rule: Any, point: Array) -> CellRows:
    """The rows that a cell predicts at; of many those near one of them."""
    return rows_near(_own(part, cell, rule), point, rule[2].kernel)


def _own(part: Any, cell: int, rule: Any) -> CellRows:
    """The rows that a cell predicts at, some at least."""
    rows = _inside(part, cell, rule)
    assert rows is not None
    return rows if rows.own is None else replace(rows.part(rows.own), own=None)


def _chosen(rule: Any, choose: ChoiceForAll, near: list[CellRows], whole: list[CellRows], seed: int) -> Any:
    """The rule with the learner that was chosen for all cells."""
    encoding, cover, learner, limit, fallback = rule
    clock = Clock(None if np.isinf(limit) else max(limit - time.time(), 1e-3))
    return encoding, cover, choose(learner, near, whole, clock, seed), limit, fallback


def _without_function(cell: LearnedCell) -> LearnedCell:
    return replace(cell, function=None)


def _functions(cells: list[int], learned: list[LearnedCell]) -> dict[int, Any]:
    return {j: found.function for j, found in zip(cells, learned, strict=True)}
