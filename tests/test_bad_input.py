"""What is refused before work starts, by name, value and remedy; and what is odd but has a right answer."""

import re
import time
import warnings
from datetime import date
from math import comb

import dask.array as da
import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_moons
from sklearn.dummy import DummyClassifier
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels.estimators.columns import Columns
from convexkernels.estimators.intervals import margins

NAMES = np.arange(60)[:, None].astype(str).astype(object) + "th"
X, Y = make_moons(60, noise=0.2, random_state=0)


def refused(error, *words):
    """Expect `error` with a message that has all `words`."""
    return pytest.raises(error, match="(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words))


def changed(value, dtype=float, row=3, column=1):
    table = X.astype(dtype)
    table[row, column] = value
    return table


# --- refused ----------------------------------------------------------------------------------

RAGGED = [[1.0, 2.0]] * 59 + [[1.0, 2.0, 3.0]]
NO_TABLES = {
    "None": (None, "got None. Pass an array"),
    "a number": (3.0, "got 3.0. Pass an array"),
    "a text": ("table.csv", "got 'table.csv'. Pass an array"),
    "a set": ({1, 2}, "got {1, 2}. Pass an array"),
    "a generator": ((row for row in X), "got <generator"),
    "a dict": ({"a": X[:, 0]}, "Pass pandas.DataFrame(X)"),
    "records": ([{"a": 1.0}] * 60, "got shape (60,) (list). Pass pandas.DataFrame(X)"),
    "a record array": (np.rec.fromarrays(X.T, names="a,b"), "got shape (60,) (recarray). Pass pandas.DataFrame(X)"),
    "a series": (pandas.Series(X[:, 0]), "got shape (60,) (Series). Pass X.to_frame()"),
    "one dimension": (X[:, 0], "got shape (60,) (ndarray). Reshape your data: one feature with X.reshape(-1, 1)"),
    "three dimensions": (X[:, :, None], "shape (60, 2, 1) (ndarray). Reshape your data, so that every row is a vector"),
}
NO_TARGETS = {
    "ragged": ([1.0] * 59 + [[1.0, 2.0]], "y is a list that cannot become"),
    "sparse": (csr_array(Y[:, None]), "y is a csr_array that cannot become"),
    "complex": (Y + 1j, "Complex data not supported"),
    "a number": (3.0, "y is 3.0; pass one target per row"),
    "a text": ("label", "y is 'label'; pass one target per row"),
    "a dict": ({"a": 1}, "y is {'a': 1}; pass one target per row"),
    "a generator": ((one for one in Y), "y is <generator"),
    "three dimensions": (Y.reshape(60, 1, 1), "y has shape (60, 1, 1); pass one target per row"),
    "no columns": (np.zeros((60, 0)), "y has shape (60, 0); pass one target per row"),
}

MIXED, SPARSE = np.array(["one", *Y[1:].tolist()], dtype=object), pandas.SparseDtype(float, 0.0)
SLIP = np.array([["red"], *([f"{k}.5"] for k in range(59))])
TABLES = {
    "inf": (changed(np.inf), Y, ("X", "row 3, column 1", "inf")),
    "overflow": (changed(1e300), Y, ("X", "1e+300", "rescale")),
    "text among numbers": (SLIP, Y, ("'x0'", "'red' among numbers", "pandas category")),
    "names of rows": (NAMES, Y, ("'x0'", "60 different texts", "Leave the column out")),
    "sparse": (csr_array(X), Y, ("sparse", "toarray()")),
    "no rows": (X[:0], Y[:0], ("0 sample(s)",)),
    "no columns": (X[:, :0], Y, ("0 feature(s)", "Pass the rows and columns")),
    "ragged": (RAGGED, Y, ("X cannot become an array", "inhomogeneous", "pass rows of one length")),
    "mixed names": (pandas.DataFrame(X, columns=["a", 1]), Y, ("['int', 'str']", "convert them all to strings")),
    "dates": (np.full((60, 2), np.datetime64("2020-01-01")), Y, ("X holds dates", "days since a day")),
    "datetime64 among objects": (changed(np.datetime64("2020"), object), Y, ("X holds dates", "days since")),
    "dates among numbers": ([[1.0, date(2020, 1, 1)]] * 60, Y, ("X holds dates", "days since a day")),
    "one row": (X[:1], Y[:1], ("1 sample(s)", "two rows")),
    "one class": (X, np.zeros(60), ("y", "one class only (0.0", "two or more")),
    "short y": (X, Y[:50], ("y has 50 entries", "60 rows", "one target per row")),
    "long y": (X[:50], Y, ("y has 60 entries", "50 rows")),
    "nan in y": (X, np.where(np.arange(60) == 5, np.nan, Y), ("y has a missing", "at row 5 (nan); drop",)),
    "inf in y": (X, np.where(np.arange(60) == 5, np.inf, Y), ("y has a missing or", "at row 5 (inf); drop",)),
    "NA among whole numbers": (X, pandas.Series([*Y[1:], None], dtype="Int64"), ("y has a missing", "row 59")),
    "NA among bools": (X, pandas.Series([*Y[1:], None], dtype="boolean"), ("y has a missing", "row 59")),
    "masked bools": (X, np.ma.masked_array(Y > 0, np.arange(60) == 5), ("y has a missing", "row 5 (nan)")),
    "masked labels": (X, np.ma.masked_array(Y, np.arange(60) == 5), ("y has a missing", "row 5 (nan)")),
    "masked texts": (X, np.ma.masked_array(Y.astype(str), np.arange(60) == 5), ("y has a missing value at row 5",)),
    "NaT in y": (X, pandas.to_datetime([*["2020"] * 30, *["2021"] * 29, None]), ("y has a missing value", "59 (NaT)")),
    "labels of a kind": (X, [date(2020, 1, 1 + one) for one in Y], ("y must hold class labels", "Pass text")),

    "targets": (X, X[:, 0], ("y must hold class labels", "continuous")),
    "None in y": (X, [None, *Y[1:]], ("y has a missing value at row 0 (None)", "drop")),
    "NA in y": (X, pandas.Series([*Y[1:], pandas.NA]), ("y has a missing value at row 59 (<NA>)",)),
    "a large whole number": (changed(10**400, object), Y, ("Column 'x1' holds int objects", "neither numbers nor")),
    "complex among objects": (changed(1j, object), Y, ("X holds complex numbers", "X.real")),
    "complex in a frame": (pandas.DataFrame(changed(1j, object)), Y, ("holds complex objects (1j)", "leave the")),
    "an object": (changed({}, object), Y, ("X must hold numbers only, but column 1 does not", "'dict'")),
    "text among labels": (X, [1, "b"] * 30, ("y holds labels", "int and str", "text")),
    "labels without an order": (X, MIXED, ("y holds labels", "int and str", "text")),
    "sparse columns": (pandas.DataFrame(X).astype(SPARSE), Y, ("sparse", "X.sparse.to_dense()")),
    "two columns of y": (X, np.column_stack([Y, Y]), ("y should be a 1d array", "(60, 2)")),
    "complex": (X + 1j, Y, ("X holds complex numbers", "Complex data not supported", "X.real")),
}  # fmt: skip
TABLES |= {name: (table, Y, ("X must be a table", said)) for name, (table, said) in NO_TABLES.items()}
TABLES |= {f"y: {name}": (X, y, (said, "of shape (60,)")) for name, (y, said) in NO_TARGETS.items()}


@pytest.mark.parametrize("name", TABLES)
def test_estimator_refuses_tables(name):
    table, labels, words = TABLES[name]
    with refused(ck.InvalidInputError, *words):
        ck.TessellatedSVC().fit(table, labels)


@pytest.mark.parametrize("name", NO_TARGETS)
def test_regressors_refuse_targets(name):
    targets, said = NO_TARGETS[name]
    with refused(ck.InvalidInputError, said, "of shape (60,)"):
        ck.TessellatedRidge().fit(X, targets)


DAYS = pandas.Series(pandas.to_datetime(["2020-01-01", "2020-02-03"])[Y])
DATES = {
    "datetime64": DAYS.to_numpy(),
    "timedelta64": (DAYS - DAYS.min()).to_numpy(),
    "a series": DAYS,
    "with a time zone": DAYS.dt.tz_localize("UTC"),
    "objects": [day.date() for day in DAYS],
}


@pytest.mark.parametrize("name", DATES)
def test_regressors_refuse_dates(name):
    with refused(ck.InvalidInputError, "y holds dates or times", "days since a day"):
        ck.TessellatedRidge().fit(X, DATES[name])


@pytest.mark.parametrize("name", ["datetime64", "timedelta64", "a series"])
def test_classes_may_be_dates(name):
    model = ck.TessellatedSVC(C=1.0, tol=1e-2).fit(X, DATES[name])
    found = model.predict(X)
    assert found.dtype == DATES[name].dtype
    assert model.score(X, DATES[name]) == np.mean(found == DATES[name]) > 0.8


@pytest.mark.parametrize("name", [*NO_TABLES, "ragged", "complex"])
def test_new_points_that_are_no_table_are_refused(name):
    table, _, (*words,) = TABLES[name]
    with refused(ck.InvalidInputError, "X", *words):
        ck.TessellatedSVC(C=1.0, tol=1e-2).fit(X, Y).predict(table)


def test_masked_entries_of_points_are_missing():
    masked = np.ma.masked_array(X, np.arange(120).reshape(60, 2) % 7 == 3)
    for table, gaps in [
        (masked, masked.filled(np.nan)),
        (masked.round().astype(int), masked.round().filled(np.nan)),
        (np.ma.masked_array(masked.data.astype(object), masked.mask), masked.filled(np.nan)),
    ]:
        found, expected = (ck.TessellatedSVC(C=1.0, tol=1e-2).fit(one, Y) for one in (table, gaps))
        assert found.columns_.encoded_names == ["x0", "x0 is missing", "x1", "x1 is missing"]
        np.testing.assert_array_equal(found.decision_function(table), expected.decision_function(gaps))
    plain = ck.TessellatedSVC(C=1.0, tol=1e-2).fit(np.ma.masked_array(X), Y)
    assert plain.columns_ is None
    with refused(ck.InvalidInputError, "X has missing values in x0, x1, the first in row 1, column 1"):
        plain.predict(masked)
    with refused(ck.InvalidInputError, "X has a missing or infinite value at row 1, column 1 (nan)"):
        ck.Gaussian()(masked)


def test_rows_in_a_list_or_a_tuple_are_an_array_of_objects():
    rows = [(x, "red" if k % 3 else "blue") for k, x in enumerate(X[:, 0].tolist())]
    rows[4:6] = [(float("nan"), "red"), (1.0, float("nan"))]
    tables = [rows, tuple(rows), [list(row) for row in rows], np.array(rows, dtype=object)]
    models = [ck.TessellatedSVC(C=1.0, tol=1e-2).fit(table, Y) for table in tables]
    for model, table in zip(models, tables, strict=True):
        assert model.columns_.encoded_names == ["x0", "x0 is missing", "x1=blue", "x1=red", "x1 is missing"]
        np.testing.assert_array_equal(model.decision_function(table), models[-1].decision_function(tables[-1]))


KINDS = {
    "text": np.array(["1", "2", "x"])[np.arange(60) % 3],
    "digits": pandas.Categorical(np.array(["1", "2", "3"])[np.arange(60) % 3]),
    "leading zeros": pandas.Categorical(np.array(["01", "02", "10"])[np.arange(60) % 3]),
    "whole numbers": pandas.Categorical(np.arange(60) % 3),
    "numbers": pandas.Categorical(0.5 * (np.arange(60) % 3)),
    "bools": pandas.Categorical(np.arange(60) % 3 == 0),
    "intervals": pandas.cut(X[:, 1], 3),
}


def tables_of(column):
    return pandas.DataFrame({"x": X[:, 0], "kind": column})


@pytest.mark.parametrize("name", KINDS)
def test_categories_are_known_again_after_a_file(name, tmp_path):
    table = tables_of(KINDS[name])
    table.to_csv(tmp_path / "table.csv", index=False)
    again = pandas.read_csv(tmp_path / "table.csv")
    columns = Columns.of(table, np.arange(60))
    for changed_kind in (
        again,
        again.astype({"kind": "category"}),
        again.astype({"kind": object}),
        # Text is not taken for other text.
        again if name == "leading zeros" else again.astype({"kind": str}),
        tables_of(again["kind"].astype(str).str.lower()) if name == "bools" else again,
    ):
        np.testing.assert_array_equal(columns.encoded(changed_kind), columns.encoded(table))
    columns = Columns.of(again.astype({"kind": "category"}), np.arange(60))
    np.testing.assert_array_equal(columns.encoded(table), columns.encoded(again))


def test_categories_of_another_type_are_refused_where_they_say_nothing():
    columns = Columns.of(tables_of(np.array(["u", "v"])[np.arange(60) % 2]), np.arange(60))
    for rows in (1, 60):
        with refused(ck.InvalidInputError, "'kind' held categories such as 'u', 'v'", "now it holds 7", "same type"):
            columns.encoded(tables_of(7)[:rows])
    assert not columns.encoded(tables_of(None))[:, 1:].any()
    columns = Columns.of(tables_of(np.array(["1", "01", "u"])[np.arange(60) % 3]), np.arange(60))
    with refused(ck.InvalidInputError, "'kind' held '01' and '1'", "1.0, which it holds now, may be both", "same type"):
        columns.encoded(tables_of(1))
    np.testing.assert_array_equal(columns.encoded(tables_of("1"))[0, 1:], [0.0, 1.0, 0.0])


def test_a_whole_column_of_unseen_categories_is_warned_of():
    table = tables_of(np.array(["red", "blue"])[np.arange(60) % 2])
    model = ck.TessellatedSVC(C=1.0, tol=1e-2).fit(table, Y)
    for column in (" red", pandas.Categorical(["Red"] * 60)):
        with pytest.warns(ck.ConvexKernelsWarning, match=r"None of the 60 values of column 'kind', .* 'blue', 'red'"):
            model.predict(tables_of(column))
    # These are answered without a word.
    model.predict(tables_of("green")[:1])
    model.predict(pandas.concat([table, tables_of("green")]))
    model.predict(tables_of(None))


def test_what_rows_of_weight_0_hold_is_not_looked_at():
    weights = np.where(np.arange(60) % 10 == 3, 0.0, 1.0)
    kept = weights > 0.0
    for gap in (np.nan, np.inf):
        table = np.where(kept[:, None], X, gap)
        for model, y, odd in [
            (ck.TessellatedRidge(lam=1.0), X[:, 0], gap),
            (ck.TessellatedSVC(C=1.0), Y.astype(float), gap),
            (ck.TessellatedSVC(C=1.0), Y.astype(str).astype(object), None),
        ]:
            targets = np.where(kept, y, odd)
            text = np.where(kept[:, None], X.astype(object), "no number")
            for rows in (table, pandas.DataFrame(table), text, pandas.DataFrame(text)):
                found = model.fit(rows, targets, sample_weight=weights).predict(X)
                np.testing.assert_array_equal(found, model.fit(X[kept], y[kept]).predict(X))
    # Rows that count keep their numbers.
    table[17, 1], targets[8] = np.inf, None
    with refused(ck.InvalidInputError, "X has a missing or infinite value at row 17, column 1"):
        ck.TessellatedSVC().fit(table, Y, sample_weight=weights)
    with refused(ck.InvalidInputError, "y has a missing value at row 8"):
        ck.TessellatedSVC().fit(X, targets, sample_weight=weights)


USES = pytest.mark.parametrize(
    "use",
    [
        lambda table: ck.KernelLearning(ck.Tessellated(), ck.Hinge(), table, Y),
        lambda table: ck.OuterLearning(ck.Trees(2), ck.Hinge(), ck.HeldOut(3), table, Y),
        lambda table: ck.FixedKernel(ck.Gaussian(), ck.LeastSquares(), table, Y),
        lambda table: ck.Gaussian()(table),
        lambda table: ck.FixedKernel(ck.Gaussian(), ck.LeastSquares(), X, Y).solve().decision_function(table),
        lambda table: ck.TessellatedSVC(1.0).fit(X, Y).decision_function(table),
        lambda table: ck.Nystrom(ck.Gaussian(), X)(table),
    ],
)


@USES
def test_sparse_tables_are_refused_by_one_sentence_everywhere(use):
    with refused(ck.InvalidInputError, "X is a sparse matrix", "X.toarray()", "TruncatedSVD"):
        use(csr_array(X))


@USES
def test_dask_tables_are_refused_by_one_sentence_everywhere(use):
    with refused(ck.InvalidInputError, "X is a Dask Array, and", "works in memory", "X.compute()", "kernel="):
        use(da.from_array(X))


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("y", lambda there: ck.KernelLearning(ck.Tessellated(), ck.Hinge(), X, there)),
        ("y", lambda there: ck.OuterLearning(ck.Trees(2), ck.Hinge(), ck.HeldOut(3), X, there)),
        ("y", lambda there: ck.FixedKernel(ck.Gaussian(), ck.LeastSquares(), X, there)),
        (
            "sample_weight",
            lambda there: ck.FixedKernel(ck.Gaussian(), ck.LeastSquares(), X, Y, sample_weight=there),
        ),
        ("landmarks", lambda there: ck.Nystrom(ck.Gaussian(), there[:, None])(X)),
        ("target", lambda there: ck.KernelMatching(ck.Candidates([ck.Gaussian()]), X, there)),
    ],
)
def test_dask_arguments_are_refused_by_name(name, use):
    with refused(ck.InvalidInputError, f"{name} is a Dask Array, and this works in memory", f"{name}.compute()"):
        use(da.from_array(np.asarray(Y, dtype=float)))


