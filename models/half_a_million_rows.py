"""Half a million rows with a kernel you learned.

    min over W, lam   mean over i of (y_i - f_W,lam^(-i)(x_i))^2           on some thousand rows, drawn anew each step
    min over f in H_j   sum over x_i near A_j (y_i - f(x_i))^2 + lam |f|^2         for every cell A_j, on all rows

f^(-i) is the function that has not seen row i, k a tree of Gaussians with weights W, H_j the space of that kernel
with its features times one number for all cells, and cells are the Voronoi cells of a farthest-first cover in the
distance ``-log k`` of the learned kernel. Beside it: the kernel on the rows it was learned from alone, and cells that
learn a Gaussian each. Classes, of covtype or of a generated table, are learned each against the rest; a fifth of the
rows is for testing. Seconds are those of the processor, of this process alone.

    python -m models.half_a_million_rows --table covtype.csv.gz          four fifths of 581,012 rows
    python -m models.half_a_million_rows --rows 100000 --jobs 2          so many rows of the generated table
    python -m models.half_a_million_rows --quick
"""

import argparse
import time
from pathlib import Path

import numpy as np

import convexkernels as ck


def generated(m):
    """Classes by where a function of two interactions and one effect lies; three of eight columns say nothing."""
    X = np.random.default_rng(0).uniform(-1, 1, (m, 8))
    f = np.sin(5.0 * X[:, 0] * X[:, 1]) + np.cos(4.0 * X[:, 2] + 2.0 * X[:, 3]) + np.abs(X[:, 4])
    return X, np.digitize(f, [0.2, 1.0])


def load(options):
    """Points and classes in a random order; of a table the classes are in its last column."""
    if options.table is None:
        return generated(4000 if options.quick else options.rows)
    values = np.loadtxt(options.table, delimiter=",", skiprows=1)
    values = values[np.random.default_rng(0).permutation(len(values))[: options.rows]]
    return values[:, :-1], values[:, -1].astype(int)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 rows, 1,000 of them for the kernel")
    parser.add_argument("--table", type=Path, default=None, help="a CSV file with the classes in its last column")
    parser.add_argument("--rows", type=int, default=581_012)
    parser.add_argument("--sample", type=int, default=9000, help="rows the kernel is learned on")
    parser.add_argument("--jobs", type=int, default=None, help="processes that share the cells")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for figures; none is drawn")
    options = parser.parse_args(argv)
    X, y = load(options)
    sample, size, steps = (1000, 1000, 60) if options.quick else (options.sample, 3000, 100)
    n = len(X) - len(X) // 5

    def fitted(name, model, rows):
        began = time.process_time()
        model.fit(X[:rows], y[:rows])
        wrong = np.mean(model.predict(X[n:]) != y[n:])
        print(
            f"{name:34s} {rows:8,d} rows  {100 * wrong:6.2f} % wrong  {time.process_time() - began:7.1f} s", flush=True
        )
        return model

    settings = {"search": ck.TreeSearch(max_iter=steps), "selection": ck.TreeSelection(combine="one")}
    some = ck.HierarchicalGaussianClassifier(**settings, max_time=None, random_state=0)
    kernel = fitted("kernel, learned on a sample", some, sample).kernel_
    cells = {"max_cell_size": size, "n_jobs": options.jobs, "max_time": None, "random_state": 0}
    fitted("a Gaussian in each cell", ck.VoronoiSVC(**cells), n)
    model = fitted("that kernel in the cells of all", ck.VoronoiSVC(kernel=kernel, **cells), n)
    print(f"{model.n_cells_} cells; {model.solution_.certificate} in the worst of them")


if __name__ == "__main__":
    main()
