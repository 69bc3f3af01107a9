"""``convexkernels predict`` and ``convexkernels show``: a model that was kept, on another table or in words."""

import csv
import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from convexkernels.arrays import Labels
from convexkernels.commands.model_file import SavedModel
from convexkernels.exceptions import InvalidInputError


def predict(model: SavedModel, X: Labels, out: Path | None, *, proba: bool, interval: float | None) -> int:
    """Predict the rows of a table as ``load_features`` returns it, and say how many there are.

    A line for each row goes to the CSV file `out`, or to standard output: the prediction, with `proba` the probability
    of each class, with `interval` the ends of intervals of that coverage.
    """
    estimator = model.estimator
    for asked, method, flag in ((proba, "predict_proba", "--proba"), (interval, "predict_interval", "--interval")):
        if asked and not hasattr(estimator, method):
            raise InvalidInputError(f"{flag}: a {type(estimator).__name__} has no {method}.")
    columns: dict[str, Any] = {model.target: estimator.predict(X)}
    if proba:
        shares = estimator.predict_proba(X)
        columns.update({f"probability of {label}": shares[:, k] for k, label in enumerate(estimator.classes_)})
    if interval:
        low, high = np.moveaxis(np.asarray(estimator.predict_interval(X, coverage=interval)), -1, 0)
        columns.update({"low": low, "high": high})
    if out is None:
        _write(sys.stdout, columns)
    else:
        with out.open("w", encoding="utf-8", newline="") as lines:
            _write(lines, columns)
    return len(X)


def _write(lines: TextIO, columns: dict[str, Any]) -> None:
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["row", *columns])
    values = [np.asarray(column).tolist() for column in columns.values()]
    for i, row in enumerate(zip(*values, strict=True), start=1):
        writer.writerow([i, *(f"{value:.9g}" if isinstance(value, float) else value for value in row)])


def show(model: SavedModel) -> None:
    """Print what a model learned, from what, and how good it is."""
    estimator = model.estimator
    print(f"{type(estimator).__name__} of convexkernels {model.version}, learned from {model.table}")
    print(f"predicts     {model.target}")
    print(f"from         {', '.join(f'{n} (text)' if n in model.categories else n for n in model.features)}")
    print(estimator.describe())
    print(
        f"parameters   {', '.join(f'{k}={v!r}' for k, v in estimator.get_params(deep=False).items() if v is not None)}"
    )
    for name, (value, error) in model.scores.items():
        print(f"test score   {value:.4f} +- {error:.4f}  {name}")
