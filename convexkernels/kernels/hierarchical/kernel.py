"""Hierarchical Gaussian kernels: Gaussians of weighted sums of Gaussians, to any depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.validation import check_number, check_points, floats

# Squares of larger weights, times squares of features, come close to the largest float.
LARGEST_WEIGHT = 1e100


class HierarchicalGaussian(Kernel):
    """k(x, x') = exp(-gamma^-2 |Phi(x) - Phi(x')|^2), Phi the feature map of a weighted sum of kernels.

    A hierarchical Gaussian kernel [ST16 Definition 2.1]. Depth 1, the inhomogeneous Gaussian [ST16 (4)]:

        k(x, x') = exp(-gamma^-2 sum_j w_j^2 (x_j - x'_j)^2)        over the features j.

    Above, at depths 2, 3 and m [ST16 (5), (6), (7)], with children k_i that are such kernels themselves:

        k(x, x') = exp(-2 gamma^-2 sum_i w_i^2 (1 - k_i(x, x'))).

    Parameters
    ----------
    weights : array-like of shape (n_children,) or (n_features_seen,)
        w >= 0: one for each child, or at depth 1 for each feature. What has weight 0 does not count.
    children : list of HierarchicalGaussian, optional
        The kernels k_i; they may have different numbers of children, and different depths. None at depth 1.
    features : list of int, optional
        The columns that a kernel of depth 1 sees; all of them when not given.
    gamma : float, > 0
        Width. At depth 1 it has the unit of the features times that of the weights.

    Notes
    -----
    All nodes are evaluated tile by tile, each leaf by one matrix product, in as many threads as BLAS may use:
    O(m^2 (number of weights of the leaves + number of nodes)) for m points.

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import HierarchicalGaussian
    >>> first = HierarchicalGaussian([1.0, 0.5], features=[0, 1])
    >>> second = HierarchicalGaussian([2.0], features=[2])
    >>> k = HierarchicalGaussian([0.7, 0.3], [first, second])
    >>> k.depth, k(np.zeros((1, 3)), np.ones((1, 3))).round(4)
    (2, array([[0.4165]]))
    """

    def __init__(
        self,
        weights: Any,
        children: Sequence[HierarchicalGaussian] | None = None,
        features: Sequence[int] | None = None,
        gamma: float = 1.0,
    ) -> None:
        self.weights, self.children, self.features, self.gamma = weights, children, features, gamma

    @classmethod
    def from_tree(cls, tree: KernelTree, weights: Any) -> HierarchicalGaussian:
        """The kernel of a tree with a flat vector of weights (gamma = 1 everywhere)."""
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (tree.n_weights,):
            raise InvalidInputError(f"weights has shape {weights.shape}, but the tree has {tree.n_weights} in all.")
        made: list[HierarchicalGaussian] = []
        for place in tree.places:
            own = weights[place.weights].copy()
            if place.is_leaf:
                made.append(cls(own, features=list(place.features)))
            else:
                made.append(cls(own, [made[child] for child in place.children]))
        return made[-1]

    @property
    def depth(self) -> int:
        """Number of layers, 1 for an inhomogeneous Gaussian."""
        return 1 + max((child.depth for child in self.children or ()), default=0)

    @property
    def flat_weights(self) -> Array:
        """All weights divided by the gamma of their node, children before parents: the parameters of the kernel."""
        return np.concatenate([child.flat_weights for child in self.children or ()] + [self._own_weights()])

    def tree(self, n_features: int) -> KernelTree:
        """The architecture, for tables of `n_features` columns; refuses what does not fit them."""
        return KernelTree.build(self._described(n_features))

    def weight_gradient(self, X: Any, Y: Any, M: Any) -> Array:
        """Gradient of ``sum_ij M_ij k(x_i, y_j)`` with respect to `flat_weights`, by one backward pass.

        `Y` may be None for `X`. 0 for weights that are 0: the kernel depends on their squares. [ST16 Lemma 4.1], with
        the factor k that is missing in the second formula as printed: for a weight w inside child j,
        ``dk/dw = 2 gamma^-2 w_j^2 (dk_j/dw) k``.
        """
        X = check_points(X)
        Z = None if Y is None else check_points(Y, name="Y", n_features=X.shape[1])
        weights = self.flat_weights
        evaluation = TreeEvaluation(self.tree(X.shape[1]), weights**2, X, Z)
        M = np.asarray(M, dtype=np.float64)
        if M.shape != evaluation.shape:
            raise InvalidInputError(f"M has shape {M.shape}, but the kernel matrix has shape {evaluation.shape}.")
        slopes = evaluation.gradient(M)
        return np.divide(slopes, weights, out=np.zeros_like(slopes), where=weights > 0.0)

    def _gram(self, X: Array, Y: Array) -> Array:
        evaluation = TreeEvaluation(self.tree(X.shape[1]), self.flat_weights**2, X, None if Y is X else Y)
        return np.asarray(evaluation.gram())

    def squared_distances(self, X: Array, Y: Array) -> Array:
        evaluation = TreeEvaluation(self.tree(X.shape[1]), self.flat_weights**2, X, Y)
        D = -evaluation.gram(exponent=True)
        return np.maximum(D, 0.0, out=D)

    def distances_from(self, X: Array) -> Callable[[int], Array]:
        evaluation = TreeEvaluation(self.tree(X.shape[1]), self.flat_weights**2, X)
        return lambda i: np.maximum(-evaluation.exponents_of(i), 0.0)

    def blocks(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Callable[[slice, slice], Any]:
        X = check_points(X)
        return TreeEvaluation(self.tree(X.shape[1]), self.flat_weights**2, X, dtype=dtype, device=device).block

    def _diag(self, X: Array) -> Array:
        self._described(X.shape[1])
        return np.ones(X.shape[0])

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return np.asarray(TreeEvaluation(self.tree(X.shape[1]), self.flat_weights**2, X, Y).pullback(M))

    def _own_weights(self) -> Array:
        """The weights of this node over gamma, or a refusal."""
        gamma = check_number("gamma", self.gamma, low=0.0, open_low=True)
        weights = floats("weights", self.weights)
        if weights.ndim != 1 or not weights.size:
            raise InvalidInputError(f"weights must be a vector of at least one number, got shape {weights.shape}.")
        with np.errstate(over="ignore"):
            scaled = weights / gamma
        bad = ~((weights >= 0.0) & (scaled <= LARGEST_WEIGHT))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise InvalidInputError(
                f"weights must be >= 0, and at most {LARGEST_WEIGHT:g} over gamma, got {weights[i]} at position {i}; "
                "only their squares count, so negative ones can be replaced by their absolute values."
            )
        return scaled

    def _described(self, n_features: int) -> list[Any]:
        """The nested description that makes a tree."""
        weights = self._own_weights()
        if self.children is not None:
            if self.features is not None:
                raise InvalidInputError("a node has either children or features, not both; leave one of them None.")
            if len(self.children) != len(weights):
                raise InvalidInputError(
                    f"weights has {len(weights)} entries, but there are {len(self.children)} children; pass one weight "
                    "per child."
                )
            for child in self.children:
                if not isinstance(child, HierarchicalGaussian):
                    raise InvalidInputError(f"children must be HierarchicalGaussian kernels, got {child!r}.")
            return [child._described(n_features) for child in self.children]
        features = list(range(n_features)) if self.features is None else list(self.features)
        check_features(features, n_features)
        if len(features) != len(weights):
            raise InvalidInputError(
                f"weights has {len(weights)} entries, but the node sees {len(features)} features; pass one weight per "
                "feature."
            )
        return [int(feature) for feature in features]


def check_features(features: Sequence[Any], n_features: int, *, name: str = "features") -> None:
    """Refuse feature subsets that are empty, repeat a feature or name one that a table does not have."""
    if not len(features):
        raise InvalidInputError(f"{name} is empty; a node has to see at least one feature.")
    for feature in features:
        if not isinstance(feature, int | np.integer) or isinstance(feature, bool) or not 0 <= feature < n_features:
            raise InvalidInputError(
                f"{name} names the unknown feature {feature!r}; features are columns 0, ..., {n_features - 1}."
            )
    if len(set(features)) < len(features):
        raise InvalidInputError(f"{name} repeats a feature: {list(features)}.")
