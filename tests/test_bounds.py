"""Bounds go with fitted estimators, and refuse those that their theorems are not about; claims settle what they say."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from convexkernels import (
    AllRows,
    Cells,
    CellSelection,
    EpsilonInsensitive,
    Gaussian,
    HierarchicalGaussianClassifier,
    HierarchicalGaussianRegressor,
    Hinge,
    InvalidInputError,
    LeastSquares,
    Logistic,
    Matern,
    Pinball,
    Polynomial,
    SpectralKernelClassifier,
    SpectralKernelRegressor,
    Training,
    TreeSearch,
    TreeSelection,
    VoronoiRidge,
    bounds,
)
from convexkernels.cells.distributed.function import DistributedFunction

TABLE = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))


def test_features_with_phases_have_no_rate():
    y = TABLE[:, 0] > 0.0
    settings = {"n_components": 20, "sigma": 1.0, "training": Training(max_epochs=1), "random_state": 0}
    with pytest.raises(InvalidInputError, match="rademacher_bound"):
        bounds.rademacher_rate(SpectralKernelClassifier(**settings).fit(TABLE, y), 60)
    model = SpectralKernelClassifier(feature_map="psi", **settings).fit(TABLE, y)
    assert 0.0 < bounds.rademacher_bound(model, TABLE) <= bounds.rademacher_rate(model, 60)


@pytest.mark.filterwarnings("ignore")
def test_cells_without_a_gaussian_function_have_no_bound():
    model = VoronoiRidge(cells=Cells("voronoi", radius=1.0), selection=CellSelection(n_lams=2, widths="isotropic"))
    constant = np.where(TABLE[:, 0] > 0.9, 1.0, 0.0)
    with pytest.raises(InvalidInputError, match="least squares function with a Gaussian kernel"):
        bounds.CellNumbers.of(model.fit(TABLE, constant))


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(4.0), Matern(order=2), Polynomial(2)])
def test_a_kernel_that_is_given_has_no_widths(kernel):
    """What cells choose are multiples, 1 here for all Gaussians."""
    model = VoronoiRidge(kernel=kernel, cells=Cells("voronoi", radius=0.9), random_state=0).fit(TABLE, TABLE[:, 0])
    with pytest.raises(InvalidInputError, match=r"kernel=.*multiples; fit VoronoiRidge\(kernel=None\)"):
        bounds.CellNumbers.of(model)
    own = VoronoiRidge(cells=Cells("voronoi", radius=0.9), random_state=0).fit(TABLE, TABLE[:, 0])
    given = [f.kernel.gamma for f in own.function_.functions]
    norm = np.linalg.norm(own.scaling_.apply(TABLE), axis=1).max()
    np.testing.assert_allclose((norm * bounds.CellNumbers.of(own).widths) ** -2, given)


def test_two_outputs_have_no_bound_of_cells():
    """Theorem 4 is about one clipped function; a table with one column of targets has one."""
    model = VoronoiRidge(cells=Cells("voronoi", radius=0.9), random_state=0)
    with pytest.raises(InvalidInputError, match="one output, got 2; fit one VoronoiRidge for each"):
        bounds.CellNumbers.of(model.fit(TABLE, np.sin(3.0 * TABLE)))
    assert bounds.CellNumbers.of(model.fit(TABLE, TABLE[:, :1])).n == 60


def test_functions_on_a_cluster_are_fetched_first():
    model = VoronoiRidge(cells=Cells("voronoi", radius=0.9), random_state=0).fit(TABLE, TABLE[:, 0])
    model.function_ = DistributedFunction(model.cover_, [], model.function_.sizes, 1)
    with pytest.raises(InvalidInputError, match=r"first set model.function_ = model.function_.gather\(\)"):
        bounds.CellNumbers.of(model)


@pytest.mark.parametrize("kind", ["overlapping", "tree", "random"])
def test_cells_that_are_not_those_of_nearest_centers_have_no_bound(kind):
    selection = CellSelection(n_lams=2, n_widths=2, widths="isotropic")
    model = VoronoiRidge(cells=Cells(kind), max_cell_size=30, selection=selection, random_state=0)
    with pytest.raises(InvalidInputError, match="nearest centers that do not overlap"):
        bounds.CellNumbers.of(model.fit(TABLE, TABLE[:, 0]))


def test_the_complexity_of_a_regressor_is_in_units_of_its_targets():
    """Of one output and of two, whose units differ: that of W in these units."""
    settings = {"n_components": 20, "sigma": 1.0, "training": Training(max_epochs=1), "random_state": 0}
    model = SpectralKernelRegressor(feature_map="psi", **settings)
    one = bounds.rademacher_bound(model.fit(TABLE, TABLE[:, 0]), TABLE)
    rate = bounds.rademacher_rate(model, 60)
    assert bounds.rademacher_bound(model.fit(TABLE, 1000.0 * TABLE[:, 0]), TABLE) == pytest.approx(1000.0 * one)
    assert bounds.rademacher_rate(model, 60) == pytest.approx(1000.0 * rate)
    y = TABLE * [1.0, 50.0]
    model.fit(TABLE, y)
    features, W = model.kernel_.transform(TABLE), np.asarray(model.solution_.theta.W) * y.std(axis=0)
    np.testing.assert_allclose(np.diff(features @ W, axis=0), np.diff(model.predict(TABLE), axis=0), atol=1e-8)
    exact = np.linalg.norm(W, "nuc") / 60.0 * np.sqrt(2.0 * np.sum(features**2))
    assert bounds.rademacher_bound(model, TABLE) == pytest.approx(exact)


@pytest.mark.parametrize("bound", [bounds.rademacher_bound, bounds.rademacher_rate])
def test_only_spectral_features_have_a_complexity(bound):
    with pytest.raises(InvalidInputError, match="spectral features, got VoronoiRidge"):
        bound(VoronoiRidge().fit(TABLE, TABLE[:, 0]), TABLE if bound is bounds.rademacher_bound else 60)


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), LeastSquares()])
def test_the_least_risk_of_noise_is_that_of_the_best_constants(loss):
    """One point, five labels: A is 0 where the best constant costs no norm that counts."""
    X, y = np.zeros((5, 1)), np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    found = bounds.approximation_error(Gaussian(), X, y, 1e-9, loss=loss)
    assert -1e-9 <= found.lower <= found.upper <= 1e-5


def test_masses_may_be_as_large_as_floats_and_no_error_is_negative():
    """Only their ratios count; where the risk is R* and the norm costs nothing, rounding has a sign."""
    y = np.sin(3.0 * TABLE[:, 0])
    equal, large = (
        bounds.approximation_error(Gaussian(), TABLE, y, 0.1, loss=LeastSquares(), masses=masses)
        for masses in (None, np.full(60, 1e308))
    )
    assert large.upper == pytest.approx(equal.upper)
    for factor in (1.0, 1.7, 3.1):
        found = bounds.approximation_error(
            Gaussian(), np.zeros((5, 1)), factor * TABLE[:5, 0], 1e-50, loss=LeastSquares()
        )
        assert 0.0 <= found.lower <= found.upper < 1e-12


def test_the_logistic_risk_of_one_point_is_that_of_scikit_learn():
    X, y = np.ones((5, 1)), np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    lam = 0.05
    model = LogisticRegression(C=1.0 / (2.0 * lam * 5.0), fit_intercept=False, tol=1e-10).fit(X, y)
    f = model.coef_[0, 0]
    risk = np.mean(np.log1p(np.exp(-y * f))) + lam * f**2
    least = -(0.6 * np.log(0.6) + 0.4 * np.log(0.4))
    found = bounds.approximation_error(Gaussian(), X, y, lam, loss=Logistic(), tol=1e-9)
    assert found.upper == pytest.approx(risk - least, abs=1e-8)
    assert found.lower <= found.upper + 1e-12


def test_what_a_choice_costs_goes_with_a_fitted_estimator():
    """Without the constant that is not known, more pairs and surer statements cost more, more rows less."""
    selection = CellSelection("global-split", n_lams=3, n_widths=3, widths="isotropic")
    model = VoronoiRidge(cells=Cells("voronoi", radius=0.9), selection=selection, random_state=0)
    cells = bounds.CellNumbers.of(model.fit(TABLE, np.sin(3.0 * TABLE[:, 0])))
    assert cells.n == 31
    settings = {"alpha": 1.0, "beta": 20.0, "p": 0.1, "largest_label": 1.0, "constant": 0.0}
    least = bounds.selected_risk_bound(cells, tau=1.0, n_pairs=9, **settings)
    assert 0.0 < least.value < bounds.selected_risk_bound(cells, tau=1.0, n_pairs=90, **settings).value
    assert least.value < bounds.selected_risk_bound(cells, tau=2.0, n_pairs=9, **settings).value
    fewer = bounds.selected_risk_bound(cells._replace(n=310), tau=1.0, n_pairs=9, **settings)
    assert fewer.value == pytest.approx(least.value * 60 / 618)


# ---- what is read from fitted estimators


def tree(kind=HierarchicalGaussianClassifier, **settings):
    """A model whose search is short; its function is trained to the end."""
    return kind(2, search=TreeSearch(max_iter=2, n_restarts=settings.pop("n_restarts", 1)), random_state=0, **settings)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "largest"),
    [
        (tree(loss="hinge"), 2.0),
        (tree(HierarchicalGaussianRegressor, loss=EpsilonInsensitive(epsilon=0.05, intercept=False)), 1.95),
        (tree(HierarchicalGaussianRegressor, loss=Pinball(quantile=0.9, intercept=False)), 1.8),
    ],
)
def test_the_oracle_inequality_of_a_fitted_estimator_is_that_of_its_kernel(model, largest):
    X = np.vstack([TABLE, TABLE[:5]])  # five rows twice: they count once, with the sum of their weights
    y = X[:, 0] + X[:, 1] ** 2
    model.fit(X, y > 0.3 if largest == 2.0 else y)
    found = bounds.SVMNumbers.of(model)
    problem = model.solution_.problem
    sum_lam = float(np.exp(model.solution_.theta[-1]))
    assert (found.n, found.lam) == (60, pytest.approx(sum_lam / 65.0))
    assert found.largest_loss == pytest.approx(largest, rel=1e-6)
    # The function that was learned minimizes what A is the least value of: no row has two labels, so that R* is 0.
    K, c = model.tree_(problem.X), model.function_.coefficients(60)
    value = (problem.weights @ problem.loss.pointwise(problem.Y, c @ K)[0][0] + sum_lam * (c @ K @ c.T)[0, 0]) / 65.0
    assert found.approximation_error == pytest.approx(value, rel=1e-3)
    bound = bounds.hierarchical_risk_bound(found, tau=3.0, constant=1.0)
    assert bound.value > 9.0 * value
    assert bound.probability == pytest.approx(1.0 - 3.0 * np.exp(-3.0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (VoronoiRidge(), "hierarchical Gaussian kernels, got VoronoiRidge"),
        (tree(loss="hinge", n_restarts=2), "one function of all rows, got dense training and MeanFunction"),
        (
            tree(loss="hinge", n_restarts=2),
            r"fit with search=TreeSearch\(n_restarts=1\) and selection=TreeSelection\(combine='one', training=AllRows",
        ),
        (tree(HierarchicalGaussianRegressor), "Lipschitz continuous and can be clipped"),
        (tree(HierarchicalGaussianRegressor, loss=Pinball()), "without intercept"),
        (tree(HierarchicalGaussianRegressor, loss="pinball", clip=False), "clip=False"),
        (tree(loss="logistic"), "got Logistic"),
    ],
)
def test_other_models_have_no_oracle_inequality(model, words):
    y = np.sin(3.0 * TABLE[:, 0])
    with pytest.raises(InvalidInputError, match=words):
        bounds.SVMNumbers.of(model.fit(TABLE, y > 0.0 if isinstance(model, HierarchicalGaussianClassifier) else y))


@pytest.mark.filterwarnings("ignore")
def test_several_classes_have_no_oracle_inequality():
    y = np.digitize(TABLE[:, 0], [-0.3, 0.3])
    with pytest.raises(InvalidInputError, match="got 3 outputs"):
        bounds.SVMNumbers.of(tree(loss="hinge").fit(TABLE, y))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("loss", "n_classes", "L"), [("hinge", 2, 1.0), ("logistic", 3, np.sqrt(2.0))])
def test_the_excess_risk_of_a_fitted_classifier_is_that_of_its_complexity(loss, n_classes, L):
    y = np.digitize(TABLE[:, 0], np.linspace(-1.0, 1.0, n_classes + 1)[1:-1])
    settings = {"n_components": 20, "sigma": 1.0, "training": Training(max_epochs=1), "random_state": 0}
    model = SpectralKernelClassifier(loss=loss, **settings).fit(TABLE, y)
    found = bounds.ComplexityNumbers.of(model, TABLE)
    assert found == (bounds.rademacher_bound(model, TABLE), pytest.approx(L), 60)
    bound = bounds.excess_risk_bound(found, failure=0.1, constant=0.0)
    assert bound.value == pytest.approx(4.0 * np.sqrt(2.0) * L * found.complexity)
    assert bound.probability == 0.9
    squares = SpectralKernelClassifier(loss="least_squares", **settings).fit(TABLE, y)
    with pytest.raises(InvalidInputError, match="no Lipschitz constant"):
        bounds.ComplexityNumbers.of(squares, TABLE)


def test_the_settings_of_the_refusal_have_an_oracle_inequality():
    model = HierarchicalGaussianClassifier(
        2,
        loss="hinge",
        search=TreeSearch(n_restarts=1, max_iter=2),
        selection=TreeSelection(combine="one", training=AllRows("dense")),
        random_state=0,
    )
    assert bounds.SVMNumbers.of(model.fit(TABLE, TABLE[:, 0] > 0.0)).n == 60


def test_a_cell_of_all_rows_is_in_the_unit_ball():
    """Centers are rows: from one near a corner the others are further than the radius 1 of the ball around 0."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    y, p = np.sin(3.0 * X[:, 0]), {"p": 0.4, "constant": 1.0}
    model = VoronoiRidge(cells=Cells("voronoi"), random_state=0).fit(X, y)
    cells = bounds.CellNumbers.of(model)
    Z = model.scaling_.apply(X)
    norm = float(np.linalg.norm(Z, axis=1).max())
    assert np.linalg.norm(Z - model.cover_.centers[0], axis=1).max() > 1.5 * norm
    assert cells.radius == 1.0
    with pytest.raises(InvalidInputError, match=r"CellSelection\(candidates=\(lams, widths\)\).* at most 1 times"):
        bounds.cells_entropy(cells._replace(widths=2.0 / cells.widths), **p)
    # What the refusal says to do. Candidates are for features that are scaled alike: these rows have another norm.
    alike = VoronoiRidge(cells=Cells("voronoi"), selection=CellSelection(candidates=([1e-3], [1.0]))).fit(X, y)
    norm = float(np.linalg.norm(alike.scaling_.apply(X), axis=1).max())
    selection = CellSelection(candidates=([1e-4, 1e-3], [0.5 * norm, norm]))
    given = VoronoiRidge(cells=Cells("voronoi"), selection=selection, random_state=0).fit(X, y)
    cells = bounds.CellNumbers.of(given)
    assert np.isfinite(bounds.cells_entropy(cells, **p))
    assert np.isfinite(bounds.cells_risk_bound(cells, alpha=1.0, tau=1.0, **p).value)


