"""A learned kernel on all rows: cells in its geometry, with one pair of lam and width for all, as the plan says."""

import functools
import pickle
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from convexkernels import (
    AllRows,
    Candidates,
    Cells,
    CellSelection,
    ConvexKernelsWarning,
    FixedKernel,
    Gaussian,
    HierarchicalGaussian,
    HierarchicalGaussianClassifier,
    HierarchicalGaussianRegressor,
    InvalidInputError,
    KernelLearning,
    LeastSquares,
    LeaveOneOut,
    MemoryLimitError,
    OuterLearning,
    Polynomial,
    Status,
    Trees,
    TreeSearch,
    TreeSelection,
    VoronoiQuantile,
    VoronoiRidge,
    VoronoiSVC,
    VoronoiSVR,
)
from convexkernels.cells import kernel_learner, training
from convexkernels.cells.covering import voronoi_cover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.cells.matrices import GaussianMatrices, KernelMatrices
from convexkernels.cells.traversal import split_largest, traverse_in
from convexkernels.clock import Clock
from convexkernels.datasets import make_friedman1
from convexkernels.estimators.hierarchical.all_rows import PREPARATION, Plan, TrainingTime
from convexkernels.estimators.hierarchical.training import lams_and_risks, training_time
from convexkernels.kernels.rescaled import Rescaled
from convexkernels.plotting import SelectionDisplay

TREE = HierarchicalGaussian(
    [1.0, 2.0], [HierarchicalGaussian([1.0, 0.5], features=[0, 1]), HierarchicalGaussian([1.5], features=[1])]
)
ONE = CellSelection(n_lams=1)
QUICK = TreeSearch(max_iter=8)


def table(m=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (m, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(m)


def seven_classes(m=400, seed=0):
    X, f = table(m, seed)
    return X, np.array(list("abcdefg"))[np.digitize(f, [-1.2, -0.6, -0.2, 0.2, 0.6, 1.2])]


def in_cells(size, **options):
    return TreeSelection(training=AllRows("cells", max_cell_size=size, **options))


# --- the geometry of a kernel ------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Polynomial(2, 1.0), 2.0 * TREE + Gaussian(1.0)])
def test_distances_of_a_kernel_are_those_of_the_images(kernel, rng):
    X, Y = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    expected = [[kernel.diag(x[None])[0] - 2 * kernel([x], [y])[0, 0] + kernel([y])[0, 0] for y in Y] for x in X]
    np.testing.assert_allclose(kernel.squared_distances(X, Y), expected, atol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), TREE, Rescaled(TREE, np.ones(2), np.array([2.0, 0.5]))])
def test_distances_of_gaussians_of_a_map_are_those_of_the_map(kernel, rng):
    X, Y = rng.normal(size=(70, 2)), rng.normal(size=(50, 2))
    np.testing.assert_allclose(np.exp(-kernel.squared_distances(X, Y)), kernel(X, Y), rtol=1e-10)


def test_cells_of_an_inhomogeneous_gaussian_are_those_of_scaled_columns(rng):
    X, weights = rng.normal(size=(300, 3)), np.array([1.0, 0.5, 2.0])
    found = traverse_in(HierarchicalGaussian(weights), X, size=40, start=3)
    expected = split_largest(X * weights, 40, start=3)
    assert np.array_equal(found.centers, expected.centers)
    assert np.array_equal(found.owner, expected.owner)
    np.testing.assert_allclose(found.radii, expected.radii, rtol=1e-9)


@pytest.mark.parametrize("kernel", [TREE, Polynomial(2, 1.0)])
def test_covers_in_the_geometry_of_a_kernel(kernel, rng):
    X = rng.uniform(-2, 2, (200, 2))
    cover = voronoi_cover(X, max_cell_size=30, overlap=0.2, kernel=kernel)
    D = kernel.squared_distances(X, cover.centers)
    cells, members = cover.assigned(X)
    assert np.array_equal(cells, D.argmin(axis=1))
    assert np.array_equal(cells, cover.cells(X))
    assert np.bincount(cells).max() <= 30
    for j in range(cover.n_cells):
        assert np.array_equal(members.rows(j), np.flatnonzero(D[:, j] <= 1.2**2 * D.min(axis=1) + 1e-12))
    few = voronoi_cover(X, n_cells=5, kernel=kernel)
    assert few.n_cells == 5
    assert np.sqrt(kernel.squared_distances(X, few.centers).min(axis=1).max()) == pytest.approx(few.radius)
    near = voronoi_cover(X, radius=few.radius, kernel=kernel)
    assert near.n_cells <= 5


# --- Voronoi estimators with a kernel ----------------------------------------------------------


