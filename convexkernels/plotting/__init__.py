"""Pictures of what was learned, as Display objects; matplotlib is imported when something is drawn."""

from convexkernels.plotting.certificate import CertificateDisplay
from convexkernels.plotting.concatenated import ErrorMapDisplay, GridTransformationDisplay, SurfaceDisplay
from convexkernels.plotting.cover import CoverDisplay
from convexkernels.plotting.decision_surface import DecisionSurfaceDisplay
from convexkernels.plotting.hierarchical import FeatureRelevanceDisplay, KernelTreeDisplay, RiskHistoryDisplay
from convexkernels.plotting.kernel_slice import KernelSliceDisplay
from convexkernels.plotting.kernel_weights import KernelMatricesDisplay, KernelWeightsDisplay, RegularizationPathDisplay
from convexkernels.plotting.parameter_matrix import ParameterMatrixDisplay
from convexkernels.plotting.selection import SelectionDisplay
from convexkernels.plotting.spectral import LearningCurvesDisplay, NonStationarityDisplay, SpectralDensityDisplay

__all__ = [
    "CertificateDisplay",
    "CoverDisplay",
    "DecisionSurfaceDisplay",
    "ErrorMapDisplay",
    "FeatureRelevanceDisplay",
    "GridTransformationDisplay",
    "KernelMatricesDisplay",
    "KernelSliceDisplay",
    "KernelTreeDisplay",
    "KernelWeightsDisplay",
    "LearningCurvesDisplay",
    "NonStationarityDisplay",
    "ParameterMatrixDisplay",
    "RegularizationPathDisplay",
    "RiskHistoryDisplay",
    "SelectionDisplay",
    "SpectralDensityDisplay",
    "SurfaceDisplay",
]
