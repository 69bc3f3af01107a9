"""The tessellated kernel learning problem as a semidefinite program: (24) of Colbert and Peet (JMLR 2020).

    minimize    t
    subject to  [[ G(P),  v ],  [ v',  t - 2C sum(delta) ]] >= 0        v = 1 + nu - delta + gamma y
                P >= 0,  trace P <= tau,  nu >= 0,  delta >= 0          G(P)_ij = y_i y_j k_P(x_i, x_j)

    k_P(x, y) = integral over [a, b] of N(z, x)' P N(z, y) dz,   N(z, x) = [Z(z, x) 1{z >= x}; Z(z, x) (1 - 1{z >= x})]

over t, gamma, nu, delta and the (2q, 2q) matrix P, with Z the q monomials up to degree d. By duality
t / 2 is the least possible value of

    J(P) = max { sum(alpha) - 1/2 alpha' G(P) alpha : 0 <= alpha <= C, y'alpha = 0 },

which is how the fast solver sees it: a smooth function of P, whose gradient takes one SVM.

The script learns to tell the inside of a circle from the outside (Section 7 of the paper). It solves the problem

    1. by spectral projected gradient on J,
    2. by Frank-Wolfe on J,
    3. as the semidefinite program above, by a conic solver,
    4. as the same program with two constraints of the user's own, which CVXPY takes as they are written:
       P12 = 0 (no coupling between the two sides of z >= x),
    5. and with P diagonal (monomials do not mix).

and prints one row for each. Every certificate is measured by the problem. Those of 4 and 5 are about the constrained
problems: their optima cannot be below that of 1 to 3.

    python models/tessellated_sdp.py [--quick] [--points 60] [--degree 1] [--out figures]
"""

import argparse
from pathlib import Path

import cvxpy as cp
import numpy as np

import convexkernels as ck
from convexkernels.datasets import make_circle
from convexkernels.plotting import ParameterMatrixDisplay

COLUMNS = (
    f"{'solved by':<34} {'t / 2':>12} {'lower bound':>12} {'rel. gap':>9} {'rank P':>6} {'time / s':>9} {'test':>6}"
)


def rank(P):
    values = np.linalg.eigvalsh(P)
    return int((values > 1e-6 * values[-1]).sum())


def print_row(name, solution, T, t):
    certificate = solution.certificate
    accuracy = np.mean(np.sign(solution.decision_function(T)) == t)
    print(
        f"{name:<34} {certificate.upper:>12.7g} {certificate.lower:>12.7g} {certificate.relative_gap:>9.1e} "
        f"{rank(solution.theta):>6d} {solution.seconds:>9.3f} {accuracy:>6.3f}"
    )


def constrained(problem, make_constraints):
    """The program (24) with further constraints on P."""
    program = problem.to_cvxpy()
    program.constraints += make_constraints(program.variables["P"])
    return program


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 points")
    parser.add_argument("--points", type=int, default=60, help="number of training points m (%(default)s)")
    parser.add_argument("--degree", type=int, default=1, help="degree d of the monomials (%(default)s)")
    parser.add_argument("--C", type=float, default=10.0, help="weight of the losses (%(default)s)")
    parser.add_argument("--tol", type=float, default=1e-5, help="relative gap (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures (%(default)s)")
    options = parser.parse_args(argv)
    m = 20 if options.quick else options.points

    X, y = make_circle(m, random_state=0)
    T, t = make_circle(4000, random_state=1)
    box = ck.Box([-1.5, -1.5], [1.5, 1.5])
    family = ck.Tessellated(degree=options.degree, box=box, trace=1.0)
    problem = ck.KernelLearning(family, ck.Hinge(C=options.C), X, y)
    half = problem.gram_set.size // 2
    print(f"{problem!r}\nP is {2 * half} x {2 * half}\n\n{COLUMNS}")

    # The first solution of a process compiles (or loads) code; it is not what is timed.
    problem.solve(tol=0.1)
    solution = problem.solve("spectral-gradient", tol=options.tol)
    print_row("spectral gradient", solution, T, t)
    print_row("Frank-Wolfe (to 1e-3)", problem.solve("frank-wolfe", tol=1e-3), T, t)
    print_row("conic, (24) as it stands", problem.solve(problem.to_cvxpy(), tol=options.tol), T, t)

    block = constrained(problem, lambda P: [P[:half, half:] == 0])
    of_blocks = problem.solve(block, tol=options.tol)
    print_row("conic, (24) with P12 = 0", of_blocks, T, t)
    off_diagonal = 1.0 - np.eye(2 * half)
    diagonal = problem.solve(constrained(problem, lambda P: [cp.multiply(off_diagonal, P) == 0]), tol=options.tol)
    print_row("conic, (24) with P diagonal", diagonal, T, t)

    options.out.mkdir(parents=True, exist_ok=True)
    for name, found in {"free": solution, "blocks": of_blocks}.items():
        figure = ParameterMatrixDisplay.from_solution(found).plot().figure_
        figure.savefig(options.out / f"tessellated_sdp_{name}.png", dpi=110)


if __name__ == "__main__":
    main()
