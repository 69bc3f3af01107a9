"""Localized SVMs on covtype, class 2 against the rest: time and error, beside liquidSVM where it is found.

    python -m benchmarks.voronoi_speed covtype.csv.gz                          n = 10,000 and 50,000
    python -m benchmarks.voronoi_speed covtype.csv.gz --full                   and 500,000
    python -m benchmarks.voronoi_speed covtype.csv.gz --peer /path/to/python   with a Python that has liquidSVM
    python -m benchmarks.voronoi_speed covtype.csv.gz --seeds 1 2 3            other rows to learn from and to test on
    python -m benchmarks.voronoi_speed covtype.csv.gz --loss hinge             SVMs in the cells (the peer's are, too)
    python -m benchmarks.voronoi_speed covtype.csv.gz --widths isotropic       one width for all features

Cells of at most 2,000 points, inputs scaled to [-1, 1] once for both, selection of lam and the width included, 50,000
test points; all else is the default of `VoronoiSVC`, which was chosen on other seeds, whose rows never touch the test
points of seed 0. With one width features are taken as they are.

The peer runs in its own interpreter on the same arrays, two threads, in the same run; its import needs a setting that
Python 3.11 no longer has, which is put back first. Processor time includes that of child processes; the threads of the
peer wait by spinning, so that its processor time, like all wall times, grows on a computer with other work.
"""

import argparse
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from convexkernels import Cells, CellSelection, VoronoiSVC, warm_up

PEER = """
import sys, time, sysconfig
sysconfig.get_config_vars()["SO"] = ".so"
import numpy as np, liquidSVM
data = np.load(sys.argv[1])
began, busy = time.perf_counter(), time.process_time()
learn = {"least_squares": liquidSVM.lsSVM, "hinge": liquidSVM.mcSVM}[sys.argv[2]]
model = learn(data["X"], data["y"], threads=2, useCells=True)
fitted, used = time.perf_counter(), time.process_time()
result = model.test(data["T"], data["t"])
values = np.asarray(result[0] if isinstance(result, tuple) else result).ravel()[: len(data["t"])]
error = float(np.mean(np.sign(values) != data["t"]))
print(fitted - began, time.perf_counter() - fitted, error, used - busy, time.process_time() - used)
"""


def load(path, seed):
    """Scaled points and labels; seeds above 0 permute the rows that are not the test points of seed 0."""
    values = pd.read_csv(path).to_numpy(dtype=np.float64)
    values = values[np.random.default_rng(0).permutation(len(values))]
    X, y = values[:, :-1], np.where(values[:, -1] == 2, 1.0, -1.0)
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X - low) / np.where(high > low, high - low, 1) - 1
    if seed:
        order = np.random.default_rng(seed).permutation(len(X) - 50_000)
        X, y = X[order], y[order]
    return X, y


def processor():
    """Seconds of this process and of its children, once they have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def ours(X, y, T, t, options):
    model = VoronoiSVC(
        loss=options.loss,
        cells=Cells(options.partition, overlap=options.overlap, scale=options.widths == "per-feature"),
        selection=CellSelection(widths=options.widths),
        max_cell_size=options.cell_size,
        random_state=0,
        n_jobs=options.jobs,
    )
    began, busy = time.perf_counter(), processor()
    model.fit(X, y)
    get_reusable_executor().shutdown()  # its processes end, and are counted
    fitted, used = time.perf_counter(), processor()
    error = float(np.mean(model.predict(T) != t))
    return fitted - began, time.perf_counter() - fitted, error, used - busy, processor() - used, model


def peer(python, X, y, T, t, loss):
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "arrays.npz"
        np.savez(arrays, X=X, y=y, T=T, t=t)
        done = subprocess.run([python, "-c", PEER, str(arrays), loss], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  liquidSVM did not run: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return [float(value) for value in done.stdout.split()[-5:]]


def compare(X, y, T, t, options):
    seconds, test_seconds, error, used, test_used, model = ours(X, y, T, t, options)
    load = f"load {os.getloadavg()[0]:.1f}"
    memory = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        f"n = {len(X):>7,}: {seconds:7.2f} s to train and select ({used:.2f} of processor), {test_seconds:6.2f} s to "
        f"test ({test_used:.2f}), {100 * error:5.2f} % error, {model.n_cells_} cells, at most {memory / 2**20:.1f} "
        f"GiB, {load}",
        flush=True,
    )
    found = peer(options.peer, X, y, T, t, options.loss) if options.peer else None
    if found:
        print(
            f"     liquidSVM: {found[0]:7.2f} s ({found[3]:.2f} of processor), {found[1]:6.2f} s ({found[4]:.2f}), "
            f"{100 * found[2]:5.2f} % error; ratios of times {seconds / found[0]:.2f} and "
            f"{test_seconds / found[1]:.2f}, {load}, then {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--peer", help="a Python interpreter that has liquidSVM")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--full", action="store_true", help="500,000 training points, too")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--loss", default="least_squares", choices=["least_squares", "hinge"])
    parser.add_argument("--widths", default="per-feature", choices=["per-feature", "isotropic"])
    parser.add_argument("--partition", default="overlapping", choices=["voronoi", "tree", "overlapping"])
    parser.add_argument("--overlap", type=float, default=0.1)
    parser.add_argument("--cell-size", type=int, default=2000)
    options = parser.parse_args(argv)
    warm_up()
    for seed in options.seeds:
        X, y = load(options.table, seed)
        T, t = X[-50_000:], y[-50_000:]
        ours(X[:3000], y[:3000], T[:100], t[:100], options)  # compiles
        print(
            f"seed {seed}, {options.loss}, {options.widths} widths, {options.partition} cells, {options.jobs} processes"
        )
        for n in [*options.sizes, *([500_000] if options.full else [])]:
            if n > len(X) - 50_000:
                print(f"n = {n:,}: seed {seed} has {len(X) - 50_000:,} rows besides the test points")
                continue
            compare(X[:n], y[:n], T, t, options)


if __name__ == "__main__":
    main()
