"""Tables to learn from: seeded generators, and :func:`load_table` for CSV files.

Generators return ``(X, y)`` of shapes (n_samples, n_features) and (n_samples,). They take their randomness from
`random_state`, an int, a ``numpy.random.Generator`` or None: one seed, one table. `noise` is a standard deviation.
"""

from typing import Any

import numpy as np

from convexkernels.arrays import Array, Labels
from convexkernels.tables import load_table
from convexkernels.validation import check_number, check_points, check_whole_number

__all__ = [
    "inverse_distance",
    "load_table",
    "make_circle",
    "make_friedman1",
    "make_inverse_distance",
    "make_spiral",
    "make_step",
    "make_two_moons",
    "step",
]


def make_two_moons(
    n_samples: int = 200, *, noise: float = 0.2, n_noise_features: int = 0, random_state: Any = None
) -> tuple[Array, Labels]:
    """Two interleaving half circles, followed by features that say nothing.

    Parameters
    ----------
    n_samples : int, >= 2
        The classes differ in size by at most one.
    noise : float, >= 0
        Added to the two coordinates.
    n_noise_features : int, >= 0
        Number of further features, independent standard normal variables.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2 + n_noise_features)
    y : ndarray of shape (n_samples,), labels -1 (upper moon) and 1 (lower moon)
    """
    m, sigma, rng = _checked(n_samples, noise, random_state, low=2)
    extra = check_whole_number("n_noise_features", n_noise_features, low=0)
    upper, lower = (np.linspace(0.0, np.pi, count) for count in (m - m // 2, m // 2))
    first = np.column_stack([np.cos(upper), np.sin(upper)])
    moons = np.vstack([first, np.column_stack([1.0 - np.cos(lower), 0.5 - np.sin(lower)])])
    moons += sigma * rng.standard_normal(moons.shape)
    X = np.hstack([moons, rng.standard_normal((m, extra))])
    y = np.repeat([-1, 1], [upper.size, lower.size])
    return _shuffled(X, y, rng)


def make_spiral(n_samples: int = 194, *, noise: float = 0.0, random_state: Any = None) -> tuple[Array, Labels]:
    """Two intertwined spirals of three turns each, the problem of Lang and Witbrock.

    Point i of an arm, 0 <= i <= 96, has angle ``i pi / 16`` and radius ``(104 - i) / 104``; the
    second arm is the first one rotated by half a turn. With 194 points and no noise this is the
    classical table (i whole, 97 points per arm) scaled to the unit disc; other sizes space i evenly.

    Parameters
    ----------
    n_samples : int, >= 2
        The classes, -1 and 1, differ in size by at most one.
    noise : float, >= 0
        Added to both coordinates.
    random_state : int, numpy.random.Generator or None

    References
    ----------
    K. J. Lang and M. J. Witbrock, "Learning to tell two spirals apart", Proceedings of the 1988
    Connectionist Models Summer School.
    """
    m, sigma, rng = _checked(n_samples, noise, random_state, low=2)
    arms = []
    for sign, count in ((-1.0, m - m // 2), (1.0, m // 2)):
        i = np.linspace(0.0, 96.0, count) if count > 1 else np.zeros(1)
        angle, radius = i * np.pi / 16.0, (104.0 - i) / 104.0
        arms.append(sign * radius[:, None] * np.column_stack([np.sin(angle), np.cos(angle)]))
    X = np.vstack(arms)
    X += sigma * rng.standard_normal(X.shape)
    y = np.repeat([-1, 1], [len(arms[0]), len(arms[1])])
    return _shuffled(X, y, rng)


def make_circle(
    n_samples: int = 200, *, radius: float = 0.5**0.5, noise: float = 0.0, random_state: Any = None
) -> tuple[Array, Labels]:
    """Points in the square [-1, 1]^2, labeled 1 inside a circle around the origin and -1 outside.

    Parameters
    ----------
    n_samples : int, >= 2
    radius : float, > 0
    noise : float, >= 0
        Added to the points after they were labeled.
    random_state : int, numpy.random.Generator or None
    """
    m, sigma, rng = _checked(n_samples, noise, random_state, low=2)
    r = check_number("radius", radius, low=0.0, open_low=True)
    X = rng.uniform(-1.0, 1.0, (m, 2))
    y = np.where(np.einsum("ij,ij->i", X, X) < r * r, 1, -1)
    return X + sigma * rng.standard_normal(X.shape), y


def make_friedman1(
    n_samples: int = 200, *, n_features: int = 10, noise: float = 1.0, random_state: Any = None
) -> tuple[Array, Array]:
    """Regression table "Friedman 1" of scikit-learn: five features matter, the others do not.

    ``y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + noise * N(0, 1)`` on [0, 1]^n.

    Parameters
    ----------
    n_samples : int, >= 1
    n_features : int, >= 5
    noise : float, >= 0
    random_state : int, numpy.random.Generator or None
    """
    from sklearn.datasets import make_friedman1 as sklearn_friedman1

    m, sigma, rng = _checked(n_samples, noise, random_state)
    n = check_whole_number("n_features", n_features, low=5, remedy="The function uses five features.")
    return sklearn_friedman1(n_samples=m, n_features=n, noise=sigma, random_state=int(rng.integers(2**32)))


def inverse_distance(X: Any) -> Array:
    """Evaluate ``h1(x, y) = 1 / (0.1 + |x - y|)`` at points (m, 2): continuous, with a ridge along the diagonal."""
    points = check_points(X, n_features=2)
    return 1.0 / (0.1 + np.abs(points[:, 0] - points[:, 1]))


def step(X: Any) -> Array:
    """Evaluate ``h2(x, y) = 1 where x y > 3/20, else 0`` at points (m, 2): discontinuous along a hyperbola."""
    points = check_points(X, n_features=2)
    return (points[:, 0] * points[:, 1] > 3.0 / 20.0).astype(np.float64)


def make_inverse_distance(
    n_samples: int = 100, *, noise: float = 0.01, random_state: Any = None
) -> tuple[Array, Array]:
    """Noisy values of :func:`inverse_distance` at uniform points of [-1, 1]^2."""
    return _noisy_values(inverse_distance, n_samples, noise, random_state)


def make_step(n_samples: int = 100, *, noise: float = 0.01, random_state: Any = None) -> tuple[Array, Array]:
    """Noisy values of :func:`step` at uniform points of [-1, 1]^2."""
    return _noisy_values(step, n_samples, noise, random_state)


def _checked(n_samples: int, noise: float, random_state: Any, low: int = 1) -> tuple[int, float, np.random.Generator]:
    m, sigma = check_whole_number("n_samples", n_samples, low=low), check_number("noise", noise, low=0.0)
    return m, sigma, np.random.default_rng(random_state)


def _noisy_values(function: Any, n_samples: int, noise: float, random_state: Any) -> tuple[Array, Array]:
    m, sigma, rng = _checked(n_samples, noise, random_state)
    X = rng.uniform(-1.0, 1.0, (m, 2))
    return X, function(X) + sigma * rng.standard_normal(m)


def _shuffled(X: Array, y: Labels, rng: np.random.Generator) -> tuple[Array, Labels]:
    order = rng.permutation(len(y))
    return X[order], y[order]
