"""Problems (20) and (21), and the displays of kernel weights."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

import convexkernels as ck
import convexkernels.solvers.convex.closest as method
from convexkernels.datasets import make_spiral
from convexkernels.plotting import KernelMatricesDisplay, KernelWeightsDisplay, RegularizationPathDisplay


@pytest.fixture(scope="module")
def spiral():
    X, y = make_spiral(12, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, ck.optimal_kernel_matrix(y)[0]


GAUSSIANS = [ck.Gaussian(g) for g in np.geomspace(0.1, 200.0, 8)]


@pytest.mark.parametrize("norm", ["one", "infinity"])
def test_sums_of_gaussians_agree_with_a_linear_program_and_saturate(spiral, norm):
    X, target = spiral
    match = ck.KernelMatching(ck.Candidates(GAUSSIANS, normalize="none"), X, target, norm).solve()
    A, b = np.array([k(X).ravel() for k in GAUSSIANS]).T, target.ravel()
    n, l = A.shape  # noqa: E741
    slack = -np.eye(n) if norm == "one" else -np.ones((n, 1))
    cost = np.append(np.zeros(l), np.full(slack.shape[1], 1.0 / n if norm == "one" else 1.0))
    rows = np.vstack([np.hstack([A, slack]), np.hstack([-A, slack])])
    assert match.value == pytest.approx(linprog(cost, A_ub=rows, b_ub=np.append(b, -b)).fun, rel=1e-5)
    assert match.certificate.lower >= (0.5 if norm == "one" else 1.0) - 1e-6
    assert match.certificate.relative_gap <= 1e-5


@pytest.mark.parametrize("norm", ["one", "infinity"])
@pytest.mark.parametrize("make", [ck.GeneralizedPolynomial, lambda d: ck.Tessellated(d, z_degree=0)])
def test_richer_families_come_closer_and_reach_the_target(spiral, norm, make):
    X, target = spiral
    matches = [ck.KernelMatching(make(degree), X, target, norm).solve() for degree in (1, 3, 5)]
    values = [match.value for match in matches]
    assert values[0] >= values[1] - 1e-5 >= values[2] - 2e-5
    assert values[2] <= 1e-4
    for match in matches:
        assert -1e-7 <= match.certificate.gap <= 1e-4
        assert np.linalg.eigvalsh(match.theta)[0] >= -1e-8 * np.abs(match.theta).max()
        error = np.abs(match.kernel(X) - target)
        assert (error.mean() if norm == "one" else error.max()) == pytest.approx(match.value, abs=1e-7)


@pytest.mark.parametrize("norm", ["one", "infinity"])
@pytest.mark.parametrize(
    "family", [ck.Candidates(GAUSSIANS, normalize="none"), ck.GeneralizedPolynomial(3), ck.Tessellated(1)], ids=str
)
def test_both_methods_find_the_same_optimum(spiral, norm, family):
    X, target = spiral
    problem = ck.KernelMatching(family, X, target, norm)
    ours, stated = problem.solve(tol=1e-7).certificate, problem.solve("CLARABEL").certificate
    assert ours.gap <= 1e-7
    assert ours.lower <= stated.upper + 1e-9
    assert stated.lower <= ours.upper + 1e-9


@pytest.mark.parametrize("norm", ["one", "infinity"])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_targets_of_any_size_and_sign(rng, norm, size):
    X = rng.random((8, 2))
    G = rng.standard_normal((8, 8))
    for target in (G + G.T, G @ G.T, -G @ G.T, np.zeros((8, 8)), np.eye(8)):
        for family in (ck.Candidates(GAUSSIANS), ck.Tessellated(1)):
            match = ck.KernelMatching(family, X, size * target, norm).solve()
            assert match.certificate.gap <= 1e-5 * (np.abs(size * target).max() or 1.0)


def test_a_matrix_of_thousands_of_numbers(spiral):
    X, target = spiral
    match = ck.KernelMatching(ck.Tessellated(4), X, target).solve(tol=1e-6)
    assert match.theta.shape == (140, 140)
    assert match.certificate.gap <= 1e-6
    assert np.abs(match.kernel(X) - target).mean() == pytest.approx(match.value, abs=1e-9)


def test_columns_of_very_different_size_lose_no_monomials(spiral):
    X, target = spiral
    for degree in (2, 4):
        values = [
            ck.KernelMatching(ck.GeneralizedPolynomial(degree), X * [unit, 1.0 / unit], target).solve().value
            for unit in (1.0, 1e3)
        ]
        assert values[1] == pytest.approx(values[0], abs=1e-4)


def test_bounds_of_targets_that_are_reached_are_zero(rng):
    for trial in range(60):
        m = 1 + trial % 4
        X = np.linspace(-0.5, 0.5, m)[:, None] + rng.uniform(-0.1, 0.1, (m, 1))
        G = rng.standard_normal((m, m))
        target = 10.0 ** rng.integers(-3, 4) * G @ G.T
        problem = ck.KernelMatching(ck.GeneralizedPolynomial(m + trial % 3), X, target, ["one", "infinity"][trial % 2])
        bounds = [problem.solve().certificate.lower]
        for Z in (np.eye(m), target, target - np.eye(m), rng.standard_normal((m, m))):
            bounds.append(problem.lower_bound(rng.random() * (Z + Z.T)))
        assert max(bounds) <= 1e-8 * np.abs(target).max()


@pytest.mark.parametrize(
    "X", [[[0.0], [2.0**-27], [1.0]], [[1.0], [1.0 + 1e-9], [0.0]], [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0 - 1e-9]]]
)
def test_points_that_arithmetic_cannot_tell_apart_are_told(X):
    target = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.warns(ck.ConvexKernelsWarning, match="cannot tell"):
        problem = ck.KernelMatching(ck.GeneralizedPolynomial(4), X, target, "infinity")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert problem.solve().certificate.lower <= 1e-9  # with all directions every matrix is reached


@pytest.mark.parametrize("degree", range(5))
def test_no_direction_is_left_out_that_has_a_trace(spiral, degree):
    X = spiral[0] - 0.5  # and no warning is given
    for z_degree in (0, 1, None):
        family = ck.Tessellated(degree, z_degree, box=ck.Box([-1.0, -1.0], [1.0, 1.0]))
        problem = ck.KernelMatching(family, X, spiral[1])
        assert problem.is_whole
        assert problem.cone.rank <= len(problem.unit)


def test_points_at_the_ends_of_a_box_have_no_room_on_one_side():
    X = np.array([[i, j] for i in (0.0, 0.5, 1.0) for j in (0.0, 0.5, 1.0)])
    y = (-1.0) ** np.arange(9)
    problem = ck.KernelMatching(ck.Tessellated(2, 1, box=ck.Box([0.0, 0.0], [1.0, 1.0])), X, np.outer(y, y))
    assert problem.is_whole
    certificate = problem.solve().certificate
    assert 0.3 < certificate.lower <= certificate.upper < 0.4


@pytest.mark.parametrize("row", [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.5]])
def test_one_point_in_a_corner_of_a_box_is_matched_by_what_has_room(row):
    problem = ck.KernelMatching(ck.Tessellated(1, box=ck.Box([0.0, 0.0], [1.0, 1.0])), [row], [[1.0]])
    assert problem.is_whole
    assert problem.cone.rank == (6 if row == [0.0, 0.5] else 3)


BOX = ck.Box([0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("family", "x"),
    [
        # Cubics through four points, parabolas through three: all of these are matched exactly.
        (ck.Tessellated(3, 0, box=BOX), [[0.25 - 2e-7, 1.0], [0.25, 1.0], [0.25 + 2e-7, 1.0], [0.75, 0.0]]),
        (ck.Tessellated(3, 0, box=BOX), [[0.25 - 1e-7, 1.0], [0.25, 1.0], [0.25 + 1e-7, 1.0], [0.75, 0.0]]),
        *((ck.GeneralizedPolynomial(3), [[-e], [0.0], [e], [1.0]]) for e in (5e-7, 2e-7)),
        (ck.GeneralizedPolynomial(2), [[0.0], [1e-13], [1.0]]),
        (ck.Tessellated(2, 0), [[0.0], [1e-13], [1.0]]),
        (ck.GeneralizedPolynomial(2), [[0.0], [2.0**-31], [1.0]]),
        (ck.Tessellated(2, 0), [[0.5], [0.5 + 2.0**-32], [1.0]]),
    ],
)
def test_nothing_is_proven_by_directions_that_nearby_points_have_lost(family, x):
    y = np.array([1.0, -1.0, 1.0, 0.0])[: len(x)]
    with pytest.warns(ck.ConvexKernelsWarning, match="cannot tell all directions"):
        problem = ck.KernelMatching(family, x, np.outer(y, y))
    assert not problem.is_whole
    with pytest.warns(ck.ConvexKernelsWarning, match="not solved"):
        assert problem.solve().certificate.lower <= 1e-9


def test_problems_with_numbers_at_the_ends_of_their_range():
    X = np.array([[0.1], [0.5]])
    for size in (1e100, 1e-100, 1e-317):
        problem = ck.KernelMatching(ck.GeneralizedPolynomial(3), X, size * np.eye(2))
        for solver in ("interior-point", "CLARABEL"):
            assert problem.solve(solver).certificate.gap <= 1e-5 * size
    with pytest.raises(ck.InvalidInputError, match="rescale"):
        ck.KernelMatching(ck.GeneralizedPolynomial(3), X, 1e101 * np.eye(2))


def test_time_and_interrupts_return_the_best_kernel(spiral, monkeypatch, capsys):
    X, target = spiral
    problem = ck.KernelMatching(ck.Tessellated(1), X, target)
    reached = problem.solve(progress=True).certificate
    assert "rel. gap" in capsys.readouterr().err
    with pytest.warns(ck.ConvexKernelsWarning, match="not solved"):
        short = problem.solve(max_time=1e-9).certificate
    assert short.lower <= reached.lower
    assert short.upper >= reached.upper
    assert short.upper == np.abs(target).mean()  # there was no time for any kernel but 0

    steps, step = [], method._step

    def step_four_times(*state):
        if len(steps) == 4:
            raise KeyboardInterrupt
        steps.append(step(*state))
        return steps[-1]

    monkeypatch.setattr(method, "_step", step_four_times)

    with pytest.warns(ck.ConvexKernelsWarning, match="not solved"):
        stopped = problem.solve()
    assert len(steps) == 4
    assert short.upper > stopped.value > reached.upper
    assert np.abs(stopped.kernel(X) - target).mean() == pytest.approx(stopped.value)


def test_bound_holds_for_any_multiplier(spiral, rng):
    X, target = spiral
    problem = ck.KernelMatching(ck.GeneralizedPolynomial(2), X, target)
    reached = problem.solve().value
    for _ in range(20):
        Z = rng.standard_normal(target.shape)
        assert 0.0 <= problem.lower_bound(Z + Z.T) <= reached * (1.0 + 1e-9)


def test_bad_input(spiral):
    X, target = spiral
    for arguments, said in [
        ((ck.GeneralizedPolynomial(1), X, target[:3]), "target"),
        ((ck.GeneralizedPolynomial(1), X, target + np.triu(np.ones(target.shape))), "symmetric"),
        ((ck.GeneralizedPolynomial(1), X, target, "two"), "norm"),
        ((ck.GeneralizedPolynomial(1), X, target, ["one"]), "norm"),
        (("Tessellated", X, target), "family"),
        ((ck.Span([ck.Gaussian(1.0)]), X, target), "cone"),
    ]:
        with pytest.raises(ck.InvalidInputError, match=said):
            ck.KernelMatching(*arguments)
    labels = np.array([1.0, -1.0, 1.0, -1.0])
    for wrong in (
        [],
        np.empty((4, 0)),
        [list(labels)],
        labels[:, None, None],
        np.column_stack([labels, labels]),
        1.0,
        None,
        "1",
    ):
        with pytest.raises(ck.InvalidInputError, match="one label a row"):
            ck.optimal_kernel_matrix(wrong)
    with pytest.raises(ck.InvalidInputError):
        ck.optimal_kernel_matrix([[1, 2], [1]])
    np.testing.assert_array_equal(ck.optimal_kernel_matrix(labels[:, None])[0], ck.optimal_kernel_matrix(labels)[0])
    problem = ck.KernelMatching(ck.GeneralizedPolynomial(1), X, target)
    for options, said in [({"solver": "simplex"}, "solver"), ({"tol": 0.0}, "tol"), ({"max_time": -1.0}, "max_time")]:
        with pytest.raises(ck.InvalidInputError, match=said):
            problem.solve(**options)
    with pytest.raises(ck.MemoryLimitError, match="fewer points"):
        ck.KernelMatching(ck.GeneralizedPolynomial(1), X, target, memory_limit=1e5).solve()


def test_displays_show_what_they_are_given(spiral):
    X, target = spiral
    weights = {f"k{i} on x{i % 2}": 0.1 * i for i in range(5)}
    bars = KernelWeightsDisplay(weights, largest=2).plot()
    assert [text.get_text() for text in bars.ax_.get_yticklabels()][:2] == ["k4 on x0", "k3 on x1"]
    assert sum(bar.get_width() for bar in bars.ax_.patches) == pytest.approx(1.0)
    path = RegularizationPathDisplay([1.0, 10.0], [[0.5, 0.5], [0.0, 1.0]], ["a", "b"]).plot()
    assert [line.get_label() for line in path.ax_.lines] == ["b", "a"]
    pictures = KernelMatricesDisplay({"K": target, "-K": -target}, X[:, 0]).plot()
    assert len(pictures.axes_) == 2
    model = ck.MultipleKernelRidge([("g on x0", ck.Gaussian(1.0), [0]), ("h on x0", ck.Gaussian(9.0), [0])])
    model.fit(X, X[:, 0])
    grouped = KernelWeightsDisplay.by_feature(model).plot()
    assert [text.get_text() for text in grouped.ax_.get_yticklabels()] == ["x0"]
    assert KernelWeightsDisplay.from_estimator(model).weights.keys() == {"g on x0", "h on x0"}


def test_combinations_of_any_sign_of_tessellated_kernels_at_new_points():
    rng = np.random.default_rng(0)
    X, Z, weights = rng.random((30, 2)), rng.random((5, 2)), np.array([1.0, -0.5, -0.3, 0.2])
    kernels = ck.random_tessellated_kernels(2, 4, 0, box=ck.UnitBox(0.5), rng=0)
    gram_set = ck.Span(kernels).on(X)
    expected = sum(weight * kernel(Z, X) for weight, kernel in zip(weights, kernels, strict=True))
    np.testing.assert_allclose(gram_set.cross(weights, Z), expected, rtol=1e-12)
