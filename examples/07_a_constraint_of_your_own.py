"""A constraint of your own: measurements have prices, and the kernel has to stay within a budget.

`to_cvxpy` states the learning problem as the papers print it, with the weights of the kernels as a variable. Whatever
CVXPY understands can be added. What the solver returns is measured by the problem itself, so that the price of the
constraint is known up to the gap: upper and lower bounds, not a solver's word.

    python examples/07_a_constraint_of_your_own.py [--quick] [--out figures]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import convexkernels as ck
from convexkernels.plotting.canvas import color, legend, new_axes

# What measuring costs, by the kind of measurement: means are cheap, the worst cells have to be found first.
PRICES = {"mean": 1.0, "error": 2.0, "worst": 4.0}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows and budgets")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    # Cells under a microscope: ten properties, of each the mean, its error and the worst value.
    data = load_breast_cancer()
    m = 60 if options.quick else 120
    X, T, y, t = train_test_split(data.data, 2 * data.target - 1, train_size=m, stratify=data.target, random_state=0)
    scale = StandardScaler().fit(X)
    X, T = scale.transform(X), scale.transform(T)
    kinds = [next(kind for kind in PRICES if kind in name.split()) for name in data.feature_names]
    prices = np.array([PRICES[kind] for kind in kinds])

    # A kernel for each column; the weights are what is learned.
    family = ck.Candidates([(str(name), ck.Gaussian(0.5), [j]) for j, name in enumerate(data.feature_names)])
    problem = ck.KernelLearning(family, ck.Hinge(C=100.0), X, y)
    free = problem.solve(tol=1e-4)
    bill = float(prices @ free.theta)
    print(f"without a budget: price {bill:.2f}; {free.certificate}")

    # The same problem in CVXPY, with one line more: the weights may cost so much on average.
    budgets = [1.0, 2.0, bill] if options.quick else [1.0, 1.5, 2.0, 2.5, 3.0, bill]
    bounds, errors = [], []
    for budget in budgets:
        program = problem.to_cvxpy()
        program.constraints.append(program.theta @ prices <= budget)
        solution = problem.solve(program, tol=1e-3)
        wrong = np.mean(np.sign(solution.decision_function(T)) != t)
        bounds.append(solution.certificate.upper)
        errors.append(wrong)
        used = sum(weight > 1e-3 for weight in solution.theta)
        print(
            f"budget {budget:.2f}: objective {solution.certificate.upper:.3f} (free: at least "
            f"{free.certificate.lower:.3f}), {used} columns, {wrong:.1%} wrong on {len(t)} new rows"
        )
        assert prices @ solution.theta <= budget * (1 + 1e-3), "the constraint holds"
        assert solution.certificate.upper >= free.certificate.lower, "a constraint cannot help"

    # A constraint can only cost, and the certificate says how much at most.
    ax = new_axes()
    ax.plot(budgets, bounds, "o-", color=color(0), label="with the budget")
    ax.axhline(free.certificate.lower, color=color(1), linestyle="--", label="no kernel can be below")
    ax.set(xlabel="budget: mean price of the columns used", ylabel="objective of the training problem")
    legend(ax)
    ax.figure.savefig(options.out / "price_of_a_constraint.png", dpi=130)


if __name__ == "__main__":
    main()
