"""What the norm of an inner layer costs: the functions Theta_l of a concatenation, by the squared norm.

`PENALTIES` is the table of all of them, with an example of each: the tests of concatenations run over it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number


class Penalty(ABC):
    """A strictly increasing function Theta of a squared norm ``s = |f|^2 >= 0`` with Theta(0) = 0 [BGR19 (7)].

    That it increases strictly is all that the representer theorem asks for [BGR19 Theorem 1].
    """

    @abstractmethod
    def value(self, s: float) -> float:
        """Theta(s)."""

    @abstractmethod
    def slope(self, s: float) -> float:
        """``dTheta / ds``; 0 where s = 0 and the derivative is infinite."""


@dataclass(frozen=True)
class PowerPenalty(Penalty):
    """``|f|^p``.

    Parameters
    ----------
    p : float, >= 1
        2 is the squared norm. Smaller powers charge small functions more and large ones less. With 1 the objective has
        a kink where a layer is 0, all images being one point: a search that ends there does not call it stationary.
    """

    p: float = 2.0

    def __post_init__(self) -> None:
        check_number("p", self.p, low=1.0)

    def value(self, s: float) -> float:
        if self.p == 2.0:
            return s
        with np.errstate(over="ignore"):  # beyond the largest number it is worse than anything
            return float(np.float64(max(s, 0.0)) ** (0.5 * self.p))

    def slope(self, s: float) -> float:
        if self.p == 2.0:
            return 1.0
        if s <= 0.0:  # rounding, or the layer is 0: so is the derivative in f, or it is 0 that is nearest to a kink
            return 0.0
        with np.errstate(over="ignore"):
            return float(0.5 * self.p * np.float64(s) ** (0.5 * self.p - 1.0))


@dataclass(frozen=True)
class LogPenalty(Penalty):
    """``log(1 + |f|^2)``: the squared norm of small functions, and next to nothing more for larger ones."""

    def value(self, s: float) -> float:
        return float(np.log1p(max(s, 0.0)))

    def slope(self, s: float) -> float:
        return 1.0 / (1.0 + max(s, 0.0))


PENALTIES: dict[str, Callable[[], Penalty]] = {
    "squared": lambda: PowerPenalty(),
    "norm": lambda: PowerPenalty(1.0),
    "power": lambda: PowerPenalty(3.0),
    "log": lambda: LogPenalty(),
}


def check_penalties(penalty: Any, depth: int) -> tuple[Penalty, ...]:
    """One penalty per inner layer, outermost first, of one for all or a list; None is the squared norm."""
    if penalty is None:
        penalty = PowerPenalty()
    members = [penalty] * depth if isinstance(penalty, Penalty) else penalty
    if not isinstance(members, list | tuple) or not all(isinstance(member, Penalty) for member in members):
        raise InvalidInputError(
            f"penalty must be PowerPenalty(p) or LogPenalty(), or a list of them, one per inner layer, got {penalty!r}."
        )
    if len(members) != depth:
        raise InvalidInputError(f"penalty must be one or {depth}, one per inner layer, got {penalty!r}.")
    return tuple(members)
