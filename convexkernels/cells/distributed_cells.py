"""Learning in the cells of a table on a Dask cluster, and predicting for tables on one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexkernels.cells.cluster import active_client, cluster_errors, computed
from convexkernels.cells.cover import Cover
from convexkernels.cells.distributed_table import DistributedTable, RowEncoding, balanced_groups, blocks_of
from convexkernels.cells.machines import CellLearner
from convexkernels.cells.training import Countdown, LocalizedMachines, conclude, report, verified, worst
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError
from convexkernels.progress import Silent, as_progress
from convexkernels.solution import Solution, Status
from convexkernels.validation import check_points

__all__ = ["DistributedMachines", "learn_distributed_cells", "values_of_parts"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LearnedCell:
    """What the task of a cell returns."""

    machine: Any
    size: int
    in_time: bool
    report: tuple[DualityGap, float, float]


@dataclass(frozen=True, eq=False)
class DistributedMachines:
    """The predictor of `LocalizedMachines`, with machines that stay on the cluster that learned them.

    Attributes
    ----------
    cover : Cover
    groups : ndarray of int, shape (n_cells,)
        Which of `parts` a cell is in.
    parts : list of Delayed
        Machines by cell, kept by the workers; a lost one is learned again.
    sizes, n_machines
        As in `LocalizedMachines`.
    """

    cover: Cover
    groups: Rows
    parts: list[Any]
    sizes: Rows
    n_machines: int

    def __getstate__(self) -> dict[str, Any]:  # pickle and copy ask for it
        raise InvalidInputError(
            "the machines are on a Dask cluster and cannot be copied or saved from here; bring them first: "
            "model.machines_ = model.machines_.gather()."
        )

    def gather(self) -> LocalizedMachines:
        """Bring all machines to this process."""
        found: dict[int, Any] = {}
        for part in computed(*self.parts):
            found |= part
        machines = [found[j] for j in range(self.cover.n_cells)]
        return LocalizedMachines(self.cover, machines, self.sizes, self.n_machines)

    def function(self, theta: Any, alpha: Any) -> Self:
        """The learned function."""
        return self

    def certificate(self, theta: Any, alpha: Any, witness: Any) -> DualityGap:
        """The worst certificate of all cells, computed again where they are."""
        from dask import delayed

        return worst(
            [gap for gaps in computed(*(delayed(_gaps)(part, self.sizes) for part in self.parts)) for gap in gaps]
        )

    def kernel(self, theta: Any) -> Any:
        """Refused: the widths of the cells are elsewhere."""
        raise InvalidInputError(
            "the machines of the kernel are on a Dask cluster; bring them first: model.machines_ = "
            "model.machines_.gather()."
        )

    def delayed_values(self, X: Any, cover: Any) -> Any:
        """Values at scaled points that are a delayed value, like the cover, too; points go to the machines."""
        from dask import delayed

        cells = delayed(_cells)(cover, X)
        answers = [delayed(_answers)(part, X, cells) for part in self.parts]
        return delayed(_assembled)(X, answers, self.n_machines, self.cover.n_cells if self.cover.average else 0)

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_machines)."""
        from dask import delayed

        points, cover = delayed(X, traverse=False), delayed(self.cover, traverse=False)
        return np.asarray(computed(self.delayed_values(points, cover))[0])

    decision_function = values