def test_one_ridge_with_the_localized_kernel_is_the_ridges_of_the_cells():
    X, y = table()
    T, _ = table(100, seed=1)
    model = VoronoiRidge(kernel=TREE, max_cell_size=60, cells=Cells("voronoi"), random_state=0).fit(X, y)
    assert model.n_cells_ > 3
    assert len({(cell.lam, cell.width) for cell in model.function_.functions}) == 1  # one pair for all
    kernel, targets = model.kernel_, model.targets_
    w = LeastSquares(1.0, intercept=False).maximize(kernel(X), (y - targets.center) / targets.spread, np.ones(len(X)))
    expected = targets.center + targets.spread * np.clip(kernel(T, X) @ w, -1, 1)
    np.testing.assert_allclose(model.predict(T), expected, atol=1e-8)
    assert model.solution_.certificate.holds(1e-6)
    assert model.solution_.verify().holds(1e-6)


def test_one_cell_is_the_ridge_with_the_kernel():
    X, y = table()
    model = VoronoiRidge(kernel=TREE, max_cell_size=1000, selection=ONE).fit(X, y)
    (cell,) = model.function_.functions
    scaled = (y - model.targets_.center) / model.targets_.spread
    peer = KernelRidge(kernel="precomputed", alpha=cell.lam).fit(TREE(X), scaled)
    expected = model.targets_.center + model.targets_.spread * np.clip(peer.predict(TREE(X)), -1, 1)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)


def test_a_gaussian_that_is_given_is_the_gaussian_of_its_width(rng):
    rows = CellRows(rng.normal(size=(50, 2)), rng.uniform(-1, 1, (2, 50)), np.ones(50))
    own, given = GaussianMatrices(rows.X), KernelMatrices(Gaussian(1.0), rows.X)
    some, others = np.arange(7), np.arange(20, 35)
    np.testing.assert_allclose(given(1.7, some, others), own(1.7, some, others), atol=1e-12)
    np.testing.assert_allclose(KernelMatrices(TREE, rows.X).last(1.3), TREE(rows.X / 1.3), atol=1e-12)
    np.testing.assert_allclose(given.last(0.6), own.last(0.6), atol=1e-12)


@pytest.mark.parametrize("estimator", [VoronoiSVC(), VoronoiSVC(loss="hinge"), VoronoiSVR(), VoronoiQuantile()])
def test_kernels_serve_every_loss(estimator):
    X, y = table()
    T, t = table(seed=1)
    if isinstance(estimator, VoronoiSVC):
        y, t = y > 0, t > 0
    options = {"kernel": TREE, "max_cell_size": 120, "selection": CellSelection(n_lams=4), "random_state": 0}
    model = clone(estimator).set_params(**options).fit(X, y)
    assert model.score(T, t) > 0.85
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(T), model.predict(T))


def test_a_pair_for_each_cell_when_that_is_asked_for():
    X, y = table()
    y = np.where(X[:, 0] > 0, y, np.random.default_rng(0).permutation(y))
    selection = CellSelection(n_lams=5, n_widths=3, shared=False)
    model = VoronoiRidge(kernel=TREE, max_cell_size=60, selection=selection, random_state=0).fit(X, y)
    assert len({cell.lam for cell in model.function_.functions}) > 1
    shared = VoronoiRidge(max_cell_size=60, selection=CellSelection(shared=True), random_state=0).fit(X, y)
    assert len({(cell.lam, cell.width) for cell in shared.function_.functions}) == 1


def test_the_shared_pair_is_the_best_one_of_the_cells_together(rng):
    X, y = table(160)
    parts = [CellRows(X[rows], y[None, rows], np.ones(len(rows))) for rows in np.array_split(np.arange(160), 2)]
    learner = KernelLearner(LeastSquares(1.0, intercept=False), CellSelection(n_lams=3), 9.0, kernel=TREE, lam=0.05)
    found = learner.for_all(parts, rng)
    risks = []
    for lam in 0.05 * np.geomspace(1 / 16, 4, 3):
        left = []
        for rows in parts:
            A = np.linalg.inv(TREE(rows.X) + lam * np.eye(80))
            left.append((A @ rows.Y[0] / np.diag(A)) ** 2)
        risks.append(np.mean(left))
    assert found.risk == pytest.approx(min(risks))
    assert found.pair == pytest.approx((1.0, 0.05 * np.geomspace(1 / 16, 4, 3)[np.argmin(risks)]))


def test_weights_are_repetitions_for_cells_of_a_kernel():
    X, y = table(120)
    weights = np.random.default_rng(0).integers(1, 4, 120)
    model = VoronoiRidge(kernel=TREE, max_cell_size=50, random_state=0)
    weighted = model.fit(X, y, sample_weight=weights).predict(X)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict(X)
    assert np.array_equal(weighted, repeated)


def test_kernels_that_are_none_are_refused():
    X, y = table(30)
    with pytest.raises(InvalidInputError, match="kernel must be a Kernel, such as the kernel_"):
        VoronoiRidge(kernel="rbf").fit(X, y)
    with pytest.raises(InvalidInputError, match="cells of kind 'tree' have no kernel"):
        VoronoiRidge(kernel=TREE, cells=Cells("tree")).fit(X, y)


# --- hierarchical kernels on all rows ----------------------------------------------------------


def test_small_tables_are_learned_from_with_one_matrix():
    X, y = table(100)
    model = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, random_state=0).fit(X, y)
    assert model.plan_.method == "dense"
    assert repr(model.plan_).startswith("Plan(dense: 100 rows, not more than 10000")


