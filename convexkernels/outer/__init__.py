"""The answer of searches that have not moved to the driver yet."""

from convexkernels.outer.solution import OuterSolution

__all__ = ["OuterSolution"]
