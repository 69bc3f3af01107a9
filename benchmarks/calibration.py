"""Coverage of intervals and calibration of probabilities: ``python -m benchmarks.calibration --data FOLDER``.

    python -m benchmarks.calibration --data FOLDER [--tables NAME ...] [--rows 400] [--test 1000] [--splits 2]
        [--unseen]

Everything as it comes, on random splits of a table. Intervals: the share of test targets that they hold, for coverage
0.5, 0.8 and 0.9, and their length at 0.9 in standard deviations of the targets. Probabilities: log loss, and expected
calibration error of the likeliest class in ten bins of equal size, beside ``CalibratedClassifierCV`` of a
cross-validated support vector machine. A line of a Markdown table for each table and method. With `--unseen` the shares
that intervals hold by residuals at as many rows that neither kernel nor functions have seen follow, and the lengths of
those: what is missing beside them is what the kernel has seen.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels.datasets import load_table
from convexkernels.estimators.intervals import margins

TABLES = ["space_ga", "abalone", "ccpp", "pima", "ionosphere", "satimage"]
COVERAGES = (0.5, 0.8, 0.9)
# Seconds of wall time of each of our fits.
LIMIT = 30.0


def rival():
    """A support vector machine with cross-validated parameters, calibrated in five folds."""
    grid = {"svc__C": 10.0 ** np.arange(-1, 4), "svc__gamma": [0.01, 0.03, 0.1, 0.3]}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5)
    return CalibratedClassifierCV(search, cv=5)


METHODS = {
    "regression": {
        "HierarchicalGaussianRegressor": lambda: ck.HierarchicalGaussianRegressor(random_state=0, max_time=LIMIT),
        "VoronoiSVR": lambda: ck.VoronoiSVR(random_state=0, max_time=LIMIT),
        "TessellatedRidge": lambda: ck.TessellatedRidge(max_time=LIMIT),
    },
    "classification": {
        "HierarchicalGaussianClassifier": lambda: ck.HierarchicalGaussianClassifier(random_state=0, max_time=LIMIT),
        "TessellatedSVC": lambda: ck.TessellatedSVC(max_time=LIMIT),
        "CalibratedClassifierCV(SVC)": rival,
    },
}


def intervals(model, X, y):
    """Shares of targets within intervals, and the mean length of the last of them."""
    return shares([model.predict_interval(X, coverage=coverage) for coverage in COVERAGES], y)


def unseen_intervals(model, X, y):
    """The same, and by residuals at the first rows, as many as there are to learn from."""
    count = model.n_training_rows
    fresh, X, y = y[:count] - model.predict(X[:count]), X[count:], y[count:]
    by_fresh = [model.predict(X)[:, None] + margins(fresh, np.ones(count), coverage) for coverage in COVERAGES]
    return [*intervals(model, X, y), *shares(by_fresh, y)]


def shares(found, y):
    """Shares of targets within intervals of every coverage, and the mean length of the last of them."""
    held = [float(np.mean((low <= y) & (y <= high))) for low, high in (each.T for each in found)]
    return [*held, float(np.mean(np.diff(found[-1])) / y.std())]


def calibration_error(P, classes, y, bins=10):
    """Mean distance between the probability of the likeliest class and how often it is right, over bins of rows."""
    sure, right = P.max(axis=1), classes[P.argmax(axis=1)] == y
    parts = np.array_split(np.argsort(sure, kind="stable"), bins)
    return float(sum(abs(sure[part].mean() - right[part].mean()) * len(part) for part in parts) / len(y))


def probabilities(model, X, y):
    """Log loss, expected calibration error, accuracy."""
    P = np.clip(model.predict_proba(X), 1e-12, 1.0)
    P /= P.sum(axis=1, keepdims=True)
    accuracy = accuracy_score(y, model.predict(X))
    return [log_loss(y, P, labels=model.classes_), calibration_error(P, model.classes_, y), accuracy]


def measured(make, measure, X, y, arguments):
    """The mean over the splits of what is measured, and of the seconds of processor."""
    lines = []
    for split in range(arguments.splits):
        order = np.random.default_rng(split).permutation(len(X))
        train, test = order[: arguments.rows], order[arguments.rows :][: arguments.test]
        if len(order) < arguments.rows + 100:
            train, test = order[: len(order) * 7 // 10], order[len(order) * 7 // 10 :]
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
            model = make().fit(X[train], y[train])
            model.n_training_rows = len(train)
            values = measure(model, X[test], y[test])
        lines.append([*values, time.process_time() - began])
    return np.mean(lines, axis=0).tolist()


def main():
    """Measure, and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--unseen", action="store_true")
    arguments = parser.parse_args()
    entries = json.loads((arguments.data / "manifest.json").read_text())
    for name in arguments.tables:
        X, y, _ = load_table(arguments.data / entries[name]["file"], "y")
        task = entries[name]["task"]
        y = np.asarray(y, dtype=np.float64) if task == "regression" else np.asarray(y).astype(str)
        measure = probabilities if task == "classification" else unseen_intervals if arguments.unseen else intervals
        for method, make in METHODS[task].items():
            values = measured(make, measure, X, y, arguments)
            *scores, seconds = values
            print(f"| {name} | {method} | {' | '.join(f'{v:.3f}' for v in scores)} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
