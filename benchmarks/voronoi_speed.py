"""Localized least squares on covtype, class 2 against the rest: time and error, beside liquidSVM where it is found.

    python -m benchmarks.voronoi_speed covtype.csv.gz                          n = 10,000 and 50,000
    python -m benchmarks.voronoi_speed covtype.csv.gz --full                   and 500,000
    python -m benchmarks.voronoi_speed covtype.csv.gz --peer /path/to/python   with a Python that has liquidSVM

Cells of at most 2,000 points, inputs scaled to [-1, 1], selection of lam and the width included, 50,000 test points.
The peer runs in its own interpreter on the same arrays, two threads, in the same run; its import needs a setting that
Python 3.11 no longer has, which is put back first.
"""

import argparse
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from convexkernels import VoronoiSVC

PEER = """
import sys, time, sysconfig
sysconfig.get_config_vars()["SO"] = ".so"
import numpy as np, liquidSVM
data = np.load(sys.argv[1])
began = time.perf_counter()
model = liquidSVM.lsSVM(data["X"], data["y"], threads=2, useCells=True)
fitted = time.perf_counter()
result = model.test(data["T"], data["t"])
values = np.asarray(result[0] if isinstance(result, tuple) else result).ravel()[: len(data["t"])]
print(fitted - began, time.perf_counter() - fitted, float(np.mean(np.sign(values) != data["t"])))
"""


def load(path, rng):
    values = np.loadtxt(path, delimiter=",", skiprows=1)
    values = values[rng.permutation(len(values))]
    X, y = values[:, :-1], np.where(values[:, -1] == 2, 1.0, -1.0)
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * (X - low) / np.where(high > low, high - low, 1) - 1, y


def ours(X, y, T, t, n_jobs):
    model = VoronoiSVC(loss="least_squares", validation="leave-one-out", random_state=0, n_jobs=n_jobs)
    began = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    error = float(np.mean(model.predict(T) != t))
    return fitted - began, time.perf_counter() - fitted, error, model.n_cells_


def peer(python, X, y, T, t):
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "arrays.npz"
        np.savez(arrays, X=X, y=y, T=T, t=t)
        done = subprocess.run([python, "-c", PEER, str(arrays)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  liquidSVM did not run: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return [float(value) for value in done.stdout.split()[-3:]]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--peer", help="a Python interpreter that has liquidSVM")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--full", action="store_true", help="500,000 training points, too")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    X, y = load(options.table, np.random.default_rng(0))
    T, t = X[-50_000:], y[-50_000:]
    ours(X[:3000], y[:3000], T[:100], t[:100], options.jobs)  # compiles, starts the processes
    for n in [*options.sizes, *([500_000] if options.full else [])]:
        seconds, test_seconds, error, cells = ours(X[:n], y[:n], T, t, options.jobs)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"n = {n:>7,}: {seconds:7.2f} s to train and select, {test_seconds:6.2f} s to test, "
            f"{100 * error:5.2f} % error, {cells} cells, {memory:.1f} GiB at most, load {os.getloadavg()[0]:.1f}"
        )
        found = peer(options.peer, X[:n], y[:n], T, t) if options.peer else None
        if found:
            print(
                f"  liquidSVM: {found[0]:7.2f} s, {found[1]:6.2f} s, {100 * found[2]:5.2f} %; ratios of times "
                f"{seconds / found[0]:.2f} and {test_seconds / found[1]:.2f}"
            )


if __name__ == "__main__":
    main()