def test_one_cell_of_a_learned_kernel_is_the_dense_function():
    X, y = table(150)
    dense = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, random_state=0).fit(X, y)
    model = clone(dense).set_params(selection=in_cells(1000)).fit(X, y)
    (cell,) = model.function_.localized.functions
    assert np.array_equal(model.solution_.theta, dense.solution_.theta)
    K = cell.kernel(cell.X)
    w = np.linalg.solve(K + cell.lam * np.eye(len(K)), cell.Y[0])
    T = model.scaling_.apply(table(50, seed=1)[0])
    expected = np.clip(cell.kernel(T, cell.X) @ w + model.function_.offset, -1, 1)
    np.testing.assert_allclose(model.function_.values(T)[:, 0], expected, atol=1e-8)
    apart = np.abs(model.predict(X) - dense.predict(X)).max()
    assert apart < 0.2 * np.ptp(y)  # lam and the width were selected again


def test_seven_classes_share_one_factorization_in_a_cell(monkeypatch):
    X, y = seven_classes()
    T, t = seven_classes(seed=1)
    solved = []
    original = LeastSquares._solved
    monkeypatch.setattr(LeastSquares, "_solved", lambda *a: solved.append(a[2].shape) or original(*a))
    model = HierarchicalGaussianClassifier(2, max_time=None, search=QUICK, selection=in_cells(100), random_state=0).fit(
        X, y
    )
    assert model.decision_function(T).shape == (400, 7)
    assert model.score(T, t) > 0.75
    cells = [cell for cell in model.function_.localized.functions if np.isfinite(cell.width)]
    timed, solved = solved[:2], solved[2:]  # the forecast looks at all rows twice
    assert timed == [(400, 7)] * 2
    assert len(solved) == len(cells) > 3
    assert {shape[1] for shape in solved} == {7}
    assert model.plan_.certificate.holds(1e-3)
    assert model.plan_.certificate == model.function_.localized.certificate(None, None, None) or (
        model.function_.localized.certificate(None, None, None).holds(1e-3)
    )
    assert model.predict_proba(T).sum(axis=1) == pytest.approx(np.ones(400))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(T), model.decision_function(T))


def test_long_tables_are_learned_from_in_cells_and_the_plan_says_why(monkeypatch):
    X, y = make_friedman1(700, random_state=0)
    T, t = make_friedman1(300, random_state=1)
    from convexkernels.estimators.hierarchical import all_rows, base

    monkeypatch.setattr(all_rows, "DENSE_ROWS", 500)
    monkeypatch.setattr(base, "DENSE_ROWS", 500)
    monkeypatch.setattr(all_rows, "ITERATIVE_ROWS", 600)
    monkeypatch.setattr(all_rows, "CELL_SIZE", 200)
    search = TreeSearch(max_iter=30)
    model = HierarchicalGaussianRegressor(4, max_time=None, search=search, random_state=0).fit(X, y)
    assert model.plan_.method == "cells"
    assert "700 rows, more than 500" in repr(model.plan_)
    assert model.function_.localized.cover.n_cells > 3
    assert model.score(T, t) > 0.9
    low, high = model.predict_interval(T).T
    assert 0.8 < np.mean((low <= t) & (t <= high)) < 0.99


def test_products_with_the_matrix_give_the_dense_function(monkeypatch):
    X, y = table(200)
    dense = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, random_state=0).fit(X, y)
    iterative = TreeSelection(training=AllRows("iterative"))
    model = clone(dense).set_params(selection=iterative).fit(X, y)
    assert model.plan_.method == "iterative"
    assert model.plan_.certificate.holds(1e-3)
    assert np.abs(model.predict(X) - dense.predict(X)).max() < 0.1 * np.ptp(y)  # lam was chosen again
    from convexkernels.estimators.hierarchical import all_rows

    monkeypatch.setattr(all_rows, "DENSE_ROWS", 100)
    model = clone(dense).fit(X, y)
    assert repr(model.plan_).startswith("Plan(iterative: 200 rows, more than 100")
    assert np.isfinite(model.predict_interval(X)).all()
    pinball = HierarchicalGaussianRegressor(2, max_time=None, loss="pinball", search=QUICK, random_state=0).fit(X, y)
    assert pinball.plan_.method == "cells"
    products = clone(pinball).set_params(selection=iterative).fit(X, y)
    whole = clone(pinball).set_params(selection=TreeSelection(training=AllRows("dense"))).fit(X, y)
    assert products.plan_.certificate.holds(1e-3)
    assert np.abs(products.predict(X) - whole.predict(X)).max() < 0.05 * np.ptp(y)  # the same problem


