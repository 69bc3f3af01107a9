"""Checks behind the claims about concatenations of functions from reproducing kernel Hilbert spaces."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import j0

from convexkernels import Concatenated, Gaussian, KernelMap, Linear, Matern, Polynomial
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, gram_and_error, smallest_eigenvalue
from convexkernels.kernels.matern import MaternProfile
from proofs_check.universality import separated

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


# ---- Theorem 1


@dataclass(frozen=True, eq=False)
class Layer:
    """f = sum_i k(c_i, .) diag(a) w_i for a Gaussian k; its squared norm is sum_l a_l w_l'K w_l."""

    kernel: Gaussian
    centers: Array
    weights: Array
    a: Array

    def __call__(self, Z: Array) -> Array:
        return self.kernel(Z, self.centers) @ (self.weights * self.a)

    @property
    def squared_norm(self) -> float:
        """Squared norm in the vector-valued space with kernel ``k diag(a)`` [BGR19 (15)]."""
        return float(np.sum(self.a * np.einsum("il,ij,jl->l", self.weights, self.kernel(self.centers), self.weights)))

    @property
    def lipschitz(self) -> float:
        """Bound on the slope: that of one Gaussian is at most sqrt(2 gamma / e)."""
        return float(np.sqrt(2.0 * self.kernel.gamma / math.e) * np.abs(self.weights * self.a).sum())


def project(layer: Layer, points: Array) -> tuple[Layer, float]:
    """Orthogonal projection onto the span of k(z_i, .) e_l [BGR19 (8)], and the rounding of its values at the z_i.

    The projection is the interpolant of least norm, so its weights solve one linear system; a backward
    stable solver leaves a residual of a few ``m eps |K| |weights|``.
    """
    K = layer.kernel(points)
    weights = np.asarray(np.linalg.solve(K, layer(points) / layer.a), dtype=np.float64)
    residual = 4.0 * EPS * points.shape[0] * float(np.linalg.norm(K, 2) * np.linalg.norm(weights * layer.a))
    return Layer(layer.kernel, points, weights, layer.a), residual


def competitor(rng: Generator, points: Array, width: int, gamma: float, *, extra: int = 4) -> Layer:
    """A random function with translates at the points and elsewhere, so outside the span."""
    centers = np.vstack([points, points.mean(axis=0) + rng.standard_normal((extra, points.shape[1]))])
    weights = rng.standard_normal((centers.shape[0], width)) / np.sqrt(centers.shape[0])
    return Layer(Gaussian(gamma), centers, weights, rng.uniform(0.5, 2.0, width))


def chain(rng: Generator, n_layers: int, X: Array) -> list[Layer]:
    """Layers f_L, ..., f_1 in the order they are applied."""
    widths = [*rng.integers(1, 4, n_layers - 1), 1]
    layers, Z = [], X
    for width in widths:
        # The width of the Gaussian follows the spread of the points, to keep the systems well posed.
        spread = float(np.median(np.sum((Z[:, None] - Z[None]) ** 2, axis=2)[np.triu_indices(len(Z), 1)]))
        layers.append(competitor(rng, Z, int(width), 2.0 / max(spread, 1e-3)))
        Z = layers[-1](Z)
    return layers


# ---- Corollaries 2 and 3: only the inner function is left


def interpolation_energy(Q: Array, y: Array) -> float:
    """Outer part of [BGR19 (uP)]: y'Q^-1 y."""
    return float(y @ np.linalg.solve(Q, y))


def regression_energy(Q: Array, y: Array, lam: float = 0.1) -> float:
    """Outer part of [BGR19 (uR)], as [BGR19 (16)] prints it: squared errors plus lam times the squared norm."""
    alpha = np.linalg.solve(Q + lam * np.eye(y.size), y)
    return float(lam * alpha @ Q @ alpha + np.sum((Q @ alpha - y) ** 2))


def measure_one_term(one_term: Callable[[Array, Array, float], float], rng: Generator) -> Verdict:
    """The two outer terms of [BGR19 (16)] equal lam y'(Q + lam I)^-1 y."""
    Q, y = Gaussian(2.0)(separated(rng, 8, 2)), rng.standard_normal(8)
    lam = float(2.0 ** rng.uniform(-15.0, 0.0))
    three, one = regression_energy(Q, y, lam), one_term(Q, y, lam)
    condition = float(np.linalg.cond(Q + lam * np.eye(8)))
    witness = {"Q": Q, "y": y, "lam": lam, "as_printed": three, "one_term": one}
    return Verdict(abs(three - one), 16.0 * 8.0 * EPS * condition * max(three, 1.0), 1, witness)


def one_term_without_lam(Q: Array, y: Array, lam: float) -> float:
    return float(y @ np.linalg.solve(Q + lam * np.eye(y.size), y))


# ---- MLMKL, degrees of freedom, coercivity


