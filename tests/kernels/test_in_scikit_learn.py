"""Learned kernels in the kernel machines of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

import convexkernels as ck
from convexkernels import HierarchicalGaussianRegressor, TessellatedRidge, TreeSearch


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (50, 2)) * [1.0, 10.0]
    y = np.sin(3.0 * X[:, 0]) + 0.1 * X[:, 1] + 0.1 * rng.standard_normal(50)
    return TessellatedRidge(1.0, tol=1e-2).fit(X, y).kernel_, X, y


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda kernel: SVC(kernel=kernel), lambda model, X: model.decision_function(X)),
        (lambda kernel: KernelRidge(kernel=kernel), lambda model, X: model.predict(X)),
        (lambda kernel: KernelPCA(2, kernel=kernel), lambda model, X: np.abs(model.transform(X))),
    ],
)
def test_a_learned_kernel_is_as_good_as_its_matrix(learned, make, answer):
    kernel, X, y = learned
    targets = (y > 0.0).astype(int) if isinstance(make("rbf"), SVC) else y
    direct = make(kernel).fit(X, targets)
    by_matrix = make("precomputed").fit(kernel(X), targets)
    np.testing.assert_allclose(answer(direct, X), answer(by_matrix, kernel(X)), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(answer(clone(direct).fit(X, targets), X[:5]), answer(direct, X[:5]))


def test_a_learned_kernel_without_negative_values_is_an_affinity(learned):
    _, X, y = learned
    kernel = HierarchicalGaussianRegressor(1, search=TreeSearch(max_iter=3), random_state=0).fit(X, y).kernel_
    direct = SpectralClustering(2, affinity=kernel, random_state=0).fit_predict(X)
    by_matrix = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(kernel(X))
    np.testing.assert_array_equal(direct, by_matrix)


def test_tables_are_passed_whole(learned):
    _, X, y = learned

    class Counting(ck.Gaussian):
        calls = 0

        def _gram(self, X, Y):
            Counting.calls += 1
            return super()._gram(X, Y)

    KernelRidge(kernel=Counting(0.1)).fit(X, y)
    assert Counting.calls == 1


def test_the_covariance_agrees_with_the_one_of_scikit_learn():
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((20, 3)), rng.standard_normal((5, 3))
    ours, theirs = ck.Gaussian(0.5 / 0.7**2).for_gaussian_process(2.5), ConstantKernel(2.5) * RBF(0.7, "fixed")
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12)
    np.testing.assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12)
    for mine, other in zip(ours(X, eval_gradient=True), theirs(X, eval_gradient=True), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    np.testing.assert_allclose(ours.theta, theirs.theta)
    np.testing.assert_allclose(ours.bounds, theirs.bounds)
    assert not ours.is_stationary()
    y = np.sin(X @ [1.0, -2.0, 0.5])
    first, second = (GaussianProcessRegressor(k + WhiteKernel(0.1, "fixed")).fit(X, y) for k in (ours, theirs))
    np.testing.assert_allclose(first.kernel_.theta, second.kernel_.theta, rtol=1e-4)
    for mine, other in zip(first.predict(Z, return_std=True), second.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-3)


def test_a_gaussian_process_finds_the_variance_of_a_learned_kernel(learned):
    kernel, X, y = learned
    process = GaussianProcessRegressor(kernel.for_gaussian_process() + WhiteKernel(0.01, "fixed")).fit(X, y)
    theta = process.kernel_.theta
    assert theta.shape == (1,)
    assert process.log_marginal_likelihood(theta) > process.log_marginal_likelihood([0.0])
    up, down = (process.log_marginal_likelihood(theta + 0.7 + h) for h in (1e-4, -1e-4))
    _, slope = process.log_marginal_likelihood(theta + 0.7, eval_gradient=True)
    np.testing.assert_allclose(slope, (up - down) / 2e-4, rtol=1e-5)
    back = pickle.loads(pickle.dumps(process))
    np.testing.assert_array_equal(back.predict(X), process.predict(X))
    assert process.score(X, y) > 0.9


def test_hyperparameters_and_copies():
    covariance = ck.Gaussian(0.3).for_gaussian_process(2.0, "fixed")
    assert covariance.theta.shape == (0,)
    assert covariance(np.eye(2), eval_gradient=True)[1].shape == (2, 2, 0)
    moved = ck.Gaussian(0.3).for_gaussian_process().clone_with_theta(np.log([5.0]))
    assert moved.variance == pytest.approx(5.0)
    assert clone(moved).kernel.gamma == 0.3
    assert repr(moved) == "5 * Gaussian(gamma=0.3)"
    with pytest.raises(ValueError, match="Y=None"):
        moved(np.eye(2), np.eye(2), eval_gradient=True)
