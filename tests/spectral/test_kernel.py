"""Spectral kernels: exact features, shared phases, the printed map, refusals."""

import numpy as np
import pytest
from scipy.integrate import quad

from convexkernels import Gaussian, HierarchicalGaussian, InvalidInputError, Spectral
from convexkernels.backend import Backend
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.measures import MEASURES


def four_cosines(kernel, x, z):
    """(1 / 4D) sum of the four cosines, pair by pair."""
    total = 0.0
    for w, v in zip(np.asarray(kernel.omega).T, np.asarray(kernel.omega2).T, strict=True):
        total += np.cos(w @ x - v @ z) + np.cos(v @ x - w @ z) + np.cos(w @ (x - z)) + np.cos(v @ (x - z))
    return total / (4 * np.asarray(kernel.omega).shape[1])


def test_exact_features_realize_the_four_cosines(rng):
    kernel = Spectral(rng.normal(0.5, 1.0, (3, 7)), rng.normal(-0.3, 1.5, (3, 7)))
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    expected = [[four_cosines(kernel, x, z) for z in Z] for x in X]
    np.testing.assert_allclose(kernel(X, Z), expected, atol=1e-13)
    np.testing.assert_allclose(kernel.transform(X) @ kernel.transform(Z).T, expected, atol=1e-13)
    assert kernel.transform(X).shape == (5, 14)


def mean_over_phases(kernel, x, z):
    """E <phi(x), phi(z)> over uniform phases, by quadrature: shared, or independent where there are two."""
    w, v = np.asarray(kernel.omega), np.asarray(kernel.omega2)

    def feature(point, b, c):
        return (np.cos(point @ w + b) + np.cos(point @ v + c)) / np.sqrt(2 * w.shape[1])

    def shared(b):
        return float(feature(x, b, b) @ feature(z, b, b)) / (2 * np.pi)

    def independent(b):
        inner = np.linspace(0, 2 * np.pi, 64, endpoint=False)  # exact for trigonometric polynomials
        return np.mean([float(feature(x, b, c) @ feature(z, b, c)) for c in inner]) / (2 * np.pi)

    return quad(shared, 0, 2 * np.pi)[0], quad(independent, 0, 2 * np.pi)[0]


def test_one_shared_phase_has_the_kernel_in_expectation_and_two_have_its_stationary_part(rng):
    kernel = Spectral.random(2, 3, sigma=1.0, random_state=1)
    x, z = rng.normal(size=(2, 2))
    shared, independent = mean_over_phases(kernel, x, z)
    assert shared == pytest.approx(kernel([x], [z])[0, 0], abs=1e-10)
    stationary = 0.25 * np.mean(np.cos((x - z) @ kernel.omega) + np.cos((x - z) @ kernel.omega2))
    assert independent == pytest.approx(stationary, abs=1e-10)
    assert abs(shared - stationary) > 1e-3


def test_stationary_kernels_depend_on_differences_and_approach_the_gaussian(rng):
    kernel = Spectral.random(2, 40_000, sigma=1.5, stationary=True, random_state=0)
    X, shift = rng.normal(size=(6, 2)), rng.normal(size=2)
    assert kernel.is_stationary
    np.testing.assert_allclose(kernel(X + shift), kernel(X), atol=1e-12)
    np.testing.assert_allclose(kernel(X), Gaussian(0.5 * 1.5**2)(X), atol=0.02)
    moving = Spectral.random(2, 400, sigma=1.5, random_state=0)
    assert np.abs(moving(X + shift) - moving(X)).max() > 0.01


# The Fourier transforms of measures of scale 1, of differences of points of shape (..., n_features).
CLOSED_FORMS = {
    "gaussian": lambda d: np.exp(-0.5 * np.square(d).sum(axis=-1)),
    "student-1": lambda d: np.exp(-np.linalg.norm(d, axis=-1)),
    "student-3": lambda d: (1.0 + (r := 3**0.5 * np.linalg.norm(d, axis=-1))) * np.exp(-r),
    "student-5": lambda d: (1.0 + (r := 5**0.5 * np.linalg.norm(d, axis=-1)) + r * r / 3.0) * np.exp(-r),
    "cauchy": lambda d: np.exp(-np.abs(d).sum(axis=-1)),
}


def test_every_measure_is_tested():
    assert CLOSED_FORMS.keys() == MEASURES.keys()


@pytest.mark.parametrize("measure", MEASURES)
def test_frequencies_of_a_measure_have_its_kernel_with_the_errors_of_a_mean(rng, measure):
    sigma, X = 0.7, rng.normal(size=(6, 3))
    differences = sigma * (X[:, None] - X)
    exact, twice = CLOSED_FORMS[measure](differences), CLOSED_FORMS[measure](2.0 * differences)
    np.testing.assert_allclose(MEASURES[measure].kernel(sigma)(X), exact, atol=1e-12)
    pairs = np.triu_indices(6, 1)
    variance = (0.5 * (1.0 + twice) - exact**2)[pairs]  # of the cosine of one frequency
    for D in (500, 8000):
        options = {"sigma": sigma, "stationary": True, "measure": measure}
        errors = [Spectral.random(3, D, random_state=seed, **options)(X)[pairs] - exact[pairs] for seed in range(30)]
        assert 0.7 < np.mean(D * np.square(errors) / variance) < 1.4


