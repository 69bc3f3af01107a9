"""Targets and entries of a table that are far from all others: typing errors, 999 for what is not known."""

import numpy as np
import pytest

import convexkernels as ck
from convexkernels.estimators.outliers import LOOKED_AT, usual_limits, usual_range, without_outliers
from convexkernels.estimators.targets import NumberTargets
from convexkernels.losses.epsilon_insensitive import deviation_of
from convexkernels.solvers.nonconvex import paths

ROBUST = [
    ck.TessellatedSVR(),
    ck.MultipleKernelSVR(),
    ck.VoronoiSVR(random_state=0),
    ck.VoronoiQuantile(random_state=0),
    ck.HierarchicalGaussianRegressor(loss="epsilon_insensitive", random_state=0),
    ck.HierarchicalGaussianRegressor(loss="pinball", random_state=0),
    ck.ConcatenatedKernelRegressor(loss="epsilon_insensitive", random_state=0),
]
NAMES = [type(model).__name__ for model in ROBUST]


@pytest.mark.parametrize("far", [30.0, 1e6])
@pytest.mark.parametrize("model", ROBUST, ids=NAMES)
def test_targets_that_are_far_too_large_decide_nothing(model, far):
    """One in twelve; with widths, values and gaps by all of them R^2 was between -1e6 and 0.8."""
    rng = np.random.default_rng(1)
    X, new = rng.uniform(-1.0, 1.0, (200, 3)), rng.uniform(-1.0, 1.0, (500, 3))
    truth, expected = (np.sin(3.0 * Z[:, 0]) + Z[:, 1] ** 2 for Z in (X, new))
    y = truth + 0.1 * rng.normal(size=200)
    y[rng.choice(200, 16, replace=False)] += far
    assert model.fit(X, y).score(new, expected) > 0.95
    if "SVR" in type(model).__name__ or "Concatenated" in type(model).__name__:
        assert model.epsilon_ < 1.0
    (low, high), usual = model.predict_interval(new, coverage=0.8).T, expected + 0.1 * rng.normal(size=500)
    assert np.mean((low <= usual) & (usual <= high)) > 0.7
    assert np.median(high - low) < 6.0  # a quantile of .9 beside outliers that are a twelfth is on its way to them


@pytest.mark.parametrize("model", [ROBUST[0], ROBUST[2]], ids=lambda model: type(model).__name__)
def test_outliers_decide_nothing_in_one_column_of_few_values(model, rng):
    X = rng.integers(0, 10, (200, 1)).astype(float)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    y[rng.choice(200, 12, replace=False)] += 9999.0
    assert model.fit(X, y).score(np.arange(10.0)[:, None], np.sin(np.arange(10.0))) > 0.9


@pytest.mark.parametrize("model", [*ROBUST[:3], ROBUST[-1]], ids=lambda model: type(model).__name__)
def test_an_output_with_outliers_is_learned_beside_others(model, rng):
    X = rng.uniform(-1.0, 1.0, (150, 3))
    truth = np.column_stack([np.sin(3.0 * X[:, 0]), np.sin(3.0 * X[:, 0]) + X[:, 1]])
    Y = truth + 0.05 * rng.normal(size=truth.shape)
    Y[:3, 0] += 40.0
    predicted = model.fit(X, Y).predict(X)
    assert min(np.corrcoef(a, b)[0, 1] for a, b in zip(predicted.T, truth.T, strict=True)) > 0.97


def test_targets_of_a_problem_are_those_that_were_passed(rng):
    """Outliers set no unit, but they stay in the problem, and what is read from it is in units of y."""
    X, y = rng.uniform(-1.0, 1.0, (100, 2)), rng.normal(size=100)
    y[:4] = 9999.0
    for model in (ck.TessellatedSVR(), ck.MultipleKernelSVR(), ck.HierarchicalGaussianRegressor(loss="pinball")):
        problem, targets = model.fit(X, y).solution_.problem, model.targets_
        center = problem.center if hasattr(problem, "center") else problem.offset
        np.testing.assert_allclose(np.sort(targets.truth((problem.Y + center[:, None]).ravel())), np.sort(y), rtol=1e-9)
        assert targets.spread < 10.0
    model = ck.VoronoiSVR(random_state=0).fit(X, y)
    inside = np.concatenate([cell.Y[0] for cell in model.function_.functions])
    np.testing.assert_allclose(np.sort(model.targets_.truth(inside)), np.sort(y), rtol=1e-9)
    assert model.targets_.spread < 10.0


