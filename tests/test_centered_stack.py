"""Candidates centered on the points they are learned from: made together, and the same as one by one."""

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.kernels.normalized import Centered, with_mean


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrices_centered_in_the_stack_are_those_of_the_centered_kernels(dtype):
    rng = np.random.default_rng(0)
    X = rng.random((25, 3))
    random = ck.random_tessellated_kernels(3, 6, 1, box=ck.UnitBox(0.5), rng=0)
    kernels = [*random, ck.Gaussian(1.0), ck.Gaussian(3.0), ck.Polynomial(2)]
    family = ck.Candidates(kernels, normalize="none", center=True)
    gram_set = family.on(X, dtype=np.dtype(dtype))
    H = np.eye(25) - 1.0 / 25
    for k, kernel in enumerate(kernels):
        K = kernel(X)
        size = np.abs(K).max()
        np.testing.assert_allclose(
            gram_set.stack.matrix(k), H @ K @ H, atol=1e-5 * size if dtype == "float32" else 1e-12 * size
        )
        found = gram_set.kernels[k]
        assert isinstance(found, Centered)
        assert found.grand == pytest.approx(kernel._varying(X, X).mean(), rel=1e-12)
    Z = rng.random((4, 3))
    theta = gram_set.initial()
    np.testing.assert_allclose(gram_set.cross(theta, Z), gram_set.kernel(theta)(Z, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n", "degree"), [(3, 0), (4, 1), (2, 2)])
def test_what_varies_of_tessellated_kernels_is_centered_as_the_kernels_are(n, degree):
    rng = np.random.default_rng(1)
    X, Z = rng.random((30, n)), rng.random((7, n))
    (kernel,) = ck.random_tessellated_kernels(n, 1, degree, box=ck.UnitBox(0.7), rng=0)
    centered, H = Centered(kernel, X), np.eye(30) - 1.0 / 30
    K, cross = kernel(X), kernel(Z, X)
    size = np.abs(K).max()
    np.testing.assert_allclose(centered(X), H @ K @ H, atol=1e-13 * size)
    np.testing.assert_allclose(centered(Z, X), (cross - K.mean(axis=0)) @ H, atol=1e-13 * size)
    np.testing.assert_allclose(centered.diag(X), np.diagonal(centered(X)), atol=1e-13 * size)
    # No entry is larger than what its rounding is charged by.
    sizes = kernel._varying_sizes(X)
    assert (np.abs(kernel._varying(X, X)) <= np.sqrt(np.outer(sizes, sizes)) * (1.0 + 1e-9)).all()


def test_random_kernels_of_thirty_features_keep_their_digits_when_they_are_centered():
    """Their constants are ten orders of magnitude larger than what distinguishes points."""
    rng = np.random.default_rng(2)
    X = rng.random((60, 33))
    y = np.where(X[:, 0] + X[:, 1] > 1.0, 1.0, -1.0)
    kernels = ck.random_tessellated_kernels(33, 20, 0, box=ck.UnitBox(2.0), rng=0)
    family = ck.Candidates(kernels, normalize="variance", center=True, allow_duplicates=True)
    solution = ck.KernelLearning(family, ck.Hinge(1.0), X, y).solve(tol=1e-6)
    assert solution.status is ck.Status.OPTIMAL
    # In extended precision: k = <g, volume of the box above both>, all but constants for degree 0.
    volumes = np.prod(3.0 - np.maximum(X[:, None, :], X[None, :, :]).astype(np.longdouble), axis=2)
    for k in (0, 7):
        P = np.asarray(kernels[k].P).astype(np.longdouble)
        K = (P[0, 0] - 2 * P[0, 1] + P[1, 1]) * volumes
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        K = K / np.trace(K) * len(X)
        np.testing.assert_allclose(solution.problem.gram_set.stack.matrix(k), K.astype(float), atol=1e-10)
    T = rng.random((9, 33))
    found = solution.problem.measured(solution.theta, solution.alpha)
    direct = solution.kernel(T, X) @ (found.multiples * found.W[0]) + solution.intercept
    np.testing.assert_allclose(solution.decision_function(T), direct, atol=1e-8)


def test_a_known_mean_is_that_of_the_present_parameters():
    X = np.random.default_rng(3).random((20, 2))
    known = with_mean(Centered(ck.Gaussian(1.0), X.tolist()))
    np.testing.assert_allclose(known(X), Centered(ck.Gaussian(1.0), X)(X), atol=1e-15)
    known.set_params(points=X[:5])
    np.testing.assert_array_equal(known(X), Centered(ck.Gaussian(1.0), X[:5])(X))
    known = with_mean(Centered(ck.Gaussian(1.0), X))
    (2.0 * known).set_params(kernel__kernel__gamma=3.0)
    np.testing.assert_array_equal(known(X), Centered(ck.Gaussian(3.0), X)(X))


def test_sums_keep_the_digits_of_kernels_that_differ_little_from_constants():
    """In the sum of their P, 1e-6 and what is divided by 1e-12 would be rounding."""
    X = np.random.default_rng(4).random((30, 2))
    root = np.array([1.0 + 1e-6, 1.0])
    kernels = [ck.TessellatedKernel(P, [0, 0], [1, 1], 0) for P in (np.outer(root, root), np.eye(2), np.diag([2.0, 1]))]
    gram_set = ck.Candidates(kernels, "variance", center=True, allow_duplicates=True).on(X)
    theta = np.full(3, 1.0 / 3.0)
    K = gram_set.gram(theta)
    np.testing.assert_allclose(gram_set.cross(theta, X), K, atol=1e-13 * np.abs(K).max())
    np.testing.assert_allclose(gram_set.kernel(theta)(X), K, atol=1e-13 * np.abs(K).max())
    assert len(gram_set.kernel(theta).kernels) == 2


def test_ready_made_matrices_with_a_diagonal_below_zero_by_rounding_are_centered():
    A = np.random.default_rng(5).standard_normal((20, 5))
    A[3] = 0.0
    K = A @ A.T
    K[3, 3] = -1e-17
    y = np.where(A[:, 0] > 0.0, 1.0, -1.0)
    solution = ck.KernelLearning(ck.Candidates(np.array([K, np.eye(20)]), center=True), ck.Hinge(1.0), None, y).solve()
    assert solution.status is ck.Status.OPTIMAL
