"""The same cells in memory and on two Dask workers of 2 GiB: predictions, time, and what the workers hold at most.

    python -m benchmarks.cluster covtype.csv.gz [--rows 100000] [--limit 2] [--kernel 5000] [--subset 50000]

`VoronoiSVC` for the seven classes of covtype, in cells of 2,000 rows, everything else as it comes. The table is
written to a folder of parquet files and read from there, in parts of about 10,000 rows whose lengths nobody is told.
Predictions are compared on 20,000 other rows; what a worker held is what its operating system says, from its start.
With `--kernel` a hierarchical kernel is learned on so many of the rows first, in memory, and cells have its geometry.
"""

import argparse
import logging
import resource
import tempfile
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from convexkernels import Cells, HierarchicalGaussianClassifier, VoronoiSVC, warm_up

N_TEST = 20_000
LINES = 10_000


def load(path, n_rows):
    """A data frame in a random order, and rows to compare on."""
    frame = pd.read_csv(path).sample(frac=1.0, random_state=0, ignore_index=True).astype(np.float64)
    frame.columns = [*(f"x{j}" for j in range(frame.shape[1] - 1)), "class"]
    return frame[:n_rows], frame[-N_TEST:]


def held():
    """GiB of this process at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def learned(model, X, y, test):
    """Values for the test rows and seconds of wall time."""
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    points = test.drop(columns="class")
    right = np.mean(model.predict(points) == test["class"].astype(int))
    status = model.solution_.status.name
    said = f"{model.n_cells_} cells, {status}, {seconds:.0f} s, {100.0 * (1.0 - right):.2f} % wrong"
    return model.decision_function(points), said


def sampled_kernel(X, y):
    """A hierarchical kernel that some rows have taught."""
    began = time.perf_counter()
    kernel = HierarchicalGaussianClassifier(random_state=0).fit(X, y).kernel_
    print(f"kernel of {len(X):,} rows: {time.perf_counter() - began:.0f} s", flush=True)
    return kernel


def main():
    """Both fits and one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=2.0, help="GiB of a worker")
    parser.add_argument("--kernel", type=int, default=0, help="rows to learn a hierarchical kernel on; 0 for Gaussians")
    parser.add_argument("--subset", type=int, default=50_000, help="rows that centers are sought among")
    args = parser.parse_args()
    warm_up()
    train, test = load(args.path, args.rows)
    columns = train.columns[:-1].tolist()
    some = train[: args.kernel]
    kernel = sampled_kernel(some[columns].to_numpy(), some["class"].astype(int).to_numpy()) if args.kernel else None
    cells = Cells(subset=args.subset)
    model = VoronoiSVC(kernel=kernel, cells=cells, max_cell_size=2000, max_time=None, random_state=0)
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
