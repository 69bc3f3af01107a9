"""Localized least squares SVMs: Figure 5 of Meister and Steinwart, at a size for one computer.

    min over f_j in H_j   lam_j |f_j|^2 + 1/n sum over x_i in A_j (y_i - f_j(x_i))^2        for every cell A_j

(VP-SVM, (2) and (3)); cells are Voronoi cells of a farthest-first cover of radius r, and lam_j and the width of the
Gaussian kernel are selected in every cell. Beside it: one SVM for all points (LS-SVM), and the mean of SVMs on
random chunks (RC-SVM). Training time and test error against the number of training points, which the paper measures
on covtype; without a table, on points of a function whose smoothness changes from place to place. Seconds are those of
the processor, which other work on the computer does not change.

    python -m models.voronoi_svm --table covtype.csv.gz --sizes 1000 2500 5000 10000 25000 50000
    python -m models.voronoi_svm --quick
"""

import argparse
import time
from pathlib import Path

import numpy as np

from convexkernels import Cells, CellSelection, VoronoiSVC

RADII = (1.0, 0.7, 0.5)
CHUNKS = (4, 12)
LARGEST_GLOBAL = 5000


def load(table, rng):
    """Points in [-1, 1]^n and labels; class 2 against the rest for a table with the classes in its last column."""
    if table is None:
        X = rng.uniform(-1, 1, (80_000, 2))
        f = np.sin(12 * np.exp(X[:, 0]) * X[:, 1]) + 0.4 * rng.standard_normal(len(X))
        return X, np.where(f > 0, 1, -1)
    values = np.loadtxt(table, delimiter=",", skiprows=1)
    X = values[:, :-1]
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2 * (X - low) / np.where(high > low, high - low, 1) - 1
    return X, np.where(values[:, -1] == 2, 1, -1)


def methods(n, diameter):
    """Name -> estimator, for n training points."""
    options = {"selection": CellSelection(widths="isotropic"), "random_state": 0}
    listed = {
        f"VP, r = {r:g}": VoronoiSVC(cells=Cells("voronoi", radius=r * diameter, scale=False), **options) for r in RADII
    }
    listed |= {
        f"RC, {k} chunks": VoronoiSVC(cells=Cells("random", scale=False), max_cell_size=max(2, -(-n // k)), **options)
        for k in CHUNKS
    }
    if n <= LARGEST_GLOBAL:
        listed["LS (global)"] = VoronoiSVC(cells=Cells("voronoi", scale=False), max_cell_size=n + 1, **options)
    return listed


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="CSV with a header and the classes in the last column")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2500, 5000, 10_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two small sizes, one repetition")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    sizes, repeats = ([300, 800], 1) if options.quick else (options.sizes, options.repeats)
    rng = np.random.default_rng(0)
    X, y = load(options.table, rng)
    n_test = min(50_000, len(X) - max(sizes))
    # Radii are fractions of the largest distance from the mean, so that they mean the same for every table.
    diameter = float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).max()))
    VoronoiSVC().fit(X[:50], y[:50])  # loads and compiles, before anything is timed
    results = {}
    print(f"{'n':>7} {'method':<14} {'cells':>6} {'train':>8} {'test':>8} {'error':>7}")
    for n in sizes:
        for _ in range(repeats):
            order = rng.permutation(len(X))
            train, test = order[:n], order[n : n + n_test]
            for name, model in methods(n, diameter).items():
                began = time.process_time()
                model.fit(X[train], y[train])
                fitted = time.process_time()
                error = np.mean(model.predict(X[test]) != y[test])
                found = (fitted - began, time.process_time() - fitted, error, model.n_cells_)
                results.setdefault((name, n), []).append(found)
        for name in methods(n, diameter):
            seconds, test_seconds, error, cells = np.mean(results[name, n], axis=0)
            print(f"{n:>7} {name:<14} {cells:>6.0f} {seconds:>7.2f}s {test_seconds:>7.2f}s {100 * error:>6.2f}%")
    draw(results, sizes, options.out)
    return results


def draw(results, sizes, out):
    import matplotlib.pyplot as plt

    from convexkernels.plotting.canvas import color, legend, plain_ticks

    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for k, name in enumerate(dict.fromkeys(name for name, _ in results)):
        at = [n for n in sizes if (name, n) in results]
        means = np.array([np.mean(results[name, n], axis=0) for n in at])
        style = {"VP": "-o", "RC": "--s", "LS": ":^"}[name[:2]]
        axes[0].loglog(at, means[:, 0], style, color=color(k), label=name)
        axes[1].semilogx(at, 100 * means[:, 2], style, color=color(k), label=name)
    axes[0].set(xlabel="training points", ylabel="training and selection, processor time / s")
    for ax in axes:
        plain_ticks(ax.xaxis, at=sizes)
    plain_ticks(axes[0].yaxis)
    axes[1].set(xlabel="training points", ylabel="test error, %")
    legend(axes[1])
    figure.savefig(out / "voronoi_svm.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
