"""What a certificate says, and what it does not.

A solution comes with two numbers, an upper and a lower bound of the best value of the problem. Both are computed by
the problem from points that satisfy its constraints, so that nobody has to be believed: not the solver, and not its
stopping rule. This script looks at them from five sides.

    python examples/03_prove_it.py [--quick] [--out figures]
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.datasets import make_two_moons
from convexkernels.plotting import CertificateDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    X, y = make_two_moons(100 if options.quick else 400, noise=0.25, n_noise_features=2, random_state=0)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    problem = ck.KernelLearning(ck.Tessellated(degree=1, box=ck.UnitBox(0.5)), ck.Hinge(C=1.0), X, y)

    print("1. Two numbers. The best value of the problem lies between them:")
    solution = problem.solve(tol=1e-6)
    print(f"   {solution.certificate}\n")

    print("2. Nobody has to be believed. The bounds, computed again from the stored point:")
    print(f"   {solution.verify()}\n")

    print("3. Any point can be measured. Here are P = I / size and a random P, with the best alpha of each:")
    size = len(solution.theta)
    factor = np.random.default_rng(0).normal(size=(size, size))
    for name, P in {"P = I / size": np.eye(size) / size, "random P": factor @ factor.T / np.sum(factor**2)}.items():
        alpha = problem.evaluate(P).alpha
        print(f"   {name:<13} {problem.certificate(P, alpha)}")
    print("   Their upper bounds are not below the optimum, their lower bounds not above it.\n")

    print("4. An early stop is no loss of truth: the interval is wider, and still holds the optimum:")
    for steps in (0, 1, 2, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # it would say what the next line says
            early = problem.solve(max_iter=steps, tol=1e-6)
        holds = early.certificate.lower <= solution.certificate.upper <= early.certificate.upper * (1 + 1e-12)
        print(f"   {steps} steps: {early.certificate}, {early.status.name}; holds the optimum: {holds}")
    print()

    print("5. Solvers that share nothing but the problem agree, up to what their certificates leave open:")
    for solver in ("spectral-gradient", "frank-wolfe"):
        other = problem.solve(solver, tol=1e-3)
        print(f"   {solver:<18} {other.certificate}, {other.seconds:.2f} s")
    print("\nWhat it does not say: that the learned function is right about new points. That is for a test set.")

    figure = CertificateDisplay.from_solution(solution, tol=1e-6).plot().figure_
    figure.savefig(options.out / "certificate.png", dpi=110)


if __name__ == "__main__":
    main()
