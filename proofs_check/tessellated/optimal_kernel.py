"""[CP20 Theorem 10]: which kernel matrix is best for given labels, against the program [CP20 (17)].

Solver answers are never taken at their word. A dual point repaired to be feasible bounds the optimum
from below, a primal point repaired to be feasible bounds it from above; a claimed value outside the two
bounds is refuted, whatever the solver's status said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from convexkernels.arrays import Array
from convexkernels.checking import Verdict

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Bracket:
    """Rigorous bounds on an optimum, and the dual point behind the lower one."""

    lower: float
    upper: float
    alpha: Array


@dataclass(frozen=True, eq=False)
class Answer:
    """What somebody claims about (17).

    Parameters
    ----------
    penalty : float
        Coefficient of ``C delta'e`` in (17): 1 as printed, 2 as the proof and (5) need it.
    value : callable
        ``value(y, C)``, the claimed optimum.
    matrix : callable
        ``matrix(y)``, the claimed optimal kernel matrix.
    draw_C : callable
        ``draw_C(rng, y)``, a C from the range the claim is about.
    balanced : bool
        Whether only labels with as many +1 as -1 are drawn.
    """

    penalty: float
    value: Callable[[Array, float], float]
    matrix: Callable[[Array], Array]
    draw_C: Callable[[np.random.Generator, Array], float]
    balanced: bool = False


def labels(rng: np.random.Generator, balanced: bool) -> Array:
    """Labels of both classes in random order, between 3 and 8 of them."""
    if balanced:
        half = int(rng.integers(2, 5))
        y = np.repeat([1.0, -1.0], half)
    else:
        m = int(rng.integers(3, 9))
        positives = int(rng.choice([k for k in range(1, m) if 2 * k != m]))
        y = np.where(np.arange(m) < positives, 1.0, -1.0)
    rng.shuffle(y)
    return y


def feasible_dual(alpha: Array, y: Array, cap: float) -> Array:
    """Nearest simple feasible point of 0 <= alpha <= cap, y'alpha = 0: clip, then shrink the heavier class."""
    alpha = np.clip(alpha, 0.0, cap)
    plus, minus = alpha[y > 0].sum(), alpha[y < 0].sum()
    target = min(plus, minus)
    scale = np.where(y > 0, target / plus if plus > 0 else 0.0, target / minus if minus > 0 else 0.0)
    return alpha * scale


def bracket_17(y: Array, C: float, penalty: float) -> Bracket:
    """Rigorous bounds on the optimum of [CP20 (17)], from a solve of that very program by CVXPY and Clarabel.

    For a fixed v the best K is ``m v v' / |v|^2`` (any K with trace m has largest eigenvalue at most m),
    so ``|v|^2 / m + penalty C sum(delta)`` is attained by a feasible point. For feasible alpha and any K,
    ``2 e'alpha - alpha'YKY alpha >= 2 e'alpha - m |alpha|^2`` bounds the inner problem from below.
    """
    m = y.size
    K = cp.Variable((m, m), PSD=True)
    t, gamma = cp.Variable(), cp.Variable()
    nu, delta = cp.Variable(m, nonneg=True), cp.Variable(m, nonneg=True)
    v = 1.0 + nu - delta + gamma * y
    Y = np.diag(y)
    corner = cp.reshape(t - penalty * C * cp.sum(delta), (1, 1), order="C")
    column = cp.reshape(v, (m, 1), order="C")
    lmi = cp.bmat([[Y @ K @ Y, column], [column.T, corner]]) >> 0
    cp.Problem(cp.Minimize(t), [lmi, cp.trace(K) == m]).solve(solver=cp.CLARABEL)
    multiplier = np.asarray(lmi.dual_value)
    alpha = feasible_dual(-multiplier[:m, m] / multiplier[m, m], y, 0.5 * penalty * C)
    lower = 2.0 * float(alpha.sum()) - m * float(alpha @ alpha)
    slack = np.maximum(np.asarray(delta.value), 0.0)
    achieved = 1.0 + np.maximum(np.asarray(nu.value), 0.0) - slack + float(np.asarray(gamma.value)) * y
    upper = float(achieved @ achieved) / m + penalty * C * float(slack.sum())
    return Bracket(lower, upper, alpha)


def bracket_for_matrix(K: Array, y: Array, C: float, penalty: float) -> Bracket:
    """Rigorous bounds on the optimum of (17) when K is held fixed: the dual and the primal of an SVM."""
    G = y[:, None] * K * y[None, :]
    values, vectors = np.linalg.eigh(G)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    variable = cp.Variable(y.size)
    objective = 2.0 * cp.sum(variable) - cp.sum_squares(root.T @ variable)
    cap = 0.5 * penalty * C
    cp.Problem(cp.Maximize(objective), [variable >= 0, variable <= cap, y @ variable == 0]).solve(solver=cp.CLARABEL)
    alpha = feasible_dual(np.asarray(variable.value), y, cap)
    quadratic = float(alpha @ G @ alpha)
    lower = 2.0 * float(alpha.sum()) - quadratic
    candidates = (G @ alpha - 1.0) / y
    losses = [float(np.maximum(0.0, 1.0 + gamma * y - G @ alpha).sum()) for gamma in candidates]
    return Bracket(lower, quadratic + penalty * C * min(losses), alpha)


def measure_value(answer: Answer, rng: np.random.Generator) -> Verdict:
    """The claimed optimum is between the bounds of the semidefinite program, and not above what the matrix attains."""
    y = labels(rng, answer.balanced)
    C = answer.draw_C(rng, y)
    bound = bracket_17(y, C, answer.penalty)
    upper = min(bound.upper, bracket_for_matrix(answer.matrix(y), y, C, answer.penalty).upper)
    claimed = answer.value(y, C)
    witness = {"y": y, "C": C, "claimed": claimed, "lower": bound.lower, "upper": upper}
    rounding = EPS * (y.size**2 + 8) * max(abs(claimed), abs(upper))
    return Verdict(max(0.0, bound.lower - claimed, claimed - upper), rounding, 1, witness)


def measure_matrix(answer: Answer, rng: np.random.Generator) -> Verdict:
    """No matrix does better than the claimed one: its value is not above the optimum of the program."""
    y = labels(rng, answer.balanced)
    C = answer.draw_C(rng, y)
    upper = bracket_17(y, C, answer.penalty).upper
    K = answer.matrix(y)
    at_claimed = bracket_for_matrix(K, y, C, answer.penalty).lower
    witness = {"y": y, "C": C, "K": K, "value_at_K_at_least": at_claimed, "optimum_at_most": upper}
    rounding = EPS * (y.size**2 + 8) * y.size * max(abs(at_claimed), abs(upper))
    return Verdict(max(0.0, at_claimed - upper), rounding, 1, witness)


def measure_signs(subject: tuple[bool, Callable[[Array], Array]], rng: np.random.Generator) -> Verdict:
    """A matrix built from the labels has as many negative entries as positive ones."""
    balanced, matrix = subject
    y = labels(rng, balanced)
    K = matrix(y)
    return Verdict(abs(int((K > 0).sum()) - int((K < 0).sum())), 0.0, 1, {"y": y, "K": K})
