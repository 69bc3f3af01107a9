"""The conic solver: which backends are used, and that their word is never taken for it."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.solvers.convex import conic
from convexkernels.solvers.convex.conic import Conic, available_solvers


def problem(m=14):
    rng = np.random.default_rng(0)
    X = rng.random((m, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=m) > 0.5, 1.0, -1.0)
    return ck.KernelLearning(ck.Tessellated(0), ck.Hinge(C=5.0), X, y)


def test_available_solvers_are_listed_in_order_of_preference():
    rows = available_solvers()
    assert [row[0] for row in rows] == ["MOSEK", "CLARABEL", "SCS"]
    assert all(installed or not usable for _, installed, usable, _ in rows)
    assert all(usable for name, _, usable, _ in rows if name != "MOSEK")


def test_without_cvxpy_no_solver_can_be_used(monkeypatch):
    monkeypatch.setattr(conic, "find_spec", lambda name: None if name in ("cvxpy", "scs") else object())
    rows = [("MOSEK", True, False, "pip install cvxpy"), ("CLARABEL", True, False, "pip install cvxpy")]
    assert available_solvers() == [*rows, ("SCS", False, False, "pip install cvxpy scs")]


def test_unlicensed_mosek_falls_back_with_one_warning():
    """With the real package and no license file: its own error, one sentence, and the answer of the next solver."""
    pytest.importorskip("mosek")
    script = (
        "import warnings; warnings.simplefilter('always')\n"
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_conic import problem\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    solution = problem().solve('conic', tol=1e-5)\n"
        "own = [str(w.message) for w in said if 'MOSEK' in str(w.message)]\n"
        "print(len(own), solution.status.name)\n"
        "print(own[0])\n"
    )
    env = {"MOSEKLM_LICENSE_FILE": "/nonexistent/mosek.lic", "HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "1 OPTIMAL"
    assert "err_missing_license_file(1008)" in lines[1]
    assert "falling back" in lines[1]


@pytest.mark.parametrize("name", ["CLARABEL", "SCS"])
def test_a_named_solver_is_used_and_measured(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        solution = problem().solve(Conic(name), tol=1e-4)
    reference = problem().solve(tol=1e-7)
    assert solution.certificate.lower <= reference.certificate.upper * (1 + 1e-9)
    assert solution.certificate.upper >= reference.certificate.lower * (1 - 1e-9)
    assert (solution.status is ck.Status.OPTIMAL) == solution.certificate.holds(1e-4)


def test_a_wrong_answer_is_not_called_optimal(monkeypatch):
    """A backend that stops far too early but reports success gets a gap, not a status."""

    def early(statement, *args, **kwargs):
        import cvxpy as cp

        statement.solve(solver=cp.SCS, max_iters=3)

    monkeypatch.setattr(conic, "solve_statement", early)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = problem().solve("conic", tol=1e-6)
    assert solution.status is not ck.Status.OPTIMAL
    assert solution.certificate.relative_gap > 1e-6
    reference = problem().solve(tol=1e-7)
    assert solution.certificate.upper >= reference.certificate.lower


def test_every_backend_failing_is_said(monkeypatch):
    monkeypatch.setattr(conic, "available_solvers", lambda: [("CLARABEL", False, False, "pip install clarabel")])
    with pytest.raises(ck.SolverUnavailableError, match="CLARABEL: pip install clarabel"):
        problem().solve("conic")


def test_infeasible_constraints_are_said():
    task = problem()
    program = task.to_cvxpy()
    program.constraints.append(program.theta[0, 0] >= 5.0)  # the trace is at most 1
    warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
    with pytest.raises(ck.SolverUnavailableError, match="infeasible"):
        task.solve(program)


def test_unknown_backend_is_refused():
    with pytest.raises(ck.InvalidInputError, match=r"one of \['MOSEK', 'CLARABEL', 'SCS'\], got 'GUROBI'"):
        Conic("GUROBI")
