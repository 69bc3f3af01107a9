"""A first kernel: state a problem, solve it to a proven optimum, use the kernel, look at it.

python examples/02_a_first_kernel.py [--quick] [--out figures]
"""

import argparse
from pathlib import Path

from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels.datasets import make_two_moons
from convexkernels.plotting import DecisionSurfaceDisplay, KernelSliceDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    # Two moons, scaled to the unit square; labels are -1 and 1.
    X, y = make_two_moons(80 if options.quick else 200, noise=0.2, random_state=0)
    scale = MinMaxScaler().fit(X)
    X = scale.transform(X)

    # Of all tessellated kernels of degree 1 with trace P <= 1, the best for a support vector machine with this C.
    family = ck.Tessellated(degree=1, box=ck.UnitBox(margin=0.5), trace=1.0)
    problem = ck.KernelLearning(family, ck.Hinge(C=10.0), X, y)
    solution = problem.solve(tol=1e-4, progress=True)
    print(solution.certificate)

    # The kernel is an object: it makes matrices, and scikit-learn's SVC takes it as it is.
    svm = SVC(kernel=solution.kernel, C=10.0).fit(X, y)
    T, t = make_two_moons(2000, noise=0.2, random_state=1)
    print(f"accuracy on 2000 new points: {svm.score(scale.transform(T), t):.3f}")

    DecisionSurfaceDisplay.from_solution(solution).plot().figure_.savefig(options.out / "first_kernel_decision.png")
    slice_ = KernelSliceDisplay.from_solution(solution, x0=[0.3, 0.6], features=(0, 1))
    slice_.plot().figure_.savefig(options.out / "first_kernel_slice.png")


if __name__ == "__main__":
    main()
