"""Tables that are Dask collections: checked, summarized and shuffled to cells part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index
from convexkernels.cells.cover import Assignment, Cover
from convexkernels.cells.distributed.cluster import computed
from convexkernels.cells.distributed.summary import TableSummary, check_columns, checked_part
from convexkernels.cells.learner import CellRows
from convexkernels.exceptions import InvalidInputError

# Summaries of parts that are merged at once.
FAN_IN = 8


class RowEncoding(Protocol):
    """How rows of a table become rows of the problems in the cells; it has to be picklable."""

    def no_rows(self) -> tuple[Array, NDArray[Any], Array]:
        """What `scaled` gives for a table without rows."""

    def scaled(self, X: Array, y: NDArray[Any], weights: Array) -> tuple[Array, NDArray[Any], Array]:
        """Scaled points, encoded targets and weights > 0."""

    def merged(self, X: Array, y: NDArray[Any], weights: Array) -> CellRows:
        """The problem of scaled rows, one row for all that agree."""


def blocks_of(X: Any) -> tuple[list[Any], list[float], int, Any]:
    """The parts of a Dask table of points, as delayed values; their rows, NaN where not known; n_features; an example.

    The example is a table without rows, with the names of the columns where there are any.
    """
    if not hasattr(X, "to_delayed") or getattr(X, "ndim", None) != 2:
        raise InvalidInputError(
            f"X must be a Dask array or dataframe with rows and columns, got {type(X).__name__} of "
            f"{getattr(X, 'ndim', 'no')} dimensions."
        )
    if hasattr(X, "columns"):
        check_columns(X._meta)
        return _partitions(X), [float("nan")] * X.npartitions, len(X.columns), X._meta
    if np.isnan(X.shape[1]) or X.shape[1] == 0:
        raise InvalidInputError(f"the number of columns of X is not known, or 0: its shape is {X.shape}.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return X.to_delayed().ravel().tolist(), [float(c) for c in X.chunks[0]], int(X.shape[1]), np.empty((0, X.shape[1]))


def _partitions(values: Any) -> list[Any]:
    """The parts of a Dask collection, as delayed values."""
    if hasattr(values, "chunks"):
        return list(np.ravel(np.array(values.to_delayed(), dtype=object)))
    # Whatever reads a file reads needed columns only; that reads of few columns are made fewer would tear parts apart.
    frame = values.simplify() if hasattr(values, "simplify") else values
    return list(frame.to_delayed(optimize_graph=False))


def _aligned(values: Any, name: str, lengths: list[float], most_dimensions: int = 1) -> list[Any]:
    """The parts of targets or weights that belong to the parts of the points."""
    ndim = getattr(values, "ndim", np.ndim(values))
    if not hasattr(values, "__dask_graph__"):
        if np.isnan(lengths).any():
            raise InvalidInputError(
                f"{name} is not a Dask collection, and X has parts of unknown lengths; pass both with the same "
                "partitions, or X.to_dask_array(lengths=True)."
            )
        values = np.asarray(values)
        if ndim > most_dimensions or values.shape[:1] != (int(sum(lengths)),):
            raise InvalidInputError(f"{name} has shape {values.shape}, but X has {int(sum(lengths))} rows.")
        ends = np.cumsum(lengths).astype(int)
        return list(np.split(values, ends[:-1]))
    if not 1 <= ndim <= most_dimensions or not hasattr(values, "to_delayed"):
        raise InvalidInputError(
            f"{name} must be a Dask array or series of {'one dimension' if most_dimensions == 1 else 'rows'}, got "
            f"{type(values).__name__} of {ndim} dimensions; pass one number or label per row (and, for a regressor, "
            "output)."
        )
    known = hasattr(values, "chunks") and not np.isnan([*values.shape, *lengths]).any()
    if known and values.shape[0] != sum(lengths):
        raise InvalidInputError(f"{name} has {values.shape[0]} entries, but X has {int(sum(lengths))} rows.")
    if known and list(values.chunks[0]) != lengths:
        values = values.rechunk({0: tuple(int(length) for length in lengths)})
    if ndim == 2 and hasattr(values, "chunks"):
        values = values.rechunk({1: -1})
    blocks = _partitions(values)
    if len(blocks) != len(lengths):
        raise InvalidInputError(
            f"{name} has {len(blocks)} partitions, but X has {len(lengths)}; partition both the same way."
        )
    return blocks


@dataclass(frozen=True, eq=False)
class DistributedTable:
    """Points, targets and weights in parts that agree: `labels` where targets are those of classes.

    Rows of parts, the `lengths`, are NaN where they are not known yet; `example` is a table without rows.
    """

    parts: list[tuple[Any, Any, Any]]
    n_features: int
    example: Any
    labels: bool
    lengths: list[float]

    @classmethod
    def of_collections(cls, X: Any, y: Any, sample_weight: Any, *, labels: bool) -> DistributedTable:
        """Take Dask arrays or dataframes apart; shapes that are known have to agree."""
        if not hasattr(X, "__dask_graph__"):
            raise InvalidInputError(
                f"y or sample_weight is a Dask collection, but X is {type(X).__name__}; pass X as a Dask array or "
                "dataframe, too, or compute the others."
            )
        blocks, lengths, n_features, example = blocks_of(X)
        targets = _aligned(y, "y", lengths, 1 if labels else 2)
        weights = [None] * len(blocks) if sample_weight is None else _aligned(sample_weight, "sample_weight", lengths)
        return cls(list(zip(blocks, targets, weights, strict=True)), n_features, example, labels, lengths)

    @cached_property
    def _firsts(self) -> list[int]:
        """Number of the first row of every part, among those of positive weight."""
        from dask import delayed

        counts: Sequence[float] = self.lengths
        if np.isnan(counts).any() or any(weights is not None for _, _, weights in self.parts):
            counts = computed(*(delayed(_n_rows)(y, weights) for _, y, weights in self.parts))
        return [0, *np.cumsum(counts[:-1]).astype(int).tolist()]

    def _checked(self) -> list[Any]:
        from dask import delayed

        check = delayed(checked_part, pure=False)
        return [
            check(i, *part, n_features=self.n_features, labels=self.labels)  # names the part it refuses
            for i, part in enumerate(self.parts)
        ]

    def summarized(self, size: int, seed: int) -> TableSummary:
        """Look at every part once, and draw at most `size` distinct rows; what is refused names its part."""
        from dask import delayed

        level = [delayed(_summary)(part, self.labels, size, seed) for part in self._checked()]
        merge = delayed(TableSummary.merged)
        while len(level) > 1:
            level = [merge(level[k : k + FAN_IN], labels=self.labels, size=size) for k in range(0, len(level), FAN_IN)]
        (summary,) = computed(level[0])
        if summary is None:
            raise InvalidInputError(
                f"X has no rows of positive weight in any of its {len(self.parts)} partitions; learning needs two."
            )
        if summary.n_rows < 2:
            raise InvalidInputError(f"X has {summary.n_rows} row of positive weight; learning needs two rows or more.")
        return summary

    def shuffled(self, encoding: RowEncoding, cover: Cover, groups: Index, seed: int) -> list[Any]:
        """Take every row to the cells that learn from it, by a shuffle of Dask: a dataframe for each group of cells.

        ``groups[j]`` is the place of cell j in the result; its columns are scaled features, target, weight and cell.
        """
        import dask.dataframe as dd
        from dask import delayed

        rule = delayed((encoding, cover, groups, seed), traverse=False)
        meta = _routed(None, (encoding, cover, groups, seed), 0)
        firsts = self._firsts if cover.average else [0] * len(self.parts)
        routed = [delayed(_routed)(part, rule, k) for part, k in zip(self._checked(), firsts, strict=True)]
        n_groups = int(groups.max()) + 1
        frame = dd.from_delayed(routed, meta=meta, verify_meta=False)
        return list(frame.set_index("group", divisions=list(range(n_groups + 1))).to_delayed())


def balanced_groups(sizes: Index, n_groups: int) -> Index:
    """Group of every cell, shape (n_cells,): as many rows in each group as taking the largest first gives."""
    n_groups = max(1, min(n_groups, len(sizes)))
    filled = np.zeros(n_groups)
    groups = np.empty(len(sizes), dtype=np.intp)
    for j in np.argsort(-sizes, kind="stable"):
        groups[j] = int(filled.argmin())
        filled[groups[j]] += max(1, sizes[j])
    return groups


def _n_rows(y: Any, weights: Any) -> int:
    return len(y) if weights is None else int(np.count_nonzero(weights))


def _summary(part: Any, labels: bool, size: int, seed: int) -> TableSummary | None:
    return None if part is None else TableSummary.of_rows(*part, labels=labels, size=size, seed=seed)


def _routed(part: Any, rule: Any, first: int) -> Any:
    """The rows of a part as a dataframe, once for each cell that learns from them."""
    import pandas as pd

    encoding, cover, groups, seed = rule
    X, y, weights = encoding.no_rows() if part is None else encoding.scaled(*part)
    members = _members(X, cover, seed, first) if len(X) else Assignment(np.empty(0, np.intp), np.zeros(2, np.intp))
    cells = np.repeat(np.arange(members.n_cells), members.sizes)
    frame = pd.DataFrame(X[members.order], columns=[f"x{k}" for k in range(X.shape[1])])
    for name, column in zip(_target_names(y), np.atleast_2d(y.T), strict=True):
        frame[name] = column.astype(np.float64)[members.order]
    frame["weight"] = weights[members.order]
    frame["cell"] = cells.astype(np.int64)
    frame["group"] = groups[cells].astype(np.int64)
    return frame


def _target_names(y: NDArray[Any]) -> list[str]:
    return ["y"] if y.ndim == 1 else [f"y{k}" for k in range(y.shape[1])]


def rows_of(frame: Any) -> tuple[Array, Array, Array]:
    """Scaled points, encoded targets and weights of rows that a shuffle has brought together."""
    targets = [name for name in frame.columns if name.startswith("y")]
    X = frame.drop(columns=[*targets, "weight", "cell"]).to_numpy(dtype=np.float64)
    y = frame[targets if targets != ["y"] else "y"].to_numpy(dtype=np.float64)
    return np.ascontiguousarray(X), y, frame["weight"].to_numpy()


def _members(X: Array, cover: Cover, seed: int, first: int) -> Assignment:
    if not cover.average:
        return cover.members(X)
    # Every n_cells rows in order go to all chunks of the table, one to each.
    n, last = cover.n_cells, first + len(X)
    before, after = first % n, -last % n
    numbers = np.random.Generator(np.random.PCG64(seed).advance(first - before)).random(before + len(X) + after)
    ranks = numbers.reshape(-1, n).argsort(axis=1).argsort(axis=1)
    return Assignment.from_labels(ranks.ravel()[before : before + len(X)], n)
