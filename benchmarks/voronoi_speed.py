"""Localized SVMs on covtype, class 2 against the rest: time and error, beside liquidSVM where it is found.

    python -m benchmarks.voronoi_speed covtype.csv.gz                          n = 10,000 and 50,000
    python -m benchmarks.voronoi_speed covtype.csv.gz --full                   and 500,000
    python -m benchmarks.voronoi_speed covtype.csv.gz --peer /path/to/python   with a Python that has liquidSVM
    python -m benchmarks.voronoi_speed covtype.csv.gz --seeds 1 2 3            other rows to learn from and to test on
    python -m benchmarks.voronoi_speed covtype.csv.gz --loss hinge             SVMs in the cells (the peer's are, too)
    python -m benchmarks.voronoi_speed covtype.csv.gz --widths isotropic       one width for all features
    python -m benchmarks.voronoi_speed --report                                what is there

A row per fit is appended to ``benchmarks/results/voronoi_speed.csv`` (`--out`), and what is there is not run again.

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

from benchmarks.tabular.rows import append, known
from convexkernels import Cells, CellSelection, VoronoiSVC, warm_up

RESULTS = Path(__file__).parent / "results" / "voronoi_speed.csv"
N_TEST = 50_000
# What a fit depends on, as the file has it; the peer knows neither widths nor partitions, and has two threads.
KEYS = ["method", "loss", "rows", "seed", "widths", "partition", "overlap", "cell_size", "jobs"]
FIELDS = [*KEYS, "error_percent", "fit_wall_s", "fit_processor_s", "predict_wall_s", "predict_processor_s", "cells"]
FIELDS += ["peak_gib", "load_average"]
OURS, PEER_METHOD, PEER_THREADS = "VoronoiSVC", "liquidSVM", 2
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
        order = np.random.default_rng(seed).permutation(len(X) - N_TEST)
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


def rows_of(n, seed, options):
    """The fits to so many points, each as the part of its row that says which it is."""
    row = {"method": OURS, "loss": options.loss, "rows": n, "seed": seed, "widths": options.widths}
    row |= {"partition": options.partition, "overlap": options.overlap, "cell_size": options.cell_size}
    rows = [row | {"jobs": options.jobs}]
    if options.peer:
        rows.append(dict.fromkeys(KEYS, "") | {"method": PEER_METHOD, "loss": options.loss, "rows": n, "seed": seed})
        rows[-1]["jobs"] = PEER_THREADS
    return rows


def key(row):
    return tuple(str(row[name]) for name in KEYS)


def measured(row, X, y, T, t, options):
    """The row with what was measured, None where the peer did not run."""
    load, cells, memory = os.getloadavg()[0], "", ""
    if row["method"] == OURS:
        *found, model = ours(X, y, T, t, options)
        most = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        cells, memory = model.n_cells_, f"{most / 2**20:.2f}"
    else:
        found = peer(options.peer, X, y, T, t, options.loss)
        if found is None:
            return None
    seconds, test_seconds, error, used, test_used = found
    times = {"fit_wall_s": seconds, "fit_processor_s": used}
    times |= {"predict_wall_s": test_seconds, "predict_processor_s": test_used}
    row = row | {name: f"{value:.2f}" for name, value in times.items()}
    row |= {"error_percent": f"{100 * error:.3f}", "cells": cells, "peak_gib": memory}
    return row | {"load_average": f"{max(load, os.getloadavg()[0]):.1f}"}


def show(row):
    more = f", {row['cells']} cells, at most {row['peak_gib']} GiB" if row["cells"] else ""
    print(
        f"{row['method']}, n = {int(row['rows']):>7,}: {row['fit_wall_s']} s to train and select "
        f"({row['fit_processor_s']} of processor), {row['predict_wall_s']} s to test ({row['predict_processor_s']}), "
        f"{float(row['error_percent']):.2f} % error{more}, load {row['load_average']}",
        flush=True,
    )


def report(path):
    """The rows as a table."""
    print("| " + " | ".join(FIELDS) + " |\n|" + "---|" * len(FIELDS))
    for row in known(path):
        print("| " + " | ".join(row[name] for name in FIELDS) + " |")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", help="covtype, as a CSV file")
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
    parser.add_argument("--out", type=Path, default=RESULTS, help="where rows are kept")
    parser.add_argument("--report", action="store_true", help="print what is there")
    options = parser.parse_args(argv)
    if options.report:
        report(options.out)
        return
    if options.table is None:
        parser.error("a table is needed to measure; --report prints what is there")
    done = {key(row): row for row in known(options.out)}
    warm_up()
    for seed in options.seeds:
        X, y = load(options.table, seed)
        T, t = X[-N_TEST:], y[-N_TEST:]
        ours(X[:3000], y[:3000], T[:100], t[:100], options)  # compiles
        print(
            f"seed {seed}, {options.loss}, {options.widths} widths, {options.partition} cells, {options.jobs} processes"
        )
        for n in [*options.sizes, *([500_000] if options.full else [])]:
            if n > len(X) - N_TEST:
                print(f"n = {n:,}: seed {seed} has {len(X) - N_TEST:,} rows besides the test points")
                continue
            for row in rows_of(n, seed, options):
                found = done.get(key(row))
                if found is None:
                    found = measured(row, X[:n], y[:n], T, t, options)
                    if found is not None:
                        append(options.out, found, FIELDS)
                if found is not None:
                    show(found)


if __name__ == "__main__":
    main()
