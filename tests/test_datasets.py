"""Generators are seeded and what they say they are; files are read or refused by row and column."""

import gzip

import numpy as np
import pytest

from convexkernels import datasets
from convexkernels.exceptions import InvalidInputError
from convexkernels.tables import load_features

GENERATORS = {
    "two_moons": lambda seed: datasets.make_two_moons(50, n_noise_features=2, random_state=seed),
    "spiral": lambda seed: datasets.make_spiral(51, noise=0.1, random_state=seed),
    "circle": lambda seed: datasets.make_circle(50, noise=0.1, random_state=seed),
    "friedman1": lambda seed: datasets.make_friedman1(50, random_state=seed),
    "inverse_distance": lambda seed: datasets.make_inverse_distance(50, random_state=seed),
    "step": lambda seed: datasets.make_step(50, random_state=seed),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_same_seed_gives_same_table_and_other_seed_another(name):
    X, y = GENERATORS[name](3)
    again, y_again = GENERATORS[name](3)
    other, _ = GENERATORS[name](4)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    assert not np.array_equal(X, other)
    assert X.shape[0] == y.shape[0]
    assert np.isfinite(X).all()


@pytest.mark.parametrize("name", GENERATORS)
def test_global_random_state_is_neither_used_nor_moved(name):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    GENERATORS[name](None)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_generator_object_is_drawn_from_in_turn():
    rng = np.random.default_rng(0)
    first, _ = datasets.make_circle(20, random_state=rng)
    second, _ = datasets.make_circle(20, random_state=rng)
    assert not np.array_equal(first, second)


def test_spiral_is_the_classical_table_scaled_to_the_unit_disc():
    X, y = datasets.make_spiral(194, random_state=0)
    i = np.arange(97)
    radius = 6.5 * (104 - i) / 104
    arm = np.column_stack([radius * np.sin(i * np.pi / 16), radius * np.cos(i * np.pi / 16)])
    for sign in (-1, 1):
        ours = 6.5 * X[y == sign]
        ours = ours[np.argsort(-np.linalg.norm(ours, axis=1))]
        np.testing.assert_allclose(ours, sign * arm, atol=1e-13)


def test_spiral_classes_are_balanced_for_every_size():
    for m in (2, 3, 20, 151):
        _, y = datasets.make_spiral(m, random_state=0)
        assert len(y) == m
        assert abs(int(y.sum())) == m % 2


def test_circle_labels_are_the_side_of_the_circle():
    X, y = datasets.make_circle(500, radius=0.6, random_state=1)
    np.testing.assert_array_equal(y == 1, np.hypot(X[:, 0], X[:, 1]) < 0.6)


def test_two_moons_lie_on_their_half_circles_without_noise():
    X, y = datasets.make_two_moons(101, noise=0.0, n_noise_features=3, random_state=1)
    assert X.shape == (101, 5)
    upper, lower = X[y == -1], X[y == 1]
    np.testing.assert_allclose(np.hypot(upper[:, 0], upper[:, 1]), 1.0)
    np.testing.assert_allclose(np.hypot(lower[:, 0] - 1.0, lower[:, 1] - 0.5), 1.0)
    assert (upper[:, 1] >= 0).all()
    assert (lower[:, 1] <= 0.5).all()


def test_friedman1_follows_its_formula():
    X, y = datasets.make_friedman1(80, noise=0.0, random_state=2)
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    np.testing.assert_allclose(y, f)


def test_plane_functions_take_their_known_values():
    np.testing.assert_allclose(datasets.inverse_distance([[0.5, 0.5], [1.0, -1.0]]), [10.0, 1 / 2.1])
    np.testing.assert_array_equal(datasets.step([[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5], [0.1, 0.1]]), [1, 1, 0, 0])
    X, y = datasets.make_step(60, noise=0.0, random_state=0)
    np.testing.assert_array_equal(y, datasets.step(X))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: datasets.make_two_moons(1), "n_samples"),
        (lambda: datasets.make_two_moons(10, noise=-1.0), "noise"),
        (lambda: datasets.make_two_moons(10, n_noise_features=-1), "n_noise_features"),
        (lambda: datasets.make_spiral(2.5), "n_samples"),
        (lambda: datasets.make_circle(10, radius=0.0), "radius"),
        (lambda: datasets.make_circle(10, noise=float("nan")), "noise"),
        (lambda: datasets.make_friedman1(10, n_features=4), "n_features"),
        (lambda: datasets.make_step(0), "n_samples"),
    ],
)
def test_generators_refuse_bad_arguments_by_name(call, name):
    with pytest.raises(InvalidInputError, match=name):
        call()


# --- files ------------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


PLAIN = "a,b,label\n1,2.5,yes\n-3,4e2,no\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PLAIN, "t.csv"),
        (PLAIN, "t.csv.gz"),
        (PLAIN.replace(",", ";"), "t.csv"),
        (PLAIN.replace(",", "\t"), "t.tsv"),
        ("\ufeff" + PLAIN.replace("\n", "\r\n"), "t.csv"),
        (PLAIN.replace(",", " , ") + "\n\n", "t.csv"),
        ('"a","b","label"\n"1","2.5","yes"\n-3,4e2,"no"', "t.csv"),
    ],
)
def test_table_is_read_from_every_spelling_of_csv(write, text, name):
    X, y, names = datasets.load_table(write(text, name), "label")
    np.testing.assert_array_equal(X, [[1.0, 2.5], [-3.0, 400.0]])
    assert X.dtype == np.float64
    assert y.tolist() == ["yes", "no"]
    assert names == ["a", "b"]


