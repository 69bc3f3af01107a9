"""Which kernel, on which feature? Multiple kernel learning on a real table answers with one weight per kernel.

Wine recognition (178 wines, 13 chemical measurements, three growers; comes with scikit-learn). One Gaussian per
measurement and one on all of them: the learned weights say which measurements tell the growers apart, all three
classifiers share them, and the certificate says that no other weights are better.

python examples/08_choosing_kernels.py [--quick] [--out figures]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels.plotting import KernelMatricesDisplay, KernelWeightsDisplay, RegularizationPathDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer values of C")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    wine = load_wine()
    X, T, y, t = train_test_split(wine.data, wine.target, test_size=0.4, stratify=wine.target, random_state=0)
    columns = [name.replace("_", " ") for name in wine.feature_names]

    # A kernel per measurement, named after it, and one that sees everything.
    kernels = [(f"gaussian on {name}", ck.Gaussian(0.5), [j]) for j, name in enumerate(columns)]
    kernels.append(("gaussian on all", ck.Gaussian(0.05), slice(None)))

    # It is a scikit-learn estimator: pipelines and searches work as always.
    model = make_pipeline(StandardScaler(), ck.MultipleKernelSVC(kernels))
    costs = [0.1, 10.0] if options.quick else [0.01, 0.1, 1.0, 10.0, 100.0]
    search = GridSearchCV(model, {"multiplekernelsvc__C": costs}, cv=3).fit(X, y)
    learned = search.best_estimator_[-1]
    print(f"C = {learned.C:g}; test accuracy {search.score(T, t):.3f}; {learned.solution_.certificate}")
    for name, weight in learned.weights_by_name(1e-3).items():
        print(f"    {weight:.3f}  {name}")

    plain = make_pipeline(StandardScaler(), SVC(C=learned.C, gamma=0.05)).fit(X, y)
    print(f"one Gaussian on all measurements: test accuracy {plain.score(T, t):.3f}")

    # The learned kernel is a function; any kernel machine takes it.
    scale = search.best_estimator_[0]
    A, B = scale.transform(X), scale.transform(T)
    svm = SVC(C=learned.C, kernel=learned.kernel_).fit(A, y)
    print(f"scikit-learn's SVC with the learned kernel: test accuracy {svm.score(B, t):.3f}")

    KernelWeightsDisplay.by_feature(learned).plot().figure_.savefig(
        options.out / "choosing_kernels_weights.png", dpi=150
    )
    path = [ck.MultipleKernelSVC(kernels, C=C, tol=1e-3).fit(A, y) for C in costs]
    weights = np.array([member.weights_ for member in path])
    display = RegularizationPathDisplay(costs, weights, learned.kernel_names_).plot()
    display.figure_.savefig(options.out / "choosing_kernels_path.png", dpi=150)
    before, after = ck.Gaussian(0.05)(A), learned.kernel_(A)
    display = KernelMatricesDisplay({"before: one Gaussian": before, "after: learned": after}, y).plot()
    display.figure_.savefig(options.out / "choosing_kernels_matrices.png", dpi=150)


if __name__ == "__main__":
    main()