@pytest.mark.filterwarnings("ignore::convexkernels.exceptions.UnsuitedFamilyWarning")
@pytest.mark.parametrize("kind", [ck.TessellatedSVR, ck.MultipleKernelSVR])
def test_gaps_are_as_much_finer_as_outliers_are_large(kind, rng):
    X = rng.uniform(-1.0, 1.0, (120, 3))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=120)
    far = y.copy()
    far[:6] += 1e4
    for C in (None, 10.0):
        model = kind(C=C, tol=1e-2).fit(X, far)
        others = np.abs(y - np.mean(y)).sum()
        finer = 1e-2 * others / 6e4
        assert model.solution_.certificate.relative_gap <= 2.0 * finer
    usual = kind(tol=1e-2).fit(X, y)
    assert model._finer(1e-2) == pytest.approx(finer, rel=0.5)
    assert usual._finer(1e-2) == 1e-2 == model.fit(X, y)._finer(1e-2)


def test_a_skewed_target_that_is_told_is_not_one_of_outliers():
    """Its largest values are in a corner: at one end of several columns."""
    wrong = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (300, 6))
        y = np.exp(1.4 * X.sum(axis=1)) * np.exp(0.1 * rng.normal(size=300))
        wrong.append(int((y > usual_range(X, y[None], np.ones(300))[1][0, 0]).sum()))
    assert np.mean(np.array(wrong) > 0) <= 0.15
    assert max(wrong) <= 4


def test_columns_that_say_nothing_hide_no_corner():
    told = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1.0, 1.0, (200, 3)), rng.normal(size=200)
        y[np.argsort(X.sum(axis=1) + 0.5 * rng.normal(size=200))[-12:]] += 50.0
        for more in (X, np.hstack([X, np.ones((200, 40))]), np.tile(X, 14)):
            told.append(np.isinf(usual_range(more, y[None], np.ones(200))).all())
    assert np.mean(told) >= 0.9


def test_many_columns_are_as_many_chances():
    """Of more columns than rows one in four tables had one where outliers follow each other."""
    noticed = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 2000)), rng.normal(size=100)
        y[rng.choice(100, 9, replace=False)] += 100.0
        noticed.append(np.isfinite(usual_range(X, y[None], np.ones(100))).all())
    assert np.mean(noticed) >= 0.95


def test_rows_that_are_all_alike_have_no_place(rng):
    y = rng.normal(size=200)
    y[:12] += 50.0
    assert not np.isinf(usual_range(np.ones((200, 2)), y[None], np.ones(200))).any()


@pytest.mark.parametrize("model", [ROBUST[2], ROBUST[4]], ids=lambda model: type(model).__name__)
def test_every_row_may_have_an_outlier_of_some_output(model, rng):
    X, rows = rng.normal(size=(60, 3)), rng.permutation(60)
    Y = np.sin(X @ rng.normal(size=(3, 15))) + 0.1 * rng.normal(size=(60, 15))
    for k in range(15):
        Y[rows[4 * k : 4 * k + 4], k] += 1e3
    kept, usual, _ = without_outliers(X, Y.T, np.ones(60))
    assert len(kept) == 60
    assert np.abs(usual).max() <= 1.0
    assert np.ptp(np.delete(usual[0], rows[:4])) > 0.5  # by the range of the others, and ends for what is beyond
    for n_outputs, left in ((7, 32), (9, 60)):  # half of the rows, or all
        assert len(without_outliers(X, Y.T[:n_outputs], np.ones(60))[0]) == left
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


def test_one_or_two_rows_are_outliers_where_they_are_far(rng):
    X, y = rng.uniform(-1.0, 1.0, (100, 3)), rng.normal(size=100)
    for size, noticed in ((20.0, False), (70.0, True)):
        far = y.copy()
        far[:2] = size
        assert np.isfinite(usual_range(X, far[None], np.ones(100))).all() == noticed


def test_a_unit_is_the_range_of_the_others():
    y = np.array([[-1.0, 5.0], [2.0, 6.0], [100.0, 9.0]])
    targets = NumberTargets.by_range(y, (np.array([-50.0, -np.inf]), np.array([50.0, np.inf])))
    np.testing.assert_array_equal(targets.center, [0.5, 7.0])
    np.testing.assert_array_equal(targets.spread, [1.5, 2.0])


