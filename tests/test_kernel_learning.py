"""The problem, its certificate, the driver and the solvers, on small problems with known answers."""

import io
import time
import warnings

import numpy as np
import pytest
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels.clock import Clock
from convexkernels.driver import approach, run
from convexkernels.progress import Table
from convexkernels.solvers import make_solver
from convexkernels.solvers.convex.frank_wolfe import FrankWolfe
from convexkernels.solvers.convex.spectral_gradient import SpectralGradient

FAMILIES = [
    ck.Tessellated(degree=1, box=ck.UnitBox(0.3)),
    ck.Tessellated(degree=1, z_degree=0, box=ck.UnitBox(0.1), trace=6.0),
    ck.Tessellated(degree=0, box=ck.UnitBox(0.5)),
    ck.GeneralizedPolynomial(degree=2, trace=3.0),
]


def rings(m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, 2))
    y = np.where((X[:, 0] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 < 0.12, 1.0, -1.0)
    y[rng.random(m) < 0.1] *= -1
    return X, y


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_fast_solvers_agree_with_the_conic_program(family, intercept):
    """Same certified optimum from three methods, one of which solves the SDP as printed."""
    X, y = rings(24)
    problem = ck.KernelLearning(family, ck.Hinge(C=5.0, intercept=intercept), X, y)
    fast = problem.solve(tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)  # an unlicensed MOSEK may be installed
        conic = problem.solve("conic", tol=1e-5)
        slow = problem.solve("frank-wolfe", tol=1e-4, max_iter=300)
    assert fast.status is ck.Status.OPTIMAL
    assert conic.status is ck.Status.OPTIMAL
    if not isinstance(family, ck.GeneralizedPolynomial):  # its Gram matrices are singular: J has kinks that stop it
        assert slow.certificate.relative_gap <= 5e-3
    for other in (conic, slow):
        # Intervals that contain the same optimum must meet.
        assert other.certificate.upper >= fast.certificate.lower * (1 - 1e-9)
        assert other.certificate.lower <= fast.certificate.upper * (1 + 1e-9)
    assert conic.value == pytest.approx(fast.value, rel=2e-5)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_certificate_holds_for_any_pair(family):
    """Upper above lower for random theta and alpha, feasible or not: the problem repairs them."""
    X, y = rings(40)
    problem = ck.KernelLearning(family, ck.Hinge(C=2.0), X, y)
    best = problem.solve(tol=1e-7)
    rng = np.random.default_rng(1)
    shape = best.theta.shape
    for _ in range(20):
        A = rng.normal(size=shape)
        certificate = problem.certificate(A @ A.T * 10 ** rng.uniform(-3, 1), 4 * rng.random(40) - 1)
        assert certificate.upper >= best.certificate.lower * (1 - 1e-9)
        assert certificate.lower <= best.certificate.upper * (1 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_solving_begins_where_it_is_told(family, monkeypatch):
    X, y = rings(40)
    problem = ck.KernelLearning(family, ck.Hinge(C=2.0), X, y)
    cold, center = problem.solve("spectral-gradient", tol=1e-6), problem.gram_set.initial()
    began, start = [], SpectralGradient.start
    monkeypatch.setattr(SpectralGradient, "start", lambda s, *a: began.append(s.initial) or start(s, *a))
    warm = problem.solve("spectral-gradient", tol=1e-6, initial=cold.theta)
    np.testing.assert_allclose(began[0][0], cold.theta, atol=1e-12)
    assert warm.status is cold.status is ck.Status.OPTIMAL
    assert warm.n_iter < cold.n_iter or family is FAMILIES[-1]  # its optimum is a kernel at which J has kinks
    assert warm.value == pytest.approx(cold.value, rel=2e-6)
    outside = problem.solve("spectral-gradient", tol=1e-3, initial=-cold.theta)
    np.testing.assert_allclose(began[-1][0], problem.gram_set.project(-cold.theta))
    assert outside.status is ck.Status.OPTIMAL
    own = SpectralGradient(initial=(center, None))
    problem.solve(own, tol=1e-3, initial=cold.theta)
    assert began[-1][0] is center
    plain = SpectralGradient()
    problem.solve(plain, tol=1e-3, initial=cold.theta)
    assert plain.initial is None
    for wrong in (cold.theta.ravel()[1:], np.full_like(center, np.nan), (cold.theta, cold.alpha), cold, "center"):
        with pytest.raises(ck.InvalidInputError, match="initial must be a theta of the family, an array of shape"):
            problem.solve(initial=wrong)


def test_many_rows_begin_with_a_sample_that_begins_where_it_is_told(monkeypatch):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (1500, 2))
    family = ck.Candidates([ck.Gaussian(0.5), ck.Gaussian(2.0)], landmarks=20)
    problem = ck.KernelLearning(family, ck.LeastSquares(0.1), X, np.sin(3.0 * X[:, 0]))
    began, start = [], SpectralGradient.start
    monkeypatch.setattr(SpectralGradient, "start", lambda s, p, *a: began.append((p.m, s.initial)) or start(s, p, *a))
    problem.solve(tol=1e-3)
    problem.solve(tol=1e-3, initial=np.array([0.25, 0.75]))
    assert [m for m, _ in began] == [1000, 1500] * 2
    assert began[0][1] is None
    np.testing.assert_allclose(began[2][1][0], [0.25, 0.75])
    assert not np.allclose(began[3][1][0], [0.25, 0.75])


def test_a_part_of_a_gram_set_is_of_the_rows_in_their_order_and_new():
    X, _ = rings(20)
    for family in (ck.Tessellated(0), ck.Candidates([ck.Gaussian(0.5), ck.Gaussian(2.0)])):
        gram_set = family.on(X)
        theta = gram_set.initial()
        K = gram_set.gram(theta)
        for rows in (np.arange(20), np.arange(20)[::-1], np.array([3, 1])):
            part = gram_set.part(theta, rows)
            np.testing.assert_array_equal(part, K[np.ix_(rows, rows)])
            part[:] = 0.0
        np.testing.assert_array_equal(gram_set.gram(theta), K)


def test_a_solver_of_ones_own_begins_at_a_plain_theta():
    """Where it is told by the hook that every solver has."""
    X, y = rings(40)
    problem = ck.KernelLearning(ck.Candidates([ck.Gaussian(0.5), ck.Gaussian(2.0)]), ck.Hinge(), X, y)

    class Mine(FrankWolfe):
        def start(self, problem, tol, deadline):
            begun.append(self.initial)
            return super().start(problem, tol, deadline)

    begun, mine = [], Mine()
    problem.solve(mine, tol=0.1, initial=np.array([0.25, 0.75]))
    np.testing.assert_allclose(begun, [[0.25, 0.75]])
    assert mine.initial is None


def test_what_is_only_compared_is_what_as_many_steps_lead_to():
    X, y = rings(40)
    problem = ck.KernelLearning(ck.Tessellated(1, 0), ck.Hinge(C=20.0), X, y)
    for steps in (0, 1, 100):
        theta, alpha = approach(problem, SpectralGradient(), tol=1e-5, max_iter=steps, clock=Clock())
        whole = run(problem, SpectralGradient(), tol=1e-5, max_iter=steps, warn=False)
        np.testing.assert_array_equal(theta, whole.theta)
        np.testing.assert_array_equal(alpha[0], whole.alpha)
    late = approach(problem, SpectralGradient(), tol=1e-5, max_iter=100, clock=Clock(1e-9))
    np.testing.assert_array_equal(late[0], problem.gram_set.initial())


def test_constants_are_compared_where_rounding_has_spoilt_every_point(monkeypatch):
    X, y = rings(40)
    problem = ck.KernelLearning(ck.Tessellated(1, 0), ck.Hinge(C=20.0), X, y)
    monkeypatch.setattr(type(problem), "value_of_constants", 0.0)
    _, alpha = approach(problem, SpectralGradient(), tol=1e-5, max_iter=100, clock=Clock())
    assert not alpha.any()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_gradient_of_the_value_function(family):
    """Danskin: J(theta + e d) - J(theta) - e <gradient, d> = O(e^2)."""
    X, y = rings(40)
    problem = ck.KernelLearning(family, ck.Hinge(C=1.0), X, y)
    theta = problem.gram_set.initial()
    here = problem.evaluate(theta, tol=1e-13)
    _, gradient, _ = problem.lower_bound(here)
    rng = np.random.default_rng(0)
    A = rng.normal(size=theta.shape)
    direction = problem.gram_set.project(A @ A.T) - theta
    errors = []
    for step in (1e-2, 1e-3):
        there = problem.evaluate(theta + step * direction, tol=1e-13)
        errors.append(abs(there.value - here.value - step * np.vdot(gradient, direction)))
    assert errors[1] <= 0.03 * errors[0] + 1e-9 * abs(here.value)


def test_learned_kernel_is_an_ordinary_kernel():
    X, y = rings(120)
    solution = ck.KernelLearning(ck.Tessellated(1, 0, ck.UnitBox(0.2)), ck.Hinge(C=20.0), X, y).solve(tol=1e-7)
    machine = SVC(kernel=solution.kernel, C=20.0, tol=1e-8).fit(X, y)
    new, _ = rings(50, seed=9)
    np.testing.assert_allclose(machine.decision_function(new), solution.decision_function(new), atol=2e-3)
    w = solution.problem.coefficients(np.atleast_2d(solution.alpha))[0]
    by_hand = solution.kernel(new, X) @ w + solution.intercept
    np.testing.assert_allclose(by_hand, solution.decision_function(new), atol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_scaling_the_trace_is_scaling_C(scale):
    X, y = rings(60)
    one = ck.KernelLearning(ck.Tessellated(1, trace=1.0), ck.Hinge(C=3.0), X, y).solve(tol=1e-8)
    other = ck.KernelLearning(ck.Tessellated(1, trace=scale), ck.Hinge(C=3.0 / scale), X, y).solve(tol=1e-8)
    assert other.value * scale == pytest.approx(one.value, rel=1e-6)


def test_flipping_labels_and_permuting_rows_change_nothing():
    X, y = rings(60)
    family, loss = ck.Tessellated(1), ck.Hinge(C=3.0)
    order = np.random.default_rng(0).permutation(60)
    value = ck.KernelLearning(family, loss, X, y).solve(tol=1e-8).value
    assert ck.KernelLearning(family, loss, X, -y).solve(tol=1e-8).value == pytest.approx(value, rel=1e-6)
    assert ck.KernelLearning(family, loss, X[order], y[order]).solve(tol=1e-8).value == pytest.approx(value, rel=1e-6)


def test_sample_weights_are_repeated_rows():
    X, y = rings(40)
    counts = np.random.default_rng(0).integers(0, 4, 40)
    family, loss = ck.Tessellated(1, 0), ck.Hinge(C=1.5)
    weighted = ck.KernelLearning(family, loss, X, y, sample_weight=counts).solve(tol=1e-8)
    repeated = ck.KernelLearning(family, loss, np.repeat(X, counts, axis=0), np.repeat(y, counts)).solve(tol=1e-8)
    assert weighted.value == pytest.approx(repeated.value, rel=1e-6)


def test_several_outputs_share_one_kernel():
    """The optimum for a matrix of labels is not below the sum of the optima of its columns."""
    X, _ = rings(50)
    classes = (3 * X[:, 0]).astype(int)
    Y = np.where(classes[:, None] == np.arange(3), 1.0, -1.0)
    family, loss = ck.Tessellated(1, 0), ck.Hinge(C=2.0)
    shared = ck.KernelLearning(family, loss, X, Y).solve(tol=1e-7)
    alone = sum(ck.KernelLearning(family, loss, X, column).solve(tol=1e-7).value for column in Y.T)
    assert shared.value >= alone * (1 - 1e-6)
    assert shared.alpha.shape == (3, 50)
    assert shared.decision_function(X).shape == (50, 3)
    assert np.shape(shared.intercept) == (3,)


def test_own_constraints_are_solved_and_certified():
    """P without its off-diagonal blocks: block-diagonal P, a restricted problem with its own lower bound."""
    X, y = rings(16)
    problem = ck.KernelLearning(ck.Tessellated(0), ck.Hinge(C=5.0), X, y)
    free = problem.solve(tol=1e-7)
    program = problem.to_cvxpy()
    P = program.variables["P"]
    program.constraints.append(P[0, 1] == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
        restricted = problem.solve(program, tol=1e-4)
    assert restricted.status is ck.Status.OPTIMAL
    assert abs(restricted.theta[0, 1]) <= 1e-7
    assert restricted.certificate.lower > free.certificate.upper  # the constraint costs something here
    assert restricted.verify().relative_gap <= 1e-4


def test_constraints_on_other_variables_are_refused():
    X, y = rings(12)
    problem = ck.KernelLearning(ck.Tessellated(0), ck.Hinge(C=5.0), X, y)
    program = problem.to_cvxpy()
    program.constraints.append(program.variables["gamma"] == 0)
    with pytest.raises(ck.InvalidInputError, match=r"may use program.theta only, found \['gamma'\]"):
        problem.solve(program)


def test_program_uses_the_names_of_the_paper():
    X, y = rings(10)
    program = ck.KernelLearning(ck.Tessellated(0), ck.Hinge(C=5.0), X, y).to_cvxpy()
    assert set(program.variables) == {"P", "t", "nu", "delta", "gamma"}
    assert program.problem.is_dcp()


def test_time_limit_returns_the_best_certified_point():
    X, y = rings(1200)
    problem = ck.KernelLearning(ck.Tessellated(2), ck.Hinge(C=1e4), X, y)
    with pytest.warns(ck.ConvexKernelsWarning, match="TIME_LIMIT"):
        solution = problem.solve(tol=1e-14, max_time=0.05)  # a step takes longer
    assert solution.status is ck.Status.TIME_LIMIT
    assert np.isfinite(solution.certificate.gap)
    assert solution.certificate.gap >= 0
    assert solution.verify().lower == pytest.approx(solution.certificate.lower, rel=1e-12)
    assert solution.verify().upper == pytest.approx(solution.certificate.upper, rel=1e-12)


def test_iteration_limit_has_its_status():
    X, y = rings(60)
    with pytest.warns(ck.ConvexKernelsWarning, match="ITERATION_LIMIT"):
        solution = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(C=100.0), X, y).solve(max_iter=1)
    assert solution.status is ck.Status.ITERATION_LIMIT
    assert solution.n_iter == 1
    assert np.isfinite(solution.certificate.relative_gap)


class Interrupting(SpectralGradient):
    """Presses Ctrl-C in its third step."""

    steps = 0

    def step(self, problem, iterate, tol, deadline):
        self.steps += 1
        if self.steps == 3:
            raise KeyboardInterrupt
        return super().step(problem, iterate, tol, deadline)


def test_interrupt_returns_the_best_certified_point():
    X, y = rings(80)
    problem = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(C=100.0), X, y)
    with pytest.warns(ck.ConvexKernelsWarning, match="INTERRUPTED"):
        solution = run(problem, Interrupting(), tol=1e-9)
    assert solution.status is ck.Status.INTERRUPTED
    assert solution.n_iter == 2
    assert solution.certificate.upper <= solution.history[0].upper
    assert np.isfinite(solution.certificate.gap)


def test_history_is_monotone_and_progress_prints_it():
    X, y = rings(80)
    stream = io.StringIO()
    problem = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(C=10.0), X, y)
    solution = problem.solve(progress=Table(stream))
    uppers = [record.upper for record in solution.history]
    lowers = [record.lower for record in solution.history]
    assert uppers == sorted(uppers, reverse=True)
    assert lowers == sorted(lowers)
    lines = stream.getvalue().splitlines()
    assert lines[1].split() == ["iter", "upper", "lower", "rel.", "gap", "time", "left"]
    assert len(lines) == len(solution.history) + 3