def test_the_forecast_of_cells_is_what_their_matrices_take():
    """Trainings on a few hundred rows were extended by the cube to the largest cells there could be."""
    X, y = table(6000)
    problem = OuterLearning(Trees(2), LeastSquares(0.1), LeaveOneOut(), X, y)
    takes = TrainingTime(entry=1e-8, cube=2e-11)
    cover = voronoi_cover(X, max_cell_size=400, overlap=0.02, random_state=0)
    sizes = cover.assigned(X)[1].sizes
    preparation = PREPARATION * takes(400)
    trained = sum(takes(m) for m in sizes) + 1e-8 * cover.n_cells * 6000
    alone, shared = (
        AllRows("cells", max_cell_size=400, n_jobs=jobs).plan(problem, None, takes, False) for jobs in (1, 2)
    )
    assert 0.5 * trained < alone.seconds - preparation < 2.0 * trained
    assert shared.seconds < alone.seconds
    assert takes(2000) == pytest.approx(4e6 * 1e-8 + 8e9 * 2e-11)


def test_the_time_of_a_training_is_that_of_its_matrix_and_of_its_solution():
    X, y = table(1500)
    problem = OuterLearning(Trees(2), LeastSquares(0.1), LeaveOneOut(), X, y)
    takes, (z, log_lam) = training_time(problem), problem.split(problem.start(0))
    began = time.perf_counter()
    problem.bind().train(problem.gram_set.at(z).gram(), log_lam, 1e-3)
    assert 0.05 < takes(1500) / (time.perf_counter() - began) < 20.0


@pytest.mark.parametrize("loss", ["least_squares", "pinball"])
def test_landmarks_that_are_all_rows_give_the_function_of_the_matrix(loss):
    X, y = table(200)
    T, t = table(100, seed=1)
    selection = TreeSelection(training=AllRows("landmarks", n_landmarks=200))
    model = HierarchicalGaussianRegressor(
        2, loss=loss, max_time=None, search=QUICK, selection=selection, random_state=0
    ).fit(X, y)
    assert model.plan_.certificate.holds(1e-3)
    assert "landmarks, 200 of them: as asked for" in repr(model.plan_)
    assert repr(model.plan_).endswith("at most, of the problem that landmarks approximate)")
    assert model.score(T, t) > 0.9
    if loss == "pinball":  # where lam is not chosen again
        problem = model.solution_.problem
        exact = FixedKernel.of(model.solution_, problem.X, problem.Y[0] + problem.offset[0])
        expected = exact.solve(tol=1e-5).decision_function(model.scaling_.apply(T))
        np.testing.assert_allclose(model.function_.values(model.scaling_.apply(T))[:, 0], expected, atol=0.02)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    assert np.isfinite(model.predict_interval(T)).all()


def test_risks_along_lam_on_landmarks_are_those_of_rows_left_out():
    X, y = table(80)
    problem = KernelLearning(Candidates([TREE], "none", landmarks=X[:20]), LeastSquares(0.1), X, y)
    K, risks, lams = problem.gram_set.matrix(np.ones(1)).dense(), [], 0.1 * np.geomspace(1 / 16, 16, 5)
    for lam in lams:
        A = np.linalg.inv(np.block([[K + lam * np.eye(80), np.ones((80, 1))], [np.ones((1, 80)), np.zeros((1, 1))]]))
        risks.append(np.sum((A[:80, :80] @ y / np.diag(A)[:80]) ** 2))
    found = lams_and_risks(problem)
    np.testing.assert_allclose(found["lams"], lams)
    np.testing.assert_allclose(found["risks"], np.array(risks) / 80, rtol=1e-8)


@pytest.mark.parametrize(
    ("training", "names"),
    [
        (AllRows("iterative"), ["lam"]),
        (AllRows("landmarks", n_landmarks=20), ["lam"]),
        (AllRows("cells", max_cell_size=60), ["lam", "width"]),
    ],
)
def test_all_rows_say_which_lam_they_chose_and_from_what(training, names):
    X, y = table(200)
    options = {"search": QUICK, "selection": TreeSelection(training=training), "random_state": 0}
    model = HierarchicalGaussianRegressor(2, max_time=None, **options).fit(X, y)
    *found, _ = model.selection_.curve
    assert found == names
    assert model.selection_.chosen["lam"] == model.lam_
    assert model.selection_.chosen["lam"] == model.selection_.curve["lam"][model.selection_.risks.argmin()]
    if training.method == "cells":
        assert {cell.lam for cell in model.function_.localized.functions if np.isfinite(cell.width)} == {model.lam_}
    else:
        assert model.function_.solution.problem.loss.lam == model.lam_
    *lines, _ = SelectionDisplay.from_estimator(model).plot().ax_.lines
    assert sum(len(line.get_xdata()) for line in lines) == len(model.selection_.curve["lam"])


def test_landmarks_are_taken_where_neither_matrix_nor_cells_fit_the_time():
    X, y = table(60_000)
    problem = OuterLearning(Trees(2), LeastSquares(0.1), LeaveOneOut(), X, y)
    takes, settings = TrainingTime(1e-8, 2e-11), AllRows(memory_limit=1e9)
    assert settings.plan(problem, None, takes, False).method == "cells"
    cells = settings.plan(problem, 1e4, takes, False)
    assert cells.method == "cells"
    plan = settings.plan(problem, 0.5 * cells.seconds, takes, False)
    assert plan.method == "landmarks"
    assert 10 < plan.n_landmarks <= 1000
    assert plan.bytes <= 0.5e9
    assert "dense training on 60000 rows needs" in plan.why
    assert "; cells training on 60000 rows takes about" in plan.why
    with pytest.raises(MemoryLimitError, match="landmarks training on 60000 rows needs"):
        AllRows("landmarks", 1e6, n_landmarks=500).plan(problem, None, takes, False)


