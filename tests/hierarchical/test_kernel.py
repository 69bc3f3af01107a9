"""The hierarchical Gaussian kernel: Definition 2.1, all derivatives, precision, threads, and refusals."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from convexkernels import Gaussian, HierarchicalGaussian, InvalidInputError
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.tree import KernelTree

# depth -> a tree in which nodes have different numbers of children
TREES = {
    1: [0, 2, 3],
    2: [[0, 1], [1, 2, 3], [3]],
    3: [[[0, 1], [1, 2, 3]], [[0, 3]], [[2], [1, 0], [3]]],
    4: [[[[0, 1], [2]], [[3]]], [[[1, 2, 3]]]],
}


def direct(tree, weights, X, Z):
    """Equations (4) and (7), node by node."""
    values = []
    for place in tree.places:
        w = weights[place.weights]
        if place.is_leaf:
            columns = list(place.features)
            S = ((X[:, None, columns] - Z[None, :, columns]) ** 2) @ w**2
        else:
            S = 2.0 * sum(w[i] ** 2 * (1.0 - values[child]) for i, child in enumerate(place.children))
        values.append(np.exp(-S))
    return values[-1]


@pytest.fixture(params=TREES)
def case(request, rng):
    tree = KernelTree.build(TREES[request.param])
    assert tree.depth == request.param
    # More rows and columns than one tile has, and not a multiple of it.
    return tree, rng.uniform(0.3, 1.2, tree.n_weights), rng.uniform(-1, 1, (150, 4)), rng.uniform(-1, 1, (530, 4))


def test_matrix_is_the_recursion(case):
    tree, w, X, Z = case
    np.testing.assert_allclose(TreeEvaluation(tree, w**2, X, Z).gram(), direct(tree, w, X, Z), rtol=0, atol=1e-13)
    K = TreeEvaluation(tree, w**2, X).gram()
    np.testing.assert_allclose(K, direct(tree, w, X, X), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(np.tril(TreeEvaluation(tree, w**2, X).gram(lower=True)), np.tril(K))


def test_weights_of_zero_cut_off_what_is_below(case):
    tree, w, X, Z = case
    for index in range(tree.n_weights):
        cut = w.copy()
        cut[index] = 0.0
        np.testing.assert_allclose(
            TreeEvaluation(tree, cut**2, X, Z).gram(), direct(tree, cut, X, Z), rtol=0, atol=1e-13
        )


@pytest.mark.parametrize("one_table", [True, False])
def test_one_backward_pass_gives_every_derivative(case, rng, one_table):
    """Against derivatives by complex steps of the recursion, which cancel nothing."""
    tree, w, X, Z = case
    other = X if one_table else Z
    M = rng.standard_normal((len(X), len(other)))
    slopes = TreeEvaluation(tree, w**2, X, None if one_table else Z).gradient(M)
    for index in range(tree.n_weights):
        moved = w.astype(complex)
        moved[index] += 1e-30j
        exact = np.sum(M * direct(tree, moved, X, other).imag) / 1e-30 * w[index]
        assert abs(slopes[index] - exact) <= 1e-11 * np.abs(M).sum()


def test_single_precision_is_close(case, rng):
    tree, w, X, _ = case
    M = rng.standard_normal((len(X), len(X)))
    double, single = TreeEvaluation(tree, w**2, X), TreeEvaluation(tree, w**2, X, dtype=np.float32)
    assert single.gram().dtype == np.float32
    np.testing.assert_allclose(single.gram(), double.gram(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(single.gradient(M), double.gradient(M), rtol=0, atol=1e-5 * np.abs(M).sum())


def test_threads_change_nothing(case, rng):
    tree, w, X, Z = case
    X = np.repeat(X, 4, axis=0) + 0.01 * rng.standard_normal((600, 4))
    M = rng.standard_normal((600, 530))
    answers = []
    for count in (1, 2):
        with threadpool_limits(count):
            evaluation = TreeEvaluation(tree, w**2, X, Z)
            answers.append((evaluation.gram(), evaluation.gradient(M)))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-12)


def test_kernel_and_tree_agree(case):
    tree, w, X, Z = case
    kernel = HierarchicalGaussian.from_tree(tree, w)
    assert kernel.depth == tree.depth
    np.testing.assert_array_equal(kernel.flat_weights, w)
    np.testing.assert_allclose(kernel(X, Z), direct(tree, w, X, Z), rtol=0, atol=1e-13)
    halved = HierarchicalGaussian.from_tree(kernel.tree(X.shape[1]), 0.5 * w)
    np.testing.assert_allclose(halved(X, Z), direct(tree, 0.5 * w, X, Z), rtol=0, atol=1e-13)


def test_gamma_divides_the_weights_of_its_node(rng):
    X = rng.uniform(-1, 1, (20, 2))
    children = [HierarchicalGaussian([1.0, 0.5], gamma=2.0), HierarchicalGaussian([0.25], features=[1])]
    wide = HierarchicalGaussian([0.6, 0.8], children, gamma=0.5)
    plain = HierarchicalGaussian(
        [1.2, 1.6], [HierarchicalGaussian([0.5, 0.25]), HierarchicalGaussian([0.25], features=[1])]
    )
    np.testing.assert_allclose(wide(X), plain(X), rtol=1e-13)


def test_depth_one_with_equal_weights_is_the_gaussian(rng):
    X = rng.uniform(-1, 1, (30, 3))
    np.testing.assert_allclose(HierarchicalGaussian([1.5, 1.5, 1.5])(X), Gaussian(1.5**2)(X), rtol=0, atol=1e-14)


def test_weight_gradient_is_that_of_the_weights_themselves(rng):
    X, Z, M = rng.uniform(-1, 1, (12, 2)), rng.uniform(-1, 1, (9, 2)), rng.standard_normal((12, 9))
    kernel = HierarchicalGaussian([0.7, 0.0, 0.4], [HierarchicalGaussian([1.0, 0.6])] * 3)
    slopes = kernel.weight_gradient(X, Z, M)
    w, h, tree = kernel.flat_weights, 1e-6, kernel.tree(2)
    for index in range(len(w)):
        up, down = w.copy(), w.copy()
        up[index] += h
        down[index] = max(down[index] - h, 0.0)
        there, back = (HierarchicalGaussian.from_tree(tree, at)(X, Z) for at in (up, down))
        difference = np.sum(M * (there - back))
        exact = difference / (up[index] - down[index])
        assert abs(slopes[index] - exact) < (1e-8 if w[index] > 0 else 1e-4)


REFUSED = [
    (lambda: HierarchicalGaussian([]), "at least one number"),
    (lambda: HierarchicalGaussian([1.0, -0.5]), "position 1"),
    (lambda: HierarchicalGaussian([np.nan, 1.0]), "nan at position 0"),
    (lambda: HierarchicalGaussian("ab"), "numbers"),
    (lambda: HierarchicalGaussian([1.0, 1.0], gamma=1e-300), "at most 1e\\+100 over gamma"),
    (lambda: HierarchicalGaussian([1.0], gamma=0.0), "gamma"),
    (lambda: HierarchicalGaussian([1.0], features=[]), "features is empty"),
    (lambda: HierarchicalGaussian([1.0], features=[2]), "unknown feature 2; features are columns 0, ..., 1"),
    (lambda: HierarchicalGaussian([1.0, 1.0], features=[1, 1]), "repeats"),
    (lambda: HierarchicalGaussian([1.0, 1.0, 1.0]), "3 entries, but the node sees 2"),
    (lambda: HierarchicalGaussian([1.0], [HierarchicalGaussian([1.0])], features=[0]), "not both"),
    (lambda: HierarchicalGaussian([1.0], []), "0 children"),
    (lambda: HierarchicalGaussian([1.0], [Gaussian(1.0)]), "HierarchicalGaussian kernels, got Gaussian"),
]


@pytest.mark.parametrize(("make", "phrase"), REFUSED)
def test_what_is_no_kernel_is_refused(make, phrase):
    with pytest.raises(InvalidInputError, match=phrase):
        make()(np.zeros((3, 2)))


def test_features_that_overflow_with_their_weights_are_refused():
    with pytest.raises(InvalidInputError, match="rescale the features"):
        HierarchicalGaussian([1e90])(np.array([[1e100], [2e100]]))


def test_gradients_of_the_wrong_shape_are_refused():
    kernel = HierarchicalGaussian([1.0])
    with pytest.raises(InvalidInputError, match="M has shape"):
        kernel.weight_gradient(np.zeros((3, 1)), None, np.zeros((2, 3)))
    with pytest.raises(InvalidInputError, match="has 1 in all"):
        HierarchicalGaussian.from_tree(kernel.tree(1), [1.0, 2.0])