def learn_distributed_cells(
    table: DistributedTable,
    encoding: RowEncoding,
    cover: Cover,
    learner: CellLearner,
    sample: tuple[Array, Array, Array],
    *,
    seed: int = 0,
    gather: bool = True,
    max_time: float | None = None,
    progress: bool | Silent = False,
    tol: float = np.inf,
) -> Solution:
    """Shuffle a table to the cells of a cover, and learn in every cell as a task of its own.

    Parameters
    ----------
    table : DistributedTable
    encoding : RowEncoding
    cover : Cover
        Of scaled points.
    learner : CellLearner
    sample : (X, Y, weights)
        Scaled rows of the table as the learner takes them: they say how large cells are about, and what cells
        without rows answer.
    seed : int
        Every cell draws from a stream of its own.
    gather : bool
        Whether machines are brought here. Without a cluster they are here anyway.
    max_time : float, optional
        Seconds after which no further cell is begun, by the clock of each worker; the others answer with constants.
        After a keyboard interrupt, those that were not learned answer with the constant of the sample.
    progress : bool or progress object
    tol : float
        Relative duality gap that the learner promises for every cell.

    Returns
    -------
    Solution
        As of `training.learn_cells`; its problem is a `LocalizedMachines` or a `DistributedMachines`.

    Raises
    ------
    ClusterError
        When the scheduler is gone, or workers die again and again. A worker that dies otherwise costs time only: what
        it had is done again elsewhere.
    """
    from dask import delayed

    started, clock = time.monotonic(), time.time()
    shown = as_progress(progress)
    client = active_client()
    X, Y, weights = sample
    expected = np.bincount(cover.cells(X), minlength=cover.n_cells)
    groups = balanced_groups(expected, len(table.parts))
    shuffled = table.shuffled(encoding, cover, groups, seed)
    shown.note(f"{cover!r}: {len(table.parts)} parts of the table are shuffled to {len(shuffled)} groups of cells")
    rule = delayed((encoding, cover, learner, None if max_time is None else clock + max_time), traverse=False)
    fallback = learner.constant(Y, weights)
    order = np.argsort(-expected, kind="stable").tolist()
    streams = np.random.SeedSequence(seed).spawn(cover.n_cells)
    tasks = {j: delayed(_learn)(shuffled[groups[j]], j, rule, fallback, streams[j]) for j in order}
    cells = _Cells(cover, tasks, fallback, Countdown(shown, expected, started))
    with cluster_errors():
        cells.learn(client, gather)
    learned = cells.reports
    sizes = np.array([learned[j].size if j in learned else expected[j] for j in range(cover.n_cells)], dtype=np.intp)
    left = sum(j not in learned or not learned[j].in_time for j in range(cover.n_cells))
    status = Status.TIME_LIMIT if left and cells.status is Status.OPTIMAL else cells.status
    found: LocalizedMachines | DistributedMachines
    if client is None or gather:
        machines = [learned[j].machine if j in learned else fallback for j in range(cover.n_cells)]
        found = LocalizedMachines(cover, machines, sizes, len(Y))
    else:
        with cluster_errors():
            found = DistributedMachines(cover, groups, cells.kept(client, groups), sizes, len(Y))
    reports = [learned[j].report if j in learned else report(fallback) for j in range(cover.n_cells)]
    return conclude(found, reports, left, status, started, shown, tol)


class _Cells:
    """The tasks of all cells, and what is known of those that are done."""

    def __init__(self, cover: Cover, tasks: dict[int, Any], fallback: Any, countdown: Countdown) -> None:
        self.cover, self.tasks, self.fallback, self.countdown = cover, tasks, fallback, countdown
        self.reports: dict[int, LearnedCell] = {}
        self.status = Status.OPTIMAL

    def learn(self, client: Any, gather: bool) -> None:
        """Learn in all cells; with `gather` false, reports come without their machines."""
        import dask
        from dask import delayed

        if client is None:
            self.reports = dict(zip(self.tasks, dask.compute(*self.tasks.values()), strict=True))
            return
        if not gather:
            self.tasks = dict(zip(self.tasks, client.persist(list(self.tasks.values())), strict=True))
        wanted = self.tasks if gather else {j: delayed(_without_machine)(task) for j, task in self.tasks.items()}
        futures = dict(zip(client.compute(list(wanted.values())), wanted, strict=True))
        try:
            for future, report in _as_completed(futures):
                if isinstance(report, BaseException):  # of a future that was cancelled, with its scheduler
                    raise report
                self.reports[futures[future]] = report
                self.countdown.learned(futures[future])
                future.release()
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
            client.cancel([future for future, j in futures.items() if j not in self.reports])

    def kept(self, client: Any, groups: Rows) -> list[Any]:
        """Machines of the cells of each group, on the cluster."""
        from dask import delayed
        from distributed import wait

        held = [{} for _ in range(int(groups.max()) + 1)]  # type: list[dict[int, Any]]
        for j in range(self.cover.n_cells):
            held[groups[j]][j] = self.tasks[j] if j in self.reports else self.fallback
        parts = client.persist([delayed(_machines)(list(part), list(part.values())) for part in held])
        wait(parts)
        return list(parts)


def _as_completed(futures: dict[Any, int]) -> Iterator[tuple[Any, LearnedCell]]:
    from distributed import as_completed

    return iter(as_completed(list(futures), with_results=True))


