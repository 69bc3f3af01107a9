"""The order of the steps of [ST16 Algorithm 1], its constants, and when its descent calls a point a local minimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from convexkernels import HeldOut, LeastSquares, OuterLearning, Trees
from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.solvers.nonconvex.algorithm1 import Annealing, Schedule, _Search
from proofs_check.hierarchical.algorithm import matrix, new_search, node_of

Generator = np.random.Generator
Steps = list[tuple[str, int]]
# Lengths of steps double, so that a descent of so many has to shorten some.
LONG = Schedule(gradient_steps=9, n_lams=4, n_gammas=1)


# ---- the order of steps


def steps_as_printed(schedule: Schedule, minima: Iterator[bool], errors: Array) -> Steps:
    """Lines 2 to 16, where descents end at local minima as `minima` says, and passes with the test errors `errors`."""
    M, L, N1, N2 = schedule.rounds, schedule.passes, schedule.first_annealing, schedule.later_annealing
    steps: Steps = []
    for i in range(M):
        steps += [("train", 0), ("anneal", N1)]
        is_minimum = False
        for _ in range(L):
            if is_minimum:
                steps.append(("anneal", N2))
                is_minimum = False
            else:
                steps.append(("descend", 0))
                is_minimum = next(minima)
        earlier = errors[: L * i].min(initial=np.inf)
        if not errors[L * i : L * i + L].min() < earlier:
            steps.append(("reshuffle", 0))
    return steps


def steps_without_reshuffling(schedule: Schedule, minima: Iterator[bool], errors: Array) -> Steps:
    """Lines 13 to 15 left out."""
    return [step for step in steps_as_printed(schedule, minima, errors) if step[0] != "reshuffle"]


def measure_steps(expected: Callable[[Schedule, Iterator[bool], Array], Steps], rng: Generator) -> Verdict:
    """Trainings, annealing and descents are replaced by notes; local minima and test errors are drawn.

    A reshuffle shows in the rows of D1; it must leave D3, and the rows of D1 and D2 together, as they are.
    """
    schedule = Schedule(5, 4, 7, 3, 2)
    search: Any
    _, search = new_search(rng, trained=False, schedule=schedule)
    passes = schedule.rounds * schedule.passes
    minima, errors = (rng.random(passes) < 0.5).tolist(), rng.random(passes)
    done: Steps = []
    script, wrong = iter(minima), abs(Annealing(schedule=schedule).max_iter - passes)

    def train() -> Any:
        done.append(("train", 0))
        return SimpleNamespace(weights=search.weights, lam=1.0)

    def descend() -> None:
        done.append(("descend", 0))
        search.at_minimum = next(script)

    search._train, search._descend = train, descend
    search._anneal = lambda steps: done.append(("anneal", steps))
    for error in errors.tolist():
        before = search.parts
        search.risk_of_weights = lambda rows, weights, e=error, D3=before[2]: e if rows is D3 else 1.0 - e
        search.advance()
        if not np.array_equal(before[0], search.parts[0]):
            done.append(("reshuffle", 0))
            both = [np.sort(np.concatenate(parts[:2])) for parts in (before, search.parts)]
            wrong += not np.array_equal(both[0], both[1]) or len(before[0]) != len(search.parts[0])
        wrong += search.parts[2] is not before[2]
    right = expected(schedule, iter(minima), errors)
    wrong += done != right
    return Verdict(float(wrong), 0.0, 1, {"minima": np.array(minima), "errors": errors, "steps": str(done)})


# ---- its constants


def measure_constants(constants: tuple[int, ...], rng: Generator) -> Verdict:
    """The schedule by default, and the grid that its training runs through, are those of [ST16 Section 5].

    The paper says 10 by 10; from 1e-7 to 0.1 per row for lam, and from a quarter to four times the width, which is
    among them as it is, are the library's.
    """
    default = Annealing()
    said = default.schedule
    found = said.rounds, said.passes, said.first_annealing, said.later_annealing, said.gradient_steps
    wrong = int(found != constants) + int(default.max_iter != constants[0] * constants[1])
    search: Any
    problem, search = new_search(rng, trained=False, schedule=said)
    lams: list[Array] = []
    widths: list[float] = []
    path, between = search._path, search.between

    def noted_path(K: Array, grid: Array) -> Any:
        lams.append(np.sort(grid))
        return path(K, grid)

    def noted_between(rows: Any, weights: Array) -> Any:
        logs = np.log(search.weights / weights)
        widths.append(float(np.exp(logs[np.abs(logs).argmax()])))
        return between(rows, weights)

    search._path, search.between = noted_path, noted_between
    search._train()
    grid = problem.weights[search.parts[0]].sum() * np.array([1e-7 * 10.0 ** (6.0 * i / 9.0) for i in range(10)])
    factors = sorted([0.25 * 16.0 ** (i / 9.0) for i in range(10)] + [1.0])
    wrong += len(lams) != 11 or len(widths) != 11
    apart = max(float(np.abs(np.log(row / grid)).max()) for row in lams)
    apart = max(apart, float(np.abs(np.log(np.sort(widths) / factors)).max()))
    witness = {"lams": lams[0], "widths": np.array(widths), "constants": str(found)}
    return Verdict(apart + wrong, 1e-12, 1, witness)


# ---- descents


def no_gain(first: float, last: float) -> bool:
    """A gain of a millionth, or of less."""
    return first - last <= 1e-6 * first


def up_to_nearly_all(first: float, last: float) -> bool:
    """Up to 99 percent of the risk gained."""
    return first - last <= 0.99 * first


def measure_descent(is_minimum: Callable[[float, float], bool], rng: Generator) -> Verdict:
    """N3 steps along the slope, by Armijo's condition, and a local minimum where they gain nothing.

    The first length that is tried changes weights by a tenth, in the root mean square, later ones are twice the last
    one, or change weights by as much as they are; the longest half of a half of it that satisfies the condition is
    taken, and weights stay up to e^8. A function whose coefficients are 0 gains nothing; where no length satisfies the
    condition it is a local minimum, too. Risks on D2 are computed directly.
    """
    wrong = 0
    witness: dict[str, Any] = {}
    for case in ("constant", "moving"):
        problem, search = new_search(rng, trained=True, schedule=LONG)
        move = search.parts[1]
        if case == "constant":
            search.trained.alpha = np.zeros_like(search.trained.alpha)
        slope = search.slope
        points: list[tuple[Array, Array]] = []

        def noted(slope: Any = slope, points: Any = points, search: Any = search) -> Any:
            value, gradient = slope()
            points.append((search.weights, gradient))
            return value, gradient

        search.slope = noted
        search._descend()
        share = problem.weights[move] / problem.weights[move].sum()

        def risk(w: Array, problem: Any = problem, search: Any = search, share: Array = share) -> float:
            train, move, _ = search.parts
            F = matrix(node_of(search.tree, w), problem.X[move], problem.X[train]) @ search.trained.alpha
            return float((share @ (F - problem.Y[:, move].T) ** 2).mean())

        risks = [risk(w) for w, _ in points]
        lengths = [np.sqrt(w.size) / max(float(np.linalg.norm(g / w)), 1e-300) for w, g in points]
        length = 0.1 * lengths[0]
        for (w, gradient), (moved, _), here, longest in zip(points, points[1:], risks, lengths[1:], strict=False):
            for _ in range(20):
                trial = np.abs(w - length * gradient)
                gain = 1e-4 * length * float(gradient @ gradient)
                if trial.max() <= np.exp(8.0) and risk(trial) <= here - gain:
                    break
                length *= 0.5
            wrong += not np.allclose(moved, trial, rtol=1e-8, atol=0.0)
            length = min(2.0 * length, longest)
        stopped = len(points) < 1 + LONG.gradient_steps
        wrong += len(points) > 1 + LONG.gradient_steps or (stopped and not search.at_minimum)
        wrong += not stopped and search.at_minimum != is_minimum(risks[0], risks[-1])
        witness |= {f"risks, {case}": np.array(risks)}
    return Verdict(float(wrong), 0.0, 1, witness)


def measure_lengths(longest: float, rng: Generator) -> Verdict:
    """Steps of a risk that each of them lowers: a tenth of the weights, then up to `longest` times, 1, as much.

    In the root mean square; lengths double from step to step as far as that goes, only squares of weights count, and
    what leads beyond e^8 is halved. Slopes are drawn, now and then a single one that is not nearly 0.
    """
    n, wrong = 5, 0.0
    relative = rng.standard_normal((LONG.gradient_steps + 1, n)) * np.exp(rng.standard_normal((10, 1)))
    relative[rng.random(len(relative)) < 0.5, : n - 1] *= 1e-6
    weights = np.exp(rng.standard_normal(n))
    weights[-1] = np.exp(rng.uniform(7.0, 8.0))
    schedule, taken = LONG, [weights]
    here: Any = SimpleNamespace(weights=weights, schedule=schedule, parts=(None, None, None), is_over=lambda: False)
    here.slope = lambda: (-float(len(taken)), relative[len(taken) - 1] * taken[-1])

    def risk(rows: Any, trial: Array) -> float:
        taken.append(trial)
        return -1e9 * len(taken)

    here.risk_of_weights = risk
    _Search._descend(here)
    slopes = relative * np.array(taken)
    sizes = [float(np.sqrt(n / np.square(part).sum())) for part in relative]
    length = 0.1 * sizes[0]
    for k, (w, moved) in enumerate(pairwise(taken)):
        halvings = [0.5**i for i in range(20) if np.abs(w - 0.5**i * length * slopes[k]).max() <= np.exp(8.0)]
        length *= max(halvings, default=0.0)
        wrong = max(wrong, float(np.abs(np.abs(w - length * slopes[k]) / moved - 1.0).max()))
        length = min(2.0 * length, longest * sizes[k + 1])
    missed = abs(len(taken) - 1 - schedule.gradient_steps)
    return Verdict(wrong + missed, 1e-6, 1, {"slopes": slopes, "w": np.array(taken)})


# ---- units, and weights that nothing depends on


def measure_units(power: float, rng: Generator) -> Verdict:
    """A descent knows no units: with features times a and targets times c, its weights are those over a.

    Risks are times c to a `power`, 2. A weight that nothing depends on, that of a constant column, moves nothing,
    however large it is; and annealing finds the same risks.
    """
    X = np.column_stack([rng.uniform(-1.0, 1.0, (40, 2)), np.full(40, 0.5)])
    y, seed = np.sin(3.0 * X[:, 0]) * (1.0 + X[:, 1]), int(rng.integers(2**31))
    schedule = Schedule(2, 2, 30, 10, 5, n_lams=4, n_gammas=1)
    ends: list[Array] = []
    for a, c, dead in ((1.0, 1.0, 1.0), (2.0**20, 2.0**-240, 1.0), (2.0**-6, 2.0**300, 1000.0)):
        problem = OuterLearning(Trees(1), LeastSquares(0.1, intercept=False), HeldOut(1), X * a, y * c)
        search: Any = Annealing(schedule=schedule, random_state=seed).start(problem, 1e-4, None).memory
        search.weights = np.array([0.9 / a, 0.4 / a, dead])
        search.trained = search._train()
        search._descend()
        live = search.weights[:2] * a
        values = search.slope()[0]
        search._anneal(30)
        risks = np.array([values, search.slope()[0]])
        ends.append(np.concatenate([live, [np.exp(np.log(one) - power * np.log(c)) for one in risks.tolist()]]))
    apart = max(float(np.abs(end / ends[0] - 1.0)[:3].max()) for end in ends[1:])
    # Its dead weight is tried as often as the others, so that only what has no such column is the same.
    annealed = float(np.abs(ends[1][3] / ends[0][3] - 1.0))
    return Verdict(max(apart, annealed), 1e-6, 1, {"X": X, "y": y, "ends": np.array(ends)})


def measure_family(largest: float, rng: Generator) -> Verdict:
    """No weight of a pass is beyond e^8, where kernels of the library end, so that the answer is one of them.

    A weight that nothing depends on, that of a constant column, would walk beyond: it begins near there, and others
    that a training would best multiply by four, with all weights of the node. `largest` is the logarithm of the limit.
    """
    X = np.column_stack([rng.uniform(-1.0, 1.0, (40, 2)), np.full(40, 0.5)])
    y = np.sin(3.0 * X[:, 0]) * (1.0 + X[:, 1])
    problem = OuterLearning(Trees(1), LeastSquares(0.1, intercept=False), HeldOut(1), X, y)
    schedule = Schedule(2, 4, 60, 60, 3, n_lams=3, n_gammas=4)
    found: Any = Annealing(schedule=schedule, random_state=int(rng.integers(2**31))).start(problem, 1e-4, None)
    search = found.memory
    search.weights = np.array([0.2, 0.1, np.exp(7.9)])
    most = []
    for _ in range(8):
        search.advance()
        most.append(float(np.log(search.weights).max()))
    wrong = float(max(most) > largest) + float(not np.isfinite(problem.certificate(search.best).value))
    return Verdict(wrong, 0.0, 1, {"X": X, "y": y, "most": np.array(most)})
