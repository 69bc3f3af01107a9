"""Dask tables: the answers are those of the table in memory, on a real cluster too, and failures have a name."""

import functools
import logging
import os
import pickle
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import default_client
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge

from convexkernels import (
    AllRows,
    Cells,
    CellSelection,
    ClusterError,
    ConvexKernelsWarning,
    HierarchicalGaussian,
    HierarchicalGaussianClassifier,
    HierarchicalGaussianRegressor,
    InvalidInputError,
    MemoryLimitError,
    Status,
    TreeSearch,
    TreeSelection,
    VoronoiQuantile,
    VoronoiRidge,
    VoronoiSVC,
    VoronoiSVR,
)
from convexkernels.cells import metric, training
from convexkernels.cells.distributed import learning
from convexkernels.cells.distributed.cluster import active_client
from convexkernels.cells.distributed.function import DistributedFunction
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.cells.distributed.table import balanced_groups
from convexkernels.cells.function import LocalizedFunction
from convexkernels.cells.sampling import content_keys, least, rows_by_share, seeded
from convexkernels.estimators.hierarchical import all_rows
from convexkernels.estimators.hierarchical import base as hierarchical
from convexkernels.estimators.hierarchical import training as training_of_trees
from convexkernels.estimators.voronoi import base

# A loaded computer is slow to make folders, and two test processes may want the same port for their status pages.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Creating scratch directories"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use"),
]

SMALL = {"selection": CellSelection(n_lams=3, n_widths=3), "random_state": 0}
LEARNED = HierarchicalGaussian(
    [1.0, 2.0], [HierarchicalGaussian([1.0, 0.5], features=[0, 1]), HierarchicalGaussian([1.5], features=[1])]
)

# Nothing here waits for less than a slow computer may take. Workers of little memory need small buffers, allocators
# that give memory back, and no pauses: one that has nothing left to spill would never end.
SETTINGS = {
    "distributed.comm.timeouts.connect": "300s",
    "distributed.comm.timeouts.tcp": "300s",
    "distributed.p2p.storage.buffer": "16 MiB",
    "distributed.p2p.comm.buffer": "16 MiB",
    "distributed.nanny.pre-spawn-environ.ARROW_DEFAULT_MEMORY_POOL": "system",
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": "2",
    "distributed.worker.memory.pause": False,
}


