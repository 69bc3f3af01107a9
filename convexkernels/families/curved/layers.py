"""The inner layers f_2, ..., f_L of a concatenation: images of the data, norms, and their adjoint.

Layer l is ``f_l = sum_i K_l(z_i, .) c_i`` at the images z_i of the data under the layers inside it
[BGR19 Theorem 1]. The search does not move the coefficients c but whitened
coordinates u with ``c = W u``, where ``W' K W = I`` at a reference point: for the innermost layer,
whose Gram matrix never changes, the norm is then exactly ``|u|^2``, and directions the kernel cannot
see drop out (an affine inner kernel on the plane has 3 unknowns per output instead of N).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels import Kernel, KernelMap
from convexkernels.linalg import eigh, pivoted_cholesky
from convexkernels.validation import check_number, check_whole_number

# Eigenvalues below this fraction of the largest are round-off of the kernel matrix.
RANK_TOLERANCE = 1e-12
# The Gram matrix of an intermediate layer moves with the images inside it, and whitening multiplies its
# changes by the reciprocals of the eigenvalues: the search stays well conditioned only without the smallest.
INTERMEDIATE_RANK_TOLERANCE = 1e-6
# A rank is low where it is so many times less than the number of rows, and clear where no eigenvalue of another
# direction is below this fraction of the largest.
LOW_RANK, CLEAR = 8, 1e-6
# A matrix whose largest eigenvalue is not above it is zero.
TINY = float(np.finfo(np.float64).tiny) * 1e20


@dataclass(frozen=True)
class Coordinates:
    """Whitening of every inner layer at a reference point: matrices W, shape (m, rank), outermost first."""

    bases: tuple[Array, ...]
    widths: tuple[int, ...]

    def split(self, u: Array) -> list[Array]:
        """Cut the vector of unknowns into one matrix (rank, width) per layer."""
        parts, at = [], 0
        for W, width in zip(self.bases, self.widths, strict=True):
            parts.append(u[at : at + W.shape[1] * width].reshape(W.shape[1], width))
            at += W.shape[1] * width
        return parts

    def coefficients(self, u: Array) -> tuple[Array, ...]:
        """The coefficients c of every layer, shapes (m, width): independent of the coordinates."""
        return tuple(W @ part for W, part in zip(self.bases, self.split(u), strict=True))


@dataclass
class Pass:
    """One layer at one point: the derivative of K in its input images (of all but the innermost layer), K W, u, W u and
    the output before the weights.
    """  # noqa: D205

    slope: Callable[[Array], Array] | None
    basis_gram: Array
    u: Array
    c: Array
    output: Array


class LayerStack:
    """The kernels of the inner layers on the training points, and everything derived from them alone.

    Kernels K_2, ..., K_L, output dimensions (one number, or one per layer) and the diagonals a of the matrix-valued
    kernels ``K_l diag(a)`` (one vector per layer) come outermost first.
    """

    def __init__(self, kernels: Sequence[Kernel], X: Array, widths: Any, weights: Any = None) -> None:
        self.kernels = tuple(kernels)
        self.widths = _check_widths(widths, len(self.kernels))
        self.scales = _check_weights(weights, self.widths)
        self._prepare(X)

    def _prepare(self, X: Array) -> None:
        self.X = X
        self.innermost_gram = self.kernels[-1](X)
        self.innermost_basis = whiten(self.innermost_gram)
        if self.innermost_basis.shape[1] == 0:
            raise InvalidInputError(
                f"the innermost kernel {self.kernels[-1]!r} is numerically zero on X (rank 0), so every point has the "
                "same image; choose another kernel or rescale X."
            )
        self.innermost_basis_gram = self.innermost_gram @ self.innermost_basis

    def at(self, X: Array) -> LayerStack:
        """Return the same layers on other points."""
        other = copy.copy(self)
        other._prepare(X)
        return other

    @property
    def depth(self) -> int:
        """Number of inner layers, L - 1."""
        return len(self.kernels)

    def build(self, choose: Callable[[int, Array, Array, Array], Array]) -> tuple[Coordinates, Array]:
        """Whiten layer by layer from the inside, asking for the unknowns of each layer on the way.

        ``choose(layer, points, gram, basis)`` are those u, shape (rank, width), with layer 0 the outermost.
        """
        bases: list[Array] = []
        parts: list[Array] = []
        points = self.X
        for layer in reversed(range(self.depth)):
            if layer == self.depth - 1:
                gram, basis = self.innermost_gram, self.innermost_basis
            else:
                gram = self.kernels[layer](points)
                basis = whiten(gram, INTERMEDIATE_RANK_TOLERANCE)
            part = choose(layer, points, gram, basis)
            points = (gram @ (basis @ part)) * self.scales[layer]
            bases.insert(0, basis)
            parts.insert(0, part)
        return Coordinates(tuple(bases), self.widths), np.concatenate([part.ravel() for part in parts])

    def coordinates_at(self, coefficients: Sequence[Array]) -> tuple[Coordinates, Array]:
        """Whiten at given coefficients; the functions stay the same up to the rank tolerance."""
        return self.build(lambda layer, points, gram, basis: basis.T @ (gram @ coefficients[layer]))

    def forward(self, coordinates: Coordinates, u: Array) -> list[Pass]:
        """Evaluate the layers, innermost first; the images g(X) are the last output times its scale."""
        passes: list[Pass] = []
        points, parts = self.X, coordinates.split(u)
        for layer in reversed(range(self.depth)):
            basis, part = coordinates.bases[layer], parts[layer]
            if layer == self.depth - 1:
                passes.append(Pass(None, self.innermost_basis_gram, part, part, self.innermost_basis_gram @ part))
            else:
                gram, slope = self.kernels[layer].linearized(points)
                basis_gram = gram @ basis
                passes.append(Pass(slope, basis_gram, part, basis @ part, basis_gram @ part))
            points = passes[-1].output * self.scales[layer]
        return passes

    def images(self, passes: list[Pass]) -> Array:
        """The images g(X) of the training points, shape (m, width of f_2)."""
        return passes[-1].output * self.scales[0]

    def norms(self, passes: list[Pass]) -> Array:
        """Squared norms of the layers, outermost first [BGR19 (15)]."""
        norms = [np.vdot(p.c, p.output) for p in passes[1:]]
        return np.array([np.vdot(passes[0].u, passes[0].u), *norms])[::-1]

    def adjoint(self, coordinates: Coordinates, passes: list[Pass], sensitivity: Array, mu: Array) -> Array:
        """Gradient in u of ``<sensitivity, g(X)> + sum_l mu_l |f_l|^2`` with `sensitivity` and `mu` held fixed.

        One backward sweep from the outermost layer: O(m^2 (rank + width)) per layer.
        """
        parts: list[Array] = []
        for layer, p in enumerate(reversed(passes)):
            weighted = sensitivity * self.scales[layer]
            if p.slope is None:
                parts.append(p.basis_gram.T @ weighted + 2.0 * mu[layer] * p.u)
                break
            basis = coordinates.bases[layer]
            parts.append(p.basis_gram.T @ weighted + 2.0 * mu[layer] * (basis.T @ p.output))
            # The layer's own Gram matrix depends on the images inside it, on both of its sides.
            gram_sensitivity = (weighted + mu[layer] * p.c) @ p.c.T
            sensitivity = p.slope(0.5 * (gram_sensitivity + gram_sensitivity.T))
        return np.concatenate([part.ravel() for part in parts])

    def maps(self, coefficients: Sequence[Array]) -> list[KernelMap]:
        """The layers as functions that can be evaluated anywhere, outermost first."""
        maps: list[KernelMap] = []
        points = self.X
        for layer in reversed(range(self.depth)):
            kernel_map = KernelMap(self.kernels[layer], points, coefficients[layer] * self.scales[layer])
            maps.insert(0, kernel_map)
            if layer > 0:
                points = kernel_map(points)
        return maps


def whiten(gram: Array, tolerance: float = RANK_TOLERANCE) -> Array:
    """Matrix W with ``W' gram W = I`` on the numerical range of `gram`, shape (m, rank).

    The rank of polynomials is small on many rows: O(m rank^2) then, in the place of O(m^3).
    """
    found = _of_low_rank(gram)
    if found is not None:
        return found
    values, vectors = eigh(gram)
    keep = values > tolerance * max(float(values[-1]), 0.0)
    if values[-1] <= TINY:
        keep[:] = False
    return np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))


def _of_low_rank(gram: Array) -> Array | None:
    """The same by a factor ``gram = Z Z'``, where few columns are enough and none of them is in doubt."""
    most = len(gram) // LOW_RANK
    if most == 0:
        return None
    Z, _ = pivoted_cholesky(lambda rows: gram[rows], gram.diagonal(), most, 0.0)
    squares, V = eigh(Z.T @ Z)
    is_clear = squares.min(initial=np.inf) > max(CLEAR * squares.max(initial=0.0), TINY)
    return np.ascontiguousarray(Z @ (V / squares)) if is_clear and len(squares) < most else None


def _check_widths(widths: Any, depth: int) -> tuple[int, ...]:
    if np.ndim(widths) == 0:
        widths = [widths] * depth
    if len(widths) != depth:
        raise InvalidInputError(
            f"widths must be one number or {depth} numbers, one per inner layer (outermost first), got {widths!r}."
        )
    return tuple(check_whole_number("widths", width, low=1) for width in widths)


def _check_weights(weights: Any, widths: tuple[int, ...]) -> tuple[Array, ...]:
    """Square roots of the weights: with them in front, the whitened norm is ``|u|^2`` for every a."""
    if weights is None:
        return tuple(np.ones(width) for width in widths)
    if len(weights) != len(widths):
        raise InvalidInputError(f"weights must be {len(widths)} vectors, one per inner layer, got {len(weights)}.")
    scales = []
    for a, width in zip(weights, widths, strict=True):
        vector = [check_number("weights", float(entry), low=0.0, open_low=True) for entry in np.ravel(a)]
        if len(vector) != width:
            raise InvalidInputError(f"weights of a layer of width {width} must be {width} numbers, got {len(vector)}.")
        scales.append(np.sqrt(vector))
    return tuple(scales)