def test_estimator_refuses_dates_and_columns_that_changed_their_kind():
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0, 2.5], "color": ["red", "blue", "red", "blue"]})
    with refused(ck.InvalidInputError, "'color'", "dates or times", "days since"):
        ck.TessellatedSVC().fit(frame.assign(color=pandas.Timestamp("2020-01-01")), [0, 1, 0, 1])
    model = ck.TessellatedSVC(tol=1e-2).fit(frame, [0, 1, 0, 1])
    with refused(ck.InvalidInputError, "'size'", "held numbers when", "'large'"):
        model.predict(frame.assign(size="large"))


OBJECTS = {
    "Period": pandas.period_range("2020-01", periods=60, freq="M"),
    "complex": 1j * np.arange(60),
    "list": [[k] for k in range(60)],
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_estimator_refuses_columns_of_other_objects(kind):
    frame = pandas.DataFrame({"size": X[:, 0], "color": OBJECTS[kind]})
    with refused(
        ck.InvalidInputError, "'color'", f"{kind} objects", "neither numbers nor text", "leave the column out"
    ):
        ck.TessellatedSVC().fit(frame, Y)


@pytest.mark.parametrize("columns", [["b", "a"], ["a"], ["a", "b", "c"]])
def test_estimator_says_how_to_pass_the_columns_it_knows(columns):
    frame = pandas.DataFrame(np.column_stack([X, X[:, 0]]), columns=["a", "b", "c"])
    model = ck.TessellatedSVC(C=1.0, tol=1e-2).fit(frame[["a", "b"]], Y)
    with refused(ck.InvalidInputError, "feature names should match", "X[model.feature_names_in_]"):
        model.predict(frame[columns])


GROUPS = np.array(["red", "blue", None], dtype=object)[np.arange(60) % 3]
HALVES = np.array([True, False, None], dtype=object)[np.arange(60) % 3]
MISSING = {
    "object": GROUPS,
    "string": GROUPS,
    "str": GROUPS,
    "string[pyarrow]": GROUPS,
    "category": GROUPS,
    "boolean": HALVES,
    "bool[pyarrow]": HALVES,
    "Int64": HALVES,
    "Float64": HALVES,
}


@pytest.mark.parametrize("dtype", MISSING)
@pytest.mark.parametrize("form", ["frame", "array", "NA in an array"])
def test_missing_values_are_one_thing_in_every_kind_of_column(dtype, form):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    entries = MISSING[dtype]
    column = pandas.Series(entries, dtype="boolean" if entries is HALVES else "object").astype(dtype)
    frame = pandas.DataFrame({"x": X[:, 0], "kind": column})
    table = frame if form == "frame" else frame.to_numpy(dtype=object)
    if form == "NA in an array":
        table[pandas.isna(table)] = pandas.NA
    encoded = Columns.of(table, np.arange(60)).encoded(table)
    seen = ["blue", "red"] if entries is GROUPS else [True]
    value = np.where([entry is None for entry in entries], 0.5, entries == True)  # noqa: E712
    expected = [entries == one for one in seen] if entries is GROUPS else [value]
    np.testing.assert_array_equal(encoded, np.column_stack([X[:, 0], *expected, entries == None]).astype(float))  # noqa: E711


def test_estimators_learn_and_predict_with_missing_values_of_pandas():
    frame = pandas.DataFrame({"x": X[:, 0], "kind": GROUPS, "half": HALVES}).convert_dtypes()
    assert frame["kind"].isna().any()
    assert frame["half"].dtype == "boolean"
    model = ck.TessellatedSVC(C=1.0, tol=1e-2).fit(frame, Y)
    assert len(model.predict(frame)) == 60
    full = ck.TessellatedSVC(C=1.0, tol=1e-2).fit(frame.iloc[np.flatnonzero(GROUPS)], Y[GROUPS != None])  # noqa: E711
    with pytest.warns(ck.ConvexKernelsWarning, match=r"^There are gaps in column '\w+' in \d+ of 60 rows"):
        assert len(full.predict(frame)) == 60


def test_a_few_texts_are_groups_although_some_are_digits():
    grades = np.array(["9", "10", "other"])[np.arange(60) % 3]
    frame = pandas.DataFrame({"grade": grades, "size": X[:, 0]})
    found, expected = (
        ck.TessellatedSVC(C=1.0, tol=1e-2).fit(table, Y) for table in (frame, frame.astype({"grade": "category"}))
    )
    assert found.columns_.encoded_names == ["grade=10", "grade=9", "grade=other", "size"]
    digits = frame[frame.grade != "other"]  # alone they could be numbers
    np.testing.assert_array_equal(found.decision_function(digits), expected.decision_function(digits))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_estimator_refuses_new_points(value):
    model = ck.TessellatedSVC(tol=1e-2).fit(X, Y)
    with refused(ck.InvalidInputError, "X", "row 3, column 1" if not value < np.inf else "1e+300"):
        model.predict(changed(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**400, "1000"),
        (10**5000, "a value of type int"),
        ([10**5000], "a value of type list"),
        (list(range(100_000)), "[0, 1, 2, 3, 4, 5, ...]."),
    ],
    ids=["400 digits", "5000 digits", "digits in a list", "a long list"],
)
def test_what_is_too_long_for_a_message_is_refused_by_name(value, text):
    with refused(ck.InvalidInputError, "C must be a finite number", f"got {text}"):
        ck.TessellatedSVC(C=value).fit(X, Y)


