"""A kernel learned for all rows of a table: ``python -m benchmarks.all_rows --data FOLDER --tables kin40k``.

    python -m benchmarks.all_rows --data FOLDER [--tables NAME ...] [--splits 0 1 2] [--memory-limit 6e9]
    python -m benchmarks.all_rows --report
    python -m benchmarks.all_rows --data FOLDER --peers [NAME ...] [--peer-limit 900] [--peer-gigabytes 6]
    python -m benchmarks.all_rows --support-vectors 20000 [--memory-limit 1.2e9]

FOLDER holds the folder ``uci`` of tables with published splits. `HierarchicalGaussianRegressor` as it comes, without a
limit of time, is fitted to all training rows: up to 10,000 with one matrix, beyond by products with it, on features
scaled for all rows. A row per table and split is appended to ``benchmarks/results/all_rows.csv``, and what is there
is never run again. Seconds are those of the processor, in one process; errors are those on all test rows of the split,
over the standard deviation of their targets; the peak of memory is that of the whole process.

``--peers`` runs methods of others, as they come and with one thread, on the same splits: all training rows, all test
rows, processor seconds. A row per fit is appended to ``benchmarks/results/all_rows_peers.csv``; one that takes more
than ``--peer-limit`` seconds of the processor is there with the status "time".

``--support-vectors`` compares the hinge loss on so many generated rows with scikit-learn's SVC at the same C and gamma.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from benchmarks.tabular import cell
from benchmarks.tabular.catalog import Entry
from benchmarks.tabular.methods import METHODS
from benchmarks.tabular.rows import append, known, measure_or_report, resumable_parser
from benchmarks.tabular.tables import Table, load, manifests, published_splits
from convexkernels.datasets import load_table

RESULTS = Path(__file__).parent / "results" / "all_rows.csv"
FIELDS = ["table", "split", "rows", "features", "plan", "error", "fit_seconds", "predict_seconds", "wall", "peak_gib"]
FIELDS += ["scale", "gap", "status"]
PEER_RESULTS = RESULTS.with_name("all_rows_peers.csv")
PEERS = ["Gaussian process", "xRFM", "LightGBM", "CatBoost"]
TABLES = ["kin40k", "protein", "elevators", "pol", "parkinsons", "keggdirected", "tamielectric"]


def measured(place, entry, split, memory_limit):
    """The row of a table and a split."""
    X, y, _ = load_table(place / entry["file"], "y")
    marks, y = published_splits(place, entry)[:, split], np.asarray(y, dtype=np.float64)
    train, test = np.flatnonzero(marks == 0), np.flatnonzero(marks == 1)
    ck.warm_up()
    wall, began = time.monotonic(), time.process_time()
    selection = ck.TreeSelection(training=ck.AllRows(memory_limit=memory_limit))
    model = ck.HierarchicalGaussianRegressor(selection=selection, max_time=None, random_state=split)
    model.fit(X[train], y[train])
    fitted = time.process_time()
    error = np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)) / y[test].std()
    predicted = time.process_time()
    kernel, gap = getattr(model.function_, "kernel", None), model.plan_.certificate
    return {
        "rows": len(train),
        "features": X.shape[1],
        "plan": model.plan_.method,
        "error": f"{error:.4f}",
        "fit_seconds": f"{fitted - began:.1f}",
        "predict_seconds": f"{predicted - fitted:.1f}",
        "wall": f"{time.monotonic() - wall:.0f}",
        "peak_gib": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}",
        "scale": f"{1.0 / kernel.scale[0]:.3f}" if isinstance(kernel, ck.Rescaled) else "1",
        "gap": "" if gap is None else f"{gap.relative_gap:.1e}",
        "status": model.solution_.status.name,
    }


def measure(args):
    """Run what is missing, each cell in a process of its own."""
    found = manifests(args.data)
    done = {(row["table"], int(row["split"])) for row in known(args.out)}
    for split in args.splits:
        for name in args.tables:
            if (name, split) in done:
                continue
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                row = {"table": name, "split": split} | pool.apply(_quietly, (*found[name], split, args.memory_limit))
            append(args.out, row, FIELDS)
            print(*row.values(), flush=True)


def _quietly(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(*arguments)


class WholeTable(Table):
    """A table that is tested on all test rows of a split."""

    def split(self, number, training_rows):
        train, _ = super().split(number, training_rows)
        return train, np.flatnonzero(self.marks[:, number] == 1)


def measure_peers(args, out):
    """Run what is missing, each fit in a process of its own that the system ends at the limit."""
    done = {(row["table"], int(row["split"]), row["method"]) for row in known(out)}
    for name in args.tables:
        table = WholeTable(**vars(load(Entry(name, "uci", "regression", True), args.data)))
        for split in args.splits:
            for method in (METHODS[peer] for peer in args.peers or PEERS):
                if (name, split, method.name) in done:
                    continue
                if method.missing():
                    print(f"{method.name} is not run: {', '.join(method.missing())} is not installed", flush=True)
                    continue
                rows = min(args.peer_rows, int(np.sum(table.marks[:, split] == 0)))
                row = cell.run(method, table, split, rows, args.peer_limit, 0.0, args.peer_gigabytes)
                append(out, row, cell.FIELDS)
                print(*row.values(), flush=True)


def report(path):
    """The rows as a table."""
    shown = ["table", "split", "rows", "error", "fit_seconds", "predict_seconds", "peak_gib", "scale", "gap"]
    print("| " + " | ".join(shown) + " |\n|" + "---|" * len(shown))
    for row in sorted(known(path), key=lambda row: (row["table"], int(row["split"]))):
        print("| " + " | ".join(row[name] for name in shown) + " |")


def two_classes(m):
    """Points of a cube in eight columns, and classes of which a tenth is wrong."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(m, 8))
    f = np.sin(6 * X[:, 0]) * np.cos(5 * X[:, 1]) + 0.8 * np.sin(7 * X[:, 2] * X[:, 3]) + 0.5 * X[:, 4]
    y = np.where(f > np.median(f), 1.0, -1.0)
    y[rng.uniform(size=m) < 0.1] *= -1
    return X, y


