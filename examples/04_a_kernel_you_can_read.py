"""A kernel you can read: a sum of kernels on single columns is a sum of curves.

With candidate kernels on single columns, what is learned is an additive function, f(x) = f_1(x_1) + ... + f_n(x_n):
one curve for each measurement that matters, and a weight of exactly zero for the others. No approximation explains the
model; the curves are the model.

    python examples/04_a_kernel_you_can_read.py [--quick] [--out figures]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import convexkernels as ck
from convexkernels.plotting.canvas import color, new_panels

MEANING = {
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s1": "total cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "blood sugar",
    "age": "age in years",
    "sex": "sex (1 or 2)",
}


def effect(model, x, column, values):
    """How the prediction for x changes when one column takes these values."""
    rows = np.tile(x, (len(values), 1))
    rows[:, column] = values
    return model.predict(rows)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="half of the rows")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    # Ten measurements of diabetes patients, each in units of its spread.
    data = load_diabetes(scaled=False)
    X, T, y, t = train_test_split(data.data, data.target, random_state=0)
    if options.quick:
        X, y = X[::2], y[::2]
    center, spread = X.mean(axis=0), X.std(axis=0)
    A, B = (X - center) / spread, (T - center) / spread

    # A smooth kernel and a straight line for each column: the weights decide which of them are needed.
    kernels = []
    for j, name in enumerate(data.feature_names):
        kernels += [(f"curve in {name}", ck.Gaussian(0.3), [j]), (f"line in {name}", ck.Linear(), [j])]
    model = ck.MultipleKernelRidge(kernels).fit(A, y)
    print(f"R^2 on new rows {model.score(B, t):.3f}, lam {model.lam_:.3g}; {model.solution_.certificate}")
    for name, weight in model.weights_by_name(0.01).items():
        print(f"    {weight:.3f}  {name}")
    none = sorted({name.split()[-1] for name in model.kernel_names_} - {n.split()[-1] for n in model.weights_by_name()})
    print(f"not used at all: {', '.join(none) or 'none'}")

    # The effect of a column is the same for everybody: seen from two patients, the curves differ by a constant.
    values = np.linspace(-2.0, 2.5, 91)
    first, second = (effect(model, A[i], 2, values) for i in (0, 1))
    print(f"two patients, one curve: {np.ptp(first - second):.1e} apart, of {np.ptp(first):.0f}")

    # So these four pictures are what the model has to say about the four columns with the largest effects.
    at_mean = np.zeros(A.shape[1])
    sizes = [np.ptp(effect(model, at_mean, j, np.quantile(A[:, j], [0.05, 0.5, 0.95]))) for j in range(A.shape[1])]
    shown = np.argsort(sizes)[::-1][:4]
    axes = new_panels(4, size=(3.2, 3.2), sharey=True)
    for ax, j in zip(axes, shown, strict=True):
        low, high = np.quantile(A[:, j], [0.01, 0.99])
        values = np.linspace(low, high, 121)
        ax.plot(values * spread[j] + center[j], effect(model, at_mean, j, values), color=color(0))
        ax.plot(X[:, j], np.full(len(X), y.min()), "|", color="0.6", markersize=5)
        ax.set(xlabel=MEANING[data.feature_names[j]], xlim=(low * spread[j] + center[j], high * spread[j] + center[j]))
    axes[0].set_ylabel("predicted progression")
    axes[0].figure.suptitle("the learned function, one column at a time (marks: patients)", fontsize="medium")
    axes[0].figure.savefig(options.out / "a_kernel_you_can_read.png", dpi=130)


if __name__ == "__main__":
    main()