@pytest.mark.parametrize("epsilon", ["a", "0.1", [0.1], True, -1.0, np.nan, 10**400])
@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.MultipleKernelSVR])
def test_what_is_no_epsilon_is_refused(kind, epsilon):
    with refused(ck.InvalidInputError, "epsilon must be a finite number"):
        kind(C=1.0, epsilon=epsilon).fit(X, X[:, 0])


PARAMETERS = {
    "C": (0.0, -1.0, np.nan, np.inf, "1"),
    "degree": (-1, 1.5, "1"),
    "z_degree": (-1, 0.5),
    "margin": (0.0, -0.1, np.nan),
    "tol": (0.0, -1e-3, np.nan),
    "max_time": (0.0, -1.0),
    "solver": ("simplex-of-dantzig",),
    "class_weight": ("even", [1, 2], {0: -1.0}, {7: 1.0}),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in PARAMETERS.items() for value in values])
def test_estimator_refuses_parameters(name, value):
    shown = "7" if value == {7: 1.0} else "-1.0" if value == {0: -1.0} else repr(value)
    with refused(ck.InvalidInputError, name, shown):
        ck.TessellatedSVC(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (-np.ones(60), ("sample_weight", "-1.0 at row 0")),
        (np.full(60, np.nan), ("sample_weight", "nan at row 0")),
        (np.zeros(60), ("sample_weight", "zero")),
        (np.ones(59), ("sample_weight", "(59,)", "60 rows")),
        (np.ones((60, 1)), ("sample_weight", "(60, 1)")),
        (["heavy"] * 60, ("sample_weight", "numbers")),
        (1j * np.ones(60), ("sample_weight holds complex numbers",)),
        (np.ma.masked_array(np.ones(60), np.arange(60) == 3), ("sample_weight", "nan at row 3")),
        (1.0 * (Y == 1), ("one class only (1", "positive weight")),
    ],
)
def test_estimator_refuses_weights(weights, words):
    with refused(ck.InvalidInputError, *words):
        ck.TessellatedSVC().fit(X, Y, sample_weight=weights)


