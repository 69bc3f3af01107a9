"""Hierarchical Gaussian kernels of one architecture, by the logarithms of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.backend import device_name
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.base import CurvedFamily, CurvedGram, CurvedGramSet
from convexkernels.families.curved.widths import as_groups, check_groups, weights_of
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.beside_ranks import BesideRanks, beside_ranks
from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian, check_features
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.validation import check_points, check_whole_number

# Section 5: inhomogeneous Gaussian kernels, and depth 2 with 4 to 16 nodes on the first layer.
PAPER_ARCHITECTURES: tuple[int, ...] = (1, 4, 6, 8, 10, 12, 16)
# Mean exponents of the leaves at the start are spread over this range, so that the nodes see different scales.
FIRST_RATES = (0.3, 3.0)
# Factors of these rates with which a search may begin where functions change more quickly.
NARROWER = (4.0, 16.0, 64.0)
# Larger weights make every node that has one a Kronecker delta on scaled features.
LARGEST_LOG = 8.0


class Trees(CurvedFamily):
    """Hierarchical Gaussian kernels [ST16 (7)]; z holds log w of every weight, children before parents.

    Parameters
    ----------
    architecture : KernelTree, int >= 1 or nested list
        A number of nodes on the first layer: 1 is the inhomogeneous Gaussian kernel (depth 1), more are the children of
        a tree of depth 2. Or the tree itself, to any depth: whole numbers are features, lists of lists inner nodes, for
        example ``[[0, 1], [[2], [0, 2]]]``.
    subsets : {"all", "random"} or list of lists of int
        What the nodes of a numbered architecture see: every feature; half of them, drawn so that each is seen; or
        groups of features, of which the nodes take turns.
    random_state : int, numpy.random.Generator or None
        For random subsets.
    device : str or torch.device, optional
        A device of PyTorch, for example "cuda", that evaluates matrices and their derivatives; numpy when not given.
        Criteria and losses are met by numpy.
    ranks_of : array-like of shape (n_values, n_features), optional
        A table: what nodes see are the features and then, as more of them, their ranks in it; see
        :class:`BesideRanks`.
    tied : sequence of lists of int
        Features that share one weight in each node, such as the indicators of one column of categories: a node then
        sees whether two rows are of one category, and how much that matters is one number.

    Raises
    ------
    InvalidInputError
        Where an argument is none of these, or on points that do not have the features it names.
    """

    def __init__(
        self,
        architecture: Any = 8,
        subsets: Any = "all",
        random_state: Any = None,
        device: Any = None,
        ranks_of: Any = None,
        tied: Sequence[Sequence[int] | Index] = (),
    ) -> None:
        self.architecture, self.subsets, self.random_state = architecture, subsets, random_state
        self.device, self.ranks_of, self.tied = device_name(device), ranks_of, as_groups(tied)

    def __repr__(self) -> str:
        ranks = "" if self.ranks_of is None else f", ranks_of=<{' x '.join(map(str, np.shape(self.ranks_of)))}>"
        tied = f", tied={self.tied}" if self.tied else ""
        return f"Trees({self.architecture!r}, subsets={self.subsets!r}{ranks}{tied})"

    def on(self, X: Array) -> TreesGramSet:
        tree, ranks_of = self.architecture, self.ranks_of
        check_groups(self.tied, X.shape[1])
        if ranks_of is not None:
            ranks_of = check_points(ranks_of, name="ranks_of", n_features=X.shape[1])
            X = beside_ranks(X, ranks_of)
        if not isinstance(tree, KernelTree):
            tree = make_tree(tree, X.shape[1], self.subsets, np.random.default_rng(self.random_state))
        return TreesGramSet(tree, X, self.device, ranks_of, self.tied)


class TreesGramSet(CurvedGramSet):
    """Gram matrices of the kernels of one tree, on features that may end with their ranks in a table."""

    def __init__(
        self, tree: KernelTree, X: Array, device: str | None, ranks_of: Array | None, tied: Sequence[Sequence[int]]
    ) -> None:
        super().__init__(tree, X)
        self.tree, self.device, self.ranks_of, self.tied = tree, device, ranks_of, tied
        self.weight_of = tied_weights(tree, X.shape[1], tied)
        self.n_unknowns = int(self.weight_of.max()) + 1

    def restrict(self, rows: Index) -> TreesGramSet:
        return TreesGramSet(self.tree, self.X[rows], self.device, self.ranks_of, self.tied)

    def start(self, rng: np.random.Generator, k: int = 0) -> Array:
        firsts = np.unique(self.weight_of, return_index=True)[1]
        z = start_weights(self.tree, self.X, rng, tied=self.tied)[firsts]
        if not z.max() <= LARGEST_LOG:
            raise InvalidInputError(
                f"features vary so little that weights for them are e^{z.max():.3g}, and at most e^{LARGEST_LOG:g} are "
                "searched; rescale the features, to [-1, 1] for example."
            )
        return z

    def narrower(self, z: Array) -> list[Array]:
        of_leaves = np.zeros(self.n_unknowns, dtype=bool)
        for i in self.tree.leaves:
            of_leaves[self.weight_of[self.tree.places[i].weights]] = True
        found = [z + 0.5 * np.log(rate) * of_leaves for rate in NARROWER]
        return [other for other in found if other.max() <= LARGEST_LOG]

    def at(self, z: Array, dtype: Any = np.float64) -> TreeAt | None:
        if not np.isfinite(z).all() or z.max() > LARGEST_LOG:
            return None
        squares = np.exp(2.0 * z)[self.weight_of]
        return TreeAt(TreeEvaluation(self.tree, squares, self.X, dtype=dtype, device=self.device), self.weight_of)

    def kernel(self, z: Array) -> Kernel:
        kernel = HierarchicalGaussian.from_tree(self.tree, np.exp(z)[self.weight_of])
        return kernel if self.ranks_of is None else BesideRanks(kernel, self.ranks_of)


class TreeAt(CurvedGram):
    """One kernel of a tree on the points."""

    def __init__(self, evaluation: TreeEvaluation, weight_of: Index) -> None:
        self.evaluation, self.weight_of = evaluation, weight_of

    def gram(self, *, lower: bool = False) -> Array:
        return np.asarray(self.evaluation.gram(lower=lower))

    def gradient(self, M: Array, *, lower: bool = False) -> Array:
        return np.asarray(np.bincount(self.weight_of, self.evaluation.gradient(M, lower=lower)), dtype=np.float64)


def make_tree(architecture: Any, n_features: int, subsets: Any = "all", rng: Any = None) -> KernelTree:
    """The tree of an architecture and subsets, as in :class:`Trees`, on tables of `n_features` columns.

    Depths below 1, empty subsets and unknown features are refused.
    """
    if not isinstance(architecture, int | np.integer) or isinstance(architecture, bool):
        _check_description(architecture, n_features)
        return KernelTree.build(architecture)
    count = check_whole_number(
        "architecture", architecture, low=1, remedy="1 is a kernel of depth 1; no kernel has depth 0."
    )
    if isinstance(subsets, str):
        if subsets not in ("all", "random"):
            raise InvalidInputError(f"subsets must be 'all', 'random' or a list of feature groups, got {subsets!r}.")
        leaves = [list(range(n_features))] * count
        if subsets == "random" and count > 1:
            leaves = _random_subsets(count, n_features, np.random.default_rng(rng))
    else:
        if not len(subsets):
            raise InvalidInputError("subsets is empty; pass at least one group of features.")
        for group in subsets:
            check_features(group, n_features, name="a group of subsets")
        leaves = [list(subsets[i % len(subsets)]) for i in range(count)]
    return KernelTree.build(leaves if count > 1 else leaves[0])


def _check_description(node: Any, n_features: int) -> None:
    if isinstance(node, str) or not hasattr(node, "__len__"):
        raise InvalidInputError(
            f"architecture must be a number of nodes >= 1 or a nested list of features, got {node!r} in it."
        )
    numbers = [isinstance(part, int | np.integer) for part in node]
    if all(numbers):
        check_features(node, n_features, name="a leaf of the architecture")
    elif any(numbers):
        raise InvalidInputError(
            f"a node of the architecture holds either features or nodes, got both: {node!r}; wrap single features in a "
            "list."
        )
    else:
        for part in node:
            _check_description(part, n_features)


def _random_subsets(count: int, n_features: int, rng: np.random.Generator) -> list[list[int]]:
    size = -(-n_features // 2)
    chosen = [set(rng.choice(n_features, size, replace=False).tolist()) for _ in range(count)]
    for feature in range(n_features):
        if not any(feature in subset for subset in chosen):
            chosen[int(rng.integers(count))].add(feature)
    return [sorted(subset) for subset in chosen]


def tied_weights(tree: KernelTree, n_features: int, tied: Sequence[Sequence[int]]) -> Index:
    """Which unknown each weight of a tree is, where features of a group share one in each leaf."""
    group_of, first = weights_of(n_features, tied), np.arange(tree.n_weights)
    for place in map(tree.places.__getitem__, tree.leaves):
        firsts, inverse = np.unique(group_of[list(place.features)], return_index=True, return_inverse=True)[1:]
        first[place.weights] = place.weights.start + firsts[inverse]
    return np.unique(first, return_inverse=True)[1].astype(np.intp)


def start_weights(
    tree: KernelTree,
    X: Array,
    rng: np.random.Generator,
    spread: float = 0.5,
    tied: Sequence[Sequence[int]] = (),
) -> Array:
    """Logarithms of weights at which no node is constant or diagonal on the rows of `X`.

    The mean exponent of each leaf is set, feature by feature from the spread of its column, to values between 0.3 and 3
    across the leaves; random factors ``exp(spread N(0, 1))`` on the squared weights tell nodes apart. Features that are
    `tied` are one, of the spread that they have together. The squared weights above add up to 1 in each node.
    """
    # Rounding gives equal numbers a deviation.
    deviation = np.where(np.ptp(X, axis=0) > 0.0, np.maximum(X.std(axis=0), np.finfo(np.float64).tiny), 0.0)
    group_of = weights_of(X.shape[1], tied)
    for group in map(list, tied):
        deviation[group] = np.sqrt(np.square(deviation[group]).sum())
    # Features that rarely change would otherwise get a weight that decides alone where they do.
    deviation = np.maximum(deviation, 0.05 * deviation.max(initial=0.0) + 0.02 * np.ptp(X, axis=0))
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    leaves = tree.leaves
    rates = np.geomspace(*FIRST_RATES, len(leaves)) if len(leaves) > 1 else np.ones(1)
    squares = np.empty(tree.n_weights)
    for rate, i in zip(rates, leaves, strict=True):
        place = tree.places[i]
        features = list(place.features)
        noise, count = np.exp(spread * rng.standard_normal(len(features))), len(np.unique(group_of[features]))
        with np.errstate(divide="ignore", over="ignore"):  # features whose squares are nothing
            squares[place.weights] = noise * rate / (2.0 * count * deviation[features] ** 2)
    for place in tree.places:
        if not place.is_leaf:
            squares[place.weights] = 1.0 / len(place.children)
    return 0.5 * np.log(squares)