def test_seven_classes_on_landmarks():
    X, y = seven_classes()
    T, t = seven_classes(seed=1)
    selection = TreeSelection(training=AllRows("landmarks", n_landmarks=150))
    model = HierarchicalGaussianClassifier(2, max_time=None, search=QUICK, selection=selection, random_state=0).fit(
        X, y
    )
    assert model.score(T, t) > 0.75
    assert model.predict_proba(T).sum(axis=1) == pytest.approx(np.ones(400))


def test_functions_of_many_rows_know_rows_that_were_held_out(monkeypatch):
    from convexkernels.estimators.hierarchical import all_rows, training

    monkeypatch.setattr(all_rows, "DENSE_ROWS", 100)
    monkeypatch.setattr(training, "LARGEST_SAMPLE", 100)
    monkeypatch.setattr(training, "suited_scale", lambda problems, clock, seed: (0, 1.5, 0.01))
    X, y = table(600)
    T, t = table(400, seed=1)
    model = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, random_state=0).fit(X, y)
    function = model.function_
    assert model.plan_.method == "iterative"
    assert isinstance(function.kernel, Rescaled)
    # The kernel that users get is that of the function.
    Z = model.scaling_.apply(T)
    np.testing.assert_allclose(model.kernel_(T, X[:9]), model.tree_(1.5 * Z, 1.5 * model.scaling_.apply(X[:9])))
    assert model.effective_rank_ == pytest.approx(
        np.trace(function.kernel(model.solution_.problem.X)) ** 2
        / np.square(function.kernel(model.solution_.problem.X)).sum()
    )
    held = function.left_out(False)
    assert len(held.rows) == 60
    np.testing.assert_allclose(
        held.Y, model.solution_.problem.Y[:, held.rows] + model.solution_.problem.offset[:, None]
    )
    # They are those of functions of the other rows, with one of the candidates for lam.
    problem = model.solution_.problem
    others, lam = np.setdiff1d(np.arange(600), held.rows), np.exp(problem.split(model.solution_.theta)[1])
    K, cross = (function.kernel(problem.X[rows], problem.X[others]) for rows in (others, held.rows))
    found = [cross @ np.linalg.solve(K + lam * 4.0**k * np.eye(540), problem.Y[0, others]) for k in range(-8, 9)]
    apart = [np.abs(np.clip(F + problem.offset[0], -1.0, 1.0) - held.F[0]).max() for F in found]
    assert min(apart) < 0.02 * np.ptp(held.Y)
    low, high = model.predict_interval(T, coverage=0.8).T
    assert 0.65 < np.mean((low <= t) & (t <= high)) < 0.93
    with pytest.raises(AttributeError, match="a part of the rows only"):
        model.loo_predictions_  # noqa: B018
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(T), model.predict(T))


@pytest.mark.parametrize("kind", [HierarchicalGaussianRegressor, HierarchicalGaussianClassifier])
@pytest.mark.parametrize(
    ("loss", "n_landmarks"), [("least_squares", 15), ("pinball", 15), ("hinge", 15), ("least_squares", 300)]
)
def test_functions_on_landmarks_are_left_out_as_they_are(kind, n_landmarks, loss):
    """Few landmarks know little: what is said of rows left out must not be what the whole kernel knows."""
    if loss in ("pinball", "hinge") and (loss == "hinge") == (kind is HierarchicalGaussianRegressor):
        pytest.skip("not a loss of this estimator")
    X, y = table(300)
    T, t = table(400, seed=1)
    if kind is HierarchicalGaussianClassifier:
        y, t = y > 0.0, t > 0.0
    on_landmarks = TreeSelection(training=AllRows("landmarks", n_landmarks=n_landmarks), combine="one")
    model = kind(2, loss=loss, max_time=None, search=QUICK, selection=on_landmarks, random_state=0).fit(X, y)
    assert model.plan_.method == "landmarks"
    if loss == "least_squares":
        assert abs(model.loo_score_ - model.score(T, t)) < 0.12
        assert model.loo_predictions_.shape == (300,)
    assert not hasattr(model, "support_")
    assert np.isfinite(model.effective_rank_)
    assert np.linalg.matrix_rank(model.kernel_(X)) <= n_landmarks
    if kind is HierarchicalGaussianRegressor:
        low, high = model.predict_interval(T, coverage=0.8).T
        assert 0.68 < np.mean((low <= t) & (t <= high)) < 0.92
    else:
        assert np.abs(model.predict_proba(T).sum(axis=1) - 1.0).max() < 1e-9


