"""One SVM with the localized kernel is the SVMs of the cells; selection in a cell is what it says."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from convexkernels import (
    EpsilonInsensitive,
    Gaussian,
    Hinge,
    InvalidInputError,
    LeastSquares,
    Linear,
    Localized,
    Pinball,
    VoronoiRidge,
    VoronoiSVC,
)
from convexkernels.cells import matrices, selection
from convexkernels.cells.covering import voronoi_cover
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows, CellSelection
from convexkernels.cells.matrices import GaussianMatrices, KernelMatrices
from convexkernels.cells.options import Cells
from convexkernels.cells.selection import Grid, GridSearch, walk
from convexkernels.criteria.folds import held_out_blocks
from convexkernels.criteria.ridge import path_residuals
from convexkernels.kernels.distances import squared_distances
from convexkernels.linalg import pivoted_cholesky


@pytest.fixture
def cells(rng):
    X = rng.uniform(-1, 1, (90, 2))
    cover = voronoi_cover(X, n_cells=4)
    return X, cover, np.array([0.02, 0.3, 0.1, 1.0]), [Gaussian(g) for g in (0.5, 2.0, 1.0, 4.0)]


LOSSES = {
    "least_squares": lambda lam: LeastSquares(lam, intercept=False),
    "hinge": lambda lam: Hinge(0.5 / lam, intercept=False),
    "epsilon_insensitive": lambda lam: EpsilonInsensitive(0.5 / lam, 0.05, intercept=False),
    "pinball": lambda lam: Pinball(0.5 / lam, 0.3, intercept=False),
}


@pytest.mark.parametrize("name", LOSSES)
def test_one_svm_with_the_localized_kernel_is_the_svms_of_the_cells(name, cells, rng):
    """Lemmas 2 and 3: |f|^2 = sum_j lam_j |f_j|^2, so that the global lam is 1."""
    X, cover, lams, kernels = cells
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))
    if name == "hinge":
        y = np.sign(y)
    kernel = Localized(cover.centers, kernels, lams)
    Z = rng.uniform(-1.2, 1.2, (60, 2))
    K, whole = kernel(X), LOSSES[name](1.0)
    w = whole.coefficients(whole.maximize(K, y, np.ones(len(X)), tol=1e-12), y)
    together = kernel(Z, X) @ w
    apart = np.empty(60)
    for j in range(4):
        rows, new = cover.members(X).rows(j), np.flatnonzero(cover.cells(Z) == j)
        loss = LOSSES[name](lams[j])
        Kj = kernels[j](X[rows])
        alpha = loss.maximize(Kj, y[rows], np.ones(len(rows)), tol=1e-12)
        apart[new] = kernels[j](Z[new], X[rows]) @ loss.coefficients(alpha, y[rows])
    np.testing.assert_allclose(together, apart, atol=2e-5)


def test_the_kernel_vanishes_across_cells_and_is_the_cells_own_inside(cells):
    X, cover, lams, kernels = cells
    K = Localized(cover.centers, kernels, lams)(X)
    labels = cover.cells(X)
    assert (K[labels[:, None] != labels] == 0.0).all()
    for j in range(4):
        rows = cover.members(X).rows(j)
        np.testing.assert_allclose(K[np.ix_(rows, rows)], kernels[j](X[rows]) / lams[j], rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "size"), [("voronoi", 50), ("overlapping", 200), ("random", 200), ("tree", 200), ("voronoi", 200)]
)
def test_fitted_estimators_name_the_kernel_of_all_their_cells(kind, size, rng):
    X = rng.uniform(-2, 5, (150, 2))
    y = np.cos(X[:, 0]) * X[:, 1]
    selection = CellSelection(n_lams=5, n_widths=5)
    model = VoronoiRidge(max_cell_size=size, cells=Cells(kind), selection=selection, random_state=0).fit(X, y)
    kernel = model.kernel_
    scaled = (y - model.targets_.center) / model.targets_.spread
    loss = LeastSquares(1.0, intercept=False)
    w = loss.maximize(kernel(X), scaled, np.ones(150))
    Z = rng.uniform(-2, 5, (40, 2))
    expected = model.targets_.center + model.targets_.spread * np.clip(kernel(Z, X) @ w, -1, 1)
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-6)
    assert 1.0 < model.effective_rank_ <= 150.0


def test_a_localized_kernel_is_refused_where_there_is_none(rng):
    X, y = rng.uniform(size=(60, 2)), np.arange(60) % 2
    model = VoronoiSVC(cells=Cells("random"), max_cell_size=20).fit(X, y)
    with pytest.raises(InvalidInputError, match="belongs to Voronoi cells"):
        _ = model.kernel_


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Localized([[0.0], [1.0]], [Gaussian()]), "kernels has 1 entries, but there are 2 centers"),
        (Localized([[0.0]], [Gaussian()], [0.0]), "lams must be 1 finite numbers > 0"),
        (Localized([[0.0]], [Gaussian()], [1.0, 2.0]), "lams must be 1 finite numbers > 0"),
        (Localized([[0.0, 1.0]], [Gaussian()]), "centers has 2 features, but 1 are expected"),
    ],
)
def test_localized_kernels_refuse_lists_that_do_not_fit(kernel, message):
    with pytest.raises(InvalidInputError, match=message):
        kernel(np.ones((3, 1)))
    assert clone(kernel) is not kernel


# --- selection ---------------------------------------------------------------------------------


def search(X, Y, weights, grid, blocks, loss):
    return GridSearch(loss, GaussianMatrices(X), Y, weights, grid, blocks, clip=1.0)


def brute_force(X, Y, weights, grid, blocks, loss, tol=1e-9):
    """Train every function of every fold, at the same lam as the whole."""
    K0 = squared_distances(X, X)
    risks = np.zeros((len(grid.widths), len(grid.lams)))
    for i, width in enumerate(grid.widths):
        K = np.exp(-K0 / width**2)
        for k, lam in enumerate(grid.lams):
            total = 0.0
            for block in blocks:
                train = np.setdiff1d(np.arange(len(X)), block)
                at = loss.at(lam)
                alpha = at.maximize_all(K[np.ix_(train, train)], Y[:, train], weights[train], tol=tol)
                W = np.array([at.coefficients(a, y) for a, y in zip(alpha, Y[:, train], strict=True)])
                F = np.clip(W @ K[np.ix_(train, block)], -1.0, 1.0)
                total += (loss.pointwise(Y[:, block], F)[0] @ weights[block]).sum()
            risks[i, k] = total / weights[np.concatenate(blocks)].sum()
    return risks


SQUARED = LeastSquares(intercept=False)


@pytest.mark.parametrize("validation", ["leave-one-out", 5, 2, "split"])
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_risks_are_those_of_functions_trained_again(validation, weighted, rng):
    X = rng.uniform(-1, 1, (40, 2))
    Y = np.vstack([np.sin(3 * X[:, 0]), X[:, 1] > 0])
    weights = rng.uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    grid = Grid.of_cell(40, 2, weights.sum(), 4, 3)
    blocks = held_out_blocks(40, validation, np.random.default_rng(0))
    risks = search(X, Y, weights, grid, blocks, SQUARED).squared_risks(40)
    one_by_one = [np.array([i]) for i in range(40)] if blocks is None else blocks
    np.testing.assert_allclose(risks, brute_force(X, Y, weights, grid, one_by_one, SQUARED), rtol=1e-3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [None, [np.arange(0, 30, 3)], [np.arange(5), np.arange(5, 30)]])
@pytest.mark.parametrize("columns", [4, 50])
def test_residuals_of_a_path_are_those_of_ridge_regression_again(intercept, blocks, columns, rng):
    Z, Y, weights = rng.standard_normal((30, columns)), rng.standard_normal((2, 30)), rng.uniform(0.5, 2.0, 30)
    lams = np.array([0.3, 20.0])
    before = Z.copy()
    path = list(path_residuals(Z, Y, weights, lams, blocks, intercept=intercept))
    np.testing.assert_array_equal(Z, before)
    for lam, residuals in zip(lams, path, strict=True):
        for block in [np.array([i]) for i in range(30)] if blocks is None else blocks:
            train = np.setdiff1d(np.arange(30), block)
            root = np.sqrt(weights[train])[:, None]
            A = np.hstack([Z[train], np.ones((len(train), 1))]) if intercept else Z[train]
            penalty = np.diag([lam] * columns + [0.0] * intercept)
            c = np.linalg.solve((root * A).T @ (root * A) + penalty, (root * A).T @ (root * Y[:, train].T))
            F = Z[block] @ c[:columns] + (c[columns] if intercept else 0.0)
            np.testing.assert_allclose(residuals[:, block], Y[:, block] - F.T, rtol=1e-6, atol=1e-8)


def test_low_rank_risks_are_those_of_functions_on_the_features_of_the_factor(rng):
    """Blocks longer than the rank take Woodbury's form, shorter ones the direct one; the rest is ridge regression."""
    X = rng.uniform(-1, 1, (60, 2))
    Y, weights = np.sin(2 * X[:, :1]).T, rng.uniform(0.5, 2.0, 60)
    grid, D = Grid.of_cell(60, 2, weights.sum(), 4, 2), squared_distances(X, X)
    for folds, rank in ((3, 12), (6, 12)):
        blocks = held_out_blocks(60, folds, np.random.default_rng(0))
        risks = search(X, Y, weights, grid, blocks, SQUARED).squared_risks(rank)
        for i, width in enumerate(grid.widths):
            tol = 0.01 * grid.lams[0] / weights.max()
            Z, _ = pivoted_cholesky(lambda rows, width=width: np.exp(-D[rows] / width**2), np.ones(60), rank, tol)
            for k, lam in enumerate(grid.lams):
                total = 0.0
                for block in blocks:
                    train = np.setdiff1d(np.arange(60), block)
                    A = Z[train].T @ (weights[train, None] * Z[train]) + lam * np.eye(Z.shape[1])
                    c = np.linalg.solve(A, Z[train].T @ (weights[train] * Y[0, train]))
                    total += np.square(Y[0, block] - np.clip(Z[block] @ c, -1, 1)) @ weights[block]
                assert risks[i, k] == pytest.approx(total / weights.sum(), rel=1e-6)


