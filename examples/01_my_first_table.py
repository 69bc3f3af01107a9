"""My first table: from a CSV file to predictions, and to what was learned.

Somebody has measured 400 circuits, a resistor, a coil and a capacitor in a row: four quantities that decide how far the
current lags behind the voltage, and five others that were written down, too. (The table is generated, by the law of
such circuits and with noise, so that everything that is said about it can be checked.) Nothing is set by hand: the
model scales the columns, learns a weight for every one of them, and chooses its regularization.

    python examples/01_my_first_table.py [--quick] [--out figures]
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import convexkernels as ck
from convexkernels.datasets import load_table
from convexkernels.plotting import FeatureRelevanceDisplay
from convexkernels.plotting.canvas import color, legend, new_panels

NOISE = 5.0


def circuits(m, rng):
    """Names of columns, and rows of m circuits: what decides, what was written down too, and the measured lag."""
    ohm, hertz = rng.uniform(10.0, 500.0, m), rng.uniform(20.0, 280.0, m)
    henry, microfarad = rng.uniform(0.05, 1.0, m), rng.uniform(1.0, 11.0, m)
    turn = 2.0 * np.pi * hertz
    lag = np.degrees(np.arctan2(turn * henry - 1e6 / (turn * microfarad), ohm)) + NOISE * rng.standard_normal(m)
    others = rng.normal([21.0, 50.0, 230.0, 1013.0, 40.0], [2.0, 10.0, 3.0, 8.0, 9.0], (m, 5))
    names = ["ohm", "hertz", "henry", "microfarad", "room", "humidity", "mains", "pressure", "age", "lag"]
    return names, np.column_stack([ohm, hertz, henry, microfarad, others, lag]).round(3)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps of the search")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure and the file")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    # A file as somebody would send it: the first line names the columns. The target is the lag, in degrees.
    names, rows = circuits(600, np.random.default_rng(0))
    path = options.out / "circuits.csv"
    with path.open("w", newline="") as lines:
        csv.writer(lines).writerows([names, *rows.tolist()])

    # Read it. Columns may hold text, cells may be empty; what cannot be understood is refused by row and column.
    X, y, names = load_table(path, "lag")
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
    print(f"{len(X)} rows, {len(names)} columns: {', '.join(names)}")

    # Learn. Without arguments everything is chosen; `max_time` bounds all of it.
    model = ck.HierarchicalGaussianRegressor(random_state=0, max_time=5.0 if options.quick else 60.0)
    model.fit(X_train, y_train)

    # Is it worth it? A line, and a Gaussian kernel with one width for all columns, whose C and width are chosen by
    # five folds of the same rows (larger C take long and are not chosen). The rows that nobody has seen are looked at
    # once, by all three.
    grid = {"svr__C": 10.0 ** np.arange(1, 3 if options.quick else 5), "svr__gamma": 10.0 ** np.arange(-3, 1)}
    models = {
        "learned kernel": model,
        "one Gaussian": GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=5).fit(X_train, y_train),
        "a line": make_pipeline(StandardScaler(), RidgeCV(10.0 ** np.arange(-3, 4))).fit(X_train, y_train),
    }
    errors = {name: np.abs(found.predict(X_test) - y_test) for name, found in models.items()}
    for name, error in errors.items():
        score = models[name].score(X_test, y_test)
        print(f"{name:<15} R^2 {score:.3f}, half of the errors below {np.median(error):.1f} degrees")
    print(f"the noise of the measurements alone:   half of the errors below {0.6745 * NOISE:.1f} degrees")

    # Predict, with an interval that holds four of five new values.
    low, high = model.predict_interval(X_test[:3], coverage=0.8).T
    for value, bottom, top, truth in zip(model.predict(X_test[:3]), low, high, y_test, strict=False):
        print(f"predicted {value:4.0f}, between {bottom:4.0f} and {top:4.0f}; it was {truth:.0f}")

    # What was learned: how much the function changes with every column. The four of the law lead, nobody named them.
    order = model.feature_relevance_.argsort()[::-1]
    print("relevance:", ", ".join(f"{names[j]} {model.feature_relevance_[j]:.0%}" for j in order[:6]))
    left, right = new_panels(2, size=(5.0, 3.6))
    FeatureRelevanceDisplay.from_estimator(model, names).plot(left)
    for k, (name, error) in enumerate(errors.items()):
        share = (np.arange(len(error)) + 1) / len(error)
        right.plot(np.sort(error), 100.0 * share, ("-", "--", ":")[k], color=color(k), label=name)
    right.set(xlabel="error / degrees", ylabel="test rows with at most this error, %", xlim=(0.0, 60.0), ylim=(0, 100))
    legend(right, loc="lower right", bbox_to_anchor=(1.0, 0.02))
    left.figure.savefig(options.out / "my_first_table.png", dpi=130)

    # How good is it? This problem is not convex, and says so: the certificate knows about this point only.
    print(model.solution_.certificate)
    print(f"The same from a shell: convexkernels learn {path.name} --target lag --against svm,linear")


if __name__ == "__main__":
    main()
