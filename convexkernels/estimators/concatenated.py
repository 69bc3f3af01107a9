"""Estimators that learn a concatenation ``h = f_1 o f_2 o ... o f_L``, every layer from the space of its own kernel.

Bohn, Griebel and Rieger, "A representer theorem for deep kernel learning". All layers are learned together.
"""

from convexkernels.estimators.concatenated_classifier import ConcatenatedKernelClassifier
from convexkernels.estimators.concatenated_interpolator import ConcatenatedKernelInterpolator
from convexkernels.estimators.concatenated_regressor import ConcatenatedKernelRegressor

__all__ = ["ConcatenatedKernelClassifier", "ConcatenatedKernelInterpolator", "ConcatenatedKernelRegressor"]
