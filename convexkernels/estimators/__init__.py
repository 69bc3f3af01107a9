"""Estimators with the interface of scikit-learn."""

from convexkernels.estimators.concatenated import (
    ConcatenatedKernelClassifier,
    ConcatenatedKernelInterpolator,
    ConcatenatedKernelRegressor,
)
from convexkernels.estimators.multiple_kernel import MultipleKernelRidge, MultipleKernelSVC, MultipleKernelSVR
from convexkernels.estimators.tessellated import TessellatedSVC
from convexkernels.estimators.tessellated_regression import TessellatedRidge, TessellatedSVR
from convexkernels.estimators.voronoi_classification import VoronoiSVC
from convexkernels.estimators.voronoi_regression import VoronoiQuantile, VoronoiRidge, VoronoiSVR

__all__ = [
    "ConcatenatedKernelClassifier",
    "ConcatenatedKernelInterpolator",
    "ConcatenatedKernelRegressor",
    "MultipleKernelRidge",
    "MultipleKernelSVC",
    "MultipleKernelSVR",
    "TessellatedRidge",
    "TessellatedSVC",
    "TessellatedSVR",
    "VoronoiQuantile",
    "VoronoiRidge",
    "VoronoiSVC",
    "VoronoiSVR",
]
