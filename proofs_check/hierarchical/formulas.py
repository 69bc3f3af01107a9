"""Checks behind the claims about hierarchical Gaussian kernels: formulas, derivatives, universality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels import Gaussian, HierarchicalGaussian, OnColumns, Polynomial
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, gram_and_error, smallest_eigenvalue
from proofs_check.claim import agreed
from proofs_check.hierarchical.direct import (
    EPS,
    Node,
    complex_step,
    evaluate,
    operations,
    random_tree,
    weights_of,
)
from proofs_check.universality import hats_inside

Generator = np.random.Generator


def _draw(rng: Generator, low: int, high: int) -> tuple[Node, Array, Array]:
    n = int(rng.integers(3, 6))  # at least as many features as nodes on a layer
    tree = random_tree(rng, int(rng.integers(low, high + 1)), n, gamma=float(rng.uniform(0.6, 1.5)))
    x, z = rng.uniform(-1.0, 1.0, (2, n))
    return tree, x, z


def _rounding(tree: Node, size: float) -> float:
    """Every operation may be off by eps relative to numbers of the given size (and to the exponents)."""
    exponent = 2.0 * float(np.sum(np.abs(tree.w) ** 2)) / tree.gamma**2 + 1.0
    return EPS * operations(tree) * exponent * max(size, EPS)


# ---- the library's kernel


def library_kernel(tree: Node) -> HierarchicalGaussian:
    """The kernel of a tree; at depth 1 the weights of a `Node` have gamma in them already."""
    if not tree.children:
        return HierarchicalGaussian(tree.w, features=tree.columns.tolist())
    return HierarchicalGaussian(tree.w, [library_kernel(child) for child in tree.children], gamma=tree.gamma)


def library_value(tree: Node, x: Array, z: Array) -> float:
    """k(x, z) by the library."""
    return float(library_kernel(tree)(x[None, :], z[None, :])[0, 0])


def library_derivative(tree: Node, owner: Node, i: int, x: Array, z: Array) -> float:
    """dk/dw by the library's backward pass, which gives the derivatives by all weights at once.

    It differentiates by ``w / gamma``, children before parents.
    """
    slopes = library_kernel(tree).weight_gradient(x[None, :], z[None, :], np.ones((1, 1)))
    places = _children_first(tree)
    position = next(k for k, (node, j) in enumerate(places) if node is owner and j == i)
    return float(slopes[position]) / (owner.gamma if owner.children else 1.0)


def _children_first(tree: Node) -> list[tuple[Node, int]]:
    below = [place for child in tree.children for place in _children_first(child)]
    return below + [(tree, i) for i in range(tree.w.size)]


# ---- the kernels: (2) to (7), Lemma A.3


def weighted_sum(tree: Node, x: Array, z: Array) -> float:
    """The kernel [ST16 (3)] a tree is built on: linear kernels at depth 1, its children above."""
    if not tree.children:
        return float(np.sum(tree.gamma**2 * tree.w**2 * x[tree.columns] * z[tree.columns]))
    return float(sum(w**2 * evaluate(child, x, z) for w, child in zip(tree.w, tree.children, strict=True)))


def gaussian_of_features(tree: Node, x: Array, z: Array) -> float:
    """[ST16 (2)]: exp(-|Phi(x) - Phi(z)|^2 / gamma^2), the distance written with [ST16 (3)]."""
    distance = weighted_sum(tree, x, x) - 2.0 * weighted_sum(tree, x, z) + weighted_sum(tree, z, z)
    return float(np.exp(-distance / tree.gamma**2))


def gaussian_half_distance(tree: Node, x: Array, z: Array) -> float:
    """(7) without its factor 2: false on purpose."""
    return float(np.sqrt(gaussian_of_features(tree, x, z)))


def product_formula(tree: Node, x: Array, z: Array) -> float:
    """[ST16 Lemma A.3]: the product of the kernels of width gamma / w_i."""
    if not tree.children:
        return float(np.prod(np.exp(-(tree.w**2) * (x[tree.columns] - z[tree.columns]) ** 2)))
    factors = [
        np.exp(-2.0 * (1.0 - evaluate(child, x, z)) / (tree.gamma / w) ** 2)
        for w, child in zip(tree.w, tree.children, strict=True)
    ]
    return float(np.prod(factors))


def product_with_inverted_widths(tree: Node, x: Array, z: Array) -> float:
    swapped = Node(1.0 / tree.w, tree.columns, tree.children, tree.gamma)
    return product_formula(swapped, x, z)


def measure_formula(formula: Callable[[Node, Array, Array], float], rng: Generator) -> Verdict:
    """A formula for k agrees with the library's kernel, which evaluates the recursion (7), depths 1 to 4."""
    tree, x, z = _draw(rng, 1, 4)
    claimed, exact = formula(tree, x, z), library_value(tree, x, z)
    witness = {"depth": tree.depth, "x": x, "z": z, "formula": claimed, "library": exact, **_describe(tree)}
    return Verdict(abs(claimed - exact), 2.0 * _rounding(tree, 1.0), 1, witness)


