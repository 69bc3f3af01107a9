"""The library's concatenated learning against direct evaluations: representer theorem, [BGR19 (16)], derivatives."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels import (
    Concatenations,
    Interpolation,
    LeastSquares,
    LogPenalty,
    Matern,
    OuterLearning,
    PowerPenalty,
    TrainingValue,
)
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.losses.fit import fit
from proofs_check.concatenated.formulas import (
    Layer,
    chain,
    interpolation_energy,
    project,
    regression_energy,
)
from proofs_check.universality import separated

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)
LAM, MU = 0.1, 0.5
SQUARED = PowerPenalty(2.0)


@dataclass(frozen=True, eq=False)
class Learning:
    """One concatenated problem: depth, loss, its outer energy evaluated directly, and rows left out of the span."""

    n_layers: int
    loss: Any
    energy: Callable[[Array, Array], float]
    left_out: int = 0
    repulsion: float = 0.0
    penalty: Any = SQUARED
    theta: Callable[[float], float] = float


def interpolation(n_layers: int, left_out: int = 0) -> Learning:
    return Learning(n_layers, Interpolation(nugget=0.0), interpolation_energy, left_out)


def regression(n_layers: int, left_out: int = 0) -> Learning:
    """Least squares with [BGR19 (16)] as it is printed behind it."""
    loss = LeastSquares(LAM, intercept=False)
    return Learning(n_layers, loss, lambda Q, y: regression_energy(Q, y, LAM), left_out)


def repelled(n_layers: int) -> Learning:
    """Least squares with images that repel each other."""
    return replace(regression(n_layers), repulsion=0.02)


def logarithmic(n_layers: int, left_out: int = 0) -> Learning:
    """Least squares with ``log(1 + |f|^2)`` of every inner layer."""
    return replace(regression(n_layers, left_out), penalty=LogPenalty(), theta=lambda s: float(np.log(1.0 + s)))


def cubed(n_layers: int) -> Learning:
    """Least squares with ``|f|^3`` of every inner layer."""
    return replace(regression(n_layers), penalty=PowerPenalty(3.0), theta=lambda s: float(s * np.sqrt(s)))


def repulsion_of(Z: Array) -> float:
    """Sum of coth(|z_i - z_j|^2) over the pairs i < j [BGR19 (12)]."""
    pairs = [float(np.sum((Z[i] - Z[j]) ** 2)) for i in range(len(Z)) for j in range(i)]
    return float(sum((1.0 + np.exp(-2.0 * d)) / -np.expm1(-2.0 * d) for d in pairs))


def measure_repulsion(subject: tuple[Learning, float], rng: Generator) -> Verdict:
    """The penalty of the library at random coefficients; a factor of the repulsion in the formula."""
    learning, factor = subject
    X, y = separated(rng, 7, 2), rng.standard_normal(7)
    layers = chain(rng, learning.n_layers, X)[:-1]
    problem = problem_for(learning, layers, X, y)
    chart: Any = problem.gram_set.chart(problem.gram_set.start(rng, 1))
    Z, norms = X, 0.0
    for layer, c in zip(layers, chart.coordinates.coefficients(chart.u)[::-1], strict=True):
        K = layer.kernel(Z)
        norms += float(np.sum(c * (K @ c)))
        Z = K @ c * np.sqrt(layer.a)
    expected = MU * norms + factor * learning.repulsion * repulsion_of(Z)
    found = float(chart.at(chart.u).penalty)
    witness = {"X": X, "u": chart.u, "images": Z, "penalty": found, "direct": expected}
    # coth is about 1 / d, and squared distances of images are formed in another way.
    return Verdict(abs(found - expected), 1e-8 * abs(expected), 1, witness)


def problem_for(learning: Learning, layers: list[Layer], X: Array, y: Array) -> OuterLearning:
    """The library's problem with the kernels, widths and weights of given inner layers f_L, ..., f_2."""
    outermost_first = layers[::-1]
    family = Concatenations(
        [Matern(order=2), *[layer.kernel for layer in outermost_first]],
        widths=[layer.a.size for layer in outermost_first],
        weights=[layer.a for layer in outermost_first],
        mu=MU,
        repulsion=learning.repulsion,
        penalty=learning.penalty,
    )
    return OuterLearning(family, learning.loss, TrainingValue(), X, y)


