"""Every solver that accepts a problem reaches the same certified optimum, for every family and every loss.

Run with ``pytest -s`` to see the table: one line per problem, one column of relative gaps per solver.
"""

import warnings

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.checkpoint import fingerprint
from convexkernels.families import FAMILIES, example_points
from convexkernels.families.precomputed import row_numbers
from convexkernels.losses import LOSSES
from convexkernels.solvers import SOLVERS, make_solver

M = 12
TOL = 1e-4
# What a method that converges sublinearly comes to; it is a cross-check.
SUBLINEAR_TOL = 2e-2
FINITE = [name for name, (_, make) in LOSSES.items() if not make().needs_definite]
OF_NUMBERS = next(name for name in FINITE if LOSSES[name][0] == "numbers")


def problem_of(family, loss, n_outputs=None):
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(M, 2))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(M)
    kind, make = LOSSES[loss]
    if kind == "labels":
        y = np.where(y > np.median(y), 1.0, -1.0)
    if n_outputs is not None:
        y = np.column_stack([np.roll(y, k) for k in range(n_outputs)])
    made = FAMILIES[family]()
    return ck.KernelLearning(made, make(), row_numbers(M) if made.of_rows else example_points(made, X), y)


def accepted(solver, loss, n_outputs=None):
    """The problem over the first family that a solver takes; None where there is none."""
    problems = (problem_of(family, loss, n_outputs) for family in FAMILIES)
    return next((problem for problem in problems if make_solver(solver).accepts(problem) is None), None)


