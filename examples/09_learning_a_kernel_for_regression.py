"""Learning a kernel for regression: weights of many kernels, or a tessellated kernel, against one tuned Gaussian.

Friedman's first function has ten features, of which five matter: x1 and x2 by an interaction, x3, x4 and x5 alone.
MultipleKernelRidge finds out which, from a kernel per feature and per pair; TessellatedRidge needs no list of kernels.

python examples/09_learning_a_kernel_for_regression.py [--quick] [--out figures]
"""

import argparse
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

import convexkernels as ck
from convexkernels.datasets import make_friedman1
from convexkernels.plotting import CertificateDisplay, KernelWeightsDisplay


def tuned(estimator, name, values):
    """Choose one parameter by cross-validation, with a loose gap while comparing."""
    return GridSearchCV(estimator.set_params(tol=1e-3, max_time=20.0), {name: values}, cv=3)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="80 rows instead of 300")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    X, y = make_friedman1(80 if options.quick else 300, noise=1.0, random_state=0)
    T, t = make_friedman1(2000, noise=0.0, random_state=1)

    # One kernel per feature for effects of one feature, one per pair for interactions of two.
    kernels = [(f"gaussian on x{i + 1}", ck.Gaussian(2.0), [i]) for i in range(10)]
    kernels += [(f"gaussian on x{i + 1} x{j + 1}", ck.Gaussian(2.0), [i, j]) for i, j in combinations(range(10), 2)]
    quick = options.quick
    models = {
        "MultipleKernelRidge": tuned(
            ck.MultipleKernelRidge(kernels), "lam", [1e-2, 1e-1] if quick else 10.0 ** np.arange(-3, 2)
        ),
        "TessellatedRidge": tuned(ck.TessellatedRidge(), "lam", [1.0, 10.0] if quick else 10.0 ** np.arange(-2, 3)),
        "TessellatedSVR": tuned(ck.TessellatedSVR(epsilon=0.5), "C", [0.1, 1.0] if quick else 10.0 ** np.arange(-2, 3)),
        "one Gaussian": GridSearchCV(
            KernelRidge(kernel="rbf"), {"alpha": 10.0 ** np.arange(-3, 2), "gamma": 10.0 ** np.arange(-3, 2)}, cv=3
        ),
    }
    for name, model in models.items():
        started = time.perf_counter()
        shift = y.mean() if name == "one Gaussian" else 0.0  # scikit-learn's KernelRidge has no intercept
        model.fit(X, y - shift)
        seconds = time.perf_counter() - started
        r2 = 1.0 - np.mean((model.predict(T) + shift - t) ** 2) / t.var()
        best = model.best_estimator_
        proof = f", {best.solution_.certificate}" if hasattr(best, "solution_") else ""
        print(f"{name:20s} R2 on new points {r2:.3f}  {seconds:6.2f} s{proof}")

    learned = models["MultipleKernelRidge"].best_estimator_
    for name, weight in learned.weights_by_name(0.05).items():
        print(f"    {weight:.3f}  {name}")
    KernelWeightsDisplay.by_feature(learned).plot().figure_.savefig(options.out / "regression_weights.png", dpi=150)
    display = CertificateDisplay.from_solution(learned.solution_).plot()
    display.figure_.savefig(options.out / "regression_certificate.png", dpi=150)


if __name__ == "__main__":
    main()
