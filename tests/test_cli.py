"""The command line: answers, refusals before the work, and nothing overwritten unasked."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import convexkernels
from convexkernels import cli
from convexkernels.catalog import MODELS, Model
from convexkernels.datasets import load_table, make_two_moons

FAST = ["--C", "1", "--margin", "0.5", "--quiet"]


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


def test_learn_prints_certificate_and_both_accuracies(table, capsys):
    assert learn(table, *FAST) == 0
    out, err = capsys.readouterr()
    assert "moons.csv: 2 features, 2 classes; 64 rows to learn from, 16 to test on" in out
    gap = float(out.split("relative gap ")[1].split()[0])
    assert gap <= 1e-4
    assert "the certificate proves the tolerance" in out
    scores = {line.split("  ")[0]: line.split() for line in out.splitlines() if "+-" in line}
    assert set(scores) == {"learned kernel", "RBF machine"}
    assert err == ""


def test_accuracy_printed_is_that_of_the_model_saved(table, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    assert learn(table, *FAST, "--out", str(path), "--test-size", "0.25", "--seed", "3") == 0
    out = capsys.readouterr().out
    model = skops.load(path, trusted=skops.get_untrusted_types(file=path))
    from convexkernels.learning import split_table

    X, y, _ = load_table(table, "moon", drop=["id", "color"])
    split = split_table(X, y, "classification", test_size=0.25, seed=3)
    line = next(line for line in out.splitlines() if line.startswith("learned kernel"))
    assert float(line.split()[3]) == pytest.approx(model.score(split.X_test, split.y_test), abs=1e-4)
    assert set(model.predict(X)) == {"upper", "lower"}
    assert "x1, x2" in out, "the order of the columns is said"
    assert model.get_params()["C"] == 1.0
    assert [p.name for p in tmp_path.iterdir() if "unfinished" in p.name] == []


def test_what_is_not_given_is_cross_validated_and_shown(table, capsys, monkeypatch):
    model = MODELS["tessellated"]
    small = Model(model.estimator, model.task, model.options, {"margin": (0.5, 1.0), "C": (0.1, 10.0)})
    monkeypatch.setitem(MODELS, "tessellated", small)
    assert learn(table) == 0
    out, err = capsys.readouterr()
    assert "4/4" in err
    assert "rel. gap" in err
    line = next(line for line in out.splitlines() if line.startswith("learned kernel"))
    assert "C=" in line
    assert "margin=" in line
    assert learn(table, "--C", "0.1") == 0
    out, err = capsys.readouterr()
    assert "2/2" in err
    line = next(line for line in out.splitlines() if line.startswith("learned kernel"))
    assert "C=" not in line


def test_compressed_table_with_options_of_the_model(table, capsys):
    path = table.with_name("moons.csv.gz")
    path.write_bytes(gzip.compress(table.read_bytes()))
    options = ["--degree", "0", "--z-degree", "full", "--solver", "spectral-gradient", "--tol", "1e-3"]
    assert learn(path, *FAST, *options) == 0
    assert "z_degree=None" in capsys.readouterr().out


def test_time_limit_still_gives_an_answer(table, capsys):
    assert learn(table, "--max-time", "1.5", "--quiet") == 0
    out = capsys.readouterr().out
    assert "certificate" in out
    assert "learned kernel" in out


def test_figure_is_drawn(table, tmp_path):
    for suffix, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
        path = tmp_path / f"figure{suffix}"
        assert learn(table, *FAST, "--figure", str(path)) == 0
        assert path.read_bytes().startswith(magic)
        assert path.stat().st_size > 10_000


# --- refusing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "phrases"),
    [
        (["--C", "-1"], ["C", "-1"]),
        (["--C", "nan"], ["C", "nan"]),
        (["--degree", "-1"], ["degree", "-1"]),
        (["--margin", "-0.5"], ["margin", "-0.5"]),
        (["--solver", "guess"], ["solver", "'guess'", "spectral-gradient"]),
        (["--tol", "0"], ["--tol", "0"]),
        (["--max-time", "-1"], ["--max-time", "-1"]),
        (["--seed", "-1"], ["--seed", "-1"]),
        (["--test-size", "1"], ["test_size", "1"]),
        (["--out", "model.pickle"], ["--out", ".skops", "model.pickle"]),
        (["--out", "no/such/model.skops"], ["--out", "no folder"]),
        (["--figure", "picture.doc"], ["--figure", ".png", "picture.doc"]),
    ],
)
def test_bad_arguments_are_refused_by_name(table, arguments, phrases, capsys):
    assert learn(table, "--quiet", *arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("convexkernels: ")
    assert err.count("\n") == 1
    for phrase in phrases:
        assert phrase in err


def test_bad_tables_are_refused(table, capsys):
    assert cli.main(["learn", str(table), "--target", "moon", "--drop", "id"]) == 2
    assert "'color' (for example 'blue', 'red')" in capsys.readouterr().err
    assert cli.main(["learn", str(table), "--target", "mon"]) == 2
    assert "'id', 'x1', 'color', 'x2', 'moon'" in capsys.readouterr().err
    assert cli.main(["learn", str(table), "--target", "x1", *DROP, "--drop", "moon"]) == 2
    assert "regression" in capsys.readouterr().err
    assert cli.main(["learn", str(table.with_name("none.csv")), "--target", "y"]) == 2
    assert "no file" in capsys.readouterr().err


def test_option_of_another_model_is_refused(table, capsys, monkeypatch):
    monkeypatch.setitem(MODELS, "plain", Model("TessellatedSVC", "classification", ("C",)))
    assert learn(table, "--model", "plain", "--degree", "1") == 2
    assert "--degree is not a parameter of the model 'plain'; it has --C" in capsys.readouterr().err


@pytest.mark.parametrize(("flag", "name"), [("--out", "model.skops"), ("--figure", "figure.png")])
def test_existing_files_are_kept_unless_forced_and_checked_first(table, tmp_path, capsys, monkeypatch, flag, name):
    path = tmp_path / name
    path.write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr("convexkernels.tables.load_table", pytest.fail)
        patch.setattr("convexkernels.datasets.load_table", pytest.fail)
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

    monkeypatch.setattr("convexkernels.datasets.load_table", interrupt)
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
    figures = sorted(p.name for p in (tmp_path / "figures").iterdir())
    assert len(figures) == 2
    assert figures[0].endswith("-2.png")
    assert all(name in out for name in figures)
    assert np.all([(tmp_path / "figures" / name).stat().st_size > 10_000 for name in figures])
