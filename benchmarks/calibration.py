"""Coverage of intervals and calibration of probabilities: ``python -m benchmarks.calibration --data FOLDER``.

    python -m benchmarks.calibration --data FOLDER [--tables NAME ...] [--methods NAME ...] [--rows 400] [--splits 2]
    python -m benchmarks.calibration --report

Every estimator as it comes, on random or published splits of all tables of `benchmarks.defaults`. Intervals: the share
of test targets that they hold, for coverage .5, .8 and .9, and their length at .9 in standard deviations of the
targets; beside them the same by residuals at as many rows that neither kernel nor functions have seen: what is missing
there is what the kernel has seen. `VoronoiQuantile` has intervals of its own, with a margin around two
quantiles; beside these what lies between the quantiles of two fits, as they are. Probabilities: log loss, and expected
calibration error of the likeliest class in ten bins of equal size, beside ``CalibratedClassifierCV`` of a
cross-validated support vector machine.

A row per table, split and method is appended to ``benchmarks/results/calibration.csv``; what is there is not run again.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import accuracy_score, log_loss

import convexkernels as ck
from benchmarks.defaults import OURS, make, parts
from benchmarks.tabular.rows import append, known, measure_or_report, resumable_parser
from benchmarks.tabular.tables import manifests
from convexkernels.estimators.intervals import margins

RESULTS = Path(__file__).parent / "results" / "calibration.csv"
COVERAGES = (0.5, 0.8, 0.9)
HELD = [f"holds_{coverage:g}" for coverage in COVERAGES]
SCORES = {
    "regression": [*HELD, "length", *(f"unseen_{name}" for name in HELD), "unseen_length"],
    "classification": ["log_loss", "calibration_error", "accuracy"],
}
FIELDS = ["table", "split", "method", "task", "rows", *SCORES["regression"], *SCORES["classification"], "seconds"]
# Quantiles as they are, and the intervals that their estimator makes of them.
QUANTILES, AROUND, RIVAL = "VoronoiQuantile", "VoronoiQuantile.predict_interval", "CalibratedClassifierCV(SVC)"
METHODS = [*OURS, QUANTILES, AROUND, RIVAL]
TEST_ROWS, FOLDS = 1000, 5


def estimator(method, task, n, split):
    """The estimator of a name, None where it is not for the task."""
    if method != RIVAL:
        return make(QUANTILES if method == AROUND else method, task, n, split)
    return CalibratedClassifierCV(make("rbf svm", task, n, split), cv=FOLDS) if task == "classification" else None


def intervals(model, X, y, fresh, fresh_y):
    """Shares of targets within intervals, and the mean length of the last of them; the same by fresh residuals."""
    found = [model.predict_interval(X, coverage=coverage) for coverage in COVERAGES]
    if not len(fresh):
        return [*shares(found, y), *[np.nan] * 4]
    residuals, F = fresh_y - model.predict(fresh), model.predict(X)[:, None]
    return [
        *shares(found, y),
        *shares([F + margins(residuals, np.ones(len(residuals)), coverage) for coverage in COVERAGES], y),
    ]


def quantiles(make_one, X, y, T, t):
    """The same for what lies between two quantiles."""

    def predictions(quantile):
        return make_one().set_params(quantile=quantile).fit(X, y).predict(T)

    found = [np.column_stack([predictions((1.0 + sign * c) / 2.0) for sign in (-1.0, 1.0)]) for c in COVERAGES]
    return [*shares(found, t), *[np.nan] * 4]


def shares(found, y):
    """Shares of targets within intervals of every coverage, and the mean length of the last of them."""
    held = [float(np.mean((low <= y) & (y <= high))) for low, high in (each.T for each in found)]
    return [*held, float(np.mean(np.diff(found[-1])) / y.std())]


def calibration_error(P, classes, y, bins=10):
    """Mean distance between the probability of the likeliest class and how often it is right, over bins of rows."""
    sure, right = P.max(axis=1), classes[P.argmax(axis=1)] == y
    bins = np.array_split(np.argsort(sure, kind="stable"), bins)
    return float(sum(abs(sure[part].mean() - right[part].mean()) * len(part) for part in bins) / len(y))


def probabilities(model, X, y):
    """Log loss, expected calibration error, accuracy."""
    known_classes = np.isin(y, model.classes_)  # of a class that is not in the training rows nobody knows anything
    X, y = X[known_classes], y[known_classes]
    P = np.clip(model.predict_proba(X), 1e-12, 1.0)
    P /= P.sum(axis=1, keepdims=True)
    accuracy = accuracy_score(y, model.predict(X))
    return [log_loss(y, P, labels=model.classes_), calibration_error(P, model.classes_, y), accuracy]


def scores(method, task, split, X, y, T, t):
    """What is measured of one method on one split; no row that it was learned from is looked at."""
    if method == QUANTILES:
        return quantiles(lambda: estimator(method, task, X.shape[1], split), X, y, T[:TEST_ROWS], t[:TEST_ROWS])
    model = estimator(method, task, X.shape[1], split).fit(X, y)
    if task == "classification":
        return probabilities(model, T[:TEST_ROWS], t[:TEST_ROWS])
    n_fresh = len(X) if len(T) >= TEST_ROWS + len(X) and method != AROUND else 0  # these are around predictions
    return intervals(model, T[n_fresh:][:TEST_ROWS], t[n_fresh:][:TEST_ROWS], T[:n_fresh], t[:n_fresh])


def measure(args):
    """Run what is missing, small tables first."""
    ck.warm_up()
    found = manifests(args.data)
    names = args.tables or sorted(found, key=lambda name: found[name][1]["features"])
    done = {(row["table"], int(row["split"]), row["method"]) for row in known(args.out)}
    for split in range(args.splits):
        for name in names:
            place, entry = found[name]
            task = entry["task"]
            missing = [method for method in args.methods if (name, split, method) not in done]
            missing = [method for method in missing if estimator(method, task, 1, 0) is not None]
            X, y, T, t = parts(place, entry, split) if missing else [np.empty(0)] * 4
            X, y = X[: args.rows], y[: args.rows]
            for method in missing:
                if method == RIVAL and np.unique(y, return_counts=True)[1].min() < FOLDS:
                    continue  # it wants every class in every fold
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    values = scores(method, task, split, X, y, T, t)
                row = {"table": name, "split": split, "method": method, "task": task, "rows": len(X)}
                row |= {key: f"{value:.4f}" for key, value in zip(SCORES[task], values, strict=True)}
                row |= {"seconds": f"{time.process_time() - began:.2f}"}
                append(args.out, row, FIELDS)
                print(*row.values(), flush=True)


def report(path):
    """Means over splits and tables, and the tables on which intervals hold least."""
    rows = known(path)
    for task, names in SCORES.items():
        cells = defaultdict(lambda: defaultdict(list))
        for row in rows:
            if row["task"] == task:
                cells[row["method"]][row["table"]].append([float(row[name]) for name in names])
        print(f"\n| {task} | tables | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 2) + "|")
        for method, tables in cells.items():
            means = {name: np.mean(values, axis=0) for name, values in tables.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # no table has rows left for what is not known
                whole = np.nanmean(list(means.values()), axis=0)
            print(f"| {method} | {len(means)} | " + " | ".join(f"{value:.3f}" for value in whole) + " |")
        for method, tables in cells.items() if task == "regression" else ():
            held = {name: float(np.mean(values, axis=0)[2]) for name, values in tables.items()}
            least = sorted(held, key=held.get)[:3]
            print(f"{method}, least of .9: " + ", ".join(f"{name} {held[name]:.3f}" for name in least))


def main(argv=None):
    parser = resumable_parser(__doc__, RESULTS)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--splits", type=int, default=2)
    measure_or_report(parser, argv, measure, report)


if __name__ == "__main__":
    main()
