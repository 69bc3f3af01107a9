"""Estimators that learn a tessellated kernel."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.estimators.convex.base import (
    ConvexEstimator,
    EpsilonEstimator,
    HingeEstimator,
    RidgeEstimator,
    number_of_features,
)
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.families.base import Family
from convexkernels.families.box import Box, BoxRule, UnitBox
from convexkernels.families.candidates import Candidates
from convexkernels.families.library import NARROWER, data_library
from convexkernels.families.tessellated import Tessellated
from convexkernels.kernels.gaussian import Gaussian

# Features up to which the default degree is 1: P has 64 rows then.
MANY_FEATURES = 31
# Rows that the scale and the default box are measured on, spread over the table.
SAMPLE = 500
# How far the default box begins below the features, in their ranges, and how far it reaches beyond them, in mean
# distances between rows.
BELOW, REACH = 0.1, 0.7
# Factor of columns of categories: two of them are half as far apart, in the 1-norm, as the ends of a column. (Halves
# of training rows, three draws each: R^2 and accuracy are .003 more than with 1 in means of nine tables each; R^2 .04
# and .09 beside sixty categories that say nothing.)
OF_CATEGORIES = 0.25
# Logarithm of the volume of a box from which on its sides become the units of the features.
LARGEST_VOLUME = 100.0
# Landmarks on tables that are too long for matrices.
LANDMARKS = 200


@dataclass(eq=False, repr=False, kw_only=True)
class _TessellatedEstimator(ConvexEstimator):
    degree: int | None = None
    z_degree: int | None = 0
    margin: float | None = None
    landmarks: int | str | None = "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number_of_features("landmarks", self.landmarks, 1, LANDMARKS)
        if self.margin is not None:
            UnitBox(self.margin)

    def _scaling_of(self, X: Array) -> Scaling:
        scaling = Scaling.without_outliers(X, Scaling.to_unit_box)
        if groups := self._categories(scaling):
            factors = np.ones(len(scaling.columns))
            factors[np.concatenate(groups)] = OF_CATEGORIES
            scaling = replace(scaling, factors=factors)
        if self.margin is None:
            box = _far_box(_sample(scaling.apply(X)), 1.0)
            # The volume would overflow: in units of a side it is 1, and kernels of degree 0 are the same to a factor.
            if np.log(box.upper - box.lower).sum() > LARGEST_VOLUME:
                units = 1.0 if scaling.factors is None else scaling.factors
                scaling = replace(scaling, factors=units / (box.upper - box.lower))
        return scaling

    def _families(self, X: Array, clock: Clock) -> dict[str, Family]:
        sample = _sample(X)
        box: BoxRule = _far_box(sample, float(X.max()) or 1.0) if self.margin is None else UnitBox(self.margin)
        degree = self.degree if self.degree is not None else int(X.shape[1] <= MANY_FEATURES)
        landmarks = number_of_features("landmarks", self.landmarks, len(X), LANDMARKS)
        family = Tessellated(degree, self.z_degree, box, landmarks=landmarks)
        size = family.on(sample, modulo_constants=self.intercept).largest_scale(self.intercept)
        return {"": Tessellated(degree, self.z_degree, box, 1.0 / size if size > 0.0 else 1.0, landmarks)}

    def _references(self, X: Array) -> list[Family]:
        library = data_library(X, single=False, narrower=NARROWER)
        gaussians = [entry for entry in library if isinstance(entry[1], Gaussian)]
        normalize, narrow = "variance" if self.intercept else "mean", len(NARROWER) + 2
        # The narrowest ones would fit the rows best and get all weight: where functions change quickly, each by itself.
        lists = [gaussians[narrow:], *([entry] for entry in gaussians[:narrow])]
        return [Candidates(some, normalize, allow_duplicates=True) for some in lists]


def _sample(X: Array) -> Array:
    return X[np.unique(np.linspace(0, len(X) - 1, SAMPLE).round().astype(np.intp))]


def _far_box(X: Array, unit: float) -> Box:
    """A box of features on [0, unit], its far corner about as far as two points are from each other in the 1-norm.

    The volume of ``[max(x, y), b]`` is then about ``exp(-|x - y| / (2 side))`` in the norm of sums: it neither vanishes
    nor is it all alike, however many features there are.
    """
    distance = float(np.mean(cdist(X, X, "cityblock")))
    n = X.shape[1]
    return Box(np.full(n, -BELOW * unit), np.full(n, (1.0 + BELOW) * unit + REACH * distance))


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TessellatedSVC(KernelClassifier, HingeEstimator, _TessellatedEstimator):
    """Support vector classifier that learns its kernel among the tessellated ones, to a certified optimum.

    {Parameters: parameters}
    {Attributes: classes, chosen_cost, learned}

    Notes
    -----
    Colbert and Peet (JMLR 2020), (24), the bound on the trace being that scale.

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

    loss: str = "auto"


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TessellatedSVR(KernelRegressor, EpsilonEstimator, _TessellatedEstimator):
    """Support vector regression that learns its kernel among the tessellated ones, to a certified optimum.

    {Parameters: tube_loss, parameters}
    {Attributes: chosen_tube, learned}

    Notes
    -----
    Colbert and Peet (JMLR 2020), (10), with another loss.

    {tessellated}

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import TessellatedSVR
    >>> X, y = make_friedman1(150, random_state=0)
    >>> TessellatedSVR(C=1.0).fit(X, y).score(X, y) > 0.9
    True
    """


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TessellatedRidge(KernelRegressor, RidgeEstimator, _TessellatedEstimator):
    """Kernel ridge regression that learns its kernel among the tessellated ones, to a certified optimum.

    {Parameters: parameters}
    {Attributes: chosen_lam, learned}

    Notes
    -----
    Colbert and Peet (JMLR 2020), (10), with another loss.

    {tessellated}

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import TessellatedRidge
    >>> X, y = make_friedman1(150, random_state=0)
    >>> TessellatedRidge(lam=1.0).fit(X, y).score(X, y) > 0.9
    True
    """