def test_products_without_time_say_nothing_of_rows_left_out(monkeypatch):
    from convexkernels.estimators.hierarchical import training

    monkeypatch.setattr(training.FixedKernel, "solve", functools.partialmethod(training.FixedKernel.solve, lams=[0.1]))
    X, y = table(1200)
    by_products = TreeSelection(training=AllRows("iterative"), combine="one")
    model = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, selection=by_products, random_state=0)
    model.fit(X, y)
    assert "held_out" not in model.function_.solution.trace
    assert not hasattr(model, "loo_score_")
    low, high = model.predict_interval(X).T
    assert (low < high).all()


def test_memory_decides_and_is_kept():
    X, y = table(300)
    tight = TreeSelection(training=AllRows(memory_limit=1e6))
    model = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, selection=tight, random_state=0).fit(X, y)
    assert model.plan_.method == "cells"
    assert "dense training on 300 rows needs 0.002" in model.plan_.why
    # A cell has four matrices, and all of it a quarter of what there is.
    assert 8 * 4 * (1.5 * model.plan_.max_cell_size) ** 2 <= 0.25 * 1e6 + 1e4
    assert np.isfinite(model.predict(X)).all()
    dense = TreeSelection(training=AllRows("dense", memory_limit=1e6))
    with pytest.raises(MemoryLimitError, match="a kernel matrix of 300 rows needs"):
        HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, selection=dense).fit(X, y)
    X, y = seven_classes(300)
    votes = HierarchicalGaussianClassifier(2, max_time=None, multi_class="all-vs-all", search=QUICK, selection=tight)
    with pytest.raises(MemoryLimitError, match="multi_class='one-vs-all'"):
        votes.fit(X, y)


def test_memory_of_cells_is_that_of_matrices_tables_and_functions():
    X, y = table(60_000)
    problem, takes = OuterLearning(Trees(2), LeastSquares(0.1), LeaveOneOut(), X, y), TrainingTime()
    for settings in (AllRows("cells", 1e8, 4000), AllRows("auto", 1e8, 4000, n_landmarks=1000)):
        with pytest.raises(MemoryLimitError, match=r"max_cell_size=4000 needs .* Pass a smaller max_cell_size"):
            settings.plan(problem, None, takes, False)
    assert AllRows("cells", 1e8, 400).plan(problem, None, takes, False).bytes < 1e8
    assert AllRows("auto", 1e8, 4000).plan(problem, None, takes, False).method == "landmarks"
    wide = OuterLearning(Trees(2), LeastSquares(0.1), LeaveOneOut(), np.tile(X, (1, 10)), y)
    plans = [AllRows("cells", max_cell_size=400).plan(one, None, takes, False) for one in (problem, wide)]
    assert plans[1].bytes - plans[0].bytes > 5 * (wide.X.nbytes - X.nbytes)
    both = AllRows("cells", max_cell_size=400, n_jobs=2).plan(problem, None, takes, False)
    assert both.bytes - plans[0].bytes == 8 * 4 * 600**2


@pytest.mark.parametrize("method", ["iterative", "cells", "landmarks"])
def test_votes_of_pairs_are_refused_where_there_is_no_matrix_of_theirs(method):
    X, y = seven_classes(100)
    selection = TreeSelection(training=AllRows(method))
    votes = HierarchicalGaussianClassifier(2, multi_class="all-vs-all", search=QUICK, selection=selection)
    with pytest.raises(InvalidInputError, match=f"method='{method}' of AllRows is not for multi_class='all-vs-all'"):
        votes.fit(X, y)


def test_cells_that_cannot_be_divided_learn_from_a_part_of_their_rows(rng):
    rows = CellRows(np.zeros((90, 1)), rng.uniform(-1, 1, (1, 90)), np.ones(90), np.arange(90) < 60)
    learner = KernelLearner(LeastSquares(1.0, intercept=False), kernel=Gaussian(1.0), pair=(1.0, 0.1), max_rows=20)
    assert len(learner.learn(rows, rng).X) == 20


@pytest.mark.parametrize(("seconds", "count"), [(np.inf, 90), (200.0, 90), (8.0, 40), (-1.0, 20)])
def test_a_cell_learns_from_as_many_rows_as_there_is_time_for_its_own_first(rng, monkeypatch, seconds, count):
    looks = iter(range(100))
    monkeypatch.setattr(kernel_learner, "time", SimpleNamespace(monotonic=lambda: float(next(looks))))
    monkeypatch.setattr(kernel_learner, "TIMED_ROWS", 20)  # which take a second, from one look at the clock to the next
    X = rng.uniform(-1, 1, (90, 1))
    rows = CellRows(X, rng.uniform(-1, 1, (1, 90)), np.ones(90), np.arange(90) < 15)
    learner = KernelLearner(LeastSquares(1.0, intercept=False), kernel=Gaussian(1.0), pair=(1.0, 0.1))
    found = learner.learn(rows, rng, 1.0 + seconds)
    assert len(found.X) == count
    assert np.isin(X[:15], found.X).all()
    assert found.certificate.holds(1e-6)
    assert found.n_spared == 90 - count


