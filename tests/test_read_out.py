"""Classes that are read from all functions together, where one against the rest masks those in the middle."""

import pickle
import time

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import convexkernels as ck
from convexkernels.estimators import left_out, read_out, tasks
from convexkernels.estimators.read_out import RIDGE, ReadOut, held_out_scores, read_out_for
from convexkernels.estimators.voronoi import base as voronoi
from convexkernels.solvers.convex.spectral_gradient import SpectralGradient

CLASSIFIERS = {
    "tessellated": ck.TessellatedSVC(max_time=None),
    "multiple kernels": ck.MultipleKernelSVC(max_time=None),
    "cells": ck.VoronoiSVC(random_state=0, max_time=None),
    "hierarchical": ck.HierarchicalGaussianClassifier(2, search=ck.TreeSearch(max_iter=20), random_state=0),
}


def shells(m, seed=0):
    """Four classes in an order, by the distance from the middle; the one in the middle of them is thin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    r = np.sqrt((X**2).sum(axis=1)) + 0.05 * rng.normal(size=m)
    return X, np.digitize(r, [1.76, 2.09, 3.04])


def masked(m, seed=0):
    """Values of three functions of which the one of the middle class is large nowhere, targets, and codes."""
    t = np.random.default_rng(seed).uniform(-1.0, 1.0, m)
    codes = np.digitize(t, [-1 / 3, 1 / 3])
    return np.array([-t, np.full(m, -0.4), t]), np.where(codes == np.arange(3)[:, None], 1.0, -1.0), codes


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_in_an_order_are_told_apart(name):
    X, y = shells(250)
    T, t = shells(1000, 1)
    model = CLASSIFIERS[name].fit(X, y)
    values = model._values(T)
    plain = np.mean(model.classes_[values.argmax(axis=1)] == t)
    assert model.score(T, t) > plain + 0.08
    np.testing.assert_allclose(model.decision_function(T), values @ model.read_out_.A + model.read_out_.c)
    predicted, P = model.predict(T), model.predict_proba(T)
    np.testing.assert_array_equal(predicted, model.classes_[model.decision_function(T).argmax(axis=1)])
    np.testing.assert_array_equal(predicted, model.classes_[P.argmax(axis=1)])
    assert -np.log(P[np.arange(len(t)), t]).mean() < 0.6
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(T), predicted)


def test_where_the_largest_value_decides_as_well_it_does():
    X, y = load_iris(return_X_y=True)
    for model in (ck.TessellatedSVC(max_time=None), ck.VoronoiSVC(random_state=0)):
        assert model.fit(X, y).read_out_ is None
    X, y = shells(250)
    assert ck.VoronoiSVC(random_state=0).fit(X, y > 1).read_out_ is None


@pytest.mark.parametrize("step", ["left_out_of_cells", "read_out_for", "link_of"])
def test_an_interrupt_leaves_the_largest_value(step, monkeypatch):
    X, y = shells(250)

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(voronoi if step == "left_out_of_cells" else tasks, step, interrupted)
    with pytest.warns(ck.ConvexKernelsWarning, match="the largest value does"):
        model = ck.VoronoiSVC(random_state=0).fit(X, y)
    assert model.read_out_ is None
    assert model.score(X, y) > 0.5


def test_where_the_search_was_interrupted_the_largest_value_decides(monkeypatch):
    X, y = shells(250)

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(SpectralGradient, "step", interrupted)
    monkeypatch.setattr(tasks, "read_out_for", None)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        model = ck.TessellatedSVC(1.0).fit(X, y)
    assert model.solution_.status is ck.Status.INTERRUPTED
    assert model.read_out_ is None


def test_scores_are_the_likeliest():
    """Of a softmax with a prior that all values have one slope; without a prior they are those of scikit-learn."""
    F, _, codes = masked(60)
    F += 0.3 * np.random.default_rng(1).normal(size=F.shape)
    weights, unit = np.random.default_rng(2).uniform(0.5, 2.0, 60), F.std(axis=1).mean()

    def unlikelihood(A, c):
        """The slope for all is free: that of the prior is the mean of those that there are."""
        slopes = -unit * A[~np.eye(3, dtype=bool)]
        prior = 0.5 * RIDGE * ((slopes - slopes.mean()) ** 2).sum()
        return prior - weights @ log_softmax(F.T @ A + c, axis=1)[np.arange(60), codes]

    found = ReadOut.of(F.T, codes, weights)
    best = unlikelihood(found.A, found.c)
    for i in range(3):
        for step in (-1e-2, 1e-2):
            assert unlikelihood(found.A, found.c + step * np.eye(3)[i]) > best - 1e-4
            for j in set(range(3)) - {i}:
                other = found.A + step * np.outer(np.eye(3)[i], np.eye(3)[j]) / unit
                assert unlikelihood(np.minimum(other, 0.0), found.c) > best - 1e-4
    many = np.tile(F, 500)
    scores = ReadOut.of(many.T, np.tile(codes, 500), np.ones(many.shape[1]))(F.T)
    free = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(F.T, codes).decision_function(F.T)
    np.testing.assert_allclose(scores - scores.mean(axis=1)[:, None], free - free.mean(axis=1)[:, None], atol=0.3)


def test_means_of_the_other_rows_do_not_give_labels_away(rng):
    codes = rng.choice(4, 200, p=[0.55, 0.3, 0.1, 0.05])
    Y = np.where(codes == np.arange(4)[:, None], 1.0, -1.0)
    F = (Y.sum(axis=1)[:, None] - Y) / 199.0  # left out one by one, by constants
    scores = held_out_scores(F, Y, np.ones(200))
    assert (scores.argmax(axis=0) == 0).all()
    P = np.exp(log_softmax(scores, axis=0))
    np.testing.assert_allclose(P.mean(axis=1), np.bincount(codes) / 200, atol=0.02)
    assert P.std(axis=1).max() < 0.02


def test_rows_that_are_not_known_and_weights(rng):
    F, Y, codes = masked(90)
    found, unseen = read_out_for(F, Y, np.ones(90))
    assert (found(F.T).argmax(axis=1) == codes).mean() > 0.9 > 0.7 > (F.argmax(axis=0) == codes).mean()
    more, beside = np.hstack([F, np.full((3, 5), np.nan)]), np.hstack([Y, Y[:, :5]])
    again, scores = read_out_for(more, beside, np.ones(95))
    np.testing.assert_allclose(again.A, found.A)
    np.testing.assert_array_equal(scores, held_out_scores(more, beside, np.ones(95)))
    np.testing.assert_array_equal(scores[:, :90], unseen)
    assert np.isnan(scores[:, 90:]).all()
    assert np.isfinite(scores[:, :90]).all()
    twice, _ = read_out_for(np.repeat(F, 2, axis=1), np.repeat(Y, 2, axis=1), np.ones(180))
    np.testing.assert_allclose(read_out_for(F, Y, np.full(90, 2.0))[0].A, twice.A, rtol=1e-3, atol=1e-3)
    for values, few in ((F[:, :8], Y[:, :8]), (rng.normal(size=(3, 90)), Y)):
        none, same = read_out_for(values, few, np.ones(values.shape[1]))
        assert none is None
        assert same is values


def test_functions_that_move_on_have_no_read_out(monkeypatch):
    X, y = shells(250)
    model = ck.SpectralKernelClassifier(n_components=20, training=ck.Training(max_epochs=1), random_state=0)
    monkeypatch.setattr(tasks, "read_out_for", lambda F, Y, weights: (ReadOut(np.eye(4) - 1.0, np.zeros(4)), F))
    assert model.fit(X, y).read_out_ is not None
    assert model.partial_fit(X, y).read_out_ is None
    np.testing.assert_array_equal(model.decision_function(X), model._values(X))


def test_a_refused_pass_leaves_the_read_out(monkeypatch):
    X, y = shells(250)
    model = ck.SpectralKernelClassifier(n_components=20, training=ck.Training(max_epochs=1), random_state=0)
    monkeypatch.setattr(tasks, "read_out_for", lambda F, Y, weights: (ReadOut(np.eye(4) - 1.0, np.zeros(4)), F))
    model.fit(X, y)
    with pytest.raises(ck.InvalidInputError):
        model.partial_fit(X[:3] * np.nan, y[:3])
    assert model.read_out_ is not None


@pytest.mark.parametrize(("place", "work"), [(left_out, "fit"), (read_out, "log_softmax")])
def test_the_time_limit_ends_the_choice(place, work, monkeypatch):
    """While values at rows left out are found, or a read-out is: the largest value decides, and that is told."""
    X, y = shells(250)
    assert ck.TessellatedSVC(1.0, max_time=60.0).fit(X, y).read_out_ is not None
    plain, decide = getattr(place, work), ck.TessellatedSVC._decide
    monkeypatch.setattr(place, work, lambda *given, **options: time.sleep(0.4) or plain(*given, **options))
    monkeypatch.setattr(ck.TessellatedSVC, "_decide", lambda self, clock: decide(self, clock.part(0.005)))
    with pytest.warns(ck.ConvexKernelsWarning, match="ended the choice of how several functions decide early") as told:
        model = ck.TessellatedSVC(1.0, max_time=60.0).fit(X, y)
    assert model.read_out_ is None
    assert len(told) == 1


def test_cells_of_other_estimators_do_not_learn_again():
    X, y = shells(60)
    assert ck.VoronoiSVC(estimator=KNeighborsClassifier(55), random_state=0).fit(X, y).read_out_ is None
