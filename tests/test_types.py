"""What editors and type checkers see: every public name, what a constructor takes, and what a fit returns."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import convexkernels

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import numpy as np
import convexkernels as ck

X, y = np.zeros((10, 2)), np.arange(10) % 2
model = ck.TessellatedSVC(C=1.0).fit(X, y)
reveal_type(model)
problem = ck.KernelLearning(ck.Tessellated(degree=1, box=ck.UnitBox()), ck.Hinge(C=1.0), X, y)
reveal_type(problem.solve())
ck.TessellatedSVC(nonsense=3)
ck.nothing
"""


def test_every_line_of_the_stub_is_a_public_name_of_its_module():
    stub = Path(convexkernels.__file__).with_name("__init__.pyi").read_text()
    assert len(convexkernels._HOME) == stub.count("import ") == len(set(convexkernels.__all__)) - 1
    for name, home in convexkernels._HOME.items():
        found = getattr(convexkernels, name)
        assert found is getattr(importlib.import_module(home), name)
        assert getattr(found, "__module__", home) == home or home == "convexkernels.checking"
    assert [*convexkernels._HOME.values()] == sorted(convexkernels._HOME.values())


def test_pyright_knows_them_too(tmp_path):
    checker = pytest.importorskip("basedpyright", reason="a second type checker, of the extra dev")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]})
    )
    command = [sys.executable, "-m", checker.__name__, "--pythonpath", sys.executable, "-p", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert 'Type of "model" is "TessellatedSVC"' in said
    assert 'Type of "problem.solve()" is "Solution"' in said
    assert 'script.py:10:19 - error: No parameter named "nonsense"' in said
    assert 'script.py:11:4 - error: "nothing" is not a known attribute' in said
    assert "2 errors" in said


def test_a_type_checker_knows_estimators_and_refuses_what_they_do_not_have(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    settings = ["--strict", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, str(script)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    said = done.stdout
    assert 'Revealed type is "convexkernels.estimators.convex.tessellated.TessellatedSVC"' in said
    assert 'Revealed type is "convexkernels.solution.Solution"' in said
    assert 'script.py:10: error: Unexpected keyword argument "nonsense" for "TessellatedSVC"' in said
    assert 'script.py:11: error: Module has no attribute "nothing"' in said
    assert said.count("error:") == 2, said
