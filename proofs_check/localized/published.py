"""The TV-VP-SVM as [MS16 Section 4.2] prints it, schedules (16) to (18), and what Theorem 7 says of the choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from convexkernels import Cells, CellSelection, LeastSquares, VoronoiCover, VoronoiRidge
from convexkernels.arrays import Array, Mask
from convexkernels.bounds import (
    Bound,
    CellNumbers,
    CellSchedule,
    cell_nets,
    cells_risk_bound,
    selected_risk_bound,
)
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.cells.training import learn_cells
from convexkernels.checking import Verdict
from convexkernels.clock import Clock
from proofs_check.localized.bounds import numbers_of_the_proof
from proofs_check.localized.cells import svm_of_cell

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)
CENTERS = np.array([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
LAMS, WIDTHS = np.array([1e-4, 1e-2, 1.0]), np.array([0.5, 2.0])


def of_the_first_half(held_out: Mask) -> Mask:
    """The functions that were compared are kept."""
    return ~held_out


def of_all_rows(held_out: Mask) -> Mask:
    """Functions learn again, from all rows, once lambda and the width are chosen."""
    return np.ones_like(held_out)


def measure_global_split(kept: Callable[[Mask], Mask], rng: Generator) -> Verdict:
    """Functions of D1 with lambda beside the mean over D1, and the least risk on D2 of all joint choices.

    The choice is made cell by cell; here all ``(|Lambda| |Gamma|)^m`` functions of the three cells are compared.
    """
    X = np.repeat(CENTERS, 11, axis=0) + rng.uniform(-0.9, 0.9, (33, 2))
    y, weights = np.clip(np.sin(3.0 * X[:, 1]) + 0.4 * rng.standard_normal(33), -1.0, 1.0), rng.uniform(0.5, 2.0, 33)
    table = CellRows(X, y[None, :], weights).divided(rng)
    assert table.held_out is not None
    D1, cells = ~table.held_out, np.repeat(np.arange(3), 11)
    total = float(weights[D1].sum())
    selection = CellSelection("global-split", candidates=(LAMS, WIDTHS))
    learner = KernelLearner(LeastSquares(1.0, intercept=False), selection, total=total)
    found = learn_cells(table, VoronoiCover(CENTERS), learner, Clock())
    pairs, squares = list(product(LAMS, WIDTHS)), np.empty((3, len(LAMS) * len(WIDTHS)))

    def function(j: int, pair: tuple[float, float], rows: Mask) -> Callable[[Array], Array]:
        inside = rows & (cells == j)
        lam = pair[0] * total / float(weights[inside].sum())
        return svm_of_cell(X[inside], y[inside], weights[inside], lam, pair[1])

    for j, (k, pair) in product(range(3), enumerate(pairs)):
        D2 = table.held_out & (cells == j)
        squares[j, k] = weights[D2] @ (y[D2] - function(j, pair, D1)(X[D2])) ** 2
    joint = min(sum(squares[j, k] for j, k in enumerate(choice)) for choice in product(range(len(pairs)), repeat=3))
    chosen = [
        int(np.argmin([abs(np.log(a / total / b)) + abs(np.log(c / d)) for b, d in pairs])) for a, c in found.theta
    ]
    excess = sum(squares[j, k] for j, k in enumerate(chosen)) / joint - 1.0
    Z = np.repeat(CENTERS, 5, axis=0) + rng.uniform(-0.9, 0.9, (15, 2))
    direct = np.concatenate(
        [function(j, pairs[k], kept(table.held_out))(Z[5 * j : 5 * j + 5]) for j, k in enumerate(chosen)]
    )
    apart = float(np.abs(found.problem.values(Z)[:, 0] - direct).max()) + abs(int(D1.sum()) - 17)
    witness = {"X": X, "y": y, "D1": D1, "theta": found.theta}
    # Risks are compared by factors that leave out 1 percent of the least lam.
    return Verdict.worst([Verdict(apart, 1e-8, 1, witness), Verdict(float(excess), 0.02, 1, witness)])


def measure_schedule(lam_of_cell: Callable[[float, int, int], float], rng: Generator) -> Verdict:
    """An estimator with one lambda and one width for all cells is (3), lambda being beside the mean over all rows."""
    n = 60
    # One row in every part of the interval: a cell of one row would have a constant.
    X, Z = (2.0 * np.arange(n)[:, None] + 2.0 * rng.random((n, 1))) / n - 1.0, rng.uniform(-1.0, 1.0, (30, 1))
    y = np.clip(np.sin(4.0 * X[:, 0]) + 0.2 * rng.standard_normal(n), -1.0, 1.0)
    y[:2] = -1.0, 1.0
    schedule = CellSchedule(0.4, float(np.exp(rng.uniform(-7.0, -4.0))), 0.3)
    model: Any = VoronoiRidge(
        cells=Cells("voronoi", radius=schedule.radius, scale=False),
        selection=CellSelection(candidates=([schedule.lam], [schedule.width])),
        random_state=0,
    ).fit(X, y)
    cells, there, direct = model.cover_.cells(X), model.cover_.cells(Z), np.zeros(30)
    for j in np.unique(there).tolist():
        inside = cells == j
        size = int(inside.sum())
        lam = lam_of_cell(schedule.lam, n, size)
        function = svm_of_cell(X[inside], y[inside], np.ones(size), lam, schedule.width)
        direct[there == j] = function(Z[there == j])
    apart = float(np.abs(model.predict(Z) - direct).max())
    return Verdict(apart, 1e-8, 1, {"X": X, "y": y, "schedule": schedule})


def of_the_lemma(n: int, alpha: float, d: int, *, r: float, c: float, p: float) -> tuple[float, float]:
    """The lambda and the width of the library's nets that the proof of Lemma 14 takes: the next above its own two."""
    D = (2.0 * alpha + d) * (1.0 + p) + 2.0 * p
    lams, widths = cell_nets(n, d, r)
    lam, width = r**d * n ** (-(2.0 * alpha + d) / D), c * n ** (-1.0 / D)
    return float(lams[lams >= lam].min()), float(widths[widths >= width].min())


