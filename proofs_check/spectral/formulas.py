"""Checks behind the claims about spectral kernels: feature maps, their kernels, bounds and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from convexkernels import Gaussian
from convexkernels.arrays import Array
from convexkernels.backend import Backend
from convexkernels.checking import Verdict, smallest_eigenvalue
from convexkernels.kernels import Spectral
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.spectral.losses import MarginLoss
from convexkernels.spectral.penalties import shrink_singular_values

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequency matrices Omega, Omega' (d, D) and phases b, b' (D,) of the maps psi and phi."""

    omega: Array
    other: Array
    b: Array
    b_other: Array


def draw(rng: Generator, d: int, D: int, *, shared_phase: bool = True) -> Frequencies:
    """Frequencies from different Gaussians, so that nothing is symmetric by accident."""
    b = rng.uniform(0.0, 2.0 * np.pi, D)
    b_other = b if shared_phase else rng.uniform(0.0, 2.0 * np.pi, D)
    return Frequencies(rng.normal(0.5, 1.0, (d, D)), rng.normal(-0.3, 1.5, (d, D)), b, b_other)


def psi(f: Frequencies, X: Array) -> Array:
    """Map R^d -> R^2D of the paper, one row per point: the library's exact features."""
    return Spectral(f.omega, f.other).transform(X)


def psi_without_second(f: Frequencies, X: Array) -> Array:
    """Psi with sines of the second frequencies left out: false on purpose."""
    u, v = X @ f.omega, X @ f.other
    return np.hstack([np.cos(u) + np.cos(v), np.sin(u)]) / np.sqrt(4.0 * f.omega.shape[1])


def phi(f: Frequencies, X: Array) -> Array:
    """Map R^d -> R^D of [LLW20 (6)]: the library's features with phases."""
    return Spectral(f.omega, f.other, f.b, f.b_other).transform(X)


def phi_of(omega: NDArray[Any], f: Frequencies, X: Array) -> NDArray[Any]:
    """[LLW20 (6)] written down once more, for complex frequencies, too: what derivatives are compared with."""
    return (np.cos(X @ omega + f.b) + np.cos(X @ f.other + f.b_other)) / np.sqrt(2.0 * f.omega.shape[1])


def features_for_training(f: Frequencies, X: Array) -> Any:
    """The library's features that know the way back to the frequencies."""
    stacked, phases = np.hstack([f.omega, f.other]), np.concatenate([f.b, f.b_other])
    return SpectralMap(stacked, phases, f.omega.shape[1], Backend("float64"))(X)


def nonstationary_kernel(f: Frequencies, x: Array, z: Array) -> float:
    """(1 / 4D) sum of the four cosines of the Monte Carlo form of [LLW20 (5)]."""
    ux, vx, uz, vz = x @ f.omega, x @ f.other, z @ f.omega, z @ f.other
    return float(np.mean(np.cos(ux - vz) + np.cos(vx - uz) + np.cos(ux - uz) + np.cos(vx - vz)) / 4.0)


def stationary_part(f: Frequencies, x: Array, z: Array) -> float:
    """The two cosines of x - z alone."""
    return float(np.mean(np.cos((x - z) @ f.omega) + np.cos((x - z) @ f.other)) / 4.0)


def _rounding(f: Frequencies, X: Array) -> float:
    """A cosine of an argument of size s, itself a sum of d products, is off by about (d + 1) eps s."""
    size = float(np.abs(X).sum(axis=1).max() * max(np.abs(f.omega).max(), np.abs(f.other).max())) + 1.0
    return EPS * (X.shape[1] + 2) * size + EPS * (f.omega.shape[1] + 8)


# ---- kernels of the maps


def measure_features(feature_map: Callable[[Frequencies, Array], Array], rng: Generator) -> Verdict:
    """Inner products of the features are the nonstationary kernel, with no error but rounding."""
    f, X = draw(rng, 3, 40), rng.uniform(-2.0, 2.0, (2, 3))
    features = feature_map(f, X)
    violation = abs(float(features[0] @ features[1]) - nonstationary_kernel(f, X[0], X[1]))
    return Verdict(violation, 8.0 * _rounding(f, X), 1, {"omega": f.omega, "omega_other": f.other, "X": X})