def test_weights_count_in_lams_and_in_masses():
    """Row j of weight w is in both as w rows are."""
    selection = CellSelection(n_lams=2, n_widths=2, widths="isotropic")
    model = VoronoiRidge(cells=Cells("voronoi", radius=0.9), selection=selection, random_state=0)
    weights = np.where(TABLE[:, 0] > 0.0, 5.0, 1.0)
    cells = bounds.CellNumbers.of(model.fit(TABLE, np.sin(3.0 * TABLE[:, 0]), sample_weight=weights))
    of_rows = model.cover_.cells(model.scaling_.apply(TABLE))
    direct = np.bincount(of_rows, weights) / weights.sum()
    np.testing.assert_allclose(cells.masses, direct)
    assert not np.allclose(cells.masses, np.bincount(of_rows) / 60.0)
    # The same unit as that of lams, whatever the weights are normalized to.
    trained = sum(f.weights.sum() for f in model.function_.functions)
    np.testing.assert_allclose(cells.lams * trained, [f.lam for f in model.function_.functions])
    assert cells.n == 60


def test_the_entropy_of_the_cells_of_a_fitted_estimator_is_that_of_all_of_them():
    """By the formula at the end of the proof of Theorem 4, and refused where widths exceed the cells."""
    selection = CellSelection(n_lams=3, n_widths=3, widths="isotropic")
    model = VoronoiRidge(cells=Cells("voronoi", radius=0.9), selection=selection, random_state=0)
    cells = bounds.CellNumbers.of(model.fit(TABLE, np.sin(3.0 * TABLE[:, 0])))
    cells = cells._replace(widths=np.minimum(cells.widths, 0.9 * cells.radius))
    p, c, m = 0.4, 2.0, len(cells.lams)
    a = c * np.sqrt(cells.masses) * (cells.radius / cells.widths) ** ((2.0 + 2.0 * p) / (2.0 * p))
    total = 3.0 * np.log(4.0) * np.sum(cells.lams**-p * a ** (2.0 * p)) / 7.0
    found = bounds.cells_entropy(cells, p=p, constant=c, i=7)
    assert found == pytest.approx(2.0 * np.sqrt(m) * total ** (0.5 / p))
    with pytest.raises(InvalidInputError, match="largest width is"):
        bounds.cells_entropy(cells._replace(widths=2.0 * cells.widths), p=p, constant=c)
    with pytest.raises(InvalidInputError, match="Theorem 12 says there is"):
        bounds.cells_entropy(cells, p=p, constant=None)


