"""Penalties of the weights W, each with its proximal step; on any backend."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.backend import Backend


@dataclass(frozen=True)
class Penalty(ABC):
    """A convex function of W, shape (width, K), of weight lam1."""

    weight: float

    @abstractmethod
    def value(self, W: Any, backend: Backend) -> float:
        """The penalty at W."""

    @abstractmethod
    def proximal(self, W: Any, step: float, backend: Backend) -> Any:
        """The minimizer over V of ``|V - W|_F^2 / 2 + step * penalty(V)``."""

    @abstractmethod
    def as_ridge(self, W: Array) -> float:
        """The weight of ``|W|_F^2`` that pulls as hard at W, along it."""


@dataclass(frozen=True)
class FrobeniusNorm(Penalty):
    """``weight * |W|_F^2``."""

    def value(self, W: Any, backend: Backend) -> float:
        return self.weight * float(backend.xp.sum(W * W))

    def proximal(self, W: Any, step: float, backend: Backend) -> Any:
        return W / (1.0 + 2.0 * step * self.weight)

    def as_ridge(self, W: Array) -> float:
        return self.weight


@dataclass(frozen=True)
class TraceNorm(Penalty):
    """``weight * |W|_*``, the sum of the singular values."""

    def value(self, W: Any, backend: Backend) -> float:
        return self.weight * float(backend.xp.sum(backend.xp.linalg.svd(W, full_matrices=False)[1]))

    def proximal(self, W: Any, step: float, backend: Backend) -> Any:
        return shrink_singular_values(W, step * self.weight, backend)

    def as_ridge(self, W: Array) -> float:
        sigma = np.linalg.svd(W, compute_uv=False)
        return self.weight * float(sigma.sum()) / max(2.0 * float((sigma**2).sum()), 1e-300)


def shrink_singular_values(W: Any, threshold: float, backend: Backend) -> Any:
    """U diag(max(sigma - threshold, 0)) V', the proximal step of ``threshold |W|_*`` [LLW20 (8), Proposition 1].

    W has few columns, so V and sigma are read from the small matrix W'W in float64: singular values are exact to
    1e-8 of the largest one, which is less than what float32 keeps of W.
    """
    if threshold <= 0.0 or W.shape[1] == 0:
        return W
    xp = backend.xp
    wide = W.shape[1] > W.shape[0]
    tall = xp.astype(W.T if wide else W, backend.double)
    products = tall.T @ tall
    if not bool(xp.all(xp.isfinite(products))):
        return W  # nothing has singular values any more; whoever trains sees that W is not finite
    squares, V = xp.linalg.eigh(products)
    kept = squares > threshold**2
    shares = xp.where(kept, 1.0 - threshold / xp.sqrt(xp.where(kept, squares, 1.0)), 0.0)
    shrunk = tall @ ((V * shares) @ V.T)
    return xp.astype(shrunk.T if wide else shrunk, W.dtype)
