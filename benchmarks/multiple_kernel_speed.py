"""Time to a certified gap of multiple kernel learning: ``python benchmarks/multiple_kernel_speed.py [--data DIR]``.

Ionosphere (with --data): 175 rows, all of the library's kernels, C = 100, unit traces, the setting of SimpleMKL's
toolbox. Friedman 1 without noise: kernel ridge with 10 Gaussians on 1,000 rows, beside himalaya where it is installed
(pip install himalaya packaging). Liver (with --data): 300 random tessellated kernels. 2,000 rows and 50 kernels, with
and without a memory limit. Compiled code is loaded before anything is timed; times are the best of three.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.datasets import load_table, make_friedman1


def best(action, repeats=3):
    seconds, result = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - started)
    return min(seconds), result


def report(name, problem_of, tols, solvers=("auto",), repeats=3):
    grams, problem = best(problem_of, repeats)
    print(f"{name}: Gram matrices {grams:.2f} s")
    for solver in solvers:
        for tol in tols:
            seconds, solution = best(lambda s=solver, e=tol: problem.solve(s, tol=e, max_time=60.0), repeats)
            print(
                f"    {solver:18s} gap {tol:.0e}: {seconds:6.2f} s, {solution.n_iter} steps, {solution.certificate}, "
                f"{int((solution.theta > 1e-6).sum())} kernels",
                flush=True,
            )
    return problem, solution


def ionosphere(data):
    X, labels, _ = load_table(data / "ionosphere.csv.gz", "y")
    X = X[:, X.std(axis=0) > 0.0]
    rows = np.random.default_rng(0).permutation(len(X))[:175]
    X, y = X[rows], np.where(labels[rows] == "g", 1.0, -1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    family = ck.Candidates(ck.kernel_library(X.shape[1]), allow_duplicates=True)
    report(
        f"ionosphere, 175 rows, {len(family.candidates)} kernels, C = 100",
        lambda: ck.KernelLearning(family, ck.Hinge(100.0), X, y),
        (1e-2, 1e-4),
        ("auto", "reduced-gradient"),
    )


def liver(data):
    X, labels, _ = load_table(data / "liver.csv.gz", "y")
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    rows = np.random.default_rng(0).permutation(len(X))[:276]
    X, y = X[rows], np.where(labels[rows] == 1, 1.0, -1.0)
    family = ck.Candidates(ck.random_tessellated_kernels(6, 300), normalize="mean")
    report("liver, 276 rows, 300 random TK, C = 10", lambda: ck.KernelLearning(family, ck.Hinge(10.0), X, y), (1e-4,))


def friedman():
    X, y = make_friedman1(1000, noise=0.0, random_state=0)
    T, t = make_friedman1(1000, noise=0.0, random_state=1)
    y, mean = y - y.mean(), y.mean()
    family = ck.Candidates([ck.Gaussian(g) for g in np.geomspace(1e-3, 1.0, 10)], normalize="none")
    problem_of = lambda: ck.KernelLearning(family, ck.LeastSquares(1e-3), X, y)  # noqa: E731
    _, solution = report("Friedman 1, 1,000 rows, 10 Gaussians, ridge", problem_of, (1e-4,))

    def r2(values):
        return 1.0 - np.mean((values - t) ** 2) / t.var()

    print(f"    R2 on 1,000 new points {r2(solution.decision_function(T) + mean):.4f}")
    if find_spec("himalaya") is None:
        print("    himalaya is not installed: no comparison")
        return
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    for solver, parameters in (("random_search", {"n_iter": 20}), ("hyper_gradient", {"max_iter": 20})):
        kernels = [k for _, k, _ in family.candidates.entries]
        stack, rows = np.array([k(X) for k in kernels]), np.array([k(T, X) for k in kernels])
        model = MultipleKernelRidgeCV("precomputed", solver=solver, solver_params={**parameters, "progress_bar": False})
        seconds, _ = best(lambda m=model, s=stack: m.fit(s, y), repeats=1)
        values = np.asarray(model.predict(rows)).ravel() + mean
        print(f"    himalaya {solver:16s} {seconds:6.1f} s, R2 {r2(values):.4f} (no certificate)")


def large():
    X, y = make_friedman1(2000, noise=1.0, random_state=0)
    family = ck.Candidates([ck.OnColumns(ck.Gaussian(g), [j]) for g in (0.1, 0.5, 2, 8, 30) for j in range(10)])
    m, pairs = 2000, 2000 * 2001 // 2
    for name, limit in (("float64", None), ("float32", 32.0 * m * m + 250.0 * pairs)):
        problem_of = lambda e=limit: ck.KernelLearning(  # noqa: E731
            family, ck.LeastSquares(0.1 / m), X, y, memory_limit=e
        )
        problem, _ = report(f"2,000 rows, 50 kernels, stored in {name}", problem_of, (1e-3,), repeats=1)
        print(
            f"    stack {problem.gram_set.stack.values.nbytes / 2**20:.0f} MiB of {problem.gram_set.stack.values.dtype}"
        )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR")
    options = parser.parse_args(argv)
    ck.warm_up()
    warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
    X = np.random.default_rng(0).random((40, 2))
    for loss, y in ((ck.Hinge(1.0), np.where(X[:, 0] > 0.5, 1, -1)), (ck.LeastSquares(1.0), X[:, 1])):
        ck.KernelLearning(ck.Candidates([ck.Gaussian(1.0), ck.Polynomial(2)]), loss, X, y).solve()
    if options.data is not None:
        ionosphere(options.data)
        liver(options.data)
    friedman()
    large()


if __name__ == "__main__":
    main()
