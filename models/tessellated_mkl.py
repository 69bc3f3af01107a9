"""Problem (25): 300 random tessellated kernels as candidates of SimpleMKL, with and without the usual library.

    min over mu >= 0, sum mu = 1   max over alpha in A   sum(alpha) - 1/2 sum_s mu_s w' K(P^s) w,   w = y alpha

P^s = A A' / trace(A A') with standard normal A. All Gram matrices of one tessellation come from one matrix product.
[TK] optimizes over every P >= 0 of the same trace, so its objective is a lower bound of [SimpleMKL TK] without
normalization.

    python -m models.tessellated_mkl [--quick] [--out figures]
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.datasets import make_spiral
from convexkernels.plotting.canvas import CLASS_COLORS, legend, new_axes, plain_ticks


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 points, up to 40 kernels")
    parser.add_argument("--out", type=Path, default=Path("figures"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ck.ConvexKernelsWarning)

    m, counts = (40, (10, 40)) if options.quick else (200, (10, 30, 100, 300))
    X, y = make_spiral(m, noise=0.02, random_state=0)
    T, t = make_spiral(1000, noise=0.02, random_state=1)
    low, high = X.min(axis=0), X.max(axis=0)
    X, T = (X - low) / (high - low), np.clip((T - low) / (high - low), -0.5, 1.5)
    loss = ck.Hinge(C=1e3)
    ck.warm_up()  # what is timed below compiles nothing

    def report(name, family):
        start = time.perf_counter()
        solution = ck.KernelLearning(family, loss, X, y).solve(tol=1e-3, max_time=60.0)
        seconds = time.perf_counter() - start
        accuracy = np.mean(np.sign(solution.decision_function(T)) == t)
        print(f"{name:28s} {solution.certificate}  test accuracy {accuracy:.3f}  {seconds:6.2f} s")
        return solution.certificate

    reached = []
    for count in counts:
        kernels = ck.random_tessellated_kernels(2, count, degree=1, rng=0)
        reached.append(report(f"{count} random TK", ck.Candidates(kernels, normalize="none")))
    best = report("[TK] all P", ck.Tessellated(degree=1))
    normalized = ck.Candidates(kernels, normalize="mean")
    report("[SimpleMKL TK] mean 1", normalized)
    report("[SimpleMKL] library", ck.Candidates(ck.kernel_library(2), normalize="mean"))
    report("[SimpleMKL TK+] both", ck.Candidates([*kernels, *ck.kernel_library(2)], normalize="mean"))

    ax = new_axes(None, size=(7.2, 4.2))
    # Points are upper bounds; where a limit of time came first, a line leads down to the lower bound.
    upper, lower = (np.array([getattr(certificate, side) for certificate in reached]) for side in ("upper", "lower"))
    open_ = [upper - lower, np.zeros(len(upper))]
    ax.errorbar(counts, upper, open_, fmt="-o", color=CLASS_COLORS[0], capsize=4, label="random P (line: open gap)")
    ax.axhline(best.upper, color=CLASS_COLORS[1], label="all P (semidefinite)", linestyle="--")
    ax.set(xscale="log", yscale="log", xlabel="number of random matrices", ylabel="smallest objective J")
    plain_ticks(ax.xaxis, at=counts)
    plain_ticks(ax.yaxis)
    legend(ax)
    ax.figure.savefig(options.out / "tessellated_mkl.png", dpi=150)


if __name__ == "__main__":
    main()
