"""Estimators with the interface of scikit-learn."""

from convexkernels.estimators.concatenated import (
    ConcatenatedKernelClassifier,
    ConcatenatedKernelInterpolator,
    ConcatenatedKernelRegressor,
)
from convexkernels.estimators.tessellated import TessellatedSVC

__all__ = [
    "ConcatenatedKernelClassifier",
    "ConcatenatedKernelInterpolator",
    "ConcatenatedKernelRegressor",
    "TessellatedSVC",
]
