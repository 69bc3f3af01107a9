"""[ST16 Algorithm 1] as the library runs it: risks and slopes of fixed functions, moves, the rule of annealing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels import HeldOut, LeastSquares, OuterLearning, Trees
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.criteria.folds import Rows, three_parts
from convexkernels.kernels.hierarchical.tree import KernelTree
from convexkernels.solvers.nonconvex.algorithm1 import Annealing, Schedule
from convexkernels.solvers.nonconvex.annealing import FixedFunction, anneal
from proofs_check.hierarchical.direct import Node, complex_step, evaluate

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)
SHORT = Schedule(2, 2, 30, 10, 3, n_lams=4, n_gammas=1)
ARCHITECTURES: tuple[Any, ...] = ([[0, 1], [1, 2]], [[0], [1, 2], [0, 2]], [[[0], [1]], [[1, 2], [0]]])


def node_of(tree: KernelTree, weights: Array) -> Node:
    """The same tree for the direct evaluation; weights in the order of the library, children first."""
    made: list[Node] = []
    for place in tree.places:
        own = np.array(weights[place.weights])
        children = [made[child] for child in place.children]
        made.append(Node(own, np.array(place.features, dtype=np.intp), children))
    return made[-1]


def places_of(node: Node) -> list[tuple[Node, int]]:
    """Every weight, children first, as in the library's flat vector."""
    below = [place for child in node.children for place in places_of(child)]
    return below + [(node, i) for i in range(node.w.size)]


def matrix(node: Node, X: Array, Z: Array) -> Array:
    return np.array([[float(evaluate(node, x, z)) for z in Z] for x in X])


# ---- the three parts, the training of step 3, the slope of step 9


def new_search(
    rng: Generator, trained: bool, schedule: Schedule = SHORT, bounds: tuple[float, float] | None = None
) -> tuple[Any, Any]:
    """A problem with two outputs, clipped to bounds if any, and the search at its start or after its first training."""
    X = rng.uniform(-1.0, 1.0, (18, 3))
    y = np.stack([np.sin(2.0 * X[:, 0]), X[:, 1] * X[:, 2]], axis=1) + 0.1 * rng.standard_normal((18, 2))
    family = Trees(ARCHITECTURES[int(rng.integers(3))])
    loss = LeastSquares(0.1, intercept=False)
    weights = rng.uniform(0.5, 2.0, 18)
    problem = OuterLearning(family, loss, HeldOut(), X, y, sample_weight=weights, bounds=bounds)
    search = Annealing(schedule=schedule, random_state=int(rng.integers(2**31))).start(problem, 1e-4, None).memory
    if trained:
        search.trained = search._train()
        search.weights = search.trained.weights * np.exp(0.3 * rng.standard_normal(search.weights.size))
    return problem, search


def in_w(slopes: Array, weights: Array) -> Array:
    return slopes


def in_log_w(slopes: Array, weights: Array) -> Array:
    return slopes * weights


def _risk(problem: Any, rows: Rows, F: Array) -> float:
    """Mean over the rows, by their weights, and over outputs of squared errors."""
    share = problem.weights[rows] / problem.weights[rows].sum()
    return float((share @ (F - problem.Y[:, rows].T) ** 2).mean())


def measure_slope(read: Callable[[Array, Array], Array], rng: Generator) -> Verdict:
    """Risk (11) on D2 and its gradient in the weights w, coefficients fixed, against complex steps [ST16 Section 4].

    In half of the cases predictions are clipped, and those that are do not move.
    """
    low, high = (-0.3, 0.4) if rng.integers(2) else (-np.inf, np.inf)
    problem, search = new_search(rng, trained=True, bounds=(low, high) if high < np.inf else None)
    train, move, _ = search.parts
    node = node_of(search.tree, search.weights)
    X, alpha, V = problem.X[train], search.trained.alpha, problem.X[move]
    share = problem.weights[move] / problem.weights[move].sum()
    F = matrix(node, V, X) @ alpha
    moves, F = (low < F) & (high > F), np.clip(F, low, high)
    residual, exact = F - problem.Y[:, move].T, []
    for owner, i in places_of(node):
        slopes = np.array([[complex_step(node, owner, i, x, v) for x in X] for v in V])
        exact.append(float((2.0 * share @ (residual * moves * (slopes @ alpha))).mean()))
    claimed, gradient = search.slope()
    gradient = read(gradient, search.weights)
    size = float(np.abs(alpha).sum() * np.abs(residual).max() + 1.0)
    apart = max(abs(claimed - _risk(problem, move, F)), float(np.abs(gradient - exact).max()))
    witness = {"X": X, "V": V, "alpha": alpha, "weights": search.weights, "gradient": gradient, "exact": exact}
    return Verdict(apart, 1e-11 * size, 1, witness)


