"""Support vector machines with a Gaussian kernel on the splits of Table 2, cross-validated: the rows to beat.

    python -m benchmarks.spectral.rivals --data FOLDER --out FOLDER [--sets NAME ...] [--splits N] [--peers]

C and gamma are chosen by 5-fold cross-validation on at most `--cv-rows` rows of the 80 % that is learned from; the
machine is then trained on all of them. Results are appended to ``FOLDER/rivals.jsonl``, and a split that is there is
not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC, SVR

from convexkernels import HierarchicalGaussianRegressor
from convexkernels.datasets import load_table
from models.automated_spectral import PAPER, REGRESSION, scaled


def read(folder, name):
    """Features and target; numeric targets are scaled to [0, 100] as in the paper."""
    path = folder / f"{name}.csv.gz"
    if name == "mnist":  # 55 million cells: the plain reader of numbers takes 4 s
        cells = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
        return cells[:, :-1], cells[:, -1].astype(int)
    X, y, _ = load_table(path, "y")
    if name in REGRESSION:
        y = 100.0 * (y - y.min()) / (y.max() - y.min())
    return X, y


def split(name, X, y, seed):
    """80 % to learn from, 20 % to test on, scaled by what the first part says."""
    X, T, y, t = train_test_split(X, y, test_size=0.2, random_state=seed)
    X, T = scaled(name, X, T, y, seed)
    return X, y, T, t


def score(name, truth, predicted):
    """Percent of correct labels, or root mean squared error."""
    if name in REGRESSION:
        return float(np.sqrt(np.mean((truth - predicted) ** 2)))
    return 100.0 * float(np.mean(truth == predicted))


def gaussian_machine(name, X, y, T, t, seed, cv_rows):
    spread = y.std() if name in REGRESSION else 1.0
    machine = SVR(cache_size=1000, epsilon=0.1) if name in REGRESSION else SVC(cache_size=1000)
    y = y / spread if name in REGRESSION else y
    variance = X.var(axis=0).sum()
    grid = {"C": [1.0, 10.0, 100.0], "gamma": np.array([0.25, 1.0, 4.0, 16.0]) / variance}
    rows = np.random.default_rng(seed).permutation(len(X))[:cv_rows]
    began = time.process_time()
    loss = "neg_mean_squared_error" if name in REGRESSION else "accuracy"
    found = GridSearchCV(machine, grid, cv=5, scoring=loss, refit=False).fit(X[rows], y[rows])
    middle = time.process_time()
    machine = machine.set_params(**found.best_params_).fit(X, y)
    predicted = spread * machine.predict(T) if name in REGRESSION else machine.predict(T)
    record = {"set": name, "split": seed, "score": score(name, t, predicted), "C": found.best_params_["C"]}
    record |= {
        "gamma_in_variances": float(found.best_params_["gamma"] * variance),
        "rows": len(X),
        "cv_rows": len(rows),
    }
    return record | {"choice_s": round(middle - began, 2), "fit_s": round(time.process_time() - middle, 2)}


def peers(name, X, y, T, t, seed):
    """What other learners reach on a split: what is possible there at all."""
    found = {
        "hierarchical Gaussian kernel": HierarchicalGaussianRegressor(random_state=seed),
        "boosted trees": HistGradientBoostingRegressor(max_iter=400, learning_rate=0.05, random_state=seed),
        "random forest": RandomForestRegressor(300, random_state=seed),
    }
    return {peer: score(name, t, model.fit(X, y).predict(T)) for peer, model in found.items()}


def stored(path):
    """Results so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--cv-rows", type=int, default=3000)
    parser.add_argument("--peers", action="store_true", help="other learners for regression instead, nothing is stored")
    parser.add_argument("--quick", action="store_true", help="one split, chosen on 300 rows")
    options = parser.parse_args(argv)
    n_splits, cv_rows = (1, 300) if options.quick else (options.splits, options.cv_rows)
    if options.peers:
        for name in [name for name in options.sets if name in REGRESSION]:
            X, y = read(options.data, name)
            for seed in range(n_splits):
                found = peers(name, *split(name, X, y, seed), seed)
                print(name, seed, ", ".join(f"{peer} {value:.2f}" for peer, value in found.items()), flush=True)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "rivals.jsonl"
    done = {(record["set"], record["split"]) for record in stored(path)}
    for name in options.sets:
        wanted = [seed for seed in range(n_splits) if (name, seed) not in done]
        X, y = read(options.data, name) if wanted else (None, None)
        for seed in wanted:
            record = gaussian_machine(name, *split(name, X, y, seed), seed, cv_rows)
            with path.open("a") as lines:
                lines.write(json.dumps(record) + "\n")
            print(record, flush=True)


if __name__ == "__main__":
    main()
