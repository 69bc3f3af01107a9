"""Many Gram matrices by their features: memory and time in proportion to the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index, distinct_rows
from convexkernels.factored import CombinedFeatures
from convexkernels.families.stacks.base import GramStack
from convexkernels.kernels.base import Kernel, as_kernel
from convexkernels.kernels.normalized import Normalized
from convexkernels.kernels.nystrom import Nystrom
from convexkernels.validation import check_memory, check_points, check_whole_number

# Rows whose features are made at once.
CHUNK = 4096


class FactoredStack(GramStack):
    """``K_k = Phi_k Phi_k'`` with the features Phi_k of kernels that have some, in float64."""

    def __init__(self, kernels: Sequence[Kernel], X: Array, memory_limit: float | None) -> None:
        self.kernels, self.X = kernels, X
        self.l, self.m = len(kernels), len(X)
        self.scales = np.ones(self.l)
        widths = [features(X[:1]).shape[1] for features in self.maps]
        check_memory(
            8.0 * self.m * (sum(widths) + max(widths)),
            memory_limit,
            what=f"{sum(widths)} features of {self.l} candidate kernels on {self.m} rows",
            remedy="Use fewer landmarks or a larger memory_limit.",
        )
        self.widths = widths

    @cached_property
    def maps(self) -> list[Callable[[Array], Array]]:
        """Feature maps of all kernels."""
        return [_feature_map(kernel) for kernel in self.kernels]

    @cached_property
    def parts(self) -> list[Array]:
        """Features of every kernel, shapes (m, widths[k])."""
        parts = [np.empty((self.m, width)) for width in self.widths]
        for start in range(0, self.m, CHUNK):
            rows = slice(start, start + CHUNK)
            for features, part in zip(self.maps, parts, strict=True):
                part[rows] = features(self.X[rows])
        return parts

    def _keep(self, places: list[int]) -> None:
        self.kernels, self.widths = [self.kernels[k] for k in places], [self.widths[k] for k in places]
        for name in ("maps", "parts"):
            if known := self.__dict__.get(name):
                self.__dict__[name] = [known[k] for k in places]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("maps", "parts")}

    def release(self) -> None:
        """Forget the features until they are used again."""
        self.__dict__.pop("parts", None)

    def factored(self, weights: Array) -> CombinedFeatures:
        """``sum_k weights[k] scales[k] K_k`` by its features, for weights >= 0."""
        active = np.flatnonzero(weights > 0.0)
        factors = np.sqrt(weights[active] * self.scales[active])
        return CombinedFeatures(self.m, [self.parts[k] for k in active], factors)

    def seen_by_landmarks(self, weights: Array) -> Iterator[tuple[Array, Array]]:
        """As the method of a `GramSet`; kernels that have features of their own are seen as they are."""
        active = np.flatnonzero(weights > 0.0)
        for start in range(0, self.m, CHUNK):
            X, left, parts = self.X[start : start + CHUNK], 0.0, []
            for k in active.tolist():
                features, factor = self.maps[k](X), weights[k] * self.scales[k]
                left = left + factor * _unseen(self.kernels[k], X, features)
                parts.append(np.sqrt(factor) * features)
            yield np.asarray(left), np.concatenate(parts, axis=1)

    def compressed(self, weights: Array, W: Array) -> tuple[Index, Array]:
        """Which kernels count, and the functions ``sum_i W_ki k(x_i, .)`` by coefficients of their features."""
        active = np.flatnonzero(weights > 0.0)
        parts = [weights[k] * self.scales[k] * (W @ self.parts[k]) for k in active.tolist()]
        return active, np.concatenate([np.zeros((len(W), 0)), *parts], axis=1)

    def agree(self, first: int, second: int) -> bool:
        """On some rows, those of equal marks being the same already but for a coincidence."""
        one, other = (self.scales[k] * (self.parts[k][:CHUNK] @ self.parts[k][:CHUNK].T) for k in (first, second))
        return bool(np.abs(one - other).max() <= 1e-12 * np.abs(one).max())

    def combine(self, weights: Array, out: Array) -> Array:
        out[...] = 0.0
        for k in np.flatnonzero(weights).tolist():
            out += weights[k] * self.scales[k] * (self.parts[k] @ self.parts[k].T)
        return out

    def weigh(self, W: Array) -> Array:
        return self.scales * np.array([np.square(W @ part).sum() for part in self.parts])

    def pullback(self, M: Array) -> Array:
        return self.scales * np.array([np.vdot(part, M @ part) for part in self.parts])

    def apply(self, w: Array, rows: Index) -> Array:
        return self.scales * np.array([part[rows] @ (w @ part) for part in self.parts]).T

    def diagonals(self) -> Array:
        return self.scales[:, None] * np.array([np.square(part).sum(axis=1) for part in self.parts])


@dataclass(frozen=True, eq=False)
class OnFeatures:
    """The features of some kernels in the place of a matrix between points."""

    kernels: Sequence[Kernel]

    def cross(self, theta: Array, Z: Any) -> Array:
        """Features of new points, side by side."""
        Z = check_points(Z)
        return np.concatenate([_feature_map(kernel)(Z) for kernel in self.kernels], axis=1)


def _feature_map(kernel: Kernel) -> Callable[[Array], Array]:
    features = kernel.feature_map()
    assert features is not None, kernel
    return features


def _unseen(kernel: Kernel, X: Array, features: Array) -> Array:
    """Squared distances of the images of points from the span of landmarks, where there are any."""
    inner = kernel.kernel if isinstance(kernel, Normalized) else kernel
    if not isinstance(inner, Nystrom):
        return np.zeros(len(X))
    whole = as_kernel(inner.kernel)._diag(X)
    if inner is kernel:
        return np.maximum(whole - np.square(features).sum(axis=1), 0.0)
    return np.maximum(1.0 - np.divide(inner._diag(X), whole, out=np.ones(len(X)), where=whole > 0.0), 0.0)


def check_landmarks(landmarks: Any) -> int | Array | None:
    """A number of landmarks, the landmarks, or None."""
    if landmarks is None:
        return None
    if np.ndim(landmarks) == 0:
        return check_whole_number("landmarks", landmarks, low=1)
    return check_points(landmarks, name="landmarks")


def landmark_rows(X: Array, landmarks: int | Array) -> Array:
    """Landmarks; a number of them is drawn among the rows, always the same."""
    if isinstance(landmarks, int):
        order = np.random.default_rng(0).permutation(len(X))
        return distinct_rows(X[order[:landmarks]])[0]
    return check_points(landmarks, name="landmarks", n_features=X.shape[1])


def with_landmarks(kernels: Sequence[Kernel], X: Array, landmarks: int | Array) -> list[Kernel]:
    """Kernels by what landmarks see of them."""
    rows = landmark_rows(X, landmarks)
    return [kernel if kernel.feature_map() is not None else Nystrom(kernel, rows) for kernel in kernels]