def measure_expectation(subject: tuple[bool, Callable[..., float]], rng: Generator) -> Verdict:
    """Mean over random phases of the library's <phi(x), phi(z)> against a kernel, with its standard error.

    The tolerance is the quantile a correct claim exceeds once in a million runs.
    """
    shared, target = subject
    f, X = draw(rng, 2, 8), rng.uniform(-1.5, 1.5, (2, 2))
    draws = 20_000
    b = rng.uniform(0.0, 2.0 * np.pi, (draws, 8))
    b_other = b if shared else rng.uniform(0.0, 2.0 * np.pi, (draws, 8))
    left, right = (np.cos(x @ f.omega + b) + np.cos(x @ f.other + b_other) for x in X)
    samples = np.mean(left * right, axis=1) / 2.0
    standard_error = float(samples.std(ddof=1) / np.sqrt(draws))
    # One map of the library with the frequencies again and again, and all phases.
    omega, other = (np.tile(part, draws) for part in (f.omega, f.other))
    mean = float(Spectral(omega, other, b.ravel(), b_other.ravel())(X[:1], X[1:])[0, 0])
    kernel = target(f, X[0], X[1])
    witness = {"omega": f.omega, "omega_other": f.other, "X": X, "mean": mean, "kernel": kernel}
    tolerance = float(norm.isf(0.5e-6)) * standard_error + _rounding(f, X)
    return Verdict(abs(mean - kernel), tolerance, 1, {**witness, "standard_error": standard_error})


def measure_yaglom(density: Array, rng: Generator) -> Verdict:
    """Complex Gram matrix of [LLW20 Theorem 2, (3)] for a 2 x 2 spectral density on {omega, omega'}."""
    f, X = draw(rng, 2, 12), rng.uniform(-2.0, 2.0, (15, 2))
    waves = np.exp(1j * np.stack([X @ f.omega, X @ f.other]))
    K = np.einsum("api,ab,bqi->pq", waves, density, waves.conj()) / f.omega.shape[1]
    error = 4.0 * _rounding(f, X)
    # A Hermitian matrix A + iB has the eigenvalues of the real symmetric [[A, -B], [B, A]].
    real = np.block([[K.real, -K.imag], [K.imag, K.real]])
    value, bound, c = smallest_eigenvalue(real, error)
    witness = {"omega": f.omega, "omega_other": f.other, "X": X, "c": c, "smallest_eigenvalue": value}
    psd = Verdict(max(0.0, -value), bound, 1, witness)
    if density[0, 0] == 0.0:
        return psd
    # With all four components its real part is the library's kernel.
    apart = float(np.abs(K.real - Spectral(f.omega, f.other)(X)).max())
    return Verdict.worst([psd, Verdict(apart, 4.0 * error, 1, witness)])


def measure_stationarity(ratio: float, rng: Generator) -> Verdict:
    """With Omega = Omega' the library's kernel depends on x - z only, and is that of Omega alone."""
    f = draw(rng, 2, 20)
    X = rng.uniform(-1.0, 1.0, (2, 2))
    moved = X + rng.uniform(-1.0, 1.0, 2)
    both, alone = Spectral(f.omega, ratio * f.omega), Spectral(f.omega)
    values = [float(both(*Z[:, None])[0, 0]) for Z in (X, moved)] + [float(alone(*X[:, None])[0, 0])]
    witness = {"omega": f.omega, "X": X, "moved": moved, "values": np.array(values)}
    return Verdict(float(np.ptp(values)), 8.0 * _rounding(f, np.vstack([X, moved])), 1, witness)


def diagonal_printed(cosine: Array) -> float:
    return float(np.mean(cosine))


def diagonal_corrected(cosine: Array) -> float:
    return float(np.mean(0.5 * (1.0 + cosine)))


def diagonal_constant(cosine: Array) -> float:
    return 1.0


