"""The command line: answers, refusals before the work, and nothing overwritten unasked."""

import csv
import gzip
import io
import re
import resource
import signal
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import convexkernels
from convexkernels import cli
from convexkernels.commands import scores
from convexkernels.commands.catalog import MODELS, chosen_model
from convexkernels.commands.model_file import COLUMNS, load_model
from convexkernels.commands.request import check_target, task_of
from convexkernels.commands.scores import difference, learned_rival, score_of, split_table
from convexkernels.datasets import load_table, make_friedman1, make_two_moons
from convexkernels.exceptions import InvalidInputError
from convexkernels.solution import Status

FAST = ["--model", "tessellated", "--set", "C=1.0", "--against", "linear", "--quiet"]


@pytest.fixture
def table(tmp_path):
    """Two moons with text labels, an identifier and a categorical column, as a file."""
    X, y = make_two_moons(80, noise=0.15, random_state=0)
    lines = ["id,x1,color,x2,moon"]
    for i, ((a, b), label) in enumerate(zip(X, y, strict=True)):
        lines.append(f"r{i},{a:.6f},{'red' if i % 2 else 'blue'},{b:.6f},{'upper' if label < 0 else 'lower'}")
    path = tmp_path / "moons.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


DROP = ["--drop", "id", "--drop", "color"]


def learn(table, *more):
    return cli.main(["learn", str(table), "--target", "moon", *DROP, *more])


def run(*arguments, **kwargs):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **kwargs)


# --- starting ---------------------------------------------------------------------------------


def test_version_by_module_and_by_command():
    command = Path(sys.executable).with_name("convexkernels")
    for call in ([sys.executable, "-m", "convexkernels"], [str(command)]):
        done = subprocess.run([*call, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"convexkernels {convexkernels.__version__}\n"


def test_help_and_mistakes_load_nothing():
    code = "import sys; from convexkernels.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "print(sorted({'numpy', 'scipy', 'sklearn', 'cvxpy', 'numba', 'matplotlib'} & set(sys.modules)))"
    for arguments in (["--help"], ["learn", "--help"], ["learn"], ["no-such-command"], ["--version"]):
        assert run("-c", code, *arguments).stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments", [[], ["learn"], ["learn", "t.csv"], ["learn", "t.csv", "--target", "y", "--C", "x"]]
)
def test_incomplete_commands_say_what_is_missing(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: convexkernels" in capsys.readouterr().err


# --- learning ---------------------------------------------------------------------------------


def test_learn_prints_certificate_and_scores_with_their_errors(table, capsys):
    assert learn(table, *FAST, "--against", "svm,linear") == 0
    out, err = capsys.readouterr()
    assert "moons.csv: 2 features, 2 classes; 64 rows to learn from, 16 to test on" in out
    assert "model        TessellatedSVC" in out
    assert float(out.split("relative gap ")[1].split()[0]) <= 1e-3
    assert "the certificate proves the tolerance" in out
    rows = [line for line in out.splitlines() if "+-" in line]
    assert [row[:26].strip() for row in rows] == ["learned kernel", "cross-validated RBF SVM", "linear model"]
    for row in rows[1:]:
        own, other, by = float(rows[0][26:].split()[0]), float(row[26:].split()[0]), float(row[26:].split()[3])
        assert by == pytest.approx(own - other, abs=2e-4)
    assert err == ""


def test_text_and_missing_values_are_learned_from_and_found_again_by_name(table, tmp_path, capsys):
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:3], "r2,,green,0.5,upper", *lines[4:]]) + "\n")
    path = tmp_path / "model.skops"
    assert cli.main(["learn", str(table), "--target", "moon", "--drop", "id", *FAST, "--out", str(path)]) == 0
    assert cli.main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "from         x1, color (text), x2" in shown
    assert "predicts     moon" in shown
    new = tmp_path / "new.csv"
    new.write_text("x2,note,color,x1\n0.5,a,red,1.0\n-0.2,b,blue,\n0.1,c,never seen,0.3\n")
    assert cli.main(["predict", str(path), str(new)]) == 0
    out, err = capsys.readouterr()
    assert err == "note: not used: note\n"
    header, *rows = out.splitlines()
    assert header == "row,moon"
    again = load_model(path).estimator.predict(
        np.array([[1.0, "red", 0.5], [np.nan, "blue", -0.2], [0.3, "?", 0.1]], object)
    )
    assert [row.split(",")[1] for row in rows] == again.tolist()