SIGNS = np.where(Y == 1, 1, -1)
UNIT = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (changed(np.nan), ("X", "row 3, column 1")),
        (changed(1e300), ("X", "1e+300", "rescale")),
        (np.array([["a", "b"]] * 60), ("X must hold numbers", "OneHotEncoder")),
        (X[:0], ("X has 0 rows",)),
        (X, ("X[", "outside the box", "MinMaxScaler", "Box.around")),
    ],
)
def test_problem_refuses_tables(table, words):
    with refused(ck.InvalidInputError, *words):
        ck.KernelLearning(
            ck.Tessellated(box=ck.UnitBox(0.1)), ck.Hinge(), table, SIGNS[: len(table)] if len(table) else SIGNS
        )


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (SIGNS[:50], ("y has 50 entries", "60 rows")),
        ([], ("y is empty",)),
        (np.ones(60), ("y", "one class only (+1)")),
        (Y, ("labels -1 and +1", "found [0.0, 1.0]", "numpy.where")),
        (np.where(np.arange(60) == 2, np.nan, SIGNS), ("y", "row 2")),
        (["a"] * 60, ("y must hold numbers",)),
    ],
)
def test_problem_refuses_labels(labels, words):
    with refused(ck.InvalidInputError, *words):
        ck.KernelLearning(ck.Tessellated(), ck.Hinge(), UNIT, labels)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ck.Hinge(C=0), ("C", "> 0", "got 0")),
        (lambda: ck.Hinge(C=float("nan")), ("C", "nan")),
        (lambda: ck.Tessellated(degree=-1), ("degree", ">= 0", "-1")),
        (lambda: ck.Tessellated(z_degree=-2), ("z_degree", "-2")),
        (lambda: ck.Tessellated(trace=0), ("trace", "> 0")),
        (lambda: ck.UnitBox(0.0), ("margin", "> 0")),
        (lambda: ck.Box([0.0, 1.0], [1.0, 1.0]), ("lower[1] = 1", "upper[1] = 1")),
        (lambda: ck.Box([0.0], [-1.0]), ("lower[0] = 0", "upper[0] = -1")),
        (lambda: ck.Box([0.0, np.nan], [1.0, 1.0]), ("lower[1] = nan",)),
        (lambda: ck.Box([0.0], [1.0, 2.0]), ("equal length", "(1,)", "(2,)")),
        (lambda: ck.Tessellated(box=ck.Box([0], [1])).on(UNIT), ("1 features", "2")),
    ],
)
def test_parts_of_a_problem_refuse_parameters(make, words):
    with refused(ck.InvalidInputError, *words):
        make()