def _describe(tree: Node) -> dict[str, Any]:
    return {"weights": [owner.w[i] for owner, i in weights_of(tree)], "gamma": tree.gamma}


# ---- derivatives: Lemma A.6, Lemma 4.1, the examples of the appendix


def derivative(tree: Node, owner: Node, i: int, x: Array, z: Array, *, factor: bool = True) -> float:
    """[ST16 Lemma 4.1] as a recursion; `factor` says whether its second formula keeps the factor k, lost in print."""
    k = float(evaluate(tree, x, z))
    if tree is owner:
        if not tree.children:
            return float(-2.0 * tree.w[i] * (x[tree.columns[i]] - z[tree.columns[i]]) ** 2 * k)
        return float(-4.0 / tree.gamma**2 * tree.w[i] * (1.0 - evaluate(tree.children[i], x, z)) * k)
    total = 0.0
    for w, child in zip(tree.w, tree.children, strict=True):
        if any(node is owner for node, _ in weights_of(child)):
            inner = derivative(child, owner, i, x, z, factor=factor)
            total += 2.0 / tree.gamma**2 * float(w) ** 2 * inner * (k if factor else 1.0)
    return total


def derivative_by_distance(tree: Node, owner: Node, i: int, x: Array, z: Array) -> float:
    """[ST16 Lemma A.6]: -2 w_j |Phi_j(x) - Phi_j(z)|^2 k / gamma^2, the distance written with the child's kernel."""
    child = tree.children[i]
    distance = library_value(child, x, x) - 2.0 * library_value(child, x, z) + library_value(child, z, z)
    return float(-2.0 * tree.w[i] / tree.gamma**2 * distance * library_value(tree, x, z))


def derivative_printed(tree: Node, owner: Node, i: int, x: Array, z: Array) -> float:
    return derivative(tree, owner, i, x, z, factor=False)


def derivative_half(tree: Node, owner: Node, i: int, x: Array, z: Array) -> float:
    return 0.5 * library_derivative(tree, owner, i, x, z)


def example_printed_index(tree: Node, owner: Node, i: int, x: Array, z: Array) -> float:
    """The appendix's depth-2 example, its factor k restored, with (x_j - x'_j)^2 for node j as printed."""
    j = next(j for j, child in enumerate(tree.children) if child is owner)
    slope = 2.0 / tree.gamma**2 * float(tree.w[j]) ** 2 * float(evaluate(tree, x, z)) * float(evaluate(owner, x, z))
    return float(-2.0 * owner.w[i] * (x[j] - z[j]) ** 2 * slope)