def test_the_warning_and_the_plan_say_which_share_of_rows_cells_learned_from(rng, monkeypatch):
    X, y = table(400)
    original = kernel_learner.KernelLearner._in_time
    monkeypatch.setattr(kernel_learner, "TIMED_ROWS", 30)

    def in_no_time(self, rows, width, lam, rng, deadline):
        return original(self, rows, width, lam, rng, 0.0 if len(rows.X) > 80 else np.inf)

    monkeypatch.setattr(kernel_learner.KernelLearner, "_in_time", in_no_time)
    options = {"cells": Cells(overlap=0.9), "max_cell_size": 100, "random_state": 0, "max_time": 60.0}
    options["selection"] = CellSelection(n_lams=2, n_widths=2)
    with pytest.warns(ConvexKernelsWarning, match="cells learned from") as said:
        model = VoronoiRidge(**options).fit(X, y)
    assert len(said) == 1
    cells, sizes = model.function_.functions, model.function_.sizes
    short = np.array([cell.n_spared > 0 for cell in cells])
    assert (short == (sizes > 80)).all()
    assert 0 < short.sum() < len(cells)
    share = 100.0 * sum(len(cell.X) for cell in cells if cell.n_spared) / sizes[short].sum()
    words = f"{short.sum()} of {len(cells)} cells learned from {share:.0f} % of their rows"
    assert words in str(said[0].message)
    assert words == model.function_.of_some_rows
    assert model.solution_.status is Status.TIME_LIMIT
    in_few = TreeSelection(training=AllRows("cells", max_cell_size=100, cells=Cells(overlap=0.9)))
    tree = HierarchicalGaussianRegressor(2, search=QUICK, selection=in_few, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match=r"\d+ of \d+ cells learned from \d+ % of their rows"):
        tree.fit(X, y)
    assert "% of their rows" in tree.plan_.why
    assert tree.plan_.status is Status.TIME_LIMIT
    assert tree.solution_.status is Status.TIME_LIMIT


def test_in_cells_for_which_no_time_is_left_the_function_of_some_rows_answers():
    X, y = table(400)
    search = TreeSearch("stochastic", size=100, max_iter=10**6)
    model = HierarchicalGaussianRegressor(2, search=search, selection=in_cells(50), max_time=0.05, random_state=0)
    with pytest.warns(ConvexKernelsWarning) as said:
        model.fit(X, y)
    assert any("answer with a function of 200 of 400 rows (TIME_LIMIT)" in str(warning.message) for warning in said)
    assert model.score(*table(200, seed=1)) > 0.5
    assert model.plan_.certificate.relative_gap == 1.0  # nothing is proven of cells that were not begun
    assert np.isfinite(model.predict_interval(X)).all()


def starved(original):
    """Solving for which there is no time."""
    return lambda self, **options: original(self, **(options | {"max_time": 1e-9}))


@pytest.mark.parametrize(("method", "problem"), [("iterative", "FixedKernel"), ("landmarks", "KernelLearning")])
def test_where_the_time_leaves_zeros_the_function_of_some_rows_answers(monkeypatch, method, problem):
    from convexkernels.estimators.hierarchical import training

    kind = getattr(training, problem)
    monkeypatch.setattr(kind, "solve", starved(kind.solve))
    monkeypatch.setattr(training, "ROWS_OF_A_MOMENT", 200)
    X, y = table(1200)
    selection = TreeSelection(training=AllRows(method, n_landmarks=50))
    loss = "least_squares" if method == "iterative" else "pinball"  # the other one is solved at once on landmarks
    model = HierarchicalGaussianRegressor(2, loss=loss, search=QUICK, selection=selection, random_state=0, max_time=99)
    with pytest.warns(ConvexKernelsWarning) as said:
        model.fit(X, y)
    (warning,) = said
    assert "TIME_LIMIT: the function is trained on 200 of 1200 rows" in str(warning.message)
    assert model.score(X, y) > 0.8
    assert (model.plan_.method, model.plan_.n_rows, model.plan_.status) == ("dense", 200, Status.TIME_LIMIT)
    assert f"200 of 1200 rows, TIME_LIMIT came before the {method} training on all" in repr(model.plan_)
    assert model.solution_.status is Status.TIME_LIMIT


