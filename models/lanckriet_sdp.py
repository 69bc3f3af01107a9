"""Problem (5), Lanckriet et al.: weights of any sign, K >= 0 on the training (and test) points, trace K fixed.

    minimize t   over mu, t, gamma, nu >= 0, delta >= 0
    subject to   [[G, v], [v', t - 2 C sum(delta)]] >= 0,   v = 1 + nu - delta + gamma y,   G = diag(y) K diag(y),
                 K = sum_k mu_k K_k >= 0,   trace K = c

With mu >= 0 the program has second-order cones instead of a matrix inequality, and is much cheaper.

    python -m models.lanckriet_sdp [--quick] [--out figures]
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.datasets import make_two_moons
from convexkernels.plotting import KernelMatricesDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 points instead of 40")
    parser.add_argument("--out", type=Path, default=Path("figures"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # a MOSEK without a license

    m = 20 if options.quick else 40
    X, y = make_two_moons(m, noise=0.2, random_state=0)
    T, t = make_two_moons(500, noise=0.2, random_state=1)
    kernels = [ck.Gaussian(0.3), ck.Gaussian(3.0), ck.Polynomial(2), ck.Polynomial(3)]
    trace = float(m)
    families = {
        "mu >= 0 (cones)": ck.Candidates([(trace / k(X).trace()) * k for k in kernels], normalize="none"),
        "mu free, K >= 0 on train": ck.Span(kernels, trace=trace),
        "mu free, K >= 0 on train and test": ck.Span(kernels, trace=2.0 * trace, test=T[:m]),
        "any K (Theorem 10)": ck.AllKernelMatrices(),
    }
    matrices = {}
    for name, family in families.items():
        problem = ck.KernelLearning(family, ck.Hinge(C=5.0), X, y)
        solution = problem.solve("conic", tol=1e-4)
        K = problem.gram_set.gram(solution.theta)
        matrices[name] = K
        line = f"{name:36s} {solution.certificate}  {solution.seconds:6.2f} s"
        if solution.theta.ndim == 1:
            accuracy = np.mean(np.sign(solution.decision_function(T)) == t)
            line += f"  mu = {np.round(solution.theta, 3)}  test accuracy {accuracy:.3f}"
        print(line)
    print("The larger the set, the smaller the objective; the last one knows no kernel outside its points.")
    display = KernelMatricesDisplay({name.split(" (")[0]: K for name, K in matrices.items()}, y).plot()
    display.figure_.savefig(options.out / "lanckriet.png", dpi=150)


if __name__ == "__main__":
    main()
