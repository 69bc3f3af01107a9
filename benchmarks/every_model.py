"""``convexkernels learn`` and ``predict`` for every estimator, on three tables each.

    python -m benchmarks.every_model [--data FOLDER] [--max-time 60] [--report]

What a newcomer would type, with nothing set: a CSV file is learned from, the model is kept, and the rows of the file
are predicted by the kept model. Wine and breast cancer (classes) and diabetes (numbers) come with scikit-learn; with
``--data`` heart, abalone and space_ga are read from a folder with NAME.csv.gz, else generated tables take their places.
Seconds are those of the processor, without loading the library. One line of ``results/every_model.csv`` for each
estimator and table; those that are there are not run again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import re
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

from convexkernels import cli
from convexkernels.commands.catalog import MODELS
from convexkernels.datasets import make_friedman1, make_two_moons

FIELDS = ["estimator", "table", "rows", "columns", "score", "error", "linear", "status", "learn_s", "predict_s"]
OUT = Path(__file__).parent / "results" / "every_model.csv"
SHIPPED = {"classification": ["wine", "breast_cancer"], "regression": ["diabetes"]}
FROM_FOLDER = {"classification": ["heart"], "regression": ["abalone", "space_ga"]}
GENERATED = {
    "moons": lambda: make_two_moons(300, noise=0.2, n_noise_features=3, random_state=0),
    "friedman": lambda: make_friedman1(300, n_features=10, random_state=0),
    "friedman5": lambda: make_friedman1(300, n_features=5, random_state=1),
}
IN_THEIR_PLACE = {"heart": "moons", "abalone": "friedman", "space_ga": "friedman5"}


def tables(task: str, data: Path | None) -> list[str]:
    others = FROM_FOLDER[task]
    return [*SHIPPED[task], *(others if data is not None else [IN_THEIR_PLACE[name] for name in others])]


def write_table(name: str, data: Path | None, folder: Path) -> Path:
    """The table as a CSV file whose last column is y."""
    path = folder / f"{name}.csv"
    if path.exists():
        return path
    if data is not None and (data / f"{name}.csv.gz").exists():
        path.write_bytes(gzip.decompress((data / f"{name}.csv.gz").read_bytes()))
        return path
    if name in GENERATED:
        X, y = GENERATED[name]()
        names = [f"x{j + 1}" for j in range(X.shape[1])]
    else:
        from sklearn import datasets

        loaded = getattr(datasets, f"load_{name}")()
        X, y, names = loaded.data, loaded.target, loaded.feature_names
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow([*names, "y"])
        writer.writerows([*row, value] for row, value in zip(X.tolist(), np.asarray(y).tolist(), strict=True))
    return path


def timed(*arguments: str) -> tuple[str, float]:
    """What a command printed, and its seconds of processor, without loading the library."""
    out, err, before = io.StringIO(), io.StringIO(), time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        status = cli.main(list(arguments))
    if status:
        raise SystemExit(f"{' '.join(arguments)} ended with {status}:\n{out.getvalue()}{err.getvalue()}")
    return out.getvalue(), time.process_time() - before


def measured(estimator: str, task: str, table: Path, limit: float) -> dict[str, object]:
    """Learn from the table and predict it; what was printed, and the seconds of each."""
    with tempfile.TemporaryDirectory() as folder:
        model, found = Path(folder, "model.skops"), Path(folder, "predictions.csv")
        asked = ["--target", "y", "--model", estimator, "--task", task, "--max-time", f"{limit:g}", "--quiet"]
        said, learning = timed("learn", str(table), *asked, "--against", "linear", "--out", str(model))
        predicting = timed("predict", str(model), str(table), "--out", str(found))[1]
        rows = len(table.read_text().splitlines()) - 1
        assert len(found.read_text().splitlines()) == rows + 1
    score = re.search(r"^learned kernel +(\S+) \+- (\S+)", said, flags=re.MULTILINE)
    linear = re.search(r"^linear model +(\S+)", said, flags=re.MULTILINE)
    columns = re.search(r": (\d+) features", said)
    status = re.search(r"^status +(.*)$", said, flags=re.MULTILINE)
    values = [estimator, table.stem, rows, columns[1], *score.groups(), linear[1], status[1]]
    return dict(zip(FIELDS, [*values, f"{learning:.1f}", f"{predicting:.1f}"], strict=True))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds of a whole run")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--report", action="store_true", help="print the table of what was measured, and run nothing")
    options = parser.parse_args(argv)
    if not options.report:
        run(options)
    with options.out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    print("| estimator | table | rows x columns | test score | linear model | ended | learn | predict |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['estimator']} | {row['table']} | {row['rows']} x {row['columns']} | "
            f"{float(row['score']):.3f} +- {float(row['error']):.3f} | {float(row['linear']):.3f} | {row['status']} | "
            f"{row['learn_s']} | {row['predict_s']} |"
        )


def run(options: argparse.Namespace) -> None:
    done = set()
    if options.out.exists():
        with options.out.open(newline="") as lines:
            done = {(row["estimator"], row["table"]) for row in csv.DictReader(lines)}
    else:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(",".join(FIELDS) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        for task in ("classification", "regression"):
            names = {getattr(model, task) for model in MODELS.values()} - {None}
            for estimator in sorted(names):
                for name in tables(task, options.data):
                    if (estimator, name) in done:
                        continue
                    table = write_table(name, options.data, Path(folder))
                    row = measured(estimator, task, table, options.max_time)
                    with options.out.open("a", newline="") as lines:
                        csv.DictWriter(lines, FIELDS, lineterminator="\n").writerow(row)
                    print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