def test_choices_are_charged_to_the_plan_and_left_out_where_time_is_short(monkeypatch):
    from convexkernels.estimators.hierarchical import all_rows, training

    X, y = table(600)
    monkeypatch.setattr(all_rows, "LARGEST_SAMPLE", 100)
    monkeypatch.setattr(training, "LARGEST_SAMPLE", 100)
    squared = OuterLearning(Trees(2), LeastSquares(0.1), LeaveOneOut(), X, y)
    plan = AllRows("iterative").plan(squared, None, TrainingTime(), False)
    assert 0.5 * plan.seconds < plan.choice_seconds < plan.seconds
    assert not plan.refusal(600, np.inf, 0.9 * plan.seconds)  # they can be left out
    long = Plan("cells", 600, 0.0, 100.0, "")
    assert [long.has_time(Clock(limit)) for limit in (None, 95.0, 60.0)] == [True, True, False]

    def chosen(*arguments):
        raise AssertionError

    monkeypatch.setattr(training, "suited_scale", chosen)
    monkeypatch.setattr(training, "_refined", chosen)
    monkeypatch.setattr(Plan, "has_time", lambda plan, clock: False)
    for method in ("iterative", "cells"):
        selection = TreeSelection(training=AllRows(method, max_cell_size=200))
        model = HierarchicalGaussianRegressor(2, search=QUICK, selection=selection, max_time=None, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.9


def test_an_interrupt_keeps_the_cells_that_are_learned(monkeypatch):
    X, y = table(300)
    original, count = training.learn_cell, []

    def interrupted(*arguments):
        count.append(1)
        if len(count) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(training, "learn_cell", interrupted)
    model = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, selection=in_cells(60), random_state=0)
    with pytest.warns(ConvexKernelsWarning, match=r"answer with a function of 150 of 300 rows \(INTERRUPTED\)"):
        model.fit(X, y)
    assert sum(np.isfinite(cell.width) for cell in model.function_.localized.functions) == 2
    assert model.score(X, y) > 0.8
    assert model.solution_.status is not Status.INTERRUPTED  # the search had come to its end


@pytest.mark.parametrize("method", ["cells", "iterative", "dense"])
@pytest.mark.parametrize("searching", [True, False])
def test_one_interrupt_ends_the_whole_fit(monkeypatch, method, searching):
    from convexkernels.estimators.hierarchical import base, training

    X, y = table(300)
    places = {
        "cells": (training, "shared_learner"),
        "iterative": (training.FixedKernel, "solve"),
        "dense": (HierarchicalGaussianRegressor, "_function"),
    }
    begun = []

    def interrupted(*arguments, **settings):
        begun.append(1)
        raise KeyboardInterrupt

    def searched(*arguments):
        return original(*arguments)[0], True

    original = base.one_after_the_other
    monkeypatch.setattr(*places[method], interrupted)
    for module in (training, base):
        monkeypatch.setattr(module, "ROWS_OF_A_MOMENT", 80)
    if searching:
        monkeypatch.setattr(base, "one_after_the_other", searched)
    selection = TreeSelection(training=AllRows(method, max_cell_size=60))
    search = TreeSearch(max_iter=4, n_restarts=2)
    model = HierarchicalGaussianRegressor(2, max_time=None, search=search, selection=selection, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED: the function is trained on 80 of 300 rows"):
        model.fit(X, y)
    assert len(begun) == (0 if searching else 1)  # and never for the second search
    assert model.score(X, y) > 0.8
    assert np.isfinite(model.predict_interval(X)).all()
    assert repr(model.plan_).startswith(f"Plan(dense: 80 of 300 rows, INTERRUPTED came before the {method} training")
    assert (model.plan_.n_rows, model.solution_.status) == (80, Status.INTERRUPTED)


def test_an_interrupted_refinement_is_not_gone_on_with(monkeypatch):
    from convexkernels.estimators.hierarchical import training

    class Interrupted(training.Stochastic):
        def step(self, *arguments):
            raise KeyboardInterrupt

    X, y = table(300)
    monkeypatch.setattr(training, "Stochastic", Interrupted)
    model = HierarchicalGaussianRegressor(2, max_time=None, search=QUICK, selection=in_cells(60), random_state=0)
    with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED: the function is trained on 300 of 300 rows"):
        model.fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.plan_.status is model.solution_.status is Status.INTERRUPTED


def test_architectures_are_compared_on_a_sample_and_averages_are_of_cells():
    X, y = table(300)
    selection = TreeSelection(2, training=AllRows("cells", max_cell_size=120))
    model = HierarchicalGaussianRegressor((1, 2), max_time=None, search=QUICK, selection=selection, random_state=0).fit(
        X, y
    )
    assert np.isfinite(model.choice_.risks).all()
    averaged = TreeSelection(2, "mean", AllRows("cells", max_cell_size=80))
    mean = clone(model).set_params(architecture=2, selection=averaged).fit(X, y)
    assert len(mean.function_.functions) == 2
    points = mean.scaling_.apply(X)
    values = np.mean([function.values(points)[:, 0] for function in mean.function_.functions], axis=0)
    np.testing.assert_allclose(mean.predict(X), mean.targets_.center + mean.targets_.spread * values)
    assert np.isfinite(mean.predict_interval(X)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "fast"}, "method must be one of"),
        ({"memory_limit": 0.0}, "memory_limit must be a finite number > 0"),
        ({"n_landmarks": 0}, "n_landmarks must be a whole number >= 1"),
        ({"max_cell_size": 1}, "max_cell_size must be a whole number >= 2"),
        ({"cells": "voronoi"}, "cells must be None or Cells"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        AllRows(**options)


def test_settings_of_the_training_are_refused_by_name():
    with pytest.raises(InvalidInputError, match="training must be None or AllRows"):
        TreeSelection(training="cells")
    for cells in (Cells(time_budget=1.0), Cells(radius=0.1), Cells("tree"), Cells("random")):
        with pytest.raises(InvalidInputError, match="cells must be 'overlapping' or 'voronoi', of a max_cell_size"):
            AllRows(cells=cells)
