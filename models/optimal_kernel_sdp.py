"""Problem (17): the best of all kernel matrices, as the semidefinite program and in closed form (Theorem 10).

    minimize t   over K, t, gamma, nu >= 0, delta >= 0
    subject to   [[G, v], [v', t - 2 C sum(delta)]] >= 0,   v = 1 + nu - delta + gamma y,   G = diag(y) K diag(y),
                 K >= 0,   trace K = m

The paper prints t - C sum(delta); its proof and its bound C >= 2/m belong to the 2. Below that bound the same matrix
stays optimal: the optimal dual variables are cut off at C, but keep their proportions.

    python -m models.optimal_kernel_sdp [--quick] [--out figures]
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.plotting import KernelMatricesDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12 points instead of 30")
    parser.add_argument("--out", type=Path, default=Path("figures"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    m = 12 if options.quick else 30
    y = np.where(np.random.default_rng(0).permutation(m) < m // 3, 1.0, -1.0)
    print(f"{m} labels, {int((y > 0).sum())} positive; 2/m = {2 / m:.4f}")
    print(f"{'C':>8} {'closed form':>12} {'SDP, certified':>40} {'one SVM':>14} {'|K - K*|/m':>11}")
    for C in (10.0, 2.0 / m, 1.0 / m, 0.2 / m):
        K, value = ck.optimal_kernel_matrix(y, C)
        problem = ck.KernelLearning(ck.AllKernelMatrices(m), ck.Hinge(C), None, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # a MOSEK without a license
            conic = problem.solve("conic", tol=1e-5)
        fast = problem.solve("envelope", tol=1e-8)
        bounds = f"[{conic.certificate.lower:.8f}, {conic.certificate.upper:.8f}]"
        print(f"{C:8.4f} {value:12.8f} {bounds:>40} {fast.value:14.8f} {np.abs(fast.theta - K).max() / m:11.1e}")
    display = KernelMatricesDisplay({"closed form": K, "solution of (17)": conic.theta}, y).plot()
    display.figure_.savefig(options.out / "optimal_kernel.png", dpi=150)
    print(f"negative entries of K*: {(K < 0).mean():.0%}; no Gaussian kernel has any")


if __name__ == "__main__":
    main()
