"""Estimators that learn a tessellated kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from convexkernels.estimators.base import KernelClassifier, KernelRegressor
from convexkernels.estimators.convex import ConvexEstimator
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.scaling import Scaling
from convexkernels.families.box import UnitBox
from convexkernels.families.tessellated import Tessellated
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares

__all__ = ["TessellatedRidge", "TessellatedSVC", "TessellatedSVR"]


@dataclass(eq=False, repr=False, kw_only=True)
class _TessellatedEstimator(ConvexEstimator):
    degree: int = 1
    z_degree: int | None = 0
    margin: float = 0.5

    def _scaling_of(self, X: NDArray[np.float64]) -> Scaling:
        return Scaling.to_unit_box(X)

    def _family(self, n_features: int) -> Tessellated:
        return Tessellated(self.degree, self.z_degree, UnitBox(self.margin))


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TessellatedSVC(KernelClassifier, _TessellatedEstimator):
    """Support vector classifier that learns its kernel among the tessellated ones, to a certified optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {learned}

    Notes
    -----
    Colbert and Peet (JMLR 2020), (24), with trace P <= 1: another bound on the trace is another C.

    {tessellated}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from convexkernels import TessellatedSVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = TessellatedSVC(C=10.0).fit(X, y)
    >>> model.solution_.certificate.relative_gap <= 1e-4
    True
    >>> model.score(X, y) > 0.95
    True
    """

    C: float = field(default=1.0, kw_only=False)

    def _loss(self) -> Hinge:
        return Hinge(self.C, self.intercept)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TessellatedSVR(KernelRegressor, _TessellatedEstimator):
    """Support vector regression that learns its kernel among the tessellated ones, to a certified optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {learned}

    Notes
    -----
    Colbert and Peet (JMLR 2020), (10), with another loss and trace P <= 1.

    {tessellated}

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import TessellatedSVR
    >>> X, y = make_friedman1(150, random_state=0)
    >>> TessellatedSVR(C=1.0).fit(X, y).score(X, y) > 0.9
    True
    """

    C: float = field(default=1.0, kw_only=False)
    epsilon: float = 0.1

    def _loss(self) -> EpsilonInsensitive:
        return EpsilonInsensitive(self.C, self.epsilon, self.intercept)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TessellatedRidge(KernelRegressor, _TessellatedEstimator):
    """Kernel ridge regression that learns its kernel among the tessellated ones, to a certified optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {learned}

    Notes
    -----
    Colbert and Peet (JMLR 2020), (10), with another loss and trace P <= 1.

    {tessellated}

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import TessellatedRidge
    >>> X, y = make_friedman1(150, random_state=0)
    >>> TessellatedRidge(lam=1.0).fit(X, y).score(X, y) > 0.9
    True
    """

    lam: float = field(default=1.0, kw_only=False)

    def _loss(self) -> LeastSquares:
        return LeastSquares(self.lam, self.intercept)