def test_float32_matrices_reach_a_looser_certificate():
    X, y = rings(200)
    family, loss = ck.Tessellated(1, 0, ck.UnitBox(0.1)), ck.Hinge(C=10.0)
    single = ck.KernelLearning(family, loss, X, y, dtype="float32").solve(tol=1e-3)
    double = ck.KernelLearning(family, loss, X, y).solve(tol=1e-6)
    assert single.status is ck.Status.OPTIMAL
    assert single.value == pytest.approx(double.value, rel=2e-3)


def test_memory_limit_is_checked_before_allocation():
    X, y = rings(2000)
    started = time.monotonic()
    with pytest.raises(ck.MemoryLimitError, match=r"2000 rows needs 0\.07 GiB, but the memory limit is 0\.01 GiB"):
        ck.KernelLearning(ck.Tessellated(1), ck.Hinge(), X, y, memory_limit=1e7)
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_C(C):
    """Every point, or no point, is a bounded support vector."""
    X, y = rings(50)
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)  # separable
    solution = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(C=C), X, y).solve(tol=1e-4)
    assert solution.status is ck.Status.OPTIMAL
    bounded = np.isclose(solution.alpha, C, rtol=1e-9)
    assert bounded.sum() >= 2 * min((y > 0).sum(), (y < 0).sum()) if C < 1 else not bounded.any()