def test_units_are_not_far_below_the_largest_target(rng):
    X, y = rng.uniform(-1.0, 1.0, (60, 2)), 1e-200 * rng.normal(size=60)
    y[:4] = 1e-50
    assert np.isinf(usual_range(X, y[None], np.ones(60))).all()


def test_intervals_of_constants_are_points(rng):
    X = rng.uniform(-1.0, 1.0, (60, 2))
    for constant in (5.0, 1e-200):
        ends = ck.VoronoiQuantile(random_state=0).fit(X, np.full(60, constant)).predict_interval(X[:3], coverage=0.8)
        np.testing.assert_allclose(ends, constant, rtol=1e-12)


def test_relevance_of_several_constant_outputs(rng):
    X = rng.integers(0, 2, (40, 2)).astype(float)
    relevance = ck.TessellatedSVR().fit(X, np.ones((40, 2))).feature_relevance_
    np.testing.assert_allclose(relevance, 0.5)


def test_quantiles_that_may_be_outliers_have_the_range_of_all(rng):
    X, y = rng.uniform(-1.0, 1.0, (200, 2)), rng.normal(size=200)
    y[:10] += 100.0  # a twentieth
    upper, middle = (ck.VoronoiQuantile(quantile=q, random_state=0).fit(X, y).targets_.spread for q in (0.97, 0.5))
    assert middle < 10.0 < 40.0 < upper


def test_outliers_are_what_rules_squares_and_is_rare(rng):
    X, weights = rng.normal(size=(400, 2)), rng.uniform(1.0, 2.0, 400)
    usual = np.array([rng.normal(size=400), rng.exponential(size=400), rng.uniform(size=400), np.full(400, 3.0)])
    usual = np.vstack(
        [usual, np.where(rng.random(400) < 0.2, rng.exponential(size=400), 0.0), rng.choice([-1, 1], 400)]
    )
    assert np.isinf(usual_range(X, usual, weights)).all()
    far = usual.copy()
    far[0, :20] += 1e3
    low, high = usual_range(X, far, weights)
    assert np.isinf(high[1:]).all()  # they are no outliers of other outputs
    assert -6.0 < low[0, 0] < -3.0 < 3.0 < high[0, 0] < 6.0
    for unit in (1e-200, 7.0, 1e90):
        np.testing.assert_allclose(usual_range(X, unit * far, weights)[1], unit * high, rtol=1e-12)


@pytest.mark.parametrize("where", ["an end", "the middle", "a category", "a place"])
def test_large_targets_that_rows_tell_are_to_be_learned(where, rng):
    X = rng.uniform(-1.0, 1.0, (300, 4))
    X[:, 3] = rng.random(300) < 0.06
    large = {
        "an end": X[:, 0] > 0.88,
        "the middle": np.abs(X[:, 1]) < 0.06,
        "a category": X[:, 3] > 0.0,
        "a place": np.square(X[:, :3] - 0.3).sum(axis=1) < 0.2,
    }[where]
    y = 300.0 * large + rng.normal(size=300)
    assert np.isinf(usual_range(X, y[None], np.ones(300))).all()
    assert np.isfinite(usual_range(X, rng.permutation(y)[None], np.ones(300))).all()  # of rows that tell nothing


@pytest.mark.parametrize("levels", [10, 40])
def test_large_targets_of_rows_that_are_alike_are_not_taken_for_neighbors(levels):
    """Tables are sorted by rows and then by targets, so that the large ones of a level follow each other."""
    noticed = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, levels, (200, 1)).astype(float), rng.normal(size=200)
        y[rng.choice(200, 16, replace=False)] += 300.0
        order = np.lexsort((y, X[:, 0]))
        noticed.append(np.isfinite(usual_range(X[order], y[order][None], np.ones(200))).all())
    assert np.mean(noticed) >= 0.9


def test_outliers_beyond_a_regime_are_noticed():
    noticed, learned = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (300, 3))
        y = np.sin(3.0 * X[:, 1]) + 30.0 * (X[:, 0] > 0.88) + 0.3 * rng.normal(size=300)
        y[rng.choice(300, 9, replace=False)] += 1000.0
        high = usual_range(X, y[None], np.ones(300))[1]
        noticed.append(high < 900.0)
        learned.append(high > 35.0)
    assert np.mean(noticed) >= 0.9
    assert np.mean(learned) >= 0.9