def _learn(part: Any, cell: int, rule: Any, fallback: Any, stream: np.random.SeedSequence) -> LearnedCell:
    """Learn in one cell of a part of the shuffled table."""
    encoding, cover, learner, deadline = rule
    rows = np.flatnonzero(part["cell"].to_numpy() == cell)
    if not rows.size:
        return LearnedCell(fallback, 0, True, report(fallback))
    inside = part.iloc[rows]
    points = np.ascontiguousarray(inside.drop(columns=["y", "weight", "cell"]).to_numpy(dtype=np.float64))
    X, Y, weights = encoding.merged(points, inside["y"].to_numpy(), inside["weight"].to_numpy())
    in_time = deadline is None or time.time() <= deadline
    if in_time:
        own = cover.cells(X) == cell if cover.overlaps else None
        machine = learner.learn(X, Y, weights, np.random.default_rng(stream), own)
    else:
        machine = learner.constant(Y, weights)
    return LearnedCell(machine, len(X), in_time, report(machine))


def _without_machine(cell: LearnedCell) -> LearnedCell:
    return replace(cell, machine=None)


def _gaps(machines: dict[int, Any], sizes: Rows) -> list[DualityGap]:
    return [verified(machine) for j, machine in machines.items() if sizes[j]]


def _machines(cells: list[int], learned: list[Any]) -> dict[int, Any]:
    return {j: found.machine if isinstance(found, LearnedCell) else found for j, found in zip(cells, learned)}  # noqa: B905


def _cells(cover: Cover, X: Array) -> Rows | None:
    """Cell that answers for each point, or None where all cells do."""
    if cover.average:
        return None
    return cover.cells(X) if len(X) else np.empty(0, dtype=np.intp)


def _answers(machines: dict[int, Any], X: Array, cells: Rows | None) -> list[tuple[Any, Array]]:
    """Rows that a group of machines answers for, with the values; all rows and their sum, for averages."""
    if cells is None:
        return [(slice(None), np.sum([machine.values(X) for machine in machines.values()], axis=0))]
    found = ((np.flatnonzero(cells == j), machine) for j, machine in machines.items())
    return [(rows, machine.values(X[rows])) for rows, machine in found if rows.size]


def _assembled(X: Array, answers: list[list[tuple[Any, Array]]], n_machines: int, averaged: int) -> Array:
    F = np.zeros((len(X), n_machines))
    for rows, values in (answer for part in answers for answer in part):
        F[rows] += values
    return F / averaged if averaged else F


def values_of_parts(
    X: Any,
    machines: LocalizedMachines | DistributedMachines,
    scale: Callable[[Array], Array],
    finish: Callable[[Array], NDArray[Any]],
    example: NDArray[Any],
) -> Any:
    """What is predicted for the rows of a Dask table, as a lazy Dask array.

    Parameters
    ----------
    X : Dask array or dataframe
    machines : LocalizedMachines or DistributedMachines
    scale : callable
        Scaled points from validated ones; picklable, like `finish`.
    finish : callable
        Predictions from values of the machines.
    example : ndarray
        A prediction for no rows, for the type and the number of columns.
    """
    import dask.array as da
    from dask import delayed

    blocks, lengths, n_features, _ = blocks_of(X)
    rule = delayed((scale, n_features), traverse=False)
    # Once in the graph, for all parts.
    held = delayed(machines.cover if isinstance(machines, DistributedMachines) else machines, traverse=False)
    results = []
    for i, (block, length) in enumerate(zip(blocks, lengths, strict=True)):
        points = delayed(_scaled_block)(i, block, rule)
        if isinstance(machines, DistributedMachines):
            values = machines.delayed_values(points, held)
        else:
            values = delayed(_values)(held, points)
        shape = (length if np.isnan(length) else int(length), *example.shape[1:])
        results.append(da.from_delayed(delayed(finish)(values), shape, meta=example))
    return da.concatenate(results, allow_unknown_chunksizes=True)


def _scaled_block(index: int, block: Any, rule: Any) -> Array:
    scale, n_features = rule
    if np.shape(block)[0] == 0:
        return np.empty((0, 0))
    try:
        return scale(check_points(block, n_features=n_features))
    except InvalidInputError as error:
        raise InvalidInputError(f"partition {index}: {error}") from error


def _values(machines: LocalizedMachines, X: Array) -> Array:
    return machines.values(X) if len(X) else np.empty((0, machines.n_machines))