def support_vectors(m, memory_limit, C=10.0, gamma=3.0):
    """Seconds of the processor for the hinge loss, here and by LIBSVM."""
    from sklearn.svm import SVC

    X, y = two_classes(m)
    ck.warm_up()
    began = time.process_time()
    solution = ck.FixedKernel(ck.Gaussian(gamma), ck.Hinge(C), X, y, memory_limit=memory_limit).solve(tol=1e-3)
    solved = time.process_time()
    print(f"FixedKernel: {solved - began:.1f} s, {solution.certificate}, {solution.status.name}", flush=True)
    print(f"peak of memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB", flush=True)
    SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y)
    print(f"SVC: {time.process_time() - solved:.1f} s")


def main(argv=None):
    parser = resumable_parser(__doc__, RESULTS)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--memory-limit", type=float, default=6e9, help="bytes for the solution on all rows")
    parser.add_argument("--support-vectors", type=int, help="rows of the comparison with SVC, and nothing else")
    parser.add_argument("--peers", nargs="*", choices=PEERS, help="methods of others in the place of the library")
    parser.add_argument("--peer-limit", type=float, default=900.0, help="seconds of the processor for a fit")
    parser.add_argument("--peer-gigabytes", type=int, default=cell.GIGABYTES, help="memory of a fit")
    parser.add_argument("--peer-rows", type=int, default=10**9, help="training rows at most")
    args = parser.parse_args(argv)
    if args.peers is not None:
        if args.data is None:
            parser.error("--data is needed for --peers")
        measure_peers(args, PEER_RESULTS if args.out == RESULTS else args.out)
        return
    if args.support_vectors:
        support_vectors(args.support_vectors, args.memory_limit)
        return
    measure_or_report(parser, argv, measure, report)


if __name__ == "__main__":
    main()