def measure_multilayer(sign: float, rng: Generator) -> Verdict:
    """a(|sum nu_i (K_2(x_i, x) - K_2(x_i, y))|) is the deep kernel [BGR19 (11)] with c = nu and D = 1."""
    X = separated(rng, 6, 2)
    x, y = rng.uniform(0.0, 1.0, (2, 1, 2))
    nu, inner, gamma = rng.standard_normal(6), Polynomial(2), float(rng.uniform(0.2, 2.0))
    deep = Concatenated(Gaussian(gamma), [KernelMap(inner, X, nu[:, None])])
    difference = float(nu @ (inner(X, x) - sign * inner(X, y))[:, 0])
    claimed = float(np.exp(-gamma * difference**2))
    actual = float(deep(x, y)[0, 0])
    size = float(np.abs(nu) @ (np.abs(inner(X, x)) + np.abs(inner(X, y)))[:, 0])
    # d exp(-gamma t^2) <= 2 gamma |t| dt, with t a sum of about 30 rounded terms.
    rounding = EPS * 30.0 * (1.0 + 2.0 * gamma * size**2)
    return Verdict(abs(claimed - actual), rounding, 1, {"X": X, "nu": nu, "x": x, "y": y, "gamma": gamma})


def measure_dimension(dimension: Callable[[int, int], int], rng: Generator) -> Verdict:
    """Dim span{K(x_i, .)} for N points and a polynomial kernel on the plane with q monomials."""
    degree, N = int(rng.integers(1, 3)), int(rng.integers(2, 12))
    q = (degree + 1) * (degree + 2) // 2
    X = rng.uniform(-1.0, 1.0, (N, 2))
    singular = np.linalg.svd(Polynomial(degree)(X), compute_uv=False)
    rank = int((singular > EPS * N * 16.0 * singular[0]).sum())
    return Verdict(abs(dimension(N, q) - rank), 0.0, 1, {"X": X, "degree": degree, "rank": rank})


def polynomial_degree_1(rng: Generator) -> tuple[Any, Array]:
    """The inner kernel of the paper's experiments, on more points than it has monomials."""
    return Polynomial(1), separated(rng, 8, 2)


def linear_inner(rng: Generator) -> tuple[Any, Array]:
    return Linear(), separated(rng, 8, 2)


def gaussian_inner(rng: Generator) -> tuple[Any, Array]:
    return Gaussian(8.0), separated(rng, 8, 2)


# ---- the Matern kernel of Section 4


def radial_transform(s: int, d: int, omega: float) -> tuple[float, float]:
    """Fourier transform in R^d of the library's Matern function of order s at |omega|, and the quadrature's error."""
    library = MaternProfile(s)

    def profile(r: float) -> float:
        return float(library.value(np.array(r)) * np.exp(-r))

    integrand = {
        1: lambda r: 2.0 * np.cos(omega * r) * profile(r),
        2: lambda r: 2.0 * np.pi * r * j0(omega * r) * profile(r),
        3: lambda r: 4.0 * np.pi * r * np.sin(omega * r) / omega * profile(r),
    }[d]
    # Beyond r = 60 the profile is below exp(-60) times a polynomial.
    value, error = quad(integrand, 0.0, 60.0, limit=400)
    return float(value), float(error)


def measure_sobolev_order(subject: tuple[Callable[[int, int], float], tuple[int, ...]], rng: Generator) -> Verdict:
    """The transform decays as (1 + |omega|^2)^(-order), the weight of the Sobolev space of that order."""
    order, dimensions = subject
    s, d = int(rng.integers(1, 4)), int(rng.choice(dimensions))
    low, high = float(rng.uniform(0.5, 1.0)), float(rng.uniform(2.0, 4.0))
    (at_low, e_low), (at_high, e_high) = radial_transform(s, d, low), radial_transform(s, d, high)
    claimed = ((1.0 + high**2) / (1.0 + low**2)) ** (-order(s, d))
    ratio = at_high / at_low
    error = ratio * (e_high / abs(at_high) + e_low / abs(at_low)) + 8.0 * EPS
    witness = {"s": s, "d": d, "omega": np.array([low, high]), "ratio": ratio, "claimed": claimed}
    return Verdict(abs(ratio - claimed), error, 1, witness)


def measure_smallest_order(has_kernel: Callable[[int, int], bool], rng: Generator) -> Verdict:
    """Whether K_Matern,s is a reproducing kernel on R^d: bounded, and strictly positive on distinct points."""
    s, d = int(rng.integers(1, 3)), 2
    X = separated(rng, 10, d)
    K, error = gram_and_error(Matern(order=s), X)
    value, bound, c = smallest_eigenvalue(K, error)
    is_kernel = bool(np.isfinite(K).all()) and value > bound
    witness = {"s": s, "X": X, "c": c, "smallest_eigenvalue": value, "rounding": bound}
    return Verdict(float(is_kernel != has_kernel(s, d)), 0.0, 1, witness)
