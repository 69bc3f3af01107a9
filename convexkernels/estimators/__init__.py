"""Estimators with the interface of scikit-learn."""

from convexkernels.estimators.concatenated import (
    ConcatenatedKernelClassifier,
    ConcatenatedKernelInterpolator,
    ConcatenatedKernelRegressor,
)
from convexkernels.estimators.hierarchical_classifier import HierarchicalGaussianClassifier
from convexkernels.estimators.hierarchical_regressor import HierarchicalGaussianRegressor
from convexkernels.estimators.multiple_kernel import MultipleKernelRidge, MultipleKernelSVC, MultipleKernelSVR
from convexkernels.estimators.spectral_classifier import SpectralKernelClassifier
from convexkernels.estimators.spectral_regressor import SpectralKernelRegressor
from convexkernels.estimators.tessellated import TessellatedSVC
from convexkernels.estimators.tessellated_regression import TessellatedRidge, TessellatedSVR
from convexkernels.estimators.voronoi_classification import VoronoiSVC
from convexkernels.estimators.voronoi_quantile import VoronoiQuantile
from convexkernels.estimators.voronoi_regression import VoronoiRidge
from convexkernels.estimators.voronoi_svr import VoronoiSVR

__all__ = [
    "ConcatenatedKernelClassifier",
    "ConcatenatedKernelInterpolator",
    "ConcatenatedKernelRegressor",
    "HierarchicalGaussianClassifier",
    "HierarchicalGaussianRegressor",
    "MultipleKernelRidge",
    "MultipleKernelSVC",
    "MultipleKernelSVR",
    "SpectralKernelClassifier",
    "SpectralKernelRegressor",
    "TessellatedRidge",
    "TessellatedSVC",
    "TessellatedSVR",
    "VoronoiQuantile",
    "VoronoiRidge",
    "VoronoiSVC",
    "VoronoiSVR",
]
