"""Learning by features: many rows, the same answers."""

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.criteria.ridge import residuals_at, solved_at
from convexkernels.factored import FactoredGram
from convexkernels.families import landmarks
from convexkernels.families.stacks import factored
from convexkernels.kernels.normalized import Normalized
from convexkernels.losses import LOSSES
from convexkernels.losses.factored import dual_of_values, maximize_factored
from convexkernels.losses.fit import measure


class Plain(FactoredGram):
    """Features as a matrix."""

    def __init__(self, Psi):
        super().__init__(*Psi.shape)
        self.Psi, self.products = Psi, 0

    def values(self, v):
        self.products += 1
        return self.Psi @ v

    def pulled(self, a):
        return self.Psi.T @ a

    def rows(self, index):
        return self.Psi[index]


def table(rng, m=300, n=4):
    X = rng.random((m, n))
    f = np.sin(5.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
    return X, f + 0.2 * rng.standard_normal(m)


@pytest.mark.parametrize(("m", "rank"), [(200, 12), (60, 90), (3000, 5)])
@pytest.mark.parametrize("name", [name for name in LOSSES if not LOSSES[name][1]().needs_definite])
def test_inner_problems_have_the_optimum_of_the_dense_solvers(name, m, rank, rng):
    loss = LOSSES[name][1]()
    Psi = rng.standard_normal((m, rank)) / np.sqrt(rank)
    t = Psi @ rng.standard_normal((rank, 2)) + 0.4 * rng.standard_normal((m, 2)) + 0.2
    Y = loss.targets(np.where(t > 0.0, 1.0, -1.0) if loss.of_labels else 3.0 * t, m)
    weights = rng.uniform(0.5, 2.0, m)
    weights[:3] = 0.0
    K = Plain(Psi)
    found = measure(loss, K, Y, weights, maximize_factored(loss, K, Y, weights, tol=1e-7))
    assert found.upper - found.value <= 1e-7 * abs(found.upper)
    if m < 1000:
        dense = measure(loss, K.dense(), Y, weights, loss.maximize_all(K.dense(), Y, weights, tol=1e-8))
        assert dense.upper - dense.value <= 2e-8 * abs(dense.upper)
        assert found.upper == pytest.approx(dense.upper, rel=1e-6)


def test_a_start_spares_steps_and_changes_nothing(rng):
    Psi = rng.standard_normal((500, 8))
    y = np.where(Psi[:, 0] + 0.5 * rng.standard_normal(500) > 0.0, 1.0, -1.0)[None]
    loss, K, weights = ck.Hinge(1.0), Plain(Psi), np.ones(500)
    first = maximize_factored(loss, K, y, weights, tol=1e-6)
    again = maximize_factored(loss, K, y, weights, start=first, tol=1e-6)
    assert measure(loss, K, y, weights, again).upper == pytest.approx(
        measure(loss, K, y, weights, first).upper, rel=1e-6
    )


@pytest.mark.parametrize("name", [name for name in LOSSES if LOSSES[name][1]().of_labels])
def test_the_function_of_some_rows_says_where_to_begin_on_all(name, rng):
    loss = LOSSES[name][1]()
    Psi = np.cos(rng.random((4000, 3)) @ rng.normal(0.0, 4.0, (3, 80)) + rng.uniform(0.0, 6.0, 80)) / np.sqrt(80.0)
    t = Psi @ rng.normal(0.0, 3.0, (80, 2)) + rng.standard_normal((4000, 2))
    Y = loss.targets(np.where(t > 0.0, 1.0, -1.0), 4000)
    weights = rng.uniform(0.5, 2.0, 4000)
    weights[:3] = 0.0
    some, K = slice(0, 2000), Plain(Psi)
    alpha = maximize_factored(loss.at(0.5 * loss.lam), Plain(Psi[some]), Y[:, some], weights[some], tol=1e-6)
    small = measure(loss.at(0.5 * loss.lam), Plain(Psi[some]), Y[:, some], weights[some], alpha)
    F = (Psi @ (Psi[some].T @ small.W.T)).T + small.b[:, None]
    start = dual_of_values(loss, F, Y, weights)
    feasible = [loss.feasible(a, y, weights) for a, y in zip(start, Y, strict=True)]
    np.testing.assert_allclose(start, feasible, atol=1e-12)
    solved, steps = [], []
    for begin in (start, None):
        K.products = 0
        solved.append(measure(loss, K, Y, weights, maximize_factored(loss, K, Y, weights, start=begin, tol=1e-4)))
        steps.append(K.products)
    assert steps[0] <= steps[1]
    assert solved[0].upper == pytest.approx(solved[1].upper, rel=2e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_left_out_in_closed_form(intercept, rng):
    Psi, weights = rng.standard_normal((40, 6)), rng.uniform(0.5, 2.0, 40)
    Y = rng.standard_normal((2, 40))
    W, diagonal = solved_at(Plain(Psi), Y, weights, 0.3, intercept)
    expected = solved_at(Psi @ Psi.T, Y, weights, 0.3, intercept)
    np.testing.assert_allclose(W, expected[0], atol=1e-10)
    np.testing.assert_allclose(diagonal, expected[1].diagonal(), atol=1e-10)
    alone = solved_at(Psi @ Psi.T, Y, weights, 0.3, intercept, diagonal=True)
    np.testing.assert_allclose(alone[0], expected[0], rtol=1e-10)
    np.testing.assert_allclose(alone[1], expected[1].diagonal(), rtol=1e-10)
    by_rows = [np.array([i]) for i in range(40)]
    left = residuals_at(Psi @ Psi.T, Y, weights, 0.3, by_rows, intercept=intercept)
    np.testing.assert_allclose(left, W / diagonal, atol=1e-9)


def test_landmarks_see_themselves_and_never_too_much(rng):
    X, L = rng.random((30, 3)), rng.random((10, 3))
    kernel = ck.Gaussian(2.0)
    seen = ck.Nystrom(kernel, L)
    np.testing.assert_allclose(seen(X, L), kernel(X, L), atol=1e-4)
    assert np.linalg.eigvalsh(kernel(X) - seen(X))[0] >= -1e-8


def test_with_every_row_for_a_landmark_the_optimum_is_that_of_the_kernels(rng):
    X, y = table(rng, 80)
    kernels = [ck.Gaussian(1.0), ck.Gaussian(10.0), ("first", ck.Gaussian(5.0), [0]), ck.Linear()]
    exact, seen = (
        ck.KernelLearning(ck.Candidates(kernels, "variance", landmarks=landmarks), ck.LeastSquares(0.1), X, y).solve(
            tol=1e-6
        )
        for landmarks in (None, X)
    )
    assert seen.certificate.upper == pytest.approx(exact.certificate.upper, rel=1e-4)
    np.testing.assert_allclose(seen.theta, exact.theta, atol=0.02)
    Z = rng.random((20, 4))
    np.testing.assert_allclose(seen.decision_function(Z), exact.decision_function(Z), atol=0.02)


@pytest.mark.parametrize("loss", [ck.Hinge(5.0), ck.LeastSquares(0.1, intercept=False)], ids=repr)
def test_with_every_row_for_a_landmark_the_optimum_is_that_of_the_tessellated_kernels(loss, rng):
    X, y = table(rng, 60)
    y = np.where(y > y.mean(), 1, -1) if loss.of_labels else y
    exact, seen = (
        ck.KernelLearning(ck.Tessellated(1, 1, landmarks=landmarks), loss, X, y).solve(tol=1e-5)
        for landmarks in (None, X)
    )
    assert seen.certificate.upper == pytest.approx(exact.certificate.upper, rel=1e-4)
    np.testing.assert_allclose(seen.decision_function(X), exact.decision_function(X), atol=0.01)


def test_kernels_of_a_family_are_projected_alike(rng):
    """Sums of kernels stay sums, constants stay constants, and landmarks are seen as they are."""
    L, Z = rng.random((6, 2)), rng.random((9, 2))
    wide, narrow, reference = ck.Gaussian(1.0), ck.Gaussian(9.0), ck.Gaussian(3.0)
    seen = [ck.Nystrom(kernel, L, reference)(Z) for kernel in (wide, narrow, wide + narrow, ck.Constant(2.0))]
    np.testing.assert_allclose(seen[0] + seen[1], seen[2], atol=1e-9)
    np.testing.assert_allclose(seen[3], 2.0, rtol=1e-12)
    np.testing.assert_allclose(ck.Nystrom(narrow, L, reference)(L), narrow(L), atol=1e-7)


def test_what_rounding_leaves_of_centered_landmarks_is_no_direction(rng):
    X = rng.random((40, 30))
    beyond = np.vstack([X[:1, :3] + 7.0, X[:2, :3] + 9.0])  # all are one point of the box
    assert ck.Tessellated(landmarks=beyond).on(X[:, :3], modulo_constants=True).B.shape == (40, 0)
    near = ck.Tessellated(0, 0, ck.UnitBox(1.0), landmarks=20).on(X)
    assert near.largest_scale(False) == pytest.approx(3.0**30, rel=1e-3)


@pytest.mark.parametrize(
    "family",
    [
        ck.Tessellated(1, 0, ck.UnitBox(0.5), landmarks=20),
        ck.Candidates([ck.Gaussian(2.0), ("first", ck.Gaussian(5.0), [0])], "variance", landmarks=20),
    ],
    ids=["tessellated", "candidates"],
)
def test_the_function_is_the_one_that_was_certified(family, rng):
    X, y = table(rng)
    problem = ck.KernelLearning(family, ck.Hinge(5.0), X, np.where(y > y.mean(), 1, -1))
    solution = problem.solve(tol=1e-4)
    assert solution.certificate.holds(1e-4)
    W = problem.coefficients(np.atleast_2d(solution.alpha))
    Z = rng.random((10, 4))
    by_kernel = solution.kernel(Z, X) @ W[0] + solution.intercept
    np.testing.assert_allclose(solution.decision_function(Z), by_kernel, atol=1e-9 * np.abs(by_kernel).max())
    assert solution.verify().relative_gap <= 1e-4
    with pytest.raises(ck.InvalidInputError, match="no error bound"):
        solution.verify(rigorous=True)


def tessellated_parts(problem, theta, X, L):
    """Exact matrix, and that of residuals of the best affine combinations of landmarks in the central kernel."""
    inner = problem.gram_set.inner
    central, kernel, ones = inner.kernel(inner.initial()), inner.kernel(theta), np.ones((len(L), 1))
    bordered = np.block([[central(L), ones], [ones.T, np.zeros((1, 1))]])
    U = np.linalg.solve(bordered, np.vstack([central(L, X), np.ones((1, len(X)))]))[:-1].T
    cross = U @ kernel(L, X)
    return kernel(X), kernel(X) - cross - cross.T + U @ kernel(L) @ U.T


def candidate_parts(problem, theta, X, L):
    """Exact matrix, and what projections on the span of landmarks leave of it."""
    cosine, K, E = problem.family.normalize == "cosine", 0.0, 0.0
    for weight, given in zip(theta * problem.gram_set.scales, CANDIDATES, strict=True):
        _, kernel, columns = given if isinstance(given, tuple) else ("", given, slice(None))
        kernel, Z, N = Normalized(kernel) if cosine else kernel, X[:, columns], L[:, columns]
        seen = kernel(Z, N) @ np.linalg.pinv(kernel(N), rcond=1e-9) @ kernel(N, Z)
        E = E + weight * (kernel(Z) - (kernel(Z) if isinstance(given, ck.Linear) else seen))
        K = K + weight * kernel(Z)
    return K, E


CANDIDATES = [ck.Gaussian(2.0), ("first", ck.Gaussian(20.0), [0]), ck.Linear()]
L = np.random.default_rng(5).random((9, 2))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("family", "parts"),
    [
        (ck.Tessellated(1, 0, landmarks=L), tessellated_parts),
        (ck.Tessellated(1, 1, landmarks=L), tessellated_parts),
        *((ck.Candidates(CANDIDATES, norm, landmarks=L), candidate_parts) for norm in ("none", "variance", "cosine")),
    ],
    ids=["tessellated", "with z", "candidates", "variance", "cosine"],
)
def test_what_landmarks_do_not_see_is_said(family, parts, intercept, rng, monkeypatch):
    for module in (landmarks, factored):
        monkeypatch.setattr(module, "CHUNK", 16)
    X = rng.random((50, 2))
    solution = ck.KernelLearning(family, ck.LeastSquares(0.1, intercept), X, np.sin(6.0 * X[:, 0]) * X[:, 1]).solve()
    K, E = parts(solution.problem, solution.theta, X, L)
    seen, unseen = solution.kernel(X), np.diagonal(E)
    whole = unseen.sum() + np.trace(seen) - intercept * seen.mean() * len(X)
    share, largest = solution.landmark_error()
    assert (share, largest) == pytest.approx((unseen.sum() / whole, len(X) * unseen.max() / whole), rel=1e-6)
    assert 1e-4 < share < largest < 5.0
    if isinstance(family, ck.Candidates) and family.normalize != "cosine" and not intercept:
        assert share == pytest.approx(1.0 - np.trace(seen) / np.trace(K), rel=1e-6)
    solution.problem.gram_set.seen_by_landmarks = None
    assert solution.landmark_error() == (share, largest)  # looked at once


def test_rows_that_are_landmarks_are_seen(rng):
    X, y = table(rng, 40)
    for family in (ck.Tessellated(0, 0, landmarks=X), ck.Candidates([ck.Gaussian(3.0)], landmarks=X)):
        assert max(ck.KernelLearning(family, ck.LeastSquares(0.1), X, y).solve().landmark_error()) < 1e-6


@pytest.mark.parametrize(
    "problem",
    [
        lambda X, y: ck.KernelLearning(ck.Candidates([ck.Gaussian(3.0)]), ck.LeastSquares(0.1), X, y),
        lambda X, y: ck.KernelLearning(ck.Tessellated(0, 0), ck.LeastSquares(0.1), X, y),
        lambda X, y: ck.FixedKernel(ck.Gaussian(3.0), ck.LeastSquares(0.1), X, y),
    ],
    ids=["candidates", "tessellated", "fixed"],
)
def test_what_landmarks_do_not_see_needs_landmarks(problem, rng):
    solution = problem(*table(rng, 30)).solve()
    with pytest.raises(ck.InvalidInputError, match=r"landmark_error: \w+\(.* has no landmarks.*landmarks=\.\.\."):
        solution.landmark_error()


def test_many_rows_need_no_matrix(rng):
    X, y = table(rng, 20_000)
    kernels = [(f"x{j}", ck.Gaussian(5.0), [j]) for j in range(4)]
    family = ck.Candidates(kernels, "variance", landmarks=15)
    labels = np.where(y > y.mean(), 1, -1)
    problem = ck.KernelLearning(family, ck.Hinge(1.0), X, labels, memory_limit=100e6)  # one matrix would take 3.2e9
    solution = problem.solve(tol=1e-2)
    assert solution.certificate.holds(1e-2)
    assert np.mean(np.sign(solution.decision_function(X)) == labels) > 0.85
    with pytest.raises(ck.MemoryLimitError, match="landmarks"):
        ck.KernelLearning(family, ck.Hinge(1.0), X, labels, memory_limit=1e6)


@pytest.mark.parametrize(
    "make",
    [lambda: ck.TessellatedRidge(1.0, landmarks=25), lambda: ck.MultipleKernelRidge(lam=1.0, landmarks=25)],
    ids=["tessellated", "candidates"],
)
def test_estimators_leave_out_rows_exactly(make, rng):
    X, y = table(rng, 90)
    model = make().fit(X, y)
    kernel = model.kernel_
    for i in (0, 17):
        keep = np.arange(90) != i
        K = kernel(X[keep]) + np.eye(89)
        ones = np.linalg.solve(K, np.column_stack([y[keep], np.ones(89)]))
        b = ones[:, 0].sum() / ones[:, 1].sum()
        left = kernel(X[i : i + 1], X[keep]) @ (ones[:, 0] - b * ones[:, 1]) + b
        assert model.loo_predictions_[i] == pytest.approx(float(left[0]), rel=1e-3, abs=1e-3)
    assert model.predict_interval(X[:5]).shape == (5, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ck.Tessellated(0, landmarks=0), "landmarks"),
        (lambda: ck.Tessellated(0, landmarks=np.ones((3, 2))).on(np.ones((4, 3))), "landmarks"),
        (lambda: ck.Candidates([ck.Linear()], center=True, landmarks=5), "center=True"),
        (lambda: ck.Candidates([np.eye(3)], landmarks=5), "ready-made"),
        (lambda: ck.Candidates([ck.Linear()], landmarks=0), "landmarks"),
        (lambda: ck.TessellatedSVC(landmarks="many").fit([[0.0], [1.0]], [0, 1]), "landmarks"),
        (lambda: ck.MultipleKernelSVC(landmarks=-1).fit([[0.0], [1.0]], [0, 1]), "landmarks"),
    ],
)
def test_refusals_name_the_argument(make, message):
    with pytest.raises(ck.InvalidInputError, match=message):
        make()


def test_features_have_the_diagonals_of_their_matrices_on_any_scale():
    X = np.random.default_rng(0).standard_normal((30, 2))
    kernels = [ck.Gaussian(0.5), ck.Gaussian(2.0), ck.Linear()]
    problem = ck.KernelLearning(ck.Candidates(kernels, "variance", landmarks=10), ck.Hinge(1.0), X, np.sign(X[:, 0]))
    stack = problem.gram_set.stack
    assert (stack.scales != 1.0).all()
    for k, diagonal in enumerate(stack.diagonals()):
        K = stack.combine(np.eye(3)[k], np.empty((30, 30)))
        np.testing.assert_allclose(diagonal, np.diagonal(K), rtol=1e-12)
