"""Deep kernels of concatenated functions, by the coefficients of the inner ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.base import Chart, CurvedFamily, CurvedGram, CurvedGramSet, whole
from convexkernels.families.curved.layers import Coordinates, LayerStack
from convexkernels.families.curved.penalties import check_penalties
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.concatenated import Concatenated
from convexkernels.kernels.distances import radial_pullback, squared_distances
from convexkernels.kernels.matern import without_kinks
from convexkernels.linalg import eigh
from convexkernels.validation import check_number

# With three or more layers the whitening depends on the images: this often it is renewed, at most.
N_WHITENINGS = 8
# Images beyond this overflow when they are squared.
LARGEST_IMAGE = 1e100
# The identity is met up to this ridge: very smooth kernels would need a huge norm to meet it exactly.
IDENTITY_RIDGE = 1e-6
# Kinks of Matern kernels are smoothed over this share of the spread of the points: the values of (Int) change by a
# hundredth, and where a coordinate collapses, which is what such kernels are for, descent ends at stationary points.
SMOOTHED_SHARE = 1e-3


class Concatenations(CurvedFamily):
    """Deep kernels ``K_1(g(x), g(y))`` of functions ``g = f_2 o ... o f_L`` from spaces of their own [BGR19 (7)].

    By the representer theorem [BGR19 Theorem 1] every f_l is a combination of translates of its kernel at the images of
    the training points; z holds the coefficients c of f_2, ..., f_L. With the training value of a loss as criterion
    this is

        ``min over f_1, ..., f_L   loss of f_1 o ... o f_L + lam |f_1|^2 + sum_l mu_l Theta_l(|f_l|^2)``,

    Theta_l(s) being s unless `penalty` says otherwise;

    a search sees whitened coordinates of z and costs O(m^3 + m^2 (n_unknowns / m)) per gradient, by the adjoint method
    [BGR19 Section 3.3.2], where differentiating one coefficient at a time costs O(m^3 d + (m d)^2).

    Parameters
    ----------
    layers : sequence of Kernel, length L >= 2
        K_1, ..., K_L, outermost first. All but the last have to be differentiable; of Matern kernels with a kink
        (order 1) the kink is smoothed over a thousandth of the spread of the points, unless `smoothing` says more.
    widths : int or sequence of int, optional
        Output dimensions of f_2, ..., f_L, outermost first; the number of features when not given.
    weights : sequence of array-like, optional
        Vectors a of the matrix-valued kernels ``K_l diag(a)`` of f_2, ..., f_L; ones when not given.
    mu : float or sequence of float, > 0
        Weights of the penalties of f_2, ..., f_L.
    repulsion : float, >= 0
        The gamma of [BGR19 (12)]: adds ``repulsion * sum_{i<j} coth(|g(x_i) - g(x_j)|^2)``.
    penalty : PowerPenalty, LogPenalty or sequence of them, optional
        The Theta_l of f_2, ..., f_L; squared norms when not given. The outermost layer keeps its squared norm: where
        the loss is convex another increasing Theta_1 has the same solutions, each for another lam, the multiplier of
        a bound on ``|f_1|^2``.
    """

    def __init__(
        self,
        layers: Sequence[Kernel],
        widths: Any = None,
        weights: Any = None,
        mu: Any = 1.0,
        repulsion: float = 0.0,
        penalty: Any = None,
    ) -> None:
        _check_layers(layers)
        self.layers = tuple(layers)
        self.widths, self.weights = widths, weights
        self.mu = _check_mu(mu, len(layers) - 1)
        self.repulsion = check_number("repulsion", repulsion, low=0.0)
        self.penalties = check_penalties(penalty, len(layers) - 1)

    def __repr__(self) -> str:
        return f"Concatenations({list(self.layers)!r})"

    def with_mu(self, mu: Any) -> Concatenations:
        """The same functions with other weights of their norms."""
        other = copy(self)
        other.mu = _check_mu(mu, len(self.layers) - 1)
        return other

    def on(self, X: Array) -> ConcatenationsGramSet:
        distance = SMOOTHED_SHARE * (float(np.sqrt(X.var(axis=0).sum())) or 1.0)
        family = self._with_layers([*(without_kinks(kernel, distance) for kernel in self.layers[:-1]), self.layers[-1]])
        stack = LayerStack(family.layers[1:], X, X.shape[1] if self.widths is None else self.widths, self.weights)
        for kernel, width in zip(family.layers[:-1], stack.widths, strict=True):
            kernel.pullback(np.ones((1, width)), np.ones((1, width)), np.ones((1, 1)))  # refuses other kinks
        return ConcatenationsGramSet(family, stack)

    def _with_layers(self, layers: Sequence[Kernel]) -> Concatenations:
        other = copy(self)
        other.layers = tuple(layers)
        return other


class ConcatenationsGramSet(CurvedGramSet):
    """Gram matrices of deep kernels on the points that their coefficients belong to."""

    draws_rows = False

    def __init__(self, family: Concatenations, stack: LayerStack) -> None:
        super().__init__(family, stack.X)
        self.stack = stack
        self.n_unknowns = len(stack.X) * sum(stack.widths)

    def restrict(self, rows: Index) -> ConcatenationsGramSet:
        return ConcatenationsGramSet(self.family, self.stack.at(self.stack.X[rows]))

    def with_family(self, family: CurvedFamily) -> ConcatenationsGramSet:
        assert isinstance(family, Concatenations)
        return ConcatenationsGramSet(family._with_layers(self.family.layers), self.stack)

    def coefficients(self, z: Array) -> list[Array]:
        """The matrices c of the layers, outermost first, shapes (m, width)."""
        m = z.size // sum(self.stack.widths)
        parts = np.split(z, m * np.cumsum(self.stack.widths)[:-1])
        return [part.reshape(m, width) for part, width in zip(parts, self.stack.widths, strict=True)]

    def extend(self, z: Array, rows: Index) -> Array:
        whole = []
        for c in self.coefficients(z):
            whole.append(np.zeros((len(self.stack.X), c.shape[1])))
            whole[-1][rows] = c
        return flat(whole)

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        """Layers as close to the identity as their kernels allow; others drawn from Gaussian processes.

        With fewer outputs than inputs the identity becomes the leading principal components; with more, zeros follow.
        """

        def draw(layer: int, points: Array, gram: Array, basis: Array) -> Array:
            size = np.exp(rng.uniform(np.log(0.1), np.log(3.0)))
            return size * rng.standard_normal((basis.shape[1], self.stack.widths[layer]))

        coordinates, u = self.stack.build(self._identity if k == 0 else draw)
        return flat(coordinates.coefficients(u))

    def _identity(self, layer: int, points: Array, gram: Array, basis: Array) -> Array:
        width, target = self.stack.widths[layer], points
        if width < points.shape[1]:
            centered = points - points.mean(axis=0)
            target = centered @ np.linalg.svd(centered, full_matrices=False)[2][:width].T
        target = np.pad(target, ((0, 0), (0, max(width - target.shape[1], 0)))) / self.stack.scales[layer]
        values, vectors = eigh(gram)
        shrink = np.maximum(values, 0.0) / (np.maximum(values, 0.0) + IDENTITY_RIDGE * values[-1])
        return basis.T @ (vectors @ (shrink[:, None] * (vectors.T @ target)))

    def chart(self, z: Array) -> Whitened:
        return Whitened(self, z)

    def at(self, z: Array, dtype: Any = np.float64) -> DeepGram | None:
        chart = self.chart(z)
        there = chart.at(chart.u)
        if there is not None:  # the images that predictions will see, without the rounding of coordinates
            there.images = self.kernel(z).images(self.stack.X)
        return there

    def kernel(self, z: Array) -> Concatenated:
        return Concatenated(self.family.layers[0], self.stack.maps(self.coefficients(z)))


class Whitened(Chart):
    """Coordinates in which the squared norms of the layers are sums of squares, at the point they were made for."""

    gram_set: ConcatenationsGramSet

    def __init__(self, gram_set: ConcatenationsGramSet, z: Array) -> None:
        self.coordinates, u = gram_set.stack.coordinates_at(gram_set.coefficients(z))
        super().__init__(gram_set, u)
        self.renewals = N_WHITENINGS if gram_set.stack.depth > 1 else 0

    def at(self, u: Array, dtype: Any = np.float64) -> DeepGram | None:
        there = DeepGram(self.gram_set, self.coordinates, u)
        extent = np.abs(there.images).max(initial=0.0)
        return there if extent <= LARGEST_IMAGE else None  # also when it is not a number

    def point(self, u: Array) -> Array:
        return flat(self.coordinates.coefficients(u))


class DeepGram(CurvedGram):
    """The deep kernel at one point [BGR19 (14)], and what its layers add to an objective."""

    def __init__(self, gram_set: ConcatenationsGramSet, coordinates: Coordinates, u: Array) -> None:
        self.family, self.stack, self.coordinates = gram_set.family, gram_set.stack, coordinates
        self.passes = self.stack.forward(coordinates, u)
        self.images = self.stack.images(self.passes)

    @cached_property
    def penalty(self) -> float:  # type: ignore[override]
        """``sum_l mu_l Theta_l(|f_l|^2)`` [BGR19 (7), (15)], and the repulsion of the images."""
        pairs = zip(self.family.penalties, self.squared_norms, strict=True)
        norms = float(self.family.mu @ np.array([theta.value(s) for theta, s in pairs]))
        return norms + (self.family.repulsion * _repulsion(self._distances) if self.family.repulsion > 0.0 else 0.0)

    @cached_property
    def squared_norms(self) -> Array:
        """``|f_l|^2`` of f_2, ..., f_L."""
        return self.stack.norms(self.passes)

    @property
    def _slopes(self) -> Array:
        """Derivatives of the penalty in the squared norms."""
        pairs = zip(self.family.penalties, self.squared_norms, strict=True)
        return self.family.mu * np.array([theta.slope(s) for theta, s in pairs])

    @cached_property
    def _distances(self) -> Array:
        return squared_distances(self.images, self.images)

    def gram(self, *, lower: bool = False) -> Array:
        return self._outer[0].copy()

    @cached_property
    def _outer(self) -> tuple[Array, Callable[[Array], Array]]:
        """K_1 on the images, and its derivative in them."""
        return self.family.layers[0].linearized(self.images)

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        sensitivity = self._outer[1](whole(M, lower))
        if self.family.repulsion > 0.0:
            Z = self.images
            sensitivity += self.family.repulsion * radial_pullback(Z, Z, _repulsion_slope(self._distances))
        return self.stack.adjoint(self.coordinates, self.passes, sensitivity, self._slopes)


def flat(coefficients: Sequence[Array]) -> Array:
    """The matrices of all layers as one vector."""
    return np.concatenate([c.ravel() for c in coefficients])


def _repulsion(distances: Array) -> float:
    """``sum_{i<j} coth(d_ij)`` of squared distances [BGR19 (12)], inf where two images coincide."""
    pairs = distances[np.triu_indices(distances.shape[0], 1)]
    with np.errstate(divide="ignore"):
        return float(np.sum(1.0 / np.tanh(pairs)))


def _repulsion_slope(distances: Array) -> Array:
    """``d coth(d) / dd = -1 / sinh(d)^2`` off the diagonal, 0 on it."""
    slope = -1.0 / np.sinh(np.clip(distances, 1e-150, 300.0)) ** 2
    np.fill_diagonal(slope, 0.0)
    return slope


def _check_layers(layers: Any) -> None:
    """Refuse fewer than two layers and things that are not kernels."""
    if len(layers) < 2:
        raise InvalidInputError(
            f"layers must hold at least two kernels, outermost first, got {len(layers)}; a single layer is an "
            "ordinary kernel method."
        )
    for kernel in layers:
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(f"layers must hold kernels, got {kernel!r}.")


def _check_mu(mu: Any, depth: int) -> Array:
    values = [mu] * depth if np.ndim(mu) == 0 else list(mu)
    if len(values) != depth:
        raise InvalidInputError(f"mu must be one number or {depth} numbers, one per inner layer, got {mu!r}.")
    return np.array([check_number("mu", value, low=0.0, open_low=True) for value in values])
