"""Trees of Gaussian kernels: architectures without weights, which come as one flat vector, children before parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Place:
    """One node of a tree.

    Attributes
    ----------
    features : tuple of int
        What a leaf sees; empty above the leaves.
    children : tuple of int
        Places of the children, all smaller than the own place; empty for a leaf.
    weights : slice
        Where the weights of the features or of the children are in the flat vector.
    """

    features: tuple[int, ...]
    children: tuple[int, ...]
    weights: slice

    @property
    def is_leaf(self) -> bool:
        """Whether the node looks at features."""
        return not self.children


@dataclass(frozen=True)
class KernelTree:
    """An architecture: nodes in an order in which children come before their parents; the root is last.

    It has the depth of its kernels [ST16 Definition 2.1].
    """

    places: tuple[Place, ...]

    @classmethod
    def build(cls, description: Any) -> KernelTree:
        """Make a tree from nested sequences: whole numbers are features, sequences of sequences are inner nodes.

        ``[0, 2]`` is a leaf, ``[[0, 1], [1, 2]]`` a tree of depth 2 with two nodes on the first layer.
        """
        places: list[Place] = []
        count = 0

        def add(node: Sequence[Any]) -> int:
            nonlocal count
            features: tuple[int, ...] = ()
            children: tuple[int, ...] = ()
            if all(isinstance(part, int | np.integer) for part in node):
                features = tuple(int(part) for part in node)
            else:
                children = tuple(add(part) for part in node)
            places.append(Place(features, children, slice(count, count + len(node))))
            count += len(node)
            return len(places) - 1

        add(description)
        return cls(tuple(places))

    @property
    def n_weights(self) -> int:
        """Length of the flat vector of weights."""
        return max(place.weights.stop for place in self.places)

    @property
    def depth(self) -> int:
        """Number of layers."""
        depths: list[int] = []
        for place in self.places:
            depths.append(1 + max((depths[child] for child in place.children), default=0))
        return depths[-1]

    @property
    def leaves(self) -> list[int]:
        """Places of the first layer."""
        return [i for i, place in enumerate(self.places) if place.is_leaf]

    @cached_property
    def parents(self) -> tuple[tuple[int, int], ...]:
        """For every place, its parent and the index of its own weight in the flat vector; (-1, -1) for the root."""
        found = [(-1, -1)] * len(self.places)
        for i, place in enumerate(self.places):
            for position, child in enumerate(place.children):
                found[child] = (i, place.weights.start + position)
        return tuple(found)