def measure_diagonal(
    subject: tuple[Callable[[Frequencies, Array], Array], Callable[[Array], float]], rng: Generator
) -> Verdict:
    """k(x, x) = |features of x|^2 as a function of cos((omega - omega')'x)."""
    feature_map, formula = subject
    f, x = draw(rng, 2, 6, shared_phase=True), rng.uniform(-2.0, 2.0, (1, 2))
    claimed = formula(np.cos(x[0] @ (f.omega - f.other)))
    actual = float(np.sum(feature_map(f, x) ** 2))
    witness = {"omega": f.omega, "omega_other": f.other, "x": x, "claimed": claimed, "actual": actual}
    return Verdict(abs(claimed - actual), 8.0 * _rounding(f, x), 1, witness)


def measure_density(variance: Callable[[float], float], rng: Generator) -> Verdict:
    """E cos(omega tau) over N(0, variance(sigma)) is exp(-tau^2 / (2 sigma^2)) [LLW20 Theorem 1, (2)]; quadrature."""
    sigma, tau = float(rng.uniform(1.5, 3.0)), float(rng.uniform(0.5, 2.0))
    scale = float(np.sqrt(variance(sigma)))
    value, error = quad(lambda u: np.cos(scale * u * tau) * norm.pdf(u), -np.inf, np.inf)
    claimed = float(Gaussian(0.5 / sigma**2)([[tau]], [[0.0]])[0, 0])
    return Verdict(abs(value - claimed), error + 8.0 * EPS, 1, {"sigma": sigma, "tau": tau, "integral": value})


# ---- the bounds (11) and (12), by enumeration of all signs


def rademacher(features: Array, K: int) -> float:
    """Complexity [LLW20 Definition 1] of {W : |W|_* <= 1} exactly: mean over all signs of a spectral norm, over n."""
    n = features.shape[0]
    signs = np.array(list(product((-1.0, 1.0), repeat=n * K))).reshape(-1, n, K)
    sums = np.einsum("ni,snk->sik", features, signs)
    return float(np.linalg.norm(sums, 2, axis=(1, 2)).mean() / n)


def measure_bound(subject: tuple[Any, Callable[[float, int, int], float]], rng: Generator) -> Verdict:
    """A bound computed from the trace, n and K is not below the complexity [LLW20 Theorem 3, (11)]."""
    feature_map, bound = subject
    n, K = ((1, 4), (2, 3), (3, 2), (1, 1), (4, 2))[int(rng.integers(5))]
    f, X = draw(rng, 2, int(rng.integers(1, 5))), rng.uniform(-1.0, 1.0, (n, 2))
    features = feature_map(f, X)
    complexity, limit = rademacher(features, K), bound(float(np.sum(features**2)), n, K)
    witness = {"omega": f.omega, "omega_other": f.other, "X": X, "K": K, "complexity": complexity, "bound": limit}
    # Norms of (D x K) matrices and a mean of 2^(nK) of them: each relative to the bound's own size.
    rounding = EPS * (features.shape[1] + K + 16) * max(complexity, limit)
    return Verdict(max(0.0, complexity - limit), rounding, 1, witness)


def bound_11(trace: float, n: int, K: int) -> float:
    return float(np.sqrt(K * trace)) / n


def bound_11_without_outputs(trace: float, n: int, K: int) -> float:
    return float(np.sqrt(trace)) / n


def bound_12(trace: float, n: int, K: int) -> float:
    return float(np.sqrt(K / n))


# ---- gradients, proximal step, subgradient


def _complex_gradient(value: Callable[[NDArray[Any]], Any], at: Array) -> Array:
    """Gradient by the complex step, entry by entry."""
    gradient, h = np.empty_like(at), 1e-30
    for index in np.ndindex(at.shape):
        moved = at.astype(np.complex128)
        moved[index] += 1j * h
        gradient[index] = float(np.imag(value(moved)) / h)
    return gradient


def sine_gradient(f: Frequencies, x: Array, slope: Array) -> Array:
    """Gradient in Omega of ``slope'phi(x)`` [LLW20 (9)] by the library: x [D slope]', D = -(2D)^(-1/2) sin."""
    return features_for_training(f, x).gradient(slope[None, :])[:, : f.omega.shape[1]]


def sine_gradient_printed(f: Frequencies, x: Array, slope: Array) -> Array:
    D = f.omega.shape[1]
    return np.outer(x[0], -1.0 / np.sqrt(2.0 * D) / np.sin(x[0] @ f.omega + f.b) * slope)


