"""Which features does a deep kernel listen to?

A Gaussian kernel with one width treats every feature alike: each one that says nothing makes all points a little more
distant. A hierarchical Gaussian kernel has a weight for every feature in every node, and the weights are learned from
the errors of functions on rows they have not seen. Here two features decide, and more and more say nothing.

    python examples/10_listening_to_features.py [--quick] [--out figures]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from convexkernels import ConvexKernelsWarning, HierarchicalGaussianClassifier, TreeSearch, TreeSelection
from convexkernels.datasets import make_two_moons


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    parser.add_argument("--quick", action="store_true", help="150 rows instead of 400, fewer steps")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    m, steps = (150, 15) if options.quick else (400, 60)

    # 1. Two moons, and features that are noise. The SVM with a Gaussian kernel has its C and gamma cross-validated. On
    # small tables several kernels predict together, unless one is asked for: here its weights are what we look at.
    print(f"{m} rows; accuracy on 2,000 others, in percent")
    print(f"{'noise features':>15} {'Gaussian':>9} {'learned':>8} {'share of the two that matter':>30}")
    for noise_features in (0, 8, 20):
        X, y = make_two_moons(m, noise=0.2, n_noise_features=noise_features, random_state=0)
        T, t = make_two_moons(2000, noise=0.2, n_noise_features=noise_features, random_state=1)
        grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.01, 0.03, 0.1, 0.3, 1.0]}
        gaussian = GridSearchCV(SVC(), grid, cv=5).fit(X, y)
        search, one = TreeSearch(max_iter=steps), TreeSelection(combine="one")
        model = HierarchicalGaussianClassifier(4, search=search, selection=one, random_state=0).fit(X, y)
        print(
            f"{noise_features:15d} {100 * gaussian.score(T, t):9.1f} {100 * model.score(T, t):8.1f} "
            f"{100 * model.feature_relevance_[:2].sum():28.1f} %"
        )

    # 2. What the kernel became. The weights are those of features scaled to [-1, 1].
    weights = np.array([node.weights for node in model.tree_.children])
    strongest = weights[:, :2].max()
    print(f"the largest weight of a moon coordinate is {strongest:.2f}, of a noise feature {weights[:, 2:].max():.2f}")

    # 3. The kernel is an ordinary one: scikit-learn's SVC takes it.
    svm = SVC(C=10.0, kernel=model.kernel_).fit(X, y)
    print(f"scikit-learn's SVC with the learned kernel: {100 * svm.score(T, t):.1f}")
    print(f"certificate: {model.solution_.certificate}")

    save_figures(options.out, model)
    return model


def save_figures(folder, model):
    import matplotlib

    matplotlib.use("Agg")
    from convexkernels.plotting import FeatureRelevanceDisplay, KernelTreeDisplay, RiskHistoryDisplay

    folder.mkdir(parents=True, exist_ok=True)
    names = ["moon 1", "moon 2", *(f"noise {j}" for j in range(1, model.n_features_in_ - 1))]
    FeatureRelevanceDisplay.from_estimator(model, names).plot(most=12).figure_.savefig(
        folder / "relevance.png", dpi=110
    )
    KernelTreeDisplay.from_estimator(model, names).plot().figure_.savefig(folder / "tree.png", dpi=110)
    RiskHistoryDisplay.from_solution(model.solution_).plot().figure_.savefig(folder / "risks.png", dpi=110)


if __name__ == "__main__":
    main()
