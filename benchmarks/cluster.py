"""The same cells in memory and on two Dask workers of 2 GiB: predictions, time, and what the workers hold at most.

    python -m benchmarks.cluster covtype.csv.gz [--rows 100000] [--limit 2] [--kernel] [--subset 50000]

`VoronoiSVC` for the seven classes of covtype, in cells of 2,000 rows, everything else as it comes. The table is
written to a folder of parquet files and read from there, in parts of about 10,000 rows whose lengths nobody is told.
Predictions are compared on 20,000 other rows; what a worker held is what its operating system says, from its start.
With `--kernel` it is `HierarchicalGaussianClassifier`, in cells of the geometry that it learns in the same call.
"""

import argparse
import logging
import tempfile
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from convexkernels import AllRows, Cells, HierarchicalGaussianClassifier, TreeSelection, VoronoiSVC, warm_up
from convexkernels.estimators.hierarchical.training import OVERLAP

N_TEST = 20_000
LINES = 10_000
SIZE = 2000


def load(path, n_rows):
    """A data frame in a random order, and rows to compare on."""
    frame = pd.read_csv(path).sample(frac=1.0, random_state=0, ignore_index=True).astype(np.float64)
    frame.columns = [*(f"x{j}" for j in range(frame.shape[1] - 1)), "class"]
    return frame[:n_rows], frame[-N_TEST:]


def held():
    """GiB of this process at most, as Linux says; `resource` counts those of the process that began it, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**20


def learned(model, X, y, test):
    """Values for the test rows and seconds of wall time."""
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    points = test.drop(columns="class")
    right = np.mean(model.predict(points) == test["class"].astype(int))
    status = model.solution_.status.name
    function = getattr(model.function_, "localized", model.function_)
    said = f"{function.cover.n_cells} cells, {status}, {seconds:.0f} s, {100.0 * (1.0 - right):.2f} % wrong"
    return model.decision_function(points), said


def estimator(kernel, subset):
    """What learns: with or without a kernel of its own."""
    if not kernel:
        return VoronoiSVC(cells=Cells(subset=subset), max_cell_size=SIZE, max_time=None, random_state=0)
    training = AllRows("cells", max_cell_size=SIZE, cells=Cells(overlap=OVERLAP, subset=subset))
    selection = TreeSelection(training=training)
    return HierarchicalGaussianClassifier(selection=selection, max_time=None, random_state=0)


def main():
    """Both fits and one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=2.0, help="GiB of a worker")
    parser.add_argument("--kernel", action="store_true", help="a hierarchical kernel, not Gaussians")
    parser.add_argument("--subset", type=int, default=50_000, help="rows that centers are sought among")
    args = parser.parse_args()
    warm_up()
    train, test = load(args.path, args.rows)
    columns = train.columns[:-1].tolist()
    model = estimator(args.kernel, args.subset)
    here, said = learned(model, train[columns], train["class"].astype(int), test)
    print(f"in memory: {said}, {held():.2f} GiB", flush=True)

    settings = {"distributed.worker.memory.pause": False, "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": "2"}
    with tempfile.TemporaryDirectory() as folder, dask.config.set(settings):
        dd.from_pandas(train, npartitions=max(2, len(train) // LINES)).to_parquet(folder)
        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                memory_limit=int(args.limit * 2**30),
                dashboard_address=None,
                silence_logs=logging.ERROR,
                local_directory=folder,
            ) as cluster,
            Client(cluster) as client,
        ):
            table = dd.read_parquet(folder)
            there, said = learned(model, table[columns], table["class"].astype(int), test)
            most = max(client.run(held).values())
            print(f"two workers: {said}, {most:.2f} of {args.limit:g} GiB at most")
    print(f"largest difference of values: {np.abs(here - there).max():.1e} of {np.abs(here).max():.1f}")


if __name__ == "__main__":
    main()
