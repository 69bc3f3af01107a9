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
    "Kernel": "kernels",
    "Centered": "kernels",
    "Concatenated": "kernels",
    "Constant": "kernels",
    "Gaussian": "kernels",
    "HierarchicalGaussian": "kernels",
    "KernelMap": "kernels",
    "Linear": "kernels",
    "Localized": "kernels",
    "Matern": "kernels",
    "Normalized": "kernels",
    "OnColumns": "kernels",
    "GeneralizedPolynomialKernel": "kernels",
    "Polynomial": "kernels",
    "Rescaled": "kernels",
    "Spectral": "kernels",
    "TessellatedKernel": "kernels",
    "TensorMatern": "kernels",
    "WeightedSum": "kernels",
    # families
    "AllKernelMatrices": "families",
    "Box": "families",
    "Candidates": "families",
    "Family": "families",
    "GeneralizedPolynomial": "families",
    "Precomputed": "families",
    "Span": "families",
    "Tessellated": "families",
    "UnitBox": "families",
    "data_library": "families",
    "kernel_library": "families",
    "optimal_kernel_matrix": "families",
    "random_tessellated_kernels": "families",
    # losses
    "EpsilonInsensitive": "losses",
    "Hinge": "losses",
    "Interpolation": "losses",
    "Logistic": "losses",
    "LeastSquares": "losses",
    "Loss": "losses",
    "Pinball": "losses",
    # problems and solvers
    "FixedKernel": "problems",
    "KernelLearning": "problems",
    "OuterLearning": "problems",
    "HeldOut": "criteria",
    "LeaveOneOut": "criteria",
    "TrainingValue": "criteria",
    "Concatenations": "families.curved",
    "Restarts": "solvers.nonconvex.restarts",
    "Trees": "families.curved",
    "Widths": "families.curved",
    "SpectralMaps": "families.curved",
    "KernelMatching": "problems",
    "DecisionFunction": "problems",
    "Program": "problems",
    # estimators
    "ConcatenatedKernelClassifier": "estimators",
    "ConcatenatedKernelInterpolator": "estimators",
    "ConcatenatedKernelRegressor": "estimators",
    "HierarchicalGaussianClassifier": "estimators",
    "HierarchicalGaussianRegressor": "estimators",
    "MultipleKernelRidge": "estimators",
    "MultipleKernelSVC": "estimators",
    "MultipleKernelSVR": "estimators",
    "SpectralKernelClassifier": "estimators",
    "SpectralKernelRegressor": "estimators",
    "TessellatedRidge": "estimators",
    "TessellatedSVC": "estimators",
    "TessellatedSVR": "estimators",
    "VoronoiQuantile": "estimators",
    "VoronoiRidge": "estimators",
    "VoronoiSVC": "estimators",
    "VoronoiSVR": "estimators",
    "TreeSearch": "estimators",
    "TreeSelection": "estimators",
    "Schedule": "solvers.nonconvex.algorithm1",
    "Training": "spectral",
    # partitions
    "CellSelection": "cells",
    "Cells": "cells",
    "OverlappingCover": "cells",
    "RandomChunks": "cells",
    "TreeCover": "cells",
    "VoronoiCover": "cells",
    "farthest_first": "cells",
    "tree_cover": "cells",
    "voronoi_cover": "cells",
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
