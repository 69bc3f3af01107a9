"""The Voronoi estimators: what they learn, limits, any learner in a cell, and refusals."""

import pickle
import time
import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from convexkernels import (
    Cells,
    CellSelection,
    ConcatenatedKernelRegressor,
    ConvexKernelsWarning,
    Gaussian,
    HierarchicalGaussianRegressor,
    InvalidInputError,
    LeastSquares,
    MissingAttributeError,
    MultipleKernelRidge,
    MultipleKernelSVC,
    MultipleKernelSVR,
    OverlappingCover,
    Polynomial,
    RandomChunks,
    Restarts,
    SpectralKernelRegressor,
    Status,
    TessellatedRidge,
    TessellatedSVC,
    TessellatedSVR,
    TreeCover,
    VoronoiCover,
    VoronoiQuantile,
    VoronoiRidge,
    VoronoiSVC,
    VoronoiSVR,
    bounds,
)
from convexkernels.cells import kernel_learner, pairs, training
from convexkernels.cells.learner import CellRows
from convexkernels.clock import Clock
from convexkernels.estimators.left_out import left_out_of_cells
from convexkernels.progress import Silent
from convexkernels.solvers.nonconvex.stochastic import Stochastic

SMALL = {"selection": CellSelection(n_lams=3, n_widths=3)}


def choice(validation=None, size=3):
    return CellSelection(validation, n_lams=size, n_widths=size)


def table(m=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(m)


def three_classes(m=600, seed=0):
    X, f = table(m, seed)
    return X, np.array(["low", "middle", "high"])[np.digitize(f, [-0.2, 0.2])]


COVERS = {"voronoi": VoronoiCover, "tree": TreeCover, "overlapping": OverlappingCover, "random": RandomChunks}


@pytest.mark.parametrize("partition", COVERS)
def test_every_partition_learns_a_smooth_function(partition):
    X, y = table()
    T, t = table(seed=1)
    model = VoronoiRidge(max_cell_size=150, cells=Cells(partition), random_state=0).fit(X, y)
    assert type(model.cover_) is COVERS[partition]
    assert model.n_cells_ == len(model.function_.functions) > 1
    assert model.score(T, t) > 0.95
    if partition != "overlapping":
        assert model.function_.sizes.sum() == len(X)
        assert model.function_.sizes.max() <= 150


@pytest.mark.parametrize("estimator", [VoronoiRidge(), VoronoiSVR(), VoronoiQuantile()])
def test_regressors_come_close_to_one_svm_for_all(estimator):
    X, y = table(400)
    T, t = table(400, seed=1)
    model = clone(estimator).set_params(max_cell_size=150, random_state=0)
    model.set_params(selection=choice(None if isinstance(estimator, VoronoiRidge) else 3, 5))
    model.fit(X, y)
    peer = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.01).fit(X, y)
    assert model.score(T, t) > peer.score(T, t) - 0.03


def test_quantiles_leave_their_share_of_points_below(rng):
    X = rng.uniform(size=(800, 1))
    y = np.sin(5 * X[:, 0]) + X[:, 0] * rng.standard_normal(800)
    T = rng.uniform(size=(4000, 1))
    t = np.sin(5 * T[:, 0]) + T[:, 0] * rng.standard_normal(4000)
    for quantile in (0.1, 0.5, 0.9):
        model = VoronoiQuantile(quantile=quantile, selection=choice(3, 5), max_cell_size=400).fit(X, y)
        assert abs(np.mean(t <= model.predict(T)) - quantile) < 0.07


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
def test_several_classes_with_text_labels(loss):
    X, y = three_classes()
    T, t = three_classes(seed=1)
    model = VoronoiSVC(loss=loss, max_cell_size=250, selection=choice(3, 4), random_state=0).fit(X, y)
    assert model.decision_function(T).shape == (600, 3)
    assert model.score(T, t) > SVC(gamma=1.0).fit(X, y).score(T, t) - 0.03


def test_cells_without_some_classes_never_name_them(rng):
    X = np.concatenate([rng.normal(size=(60, 2)), 100.0 + rng.normal(size=(60, 2))])
    y = np.concatenate([np.arange(60) % 2, 2 + np.arange(60) % 2])
    for estimator in (None, SVC(), TessellatedSVC(C=0.1)):
        model = VoronoiSVC(cells=Cells(radius=0.3), estimator=estimator, selection=choice(2)).fit(X, y)
        assert model.n_cells_ == 2
        assert set(model.predict(X[:60])) <= {0, 1}
        assert set(model.predict(X[60:])) <= {2, 3}


def test_cells_of_one_class_and_of_one_point_answer_with_it(rng):
    X = np.concatenate([rng.normal(size=(40, 1)), [[500.0]], 1000.0 + rng.normal(size=(20, 1))])
    y = np.concatenate([np.arange(40) % 2, [1], np.zeros(20, dtype=int)])
    model = VoronoiSVC(cells=Cells(radius=0.1), selection=choice(2)).fit(X, y)
    assert sorted(model.function_.sizes.tolist()) == [1, 20, 40]
    assert model.predict([[510.0]]) == [1]
    assert model.predict([[1e100]]) == [0]
    assert np.isfinite(model.decision_function([[-1e149]])).all()


def test_equal_points_with_different_targets_average():
    X, y = np.full((30, 2), 7.0), np.repeat([0.0, 3.0], 15)
    model = VoronoiRidge(max_cell_size=4).fit(X, y)
    assert model.n_cells_ == 1
    assert model.predict(X[:1]) == pytest.approx([1.5], abs=0.1)


def test_predictions_stay_within_the_range_of_the_targets(rng):
    X, y = table(200)
    model = VoronoiRidge(max_cell_size=50, **SMALL).fit(X, 1e6 + y)
    far = model.predict(rng.uniform(-50, 50, (300, 2)))
    assert far.min() >= 1e6 + y.min() - 1e-6
    assert far.max() <= 1e6 + y.max() + 1e-6