@pytest.mark.parametrize("name", ["hinge", "epsilon_insensitive", "pinball"])
def test_risks_along_a_path_are_those_of_functions_trained_from_scratch(name, rng):
    X = rng.uniform(-1, 1, (50, 2))
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(50)
    Y = np.sign(y)[None, :] if name == "hinge" else y[None, :]
    weights, loss = rng.uniform(0.5, 2.0, 50), LOSSES[name](1.0)
    grid = Grid.of_cell(33, 2, weights.sum(), 4, 3)
    blocks = held_out_blocks(50, 3, np.random.default_rng(1))
    risks = search(X, Y, weights, grid, blocks, loss).path_risks()
    np.testing.assert_allclose(risks, brute_force(X, Y, weights, grid, blocks, loss, 1e-7), rtol=0.05, atol=2e-3)


def test_folds_of_all_losses_are_charged_the_same_lam(rng):
    """Functions that are trained again in folds have the risks that the closed form of least squares gives."""
    X = rng.uniform(-1, 1, (40, 2))
    Y, weights = np.sin(3 * X[:, :1]).T + 0.2 * rng.standard_normal((1, 40)), rng.uniform(0.5, 2.0, 40)
    grid, blocks = Grid.of_cell(27, 2, weights.sum(), 3, 3), held_out_blocks(40, 3, np.random.default_rng(1))
    found = search(X, Y, weights, grid, blocks, LeastSquares(intercept=False))
    np.testing.assert_allclose(found.path_risks(), found.squared_risks(40), rtol=1e-3)
    share = replace(grid, lams=grid.lams * 27.0 / 40.0)
    assert not np.allclose(replace(found, grid=share).path_risks(), found.squared_risks(40), rtol=3e-2)


