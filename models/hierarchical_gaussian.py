"""Hierarchical Gaussian kernels: Algorithm 1 of Steinwart, Thomann and Schmid, and its exact-gradient counterpart.

    f_W = argmin over f in H_W of  sum_{i in D1} (y_i - f(x_i))^2 + lam |f|^2                              (8), (9)
    min over W of  R(W) = mean_{j in D2} L(y_j, f_W(x_j))                                                  (10)

with the kernel of H_W a tree of Gaussians,

    k_v(x, x') = exp(-sum_j v_j^2 (x_j - x'_j)^2)                       on the first layer                 (4)
    k(x, x')   = exp(-2 gamma^-2 sum_i w_i^2 (1 - k_i(x, x')))           above                             (7)

Algorithm 1 moves W by simulated annealing and gradient descent with the coefficients of f_W held fixed, trains
again, and keeps the weights that are best on a third part of the rows. The gradient search differentiates through
the training instead, with every row held out in turn. After either, one function is trained on all rows.

    python -m models.hierarchical_gaussian                      Friedman 1, 600 rows, M = 4 rounds of Algorithm 1
    python -m models.hierarchical_gaussian --data DIR           a table of the paper: updrs, 2,000 rows
    python -m models.hierarchical_gaussian --quick
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from convexkernels import ConvexKernelsWarning, LeastSquares, LeaveOneOut, OuterLearning, Schedule, Solution, Trees
from convexkernels.datasets import load_table, make_friedman1
from convexkernels.solvers.nonconvex.algorithm1 import Annealing
from convexkernels.solvers.nonconvex.stochastic import Stochastic

# Table 1: least squares errors on updrs of SVM, hierarchical kernels, random forest, deep network.
PAPER_UPDRS = {"SVM": 0.05372, "Ours": 0.00588, "RF": 0.03047, "DNN": 0.05306}


def symmetric(A: np.ndarray) -> np.ndarray:
    """Columns on [-1, 1]."""
    low, high = A.min(axis=0), A.max(axis=0)
    return 2.0 * (A - low) / np.where(high > low, high - low, 1.0) - 1.0


def table(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    if options.data is None:
        X, y = make_friedman1(options.rows + 1000, noise=0.5, random_state=0)
    else:
        X, y, _ = load_table(options.data / "updrs.csv.gz", "y")
    order = np.random.default_rng(0).permutation(len(X))
    return symmetric(X)[order], symmetric(np.asarray(y, dtype=float)[:, None])[order, 0]


def searches(options: argparse.Namespace) -> dict[str, Annealing | Stochastic]:
    schedule = Schedule(
        rounds=options.rounds, first_annealing=options.annealing, later_annealing=options.annealing // 2
    )
    if options.quick:
        schedule = Schedule(2, 3, 40, 20, 5, 4, 3)
    return {
        "published": Annealing(schedule=schedule),
        "gradients": Stochastic(max_iter=20 if options.quick else 100),
    }


def save_figures(folder: Path, solutions: dict[str, Solution]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from convexkernels.plotting import KernelTreeDisplay, RiskHistoryDisplay

    folder.mkdir(parents=True, exist_ok=True)
    for name, solution in solutions.items():
        names = [f"x{j}" for j in range(solution.problem.X.shape[1])]
        KernelTreeDisplay(solution.kernel, names).plot().figure_.savefig(folder / f"{name}_tree.png", dpi=110)
        RiskHistoryDisplay.from_solution(solution).plot().figure_.savefig(folder / f"{name}_risks.png", dpi=110)


def main(argv: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, metavar="DIR", help="folder with updrs.csv.gz")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    parser.add_argument("--quick", action="store_true", help="150 rows, a short schedule")
    parser.add_argument("--rows", type=int, default=None, help="rows to learn from")
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=4, help="M of Algorithm 1; 15 in the paper")
    parser.add_argument("--annealing", type=int, default=1000, help="N1 of Algorithm 1; N2 is half of it")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    default = 600 if options.data is None else 2000
    options.rows = options.rows or (150 if options.quick else default)

    X, y = table(options)
    train, test = slice(0, options.rows), slice(options.rows, options.rows + 1000)
    mean = [y[train].mean()]
    loss, limits = LeastSquares(0.1, intercept=False), (-1.0, 1.0)
    problem = OuterLearning(Trees(options.nodes), loss, LeaveOneOut(), X[train], y[train], offset=mean, bounds=limits)
    print(problem)
    start = problem.start(random_state=0)
    errors = {"start": float(np.mean((problem.function(start).decision_function(X[test]) - y[test]) ** 2))}
    print(f"{'weights':<14} {'test error':>10} {'seconds':>8}  status")
    print(f"{'start':<14} {errors['start']:10.5f}")
    solutions = {}
    for name, solver in searches(options).items():
        began = time.perf_counter()
        solution = problem.solve(solver, start=start, random_state=0)
        seconds = time.perf_counter() - began
        errors[name] = float(np.mean((solution.decision_function(X[test]) - y[test]) ** 2))
        print(f"{name:<14} {errors[name]:10.5f} {seconds:8.1f}  {solution.status.name}", flush=True)
        solutions[name] = solution
    if options.data is not None:
        print("paper, updrs with 5,000 rows: " + ", ".join(f"{k} {v:.5f}" for k, v in PAPER_UPDRS.items()))
    for name, solution in solutions.items():
        print(f"certificate, {name}: {solution.verify()}")
    save_figures(options.out, solutions)
    return errors


if __name__ == "__main__":
    main()
