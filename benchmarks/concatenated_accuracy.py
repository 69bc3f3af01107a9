"""Accuracy of concatenated regression on tables, beside a cross-validated single layer with the same outer kernel.

    python -m benchmarks.concatenated_accuracy --data FOLDER [names]

FOLDER holds NAME.csv.gz with a header and the target in column y. 2,000 rows are drawn, half of them learned from.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from convexkernels import ConcatenatedKernelRegressor, ConvexKernelsWarning, Matern, Polynomial
from convexkernels.datasets import load_table
from convexkernels.outer.concatenated_selection import PAPER_GRID

OUTER = Matern(order=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=8)
    parser.add_argument("names", nargs="*", default=["abalone", "ccpp", "cpusmall"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    heads = ["one layer", "two layers", "lam", "mu", "one [s]", "two [s]"]
    print(f"{'table':<10} {'draw':>4} " + " ".join(f"{head:>10}" for head in heads) + "  (R^2)")
    for name in options.names:
        X, y, _ = load_table(options.data / f"{name}.csv.gz", "y")
        scores = np.array([compare(name, X, y.astype(float), seed, options.restarts) for seed in range(options.draws)])
        one, two = np.median(scores, axis=0)
        print(f"{name:<10} median {one:8.4f} {two:10.4f}", flush=True)


def compare(name, X, y, seed, n_restarts):
    rows = np.random.default_rng(seed).permutation(len(X))[:2000]
    X, T, y, t = train_test_split(X[rows], y[rows], test_size=0.5, random_state=seed)
    began = time.perf_counter()
    scaler, target = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
    S = scaler.transform(X)
    ridge = GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": [*PAPER_GRID, 2.0, 8.0, 32.0]}, cv=5)
    ridge.fit(OUTER(S), target.transform(y[:, None])[:, 0])
    single = target.inverse_transform(ridge.predict(OUTER(scaler.transform(T), S))[:, None])[:, 0]
    middle = time.perf_counter()
    deep = ConcatenatedKernelRegressor([OUTER, Polynomial(degree=1)], n_restarts=n_restarts, random_state=seed)
    double = make_pipeline(StandardScaler(), deep).fit(X, y)
    end = time.perf_counter()
    scores = r2_score(t, single), r2_score(t, double.predict(T))
    print(
        f"{name:<10} {seed:>4} {scores[0]:10.4f} {scores[1]:10.4f} {deep.lam_:10.2e} {deep.mu_:10.2e} "
        f"{middle - began:10.1f} {end - middle:10.1f}  {deep.solution_.status.name}",
        flush=True,
    )
    return scores


if __name__ == "__main__":
    main()