def test_weights_are_repetitions_and_zero_is_absence():
    X, y = table(120)
    weights = np.random.default_rng(0).integers(0, 3, 120)
    options = {"max_cell_size": 60, "random_state": 0, **SMALL}
    weighted = VoronoiRidge(**options).fit(X, y, sample_weight=weights)
    kept = np.flatnonzero(weights)
    absent = VoronoiRidge(**options).fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_allclose(weighted.predict(X), absent.predict(X), atol=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        VoronoiRidge(cells=Cells("overlapping")),
        VoronoiSVR(selection=choice(2)),
        VoronoiQuantile(selection=choice(2)),
        VoronoiSVC(selection=choice(2)),
        VoronoiSVC(loss="least_squares"),
        VoronoiSVC(estimator=SVC()),
        VoronoiRidge(estimator=Ridge()),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.cells}-{estimator.estimator}",
)
def test_weights_are_repetitions_for_every_loss_and_learner(estimator):
    X, y = table(90)
    y = y > 0 if isinstance(estimator, VoronoiSVC) else y
    weights = np.random.default_rng(0).integers(1, 4, 90)
    model = clone(estimator).set_params(max_cell_size=50, random_state=0, selection=estimator.selection or choice())
    weighted = model.fit(X, y, sample_weight=weights).predict(X)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict(X)
    assert np.array_equal(weighted, repeated)
    assert not np.array_equal(weighted, model.fit(X, y, sample_weight=weights**3).predict(X)) or y.dtype == bool


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
def test_class_weights_multiply_the_weights_of_rows(loss):
    X, y = three_classes(150)
    options = {"loss": loss, "max_cell_size": 80, "selection": choice(2), "random_state": 0}
    rows = {"low": 5.0, "middle": 1.0, "high": 2.0}
    by_class = VoronoiSVC(class_weight={"low": 5.0, "high": 2.0}, **options).fit(X, y)
    by_row = VoronoiSVC(**options).fit(X, y, sample_weight=np.array([rows[label] for label in y]))
    assert np.array_equal(by_class.decision_function(X), by_row.decision_function(X))
    counts = dict(zip(*np.unique(y, return_counts=True), strict=True))
    balanced = VoronoiSVC(class_weight="balanced", **options).fit(X, y)
    by_hand = VoronoiSVC(**options).fit(X, y, sample_weight=np.array([150 / (3 * counts[label]) for label in y]))
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-8)
    assert np.mean(by_class.predict(X) == "low") > np.mean(VoronoiSVC(**options).fit(X, y).predict(X) == "low") - 0.01


def test_classes_of_weight_zero_are_absent_and_strange_ones_refused():
    X, y = three_classes(150)
    options = {"loss": "least_squares", "max_cell_size": 80, "random_state": 0, **SMALL}
    model = VoronoiSVC(class_weight={"middle": 0.0}, **options).fit(X, y)
    kept = y != "middle"
    assert model.classes_.tolist() == ["high", "low"]
    assert np.array_equal(model.predict(X), VoronoiSVC(**options).fit(X[kept], y[kept]).predict(X))
    with pytest.raises(InvalidInputError, match="class_weight names the class 'tall'"):
        VoronoiSVC(class_weight={"tall": 2.0}, **options).fit(X, y)
    with pytest.raises(InvalidInputError, match="class_weight must be None, 'balanced' or a dict"):
        VoronoiSVC(class_weight="heavy", **options).fit(X, y)
    with pytest.raises(InvalidInputError, match="class_weight is 0 for every class"):
        VoronoiSVC(class_weight=dict.fromkeys(("low", "middle", "high"), 0.0), **options).fit(X, y)


def test_the_unit_of_weights_is_not_that_of_widths():
    X, y = table(200)
    options = {"random_state": 0, **SMALL}
    plain = VoronoiRidge(**options).fit(X, y)
    shares = VoronoiRidge(**options).fit(X, y, sample_weight=np.full(200, 1.0 / 200))
    np.testing.assert_allclose(shares.feature_factors_, plain.feature_factors_, rtol=1e-6)


def test_features_may_be_taken_as_they_are():
    X, y = table(200)
    options = {"max_cell_size": 100, "random_state": 0, **SMALL}
    plain = VoronoiRidge(cells=Cells(scale=False), **options).fit(X, y)
    np.testing.assert_array_equal(plain.scaling_.apply(X), X * plain.feature_factors_)
    isotropic = CellSelection(n_lams=3, n_widths=3, widths="isotropic")
    options["selection"] = isotropic
    plain = VoronoiRidge(cells=Cells(scale=False), **options).fit(X, y)
    assert np.array_equal(plain.scaling_.apply(X), X)
    stretched = VoronoiRidge(**options).fit(X * [1.0, 50.0] + 3.0, y).predict(X * [1.0, 50.0] + 3.0)
    np.testing.assert_allclose(VoronoiRidge(**options).fit(X, y).predict(X), stretched, atol=1e-6)
    assert (
        abs(
            VoronoiRidge(cells=Cells(scale=False), **options).fit(X * [1.0, 50.0], y).predict(X * [1.0, 50.0])
            - stretched
        ).max()
        > 1e-3
    )


def test_overlapping_cells_select_on_their_own_points():
    X, y = table(300)
    options = {"max_cell_size": 80, "random_state": 0, **SMALL}
    apart = VoronoiRidge(cells=Cells("voronoi"), **options).fit(X, y)
    over = VoronoiRidge(cells=Cells("overlapping", overlap=0.3), **options).fit(X, y)
    for own, wide in zip(apart.function_.functions, over.function_.functions, strict=True):
        assert (own.lam, own.width) == (wide.lam, wide.width)
        assert len(wide.X) > len(own.X)


def test_features_are_weighed_where_that_lowers_the_risk_clearly():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 4))
    alike, one = np.sin(3 * X.sum(axis=1)), np.sin(3 * X[:, 0])
    factors = [VoronoiRidge(random_state=0).fit(X, y).feature_factors_ for y in (alike, one)]
    assert np.array_equal(factors[0], np.ones(4))
    assert factors[1][0] > 5 * factors[1][1:].max()


def test_processes_and_seeds_change_nothing():
    X, y = table(300)
    options = {"max_cell_size": 80, "selection": choice(3), "random_state": 3}
    one = VoronoiSVR(**options).fit(X, y)
    two = VoronoiSVR(n_jobs=2, **options).fit(X, y)
    # Sums in another process may round differently; a function is right within its tolerance.
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-3 * np.ptp(y))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(two)).predict(X), two.predict(X))


def test_prediction_is_the_function_of_the_cell():
    X, y = table(300)
    model = VoronoiRidge(max_cell_size=80, random_state=0).fit(X, y)
    T, _ = table(100, seed=2)
    scaled = model.scaling_.apply(T)
    cells = model.cover_.cells(scaled)
    for i in range(0, 100, 7):
        value = model.function_.functions[cells[i]].values(scaled[i : i + 1])[0, 0]
        assert model.predict(T[i : i + 1])[0] == pytest.approx(
            model.targets_.center + model.targets_.spread * value, rel=1e-12
        )


@pytest.mark.parametrize("estimator", [Ridge(), KernelRidge(kernel="rbf")])
def test_any_regressor_may_sit_in_a_cell(estimator):
    X, y = table()
    alone = clone(estimator).fit(X, y)
    model = VoronoiRidge(estimator=estimator, max_cell_size=100).fit(X, y)
    assert model.score(X, y) > alone.score(X, y)
    assert not hasattr(estimator, "n_features_in_")


