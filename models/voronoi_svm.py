"""Localized least squares SVMs: Figure 5 of Meister and Steinwart, at a size for one computer.

    min over f_j in H_j   lam_j |f_j|^2 + 1/n sum over x_i in A_j (y_i - f_j(x_i))^2        for every cell A_j

(VP-SVM, (2) and (3)); cells are Voronoi cells of a farthest-first cover of radius r, and lam_j and the width of the
Gaussian kernel are selected in every cell. Beside it: one SVM for all points (LS-SVM), and the mean of SVMs on
random chunks (RC-SVM). Training time and test error against the number of training points, which the paper measures
on covtype; without a table, on points of a function whose smoothness changes from place to place. Seconds are those of
the processor, which other work on the computer does not change.

    python -m models.voronoi_svm --table covtype.csv.gz --sizes 1000 2500 5000 10000 25000 50000
    python -m models.voronoi_svm --table covtype.csv.gz --as-printed
    python -m models.voronoi_svm --quick

`--as-printed`: the sizes of the paper, 1,000 to 500,000, its 100, 10 and 3 repetitions, its 5 folds; radii down to a
tenth, numbers of chunks that grow with the table, and cells as large as half of the memory allows. What is given
beside it, or beside `--quick`, counts instead: `--as-printed --sizes 1000` is the first size only. `--validation
global-split` is the TV-VP-SVM of Section 4.2. Results are appended to OUT/voronoi_svm.jsonl as they come, and what is
there is not run again. A method whose largest cell would have more than `--largest-cell` rows is left out, and said
to be.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from convexkernels import Cells, CellSelection, LeastSquares, VoronoiSVC
from convexkernels.cells.covering import voronoi_cover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.validation import available_memory

SIZES = [1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000]
FEW_SIZES = [1000, 2500, 5000, 10_000]
RADII, PRINTED_RADII = [1.0, 0.7, 0.5], [1.0, 0.7, 0.5, 0.2, 0.1]
# Rows that a random chunk has at most, with as many chunks as asked for or more: 8,000 of the fewest, 2,000 of others.
CHUNK_ROWS = (8000, 2000)
# Sizes that have room beside each other below a figure.
FEW_TICKS = 5
VALIDATIONS = {"leave-one-out": "leave-one-out", "folds": 5, "split": "split", "global-split": "global-split"}


def printed_repeats(n):
    """100, 10 or 3, as in Section 5."""
    return 100 if n <= 5000 else 10 if n <= 25_000 else 3


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


def methods(n, diameter, options):
    """Name -> estimator, for n training points."""
    settings = {
        "selection": CellSelection(VALIDATIONS[options.validation], widths="isotropic", shared=options.shared or None),
        "random_state": 0,
        "max_time": None,
    }
    listed = {
        f"VP, r = {r:g}": VoronoiSVC(cells=Cells("voronoi", radius=r * diameter, scale=False), **settings)
        for r in options.radii
    }
    for place, k in enumerate(sorted(options.chunks)):
        name, rows = f"RC, {k} chunks", max(2, -(-n // k))
        if options.as_printed:
            name, rows = f"RC, {k}+ chunks", min(rows, CHUNK_ROWS[place > 0])
        listed[name] = VoronoiSVC(cells=Cells("random", scale=False), max_cell_size=rows, **settings)
    listed["LS (global)"] = VoronoiSVC(cells=Cells("voronoi", scale=False), max_cell_size=n + 1, **settings)
    return listed


def rows_in_memory(options):
    """Rows, in thousands, of the largest cell that takes up to half of the memory that is available.

    What it takes is what the learner says: float64 matrices, their factors, and work of the same size.
    """
    learner = KernelLearner(LeastSquares(), CellSelection(VALIDATIONS[options.validation]))
    limit = 0.5 * available_memory()
    return max([rows for rows in range(1000, 500_001, 1000) if learner.bytes_of(rows) <= limit], default=1000)


def largest_cell(model, X):
    """Rows of the largest cell that a model will learn from."""
    if model.max_cell_size is not None:
        return min(len(X), model.max_cell_size)
    cover = voronoi_cover(X, radius=model.cells.radius, random_state=0)
    return int(np.bincount(cover.cells(X)).max())


def measure(model, train, test):
    began = time.process_time()
    model.fit(*train)
    fitted = time.process_time()
    error = float(np.mean(model.predict(test[0]) != test[1]))
    return {
        "seconds": fitted - began,
        "test_seconds": time.process_time() - fitted,
        "error": error,
        "cells": int(model.n_cells_),
        "largest": int(model.function_.sizes.max()),
    }


def show(n, name, rows):
    """A line of the means over repetitions, where there are any."""
    if rows:
        seconds, tested, cells = (np.mean([r[key] for r in rows]) for key in ("seconds", "test_seconds", "cells"))
        errors = 100.0 * np.array([r["error"] for r in rows])
        print(
            f"{n:>7} {name:<14} {cells:>6.0f} {seconds:>8.2f}s {tested:>7.2f}s {errors.mean():>6.2f} +- "
            f"{errors.std():.2f} % ({len(rows)})",
            flush=True,
        )


def run(X, y, sizes, repeats, options, file):
    """Measure what the file does not have, repetition by repetition; the records that were asked for."""
    table = options.table.name.removesuffix(".gz") if options.table else "made"
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    kind = {"table": table, "validation": options.validation, "shared": options.shared}
    known = [r for r in known if {key: r[key] for key in kind} == kind]
    # Radii are fractions of the largest distance from the mean, so that they mean the same for every table.
    diameter = float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).max()))
    done = {(r["method"], r["n"], r["repeat"]) for r in known}
    for n in sizes:
        if n >= len(X):
            print(f"{n:>7} all methods    left out: {len(X)} rows in the table, some of them to test on", flush=True)
            continue
        n_test = min(10_000 if n <= 5000 else 50_000, len(X) - n)
        left_out = set()
        for repeat in range(repeats(n)):
            order = np.random.default_rng([n, repeat]).permutation(len(X))
            train, test = order[:n], order[n : n + n_test]
            for name, model in methods(n, diameter, options).items():
                if (name, n, repeat) in done or name in left_out:
                    continue
                if (rows := largest_cell(model, X[train])) > options.largest_cell:
                    left_out.add(name)
                    limit = f"the limit is {options.largest_cell}, by {options.limited_by}"
                    print(f"{n:>7} {name:<14} left out: a cell of {rows} rows; {limit}", flush=True)
                    continue
                record = kind | {"method": name, "n": n, "repeat": repeat}
                record |= measure(model, (X[train], y[train]), (X[test], y[test]))
                known.append(record)
                with file.open("a") as lines:
                    lines.write(json.dumps(record) + "\n")
        for name in methods(n, diameter, options):
            show(n, name, [r for r in known if (r["method"], r["n"]) == (name, n)])
    return known


def chosen(options):
    """Sizes, and repetitions as a function of them: what is given, and else what --quick or --as-printed say."""
    sizes = [300, 800] if options.quick else SIZES if options.as_printed else FEW_SIZES
    count = (1 if options.quick else 3) if options.repeats is None else options.repeats
    printed = options.as_printed and options.repeats is None and not options.quick
    return options.sizes or sizes, printed_repeats if printed else lambda n: count


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="CSV with a header and the classes in the last column")
    parser.add_argument("--sizes", type=int, nargs="+", help=f"of tables ({FEW_SIZES})")
    parser.add_argument("--repeats", type=int, help="repetitions of every size (3)")
    parser.add_argument("--radii", type=float, nargs="+", help=f"of Voronoi cells ({RADII})")
    parser.add_argument("--chunks", type=int, nargs="*", default=[4, 12], help="numbers of random chunks")
    parser.add_argument("--validation", choices=list(VALIDATIONS), help="(leave-one-out, or folds as printed)")
    parser.add_argument("--shared", action="store_true", help="one lam and one width for all cells")
    parser.add_argument("--largest-cell", type=int, help="rows that one SVM may have (8000, or what fits the memory)")
    parser.add_argument(
        "--as-printed", action="store_true", help="sizes, repetitions and folds of the paper, where not given"
    )
    parser.add_argument("--quick", action="store_true", help="two small sizes, one repetition, where not given")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure and the records")
    options = parser.parse_args(argv)
    sizes, repeats = chosen(options)
    if any(not 1 <= 2 * k <= min(sizes) for k in options.chunks):
        parser.error(
            f"--chunks {options.chunks}: each is 1 at least, and a chunk needs two of the {min(sizes)} rows of --sizes"
        )
    options.validation = options.validation or ("folds" if options.as_printed else "leave-one-out")
    options.radii = options.radii or (PRINTED_RADII if options.as_printed else RADII)
    options.limited_by = "--largest-cell"
    if options.largest_cell is None:
        options.largest_cell = rows_in_memory(options) if options.as_printed else 8000
        options.limited_by = "half of the memory available" if options.as_printed else "default"
    X, y = load(options.table, np.random.default_rng(0))
    VoronoiSVC().fit(X[:50], y[:50])  # loads and compiles, before anything is timed
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{'n':>7} {'method':<14} {'cells':>6} {'train':>9} {'test':>8} {'error':>7} +- deviation (repetitions)")
    results = run(X, y, sizes, repeats, options, options.out / "voronoi_svm.jsonl")
    draw(results, sizes, options.out)
    return results


def draw(results, sizes, out):
    import matplotlib.pyplot as plt

    from convexkernels.plotting.canvas import curve, legend, plain_ticks

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    drawn = [r for r in results if r["n"] in sizes]
    for k, name in enumerate(dict.fromkeys(r["method"] for r in drawn)):
        at = sorted({r["n"] for r in drawn if r["method"] == name})
        rows = [[r for r in results if (r["method"], r["n"]) == (name, n)] for n in at]
        seconds, errors = ([np.mean([r[key] for r in few]) for few in rows] for key in ("seconds", "error"))
        style = curve(k, marked=True) | {"linestyle": {"VP": "-", "RC": "--", "LS": ":"}[name[:2]]}
        axes[0].loglog(at, seconds, label=name, **style)
        axes[1].semilogx(at, 100 * np.array(errors), label=name, **style)
    axes[0].set(xlabel="training points", ylabel="training and selection, processor time / s")
    for ax in axes:
        plain_ticks(ax.xaxis, at=sizes)
        ax.tick_params(axis="x", rotation=45 if len(sizes) > FEW_TICKS else 0)
    plain_ticks(axes[0].yaxis)
    axes[1].set(xlabel="training points", ylabel="test error, %")
    legend(axes[1])
    figure.savefig(out / "voronoi_svm.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