def test_outliers_anywhere_are_hardly_ever_taken_for_neighbors():
    taken = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1.0, 1.0, (200, 3)), rng.normal(size=200)
        y[rng.choice(200, 6, replace=False)] += 100.0
        taken.append(np.isinf(usual_range(X, y[None], np.ones(200))).any())
    assert np.mean(taken) <= 0.04


def test_outliers_are_those_of_rows_in_any_order_and_of_weights(rng):
    X, y, weights = rng.integers(0, 5, (120, 2)).astype(float), rng.normal(size=120), rng.integers(1, 4, 120)
    y[:9] += 300.0
    expected = usual_range(X, y[None], weights.astype(float))
    assert np.isfinite(expected).all()
    rows = rng.permutation(np.repeat(np.arange(120), weights))
    np.testing.assert_allclose(usual_range(X[rows], y[None, rows], np.ones(len(rows))), expected, rtol=1e-12)


def test_groups_of_rows_with_far_entries_stay_apart(rng):
    """Two doses far above the others would become one point; one value on a side is what is not known."""
    dose = rng.permutation(np.repeat([0.0, 1.0, 100.0, 1000.0], [200, 164, 18, 18]))
    column = np.column_stack([dose + 1e-3 * rng.normal(size=400) * (dose < 50.0), rng.normal(size=400)])
    assert usual_limits(column) is None
    column[dose == 1000.0, 0] = -1000.0
    low, high = usual_limits(column)
    assert low[0] < 0.0 < high[0] < 100.0


def test_a_rare_regime_is_learned():
    rng = np.random.default_rng(0)
    (X, new), model = (rng.uniform(-1.0, 1.0, (m, 3)) for m in (200, 500)), ck.VoronoiSVR(random_state=0)
    y, expected = (300.0 * (Z[:, 0] > 0.88) + np.sin(3.0 * Z[:, 1]) for Z in (X, new))
    assert model.fit(X, y + rng.normal(size=200)).score(new, expected) > 0.85


def test_squares_learn_from_rows_without_outliers(rng):
    X, Y = rng.normal(size=(300, 2)), rng.uniform(-1.0, 1.0, (2, 300))
    Y[:, 0], Y[:, 1] = -1.0, 1.0
    rows, same, unit = without_outliers(X, Y, np.ones(300))
    np.testing.assert_array_equal(same, Y)
    np.testing.assert_array_equal(rows, np.arange(300))
    assert unit == 1.0
    far = Y.copy()
    far[0] *= 1e-6
    far[0, 5] = 1.0
    rows, found, unit = without_outliers(X, far, np.ones(300))
    assert unit < 1e-5
    assert found[0].min() == -1.0
    assert found[0].max() == 1.0
    np.testing.assert_array_equal(rows, np.delete(np.arange(300), 5))
    np.testing.assert_array_equal(found[1], Y[1, rows])
    np.testing.assert_allclose(np.diff(found[0]) * unit, np.diff(far[0, rows]), atol=1e-18)


def test_the_deviation_of_errors_is_that_of_outputs_and_rows_that_count(rng):
    errors = rng.normal(size=(2, 400))
    one = deviation_of(errors[:1], np.ones(400))
    np.testing.assert_allclose(deviation_of(np.vstack([errors[:1], 1e-17 * errors]), np.ones(400)), one, rtol=1e-12)
    weights = np.ones((2, 400))
    weights[0, :5] = 0.0
    far = errors.copy()
    far[0, :5] = 1e9
    expected = [np.sqrt(np.mean(part**2)) for part in (errors[0, 5:], errors[1])]
    np.testing.assert_allclose(deviation_of(far, weights), np.sqrt(np.mean(np.square(expected))), rtol=1e-9)
    assert deviation_of(errors, np.zeros(400)) == 0.0