def test_a_tessellated_kernel_per_cell():
    X, y = three_classes(200)
    model = VoronoiSVC(estimator=TessellatedSVC(C=10.0, tol=1e-2), max_cell_size=80).fit(X, y)
    assert model.score(X, y) > 0.9
    learned = [cell.model for cell in model.function_.functions if hasattr(cell, "model")]
    assert all(isinstance(m, TessellatedSVC) and m.solution_.certificate.relative_gap <= 1e-2 for m in learned)


@pytest.mark.parametrize(
    "learner",
    [
        TessellatedRidge(tol=1e-2),
        TessellatedSVR(tol=1e-2),
        MultipleKernelRidge(tol=1e-2),
        MultipleKernelSVR(tol=1e-2),
        ConcatenatedKernelRegressor(n_restarts=Restarts(1, max_steps=30), lam=0.1, mu=0.1),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_every_kernel_may_be_learned_in_a_cell(learner):
    X, y = table(120)
    model = VoronoiRidge(estimator=learner, max_cell_size=70, random_state=0).fit(X, y)
    assert model.n_cells_ > 1
    assert all(isinstance(cell.model, type(learner)) for cell in model.function_.functions)
    assert model.score(X, y) > 0.5


class NearestMean(ClassifierMixin, BaseEstimator):
    """A classifier that gives labels and nothing else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None, :] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]


@pytest.mark.parametrize("learner", [KNeighborsClassifier(), NearestMean(), MultipleKernelSVC(tol=1e-2)], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_may_decide_by_values_probabilities_or_labels(learner, n_classes):
    X, y = three_classes(150)
    y = y if n_classes == 3 else np.where(y == "low", "low", "other")
    model = VoronoiSVC(estimator=learner, max_cell_size=80, random_state=0).fit(X, y)
    cells = model.cover_.cells(model.scaling_.apply(X))
    for j, cell in enumerate(model.function_.functions):
        rows = np.flatnonzero(cells == j)
        codes = cell.model.predict(model.scaling_.apply(X[rows]))
        assert np.array_equal(model.predict(X[rows]), model.classes_[codes])


# --- certificates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [VoronoiSVR(), VoronoiSVC(), VoronoiQuantile(), VoronoiRidge()])
@pytest.mark.parametrize("kind", ["voronoi", "overlapping", "random"])
def test_every_cell_keeps_its_gap_and_the_worst_one_is_reported(estimator, kind):
    X, y = table(120)
    y = y > 0 if isinstance(estimator, VoronoiSVC) else y
    selection = choice(2) if not isinstance(estimator, VoronoiRidge) else choice()
    model = clone(estimator).set_params(cells=Cells(kind), selection=selection, max_cell_size=50, tol=0.02)
    solution = model.fit(X, y).solution_
    gaps = [cell.certificate.relative_gap for cell in model.function_.functions]
    assert solution.status is Status.OPTIMAL
    assert abs(solution.certificate.relative_gap) == pytest.approx(max(np.abs(gaps)), abs=1e-9)
    assert max(np.abs(gaps)) <= 0.02
    assert solution.theta.shape == (model.n_cells_, 2)
    for cell in model.function_.functions:
        again = cell.verify()
        assert again.upper == pytest.approx(cell.certificate.upper, rel=1e-6)
        assert again.lower == pytest.approx(cell.certificate.lower, rel=1e-6)
        # The upper bound is the objective of the function of the cell, computed from its values.
        if cell.function.support.size:
            F, K = cell.function.gram_set.cross(None, cell.X) @ cell.function.W.T, cell.function.gram_set
            W = cell.function.W
            norms = np.einsum("ki,ij,kj->", W, K.kernel(K.points), W)
            losses = cell.loss.pointwise(cell.Y, F.T)[0] @ cell.weights
            objective = (losses.sum() + cell.lam * norms) * cell.loss.cost
            assert cell.certificate.upper == pytest.approx(objective, rel=1e-6)


def test_a_loose_tolerance_is_proven_and_a_broken_one_is_named(monkeypatch):
    X, y = table(100)
    loose = VoronoiSVR(tol=0.9, selection=choice(2)).fit(X, y).solution_
    assert loose.status is Status.OPTIMAL
    assert loose.certificate.holds(0.9)
    assert not loose.certificate.holds(1e-9)
    original = kernel_learner.fit
    monkeypatch.setattr(kernel_learner, "fit", lambda *args, tol, **named: original(*args, tol=0.9, **named))
    with pytest.warns(ConvexKernelsWarning, match=r"worst of 1 cells has the relative gap .* above tol=1e-06"):
        broken = VoronoiSVR(tol=1e-6, selection=choice(2)).fit(X, y).solution_
    assert broken.status is Status.STALLED


def test_learners_that_prove_nothing_are_not_called_optimal():
    X, y = table(100)
    solution = VoronoiRidge(estimator=Ridge(), max_cell_size=50).fit(X, y).solution_
    assert solution.status is Status.UNPROVEN
    assert np.isinf(solution.verify().relative_gap)


def test_classes_of_weight_zero_have_no_say_in_the_ranges():
    X, y = three_classes(150)
    X[y == "middle"] *= 100.0
    options = {"loss": "least_squares", "max_cell_size": 80, "random_state": 0, **SMALL}
    kept = y != "middle"
    without = VoronoiSVC(class_weight={"middle": 0.0}, **options).fit(X, y)
    np.testing.assert_array_equal(without.scaling_.scale, VoronoiSVC(**options).fit(X[kept], y[kept]).scaling_.scale)


def test_several_outputs_share_lam_and_width_in_every_cell():
    X, y = table(200)
    both = np.column_stack([y, 3.0 + 5.0 * X[:, 0]])
    model = VoronoiRidge(max_cell_size=80, **SMALL).fit(X, both)
    assert model.predict(X).shape == (200, 2)
    assert model.score(X, both) > 0.95
    wrapped = VoronoiRidge(estimator=Ridge(), max_cell_size=80).fit(X, both)
    assert wrapped.predict(X).shape == (200, 2)


# --- limits ------------------------------------------------------------------------------------


def test_time_limit_keeps_the_cells_learned_and_warns():
    X, y = table(400)
    with pytest.warns(ConvexKernelsWarning, match=r"cells answer with a function of 200 of 400 rows \(TIME_LIMIT\)"):
        model = VoronoiRidge(max_cell_size=50, max_time=1e-9, random_state=0).fit(X, y)
    assert model.solution_.status is Status.TIME_LIMIT
    assert np.isfinite(model.predict(X)).all()
    assert model.solution_.n_iter == 0
    assert model.score(X, y) > 0.8
    assert not any(np.isfinite(cell.width) for cell in model.function_.functions)


@pytest.mark.parametrize(
    ("estimator", "outputs"),
    [
        (VoronoiRidge(), 1),
        (VoronoiRidge(selection=CellSelection(validation="global-split", n_lams=3, n_widths=3)), 2),
        (VoronoiRidge(cells=Cells("random"), selection=CellSelection(shared=True, n_lams=3, n_widths=3)), 1),
        (VoronoiSVC(loss="hinge", selection=CellSelection(n_lams=3, n_widths=3)), None),
    ],
)
def test_a_function_of_some_rows_answers_in_cells_that_were_not_begun(estimator, outputs, monkeypatch):
    X, y = table(400)
    T, t = table(200, seed=5)
    if outputs != 1:
        y, t = (y > 0, t > 0) if outputs is None else (np.column_stack([y, -y]), np.column_stack([t, -t]))
    original = training.learn_cell
    monkeypatch.setattr(training, "learn_cell", lambda *task: original(*task[:3], 0.0))
    model = clone(estimator).set_params(max_cell_size=100, random_state=0)
    with pytest.warns(ConvexKernelsWarning, match=r"answer with a function of \d+ of 400 rows \(TIME_LIMIT\)") as said:
        model.fit(X, y)
    assert len(said) == 1
    assert model.score(T, t) > 0.8
    assert model.solution_.status is Status.TIME_LIMIT
    assert model.solution_.verify() == model.solution_.certificate
    for cell in model.function_.functions:
        losses = cell.loss.total(cell.Y, cell.values(cell.X).T, cell.weights).sum()
        assert losses <= cell.certificate.upper
        assert cell.certificate.lower == 0.0
        assert np.isnan([cell.lam, cell.width]).all()
        with pytest.raises(MissingAttributeError, match="no dual variables"):
            cell.alpha  # noqa: B018
    left = left_out_of_cells(model.function_, True)
    seen = [model.function_.places(j)[cell.seen] for j, cell in enumerate(model.function_.functions)]
    assert np.array_equal(np.sort(left.rows), np.setdiff1d(np.arange(400), np.concatenate(seen)))
    assert len(left.rows) >= 200
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(T), model.predict(T))


class Slow(RegressorMixin, BaseEstimator):
    """Takes all the time it is given, and keeps how much that was."""

    def __init__(self, max_time=None):
        self.max_time = max_time

    def fit(self, X, y):
        time.sleep(self.max_time)
        self.given_ = self.max_time
        return self

    def predict(self, X):
        return np.ones(len(X))


def test_cells_share_the_time():
    X, y = table(200)
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT"):
        model = VoronoiRidge(estimator=Slow(), max_cell_size=50, max_time=0.5).fit(X, y)
    learned = [cell.model for cell in model.function_.functions if hasattr(cell, "model")]
    # Computers sleep longer than they are told, at the cost of the last and smallest cells.
    assert 2 < model.n_cells_ <= 2 * len(learned)
    assert sum(cell.given_ for cell in learned) <= 0.5


def test_a_cell_keeps_time_for_the_function_of_what_it_has_selected(monkeypatch):
    X, y = table(300)
    ends, original = [], pairs.PairChooser.of_cell

    def selected(self, rows, matrices, rng, deadline):
        ends.append(deadline - time.monotonic())
        return original(self, rows, matrices, rng, deadline)

    monkeypatch.setattr(pairs.PairChooser, "of_cell", selected)
    VoronoiSVR(max_cell_size=400, max_time=100.0, random_state=0).fit(X, y)
    assert 0.0 < ends[0] < 80.0


@pytest.mark.parametrize("n_learned", [0, 2])
def test_an_interrupt_keeps_the_cells_learned(n_learned, monkeypatch):
    X, y = table(400)
    learned, original = [], training.learn_cell

    def interrupted(*task):
        if len(learned) == n_learned:
            raise KeyboardInterrupt
        learned.append(task[1])
        return original(*task)

    monkeypatch.setattr(training, "learn_cell", interrupted)
    with pytest.warns(ConvexKernelsWarning) as said:
        model = VoronoiRidge(max_cell_size=50).fit(X, y)
    assert ["INTERRUPTED" in str(warning.message) for warning in said] == [True]
    assert sum(cell.function.support.size > 0 for cell in model.function_.functions) == n_learned


@pytest.mark.parametrize("options", [{}, {"selection": CellSelection(n_lams=3, n_widths=3, shared=True)}])
def test_what_cells_have_selected_and_learned_is_kept_in_the_checkpoint(options, monkeypatch, tmp_path):
    X, y = table(300)
    model = VoronoiRidge(max_cell_size=80, random_state=0, **(SMALL | options))
    plain = clone(model).fit(X, y)
    model.set_params(checkpoint=tmp_path / "cells.npz")
    whole, begun = training.learn_cell, []

    def interrupted(*task):
        begun.append(task)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return whole(*task)

    with monkeypatch.context() as patched:
        patched.setattr(training, "learn_cell", interrupted)
        with pytest.warns(ConvexKernelsWarning, match="INTERRUPTED"):
            clone(model).fit(X, y)
    searched, trained = counted(monkeypatch, pairs, "GridSearch"), counted(monkeypatch, kernel_learner, "fit")
    again = clone(model).fit(X, y)
    assert len(searched) == (0 if options else plain.n_cells_ - 2)
    assert len(trained) == plain.n_cells_ - 2
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))
    searched.clear()
    trained.clear()
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), plain.predict(X))
    assert not searched
    assert not trained


def counted(monkeypatch, module, name):
    """The calls of what a cell learns by, from now on."""
    calls, original = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *asked, **options: calls.append(1) or original(*asked, **options))
    return calls


# Estimators, the columns of their targets, and what the targets are.
RESUMED = {
    "ridge": (VoronoiRidge(**SMALL), 1, None),
    "ridge, outputs": (VoronoiRidge(**SMALL), 2, None),
    "ridge, D2": (VoronoiRidge(selection=choice("global-split")), 1, None),
    "svr": (VoronoiSVR(selection=choice("split")), 1, None),
    "svr, outputs": (VoronoiSVR(selection=choice("split")), 2, None),
    "quantile": (VoronoiQuantile(quantile=0.7, selection=choice("split")), 1, None),
    "svc": (VoronoiSVC(loss="hinge", selection=choice("split")), 1, 2),
    "svc, classes": (VoronoiSVC(loss="hinge", selection=choice("split")), 1, 3),
    "chunks": (VoronoiRidge(cells=Cells("random"), **SMALL), 1, None),
    "kernel": (VoronoiSVC(kernel=Gaussian(20.0), selection=choice("split")), 1, 2),
}


def resumed(name, path):
    estimator, n_outputs, classes = RESUMED[name]
    X, y = table(300)
    if classes is not None:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    # Without a limit, which would cut searches short on a busy machine.
    options = {"max_cell_size": 80, "random_state": 0, "max_time": None}
    model = clone(estimator).set_params(**options, checkpoint=path / "cells.npz")
    return model, X, y if n_outputs == 1 else np.column_stack([y, np.cos(3.0 * X[:, 0])])


@pytest.mark.parametrize("name", RESUMED)
def test_cells_that_were_learned_are_not_trained_again(name, monkeypatch, tmp_path):
    model, X, y = resumed(name, tmp_path)
    plain, first = clone(model).set_params(checkpoint=None).fit(X, y), clone(model).fit(X, y)
    trained = counted(monkeypatch, kernel_learner, "fit")
    again = clone(model).fit(X, y)
    assert not trained
    for one in (first, again):
        np.testing.assert_array_equal(one.predict(X), plain.predict(X))
        assert one.solution_.status is Status.OPTIMAL
    certificate, verified = again.solution_.certificate, again.solution_.verify()
    assert certificate == first.solution_.certificate
    assert (verified.upper, verified.lower) == pytest.approx((certificate.upper, certificate.lower), rel=1e-9)
    assert certificate.holds(model.tol)
    assert verified.holds(model.tol)
    assert str(again.selection_) == str(plain.selection_)


def test_cells_of_several_processes_are_kept(monkeypatch, tmp_path):
    model, X, y = resumed("svc, classes", tmp_path)
    first, again = (clone(model).set_params(n_jobs=2).fit(X, y) for _ in range(2))
    trained = counted(monkeypatch, kernel_learner, "fit")
    here = clone(model).fit(X, y)
    assert not trained
    for resumed_fit in (again, here):
        np.testing.assert_array_equal(resumed_fit.predict(X), first.predict(X))
        np.testing.assert_array_equal(resumed_fit.solution_.theta, first.solution_.theta)


def changed(path, change):
    """Change the numbers of a checkpoint, by their last names."""
    with np.load(path) as file:
        numbers = dict(file)
    for key in list(numbers):
        name = key.rpartition(".")[2]
        if name in ("pairs", "risks", "lams", "widths", "alpha"):
            value = change(name, numbers.pop(key))
            numbers |= {} if value is None else {key: value}
    np.savez(path, **numbers)


@pytest.mark.parametrize(
    "change",
    [
        lambda name, value: 0.5 * value if name == "alpha" else value,
        lambda name, value: np.full_like(value, np.inf) if name == "alpha" else value,
        lambda name, value: None if name == "alpha" else value,
        lambda name, value: value[:, :-1] if name == "alpha" else value,
        lambda name, value: value[:, 0] if name == "risks" else value,
        lambda name, value: value[:-1],
        lambda name, value: value.astype(str),
        lambda name, value: value[..., None],
    ],
)
@pytest.mark.parametrize("name", ["ridge", "svc"])
def test_a_checkpoint_of_cells_is_never_believed(name, change, monkeypatch, tmp_path):
    model, X, y = resumed(name, tmp_path)
    first = clone(model).fit(X, y)
    changed(tmp_path / "cells.npz", change)
    trained = counted(monkeypatch, kernel_learner, "fit")
    again = clone(model).fit(X, y)
    assert len(trained) == sum(cell.function.support.size > 0 for cell in first.function_.functions)
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    assert again.solution_.certificate == first.solution_.certificate


def test_dual_variables_beside_their_box_prove_nothing(monkeypatch, tmp_path):
    model, X, y = resumed("svc", tmp_path)
    clone(model).fit(X, y)
    changed(tmp_path / "cells.npz", lambda name, value: 1.0001 * value if name == "alpha" else value)
    for cell in clone(model).fit(X, y).function_.functions:
        assert (cell.alpha <= cell.loss.C * cell.weights).all()


def test_cells_that_the_time_has_cut_are_not_kept(monkeypatch, tmp_path):
    X, y = table(300)
    model = VoronoiRidge(max_cell_size=80, random_state=0, checkpoint=tmp_path / "cells.npz")
    model.set_params(selection=CellSelection(n_lams=3, n_widths=3, widths="isotropic"))
    fit = kernel_learner.fit

    def slow(*asked, deadline, **options):
        if np.isfinite(deadline):
            time.sleep(max(0.0, deadline - time.monotonic()))
        return fit(*asked, deadline=deadline, **options)

    monkeypatch.setattr(kernel_learner, "fit", slow)
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT"):
        clone(model).set_params(max_time=0.3).fit(X, y)
    trained = counted(monkeypatch, kernel_learner, "fit")
    again = clone(model).set_params(max_time=None).fit(X, y)
    assert len(trained) == again.n_cells_


def test_an_interrupt_while_the_metric_is_learned_leaves_constants(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Stochastic, "step", interrupted)
    X, y = table(400)
    with pytest.warns(ConvexKernelsWarning) as said:
        model = VoronoiRidge(max_cell_size=50).fit(X, y)
    assert ["INTERRUPTED" in str(warning.message) for warning in said] == [True]
    assert model.solution_.n_iter == 0
    assert np.isfinite(model.predict(X)).all()


def test_features_that_say_nothing_are_damped():
    X, y = table(600)
    rng = np.random.default_rng(1)
    noise, new_noise = rng.uniform(-1, 1, (600, 6)), rng.uniform(-1, 1, (300, 6))
    T, t = table(300, seed=5)
    with_noise, test = np.hstack([X, noise, np.ones((600, 1))]), np.hstack([T, new_noise, np.ones((300, 1))])
    learned = VoronoiRidge(max_cell_size=150, random_state=0).fit(with_noise, y)
    alike = VoronoiRidge(max_cell_size=150, selection=CellSelection(widths="isotropic"), random_state=0)
    assert learned.feature_factors_.shape == (9,)
    assert learned.feature_factors_[:2].min() > 3.0 * learned.feature_factors_[2:8].max()
    assert learned.feature_factors_[8] == 0.0
    assert 1.0 - learned.score(test, t) < 0.3 * (1.0 - alike.fit(with_noise, y).score(test, t))
    assert alike.feature_factors_.tolist() == [1.0] * 8 + [0.0]


def test_progress_counts_cells(capsys):
    X, y = table(100)
    VoronoiRidge(max_cell_size=30, verbose=True, **SMALL).fit(X, y)
    shown = capsys.readouterr().err
    assert "OverlappingCover(" in shown
    assert "cells learned in" in shown


def test_countdown_says_how_long_the_rest_takes():
    lines = []

    class Listener(Silent):
        def note(self, message):
            lines.append(message)

    clock = Clock(None, Listener())
    clock.began -= 20.0
    training.CellProgress(clock, np.array([10, 10, 20])).learned(2)
    assert "1 of 3 cells" in lines[0]
    assert "about 10 s left" in lines[0]  # 400 of 600 units took 20 s


def test_budgets_choose_the_partition():
    X, y = table(600)
    free = VoronoiRidge(cells=Cells(time_budget=1e6), **SMALL).fit(X, y)
    assert free.n_cells_ == 1
    tight = VoronoiRidge(cells=Cells(memory_budget=64.0 * 200**2), **SMALL).fit(X, y)
    assert tight.function_.sizes.max() <= 200
    with pytest.raises(InvalidInputError, match="raise the budget"):
        VoronoiRidge(cells=Cells(time_budget=1e-9), **SMALL).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": Cells(radius=0.0)}, "radius must be a finite number > 0, got 0"),
        ({"cells": Cells(radius=-1.0)}, "radius must be a finite number > 0, got -1"),
        ({"max_cell_size": 1}, "max_cell_size must be a whole number >= 2, got 1"),
        ({"cells": Cells(radius=1.0), "max_cell_size": 10}, "give radius, or max_cell_size, or budgets"),
        ({"max_cell_size": 10, "cells": Cells(time_budget=1.0)}, "give radius, or max_cell_size, or budgets"),
        ({"cells": Cells(time_budget=0.0)}, "time_budget must be a finite number > 0, got 0"),
        ({"cells": Cells(memory_budget=-1.0)}, "memory_budget must be a finite number > 0"),
        ({"cells": Cells("grid")}, "the kind of cells must be one of"),
        ({"cells": Cells("tree", radius=1.0)}, "radius=1.0 goes with cells 'voronoi'"),
        ({"cells": Cells(overlap=-1.0)}, "overlap must be a finite number >= 0"),
        ({"cells": Cells(subset=1)}, "subset must be a whole number >= 2"),
        ({"cells": "tree"}, r"cells must be None or a Cells\(...\), got 'tree'"),
        ({"selection": 5}, r"selection must be None or a CellSelection\(...\), got 5"),
        ({"selection": choice(1)}, "validation must be a whole number >= 2, got 1"),
        (
            {"selection": choice("loo")},
            "validation must be a number of folds, 'split', 'global-split' or 'leave-one-out', got 'loo'",
        ),
        ({"selection": choice("globalsplit")}, "'global-split' or 'leave-one-out', got 'globalsplit'"),
        ({"selection": CellSelection(n_lams=0)}, "n_lams must be a whole number >= 1"),
        ({"selection": CellSelection(n_widths=0)}, "n_widths must be a whole number >= 1"),
        ({"selection": CellSelection(widths="round")}, "widths must be one of"),
        ({"selection": CellSelection(rank=0)}, "rank must be a whole number >= 1"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"max_time": 0.0}, "max_time must be a finite number > 0"),
        ({"estimator": "ridge"}, "estimator must be an estimator object or None, got 'ridge'"),
    ],
)
def test_bad_parameters_are_refused_by_name(options, message):
    X, y = table(30)
    with pytest.raises(InvalidInputError, match=message):
        VoronoiRidge(**options).fit(X, y)


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_epsilon_suits_the_error_of_rows_left_out(noise):
    """A quarter of its root mean square, of one column, too; given values, and what a given kernel errs by, are not."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    y = np.sin(3.0 * X[:, 0]) + noise * rng.standard_normal(300)
    options = {"selection": choice(2), "random_state": 0}
    model = VoronoiSVR(**options).fit(X, y)
    half = 0.5 * np.ptp(y)
    left = y - VoronoiRidge(random_state=0).fit(X, y).loo_predictions_
    assert model.epsilon_ == pytest.approx(0.25 * np.sqrt(np.mean(left**2)), rel=0.25)
    cells = model.function_.functions
    [learned] = {cell.loss.epsilon for cell in cells}
    assert learned == pytest.approx(model.epsilon_ / half)
    given = VoronoiSVR(epsilon=0.2, **options).fit(X, y)
    assert given.epsilon_ == pytest.approx(0.2)
    assert given.function_.functions[0].loss.epsilon == pytest.approx(0.2 / half)
    column = VoronoiSVR(epsilon=0.2, **options).fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict(X)[:, 0], given.predict(X))
    with pytest.raises(ValueError, match="max_cell_size"):
        given.set_params(max_cell_size=-3).fit(X, y)
    assert given.epsilon_ == pytest.approx(0.2), "a refused fit changes nothing"
    given.set_params(max_cell_size=None)
    assert not hasattr(VoronoiSVR(estimator=Ridge(), **options).fit(X, y), "epsilon_")
    left = y - VoronoiRidge(random_state=0).fit(X[:, :1], y).loo_predictions_
    of_one = VoronoiSVR(**options).fit(X[:, :1], y).epsilon_
    assert of_one == pytest.approx(0.25 * np.sqrt(np.mean(left**2)), rel=0.25)
    assert VoronoiSVR(kernel=Gaussian(1.0), **options).fit(X, y).epsilon_ == pytest.approx(0.05 * half)
    few = VoronoiSVR(random_state=0).fit(X[:9], y[:9])
    assert few.epsilon_ == pytest.approx(0.025 * np.ptp(y[:9]))
    weights = 10.0 ** np.linspace(-60.0, 0.0, len(X))  # as many rows as weigh anything
    assert VoronoiSVR(**options).fit(X[:, :1], y, sample_weight=weights).epsilon_ == pytest.approx(0.05 * half)
    alike = np.where(np.arange(len(X)) % 2, 1.0, 1e-60)
    half_of_them = VoronoiSVR(**options).fit(X[:, :1], y, sample_weight=alike)
    assert half_of_them.epsilon_ == pytest.approx(of_one, rel=0.5)
    first = model.epsilon_
    assert model.fit(X, 5.0 * y - 3.0).epsilon_ == pytest.approx(5.0 * first, rel=1e-3)
    several = given.fit(X, np.column_stack([y, 7.0 * y]))
    np.testing.assert_allclose(several.epsilon_, [0.2 * half, 1.4 * half])
    assert f"epsilon={0.2 * half:.3g}, {1.4 * half:.3g}" in several.describe()


def test_bad_losses_and_targets_are_refused():
    X, y = table(30)
    with pytest.raises(InvalidInputError, match="loss must be 'least_squares' or 'hinge', got 'log'"):
        VoronoiSVC(loss="log").fit(X, y > 0)
    with pytest.raises(InvalidInputError, match="closed form for least squares only"):
        VoronoiSVC(loss="hinge", selection=choice("leave-one-out")).fit(X, y > 0)
    with pytest.raises(InvalidInputError, match="epsilon must be a finite number >= 0"):
        VoronoiSVR(epsilon=-1.0).fit(X, y)
    with pytest.raises(InvalidInputError, match="quantile must"):
        VoronoiQuantile(quantile=1.0).fit(X, y)
    with pytest.raises(InvalidInputError, match="one class only"):
        VoronoiSVC().fit(X, np.ones(30))
    with pytest.raises(InvalidInputError, match="y has 29 entries"):
        VoronoiRidge().fit(X, y[:-1])
    with pytest.raises(InvalidInputError, match="missing or infinite"):
        VoronoiRidge().fit(np.where(X > 0.9, np.inf, X), y)
    with pytest.raises(TypeError, match="sample_weight"):  # of a learner that takes none
        VoronoiSVC(estimator=KNeighborsClassifier()).fit(X, y > 0, sample_weight=np.arange(1, 31))


def test_functions_of_the_first_half_of_the_table_are_kept():
    X, y = table(81)
    selection = CellSelection("global-split", n_lams=3, n_widths=3, widths="isotropic")
    model = VoronoiRidge(cells=Cells("voronoi", radius=0.7), selection=selection, random_state=0).fit(X, y)
    sizes = [len(function.X) for function in model.function_.functions]
    assert sum(sizes) == 41  # 81 // 2 + 1, in all cells together
    assert not np.array_equal(sizes, model.function_.sizes // 2 + 1)
    assert model.solution_.verify().relative_gap < 1e-6


def test_a_cell_without_rows_to_learn_from_is_zero():
    X = np.array([[0.0], [1.0], [5.0]])
    rows = CellRows(X, np.array([[1.0, 2.0, 3.0]]), np.ones(3), held_out=np.ones(3, dtype=bool))
    learner = kernel_learner.KernelLearner(LeastSquares(1.0, intercept=False), CellSelection("global-split"))
    cell = learner.learn(rows, np.random.default_rng(0))
    assert (cell.values(X) == 0.0).all()
    assert cell.verify().relative_gap == 0.0


def test_candidates_of_theorem_7_and_of_a_schedule():
    X, y = table(60)
    lams, widths = bounds.cell_nets(60, 2, 0.5)
    cells = Cells("voronoi", radius=0.5)
    nets = CellSelection("global-split", candidates=(lams, widths))
    model = VoronoiRidge(cells=cells, selection=nets, random_state=0).fit(X, y)
    chosen = model.solution_.theta[np.isfinite(model.solution_.theta[:, 0])]
    assert np.isin(np.round(chosen[:, 0], 12), np.round(31 * lams, 12)).all()  # beside the mean over 60 // 2 + 1 rows
    assert np.isin(chosen[:, 1], widths).all()
    schedule = bounds.cell_schedule(60, 1.0, 2, beta=3.0)
    one = CellSelection(candidates=([schedule.lam], [schedule.width]))
    model = VoronoiRidge(cells=Cells("voronoi", radius=schedule.radius), selection=one, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.solution_.theta[0], [60 * schedule.lam, schedule.width])


@pytest.mark.parametrize(
    "candidates",
    [([1.0],), ([1.0], [0.0]), ([], [1.0]), (0.1, 1.0), 0.1, ([1.0], [np.inf]), ([[1.0], [1.0, 2.0]], [1.0]), "lams"],
)
def test_candidates_are_refused_by_name(candidates):
    with pytest.raises(InvalidInputError, match=r"candidates must be None or \(lams, widths\), two lists.*, got"):
        VoronoiRidge(selection=CellSelection(candidates=candidates)).fit(*table(20))


def uneven(m, rng):
    """Noise that grows with the first feature, from .2 to 1.2."""
    X = rng.uniform(-1.0, 1.0, (m, 2))
    return X, X[:, 0] + (0.7 + 0.5 * X[:, 0]) * rng.standard_normal(m)


def test_intervals_between_quantiles_cover_new_rows_and_follow_the_noise(rng):
    """The coverage that is estimated from 300 rows, and 2,000 rows that are counted, at a level of 1e-4 on a side."""
    X, y = uneven(300, rng)
    T, t = uneven(2000, rng)
    model = VoronoiQuantile(selection=choice(3), max_cell_size=150, random_state=0).fit(X, y)
    assert model.n_cells_ > 1
    predicted = model.predict(T)
    for coverage in (0.5, 0.8, 0.9):
        low, high = model.predict_interval(T, coverage).T
        held = float(np.mean((low <= t) & (t <= high)))
        assert abs(held - coverage) < 3.9 * np.sqrt(coverage * (1.0 - coverage) * (1.0 / 300 + 1.0 / 2000))
        wide, narrow = T[:, 0] > 0.5, T[:, 0] < -0.5
        assert (high - low)[wide].mean() > 1.2 * (high - low)[narrow].mean()
    np.testing.assert_array_equal(model.predict(T), predicted)  # the function that is certified stays what it is
    for function in model.solution_.derived["between quantiles, 0.9"][0].functions:
        assert function.certificate(None, None, None).holds(model.tol)
        assert {cell.lam for cell in function.functions} == {cell.lam for cell in model.function_.functions}
    levels = [f.functions[0].loss.quantile for f in model.solution_.derived["between quantiles, 0.9"][0].functions]
    assert levels == pytest.approx([0.05, 0.95])


@pytest.mark.parametrize(("seed", "exact"), [(20240607, 0.9), (0, 0.7), (1, 0.7)])
def test_intervals_of_a_quantile_that_is_clipped_to_the_least_target_hold_it(seed, exact):
    """Most targets are the least one, which neither rounding in its encoding nor what training leaves must move."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (200, 2))
    y = (np.maximum(rng.standard_normal(200) - 1.0, 0.0) - 0.123456789) / 3.3
    model = VoronoiQuantile(quantile=0.05, selection=choice(3), random_state=0).fit(X, y)
    assert (model.predict(X) == y.min()).mean() > exact
    low, high = model.predict_interval(X, coverage=0.9).T
    assert np.mean((low <= y) & (y <= high)) >= 0.9


def test_intervals_of_cells_that_were_not_begun_and_of_estimators_are_finite(rng):
    X, y = uneven(200, rng)
    wrapped = VoronoiQuantile(estimator=KernelRidge(kernel="rbf"), random_state=0).fit(X, y)
    assert np.ptp(np.diff(wrapped.predict_interval(X))) < 1e-9  # of residuals
    with pytest.warns(ConvexKernelsWarning, match="TIME_LIMIT"):
        late = VoronoiQuantile(max_cell_size=50, max_time=1e-9, random_state=0).fit(X, y)
    assert np.isfinite(late.predict_interval(X)).all()


# ---- columns of categories, and what rows weigh


def with_ids(m, seed, levels=60):
    """A table with a column of categories that says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    names = [f"id{k}" for k in range(levels)]
    ids = pd.Categorical.from_codes(rng.integers(levels, size=m), names)
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=m)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "id": ids}), y


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (VoronoiRidge(random_state=0), 0.02),
        (ConcatenatedKernelRegressor(random_state=0), 0.02),
        (SpectralKernelRegressor(random_state=0), 0.03),
        (HierarchicalGaussianRegressor(random_state=0), 0.02),
        (MultipleKernelRidge(), 0.02),
        (TessellatedRidge(), 0.06),
    ],
)
def test_many_categories_that_say_nothing_cost_little(estimator, loss):
    """A weight for every indicator was more than the rows could tell, and rare ones were far from all others."""
    (table, y), (other, truth) = with_ids(150, 0), with_ids(1000, 1)
    model = clone(estimator).fit(table, y)
    without = clone(estimator).fit(table.drop(columns="id"), y)
    assert model.score(other, truth) > without.score(other.drop(columns="id"), truth) - loss
    ids = [str(label).startswith("id=") for label in model.feature_labels_]
    assert model.feature_relevance_[ids].sum() < 0.2


