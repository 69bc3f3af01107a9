"""Simulated annealing on the weights of a fixed decision function, one node at a time.

With the coefficients alpha held fixed, the objective [ST16 (11)] is a risk of ``K alpha`` with the matrix K between the
rows of D2 and D1. A move changes one weight, hence one node and the sums above it: what every node passes on is kept,
and a move evaluates one leaf (or scales a child), adds the difference to the exponents on the way up, and takes the
exponential of the root.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.kernels.hierarchical.evaluation import TreeEvaluation
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.threads import in_threads

Array = NDArray[Any]

# Rows are worked on in blocks of so many bytes: a few of them fit the second-level cache.
BLOCK_BYTES = 2**18
# Rounding adds up in what is updated: everything is evaluated anew after so many accepted moves.
REFRESH = 100
# A move multiplies a weight by exp(MOVE N(0, 1)).
MOVE = 0.5
# Exponents of inner nodes are differences of numbers of the size of their squared weights: up to here single precision
# has four digits of values, and a proposal that leads beyond has three until it is kept.
SINGLE = 50.0


class FixedFunction:
    """The values ``K alpha`` on rows Z as the weights change, for the risk [ST16 (11)]; nodes are kept.

    Weights are > 0, X are the training points, alpha has shape (m, outputs). Matrices have the precision `dtype`, and
    that of float64 while weights of inner nodes are large.
    """

    def __init__(
        self, tree: KernelTree, weights: Array, Z: Array, X: Array, alpha: Array, dtype: Any = np.float32
    ) -> None:
        self.tree, self.weights, self.Z, self.X, self.least = tree, weights.copy(), Z, X, dtype
        # Targets, and so coefficients, may have any unit that float64 has.
        self.unit = float(np.abs(alpha).max(initial=0.0)) or 1.0
        self.coefficients = alpha / self.unit
        self.n_accepted = 0
        self.dtype: Any = None
        self._proposal: tuple[int, float, list[int], dict[int, Array], dict[int, Any]] | None = None
        self.reset(weights)

    def _precision(self, weights: Array) -> Any:
        """What matrices are evaluated in for these weights."""
        inner = [place.weights for place in self.tree.places if not place.is_leaf]
        largest = max((2.0 * float(np.sum(weights[own] ** 2)) for own in inner), default=0.0)
        return self.least if largest <= SINGLE else np.float64

    def _allocate(self, dtype: Any) -> None:
        tree, X, Z = self.tree, self.X, self.Z
        self.dtype, self.alpha = dtype, self.coefficients.astype(dtype)
        shape = (len(Z), len(X))
        self.passed = [np.empty(shape, dtype) for _ in tree.places[:-1]]  # what a node passes to its parent
        self.exponent = {i: np.empty(shape, dtype) for i, place in enumerate(tree.places) if not place.is_leaf}
        # Where a proposal writes what nodes would pass on: one array per layer of its way up is enough.
        self.spare = [np.empty(shape, dtype) for _ in range(tree.depth - 1)]
        size = max(1, BLOCK_BYTES // (len(X) * np.dtype(dtype).itemsize))
        self.blocks = [slice(start, min(start + size, len(Z))) for start in range(0, len(Z), size)]

    def _shift(self, i: int, weights: Array) -> float:
        """log(2 w^2) of the weight of a node in its parent."""
        weight = self.tree.parents[i][1]
        return 0.0 if weight < 0 else float(np.log(2.0 * weights[weight] ** 2))

    def _base(self, i: int, weights: Array) -> float:
        """What an inner node adds to the sum of its children."""
        return self._shift(i, weights) - 2.0 * float(np.sum(weights[self.tree.places[i].weights] ** 2))

    def _evaluate_all(self) -> Array:
        """Every node anew: one full evaluation of the kernel."""
        evaluation = TreeEvaluation(self.tree, self.weights**2, self.Z, self.X, self.dtype)
        values = np.empty((len(self.Z), self.alpha.shape[1]))
        root = len(self.tree.places) - 1

        def fill(rows: slice) -> None:
            for i, place in enumerate(self.tree.places):
                target = (
                    self.passed[i][rows] if i != root else np.empty((rows.stop - rows.start, len(self.X)), self.dtype)
                )
                if place.is_leaf:
                    evaluation.leaf_values(i, rows, target)
                else:
                    total = self.exponent[i][rows]
                    total[:] = self._base(i, self.weights)
                    for child in place.children:
                        total += self.passed[child][rows]
                    self._pass_on(total, self._shift(i, self.weights), target)
                if i == root:
                    values[rows] = target @ self.alpha

        in_threads(fill, self.blocks)
        return values * self.unit

    def _pass_on(self, exponents: Array, shift: float, out: Array) -> None:
        """What a node passes on; no kernel is above 1, and the exponential must not amplify what rounding says."""
        np.minimum(exponents, self.dtype(shift), out=out)
        np.exp(out, out=out)

    def _child_of(self, index: int) -> int:
        """The child that a weight belongs to, or the leaf that it is inside of."""
        owner = next(i for i, place in enumerate(self.tree.places) if place.weights.start <= index < place.weights.stop)
        place = self.tree.places[owner]
        return owner if place.is_leaf else place.children[index - place.weights.start]

    def propose(self, index: int, weight: float) -> Array:
        """The values with one weight changed; nothing else changes until `accept`."""
        new = self.weights.copy()
        new[index] = weight
        # The node whose passed values change first: the leaf itself, or the child that the weight belongs to.
        first = self._child_of(index)
        place = self.tree.places[first]
        inside = place.weights.start <= index < place.weights.stop
        way = [first]
        while self.tree.parents[way[-1]][0] >= 0:
            way.append(self.tree.parents[way[-1]][0])
        spare = iter(self.spare)
        changed = {i: next(spare) for i in way[:-1]}
        evaluation = TreeEvaluation(self.tree, new**2, self.Z, self.X, self.dtype) if inside else None
        ratio = self.dtype((weight / self.weights[index]) ** 2)
        steps = {i: self.dtype(self._base(i, new) - self._base(i, self.weights)) for i in way[1:]}
        values = np.empty_like(self.values)

        def fill(rows: slice) -> None:
            scratch = np.empty((rows.stop - rows.start, len(self.X)), self.dtype)
            for position, i in enumerate(way):
                target = changed[i][rows] if i in changed else scratch
                if position == 0 and evaluation is None:
                    np.multiply(self.passed[i][rows], ratio, out=target)
                elif position == 0 and evaluation is not None:
                    evaluation.leaf_values(i, rows, target)
                else:
                    below = way[position - 1]
                    np.subtract(changed[below][rows], self.passed[below][rows], out=target)
                    target += self.exponent[i][rows]
                    if steps[i] != 0.0:
                        target += steps[i]
                    self._pass_on(target, self._shift(i, new), target)
            values[rows] = target @ self.alpha

        in_threads(fill, self.blocks)
        values *= self.unit
        self._proposal = (index, weight, way, changed, steps)
        self._proposed_values = values
        return values

    def reset(self, weights: Array) -> None:
        """Take other weights."""
        self.weights = weights.copy()
        if self._precision(weights) is not self.dtype:
            self._allocate(self._precision(weights))
        self.values = self._evaluate_all()
        self._proposal = None

    def accept(self) -> None:
        """Make the last proposal the current state."""
        assert self._proposal is not None
        index, weight, way, changed, steps = self._proposal
        ratio = weight / self.weights[index]
        self.weights[index] = weight
        self.values, self._proposal = self._proposed_values, None
        self.n_accepted += 1
        if self.n_accepted % REFRESH == 0 or self._precision(self.weights) is not self.dtype:
            self.reset(self.weights)
            return
        if self._child_of(index) in self.exponent:  # that of a child contains the logarithm of its weight
            self.exponent[self._child_of(index)] += self.dtype(2.0 * np.log(ratio))
        for below, i in pairwise(way):
            old, self.passed[below] = self.passed[below], changed[below]
            np.subtract(changed[below], old, out=old)
            self.exponent[i] += old
            if steps[i] != 0.0:
                self.exponent[i] += steps[i]
            self.spare = [array for array in self.spare if array is not changed[below]] + [old]


def anneal(
    function: FixedFunction,
    risk: Callable[[Array], float],
    steps: int,
    rng: np.random.Generator,
    stop: Callable[[], bool],
    largest: float = np.inf,
) -> float:
    """Simulated annealing [ST16 Section 4]: returns the risk of the best weights, which `function` then has.

    A random weight is changed by a random factor. A better risk is kept; one that is worse by Delta in step i of N is
    kept when a uniform number is below ``0.5 exp(-(100 i / sqrt(N)) Delta / risk)``. `risk` is that of values on the
    validation rows, `stop` says whether the time is up. Weights beyond the `largest` are not proposed: one that the
    risk does not depend on would wander off.
    """
    here = risk(function.values)
    best, kept = here, function.weights.copy()
    for i in range(1, steps + 1):
        if stop():
            break
        index = int(rng.integers(len(function.weights)))
        weight = float(function.weights[index] * np.exp(MOVE * rng.standard_normal()))
        if weight > largest:
            continue
        there = risk(function.propose(index, weight))
        delta = there - here
        chance = (
            0.5 * np.exp(-min(100.0 * i / np.sqrt(steps) * delta / max(here, 1e-300), 700.0)) if delta >= 0 else 1.0
        )
        if np.isfinite(there) and (delta < 0.0 or rng.random() < chance):
            function.accept()
            here = there
            if here < best:
                best, kept = here, function.weights.copy()
    if here > best:
        function.reset(kept)
    return best
