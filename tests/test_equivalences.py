"""Different statements of the same problem have the same answer; special cases agree with scikit-learn."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR

import convexkernels as ck

M = 60


@pytest.fixture
def table(rng):
    X = rng.uniform(-1.0, 1.0, (M, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(M)
    return X, y, np.where(y > np.median(y), 1.0, -1.0)


def learn(kernels, loss, X, y, tol=1e-7, normalize="none", **options):
    return ck.KernelLearning(ck.Candidates(kernels, normalize, **options), loss, X, y).solve(tol=tol)


def test_one_kernel_is_the_support_vector_classifier(table, rng):
    X, _, labels = table
    Z = rng.uniform(-1.0, 1.0, (40, 3))
    ours = learn([ck.Gaussian(0.7)], ck.Hinge(C=4.0), X, labels)
    theirs = SVC(C=4.0, gamma=0.7, tol=1e-8).fit(X, labels)
    np.testing.assert_allclose(ours.decision_function(Z), theirs.decision_function(Z), atol=2e-4)
    objective = (
        np.abs(theirs.dual_coef_).sum()
        - 0.5 * theirs.dual_coef_[0] @ ck.Gaussian(0.7)(theirs.support_vectors_) @ (theirs.dual_coef_[0])
    )
    assert ours.value == pytest.approx(objective, rel=1e-6)


def test_one_kernel_is_support_vector_regression(table, rng):
    X, y, _ = table
    Z = rng.uniform(-1.0, 1.0, (40, 3))
    weights = rng.uniform(0.5, 2.0, M)
    family = ck.Candidates([ck.Gaussian(0.7)], normalize="none")
    problem = ck.KernelLearning(family, ck.EpsilonInsensitive(C=2.0, epsilon=0.05), X, y, sample_weight=weights)
    theirs = SVR(C=2.0, epsilon=0.05, gamma=0.7, tol=1e-8).fit(X, y, weights)
    np.testing.assert_allclose(problem.solve(tol=1e-7).decision_function(Z), theirs.predict(Z), atol=2e-4)


def test_one_kernel_without_intercept_is_kernel_ridge(table, rng):
    X, y, _ = table
    Z = rng.uniform(-1.0, 1.0, (40, 3))
    weights = rng.uniform(0.5, 2.0, M)
    Y = np.column_stack([y, y**2])
    family = ck.Candidates([ck.Gaussian(0.7)], normalize="none")
    problem = ck.KernelLearning(family, ck.LeastSquares(0.3, intercept=False), X, Y, sample_weight=weights)
    theirs = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.7).fit(X, Y, weights)
    np.testing.assert_allclose(problem.solve().decision_function(Z), theirs.predict(Z), atol=1e-9)


def test_pinball_of_one_half_is_regression_with_epsilon_zero(table):
    X, y, _ = table
    kernels = [ck.Gaussian(0.7), ck.Polynomial(2)]
    half = learn(kernels, ck.Pinball(C=4.0, quantile=0.5), X, y, tol=1e-7)
    flat = learn(kernels, ck.EpsilonInsensitive(C=2.0, epsilon=0.0), X, y, tol=1e-7)
    assert half.value == pytest.approx(flat.value, rel=1e-6)


def test_pinball_leaves_the_quantile_below_the_curve(rng):
    X = rng.uniform(size=(200, 1))
    y = X[:, 0] + rng.standard_normal(200)
    solution = learn([ck.Gaussian(1.0)], ck.Pinball(C=0.05, quantile=0.8), X, y, tol=1e-6)
    # Optimality in b: at most this share above, at most the rest below, up to the points on the curve.
    residual = y - solution.decision_function(X)
    assert np.mean(residual < -1e-6) <= 0.8 <= np.mean(residual <= 1e-6)


LOSSES = [ck.Hinge(C=3.0), ck.EpsilonInsensitive(C=3.0, epsilon=0.1), ck.LeastSquares(lam=0.2)]
KERNELS = [ck.Gaussian(0.3), ck.Gaussian(4.0), ("first", ck.Polynomial(2), [0])]


def target_for(loss, table):
    _, y, labels = table
    return labels if isinstance(loss, ck.Hinge) else y


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestSymmetries:
    def test_order_of_rows_and_of_kernels(self, loss, table, rng):
        X, y = table[0], target_for(loss, table)
        rows = rng.permutation(M)
        plain = learn(KERNELS, loss, X, y)
        shuffled = learn(KERNELS[::-1], loss, X[rows], y[rows])
        assert shuffled.value == pytest.approx(plain.value, rel=3e-7)
        np.testing.assert_allclose(shuffled.theta[::-1], plain.theta, atol=1e-3)

    def test_negated_target_negates_the_function(self, loss, table):
        X, y = table[0], target_for(loss, table)
        plain, flipped = learn(KERNELS, loss, X, y), learn(KERNELS, loss, X, -y)
        assert flipped.value == pytest.approx(plain.value, rel=3e-7)
        np.testing.assert_allclose(flipped.decision_function(X), -plain.decision_function(X), atol=1e-3)

    def test_larger_kernels_are_cheaper_errors(self, loss, table):
        """K -> s K with C -> C / s (lam -> s lam) leaves the function, and scales the objective."""
        X, y, s = table[0], target_for(loss, table), 7.0
        if isinstance(loss, ck.LeastSquares):
            other, factor = ck.LeastSquares(lam=s * loss.lam), 1.0
        elif isinstance(loss, ck.Hinge):
            other, factor = ck.Hinge(C=loss.C / s), 1.0 / s
        else:
            other, factor = ck.EpsilonInsensitive(C=loss.C / s, epsilon=loss.epsilon), 1.0 / s
        scaled = [s * k if isinstance(k, ck.Kernel) else (k[0], s * k[1], k[2]) for k in KERNELS]
        plain, large = learn(KERNELS, loss, X, y), learn(scaled, other, X, y)
        assert large.value == pytest.approx(factor * plain.value, rel=3e-7)
        np.testing.assert_allclose(large.theta, plain.theta, atol=1e-3)

    def test_duplicate_kernels_share_a_weight_and_change_nothing(self, loss, table):
        X, y = table[0], target_for(loss, table)
        plain = learn(KERNELS, loss, X, y)
        doubled = learn([*KERNELS, KERNELS[0]], loss, X, y, allow_duplicates=True)
        assert doubled.value == pytest.approx(plain.value, rel=3e-7)
        assert doubled.theta[0] + doubled.theta[3] == pytest.approx(plain.theta[0], abs=1e-3)
        with pytest.raises(ck.InvalidInputError, match=r"positions 0 and 3.*same"):
            learn([*KERNELS, KERNELS[0]], loss, X, y)

    def test_weights_are_repetitions(self, loss, table, rng):
        X, y = table[0], target_for(loss, table)
        times = rng.integers(1, 4, M)
        family = ck.Candidates(KERNELS, normalize="none")
        brief = ck.KernelLearning(family, loss, X, y, sample_weight=times).solve(tol=1e-7)
        rows = np.repeat(np.arange(M), times)
        long = ck.KernelLearning(family, loss, X[rows], y[rows]).solve(tol=1e-7)
        assert brief.value == pytest.approx(long.value, rel=1e-6)

    def test_stack_of_matrices_is_the_list_of_kernels(self, loss, table, rng):
        X, y = table[0], target_for(loss, table)
        Z = rng.uniform(-1.0, 1.0, (9, 3))
        kernels = [k if isinstance(k, ck.Kernel) else ck.OnColumns(k[1], k[2]) for k in KERNELS]
        stack, rows = np.array([k(X) for k in kernels]), np.array([k(Z, X) for k in kernels])
        for options in ({"normalize": "trace"}, {"normalize": "mean", "center": True}):
            points = ck.KernelLearning(ck.Candidates(KERNELS, **options), loss, X, y).solve(tol=1e-7)
            matrices = ck.KernelLearning(ck.Candidates(stack, **options), loss, None, y).solve(tol=1e-7)
            np.testing.assert_allclose(matrices.theta, points.theta, atol=1e-6)
            np.testing.assert_allclose(matrices.decision_function(rows), points.decision_function(Z), atol=1e-5)

    @pytest.mark.parametrize("normalize", ["trace", "mean", "cosine", "none"])
    @pytest.mark.parametrize("center", [False, True])
    def test_learned_kernel_in_scikit_learn_gives_the_same_function(self, loss, table, rng, normalize, center):
        X, y = table[0], target_for(loss, table)
        Z = rng.uniform(-1.0, 1.0, (9, 3))
        problem = ck.KernelLearning(ck.Candidates(KERNELS, normalize, center), loss, X, y)
        solution = problem.solve(tol=1e-7)
        if isinstance(loss, ck.Hinge):
            values = SVC(C=loss.C, kernel=solution.kernel, tol=1e-9).fit(X, y).decision_function(Z)
        elif isinstance(loss, ck.EpsilonInsensitive):
            machine = SVR(C=loss.C, epsilon=loss.epsilon, kernel=solution.kernel, tol=1e-9)
            values = machine.fit(X, y).predict(Z)
        else:
            kernel, b = solution.kernel, solution.intercept
            machine = KernelRidge(alpha=loss.lam, kernel="precomputed").fit(kernel(X), y - b)
            values = machine.predict(kernel(Z, X)) + b
        np.testing.assert_allclose(solution.decision_function(Z), values, atol=2e-3)


def test_streamed_and_single_precision_stacks_learn_the_same(table):
    X, _, labels = table
    kernels = [ck.Gaussian(g) for g in (0.1, 0.5, 2.0, 8.0)] + [ck.Polynomial(2)]
    values, stores = [], []
    pairs = M * (M + 1) // 2
    for limit in (None, 32.0 * M * M + 4.5 * 5 * pairs, 32.0 * M * M + 100.0):
        problem = ck.KernelLearning(ck.Candidates(kernels), ck.Hinge(C=50.0), X, labels, memory_limit=limit)
        stack = problem.gram_set.stack
        stores.append(str(stack.values.dtype) if hasattr(stack, "values") else "streamed")
        values.append(problem.solve(tol=1e-5).value)
    assert stores == ["float64", "float32", "streamed"]
    np.testing.assert_allclose(values, values[0], rtol=2e-5)


@pytest.mark.parametrize("C", [None, 5.0, 0.04, 0.021, 0.005])
def test_theorem_10_is_the_solution_of_17(rng, C):
    y = np.where(rng.random(50) < 0.3, 1.0, -1.0)
    K, value = ck.optimal_kernel_matrix(y, C)
    assert np.trace(K) == pytest.approx(50.0)
    assert (K < 0).any()
    problem = ck.KernelLearning(ck.AllKernelMatrices(50), ck.Hinge(C=10.0 if C is None else C), None, y)
    solution = problem.solve(tol=1e-7)
    assert solution.value == pytest.approx(value, rel=1e-6)
    # The closed form itself is certified, not only its value.
    assert problem.evaluate(K, tol=1e-9).value == pytest.approx(value, rel=1e-6)
    if C is None:
        assert value == pytest.approx(np.sum((1 - y.mean() * y) ** 2) / 100.0)