def test_indicators_of_one_column_share_a_width():
    table, y = with_ids(400, 0, levels=6)
    model = VoronoiRidge(random_state=0).fit(table, y)
    ids = np.array([str(label).startswith("id=") for label in model.feature_labels_])
    assert np.ptp(model.feature_factors_[ids]) == 0.0
    assert np.unique(model.feature_factors_).size == 4


@pytest.mark.parametrize(("estimator", "given"), [(VoronoiRidge, ()), (VoronoiSVR, ("epsilon",))])
def test_what_was_chosen_can_be_given_back(rng, estimator, given):
    X = rng.normal(size=(200, 4))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=200)
    first = estimator(random_state=0).fit(X, y)
    assert np.ptp(first.feature_factors_) > 0.1
    chosen, known = first.selection_.chosen, {name: getattr(first, f"{name}_") for name in given}
    pair = [chosen["lam"] / 200], [chosen["width"]]
    selection = CellSelection(candidates=pair, factors=first.feature_factors_)
    again = estimator(selection=selection, random_state=0, **known).fit(X, y)
    np.testing.assert_allclose(again.predict(X), first.predict(X), atol=1e-8)
    np.testing.assert_array_equal(again.feature_factors_, first.feature_factors_)
    assert selection == CellSelection(candidates=pair, factors=first.feature_factors_.copy())


