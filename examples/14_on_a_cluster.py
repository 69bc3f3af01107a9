"""On a cluster: a table in parts, cells as tasks, predictions where the rows are.

The Voronoi and the hierarchical estimators take Dask tables. Here two workers of this computer are the cluster; on a
real one only the address of the scheduler changes. The rows never come together in one place: parts are read once to
learn ranges and a sample, a shuffle takes rows to their cells, and every cell is learned as a task.

    python examples/14_on_a_cluster.py [--quick] [--rows 200000] [--out figures]
"""

import argparse
import time
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import convexkernels as ck
from convexkernels.plotting import CoverDisplay


def target(X):
    return da.sin(10.0 * da.exp(1.2 * X[:, 0])) * da.cos(3.0 * X[:, 1])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 rows")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    m = 4000 if options.quick else options.rows

    # Two workers. Elsewhere: Client("tcp://scheduler:8786").
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as here, Client(here):
        # A table that nobody holds: parts are made where they are needed.
        rng = da.random.default_rng(0)
        X = rng.uniform(-1, 1, (m, 2), chunks=(m // 8, 2))
        y = target(X) + 0.1 * rng.standard_normal(m, chunks=m // 8)

        # The same estimator as in memory, the same parameters.
        began = time.perf_counter()
        size, one_width = 500 if options.quick else 2000, ck.CellSelection(widths="isotropic")
        model = ck.VoronoiRidge(max_cell_size=size, selection=one_width, random_state=0).fit(X, y)
        print(
            f"{m:,} rows in {X.npartitions} parts became {model.n_cells_} cells in {time.perf_counter() - began:.1f} s"
        )

        # Predictions for a Dask table are lazy: nothing is computed before it is asked for.
        T = rng.uniform(-1, 1, (4000, 2), chunks=(1000, 2))
        predictions = model.predict(T)
        print(f"predictions: {predictions}")
        error = float(da.sqrt(((predictions - target(T)) ** 2).mean()).compute())
        print(f"root mean square distance to the function: {error:.3f} (the noise in y has 0.1)")
        shown = T[:1000].compute()

        # A kernel that is learned first, on rows that are drawn from all parts: the same one call.
        training, search = ck.AllRows("cells", max_cell_size=size), ck.TreeSearch(max_iter=20)
        selection = ck.TreeSelection(training=training)
        deep = ck.HierarchicalGaussianRegressor(4, search=search, selection=selection, random_state=0).fit(X, y)
        error = float(da.sqrt(((deep.predict(T) - target(T)) ** 2).mean()).compute())
        print(f"with a learned kernel: {error:.3f}; {deep.plan_}")

    # The model is here now, and needs no cluster any more.
    print(f"at the origin: {model.predict(np.zeros((1, 2)))[0]:.3f}, the function has {np.sin(10.0):.3f}")
    print(f"certificate of the worst cell: {model.solution_.certificate}")
    display = CoverDisplay.from_cover(model.cover_, model.scaling_.apply(shown)).plot(balls=False)
    display.ax_.set_title("cells that were learned as tasks; some rows in gray")
    display.figure_.savefig(options.out / "cells_of_a_cluster.png", dpi=130)


if __name__ == "__main__":
    main()
