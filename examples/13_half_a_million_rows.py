"""Half a million rows on a laptop: one SVM per Voronoi cell.

An SVM on m rows takes a time that grows like m^2 or m^3. Divided into cells of bounded size, it takes a time
that grows like m, and every cell selects a width that fits its own neighborhood: here the function oscillates faster
and faster to the right.

    python examples/13_half_a_million_rows.py [--quick] [--rows 500000] [--out figures]
"""

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from convexkernels import CellSelection, VoronoiRidge
from convexkernels.plotting import CoverDisplay
from convexkernels.plotting.canvas import SEQUENTIAL, plain_ticks


def chirp(X):
    return np.sin(10.0 * np.exp(1.2 * X[:, 0])) * np.cos(3.0 * X[:, 1])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3,000 rows")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--jobs", type=int, default=None, help="processes that share the cells")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    m = 3000 if options.quick else options.rows
    rng = np.random.default_rng(0)
    X, T = rng.uniform(-1, 1, (m, 2)), rng.uniform(-1, 1, (min(m, 100_000), 2))
    y, truth = chirp(X) + 0.3 * rng.standard_normal(m), chirp(T)

    # One width for both columns, so that those of the cells can be compared on a map of the square.
    model = VoronoiRidge(
        max_cell_size=300 if options.quick else 1000,
        selection=CellSelection(widths="isotropic"),
        random_state=0,
        n_jobs=options.jobs,
        verbose=not options.quick,
    )
    began = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    error = float(np.sqrt(np.mean((model.predict(T) - truth) ** 2)))
    seconds = time.perf_counter() - fitted
    print(f"{m:,} rows in {model.n_cells_} cells: learned in {fitted - began:.1f} s")
    print(f"{len(T):,} rows predicted in {seconds:.1f} s")
    print(f"root mean square distance to the function: {error:.3f} (the noise in y has 0.3)")
    centers = model.cover_.centers[:, 0]
    widths = np.array([cell.width for cell in model.function_.functions])
    right, left = (np.median(widths[side]) for side in (centers > 0.5, centers < -0.5))
    print(f"median width of the kernels: {left:.2f} on the left, where the function is slow; {right:.2f} on the right")

    options.out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    shown = rng.choice(m, min(m, 3000), replace=False)
    CoverDisplay.from_cover(model.cover_, model.scaling_.apply(X[shown])).plot(axes[0], balls=False)
    axes[0].set_title(f"{model.n_cells_} cells (scaled features): rows gray, centers black")
    points = axes[1].scatter(*model.cover_.centers.T, c=widths, cmap=SEQUENTIAL, norm="log", s=90, edgecolor="black")
    plain_ticks(figure.colorbar(points, ax=axes[1], label="selected width, in scaled features").ax.yaxis)
    axes[1].set(title="width of the kernel in each cell", xlabel="x1", ylabel="x2", aspect="equal")
    figure.savefig(options.out / "half_a_million_rows.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