@pytest.mark.parametrize("measure", MEASURES)
def test_both_bands_of_frequencies_come_from_the_measure(measure):
    kernel = Spectral.random(2, 4000, sigma=2.0, measure=measure, random_state=0)
    shift = np.array([0.3, -0.2])
    for omega in (kernel.omega, kernel.omega2):
        assert np.cos(shift @ omega).mean() == pytest.approx(CLOSED_FORMS[measure](2.0 * shift), abs=0.05)
    if measure == "gaussian":
        together = 2.0 * np.random.default_rng(0).standard_normal((2, 8000))
        np.testing.assert_array_equal(np.hstack([kernel.omega, kernel.omega2]), together)


def test_the_size_of_frequencies_is_that_of_most_of_them(rng):
    options = {"stationary": True, "feature_map": "psi", "rng": rng, "backend": Backend("float64")}
    normal = SpectralMap.draw(3, 500, **options).scaled(2.0)
    assert normal.size() == pytest.approx(np.sqrt(np.mean(normal.omega**2)), rel=1e-14)
    cauchy = SpectralMap.draw(3, 20_000, measure="cauchy", **options).scaled(2.0)
    assert cauchy.size() == pytest.approx(2.0 / 0.6745, rel=0.03)  # half of them lie within 2
    assert np.sqrt(np.mean(cauchy.omega**2)) > 10.0 * cauchy.size()
    assert cauchy.on(Backend("float32")).size() == pytest.approx(cauchy.size(), rel=1e-5)


def test_without_phases_is_the_kernel_of_psi(rng):
    kernel, X = Spectral.random(2, 9, feature_map="phi", random_state=0), rng.normal(size=(5, 2))
    exact = kernel.without_phases()
    np.testing.assert_array_equal(exact(X), Spectral(kernel.omega, kernel.omega2)(X))
    assert np.abs(exact(X) - kernel(X)).max() > 1e-3


def test_diagonal_is_at_most_one_and_one_when_stationary(rng):
    X = rng.normal(size=(50, 3))
    kernel = Spectral.random(3, 30, sigma=1.0, random_state=0)
    expected = 0.5 * (1.0 + np.cos(X @ (kernel.omega - kernel.omega2))).mean(axis=1)
    np.testing.assert_allclose(kernel.diag(X), expected, atol=1e-13)
    np.testing.assert_allclose(Spectral.random(3, 30, stationary=True, random_state=0).diag(X), 1.0, atol=1e-13)


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("feature_map", ["psi", "phi", "printed"])
def test_features_for_training_are_those_of_the_kernel(rng, feature_map, stationary):
    drawn = SpectralMap.draw(
        3, 11, stationary=stationary, feature_map=feature_map, rng=rng, backend=Backend("float64")
    ).scaled(0.7)
    X = rng.normal(size=(8, 3))
    kernel = Spectral.of(drawn)
    np.testing.assert_allclose(drawn(X).values, kernel.transform(X), atol=1e-14)
    assert drawn.width == kernel.transform(X).shape[1]
    assert kernel.is_stationary == stationary
    assert (kernel.phase2 is not None) == (feature_map == "printed" and not stationary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number >= 1, got 0"),
        ({"sigma": 0.0}, "sigma must be a finite number > 0, got 0"),
        ({"sigma": -1.0}, "sigma must be a finite number > 0, got -1"),
        ({"feature_map": "rff"}, "feature_map must be one of psi, phi, printed, got 'rff'"),
        (
            {"measure": "laplace"},
            "measure must be one of gaussian, student-1, student-3, .*, cauchy, got 'laplace'",
        ),
        ({"n_features": 0}, "n_features must be a whole number >= 1"),
    ],
)
def test_bad_draws_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Spectral.random(**{"n_features": 2, "n_components": 5, **options})


def test_many_features_of_features_have_a_hierarchical_gaussian_kernel(rng):
    """Errors fall as one over the root of the number of components, of both layers."""
    X, sigma = rng.uniform(-1.0, 1.0, (8, 2)), 1.5
    exact = HierarchicalGaussian(
        [1.0], [HierarchicalGaussian([1.0, 1.0], gamma=np.sqrt(2.0) / sigma)], gamma=np.sqrt(2.0)
    )
    inner = Gaussian(0.5 * sigma**2)(X)
    np.testing.assert_allclose(exact(X), np.exp(inner - 1.0), rtol=1e-12)
    for D, error in ((100, 0.1), (10_000, 0.01)):
        kernel = Spectral.random(2, D, sigma=sigma, stationary=True, inner=(D // 10,), random_state=0)
        assert np.abs(kernel(X) - exact(X)).mean() < error, D


def test_parts_that_do_not_fit_are_refused(rng):
    omega, X = rng.normal(size=(2, 5)), rng.normal(size=(4, 2))
    for kernel, message in [
        (Spectral(omega, omega[:, :4]), r"omega2 has shape \(2, 4\)"),
        (Spectral(omega, inner=Gaussian()), "inner must be a Spectral kernel"),
        (Spectral(omega, inner=Spectral(omega)), "inner has 10 features, but omega has 2 rows"),
        (Spectral(omega, None, np.zeros(4)), r"phase has shape \(4,\)"),
        (Spectral(omega, omega, None, np.zeros(5)), "phase2 belongs to phase"),
        (Spectral(omega * np.nan), "omega has a missing or infinite value"),
        (Spectral(omega[:1]), "X has 2 features, but omega has 1 rows"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            kernel(X)