def test_a_race_keeps_a_pair_that_is_as_good_as_the_best_of_all(rng):
    X = rng.uniform(-1, 1, (450, 2))
    Y = np.sign(np.sin(4 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(450))[None, :]
    weights, loss = rng.uniform(0.5, 2.0, 450), Hinge(intercept=False)
    blocks = held_out_blocks(450, 3, np.random.default_rng(1))
    found = search(X, Y, weights, Grid.of_cell(300, 2, weights.sum(), 5, 5), blocks, loss)
    risks, raced = found.path_risks(), found.raced_risks(np.random.default_rng(0))
    assert 1 <= np.isfinite(raced).sum() <= 9
    assert risks[np.isfinite(raced)].min() < 1.1 * risks.min()
    chosen = found.risks(300, np.random.default_rng(0))
    np.testing.assert_allclose(chosen[np.isfinite(chosen)], risks[np.isfinite(chosen)], rtol=0.05)
    assert chosen.min() < 1.05 * risks.min()


@pytest.mark.parametrize("name", LOSSES)
def test_a_search_whose_time_is_over_measures_nothing_and_takes_the_middle_of_the_grid(name, rng):
    X = rng.uniform(-1, 1, (320, 2))
    Y = np.sign(X[:, :1] * X[:, 1:]).T.copy()
    cell = KernelLearner(LOSSES[name](1.0), CellSelection()).learn(CellRows(X, Y, np.ones(320)), rng, 0.0)
    assert np.isinf(cell.choice.risks).all()
    assert (cell.width, cell.lam) == (cell.choice.grid.widths[5], cell.choice.grid.lams[5])
    assert np.isfinite(cell.values(X)).all()
    assert np.isfinite([cell.certificate.upper, cell.certificate.lower, cell.lam, cell.width]).all()


def test_training_leaves_the_charge_its_share_of_the_tolerance(rng):
    x = rng.uniform(size=(400, 1))
    rows = CellRows(x, x.T - 0.5, np.ones(400))
    exact = KernelLearner(Pinball(0.5, intercept=False), pair=(1.0, 1e-3), tol=1e-9)
    charged = exact.learn(rows, rng).certificate
    tol = 1.15 * charged.charged / charged.upper  # a gap of this much alone, and the charge, are twice the tolerance
    assert tol > 1e-6
    assert replace(exact, tol=tol).learn(rows, rng).certificate.holds(tol)


def test_grid_is_the_papers():
    grid = Grid.of_cell(500, 4, 2.5)
    assert grid.lams.shape == grid.widths.shape == (10,)
    np.testing.assert_allclose(grid.lams[[0, -1]], [2.5 * 0.001 / 500, 0.25])
    np.testing.assert_allclose(grid.widths[[0, -1]], [0.5 * 500**-0.25, 10.0])
    np.testing.assert_allclose(np.diff(np.log(grid.lams), 2), 0.0, atol=1e-10)


def test_held_out_blocks_partition_the_rows():
    rng = np.random.default_rng(0)
    assert held_out_blocks(10, "leave-one-out", rng) is None
    assert np.array_equal(np.sort(np.concatenate(held_out_blocks(11, 4, rng))), np.arange(11))
    (second,) = held_out_blocks(10, "split", rng)
    assert len(second) == 4  # l = m // 2 + 1 rows to train on
    assert len(held_out_blocks(3, 5, rng)) == 3
    assert held_out_blocks(1, "leave-one-out", rng) == held_out_blocks(2, "split", rng) == []


@pytest.mark.parametrize("name", LOSSES)
def test_small_cells_have_defined_functions(name):
    learner, rng = KernelLearner(LOSSES[name](1.0), CellSelection("split")), np.random.default_rng(0)
    X, w = np.array([[0.0], [1.0], [0.5]]), np.ones(3)
    one = learner.learn(CellRows(X[:1], np.array([[1.0]]), w[:1]), rng)
    assert (one.values(X) == 1.0).all()
    same = learner.learn(CellRows(X, np.array([[-1.0, -1.0, -1.0]]), w), rng)
    assert (same.values(X) == -1.0).all()
    two = learner.learn(CellRows(X[:2], np.array([[-1.0, 1.0]]), w[:2]), rng)  # nothing left to validate on
    assert two.choice is None
    assert two.width == 10.0
    assert two.lam == pytest.approx(0.2)  # 0.1 beside the mean of the losses of two rows
    assert np.isfinite(two.values(X)).all()
    equal = learner.learn(CellRows(np.zeros((4, 1)), np.array([[1.0, 1.0, 1.0, -1.0]]), np.ones(4)), rng)
    assert np.isfinite(equal.values(X)).all()


@pytest.mark.parametrize("validation", ["leave-one-out", 4])
def test_the_walk_measures_exact_risks_and_ends_where_no_narrower_neighbor_is_better(validation, rng):
    X = rng.uniform(-1, 1, (60, 2))
    Y, weights = np.sin(9 * X[:, :1]).T, rng.uniform(0.5, 2.0, 60)
    grid = Grid.of_cell(60, 2, weights.sum(), 6, 6)
    blocks = held_out_blocks(60, validation, np.random.default_rng(0))
    found = search(X, Y, weights, grid, blocks, SQUARED)
    low, exact = found.squared_risks(5), found.squared_risks(60)
    walked = found.refined(low)
    seen = np.isfinite(walked)
    np.testing.assert_allclose(walked[seen], exact[seen], rtol=1e-3)
    i, k = np.unravel_index(walked.argmin(), walked.shape)
    assert walked[i, k] <= exact.ravel()[low.argmin()] * (1 + 1e-3)
    for a, b in ((i - 1, k), (i, k - 1), (i, k + 1), (i - 1, k + 1)):
        if 0 <= a < 6 and 0 <= b < 6:
            assert walked[a, b] >= walked[i, k]
            assert seen[a, b]


@pytest.mark.parametrize("keeps_width", [False, True])
def test_the_walk_follows_narrower_kernels_that_want_more_regularization(keeps_width):
    """Risks of one machine for 6,000 rows of covtype have this shape: the best pairs lie on a diagonal."""
    i, k = np.indices((6, 8))
    risks = 0.3 * i + 2.0 * np.abs(i + k - 5)  # a narrower kernel alone is worse, and so is more regularization
    walked = walk(np.where((i == 5) & (k == 0), 0.0, 1.0), lambda i, k, _: risks[i, k], np.inf, keeps_width=keeps_width)
    assert np.unravel_index(walked.argmin(), walked.shape) == (0, 5)


@pytest.mark.parametrize("keeps_width", [False, True])
def test_the_walk_tries_both_at_once_where_neither_alone_is_better(keeps_width):
    """Of many rows pairs of one width come together, because another width has other tiles."""
    guess, tried = np.ones((3, 3)), []
    guess[1, 1] = 0.0
    walk(guess, lambda i, k, _: tried.append((i - 1, k - 1)) or float(len(tried)), np.inf, keeps_width=keeps_width)
    narrower, others, wider = [(-1, 0)], [(0, 1), (0, -1)], [(1, 0), (1, -1)]
    expected = [*others, *narrower, (-1, 1), *wider] if keeps_width else [*narrower, *others, (-1, 1)]
    assert tried == [(0, 0), *expected]


def test_the_walk_leads_to_wider_kernels_where_places_begin_with_narrow_ones():
    i, k = np.indices((6, 8))
    risks = 0.3 * (5 - i) + 2.0 * np.abs(i + k - 5)  # a wider kernel alone is worse, and so is less regularization
    guess = np.where((i == 0) & (k == 5), 0.0, 1.0)
    ends = [walk(guess, lambda i, k, _: risks[i, k], np.inf, keeps_width=keeps).argmin() for keeps in (True, False)]
    assert [np.unravel_index(end, risks.shape) for end in ends] == [(5, 0), (0, 5)]


def test_risks_in_places_are_the_less_of_two_where_a_factor_is_not_whole(rng):
    """Of functions on the features of a factor of low rank, and of functions of the rows of a place alone."""
    X, weights = rng.uniform(-1, 1, (60, 2)), rng.uniform(0.5, 2.0, 60)
    Y = np.vstack([np.sin(5 * X[:, 0]), 1.3 * X[:, 1]])
    grid, places = Grid(np.array([0.3, 5.0]), np.array([0.2, 0.8, 20.0])), [np.arange(25), np.arange(20, 45)]
    blocks = held_out_blocks(60, 5, np.random.default_rng(0))
    search = GridSearch(SQUARED, KernelMatrices(Gaussian(1.0), X, by_steps=True), Y, weights, grid, blocks, 1.0)
    risks, in_places = search.first_risks(6, places)
    np.testing.assert_array_equal(risks, search.squared_risks(6))
    rows, which, tol = np.concatenate(places), [], 0.01 * grid.lams[0] / weights.max()
    for i, width in enumerate(grid.widths):
        K = np.exp(-squared_distances(X, X) / width**2)
        Z, _ = pivoted_cholesky(K.__getitem__, np.ones(60), 6, tol)
        for k, lam in enumerate(grid.lams):
            low = [(Z @ Z.T, np.arange(60)) for _ in rows]
            near = [(K, place) for place in places for _ in place]
            totals = []
            for ways in (low, near):
                losses = []
                for row, (G, known) in zip(rows, ways, strict=True):
                    others = np.setdiff1d(known, [row])
                    A = G[np.ix_(others, others)] + lam * np.diag(1.0 / weights[others])
                    F = np.clip(Y[:, others] @ np.linalg.solve(A, G[others, row]), -1.0, 1.0)
                    losses.append(np.square(Y[:, row] - F).sum())
                totals.append(np.array(losses) @ weights[rows] / weights[rows].sum())
            which.append((Z.shape[1] < 6, int(np.argmin(totals))))
            assert in_places[i, k] == pytest.approx(totals[0] if which[-1][0] else min(totals), rel=1e-6)
    assert {(False, 1), (True, 0)} <= set(which)


def test_a_walk_begins_where_places_say_unless_the_risk_there_is_more_than_a_factor_promises():
    guess, risks = np.full((3, 3), 0.9), np.full((3, 3), 0.8)
    guess[2, 2], risks[0, 0], risks[2, 2] = 0.5, 0.6, 0.4

    def tried(begin, at_begin):
        order, own = [], risks.copy()
        own[begin] = at_begin
        walk(guess, lambda i, k, rival: order.append((i, k, rival)) or own[i, k], np.inf, begin=begin)
        return order[:2]

    assert tried((0, 0), 0.6) == [(0, 0, None), (2, 2, (0, 0))]
    assert tried((0, 0), 0.45) == [(0, 0, None), (0, 1, (0, 0))]
    assert tried((2, 2), 0.6)[1] != (2, 2, (2, 2))


@pytest.mark.parametrize(("validation", "are_asked"), [(5, True), ("split", False), ("leave-one-out", False)])
def test_places_are_asked_where_folds_of_a_large_table_are_held_out(validation, are_asked, rng, monkeypatch):
    X, weights = rng.uniform(-1, 1, (60, 2)), np.ones(60)
    Y, grid = np.sin(9 * X[:, :1]).T, Grid.of_cell(60, 2, 60.0, 4, 4)
    blocks, begun = held_out_blocks(60, validation, np.random.default_rng(0)), []
    search = GridSearch(SQUARED, KernelMatrices(Gaussian(1.0), X, by_steps=True), Y, weights, grid, blocks, 1.0)
    monkeypatch.setattr(selection, "walk", lambda risks, *others: begun.append((risks, others[-1])) or risks)
    search.risks(5, np.random.default_rng(1))
    risks, in_places = search.first_risks(5, search.matrices.places(np.random.default_rng(1)))
    np.testing.assert_array_equal(begun[0][0], risks)
    assert begun[0][1] == (np.unravel_index(in_places.argmin(), in_places.shape) if are_asked else None)
    assert not are_asked or in_places.argmin() != risks.argmin()
    search.risks(60, np.random.default_rng(1))  # factors are whole, and nothing is walked
    assert len(begun) == 1


def test_places_do_not_take_levels_of_clusters_for_wide_kernels(rng, monkeypatch):
    """A wide kernel suits every place, whose targets are the same, and not the table; its factor is whole, though."""
    monkeypatch.setattr(matrices, "NEAR_ROWS", 50)
    X = np.repeat(rng.uniform(-1, 1, (8, 3)), 80, axis=0) + 0.02 * rng.standard_normal((640, 3))
    Y = np.clip(np.repeat(rng.uniform(-1, 1, 8), 80) + 0.1 * rng.standard_normal(640), -1, 1)[None]
    grid, blocks = Grid.of_cell(512, 3, 640.0), held_out_blocks(640, 5, np.random.default_rng(0))
    search = GridSearch(SQUARED, KernelMatrices(Gaussian(1.0), X, by_steps=True), Y, np.ones(640), grid, blocks, 1.0)
    risks, in_places = search.first_risks(300, search.matrices.places(rng))
    i, k = np.unravel_index(in_places.argmin(), in_places.shape)
    assert search.exact(i, k) <= 1.05 * risks.min()


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()])
def test_places_of_a_large_table_are_the_rows_nearest_to_some(kernel, rng):
    X = rng.standard_normal((700, 2))
    places = KernelMatrices(kernel, X, by_steps=True).places(np.random.default_rng(3))
    chosen = np.random.default_rng(3).choice(700, 10, replace=False)
    assert len(places) == 10
    for row, place in zip(chosen, places, strict=True):
        distances = np.square(X - X[row]).sum(axis=1)
        np.testing.assert_array_equal(place, np.sort(np.argsort(distances)[:300]))
    assert [len(rows) for rows in KernelMatrices(kernel, X[:7]).places(rng)] == [7] * 7
    assert GaussianMatrices(X[:7]).places(rng) == []


def test_pairs_that_are_clearly_worse_are_spared_folds(rng, monkeypatch):
    X = rng.uniform(-1, 1, (400, 2))
    Y = (np.sin(4.0 * X[:, 0]) + 0.2 * rng.standard_normal(400))[None]
    loss, grid = EpsilonInsensitive(C=1.0, epsilon=0.1, intercept=False), Grid(np.array([0.05, 500.0]), np.array([0.5]))
    blocks = held_out_blocks(400, 5, np.random.default_rng(0))
    search = GridSearch(loss, GaussianMatrices(X), Y, np.ones(400), grid, blocks)
    fits, original = [], selection.fit
    monkeypatch.setattr(selection, "fit", lambda *args, **kwargs: fits.append(1) or original(*args, **kwargs))
    good, bad = search.exact(0, 0), search.exact(0, 1, (0, 0))
    assert good < 0.2
    assert np.isinf(bad)
    assert len(fits) == 5 + 1
    alone = GridSearch(loss, GaussianMatrices(X), Y, np.ones(400), grid, blocks).path_risks()
    assert np.isclose(alone[0, 0], good, rtol=0.02)
    assert alone[0, 1] > alone[0, 0]
