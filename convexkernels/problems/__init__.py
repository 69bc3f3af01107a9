"""Problems: a family, a loss and data, joined into something that can measure any candidate."""

from convexkernels.problems.certified import Evaluation
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.problems.kernel_matching import KernelMatching, Match
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.problems.program import Program

__all__ = [
    "DecisionFunction",
    "Evaluation",
    "FixedKernel",
    "KernelLearning",
    "KernelMatching",
    "Match",
    "OuterLearning",
    "Program",
]
