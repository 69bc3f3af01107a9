"""Non-convex outer loops around convex inner programs; their answers are stationary, never proven optimal."""

from convexkernels.outer.concatenated import ConcatenatedLearning
from convexkernels.outer.hierarchical import HierarchicalLearning, HierarchicalSolution
from convexkernels.outer.hierarchical_published import PAPER_SCHEDULE, Schedule
from convexkernels.outer.outermost import InnerProgram, Interpolation, SquaredError
from convexkernels.outer.solution import OuterSolution

__all__ = [
    "PAPER_SCHEDULE",
    "ConcatenatedLearning",
    "HierarchicalLearning",
    "HierarchicalSolution",
    "InnerProgram",
    "Interpolation",
    "OuterSolution",
    "Schedule",
    "SquaredError",
]