@pytest.mark.parametrize("lam", [1e-1, 1e-10, 1e-14, 1e-16])
def test_bounds_of_a_tiny_lam_hold_in_fifty_digits(rng, lam):
    X, y = rng.uniform(-1.0, 1.0, (10, 1)), rng.normal(size=10)
    found = bounds.approximation_error(Gaussian(0.05), X, y, lam, loss=LeastSquares())
    with mpmath.workdps(50):
        squares = [[(mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for b in X[:, 0]] for a in X[:, 0]]
        A = mpmath.matrix([[mpmath.exp(-mpmath.mpf(0.05) * s) for s in row] for row in squares])
        A += 10 * mpmath.mpf(lam) * mpmath.eye(10)
        Y = mpmath.matrix(list(y))
        exact = float(mpmath.mpf(lam) * (Y.T * mpmath.lu_solve(A, Y))[0])
    assert found.lower <= exact <= found.upper
    assert (found.gap <= 1e-5 * exact) == (lam >= 1e-1)


@pytest.mark.parametrize("noise", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("lam", [1.0, 100.0])
def test_bounds_beside_large_noise_hold_in_fifty_digits(rng, noise, lam):
    X, y = np.repeat(np.arange(4.0), 2)[:, None], noise * np.tile([1.0, -1.0], 4)
    y += 1e-3 * np.repeat(rng.normal(size=4), 2)
    found = bounds.approximation_error(Gaussian(1.0), X, y, lam, loss=LeastSquares())
    with mpmath.workdps(50):
        A = mpmath.matrix([[mpmath.exp(-((mpmath.mpf(a) - mpmath.mpf(b)) ** 2)) for b in X[:, 0]] for a in X[:, 0]])
        Y = mpmath.matrix([mpmath.mpf(v) for v in y])
        whole = mpmath.mpf(lam) * (Y.T * mpmath.lu_solve(A + 8 * mpmath.mpf(lam) * mpmath.eye(8), Y))[0]
        least = sum(((Y[2 * i] - Y[2 * i + 1]) / 2) ** 2 for i in range(4)) / 4
    assert found.lower <= whole - least <= found.upper
    assert found.charged <= 1e-12 * (1.0 + noise**2)


@pytest.mark.parametrize(("quantile", "rest"), [(1e-3, 1e-10), (1e-6, 1e-7), (1e-9, 1e-4)])
def test_the_least_risk_is_that_of_a_breakpoint_where_a_piece_is_nearly_flat(quantile, rest):
    """Twice one point, 0 the best constant and the best function: A is 0."""
    first = quantile * (1.0 + rest)
    masses, loss = [first, 1.0 - first], Pinball(quantile=quantile)
    found = bounds.approximation_error(Gaussian(), np.zeros((2, 1)), [0.0, 1.0], 1.0, loss=loss, masses=masses)
    assert 0.0 == found.lower <= found.upper <= 1e-11 * quantile


def test_two_labels_of_nearly_equal_masses():
    d = 1e-12
    found = bounds.approximation_error(
        Gaussian(), np.zeros((2, 1)), [1.0, -1.0], 1.0, loss=Hinge(), masses=[1.0, 1.0 + d]
    )
    assert found.lower <= d / (2.0 + d) <= found.upper <= d


@pytest.mark.parametrize(("epsilon", "beyond"), [(1.0, 1e-9), (0.7, 1e-12), (0.1, 1e-9), (1.0, 1e-6)])
def test_errors_that_are_little_more_than_epsilon(epsilon, beyond):
    """Twice one point: the best function is a constant, the least one that costs nothing."""
    y = [epsilon + beyond, 0.3 * epsilon, 0.9 * epsilon]
    found = bounds.approximation_error(Gaussian(), np.zeros((3, 1)), y, 0.3, loss=EpsilonInsensitive(epsilon=epsilon))
    exact = Fraction(0.3) * (Fraction(y[0]) - Fraction(epsilon)) ** 2
    assert found.lower <= exact <= found.upper