def test_too_many_monomials_are_refused_with_their_number_and_the_remedy():
    wide = np.random.default_rng(0).random((40, 80))
    with refused(ck.MemoryLimitError, f"q = {comb(166, 6)} monomials", f"z_degree=0 (q = {comb(86, 6)})"):
        ck.TessellatedSVC(degree=6, z_degree=None).fit(wide, np.arange(40) % 2)


def test_memory_limit_is_checked_before_matrices_are_made():
    rows = np.random.default_rng(0).random((3000, 2))
    started = time.monotonic()
    with refused(ck.MemoryLimitError, "3000 rows", "0.15 GiB", "memory_limit"):
        ck.TessellatedSVC(memory_limit=50e6).fit(rows, np.arange(3000) % 2)
    assert time.monotonic() - started < 1.0


# --- handled ----------------------------------------------------------------------------------


def test_duplicated_rows_with_opposite_labels():
    table = np.vstack([X, X[:20]])
    labels = np.concatenate([Y, 1 - Y[:20]])
    model = ck.TessellatedSVC(C=1e4, tol=1e-3).fit(table, labels)
    assert model.solution_.status is ck.Status.OPTIMAL
    # The two copies cannot both be right; the others can.
    assert model.score(X[20:], Y[20:]) == 1.0
    assert np.isclose(model.score(table[:20], Y[:20]) + model.score(table[:20], 1 - Y[:20]), 1.0)


