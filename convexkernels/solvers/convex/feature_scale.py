"""The kernel and the multiple of the features that suit many rows, for what was learned on few of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from convexkernels.clock import Clock
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.solvers.convex.held_out_path import SharedPath
from convexkernels.solvers.convex.preparation import Preparation

# Candidates are so many times each other, and are tried on so many rows: fewer than there are, and so they stay below
# what suits all of them. Risks of near candidates differ by less than a tenth of the rows tells.
RATIO, ROWS, SHARE = 1.25, 16_000, 0.25
# What a multiple has to gain for the next one to be tried: a share of the risk, but the second is only to be better.
WORTHWHILE = 0.002


def suited_scale(problems: Sequence[FixedKernel], clock: Clock, seed: int) -> tuple[int, float, float]:
    """Which of some kernels, the multiple of its features, 1 or more, and lam with the least risk on held-out rows.

    The best width shrinks with the number of rows, as the schedules of localized machines say [MS16 (17)]: a kernel
    that was learned on a thousand rows at a time is too wide for all of them. Kernels are compared as they are; for the
    best one multiples rise while the risk falls, and a parabola through the last three says where between them. lam is
    chosen anew each time, from where it was best for the first kernel or from the kernel's own, whichever is larger:
    small ones take many more steps.

    Parameters
    ----------
    problems : sequence of FixedKernel
        Of least squares, on the same rows, which differ in the kernel; the first one is the answer where time is short.
    clock : Clock
        What was found when its time is up is taken; so is what was found before an interrupt, which it keeps in mind.
    seed : int
        Of the rows that are looked at, and of those that are held out.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(problems[0].m)[:ROWS])
    parts, found = [problem.on_rows(rows) for problem in problems], list[tuple[float, float]]()
    for i, part in enumerate(parts):
        at = max(part.loss.lam, found[0][1]) if found else part.loss.lam
        risk, lam = _held_out_risk(part.with_loss(part.loss.at(at)), clock, seed)
        if clock.is_over:
            clock.cut("the comparison of kernels")
            break
        found.append((risk, lam))
        clock.show.note(f"kernel {i + 1} of {len(parts)}: risk {risk:.4g} on held-out rows")
    which = int(np.argmin([risk for risk, _ in found])) if found else 0
    part, found = parts[which], found[which : which + 1]
    while not clock.is_over and _may_gain([risk for risk, _ in found]):
        scaled = part.rescaled(RATIO ** len(found))
        risk, lam = _held_out_risk(scaled.with_loss(part.loss.at(found[-1][1])), clock, seed)
        if clock.is_over:
            clock.cut("the comparison of kernels")
            break
        found.append((risk, lam))
        clock.show.note(f"features times {RATIO ** (len(found) - 1):.3g}: risk {risk:.4g} on held-out rows")
    risks = [risk for risk, _ in found]
    best = int(np.argmin(risks)) if risks else 0
    lam = found[best][1] if found else float(part.loss.lam)
    return which, float(RATIO ** (best + _vertex(risks, best))), lam


def _may_gain(risks: list[float]) -> bool:
    """Whether the next multiple may have less risk, or says where between the last two it is least."""
    if len(risks) < 2:
        return True
    return risks[-1] < risks[-2] * (1.0 if len(risks) == 2 else 1.0 - WORTHWHILE)


def _held_out_risk(problem: FixedKernel, clock: Clock, seed: int) -> tuple[float, float]:
    """The least risk on held-out rows, and its lam; the matrix is gone when it is known."""
    path = SharedPath.of(problem, np.random.default_rng(seed), SHARE, prepared=Preparation(problem))
    lam = path.follow(None, clock)
    return float(path.risks().min()) if path.is_begun else np.inf, lam


def _vertex(risks: list[float], at: int) -> float:
    """How far from the least of some values, in steps, the parabola through it and its neighbors is least."""
    if not 0 < at < len(risks) - 1:
        return 0.0
    before, here, after = np.log(np.maximum(risks[at - 1 : at + 2], np.finfo(np.float64).tiny))
    bend = before - 2.0 * here + after
    return float(0.5 * (before - after) / bend) if bend > 0.0 else 0.0