def measure_learned(learning: Learning, rng: Generator) -> Verdict:
    """The library's value at projections of inner functions is theirs, or less [BGR19 (9), Corollary 2, Corollary 3].

    Directly evaluated competitors have translates outside the data. Their projections, handed to the library as
    coefficients, must give the same outermost value (its kernel and function at the data) and no larger penalties:
    what a competitor has beside the span never lowers the objective.
    Violations are relative to both, because nearly coinciding images make the value large.
    """
    X, y = separated(rng, 7, 2), rng.standard_normal(7)
    layers = chain(rng, learning.n_layers, X)[:-1]
    Z, drift = X, 0.0
    point: list[Array] = []
    norms: list[Verdict] = []
    for layer in layers:
        projected, residual = project(layer, Z[: len(Z) - learning.left_out])
        drift = residual + projected.lipschitz * drift
        before, after = layer.squared_norm, projected.squared_norm
        rounding = 8.0 * EPS * len(Z) * float(np.linalg.cond(layer.kernel(projected.centers))) * before
        cost, most = learning.penalty.value(after), learning.theta(before)  # whose slopes are 1 at most
        norms.append(Verdict(max(0.0, cost - most) / most, rounding / most, 1, {}))
        # The library's c weighs an orthonormal basis: f = K c sqrt(a), |f|^2 = c'K c.
        c = np.zeros((len(Z), layer.a.size))
        c[: len(projected.weights)] = projected.weights * np.sqrt(layer.a)
        point.insert(0, c)
        Z = layer(Z)
    problem = problem_for(learning, layers, X, y)
    found = problem.train(np.concatenate([c.ravel() for c in point]))
    Q = Matern(order=2)(Z)
    expected = learning.energy(Q, y)
    # The slope of the Matern kernel of order 2 is below 1; d V = -lam w'dQ w.
    w = found.W[0]
    moved = 2.0 * 7.0 * (drift + EPS * 8.0) * float(w @ w) + 8.0 * 7.0 * EPS * float(np.linalg.cond(Q)) * abs(expected)
    witness: dict[str, Any] = {"X": X, "y": y, "value": found.value, "direct": expected}
    for index, layer in enumerate(layers):
        witness |= {f"centers_{index}": layer.centers, f"weights_{index}": layer.weights, f"a_{index}": layer.a}
    leader = Verdict.worst([Verdict(abs(found.value - expected) / expected, moved / expected, 1, witness), *norms])
    return Verdict(leader.worst_violation, leader.tolerance, 1, witness)


def library_regression(Q: Array, y: Array, lam: float) -> float:
    """Value of the outermost layer that the library fits to least squares."""
    return fit(LeastSquares(lam, intercept=False), Q, y[None, :], np.ones(len(y))).value


# ---- derivatives of (Int) and (Reg)


def whole_gradient(evaluation: Any) -> Array:
    return np.asarray(evaluation.gradient())


def gradient_with_fixed_images(evaluation: Any) -> Array:
    """The derivative of the norms alone, as if Q did not depend on the coefficients."""
    at = evaluation.at
    return np.asarray(at.stack.adjoint(at.coordinates, at.passes, np.zeros_like(at.images), at.family.mu))


def gradient_without_repulsion(evaluation: Any) -> Array:
    """The library's gradient less its repulsion."""
    return _gradient_with(evaluation, repulsion=0.0)


def gradient_of_squared_norms(evaluation: Any) -> Array:
    """The library's gradient as if norms were penalized by their squares."""
    return _gradient_with(evaluation, penalties=(SQUARED,) * len(evaluation.at.family.penalties))


def _gradient_with(evaluation: Any, **changes: Any) -> Array:
    at = evaluation.at
    kept, at.family = at.family, copy(at.family)
    vars(at.family).update(changes)
    try:
        return np.asarray(evaluation.gradient())
    finally:
        at.family = kept


def direct_value(learning: Learning, layers: list[Layer], X: Array, y: Array, point: tuple[Array, ...]) -> Array:
    """Outermost energy and squared norms, evaluated from coefficients f_L first; the last entry bounds rounding."""
    Z, norms = X, 0.0
    for layer, c in zip(layers, point[::-1], strict=True):
        K = layer.kernel(Z)
        norms += learning.theta(float(np.sum(c * (K @ c))))
        Z = K @ c * np.sqrt(layer.a)
    Q = Matern(order=2)(Z)
    value = learning.energy(Q, y) + MU * norms
    rounding = EPS * 7.0 * float(np.linalg.cond(Q)) * abs(value)
    if learning.repulsion > 0.0:
        value += learning.repulsion * repulsion_of(Z)
        rounding += 1e-13 * abs(value)
    return np.array([value, rounding])


def measure_derivative(subject: tuple[Learning, Callable[[Any], Array]], rng: Generator) -> Verdict:
    """Slope of the directly evaluated objective along a random direction, against the library's gradient."""
    learning, gradient = subject
    X, y = separated(rng, 7, 2), rng.standard_normal(7)
    layers = chain(rng, learning.n_layers, X)[:-1]
    problem = problem_for(learning, layers, X, y)
    rough = tuple(rng.standard_normal((7, layer.a.size)) for layer in layers[::-1])
    chart: Any = problem.gram_set.chart(np.concatenate([c.ravel() for c in rough]))
    u = chart.u
    direction = rng.standard_normal(u.size)
    direction /= float(np.linalg.norm(direction))

    def along(t: float) -> tuple[float, float]:
        value, rounding = direct_value(learning, layers, X, y, chart.coordinates.coefficients(u + t * direction))
        return float(value), float(rounding)

    slope, error = richardson_derivative(along, 0.02)
    here = problem.evaluate(chart, u)
    slopes = gradient(here)
    claimed = float(slopes @ direction)
    error += EPS * u.size * float(np.abs(slopes) @ np.abs(direction)) * 8.0 + along(0.0)[1]
    witness = {"X": X, "y": y, "u": u, "direction": direction, "slope": slope, "claimed": claimed}
    value, rounding = along(0.0)
    apart = Verdict(abs(here.value - value), 64.0 * rounding + 1e-9 * abs(value), 1, witness)
    return Verdict.worst([apart, Verdict(abs(claimed - slope), error, 1, witness)])
