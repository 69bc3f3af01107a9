"""What a claim is: a sentence of a paper, a check, and a false variant the same check must refute."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.checking import Outcome, Verdict

HOLDS, REFUTED = Outcome.HOLDS_NUMERICALLY, Outcome.REFUTED

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim.

    Parameters
    ----------
    name : str
        Lower case, words joined by hyphens, unique over all papers.
    statement : str
        The claim in one sentence.
    paper : str
        Key of the paper.
    number : str
        Where the paper says it.
    measure : callable
        ``measure(subject, rng)`` looks at one random case and returns its Verdict.
    subject : object
        What the paper claims: a formula, a kernel, a constant.
    impostor : object
        A deliberately false variant of `subject`; `measure` must refute it.
    expected : Outcome
        REFUTED for statements that are wrong as printed.
    trials : int
        Number of random cases when the caller does not say.
    """

    name: str
    statement: str
    paper: str
    number: str
    measure: Callable[[Any, Generator], Verdict]
    subject: Any
    impostor: Any
    expected: Outcome = HOLDS
    trials: int = 10

    def check(self, rng: Generator, trials: int | None = None) -> Verdict:
        """Look at `trials` random cases of what the paper claims."""
        return self._look(self.subject, rng, trials, hunt=self.expected is REFUTED)

    def control(self, rng: Generator, trials: int | None = None) -> Verdict:
        """Run the very same check on the false variant, until one case refutes it."""
        return self._look(self.impostor, rng, 1 if trials is None else min(trials, self.trials), hunt=True)

    def _look(self, subject: Any, rng: Generator, trials: int | None, *, hunt: bool) -> Verdict:
        """Worst verdict of `trials` cases; a hunt goes on up to `self.trials` until something is refuted.

        A statement that is wrong need not be wrong in every case.
        """
        wanted = self.trials if trials is None else trials
        verdicts: list[Verdict] = []
        for case, child in enumerate(rng.spawn(max(wanted, self.trials))):
            if case >= wanted and (not hunt or not all(verdict.holds for verdict in verdicts)):
                break
            verdicts.append(self.measure(subject, child))
        return Verdict.worst(verdicts)


def agreed(exact: float | Array, library: float | Array, tolerance: float) -> None:
    """Stop where the library does not have the exact values that a printed formula is about to be compared with.

    A formula that is wrong is far from other wrong values, too: it is refuted only by what two evaluations agree on.
    """
    apart = float(np.max(np.abs(exact - library)))
    if not apart <= tolerance:
        raise ArithmeticError(f"the library is {apart:.2e} away from the exact value, more than {tolerance:.2e}")


@dataclass(frozen=True, eq=False)
class Finding:
    """What running a claim gave."""

    claim: Claim
    verdict: Verdict
    control: Verdict
    seed: int
    seconds: float
    errors: tuple[str, ...] = ()

    @property
    def surprises(self) -> list[str]:
        """What is not as it should be; empty when the claim is settled."""
        if self.errors:
            return [f"not settled, stopped by {error}" for error in self.errors]
        found = []
        if self.verdict.outcome is not self.claim.expected:
            found.append(f"expected '{self.claim.expected.value}', found '{self.verdict.outcome.value}'")
        if self.control.outcome is not REFUTED:
            found.append("the control was not refuted: the check has no power")
        return found


def settle(claim: Claim, seed: int, trials: int | None = None) -> Finding:
    """Run a claim and its control.

    The random stream depends on the seed and the claim's name only, so that a claim run alone meets
    the same cases as in the whole suite. An error settles nothing: it is kept, and counts as a surprise.
    """
    start = time.perf_counter()
    key = zlib.crc32(claim.name.encode())
    verdict, problem = _attempt(claim.check, np.random.default_rng([seed, key]), trials)
    control, other = _attempt(claim.control, np.random.default_rng([seed, key]), trials)
    errors = tuple(error for error in (problem, other) if error)
    return Finding(claim, verdict, control, seed, time.perf_counter() - start, errors)


def _attempt(
    look: Callable[[Generator, int | None], Verdict], rng: Generator, trials: int | None
) -> tuple[Verdict, str]:
    """The verdict, and the error that came instead of one."""
    try:
        return look(rng, trials), ""
    except Exception as error:
        return Verdict(float("nan"), 0.0, 0, {"error": repr(error)}), repr(error)