def table(m=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(m)


def labels(y):
    return np.array(["low", "middle", "high"])[np.digitize(y, [-0.2, 0.2])]


def pairs_of(model):
    """lam and the width of every cell."""
    return model.solution_.theta[np.isfinite(model.solution_.theta)].tolist()


def parts(values, sizes):
    return da.from_array(values, chunks=(tuple(sizes), *(-1 for _ in values.shape[1:])))


@contextmanager
def a_cluster(folder, **options):
    """A scheduler here and two worker processes, reached through the loopback interface, and a client of it."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0} | options
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            local_directory=str(folder),
            **options,
        ) as cluster,
        Client(cluster, timeout="300s"),
    ):
        yield cluster


# --- without a cluster ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        VoronoiRidge(max_cell_size=150, **SMALL),
        VoronoiRidge(max_cell_size=150, cells=Cells("tree"), **SMALL),
        VoronoiRidge(max_cell_size=150, cells=Cells("overlapping"), **SMALL),
        VoronoiRidge(cells=Cells(radius=0.7, scale=False), **SMALL),
        VoronoiRidge(cells=Cells(memory_budget=64.0 * 200**2), **SMALL),
        VoronoiSVR(max_cell_size=150, **(SMALL | {"selection": CellSelection(2, 3, 3)})),
        VoronoiQuantile(max_cell_size=150, **(SMALL | {"selection": CellSelection("split", 3, 3)})),
        VoronoiSVC(max_cell_size=300, loss="least_squares", class_weight="balanced", **SMALL),
        VoronoiRidge(max_cell_size=150, kernel=LEARNED, **SMALL),
        VoronoiSVC(max_cell_size=300, kernel=LEARNED, **SMALL),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.cells}-{estimator.kernel is not None}",
)
def test_the_answer_is_that_of_the_table_in_memory(estimator):
    X, y = table()
    y = labels(y) if isinstance(estimator, VoronoiSVC) else y
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    here = estimator.fit(X, y, sample_weight=weights)
    expected = here.predict(X)
    sizes, pairs = here.function_.sizes.tolist(), pairs_of(here)
    there = estimator.fit(parts(X, [250, 0, 350]), parts(y, [250, 0, 350]), sample_weight=parts(weights, [250, 0, 350]))
    predicted = there.predict(parts(X, [10, 590]))
    assert isinstance(predicted, da.Array)
    assert there.function_.sizes.tolist() == sizes
    if isinstance(estimator, VoronoiSVC):
        assert np.mean(predicted.compute() == expected) > 0.99
    else:
        np.testing.assert_allclose(predicted.compute(), expected, atol=1e-3 * np.ptp(y))
    if estimator.kernel is not None:  # the same cells, and one pair for all of them
        assert pairs_of(there) == pytest.approx(pairs)


@pytest.mark.parametrize("columns", [1, 3])
def test_several_outputs_are_those_of_the_table_in_memory(columns):
    X, y = table()
    Y = np.column_stack([y, 3.0 - 2.0 * X[:, 0], X[:, 1] ** 2])[:, :columns]
    model = VoronoiRidge(max_cell_size=150, **SMALL)
    here = clone(model).fit(X, Y).predict(X)
    for targets in (da.from_array(Y, chunks=(200, 2)), Y, dd.from_pandas(pd.DataFrame(Y), npartitions=3)):
        there = clone(model).fit(parts(X, [100, 500]) if targets is Y else parts(X, [200, 200, 200]), targets)
        np.testing.assert_allclose(there.predict(parts(X, [300, 300])).compute(), here, atol=1e-9)


def test_random_chunks_and_dataframes():
    X, y = table()
    frame = dd.from_pandas(pd.DataFrame(X, columns=["east", "north"]), npartitions=3)
    target = dd.from_pandas(pd.Series(y), npartitions=3)
    model = VoronoiRidge(cells=Cells("random"), max_cell_size=200, **SMALL).fit(frame, target)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert model.n_cells_ == 3
    assert model.function_.sizes.sum() == 600
    assert np.ptp(model.function_.sizes) == 0
    predicted = model.predict(frame).compute()
    assert np.corrcoef(predicted, y)[0, 1] > 0.97
    np.testing.assert_allclose(predicted, model.predict(pd.DataFrame(X, columns=["east", "north"])))
    with pytest.raises(InvalidInputError, match="feature names"):
        model.predict(frame.rename(columns={"east": "west"}))


def test_classes_are_lazy_arrays_of_labels_and_of_values():
    X, y = table()
    model = VoronoiSVC(max_cell_size=300, loss="least_squares", **SMALL).fit(
        parts(X, [300, 300]), parts(labels(y), [300, 300])
    )
    query = parts(X, [600])
    predicted, values = model.predict(query), model.decision_function(query)
    assert predicted.dtype == model.classes_.dtype
    assert values.shape == (600, 3)
    assert np.array_equal(predicted.compute(), model.predict(X))
    np.testing.assert_allclose(values.compute(), model.decision_function(X))
    unknown = query[query[:, 0] > 0]
    assert model.predict(unknown).compute().shape == (np.sum(X[:, 0] > 0),)


def test_targets_in_memory_follow_the_parts_of_the_points():
    X, y = table()
    model = VoronoiRidge(max_cell_size=200, **SMALL)
    here = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(parts(X, [100, 500]), y).predict(X), here, atol=1e-8)
    apart = da.from_array(X, chunks=(200, 1))
    np.testing.assert_allclose(model.fit(apart, parts(y, [450, 150])).predict(X), here, atol=1e-8)


def test_a_sample_finds_cells_of_about_the_size():
    X, y = table(2000)
    model = VoronoiRidge(estimator=Ridge(), max_cell_size=200, cells=Cells("voronoi", subset=500), random_state=0)
    model.fit(parts(X, [500] * 4), parts(y, [500] * 4))
    assert model.n_cells_ >= 10
    assert model.function_.sizes.sum() == 2000
    assert model.function_.sizes.max() < 400


@pytest.mark.parametrize("kind", ["voronoi", "random"])
def test_cells_do_not_depend_on_how_a_table_is_cut(kind):
    X, y = table(900)
    weights = np.random.default_rng(1).integers(0, 3, 900).astype(float)
    model = VoronoiRidge(max_cell_size=150, cells=Cells(kind, subset=200), **SMALL)
    query, found = X[:50], []
    for sizes in ([900], [100, 0, 500, 300], [11] * 81 + [9]):
        model.fit(*(parts(values, sizes) for values in (X, y, weights)))
        found.append((model.function_.sizes, model.predict(query)))
    # Parts of dataframes have lengths that are not known.
    frame = pd.DataFrame(X, columns=["east", "north"]).assign(up=y, weight=weights)
    columns = dd.from_pandas(frame, npartitions=7)
    model.fit(columns[["east", "north"]], columns["up"], columns["weight"])
    found.append((model.function_.sizes, model.predict(frame[["east", "north"]][:50])))
    for sizes, predicted in found[1:]:
        np.testing.assert_array_equal(sizes, found[0][0])
        np.testing.assert_allclose(predicted, found[0][1], atol=1e-8)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own way to write indices
def test_columns_of_a_parquet_file_keep_its_partitions(tmp_path):
    X, y = table()
    frame = pd.DataFrame(X, columns=["east", "north"]).assign(up=y, a=0.0, b=0.0, c=0.0, weight=1.0)
    dd.from_pandas(frame, npartitions=6).to_parquet(tmp_path)
    columns = dd.read_parquet(tmp_path)  # whose reads of one column Dask would fuse
    model = VoronoiRidge(max_cell_size=150, **SMALL)
    model.fit(columns[["east", "north"]], columns["up"], columns["weight"])
    there = model.predict(frame[["east", "north"]])
    np.testing.assert_allclose(there, model.fit(X, y).predict(X), atol=1e-8)


def test_scores_of_dask_tables_are_those_of_tables_in_memory():
    X, y = table()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    targets = [(VoronoiRidge(max_cell_size=300, **SMALL), y), (VoronoiSVC(max_cell_size=300, **SMALL), labels(y))]
    targets.append((VoronoiRidge(max_cell_size=300, **SMALL), np.column_stack([y, X[:, 0]])))
    for model, target in targets:
        model.fit(X, target)
        there = [parts(values, [250, 350]) for values in (X, target, weights)]
        assert model.score(*there) == pytest.approx(model.score(X, target, weights), abs=1e-12)
        assert model.score(*there[:2]) == pytest.approx(model.score(X, target), abs=1e-12)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    series = dd.from_pandas(pd.Series(labels(y)), npartitions=3)
    model = VoronoiSVC(max_cell_size=300, **SMALL).fit(frame, series)
    assert model.score(frame, series) == pytest.approx(model.score(pd.DataFrame(X), labels(y)), abs=1e-12)


def test_samples_of_parts_are_a_sample_of_the_whole(rng):
    X, y, weights = rng.standard_normal((100, 2)), np.arange(100.0), np.ones(100)
    cuts = [(0, 30), (30, 31), (31, 80), (80, 100), (0, 50)]  # the first half twice
    found = [TableSummary.of_rows(X[a:b], y[a:b], weights[a:b], labels=False, size=10, seed=7) for a, b in cuts]
    whole = TableSummary.merged([*found, None], labels=False, size=10)
    assert whole.n_rows == 150
    keys = seeded(content_keys(X, y), 7)
    assert np.array_equal(np.sort(whole.y), y[least(keys, 10)])
    assert np.array_equal(whole.keys, np.sort(keys)[:10])
    assert np.array_equal(whole.X, X[whole.y.astype(int)])
    assert np.array_equal(whole.weights, 1.0 + (whole.y < 50))
    assert whole.targets.tolist() == [0.0, 99.0]
    assert np.array_equal(whole.low, X.min(axis=0)[None, :])
    assert TableSummary.merged([None, None], labels=True, size=3) is None


def test_keys_are_uniform_and_made_of_what_rows_hold(rng):
    X = rng.integers(0, 50, (4000, 2)).astype(float)
    places = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    keys = seeded(content_keys(X), 3)
    firsts = np.unique(places, return_index=True)[1]
    assert np.array_equal(keys, keys[firsts][places])
    distinct = keys[firsts]
    assert len(np.unique(distinct)) == len(distinct)
    assert np.abs(np.histogram(distinct / 2.0**64, bins=8, range=(0, 1))[0] * 8 / len(distinct) - 1.0).max() < 0.2
    assert rows_by_share(distinct, 500) == pytest.approx(len(distinct), rel=0.15)
    assert np.array_equal(content_keys(np.array([-0.0])), content_keys(np.zeros(1)))
    assert np.mean(least(seeded(distinct, 1), 200) == least(seeded(distinct, 2), 200)) < 0.1


@pytest.mark.parametrize("as_frames", [False, True], ids=["arrays", "frames"])
@pytest.mark.parametrize(
    ("model", "kind", "options"),
    [
        (VoronoiRidge, "overlapping", {}),
        (VoronoiRidge, "overlapping", {"kernel": LEARNED, "selection": CellSelection(n_lams=30, n_widths=5)}),
        (VoronoiSVC, "tree", {}),
        (VoronoiSVC, "voronoi", {"class_weight": "balanced", "selection": CellSelection(candidates=([1e-3], [0.5]))}),
    ],
    ids=["metric", "kernel", "classes", "candidates"],
)
def test_beyond_the_subset_the_answer_is_that_of_the_table_in_memory(monkeypatch, model, kind, options, as_frames):
    X, y = table(800)
    X = np.column_stack([X, np.random.default_rng(1).uniform(-1, 1, 800)])  # a feature that a metric damps
    X, y = np.vstack([X, X[::3]]), np.append(y, y[::3])  # some rows twice
    y = labels(y) if model is VoronoiSVC else y
    # The metric is of fewer rows than there are; one pair is of rows near one, and of as many as are in memory.
    for module, name, value in (
        (metric, "SAMPLE", 300),
        (base, "SAMPLE", 300),
        (metric, "COMPARED_ROWS", 150),
        (training, "SHARED_ROWS", 30),
    ):
        monkeypatch.setattr(module, name, value)
    model = model(max_cell_size=120, cells=Cells(kind, subset=250), **SMALL | options)
    here = clone(model).fit(X, y)
    if as_frames:
        frame = dd.from_pandas(pd.DataFrame(X, columns=["east", "north", "noise"]), npartitions=3)
        there = clone(model).fit(frame, dd.from_pandas(pd.Series(y), npartitions=3))
    else:
        there = clone(model).fit(parts(X, [500, 0, len(X) - 500]), parts(y, [500, 0, len(X) - 500]))
    assert here.n_cells_ > 5
    if not options:
        assert here.feature_factors_[2] < 0.5 * here.feature_factors_[0]
    assert there.function_.sizes.tolist() == here.function_.sizes.tolist()
    assert pairs_of(there) == pytest.approx(pairs_of(here))
    expected, found = here.function_.values(here.scaling_.apply(X)), there.function_.values(there.scaling_.apply(X))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_classes_of_weight_zero_have_no_say_in_the_ranges():
    X, y = table(200)
    y = labels(y)
    X[y == "middle"] *= 100.0
    kept = y != "middle"
    options = {"loss": "least_squares", "max_cell_size": 100, **SMALL}
    there = VoronoiSVC(class_weight={"middle": 0.0}, **options).fit(parts(X, [90, 110]), parts(y, [90, 110]))
    here = VoronoiSVC(**options).fit(X[kept], y[kept])
    np.testing.assert_array_equal(there.scaling_.scale, here.scaling_.scale)
    assert there.classes_.tolist() == ["high", "low"]


def test_one_cell_and_one_part_are_enough():
    X, y = table(60)
    for partition in ("voronoi", "tree", "random"):
        model = VoronoiRidge(max_cell_size=100, cells=Cells(partition), **SMALL)
        expected = model.fit(X, y).predict(X)
        model.fit(parts(X, [60]), parts(y, [60]))
        assert model.n_cells_ == 1
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)


def test_a_fit_of_parts_that_comes_to_no_end_leaves_the_model_as_it_was(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    model = VoronoiRidge(**SMALL).fit(parts(X, [30, 30]), parts(y, [30, 30]))
    had = dict(vars(model))
    monkeypatch.setattr(VoronoiRidge, "_finish_parts", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(parts(X[:, :1], [30, 30]), parts(-y, [30, 30]))
    assert vars(model).keys() == had.keys()
    assert all(vars(model)[name] is value for name, value in had.items())


def test_columns_of_categories_that_were_learned_from_before_are_forgotten(rng):
    """Those of the earlier table stand elsewhere, or nowhere, in the later one."""
    X, y = rng.normal(size=(120, 2)), rng.normal(size=120)
    frame = pd.DataFrame({"town": list("abcdef") * 20, "size": X[:, 0]})
    model = VoronoiRidge(random_state=0).fit(frame, y)
    again = model.fit(parts(X, [60, 60]), parts(y, [60, 60])).predict(X)
    fresh = VoronoiRidge(random_state=0).fit(parts(X, [60, 60]), parts(y, [60, 60]))
    np.testing.assert_array_equal(again, fresh.predict(X))


def test_parts_that_hold_text_are_refused():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}), npartitions=1)
    with pytest.raises(InvalidInputError, match="partition 0: X must hold numbers only"):
        VoronoiRidge(**SMALL).fit(frame, dd.from_pandas(pd.Series([1.0, 2.0, 3.0]), npartitions=1))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series(["x", "y", "x"], dtype="category"), "column 'b' holds categories; .*get_dummies.*X.compute"),
        (pd.Series([1, 2, 1]).astype("category"), "column 'b' holds categories"),
        (pd.to_datetime(pd.Series(["2020-01-01"] * 3)), "column 'b' holds dates or times"),
        (pd.Series([1.0, 2.0, np.nan]), "partition 1: X has a missing value in column 'b', row 0 of its part; impute"),
        (pd.Series([1, 2, None], dtype="Int64"), "partition 1: X has a missing value in column 'b'"),
        (pd.Series(["x", "y", "z"]), "partition .: X must hold numbers only, but column 'b' does not"),
    ],
)
def test_columns_that_are_not_numbers_are_refused_by_name(column, message):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": column})
    there, y = dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series([1.0, 2.0, 3.0]), npartitions=2)
    with pytest.raises(InvalidInputError, match=message):
        VoronoiRidge(**SMALL).fit(there, y)
    model = VoronoiRidge(**SMALL).fit(frame[["a"]].assign(b=[0.0, 1.0, 0.0]), [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match=message):
        model.predict(there).compute()


def test_groups_of_cells_are_balanced():
    groups = balanced_groups(np.array([100, 10, 20, 60, 30]), 2)
    assert sorted(np.bincount(groups, weights=[100, 10, 20, 60, 30]).tolist()) == [110, 110]
    assert balanced_groups(np.array([5, 5]), 7).max() == 1


def test_time_limit_answers_with_constants_and_warns():
    X, y = table(400)
    with pytest.warns(ConvexKernelsWarning, match=r"cells answer with a constant \(TIME_LIMIT\)"):
        model = VoronoiRidge(max_cell_size=50, max_time=1e-9, random_state=0).fit(parts(X, [400]), parts(y, [400]))
    assert model.solution_.status is Status.TIME_LIMIT
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (da.ones((4, 2)), np.ones(3), r"y has shape \(3,\), but X has 4 rows"),
        (da.ones((4, 2)), da.ones(3), "y has 3 entries, but X has 4 rows"),
        (da.ones((4, 2)), da.ones((4, 1, 1)), "y must be a Dask array or series of rows, got Array of 3 dimensions"),
        (da.ones((4, 2)), np.ones((4, 1, 1)), r"y has shape \(4, 1, 1\), but X has 4 rows"),
        (da.ones(4), da.ones(4), "X must be a Dask array or dataframe with rows and columns"),
        (np.ones((4, 2)), da.ones(4), "y or sample_weight is a Dask collection, but X is ndarray"),
        (da.ones((4, 2))[da.arange(4) > 0], np.ones(3), "X has parts of unknown lengths"),
        (da.ones((4, 2), chunks=2)[da.arange(4, chunks=2) > 0], da.ones(3), "y has 1 partitions, but X has 2"),
        (da.ones((4, 2))[da.arange(4) > 0], da.ones(2), r"partition 0: X has shape \(3, 2\), y \(2,\)"),
        (da.ones((4, 2))[da.arange(4) > 9], da.ones(4)[da.arange(4) > 9], "X has no rows of positive weight in any"),
        (da.ones((4, 2))[da.arange(4) > 2], da.ones(4)[da.arange(4) > 2], "X has 1 row of positive weight"),
        (parts(np.array([[0.0], [1.0], [np.nan]]), [2, 1]), np.ones(3), "partition 1: X has a missing or infinite"),
        (parts(np.ones((3, 1)), [2, 1]), np.array([0.0, 1.0, np.inf]), "partition 1: y has a missing or infinite"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(X, y, message):
    with pytest.raises(InvalidInputError, match=message):
        VoronoiRidge(**SMALL).fit(X, y)


def test_a_checkpoint_of_a_dask_table_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="checkpoint is for tables in memory"):
        VoronoiRidge(checkpoint=tmp_path / "fit.npz").fit(da.ones((4, 2)), da.ones(4))
    assert not list(tmp_path.iterdir())


def test_parts_of_the_wrong_width_are_refused_by_number():
    good, bad = np.random.default_rng(0).uniform(size=(5, 3)), np.zeros((5, 2))
    blocks = [da.from_delayed(dask.delayed(block), (5, 3), float) for block in (good, bad)]
    X = da.concatenate(blocks)
    with pytest.raises(InvalidInputError, match="partition 1: X has 2 features, but 3 are expected"):
        VoronoiRidge(**SMALL).fit(X, da.arange(10.0, chunks=5))
    model = VoronoiRidge(**SMALL).fit(good, np.arange(5.0))
    assert model.predict(blocks[0]).compute().shape == (5,)
    with pytest.raises(InvalidInputError, match="partition 1: X has 2 features, but 3 are expected"):
        model.predict(X).compute()
    with pytest.raises(InvalidInputError, match="X has 4 features, but VoronoiRidge is expecting 3"):
        model.predict(da.ones((5, 4)))
    assert model.predict(X[:0]).compute().shape == (0,)


def test_weights_and_labels_that_cannot_be_used_are_refused():
    X, y = da.ones((4, 2), chunks=2), da.from_array(np.array(["a", "b", "a", "b"]), chunks=2)
    with pytest.raises(InvalidInputError, match="partition 1: sample_weight must be finite and >= 0"):
        VoronoiSVC(**SMALL).fit(X, y, sample_weight=da.from_array(np.array([1.0, 1.0, 1.0, -1.0]), chunks=2))
    with pytest.raises(InvalidInputError, match="y must be a Dask array or series of one dimension, got Array of 2"):
        VoronoiSVC(**SMALL).fit(X, y[:, None])
    with pytest.raises(InvalidInputError, match="partition 0: y must hold class labels, got numbers with fractions"):
        VoronoiSVC(**SMALL).fit(X, da.from_array(np.array([0.5, 1.0, 0.0, 1.0]), chunks=2))
    with pytest.raises(InvalidInputError, match="partition 1: y must hold class labels, got missing ones"):
        VoronoiSVC(**SMALL).fit(X, da.from_array(np.array(["a", "b", None, "a"], dtype=object), chunks=2))
    with pytest.raises(InvalidInputError, match="y holds one class only"):
        VoronoiSVC(**SMALL).fit(X, da.ones(4, chunks=2, dtype=int))
    with pytest.raises(InvalidInputError, match="y holds one class only"):
        VoronoiSVC(class_weight={"b": 0}, **SMALL).fit(X, y)
    with pytest.raises(InvalidInputError, match="global-split' is for tables in memory"):
        VoronoiSVC(selection=CellSelection("global-split")).fit(X, y)


# --- a kernel that is learned in the same call ---------------------------------------------------


def of_few_rows(monkeypatch, search_rows=100_000):
    """What is learned from thousands of rows in cells, or on a sample, is so from hundreds."""
    for module in (all_rows, hierarchical):
        monkeypatch.setattr(module, "DENSE_ROWS", 300)
    monkeypatch.setattr(all_rows, "ITERATIVE_ROWS", 400)
    monkeypatch.setattr(all_rows, "CELL_SIZE", 150)
    monkeypatch.setattr(hierarchical, "SEARCH_ROWS", search_rows)
    monkeypatch.setattr(hierarchical, "Cells", functools.partial(Cells, subset=200))  # as many are brought here
    monkeypatch.setattr(training_of_trees, "SUBSET", 200)
    monkeypatch.setattr(training, "SHARED_ROWS", 60)
    monkeypatch.setattr(training_of_trees, "REFINEMENT", 4)  # cells, too: not all of them


LEARNS = {"max_time": None, "search": TreeSearch(max_iter=6), "selection": TreeSelection(combine="one")}


@pytest.mark.parametrize("search_rows", [250, 100_000], ids=["sample", "all"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (HierarchicalGaussianRegressor, {}),
        (HierarchicalGaussianRegressor, {"loss": "pinball", "search": TreeSearch(max_iter=4, n_restarts=2)}),
        (HierarchicalGaussianRegressor, {"architecture": (1, 2)}),
        (HierarchicalGaussianClassifier, {"class_weight": "balanced"}),
    ],
    ids=["numbers", "means", "architectures", "classes"],
)
def test_hierarchical_kernels_and_cells_are_those_of_the_table_in_memory(monkeypatch, kind, options, search_rows):
    of_few_rows(monkeypatch, search_rows)
    X, y = table(600)
    X, y = np.vstack([X, X[::3]]), np.append(y, y[::3])  # some rows twice
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    y = labels(y) if kind is HierarchicalGaussianClassifier else y
    model = kind(2, random_state=0).set_params(**LEARNS | options)
    here = clone(model).fit(X, y, sample_weight=weights)
    sizes = [300, 0, len(X) - 300]
    there = clone(model).fit(*(parts(values, sizes) for values in (X, y, weights)))
    for fitted in (here, there):
        assert fitted.plan_.method == "cells"
    assert there.plan_.n_rows == pytest.approx(here.plan_.n_rows, rel=0.2)
    assert ("of which are here" in there.plan_.why) == (search_rows == 250)
    assert there.plan_.certificate.holds(1e-3)
    expected = here.function_.values(here.scaling_.apply(X))
    np.testing.assert_allclose(there.function_.values(there.scaling_.apply(X)), expected, atol=1e-6)
    predicted = there.predict(parts(X, [20, len(X) - 20]))
    assert isinstance(predicted, da.Array)
    if kind is HierarchicalGaussianClassifier:
        np.testing.assert_array_equal(predicted.compute(), there.predict(X))
        found = there.predict_proba(parts(X, [500, len(X) - 500])).compute()
        np.testing.assert_allclose(found, there.predict_proba(X))
    else:
        np.testing.assert_allclose(predicted.compute(), there.predict(X), atol=1e-10)
        found = there.predict_interval(parts(X, [500, len(X) - 500])).compute()
        np.testing.assert_allclose(found, there.predict_interval(X))
    assert not hasattr(there, "loo_score_")
    assert not hasattr(there, "support_")
    again = pickle.loads(pickle.dumps(there))
    np.testing.assert_array_equal(again.predict(X), there.predict(X))
    assert there.score(parts(X, sizes), parts(y, sizes)) == pytest.approx(there.score(X, y))


def test_hierarchical_estimators_learn_several_outputs_and_columns_of_dataframes(monkeypatch):
    of_few_rows(monkeypatch)
    X, y = table()
    frame, Y = pd.DataFrame(X, columns=["east", "north"]), np.column_stack([y, X[:, 1] ** 2])
    model = HierarchicalGaussianRegressor(2, random_state=0, **LEARNS)
    here = clone(model).fit(frame, Y)
    there = clone(model).fit(dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.DataFrame(Y), npartitions=4))
    assert there.feature_names_in_.tolist() == ["east", "north"]
    lazy = there.predict(dd.from_pandas(frame, npartitions=3))
    assert lazy.shape[1] == 2
    np.testing.assert_allclose(lazy.compute(), here.predict(frame), atol=1e-6)


def test_dask_tables_that_fit_one_matrix_are_learned_from_in_memory():
    X, y = table(200)
    model = HierarchicalGaussianRegressor(2, random_state=0, **LEARNS)
    there = clone(model).fit(parts(X, [50, 150]), parts(y, [50, 150]))
    assert there.plan_.method == "dense"
    assert there.plan_.why == "200 rows, not more than 10000; all rows of the Dask table are here"
    here = clone(model).fit(X, y)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    lazy = [model.predict(parts(X, sizes)).compute() for model, sizes in ((here, [200]), (there, [90, 0, 110]))]
    np.testing.assert_allclose(*lazy, atol=1e-10)


def test_memory_says_how_many_rows_are_brought_here_and_how_large_cells_are():
    X, y = table(2000)
    tight = TreeSelection(training=AllRows(memory_limit=1.2e5))
    model = HierarchicalGaussianRegressor(2, random_state=0, **LEARNS | {"selection": tight})
    with pytest.raises(MemoryLimitError, match=r"functions of .* rows that are brought here needs .*gather=False"):
        clone(model).fit(parts(X, [2000]), parts(y, [2000]))
    model.set_params(selection=TreeSelection(training=AllRows(memory_limit=4e5)))
    model.fit(parts(X, [1500, 500]), parts(y, [1500, 500]))
    assert model.plan_.method == "cells"
    assert model.plan_.n_rows == pytest.approx(2000, rel=0.2)
    assert model.solution_.problem.X.nbytes * 5 < 0.5 * 4e5
    assert 8 * 4 * (1.5 * model.plan_.max_cell_size) ** 2 <= 0.25 * 4e5 + 1e4
    model.set_params(selection=TreeSelection(training=AllRows("cells", memory_limit=4e5, max_cell_size=900)))
    with pytest.raises(MemoryLimitError, match="a cell on a cluster with max_cell_size=900 needs"):
        model.fit(parts(X, [2000]), parts(y, [2000]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": TreeSelection(combine="mean")}, "combine='mean' of TreeSelection is for tables in memory"),
        ({"selection": TreeSelection(training=AllRows("dense"))}, "method='dense' of AllRows is for tables in memory"),
        ({"multi_class": "all-vs-all"}, "multi_class='all-vs-all' is for tables in memory.*pass multi_class='one-vs"),
        ({"selection": TreeSelection(training=AllRows(cells=Cells(gather=False)))}, "cells have gather=False"),
        ({"checkpoint": "fit.npz"}, "checkpoint is for tables in memory"),
    ],
)
def test_what_needs_all_rows_here_is_refused_before_the_search(monkeypatch, options, message):
    def searched(*arguments):
        raise AssertionError

    of_few_rows(monkeypatch, 200)
    monkeypatch.setattr(TreeSearch, "run", searched)
    X, y = table()
    model = HierarchicalGaussianClassifier(2, random_state=0).set_params(**LEARNS | options)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(parts(X, [600]), parts(labels(y), [600]))


def test_a_limit_before_any_cell_leaves_a_function_of_some_rows(monkeypatch):
    of_few_rows(monkeypatch)
    monkeypatch.setattr(training_of_trees, "ROWS_OF_A_MOMENT", 100)
    X, y = table()
    search = TreeSearch("stochastic", size=100, max_iter=10**6)
    model = HierarchicalGaussianRegressor(2, random_state=0, **LEARNS | {"search": search, "max_time": 0.05})
    with pytest.warns(ConvexKernelsWarning) as said:
        model.fit(parts(X, [300, 300]), parts(y, [300, 300]))
    assert any("TIME_LIMIT: the function is trained on 100 of 600 rows" in str(one.message) for one in said)
    assert model.plan_.status is model.solution_.status is Status.TIME_LIMIT
    assert model.score(X, y) > 0.5


# --- on a cluster of two processes ---------------------------------------------------------------


class DiesOnce(RegressorMixin, BaseEstimator):
    """A mean; the first worker that is asked for one is killed by it."""

    def __init__(self, mark=""):
        self.mark = mark

    def fit(self, X, y):
        try:
            Path(self.mark).touch(exist_ok=False)
        except FileExistsError:
            self.mean_ = float(np.mean(y))
            return self
        os.kill(os.getpid(), signal.SIGKILL)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Waits(DiesOnce):
    """A mean that says when it was asked for, and takes its time."""

    def fit(self, X, y):
        Path(self.mark).touch()
        time.sleep(600)
        return self


def interrupt_after(n, original):
    def until(futures):
        for k, found in enumerate(original(futures)):
            if k == n:
                raise KeyboardInterrupt
            yield found

    return until


def test_a_cluster_learns_the_same_and_survives_the_death_of_a_worker(tmp_path, monkeypatch):
    X, y = table()
    model = VoronoiRidge(max_cell_size=150, **SMALL)
    expected = model.fit(X, y).predict(X)
    points, targets = parts(X, [250, 0, 350]), parts(y, [250, 0, 350])
    query = da.random.default_rng(0).uniform(-1, 1, (50, 2), chunks=(25, 2))
    with a_cluster(tmp_path):
        model.fit(points, targets)
        assert isinstance(model.function_, LocalizedFunction)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 B"}), warnings.catch_warnings():
            warnings.simplefilter("error")  # of what is sent once nobody is warned that it is large
            sent = model.predict(points)
        np.testing.assert_allclose(sent.compute(), expected, atol=1e-8)
        # The function is on the workers by now, and no graph takes it there again.
        function = len(pickle.dumps(model.function_))
        assert len(pickle.dumps(dict(model.predict(query).__dask_graph__()))) < 0.5 * function

        # Functions that stay there answer for tables there and here, and can be brought.
        model.set_params(cells=Cells(gather=False)).fit(points, targets)
        assert isinstance(model.function_, DistributedFunction)
        np.testing.assert_allclose(model.predict(points).compute(), expected, atol=1e-8)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)
        assert model.solution_.status is Status.OPTIMAL
        assert model.solution_.verify().upper > 0.0
        assert model.solution_.verify().holds(1e-9)
        with pytest.raises(InvalidInputError, match="the function that the kernel belongs to is on a Dask cluster"):
            model.kernel_  # noqa: B018
        with pytest.raises(InvalidInputError, match="bring it first"):
            pickle.dumps(model)

        # A worker dies while it learns: what it had is done again, and nothing is missing.
        # On a busy machine the next worker begins after the limit of so small a fit.
        mortal, cells = DiesOnce(str(tmp_path / "mark")), Cells("voronoi")
        dying = VoronoiRidge(estimator=mortal, max_cell_size=150, cells=cells, random_state=0, max_time=None)
        dying.fit(points, targets)
        assert (tmp_path / "mark").exists()
        assert dying.solution_.status is Status.UNPROVEN
        np.testing.assert_allclose(sent.compute(), expected, atol=1e-8)
        assert dying.function_.sizes.sum() == 600
        cells = dying.cover_.cells(dying.scaling_.apply(X))
        means = np.array([y[cells == j].mean() for j in range(dying.n_cells_)])
        np.testing.assert_allclose(dying.predict(X), means[cells], atol=1e-12)

        # An interrupt keeps the cells that are learned, here or there.
        original = learning._as_completed
        for gather in (True, False):
            monkeypatch.setattr(learning, "_as_completed", interrupt_after(3, original))
            with pytest.warns(ConvexKernelsWarning, match=r"cells answer with a constant \(INTERRUPTED\)"):
                stopped = VoronoiRidge(max_cell_size=100, cells=Cells(gather=gather), **SMALL).fit(points, targets)
            assert stopped.solution_.status is Status.INTERRUPTED
            found = stopped.function_ if gather else stopped.function_.gather()
            assert sum(cell.function.support.size > 0 for cell in found.functions) == 3
            assert np.isfinite(stopped.predict(X)).all()
        monkeypatch.undo()

        # The functions that stayed on the dead worker are learned again.
        model.function_ = model.function_.gather()
        np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict(X), expected, atol=1e-8)


def kill_after(n, original, process):
    def until(futures):
        for k, found in enumerate(original(futures)):
            if k == n:
                os.kill(process, signal.SIGKILL)
            yield found

    return until


def test_a_cluster_learns_a_hierarchical_kernel_and_survives_the_death_of_a_worker(tmp_path, monkeypatch):
    of_few_rows(monkeypatch, 250)
    monkeypatch.setattr(training, "SHARED_ROWS", 1500)  # as it is on the workers
    X, y = table()
    model = HierarchicalGaussianRegressor(2, random_state=0, **LEARNS)
    expected = clone(model).fit(X, y).predict(X)
    points, targets = parts(X, [250, 0, 350]), parts(y, [250, 0, 350])
    original = learning._as_completed
    with a_cluster(tmp_path) as cluster:
        workers = set(cluster.scheduler_info["workers"])
        (process, *_) = default_client().run(os.getpid).values()
        monkeypatch.setattr(learning, "_as_completed", kill_after(1, original, process))
        model.fit(points, targets)
        assert set(cluster.scheduler_info["workers"]) != workers
        assert model.plan_.method == "cells"
        assert model.function_.localized.cover.n_cells > 4
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)
        np.testing.assert_allclose(model.predict(points).compute(), expected, atol=1e-6)
        # The function is on the workers by now, and no graph takes it there again.
        graph = dict(model.predict(da.zeros((50, 2), chunks=(25, 2))).__dask_graph__())
        assert len(pickle.dumps(graph)) < 0.5 * len(pickle.dumps(model.function_))

        # An interrupt before any cell is learned leaves a function of some rows.
        monkeypatch.setattr(learning, "_as_completed", interrupt_after(0, original))
        with pytest.warns(ConvexKernelsWarning) as warned:
            stopped = clone(model).fit(points, targets)
        assert any("INTERRUPTED: the function is trained on 251 of" in str(one.message) for one in warned)
        assert stopped.score(X, y) > 0.5
        assert stopped.plan_.status is stopped.solution_.status is Status.INTERRUPTED


def test_a_table_larger_than_the_memory_of_a_worker(tmp_path):
    limit, m = 600 * 2**20, 2_000_000
    X = da.random.default_rng(0).uniform(-1, 1, (m, 40), chunks=(m // 64, 40))
    y = X[:, 0] * X[:, 1]
    assert X.nbytes > limit
    with a_cluster(tmp_path, memory_limit=limit):
        cells = Cells("voronoi", subset=2000)
        model = VoronoiRidge(estimator=Ridge(), max_cell_size=m // 16, cells=cells, random_state=0).fit(X, y)
        assert model.function_.sizes.sum() == m
        assert float(((model.predict(X[: m // 64]) - y[: m // 64]) ** 2).mean().compute()) < 1.0 / 9.0


def test_a_scheduler_that_is_gone_has_a_name(tmp_path):
    X, y = table(200)
    points, targets = parts(X, [100, 100]), parts(y, [100, 100])
    mark = tmp_path / "mark"
    with a_cluster(tmp_path) as cluster:

        def close():
            while not mark.exists():
                time.sleep(0.05)
            cluster.close(timeout=60)

        closing = threading.Thread(target=close)
        closing.start()
        with pytest.raises(ClusterError, match="the Dask cluster was lost, or gave up"):
            VoronoiRidge(estimator=Waits(str(mark)), max_cell_size=50, random_state=0).fit(points, targets)
        closing.join()
        with pytest.raises(ClusterError, match="the scheduler of the active Dask client is gone"):
            VoronoiRidge(**SMALL).fit(points, targets)
    assert active_client() is None


def test_intervals_between_quantiles_are_lazy_and_those_of_the_table_in_memory():
    X, y = table(300)
    whole, sizes = VoronoiQuantile(max_cell_size=150, **SMALL), [100, 200]
    here, there = clone(whole).fit(X, y), whole.fit(parts(X, sizes), parts(y, sizes))
    found = there.predict_interval(parts(X, sizes), coverage=0.8)
    assert isinstance(found, da.Array)
    assert found.shape == (300, 2)
    np.testing.assert_allclose(found.compute(), there.predict_interval(X, coverage=0.8))
    held = [np.mean((low <= y) & (y <= high)) for low, high in (m.predict_interval(X, 0.8).T for m in (here, there))]
    assert min(held) >= 0.8
    widths = [np.diff(m.predict_interval(X, 0.8)).mean() for m in (here, there)]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)
