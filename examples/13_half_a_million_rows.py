"""Half a million rows with a kernel you learned.

One kernel matrix of half a million rows would take two terabytes. But a kernel is learned from some thousand rows:
which columns matter, and how they work together. What it lacks then is rows. It gets them in cells, neighborhoods in
the geometry of the learned kernel, each with a small matrix of its own: the time grows like the number of rows.

    python examples/13_half_a_million_rows.py [--quick] [--rows 500000] [--jobs 2] [--out figures]
"""

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import convexkernels as ck
from convexkernels.plotting import FeatureRelevanceDisplay
from convexkernels.plotting.canvas import color, legend, plain_ticks

NOISE = 0.3


def truth(X):
    """Two interactions and one effect; the last three columns say nothing."""
    return np.sin(5.0 * X[:, 0] * X[:, 1]) + np.cos(4.0 * X[:, 2] + 2.0 * X[:, 3]) + np.abs(X[:, 4])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 rows")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--jobs", type=int, default=None, help="processes that share the cells")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    m, sample, size, steps = (4000, 500, 500, 20) if options.quick else (options.rows, 5000, 2000, 100)

    rng = np.random.default_rng(0)
    X, T = rng.uniform(-1, 1, (m, 8)), rng.uniform(-1, 1, (10_000, 8))
    y = truth(X) + NOISE * rng.standard_normal(m)
    errors = {}

    def fitted(name, model, rows):
        """Learn from the first rows, and say how far the function is from the truth at new points."""
        began = time.perf_counter()
        model.fit(X[:rows], y[:rows])
        seconds = time.perf_counter() - began
        errors[name, rows] = float(np.sqrt(np.mean((model.predict(T) - truth(T)) ** 2)))
        print(f"{name:32s} {rows:8,d} rows  error {errors[name, rows]:.3f}  {seconds:6.1f} s")
        return model

    # A kernel, learned on a sample: a tree of Gaussians with a weight for every column.
    print(f"error: root mean square distance to the function; the noise in y has {NOISE}")
    search = ck.TreeSearch(max_iter=steps)
    small = fitted("learned kernel", ck.HierarchicalGaussianRegressor(4, search=search, random_state=0), sample)

    # The same kernel on more rows: cells are those of its geometry. Beside it cells that learn a Gaussian each.
    cells = {"max_cell_size": size, "random_state": 0, "n_jobs": options.jobs}
    for rows in (int(np.sqrt(sample * m)), m):
        model = fitted("learned kernel", ck.VoronoiRidge(kernel=small.kernel_, **cells), rows)
        fitted("a Gaussian in each cell", ck.VoronoiRidge(**cells), rows)
    print(f"{model.n_cells_} cells; {model.solution_.certificate} in the worst of them")

    # One call does all of it: the search, then one matrix, products with it, or cells, as rows and memory allow.
    training = ck.AllRows(method="cells" if options.quick else "auto", max_cell_size=size, n_jobs=options.jobs)
    whole = ck.HierarchicalGaussianRegressor(
        4, search=search, selection=ck.TreeSelection(training=training), random_state=0
    )
    fitted("one call, kernel from all rows", whole, m)
    print(whole.plan_)

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    for k, name in enumerate(dict.fromkeys(name for name, _ in errors)):
        rows = [n for other, n in errors if other == name]
        left.loglog(rows, [errors[name, n] for n in rows], ("-o", "--s", "^")[k], color=color(k), label=name)
    left.set(xlabel="rows", ylabel="distance to the function", title="what rows are worth")
    plain_ticks(left.xaxis, at=sorted({rows for _, rows in errors}))
    plain_ticks(left.yaxis)
    legend(left, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    FeatureRelevanceDisplay.from_estimator(whole, [f"x{j + 1}" for j in range(8)]).plot(right)
    right.set_title("what the learned kernel listens to")
    figure.savefig(options.out / "half_a_million_rows.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
