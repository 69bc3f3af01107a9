"""How late a fit ends whose time is limited, and what it has learned by then.

    python -m benchmarks.time_limit --data FOLDER [--limits 1 4] [--rows 2000] [--methods NAME ...]
    python -m benchmarks.time_limit --report

Every estimator as it comes, but for its ``max_time``, on training rows of one table of classes (magic) and one of
numbers (cpusmall), with test rows of their first split. ``late`` are the seconds of the wall beyond the limit, ``busy``
those in which other work had the processor: what is late by more than these is the fit's own. A row per estimator and
limit is appended to ``benchmarks/results/time_limit.csv``; what is there is not run again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import convexkernels as ck
from benchmarks.defaults import OURS, make, run
from benchmarks.tabular.rows import append, known, measure_or_report, resumable_parser
from benchmarks.tabular.tables import manifests
from convexkernels.datasets import load_table

RESULTS = Path(__file__).parent / "results" / "time_limit.csv"
FIELDS = ["table", "rows", "method", "limit", "late", "busy", "score", "status"]
TABLES = {"classification": "magic", "regression": "cpusmall"}
TEST_ROWS, FOREVER = 2000, 600.0


def measure(args):
    """Run what is missing."""
    ck.warm_up()
    found = manifests(args.data)
    done = {(row["table"], int(row["rows"]), row["method"], float(row["limit"])) for row in known(args.out)}
    for task, name in TABLES.items():
        place, entry = found[name]
        X, y, _ = load_table(place / entry["file"], "y")
        y = np.asarray(y, dtype=np.float64) if task == "regression" else np.asarray(y).astype(str)
        order = np.random.default_rng(0).permutation(len(X))
        test, train = order[:TEST_ROWS], order[TEST_ROWS:][: args.rows]
        for method in args.methods:
            estimator = make(method, task, X.shape[1], 0)
            for limit in [] if estimator is None else args.limits:
                if (name, len(train), method, limit) in done:
                    continue
                timed = estimator.set_params(max_time=limit)
                score, seconds, wall, status = run(timed, X[train], y[train], X[test], y[test], FOREVER)
                late, busy = max(wall - limit, 0.0), max(wall - seconds, 0.0)
                row = {"table": name, "rows": len(train), "method": method, "limit": limit, "late": f"{late:.2f}"}
                row |= {"busy": f"{busy:.2f}", "score": f"{score:.4f}", "status": status}
                append(args.out, row, FIELDS)
                print(*row.values(), flush=True)


def report(path):
    """A line per estimator: seconds that are late, and the score, for every limit."""
    rows = known(path)
    limits = sorted({(int(row["rows"]), float(row["limit"])) for row in rows})
    print("| estimator |" + "".join(f" {limit:g} s, {m:,} rows: late, score |" for m, limit in limits))
    print("|---|" + "---|" * len(limits))
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = {(int(r["rows"]), float(r["limit"])): r for r in rows if r["method"] == method}
        shown = (f" {cells[at]['late']}, {cells[at]['score']} |" if at in cells else " |" for at in limits)
        print(f"| {method} |" + "".join(shown))


def main(argv=None):
    parser = resumable_parser(__doc__, RESULTS)
    parser.add_argument("--limits", type=float, nargs="+", default=[1.0, 4.0], help="seconds")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--methods", nargs="+", default=OURS)
    measure_or_report(parser, argv, measure, report)


if __name__ == "__main__":
    main()
