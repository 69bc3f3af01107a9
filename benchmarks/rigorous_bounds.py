"""What bounds in exact arithmetic cost, and how much wider they are: ``benchmarks/rigorous_bounds.py --data DIR``.

The five tables of Colbert and Peet with the families and the C of the other benchmarks, then two moons of growing size.
DIR holds liver.csv.gz, cancer.csv.gz, heart.csv.gz, pima.csv.gz and ionosphere.csv.gz (header, features, a column y).
`added` is how much farther apart the two bounds are than those of verify(), `charged` what error bounds have to do with
it, `times` the processor time over that of verify().
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import minmax_scale

import convexkernels as ck
from convexkernels.datasets import load_table

NO_Z = ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1), trace=18.0)
WIDE_NO_Z = ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.5))
FULL = ck.Tessellated(degree=1, box=ck.UnitBox(0.5), trace=1.0)
TABLES = ("liver", "cancer", "heart", "pima", "ionosphere")


def table(folder, name):
    """First training part of the 80/20 shuffle splits, features scaled to [0, 1], labels -1 and +1."""
    X, labels, _ = load_table(Path(folder) / f"{name}.csv.gz", "y")
    X = X[:, X.std(axis=0) > 0.0]
    train, _ = next(ShuffleSplit(1, test_size=0.2, random_state=0).split(X))
    return minmax_scale(X[train]), np.where(labels == np.unique(labels)[0], -1.0, 1.0)[train]


def moons(m):
    X, y = make_moons(m, noise=0.25, random_state=0)
    noise = np.random.default_rng(0).normal(size=(m, 6))
    return minmax_scale(np.hstack([X, noise])), 2.0 * y - 1.0


def seconds(work, repeats):
    """Median processor time, after one call that compiles and warms up."""
    work()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return float(np.median(times))


def measure(name, family, loss, X, y, repeats=5):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = ck.KernelLearning(family, loss, X, y).solve(tol=1e-6, max_time=60.0)
    plain, proven = solution.verify(), solution.verify(rigorous=True)
    scale = max(abs(plain.upper), abs(plain.lower))
    added = (proven.gap - plain.gap) / scale
    first = seconds(solution.verify, repeats)
    second = seconds(lambda: solution.verify(rigorous=True), repeats)
    print(
        f"| {name} | {plain.relative_gap:.1e} | {proven.relative_gap:.1e} | {added:.1e} | {proven.charged / scale:.1e} "
        f"| {first:.4f} | {second:.4f} | {second / first:.1f} | {proven.note} |",
        flush=True,
    )
    return added, second / first


def of_table(folder, name):
    X, y = table(folder, name)
    spread = float(X.std(axis=0).mean())
    library = ck.kernel_library(X.shape[1], narrowest=0.5 * spread, widest=10.0 * spread)
    candidates = ck.Candidates(library, normalize="mean", allow_duplicates=True)
    if name == "ionosphere":
        for margin in (0.1, 0.5, 1.0, 2.0):
            C = 10.0 / np.prod(1 + margin - X.mean(axis=0))
            for intercept in (True, False):
                what = f"{name}, degree 0, margin {margin:g}, intercept={intercept}"
                measure(what, ck.Tessellated(0, box=ck.UnitBox(margin)), ck.Hinge(C, intercept=intercept), X, y)
    else:
        for intercept in (True, False):
            measure(f"{name}, no z, C=1, intercept={intercept}", NO_Z, ck.Hinge(1.0, intercept=intercept), X, y)
        for C in (0.01, 1.0, 100.0):
            measure(f"{name}, no z, margin 0.5, C={C:g}", WIDE_NO_Z, ck.Hinge(C), X, y)
        for C in (0.01, 0.1, 1.0, 10.0):
            measure(f"{name}, full, C={C:g}", FULL, ck.Hinge(C), X, y)
    for C in (1.0, 1000.0):
        measure(f"{name}, library of {len(library)}, C={C:g}", candidates, ck.Hinge(C), X, y)


def growing(sizes):
    gaussians = ck.Candidates([ck.Gaussian(g) for g in (0.3, 1.0, 3.0, 10.0)], "mean")
    matrices = ck.Candidates([ck.Gaussian(3.0), ck.Polynomial(2)], "mean")
    others = [ck.Matern(2), ck.Matern(3, 0.5) * ck.Gaussian(1.0), ck.TensorMatern(1)]
    for m in sizes:
        X, y = moons(m)
        measure(f"{m:,} rows, no z, C=10", NO_Z, ck.Hinge(10.0), X, y, 3)
        measure(f"{m:,} rows, four Gaussians, C=10", gaussians, ck.Hinge(10.0), X, y, 3)
        measure(f"{m:,} rows, Gaussian and polynomial, C=10", matrices, ck.Hinge(10.0), X, y, 3)
        measure(
            f"{m:,} rows, Matern, a product, tensor Matern, C=10",
            ck.Candidates(others, "mean"),
            ck.Hinge(10.0),
            X,
            y,
            3,
        )
        measure(f"{m:,} rows, the same, variance", ck.Candidates(others, "variance"), ck.Hinge(10.0), X, y, 3)
        measure(f"{m:,} rows, the same, centered", ck.Candidates(others, "mean", True), ck.Hinge(10.0), X, y, 3)
        measure(f"{m:,} rows, polynomials, C=1", ck.GeneralizedPolynomial(2), ck.Hinge(1.0), X, y, 3)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 2000, 4000])
    options = parser.parse_args(argv)
    print("| problem | gap | rigorous gap | added | charged | verify, s | rigorous, s | times | note |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.tables:
        of_table(options.data, name)
    growing(options.sizes)


if __name__ == "__main__":
    main()