def test_every_row_with_both_labels():
    model = ck.TessellatedSVC(C=1.0).fit(np.vstack([X, X]), np.concatenate([Y, 1 - Y]))
    assert model.solution_.status is ck.Status.OPTIMAL
    # No function does better than 0 everywhere: two unit losses in all, for each of the 60 points.
    assert model.solution_.value == pytest.approx(120.0, rel=1e-4)


def test_constant_columns_change_nothing():
    plain = ck.TessellatedSVC(tol=1e-3).fit(X, Y)
    table = np.column_stack([np.full(60, 7.5), X[:, 0], np.full(60, -1e100), X[:, 1], np.zeros(60)])
    model = ck.TessellatedSVC(tol=1e-3).fit(table, Y)
    assert np.array_equal(model.decision_function(table), plain.decision_function(X))
    other = table + np.array([3.0, 0.0, 1e120, 0.0, -1.0])
    assert np.array_equal(model.decision_function(other), plain.decision_function(X))
    assert np.allclose(model.kernel_(table), plain.kernel_(X), rtol=1e-12)


def test_table_of_constant_columns_predicts_the_majority():
    table = np.full((30, 2), 4.0)
    labels = np.arange(30) % 3 == 0
    model = ck.TessellatedSVC().fit(table, labels)
    assert model.solution_.status is ck.Status.OPTIMAL
    assert not model.predict([[4.0, 4.0], [1e9, 0.0]]).any()
    assert model.solution_.value == pytest.approx(20.0 * model.C_, rel=1e-4)  # 10 points at slack 2


