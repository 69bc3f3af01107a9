"""The errors and the warning the library raises.

Every message says what was wrong, what was found and what would work.
"""

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from convexkernels.workers import first_of_workers

# Packages whose lines are not the ones a user wrote.
_BELOW = frozenset({"convexkernels", "concurrent", "joblib", "multiprocessing", "sklearn", "threading"})
# Two sentences of which either says that a limit came first.
_OF_TIME = re.compile(r"max_time ended .* early;|[\w-]+ stopped with status TIME_LIMIT ")
# Sentences that have been said, and the lines for which they have been.
_SAID: set[tuple[str, str, int]] = set()


class ConvexKernelsError(Exception):
    """Root of all errors raised by the library."""


class InvalidInputError(ConvexKernelsError, ValueError):
    """An argument has a value with which no work can start."""


class MissingAttributeError(InvalidInputError, AttributeError):
    """What a fitted estimator has no answer to, with the reason; `hasattr` says no."""


class EntryTypeError(InvalidInputError, TypeError):
    """A table holds objects that are neither numbers nor text."""


class MemoryLimitError(ConvexKernelsError, MemoryError):
    """The arrays a computation needs are larger than the memory limit; nothing was allocated."""


class NotDifferentiableError(ConvexKernelsError, ValueError):
    """A derivative was asked of a kernel that does not have one."""


class SolverUnavailableError(ConvexKernelsError, RuntimeError):
    """The solver that was asked for is not installed, not licensed or does not fit the problem."""


class ClusterError(ConvexKernelsError, RuntimeError):
    """The cluster that was to do the work is gone, or gave up on it."""


class ConvexKernelsWarning(UserWarning):
    """Root of all warnings of the library: an answer was returned, but not the one asked for."""


class UnsuitedFamilyWarning(ConvexKernelsWarning):
    """The answer is the one asked for, but kernels of another family predict the rows of this table better."""


def tell(text: str, category: type[ConvexKernelsWarning] = ConvexKernelsWarning) -> None:
    """Issue a warning of the library for the line of the user's that is being executed.

    Where warnings are to be shown once for a line, which is Python's default, sentences that differ in their numbers
    alone, or what a time limit has ended, count as one: a search over parameters prints one of them instead of one for
    every fit, and so do the processes that share its work (together; a last fit in the process that began them speaks
    for itself). The memory of the interpreter would not do: it is lost whenever any package touches the filters.
    """
    frame: FrameType | None = sys._getframe(1)
    user = frame
    while frame is not None:
        user, frame = frame, frame.f_back
        if user.f_globals.get("__name__", "").partition(".")[0] not in _BELOW:
            break
    assert user is not None
    name, file, line = user.f_globals.get("__name__", "?"), user.f_code.co_filename, user.f_lineno
    said = _OF_TIME.pattern if _OF_TIME.match(text) else re.sub(r"[-+]?[0-9][-+.0-9e]*", "", text)
    place = said, file, line
    # What is recorded, to be told again or not, has not been said.
    if _action(text, category, name, line) == "default":
        if place in _SAID or not first_of_workers(place[0]):
            return
        _SAID.add(place)
    warnings.warn_explicit(text, category, file, line, name)


@contextmanager
def kept_back() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings of the block, to be told again or not."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvexKernelsWarning)
        yield said


def tell_again(said: Sequence[warnings.WarningMessage]) -> None:
    """Issue warnings that were kept back."""
    for warning in said:
        category: Any = warning.category
        tell(str(warning.message), category)


def _action(text: str, category: type[ConvexKernelsWarning], module: str, line: int) -> str:
    """What the filters say about a warning."""
    for action, message, filtered, where, at in warnings.filters:
        if (
            issubclass(category, filtered)
            and (message is None or re.match(message, text))
            and (where is None or re.match(where, module))
            and at in (0, line)
        ):
            return str(action)
    return "default"