def measure_answer(judge: int, rng: Generator) -> Verdict:
    """Of all passes, of two rounds, the answer is the weights with the least risk on D3, with that risk.

    `judge` is the part whose risks are compared, 2 for D3. Coefficients are those of the training of the round.
    """
    problem, search = new_search(rng, trained=False)
    ends, risks, size = [], [], 1.0
    for _ in range(4):
        parts = search.parts
        search.advance()
        K = matrix(node_of(search.tree, search.weights), problem.X[parts[judge]], problem.X[parts[0]])
        risks.append(_risk(problem, parts[judge], K @ search.trained.alpha))
        ends.append(np.append(np.log(search.weights), np.log(search.trained.lam)))
        size = max(size, float(np.abs(search.trained.alpha).sum()))
    best = int(np.argmin(risks))
    z, log_lam = problem.split(search.best)
    apart = float(np.abs(np.append(z, log_lam) - ends[best]).max())
    witness = {"ends": np.array(ends), "risks": np.array(risks), "answer": z, "reported": search.best_risk}
    risk = Verdict(abs(risks[best] - search.best_risk), 1e-10 * size, 1, witness)
    return Verdict.worst([risk, Verdict(apart, 1e-12, 1, witness)])


def measure_training(count: Callable[[Array], float], rng: Generator) -> Verdict:
    """Step 3 solves ``(K + lam S^-1) alpha = y`` on D1, lam over the weight of its rows from 1e-7 to 0.1.

    It is the lam whose function has the least risk on D2.
    """
    problem, search = new_search(rng, trained=False)
    problem.Y[:] = rng.standard_normal(problem.Y.shape)  # of noise the smallest lam is not the best
    (train, move, _), trained = search.parts, search._train()
    node = node_of(search.tree, trained.weights)
    K, across = (matrix(node, problem.X[rows], problem.X[train]) for rows in (train, move))
    left = K @ trained.alpha + trained.lam * trained.alpha / problem.weights[train, None] - problem.Y[:, train].T
    grid = np.log(count(problem.weights[train]) * 1e-7 * (1e6) ** (np.arange(4) / 3.0))
    off = float(np.abs(grid - np.log(trained.lam)).min())
    risks = []
    for lam in np.exp(grid):
        alpha = np.linalg.solve(K + np.diag(lam / problem.weights[train]), problem.Y[:, train].T)
        risks.append(_risk(problem, move, across @ alpha))
    behind = _risk(problem, move, across @ trained.alpha) / min(risks) - 1.0
    witness = {"lam": trained.lam, "left": left, "risks": np.array(risks)}
    size = 1e-10 * (1.0 + float(np.abs(trained.alpha).sum()))
    found = (float(np.abs(left).max()), size), (off, 1e-9), (behind, 1e-6)
    return Verdict.worst([Verdict(*pair, 1, witness) for pair in found])


def measure_parts(shares: tuple[float, float, float], rng: Generator) -> Verdict:
    """D1, D2 and D3 hold 44.44 %, 22.22 % and 33.33 % of the rows, each row once [ST16 Section 5]."""
    m = int(rng.integers(20, 500))
    parts = three_parts(m, rng)
    apart = max(abs(len(part) / m - share) for part, share in zip(parts, shares, strict=True))
    whole = int((np.sort(np.concatenate(parts)) != np.arange(m)).sum()) if sum(map(len, parts)) == m else m
    return Verdict(apart + whole, 1.0 / m + 1e-4, 1, {"m": m, "sizes": np.array([len(part) for part in parts])})


# ---- moves and the rule of annealing


