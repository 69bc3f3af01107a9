"""SimpleMKL, problem (6): the best convex combination of given kernels, by four methods.

    min over mu >= 0, sum mu = 1   max over 0 <= alpha <= C, y'alpha = 0   sum(alpha) - 1/2 sum_k mu_k w' K_k w

with w = y alpha.

The candidates are the paper's 13 (n + 1): Gaussians of bandwidth .5 to 10 and polynomials of degree 1 to 3, on all
features and on each alone, every matrix with trace 1. The reduced gradient is SimpleMKL as published; all methods
report the same certificate. The second figure shows which kernels are chosen as C grows.

    python -m models.simple_mkl [--quick] [--out figures]
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.datasets import make_two_moons
from convexkernels.plotting import CertificateDisplay, RegularizationPathDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 points instead of 200")
    parser.add_argument("--out", type=Path, default=Path("figures"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # slow tails, and a MOSEK without a license

    m = 40 if options.quick else 200
    X, y = make_two_moons(m, noise=0.2, n_noise_features=4, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    library = ck.kernel_library(X.shape[1])
    family = ck.Candidates(library, normalize="trace")
    problem = ck.KernelLearning(family, ck.Hinge(C=100.0), X, y)
    print(f"{len(library)} kernels, {m} points")
    solvers = ["reduced-gradient", "spectral-gradient", "frank-wolfe"] + (["conic"] if m <= 60 else [])
    for solver in solvers:
        solution = problem.solve(solver, tol=1e-4, max_iter=2000, max_time=5.0 if options.quick else 30.0)
        chosen = int((solution.theta > 1e-4).sum())
        line = f"{solver:18s} {solution.certificate}  {chosen:3d} kernels  {solution.n_iter:4d} steps"
        print(f"{line}  {solution.seconds:6.2f} s")
        if solver == "reduced-gradient":
            CertificateDisplay.from_solution(solution).plot().figure_.savefig(
                options.out / "simple_mkl_certificate.png"
            )
    prices = np.geomspace(1.0, 1e4, 4 if options.quick else 9)
    path = [ck.KernelLearning(family, ck.Hinge(C), X, y).solve(tol=1e-3, max_time=20.0).theta for C in prices]
    names = problem.gram_set.names
    RegularizationPathDisplay(prices, path, names).plot().figure_.savefig(options.out / "simple_mkl_path.png", dpi=150)


if __name__ == "__main__":
    main()
