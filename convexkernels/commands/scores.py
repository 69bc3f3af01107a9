"""How well models predict rows they have not seen, with standard errors that mean one thing."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from convexkernels.arrays import Array, Index, Labels
from convexkernels.estimators.columns import Columns
from convexkernels.exceptions import InvalidInputError

N_FOLDS = 5
# From the middle of the plausible outwards, so that a search that is cut short has seen the best bets.
COSTS = (1.0, 10.0, 0.1, 100.0, 1000.0, 0.01)
WIDTHS = (1.0, 0.1, 10.0, 0.01, 100.0)
# Rows that the SVM chooses C and gamma on; and from how many rows the last fit of a model begins to grow.
SEARCHED_ROWS = 3000
FIRST_ROWS = 1000
# Seconds that a fit to more rows may take after the time is over.
GRACE = 1.0


@dataclass(frozen=True, eq=False)
class Split:
    """A table cut in two: rows to learn from, and rows that nothing but the final scores see."""

    X: Labels
    y: Labels
    X_test: Labels
    y_test: Labels


@dataclass(frozen=True, eq=False)
class Score:
    """A score on test rows, accuracy for classes and R^2 for numbers, with its standard error over them.

    The `influence` is what each test row adds to the deviation of the score from its expectation, shape (n_test,); two
    scores on the same rows are compared by the difference of theirs.
    """

    value: float
    error: float
    influence: Array


def split_table(X: Labels, y: Labels, task: str, *, test_size: float = 0.2, seed: int = 0) -> Split:
    """Cut a table into rows to learn from and a share to test on; classes keep their proportions in both.

    A share that leaves one part empty is refused.
    """
    stratify = y if task == "classification" else None
    try:
        X, X_test, y, y_test = train_test_split(X, y, test_size=test_size, random_state=seed, stratify=stratify)
    except ValueError as error:
        raise InvalidInputError(
            f"A table of {len(y)} rows cannot be split with --test-size {test_size}: {error}"
        ) from error
    if len(y) < 2:
        raise InvalidInputError(f"{len(y)} row is left to learn from, too few; use a smaller --test-size.")
    return Split(X, y, X_test, y_test)


def score_of(estimator: Any, X: Labels, y: Labels, task: str) -> Score:
    """The score of a fitted estimator on these rows."""
    predicted = estimator.predict(X)
    if task == "classification":
        right = (np.asarray(predicted) == y).astype(np.float64)
        return _score(float(right.mean()), right - right.mean())
    residuals, deviations = (y - predicted) ** 2, (y - y.mean()) ** 2
    if not deviations.any():
        raise InvalidInputError("The target is constant on the test rows; use another seed or a larger test_size.")
    ratio = float(residuals.mean() / deviations.mean())
    # The linear part of 1 - mean(residuals) / mean(deviations) in the two means.
    return _score(1.0 - ratio, -(residuals - ratio * deviations) / deviations.mean())


def _score(value: float, influence: Array) -> Score:
    return Score(value, float(influence.std() / np.sqrt(len(influence))), influence)


def difference(first: Score, second: Score) -> tuple[float, float]:
    """First minus second score on the same rows, with the standard error of the difference."""
    both = _score(first.value - second.value, first.influence - second.influence)
    return both.value, both.error


def learned_rival(name: str, split: Split, task: str, *, seed: int, max_time: float) -> tuple[Any, str]:
    """A customary model, named in ``RIVALS``, of the rows to learn from, and what it chose, in words.

    Text and missing values are encoded as for learned kernels. Of `max_time`, seconds, half are for C and gamma of the
    SVM; the fit takes as many rows, drawn at random, as there is time for.
    """
    end = time.monotonic() + max_time
    columns = Columns.of(split.X, np.arange(len(split.X)))
    X = split.X if columns is None else columns.encoded(split.X)
    X = np.asarray(X, dtype=np.float64)
    is_classes = task == "classification"
    order = _drawn(split.y, is_classes, seed)
    if name == "svm":
        rows = _searched(split.y, order, is_classes)
        model, chosen = _chosen_svm(X[rows], split.y[rows], is_classes, seed, end - 0.5 * max_time)
    else:
        model, chosen = _customary(name, is_classes, seed), "defaults"
    model, n_rows = _fitted(model, X, split.y, order, end, power=2 if name == "svm" else 1)
    return _Encoded(columns, model), chosen + ("" if n_rows == len(X) else f", {n_rows:,} of {len(X):,} rows")


def _drawn(y: Labels, is_classes: bool, seed: int) -> Index:
    """All rows in random order, but one of every class first."""
    order = np.random.default_rng(seed).permutation(len(y))
    first = np.unique(y[order], return_index=True)[1] if is_classes else np.arange(0)
    return np.concatenate([order[first], np.delete(order, first)])


def _searched(y: Labels, order: Index, is_classes: bool) -> Index:
    """The rows to choose parameters on: not too many, and no classes that cannot be in every fold if others can."""
    rows = np.sort(order[:SEARCHED_ROWS])
    if not is_classes:
        return rows
    _, kind, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    return rows[counts[kind] >= N_FOLDS] if (counts >= N_FOLDS).sum() > 1 else rows


def _fitted(model: Any, X: Array, y: Labels, order: Index, end: float, power: int) -> tuple[Any, int]:
    """Fit to four times as many rows again and again, while the next fit should end in time, as rows**power grow."""
    n_rows = min(FIRST_ROWS, len(X))
    while True:
        rows, began = np.sort(order[:n_rows]), time.monotonic()
        model = clone(model).fit(X[rows], y[rows])
        now, more = time.monotonic(), min(4 * n_rows, len(X))
        if n_rows == len(X) or now + (now - began) * (more / n_rows) ** power > max(end, now + GRACE):
            return model, n_rows
        n_rows = more


@dataclass(frozen=True, eq=False)
class _Encoded:
    columns: Columns | None
    model: Any

    def predict(self, X: Labels) -> Labels:
        X = X if self.columns is None else self.columns.encoded(X)
        return np.asarray(self.model.predict(np.asarray(X, dtype=np.float64)))


def _customary(name: str, is_classes: bool, seed: int) -> Any:
    if name == "forest":
        kind = RandomForestClassifier if is_classes else RandomForestRegressor
        return kind(n_estimators=300, random_state=seed)
    if name == "boosting":
        kind = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
        return kind(random_state=seed)
    linear = LogisticRegression(max_iter=1000) if is_classes else RidgeCV(np.logspace(-4, 4, 17))
    return make_pipeline(StandardScaler(), linear)


def _chosen_svm(X: Array, y: Labels, is_classes: bool, seed: int, end: float) -> tuple[Any, str]:
    """C and gamma by cross-validation, most plausible pairs first, until the time is over."""
    best, best_score, tried = _svm(is_classes, 1.0, 1.0 / X.shape[1]), -np.inf, 0
    pairs = sorted(product(range(len(COSTS)), range(len(WIDTHS))), key=sum)
    n_folds = min(N_FOLDS, int(np.unique(y, return_counts=True)[1].min()) if is_classes else len(y))
    kind = StratifiedKFold if is_classes else KFold
    folds = list(kind(n_folds, shuffle=True, random_state=seed).split(X, y)) if n_folds > 1 else []
    chosen = "C=1"
    for i, j in pairs if folds else []:
        model = _svm(is_classes, COSTS[i], WIDTHS[j] / X.shape[1])
        scores = list(_fold_scores(model, X, y, folds, end))
        if len(scores) < len(folds):
            break
        tried += 1
        if np.mean(scores) > best_score:
            best, best_score = model, float(np.mean(scores))
            chosen = f"C={COSTS[i]:g}, gamma={WIDTHS[j] / X.shape[1]:.3g}"
    return best, chosen + ("" if tried == len(pairs) else f" ({tried} of {len(pairs)} pairs)")


def _svm(is_classes: bool, C: float, gamma: float) -> Any:
    if is_classes:
        return make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma, cache_size=500))
    svr = make_pipeline(StandardScaler(), SVR(C=C, gamma=gamma, cache_size=500))
    return TransformedTargetRegressor(svr, transformer=StandardScaler())


def _fold_scores(model: Any, X: Array, y: Labels, folds: list[Any], end: float) -> Iterator[float]:
    for train, held in folds:
        if time.monotonic() >= end:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield float(clone(model).fit(X[train], y[train]).score(X[held], y[held]))