def solved(problem, name, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # an unlicensed MOSEK, and slow tails
        return problem.solve(name, **{"tol": TOL, "max_iter": 80, **settings})


def promised(name, problem):
    """The relative gap that a solver has to reach; infinite where its bounds have to hold and no more."""
    solver = make_solver(name)
    # An envelope selects kernels of rank one: J has kinks at its optimum, and other solvers accept the problem.
    if problem.gram_set.envelope() is not None and not solver.passes_kinks:
        return np.inf
    return SUBLINEAR_TOL if solver.sublinear else TOL


@pytest.mark.parametrize("loss", FINITE)
@pytest.mark.parametrize("family", FAMILIES)
def test_all_solvers_reach_the_same_certified_optimum(family, loss):
    problem = problem_of(family, loss)
    found = {name: solved(problem, name) for name in SOLVERS if make_solver(name).accepts(problem) is None}
    print(f"{family:26s}{loss:34s}" + "  ".join(f"{n} {s.certificate.relative_gap:.0e}" for n, s in found.items()))
    assert len(found) >= (3 if problem.gram_set.has_projection else 1)
    for name, solution in found.items():
        gap = solution.certificate.relative_gap
        assert gap >= -1e-9, f"{name}: bounds cross"
        assert gap <= promised(name, problem), f"{name} stopped at {solution.certificate}"
    # Intervals that contain the same number meet: the largest lower bound is below the smallest upper one.
    lower = max(solution.certificate.lower for solution in found.values())
    upper = min(solution.certificate.upper for solution in found.values())
    assert lower <= upper * (1.0 + 1e-9)
    assert upper - lower <= TOL * upper


@pytest.mark.parametrize("loss", ["labels", "numbers"])
def test_methods_that_project_agree_where_projections_are_slow(loss):
    """Families without cheap projections have them all the same: other methods must agree with those that need none."""
    loss = next(name for name in FINITE if LOSSES[name][0] == loss)
    slow = [
        problem for problem in (problem_of(family, loss) for family in FAMILIES) if not problem.gram_set.has_projection
    ]
    assert slow
    for problem in slow:
        names = {name for name in SOLVERS if make_solver(name).accepts(problem) is None}
        reference = solved(problem, sorted(names)[0])
        problem.gram_set.has_projection = problem.gram_set.has_support = True
        others = {name for name in SOLVERS if make_solver(name).accepts(problem) is None} - names
        assert others
        for name in others:
            other = solved(problem, name, tol=1e-2, max_iter=20)
            assert other.certificate.relative_gap <= SUBLINEAR_TOL
            assert other.certificate.lower <= reference.certificate.upper * (1.0 + 1e-9)
            assert reference.certificate.lower <= other.certificate.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_several_outputs_share_one_kernel(name):
    """Columns of targets: the sum of the objectives, one theta, certified as a whole."""
    problem = accepted(name, OF_NUMBERS, 3)
    if problem is None:
        return
    solution = solved(problem, name)
    assert solution.certificate.relative_gap <= promised(name, problem)
    assert solution.alpha.shape == (3, M)
    assert solution.decision_function(problem.X[:5]).shape == (5, 3)
    apart = 0.0
    for y in problem.Y + problem.center[:, None]:
        alone = ck.KernelLearning(problem.family, problem.loss, problem.X, y)
        apart += alone.evaluate(solution.theta, tol=1e-9).value
    assert solution.value == pytest.approx(apart, rel=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_interrupted_and_hurried_runs_still_have_a_certificate(name):
    solution = solved(accepted(name, FINITE[0]), name, tol=1e-12, max_iter=0)
    assert np.isfinite([solution.certificate.lower, solution.certificate.upper]).all()
    assert solution.certificate.gap >= -1e-9 * solution.certificate.upper


def goes_on(make_problem, name, file):
    """One step, the rest from its checkpoint, and nothing where all is done."""
    problem = make_problem()
    first = solved(problem, name, max_iter=1, checkpoint=file)
    again = solved(make_problem(), name, checkpoint=file)
    gaps = [first.certificate.relative_gap, again.history[0].relative_gap, again.certificate.relative_gap]
    assert gaps == pytest.approx(sorted(gaps, reverse=True), rel=1e-6, abs=1e-9)
    ended = solved(problem, name, checkpoint=file)
    assert ended.n_iter == 0
    np.testing.assert_allclose(ended.theta, again.theta, rtol=1e-9, atol=1e-12 * np.abs(again.theta).max())
    assert ended.certificate.gap == pytest.approx(again.certificate.gap, rel=1e-9, abs=1e-12)
    return first, again


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_goes_on_from_a_checkpoint(name, tmp_path):
    problem, file = accepted(name, FINITE[0]), tmp_path / "point.npz"
    _, again = goes_on(lambda: problem, name, file)
    assert again.certificate.relative_gap <= promised(name, problem)
    # What is asked for is not what was done: steps are counted from there.
    finer = solved(problem, name, tol=1e-3 * max(again.certificate.relative_gap, 1e-12), max_iter=2, checkpoint=file)
    assert finer.history[0].iteration == 0
    assert finer.value <= again.value * (1.0 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_known_again_by_its_checkpoint(family, tmp_path):
    file = tmp_path / "point.npz"
    first, again = goes_on(lambda: problem_of(family, FINITE[0]), "auto", file)
    assert again.certificate.relative_gap <= TOL
    if first.status is not ck.Status.OPTIMAL:
        assert again.history[0].iteration == 0  # as many steps were asked for as there are, not one
    kept = file.read_bytes()
    other = problem_of(family, FINITE[0])
    other = ck.KernelLearning(other.family, other.loss, other.X, other.Y[0], sample_weight=np.linspace(1.0, 2.0, M))
    with pytest.raises(ck.InvalidInputError, match="is one of other rows, targets or weights"):
        other.solve(checkpoint=file)
    assert file.read_bytes() == kept


def test_checkpoints_of_what_cannot_be_known_again_are_refused(tmp_path):
    problem = problem_of(next(iter(FAMILIES)), FINITE[0])
    with pytest.raises(ck.InvalidInputError, match="CVXPY solves a Program in one step"):
        problem.solve(problem.to_cvxpy(), checkpoint=tmp_path / "point.npz")
    with pytest.raises(ck.InvalidInputError, match="can be pickled"):
        fingerprint(lambda: 0)