def measure_selected(bound: Callable[..., Bound], rng: Generator) -> Verdict:
    """The bound is what (33) and (34) make of the library's Theorem 4 on D1, and falls with the rate of Theorem 7.

    D1 has l rows, of ``n = 2 l - 2``. (34) is ``6 inf + 512 M^2 (tau + 2 L) / (n - l)``, where the infimum is at most
    what Theorem 4 says for l rows and tau + L at the pair of the proof of Lemma 14; for 4 rows ``n - l`` is as small as
    n / 4, and where tau is large the bound is hardly more than that. Number by number it is the sum of three parts:
    Lemma 14, by whose numbers ``1 / l`` is ``n / l`` times the printed ``1 / n``; what tau + L adds to the library's
    Theorem 4; and what the choice costs.
    """
    alpha, d, M = float(rng.uniform(1.5, 2.5)), int(rng.integers(1, 4)), float(rng.uniform(0.05, 2.0))
    p, beta, C, verdicts = float(rng.uniform(0.02, 0.1)), 60.0, 3.0, []
    a, b, xi = numbers_of_the_proof(alpha, d, beta=beta, p=p, c=0.9)
    rate, values = 2.0 * alpha / (2.0 * alpha + d), {}
    for n, tau in ((4, 1e7), (1000, 2.0), (10**120, 2.0), (10**122, 2.0)):
        r, rows = 0.9 * float(n) ** (-1.0 / (beta * d)), n // 2 + 1
        m = int(3.0**d * r**-d)
        cells = CellNumbers(np.full(m, 1e-3), np.full(m, r), np.full(m, 1.0 / m), r, rows, d)
        found = bound(cells, alpha=alpha, beta=beta, p=p, tau=tau, n_pairs=n, largest_label=M, constant=C)
        values[n] = found.value
        if n > 1000:
            continue

        def of_D1(tau: float, lam: float, width: float, cells: CellNumbers = cells) -> float:
            pair = cells._replace(lams=np.full(len(cells.lams), lam), widths=np.full(len(cells.lams), width))
            return cells_risk_bound(pair, alpha=alpha, p=p, tau=tau, constant=C).value

        union = math.log(1 + n**m)  # of whole numbers of any size
        best = of_D1(tau + union, *of_the_lemma(n, alpha, d, r=r, c=0.9, p=p))
        least = 6.0 * best + 512.0 * M**2 * (tau + 2.0 * union) / (n - rows)
        lemma = C * (a * n ** (1.0 + xi - rate) / rows + b * n ** (-2.0 * alpha / (2.0 + d)))
        exact = 6.0 * (lemma + of_D1(1.0 + tau + union, 1.0, r) - of_D1(1.0, 1.0, r))
        exact += 512.0 * M**2 * (tau + 2.0 * union) / (0.25 * n)
        apart = abs(found.value / exact - 1.0) + abs(found.probability - (1.0 - np.exp(-tau)))
        witness = {"n": n, "tau": tau, "alpha": alpha, "d": d, "p": p, "M": M, "(34)": least, "exact": exact}
        verdicts += [Verdict(max(0.0, least / found.value - 1.0), 1e-12, 1, witness), Verdict(apart, 1e-11, 1, witness)]
    slope = float(np.log(values[10**122] / values[10**120]) / np.log(100.0))
    fall = Verdict(abs(slope + rate - xi), 1e-6, 1, {"alpha": alpha, "d": d, "p": p, "slope": slope})
    return Verdict.worst([*verdicts, fall])


def as_of_all_rows(cells: CellNumbers, *, n_pairs: int, **named: Any) -> Bound:
    """The functions of D1 as if they had learned from all n rows: tau + L over n."""
    whole, n = selected_risk_bound(cells, n_pairs=n_pairs, **named), 2 * cells.n - 2
    union = np.logaddexp(0.0, len(cells.lams) * np.log(float(n_pairs)))
    return whole._replace(
        value=whole.value - 6.0 * named["constant"] * (named["tau"] + union) * (1.0 / cells.n - 1.0 / n)
    )
