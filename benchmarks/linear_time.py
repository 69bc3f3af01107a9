"""Tessellated and multiple kernels on many rows: seconds, memory, gap, what landmarks do not see, and accuracy.

    python -m benchmarks.linear_time covtype.csv.gz tessellated [--rows 500000] [--landmarks 200]
    python -m benchmarks.linear_time covtype.csv.gz multiple [--rows 100000] [--landmarks 40]
    python -m benchmarks.linear_time covtype.csv.gz landmarks   how many landmarks it takes, for 2 to 10 columns

The ten numeric columns of covtype, class 2 against the others. The first two print what was certified and the share of
20,000 other rows that is right; `landmarks` compares with the exact family on 2,000 rows, for the same C. Test rows
choose nothing.
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd

import convexkernels as ck
from convexkernels.estimators.convex.tessellated import TessellatedSVC

N_TEST = 20_000


def load(path):
    """The numeric columns in [0, 1], and labels; rows in a random order."""
    values = pd.read_csv(path).to_numpy(dtype=np.float64)
    values = values[np.random.default_rng(0).permutation(len(values))]
    X = values[:, :10]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), np.where(values[:, -1] == 2, 1.0, -1.0)


def candidates(n):
    """Fifty kernels: five for all columns, the others for one column each."""
    single = [(f"x{j}, {gamma:g}", ck.Gaussian(gamma), [j]) for gamma in (3.0, 30.0, 300.0, 3000.0) for j in range(n)]
    together = [ck.Gaussian(gamma) for gamma in (0.3, 1.0, 3.0, 10.0, 30.0)]
    return [*together, *single, *(ck.Matern(order=1, length=length) for length in (0.1, 0.3, 1.0, 3.0)), ck.Linear()]


def report(what, model, began, X, y):
    """One line about a solution."""
    solution = getattr(model, "solution_", model)
    seconds, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    right = np.mean(np.sign(model.decision_function(X)) == y)
    gap = solution.certificate.relative_gap
    print(
        f"{what}: gap {gap:.1e}, {solution.status.name}, {solution.seconds:.0f} s of wall time, {seconds:.0f} s of "
        f"processor, {peak:.2f} GiB, {100.0 * right:.2f} % right on other rows{unseen(solution)}",
        flush=True,
    )


def unseen(solution):
    """How much of the learned kernel landmarks do not see, and how long it takes to say so."""
    if solution.problem.family.landmarks is None:
        return ""
    began = time.process_time()
    share, largest = solution.landmark_error()
    took = time.process_time() - began
    return f", landmarks miss {100.0 * share:.2f} % of the kernel, {100.0 * largest:.2f} % at one row ({took:.1f} s)"


def tessellated(X, y, test, args):
    """The sampled family at C = 1 on a scale of its own."""
    began = time.process_time()
    model = TessellatedSVC(C=1.0, landmarks=args.landmarks or 200, tol=1e-2, max_time=args.max_time, verbose=True).fit(
        X, y
    )
    report(f"{len(X)} rows, {args.landmarks or 200} landmarks", model, began, *test)


def multiple(X, y, test, args):
    """Fifty kernels on landmarks."""
    began = time.process_time()
    count = args.landmarks or 40
    family = ck.Candidates(candidates(X.shape[1]), "variance", allow_duplicates=True, landmarks=count)
    problem = ck.KernelLearning(family, ck.Hinge(1.0), X, y)
    solution = problem.solve(tol=1e-3, max_time=args.max_time, progress=True)
    report(f"{len(X)} rows, {len(family.candidates)} kernels on {count} landmarks", solution, began, *test)


def landmarks(X, y, test, args):
    """The exact family against more and more landmarks."""
    X, y = X[:2000], y[:2000]
    for n in (2, 4, 6, 8, 10):
        for count in (None, 50, 100, 200, 400, 800):
            began = time.process_time()
            model = TessellatedSVC(C=1.0, landmarks=count, tol=1e-3, max_time=args.max_time).fit(X[:, :n], y)
            report(f"{n} columns, {count or 'all'}", model, began, test[0][:, :n], test[1])


def main():
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("what", choices=("tessellated", "multiple", "landmarks"))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--landmarks", type=int, help="200 for tessellated kernels, 40 for several")
    parser.add_argument("--max-time", type=float, default=900.0)
    args = parser.parse_args()
    ck.warm_up()
    X, y = load(args.table)
    rows = args.rows or {"tessellated": 500_000, "multiple": 100_000, "landmarks": 2000}[args.what]
    work = {"tessellated": tessellated, "multiple": multiple, "landmarks": landmarks}[args.what]
    work(X[:rows], y[:rows], (X[-N_TEST:], y[-N_TEST:]), args)


if __name__ == "__main__":
    main()