def test_columns_scaled_far_apart():
    plain = ck.TessellatedSVC(tol=1e-4).fit(X, Y)
    for scales in ([1e-100, 1e100], [1e100, 1e-100], [1e-300, 1e140]):
        model = ck.TessellatedSVC(tol=1e-4).fit(X * scales, Y)
        assert np.allclose(model.decision_function(X * scales), plain.decision_function(X), atol=0.02)
        assert np.array_equal(model.predict(X * scales), plain.predict(X))


def test_subnormal_column_and_large_new_points():
    table = np.column_stack([X[:, 0] * 1e-310, X[:, 1]])
    model = ck.TessellatedSVC(tol=1e-3).fit(table, Y)
    assert np.isfinite(model.decision_function([[1e150, 0.5], [-1e150, 1e-320]])).all()


def test_offset_much_larger_than_the_range():
    # Ten bits of the mantissa are left for the range: the rows are those of a rounded table.
    table = X + 2.0**40
    model = ck.TessellatedSVC(tol=1e-3).fit(table, Y)
    rounded = ck.TessellatedSVC(tol=1e-3).fit(table - 2.0**40, Y)
    assert np.array_equal(model.decision_function(table), rounded.decision_function(table - 2.0**40))


def test_classes_99_to_1():
    rng = np.random.default_rng(4)
    table = rng.normal(size=(400, 2))
    labels = np.zeros(400, dtype=int)
    labels[:4] = 1
    table[:4] += 4.0
    model = ck.TessellatedSVC(C=1.0).fit(table, labels)
    assert model.solution_.status is ck.Status.OPTIMAL
    assert DummyClassifier().fit(table, labels).score(table, labels) == 0.99
    assert model.score(table, labels) >= 0.9975
    assert ck.TessellatedSVC(C=1e-4, class_weight="balanced").fit(table, labels).predict(table[:4]).all()


def test_box_is_left_at_prediction():
    model = ck.TessellatedSVC().fit(X, Y)
    far = model.decision_function([[1e8, 0.0], [1e9, 0.0], [1e150, 0.0]])
    assert np.isfinite(far).all()
    assert np.ptp(far) <= 1e-12


def test_c_so_small_that_every_coefficient_is_at_its_bound():
    model = ck.TessellatedSVC(C=1e-9).fit(X, Y)
    solution = model.solution_
    assert solution.status is ck.Status.OPTIMAL
    assert np.allclose(solution.alpha, 1e-9)
    assert solution.value == pytest.approx(60e-9, rel=1e-4)
    peer = SVC(kernel=model.kernel_, C=1e-9, tol=1e-12).fit(X, Y)
    f = model.decision_function(X) - solution.intercept
    assert np.allclose(f, peer.decision_function(X) - peer.intercept_, atol=1e-12)


def test_c_so_large_that_no_coefficient_is_at_its_bound():
    low, high = (ck.TessellatedSVC(C=C, tol=1e-4).fit(X, Y) for C in (1e8, 1e12))
    for model in (low, high):
        assert model.solution_.status is ck.Status.OPTIMAL
        assert (model.solution_.alpha < 1e8).all()
        margins = SIGNS * model.decision_function(X)
        assert margins.min() >= 1.0 - 1e-2
    # Without points at the bound, the value does not depend on C.
    assert low.solution_.value == pytest.approx(high.solution_.value, rel=3e-4)


def test_time_limit_returns_the_best_certified_kernel():
    table = np.random.default_rng(0).random((1000, 6))
    labels = (np.sin(20 * table[:, 0]) + table[:, 1] > 0.5).astype(int)
    with pytest.warns(ck.ConvexKernelsWarning, match="TIME_LIMIT"):
        model = ck.TessellatedSVC(C=1e3, tol=1e-12, max_time=0.02).fit(table, labels)
    solution = model.solution_
    assert solution.status is ck.Status.TIME_LIMIT
    assert solution.certificate.lower <= solution.certificate.upper < np.inf
    assert solution.seconds < 5.0
    assert model.score(table, labels) > 0.7


