"""Learn the kernel of an SVM or of ridge regression by optimization, and certify the answer.

Everything public is importable from here; modules are loaded on first use, so that
``import convexkernels`` stays cheap.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it
_HOME = {
    # kernels
    "Kernel": "kernels.base",
    "Centered": "kernels.normalized",
    "Concatenated": "kernels.concatenated",
    "Constant": "kernels.base",
    "Gaussian": "kernels.gaussian",
    "HierarchicalGaussian": "kernels.hierarchical.kernel",
    "KernelMap": "kernels.concatenated",
    "Linear": "kernels.polynomial",
    "Localized": "kernels.localized",
    "Matern": "kernels.matern",
    "Normalized": "kernels.normalized",
    "OnColumns": "kernels.algebra",
    "GeneralizedPolynomialKernel": "kernels.tessellated",
    "Polynomial": "kernels.polynomial",
    "Rescaled": "kernels.rescaled",
    "Spectral": "kernels.spectral",
    "TessellatedKernel": "kernels.tessellated",
    "TensorMatern": "kernels.tensor_matern",
    "WeightedSum": "kernels.algebra",
    # families
    "AllKernelMatrices": "families.all_kernel_matrices",
    "Box": "families.box",
    "Candidates": "families.candidates",
    "Family": "families.base",
    "GeneralizedPolynomial": "families.generalized_polynomial",
    "Precomputed": "families.precomputed",
    "Span": "families.span",
    "Tessellated": "families.tessellated",
    "UnitBox": "families.box",
    "data_library": "families.library",
    "kernel_library": "families.library",
    "optimal_kernel_matrix": "families.all_kernel_matrices",
    "random_tessellated_kernels": "families.library",
    # losses
    "EpsilonInsensitive": "losses.epsilon_insensitive",
    "Hinge": "losses.hinge",
    "Interpolation": "losses.interpolation",
    "Logistic": "losses.logistic",
    "LeastSquares": "losses.least_squares",
    "Loss": "losses.base",
    "Pinball": "losses.pinball",
    # problems and solvers
    "FixedKernel": "problems.fixed_kernel",
    "KernelLearning": "problems.kernel_learning",
    "OuterLearning": "problems.outer_learning",
    "HeldOut": "criteria.held_out",
    "LeaveOneOut": "criteria.leave_one_out",
    "TrainingValue": "criteria.training_value",
    "Concatenations": "families.curved.concatenations",
    "Restarts": "solvers.nonconvex.restarts",
    "Trees": "families.curved.trees",
    "Widths": "families.curved.widths",
    "SpectralMaps": "families.curved.spectral_maps",
    "KernelMatching": "problems.kernel_matching",
    "DecisionFunction": "problems.decision_function",
    "Program": "problems.program",
    # estimators
    "ConcatenatedKernelClassifier": "estimators.concatenated",
    "ConcatenatedKernelInterpolator": "estimators.concatenated",
    "ConcatenatedKernelRegressor": "estimators.concatenated",
    "HierarchicalGaussianClassifier": "estimators.hierarchical",
    "HierarchicalGaussianRegressor": "estimators.hierarchical",
    "MultipleKernelRidge": "estimators.multiple_kernel",
    "MultipleKernelSVC": "estimators.multiple_kernel",
    "MultipleKernelSVR": "estimators.multiple_kernel",
    "SpectralKernelClassifier": "estimators.spectral",
    "SpectralKernelRegressor": "estimators.spectral",
    "TessellatedRidge": "estimators.tessellated",
    "TessellatedSVC": "estimators.tessellated",
    "TessellatedSVR": "estimators.tessellated",
    "VoronoiQuantile": "estimators.voronoi",
    "VoronoiRidge": "estimators.voronoi",
    "VoronoiSVC": "estimators.voronoi",
    "VoronoiSVR": "estimators.voronoi",
    "TreeSearch": "estimators.hierarchical_settings",
    "TreeSelection": "estimators.hierarchical_settings",
    "Schedule": "solvers.nonconvex.algorithm1",
    "Training": "spectral.options",
    # partitions
    "CellSelection": "cells.learner",
    "Cells": "cells.options",
    "OverlappingCover": "cells.cover",
    "RandomChunks": "cells.cover",
    "TreeCover": "cells.cover",
    "VoronoiCover": "cells.cover",
    "farthest_first": "cells.traversal",
    "tree_cover": "cells.covering",
    "voronoi_cover": "cells.covering",
    # vocabulary
    "warm_up": "compiled",
    "Outcome": "checking",
    "Verdict": "checking",
    "check_gradient": "checking",
    "check_psd": "checking",
    "DualityGap": "certificate",
    "RigorousGap": "certificate",
    "Stationarity": "certificate",
    "Record": "solution",
    "Solution": "solution",
    "Status": "solution",
    "ClusterError": "exceptions",
    "ConvexKernelsError": "exceptions",
    "ConvexKernelsWarning": "exceptions",
    "InvalidInputError": "exceptions",
    "MemoryLimitError": "exceptions",
    "NotDifferentiableError": "exceptions",
    "SolverUnavailableError": "exceptions",
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
