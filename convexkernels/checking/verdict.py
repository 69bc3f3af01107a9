"""What a numerical check can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np


class Outcome(Enum):
    """What a numerical check can say; neither is a proof that something holds."""

    HOLDS_NUMERICALLY = "holds numerically"
    REFUTED = "refuted"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Answer of a numerical check.

    Attributes
    ----------
    worst_violation : float
        Amount by which the statement fails in the worst case seen; inf for a value that is not finite.
    tolerance : float
        Largest amount that the arithmetic of that very case can explain.
    trials : int
        Number of cases looked at.
    witness : mapping of str to ndarray
        The data of the worst case.
    """

    worst_violation: float
    tolerance: float
    trials: int
    witness: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """REFUTED when the worst violation is above its tolerance (or is NaN)."""
        return Outcome.HOLDS_NUMERICALLY if self.worst_violation <= self.tolerance else Outcome.REFUTED

    @property
    def holds(self) -> bool:
        """Whether nothing was found that speaks against the statement."""
        return self.outcome is Outcome.HOLDS_NUMERICALLY

    @property
    def severity(self) -> float:
        """``worst_violation / tolerance``: above 1 means refuted; inf when it cannot be formed."""
        ratio = self.worst_violation / self.tolerance if self.tolerance > 0 else np.inf
        if self.holds:
            return float(ratio) if np.isfinite(ratio) else 0.0
        return float(ratio) if ratio > 1.0 else float("inf")

    @staticmethod
    def worst(verdicts: list[Verdict]) -> Verdict:
        """Join the verdicts of several cases: the most severe one speaks for all."""
        leader = max(verdicts, key=lambda verdict: verdict.severity)
        trials = sum(verdict.trials for verdict in verdicts)
        return Verdict(leader.worst_violation, leader.tolerance, trials, leader.witness)

    def __str__(self) -> str:
        return (
            f"{self.outcome.value}: worst violation {self.worst_violation:.3g}, "
            f"tolerance {self.tolerance:.3g}, {self.trials} trial{'s' if self.trials != 1 else ''}"
        )