def test_duplicated_rows_with_opposite_labels():
    X, y = rings(30)
    X, y = np.vstack([X, X[:5]]), np.concatenate([y, -y[:5]])
    solution = ck.KernelLearning(ck.Tessellated(1), ck.Hinge(C=100.0), X, y).solve()
    assert solution.status is ck.Status.OPTIMAL
    assert solution.value >= 2 * 100.0 * 5 * (1 - 1e-4)  # each contradictory pair costs at least 2C


def test_inputs_are_not_modified():
    X, y = rings(30)
    copies = X.copy(), y.copy()
    ck.KernelLearning(ck.Tessellated(1), ck.Hinge(), X, y).solve()
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])


@pytest.mark.parametrize("name", ["spectral-gradient", "frank-wolfe"])
def test_same_input_same_answer(name):
    X, y = rings(60)
    runs = []
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ck.ConvexKernelsWarning)
            runs.append(ck.KernelLearning(ck.Tessellated(1), ck.Hinge(C=10), X, y).solve(name, max_iter=20))
    np.testing.assert_array_equal(runs[0].theta, runs[1].theta)


def test_quasi_newton_memory_is_optional():
    X, y = rings(80)
    problem = ck.KernelLearning(ck.Tessellated(1, 0), ck.Hinge(C=10.0), X, y)
    plain = run(problem, SpectralGradient(memory=0, history=5), tol=1e-6)
    scaled = run(problem, SpectralGradient(), tol=1e-6)
    assert plain.value == pytest.approx(scaled.value, rel=2e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "tk"}, "family must be a Family"),
        ({"loss": "hinge"}, "loss must be a Loss"),
        ({"X": [[0.5, np.nan]] * 4}, r"missing or infinite value at row 0, column 1 \(nan\)"),
        ({"X": [[0.5, np.inf]] * 4}, "missing or infinite value at row 0, column 1"),
        ({"X": [["a", "b"]] * 4}, "must hold numbers only"),
        ({"X": [[0.5, 1e300]] * 4}, "magnitude 1e[+]300"),
        ({"X": np.zeros((0, 2)), "y": []}, "y is empty"),
        ({"X": [0.1, 0.2, 0.3, 0.4]}, r"shape \(rows, features\), got shape \(4,\)"),
        ({"X": [[0.5, 3.0]] * 4}, r"X\[0, 1\] = 3 lies outside the box \[-0.5, 1.5\]"),
        ({"y": [1, 1, 1, 1]}, "one class only"),
        ({"y": [0, 1, 2, 1]}, r"labels -1 and \+1"),
        ({"y": [1, -1, 1]}, "y has 3 entries, but X has 4 rows"),
        ({"sample_weight": [1, 1, -1, 1]}, "got -1.0 at row 2"),
        ({"sample_weight": [1, 1, 1]}, r"has shape \(3,\), but X has 4 rows"),
        ({"dtype": "int8"}, "dtype must be"),
    ],
)
def test_bad_problems_are_refused_by_name(arguments, message):
    good = {"family": ck.Tessellated(1), "loss": ck.Hinge(), "X": [[0.1, 0.2], [0.3, 0.1], [0.5, 0.9], [0.7, 0.2]]}
    good["y"] = [1, -1, 1, -1]
    with pytest.raises(ck.InvalidInputError, match=message):
        ck.KernelLearning(**{**good, **arguments})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ck.Hinge(C=0.0), "C must be a finite number > 0, got 0.0"),
        (lambda: ck.Hinge(C=np.nan), "C must be a finite number > 0, got nan"),
        (lambda: ck.Tessellated(degree=-1), "degree must be a whole number >= 0, got -1"),
        (lambda: ck.Tessellated(degree=1.5), "degree must be a whole number >= 0, got 1.5"),
        (lambda: ck.Tessellated(trace=0.0), "trace must be a finite number > 0"),
        (lambda: ck.UnitBox(margin=0.0), "margin must be a finite number > 0"),
        (lambda: ck.Box([0, 1], [1, 1]), r"lower\[1\] = 1 and upper\[1\] = 1"),
        (lambda: ck.Box([0, 0], [1]), "equal length"),
        (lambda: make_solver("gradient"), "solver must be 'auto' or one of"),
    ],
)
def test_bad_settings_are_refused_by_name(make, message):
    with pytest.raises(ck.InvalidInputError, match=message):
        make()