def test_columns_in_another_order_give_the_same_predictions_and_files_are_kept(table, tmp_path, capsys):
    path, out = tmp_path / "model.skops", tmp_path / "predictions.csv"
    assert learn(table, *FAST, "--out", str(path), "--test-size", "0.25", "--seed", "3") == 0
    printed = capsys.readouterr().out
    model = load_model(path)
    X, y, names = load_table(table, "moon", drop=["id", "color"])
    split = split_table(X, y, "classification", test_size=0.25, seed=3)
    line = next(line for line in printed.splitlines() if line.startswith("learned kernel"))
    assert float(line.split()[2]) == pytest.approx(model.estimator.score(split.X_test, split.y_test), abs=1e-4)
    assert (model.features, model.target, model.estimator.get_params()["C"]) == (names, "moon", 1.0)
    assert [p.name for p in tmp_path.iterdir() if "unfinished" in p.name] == []
    turned = tmp_path / "turned.csv"
    turned.write_text("x2,x1\n" + "\n".join(f"{b!r},{a!r}" for a, b in X.tolist()) + "\n")
    assert cli.main(["predict", str(path), str(turned), "--out", str(out)]) == 0
    assert [row.split(",")[1] for row in out.read_text().splitlines()[1:]] == model.estimator.predict(X).tolist()
    assert cli.main(["predict", str(path), str(turned), "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    command = f"{sys.executable} -m convexkernels predict {path} {turned} | true"
    assert subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stderr == ""
    turned.write_text("x2,x3\n1,2\n")
    assert cli.main(["predict", str(path), str(turned)]) == 2
    assert "no column 'x1', which the model was fitted on" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::convexkernels.ConvexKernelsWarning")
@pytest.mark.parametrize(
    ("target", "model", "more", "columns"),
    [
        ("moon", "tessellated", ["--proba"], ["moon", "probability of lower", "probability of upper"]),
        ("x2", "hierarchical", ["--interval", "0.8"], ["x2", "low", "high"]),
    ],
)
def test_probabilities_and_intervals_are_written(table, tmp_path, capsys, target, model, more, columns):
    path, out = tmp_path / "m.skops", tmp_path / "p.csv"
    learning = ["learn", str(table), "--target", target, "--drop", "id", "--against", "none", "--quiet"]
    assert cli.main([*learning, "--model", model, "--max-time", "3", "--out", str(path)]) == 0
    assert cli.main(["predict", str(path), str(table), *more, "--out", str(out)]) == 0
    with out.open() as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["row", *columns]
    numbers = np.array([[float(row[name]) for name in columns[-2:]] for row in rows])
    if target == "moon":
        np.testing.assert_allclose(numbers.sum(axis=1), 1.0, atol=1e-8)
        assert (
            np.mean([row["moon"] == ("lower" if p > q else "upper") for row, (p, q) in zip(rows, numbers, strict=True)])
            > 0.9
        )
    else:
        with table.open() as lines:
            truth = np.array([float(row["x2"]) for row in csv.DictReader(lines)])
        assert 0.7 < np.mean((numbers[:, 0] <= truth) & (truth <= numbers[:, 1])) <= 1.0


@pytest.mark.filterwarnings("default::convexkernels.ConvexKernelsWarning")
@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_has_a_command(name, tmp_path, capsys):
    """With settings that make it quick where its defaults are not."""
    X, y = make_friedman1(60, n_features=5, random_state=0)
    task = "classification" if MODELS[name].classification else "regression"
    values = [f"{'high' if t > 14 else 'low'}" for t in y] if task == "classification" else [f"{t:.5f}" for t in y]
    path = tmp_path / "t.csv"
    rows = [",".join([*(f"{x:.5f}" for x in row), value]) for row, value in zip(X, values, strict=True)]
    path.write_text("a,b,c,d,e,t\n" + "\n".join(rows) + "\n")
    arguments = [
        "learn",
        str(path),
        "--target",
        "t",
        "--model",
        name,
        "--against",
        "none",
        "--quiet",
        "--max-time",
        "3",
    ]
    assert cli.main([*arguments, "--out", str(tmp_path / "m.skops"), "--figure", str(tmp_path / "f.png")]) == 0
    assert (tmp_path / "f.png").stat().st_size > 10_000
    out = capsys.readouterr().out
    assert (MODELS[name].classification or MODELS[name].regression) in out
    assert cli.main(["predict", str(tmp_path / "m.skops"), str(path), "--out", str(tmp_path / "p.csv")]) == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 61


@pytest.mark.filterwarnings("default::convexkernels.ConvexKernelsWarning")
def test_the_model_is_chosen_by_task_and_rows_and_says_why(table, capsys):
    assert chosen_model("regression", 500, 5)[0] == "hierarchical"
    assert chosen_model("classification", 50_000, 5)[0] == "hierarchical"
    assert "50,000 rows" in chosen_model("classification", 50_000, 5)[1]
    assert chosen_model("classification", 50_000, 500)[0] == "spectral"
    assert learn(table, "--against", "none", "--max-time", "5", "--quiet") == 0
    assert "HierarchicalGaussianClassifier, chosen because" in capsys.readouterr().out
    assert task_of(np.array(["a", "b"])) == task_of(np.arange(100) % 3) == "classification"
    assert task_of(np.arange(100)) == task_of(np.linspace(0.0, 1.0, 50)) == "regression"


def test_compressed_table_with_parameters_of_the_model(table, capsys):
    path = table.with_name("moons.csv.gz")
    path.write_bytes(gzip.compress(table.read_bytes()))
    assert learn(path, *FAST, "--set", "degree=0", "--set", "z_degree=None", "--tol", "1e-2") == 0
    assert float(capsys.readouterr().out.split("relative gap ")[1].split()[0]) <= 1e-2


@pytest.mark.filterwarnings("default::convexkernels.ConvexKernelsWarning")
def test_the_time_limit_is_that_of_the_whole_run(table, capsys):
    began = time.process_time()
    assert learn(table, "--max-time", "0.3", "--quiet", "--against", "svm,linear") == 0
    assert time.process_time() - began < 10.0
    out = capsys.readouterr().out
    assert "certificate" in out
    assert "of 30 pairs)" in out


@pytest.mark.parametrize("name", ["svm", "forest", "boosting", "linear"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_other_models_learn_from_as_many_rows_as_there_is_time_for(name, task, monkeypatch):
    monkeypatch.setattr(scores, "GRACE", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=6000)
    y = np.where(y < 0, "low", np.where(y < 3.0, "high", "rare")) if task == "classification" else 1e6 * y
    split = split_table(X, y, task)
    model, chosen = learned_rival(name, split, task, seed=0, max_time=1e-3)
    assert "1,000 of 4,800 rows" in chosen
    assert score_of(model, split.X_test, split.y_test, task).value > 0.9, "whatever the unit of the target"
    assert task == "regression" or "rare" in model.model.classes_
    few = y != "rare" if task == "classification" else y < np.inf
    whole = learned_rival(name, split_table(X[few][:300], y[few][:300], task), task, seed=0, max_time=1e3)[1]
    assert "rows" not in whole
    assert ("C=" in whole) == (name == "svm")


def test_an_interrupt_keeps_the_best_model(tmp_path):
    """As a user does it: the signal that Ctrl-C sends, in the middle of the search."""
    X, y = make_friedman1(6000, n_features=10, random_state=0)  # a search of half a minute
    table, model = tmp_path / "table.csv", tmp_path / "model.skops"
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", header=",".join("abcdefghijt"), comments="")
    # The program says soon how many steps it has taken: before the first one there is nothing to be kept.
    main = "import sys; from convexkernels import cli, clock; clock.EVERY = 0.1; sys.exit(cli.main(sys.argv[1:]))"
    command = ["-c", main, "learn", str(table), "--target", "t", "--out", str(model)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # What a shell starts in the background ignores the signal, and so would its children.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen([sys.executable, *command], **pipes, preexec_fn=heed) as run:
        said = iter(run.stderr.readline, "")
        assert any(", step " in line for line in said), "the search says how far it is"
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=240)
    assert run.returncode == 0, err
    assert Status.INTERRUPTED.value in out
    assert "interrupted: no comparison with cross-validated RBF SVM" in out
    assert float(re.search(r"^learned kernel +(\S+)", out, flags=re.MULTILINE)[1]) > 0.0
    assert cli.main(["predict", str(model), str(table), "--out", str(tmp_path / "p.csv")]) == 0


def test_an_interrupt_of_the_comparison_keeps_the_model(table, tmp_path, capsys, monkeypatch):
    def interrupted(name, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("convexkernels.commands.learn.learned_rival", interrupted)
    assert learn(table, *FAST, "--out", str(tmp_path / "m.skops")) == 0
    assert "no comparison with linear model" in capsys.readouterr().out
    assert load_model(tmp_path / "m.skops").scores.keys() == {"learned kernel"}


def test_figure_is_drawn(table, tmp_path):
    for suffix, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
        path = tmp_path / f"figure{suffix}"
        assert learn(table, *FAST, "--figure", str(path)) == 0
        assert path.read_bytes().startswith(magic)
        assert path.stat().st_size > 10_000


# --- scores -----------------------------------------------------------------------------------


class Constant:
    """A model that answers what it was given."""

    def __init__(self, values):
        self.values = values

    def predict(self, X):
        return self.values


def test_errors_of_scores_are_their_deviation_over_drawn_tables():
    rng = np.random.default_rng(0)
    found, n = [], 400
    for _ in range(300):
        y = rng.standard_normal(n)
        near, far = y + 0.5 * rng.standard_normal(n), y + 0.8 * rng.standard_normal(n)
        scores = [score_of(Constant(p), y, y, "regression") for p in (near, far)]
        found.append([scores[0].value, scores[0].error, *difference(*scores)])
    values = np.array(found)
    for k in (0, 2):
        assert values[:, k].std() == pytest.approx(values[:, k + 1].mean(), rel=0.15)
    labels = np.arange(50) % 2
    wrong = np.where(np.arange(50) < 10, 1 - labels, labels)
    score = score_of(Constant(wrong), labels, labels, "classification")
    assert (score.value, score.error) == pytest.approx((0.8, np.sqrt(0.8 * 0.2 / 50)))


def test_split_is_a_partition_that_keeps_proportions_and_follows_its_seed():
    X = np.arange(150.0)[:, None]
    y = np.arange(150) % 3
    split = split_table(X, y, "classification", test_size=0.2, seed=1)
    assert sorted(np.concatenate([split.X, split.X_test]).ravel()) == list(range(150))
    np.testing.assert_array_equal(np.bincount(split.y_test), [10, 10, 10])
    np.testing.assert_array_equal(split.X_test, split_table(X, y, "classification", test_size=0.2, seed=1).X_test)
    assert not np.array_equal(split.X_test, split_table(X, y, "classification", test_size=0.2, seed=2).X_test)


@pytest.mark.parametrize(
    ("y", "task", "phrases"),
    [
        (np.zeros(20, dtype=int), "classification", ["one class only", "0"]),
        (np.linspace(0, 1, 20), "classification", ["20 different numbers", "--task regression"]),
        (np.array(["a"] * 19 + ["b"]), "classification", ["'b'", "one row only"]),
        (np.array(["a", "b"] * 10), "regression", ["text", "'a'"]),
    ],
)
def test_targets_that_cannot_be_learned_are_refused(y, task, phrases):
    with pytest.raises(InvalidInputError) as refusal:
        check_target(y, task)
    assert all(phrase in str(refusal.value) for phrase in phrases)


# --- models on disk ---------------------------------------------------------------------------


def with_columns(thing):
    """The bytes of a file that looks like a model from outside."""
    import skops.io

    written = io.BytesIO(skops.io.dumps(thing))
    with zipfile.ZipFile(written, "a") as parts:
        parts.writestr(COLUMNS, '[["x"], []]')
    return written.getvalue()


def test_files_that_are_no_models_are_refused_and_nothing_foreign_is_loaded(tmp_path, capsys):
    import skops.io
    from sklearn.linear_model import LinearRegression

    new = tmp_path / "new.csv"
    new.write_text("x\n1\n")
    path = tmp_path / "m.skops"
    for content, said in [
        (b"hello", "is not a model that"),
        (skops.io.dumps(LinearRegression()), "is not a model that"),
        (with_columns(LinearRegression()), "holds a LinearRegression"),
        (with_columns(Constant(1)), "Constant, which no model of this library has; it is not loaded"),
        (with_columns(cli.main), "which no model of this library has"),
    ]:
        path.write_bytes(content)
        assert cli.main(["predict", str(path), str(new)]) == 2
        assert said in capsys.readouterr().err
    assert cli.main(["show", str(tmp_path / "none.skops")]) == 2
    assert "no file" in capsys.readouterr().err


# --- refusing ---------------------------------------------------------------------------------


REFUSED = [
    (["--set", "C=-1", "--model", "tessellated"], ["C", "-1"]),
    (["--set", "degree=-1", "--model", "tessellated"], ["degree", "-1"]),
    (["--set", "solver=guess", "--model", "tessellated"], ["solver", "'guess'", "spectral-gradient"]),
    (["--set", "depth=3", "--model", "tessellated"], ["--set depth", "TessellatedSVC", "margin"]),
    (["--set", "C"], ["--set 'C'", "NAME=VALUE"]),
    (["--model", "guess"], ["--model 'guess'", "auto", "tessellated"]),
    (["--model", "TessellatedSVR"], ["TessellatedSVR is not for classification", "--task regression"]),
    (["--model", "interpolator"], ["interpolator is not for classification"]),
    (["--task", "regression"], ["numbers", "text"]),
    (["--against", "svm,guess"], ["--against 'guess'", "forest"]),
    (["--tol", "0"], ["--tol", "0"]),
    (["--max-time", "-1"], ["--max-time", "-1"]),
    (["--seed", "-1"], ["--seed", "-1"]),
    (["--test-size", "1"], ["--test-size", "1"]),
    (["--test-size", "nan"], ["--test-size", "nan"]),
    (["--out", "model.pickle"], ["--out", ".skops", "model.pickle"]),
    (["--out", "no/such/model.skops"], ["--out", "no folder"]),
    (["--figure", "picture.doc"], ["--figure", ".png", "picture.doc"]),
    (["--drop", "x9"], ["drop 'x9' is not a column"]),
    (["--category", "x9"], ["category 'x9' is not a column"]),
]


@pytest.mark.parametrize(("arguments", "phrases"), REFUSED)
def test_bad_arguments_are_refused_by_name(table, arguments, phrases, capsys):
    assert learn(table, "--quiet", *arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("convexkernels: ")
    assert err.count("\n") == 1
    for phrase in phrases:
        assert phrase in err


def refused_quickly(*arguments):
    """Run a command in a process of its own: it refuses within a second of processor, and loads nothing slow."""
    code = "import sys; from convexkernels.cli import main; main(sys.argv[1:])\n"
    code += "print(sorted({'sklearn', 'scipy', 'cvxpy', 'numba', 'matplotlib', 'skops'} & set(sys.modules)))"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("-c", code, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
    assert done.stderr.startswith("convexkernels: ")
    assert after.ru_utime - before.ru_utime < 1.0, "seconds of processor"
    return done.stderr


def test_what_can_be_refused_early_is_refused_before_anything_slow_is_loaded(table):
    for arguments in ([], *(arguments for arguments, _ in REFUSED)):
        target = "x1" if not arguments else "moon"
        refused_quickly("learn", str(table), "--target", target, "--task", "classification", *DROP, *arguments)


def test_new_tables_are_refused_before_the_model_is_loaded(table, tmp_path):
    path, new = tmp_path / "m.skops", tmp_path / "new.csv"
    assert learn(table, *FAST, "--out", str(path)) == 0
    for text, said in (
        ("x2,x3\n1,2\n", "no column 'x1', which the model was fitted on"),
        ("x1,x2\n1,two\n3,4\n", "text among the numbers of column 'x2'"),
        ("x1,x2\n", "no rows"),
    ):
        new.write_text(text)
        assert said in refused_quickly("predict", str(path), str(new))
    assert "no file" in refused_quickly("predict", str(path), str(tmp_path / "none.csv"))
    for command in (["show"], ["predict", str(new)]):
        assert "is not a model" in refused_quickly(command[0], str(new), *command[1:])
        assert "no file" in refused_quickly(command[0], str(tmp_path / "none.skops"), *command[1:])


def test_a_table_that_is_too_long_is_told_what_takes_it(table, capsys):
    assert learn(table, *FAST, "--set", "memory_limit=1000") == 2
    err = capsys.readouterr().err
    assert "memory" in err
    assert "--model hierarchical, voronoi or spectral" in err


def test_bad_tables_are_refused(table, capsys):
    assert cli.main(["learn", str(table), "--target", "moon"]) == 2
    assert "another text in every row of column 'id', for example 'r0'" in capsys.readouterr().err
    assert cli.main(["learn", str(table), "--target", "mon"]) == 2
    assert "'id', 'x1', 'color', 'x2', 'moon'" in capsys.readouterr().err
    assert cli.main(["learn", str(table.with_name("none.csv")), "--target", "y"]) == 2
    assert "no file" in capsys.readouterr().err


@pytest.mark.parametrize(("flag", "name"), [("--out", "model.skops"), ("--figure", "figure.png")])
def test_existing_files_are_kept_unless_forced_and_checked_first(table, tmp_path, capsys, monkeypatch, flag, name):
    path = tmp_path / name
    path.write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr("convexkernels.tables.load_table", pytest.fail)
        assert learn(table, *FAST, flag, str(path)) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "precious"
    assert learn(table, *FAST, flag, str(path), "--force") == 0
    assert path.read_bytes() != b"precious"


def test_missing_extra_is_named_before_the_work(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert learn(table, "--out", str(tmp_path / "m.skops")) == 2
    assert "pip install 'convexkernels[persist]'" in capsys.readouterr().err


def test_interruption_before_an_answer_is_not_a_traceback(table, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("convexkernels.tables.load_table", interrupt)
    assert learn(table) == 130
    assert "interrupted" in capsys.readouterr().err


# --- the other commands -----------------------------------------------------------------------


def test_solvers_are_listed_with_their_state(capsys):
    assert cli.main(["solvers"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["solver", "installed", "usable", "remark"]
    states = {row.split()[0].lower(): row.split()[1:3] for row in rows}
    assert states["clarabel"] == ["yes", "yes"]
    assert states["scs"] == ["yes", "yes"]
    assert "mosek" in states


def test_demo_draws_and_never_replaces(tmp_path, capsys):
    for _ in range(2):
        assert cli.main(["demo", "--quick", "--out", str(tmp_path / "figures")]) == 0
    out = capsys.readouterr().out
    assert out.count("relative gap") == 2
    for line in out.splitlines():
        if line.startswith("cross-validated RBF SVM"):
            assert float(line.split()[6]) > 0.0, "the table of the demo is one where learning the kernel wins"
    figures = sorted(p.name for p in (tmp_path / "figures").iterdir())
    assert len(figures) == 2
    assert figures[0].endswith("-2.png")
    assert all(name in out for name in figures)
    assert np.all([(tmp_path / "figures" / name).stat().st_size > 10_000 for name in figures])
