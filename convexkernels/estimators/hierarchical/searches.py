"""Several searches within one limit of time, and what follows them."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from convexkernels.arrays import Index
from convexkernels.clock import Clock
from convexkernels.estimators.hierarchical.all_rows import TIMED_ROWS
from convexkernels.exceptions import tell
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status

Job = Callable[[Clock], Solution]


def one_after_the_other(jobs: Sequence[Job], clock: Clock, then: str) -> tuple[list[Solution], bool]:
    """Searches, each with an equal share of the time that is left, and whether the user interrupted them.

    What follows is said with the announcement of each: an interrupt before there is anything would be lost otherwise.
    """
    solutions: list[Solution] = []
    try:
        for k, job in enumerate(jobs):
            clock.show.note(f"search {k + 1} of {len(jobs)}, then {then}")
            solutions.append(job(clock.part(1.0 / (len(jobs) - k))))
            clock.show.note(f"search {k + 1} of {len(jobs)}: {solutions[-1].certificate}")
            if solutions[-1].status is Status.INTERRUPTED:
                return solutions, True
    except KeyboardInterrupt:
        if not solutions:
            raise
        tell(f"INTERRUPTED by the user; the best of {len(solutions)} of {len(jobs)} searches is kept.")
        return solutions, True
    return solutions, False


def training_seconds(problem: OuterLearning) -> float:
    """About how long the functions of a point take to be trained on `TIMED_ROWS` rows."""
    rows: Index = np.arange(0, problem.m, max(1, problem.m // TIMED_ROWS))
    part = problem.on_rows(rows)
    began = time.monotonic()
    part.train(part.start(0))
    return (time.monotonic() - began) * (TIMED_ROWS / part.m) ** 3
