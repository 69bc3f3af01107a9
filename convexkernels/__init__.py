"""Learn the kernel of an SVM or of ridge regression by optimization, and certify the answer.

Everything public is importable from here; modules are loaded on first use, so that
``import convexkernels`` stays cheap.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it
_HOME = {
    name: module
    for module, names in {
        # kernels
        "kernels.algebra": "OnColumns WeightedSum",
        "kernels.base": "Constant Kernel",
        "kernels.concatenated": "Concatenated KernelMap",
        "kernels.gaussian": "Gaussian",
        "kernels.hierarchical.kernel": "HierarchicalGaussian",
        "kernels.localized": "Localized",
        "kernels.matern": "Matern",
        "kernels.normalized": "Centered Normalized",
        "kernels.nystrom": "Nystrom",
        "kernels.polynomial": "Linear Polynomial",
        "kernels.rescaled": "Rescaled",
        "kernels.spectral": "Spectral",
        "kernels.stumps": "Stumps",
        "kernels.tensor_matern": "TensorMatern",
        "kernels.tessellated": "GeneralizedPolynomialKernel TessellatedKernel",
        # families
        "families.all_kernel_matrices": "AllKernelMatrices optimal_kernel_matrix",
        "families.base": "Family",
        "families.box": "Box UnitBox",
        "families.candidates": "Candidates",
        "families.generalized_polynomial": "GeneralizedPolynomial",
        "families.library": "data_library kernel_library random_tessellated_kernels",
        "families.precomputed": "Precomputed",
        "families.span": "Span",
        "families.tessellated": "Tessellated",
        # losses
        "losses.base": "Loss",
        "losses.epsilon_insensitive": "EpsilonInsensitive",
        "losses.hinge": "Hinge",
        "losses.interpolation": "Interpolation",
        "losses.least_squares": "LeastSquares",
        "losses.logistic": "Logistic",
        "losses.pinball": "Pinball",
        # problems and solvers
        "criteria.held_out": "HeldOut",
        "criteria.leave_one_out": "LeaveOneOut",
        "criteria.training_value": "TrainingValue",
        "families.curved.concatenations": "Concatenations",
        "families.curved.penalties": "LogPenalty PowerPenalty",
        "families.curved.spectral_maps": "SpectralMaps",
        "families.curved.trees": "Trees",
        "families.curved.widths": "Widths",
        "problems.decision_function": "DecisionFunction",
        "problems.fixed_kernel": "FixedKernel",
        "problems.kernel_learning": "KernelLearning",
        "problems.kernel_matching": "KernelMatching",
        "problems.outer_learning": "OuterLearning",
        "problems.program": "Program",
        "solvers.nonconvex.restarts": "Restarts",
        # estimators
        "estimators.hierarchical.all_rows": "AllRows",
        "estimators.concatenated.estimators": "ConcatenatedKernelClassifier ConcatenatedKernelInterpolator"
        " ConcatenatedKernelRegressor",
        "estimators.hierarchical.estimators": "HierarchicalGaussianClassifier HierarchicalGaussianRegressor",
        "estimators.hierarchical.settings": "TreeSearch TreeSelection",
        "estimators.convex.multiple_kernel": "MultipleKernelRidge MultipleKernelSVC MultipleKernelSVR",
        "estimators.spectral.estimators": "SpectralKernelClassifier SpectralKernelRegressor",
        "estimators.convex.tessellated": "TessellatedRidge TessellatedSVC TessellatedSVR",
        "estimators.voronoi.estimators": "VoronoiQuantile VoronoiRidge VoronoiSVC VoronoiSVR",
        "solvers.nonconvex.algorithm1": "Schedule",
        "spectral.options": "SpectralSetting Training",
        # partitions
        "cells.cover": "OverlappingCover RandomChunks TreeCover VoronoiCover",
        "cells.covering": "tree_cover voronoi_cover",
        "cells.learner": "CellSelection",
        "cells.options": "Cells",
        "cells.traversal": "farthest_first",
        # vocabulary
        "certificate": "DualityGap RigorousGap Stationarity",
        "checking": "Outcome Verdict check_gradient check_psd",
        "compiled": "warm_up",
        "exceptions": "ClusterError ConvexKernelsError ConvexKernelsWarning InvalidInputError MemoryLimitError"
        " MissingAttributeError NotDifferentiableError SolverUnavailableError UnsuitedFamilyWarning",
        "solution": "Record Solution Status",
    }.items()
    for name in names.split()
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'convexkernels' has no attribute {name!r}")
    value = getattr(import_module(f"convexkernels.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
