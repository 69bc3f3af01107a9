"""Compiled code is ready before a clock starts, and it is compiled for the types that it is called with."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import convexkernels as ck
from convexkernels import compiled
from convexkernels.cli import main
from convexkernels.clock import Clock

ROOT = Path(__file__).resolve().parents[1]

# Learns with a short limit where nothing is compiled, then in every way that has loops of its own, and lists the types.
FRESH = """
import json, sys, warnings
import numpy as np
import convexkernels as ck
from convexkernels import compiled

loops = []
decorate = compiled.compiled
def remembered(*signatures, **options):
    def through(loop):
        loops.append((decorate(*signatures, **options)(loop), signatures))
        return loops[-1][0]
    return through
compiled.compiled = remembered

rng = np.random.default_rng(0)
X, y = rng.random((30, 2)), np.where(np.arange(30) % 2, 1.0, -1.0)
problem = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(1.0), X, y)
first = problem.solve(max_time=2.0, progress=True)
for dtype in ("float64", "float32"):
    for family in (ck.Tessellated(1), ck.Candidates([ck.Gaussian(1.0), ck.Linear()])):
        for loss in (ck.Hinge(1.0), ck.Hinge(1.0, intercept=False)):
            ck.KernelLearning(family, loss, X, y, dtype=dtype).solve(tol=1e-3)
ck.TessellatedRidge(tol=1e-2).fit(X, y).predict(X)
training = ck.Training(max_epochs=2)
ck.SpectralKernelRegressor(n_components=20, sigma=0.5, training=training, random_state=0).fit(X, X[:, 0])
ck.VoronoiRidge(max_cell_size=10, random_state=0).fit(X, X[:, 0])
ck.warm_up()
unforeseen = [f"{loop.py_func.__name__}: {loop.signatures}" for loop, signatures in loops
              if signatures and len(loop.signatures) != len(signatures)]
print(json.dumps({"status": first.status.name, "seconds": first.seconds, "unforeseen": unforeseen,
                  "loops": len(loops), "digits": digits()}))
"""

# The machines of some problems, digit for digit.
DIGITS = """
import hashlib
import numpy as np
import convexkernels as ck

def digits():
    A, seen = np.random.default_rng(0).normal(size=(60, 6)), hashlib.sha256()
    y = np.sign(A[:, 0] + 0.3 * A[:, 1] ** 2)
    for family in (ck.Candidates([ck.Gaussian(1.0), ck.Linear()]), ck.Tessellated(1, box=ck.Box.around(A))):
        for intercept in (True, False):
            found = ck.KernelLearning(family, ck.Hinge(1.0, intercept=intercept), A, y).solve(tol=1e-3)
            seen.update(found.theta.tobytes() + found.alpha.tobytes())
    return seen.hexdigest()
"""


# The same problem, with the table of its progress.
AGAIN = """
import numpy as np
import convexkernels as ck
X, y = np.random.default_rng(0).random((30, 2)), np.where(np.arange(30) % 2, 1.0, -1.0)
ck.KernelLearning(ck.Tessellated(1), ck.Hinge(1.0), X, y).solve(progress=True)
print(digits())
"""


def test_the_clock_starts_when_compiled_code_is_ready(tmp_path):
    """A fresh cache of compiled code, as after installation: one sentence before the work, gone the next time.

    What is learned is the same to the last digit.
    """
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PATH": ""}
    fresh, again = ([sys.executable, "-W", "ignore", "-c", DIGITS + code] for code in (FRESH, AGAIN))
    began = time.monotonic()
    run = subprocess.run(fresh, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["status"] == "OPTIMAL"
    assert found["seconds"] < 2.0 < time.monotonic() - began
    assert "compiling, once" in run.stderr.splitlines()[0]
    assert run.stderr.count("compiling") == 1
    assert found["loops"] > 10
    assert not found["unforeseen"], "types a loop is called with are missing in, or too many for, its signatures"
    shown = subprocess.run(again, env=environment, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "rel. gap" in shown.stderr
    assert "compiling" not in shown.stderr
    assert shown.stdout.split() == [found["digits"]]


def test_what_is_ready_is_not_made_again(monkeypatch, capsys):
    ck.warm_up()
    assert not compiled._loops
    Clock(max_time=1.0)
    assert main(["warm-up"]) == 0
    assert capsys.readouterr().out == "compiled code is ready\n"


def test_an_interrupt_leaves_the_rest_to_be_compiled(monkeypatch):
    class Loop:
        made = 0

        def compile(self, signature):
            self.made += 1
            if self.made == 1:
                raise KeyboardInterrupt

    ck.warm_up()
    loop = Loop()
    compiled._loops.append((loop, ("f8",)))
    try:
        with pytest.raises(KeyboardInterrupt):
            compiled.make_ready()
        compiled.make_ready()
    finally:
        compiled._loops.clear()
    assert loop.made == 2
    assert np.isfinite(Clock(max_time=1.0).left)
