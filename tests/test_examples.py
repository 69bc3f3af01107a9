"""Every script of ``examples/`` and ``models/`` runs at reduced size and draws where it is told to.

A script has ``main(argv=None)`` and accepts ``--quick`` (reduced size) and ``--out DIR`` (folder of
its figures, created when needed; ``figures/`` by default). It is run here as its reader runs it.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from models import voronoi_svm

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(
    path for folder in ("examples", "models") for path in (ROOT / folder).rglob("*.py") if not path.name.startswith("_")
)
NAMES = [path.relative_to(ROOT).as_posix() for path in SCRIPTS]


def test_there_are_scripts():
    for folder in ("examples", "models"):
        assert any(name.startswith(folder) for name in NAMES), f"no script in {folder}/"


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_script_keeps_the_convention(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a script opens with what it shows"
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "main" in functions, "a script has main(argv=None)"
    arguments = functions["main"].args
    assert len(arguments.args) == len(arguments.defaults) == 1, "main takes the arguments, None by default"


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_script_runs_at_reduced_size(path, tmp_path):
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "error::UserWarning:__main__,ignore:MOSEK is installed:UserWarning",
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(path), "--quick", "--out", str(tmp_path / "figures")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip(), "a script prints what it found"
    stray = [p.name for p in tmp_path.iterdir() if p.name != "figures"]
    assert not stray, f"written outside the folder it was given: {stray}"
    for figure in (tmp_path / "figures").glob("*"):
        assert figure.stat().st_size > 1000


PRINTED = SimpleNamespace(
    validation="folds",
    shared=False,
    radii=[0.1],
    chunks=[4, 12],
    as_printed=True,
    table=None,
    largest_cell=900,
    limited_by="it",
)


@pytest.mark.parametrize("n", [1000, 25_000, 500_000])
def test_random_chunks_of_the_printed_sizes_stay_small(n):
    listed = voronoi_svm.methods(n, 1.0, PRINTED)
    few, many = (listed[f"RC, {k}+ chunks"].max_cell_size for k in (4, 12))
    assert few == min(-(-n // 4), 8000)
    assert many == min(-(-n // 12), 2000)


@pytest.mark.parametrize("chunks", ["501", "0", "1000000"])
def test_chunks_without_two_rows_are_refused_before_anything_is_read(chunks, capsys, tmp_path):
    """A million chunks had filled the memory."""
    with pytest.raises(SystemExit):
        voronoi_svm.main(["--sizes", "1000", "--chunks", "4", chunks, "--table", "nothing", "--out", str(tmp_path)])
    assert f"--chunks [4, {chunks}]: each is 1 at least" in capsys.readouterr().err


def test_the_largest_cell_of_the_printed_sizes_is_what_the_memory_holds(monkeypatch):
    monkeypatch.setattr(voronoi_svm, "available_memory", lambda: 24.0 * 2**30)
    assert voronoi_svm.rows_in_memory(PRINTED) == 57_000
    monkeypatch.setattr(voronoi_svm, "available_memory", lambda: 1.0)
    assert voronoi_svm.rows_in_memory(PRINTED) == 1000


def test_what_is_left_out_is_said_with_its_reason(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        voronoi_svm, "measure", lambda *arguments: dict.fromkeys(("seconds", "test_seconds", "error", "cells"), 1)
    )
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    voronoi_svm.run(X, np.sign(X[:, 0]), [1000, 2000], lambda n: 1, PRINTED, tmp_path / "records.jsonl")
    out = capsys.readouterr().out
    assert "1000 LS (global)    left out: a cell of 1000 rows; the limit is 900, by it" in out
    assert "2000 all methods    left out: 2000 rows in the table" in out
    assert "1000 RC, 4+ chunks" in out
