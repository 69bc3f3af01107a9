"""Bounds refuse what their theorems are not about, and go with fitted estimators; claims settle what they say."""

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
    Interpolation,
    InvalidInputError,
    LeastSquares,
    Logistic,
    Pinball,
    SpectralKernelClassifier,
    Training,
    TreeSearch,
    TreeSelection,
    VoronoiRidge,
    bounds,
)

CELLS = bounds.CellNumbers(np.array([1e-3, 1e-2]), np.array([0.2, 0.3]), np.array([0.4, 0.6]), 0.5, 100, 2)
TABLE = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))


def of_cells(**numbers):
    return bounds.cells_risk_bound(CELLS._replace(**numbers), alpha=1.0, p=0.5, tau=1.0, constant=1.0)


def selected(cells=CELLS, **settings):
    known = {"alpha": 1.0, "beta": 30.0, "p": 0.2, "tau": 1.0, "n_pairs": 9, "largest_label": 1.0, "constant": 1.0}
    return bounds.selected_risk_bound(cells, **known | settings)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: bounds.hierarchical_risk_bound(bounds.SVMNumbers(0.1, 0.1, 9, 2.0), tau=1.0, constant=None),
            "Theorem 3.2 says there is",
        ),
        (
            lambda: bounds.excess_risk_bound(bounds.ComplexityNumbers(0.1, 1.0, 9), failure=0.1, constant=None),
            "Theorem 3 says there is",
        ),
        (
            lambda: bounds.excess_risk_bound(bounds.ComplexityNumbers(0.1, 1.0, 9), failure=1.0, constant=1.0),
            "less than 1",
        ),
        (lambda: bounds.cells_risk_bound(CELLS, alpha=1.0, p=0.5, tau=1.0, constant=None), "Theorem 4 says there is"),
        (lambda: bounds.local_entropy(0.1, 1.0, 0.5, 2, p=0.5, constant=None), "Theorem 12 says there is"),
        (lambda: bounds.local_entropy(0.1, 1.0, 1.5, 2, p=0.5, constant=1.0), "width must be"),
        (
            lambda: bounds.cells_risk_bound(CELLS._replace(radius=0.25), alpha=1.0, p=0.5, tau=1.0, constant=1.0),
            "largest width is 0.3",
        ),
        (
            lambda: bounds.cells_risk_bound(CELLS, alpha=1.0, p=0.5, tau=1.0, constant=1.0, region=[False, False]),
            "region must name at least one of 2 cells",
        ),
        (
            lambda: bounds.selected_risk_bound(
                CELLS, alpha=1.0, beta=3.0, p=0.2, tau=1.0, n_pairs=9, largest_label=1.0, constant=1.0
            ),
            "pass a larger beta",
        ),
        (lambda: bounds.interior_radii([[0.0, 1.0], [0.0, 1.0]]), "two different points"),
        (lambda: bounds.cell_schedule(100, 1.0, 2, beta=3.0, constants=(1.0, 1.0, 1.0)), "c3 must be less than c1"),
        (
            lambda: bounds.cell_schedule(100, 1.0, 2, beta=3.0, constants=(1, 1)),
            r"constants must be 3 finite numbers > 0, one per constant c1, c2, c3, got \(1, 1\)",
        ),
        (lambda: bounds.cell_schedule(100, 1.0, 2, beta=2.0), "beta must be"),
        (lambda: bounds.net_gap(1.0, 2, beta=2.5, p=0.5), "p must be"),
        (lambda: bounds.rate_gap(1.0, 2, beta=0.0, p=0.1), "beta must be a finite number > 2, got 0.0"),
        (lambda: bounds.rate_gap(1.0, 2, beta=-1.0, p=0.1), "beta must be"),
        (lambda: bounds.rate_gap(-5.0, 2, beta=3.0, p=0.1), "alpha must be a finite number >= 1, got -5.0"),
        (lambda: bounds.cells_risk_bound(CELLS._replace(n=0), alpha=1.0, p=0.5, tau=1.0, constant=1.0), "n must be"),
        (lambda: bounds.net_constants(-1.0, 2, p=0.1), "alpha must be"),
        (lambda: bounds.net_constants(1.0, 2, p=1.5), "p must be"),
        (
            lambda: bounds.selected_risk_bound(
                CELLS._replace(radius=1.0),
                **{
                    "alpha": 1.0,
                    "beta": 3.0,
                    "p": 0.2,
                    "tau": 1.0,
                    "n_pairs": 9,
                    "largest_label": 1.0,
                    "constant": 1.0,
                },
            ),
            "fit with smaller cells",
        ),
        (lambda: selected(alpha=0.9), "alpha must be a finite number >= 1, got 0.9"),
        (lambda: selected(CELLS._replace(n=2)), "rows of D1 must be a whole number >= 3"),
        (lambda: selected(CELLS._replace(lams=np.ones(37))), r"\(3 / radius\)\^d = 36 cells or fewer, got 37"),
        (lambda: of_cells(masses=[0.5, -0.1]), "masses must be 2 finite numbers >= 0, one per cell"),
        (lambda: of_cells(masses=[1.0]), "masses must be 2 finite numbers >= 0"),
        (lambda: of_cells(lams=[1e-3, -1e-3]), "lams must be 2 finite numbers > 0"),
        (lambda: of_cells(lams=[1e-3, "small"]), "lams must be 2 finite numbers > 0"),
        (lambda: of_cells(widths=[0.2, 0.0]), "widths must be 2 finite numbers > 0"),
        (lambda: of_cells(d=0), "d must be a whole number >= 1"),
        (lambda: bounds.cells_entropy(CELLS._replace(widths=[0.2, -0.2]), p=0.4, constant=1.0), "widths must be 2"),
        (lambda: bounds.lipschitz_constant("squared", 2), "no Lipschitz constant"),
        (lambda: bounds.approximation_error(Gaussian(), TABLE, TABLE[:, 0], 0.1, loss=Interpolation()), "has no risk"),
        (
            lambda: bounds.approximation_error(
                Gaussian(), TABLE, TABLE[:, 0], 0.1, loss=LeastSquares(), masses=np.r_[0.0, np.ones(59)]
            ),
            "leave out rows without mass",
        ),
    ],
)
def test_bounds_refuse(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bounds.smallest_sample(0.01, 54, beta=3.0), "margin=0.01, d=54, .* 10\\^372.8.*pass a larger margin"),
        (lambda: bounds.smallest_sample(1e-320, 1, beta=0.5), "pass a larger margin"),
        (lambda: bounds.cover_numbers(1e-6, 54), "radius=1e-06 .* d=54 .* 10\\^340.3.*pass a larger radius"),
        (lambda: bounds.net_constants(1.0, 800, p=0.1, c=0.1), "d=800, p=0.1 and c=0.1 .*pass a smaller alpha or d"),
        (lambda: bounds.net_constants(600.0, 2, p=0.1), "alpha=600.*pass a smaller alpha"),
        (lambda: bounds.cell_nets(1000, 60, 1e-6), "radius=1e-06, d=60 and n=1000 .* 10\\^-363.*pass a larger radius"),
        (lambda: bounds.cell_schedule(9, 1.0, 400, beta=3.0, constants=(10.0, 1.0, 0.5)), r"constants=\(10.0, 1.0"),
        (lambda: bounds.cell_schedule(9, 1.0, 400, beta=3.0, constants=(0.1, 1.0, 0.05)), r"constants=\(0.1, 1.0"),
        (lambda: bounds.joined_entropy([3.0, 2.0], [1e-3, 1e-3], p=0.001), "2 cells for p=0.001 .*pass a larger p"),
        (lambda: bounds.joined_cover(np.ones(400), np.full(400, 10.0)), "product of the numbers is about 10\\^400,"),
        (lambda: bounds.local_entropy(0.1, 1.0, 0.1, 2, p=0.001, constant=1.0), "p=0.001, d=2 .*larger p or width"),
        (lambda: bounds.cells_entropy(CELLS, p=0.0005, constant=1.0), "p=0.0005, d=2 and width=0.2 in a ball"),
        (
            lambda: bounds.selected_risk_bound(
                CELLS,
                **{"alpha": 1.0, "beta": 30.0, "p": 0.2, "tau": 1.0, "n_pairs": 9, "constant": 1.0},
                largest_label=1e200,
            ),
            r"largest_label=1e\+200 .*scale labels",
        ),
        (lambda: bounds.convolution_constant(200.0, 2), "alpha=200, d=2, .*pass a smaller alpha"),
        (lambda: bounds.convolution_constant(1.0, 2, q=20.0, norm=1e16), r"q=20 and norm=1e\+16"),
        (
            lambda: bounds.cells_risk_bound(CELLS._replace(d=784), alpha=1.0, p=0.5, tau=1.0, constant=1.0),
            r"widths from 0.2 to 0.3 in d=784 .*candidates=\(lams, widths\)",
        ),
    ],
)
def test_what_no_float_holds_is_refused_by_name(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.filterwarnings("error")
def test_cells_may_be_lists_and_without_mass():
    """A cell that no point falls into adds nothing to what is estimated."""
    as_lists = bounds.CellNumbers([1e-3, 1e-2], [0.2, 0.3], [0.4, 0.6], 0.5, 100, 2)
    assert of_cells() == bounds.cells_risk_bound(as_lists, alpha=1.0, p=0.5, tau=1.0, constant=1.0)
    assert selected() == selected(as_lists)
    assert bounds.cells_entropy(as_lists, p=0.4, constant=1.0) == bounds.cells_entropy(CELLS, p=0.4, constant=1.0)
    empty = of_cells(masses=[0.0, 0.6])
    squares = 1e-3 / 0.04 + 1e-2 / 0.09 + 1.5**2 * 0.09 + 0.5 * (0.6 / 1e-2 * 0.3**-6) ** 0.5 / 100.0 + 0.01
    assert empty.value == pytest.approx(squares)
    assert of_cells(masses=[0.0, 0.0]).value == pytest.approx(1e-3 / 0.04 + 1e-2 / 0.09 + 1.5**2 * 0.09 + 0.01)


@pytest.mark.filterwarnings("error")
def test_what_floats_hold_is_not_refused():
    """Close to the end of the range, and 0 where functions of all cells are 0."""
    assert bounds.smallest_sample(0.01, 44, beta=3.0) == pytest.approx(200.0**132)
    assert bounds.smallest_sample(1e300, 3, beta=3.0, c=1e-300) == 1
    assert bounds.cover_numbers(1e-5, 54)[1] == pytest.approx((1.0 + 2e5) ** 54)
    assert bounds.joined_entropy([0.0, 0.0], [1.0, 2.0], p=0.001) == 0.0
    assert bounds.joined_entropy([1e-3], [1.0], p=0.004) == pytest.approx(2e-3 * (3.0 * np.log(4.0)) ** 125.0)
    assert bounds.convolution_constant(1.0, 2, norm=0.0) == 0.0
    assert bounds.local_entropy(0.1, 1.0, 0.1, 2, p=0.001, constant=0.0) == 0.0
    assert bounds.net_constants(1.0, 300, p=0.1, c=0.35)[0] == pytest.approx(3.0**301 * 0.35**-300)
    assert bounds.hierarchical_risk_bound(bounds.SVMNumbers(0.1, 0.1, 10**30, 2.0), tau=1.0, constant=1.0).value < 1.0


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


@pytest.mark.parametrize("kind", ["overlapping", "tree", "random"])
def test_cells_that_are_not_those_of_nearest_centers_have_no_bound(kind):
    selection = CellSelection(n_lams=2, n_widths=2, widths="isotropic")
    model = VoronoiRidge(cells=Cells(kind), max_cell_size=30, selection=selection, random_state=0)
    with pytest.raises(InvalidInputError, match="nearest centers that do not overlap"):
        bounds.CellNumbers.of(model.fit(TABLE, TABLE[:, 0]))


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
    squares = SpectralKernelClassifier(loss="squared", **settings).fit(TABLE, y)
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
