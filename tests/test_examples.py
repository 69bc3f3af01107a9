"""Every script of ``examples/`` and ``models/`` runs at reduced size and draws where it is told to.

A script has ``main(argv=None)`` and accepts ``--quick`` (reduced size) and ``--out DIR`` (folder of
its figures, created when needed; ``figures/`` by default). It is run here as its reader runs it.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
