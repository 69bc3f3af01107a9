"""What every estimator keeps to: scikit-learn's checks, weights, classes, outputs, certificates, limits, refusals."""

import inspect
import pickle
import re
import time
import warnings
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import convexkernels as ck
from convexkernels import notebook, plotting, progress
from convexkernels.checkpoint import Checkpoint
from convexkernels.estimators import ESTIMATORS
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, NumberTargets

M = 40
# About a dozen; three of them belong to every fit: limit, checkpoint, messages.
MOST_PARAMETERS = 14
# Seconds of processor that a fit may take whose time is over when it begins.
SOON = 5.0


def table(kind, classes=2):
    """A small table: labels are text, numbers have noise."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, (M, 2)) * [1.0, 20.0] + [0.0, 3.0]
    f = np.sin(3.0 * X[:, 0]) + 0.05 * X[:, 1] + 0.1 * rng.standard_normal(M)
    if kind == "numbers":
        return X, f
    edges = np.quantile(f, np.arange(1, classes) / classes)
    return X, np.array(["low", "middle", "top"])[np.digitize(f, edges)]


def quietly(estimator, *arguments, **named):
    """Fit where it does not matter whether the tolerance is reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        return estimator.fit(*arguments, **named)


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def same(first, second, X, tol=1e-6):
    a, b = values(first, X), values(second, X)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max())


def has_kernel(model):
    """All have one but those of several cells that share rows, or that are parts of a tree."""
    return getattr(model, "n_cells_", 1) == 1 or type(model.cover_) is ck.VoronoiCover


# -- contracts: functions of an example, the kind of its targets, and pytest's monkeypatch -----------------------


