"""Figures 3 and 4 of Colbert and Peet (JMLR 2020): time to learn a kernel of two features against the number of points.

Figure 3 is the tessellated kernel learning problem for degrees 1, 2 and 3: the default solver, and the semidefinite
program (24) by a conic solver as far as it goes (--conic-points). Figure 4 is (25), combinations of L random
tessellated kernels: the default solver, and SimpleMKL's reduced gradient. The points are those of the paper, the circle
(inside or outside) and the spiral; every time is that of a solution certified to 1e-3, the fastest of three, in seconds
of processor. Exponents are printed in the number m of points, in the number q of monomials (the paper: m^2.6 and
q^1.9), and in L (m^2.1, L^1.6).

    python benchmarks/complexity_figures.py [--figures 3 4] [--points circle spiral] [--quick] [--out figures]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.bases.monomials import count_monomials
from convexkernels.datasets import make_circle, make_spiral

TOL = 1e-3
SHAPES = {"circle": make_circle, "spiral": make_spiral}
# L of Figure 4.
COUNTS = (100, 200, 300)


def points(shape, m):
    """The circle or the spiral in the unit square."""
    X, y = SHAPES[shape](m, random_state=0)
    return 0.5 * (X + 1.0), y


def seconds(problem_of, solver, repeats=3):
    """Shortest time from points to a certified solution; NaN where the certificate did not come."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        solution = problem_of().solve(solver, tol=TOL, max_time=120.0)
        times.append(time.process_time() - started)
        if solution.status is not ck.Status.OPTIMAL:
            return float("nan")
        if times[-1] > 10.0:
            break
    return min(times)


def curve(name, shape, sizes, problem_of, solver):
    """(sizes, times) of one line of a figure, and the exponent of its upper half."""
    times = []
    for m in sizes:
        X, y = points(shape, m)
        times.append(seconds(lambda X=X, y=y: problem_of(X, y), solver))
        if not times[-1] <= 30.0:
            break
    sizes, times = np.array(sizes[: len(times)]), np.array(times)
    half = slice(len(sizes) // 2, None)
    exponent = np.polyfit(np.log(sizes[half]), np.log(times[half]), 1)[0] if len(sizes) > 3 else float("nan")
    cells = "  ".join(f"{m:d}: {t:.3f} s" for m, t in zip(sizes, times, strict=True))
    print(f"{name:<42} {cells}  ~ m^{exponent:.2f}", flush=True)
    return name, sizes, times


def across(symbol, parameters, lines):
    """The exponent in a parameter, from the times of the largest size that all lines of it have."""
    m = max(set.intersection(*(set(sizes.tolist()) for _, sizes, _ in lines)))
    times = [times[sizes.tolist().index(m)] for _, sizes, times in lines]
    print(
        f"{m} points, {lines[0][0]} and the others: {symbol}^{np.polyfit(np.log(parameters), np.log(times), 1)[0]:.2f}"
    )


def figure_3(shape, options):
    lines = []
    for degree in (1, 2, 3):
        family = ck.Tessellated(degree=degree, box=ck.UnitBox(0.5))
        make = lambda X, y, f=family: ck.KernelLearning(f, ck.Hinge(10.0), X, y)  # noqa: E731
        lines.append(curve(f"degree {degree}", shape, options.sizes, make, "auto"))
        small = [m for m in (20, 30, 40, 60, 80) if m <= options.conic_points]
        lines.append(curve(f"degree {degree}, conic program", shape, small, make, "conic"))
    for method in range(2):
        across("q", [count_monomials(2, degree) for degree in (1, 2, 3)], lines[method::2])
    return lines


def figure_4(shape, options):
    lines = []
    for count in COUNTS:
        kernels = ck.random_tessellated_kernels(2, count, 1, box=ck.UnitBox(0.5), rng=0)
        family = ck.Candidates(kernels, normalize="mean", allow_duplicates=True)
        make = lambda X, y, f=family: ck.KernelLearning(f, ck.Hinge(10.0), X, y)  # noqa: E731
        sizes = [m for m in options.sizes if m <= options.mkl_points]
        lines.append(curve(f"L = {count}", shape, sizes, make, "auto"))
        lines.append(curve(f"L = {count}, reduced gradient (SimpleMKL)", shape, sizes, make, "reduced-gradient"))
    for method in range(2):
        across("L", COUNTS, lines[method::2])
    return lines


def draw(lines, title, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    for k, (name, sizes, times) in enumerate(lines):
        other = "," in name
        ax.loglog(sizes, times, "s--" if other else "o-", color=f"C{k // 2}", alpha=0.6 if other else 1.0, label=name)
    ax.set(xlabel="points", ylabel=f"seconds of processor to a certified gap of {TOL:g}", title=title)
    ax.grid(True, which="both", alpha=0.25)
    ax.legend(fontsize=8)
    fig.savefig(path, dpi=150)
    plt.close(fig)
    print(f"wrote {path}")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and small sizes")
    parser.add_argument("--figures", nargs="+", type=int, choices=(3, 4), default=(3, 4))
    parser.add_argument("--points", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--conic-points", type=int, default=60, help="largest conic program (%(default)s)")
    parser.add_argument("--mkl-points", type=int, default=800, help="most points of Figure 4 (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR")
    options = parser.parse_args(argv)
    ck.warm_up()
    options.sizes = [50, 100] if options.quick else [50, 100, 200, 400, 800, 1600]
    if options.quick:
        options.conic_points = 20
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
    ck.KernelLearning(ck.Tessellated(box=ck.UnitBox(0.5)), ck.Hinge(1.0), *points("circle", 30)).solve()
    known = {3: (figure_3, "Learning a tessellated kernel"), 4: (figure_4, "Combining random tessellated kernels")}
    for number in options.figures:
        measure, title = known[number]
        for shape in options.points:
            lines = measure(shape, options)
            draw(lines, f"{title}, {shape}", options.out / f"figure_{number}_{shape}.png")


if __name__ == "__main__":
    main()
