"""Trees and products on tensors give numpy's numbers."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import convexkernels as ck
from convexkernels import FixedKernel, Gaussian, HierarchicalGaussian, InvalidInputError, LeastSquares
from convexkernels.backend import Backend, MissingTorchError
from convexkernels.families.curved.trees import Trees
from convexkernels.kernels import operator
from convexkernels.kernels.hierarchical import evaluation
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.kernels.operator import GramOperator, OutOfTimeError
from convexkernels.solvers.convex.preparation import FREE_SHARE, tile_bytes
from convexkernels.solvers.convex.shifted_systems import LowRank

TREES = {
    1: [0, 2, 3],
    2: [[0, 1], [1, 2, 3], [3]],
    3: [[[0, 1], [1, 2, 3]], [[0, 3]], [[2], [1, 0], [3]]],
}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tables of a few hundred rows have several tiles then; threads would wait for each other."""
    monkeypatch.setattr(evaluation, "DEVICE_TILE", (64, 100))
    monkeypatch.setattr(operator, "DEVICE_TILE", 80)
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


def is_near(found, expected, tol):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tol * max(1.0, np.abs(expected).max()))


def far_pairs(rng, m):
    """Pairs of rows that are near each other and far from the origin, among others."""
    X = rng.uniform(-1, 1, (m, 4))
    X[: m // 4] *= 1e4
    X[m // 4 : m // 2] = X[: m // 4] + 0.3 * rng.standard_normal((m // 4, 4))
    return X


@pytest.fixture(params=["plain", "weight 0", "long rows"])
def points(request, rng):
    """Two tables, and whether a weight is 0."""
    X, Z = rng.uniform(-1, 1, (160, 4)), rng.uniform(-1, 1, (230, 4))
    if request.param == "long rows":
        X = far_pairs(rng, 160)
        Z[:100] = X[:100] + 0.3 * rng.standard_normal((100, 4))
    return X, Z, request.param == "weight 0"


@pytest.mark.parametrize("one_table", [True, False])
@pytest.mark.parametrize("depth", TREES)
def test_matrix_exponent_and_derivatives_are_the_same(depth, points, one_table, rng):
    tree, (X, Z, has_zero) = KernelTree.build(TREES[depth]), points
    Z = None if one_table else Z
    for cut in (0, tree.n_weights // 2, tree.n_weights - 1) if has_zero else (0,):
        squares = rng.uniform(0.1, 1.4, tree.n_weights)
        squares[cut] *= not has_zero
        here, there = (TreeEvaluation(tree, squares, X, Z, device=device) for device in (None, "cpu"))
        M = rng.standard_normal(here.shape)
        is_near(there.gram(), here.gram(), 1e-12)
        is_near(there.gram(exponent=True), here.gram(exponent=True), 1e-12)
        is_near(there.exponents_of(7), here.exponents_of(7), 1e-12)
        is_near(there.gradient(M), here.gradient(M), 1e-11)
        is_near(there.pullback(M) if Z is not None else 0.0, here.pullback(M) if Z is not None else 0.0, 1e-11)
        for part in (there.gram(), there.gradient(M)):
            assert type(part) is np.ndarray
            assert part.dtype == np.float64


@pytest.mark.parametrize("depth", TREES)
def test_lower_triangles_and_blocks_are_the_same(depth, points, rng):
    tree, X = KernelTree.build(TREES[depth]), points[0]
    here, there = (TreeEvaluation(tree, np.full(tree.n_weights, 0.5), X, device=device) for device in (None, "cpu"))
    is_near(np.tril(there.gram(lower=True)), np.tril(here.gram()), 1e-12)
    np.testing.assert_array_equal(there.gram(), there.gram().T)
    np.testing.assert_array_equal(np.diagonal(there.gram()), 1.0)
    M = rng.standard_normal(here.shape)
    M = M + M.T
    known = M.copy()
    slopes = there.gradient(np.where(np.tri(len(M)), M, np.nan), lower=True)
    is_near(slopes, here.gradient(M), 1e-11)
    there.gradient(M, lower=True)
    np.testing.assert_array_equal(M, known)  # tensors may share memory with what they are made of
    for rows, columns in ((slice(70, 150), slice(0, 40)), (slice(50, 130), slice(50, 130))):
        is_near(there.block(rows, columns).numpy(), here.gram()[rows, columns], 1e-12)


def test_long_rows_keep_their_digits(rng):
    """Distances of a third between rows 10,000 from the origin, of which products lose ten digits."""
    tree, X = KernelTree.build([[0, 1], [1, 2, 3]]), far_pairs(rng, 160)
    q = rng.uniform(0.1, 1.0, tree.n_weights)
    near = [np.square(X[:, None, list(p.features)] - X[:, list(p.features)]) @ q[p.weights] for p in tree.places[:2]]
    exact = np.exp(-2.0 * sum(w * (1.0 - np.exp(-S)) for w, S in zip(q[tree.places[2].weights], near, strict=True)))
    is_near(TreeEvaluation(tree, q, X, device="cpu").gram(), exact, 1e-12)
    assert np.count_nonzero((exact > 0.5) & (exact < 0.99)) > 50


@pytest.mark.parametrize("depth", TREES)
def test_single_precision_is_close(depth, rng):
    tree, X = KernelTree.build(TREES[depth]), rng.uniform(-1, 1, (160, 4))
    squares, M = rng.uniform(0.1, 1.4, tree.n_weights), rng.standard_normal((160, 160))
    here, there = (TreeEvaluation(tree, squares, X, dtype=np.float32, device=device) for device in (None, "cpu"))
    assert there.gram().dtype == np.float32
    is_near(there.gram(), here.gram(), 1e-5)
    assert np.abs(there.gradient(M) - here.gradient(M)).max() <= 1e-5 * np.abs(M).sum()
    is_near(there.gradient(M), TreeEvaluation(tree, squares, X).gradient(M), 1e-4)


def kernels(n):
    deep = HierarchicalGaussian(
        [1.0, 0.7], [HierarchicalGaussian(np.linspace(0.5, 1.0, n)), HierarchicalGaussian([2.0] * n)]
    )
    return {"tree": deep, "gaussian": Gaussian(2.0)}


@pytest.mark.parametrize("name", ["tree", "gaussian"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_by_tiles_are_those_of_the_matrix(name, dtype, rng):
    kernel, X, V = kernels(4)[name], far_pairs(rng, 292), rng.standard_normal((3, 292))
    K = kernel(X)
    tol, told = {np.float64: 1e-12, np.float32: 1e-5}[dtype], []
    for memory, kept in ((0.0, 0), (2.0 * 80**2 * np.dtype(dtype).itemsize, 2), (np.inf, 10)):
        products = GramOperator(kernel, X, dtype, memory, "cpu")
        assert products.n_kept == kept
        for _ in range(2):
            is_near(products.product(V, tell=told.append), V @ K, tol)
    assert told[-1] == 1.0
    rows = np.sort(rng.permutation(292)[:100])
    is_near(products.rows(rows), K[rows], 1e-12)
    is_near(products.square(rows), K[np.ix_(rows, rows)], tol)
    np.testing.assert_array_equal(products.product(np.zeros((2, 292))), 0.0)
    with pytest.raises(OutOfTimeError):
        products.product(V, deadline=0.0)


def test_preconditioner_is_the_inverse(rng):
    Z, weights, R = rng.standard_normal((60, 9)), rng.uniform(0.5, 2.0, 60), rng.standard_normal((3, 60))
    low_rank, lams, rows = LowRank(Z, weights, Backend("float64", "cpu")), np.array([0.1, 0.2, 0.1]), [3, 8, 21]
    counted = np.setdiff1d(np.arange(60), rows)
    for part, at in ((low_rank, np.arange(60)), (low_rank.without(np.array(rows)), counted)):
        expected = np.zeros((3, 60))
        for k, lam in enumerate(lams):
            expected[k, at] = np.linalg.solve(Z[at] @ Z[at].T + np.diag(lam / weights[at]), R[k, at])
        is_near(part.solve(R, lams), expected, 1e-10)


@pytest.mark.parametrize("loss", [LeastSquares(0.05), ck.Hinge(2.0)])
@pytest.mark.parametrize("name", ["tree", "gaussian"])
def test_all_rows_have_the_same_function_and_gap(name, loss, rng):
    X = rng.uniform(-1, 1, (400, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(400)
    y = np.sign(y) if loss.of_labels else y
    here, there = (
        FixedKernel(kernels(3)[name], loss, X, y, device=device).solve(tol=1e-6, random_state=0)
        for device in (None, torch.device("cpu"))
    )
    assert here.certificate.relative_gap <= 1e-6
    assert there.certificate.relative_gap <= 1e-6
    assert repr(there.problem.loss) == repr(here.problem.loss)
    assert there.certificate.lower <= here.certificate.upper
    assert here.certificate.lower <= there.certificate.upper
    is_near(there.decision_function(X), here.decision_function(X), 1e-3)
    # The bounds of one are those of the other at the same point.
    again = here.problem.certificate(there.theta, there.alpha)
    assert (again.upper, again.lower) == pytest.approx((there.certificate.upper, there.certificate.lower), rel=1e-8)
    assert there.problem.forecast().kept == 1.0
    stored = pickle.dumps(there)
    assert b"torch" not in stored
    assert pickle.loads(stored).verify().relative_gap <= 1e-6


def test_tiles_take_the_memory_of_the_device(rng, monkeypatch):
    monkeypatch.setattr(Backend, "free_memory", lambda self: 1000.0)
    problem = FixedKernel(Gaussian(), LeastSquares(), rng.uniform(size=(30, 2)), rng.uniform(size=30), device="cpu")
    assert tile_bytes(problem, 10**12) == FREE_SHARE * 1000.0
    problem.memory_limit = 500.0
    assert tile_bytes(problem, 100.0) == 400.0


def test_what_pytorch_keeps_for_later_is_free(monkeypatch):
    """By a device and its memory that only say what they are asked for."""
    backend, here = Backend("float32", "cpu"), SimpleNamespace(type="cuda", index=0)
    backend.device = SimpleNamespace(type="cuda")
    backend.xp = SimpleNamespace(zeros=lambda n, device: SimpleNamespace(device=here))
    told = {"mem_get_info": {0: (100, 900)}, "memory_reserved": {0: 50}, "memory_allocated": {0: 20}}
    memory = SimpleNamespace(**{name: lambda at, told=told[name]: told[at.index] for name in told})
    monkeypatch.setattr("convexkernels.backend.import_module", lambda name: SimpleNamespace(cuda=memory))
    assert backend.free_memory() == 130.0


def test_searches_are_the_same(rng):
    """The same rows are drawn, and values differ by rounding: of float64 on all rows, of float32 on those drawn."""
    X = rng.uniform(-1, 1, (240, 4))
    y = np.sin(3.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(240)
    for solver, tol in (("quasi-newton", 1e-4), ("stochastic", 1e-2)):
        here, there = (
            ck.OuterLearning(Trees(3, device=device), LeastSquares(0.1), ck.LeaveOneOut(), X, y).solve(
                solver, max_iter=8, random_state=0
            )
            for device in (None, "cpu")
        )
        assert there.problem.on_rows(np.arange(9)).gram_set.device == "cpu"
        assert FixedKernel.of(there, X, y).device == "cpu"
        assert FixedKernel.of(there, X, y, device=None).device is None
        is_near(there.theta, here.theta, tol)
        assert there.certificate.value == pytest.approx(here.certificate.value, rel=tol)


@pytest.mark.parametrize("method", ["dense", "iterative", "cells"])
def test_estimators_learn_the_same(method, rng):
    X = rng.uniform(-1, 1, (300, 4))
    y = np.sin(3.0 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(300)
    selection = ck.TreeSelection(training=ck.AllRows(method, max_cell_size=150 if method == "cells" else None))
    here, there = (
        ck.HierarchicalGaussianRegressor(
            3, search=ck.TreeSearch(max_iter=10, device=device), selection=selection, random_state=0
        ).fit(X, y)
        for device in (None, "cpu")
    )
    assert there.solution_.problem.family.device == "cpu"
    is_near(there.tree_.flat_weights, here.tree_.flat_weights, 1e-2)
    is_near(there.predict(X), here.predict(X), 1e-2)
    if method == "iterative":
        assert there.plan_.certificate.relative_gap <= 1e-3
    stored = pickle.dumps(there)
    assert b"torch" not in stored
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), there.predict(X))


def test_fitted_models_predict_without_torch(rng, monkeypatch):
    X = rng.uniform(-1, 1, (80, 2))
    search = ck.TreeSearch(max_iter=3, device=torch.device("cpu"))
    assert search.device == "cpu"
    model = ck.HierarchicalGaussianClassifier(2, search=search, random_state=0).fit(X, X[:, 0] > 0.0)
    stored, expected = pickle.dumps(model), model.predict(X)
    monkeypatch.setitem(sys.modules, "torch", None)
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.predict(X), expected)
    with pytest.raises(MissingTorchError):
        again.fit(X, X[:, 0] > 0.0)


def test_what_devices_do_not_do_is_refused(rng):
    X = rng.uniform(size=(30, 2))
    with pytest.raises(InvalidInputError, match=r"device='cpu' evaluates HierarchicalGaussian and Gaussian .* Linear"):
        FixedKernel(ck.Linear(), LeastSquares(), X, X[:, 0], device="cpu")
    with pytest.raises(InvalidInputError, match="device='no-such' cannot be used"):
        FixedKernel(Gaussian(), LeastSquares(), X, X[:, 0], device="no-such")
    with pytest.raises(InvalidInputError, match="device='no-such' cannot be used"):
        ck.HierarchicalGaussianRegressor(search=ck.TreeSearch(device="no-such")).fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match="overflow float32"):
        TreeEvaluation(KernelTree.build([0, 1]), np.ones(2), 1e30 * X, dtype=np.float32, device="cpu").gram()
    with pytest.raises(InvalidInputError, match="overflow float32"):
        GramOperator(Gaussian(), X, np.float32, 0.0, "cpu").product(np.full((1, 30), 3e38))
