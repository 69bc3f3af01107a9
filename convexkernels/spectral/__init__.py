"""Spectral kernels whose frequencies are learned together with the weights of the function that uses them."""

from convexkernels.spectral.fitting import learn_spectral
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.options import SETTINGS, Hyperparameters, Setting, Training

__all__ = [
    "SETTINGS",
    "Hyperparameters",
    "Setting",
    "SpectralLearning",
    "SpectralPoint",
    "Training",
    "learn_spectral",
]
