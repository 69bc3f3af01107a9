"""Time to a certified gap for tessellated kernels: ``python -m benchmarks.tessellated.speed --data DIR [CASE ...]``.

Cases: pima, moons, liver, clarabel, scaling, large, ionosphere, wide, singular, span, start. DIR holds pima.csv.gz,
liver.csv.gz, heart.csv.gz and ionosphere.csv.gz (header, features, then a column y). Figures are ratios of times
measured in one run, or times of this machine; code is compiled before anything is timed.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import minmax_scale

import convexkernels as ck


def table(folder, name):
    """First training part of the 80/20 shuffle splits, features scaled to [0, 1], labels -1 and +1."""
    with gzip.open(Path(folder) / f"{name}.csv.gz", "rt", encoding="ascii") as lines:
        rows = [line.rstrip("\n").split(",") for line in lines][1:]
    X = np.array([row[:-1] for row in rows], dtype=float)
    labels = np.array([row[-1] for row in rows])
    train, _ = next(ShuffleSplit(1, test_size=0.2, random_state=0).split(X))
    y = np.where(labels == np.unique(labels)[0], -1.0, 1.0)
    return minmax_scale(X[train]), y[train]


def moons(m):
    """Two moons and six features of noise, scaled to [0, 1]."""
    X, y = make_moons(m, noise=0.25, random_state=0)
    noise = np.random.default_rng(0).normal(size=(m, 6))
    return minmax_scale(np.hstack([X, noise])), 2.0 * y - 1.0


def solve(name, family, loss, X, y, tol, solver="auto", repeats=3, **settings):
    """Solve `repeats` times; print the median time from raw arrays to a certified solution."""
    times, solution = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
            solution = ck.KernelLearning(family, loss, X, y, **settings).solve(solver, tol=tol, max_time=300.0)
        times.append(time.perf_counter() - started)
    print(
        f"{name:34s} {np.median(times):9.3f} s  gap {solution.certificate.relative_gap:8.1e} (asked {tol:g})  "
        f"{solution.n_iter:4d} iterations  value {solution.value:.8g}  {solution.status.name}",
        flush=True,
    )
    return float(np.median(times)), solution


NO_Z = ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1), trace=18.0)
FULL = ck.Tessellated(degree=1, box=ck.UnitBox(0.5), trace=1.0)


def pima(folder):
    X, y = table(folder, "pima")
    solve("pima 614 x 8, no z, C=1", NO_Z, ck.Hinge(1.0), X, y, 1e-5)
    solve("  the same without intercept", NO_Z, ck.Hinge(1.0, intercept=False), X, y, 1e-5)


def moons_case(folder):
    X, y = moons(2000)
    solve("moons 2,000 x 8, no z, C=10", NO_Z, ck.Hinge(10.0), X, y, 1e-4)


def liver(folder):
    X, y = table(folder, "liver")
    for C in (0.01, 0.1, 1.0, 10.0):
        solve(f"liver 276 x 6, full, C={C:g}", FULL, ck.Hinge(C), X, y, 1e-4)


def clarabel(folder):
    X, y = table(folder, "liver")
    X, y = X[:80], y[:80]
    for intercept in (True, False):
        loss = ck.Hinge(1.0, intercept=intercept)
        fast, a = solve(f"80 rows, full, intercept={intercept}", FULL, loss, X, y, 1e-6)
        slow, b = solve("  CVXPY with Clarabel", FULL, loss, X, y, 1e-5, "conic", repeats=1)
        print(f"  ratio {slow / fast:.0f}, values differ by {abs(a.value - b.value) / a.value:.1e} (relative)")


def scaling(folder):
    sizes = (1000, 2000, 4000, 8000)
    times = [solve(f"moons {m:,} x 8", NO_Z, ck.Hinge(10.0), *moons(m), 1e-3, repeats=1)[0] for m in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"  cost grows like m^{exponent:.2f} from 1,000 to 8,000")


def large(folder):
    X, y = moons(10_000)
    solve("moons 10,000 x 8", NO_Z, ck.Hinge(10.0), X, y, 1e-3, repeats=1)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def ionosphere(folder):
    X, y = table(folder, "ionosphere")
    for margin in (0.1, 0.5, 1.0, 2.0):
        family = ck.Tessellated(degree=0, box=ck.UnitBox(margin))
        scale = np.prod(1 + margin - X.mean(axis=0))
        solve(f"ionosphere d=0, margin {margin:g}", family, ck.Hinge(10.0 / scale), X, y, 1e-4)


def wide(folder):
    rng = np.random.default_rng(0)
    X = rng.random((500, 60))
    y = np.where(X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=500) > 2.5, 1.0, -1.0)
    family = ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1))
    solve("500 x 60, no z", family, ck.Hinge(1e-5), X, y, 1e-4, repeats=1)


def singular(folder):
    """The best kernel is singular on the data: both methods, and the first one alone."""
    X, y = table(folder, "heart")
    for C in (1e-3, 1.0):
        for solver in ("interior-point", "auto"):
            solve(f"heart full, C={C:g}, {solver}", FULL, ck.Hinge(C), X, y, 1e-5, solver, repeats=1)
    rng = np.random.default_rng(0)
    X = rng.random((500, 60))
    y = np.where(X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=500) > 2.5, 1.0, -1.0)
    family = ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1))
    solve("500 x 60, C=0.001, interior-point", family, ck.Hinge(1e-3), X, y, 1e-6, "interior-point", repeats=1)


def span(folder):
    """Lanckriet's span of nearly dependent Gaussians."""
    for m, count in ((8, 12), (6, 30), (15, 10), (10, 40)):
        X = np.random.default_rng(0).random((m, 2))
        y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
        kernels = [ck.Gaussian(gamma=g) for g in np.geomspace(0.1, 30.0, count)]
        for loss in (ck.Hinge(1.0), ck.LeastSquares(0.1)):
            for trace in (1.0, float(m)):
                name = f"span of {count} on {m}, {type(loss).__name__}, trace {trace:g}"
                solve(name, ck.Span(kernels, trace=trace), loss, X, y, 1e-4, repeats=1)


def start(folder):
    def seconds(statement):
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        runs = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
                for _ in range(7)]  # fmt: skip
        return float(np.median(runs))

    ours, base = seconds("import convexkernels"), seconds("import sklearn.base")
    print(f"import convexkernels {ours:.3f} s, import sklearn.base {base:.3f} s, difference {ours - base:+.3f} s")


CASES = {
    "pima": pima, "moons": moons_case, "liver": liver, "clarabel": clarabel, "scaling": scaling, "large": large,
    "ionosphere": ionosphere, "wide": wide, "singular": singular, "span": span,
    "start": start,
}  # fmt: skip


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[[], *CASES], default=[])
    parser.add_argument("--data", default="data", help="folder of the tables")
    arguments = parser.parse_args(argv)
    ck.warm_up()
    X, y = moons(40)
    for family in (NO_Z, FULL):  # compile, or load what was compiled before
        for intercept in (True, False):
            ck.KernelLearning(family, ck.Hinge(1.0, intercept=intercept), X, y).solve(tol=1e-2)
    for name in arguments.cases or CASES:
        print(f"-- {name}")
        CASES[name](arguments.data)


if __name__ == "__main__":
    main()
