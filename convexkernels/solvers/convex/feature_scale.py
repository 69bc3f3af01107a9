"""The multiple of the features that suits many rows, for a kernel that was learned on few of them at a time."""

from __future__ import annotations

import numpy as np

from convexkernels.clock import Clock
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.solvers.convex.held_out_path import SharedPath
from convexkernels.solvers.convex.preparation import Preparation

# Candidates are so many times each other, and are tried on so many rows: fewer than there are, and so they stay below
# what suits all of them. Risks of near candidates differ by less than a tenth of the rows tells.
RATIO, ROWS, SHARE = 1.25, 16_000, 0.25
# Candidates that are tried in any case, and what the next one has to gain: a share of the risk.
FIRST, WORTHWHILE = 3, 0.002


def suited_scale(problem: FixedKernel, clock: Clock, seed: int) -> float:
    """The multiple of the features whose risk on held-out rows is least, lam being chosen anew for each; 1 or more.

    The best width shrinks with the number of rows, as the schedules of localized machines say [MS16 (17)]: a kernel
    that was learned on a thousand rows at a time is too wide for all of them. Candidates rise while the risk falls, and
    a parabola through the last three says where between them.

    Parameters
    ----------
    problem : FixedKernel
        Of least squares.
    clock : Clock
        What was found when its time is up is taken; so is what was found before an interrupt, which it keeps in mind.
    seed : int
        Of the rows that are looked at, and of those that are held out.
    """
    order = np.random.default_rng(seed).permutation(problem.m)
    part, risks = problem.on_rows(np.sort(order[:ROWS])), list[float]()
    while len(risks) < FIRST or risks[-1] < (1.0 - WORTHWHILE) * risks[-2]:
        lam, risk = _held_out_risk(part.rescaled(RATIO ** len(risks)), clock, seed)
        if clock.is_over:
            break
        risks.append(risk)
        part = part.with_loss(part.loss.at(lam))
        clock.show.note(f"features times {RATIO ** (len(risks) - 1):.3g}: risk {risk:.4g} on held-out rows")
    best = int(np.argmin(risks)) if risks else 0
    return float(RATIO ** (best + _vertex(risks, best)))


def _held_out_risk(problem: FixedKernel, clock: Clock, seed: int) -> tuple[float, float]:
    """The lam of the least risk on held-out rows, and this risk; the matrix is gone when it is known."""
    path = SharedPath.of(problem, np.random.default_rng(seed), SHARE, prepared=Preparation(problem))
    lam = path.follow(None, clock)
    return lam, float(path.risks().min()) if path.is_begun else np.inf


def _vertex(risks: list[float], at: int) -> float:
    """How far from the least of some values, in steps, the parabola through it and its neighbors is least."""
    if not 0 < at < len(risks) - 1:
        return 0.0
    before, here, after = np.log(np.maximum(risks[at - 1 : at + 2], np.finfo(np.float64).tiny))
    bend = before - 2.0 * here + after
    return float(0.5 * (before - after) / bend) if bend > 0.0 else 0.0