@pytest.mark.parametrize(
    ("factors", "options", "message"),
    [
        ([1.0, 2.0], {}, "factors must be 3 finite numbers >= 0, one per feature"),
        ([1.0, 2.0, 0.0], {}, "that of feature 2 is 0"),
        ([1.0, 2.0, 3.0], {"kernel": Gaussian()}, "pass kernel=None"),
        ([1.0, 2.0, 3.0], {"cells": Cells(scale=False)}, r"Cells\(scale=True\)"),
    ],
)
def test_factors_that_do_not_suit_are_refused(rng, factors, options, message):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    with pytest.raises(InvalidInputError, match=message):
        VoronoiRidge(selection=CellSelection(factors=factors), **options).fit(X, y)


def test_the_rank_of_cells_that_overlap_is_the_mean_of_theirs(rng):
    X, y = uneven(200, rng)
    model = VoronoiRidge(max_cell_size=80, random_state=0).fit(X, y)
    cells = model.function_.functions
    assert len(cells) > 1
    assert not hasattr(model, "kernel_")
    ranks = [np.trace(K) ** 2 / np.square(K).sum() for K in (cell.kernel(cell.X) for cell in cells)]
    assert model.effective_rank_ == pytest.approx(np.average(ranks, weights=[len(cell.X) for cell in cells]))
    assert "dimensions" in model.describe()
    flat = VoronoiRidge(max_cell_size=80, random_state=0).fit(X, np.where(X[:, 0] > np.median(X[:, 0]), y, 0.0))
    widths = [cell.width for cell in flat.function_.functions]
    assert np.isnan(widths).any()  # constants have no kernel
    assert np.isfinite(widths).any()
    assert flat.effective_rank_ > 1.0
    assert VoronoiRidge(max_cell_size=80, random_state=0).fit(X, np.ones(200)).effective_rank_ == 0.0