@pytest.mark.parametrize(
    ("labels", "kind"), [(("1", "0"), "i"), (("1.5", "-2"), "f"), (("01x", "2"), "U"), (("1_0", "2"), "U")]
)
def test_target_keeps_the_simplest_type_that_holds_it(write, labels, kind):
    _, y, _ = datasets.load_table(write(f"a,t\n1,{labels[0]}\n2,{labels[1]}\n"), "t")
    assert y.dtype.kind == kind


def test_target_may_be_any_column_and_others_may_be_dropped(write):
    path = write("id,t,a\nx1,0,1.5\nx2,1,2.5\n")
    X, y, names = datasets.load_table(path, "t", drop=["id"])
    assert (X.tolist(), y.tolist(), names) == ([[1.5], [2.5]], [0, 1], ["a"])


def test_text_and_missing_values_are_kept_for_the_estimators(write):
    path = write("age,town,code,label\n1,Oslo,7,0\n?,Rome,8,1\n3,,7,1\n")
    X, _, _ = datasets.load_table(path, "label", category=["code"])
    assert X.dtype == object
    assert [repr(x) for x in X[:, 0]] == ["1.0", "nan", "3.0"]
    assert X[:, 1].tolist() == ["Oslo", "Rome", None]
    assert X[:, 2].tolist() == ["7", "8", "7"]
    X, _, _ = datasets.load_table(path, "label", drop=["town"])
    assert X.dtype == np.float64
    assert np.isnan(X[1, 0])


def test_old_spreadsheets_are_read(write):
    path = write("gr\u00f6\u00dfe;ort;label\n1,5;K\u00f6ln;0\n-2,25e1;Bonn;1\n".encode("latin-1"))
    X, _, names = datasets.load_table(path, "label")
    assert names == ["gr\u00f6\u00dfe", "ort"]
    assert X.tolist() == [[1.5, "K\u00f6ln"], [-22.5, "Bonn"]]


def test_features_are_found_by_name_whatever_their_order(write):
    path = write("note,b,a\nx,2,1\ny,4,3\n")
    X, others = load_features(path, ["a", "b"])
    assert (X.tolist(), others) == ([[1.0, 2.0], [3.0, 4.0]], ["note"])
    with pytest.raises(
        InvalidInputError, match=r"no column 'c', which the model was fitted on; its columns are 'note'"
    ):
        load_features(path, ["a", "c"])
    with pytest.raises(InvalidInputError, match="text among the numbers of column 'note'"):
        load_features(write("note\n1\nz\n"), ["note"])


REFUSALS = {
    "target not in header": (PLAIN, {"target": "lable"}, ["lable", "'a', 'b', 'label'"]),
    "dropped column not in header": (PLAIN, {"drop": ["c"]}, ["drop 'c'", "'a', 'b', 'label'"]),
    "target dropped": (PLAIN, {"drop": ["label"]}, ["both"]),
    "nothing left": (PLAIN, {"drop": ["a", "b"]}, ["no feature left"]),
    "text among numbers": ("a,b,label\n1,2,0\n2,old,1\n", {}, ["column 'b'", "'old' (1 of 2", "--category 'b'"]),
    "dates": ("a,day,label\n1,2020-01-31,0\n2,2020-02-01,1\n", {}, ["dates in column 'day'", "days since a day"]),
    "infinite": ("a,b,label\n1,2,0\n1,-inf,0\n", {}, ["an infinite", "row 2 (line 3)", "'b'"]),
    "category not in header": (PLAIN, {"category": ["c"]}, ["category 'c'"]),
    "missing target": ("a,label\n1,0\n2,\n", {}, ["no target value", "row 2"]),
    "short": ("a,b,label\n1,2,0\n1\n", {}, ["values in line 3 is 1", "3 columns"]),
    "ragged": ("a,b,label\n1,2,0\n1,2\n", {}, ["values in line 3 is 2", "3 columns"]),
    "no header": ("1,2,3\n4,5,6\n", {}, ["starts with the numbers 1, 2, 3"]),
    "same name twice": ("a,a,label\n1,2,0\n", {}, ["more than one column 'a'"]),
    "no rows": ("a,label\n", {}, ["no rows"]),
    "empty file": ("", {}, ["no header"]),
    "not text": (b"\x89PNG\r\n\x1a\n\xff\xfe\x00,\n", {}, ["cannot be read as a table", "no text"]),
    "broken gzip": (gzip.compress(PLAIN.encode())[:-9], {}, ["cannot be read as a table"]),
    "open quote": ('a,label\n"1,0\n', {}, ["cannot be read as a table"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_file_is_refused_with_place_and_remedy(write, case):
    text, arguments, phrases = REFUSALS[case]
    with pytest.raises(InvalidInputError) as refusal:
        datasets.load_table(write(text), **{"target": "label", **arguments})
    for phrase in phrases:
        assert phrase in str(refusal.value)


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(InvalidInputError, match=r"no file .*nowhere\.csv"):
        datasets.load_table(tmp_path / "nowhere.csv", "y")
    with pytest.raises(InvalidInputError, match="not a file"):
        datasets.load_table(tmp_path, "y")


def test_a_dropped_column_may_hold_anything(write):
    X, _, _ = datasets.load_table(write(",a,note,label\nr1,1,,0\nr2,2,inf,1\n"), "label", drop=["column 1", "note"])
    assert X.tolist() == [[1.0], [2.0]]