@pytest.mark.parametrize("setting", [{"tol": 0.0}, {"max_time": -1.0}, {"max_iter": -1}])
def test_bad_limits_are_refused_by_name(setting):
    X, y = rings(10)
    with pytest.raises(ck.InvalidInputError, match=next(iter(setting))):
        ck.KernelLearning(ck.Tessellated(0), ck.Hinge(), X, y).solve(**setting)


def test_frank_wolfe_and_default_have_the_same_value_on_many_outputs():
    X, _ = rings(60)
    Y = np.where((3 * X[:, 1]).astype(int)[:, None] == np.arange(3), 1.0, -1.0)
    problem = ck.KernelLearning(ck.Tessellated(0), ck.Hinge(C=5.0), X, Y)
    a, b = run(problem, FrankWolfe(), tol=1e-4), run(problem, SpectralGradient(), tol=1e-4)
    assert a.value == pytest.approx(b.value, rel=2e-4)


@pytest.mark.parametrize("family", ["matrix", "weights"])
@pytest.mark.parametrize(
    "loss",
    [ck.LeastSquares(0.1), ck.LeastSquares(0.1, intercept=False), ck.Hinge(30.0), ck.EpsilonInsensitive(30.0, 0.1)],
    ids=repr,
)
def test_second_derivatives_are_those_of_the_gradient(loss, family):
    """Of a matrix in 4 entries there are more rows than entries, of 40 weights fewer."""
    rng = np.random.default_rng(0)
    X, m = rng.uniform(size=(24, 2)), 24
    Y = np.column_stack([np.sin(4.0 * X[:, 0]), X[:, 1] - X[:, 0] ** 2, rng.normal(size=m)])
    Y = np.where(np.median(Y, axis=0) < Y, 1.0, -1.0) if loss.of_labels else Y
    many = [ck.Gaussian(width) for width in np.geomspace(10.0, 1000.0, 40)]
    problem = ck.KernelLearning(ck.Tessellated(0) if family == "matrix" else ck.Candidates(many), loss, X, Y)
    theta = np.array(problem.gram_set.initial(), dtype=np.float64)
    toward = rng.normal(size=theta.shape) * np.abs(theta).max()
    toward = toward + toward.T if family == "matrix" else toward

    def gradient(at):
        return problem.lower_bound(problem.evaluate(at, tol=1e-13))[1]

    R = problem.curvature(problem.evaluate(theta, tol=1e-13), problem.gram_set.matrix(theta))
    assert R.shape == (4, 4) if family == "matrix" else R.shape[1] == 40 and len(R) <= 3 * m
    step = 1e-5
    expected = (gradient(theta + step * toward) - gradient(theta - step * toward)) / (2.0 * step)
    np.testing.assert_allclose((R.T @ (R @ toward.ravel())).reshape(theta.shape), expected, rtol=2e-4, atol=2e-5)
    problem.memory_limit = 1000.0
    assert problem.curvature(problem.evaluate(theta), problem.gram_set.matrix(theta)) is None
