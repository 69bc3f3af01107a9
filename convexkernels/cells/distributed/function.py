"""The function of all cells while it stays on a Dask cluster, and lazy predictions for Dask tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index
from convexkernels.cells.cover import Cover
from convexkernels.cells.distributed.cluster import active_client, computed
from convexkernels.cells.distributed.summary import part_points
from convexkernels.cells.distributed.table import DistributedTable, blocks_of
from convexkernels.cells.function import LocalizedFunction, verified, worst
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError, MissingAttributeError

# Covers and functions that a client has sent to its workers, who forget them when they are forgotten here.
_SENT: WeakKeyDictionary[Any, tuple[str, Any]] = WeakKeyDictionary()
REMEDY = "bring it first: model.function_ = model.function_.gather()."


@dataclass(frozen=True, eq=False)
class DistributedFunction:
    """A `LocalizedFunction` whose cells stay on the cluster that learned them.

    `parts` are dicts of functions by cell, kept by the workers; a lost one is learned again.
    """

    cover: Cover
    parts: list[Any]
    sizes: Index
    n_outputs: int

    def __getstate__(self) -> dict[str, Any]:  # pickle and copy ask for it
        raise InvalidInputError(f"the function is on a Dask cluster and cannot be copied or saved from here; {REMEDY}")

    def gather(self) -> LocalizedFunction:
        """Bring the functions of all cells to this process."""
        found: dict[int, Any] = {}
        for part in computed(*self.parts):
            found |= part
        functions = [found[j] for j in range(self.cover.n_cells)]
        return LocalizedFunction(self.cover, functions, self.sizes, self.n_outputs)

    def function(self, theta: Any, alpha: Any) -> Self:
        """The learned function."""
        return self

    def certificate(self, theta: Any, alpha: Any, witness: Any) -> DualityGap:
        """The worst certificate of all cells, computed again where they are."""
        from dask import delayed

        found = computed(*(delayed(_gaps)(part, self.sizes) for part in self.parts))
        return worst([gap for gaps in found for gap in gaps])

    def kernel(self, theta: Any) -> Any:
        """Refused: the widths of the cells are elsewhere."""
        raise MissingAttributeError(f"the function that the kernel belongs to is on a Dask cluster; {REMEDY}")

    def delayed_values(self, X: Any, cover: Any) -> Any:
        """Values at scaled points that are a delayed value, like the cover, too; points go to the functions."""
        from dask import delayed

        cells = delayed(_cells)(cover, X)
        answers = [delayed(_answers)(part, X, cells) for part in self.parts]
        return delayed(_assembled)(X, answers, self.n_outputs, self.cover.n_cells if self.cover.average else 0)

    def values(self, X: Array) -> Array:
        """Values at new points, shape (n_samples, n_outputs)."""
        from dask import delayed

        points, cover = delayed(X, traverse=False), delayed(self.cover, traverse=False)
        return np.asarray(computed(self.delayed_values(points, cover))[0])

    decision_function = values


def _gaps(functions: dict[int, Any], sizes: Index) -> list[DualityGap]:
    return [verified(function) for j, function in functions.items() if sizes[j]]


def _cells(cover: Cover, X: Array) -> Index | None:
    """Cell of each point, or None where all cells have a say."""
    if cover.average:
        return None
    return cover.cells(X) if len(X) else np.empty(0, dtype=np.intp)


def _answers(functions: dict[int, Any], X: Array, cells: Index | None) -> list[tuple[Any, Array]]:
    """Rows that are in the cells of a group, with the values; all rows and their sum, for averages."""
    if cells is None:
        return [(slice(None), np.sum([function.values(X) for function in functions.values()], axis=0))]
    found = ((np.flatnonzero(cells == j), function) for j, function in functions.items())
    return [(rows, function.values(X[rows])) for rows, function in found if rows.size]


def _assembled(X: Array, answers: list[list[tuple[Any, Array]]], n_outputs: int, averaged: int) -> Array:
    F = np.zeros((len(X), n_outputs))
    for rows, values in (answer for part in answers for answer in part):
        F[rows] += values
    return F / averaged if averaged else F


def values_of_parts(
    X: Any,
    function: Any,
    n_values: int,
    scale: Callable[[Array], Array],
    finish: Callable[[Array], NDArray[Any]],
) -> Any:
    """What is predicted for the rows of a Dask array or dataframe, as a lazy Dask array.

    The function has `values` of shape (m, n_values), or is a `DistributedFunction`. `scale` takes validated points to
    scaled ones, `finish` values to predictions; both are picklable.
    """
    import dask.array as da
    from dask import delayed

    blocks, lengths, n_features, _ = blocks_of(X)
    rule = delayed((scale, n_features), traverse=False)
    held = _held(function.cover if isinstance(function, DistributedFunction) else function)
    results, example = [], finish(np.zeros((1, n_values)))[:0]  # which says type and number of columns
    for i, (block, length) in enumerate(zip(blocks, lengths, strict=True)):
        points = delayed(_scaled_block)(i, block, rule)
        if isinstance(function, DistributedFunction):
            values = function.delayed_values(points, held)
        else:
            values = delayed(_values)(held, points, n_values)
        shape = (length if np.isnan(length) else int(length), *example.shape[1:])
        results.append(da.from_delayed(delayed(finish)(values), shape, meta=example))
    return da.concatenate(results, allow_unknown_chunksizes=True)


def _held(value: Any) -> Any:
    """A delayed value: without a cluster once in the graph; with one it is sent there once, for all predictions."""
    from dask import config, delayed

    client = active_client()
    if client is None:
        return delayed(value, traverse=False)
    if _SENT.get(value, (None, None))[0] != client.id:
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):  # what is sent once may be large
            _SENT[value] = client.id, client.persist(delayed(_itself)(delayed(value, traverse=False)))
    return _SENT[value][1]


def _itself(value: Any) -> Any:
    return value


def _scaled_block(index: int, block: Any, rule: Any) -> Array:
    scale, n_features = rule
    if np.shape(block)[0] == 0:
        return np.empty((0, 0))
    try:
        return scale(part_points(block, n_features))
    except InvalidInputError as error:
        raise InvalidInputError(f"partition {index}: {error}") from error


def _values(function: Any, X: Array, n_values: int) -> Array:
    return np.asarray(function.values(X)) if len(X) else np.empty((0, n_values))


def beside_targets(table: DistributedTable, predictions: Any) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Targets, predictions from `values_of_parts` and weights of all rows, brought here."""
    from dask import delayed

    answers = np.ravel(np.array(predictions.to_delayed(), dtype=object))
    parts = [part for part, length in zip(table.parts, table.lengths, strict=True) if length]  # Dask leaves others out
    found = computed(*(delayed(_beside)(y, p, w) for (_, y, w), p in zip(parts, answers, strict=True)))
    y, predicted, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    return y, predicted, weights


def _beside(y: Any, predicted: NDArray[Any], weights: Any) -> tuple[NDArray[Any], NDArray[Any], Array]:
    return np.asarray(y), predicted, np.ones(len(y)) if weights is None else np.asarray(weights)
