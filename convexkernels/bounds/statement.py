"""What a bound says, and the constants that papers leave open."""

from typing import Any, NamedTuple

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number

# Floats are between exp(-708.4) and exp(709.8); the rest is for rounding of logarithms.
LARGEST_LOG = 708.0


class Bound(NamedTuple):
    """The right side of an inequality, and how probable it is at least that the inequality holds."""

    value: float
    probability: float


def check_open_constant(name: str, value: Any, place: str) -> float:
    """A constant >= 0 that a paper does not determine; None is refused."""
    if value is None:
        raise InvalidInputError(
            f"{name} is a constant that {place} says there is, without a value; pass one that you can defend, or 0 for "
            "the other terms alone."
        )
    return check_number(name, value, low=0.0)


def check_inside(name: str, value: Any, low: float, high: float) -> float:
    """A number strictly between two others."""
    number = check_number(name, value)
    if not low < number < high:
        raise InvalidInputError(f"{name} must be more than {low:g} and less than {high:g}, got {number:g}.")
    return number


def check_fits(what: str, log: float, remedy: str, *, low: float = -np.inf) -> None:
    """Refuse a number, by its natural logarithm, that is larger than all floats, or not above ``exp(low)``."""
    if not (log == -np.inf or low < log) or not log < LARGEST_LOG:
        raise InvalidInputError(f"{what} is about 10^{log / np.log(10.0):.4g}, out of the range of floats; {remedy}.")