def curved(rng, m):
    X = rng.uniform(-1.0, 1.0, (m, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2


@pytest.mark.parametrize(
    "model",
    [
        ck.TessellatedRidge(),
        ck.TessellatedSVR(),
        ck.TessellatedSVC(),
        ck.MultipleKernelRidge(),
        ck.HierarchicalGaussianRegressor(random_state=0),
        ck.VoronoiRidge(random_state=0),
        ck.VoronoiSVC(random_state=0),
        ck.SpectralKernelRegressor(random_state=0),
        ck.ConcatenatedKernelRegressor(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_entries_that_are_far_from_all_others_leave_them_their_scale(model):
    """Onto [-1, 1], or to variance 1, with them, other rows are one point: R^2 was 0 for half of these."""
    rng = np.random.default_rng(2)
    (X, y), (new, expected) = curved(rng, 150), curved(rng, 400)
    X[5, 0], X[77, 1] = 9999.0, -1e6
    if isinstance(model, ck.TessellatedSVC | ck.VoronoiSVC):
        y, expected = y > 0.3, expected > 0.3
    model.fit(X, y)
    assert model.score(new, expected) > 0.9
    shared = model.kernel_(new[:4], X[[5, 77]])
    assert np.isfinite(shared).all()


def test_outliers_of_columns_are_rare_and_far(rng):
    usual = np.column_stack([rng.normal(size=500), rng.exponential(size=500), rng.integers(1, 6, 500), np.ones(500)])
    usual = np.column_stack([usual, rng.random(500) < 0.02, np.exp(rng.normal(size=500))])
    assert usual_limits(usual) is None
    far = usual.copy()
    far[7, 0], far[8, 2] = 1e4, 999.0
    low, high = usual_limits(far)
    assert 4.0 < high[0] < 12.0
    assert 5.0 < high[2] < 20.0
    assert (np.abs([low, high])[:, [1, 3, 4, 5]] > 1e100).all()
    group = usual.copy()
    group[::12, 0] = rng.uniform(1e3, 2e3, 42)  # another group of rows
    assert usual_limits(group) is None
    group[::12, 0] = 9999.0
    assert usual_limits(group) is not None
    np.testing.assert_array_equal(usual_limits(np.vstack([far, far[:300]])), (low, high))  # rows count once


def test_limits_of_a_long_table_depend_neither_on_order_nor_on_repetition(rng):
    X = rng.standard_t(1.5, (LOOKED_AT + 2000, 1))
    X[0] = 1e6
    expected = usual_limits(X)
    assert expected is not None
    for other in (rng.permutation(X), np.vstack([X, X]), np.repeat(X, 2, axis=0)):
        np.testing.assert_array_equal(usual_limits(other), expected)


def test_rows_that_come_later_may_differ_from_constant_ones(rng):
    X = rng.uniform(-1.0, 1.0, (200, 2))
    model = ck.SpectralKernelRegressor(n_components=50, random_state=0).fit(X, np.full(200, 2.0))
    for _ in range(10):
        model.partial_fit(X, np.sin(3.0 * X[:, 0]))
    assert np.ptp(model.predict(X)) > 0.1


def test_the_kernel_of_a_table_with_outliers_is_that_of_the_function(rng):
    X, y = curved(rng, 80)
    X[3, 2] = 500.0
    model = ck.TessellatedRidge(lam=1e-2).fit(X, y)
    new = np.vstack([curved(rng, 5)[0], [[0.1, 0.2, 500.0], [0.1, 0.2, 900.0]]])
    alpha = np.zeros(80)
    alpha[model.support_] = model.support_coefficients_
    values = model.kernel_(new, X) @ alpha
    np.testing.assert_allclose(values - values[0], model.predict(new) - model.predict(new)[0], atol=1e-6)
    np.testing.assert_allclose(*model.predict(new)[5:], rtol=1e-12)  # both are beyond the limit


def test_weights_of_norms_are_compared_by_what_descents_find(monkeypatch):
    """Descents that end at a part of the value had not begun where outliers are most of it."""
    rng = np.random.default_rng(2)
    X, rows = rng.uniform(-1.0, 1.0, (120, 2)), rng.permutation(120)[:10]
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=120)
    y[rows] += 1e6
    steps = []

    def descended(*args):
        found = walk(*args)
        steps.append(found.n_iter)
        return found

    walk = paths.descended
    monkeypatch.setattr(paths, "descended", descended)
    ck.ConcatenatedKernelRegressor(loss="epsilon_insensitive", random_state=0).fit(X, y)
    assert len(steps) == 27
    assert np.mean(steps) > 3.0