def measure_moves(factor: float, rng: Generator) -> Verdict:
    """Values after moves of single weights, kept or not, are those of the kernel with the weights they ended with.

    So they are in single precision, as far as it goes, and nearly as exact where weights of inner nodes are large.
    """
    X, Z, alpha = rng.uniform(-1.0, 1.0, (6, 3)), rng.uniform(-1.0, 1.0, (5, 3)), rng.standard_normal((6, 2))
    tree = KernelTree.build(ARCHITECTURES[int(rng.integers(3))])
    weights = rng.uniform(0.3, 1.2, tree.n_weights)
    function = FixedFunction(tree, weights, Z, X, alpha, np.float64)
    apart = [float(np.abs(function.values - matrix(node_of(tree, weights), Z, X) @ alpha).max())]
    for _ in range(12):
        index, moved = int(rng.integers(weights.size)), float(rng.uniform(0.3, 1.2))
        proposed = function.propose(index, moved)
        trial = weights.copy()
        trial[index] = factor * moved
        apart.append(float(np.abs(proposed - matrix(node_of(tree, trial), Z, X) @ alpha).max()))
        if rng.random() < 0.6:
            function.accept()
            weights[index] = moved
    size, witness, single = float(np.abs(alpha).sum()), {"X": X, "Z": Z, "alpha": alpha}, []
    Z = X[:5] + 1e-3
    function = FixedFunction(tree, weights, Z, X, 1e-60 * alpha)
    for weight in (40.0, 0.5, 900.0):
        function.propose(tree.n_weights - 1, factor * weight)
        function.accept()
        weights[-1] = weight
        exact = matrix(node_of(tree, weights), Z, X) @ alpha
        single.append(float(np.abs(1e60 * function.values - exact).max()))
    found = (max(apart), 1e-12 * (size + 1.0)), (max(single), 1e-5 * size)
    return Verdict.worst([Verdict(*pair, 1, witness) for pair in found])


class _Climb:
    """Stands for a function whose every move makes the risk worse by the same share."""

    def __init__(self, share: float) -> None:
        self.share, self.weights, self.values = share, np.ones(1), np.ones((1, 1))
        self.accepted: list[int] = []
        self.proposals = 0
        self.moves: list[float] = []

    def propose(self, index: int, weight: float) -> Array:
        self.proposals += 1
        self.moves.append(float(np.log(weight)))
        return self.values * (1.0 + self.share)

    def accept(self) -> None:
        self.values = self.values * (1.0 + self.share)
        self.accepted.append(self.proposals)

    def reset(self, weights: Array) -> None:
        self.values = np.ones((1, 1))


def measure_annealing(subject: tuple[float, float], rng: Generator) -> Verdict:
    """A step worse by Delta is kept with probability ``0.5 exp(-(100 i / sqrt N) Delta / R)`` [ST16 Section 4].

    `subject` holds the factor 0.5 and the constant 100. Counted over many runs in which every move is worse; the
    tolerance is what a right rule exceeds once in a million, for the early and for the late steps. Moves are factors
    whose logarithms are N(0, 1/4).
    """
    half, constant = subject
    steps, share, runs = int(rng.integers(16, 64)), 0.01, 400
    i = np.arange(1, steps + 1)
    chance = half * np.exp(-constant * i / np.sqrt(steps) * share)
    kept, moves = np.zeros(steps), []
    for _ in range(runs):
        climb: Any = _Climb(share)
        anneal(climb, lambda values: float(values[0, 0]), steps, rng, lambda: False)
        kept[np.array(climb.accepted, dtype=np.intp) - 1] += 1.0
        moves += climb.moves
    sizes = np.array([np.mean(moves), np.std(moves) - 0.5])
    early, verdicts = (
        i <= steps // 4,
        [Verdict(float(np.abs(sizes).max()), 2.5 / np.sqrt(len(moves)), 1, {"sizes": sizes})],
    )
    for part in (early, ~early):
        expected = runs * float(chance[part].sum())
        spread = np.sqrt(runs * float((chance[part] * (1.0 - np.minimum(chance[part], 1.0))).sum()))
        counts = np.array([kept[part].sum(), expected])
        verdicts.append(Verdict(abs(float(counts[0] - counts[1])), 4.9 * spread + 5.0, 1, {"counts": counts}))
    return Verdict.worst(verdicts)
