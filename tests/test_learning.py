"""Choosing parameters: the right candidate, on folds the test rows never touch, within its limits."""

import io
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from convexkernels import InvalidInputError
from convexkernels.datasets import make_friedman1, make_two_moons
from convexkernels.learning import choose, rbf_machine, split_table
from convexkernels.progress import Table

GRID = {"C": (0.01, 1.0, 100.0), "gamma": (0.01, 1.0)}


@pytest.fixture(scope="module")
def split():
    X, y = make_two_moons(120, noise=0.3, random_state=0)
    return split_table(X, y, "classification", seed=0)


def test_split_is_a_partition_that_keeps_proportions():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.arange(len(y))])  # every row can be recognized
    split = split_table(X, y, "classification", test_size=0.2, seed=1)
    rows = np.concatenate([split.X[:, -1], split.X_test[:, -1]])
    assert sorted(rows) == list(range(150))
    np.testing.assert_array_equal(np.bincount(split.y_test), [10, 10, 10])
    validation = np.concatenate([v for _, v in split.folds])
    assert sorted(validation) == list(range(len(split.y)))
    for train, held in split.folds:
        assert not set(train) & set(held)
        assert set(split.y[train]) == {0, 1, 2}


def test_split_follows_its_seed(split):
    X, y = make_two_moons(120, noise=0.3, random_state=0)
    again = split_table(X, y, "classification", seed=0)
    other = split_table(X, y, "classification", seed=1)
    np.testing.assert_array_equal(split.X_test, again.X_test)
    assert not np.array_equal(split.X_test, other.X_test)


def test_rare_classes_get_as_many_folds_as_they_allow():
    X, y = make_two_moons(60, random_state=0)
    y[:] = -1
    y[:4] = 1
    split = split_table(X, y, "classification", test_size=0.25, seed=0)
    assert len(split.folds) == 3
    assert all((split.y[train] == 1).any() for train, _ in split.folds)


@pytest.mark.parametrize(
    ("y", "task", "test_size", "phrases"),
    [
        (np.zeros(20, dtype=int), "classification", 0.2, ["one class only", "0"]),
        (np.linspace(0, 1, 20), "classification", 0.2, ["20 different numbers", "regression"]),
        (np.array(["a"] * 18 + ["b"] * 2), "classification", 0.2, ["'b'", "2 row(s)"]),
        (np.array(["a", "b"] * 10), "regression", 0.2, ["text", "'a'"]),
        (np.arange(20) % 2, "classification", 1.0, ["test_size", "1.0"]),
        (np.arange(20) % 2, "classification", float("nan"), ["test_size", "nan"]),
        (np.arange(20) % 2, "classification", 0.01, ["test_size=0.01"]),
        (np.arange(20) % 2, "classification", 0.9, ["too few"]),
        (np.arange(2), "regression", 0.5, ["too few"]),
    ],
)
def test_targets_that_cannot_be_learned_are_refused(y, task, test_size, phrases):
    with pytest.raises(InvalidInputError) as refusal:
        split_table(np.zeros((len(y), 1)), y, task, test_size=test_size)
    for phrase in phrases:
        assert phrase in str(refusal.value)


def test_choice_is_that_of_a_grid_search_on_the_same_folds(split):
    ours = choose(SVC, GRID, split)
    theirs = GridSearchCV(SVC(), {k: list(v) for k, v in GRID.items()}, cv=split.folds).fit(split.X, split.y)
    assert ours.score == pytest.approx(theirs.best_score_)
    assert ours.deviation == pytest.approx(theirs.cv_results_["std_test_score"][theirs.best_index_])
    scores = dict(zip(map(str, theirs.cv_results_["params"]), theirs.cv_results_["mean_test_score"], strict=True))
    assert scores[str(ours.parameters)] == pytest.approx(theirs.best_score_)
    assert ours.tried == ours.offered == 6


class Scripted(ClassifierMixin, BaseEstimator):
    """A classifier whose score is its parameter and whose fit does what it is told."""

    def __init__(self, value=0.0, on_fit=None):
        self.value = value
        self.on_fit = on_fit

    def fit(self, X, y):
        if self.on_fit is not None:
            self.on_fit(self.value)
        return self

    def score(self, X, y, sample_weight=None):
        return self.value


def test_the_earliest_of_equals_is_kept(split):
    choice = choose(lambda value, tag: Scripted(value), {"value": (0.5, 0.5), "tag": ("first", "second")}, split)
    assert choice.parameters == {"value": 0.5, "tag": "first"}


def test_a_deadline_keeps_the_best_finished_candidate(split):
    def slow(value):
        if value == 0.9:
            time.sleep(0.3)

    deadline = time.monotonic() + 0.2
    choice = choose(lambda value: Scripted(value, slow), {"value": (0.1, 0.2, 0.9, 0.3)}, split, deadline=deadline)
    assert choice.parameters == {"value": 0.2}
    assert (choice.tried, choice.offered) == (2, 4)


def test_a_deadline_in_the_past_chooses_nothing(split):
    choice = choose(Scripted, {"value": (0.1, 0.2)}, split, deadline=time.monotonic() - 1.0)
    assert choice.parameters == {}
    assert choice.tried == 0
    assert np.isnan(choice.score)


def test_an_interruption_keeps_the_best_finished_candidate(split):
    def interrupt(value):
        if value == 0.9:
            raise KeyboardInterrupt

    make = lambda value: Scripted(value, interrupt)  # noqa: E731
    assert choose(make, {"value": (0.2, 0.1, 0.9, 0.3)}, split).parameters == {"value": 0.2}
    with pytest.raises(KeyboardInterrupt):
        choose(make, {"value": (0.9, 0.1)}, split)


def test_every_candidate_is_reported(split):
    stream = io.StringIO()
    choose(Scripted, {"value": (0.25, 0.5)}, split, progress=Table(stream))
    first, second = stream.getvalue().splitlines()
    assert first.split()[:3] == ["1/2", "value", "0.25"]
    assert "0.5000 +- 0.0000" in second


def test_the_rival_learns_classes_and_numbers():
    X, y = make_two_moons(150, noise=0.15, random_state=1)
    rival = rbf_machine(split_table(X, y, "classification"), "classification")
    assert rival.test_score >= 0.9
    assert rival.choice.tried == rival.choice.offered
    X, y = make_friedman1(150, n_features=5, noise=0.1, random_state=1)
    assert rbf_machine(split_table(X, y, "regression"), "regression").test_score >= 0.8
