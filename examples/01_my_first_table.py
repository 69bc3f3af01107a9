"""My first table: from a CSV file to predictions, and to what was learned.

442 patients with ten measurements, and how far their diabetes had gone a year later (comes with scikit-learn). Nothing
is set by hand: the model scales the columns, learns a weight for every one of them, and chooses its regularization.

    python examples/01_my_first_table.py [--quick] [--out figures]
"""

import argparse
import csv
from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split

import convexkernels as ck
from convexkernels.datasets import load_table
from convexkernels.plotting import FeatureRelevanceDisplay


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps of the search")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure and the file")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    # A file as somebody would send it: the first line names the columns.
    data, path = load_diabetes(scaled=False), options.out / "patients.csv"
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow([*data.feature_names, "progression"])
        writer.writerows([*row, value] for row, value in zip(data.data.tolist(), data.target.tolist(), strict=True))

    # Read it. Columns may hold text, cells may be empty; what cannot be understood is refused by row and column.
    X, y, names = load_table(path, "progression")
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    print(f"{len(X)} rows, {len(names)} columns: {', '.join(names)}")

    # Learn. Without arguments everything is chosen; `max_time` bounds all of it.
    model = ck.HierarchicalGaussianRegressor(random_state=0, max_time=5.0 if options.quick else 60.0)
    model.fit(X_train, y_train)
    # On so few noisy rows a line may do as well, within the chance of 111 test rows: it is worth asking.
    print(f"R^2 on rows it has not seen: {model.score(X_test, y_test):.3f}")
    print(f"a linear model:              {RidgeCV().fit(X_train, y_train).score(X_test, y_test):.3f}")

    # Predict, with an interval that holds four of five new values.
    low, high = model.predict_interval(X_test[:3], coverage=0.8).T
    for value, bottom, top, truth in zip(model.predict(X_test[:3]), low, high, y_test, strict=False):
        print(f"predicted {value:4.0f}, between {bottom:4.0f} and {top:4.0f}; it was {truth:.0f}")

    # What was learned: how much the function changes with every column. Body mass and a blood fat lead.
    order = model.feature_relevance_.argsort()[::-1]
    print("relevance:", ", ".join(f"{names[j]} {model.feature_relevance_[j]:.0%}" for j in order[:4]))
    display = FeatureRelevanceDisplay.from_estimator(model, names).plot()
    display.figure_.savefig(options.out / "relevance_of_measurements.png", dpi=130)

    # How good is it? This problem is not convex, and says so: the certificate knows about this point only.
    print(model.solution_.certificate)
    print(f"The same from a shell: convexkernels learn {path.name} --target progression")


if __name__ == "__main__":
    main()