def sine_gradient_wrong_sign(f: Frequencies, x: Array, slope: Array) -> Array:
    D = f.omega.shape[1]
    return np.outer(x[0], np.sin(x[0] @ f.omega + f.b) / np.sqrt(2.0 * D) * slope)


def measure_loss_gradient(gradient: Callable[[Frequencies, Array, Array], Array], rng: Generator) -> Verdict:
    """D loss / d Omega = x [D W dloss/df]' for the squared loss, against the complex step."""
    f, x = draw(rng, 2, 5), rng.uniform(-1.0, 1.0, (1, 2))
    W, y = rng.standard_normal((5, 3)), rng.standard_normal(3)

    def loss(omega: NDArray[Any]) -> Any:
        return np.sum((phi_of(omega, f, x)[0] @ W - y) ** 2)

    slope = 2.0 * (phi(f, x)[0] @ W - y)
    claimed = gradient(f, x, W @ slope)
    exact = _complex_gradient(loss, f.omega)
    size = float(np.abs(x).max() * (np.abs(W) @ np.abs(slope)).max())
    witness = {"omega": f.omega, "omega_other": f.other, "b": f.b, "x": x, "W": W, "y": y, "claimed": claimed}
    return Verdict(float(np.abs(claimed - exact).max()), 8.0 * _rounding(f, x) * size, 1, {**witness, "exact": exact})


def measure_norm_gradient(scale: Callable[[int], float], rng: Generator) -> Verdict:
    """D |phi(X)|_F^2 / d Omega = scale(m) sum_i 2 x_i phi(x_i)'D for m points."""
    m = int(rng.integers(2, 6))
    f, X = draw(rng, 2, 5), rng.uniform(-1.0, 1.0, (m, 2))

    def value(omega: NDArray[Any]) -> Any:
        return np.sum(phi_of(omega, f, X) ** 2)

    features = features_for_training(f, X)
    claimed = scale(m) * features.gradient(2.0 * features.values)[:, :5]
    exact = _complex_gradient(value, f.omega)
    witness = {"omega": f.omega, "omega_other": f.other, "b": f.b, "X": X, "claimed": claimed, "exact": exact}
    return Verdict(float(np.abs(claimed - exact).max()), 8.0 * m * _rounding(f, X), 1, witness)


def measure_proximal(threshold: Callable[[float], float], rng: Generator) -> Verdict:
    """U diag(max(sigma - eta, 0)) V' minimizes |W - Q|_F^2 / 2 + eta |W|_* [LLW20 (8), Proposition 1].

    Its optimality conditions: (Q - W) / eta is a subgradient of the trace norm at W exactly when its spectral norm is
    at most 1 and its inner product with W is ``|W|_*``.
    """
    Q, eta = rng.standard_normal((6, 4)), float(rng.uniform(0.3, 2.0))
    sigma = np.linalg.svd(Q, compute_uv=False)
    W = shrink_singular_values(Q, threshold(eta), Backend("float64"))
    G = (Q - W) / eta
    trace_norm = float(np.linalg.norm(W, "nuc"))
    violation = max(float(np.linalg.norm(G, 2)) - 1.0, abs(float(np.sum(G * W)) - trace_norm), 0.0)
    return Verdict(violation, EPS * 64.0 * float(sigma[0] + 1.0) ** 2 / eta, 1, {"Q": Q, "eta": eta, "W": W})


def hinge(scores: Array, label: int) -> float:
    return max(0.0, 1.0 - scores[label] + float(np.delete(scores, label).max()))


def measure_subgradient(sign: float, rng: Generator) -> Verdict:
    """Y' - y (0 where the margin is met), as the library has it, is a subgradient of the multiclass hinge loss."""
    scores, other = rng.standard_normal(4), rng.standard_normal(4)
    label = int(rng.integers(4))
    _, slopes = MarginLoss().value_and_slope(scores[None, :], np.eye(4)[[label]], np)
    below = hinge(scores, label) + sign * float(slopes[0] @ (other - scores)) - hinge(other, label)
    size = float(np.abs(scores).sum() + np.abs(other).sum()) + 1.0
    return Verdict(max(0.0, below), 8.0 * EPS * size, 1, {"scores": scores, "other": other, "label": label})
