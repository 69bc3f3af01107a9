"""Time of hierarchical Gaussian kernels: ``python -m benchmarks.hierarchical.speed --data DIR [--only gradient ...]``.

    gradient   all derivatives of a sum over the kernel matrix, over one evaluation of the matrix
    move       one annealing move, over one evaluation with all nodes, times the number of nodes
    run        7,000 rows of bank, depth 2, 8 nodes: search, selection of lam, and the final machine; peak memory
    searches   test error against search time for both searches, on updrs and magic
    device     a matrix, its gradient, products and kernel ridge on all rows: numpy and ``--device cuda``, wall times

Processor times otherwise; ratios are medians of interleaved repetitions, because machines are shared.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.hierarchical.accuracy import PAPER, load
from convexkernels import (
    ConvexKernelsWarning,
    FixedKernel,
    HierarchicalGaussian,
    HierarchicalGaussianRegressor,
    LeastSquares,
    TreeSearch,
    warm_up,
)
from convexkernels.families.curved.trees import make_tree
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.operator import GramOperator
from convexkernels.solvers.nonconvex.annealing import FixedFunction

NODES = (4, 8, 16)


def timed(work, *arguments, **options):
    began = time.process_time()
    work(*arguments, **options)
    return time.process_time() - began


def problem(nodes, m, n, rng):
    tree = make_tree(nodes, n)
    return tree, rng.uniform(0.3, 1.0, tree.n_weights), rng.uniform(-1, 1, (m, n))


def gradient(options):
    print("\nall weight derivatives over one evaluation of the matrix, 16 features, one thread")
    m, repeats = (400, 3) if options.quick else (2000, 11)
    rng = np.random.default_rng(0)
    for nodes in NODES:
        for dtype in (np.float64, np.float32):
            tree, w, X = problem(nodes, m, 16, rng)
            M = rng.standard_normal((m, m)).astype(dtype)
            pairs = []
            for _ in range(repeats):
                evaluate = timed(TreeEvaluation(tree, w**2, X, dtype=dtype).gram, lower=True)
                slopes = timed(TreeEvaluation(tree, w**2, X, dtype=dtype).gradient, M, lower=True)
                pairs.append((evaluate, slopes))
            matrix, slopes = np.median(pairs, axis=0)
            ratio = np.median([b / a for a, b in pairs])
            print(
                f"  {nodes:>2} nodes, m = {m}, {np.dtype(dtype).name}: matrix {1e3 * matrix:6.1f} ms, gradient "
                f"{1e3 * slopes:6.1f} ms, {ratio:.2f} times"
            )


def move(options):
    print(
        "\none annealing move (a first-layer weight, then a top weight) over a full evaluation, 16 features, one thread"
    )
    m, k, repeats = (400, 200, 5) if options.quick else (3111, 1555, 15)
    rng = np.random.default_rng(0)
    for nodes in NODES:
        for dtype in (np.float64, np.float32):
            tree, w, X = problem(nodes, m, 16, rng)
            Z = rng.uniform(-1, 1, (k, 16))
            function = FixedFunction(tree, w, Z, X, rng.standard_normal((m, 1)), dtype)
            times = []
            for _ in range(repeats):
                full = timed(function.reset, function.weights)
                lower = timed(function.propose, 3, function.weights[3] * 1.1)
                upper = timed(function.propose, tree.n_weights - 1, function.weights[-1] * 1.1)
                times.append((full, lower, upper))
            full, lower, upper = np.median(times, axis=0)
            ratios = np.median([(b / a * nodes, c / a * nodes) for a, b, c in times], axis=0)
            print(
                f"  {nodes:>2} nodes, {k} x {m}, {np.dtype(dtype).name}: full {1e3 * full:6.1f} ms, moves "
                f"{1e3 * lower:5.1f} and {1e3 * upper:5.1f} ms: {ratios[0]:.2f} and {ratios[1]:.2f} / nodes of it"
            )


def split(name, options, seed=0):
    X, y = load(options.data, name)
    n_train, n_test, _ = PAPER[name]
    if options.quick:
        n_train, n_test = 300, 300
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[:n_train]], y[order[:n_train]], X[order[n_train:][:n_test]], y[order[n_train:][:n_test]]


def run(options):
    X, y, T, t = split("bank", options)
    began, cpu = time.perf_counter(), time.process_time()
    model = HierarchicalGaussianRegressor(8, random_state=0).fit(X, y)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    searched = model.solution_.seconds
    error = np.mean((model.predict(T) - t) ** 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\nbank, {len(X)} rows, 8 nodes: {wall:.1f} s wall ({searched:.1f} s of them search), {cpu:.1f} s processor, "
        f"peak memory {peak:.2f} GiB, test error {error:.5f}"
    )


def searches(options):
    print("\ntest error against the time limit of the search (8 nodes, one thread)")
    limits = (0.5, 1.0) if options.quick else (5.0, 20.0, 60.0)
    with threadpool_limits(1):
        for name in ("updrs", "magic"):
            X, y, T, t = split(name, options)
            for search in ("stochastic", "annealing"):
                cells = []
                for limit in limits:
                    settings = TreeSearch(search, max_iter=10**6)
                    model = HierarchicalGaussianRegressor(8, search=settings, max_time=limit, random_state=0).fit(X, y)
                    error = np.mean((model.predict(T) - t) ** 2)
                    cells.append(f"{limit:g} s ({model.solution_.seconds:.0f} used) {error:.5f}")
                print(f"  {name:<6} {search:<14} " + ", ".join(cells), flush=True)


def device(options):
    """Each piece of work once before it is timed: a device begins with seconds of its own."""
    rng = np.random.default_rng(0)
    sizes = (1500, 3000) if options.quick else (1500, 10_000, 40_000)
    print(f"\n8 nodes, 16 features, float32: numpy, then {options.device}")
    for m in sizes:
        tree, w, X = problem(8, m, 16, rng)
        kernel, y = HierarchicalGaussian.from_tree(tree, w), np.sin(3.0 * X[:, 0]) + X[:, 1]
        M, V = (rng.standard_normal((m, m)).astype(np.float32) if m <= 10_000 else None), rng.standard_normal((4, m))
        for name in (None, options.device):
            told = []
            if M is not None:
                evaluation = TreeEvaluation(tree, w**2, X, dtype=np.float32, device=name)
                told += [f"matrix {waited(evaluation.gram, lower=True):.4f} s"]
                told += [f"gradient {waited(evaluation.gradient, M, lower=True):.4f} s"]
            products = GramOperator(kernel, X, np.float32, 4.0 * m**2, name)
            told += [f"product with 4 vectors, tiles kept {waited(products.product, V):.4f} s"]
            ridge = FixedKernel(kernel, LeastSquares(0.01), X, y, device=name)
            began = time.perf_counter()
            found = ridge.solve(random_state=0)
            told += [f"ridge {time.perf_counter() - began:.2f} s, gap {found.certificate.relative_gap:.0e}"]
            print(f"  m = {m}, {name or 'numpy'}: {', '.join(told)}", flush=True)


def waited(work, *arguments, **options):
    """Least wall time of three, after one that is not counted."""
    times = []
    for _ in range(4):
        began = time.perf_counter()
        work(*arguments, **options)
        times.append(time.perf_counter() - began)
    return min(times[1:])


PARTS = {"gradient": gradient, "move": move, "run": run, "searches": searches, "device": device}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, metavar="DIR", help="needed by run and searches")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--device", default=None, metavar="NAME", help="a device of PyTorch, needed by device")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args(argv)
    warm_up()
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    for part in options.only:
        if part in ("run", "searches") and options.data is None:
            print(f"\n{part}: left out, it needs --data")
            continue
        if part == "device" and options.device is None:
            print("\ndevice: left out, it needs --device")
            continue
        if part in ("gradient", "move"):
            with threadpool_limits(1):
                PARTS[part](options)
        else:
            PARTS[part](options)


if __name__ == "__main__":
    main()