def measure_derivative(subject: tuple[Callable[..., float], str, int, int], rng: Generator) -> Verdict:
    """A formula for dk/dw agrees with the complex step, for a random weight of the top or of a lower layer.

    Other formulas than the library's are compared where the library agrees with the complex step.
    """
    formula, layer, low, high = subject
    tree, x, z = _draw(rng, low, high)
    places = [place for place in weights_of(tree) if (place[0] is tree) == (layer == "top")]
    owner, i = places[int(rng.integers(len(places)))]
    claimed, exact = formula(tree, owner, i, x, z), complex_step(tree, owner, i, x, z)
    witness = {"depth": tree.depth, "x": x, "z": z, "position": i, "formula": claimed, "complex_step": exact}
    # The largest factor of a derivative is 4 w |distance|, at most 16 for the weights and points drawn here.
    tolerance = 4.0 * _rounding(tree, 16.0)
    if formula is not library_derivative:
        agreed(exact, library_derivative(tree, owner, i, x, z), tolerance)
    return Verdict(abs(claimed - exact), tolerance, 1, {**witness, **_describe(tree)})


# ---- universality: Theorem 3.1, Lemma A.5


def _matrix(tree: Node) -> Callable[[Array, Array], Array]:
    return library_kernel(tree)


def all_features(rng: Generator) -> tuple[Any, Array]:
    """Two or three features, all of them seen, and hats inside the unit cube."""
    n = int(rng.integers(2, 4))
    return _seen(rng, n, n)


def one_feature_unseen(rng: Generator) -> tuple[Any, Array]:
    """The second of two features is in no node."""
    return _seen(rng, 2, 1)


def _seen(rng: Generator, n: int, seen: int) -> tuple[Any, Array]:
    """A kernel of depth 1 to 3 that sees the first features of n, and hats that depend on all of them."""
    tree = random_tree(rng, int(rng.integers(1, 4)), n, features=np.arange(seen))
    return library_kernel(_sharpened(tree)), hats_inside(rng, n)


def _sharpened(tree: Node) -> Node:
    """The same tree with larger first-layer weights: the translates of a wide kernel soon differ by rounding alone."""
    if not tree.children:
        return Node(3.0 * tree.w, tree.columns, [], tree.gamma)
    return Node(tree.w, tree.columns, [_sharpened(child) for child in tree.children], tree.gamma)


def product_of_gaussians(rng: Generator) -> tuple[Any, Array]:
    """k_I k_J, each universal on its own feature [ST16 Lemma A.5], and hats inside the unit square."""
    rates = rng.uniform(3.0, 9.0, 2)
    return OnColumns(Gaussian(rates[0]), [0]) * OnColumns(Gaussian(rates[1]), [1]), hats_inside(rng, 2)


def product_with_a_polynomial(rng: Generator) -> tuple[Any, Array]:
    """The same with a second factor of three dimensions: enough for the first translates along it, and for no more."""
    return OnColumns(Gaussian(6.0), [0]) * OnColumns(Polynomial(2), [1]), hats_inside(rng, 2)


def measure_positive(build: Callable[[Generator, Node], Any], rng: Generator) -> Verdict:
    """Kernels of every depth are positive semidefinite, for points that coincide in some features too."""
    tree = random_tree(rng, int(rng.integers(1, 5)), 3, gamma=float(rng.uniform(0.5, 1.5)))
    X = rng.uniform(-1.0, 1.0, (14, 3))
    X[5:9, 0] = X[0, 0]
    X[9] = X[1]
    K, error = gram_and_error(build(rng, tree), X)
    value, bound, c = smallest_eigenvalue(K, error)
    return Verdict(max(0.0, -value), bound, 1, {"X": X, "c": c, "smallest_eigenvalue": value, **_describe(tree)})


def plain(rng: Generator, tree: Node) -> Any:
    return _matrix(tree)


def raised(rng: Generator, tree: Node) -> Any:
    """The exponent's distance is taken to a power above 1, which no Gaussian allows."""
    return lambda X, Y: np.exp(-((-np.log(_matrix(tree)(X, Y))) ** 1.2))
