"""Non-convex outer loops around convex inner programs; their answers are stationary, never proven optimal."""

from convexkernels.outer.concatenated import ConcatenatedLearning
from convexkernels.outer.outermost import InnerProgram, Interpolation, SquaredError
from convexkernels.outer.solution import OuterSolution

__all__ = [
    "ConcatenatedLearning",
    "InnerProgram",
    "Interpolation",
    "OuterSolution",
    "SquaredError",
]
