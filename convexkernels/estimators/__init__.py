"""Estimators with the interface of scikit-learn.

A new one is a file and a line in `ESTIMATORS`: the contract tests pick it up from there.
"""

from collections.abc import Callable
from typing import Any

from convexkernels.cells.learner import CellSelection
from convexkernels.cells.options import Cells
from convexkernels.estimators.concatenated.estimators import (
    ConcatenatedKernelClassifier,
    ConcatenatedKernelInterpolator,
    ConcatenatedKernelRegressor,
)
from convexkernels.estimators.convex.multiple_kernel import MultipleKernelRidge, MultipleKernelSVC, MultipleKernelSVR
from convexkernels.estimators.convex.tessellated import TessellatedRidge, TessellatedSVC, TessellatedSVR
from convexkernels.estimators.hierarchical.estimators import (
    HierarchicalGaussianClassifier,
    HierarchicalGaussianRegressor,
)
from convexkernels.estimators.hierarchical.settings import TreeSearch
from convexkernels.estimators.spectral.estimators import SpectralKernelClassifier, SpectralKernelRegressor
from convexkernels.estimators.voronoi.estimators import VoronoiQuantile, VoronoiRidge, VoronoiSVC, VoronoiSVR
from convexkernels.losses.pinball import Pinball
from convexkernels.spectral.options import SpectralSetting, Training


def _cells(validation: Any = None) -> dict[str, Any]:
    return {"selection": CellSelection(validation, n_lams=3, n_widths=3), "random_state": 0}


_CONCATENATED: dict[str, Any] = {"n_restarts": 1, "tol": 0.05, "random_state": 0}
_HIERARCHICAL: dict[str, Any] = {"architecture": 2, "search": TreeSearch(max_iter=2), "random_state": 0}


def _spectral(**training: Any) -> dict[str, Any]:
    return {"n_components": 60, "sigma": 0.5, "training": Training(max_epochs=12, **training), "random_state": 0}


# name -> (kind of target: "labels" or "numbers", a function that returns an example with cheap settings)
ESTIMATORS: dict[str, tuple[str, Callable[[], Any]]] = {
    "TessellatedSVC": ("labels", lambda: TessellatedSVC(tol=1e-2)),
    "TessellatedSVR": ("numbers", lambda: TessellatedSVR(1.0, epsilon=0.1, tol=1e-2)),
    "TessellatedRidge": ("numbers", lambda: TessellatedRidge(tol=1e-2)),
    "MultipleKernelSVC": ("labels", lambda: MultipleKernelSVC(C=1.0, tol=1e-2)),
    "MultipleKernelSVR": ("numbers", lambda: MultipleKernelSVR(tol=1e-2)),
    "MultipleKernelRidge": ("numbers", lambda: MultipleKernelRidge(lam=0.1, tol=1e-2)),
    "HierarchicalGaussianClassifier": ("labels", lambda: HierarchicalGaussianClassifier(**_HIERARCHICAL)),
    "HierarchicalGaussianClassifier, pairs": (
        "labels",
        lambda: HierarchicalGaussianClassifier(loss="hinge", multi_class="all-vs-all", **_HIERARCHICAL),
    ),
    "HierarchicalGaussianRegressor": ("numbers", lambda: HierarchicalGaussianRegressor(**_HIERARCHICAL)),
    "HierarchicalGaussianRegressor, epsilon": (
        "numbers",
        lambda: HierarchicalGaussianRegressor(loss="epsilon_insensitive", **_HIERARCHICAL),
    ),
    "HierarchicalGaussianRegressor, quantile": (
        "numbers",
        lambda: HierarchicalGaussianRegressor(loss=Pinball(C=5.0, quantile=0.4, intercept=False), **_HIERARCHICAL),
    ),
    "ConcatenatedKernelClassifier": (
        "labels",
        lambda: ConcatenatedKernelClassifier(lam=0.1, mu=0.1, **_CONCATENATED),
    ),
    "ConcatenatedKernelClassifier, least squares": (
        "labels",
        lambda: ConcatenatedKernelClassifier(loss="least_squares", lam=0.1, mu=0.1, **_CONCATENATED),
    ),
    "ConcatenatedKernelRegressor": ("numbers", lambda: ConcatenatedKernelRegressor(lam=0.1, mu=0.1, **_CONCATENATED)),
    "ConcatenatedKernelInterpolator": ("numbers", lambda: ConcatenatedKernelInterpolator(**_CONCATENATED)),
    "SpectralKernelClassifier": ("labels", lambda: SpectralKernelClassifier(**_spectral())),
    "SpectralKernelClassifier, SK": (
        "labels",
        lambda: SpectralKernelClassifier("SK", loss="least_squares", **_spectral()),
    ),
    "SpectralKernelClassifier, SKL": (
        "labels",
        lambda: SpectralKernelClassifier("SKL", loss="hinge", feature_map="psi", **_spectral(dtype="float64")),
    ),
    "SpectralKernelRegressor": ("numbers", lambda: SpectralKernelRegressor(**_spectral())),
    "SpectralKernelRegressor, Cauchy": (
        "numbers",
        lambda: SpectralKernelRegressor(SpectralSetting(measure="cauchy"), **_spectral()),
    ),
    "SpectralKernelRegressor, NSK": (
        "numbers",
        lambda: SpectralKernelRegressor("NSK", **_spectral(validation_fraction=0.0)),
    ),
    "VoronoiRidge": ("numbers", lambda: VoronoiRidge(**_cells())),
    "VoronoiRidge, tree": ("numbers", lambda: VoronoiRidge(cells=Cells("tree"), max_cell_size=10, **_cells())),
    "VoronoiSVC": ("labels", lambda: VoronoiSVC(loss="hinge", **_cells(2))),
    "VoronoiSVC, least squares": ("labels", lambda: VoronoiSVC(max_cell_size=20, **_cells())),
    "VoronoiSVR": ("numbers", lambda: VoronoiSVR(**_cells(2))),
    "VoronoiQuantile": ("numbers", lambda: VoronoiQuantile(**_cells("split"))),
}
