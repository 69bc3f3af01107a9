# What users import, and where it lives: read by type checkers, and by the package when a name is first used.
__version__: str

from convexkernels.cells.cover import OverlappingCover as OverlappingCover
from convexkernels.cells.cover import RandomChunks as RandomChunks
from convexkernels.cells.cover import TreeCover as TreeCover
from convexkernels.cells.cover import VoronoiCover as VoronoiCover
from convexkernels.cells.covering import tree_cover as tree_cover
from convexkernels.cells.covering import voronoi_cover as voronoi_cover
from convexkernels.cells.learner import CellSelection as CellSelection
from convexkernels.cells.options import Cells as Cells
from convexkernels.cells.traversal import farthest_first as farthest_first
from convexkernels.certificate import DualityGap as DualityGap
from convexkernels.certificate import RigorousGap as RigorousGap
from convexkernels.certificate import Stationarity as Stationarity
from convexkernels.checking import Outcome as Outcome
from convexkernels.checking import Verdict as Verdict
from convexkernels.checking import check_gradient as check_gradient
from convexkernels.checking import check_psd as check_psd
from convexkernels.compiled import warm_up as warm_up
from convexkernels.criteria.held_out import HeldOut as HeldOut
from convexkernels.criteria.leave_one_out import LeaveOneOut as LeaveOneOut
from convexkernels.criteria.training_value import TrainingValue as TrainingValue
from convexkernels.estimators.concatenated.estimators import (
    ConcatenatedKernelClassifier as ConcatenatedKernelClassifier,
)
from convexkernels.estimators.concatenated.estimators import (
    ConcatenatedKernelInterpolator as ConcatenatedKernelInterpolator,
)
from convexkernels.estimators.concatenated.estimators import ConcatenatedKernelRegressor as ConcatenatedKernelRegressor
from convexkernels.estimators.convex.multiple_kernel import MultipleKernelRidge as MultipleKernelRidge
from convexkernels.estimators.convex.multiple_kernel import MultipleKernelSVC as MultipleKernelSVC
from convexkernels.estimators.convex.multiple_kernel import MultipleKernelSVR as MultipleKernelSVR
from convexkernels.estimators.convex.tessellated import TessellatedRidge as TessellatedRidge
from convexkernels.estimators.convex.tessellated import TessellatedSVC as TessellatedSVC
from convexkernels.estimators.convex.tessellated import TessellatedSVR as TessellatedSVR
from convexkernels.estimators.hierarchical.all_rows import AllRows as AllRows
from convexkernels.estimators.hierarchical.estimators import (
    HierarchicalGaussianClassifier as HierarchicalGaussianClassifier,
)
from convexkernels.estimators.hierarchical.estimators import (
    HierarchicalGaussianRegressor as HierarchicalGaussianRegressor,
)
from convexkernels.estimators.hierarchical.settings import TreeSearch as TreeSearch
from convexkernels.estimators.hierarchical.settings import TreeSelection as TreeSelection
from convexkernels.estimators.spectral.estimators import SpectralKernelClassifier as SpectralKernelClassifier
from convexkernels.estimators.spectral.estimators import SpectralKernelRegressor as SpectralKernelRegressor
from convexkernels.estimators.voronoi.estimators import VoronoiQuantile as VoronoiQuantile
from convexkernels.estimators.voronoi.estimators import VoronoiRidge as VoronoiRidge
from convexkernels.estimators.voronoi.estimators import VoronoiSVC as VoronoiSVC
from convexkernels.estimators.voronoi.estimators import VoronoiSVR as VoronoiSVR
from convexkernels.exceptions import ClusterError as ClusterError
from convexkernels.exceptions import ConvexKernelsError as ConvexKernelsError
from convexkernels.exceptions import ConvexKernelsWarning as ConvexKernelsWarning
from convexkernels.exceptions import EntryTypeError as EntryTypeError
from convexkernels.exceptions import InvalidInputError as InvalidInputError
from convexkernels.exceptions import MemoryLimitError as MemoryLimitError
from convexkernels.exceptions import MissingAttributeError as MissingAttributeError
from convexkernels.exceptions import NotDifferentiableError as NotDifferentiableError
from convexkernels.exceptions import SolverUnavailableError as SolverUnavailableError
from convexkernels.exceptions import UnsuitedFamilyWarning as UnsuitedFamilyWarning
from convexkernels.families.all_kernel_matrices import AllKernelMatrices as AllKernelMatrices
from convexkernels.families.all_kernel_matrices import optimal_kernel_matrix as optimal_kernel_matrix
from convexkernels.families.base import Family as Family
from convexkernels.families.box import Box as Box
from convexkernels.families.box import UnitBox as UnitBox
from convexkernels.families.candidates import Candidates as Candidates
from convexkernels.families.curved.concatenations import Concatenations as Concatenations
from convexkernels.families.curved.penalties import LogPenalty as LogPenalty
from convexkernels.families.curved.penalties import PowerPenalty as PowerPenalty
from convexkernels.families.curved.spectral_maps import SpectralMaps as SpectralMaps
from convexkernels.families.curved.trees import Trees as Trees
from convexkernels.families.curved.widths import Widths as Widths
from convexkernels.families.generalized_polynomial import GeneralizedPolynomial as GeneralizedPolynomial
from convexkernels.families.library import data_library as data_library
from convexkernels.families.library import kernel_library as kernel_library
from convexkernels.families.library import random_tessellated_kernels as random_tessellated_kernels
from convexkernels.families.precomputed import Precomputed as Precomputed
from convexkernels.families.span import Span as Span
from convexkernels.families.tessellated import Tessellated as Tessellated
from convexkernels.kernels.algebra import OnColumns as OnColumns
from convexkernels.kernels.algebra import WeightedSum as WeightedSum
from convexkernels.kernels.base import Constant as Constant
from convexkernels.kernels.base import Kernel as Kernel
from convexkernels.kernels.beside_ranks import BesideRanks as BesideRanks
from convexkernels.kernels.concatenated import Concatenated as Concatenated
from convexkernels.kernels.concatenated import KernelMap as KernelMap
from convexkernels.kernels.gaussian import Gaussian as Gaussian
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian as HierarchicalGaussian
from convexkernels.kernels.localized import Localized as Localized
from convexkernels.kernels.matern import Matern as Matern
from convexkernels.kernels.normalized import Centered as Centered
from convexkernels.kernels.normalized import Normalized as Normalized
from convexkernels.kernels.nystrom import Nystrom as Nystrom
from convexkernels.kernels.polynomial import Linear as Linear
from convexkernels.kernels.polynomial import Polynomial as Polynomial
from convexkernels.kernels.rescaled import Rescaled as Rescaled
from convexkernels.kernels.spectral import Spectral as Spectral
from convexkernels.kernels.stumps import Stumps as Stumps
from convexkernels.kernels.tensor_matern import TensorMatern as TensorMatern
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel as GeneralizedPolynomialKernel
from convexkernels.kernels.tessellated import TessellatedKernel as TessellatedKernel
from convexkernels.losses.base import Loss as Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive as EpsilonInsensitive
from convexkernels.losses.hinge import Hinge as Hinge
from convexkernels.losses.interpolation import Interpolation as Interpolation
from convexkernels.losses.least_squares import LeastSquares as LeastSquares
from convexkernels.losses.logistic import Logistic as Logistic
from convexkernels.losses.pinball import Pinball as Pinball
from convexkernels.problems.decision_function import DecisionFunction as DecisionFunction
from convexkernels.problems.fixed_kernel import FixedKernel as FixedKernel
from convexkernels.problems.kernel_learning import KernelLearning as KernelLearning
from convexkernels.problems.kernel_matching import KernelMatching as KernelMatching
from convexkernels.problems.outer_learning import OuterLearning as OuterLearning
from convexkernels.problems.program import Program as Program
from convexkernels.solution import Record as Record
from convexkernels.solution import Solution as Solution
from convexkernels.solution import Status as Status
from convexkernels.solvers.nonconvex.algorithm1 import Schedule as Schedule
from convexkernels.solvers.nonconvex.restarts import Restarts as Restarts
from convexkernels.spectral.options import SpectralSetting as SpectralSetting
from convexkernels.spectral.options import Training as Training
