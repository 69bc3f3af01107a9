"""Quantiles and intervals: how far off may a prediction be?

Two answers. `predict_interval` widens the predictions of any regressor by what its errors on rows left out were: one
length for all rows, and a share of new targets that it holds. A quantile regression learns the ends themselves: where
the data scatter more, the ends are farther apart.

    python examples/06_quantiles_and_intervals.py [--quick] [--out figures]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import convexkernels as ck
from convexkernels.plotting.canvas import color, legend, new_panels


def noisy_wave(m, rng):
    """A wave whose noise grows from left to right; the ends between which nine of ten values lie are known."""
    x = rng.uniform(0.0, 1.0, m)
    return x[:, None], np.sin(6.0 * x) + (0.05 + 0.6 * x**2) * rng.standard_normal(m)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="400 points instead of 1,500")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    X, y = noisy_wave(400 if options.quick else 1500, rng)
    T, t = noisy_wave(5000, rng)

    # One length for all rows.
    model = ck.VoronoiRidge(random_state=0).fit(X, y)
    conformal = model.predict_interval(T, coverage=0.9)

    # The ends, each learned by itself: the pinball loss is least at the quantile.
    ends = [ck.VoronoiQuantile(quantile=q, random_state=0).fit(X, y) for q in (0.05, 0.95)]
    learned = np.column_stack([end.predict(T) for end in ends])
    print("share of 5,000 new values held (asked for: 0.9), all / left half / right half, and mean length")
    for name, interval in (("predict_interval", conformal), ("two quantiles", learned)):
        held = (interval[:, 0] <= t) & (t <= interval[:, 1])
        left = T[:, 0] < 0.5
        print(
            f"{name:<17} {held.mean():.3f} / {held[left].mean():.3f} / {held[~left].mean():.3f}   "
            f"{np.ptp(interval, axis=1).mean():.2f}"
        )
    print("The first is right on the whole and wrong on either side; the second follows the noise.")

    # On a real table, by any estimator: intervals from errors that it made on rows that were left out.
    data = load_diabetes()
    A, B, a, b = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
    fitted = ck.MultipleKernelRidge(tol=1e-2).fit(A, a)
    for coverage in (0.5, 0.8, 0.9):
        low, high = fitted.predict_interval(B, coverage=coverage).T
        held = np.mean((low <= b) & (b <= high))
        print(f"diabetes, asked for {coverage}: {held:.2f} of {len(b)} new patients, length {np.mean(high - low):.0f}")

    axes, line = new_panels(2, size=(4.6, 3.8), sharey=True), np.linspace(0.0, 1.0, 201)[:, None]
    bands = {
        "predict_interval: one length": model.predict_interval(line, coverage=0.9),
        "quantiles: a length for every place": np.column_stack([end.predict(line) for end in ends]),
    }
    for ax, (title, band) in zip(axes, bands.items(), strict=True):
        ax.plot(X[:400, 0], y[:400], ".", color="0.6", markersize=3, label="data")
        ax.fill_between(line[:, 0], *band.T, color=color(0), alpha=0.25, linewidth=0, label="nine of ten new values")
        width = 1.645 * (0.05 + 0.6 * line[:, 0] ** 2)
        for sign in (-1, 1):
            ends_of_truth = np.sin(6.0 * line[:, 0]) + sign * width
            ax.plot(line[:, 0], ends_of_truth, "--", color=color(1), label="truth" if sign > 0 else None)
        ax.set(title=title, xlabel="x")
    axes[0].set_ylabel("y")
    legend(axes[1])
    axes[0].figure.savefig(options.out / "quantiles_and_intervals.png", dpi=130)


if __name__ == "__main__":
    main()
