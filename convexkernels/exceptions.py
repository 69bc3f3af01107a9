"""The errors and the warning the library raises.

Every message says what was wrong, what was found and what would work.
"""

__all__ = [
    "ClusterError",
    "ConvexKernelsError",
    "ConvexKernelsWarning",
    "InvalidInputError",
    "MemoryLimitError",
    "NotDifferentiableError",
    "SolverUnavailableError",
]


class ConvexKernelsError(Exception):
    """Root of all errors raised by the library."""


class InvalidInputError(ConvexKernelsError, ValueError):
    """An argument has a value with which no work can start."""


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
