"""The order of the steps of [ST16 Algorithm 1], its constants, and when its descent calls a point a local minimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.solvers.nonconvex.algorithm1 import Annealing, Schedule
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
    """N3 steps, each of which satisfies Armijo's condition, and a local minimum where they gain nothing.

    That is so for a function that is constant, whose coefficients are 0; where no step satisfies the condition it is a
    local minimum, too. Risks on D2 are computed directly.
    """
    wrong = 0
    witness: dict[str, Any] = {}
    for constant in (False, True):
        problem, search = new_search(rng, trained=True, schedule=LONG)
        train, move, _ = search.parts
        if constant:
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
        risks = []
        for weights, _ in points:
            F = matrix(node_of(search.tree, weights), problem.X[move], problem.X[train]) @ search.trained.alpha
            risks.append(float((share @ (F - problem.Y[:, move].T) ** 2).mean()))
        for (w, gradient), (moved, _), here, there in zip(points, points[1:], risks, risks[1:], strict=False):
            gain = 1e-4 * float(np.linalg.norm(gradient) * np.linalg.norm(moved - w))
            wrong += there > here - gain + 1e-11 * here
        stopped = len(points) < 1 + LONG.gradient_steps
        wrong += len(points) > 1 + LONG.gradient_steps or (stopped and not search.at_minimum)
        wrong += not stopped and search.at_minimum != is_minimum(risks[0], risks[-1])
        witness |= {f"risks, constant={constant}": np.array(risks)}
    return Verdict(float(wrong), 0.0, 1, witness)
