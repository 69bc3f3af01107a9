"""What a bound says, and the constants that papers leave open."""

from math import log10
from typing import Any, NamedTuple

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import as_array, check_number, check_vector, check_whole_number

# Floats are between exp(-708.4) and exp(709.8); the rest is for rounding of logarithms.
LARGEST_LOG = 708.0
# Products of three exponents are formed; numbers of features are exponents, too, and numbers of rows are divided by.
LARGEST_EXPONENT, LARGEST_FEATURES, LARGEST_COUNT = 1e100, 1e15, 1e300


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


def check_exponent(name: str, value: Any, *, low: float, open_low: bool = False) -> float:
    """A number >= `low` (or > `low`) with whose products exponents can be computed."""
    check_number(name, value, low=low, open_low=open_low)
    return check_number(name, value, low=low, high=LARGEST_EXPONENT)


def check_count(name: str, value: Any, *, low: int = 1, high: float = LARGEST_COUNT) -> int:
    """A whole number >= `low` that can be computed with as a float."""
    count = check_whole_number(name, value, low=low)
    if count > high:
        raise InvalidInputError(f"{name} must be at most {high:g}, got about 10^{log10(count):.4g}; pass fewer.")
    return count


def check_features(d: Any) -> int:
    """A number of features."""
    return check_count("d", d, high=LARGEST_FEATURES)


def check_cells(name: str, value: Any, m: int = 0, *, low: float = 0.0, open_low: bool = False) -> Array:
    """One number per cell, of m cells, or of one or more."""
    size = m or max(1, as_array(value, name).size)
    return check_vector(name, value, size, per="cell", low=low, open_low=open_low)


def check_kind(name: str, value: Any, kind: type) -> None:
    """Refuse what are not the numbers of a theorem, such as an estimator."""
    if not isinstance(value, kind):
        made = kind.__name__
        raise InvalidInputError(f"{name} must be {made}, got {value!r}; {made}.of makes them from a fitted estimator.")


def check_finite(what: str, value: float, remedy: str) -> float:
    """Refuse a number that has become infinite on the way."""
    if not np.isfinite(value):
        raise InvalidInputError(f"{what} is out of the range of floats; {remedy}.")
    return float(value)


def check_fits(what: str, log: float, remedy: str, *, low: float = -np.inf) -> None:
    """Refuse a number, by its natural logarithm, that is larger than all floats, or not above ``exp(low)``."""
    if not (log == -np.inf or low < log) or not log < LARGEST_LOG:
        raise InvalidInputError(f"{what} is about 10^{log / np.log(10.0):.4g}, out of the range of floats; {remedy}.")
