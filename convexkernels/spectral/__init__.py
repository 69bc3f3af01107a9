"""Spectral kernels whose frequencies are learned together with the weights of the function that uses them."""

from convexkernels.spectral.fitting import learn_spectral
from convexkernels.spectral.learning import SETTINGS, Setting, SpectralLearning, SpectralPoint
from convexkernels.spectral.training import Schedule

__all__ = ["SETTINGS", "Schedule", "Setting", "SpectralLearning", "SpectralPoint", "learn_spectral"]
