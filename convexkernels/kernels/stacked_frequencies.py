"""Spectral features of spectral features, all frequencies in one vector, on any backend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.backend import Backend
from convexkernels.kernels.frequencies import Features, SpectralMap


@dataclass(frozen=True, eq=False)
class StackedMap(SpectralMap):
    """The features of the last map at those of the map before, and so on: what is trained is one vector.

    The other attributes are those of the last map, `steps` those of the first.

    Attributes
    ----------
    omega : array of shape (number of frequencies of all maps,)
    layers : tuple of SpectralMap
        The first one meets the points; their frequencies are views of `omega`.
    unit : float
        Between two layers features are multiplied by it: the frequencies of all layers then have one size, and steps of
        training, which are relative to their root mean square, suit all of them.
    """

    layers: tuple[SpectralMap, ...] = ()
    unit: float = 1.0

    @classmethod
    def of(cls, layers: Sequence[SpectralMap], unit: float = 1.0) -> StackedMap:
        """The stack of some maps, each of as many features as the one before has components."""
        last, xp = layers[-1], layers[-1].backend.xp
        omega = xp.concat([layer.omega.reshape(-1) for layer in layers])
        known = last.phase, last.D, last.backend, last.measure, layers[0].steps
        return cls(omega, *known, tuple(layers), unit).with_omega(omega)

    @property
    def is_stationary(self) -> bool:
        return self.layers[-1].is_stationary

    def slope_units(self, columns: Array) -> Any:
        # Slopes of the other layers grow with their features, which are of the size of `unit`.
        first, *rest = self.layers
        parts = [np.repeat(columns, first.omega.shape[1])]
        parts += [np.full(math.prod(layer.omega.shape), 2.0 ** round(math.log2(self.unit))) for layer in rest]
        return self.backend.array(np.concatenate(parts))

    def with_omega(self, omega: Any) -> StackedMap:
        layers, end = [], 0
        for layer in self.layers:
            start, end = end, end + math.prod(layer.omega.shape)
            layers.append(layer.with_omega(omega[start:end].reshape(layer.omega.shape)))
        return replace(self, omega=omega, layers=tuple(layers))

    def scaled(self, sigma: float) -> StackedMap:
        """The frequencies that meet points times `sigma`; those of the other layers, in their unit, stay."""
        return StackedMap.of([layer.scaled(sigma) for layer in self.layers], self.unit / float(sigma))

    def weighed(self, factors: Array, steps: Array | None = None) -> StackedMap:
        first, *rest = self.layers
        plain = [layer.weighed(np.ones(layer.omega.shape[0])) for layer in rest]  # whose steps stay what they are, too
        return StackedMap.of([first.weighed(factors, steps), *plain], self.unit)

    def on(self, backend: Backend) -> StackedMap:
        return StackedMap.of([layer.on(backend) for layer in self.layers], self.unit)

    def size(self) -> float:
        return self.layers[0].size()

    def reach(self) -> Any:
        if self.steps is None:
            return super().reach()
        return self.backend.xp.concat([(layer.reach() + 0.0 * layer.omega).reshape(-1) for layer in self.layers])

    def __call__(self, X: Any) -> StackedFeatures:
        return StackedFeatures(self, X)


class StackedFeatures(Features):
    """Features of the last layer, and the way back through all of them by the chain rule."""

    def __init__(self, stack: StackedMap, X: Any) -> None:
        self.unit, self.layers, self.backend = stack.unit, [stack.layers[0](X)], stack.backend
        for layer in stack.layers[1:]:
            self.layers.append(layer(stack.unit * self.layers[-1].values))
        self.values = self.layers[-1].values

    def gradient(self, slope: Any) -> Any:
        return self.both_gradients(slope)[0]

    def both_gradients(self, slope: Any) -> tuple[Any, Any]:
        parts = []
        for features in reversed(self.layers):
            part, slope = features.both_gradients(slope)
            parts.append(part.reshape(-1))
            slope = self.unit * slope
        return self.backend.xp.concat(parts[::-1]), slope / self.unit


def draw_layers(n_features: int, n_components: Sequence[int], *, backend: Backend, **settings: Any) -> SpectralMap:
    """One map, or a stack of them, with as many components each; `settings` are those of `SpectralMap.draw`."""
    layers: list[SpectralMap] = []
    for D in n_components:
        width = layers[-1].width if layers else n_features
        layers.append(SpectralMap.draw(width, D, backend=backend, **settings))
    return layers[0] if len(layers) == 1 else StackedMap.of(layers)