@pytest.mark.parametrize("weight", [1e-5, 1e5])
def test_weights_that_are_all_the_same_leave_widths_as_they_are(weight):
    table, y = with_ids(150, 2)
    X = table[["a", "b", "c"]]
    plain, weighed = (VoronoiRidge(random_state=0).fit(X, y, w) for w in (None, np.full(150, weight)))
    np.testing.assert_allclose(weighed.feature_factors_, plain.feature_factors_, rtol=1e-6)
    assert abs(weighed.score(X, y) - plain.score(X, y)) < 0.02


@pytest.mark.parametrize("size", [1.0, 300.0, 3000.0])
def test_certificates_of_cells_hold_in_fifty_digits(rng, size):
    X = size * rng.uniform(0.0, 1.0, (40, 2))
    y = np.sin(3.0 * X[:, 0] / size) + 0.1 * rng.normal(size=40)
    model = VoronoiRidge(max_cell_size=25, cells=Cells("voronoi"), kernel=Polynomial(degree=2), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = model.fit(X, y).solution_
    assert (solution.status is Status.OPTIMAL) == (size == 1.0)
    assert solution.status in (Status.OPTIMAL, Status.ROUNDED)
    for cell in solution.problem.functions:
        with mpmath.workdps(50):
            points = [[mpmath.mpf(x) for x in row] for row in cell.X]
            K = mpmath.matrix([[_polynomial(cell.kernel, a, b) for b in points] for a in points])
            Y = mpmath.matrix([mpmath.mpf(v) for v in cell.Y[0]])
            solved = mpmath.lu_solve(K + cell.lam * mpmath.eye(len(points)), Y)
            exact = float(cell.lam * (Y.T * solved)[0])
        for found in (cell.certificate, cell.verify()):
            assert found.lower <= exact <= found.upper


@pytest.mark.parametrize("size", [1e6, 1e10])
@pytest.mark.parametrize("kind", [VoronoiQuantile, VoronoiSVR])
def test_an_outlier_does_not_say_that_nothing_is_left_to_learn(kind, size):
    """It is among the rows that the race of pairs learns from, so that errors at the others are small beside it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 2))
    y = np.sin(8.0 * X[:, 0]) + np.cos(6.0 * X[:, 1]) + 0.1 * rng.normal(size=400)
    row = rng.integers(400)
    others = np.arange(400) != row
    y[row] = size
    assert kind(random_state=0).fit(X, y).score(X[others], y[others]) > 0.95


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", [VoronoiQuantile, VoronoiSVR])
def test_a_noiseless_table_is_learned_with_coefficients_that_rounding_is_not_seen_in(kind, shared):
    x = np.arange(900.0)
    model = kind(selection=CellSelection(shared=shared), random_state=0).fit(x[:, None], x)
    assert model.solution_.status is Status.OPTIMAL
    assert model.solution_.certificate.charged <= 1e-4 * model.solution_.certificate.upper
    assert model.score(x[:, None], x) > 1.0 - 1e-4


def _polynomial(kernel, a, b):
    """The values of a polynomial of degree 2 of points over a width, in the arithmetic of the points."""
    scale = mpmath.mpf(1.0 if isinstance(kernel, Polynomial) else float(kernel.scale[0]))
    return (sum(x * z for x, z in zip(a, b, strict=True)) / scale**2 + 1) ** 2