def keeps_to_a_dozen_documented_parameters(estimator, kind, monkeypatch):
    text = inspect.getdoc(type(estimator))
    sections = dict(re.findall(r"^(\w+)\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, flags=re.MULTILINE | re.DOTALL))

    def described(section):
        entries = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", sections[section], flags=re.MULTILINE)
        return {name for entry in entries for name in entry.split(", ")}

    parameters = set(estimator.get_params(deep=False))
    assert parameters == described("Parameters")
    assert len(parameters) <= MOST_PARAMETERS
    model = quietly(estimator, *table(kind))
    attributes = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert attributes <= described("Attributes")
    assert "{" not in re.sub(r"\{[\"'].*?\}", "", text), "a shared paragraph was not put in its place"


def learns_without_a_word(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = estimator.fit(X, y)
    assert model.n_iter_ >= 1
    assert model.score(X, y) > 0.6


FORTH = [
    "_check_parameters",
    "_read",
    "_targets_of",
    "encoded",
    "_scaling_of",
    "scaled",
    "merged",
    "_problem",
    "_solve",
    "_finish",
]
BACK = ["_points", "_evaluate", "decoded"]


def walks_through_the_same_rooms(estimator, kind, monkeypatch):
    X, y = table(kind)
    walked = []

    def watch(owner, name):
        original = getattr(owner, name)

        def watched(self, *arguments, **named):
            walked.append(name)
            return original(self, *arguments, **named)

        monkeypatch.setattr(owner, name, watched)

    for owner in (type(estimator), TrainingTable, ClassTargets, NumberTargets):
        for name in [*FORTH, *BACK]:
            if hasattr(owner, name):
                watch(owner, name)
    model = quietly(estimator, X, y)
    assert walked[: walked.index("_finish") + 1] == FORTH
    walked.clear()
    model.predict(X)
    assert walked == BACK
    if not has_kernel(model):
        return
    inside = model.solution_.kernel
    points = model.scaling_.apply(X)
    np.testing.assert_allclose(model.kernel_(X), inside(points), rtol=1e-9, atol=1e-9 * np.abs(inside(points)).max())


def its_kernel_is_one(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(estimator, X, y)
    wraps = getattr(model, "estimator", None) is not None
    for name in ["kernel_"] * (not has_kernel(model)) + ["effective_rank_"] * wraps:
        assert not hasattr(model, name)
        with pytest.raises(ck.InvalidInputError, match=r"a localized kernel belongs to Voronoi cells .* or to one"):
            getattr(model, name)
    assert wraps or 1.0 - 1e-9 <= model.effective_rank_ <= M
    if not has_kernel(model):
        return
    K = model.kernel_(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(K)[0] > -1e-6 * np.trace(K)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.kernel_(X), K)


def learns_several_classes(estimator, kind, monkeypatch):
    X, y = table(kind, classes=3)
    model = quietly(estimator, X, y)
    F = model.decision_function(X)
    assert F.shape == (M, 3)
    assert model.classes_.tolist() == ["low", "middle", "top"]
    assert model.predict(X).tolist() == model.classes_[F.argmax(axis=1)].tolist()
    assert model.score(X, y) > 0.6


def learns_several_outputs(estimator, kind, monkeypatch):
    X, y = table(kind)
    Y, units = np.column_stack([y, 3.0 - y, X[:, 0]]), np.array([1024.0, 1.0, 1.0 / 128.0])
    model = quietly(estimator, X, Y)
    assert model.predict(X[:7]).shape == (7, 3)
    assert model.score(X, Y) > 0.6
    np.testing.assert_allclose(quietly(clone(estimator), X, Y * units).predict(X), model.predict(X) * units, rtol=1e-6)
    column = quietly(clone(estimator), X, y[:, None])
    assert column.predict(X).shape == (M, 1)


def weight_2_is_a_row_given_twice(estimator, kind, monkeypatch):
    X, y = table(kind)
    weights = np.random.default_rng(1).integers(0, 4, M)
    order = np.random.default_rng(2).permutation(weights.sum())
    weighted = quietly(clone(estimator), X, y, sample_weight=weights)
    repeated = quietly(clone(estimator), X.repeat(weights, axis=0)[order], y.repeat(weights)[order])
    same(weighted, repeated, X)


def weight_0_is_an_absent_row(estimator, kind, monkeypatch):
    X, y = table(kind)
    kept = np.arange(M) % 5 > 0
    plain = quietly(clone(estimator), X[kept], y[kept])
    for odd, target in [(1e3, y[0]), (np.nan, np.nan if kind == "numbers" else "")]:
        X[~kept], y[~kept] = odd, target
        same(quietly(clone(estimator), X, y, sample_weight=kept.astype(float)), plain, X[kept])


def weights_say_something(estimator, kind, monkeypatch):
    X, y = table(kind)
    y[:2] = y[1::-1]
    plain = quietly(clone(estimator), X, y)
    if kind == "numbers" and np.allclose(plain.predict(X), y, rtol=1e-3):
        return  # it meets every target whatever the weights
    weighted = quietly(clone(estimator), X, y, sample_weight=np.where(np.arange(M) < 10, 100.0, 1.0))
    assert not np.allclose(values(weighted, X), values(plain, X), rtol=1e-3)


def class_weights_are_weights_of_rows(estimator, kind, monkeypatch):
    X, y = table(kind)
    chosen = clone(estimator).set_params(class_weight={"low": 2.0, "middle": 0.5})
    by_hand = np.where(y == "low", 2.0, 0.5)
    same(quietly(chosen, X, y), quietly(clone(estimator), X, y, sample_weight=by_hand), X)
    X, y = X[y.argsort()[: M // 2 + 8]], np.sort(y)[: M // 2 + 8]
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    balanced = quietly(clone(estimator).set_params(class_weight="balanced"), X, y)
    same(balanced, quietly(clone(estimator), X, y, sample_weight=(len(y) / (2.0 * counts))[codes]), X)
    for wrong, said in [
        ({"nobody": 1.0}, "class_weight names the class 'nobody'"),
        ({"low": -1.0}, r"class_weight\['low'\] must be a finite number >= 0"),
        ({"low": 0.0, "middle": 0.0}, "class_weight is 0 for every class"),
        ({"low": 0.0}, "one class only"),
        ("even", "class_weight must be None, 'balanced' or a dict"),
    ]:
        with pytest.raises(ck.InvalidInputError, match=said):
            clone(estimator).set_params(class_weight=wrong).fit(X, y)


def a_class_of_weight_0_is_absent(estimator, kind, monkeypatch):
    X, y = table(kind, classes=3)
    without = quietly(clone(estimator).set_params(class_weight={"middle": 0.0}), X, y)
    assert without.classes_.tolist() == ["low", "top"]
    kept = y != "middle"
    same(without, quietly(clone(estimator), X[kept], y[kept]), X)


def verification_agrees_with_the_certificate(estimator, kind, monkeypatch):
    solution = quietly(estimator, *table(kind)).solution_
    stored, again = (np.array(astuple(c)) for c in (solution.certificate, solution.verify()))
    np.testing.assert_allclose(again, stored, rtol=1e-6, atol=1e-6 * np.abs(stored).max())


def catching(estimator, X, y):
    """Fit; an interrupt that gets out fails the test instead of ending all tests."""
    try:
        return estimator.fit(X, y)
    except KeyboardInterrupt:
        return pytest.fail("the interrupt was not caught")


def an_interrupt_keeps_the_best_so_far(estimator, kind, monkeypatch):
    X, y = table(kind)
    shown = []

    def interrupting(self, line):
        shown.append(line)
        if not isinstance(line, str) or len(shown) > 1:  # the first words announce work, they do not report it
            monkeypatch.undo()
            raise KeyboardInterrupt

    for method in ("record", "note"):
        monkeypatch.setattr(progress.Table, method, interrupting)
    with pytest.warns(ck.ConvexKernelsWarning, match=r"INTERRUPTED|interrupted"):
        model = catching(estimator.set_params(verbose=True), X, y)
    assert model.solution_.status is ck.Status.INTERRUPTED
    assert len(shown) >= 1
    assert model.predict(X).shape == y.shape
    assert kind == "labels" or np.isfinite(model.predict(X)).all()


def a_fit_that_comes_to_no_end_leaves_the_model_as_it_was(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(estimator, X, y)
    had, said = dict(vars(model)), model.predict(X)

    def interrupted(self, rows, table):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(model), "_finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quietly(model.set_params(max_time=2.0), X[5:, :1], y[5:])
    had["max_time"] = 2.0
    assert vars(model).keys() == had.keys()
    assert all(vars(model)[name] is value or name == "max_time" for name, value in had.items())
    np.testing.assert_array_equal(model.predict(X), said)


# Parameters and rows; the seconds that they mean are asserted below.
LIMITS = [("auto", 5), ("auto", 2000), ("auto", 10_000), (None, 10_000), (7.0, 10_000)]


def a_fit_goes_on_from_its_checkpoint(estimator, kind, monkeypatch):
    X, y = table(kind)
    monkeypatch.setattr("convexkernels.checkpoint.EVERY", 0.0)
    write, written = Checkpoint.write, []

    def interrupted(checkpoint):
        write(checkpoint)
        written.append(len(checkpoint.numbers))
        if len(written) == 4:
            raise KeyboardInterrupt

    with TemporaryDirectory() as folder:
        file = Path(folder) / "fit.npz"
        model = clone(estimator).set_params(checkpoint=file)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=None)
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Checkpoint, "write", interrupted)
            quietly(clone(model), X, y)
        assert written
        again = quietly(clone(model), X, y)
        plain = quietly(clone(estimator), X, y).solution_.certificate
        if isinstance(plain, ck.DualityGap):
            assert again.solution_.certificate.relative_gap <= max(plain.relative_gap, getattr(model, "tol", 1e-4))
        # All is known now: nothing is searched or trained again, and chance has no say.
        ended = quietly(clone(model), X, y)
        assert ended.solution_.n_iter == 0 or ended.solution_.history == again.solution_.history
        assert ended.solution_.value <= again.solution_.value * (1.0 + 1e-9)
        same(ended, again, X)
        kept = file.read_bytes()
        with pytest.raises(ck.InvalidInputError, match="is one of other rows, targets or weights"):
            clone(model).fit(X[1:], y[1:])
        assert file.read_bytes() == kept
        file.write_text("a,b\n1,2\n")
        with pytest.raises(ck.InvalidInputError, match="exists, but is no checkpoint"):
            clone(model).fit(X, y)
        assert file.read_text() == "a,b\n1,2\n"
        for wrong in (Path(folder) / "no" / "fit.npz", folder, 5):
            with pytest.raises(ck.InvalidInputError, match="checkpoint"):
                clone(model).set_params(checkpoint=wrong).fit(X, y)


def a_time_limit_ends_soon_with_a_model(estimator, kind, monkeypatch):
    X, y = table(kind)
    full = quietly(clone(estimator), X, y)  # compiles
    began = time.process_time()
    model = quietly(clone(estimator).set_params(max_time=1e-6), X, y)
    assert time.process_time() - began < SOON
    assert model.n_iter_ <= full.n_iter_
    # A search of few steps may end within the moment that it has in any case.
    ended = model.solution_.certificate.holds(1e-2) or model.n_iter_ == full.n_iter_
    assert model.solution_.status is ck.Status.TIME_LIMIT or ended
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ck.ConvexKernelsWarning)
        again = clone(estimator).set_params(max_time=1e-6).fit(X, y)
    assert len(said) == 1 or again.solution_.status is not ck.Status.TIME_LIMIT
    assert np.isfinite(values(model, X)).all()
    for wrong in (0.0, -1.0, "1"):
        with pytest.raises(ck.InvalidInputError, match="max_time must be a finite number > 0"):
            clone(estimator).set_params(max_time=wrong).fit(X, y)
    limits = [clone(estimator).set_params(max_time=given)._clock(rows).max_time for given, rows in LIMITS]
    assert limits == [55.0, 55.0, 275.0, np.inf, 7.0]


def what_the_limit_has_ended_is_said(estimator, kind, monkeypatch):
    X, y = table(kind)
    free = quietly(clone(estimator).set_params(max_time=None), X, y)
    for limit in (0.03, 0.1, 0.3):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ck.ConvexKernelsWarning)
            model = clone(estimator).set_params(max_time=limit).fit(X, y)
        limited = [one for one in said if "max_time" in str(one.message) or "TIME_LIMIT" in str(one.message)]
        assert len(limited) <= 1
        chosen = [getattr(getattr(fitted, "selection_", None), "chosen", None) for fitted in (free, model)]
        assert limited or repr(chosen[0]) == repr(chosen[1])


def it_says_how_far_it_is(estimator, kind, monkeypatch):
    X, y = table(kind)
    written = []
    monkeypatch.setattr(progress.Table, "_write", lambda self, text: written.append(text))
    monkeypatch.setattr("convexkernels.clock.EVERY", 0.0)  # report every step
    model = quietly(clone(estimator).set_params(verbose=True), X, y)
    assert written
    if model.n_iter_ > 1:  # else there is a closed form
        assert re.search(r"iter +upper +lower +rel. gap +time +left|, about \S+ s left", "\n".join(written)), written
    written.clear()
    same(quietly(clone(estimator), X, y), model, X)
    assert not written


def a_seed_decides_everything(estimator, kind, monkeypatch):
    X, y = table(kind)
    before = X.copy(), y.copy()
    first, second = quietly(clone(estimator), X, y), quietly(clone(estimator), X, y)
    np.testing.assert_array_equal(values(first, X), values(second, X))
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def stored_models_predict_the_same(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(estimator, X, y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(values(back, X), values(model, X))
    assert back.solution_.status is model.solution_.status
    assert repr(clone(back)) == repr(clone(model))


def data_frames_are_tables_with_names(estimator, kind, monkeypatch):
    X, y = table(kind)
    plain = quietly(clone(estimator), X, y)
    frames = [pd.DataFrame(X, columns=["a", "b"])]
    try:
        import polars as pl
    except ImportError:
        pass
    else:
        frames.append(pl.DataFrame(X, schema=["a", "b"]))
        with pytest.raises(ck.InvalidInputError, match=r"^X is a LazyFrame, .* pass X.collect\(\)"):
            clone(estimator).fit(frames[-1].lazy(), y)
    for frame in frames:
        named = quietly(clone(estimator), frame, y)
        assert named.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_array_equal(values(named, frame), values(plain, X))
        with pytest.raises(ck.InvalidInputError, match="feature names"):
            named.predict(frame[["b", "a"]])


TWO_WORDS = np.array(["one", "two"] * (M // 2))
NO_NUMBERS = [TWO_WORDS, TWO_WORDS.astype(object), TWO_WORDS.tolist(), pd.Series(TWO_WORDS, dtype="category")]
GAPS = [[1.0] * (M - 1) + [np.nan], pd.DataFrame({"y": [1.0] * (M - 1) + [pd.NA]}, dtype="Float64")]
BAD_NUMBERS = [
    *(("y must hold numbers", (np.zeros((M, 1)), y)) for y in NO_NUMBERS),
    *((r"y has a missing or infinite value at row 39 \(nan\); drop", (np.zeros((M, 1)), y)) for y in GAPS),
]


def bad_tables_are_refused_by_name(estimator, kind, monkeypatch):
    X, y = table(kind)
    gap = X.copy()
    gap[3, 1] = np.inf
    words = X.astype(object)
    words[2, 0] = "red"
    for said, arguments in [
        ("minimum of 2 is required", (X[:1], y[:1])),
        (r"X has a missing or infinite value at row 3, column 1", (gap, y)),
        ("column 'x0' does not: it holds 'red' among numbers", (words, y)),
        ("y has 3 entries, but X has 40 rows", (X, y[:3])),
        (r"X must be a table of shape \(rows, features\), got None", (None, y)),
        (r"X must be a table of shape \(rows, features\), got shape \(40,\) \(ndarray\)", (X[:, 0], y)),
        ("X cannot become an array", ([[1.0], [1.0, 2.0]], y)),
        ("X holds complex numbers", (1j * X, y)),
        ("y is a list that cannot become an array of targets", (X, [[1.0, 2.0], *y[1:]])),
        ("y has a missing (or infinite )?value at row 2", (X, np.ma.masked_array(y, np.arange(M) == 2))),
        (r"sample_weight has shape \(3,\)", (X, y, np.ones(3))),
        ("sample_weight must be finite and >= 0, got -1.0 at row 1", (X, y, np.where(np.arange(M) == 1, -1.0, 1.0))),
        ("sample_weight is zero everywhere", (X, y, np.zeros(M))),
        *(BAD_NUMBERS if kind == "numbers" else []),
    ]:
        with pytest.raises(ck.InvalidInputError, match=said):
            clone(estimator).fit(*arguments)
    gap[3, 1] = np.nan
    named = quietly(clone(estimator), pd.DataFrame(X, columns=["age", "income"]), y)
    with pytest.raises(ck.InvalidInputError, match=r"^X has missing values in income, the first in row 3, .* Impute"):
        named.predict(pd.DataFrame(gap, columns=["age", "income"]))
    with pytest.raises(ck.InvalidInputError, match=r"X is a sparse matrix of shape \(40, 2\); .* X.toarray\(\)"):
        clone(estimator).fit(csr_array(X), y)
    model, sparse = quietly(clone(estimator), X, y), csr_array(X[:3])
    refused = pytest.raises(ck.InvalidInputError, match=r"X is a sparse matrix of shape \(3, 2\); .* X.toarray\(\)")
    for read in [model.predict, *([model.kernel_, model.kernel_.diag] if has_kernel(model) else [])]:
        with refused:
            read(sparse)


def dask_tables_are_taken_or_refused_by_name(estimator, kind, monkeypatch):
    X, y = table(kind)
    there = da.from_array(X, chunks=20)
    refused = pytest.raises(ck.InvalidInputError, match=r"^X is a Dask Array, and .* works in memory")
    try:
        found = quietly(clone(estimator), there, da.from_array(y, chunks=20)).predict(X)
    except ck.InvalidInputError:
        with refused:
            clone(estimator).fit(there, y)
        model = quietly(clone(estimator), X, y)
        for read in [model.predict, *([model.kernel_] if has_kernel(model) else [])]:
            with refused:
                read(there)
        with pytest.raises(ck.InvalidInputError, match=r"^y is a Dask Array, and .* works in memory"):
            model.score(X, da.from_array(y, chunks=20))
    else:
        np.testing.assert_array_equal(found, quietly(clone(estimator), X, y).predict(X))


def categories_and_missing_values_are_learned_from(estimator, kind, monkeypatch):
    X, y = table(kind)
    gone = np.arange(M) % 9 == 0
    sides = np.where(X[:, 0] > 0, "right", "left")
    frame = pd.DataFrame({"a": np.where(gone, np.nan, X[:, 0]), "side": sides, "b": X[:, 1]})
    model = quietly(clone(estimator), frame, y)
    assert model.columns_.encoded_names == ["a", "a is missing", "side=left", "side=right", "b"]
    by_hand = np.column_stack(
        [np.where(gone, np.median(X[~gone, 0]), X[:, 0]), gone, X[:, 0] <= 0, X[:, 0] > 0, X[:, 1]]
    )
    with monkeypatch.context() as told:  # numbers by hand do not say that two of them are one column
        told.setattr(type(estimator), "_encoded_categories", lambda self: [[2, 3]])
        other = quietly(clone(estimator), by_hand, y)
    np.testing.assert_allclose(values(model, frame), values(other, by_hand), rtol=1e-6)
    np.testing.assert_array_equal(values(pickle.loads(pickle.dumps(model)), frame), values(model, frame))
    new = pd.DataFrame({"a": [0.3, None], "side": ["middle", None], "b": [3.0, 4.0]})
    assert np.isfinite(values(model, new)).all()
    with pytest.warns(ck.ConvexKernelsWarning, match=r"^There are gaps in column 'b' in 1 of 2 rows, where"):
        model.predict(new.assign(b=[3.0, None]))
    if has_kernel(model):
        K, encoded = model.kernel_(frame, new), model.columns_.encoded
        np.testing.assert_array_equal(K, model.kernel_(encoded(frame), encoded(new)))
        np.testing.assert_array_equal(K, clone(model.kernel_)(frame.to_numpy(), new.to_numpy()))
        np.testing.assert_allclose(model.kernel_.diag(new), np.diag(model.kernel_(new)), atol=1e-9)
        np.testing.assert_array_equal(model.kernel_.linearized(new)[0], model.kernel_(new))
        with pytest.raises(ck.InvalidInputError, match=r"^Y must have the columns of the training table, \['a'"):
            model.kernel_(frame, new[["side", "a", "b"]])
        with pytest.raises(ck.InvalidInputError, match="rows of one length"):
            model.kernel_([[1.0, "left", 2.0], [3.0]])


def a_constant_target_is_answered_or_refused(estimator, kind, monkeypatch):
    X, _ = table(kind)
    if kind == "labels":
        with pytest.raises(ck.InvalidInputError, match="one class only"):
            estimator.fit(X, np.full(M, "low"))
        return
    model = quietly(estimator, X, np.full(M, 3.25))
    np.testing.assert_allclose(model.predict(X), 3.25, rtol=1e-3)


def equal_rows_are_learned_from(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(clone(estimator), np.vstack([X, X[::-1]]), np.concatenate([y, y[::-1]]))
    same(model, quietly(clone(estimator), X, y, sample_weight=np.full(M, 2.0)), X)
    alike = quietly(clone(estimator), np.column_stack([X, np.full(M, 7.0)]), y)
    assert np.isfinite(values(alike, np.column_stack([X, np.full(M, 7.0)]))).all()


def probabilities_are_those_of_classes(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(clone(estimator), X, y)
    P, f = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(P))
    assert (np.diff(P[np.argsort(f), 1]) >= 0.0).all()
    assert P[np.argmax(f), 1] > P[np.argmin(f), 1]
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), P)
    np.testing.assert_allclose(quietly(clone(estimator), X, y).predict_proba(X[:3]), P[:3], rtol=1e-9)
    several = quietly(clone(estimator), *table(kind, classes=3))
    P = several.predict_proba(X)
    assert P.shape == (M, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(P.argmax(axis=1), several.decision_function(X).argmax(axis=1))


def intervals_hold_their_share(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(clone(estimator), X, y)
    low, high = model.predict_interval(X, coverage=0.8).T
    assert (low <= high).all()
    # The rows were learned from: functions are nearer to them than to others.
    assert np.mean((low <= y) & (y <= high)) >= 0.8
    assert np.mean((low <= model.predict(X)) & (model.predict(X) <= high)) >= 0.9
    wider = model.predict_interval(X, coverage=0.95)
    assert (wider[:, 0] <= low).all()
    assert (wider[:, 1] >= high).all()
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_interval(X, coverage=0.95), wider)
    several = quietly(clone(estimator), X, np.column_stack([y, 3.0 - y]))
    assert several.predict_interval(X[:7]).shape == (7, 2, 2)
    for wrong, said in [
        (0.99, "coverage is 0.99, but"),
        (1.0, "> 0 and < 1, got 1.0. It is a share"),
        (0.0, "coverage must be a finite number > 0"),
    ]:
        with pytest.raises(ck.InvalidInputError, match=said):
            model.predict_interval(X, coverage=wrong)


def rows_left_out_are_predicted_or_refused(estimator, kind, monkeypatch):
    X, y = table(kind)
    order = np.random.default_rng(3).permutation(M)
    weights = np.where(np.arange(M) % 7 == 0, 0.0, 1.0 + np.arange(M) % 2)
    model = quietly(clone(estimator), X[order], y[order], sample_weight=weights[order])
    kept, name = order[weights[order] > 0.0], type(estimator).__name__
    if getattr(estimator, "loss", None) != "least_squares" and not name.endswith("Ridge"):
        assert not hasattr(model, "loo_predictions_")
        with pytest.raises(ck.InvalidInputError, match=f"{name} has no loo_predictions_: only least squares"):
            _ = model.loo_score_
        return
    found = model.loo_predictions_
    assert found.shape == kept.shape
    measure = accuracy_score if kind == "labels" else r2_score
    assert model.loo_score_ == pytest.approx(measure(y[kept], found, sample_weight=weights[kept]))
    assert model.loo_score_ <= model.score(X[kept], y[kept], weights[kept]) + 0.05
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).loo_predictions_, found)


def rows_that_matter_are_named(estimator, kind, monkeypatch):
    X, y = table(kind)
    weights = np.where(np.arange(M) % 7 == 0, 0.0, 1.0)
    model = quietly(estimator, X, y, sample_weight=weights)
    if hasattr(model, "initial_kernel_"):
        assert not hasattr(model, "support_")
        with pytest.raises(ck.InvalidInputError, match="has no support_: its functions are sums of weighted features"):
            _ = model.support_coefficients_
        return
    rows, coefficients = model.support_, model.support_coefficients_
    assert (np.diff(rows) > 0).all()
    assert set(rows) <= set(np.flatnonzero(weights))
    assert coefficients.shape == rows.shape
    assert coefficients.all()
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.support_coefficients_, coefficients)
    # What a row says is nearly what its target is, where it counts.
    if kind == "labels":
        top = np.abs(coefficients).argsort()[::-1][:3]
        assert ((coefficients[top] > 0.0) == (y[rows[top]] == model.classes_[1])).sum() >= 2


def it_is_described_in_words(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(estimator, pd.DataFrame(X, columns=["width", "height"]), y)
    lines = dict(line.split(maxsplit=1) for line in model.describe().splitlines())
    assert lines["certificate"] == str(model.solution_.certificate)
    assert lines["status"] == model.solution_.status.value
    assert re.match(r"(width|height) \d+ %, (width|height) \d+ %$", lines["relevance"])
    assert ("rank" in lines) == (getattr(model, "estimator", None) is None)
    selection = getattr(model, "selection_", None)
    for parameter, value in ({} if selection is None else selection.chosen).items():
        assert not isinstance(value, float) or f"{parameter}={value:.3g}" in lines["chosen"]
    assert ("rows" in lines) == hasattr(model, "support_")
    if "rows" in lines:
        first = model.support_[np.abs(model.support_coefficients_).argmax()]
        assert re.match(rf"{len(model.support_)} count in the functions, most of all {first}, \d+", lines["rows"])
    assert ("kernels" in lines) == hasattr(model, "weights_")


def what_was_chosen_is_drawn_with_its_curve_or_refused(estimator, kind, monkeypatch):
    X, y = table(kind)
    model = quietly(estimator, X, y)
    if getattr(model, "selection_", None) is None:
        with pytest.raises(ck.InvalidInputError, match=r"nothing to choose|in every cell by itself"):
            plotting.SelectionDisplay.from_estimator(model)
    else:
        *names, found = model.selection_.curve
        columns = [model.selection_.curve[name] for name in (*names, found)]
        assert len({len(column) for column in columns}) == 1
        of_the_curve = {name: value for name, value in model.selection_.chosen.items() if name != "loss"}
        assert set(of_the_curve) <= set(names)
        drawn = plotting.SelectionDisplay.from_estimator(model).plot()
        assert drawn.ax_.get_xlabel() in names
        assert drawn.ax_.get_ylabel() == found
        for name, value in of_the_curve.items():
            assert value in list(model.selection_.curve[name])
    solution = model.solution_
    if not solution.history:
        with pytest.raises(ck.InvalidInputError, match=re.escape(str(solution.certificate))):
            plotting.CertificateDisplay.from_estimator(model)
        return
    bounds, below = plotting.CertificateDisplay.from_estimator(model).plot().ax_
    np.testing.assert_array_equal(bounds.lines[0].get_ydata(), [record.upper for record in solution.history])
    assert isinstance(solution.certificate, ck.DualityGap) or "relative gradient" in bounds.get_title()
    has_bounds = np.isfinite([record.lower for record in solution.history]).any()
    assert below.get_ylabel() == ("relative gap" if has_bounds else "above the least value")
    pyplot.close("all")


def features_that_say_nothing_are_not_relevant(estimator, kind, monkeypatch):
    X, y = table(kind)
    X = np.column_stack([X[:, 0], np.full(M, 4.0), X[:, 1] / 20.0])
    model = quietly(estimator, X, y)
    relevance = model.feature_relevance_
    assert relevance.shape == (3,)
    assert relevance.sum() == pytest.approx(1.0)
    assert relevance[1] == 0.0
    assert relevance[0] > 0.3


class Heard:
    """A callback of scikit-learn that remembers what it was told, and asks to stop after some reports."""

    def __init__(self, most=np.inf):
        self.tasks, self.most, self.fitted = [], most, None

    def setup(self, estimator, context):
        self.tasks.append("setup")

    def teardown(self, estimator, context):
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.tasks.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, metadata=None, fitted_estimator=None):
        if fitted_estimator is not None:
            self.fitted = fitted_estimator, X, metadata
        return len(self.tasks) > self.most


def callbacks_hear_of_the_fit_and_may_end_it(estimator, kind, monkeypatch):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    X, y = table(kind)
    heard, weights = Heard(), np.linspace(1.0, 2.0, M)
    model = quietly(clone(estimator).set_callbacks(heard), X, y, sample_weight=weights)
    assert heard.tasks[:2] == ["setup", "fit"]
    assert heard.tasks[-1] == "teardown"
    fitted, seen, metadata = heard.fitted
    assert seen is X
    assert metadata["sample_weight"] is weights
    np.testing.assert_array_equal(values(fitted, X), values(model, X))
    monkeypatch.setattr("convexkernels.clock.EVERY", 0.0)  # report every step
    hasty = Heard(most=3)
    model = quietly(clone(estimator).set_callbacks(hasty), X, y)
    assert np.isfinite(values(model, X)).all()
    if len(hasty.tasks) > 4:
        assert model.solution_.status is ck.Status.INTERRUPTED
    assert len(hasty.tasks) <= len(heard.tasks) + 20
    clone(model)
    refused = Heard()
    with pytest.raises(ck.InvalidInputError, match="infinite"):
        clone(estimator).set_callbacks(refused).fit(np.full_like(X, np.inf), y)
    assert refused.tasks == ["setup", "fit", "teardown"]


def metadata_is_routed(estimator, kind, monkeypatch):
    X, y = table(kind)
    weights = np.where(np.arange(M) < 10, 5.0, 1.0)
    alone = quietly(clone(estimator), StandardScaler().fit_transform(X), y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        line = make_pipeline(StandardScaler(), clone(estimator).set_fit_request(sample_weight=True))
        line[0].set_fit_request(sample_weight=False)
        quietly(line, X, y, sample_weight=weights)
    np.testing.assert_array_equal(values(line, X), values(alone, line[:-1].transform(X)))


def transformed_tables_are_what_was_asked_for(estimator, kind, monkeypatch):
    if not hasattr(estimator, "transform"):
        return
    X, y = table(kind)
    model = quietly(estimator, X, y)
    plain = model.transform(X[:5])
    framed = model.set_output(transform="pandas").transform(X[:5])
    assert framed.columns.tolist() == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(framed.to_numpy(), plain)


def pictures_lead_to_the_documentation(estimator, kind, monkeypatch):
    monkeypatch.setattr(notebook, "documentation_site", lambda: "https://example.org/site")
    page = f"https://example.org/site/api/convexkernels.{type(estimator).__name__}.html"
    assert page in estimator._repr_html_()


BOTH = {"labels", "numbers"}
# contract -> kinds of targets that it is about
CONTRACTS = {
    keeps_to_a_dozen_documented_parameters: BOTH,
    learns_without_a_word: BOTH,
    walks_through_the_same_rooms: BOTH,
    its_kernel_is_one: BOTH,
    learns_several_classes: {"labels"},
    learns_several_outputs: {"numbers"},
    weight_2_is_a_row_given_twice: BOTH,
    weight_0_is_an_absent_row: BOTH,
    weights_say_something: BOTH,
    class_weights_are_weights_of_rows: {"labels"},
    a_class_of_weight_0_is_absent: {"labels"},
    verification_agrees_with_the_certificate: BOTH,
    an_interrupt_keeps_the_best_so_far: BOTH,
    a_fit_that_comes_to_no_end_leaves_the_model_as_it_was: BOTH,
    a_fit_goes_on_from_its_checkpoint: BOTH,
    a_time_limit_ends_soon_with_a_model: BOTH,
    what_the_limit_has_ended_is_said: BOTH,
    it_says_how_far_it_is: BOTH,
    a_seed_decides_everything: BOTH,
    stored_models_predict_the_same: BOTH,
    data_frames_are_tables_with_names: BOTH,
    bad_tables_are_refused_by_name: BOTH,
    dask_tables_are_taken_or_refused_by_name: BOTH,
    categories_and_missing_values_are_learned_from: BOTH,
    a_constant_target_is_answered_or_refused: BOTH,
    equal_rows_are_learned_from: BOTH,
    probabilities_are_those_of_classes: {"labels"},
    intervals_hold_their_share: {"numbers"},
    rows_left_out_are_predicted_or_refused: BOTH,
    rows_that_matter_are_named: BOTH,
    it_is_described_in_words: BOTH,
    what_was_chosen_is_drawn_with_its_curve_or_refused: BOTH,
    features_that_say_nothing_are_not_relevant: BOTH,
    callbacks_hear_of_the_fit_and_may_end_it: BOTH,
    metadata_is_routed: BOTH,
    transformed_tables_are_what_was_asked_for: BOTH,
    pictures_lead_to_the_documentation: BOTH,
}


def cases():
    found = []
    for name, (kind, _) in ESTIMATORS.items():
        for contract, kinds in CONTRACTS.items():
            if kind in kinds:
                found.append(pytest.param(name, contract, id=f"{name}-{contract.__name__}"))
    return found


@pytest.mark.parametrize(("name", "contract"), cases())
def test_contract(name, contract, monkeypatch):
    kind, make = ESTIMATORS[name]
    contract(make(), kind, monkeypatch)


@parametrize_with_checks([make() for _, make in ESTIMATORS.values()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
