"""Hierarchical Gaussian kernels evaluated straight from [ST16 Definition 2.1], one pair of points at a time.

Weights may be complex, so that derivatives can be taken by the complex step without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index

EPS = float(np.finfo(np.float64).eps)


@dataclass(eq=False)
class Node:
    """One kernel of the tree.

    Parameters
    ----------
    w : ndarray
        Weights: of the features `columns` at depth 1 (v of equation (4), gamma consumed), of the children above.
    columns : ndarray of int
        Features a node of depth 1 sees; empty above.
    children : list of Node
    gamma : float
        Width; 1 below the top.
    """

    w: NDArray[Any]
    columns: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    children: list[Node] = field(default_factory=list)
    gamma: float = 1.0

    @property
    def depth(self) -> int:
        """Number of layers."""
        return 1 + max((child.depth for child in self.children), default=0)


def evaluate(node: Node, x: Array, z: Array) -> Any:
    """k(x, z) by [ST16 (4)] at depth 1 and by [ST16 (5), (6), (7)] above."""
    if not node.children:
        return np.exp(-np.sum(node.w**2 * (x[node.columns] - z[node.columns]) ** 2))
    distance = sum(w**2 * (1.0 - evaluate(child, x, z)) for w, child in zip(node.w, node.children, strict=True))
    return np.exp(-2.0 / node.gamma**2 * distance)


def random_tree(rng: np.random.Generator, depth: int, n: int, *, features: Any = None, gamma: float = 1.0) -> Node:
    """A kernel of the given depth whose nodes have different numbers of children.

    The feature sets of the children cover `features` (all of them when not given).
    """
    features = np.arange(n) if features is None else np.asarray(features)
    if depth == 1:
        return Node(rng.uniform(0.3, 1.2, features.size) / gamma, features)
    count = int(rng.integers(1, 4))
    owner = rng.integers(0, count, features.size)
    sets = [features[(owner == i) | (rng.random(features.size) < 0.4)] for i in range(count)]
    children = [random_tree(rng, depth - 1, n, features=part) for part in sets if part.size]
    return Node(rng.uniform(0.3, 1.2, len(children)), children=children, gamma=gamma)


def weights_of(node: Node) -> list[tuple[Node, int]]:
    """Every weight of the tree, as its node and its position."""
    own = [(node, i) for i in range(node.w.size)]
    return own + [place for child in node.children for place in weights_of(child)]


def operations(node: Node) -> int:
    """Floating point operations of one evaluation: three per weight and four per node."""
    return 3 * node.w.size + 4 + sum(operations(child) for child in node.children)


def complex_step(node: Node, owner: Node, position: int, x: Array, z: Array) -> float:
    """dk/dw by ``imag k(w + ih) / h``, exact to rounding because no difference is formed."""
    kept, h = owner.w, 1e-30
    owner.w = kept.astype(np.complex128)
    owner.w[position] += 1j * h
    try:
        return float(np.imag(evaluate(node, x, z)) / h)
    finally:
        owner.w = kept