class InterruptedGradient:
    """Mixed into a solver: the user loses patience at the third step."""

    steps = 0

    def step(self, problem, iterate, tol, deadline):
        self.steps += 1
        if self.steps == 3:
            raise KeyboardInterrupt
        return super().step(problem, iterate, tol, deadline)


def test_interruption_returns_the_best_certified_kernel():
    from convexkernels.solvers.convex.frank_wolfe import FrankWolfe

    class Interrupted(InterruptedGradient, FrankWolfe):
        pass

    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        model = ck.TessellatedSVC(C=10.0, tol=1e-9, solver=Interrupted()).fit(X, Y)
    solution = model.solution_
    assert solution.status is ck.Status.INTERRUPTED
    assert solution.n_iter == 2
    assert len(solution.history) == 3
    assert solution.certificate.upper == pytest.approx(solution.history[-1].upper, rel=1e-9)
    assert model.score(X, Y) > 0.8


def test_an_interrupt_of_the_last_certificate_keeps_the_kernel(monkeypatch):
    certificate, calls = ck.KernelLearning.certificate, []

    def interrupted(self, *point):
        calls.append(point)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return certificate(self, *point)

    monkeypatch.setattr(ck.KernelLearning, "certificate", interrupted)
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(0.1), ck.Gaussian(1.0)]), ck.Hinge(1.0), X, 2.0 * Y - 1.0)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        solution = problem.solve()
    assert solution.status is ck.Status.INTERRUPTED
    assert solution.certificate.relative_gap <= 1e-4


def test_inputs_are_not_modified():
    table, labels, weights = X.copy(), Y.copy(), np.ones(60)
    for array in (table, labels, weights):
        array.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ck.TessellatedSVC(tol=1e-2).fit(table, labels, sample_weight=weights).predict(table)
    assert np.array_equal(table, X)


REGRESSORS = [
    ck.ConcatenatedKernelRegressor(n_restarts=1, random_state=0),
    ck.MultipleKernelRidge(),
    ck.MultipleKernelSVR(),
    ck.TessellatedRidge(),
]
NOTHING_VARIES = {
    "equal targets": (X[:20], np.full(20, 7.0), np.full(20, 7.0)),
    "equal rows": (np.ones((20, 2)), X[:20, 0], np.full(20, X[:20, 0].mean())),
    "two rows": (X[:2], np.zeros(2), np.zeros(2)),
}


@pytest.mark.parametrize("name", NOTHING_VARIES)
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_constants_are_learned_where_nothing_varies(model, name):
    table, targets, expected = NOTHING_VARIES[name]
    found = model.fit(table, targets).predict(table)
    assert np.ptp(found) < 1e-9
    np.testing.assert_allclose(found, expected, atol=0.25 * np.ptp(targets) + 1e-9)


@pytest.mark.parametrize("model", [ck.MultipleKernelSVC(), ck.ConcatenatedKernelClassifier(n_restarts=1)])
def test_classifiers_learn_from_two_rows_and_from_equal_ones(model):
    np.testing.assert_array_equal(model.fit(X[:2], ["a", "b"]).predict(X[:2]), ["a", "b"])
    assert len(set(model.fit(np.ones((20, 2)), Y[:20]).predict(X))) == 1


def test_intervals_without_any_residual_are_refused():
    with refused(ck.InvalidInputError, "nothing is known about residuals", "fit more rows"):
        margins(np.empty((0,)), np.empty(0), 0.9)


@pytest.mark.parametrize("jobs", [2.5, 0, True, "all", 10**30])
def test_numbers_of_processes_that_are_none_are_refused(jobs):
    with refused(ck.InvalidInputError, "n_jobs must be None or a number of processes", repr(jobs)[:9]):
        ck.VoronoiSVC(n_jobs=jobs).fit(X, Y)


@pytest.mark.parametrize("state", ["x", -1, 2**40, True])
def test_random_states_that_are_none_are_refused(state):
    with refused(ck.InvalidInputError, "random_state must be None, a whole number", repr(state)):
        ck.VoronoiSVC(random_state=state).fit(X, Y)


def test_numbers_that_are_written_as_text_are_said_to_be_numbers():
    frame = pandas.DataFrame({"price": [f"{1000.5 + 7 * k:,.2f} %" for k in range(len(X))], "size": X[:, 0]})
    with refused(ck.InvalidInputError, "'price'", "look like numbers that are written as text"):
        ck.TessellatedSVC().fit(frame, Y)
    frame["price"] = [f"{1000 + k // 2:,}" for k in range(len(X))]  # however often one is met
    with refused(ck.InvalidInputError, "'price'", "look like numbers that are written as text"):
        ck.TessellatedSVC().fit(frame, Y)
    frame["price"] = frame["price"].astype("category")
    ck.TessellatedSVC().fit(frame, Y)
    for other in ("A{}", "0{} 123", "{},00"):
        frame["price"] = [other.format(1000 + k) for k in range(len(X))]
        with refused(ck.InvalidInputError, "'price'", "name rows instead of grouping them"):
            ck.TessellatedSVC().fit(frame, Y)
